"""Tail odds: do the few records with the most extreme scores belong to the training set?

An average over all records hides a few that are given away surely, and a list with an error rate needs many names
before it can show one. The records with the k highest scores need neither: if no output of a model changes the odds
of membership by more than `e^L` anywhere, the members among them are at most binomial with `e^L / (1 + e^L)` (at equal
group sizes), so more of them refute that limit. It is the limit on differential training privacy, read off an attack.

Sources: the limit is Definition 1 of Long et al. 2017; the test is derived from it and from Clopper and Pearson,
Biometrika 26 (1934), with Bonferroni's correction over the sizes of the tail.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from leakgauge.statistics._checks import check_fraction, check_values

SMALLEST_TAIL = 16
"""Records in the smallest tail; the next ones are twice as large each, as far as `_sizes` says."""

SMALLEST_GROUP = 2 * SMALLEST_TAIL
"""Records that a group must have for any tail to be looked at."""


@dataclasses.dataclass(frozen=True)
class TailOdds:
    """How much likelier than others the members are to lie in a tail of the scores.

    Attributes:
        odds: Lower bound on the odds of membership in the tail over the odds among all records tested; 1 means that
            membership does not show, and a bound below 1 that nothing was shown.
        k: Records in that tail.
        n_members: Members among them.
        upper: Whether it is the tail of high scores; False for the low ones.
        level: Probability that the bound exceeds the truth, over all tails tried together.
    """

    odds: float
    k: int
    n_members: int
    upper: bool
    level: float


def tail_odds(
    members: ArrayLike,
    nonmembers: ArrayLike,
    *,
    level: float,
    rng: np.random.Generator,
) -> TailOdds | None:
    """Bound the odds of membership among the records with the most extreme scores, from below.

    The low tail is tried as well, for scores that point the other way.

    It needs about 32 members that score above everybody else (at equal group sizes, eight attacks and a limit of e),
    whatever the number of records; fewer cannot be shown by any number of records. The fewer non-members there are
    beside the members, the more it takes (`smallest_sure_tail`).

    Args:
        members: Scores [n_members]; higher means member. Infinite values are allowed.
        nonmembers: Scores [n_nonmembers].
        level: Probability that the bound may exceed the truth, in (0, 1): the level of the audit divided by the number
            of attacks.
        rng: Breaks ties between equal scores.

    Returns:
        The tail with the largest bound, or `None` where a group has fewer than 32 records.

    Raises:
        ValueError: If a group is empty, a score is NaN, or the level is out of range.

    >>> scores = np.random.default_rng(0).normal(size=(2, 300))
    >>> scores[0, :40] = 9  # 40 of 300 members are given away
    >>> tail = tail_odds(*scores, level=0.0125 / 8, rng=np.random.default_rng(0))
    >>> tail.k, tail.n_members, tail.odds > math.e
    (32, 32, True)
    """
    level = check_fraction("level", level)
    inside, outside = check_values("members", members), check_values("nonmembers", nonmembers)
    sizes = _sizes(inside.size, outside.size)
    if not sizes:
        return None
    scores = np.concatenate([inside, outside])
    is_member = np.arange(scores.size) < inside.size
    rising = np.lexsort((rng.random(scores.size), scores))
    best: TailOdds | None = None
    for upper in (True, False):
        counts = np.cumsum(is_member[rising[::-1] if upper else rising])
        for k in sizes:
            n = int(counts[k - 1])
            odds = tail_bound(n, k, inside.size, outside.size, level=level)
            if best is None or odds > best.odds:
                best = TailOdds(odds, k, n, upper, level)
    return best


def tail_bound(n: int, k: int, n_members: int, n_nonmembers: int, *, level: float) -> float:
    """Return the lower bound on the odds of membership in a tail that `tail_odds` gives for these counts.

    Args:
        n: Members in the tail.
        k: Records in the tail.
        n_members: Members tested.
        n_nonmembers: Non-members tested.
        level: As in `tail_odds`.

    Returns:
        Over the odds among all records tested; NaN for counts that no tail has.
    """
    sizes = _sizes(n_members, n_nonmembers)
    if k not in sizes or not 0 <= n <= k:
        return math.nan
    return _lower_odds(n, k, level / (2 * len(sizes))) * n_nonmembers / n_members  # Bonferroni: each size, either end


def smallest_sure_tail(n_members: int, n_nonmembers: int, *, level: float, odds: float) -> int | None:
    """Return how many members given away surely it takes for `tail_odds` to exceed some odds.

    Args:
        n_members: Members tested.
        n_nonmembers: Non-members tested.
        level: As in `tail_odds`.
        odds: To be exceeded.

    Returns:
        A size of the tail, or `None` where the groups are too small for any number to show.

    >>> smallest_sure_tail(3000, 3000, level=0.0125 / 8, odds=math.e)
    32
    >>> smallest_sure_tail(40, 40, level=0.0125 / 8, odds=math.e) is None
    True
    """
    sizes = _sizes(n_members, n_nonmembers)
    return next((k for k in sizes if tail_bound(k, k, n_members, n_nonmembers, level=level) > odds), None)


def _sizes(n_members: int, n_nonmembers: int) -> list[int]:
    """Sizes of the tails: 16, 32, 64 and so on, up to half of the smaller group; none where a group is too small.

    Where non-members are few, a tail can show something only if it is large beside the odds among all records; sizes
    then go on to 64 times these odds, but to no more than half of the members.
    """
    smaller = min(n_members, n_nonmembers)
    if smaller < SMALLEST_GROUP:
        return []
    largest = max(smaller // 2, min(n_members // 2, 64 * n_members // n_nonmembers))
    return [SMALLEST_TAIL << i for i in range((largest // SMALLEST_TAIL).bit_length())]


def _lower_odds(n_members: int, k: int, level: float) -> float:
    """Lower Clopper-Pearson bound on the share of members, as odds."""
    if n_members == 0:
        return 0.0
    share = float(special.betaincinv(n_members, k - n_members + 1, level))
    return share / (1 - share) if share < 1 else math.inf
