"""Records that are alike: those with the same codes are counted and answered once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Codes

COUNTERS_PER_RECORD = 4
"""Places for counting, for each record: as many as still cost less than sorting."""


def packed(columns: Sequence[NDArray[np.integer[Any]]], widths: Codes) -> Codes | None:
    """One number for each row of codes; ``None`` where there are more combinations than numbers.

    Args:
        columns: codes from 0, d times ``[n]``.
        widths: one more than the largest that each may be, ``[d]``.

    >>> packed([np.array([0, 1]), np.array([1, 2])], np.array([2, 3]))
    array([1, 5])
    """
    if float(np.prod(widths.astype(np.float64))) >= 2.0**62:
        return None
    numbers = columns[0].astype(np.int64)
    for column, width in zip(columns[1:], widths[1:].tolist(), strict=True):
        numbers *= width
        numbers += column
    return numbers


def distinct(columns: Sequence[Codes], widths: Codes) -> tuple[Codes, Codes] | None:
    """One row of each sort, and for each row the place of its sort.

    Args:
        columns: codes from 0, d times ``[n]``.
        widths: one more than the largest that each may be, ``[d]``.

    Returns:
        Rows ``[sorts]`` and places ``[n]``: ``column[rows][places]`` equals each ``column``. ``None`` where telling
        sorts apart would cost more than it could save.

    >>> distinct([np.array([0, 1, 0]), np.array([1, 1, 1])], np.array([2, 2]))
    (array([2, 1]), array([0, 1, 0]))
    """
    numbers = packed(columns, widths)
    if numbers is None:
        return None
    n_combinations = int(np.prod(widths))
    if n_combinations <= max(COUNTERS_PER_RECORD * len(numbers), 64):
        seen = np.bincount(numbers, minlength=n_combinations) > 0
        places = (np.cumsum(seen) - 1)[numbers]
        rows = np.empty(int(seen.sum()), dtype=np.int64)
        rows[places] = np.arange(len(numbers))
        return rows, places
    _, rows, places = np.unique(numbers, return_index=True, return_inverse=True)
    return None if 2 * len(rows) > len(numbers) else (rows, places.ravel())
