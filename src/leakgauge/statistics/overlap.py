"""What share of the holdout stands in the training set, and what that does to a measured leak.

A holdout record that equals a training record may be the same person, who is then no non-member at all, or another
person who happens to look the same, as happens all the time in tables of few categories. The two are told apart by
counting: between the sets chance produces as many pairs of equal records, for their sizes, as within either of them.
What there is beyond that are records that stand in both.

If a share `d` of the holdout are members, an attack calls `(1 - d) fpr + d tpr` of it member, so that the measured
advantage is `1 - d` times the true one: overlap hides leaks.

Sources: derived; the null distribution is that of the degenerate U-statistics of Hoeffding, Annals of Mathematical
Statistics 19 (1948). For equal sets and frequent records it is Pearson's chi-squared test, lower tail.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from leakgauge.statistics._checks import check_fraction
from leakgauge.statistics.estimate import Estimate

_METHOD = "equal records across the sets beyond those within"

_LARGEST_CHANCE = 3.0
"""Equal pairs within a set, over as many as the other set leads one to expect at most, that may be chance."""

_FEWEST_REPEATS = 0.05
"""Share of a set that repeats, from which repetition is looked for."""


def shared_share(train: ArrayLike, holdout: ArrayLike, *, confidence: float = 0.95) -> Estimate | None:
    """Estimate the share of the holdout that was taken from the training set.

    It assumes that the other holdout records and the training records are drawn alike. Sets with repeated records
    (a training set whose rare class was drawn several times) widen the interval: what chance produces is estimated
    from either set, and the interval reaches from the lowest end to the highest.

    A release depends on the upper end. In simulations (0 to 90 % shared, 8 to 100,000 kinds of records, uniform and
    Zipf, 500 to 4,000 records a side) the truth exceeds it in at most 4 % at a confidence of 97.5 %, and in up to 7 %
    where 95 % are shared (``docs/benchmarks/calibration.md``).

    Args:
        train: One code for each training record [n_train]: equal codes for equal records, and for no others.
        holdout: The same codes for the holdout [n_holdout].
        confidence: In (0, 1).

    Returns:
        The share, in [0, 1], or `None` where no holdout record equals a training record, so that it is 0 for certain.

    Raises:
        ValueError: If a set is empty or the confidence out of range.

    >>> print(shared_share(range(1000), range(900, 1900)))  # records that never occur twice by chance
    0.1 [0.0764, 0.1]
    >>> coarse = np.random.default_rng(0).integers(64, size=(2, 4000))  # 64 kinds of records, nobody in both
    >>> shared = shared_share(*coarse)
    >>> shared.low, shared.high < 0.5
    (0.0, True)
    """
    tail = (1 - check_fraction("confidence", confidence)) / 2
    inside, outside = np.asarray(train), np.asarray(holdout)
    n1, n0 = inside.size, outside.size
    if not n1 or not n0:
        raise ValueError("train and holdout must hold at least one record each; there is nothing to compare.")
    kinds, code = np.unique(np.concatenate([inside, outside]), return_inverse=True)
    c1, c0 = (np.bincount(part, minlength=kinds.size).astype(np.float64) for part in (code[:n1], code[n1:]))
    most = float(c0[c1 > 0].sum()) / n0
    if most == 0:
        return None
    ends = [_ends(c1, c0, own, tail) for own in (c0, c1)]
    low, high = (min(max(pick(end[side] for end in ends), 0.0), most) for side, pick in ((0, min), (2, max)))
    value = min(max(sum(end[1] for end in ends) / 2, low), high)
    return Estimate(value, low, high, confidence, _METHOD, n0)


def pairs_by_chance(within: int, n_train: int, n_holdout: int, *, tail: float = 0.025) -> int:
    """Bound the pairs of like records across the sets that chance produces, by those within the sets.

    Pairs that two sets drawn alike hold by chance are spread over them by their sizes: given all pairs, those across
    are binomial, so that until one more than these is within a set their number is negative binomial. That needs 6
    pairs across two equal sets to show anything, although none at all within them says that pairs are rare. So with
    none within, pairs are taken for independent events (Poisson) of the rate that makes as many across, and none
    within, most probable. Then 4 are enough, and fewer for sets of different sizes.

    Args:
        within: pairs within either set, in both together.
        n_train: records of the training set.
        n_holdout: records of the holdout.
        tail: probability of more than the bound at any rate of chance pairs.

    Returns:
        At least 1, as one pair may always be chance.

    Source: Przyborowski and Wilenski, "Homogeneity of results in testing samples from Poisson series", Biometrika 31
    (1940), for the binomial; with none within, derived.

    >>> pairs_by_chance(0, 200, 200), pairs_by_chance(0, 1000, 50), pairs_by_chance(1, 200, 200)
    (3, 1, 7)
    """
    n = n_train + n_holdout
    p = 2 * n_train * n_holdout / max(n * (n - 1), 1)  # that a pair is across
    if p >= 1:  # a record on each side: no pair can be within
        return 1
    if within:
        return max(1, math.ceil(float(special.nbdtrik(1 - tail, within + 1, 1 - p))))
    rates = np.geomspace(1e-3, 60, 2000)  # of pairs across
    none_within = np.exp(-rates * (1 - p) / p)
    bound = 1
    while (none_within * special.pdtrc(bound, rates)).max() > 0.9 * tail:  # at these rates some within are rare
        bound += 1
    return bound


def repeats_beyond_chance(own: ArrayLike, other: ArrayLike) -> NDArray[np.bool_]:
    """Tell which records repeat an earlier one of their set, where the set repeats its records more than by chance.

    Records that were drawn several times, to weigh more, are no separate evidence. In a table of few kinds many records
    are equal without being copies; then they equal records of another set as often, and each other within that set.
    Either of the two counts gives an upper bound of 97.5 % on the pairs that chance produces (as if pairs were
    Poisson); there must be three times as many as the smaller bound, and at least a twentieth of the set must repeat.

    Args:
        own: One code for each record of the set [n]: equal codes for equal records, and for no others.
        other: The same codes for a set drawn alike.

    Returns:
        For each record of the set, False for all where the repetition may be chance [n].

    >>> int(repeats_beyond_chance(np.repeat(np.arange(20), 2), np.arange(20, 60)).sum())
    20
    >>> bool(repeats_beyond_chance(np.arange(1000) % 20, np.arange(1000) % 20).any())
    False
    """
    inside, outside = np.asarray(own), np.asarray(other)
    n1, n0 = inside.size, outside.size
    _, code = np.unique(np.concatenate([inside, outside]), return_inverse=True)
    n_kinds = int(code.max(initial=-1)) + 1
    c1, c0 = (np.bincount(part, minlength=n_kinds).astype(np.float64) for part in (code[:n1], code[n1:]))
    repeats = np.ones(n1, dtype=bool)
    repeats[np.unique(inside, return_index=True)[1]] = False

    def most(pairs: float) -> float:
        return float(special.chdtri(2 * (pairs + 1), 0.025)) / 2

    if repeats.sum() < max(1, _FEWEST_REPEATS * n1) or not n0:
        return np.zeros(n1, dtype=bool)
    by_chance = most(float(c1 @ c0)) * (n1 - 1) / (2 * n0)
    if n0 > 1:
        by_chance = min(by_chance, most(float(c0 @ (c0 - 1)) / 2) * n1 * (n1 - 1) / (n0 * (n0 - 1)))
    beyond = float(c1 @ (c1 - 1)) / 2 > _LARGEST_CHANCE * by_chance
    return repeats if beyond else np.zeros(n1, dtype=bool)


def most_to_tell(train: ArrayLike, *, confidence: float = 0.95) -> float:
    """Bound what any attack on one model may gain, by how far a training set can be from its population.

    Equal records get equal answers. So the advantage of any attack is at most the total variation distance between the
    kinds of records that the training set holds and those of the population, which is small where there are many
    records of few kinds, whatever the model does and whatever the holdout holds.

    It is `sum over kinds of sqrt(p (1 - p) / n) / 2`, which the expected distance does not exceed, with the shares
    observed for `p`; the share of kinds that occur once, for kinds that were not seen (Good and Turing); and what the
    distance may exceed its expectation by (McDiarmid's inequality).

    Args:
        train: One code for each training record [n]: equal codes for equal records.
        confidence: In (0, 1); of a two-sided statement, so that this bound errs with half of what is left.

    Returns:
        In [0, 1].

    Source: McDiarmid, "On the method of bounded differences", 1989: one record moves the distance by at most 1/n.

    >>> round(most_to_tell(np.random.default_rng(0).integers(16, size=4000)), 3)
    0.052
    """
    tail = (1 - check_fraction("confidence", confidence)) / 2
    _, counts = np.unique(np.asarray(train), return_counts=True)
    n = int(counts.sum())
    shares = counts / n
    expected = float(np.sqrt(shares * (1 - shares) / n).sum()) / 2 + np.count_nonzero(counts == 1) / n
    return float(min(1.0, expected + math.sqrt(-math.log(tail) / (2 * n))))


def without_overlap(advantage: Estimate, shared: Estimate | None, *, most: float = 1.0) -> Estimate:
    """The advantage against records that were not trained on, where a share of the holdout was.

    The value is divided by `1 - d`. The interval of the quotient is put together from those of its two parts by MOVER:
    an end R is where `R (1 - d)` and the advantage are as far apart as the distances of both from their own ends, added
    in squares, allow. Both parts need the same confidence, which is that of the quotient; that a share and an advantage
    err at once in the worst way is not charged twice, as dividing end by end would.

    Args:
        advantage: As measured, in [-1, 1].
        shared: The share of the holdout that stands in the training set, at the same confidence; `None` for none.
        most: What the advantage cannot exceed in size, from `most_to_tell`; no end is moved beyond it.

    Returns:
        In [-1, 1]; the whole range where all of the holdout may have been trained on.

    Raises:
        ValueError: If the two confidences differ.

    Source: Donner and Zou, "Closed-form confidence intervals for functions of the normal mean and standard deviation",
    Statistical Methods in Medical Research 21 (2012), for ratios.

    >>> measured, shared = Estimate(0.09, 0.05, 0.13, 0.95, "example", 400), Estimate(0.1, 0.05, 0.2, 0.95, "", 200)
    >>> print(without_overlap(measured, shared))
    0.1 [0.0554, 0.147]
    """
    if shared is None or advantage.confidence == 1:
        return advantage
    if not math.isclose(advantage.confidence, shared.confidence):
        raise ValueError(
            f"advantage and share need the same confidence, got {advantage.confidence} and {shared.confidence}; "
            "estimate the share at that of the advantage."
        )
    method = f"{advantage.method}, corrected for shared records"
    if shared.high >= 1:  # nobody need be left who was not trained on: whatever was measured says nothing
        low, high = -_within(-advantage.low, 1.0, most), _within(advantage.high, 1.0, most)
        return dataclasses.replace(advantage, low=low, high=high, method=method)
    low = -_within(-advantage.low, _upper_end(-advantage.value, -advantage.low, shared), most)
    high = _within(advantage.high, _upper_end(advantage.value, advantage.high, shared), most)
    left = 1 - shared.value
    value = advantage.value / left if left > abs(advantage.value) else math.copysign(1.0, advantage.value)
    value = min(max(value if advantage.value else 0.0, low), high)
    return dataclasses.replace(advantage, value=value, low=low, high=high, method=method)


def odds_without_overlap(odds: float, shared: Estimate | None) -> float:
    """A lower bound on odds of membership in a tail, against records that were not trained on.

    With a share `d` of the holdout trained on, odds of R become `(1 - d) R / (1 - d R)`; `d` is taken at its lower end.

    Args:
        odds: Lower bound as measured, over the odds among all records.
        shared: The share of the holdout that stands in the training set; `None` for none.

    >>> odds_without_overlap(2.0, Estimate(0.3, 0.25, 0.35, 0.975, "example", 200))
    3.0
    """
    if shared is None or odds <= 1:
        return odds
    d = shared.low
    return (1 - d) * odds / (1 - d * odds) if d * odds < 1 else math.inf


def _ends(
    c1: NDArray[np.float64], c0: NDArray[np.float64], own: NDArray[np.float64], tail: float
) -> tuple[float, float, float]:
    """Lower end, value and upper end of the share, where chance pairs are judged by those within one set.

    Args:
        c1: how often each kind of record occurs in the training set.
        c0: how often in the holdout.
        own: of these two the one within which chance pairs are counted.
        tail: probability of an error at either end.
    """
    n1, n0 = c1.sum(), c0.sum()
    n, n_own = n1 + n0, own.sum()
    m = c1 + c0
    again = m > 1
    # One over the chances that a record of this kind has to find an equal one: the least variance of the sum below.
    weight = np.zeros_like(m)
    weight[again] = 1 / (m[again] - 1)
    met = c0 * (c1 > 0)
    as_copy, as_other = (float((met * of).sum() / met.sum()) for of in (weight, 1 / np.maximum(m, 1)))
    # Pairs across, less those within the one set as far as the sizes of the two differ: 0 on average by chance, for
    # any weights that are functions of m. Each copied record adds a pair.
    within = own * (own - 1) * (n - n_own) / max(n_own - 1, 1)
    excess = float((weight * (c1 * c0 - within)).sum()) / n0
    # Variance given m, records assigned to the sets at random: Hoeffding's decomposition into pairs and single records.
    pairs = float((weight**2 * m * (m - 1)).sum() / 2)
    with_twin = float(m[again].sum()) / n
    single = with_twin * (1 - with_twin) * n1 * n0 / n
    sd = math.sqrt((2 * (n - n_own) / n) ** 2 * pairs + single) / n0
    low = excess + float(special.ndtri(tail)) * sd  # no pair weighs more than 1, so no copy adds more
    rare = 1 - 1 / len(m)  # a copy is no surprise where its kind is frequent anyway
    if rare == 0:  # all records are equal
        return 0.0, 0.0, 1.0
    # What a copy adds is the weight of its kind. Of the holdout records that are found in the training set some are
    # copies and some are not, and another one of their kind would make their weight smaller: solved for the share.
    sure = max(excess, 0.0) * (as_copy - as_other) / rare * n0 / met.sum()
    likely = min((as_other + math.sqrt(as_other**2 + 4 * sure)) / 2, as_copy) * rare
    value, sd = excess / likely, sd / likely
    # Copies have no chance pairs of their own: deviations shrink with 1 - d for sets of equal size, and less for a
    # small holdout. They are sums of squares, so chi-squared with as many degrees of freedom as fit their variance.
    shrink = min(1.0, 2 * n0 / n)
    degrees = 2 / max(shrink * sd, 1e-6) ** 2
    high = (1 - (1 - shrink * value) * degrees / float(special.chdtri(degrees, tail))) / shrink
    return low, value, high


def _within(measured: float, corrected: float, most: float) -> float:
    """An end moved from where it was measured to where it is corrected to, but outwards no further than `most`."""
    return min(corrected, max(measured, most))


def _upper_end(value: float, end: float, shared: Estimate) -> float:
    """Upper end of `value / (1 - d)` in [-1, 1], by bisection; `end` is that of the value."""

    def beyond(ratio: float) -> float:
        # A positive ratio grows with the share, a negative one shrinks with it.
        error = shared.high - shared.value if ratio > 0 else shared.value - shared.low
        return ratio * (1 - shared.value) - value - math.hypot(end - value, ratio * error)  # rises with the ratio

    low, high = -1.0, 1.0
    if beyond(high) <= 0:
        return high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) > 0 else (middle, high)
    return high
