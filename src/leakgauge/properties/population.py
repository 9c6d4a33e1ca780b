"""Who is whose: the attacker's own records, the owner's, and which of them have the property."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.errors import DataError
from leakgauge.escaping import shapes
from leakgauge.properties.property import Property
from leakgauge.records import Records, Task, Value, split

ATTACKERS_SHARE = 1 / 3


@dataclass(frozen=True, eq=False)
class Side:
    """Records from which training sets are drawn.

    Args:
        whose: "owner" or "attacker", for messages.
        records: n of them.
        has: whether each has the property, bool ``[n]``.
        positive: code of the class that counts as label 1; all others count as 0.
    """

    whose: str
    records: Records
    has: Flags
    positive: int

    __repr__ = shapes

    def __post_init__(self) -> None:
        for there, what in ((self.has, "has"), (~self.has, "lacks")):
            if not there.any():
                raise DataError(
                    f"no record of the {self.whose}'s {len(self.records):,} {what} the property, so no training set "
                    "can be drawn; check the property, or give more records."
                )

    @cached_property
    def labels(self) -> Flags:
        """Whether each record has label 1, bool ``[n]``."""
        return np.asarray(self.records.labels == self.positive)

    @cached_property
    def negative(self) -> int:
        """Code of the class that stands for label 0: the most frequent of the others."""
        counts = np.bincount(self.records.labels, minlength=len(self.records.schema.classes))
        counts[self.positive] = -1
        return int(np.argmax(counts))

    def rows(self, with_property: bool) -> Indices:
        """The records with the property, or those without."""
        return np.flatnonzero(self.has == with_property)

    def draw(self, n: int, with_property: bool, rng: np.random.Generator) -> Indices:
        """Distinct random rows with or without the property, int ``[n]``.

        Raises:
            DataError: there are fewer.
        """
        there = self.rows(with_property)
        if n > len(there):
            raise DataError(
                f"{n:,} of the {self.whose}'s records {'with' if with_property else 'without'} the property are "
                f"needed, but there are {len(there):,}; give more, or make the training set or the poison smaller."
            )
        return there[rng.choice(len(there), n, replace=False, shuffle=False)]

    def draw_sets(self, n: int, frequencies: Floats, rng: np.random.Generator) -> Indices:
        """One training set for each frequency of the property, independent of each other, int ``[sets, n]``.

        Whether a record has the property is tossed record by record, so its share differs from the frequency by
        chance; a record is in a set at most once.

        Raises:
            DataError: there are fewer records with, or without, the property than a set needs.
        """
        return self._sets(n, rng.binomial(n, frequencies), rng)

    def draw_halves(self, n: int, n_sets: int, rng: np.random.Generator) -> Indices:
        """Sets of which half have the property, or one less than the rest if n is odd, int ``[n_sets, n]``."""
        return self._sets(n, np.full(n_sets, n // 2), rng)

    def _sets(self, n: int, n_with: Indices, rng: np.random.Generator) -> Indices:
        sets = np.empty((len(n_with), n), dtype=np.int64)
        for rows, k in zip(sets, n_with.tolist(), strict=True):
            rows[:k] = self.draw(k, True, rng)
            rows[k:] = self.draw(n - k, False, rng)
        return sets

    def some(self, n: int, rng: np.random.Generator) -> Side:
        """At most n random records, half of them with the property as far as there are so many of either kind."""
        if n >= len(self.records):
            return self
        n_with = min(len(self.rows(True)), max(n // 2, n - len(self.rows(False))))
        rows = np.sort(np.concatenate([self.draw(n_with, True, rng), self.draw(n - n_with, False, rng)]))
        return Side(self.whose, self.records[rows], self.has[rows], self.positive)

    def share(self, sets: Indices) -> Floats:
        """The share of each set that has the property, ``[sets]``."""
        share: Floats = self.has[sets].mean(axis=1)
        return share

    def as_codes(self) -> Side:
        """The same with codes as values of categorical columns; see `Records.as_codes`."""
        return Side(self.whose, self.records.as_codes(), self.has, self.positive)


@dataclass(frozen=True, eq=False)
class Sides:
    """The two sides of the game, drawn from the same people; no record is on both.

    Args:
        owner: from whose records target models are trained.
        attacker: from whose records poison, shadow models and queries come.
    """

    owner: Side
    attacker: Side

    def as_codes(self) -> Sides:
        """The same in codes, as the named recipes want it."""
        return Sides(self.owner.as_codes(), self.attacker.as_codes())


def hold_out(
    records: Records, secret: Property, *, positive: Value = None, share: float = ATTACKERS_SHARE, seed: int
) -> Sides:
    """Give the attacker a random part of the records, and the owner the rest.

    Args:
        records: everybody.
        secret: the property.
        positive: the class that counts as label 1, the others as 0. With two classes the second if not given; with
            more it must be named, and one class is attacked against the rest.
        share: of the records that the attacker gets, in (0, 1).
        seed: of the split.

    Raises:
        DataError: the labels are no classes, `positive` is none of them or missing, the share is out of range, or one
            side has no record with, or without, the property.

    Source: Chase et al. 2021, section VII, for the third.
    """
    code = positive_code(records, positive)
    if not 0 < share < 1:
        raise DataError(f"the attacker's share of the records must be in (0, 1), got {share}; a third is usual.")
    n_attacker = round(share * len(records))
    attacker, owner = split(records, n_attacker, len(records) - n_attacker, rng=seed)
    return Sides(Side("owner", owner, secret.of(owner), code), Side("attacker", attacker, secret.of(attacker), code))


def positive_code(records: Records, positive: Value) -> int:
    """The code of the class that counts as label 1.

    Raises:
        DataError: as `hold_out`.
    """
    schema = records.schema
    if schema.task is not Task.CLASSIFICATION:
        raise DataError(f"the label {schema.target.name!r} is a number, but the attack needs classes; bin it first.")
    if positive is None:
        if len(schema.classes) != 2:
            raise DataError(
                f"the label {schema.target.name!r} has {len(schema.classes)} classes where two are needed; name the "
                "one that is attacked against the rest (positive=…)."
            )
        return 1
    if positive not in schema.classes:
        raise DataError(
            f"the label {schema.target.name!r} has no class {positive!r}; name one of its {len(schema.classes)}."
        )
    return schema.classes.index(positive)
