"""Preprocessing that is fitted on the records, and how its output changes without one of them.

A scaler before a learner is fitted on the training records too, so the model without record t sees all rows on another
scale. In the units of the scaler that was fitted on all records, column j of the design matrix is then

    ``matrix_ij / sqrt(rho_tj)`` but for a constant,   ``rho_tj = s_tj^2 / s_j^2``,

where s is the scale of the column with record t and s_t that without it. A learner without penalty or metric gives the
same predictions on either scale. For one with a squared penalty the matrix stays and the penalty changes: coefficients
w of the matrix of all records cost ``sum_j rho_tj w_j^2``, and an intercept, which must be there, takes up the
constants. A column that is constant without t has no effect, whatever it is divided by, and is given ``rho = 1``.

An encoder that looks for its categories is frozen: a category that record t alone has becomes a column that is constant
without t.

Steps for which this says nothing are refused. Where it says nothing about single records, these are marked, and their
models are trained.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
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
    """

    rho: Floats
    unknown: Flags

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
    """

    width: int
    scaled: tuple[tuple[Indices, Scaled], ...]
    marked: Flags
    learns: bool

    def without(self, records: Indices) -> Change:
        """How the output changes without each of some records ``[m]``."""
        rho, unknown = np.ones((len(records), self.width)), self.marked[records]
        for columns, part in self.scaled:
            rho[:, columns], certain = part.without(records)
            unknown = unknown | ~certain.all(axis=1)
        rho[unknown] = 1.0
        return Change(rho, unknown)


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


class Standardised(Scaled):
    """By ``StandardScaler``: with ``u = (x_t - mean)/std``, ``rho = n/(n - 1) (1 - u^2/(n - 1))``."""

    @cached_property
    def scale(self) -> Floats:
        """The standard deviation, 1 where the column is constant."""
        scale: Floats = self.step.scale_
        return scale

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        return self.X.mean(axis=0), self.X.var(axis=0)

    def others(self, records: Indices) -> tuple[Floats, Flags]:
        """By the downdate of the variance; where that cancels, anew."""
        (mean, variance), n = self._moments, len(self.X)
        away = self.X[records] - mean
        mean_t = mean - away / (n - 1)
        variance_t = n / (n - 1) * (variance - away**2 / (n - 1))
        for row, column in np.argwhere(variance_t < SMALLEST_VARIANCE_SHARE * variance):
            others = np.delete(self.X[:, column], records[row])
            mean_t[row, column], variance_t[row, column] = others.mean(), others.var()
        # scikit-learn takes a column for constant where its variance is below a bound on its rounding
        rounding = (n - 1) * EPS * variance_t + ((n - 1) * EPS * mean_t) ** 2
        return np.sqrt(variance_t), variance_t > CERTAIN_FACTOR**2 * rounding


class Ranged(Scaled):
    """By ``MinMaxScaler``."""

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
        first, last = (self._quantile(self.X[records], share / 100) for share in self.step.quantile_range)
        return _divisor(last - first)

    def _quantile(self, x: Floats, share: float) -> Floats:
        """Of each column without each of the values x ``[m, columns]``, as NumPy interpolates it."""
        ordered = self._ordered
        place = share * (len(ordered) - 2)
        below = min(int(place), len(ordered) - 3)
        a, b = (np.where(x <= ordered[k], ordered[k + 1], ordered[k]) for k in (below, below + 1))
        return np.asarray(a + (b - a) * (place - below))


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
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler

    reason = why_not_fixed(step)
    if reason is None:
        return _unchanged(step, table, learns=False)
    ways: dict[type, Callable[[Any, Any], FittedSteps]] = {
        Pipeline: _in_turn,
        ColumnTransformer: _side_by_side,
        OneHotEncoder: _frozen,
        StandardScaler: partial(_scaled, Standardised, uses_scale="with_std"),
        MinMaxScaler: partial(_scaled, Ranged),
        MaxAbsScaler: partial(_scaled, ByLargest),
        RobustScaler: partial(_scaled, ByQuantiles, uses_scale="with_scaling"),
    }
    if type(step) not in ways:
        raise NotCoveredError(reason)
    return ways[type(step)](step, table)


def _unchanged(step: Any, table: Any, marked: Flags | None = None, *, learns: bool) -> FittedSteps:
    """A step whose output stays as it is without a record, but without marked ones ``[records]``."""
    made = step.transform(own_table(table))
    return FittedSteps(made.shape[1], (), np.zeros(made.shape[0], dtype=bool) if marked is None else marked, learns)


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
            if found.scaled or not own.learns:
                raise NotCoveredError(f"{type(step).__name__} is given what a fitted step makes")
            own = replace(own, marked=own.marked | found.marked)
        found, table = own, step.transform(own_table(table))
    return found or FittedSteps(table.shape[1], (), np.zeros(len(table), dtype=bool), learns=False)


def _side_by_side(transformer: Any, table: Any) -> FittedSteps:
    """The blocks of a fitted ``ColumnTransformer``."""
    from sklearn.utils import _safe_indexing

    reason = why_no_fixed_selection(transformer)
    if reason:
        raise NotCoveredError(reason)
    scaled: list[tuple[Indices, Scaled]] = []
    marked, width = np.zeros(table.shape[0], dtype=bool), 0
    for name, part, columns in transformer.transformers_:
        place = transformer.output_indices_[name]
        if place.start == place.stop:
            continue
        block = _known(part, _safe_indexing(table, columns, axis=1))
        scaled += [(place.start + own, scaler) for own, scaler in block.scaled]
        marked |= block.marked
        width = max(width, place.stop)
    return FittedSteps(width, tuple(scaled), marked, learns=True)


def _frozen(encoder: Any, table: Any) -> FittedSteps:
    """A fitted ``OneHotEncoder``: a category that one record alone has is missing without it.

    Its column is then 0 throughout, and so is the block of that record, if unknown categories are ignored. Where they
    are errors, or a category is dropped, such records are marked.
    """
    from sklearn.preprocessing import OneHotEncoder

    for parameter in ("min_frequency", "max_categories"):
        if getattr(encoder, parameter) is not None:
            raise NotCoveredError(f"OneHotEncoder({parameter}=...) is fitted on the data")
    if not isinstance(encoder.categories, str) or (encoder.handle_unknown != "error" and encoder.drop is None):
        return _unchanged(encoder, table, learns=True)
    held = OneHotEncoder(categories=encoder.categories_, handle_unknown="ignore").fit_transform(own_table(table))
    alone = np.asarray(held.sum(axis=0)).ravel() == 1
    return _unchanged(encoder, table, np.asarray(held @ alone.astype(np.float64)) > 0, learns=True)


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
        return _unchanged(scaler, table, learns=True)
    dense = X if isinstance(X, np.ndarray) else X.toarray()
    if np.isnan(dense).any():
        raise NotCoveredError(f"{name} is given missing values")
    scaled = ((np.arange(dense.shape[1]), kind(dense, scaler)),)
    return FittedSteps(dense.shape[1], scaled, np.zeros(len(dense), dtype=bool), learns=True)
