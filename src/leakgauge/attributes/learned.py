"""Learned inversion: how to read the hidden value off the model's answers, found out on the attacker's own records.

The attacker holds complete records of its own, asks the model about each with every value of the hidden column in
place, and learns how the true value goes with the answers and with what else is known. It succeeds to the extent that
it is right more often about training records than about others; what the model adds is what it gets right beyond
`leakgauge.attributes.imputation`, which learns from the same records without the answers.

What the answers say is put in as the log posterior of each value by inversion, so that a few records suffice. Scores
are log posteriors; higher means likelier.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Floats
from leakgauge.attributes import imputation
from leakgauge.attributes.guesses import Guesses
from leakgauge.errors import DataError

LOWEST_LOG_POSTERIOR_NATS = -50.0
"""Log posteriors below this say no more than this."""


def guesses(
    known: ArrayLike,
    inverted: ArrayLike,
    own_known: ArrayLike,
    own_inverted: ArrayLike,
    own_values: ArrayLike,
    prior: ArrayLike | None,
    *,
    categorical: NDArray[np.bool_] | None = None,
) -> Guesses:
    """Guess the hidden value by what is known and by what inverting the model says.

    Args:
        known: what is known of the people in question, ``[n, c]``: other features, and the response.
        inverted: scores of an inversion attack about them, ``[n, m]``.
        own_known: the same of the attacker's records, ``[a, c]``.
        own_inverted: likewise, ``[a, m]``.
        own_values: the hidden values of the attacker's records, int ``[a]``.
        prior: as in :func:`leakgauge.attributes.imputation.guesses`.
        categorical: bool ``[c]``, True where a column of what is known holds codes of categories.

    Raises:
        DataError: the arrays do not fit together, or the attacker has no records.
    """
    people, own = _with_scores(known, inverted), _with_scores(own_known, own_inverted)
    m = np.shape(inverted)[1]
    codes = None if categorical is None else np.append(categorical, np.zeros(m, dtype=bool))
    return imputation.guesses(people, own, own_values, prior, n_values=m, categorical=codes)


def _with_scores(known: ArrayLike, inverted: ArrayLike) -> Floats:
    table, scores = np.asarray(known, dtype=np.float64), np.asarray(inverted, dtype=np.float64)
    if table.ndim != 2 or scores.ndim != 2 or len(table) != len(scores):
        raise DataError(
            f"the known columns [n, c] and scores [n, m] do not fit together, got {table.shape}, {scores.shape}."
        )
    return np.hstack([table, np.maximum(scores, LOWEST_LOG_POSTERIOR_NATS)])
