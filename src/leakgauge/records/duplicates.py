"""Rows that occur more than once, within the training records, within the holdout, or across the two.

Why it matters: an audit compares people the model was trained on with people it was not. If a holdout record equals
a training record, this "non-member" *is* a member as far as any model can tell. Every attack is then wrong on it
half of the time, the measured advantage comes out too small, and the audit errs on the side that calls a leaky model
safe. Duplicates within the training records matter too: leaving out one of two equal rows hides less than it seems.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from leakgauge.errors import DataError
from leakgauge.records._messages import counted
from leakgauge.records.table import Records

IdPair: TypeAlias = tuple[int | str, int | str]
_ROWS_AT_ONCE = 4096
_STEPS_PER_COLUMN = 4
"""Tolerances that a step has for each column: two numbers half of one apart are cut 1 time in 8 over all columns."""
_LARGEST_STEP = 2.0
"""Standard deviations; wider steps would tell no numbers apart."""
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio, made odd: spreads bits well


@dataclass(frozen=True)
class Twins:
    """Pairs of records that agree, one on the left and one on the right, or both from the same records.

    Attributes:
        n_pairs: Number of such pairs; within the same records each pair counts once.
        n_left: Number of records on the left that have a twin on the right (within: that have a twin).
        n_right: The same for the right; within the same records equal to `n_left`.
        pairs: Ids of some pairs (left, right), at most as many as were asked for: each record on the right with
            the first record on the left that it agrees with. Ids name people; do not print them unasked.
    """

    n_pairs: int
    n_left: int
    n_right: int
    pairs: tuple[IdPair, ...]


@dataclass(frozen=True)
class Duplicates:
    """What `find_duplicates` found. Identical: same features and label; conflicting: same features, other label.

    Attributes:
        n_train: Number of training records.
        n_holdout: Number of holdout records.
        identical_in_train: Identical records within the training records.
        conflicting_in_train: Conflicting records within the training records.
        identical_in_holdout: Identical records within the holdout.
        conflicting_in_holdout: Conflicting records within the holdout.
        identical_across: Training record (left) and holdout record (right) that are identical.
        conflicting_across: Training record (left) and holdout record (right) that conflict.
        n_repeats_in_train: Training records whose features occurred in an earlier one.
        n_repeats_in_holdout: Holdout records whose features occurred in an earlier one.
        n_shared_ids: Ids that occur both in the training and in the holdout records.
    """

    n_train: int
    n_holdout: int
    identical_in_train: Twins
    conflicting_in_train: Twins
    identical_in_holdout: Twins
    conflicting_in_holdout: Twins
    identical_across: Twins
    conflicting_across: Twins
    n_repeats_in_train: int
    n_repeats_in_holdout: int
    n_shared_ids: int

    def messages(self) -> tuple[str, ...]:
        """What a user should know, one sentence per finding; no ids. Empty if there is nothing to say."""
        found = []
        if self.identical_across.n_right:
            found.append(
                f"{counted(self.identical_across.n_right, 'holdout record')} of {self.n_holdout} equal a training "
                "record in every column: every model gives both the same prediction, so attacks look weaker than they "
                "are; remove these records from the holdout."
            )
        if self.n_shared_ids:
            found.append(
                f"{counted(self.n_shared_ids, 'id')} of the holdout also in the training records: if they are the same "
                "people, they are not non-members; remove them from the holdout."
            )
        if self.conflicting_across.n_right:
            found.append(
                f"{counted(self.conflicting_across.n_right, 'holdout record')} of {self.n_holdout} with the features "
                "of a training record and another label: the model was trained on these features with the other "
                "label; check whether they are the same people."
            )
        for where, twins, n in (
            ("training", self.identical_in_train, self.n_train),
            ("holdout", self.identical_in_holdout, self.n_holdout),
        ):
            if twins.n_left:
                found.append(
                    f"{counted(twins.n_left, f'{where} record')} of {n} with an identical twin in the same table: "
                    "removing one of them leaves the other, so measures of single records understate the influence."
                )
        return tuple(found)


def find_duplicates(train: Records, holdout: Records | None = None, *, n_ids: int = 100) -> Duplicates:
    """Find equal rows within and across training and holdout records.

    Rows are hashed and sorted, then compared exactly: the time grows as n log n, and the answer is exact.

    Args:
        train: The training records.
        holdout: The holdout records, under the same schema; None if there are none.
        n_ids: At most so many pairs of ids are listed per kind of finding; counts are never cut.

    Raises:
        DataError: If the two have different schemas.

    >>> train = Records.from_arrays([[1.0], [2.0], [2.0]], ["a", "a", "b"])
    >>> found = find_duplicates(train, train[[0]])
    >>> found.identical_across.n_right, found.conflicting_in_train.n_pairs, found.identical_in_train.n_pairs
    (1, 1, 0)
    """
    holdout = train[:0] if holdout is None else holdout
    if train.schema != holdout.schema:
        raise DataError(
            "training and holdout records have different schemas, so their rows cannot be compared; build both with "
            "from_pair, or use encoded_as(schema)."
        )
    n_train = len(train)
    rows, full = _codes(train, holdout)
    left = _Side(rows[:n_train], full[:n_train], train.ids)
    right = _Side(rows[n_train:], full[n_train:], holdout.ids)
    return Duplicates(
        n_train=n_train,
        n_holdout=len(holdout),
        identical_in_train=_identical_within(left, n_ids),
        conflicting_in_train=_conflicting_within(left, n_ids),
        identical_in_holdout=_identical_within(right, n_ids),
        conflicting_in_holdout=_conflicting_within(right, n_ids),
        identical_across=_identical_across(left, right, n_ids),
        conflicting_across=_conflicting_across(left, right, n_ids),
        n_repeats_in_train=n_train - len(np.unique(left.row)),
        n_repeats_in_holdout=len(holdout) - len(np.unique(right.row)),
        n_shared_ids=_n_shared(train.ids, holdout.ids),
    )


@dataclass(frozen=True)
class Codes:
    """Numbers that are equal for two records exactly if the records are.

    Attributes:
        train: One for each training record, int [n_train].
        holdout: One for each holdout record, int [n_holdout].
    """

    train: npt.NDArray[np.int64]
    holdout: npt.NDArray[np.int64]


def record_codes(train: Records, holdout: Records, *, tolerance: float = 0.0) -> Codes:
    """Number the distinct records of both sets, by features and label.

    Args:
        train: The training records.
        holdout: The holdout records, under the same schema.
        tolerance: Share of a column's standard deviation by which two numbers may differ, in every column, so that
            records mostly count as equal; 0 for none. It takes steps that grow with the number of columns, as a copy
            is missed if any of its numbers is cut from the original. Columns that repeat few numbers are no part of
            that: their numbers differ clearly or not at all.

    >>> train = Records.from_arrays([[1.0], [2.0]], ["a", "a"])
    >>> codes = record_codes(train, train[[1]])
    >>> (codes.train == codes.holdout[0]).tolist()
    [False, True]
    """
    found, n = _codes(train, holdout, tolerance)[1], len(train)
    return Codes(found[:n], found[n:])


def _codes(
    train: Records, holdout: Records, tolerance: float = 0.0
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Distinct feature rows and distinct rows with label, numbered, training records first."""
    features = np.concatenate([train.features, holdout.features])
    labels = np.concatenate([train.labels, holdout.labels])
    if tolerance:
        if train.schema.classes:
            features = _in_steps(features, tolerance)
        else:
            *columns, labels = _in_steps(np.column_stack([features, labels]), tolerance).T
            features = np.stack(columns, axis=1)
    rows = _row_groups(features)
    _, label = np.unique(labels + 0.0, return_inverse=True)
    _, full = np.unique(rows * (label.max(initial=0) + 1) + label, return_inverse=True)
    return rows, full


def _in_steps(table: npt.NDArray[np.float64], tolerance: float) -> npt.NDArray[np.float64]:
    """Columns in steps so wide that rows which differ by up to the tolerance mostly become equal."""
    many = [len(np.unique(column)) > len(table) / 10 for column in table.T]
    step = min(_STEPS_PER_COLUMN * sum(many) * tolerance, _LARGEST_STEP)
    columns = zip(table.T, many, strict=True)
    return np.column_stack([_rounded(column, step if varies else tolerance) for column, varies in columns])


def _rounded(column: npt.NDArray[np.float64], step: float) -> npt.NDArray[np.float64]:
    """Numbers in steps of a share of their standard deviation."""
    width = step * float(np.std(column))
    return np.round(column / width) if 0 < width < np.inf else column


@dataclass(frozen=True)
class _Side:
    """For each record: which distinct feature row it holds, which distinct row with label, and its id."""

    row: npt.NDArray[np.int64]
    full: npt.NDArray[np.int64]
    ids: npt.NDArray[Any]


def _identical_within(side: _Side, n_ids: int) -> Twins:
    n_equal = _count(side.full, side.full)
    n_twinned = int((n_equal > 1).sum())
    later = np.flatnonzero(_first(side.full) < np.arange(len(side.full)))
    return Twins(
        int((n_equal - 1).sum()) // 2, n_twinned, n_twinned, _pairs(side, side, later[:n_ids], same_label=True)
    )


def _conflicting_within(side: _Side, n_ids: int) -> Twins:
    n_other = _count(side.row, side.row) - _count(side.full, side.full)
    n_twinned = int((n_other > 0).sum())
    unlike_first = np.flatnonzero(side.full != side.full[_first(side.row)])
    pairs = _pairs(side, side, unlike_first[:n_ids], same_label=False)
    return Twins(int(n_other.sum()) // 2, n_twinned, n_twinned, pairs)


def _identical_across(left: _Side, right: _Side, n_ids: int) -> Twins:
    n_of_right, n_of_left = _count(right.full, left.full), _count(left.full, right.full)
    return _across(left, right, n_of_left, n_of_right, n_ids, same_label=True)


def _conflicting_across(left: _Side, right: _Side, n_ids: int) -> Twins:
    n_of_right = _count(right.row, left.row) - _count(right.full, left.full)
    n_of_left = _count(left.row, right.row) - _count(left.full, right.full)
    return _across(left, right, n_of_left, n_of_right, n_ids, same_label=False)


def _across(
    left: _Side,
    right: _Side,
    n_of_left: npt.NDArray[np.int64],
    n_of_right: npt.NDArray[np.int64],
    n_ids: int,
    *,
    same_label: bool,
) -> Twins:
    twinned = np.flatnonzero(n_of_right)
    pairs = _pairs(left, right, twinned[:n_ids], same_label=same_label)
    return Twins(int(n_of_right.sum()), int(np.count_nonzero(n_of_left)), len(twinned), pairs)


def _pairs(left: _Side, right: _Side, of_right: npt.NDArray[np.int64], *, same_label: bool) -> tuple[IdPair, ...]:
    """Each of the named records on the right, with the first one on the left that it agrees with."""
    pairs = []
    for i in of_right:
        same_row, same_full = left.row == right.row[i], left.full == right.full[i]
        agrees = same_full if same_label else same_row & ~same_full
        pairs.append((left.ids[np.argmax(agrees)].item(), right.ids[i].item()))
    return tuple(pairs)


def _count(groups: npt.NDArray[np.int64], among: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each entry of `groups`, how often it occurs in `among`."""
    n_groups = max(groups.max(initial=-1), among.max(initial=-1)) + 1
    return np.bincount(among, minlength=n_groups)[groups]


def _first(groups: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each entry, the place of the first entry of the same group."""
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    return first[group]


def _n_shared(train_ids: npt.NDArray[Any], holdout_ids: npt.NDArray[Any]) -> int:
    if (train_ids.dtype.kind == "U") != (holdout_ids.dtype.kind == "U"):  # text and numbers are never equal
        return 0
    return len(np.intersect1d(train_ids, holdout_ids, assume_unique=True))


def _row_groups(features: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Int [n]: equal for two rows exactly if the rows are equal in every column."""
    _, first, group = np.unique(_row_hashes(features), return_index=True, return_inverse=True)
    for start in range(0, len(features), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        if not np.array_equal(features[rows], features[first[group[rows]]]):
            return _row_groups_by_sorting(features)  # two different rows share a hash: about 1 time in 2**64 / n**2
    return group


def _row_groups_by_sorting(features: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    rows = np.ascontiguousarray(features + 0.0)  # -0.0 equals 0.0, their bytes do not
    as_bytes = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
    _, group = np.unique(as_bytes, return_inverse=True)
    return group


def _row_hashes(features: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """A 64-bit hash per row; equal rows have equal hashes."""
    hashes = np.zeros(len(features), dtype=np.uint64)
    for start in range(0, len(features), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        bits = np.ascontiguousarray((features[rows] + 0.0).T).view(np.uint64)
        block = np.zeros(bits.shape[1], dtype=np.uint64)
        for column in bits:
            block = (block ^ column) * _MULTIPLIER  # modulo 2**64
            block ^= block >> np.uint64(29)  # bring high bits down, else low ones never see them
        hashes[rows] = block
    return hashes
