"""Which records of a set are copies of one that was drawn several times: equal ones, and nearly equal ones.

Copies are found where a set repeats its records more than chance does; see
:func:`leakgauge.statistics.repeats_beyond_chance`. Nearly equal ones are looked for among records that differ, in the
steps of :func:`leakgauge.records.record_codes`. Records in one step join the first of them, and only where they are
near it: chains of near records are no copies of one. Steps that begin elsewhere find the copies that a step cut off.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.records import Codes, Records, Units, record_codes
from leakgauge.statistics import repeats_beyond_chance

SHIFTS = (0.0, 0.5, 0.25, 0.75)
"""Where steps begin, as shares of one; later ones are looked at while records still repeat beyond chance."""

FURTHEST = 8.0
"""Tolerances by which a copy may differ from the first in any column: two copies with normal noise of one each."""

FEWEST_IN_HALF_STEPS = 0.6
"""Share of near pairs that stay together in steps half as wide: of records that only lie densely it is half at most."""

LARGEST_GROUP = 0.1
"""Share of the records that differ which may be copies of one; where more are, the records only lie densely."""

SMALL_GROUP = 10
"""Or so many, whatever share they are."""


def unit_codes(train: Records, holdout: Records, tolerance: float = 0.0, shift: float = 0.0) -> Codes:
    """Codes of the records, or of persons: equal where all of their rows are, in any order.

    A holdout person has the code of a training person where half of her rows are hers, and two or more.
    """
    codes = record_codes(train, holdout, tolerance=tolerance, shift=shift)
    if train.units.single and holdout.units.single:
        return codes
    known: dict[tuple[int, ...], int] = {}

    def of_units(units: Units, code: NDArray[np.int64]) -> NDArray[np.int64]:
        rows, _ = units.rows_of(np.arange(len(units)))
        parts = np.split(code[rows], np.cumsum(units.sizes)[:-1])
        return np.array([known.setdefault(tuple(sorted(part.tolist())), len(known)) for part in parts])

    inside, outside = of_units(train.units, codes.train), of_units(holdout.units, codes.holdout)
    same = _the_same_persons(train.units, codes.train, holdout.units, codes.holdout)
    return Codes(inside, np.where(same < 0, outside, inside[same]))


def _the_same_persons(train: Units, inside: Indices, holdout: Units, outside: Indices) -> Indices:
    """The training person of whom each holdout person has half of her rows, and two or more, or -1 ``[holdout units]``.

    Rows that several persons of a set have say nothing: only those of one person of either set are looked at.
    """
    n = int(max(inside.max(), outside.max())) + 1
    owners = [_only_owner(units, code, n) for units, code in ((train, inside), (holdout, outside))]
    of_one = (owners[0] >= 0) & (owners[1] >= 0)
    pairs, shared = np.unique(np.stack(owners)[:, of_one], axis=1, return_counts=True)
    n_different = np.bincount(np.unique(np.stack([holdout.of_row, outside]), axis=1)[0])
    same = np.full(len(holdout), -1)
    enough = (shared >= 2) & (2 * shared >= n_different[pairs[1]])
    same[pairs[1][enough]] = pairs[0][enough]
    return same


def _only_owner(units: Units, code: Indices, n: int) -> Indices:
    """The unit that rows of each code are of, -1 where they are of none or of several ``[n]``."""
    codes, whose = np.unique(np.stack([code, units.of_row]), axis=1)
    owner = np.full(n, -1)
    owner[codes] = np.where(np.bincount(codes, minlength=n)[codes] == 1, whose, -1)
    return owner


def copies(train: Records, holdout: Records, equal: Codes, near: Sequence[tuple[float, Codes]]) -> Units:
    """Records, those of the training set first, of which the copies of one count as one; persons where there are.

    Args:
        train: the training records.
        holdout: the holdout records that attacks are judged by.
        equal: codes that tell records apart wherever they differ.
        near: tolerances, ascending, and codes that tell records apart only where they differ by more.
    """
    inside = _joined(train, holdout, equal, near, of_train=True)
    outside = _joined(train, holdout, equal, near, of_train=False)
    return Units.of(np.concatenate([inside, len(inside) + outside]))


def _joined(
    train: Records, holdout: Records, equal: Codes, near: Sequence[tuple[float, Codes]], *, of_train: bool
) -> Indices:
    """The record that each of one set is a copy of, or itself ``[n]``."""
    own, other = _either(equal, of_train)
    _, first, kind = np.unique(own, return_index=True, return_inverse=True)
    of_equal = first[kind]
    again = np.unique(other, return_index=True)[1]
    of_near = of_equal.copy()
    for tolerance, codes in near:
        for shift in SHIFTS:
            heads = np.unique(of_near)
            shifted = codes if shift == 0 else unit_codes(train, holdout, tolerance, shift)
            cells, others = _either(shifted, of_train)
            if not repeats_beyond_chance(cells[heads], others[again]).any():
                break
            if shift == 0 and _dense(train, holdout, tolerance, heads, of_train):
                break
            _, at, cell = np.unique(cells[heads], return_index=True, return_inverse=True)
            joins, leads = np.arange(len(own)), heads[at[cell]]
            joins[heads] = np.where(_near(train, holdout, heads, leads, tolerance, of_train), leads, heads)
            joined = joins[of_near]
            if np.bincount(joined[first]).max() > max(SMALL_GROUP, LARGEST_GROUP * len(first)):
                break
            of_near = joined
    grown = (np.bincount(of_near[first], minlength=len(own)) > 1)[of_near]
    alone = of_equal if repeats_beyond_chance(own, other).any() else np.arange(len(own))
    return np.asarray(np.where(grown, of_near, alone))


def _either(codes: Codes, of_train: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Codes of one set, and those of the other."""
    return (codes.train, codes.holdout) if of_train else (codes.holdout, codes.train)


def _dense(train: Records, holdout: Records, tolerance: float, rows: Indices, of_train: bool) -> bool:
    """Whether records are nearly equal because they lie densely: then steps half as wide part most of them."""
    halves, wholes = (
        sum(
            _pairs(_either(unit_codes(train, holdout, part * tolerance, shift), of_train)[0][rows])
            for shift in SHIFTS[:2]
        )
        for part in (0.5, 1.0)
    )
    return halves < FEWEST_IN_HALF_STEPS * wholes


def _pairs(codes: NDArray[np.int64]) -> int:
    """How many pairs of equal codes there are."""
    counts = np.unique(codes, return_counts=True)[1]
    return int((counts * (counts - 1)).sum()) // 2


def _near(train: Records, holdout: Records, rows: Indices, firsts: Indices, tolerance: float, of_train: bool) -> Flags:
    """Whether records are near others in every column ``[n]``; of persons their steps have to do."""
    if not (train.units.single and holdout.units.single):
        return np.ones(len(rows), dtype=bool)
    near: Flags = rows == firsts
    others = np.flatnonzero(~near)
    is_near = np.ones(len(others), dtype=bool)
    for column in _columns(train, holdout):
        both = np.concatenate(column)
        own = column[0] if of_train else column[1]
        width = FURTHEST * tolerance * float(np.nanstd(both)) if not np.isnan(both).all() else 0.0
        is_near &= ~(np.abs(own[rows[others]] - own[firsts[others]]) > width)  # of a gap the steps say enough
    near[others] = is_near
    return near


def _columns(train: Records, holdout: Records) -> Sequence[tuple[Floats, Floats]]:
    """Columns of numbers, that of a target of numbers included: of the training records and of the holdout."""
    numeric = np.flatnonzero(train.schema.n_categories == 0)
    columns = [(train.features[:, place], holdout.features[:, place]) for place in numeric]
    labels = train.labels.astype(np.float64), holdout.labels.astype(np.float64)
    return columns if train.schema.classes else [*columns, labels]
