"""The game of property inference with poisoning: how often does the attacker name the right frequency?

The owner tosses a fair coin between two frequencies of the property and draws a training set accordingly. The attacker
plants records in it without seeing it, asks the trained model for labels, and names the coin. The attacker knows the
learning algorithm, the columns, and people like the owner's: not the training set, not the frequency.

Source: Chase et al. 2021, section IV.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.checking import whole
from leakgauge.errors import ConfigError
from leakgauge.escaping import shapes
from leakgauge.models import AnswerKind
from leakgauge.properties.inference import PreparedAttack, PropertyAttack, prepare
from leakgauge.properties.parameters import GameParameters
from leakgauge.properties.population import Side, Sides
from leakgauge.properties.training_sets import Trainer
from leakgauge.records import require_one_row_each
from leakgauge.statistics import Estimate, advantage_of_decisions, mean
from leakgauge.streams import GameStream
from leakgauge.training import HERE, Execution

if TYPE_CHECKING:
    from leakgauge.training import Learner

N_TARGETS = 100


@dataclass(frozen=True)
class Use:
    """How well target models do on clean records that they were not trained on: what their owner may notice.

    The intervals are about models, given the records.

    Args:
        precision: of label 1, mean over models; ``None`` where fewer than two of them ever answer 1.
        recall: likewise; ``None`` where fewer than two of them are asked about a record with label 1.
        n_never: models that never answer 1, which have no precision and are left out of its mean.
    """

    precision: Estimate | None
    recall: Estimate | None
    n_never: int


@dataclass(frozen=True, eq=False)
class Played:
    """How an attack fared against target models, half of them of each frequency.

    Args:
        game: the parameters.
        attack: what the attacker had prepared; all targets were trained with its poisoned records.
        scores: what it made of each target, above 0 for `t1`, ``[targets]``.
        is_t1: the truth, bool ``[targets]``.
        win_rate: share of targets that it named rightly; 0.5 is guessing. The interval is about targets, given what
            the attacker had drawn and trained.
        advantage: `2 win_rate - 1`.
        use: precision and recall of the targets; ``None`` where they were not asked for.
    """

    game: GameParameters
    attack: PreparedAttack
    scores: Floats
    is_t1: Flags
    win_rate: Estimate
    advantage: Estimate
    use: Use | None = None

    __repr__ = shapes


@dataclass(frozen=True, eq=False)
class CleanTest:
    """Clean records on which target models are measured.

    Args:
        features: encoded ``[n, d]``.
        ones: whether each has label 1, bool ``[n]``.
        weights: of each record for each model, ``[models, n]``: 0 where it is in the training set.
    """

    features: Floats
    ones: Flags
    weights: Floats

    def use(self, told: Floats, confidence: float) -> Use:
        """Precision and recall over models from the labels that they answered ``[models, n]``."""
        said = told > 0
        right, all_said, all_ones = (
            (self.weights * chosen).sum(axis=1) for chosen in (said & self.ones, said, self.ones)
        )
        with np.errstate(invalid="ignore"):
            precision, recall = right / all_said, right / all_ones
        return Use(_mean(precision, confidence), _mean(recall, confidence), int((all_said == 0).sum()))


def left_out(owner: Side, sets: Indices, n: int, seed: int) -> CleanTest:
    """The owner's records that a model was not trained on, weighted so that the property is as frequent as among all.

    Without the weights the sets of either frequency would leave different people.

    Args:
        owner: whose records they are.
        sets: rows of the models' training sets, int ``[models, size]``.
        n: records to look at, half of them with the property as far as there are so many.
        seed: draws them: the same ones whatever the sets.
    """
    rng = GameStream.CLEAN_TEST.generator(seed)
    chosen = [owner.draw(min((n + 1) // 2, len(owner.rows(has))), has, rng) for has in (True, False)]
    rows = np.concatenate(chosen)
    out = np.ones((len(sets), len(owner.records)), dtype=bool)
    np.put_along_axis(out, sets, False, axis=1)
    shares = (owner.has.mean(), 1 - owner.has.mean())
    with np.errstate(invalid="ignore"):  # of a model that was trained on all of a kind nothing is known
        weights = [
            share * out[:, own] / out[:, own].sum(axis=1, keepdims=True)
            for own, share in zip(chosen, shares, strict=True)
        ]
    return CleanTest(owner.records.features[rows], owner.labels[rows], np.concatenate(weights, axis=1))


def _mean(values: Floats, confidence: float) -> Estimate | None:
    """Of shares that are known; ``None`` where fewer than two are."""
    known = np.minimum(values[~np.isnan(values)], 1.0)  # sums of the same weights may differ in the last digit
    return mean(known, confidence=confidence, lower=0.0, upper=1.0) if len(known) > 1 else None


def play(
    learner: Learner,
    population: Sides,
    game: GameParameters,
    attack: PropertyAttack | None = None,
    *,
    n_targets: int = N_TARGETS,
    n_test: int = 0,
    confidence: float = 0.95,
    seed: int = 0,
    execution: Execution = HERE,
) -> Played:
    """Prepare one attack and carry it out against many target models.

    Args:
        learner: trains targets, and the attacker's models too.
        population: whose records are whose.
        game: the parameters.
        attack: how it is done; by default as published.
        n_targets: target models for each frequency, at least 1.
        n_test: of the owner's records, how many are looked at to find the precision and recall of targets, each on
            those that it was not trained on; 0 for none. The attack must ask for labels, from which these follow.
        confidence: of each interval, in (0, 1).
        seed: drives every random choice.
        execution: where and how models are trained.

    Raises:
        ConfigError: a parameter is out of range.
        DataError: there are too few records.
        ModelError: a model could not be trained, or does not answer what the attack asks.
    """
    require_one_row_each("property inference", population.owner.records, population.attacker.records)
    attack = attack or PropertyAttack()
    whole(0, hint="0 measures neither precision nor recall")("n_test", n_test)
    if n_test and attack.answers is not AnswerKind.LABELS:
        raise ConfigError("n_test is for attacks that query labels, from which precision and recall follow.")
    sets, is_t1 = target_sets(population.owner, game, n_targets, seed)
    prepared = prepare(learner, population.attacker, game, attack, seed=seed, execution=execution)
    trainer = Trainer(learner, population.owner, prepared.poisoned.records, execution)
    test = left_out(population.owner, sets, n_test, seed) if n_test else None
    return confront(trainer, game, prepared, sets, is_t1, test, confidence=confidence, seed=seed)


def confront(
    trainer: Trainer,
    game: GameParameters,
    attack: PreparedAttack,
    sets: Indices,
    is_t1: Flags,
    test: CleanTest | None = None,
    *,
    confidence: float = 0.95,
    seed: int,
) -> Played:
    """Train the targets, ask them, and count how often the attack is right.

    Args:
        trainer: trains on the owner's records and the poisoned ones.
        game: the parameters.
        attack: as it was prepared.
        sets: the clean part of the targets' training sets, int ``[targets, n_clean]``.
        is_t1: the truth, bool ``[targets]``.
        test: what they are measured on besides.
        confidence: of each interval, in (0, 1).
        seed: as it was for the sets.
    """
    asked = attack.features if test is None else np.concatenate([attack.features, test.features])
    told = trainer.responses(sets, asked, kind=attack.attack.answers, seed=target_seed(seed))
    split = len(attack.features)
    found = judged(game, attack, attack.scores(told[:, :split]), is_t1, confidence)
    return found if test is None else replace(found, use=test.use(told[:, split:], confidence))


def target_sets(owner: Side, game: GameParameters, n_targets: int, seed: int) -> tuple[Indices, Flags]:
    """The clean part of the targets' training sets, int ``[targets, n_clean]``, and which are of `t1`: every second.

    Raises:
        ConfigError: there are no targets.
        DataError: the owner has too few records.
    """
    whole(1, hint="an accuracy needs models to count")("n_targets", n_targets)
    is_t1 = np.arange(2 * n_targets) % 2 == 1
    rng = GameStream.TARGET_SETS.generator(seed)
    return owner.draw_sets(game.n_clean, np.where(is_t1, game.t1, game.t0), rng), is_t1


def target_seed(seed: int) -> int:
    """The seed of the target models' learner."""
    return int(GameStream.TARGET_LEARNER.generator(seed).integers(2**32))


def judged(
    game: GameParameters, attack: PreparedAttack, scores: Floats, is_t1: Flags, confidence: float = 0.95
) -> Played:
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
