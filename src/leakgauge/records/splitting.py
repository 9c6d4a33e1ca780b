"""Who is in the training set and who is not: random subsets of records, in which persons stay whole."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leakgauge.errors import DataError
from leakgauge.records.table import Records


def split(records: Records, n_train: int, n_holdout: int, *, rng: np.random.Generator | int) -> tuple[Records, Records]:
    """Two disjoint random subsets, each drawn uniformly without replacement.

    Within each subset records keep the order they had, so the same members always make the same training set. All rows
    of a person are in the same subset: persons are drawn until no whole one fits, so that a subset may be smaller than
    was asked for. Where together they are to hold all records, the second has all that are not in the first.

    Args:
        records: The pool, n records.
        n_train: Records in the first subset, at least 1.
        n_holdout: Records in the second, at least 1; together at most n.
        rng: A generator, or a seed for one.

    Returns:
        The training and the holdout records; what is in neither was not drawn.

    Raises:
        DataError: If a size is below 1, there are too few records, or no person has so few rows.

    >>> pool = Records.from_arrays(np.arange(10.0)[:, None], [0, 1] * 5)
    >>> train, holdout = split(pool, 6, 4, rng=0)
    >>> sorted([*train.ids.tolist(), *holdout.ids.tolist()])
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    for name, size in (("n_train", n_train), ("n_holdout", n_holdout)):
        if size < 1:
            raise DataError(f"{name} must be at least 1, got {size}; ask for one record or more.")
    if n_train + n_holdout > len(records):
        raise DataError(
            f"{n_train} training and {n_holdout} holdout records make {n_train + n_holdout}, but there are only "
            f"{len(records)}; ask for fewer."
        )
    order = np.random.default_rng(rng).permutation(len(records.units))
    n_first = _n_fitting(records.units.sizes[order], n_train)
    first, rest = order[:n_first], order[n_first:]
    if n_train + n_holdout < len(records):
        rest = rest[: _n_fitting(records.units.sizes[rest], n_holdout)]
    if not len(first) or not len(rest):
        raise DataError(
            f"{n_train} training and {n_holdout} holdout records cannot be drawn: persons are drawn with all of their "
            f"rows, up to {records.units.sizes.max()}; ask for more records, or give more persons."
        )
    return _rows_of(records, first), _rows_of(records, rest)


def draw(records: Records, n: int, *, rng: np.random.Generator) -> Records:
    """Up to n records, drawn uniformly without replacement, in the order they had; persons are drawn whole.

    Raises:
        DataError: If the person drawn first has more rows.
    """
    if records.units.single:
        return records[np.sort(rng.choice(len(records), n, replace=False))]
    order = rng.permutation(len(records.units))
    chosen = order[: _n_fitting(records.units.sizes[order], n)]
    if not len(chosen):
        raise DataError(f"{n} records cannot be drawn: a person has {records.units.sizes[order[0]]}; ask for more.")
    return _rows_of(records, chosen)


def _n_fitting(sizes: npt.NDArray[np.int64], n: int) -> int:
    """How many of these units, in this order, have no more than n records together."""
    return int(np.searchsorted(np.cumsum(sizes), n, side="right"))


def _rows_of(records: Records, units: npt.NDArray[np.int64]) -> Records:
    return records[np.sort(records.units.rows_of(units)[0])]


def random_half(records: Records, rng: np.random.Generator | int) -> tuple[Records, Records]:
    """A random half of the records, and the rest: every record is in exactly one of the two, and so is every person.

    With an odd number of records the first half is the smaller one.

    Args:
        records: At least two records.
        rng: A generator, or a seed for one.

    Raises:
        DataError: If there are fewer than two records.
    """
    if len(records) < 2:
        raise DataError(f"halving needs at least 2 records, got {len(records)}; give more.")
    n_half = len(records) // 2
    return split(records, n_half, len(records) - n_half, rng=rng)
