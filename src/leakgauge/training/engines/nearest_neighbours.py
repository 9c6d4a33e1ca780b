"""Nearest neighbours without each record in turn: one search over all records, in which each skips itself.

The neighbours of record t among the others are its neighbours among all, without t. What needs care is ties. If
several records are as far away as the k-th neighbour, which of them scikit-learn takes depends on the order of its
search, and so on the whole table. Where they have the same label it does not matter; where they differ the model
is trained, so that the answer is scikit-learn's in every case. Distances closer together than their own rounding
count as equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from leakgauge.training.engines.base import Engine
from leakgauge.training.engines.stateless import Flags, Floats, Given, fill_by_training, given
from leakgauge.training.job import Job
from leakgauge.training.subsets import Indices
from leakgauge.training.threads import one_thread

TOLERANCE = 1e-9
"""Of a log-probability, absolute (at most k neighbours vote); of a value, relative to its size."""

UNIT = 2.0**-53
"""Relative error of one operation in float64."""

METRICS = ("minkowski", "euclidean", "l2", "manhattan", "l1", "cityblock", "chebyshev")
"""Metrics whose distances are known to be the same for a pair of records in whatever company."""

AT_ONCE = 2**22
"""Neighbours held in memory while looking further."""

PROBE = 64
"""Records looked at beforehand, to see whether ties would leave most models to be trained anyway."""


@dataclass(frozen=True)
class Neighbours:
    """The nearest other records of some records, nearest first.

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


class NearestNeighbours(Engine):
    """``KNeighborsClassifier`` and ``KNeighborsRegressor``."""

    name = "nearest-neighbours"
    method = "one search over all records in which each skips itself; ties that matter are trained"
    tolerance: ClassVar[float] = TOLERANCE

    def refuses(self, job: Job) -> str | None:
        """Another learner or sort of job, unusual metrics and weights, too few records, or ties throughout."""
        case = given(job, _kinds(), sparse=True)
        if isinstance(case, str):
            return case
        return _unsupported(case) or _why_tied(case)

    def run(self, job: Job) -> Floats:
        """The answers: log-probabilities ``[models, 1, classes]`` or values ``[models, 1, 1]``."""
        case = given(job, _kinds(), sparse=True)
        assert isinstance(case, Given)  # a job that is refused is not run
        with np.errstate(all="ignore"), one_thread():
            table, doubtful = answers_without(case, case.removed)
        return fill_by_training(job, table[:, None, :], doubtful)


def answers_without(case: Given, removed: Indices) -> tuple[Floats, Flags]:
    """What the models without each record say about it.

    Returns:
        ``[models, classes]`` log-probabilities or ``[models, 1]`` values; and bool ``[models]``: where ties or
        rounding leave them open.
    """
    k = int(case.estimator.n_neighbors)
    search = _Search(case)
    found = search.others(removed, k + 1)
    open_, unseen = _matters(found, case.labels, k)
    n_seen = k + 1
    while unseen.any():  # look further, until all that are level with the k-th are seen or two differ
        n_seen, again = 4 * n_seen + 64, np.flatnonzero(unseen)
        for part in np.array_split(again, 1 + len(again) * n_seen // AT_ONCE):
            open_[part], unseen[part] = _matters(search.others(removed[part], n_seen), case.labels, k)
    nearest = Neighbours(found.index[:, :k], found.distances[:, :k], found.slack)
    weights, imprecise = _weights(nearest, case.estimator.weights == "distance")
    if len(case.classes):
        return _votes(case.labels[nearest.index], weights, len(case.classes)), open_ | imprecise
    values = (case.labels[nearest.index] * weights).sum(axis=1) / weights.sum(axis=1)
    return values[:, None], open_ | imprecise


class _Search:
    """scikit-learn's search over all records."""

    def __init__(self, case: Given) -> None:
        from sklearn.neighbors import NearestNeighbors
        from sklearn.utils.extmath import row_norms

        wanted = case.estimator
        self.matrix = case.matrix
        self.norms = row_norms(case.matrix)
        self.model = NearestNeighbors(
            n_neighbors=wanted.n_neighbors,
            algorithm=wanted.algorithm,
            leaf_size=wanted.leaf_size,
            metric=wanted.metric,
            p=wanted.p,
        ).fit(case.matrix)
        self.expands = _is_euclidean(wanted) and not self._uses_tree(wanted.n_neighbors, len(case.labels) - 1)

    def _uses_tree(self, k: int, n_left: int) -> bool:
        """Whether the models search by a tree, which subtracts features and does not expand squares."""
        # With k >= n // 2 scikit-learn leaves trees; a release that does not name its method counts as one without.
        return getattr(self.model, "_fit_method", "") in ("kd_tree", "ball_tree") and k < n_left // 2

    def others(self, rows: Indices, k: int) -> Neighbours:
        """The k nearest records (all, if there are fewer) other than the row itself."""
        wanted = min(k + 1, self.matrix.shape[0])
        distances, index = self.model.kneighbors(self.matrix[rows], wanted)
        own = index == rows[:, None]
        own[~own.any(axis=1), -1] = True  # hidden behind that many copies of itself: all of them are level
        index = index[~own].reshape(len(rows), wanted - 1)
        distances = distances[~own].reshape(len(rows), wanted - 1)
        slack = np.zeros(len(rows))
        if self.expands:
            # |x|^2 - 2xy + |y|^2 carries the rounding of its terms, however small the distance; |y| <= |x| + d.
            terms = 2 * self.norms[rows] + distances[:, -1]
            slack = (4 + np.sqrt(self.matrix.shape[1])) * UNIT * terms**2
        return Neighbours(index, distances, slack)


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
    imprecise = ~(nearest.slack <= TOLERANCE * nearest.distances[:, 0] ** 2)
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


def _kinds() -> tuple[type, ...]:
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    return (KNeighborsClassifier, KNeighborsRegressor)


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


def _why_tied(case: Given) -> str | None:
    if len(case.removed) <= 4 * PROBE:
        return None
    probe = case.removed[np.linspace(0, len(case.removed) - 1, PROBE).astype(np.int64)]
    with np.errstate(all="ignore"), one_thread():
        _, open_ = answers_without(case, probe)
    if 2 * open_.sum() <= PROBE:
        return None
    return (
        f"which neighbour is the k-th is open for {int(open_.sum())} of {PROBE} records looked at (ties), so that most "
        "models must be trained anyway"
    )
