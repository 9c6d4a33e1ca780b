"""One worker or two: the same table to the bit, by every engine that works in chunks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from leakgauge.defences import Ensemble, LabelsOnly, Temperature
from leakgauge.records import Records
from leakgauge.records.discretise import FixedBins
from leakgauge.training import (
    DecisionTree,
    Execution,
    Job,
    Learner,
    PredictionTable,
    RandomForest,
    Randomness,
    SklearnLearner,
    Subsets,
    leave_one_out,
    plan,
    public_thresholds,
    random_subsets,
    train_many,
)
from leakgauge.training.engines import ENGINES, boosting
from leakgauge.training.engines.composed import Composed
from leakgauge.training.engines.refit import Refit

N = 40


def people(n_classes: int = 2) -> Records:
    rng = np.random.default_rng(0)
    y = np.arange(N) % n_classes
    return Records.from_arrays(rng.normal(y[:, None], 1.0, (N, 4)).round(2), y)


LEAVE_OUT = leave_one_out(N)
RANDOM = random_subsets(N, 20, 20, np.random.default_rng(1))
NETWORK = SklearnLearner(MLPClassifier(5, max_iter=5, n_iter_no_change=np.inf, tol=0.0))
BINNED = make_pipeline(FixedBins(((-9.0, 0.0, 1.0, 2.0, 9.0),) * 4), CategoricalNB(min_categories=4))
TREE, FOREST = DecisionTree(public_thresholds(people())), RandomForest(public_thresholds(people()), 5)

CASES: list[tuple[str, Learner, Subsets, int]] = [
    ("refit", SklearnLearner(SVC(probability=False)), RANDOM, 2),
    ("logistic-regression", SklearnLearner(LogisticRegression()), LEAVE_OUT, 2),
    ("multinomial-logistic-regression", SklearnLearner(LogisticRegression()), LEAVE_OUT, 3),
    ("logistic-regression-subsets", SklearnLearner(LogisticRegression()), RANDOM, 2),
    ("naive-bayes-subsets", SklearnLearner(BINNED), RANDOM, 3),
    ("trees", TREE, LEAVE_OUT, 2),
    ("trees", FOREST, LEAVE_OUT, 2),
    ("trees-asked", TREE, RANDOM, 2),
    ("trees-asked", FOREST, RANDOM, 3),
    ("forests", SklearnLearner(RandomForestClassifier(5)), LEAVE_OUT, 2),
    ("forests", SklearnLearner(RandomForestClassifier(5)), RANDOM, 3),
    ("forests-voting", Ensemble(3).apply(SklearnLearner(RandomForestClassifier(5))), LEAVE_OUT, 2),
    ("networks", NETWORK, LEAVE_OUT, 2),
    ("networks", NETWORK, RANDOM, 3),
    ("logistic-regression-released", Temperature(2.0).apply(SklearnLearner(LogisticRegression())), LEAVE_OUT, 2),
    ("logistic-regression-voting", Ensemble(3).apply(SklearnLearner(LogisticRegression())), LEAVE_OUT, 2),
    ("logistic-regression-subsets-voting", Ensemble(3).apply(SklearnLearner(LogisticRegression())), RANDOM, 2),
    ("trees-voting", Ensemble(3).apply(FOREST), LEAVE_OUT, 2),
    ("networks", LabelsOnly().apply(NETWORK), LEAVE_OUT, 2),
    ("networks", Ensemble(2).apply(NETWORK), RANDOM, 2),
]
BOOSTING = SklearnLearner(GradientBoostingClassifier(n_estimators=5, max_features=2))
COMPILED = boosting.compiled() is not None
if COMPILED:  # else scikit-learn does it
    CASES += [
        ("gradient-boosting", BOOSTING, RANDOM, 3),
        ("gradient-boosting-released", Temperature(2.0).apply(BOOSTING), RANDOM, 2),
        ("histogram-boosting", SklearnLearner(HistGradientBoostingClassifier(max_iter=5)), LEAVE_OUT, 2),
        ("histogram-boosting", SklearnLearner(HistGradientBoostingClassifier(max_iter=5)), RANDOM, 3),
    ]


@pytest.mark.parametrize(
    ("name", "learner", "subsets", "n_classes"),
    [
        pytest.param(name, learner, subsets, n_classes, marks=() if i % 2 == 0 else pytest.mark.slow)
        for i, (name, learner, subsets, n_classes) in enumerate(CASES)
    ],
    ids=lambda value: str(value)[:30],
)
def test_workers_change_no_bit(
    name: str, learner: Learner, subsets: Subsets, n_classes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = people(n_classes)
    engine = plan(Job(learner, records, subsets, records.features, 3, Randomness.COMMON)).engine
    assert engine.name.startswith(name)
    while isinstance(engine, Composed):
        engine = engine.inner
    monkeypatch.setattr(type(engine), "chunk", 7)  # several, the last one smaller

    def table(workers: int) -> PredictionTable:
        run = tmp_path / str(workers)
        return train_many(
            learner, records, subsets, seed=3, randomness=Randomness.COMMON, execution=Execution(run, workers)
        )  # fmt: skip

    one, two = table(1), table(2)
    np.testing.assert_array_equal(one.answers, two.answers)
    assert (one.engine, one.failures, one.n_unconverged) == (two.engine, two.failures, two.n_unconverged)
    stored = [sorted(path.name for path in (tmp_path / str(n) / "chunks").iterdir()) for n in (1, 2)]
    assert stored[0] == stored[1]
    assert len(stored[0]) == -(-len(subsets) // engine.chunk_of(len(subsets)))
    assert len(stored[0]) > 2


def test_every_engine_with_chunks_is_here() -> None:
    named = {name for name, *_ in CASES}
    chunked = {engine.name for engine in (*ENGINES, Refit()) if engine.chunk is not None}
    missing = {name for name in chunked if not any(name.startswith(known) for known in named)}
    own_test = {name for name in missing if name.startswith("modules")}  # as torch need not be installed
    own_test |= set() if COMPILED else {"gradient-boosting", "histogram-boosting"}
    assert missing == own_test
