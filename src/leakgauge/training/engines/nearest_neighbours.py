"""Nearest neighbours without each record in turn: one search over all records, which skips the record left out.

The neighbours of a query among the others are its neighbours among all, without t. What needs care is ties. If
several records are as far away as the k-th neighbour, which of them scikit-learn takes depends on the order of its
search, and so on the whole table. Where they have the same label it does not matter; where they differ the model
is trained, so that the answer is scikit-learn's in every case. Distances closer together than their own rounding
count as equal.

Behind steps that are fitted on the records, all records are on another scale without t, by factors that are known
(:mod:`leakgauge.training.engines.fitted`). Who is nearest on that scale is looked for among those who are near on the
scale with t. Whoever is not seen is at least as far as the last one that is, divided by the largest factor; where that
is not far enough, more are looked at.

Neighbours within a radius are a sum over records, from which one is taken off. That, and weights and metrics of the
user's, are for who needs no exact answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.training.engines.closed_form import UNIT_ROUNDOFF, Answers, ClosedForm, Solved, dense
from leakgauge.training.engines.fitted import FittedSteps
from leakgauge.training.engines.stateless import Given

ANSWER_TOLERANCE = 1e-9
"""Of a log-probability, absolute (at most k neighbours vote); of a value, relative to its size."""

METRICS = ("minkowski", "euclidean", "l2", "manhattan", "l1", "cityblock", "chebyshev")
"""Metrics whose distances are known to be the same for a pair of records in whatever company."""

NEIGHBOURS_AT_ONCE = 2**22
"""Neighbours held in memory while looking further."""

NUMBERS_AT_ONCE = 2**15
"""Differences from neighbours held in memory while lengths on other scales are found: few enough to stay in cache."""

N_CANDIDATES = 8
"""Neighbours looked at, beside k, before those on another scale are chosen among them."""

N_MODELS_PROBED = 64
"""Models asked beforehand, to see whether ties would leave most of them to be trained anyway."""


@dataclass(frozen=True)
class Neighbours:
    """The nearest records of some queries, nearest first.

    Args:
        index: ``[models, neighbours]``.
        distances: ``[models, neighbours]``.
        slack: ``[models]``: distances whose *squares* differ by no more than this may be equal.
        beyond: ``[models]``: no record that is not among them is nearer than this.
    """

    index: Indices
    distances: Floats
    slack: Floats
    beyond: Floats

    def level_with(self, k: int) -> Flags:
        """Which neighbours may be as far away as the k-th, bool ``[models, neighbours]``."""
        last = self.distances[:, k - 1 : k]
        with np.errstate(invalid="ignore"):  # distances that are infinite cannot be told apart
            level: Flags = ~(np.abs(self.distances**2 - last**2) > self._blur(last))
        return level

    def more_level_with(self, k: int) -> Flags:
        """Whether records that are not among them may be as near as the k-th, bool ``[models]``."""
        last = self.distances[:, k - 1 : k]
        with np.errstate(invalid="ignore"):
            level: Flags = ~(self.beyond[:, None] ** 2 - last**2 > self._blur(last))
        return level[:, 0]

    def _blur(self, distances: Floats) -> Floats:
        return 2 * self.slack[:, None] + 1e-12 * distances**2


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
        search = NeighbourSearch(case)
        return _why_tied(search, case) or search


class TiedNeighbours(NearestNeighbours):
    """The same for who needs no exact answers (:meth:`Ready.nearly`), with any metric and weights.

    Of neighbours that are level any count, and earlier steps stay as they are fitted on all records.
    """

    def solve(self, case: Given) -> NeighbourSearch | str:
        """Distances that are given and too few records are refused."""
        return _precomputed(case) or _wrong_number(case) or NeighbourSearch(case, looks_further=False)


class RadiusNeighbours(ClosedForm):
    """``RadiusNeighborsClassifier`` and ``RadiusNeighborsRegressor``, for who needs no exact answers.

    Records as far away as the radius count as scikit-learn's search over all records has them, and earlier steps stay
    as they are fitted on all.
    """

    learners = ("neighbors.RadiusNeighborsClassifier", "neighbors.RadiusNeighborsRegressor")
    name = "radius-neighbours"
    method = "one search over all records; what each adds to the sums over those within the radius is taken off"
    tolerance: ClassVar[float] = ANSWER_TOLERANCE
    takes_sparse = True
    takes_fitted = True

    def solve(self, case: Given) -> RadiusSearch | str:
        """Distances that are given are refused."""
        return _precomputed(case) or RadiusSearch(case)


class NeighbourSearch(Solved):
    """scikit-learn's search over all records.

    Args:
        case: the job.
        looks_further: until all records that are level with the last neighbour are seen, where it matters, and for
            neighbours on the scale without each record.
    """

    def __init__(self, case: Given, *, looks_further: bool = True) -> None:
        from sklearn.neighbors import NearestNeighbors

        wanted, self.looks_further = case.estimator, looks_further
        self.matrix, self.labels, self.n_classes = case.matrix, case.labels, len(case.classes)
        self.k, self.weights = int(wanted.n_neighbors), wanted.weights
        self.model = NearestNeighbors(n_neighbors=wanted.n_neighbors, **_search_of(wanted)).fit(case.matrix)
        self.expands = _is_euclidean(wanted) and not self._uses_tree(wanted.n_neighbors, len(case.labels) - 1)
        fitted = case.fitted if looks_further else None
        self.rescaling = None if fitted is None else Rescaling.of(case, fitted, self.expands)
        self.n_seen = self.k + 1 if self.rescaling is None else self.k + N_CANDIDATES

    def own(self, rows: Indices) -> Answers:
        """Log-probabilities ``[m, classes]`` or values ``[m, 1]``."""
        answers, open_ = self.answers(self.matrix[rows], rows)
        return answers, open_ | self._undone(rows)

    def asked(self, rows: Indices, queries: Floats) -> Answers:
        """Log-probabilities ``[m, q, classes]`` or values ``[m, q, 1]``."""
        matrix = _like(queries.reshape(-1, queries.shape[-1]), self.matrix)
        if queries.ndim == 3:
            table, open_ = self.answers(matrix, np.repeat(rows, queries.shape[1]))
            doubtful = open_.reshape(queries.shape[:2]).any(axis=1) | self._undone(rows)
            return table.reshape(*queries.shape[:2], -1), np.asarray(doubtful)
        if self.rescaling is not None:
            return self._asked_on_other_scales(self.rescaling.without(rows), matrix)
        # A record matters to the queries that have it among their neighbours, or next to them; without any other the
        # answer is that of all records.
        near = self._seen(matrix, self.n_seen)
        nobody = np.full(len(queries), -1)
        everyone, open_ = self._answers_of(self._left(*near, matrix, nobody), matrix, nobody)
        table = np.repeat(everyone[None], len(rows), axis=0)
        doubtful = np.full(len(rows), open_.any())
        for query, (distances, index) in enumerate(zip(*near, strict=True)):
            models = np.flatnonzero(np.isin(rows, index))
            if len(models):
                again = np.zeros(len(models), dtype=np.int64)
                alone = matrix[again + query]
                found = self._left(distances[None][again], index[None][again], alone, rows[models])
                table[models, query], open_ = self._answers_of(found, alone, rows[models])
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
        return self._answers_of(self._others(queries, without, self.n_seen), queries, without)

    def _answers_of(self, found: Neighbours, queries: Any, without: Indices) -> Answers:
        """The same, where some of the neighbours are known."""
        open_, unseen = _matters(found, self.labels, self.k)
        index, distances, slack = found.index[:, : self.k], found.distances[:, : self.k], found.slack
        n_seen, n_others = found.index.shape[1], len(self.labels) - 1
        while self.looks_further and unseen.any():  # until all that are level with the k-th are seen or two differ
            n_seen, again = min(4 * n_seen + 64, n_others), np.flatnonzero(unseen)
            for part in np.array_split(again, 1 + len(again) * n_seen // NEIGHBOURS_AT_ONCE):
                further = self._others(queries[part], without[part], n_seen)
                open_[part], unseen[part] = _matters(further, self.labels, self.k)
                index[part], distances[part] = further.index[:, : self.k], further.distances[:, : self.k]
                slack[part] = further.slack
        weights, imprecise = _weights(distances, slack, self.weights)
        if self.n_classes:
            return _votes(self.labels[index], weights, self.n_classes), open_ | unseen | imprecise
        values = (self.labels[index] * weights).sum(axis=1) / weights.sum(axis=1)
        return values[:, None], open_ | unseen | imprecise

    def _asked_on_other_scales(self, lengths: Lengths, queries: Any) -> Answers:
        """Answers ``[m, q, k]`` of the models without some records to the same queries ``[q, columns]``."""
        index, beyond = self._near(queries, min(self.n_seen + 1, len(self.labels)))
        table = np.empty((len(lengths.records), queries.shape[0], max(self.n_classes, 1)))
        doubtful = self._undone(lengths.records)
        for query in range(queries.shape[0]):
            one = queries[np.full(len(lengths.records), query)]
            found = lengths.nearest(index[[query]], beyond[[query]], dense(queries[[query]]), self.k)
            table[:, query], open_ = self._answers_of(found, one, lengths.records)
            doubtful |= open_
        return table, doubtful

    def _undone(self, rows: Indices) -> Flags:
        return np.zeros(len(rows), dtype=bool) if self.rescaling is None else self.rescaling.undone[rows]

    def _uses_tree(self, k: int, n_left: int) -> bool:
        """Whether the models search by a tree, which subtracts features and does not expand squares."""
        # With k >= n // 2 scikit-learn leaves trees; a release that does not name its method counts as one without.
        return getattr(self.model, "_fit_method", "") in ("kd_tree", "ball_tree") and k < n_left // 2

    def _near(self, queries: Any, n: int) -> tuple[Indices, Floats]:
        """The n nearest of all records ``[m, n]``, and ``[m]``: no nearer than this is any other."""
        distances, index = self.model.kneighbors(queries, n)
        if n == len(self.labels):
            return index, np.full(len(index), np.inf)
        return index, np.sqrt(np.maximum(distances[:, -1] ** 2 - self._slack(queries, distances[:, -1]), 0.0))

    def _others(self, queries: Any, without: Indices, k: int) -> Neighbours:
        """The k nearest records (all, if there are fewer) other than the one that is left out."""
        if self.rescaling is not None:
            index, beyond = self._near(queries, min(k + 1, self.matrix.shape[0]))
            return self.rescaling.without(without).nearest(index, beyond, dense(queries), self.k)
        return self._left(*self._seen(queries, k), queries, without)

    def _seen(self, queries: Any, k: int) -> tuple[Floats, Indices]:
        """Distances and records ``[m, k + 1]``, of which one may be left out, nearest first."""
        distances, index = self.model.kneighbors(queries, min(k + 1, self.matrix.shape[0]))
        return distances, index

    def _left(self, distances: Floats, index: Indices, queries: Any, without: Indices) -> Neighbours:
        """Those that are left of what was seen ``[m, n]``, one fewer."""
        out = index == without[:, None]
        out[~out.any(axis=1), -1] = True  # further away, or hidden behind that many copies: all of them are level
        index = index[~out].reshape(len(out), out.shape[1] - 1)
        distances = distances[~out].reshape(index.shape)
        return Neighbours(index, distances, self._slack(queries, distances[:, -1]), distances[:, -1])

    def _slack(self, queries: Any, distances: Floats) -> Floats:
        """What rounding does to the square of a distance, or of a smaller one, to each query ``[m]``."""
        from sklearn.utils.extmath import row_norms

        if not self.expands:
            return np.zeros(len(distances))
        return _expansion_slack(2 * row_norms(queries) + distances, self.matrix.shape[1])  # |y| <= |x| + d


class RadiusSearch(Solved):
    """scikit-learn's search for all records within a radius.

    Answers are NaN where nobody is left within it.

    Args:
        case: the job.
    """

    def __init__(self, case: Given) -> None:
        from sklearn.neighbors import NearestNeighbors

        self.matrix, self.weights, self.radius = case.matrix, case.estimator.weights, case.estimator.radius
        self.voting = len(case.classes) > 0
        # What each record adds: its vote or its value ``[records, k]``.
        self.said = np.eye(len(case.classes))[case.labels] if self.voting else case.labels[:, None].astype(np.float64)
        self.model = NearestNeighbors(radius=self.radius, **_search_of(case.estimator)).fit(case.matrix)
        self._last: tuple[Floats, Floats] | None = None

    def own(self, rows: Indices) -> Answers:
        """Log-probabilities ``[m, classes]`` or values ``[m, 1]``."""
        table, doubtful = self.asked(rows, dense(self.matrix[rows])[:, None])
        return table[:, 0], doubtful

    def asked(self, rows: Indices, queries: Floats) -> Answers:
        """Log-probabilities ``[m, q, classes]`` or values ``[m, q, 1]``."""
        within = self._within(queries)
        if queries.ndim == 3:
            own = np.take_along_axis(within, rows[:, None, None], axis=2)[..., 0]
        else:
            own = within[:, rows].T
        left, n_left = within.sum(axis=-1) - own, (within != 0).sum(axis=-1) - (own != 0)
        said = within @ self.said - own[..., None] * self.said[rows][:, None]
        shares = np.where((n_left > 0)[..., None], said / left[..., None], np.nan)
        table = np.log(np.maximum(shares, 0.0)) if self.voting else shares
        return table, np.zeros(len(rows), dtype=bool)

    def _within(self, queries: Floats) -> Floats:
        """The weight of each record in the answers to queries ``[..., q, records]``, 0 beyond the radius."""
        if self._last is None or self._last[0] is not queries:  # all models are asked the same, some after others
            flat = queries.reshape(-1, queries.shape[-1])
            distances, index = self.model.radius_neighbors(_like(flat, self.matrix))
            weights = self._weighed(distances)
            found = np.zeros((len(flat), self.matrix.shape[0]))
            for row, (place, weight) in enumerate(zip(index, weights, strict=True)):
                found[row, place] = weight
            self._last = queries, found.reshape(*queries.shape[:-1], -1)
        return self._last[1]

    def _weighed(self, distances: Any) -> Any:
        """Of the records within the radius of each query, nearest or not first, as scikit-learn has them."""
        if callable(self.weights):
            return self.weights(distances)
        if self.weights != "distance":
            return [np.ones(len(one)) for one in distances]
        return [np.where(one.min(initial=1.0) > 0, 1 / one, one == 0) for one in distances]


@dataclass(frozen=True)
class Rescaling:
    """How far records are apart on the scales of steps that are fitted without one of them.

    Args:
        matrix: dense, on the scale of the steps that were fitted on all ``[records, columns]``.
        steps: these.
        power: of the differences that are summed, 1 or 2.
        expands: whether scikit-learn finds distances by multiplying squares out.
        undone: without which records a column becomes constant and that can be seen, so that models are to be trained,
            bool ``[records]``.
    """

    matrix: Floats
    steps: FittedSteps
    power: int
    expands: bool
    undone: Flags

    @classmethod
    def of(cls, case: Given, steps: FittedSteps, expands: bool) -> Rescaling:
        """That of a case.

        A column that is constant without a record adds the same to all distances from it, which votes do not see
        unless the column is large.
        """
        wanted, matrix = case.estimator, dense(case.matrix)
        undone = steps.constant_without(matrix, scaled=wanted.weights != "distance")
        return cls(matrix, steps, 2 if _is_euclidean(wanted) else 1, expands, undone)

    def without(self, records: Indices) -> Lengths:
        """The scales without each of some records ``[m]``."""
        return Lengths(self, records, self.steps.without(records).rho)

    @cached_property
    def largest(self) -> Floats:
        """The largest absolute value of each column ``[columns]``."""
        return np.asarray(np.maximum(self.matrix.max(axis=0), -self.matrix.min(axis=0)))


@dataclass(frozen=True)
class Lengths:
    """Distances on the scales without some records: ``sum_j |difference_j|^p / rho_tj^(p/2)`` is that to the power p.

    Args:
        rescaling: what is the same for all.
        records: ``[m]``.
        rho: see :mod:`leakgauge.training.engines.fitted`, ``[m, columns]``.
    """

    rescaling: Rescaling
    records: Indices
    rho: Floats

    def nearest(self, index: Indices, beyond: Floats, queries: Floats, k: int) -> Neighbours:
        """The nearest of some records, without the one that is left out, to a query each or the same one.

        Args:
            index: the records ``[m, neighbours]`` or ``[1, neighbours]``.
            beyond: on the scale of all records, no other record is nearer than this ``[m]`` or ``[1]``.
            queries: ``[m, columns]`` or ``[1, columns]``.
            k: how many are to vote.
        """
        power = self.rescaling.power
        distances = self._powers(index, queries) ** (1 / power)
        distances[index == self.records[:, None]] = np.inf
        order = np.argsort(distances, axis=1, kind="stable")
        distances = np.take_along_axis(distances, order, axis=1)
        index = np.take_along_axis(np.broadcast_to(index, distances.shape), order, axis=1)
        far = beyond * (1 - 1e-9) / np.sqrt(self.rho.max(axis=1))
        slack = self._slack(queries, distances[:, k - 1])
        return Neighbours(index[:, :-1], distances[:, :-1], slack, np.minimum(far, distances[:, -1]))

    def _powers(self, index: Indices, queries: Floats) -> Floats:
        """Distances to the power of p ``[m, neighbours]``."""
        matrix, power = self.rescaling.matrix, self.rescaling.power
        weights = self.rho ** (-power / 2)
        if len(index) == 1:
            return np.asarray(weights @ (np.abs(matrix[index[0]] - queries) ** power).T)
        found = np.empty(index.shape)
        step = max(1, NUMBERS_AT_ONCE // max(1, index.shape[1] * matrix.shape[1]))
        for part in (slice(start, start + step) for start in range(0, len(index), step)):
            away = matrix.take(index[part], axis=0)  # in place from here on, which is several times faster
            away -= queries[part, None]
            np.multiply(away, away, out=away) if power == 2 else np.abs(away, out=away)
            found[part] = np.matmul(away, weights[part, :, None])[:, :, 0]
        return found

    def _slack(self, queries: Floats, distances: Floats) -> Floats:
        """What rounding may do to the square of a distance ``[m]``, here and in scikit-learn."""
        rescaling = self.rescaling
        largest, sizes, roots = rescaling.largest, rescaling.steps.sizes, 1 / np.sqrt(self.rho)
        share = rescaling.steps.scale_error(self.rho)
        values = 8 * UNIT_ROUNDOFF * ((np.abs(queries) + largest + sizes) * roots).sum(axis=1)
        slack = 2 * distances * (distances * share + values)
        if rescaling.expands:
            # Other records are no further from 0 than twice the largest, wherever a scaler puts that.
            terms = 4 * np.sqrt(((largest * roots) ** 2).sum(axis=1)) + distances
            slack = slack + _expansion_slack(terms, len(largest))
        return np.asarray(slack)


def _expansion_slack(terms: Floats, n_columns: int) -> Floats:
    """Rounding of ``|x|^2 - 2xy + |y|^2``, however small that is, with terms ``|x| + |y|``."""
    return np.asarray((4 + np.sqrt(n_columns)) * UNIT_ROUNDOFF * terms**2)


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
    choice = level[:, k] & differ
    return choice, ~choice & found.more_level_with(k) & (n_seen < n_others)


def _weights(distances: Floats, slack: Floats, weights: Any) -> tuple[Floats, Flags]:
    """Weights of the neighbours ``[models, k]`` as scikit-learn has them, and where rounding could be seen in them."""
    if callable(weights):
        return np.asarray(weights(distances), dtype=np.float64), np.zeros(len(distances), dtype=bool)
    if weights != "distance":
        return np.ones(distances.shape), np.zeros(len(distances), dtype=bool)
    inverse = 1.0 / distances
    infinite = np.isinf(inverse)
    copies = np.asarray(infinite.any(axis=1))  # neighbours at distance 0 share all of the weight
    imprecise = ~(slack <= ANSWER_TOLERANCE * distances[:, 0] ** 2)
    # A distance of exactly 0 is trusted only where it was not found by subtracting large numbers.
    imprecise = (imprecise | copies) & (slack != 0)
    return np.where(copies[:, None], infinite, inverse), imprecise


def _votes(labels: Indices, weights: Floats, n_classes: int) -> Floats:
    """Log-probabilities ``[models, classes]``: each class's share of the weights."""
    n = len(labels)
    place = (np.arange(n)[:, None] * n_classes + labels).ravel()
    votes = np.bincount(place, weights.ravel(), n * n_classes).reshape(n, n_classes)
    logs: Floats = np.log(votes / votes.sum(axis=1, keepdims=True))
    return logs


def _like(queries: Floats, records: Any) -> Any:
    """Queries in the form of the records, dense or sparse."""
    from scipy.sparse import csr_matrix

    return queries if isinstance(records, np.ndarray) else csr_matrix(queries)


def _search_of(estimator: Any) -> dict[str, Any]:
    """How an estimator searches."""
    return {name: getattr(estimator, name) for name in ("algorithm", "leaf_size", "metric", "metric_params", "p")}


def _is_euclidean(estimator: Any) -> bool:
    return estimator.metric in ("euclidean", "l2") or (estimator.metric == "minkowski" and estimator.p == 2)


def _is_manhattan(estimator: Any) -> bool:
    named = estimator.metric in ("manhattan", "l1", "cityblock")
    return named or (estimator.metric == "minkowski" and estimator.p == 1)


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
    if case.fitted is not None and not _is_euclidean(wanted) and not _is_manhattan(wanted):
        return "behind steps that are fitted on the data, distances with p=1 and p=2 are supported only"
    return _wrong_number(case)


def _precomputed(case: Given) -> str | None:
    """Why distances are not known."""
    return "metric='precomputed' is not supported" if case.estimator.metric == "precomputed" else None


def _wrong_number(case: Given) -> str | None:
    """Why there are not as many neighbours as are asked for."""
    wanted = case.estimator
    if not isinstance(wanted.n_neighbors, Integral) or int(wanted.n_neighbors) < 1:
        return f"n_neighbors={wanted.n_neighbors!r} is not a whole number of at least 1"
    left = len(case.labels) - 1
    if int(wanted.n_neighbors) > left:
        return f"n_neighbors={wanted.n_neighbors} is more than the {left} records that each model is trained on"
    return None


def _why_tied(search: NeighbourSearch, case: Given) -> str | None:
    if len(case.removed) <= 4 * N_MODELS_PROBED:
        return None
    models = np.linspace(0, len(case.removed) - 1, N_MODELS_PROBED).astype(np.int64)
    if case.index is None:
        queries = dense(case.queries)
    else:
        index = case.index[models]
        queries = dense(case.matrix[index.ravel()]).reshape(*index.shape, -1)
    _, open_ = search.asked(case.removed[models], queries)
    if 2 * open_.sum() <= N_MODELS_PROBED:
        return None
    return (
        f"which neighbour is the k-th is open for {int(open_.sum())} of {N_MODELS_PROBED} models asked (ties), "
        "so that most models must be trained anyway"
    )
