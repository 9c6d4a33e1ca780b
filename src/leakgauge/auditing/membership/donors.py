"""Whose numbers an imputer of nearest neighbours fills in, where outputs tell the filled-in number to its last digits.

A record without a number is answered with the mean of those of its k nearest training records. Who knows the candidates
looks for the k among its nearest ones that have this mean: with numbers of many digits only one choice does. These are
training records, and nearer candidates that were passed over are none.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances

from leakgauge.arrays import Flags, Floats, Indices

WINDOW = 16
"""Nearest candidates among whom donors are looked for; half of them are members."""

N_QUERIES, MOST_COLUMNS = 100, 2
"""Queries without a number, and numbers of which one each is left out: those with most values."""

BESIDE = 0.1
"""Of the way from a candidate to another one where a query lies: at a candidate its own number would outweigh all
others where weights are inverse distances."""

TOLERANCE = 1e-9
"""Standard deviations by which a mean may be off."""

NEAREST = 1e-150
"""Smallest distance, whose inverse is still a number."""


def scores_of_donors(imputer: Any, X: Floats, columns: Flags) -> Floats:
    """How sure it is that each candidate gave its number to another, or to itself ``[n]``.

    Args:
        imputer: a fitted KNNImputer.
        X: what it sees of the candidates ``[n, d]``.
        columns: of which outputs tell what is filled in ``[d]``.
    """
    found = np.zeros(len(X))
    k, weights = imputer.n_neighbors, imputer.weights
    if not k < WINDOW <= len(X) or weights not in ("uniform", "distance"):
        return found
    kept = ~np.isnan(imputer._fit_X).all(axis=0) | bool(imputer.keep_empty_features)
    told, rows = np.flatnonzero(columns & kept), np.unique(np.linspace(0, len(X) - 1, N_QUERIES).astype(int))
    for place in told[np.argsort(-n_values(X[:, told]), kind="stable")][:MOST_COLUMNS]:
        asked = X[rows] + BESIDE * (X[rows - 1] - X[rows])
        asked[:, place] = np.nan
        filled = np.asarray(imputer.transform(asked), dtype=np.float64)[:, kept[:place].sum()]
        apart = pairwise_distances(asked, X, metric=imputer.metric, missing_values=np.nan, ensure_all_finite=False)
        apart[np.isnan(apart) | np.isnan(X[:, place])] = np.inf
        near = np.argsort(apart, axis=1, kind="stable")[:, :WINDOW]
        apart, values = np.take_along_axis(apart, near, axis=1), X[near, place]
        known = np.isfinite(apart)
        weighed = known / np.maximum(apart, NEAREST) if weights == "distance" else known.astype(float)
        chosen = _choices(k)
        with np.errstate(invalid="ignore"):  # of those who have none of these numbers
            means = (np.where(known, values, 0.0) * weighed) @ chosen.T / (weighed @ chosen.T)
        right = np.abs(means - filled[:, None]) <= TOLERANCE * np.nanstd(X[:, place])
        sure = np.flatnonzero(right.sum(axis=1) == 1)
        giving = chosen[right[sure].argmax(axis=1)] > 0
        furthest = np.max(apart[sure], axis=1, where=giving, initial=0.0)
        np.add.at(found, near[sure][giving], 1.0)
        np.add.at(found, near[sure][~giving & (apart[sure] < furthest[:, None])], -np.inf)
    return np.where(found > 0, 1 - 0.5 ** np.maximum(found, 0.0), 0.0)


def n_values(X: Floats) -> Indices:
    """How many different numbers the columns have ``[d]``, of ``[n, d]``; NaN is none."""
    return np.array([len(np.unique(values[~np.isnan(values)])) for values in X.T], dtype=np.int64)


@cache
def _choices(k: int) -> Floats:
    """All ways to choose k of those near, 1 for each that is chosen ``[ways, WINDOW]``."""
    ways = np.array(list(combinations(range(WINDOW), k)))
    chosen = np.zeros((len(ways), WINDOW))
    np.put_along_axis(chosen, ways, 1.0, axis=1)
    return chosen
