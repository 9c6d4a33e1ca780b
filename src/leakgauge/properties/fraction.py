"""How frequent is the property? An estimate with its interval, from shadow models over a range of frequencies.

Where the game of :mod:`leakgauge.properties.game` tells two frequencies apart, this regresses the share of the clean
training records that have the property on what models answer. Shadow models are trained over a grid of frequencies; a
ridge regression of their true shares on their responses is asked about the target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.errors import ConfigError
from leakgauge.escaping import shapes
from leakgauge.models import Model
from leakgauge.properties.inference import PropertyAttack, asked, find_queries, shadow_sets
from leakgauge.properties.parameters import GameParameters
from leakgauge.properties.poisoning import PoisonedRecords, plant
from leakgauge.properties.population import Side
from leakgauge.properties.training_sets import Trainer, ask
from leakgauge.statistics import Estimate
from leakgauge.streams import GameStream
from leakgauge.training import HERE, Execution

if TYPE_CHECKING:
    from leakgauge.training import Learner

METHOD = "ridge regression on shadow models, jackknife+"
RIDGE_PENALTIES = np.geomspace(1e-3, 1e3, 25)
"""Ridge penalties to choose from, in units of the largest eigenvalue of the responses' covariance / 1000."""


@dataclass(frozen=True, eq=False)
class Ridge:
    """Ridge regression with an intercept, and what each training row's absence would change.

    Args:
        vectors: rows ``[m, q]``.
        values: what is regressed on them ``[m]``.
        centre: mean of the rows ``[q]``.
        inverse: ``(K + penalty)^-1`` for the centred rows' inner products K ``[m, m]``.
        errors: ``y_i`` less the prediction of it without row i ``[m]``.
    """

    vectors: Floats
    values: Floats
    centre: Floats
    inverse: Floats
    errors: Floats

    __repr__ = shapes

    @classmethod
    def fitted(cls, vectors: Floats, values: Floats) -> Ridge:
        """Choose the penalty with the smallest leave-one-out error.

        Args:
            vectors: rows ``[m, q]``, m at least 3.
            values: ``[m]``.
        """
        m = len(values)
        centre = vectors.mean(axis=0)
        rows = vectors - centre
        spectrum, basis = np.linalg.eigh(rows @ rows.T)
        spectrum = np.maximum(spectrum, 0.0)
        rest = values - values.mean()
        best: tuple[float, float, Floats] | None = None
        for penalty in RIDGE_PENALTIES * max(float(spectrum[-1]), 1e-12) / 1000:
            shrunk = spectrum / (spectrum + penalty)
            leverage = 1 / m + (basis**2) @ shrunk
            errors = (rest - basis @ (shrunk * (basis.T @ rest))) / (1 - leverage)
            if best is None or (errors @ errors) < best[0]:
                best = float(errors @ errors), float(penalty), errors
        assert best is not None  # there are penalties
        inverse = (basis / (spectrum + best[1])) @ basis.T
        return cls(vectors, values, centre, inverse, best[2])

    def predictions(self, vector: Floats) -> tuple[float, Floats]:
        """The prediction for a vector ``[q]``, and what it would be without each of the rows, ``[m]``.

        Leaving a row out is the same as putting its own leave-one-out prediction in place of its value.
        """
        m = len(self.values)
        pulls = 1 / m + self.inverse @ ((self.vectors - self.centre) @ (vector - self.centre))
        pulls -= (pulls.sum() - 1) / m  # the values are centred before they are weighed
        value = float(pulls @ self.values)
        return value, value - pulls * self.errors

    def estimate(self, vector: Floats, *, confidence: float = 0.95, widen: float = 1.0) -> Estimate:
        """Predict the value of a vector ``[q]``, in [0, 1], with the jackknife+ interval.

        The interval holds the value with at least `2 confidence - 1`, and in practice about `confidence`, where the
        target's value is drawn like those of the rows; not for each value by itself: near the ends of the range the
        prediction leans to the middle.

        Args:
            vector: responses of the target.
            confidence: in (0, 1); with m rows at most `1 - 1 / (m + 1)`, beyond which the interval is all of [0, 1].
            widen: how much larger the target's error is than those of the rows, typically.

        Source: Barber, Candès, Ramdas and Tibshirani, "Predictive inference with the jackknife+", Annals of
        Statistics 49 (2021).
        """
        value, without = self.predictions(vector)
        errors = widen * np.abs(self.errors)
        low = _order_statistic(without - errors, 1 - confidence, upper=False)
        high = _order_statistic(without + errors, 1 - confidence, upper=True)
        value, low, high = (min(max(end, 0.0), 1.0) for end in (value, low, high))
        return Estimate(value, min(low, value), max(high, value), confidence, METHOD, len(self.values))


@dataclass(frozen=True, eq=False)
class FractionAttack:
    """All that an attacker who estimates the frequency has made before it meets a model.

    Args:
        attack: how it was done.
        poisoned: the records that must have been in the training set.
        features: what to ask, encoded ``[q, d]``.
        n_uncertain: how many of these are uncertain points.
        positive: code of the class that counts as label 1.
        rule: what to make of the answers.
        widen: see :func:`finite_records`.
    """

    attack: PropertyAttack
    poisoned: PoisonedRecords
    features: Floats
    n_uncertain: int
    positive: int
    rule: Ridge
    widen: float

    __repr__ = shapes

    def estimate(self, model: Model, *, confidence: float = 0.95) -> Estimate:
        """The share of the model's clean training records that have the property; see :meth:`Ridge.estimate`.

        Raises:
            ModelError: the model does not answer what the attack asks.
        """
        return self.read(ask(model, self.features, self.positive, self.attack.answers), confidence=confidence)

    def read(self, responses: Floats, *, confidence: float = 0.95) -> Estimate:
        """The same from what a model has answered, ``[q]``."""
        return self.rule.estimate(responses, confidence=confidence, widen=self.widen)


def prepare_fraction(
    learner: Learner,
    attacker: Side,
    game: GameParameters,
    attack: PropertyAttack | None = None,
    *,
    seed: int = 0,
    execution: Execution = HERE,
) -> FractionAttack:
    """Choose what to plant and what to ask, and learn how answers change with the frequency.

    Args:
        learner: the owner's algorithm.
        attacker: the attacker's own records.
        game: the parameters; the frequency is taken to be anywhere from `t0` to `t1`, each as likely.
        attack: how it is done; `2 n_shadow` shadow models are spread evenly over the range.
        seed: drives every random choice.
        execution: where and how models are trained.

    Raises:
        ConfigError: there are fewer than 20 shadow models for each frequency, too few for an interval of 95 %.
        DataError: the attacker has too few records.
        ModelError: a model could not be trained.
    """
    attack = attack or PropertyAttack()
    if attack.n_shadow < 20:
        raise ConfigError(f"an interval of 95 % needs n_shadow of at least 20, got {attack.n_shadow}; train more.")
    rng = GameStream.ATTACKER.generator(seed)
    poisoned = plant(attacker, game.n_poisoned, game.t0, game.t1, variant=attack.variant, rng=rng)
    own = attacker.some(attack.most_records, rng)
    trainer = Trainer(learner, own, poisoned.records, execution)
    frequencies = np.linspace(game.t0, game.t1, 2 * attack.n_shadow)
    sets = shadow_sets(own, game, attack, frequencies, rng)
    points = find_queries(trainer, attacker, game, attack, rng)
    features = asked(attacker, points, poisoned)
    responses = trainer.responses(sets, features, kind=attack.answers, seed=int(rng.integers(2**32)))
    rule = Ridge.fitted(responses, own.share(sets))
    widen = finite_records(own, sets.shape[1], (game.t0 + game.t1) / 2)
    return FractionAttack(attack, poisoned, features, len(points.rows), attacker.positive, rule, widen)


def finite_records(own: Side, n: int, frequency: float) -> float:
    """How much farther a target is from the shadow models than these are from each other, at least 1.

    Shadow models share a finite number of records, so they are more alike than models of fresh people, and all off by
    what these records have in common: with n of N records in each set their variance is `1/n - 1/N`, and that of
    others about them `1/n + 1/N`. Records with and without the property are counted apart.

    >>> from leakgauge.records import Records
    >>> people = Records.from_arrays(np.zeros((1000, 1)), [0, 1] * 500)
    >>> round(finite_records(Side("attacker", people, np.arange(1000) < 500, 1), 200, 0.5), 4)
    1.2247
    """
    shares = np.array([frequency, 1 - frequency])
    there = np.array([len(own.rows(True)), len(own.rows(False))])
    taken = min(float(shares @ (n * shares / there)), 0.9)
    return math.sqrt((1 + taken) / (1 - taken))


def _order_statistic(values: Floats, miss: float, *, upper: bool) -> float:
    """The value that a fresh one of the same law exceeds (undercuts) with probability at most `miss`."""
    rank = math.ceil((1 - miss) * (len(values) + 1) - 1e-9)
    if rank > len(values):
        return math.inf if upper else -math.inf
    ordered = np.sort(values)
    return float(ordered[rank - 1] if upper else ordered[len(values) - rank])
