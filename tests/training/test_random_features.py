"""Random features that were drawn without a number: those of one model are given to all."""

from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from leakgauge.models import FunctionProbabilities, wrap
from leakgauge.records import Records
from leakgauge.training import FunctionLearner, SklearnLearner
from leakgauge.training.random_features import draw_features, with_known_features

X = np.random.default_rng(0).uniform(0.1, 1.0, size=(60, 6))
Y = (X[:, 0] > X[:, 1]).astype(int)
RECORDS = Records.from_arrays(X, Y)
NUMBERS = Records.from_arrays(X, X[:, 0] - X[:, 1])


def waves(state: Any = None) -> Any:
    return RBFSampler(n_components=5, random_state=state)


def logistic(step: Any = None) -> Any:
    return make_pipeline(StandardScaler(), waves() if step is None else step, LogisticRegression())


KEPT = {
    "a pipeline": logistic(),
    "skewed": make_pipeline(SkewedChi2Sampler(n_components=5), LogisticRegression()),
    "sketch": logistic(PolynomialCountSketch(n_components=5)),
    "gaussian projection": logistic(GaussianRandomProjection(3)),
    "sparse projection": logistic(SparseRandomProjection(3)),
    "a generator": logistic(waves(np.random.RandomState(3))),
    "a union": make_pipeline(make_union(waves(), waves(), "passthrough"), LogisticRegression()),
    "columns": make_pipeline(
        make_column_transformer((waves(), [0, 1]), ("drop", [2]), remainder="passthrough"), LogisticRegression()
    ),
    "pipelines in columns": make_pipeline(
        make_column_transformer((make_pipeline(StandardScaler(), waves()), [0, 1])), LogisticRegression()
    ),
    "a pipeline in a pipeline": make_pipeline(make_pipeline(StandardScaler(), waves()), LogisticRegression()),
    "a vote": VotingClassifier([("a", logistic()), ("b", LogisticRegression()), ("c", "drop")], voting="soft"),
    "a stack": StackingClassifier([("a", logistic()), ("b", LogisticRegression())], cv=2),
    "a search": GridSearchCV(logistic(), {"logisticregression__C": [1.0]}, cv=2),
    "a search in a vote": VotingClassifier(
        [("a", GridSearchCV(logistic(), {"logisticregression__C": [1.0]}, cv=2))], voting="soft"
    ),
}


def answered(learner: Any, seed: int) -> Any:
    return learner.fit(RECORDS, seed=seed).model


@pytest.mark.parametrize("name", KEPT)
def test_all_models_have_the_features_of_the_audited_one(name):
    """So that they answer alike, whatever their seed: nothing else in them is drawn."""
    learner, model = SklearnLearner(KEPT[name]), wrap(KEPT[name].fit(X, Y), RECORDS.schema)
    assert draw_features(learner)
    known = with_known_features(learner, model, RECORDS, 0)
    assert not draw_features(known)
    if name != "a stack":  # of which the others are trained on parts of the records
        first, other = (answered(known, seed).estimator.predict_proba(X) for seed in (1, 2))
        np.testing.assert_allclose(first, model.estimator.predict_proba(X), atol=1e-6)
        np.testing.assert_allclose(other, first, atol=1e-12)
    drawn, other = (answered(learner, seed).estimator.predict_proba(X) for seed in (1, 2))
    assert not np.allclose(drawn, other, atol=1e-6)
    assert draw_features(learner)  # is as it was


def test_of_a_transformed_target():
    estimator = TransformedTargetRegressor(make_pipeline(waves(), Ridge()), transformer=StandardScaler())
    model = wrap(estimator.fit(X, NUMBERS.labels), NUMBERS.schema)
    known = with_known_features(SklearnLearner(estimator), model, NUMBERS, 0)
    again = known.fit(NUMBERS, seed=5).model.estimator
    np.testing.assert_allclose(again.predict(X), estimator.predict(X))


def test_without_a_model_they_are_drawn_once():
    learner = SklearnLearner(logistic())
    known = with_known_features(learner, None, RECORDS, 3)
    first, other = (answered(known, seed).estimator.predict_proba(X) for seed in (1, 2))
    np.testing.assert_allclose(other, first, atol=1e-12)
    other = answered(with_known_features(learner, None, RECORDS, 4), 1).estimator.predict_proba(X)
    assert not np.allclose(other, first, atol=1e-6)


NOT_KNOWN = {
    "calibrated": CalibratedClassifierCV(logistic(), cv=2),
    "bagged": BaggingClassifier(logistic(), n_estimators=3),
    "settings that are tried": GridSearchCV(logistic(), {"rbfsampler__gamma": [0.1, 1.0]}, cv=2),
    "settings that are drawn": RandomizedSearchCV(logistic(), [{"rbfsampler__gamma": [0.1, 1.0]}], n_iter=2, cv=2),
}


@pytest.mark.parametrize("name", NOT_KNOWN)
def test_where_they_are_not_known_the_learner_draws_them(name):
    learner, model = SklearnLearner(NOT_KNOWN[name]), wrap(NOT_KNOWN[name].fit(X, Y), RECORDS.schema)
    assert with_known_features(learner, model, RECORDS, 0) is learner
    assert draw_features(learner)


def test_those_of_a_function_or_of_another_estimator_are_not_known():
    fitted = logistic().fit(X, Y)
    learner = SklearnLearner(logistic())
    asked = FunctionProbabilities(fitted.predict_proba, RECORDS.schema)
    other = wrap(LogisticRegression().fit(X, Y), RECORDS.schema)
    shorter = wrap(make_pipeline(waves(), LogisticRegression()).fit(X, Y), RECORDS.schema)
    for model in (asked, other):
        assert with_known_features(learner, model, RECORDS, 0) is learner
    assert not draw_features(with_known_features(learner, shorter, RECORDS, 0))  # by its name


@pytest.mark.parametrize("estimator", [logistic(waves(0)), logistic(KMeans(3)), LogisticRegression()])
def test_a_number_or_a_step_that_learns_changes_nothing(estimator):
    learner = SklearnLearner(estimator)
    assert not draw_features(learner)
    assert with_known_features(learner, None, RECORDS, 0) is learner


def test_learners_of_other_kinds_are_left_alone():
    learner = FunctionLearner(lambda records, seed: None)
    assert not draw_features(learner)
    assert with_known_features(learner, None, RECORDS, 0) is learner
