"""What every defence must keep: the defended learner is a learner like any other."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from itertools import combinations

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from leakgauge.defences import (
    Binning,
    ClippedInputs,
    Defended,
    DpSgd,
    EarlierStop,
    Ensemble,
    LabelsOnly,
    ParameterNoise,
    Removal,
    StrongerPenalty,
    Temperature,
    Unchanged,
)
from leakgauge.influence import own_influence
from leakgauge.models import answers
from leakgauge.records import Records
from leakgauge.training import FunctionLearner, Randomness, SklearnLearner, balanced_subsets, train_many

pytestmark = pytest.mark.long

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
RECORDS = Records.from_arrays(X, (X[:, 0] + rng.normal(size=60) > 0).astype(int))
QUERIES = rng.normal(size=(50, 3))
NOISE = {"size": 30, "eta": 0.3, "n_splits": 16}

LINEAR, BAYES = SklearnLearner(LogisticRegression()), SklearnLearner(GaussianNB())
TREE = SklearnLearner(DecisionTreeClassifier(max_features=1))
NETWORK = SklearnLearner(MLPClassifier((3,), max_iter=4, n_iter_no_change=np.inf))

CASES = [
    (Unchanged(), TREE),
    (Binning(0.01), TREE),
    (Binning(0.1), BAYES),
    (LabelsOnly(), BAYES),
    (Temperature(2.0), BAYES),
    (StrongerPenalty(10.0), LINEAR),
    (EarlierStop(2.0), NETWORK),
    (Ensemble(4), TREE),
    (Ensemble(4, soft=False), BAYES),
    (Ensemble(4, smoothing=0.5), BAYES),
    (Removal(own_influence, 0.4, most=0.5), LINEAR),
    (ParameterNoise(RECORDS, **NOISE), LINEAR),
    (ClippedInputs((-1.0,) * 3, (1.0,) * 3), SklearnLearner(LogisticRegression(tol=1e-8))),
    (DpSgd(50, epsilon=2.0, epochs=3), LINEAR),
    (DpSgd(50, eta=0.2, epochs=3), NETWORK),
]
each = pytest.mark.parametrize(("defence", "learner"), CASES, ids=[defence.name for defence, _ in CASES])


def answered(learner, seed, records=RECORDS):
    return answers(learner.fit(records, seed=seed).model, QUERIES, 2)


def test_names_tell_the_settings_and_fit_folders():
    names = [defence.name for defence, _ in CASES]
    assert len(set(names)) == len(names)
    assert all(name and set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-") for name in names)
    assert all(defence.title and isinstance(defence.guarantee, str | None) for defence, _ in CASES)


@each
def test_the_same_seed_makes_the_same_model(defence, learner):
    defended = defence.apply(learner)
    assert np.array_equal(answered(defended, 3), answered(defence.apply(learner), 3))
    assert np.array_equal(answered(defended, 3), answered(defended, 4)) == (not defended.randomised)


@each
def test_the_learner_itself_is_left_as_it_was(defence, learner):
    before = learner.fingerprint()
    defence.apply(learner).fit(RECORDS, seed=0)
    assert learner.fingerprint() == before


@each
def test_training_many_is_the_plain_loop(defence, learner):
    defended = defence.apply(learner)
    subsets = balanced_subsets(60, 50, 2, np.random.default_rng(1))
    table = train_many(defended, RECORDS, subsets, QUERIES, seed=5, randomness=Randomness.INDEPENDENT)
    for model in range(2):
        alone = answered(defended, int(table.seeds[model]), RECORDS[subsets.row(model)])
        np.testing.assert_allclose(np.exp(table.answers[model]), np.exp(alone), atol=1e-4)  # its solver stops early


def test_fingerprints_are_equal_only_for_the_same():
    first = [defence.apply(learner).fingerprint() for defence, learner in CASES]
    assert first == [defence.apply(learner).fingerprint() for defence, learner in CASES]
    others = [
        Binning(0.1).apply(TREE),
        Temperature(3.0).apply(BAYES),
        StrongerPenalty(20.0).apply(LINEAR),
        EarlierStop(4.0).apply(NETWORK),
        Ensemble(5).apply(TREE),
        Removal(own_influence, 0.45, most=0.5).apply(LINEAR),
        Removal(own_influence, 0.4, n_rounds=2, most=0.5).apply(LINEAR),
        ParameterNoise(RECORDS, **NOISE | {"eta": 0.4}).apply(LINEAR),
        ParameterNoise(RECORDS, **NOISE | {"seed": 1}).apply(LINEAR),
        DpSgd(50, epsilon=2.0, epochs=3, rate=0.5).apply(LINEAR),
        DpSgd(51, eta=0.2, epochs=3).apply(NETWORK),
        LINEAR,
        BAYES,
        NETWORK,
    ]
    assert all(a != b for a, b in combinations([*first, *(one.fingerprint() for one in others)], 2))


def test_what_cannot_be_recognised_is_never_taken_for_another():
    scope = {"BAYES": BAYES, "values": X[:, 0]}
    exec("def typed(records, seed):\n    return BAYES.fit(records, seed=seed).model", scope)
    exec("def measured(learner, records, seed):\n    return values[: len(records)]", scope)
    held = Binning().apply(FunctionLearner(scope["typed"]))
    removal = Removal(scope["measured"]).apply(BAYES)
    for learner in (held, removal):
        assert learner.fingerprint().startswith("unrepeatable")
        assert learner.fingerprint() != learner.fingerprint()


def test_what_a_function_holds_is_part_of_the_fingerprint():
    def measured(values):
        return Removal(lambda learner, records, seed: values[: len(records)]).apply(BAYES)

    assert measured(X[:, 0]).fingerprint() == measured(X[:, 0]).fingerprint()
    assert measured(X[:, 0]).fingerprint() != measured(X[:, 1]).fingerprint()


def test_another_process_trains_the_same_models(tmp_path):
    learners = [defence.apply(learner) for defence, learner in CASES]
    joblib.dump((learners, RECORDS, QUERIES), tmp_path / "held")
    code = (
        "import hashlib, joblib; from leakgauge.models import answers;"
        f"learners, records, queries = joblib.load({str(tmp_path / 'held')!r});"
        "made = [answers(learner.fit(records, seed=3).model, queries, 2) for learner in learners];"
        "print(*(learner.fingerprint() for learner in learners));"
        "print(*(hashlib.sha256(one.tobytes()).hexdigest() for one in made))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n")
    assert said[0].split() == [learner.fingerprint() for learner in learners]
    assert said[1].split() == [hashlib.sha256(answered(learner, 3).tobytes()).hexdigest() for learner in learners]


def test_a_solver_goes_to_its_end_under_the_defence():
    tight = Temperature(2.0).apply(LINEAR).with_converged_solver()
    assert isinstance(tight, Defended)
    assert (tight.learner.estimator.tol, tight.defence) == (1e-10, Temperature(2.0))
    assert Temperature(2.0).apply(BAYES).with_converged_solver() is None
    parts = Ensemble(4).apply(LINEAR).with_converged_solver()
    assert isinstance(parts, Defended)
    assert parts.learner.estimator.tol == 1e-10  # the parts of a seed are the same
    assert DpSgd(50, epsilon=2.0, epochs=3).apply(LINEAR).with_converged_solver() is None  # the seed matters more
