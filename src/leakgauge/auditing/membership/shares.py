"""Whose number it is: candidates among whom a number that a model holds is looked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats

FURTHEST = 64
"""Candidates on either side of a number among whom its neighbours are looked for: half of them are members."""


def shares(
    values: NDArray[np.floating[Any]],
    numbers: Iterable[float],
    tolerance: float = 0.0,
    fractions: Sequence[float] = (0.5,),
) -> Floats:
    """How sure it is of each candidate that a number is its own, or halfway between its own and the next one ``[n]``.

    Of all pairs of candidates between which one is halfway those with fewer others in between are the likelier: each of
    them would have been in the way, had it been a training record.

    Args:
        values: of the candidates ``[n]``; NaN for none.
        numbers: that were learned from some of these.
        tolerance: of rounding.
        fractions: of the way to the next one where a number may lie.
    """
    known = ~np.isnan(values)
    different, which, times = np.unique(values[known], return_inverse=True, return_counts=True)
    found, of_value = np.zeros(len(values)), np.zeros(len(different))
    for number in numbers:
        middle = int(np.searchsorted(different, number, "right"))
        near = np.arange(max(0, middle - 1), min(len(different), middle + 1))
        own = near[np.abs(different[near] - number) <= tolerance]
        if len(own):
            of_value[own] = 1 / times[own]
            continue
        low, high = different[:middle][::-1][:FURTHEST], different[middle:][:FURTHEST]
        lies, lower, higher = (
            np.zeros((len(low), len(high)), dtype=bool),
            low.astype(np.float64),
            high.astype(np.float64),
        )
        for share in fractions:
            lies |= np.abs(lower[:, None] * (1 - share) + higher * share - number) <= tolerance
        below, above = np.nonzero(lies)
        if not len(below):
            continue
        held_below, held_above = times[:middle][::-1][: len(low)], times[middle:][: len(high)]
        between = (np.cumsum(held_below) - held_below)[below] + (np.cumsum(held_above) - held_above)[above]
        chances = 0.5 ** (between - between.min())
        chances /= chances.sum()
        for places, held in ((middle - 1 - below, held_below[below]), (middle + above, held_above[above])):
            np.maximum.at(of_value, places, chances / held)
    found[known] = of_value[which]
    return found
