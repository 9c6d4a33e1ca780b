"""What the numbers that a classifier answers mean, where nothing but the numbers says so."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats

SUM_SLACK = 0.02
"""How far probabilities that a model answers may add up to something other than 1: in half precision they do."""

ROUNDED_SUM = 1e-15
"""How far a sum in double precision may be from 1 by rounding, times the numbers that are added."""

ROUNDED = 1e-9
"""How far a probability may be below 0 or above 1 by rounding, as one less a sum of others may be."""

MOST_DECIMALS = 5
"""Answers with no more decimals are said to be rounded."""


class Outputs(StrEnum):
    """What the outputs of a classifier mean, one for each class, or a single one for the second of two classes."""

    LOGITS = "logits"
    LOG_PROBABILITIES = "log-probabilities"
    PROBABILITIES = "probabilities"
    LOGIT = "one logit"
    PROBABILITY = "one probability"

    @property
    def single(self) -> bool:
        """Whether there is one number for each record."""
        return self in (Outputs.LOGIT, Outputs.PROBABILITY)

    def sums(self, answered: Floats) -> Floats | None:
        """What outputs ``[m, k]`` add up to beyond 1, or for logarithms the logarithm of it; ``None`` of a single one.

        All that is lost of them where they are made into probabilities; ``None`` as well where that is rounding.
        """
        if self.single:
            return None
        if self is Outputs.PROBABILITIES:
            found: Floats = answered.sum(axis=1) - 1
        else:
            top = answered.max(axis=1)
            found = top + np.log(np.exp(answered - top[:, None]).sum(axis=1))
        return found if (np.abs(found) > ROUNDED_SUM * answered.shape[1]).any() else None

    def log_probabilities(self, answered: Floats) -> Floats:
        """Outputs ``[m, k]``, or ``[m, 1]`` where there is one, as log-probabilities ``[m, k]``."""
        if self is Outputs.LOGIT:
            return np.hstack([-np.logaddexp(0.0, answered), -np.logaddexp(0.0, -answered)])
        if self is Outputs.PROBABILITY:
            answered = np.hstack([1 - answered, answered])
        with np.errstate(invalid="ignore", divide="ignore"):
            if self in (Outputs.PROBABILITIES, Outputs.PROBABILITY):
                answered = np.log(np.where(np.abs(answered) <= ROUNDED, np.maximum(answered, 0.0), answered))
            logits = answered
            shifted = logits - logits.max(axis=1, keepdims=True)
            return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def meaning_of(answered: Floats, labels: NDArray[np.generic], *, no_logit: bool = False) -> Outputs:
    """What outputs seem to mean, by those about records that the model was trained on.

    Probabilities are what adds up to 1. Single numbers in [0, 1] are what makes the labels likelier, which the model
    learned from; all others are logits.

    Args:
        answered: ``[m, k]``, or ``[m, 1]`` for two classes.
        labels: class codes ``[m]`` of these records.
        no_logit: whether a single number in [0, 1] is known to be a probability.

    >>> meaning_of(np.array([[0.9], [0.2]]), np.array([1, 0])).value
    'one probability'
    >>> meaning_of(np.array([[7.0, -1.0]]), np.array([0])).value
    'logits'
    """
    if answered.shape[1] == 1:
        if not ((answered >= -ROUNDED) & (answered <= 1 + ROUNDED)).all():
            return Outputs.LOGIT
        either = (Outputs.PROBABILITY,) if no_logit else (Outputs.PROBABILITY, Outputs.LOGIT)
        return max(either, key=lambda one: _likelihood(one, answered, labels.astype(np.int64)))
    if (answered >= -ROUNDED).all() and (np.abs(answered.sum(axis=1) - 1) <= SUM_SLACK).all():
        return Outputs.PROBABILITIES
    if (answered <= 0).all() and (np.abs(np.exp(answered).sum(axis=1) - 1) <= SUM_SLACK).all():
        return Outputs.LOG_PROBABILITIES
    return Outputs.LOGITS


def _likelihood(meaning: Outputs, answered: Floats, labels: NDArray[np.int64]) -> float:
    """The mean log-probability of the labels; single answers of 0 count as hardly possible."""
    logs = meaning.log_probabilities(answered)
    return float(np.maximum(logs[np.arange(len(labels)), labels], -20.0).mean())


def n_decimals(numbers: Floats, most: int = MOST_DECIMALS) -> int | None:
    """With how many decimals all numbers can be written, if with few; ``None`` otherwise.

    Args:
        numbers: of any shape.
        most: decimals that are few.

    >>> n_decimals(np.array([0.25, 0.5])), n_decimals(np.array([1 / 3]))
    (2, None)
    """
    return next((n for n in range(most + 1) if np.allclose(numbers, np.round(numbers, n), rtol=0, atol=1e-12)), None)
