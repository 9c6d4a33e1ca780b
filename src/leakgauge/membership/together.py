"""Attacks with shadow models when every model of a table plays the target in turn: all targets at once.

An attack may bring a function of the whole game, which equals the attack played target by target up to rounding; what
it needs of the table it computes once, where the loop does so for each target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.membership._others import AllowedModels, OtherModels
from leakgauge.theory import bin_centres
from leakgauge.training import PredictionTable

_BLOCK = 8_000_000
"""Numbers in a temporary array, about."""


@dataclass(frozen=True)
class SharedTableGame:
    """Models of a table that play the target, each against all the others but those opposed to it.

    Args:
        table: answers about the pool, none of them of a model that could not be trained.
        labels: the pool's classes or values ``[n]``.
        targets: int ``[t]``, the models that play the target.
        width: bin width.
        complements: int ``[t]``, for each target a model trained on exactly the other records, which plays no shadow;
            -1 for none.
        opposed: bool ``[t, models]``, all models that play no shadow for each target, its complement among them.
    """

    table: PredictionTable
    labels: NDArray[np.generic]
    targets: NDArray[np.int64]
    width: float
    complements: NDArray[np.int64]
    opposed: NDArray[np.bool_]

    def others(self, records: slice = slice(None)) -> OtherModels:
        """The shadow models of each target, for some of the records."""
        members = self.table.members[:, records]
        if self.opposed.sum() > (self.complements >= 0).sum():
            return AllowedModels(members, self.targets, self.opposed)
        return OtherModels(members, self.targets, self.complements)

    def by_records(self, score: Callable[[Floats, OtherModels], Floats], n_numbers: int) -> Floats:
        """Scores ``[t, n]`` of an attack that looks at each record on its own, a block of records at a time.

        Args:
            score: from binned answers ``[models, records, k]`` to scores ``[t, records]``.
            n_numbers: numbers that it holds for each record.
        """
        found = np.empty((len(self.targets), self.table.answers.shape[1]))
        for block in _blocks(found.shape[1], n_numbers):
            answers = bin_centres(np.exp(self.table.log_probabilities[:, block]), self.width)
            found[:, block] = score(answers, self.others(block))
        return found


def _blocks(n: int, n_numbers: int) -> Iterator[slice]:
    size = max(1, _BLOCK // n_numbers)
    return (slice(start, start + size) for start in range(0, n, size))
