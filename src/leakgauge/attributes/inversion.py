"""Inverting the model: which value of the hidden column explains best what is known of the person?

The attacker knows the other features and the response of a person, may ask the model about the person with each value
of the hidden column in place, and knows how frequent the values are and how far the model usually errs. It answers the
value of the highest posterior. It succeeds to the extent that it is right more often about training records than about
others. Nothing is trained. Sources: Fredrikson, Lantz, Jha, Lin, Page and Ristenpart, "Privacy in Pharmacogenetics:
An End-to-End Case Study of Personalized Warfarin Dosing", USENIX Security 2014; Fredrikson, Jha and Ristenpart, "Model
Inversion Attacks that Exploit Confidence Information and Basic Countermeasures", CCS 2015; Yeom et al. 2018, section 4,
Adversary 4.

What the response tells depends on what the model answers: numbers (`by_gaussian_error`, `by_error`), probabilities
(`by_confidence`), or labels (`by_confusion`). Scores are log posteriors; higher means likelier.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Codes, Floats
from leakgauge.attributes.guesses import Guesses, likeliest, posterior
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.models import AnswerKind

LARGEST_LOG_ODDS = 10.0
"""Log odds beyond this say no more than this; a probability of 0 or 1 would outweigh everything else."""

LogDensity: TypeAlias = Callable[[Floats], Floats]

# A deviation below this fraction of the scale of y is a model that fits exactly, seen through rounding errors.
_RELATIVE_TOLERANCE = 1e-12


def errors(answers: ArrayLike, labels: ArrayLike) -> Floats:
    """What the error would be with each value in place: true less predicted.

    Args:
        answers: the predictions, ``[n, m, 1]``.
        labels: the true responses, ``[n]``.

    Returns:
        ``[n, m]``, units of the response.

    Raises:
        DataError: a response is missing (NaN or infinite): without it the model cannot be inverted.
        ModelError: the shapes do not fit.
    """
    told, known = np.asarray(answers, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if told.ndim != 3 or told.shape[2] != 1 or known.shape != told.shape[:1]:
        raise ModelError(f"answers [records, values, 1] and labels [records] do not fit: {told.shape}, {known.shape}.")
    if not np.isfinite(known).all():
        row = int(np.argmin(np.isfinite(known)))
        raise DataError(
            f"the response of record {row} is missing, and without it no model can be inverted; leave it out."
        )
    found: Floats = known[:, None] - told[:, :, 0]
    return found


def by_gaussian_error(
    errors: ArrayLike, sigma_in: float, prior: ArrayLike | None = None, *, scale: float | None = None
) -> Guesses:
    """Guess by errors that are taken to be normal with mean 0.

    Args:
        errors: with each value in place, ``[n, m]``, finite.
        sigma_in: deviation that the attacker reckons with, at least 0, usually the training error: it does not know
            whether the person is a member. At 0 the smallest error decides, and the prior between equal ones.
        prior: ``[m]`` or ``[n, m]``; uniform if not given.
        scale: typical size of the response, for example its standard deviation; by default the largest error. Errors
            that differ by less than 1e-12 of it are equal where ``sigma_in`` is no more than that.

    Raises:
        ConfigError: ``sigma_in`` is negative or not finite.
        ModelError: the errors are not ``[n, m]`` finite numbers.
        DataError: the prior is none.

    Source:
        Yeom et al. 2018, Adversary 4.

    >>> by_gaussian_error([[0.5, -1.0], [2.0, 1.0]], 1.0, [0.5, 0.5]).values.tolist()
    [0, 1]
    """
    table = _checked_errors(errors)
    if not 0 <= sigma_in < math.inf:
        raise ConfigError(f"sigma_in must be a finite standard deviation, at least 0, got {sigma_in}.")
    sizes = np.abs(table)
    tolerance = _RELATIVE_TOLERANCE * (float(sizes.max(initial=0.0)) if scale is None else scale)
    if sigma_in > tolerance:
        return posterior(-((table / sigma_in) ** 2) / 2, prior)
    return likeliest(-sizes, prior, tolerance=tolerance)


def by_error(errors: ArrayLike, log_density: LogDensity, prior: ArrayLike | None = None) -> Guesses:
    """Guess by errors of any law.

    Args:
        errors: with each value in place, ``[n, m]``, finite.
        log_density: natural logarithm of the error's density, elementwise, up to a constant.
        prior: ``[m]`` or ``[n, m]``; uniform if not given.

    Raises:
        ModelError: the errors are not ``[n, m]`` finite numbers, or the density answers NaN or another shape.
        DataError: the prior is none.

    Source:
        Yeom et al. 2018, Adversary 4; Fredrikson et al. 2014.

    >>> by_error([[0.5, -0.4]], lambda e: -np.abs(e)).values.tolist()
    [1]
    """
    table = _checked_errors(errors)
    logs = np.asarray(log_density(table), dtype=np.float64)
    if logs.shape != table.shape:
        raise ModelError(
            f"the density must work elementwise and give an array of shape {table.shape}, got {logs.shape}."
        )
    return posterior(logs, prior)


def by_confidence(log_probabilities: ArrayLike, labels: ArrayLike, prior: ArrayLike | None = None) -> Guesses:
    """Guess by the probability that the model gives the true class.

    Args:
        log_probabilities: with each value in place, ``[n, m, k]``.
        labels: true classes, int ``[n]``.
        prior: ``[m]`` or ``[n, m]``; uniform if not given.

    Raises:
        ModelError: the answers are not ``[n, m, k]``, or NaN.
        DataError: a class is missing or unknown, or the prior is none.

    Source:
        Fredrikson et al. 2015; Yeom et al. 2018, Adversary 4, with the model's probability as the likelihood.

    >>> by_confidence(np.log([[[0.9, 0.1], [0.4, 0.6]]]), [1]).values.tolist()
    [1]
    """
    table = np.asarray(log_probabilities, dtype=np.float64)
    if table.ndim != 3:
        raise ModelError(f"log_probabilities must have shape [records, values, classes], got {table.shape}.")
    codes = _checked_classes(labels, len(table), table.shape[2])
    return posterior(np.take_along_axis(table, codes[:, None, None], axis=2)[:, :, 0], prior)


def by_confusion(
    predicted: ArrayLike,
    labels: ArrayLike,
    confusion: ArrayLike,
    prior: ArrayLike | None = None,
    *,
    judge: ArrayLike | None = None,
) -> Guesses:
    """Guess by the class that the model names, and how often people of whom it names that class are of the true one.

    Args:
        predicted: the class named with each value in place, int ``[n, m]``.
        labels: true classes, int ``[n]``.
        confusion: how many people of class i (row) the model takes for class j (column), ``[k, k]``, as published
            with many models. A class that the model never names says nothing.
        prior: ``[m]`` or ``[n, m]``; uniform if not given.
        judge: where there are several matrices ``[g, k, k]``, the place of the one to use for each person, int ``[n]``.
            It should count neither this person nor members rather than others: otherwise it tells who is counted, and
            not the model.

    Raises:
        ModelError: the predictions are no classes ``[n, m]``.
        DataError: a class is missing or unknown, the matrix is not ``[k, k]`` counts, a judge is none of them, or
            the prior is none.

    Source:
        Fredrikson et al. 2014 and 2015; here with the probability of the true class given the one named.

    >>> by_confusion([[0, 1]], [1], [[30, 10], [5, 55]]).values.tolist()
    [1]
    """
    counts = np.asarray(confusion, dtype=np.float64)
    square = counts.ndim == (2 if judge is None else 3) and counts.shape[-1] == counts.shape[-2]
    if not square or not (np.isfinite(counts) & (counts >= 0)).all():
        raise DataError(
            f"confusion must be a square matrix of counts, got shape {counts.shape} or entries that are not counts."
        )
    k = counts.shape[-1]
    named = np.asarray(predicted)
    if named.ndim != 2 or named.dtype.kind not in "iu" or (named < 0).any() or (named >= k).any():
        raise ModelError(f"predicted must be classes 0 to {k - 1} of shape [records, values], got {named.shape}.")
    codes = _checked_classes(labels, len(named), k)
    matrices = counts.reshape(-1, k, k)
    used = np.zeros(len(named), dtype=np.int64) if judge is None else np.asarray(judge)
    if used.shape != codes.shape or not np.isin(used, np.arange(len(matrices))).all():
        raise DataError(f"judge must be one of {len(matrices)} matrices for each of {len(named)} records.")
    of_true = matrices[used[:, None], codes[:, None], named]
    totals = matrices.sum(axis=1)[used[:, None], named]
    likelihood = np.where(totals > 0, of_true / np.where(totals > 0, totals, 1.0), 1 / k)
    with np.errstate(divide="ignore"):
        return posterior(np.log(likelihood), prior)


def signals(kind: AnswerKind, answers: Floats, labels: NDArray[np.generic], scale: float = 1.0) -> Floats:
    """How well each value goes with the response, on a scale on which near certainty stands out, ``[n, m]``.

    Likelihoods near 1 hardly differ, and neither do errors near 0: here a probability of 0.9999 is as far from 0.99 as
    that is from one half.

    Args:
        kind: what the model answers.
        answers: with each value in place, log-probabilities ``[n, m, k]`` or numbers ``[n, m, 1]``.
        labels: the true classes or values, ``[n]``.
        scale: typical size of the response of a regressor.

    Returns:
        Log odds of the true class, within 10 of 0; or the negative logarithm of the size of the error, in units of the
        scale.

    >>> logs = np.log([[[0.1, 0.9], [0.5, 0.5]]])
    >>> signals(AnswerKind.PROBABILITIES, logs, np.array([1])).round(6).tolist()
    [[2.197225, 0.0]]
    """
    if kind is AnswerKind.VALUES:
        sizes = np.abs(errors(answers, labels)) / scale
        return -np.log(np.maximum(sizes, _RELATIVE_TOLERANCE))
    codes = _checked_classes(labels, len(answers), answers.shape[2])
    logs = np.take_along_axis(answers, codes[:, None, None], axis=2)[:, :, 0]
    with np.errstate(divide="ignore"):
        rest = np.log(-np.expm1(np.minimum(logs, 0.0)))
    odds: Floats = np.clip(logs - rest, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
    return odds


def confusion(predicted: Codes, labels: NDArray[np.generic], k: int) -> Floats:
    """How many people of class i (row) the model takes for class j (column), ``[k, k]``.

    >>> confusion(np.array([0, 1, 1]), np.array([0, 0, 1]), 2).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    counts = np.zeros((k, k))
    np.add.at(counts, (np.asarray(labels, dtype=np.int64), predicted), 1.0)
    return counts


def _checked_errors(errors: ArrayLike) -> Floats:
    table = np.asarray(errors, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] == 0 or not np.isfinite(table).all():
        raise ModelError(f"errors must be finite numbers of shape [records, values], got shape {table.shape}.")
    return table


def _checked_classes(labels: ArrayLike, n: int, k: int) -> Codes:
    codes = np.asarray(labels)
    if codes.shape != (n,) or codes.dtype.kind not in "iu" or (codes < 0).any() or (codes >= k).any():
        raise DataError(
            f"labels must be the true class of each of {n} records, whole numbers from 0 to {k - 1}, got {codes.dtype} "
            f"of shape {codes.shape}; without the response no model can be inverted."
        )
    return codes.astype(np.int64)
