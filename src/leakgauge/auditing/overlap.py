"""Holdout records that stand in the training set: how many there may be, what that hides, and what to say about it.

The statistics are those of :mod:`leakgauge.statistics.overlap`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from leakgauge.records import Codes, Records, Units, record_codes
from leakgauge.statistics import (
    Estimate,
    TailOdds,
    most_to_tell,
    odds_without_overlap,
    shared_share,
    without_overlap,
)

FRESH_HOLDOUT = "draw a holdout that shares no record with the training set"

TOLERANCES = (1e-6, 0.01)
"""Standard deviations by which the numbers of a copy may differ: stored in single precision, and rounded or blurred."""

LARGEST_CHANCE = 3.0
"""Equal pairs within the holdout, over as many as pairs across the sets lead one to expect, that may be chance."""


@dataclass(frozen=True, eq=False)
class Overlap:
    """Which records of the training set and the holdout are equal, or nearly so.

    A record counts as shared if it is equal in every column, the label included. Nearly equal ones, such as those of a
    table that was rounded or stored in single precision, count if there are more of them than chance produces. A record
    with the features of a training record and clearly another label is none that the model was trained on, and does not
    look like one to any attack that is judged.

    Args:
        equal: codes of the records that tell them apart wherever they differ.
        near: codes that do so only where they differ clearly, for each of the tolerances.
    """

    equal: Codes
    near: tuple[Codes, ...]
    _shares: dict[float, Estimate | None] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, train: Records, holdout: Records) -> Overlap:
        """Compare the training set with the holdout that attacks are judged by; persons by all of their records."""
        near = tuple(_codes(train, holdout, tolerance) for tolerance in TOLERANCES)
        return cls(_codes(train, holdout), near)

    def share(self, confidence: float) -> Estimate | None:
        """The share of the holdout that stands in the training set; ``None`` where no record suggests any."""
        if confidence not in self._shares:
            self._shares[confidence] = self._share(confidence)
        return self._shares[confidence]

    def _share(self, confidence: float) -> Estimate | None:
        equal = shared_share(self.equal.train, self.equal.holdout, confidence=confidence)
        near = [shared_share(codes.train, codes.holdout, confidence=confidence) for codes in self.near]
        largest = max((share for share in near if share is not None), key=lambda share: share.low, default=None)
        if largest is None or largest.low <= (0.0 if equal is None else equal.low):
            return equal
        return largest if equal is None else replace(largest, high=max(equal.high, largest.high))

    def corrected(self, advantage: Estimate) -> Estimate:
        """An advantage against records that were not trained on."""
        if advantage.confidence == 1:  # known without a holdout
            return advantage
        most = most_to_tell(self.equal.train, confidence=advantage.confidence)
        return without_overlap(advantage, self.share(advantage.confidence), most=most)

    def corrected_tail(self, tail: TailOdds) -> TailOdds:
        """Tail odds against records that were not trained on, whose bound errs with twice the probability."""
        shared = self.share(1 - 2 * tail.level)
        return replace(tail, odds=odds_without_overlap(tail.odds, shared), level=2 * tail.level)


def _codes(train: Records, holdout: Records, tolerance: float = 0.0) -> Codes:
    """Codes of the records, or of persons: equal where all of their rows are, in any order."""
    codes = record_codes(train, holdout, tolerance=tolerance)
    if train.units.single and holdout.units.single:
        return codes
    known: dict[tuple[int, ...], int] = {}

    def of_units(units: Units, code: NDArray[np.int64]) -> NDArray[np.int64]:
        rows, _ = units.rows_of(np.arange(len(units)))
        parts = np.split(code[rows], np.cumsum(units.sizes)[:-1])
        return np.array([known.setdefault(tuple(sorted(part.tolist())), len(known)) for part in parts])

    return Codes(of_units(train.units, codes.train), of_units(holdout.units, codes.holdout))


def holdout_repeats(train: Records, holdout: Records) -> NDArray[np.bool_]:
    """Which holdout records repeat an earlier one ``[n]``, if that is no chance; none otherwise.

    Attacks are right or wrong about all rows of one person at once, so that rows which belong together are no separate
    evidence. By chance, records of the holdout equal each other as often as they equal training records, for the sizes
    of the sets. Where at least a twentieth of the holdout repeats, in `LARGEST_CHANCE` times as many pairs, they count
    once. Where the records say whose they are, persons are compared anyway, and nothing is left out.
    """
    if not (train.units.single and holdout.units.single):
        return np.zeros(len(holdout), dtype=bool)
    codes = record_codes(train, holdout, tolerance=TOLERANCES[-1])
    n_kinds = 1 + max(int(codes.train.max()), int(codes.holdout.max()))
    inside, outside = (np.bincount(part, minlength=n_kinds).astype(float) for part in (codes.train, codes.holdout))
    by_chance = float(inside @ outside) * (len(holdout) - 1) / (2 * len(train))
    repeats = np.ones(len(holdout), dtype=bool)
    repeats[np.unique(codes.holdout, return_index=True)[1]] = False
    chance = float(outside @ (outside - 1)) / 2 <= LARGEST_CHANCE * by_chance
    return np.zeros_like(repeats) if chance or 20 * repeats.sum() < len(holdout) else repeats


def repeats_note(n_repeats: int, n_holdout: int) -> list[str]:
    """What a reader should know about holdout records that were left out for repeating others."""
    if not n_repeats:
        return []
    return [
        (
            f"{n_repeats:,} of {n_holdout:,} holdout records repeat another holdout record, far more than expected by "
            "chance. The audit left them out, as intervals would be too narrow otherwise. Give one row for each person."
        )
    ]


def allowance(shared: Estimate | None) -> str:
    """What a reason says about it; empty where there is nothing."""
    if shared is None or shared.high == 0:
        return ""
    return f" (up to {math.ceil(1000 * shared.high) / 10:g} % of the holdout may also be in the training set)"


def note(shared: Estimate | None, n_equal: int, n_holdout: int) -> str:
    """What a reader should know; empty where there is nothing.

    Args:
        shared: the share.
        n_equal: holdout records that equal a training record in every column.
        n_holdout: holdout records in all.
    """
    if shared is None:
        return ""
    high = f"{100 * shared.high:.3g}"
    said = (
        "1 holdout record is also in the training set"
        if n_equal == 1
        else f"{n_equal:,} holdout records are also in the training set"
        if n_equal
        else "Holdout records are also in the training set, with nearly the same values"
    )
    if not shared.low:
        return (
            f"{said}, or {'equals' if n_equal == 1 else 'equal'} a training record by chance: at most {high} % of the "
            f"{n_holdout:,} exceed what chance produces. The intervals of the advantages account for this."
        )
    return (
        f"{said}: about {100 * shared.value:.3g} % of the {n_holdout:,} (at most {high} %) beyond what chance "
        "produces. Attacks seem weaker on such a holdout. The advantages are corrected for this, which widens their "
        f"intervals. To avoid it, {FRESH_HOLDOUT}."
    )
