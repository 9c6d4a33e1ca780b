"""Is the attack possible at all? What the theorem says before anything is poisoned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.models import AnswerKind
from leakgauge.properties.parameters import GameParameters
from leakgauge.properties.poisoning import planted_label, plants_with_property
from leakgauge.properties.population import Side
from leakgauge.properties.training_sets import Trainer
from leakgauge.streams import GameStream
from leakgauge.theory import Prospect, Variant, prospect
from leakgauge.training import HERE, Execution

if TYPE_CHECKING:
    from leakgauge.training import Learner

N_PROSPECT_MODELS = 50
N_PROSPECT_POINTS = 1000


def outlook(
    learner: Learner,
    side: Side,
    game: GameParameters,
    poisons: Sequence[float],
    *,
    variant: Variant | None = None,
    n_models: int = N_PROSPECT_MODELS,
    n_points: int = N_PROSPECT_POINTS,
    seed: int = 0,
    execution: Execution = HERE,
) -> tuple[Prospect, ...]:
    """How many points are uncertain in the way that poisoned records can turn, by clean models.

    What takes the place of `Pr[Y = 1 | x]` is the mean probability of clean models: exact where the learner is
    calibrated. `Prospect.wins_with` then says what a given excess risk means; where it promises nothing, play the game.

    Args:
        learner: the owner's algorithm; its models should answer probabilities.
        side: whose records are looked at; the owner may look at its own.
        game: the parameters; its own poison share is not used.
        poisons: the shares that are asked about, each in [0, 1). Clean models know none of them, and are trained once.
        variant: what would be poisoned; by default what Algorithm 1 would.
        n_models: clean models, trained on halves with and without the property.
        n_points: records to look at, as far as there are so many like the poisoned ones.
        seed: drives every random choice.
        execution: where and how models are trained.

    Raises:
        DataError: there are too few records for a training set.
        ModelError: a model could not be trained.

    Source: Chase et al. 2021, Theorem 9.
    """
    rng = GameStream.OUTLOOK.generator(seed)
    with_property = plants_with_property(game.t0, game.t1) if variant is None else variant.with_property
    like_planted = side.rows(with_property)
    rows = side.draw(min(n_points, len(like_planted)), with_property, rng)
    variant = variant or Variant(with_property, planted_label(side.labels[like_planted]))
    trainer, sets = Trainer(learner, side, side.records[:0], execution), side.draw_halves(game.n, n_models, rng)
    odds = trainer.responses(
        sets, side.records.features[rows], kind=AnswerKind.PROBABILITIES, seed=seed, poisoned=False
    )
    certainties = (1 - 2 * (1 / (1 + np.exp(-odds))).mean(axis=0)).tolist()
    return tuple(prospect(certainties, game.t0, game.t1, poison, variant=variant) for poison in poisons)
