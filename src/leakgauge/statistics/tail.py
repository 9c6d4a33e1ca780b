"""Tail odds: do the few records with the most extreme scores belong to the training set?

An average over all records hides a few that are given away surely, and a list with an error rate needs many names
before it can show one. The records with the k highest scores need neither: if no output of a model changes the odds
of membership of any record by more than `e^L`, given who else was in, the members among them are at most binomial with
`e^L / (1 + e^L)` (at equal group sizes), so more of them refute that limit. It is the limit on differential training
privacy, read off an attack.

In training sets of a fixed size a record is exchanged for another, and the limit is compared with what an exchange
changes. A learner whose outputs change by at most L when a record is removed may change them by up to 2 L when one is
exchanged, and may show odds of up to `e^(2 L)` in games. Where the limit holds for each record alone, and not given who
else was in, nothing is said: one output may be about all of them.

One model shows no fewer than about 30. Where several models on random shares of the same records are attacked, each of
them shows those of the same few that it was trained on, and two in each are enough (`games_tail`).

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


@dataclasses.dataclass(frozen=True)
class GamesTail:
    """How much likelier than others the members are to have the highest scores, when several models are attacked.

    Attributes:
        odds: Lower bound on the odds of membership among the records with the highest scores of each game, over those
            among all records; 1 means that membership does not show, and a bound below 1 that nothing was shown.
        k: Records with the highest scores that are looked at in each game.
        n_games: Games: those of one half of the models.
        n_members: Members among the records looked at, over all of these games.
        n_inside: Members in the game with most.
        n_outside: Others in it.
        level: Probability that the bound exceeds the truth, over all sizes and both halves tried.
    """

    odds: float
    k: int
    n_games: int
    n_members: int
    n_inside: int
    n_outside: int
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

    If no output changes the odds of membership of any record by more than a factor, given who else was in, the bound is
    above it with probability at most `level`. In training sets of a fixed size this is about one record in the place of
    another (see the module).

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


def games_tail(
    scores: ArrayLike, members: ArrayLike, first_half: ArrayLike, *, level: float, rng: np.random.Generator
) -> GamesTail | None:
    """Bound the odds of membership among the records with the highest scores of several games, from below.

    The games of either half are to be independent given the other half: what an attacker knows of the models that it
    attacks in one half comes from the other. If no output changes the odds of membership of any record by more than a
    factor, given who else was in, the members among the k records of highest score in all games of a half are then at
    most binomial. In training sets of a fixed size this is about one record in the place of another: where removing one
    changes the odds by up to a factor, exchanging two may change them by up to its square.

    Args:
        scores: Of each record in each game [games, n]; higher means member. Infinite values are allowed.
        members: Which records were members, bool [games, n]. Where there are more in some games, the odds among all
            records are those of the game with most.
        first_half: Which games are of the first half, bool [games].
        level: Probability that the bound may exceed the truth, in (0, 1).
        rng: Breaks ties between equal scores.

    Returns:
        The size and half with the largest bound, or `None` where a game has no members or no others, or a half no game.

    Raises:
        ValueError: If a score is NaN, or the level is out of range.

    >>> rng = np.random.default_rng(0)
    >>> members = np.stack([rng.permutation(200) < 100 for _ in range(32)])
    >>> scores = rng.normal(size=(32, 200))
    >>> scores[:, :8] = np.where(members[:, :8], 9, -9)  # 8 of 200 records are given away, half of them in each game
    >>> tail = games_tail(scores, members, np.arange(32) < 16, level=0.0125, rng=rng)
    >>> tail.k, tail.n_members, tail.n_games, tail.odds > math.e
    (2, 31, 16, True)
    """
    level = check_fraction("level", level)
    said, inside = np.asarray(scores, dtype=np.float64), np.asarray(members, dtype=np.bool_)
    halves = np.asarray(first_half, dtype=np.bool_)
    if np.isnan(said).any():
        raise ValueError("scores must not be NaN")
    if not 0 < np.count_nonzero(halves) < len(halves):
        return None
    n_inside = int(inside.sum(axis=1).max())
    n_outside = inside.shape[1] - n_inside
    sizes = _sizes_in_games(n_inside, n_outside)
    if not sizes:
        return None
    found = np.empty((len(said), len(sizes)), dtype=np.int64)
    for own, known, counts in zip(said, inside, found, strict=True):
        falling = np.lexsort((rng.random(own.size), -own))[: sizes[-1]]
        counts[:] = np.cumsum(known[falling])[np.array(sizes) - 1]
    best: GamesTail | None = None
    for half in (halves, ~halves):
        n_games = int(np.count_nonzero(half))
        for k, n in zip(sizes, found[half].sum(axis=0), strict=True):
            odds = games_tail_bound(int(n), k, n_games, n_inside, n_outside, level=level)
            if best is None or odds > best.odds:
                best = GamesTail(odds, k, n_games, int(n), n_inside, n_outside, level)
    return best


def games_tail_bound(n: int, k: int, n_games: int, n_inside: int, n_outside: int, *, level: float) -> float:
    """Return the lower bound on the odds of membership that `games_tail` gives for these counts.

    Args:
        n: Members among the records looked at.
        k: Records looked at in each game.
        n_games: Games.
        n_inside: Members in the game with most.
        n_outside: Others in it.
        level: As in `games_tail`.

    Returns:
        Over the odds among all records; NaN for counts that no games have.
    """
    sizes = _sizes_in_games(n_inside, n_outside)
    if k not in sizes or n_games < 1 or not 0 <= n <= k * n_games:
        return math.nan
    # Bonferroni: each size, either half
    return _lower_odds(n, k * n_games, level / (2 * len(sizes))) * n_outside / n_inside


def smallest_sure_games_tail(tail: GamesTail, *, odds: float) -> int | None:
    """Return how many records of each game, given away surely, it takes for `games_tail` to exceed some odds.

    Args:
        tail: That was found; another is had with as many games and records.
        odds: To be exceeded.

    Returns:
        A number, or `None` where there are too few games or records for any to show.
    """
    about = tail.n_games, tail.n_inside, tail.n_outside
    return next(
        (
            k
            for k in _sizes_in_games(*about[1:])
            if games_tail_bound(k * tail.n_games, k, *about, level=tail.level) > odds
        ),
        None,
    )


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


def _sizes_in_games(n_inside: int, n_outside: int) -> list[int]:
    """Records looked at in each game: 1, 2, 4 and so on, up to half of the smaller group."""
    return [1 << i for i in range((min(n_inside, n_outside) // 2).bit_length())]


def _lower_odds(n_members: int, k: int, level: float) -> float:
    """Lower Clopper-Pearson bound on the share of members, as odds."""
    if n_members == 0:
        return 0.0
    share = float(special.betaincinv(n_members, k - n_members + 1, level))
    return share / (1 - share) if share < 1 else math.inf
