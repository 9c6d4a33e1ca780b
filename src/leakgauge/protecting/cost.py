"""What a defence costs: how much worse the released model answers about the holdout."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.statistics import Estimate, clopper_pearson, clustered_mean

N_CALIBRATION_BINS = 10
"""Bins of the calibration error."""


@dataclass(frozen=True, eq=False)
class Quality:
    """How well a model answers about n holdout records; lower is better everywhere.

    Args:
        errors: 0 or 1 for a classifier, else the squared error ``[n]``.
        whose: equal for records of one person, by whom intervals are made ``[n]``.
        log_losses: see :func:`log_losses` ``[n]``; ``None`` for a regressor.
        largest: the largest that a record's log loss may be, or error; infinite where there is none.
        calibration: see :func:`calibration_error`; ``None`` where no probabilities are released.
    """

    errors: Floats
    whose: Indices
    log_losses: Floats | None = None
    largest: float = math.inf
    calibration: float | None = None


def quality(answers: Floats, labels: Floats | Indices, *, probabilities: bool, whose: Indices | None = None) -> Quality:
    """How well a model answers.

    Args:
        answers: released log-probabilities ``[n, k]``, labels as 0 and ``-inf`` ``[n, k]``, or values ``[n, 1]``.
        labels: class codes, or values ``[n]``.
        probabilities: whether probabilities are released.
        whose: equal for records of one person ``[n]``; by default each is by itself.
    """
    whose = np.arange(len(labels)) if whose is None else whose
    if answers.shape[1] == 1:
        return Quality(np.asarray((answers[:, 0] - labels) ** 2, dtype=np.float64), whose)
    codes = labels.astype(np.int64)
    wrong = np.asarray(np.argmax(answers, axis=1) != codes, dtype=np.float64)
    losses, largest = log_losses(answers, codes)
    return Quality(wrong, whose, losses, largest, calibration_error(np.exp(answers), codes) if probabilities else None)


def log_losses(logs: Floats, codes: Indices) -> tuple[Floats, float]:
    """Log loss of each record in nats, once the answers are mixed with equal probabilities for all classes.

    The share of the mixture is the one that makes the mean smallest, so that overconfident answers, a probability of 0,
    and labels alone have a finite loss: that of the best use that can be made of them by a single number. For labels
    it is the loss of believing each as often as labels are right.

    Args:
        logs: released log-probabilities ``[n, k]``; for labels 0 and ``-inf``.
        codes: true classes ``[n]``.

    Returns:
        The losses ``[n]``, and the largest that a loss may be with that share.

    >>> labels = np.array([[0.0, -np.inf], [0.0, -np.inf], [0.0, -np.inf], [-np.inf, 0.0]])
    >>> log_losses(labels, np.array([0, 0, 1, 1]))[0].round(3).tolist()  # right in 3 of 4
    [0.288, 0.288, 1.386, 0.288]
    """
    from scipy.optimize import minimize_scalar

    true = np.exp(logs[np.arange(len(codes)), codes])
    equal = 1 / logs.shape[1]

    def losses(share: float) -> Floats:
        return np.asarray(-np.log((1 - share) * true + share * equal))

    # The mean is convex in the share; where it needs no mixing the end is as good as 0.
    best = float(minimize_scalar(lambda share: losses(share).mean(), bounds=(1e-9, 1.0), method="bounded").x)
    return losses(best), -math.log(best * equal)


def calibration_error(probabilities: Floats, codes: Indices) -> float:
    """Expected calibration error, in [0, 1]: how far the largest probabilities are from how often they are right.

    Records are sorted by their largest probability into bins of as many records each; it is the mean over bins of the
    distance of the mean probability from the share that is right.

    Args:
        probabilities: released ``[n, k]``.
        codes: true classes ``[n]``.

    Source: Naeini, Cooper and Hauskrecht, AAAI 2015, with bins of equal counts.

    >>> calibration_error(np.array([[0.75, 0.25]] * 4), np.array([0, 0, 0, 1]))
    0.0
    """
    sure = probabilities.max(axis=1)
    right = (probabilities.argmax(axis=1) == codes).astype(np.float64)
    # Equal probabilities share a bin: their order is no information.
    edges = np.quantile(sure, np.linspace(0, 1, N_CALIBRATION_BINS + 1)[1:-1])
    bins = np.searchsorted(edges, sure, side="left")
    apart = np.bincount(bins, sure - right, minlength=N_CALIBRATION_BINS)
    return float(np.abs(apart).sum() / len(codes))


def estimated_error(found: Quality, confidence: float) -> Estimate:
    """The mean error, with an interval."""
    if found.log_losses is None:
        return clustered_mean(found.errors, found.whose, confidence=confidence, lower=0.0)
    if len(np.unique(found.whose)) < len(found.whose):
        return clustered_mean(found.errors, found.whose, confidence=confidence, lower=0.0, upper=1.0)
    return clopper_pearson(int(found.errors.sum()), len(found.errors), confidence=confidence)


def increase(now: Floats, before: Floats, whose: Indices, confidence: float, *, largest: float) -> Estimate:
    """How much larger a loss is than without a defence, on the same records.

    Args:
        now: with the defence ``[n]``.
        before: without ``[n]``.
        whose: equal for records of one person ``[n]``.
        confidence: of the interval.
        largest: the largest possible loss.
    """
    return clustered_mean(now - before, whose, confidence=confidence, lower=-largest, upper=largest)
