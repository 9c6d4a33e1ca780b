"""The values of a column, reconstructed from the midpoints between them that histogram boosting stores.

Of a column with at most as many values as bins, ``HistGradientBoosting`` stores every midpoint m_i = (v_i + v_{i+1})/2
of two values that follow each other, whether or not a tree divides there. Then v_{i+1} = 2m_i − v_i: the first value
determines all, and m_{i−1} < v_i < m_i bounds it from as many sides as there are values. Where the values have few
decimal places, so have all sums 2m_i, which those of other values have by chance only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.errors import ModelError
from leakgauge.escaping import shapes

ROUNDINGS = 16.0
"""Units in the last place that sums of midpoints may be off by, for each midpoint."""

MOST_DIGITS = 9
"""Decimal places that are tried."""

FEWEST_SUMS = 4
"""Midpoints that show how values were rounded: of values with one place more all sums lack it with probability 1e-4."""

LARGEST_ROUNDING = 0.01
"""Of a sum, in units of the last decimal place, above which it does not show whether it is whole."""

MOST_FINITE = 1e300
"""What scikit-learn stores in place of an infinite midpoint, after which no value follows."""


@dataclass(frozen=True)
class ColumnValues:
    """The different values that the training records have in one column.

    Args:
        column: its position.
        low: lower ends ``[v]``, in ascending order of the values.
        high: upper ends ``[v]``.
        decimals: decimal places of the values, where the midpoints show that they were rounded and only one such value
            fits between each pair of ends; ``None`` otherwise.
    """

    column: int
    low: Floats
    high: Floats
    decimals: int | None

    __repr__ = shapes

    @property
    def values(self) -> Floats:
        """The values ``[v]``: rounded where they have few decimal places, else the middle between the ends."""
        middle = (self.low + self.high) / 2
        return middle if self.decimals is None else np.round(middle, self.decimals)

    @property
    def width(self) -> float:
        """How far apart the ends are, alike for all values."""
        return float((self.high - self.low).max())


def column_values(model: Any) -> tuple[ColumnValues, ...]:
    """Return the different values of every column that follow from the bins of histogram boosting.

    Columns with more values than bins are left out (their edges are quantiles), and so are categorical columns, columns
    with infinite values, and columns of fewer than three values. Where one value is so frequent that many of these
    quantiles are equal, the others may be taken for midpoints, and the values of that column are then wrong.

    The bins are made without records of weight 0, without those that early stopping sets aside (by default with more
    than 10,000 records), and from 200,000 draws where there are more records: values of these alone are missing.

    Args:
        model: a fitted ``HistGradientBoostingClassifier`` or ``HistGradientBoostingRegressor``.

    Raises:
        ModelError: it is another model.

    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> ages = np.array([[31.0], [32.0], [33.0], [44.0], [58.0]])
    >>> column_values(HistGradientBoostingRegressor(max_iter=1).fit(ages, ages.ravel()))[0].values.tolist()
    [31.0, 32.0, 33.0, 44.0, 58.0]
    """
    mapper = getattr(model, "_bin_mapper", None)
    if mapper is None:
        raise ModelError(
            f"values follow from the bins of histogram boosting of scikit-learn, got {type(model).__name__}"
        )
    found = []
    for column, is_categorical, stored in zip(*_positions(model, mapper), mapper.bin_thresholds_, strict=True):
        edges = np.asarray(stored, dtype=float)
        if not is_categorical and 1 < len(edges) < mapper.n_bins - 2 and np.abs(edges).max() < MOST_FINITE:
            ends = values_between(edges)
            if ends is not None:
                found.append(ColumnValues(int(column), *ends, _decimals(edges, *ends)))
    return tuple(sorted(found, key=lambda one: one.column))


def _positions(model: Any, mapper: Any) -> tuple[Indices, Flags]:
    """Position in the training records of each column of the bins, and whether it is categorical.

    scikit-learn bins the categorical columns before the others.
    """
    n_columns = len(mapper.bin_thresholds_)
    if mapper.is_categorical_ is None:
        return np.arange(n_columns), np.zeros(n_columns, dtype=bool)
    binned = np.asarray(mapper.is_categorical_, dtype=bool)
    if getattr(model, "_preprocessor", None) is None:
        return np.arange(n_columns), binned
    given = np.asarray(model.is_categorical_, dtype=bool)
    return np.concatenate([np.flatnonzero(given), np.flatnonzero(~given)]), binned


def values_between(midpoints: Floats) -> tuple[Floats, Floats] | None:
    """Lower and upper ends ``[k + 1]`` of the values whose midpoints ``[k]`` these are; ``None`` if there are none.

    >>> low, high = values_between(np.array([1.5, 2.5, 4.0]))
    >>> low.round(9).tolist(), high.round(9).tolist()
    ([0.5, 1.5, 2.5, 4.5], [1.5, 2.5, 3.5, 5.5])
    """
    sign = np.where(np.arange(len(midpoints) + 1) % 2, -1.0, 1.0)
    shift = sign * np.concatenate([[0.0], np.cumsum(2 * midpoints * sign[1:])])  # value i is sign * first + shift
    below = np.concatenate([[-np.inf], midpoints])
    above = np.concatenate([midpoints, [np.inf]])
    first = np.sort(np.stack([(below - shift) * sign, (above - shift) * sign]), axis=0)
    low, high = first[0].max(), first[1].min()
    slack = ROUNDINGS * np.finfo(float).eps * np.abs(midpoints).max() * len(midpoints)
    if high < low - slack:
        return None
    ends = np.sort(np.stack([sign * (low - slack) + shift, sign * (high + slack) + shift]), axis=0)
    return ends[0], ends[1]


def _decimals(midpoints: Floats, low: Floats, high: Floats) -> int | None:
    """Decimal places of the values between the ends, if they were rounded and follow; ``None`` otherwise.

    Sums of two values that were rounded to ``k`` places have ``k`` too. Values half a unit beside that grid have such
    sums as well, and must not fit.
    """
    for digits in range(MOST_DIGITS + 1):
        units = 10.0**digits
        sums = 2 * units * midpoints
        rounding = ROUNDINGS * np.finfo(float).eps * np.abs(sums).max()
        if (np.abs(sums - np.rint(sums)) <= rounding).all():
            is_shown = len(sums) >= FEWEST_SUMS and rounding <= LARGEST_ROUNDING
            follow = all((_n_inside(low * grid, high * grid) == 1).all() for grid in (units, 2 * units))
            return digits if is_shown and follow else None
    return None


def _n_inside(low: Floats, high: Floats) -> Floats:
    """How many whole numbers lie between two ends ``[v]``; those within rounding of an end do not."""
    first, last = np.round(low, 6), np.round(high, 6)
    return np.asarray(np.ceil(last) - np.floor(first) - 1)
