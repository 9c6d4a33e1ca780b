"""Attacks with shadow models when every model of a table plays the target in turn: all targets at once.

Each function equals its attack played target by target, with all other models but the target's complement as shadow
models, up to rounding; it takes a few passes over the table where the loop takes one for each target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.membership import distance, frequency, likelihood_ratio, relative
from leakgauge.membership._others import OtherModels
from leakgauge.membership._signals import rising_signals, signals
from leakgauge.theory import bin_centres
from leakgauge.training import PredictionTable

_BLOCK = 8_000_000
"""Numbers in a temporary array, about."""


@dataclass(frozen=True)
class SharedTableGame:
    """Models of a table that play the target, each against all the others.

    Args:
        table: answers about the pool, none of them of a model that could not be trained.
        labels: the pool's classes or values ``[n]``.
        targets: int ``[t]``, the models that play the target.
        width: bin width.
        complements: int ``[t]``, for each target a model trained on exactly the other records, which plays no shadow;
            -1 for none.
    """

    table: PredictionTable
    labels: NDArray[np.generic]
    targets: NDArray[np.int64]
    width: float
    complements: NDArray[np.int64]

    def others(self, records: slice = slice(None)) -> OtherModels:
        """The shadow models of each target, for some of the records."""
        return OtherModels(self.table.members[:, records], self.targets, self.complements)

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


def lira(game: SharedTableGame) -> Floats:
    """`leakgauge.membership.likelihood_ratio.scores`, ``[t, n]``."""
    table = game.table
    found = signals(table.kind, table.answers, game.labels)
    return likelihood_ratio.everyone(found, table.members, game.targets, game.others())


def lira_offline(game: SharedTableGame) -> Floats:
    """`leakgauge.membership.likelihood_ratio.offline_scores`, ``[t, n]``."""
    table = game.table
    rising = rising_signals(table.kind, table.answers, game.labels)
    return likelihood_ratio.everyone_offline(rising, table.members, game.targets, game.others())


def rmia(game: SharedTableGame) -> Floats:
    """`leakgauge.membership.relative.scores`, ``[t, n]``."""
    own = relative.own_probabilities(game.table.log_probabilities, game.labels)
    return relative.everyone(own, game.targets, game.others())


def rmia_offline(game: SharedTableGame) -> Floats:
    """`leakgauge.membership.relative.offline_scores`, ``[t, n]``."""
    own = relative.own_probabilities(game.table.log_probabilities, game.labels)
    return relative.everyone_offline(own, game.targets, game.others())


def by_distance(game: SharedTableGame) -> Floats:
    """`leakgauge.membership.distance.scores`, ``[t, n]``."""
    n_models, _, k = game.table.answers.shape

    def score(answers: Floats, others: OtherModels) -> Floats:
        with_record, without = others.sums(answers)
        size = others.size[:, :, None]
        found = distance.scores(
            *(a.reshape(-1, k) for a in (answers[game.targets], with_record / size, without / size))
        )
        return found.reshape(others.size.shape)

    return game.by_records(score, n_models * k)


def by_frequency(game: SharedTableGame) -> Floats:
    """`leakgauge.membership.frequency.scores`, ``[t, n]``."""
    n_models, _, k = game.table.answers.shape
    n_bins = round(1 / game.width)

    def score(answers: Floats, others: OtherModels) -> Floats:
        # One counter for each record, class and bin.
        counter = np.rint(answers / game.width - 0.5).astype(np.int64)
        counter += n_bins * np.arange(counter[0].size).reshape(counter.shape[1:])
        own, complement = counter[others.targets], counter[others.complements]

        def in_own_bin(chosen: NDArray[np.bool_]) -> Floats:
            counts = np.bincount(counter[chosen].ravel(), minlength=n_bins * counter[0].size)
            return counts[own].astype(np.float64)

        counts = others.combined(in_own_bin, np.ones(own.shape), (complement == own).astype(np.float64))
        return frequency.scores_from_counts(*(c.reshape(-1, k) for c in counts)).reshape(others.size.shape)

    return game.by_records(score, k * max(n_models, n_bins))


def _blocks(n: int, n_numbers: int) -> Iterator[slice]:
    size = max(1, _BLOCK // n_numbers)
    return (slice(start, start + size) for start in range(0, n, size))
