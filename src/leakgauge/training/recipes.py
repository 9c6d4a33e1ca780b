"""Named learners for a table of any kind: ordinary models with ordinary settings, to audit a data set at once.

A recipe works on codes (:meth:`leakgauge.records.Records.as_codes`), so that it needs no data frame. What it must
know beforehand -- categories, the edges of bins, centre and scale of numeric columns -- comes from the whole pool and
counts as public: it is the same for every model of an audit, so models differ by their training records alone, and
the closed forms for leave-one-out models apply. Where preprocessing was learned from the training set, as in most
pipelines, give that pipeline as the learner instead.

Solvers run until they have converged: one that stops early hides the influence of single records.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias, cast

import narwhals as nw
import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin

from leakgauge.errors import ConfigError, DataError
from leakgauge.records import Native, Records, Schema, Task
from leakgauge.records._messages import closest, quoted
from leakgauge.training.learners import Learner, SklearnLearner
from leakgauge.training.trees import DecisionTree, RandomForest, public_thresholds

Options: TypeAlias = Mapping[str, Any]
Floats: TypeAlias = npt.NDArray[np.float64]

N_COLUMN_BINS = 10
"""Bins of a numeric column beside categories, for naive Bayes."""

SOLVER_TOLERANCE = 1e-8
"""Solver tolerance: below 0.01 / n up to a million records (see :mod:`leakgauge.training.solver`)."""

BATCH_RECORDS = 50
"""Records of a step of a network's training."""

MAX_NEWTON_COEFFICIENTS = 300
"""Coefficients up to which Newton's method, which solves for all of them at once, is the quicker solver."""


MAX_OPTION = 1_000_000
"""Of trees, bins or epochs: more would not fit into memory or time."""


@dataclass(frozen=True)
class Option:
    """A number that a recipe may be given.

    Args:
        kind: ``int`` or ``float``.
        default: what it is otherwise; ``None`` has the meaning said in ``meaning``.
        meaning: what it does, in a few words.
        above: values must be greater than this.
    """

    kind: type[int] | type[float]
    default: float | None
    meaning: str
    above: float = 0

    def checked(self, recipe: str, name: str, value: object) -> int | float | None:
        """The value, or a :class:`ConfigError` that says what was expected."""
        if value is None and self.default is None:
            return None
        is_number = isinstance(value, int if self.kind is int else int | float) and not isinstance(value, bool)
        largest = MAX_OPTION if self.kind is int else sys.float_info.max
        if is_number and self.above < (number := cast(float, value)) <= largest:
            return self.kind(number)
        noun = f"a whole number of at most {MAX_OPTION:,} and" if self.kind is int else "a number"
        raise ConfigError(
            f"option {name!r} of recipe {recipe!r} must be {noun} above {self.above:g}, got {value!r}; "
            f"it is {self.meaning}"
        )


@dataclass(frozen=True)
class Recipe:
    """A named learner.

    Args:
        name: what a configuration calls it.
        title: what it is, in a few words.
        task: what it predicts.
        make: pool, in codes, and all options to an unfitted estimator, or to a learner of our own.
        options: what may be set, by name.
    """

    name: str
    title: str
    task: Task
    make: Callable[[Records, Options], Any]
    options: Mapping[str, Option] = field(default_factory=dict)

    def checked(self, given: Options) -> dict[str, int | float | None]:
        """All options with their values, the given ones checked."""
        unknown = [name for name in given if name not in self.options]
        if unknown:
            known = quoted(self.options) or "none"
            raise ConfigError(f"recipe {self.name!r} has no option {unknown[0]!r}; its options: {known}")
        return {
            name: option.checked(self.name, name, given[name]) if name in given else option.default
            for name, option in self.options.items()
        }


class FixedDesign(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn transformer from codes to a design matrix: categories one-hot, numbers centred and scaled.

    All it uses is given; it learns nothing from ``fit``, so that the row of a person never depends on who else is in
    the training set.

    Args:
        n_categories: for each column the number of its categories, 0 for a numeric one.
        centres: for each column what is subtracted; ignored for categories.
        scales: for each column what it is divided by, above 0; ignored for categories.

    >>> FixedDesign((0, 3), (10.0, 0.0), (2.0, 1.0)).fit_transform(np.array([[12.0, 2.0], [10.0, 0.0]]))
    array([[1., 0., 0., 1.],
           [0., 1., 0., 0.]])
    """

    def __init__(self, n_categories: tuple[int, ...], centres: tuple[float, ...], scales: tuple[float, ...]) -> None:
        self.n_categories = n_categories
        self.centres = centres
        self.scales = scales

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Check the number of columns; nothing is learned.

        Raises:
            DataError: the matrix has another number of columns.
        """
        self._matrix(X)
        return self

    def transform(self, X: npt.ArrayLike) -> Floats:
        """The design matrix ``[m, p]``: one column for each numeric column, one for each category, in order.

        Raises:
            DataError: the matrix has another number of columns, or a code is not that of a category.
        """
        matrix = self._matrix(X)
        n_categories = np.asarray(self.n_categories, dtype=np.int64)
        start = np.concatenate([[0], np.cumsum(np.maximum(n_categories, 1))])
        numeric, coded = np.flatnonzero(n_categories == 0), np.flatnonzero(n_categories)
        design = np.zeros((len(matrix), int(start[-1])))
        design[:, start[numeric]] = (matrix[:, numeric] - np.asarray(self.centres)[numeric]) / np.asarray(self.scales)[
            numeric
        ]
        codes = matrix[:, coded]
        if (codes < 0).any() or (codes >= n_categories[coded]).any() or (codes != np.floor(codes)).any():
            raise DataError(
                "a column of categories holds a number that is not a code; encode the table first (as_codes)."
            )
        design[np.arange(len(matrix))[:, None], start[coded] + codes.astype(np.int64)] = 1.0
        return design

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _matrix(self, X: npt.ArrayLike) -> Floats:
        matrix = np.asarray(X, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != len(self.n_categories):
            raise DataError(f"expected a matrix of {len(self.n_categories)} columns, got shape {matrix.shape}.")
        return matrix


class ClipColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn transformer that moves numbers beyond a range that was fixed beforehand to its end.

    As the first step of a pipeline it makes bounds for queries within the range hold for every query. It learns nothing
    from ``fit``; the range must not be read off the training records.

    Args:
        lowest: of each column, in order; ``-inf`` for none, and for categories.
        highest: of each column; ``inf`` for none, and for categories.

    >>> ClipColumns((0.0, -np.inf), (9.0, np.inf)).fit_transform(np.array([[12.0, 2.0], [-1.0, 70.0]]))
    array([[ 9.,  2.],
           [ 0., 70.]])
    """

    def __init__(self, lowest: tuple[float, ...], highest: tuple[float, ...]) -> None:
        self.lowest = lowest
        self.highest = highest

    def fit(self, X: Any, y: object = None) -> Self:
        """Check the number of columns; nothing is learned.

        Raises:
            DataError: the table has another number of columns, or the range is none.
        """
        self._checked(X)
        return self

    def transform(self, X: Any) -> Any:
        """The table with its numbers within the range, of the same kind.

        Raises:
            DataError: the table has another number of columns, or the range is none.
        """
        self._checked(X)
        ends = [(j, low, high) for j, (low, high) in enumerate(zip(self.lowest, self.highest, strict=True))]
        ends = [(j, low, high) for j, low, high in ends if low > -np.inf or high < np.inf]
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            frame: Any = nw.from_native(X, eager_only=True)
            columns = [(nw.col(frame.columns[j]).cast(nw.Float64), low, high) for j, low, high in ends]
            return nw.to_native(frame.with_columns(column.clip(low, high) for column, low, high in columns))
        table = np.asarray(X)
        table = table.astype(object if table.dtype.kind in "OUS" else np.float64)  # whole numbers could not hold an end
        for j, low, high in ends:
            table[:, j] = np.clip(table[:, j].astype(np.float64), low, high)
        return table

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _checked(self, X: Any) -> None:
        if len(self.lowest) != len(self.highest) or any(
            not low <= high for low, high in zip(self.lowest, self.highest, strict=True)
        ):
            raise DataError("the range of a column must be a lowest number and a highest one that is no lower.")
        width = X.shape[1] if np.ndim(X) == 2 or hasattr(X, "shape") else 0
        if width != len(self.lowest):
            raise DataError(f"expected a table of {len(self.lowest)} columns, got {width}.")


def recipe(name: str, pool: Records, **options: Any) -> Learner:
    """A named learner for records like those of the pool.

    Args:
        name: of the recipe; see :data:`RECIPES`.
        pool: all records of the audit, members or not, in codes; only what counts as public is taken from them.
        options: of the recipe.

    Returns:
        A learner to be trained on records in codes.

    Raises:
        ConfigError: no such recipe or option, an impossible value, or a recipe for another task.
        DataError: the pool is not in codes.

    >>> pool = Records.from_arrays([[1.0], [2.0], [4.0], [5.0]], ["a", "a", "b", "b"])
    >>> recipe("decision-tree", pool, max_depth=3).name
    'DecisionTree'
    """
    known = {one.name: one for one in RECIPES}
    if name not in known:
        near = closest(name, list(known))
        raise ConfigError(f"recipe {name!r} is not known; {near.rstrip('.')}; the recipes: {', '.join(known)}")
    chosen, task = known[name], pool.schema.task
    if chosen.task is not task:
        fitting = ", ".join(one.name for one in RECIPES if one.task is task)
        raise ConfigError(
            f"recipe {name!r} is for {chosen.task.value}, but predicting {pool.schema.target.name!r} is a {task.value} "
            f"task; take one of {fitting}, or declare the task"
        )
    if pool.schema.native is not Native.NUMPY or not pool.schema.codes_are_values:
        raise DataError("recipes work on codes; bring the records into that form with records.as_codes()")
    if pool.has_missing:
        raise DataError(
            "recipes need all numbers, but some are missing; fill them in, or give a pipeline of your own that takes "
            "missing values, such as one that begins with scikit-learn's SimpleImputer"
        )
    made = chosen.make(pool, chosen.checked(options))
    return made if isinstance(made, Learner) else SklearnLearner(made)


def default_recipe(schema: Schema) -> str:
    """The recipe for data that come without one: quick, and with a closed form for leave-one-out models."""
    return "naive-bayes" if schema.task is Task.CLASSIFICATION else "ridge"


def fixed_design(pool: Records) -> FixedDesign:
    """One-hot categories, and numeric columns that have mean 0 and standard deviation 1 in the pool."""
    deviation = pool.features.std(axis=0)
    return FixedDesign(
        tuple(pool.schema.n_categories.tolist()),
        tuple(pool.features.mean(axis=0).tolist()),
        tuple(np.where(deviation > 0, deviation, 1.0).tolist()),
    )


def _naive_bayes(pool: Records, options: Options) -> Any:
    from sklearn.naive_bayes import CategoricalNB, GaussianNB
    from sklearn.pipeline import make_pipeline

    from leakgauge.records import FixedBins, bin_counts, bin_edges

    if options["bins"] is None and not pool.schema.categorical.any():
        if options["alpha"] is not None:
            raise ConfigError(
                "option 'alpha' of recipe 'naive-bayes' smooths counts, but all columns are numeric and modelled as "
                "normal; set bins as well"
            )
        return GaussianNB()
    edges = bin_edges(pool, options["bins"] or N_COLUMN_BINS)
    counts = tuple(bin_counts(pool.schema, edges).tolist())
    alpha = 1.0 if options["alpha"] is None else options["alpha"]
    return make_pipeline(FixedBins(edges), CategoricalNB(alpha=alpha, min_categories=counts))


def _logistic_regression(pool: Records, options: Options) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    design = fixed_design(pool)
    n_columns = sum(max(n, 1) for n in design.n_categories)
    n_coefficients = n_columns * (1 if len(pool.schema.classes) == 2 else len(pool.schema.classes))
    solver = "newton-cholesky" if n_coefficients <= MAX_NEWTON_COEFFICIENTS else "lbfgs"
    return make_pipeline(
        design, LogisticRegression(C=options["C"], tol=SOLVER_TOLERANCE, solver=solver, max_iter=10_000)
    )


def _random_forest(pool: Records, options: Options) -> Learner:
    return RandomForest(public_thresholds(pool), options["trees"], max_depth=options["max_depth"])


def _decision_tree(pool: Records, options: Options) -> Learner:
    return DecisionTree(public_thresholds(pool), options["max_depth"])


def _k_nearest_neighbours(pool: Records, options: Options) -> Any:
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline

    return make_pipeline(fixed_design(pool), KNeighborsClassifier(n_neighbors=options["neighbours"]))


def _neural_network(pool: Records, options: Options) -> Any:
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline

    network = MLPClassifier(
        (options["units"],),
        activation="tanh",
        alpha=0.0,
        batch_size=BATCH_RECORDS,
        learning_rate_init=options["rate"],
        max_iter=options["epochs"],
        tol=0.0,
        n_iter_no_change=np.inf,
    )
    return make_pipeline(fixed_design(pool), network)


def _ridge(pool: Records, options: Options) -> Any:
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    return make_pipeline(fixed_design(pool), Ridge(alpha=options["alpha"]))


def _linear_regression(pool: Records, options: Options) -> Any:
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline

    return make_pipeline(fixed_design(pool), LinearRegression())


def _decision_tree_regression(pool: Records, options: Options) -> Any:
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor(max_depth=options["max_depth"])


_DEPTH = Option(int, None, "the depth of a tree, by default until all leaves are pure")

RECIPES: tuple[Recipe, ...] = (
    Recipe(
        "naive-bayes",
        "naive Bayes: normal for numeric tables, else counts of categories and bins",
        Task.CLASSIFICATION,
        _naive_bayes,
        {
            "bins": Option(int, None, f"the bins of a numeric column, by default {N_COLUMN_BINS} beside categories"),
            "alpha": Option(float, None, "what is added to each count, by default 1"),
        },
    ),
    Recipe(
        "logistic-regression",
        "logistic regression, fitted until it has converged",
        Task.CLASSIFICATION,
        _logistic_regression,
        {"C": Option(float, 1.0, "the inverse strength of the penalty")},
    ),
    Recipe(
        "random-forest",
        "random forest",
        Task.CLASSIFICATION,
        _random_forest,
        {"trees": Option(int, 100, "the number of trees"), "max_depth": _DEPTH},
    ),
    Recipe("decision-tree", "decision tree", Task.CLASSIFICATION, _decision_tree, {"max_depth": _DEPTH}),
    Recipe(
        "k-nearest-neighbours",
        "votes of the nearest training records",
        Task.CLASSIFICATION,
        _k_nearest_neighbours,
        {"neighbours": Option(int, 5, "how many of them vote")},
    ),
    Recipe(
        "neural-network",
        "network with one hidden layer of tanh units, trained by Adam for a fixed number of epochs",
        Task.CLASSIFICATION,
        _neural_network,
        {
            "units": Option(int, 64, "the width of the hidden layer"),
            "epochs": Option(int, 50, "how often each record is seen"),
            "rate": Option(float, 0.001, "the step size"),
        },
    ),
    Recipe(
        "ridge",
        "linear regression with a penalty",
        Task.REGRESSION,
        _ridge,
        {"alpha": Option(float, 1.0, "the strength of the penalty")},
    ),
    Recipe("linear-regression", "linear regression", Task.REGRESSION, _linear_regression),
    Recipe(
        "decision-tree-regression",
        "regression tree",
        Task.REGRESSION,
        _decision_tree_regression,
        {"max_depth": _DEPTH},
    ),
)
"""All recipes, by task."""
