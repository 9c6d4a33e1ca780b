"""Whose numbers an imputer fills in, where outputs tell the filled-in number to its last digits.

Nearest neighbours: a record without a number is answered with the mean of those of its k nearest training records. Who
knows the candidates looks for the k among its nearest ones that have this mean. With numbers of many digits only one
choice does; where several do, a choice is the likelier the nearer it is, as each candidate nearer than its furthest
donor would be one, had it been a training record. What queries say of a candidate adds up.

Models of each column by the others: trees, or a single neighbour, give a training record its own number back.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import binom
from sklearn.metrics import pairwise_distances

from leakgauge.arrays import Flags, Floats, Indices

WINDOW = 16
"""Nearest candidates among whom donors are looked for; half of them are members."""

N_QUERIES, MOST_COLUMNS = 200, 2
"""Queries without a number, and numbers of which one each is left out: those with most values."""

BESIDE = 0.1
"""Of the way from a candidate to another one where a query lies: at a candidate its own number would outweigh all
others where weights are inverse distances."""

TOLERANCE = 1e-9
"""Standard deviations by which a mean may be off."""

CLOSE = 1e-3
"""Standard deviations from its own number at which what is filled in says little of a candidate."""

MOST_MODELLED = 4
"""Columns filled in by models of the others, of those with most values."""

NEAREST = 1e-150
"""Smallest distance, whose inverse is still a number."""

SUREST = 1e-4
"""Probability that a query leaves at least."""


def scores_of_donors(imputer: Any, X: Floats, columns: Flags) -> Floats:
    """How sure it is that each candidate gave its number to another, or to itself ``[n]``.

    Args:
        imputer: a fitted KNNImputer.
        X: what it sees of the candidates ``[n, d]``.
        columns: of which outputs tell what is filled in ``[d]``.
    """
    k, weights, gap = imputer.n_neighbors, imputer.weights, imputer.missing_values
    gap = gap if isinstance(gap, int | float | np.number) else np.nan  # as pandas.NA is
    if not k < WINDOW <= len(X) or weights not in ("uniform", "distance") or callable(imputer.metric):
        return np.zeros(len(X))
    X, own = (np.where(table == gap, np.nan, table) for table in (X, imputer._fit_X))  # NaN equals nothing
    kept: Flags = np.asarray(~np.isnan(own).all(axis=0) | bool(imputer.keep_empty_features))
    told, rows = np.flatnonzero(columns & kept), np.unique(np.linspace(0, len(X) - 1, N_QUERIES).astype(int))
    choices, found = _Choices.of(k), np.zeros(len(X))
    for place in told[np.argsort(-n_values(X[:, told]), kind="stable")][:MOST_COLUMNS]:
        asked = X[rows] + BESIDE * (X[rows - 1] - X[rows])
        asked[:, place] = np.nan
        filled = np.asarray(imputer.transform(np.where(np.isnan(asked), gap, asked)), dtype=np.float64)
        filled = filled[:, kept[:place].sum()]
        apart = pairwise_distances(asked, X, metric=imputer.metric, missing_values=np.nan, ensure_all_finite=False)
        apart[np.isnan(apart) | np.isnan(X[:, place])] = np.inf
        near = np.argsort(apart, axis=1, kind="stable")[:, :WINDOW]
        apart, values = np.take_along_axis(apart, near, axis=1), X[near, place]
        known = np.isfinite(apart)
        weighed = known / np.maximum(apart, NEAREST) if weights == "distance" else known.astype(float)
        with np.errstate(invalid="ignore"):  # of those who have none of these numbers
            means = (np.where(known, values, 0.0) * weighed) @ choices.chosen.T / (weighed @ choices.chosen.T)
        right = np.abs(means - filled[:, None]) <= TOLERANCE * np.nanstd(X[:, place])
        np.add.at(found, near, np.where(known, choices.evidence(right), 0.0))
    return np.asarray(np.maximum(0.0, 2 * expit(found) - 1))


def scores_of_own_numbers(imputer: Any, X: Floats, columns: Flags) -> Floats:
    """How sure it is that each candidate's own number is filled in where it is left out ``[n]``.

    Args:
        imputer: a fitted IterativeImputer.
        X: what it sees of the candidates ``[n, d]``.
        columns: of which outputs tell what is filled in ``[d]``.
    """
    gap = imputer.missing_values if isinstance(imputer.missing_values, int | float | np.number) else np.nan
    kept: Flags = np.asarray(~np.isnan(imputer.initial_imputer_.statistics_) | bool(imputer.keep_empty_features))
    told, found = np.flatnonzero(columns & kept), np.zeros(len(X))
    for place in told[np.argsort(-n_values(X[:, told]), kind="stable")][:MOST_MODELLED]:
        own, asked = X[:, place], X.copy()
        asked[:, place] = gap
        filled = np.asarray(imputer.transform(asked), dtype=np.float64)[:, kept[:place].sum()]
        known: Flags = np.asarray(~np.isnan(own) & (own != gap))
        spread = float(own[known].std()) if known.any() else 0.0
        if spread == 0:
            continue
        _, which, times = np.unique(filled, return_inverse=True, return_counts=True)
        by_chance = np.log(len(X) / times[which])  # of others that number may be as well
        off = np.maximum(np.abs(filled - own) / spread, TOLERANCE)
        found += np.where(known, np.minimum(np.log1p(CLOSE / off), by_chance), 0.0)
    return np.asarray(2 * expit(found) - 1)


class _Choices(NamedTuple):
    """All ways to choose k of those near.

    Args:
        chosen: 1 for each that is ``[ways, WINDOW]``.
        members: how likely each is a member, by the choice ``[ways, WINDOW]``: of those further off nothing is said.
        chances: that it is this one, before anything is known ``[ways]``.
        elsewhere: that donors are further off.
    """

    chosen: Floats
    members: Floats
    chances: Floats
    elsewhere: float

    @classmethod
    @cache
    def of(cls, k: int) -> _Choices:
        """Of k donors."""
        ways = np.array(list(combinations(range(WINDOW), k)))
        chosen = np.zeros((len(ways), WINDOW))
        np.put_along_axis(chosen, ways, 1.0, axis=1)
        last = ways[:, -1:]
        members = chosen + 0.5 * (np.arange(WINDOW) > last)
        return cls(chosen, members, 0.5 ** (last[:, 0] + 1.0), float(binom.cdf(k - 1, WINDOW, 0.5)))

    def evidence(self, right: Flags) -> Floats:
        """Log-odds that each of those near is a member ``[queries, WINDOW]``, by which choices have the mean."""
        likely = right * self.chances
        chance = np.maximum(right.mean(axis=1), 1 / len(self.chances))  # that the mean of others is the same
        unknown = self.elsewhere * chance
        share = (likely @ self.members + 0.5 * unknown[:, None]) / (likely.sum(axis=1) + unknown)[:, None]
        return np.asarray(logit(np.clip(share, SUREST, 1 - SUREST)))


def n_values(X: Floats) -> Indices:
    """How many different numbers the columns have ``[d]``, of ``[n, d]``; NaN is none."""
    return np.array([len(np.unique(values[~np.isnan(values)])) for values in X.T], dtype=np.int64)
