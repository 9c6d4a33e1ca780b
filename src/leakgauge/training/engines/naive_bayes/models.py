"""Naive Bayes without each record in turn, in closed form: nothing is trained.

A naive Bayes model is counts and moments of each class. Without record t the class of t has one member fewer and
the other classes are as they were, so the score of each class follows from the full counts and the record itself.
Two quantities reach further: Gaussian models add a share of the largest variance of the *whole* table to all
variances, and complement models count for each class what is outside it. Both are followed exactly.

What scikit-learn does is followed in its special cases too. Without the last member of a class that class has
probability 0 and a uniform prior is spread over one class fewer; with given priors no model exists then.

Where rounding could be seen (a record beside which all others vanish, scores of millions) or the formula gives no
number, the model is trained after all, so that the answer is scikit-learn's in every case.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leakgauge.arrays import Codes, Flags, Floats, Indices
from leakgauge.training.engines.closed_form import UNIT_ROUNDOFF, Answers, Moving, change, classes_first, dense

LOG_PROBABILITY_RELATIVE_TOLERANCE = 1e-9
"""Of a log-probability, relative to its size where that is above 1."""

BLOCK_NUMBERS = 2**17
"""Numbers in a block of rows: few enough to stay in the processor's cache."""


@dataclass(frozen=True)
class Scores:
    """How well a record fits each class, by the model without some record.

    Args:
        values: ``[models, classes]`` or ``[models, queries, classes]``: log-likelihood of the record; anything for a
            class without members.
        rounding: the same shape: what rounding may have done to it, here or in scikit-learn.
    """

    values: Floats
    rounding: Floats


@dataclass(frozen=True)
class Priors:
    """What the models hold of the classes before they see the record.

    Args:
        logs: ``[models, classes]``: log prior, ``-inf`` for a class without members.
        absent: bool ``[models, classes]``: whether the class has no member without the record.
        possible: bool ``[models]``: whether the model can be trained at all.
    """

    logs: Floats
    absent: Flags
    possible: Flags


@dataclass(frozen=True)
class Classes:
    """Who is in which class.

    Args:
        labels: class codes ``[records]``.
        counts: members of each class ``[classes]``; there may be none.
    """

    labels: Codes
    counts: Indices

    @property
    def fewer(self) -> Indices:
        """Members of each class without one of them, ``[classes]``."""
        return np.maximum(self.counts - 1, 0)

    def sums(self, X: Any) -> Floats:
        """The sum of the rows of each class, ``[classes, features]``, of a dense or CSR matrix."""
        from scipy.sparse import csr_matrix

        n = len(self.labels)
        members = csr_matrix((np.ones(n), (self.labels, np.arange(n))), shape=(len(self.counts), n))
        return dense(members @ X)


class Likelihoods(ABC):
    """What the models of one sort hold beside the prior, without any one record."""

    @abstractmethod
    def own(self, rows: Indices) -> Scores:
        """Of each removed record, by the model without it, ``[m, classes]``."""

    @abstractmethod
    def asked(self, rows: Indices, queries: Floats) -> Scores:
        """Of queries, ``[q, features]`` or ``[m, q, features]``, by the model without each record."""

    @abstractmethod
    def moves(self, rows: Indices) -> Floats:
        """How far the parameters of each class move without each record ``[m, classes, parameters]``."""

    def alike(self, rows: Indices) -> tuple[Indices, Indices] | None:
        """Which of the records stand for all, and for each record its stand-in's place among them."""
        return None


class NaiveBayesModels(Moving):
    """Priors and likelihoods.

    Args:
        classes: who is in which.
        likelihoods: of the features.
        fixed: given priors ``[classes]``, NaN for a class without members; ``None`` if there are none.
        from_counts: whether priors are shares of the classes.
        uses_prior: whether priors enter into answers at all.
        undone: records without which the features are others, so that models are to be trained, bool ``[records]``.
    """

    def __init__(
        self,
        classes: Classes,
        likelihoods: Likelihoods,
        fixed: Floats | None,
        from_counts: bool,
        uses_prior: bool,
        undone: Flags,
    ) -> None:
        self.classes = classes
        self.likelihoods = likelihoods
        self.fixed, self.from_counts, self.uses_prior, self.undone = fixed, from_counts, uses_prior, undone

    def own(self, rows: Indices) -> Answers:
        """Log-probabilities ``[m, classes]``."""
        first, place = self.likelihoods.alike(rows) or (slice(None), slice(None))
        logs, doubtful = posterior(self.likelihoods.own(rows[first]), self._weighted(rows[first]))
        return logs[place], doubtful[place] | self.undone[rows]

    def asked(self, rows: Indices, queries: Floats) -> Answers:
        """Log-probabilities ``[m, q, classes]``."""
        logs, doubtful = posterior(self.likelihoods.asked(rows, queries), self._weighted(rows))
        return logs, np.asarray(doubtful.any(axis=1)) | self.undone[rows]

    def moves(self, rows: Indices) -> Answers:
        """For each class that has members: the log prior, then its parameters."""
        before = priors_of(self.classes.counts, self.fixed, self.from_counts)
        after = self.priors(rows)
        moves = np.dstack([change(after.logs, before)[:, :, None], self.likelihoods.moves(rows)])
        moves = moves[:, self.classes.counts > 0].reshape(len(rows), -1)
        moves[self.classes.counts[self.classes.labels[rows]] == 1] = np.nan  # a class less
        return moves, np.zeros(len(rows), dtype=bool)

    def priors(self, rows: Indices) -> Priors:
        """Of the models without each record."""
        return priors_without(self.classes, rows, self.fixed, self.from_counts)

    def _weighted(self, rows: Indices) -> Priors:
        priors = self.priors(rows)
        return priors if self.uses_prior else replace(priors, logs=np.where(priors.absent, -np.inf, 0.0))


def posterior(scores: Scores, priors: Priors) -> tuple[Floats, Flags]:
    """Bayes' rule on the logarithmic scale.

    Returns:
        Log-probabilities in the shape of the scores, NaN throughout for a model that cannot be trained; and bool
        ``[models]`` or ``[models, queries]``: where a number is missing or rounding may exceed the tolerance.
    """
    absent, before, possible = priors.absent.T, priors.logs.T, priors.possible
    if scores.values.ndim == 3:
        absent, before, possible = absent[:, :, None], before[:, :, None], possible[:, None]
    joint, rounding = classes_first(scores.values), classes_first(scores.rounding)
    joint += before
    joint[np.broadcast_to(absent, joint.shape)] = -np.inf
    logs = joint - joint.max(axis=0)
    shares = np.exp(logs)
    total = shares.sum(axis=0)
    logs -= np.log(total)
    np.minimum(logs, 0.0, out=logs)
    # An error in the scores reaches a log-probability directly and through the normalisation.
    rounding += 4 * UNIT_ROUNDOFF * np.abs(joint)
    rounding[np.broadcast_to(absent, joint.shape)] = 0.0
    reached = (rounding * np.where(shares > 0, shares, 0.0)).sum(axis=0) / total + rounding
    close = absent | (joint == -np.inf) | (reached <= LOG_PROBABILITY_RELATIVE_TOLERANCE * np.maximum(1.0, -logs))
    doubtful = possible & ~(close & ~np.isnan(logs)).all(axis=0)
    logs[:, ~priors.possible] = np.nan
    return np.moveaxis(logs, 0, -1), doubtful


def priors_of(counts: Indices, fixed: Floats | None, from_counts: bool) -> Floats:
    """Log priors of the classes by models whose classes have so many members.

    Args:
        counts: ``[..., classes]``.
        fixed: given priors ``[classes]``, NaN for a class without members.
        from_counts: shares of the classes if true, else the same for all classes that have members.

    Returns:
        ``[..., classes]``, ``-inf`` for a class without members.
    """
    absent = counts == 0
    if fixed is not None:
        shares = np.broadcast_to(fixed, counts.shape)
    elif from_counts:
        shares = counts / counts.sum(axis=-1, keepdims=True)
    else:
        shares = np.broadcast_to(1 / (~absent).sum(axis=-1, keepdims=True), counts.shape)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.where(absent, 0.0, shares)))


def priors_without(classes: Classes, rows: Indices, fixed: Floats | None, from_counts: bool) -> Priors:
    """Log priors of the classes by the models without each record, as :func:`priors_of`."""
    # There is one model for each class that a record can be taken from.
    left = np.maximum(classes.counts - np.eye(len(classes.counts), dtype=np.int64), 0)
    own = classes.labels[rows]
    # With given priors scikit-learn wants one for each class that it sees.
    possible = np.ones(len(rows), dtype=bool) if fixed is None else classes.counts[own] > 1
    return Priors(priors_of(left, fixed, from_counts)[own], (left == 0)[own], possible)


def own_moves(after: Floats, before: Floats, own: Indices) -> Floats:
    """Changes ``[m, classes, parameters]`` where those of the own class change alone.

    Args:
        after: of the own class ``[m, parameters]``.
        before: of all classes ``[classes, parameters]``.
        own: the class of each record ``[m]``.
    """
    moves = np.zeros((len(own), *before.shape))
    moves[np.arange(len(own)), own] = change(after, before[own])
    return moves


def parts(n_rows: int, width: int) -> Iterator[slice]:
    """Blocks of rows that stay in cache."""
    step = max(64, BLOCK_NUMBERS // max(1, width))
    return (slice(start, start + step) for start in range(0, n_rows, step))
