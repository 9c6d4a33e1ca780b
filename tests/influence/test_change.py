"""How far records move a regressor's predictions: nothing where nothing moves, then what follows by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor

from leakgauge.errors import ModelError
from leakgauge.influence import confirm_change, prediction_change
from leakgauge.models import FunctionRegression, Model, wrap
from leakgauge.records import Records, Task
from leakgauge.training import FunctionLearner, SklearnLearner


def people(n: int = 60, seed: int = 0) -> Records:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return Records.from_arrays(X, X @ [1.0, -2.0, 0.5] + rng.normal(size=n), task=Task.REGRESSION)


def test_a_constant_prediction_moves_nothing() -> None:
    found = prediction_change(SklearnLearner(DummyRegressor(strategy="constant", constant=3.0)), people(), seed=0)
    assert (found.values == 0).all()
    assert (found.noise_floor == 0).all()


def test_the_mean_moves_by_what_follows_by_hand() -> None:
    """Leaving y_t out of a mean of n moves it by ``(y_t - mean) / (n - 1)``."""
    records = people(20)
    found = prediction_change(SklearnLearner(DummyRegressor()), records, seed=0)
    y = np.asarray(records.labels)
    np.testing.assert_allclose(found.values, np.abs(y - y.mean()) / 19, rtol=1e-9)
    np.testing.assert_allclose(found.left_out_errors, (y - y.mean()) * 20 / 19, rtol=1e-9)


def test_least_squares_moves_by_leverage_times_error() -> None:
    """The change is ``h e / (1 - h)`` with leverage h and residual e, and the left-out error ``e / (1 - h)``."""
    records = people()
    X = np.c_[records.features, np.ones(60)]
    h = np.diag(X @ np.linalg.pinv(X))
    e = records.labels - X @ np.linalg.lstsq(X, records.labels, rcond=None)[0]
    found = prediction_change(SklearnLearner(LinearRegression()), records, seed=0)
    np.testing.assert_allclose(found.values, np.abs(h * e / (1 - h)), rtol=1e-6)
    np.testing.assert_allclose(found.left_out_errors, e / (1 - h), rtol=1e-6)
    assert found.engine == "linear-least-squares"


@pytest.mark.parametrize("estimator", [Ridge(2.0), KNeighborsRegressor(3), DummyRegressor(strategy="median")])
def test_engines_agree_with_training_each_model(estimator: object) -> None:
    records = people(30)
    learner = SklearnLearner(estimator)
    found = prediction_change(learner, records, np.arange(10), seed=0)
    whole = learner.fit(records, seed=0).model.predict(records.features[:10])  # type: ignore[union-attr]
    for t in range(10):
        left = learner.fit(records[np.arange(30) != t], seed=0).model
        alone = left.predict(records.features[t : t + 1])[0]  # type: ignore[union-attr]
        assert found.values[t] == pytest.approx(abs(whole[t] - alone), abs=1e-6)


def test_a_released_model_that_differs_widens_the_floor() -> None:
    records = people()
    fitted = LinearRegression().fit(records.features, records.labels)
    fitted.intercept_ += 0.25
    found = prediction_change(SklearnLearner(LinearRegression()), records, seed=0, model=wrap(fitted, records.schema))
    np.testing.assert_allclose(found.solver_floor, 0.25, atol=1e-5)


def coin(records: Records, seed: int) -> Model:
    """Answers from the seed alone."""
    value = np.random.default_rng(seed).normal()
    return FunctionRegression(lambda X: np.sin(X[:, 0] * 1e3) * value, records.schema)


def test_a_second_look_at_noise_finds_nothing() -> None:
    """Null: answers hang on the seed alone. 40 second looks at 95 %: the lower end is above 0 in at most 5 of them.

    Each errs with probability below 0.05 (both ends together, Bonferroni); more than 5 of 40 has probability 0.014.
    """
    records, learner = people(12), FunctionLearner(coin)
    wrong = 0
    for seed in range(40):
        found = prediction_change(learner, records, seed=seed)
        wrong += confirm_change(learner, records, found, seed=seed, n_candidates=3).low > 0
    assert wrong <= 5


def test_a_second_look_finds_what_is_there() -> None:
    """A tree on bootstrap samples still answers near a record's own value: about 0.63 of the gap is gone without it."""
    rng = np.random.default_rng(1)
    X, y = np.arange(40.0)[:, None], rng.normal(size=40)
    y[20] = 100.0
    records = Records.from_arrays(X, y, task=Task.REGRESSION)
    learner = SklearnLearner(RandomForestRegressor(20))
    found = prediction_change(learner, records, np.array([20]), seed=0)
    again = confirm_change(learner, records, found, seed=0)
    assert 30 < again.low < 63 < again.high + 20


def test_classes_are_refused() -> None:
    records = Records.from_arrays(np.arange(4.0)[:, None], [0, 1, 0, 1])
    with pytest.raises(ModelError, match="PDTP"):
        prediction_change(SklearnLearner(Ridge()), records, seed=0)
