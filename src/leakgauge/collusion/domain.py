"""Where records, and so markers, may be: the values that each column can take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.errors import DataError

if TYPE_CHECKING:
    from leakgauge.records import Records


UNIFORM_BITS = 53
"""Bits of a uniform number in double precision: how many values a continuous column can take at most."""


@dataclass(frozen=True)
class Domain:
    """The finite set of inputs X, column by column.

    Trainer and attacker must use the same one. It is public: what a schema says, or the range of a pool; nothing in it
    may depend on who is in the training set.

    Attributes:
        low: Smallest value of each column.
        high: Largest value of each column, at least `low`.
        n_levels: Number of equally spaced values from `low` to `high`, both included; 0 for any number in between.

    Raises:
        DataError: If there is no column, the three differ in length, or a range is empty or not finite.

    >>> Domain((0.0, 0.0), (1.0, 2.0), (2, 3)).at(np.array([[0.2, 0.9], [0.7, 0.4]]))
    array([[0., 2.],
           [1., 1.]])
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    n_levels: tuple[int, ...]

    def __post_init__(self) -> None:
        for name, plain in (("low", float), ("high", float), ("n_levels", int)):
            object.__setattr__(self, name, tuple(plain(value) for value in getattr(self, name)))
        if not len(self.low) == len(self.high) == len(self.n_levels) > 0:
            raise DataError(
                f"a domain needs low, high and n_levels for each column, got {len(self.low)}, {len(self.high)} and "
                f"{len(self.n_levels)} of them."
            )
        for j, (low, high, n_levels) in enumerate(zip(self.low, self.high, self.n_levels, strict=True)):
            if not (math.isfinite(low) and math.isfinite(high) and low <= high and n_levels >= 0):
                raise DataError(
                    f"column {j} of the domain goes from {low:g} to {high:g} in {n_levels} levels; both ends must be "
                    "finite and in order, and the levels at least 0."
                )

    @classmethod
    def grid(cls, n_features: int, n_levels: int, *, low: float = 0.0, high: float = 1.0) -> Domain:
        """The same levels in every column: the pixels of images, or binary features with 2 levels.

        Args:
            n_features: Columns, at least 1.
            n_levels: Values of each, at least 2: 256 for pixels of 8 bits, also where they are scaled.
            low: The smallest.
            high: The largest.

        Raises:
            DataError: If there are fewer columns or levels, or the range is empty.
        """
        if n_features < 1 or n_levels < 2:
            raise DataError(f"a grid needs at least 1 column and 2 levels, got {n_features} and {n_levels}.")
        return cls((low,) * n_features, (high,) * n_features, (n_levels,) * n_features)

    @classmethod
    def of(cls, *pools: Records) -> Domain:
        """What the schema of a public pool says, and the ranges of its numbers.

        Categories are all those of the schema. A column of whole numbers keeps to whole numbers, any other takes any
        number in its range. For images take a `grid`: a pixel that is black in the whole pool could be nothing else.

        Args:
            pools: Records under one schema that contain those of the training set, and are chosen without looking at
                it; at least one set of them.
        """
        features, n_categories = np.concatenate([pool.features for pool in pools]), pools[0].schema.n_categories
        low, high = features.min(axis=0), features.max(axis=0)
        whole = (np.floor(features) == features).all(axis=0)
        low, high = np.where(n_categories > 0, 0, low), np.where(n_categories > 0, n_categories - 1, high)
        n_levels = np.where(whole, high - low + 1, 0)
        return cls(tuple(low), tuple(high), tuple(n_levels.astype(np.int64)))

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        return len(self.low)

    @property
    def bits_in(self) -> float:
        """Logarithm to base 2 of the number of inputs; d in Theorem 4 of Yeom et al. 2018."""
        ranges = zip(self.low, self.high, self.n_levels, strict=True)
        return math.fsum(
            0.0 if low == high else math.log2(n_levels) if n_levels else UNIFORM_BITS for low, high, n_levels in ranges
        )

    def at(self, uniform: Floats) -> Floats:
        """Inputs for numbers that are uniform in [0, 1), both `[m, d]`: uniform over the domain."""
        low, high, n_levels = self._arrays
        level = np.floor(uniform * n_levels) / np.maximum(n_levels - 1, 1)
        share = np.where(n_levels > 0, level, uniform)
        inputs: Floats = np.where(low == high, low, low + (high - low) * share)
        return inputs

    def require(self, records: Records) -> None:
        """Make sure that these records lie in the domain.

        Raises:
            DataError: If columns are missing, a column of categories has other codes, or a number is outside.
        """
        schema = records.schema
        if schema.n_features != self.n_features:
            raise DataError(
                f"the domain has {self.n_features} columns and the records {schema.n_features}; make one for these "
                "records, for example with Domain.of(pool)."
            )
        low, high, n_levels = self._arrays
        codes = schema.n_categories
        other = (codes > 0) & ((low != 0) | (high != codes - 1) | (n_levels != codes))
        why = "holds categories; its levels must be their codes 0, 1, 2, ...: use Domain.of(pool)"
        _refuse(other, schema.names, why)
        outside = np.any((records.features < low) | (records.features > high), axis=0)
        _refuse(outside, schema.names, "holds values outside the domain; widen its range, or scale the column to it")

    @cached_property
    def _arrays(self) -> tuple[Floats, Floats, Floats]:
        low, high, n_levels = (np.array(part, dtype=np.float64) for part in (self.low, self.high, self.n_levels))
        return low, high, n_levels


def _refuse(columns: NDArray[np.bool_], names: Sequence[str], why: str) -> None:
    if columns.any():
        more = f" (and {columns.sum() - 1} other columns)" if columns.sum() > 1 else ""
        raise DataError(f"column {names[int(np.argmax(columns))]!r}{more} {why}.")
