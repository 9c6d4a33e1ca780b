"""Forests at the end of pipelines whose earlier steps are fitted for each model."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)

from leakgauge.records import Records
from leakgauge.training import (
    DenseSubsets,
    EachModel,
    Job,
    Randomness,
    SklearnLearner,
    everything,
    leave_one_out,
    random_subsets,
)
from leakgauge.training.engines import behind as steps_behind
from leakgauge.training.engines import forests
from leakgauge.training.engines.base import PreparedJob
from leakgauge.training.engines.behind import behind
from leakgauge.training.engines.boosting import Boosting, ManyBoostedBehind
from leakgauge.training.engines.forests import Forests, ManyForestsBehind, regression
from leakgauge.training.engines.refit import Refit, train_each

pytestmark = pytest.mark.skipif(regression() is None, reason="the loops are not compiled")

N = 60
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 4))
X[:, 3] = np.array([0, 1, 3])[rng.integers(0, 3, N)]  # no value is halfway between two others
CLASSES = Records.from_arrays(X, (X[:, 0] + rng.normal(size=N) > 0).astype(int))
VALUES = Records.from_arrays(X, X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=N))
FORESTS = {
    "classes": (RandomForestClassifier(4), CLASSES),
    "extra classes": (ExtraTreesClassifier(4), CLASSES),
    "values": (RandomForestRegressor(4), VALUES),
    "extra values": (ExtraTreesRegressor(4, bootstrap=True), VALUES),
}


def job_of(estimator, records, queries=None, subsets=None, randomness=Randomness.COMMON):
    subsets = leave_one_out(len(records)) if subsets is None else subsets
    queries = EachModel(np.arange(len(subsets))[:, None]) if queries is None else queries
    return Job(SklearnLearner(estimator), records, subsets, queries, 1, randomness)


def found(*given, kind=ManyForestsBehind, **named):
    prepared = Forests().prepare(job_of(*given, **named))
    assert type(prepared) is kind, str(prepared)
    return prepared.all().answers


# ---------------------------------------------------------------- nothing to find


@pytest.mark.parametrize("name", ["classes", "values"])
def test_whichever_of_equal_records_is_left_out_the_models_are_the_same(name):
    forest, once = FORESTS[name]
    records = Records.from_arrays(np.repeat(once.features, 2, axis=0), np.repeat(once.labels, 2))
    each = found(make_pipeline(StandardScaler(), forest), records, once.features)
    np.testing.assert_array_equal(each[::2], each[1::2])


@pytest.mark.parametrize("name", ["classes", "values"])
def test_steps_that_keep_the_order_of_values_change_nothing(name):
    """Every record left out, and halves: scaled for each model, and not scaled at all."""
    forest, records = FORESTS[name]
    scaled = make_pipeline(SimpleImputer(), StandardScaler(), forest)
    halves = random_subsets(N, N // 2, 3, np.random.default_rng(1))
    for subsets, randomness in ((leave_one_out(N), Randomness.COMMON), (halves, Randomness.INDEPENDENT)):
        expected = found(forest, records, records.features, subsets, randomness, kind=forests.ManyForests)
        each = found(scaled, records, records.features, subsets, randomness)
        np.testing.assert_array_equal(each, expected)


# ---------------------------------------------------------------- what the forest is given


class Spy(ClassifierMixin, BaseEstimator):
    """The last step: keeps what it is given."""

    seen: ClassVar[list[np.ndarray]] = []

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.seen.append(np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float))
        return self

    def predict_proba(self, X):
        self.seen.append(np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float))
        return np.full((len(self.seen[-1]), len(self.classes_)), 1 / len(self.classes_))

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


STEPS = {
    "scaler": (StandardScaler(),),
    "principal components": (PCA(2, svd_solver="randomized", random_state=0),),
    "columns": (make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [3]), remainder=StandardScaler()),),
    "sparse": (make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [0, 3]), sparse_threshold=1.0),),
    "target": (TargetEncoder(random_state=0, target_type="binary"),),
    "selection": (PolynomialFeatures(), SelectKBest(k=3)),
    "bins": (KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf"),),
}


@pytest.mark.parametrize("name", STEPS)
def test_the_forest_is_given_what_the_last_step_is_given(name):
    """Also by steps that make another table of training records than of others (target encoding), and by draws."""
    rows, queries = np.flatnonzero(np.arange(N) % 3), X[:7] + 0.01
    Spy.seen.clear()
    spied = Job(
        SklearnLearner(make_pipeline(*STEPS[name], Spy())), CLASSES, everything(N), queries, 1, Randomness.COMMON
    )
    fitted = spied.learner.fit(CLASSES[rows], seed=5)
    fitted.model.log_probabilities(queries)
    matrix, asked = behind(
        job_of(make_pipeline(*STEPS[name], RandomForestClassifier(2)), CLASSES), rows, queries, seed=5
    )
    np.testing.assert_array_equal(matrix, Spy.seen[0])
    np.testing.assert_array_equal(asked, Spy.seen[1])


# ---------------------------------------------------------------- what models share


@pytest.mark.parametrize(
    ("steps", "name"),
    [
        pytest.param(steps, name, marks=() if i % 2 == j else pytest.mark.slow)
        for i, steps in enumerate(STEPS)
        for j, name in enumerate(["classes", "extra classes"])
    ],
)
def test_a_model_without_a_record_is_the_one_trained_on_the_others(name, steps):
    forest, records = FORESTS[name]
    estimator, queries = make_pipeline(*STEPS[steps], forest), records.features[::3] + 0.01
    each = found(estimator, records, queries)
    which = [0, N // 2, N - 1]
    sets = DenseSubsets(~np.eye(N, dtype=bool)[which])
    np.testing.assert_array_equal(found(estimator, records, queries, sets), each[which])
    for t in which:
        part = Forests().prepare(job_of(estimator, records, queries[:1]).part(np.array([t])))
        np.testing.assert_allclose(part.all().answers, each[[t], :1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", FORESTS)
def test_a_record_that_is_left_out_changes_what_it_changes(name):
    """Common random numbers: in the plain loop all draws of a bootstrap depend on the number of records."""
    forest, records = FORESTS[name]
    estimator, queries = make_pipeline(StandardScaler(), clone(forest).set_params(bootstrap=True)), records.features
    moved = []
    for engine in (Forests(), Refit()):
        whole, without = (
            engine.prepare(job_of(estimator, records, queries, subsets)).all().answers
            for subsets in (everything(N), leave_one_out(N, np.arange(20)))
        )
        told = [np.exp(one) if records.schema.classes else one for one in (whole, without)]
        moved.append(np.square(told[1] - told[0]).mean())
    assert 0 < moved[0] < 0.5 * moved[1]


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if i % 2 == 0 else pytest.mark.slow) for i, name in enumerate(FORESTS)]
)
def test_errors_are_those_of_scikit_learns_forests(name):
    """Of 60 halves each, about members and others; errors of one half differ by a third."""
    forest, records = FORESTS[name]
    forest = clone(forest).set_params(n_estimators=50)
    estimator = make_pipeline(SimpleImputer(), PolynomialFeatures(include_bias=False), forest)
    halves = random_subsets(N, N // 2, 60, np.random.default_rng(1))
    errors = []
    for engine in (Forests(), Refit()):
        job = job_of(estimator, records, records.features, halves, Randomness.INDEPENDENT)
        answers = engine.prepare(job).all().answers
        squares = np.square((np.exp(answers)[..., 1] if records.schema.classes else answers[..., 0]) - records.labels)
        errors.append([squares[halves.members].mean(), squares[~halves.members].mean()])
    np.testing.assert_allclose(errors[0], errors[1], rtol=0.05, atol=1e-12)


# ---------------------------------------------------------------- what fails


def test_a_model_whose_steps_fail_is_lost_alone():
    """A strict encoder is not given the one record of a category, and is asked about it."""
    codes = np.column_stack([np.r_[7.0, np.arange(N - 1) % 3], X[:, 0]])
    records = Records.from_arrays(codes, CLASSES.labels)
    strict = make_column_transformer((OneHotEncoder(), [0]), remainder="passthrough")
    job = job_of(make_pipeline(strict, RandomForestClassifier(2)), records, subsets=leave_one_out(N, np.arange(3)))
    outcome = Forests().prepare(job).all()
    assert list(outcome.failures) == [0] == list(Refit().prepare(job).all().failures)
    assert "raised ValueError in" in outcome.failures[0]
    assert np.isnan(outcome.answers[0]).all()
    assert np.isfinite(np.exp(outcome.answers[1:])).all()


class Gaps(TransformerMixin, BaseEstimator):
    """Makes a number missing."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.where(np.asarray(X) > 1, np.nan, X)


class Rows(Gaps):
    """Leaves a record out."""

    def transform(self, X):
        return np.asarray(X)[1:]


def test_refusals_say_why(monkeypatch):
    forest = RandomForestClassifier(2)
    missing = Records.from_arrays(np.where(X > 1, np.nan, X), CLASSES.labels)
    for job, message in (
        (job_of(make_pipeline(StandardScaler(), forest), missing), "a number is missing where trees are given it"),
        (job_of(make_pipeline(Gaps(), forest), CLASSES), "a number is missing where trees are given it"),
        (job_of(make_pipeline(Rows(), forest), CLASSES), "Rows is fitted on the data"),
        (job_of(make_pipeline(StandardScaler(), RandomForestClassifier(max_leaf_nodes=3)), CLASSES), "max_leaf_nodes"),
        (job_of(make_pipeline(StandardScaler(), RandomForestRegressor()), CLASSES), "is fitted on the data"),
    ):
        assert message in str(Forests().prepare(job))
    filled = Forests().prepare(job_of(make_pipeline(SimpleImputer(), forest), missing))
    assert isinstance(filled, PreparedJob)
    assert np.isfinite(np.exp(filled.all().answers)).all()
    monkeypatch.setattr(steps_behind, "MOST_CELLS", 4 * N - 1)
    assert "StandardScaler is fitted on the data" in str(
        Forests().prepare(job_of(make_pipeline(StandardScaler(), forest), CLASSES))
    )


def test_models_whose_forest_cannot_be_grown_are_scikit_learns():
    """A number too large for single precision is an error there; one that is missing for one model alone is none."""
    wide = np.where(np.arange(4) == 1, X * 1e50, X)
    records = Records.from_arrays(wide, CLASSES.labels)
    scaled, selected = (make_pipeline(step, RandomForestClassifier(2)) for step in (StandardScaler(), SelectKBest(k=4)))
    assert isinstance(Forests().prepare(job_of(scaled, records)), PreparedJob)  # scaled before
    codes = Records.from_arrays(np.column_stack([np.r_[7.0, np.arange(N - 1) % 3], X[:, 0]]), CLASSES.labels)
    rare = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    gaps = make_pipeline(make_column_transformer((rare, [0]), remainder="passthrough"), RandomForestClassifier(2))
    for estimator, one, n_failed in ((selected, records, 3), (gaps, codes, 0)):
        job = job_of(estimator, one, subsets=leave_one_out(N, np.arange(3)))
        outcome, expected = Forests().prepare(job).all(), Refit().prepare(job).all()
        assert outcome.failures == expected.failures
        assert len(outcome.failures) == n_failed
        np.testing.assert_array_equal(outcome.answers[0], expected.answers[0])


class FirstHalf(Gaps):
    """Knows the order of its records."""

    def fit(self, X, y=None):
        self.mean_ = np.asarray(X)[: len(X) // 2].mean(axis=0)
        return self

    def transform(self, X):
        return np.asarray(X) > self.mean_


def test_steps_are_given_records_in_their_order():
    forest = RandomForestClassifier(200, bootstrap=False, max_features=None)
    job = job_of(make_pipeline(FirstHalf(), forest), CLASSES, X, everything(N))
    found, expected = (np.exp(engine.prepare(job).all().answers) for engine in (Forests(), Refit()))
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.2)
    assert np.abs(found - expected).mean() < 0.02


def test_a_class_of_which_none_is_left_does_not_count():
    """However much it would weigh: draws that are accepted once in a billion would take hours."""
    records = Records.from_arrays(X, np.r_[1, np.zeros(N - 1, dtype=int)], classes=[0, 1])
    forest = RandomForestClassifier(2, class_weight={0: 1.0, 1: 1e9})
    job = job_of(forest, records, X, leave_one_out(N, np.arange(1)))
    np.testing.assert_array_equal(np.exp(Forests().prepare(job).all().answers), np.tile([1.0, 0.0], (1, N, 1)))


def test_values_far_from_0_are_left_to_scikit_learn():
    for offset, refused in ((1e3, False), (1e7, True)):
        far = Records.from_arrays(X, VALUES.labels + offset)
        found = Forests().prepare(job_of(RandomForestRegressor(2), far))
        assert ("so far from 0 that rounding decides" in str(found)) == refused


@pytest.mark.parametrize("steps", ["alone", "behind"])
def test_values_of_some_models_that_are_far_from_0_are_left_to_scikit_learn(steps):
    """Some are wide apart, others near each other far away: trees of these alone end where rounding has it."""
    near = np.arange(N) < N // 3
    labels = np.where(near, 1e8 + VALUES.labels, np.linspace(0, 1e8, N))
    sets = DenseSubsets(np.stack([near, np.ones(N, dtype=bool)]))
    forest = RandomForestRegressor(3)
    estimator = forest if steps == "alone" else make_pipeline(StandardScaler(), forest)
    job = job_of(estimator, Records.from_arrays(X, labels), X, sets)
    found = Forests().prepare(job)
    assert isinstance(found, PreparedJob), found
    called = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            steps_behind, "train_each", lambda job, models: called.append(models.tolist()) or train_each(job, models)
        )
        assert not found.all().failures
    assert called == [[0]]


def test_how_far_from_0_values_are():
    rng = np.random.default_rng(0)
    spread = rng.normal(size=999)
    for values, far in (
        (spread, False),
        (spread + 1e4, False),
        (spread + 1e7, True),
        (np.exp(3 * spread), False),
        (1e3 * rng.integers(0, 2, 99), False),
        (np.r_[spread - 1e9, spread, spread + 1e9], True),
        (np.full(9, 3.0), True),
        (np.zeros(9), False),
    ):
        assert forests.far_from_0(values.astype(np.float64)) is far


# ---------------------------------------------------------------- boosting, to the last bit


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        pytest.param(steps, kind, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, steps in enumerate([*STEPS, "imputer"])
        for j, kind in enumerate(["two classes", "three classes", "values"])
    ],
)
def test_boosting_behind_steps_is_scikit_learns(kind, steps):
    earlier = (SimpleImputer(strategy="median"),) if steps == "imputer" else STEPS[steps]
    features = np.where(rng.random(X.shape) < 0.1, np.nan, X) if steps == "imputer" else X
    if kind == "values":
        if steps not in ("scaler", "principal components"):
            pytest.skip("a step for classes, or values repeat in a column, and rounding decides")
        estimator, labels, features = GradientBoostingRegressor(n_estimators=8), VALUES.labels, X[:, :3]
    else:
        if kind == "three classes" and steps == "target":
            pytest.skip("a step for two classes")
        estimator = GradientBoostingClassifier(n_estimators=8, max_features=2)
        labels = CLASSES.labels if kind == "two classes" else np.digitize(X[:, 0], [-0.5, 0.5])
    records = Records.from_arrays(features, labels)
    jobs = [(random_subsets(N, 40, 3, np.random.default_rng(1)), records.features, Randomness.INDEPENDENT)]
    if kind != "values":
        jobs.append((leave_one_out(N, np.arange(3)), None, Randomness.COMMON))
    for subsets, queries, randomness in jobs:
        job = job_of(make_pipeline(*earlier, estimator), records, queries, subsets, randomness)
        prepared = Boosting().prepare(job)
        assert type(prepared) is ManyBoostedBehind, str(prepared)
        outcome, expected = prepared.all(), Refit().prepare(job).all()
        assert outcome.failures == expected.failures == {}
        np.testing.assert_array_equal(outcome.answers, expected.answers)


def test_boosting_whose_steps_fail_is_lost_alone():
    codes = np.column_stack([np.r_[7.0, np.arange(N - 1) % 3], X[:, 0]])
    records = Records.from_arrays(codes, CLASSES.labels)
    strict = make_column_transformer((OneHotEncoder(), [0]), remainder="passthrough")
    estimator = make_pipeline(strict, GradientBoostingClassifier(n_estimators=2))
    outcome = Boosting().prepare(job_of(estimator, records, subsets=leave_one_out(N, np.arange(3)))).all()
    assert list(outcome.failures) == [0]
    gaps = Boosting().prepare(job_of(make_pipeline(Gaps(), GradientBoostingClassifier()), CLASSES))
    assert "a number is missing where trees are given it" in str(gaps)
