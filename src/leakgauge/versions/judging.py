"""How well a record was reconstructed, beside the best guess from public statistics, and where a candidate ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from leakgauge.arrays import Floats, Indices

ADDED_TO_CORRELATIONS = 1e-3
"""On the diagonal of the correlation matrix: with a singular one collinear columns decide the ranks."""

SAME_DISTANCE = 1e-9
"""Difference of two distances that may be rounding, relative and in whitened standard deviations."""


@dataclass(frozen=True)
class Error:
    """The error of a reconstruction of one record, and of the best guess about it from public statistics.

    Args:
        rmse: over the numeric columns, in standard deviations of the public records; NaN where no column is numeric.
        guess_rmse: of the public means.
        categories: share of the categorical columns (two values, or a one-hot block) whose category is right; NaN
            where there is none.
        guess_categories: of the most frequent public categories.
    """

    rmse: float
    guess_rmse: float
    categories: float
    guess_categories: float


def error(point: Floats, truth: Floats, public: Floats) -> Error:
    """Compare a reconstruction ``[d]`` with the record ``[d]``, by columns that vary in public records ``[m, d]``."""
    blocks = one_hot_blocks(public)
    categorical = {column for block in blocks for column in block}
    spread, middle = public.std(axis=0), public.mean(axis=0)
    low, high = public.min(axis=0), public.max(axis=0)
    numeric = np.array([j for j in np.flatnonzero(high > low) if j not in categorical], dtype=int)
    right = [_category(point, block, public) == _category(truth, block, public) for block in blocks]
    likely = [_category(middle, block, public) == _category(truth, block, public) for block in blocks]
    return Error(
        _rms((point - truth)[numeric] / spread[numeric]),
        _rms((middle - truth)[numeric] / spread[numeric]),
        float(np.mean(right)) if blocks else np.nan,
        float(np.mean(likely)) if blocks else np.nan,
    )


def one_hot_blocks(public: Floats) -> list[list[int]]:
    """Runs of columns with two values each, of which every public record has exactly one high; single ones else.

    A category that no public record has does not end a run.

    >>> one_hot_blocks(np.array([[1.0, 0, 0, 5, 1], [0, 0, 1, 6, 0], [0, 0, 1, 7, 0]]))
    [[0, 2], [4]]
    """
    low, high = public.min(axis=0), public.max(axis=0)
    varies = high > low
    binary = ((public == low) | (public == high)).all(axis=0)
    is_high = (public == high) & varies
    blocks: list[list[int]] = []
    j = 0
    while j < len(binary):
        end, total = j, np.zeros(len(public), dtype=int)
        while end < len(binary) and binary[end] and not (total == 1).all() and (total <= 1).all():
            total, end = total + is_high[:, end], end + 1
        end = end if (total == 1).all() else j + 1
        if binary[j] and varies[j]:
            blocks.append([column for column in range(j, end) if varies[column]])
        j = end if binary[j] and varies[j] else j + 1
    return blocks


def ranks(points: Floats, truth: Floats, others: Floats, public: Floats) -> Indices:
    """Rank of each true record ``[t, d]`` by Mahalanobis distance to the nearest reconstruction, 1 for the nearest.

    Candidates at the same distance count as nearer, so that ties claim nothing.

    Args:
        points: the reconstructions ``[r, d]``.
        truth: the records whose membership in the difference is asked about.
        others: further candidates ``[c, d]``.
        public: records whose second moments measure the distance ``[m, d]``.
    """
    spread = public.std(axis=0)
    used = public.max(axis=0) > public.min(axis=0)
    if not used.any():
        return np.full(len(truth), len(others) + 1, dtype=np.int64)
    correlation = np.atleast_2d(np.corrcoef(public[:, used], rowvar=False))
    metric = np.linalg.cholesky(np.linalg.inv(correlation + ADDED_TO_CORRELATIONS * np.eye(int(used.sum()))))

    def placed(rows: Floats) -> Floats:
        return np.asarray(rows[:, used] / spread[used] @ metric)

    reconstructed = cKDTree(placed(points))

    def distances(rows: Floats) -> Floats:
        return np.asarray(reconstructed.query(placed(rows))[0])

    return places(distances(truth), distances(others))


def places(own: Floats, rest: Floats) -> Indices:
    """Rank of each distance ``[t]`` among others ``[c]``, 1 for the smallest; equal ones count as smaller.

    >>> places(np.array([0.5, 2.0]), np.array([1.0, 2.0])).tolist()
    [1, 3]
    """
    return np.asarray(
        (rest[None] <= own[:, None] * (1 + SAME_DISTANCE) + SAME_DISTANCE).sum(axis=1) + 1, dtype=np.int64
    )


def _category(row: Floats, block: Sequence[int], public: Floats) -> int:
    """Which category of a block a row ``[d]`` has, or comes nearest to."""
    low, high = public[:, block].min(axis=0), public[:, block].max(axis=0)
    height = (row[list(block)] - low) / (high - low)
    return int(height[0] > 0.5) if len(block) == 1 else int(np.argmax(height))


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else np.nan
