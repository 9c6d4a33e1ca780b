"""Whose row is whose: what an audit protects is a person, who may have several rows.

Every measure is about units. Where nothing is said of persons, or each has one row, a unit is a record.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from leakgauge.escaping import shapes

LARGEST_SCORE = 1e300
"""What stands for an infinite value in a mean, in which it may meet an infinite one of the other sign."""

MISSING_IDS = frozenset({"nan", "na", "<na>", "nat", "none", "null"})
"""What ids that are missing become when they are turned into text, in lower case."""


def plain_names(persons: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Text ``[n]`` without what cannot be seen or tells nobody apart: the form of Unicode, spaces, ``.0`` of numbers.

    >>> plain_names(np.array([" 7", "7.0", "07", "P\u200b7"])).tolist()
    ['7', '7', '07', 'P7']
    """
    names, place = np.unique(persons, return_inverse=True)
    return np.array([_plain_name(name) for name in names.tolist()], dtype=np.str_)[place]


def _plain_name(name: str) -> str:
    letters = unicodedata.normalize("NFKC", name)
    shown = "".join(one for one in letters if one.isspace() or unicodedata.category(one) not in ("Cf", "Cc"))
    return re.sub(r"^([+-]?\d+)\.0*$", r"\1", " ".join(shown.split()))


@dataclass(frozen=True, eq=False)
class Units:
    """The units of n rows: the rows themselves, or persons who have several.

    Args:
        of_row: The unit of each row, int ``[n]``; m units are numbered from 0 in the order of their first rows.

    >>> units = Units.of(np.array(["ann", "bob", "ann"]))
    >>> len(units), units.noun, units.mean(np.array([1.0, 5.0, 2.0])).tolist()
    (2, 'person', [1.5, 5.0])
    """

    of_row: npt.NDArray[np.int64]

    __repr__ = shapes

    @classmethod
    def of(cls, keys: npt.NDArray[Any]) -> Units:
        """Rows with equal keys ``[n]`` are of one unit."""
        _, first, code = np.unique(keys, return_index=True, return_inverse=True)
        place = np.empty(len(first), dtype=np.int64)
        place[np.argsort(first)] = np.arange(len(first))
        return cls(place[code])

    @classmethod
    def rows(cls, n: int) -> Units:
        """Each of n rows by itself."""
        return cls(np.arange(n))

    def __len__(self) -> int:
        return int(self.of_row.max(initial=-1)) + 1

    @cached_property
    def single(self) -> bool:
        """Whether each unit has one row: then a unit is its row, and has the same number."""
        return len(self) == len(self.of_row)

    @property
    def noun(self) -> str:
        """What a unit is called."""
        return "record" if self.single else "person"

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Rows of each unit ``[m]``."""
        return np.bincount(self.of_row)

    @cached_property
    def first(self) -> npt.NDArray[np.int64]:
        """First row of each unit ``[m]``."""
        return np.unique(self.of_row, return_index=True)[1]

    def rows_of(self, which: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """All rows of some units ``[c]``, unit by unit, and the place of each row's unit among these, ``[e]`` each."""
        sizes = self.sizes[which]
        place = np.repeat(np.arange(len(which)), sizes)
        within = np.arange(len(place)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self._by_unit[self._starts[which][place] + within], place

    def mean(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Means over the rows of each unit ``[..., m]``, of values ``[..., n]``; of single rows the values themselves.

        Rows of a person hang together, so that what they say of membership is averaged and not added up.
        """
        if self.single:
            return values
        finite = np.clip(np.asarray(values, dtype=np.float64), -LARGEST_SCORE, LARGEST_SCORE) / self.sizes[self.of_row]
        return np.add.reduceat(finite[..., self._by_unit], self._starts, axis=-1)

    def agreed(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What is the same for all rows of a unit ``[..., m]``, of values ``[..., n]``."""
        return values if self.single else values[..., self.first]

    def largest(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Largest values over the rows of each unit ``[..., m]``, of values ``[..., n]``; NaN where one is."""
        return values if self.single else np.maximum.reduceat(values[..., self._by_unit], self._starts, axis=-1)

    def smallest(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Smallest values likewise."""
        return -self.largest(-values)

    def levelled(self, inside: npt.NDArray[np.bool_], rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Rows ``[e]`` of which units inside have as many as those outside: all where they do, and some at random else.

        Of either side the unit of each rank by its rows keeps no more than that of the same rank on the other side, so
        that the number of rows tells no unit inside from one outside. Where some are left out, the others stand in the
        order of their units.

        Args:
            inside: which units are inside, bool ``[m]``.
            rng: draws the rows that are kept, and the order of units of one size.
        """
        everything, kept = np.arange(len(self.of_row)), self.sizes.copy()
        sides = [np.flatnonzero(side) for side in (inside, ~inside)]
        if self.single or not all(map(len, sides)):
            return everything
        ranked = [side[np.lexsort((rng.random(len(side)), self.sizes[side]))] for side in sides]
        for side, other in (ranked, ranked[::-1]):
            same_rank = ((np.arange(len(side)) + 0.5) / len(side) * len(other)).astype(np.int64)
            kept[side] = np.minimum(self.sizes[side], self.sizes[other[same_rank]])
        if (kept == self.sizes).all():
            return everything
        order = np.lexsort((rng.random(len(self.of_row)), self.of_row))
        rank = everything - self._starts[self.of_row[order]]
        rows = np.sort(order[rank < kept[self.of_row[order]]])
        return rows[np.argsort(self.of_row[rows], kind="stable")]

    @cached_property
    def _by_unit(self) -> npt.NDArray[np.int64]:
        return np.argsort(self.of_row, kind="stable")

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        return np.cumsum(self.sizes) - self.sizes
