"""Logistic regression on many subsets: the minimum itself, for each model, whatever the others are."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    QuantileTransformer,
    StandardScaler,
)

from leakgauge.models import AnswerKind
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
from leakgauge.training.engines.logistic import binary_subsets as logistic_subsets
from leakgauge.training.engines.logistic.binary_subsets import LogisticRegressionSubsets, _Block
from leakgauge.training.engines.refit import Refit
from leakgauge.training.subsets import DenseSubsets, balanced_subsets, random_subsets

ENGINE = LogisticRegressionSubsets()


def job_of(estimator, records, members, queries=None):
    subsets = members if not isinstance(members, np.ndarray) else DenseSubsets(members)
    queries = records.features if queries is None else queries
    return Job(SklearnLearner(estimator), records, subsets, queries, 0, Randomness.COMMON)


def run(estimator, records, members, queries=None):
    """The engine's answers; all of them verified, none trained plainly."""
    job = job_of(estimator, records, members, queries)
    assert isinstance(ENGINE.prepare(job), PreparedJob)
    outcome = ENGINE.prepare(job).all()
    assert outcome.n_unconverged == 0
    return outcome.answers


def converged(estimator):
    """The same with a solver that goes on to the end."""
    estimator = clone(estimator)
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    last.set_params(solver="newton-cholesky", tol=1e-13, max_iter=1000)
    return estimator


def twin(estimator, records, members, queries=None):
    """What training each model gives, with a solver that goes on to the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 1e-13 is below what the solver can tell, and it says so
        return Refit().prepare(job_of(converged(estimator), records, members, queries)).all().answers


def check(estimator, records, members, queries=None):
    found = run(estimator, records, members, queries)
    np.testing.assert_allclose(found, twin(estimator, records, members, queries), rtol=0, atol=ENGINE.tolerance)
    return found


def people(n, d, seed, *, slope=1.0):
    """Normal features, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    z = slope * (X @ rng.normal(size=d)) / np.sqrt(d) + 0.3
    return Records.from_arrays(X, np.where(rng.random(n) < expit(z), "yes", "no"))


def categories(n, seed, sizes=(3, 8, 4, 16, 2)):
    """One-hot attributes, some of whose categories hardly occur."""
    rng = np.random.default_rng(seed)
    codes = [np.minimum(rng.geometric(0.35, n) - 1, size - 1) for size in sizes]
    X = np.concatenate([np.eye(size)[code] for size, code in zip(sizes, codes, strict=True)], axis=1)
    return Records.from_arrays(X, rng.random(n) < expit(X @ rng.normal(size=X.shape[1]) - 1))


def halves(records, n_models, seed=0):
    return balanced_subsets(len(records), len(records) // 2, n_models, np.random.default_rng(seed))


def few(records, size, n_models, seed=0):
    return random_subsets(len(records), size, n_models, np.random.default_rng(seed))


# ---------------------------------------------------------------- nothing to find


def test_equal_subsets_give_equal_models():
    records = people(200, 5, 1)
    for size in (200, 100, 30):  # rows shared, and copied
        members = np.tile(np.arange(200) % (200 // size) == 0, (5, 1))
        found = run(LogisticRegression(), records, members)
        np.testing.assert_allclose(found, np.repeat(found[:1], 5, axis=0), rtol=0, atol=1e-9)


@pytest.mark.parametrize("size", [100, 20])
def test_features_of_zeros_leave_the_share_of_the_classes(size):
    """Without anything to go by the intercept alone is fitted, and it is not penalised."""
    rng = np.random.default_rng(2)
    records = Records.from_arrays(np.zeros((200, 3)), rng.integers(0, 2, 200))
    members = few(records, size, 20)
    found = run(LogisticRegression(C=0.01), records, members)
    share = (members.members @ records.labels) / size
    expected = np.log(np.stack([1 - share, share], axis=1))[:, None, :]
    np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=0, atol=1e-7)


def test_a_feature_of_zeros_has_no_weight():
    records = people(100, 3, 3)
    X = np.concatenate([records.features, np.zeros((100, 1))], axis=1)
    wider = Records.from_arrays(X, records.schema.decode_labels(records.labels))
    asked = X.copy()
    asked[:, 3] = 1.0
    members = halves(records, 6)
    found = run(LogisticRegression(), wider, members, asked)
    np.testing.assert_allclose(found, run(LogisticRegression(), records, members), rtol=0, atol=1e-9)


# ---------------------------------------------------------------- behind a scaler that each model fits anew


def skewed(n, seed):
    """Skewed features on different scales, rare dummies, a constant, and one that only a few records vary."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.lognormal(sigma=1.5, size=(n, 3)) * [1, 100, 0.01],
            rng.permutation(n) < 1,
            rng.permutation(n) < 4,
            rng.permutation(n) < n // 3,
            np.full(n, 0.1),
            1e6 + (rng.permutation(n) < 3),
        ]
    )
    return Records.from_arrays(X, np.where(rng.random(n) < expit(np.log(X[:, 0]) + X[:, 5] - 1), "yes", "no"))


@pytest.mark.parametrize("size", [200, 30])
@pytest.mark.parametrize(
    "settings", [{}, {"C": 100.0}, {"C": 1e-3}, {"class_weight": "balanced"}], ids=lambda value: str(value)
)
def test_behind_a_scaler(settings, size):
    """Rows shared, and copied: every model has a scale of its own, on which some columns are constant."""
    records = skewed(400, 20)
    check(make_pipeline(StandardScaler(), LogisticRegression(**settings)), records, few(records, size, 12))


def test_one_scaler_for_all_is_not_good_enough():
    """An engine that forgot to fit the scaler anew would fail the comparison above."""
    records = skewed(400, 21)
    members = halves(records, 8)
    shared = Records.from_arrays(
        StandardScaler().fit_transform(records.features), records.schema.decode_labels(records.labels)
    )
    own = run(make_pipeline(StandardScaler(), LogisticRegression()), records, members)
    assert np.abs(own - run(LogisticRegression(), shared, members)).max() > 1e-3


@pytest.mark.parametrize("scaler", [StandardScaler(with_mean=False), StandardScaler(with_std=False)], ids=str)
def test_behind_half_a_scaler(scaler):
    whole = skewed(300, 22)
    near = Records.from_arrays(whole.features[:, :7], whole.schema.decode_labels(whole.labels))
    check(make_pipeline(scaler, LogisticRegression(C=1e-4)), near, halves(near, 6))


def test_behind_a_scaler_that_needs_a_hessian_of_each_model():
    """Hardly any penalty: nearly all models are verified by Newton's method with their own penalty."""
    records = skewed(200, 23)
    check(make_pipeline(StandardScaler(), LogisticRegression(C=1e5)), records, few(records, 60, 5))


def test_newton_steps_solve_each_models_own_equations(monkeypatch):
    """Behind a scaler each model has a penalty of its own. A step by another one would get there too, in more steps."""
    left = []
    step = logistic_subsets._newton_step

    def watched(metric, block, gradient, bend, enough):
        found = step(metric, block, gradient, bend, enough)
        for w, g, b, excess in zip(found, gradient, bend, block.excess, strict=True):
            hessian = (block.exact.T * b) @ block.exact + np.diag(np.r_[np.ones(len(w) - 1), 0.0] + excess)
            white = (hessian @ w + g) @ metric.basis
            left.append(np.linalg.norm(white) / np.linalg.norm(g @ metric.basis))
        return found

    monkeypatch.setattr(logistic_subsets, "_newton_step", watched)
    records = skewed(400, 20)
    run(make_pipeline(StandardScaler(), LogisticRegression()), records, few(records, 200, 12))
    assert len(left) >= 12
    assert max(left[:12]) < 1e-3  # the first step of each: later ones need to be no closer


def test_own_queries_behind_a_scaler():
    records = skewed(200, 24)
    queries = EachModel(np.random.default_rng(0).integers(0, 200, (6, 4)))
    check(make_pipeline(StandardScaler(), LogisticRegression()), records, halves(records, 6), queries)


def test_words_and_numbers_side_by_side():
    """Categories that a training set lacks are unknown to its model, and so are queries that have them."""
    rng = np.random.default_rng(25)
    X = np.column_stack([rng.geometric(0.4, 300), rng.integers(0, 3, 300), rng.lognormal(size=(300, 2))])
    records = Records.from_arrays(X, rng.random(300) < expit(X[:, 2] - X[:, 0]))
    encode = OneHotEncoder(handle_unknown="ignore")
    columns = ColumnTransformer([("words", encode, [0, 1]), ("numbers", StandardScaler(), [2, 3])])
    check(make_pipeline(columns, LogisticRegression()), records, few(records, 100, 8))
    strict = make_pipeline(OneHotEncoder(), LogisticRegression())
    assert "only StandardScaler is known" in str(ENGINE.prepare(job_of(strict, records, halves(records, 4))))


# ---------------------------------------------------------------- known answers


@pytest.mark.parametrize("copies", [1, 7])
@pytest.mark.parametrize("share", [1.0, 0.01])
def test_one_feature_by_hand(copies, share):
    """At -1 and 1 there are k people each, of one class each: b = 0 by symmetry, and w = 2 k C (1 - s(w))."""
    n = round(copies / share)
    records = Records.from_arrays(np.repeat([[-1.0], [1.0]], n, axis=0), np.repeat([0, 1], n))
    members = np.zeros((2, 2, n), dtype=bool)
    members[0, :, :copies] = members[1, :, n - copies :] = True
    found = run(LogisticRegression(C=0.5), records, members.reshape(2, 2 * n), np.array([[-1.0], [0.0], [1.0]]))
    w = brentq(lambda w: copies / (1 + np.exp(w)) - w, 0, copies, xtol=1e-14)
    scores = found[:, :, 1] - found[:, :, 0]
    np.testing.assert_allclose(scores, np.tile([-w, 0, w], (2, 1)), rtol=0, atol=1e-7)
    np.testing.assert_allclose(np.exp(found).sum(axis=2), 1.0, rtol=0, atol=1e-12)


# ---------------------------------------------------------------- the slow twin


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_halves(C, intercept):
    check(LogisticRegression(C=C, fit_intercept=intercept), people(300, 20, 4), halves(people(300, 20, 4), 10))


@pytest.mark.parametrize("weight", [None, "balanced", {True: 3.0, False: 0.5}, {True: 2.0}])
@pytest.mark.parametrize("size", [400, 60])
def test_weights_of_classes(weight, size):
    records = categories(800, 5)
    check(LogisticRegression(class_weight=weight), records, few(records, size, 10))


def test_small_subsets_of_a_large_pool():
    """Rows without most of their cells, and rows with all of them."""
    for records in (categories(5000, 6), people(5000, 10, 6)):
        check(LogisticRegression(C=10.0), records, few(records, 100, 15))


def test_subsets_of_very_different_sizes():
    records = people(600, 8, 7)
    rng = np.random.default_rng(8)
    sizes = [600, 3, 590, 10, 300, 40, 150, 5, 200, 80, 201, 199, 20, 2]
    members = np.zeros((len(sizes), 600), dtype=bool)
    for row, size in zip(members, sizes, strict=True):
        both = [rng.choice(np.flatnonzero(records.labels == c)) for c in (0, 1)]
        row[both] = True
        row[rng.choice(np.flatnonzero(~row), size - 2, replace=False)] = True
    check(LogisticRegression(), records, members)


@pytest.mark.parametrize("size", [200, 40])
def test_classes_that_can_be_told_apart(size):
    """With more features than records, and with one feature that tells: the penalty alone holds the weights back."""
    for records in (people(400, 60, 9, slope=20.0), people(400, 1, 10, slope=1000.0)):
        check(LogisticRegression(C=10.0), records, few(records, size, 6))


@pytest.mark.parametrize("size", [100, 20])
def test_hardly_any_penalty_takes_a_hessian_of_each_model(size, monkeypatch):
    """The bound by the penalty says nothing here; Newton's method with each model's own Hessian goes on."""
    records = people(200, 3, 11)
    members = few(records, size, 5)
    alone = []
    method = logistic_subsets.weights_alone
    monkeypatch.setattr(logistic_subsets, "weights_alone", lambda *args: alone.append(1) or method(*args))
    check(LogisticRegression(C=1e7), records, members)
    assert len(alone) > 2


def test_a_query_far_out_is_not_certain(monkeypatch):
    """What Newton's method leaves of the weights is multiplied by the query."""
    records = people(200, 3, 11)
    sure, method = [], logistic_subsets.weights_alone

    def far_out(pool, members, start, queries):
        found = [method(pool, members, start, factor * queries) for factor in (1.0, 1e12)]
        sure.append([certain for _, certain in found])
        return found[0]

    monkeypatch.setattr(logistic_subsets, "weights_alone", far_out)
    check(LogisticRegression(C=1e7), records, few(records, 100, 5))
    assert [True, False] in sure
    assert not any(far for _, far in sure)


def test_features_on_very_different_scales():
    data = load_breast_cancer()
    records = Records.from_arrays(data.data[:, [0, 3, 4, 13]], data.target)
    check(LogisticRegression(), records, halves(records, 4))


@pytest.mark.parametrize("size", [100, 40])
def test_columns_that_say_the_same_and_people_who_are_the_same(size):
    records = people(200, 4, 12)
    X = np.concatenate([records.features, records.features[:, :2], np.ones((200, 1)), np.full((200, 1), 0.1)], axis=1)
    X[100:150] = X[0]
    check(LogisticRegression(), Records.from_arrays(X, records.labels), few(records, size, 6))


@pytest.mark.parametrize("classes", [("b", "a"), ("a", "b")])
def test_classes_keep_the_order_of_the_schema(classes):
    rng = np.random.default_rng(13)
    X = rng.normal(size=(120, 2))
    y = np.where(X[:, 0] + rng.normal(size=120) > 1, "a", "b")
    records = Records.from_arrays(X, y, classes=classes)
    found = check(LogisticRegression(), records, halves(records, 4))
    sure = X[:, 0] > 2
    assert (found[:, sure, classes.index("a")] > found[:, sure, classes.index("b")]).all()


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("size", [150, 30])
def test_encoded_categories(sparse, size):
    rng = np.random.default_rng(14)
    codes = rng.integers(0, 6, (300, 2)).astype(float)
    records = Records.from_arrays(codes, rng.random(300) < 0.2 + 0.1 * codes[:, 0], categorical=[0, 1])
    encoder = OneHotEncoder(categories=[np.arange(6.0)] * 2, sparse_output=sparse)
    check(make_pipeline(encoder, LogisticRegression()), records, few(records, size, 5))


@pytest.mark.parametrize("size", [100, 20])
def test_each_model_answers_about_records_of_its_own(size):
    records = people(200, 6, 15)
    members = few(records, size, 8)
    index = np.random.default_rng(16).integers(0, 200, (8, 5))
    check(LogisticRegression(), records, members, EachModel(index))


def test_queries_far_from_the_pool():
    """The bound is on the scores of what is asked, however far away that is."""
    records = people(300, 5, 17)
    check(LogisticRegression(), records, halves(records, 4), 50 * records.features[:20])


def test_leave_one_out_and_everything():
    records = people(100, 3, 18)
    check(LogisticRegression(class_weight="balanced"), records, leave_one_out(100, np.arange(5)))
    check(LogisticRegression(class_weight="balanced"), records, everything(100, 2))


# ---------------------------------------------------------------- a model and the others


def test_answers_do_not_depend_on_the_other_models():
    records = categories(900, 19)
    members = np.concatenate([halves(records, 6).members, few(records, 50, 6).members])
    job = job_of(LogisticRegression(), records, members)
    whole = ENGINE.prepare(job).all().answers
    for model in (0, 3, 7, 11):
        alone = ENGINE.prepare(job.part(np.array([model]))).all().answers
        np.testing.assert_allclose(alone[0], whole[model], rtol=0, atol=ENGINE.tolerance)
    np.testing.assert_array_equal(ENGINE.prepare(job).all().answers, whole)


def test_workers_and_parts_give_the_same_table():
    records = people(60, 3, 20)
    subsets = halves(records, ENGINE.chunk + 20)
    learner = SklearnLearner(LogisticRegression())
    tables = [
        train_many(learner, records, subsets, seed=0, engines=(ENGINE,), execution=Execution(workers=workers))
        for workers in (1, 2)
    ]
    assert tables[0].engine == ENGINE.name
    np.testing.assert_array_equal(tables[0].answers, tables[1].answers)
    part = np.arange(ENGINE.chunk, ENGINE.chunk + 20)
    job = job_of(LogisticRegression(), records, subsets)
    np.testing.assert_array_equal(ENGINE.prepare(job.part(part)).all().answers, tables[0].answers[part])


# ---------------------------------------------------------------- no model


def test_one_class_only_is_a_failure_as_in_the_plain_loop():
    records = people(50, 3, 21)
    members = halves(records, 3).members.copy()
    members[1] = records.labels == 0
    job = job_of(LogisticRegression(), records, members)
    outcome, plain = ENGINE.prepare(job).all(), Refit().prepare(job).all()
    assert list(outcome.failures) == list(plain.failures) == [1]
    assert outcome.failures[1] == (
        f"LogisticRegression cannot be trained on {members[1].sum()} records that all have the same label"
    )
    assert np.isnan(outcome.answers[1]).all()
    assert np.isfinite(outcome.answers[[0, 2]]).all()
    assert outcome.kind is AnswerKind.PROBABILITIES
    none = ENGINE.prepare(job.part(np.array([1]))).all()
    assert none.kind is None
    assert list(none.failures) == [0]


def test_what_cannot_be_verified_is_trained_as_asked_and_counted(monkeypatch):
    records = people(50, 3, 22)
    members = halves(records, 3)
    estimator = LogisticRegression(tol=1e-6)
    monkeypatch.setattr(logistic_subsets, "LOG_PROBABILITY_TOLERANCE_NATS", -1.0)
    outcome = ENGINE.prepare(job_of(estimator, records, members)).all()
    assert outcome.n_unconverged == 3
    np.testing.assert_array_equal(outcome.answers, Refit().prepare(job_of(estimator, records, members)).all().answers)


class Mine(LogisticRegression):
    """A subclass may do anything."""


REFUSED = [
    (Mine(), "Mine is not LogisticRegression"),
    (
        make_pipeline(QuantileTransformer(n_quantiles=5), LogisticRegression()),
        "QuantileTransformer is fitted on the data",
    ),
    (make_pipeline(MinMaxScaler(), LogisticRegression()), "only StandardScaler is known on any subset"),
    (make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()), "only StandardScaler is known on any"),
    (make_pipeline(StandardScaler(), LogisticRegression(fit_intercept=False)), "without an intercept nothing takes up"),
    (make_pipeline(FunctionTransformer(np.log), LogisticRegression()), "cannot be given this table"),
    (LogisticRegression(l1_ratio=0.5), "a squared penalty only"),
    (LogisticRegression(C=np.inf), "a squared penalty only"),
    (LogisticRegression(solver="liblinear"), "penalises the intercept"),
    (LogisticRegression(class_weight={"maybe": 1.0}), "must give classes a number above 0"),
    (LogisticRegression(class_weight={"yes": 0.0}), "must give classes a number above 0"),
    (RidgeClassifier(), "RidgeClassifier is not LogisticRegression"),
]


@pytest.mark.filterwarnings("ignore:invalid value encountered in log")
@pytest.mark.parametrize(("estimator", "message"), REFUSED, ids=[message[:30] for _, message in REFUSED])
def test_refusals_say_why(estimator, message):
    records = people(30, 2, 23)
    job = job_of(estimator, records, halves(records, 2))
    assert message in str(ENGINE.prepare(job))
    assert message in str(ENGINE.prepare(job.part(np.array([0]))))


def test_three_classes_and_large_tables_are_refused(monkeypatch):
    three = Records.from_arrays(np.arange(6.0)[:, None], [0, 1, 2, 0, 1, 2])
    assert "two classes only" in str(ENGINE.prepare(job_of(LogisticRegression(), three, everything(6))))
    records = people(30, 2, 24)
    monkeypatch.setattr(logistic_subsets, "MAX_CELLS", 59)
    assert "30 x 2 is too large" in str(ENGINE.prepare(job_of(LogisticRegression(C=3.0), records, everything(30))))


# ---------------------------------------------------------------- the bound itself


@pytest.mark.parametrize("intercept", [True, False])
def test_the_bound_holds_for_any_weights_and_is_not_far_off_for_one_feature(intercept):
    """Weights moved away from the minimum, a little and a lot: no score is farther off than the bound says."""
    records = people(200, 1, 25)
    job = job_of(LogisticRegression(fit_intercept=intercept), records, everything(200))
    pool = LogisticRegressionSubsets().pool(job)
    members = everything(200).members
    best, sure = logistic_subsets.weights_on(pool, members, pool.radius)
    assert sure.all()
    rng = np.random.default_rng(26)
    tightest = np.inf
    for distance in (1e-6, 1e-3, 0.1, 1.0):
        for _ in range(20):
            w = best[0] + distance * rng.normal(size=best.shape[1])
            p = expit(pool.X @ w)
            gradient = pool.X.T @ (p - pool.y) + pool.penalty * w
            bend, pulls = (p * (1 - p)).sum(keepdims=True), np.abs(p - pool.y).sum(keepdims=True)
            with np.errstate(invalid="ignore"):
                bound = logistic_subsets._score_error(pool, gradient[None], bend, pulls, pool.radius)
            error = np.abs(pool.X @ (w - best[0])).max()
            assert error <= bound[0]
            tightest = min(tightest, bound[0] / error)
    assert tightest < 300


@pytest.mark.parametrize("place", [0, 999, 1000, 2001])
def test_the_record_farthest_away_counts_wherever_it_stands(place):
    """By the hand: without intercept and with C = 1 a record is as far away as it is long."""
    X = np.random.default_rng(27).uniform(-1, 1, (2002, 2))
    X[place] = 30.0, 40.0
    job = job_of(LogisticRegression(fit_intercept=False), Records.from_arrays(X, np.arange(2002) % 2), everything(2002))
    assert LogisticRegressionSubsets().pool(job).radius == pytest.approx(50.0)


@pytest.mark.timeout(60)
def test_newton_steps_that_go_in_circles_come_to_an_end(monkeypatch):
    """A gradient that shrinks wherever a step leads, at a value that stays: by the old metric each step gains."""
    calls = []

    def objective(pool, X, y, cost, w):
        calls.append(w)
        return 1.0, np.full(X.shape[1], 1.0 if len(calls) % 2 else 0.1), np.full(len(X), 0.25)

    class Pool:
        penalty = np.ones(2)

    monkeypatch.setattr(logistic_subsets, "_objective", objective)
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2 == 0
    found = logistic_subsets._newton(Pool(), X, y, np.ones(20), np.zeros(2), enough=0.0)
    assert len(calls) <= 20 * logistic_subsets.MAX_NEWTON_STEPS + 1
    assert np.isfinite(found.weights).all()


def test_the_smallest_cost_of_a_coefficient_is_that_of_the_penalty_or_more():
    """The bound on a score divides by it, so that more than there is would be false."""
    block = _Block(*[np.empty(0)] * 5)
    assert block.least == 1.0
    assert replace(block, excess=np.array([[0.0, 2.0], [3.0, 0.5]])).least.tolist() == [1.0, 1.5]
