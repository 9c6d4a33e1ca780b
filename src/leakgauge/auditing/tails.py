"""Tail odds held against the release rule, for membership and for sensitive attributes alike."""

from __future__ import annotations

import math

from leakgauge.statistics import Estimate, GamesTail, TailOdds, games_tail_bound, tail_bound

ROUNDING = 1e-9
"""How far odds may be from those of their counts, as a share."""


def largest_odds(dtp: float | None) -> float:
    """The tail odds that a limit on DTP allows: e to that power; to 1 where there is no such limit."""
    return math.exp(1.0 if dtp is None else dtp)


def seen_odds(tail: TailOdds, n_members: int, n_others: int, *, level: float) -> Estimate:
    """The odds seen in a tail, over those among all records, and their bound from below.

    Args:
        tail: the largest of several.
        n_members: members in all.
        n_others: non-members in all.
        level: probability that the bound of any of the tails is wrong.
    """
    n_outside = tail.k - tail.n_members
    seen = tail.n_members / n_outside * n_others / n_members if n_outside else math.inf
    method = "lower bound, Clopper-Pearson"
    return Estimate(max(seen, tail.odds), tail.odds, math.inf, 1 - level, method, n_members + n_others)


def seen_odds_in_games(tail: GamesTail) -> Estimate:
    """The odds seen among the records with the highest scores of each game, and their bound from below."""
    n_outside = tail.k * tail.n_games - tail.n_members
    seen = tail.n_members / n_outside * tail.n_outside / tail.n_inside if n_outside else math.inf
    n, method = tail.n_inside + tail.n_outside, "lower bound, Clopper-Pearson, games of one half of the models"
    return Estimate(max(seen, tail.odds), tail.odds, math.inf, 1 - tail.level, method, n)


def tail_level(confidence: float) -> float:
    """The probability that tail odds in games err: what a rule's confidence leaves beside all else."""
    return (1 - confidence) / 4


def fits_in_games(tail: GamesTail, n_games: int, confidence: float, *, n_scores: int) -> bool:
    """Whether tail odds in games follow from their counts.

    Args:
        tail: found.
        n_games: in all.
        confidence: of the rule.
        n_scores: at most so many scores of one attack share the level, of which there are one or two.
    """
    counts = tail.n_members, tail.k, tail.n_games, tail.n_inside, tail.n_outside
    shares = {n * among for n in range(1, n_scores + 1) for among in (1, 2)}
    return (
        min(tail.n_games, tail.n_inside, tail.n_outside) > 0
        and tail.n_games < n_games
        and any(math.isclose(tail.level, tail_level(confidence) / n, rel_tol=ROUNDING) for n in shares)
        and math.isclose(games_tail_bound(*counts, level=tail.level), tail.odds, rel_tol=ROUNDING)
    )


def fits(
    tail: TailOdds, n_members: int, n_others: int, shared: Estimate | None, *, n_scores: int = 1, copies: bool = False
) -> bool:
    """Whether tail odds follow from their counts, as far as a document tells.

    What they were corrected by for shared records, which makes them larger, it does not tell; nor how many records are
    copies that counted once, which makes them larger as well.

    Args:
        tail: found.
        n_members: members in all.
        n_others: non-members in all.
        shared: share of the holdout that stands in the training set; half of the level is that of this share.
        n_scores: at most so many scores were tried.
        copies: whether records may be copies of others.
    """

    def bound(level: float) -> float:
        return tail_bound(tail.n_members, tail.k, n_members, n_others, level=level)

    least, most = (
        bound(tail.level / n_scores / (1 if shared is None else 2)),
        math.inf if shared or copies else bound(tail.level),
    )
    return least * (1 - ROUNDING) <= tail.odds <= most * (1 + ROUNDING)
