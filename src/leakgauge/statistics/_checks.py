"""What every function of this package asks of its arguments, and the words used to refuse them."""

from __future__ import annotations

import operator

import numpy as np
from numpy.typing import ArrayLike, NDArray

ROUNDING = 1e-9
"""How far beyond a bound rounding may take a value, as a share of the span, or of the largest value without one."""


def check_fraction(name: str, value: float) -> float:
    """Return `value` if it lies strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} must be in (0, 1), got {value}; write a fraction, such as 0.95 for 95 %.")
    return float(value)


def check_size(name: str, size: int) -> int:
    """Return `size` as an int if it is a whole number of at least 1."""
    size = operator.index(size)
    if size < 1:
        raise ValueError(
            f"{name} must be at least 1, got {size}; a rate cannot be estimated from no trials: "
            "collect some, or answer 'cannot tell'."
        )
    return size


def check_count(name: str, count: int, size_name: str, size: int) -> tuple[int, int]:
    """Return `count` and `size` as ints if 0 <= count <= size and size >= 1."""
    count, size = operator.index(count), check_size(size_name, size)
    if not 0 <= count <= size:
        raise ValueError(f"{name} must be in [0, {size_name} = {size}], got {count}; pass counts, not rates.")
    return count, size


def check_values(name: str, values: ArrayLike, *, at_least: int = 1) -> NDArray[np.float64]:
    """Return `values` as a float64 array [n] if it is one-dimensional, long enough and free of NaN."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}; pass one number per record.")
    if array.size < at_least:
        raise ValueError(f"{name} must hold at least {at_least} value(s), got {array.size}; add records.")
    if np.isnan(array).any():
        raise ValueError(
            f"{name} must not hold NaN, got {int(np.isnan(array).sum())}; find out why these records have no "
            "value, and drop them or stop."
        )
    return array


def without_rounding(values: NDArray[np.float64], lower: float, upper: float) -> NDArray[np.float64]:
    """Return values [n] that are outside of [lower, upper] by rounding alone, if any, at the bound; others as they are.

    Means of equal values, such as a person's rows, may be off by a few units in the last place.
    """
    span = upper - lower if np.isfinite(upper - lower) else float(np.abs(values).max())
    room = ROUNDING * span if np.isfinite(span) else 0.0
    low, high = lower - room, upper + room
    return np.where((values >= low) & (values <= high), np.clip(values, lower, upper), values)
