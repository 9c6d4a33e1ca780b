"""How many digits of an answer are there: models that compute in single precision round their answers.

A probability of single precision that was computed as 1 less the others has lost its digits where it is small: it is
known to about 1e-7, its logarithm to about 1e-7 / p, and what is rounded to 0 may be anything below that. A softmax
keeps its digits, so that a small probability is known as well as a large one.

That a model answers in single precision is read off its answers: all of them are numbers that single precision can
hold, and not only round ones, such as shares of a few votes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats

EPS = float(np.finfo(np.float32).eps)
"""The last digit of single precision at 1."""

DOUBLE = float(np.finfo(np.float64).eps)
"""The last digit of double precision at 1."""

MAX_LOST_ROUNDINGS = 4.0
"""Rounding errors of a logarithm that its digits and those of the score behind it may add up to."""

PROBED_PROBABILITY = 2.0**-8
"""A probability in which it shows whether digits were lost."""

SINGLE_PRECISION_FLOOR = 2.0**-120
"""Below this single precision has fewer digits."""


@dataclass(frozen=True)
class Precision:
    """How precise the answers of some models are.

    Args:
        single: whether they are numbers of single precision.
        lost: for each class whether its small probabilities have lost digits, bool ``[k]``.
    """

    single: bool
    lost: NDArray[np.bool_]

    @classmethod
    def of(cls, *answers: Floats) -> Precision:
        """What log-probabilities ``[..., k]`` show; NaN is left out."""
        logs = np.concatenate([part.reshape(-1, part.shape[-1]) for part in answers])
        finite = logs[np.isfinite(logs) & (logs < 0) & (logs > np.log(SINGLE_PRECISION_FLOOR))]
        single = _held(finite, 0.0) or _held(np.exp(finite), 4e-16 * (2 - finite))
        return cls(single, np.array([single and _lost(column) for column in logs.T], dtype=np.bool_))

    def error(self, logs: Floats) -> Floats:
        """How far each log-probability may be off, in nats ``[..., k]``; infinite where nothing is left of it."""
        if not self.single:
            return np.zeros(logs.shape)
        finite = np.where(np.isfinite(logs), logs, 0.0)
        kept = np.where(np.isfinite(logs), MAX_LOST_ROUNDINGS * EPS * (1 - finite), 0.0)
        share = np.minimum(EPS / np.exp(np.maximum(finite, -700.0)), 1.0)
        with np.errstate(divide="ignore"):
            gone = np.where(np.isneginf(logs), np.inf, -np.log1p(-share))
        return np.where(self.lost, np.maximum(kept, gone), kept)

    def least(self, logs: Floats) -> Floats:
        """The same log-probabilities, with what was rounded to 0 as large as it may be ``[..., k]``."""
        return np.where(self.lost & np.isneginf(logs), np.log(EPS), logs)


def rounded_away(score: Floats) -> Floats:
    """How far rounding may move a log-probability that double precision computes as 1 less the other, in nats.

    Args:
        score: the largest absolute log odds. Above 36 the smaller probability may be rounded to 0.

    Returns:
        Infinite where nothing is left of it.

    >>> rounded_away(np.array([20.0, 37.0])).round(7).tolist()
    [1e-07, inf]
    """
    share = np.minimum(DOUBLE * (1 + np.exp(np.minimum(score, 700.0))), 1.0)
    with np.errstate(divide="ignore"):
        gone: Floats = -np.log1p(-share)
    return gone


def _held(numbers: Floats, slack: Floats | float) -> bool:
    """Whether all numbers are those of single precision, up to a relative error, and some need its last digits."""
    singles = numbers.astype(np.float32).astype(np.float64)
    if not (np.abs(singles - numbers) <= slack * np.abs(numbers)).all():
        return False
    digits = np.frexp(singles)[0] * 2.0**12
    return bool((digits != np.round(digits)).any())


def _lost(column: Floats) -> bool:
    """Whether a class may have small probabilities that are whole multiples of the last digit of a number below 1.

    Where there are none so small that it would show, they may be.
    """
    small = np.exp(column[column < np.log(PROBED_PROBABILITY)])
    units = small * 2.0**24
    return bool((np.abs(units - np.round(units)) <= 0.05).all())
