"""What arrays hold, in annotations; and what NumPy is slow at."""

from __future__ import annotations

from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]
Numbers: TypeAlias = NDArray[np.floating[Any]]
"""In either precision."""
Flags: TypeAlias = NDArray[np.bool_]
Members: TypeAlias = NDArray[np.bool_]
"""Who is in a training set, ``[records]`` or ``[models, records]``."""
Indices: TypeAlias = NDArray[np.int64]
Labels: TypeAlias = NDArray[np.int64]
"""Codes of classes."""
Codes: TypeAlias = NDArray[np.int64]
"""Codes of categories or bins."""
Rows: TypeAlias = NDArray[np.int32]
"""Places of records, as compiled loops take them."""

_FEW = 8
"""From so many on NumPy adds in another order than one after the other."""


def over_last(function: np.ufunc, table: NDArray[Any]) -> NDArray[Any]:
    """What the function makes of the last axis: ``function.reduce`` to the bit, ten times as fast where it is short.

    Args:
        function: such as ``np.add`` or ``np.maximum``.
        table: at least one number along the last axis.

    >>> over_last(np.add, np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [3.0, 7.0]
    """
    if 1 < table.shape[-1] < _FEW:
        return reduce(function, np.moveaxis(table, -1, 0))
    return np.asarray(function.reduce(table, axis=-1))
