"""Multinomial logistic regression without each record: blocks of L-BFGS against plain minimisation and scikit-learn."""

import os
from functools import cache

import numpy as np
import pytest
from scipy.linalg import block_diag, eigh, null_space
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PowerTransformer

from leakgauge.models import answers
from leakgauge.records import Records
from leakgauge.training import (
    EachModel,
    Execution,
    Job,
    Randomness,
    SklearnLearner,
    everything,
    leave_one_out,
    train_many,
)
from leakgauge.training.engines.base import PreparedJob
from leakgauge.training.engines.logistic import multinomial as engine_file
from leakgauge.training.engines.logistic.multinomial import (
    MultinomialLogisticRegression,
    SoftmaxProblem,
    _Memory,
    _to_probabilities,
    displaced,
    minimum,
)
from leakgauge.training.engines.refit import Refit
from leakgauge.training.engines.stateless import given

TIGHT = {"tol": 1e-12, "solver": "newton-cholesky", "max_iter": 1000}
ENGINE = MultinomialLogisticRegression()


# ---------------------------------------------------------------- one fit


def blobs(n, d, k, distance=1.0, seed=0):
    """Gaussian classes around centres; each class has at least two members."""
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(k), np.arange(k), rng.integers(0, k, n - 2 * k)]
    return rng.normal(size=(k, d))[y] * distance + rng.normal(size=(n, d)), y


def problem(C=1.0, n=60, d=4, k=4, **keywords):
    X, y = blobs(n, d, k, **keywords)
    return SoftmaxProblem(np.c_[X, np.ones(n)], y, np.full(n, C), np.r_[np.ones(d), 0.0], k)


def without(p, t):
    left = np.arange(len(p.y)) != t
    return SoftmaxProblem(p.X[left], p.y[left], p.cost[left], p.penalty, p.n_classes)


def hessian(p, W):
    """The whole matrix of second derivatives ``[classes * d, classes * d]``, from its definition."""
    probabilities = softmax(W @ p.X.T, axis=0).T
    H = np.kron(np.eye(p.n_classes), np.diag(p.penalty))
    for x, q, c in zip(p.X, probabilities, p.cost, strict=True):
        H += c * np.kron(np.diag(q) - np.outer(q, q), np.outer(x, x))
    return H


def test_the_minimum_is_that_of_a_general_minimiser():
    p = problem()

    def objective(w):
        W = w.reshape(4, 5)
        z = W @ p.X.T
        value = -log_softmax(z, axis=0)[p.y, np.arange(60)].sum() + 0.5 * (p.penalty * W * W).sum()
        return value, ((softmax(z, axis=0) - (np.arange(4)[:, None] == p.y)) @ p.X + p.penalty * W).ravel()

    found = minimize(objective, np.zeros(20), jac=True, method="BFGS", options={"gtol": 1e-9}).x.reshape(4, 5)
    np.testing.assert_allclose(minimum(p).weights, found - found.mean(axis=0), atol=1e-7)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_the_gradient_at_the_minimum_is_rounding(C):
    p = problem(C)
    W = minimum(p).weights
    gradient = (C * (softmax(W @ p.X.T, axis=0) - (np.arange(4)[:, None] == p.y))) @ p.X + p.penalty * W
    assert np.abs(gradient).max() <= 1e-12 * (C * np.abs(p.X).sum(axis=0).max())
    np.testing.assert_allclose(W.sum(axis=0), 0.0, atol=1e-12)


def test_the_second_derivatives_and_their_lowest_eigenvalue():
    """Against the whole matrix, on the matrices that sum to zero over the classes."""
    p = problem()
    fit = minimum(p)
    H = hessian(p, fit.weights)
    V = np.random.default_rng(0).normal(size=(4, 5))
    np.testing.assert_allclose(p.curve(fit.p, V).ravel(), H @ V.ravel(), rtol=1e-10)
    M = block_diag(*(H[5 * c : 5 * c + 5, 5 * c : 5 * c + 5] for c in range(4)))
    Z = np.kron(null_space(np.ones((1, 4))), np.eye(5))
    lowest = eigh(Z.T @ H @ Z, np.linalg.inv(Z.T @ np.linalg.inv(M) @ Z), eigvals_only=True)[0]
    assert fit.curvature.least == pytest.approx(lowest, rel=1e-6)


def test_no_score_is_farther_off_than_the_gradient_says():
    """A quarter of a step before the minimum, on rows far and near: the bound holds, and is not idle."""
    p = problem(C=0.1)
    fit = minimum(p)
    rng = np.random.default_rng(1)
    for _ in range(20):
        W = fit.weights + 1e-4 * (lambda e: e - e.mean(axis=0))(rng.normal(size=(4, 5)))
        rows = np.c_[rng.normal(size=(30, 4)) * 3, np.ones(30)]
        off = np.abs(log_softmax(rows @ W.T, axis=1) - log_softmax(rows @ fit.weights.T, axis=1)).max()
        norm = fit.curvature.norm(p.at(W)[1])
        bound = np.sqrt(2 * fit.curvature.reach(rows).max()) * norm / fit.curvature.least
        assert off <= bound <= 100 * off


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-6, 1e-3, 0.5, 30.0])
def test_changes_of_probabilities_lose_no_digits(dtype, size):
    """Against extended precision; relative to the largest of each record, however near 1 a probability is."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(5, 200)) * 8
    p = softmax(z, axis=0).astype(dtype)
    e = rng.uniform(-size, size, size=(3, 5, 200)).astype(dtype)
    exact = p.astype(np.longdouble)
    exact /= exact.sum(axis=0)
    u = exact * np.expm1(e.astype(np.longdouble) - e[:, p.argmax(axis=0), np.arange(200)][:, None])
    expected = (u - exact * u.sum(axis=1, keepdims=True)) / (1 + u.sum(axis=1, keepdims=True))
    _to_probabilities(e, p[None], p.argmax(axis=0))
    off = np.abs(e - expected).max(axis=1) / np.abs(expected).max(axis=1)
    assert off.max() <= 1e-4 if dtype is np.float32 else 1e-12


def test_remembered_steps_act_like_the_two_loops():
    """The compact form against the recursion of Nocedal (1980), for two models, before and after the memory is full."""
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(2, 8, 8))
    H, start = roots @ roots.transpose(0, 2, 1) + np.eye(8), np.diag(rng.uniform(0.5, 2, 8))
    memory, pairs = _Memory.of_nothing(2, 8), []
    for _ in range(8):
        s = rng.normal(size=(2, 8))
        y = np.einsum("mij,mj->mi", H, s)
        memory.add(s.astype(np.float32), y.astype(np.float32), (y @ start).astype(np.float32))
        pairs = [*pairs, (s, y)][-engine_file.N_LBFGS_PAIRS :]
        g = rng.normal(size=(2, 8))
        found = memory.step(g.astype(np.float32), (g @ start).astype(np.float32))
        for model in range(2):
            q, alphas = g[model].copy(), []
            for s, y in reversed(pairs):
                alphas.append(s[model] @ q / (s[model] @ y[model]))
                q -= alphas[-1] * y[model]
            q = start @ q
            for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
                q += s[model] * (alpha - y[model] @ q / (s[model] @ y[model]))
            np.testing.assert_allclose(found[model], -q, atol=1e-3 * np.abs(q).max())


# ---------------------------------------------------------------- without each record


def moves_of(p, removed):
    """The moves when no score of any record may be off by more than 1e-9."""
    removed, fit = np.asarray(removed), minimum(p)
    moves = np.full((len(removed), *fit.weights.shape), np.nan)
    goals = np.full(len(removed), 1e-9 * fit.curvature.least / np.sqrt(2 * fit.reach.max()))
    for part, moved, lost in displaced(fit, removed, np.ones((len(removed), p.n_classes)), goals):
        assert not lost.any()
        moves[part] = moved
    return fit, moves


def test_a_record_of_no_cost_moves_nothing():
    p = problem()
    p.cost[[3, 40]] = 0.0
    _, moves = moves_of(p, [3, 40])
    np.testing.assert_array_equal(moves, 0.0)


@pytest.mark.parametrize(
    ("C", "k"),
    [
        pytest.param(C, k, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, C in enumerate([1e-3, 1.0, 100.0])
        for j, k in enumerate([3, 10])
    ],
)
def test_every_record_left_out_equals_a_fit_without_it(C, k):
    p = problem(C, k=k)
    fit, moves = moves_of(p, np.arange(60))
    for t in range(60):
        expected = minimum(without(p, t)).weights - fit.weights
        np.testing.assert_allclose(moves[t] @ p.X.T, expected @ p.X.T, atol=2e-9)


def test_results_do_not_depend_on_the_block(monkeypatch):
    p = problem()
    _, together = moves_of(p, np.arange(60))
    monkeypatch.setattr(engine_file, "BLOCK_COLUMNS", 28)
    monkeypatch.setattr(engine_file, "TILE_NUMBERS", 500)
    _, apart = moves_of(p, np.arange(60)[::-1])
    np.testing.assert_allclose(apart[::-1], together, atol=2e-9)


# ---------------------------------------------------------------- against scikit-learn


def job_of(estimator, records, which=None, queries=None):
    which = np.arange(len(records)) if which is None else np.asarray(which)
    queries = EachModel(which[:, None]) if queries is None else queries
    return Job(SklearnLearner(estimator), records, leave_one_out(len(records), which), queries, 0, Randomness.COMMON)


def check(estimator, records, which=None, engine=ENGINE, queries=None):
    """The engine does the job, and equals scikit-learn with a converged solver."""
    tight = estimator.set_params(**TIGHT)
    job = job_of(tight, records, which, queries)
    assert isinstance(engine.prepare(job), PreparedJob)
    found, expected = engine.prepare(job).all().answers, Refit().prepare(job).all().answers
    np.testing.assert_allclose(found, expected, atol=engine.tolerance, rtol=engine.tolerance)
    return found


@cache
def data_set(name):
    return globals()[f"_{name}"]()


def _records(X, y, classes=None):
    return Records.from_arrays(X, np.array([f"c{code:02d}" for code in y]), classes=classes)


def _three():
    return _records(*blobs(80, 4, 3))


def _ten():
    return _records(*blobs(150, 6, 10))


def _separable():
    return _records(*blobs(60, 5, 3, distance=6.0))


def _collinear():
    """A column twice, a sum, a constant that is no sum of powers of 2, and an empty column."""
    X, y = blobs(60, 3, 3)
    return _records(np.c_[X, X[:, 0], X.sum(axis=1), np.full(60, 0.1), np.zeros(60)], y)


def _copies():
    """Each record three times, once with another label."""
    X, y = blobs(25, 3, 4)
    return _records(np.repeat(X, 3, axis=0), np.r_[y, y, (y + 1) % 4].reshape(3, 25).T.ravel())


def _wide():
    return _records(*blobs(40, 90, 4, distance=0.5))


def _scales():
    """Features from thousandths to hundreds, one of them far from 0."""
    X, y = blobs(70, 6, 4)
    return _records(X * 10.0 ** np.arange(-3, 3) + 1e3 * (np.arange(6) == 5), y)


def _noise():
    rng = np.random.default_rng(2)
    return _records(rng.normal(size=(60, 20)), rng.integers(0, 5, 60))


def _counts():
    rng = np.random.default_rng(4)
    return _records(rng.poisson(0.5, (80, 8)) * 1.0, rng.integers(0, 3, 80))


def _odd():
    """Labels in no order, classes of none, one and two members."""
    X, _ = blobs(50, 3, 3)
    y = np.array(["lonely", "pair", "pair", *np.random.default_rng(3).choice(["b", "a", "d"], 47)])
    return Records.from_arrays(X, y, classes=["pair", "d", "nobody", "a", "lonely", "b"])


CASES = [
    ("three", {}, None),
    ("three", {"class_weight": "balanced"}, None),
    ("three", {"class_weight": {"c00": 3.0, "c01": 0.5}}, None),
    ("ten", {}, 40),
    ("ten", {"class_weight": "balanced", "C": 30.0, "fit_intercept": False}, 40),
    ("separable", {}, None),
    ("separable", {"C": 1e3, "class_weight": "balanced"}, None),
    ("collinear", {"C": 10.0}, None),
    ("collinear", {"C": 0.01, "fit_intercept": False}, None),
    ("copies", {}, 30),
    ("wide", {"C": 0.1}, None),
    ("wide", {"C": 100.0, "fit_intercept": False}, 15),
    ("scales", {}, 40),
    ("noise", {"C": 1e3}, 20),
    ("counts", {"class_weight": "balanced", "fit_intercept": False}, None),
    ("odd", {}, None),
    ("odd", {"class_weight": "balanced"}, None),
]


@pytest.mark.parametrize(
    ("data", "parameters", "most"),
    [
        pytest.param(data, parameters, most, marks=() if i % 2 == 0 else pytest.mark.slow)
        for i, (data, parameters, most) in enumerate(CASES)
    ],
    ids=lambda value: str(value),
)
def test_answers_are_those_of_trained_models(data, parameters, most):
    records = data_set(data)
    check(LogisticRegression(**parameters), records, None if most is None else np.arange(most))


def exact_without(records, t, C):
    """Log-probabilities of record t without it, by Newton's method with gradients in extended precision."""
    X = np.c_[records.features, np.ones(len(records))].astype(np.longdouble)
    kept = np.arange(len(records)) != t
    A, y, k = X[kept], records.labels[kept], len(records.schema.classes)
    penalty = np.r_[np.ones(X.shape[1] - 1), 0.0]
    W = minimum(SoftmaxProblem(A.astype(float), y, np.full(len(y), C), penalty, k)).weights.astype(np.longdouble)
    for _ in range(5):
        p = np.exp(A @ W.T - (A @ W.T).max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        missed = p - (y[:, None] == np.arange(k))
        gradient = C * missed.T @ A + penalty * W
        H = np.kron(np.eye(k), np.diag(penalty))
        for x, q in zip(A.astype(float), p.astype(float), strict=True):
            H += C * np.kron(np.diag(q) - np.outer(q, q), np.outer(x, x))
        W = W - (np.linalg.pinv(H, rcond=1e-13) @ gradient.ravel().astype(float)).reshape(W.shape)
    return log_softmax((X[t] @ W.T).astype(float))


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="this machine has no extended precision")
def test_classes_far_apart_against_extended_precision():
    """Probabilities within 1e-8 of 1 and hardly any penalty: scikit-learn's own solvers stop 1e-5 away from this."""
    records = data_set("separable")
    found = ENGINE.prepare(job_of(LogisticRegression(C=1e3), records, [1, 2, 6])).all().answers[:, 0]
    np.testing.assert_allclose(found, [exact_without(records, t, 1e3) for t in (1, 2, 6)], atol=1e-6, rtol=0)


@pytest.mark.parametrize("close", [1e-6, pytest.param(1e-9, marks=pytest.mark.slow)])
def test_it_is_as_close_as_it_was_asked_to_be(close):
    class Asked(MultinomialLogisticRegression):
        tolerance = close

    check(LogisticRegression(), data_set("three"), engine=Asked())


@pytest.mark.parametrize(
    ("weights", "parameters"),
    [
        pytest.param(weights, parameters, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, weights in enumerate([None, "balanced"])
        for j, parameters in enumerate([{}, {"fit_intercept": False}])
    ],
)
def test_without_the_last_member_two_classes_are_left(weights, parameters):
    """scikit-learn then fits one vector with a penalty of its own."""
    X, _ = blobs(40, 3, 3)
    records = _records(X, np.r_[2, np.arange(39) % 2])
    found = check(LogisticRegression(class_weight=weights, **parameters), records)
    assert np.flatnonzero(np.isneginf(found[:, 0, 2])).tolist() == [0]


def test_weights_of_a_class_that_is_gone_are_no_model():
    """scikit-learn refuses them: the weight of c02 names no class, and c01 has none."""
    X, _ = blobs(40, 3, 3)
    records = _records(X, np.r_[2, np.arange(39) % 2])
    job = job_of(LogisticRegression(class_weight={"c00": 2.0, "c02": 3.0}), records)
    assert np.flatnonzero(np.isnan(ENGINE.prepare(job).all().answers).any(axis=(1, 2))).tolist() == [0]


def test_features_that_say_nothing_leave_the_shares_of_the_classes():
    sizes = np.array([5, 10, 25])
    records = _records(np.ones((40, 2)), np.repeat(np.arange(3), sizes))
    found = ENGINE.prepare(job_of(LogisticRegression(), records)).all().answers[:, 0]
    for t, own in enumerate(records.labels):
        np.testing.assert_allclose(found[t], np.log((sizes - (np.arange(3) == own)) / 39), atol=1e-6)


def test_balanced_classes_and_features_that_say_nothing_hide_every_record():
    records = _records(np.ones((40, 2)), np.repeat(np.arange(3), [5, 10, 25]))
    job = job_of(LogisticRegression(class_weight="balanced"), records)
    np.testing.assert_allclose(ENGINE.prepare(job).all().answers, -np.log(3), atol=1e-6)
    moves = ENGINE.prepare(job).displacements()
    np.testing.assert_allclose(moves.sum(axis=2), 0.0, atol=1e-6)


def test_any_query():
    X, y = blobs(50, 4, 3)
    records = _records(X, y)
    which = np.array([7, 3, 30])
    check(LogisticRegression(), records, which, queries=X[:20] * 2)
    check(LogisticRegression(), records, which, queries=EachModel(np.array([[1, 7], [0, 0], [49, 30]])))


def test_models_of_all_records():
    records = data_set("odd")
    learner, queries = SklearnLearner(LogisticRegression(**TIGHT)), records.features[:7]
    job = Job(learner, records, everything(len(records), 2), queries, 0, Randomness.COMMON)
    expected = answers(learner.fit(records, seed=0).model, queries, 6)
    np.testing.assert_allclose(ENGINE.prepare(job).all().answers, [expected, expected], atol=1e-7)


def test_the_answers_of_a_part_are_rows_of_the_whole():
    records = data_set("ten")
    job = job_of(LogisticRegression(), records)
    part = np.array([140, 3, 77])
    np.testing.assert_allclose(
        ENGINE.prepare(job.part(part)).all().answers, ENGINE.prepare(job).all().answers[part], atol=1e-6
    )


@pytest.mark.long
def test_chunks_in_one_or_two_processes_give_the_same_bits(monkeypatch):
    records = data_set("three")
    monkeypatch.setattr(MultinomialLogisticRegression, "chunk", 40)
    learner, queries = SklearnLearner(LogisticRegression()), EachModel(np.arange(80)[:, None])
    one, two = (
        train_many(
            learner,
            records,
            leave_one_out(80),
            queries,
            seed=0,
            engines=(ENGINE,),
            execution=Execution(workers=workers),
        )
        for workers in (1, 2)
    )
    assert one.engine == ENGINE.name
    np.testing.assert_array_equal(one.answers, two.answers)


@pytest.mark.long
def test_sparse_features_are_those_of_dense_ones():
    rng = np.random.default_rng(9)
    X = rng.choice(["red", "green", "blue"], (60, 2)).astype(object)
    records = Records.from_arrays(X, rng.choice(["x", "y", "z"], 60))
    colours = [["blue", "green", "red"]] * 2
    for sparse in (True, False):
        encoder = OneHotEncoder(categories=colours, sparse_output=sparse)
        learner = make_pipeline(encoder, LogisticRegression(**TIGHT))
        job = job_of(learner, records)
        assert isinstance(ENGINE.prepare(job), PreparedJob)
        np.testing.assert_allclose(ENGINE.prepare(job).all().answers, Refit().prepare(job).all().answers, atol=1e-6)


def test_sparse_queries():
    rng = np.random.default_rng(9)
    colours = [["blue", "green", "red"]] * 2
    X = rng.choice(["red", "green", "blue"], (60, 2)).astype(object)
    records = Records.from_arrays(X, rng.choice(["x", "y", "z"], 60))
    job = job_of(make_pipeline(OneHotEncoder(categories=colours), LogisticRegression(**TIGHT)), records, [1, 2])
    job = Job(job.learner, records, job.subsets, records.features[5:10], 0, Randomness.COMMON)
    assert isinstance(given(job, (LogisticRegression,), sparse=True, whole=True, any_query=True).queries, csr_matrix)
    np.testing.assert_allclose(ENGINE.prepare(job).all().answers, Refit().prepare(job).all().answers, atol=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("data", ["three", "wide", "odd"])
def test_displacements_are_those_of_trained_coefficients(data, intercept):
    records = data_set(data)
    estimator = LogisticRegression(fit_intercept=intercept, **TIGHT)
    which = np.arange(6)
    found = ENGINE.prepare(job_of(estimator, records, which)).displacements()

    def coefficients(kept):
        fitted = SklearnLearner(estimator).fit(kept, seed=0).model.estimator
        wide = np.zeros((len(records.schema.classes), records.schema.n_features + intercept))
        own = [records.schema.classes.index(value) for value in fitted.classes_]
        wide[own] = np.c_[fitted.coef_, fitted.intercept_] if intercept else fitted.coef_
        return wide

    for t in which:
        if (records.labels == records.labels[t]).sum() == 1:
            assert np.isnan(found[t]).all()
            continue
        expected = coefficients(records[np.arange(len(records)) != t]) - coefficients(records)
        np.testing.assert_allclose(found[t], expected, atol=1e-6)


# ---------------------------------------------------------------- where it gives up, and what it refuses


def test_what_does_not_converge_is_solved_on_its_own(monkeypatch):
    monkeypatch.setattr(engine_file, "MAX_LBFGS_STEPS", 2)
    check(LogisticRegression(), data_set("three"), np.arange(20))


def test_what_cannot_be_solved_is_trained(monkeypatch):
    monkeypatch.setattr(engine_file, "MOST_NEWTON_STEPS", 2)
    job = job_of(LogisticRegression(), data_set("three"), [1, 2])
    np.testing.assert_array_equal(ENGINE.prepare(job).all().answers, Refit().prepare(job).all().answers)
    with pytest.raises(np.linalg.LinAlgError, match="did not converge"):
        ENGINE.prepare(job).displacements()


@pytest.mark.parametrize("C", [1e6, 1e12])
def test_hardly_any_penalty_on_classes_that_can_be_told_apart(C):
    """Where the curvature vanishes to rounding the models are trained instead; nothing breaks or is unknown."""
    x = np.repeat([-3.0, 0.0, 3.0], 6) + np.tile(np.linspace(-0.5, 0.5, 6), 3)
    records = _records(x[:, None], np.repeat(np.arange(3), 6))
    found = ENGINE.prepare(job_of(LogisticRegression(C=C, max_iter=200), records)).all().answers
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        (LogisticRegression(l1_ratio=1, solver="saga"), "squared penalty only"),
        (LogisticRegression(C=np.inf), "squared penalty only"),
        (LogisticRegression(solver="liblinear"), "does not fit all classes together"),
        (LogisticRegression(dual=True), "does not fit all classes together"),
        (LogisticRegression(class_weight={"c00": 0.0}), "weights above 0 only"),
        (LogisticRegression(class_weight={"c00": 1.0, "c99": 1.0}), "cannot use these weights"),
        (make_pipeline(PowerTransformer(), LogisticRegression()), "PowerTransformer is fitted on the data"),
    ],
)
def test_what_it_cannot_do_it_refuses(estimator, reason):
    assert reason in str(ENGINE.prepare(job_of(estimator, data_set("three"))))


def test_two_classes_are_refused():
    X, y = blobs(30, 3, 3)
    estimator = make_pipeline(FunctionTransformer(np.tanh), LogisticRegression())
    assert "fewer than three classes" in str(
        ENGINE.prepare(job_of(estimator, _records(X, y % 2, ["c00", "c01", "c02"])))
    )


def test_more_than_fits_is_refused(monkeypatch):
    monkeypatch.setattr(engine_file, "MAX_MATRIX_NUMBERS", 300)
    reason = str(ENGINE.prepare(job_of(LogisticRegression(), data_set("three"))))
    assert reason == "80 records with 4 columns and 3 classes take more memory than is allowed for"


@pytest.mark.skipif("LEAKGAUGE_DATA" not in os.environ, reason="needs the data set location30: set LEAKGAUGE_DATA")
def test_four_people_of_location30():
    """Four of 300 records, 30 classes, 446 columns, left out, against refits that have converged."""
    from leakgauge.records import datasets

    whole = datasets.load("location30").records
    records = whole[np.random.default_rng(0).choice(len(whole), 300, replace=False)]
    estimator = LogisticRegression(tol=1e-10, solver="newton-cg", max_iter=10_000)
    job = job_of(estimator, records, [0, 1, 2, 3])
    assert isinstance(ENGINE.prepare(job), PreparedJob)
    np.testing.assert_allclose(ENGINE.prepare(job).all().answers, Refit().prepare(job).all().answers, atol=1e-6)


@pytest.mark.long
@pytest.mark.skipif("LEAKGAUGE_DATA" not in os.environ, reason="needs the data set location30: set LEAKGAUGE_DATA")
def test_newtons_steps_do_not_go_back_and_forth():
    """The first 1,200 people of location30: whole steps from the start would swing between two values for ever."""
    from leakgauge.records import datasets
    from leakgauge.training.engines.logistic.multinomial import solve

    records = datasets.load("location30").records.as_codes()[np.arange(1200)]
    case = ENGINE.prepare(job_of(LogisticRegression(), records, [0])).case
    assert solve(case, np.arange(1200), ENGINE.tolerance) is not None


# ---------------------------------------------------------------- hardly any penalty


def test_columns_that_depend_on_each_other_are_told_apart_in_single_precision():
    """Two equal columns far from 0, no intercept and hardly any penalty: inverses of 33^2 and of 1e-7 at once."""
    column = 33.9 + np.random.default_rng(0).uniform(0, 0.04, 20)
    labels = [1, 2, 0, 2, 0, 2, 1, 2, 1, 0, 1, 2, 0, 2, 2, 1, 0, 2, 1, 0]
    records = Records.from_arrays(np.c_[column, np.arange(20) == 18, column], labels)
    for C in (1e4, 1e5, 1e6):
        check(LogisticRegression(C=C, fit_intercept=False), records)


def test_a_record_that_held_two_classes_together():
    """Without it classes come apart, and probabilities move by many factors of e: their own curvature counts."""
    X = np.array(
        [
            [-1.34972892, 1.12848467],
            [2.12120694, 11.68625821],
            [-1.33914047, 8.74126147],
            [-4.26510251, 0.24773356],
            [0.42186411, 9.28760999],
            [2.28869361, 6.21793125],
            [0.83089767, 4.01382748],
            [-0.80496568, 1.47361585],
        ]
    )
    records = Records.from_arrays(np.c_[X, X[:, 1] - X[:, 0]], [0, 2, 2, 1, 1, 2, 0, 2])
    check(LogisticRegression(C=1e4), records)


def test_no_class_may_be_farther_off_than_the_goal_where_a_record_is_missing():
    """What is left of each block of M without the record makes its norm larger; the smallest counts."""
    p = problem(100.0, k=3)
    fit, removed = minimum(p), np.arange(20)
    single, penalties = fit.single, np.full((20, p.X.shape[1]), p.penalty)
    block = engine_file._block(fit, removed, np.ones((20, 3)), np.full(20, 1e-6), penalties)
    x, weight = single.X[removed], p.weights(fit.p).T[removed]
    left = 1 - weight * np.einsum("md,kde,me->mk", x, single.inverse, x)
    assert (left.max(axis=1) > 1.01 * left.min(axis=1)).any()
    np.testing.assert_allclose(block.goal, 1e-6 * np.sqrt(left.min(axis=1)), rtol=1e-4)
