"""Discriminant analysis without a record: by hand, and where scikit-learn's own special cases begin."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

from leakgauge.models import answers
from leakgauge.records import Records
from leakgauge.training import EachModel, Job, Randomness, SklearnLearner, leave_one_out
from leakgauge.training.engines.base import PreparedJob, Refusal
from leakgauge.training.engines.discriminants import Inverse, LinearDiscriminants, QuadraticDiscriminants, ScatterMatrix
from leakgauge.training.engines.refit import Refit

ENGINES = {LinearDiscriminantAnalysis: LinearDiscriminants(), QuadraticDiscriminantAnalysis: QuadraticDiscriminants()}


def job_of(estimator, records):
    queries = EachModel(np.arange(len(records))[:, None])
    return Job(SklearnLearner(estimator), records, leave_one_out(len(records)), queries, 0, Randomness.COMMON)


def logs(estimator, X, y):
    job = job_of(estimator, Records.from_arrays(np.array(X, dtype=float), y))
    engine = ENGINES[type(estimator)]
    assert isinstance(engine.prepare(job), PreparedJob)
    return engine.prepare(job).all().answers[:, 0]


def refit_logs(estimator, X, y):
    records = Records.from_arrays(np.array(X, dtype=float), y)
    models = (SklearnLearner(estimator).fit(records[np.arange(len(y)) != t], seed=0).model for t in range(len(y)))
    k = len(records.schema.classes)
    return np.array([answers(model, records.features[t : t + 1], k)[0] for t, model in enumerate(models)])


@pytest.mark.parametrize("estimator", [LinearDiscriminantAnalysis(), QuadraticDiscriminantAnalysis()], ids=str)
def test_a_thousand_copies_hide_each_other(estimator):
    X, y = np.tile([[0.0], [1.0], [1.0], [2.0]], (1000, 1)), np.tile(["a", "a", "b", "b"], 1000)
    full = answers(
        SklearnLearner(estimator).fit(Records.from_arrays(X, y), seed=0).model, Records.from_arrays(X, y).features, 2
    )
    assert np.abs(logs(estimator, X, y) - full).max() <= 0.01


@pytest.mark.parametrize("solver", ["svd", "lsqr", "eigen"])
def test_lda_by_hand(solver):
    # Without the record at 5 class a is 0, 2 and class b is 10, 12: means 1 and 11, variance 1, so that the squared
    # distances are 16 and 36 and the log odds 10.
    found = logs(LinearDiscriminantAnalysis(solver=solver), [[0], [2], [5], [10], [12]], list("aaabb"))
    np.testing.assert_allclose(found[2], [-np.log1p(np.exp(-10)), -np.log1p(np.exp(10))], rtol=1e-10)


def test_qda_by_hand():
    # Without the record at 5 class a is 0, 2 and class b is 10, 14: means 1 and 12, variances 1 and 4 (divided by n) or
    # 2 and 8 (divided by n - 1, as older releases of scikit-learn do), which the fit to these four tells.
    X, y = [[0], [2], [5], [10], [14]], list("aaabb")
    rest = QuadraticDiscriminantAnalysis().fit([[0], [2], [10], [14]], list("aabb"))
    a, b = (float(scaling[0]) for scaling in rest.scalings_)
    assert (a, b) in [(pytest.approx(1), pytest.approx(4)), (pytest.approx(2), pytest.approx(8))]
    odds = -0.5 * (16 / a + np.log(a)) + 0.5 * (49 / b + np.log(b))
    found = logs(QuadraticDiscriminantAnalysis(), X, y)
    np.testing.assert_allclose(found[2], [-np.log1p(np.exp(-odds)), -np.log1p(np.exp(odds))], rtol=1e-10)


def test_far_apart_lda_keeps_its_digits():
    """Where scikit-learn's probability is 0 or has lost its digits, its scores say what the logarithm is."""
    rng = np.random.default_rng(0)
    for distance in (0.0, 3.0, 4.5, 6.0, 30.0):
        y = np.repeat(["left", "right"], 20)
        X = rng.normal(size=(40, 2)) + np.where(y == "right", distance, 0.0)[:, None]
        np.testing.assert_allclose(
            ENGINES[LinearDiscriminantAnalysis]
            .prepare(job_of(LinearDiscriminantAnalysis(), Records.from_arrays(X, y, classes=["right", "left"])))
            .all()
            .answers[:, 0, ::-1],
            refit_logs(LinearDiscriminantAnalysis(), X, y),
            rtol=1e-8,
            atol=1e-8,
        )


def test_means_that_lie_on_a_line_come_under_the_cut_off():
    """Three means on a line differ in one direction only; scikit-learn leaves the other out, and so it is trained.

    Off the line by more than the cut-off they are not.
    """
    rng = np.random.default_rng(1)
    inner = np.tile(rng.normal(size=(10, 2)), (3, 1))
    X = inner + np.repeat([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]], 10, axis=0)
    y, estimator = np.repeat(["a", "b", "c"], 10), LinearDiscriminantAnalysis(tol=0.1)
    assert "rounding or a cut-off shows in 30 of 30" in str(
        LinearDiscriminants().prepare(job_of(estimator, Records.from_arrays(X, y)))
    )
    X[y == "b", 1] += 2.0
    assert isinstance(LinearDiscriminants().prepare(job_of(estimator, Records.from_arrays(X, y))), PreparedJob)
    np.testing.assert_allclose(logs(estimator, X, y), refit_logs(estimator, X, y), rtol=1e-10)


def test_a_cut_off_of_less_than_half_of_the_only_singular_value_leaves_no_doubt():
    """One feature over its deviation: of the four records that stay the singular value is sqrt(4 / (4 - 2))."""
    X, y, estimator = [[0.0], [2.0], [10.0], [11.0], [12.0]], list("aabbb"), LinearDiscriminantAnalysis(tol=0.6)
    ready = LinearDiscriminants().prepare(job_of(estimator, Records.from_arrays(np.array(X), y)))
    assert not ready.solved.doubtful.any()
    np.testing.assert_allclose(logs(estimator, X, y), refit_logs(estimator, X, y), rtol=1e-10, atol=1e-12)


def test_dummies_of_all_categories_need_no_reference_category():
    """Two sets of dummies that each sum to 1 are of rank two less than their number; without one of each, of full."""
    rng = np.random.default_rng(4)
    first, second = rng.integers(0, 4, 80), rng.integers(0, 3, 80)
    X = np.column_stack([first[:, None] == np.arange(4), second[:, None] == np.arange(3), rng.normal(size=80)])
    y = rng.integers(0, 3, 80)
    full = logs(LinearDiscriminantAnalysis(), X.astype(float), y)
    np.testing.assert_allclose(full, refit_logs(LinearDiscriminantAnalysis(), X.astype(float), y), rtol=1e-10)
    less = logs(LinearDiscriminantAnalysis(), np.delete(X, [0, 4], axis=1).astype(float), y)
    np.testing.assert_allclose(full, less, rtol=1e-10)


def test_where_features_depend_on_each_other_no_query_is_answered_beside_them():
    """A query whose dummies do not sum to 1 is answered in directions that hang on scikit-learn's scaling."""
    rng = np.random.default_rng(5)
    X = np.column_stack([np.arange(40) % 2, np.arange(40) % 2 == 0, rng.normal(size=40)]).astype(float)
    records = Records.from_arrays(X, rng.integers(0, 2, 40))
    job = job_of(LinearDiscriminantAnalysis(), records)
    ready = LinearDiscriminants().prepare(job)
    case, solved = ready.case, ready.solved
    inside, outside = np.array([[0.0, 1.0, 0.3]]), np.array([[1.0, 1.0, 0.3]])
    assert not solved.asked(case.removed, inside)[1].any()
    assert solved.asked(case.removed, outside)[1].all()
    asked = Job(job.learner, records, leave_one_out(40, np.arange(3)), outside, 0, Randomness.COMMON)
    np.testing.assert_allclose(
        LinearDiscriminants().prepare(asked).all().answers,
        Refit().prepare(asked).all().answers,
        rtol=1e-9,
    )


@pytest.mark.parametrize("solver", ["lsqr", "eigen"])
def test_what_is_left_of_a_shrunk_covariance_without_the_record_far_away(solver):
    """Ten digits of the trace are the one record's: what subtraction leaves of it is not enough, and it is trained."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.repeat(["a", "b"], 15)
    X[3] = 1e5, 3e4
    estimator = LinearDiscriminantAnalysis(solver=solver, shrinkage=1.0)
    np.testing.assert_allclose(logs(estimator, X, y), refit_logs(estimator, X, y), rtol=1e-8, atol=1e-8)


def test_one_class_is_refused():
    job = job_of(LinearDiscriminantAnalysis(), Records.from_arrays(np.arange(4.0)[:, None], list("aaaa")))
    assert str(LinearDiscriminants().prepare(job)) == "there is only one class"


@pytest.mark.parametrize(
    "estimator",
    [
        LinearDiscriminantAnalysis(),
        LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.3),
        LinearDiscriminantAnalysis(solver="eigen", priors=[0.2, 0.3, 0.5]),
        QuadraticDiscriminantAnalysis(reg_param=0.1),
        QuadraticDiscriminantAnalysis(priors=[0.2, 0.3, 0.5]),
    ],
    ids=str,
)
@pytest.mark.parametrize("own", [False, True])
def test_what_others_are_told_equals_the_slow_twin(estimator, own):
    """The same queries for all models, or three records for each; classes of different sizes and shapes, far from 0."""
    rng = np.random.default_rng(7)
    y = np.repeat([0, 1, 2], [8, 12, 16])
    X = rng.normal(size=(36, 2)) @ [[1.0, 0.4], [0.0, 2.0]] + np.array([[3.0, -1.0], [4.0, 1.0], [2.0, 2.0]])[y]
    queries = EachModel(rng.integers(0, 36, (36, 3))) if own else rng.normal(size=(4, 2)) + 2
    job = Job(SklearnLearner(estimator), Records.from_arrays(X, y), leave_one_out(36), queries, 0, Randomness.COMMON)
    ready = ENGINES[type(estimator)].prepare(job)
    assert not ready.solved.asked(ready.case.removed, X[:1])[1].any()
    np.testing.assert_allclose(ready.all().answers, Refit().prepare(job).all().answers, rtol=1e-9, atol=1e-12)


def test_other_solvers_of_qda_are_refused():
    records = Records.from_arrays(np.arange(6.0)[:, None], list("aaabbb"))
    if "solver" not in QuadraticDiscriminantAnalysis().get_params():
        pytest.skip("this release of scikit-learn has one solver")
    for parameters, message in (
        ({"solver": "eigen"}, "solver='eigen' is not supported; use 'svd'"),
        ({"shrinkage": 0.1}, "shrinkage is not supported; use reg_param"),
        ({"covariance_estimator": 1}, "covariance_estimator is not supported; use reg_param"),
    ):
        assert (
            str(QuadraticDiscriminants().prepare(job_of(QuadraticDiscriminantAnalysis(**parameters), records)))
            == message
        )


def test_a_feature_that_is_the_class_itself_is_refused():
    """A feature that is the class itself: scikit-learn leaves it out, by rounding or by its cut-off."""
    rng = np.random.default_rng(2)
    y = np.repeat(["a", "b"], 10)
    X = np.column_stack([rng.normal(size=20), y == "b"]).astype(float)
    reason = str(LinearDiscriminants().prepare(job_of(LinearDiscriminantAnalysis(), Records.from_arrays(X, y))))
    assert "features depend on each other within classes" in reason


def test_the_inverse_equals_inverting_for_each():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(20, 4)) * [1e-3, 1.0, 1.0, 1e3]
    scale = np.array([1e-3, 1.0, 2.0, 1e3])
    spread = ScatterMatrix.of(rows, scale)
    inverse = Inverse.of(spread.values, spread.coordinates(rows), 0.5)
    solved = inverse.apply(spread.coordinates(rows[::-1]))
    for t in range(20):
        less = (rows / scale).T @ (rows / scale) - 0.5 * np.outer(rows[t] / scale, rows[t] / scale)
        expected = np.linalg.solve(less, rows[19 - t] / scale)
        np.testing.assert_allclose(solved[t] @ spread.directions, expected, rtol=1e-9, atol=1e-12)
        assert inverse.left[t] == pytest.approx(np.linalg.det(less) / np.prod(spread.values), rel=1e-9)


@pytest.mark.parametrize(
    ("value", "refused"), [(0.1, True), (1 / 3, True), (1000.1, True), (1e17 + 16, True), (3.0, False), (0.0, False)]
)
def test_a_constant_whose_means_are_rounded_is_refused(value, refused):
    """scikit-learn divides by the deviation of the rounding errors, which then count like any feature."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(20, 2)), np.full(20, value)]
    found = LinearDiscriminants().prepare(
        job_of(LinearDiscriminantAnalysis(), Records.from_arrays(X, rng.integers(0, 3, 20)))
    )
    assert isinstance(found, Refusal) == refused
    if refused:
        assert "constant within classes" in found.words


@pytest.mark.parametrize("solver", ["svd", "lsqr", "eigen"])
def test_one_record_more_than_two_classes_need_is_enough(solver):
    """Without one of four, the other of its class is its own mean, and the other class has the spread."""
    X, y = [[0.0], [2.0], [10.0], [13.0]], list("aabb")
    found, expected = (one(LinearDiscriminantAnalysis(solver=solver), X, y) for one in (logs, refit_logs))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-12)


def test_a_class_of_fewer_records_than_columns_is_trained_without_each_of_its_own():
    """A penalty makes the covariance regular, and scikit-learn still counts the singular values of the class."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(35, 5)), ["a"] * 5 + ["b"] * 30
    job = job_of(QuadraticDiscriminantAnalysis(reg_param=0.5), Records.from_arrays(X, y))
    ready = QuadraticDiscriminants().prepare(job)
    assert ready.solved.unclear.tolist() == [True] * 5 + [False] * 30


@pytest.mark.parametrize(("more", "refused"), [(0.9e-6, False), (1.5e-6, True), (-1.5e-6, True)])
def test_priors_sum_to_one(more, refused):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), ["a", "b"] * 15
    job = job_of(LinearDiscriminantAnalysis(priors=[0.5, 0.5 + more]), Records.from_arrays(X, y))
    assert isinstance(LinearDiscriminants().prepare(job), Refusal) is refused
