"""What the owner of the training set can know: how many poisoned records the attack takes, and what they do to use."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leakgauge.errors import ConfigError, DataError
from leakgauge.models import AnswerKind
from leakgauge.properties.game import N_TARGETS, CleanTest, confront, target_sets
from leakgauge.properties.inference import PropertyAttack, prepare
from leakgauge.properties.parameters import GameParameters
from leakgauge.properties.population import Sides
from leakgauge.properties.training_sets import Trainer
from leakgauge.records import Records
from leakgauge.statistics import Estimate
from leakgauge.training import HERE, Execution, Learner


@dataclass(frozen=True)
class Power:
    """The attack at one poison share.

    Args:
        poison: the share.
        n_poisoned: how many records that is.
        win_rate: how often the attacker names the right frequency; 0.5 is guessing.
        precision: of label 1 on clean records, mean over target models; ``None`` where fewer than two of them ever
            answer 1.
        recall: likewise.
        n_never: target models that never answer 1, which have no precision and are left out of its mean.
    """

    poison: float
    n_poisoned: int
    win_rate: Estimate
    precision: Estimate | None
    recall: Estimate
    n_never: int


def power_curve(
    learner: Learner,
    population: Sides,
    game: GameParameters,
    poisons: Sequence[float],
    test: Records,
    attack: PropertyAttack | None = None,
    *,
    n_targets: int = N_TARGETS,
    confidence: float = 0.95,
    seed: int = 0,
    execution: Execution = HERE,
) -> tuple[Power, ...]:
    """Play the game at several poison shares, and see what planting does to the model's use.

    Args:
        learner: the owner's algorithm.
        population: whose records are whose.
        game: the parameters; its own poison share is not used.
        poisons: the shares, each in [0, 1).
        test: clean records on which precision and recall are measured, on neither side.
        attack: how it is done; it must ask for labels.
        n_targets: target models for each frequency, at least 1.
        confidence: of each interval, in (0, 1).
        seed: drives every random choice.
        execution: where and how models are trained.

    Raises:
        ConfigError: a parameter is out of range, or the attack asks for more than labels.
        DataError: there are too few records, or no test record has label 1.
        ModelError: a model could not be trained.
    """
    attack = attack or PropertyAttack()
    if attack.answers is not AnswerKind.LABELS:
        raise ConfigError("a power curve is for attacks that query labels, from which precision and recall follow.")
    ones = np.asarray(test.labels == population.owner.positive)
    if not ones.any():
        raise DataError("no test record has label 1, so there is no recall; give more test records.")
    points = []
    for poison in poisons:
        played = dataclasses.replace(game, poison=poison)
        sets, is_t1 = target_sets(population.owner, played, n_targets, seed)
        prepared = prepare(learner, population.attacker, played, attack, seed=seed, execution=execution)
        trainer = Trainer(learner, population.owner, prepared.poisoned.records, execution)
        measured = CleanTest(test.features, ones, np.ones((len(sets), len(test))))
        found = confront(trainer, played, prepared, sets, is_t1, measured, confidence=confidence, seed=seed)
        use = found.use
        assert use is not None
        assert use.recall is not None  # some record has label 1
        points.append(Power(poison, played.n_poisoned, found.win_rate, use.precision, use.recall, use.n_never))
    return tuple(points)
