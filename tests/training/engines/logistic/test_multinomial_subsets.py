"""Multinomial logistic regression on many subsets: the minimum itself, for each model, whatever the others are."""

import warnings

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

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
    plan,
    train_many,
)
from leakgauge.training.engines.base import PreparedJob
from leakgauge.training.engines.logistic import multinomial_subsets as softmax_subsets
from leakgauge.training.engines.logistic.multinomial_subsets import MultinomialLogisticRegressionSubsets
from leakgauge.training.engines.refit import Refit
from leakgauge.training.subsets import DenseSubsets, balanced_subsets, random_subsets, with_and_without

ENGINE = MultinomialLogisticRegressionSubsets()


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


def people(n, d, seed, *, k=4, slope=1.0):
    """Normal features, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    chances = softmax(slope * (X @ rng.normal(size=(d, k))) / np.sqrt(d), axis=1)
    y = (rng.random(n)[:, None] > chances.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return Records.from_arrays(X, np.array([f"class {c}" for c in range(k)])[y])


def some_people(n, seed):
    return people(n, 5, seed)


def categories(n, seed, sizes=(3, 8, 4, 16, 20), k=3):
    """One-hot attributes, some of whose categories hardly occur."""
    rng = np.random.default_rng(seed)
    codes = [np.minimum(rng.geometric(0.35, n) - 1, size - 1) for size in sizes]
    X = np.concatenate([np.eye(size)[code] for size, code in zip(sizes, codes, strict=True)], axis=1)
    return Records.from_arrays(X, (codes[0] + rng.integers(0, k, n)) % k, task="classification")


def halves(records, n_models, seed=0):
    return balanced_subsets(len(records), len(records) // 2, n_models, np.random.default_rng(seed))


def few(records, size, n_models, seed=0):
    return random_subsets(len(records), size, n_models, np.random.default_rng(seed))


# ---------------------------------------------------------------- nothing to find


@pytest.mark.parametrize("size", [200, 100, 20])
def test_equal_subsets_give_equal_models(size):
    records = people(200, 5, 1)
    members = np.tile(np.arange(200) % (200 // size) == 0, (40, 1))  # more than go in step
    found = run(LogisticRegression(), records, members)
    np.testing.assert_allclose(found, np.repeat(found[:1], 40, axis=0), rtol=0, atol=1e-6)


@pytest.mark.parametrize("size", [100, 20])
def test_features_of_zeros_leave_the_share_of_the_classes(size):
    """Without anything to go by the intercepts alone are fitted, and they are not penalised."""
    rng = np.random.default_rng(2)
    records = Records.from_arrays(np.zeros((200, 3)), rng.integers(0, 3, 200), task="classification")
    members = few(records, size, 20)
    found = run(LogisticRegression(C=0.01), records, members)
    shares = members.members @ np.eye(3)[records.labels] / size
    expected = np.log(shares)[:, None, :]
    np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=0, atol=1e-6)


@pytest.mark.parametrize("make", [some_people, categories])
def test_a_feature_of_zeros_has_no_weight(make):
    records = make(100, 3)
    d = records.features.shape[1]
    X = np.concatenate([records.features, np.zeros((100, 1))], axis=1)
    wider = Records.from_arrays(X, records.schema.decode_labels(records.labels), task="classification")
    asked = X.copy()
    asked[:, d] = 1.0
    members = halves(records, 6)
    found = run(LogisticRegression(), wider, members, asked)
    np.testing.assert_allclose(found, run(LogisticRegression(), records, members), rtol=0, atol=2e-6)


# ---------------------------------------------------------------- known answers


@pytest.mark.parametrize("copies", [1, 7])
@pytest.mark.parametrize("share", [1.0, 0.01])
def test_three_corners_by_hand(copies, share):
    """k people at each unit vector of three, each corner a class: by symmetry W = w (3 I - 11'), 2 w = k C (1 - p).

    The probability p of the right class at its corner is e^2w / (e^2w + 2 e^-w); at the origin all are 1/3.
    """
    n = round(copies / share)
    corners = np.eye(3)
    records = Records.from_arrays(np.repeat(corners, n, axis=0), np.repeat(np.arange(3), n), task="classification")
    members = np.zeros((2, 3, n), dtype=bool)
    members[0, :, :copies] = members[1, :, n - copies :] = True
    asked = np.concatenate([corners, np.zeros((1, 3))])
    found = run(LogisticRegression(C=0.5), records, members.reshape(2, 3 * n), asked)
    w = brentq(lambda w: copies * 0.5 * (1 - 1 / (1 + 2 * np.exp(-3 * w))) - 2 * w, 0, copies, xtol=1e-14)
    expected = log_softmax(asked @ (w * (3 * np.eye(3) - 1)), axis=1)
    np.testing.assert_allclose(found, np.tile(expected, (2, 1, 1)), rtol=0, atol=1e-6)


# ---------------------------------------------------------------- the slow twin


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_halves(C, intercept):
    records = people(300, 15, 4)
    found = check(LogisticRegression(C=C, fit_intercept=intercept), records, halves(records, 6))
    np.testing.assert_allclose(np.exp(found).sum(axis=2), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weight", [None, "balanced", {0: 3.0, 1: 0.5, 2: 1.0}, {0: 2.0}])
@pytest.mark.parametrize("size", [400, 60])
def test_weights_of_classes(weight, size):
    records = categories(800, 5)
    check(LogisticRegression(class_weight=weight), records, few(records, size, 5))


def test_small_subsets_of_a_large_pool(monkeypatch):
    """Products that leave zeros out and products that do not; the metric from a sample of the pool."""
    monkeypatch.setattr(softmax_subsets, "METRIC_ROWS", 500)
    for records in (categories(3000, 6), people(3000, 10, 6)):
        check(LogisticRegression(C=10.0), records, few(records, 100, 6))


def test_subsets_of_very_different_sizes():
    records = people(600, 8, 7, k=3)
    rng = np.random.default_rng(8)
    sizes = [600, 3, 590, 10, 300, 40, 150, 5, 200, 80, 201, 199, 20, 4]
    members = np.zeros((len(sizes), 600), dtype=bool)
    for row, size in zip(members, sizes, strict=True):
        row[[rng.choice(np.flatnonzero(records.labels == c)) for c in range(3)]] = True
        row[rng.choice(np.flatnonzero(~row), size - 3, replace=False)] = True
    check(LogisticRegression(), records, members)


@pytest.mark.parametrize("make", [some_people, categories])
def test_pairs_with_and_without_a_record(make):
    """Two models that share all rows but one, and their difference, which is what they are for."""
    records = make(300, 9)
    members = with_and_without(300, 150, np.arange(4), 2, np.random.default_rng(10))
    groups = list(softmax_subsets._alike(members.members, 21))
    assert [(group.start, group.stop) for group in groups] == [(i, i + 2) for i in range(0, 16, 2)]
    found = check(LogisticRegression(), records, members)
    assert (np.abs(found[0::2] - found[1::2]).max(axis=(1, 2)) > 1e-3).all()


@pytest.mark.parametrize("size", [200, 40])
def test_classes_that_can_be_told_apart(size):
    """With more features than records, and with two features that tell: the penalty alone holds the weights back."""
    for records in (people(400, 60, 11, slope=20.0), people(400, 2, 12, slope=1000.0)):
        check(LogisticRegression(C=10.0), records, few(records, size, 3))


def test_more_columns_than_the_pool_has_records():
    check(LogisticRegression(), people(40, 60, 13), halves(people(40, 60, 13), 4))


@pytest.mark.parametrize("data", [load_iris(), load_wine()], ids=["iris", "wine"])
@pytest.mark.parametrize("C", [1e-3, 1.0])
def test_real_measurements_on_their_own_scales(data, C):
    records = Records.from_arrays(data.data, data.target, task="classification")
    check(LogisticRegression(C=C), records, halves(records, 4))


@pytest.mark.parametrize("make", [some_people, categories])
def test_gradients_lead_so_near_to_the_minima_that_one_step_of_newton_is_enough(make, monkeypatch):
    records, steps = make(200, 5), []
    step = softmax_subsets._newton_step
    monkeypatch.setattr(softmax_subsets, "_newton_step", lambda *args: steps.append(1) or step(*args))
    run(LogisticRegression(), records, halves(records, 8))
    assert len(steps) == 1


@pytest.mark.parametrize("size", [100, 20])
def test_hardly_any_penalty_takes_a_metric_of_each_model(size, monkeypatch):
    """The bound by the penalty says nothing here; Newton's method for each model alone goes on."""
    records = people(200, 3, 14)
    members = few(records, size, 5)
    alone = []
    method = softmax_subsets.solve
    monkeypatch.setattr(softmax_subsets, "solve", lambda *args: alone.append(1) or method(*args))
    check(LogisticRegression(C=1e6), records, members)
    assert len(alone) > 2


@pytest.mark.parametrize("size", [100, 40])
def test_columns_that_say_the_same_and_people_who_are_the_same(size):
    records = people(200, 4, 15)
    X = np.concatenate([records.features, records.features[:, :2], np.ones((200, 1)), np.full((200, 1), 0.1)], axis=1)
    X[100:150] = X[0]
    records = Records.from_arrays(X, records.schema.decode_labels(records.labels))
    check(LogisticRegression(), records, few(records, size, 4))


def test_classes_keep_the_order_of_the_schema():
    """And a class that no record of the pool has is impossible."""
    records = people(120, 2, 16, k=3, slope=5.0)
    y = records.schema.decode_labels(records.labels)
    order = ("class 2", "nobody", "class 0", "class 1")
    reordered = Records.from_arrays(records.features, y, classes=order)
    members = halves(records, 4)
    found, plain = check(LogisticRegression(), reordered, members), run(LogisticRegression(), records, members)
    np.testing.assert_allclose(found[..., [2, 3, 0]], plain, rtol=0, atol=2e-6)
    assert (found[..., 1] == -np.inf).all()


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("size", [150, 30])
def test_encoded_categories(sparse, size):
    rng = np.random.default_rng(17)
    codes = rng.integers(0, 8, (300, 2)).astype(float)
    y = np.array(["a", "b", "c"])[(codes[:, 0] * rng.random(300) / 3).astype(int)]
    records = Records.from_arrays(codes, y, categorical=[0, 1])
    encoder = OneHotEncoder(categories=[np.arange(8.0)] * 2, sparse_output=sparse)
    check(make_pipeline(encoder, LogisticRegression()), records, few(records, size, 5))


@pytest.mark.parametrize("size", [100, 20])
def test_each_model_answers_about_records_of_its_own(size):
    records = people(200, 6, 18)
    index = np.random.default_rng(19).integers(0, 200, (8, 5))
    check(LogisticRegression(), records, few(records, size, 8), EachModel(index))


@pytest.mark.parametrize("make", [some_people, categories])
def test_queries_far_from_the_pool(make):
    """The bound is on the answers to what is asked, however far away that is."""
    records = make(300, 20)
    check(LogisticRegression(), records, halves(records, 4), 50 * records.features[:20])


def test_leave_one_out_and_everything():
    records = people(100, 3, 21)
    check(LogisticRegression(class_weight="balanced"), records, leave_one_out(100, np.arange(5)))
    check(LogisticRegression(class_weight="balanced"), records, everything(100, 2))


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cg", "newton-cholesky", "sag", "saga"])
def test_every_solver_of_the_same_minimum(solver):
    records = people(60, 2, 22)
    members = halves(records, 2)
    found = run(LogisticRegression(solver=solver), records, members)
    np.testing.assert_array_equal(found, run(LogisticRegression(), records, members))


# ---------------------------------------------------------------- classes that a training set lacks


@pytest.mark.parametrize("make", [some_people, categories])
@pytest.mark.parametrize("weight", [None, "balanced"])
def test_classes_without_records_are_impossible(make, weight):
    """Also where two are left, which scikit-learn fits by one vector and penalises half as much."""
    records = make(200, 23)
    k = len(records.schema.classes)
    rng = np.random.default_rng(24)
    members = np.array(
        [np.isin(records.labels, rng.choice(k, n, replace=False)) & (rng.random(200) < 0.5) for n in (2, 2, k - 1, k)]
    )
    found = check(LogisticRegression(class_weight=weight), records, members)
    for answers, own in zip(found, members, strict=True):
        lacks = ~np.isin(np.arange(k), records.labels[own])
        np.testing.assert_array_equal(np.isinf(answers), np.broadcast_to(lacks, answers.shape))


def test_weights_by_name_where_a_class_is_missing_are_what_the_plain_loop_makes_of_them():
    """scikit-learn takes weights of all classes, and refuses those of some where one of these is missing."""
    records = people(100, 3, 25, k=3)
    members = halves(records, 2).members & (records.labels != 2)
    for weight, n_failed in (
        ({"class 0": 2.0, "class 1": 1.0, "class 2": 3.0}, 0),
        ({"class 0": 2.0, "class 2": 3.0}, 2),
    ):
        estimator = LogisticRegression(class_weight=weight, tol=1e-8)
        found = ENGINE.prepare(job_of(estimator, records, members)).all()
        plain = Refit().prepare(job_of(estimator, records, members)).all()
        np.testing.assert_allclose(found.answers, plain.answers, rtol=0, atol=1e-4)
        assert found.failures == plain.failures
        assert len(found.failures) == n_failed


def test_one_class_only_is_a_failure_as_in_the_plain_loop():
    records = people(50, 3, 26)
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


# ---------------------------------------------------------------- a model and the others


def test_answers_do_not_depend_on_the_other_models():
    records = categories(900, 27)
    members = np.concatenate([halves(records, 6).members, few(records, 50, 6).members])
    job = job_of(LogisticRegression(), records, members)
    whole = ENGINE.prepare(job).all().answers
    for model in (0, 3, 7, 11):
        alone = ENGINE.prepare(job.part(np.array([model]))).all().answers
        np.testing.assert_allclose(alone[0], whole[model], rtol=0, atol=ENGINE.tolerance)
    np.testing.assert_array_equal(ENGINE.prepare(job).all().answers, whole)


@pytest.mark.slow
def test_workers_and_parts_give_the_same_table():
    records = categories(60, 28)
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


def test_it_is_what_such_a_job_is_done_by():
    records = people(60, 3, 29)
    chosen = plan(job_of(LogisticRegression(), records, halves(records, 4)))
    assert chosen.engine.name == ENGINE.name
    assert chosen.n_trained == 4


# ---------------------------------------------------------------- no verified model


def test_what_cannot_be_verified_is_trained_as_asked_and_counted(monkeypatch):
    records = people(50, 3, 30)
    members = halves(records, 3)
    estimator = LogisticRegression(tol=1e-6)
    monkeypatch.setattr(softmax_subsets, "LOG_PROBABILITY_TOLERANCE_NATS", -1.0)
    monkeypatch.setattr(softmax_subsets, "MAX_OWN_METRIC_SIZE", 0)
    outcome = ENGINE.prepare(job_of(estimator, records, members)).all()
    assert outcome.n_unconverged == 3
    np.testing.assert_array_equal(outcome.answers, Refit().prepare(job_of(estimator, records, members)).all().answers)


class Mine(LogisticRegression):
    """A subclass may do anything."""


REFUSED = [
    (Mine(), "Mine is not LogisticRegression"),
    (make_pipeline(StandardScaler(), LogisticRegression()), "StandardScaler is fitted on the data"),
    (make_pipeline(FunctionTransformer(np.log), LogisticRegression()), "cannot be given this table"),
    (LogisticRegression(l1_ratio=0.5), "a squared penalty only"),
    (LogisticRegression(C=np.inf), "a squared penalty only"),
    (LogisticRegression(solver="liblinear"), "does not fit all classes together"),
    (LogisticRegression(class_weight={"maybe": 1.0}), "cannot use these weights"),
    (LogisticRegression(class_weight={"class 1": 0.0}), "weights above 0 only"),
    (RidgeClassifier(), "RidgeClassifier is not LogisticRegression"),
]


@pytest.mark.filterwarnings("ignore:invalid value encountered in log")
@pytest.mark.parametrize(("estimator", "message"), REFUSED, ids=[message[:30] for _, message in REFUSED])
def test_refusals_say_why(estimator, message):
    records = people(30, 2, 31, k=3)
    job = job_of(estimator, records, halves(records, 2))
    assert message in str(ENGINE.prepare(job))
    assert message in str(ENGINE.prepare(job.part(np.array([0]))))


def test_two_classes_and_large_tables_are_refused(monkeypatch):
    two = Records.from_arrays(np.arange(6.0)[:, None], [0, 1] * 3)
    assert "fewer than three classes" in str(ENGINE.prepare(job_of(LogisticRegression(), two, everything(6))))
    records = people(30, 2, 32)
    monkeypatch.setattr(softmax_subsets, "MAX_MATRIX_NUMBERS", 59)
    assert "30 queries with 2 columns" in str(
        ENGINE.prepare(job_of(LogisticRegression(C=3.0), records, everything(30)))
    )


@pytest.mark.parametrize(
    ("n_columns", "scale", "tol", "refused"),
    [(220, 1.0, 1e-4, True), (220, 0.9, 1e-4, False), (220, 1.0, 1e-6, False), (190, 1.2, 1e-4, False)],
)
def test_where_the_solver_stops_early_it_is_faster(n_columns, scale, tol, refused):
    """Many columns of variance 1 at C = 1: as a user who asked for no closer answers trains, so does the attacker."""
    wide = people(300, n_columns, 5)
    X = scale * wide.features / wide.features.std(axis=0)
    records = Records.from_arrays(X, wide.labels.astype(str))
    estimator = LogisticRegression(tol=tol)
    told = ENGINE.prepare(job_of(estimator, records, halves(records, 2)))
    assert ("stops so early" in str(told)) == refused, told


# ---------------------------------------------------------------- the bound itself


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("make", [some_people, categories])
def test_the_bound_holds_for_any_weights_and_is_not_far_off(make, intercept):
    """Weights moved away from the minimum, a little and a lot: no answer is farther off than the bound says."""
    records = make(200, 33)
    job = job_of(LogisticRegression(fit_intercept=intercept), records, everything(200))
    pool = MultinomialLogisticRegressionSubsets().pool(job)
    metric, block = softmax_subsets._metric(pool, 0), softmax_subsets._Block.of(pool, everything(200).members)
    best, sure = softmax_subsets._polish(pool, metric, block, softmax_subsets._descend(metric, block), pool.radius)
    assert sure.all()
    expected = log_softmax((pool.X @ best[:, 0].T), axis=1)
    rng = np.random.default_rng(34)
    tightest, told = np.inf, 0
    for distance in (1e-6, 1e-4, 1e-3, 1e-2, 0.1):
        for _ in range(20):
            moved = distance * rng.normal(size=best[:, 0].shape) * (rng.random(best.shape[2]) < 0.5)
            W = best[:, 0] + moved - moved.mean(axis=0)
            bound = softmax_subsets._measure(pool, block, block.groups[0], W[None], pool.radius).error[0]
            error = np.abs(log_softmax(pool.X @ W.T, axis=1) - expected).max()
            if bound < 1.59:  # what is larger says nothing
                told += 1
                assert error <= bound + 1e-7
                tightest = min(tightest, bound / max(error, 1e-12))
    assert told > 30
    assert tightest < 100
