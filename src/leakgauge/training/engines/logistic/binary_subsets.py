"""Binary L2 logistic regression on any subsets of a pool, many models at once, each to a verified minimum.

A model minimises ``F(w) = w'Pw/2 + sum over its records of c_i loss(x_i'w, y_i)``. Models trained on parts of one pool
have much in common: the Hessian of each is roughly that of the whole pool times the share of the records that it has.
In the coordinates in which this Hessian is round, conjugate gradients need few steps for any of the models, and a step
for many models at once is two matrix products and an elementwise map:

1. nonlinear conjugate gradients (Hager and Zhang 2005) in single precision, from the pool's solution;
2. Newton's method: gradients in double precision, steps by conjugate gradients in single precision;
3. for a model that is still not verified, Newton's method with a Hessian of its own.

Where most of the table is 0 and the loops are compiled, models are trained one after another instead, on their own rows
and in double precision from the start (:mod:`~leakgauge.training.engines.logistic.native`).

Every model is verified by its gradient g, in double precision, and not by how many steps were taken: the penalty makes
F strongly convex in the coefficients, so these are within ``|g|`` of the minimum's (see :func:`_score_error`). Where
that says too little, because the penalty is weak or the features are large, the model's own Hessian says more (Bach
2010).

scikit-learn stops when the *mean* gradient is below ``tol``. What is found here is the minimum itself, that is, what
scikit-learn finds at a far smaller tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices, Members, Singles
from leakgauge.training.engines.base import Refusal, RefusalKind
from leakgauge.training.engines.fitted import NO_INTERCEPT, FittedSteps
from leakgauge.training.engines.logistic import native
from leakgauge.training.engines.logistic.algebra import dots, longest, solved
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
from leakgauge.training.engines.logistic.wanted import named_weights, no_binary_minimum, positive
from leakgauge.training.engines.stateless import Given
from leakgauge.training.table import EachModel

SHARED_ROWS_FROM_SHARE = 1 / 3
"""Models with fewer of the pool's records than this are given copies of their own rows; the others share all rows."""

MODELS_PER_PRODUCT = 128
"""Models that share a matrix product over all rows, at most."""

WIDE_CELLS = 2_000_000
"""Scores of models that share rows computed at a time, unless the pool is so large that 8 models have more."""

COPIED_ROWS_BYTES = 8 * 1024**2
"""Size of the rows copied at a time: what stays in the processor's cache."""

MAX_CELLS = 100_000_000
MAX_COLUMNS = 4000
NEWTON_FROM_GRADIENT = 3e-5
"""Whitened gradient, about the error of a score, at which Newton's method takes over from nonlinear steps."""

POOL_SCORE_TOLERANCE = 1.0
"""Error of a score up to which the pool's minimum is found for models to start from."""

COMPILED_TOLERANCE_SHARE = 0.9
"""Share of the tolerance at which compiled loops stop; the rest is for rounding."""


class LogisticRegressionSubsets(LogisticSubsets):
    """``LogisticRegression`` with two classes and a squared penalty, on any subsets."""

    name = "logistic-regression-subsets"
    chunk = 128
    takes_fitted = True

    def unsupported(self, case: Given) -> Refusal | None:
        """More than two classes, another penalty or weights, a table too large."""
        if refusal := no_binary_minimum(case):
            return refusal
        if case.fitted is not None and not case.estimator.fit_intercept:
            return Refusal(RefusalKind.SETTING, NO_INTERCEPT)
        weight = case.estimator.class_weight
        if weight not in (None, "balanced") and not (isinstance(weight, dict) and _names_classes(weight, case)):
            return Refusal(
                RefusalKind.SETTING,
                "LogisticRegression(class_weight=...) must give classes a number above 0, or be 'balanced'",
            )
        n_rows, n_columns = case.matrix.shape
        if n_columns > MAX_COLUMNS or n_rows * n_columns > MAX_CELLS:
            return Refusal(
                RefusalKind.SIZE,
                f"a table of {n_rows:,} x {n_columns:,} is too large: {MAX_COLUMNS:,} columns, {MAX_CELLS:,} cells",
            )
        return None

    def pool_of(self, case: Given) -> _Pool:
        """All records."""
        from scipy.sparse import csr_matrix

        estimator, X, one = case.estimator, _design(case, case.matrix), positive(case)
        penalty, centre = np.ones(X.shape[1]), np.zeros(X.shape[1])
        if estimator.fit_intercept:
            penalty[-1] = 0.0
            centre[:-1] = X[:, :-1].mean(axis=0)
        weight = None if estimator.class_weight == "balanced" else named_weights(case)[[1 - one, one]]
        sparse = csr_matrix(X) if np.count_nonzero(X) <= MAX_SPARSE_SHARE * X.size else None
        return _Pool(X, case.labels == one, penalty, centre, float(estimator.C), sparse, weight, one == 0, case.fitted)

    def queries(self, case: Given) -> Floats:
        """Features, and a column of ones for the intercept."""
        return _design(case, case.queries)


@dataclass(frozen=True, eq=False)
class _Pool(Pool):
    """All records, as the last step of the learner sees them, and what it minimises.

    Args:
        X: features, with a last column of ones if there is an intercept, ``[n, d]``.
        y: bool ``[n]``: true for the class whose probability rises with the score.
        penalty: the diagonal of P ``[d]``: 1 for coefficients, 0 for the intercept.
        centre: what is subtracted from rows to make them short ``[d]``; 0 where nothing may be.
        C: the inverse strength of the penalty.
        sparse: X as a SciPy CSR matrix, where most of it is 0, else ``None``.
        class_weight: of the classes 0 and 1, or ``None`` where they are balanced in each training set.
        turned: whether 1 is the first class of the schema.
        steps: the earlier steps, where they are fitted on the records: X is as all records make it, and coefficients
            cost more or less in each model (see :mod:`leakgauge.training.engines.fitted`).
    """

    X: Floats
    y: Flags
    penalty: Floats
    centre: Floats
    C: float
    sparse: Any
    class_weight: Floats | None
    turned: bool
    steps: FittedSteps | None = None

    @property
    def fitted(self) -> bool:
        """Whether there are such steps."""
        return self.steps is not None

    def penalties(self, members: Members) -> tuple[Floats | None, Flags]:
        """How much more than here coefficients cost in each training set ``[models, d]``, and where that is certain."""
        if self.steps is None:
            return None, np.ones(len(members), dtype=bool)
        change, excess = self.steps.on(members), np.zeros((len(members), len(self.penalty)))
        excess[:, :-1] = change.rho - 1
        return excess, ~change.unknown

    def costs(self, members: Members) -> Floats:
        """What records of the classes 0 and 1 cost in each of the training sets ``[models, n]``: ``[models, 2]``."""
        if self.class_weight is not None:
            return np.repeat(self.C * self.class_weight[None], len(members), axis=0)
        sizes, ones = np.count_nonzero(members, axis=1), np.count_nonzero(members & self.y, axis=1)
        costs: Floats = self.C * sizes[:, None] / (2 * np.stack([sizes - ones, ones], axis=1))
        return costs

    def reach(self, X: Floats) -> float:
        """The largest norm of centred rows."""
        parts = (X[start : start + 1000] for start in range(0, len(X), 1000))
        return max((longest((part - self.centre) * self.penalty) for part in parts), default=0.0)

    @cached_property
    def radius(self) -> float:
        """The largest norm of a centred record."""
        return self.reach(self.X)

    @cached_property
    def largest(self) -> float:
        """The largest norm of a record."""
        return longest(self.X)

    @cached_property
    def entries(self) -> native.SparseRows | None:
        """What the compiled loops go along; ``None`` where there are none, or most of the table is not 0."""
        if self.sparse is None or self.fitted or not native.available():
            return None
        return native.SparseRows.of(self.sparse)

    def trainable(self, members: Members) -> Flags:
        """Those with records of both classes."""
        ones = np.count_nonzero(members & self.y, axis=1)
        both: Flags = (ones > 0) & (ones < np.count_nonzero(members, axis=1))
        return both

    def shared(self, halvings: int) -> tuple[Floats, native.InverseHessian] | _Metric:
        """Where compiled loops start, or the metric."""
        if self.entries is not None:
            return _nearby(self, halvings)
        metric = _metric(self, halvings)
        _ = metric.white
        return metric

    def fill(self, queries: Floats | EachModel, members: Members, models: Indices, answers: Floats) -> Flags:
        """Log-probabilities, in the order of the schema."""
        reach = self.radius if isinstance(queries, EachModel) else self.reach(queries)
        weights, sure = weights_on(self, members[models], reach)
        for place in np.flatnonzero(~sure):
            model = int(models[place])
            excess, certain = self.penalties(members[model][None])
            own = self if excess is None else replace(self, penalty=self.penalty + excess[0])
            weights[place], sure[place] = weights_alone(
                own, members[model], weights[place], asked(queries, self.X, model)
            )
            sure[place] &= certain[0]
        width = 1 if isinstance(queries, EachModel) else MODELS_PER_PRODUCT
        for start in range(0, len(models), width):
            part = models[start : start + width]
            scores = weights[start : start + width] @ asked(queries, self.X, int(part[0])).T
            rest = np.log1p(np.exp(-np.abs(scores)))
            answers[part, :, int(self.turned)] = -np.maximum(scores, 0) - rest
            answers[part, :, int(not self.turned)] = np.minimum(scores, 0) - rest
        certain = np.zeros(len(members), dtype=bool)
        certain[models] = sure
        return certain


def _design(case: Given, matrix: Any) -> Floats:
    """Features, and a column of ones for the intercept."""
    dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    if case.estimator.fit_intercept:
        dense = np.concatenate([dense, np.ones((len(dense), 1))], axis=1)
    return np.ascontiguousarray(dense)


def _names_classes(weight: dict[Any, Any], case: Given) -> bool:
    return set(weight) <= set(case.classes.tolist()) and all(0 < value < np.inf for value in weight.values())


# ---------------------------------------------------------------- the metric


@dataclass(frozen=True, eq=False)
class _Metric:
    """Coordinates T in which the Hessian of a model with about this share of the pool is round: ``T'HT`` is near 1.

    Args:
        weights: where all models start: the minimum for the whole pool, its losses times the share ``[d]``.
        basis: T ``[d, d]``; with it ``T'HT = 1`` for the Hessian H there, and ``T'PT`` is diagonal.
        penalty: that diagonal ``[d]``.
        X: the rows of the pool ``[n, d]``.
        half: half the scores there ``[n]``.
        pull: the penalty's gradient there, ``T'Pw`` ``[d]``.
        rough: see :data:`NEWTON_FROM_GRADIENT`, for a row of middling length.
    """

    weights: Floats
    basis: Floats
    penalty: Singles
    X: Floats
    half: Singles
    pull: Singles
    rough: float

    @cached_property
    def white(self) -> Singles:
        """The rows of the pool in these coordinates, ``X T`` ``[n, d]``."""
        white = np.empty(self.X.shape, dtype=np.float32)
        for start in range(0, len(white), METRIC_ROWS):
            white[start : start + METRIC_ROWS] = self.X[start : start + METRIC_ROWS] @ self.basis
        return white


def _sample(pool: _Pool, halvings: int) -> tuple[Indices, Floats]:
    """Rows that stand for the whole pool, and what those of each class cost ``[2]`` if losses count ``2^-halvings``."""
    rows = [_spread(np.flatnonzero(pool.y == one)) for one in (False, True)]
    everyone = np.ones((1, len(pool.y)), dtype=bool)
    n_ones = np.count_nonzero(pool.y)
    stand_for = np.array([len(pool.y) - n_ones, n_ones]) / [len(own) for own in rows]
    return np.concatenate(rows), 0.5**halvings * stand_for * pool.costs(everyone)[0]


def _nearby(pool: _Pool, halvings: int) -> tuple[Floats, native.InverseHessian]:
    """For the compiled loops: where all models with about this share of the pool start, and the curvature there.

    Raises:
        numpy.linalg.LinAlgError: the Hessian is singular to rounding.
    """
    rows, costs = _sample(pool, halvings)
    X, cost = pool.X[rows], _each(costs[None], pool.y[rows][None])[0]
    none = np.zeros(X.shape[1])
    diagonal = pool.penalty + 0.25 * (cost @ np.square(X))
    near = _problem(pool, native.InverseHessian.diagonal(diagonal), pool.radius, POOL_SCORE_TOLERANCE)
    weights = near.minimum(rows, costs, none).weights
    bend = _objective(pool, X, pool.y[rows], cost, weights)[2]
    return weights, native.InverseHessian.of((X * bend[:, None]).T @ X + np.diag(pool.penalty))


def _problem(pool: _Pool, curvature: native.InverseHessian, reach: float, enough: float) -> native.PoolProblem:
    assert pool.entries is not None
    return native.PoolProblem(pool.entries, pool.y, pool.penalty, pool.centre, curvature, pool.radius, reach, enough)


def _metric(pool: _Pool, halvings: int) -> _Metric:
    """The metric for models with about ``2^-halvings`` of the pool's records.

    Raises:
        numpy.linalg.LinAlgError: the Hessian is singular to rounding.
    """
    from scipy.linalg import eigh

    rows, costs = _sample(pool, halvings)
    X, y = pool.X[rows], pool.y[rows]
    fit = _newton(pool, X, y, _each(costs[None], y[None])[0], np.zeros(X.shape[1]), enough=1e-2)
    penalty, basis = eigh(np.diag(pool.penalty), fit.lower @ fit.lower.T)
    white = X @ basis
    return _Metric(
        weights=fit.weights,
        basis=basis,
        penalty=penalty.astype(np.float32),
        X=pool.X,
        half=(pool.X @ fit.weights / 2).astype(np.float32),
        pull=((pool.penalty * fit.weights) @ basis).astype(np.float32),
        rough=NEWTON_FROM_GRADIENT / float(np.sqrt(dots(white, white).mean())),
    )


def _spread(index: Indices) -> Indices:
    """About half a sample of these rows, evenly spaced."""
    return index[:: max(1, 2 * len(index) // METRIC_ROWS)]


@dataclass(frozen=True)
class _Fit:
    """Where Newton's method has come.

    Args:
        weights: w ``[d]``.
        lower: Cholesky factor L of the Hessian there.
        decrement: the norm of ``L^-1 g``.
    """

    weights: Floats
    lower: Floats
    decrement: float


def _newton(pool: _Pool, X: Floats, y: Flags, cost: Floats, w: Floats, *, enough: float) -> _Fit:
    """Newton's method with step halving, until the decrement is small enough or no step gains.

    Raises:
        numpy.linalg.LinAlgError: the Hessian is singular to rounding.
    """
    from scipy.linalg import cholesky

    value, gradient, bend = _objective(pool, X, y, cost, w)
    while True:
        lower = cholesky((X * bend[:, None]).T @ X + np.diag(pool.penalty), lower=True)
        white = solved(lower, gradient[None])
        fit = _Fit(w, lower, float(np.linalg.norm(white)))
        if fit.decrement <= enough:
            return fit
        step = solved(lower, white, transposed=True)[0]
        telling = 1e-9 * abs(value)  # near the minimum the value does not tell any more, but the gradient does
        for halvings in range(20 if fit.decrement**2 > telling else 1):
            tried = w - 0.5**halvings * step
            there = _objective(pool, X, y, cost, tried)
            left = np.linalg.norm(solved(lower, there[1][None]))
            if there[0] < value - telling or left < fit.decrement / 2:
                break
        else:
            return fit
        w, (value, gradient, bend) = tried, there


def _objective(pool: _Pool, X: Floats, y: Flags, cost: Floats, w: Floats) -> tuple[float, Floats, Floats]:
    """F, its gradient ``[d]``, and how much each record bends it ``[n]``."""
    z = X @ w
    p = _logistic(z)
    value = cost @ (np.logaddexp(0, z) - y * z) + 0.5 * (pool.penalty * w) @ w
    return float(value), X.T @ (cost * (p - y)) + pool.penalty * w, cost * p * (1 - p)


def _logistic(z: Floats) -> Floats:
    p: Floats = 0.5 * np.tanh(0.5 * z) + 0.5
    return p


# ---------------------------------------------------------------- many models at once


@dataclass(frozen=True)
class _Thin:
    """Rows of each model's own, mostly 0, as they are or in other coordinates.

    Args:
        rows: the rows of each model in a block of a block-diagonal CSR matrix ``[models * m, models * d]``.
        turned: the same, transposed.
        basis: T ``[d, d]`` where the rows stand for ``rows T``.
    """

    rows: Any
    turned: Any
    basis: NDArray[Any] | None = None

    @classmethod
    def of(cls, matrix: Any, index: Indices) -> _Thin:
        """Rows ``index[i]`` of a CSR matrix for model i."""
        from scipy.sparse import csr_matrix

        n_models, size = index.shape
        chosen = matrix[index.ravel()]
        shift = np.repeat(np.arange(n_models) * matrix.shape[1], np.diff(chosen.indptr[::size]))
        indices = chosen.indices + shift.astype(chosen.indices.dtype)
        shape = (n_models * size, n_models * matrix.shape[1])
        rows = csr_matrix((chosen.data, indices, chosen.indptr), shape=shape)
        return cls(rows, rows.T)

    def white(self, metric: _Metric) -> _Thin:
        """The same in the coordinates of the metric, in single precision."""
        rows = self.rows.astype(np.float32)
        return _Thin(rows, rows.T, metric.basis.astype(np.float32))

    def scores(self, weights: NDArray[Any]) -> NDArray[Any]:
        """``[models, m]`` from weights ``[models, d]``."""
        inner = weights if self.basis is None else weights @ self.basis.T
        scores: NDArray[Any] = (self.rows @ inner.ravel()).reshape(len(weights), -1)
        return scores

    def sums(self, factors: NDArray[Any]) -> NDArray[Any]:
        """Rows times factors ``[models, m]``, summed: ``[models, d]``."""
        sums: NDArray[Any] = (self.turned @ factors.ravel()).reshape(len(factors), -1)
        return sums if self.basis is None else sums @ self.basis


@dataclass(frozen=True)
class _Block:
    """Some models and their records: all share the rows of the pool, or each has rows of its own.

    Args:
        exact: rows of X: ``[m, d]`` or ``[models, m, d]``.
        white: the same whitened, in single precision.
        half: half the scores at the metric's weights, ``[m]`` or ``[models, m]``.
        y: ``[m]`` or ``[models, m]``.
        cost: c ``[models, m]``, 0 where the row is not in the training set.
        excess: how much more than in the pool coefficients cost ``[models, d]``; ``None`` if no more.
    """

    exact: Floats | _Thin
    white: Singles | _Thin
    half: Singles
    y: Flags
    cost: Floats
    excess: Floats | None = None

    @property
    def least(self) -> Floats | float:
        """The smallest cost of a coefficient ``[models]``, with 1 among them."""
        return 1.0 if self.excess is None else 1 + self.excess.min(axis=1)


def _shared(pool: _Pool, metric: _Metric, members: Members) -> _Block:
    cost = members * _each(pool.costs(members), pool.y[None])
    return _Block(pool.X, metric.white, metric.half, pool.y, cost)


def _own(pool: _Pool, metric: _Metric, members: Members) -> _Block:
    """Short lists are filled up with row 0, at no cost."""
    sizes = np.count_nonzero(members, axis=1)
    there = np.arange(sizes.max()) < sizes[:, None]
    index = np.zeros(there.shape, dtype=np.int64)
    index[there] = np.flatnonzero(members) % members.shape[1]
    y = pool.y[index]
    cost = there * _each(pool.costs(members), y)
    exact: Floats | _Thin
    white: Singles | _Thin
    if pool.sparse is None:
        exact, white = pool.X.take(index, axis=0), metric.white.take(index, axis=0)
    else:
        exact = _Thin.of(pool.sparse, index)
        white = exact.white(metric)
    return _Block(exact, white, metric.half[index], y, cost)


def _each(costs: Floats, y: Flags) -> Floats:
    """The cost of each record, by its class."""
    return np.where(y, costs[:, 1:], costs[:, :1])


def _blocks(pool: _Pool, members: Members) -> Iterator[tuple[Indices, int, bool]]:
    """Models of about equal size, about how often their share must be doubled, and whether they share rows."""
    sizes = np.count_nonzero(members, axis=1)
    n, d = pool.X.shape
    halvings = halved(len(pool.y), sizes)
    shares = sizes >= SHARED_ROWS_FROM_SHARE * n
    order = np.lexsort((sizes, shares, halvings))
    row_bytes = 4 * d if pool.sparse is None else 12 * max(1.0, pool.sparse.nnz / n)
    while len(order):
        last = order[0]
        alike = order[(halvings[order] == halvings[last]) & (shares[order] == shares[last])]
        width = int(COPIED_ROWS_BYTES // (row_bytes * sizes[alike].max()))
        if shares[last]:
            width = min(max(WIDE_CELLS // n, 8), MODELS_PER_PRODUCT)
        for start in range(0, len(alike), max(1, width)):
            yield alike[start : start + max(1, width)], int(halvings[last]), bool(shares[last])
        order = order[len(alike) :]


def weights_on(pool: _Pool, members: Members, reach: float) -> tuple[Floats, Flags]:
    """The minimum for each training set.

    Args:
        pool: all records.
        members: bool ``[models, n]``; each with records of both classes.
        reach: the largest norm of a centred query.

    Returns:
        Weights ``[models, d]``; and bool ``[models]``: whether the score of every query is certain to 1e-6.
    """
    weights = np.zeros((len(members), pool.X.shape[1]))
    sure = np.zeros(len(members), dtype=bool)
    for models, halvings, shares in _blocks(pool, members):
        try:
            if pool.entries is not None:
                weights[models], sure[models] = _one_by_one(pool, halvings, members[models], reach)
                continue
            metric = pool.start(halvings)
        except np.linalg.LinAlgError:
            continue
        block = (_shared if shares else _own)(pool, metric, members[models])
        excess, certain = pool.penalties(members[models])
        block = replace(block, excess=excess)
        start = metric.weights + _descend(block, metric).astype(np.float64) @ metric.basis.T
        weights[models], sure[models] = _polish(pool, metric, block, start, reach)
        sure[models] &= certain
    return weights, sure


def _one_by_one(pool: _Pool, halvings: int, members: Members, reach: float) -> tuple[Floats, Flags]:
    """The same by the compiled loops, for models with about ``2^-halvings`` of the pool's records."""
    tolerance = LOG_PROBABILITY_TOLERANCE_NATS
    start, curvature = pool.start(halvings)
    problem = _problem(pool, curvature, reach, COMPILED_TOLERANCE_SHARE * tolerance)
    costs = pool.costs(members)
    found = [problem.minimum(np.flatnonzero(own), cost, start) for own, cost in zip(members, costs, strict=True)]
    gradient = np.stack([one.gradient for one in found])
    bend, pulls = (np.array([getattr(one, name) for one in found]) for name in ("bend", "pull"))
    error = _score_error(pool, gradient, bend, pulls, reach)
    return np.stack([one.weights for one in found]), error <= tolerance


def weights_alone(pool: _Pool, members: Flags, start: Floats, queries: Floats) -> tuple[Floats, bool]:
    """The minimum for one training set, by Newton's method with its own Hessian.

    In the norm of the Hessian at w the minimum is no farther than ``-log(1 - R D) / R``, with D the norm of ``L^-1 g``
    and R the largest norm of ``L^-1 x`` over the records: their slopes fall by no more than ``exp(-t)`` while the
    scores move by t (Bach 2010, Proposition 1).

    Args:
        pool: all records.
        members: bool ``[n]``, with records of both classes.
        start: weights to start from ``[d]``, if they are better than none.
        queries: rows ``[queries, d]``.

    Returns:
        Weights ``[d]``, and whether the score of every query is certain to 1e-6.
    """
    X, y = pool.X[members], pool.y[members]
    cost = _each(pool.costs(members[None]), y[None])[0]
    none = np.zeros(X.shape[1])
    better = _objective(pool, X, y, cost, start)[0] < _objective(pool, X, y, cost, none)[0]
    try:
        fit = _newton(pool, X, y, cost, start if better else none, enough=0.0)
    except np.linalg.LinAlgError:
        return none, False
    far = longest(solved(fit.lower, X))
    decrement = fit.decrement + SUM_RELATIVE_ERROR * far * (cost @ np.abs(_logistic(X @ fit.weights) - y))
    error = -np.log1p(-far * decrement) / far * longest(solved(fit.lower, queries))
    return fit.weights, bool(error <= LOG_PROBABILITY_TOLERANCE_NATS)


def _scores(rows: NDArray[Any] | _Thin, weights: NDArray[Any]) -> NDArray[Any]:
    """``[models, m]`` from weights ``[models, d]``; rows as in :class:`_Block`."""
    if isinstance(rows, _Thin):
        return rows.scores(weights)
    scores: NDArray[Any] = weights @ rows.T if rows.ndim == 2 else np.matmul(rows, weights[:, :, None])[:, :, 0]
    return scores


def _sums(rows: NDArray[Any] | _Thin, factors: NDArray[Any]) -> NDArray[Any]:
    """Rows times factors ``[models, m]``, summed: ``[models, d]``."""
    if isinstance(rows, _Thin):
        return rows.sums(factors)
    sums: NDArray[Any] = factors @ rows if rows.ndim == 2 else np.matmul(factors[:, None, :], rows)[:, 0]
    return sums


def _ratio(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """``a / b`` in a column, 0 where b is not above 0: where there is nothing left to do."""
    ratio: NDArray[Any] = np.divide(a, b, out=np.zeros_like(a), where=b > 0)
    return ratio[:, None]


@dataclass(frozen=True)
class _Excess:
    """How much more than in the pool coefficients cost, in the coordinates of a metric and in single precision.

    Args:
        diagonal: the same for the coefficients themselves ``[models, d]``.
        basis: T ``[d, d]``.
    """

    diagonal: Singles
    basis: Singles

    @classmethod
    def of(cls, block: _Block, metric: _Metric) -> _Excess | None:
        """That of a block; ``None`` if they cost no more."""
        if block.excess is None:
            return None
        return cls(block.excess.astype(np.float32), metric.basis.astype(np.float32))

    def at(self, weights: Floats) -> Singles:
        """Its gradient at weights ``[d]``, ``[models, d]``."""
        return np.asarray((self.diagonal * weights.astype(np.float32)) @ self.basis)

    def times(self, direction: Singles) -> Singles:
        """Its second derivative along directions ``[models, d]``."""
        return np.asarray((self.diagonal * (direction @ self.basis.T)) @ self.basis)


def _descend(block: _Block, metric: _Metric) -> Singles:
    """Nonlinear conjugate gradients (Hager and Zhang 2005), whitened, from the metric's weights ``[models, d]``.

    A step goes as far as the curvature says: near the minimum, and with rows that are nearly round, that is far enough.
    """
    half_cost = (0.5 * block.cost).astype(np.float32)
    sign = np.where(block.y, np.float32(1), np.float32(-1))
    half = np.broadcast_to(block.half, half_cost.shape).copy()
    tanh = np.tanh(half)  # 2 p - 1
    moved = np.zeros((len(half), len(metric.weights)), dtype=np.float32)
    pull = np.repeat(metric.pull[None], len(half), axis=0)
    more = _Excess.of(block, metric)
    if more is not None:
        pull += more.at(metric.weights)
    gradient = pull + _sums(block.white, half_cost * (tanh - sign))
    first, direction = dots(gradient, gradient), -gradient
    for _ in range(MAX_GRADIENT_STEPS):
        along = _scores(block.white, direction)
        pulled = direction * metric.penalty
        if more is not None:
            pulled += more.times(direction)
        bend = 1 - tanh * tanh
        bend *= half_cost
        bend *= along
        length = _ratio(-dots(gradient, direction), dots(direction, pulled) + 0.5 * dots(bend, along))
        moved += length * direction
        pull += length * pulled
        along *= 0.5 * length
        half += along
        np.tanh(half, out=tanh)
        rest = np.subtract(tanh, sign, out=along)
        rest *= half_cost
        new = pull + _sums(block.white, rest)
        going = dots(new, new) > metric.rough**2
        if not going.any():
            break
        change = new - gradient
        fall = dots(direction, change)
        turn = _ratio(dots(new, change) - 2 * dots(change, change) * _ratio(dots(direction, new), fall)[:, 0], fall)
        direction = turn * direction - new
        direction[~going] = 0.0
        gradient = new
    better = dots(new, new) < first
    return np.where(better[:, None], moved, np.float32(0))


def _polish(pool: _Pool, metric: _Metric, block: _Block, weights: Floats, reach: float) -> tuple[Floats, Flags]:
    """Newton's method for each model, until the scores are certain or no step helps."""
    before = np.full(len(weights), np.inf)
    for _ in range(MAX_ROUNDS):
        p = _logistic(_scores(block.exact, weights))
        pulls = block.cost * (p - block.y)
        gradient = _sums(block.exact, pulls) + pool.penalty * weights
        if block.excess is not None:
            gradient += block.excess * weights
        p *= 1 - p
        p *= block.cost
        error = _score_error(pool, gradient, p.sum(axis=1), np.abs(pulls).sum(axis=1), reach, block.least)
        going = (error > LOG_PROBABILITY_TOLERANCE_NATS) & (error < before / 2)
        if not going.any():
            break
        enough = 0.5 * LOG_PROBABILITY_TOLERANCE_NATS / np.where(going, error, 0)
        step = _newton_step(metric, block, gradient, p.astype(np.float32), enough)
        weights = weights + np.where(going[:, None], step, 0)
        before = np.where(going, error, before)
    return weights, error <= LOG_PROBABILITY_TOLERANCE_NATS


def _newton_step(metric: _Metric, block: _Block, gradient: Floats, bend: Singles, enough: Floats) -> Floats:
    """Newton's step by conjugate gradients ``[models, d]``: the residual is reduced by about the factor ``enough``."""
    white = gradient @ metric.basis
    scale = np.linalg.norm(white, axis=1, keepdims=True)
    close = np.square(np.maximum(enough, SMALLEST_RESIDUAL_FACTOR))
    rest = (-white / scale).astype(np.float32)
    moved, direction, more = np.zeros_like(rest), rest.copy(), _Excess.of(block, metric)
    size = dots(rest, rest)
    for _ in range(MAX_GRADIENT_STEPS):
        along = _scores(block.white, direction)
        along *= bend
        image = direction * metric.penalty + _sums(block.white, along)
        if more is not None:
            image += more.times(direction)
        length = _ratio(size, dots(direction, image))
        moved += length * direction
        rest -= length * image
        new = dots(rest, rest)
        if (new <= close).all():
            break
        direction *= _ratio(new, size)
        direction += rest
        size = new
    step: Floats = (scale * moved) @ metric.basis.T
    return step


def _score_error(
    pool: _Pool, gradient: Floats, bend: Floats, pulls: Floats, reach: float, least: Floats | float = 1.0
) -> Floats:
    """How far the score of any query can be from that at the minimum, no less ``[models]``.

    With coefficients off by u and the centred intercept by v, ``g'(u, v) >= P |u|^2`` because the penalty is convex by
    that much if no coefficient costs less than P. Since ``sum c_i (p_i - y_i) = g_v``, and the logistic function's
    slope falls by no more than the factor ``exp(-t)`` over a distance t, some record's score is off by at most
    ``s = -log(1 - |g_v| / bend)``: so ``|v| <= R |u| + s`` where R is the largest norm of a centred record, and ``|u|``
    follows.

    Args:
        pool: all records.
        gradient: g ``[models, d]``.
        bend: the sum of ``c p (1 - p)`` over the records ``[models]``.
        pulls: the sum of ``c |p - y|`` over the records ``[models]``, for the rounding errors of g.
        reach: the largest norm of a centred query.
        least: P ``[models]``, or for all models.
    """
    rounding = SUM_RELATIVE_ERROR * pulls * pool.largest
    error: Floats
    if pool.penalty.all():
        error = (np.linalg.norm(gradient, axis=1) + rounding) * reach / least
        return error
    level = np.abs(gradient[:, -1]) + SUM_RELATIVE_ERROR * pulls
    slack = np.where(level < bend, -np.log1p(-level / bend), np.inf)
    along = np.linalg.norm((gradient - gradient[:, -1:] * pool.centre)[:, :-1], axis=1) + rounding
    off = (along + pool.radius * level) / least + np.sqrt(level * slack / least)
    error = (reach + pool.radius) * off + slack
    return error
