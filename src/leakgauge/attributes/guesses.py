"""What an attribute attack says about n people: a score for each value, and the value it names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Codes, Floats
from leakgauge.errors import DataError, ModelError
from leakgauge.escaping import shapes

NONE = -1
"""In place of a value: no guess. It always counts as wrong."""

_SUM_SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Guesses:
    """The outcome of one attack.

    Args:
        scores: ``[n, m]``; **higher means that the attacker holds the value for likelier**, ``-inf`` that it is out
            of the question. Natural log posteriors where the attack has such.
        values: the value named for each person, int ``[n]``, or :data:`NONE`.
        chances: for an attack that tosses a coin, the probability of naming each value, ``[n, m]``; what is missing
            to 1 is the probability of no guess. ``None`` where ``values`` is all there is to say.
    """

    scores: Floats
    values: Codes
    chances: Floats | None = None

    __repr__ = shapes

    def right(self, truth: Codes) -> Floats:
        """For each person the probability that the guess is right, ``[n]``: 0 or 1 without a coin."""
        if self.chances is None:
            return np.where(self.values == truth, 1.0, 0.0)
        chances: Floats = np.take_along_axis(self.chances, truth[:, None], axis=1)[:, 0]
        return chances

    @property
    def silent(self) -> Floats:
        """For each person the probability of no guess, ``[n]``."""
        if self.chances is None:
            return np.where(self.values == NONE, 1.0, 0.0)
        missing: Floats = np.clip(1 - self.chances.sum(axis=1), 0.0, 1.0)
        return missing

    def __getitem__(self, rows: slice | NDArray[np.bool_] | Codes) -> Guesses:
        chances = None if self.chances is None else self.chances[rows]
        return Guesses(self.scores[rows], self.values[rows], chances)


def highest(scores: Floats) -> Guesses:
    """The value of the highest score, the first of equals; no guess where all are out of the question.

    >>> highest(np.array([[0.5, 0.5], [0.1, 0.2], [-np.inf, -np.inf]])).values.tolist()
    [0, 1, -1]
    """
    best = np.argmax(scores, axis=1)
    impossible = np.isneginf(scores.max(axis=1))
    return Guesses(scores, np.where(impossible, NONE, best).astype(np.int64))


def likeliest(scores: Floats, prior: ArrayLike | None = None, *, tolerance: float = 0.0) -> Guesses:
    """Guess the value of the highest score, however rare it is; the prior decides between equal ones alone.

    Args:
        scores: ``[n, m]``, higher for likelier, not NaN; for each person one at least is above ``-inf``.
        prior: ``[m]`` or ``[n, m]``; values of prior 0 are never named. Uniform if not given.
        tolerance: scores that differ by no more are equal.

    Returns:
        Log posteriors among the values of the highest score, ``-inf`` for all others.

    Raises:
        ModelError: as :func:`posterior`.
        DataError: the prior is none.

    >>> likeliest(np.log([[0.6, 0.9], [0.5, 0.5]]), [0.8, 0.2]).values.tolist()
    [1, 0]
    """
    possible = np.where(checked_prior(prior, scores.shape[1]) > 0, scores, -np.inf)
    best = possible.max(axis=1, keepdims=True)
    return posterior(np.where(possible >= best - tolerance, 0.0, -np.inf), prior)


def posterior(log_likelihoods: Floats, prior: ArrayLike | None = None) -> Guesses:
    """Guess the value of the highest posterior.

    Args:
        log_likelihoods: natural logarithms of how likely what is known of each person is with each value, ``[n, m]``,
            up to a shift that may differ between people; ``-inf`` for impossible, ``+inf`` for an unbounded density.
        prior: how frequent each value is, ``[m]`` for all or ``[n, m]`` for each; uniform if not given.

    Returns:
        Log posteriors as scores. Where what is known is impossible with every value the prior decides alone.

    Raises:
        ModelError: the likelihoods are not ``[n, m]`` numbers, or NaN.
        DataError: the prior is none.
    """
    table = np.asarray(log_likelihoods, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] == 0:
        raise ModelError(f"likelihoods must have shape [records, values], got {table.shape}.")
    if np.isnan(table).any():
        row, value = (int(i) for i in np.argwhere(np.isnan(table))[0])
        raise ModelError(f"the likelihood of record {row} with value {value} is NaN; repair the model's prediction.")
    log_prior = _logs(checked_prior(prior, table.shape[1]))
    considered = np.where(np.isneginf(log_prior), -np.inf, table)
    top = considered.max(axis=1, keepdims=True)
    # Relative to the best of each person; equally unbounded ones are equal, and none possible means that all are.
    with np.errstate(invalid="ignore"):
        relative = np.where(np.isinf(top), np.where(considered == top, 0.0, -np.inf), considered - top)
    joint = relative + log_prior
    with np.errstate(divide="ignore"):
        scores = joint - joint.max(axis=1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return Guesses(scores, np.argmax(joint, axis=1).astype(np.int64))


def checked_prior(prior: ArrayLike | None, m: int) -> Floats:
    """The prior as float64 ``[m]`` or ``[n, m]``, uniform where none is given.

    Raises:
        DataError: it has not one frequency for each value, one is negative or NaN, or they do not sum to 1.
    """
    if prior is None:
        return np.full(m, 1 / m)
    table = np.asarray(prior, dtype=np.float64)
    if table.ndim not in (1, 2) or table.shape[-1] != m:
        raise DataError(f"the prior must have one frequency for each of {m} values, got shape {table.shape}.")
    sums = table.sum(axis=-1)
    if not (table >= 0).all() or (np.abs(sums - 1) > _SUM_SLACK).any():
        off = float(np.atleast_1d(sums)[np.argmax(np.abs(np.atleast_1d(sums) - 1))])
        raise DataError(
            f"the prior must be frequencies of at least 0 that sum to 1, got a sum of {off:g} and a smallest entry of "
            f"{table.min():g}; divide counts by their sum."
        )
    return table


def _logs(prior: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(prior)
