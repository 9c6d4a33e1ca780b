"""The attack: what to plant, what to ask, and Algorithm 3, a linear rule learned from shadow models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.checking import check_fields, flag, instance, number, one_of, optional, whole
from leakgauge.errors import ConfigError, DataError
from leakgauge.escaping import shapes
from leakgauge.models import AnswerKind, Model
from leakgauge.properties.parameters import GameParameters
from leakgauge.properties.poisoning import PoisonedRecords, plant
from leakgauge.properties.population import Side
from leakgauge.properties.queries import FixedBand, QueryBand, TheoreticalBand, Uncertain, uncertain
from leakgauge.properties.training_sets import Trainer, ask
from leakgauge.streams import GameStream
from leakgauge.theory import Variant
from leakgauge.training import HERE, Execution

if TYPE_CHECKING:
    from leakgauge.training import Learner

DRAWS_PER_QUERY = 200


@dataclass(frozen=True)
class PropertyAttack:
    """How an attacker goes about it; by default as published.

    Args:
        n_ensemble: clean models that say which points are uncertain.
        n_queries: uncertain points to ask about; those of the poisoned records are asked besides.
        n_shadow: shadow models for each frequency, at least 1.
        band: which points are uncertain enough.
        answers: labels, or for the attacker who is told them probabilities.
        variant: what is poisoned; by default chosen by Algorithm 1.
        paper_sizes: whether shadow models are trained on n clean records and the poisoned ones besides, as printed,
            where targets have n records in all.
        penalty: weight of `|w|^2 / 2` beside the mean loss of the linear rule, above 0; by default
            `2 / sqrt(n_shadow)`.
        most_drawn: how many points are looked at; by default 200 for each query.
        most_records: records of the attacker's own that its models are trained on at most, half of them with the
            property where there are so many; poison and points are drawn from all.

    Raises:
        ConfigError: a number is out of range.

    Source: Chase et al. 2021, section VI; the first two numbers are those for Census.
    """

    n_ensemble: int = 1000
    n_queries: int = 1000
    n_shadow: int = 500
    band: QueryBand = field(default_factory=FixedBand)
    answers: AnswerKind = AnswerKind.LABELS
    variant: Variant | None = None
    paper_sizes: bool = False
    penalty: float | None = None
    most_drawn: int | None = None
    most_records: int = 20_000

    def __post_init__(self) -> None:
        check_fields(
            self,
            n_ensemble=whole(1),
            n_queries=whole(0),
            n_shadow=whole(1),
            band=instance(FixedBand, TheoreticalBand),
            answers=one_of(AnswerKind),
            variant=optional(instance(Variant)),
            paper_sizes=flag,
            penalty=optional(number(above=0, hint="it weighs |w|^2 / 2 against the mean loss")),
            most_drawn=optional(whole(0)),
            most_records=whole(2),
        )
        if self.answers is AnswerKind.VALUES:
            raise ConfigError(
                "the attack needs labels or probabilities; a model that predicts numbers cannot be attacked."
            )


@dataclass(frozen=True, eq=False)
class LinearRule:
    """A linear classifier of vectors; its score is above 0 where it says `t1`.

    Args:
        weights: w ``[q]``.
        intercept: b.
        centre: subtracted from vectors first ``[q]``.
        scale: what they are then divided by ``[q]``.
    """

    weights: Floats
    intercept: float
    centre: Floats
    scale: Floats

    __repr__ = shapes

    @classmethod
    def fitted(cls, vectors: Floats, is_t1: Flags, penalty: float, *, standardise: bool = False) -> LinearRule:
        """Minimise the mean logistic loss plus `penalty |w|^2 / 2`.

        Args:
            vectors: ``[models, q]``.
            is_t1: bool ``[models]``, some of either kind.
            penalty: above 0.
            standardise: whether each coordinate is brought to mean 0 and deviation 1 first.
        """
        from sklearn.linear_model import LogisticRegression

        centre, scale = np.zeros(vectors.shape[1]), np.ones(vectors.shape[1])
        if standardise:
            deviation = vectors.std(axis=0)
            centre, scale = vectors.mean(axis=0), np.where(deviation > 0, deviation, 1.0)
        solver = LogisticRegression(C=1 / (len(vectors) * penalty), tol=1e-6, max_iter=10_000)
        fit = solver.fit((vectors - centre) / scale, is_t1)
        return cls(fit.coef_[0], float(fit.intercept_[0]), centre, scale)

    def scores(self, vectors: Floats) -> Floats:
        """The score of each vector ``[..., q]``."""
        scores: Floats = (vectors - self.centre) / self.scale @ self.weights + self.intercept
        return scores


@dataclass(frozen=True, eq=False)
class PreparedAttack:
    """All that an attacker has made before it meets a model.

    Args:
        attack: how it was done.
        poisoned: the records that must have been in the training set.
        features: what to ask, encoded ``[q, d]``: uncertain points, then the points of the poisoned records.
        n_uncertain: how many of these are uncertain points; with none the attack has but the poisoned ones.
        n_drawn: how many points were looked at to find them.
        rule: what to make of the answers.
        positive: code of the class that counts as label 1.
    """

    attack: PropertyAttack
    poisoned: PoisonedRecords
    features: Floats
    n_uncertain: int
    n_drawn: int
    rule: LinearRule
    positive: int

    __repr__ = shapes

    def scores(self, responses: Floats) -> Floats:
        """What is made of responses ``[..., q]``: above 0 for `t1`."""
        return self.rule.scores(responses)

    def says_t1(self, model: Model) -> bool:
        """Ask a model and name the coin.

        Args:
            model: label access is all that an attack on labels uses.

        Raises:
            ModelError: it does not answer what the attack asks.
        """
        return bool(self.scores(ask(model, self.features, self.positive, self.attack.answers)) > 0)


def prepare(
    learner: Learner,
    attacker: Side,
    game: GameParameters,
    attack: PropertyAttack | None = None,
    *,
    seed: int = 0,
    execution: Execution = HERE,
) -> PreparedAttack:
    """Choose what to plant and what to ask, and learn what to make of the answers.

    Args:
        learner: the owner's algorithm.
        attacker: the attacker's own records; no other is looked at.
        game: the parameters.
        attack: how it is done; by default as published.
        seed: drives every random choice.
        execution: where and how models are trained.

    Raises:
        DataError: the attacker has too few records.
        ModelError: a model could not be trained.
    """
    attack = attack or PropertyAttack()
    rng = GameStream.ATTACKER.generator(seed)
    poisoned = plant(attacker, game.n_poisoned, game.t0, game.t1, variant=attack.variant, rng=rng)
    own = attacker.some(attack.most_records, rng)
    trainer = Trainer(learner, own, poisoned.records, execution)
    is_t1 = np.arange(2 * attack.n_shadow) % 2 == 1
    sets = shadow_sets(own, game, attack, np.where(is_t1, game.t1, game.t0), rng)
    points = find_queries(trainer, attacker, game, attack, rng)
    features = asked(attacker, points, poisoned)
    shadow_seed = int(rng.integers(2**32))
    responses = trainer.responses(sets, features, kind=attack.answers, seed=shadow_seed)
    penalty = 2 / np.sqrt(attack.n_shadow) if attack.penalty is None else attack.penalty
    rule = LinearRule.fitted(responses, is_t1, penalty, standardise=attack.answers is AnswerKind.PROBABILITIES)
    return PreparedAttack(attack, poisoned, features, len(points.rows), points.n_drawn, rule, attacker.positive)


def asked(attacker: Side, points: Uncertain, poisoned: PoisonedRecords) -> Floats:
    """What to ask, ``[q, d]``: the uncertain points, then those of the poisoned records.

    Raises:
        DataError: there is nothing.
    """
    if not len(points.rows) and not len(poisoned.records):
        raise DataError(
            f"no uncertain point was found among {points.n_drawn}, and no record is poisoned, so there is nothing to "
            "query; look at more points, or widen the band."
        )
    return np.concatenate([attacker.records.features[points.rows], poisoned.records.features])


def shadow_sets(
    attacker: Side, game: GameParameters, attack: PropertyAttack, frequencies: Floats, rng: np.random.Generator
) -> Indices:
    """The clean part of the shadow models' training sets, int ``[models, size]``."""
    return attacker.draw_sets(game.n if attack.paper_sizes else game.n_clean, frequencies, rng)


def find_queries(
    trainer: Trainer, attacker: Side, game: GameParameters, attack: PropertyAttack, rng: np.random.Generator
) -> Uncertain:
    """Algorithm 2 as the attack wants it."""
    most_drawn = DRAWS_PER_QUERY * attack.n_queries if attack.most_drawn is None else attack.most_drawn
    return uncertain(
        trainer,
        attacker,
        game.n,
        attack.band,
        n_ensemble=attack.n_ensemble,
        n_queries=attack.n_queries,
        most_drawn=most_drawn,
        rng=rng,
    )
