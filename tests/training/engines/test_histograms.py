"""scikit-learn's histogram boosting by our own loops: the same models, to the last bit."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder, StandardScaler

from leakgauge.errors import ModelError
from leakgauge.influence import pdtp
from leakgauge.records import Records
from leakgauge.training import (
    DenseSubsets,
    EachModel,
    Job,
    Randomness,
    SklearnLearner,
    balanced_subsets,
    everything,
    leave_one_out,
    plan,
)
from leakgauge.training.engines import histograms
from leakgauge.training.engines.base import PreparedJob
from leakgauge.training.engines.histograms import HistogramBoosting, ManyOnBins, ManyOnBinsBehind
from leakgauge.training.engines.refit import Refit
from leakgauge.training.subsets import leave_units_out

pytestmark = pytest.mark.skipif(histograms.compiled() is None, reason="the loops are not compiled")

KINDS = {1: HistGradientBoostingRegressor, 2: HistGradientBoostingClassifier, 5: HistGradientBoostingClassifier}


def people(n, task, *, seed=0, missing=False, persons=None):
    """Columns of all kinds, and classes of different sizes or numbers."""
    rng = np.random.default_rng([seed, 5])
    z = rng.normal(size=(n, 2))
    columns = [z[:, 0], np.round(z[:, 1], 1), rng.integers(0, 3, n), rng.integers(0, 2, n), np.full(n, 4.0)]
    columns += [1e6 + 1e-3 * rng.normal(size=n), rng.exponential(size=n) ** 3, 2 - columns[2]]
    X = np.column_stack(columns).astype(float)
    y = z[:, 0] + X[:, 2] * z[:, 1] + rng.normal(size=n)
    if missing:
        X[rng.random(X.shape) < [0.1, 0.5, 0.02, 0.9, 0.3, 0, 0, 0.1]] = np.nan
        X[0] = np.arange(8)
    if task > 1:
        y = np.array(list("abcde"))[np.digitize(y, np.quantile(y, np.linspace(0, 1, task + 1)[1:-1] ** 0.5))]
    return Records.from_arrays(X, y, persons=persons)


def halves(records, n_models=4, seed=0):
    return balanced_subsets(len(records), len(records) // 2, n_models, np.random.default_rng(seed))


def job_of(estimator, records, subsets=None, queries=None, randomness=Randomness.INDEPENDENT):
    subsets, queries = halves(records) if subsets is None else subsets, records.features if queries is None else queries
    return Job(SklearnLearner(estimator), records, subsets, queries, 1, randomness)


@pytest.fixture
def no_refits(monkeypatch):
    """What is compared is what the loops answer, and not what the plain loop does in their place."""
    monkeypatch.setattr(
        "leakgauge.training.engines.behind.train_each", lambda *given: pytest.fail("trained one by one")
    )


def same(*given, kind=ManyOnBins, **named):
    """The answers, which are those of the plain loop."""
    job = job_of(*given, **named)
    prepared = HistogramBoosting().prepare(job)
    assert type(prepared) is kind, str(prepared)
    found, expected = prepared.all(), Refit().prepare(job).all()
    np.testing.assert_array_equal(found.answers, expected.answers)
    assert (found.kind, found.failures, found.n_unconverged) == (expected.kind, expected.failures, 0)
    return found.answers


# ---------------------------------------------------------------- the same models


SETTINGS = [
    {"max_iter": 40},
    {"max_leaf_nodes": None, "min_samples_leaf": 1},
    {"max_leaf_nodes": 6, "min_samples_leaf": 1, "learning_rate": 1.0},
    {"max_depth": 3, "l2_regularization": 2.5},
    {"max_depth": 1, "min_samples_leaf": 3, "max_iter": 80},
    {"max_bins": 7, "min_samples_leaf": 5},
    {"max_bins": 2, "max_leaf_nodes": 2},
    {"max_bins": 130, "min_samples_leaf": 2, "random_state": 3, "early_stopping": False},
    {"learning_rate": 5.0, "min_samples_leaf": 2},
]


@pytest.mark.parametrize(
    ("settings", "task"),
    [
        pytest.param(settings, task, marks=() if i % 3 == j else pytest.mark.slow)
        for i, settings in enumerate(SETTINGS)
        for j, task in enumerate(KINDS)
    ],
    ids=str,
)
@pytest.mark.parametrize("missing", [False, True])
def test_models_are_those_of_scikit_learn_to_the_last_bit(settings, task, missing, no_refits):
    records = people(600, task, missing=missing)
    same(KINDS[task](**{"max_iter": 12, **settings}), records, halves(records, 2))


@pytest.mark.parametrize("n_classes", [7, 8, 9, 12])
def test_many_classes(n_classes, no_refits):
    """Eight numbers and more are added up in another order row by row than column by column."""
    records = people(400, 1)
    edges = np.quantile(records.labels, np.arange(1, n_classes) / n_classes)
    labels = np.array([f"c{one:02d}" for one in range(n_classes)])[np.digitize(records.labels, edges)]
    same(CLASSIFIER(max_iter=4), Records.from_arrays(records.features, labels))


@pytest.mark.parametrize("task", KINDS)
@pytest.mark.parametrize("n", [25, 40, 47, 60])
def test_few_records(task, n):
    """As many as a leaf needs, or two; or fewer, and a model is what it begins with."""
    for seed in range(3):
        records = people(n, task, seed=seed, missing=seed == 2)
        same(KINDS[task](max_iter=5), records, leave_one_out(n, np.arange(3)))
        same(KINDS[task](max_iter=5, min_samples_leaf=1), records, halves(records, 2))


def test_more_values_than_bins(no_refits):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3)) * [1, 1e-8, 1e12]
    records = Records.from_arrays(X, np.where(X[:, 0] > rng.normal(size=900), "yes", "no"))
    same(HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=3), records, halves(records, 2))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 8, 19])
def test_any_number_of_columns(d, no_refits):
    """They are summed up some at a time."""
    rng = np.random.default_rng(d)
    X = rng.integers(0, 5, (120, d)).astype(float)
    records = Records.from_arrays(X, X[:, -1] + rng.normal(size=120))
    same(HistGradientBoostingRegressor(max_iter=6, min_samples_leaf=4), records)


@pytest.mark.parametrize("task", KINDS)
def test_of_equal_gains_the_same_one_is_taken(task, no_refits):
    """Twins of columns, and leaves that gain the same: the order of the heap decides which of these are split."""
    rng = np.random.default_rng(0)
    few = rng.integers(0, 2, (64, 3)).astype(float)
    X = np.tile(np.hstack([few, 1 - few, few]), (4, 1))
    y = np.tile(few[:, 0] * 2 + few[:, 1], 4)
    y[:3] += 1
    records = Records.from_arrays(X, y, task="regression" if task == 1 else "classification")
    for most in (3, 5, 7):
        same(KINDS[task](max_iter=10, min_samples_leaf=1, max_leaf_nodes=most), records, leave_one_out(256, [5, 250]))


def test_queries_anywhere(no_refits):
    """Beyond all values, at thresholds, and missing where no training record's value is."""
    records = people(300, 2, missing=True)
    X = records.features
    beyond, between = np.nan_to_num(X) * 1e300, (X[:-1] + X[1:]) / 2
    asked = np.vstack([X, beyond, -beyond, between, np.full((1, 8), np.nan)])
    same(HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=3), records, queries=asked)
    complete = np.nan_to_num(X, nan=-1.0)
    asked = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, complete)
    same(HistGradientBoostingClassifier(max_iter=20), Records.from_arrays(complete, records.labels), queries=asked)


def test_probabilities_that_are_rounded_to_0(no_refits):
    records = people(120, 2)
    estimator = HistGradientBoostingClassifier(max_iter=60, learning_rate=50.0, min_samples_leaf=1)
    assert np.isinf(same(estimator, records)).any()


def test_values_that_run_away_until_single_precision_ends(no_refits):
    found = same(HistGradientBoostingRegressor(max_iter=60, learning_rate=1e3, min_samples_leaf=1), people(80, 1))
    assert np.abs(found).max() > 1e38


def test_one_tree_by_hand():
    """Values 0 to 7 and numbers that jump by 8: a stump parts them there and takes half of each mean off the whole."""
    records = Records.from_arrays(np.arange(9.0)[:, None], np.array([0.5, 1, 1.5, 2, 10, 10.5, 11, 11.5, 70.25]))
    estimator = HistGradientBoostingRegressor(max_iter=1, max_leaf_nodes=2, learning_rate=0.5, min_samples_leaf=2)
    subsets = DenseSubsets(np.arange(9)[None] < 8)
    found = same(estimator, records, subsets, np.array([[3.4], [3.6], [-9.0], [99.0]]))[0, :, 0]
    np.testing.assert_allclose(found, [3.625, 8.375, 3.625, 8.375])


# ---------------------------------------------------------------- the job


@pytest.mark.parametrize("task", [2, 5])
@pytest.mark.parametrize("missing", [False, True])
def test_without_a_record_each_asked_about_its_own(task, missing, no_refits):
    records = people(200, task, missing=missing)
    left = np.arange(0, 200, 40)
    same(HistGradientBoostingClassifier(max_iter=10), records, leave_one_out(200, left), EachModel(left[:, None]))
    same(HistGradientBoostingClassifier(max_iter=10), records, everything(200))


def test_without_a_person_of_several_records(no_refits):
    records = people(120, 2, persons=np.arange(120) // 3)
    same(HistGradientBoostingClassifier(max_iter=8), records, leave_units_out(records.units, np.arange(4)))


def test_a_class_that_a_model_lacks_is_trained_by_scikit_learn():
    """That model alone; where none has all classes the whole job."""
    records = people(200, 5)
    rows = np.ones((3, 200), dtype=bool)
    rows[1] = records.labels != 2
    same(HistGradientBoostingClassifier(max_iter=5), records, DenseSubsets(rows))
    job = job_of(HistGradientBoostingClassifier(max_iter=5), records, DenseSubsets(rows[1:2]))
    assert "no model is given all classes" in str(HistogramBoosting().prepare(job))


def test_a_column_that_scikit_learn_cannot_bin_is_left_to_it():
    """Missing everywhere, in the records of some model."""
    records = people(100, 2)
    X = records.features.copy()
    X[1:, 0] = np.nan
    records = Records.from_arrays(X, records.labels)
    rows = np.ones((2, 100), dtype=bool)
    rows[0, 0] = False
    same(HistGradientBoostingClassifier(max_iter=5), records, DenseSubsets(rows))


def test_labels_in_another_order_than_their_classes():
    from dataclasses import replace

    records = people(200, 5)
    order = np.array([2, 0, 4, 3, 1])
    target = replace(records.schema.target, categories=tuple(records.schema.classes[i] for i in order))
    turned = replace(records, schema=replace(records.schema, target=target), labels=np.argsort(order)[records.labels])
    estimator = HistGradientBoostingClassifier(max_iter=6)
    np.testing.assert_array_equal(same(estimator, turned), same(estimator, records)[:, :, order])


@pytest.mark.parametrize("task", KINDS)
def test_behind_steps_that_learn(task, no_refits):
    records = people(150, task, missing=True)
    for steps in ([SimpleImputer(), StandardScaler()], [StandardScaler()]):
        same(make_pipeline(*steps, KINDS[task](max_iter=6)), records, halves(records, 2), kind=ManyOnBinsBehind)
    left = np.arange(3)
    estimator = make_pipeline(StandardScaler(), KINDS[task](max_iter=6))
    same(estimator, records, leave_one_out(150, left), EachModel(left[:, None]), kind=ManyOnBinsBehind)


def test_behind_steps_that_learn_nothing(no_refits):
    same(make_pipeline(FunctionTransformer(), HistGradientBoostingClassifier(max_iter=3)), people(100, 2))


def test_the_plan_takes_it():
    for missing in (False, True):
        job = job_of(HistGradientBoostingClassifier(max_iter=3), people(100, 2, missing=missing))
        assert plan(job).engine.name == "histogram-boosting"
        assert plan(job.with_known_seed()).engine.name == "histogram-boosting"


# ---------------------------------------------------------------- refused


CLASSIFIER = HistGradientBoostingClassifier


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (CLASSIFIER(max_features=0.5), "max_features=...) is not supported"),
        (CLASSIFIER(monotonic_cst=np.array([1] + [0] * 7)), "monotonic_cst=...) is not supported"),
        (CLASSIFIER(interaction_cst="pairwise"), "interaction_cst=...) is not supported"),
        (CLASSIFIER(class_weight="balanced"), "class_weight=...) is not supported"),
        (CLASSIFIER(warm_start=True), "warm_start=...) is not supported"),
        (CLASSIFIER(early_stopping=True), "early_stopping=True) is not supported"),
        (CLASSIFIER(categorical_features=[2]), "a column of categories"),
        (CLASSIFIER(categorical_features=[99]), "cannot be given this table (ValueError)"),
        (CLASSIFIER(learning_rate=np.float32(0.1)), "less than double precision"),
        (CLASSIFIER(learning_rate=np.float16(0.1)), "less than double precision"),
        (CLASSIFIER(learning_rate=-1.0), "refuses its settings"),
        (CLASSIFIER(max_depth=2**70), "too large a number"),
        (CLASSIFIER(min_samples_leaf=2**40), "too large a number"),
        (HistGradientBoostingRegressor(), "does not fit the task"),
        (GradientBoostingClassifier(), "is not HistGradientBoostingClassifier"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_is_not_supported_is_refused(estimator, said):
    assert said in str(HistogramBoosting().prepare(job_of(estimator, people(100, 2))))


@pytest.mark.parametrize("loss", ["absolute_error", "poisson"])
def test_other_losses_are_refused(loss):
    job = job_of(HistGradientBoostingRegressor(loss=loss), people(100, 1))
    assert f"loss='{loss}') is not supported" in str(HistogramBoosting().prepare(job))


def test_early_stopping_begins_with_many_records(monkeypatch):
    """Beyond 10,000 of a model, whatever there are of in all."""
    monkeypatch.setattr(histograms, "MOST_WITHOUT_STOP", 100)
    records = people(201, 2)
    assert isinstance(HistogramBoosting().prepare(job_of(CLASSIFIER(), records)), PreparedJob)
    job = job_of(CLASSIFIER(), records, leave_one_out(201))
    assert "records out" in str(HistogramBoosting().prepare(job))
    job = job_of(CLASSIFIER(early_stopping=False), records, leave_one_out(201))
    assert isinstance(HistogramBoosting().prepare(job), PreparedJob)
    monkeypatch.setattr(histograms, "MOST_BINNED", 150)
    assert "draws records for its bins" in str(HistogramBoosting().prepare(job))


@pytest.mark.parametrize("before", [[], [StandardScaler()]])
def test_tables_that_a_fit_refuses_are_left_to_it(before):
    """Sparse ones: whatever made them, no model answers."""
    sparse = FunctionTransformer(csr_matrix)
    job = job_of(make_pipeline(*before, sparse, CLASSIFIER(max_iter=3)), people(100, 2))
    with pytest.raises(ModelError, match="TypeError"):
        plan(job).train()


@pytest.mark.parametrize("ordered", [False, True])
def test_texts_of_categories_are_left_to_scikit_learn(ordered):
    rng = np.random.default_rng(0)
    texts = pd.Categorical(rng.choice(["low", "middle", "high"], 90), ordered=ordered)
    frame = pd.DataFrame({"a": rng.normal(size=90), "b": texts})
    records = Records.from_frame(frame.assign(y=np.where(rng.random(90) < 0.5, "yes", "no")), target="y")
    job = job_of(CLASSIFIER(max_iter=3), records)
    assert plan(job).engine.name == Refit.name
    assert np.isfinite(plan(job).train().answers).all()


def categories(n=90):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": pd.Categorical(rng.integers(0, 4, n))})
    return Records.from_frame(frame.assign(y=np.where(rng.random(n) < 0.5, "yes", "no")), target="y")


@pytest.mark.parametrize("categorical", ["from_dtype", [False, True], None])
def test_categories_are_left_to_scikit_learn(categorical):
    """Columns that pandas holds as categories, or that the settings name; not those of numbers."""
    job = job_of(CLASSIFIER(max_iter=3, categorical_features=categorical), categories())
    prepared = HistogramBoosting().prepare(job)
    if categorical is None:
        same(CLASSIFIER(max_iter=3, categorical_features=None), categories())
    else:
        assert "a column of categories" in str(prepared)


def test_categories_that_a_step_makes_are_left_to_scikit_learn():
    """Models one by one: what a step hands on is known when it is fitted."""
    encoder = OrdinalEncoder().set_output(transform="pandas")
    cast = FunctionTransformer(lambda table: table.astype("category"))
    same(make_pipeline(encoder, cast, CLASSIFIER(max_iter=3)), categories(), kind=ManyOnBinsBehind)


def test_without_compiled_loops_scikit_learn_trains(monkeypatch):
    monkeypatch.setattr(histograms, "kernels", lambda: None)
    assert "scikit-learn is faster" in str(HistogramBoosting().prepare(job_of(CLASSIFIER(), people(60, 2))))


def test_another_scikit_learn_trains_itself(monkeypatch):
    """That it rounds in another way shows: here by records in another order, and by what it no longer has."""
    assert histograms.rounds_alike()
    fit = HistGradientBoostingRegressor.fit
    with monkeypatch.context() as patch:
        patch.setattr(HistGradientBoostingRegressor, "fit", lambda self, X, y: fit(self, X[::-1], y[::-1]))
        assert not histograms.rounds_alike.__wrapped__()
    with monkeypatch.context() as patch:
        patch.delattr("sklearn.ensemble._hist_gradient_boosting.binning._BinMapper")
        assert not histograms.rounds_alike.__wrapped__()
    monkeypatch.setattr(histograms, "rounds_alike", lambda: False)
    assert "rounds in another way" in str(HistogramBoosting().prepare(job_of(CLASSIFIER(), people(60, 2))))


def test_models_that_round_otherwise_have_weights_and_are_trained_by_scikit_learn():
    """They say how far rounding moves answers, which is part of the floor of PDTP as it is in the plain loop."""
    records = people(150, 2)
    learner = SklearnLearner(CLASSIFIER(max_iter=20, min_samples_leaf=2))
    twin = learner.rounding_otherwise(0)
    job = Job(twin, records, everything(150), records.features, 1, Randomness.COMMON)
    assert "weights" in str(HistogramBoosting().prepare(job))
    found = pdtp(learner, records, np.arange(10), seed=0)
    assert found.engine == "histogram-boosting"
    np.testing.assert_array_equal(found.solver_floor > 0, True)
