"""What a document says about property inference."""

from __future__ import annotations

from dataclasses import dataclass, replace

from leakgauge.escaping import shapes
from leakgauge.statistics import Estimate


@dataclass(frozen=True)
class PropertyGame:
    """One game about a property of the training set: how often its frequency is told.

    Args:
        answers: what the attacker uses, ``probabilities`` or ``labels``.
        poisoned: share of the training set that the attacker has poisoned.
        n_poisoned: how many records that is.
        accuracy: how often the right one of two frequencies is named; 0.5 is guessing. The intervals of all games
            about all properties hold together.
        tolerated_excess: the theorem promises success against every learner whose excess risk is below this (Chase et
            al. 2021, Theorem 9); 0 where it promises nothing, which does not mean safe; ``None`` without poisoned
            records, of which it does not speak.
        precision: of the target models, at the attacked class: mean over models of how often they are right when they
            answer it, about the owner's records that each was not trained on; the interval is about other models, at
            the confidence of the accuracy's. ``None`` where the attacker is not told labels, or fewer than two of the
            models ever answer it.
        recall: likewise, how often they answer it about who has it.
    """

    answers: str
    poisoned: float
    n_poisoned: int
    accuracy: Estimate
    tolerated_excess: float | None
    precision: Estimate | None = None
    recall: Estimate | None = None

    @property
    def told(self) -> Estimate:
        """The accuracy if answers may be reversed: an attack that is wrong in most games tells as much."""
        one = self.accuracy
        off = replace(one, value=one.value - 0.5, low=one.low - 0.5, high=one.high - 0.5).magnitude
        return replace(off, value=0.5 + off.value, low=0.5 + off.low, high=0.5 + off.high)


@dataclass(frozen=True)
class PropertyMitigation:
    """What the owner may do against poisoned records, tried at the largest share of them.

    Args:
        name: ``filtering``, leaving out the most influential training records, or ``label noise``.
        strength: the share of the training records that is left out, or the probability that a label is drawn anew.
        game: the game with models that were all trained so, the attacker's too; beside the game without the remedy it
            tells what the remedy is worth and what it costs. The theorem was not asked. The intervals on the accuracies
            of all remedies about all properties hold together. ``None`` where it was not tried.
        not_tried: why not.
    """

    name: str
    strength: float
    game: PropertyGame | None
    not_tried: str = ""


@dataclass(frozen=True)
class InferredProperty:
    """What the model gives away about how frequent a property is in its training set.

    Args:
        name: the property.
        positive: the class that is attacked against the rest.
        true_fraction: share of the training records that have it.
        fractions: the two frequencies of the games, the smaller first.
        n_records: records of each training set in the games, poisoned ones included.
        n_training: training records of the audited model.
        n_own: records of the attacker's own, none of them in a target's training set.
        n_shadow: shadow models of each frequency.
        n_targets: target models of each frequency.
        confidence: of the intervals on the accuracies of all games about all properties together.
        games: those that were played, first those without poisoned records.
        most_poisoned: share of poisoned records above which the theorem promises nothing.
        fewest_poisoned: poisoned records of the smallest game that is won in nine cases of ten; ``None`` where none is.
        estimate: the fraction as read off the audited model; ``None`` where that cannot be done.
        estimated_from: training records of each shadow model of that estimate.
        no_estimate: why there is none.
        mitigations: what the owner may do against poisoned records; none where that was not asked.
    """

    name: str
    positive: str
    true_fraction: float
    fractions: tuple[float, float]
    n_records: int
    n_training: int
    n_own: int
    n_shadow: int
    n_targets: int
    confidence: float
    games: tuple[PropertyGame, ...]
    most_poisoned: float
    fewest_poisoned: int | None
    estimate: Estimate | None
    estimated_from: int
    no_estimate: str
    mitigations: tuple[PropertyMitigation, ...] = ()

    __repr__ = shapes


@dataclass(frozen=True, kw_only=True)
class PropertiesPart:
    """The part of a document about properties of the training set.

    Args:
        properties: those that games were played about.
    """

    properties: tuple[InferredProperty, ...] = ()
