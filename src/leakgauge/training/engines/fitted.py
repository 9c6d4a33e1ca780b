"""Preprocessing that is fitted on the records, and how its output changes without one of them.

A scaler before a learner is fitted on the training records too, so the model without record t sees all rows on another
scale. In the units of the scaler that was fitted on all records, column j of the design matrix is then

    ``matrix_ij / sqrt(rho_tj)`` but for a constant,   ``rho_tj = s_tj^2 / s_j^2``,

where s is the scale of the column with record t and s_t that without it. A learner without penalty or metric gives the
same predictions on either scale. For one with a squared penalty the matrix stays and the penalty changes: coefficients
w of the matrix of all records cost ``sum_j rho_tj w_j^2``, and an intercept, which must be there, takes up the
constants. A column that is constant without t has no effect, whatever it is divided by, and is given ``rho = 1``.

Values that an imputer fills in may move too: where record i has none in column j, the above holds for ``matrix_ij -
fill_tj`` in place of ``matrix_ij``.

An encoder that looks for its categories is frozen: a category that record t alone has becomes a column that is constant
without t. So is a step that numbers categories, that puts infrequent ones together or that leaves columns out by their
variance: records without which it would do otherwise are marked.

Steps for which this says nothing are refused. Where it says nothing about single records, these are marked, and their
models are trained.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices, Members
from leakgauge.models.access import own_table
from leakgauge.models.sklearn import name_of
from leakgauge.training.engines.stateless import (
    Transform,
    why_no_fixed_selection,
    why_no_plain_pipeline,
    why_not_fixed,
)

NO_INTERCEPT = "without an intercept nothing takes up what a step that is fitted on the data subtracts"
"""Why a linear model behind such a step is refused."""

MOVING_VALUES = "values that SimpleImputer fills in move without a record"
"""Why a learner behind an imputer is refused."""

EPS = float(np.finfo(np.float64).eps)

CERTAIN_FACTOR = 10.0
"""How far from a threshold (as a factor) a scale must be to be on one side of it for certain."""

SMALLEST_VARIANCE_SHARE = 1e-6
"""The share of its variance that a column keeps without a record, below which the closed form loses digits."""

NO_SPAN = 10 * EPS
"""A span below which scikit-learn divides by 1."""


class NotCoveredError(Exception):
    """A step whose output without a record has no closed form here; the text is for the user."""


@dataclass(frozen=True)
class Change:
    """How the design matrix changes without each of some records.

    Args:
        rho: the squared scale of each column without the record, in units of that with it, ``[m, columns]``; 1 where it
            is not known.
        unknown: of which records this is not known, so that their models are to be trained, bool ``[m]``.
        fill: by how much less is filled in where a value is missing, in units of the design matrix ``[m, columns]``;
            ``None`` where nothing is filled in that moves.
    """

    rho: Floats
    unknown: Flags
    fill: Floats | None = None

    def part(self, places: Indices) -> Change:
        """That without some of the records, by their places among these."""
        return Change(self.rho[places], self.unknown[places], None if self.fill is None else self.fill[places])

    @property
    def distortion(self) -> Floats:
        """The largest rho over the smallest, 1 among them, ``[m]``: how much ratios of squared lengths may change."""
        return np.asarray(self.rho.max(axis=1, initial=1.0) / self.rho.min(axis=1, initial=1.0))


@dataclass(frozen=True)
class FittedSteps:
    """Steps that were fitted on all records, by the columns of their output.

    Args:
        width: columns of the output.
        scaled: which of them were scaled, each group with what scaled it; the others stay as they are.
        marked: records without which something else happens, bool ``[records]``.
        learns: whether anything about the steps depends on the records.
        filled: which columns have values filled in that move without a record, each group with what fills them in.
        one_less: whether this is known without one record only, not on any subset of the records.
        moves: whether a constant may be added to columns without a record.
    """

    width: int
    scaled: tuple[tuple[Indices, Scaled], ...]
    marked: Flags
    learns: bool
    filled: tuple[tuple[Indices, Filled], ...] = ()
    one_less: bool = False
    moves: bool = False

    def on(self, members: Members) -> Change:
        """How the output changes on subsets of the records, bool ``[models, records]``; see ``one_less``."""
        rho, unknown = np.ones((len(members), self.width)), np.zeros(len(members), dtype=bool)
        for columns, scaler in self.scaled:
            assert isinstance(scaler, Standardised)
            rho[:, columns], certain = scaler.on(members)
            unknown |= ~certain.all(axis=1)
        return Change(rho, unknown)

    @cached_property
    def sizes(self) -> Floats:
        """The largest absolute value before each column was scaled, on its scale ``[width]``; 0 where it was not."""
        sizes = np.zeros(self.width)
        for columns, scaler in self.scaled:
            sizes[columns] = np.abs(scaler.X).max(axis=0) * scaler.factor
        return sizes

    def scale_error(self, rho: Floats) -> Floats:
        """How far squared scales may be off, as a share of them, by rounding ``[m]``, for some ``rho [m, width]``.

        A scale carries the rounding of its sums, and loses the digits that the record takes with it.
        """
        n = len(self.marked)
        return np.asarray(8 * EPS * np.sqrt(n) * ((1 + self.sizes) / rho).max(axis=1, initial=0.0))

    def constant_without(self, matrix: Any, *, scaled: bool) -> Flags:
        """Without which records a column of the output becomes constant, bool ``[records]``.

        Such a column may be one that is then not there, or that is not divided by its scale.

        Args:
            matrix: the output, dense or CSR ``[records, columns]``, at least 3 records. Of a sparse one columns are
                looked at that are 0 without the record.
            scaled: whether this matters for columns only that were scaled.
        """
        n = len(self.marked)
        looked_at = self.sizes > 0 if scaled else np.ones(self.width, dtype=bool)
        if not isinstance(matrix, np.ndarray):
            there = matrix != 0
            alone = (np.asarray(there.sum(axis=0)).ravel() == 1) & looked_at
            return np.asarray(there @ alone.astype(np.float64)).ravel() > 0
        common = np.sort(matrix[:3], axis=0)[1]
        alone = ((matrix == common).sum(axis=0) == n - 1) & looked_at
        return np.asarray((matrix[:, alone] != common[alone]).any(axis=1))

    @property
    def missing(self) -> Flags:
        """Where values were filled in that move without a record, bool ``[records, columns]``."""
        missing = np.zeros((len(self.marked), self.width), dtype=bool)
        for columns, part in self.filled:
            missing[:, columns] = part.missing
        return missing

    def without(self, records: Indices) -> Change:
        """How the output changes without each of some records ``[m]``."""
        rho, unknown = np.ones((len(records), self.width)), self.marked[records]
        for columns, scaler in self.scaled:
            rho[:, columns], certain = scaler.without(records)
            unknown = unknown | ~certain.all(axis=1)
        rho[unknown] = 1.0
        if not self.filled:
            return Change(rho, unknown)
        fill = np.zeros_like(rho)
        for columns, imputer in self.filled:
            fill[:, columns] = imputer.less(records) / imputer.scale
        fill[unknown] = 0.0
        return Change(rho, unknown, fill)


# ---------------------------------------------------------------- scalers


@dataclass(frozen=True)
class Scaled(ABC):
    """Columns that a scaler divides by their scale, but for a constant.

    Args:
        X: the columns before ``[n, columns]``, n at least 3.
        step: the scaler, fitted on them.
    """

    X: Floats
    step: Any

    @property
    @abstractmethod
    def scale(self) -> Floats:
        """With all records ``[columns]``."""

    @property
    def factor(self) -> Floats:
        """What the values are multiplied by ``[columns]``."""
        return np.asarray(1 / self.step.scale_)

    @abstractmethod
    def others(self, records: Indices) -> tuple[Floats, Flags]:
        """The scale without each of some records, and where it is certain ``[m, columns]``."""

    def without(self, records: Indices) -> tuple[Floats, Flags]:
        """The rho without each of some records, and where it is certain ``[m, columns]``."""
        scale, certain = self.others(records)
        constant = np.equal(*self.extremes(records))
        return np.where(constant, 1.0, (scale / self.scale) ** 2), certain | constant

    def extremes(self, records: Indices) -> tuple[Floats, Floats]:
        """The smallest and the largest value of each column without each record ``[m, columns]``."""
        x, (low, high) = self.X[records], self._ends
        return np.where(x == low[0], low[1], low[0]), np.where(x == high[1], high[0], high[1])

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        """The two smallest and the two largest values of each column ``[2, columns]``, ascending."""
        n = len(self.X)
        ordered = np.partition(self.X, (0, 1, n - 2, n - 1), axis=0)
        return ordered[:2], ordered[-2:]


@dataclass(frozen=True)
class Standardised(Scaled):
    """By ``StandardScaler``: with ``u = (x_t - mean)/std``, ``rho = n/(n - 1) (1 - u^2/(n - 1))``.

    Where values are filled in that move without record t, the sums over the others of x less the mean and of its square
    also change with the c values that are filled in beside that of t.

    Args:
        filled: what fills in the columns before; ``None`` where that does not move.
    """

    filled: Filled | None = None

    @cached_property
    def scale(self) -> Floats:
        """The standard deviation, 1 where the column is constant."""
        scale: Floats = self.step.scale_
        return scale

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        return self.X.mean(axis=0), self.X.var(axis=0)

    def others(self, records: Indices) -> tuple[Floats, Flags]:
        """By the downdate of mean and variance; where that cancels, anew."""
        (mean, variance), n = self._moments, len(self.X)
        away = self.X[records] - mean
        first, second = -away, n * variance - away**2
        less = np.zeros_like(away)
        if self.filled is not None:
            less, missing = self.filled.less(records), self.filled.missing
            filled_in = missing.sum(axis=0) - missing[records]
            first -= filled_in * less
            second += filled_in * less * (less - 2 * (self.filled.values - mean))
        mean_t, variance_t = mean + first / (n - 1), second / (n - 1) - (first / (n - 1)) ** 2
        for row, column in np.argwhere(variance_t < SMALLEST_VARIANCE_SHARE * variance):
            values = self.X[:, column]
            if self.filled is not None:
                values = values - self.filled.missing[:, column] * less[row, column]
            others = np.delete(values, records[row])
            mean_t[row, column], variance_t[row, column] = others.mean(), others.var()
        return np.sqrt(np.maximum(variance_t, 0)), _varies(mean_t, variance_t, n - 1)

    def on(self, members: Members) -> tuple[Floats, Flags]:
        """The rho of subsets ``[models, n]``, and where it is certain ``[models, columns]``."""
        (mean, _), sizes, sums = self._moments, members.sum(axis=1)[:, None], members.astype(np.float64)
        Z = (self.X - mean) / self.scale
        first, second = sums @ Z / sizes, sums @ Z**2 / sizes
        rho, constant = second - first**2, np.zeros(first.shape, dtype=bool)
        constant[:, self._ends[0][0] == self._ends[1][1]] = True
        for model, column in np.argwhere((rho < SMALLEST_VARIANCE_SHARE) & ~constant):
            values = self.X[members[model], column]
            constant[model, column] = np.ptp(values) == 0
            first[model, column] = (values.mean() - mean[column]) / self.scale[column]
            rho[model, column] = values.var() / self.scale[column] ** 2
        certain = _varies(mean + first * self.scale, rho * self.scale**2, sizes)
        return np.where(constant, 1.0, rho), certain | constant


def _varies(mean: Floats, variance: Floats, n: Any) -> Flags:
    """Which columns of n records scikit-learn does not take for constant, well above its bound on the rounding."""
    rounding = n * EPS * variance + (n * EPS * mean) ** 2
    return np.asarray(variance > CERTAIN_FACTOR**2 * rounding)


class Ranged(Scaled):
    """By ``MinMaxScaler``."""

    @property
    def factor(self) -> Floats:
        """That of the scaler, which multiplies."""
        factor: Floats = self.step.scale_
        return factor

    @cached_property
    def scale(self) -> Floats:
        """The range."""
        return _divisor(self._ends[1][1] - self._ends[0][0])[0]

    def others(self, records: Indices) -> tuple[Floats, Flags]:
        """From the second-smallest or to the second-largest value, where the record holds the extreme."""
        low, high = self.extremes(records)
        return _divisor(high - low)


class ByLargest(Scaled):
    """By ``MaxAbsScaler``."""

    @cached_property
    def scale(self) -> Floats:
        """The largest absolute value."""
        return _divisor(np.maximum(np.abs(self._ends[0][0]), np.abs(self._ends[1][1])))[0]

    def others(self, records: Indices) -> tuple[Floats, Flags]:
        """By the extremes that are left."""
        low, high = self.extremes(records)
        return _divisor(np.maximum(np.abs(low), np.abs(high)))


class ByQuantiles(Scaled):
    """By ``RobustScaler``, whose quantiles are those of one rank less."""

    @cached_property
    def _ordered(self) -> Floats:
        return np.sort(self.X, axis=0)

    @cached_property
    def scale(self) -> Floats:
        """The distance of the quantiles."""
        first, last = np.percentile(self._ordered, self.step.quantile_range, axis=0)
        return _divisor(last - first)[0]

    def others(self, records: Indices) -> tuple[Floats, Flags]:
        """By the ranks of the others."""
        x, ordered = self.X[records], self._ordered
        first, last = (_quantile_of_others(ordered, x, share / 100) for share in self.step.quantile_range)
        return _divisor(last - first)


# ---------------------------------------------------------------- imputers


@dataclass(frozen=True)
class Filled:
    """Columns in which missing values were filled in by the mean or the median of the others.

    Args:
        X: the columns before ``[n, columns]``, NaN where a value is missing.
        values: what was filled in ``[columns]``.
        strategy: ``mean`` or ``median``.
        scale: what the columns are divided by afterwards ``[columns]``.
    """

    X: Floats
    values: Floats
    strategy: str
    scale: Floats

    @cached_property
    def missing(self) -> Flags:
        """Where values were missing ``[n, columns]``."""
        return np.isnan(self.X)

    def less(self, records: Indices) -> Floats:
        """By how much less is filled in without each of some records ``[m, columns]``, before it is scaled.

        0 where the record has no value, or the only one.
        """
        x, n_others = self.X[records], (~self.missing).sum(axis=0) - 1
        if self.strategy == "mean":
            less = (x - self.values) / np.maximum(n_others, 1)
        else:
            less = np.zeros_like(x)
            for column in np.flatnonzero(n_others > 0):
                ordered = np.sort(self.X[:, column])[: n_others[column] + 1]  # what is missing comes last
                left = _quantile_of_others(ordered[:, None], x[:, column, None], 0.5)[:, 0]
                less[:, column] = self.values[column] - left
        return np.where(np.isnan(x) | (n_others < 1), 0.0, less)


def _quantile_of_others(ordered: Floats, x: Floats, share: float) -> Floats:
    """A quantile of each column without each of its values x ``[m, columns]``, interpolated as NumPy does.

    Args:
        ordered: the columns, sorted ``[n, columns]``, n at least 2.
        x: values of theirs.
        share: of the others that are below.
    """
    last = len(ordered) - 2
    below = min(int(share * last), max(last - 1, 0))
    above = min(below + 1, last)
    a, b = (np.where(x <= ordered[k], ordered[k + 1], ordered[k]) for k in (below, above))
    return np.asarray(a + (b - a) * (share * last - below))


def _divisor(span: Floats) -> tuple[Floats, Flags]:
    """What scikit-learn divides by, and where that is certain."""
    certain = (span <= NO_SPAN / CERTAIN_FACTOR) | (span >= NO_SPAN * CERTAIN_FACTOR)
    return np.where(span < NO_SPAN, 1.0, span), certain


# ---------------------------------------------------------------- pipelines


def fitted_steps(estimator: Any, table: Any) -> tuple[Transform, Any, FittedSteps] | str:
    """A pipeline as steps that are fitted on a table, followed by one learner.

    Args:
        estimator: an estimator or pipeline; the steps before its learner are fitted here.
        table: all records, as the pipeline is given them.

    Returns:
        What the fitted steps make of a table, the learner, and how that changes without a record; or why that is not
        known.
    """
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline

    steps: list[tuple[str, Any]] = []
    while hasattr(estimator, "steps"):
        reason = why_no_plain_pipeline(estimator)
        if reason:
            return reason
        *earlier, (_, estimator) = estimator.steps
        steps += [(f"{len(steps)}-{place}", step) for place, (_, step) in enumerate(earlier)]
    try:
        whole = Pipeline([(name, clone(step)) for name, step in steps]).fit(own_table(table))
    except Exception as error:  # a transformer may raise anything at all
        return f"{name_of(estimator)} cannot be given this table ({type(error).__name__})"
    try:
        return lambda queries: whole.transform(own_table(queries)), estimator, _known(whole, table)
    except NotCoveredError as refusal:
        return str(refusal)


def _known(step: Any, table: Any) -> FittedSteps:
    """A fitted transformer, and what it was fitted on.

    Raises:
        NotCoveredError: what it makes without a record has no closed form here.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_selection import VarianceThreshold
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import (
        MaxAbsScaler,
        MinMaxScaler,
        OneHotEncoder,
        OrdinalEncoder,
        RobustScaler,
        StandardScaler,
    )

    reason = why_not_fixed(step)
    if reason is None:
        return _unchanged(step, table, learns=False)
    ways: dict[type, Callable[[Any, Any], FittedSteps]] = {
        Pipeline: _in_turn,
        ColumnTransformer: _side_by_side,
        OneHotEncoder: _frozen,
        OrdinalEncoder: _numbered,
        VarianceThreshold: _selected,
        StandardScaler: partial(_scaled, Standardised, uses_scale="with_std"),
        MinMaxScaler: partial(_scaled, Ranged),
        MaxAbsScaler: partial(_scaled, ByLargest),
        RobustScaler: partial(_scaled, ByQuantiles, uses_scale="with_scaling"),
        SimpleImputer: _filled,
    }
    if type(step) not in ways:
        raise NotCoveredError(reason)
    return ways[type(step)](step, table)


def _unchanged(step: Any, table: Any, marked: Flags | None = None, *, learns: bool) -> FittedSteps:
    """A step whose output stays as it is without a record, but without marked ones ``[records]``."""
    made = step.transform(own_table(table))
    if marked is None:
        return FittedSteps(made.shape[1], (), np.zeros(made.shape[0], dtype=bool), learns)
    return FittedSteps(made.shape[1], (), marked, learns, one_less=True)


def _in_turn(pipeline: Any, table: Any) -> FittedSteps:
    """A fitted ``Pipeline`` of transformers."""
    reason = why_no_plain_pipeline(pipeline)
    if reason:
        raise NotCoveredError(reason)
    found = None
    for _, step in pipeline.steps:
        if step is None or isinstance(step, str):
            continue
        own = _known(step, table)
        if found is not None and found.learns:
            own = _after(found, own, type(step).__name__)
        found, table = own, step.transform(own_table(table))
    return found or FittedSteps(table.shape[1], (), np.zeros(len(table), dtype=bool), learns=False)


def _after(first: FittedSteps, then: FittedSteps, name: str) -> FittedSteps:
    """A step after fitted ones: any that is fitted on what an encoder makes, a ``StandardScaler`` on what is filled in.

    Raises:
        NotCoveredError: any other.
    """
    marked = then.marked | first.marked
    if then.learns and not first.scaled and not first.filled:
        return replace(then, marked=marked, one_less=then.one_less or first.one_less)
    match first.scaled, first.filled, then.scaled:
        case (), ((columns, filled),), ((_, Standardised() as scaler),):
            filled = replace(filled, scale=scaler.scale)
            scaled = ((columns, replace(scaler, filled=filled)),)
            return replace(first, marked=marked, scaled=scaled, filled=((columns, filled),), moves=True)
    raise NotCoveredError(f"{name} is given what a fitted step makes")


def _side_by_side(transformer: Any, table: Any) -> FittedSteps:
    """The blocks of a fitted ``ColumnTransformer``."""
    from sklearn.utils import _safe_indexing

    reason = why_no_fixed_selection(transformer)
    if reason:
        raise NotCoveredError(reason)
    scaled: list[tuple[Indices, Scaled]] = []
    filled: list[tuple[Indices, Filled]] = []
    marked, width, one_less, moves = np.zeros(table.shape[0], dtype=bool), 0, False, False
    for name, part, columns in transformer.transformers_:
        place = transformer.output_indices_[name]
        own = None if isinstance(part, str) and part == "drop" else _safe_indexing(table, columns, axis=1)
        if own is None or 0 in own.shape[1:]:  # a column of texts is given as [records]
            continue
        block = _known(part, own)  # without a column it may still be one that fails, or has one, without a record
        scaled += [(place.start + at, scaler) for at, scaler in block.scaled]
        filled += [(place.start + at, imputer) for at, imputer in block.filled]
        marked |= block.marked
        one_less |= block.one_less
        moves |= block.moves
        width = max(width, place.stop)
    return FittedSteps(width, tuple(scaled), marked, True, tuple(filled), one_less, moves)


def _frozen(encoder: Any, table: Any) -> FittedSteps:
    """A fitted ``OneHotEncoder``: a category that one record alone has is missing without it.

    Its column is then 0 throughout, and so is the block of that record, if unknown categories are ignored. Where they
    are errors, or a category is dropped, such records are marked. Where infrequent categories share a column, records
    are marked without which others share it, and those that alone have a category.
    """
    grouped = encoder.min_frequency is not None or encoder.max_categories is not None
    if not grouped and (
        not isinstance(encoder.categories, str) or (encoder.handle_unknown != "error" and encoder.drop is None)
    ):
        return _unchanged(encoder, table, learns=True)
    held, counts = _held(encoder, table)
    alone = np.concatenate(counts) == 1
    changes = alone
    if grouped:
        shared = [0 if own is None else len(own) for own in encoder.infrequent_categories_]
        if shared != [int(_infrequent(encoder, own, int(own.sum())).sum()) for own in counts]:
            raise NotCoveredError("OneHotEncoder of this release of scikit-learn finds other categories infrequent")
        changes = alone | np.concatenate([_regrouping(encoder, own) for own in counts])
    return _unchanged(encoder, table, np.asarray(held @ changes.astype(np.float64)) > 0, learns=True)


def _held(encoder: Any, table: Any) -> tuple[Any, list[Indices]]:
    """Who has which category, CSR ``[records, categories of all columns]``; how many have each, column by column."""
    from sklearn.preprocessing import OneHotEncoder

    held = OneHotEncoder(categories=encoder.categories_, handle_unknown="ignore").fit_transform(own_table(table))
    counts = np.asarray(held.sum(axis=0)).ravel().astype(np.int64)
    return held, np.split(counts, np.cumsum([len(own) for own in encoder.categories_])[:-1])


def _regrouping(encoder: Any, counts: Indices) -> Flags:
    """Whether other categories are infrequent without a record of each category ``[categories]``."""
    less = counts - np.eye(len(counts), dtype=np.int64)
    with_it = _infrequent(encoder, counts, int(counts.sum()))
    return np.array([(_infrequent(encoder, left, int(left.sum())) != with_it).any() for left in less], dtype=bool)


def _infrequent(encoder: Any, counts: Indices, n: int) -> Flags:
    """Which categories of a column share one, of how many times they occur in n records ``[categories]``."""
    rare = np.zeros(len(counts), dtype=bool)
    if encoder.min_frequency is not None:
        share = not isinstance(encoder.min_frequency, Integral)
        rare = counts < (encoder.min_frequency * n if share else encoder.min_frequency)
    if encoder.max_categories is not None and encoder.max_categories < len(counts) - int(rare.sum()) + 1:
        n_frequent = encoder.max_categories - 1  # the last column is for the others; ties go by their order
        rare[np.argsort(counts, kind="stable")[: len(counts) - n_frequent]] = True
    return rare


def _numbered(encoder: Any, table: Any) -> FittedSteps:
    """A fitted ``OrdinalEncoder``: without a record that alone has a category the later ones have other numbers."""
    for parameter in ("min_frequency", "max_categories"):
        if getattr(encoder, parameter) is not None:
            raise NotCoveredError(f"OrdinalEncoder({parameter}=...) is fitted on the data")
    held, counts = _held(encoder, table)
    alone = np.concatenate(counts) == 1
    return _unchanged(encoder, table, np.asarray(held @ alone.astype(np.float64)) > 0, learns=True)


def _selected(selector: Any, table: Any) -> FittedSteps:
    """A fitted ``VarianceThreshold``: records are marked without which other columns may be left."""
    from sklearn.utils import check_array

    X = check_array(table, accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan")
    X = X if isinstance(X, np.ndarray) else X.toarray()
    n = len(X)
    if np.isnan(X).any():
        raise NotCoveredError("VarianceThreshold is given missing values")
    if n < 3:
        raise NotCoveredError("VarianceThreshold is supported for 3 records or more")
    low, high = Ranged(X, None).extremes(np.arange(n))
    variance, threshold = X.var(axis=0), float(selector.threshold)
    left = np.maximum(n * variance - (X - X.mean(axis=0)) ** 2 * (n / (n - 1)), 0.0) / (n - 1)
    size = np.abs(X).max(axis=0)
    rounding = CERTAIN_FACTOR * n * EPS * (variance + threshold + np.sqrt(variance) * size) + (n * EPS * size) ** 2
    constant = (low == high) & (threshold == 0)  # which scikit-learn tells by the range
    kept, unclear = ~constant & (left > threshold), ~constant & (np.abs(left - threshold) <= rounding)
    return _unchanged(selector, table, ((kept != selector.get_support()) | unclear).any(axis=1), learns=True)


def _scaled(kind: type[Scaled], scaler: Any, table: Any, *, uses_scale: str | None = None) -> FittedSteps:
    """A fitted scaler; ``uses_scale`` names what it may be told not to divide by its scale with."""
    from sklearn.utils import check_array

    name = type(scaler).__name__
    X = check_array(table, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
    if X.dtype != np.float64:
        raise NotCoveredError(f"{name} is given {X.dtype}, which rounds; use float64")
    if X.shape[0] < 3:
        raise NotCoveredError(f"{name} is supported for 3 records or more")
    if getattr(scaler, "clip", False):
        raise NotCoveredError(f"{name}(clip=True) clips a record that is not among those it is fitted on")
    if uses_scale is not None and not getattr(scaler, uses_scale):
        return replace(_unchanged(scaler, table, learns=True), moves=True)
    dense = X if isinstance(X, np.ndarray) else X.toarray()
    if np.isnan(dense).any():
        raise NotCoveredError(f"{name} is given missing values")
    scaled = ((np.arange(dense.shape[1]), kind(dense, scaler)),)
    marked = np.zeros(len(dense), dtype=bool)
    return FittedSteps(dense.shape[1], scaled, marked, learns=True, one_less=kind is not Standardised, moves=True)


def _filled(imputer: Any, table: Any) -> FittedSteps:
    """A fitted ``SimpleImputer``; records are marked that alone have a value, or decide which is the most frequent."""
    from sklearn.impute import MissingIndicator
    from sklearn.utils import check_array

    strategy, missing_value = imputer.strategy, imputer.missing_values
    if imputer.add_indicator:
        raise NotCoveredError("SimpleImputer(add_indicator=True) loses a column with the last missing value")
    if strategy not in ("mean", "median", "most_frequent", "constant"):
        raise NotCoveredError("SimpleImputer(strategy=...) may look at several records at once")
    if not isinstance(missing_value, float) or not np.isnan(missing_value):
        raise NotCoveredError("SimpleImputer is supported with missing_values=np.nan")
    indicator = MissingIndicator(features="all", sparse=False)
    there = ~indicator.fit_transform(own_table(table))
    if not there.any(axis=0).all():
        raise NotCoveredError("SimpleImputer is given a column without any value")
    marked = (there & (there.sum(axis=0) == 1)).any(axis=1)
    if strategy == "constant":
        return _unchanged(imputer, table, marked, learns=True)
    if strategy == "most_frequent":
        return _unchanged(imputer, table, marked | _decides(imputer, table, there), learns=True)
    X = check_array(table, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
    if X.dtype != np.float64:
        raise NotCoveredError(f"SimpleImputer is given {X.dtype}, which rounds; use float64")
    if not isinstance(X, np.ndarray):
        raise NotCoveredError("SimpleImputer is given a sparse matrix")
    filled = Filled(X, imputer.statistics_, strategy, np.ones(X.shape[1]))
    columns = np.arange(X.shape[1])
    return FittedSteps(X.shape[1], (), marked, learns=True, filled=((columns, filled),), one_less=True)


def _decides(imputer: Any, table: Any, there: Flags) -> Flags:
    """Without which records another value may be the most frequent of a column, bool ``[records]``."""
    columns = np.asarray(table, dtype=object)
    decides = np.zeros(len(columns), dtype=bool)
    for column, here, most in zip(columns.T, there.T, imputer.statistics_, strict=True):
        holds = here & (column == most)
        others = Counter(column[here & ~holds].tolist())
        if holds.sum() - 1 <= max(others.values(), default=0):
            decides |= holds
    return decides
