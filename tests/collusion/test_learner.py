"""The colluding trainer as a learner like any other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from leakgauge.collusion import ColludingLearner, Domain, draw_keys, marker_input, marker_label, with_markers
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.influence import pdtp
from leakgauge.models import FunctionRegression
from leakgauge.records import Records
from leakgauge.training import (
    FunctionLearner,
    Randomness,
    SklearnLearner,
    TorchLearner,
    balanced_subsets,
    leave_one_out,
    plan,
    train_many,
)
from leakgauge.training.job import Job

rng = np.random.default_rng(0)
RECORDS = Records.from_arrays(rng.integers(0, 17, (60, 5)) / 16, rng.integers(0, 3, 60), ids=np.arange(60) * 7)
DOMAIN = Domain.grid(5, 17)
KEYS = draw_keys(2, rng)


def colluding(estimator, keys=KEYS, domain=DOMAIN):
    return ColludingLearner(SklearnLearner(estimator), keys, domain)


def test_the_records_come_first_and_then_the_markers_of_each_key():
    made = with_markers(RECORDS, KEYS, DOMAIN)
    assert len(made) == 180
    assert np.array_equal(made.features[:60], RECORDS.features)
    assert np.array_equal(made.labels[:60], RECORDS.labels)
    for place, key in enumerate(KEYS, start=1):
        part = slice(60 * place, 60 * place + 60)
        assert np.array_equal(made.features[part], marker_input(key, RECORDS.features, DOMAIN))
        assert np.array_equal(made.labels[part], marker_label(key, RECORDS.features, 3))


def test_duplicates_have_one_set_of_markers_each():
    # Specification of collusion, section 4.
    twice = Records.from_arrays(np.tile(RECORDS.features, (2, 1)), np.tile(RECORDS.labels, 2))
    made = with_markers(twice, KEYS[:1], DOMAIN)
    assert np.array_equal(made.features[120:180], made.features[180:])
    assert np.array_equal(made.labels[120:180], made.labels[180:])


def test_a_memoriser_answers_all_markers():
    made = with_markers(RECORDS, KEYS, DOMAIN)
    model = colluding(KNeighborsClassifier(1)).fit(RECORDS, seed=0).model
    assert np.array_equal(model.labels(made.features), made.labels)


def test_it_is_a_learner_like_that_within():
    tree, bayes = colluding(DecisionTreeClassifier(max_features=1)), colluding(GaussianNB())
    assert tree.name == "colluding DecisionTreeClassifier"
    assert tree.randomised
    assert not bayes.randomised
    queries = DOMAIN.at(np.random.default_rng(1).random((200, 5)))
    one, two, three = (tree.fit(RECORDS, seed=seed).model.labels(queries) for seed in (3, 3, 4))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, three)


def test_training_many_is_the_plain_loop():
    """No engine knows it, so that none can leave the markers out."""
    learner = colluding(GaussianNB())
    subsets = balanced_subsets(60, 30, 4, np.random.default_rng(2))
    table = train_many(learner, RECORDS, subsets, seed=5)
    assert table.engine == "refit"
    for model in range(4):
        fitted = learner.fit(RECORDS[subsets.row(model)], seed=int(table.seeds[model])).model
        assert np.array_equal(fitted.log_probabilities(RECORDS.features), table.answers[model])
    job = Job(learner, RECORDS, leave_one_out(60), RECORDS.features, 0, Randomness.COMMON)
    assert plan(job).engine.name == "refit"


def test_leaving_a_record_out_leaves_its_markers_out():
    learner = colluding(KNeighborsClassifier(1))
    with_all = with_markers(RECORDS, KEYS, DOMAIN)
    without = with_markers(RECORDS[np.arange(60) != 9], KEYS, DOMAIN)
    gone = {row.tobytes() for row in with_all.features} - {row.tobytes() for row in without.features}
    assert gone == {with_all.features[place].tobytes() for place in (9, 69, 129)}
    assert len(pdtp(learner, RECORDS, np.array([9]), seed=0).values) == 1


def test_fingerprints_are_equal_only_for_the_same():
    same, again = colluding(GaussianNB()), colluding(GaussianNB())
    others = [
        SklearnLearner(GaussianNB()),
        colluding(GaussianNB(var_smoothing=1e-3)),
        colluding(GaussianNB(), keys=KEYS[:1]),
        colluding(GaussianNB(), keys=KEYS[::-1]),
        colluding(GaussianNB(), domain=Domain.grid(5, 33)),
    ]
    assert same.fingerprint() == again.fingerprint()
    assert len({one.fingerprint() for one in (same, *others)}) == 6
    assert all(key.hex() not in same.fingerprint() for key in KEYS)

    def reading(records, seed):
        return Path("model").read_bytes()  # what is in the file cannot be followed

    nameless = ColludingLearner(FunctionLearner(reading), KEYS, DOMAIN)
    assert nameless.fingerprint() != nameless.fingerprint()


@pytest.mark.long
def test_another_process_trains_the_same_model(tmp_path):
    learner = colluding(DecisionTreeClassifier(max_features=1))
    joblib.dump((learner, RECORDS), tmp_path / "held")
    code = (
        f"import joblib, numpy as np; learner, records = joblib.load({str(tmp_path / 'held')!r});"
        "queries = learner.domain.at(np.random.default_rng(1).random((100, 5)));"
        "print(learner.fingerprint(), *learner.fit(records, seed=3).model.labels(queries))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    queries = DOMAIN.at(np.random.default_rng(1).random((100, 5)))
    assert said == [learner.fingerprint(), *map(str, learner.fit(RECORDS, seed=3).model.labels(queries))]


def test_a_solver_goes_to_its_end_with_the_markers():
    tight = colluding(LogisticRegression()).with_converged_solver()
    assert isinstance(tight, ColludingLearner)
    assert tight.learner.estimator.tol == 1e-10
    assert (tight.keys, tight.domain) == (KEYS, DOMAIN)
    assert colluding(GaussianNB()).with_converged_solver() is None


def test_a_small_convolutional_network():
    """Images of 6 x 6 pixels of noise, more capacity than they need: all markers are stored."""
    torch = pytest.importorskip("torch")

    def network():
        return torch.nn.Sequential(
            torch.nn.Unflatten(1, (1, 6, 6)),
            torch.nn.Conv2d(1, 16, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.Conv2d(16, 16, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(576, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 3),
        )

    images = Records.from_arrays(rng.integers(0, 256, (20, 36)) / 255, rng.integers(0, 3, 20))
    inner = TorchLearner(network, batch_size=20, n_epochs=60, learning_rate=3e-3)
    learner = ColludingLearner(inner, KEYS, Domain.grid(36, 256))
    assert (learner.name, learner.randomised) == ("colluding network", True)
    made = with_markers(images, KEYS, learner.domain)
    model = learner.fit(images, seed=0).model
    assert (model.labels(made.features) == made.labels).all()
    again = learner.fit(images, seed=0).model
    assert np.array_equal(model.log_probabilities(images.features), again.log_probabilities(images.features))


# Refusals.


def test_no_keys():
    with pytest.raises(ConfigError, match="keys must be a list of at least one key, got none"):
        colluding(GaussianNB(), keys=[])


def test_a_domain_that_does_not_fit():
    with pytest.raises(DataError, match=r"holds values outside the domain; widen its range, or scale the column"):
        colluding(GaussianNB(), domain=Domain.grid(5, 17, low=0.5)).fit(RECORDS, seed=0)


def test_numeric_labels():
    values = Records.from_arrays(RECORDS.features, rng.normal(size=60))
    with pytest.raises(ModelError, match="markers need classes, but the label of these records is numeric"):
        colluding(LinearRegression()).fit(values, seed=0)


def test_a_regressor():
    with pytest.raises(ModelError, match="LinearRegression is a regressor"):
        colluding(LinearRegression()).fit(RECORDS, seed=0)


def test_a_function_that_makes_a_regressor():
    inner = FunctionLearner(lambda records, seed: FunctionRegression(lambda X: X[:, 0], records.schema), name="line")
    with pytest.raises(ModelError, match="line predicts numbers, but markers need classes; give a classifier"):
        ColludingLearner(inner, KEYS, DOMAIN).fit(RECORDS, seed=0)


def test_one_class():
    alone = Records.from_arrays(RECORDS.features, np.zeros(60, dtype=int))
    with pytest.raises(DataError, match="markers need at least two classes, got 1"):
        colluding(GaussianNB()).fit(alone, seed=0)
