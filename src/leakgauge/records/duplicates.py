"""Which records are equal, within the training records, within the holdout, or across the two.

Why it matters: an audit compares people the model was trained on with people it was not. If a holdout record equals
a training record, this "non-member" *is* a member as far as any model can tell. Every attack is then wrong on it
half of the time, the measured advantage comes out too small, and the audit errs on the side that calls a leaky model
safe.

Rows are hashed and sorted, then compared exactly: the time grows as n log n, and the answer is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakgauge.escaping import shapes
from leakgauge.records.table import Records

_ROWS_AT_ONCE = 4096
_STEPS_PER_COLUMN = 4
"""Tolerances that a step has for each column: two numbers half of one apart are cut 1 time in 8 over all columns."""
MOST_OUTLYING = 10.0
"""Times the deviation of the middle half that the standard deviation may be without a look at outliers."""
NORMAL_QUARTILES = 1.349
"""Standard deviations between the quartiles of normal numbers."""
_LARGEST_STEP = 2.0
"""Standard deviations; wider steps would tell no numbers apart."""
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio, made odd: spreads bits well


@dataclass(frozen=True)
class Codes:
    """Numbers that are equal for two records exactly if the records are.

    Attributes:
        train: One for each training record, int [n_train].
        holdout: One for each holdout record, int [n_holdout].
    """

    train: npt.NDArray[np.int64]
    holdout: npt.NDArray[np.int64]

    __repr__ = shapes


def record_codes(train: Records, holdout: Records, *, tolerance: float = 0.0, shift: float = 0.0) -> Codes:
    """Number the distinct records of both sets, by features and label.

    Args:
        train: The training records.
        holdout: The holdout records, under the same schema.
        tolerance: Share of a column's standard deviation by which two numbers may differ, in every column, so that
            records mostly count as equal; 0 for none. It takes steps that grow with the number of columns, as a copy
            is missed if any of its numbers is cut from the original. Columns that repeat few numbers are no part of
            that: their numbers differ clearly or not at all.
        shift: Share of a step by which all steps begin elsewhere: two numbers that one cuts apart are together in
            most of the others.

    >>> train = Records.from_arrays([[1.0], [2.0]], ["a", "a"])
    >>> codes = record_codes(train, train[[1]])
    >>> (codes.train == codes.holdout[0]).tolist()
    [False, True]
    """
    features = np.concatenate([train.features, holdout.features])
    labels = np.concatenate([train.labels, holdout.labels])
    if tolerance:
        numeric = train.schema.n_categories == 0
        if train.schema.classes:
            features = _in_steps(features, tolerance, numeric, shift)
        else:
            table, numeric = np.column_stack([features, labels]), np.append(numeric, True)
            *columns, labels = _in_steps(table, tolerance, numeric, shift).T
            features = np.stack(columns, axis=1)
    _, label = np.unique(labels + 0.0, return_inverse=True)
    _, code = np.unique(_row_groups(features) * (label.max(initial=0) + 1) + label, return_inverse=True)
    return Codes(code[: len(train)], code[len(train) :])


def _in_steps(
    table: npt.NDArray[np.float64], tolerance: float, numeric: npt.NDArray[np.bool_], shift: float
) -> npt.NDArray[np.float64]:
    """Numeric columns in steps so wide that rows which differ by up to the tolerance mostly become equal."""
    many = [
        bool(number) and len(np.unique(column)) > len(table) / 10
        for column, number in zip(table.T, numeric, strict=True)
    ]
    step = min(_STEPS_PER_COLUMN * sum(many) * tolerance, _LARGEST_STEP)
    return np.column_stack(
        [
            _rounded(column, step if varies else tolerance, shift) if number else column
            for column, varies, number in zip(table.T, many, numeric, strict=True)
        ]
    )


def _rounded(column: npt.NDArray[np.float64], step: float, shift: float) -> npt.NDArray[np.float64]:
    """Numbers in steps of a share of their standard deviation."""
    width = step * _deviation(column[~np.isnan(column)])
    return np.round(column / width + shift) if 0 < width < np.inf else column


def _deviation(numbers: npt.NDArray[np.float64]) -> float:
    """The standard deviation; of the middle half, as if normal, where a few numbers such as 9999999999 make it large.

    >>> round(_deviation(np.append(np.arange(1000.0), 1e12)))
    371
    """
    if not len(numbers):
        return 0.0
    whole = float(np.std(numbers))
    low, middle, high = np.quantile(numbers, [0.25, 0.5, 0.75])
    if low == high:  # most are one number: the others tell
        others = numbers[numbers != middle]
        low, high = np.quantile(others, [0.25, 0.75]) if len(others) else (middle, middle)
    of_middle = float(high - low) / NORMAL_QUARTILES
    return of_middle if 0 < MOST_OUTLYING * of_middle < whole else whole


def _row_groups(features: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Int [n]: equal for two rows exactly if the rows are equal in every column."""
    _, first, group = np.unique(_row_hashes(features), return_index=True, return_inverse=True)
    for start in range(0, len(features), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        if not np.array_equal(features[rows], features[first[group[rows]]], equal_nan=True):
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
