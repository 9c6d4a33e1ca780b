"""Holdout records that stand in the training set: how many there may be, what that hides, and what to say about it.

The statistics are those of :mod:`leakgauge.statistics.overlap`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Indices
from leakgauge.auditing.copies import copies, unit_codes
from leakgauge.records import Codes, Records, Units, record_codes
from leakgauge.statistics import (
    Estimate,
    TailOdds,
    most_to_tell,
    odds_without_overlap,
    pairs_by_chance,
    shared_share,
    without_overlap,
)

FRESH_HOLDOUT = "draw a holdout that shares no record with the training set"

TOLERANCES = (1e-6, 0.01)
"""Standard deviations by which the numbers of a copy may differ: stored in single precision, and rounded or blurred."""

FOUND_AT = 0.95
"""Pairs of nearly equal records count where they are more than the upper end of chance at this confidence."""

SURELY_FOUND_AT = 0.99
"""Or, where groups of more than two are nearly equal, where the share has a lower end above 0 at this confidence."""

WITH_NEAR = "equal and nearly equal records across the sets beyond those within"
"""The method of a share that counts nearly equal records, whose upper end is none for copies that were changed more."""

LEAST_SHARED_ROWS = 0.05
"""Training rows that holdout persons must have on average, almost surely: fewer hide little of what is theirs."""

LARGEST_CHANCE = 3.0
"""Equal pairs within the holdout, over as many as pairs across the sets lead one to expect, that may be chance."""


@dataclass(frozen=True, eq=False)
class Near:
    """Records that are nearly equal, and pairs of two such that differ and have no third.

    Copies within one set are one record here: a record that was drawn twice is no third.

    Args:
        codes: that tell records apart only where they differ clearly.
        across: pairs of a training record and a holdout record.
        within: pairs of two training records or of two holdout records.
        n_train: distinct training records.
        n_holdout: distinct holdout records.
    """

    codes: Codes
    across: int
    within: int
    n_train: int
    n_holdout: int

    @classmethod
    def of(cls, codes: Codes, equal: Codes) -> Near:
        """Count the pairs; those that are equal show nothing beyond what equal records show.

        Args:
            codes: that tell records apart only where they differ clearly.
            equal: that tell them apart wherever they differ, but for copies of one.
        """
        once = [np.unique(own, return_index=True)[1] for own in (equal.train, equal.holdout)]
        near, exact = (np.concatenate([of.train[once[0]], of.holdout[once[1]]]) for of in (codes, equal))
        n_train, n_holdout = map(len, once)
        two = np.flatnonzero((np.bincount(near) == 2)[near])
        pairs = two[np.argsort(near[two], kind="stable")].reshape(-1, 2)
        pairs = pairs[exact[pairs[:, 0]] != exact[pairs[:, 1]]]
        across = int(np.count_nonzero((pairs < n_train).sum(axis=1) == 1))
        return cls(codes, across, len(pairs) - across, n_train, n_holdout)

    def copies(self, confidence: float) -> int:
        """How many of the pairs across are there at least beyond what chance produces."""
        by_chance = pairs_by_chance(self.within, self.n_train, self.n_holdout, tail=(1 - confidence) / 2)
        return max(0, self.across - by_chance)

    def share(self, confidence: float) -> Estimate:
        """The share of the holdout; there is one."""
        found = shared_share(self.codes.train, self.codes.holdout, confidence=confidence)
        assert found is not None  # there are pairs across
        low = min(max(found.low, self.copies(confidence) / len(self.codes.holdout)), found.high)
        return replace(found, value=max(found.value, low), low=low, method=WITH_NEAR)


@dataclass(frozen=True, eq=False)
class Overlap:
    """Which records of the training set and the holdout are equal, or nearly so.

    A record counts as shared if it is equal in every column, the label included. Nearly equal ones, such as those of a
    table that was rounded or stored in single precision, count if there are more of them than chance produces: that
    any are counted where nothing is shared has a probability of at most 2.5 %. A record with the features of a training
    record and clearly another label is none that the model was trained on: whoever knows the label sees by the loss
    that it is not. An attack that reads the confidence alone may take it for a training record.

    Args:
        equal: codes of the records that tell them apart wherever they differ.
        copies: which records of a set are copies of one, equal or nearly so, where there are more than by chance;
            training records come first. Persons where there are persons.
        near: those that are nearly equal, at each of the tolerances at which there are more than chance produces.
        rows: of persons the codes of their different rows, where surely more than `LEAST_SHARED_ROWS` of a holdout
            person's stand in the training set, or nearly: perhaps of other persons.
        rows_each: different rows of a holdout person, on average: one that was trained on hides all that is hers.
    """

    equal: Codes
    copies: Units
    near: tuple[Near, ...]
    rows: Codes | None = None
    rows_each: float = 1.0
    _shares: dict[float, Estimate | None] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, train: Records, holdout: Records) -> Overlap:
        """Compare the training set with the holdout that attacks are judged by; persons by all of their records."""
        equal = unit_codes(train, holdout)
        steps = [(tolerance, unit_codes(train, holdout, tolerance)) for tolerance in TOLERANCES]
        of_one = copies(train, holdout, equal, steps)
        once = _of_first_copies(equal, of_one)
        near = [Near.of(codes, once) for _, codes in steps]
        # One test decides whether there are any copies: that at the smallest tolerance where there is any pair.
        tested = next((one for one in near if one.across + one.within), None)
        found = tested is not None and tested.copies(FOUND_AT) > 0
        lowest = _lowest(equal)
        counted = [one for one in near if (found and one.copies(FOUND_AT) > 0) or _lowest(one.codes) > lowest]
        return cls(equal, of_one, tuple(counted), *_shared_rows(train, holdout))

    @property
    def beyond_chance(self) -> bool:
        """Whether more records stand in both sets than by chance, almost surely."""
        return bool(self.near) or self.rows is not None or _lowest(self.equal) > 0

    @cached_property
    def alike(self) -> Units:
        """Which records are copies, or stand in both sets, where more do than by chance: nearly equal ones, too.

        Each holdout record joins one training record, at the smallest tolerance at which one is nearly equal, so that
        no chain of such pairs puts records together that are not.
        """
        if not self.beyond_chance:
            return self.copies
        once = _of_first_copies(self.equal, self.copies)
        train, holdout, outside = once.train, once.holdout, _first_copies(self.equal, self.copies)[1]
        for codes in (one.codes for one in self.near):
            kinds, first = np.unique(codes.train, return_index=True)
            near = codes.holdout[outside]
            place = np.minimum(np.searchsorted(kinds, near), len(kinds) - 1)
            joins = (kinds[place] == near) & ~np.isin(holdout, train)
            holdout[joins] = train[first[place[joins]]]
        return Units.of(np.concatenate([train, holdout]))

    def as_one(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Means over records that are alike, for each of them ``[n]``.

        They get one answer, and an attacker who knows all candidates sees that they are one record. Shadow models are
        trained with one and without the other, so that scores differ by chance; the correction for records that stand
        in both sets would multiply this.
        """
        return np.asarray(self.alike.mean(values)[self.alike.of_row])

    @property
    def nearly_equal_copies(self) -> bool:
        """Whether training records count as copies of others that differ slightly."""
        first, _ = _first_copies(self.equal, self.copies)
        return bool((self.equal.train != self.equal.train[first]).any())

    @property
    def train_once(self) -> NDArray[np.int64]:
        """Codes of the training records without copies of earlier ones."""
        return self.equal.train[self.copies.first[self.copies.first < len(self.equal.train)]]

    def share(self, confidence: float) -> Estimate | None:
        """The share of the holdout that stands in the training set; ``None`` where no record suggests any."""
        if confidence not in self._shares:
            self._shares[confidence] = self._share(confidence)
        return self._shares[confidence]

    def _share(self, confidence: float) -> Estimate | None:
        of_rows = None if self.rows is None else shared_share(self.rows.train, self.rows.holdout, confidence=confidence)
        if of_rows is not None:
            parts = {name: min(1.0, self.rows_each * getattr(of_rows, name)) for name in ("value", "low", "high")}
            of_rows = replace(of_rows, **parts)
        near = max(
            (one.share(confidence) for one in self.near), key=lambda share: (share.low, share.value), default=None
        )
        found = [near, shared_share(self.equal.train, self.equal.holdout, confidence=confidence), of_rows]
        held = [one for one in found if one is not None]
        if not held:
            return None
        largest = {part: max(getattr(one, part) for one in held) for part in ("value", "low", "high")}
        return replace(held[0], **largest)

    def corrected(self, advantage: Estimate) -> Estimate:
        """An advantage against records that were not trained on."""
        if advantage.confidence == 1:  # known without a holdout
            return advantage
        most = most_to_tell(self.train_once, confidence=advantage.confidence)
        return without_overlap(advantage, self.share(advantage.confidence), most=most)

    def corrected_in_games(self, advantage: Estimate) -> Estimate:
        """An advantage in games, where some of the candidates stand twice: once in either set.

        Either of two such candidates is drawn by itself, so that some of the models that are said to be without a
        record, as many as are trained on any, are trained on it all the same. That hides as much of what is given away
        about it, and nothing where a record that stands twice gives away twice as much. The value is corrected for
        these; a failure needs the advantage as measured above the limit, and a pass needs it below as one model's is
        corrected. Where records are perhaps equal by chance only, all is as for one model.
        """
        whole, share = self.corrected(advantage), self.share(advantage.confidence)
        if share is None or not self.beyond_chance:
            return whole
        n_train, n_holdout = len(self.equal.train), len(self.equal.holdout)
        part = 2 * n_holdout * n_train / (n_train + n_holdout) ** 2  # of candidates, and models with the other of two
        hidden = replace(share, value=part * share.value, low=part * share.low, high=part * share.high)
        low, high = min(whole.low, advantage.low), max(whole.high, advantage.high)
        # Where nearly all of the holdout was trained on, hardly anything is left that could be told.
        value = min(max(without_overlap(advantage, hidden).value, low), high)
        return replace(whole, value=value, low=low, high=high)

    def corrected_tail(self, tail: TailOdds) -> TailOdds:
        """Tail odds against records that were not trained on, whose bound errs with twice the probability."""
        shared = self.share(1 - 2 * tail.level)
        return replace(tail, odds=odds_without_overlap(tail.odds, shared), level=2 * tail.level)


def _first_copies(equal: Codes, copies: Units) -> tuple[Indices, Indices]:
    """The first copy of each training record and of each holdout record, itself where it has none."""
    first, n_train = copies.first[copies.of_row], len(equal.train)
    return first[:n_train], first[n_train:] - n_train


def _of_first_copies(equal: Codes, copies: Units) -> Codes:
    """Codes that are equal for all copies of one: also for those of the other set that equal any of them."""
    inside, outside = _first_copies(equal, copies)
    train, code = equal.train[inside], np.arange(1 + max(equal.train.max(), equal.holdout.max()))
    code[equal.train] = train
    return Codes(train, code[equal.holdout[outside]])


def _shared_rows(train: Records, holdout: Records) -> tuple[Codes | None, float]:
    """Codes of each person's different rows, where surely many of a person's stand in both sets; how many are hers."""
    if train.units.single and holdout.units.single:
        return None, 1.0
    codes = record_codes(train, holdout, tolerance=TOLERANCES[0])
    sets = ((train.units, codes.train), (holdout.units, codes.holdout))
    once = Codes(*(np.unique(np.stack([units.of_row, own]), axis=1)[1] for units, own in sets))
    each = len(once.holdout) / len(holdout.units)
    return once if each * _lowest(once) > LEAST_SHARED_ROWS else None, each


def _lowest(codes: Codes) -> float:
    """The least share, almost surely."""
    share = shared_share(codes.train, codes.holdout, confidence=SURELY_FOUND_AT)
    return 0.0 if share is None else share.low


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


def copies_note(n_distinct: int, n_train: int, *, nearly: bool = False) -> list[str]:
    """What a reader should know about training records that repeat others.

    Args:
        n_distinct: training records, or persons, without copies of others.
        n_train: all of them.
        nearly: whether some of the copies have slightly different values.
    """
    if n_distinct == n_train:
        return []
    values = " with equal or nearly equal values" if nearly else ""
    return [
        (
            f"{n_train - n_distinct:,} of {n_train:,} training records repeat another training record{values}, far "
            "more than expected by chance. What is said of attacks counts each of them once, and in games its copies "
            "are in a training set together or not at all. Influence is that of one copy, while the others stay in the "
            "training set: for that of all, give the record that each is a copy of as persons."
        )
    ]


def allowance(shared: Estimate | None) -> str:
    """What a reason says about it; empty where there is nothing."""
    if shared is None or shared.high == 0:
        return ""
    if shared.method == WITH_NEAR:
        return (
            f" (about {_percent(shared.value)} of the holdout, or more, may also be in the training set, with nearly "
            "the same values)"
        )
    return f" (up to {math.ceil(1000 * shared.high) / 10:g} % of the holdout may also be in the training set)"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def note(shared: Estimate | None, n_equal: int, n_holdout: int) -> str:
    """What a reader should know; empty where there is nothing.

    Args:
        shared: the share.
        n_equal: holdout records that equal a training record in every column.
        n_holdout: holdout records in all.
    """
    if shared is None:
        return ""
    nearly = shared.method == WITH_NEAR
    said = (
        "1 holdout record is also in the training set"
        if n_equal == 1
        else f"{n_equal:,} holdout records are also in the training set"
        if n_equal
        else "Holdout records are also in the training set, with nearly the same values"
    )
    if n_equal and nearly:
        said += ", and others with nearly the same values"
    if not (shared.low or nearly):
        return (
            f"{said}, or {'equals' if n_equal == 1 else 'equal'} a training record by chance: at most "
            f"{_percent(shared.high)} of the {n_holdout:,} exceed what chance produces. The intervals of the "
            "advantages account for this."
        )
    most = "" if nearly else f" (at most {_percent(shared.high)})"
    more = " There may be more, as copies that were changed further are not recognised." if nearly else ""
    return (
        f"{said}: about {_percent(shared.value)} of the {n_holdout:,}{most} beyond what chance produces.{more} "
        "Attacks seem weaker on such a holdout. The advantages are corrected for this, which widens their intervals. "
        f"To avoid it, {FRESH_HOLDOUT}."
    )
