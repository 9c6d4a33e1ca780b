"""Least squares without persons of several records: the closed form is the fit without them."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakgauge.records import Records, Task
from leakgauge.training import Job, LeftOut, Randomness, SklearnLearner, plan
from leakgauge.training.engines.base import Refusal
from leakgauge.training.engines.linear_units import LinearLeastSquaresWithoutUnits, RidgeRegressionWithoutUnits
from leakgauge.training.engines.refit import Refit

ENGINES = {
    LinearRegression: "linear-least-squares-persons",
    Ridge: "ridge-regression-persons",
}


def job_of(estimator, records, which=None, shared=False):
    left = LeftOut.of(records, which)
    queries = records.features[:7] if shared else left.queries
    return Job(SklearnLearner(estimator), records, left.subsets, queries, 0, Randomness.COMMON)


def visits(n_persons=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    persons = rng.permutation(np.repeat(np.arange(n_persons), rng.integers(1, 6, n_persons)))
    X = 5 + rng.normal(size=(n_persons, d))[persons] + 0.1 * rng.normal(size=(len(persons), d))
    return Records.from_arrays(X, X.sum(axis=1) + rng.normal(size=len(X)), persons=persons, task=Task.REGRESSION)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", [LinearRegression, Ridge])
def test_answers_are_those_of_training_without_each_person(kind, shared, intercept):
    records = visits()
    job = job_of(kind(fit_intercept=intercept), records, shared=shared)
    found = plan(job)
    assert found.engine.name == ENGINES[kind]
    expected = Refit().prepare(job).all().answers
    np.testing.assert_allclose(found.train().answers, expected, rtol=0, atol=1e-8 * np.std(records.labels))


def test_the_example_of_two_rows_is_not_the_sum_of_single_ones():
    """Rows 3 and 4: H_PP = [[.256410, .307692], [.307692, .769231]], e = (-.717949, .538462), own derivation.

    theta = (0.974359, 0.871795) moves to (1.333333, 0.333333) without both; the displacements of either by itself sum
    to (0.557029, -0.513705).
    """
    X, y = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([1.0, 2.0, 2.0, 5.0])
    both, single = (
        Records.from_arrays(X, y, persons=persons, task=Task.REGRESSION) for persons in (["a", "b", "c", "c"], None)
    )
    prepared = RidgeRegressionWithoutUnits().prepare(job_of(Ridge(), both))
    assert prepared.displacements()[2] == pytest.approx([-0.538462, 0.358974], abs=1e-6)  # slope first
    each = plan(job_of(Ridge(), single)).prepared.displacements()
    assert each[2] + each[3] == pytest.approx([-0.513705, 0.557029], abs=1e-6)


def test_a_person_who_determines_a_direction_is_left_to_training():
    """She alone has the fourth column: I - H is singular, and the smallest coefficients without her leave it out."""
    records = visits(d=4)
    X = np.array(records.features)
    X[:, 3] = (records.units.of_row == 2) * (1.0 + np.arange(len(X)))
    alone = Records.from_arrays(X, records.labels, persons=records.persons, task=Task.REGRESSION)
    job = job_of(LinearRegression(), alone)
    prepared = LinearLeastSquaresWithoutUnits().prepare(job)
    with np.errstate(all="ignore"):
        lost = prepared.solved.lines(np.arange(len(alone.units))).lost
    assert np.flatnonzero(lost).tolist() == [2]
    np.testing.assert_allclose(prepared.all().answers, Refit().prepare(job).all().answers, atol=1e-7)


@pytest.mark.parametrize(
    "estimator", [make_pipeline(StandardScaler(), Ridge()), Ridge(positive=True)], ids=["scaler", "positive"]
)
def test_what_has_no_closed_form_is_trained(estimator):
    assert plan(job_of(estimator, visits())).engine.name == "refit"


def test_more_features_than_records_are_trained():
    assert isinstance(RidgeRegressionWithoutUnits().prepare(job_of(Ridge(), visits(3, d=40))), Refusal)
