"""Named learners: what they are given, what they refuse, and that they are the models they are named after."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from leakgauge.errors import ConfigError, DataError
from leakgauge.models import answers
from leakgauge.records import Native, Records, Task
from leakgauge.training import (
    RECIPES,
    EachModel,
    FixedDesign,
    SklearnLearner,
    default_recipe,
    leave_one_out,
    recipe,
    train_many,
)

CLASSIFIERS = [one.name for one in RECIPES if one.task is Task.CLASSIFICATION]
REGRESSORS = [one.name for one in RECIPES if one.task is Task.REGRESSION]


def mixed(n: int = 120, *, regression: bool = False, seed: int = 0) -> Records:
    """Two numbers on very different scales, and two columns of categories."""
    rng = np.random.default_rng(seed)
    wealth, age = rng.normal(50_000, 20_000, n), rng.integers(18, 80, n)
    town = np.array(["north", "south", "west"])[np.arange(n) % 3]
    ill = rng.random(n) < 0.3
    X = np.column_stack([wealth, age, town, ill]).astype(object)
    X[:, 0], X[:, 1], X[:, 3] = wealth, age, ill
    signal = (wealth - 50_000) / 20_000 + (town == "west") + rng.normal(0, 0.5, n)
    y = signal if regression else np.where(signal > 0.3, "yes", "no")
    return Records.from_arrays(X, y, names=["wealth", "age", "town", "ill"])


def numeric(n: int = 90, seed: int = 0) -> Records:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return Records.from_arrays(rng.normal(y[:, None], 1.0, (n, 4)), y)


def predictions(learner: SklearnLearner, records: Records) -> np.ndarray:
    k = max(1, len(records.schema.classes))
    return answers(learner.fit(records, seed=1).model, records.features, k)


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("make", [mixed, numeric])
def test_every_classifier_learns_something_from_any_table(name: str, make: object) -> None:
    """Well above the share of the commonest class, which a guess would reach."""
    records = make(300).as_codes()  # type: ignore[operator]
    train, test = records[:200], records[200:]
    fitted = recipe(name, records).fit(train, seed=1)
    assert fitted.converged
    logs = answers(fitted.model, test.features, len(records.schema.classes))
    accuracy = np.mean(np.argmax(logs, axis=1) == test.labels)
    assert accuracy > np.bincount(test.labels).max() / len(test) + 0.1


@pytest.mark.parametrize("name", REGRESSORS)
def test_every_regressor_learns_something(name: str) -> None:
    records = mixed(300, regression=True).as_codes()
    train, test = records[:200], records[200:]
    predicted = answers(recipe(name, records).fit(train, seed=1).model, test.features, 1)[:, 0]
    assert np.mean((predicted - test.labels) ** 2) < 0.6 * np.var(test.labels)


def test_naive_bayes_of_a_numeric_table_is_gaussian() -> None:
    records = numeric().as_codes()
    expected = GaussianNB().fit(records.features, records.labels).predict_log_proba(records.features)
    np.testing.assert_allclose(predictions(recipe("naive-bayes", records), records), expected, rtol=1e-12)


def test_naive_bayes_beside_categories_counts_bins_of_the_pool() -> None:
    """The slow twin bins by hand with the deciles of the pool, whoever is in the training set."""
    pool = mixed(200).as_codes()
    train = pool[:50]

    def binned(records: Records) -> np.ndarray:
        columns = [
            np.searchsorted(
                np.quantile(pool.features[:, j], np.linspace(0, 1, 11))[1:-1], records.features[:, j], "right"
            )
            for j in (0, 1)
        ]
        return np.column_stack([*columns, records.features[:, 2:]]).astype(int)

    n_bins = [len(np.unique(np.quantile(pool.features[:, j], np.linspace(0, 1, 11)))) - 1 for j in (0, 1)]
    twin = CategoricalNB(alpha=1.0, min_categories=[*n_bins, 3, 2]).fit(binned(train), train.labels)
    fitted = recipe("naive-bayes", pool).fit(train, seed=None)
    found = answers(fitted.model, pool.features, 2)
    np.testing.assert_allclose(found, twin.predict_log_proba(binned(pool)), rtol=1e-12)


def test_bins_may_be_asked_for_where_all_is_numeric() -> None:
    learner = recipe("naive-bayes", numeric().as_codes(), bins=4, alpha=0.5)
    last = learner.estimator[-1]
    assert isinstance(last, CategoricalNB)
    assert last.alpha == 0.5
    assert tuple(last.min_categories) == (4, 4, 4, 4)


def encoded(pool: Records) -> ColumnTransformer:
    """One-hot with the schema's categories and standardisation by scikit-learn's own parts, fitted on the pool."""
    encode = OneHotEncoder(categories=[np.arange(3.0), np.arange(2.0)], sparse_output=False)
    return ColumnTransformer([("n", StandardScaler(), [0, 1]), ("c", encode, [2, 3])]).fit(pool.features)


@pytest.mark.parametrize(
    ("name", "twin", "regression"),
    [
        ("logistic-regression", LogisticRegression(tol=1e-10, solver="newton-cholesky", max_iter=1000), False),
        ("k-nearest-neighbours", KNeighborsClassifier(5), False),
        ("ridge", Ridge(1.0), True),
        ("linear-regression", LinearRegression(), True),
    ],
)
def test_linear_models_and_neighbours_see_a_standard_design(name: str, twin: object, regression: bool) -> None:
    """Against scikit-learn's own encoder and scaler, fitted on the pool rather than on the training set."""
    pool = mixed(160, regression=regression).as_codes()
    train = pool[:80]
    design = encoded(pool)
    pipeline = make_pipeline(twin).fit(design.transform(train.features), train.labels)
    found = answers(recipe(name, pool).fit(train, seed=None).model, pool.features, 1 if regression else 2)
    queries = design.transform(pool.features)
    expected = pipeline.predict(queries)[:, None] if regression else pipeline.predict_proba(queries)
    np.testing.assert_allclose(found if regression else np.exp(found), expected, rtol=1e-6, atol=1e-9)


def test_logistic_regression_has_converged_with_either_solver() -> None:
    """The gradient of the penalised mean loss is nought at the solution: below 1e-7 for few and many coefficients."""
    for n_columns, solver in ((4, "newton-cholesky"), (150, "lbfgs")):
        rng = np.random.default_rng(3)
        y = np.arange(120) % 3
        records = Records.from_arrays(rng.normal(y[:, None], 3.0, (120, n_columns)), y).as_codes()
        learner = recipe("logistic-regression", records, C=0.5)
        assert learner.estimator[-1].solver == solver
        fitted = learner.estimator.fit(records.features, records.labels)
        design = fitted[0].transform(records.features)
        residual = fitted.predict_proba(records.features) - np.eye(3)[records.labels]
        gradient = residual.T @ design + fitted[-1].coef_ / 0.5
        assert np.abs(gradient).max() / len(records) < 1e-7
        assert np.abs(residual.sum(axis=0)).max() / len(records) < 1e-7


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_logistic_regression_that_is_sure_is_not_infinitely_sure(n_classes: int) -> None:
    """scikit-learn's own probability is exactly 0 beyond a score of 37; the logarithm is minus the score."""
    y = np.arange(60) % n_classes
    pool = Records.from_arrays(100.0 * y[:, None] + np.arange(60)[:, None] / 60, y).as_codes()
    fitted = recipe("logistic-regression", pool, C=1e6).fit(pool, seed=None)
    far = np.array([[-1e5], [1e5]])
    logs = answers(fitted.model, far, n_classes)
    assert np.isfinite(logs).all()
    assert logs.min() < -40
    assert np.exp(logs).sum(axis=1) == pytest.approx(1.0)
    assert (fitted.model.estimator.predict_proba(far) == 0).any()  # type: ignore[union-attr]
    near = pool.features[::7]
    expected = fitted.model.estimator.predict_proba(near)  # type: ignore[union-attr]
    np.testing.assert_allclose(np.exp(answers(fitted.model, near, n_classes)), expected, rtol=1e-9, atol=1e-15)


def test_what_is_random_and_what_is_not() -> None:
    """A learner that could not differ by seed is measured exactly, without a second look."""
    pool = mixed().as_codes()
    randomised = {name: recipe(name, pool).randomised for name in CLASSIFIERS}
    assert randomised == {
        "naive-bayes": False,
        "logistic-regression": False,
        "random-forest": True,
        "decision-tree": False,
        "k-nearest-neighbours": False,
        "neural-network": True,
    }


@pytest.mark.parametrize("solver", ["sag", "saga", "liblinear"])
def test_solvers_that_shuffle_are_random(solver: str) -> None:
    assert SklearnLearner(LogisticRegression(solver=solver)).randomised
    assert not SklearnLearner(LogisticRegression()).randomised
    assert SklearnLearner(make_pipeline(StandardScaler(), LogisticRegression(solver=solver))).randomised


def test_options_reach_the_estimator() -> None:
    pool = mixed().as_codes()
    forest = recipe("random-forest", pool, trees=7, max_depth=3)
    assert (forest.n_trees, forest.max_depth) == (7, 3)
    assert recipe("decision-tree", pool, max_depth=2).max_depth == 2
    network = recipe("neural-network", pool, units=5, epochs=3).estimator[-1]
    assert (network.hidden_layer_sizes, network.max_iter) == ((5,), 3)
    assert recipe("k-nearest-neighbours", pool, neighbours=3).estimator[-1].n_neighbors == 3
    assert recipe("logistic-regression", pool, C=3).estimator[-1].C == 3.0
    numbers = mixed(regression=True).as_codes()
    assert recipe("ridge", numbers, alpha=0.25).estimator[-1].alpha == 0.25
    assert recipe("decision-tree-regression", numbers, max_depth=4).estimator.max_depth == 4


def test_the_same_recipe_has_the_same_fingerprint_and_another_pool_another() -> None:
    pool = mixed().as_codes()
    for name in CLASSIFIERS:
        assert recipe(name, pool).fingerprint() == recipe(name, pool).fingerprint()
    assert recipe("naive-bayes", pool).fingerprint() != recipe("naive-bayes", pool[:60]).fingerprint()
    assert recipe("naive-bayes", pool).fingerprint() != recipe("naive-bayes", pool, bins=5).fingerprint()


def test_defaults_suit_the_task() -> None:
    assert default_recipe(mixed().schema) in CLASSIFIERS
    assert default_recipe(mixed(regression=True).schema) in REGRESSORS


def test_the_design_is_the_same_for_any_training_set() -> None:
    pool = mixed(100).as_codes()
    design = recipe("logistic-regression", pool).estimator[0]
    whole = design.fit_transform(pool.features)
    np.testing.assert_array_equal(whole[30:40], design.fit(pool.features[:7]).transform(pool.features[30:40]))
    assert whole.shape == (100, 2 + 3 + 2)
    np.testing.assert_allclose(whole[:, :2].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(whole[:, :2].std(axis=0), 1.0)
    np.testing.assert_array_equal(whole[:, 2:5].sum(axis=1), 1.0)
    np.testing.assert_array_equal(whole[:, 5:].sum(axis=1), 1.0)


def test_a_constant_column_is_no_trouble() -> None:
    X = np.column_stack([np.arange(10.0), np.full(10, 3.0)])
    pool = Records.from_arrays(X, np.arange(10) % 2).as_codes()
    design = recipe("k-nearest-neighbours", pool).estimator[0].fit(pool.features)
    np.testing.assert_array_equal(design.transform(pool.features)[:, 1], 0.0)
    assert design.transform([[4.5, 5.5]]).tolist() == [[0.0, 2.5]], "in its own unit where another value is asked for"


@pytest.mark.parametrize("code", [3.0, -1.0, 0.5])
def test_a_design_of_what_is_no_code_is_refused(code: float) -> None:
    with pytest.raises(DataError, match="holds a number that is not a code"):
        FixedDesign((3,), (0.0,), (1.0,)).fit_transform([[code]])


def test_a_design_of_another_width_is_refused() -> None:
    with pytest.raises(DataError, match="expected a matrix of 1 columns"):
        FixedDesign((3,), (0.0,), (1.0,)).fit([[1.0, 2.0]])


def test_an_unknown_recipe_names_the_closest_and_all() -> None:
    with pytest.raises(ConfigError, match="'naive-baise' is not known; did you mean 'naive-bayes'") as caught:
        recipe("naive-baise", numeric().as_codes())
    for one in RECIPES:
        assert one.name in str(caught.value)


def test_a_recipe_for_another_task_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'ridge' is for regression.*classification task; take one of naive-bayes"):
        recipe("ridge", numeric().as_codes())
    with pytest.raises(ConfigError, match=r"'naive-bayes' is for classification.*take one of ridge"):
        recipe("naive-bayes", mixed(regression=True).as_codes())


@pytest.mark.parametrize("value", [0, -1, 2.5, "3", True, float("nan"), float("inf"), None])
def test_a_whole_number_must_be_one(value: object) -> None:
    with pytest.raises(
        ConfigError,
        match="option 'trees' of recipe 'random-forest' must be a whole number of at most 1,000,000 and above 0",
    ):
        recipe("random-forest", numeric().as_codes(), trees=value)


@pytest.mark.parametrize("value", [0.0, -1.0, "1", False, float("nan"), float("inf")])
def test_a_number_must_be_one(value: object) -> None:
    with pytest.raises(ConfigError, match="option 'C' of recipe 'logistic-regression' must be a number above 0"):
        recipe("logistic-regression", numeric().as_codes(), C=value)


def test_an_unknown_option_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="'random-forest' has no option 'n_trees'; its options: 'trees', 'max_depth'"):
        recipe("random-forest", numeric().as_codes(), n_trees=3)
    with pytest.raises(ConfigError, match="its options: none"):
        recipe("linear-regression", mixed(regression=True).as_codes(), alpha=3)


def test_smoothing_without_counts_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'alpha'.*set bins as well"):
        recipe("naive-bayes", numeric().as_codes(), alpha=1.0)


@pytest.mark.parametrize("records", [mixed(), numeric().with_native(Native.PANDAS)])
def test_records_that_are_not_in_codes_are_refused(records: Records) -> None:
    with pytest.raises(DataError, match="as_codes"):
        recipe("naive-bayes", records)


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("naive-bayes", "categorical-naive-bayes"),
        ("k-nearest-neighbours", "nearest-neighbours"),
        ("ridge", "ridge-regression"),
        ("decision-tree", "trees"),
    ],
)
def test_closed_forms_apply_and_agree_with_training(name: str, engine: str) -> None:
    """What a recipe takes from the pool is no obstacle to leaving records out without training."""
    pool = mixed(90, regression=name == "ridge").as_codes()
    train = pool[:60]
    rows = np.arange(12)
    asked = {"subsets": leave_one_out(60, rows), "queries": EachModel(rows[:, None]), "seed": 0}
    learner = recipe(name, pool)
    found = train_many(learner, train, **asked)  # type: ignore[arg-type]
    assert found.engine == engine
    trained = train_many(learner, train, **asked, engines=())  # type: ignore[arg-type]
    np.testing.assert_allclose(found.answers, trained.answers, rtol=1e-8, atol=1e-9)
