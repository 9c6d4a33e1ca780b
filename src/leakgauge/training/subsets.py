"""Which records each of many models is trained on."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from leakgauge.arrays import Floats, Indices, Members
from leakgauge.escaping import shapes
from leakgauge.records import Units


class Subsets(ABC):
    """One subset of ``n_records`` for each of ``len(subsets)`` models.

    It should be the case that ``subsets.dense()[i]`` equals ``subsets.row(i)``.
    """

    n_records: int

    @abstractmethod
    def __len__(self) -> int:
        """The number of models."""

    @abstractmethod
    def row(self, model: int) -> Members:
        """Whether each record is in the training set of ``model``, bool ``[records]``."""

    @abstractmethod
    def part(self, models: Indices) -> Subsets:
        """The subsets of some of the models, int ``[m]``."""

    def dense(self) -> Members:
        """The whole membership matrix, bool ``[models, records]``."""
        return np.stack([self.row(model) for model in range(len(self))])


@dataclass(frozen=True)
class DenseSubsets(Subsets):
    """Subsets that have nothing special in common.

    Args:
        members: bool ``[models, records]``.
    """

    members: Members

    __repr__ = shapes

    def __post_init__(self) -> None:
        if self.members.ndim != 2 or self.members.dtype != np.bool_:
            raise ValueError(
                f"members must be bool [models, records], got {self.members.dtype} of shape {self.members.shape}"
            )
        empty = np.flatnonzero(~self.members.any(axis=1))
        if len(empty):
            raise ValueError(f"members[{empty[0]}] has no record; every model needs at least one")
        object.__setattr__(self, "n_records", self.members.shape[1])

    def __len__(self) -> int:
        return len(self.members)

    def row(self, model: int) -> Members:
        """Membership of one model."""
        row: Members = self.members[model]
        return row

    def part(self, models: Indices) -> DenseSubsets:
        """Some rows of the matrix."""
        return DenseSubsets(self.members[models])

    def dense(self) -> Members:
        """The matrix itself."""
        return self.members

    def of_rows(self, units: Units) -> DenseSubsets:
        """Subsets of units as subsets of their rows, all of a unit's in or out."""
        return self if units.single else DenseSubsets(self.members[:, units.of_row])


@dataclass(frozen=True)
class LeaveOneOut(Subsets):
    """Model i is trained on all records but ``removed[i]``; never stored as a matrix.

    >>> LeaveOneOut(3, np.array([2])).row(0)
    array([ True,  True, False])
    """

    n_records: int
    removed: Indices

    __repr__ = shapes

    def __post_init__(self) -> None:
        removed = np.asarray(self.removed, dtype=np.int64)
        if removed.ndim != 1 or (len(removed) and (removed.min() < 0 or removed.max() >= self.n_records)):
            raise ValueError(f"removed must hold record indices in [0, {self.n_records}), got {self.removed!r}")
        if self.n_records < 2:
            raise ValueError(f"leave-one-out needs at least 2 records, got {self.n_records}")
        object.__setattr__(self, "removed", removed)

    def __len__(self) -> int:
        return len(self.removed)

    def row(self, model: int) -> Members:
        """All true but at the removed record."""
        members = np.ones(self.n_records, dtype=bool)
        members[self.removed[model]] = False
        return members

    def part(self, models: Indices) -> LeaveOneOut:
        """The same without some of the records only."""
        return LeaveOneOut(self.n_records, self.removed[models])


@dataclass(frozen=True)
class LeaveUnitOut(Subsets):
    """Model i is trained on all records but those of unit ``removed[i]``; never stored as a matrix.

    Args:
        of_row: the unit of each record, int ``[records]``.
        removed: int ``[models]``.

    >>> LeaveUnitOut(np.array([0, 1, 0]), np.array([0])).row(0)
    array([False,  True, False])
    """

    of_row: Indices
    removed: Indices

    __repr__ = shapes

    def __post_init__(self) -> None:
        n_units, removed = int(self.of_row.max()) + 1, np.asarray(self.removed, dtype=np.int64)
        if removed.ndim != 1 or (len(removed) and (removed.min() < 0 or removed.max() >= n_units)):
            raise ValueError(f"removed must hold persons in [0, {n_units}), got {self.removed!r}")
        if n_units < 2:
            raise ValueError("leaving persons out needs at least 2 of them, got 1")
        object.__setattr__(self, "removed", removed)
        object.__setattr__(self, "n_records", len(self.of_row))

    def __len__(self) -> int:
        return len(self.removed)

    def row(self, model: int) -> Members:
        """All true but at the rows of the removed unit."""
        return np.asarray(self.of_row != self.removed[model])

    def part(self, models: Indices) -> LeaveUnitOut:
        """The same without some of the units only."""
        return LeaveUnitOut(self.of_row, self.removed[models])


def leave_units_out(units: Units, which: Indices | None = None) -> LeaveOneOut | LeaveUnitOut:
    """One model without each of the units ``which`` (default: every one)."""
    if units.single:
        return leave_one_out(len(units), which)
    return LeaveUnitOut(units.of_row, np.arange(len(units)) if which is None else which)


def leave_one_out(n_records: int, which: Indices | None = None) -> LeaveOneOut:
    """One model without each of the records ``which`` (default: every one)."""
    return LeaveOneOut(n_records, np.arange(n_records) if which is None else which)


def everything(n_records: int, n_models: int = 1) -> DenseSubsets:
    """All records, ``n_models`` times: what differs is the seed alone."""
    return DenseSubsets(np.ones((n_models, n_records), dtype=bool))


def random_subsets(n_records: int, size: int, n_models: int, rng: np.random.Generator) -> DenseSubsets:
    """Uniform subsets of ``size`` records without replacement, independent of each other."""
    _check_size(size, n_records)
    members = np.zeros((n_models, n_records), dtype=bool)
    for row in members:
        row[rng.choice(n_records, size, replace=False)] = True
    return DenseSubsets(members)


def complementary_pairs(n_records: int, n_pairs: int, rng: np.random.Generator) -> DenseSubsets:
    """Random halves, each followed by its complement: every record is a member exactly once in each pair.

    With an odd number of records the second set of a pair has one record more.

    >>> complementary_pairs(4, 3, np.random.default_rng(0)).members.sum(axis=0)
    array([3, 3, 3, 3])
    """
    if n_records < 2:
        raise ValueError(f"halves need at least 2 records, got {n_records}")
    first = random_subsets(n_records, n_records // 2, n_pairs, rng).members
    return DenseSubsets(np.stack([first, ~first], axis=1).reshape(2 * n_pairs, n_records))


def balanced_subsets(n_records: int, size: int, n_models: int, rng: np.random.Generator) -> DenseSubsets:
    """Random subsets of ``size`` records in which every record is a member about equally often.

    Each model leaves out those records that were left out least so far, ties broken at random: the counts of two
    records never differ by more than 1, and where ``size`` is half of the records each second set is the
    complement of the one before.

    >>> balanced_subsets(10, 7, 10, np.random.default_rng(0)).members.sum(axis=0)
    array([7, 7, 7, 7, 7, 7, 7, 7, 7, 7])
    """
    _check_size(size, n_records)
    if n_models * n_records > sys.maxsize:
        raise MemoryError  # as NumPy does for what the system refuses; beyond that it raises a ValueError
    left_out = np.zeros(n_records, dtype=np.int64)
    members = np.ones((n_models, n_records), dtype=bool)
    for row in members:
        keys, n_out = rng.random(n_records), n_records - size
        first = np.flatnonzero(left_out == left_out.min())
        second = np.flatnonzero(left_out > left_out.min())
        chosen = first[_lowest(keys[first], n_out)]
        chosen = np.concatenate([chosen, second[_lowest(keys[second], n_out - len(chosen))]])
        row[chosen] = False
        left_out[chosen] += 1
    return DenseSubsets(members)


def _lowest(keys: Floats, n: int) -> Indices:
    """Where the ``n`` lowest are, or all if there are no more."""
    return np.arange(len(keys)) if n >= len(keys) else np.argpartition(keys, n)[:n] if n else np.arange(0)


def with_and_without(
    n_records: int, size: int, targets: Indices, n_pairs: int, rng: np.random.Generator
) -> DenseSubsets:
    """For every target, ``n_pairs`` sets of ``size`` records that hold it, each followed by itself without it.

    The sets come from drawing ``size - 1`` of the other records (Long et al. 2017, section 5.3). Model
    ``2 * (t * n_pairs + j)`` is trained with target t, the next one without.
    """
    _check_size(size, n_records)
    if size < 2:
        raise ValueError(f"size must be at least 2 so that something is left without the target, got {size}")
    members = np.zeros((2 * n_pairs * len(targets), n_records), dtype=bool)
    for pair in range(n_pairs * len(targets)):
        target = int(targets[pair // n_pairs])
        others = rng.choice(n_records - 1, size - 1, replace=False)
        others[others >= target] += 1
        members[2 * pair : 2 * pair + 2, others] = True
        members[2 * pair, target] = True
    return DenseSubsets(members)


def _check_size(size: int, n_records: int) -> None:
    if not 1 <= size <= n_records:
        raise ValueError(f"size must be in [1, {n_records}] (the number of records), got {size}")
