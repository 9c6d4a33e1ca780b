"""Attacks with shadow models when every model of a table plays the target in turn: all targets at once.

An attack may bring a function of the whole game, which equals the attack played target by target up to rounding; what
it needs of the table it computes once, where the loop does so for each target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Members
from leakgauge.membership._others import OtherModels
from leakgauge.theory import bin_centres
from leakgauge.training import PredictionTable
from leakgauge.training.threads import side_by_side

_BLOCK = 250_000
"""Numbers in a temporary array, about: what a processor's cache holds."""

_PART = 4_000_000
"""Numbers for each record of each target that are held at once, about."""


@dataclass(frozen=True)
class SharedTableGame:
    """Models of a table that play the target, each against all the others but those opposed to it.

    Args:
        table: answers about the pool, none of them of a model that could not be trained.
        labels: the pool's classes or values ``[n]``.
        targets: int ``[t]``, the models that play the target.
        width: bin width.
        opposed: bool ``[t, models]``, which models play no shadow for each target besides itself.
    """

    table: PredictionTable
    labels: NDArray[np.generic]
    targets: NDArray[np.int64]
    width: float
    opposed: NDArray[np.bool_]

    @cached_property
    def members(self) -> Members:
        """Which records each model was trained on ``[models, n]``."""
        return self.table.members

    def others(self, records: slice = slice(None)) -> OtherModels:
        """The shadow models of each target, for some of the records."""
        return OtherModels(self.members[:, records], self.targets, self.opposed)

    def binned(self, records: slice) -> Floats:
        """Probabilities of all models about some of the records as bin centres, ``[models, records, k]``."""
        return bin_centres(np.exp(self.table.log_probabilities[:, records]), self.width)

    def by_records(self, find: Callable[[slice, OtherModels], Floats], n_numbers: int) -> Floats:
        """What is found about each record on its own, a block of records at a time.

        Args:
            find: from some of the records, and the shadow models of each target for them, to an array
                ``[..., records]``.
            n_numbers: numbers that it holds for each record.
        """
        blocks = _slices(len(self.labels), max(1, _BLOCK // n_numbers))
        found: Floats | None = None
        for block, some in zip(blocks, side_by_side(lambda one: find(one, self.others(one)), blocks), strict=True):
            if found is None:
                found = np.empty((*some.shape[:-1], len(self.labels)))
            found[..., block] = some
        self.table.let_go()
        assert found is not None  # there are records
        return found

    def by_targets(self, score: Callable[[SharedTableGame], Floats]) -> Floats:
        """Scores ``[t, n]`` of an attack that holds several numbers for each record, some targets at a time."""
        found = np.empty((len(self.targets), len(self.labels)))
        for part in _slices(len(self.targets), max(1, _PART // len(self.labels))):
            found[part] = score(replace(self, targets=self.targets[part], opposed=self.opposed[part]))
        return found


def _slices(n: int, size: int) -> list[slice]:
    return [slice(start, start + size) for start in range(0, n, size)]
