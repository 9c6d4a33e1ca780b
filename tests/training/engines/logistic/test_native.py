"""Logistic regression by compiled loops: what they hand back is checked against numpy."""

import ctypes

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from leakgauge.records import Records
from leakgauge.training import DenseSubsets, EachModel, Job, Randomness, SklearnLearner
from leakgauge.training.engines.base import PreparedJob
from leakgauge.training.engines.logistic import binary_subsets as logistic_subsets
from leakgauge.training.engines.logistic import native as logistic_native
from leakgauge.training.engines.logistic.binary_subsets import LogisticRegressionSubsets
from leakgauge.training.engines.logistic.native import InverseHessian, PoolProblem, SparseRows
from leakgauge.training.subsets import random_subsets

ENGINE = LogisticRegressionSubsets()

compiled = pytest.mark.skipif(not logistic_native.available(), reason="the C++ loops are not compiled")


def mixed(n, seed, sizes=(4, 9, 2, 6)):
    """One-hot attributes with rare categories, a column of zeros and ones, one of zeros, numbers, and an intercept."""
    rng = np.random.default_rng(seed)
    codes = [np.minimum(rng.geometric(0.5, n) - 1, size - 1) for size in sizes]
    one_hot = [np.eye(size)[code] for size, code in zip(sizes, codes, strict=True)]
    numbers = rng.normal(size=(n, 2)) * (rng.random((n, 2)) < 0.3)
    flag = (rng.random((n, 1)) < 0.1).astype(float)
    return np.concatenate([flag, *one_hot[:2], numbers, np.zeros((n, 1)), *one_hot[2:], np.ones((n, 1))], axis=1)


def matrix(entries):
    """What they are the entries of, row by row."""
    X = np.tile(entries.shift, (len(entries.starts) - 1, 1))
    for i, row in enumerate(X):
        for column in entries.columns[entries.starts[i] : entries.starts[i + 1]]:
            row[column] = 1.0
            if entries.instead[column] >= 0:
                row[entries.instead[column]] -= 1.0
        own = slice(entries.value_starts[i], entries.value_starts[i + 1])
        row[entries.value_columns[own]] = entries.values[own]
    return X


def problem_of(X, y, curvature=None, *, enough=1e-9, intercept=True):
    penalty, centre = np.ones(X.shape[1]), np.zeros(X.shape[1])
    if intercept:
        penalty[-1] = 0.0
        centre[:-1] = X[:, :-1].mean(axis=0)
    if curvature is None:
        curvature = InverseHessian.of(X.T @ X / 4 + np.diag(penalty))
    radius = float(np.linalg.norm((X - centre) * penalty, axis=1).max())
    return PoolProblem(SparseRows.of(csr_matrix(X)), y, penalty, centre, curvature, radius, radius, enough)


def slopes(X, y, problem, costs, w):
    """The gradient, how much records bend it, and how much they pull."""
    p, cost = expit(X @ w), np.where(y, costs[1], costs[0])
    return X.T @ (cost * (p - y)) + problem.penalty * w, cost @ (p * (1 - p)), cost @ np.abs(p - y)


# ---------------------------------------------------------------- the entries


def test_nothing_stands_for_nothing():
    entries = SparseRows.of(csr_matrix((3, 4)))
    assert not entries.shift.any()
    assert len(entries.columns) == len(entries.values) == 0
    np.testing.assert_array_equal(matrix(entries), np.zeros((3, 4)))


@pytest.mark.parametrize("seed", range(5))
def test_entries_give_the_matrix_back(seed):
    X = mixed(80, seed)
    np.testing.assert_array_equal(matrix(SparseRows.of(csr_matrix(X))), X)


def test_the_commonest_categories_are_left_out():
    X = mixed(500, 7)
    entries = SparseRows.of(csr_matrix(X))
    attributes = [slice(1, 5), slice(5, 14), slice(17, 19), slice(19, 25), slice(25, 26)]
    commonest = [part.start + int(np.argmax(X[:, part].sum(axis=0))) for part in attributes]
    assert np.flatnonzero(entries.shift).tolist() == commonest
    assert (entries.instead[[0, 14, 15]] == -1).all()
    for part, column in zip(attributes, commonest, strict=True):
        others = np.delete(np.arange(part.start, part.stop), column - part.start)
        assert (entries.instead[others] == column).all()
    rest = X[:, 0].sum() + sum((1 - X[:, column]).sum() for column in commonest)
    assert len(entries.columns) == rest


def test_columns_with_two_ones_in_a_row_are_no_attribute():
    """Here the first column stands alone, the next two are one attribute, and the last two are none."""
    X = np.array([[1, 1, 0, 1, 1], [0, 0, 1, 0, 0], [1, 0, 1, 0, 1]], dtype=float)
    entries = SparseRows.of(csr_matrix(X))
    assert entries.shift.tolist() == [0, 0, 1, 0, 0]
    assert entries.instead.tolist() == [-1, 2, -1, -1, -1]
    np.testing.assert_array_equal(matrix(entries), X)


def test_too_many_columns_are_refused():
    with pytest.raises(ValueError, match="65,536 columns at most, got 65,537"):
        SparseRows.of(csr_matrix((1, 65537)))


# ---------------------------------------------------------------- the curvature


def test_the_inverse_of_a_hessian_far_from_round():
    """What is left out has eigenvalues within a factor 1.5 of 1, so that the product has them as well."""
    X = 10.0 ** np.array([0, -2, 3, 1, 0, 0, -1]) * np.random.default_rng(0).normal(size=(40, 7))
    hessian = X.T @ X + np.eye(7)
    curvature = InverseHessian.of(hessian)
    scale = curvature.scale.astype(float)
    basis = curvature.basis[:, :7].astype(float)
    inverse = scale[:, None] * (np.eye(7) + basis.T * curvature.gain @ basis) * scale
    values = np.linalg.eigvals(inverse @ hessian).real
    assert 1 / 1.51 < values.min() <= values.max() < 1.51
    assert curvature.basis.shape[0] % 4 == curvature.basis.shape[1] % 8 == 0


def test_no_more_directions_are_held_than_are_far_from_round():
    """Of eighteen columns that hang together equally, none is near 1; whole vectors hold them."""
    hessian = np.full((18, 18), 0.9) + 0.1 * np.eye(18)
    assert InverseHessian.of(hessian).basis.shape == (20, 24)


def test_a_singular_hessian_is_an_error():
    with pytest.raises(np.linalg.LinAlgError):
        InverseHessian.of(np.array([[1.0, 2.0], [2.0, 1.0]]))


# ---------------------------------------------------------------- the search


@compiled
def test_without_anything_to_tell_the_start_is_the_minimum():
    """At weights 0, two people of either class and no difference between them: no step is taken."""
    found = problem_of(np.ones((4, 1)), np.array([True, False] * 2)).minimum(np.arange(4), np.ones(2), np.zeros(1))
    assert (found.n_steps, found.weights.tolist(), found.gradient.tolist()) == (0, [0.0], [0.0])
    assert (found.bend, found.pull) == (1.0, 2.0)


@compiled
@pytest.mark.parametrize("cost", [1e-3, 1.0, 1e3])
def test_one_number_by_hand(cost):
    """One person of class 1 at x = 1: the gradient is 0 where w = c (1 - s(w))."""
    problem = problem_of(np.ones((1, 1)), np.array([True]), intercept=False)
    found = problem.minimum(np.zeros(1, dtype=np.int64), np.array([7.0, cost]), np.zeros(1))
    w = brentq(lambda w: cost * expit(-w) - w, 0, cost, xtol=1e-14)
    assert found.weights[0] == pytest.approx(w, abs=2e-9)


@compiled
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 300.0])
def test_what_is_found_is_what_numpy_says_about_it(scale):
    """Gradient, bend and pull at the weights handed back, with scores from nearly 0 to where exp would overflow."""
    X = mixed(300, 1)
    rng = np.random.default_rng(2)
    y = rng.random(300) < expit(X @ rng.normal(size=X.shape[1]))
    rows, costs = rng.permutation(300)[:150], np.array([0.7, 2.5])
    problem = problem_of(X, y, enough=np.inf)
    found = problem.minimum(rows, costs, scale * rng.normal(size=X.shape[1]))
    assert found.n_steps == 0
    gradient, bend, pull = slopes(X[rows], y[rows], problem, costs, found.weights)
    np.testing.assert_allclose(found.gradient, gradient, rtol=0, atol=1e-14 * (pull + np.abs(found.weights).max()))
    assert found.bend == pytest.approx(bend, rel=1e-11, abs=1e-300)
    assert found.pull == pytest.approx(pull, rel=1e-13)


@compiled
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("far", [0.0, 3.0, 100.0])
def test_the_minimum_from_near_and_far(intercept, far):
    """Also from where all records are taken for certain, and the slope of the logistic function is nearly 0."""
    X = mixed(400, 3)
    rng = np.random.default_rng(4)
    y = rng.random(400) < expit(X @ rng.normal(size=X.shape[1]))
    problem = problem_of(X, y, intercept=intercept)
    rows = np.sort(rng.permutation(400)[:120])
    found = problem.minimum(rows, np.ones(2), far * rng.normal(size=X.shape[1]))
    gradient = slopes(X[rows], y[rows], problem, np.ones(2), found.weights)[0]
    assert np.linalg.norm(gradient) < 1e-9
    np.testing.assert_allclose(found.gradient, gradient, rtol=0, atol=1e-12)


@compiled
@pytest.mark.parametrize("gain", [-1e3, 0.0, 1e3])
def test_a_curvature_that_is_wrong_costs_steps_or_is_found_out(gain):
    """It is far from the Hessian's inverse, or not even positive: the penalty bounds how far off the weights are."""
    X = mixed(200, 5)[:, :-1]
    y = np.random.default_rng(6).random(200) < 0.4
    right = InverseHessian.of(X.T @ X / 4 + np.eye(X.shape[1]))
    wrong = InverseHessian(right.scale, right.basis, np.full_like(right.gain, gain))
    rows, start = np.arange(200), np.zeros(X.shape[1])
    best = problem_of(X, y, right, intercept=False).minimum(rows, np.ones(2), start)
    found = problem_of(X, y, wrong, intercept=False).minimum(rows, np.ones(2), start)
    assert found.n_steps > best.n_steps
    assert np.linalg.norm(found.weights - best.weights) <= np.linalg.norm(found.gradient) + 1e-9
    assert np.linalg.norm(found.gradient) < 0.01


@compiled
def test_instruction_sets_agree_to_the_last_bit():
    X = mixed(333, 8)
    y = np.random.default_rng(9).random(333) < 0.3
    problem = problem_of(X, y)
    first, *others = (
        problem.minimum(np.arange(0, 333, 2), np.ones(2), np.zeros(X.shape[1]), level)
        for level in logistic_native.levels()
    )
    for other in others:
        np.testing.assert_array_equal(other.weights, first.weights)
        np.testing.assert_array_equal(other.gradient, first.gradient)
        assert (other.bend, other.pull, other.n_steps) == (first.bend, first.pull, first.n_steps)


@compiled
def test_the_search_is_given_up_where_rounding_ends_it():
    X = mixed(100, 10)
    found = problem_of(X, X[:, 0] > 0, enough=0.0).minimum(np.arange(100), np.ones(2), np.zeros(X.shape[1]))
    assert 0 < found.n_steps <= 300
    assert np.linalg.norm(found.gradient) < 1e-12


@compiled
def test_what_cannot_be_is_refused():
    problem = problem_of(mixed(10, 11), np.arange(10) > 4)
    start = np.zeros(26)
    for rows in ([], [10], [-1]):
        with pytest.raises(ValueError, match="rows must be some from 0 to 9"):
            problem.minimum(np.array(rows, dtype=np.int64), np.ones(2), start)
    with pytest.raises(ValueError, match="level must be one of"):
        problem.minimum(np.arange(10), np.ones(2), start, 7)


@pytest.fixture
def no_loops(monkeypatch):
    """As if they were not compiled, or for another version."""
    monkeypatch.setattr(logistic_native, "kernels", lambda: ctypes.CDLL(None))
    logistic_native._library.cache_clear()
    yield
    logistic_native._library.cache_clear()


def test_a_library_without_these_loops_is_left_aside(no_loops):
    assert not logistic_native.available()
    assert logistic_native.levels() == []
    with pytest.raises(RuntimeError, match="not compiled"):
        problem_of(np.ones((1, 1)), np.array([True])).minimum(np.arange(1), np.ones(2), np.zeros(1))


# ---------------------------------------------------------------- the engine with them


def job_of(estimator, seed, *, size, n_models=12, each=False, n=600):
    X = mixed(n, seed, sizes=(4, 9, 12, 30))[:, :-1]
    rng = np.random.default_rng(seed)
    records = Records.from_arrays(X, rng.random(n) < expit(X @ rng.normal(size=X.shape[1]) - 1))
    subsets = random_subsets(n, size, n_models, rng)
    queries = EachModel(rng.integers(0, n, (n_models, 4))) if each else X[:50]
    return Job(SklearnLearner(estimator), records, subsets, queries, 0, Randomness.COMMON)


CASES = [
    (LogisticRegression(), 60, False),
    (LogisticRegression(C=100.0), 300, True),
    (LogisticRegression(C=0.01, fit_intercept=False), 60, False),
    (LogisticRegression(class_weight="balanced"), 300, False),
]


@compiled
@pytest.mark.parametrize(("estimator", "size", "each"), CASES, ids=str)
def test_the_twin_in_numpy_gives_the_same(estimator, size, each, request):
    """Both are certain to the tolerance, so they are within twice that."""
    job = job_of(estimator, 20, size=size, each=each)
    found = ENGINE.prepare(job).all()
    request.getfixturevalue("no_loops")
    twin = ENGINE.prepare(job).all()
    assert found.n_unconverged == twin.n_unconverged == 0
    np.testing.assert_allclose(found.answers, twin.answers, rtol=0, atol=2 * ENGINE.tolerance)


@compiled
@pytest.mark.parametrize("size", [60, 300])
def test_a_part_is_that_part_of_the_whole_to_the_last_bit(size):
    """Whatever else is there, also sets of other sizes."""
    job = job_of(LogisticRegression(), 21, size=size)
    other = job_of(LogisticRegression(), 21, size=90).subsets.dense()
    both = Job(
        job.learner,
        job.records,
        DenseSubsets(np.concatenate([other, job.subsets.dense()])),
        job.queries,
        0,
        job.randomness,
    )
    pool, members = ENGINE.pool(both), both.subsets.dense()
    weights, sure = logistic_subsets.weights_on(pool, members, pool.radius)
    assert sure.all()
    np.testing.assert_array_equal(logistic_subsets.weights_on(pool, members[12:], pool.radius)[0], weights[12:])
    for model in (0, 5, 15):
        own = members[model : model + 1]
        np.testing.assert_array_equal(logistic_subsets.weights_on(pool, own, pool.radius)[0][0], weights[model])
    np.testing.assert_allclose(
        ENGINE.prepare(job).all().answers, ENGINE.prepare(both).all().answers[12:], rtol=0, atol=1e-13
    )


@compiled
def test_other_queries_about_the_same_models_are_answered_anew():
    """What was found out about one job's queries is not taken for another's, nor by a place in memory used again."""
    job = job_of(LogisticRegression(), 22, size=60)
    whole = ENGINE.prepare(job).all().answers
    for start in range(0, 50, 10):
        part = Job(job.learner, job.records, job.subsets, job.queries[start : start + 10].copy(), 0, job.randomness)
        assert isinstance(ENGINE.prepare(part), PreparedJob)
        np.testing.assert_allclose(
            ENGINE.prepare(part).all().answers, whole[:, start : start + 10], rtol=0, atol=2 * ENGINE.tolerance
        )
