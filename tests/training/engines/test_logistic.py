"""Logistic regression without each record: the difference equation against plain minimisation."""

import os

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from leakgauge.influence import dtp_upper_bound, pdtp
from leakgauge.records import Records
from leakgauge.training import EachModel, Job, Randomness, SklearnLearner, leave_one_out, train_many
from leakgauge.training.engines.logistic import (
    LogisticRegressionNewton,
    Problem,
    accelerated,
    displaced,
    minimum,
    remainder,
    scores_without,
)

TIGHT = {"tol": 1e-12, "solver": "newton-cholesky", "max_iter": 1000}
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 5))
Y = (X @ [1.0, -1, 0.5, 0, 0] + rng.logistic(size=200) > 0).astype(int)


def problem(C=1.0, X=X, y=Y):
    A = np.c_[X, np.ones(len(X))]
    return Problem(A, y.astype(float), np.full(len(y), C), np.r_[np.ones(X.shape[1]), 0.0])


def by_general_minimiser(p):
    def objective(w):
        z = p.X @ w
        value = p.cost @ (np.logaddexp(0, z) - p.y * z) + 0.5 * (p.penalty * w) @ w
        return value, p.X.T @ (p.cost * (1 / (1 + np.exp(-z)) - p.y)) + p.penalty * w

    return minimize(objective, np.zeros(p.X.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9}).x


def test_the_minimum_is_that_of_a_general_minimiser():
    p = problem()
    np.testing.assert_allclose(minimum(p).weights, by_general_minimiser(p), atol=1e-7)


def test_the_gradient_at_the_minimum_is_rounding():
    p = problem(C=37.0)
    z = p.X @ minimum(p).weights
    gradient = p.X.T @ (p.cost * (1 / (1 + np.exp(-z)) - p.y)) + p.penalty * minimum(p).weights
    assert np.abs(gradient).max() < 1e-10


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_every_record_left_out_equals_a_fit_without_it(C):
    p = problem(C)
    slow = [p.X[t] @ minimum(p.without(t)).weights for t in range(200)]
    np.testing.assert_allclose(scores_without(p, np.arange(200)), slow, atol=1e-8)


def test_separable_data_with_more_columns_than_records():
    wide = rng.normal(size=(40, 80))
    y = (wide[:, 0] > 0).astype(int)
    p = problem(1.0, wide, y)
    slow = [p.X[t] @ minimum(p.without(t)).weights for t in range(40)]
    np.testing.assert_allclose(scores_without(p, np.arange(40)), slow, atol=1e-8)


def test_the_displaced_parameters_are_those_of_the_fit_without():
    p = problem()
    full = minimum(p)
    moved, lost = displaced(full, np.arange(10))
    assert not lost.any()
    delta = np.linalg.solve(full.lower.T, moved.T).T
    for t in range(10):
        np.testing.assert_allclose(full.weights + delta[t], minimum(p.without(t)).weights, atol=1e-8)


def test_a_record_of_no_weight_moves_nothing():
    p = problem()
    cost = p.cost.copy()
    cost[3] = 0.0
    weightless = Problem(p.X, p.y, cost, p.penalty)
    moved, _ = displaced(minimum(weightless), np.array([3]))
    np.testing.assert_array_equal(moved, 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-6, 1e-4, 1e-3, 0.02, 0.2, 3.0, 60.0])
def test_the_remainder_is_what_the_tangent_leaves(dtype, size):
    """Against extended precision, relative to the largest remainder of the block."""
    z = rng.normal(size=(50, 1)) * 3
    e = rng.uniform(-size, size, size=(50, 20))
    p = 1 / (1 + np.exp(-z))
    found = remainder(p.astype(dtype), (p * (1 - p)).astype(dtype), e.astype(dtype))
    zl, el = z.astype(np.longdouble), e.astype(dtype).astype(np.longdouble)
    s = 1 / (1 + np.exp(-zl))
    # s(z+e) - s(z) = s (1-s) expm1(e) / (1 + s expm1(e)): no cancellation
    expected = s * (1 - s) * (np.expm1(el) / (1 + s * np.expm1(el)) - el)
    assert np.abs(found - expected).max() <= (3e-5 if dtype is np.float32 else 1e-9) * np.abs(expected).max()


def test_acceleration_solves_a_linear_problem_in_few_steps():
    """Anderson acceleration of depth 2 on a plane is exact after three images."""
    A = np.array([[0.5, 0.2], [-0.1, 0.7]])
    b = np.array([1.0, 2.0])
    solution = np.linalg.solve(np.eye(2) - A, b)
    x, before = np.zeros((1, 2)), []
    for _ in range(4):
        fx = x @ A.T + b
        after = accelerated(before, x, fx)
        before = [*before[-1:], (x, fx)]
        x = after
    np.testing.assert_allclose(x[0], solution, atol=1e-9)


def job(estimator, records):
    which = np.arange(len(records))
    queries = EachModel(which[:, None])
    return Job(SklearnLearner(estimator), records, leave_one_out(len(records)), queries, 0, Randomness.COMMON)


@pytest.mark.parametrize("classes", [None, ["sick", "healthy"], ["healthy", "sick"]])
@pytest.mark.parametrize("weights", [None, {"sick": 3.0}])
def test_classes_in_any_order_and_with_weights(classes, weights):
    names = np.where(Y == 1, "sick", "healthy")
    records = Records.from_arrays(X, names, classes=classes)[:60]
    learner = SklearnLearner(LogisticRegression(class_weight=weights, **TIGHT))
    queries = EachModel(np.arange(60)[:, None])
    fast = train_many(learner, records, leave_one_out(60), queries, seed=0)
    slow = train_many(learner, records, leave_one_out(60), queries, seed=0, engines=())
    assert (fast.engine, slow.engine) == ("logistic-regression", "refit")
    np.testing.assert_allclose(fast.answers, slow.answers, atol=1e-8)


def test_pdtp_is_right_whatever_the_users_tolerance():
    """With scikit-learn's default tolerance the loop is far off; the engine solves to the end, for both models."""
    records = Records.from_arrays(X, Y)
    found = pdtp(SklearnLearner(LogisticRegression()), records, seed=0)
    whole = LogisticRegression(**TIGHT).fit(X, Y).predict_log_proba(X)
    for t in range(0, 200, 20):
        left = np.delete(np.arange(200), t)
        without = LogisticRegression(**TIGHT).fit(X[left], Y[left]).predict_log_proba(X[[t]])
        assert found.values[t] == pytest.approx(np.abs(whole[t] - without[0]).max(), abs=1e-8)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("C", [1e6, 1e12, 1e18])
def test_hardly_any_penalty_on_classes_that_can_be_told_apart(C):
    """Where the curvature vanishes to rounding the models are trained instead; nothing breaks or is unknown."""
    x = np.r_[np.linspace(-2, -1, 20), np.linspace(1, 2, 20)][:, None]
    records = Records.from_arrays(x, (x[:, 0] > 0).astype(int))
    learner = SklearnLearner(LogisticRegression(C=C, max_iter=500))
    found = pdtp(learner, records, seed=0)
    assert not np.isnan(found.values).any()
    bound = dtp_upper_bound(learner, records)
    assert bound is None or (found.values <= bound.values + 1e-6).all()


def test_a_class_without_its_last_member_cannot_be_trained():
    y = np.zeros(20, dtype=int)
    y[4] = 1
    found = pdtp(SklearnLearner(LogisticRegression()), Records.from_arrays(X[:20], y), seed=0)
    assert np.flatnonzero(np.isnan(found.values)).tolist() == [4]
    assert list(found.failures) == [4]


@pytest.mark.parametrize(
    ("estimator", "labels", "reason"),
    [
        (LogisticRegression(), np.arange(200) % 3, "two classes only"),
        (LogisticRegression(l1_ratio=1, solver="saga"), Y, "squared penalty only"),
        (LogisticRegression(C=np.inf), Y, "squared penalty only"),
        (LogisticRegression(solver="liblinear"), Y, "penalises the intercept"),
        (LogisticRegression(class_weight="balanced"), Y, "depends on the counts"),
    ],
)
def test_what_it_cannot_do_it_refuses(estimator, labels, reason):
    assert reason in LogisticRegressionNewton().refuses(job(estimator, Records.from_arrays(X, labels)))


@pytest.mark.skipif("LEAKGAUGE_DATA" not in os.environ, reason="needs the data set adult: set LEAKGAUGE_DATA")
def test_a_thousand_people_of_adult():
    """60 of 1,000 records left out against refits that have converged, to 1e-8."""
    from leakgauge.records import datasets
    from leakgauge.training.recipes import recipe

    records = datasets.load("adult").records.as_codes()[np.random.default_rng(0).choice(48_842, 1000, replace=False)]
    learner = recipe("logistic-regression", records)
    which = np.random.default_rng(1).choice(1000, 60, replace=False)
    tight = SklearnLearner(clone(learner.estimator).set_params(logisticregression__tol=1e-12))
    queries, subsets = EachModel(which[:, None]), leave_one_out(1000, which)
    fast = train_many(learner, records, subsets, queries, seed=0)
    slow = train_many(tight, records, subsets, queries, seed=0, engines=())
    assert (fast.engine, slow.engine) == ("logistic-regression", "refit")
    np.testing.assert_allclose(fast.answers, slow.answers, atol=1e-8)
