"""Algorithm 1: which records the attacker plants, chosen without seeing a single record of the owner's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakgauge.arrays import Flags
from leakgauge.escaping import shapes
from leakgauge.properties.population import Side
from leakgauge.records import Records
from leakgauge.theory import Variant

_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class PoisonedRecords:
    """Records that the attacker adds to the training set.

    Args:
        records: people as they are but for the label, which is the same for all; possibly none.
        variant: what they have in common.
    """

    records: Records
    variant: Variant

    __repr__ = shapes


def plants_with_property(t0: float, t1: float) -> bool:
    """Whether records with the property are poisoned, which is where it is the rarer kind: `t0 + t1 < 1`.

    >>> plants_with_property(0.1, 0.3), plants_with_property(0.3, 0.7)
    (True, False)
    """
    return t0 + t1 < 1 - _TIE


def planted_label(labels: Flags) -> int:
    """The label that fewer of the records have, which all of them are given; 1 if there are as many of each.

    >>> planted_label(np.array([True, True, False, True])), planted_label(np.array([True, False]))
    (0, 1)
    """
    return int(2 * np.count_nonzero(labels) <= len(labels))


def plant(
    attacker: Side, n: int, t0: float, t1: float, *, variant: Variant | None = None, rng: np.random.Generator
) -> PoisonedRecords:
    """Draw records of the attacker's and give them all one label.

    Args:
        attacker: whose records are taken, each at most once.
        n: how many to plant, at least 0.
        t0: the smaller frequency of the property.
        t1: the larger one.
        variant: what to plant; by default the kind that is rarer, with the label that is rarer among what was drawn.
        rng: draws the records.

    Raises:
        DataError: the attacker has fewer such records.

    Source: Chase et al. 2021, Algorithm 1; Remark 10 for the variants.
    """
    with_property = plants_with_property(t0, t1) if variant is None else variant.with_property
    rows = attacker.draw(n, with_property, rng)
    chosen = variant or Variant(with_property, planted_label(attacker.labels[rows]))
    code = attacker.positive if chosen.label == 1 else attacker.negative
    taken = attacker.records[rows]
    records = Records(taken.features, np.full(n, code, dtype=np.int64), taken.schema, np.arange(n))
    return PoisonedRecords(records, chosen)
