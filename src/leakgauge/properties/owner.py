"""What the owner of the training set can know and do: how many planted records it takes, and what may help against it.

A remedy is part of the algorithm that trains, so it is a learner: the attacker, who knows the algorithm, trains its
shadow models with it too. What a remedy is worth is the game played with it, beside the game without.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.checking import number
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.models import AnswerKind
from leakgauge.properties.game import N_TARGETS, CleanTest, confront, target_sets
from leakgauge.properties.inference import Attack, prepare
from leakgauge.properties.parameters import Game
from leakgauge.properties.population import Population
from leakgauge.properties.training_sets import Curating, Trainer
from leakgauge.records import Records
from leakgauge.statistics import Estimate
from leakgauge.training import Learner
from leakgauge.training.fingerprints import fingerprint
from leakgauge.training.learners import identity

if TYPE_CHECKING:
    from leakgauge.training.chunks import Workers


@dataclass(frozen=True)
class Power:
    """The attack at one poison share.

    Args:
        poison: the share.
        n_planted: how many records that is.
        win_rate: how often the attacker names the right frequency; 0.5 is guessing.
        precision: of label 1 on clean records, mean over target models; ``None`` where fewer than two of them ever
            answer 1.
        recall: likewise.
        n_never: target models that never answer 1, which have no precision and are left out of its mean.
    """

    poison: float
    n_planted: int
    win_rate: Estimate
    precision: Estimate | None
    recall: Estimate
    n_never: int


def power_curve(
    learner: Learner,
    population: Population,
    game: Game,
    poisons: Sequence[float],
    test: Records,
    attack: Attack | None = None,
    *,
    n_targets: int = N_TARGETS,
    confidence: float = 0.95,
    seed: int = 0,
    run: Path | None = None,
    workers: Workers = 1,
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
        run: folder that keeps finished chunks.
        workers: processes, or the address of a Dask scheduler.

    Raises:
        ConfigError: a parameter is out of range, or the attack asks for more than labels.
        DataError: there are too few records, or no test record has label 1.
        ModelError: a model could not be trained.
    """
    attack = attack or Attack()
    if attack.answers is not AnswerKind.LABELS:
        raise ConfigError("a power curve is for attacks that query labels, from which precision and recall follow.")
    ones = np.asarray(test.labels == population.owner.positive)
    if not ones.any():
        raise DataError("no test record has label 1, so there is no recall; give more test records.")
    points = []
    for poison in poisons:
        played = dataclasses.replace(game, poison=poison)
        sets, is_t1 = target_sets(population.owner, played, n_targets, seed)
        prepared = prepare(learner, population.attacker, played, attack, seed=seed, run=run, workers=workers)
        trainer = Trainer(learner, population.owner, prepared.planted.records, workers, run)
        measured = CleanTest(test.features, ones, np.ones((len(sets), len(test))))
        found = confront(trainer, played, prepared, sets, is_t1, measured, confidence=confidence, seed=seed)
        use = found.use
        assert use is not None
        assert use.recall is not None  # some record has label 1
        points.append(Power(poison, played.n_planted, found.win_rate, use.precision, use.recall, use.n_never))
    return tuple(points)


def fewest_planted(curve: Sequence[Power], win_rate: float = 0.9) -> Power | None:
    """The smallest poison share of a curve with at least this win rate; ``None`` if there is none.

    ``None`` says nothing about shares that the curve does not have.

    Args:
        curve: from :func:`power_curve`.
        win_rate: in (0.5, 1].
    """
    enough = [point for point in curve if point.win_rate.value >= win_rate]
    return min(enough, key=lambda point: point.n_planted, default=None)


class WithoutInfluential(Curating):
    """Train after the most influential records are left out, as planted ones may be.

    Args:
        learner: what then trains.
        influence: from a learner and its training records to how far each moves the model, ``[n]``; higher means
            further.
        share: of the training records that is left out, in [0, 1).

    Raises:
        ConfigError: the share is out of range.
    """

    def __init__(self, learner: Learner, influence: Callable[[Learner, Records], Floats], share: float) -> None:
        self.learner = learner
        self.influence = influence
        self.share: float = number(least=0, below=1)("the share of records to leave out", share)

    @property
    def name(self) -> str:
        """The learner, and what is left out."""
        return f"{self.learner.name} without the {self.share:.1%} most influential records"

    @property
    def randomised(self) -> bool:
        """Whether the learner is."""
        return self.learner.randomised

    def curated(self, records: Records, *, seed: int | None) -> tuple[Indices, Indices]:
        """The least influential records, of equals the earlier ones, as they are labelled.

        Raises:
            ModelError: there is not one number for each record, or one is NaN.
        """
        values = np.asarray(self.influence(self.learner, records), dtype=np.float64)
        if values.shape != (len(records),) or np.isnan(values).any():
            raise ModelError(
                f"influence must give a number for each of {len(records)} records, got shape {values.shape}"
                f"{' with NaN' if np.isnan(values).any() else ''}."
            )
        n_kept = len(records) - round(self.share * len(records))
        kept = np.sort(np.argsort(values, kind="stable")[:n_kept])
        return kept, records.labels[kept].astype(np.int64)

    def fingerprint(self) -> str:
        """The learner's, the share, and the function's code."""
        return fingerprint("without-influential", self.share, self.influence, identity(self.learner))


class NoisyLabels(Curating):
    """Train after some labels are replaced by random ones.

    Args:
        learner: what then trains.
        rate: the probability that a label is drawn anew, uniformly from all classes, in [0, 1].

    Raises:
        ConfigError: the rate is out of range.
    """

    def __init__(self, learner: Learner, rate: float) -> None:
        self.learner = learner
        self.rate: float = number(least=0, most=1)("the rate of label noise", rate)

    @property
    def name(self) -> str:
        """The learner, and how noisy its labels are."""
        return f"{self.learner.name} with {self.rate:.1%} random labels"

    @property
    def randomised(self) -> bool:
        """Whether there is noise, or the learner is randomised."""
        return self.rate > 0 or self.learner.randomised

    def curated(self, records: Records, *, seed: int | None) -> tuple[Indices, Indices]:
        """All records, and labels with noise drawn from the seed, or by the operating system where it is ``None``."""
        rng = np.random.default_rng(None if seed is None else [seed, 4])
        fresh = rng.integers(0, len(records.schema.classes), len(records))
        labels = np.where(rng.random(len(records)) < self.rate, fresh, records.labels)
        return np.arange(len(records)), labels.astype(np.int64)

    def fingerprint(self) -> str:
        """The learner's, and the rate."""
        return fingerprint("noisy-labels", self.rate, identity(self.learner))
