"""What sums and stored rows of two versions say: the difference of sums is the sum over the removed records."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from leakgauge.arrays import Flags, Floats

SAME_ROW = 1e-9
"""Largest difference of one stored row in two versions, in standard deviations of its columns."""


def removed_sum(n_old: Any, mean_old: Floats, n_new: Any, mean_new: Floats) -> tuple[Floats, Floats]:
    """Sum of the records that are gone ``[d]``, and what rounding may have changed in it.

    Args:
        n_old: records of the first version, or of each column ``[d]`` where values are missing.
        mean_old: their means ``[d]``.
        n_new: the same of the second version.
        mean_new: the same of the second version.

    >>> removed_sum(4, np.array([1.75]), 3, np.array([1.0]))[0].tolist()
    [4.0]
    """
    total = n_old * mean_old
    floor = 4 * np.finfo(mean_old.dtype).eps * np.abs(total) * np.sqrt(np.maximum(n_old, 1))
    return total - n_new * mean_new, floor


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
