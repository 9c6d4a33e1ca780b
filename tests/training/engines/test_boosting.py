"""scikit-learn's gradient boosting by our own loops: the same models."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from leakgauge.errors import ModelError
from leakgauge.records import Records
from leakgauge.training import (
    DenseSubsets,
    EachModel,
    Execution,
    Job,
    Randomness,
    SklearnLearner,
    balanced_subsets,
    everything,
    leave_one_out,
    plan,
    train_many,
)
from leakgauge.training.engines import boosting
from leakgauge.training.engines.base import PreparedJob
from leakgauge.training.engines.boosting import Boosting
from leakgauge.training.engines.refit import Refit
from leakgauge.training.learners import FunctionLearner

pytestmark = pytest.mark.skipif(boosting.compiled() is None, reason="the loops are not compiled")


def people(n, task, *, d=6, seed=0):
    """Continuous columns, two of which interact, and classes of different sizes or numbers."""
    rng = np.random.default_rng([seed, 3])
    X = rng.normal(size=(n, d))
    z = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n)
    if task == 1:
        return Records.from_arrays(X, z)
    return Records.from_arrays(X, np.array(["n", "o", "p", "q"])[np.digitize(z, np.linspace(-0.4, 1.5, task - 1))])


def halves(records, n_models=4, seed=0):
    return balanced_subsets(len(records), len(records) // 2, n_models, np.random.default_rng(seed))


def but_one(n):
    """All records of the examples below but a last one, which is not looked at."""
    return DenseSubsets(np.arange(n + 1)[None] < n)


def job_of(estimator, records, subsets=None, queries=None, randomness=Randomness.INDEPENDENT, seed=1):
    queries = records.features if queries is None else queries
    return Job(
        SklearnLearner(estimator), records, halves(records) if subsets is None else subsets, queries, seed, randomness
    )


def run(*given, **named):
    prepared = Boosting().prepare(job_of(*given, **named))
    assert isinstance(prepared, PreparedJob), str(prepared)
    return prepared.all().answers


def refitted(*given, **named):
    return Refit().prepare(job_of(*given, **named)).all().answers


# ---------------------------------------------------------------- the same models


SETTINGS = [
    {},
    {"max_depth": None, "n_estimators": 8},
    {"max_depth": 1, "n_estimators": 60},
    {"min_samples_leaf": 7, "learning_rate": 0.5},
    {"min_samples_split": 0.3, "min_samples_leaf": 0.04},
    {"max_features": "sqrt"},
    {"max_features": 1, "random_state": 3},
    {"max_features": 0.6, "max_depth": 5},
]


@pytest.mark.parametrize(
    ("settings", "n_classes"),
    [
        pytest.param(settings, n_classes, marks=() if i % 3 == j else pytest.mark.slow)
        for i, settings in enumerate(SETTINGS)
        for j, n_classes in enumerate([1, 2, 4])
    ],
    ids=str,
)
def test_models_are_those_of_scikit_learn(n_classes, settings):
    """With ties all over: nodes of few records are split alike at many columns, and random numbers decide."""
    records = people(240, n_classes)
    kind = GradientBoostingRegressor if n_classes == 1 else GradientBoostingClassifier
    estimator = kind(**{"n_estimators": 25, **settings})
    np.testing.assert_allclose(run(estimator, records), refitted(estimator, records), rtol=0, atol=1e-9)


@pytest.mark.parametrize("max_features", [None, "sqrt"])
def test_values_may_repeat_and_columns_be_constant(max_features):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 4, (300, 5)), np.full(300, 7), rng.random((300, 3)) < 0.3]).astype(float)
    records = Records.from_arrays(X, rng.normal(size=300))
    estimator = GradientBoostingRegressor(n_estimators=30, max_features=max_features)
    np.testing.assert_allclose(run(estimator, records), refitted(estimator, records), rtol=0, atol=1e-9)


def tied(kind, n, seed):
    """Columns with few values, in which many splits are equally good."""
    rng = np.random.default_rng([seed, 7])
    if kind == "one-hot":
        return np.hstack([np.eye(6)[codes] for codes in rng.integers(0, 6, (4, n))])
    if kind == "twins":
        X = rng.integers(0, 2, (n, 8)).astype(float)
        return np.hstack([X, 1 - X[:, :4], X[:, 4:]])
    if kind == "rounded":
        return np.round(rng.normal(size=(n, 20)), 1)
    if kind == "skewed":  # a column whose sorting goes beyond the depth of quicksort
        return np.column_stack([organ_pipe(n), organ_pipe(n) // 2, rng.integers(0, 3, n), rng.integers(0, 3, n)])
    copies = rng.normal(size=(n, 5))[rng.integers(0, n // 3, n)]
    return np.hstack([copies, np.eye(4)[rng.integers(0, 4, n)]])


def organ_pipe(n):
    """Values of which the median of three is always among the least, so that quicksort meets its limit."""
    half = np.arange(n // 2)
    return np.concatenate([half, half[::-1], np.zeros(n - 2 * len(half))]).astype(float)


TIED = [
    {},
    {"max_features": "sqrt", "n_estimators": 40},
    {"max_features": 2, "max_depth": None, "n_estimators": 6},
    {"max_features": 1, "max_depth": 5, "learning_rate": 1.0},
    {"max_depth": 2, "min_samples_leaf": 7, "learning_rate": 3.0},
]


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        pytest.param(settings, kind, marks=() if i == j else pytest.mark.slow)
        for i, settings in enumerate(TIED)
        for j, kind in enumerate(["one-hot", "twins", "rounded", "skewed", "copies"])
    ],
    ids=str,
)
def test_of_equal_splits_of_a_classifier_the_same_one_is_taken(kind, settings):
    """By the last bits of sums, in the order into which scikit-learn has sorted the records."""
    for seed, n_classes in enumerate([2, 3, 4]):
        X = tied(kind, 150 * (1 + seed), seed)
        z = X[:, 0] + X[:, 1] * X[:, 2] + np.random.default_rng(seed).normal(size=len(X))
        cuts = np.quantile(z, np.linspace(0, 1, n_classes + 1)[1:-1])
        records = Records.from_arrays(X, np.array(["a", "b", "c", "d"])[np.digitize(z, cuts)])
        estimator = GradientBoostingClassifier(**{"n_estimators": 20, **settings})
        subsets = halves(records, 2, seed)
        np.testing.assert_array_equal(run(estimator, records, subsets), refitted(estimator, records, subsets))


@pytest.mark.parametrize("max_features", [None, "sqrt"])
def test_without_a_record_a_classifier_is_that_of_scikit_learn(max_features):
    X = tied("one-hot", 120, 0)
    records = Records.from_arrays(X, np.where(X[:, 0] + X[:, 7] > np.random.default_rng(0).random(120), "yes", "no"))
    estimator = GradientBoostingClassifier(n_estimators=10, max_features=max_features, random_state=5)
    for subsets in (leave_one_out(120, np.arange(0, 120, 9)), everything(120)):
        job = job_of(estimator, records, subsets, randomness=Randomness.COMMON).with_known_seed()
        assert plan(job).engine.name == "gradient-boosting"
        np.testing.assert_array_equal(plan(job).train().answers, Refit().prepare(job).all().answers)


def test_another_scikit_learn_may_round_in_its_own_way(monkeypatch):
    monkeypatch.setattr(boosting, "rounds_alike", lambda: False)
    records = people(100, 2)
    repeated = Records.from_arrays(np.round(records.features), records.labels)
    assert "without single ones" in str(
        Boosting().prepare(job_of(GradientBoostingClassifier(), records, leave_one_out(100)))
    )
    job = job_of(GradientBoostingClassifier(max_features=2, random_state=0), repeated).with_known_seed()
    assert "values repeat" in str(Boosting().prepare(job))


def test_that_scikit_learn_rounds_alike_is_found_by_models_that_would_show_it(monkeypatch):
    """With another order of equal values, here by records from the last one to the first, models differ."""
    assert boosting.rounds_alike()
    fit = GradientBoostingClassifier.fit
    monkeypatch.setattr(GradientBoostingClassifier, "fit", lambda self, X, y: fit(self, X[::-1], y[::-1]))
    assert not boosting.rounds_alike.__wrapped__()


@pytest.mark.parametrize(("max_features", "share"), [(None, 0.6), ("sqrt", 0.0)])
def test_where_rounding_decides_regressors_differ_from_there_on_and_not_by_much(max_features, share):
    """Of twins of columns, scikit-learn takes the one whose values it happened to sum up to a little more.

    Sides of a node change places with them, and with these the random numbers of the nodes below.
    """
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (400, 8)).astype(float)
    X = np.hstack([X, 1 - X[:, :4]])
    records = Records.from_arrays(X, X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=400))
    estimator = GradientBoostingRegressor(n_estimators=30, max_features=max_features)
    found, expected = run(estimator, records), refitted(estimator, records)
    assert (np.abs(found - expected) < 1e-9).mean() >= share
    errors = [np.square(one[:, :, 0] - records.labels).mean() for one in (found, expected)]
    assert errors[0] == pytest.approx(errors[1], abs=0.01)


def test_columns_that_stay_constant_below_a_node_are_drawn_as_there():
    """Most columns are constant, some of them only in parts of the records: by these the random numbers go."""
    rng = np.random.default_rng(0)
    X = np.zeros((300, 12))
    X[:, 0] = rng.normal(size=300)
    X[:150, 1:4] = rng.normal(size=(150, 3))
    records = Records.from_arrays(X, X[:, 0] + rng.normal(size=300))
    estimator = GradientBoostingRegressor(n_estimators=20, max_features=2, max_depth=6)
    np.testing.assert_allclose(run(estimator, records), refitted(estimator, records), rtol=0, atol=1e-9)


def test_values_that_are_nearly_equal_are_as_good_as_equal():
    """Closer than 1e-7 in single precision."""
    rng = np.random.default_rng(2)
    X = 0.3 + 1e-8 * rng.integers(0, 30, (200, 3)) + 0.1 * rng.integers(0, 2, (200, 3))
    records = Records.from_arrays(X, rng.normal(size=200))
    estimator = GradientBoostingRegressor(n_estimators=10)
    np.testing.assert_allclose(run(estimator, records), refitted(estimator, records), rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "scales", [(1e-6, 1, 1, 1), pytest.param((1e-6,) * 4, marks=pytest.mark.slow), (1e-7, 1e-6, 1, 1e-7)], ids=str
)
@pytest.mark.parametrize("leaf", [1, 4])
def test_columns_are_constant_by_their_range_and_not_by_their_neighbours(leaf, scales, seed):
    """No value repeats, so that models are the same to the last bit, but hardly any neighbours are 1e-7 apart.

    A column counts as constant where its highest value is not (scikit-learn 1.9, tree/_splitter.pyx, node_split_best).
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 4))
    records = Records.from_arrays(X * scales, np.where(X[:, 1] + rng.normal(size=200) > 0, "yes", "no"))
    assert all(len(np.unique(column)) == 200 for column in records.features.astype(np.float32).T)
    estimator = GradientBoostingClassifier(n_estimators=20, max_features=2, min_samples_leaf=leaf)
    np.testing.assert_array_equal(run(estimator, records), refitted(estimator, records))


@pytest.mark.parametrize("max_features", [1, 2])
def test_a_node_whose_column_cannot_be_split_is_a_leaf(max_features):
    """Five values of which neighbours are as good as equal, and the lowest and highest are not: the column varies."""
    X = np.column_stack([np.repeat(np.arange(5), 2) * 5e-8, np.arange(10.0)])
    records = Records.from_arrays(np.vstack([X, [[0.0, 5.0]]]), np.r_[np.zeros(5), np.ones(6)], task="regression")
    estimator = GradientBoostingRegressor(n_estimators=1, max_depth=1, learning_rate=1.0, max_features=max_features)
    subsets = DenseSubsets(np.repeat(but_one(10).members, 30, axis=0))
    found = run(estimator, records, subsets, X)[:, :, 0]
    np.testing.assert_array_equal(found, refitted(estimator, records, subsets, X)[:, :, 0])
    leaves = (found == 0.5).all(axis=1)
    assert ((found == (np.arange(10) > 4)).all(axis=1) | leaves).all()
    assert leaves.any() == (max_features == 1)


def test_models_that_fit_exactly():
    """Residuals come down to what rounding leaves, and nodes that are pure but for it are no more split."""
    records = people(60, 2)
    estimator = GradientBoostingClassifier(n_estimators=150, learning_rate=1.0, max_depth=None)
    np.testing.assert_allclose(run(estimator, records), refitted(estimator, records), rtol=0, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_shares_that_are_rounded_to_0_are_0(n_classes):
    """As they are in the answers of the audited model, beside which shadow models stand."""
    records = people(100, n_classes)
    estimator = GradientBoostingClassifier(n_estimators=60, learning_rate=30.0)
    found, expected = run(estimator, records), refitted(estimator, records)
    assert np.isinf(expected).any()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_values_that_run_away_are_refused():
    """Each model, in the words of scikit-learn's own."""
    job = job_of(GradientBoostingRegressor(n_estimators=400, learning_rate=1e3), people(100, 1))
    outcome = Boosting().prepare(job).all()
    assert outcome.kind is None
    assert len(outcome.failures) == len(job.subsets)
    assert all("gave NaN or infinity" in reason for reason in outcome.failures.values())
    assert outcome.failures == Refit().prepare(job).all().failures


def test_labels_in_another_order_than_their_classes():
    """As a schema may have them: columns of the answers are those of the schema."""
    records = people(200, 4)
    order = np.array([2, 0, 3, 1])
    target = replace(records.schema.target, categories=tuple(records.schema.classes[i] for i in order))
    turned = replace(records, schema=replace(records.schema, target=target), labels=np.argsort(order)[records.labels])
    estimator = GradientBoostingClassifier(n_estimators=10)
    np.testing.assert_array_equal(run(estimator, turned), run(estimator, records)[:, :, order])
    np.testing.assert_allclose(run(estimator, turned), refitted(estimator, turned), rtol=0, atol=1e-9)


def test_one_tree_by_hand():
    """Values 0 to 7 and numbers that rise by 1, then by 5: a stump parts them there, and takes half of each mean."""
    records = Records.from_arrays(np.arange(9.0)[:, None], np.array([0.5, 1, 1.5, 2, 10, 10.5, 11, 11.5, 70.25]))
    estimator = GradientBoostingRegressor(n_estimators=1, max_depth=1, learning_rate=0.5)
    asked = np.array([[3.4], [3.6], [-9.0], [99.0]])
    found = run(estimator, records, but_one(8), asked)[0, :, 0]
    np.testing.assert_allclose(found, [3.625, 8.375, 3.625, 8.375])


def test_a_leaf_takes_one_newton_step():
    """Of 6 of 10 in one half and 1 of 10 in the other: residuals 0.25 and -0.25, curvature 0.35 x 0.65."""
    X, y = np.repeat([0.0, 1.0, 1.0], [10, 10, 1])[:, None], np.r_[np.arange(10) < 6, np.arange(10) < 1, True]
    records = Records.from_arrays(X, np.where(y, "yes", "no"))
    found = run(GradientBoostingClassifier(n_estimators=1), records, but_one(20), np.array([[0.0], [1.0]]))[0]
    raw = np.log(0.35 / 0.65) + 0.1 * np.array([0.25, -0.25]) / (0.35 * 0.65)
    np.testing.assert_allclose(found[:, 1], -np.log1p(np.exp(-raw)))


# ---------------------------------------------------------------- the job


@pytest.mark.parametrize("n_classes", [2, 4])
def test_answers_are_log_probabilities_of_all_classes(n_classes):
    records = people(300, n_classes)
    found = run(GradientBoostingClassifier(n_estimators=5), records)
    assert found.shape == (4, 300, n_classes)
    np.testing.assert_allclose(np.exp(found).sum(axis=2), 1)


def test_each_model_answers_about_records_of_its_own():
    records = people(200, 2)
    index = np.random.default_rng(0).integers(0, 200, (4, 7))
    estimator = GradientBoostingClassifier(n_estimators=6)
    own, every = run(estimator, records, queries=EachModel(index)), run(estimator, records)
    np.testing.assert_array_equal(own, np.stack([one[rows] for one, rows in zip(every, index, strict=True)]))


def test_workers_parts_and_seeds():
    records = people(150, 2)
    learner, subsets = (
        SklearnLearner(GradientBoostingClassifier(n_estimators=5, max_features=2)),
        halves(people(150, 2), 6),
    )
    one, two = (
        train_many(learner, records, subsets, seed=3, execution=Execution(workers=workers)).answers
        for workers in (1, 2)
    )
    np.testing.assert_array_equal(one, two)
    other = train_many(learner, records, subsets, seed=4).answers
    assert np.abs(one - other).max() > 0.01
    twice = DenseSubsets(np.repeat(subsets.members[:1], 2, axis=0))
    same, different = (
        train_many(learner, records, twice, seed=3, randomness=how).answers
        for how in (Randomness.COMMON, Randomness.INDEPENDENT)
    )
    np.testing.assert_array_equal(same[0], same[1])
    assert np.abs(different[0] - different[1]).max() > 0.01


def test_the_engine_is_used_after_steps_that_learn_nothing():
    estimator = make_pipeline(FunctionTransformer(), GradientBoostingClassifier(n_estimators=3))
    assert plan(job_of(estimator, people(100, 2))).engine.name == "gradient-boosting"


@pytest.mark.parametrize(
    ("estimator", "subsets", "said"),
    [
        (GradientBoostingClassifier(subsample=0.5), None, "subsample=...) is not supported"),
        (GradientBoostingClassifier(n_iter_no_change=3), None, "n_iter_no_change=...) is not supported"),
        (GradientBoostingClassifier(init="zero"), None, "init=...) is not supported"),
        (GradientBoostingClassifier(max_leaf_nodes=4), None, "max_leaf_nodes=...) is not supported"),
        (GradientBoostingClassifier(loss="exponential"), None, "loss='exponential') is not supported"),
        (GradientBoostingClassifier(learning_rate=-1.0), None, "refuses its settings"),
        (GradientBoostingClassifier(min_samples_leaf=2**62), None, "too large a number"),
        (GradientBoostingClassifier(max_depth=2**70), None, "too large a number"),
        (GradientBoostingClassifier(max_features=2**64), None, "too large a number"),
        (GradientBoostingClassifier(), DenseSubsets(np.arange(100)[None] < 1), "not given all classes"),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_what_is_not_supported_is_trained_by_scikit_learn(estimator, subsets, said):
    records = people(100, 2)
    job = job_of(estimator, records, subsets)
    assert said in str(Boosting().prepare(job))


@pytest.mark.parametrize(("repeated", "engine"), [(True, "refit"), (False, "gradient-boosting")])
def test_random_numbers_that_an_attacker_knows_are_not_left_to_rounding(repeated, engine):
    records = people(100, 1)
    X = np.round(records.features) if repeated else records.features
    estimator = GradientBoostingRegressor(max_features=2, random_state=0)
    job = job_of(estimator, Records.from_arrays(X, records.labels))
    assert plan(job.with_known_seed()).engine.name == engine
    assert plan(job).engine.name == "gradient-boosting"


@pytest.mark.parametrize("settings", [{"min_samples_leaf": 10**12}, {"min_samples_split": 2**61}, {"max_depth": 2**40}])
def test_settings_without_an_end_are_those_of_scikit_learn(settings):
    records = people(60, 2)
    estimator = GradientBoostingClassifier(n_estimators=3, **settings)
    np.testing.assert_array_equal(run(estimator, records), refitted(estimator, records))


def test_what_scikit_learn_cannot_count_to_is_an_error_of_the_model():
    with pytest.raises(ModelError, match="raised OverflowError"):
        train_many(
            SklearnLearner(GradientBoostingClassifier(max_depth=2**70)), people(60, 2), halves(people(60, 2)), seed=0
        )


def test_numbers_beyond_single_precision_are_refused():
    records = Records.from_arrays(np.array([[1e300], [1.0]] * 20), np.array(["a", "b"] * 20))
    assert "too large" in str(Boosting().prepare(job_of(GradientBoostingClassifier(), records)))


@pytest.mark.parametrize("subsets", [leave_one_out(100), everything(100)], ids=["without one", "all"])
def test_regressors_of_all_records_and_without_one_are_trained_by_scikit_learn(subsets):
    job = job_of(GradientBoostingRegressor(), people(100, 1), subsets)
    assert "trains on all records, and without single ones" in str(Boosting().prepare(job))


def test_other_learners_are_refused():
    records = people(40, 2)
    learner = FunctionLearner(lambda given, seed: None)
    job = Job(learner, records, halves(records), records.features, 1, Randomness.COMMON)
    assert not isinstance(Boosting().prepare(job), PreparedJob)


def test_without_compiled_loops_scikit_learn_trains(monkeypatch):
    monkeypatch.setattr(boosting, "kernels", lambda: None)
    assert "scikit-learn is faster" in str(Boosting().prepare(job_of(GradientBoostingClassifier(), people(60, 2))))


def test_a_number_that_is_known_is_that_of_all_models():
    records = people(150, 2)
    estimator = GradientBoostingClassifier(n_estimators=4, max_features=2, random_state=7)
    job = job_of(estimator, records, subsets=halves(records, 2)).with_known_seed()
    assert plan(job).engine.name == "gradient-boosting"
    found = Boosting().prepare(job).all().answers
    for model in range(2):
        own = records[np.flatnonzero(job.subsets.row(model))]
        expected = estimator.fit(own.features, own.labels).predict_proba(records.features)
        np.testing.assert_allclose(np.exp(found[model]), expected, rtol=0, atol=1e-9)
