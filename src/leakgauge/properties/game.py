"""The game of property inference with poisoning: how often does the attacker name the right frequency?

The owner tosses a fair coin between two frequencies of the property and draws a training set accordingly. The attacker
plants records in it without seeing it, asks the trained model for labels, and names the coin. The attacker knows the
learning algorithm, the columns, and people like the owner's: not the training set, not the frequency.

Source: Chase et al. 2021, section IV.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.errors import ConfigError
from leakgauge.properties.inference import Attack, Prepared, prepare
from leakgauge.properties.parameters import Game
from leakgauge.properties.population import Floats, Indices, Population, Side
from leakgauge.properties.property import Flags
from leakgauge.properties.training_sets import Trainer
from leakgauge.statistics import Estimate, advantage_of_decisions

if TYPE_CHECKING:
    from leakgauge.training import Learner
    from leakgauge.training.chunks import Workers

N_TARGETS = 100


@dataclass(frozen=True, eq=False)
class Played:
    """How an attack fared against target models, half of them of each frequency.

    Args:
        game: the parameters.
        attack: what the attacker had prepared; all targets were trained with its planted records.
        scores: what it made of each target, above 0 for `t1`, ``[targets]``.
        is_t1: the truth, bool ``[targets]``.
        win_rate: share of targets that it named rightly; 0.5 is guessing. The interval is about targets, given what
            the attacker had drawn and trained.
        advantage: `2 win_rate - 1`.
    """

    game: Game
    attack: Prepared
    scores: Floats
    is_t1: Flags
    win_rate: Estimate
    advantage: Estimate


def play(
    learner: Learner,
    population: Population,
    game: Game,
    attack: Attack | None = None,
    *,
    n_targets: int = N_TARGETS,
    confidence: float = 0.95,
    seed: int = 0,
    run: Path | None = None,
    workers: Workers = 1,
) -> Played:
    """Prepare one attack and carry it out against many target models.

    Args:
        learner: trains targets, and the attacker's models too.
        population: whose records are whose.
        game: the parameters.
        attack: how it is done; by default as published.
        n_targets: target models for each frequency, at least 1.
        confidence: of the intervals, in (0, 1).
        seed: drives every random choice.
        run: folder that keeps finished chunks.
        workers: processes, or the address of a Dask scheduler.

    Raises:
        ConfigError: a parameter is out of range.
        DataError: there are too few records.
        ModelError: a model could not be trained, or does not answer what the attack asks.
    """
    sets, is_t1 = target_sets(population.owner, game, n_targets, seed)
    prepared = prepare(learner, population.attacker, game, attack or Attack(), seed=seed, run=run, workers=workers)
    trainer = Trainer(learner, population.owner, prepared.planted.records, workers, run)
    told = trainer.responses(sets, prepared.features, kind=prepared.attack.answers, seed=target_seed(seed))
    return judged(game, prepared, prepared.scores(told), is_t1, confidence)


def target_sets(owner: Side, game: Game, n_targets: int, seed: int) -> tuple[Indices, Flags]:
    """The clean part of the targets' training sets, int ``[targets, n_clean]``, and which are of `t1`: every second.

    Raises:
        ConfigError: there are no targets.
        DataError: the owner has too few records.
    """
    if n_targets < 1:
        raise ConfigError(f"n_targets must be at least 1, got {n_targets}; an accuracy needs models to count.")
    is_t1 = np.arange(2 * n_targets) % 2 == 1
    rng = np.random.default_rng([seed, 1])
    return owner.draw_sets(game.n_clean, np.where(is_t1, game.t1, game.t0), rng), is_t1


def target_seed(seed: int) -> int:
    """The seed of the target models' learner."""
    return int(np.random.default_rng([seed, 2]).integers(2**32))


def judged(game: Game, attack: Prepared, scores: Floats, is_t1: Flags, confidence: float = 0.95) -> Played:
    """Count how often the scores have the right sign."""
    advantage = advantage_of_decisions(scores[is_t1] > 0, scores[~is_t1] > 0, confidence=confidence)
    rate = Estimate(
        (1 + advantage.value) / 2,
        (1 + advantage.low) / 2,
        (1 + advantage.high) / 2,
        confidence,
        advantage.method,
        advantage.n,
    )
    return Played(game, attack, scores, is_t1, rate, advantage)
