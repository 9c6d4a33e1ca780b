"""Units of the training set that are left out one at a time, and the answers about their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Indices
from leakgauge.escaping import shapes
from leakgauge.training.subsets import LeaveOneOut, LeaveUnitOut, leave_units_out
from leakgauge.training.table import EachModel

if TYPE_CHECKING:
    from leakgauge.records import Records


@dataclass(frozen=True)
class LeftOut:
    """Units of the training set that are left out one at a time, each with all of its rows, and asked about these.

    Args:
        subsets: the training sets without each of m units.
        rows: the records asked about, unit by unit, int ``[e]``; one for each unit where units are records.
        place: to which of the m units each belongs, int ``[e]``.
    """

    subsets: LeaveOneOut | LeaveUnitOut
    rows: Indices
    place: Indices

    __repr__ = shapes

    @classmethod
    def of(cls, records: Records, which: Indices | None = None) -> LeftOut:
        """Some units of the training set, by default all.

        Raises:
            ValueError: one is not in the training set.
        """
        subsets = leave_units_out(records.units, which)
        return cls(subsets, *records.units.rows_of(subsets.removed))

    def __len__(self) -> int:
        return len(self.subsets)

    @property
    def which(self) -> Indices:
        """The units ``[m]``."""
        return self.subsets.removed

    @property
    def queries(self) -> EachModel:
        """The rows of each unit, its first again where others have more."""
        starts = np.flatnonzero(np.diff(self.place, prepend=-1))
        sizes = np.diff(starts, append=len(self.place))
        within = np.arange(int(sizes.max(initial=1)))
        return EachModel(self.rows[starts[:, None] + np.where(within < sizes[:, None], within, 0)])

    def about(self, answers: NDArray[Any]) -> NDArray[Any]:
        """Answers of all models to their :attr:`queries` ``[m, q, ...]`` as answers about each record ``[e, ...]``."""
        within = np.arange(len(self.place)) - np.searchsorted(self.place, self.place)
        of_each: NDArray[Any] = answers[self.place, within]
        return of_each

    def place_of_largest(self, values: Floats) -> Indices:
        """Where the largest value of each unit is ``[m]``, among values about its records ``[e]``."""
        order = np.lexsort((-np.nan_to_num(values, nan=-1.0, posinf=np.inf), self.place))
        return order[np.searchsorted(self.place[order], np.arange(len(self)))]

    def largest(self, values: Floats) -> Floats:
        """The largest value of each unit ``[m]``, of values about its records ``[e]``; NaN where one is."""
        if len(self.rows) == len(self):
            return values
        return np.maximum.reduceat(values, np.flatnonzero(np.diff(self.place, prepend=-1)))
