"""Multinomial L2 logistic regression on any subsets of a pool, many models at once, each to a verified minimum.

With softmax probabilities p, one-hot labels y, costs c and penalties P, a model W ``[classes, d]`` is the minimum of

    ``F(W) = sum over classes of w'Pw / 2 + sum over its records of c_i loss(W x_i, y_i)``.

Models trained on parts of one pool have much in common: the second derivatives of each are roughly those of the whole
pool times the share of the records that it has. The diagonal blocks of the latter, one for each class, are inverted
once and are the metric M of the iterations for all models. The models go in step, so that the inverse is a product of
matrices for all of them, while each has rows of its own, shared by models whose training sets are nearly the same:

1. nonlinear conjugate gradients (Hager and Zhang 2005) in single precision, from the pool's solution;
2. Newton's method: gradients in double precision, steps by conjugate gradients in single precision.

Every model is verified by its gradient, in double precision, and not by how many steps were taken: the penalty makes F
strongly convex in the coefficients, so that the gradient says how far the answers can be off (see
:func:`_answer_error`). What cannot be verified is solved alone, or trained as asked and counted.

scikit-learn stops when the *mean* gradient is below ``tol``. What is found here is the minimum itself, that is, what
scikit-learn finds at a far smaller tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices, Members, Numbers, Singles
from leakgauge.training.engines.base import Refusal, RefusalKind
from leakgauge.training.engines.logistic.multinomial import (
    MAX_MATRIX_NUMBERS,
    Coordinates,
    SoftmaxHessian,
    SoftmaxProblem,
    approach,
    class_weights,
    solve,
    unsupported,
)
from leakgauge.training.engines.logistic.subsets import (
    LOG_PROBABILITY_TOLERANCE_NATS,
    MAX_GRADIENT_STEPS,
    MAX_ROUNDS,
    MAX_SPARSE_SHARE,
    METRIC_ROWS,
    SMALLEST_RESIDUAL_FACTOR,
    SUM_RELATIVE_ERROR,
    LogisticSubsets,
    Pool,
    asked,
    halved,
)
from leakgauge.training.engines.stateless import Given
from leakgauge.training.table import EachModel

Number = TypeVar("Number", np.float32, np.float64)

MAX_BLOCK_MODELS = 32
"""Models that go in step, at most."""

BLOCK_BYTES = 256 * 1024**2
"""Memory for these, unless a single one takes more."""

SHARED_ROWS_RATIO = 1.05
"""Models share rows if together they have no more records than this times what the smallest has."""

MAX_SHARED_COLUMNS = 64
"""Columns, models times classes, that share rows, at most."""

MAX_OWN_METRIC_SIZE = 1_000_000
"""Classes times columns squared up to which a model is worth a metric of its own."""

START_GRADIENT = 0.01
"""What may be left of the gradient where all models start."""

FITTED_CURVATURE_RATIO = 0.5
"""How much less than the pool says the records of a model bend its losses: fewer of them are fitted more closely."""

NEWTON_FROM_GRADIENT = 1e-4
"""Gradient, by the inverse of M, at which Newton's method takes over from nonlinear steps."""


MANY_COLUMNS, MOST_FREEDOM, EARLY_TOLERANCE = 200, 200.0, 1e-4
"""Columns, C times their variances added up, and scikit-learn's own tolerance: from all three on its solver stops
early, and is faster than finding minima."""


class MultinomialLogisticRegressionSubsets(LogisticSubsets):
    """``LogisticRegression`` with three or more classes and a squared penalty, on any subsets."""

    name = "multinomial-logistic-regression-subsets"
    chunk = 64

    def unsupported(self, case: Given) -> Refusal | None:
        """Two classes, another penalty or solver, more numbers than fit; where the learner's own solver is faster."""
        refusal = unsupported(case)
        if refusal is None and _stops_early(case):
            words = "its own solver stops so early, with so many columns and so weak a penalty, that it is faster"
            return Refusal(RefusalKind.SETTING, words)
        return refusal

    def pool_of(self, case: Given) -> _Pool:
        """All records."""
        from scipy.sparse import csr_matrix

        case = case.dense()
        estimator, matrix = case.estimator, case.matrix
        coordinates, middle = Coordinates.of(matrix, estimator.fit_intercept), None
        sparse = coordinates.turn is None and np.count_nonzero(matrix) <= MAX_SPARSE_SHARE * matrix.size
        if sparse:  # centring would fill it
            middle, coordinates = coordinates.mean / coordinates.size, replace(coordinates, mean=0 * coordinates.mean)
        X = coordinates.rows(matrix)
        centre = np.zeros(X.shape[1])
        if middle is not None:
            centre[: len(middle)] = middle
        present, y = np.unique(case.labels, return_inverse=True)
        weight = None
        if estimator.class_weight != "balanced":
            weight = float(estimator.C) * class_weights(case, case.labels)[present]
        return _Pool(case, present, y, coordinates, csr_matrix(X) if sparse else X, centre, weight)

    def queries(self, case: Given) -> Floats | Refusal:
        """Features, dense."""
        n, d = case.queries.shape
        if n * d > MAX_MATRIX_NUMBERS:
            return Refusal(RefusalKind.SIZE, f"{n:,} queries with {d:,} columns take more memory than is allowed for")
        queries: Floats = case.dense().queries
        return queries


def _stops_early(case: Given) -> bool:
    """Whether scikit-learn's solver stops where probabilities may still be off by 0.1 and more, and so is faster."""
    X = case.matrix
    if X.shape[1] < MANY_COLUMNS or case.estimator.tol < EARLY_TOLERANCE:
        return False
    squares = X.multiply(X).mean(axis=0) - np.square(X.mean(axis=0)) if hasattr(X, "multiply") else X.var(axis=0)
    return bool(float(case.estimator.C) * squares.sum() > MOST_FREEDOM)


# ---------------------------------------------------------------- from the job to the pool, and back


@dataclass(frozen=True, eq=False)
class _Pool(Pool):
    """All records, as the last step of the learner sees them, and what it minimises.

    Args:
        case: what the last step is given.
        present: the codes of the classes that some record has ``[k]``; only these are spoken of below.
        y: their places among these ``[n]``.
        coordinates: from features to X.
        X: rows in these coordinates, with a last column of ones if there are intercepts, dense or CSR ``[n, d]``.
        centre: a point near the middle of the rows, in these coordinates ``[d]``.
        weight: what a record of each class costs ``[k]``; ``None`` where they are balanced in each training set.
    """

    case: Given
    present: Indices
    y: Indices
    coordinates: Coordinates
    X: Any
    centre: Floats
    weight: Floats | None

    @cached_property
    def penalty(self) -> Floats:
        """The diagonal of P ``[d]``."""
        return self.coordinates.penalty

    @property
    def intercept(self) -> bool:
        """Whether the last column of X is not penalised."""
        return self.coordinates.intercept

    @cached_property
    def single(self) -> Any:
        """X in single precision."""
        return self.X.astype(np.float32)

    @cached_property
    def one_hot(self) -> Floats:
        """Labels ``[n, k]``."""
        return np.eye(len(self.present))[self.y]

    def counts(self, members: Members) -> Floats:
        """Records of each class in each of the training sets ``[models, k]``."""
        counts: Floats = members @ self.one_hot
        return counts

    def costs(self, members: Members) -> Floats:
        """What records of each class cost in each of the training sets ``[models, k]``; 0 for a class without any."""
        if self.weight is not None:
            return np.repeat(self.weight[None], len(members), axis=0)
        counts = self.counts(members)
        equal = counts.sum(axis=1, keepdims=True) / (counts > 0).sum(axis=1, keepdims=True)
        balanced = np.divide(equal, counts, out=np.zeros_like(counts), where=counts > 0)
        costs: Floats = float(self.case.estimator.C) * balanced
        return costs

    def rows(self, matrix: Any) -> Any:
        """Features in the coordinates of X, dense or CSR as X is."""
        from scipy.sparse import csr_matrix, issparse

        rows = self.coordinates.rows(matrix.toarray() if issparse(matrix) else matrix)
        return rows if isinstance(self.X, np.ndarray) else csr_matrix(rows)

    def reach(self, rows: Any) -> float:
        """The largest distance of rows from the centre, in the original features."""
        measure = np.zeros(rows.shape[1])
        np.divide(1, self.penalty, out=measure, where=self.penalty > 0)
        shift = measure * self.centre
        squares = rows * rows if isinstance(rows, np.ndarray) else rows.multiply(rows)
        squared = squares @ measure - 2 * (rows @ shift) + self.centre @ shift
        return float(np.sqrt(max(0.0, squared.max(initial=0.0))))

    @cached_property
    def radius(self) -> float:
        """The largest distance of a record from the centre."""
        return self.reach(self.X)

    @cached_property
    def largest(self) -> float:
        """The largest norm of a row of X, in the original features."""
        return replace(self, centre=0 * self.centre).radius

    def trainable(self, members: Members) -> Flags:
        """Those with records of two classes or more."""
        several: Flags = (self.counts(members) > 0).sum(axis=1) > 1
        return several

    def shared(self, halvings: int) -> _Metric:
        """The metric."""
        _ = self.single
        return _metric(self, halvings)

    def fill(self, queries: Floats | EachModel, members: Members, models: Indices, answers: Floats) -> Flags:
        """Log-probabilities, each model's of the classes that it knows."""
        sure = np.zeros(len(members), dtype=bool)
        same = None if isinstance(queries, EachModel) else self.rows(queries)
        reach = self.radius if same is None else max(self.radius, self.reach(same))
        together = models
        if isinstance(self.case.estimator.class_weight, dict):  # scikit-learn may refuse it where a class is missing
            together = models[(self.counts(members[models]) > 0).all(axis=1)]
        for part, halvings in _blocks(self, members, together):
            try:
                metric = self.start(halvings)
            except np.linalg.LinAlgError:
                continue
            block = _Block.of(self, members[part])
            weights, sure[part] = _polish(self, metric, block, _descend(metric, block), reach)
            for model, W, present in zip(part, weights.transpose(1, 0, 2), block.present.T, strict=True):
                rows = self.rows(asked(queries, self.case.matrix, model)) if same is None else same
                scores = np.ascontiguousarray((rows @ W.T).T)
                scores[~present] = -np.inf
                scores -= scores.max(axis=0)
                scores -= np.log(np.exp(scores).sum(axis=0))
                answers[model] = -np.inf
                answers[model][:, self.present] = scores.T
        for model in models[~sure[models]]:
            sure[model] = self._alone(asked(queries, self.case.matrix, model), members[model], answers[model])
        return sure

    def _alone(self, queries: Floats, members: Flags, answers: Floats) -> bool:
        """The answers ``[queries, k]`` of one model, by Newton's method with a metric of its own, if it is small."""
        if len(self.present) * self.X.shape[1] ** 2 > MAX_OWN_METRIC_SIZE:
            return False
        found = solve(self.case, np.flatnonzero(members), LOG_PROBABILITY_TOLERANCE_NATS, queries)
        if found is not None:
            answers[:] = found.answers(found.coordinates.rows(queries), found.fit.weights)
        return found is not None


# ---------------------------------------------------------------- the metric


@dataclass(frozen=True, eq=False)
class _Metric:
    """What models with about this share of the pool have in common.

    Args:
        weights: where all models start: nearly the minimum for the whole pool, its losses times the share ``[k, d]``.
        scores: of the records there ``[k, n]``.
        inverse: the inverses of the diagonal blocks of the second derivatives there ``[k, d, d]``: of M.
    """

    weights: Floats
    scores: Singles
    inverse: Singles

    def solve(self, G: Singles, present: Flags) -> Singles:
        """The inverse of M times G ``[k, models, d]``, summing to zero over the classes that are ``[k, models]``."""
        return _levelled(np.matmul(G, self.inverse), present)


def _metric(pool: _Pool, halvings: int) -> _Metric:
    """The metric for models with about ``2^-halvings`` of the pool's records.

    Raises:
        numpy.linalg.LinAlgError: the second derivatives are singular to rounding.
    """
    by_class = [np.flatnonzero(pool.y == c) for c in range(len(pool.present))]
    chosen = [index[:: max(1, len(by_class) * len(index) // METRIC_ROWS)] for index in by_class]
    stand_for = np.array([len(index) / len(some) for index, some in zip(by_class, chosen, strict=True)])
    rows = np.concatenate(chosen)
    X, y = pool.X[rows], pool.y[rows]
    everyone = np.ones((1, len(pool.y)), dtype=bool)
    cost = 0.5**halvings * (stand_for * pool.costs(everyone)[0])[y]
    problem = SoftmaxProblem(X if isinstance(X, np.ndarray) else X.toarray(), y, cost, pool.penalty, len(by_class))
    W, _, p = approach(problem, START_GRADIENT)
    scores = np.ascontiguousarray((pool.X @ W.T).T, dtype=np.float32)
    bent = SoftmaxHessian.at(replace(problem, cost=FITTED_CURVATURE_RATIO * cost), p)
    return _Metric(W, scores, bent.inverse.astype(np.float32))


def _levelled(W: NDArray[Number], present: Flags) -> NDArray[Number]:
    """Made to sum to zero over the classes that are there, and 0 for the others, in place ``[k, models, d]``."""
    W *= present[:, :, None]
    W -= present[:, :, None] * (W.sum(axis=0) / present.sum(axis=0)[:, None].astype(W.dtype))
    return W


# ---------------------------------------------------------------- many models at once


@dataclass(frozen=True)
class _Rows:
    """Rows of X.

    Args:
        rows: dense or sparse ``[m, d]``.
        turned: the same transposed.
    """

    rows: Any
    turned: Any

    def scores(self, W: Numbers) -> Any:
        """``[models, k, m]`` from ``[models, k, d]``."""
        flat = W.reshape(-1, W.shape[2])
        scores = flat @ self.turned if isinstance(self.rows, np.ndarray) else (self.rows @ flat.T).T
        return np.ascontiguousarray(scores).reshape(*W.shape[:2], -1)

    def sums(self, factors: Numbers) -> Any:
        """Rows times factors ``[models, k, m]``, summed: ``[models, k, d]``."""
        flat = factors.reshape(-1, factors.shape[2])
        sums = flat @ self.rows if isinstance(self.rows, np.ndarray) else (self.turned @ flat.T).T
        return sums.reshape(*factors.shape[:2], -1)


@dataclass(frozen=True)
class _Group:
    """Models that share rows.

    Args:
        models: their places in the block.
        index: the records that some of them have ``[m]``.
        rows: of these, in single precision.
        cost: c ``[models, m]``, 0 where the record is not in the training set.
        y: classes ``[m]``.
        absent: ``[models, k, 1]``: 0, and ``-inf`` for classes of which a model has no record.
    """

    models: slice
    index: Indices
    rows: _Rows
    cost: Singles
    y: Indices
    absent: Singles

    @classmethod
    def of(cls, pool: _Pool, members: Members, models: slice) -> _Group:
        """Models by their places in a block with these training sets."""
        own = members[models]
        index = np.flatnonzero(own.any(axis=0))
        rows, y = pool.single[index], pool.y[index]
        turned = np.ascontiguousarray(rows.T) if isinstance(rows, np.ndarray) else rows.T.tocsr()
        cost = own[:, index] * pool.costs(own)[:, y]
        absent = np.where(pool.counts(own) > 0, np.float32(0), np.float32(-np.inf))[:, :, None]
        return cls(models, index, _Rows(rows, turned), cost.astype(np.float32), y, absent)

    def exact(self, pool: _Pool) -> _Rows:
        """The rows in double precision."""
        rows = pool.X[self.index]
        return _Rows(rows, rows.T)


@dataclass(frozen=True)
class _Block:
    """Models that go in step.

    Args:
        groups: of those that share rows.
        members: their training sets ``[models, n]``.
        present: of which classes they have records ``[k, models]``.
        penalty: P of each ``[models, d]``.
    """

    groups: list[_Group]
    members: Members
    present: Flags
    penalty: Floats

    @classmethod
    def of(cls, pool: _Pool, members: Members) -> _Block:
        """Models with these training sets."""
        present = pool.counts(members).T > 0
        # With two classes scikit-learn has one vector w, penalised as a whole; here it is w / 2 and -w / 2.
        twice = np.where(present.sum(axis=0) == 2, 2.0, 1.0)
        groups = [_Group.of(pool, members, models) for models in _alike(members, MAX_SHARED_COLUMNS // len(present))]
        return cls(groups, members, present, twice[:, None] * pool.penalty)

    def start(self, metric: _Metric) -> Floats:
        """Weights of the metric, without the classes that a model does not have ``[k, models, d]``."""
        return _levelled(np.repeat(metric.weights[:, None], len(self.members), axis=1), self.present)


def _blocks(pool: _Pool, members: Members, models: Indices) -> Iterator[tuple[Indices, int]]:
    """Models of about equal size that go in step, and about how often their share must be doubled."""
    sizes = np.count_nonzero(members, axis=1)
    halvings = halved(len(pool.y), sizes)
    d, k = pool.X.shape[1], len(pool.present)
    for often in np.unique(halvings[models]):
        alike = models[halvings[models] == often]
        width = min(MAX_BLOCK_MODELS, max(1, BLOCK_BYTES // int(sizes[alike].max() * (12 * k + 8 * d))))
        for start in range(0, len(alike), width):
            yield alike[start : start + width], int(often)


def _alike(members: Members, most: int) -> Iterator[slice]:
    """Models next to each other with nearly the same records."""
    first, together = 0, members[0]
    smallest = together.sum()
    for model in range(1, len(members)):
        joined, own = together | members[model], members[model].sum()
        if joined.sum() > SHARED_ROWS_RATIO * min(smallest, own) or model - first >= most:
            yield slice(first, model)
            first, joined, smallest = model, members[model], own
        together, smallest = joined, min(smallest, own)
    yield slice(first, len(members))


def _dot(a: Singles, b: Singles) -> Floats:
    """The inner products of models ``[models]`` from ``[k, models, d]``."""
    dots: Floats = np.einsum("kbd,kbd->b", a, b).astype(np.float64)
    return dots


def _ratio(a: Floats, b: Floats) -> Singles:
    """``a / b`` for ``[k, models, d]``, 0 where b is not above 0: where there is nothing left to do."""
    ratio = np.divide(a, b, out=np.zeros_like(a), where=b > 0)
    return ratio.astype(np.float32)[:, None]


def _to_probabilities(scores: Numbers) -> None:
    """Replace scores ``[models, k, m]`` by probabilities, in place."""
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)


def _centre(along: Numbers, p: Numbers) -> None:
    """Subtract the mean by p over the classes, in place ``[models, k, m]``."""
    along -= np.einsum("gkm,gkm->gm", p, along)[:, None]


def _pull(group: _Group, scores: Singles) -> tuple[Singles, Singles]:
    """The losses' part of the gradient ``[k, models, d]`` at the scores ``[models, k, m]``, and the probabilities."""
    p = scores.copy()
    _to_probabilities(p)
    missed = p * group.cost[:, None]
    missed[:, group.y, np.arange(len(group.y))] -= group.cost
    return group.rows.sums(missed).transpose(1, 0, 2), p


def _descend(metric: _Metric, block: _Block) -> Floats:
    """Weights ``[k, models, d]`` by nonlinear conjugate gradients (Hager and Zhang 2005) from the metric's weights.

    A step goes as far as the curvature says: near the minimum that is far enough.
    """
    start, penalty = block.start(metric), block.penalty.astype(np.float32)
    pull = penalty * start.astype(np.float32)
    scores = [metric.scores[:, group.index] + group.absent for group in block.groups]
    chances: list[Singles] = []
    gradient, moved = pull.copy(), np.zeros_like(pull)
    for group, z in zip(block.groups, scores, strict=True):
        losses, p = _pull(group, z)
        gradient[:, group.models] += losses
        chances.append(p)
    solved = metric.solve(gradient, block.present)
    direction, first = -solved, _dot(gradient, solved)
    size, going = first, np.ones(len(block.members), dtype=bool)
    for _ in range(MAX_GRADIENT_STEPS):
        pulled = penalty * direction
        curvature, paths = _dot(direction, pulled), {}
        for g, group in _going(block, going):
            along = group.rows.scores(np.ascontiguousarray(direction[:, group.models].transpose(1, 0, 2)))
            _centre(along, chances[g])
            bends = np.einsum("gkm,gkm->gm", chances[g] * along, along)
            curvature[group.models] += np.einsum("gm,gm->g", bends, group.cost)
            paths[g] = along
        length = _ratio(-_dot(gradient, direction), curvature)
        moved += length * direction
        pull += length * pulled
        new = gradient.copy()
        for g, group in _going(block, going):
            paths[g] *= length[group.models, :, None]
            scores[g] += paths[g]
            losses, chances[g] = _pull(group, scores[g])
            new[:, group.models] = pull[:, group.models] + losses
        new_solved = metric.solve(new, block.present)
        size = _dot(new, new_solved)
        going &= size > NEWTON_FROM_GRADIENT**2
        if not going.any():
            break
        change = new - gradient
        fall = _dot(direction, change)
        turn = _dot(new_solved, change)
        turn -= 2 * _dot(change, new_solved - solved) * _ratio(_dot(direction, new), fall)[:, 0]
        direction = _ratio(turn, fall) * direction - new_solved
        direction[:, ~going] = 0.0
        gradient, solved = new, new_solved
    better = size < first
    return _levelled(start + np.where(better[:, None], moved, np.float32(0)), block.present)


def _going(block: _Block, going: Flags) -> Iterator[tuple[int, _Group]]:
    """The groups in which something is left to do."""
    return ((g, group) for g, group in enumerate(block.groups) if going[group.models].any())


def _polish(pool: _Pool, metric: _Metric, block: _Block, W: Floats, reach: float) -> tuple[Floats, Flags]:
    """Newton's method for each model, until the answers are certain or no step helps.

    Returns:
        Weights ``[k, models, d]``, and whether all answers of a model are certain, bool ``[models]``.
    """
    going = np.ones(len(block.members), dtype=bool)
    error = before = np.full(len(going), np.inf)
    for _ in range(MAX_ROUNDS):
        gradient, step, chances, error = np.zeros_like(W), np.zeros_like(W), {}, error.copy()
        for g, group in _going(block, going):
            own = group.models
            found = _measure(pool, block, group, W[:, own].transpose(1, 0, 2), reach)
            gradient[:, own], error[own], chances[g] = found.gradient.transpose(1, 0, 2), found.error, found.p
            step[:, own, -1] = found.shift.T
        going = (error > LOG_PROBABILITY_TOLERANCE_NATS) & (error < before / 2)
        if not going.any():
            break
        gradient[:, ~going] = 0.0
        enough = 0.5 * LOG_PROBABILITY_TOLERANCE_NATS / np.where(going, error, np.inf)
        step += _newton_step(metric, block, gradient, chances, np.maximum(enough, SMALLEST_RESIDUAL_FACTOR))
        W = W + _levelled(np.where(going[:, None], step, 0.0), block.present)
        before = np.where(going, error, before)
    return W, error <= LOG_PROBABILITY_TOLERANCE_NATS


@dataclass(frozen=True)
class _Measured:
    """How far some models that share rows are from their minima.

    Args:
        gradient: after Newton's step for the intercepts alone, to first order ``[models, k, d]``.
        shift: that step ``[models, k]``; 0 without intercepts.
        p: the probabilities before it ``[models, k, m]``.
        error: the largest error of a log-probability before it, no less ``[models]``.
    """

    gradient: Floats
    shift: Floats
    p: Singles
    error: Floats


def _measure(pool: _Pool, block: _Block, group: _Group, W: Floats, reach: float) -> _Measured:
    """From weights ``[models, k, d]`` and the largest distance of a query from the centre."""
    own = block.members[group.models]
    rows, cost = group.exact(pool), own[:, group.index] * pool.costs(own)[:, group.y]
    p = rows.scores(W)
    size = np.abs(p).max(axis=(1, 2))
    p += group.absent
    _to_probabilities(p)
    missed = p.copy()
    missed[:, group.y, np.arange(len(group.y))] -= 1
    missed *= cost[:, None]
    bent = cost[:, None] * p
    lack = SUM_RELATIVE_ERROR * (np.abs(missed).sum(axis=(1, 2)) + size * bent.sum(axis=(1, 2)))
    levels = [_level(*model) for model in zip(missed, bent, p, group.absent, strict=True)] if pool.intercept else []
    shift = np.stack([level.shift for level in levels]) if levels else np.zeros(W.shape[:2])
    missed += bent * (shift[:, :, None] - np.einsum("gkm,gk->gm", p, shift)[:, None])
    gradient = rows.sums(missed) + block.penalty[group.models, None] * W
    error = np.sqrt(2) * (_length(pool, gradient) + lack * pool.largest) * reach
    for model, level in enumerate(levels):
        error[model] = _answer_error(pool, _length(pool, gradient[model]), level, lack[model], reach)
    return _Measured(gradient, shift, p.astype(np.float32), error)


def _length(pool: _Pool, gradient: Floats) -> Any:
    """Of the gradient of the coefficients of the original features, ``[...]`` from ``[..., k, d]``."""
    d = len(pool.coordinates.size)
    return np.sqrt((gradient[..., :d] ** 2 / pool.penalty[:d]).sum(axis=(-2, -1)))


@dataclass(frozen=True)
class _Level:
    """What the losses say of the intercepts of a model.

    Args:
        shift: Newton's step for the intercepts alone ``[k]``.
        decrement: its length by B, the second derivatives.
        least: the lowest eigenvalue of B, on vectors that sum to zero over the classes that are there.
        most: the largest diagonal entry of B.
    """

    shift: Floats
    decrement: float
    least: float
    most: float


def _level(missed: Floats, bent: Floats, p: Floats, absent: Singles) -> _Level:
    """From ``c (p - y)``, ``c p`` and p, all ``[k, m]``, of one model."""
    bends = np.diag(bent.sum(axis=1)) - bent @ p.T
    values, vectors = np.linalg.eigh(bends)
    there = slice(1 + np.count_nonzero(absent), None)
    along = vectors[:, there].T @ missed.sum(axis=1)
    shift = -vectors[:, there] @ (along / values[there])
    return _Level(
        shift=shift,
        decrement=float(np.sqrt(along @ (along / values[there]))),
        least=float(values[there][0]),
        most=float(bends.diagonal().max()),
    )


def _answer_error(pool: _Pool, gradient: float, level: _Level, lack: float, reach: float) -> float:
    """How far a log-probability of any query can be from that at the minimum, no less, where there are intercepts.

    Let the coefficients be off by U and the intercepts by v. The second derivatives of a record's loss fall by no more
    than the factor ``exp(-t)`` while the range of its scores moves by t (Bach 2010, Proposition 1). If no range moves
    by more than 1.59, then with v' the part of v that does not follow from U,

        ``g'(U, v) >= |U|^2 + v'Bv' / 2``, hence ``D^2 = |g_U|^2 + 2 g_v'B^-1 g_v >= |U|^2 + v'Bv' / 2``,

    where ``g_U`` is the gradient after Newton's step for the intercepts, to first order. A contrast w of the classes
    at a row x is off by ``w'v' + <wx' - X_w, U>``; since the second derivatives of a loss are at most twice their
    diagonal, ``|X_w| <= R |w| sqrt(2 max diag(B) / least(B))`` with R the largest distance of a record from the
    centre. Contrasts of log-probabilities and ranges have ``|w|^2 <= 2``, so that no range moves by more than what is
    returned if that is below 1.59.

    Args:
        pool: all records.
        gradient: ``|g_U|``.
        level: of the intercepts.
        lack: rounding errors of sums over the records.
        reach: the largest distance of a query or record from the centre.
    """
    if not level.least > 0:
        return np.inf
    rest = np.hypot(gradient + lack * pool.largest, np.sqrt(2) * (level.decrement + lack / np.sqrt(level.least)))
    lever = np.hypot(reach + pool.radius * np.sqrt(2 * level.most / level.least), np.sqrt(2 / level.least))
    return float(np.sqrt(2) * rest * lever)


def _newton_step(
    metric: _Metric, block: _Block, gradient: Floats, chances: dict[int, Singles], enough: Floats
) -> Floats:
    """Newton's step by conjugate gradients ``[k, models, d]``: a residual is reduced by about the factor ``enough``."""
    rough = gradient.astype(np.float32)
    scale = np.sqrt(np.maximum(_dot(rough, metric.solve(rough, block.present)), 0))
    rest = -(gradient * _ratio(np.ones_like(scale), scale)).astype(np.float32)
    solved = metric.solve(rest, block.present)
    moved, direction, penalty = np.zeros_like(rest), solved, block.penalty.astype(np.float32)
    size, close = _dot(rest, solved), enough**2
    for _ in range(MAX_GRADIENT_STEPS):
        going = size > close
        if not going.any():
            break
        image = penalty * direction
        for g, group in _going(block, going):
            along = group.rows.scores(np.ascontiguousarray(direction[:, group.models].transpose(1, 0, 2)))
            _centre(along, chances[g])
            along *= chances[g]
            along *= group.cost[:, None]
            image[:, group.models] += group.rows.sums(along).transpose(1, 0, 2)
        length = _ratio(size, _dot(direction, image)) * going[:, None]
        moved += length * direction
        rest -= length * image
        solved = metric.solve(rest, block.present)
        new = _dot(rest, solved)
        direction = solved + _ratio(new, size) * direction
        size = new
    step: Floats = scale[:, None] * moved
    return step
