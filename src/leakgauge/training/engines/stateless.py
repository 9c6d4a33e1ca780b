"""What the last step of a learner is given, where the earlier steps learn nothing from the data.

A closed form for leave-one-out models speaks of one learner fitted to one matrix. A pipeline fits into it only if
the row of a person in that matrix does not depend on who else is in the table: then the matrix without a record is
the whole matrix without a row. Scalers, imputers and encoders that look for their own categories are not like that:
a closed form that knows how their output changes without a record says so (:mod:`leakgauge.training.engines.fitted`),
for the others a pipeline with one of them is refused rather than approximated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.models.access import own_table
from leakgauge.models.sklearn import name_of
from leakgauge.records import Units
from leakgauge.training.engines.base import Refusal, RefusalKind
from leakgauge.training.engines.refit import train_each
from leakgauge.training.job import Job
from leakgauge.training.learners import SklearnLearner
from leakgauge.training.subsets import LeaveOneOut, LeaveUnitOut, everything
from leakgauge.training.table import EachModel

if TYPE_CHECKING:
    from leakgauge.training.engines.fitted import FittedSteps

Transform: TypeAlias = Callable[[Any], Any]
FittingSteps: TypeAlias = "Callable[[Any, Any], tuple[Transform, Any, FittedSteps] | str]"
"""See :func:`leakgauge.training.engines.fitted.fitted_steps`."""


@dataclass(frozen=True)
class Given:
    """A leave-one-out job as its last step sees it.

    Args:
        estimator: the last step, not fitted.
        matrix: float64 ``[records, columns]``, dense or a SciPy CSR matrix, as the earlier steps make it.
        labels: class codes int64 ``[records]``, or the values float64 ``[records]`` for regression.
        classes: the original label value of each code, ``[classes]``; empty for regression.
        removed: int ``[models]``: the record, or unit, that each model lacks; empty where models are trained on all.
        index: int ``[models, queries]``: the rows of the matrix that each model is asked about, or ``None``.
        queries: float64 ``[queries, columns]``, dense or CSR like the matrix: what all models are asked, or ``None``.
            Exactly one of the two is given.
        fitted: the earlier steps, where they are fitted on the records: the matrix and the queries are then as steps
            that were fitted on all records make them. ``None`` where a row depends on nothing but its own record.
        units: whose record each is, where models lack units of several; else ``None``.
    """

    estimator: Any
    matrix: Any
    labels: NDArray[Any]
    classes: NDArray[Any]
    removed: Indices
    index: Indices | None = None
    queries: Any = None
    fitted: FittedSteps | None = None
    units: Units | None = None

    @property
    def counts(self) -> Indices:
        """How many records each class has, ``[classes]``; a class of the schema need not have any."""
        return np.bincount(self.labels, minlength=len(self.classes)).astype(np.int64)

    @property
    def present(self) -> Indices:
        """Codes of the classes that have records, in the order in which scikit-learn has them: sorted by label."""
        codes = np.flatnonzero(self.counts)
        return np.asarray(codes[np.argsort(self.classes[codes], kind="stable")])

    @property
    def distortion(self) -> Floats:
        """How much ratios of squared lengths may change on the scale of the steps without each record, ``[records]``.

        1 where the steps learn nothing.
        """
        everyone = np.arange(len(self.labels))
        return np.ones(len(everyone)) if self.fitted is None else self.fitted.without(everyone).distortion

    def unknown(self, models: Indices) -> Flags:
        """Which of some models ``[m]`` must be trained, since what steps make without their record is not known."""
        if self.fitted is None:
            return np.zeros(len(models), dtype=bool)
        return self.fitted.without(self.removed[models]).unknown

    def dense(self) -> Given:
        """The same with dense matrices."""
        matrix, queries = (part.toarray() if hasattr(part, "toarray") else part for part in (self.matrix, self.queries))
        return replace(self, matrix=matrix, queries=queries)

    def part(self, models: Indices) -> Given:
        """Some of the models, by their places in the job ``[m]``."""
        index = None if self.index is None else self.index[models]
        return replace(self, removed=self.removed[models], index=index)


def given_whole(job: Job, kinds: tuple[type, ...], *, missing: bool = False) -> Given | Refusal:
    """What the last step of any job's learner is given for all records, as dense matrices; or the reason, see `given`.

    Where each model is asked about records of its own, the queries are one of the records.
    """
    queries = job.records.features[:1] if isinstance(job.queries, EachModel) else job.queries
    whole = replace(job, subsets=everything(len(job.records)), queries=queries, places=None)
    return given(whole, kinds, sparse=False, whole=True, missing=missing)


def split(estimator: Any) -> tuple[Transform, Any] | str:
    """A pipeline as a fixed function of tables followed by one learner.

    The classes are compared exactly: a subclass may override anything, so it is not recognised.

    Args:
        estimator: an estimator or pipeline, fitted or not.

    Returns:
        The function that the earlier steps are, and the last step; or why they are not a fixed function.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> transform, last = split(make_pipeline(Normalizer(), GaussianNB()))
    >>> transform(np.array([[3.0, 4.0]])), last
    (array([[0.6, 0.8]]), GaussianNB())
    >>> split(make_pipeline(StandardScaler(), GaussianNB()))
    'StandardScaler is fitted on the data'
    """
    if not hasattr(estimator, "steps"):
        return _unchanged, estimator
    reason = why_no_plain_pipeline(estimator)
    if reason:
        return reason
    earlier = [step for _, step in estimator.steps[:-1]]
    reason = next((why for why in map(why_not_fixed, earlier) if why), None)
    if reason:
        return reason
    rest = split(estimator.steps[-1][1])
    if isinstance(rest, str):
        return rest
    return _chain([step for step in earlier if step not in (None, "passthrough")], rest[0]), rest[1]


def of_another_kind(estimator: Any, kinds: tuple[type, ...]) -> Refusal | None:
    """Return why an engine for ``kinds`` has no use for an estimator, whatever its earlier steps; ``None`` if it may.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> of_another_kind(make_pipeline(StandardScaler(), GaussianNB()), (GaussianNB,))
    >>> print(of_another_kind(make_pipeline(StandardScaler(), SVC()), (GaussianNB,)))
    SVC is not GaussianNB
    """
    from sklearn.pipeline import Pipeline

    last = estimator
    while type(last) is Pipeline:
        last = last.steps[-1][1]
    if type(last) in kinds or hasattr(last, "steps"):
        return None
    return Refusal(RefusalKind.LEARNER, f"{type(last).__name__} is not {_either(kinds)}")


def given(
    job: Job,
    kinds: tuple[type, ...],
    *,
    sparse: bool,
    whole: bool = False,
    any_query: bool = False,
    fitted: FittingSteps | None = None,
    by_unit: bool = False,
    missing: bool = False,
) -> Given | Refusal:
    """What the last step of the job's learner is given, or why a closed form for ``kinds`` cannot do the job.

    Args:
        job: any job.
        kinds: the exact classes of estimators that the closed form is for.
        sparse: whether the closed form can take a sparse matrix as well.
        whole: whether the closed form also answers for models trained on all records.
        any_query: whether the leave-one-out models of the closed form answer any query, not only about the record
            that they lack.
        fitted: fits earlier steps that learn from the data, where the closed form knows what to do about them.
        by_unit: whether the closed form is for models without persons of several records, and for no others.
        missing: whether the learner takes missing numbers (NaN).

    Returns:
        The matrix, the labels and the removed records; or the reason, in words for the user.
    """
    left_out = LeaveUnitOut if by_unit else LeaveOneOut
    leaves_out = isinstance(job.subsets, left_out) if any_query else job.asks_removed
    if not leaves_out and not (whole and job.trains_on_all):
        own = "" if any_query else " that queries each model for the record it lacks"
        return Refusal(RefusalKind.JOB, f"not a leave-one-out job{own}")
    if type(job.learner) is not SklearnLearner:
        return Refusal(RefusalKind.LEARNER, f"{job.learner.name} is not a scikit-learn estimator")
    refusal = of_another_kind(job.learner.estimator, kinds)
    if refusal:
        return refusal
    steps, parts = None, split(job.learner.estimator)
    if isinstance(parts, str):
        found = parts if fitted is None else fitted(job.learner.estimator, _table(job, job.records.features))
        if isinstance(found, str):
            return Refusal(RefusalKind.SETTING, found)
        transform, last, steps = found
    else:
        transform, last = parts
    reason = _why_wrong_task(job, last)
    if reason:
        return Refusal(RefusalKind.DATA, reason)
    matrix = _matrix(job, transform, last, job.records.features, missing)
    if isinstance(matrix, str):
        return Refusal(RefusalKind.DATA, matrix)
    queries = None if isinstance(job.queries, EachModel) else _matrix(job, transform, last, job.queries, missing)
    if isinstance(queries, str):
        return Refusal(RefusalKind.DATA, queries)
    if not sparse and not isinstance(matrix, np.ndarray):
        return Refusal(
            RefusalKind.SETTING,
            f"the features reach {type(last).__name__} as a sparse matrix; let the encoder give a dense one",
        )
    if not sparse and chooses_by_density(job.learner.estimator):
        return Refusal(
            RefusalKind.SETTING,
            "ColumnTransformer chooses between sparse and dense by the data; set its sparse_threshold=0",
        )
    removed = getattr(job.subsets, "removed", np.empty(0, dtype=np.int64))
    units = Units(job.subsets.of_row) if isinstance(job.subsets, LeaveUnitOut) else None
    if not len(job.subsets):
        return Refusal(RefusalKind.JOB, "there is no record to leave out")
    schema = job.records.schema
    classes = schema.decode_labels(np.arange(len(schema.classes)))
    index = job.queries.index if isinstance(job.queries, EachModel) else None
    return Given(last, matrix, np.asarray(job.records.labels), classes, removed, index, queries, steps, units)


def fill_by_training(job: Job, models: Indices, table: Floats, open_: Flags) -> Floats:
    """A table with the answers of some models found by training them: the way out where a closed form has none.

    Args:
        job: the whole job.
        models: the models of the table, places in the job ``[m]``.
        table: their answers ``[m, queries, k]``.
        open_: bool ``[m]``: which rows to find.

    Raises:
        ModelError: what the plain loop raises for these models.
    """
    which = np.flatnonzero(open_)
    if not len(which):
        return table
    table = table.copy()
    table[which] = train_each(job, models[which]).answers
    return table


def why_not_fixed(transformer: Any) -> str | None:
    """Why the row of a person may depend on who else is in the table; ``None`` if it cannot."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, OneHotEncoder, OrdinalEncoder

    from leakgauge.records.discretise import FixedBins
    from leakgauge.training.recipes import ClipColumns, FixedDesign

    if transformer is None or (isinstance(transformer, str) and transformer in ("passthrough", "drop")):
        return None
    kind = type(transformer)
    if kind in (Binarizer, Normalizer, FixedBins, FixedDesign, ClipColumns):
        return None
    if kind is FunctionTransformer:
        return _why_not_elementwise(transformer)
    if kind in (OneHotEncoder, OrdinalEncoder):
        return _why_not_fixed_categories(transformer)
    if kind is ColumnTransformer:
        return _why_not_fixed_columns(transformer)
    if kind is Pipeline:
        steps = (why_not_fixed(step) for _, step in transformer.steps)
        return why_no_plain_pipeline(transformer) or next((why for why in steps if why), None)
    return f"{kind.__name__} is fitted on the data"


def why_no_plain_pipeline(pipeline: Any) -> str | None:
    """Why a pipeline is not just its steps in turn; ``None`` if it is."""
    from sklearn.pipeline import Pipeline

    if type(pipeline) is not Pipeline:
        return f"{type(pipeline).__name__} is not scikit-learn's own Pipeline"
    if getattr(pipeline, "transform_input", None) is not None:
        return "Pipeline(transform_input=...) is not supported"
    return None


def why_no_fixed_selection(transformer: Any) -> str | None:
    """Why a ``ColumnTransformer`` may give its parts other columns if a record is missing; ``None`` if not."""
    from sklearn.compose import make_column_selector

    if any(
        callable(columns) and type(columns) is not make_column_selector for _, _, columns in transformer.transformers
    ):
        return "ColumnTransformer selects columns by a function, which may look at the data"
    return None


def chooses_by_density(transformer: Any) -> bool:
    """Whether a part of it makes a sparse or a dense matrix depending on how many zeros the table has."""
    from sklearn.compose import ColumnTransformer

    if type(transformer) is ColumnTransformer and 0 < transformer.sparse_threshold < 1:
        return any(getattr(part, "sparse_output", False) for part in _all_parts(transformer))
    return any(chooses_by_density(part) for part in _parts(transformer))


def _unchanged(table: Any) -> Any:
    return table


def _chain(earlier: list[Any], rest: Transform) -> Transform:
    def transform(table: Any) -> Any:
        from sklearn.base import clone

        for step in earlier:
            table = clone(step).fit_transform(own_table(table))
        return rest(table)

    return transform


def _why_not_elementwise(transformer: Any) -> str | None:
    function = transformer.func
    if function is None:
        return None
    # Any other function may look at several people at once, as `lambda X: X / X.max()` does.
    if not isinstance(function, np.ufunc) or (function.nin, function.nout) != (1, 1) or transformer.kw_args:
        return "FunctionTransformer may look at several records at once; only NumPy's elementwise functions cannot"
    return None


def _why_not_fixed_categories(encoder: Any) -> str | None:
    name = type(encoder).__name__
    if isinstance(encoder.categories, str):
        return f"{name} looks for its categories in the data; list them in its parameter categories"
    for parameter in ("drop", "min_frequency", "max_categories"):
        if getattr(encoder, parameter, None) is not None:
            return f"{name}({parameter}=...) is fitted on the data"
    return None


def _why_not_fixed_columns(transformer: Any) -> str | None:
    parts = [part for _, part, _ in transformer.transformers] + [transformer.remainder]
    return why_no_fixed_selection(transformer) or next((why for why in map(why_not_fixed, parts) if why), None)


def _parts(transformer: Any) -> list[Any]:
    if hasattr(transformer, "steps"):
        return [step for _, step in transformer.steps]
    if hasattr(transformer, "transformers"):
        return [part for _, part, _ in transformer.transformers] + [transformer.remainder]
    return []


def _all_parts(transformer: Any) -> list[Any]:
    parts = _parts(transformer)
    return parts + [inner for part in parts for inner in _all_parts(part)]


def _either(kinds: tuple[type, ...]) -> str:
    return " or ".join(kind.__name__ for kind in kinds)


def _why_wrong_task(job: Job, last: Any) -> str | None:
    from sklearn.base import is_regressor

    regression = not job.records.schema.classes
    if is_regressor(last) != regression:
        return f"{type(last).__name__} does not fit the task, which is {job.records.schema.task}"
    return None


def _table(job: Job, features: Floats) -> Any:
    """What the learner is given; of arrays in single precision the same numbers in double precision."""
    schema = job.records.schema
    if schema.array.dtype in ("float16", "float32"):
        schema = replace(schema, array=replace(schema.array, dtype="float64"))
    return schema.decode(features)


def _matrix(job: Job, transform: Transform, last: Any, features: Floats, missing: bool) -> Any:
    """The checked matrix, or the reason why there is none; the plain loop then says it at more length."""
    from scipy.sparse import csr_matrix, issparse
    from sklearn.utils import check_array

    try:
        table = transform(_table(job, features))
        finite = "allow-nan" if missing else True
        matrix = check_array(table, accept_sparse="csr", dtype="numeric", ensure_all_finite=finite)
        if matrix.dtype.kind == "f" and matrix.dtype != np.float64:
            return f"the features reach {name_of(last)} as {matrix.dtype}, which rounds; use float64"
        if issparse(matrix):
            return csr_matrix(matrix, dtype=np.float64)
        return np.ascontiguousarray(matrix, dtype=np.float64)
    except Exception as error:  # a transformer may raise anything at all, and texts of categories are no numbers
        return f"{name_of(last)} cannot be given this table ({type(error).__name__})"
