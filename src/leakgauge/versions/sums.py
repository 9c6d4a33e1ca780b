"""What sums and stored rows of two versions say: the difference of sums is the sum over the removed records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from leakgauge.arrays import Flags, Floats

SAME_ROW = 1e-9
"""Largest difference of one stored row in two versions, in standard deviations of its columns."""


SURE = 10.0
"""Times its rounding that a difference must be to be one."""


@dataclass(frozen=True)
class Moments:
    """What a step stored about the records that it was fitted on.

    Args:
        n: their number, or that of each column ``[d]`` where values are missing.
        mean: of each column ``[d]``.
        variance: of each column ``[d]``, divisor ``n``, or ``None``.
        misfit: relative error of the units of both versions.
    """

    n: Any
    mean: Floats
    variance: Floats | None
    misfit: float = 0.0


def removed_sum(old: Moments, new: Moments) -> tuple[Floats, Floats]:
    """Sum of the records that are gone ``[d]``, and what rounding may have changed in it ``[d]``.

    >>> removed_sum(Moments(4, np.array([1.75]), None), Moments(3, np.array([1.0]), None))[0].tolist()
    [4.0]
    """
    size = np.abs(old.mean) if old.variance is None else np.hypot(old.mean, np.sqrt(np.maximum(old.variance, 0)))
    return old.n * old.mean - new.n * new.mean, _rounding(old) * old.n * size


def removed_squares(old: Moments, new: Moments) -> tuple[Floats, Floats, Floats, Floats]:
    """Sums of the records that are gone less those that are new, about the old means: of values and of squares ``[d]``.

    The third and the fourth array are what rounding may have changed in the first and the second ``[d]``.

    >>> old, new = Moments(4, np.array([1.75]), np.array([2.1875])), Moments(3, np.array([1.0]), np.array([2 / 3]))
    >>> [values.round(4).tolist() for values in removed_squares(old, new)[:2]]  # of 4, less the mean 1.75
    [[2.25], [5.0625]]
    """
    if old.variance is None or new.variance is None:
        raise ValueError("sums of squares need variances")
    moved = new.mean - old.mean
    floor = removed_sum(old, new)[1]
    squares = old.n * old.variance - new.n * (new.variance + moved**2)
    floor_of_squares = _rounding(old) * old.n * old.variance + 2 * np.abs(moved) * floor + floor**2 / old.n
    return -new.n * moved, squares, floor, floor_of_squares


def replaced(old: Moments, new: Moments) -> tuple[Floats, Floats]:
    """The record that is gone and the one in its place ``[2, d]``, if one was replaced, and rounding ``[d]``.

    With S = x − z and Q = x² − z² about the old mean, x + z = Q/S. A column in which both records have the same value
    does not change: it is the old mean, with a rounding of 0. Where only Q changes, more than one record was replaced:
    the rounding is infinite.
    """
    S, Q, floor, floor_of_squares = removed_squares(old, new)
    differs, is_equal = np.abs(S) > SURE * floor, np.abs(Q) <= SURE * floor_of_squares
    total = np.divide(Q, S, out=np.zeros_like(Q), where=differs)
    error = np.divide(floor_of_squares + np.abs(total) * floor, np.abs(S), out=np.zeros_like(Q), where=differs) + floor
    points = old.mean + np.where(differs, np.stack([total + S, total - S]) / 2, 0.0)
    return points, np.where(differs, error, np.where(is_equal, 0.0, np.inf))


def two_values(old: Moments, new: Moments) -> tuple[Floats, Floats]:
    """The lower and the higher value of each column ``[2, d]`` of two records that are gone, and rounding ``[d]``.

    With a + b = S and a² + b² = Q, (a − b)² = 2Q − S². The rounding is infinite where that is negative: then no two
    records alone are gone.
    """
    S, Q, floor, floor_of_squares = removed_squares(old, new)
    square, error = 2 * Q - S**2, 2 * floor_of_squares + 2 * np.abs(S) * floor
    apart = np.sqrt(np.maximum(square, 0))
    off = np.minimum(np.sqrt(error), np.divide(error, apart, out=np.full_like(error, np.inf), where=apart > 0))
    return old.mean + np.stack([S - apart, S + apart]) / 2, np.where(square < -SURE * error, np.inf, off + floor)


def is_single(old: Moments, new: Moments) -> bool:
    """Whether the sum of squares is that of one record: where one is gone by their number, no other was replaced."""
    S, Q, floor, floor_of_squares = removed_squares(old, new)
    return bool((np.abs(Q - S**2) <= SURE * (floor_of_squares + 2 * np.abs(S) * floor)).all())


def _rounding(moments: Moments) -> Any:
    """Relative rounding error of a sum of so many values."""
    return 4 * np.finfo(moments.mean.dtype).eps * np.sqrt(np.maximum(moments.n, 1)) + moments.misfit


def squares_of(rows: Floats, middle: float, n: int) -> Floats:
    """What each record ``[m, d]`` adds to the squares of all entries of a matrix about their mean, if n are left of it.

    By Σ(xⱼ − m)² = n·v' + n(m' − m)² over these, and n(m' − m) = −S, it is Σ(xⱼ − m)² + S²/n over the removed entries,
    with S = Σ(xⱼ − m). It is the difference of both sums, each the number of entries times their variance.

    >>> 4 * 2.1875 - 3 * (2 / 3), squares_of(np.array([[4.0]]), 1.75, 3).tolist()  # of 0, 1, 2 and 4
    (6.75, [6.75])
    """
    centred = rows - middle
    return np.asarray((centred**2).sum(axis=1) + centred.sum(axis=1) ** 2 / n)


def rows_gone(old: Floats, new: Floats, misfit: float = 0.0) -> Flags:
    """Which stored rows ``[n]`` the second version holds fewer times, both ``[., d]`` in the units of the first.

    Of equal rows the first ones count as gone, as many as are missing.

    Args:
        old: rows of the first version.
        new: rows of the second.
        misfit: relative error of their common units.

    >>> rows_gone(np.array([[1.0], [2.0], [1.0]]), np.array([[1.0], [2.0]])).tolist()
    [True, False, False]
    """
    scale = np.where(old.std(axis=0) > 0, old.std(axis=0), 1.0)
    near = (SAME_ROW + 4 * misfit) * np.sqrt(old.shape[1]) * (1 + np.abs(old / scale).max(initial=0.0))
    distance, nearest = cKDTree(old / scale).query(new / scale)
    group = np.unique(old, axis=0, return_inverse=True)[1].ravel()
    left = np.bincount(group[nearest[distance <= near]], minlength=len(old))
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], group[order])
    occurrence = np.empty(len(old), dtype=int)
    occurrence[order] = np.arange(len(old)) - first
    return np.asarray(occurrence < np.bincount(group, minlength=len(old))[group] - left[group])
