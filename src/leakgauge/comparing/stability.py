"""How exposed single records are to an attack, and whether that is the same with other training sets and seeds."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from leakgauge.arrays import Flags, Floats
from leakgauge.statistics import Estimate, clopper_pearson, spearman

TOP_SHARE = 0.01
"""The share of the records that are called the most exposed."""


def exposure(scores: Floats, members: NDArray[np.bool_]) -> Floats:
    """AUC of each record: how often its score in a game with it in is above that in one with it out, ties half.

    Args:
        scores: ``[games, n]``; higher means member.
        members: bool ``[games, n]``; each record in once and out once at least.

    Returns:
        In [0, 1], 0.5 is chance level ``[n]``.

    >>> scores, members = np.array([[2.0, 1.0], [1.0, 1.0]]), np.array([[True, False], [False, True]])
    >>> exposure(scores, members).tolist()
    [1.0, 0.5]
    """
    n_in = members.sum(axis=0)
    n_out = len(members) - n_in
    ranks = np.where(members, rankdata(scores, axis=0), 0.0).sum(axis=0)
    return np.asarray((ranks - n_in * (n_in + 1) / 2) / (n_in * n_out))


def rank_correlation(one: Floats, other: Floats, *, confidence: float) -> Estimate | None:
    """Spearman's coefficient of two exposures; ``None`` where either is constant or there are fewer than 4 records."""
    if len(one) < 4 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return spearman(one, other, confidence=confidence).estimate


def top_overlap(one: Floats, other: Floats, *, confidence: float) -> Estimate:
    """Share of the most exposed records by one measure that are so by another; chance level is ``TOP_SHARE``.

    Of records tied at the edge as many as are missing count, drawn at random: the share is the expectation over these
    draws. The interval is that of Clopper and Pearson for the number of records in common, of the whole number below at
    its lower end and of that above at its upper end.

    >>> falling = np.arange(100.0)[::-1]
    >>> print(top_overlap(falling, falling, confidence=0.95))
    1 [0.025, 1]
    >>> round(top_overlap(falling, np.zeros(100), confidence=0.95).value, 6)
    0.01
    """
    n = n_top(len(one))
    chances = ((p * q, int((a & b).sum())) for a, p in _top(one, n) for b, q in _top(other, n))
    common = sum((chance * count for chance, count in chances), Fraction(0))
    down, up = (clopper_pearson(whole, n, confidence=confidence) for whole in (math.floor(common), math.ceil(common)))
    return replace(down, value=float(common / n), high=up.high)


def n_top(n: int) -> int:
    """How many of so many records are the most exposed: 1 % of them, at least one."""
    return max(1, round(TOP_SHARE * n))


def _top(values: Floats, n: int) -> tuple[tuple[Flags, Fraction], ...]:
    """The records above the edge of the n largest and those at it ``[records]``, and their chances to be of these."""
    edge = np.partition(values, -n)[-n]
    above, tied = values > edge, values == edge
    return (above, Fraction(1)), (tied, Fraction(int(n - above.sum()), int(tied.sum())))
