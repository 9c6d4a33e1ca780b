"""Shadow models: with which value does the model answer as only a model does that was trained on the person?

The attacker trains models of the same kind on random halves of records that it holds, and asks them about each person
with every value of the hidden column in place. Models that were not trained on a person show what is to be expected
of it with each value; what the audited model answers beyond that it owes to its own training records. How the true
value stands out in models that *were* trained on a person is learned from the people in their training sets: usually
by the largest difference, but also by the smallest, or by another pattern. Only differences between values are looked
at, so that an answer that is the same for all of them says nothing. It succeeds to the extent that it is right more
often about training records than about others.

Sources: Shokri, Stronati, Song and Shmatikov, "Membership Inference Attacks Against Machine Learning Models", S&P 2017
(a rule learned on shadow models); Watson, Guo, Cormode and Sablayrolles, "On the Importance of Difficulty Calibration
in Membership Inference Attacks", ICLR 2022 (answers against those of models without the record); here for values of a
column in place of membership.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Codes, Floats
from leakgauge.attributes.guesses import Guesses, likeliest
from leakgauge.errors import ModelError
from leakgauge.escaping import shapes
from leakgauge.training import PredictionTable

Signals: TypeAlias = NDArray[np.float64]
"""How well each value goes with the response, as :func:`leakgauge.attributes.inversion.signals` has it."""

MOST_BINS = 20
FEWEST_IN_BIN = 100
"""Of the learned rule: bins for the margins of true values, and how many of those in each; as many bins for others."""

N_PSEUDO = 20
"""Margins added to each bin, with true values as frequent as in all: a bin of few margins says little."""


@dataclass(frozen=True, eq=False)
class Shadows:
    """What shadow models answer about the people in question.

    Args:
        answers: about each person with each value in place, log-probabilities ``[g, n, m, k]`` or numbers
            ``[g, n, m, 1]``.
        members: whether each person was in each model's training set, bool ``[g, n]``.
        values: the value that each person holds, int ``[n]``: whoever trains models on people knows their values. The
            rule is learned from all of them together, so that a person's own value hardly matters to the guess about
            it, and matters as much to that about any other.
    """

    answers: Floats
    members: NDArray[np.bool_]
    values: Codes

    __repr__ = shapes


def without_lost_pairs(table: PredictionTable) -> PredictionTable:
    """The table without the pairs of which a model could not be trained; models 2i and 2i + 1 are a pair.

    Raises:
        ModelError: none is left.
    """
    lost = {model // 2 for model in table.failures}
    if not lost:
        return table
    kept = np.array([model for model in range(len(table)) if model // 2 not in lost], dtype=np.int64)
    if not len(kept):
        raise ModelError(f"no pair of models could be trained: {next(iter(table.failures.values()))}")
    return table.rows(kept)


def expected_signals(shadows: Signals, members: NDArray[np.bool_]) -> Signals:
    """The mean signal of the models that were not trained on a person: what is to be expected of it, ``[n, m]``.

    Args:
        shadows: signals of shadow models about each person with each value in place, ``[g, n, m]``.
        members: whether each person was in each model's training set, bool ``[g, n]``.

    Raises:
        ModelError: the arrays do not fit together, or a person is in no shadow model's training set, or in all.
    """
    if shadows.ndim != 3 or members.shape != shadows.shape[:2]:
        raise ModelError(
            f"signals [models, records, values] and members [models, records] do not fit: {shadows.shape}, "
            f"{members.shape}."
        )
    n_out = (~members).sum(axis=0)
    if not ((n_out > 0) & (n_out < len(members))).all():
        raise ModelError("every record must be in the training set of some shadow model, and not in that of another.")
    mean: Signals = (shadows * ~members[:, :, None]).sum(axis=0) / n_out[:, None]
    return mean


def guesses(signals: Signals, shadows: Signals, members: NDArray[np.bool_], values: Codes, prior: Floats) -> Guesses:
    """Guess the value by how the answers differ from those of shadow models that were not trained on the person.

    Args:
        signals: of the audited model about each person with each value in place, ``[n, m]``; see
            :func:`leakgauge.attributes.inversion.signals`.
        shadows: of the shadow models, ``[g, n, m]``.
        members: whether each person was in each shadow model's training set, bool ``[g, n]``: each person in one at
            least, and not in all.
        values: the value that each person holds, int ``[n]``.
        prior: ``[m]``; decides where nothing else does.

    Returns:
        Log posteriors among the values that stand out equally as scores.

    Raises:
        ModelError: the arrays do not fit together, or a person is in no shadow model's training set, or in all.
    """
    expected = expected_signals(shadows, members)
    if signals.shape != expected.shape:
        raise ModelError(
            f"signals of the model must be {expected.shape} as those of shadow models, got {signals.shape}."
        )
    model, person = np.nonzero(members)
    rule = _Rule.learned(_margins((shadows - expected)[model, person], prior), values[person])
    return likeliest(rule.scores(_margins(signals - expected, prior), prior), prior)


@dataclass(frozen=True, eq=False)
class _Rule:
    """How likely a value is the true one by its margin, as learned in bins.

    Args:
        edges: between the bins, ``[b - 1]``.
        shares: of the margins in each bin, those of true values, ``[b]``.
        rising: whether the last bin has a larger share than the first: within a bin, values are ranked that way.
    """

    edges: Floats
    shares: Floats
    rising: bool

    @classmethod
    def learned(cls, margins: Floats, values: Codes) -> _Rule:
        """From the margins of each value about people ``[r, m]`` and the value that each holds, int ``[r]``."""
        is_true = np.arange(margins.shape[1]) == values[:, None]
        n_bins = int(np.clip(len(values) // FEWEST_IN_BIN, 2, MOST_BINS))
        parts = np.arange(1, n_bins) / n_bins
        edges = np.unique([np.quantile(margins[which], parts) for which in (is_true, ~is_true) if which.any()])
        bins = np.searchsorted(edges, margins, side="right")
        n_all, n_true = (np.bincount(one.ravel(), minlength=edges.size + 1) for one in (bins, bins[is_true]))
        shares = (n_true + N_PSEUDO * is_true.mean()) / (n_all + N_PSEUDO)
        return cls(edges, shares, bool(shares[-1] >= shares[0]))

    def scores(self, margins: Floats, prior: Floats) -> Floats:
        """The margin, up or down, of the possible values in the bin of the largest share; ``-inf`` for all others."""
        shares = np.where(prior > 0, self.shares[np.searchsorted(self.edges, margins, side="right")], -np.inf)
        best = shares == shares.max(axis=1, keepdims=True)
        return np.where(best, margins if self.rising else -margins, -np.inf)


def _margins(signals: Floats, prior: Floats) -> Floats:
    """How far the signal of each value lies above the best other one, ``[n, m]``; far below where the prior is 0."""
    possible = np.where(prior > 0, signals, signals.min(initial=0.0) - 1)
    if possible.shape[1] == 1:
        return np.zeros(possible.shape)
    order = np.sort(possible, axis=1)
    best, second = order[:, -1:], order[:, -2:-1]
    margins: Floats = possible - np.where(possible == best, second, best)
    return margins
