"""Logistic regression without each record: the difference equation against plain minimisation."""

import os

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from leakgauge.influence import dtp_upper_bound, pdtp
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
from leakgauge.training.engines.logistic import binary as logistic
from leakgauge.training.engines.logistic.binary import (
    BinaryProblem,
    LogisticCurve,
    LogisticRegressionNewton,
    Remainders,
    SecondOrder,
    accelerated,
    beyond_order,
    displaced,
    farthest,
    minimum,
    one_step,
)
from leakgauge.training.engines.refit import Refit

TIGHT = {"tol": 1e-12, "solver": "newton-cholesky", "max_iter": 1000}
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 5))
Y = (X @ [1.0, -1, 0.5, 0, 0] + rng.logistic(size=200) > 0).astype(int)
CODES = rng.integers(0, 8, (600, 4))
ONE_HOT = np.concatenate([CODES[:, [j]] == np.arange(8) for j in range(4)], axis=1).astype(float)
NOISY = (ONE_HOT @ rng.normal(size=32) + rng.logistic(size=600) > 0).astype(int)
WIDE = rng.normal(size=(40, 80))


def problem(C=1.0, X=X, y=Y):
    A = np.c_[X, np.ones(len(X))]
    return BinaryProblem(A, y.astype(float), np.full(len(y), C), np.r_[np.ones(X.shape[1]), 0.0])


def by_general_minimiser(p):
    def objective(w):
        z = p.X @ w
        value = p.cost @ (np.logaddexp(0, z) - p.y * z) + 0.5 * (p.penalty * w) @ w
        return value, p.X.T @ (p.cost * (1 / (1 + np.exp(-z)) - p.y)) + p.penalty * w

    return minimize(objective, np.zeros(p.X.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9}).x


def scores_without(p, which, close=1e-7):
    """Scores of records by the model without each of them, as the engine finds them."""
    full = minimum(p)
    moved = displaced(full, which, full.norms[which], close)
    return full.scores[which] + np.einsum("ij,ij->i", full.white[which], moved)


def scores_of_refits(p, which):
    return np.array([p.X[t] @ minimum(p.without(t)).weights for t in which])


def remainder_by_quadrature(z, e):
    """``s(z + e) - s(z) - s'(z) e`` as the integral of ``(e - t) s''(z + t)``, in which nothing cancels."""
    nodes, weights = np.polynomial.legendre.leggauss(300)
    x = z + e * (nodes[:, None, None] + 1) / 2
    bend = -expit(x) * expit(-x) * np.tanh(x / 2)
    return e**2 * np.einsum("k,kij->ij", weights / 2 * (1 - nodes) / 2, bend)


def sums_of_remainders(p, moved, removed):
    """What the difference equation sums over the records that stay, record by record, in whitened coordinates."""
    full = minimum(p)
    r = p.cost[:, None] * remainder_by_quadrature(full.scores[:, None], full.white @ moved.T)
    r[removed, np.arange(len(removed))] = 0.0
    return r.T @ full.white


# ---------------------------------------------------------------- the fit with all records


@pytest.mark.parametrize("C", [1e-3, 1.0, 37.0])
def test_the_minimum_is_that_of_a_general_minimiser(C):
    p = problem(C)
    np.testing.assert_allclose(minimum(p).weights, by_general_minimiser(p), atol=1e-6)


@pytest.mark.parametrize("C", [1e-3, 37.0, 1e4])
@pytest.mark.parametrize("data", [(X, Y), (WIDE, (WIDE[:, 0] > 0) * 1)], ids=["overlapping", "separable"])
def test_the_gradient_at_the_minimum_is_rounding(C, data):
    p = problem(C, *data)
    full = minimum(p)
    gradient = p.X.T @ (p.cost * p.errors(full.scores)) + p.penalty * full.weights
    assert np.abs(gradient).max() < 1e-13 * (np.abs(p.X).T @ p.cost).max()


def test_the_whitened_hessian_is_the_identity():
    p = problem()
    full = minimum(p)
    penalty = full.whitened(np.diag(np.sqrt(p.penalty)))
    hessian = full.white.T @ (full.curvature[:, None] * full.white) + penalty.T @ penalty
    np.testing.assert_allclose(hessian, np.eye(6), atol=1e-12)


# ---------------------------------------------------------------- null, then known answers


def test_a_record_of_no_weight_moves_nothing():
    p = problem()
    cost = p.cost.copy()
    cost[3] = 0.0
    full = minimum(BinaryProblem(p.X, p.y, cost, p.penalty))
    np.testing.assert_array_equal(displaced(full, np.array([3]), full.norms[[3]]), 0.0)


def test_one_of_two_opposite_records():
    """Both at x = 1 with opposite labels balance at w = 0; without the negative one ``C (1 - s(w)) = w``.

    At C = 1 + e that is w = 1.
    """
    p = BinaryProblem(np.ones((2, 1)), np.array([0.0, 1.0]), np.full(2, 1 + np.e), np.ones(1))
    np.testing.assert_allclose(minimum(p).weights, 0.0, atol=1e-15)
    np.testing.assert_allclose(scores_without(p, np.arange(2)), [1.0, -1.0], atol=1e-7)


def test_two_records_alike_have_the_same_influence_and_a_third_of_them_less():
    """n + 1 copies of one record: without one of them the model is that of n copies, whichever is left out."""
    copies = problem(1.0, np.r_[X, X[[7, 7]]], np.r_[Y, Y[[7, 7]]])
    found = scores_without(copies, np.array([7, 200, 201]))
    np.testing.assert_allclose(found, found[0], atol=1e-12)
    np.testing.assert_allclose(found[0], minimum(problem(1.0, np.r_[X, X[[7]]], np.r_[Y, Y[[7]]])).scores[7], atol=1e-7)


# ---------------------------------------------------------------- the slow twin


@pytest.mark.parametrize("C", [1e-3, 0.01, 1.0, 100.0, 1e4])
@pytest.mark.parametrize(
    "data",
    [
        (X, Y),
        (ONE_HOT[:250], NOISY[:250]),
        (np.c_[X, X[:, :2], X.sum(axis=1)], Y),
        (X * 10.0 ** np.arange(-2, 3), Y),
        (np.r_[X, [[50.0, -50, 30, 0, 9]]], np.r_[Y, 1]),
        (WIDE, (WIDE[:, 0] > 0) * 1),
    ],
    ids=["numbers", "categories", "collinear", "scales", "outlier", "separable"],
)
def test_every_record_left_out_equals_a_fit_without_it(C, data):
    p = problem(C, *data)
    which = np.arange(0, len(p.y), 4)
    slow = scores_of_refits(p, which)
    np.testing.assert_allclose(scores_without(p, which), slow, atol=1e-7)
    np.testing.assert_allclose(scores_without(p, which, close=1e-9), slow, atol=1.5e-9)


@pytest.mark.parametrize(
    ("ages", "ill"), [([20.0, 5, 2, 2], [0, 1, 0, 1]), ([2.0, 5, 1, 7, 0, 2, 5], [0, 0, 0, 1, 0, 0, 1])]
)
def test_a_score_is_off_by_no_more_than_may_be(ages, ill):
    """Of records that hold the fit nearly alone: what one moves in the scores is many times what it moves elsewhere."""
    p, which = problem(10.0, np.array(ages)[:, None], np.array(ill)), np.arange(len(ill))
    slow = scores_of_refits(p, which)
    for close in 10.0 ** np.arange(-1, -6.5, -0.5):
        np.testing.assert_allclose(scores_without(p, which, close), slow, rtol=0, atol=close)


@pytest.mark.parametrize("way", [SecondOrder, Remainders])
def test_with_many_more_records_than_columns_either_way_gives_the_same(way, monkeypatch):
    """The sums of second order settle most records, and those by records all; both equal the refits."""
    p, which = problem(1.0, X[:, :3], Y), np.arange(200)
    settled = []
    real = logistic._Search.iterate

    def counted(self, sums, models):
        real(self, sums, models)
        if isinstance(sums, way):
            settled.append(np.isin(models, self.open, invert=True).mean())

    monkeypatch.setattr(logistic._Search, "iterate", counted)
    if way is Remainders:
        monkeypatch.setattr(SecondOrder, "limit", 0.0)
    found = scores_without(p, which, close=1e-4 if way is SecondOrder else 1e-7)
    np.testing.assert_allclose(found, scores_of_refits(p, which), atol=1e-4 if way is SecondOrder else 1e-7)
    assert settled[0] > 0.5


def test_who_is_close_enough_is_not_improved_upon(monkeypatch):
    """A second round begins with a faster step; none does where the first image may be off by a tenth."""
    rounds = []
    faster = logistic.accelerated
    monkeypatch.setattr(logistic, "accelerated", lambda *args: rounds.append(len(args[0])) or faster(*args))
    full = minimum(problem())
    displaced(full, np.arange(10), full.norms[:10], 0.1)
    assert not rounds
    displaced(full, np.arange(10), full.norms[:10], 1e-12)
    assert rounds[0] == 10


def test_the_displaced_parameters_are_those_of_the_fit_without():
    p = problem()
    full = minimum(p)
    delta = full.unwhitened(displaced(full, np.arange(10), np.full(10, full.reach), 1e-9))
    for t in range(10):
        np.testing.assert_allclose(full.weights + delta[t], minimum(p.without(t)).weights, atol=1e-8)


def test_a_record_that_cannot_be_iterated_is_fitted(monkeypatch):
    p = problem()
    monkeypatch.setattr(logistic, "MAX_NEWTON_STEPS", 60)
    monkeypatch.setattr(logistic._Search, "iterate", lambda self, sums, models: None)
    np.testing.assert_allclose(scores_without(p, np.arange(5)), scores_of_refits(p, np.arange(5)), atol=1e-12)


# ---------------------------------------------------------------- its parts


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-6, 1e-4, 1e-3, 0.02, 0.2, 0.6, 3.0, 30.0])
def test_the_remainder_is_what_the_tangent_leaves(dtype, size):
    """Relative to the largest remainder of each record."""
    z = rng.normal(size=50) * 5
    e = rng.uniform(-size, size, size=(20, 50)).astype(dtype)
    cost = rng.uniform(0.5, 2, size=50)
    expected = cost * remainder_by_quadrature(z, e.astype(float))
    found = LogisticCurve.around(z, cost, dtype).remainder(e)
    error = np.abs(found - expected).max(axis=0) / np.abs(expected).max(axis=0)
    assert error.max() <= (3e-5 if dtype is np.float32 else 1e-9)
    assert np.median(error) <= (5e-7 if dtype is np.float32 else 1e-12)


def test_changes_too_wild_for_single_precision_are_not_a_number():
    curve = LogisticCurve.around(np.zeros(3), np.ones(3), np.float32)
    found = curve.remainder(np.array([[1.0, 1e4, np.inf]], dtype=np.float32))
    assert np.isnan(found).tolist() == [[False, True, True]]


@pytest.mark.long
@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.slow)])
def test_sums_by_records_and_what_they_may_be_off(dtype):
    p, removed = problem(10.0, ONE_HOT, NOISY), np.arange(0, 600, 5)
    full = minimum(p)
    start, sums = one_step(full, removed), Remainders.of(full, dtype)
    found = sums.of_rest(start.moved, start)
    error = np.linalg.norm(found - sums_of_remainders(p, start.moved, removed), axis=1)
    assert (error <= sums.off(start.moved) + 1e-15).all()


def test_the_second_order_of_the_sums_and_what_they_may_be_off():
    """Every bound must hold; and for tiny displacements the form is all there is."""
    p, removed = problem(1.0), np.arange(200)
    full = minimum(p)
    start, sums = one_step(full, removed), SecondOrder.of(full)
    for size in (1.0, 1e-2, 5.0):
        moved = size * start.moved
        error = np.linalg.norm(sums.of_rest(moved, start) - sums_of_remainders(p, moved, removed), axis=1)
        assert (error <= sums.off(moved) + 1e-15).all()
    small = 1e-3 * start.moved
    exact = sums_of_remainders(p, small, removed)
    assert np.linalg.norm(sums.of_rest(small, start) - exact) < 1e-3 * np.linalg.norm(exact)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("data", [(X, Y), (ONE_HOT[:200], NOISY[:200])], ids=["numbers", "categories"])
def test_no_minimum_is_farther_than_the_theorem_says(C, data):
    p = problem(C, *data)
    full = minimum(p)
    which = np.arange(0, 200, 4)
    start = one_step(full, which)
    residual = beyond_order(1, full, start.moved, full.moment(2))
    bound = farthest(full, start, start.moved, residual)
    sums = sums_of_remainders(p, start.moved, which)
    for model, t in enumerate(which):
        a = full.white[t]
        without = np.eye(len(a)) - full.curvature[t] * np.outer(a, a)
        assert np.sqrt(sums[model] @ np.linalg.solve(without, sums[model])) <= residual[model]
        error = full.lower.T @ (minimum(p.without(t)).weights - full.weights) - start.moved[model]
        assert np.sqrt(error @ without @ error) <= bound[model] + 1e-12


def test_acceleration_solves_a_problem_on_a_line_at_once():
    """Steps that differ along one direction only are cancelled exactly by two images."""
    f = lambda x: 0.9 * x + np.array([0.1, 0.2])  # noqa: E731
    x = np.zeros((1, 2))
    y = f(x)
    mixed, ratio = accelerated(x, f(x), y, f(y))
    np.testing.assert_allclose(mixed, [[1.0, 2.0]])
    np.testing.assert_allclose(ratio, 0.9)


# ---------------------------------------------------------------- the engine


def job(estimator, records, queries=None, which=None):
    which = np.arange(len(records)) if which is None else np.asarray(which)
    queries = EachModel(which[:, None]) if queries is None else queries
    return Job(SklearnLearner(estimator), records, leave_one_out(len(records), which), queries, 0, Randomness.COMMON)


class Finer(LogisticRegressionNewton):
    tolerance = 1e-9


def check(estimator, records, queries=None, which=None, atol=1e-7):
    """The engine does the job, and equals the plain loop."""
    this = job(estimator, records, queries, which)
    assert isinstance(LogisticRegressionNewton().prepare(this), PreparedJob)
    found, expected = (
        LogisticRegressionNewton().prepare(this).all().answers,
        Refit().prepare(this).all().answers,
    )
    np.testing.assert_allclose(found, expected, atol=atol)
    return found


@pytest.mark.parametrize(
    ("classes", "weights"),
    [
        pytest.param(classes, weights, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, classes in enumerate([None, ["sick", "healthy"], ["healthy", "sick"]])
        for j, weights in enumerate([None, {"sick": 3.0}, {"healthy": 0.2, "sick": 1.5}, "balanced"])
    ],
)
@pytest.mark.parametrize("intercept", [True, False])
def test_classes_in_any_order_and_with_weights(classes, weights, intercept):
    names = np.where(Y == 1, "sick", "healthy")
    records = Records.from_arrays(X, names, classes=classes)[:40]
    check(LogisticRegression(class_weight=weights, fit_intercept=intercept, **TIGHT), records)


@pytest.mark.parametrize("C", [1e-3, 1e4])
def test_balanced_weights_of_a_rare_class(C):
    """The weights of all records change when one of the few members leaves, and a little with any other."""
    y = np.zeros(60, dtype=int)
    y[:3] = 1
    check(LogisticRegression(C=C, class_weight="balanced", **TIGHT), Records.from_arrays(X[:60], y), which=range(20))


@pytest.mark.parametrize("weights", [None, "balanced"])
def test_any_queries_and_more_than_one(weights):
    estimator = LogisticRegression(class_weight=weights, C=5.0, **TIGHT)
    records = Records.from_arrays(X[:50], Y[:50])
    which = np.array([4, 0, 49, 4])
    check(estimator, records, X[100:130] * 3, which)
    check(estimator, records, EachModel(rng.integers(0, 50, (4, 7))), which)


def test_all_records():
    records = Records.from_arrays(X[:50], Y[:50])
    for weights in (None, "balanced"):
        learner = SklearnLearner(LogisticRegression(class_weight=weights, **TIGHT))
        this = Job(learner, records, everything(50, 2), X[50:60], 0, Randomness.COMMON)
        np.testing.assert_allclose(
            LogisticRegressionNewton().prepare(this).all().answers,
            Refit().prepare(this).all().answers,
            atol=1e-9,
        )


@pytest.mark.parametrize("weights", [None, "balanced"])
def test_sparse_features(weights):
    records = Records.from_arrays(CODES[:60].astype(float), NOISY[:60])
    last = LogisticRegression(class_weight=weights, **TIGHT)
    check(make_pipeline(OneHotEncoder(categories=[np.arange(8.0)] * 4), last), records, which=range(0, 60, 3))


def test_sparse_features_too_large_to_be_held_densely_are_refused(monkeypatch):
    monkeypatch.setattr(logistic, "MAX_DENSE_ENTRIES", 100)
    sparse = make_pipeline(OneHotEncoder(categories=[np.arange(8.0)] * 4), LogisticRegression())
    records = Records.from_arrays(CODES.astype(float), NOISY)
    assert "sparse matrices of at most 100 entries" in str(LogisticRegressionNewton().prepare(job(sparse, records)))


@pytest.mark.parametrize("weights", [None, "balanced"])
@pytest.mark.parametrize("intercept", [True, False])
def test_displacements_are_those_of_the_coefficients(weights, intercept):
    """Also of columns far from 0, where the intercept moves most."""
    features = X[:60] + np.array([0, 100, 0, 0, -10])
    records = Records.from_arrays(features, Y[:60])
    last = LogisticRegression(class_weight=weights, fit_intercept=intercept, **TIGHT)
    found = LogisticRegressionNewton().prepare(job(last, records)).displacements()

    def parameters(rows):
        fitted = clone(last).fit(features[rows], Y[rows])
        return np.r_[fitted.coef_[0], fitted.intercept_] if intercept else fitted.coef_[0]

    whole = parameters(np.arange(60))
    for t in range(0, 60, 7):
        np.testing.assert_allclose(found[t], parameters(np.delete(np.arange(60), t)) - whole, atol=2e-6)


def test_a_part_equals_those_rows_of_the_whole():
    """To the error allowed: what rounding does depends on which models share a matrix product."""
    records = Records.from_arrays(ONE_HOT, NOISY)
    this, some = job(LogisticRegression(), records), np.array([17, 3, 3, 599, 250])
    for engine in (LogisticRegressionNewton(), Finer()):
        np.testing.assert_allclose(
            engine.prepare(this.part(some)).all().answers,
            engine.prepare(this).all().answers[some],
            atol=engine.tolerance,
        )


@pytest.mark.slow
def test_the_same_numbers_from_one_worker_and_two(monkeypatch):
    monkeypatch.setattr(LogisticRegressionNewton, "chunk", 50)
    records = Records.from_arrays(ONE_HOT[:200], NOISY[:200])
    learner, queries = SklearnLearner(LogisticRegression()), EachModel(np.arange(200)[:, None])
    one, two = (
        train_many(learner, records, leave_one_out(200), queries, seed=0, execution=Execution(workers=w))
        for w in (1, 2)
    )
    assert one.engine == "logistic-regression"
    np.testing.assert_array_equal(one.answers, two.answers)


def test_pdtp_is_right_whatever_the_users_tolerance():
    """With scikit-learn's default tolerance the loop is far off; the engine solves to the end, for both models."""
    records = Records.from_arrays(X, Y)
    found = pdtp(SklearnLearner(LogisticRegression()), records, seed=0)
    whole = LogisticRegression(**TIGHT).fit(X, Y).predict_log_proba(X)
    for t in range(0, 200, 20):
        left = np.delete(np.arange(200), t)
        without = LogisticRegression(**TIGHT).fit(X[left], Y[left]).predict_log_proba(X[[t]])
        assert found.values[t] == pytest.approx(np.abs(whole[t] - without[0]).max(), abs=1e-7)


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


@pytest.mark.parametrize("weights", [None, "balanced"])
def test_a_class_without_its_last_member_cannot_be_trained(weights):
    y = np.zeros(20, dtype=int)
    y[4] = 1
    learner = SklearnLearner(LogisticRegression(class_weight=weights))
    found = pdtp(learner, Records.from_arrays(X[:20], y), seed=0)
    assert np.flatnonzero(np.isnan(found.values)).tolist() == [4]
    assert list(found.failures) == [4]


@pytest.mark.parametrize(
    ("estimator", "labels", "reason"),
    [
        (LogisticRegression(), np.arange(200) % 3, "two classes only"),
        (LogisticRegression(l1_ratio=1, solver="saga"), Y, "squared penalty only"),
        (LogisticRegression(C=np.inf), Y, "squared penalty only"),
        (LogisticRegression(solver="liblinear"), Y, "penalises the intercept"),
        (LogisticRegression(class_weight={2: 1.0}), Y, "weights from 0 of the two classes"),
        (LogisticRegression(class_weight={0: -1.0}), Y, "weights from 0 of the two classes"),
        (make_pipeline(FunctionTransformer(csr_matrix), LogisticRegression()), Y, "several records at once"),
    ],
)
def test_what_it_cannot_do_it_refuses(estimator, labels, reason):
    assert reason in str(LogisticRegressionNewton().prepare(job(estimator, Records.from_arrays(X, labels))))


@pytest.mark.skipif("LEAKGAUGE_DATA" not in os.environ, reason="needs the data set adult: set LEAKGAUGE_DATA")
def test_a_thousand_people_of_adult():
    """60 of 1,000 records left out against refits that have converged."""
    from leakgauge.records import datasets
    from leakgauge.training.recipes import recipe

    records = datasets.load("adult").records.as_codes()[np.random.default_rng(0).choice(48_842, 1000, replace=False)]
    learner = recipe("logistic-regression", records)
    tight = clone(learner.estimator).set_params(logisticregression__tol=1e-12)
    which = np.random.default_rng(1).choice(1000, 60, replace=False)
    found = check(tight, records, which=which)
    finer = Finer().prepare(job(tight, records, which=which)).all().answers
    assert np.abs(found - finer).max() < 1e-7


# ---------------------------------------------------------------- behind steps that are fitted on the records


def behind_a_scaler(X, y, **settings):
    """Log-odds of each record by the regression without it, and by really trained ones."""
    estimator = make_pipeline(StandardScaler(), LogisticRegression(**TIGHT | settings))
    n = len(y)
    job = Job(
        SklearnLearner(estimator),
        Records.from_arrays(X, y),
        leave_one_out(n),
        EachModel(np.arange(n)[:, None]),
        0,
        Randomness.COMMON,
    )
    prepared = LogisticRegressionNewton().prepare(job)
    assert isinstance(prepared, PreparedJob), prepared
    found, expected = prepared.all().answers[:, 0], Refit().prepare(job).all().answers[:, 0]
    return found[:, 1] - found[:, 0], expected[:, 1] - expected[:, 0]


def test_the_worked_example_behind_a_scaler():
    """Computed with scikit-learn 1.9.1: the log-odds of the record that each of six models lacks."""
    X = np.column_stack([[0.0, 1, 2, 4, 5, 9], [0.0, 0, 0, 0, 0, 3]])
    expected = [-0.3861559600, -0.1839906073, -1.0916347992, 0.6057994850, -0.4018168069, 1.5156353421]
    found, _ = behind_a_scaler(X, [0, 0, 1, 0, 1, 1])
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_the_worked_example_behind_an_imputer():
    """Computed with scikit-learn 1.9.1: means are filled in, and the scale of what results is fitted."""
    X = np.array([[0, 1], [1, np.nan], [2, 0], [4, 2], [np.nan, 3], [9, 5]])
    expected = [-0.2919711131, 0.0077959730, -2.1750708471, 0.7508567224, -0.4573468670, 0.0314876468]
    job = Job(
        SklearnLearner(make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())),
        Records.from_arrays(X, [0, 0, 1, 0, 1, 1], categorical=[0, 1]),
        leave_one_out(6),
        EachModel(np.arange(6)[:, None]),
        0,
        Randomness.COMMON,
    )
    found = LogisticRegressionNewton().prepare(job).all().answers[:, 0]
    np.testing.assert_allclose(found[:, 1] - found[:, 0], expected, atol=1e-7)


@pytest.fixture
def fitted(monkeypatch):
    """How many records each fit of the engine was of, while a test runs."""
    sizes, real = [], logistic.minimum

    def counted(problem, start=None):
        sizes.append(len(problem.y))
        return real(problem, start)

    monkeypatch.setattr(logistic, "minimum", counted)
    return sizes


def test_no_record_is_left_out_by_a_fit_of_its_own_behind_an_imputer(fitted):
    """Those with values to fill in and those without: the one fit is that of all records."""
    some = np.where(np.random.default_rng(6).random(X.shape) < 0.1, np.nan, X)
    steps = (SimpleImputer(), StandardScaler(), LogisticRegression(**TIGHT))
    job = Job(
        SklearnLearner(make_pipeline(*steps)),
        Records.from_arrays(some, Y),
        leave_one_out(200),
        EachModel(np.arange(200)[:, None]),
        0,
        Randomness.COMMON,
    )
    found = LogisticRegressionNewton().prepare(job).all().answers
    assert fitted == [200]
    np.testing.assert_allclose(found, Refit().prepare(job).all().answers, atol=1e-7)


@pytest.mark.parametrize(
    "C", [0.01, pytest.param(1.0, marks=pytest.mark.slow), pytest.param(30.0, marks=pytest.mark.slow)]
)
def test_every_record_left_out_behind_a_scaler(C):
    """Skewed columns, one record far away, and columns of one to five ones: scales that change by half and more."""
    own = np.random.default_rng(3)
    ones = own.permuted(np.arange(200)[None] < np.arange(1, 6)[:, None], axis=1).T
    skewed = own.lognormal(sigma=1.5, size=(200, 3))
    found, expected = behind_a_scaler(np.column_stack([X, skewed, ones]), Y, C=C)
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_a_scale_that_one_record_decides_is_not_iterated(fitted):
    """Without the one record in question a column has half of its variance or less: its model is fitted."""
    far = X.copy()
    far[11, 0] = 40.0
    found, expected = behind_a_scaler(far, Y)
    assert fitted == [200, 199]
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_a_penalty_that_does_not_change_changes_nothing():
    full = minimum(problem())
    removed = np.arange(30)
    same = logistic.DesignChange(full, np.zeros((30, 6)))
    far = np.full(30, full.reach)
    np.testing.assert_array_equal(displaced(full, removed, far), displaced(full, removed, far, change=same))


@pytest.mark.parametrize("weights", [None, "balanced"])
def test_a_class_without_its_last_member_behind_a_scaler(weights):
    found, expected = behind_a_scaler(X[:20], np.arange(20) == 3, class_weight=weights)
    assert np.flatnonzero(np.isnan(found)).tolist() == [3] == np.flatnonzero(np.isnan(expected)).tolist()
    np.testing.assert_allclose(np.delete(found, 3), np.delete(expected, 3), atol=1e-7)


def test_a_step_is_halved_until_it_gains():
    """At a score of 30 the logistic function is flat, and Newton's step from there is far too long."""
    p = problem()
    w = np.array([0.0, 0, 0, 0, 0, 12.0])
    z = p.X @ w
    gradient = p.X.T @ (p.cost * p.errors(z)) + p.penalty * w
    step = np.linalg.solve(p.factor(z) @ p.factor(z).T, gradient)
    length = logistic._step_length(p, w, step, z, p.X @ step, float(gradient @ step))
    assert 0 < length < 1
    values = [p.value(w - part * step, z - part * (p.X @ step)) for part in (0.0, length, 2 * length)]
    assert values[1] < values[0]
    assert values[2] > values[0] - 2e-4 * length * float(gradient @ step)
