"""Membership advantage: true-positive rate minus false-positive rate, with its interval.

Sources: Yeom et al. 2018, Definition 4 and Eq. 2 (`adv = 2 Pr[correct] - 1 = tpr - fpr` when members and
non-members are equally likely); Newcombe, "Interval estimation for the difference between independent
proportions: comparison of eleven methods", Statistics in Medicine 17 (1998).

Always computed from the two rates, so the groups may differ in size. In [-1, 1]; 0 is guessing; below 0 the
attack points the wrong way. Records are taken as independent given the target model; decisions that share
shadow models are less independent than that, and then the interval is too narrow.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.statistics._checks import check_count, check_fraction, check_values, without_rounding
from leakgauge.statistics.estimate import Estimate
from leakgauge.statistics.intervals import clopper_pearson, mean, welch_half_width, wilson

EXACT_BELOW_COUNT = 10
"""Decisions of either kind in the smaller group, found or expected, below which no approximation is used."""


def advantage(
    members_called: int,
    n_members: int,
    nonmembers_called: int,
    n_nonmembers: int,
    *,
    confidence: float = 0.95,
) -> Estimate:
    """Estimate the advantage of yes/no decisions with Newcombe's hybrid score interval.

    Coverage is nominal on average over rates, and lower when both rates are within a few `1 / n` of 0 or 1: at
    worst 0.90 for 30 records a side and 0.92 for 100, at 95 %. Between groups of unequal size it errs to one side: one
    end misses in up to 8 % of cases for 300 members against 10 others. For a bound that must hold use
    `advantage_exact`, and `advantage_of_decisions` where a decision hangs on either end.

    Args:
        members_called: Number of members called member, 0 to `n_members`.
        n_members: Number of members, at least 1.
        nonmembers_called: Number of non-members called member, 0 to `n_nonmembers`.
        n_nonmembers: Number of non-members, at least 1.
        confidence: In (0, 1).

    Returns:
        The advantage, in [-1, 1].

    Raises:
        ValueError: If a count or the confidence is out of range.
        TypeError: If a count is not an integer.

    >>> print(advantage(90, 100, 30, 200))
    0.75 [0.657, 0.812]
    """
    _check_table(members_called, n_members, nonmembers_called, n_nonmembers)
    tpr = wilson(members_called, n_members, confidence=confidence)
    fpr = wilson(nonmembers_called, n_nonmembers, confidence=confidence)
    value = tpr.value - fpr.value
    # Newcombe 1998, method 10: p1 = tpr with [l1, u1], p2 = fpr with [l2, u2].
    low = value - math.hypot(tpr.value - tpr.low, fpr.high - fpr.value)
    high = value + math.hypot(tpr.high - tpr.value, fpr.value - fpr.low)
    return Estimate(value, low, high, confidence, "Newcombe hybrid score", tpr.n + fpr.n)


def advantage_exact(
    members_called: int,
    n_members: int,
    nonmembers_called: int,
    n_nonmembers: int,
    *,
    confidence: float = 0.95,
) -> Estimate:
    """Estimate the advantage of yes/no decisions; the interval never covers less than it says.

    Both rates get a Clopper-Pearson interval at half the error (Bonferroni), so it is wider than
    `advantage`, by some 60 % for groups of equal size. Arguments, range and errors are those of `advantage`.

    >>> print(advantage_exact(90, 100, 30, 200))
    0.75 [0.597, 0.858]
    """
    _check_table(members_called, n_members, nonmembers_called, n_nonmembers)
    each = 1 - (1 - check_fraction("confidence", confidence)) / 2
    tpr = clopper_pearson(members_called, n_members, confidence=each)
    fpr = clopper_pearson(nonmembers_called, n_nonmembers, confidence=each)
    value, low, high = tpr.value - fpr.value, tpr.low - fpr.high, tpr.high - fpr.low
    return Estimate(value, low, high, confidence, "two Clopper-Pearson (Bonferroni)", tpr.n + fpr.n)


def advantage_of_decisions(
    member_decisions: ArrayLike, nonmember_decisions: ArrayLike, *, confidence: float = 0.95
) -> Estimate:
    """Estimate the advantage from one decision per record; `advantage` of the counted decisions.

    The interval is that of `advantage_exact` where either group has fewer than ten records, and where one is more than
    twice as large as the other and the smaller has fewer than ten records called member or fewer than ten not called,
    or would have at the rate of both groups together. So for groups of 20 to 1,000 records no end misses in more than
    3.8 % of cases at 95 % (nominal 2.5 %), where `advantage` alone misses in up to 8 %.

    Args:
        member_decisions: bool [n_members], True where a member was called member.
        nonmember_decisions: bool [n_nonmembers], True where a non-member was called member.
        confidence: In (0, 1).

    Returns:
        The advantage, in [-1, 1].

    Raises:
        TypeError: If the decisions are not boolean; scores must be compared with a threshold first.
        ValueError: If a group is empty or not one-dimensional.

    >>> advantage_of_decisions([True, True, False, True], [False, True]).value
    0.25
    """
    members = _check_decisions("member_decisions", member_decisions)
    nonmembers = _check_decisions("nonmember_decisions", nonmember_decisions)
    counts = int(members.sum()), members.size, int(nonmembers.sum()), nonmembers.size
    usual = advantage(*counts, confidence=confidence)
    smaller, larger = sorted((members.size, nonmembers.size))
    if smaller >= EXACT_BELOW_COUNT and (larger <= 2 * smaller or _fewest(*counts) >= EXACT_BELOW_COUNT):
        return usual
    exact = advantage_exact(*counts, confidence=confidence)
    return dataclasses.replace(exact, low=min(exact.low, usual.low), high=max(exact.high, usual.high))


def census_advantage(
    member_decisions: ArrayLike, nonmember_decisions: ArrayLike, *, confidence: float = 0.95, exact: bool = False
) -> Estimate:
    """Estimate the advantage of an attack on one very model whose members are all asked about.

    All training records of a model are its members, and no other could have been drawn: the true-positive rate is
    exact, and only the records outside are a sample. So the interval is that of the false-positive rate, turned round.
    It says what this model gives away, the luck of its training set and seed included, and not what the learner does.

    Wilson's interval, and Clopper and Pearson's around it where fewer than ten records outside are called member, or
    fewer than ten are not, or would be at the rate of both groups together.

    Args:
        member_decisions: bool [n_members], True where a member was called member; of all members.
        nonmember_decisions: bool [n_nonmembers], of a sample of others.
        confidence: In (0, 1).
        exact: Take Clopper and Pearson's interval throughout, which never covers less than it says: Wilson's ends miss
            up to twice as often as they should where the confidence is near 1.

    Returns:
        The advantage, in [-1, 1].

    Raises:
        TypeError: If the decisions are not boolean.
        ValueError: If a group is empty or not one-dimensional.

    >>> print(census_advantage([True] * 90 + [False] * 10, [True] * 30 + [False] * 170))
    0.75 [0.694, 0.793]
    """
    members = _check_decisions("member_decisions", member_decisions)
    nonmembers = _check_decisions("nonmember_decisions", nonmember_decisions)
    tpr, called, n = float(members.mean()), int(nonmembers.sum()), nonmembers.size
    fpr = wilson(called, n, confidence=confidence)
    low, high = fpr.low, fpr.high
    pooled = (int(members.sum()) + called) / (members.size + n)
    if exact or min(called, n - called, n * min(pooled, 1 - pooled)) < EXACT_BELOW_COUNT:
        sure = clopper_pearson(called, n, confidence=confidence)
        low, high = min(low, sure.low), max(high, sure.high)
    return Estimate(tpr - fpr.value, tpr - high, tpr - low, confidence, "census of the members", members.size + n)


def census_mean_difference(
    member_values: ArrayLike, nonmember_values: ArrayLike, *, confidence: float = 0.95
) -> Estimate:
    """Estimate the same of a randomised attack: the mean probability of saying "member", of members less of others.

    The interval is Student's for the records outside, computed after one record at 0 and one at 1 has joined them.

    Args:
        member_values: Probabilities [n_members], of all members.
        nonmember_values: Probabilities [n_nonmembers], of a sample of others.
        confidence: In (0, 1).

    Returns:
        Mean over members minus mean over non-members, in [-1, 1].

    Raises:
        ValueError: On an empty group, NaN, or a value outside [0, 1].

    >>> print(census_mean_difference([1.0, 1.0, 0.8, 0.6], [0.9, 0.5, 0.1, 0.5]))
    0.35 [−0.075, 0.775]
    """
    members = _check_bounded("member_values", member_values, 1.0)
    nonmembers = _check_bounded("nonmember_values", nonmember_values, 1.0)
    inside, outside = float(members.mean()), float(nonmembers.mean())
    around = mean(np.append(nonmembers, [0.0, 1.0]), confidence=confidence, lower=0.0, upper=1.0)
    low, high = inside - max(around.high, outside), inside - min(around.low, outside)
    return Estimate(inside - outside, low, high, confidence, "census of the members", members.size + nonmembers.size)


def balanced_accuracy(
    members_called: int,
    n_members: int,
    nonmembers_called: int,
    n_nonmembers: int,
    *,
    confidence: float = 0.95,
) -> Estimate:
    """Estimate the share of correct answers when members and non-members are equally likely.

    It is `(1 + advantage) / 2`, not the share of correct answers in the sample, which depends on how many of
    each were asked about.

    Args:
        members_called: Number of members called member, 0 to `n_members`.
        n_members: Number of members, at least 1.
        nonmembers_called: Number of non-members called member, 0 to `n_nonmembers`.
        n_nonmembers: Number of non-members, at least 1.
        confidence: In (0, 1).

    Returns:
        The balanced accuracy, in [0, 1]; 0.5 is guessing.

    Raises:
        ValueError: If a count or the confidence is out of range.
        TypeError: If a count is not an integer.

    >>> print(balanced_accuracy(90, 100, 30, 200))
    0.875 [0.828, 0.906]
    """
    adv = advantage(members_called, n_members, nonmembers_called, n_nonmembers, confidence=confidence)
    return dataclasses.replace(adv, value=(1 + adv.value) / 2, low=(1 + adv.low) / 2, high=(1 + adv.high) / 2)


def mean_difference(
    member_values: ArrayLike, nonmember_values: ArrayLike, *, confidence: float = 0.95, upper: float = 1.0
) -> Estimate:
    """Estimate the difference of two means of bounded values: the advantage of a randomised attack.

    If a record is called member with probability q(record), the expected advantage is
    `E[q | member] - E[q | non-member]`, and averaging q itself leaves out the noise of the coin tosses.
    (Yeom et al. 2018, Adversary 1, is `q = 1 - loss / loss_bound`.)

    The interval is Welch's, computed after one record at 0 and one at `upper` has joined either group.
    Without these, values that are all (or all but one) equal would give a width of zero, which claims far
    too much: at n = 100 rare values with a total probability of 3 % stay unseen 5 times in 100. The value
    returned is that of the data alone.

    Args:
        member_values: Values of members [n_members], in [0, upper].
        nonmember_values: Values of non-members [n_nonmembers], in [0, upper].
        confidence: In (0, 1).
        upper: Largest possible value, positive and finite: 1 for probabilities.

    Returns:
        Mean over members minus mean over non-members, in [-upper, upper].

    Raises:
        ValueError: On an empty group, NaN, or a value outside [0, upper].

    Sources: Welch 1947; Agresti and Caffo, "Simple and effective confidence intervals for proportions and
    differences of proportions result from adding two successes and two failures", The American Statistician
    54 (2000), here for values in [0, upper] instead of {0, 1}.

    >>> print(mean_difference([1.0, 1.0, 0.8, 0.6], [0.9, 0.5, 0.1, 0.5]))
    0.35 [−0.28, 0.747]
    """
    members = _check_bounded("member_values", member_values, upper)
    nonmembers = _check_bounded("nonmember_values", nonmember_values, upper)
    confidence = check_fraction("confidence", confidence)
    value = float(members.mean() - nonmembers.mean())
    # Agresti & Caffo 2000: one success and one failure more in either group.
    a, b = np.append(members, [0.0, upper]), np.append(nonmembers, [0.0, upper])
    centre = float(a.mean() - b.mean())
    half = welch_half_width(float(a.var(ddof=1) / a.size), a.size, float(b.var(ddof=1) / b.size), b.size, confidence)
    low, high = max(-upper, min(value, centre - half)), min(upper, max(value, centre + half))
    return Estimate(
        value, low, high, confidence, "Welch t, plus one record at either end", members.size + nonmembers.size
    )


def _fewest(members_called: int, n_members: int, nonmembers_called: int, n_nonmembers: int) -> float:
    """Decisions of the rarer kind in the smaller group: those found, or those expected at the pooled rate if fewer."""
    rate = (members_called + nonmembers_called) / (n_members + n_nonmembers)
    smaller = min(n_members, n_nonmembers)
    groups = ((members_called, n_members), (nonmembers_called, n_nonmembers))
    found = min(min(called, n - called) for called, n in groups if n == smaller)
    return min(found, smaller * min(rate, 1 - rate))


def _check_table(members_called: int, n_members: int, nonmembers_called: int, n_nonmembers: int) -> None:
    """Refuse impossible counts under the names the caller used."""
    check_count("members_called", members_called, "n_members", n_members)
    check_count("nonmembers_called", nonmembers_called, "n_nonmembers", n_nonmembers)


def _check_decisions(name: str, decisions: ArrayLike) -> NDArray[np.bool_]:
    """Return the decisions as a non-empty bool array [n]."""
    array = np.asarray(decisions)
    if array.dtype != np.bool_ and array.size > 0:
        raise TypeError(f"{name} must be boolean, got {array.dtype}; compare scores with a threshold first.")
    check_values(name, array)
    return array


def _check_bounded(name: str, values: ArrayLike, upper: float) -> NDArray[np.float64]:
    """Return the values as a non-empty array [n] within [0, upper]."""
    if not 0 < upper < math.inf:
        raise ValueError(f"upper must be positive and finite, got {upper}; give the largest possible value.")
    array = without_rounding(check_values(name, values), 0.0, upper)
    if array.min() < 0 or array.max() > upper:
        raise ValueError(
            f"{name} must be in [0, upper = {upper}], got {array.min()} to {array.max()}; "
            "divide by the bound, or give the right `upper`."
        )
    return array
