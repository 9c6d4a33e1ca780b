"""When poisoned records let an attacker read a secret about the whole training set off the labels of a model.

A training set of n records holds the property with frequency `t0` or `t1 > t0`. The attacker plants a share `poison` of
it: records that all have the property (or all lack it), all with the same label. A learner that finds the likeliest
label of every point then answers some points differently in the two worlds: those about which it is uncertain by the
right amount. Certainty is `1 - 2 Pr[Y = 1 | x]` on clean data, in [-1, 1]: 1 where the label is 0 for sure, -1 where
it is 1. Nothing here looks at data.

Source: Chase, Ghosh and Mahloujifar, "Property Inference from Poisoning", 2021. The rules for the variants of
Remark 10 are worked out from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leakgauge.theory._checks import check_not_negative

_QUARTER = 0.25


@dataclass(frozen=True)
class Variant:
    """What the poisoned records are (Remark 10).

    Args:
        with_property: Whether all have the property; otherwise none has it.
        label: The label of all of them, 0 or 1.
    """

    with_property: bool = True
    label: int = 1

    def __post_init__(self) -> None:
        if self.label not in (0, 1):
            raise ValueError(f"label must be 0 or 1, got {self.label}; poisoned records all have one of the two.")

    @property
    def flips_under_t0(self) -> bool:
        """Whether it is in the world of `t0` that uncertain points take the poisoned label.

        The rarer the records like the poisoned ones are, the more these weigh.
        """
        return self.with_property

    def is_t1(self, share_of_ones: float) -> bool:
        """Decide for `t1` from the share of the uncertain points that are answered 1, in [0, 1].

        A share of exactly 1/2 is taken for no majority of the poisoned label.

        >>> Variant().is_t1(0.9), Variant(with_property=False).is_t1(0.9)
        (False, True)
        """
        flipped = share_of_ones > 0.5 if self.label == 1 else share_of_ones < 0.5
        return flipped != self.flips_under_t0


@dataclass(frozen=True)
class Band:
    """Certainties of the points that a Bayes-optimal learner answers differently in the two worlds.

    Those above `low` and at most `high`; with poisoned label 0, at least `low` and below `high`.

    Args:
        low: Lower end; may lie outside [-1, 1], and be infinite.
        high: Upper end, likewise.
        variant: What is poisoned.
    """

    low: float
    high: float
    variant: Variant = Variant()

    def holds(self, certainty: float) -> bool:
        """Whether a point of this certainty is in the band; no point is where it is empty."""
        if self.variant.label == 1:
            return self.low < certainty <= self.high
        return self.low <= certainty < self.high

    @property
    def is_attainable(self) -> bool:
        """Whether some certainty in [-1, 1] is in the band."""
        return self.low < self.high and self.low < 1 and self.high > -1


def poisoned_probability(probability: float, poison: float, frequency: float) -> float:
    """Return the probability of label 1, of a point with the property, once records labelled 1 are poisoned.

    Args:
        probability: `Pr[Y = 1 | x]` on clean data, in [0, 1].
        poison: Share of the training set that is poisoned, in [0, 1): records with the property, all labelled 1.
        frequency: Of the property in the clean data, t, in [0, 1].

    Returns:
        A probability, at least `probability`. Points without the property keep theirs.

    Raises:
        ValueError: If an argument is out of range, or no record has the property at all.

    Source: Chase et al. 2021, Claim 12.

    >>> round(poisoned_probability(0.4, 0.1, 0.3), 10)
    0.5621621622
    """
    p, t = _check_share(poison), _check_frequency("frequency", frequency)
    if not 0 <= probability <= 1:
        raise ValueError(f"probability must be in [0, 1], got {probability}; it is that of label 1.")
    weight = p + t * (1 - p)
    if weight == 0:
        raise ValueError("frequency and poison are both 0, so no record has the property; poison some.")
    return (p + t * (1 - p) * probability) / weight


def flipped_up_to(poison: float, frequency: float, margin: float = 0.0) -> float:
    """Return the largest clean certainty at which poisoned records make label 1 the likelier one, by some margin.

    For a point with the property the poisoned probability of label 1 is at least
    `1/2 + margin * t / (p + t (1 - p))` if and only if its certainty is at most this.

    Args:
        poison: Share of the training set that is poisoned, in [0, 1): records with the property, all labelled 1.
        frequency: Of the property in the clean data, t, in [0, 1].
        margin: In [-1, 1]; negative for the points that stay below 1/2 by so much.

    Returns:
        `(p - 2 margin t) / (t (1 - p))`; infinite for a property that nobody has.

    Raises:
        ValueError: If an argument is out of range.

    Source: Chase et al. 2021, Corollary 13.

    >>> round(flipped_up_to(0.1, 0.3, 0.05), 10)
    0.2592592593
    """
    p, t = _check_share(poison), _check_frequency("frequency", frequency)
    if not -1 <= margin <= 1:
        raise ValueError(f"margin must be in [-1, 1], got {margin}; it is a share of probability.")
    return (p - 2 * margin * t) / (t * (1 - p)) if t > 0 else math.inf


def certainty_band(t0: float, t1: float, poison: float, *, margin: float = 0.0, variant: Variant | None = None) -> Band:
    """Return the certainties of points that flip in one world and not in the other.

    Args:
        t0: The smaller frequency, in [0, 1); 0 makes the band unbounded.
        t1: The larger frequency, in (t0, 1].
        poison: Share of the training set that is poisoned, in [0, 1).
        margin: How far from 1/2 the answers are to be in both worlds, in [0, 1).
        variant: What is poisoned; by default records with the property, labelled 1.

    Returns:
        The band; empty (`low >= high`) where the margin asks for too much or nothing is poisoned.

    Raises:
        ValueError: If an argument is out of range.

    Source: Chase et al. 2021, Theorem 9, and Remark 10 for the other variants: planting records without the property
    makes it `(1 - t1, 1 - t0)`, the label 0 turns the sign.

    >>> band = certainty_band(0.3, 0.7, 0.1)
    >>> round(band.low, 6), round(band.high, 6)
    (0.15873, 0.37037)
    """
    t0, t1 = check_frequencies(t0, t1)
    variant = variant or Variant()
    check_not_negative("margin", margin, "it says how far from 1/2 the answers are")
    rare, common = (t0, t1) if variant.with_property else (1 - t1, 1 - t0)
    low, high = flipped_up_to(poison, common, -margin), flipped_up_to(poison, rare, margin)
    return Band(low, high, variant) if variant.label == 1 else Band(-high, -low, variant)


def largest_margin(t0: float, t1: float, poison: float, *, with_property: bool = True) -> float:
    """Return the margin below which the band of `certainty_band` is not empty.

    Args:
        t0: The smaller frequency, in [0, 1).
        t1: The larger frequency, in (t0, 1].
        poison: Share of the training set that is poisoned, in [0, 1).
        with_property: Whether the poisoned records have the property.

    Returns:
        `(p / 4) (1 / t0 - 1 / t1)`, at least 0; infinite for `t0 = 0` and some poison.

    Raises:
        ValueError: If an argument is out of range.

    Source: derived from Chase et al. 2021, Theorem 9.

    >>> round(largest_margin(0.3, 0.7, 0.1), 10)
    0.0476190476
    """
    t0, t1 = check_frequencies(t0, t1)
    p = _check_share(poison)
    rare, common = (t0, t1) if with_property else (1 - t1, 1 - t0)
    if rare == 0:
        return math.inf if p > 0 else 0.0
    return p / 4 * (1 / rare - 1 / common)


def largest_poison(t0: float, t1: float, *, with_property: bool = True) -> float:
    """Return the poison share above which the theorem's attack dies: points flip in both worlds alike.

    Args:
        t0: The smaller frequency, in [0, 1).
        t1: The larger frequency, in (t0, 1].
        with_property: Whether the poisoned records have the property.

    Returns:
        `t / (1 + t)` with t the larger frequency of records like the poisoned ones, in (0, 1/2].

    Raises:
        ValueError: If an argument is out of range.

    Source: derived from Chase et al. 2021, Theorem 9; a statement about Bayes-optimal learners.

    >>> round(largest_poison(0.3, 0.7), 10)
    0.4117647059
    """
    t0, t1 = check_frequencies(t0, t1)
    common = t1 if with_property else 1 - t0
    return common / (1 + common)


def queries_needed(fail: float, *, gap: float = _QUARTER) -> int:
    """Return how many uncertain points must be asked about so that their majority misleads with small probability.

    Args:
        fail: That probability, in (0, 1).
        gap: How far from 1/2 the share answered 1 is among all such points, g, in (0, 1/2]; 1/4 in Theorem 9.

    Returns:
        `ceil(ln(1 / fail) / (2 g^2))`.

    Raises:
        ValueError: If an argument is out of range.

    Source: Chase et al. 2021, proof of Theorem 9 (Hoeffding's inequality).

    >>> queries_needed(0.05), queries_needed(0.01), queries_needed(0.05, gap=0.1)
    (24, 37, 150)
    """
    if not 0 < fail < 1:
        raise ValueError(f"fail must be in (0, 1), got {fail}; write a fraction, such as 0.05.")
    if not 0 < gap <= 0.5:
        raise ValueError(f"gap must be in (0, 1/2], got {gap}; it is a distance of a share from 1/2.")
    return math.ceil(math.log(1 / fail) / (2 * gap**2))


@dataclass(frozen=True)
class Prospect:
    """How sure the theorem is of an attack.

    Args:
        band: Certainties of the points to ask about, without margin.
        margin: The one at which the most excess risk is tolerated; 0 where the attack is not possible.
        mass: Share of the clean points that are in the band with that margin.
        tolerated_excess: The theorem's attacker wins against every learner whose excess risk is below this.
    """

    band: Band
    margin: float
    mass: float
    tolerated_excess: float

    def wins_with(self, excess: float, fail: float = 0.0) -> float | None:
        """Return a lower bound on the probability to win, or `None` where the theorem promises nothing.

        `None` does not mean that the model is safe: the condition is sufficient, not necessary, and learners that
        are far from Bayes-optimal have been attacked with success.

        Args:
            excess: How much the learner's risk exceeds that of the Bayes-optimal one, at least 0.
            fail: The probability that it exceeds it by more, in [0, 1].

        Returns:
            `1 - 2 fail`.

        Raises:
            ValueError: If an argument is out of range.
        """
        check_not_negative("excess", excess, "no learner has a smaller risk than the Bayes-optimal one")
        if not 0 <= fail <= 1:
            raise ValueError(f"fail must be in [0, 1], got {fail}; it is a probability.")
        return 1 - 2 * fail if excess < self.tolerated_excess else None


def prospect(
    certainties: Sequence[float], t0: float, t1: float, poison: float, *, variant: Variant | None = None
) -> Prospect:
    """Return whether the attack is possible: the answer before anything is run.

    The theorem asks that the share of clean points whose certainty is in the band with some margin be above
    `2 excess / margin`. Here the margin is chosen that tolerates the largest excess.

    Args:
        certainties: Clean certainties of a sample of the points that are like the poisoned records (with the property,
            or without it), each in [-1, 1].
        t0: The smaller frequency, in [0, 1).
        t1: The larger frequency, in (t0, 1].
        poison: Share of the training set that is poisoned, in [0, 1).
        variant: What is poisoned; by default records with the property, labelled 1.

    Returns:
        The prospect. `mass` counts such points as rare as they are in the world where they are rarer; 0 for a
        property that is absent there, as nothing is then known of the clean data.

    Raises:
        ValueError: If an argument is out of range.

    Source: Chase et al. 2021, Theorem 9.

    >>> found = prospect([0.05, 0.25, 0.25, 0.9], 0.3, 0.7, 0.1)
    >>> round(found.margin, 6), round(found.mass, 6)
    (0.041071, 0.15)
    >>> found.wins_with(excess=0.002, fail=0.05), found.wins_with(excess=0.1, fail=0.05)
    (0.9, None)
    """
    band = certainty_band(t0, t1, poison, variant=variant)
    like_planted = band.variant.with_property
    rare, common = (t0, t1) if like_planted else (1 - t1, 1 - t0)
    if any(not -1 <= certainty <= 1 for certainty in certainties):
        raise ValueError("certainties must be in [-1, 1]; they are 1 - 2 Pr[Y = 1].")
    sign = 1 if band.variant.label == 1 else -1
    margins = sorted((_margin_of(sign * c, rare, common, poison) for c in certainties), reverse=True)
    best_margin = best_mass = 0.0
    for place, margin in enumerate(margins, start=1):
        mass = rare * place / len(margins)
        if margin * mass > best_margin * best_mass:
            best_margin, best_mass = margin, mass
    return Prospect(band, best_margin, best_mass, best_margin * best_mass / 2)


def check_frequencies(t0: float, t1: float) -> tuple[float, float]:
    """Return both as floats if `0 <= t0 < t1 <= 1`."""
    if not 0 <= t0 < t1 <= 1:
        raise ValueError(
            f"the frequencies must be ordered, 0 <= t0 < t1 <= 1, got t0 = {t0} and t1 = {t1}; name the smaller first."
        )
    return float(t0), float(t1)


def _margin_of(certainty: float, rare: float, common: float, p: float) -> float:
    """The margin up to which a point is in the band, poisoned label 1; at most 1, and not above 0 where it is not."""
    above = (certainty * common * (1 - p) - p) / (2 * common)
    below = (p - certainty * rare * (1 - p)) / (2 * rare) if rare > 0 else math.inf
    return min(above, below, 1.0)


def _check_share(poison: float) -> float:
    if not 0 <= poison < 1:
        raise ValueError(f"poison must be in [0, 1), got {poison}; it is the poisoned share of the training set.")
    return float(poison)


def _check_frequency(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {value}; write a fraction.")
    return float(value)
