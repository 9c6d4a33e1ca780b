"""Models without each candidate: those within searches, calibrations, bags and votes, and kernel machines."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LogisticRegression, Ridge, RidgeCV, SGDRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
)
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR
from sklearn.tree import DecisionTreeRegressor

from leakgauge import ReleaseRule, Settings, audit
from leakgauge.auditing.finding import Verdict
from leakgauge.auditing.membership import shadows
from leakgauge.defences import Binning
from leakgauge.errors import ModelError
from leakgauge.membership import MembershipEvidence, everyone_as_target, influences
from leakgauge.membership import without as planning
from leakgauge.membership.without import PlannedWithout
from leakgauge.models import AnswerKind
from leakgauge.records import Records, Units
from leakgauge.training import (
    HERE,
    DenseSubsets,
    Job,
    LeaveOneOut,
    PredictionTable,
    Randomness,
    SklearnLearner,
    balanced_subsets,
    plan,
)
from leakgauge.training import train_many as train

from .test_influences import drawn


@pytest.fixture
def nothing_stored(monkeypatch):
    """Other scores are not looked for, which takes longer than what is tested."""
    monkeypatch.setattr(shadows, "stored", lambda case: {})


ATTACK = influences.ATTACK
NEIGHBOURS = KNeighborsClassifier(30)
KERNEL = KernelRidge(kernel="rbf", gamma=0.1, alpha=3.0)
BAYES = GaussianNB()


def tapered(distances):
    return 1 / (1 + distances)


def manhattan(left, right):
    return float(np.abs(left - right).sum())


def planned(model, records, units=None, n_in=None):
    units = records.units if units is None else units
    return PlannedWithout.of(SklearnLearner(model), records, units, n_in or len(units), 0)


def answers(model, X, y):
    """Of models without each record, about all, where as many are trained on elsewhere."""
    return planned(model, Records.from_arrays(X, y)).train(HERE).answers


def moved(found):
    """By each record, less what they all have in common, in log-odds or values."""
    if found.shape[-1] > 1:
        found = found - found.mean(axis=-1, keepdims=True)
    return (found - found.mean(axis=0)).ravel()


def likeness(first, second):
    """The cosine between two lists of movements."""
    first, second = moved(first), moved(second)
    return first @ second / math.sqrt((first @ first) * (second @ second))


def refits(model, X, y, outputs):
    return np.stack([outputs(clone(model).fit(np.delete(X, j, 0), np.delete(y, j)), X) for j in range(len(y))])


def values(model, X):
    return model.predict(X)[:, None]


def logs(model, X):
    return np.log(model.predict_proba(X))


def margins(model, X):
    """How far the classifiers of pairs lean to each class, summed."""
    decided = model.decision_function(X)
    if decided.ndim == 1:
        return np.stack([-decided, decided], axis=-1)
    k = len(model.classes_)
    summed, pair = np.zeros((len(X), k)), 0
    for first in range(k):
        for second in range(first + 1, k):
            summed[:, first] += decided[:, pair]
            summed[:, second] -= decided[:, pair]
            pair += 1
    return summed


def played(model, X, y, n_models=16, seed=0):
    """The attack in games."""
    records = Records.from_arrays(X, y)
    subsets = balanced_subsets(len(y), len(y) // 2, n_models, np.random.default_rng(seed))
    table = train(SklearnLearner(model), records, subsets, X, seed=seed)
    without = planned(model, records, n_in=len(y) // 2).train(HERE)
    return everyone_as_target(table, records.labels, ATTACK, features=X, models_without=without).advantage.value


# Null.


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [
        SVR(C=0.3),
        SVC(C=0.3),
        GaussianProcessClassifier(RBF(2.0), optimizer=None),
        RadiusNeighborsRegressor(4.0),
        RadiusNeighborsClassifier(2.5, outlier_label=1),
        KNeighborsRegressor(20, weights=tapered),
        pytest.param(GridSearchCV(KERNEL, {"alpha": [1.0, 5.0]}, cv=2), marks=pytest.mark.slow),
        pytest.param(BaggingClassifier(KNeighborsClassifier(9), 3, random_state=0), marks=pytest.mark.slow),
    ],
)
def test_null_models_of_other_records_have_no_members(model):
    nothing_is_found(model)


def nothing_is_found(model, steps=None):
    """30 tables of 12 models that were trained on records of their own: within four standard errors of 0.

    Columns are rounded to some steps for each unit, or not at all.
    """
    found, regression = [], _regresses(model)
    for seed in range(30):
        X, y = drawn(80, 4, seed, regression=regression)
        X = X if steps is None else np.round(X * steps) / steps
        records = Records.from_arrays(X, y)
        told = []
        for m in range(12):
            other = clone(model).fit(*drawn(60, 4, 1000 + 12 * seed + m, regression=regression))
            if regression:
                told.append(values(other, X))
            elif isinstance(model, SVC):  # as calibrations of two classes have it
                lean = other.decision_function(X)
                told.append(-np.logaddexp(0, np.stack([lean, -lean], axis=-1)))
            else:
                with np.errstate(divide="ignore"):
                    told.append(logs(other, X))
        subsets = balanced_subsets(80, 40, 12, np.random.default_rng(seed))
        kind = AnswerKind.VALUES if regression else AnswerKind.PROBABILITIES
        table = PredictionTable(np.stack(told), kind, subsets, np.arange(12), "elsewhere")
        without = planned(model, records, n_in=40).train(HERE)
        found.append(everyone_as_target(table, records.labels, ATTACK, models_without=without).advantage.value)
    assert abs(np.mean(found)) < 4 * np.std(found) / math.sqrt(30)
    assert 0 < np.std(found) < 0.1


def _regresses(model):
    return isinstance(getattr(model, "estimator", model), RegressorMixin)


def test_what_is_fitted_is_fitted_in_an_order_that_says_nothing_of_members():
    seen = []

    class Recording(RegressorMixin, BaseEstimator):
        def __init__(self, regressor=None):
            self.regressor = regressor

        def fit(self, X, y):
            seen.append(X[:, 0].copy())
            self.fitted_ = True
            return self

        def predict(self, X):
            return np.zeros(len(X))

    X = np.arange(400.0)[:, None]
    assert planned(make_pipeline(StandardScaler(), Recording(KERNEL)), Records.from_arrays(X, X[:, 0])).jobs
    (order,) = seen
    below = (order[:200] < np.median(order)).sum()
    assert abs(below - 100) < 20, "of the first half of 400 candidates: four standard deviations"
    machine = planned(SVR(), Records.from_arrays(X, X[:, 0])).machines[0]
    assert abs((machine.order[:200] < 200).sum() - 100) < 20
    np.testing.assert_array_equal(np.sort(machine.order), np.arange(400))


# The slow twin.


@pytest.mark.parametrize(
    ("model", "outputs", "n_classes", "least"),
    [
        (GaussianProcessClassifier(RBF(2.0), optimizer=None), logs, 2, 0.995),
        pytest.param(GaussianProcessClassifier(RBF(2.0), optimizer=None), logs, 3, 0.95, marks=pytest.mark.slow),
        pytest.param(SVC(C=0.05, tol=1e-8), margins, 2, 0.7, marks=pytest.mark.slow),
        (SVC(tol=1e-8), margins, 2, 0.7),
        pytest.param(SVC(tol=1e-8, decision_function_shape="ovo"), margins, 3, 0.7, marks=pytest.mark.slow),
        pytest.param(NuSVC(nu=0.4, tol=1e-8), margins, 2, 0.3, marks=pytest.mark.slow),
        (SVC(C=0.05, kernel="linear", tol=1e-8), margins, 2, 0.6),
        pytest.param(SVR(C=0.05, tol=1e-8), values, 0, 0.7, marks=pytest.mark.slow),
        pytest.param(SVR(C=0.1, kernel="poly", degree=2, coef0=1.0, tol=1e-8), values, 0, 0.6, marks=pytest.mark.slow),
        (NuSVR(C=0.5, tol=1e-8), values, 0, 0.6),
        pytest.param(
            SVR(C=0.05, kernel=lambda a, b: np.exp(-0.2 * np.abs(a[:, None] - b).sum(axis=2)), tol=1e-8),
            values,
            0,
            0.6,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_kernel_machines_move_nearly_as_those_that_are_trained_without_each_record(model, outputs, n_classes, least):
    """Cosines; what is wrong by a sign or a class is far below 0.5, and each record's own is in the right place."""
    X, y = drawn(70, 3, 4, regression=n_classes == 0, n_classes=max(2, n_classes))
    found, exact = answers(model, X, y), refits(model, X, y, outputs)
    assert likeness(found, exact) > least
    assert likeness(found, exact[::-1]) < least / 2, "of other records"
    assert moved(found) @ moved(exact) > 0


def test_support_vectors_that_all_are_at_the_bound_move_outputs_by_their_kernels():
    """With a small C no coefficient answers: what a record adds is C times its kernel, up or down."""
    X, y = drawn(40, 3, 1, regression=True)
    model = SVR(C=1e-3, epsilon=0.0, gamma=0.3)
    found = answers(model, X, y)[:, :, 0]
    fitted = clone(model).fit(X, y)
    side = np.zeros(40)
    side[fitted.support_] = np.sign(fitted.dual_coef_[0])
    inside = np.abs(fitted.dual_coef_[0]) < 1e-3 * (1 - 1e-6)
    assert inside.sum() <= 2
    kernel = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    bound = np.setdiff1d(np.arange(40), fitted.support_[inside])
    expected = -1e-3 * side[:, None] * kernel
    np.testing.assert_allclose(found[bound], expected[bound], rtol=0.05, atol=2e-5)


# Models within models.


@pytest.mark.parametrize(
    ("model", "inner"),
    [
        (GridSearchCV(NEIGHBOURS, {"n_neighbors": [30]}, cv=2), NEIGHBOURS),
        (BaggingClassifier(NEIGHBOURS, 3), NEIGHBOURS),
        (CalibratedClassifierCV(BAYES, cv=2), BAYES),
        (OneVsRestClassifier(BAYES), BAYES),
        (VotingClassifier([("a", BAYES), ("b", RandomForestClassifier(3))], voting="soft"), BAYES),
        (StackingClassifier([("a", BAYES)], cv=2), BAYES),
        (GridSearchCV(CalibratedClassifierCV(BAYES, cv=2), {"method": ["sigmoid"]}, cv=2), BAYES),
    ],
)
def test_of_a_model_around_another_it_is_the_one_within(model, inner):
    X, y = drawn(120, 3, 0)
    np.testing.assert_array_equal(answers(model, X, y), answers(inner, X, y))


def test_votes_are_means():
    X, y = drawn(60, 3, 0)
    both = VotingClassifier([("a", BAYES), ("b", BernoulliNB()), ("c", RandomForestClassifier(3))], voting="soft")
    mean = (answers(BAYES, X, y) + answers(BernoulliNB(), X, y)) / 2
    np.testing.assert_allclose(answers(both, X, y), mean)


def test_settings_are_those_that_were_found():
    X, y = drawn(60, 3, 0, regression=True)
    search = GridSearchCV(KERNEL, {"alpha": [10.0, 1e9]}, cv=2)
    np.testing.assert_array_equal(answers(search, X, y), answers(clone(KERNEL).set_params(alpha=10.0), X, y))
    process = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(1.0))
    kernel = clone(process).fit(X, y).kernel_
    assert kernel.k1.length_scale != pytest.approx(1.0, rel=0.01)
    alone = GaussianProcessRegressor(kernel, optimizer=None)
    np.testing.assert_allclose(answers(process, X, y), answers(alone, X, y), atol=1e-3)
    target = TransformedTargetRegressor(KERNEL, transformer=StandardScaler())
    np.testing.assert_array_equal(answers(target, X, y), answers(KERNEL, X, y))
    inside = planned(make_pipeline(StandardScaler(), search), Records.from_arrays(X, y))
    assert inside.jobs[0].learner.estimator.alpha == 10.0


def test_nothing_is_fitted_where_no_model_within_is_known(monkeypatch):
    X, y = drawn(60, 3, 0)
    records = Records.from_arrays(X, y)
    monkeypatch.setattr(SklearnLearner, "fit", lambda *_, **__: pytest.fail("fitted"))
    for model in (
        GridSearchCV(RandomForestClassifier(3), {"max_depth": [2]}, cv=2),
        make_pipeline(StandardScaler(), RandomForestClassifier(3)),
        BaggingClassifier(),
        LogisticRegression(solver="liblinear"),
        VotingClassifier([("a", RandomForestClassifier(3)), ("b", "drop")]),
    ):
        assert planned(model, records) is None


def test_few_are_trained_where_rounding_leaves_many_open(monkeypatch):
    """Kernel ridge regression that nearly interpolates: near answers serve an attack as well."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 2)), 30 + 1e-4 * rng.normal(size=(30, 2))])
    y = rng.normal(size=90)
    job = planned(KernelRidge(kernel="rbf", gamma=0.1, alpha=1e-4), Records.from_arrays(X, y)).jobs[0]
    exact = plan(job).train(HERE).answers
    fits, fit = [], SklearnLearner.fit
    monkeypatch.setattr(SklearnLearner, "fit", lambda *given, **named: fits.append(1) or fit(*given, **named))
    for most in (10**6, 5):
        fits.clear()
        found = plan(job).prepared.nearly(most)
        assert (len(fits) > 5) == (most > 5)
        if most > 5:
            np.testing.assert_array_equal(found, exact)
        else:
            assert likeness(found, exact) > 0.99
            assert not np.array_equal(found, exact)


# What no other attack sees.


@pytest.mark.parametrize(
    ("model", "n", "regression", "least"),
    [
        (SVR(C=0.1, gamma=0.05), 400, True, 0.2),
        (SVC(C=0.1, probability=True, random_state=0), 400, False, 0.15),
        (GaussianProcessClassifier(RBF(3.0), optimizer=None), 200, False, 0.15),
        (GridSearchCV(NEIGHBOURS, {"n_neighbors": [20, 30]}, cv=2), 400, False, 0.15),
    ],
)
@pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")
def test_what_no_other_attack_sees(model, n, regression, least):
    X, y = drawn(n, 6, 3, regression=regression)
    assert played(model, X, y) > least


@pytest.mark.long
def test_an_audit_fails_neighbours_whose_number_was_searched_for():
    X, y = drawn(600, 5, 7)
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [40, 60]}, cv=3)
    data = {"train": (X[:300], y[:300]), "holdout": (X[300:], y[300:]), "progress": False}
    settings = Settings(n_influence=0, rule=ReleaseRule(advantage=0.1, dtp=None))
    found = audit(search.fit(*data["train"]), settings=settings, **data)
    assert found.verdict is Verdict.FAILS
    assert max(found.attacks, key=lambda one: one.advantage.value).name == "influence"


class Odd(RegressorMixin, BaseEstimator):
    """An estimator whose parameters and attributes are named as those of others."""

    def __init__(self, estimator=None, kernel=None, optimizer=None, alpha=None, C=1, refit=True):
        self.estimator, self.kernel, self.optimizer = estimator, kernel, optimizer
        self.alpha, self.C, self.refit = alpha, C, refit

    def fit(self, X, y):
        self.kernel_, self.best_estimator_, self.steps_ = 3, None, "none"
        return self

    def predict(self, X):
        return np.zeros(len(X))


class Whole(Odd):
    """A number of it has to be whole, and it says so in its own words."""

    def set_params(self, **changed):
        if any(isinstance(value, float) for value in changed.values()):
            raise TypeError("secret")
        return super().set_params(**changed)


class Unready(Odd):
    """One parameter cannot be read."""

    @property
    def estimators(self):
        raise RuntimeError("secret")


@pytest.mark.parametrize(
    "model",
    [
        Odd(),
        Whole(alpha=3),
        Unready(KERNEL),
        Odd(C=10**400),
        Odd(KNeighborsRegressor(float("inf"))),
        Odd(KERNEL, "rbf", 1, "large", True),
        Odd(type("Half", (), {"fit": lambda self, X, y: self})()),
        make_pipeline(StandardScaler(), Odd(Odd(Odd(Odd(Odd(KERNEL)))))),
        type("SVC", (Odd,), {})(),
        type("GaussianProcessRegressor", (Odd,), {})(),
        GridSearchCV(KERNEL, {"alpha": [1.0]}, refit=False, cv=2),
    ],
)
def test_estimators_of_any_kind_are_looked_into_without_harm(model):
    X, y = drawn(60, 3, 0, regression=True)
    found = planned(model, Records.from_arrays(X, y))
    assert found is None or found.train(HERE).answers.shape == (60, 60, 1)


def test_an_estimator_within_itself_ends_no_audit():
    X, y = drawn(60, 3, 0, regression=True)
    records, learner = Records.from_arrays(X, y), SklearnLearner(Odd(KERNEL))
    learner.estimator.estimator = learner.estimator
    assert PlannedWithout.of(learner, records, records.units, 30, 0) is None


def test_a_kernel_that_raises_ends_no_audit():
    X, y = drawn(90, 3, 0, regression=True)
    machine = planned(SVR(kernel=lambda left, right: 1 / 0), Records.from_arrays(X, y)).machines[0]
    with pytest.raises(ModelError, match=r"SVR cannot be looked into \(ZeroDivisionError\)$"):
        machine.without()
    X[3, 0] = np.nan
    assert planned(SVR(), Records.from_arrays(X, y)) is None


# Many records, block by block.


@pytest.fixture
def few_at_once(monkeypatch):
    monkeypatch.setattr(planning, "MAX_RECORDS", 100)
    monkeypatch.setattr(planning, "BLOCK", 70)


def test_blocks_are_halves_of_halves_along_the_widest_column():
    matrix = np.random.default_rng(0).normal(size=(500, 3)) * [50, 1, 0.1]
    blocks = planning._blocks(matrix, 70)
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(500))
    assert {len(one) for one in blocks} == {62, 63}
    spans = np.sort([(matrix[one, 0].min(), matrix[one, 0].max()) for one in blocks], axis=0)
    assert (spans[1:, 0] > spans[:-1, 1]).all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "most", "steps"),
    [
        pytest.param(model, most, steps, marks=() if i == j else pytest.mark.slow)
        for i, model in enumerate([KNeighborsRegressor(9), KNeighborsClassifier(9)])
        for j, (most, steps) in enumerate([(1000, 1), (70, None), (70, 1)])
    ],
)
def test_null_of_blocks_and_of_neighbours_at_the_same_distance(monkeypatch, model, most, steps):
    monkeypatch.setattr(planning, "MAX_RECORDS", most)
    monkeypatch.setattr(planning, "BLOCK", 30)
    nothing_is_found(model, steps)


@pytest.mark.long
@pytest.mark.parametrize("rows", [pytest.param((1, 1), marks=pytest.mark.slow), (5, 2)])
@pytest.mark.usefixtures("nothing_stored")
def test_null_of_copies_and_of_persons_with_other_numbers_of_rows(rows):
    """30 audits of models of other records that were drawn as often, or of persons with as many rows."""
    settings = Settings(attacks=("influence",), n_influence=0, rule=ReleaseRule(advantage=0.1, dtp=None))
    found = []
    for seed in range(30):
        X, y = drawn(90, 3, seed, regression=True)
        mine, theirs, others = np.split(np.arange(90), 3)
        if rows == (1, 1):
            mine, theirs = (np.concatenate([one, one[:10], one[:5]]) for one in (mine, theirs))
            persons = None
        else:
            mine, theirs, others = (
                np.repeat(one, n) for one, n in ((mine, rows[0]), (theirs, rows[0]), (others, rows[1]))
            )
            persons = (mine, others)
        noise = np.random.default_rng(seed).normal(size=(3, len(mine), 3)) * (persons is not None)
        held, target, outside = (X[one] + noise[i, : len(one)] for i, one in enumerate((mine, theirs, others)))
        model = KNeighborsRegressor(5).fit(target, y[theirs])
        result = audit(
            model, train=(held, y[mine]), holdout=(outside, y[others]), persons=persons, settings=settings,
            progress=False,
        )  # fmt: skip
        (one,) = result.attacks
        found.append(one.advantage.value)
    assert abs(np.mean(found)) < 4 * np.std(found) / math.sqrt(30)
    assert 0 < np.std(found) < 0.25


@pytest.mark.parametrize(
    "model",
    [
        KNeighborsRegressor(9),
        pytest.param(make_pipeline(StandardScaler(), KNeighborsRegressor(9)), marks=pytest.mark.slow),
        GridSearchCV(KNeighborsRegressor(9), {"n_neighbors": [9]}, cv=2),
        pytest.param(BaggingRegressor(KNeighborsRegressor(9), 3), marks=pytest.mark.slow),
    ],
)
def test_of_many_records_nearest_neighbours_are_looked_at_block_by_block(few_at_once, model):
    """Each candidate is left out once, of all others, and asked about with the others of its block."""
    X, y = drawn(150, 3, 4, regression=True)
    without = planned(model, Records.from_arrays(X, y)).train(HERE)
    parts = [without, *without.beside]
    assert [len(one.left_out) for one in parts] == [38, 37, 38, 37]
    np.testing.assert_array_equal(np.sort(np.concatenate([one.left_out for one in parts])), np.arange(150))
    X = StandardScaler().fit_transform(X) if hasattr(model, "steps") else X  # earlier steps stay as they are
    inner = KNeighborsRegressor(9)
    for one in parts:
        np.testing.assert_array_equal(one.asked, one.left_out)
        for answers, row in zip(one.answers, one.left_out, strict=True):
            expected = clone(inner).fit(np.delete(X, row, 0), np.delete(y, row)).predict(X[one.asked])
            np.testing.assert_allclose(answers[:, 0], expected, atol=1e-5)


def test_neighbours_at_the_same_distance_are_looked_at():
    """Of a table of whole numbers, whose exact models would mostly be trained; any neighbours count that are near."""
    X, y = drawn(400, 2, 4, regression=True)
    X = np.round(X * 2)
    records = Records.from_arrays(X, y)
    job = Job(
        SklearnLearner(KNeighborsRegressor(9)), records, LeaveOneOut(400, np.arange(400)), X, 0, Randomness.COMMON
    )
    assert plan(job).engine.trains
    found = planned(KNeighborsRegressor(9), records).train(HERE).answers[:, :, 0]
    whole = np.median(found, axis=0)
    assert ((found != whole).sum(axis=0) <= 9).all(), "without others than its neighbours nothing changes"
    assert np.isfinite(found).all()
    distances = ((X[:, None] - X) ** 2).sum(axis=-1)
    far = distances > np.sort(distances, axis=0)[9]
    assert not ((found != whole) & far).any()
    assert played(KNeighborsRegressor(9), X, y) > 0.08


def test_blocks_of_several_classes_are_smaller(few_at_once):
    X = np.random.default_rng(0).normal(size=(150, 3))
    for n_classes, most in ((2, 70), (3, 23)):
        without = planned(KNeighborsClassifier(9), Records.from_arrays(X, np.arange(150) % n_classes)).train(HERE)
        assert most / 2 < max(len(one.left_out) for one in (without, *without.beside)) <= most
        assert all(one.answers.shape[1:] == (len(one.left_out), n_classes) for one in (without, *without.beside))


@pytest.mark.parametrize(
    ("model", "least"),
    [
        (RadiusNeighborsRegressor(1.5), 0.5),
        (RadiusNeighborsClassifier(1.5, outlier_label="most_frequent"), 0.5),
        (make_pipeline(StandardScaler(), RadiusNeighborsRegressor(1.7)), 0.2),
        pytest.param(make_pipeline(MinMaxScaler(), RadiusNeighborsClassifier(0.4)), 0.2, marks=pytest.mark.slow),
        (KNeighborsRegressor(60, weights=tapered), 0.12),
        (make_pipeline(StandardScaler(), KNeighborsClassifier(60, weights=tapered)), 0.12),
        pytest.param(KNeighborsRegressor(60, metric=manhattan), 0.12, marks=pytest.mark.slow),
    ],
)
def test_neighbours_of_any_kind_are_looked_at(model, least):
    """Outputs jump where one record more is near: no output about the record itself shows that."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, size=(400, 2))
    y = X[:, 0] + rng.normal(size=400)
    y = y if is_regressor(model) else (y > 0).astype(int)
    assert played(model, X, y) > least


def test_an_audit_fails_neighbours_within_a_radius():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(400, 2))
    y = X[:, 0] + rng.normal(size=400)
    model = RadiusNeighborsRegressor(0.5).fit(X[:200], y[:200])
    settings = Settings(n_influence=0, n_shadows=16, rule=ReleaseRule(dtp=None))
    result = audit(model, train=(X[:200], y[:200]), holdout=(X[200:], y[200:]), settings=settings)
    assert result.verdict is Verdict.FAILS
    failing = {one.measure for one in result.findings if one.verdict is Verdict.FAILS}
    assert f"membership advantage, {ATTACK.title}" in failing


def test_weights_that_raise_are_no_error_of_the_audit():
    def refuse(distances):
        raise LookupError("secret 42")

    records = Records.from_arrays(*drawn(60, 3, 4, regression=True))
    without = planned(KNeighborsRegressor(9, weights=refuse), records)
    with pytest.raises(ModelError, match=r"outputs without each record cannot be had \(LookupError\)$"):
        without.train(HERE)


def test_of_many_records_no_other_models_are_looked_at(few_at_once, monkeypatch):
    X, y = drawn(101, 3, 4, regression=True)
    records = Records.from_arrays(X, y)
    for other in (KERNEL, SVR(), Ridge(), make_pipeline(StandardScaler(), Ridge())):
        assert planned(other, records) is None
        assert planned(other, records[np.arange(100)]) is not None
    assert planned(KNeighborsRegressor(9), records) is not None
    monkeypatch.setattr(planning, "MAX_NEAR", 100)
    assert planned(KNeighborsRegressor(9), records) is None


def test_scores_by_blocks_are_those_of_each_block_alone(few_at_once):
    """A person is in as many blocks as her rows are; her score is the mean over these."""
    X, y = drawn(160, 3, 5, regression=True)
    plain = Records.from_arrays(X, y)
    units = Units.of(np.repeat(np.arange(80), 2))
    records = Records(plain.features, plain.labels, plain.schema, plain.ids, persons=units.of_row)
    model = KNeighborsRegressor(9)
    subsets = balanced_subsets(80, 40, 12, np.random.default_rng(0)).of_rows(units)
    table = train(SklearnLearner(model), records, subsets, X, seed=0)
    whole = planned(model, records, n_in=40).train(HERE)
    held = MembershipEvidence(table.kind, table.answers[0], y, shadows=table, units=units, models_without=whole)
    scores = ATTACK.score(held)
    assert (scores[::2] == scores[1::2]).all()
    expected = [[] for _ in range(80)]
    for _, _, one in whole.parts():
        assert not one.beside
    for one in (whole, *whole.beside):
        rows = np.sort(one.left_out)
        alone = ATTACK.score(replace(held, models_without=replace(one, beside=())).about(rows))
        for unit in np.unique(units.of_row[rows]):
            expected[unit].append(alone[units.of_row[rows] == unit][0])
    assert {len(one) for one in expected} == {1, 2}
    np.testing.assert_allclose(scores[::2], [np.mean(one) for one in expected], rtol=1e-9)


def test_a_model_may_have_no_record_of_a_block(few_at_once):
    X, y = drawn(160, 3, 5, regression=True)
    records = Records.from_arrays(X, y)
    whole = planned(KNeighborsRegressor(9), records).train(HERE)
    members = balanced_subsets(160, 80, 12, np.random.default_rng(0)).members.copy()
    members[3, whole.left_out] = False
    table = train(SklearnLearner(KNeighborsRegressor(9)), records, DenseSubsets(members), X, seed=0)
    held = MembershipEvidence(table.kind, table.answers[0], y, shadows=table, models_without=whole)
    assert np.isfinite(ATTACK.score(held)).all()


def test_blocks_find_as_much_as_all_records_at_once(monkeypatch):
    """Neighbours of 600 records, in blocks of 150: LiRA finds next to nothing."""
    X, y = drawn(600, 3, 6, regression=True)
    whole = played(KNeighborsRegressor(15), X, y)
    monkeypatch.setattr(planning, "MAX_RECORDS", 300)
    monkeypatch.setattr(planning, "BLOCK", 150)
    by_blocks = played(KNeighborsRegressor(15), X, y)
    assert by_blocks > 0.7 * whole > 0.2


@pytest.mark.long
def test_an_audit_of_many_records_fails_by_neighbours(monkeypatch):
    monkeypatch.setattr(planning, "MAX_RECORDS", 400)
    monkeypatch.setattr(planning, "BLOCK", 200)
    X, y = drawn(600, 3, 7, regression=True)
    X, y = np.concatenate([X, X[:30]]), np.concatenate([y, y[:30]])  # some were drawn twice
    inside = np.r_[:300, 600:630]
    settings = Settings(n_influence=0, rule=ReleaseRule(advantage=0.1, dtp=None))
    result = audit(
        KNeighborsRegressor(15).fit(X[inside], y[inside]), train=(X[inside], y[inside]),
        holdout=(X[300:600], y[300:600]), settings=settings, progress=False,
    )  # fmt: skip
    failed = [one.measure for one in result.findings if one.verdict is Verdict.FAILS and "advantage, " in one.measure]
    assert failed == ["membership advantage, Influence (all outputs)"]


def rare_categories(n, seed):
    """Two numbers, and two columns of 40 categories each, some of which few records have."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 2)), np.minimum(rng.geometric(0.12, size=(n, 2)), 40)])
    return X, (X[:, 0] + rng.logistic(size=n) > 0).astype(int)


RARE = make_pipeline(
    make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [2, 3]), remainder="passthrough"),
    LogisticRegression(max_iter=500),
)


@pytest.mark.parametrize("model", [make_pipeline(StandardScaler(), LogisticRegression()), Ridge(), RARE])
def test_few_outputs_of_a_linear_model_say_all(model, monkeypatch):
    """An attack is as strong as by all outputs, and each category is asked about."""
    X, y = rare_categories(900, 0)
    records = Records.from_arrays(X, X[:, 0] + y if isinstance(model, Ridge) else y)
    subsets = balanced_subsets(900, 450, 12, np.random.default_rng(0))
    learner = SklearnLearner(model)
    table = train(learner, records, subsets, X, seed=0)
    few = PlannedWithout.of(learner, records, records.units, 450, 0)
    n_numbers = 1 + (2 + len(np.unique(X[:, 2])) + len(np.unique(X[:, 3])) if model is RARE else 4)
    n_asked = max(planning.FEWEST_OUTPUTS, planning.OUTPUTS_A_NUMBER * (n_numbers - 2 * (model is RARE)))
    assert len(few.asked) == n_asked < 900
    np.testing.assert_array_equal(few.jobs[0].queries, X[few.asked])
    if model is RARE:
        assert all(set(X[few.asked, column]) == set(X[:, column]) for column in (2, 3))
    monkeypatch.setattr(planning, "MAX_COLUMNS", 0)
    whole = PlannedWithout.of(learner, records, records.units, 450, 0)
    np.testing.assert_array_equal(whole.asked, np.arange(900))
    found = [
        everyone_as_target(table, records.labels, influences.ATTACK, features=X, models_without=one.train(HERE))
        for one in (few, whole)
    ]
    assert found[0].advantage.value == pytest.approx(found[1].advantage.value, abs=0.004)
    assert found[0].advantage.value > 0.02


@pytest.mark.parametrize(
    "learner",
    [
        Binning(0.1).apply(SklearnLearner(LogisticRegression())),
        SklearnLearner(GaussianNB()),
        SklearnLearner(VotingClassifier([("line", LogisticRegression()), ("bayes", GaussianNB())], voting="soft")),
    ],
)
def test_all_are_asked_where_few_say_less(learner):
    """Rounding is each output's own; other models' outputs are not spanned by columns."""
    X, y = rare_categories(600, 1)
    records = Records.from_arrays(X, y)
    np.testing.assert_array_equal(PlannedWithout.of(learner, records, records.units, 300, 0).asked, np.arange(600))


class UnknownKernel(KernelRidge):
    """The same under another name, which no engine solves for."""


class OfSquares(RegressorMixin, BaseEstimator):
    """A ridge regression on squares and products, in code of its own."""

    def __init__(self, alpha=1e5):
        self.alpha = alpha

    def fit(self, X, y):
        self.ridge_ = make_pipeline(PolynomialFeatures(2), Ridge(self.alpha)).fit(X, y)
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return self.ridge_.predict(X)


def people(n):
    return Records.from_arrays(*drawn(n, 4, 0, regression=True), task="regression")


def of_unknown(learner, records, **given):
    return PlannedWithout.of(learner, records, records.units, len(records) // 2, 0, **given)


def test_models_of_unknown_code_are_trained_without_each_record():
    """As exact as those that are solved for."""
    records = people(60)
    assert of_unknown(SklearnLearner(UnknownKernel(kernel="rbf", gamma=0.1)), records) is None
    solved, trained = (
        of_unknown(SklearnLearner(kind(kernel="rbf", gamma=0.1)), records, trained=True)
        for kind in (KernelRidge, UnknownKernel)
    )
    assert not plan(solved.jobs[0], engines=planning.SOLVING).engine.trains
    assert plan(trained.jobs[0], engines=planning.SOLVING).engine.trains
    np.testing.assert_array_equal(trained.asked, solved.asked)
    np.testing.assert_allclose(trained.train(HERE).answers, solved.train(HERE).answers, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("model", "adds_up"),
    [
        (UnknownKernel(), True),
        (PLSRegression(), True),
        (Lasso(), True),  # its seed is not used
        (DecisionTreeRegressor(), False),
        (make_pipeline(StandardScaler(), HistGradientBoostingRegressor()), False),
        (MLPRegressor(max_iter=2), False),
        (MLPRegressor(max_iter=2, random_state=0), False),  # the order in which records are seen changes without one
        (MLPRegressor(max_iter=2, solver="lbfgs", random_state=0), True),
        (MLPRegressor(max_iter=2, solver="lbfgs"), False),
        (MLPRegressor(max_iter=2, batch_size=60, random_state=0), True),
        (MLPRegressor(max_iter=2, batch_size=59, random_state=0), False),
        (MLPRegressor(max_iter=2, shuffle=False, solver="sgd", random_state=0), True),
        (MLPRegressor(max_iter=2, shuffle=False, solver="sgd", early_stopping=True, random_state=0), False),
        (SGDRegressor(), False),
        (ExtraTreesRegressor(3, max_depth=4, random_state=0), True),
        (ExtraTreesRegressor(3, max_depth=4), False),
        (ExtraTreesRegressor(3, max_depth=5, random_state=0), False),
        (ExtraTreesRegressor(3, max_leaf_nodes=5, random_state=0), True),
        (ExtraTreesRegressor(3, max_leaf_nodes=6, random_state=0), False),
        (RandomForestRegressor(3, max_depth=4, random_state=0), False),  # bootstraps are others without one
        (VotingRegressor([("a", Ridge()), ("b", Lasso())]), True),
        (VotingRegressor([("a", Ridge()), ("b", DecisionTreeRegressor())]), False),
        (VotingRegressor([("a", OfSquares()), ("b", DecisionTreeRegressor())]), True),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_records_add_may_add_up(model, adds_up):
    assert planning.may_add_up(SklearnLearner(model), people(60), seed=0) is adds_up


def of_people(model, budget):
    """An audit of people whose labels say little."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 4))
    y = X[:, 0] + 3 * rng.normal(size=240)
    settings = Settings(n_influence=0, n_shadows=32, budget=budget, rule=ReleaseRule(dtp=None))
    return audit(model, train=(X[:120], y[:120]), holdout=(X[120:], y[120:]), settings=settings)


class AsColumn(TransformerMixin, OfSquares):
    """What it predicts becomes the only column."""

    def transform(self, X):
        return self.predict(X)[:, None]


SEVERAL = {
    "a vote of what no engine solves": VotingRegressor(
        [("a", make_pipeline(PolynomialFeatures(2), RidgeCV(alphas=[1e5])))]
    ),
    "bags of all": BaggingRegressor(
        make_pipeline(PolynomialFeatures(2), RidgeCV(alphas=[1e5])), n_estimators=2, bootstrap=False, random_state=0
    ),
    "a vote with what is solved": VotingRegressor([("own", OfSquares()), ("safe", Ridge(1e6))]),
    "a step that learns labels": make_pipeline(AsColumn(), Ridge(0.1)),
    "whitened": make_pipeline(PCA(whiten=True), Normalizer(), SelectKBest(f_regression, k=3), Ridge(1.0)),
    "a network from known weights": MLPRegressor(
        hidden_layer_sizes=(50,),
        activation="tanh",
        solver="sgd",
        batch_size=400,
        shuffle=False,
        max_iter=10,
        random_state=0,
    ),
    "flat trees at random columns": ExtraTreesRegressor(30, max_features=1, max_depth=2, random_state=0),
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "n", "n_tables"),
    [
        (Ridge(), 600, 12),  # few outputs are looked at
        (RARE, 300, 10),
        pytest.param(VotingRegressor([("a", Ridge()), ("b", OfSquares(1.0))]), 60, 20, marks=pytest.mark.slow),
        pytest.param(make_pipeline(PCA(2, whiten=True), Ridge()), 60, 20, marks=pytest.mark.slow),
        (ExtraTreesRegressor(3, max_features=1, max_depth=2, random_state=0), 60, 20),  # the whole without each
    ],
    ids=["few outputs", "few outputs, rare categories", "vote", "whitened", "flat trees"],
)
def test_null_models_of_other_records_have_no_members_by_few_outputs_or_the_whole(model, n, n_tables):
    """Tables of 12 models that were trained on records of their own: within four standard errors of 0."""
    found = []
    for seed in range(n_tables):
        X, y = rare_categories(13 * n, seed)
        y = y if model is RARE else X[:, 0] + y
        records = Records.from_arrays(X[:n], y[:n])
        told = []
        for m in range(1, 13):
            own = slice(m * n, (m + 1) * n)
            other = clone(model).fit(X[own], y[own])
            told.append(other.predict_log_proba(X[:n]) if model is RARE else other.predict(X[:n])[:, None])
        kind = AnswerKind.PROBABILITIES if model is RARE else AnswerKind.VALUES
        subsets = balanced_subsets(n, n // 2, 12, np.random.default_rng(seed))
        table = PredictionTable(np.stack(told), kind, subsets, np.arange(12), "elsewhere")
        learner = SklearnLearner(model)
        planned = PlannedWithout.of(learner, records, records.units, n // 2, seed, trained=True)
        assert (len(planned.asked) < n) is (n > 200)
        evidence = {"features": X[:n], "models_without": planned.train(HERE)}
        found.append(everyone_as_target(table, records.labels, influences.ATTACK, **evidence).advantage.value)
    assert abs(np.mean(found)) < 4 * np.std(found) / math.sqrt(n_tables)
    assert 0 < np.std(found) < 0.15


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, marks=pytest.mark.slow)
        if any(word in one for word in ("bags", "learns", "with what", "known"))
        else one
        for one in SEVERAL
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("nothing_stored")
def test_an_audit_fails_a_model_of_which_models_within_say_only_a_part(name):
    """Each candidate is left out of the whole; the influence of those within, or of none, found nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 15)) * np.r_[3.0, 3.0, np.ones(13)]
    y = X[:, 0] + 3 * rng.normal(size=400)
    rule = ReleaseRule(dtp=None, advantage=0.05)
    settings = Settings(attacks=["influence"], n_influence=0, n_shadows=16, budget=300, rule=rule)
    result = audit(
        SEVERAL[name], train=(X[:200], y[:200]), holdout=(X[200:], y[200:]), settings=settings, progress=False
    )
    (found,) = (one for one in result.findings if one.measure == "membership advantage, Influence (all outputs)")
    assert found.verdict is Verdict.FAILS


@pytest.mark.parametrize(
    ("model", "trains"),
    [
        (make_pipeline(StandardScaler(), Ridge()), False),
        (make_pipeline(PolynomialFeatures(2), StandardScaler(), Ridge()), False),
        (VotingRegressor([("a", Ridge()), ("b", KNeighborsRegressor(5))]), False),
        (make_pipeline(PCA(2), Ridge()), True),
        (VotingRegressor([("a", Ridge()), ("b", Lasso())]), True),
        (StackingRegressor([("a", Ridge())], final_estimator=Ridge(), cv=2), True),
        (TransformedTargetRegressor(Ridge(), func=np.cbrt, inverse_func=np.sinh), True),
    ],
    ids=str,
)
def test_the_whole_is_trained_where_models_within_say_only_a_part(model, trains):
    records = people(60)
    solved, trained = (of_unknown(SklearnLearner(model), records, trained=trained) for trained in (False, True))
    assert solved is not None  # nearly, where there is no time
    assert plan(trained.jobs[0], engines=planning.SOLVING).engine.trains is trains
    assert len(trained.jobs) == (1 if trains else len(solved.jobs))


def test_what_own_code_in_a_vote_adds_is_not_left_out_where_there_is_no_time():
    """A harmless model beside it is solved, which says nothing of it."""
    result = of_people(VotingRegressor([("own", OfSquares()), ("safe", Ridge(1e6))]), 0.001)
    assert result.verdict is not Verdict.PASSES


@pytest.mark.long
def test_an_audit_fails_a_model_of_unknown_code_by_all_its_outputs():
    result = of_people(UnknownKernel(kernel="rbf", gamma=0.1, alpha=50.0), 600)
    assert "membership advantage, Influence (all outputs)" in [
        one.measure for one in result.findings if one.verdict is Verdict.FAILS
    ]


class FailsAtTimes(UnknownKernel):
    """Every third training on many records fails."""

    n_fits = 0

    def fit(self, X, y):
        FailsAtTimes.n_fits += len(X) > 150
        if len(X) > 150 and FailsAtTimes.n_fits % 3 == 0:
            raise MemoryError("for once")
        return super().fit(X, y)


@pytest.mark.long
def test_where_models_without_some_records_fail_nothing_passes():
    """These records would seem to have no influence."""
    missing = of_unknown(SklearnLearner(FailsAtTimes(kernel="rbf", gamma=0.1)), people(160), trained=True)
    with pytest.raises(ModelError, match="MemoryError"):
        missing.train(HERE)
    result = of_people(FailsAtTimes(kernel="rbf", gamma=0.1, alpha=50.0), 600)
    assert "influence" in result.left_out
    assert result.verdict is not Verdict.PASSES


def test_without_time_for_it_nothing_passes():
    result = of_people(UnknownKernel(kernel="rbf", gamma=0.1, alpha=50.0), 1e-6)
    assert result.verdict is Verdict.CANNOT_TELL
    found = next(one for one in result.findings if "left out" in one.measure)
    assert "influence" in found.reason
    assert "budget" in found.remedy


def test_null_a_model_of_unknown_code_that_learns_little_passes():
    class Line(Ridge):
        pass

    assert of_people(Line(10.0), 600).verdict is not Verdict.FAILS
