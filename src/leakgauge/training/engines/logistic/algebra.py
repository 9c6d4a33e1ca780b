"""Small linear algebra on rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats


def dots(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """The inner product of each row of one with that row of the other."""
    products: NDArray[Any] = np.einsum("ij,ij->i", a, b)
    return products


def lengths(rows: NDArray[Any]) -> NDArray[Any]:
    """The length of each row."""
    found: NDArray[Any] = np.sqrt(dots(rows, rows))
    return found


def longest(rows: Floats) -> float:
    """That of the longest row; 0 where there is none."""
    return float(np.sqrt(dots(rows, rows).max(initial=0.0)))


def solved(lower: Floats, rows: Floats, *, transposed: bool = False) -> Floats:
    """``L^-1``, or ``L^-T``, times each row, for a lower triangular L."""
    from scipy.linalg import solve_triangular

    found = solve_triangular(lower, rows.T, lower=True, trans="T" if transposed else "N", check_finite=False)
    return np.ascontiguousarray(found.T)
