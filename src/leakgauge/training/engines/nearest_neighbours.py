"""Nearest neighbours without each record in turn: one search over all records, which skips the record left out.

The neighbours of a query among the others are its neighbours among all, without t. What needs care is ties. If
several records are as far away as the k-th neighbour, which of them scikit-learn takes depends on the order of its
search, and so on the whole table. Where they have the same label it does not matter; where they differ the model
is trained, so that the answer is scikit-learn's in every case. Distances closer together than their own rounding
count as equal.

Behind steps that are fitted on the records (see :mod:`leakgauge.training.engines.fitted`) each model has a metric of
its own: differences in column j are divided by ``sqrt(rho_tj)``. A distance then is at least the one on the scale of
all records over ``max_j sqrt(rho_tj)``, so few candidates of one search hold the neighbours of nearly every query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.training.engines.closed_form import BLOCK_NUMBERS, UNIT_ROUNDOFF, Answers, ClosedForm, Solved
from leakgauge.training.engines.fitted import FittedSteps, alone_in_a_column
from leakgauge.training.engines.stateless import Given

ANSWER_TOLERANCE = 1e-9
"""Of a log-probability, absolute (at most k neighbours vote); of a value, relative to its size."""

METRICS = ("minkowski", "euclidean", "l2", "manhattan", "l1", "cityblock", "chebyshev")
"""Metrics whose distances are known to be the same for a pair of records in whatever company."""

NEIGHBOURS_AT_ONCE = 2**22
"""Neighbours held in memory while looking further."""

N_SPARE_CANDIDATES = 8
"""Candidates beyond the neighbours wanted and the record itself, where each model has a metric of its own."""

LARGEST_DISTORTION = 1e4
"""By how much squared lengths may change on the scale of a model before its distances lose digits that count."""

N_RECORDS_PROBED = 64
"""Records looked at beforehand, to see whether ties would leave most models to be trained anyway."""


@dataclass(frozen=True)
class Neighbours:
    """The nearest records of some queries, nearest first.

    Args:
        index: ``[models, neighbours]``.
        distances: ``[models, neighbours]``.
        slack: ``[models]``: distances whose *squares* differ by no more than this may be equal.
    """

    index: Indices
    distances: Floats
    slack: Floats

    def __getitem__(self, models: Indices) -> Neighbours:
        return Neighbours(self.index[models], self.distances[models], self.slack[models])

    def level_with(self, k: int) -> Flags:
        """Which neighbours may be as far away as the k-th, bool ``[models, neighbours]``."""
        squares = self.distances**2
        last = squares[:, k - 1 : k]
        with np.errstate(invalid="ignore"):  # distances that are infinite cannot be told apart
            level: Flags = ~(np.abs(squares - last) > 2 * self.slack[:, None] + 1e-12 * last)
        return level


class NearestNeighbours(ClosedForm):
    """``KNeighborsClassifier`` and ``KNeighborsRegressor``."""

    learners = ("neighbors.KNeighborsClassifier", "neighbors.KNeighborsRegressor")
    name = "nearest-neighbours"
    method = "one search over all records in which each skips itself; ties that matter are trained"
    tolerance: ClassVar[float] = ANSWER_TOLERANCE
    takes_sparse = True
    takes_fitted = True

    def solve(self, case: Given) -> NeighbourSearch | str:
        """Unusual metrics and weights, too few records and ties throughout are refused."""
        reason = _unsupported(case)
        if reason:
            return reason
        search = NeighbourSearch(case) if case.fitted is None else RescaledSearch(case, case.fitted)
        return _why_tied(search, case) or search


class NeighbourSearch(Solved):
    """scikit-learn's search over all records."""

    def __init__(self, case: Given) -> None:
        from sklearn.neighbors import NearestNeighbors

        wanted = case.estimator
        self.matrix, self.labels, self.n_classes = case.matrix, case.labels, len(case.classes)
        self.k, self.by_distance = int(wanted.n_neighbors), wanted.weights == "distance"
        self.model = NearestNeighbors(
            n_neighbors=wanted.n_neighbors,
            algorithm=wanted.algorithm,
            leaf_size=wanted.leaf_size,
            metric=wanted.metric,
            p=wanted.p,
        ).fit(case.matrix)
        self.expands = _is_euclidean(wanted) and not self._uses_tree(wanted.n_neighbors, len(case.labels) - 1)

    def own(self, rows: Indices) -> Answers:
        """Log-probabilities ``[m, classes]`` or values ``[m, 1]``."""
        return self.answers(self.matrix[rows], rows)

    def asked(self, rows: Indices, queries: Floats) -> Answers:
        """Log-probabilities ``[m, q, classes]`` or values ``[m, q, 1]``."""
        matrix = self._like_records(queries.reshape(-1, queries.shape[-1]))
        if queries.ndim == 3:
            table, open_ = self.answers(matrix, np.repeat(rows, queries.shape[1]))
            return table.reshape(*queries.shape[:2], -1), np.asarray(open_.reshape(queries.shape[:2]).any(axis=1))
        # A record matters to the queries that have it among their neighbours, or next to them; without any other the
        # answer is that of all records.
        everyone, open_ = self.answers(matrix, np.full(len(queries), -1))
        table = np.repeat(everyone[None], len(rows), axis=0)
        doubtful = np.full(len(rows), open_.any())
        near = self.model.kneighbors(matrix, min(self.k + 1, len(self.labels)), return_distance=False)
        for query in range(len(queries)):
            models = np.flatnonzero(np.isin(rows, near[query]))
            if len(models):
                alone = matrix[np.full(len(models), query)]
                table[models, query], open_ = self.answers(alone, rows[models])
                doubtful[models] |= open_
        return table, doubtful

    def answers(self, queries: Any, without: Indices) -> Answers:
        """What the model without a record says about a query, for pairs of them.

        Args:
            queries: ``[m, columns]``, in the form of the records.
            without: the record that is left out, -1 for none ``[m]``.

        Returns:
            ``[m, classes]`` log-probabilities or ``[m, 1]`` values; and bool ``[m]``: where ties or rounding leave
            them open.
        """
        from sklearn.utils.extmath import row_norms

        norms = row_norms(queries)
        return self._decided(lambda at, k: self._others(queries[at], norms[at], without[at], k), len(without))

    def _decided(self, look: Callable[[Indices, int], Neighbours], n_pairs: int) -> Answers:
        """The same from a search of so many neighbours for some of the pairs, by their places ``[m]``."""
        found = look(np.arange(n_pairs), self.k + 1)
        open_, unseen = _matters(found, self.labels, self.k)
        n_seen = self.k + 1
        while unseen.any():  # look further, until all that are level with the k-th are seen or two differ
            n_seen, again = 4 * n_seen + 64, np.flatnonzero(unseen)
            for at in np.array_split(again, 1 + len(again) * n_seen // NEIGHBOURS_AT_ONCE):
                open_[at], unseen[at] = _matters(look(at, n_seen), self.labels, self.k)
        nearest = Neighbours(found.index[:, : self.k], found.distances[:, : self.k], found.slack)
        weights, imprecise = _weights(nearest, self.by_distance)
        if self.n_classes:
            return _votes(self.labels[nearest.index], weights, self.n_classes), open_ | imprecise
        values = (self.labels[nearest.index] * weights).sum(axis=1) / weights.sum(axis=1)
        return values[:, None], open_ | imprecise

    def _uses_tree(self, k: int, n_left: int) -> bool:
        """Whether the models search by a tree, which subtracts features and does not expand squares."""
        # With k >= n // 2 scikit-learn leaves trees; a release that does not name its method counts as one without.
        return getattr(self.model, "_fit_method", "") in ("kd_tree", "ball_tree") and k < n_left // 2

    def _others(self, queries: Any, norms: Floats, without: Indices, k: int) -> Neighbours:
        """The k nearest records (all, if there are fewer) other than the one that is left out."""
        wanted = min(k + 1, self.matrix.shape[0])
        distances, index = self.model.kneighbors(queries, wanted)
        out = index == without[:, None]
        out[~out.any(axis=1), -1] = True  # further away, or hidden behind that many copies: all of them are level
        index = index[~out].reshape(len(without), wanted - 1)
        distances = distances[~out].reshape(len(without), wanted - 1)
        slack = np.zeros(len(without))
        if self.expands:
            # |x|^2 - 2xy + |y|^2 carries the rounding of its terms, however small the distance; |y| <= |x| + d.
            terms = 2 * norms + distances[:, -1]
            slack = (4 + np.sqrt(self.matrix.shape[1])) * UNIT_ROUNDOFF * terms**2
        return Neighbours(index, distances, slack)

    def _like_records(self, queries: Floats) -> Any:
        """Queries in the form of the records, dense or sparse."""
        from scipy.sparse import csr_matrix

        return queries if isinstance(self.matrix, np.ndarray) else csr_matrix(queries)


class RescaledSearch(NeighbourSearch):
    """The same behind steps that are fitted on the records: each model measures distances on its own scale.

    Args:
        case: what is given.
        fitted: the steps.
    """

    def __init__(self, case: Given, fitted: FittedSteps) -> None:
        scales_all = sum(len(columns) for columns, _ in fitted.scaled) == case.matrix.shape[1]
        may_be_sparse = not (isinstance(case.matrix, np.ndarray) and scales_all)  # by what an encoder makes of others
        case = case.dense()
        super().__init__(case)
        self.power = _power(case.estimator)
        change = fitted.without(np.arange(len(case.labels)))
        self.rho, distorted = change.rho, change.distortion > LARGEST_DISTORTION
        self.sizes = fitted.sizes(case.matrix)
        self.expands |= may_be_sparse and _is_euclidean(case.estimator)
        self.unclear = alone_in_a_column(case.matrix) | distorted

    def own(self, rows: Indices) -> Answers:
        """Log-probabilities ``[m, classes]`` or values ``[m, 1]``."""
        table, open_ = super().own(rows)
        return table, open_ | self.unclear[rows]

    def asked(self, rows: Indices, queries: Floats) -> Answers:
        """Log-probabilities ``[m, q, classes]`` or values ``[m, q, 1]``."""
        if queries.ndim == 3:
            table, open_ = super().asked(rows, queries)
            return table, open_ | self.unclear[rows]
        answers = [self._decided(partial(self._on_scale, query[None], rows), len(rows)) for query in queries]
        table = np.stack([values for values, _ in answers], axis=1)
        return table, np.any([open_ for _, open_ in answers], axis=0) | self.unclear[rows]

    def _others(self, queries: Any, norms: Floats, without: Indices, k: int) -> Neighbours:
        """The k nearest records (all, if there are fewer) other than the one that is left out."""
        return self._on_scale(queries, without, np.arange(len(without)), k)

    def _on_scale(self, queries: Floats, rows: Indices, at: Indices, k: int) -> Neighbours:
        """The k nearest records on the scale of the model without each record ``rows[at]``, but for the record.

        Args:
            queries: one for all ``[1, columns]``, or one for each ``[m, columns]``.
            rows: the records that are left out.
            at: the places ``[m]`` among them.
            k: how many.
        """
        without, n = rows[at], len(self.labels)
        wanted, rho = min(k, n - 1), self.rho[without]
        n_candidates = min(k + 1 + N_SPARE_CANDIDATES, n)
        reach, index = self.model.kneighbors(queries, n_candidates)
        index = np.broadcast_to(index, (len(at), n_candidates))
        index, distances = self._nearest(queries, without, index, wanted)
        # Error of the differences, of which each column carries its own; and of the terms if squares are expanded.
        stretched = (self.sizes + np.abs(queries)) / np.minimum(np.sqrt(rho), 1.0)
        differences = 8 * UNIT_ROUNDOFF * stretched.sum(axis=1)
        slack = 2 * differences * (distances[:, -1] + differences)
        if self.expands:
            slack += (4 + np.sqrt(rho.shape[1])) * UNIT_ROUNDOFF * 4 * (stretched**2).sum(axis=1)
        if n_candidates < n:
            further = reach[:, -1] ** 2 / rho.max(axis=1)  # no other record is nearer than this
            unsure = np.flatnonzero(~(distances[:, -1] ** 2 * (1 + 1e-9) + 4 * slack < further))
            everyone = np.broadcast_to(np.arange(n), (len(unsure), n))
            again = queries if len(queries) == 1 else queries[unsure]
            index[unsure], distances[unsure] = self._nearest(again, without[unsure], everyone, wanted)
        return Neighbours(index, distances, slack)

    def _nearest(self, queries: Floats, without: Indices, index: Indices, k: int) -> tuple[Indices, Floats]:
        """The k nearest of candidates ``[m, candidates]`` but for the one left out: places and distances ``[m, k]``."""
        nearest, distances = np.empty((len(without), k), dtype=np.int64), np.empty((len(without), k))
        step = max(1, BLOCK_NUMBERS // 8 // max(1, index.shape[1] * self.rho.shape[1]))
        for start in range(0, len(without), step):
            block = slice(start, start + step)
            asked = queries if len(queries) == 1 else queries[block]
            away = self.matrix[index[block]]
            away -= asked[:, None, :]
            away /= np.sqrt(self.rho[without[block]])[:, None, :]
            found = _lengths(away, self.power)
            found[index[block] == without[block, None]] = np.inf
            order = np.argsort(found, axis=1, kind="stable")[:, :k]
            nearest[block] = np.take_along_axis(index[block], order, axis=1)
            distances[block] = np.take_along_axis(found, order, axis=1)
        return nearest, distances


def _lengths(away: Floats, power: float) -> Floats:
    """Minkowski lengths of ``[..., columns]``."""
    if power == 2:
        return np.asarray(np.sqrt(np.einsum("...j,...j->...", away, away)))
    if np.isinf(power):
        return np.asarray(np.abs(away).max(axis=-1))
    away = np.abs(away)
    return np.asarray(away.sum(axis=-1) if power == 1 else (away**power).sum(axis=-1) ** (1 / power))


def _power(estimator: Any) -> float:
    """The power of the metric as a Minkowski distance."""
    named = {"euclidean": 2.0, "l2": 2.0, "manhattan": 1.0, "l1": 1.0, "cityblock": 1.0, "chebyshev": np.inf}
    return named.get(estimator.metric, float(estimator.p))


def _matters(found: Neighbours, labels: Any, k: int) -> tuple[Flags, Flags]:
    """Whether it is open which of several records is the k-th neighbour, and it matters.

    Returns:
        Bool ``[models]``: whether records that are level with the k-th have different labels; and bool ``[models]``:
        whether that cannot be told before more of the neighbours are looked at.
    """
    n_seen, n_others = found.index.shape[1], len(labels) - 1
    if n_seen <= k:  # all others are neighbours
        return np.zeros(len(found.index), dtype=bool), np.zeros(len(found.index), dtype=bool)
    level = found.level_with(k)
    differ = (level & (labels[found.index] != labels[found.index[:, k - 1 : k]])).any(axis=1)
    choice = level[:, k]
    more = level[:, -1] & (n_seen < n_others)
    return choice & differ, choice & ~differ & more


def _weights(nearest: Neighbours, by_distance: bool) -> tuple[Floats, Flags]:
    """Weights of the neighbours ``[models, k]`` as scikit-learn has them, and where rounding could be seen in them."""
    if not by_distance:
        return np.ones(nearest.distances.shape), np.zeros(len(nearest.distances), dtype=bool)
    inverse = 1.0 / nearest.distances
    infinite = np.isinf(inverse)
    copies = np.asarray(infinite.any(axis=1))  # neighbours at distance 0 share all of the weight
    imprecise = ~(nearest.slack <= ANSWER_TOLERANCE * nearest.distances[:, 0] ** 2)
    # A distance of exactly 0 is trusted only where it was not found by subtracting large numbers.
    imprecise = (imprecise | copies) & (nearest.slack != 0)
    return np.where(copies[:, None], infinite, inverse), imprecise


def _votes(labels: Indices, weights: Floats, n_classes: int) -> Floats:
    """Log-probabilities ``[models, classes]``: each class's share of the weights."""
    n = len(labels)
    place = (np.arange(n)[:, None] * n_classes + labels).ravel()
    votes = np.bincount(place, weights.ravel(), n * n_classes).reshape(n, n_classes)
    logs: Floats = np.log(votes / votes.sum(axis=1, keepdims=True))
    return logs


def _is_euclidean(estimator: Any) -> bool:
    return estimator.metric in ("euclidean", "l2") or (estimator.metric == "minkowski" and estimator.p == 2)


def _unsupported(case: Given) -> str | None:
    wanted = case.estimator
    if wanted.weights not in (None, "uniform", "distance"):
        return "weights=... is supported for 'uniform' and 'distance' only"
    if not isinstance(wanted.metric, str) or wanted.metric not in METRICS:
        return f"metric={wanted.metric!r} is not one of {', '.join(METRICS)}"
    if wanted.metric_params:
        return "metric_params is not supported"
    if wanted.metric == "minkowski" and not (isinstance(wanted.p, Real) and float(wanted.p) >= 1):
        return f"p={wanted.p!r} is not at least 1"
    if wanted.algorithm not in ("auto", "brute", "kd_tree", "ball_tree"):
        return f"algorithm={wanted.algorithm!r} is not known"
    if not isinstance(wanted.n_neighbors, Integral) or int(wanted.n_neighbors) < 1:
        return f"n_neighbors={wanted.n_neighbors!r} is not a whole number of at least 1"
    left = len(case.labels) - 1
    if int(wanted.n_neighbors) > left:
        return f"n_neighbors={wanted.n_neighbors} is more than the {left} records that each model is trained on"
    return None


def _why_tied(search: NeighbourSearch, case: Given) -> str | None:
    if len(case.removed) <= 4 * N_RECORDS_PROBED:
        return None
    probe = case.removed[np.linspace(0, len(case.removed) - 1, N_RECORDS_PROBED).astype(np.int64)]
    _, open_ = search.own(probe)
    if 2 * open_.sum() <= N_RECORDS_PROBED:
        return None
    return (
        f"which neighbour is the k-th is open for {int(open_.sum())} of {N_RECORDS_PROBED} records looked at (ties), "
        "so that most models must be trained anyway"
    )
