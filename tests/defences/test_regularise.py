"""Stronger penalties and fewer rounds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from leakgauge.defences import EarlierStop, StrongerPenalty
from leakgauge.errors import ConfigError, ModelError
from leakgauge.influence import pdtp
from leakgauge.records import Records
from leakgauge.training import (
    DecisionTree,
    FunctionLearner,
    RandomForest,
    SklearnLearner,
    TorchLearner,
    public_thresholds,
    recipe,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
RECORDS = Records.from_arrays(X, (X[:, 0] + rng.normal(size=80) > 0).astype(int))


def parameters(defence, estimator):
    return defence.apply(SklearnLearner(estimator)).estimator.get_params()


@pytest.mark.parametrize(
    ("estimator", "parameter", "expected"),
    [
        (LogisticRegression(C=2.0), "C", 0.2),
        (SVC(C=1), "C", 0.1),
        (Ridge(alpha=0.5), "alpha", 5.0),
        (BernoulliNB(), "alpha", 10.0),
        (CategoricalNB(alpha=0.1), "alpha", 1.0),
        (MLPClassifier(alpha=1e-4), "alpha", 1e-3),
        (DecisionTreeClassifier(), "min_samples_leaf", 10),
        (RandomForestClassifier(min_samples_leaf=3), "min_samples_leaf", 30),
        (DecisionTreeClassifier(min_samples_leaf=0.01), "min_samples_leaf", 0.1),
        (DecisionTreeClassifier(min_samples_leaf=0.2), "min_samples_leaf", 0.5),
        (KNeighborsClassifier(5), "n_neighbors", 50),
        (make_pipeline(StandardScaler(), LogisticRegression()), "logisticregression__C", 0.1),
        (BaggingClassifier(DecisionTreeClassifier()), "estimator__min_samples_leaf", 10),
    ],
)
def test_ten_times_as_strong(estimator, parameter, expected):
    assert parameters(StrongerPenalty(10), estimator)[parameter] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("estimator", "parameter", "expected"),
    [
        (MLPClassifier(max_iter=50), "max_iter", 25),
        (GradientBoostingClassifier(n_estimators=3), "n_estimators", 1),
        (make_pipeline(StandardScaler(), MLPClassifier(max_iter=9)), "mlpclassifier__max_iter", 4),
    ],
)
def test_half_the_rounds(estimator, parameter, expected):
    assert parameters(EarlierStop(2), estimator)[parameter] == expected


def test_nothing_else_is_changed():
    before, after = SVC(gamma=3.0).get_params(), parameters(StrongerPenalty(10), SVC(gamma=3.0))
    assert {name for name in before if before[name] != after[name]} == {"C"}


def test_our_trees_and_the_recipes():
    edges = public_thresholds(RECORDS)
    assert StrongerPenalty(2.5).apply(DecisionTree(edges)).min_samples_leaf == 3
    forest = StrongerPenalty(4).apply(RandomForest(edges, 7, min_samples_leaf=2))
    assert (forest.min_samples_leaf, forest.n_trees) == (8, 7)
    linear = StrongerPenalty(4).apply(recipe("logistic-regression", RECORDS))
    assert linear.estimator[-1].C == 0.25
    assert EarlierStop(4).apply(recipe("neural-network", RECORDS, epochs=20)).estimator[-1].max_iter == 5


def test_modules():
    torch = pytest.importorskip("torch")
    learner = TorchLearner(lambda: torch.nn.Linear(3, 2), weight_decay=0.01, n_epochs=10, name="linear")
    assert StrongerPenalty(10).apply(learner).weight_decay == pytest.approx(0.1)
    assert EarlierStop(4).apply(learner).n_epochs == 2
    assert (learner.weight_decay, learner.n_epochs) == (0.01, 10)


def test_a_stronger_penalty_makes_records_weigh_less():
    linear = SklearnLearner(LogisticRegression())
    before, after = (pdtp(one, RECORDS, seed=0).values.max() for one in (linear, StrongerPenalty(100).apply(linear)))
    assert after < before / 2


@pytest.mark.parametrize(
    "learner",
    [
        SklearnLearner(GaussianNB()),
        SklearnLearner(LogisticRegression(C=np.inf)),
        SklearnLearner(MLPClassifier(alpha=0.0)),
        FunctionLearner(lambda records, seed: None, name="mine"),
    ],
)
def test_nothing_to_strengthen(learner):
    with pytest.raises(ModelError, match="has no penalty that could be strengthened"):
        StrongerPenalty().apply(learner)


@pytest.mark.parametrize("estimator", [GaussianNB(), LogisticRegression(), MLPClassifier(max_iter=1)])
def test_no_rounds(estimator):
    with pytest.raises(ModelError, match="is not trained in rounds that could be fewer"):
        EarlierStop().apply(SklearnLearner(estimator))


@pytest.mark.parametrize("kind", [StrongerPenalty, EarlierStop])
@pytest.mark.parametrize("factor", [1.0, 0.5, np.inf, np.nan])
def test_factors_that_change_nothing(kind, factor):
    with pytest.raises(ConfigError, match="factor must be above 1 and finite"):
        kind(factor)
