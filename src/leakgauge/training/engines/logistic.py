"""Binary L2 logistic regression without each record in turn: one fit, one factorisation, a few matrix products.

Leaving record t out of the objective ``F(w) = w'Pw/2 + sum_i c_i loss(x_i'w, y_i)`` moves its minimum by ``delta`` with

    ``H_t delta = c_t x_t (p_t - y_t) - sum over i != t of c_i x_i r_i(x_i'delta)``,

    ``r_i(e) = s(z_i + e) - s(z_i) - s'(z_i) e``,

where s is the logistic function, z the scores of the full model, ``p = s(z)``, and ``H_t`` the Hessian without t. The
equation is exact: what one Newton step leaves out is all in r, which is of second order. In coordinates whitened by the
full Hessian ``H_t`` is the identity less one outer product, so an iteration for a block of records is two matrix
products and an elementwise map. It starts at the one-step approximation (Rad and Maleki 2020) and, with Anderson
acceleration, reaches the refit itself in a few more.

scikit-learn stops when the *mean* gradient is below ``tol``, which leaving out one of n records hardly moves. What is
found here is the minimum itself, that is, what scikit-learn finds at a tolerance far below 1/n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.training.engines.base import Engine
from leakgauge.training.engines.refit import Refit
from leakgauge.training.engines.stateless import Given, given
from leakgauge.training.job import Job
from leakgauge.training.subsets import Indices
from leakgauge.training.threads import one_thread

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.floating[Any]]

BLOCK = 64
"""Records left out together: few enough for their scores to stay in the processor's cache."""

MOST_STEPS = 200
CLOSE = 1e-8
"""Largest change of a score in the last step."""

ROUGH = 1e-5
"""How far single precision is followed before double precision takes over."""

MOST_COLUMNS = 4000

SINGULAR = 1e-7
"""Ratio of the diagonal of the Cholesky factor below which the Hessian has lost all its digits."""


class LogisticRegressionNewton(Engine):
    """``LogisticRegression`` with two classes and a squared penalty."""

    name = "logistic-regression"
    method = "shared-Hessian Newton iteration from the full fit, to convergence"
    tolerance = 1e-7

    def refuses(self, job: Job) -> str | None:
        """Another learner or sort of job, more than two classes, another penalty."""
        case = given(job, self._kinds(), sparse=False, whole=True)
        return case if isinstance(case, str) else _unsupported(case)

    def run(self, job: Job) -> Floats:
        """The answers ``[models, queries, 2]``; NaN where only one class would be left."""
        case = given(job, self._kinds(), sparse=False, whole=True)
        assert isinstance(case, Given)  # a job that is refused is not run
        with np.errstate(over="ignore", under="ignore", invalid="ignore"), one_thread():
            try:
                scores = self._scores(job, case)
            except np.linalg.LinAlgError:  # hardly any penalty, and classes that can be told apart: no Hessian is left
                return Refit().run(job)
            # scikit-learn calls the later of its sorted labels the positive one; the schema may have them in any order.
            later = log_probabilities(scores)
        return later if _positive(case) == 1 else later[:, :, ::-1]

    def _scores(self, job: Job, case: Given) -> Floats:
        """Scores ``[models, queries]``."""
        problem = _problem(case)
        if job.trains_on_all:
            whole = _design(case, case.queries) @ minimum(problem).weights
            return np.repeat(whole[None, :], len(job.subsets), axis=0)
        scores = scores_without(problem, case.removed)[:, None]
        scores[case.counts[case.labels[case.removed]] == 1] = np.nan
        return scores

    def displacements(self, job: Job) -> Floats:
        """How far the coefficients, and last the intercept if there is one, move without each record ``[models, d]``.

        For a leave-one-out job that is not refused; NaN where only one class would be left.

        Raises:
            numpy.linalg.LinAlgError: there is hardly any penalty, and the classes can be told apart.
        """
        case = given(job, self._kinds(), sparse=False)
        assert isinstance(case, Given)  # a job that is refused is not run
        with np.errstate(over="ignore", under="ignore"), one_thread():
            moves = weights_without(_problem(case), case.removed)
        moves[case.counts[case.labels[case.removed]] == 1] = np.nan
        return moves

    def _kinds(self) -> tuple[type, ...]:
        from sklearn.linear_model import LogisticRegression

        return (LogisticRegression,)


@dataclass(frozen=True)
class Problem:
    """A weighted, penalised logistic regression.

    Args:
        X: features, with a last column of ones if there is an intercept, ``[n, d]``.
        y: 0 or 1 ``[n]``.
        cost: c, the weight of each record's loss, ``[n]``.
        penalty: the diagonal of P ``[d]``: 1 for coefficients, 0 for the intercept.
    """

    X: Floats
    y: Floats
    cost: Floats
    penalty: Floats

    def without(self, record: int) -> Problem:
        """The same without one record."""
        left = np.arange(len(self.y)) != record
        return Problem(self.X[left], self.y[left], self.cost[left], self.penalty)


@dataclass(frozen=True)
class Minimum:
    """The fit with all records, in the coordinates in which leaving one out is easy.

    Args:
        problem: what was fitted.
        weights: w ``[d]``.
        scores: z ``[n]``.
        lower: Cholesky factor L of the Hessian ``[d, d]``.
        white: X whitened, ``X L^-T`` ``[n, d]``.
    """

    problem: Problem
    weights: Floats
    scores: Floats
    lower: Floats
    white: Floats


def minimum(problem: Problem) -> Minimum:
    """Newton's method with step halving, until no step makes the gradient smaller.

    Raises:
        numpy.linalg.LinAlgError: the Hessian is singular to rounding.
    """
    from scipy.linalg import cho_solve, cholesky, solve_triangular

    X, w = problem.X, np.zeros(problem.X.shape[1])
    value, gradient = _objective(problem, w)
    size = np.abs(X).T @ problem.cost + problem.penalty
    while True:
        p = _logistic(X @ w)
        hessian = (X * (problem.cost * p * (1 - p))[:, None]).T @ X + np.diag(problem.penalty)
        lower = cholesky(hessian, lower=True)
        if lower.diagonal().min() < SINGULAR * lower.diagonal().max():
            raise np.linalg.LinAlgError("the Hessian is singular to rounding")
        step = cho_solve((lower, True), gradient)
        better = None if np.max(np.abs(gradient) / size) < 1e-15 else _better(problem, w, step, value, gradient)
        if better is None:
            white = np.ascontiguousarray(solve_triangular(lower, X.T, lower=True).T)
            return Minimum(problem, w, X @ w, lower, white)
        w, value, gradient = better


def scores_without(problem: Problem, removed: Indices) -> Floats:
    """The score of each removed record by the model without it ``[m]``, exactly."""
    full = minimum(problem)
    moved, lost = displaced(full, removed)
    scores: Floats = full.scores[removed] + np.einsum("ij,ij->i", full.white[removed], moved)
    for model in np.flatnonzero(lost):  # hardly ever: nearly separable data whose fit one record decides
        scores[model] = problem.X[removed[model]] @ minimum(problem.without(int(removed[model]))).weights
    return scores


def weights_without(problem: Problem, removed: Indices) -> Floats:
    """How far the minimum moves without each record ``[m, d]``."""
    from scipy.linalg import solve_triangular

    full = minimum(problem)
    moved, lost = displaced(full, removed)
    moves: Floats = solve_triangular(full.lower, moved.T, lower=True, trans="T").T
    for model in np.flatnonzero(lost):
        moves[model] = minimum(problem.without(int(removed[model]))).weights - full.weights
    return moves


def displaced(full: Minimum, removed: Indices) -> tuple[Floats, Flags]:
    """Where the minimum moves when each record is left out.

    Args:
        full: the fit with all records.
        removed: the record that each model lacks ``[m]``.

    Returns:
        ``L' delta`` for each model ``[m, d]``, whitened: the score of a query q changes by ``q L^-T`` times it; and
        bool ``[m]``: where the iteration did not converge.
    """
    moved = np.empty((len(removed), full.white.shape[1]))
    lost = np.zeros(len(removed), dtype=bool)
    single = full.white.astype(np.float32)
    start = _one_step(full, removed)
    # Records that move the model about equally far are done together, the farthest first.
    order = np.argsort(-np.linalg.norm(start.moved, axis=1), kind="stable")
    for first in range(0, len(removed), BLOCK):
        part = order[first : first + BLOCK]
        block = start.of(part)
        rough, _ = _iterate(full, single, block, ROUGH)
        moved[part], lost[part] = _iterate(full, full.white, block.at(rough), CLOSE)
    return moved, lost


@dataclass(frozen=True)
class _Start:
    """Records to leave out, and where one Newton step takes the minimum.

    Args:
        records: t ``[m]``.
        own: their whitened features ``[m, d]``.
        pull: ``c_t (p_t - y_t)`` ``[m]``.
        inverse: a in ``H_t^-1 = I + a x x'`` ``[m]`` (Sherman and Morrison).
        moved: ``[m, d]``.
    """

    records: Indices
    own: Floats
    pull: Floats
    inverse: Floats
    moved: Floats

    def of(self, part: Indices) -> _Start:
        return _Start(self.records[part], self.own[part], self.pull[part], self.inverse[part], self.moved[part])

    def at(self, moved: Floats) -> _Start:
        return _Start(self.records, self.own, self.pull, self.inverse, moved)

    def solve(self, right: Floats, rows: Indices) -> Floats:
        """``H_t^-1`` times each row."""
        own = self.own[rows]
        along: Floats = self.inverse[rows] * np.einsum("ij,ij->i", own, right)
        return right + along[:, None] * own


def _one_step(full: Minimum, removed: Indices) -> _Start:
    cost, p = full.problem.cost[removed], _logistic(full.scores[removed])
    own = full.white[removed]
    leverage = np.einsum("ij,ij->i", own, own)
    curvature = cost * p * (1 - p)
    start = _Start(removed, own, cost * (p - full.problem.y[removed]), curvature / (1 - curvature * leverage), own)
    return start.at(start.solve(start.pull[:, None] * own, np.arange(len(removed))))


def _iterate(full: Minimum, white: Numbers, start: _Start, close: float) -> tuple[Floats, Flags]:
    """Fixed-point iteration of the difference equation, in the precision of ``white``; finished records leave."""
    dtype = white.dtype
    fitted = _logistic(full.scores)[:, None]
    p, slope = fitted.astype(dtype), (full.problem.cost[:, None] * fitted * (1 - fitted)).astype(dtype)
    reach = float(np.sqrt(np.einsum("ij,ij->i", full.white, full.white).max()))
    moved = start.moved.copy()
    active = np.arange(len(moved))
    before: list[tuple[Floats, Floats]] = []
    for _ in range(MOST_STEPS):
        now = moved[active]
        rest = remainder(p, slope, white @ now.T.astype(dtype))
        rest[start.records[active], np.arange(len(active))] = 0.0
        right = start.pull[active][:, None] * start.own[active] - rest.T @ white
        image = start.solve(right, active)
        if not np.isfinite(image).all():
            break
        done = np.linalg.norm(image - now, axis=1) * reach <= close
        moved[active] = np.where(done[:, None], image, accelerated(before, now, image))
        before = [(x[~done], fx[~done]) for x, fx in [*before[-1:], (now, image)]]
        active = active[~done]
        if not len(active):
            break
    lost = np.zeros(len(moved), dtype=bool)
    lost[active] = True
    return moved, lost


def accelerated(before: list[tuple[Floats, Floats]], x: Floats, fx: Floats) -> Floats:
    """Anderson acceleration of ``x -> f(x)``: the mix of the last images whose steps cancel best, row by row.

    Args:
        before: earlier points and their images, each ``[m, d]``.
        x: the last point.
        fx: its image.
    """
    if not before:
        return fx
    step = fx - x
    changes = np.stack([step - (fb - b) for b, fb in before], axis=2)
    images = np.stack([fx - fb for _, fb in before], axis=2)
    gram = np.einsum("ndk,ndl->nkl", changes, changes)
    ridge = 1e-12 * np.trace(gram, axis1=1, axis2=2) + np.finfo(float).tiny
    gram += ridge[:, None, None] * np.eye(gram.shape[1])
    mix = np.linalg.solve(gram, np.einsum("ndk,nd->nk", changes, step)[:, :, None])[:, :, 0]
    mixed = fx - np.einsum("ndk,nk->nd", images, mix)
    sound = np.isfinite(mixed).all(axis=1) & (np.abs(mix).sum(axis=1) < 100)
    return np.where(sound[:, None], mixed, fx)


def remainder(p: Numbers, slope: Numbers, e: Numbers) -> Numbers:
    """What the logistic function does beyond its tangent: ``c (s(z + e) - s(z) - s'(z) e)``.

    Args:
        p: ``s(z)`` ``[n, 1]``.
        slope: ``c p (1 - p)`` ``[n, 1]``.
        e: ``[n, m]``, in the same precision.
    """
    largest = max(float(e.max(initial=0.0)), -float(e.min(initial=0.0)))
    terms = _terms(largest, single=e.dtype == np.float32)
    if terms is None:
        grown = np.exp(np.clip(e, -80, 80))
        r = (grown - 1) / (p * grown + (1 - p))
        r -= e
        r *= slope
        return r
    v, q = p * (1 - p), 1 - 2 * p
    # The Taylor series from its second term on, divided by s'(z): s''/2!, s'''/3!, ...
    coefficients = (
        q / 2,
        (1 - 6 * v) / 6,
        q * (1 - 12 * v) / 24,
        (1 - 30 * v + 120 * v * v) / 120,
        q * (1 - 60 * v + 360 * v * v) / 720,
    )[:terms]
    r = coefficients[-1] * e
    for coefficient in coefficients[-2::-1]:
        r += coefficient
        r *= e
    r *= e
    r *= slope
    return r


def _terms(largest: float, *, single: bool) -> int | None:
    """Terms of the series that leave no more than rounding; ``None`` where the function itself is needed.

    The series converges like ``(e/pi)^k``.
    """
    limits = ((1e-3, 2), (0.03, 3), (0.25, 5)) if single else ((1e-4, 3), (1e-3, 4), (0.01, 5))
    return next((terms for limit, terms in limits if largest < limit), None)


def log_probabilities(scores: Floats) -> Floats:
    """Log-probabilities of both classes ``[..., 2]`` from scores ``[...]``."""
    return np.stack([-np.logaddexp(0, scores), -np.logaddexp(0, -scores)], axis=-1)


def _objective(problem: Problem, w: Floats) -> tuple[float, Floats]:
    z = problem.X @ w
    value = problem.cost @ (np.logaddexp(0, z) - problem.y * z) + 0.5 * (problem.penalty * w) @ w
    return float(value), problem.X.T @ (problem.cost * (_logistic(z) - problem.y)) + problem.penalty * w


def _better(
    problem: Problem, w: Floats, step: Floats, value: float, gradient: Floats
) -> tuple[Floats, float, Floats] | None:
    """The first of the halved steps that gains; near the minimum only the gradient can tell."""
    length = 1.0
    while length > 1e-6:
        tried = w - length * step
        tried_value, tried_gradient = _objective(problem, tried)
        gains = tried_value < value - 1e-9 * abs(value)
        if gains or np.linalg.norm(tried_gradient) < 0.9 * np.linalg.norm(gradient):
            return tried, tried_value, tried_gradient
        length /= 2
    return None


def _logistic(z: Floats) -> Floats:
    from scipy.special import expit

    p: Floats = expit(z)
    return p


def _problem(case: Given) -> Problem:
    estimator = case.estimator
    y = (case.labels == _positive(case)).astype(np.float64)
    cost = np.full(len(y), float(estimator.C))
    for label, weight in (estimator.class_weight or {}).items():
        cost[case.classes[case.labels] == label] *= weight
    penalty = np.ones(case.matrix.shape[1])
    if estimator.fit_intercept:
        penalty = np.append(penalty, 0.0)
    return Problem(_design(case, case.matrix), y, cost, penalty)


def _design(case: Given, matrix: Floats) -> Floats:
    """Features, and a column of ones for the intercept."""
    if case.estimator.fit_intercept:
        matrix = np.concatenate([matrix, np.ones((len(matrix), 1))], axis=1)
    return np.ascontiguousarray(matrix)


def _positive(case: Given) -> int:
    """The code of the class whose probability rises with the score."""
    return 1 if case.classes[0] < case.classes[1] else 0


def _unsupported(case: Given) -> str | None:
    estimator = case.estimator
    if (case.counts > 0).sum() != 2 or len(case.classes) != 2:
        return "LogisticRegression is supported for two classes only"
    if not 0 < estimator.C < np.inf or estimator.l1_ratio or estimator.penalty not in ("deprecated", "l2"):
        return "LogisticRegression is supported with a squared penalty only (l1_ratio=0, C below infinity)"
    if estimator.solver == "liblinear" and estimator.fit_intercept:
        return "LogisticRegression(solver='liblinear') penalises the intercept"
    if estimator.class_weight is not None and not isinstance(estimator.class_weight, dict):
        return f"LogisticRegression(class_weight={estimator.class_weight!r}) depends on the counts of the classes"
    if case.matrix.shape[1] > MOST_COLUMNS:
        return f"LogisticRegression is supported for at most {MOST_COLUMNS:,} columns"
    return None
