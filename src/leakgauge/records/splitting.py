"""Who is in the training set and who is not: random subsets of records."""

from __future__ import annotations

import numpy as np

from leakgauge.errors import DataError
from leakgauge.records.table import Records


def split(records: Records, n_train: int, n_holdout: int, *, rng: np.random.Generator | int) -> tuple[Records, Records]:
    """Two disjoint random subsets, each drawn uniformly without replacement.

    Within each subset records keep the order they had, so the same members always make the same training set.

    Args:
        records: The pool, n records.
        n_train: Size of the first subset, at least 1.
        n_holdout: Size of the second, at least 1; together at most n.
        rng: A generator, or a seed for one.

    Returns:
        The training and the holdout records; what is in neither was not drawn.

    Raises:
        DataError: If a size is below 1, or there are too few records.

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
    order = np.random.default_rng(rng).permutation(len(records))
    return records[np.sort(order[:n_train])], records[np.sort(order[n_train : n_train + n_holdout])]


def random_half(records: Records, rng: np.random.Generator | int) -> tuple[Records, Records]:
    """A random half of the records, and the rest: every record is in exactly one of the two.

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
