"""What the outputs of a classifier mean of which nothing is known but what it answers."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from leakgauge.arrays import Floats, Indices

SUM_SLACK = 0.02
"""How far probabilities that a module answers may add up to something other than 1: in half precision they do."""


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

    def log_probabilities(self, answered: Floats) -> Floats:
        """Outputs ``[m, k]``, or ``[m, 1]`` where there is one, as log-probabilities ``[m, k]``."""
        if self is Outputs.LOGIT:
            return np.hstack([-np.logaddexp(0.0, answered), -np.logaddexp(0.0, -answered)])
        if self is Outputs.PROBABILITY:
            answered = np.hstack([1 - answered, answered])
        with np.errstate(invalid="ignore", divide="ignore"):
            logits = np.log(answered) if self in (Outputs.PROBABILITIES, Outputs.PROBABILITY) else answered
            shifted = logits - logits.max(axis=1, keepdims=True)
            return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def meaning_of_many(given: Floats) -> Outputs:
    """What outputs ``[m, k]`` mean, one for each class: probabilities are what adds up to 1.

    >>> meaning_of_many(np.array([[0.2, 0.8]])), meaning_of_many(np.array([[-1.0, 3.0]]))
    (<Outputs.PROBABILITIES: 'probabilities'>, <Outputs.LOGITS: 'logits'>)
    """
    if (given >= 0).all() and (np.abs(given.sum(axis=1) - 1) <= SUM_SLACK).all():
        return Outputs.PROBABILITIES
    if (given <= 0).all() and (np.abs(np.exp(given).sum(axis=1) - 1) <= SUM_SLACK).all():
        return Outputs.LOG_PROBABILITIES
    return Outputs.LOGITS


def meaning_of_single(given: Floats, labels: Indices, *, sigmoid: bool = False) -> Outputs:
    """What single outputs ``[m, 1]`` mean, one for the second of two classes.

    They are probabilities where all are in [0, 1] and the labels, which the model learned from, are likelier by that
    than by their logistic function.

    Args:
        given: the outputs.
        labels: codes of the classes ``[m]``, 0 and 1.
        sigmoid: whether it is known that a number in [0, 1] is a probability.
    """
    if not ((given >= 0) & (given <= 1)).all():
        return Outputs.LOGIT
    either = (Outputs.PROBABILITY,) if sigmoid else (Outputs.PROBABILITY, Outputs.LOGIT)
    return max(either, key=lambda one: _likelihood(one, given, labels))


def _likelihood(meaning: Outputs, given: Floats, labels: Indices) -> float:
    """The mean log-probability of the labels; single answers of 0 count as hardly possible."""
    logs = meaning.log_probabilities(given)
    return float(np.maximum(logs[np.arange(len(labels)), labels], -20.0).mean())
