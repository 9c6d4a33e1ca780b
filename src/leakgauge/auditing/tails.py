"""Tail odds held against the release rule, for membership and for sensitive attributes alike."""

from __future__ import annotations

import math

from leakgauge.statistics import Estimate, TailOdds

LARGEST_LIMIT_NATS = 700.0
"""e to a larger power is no number."""


def largest_odds(dtp: float | None) -> float:
    """The tail odds that a limit on DTP allows: e to that power; to 1 where there is no such limit."""
    return math.exp(min(1.0 if dtp is None else dtp, LARGEST_LIMIT_NATS))


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
