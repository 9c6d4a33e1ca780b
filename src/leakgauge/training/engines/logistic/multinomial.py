"""Multinomial L2 logistic regression without each record in turn: one fit, then a few products for a block of records.

With softmax probabilities p, one-hot labels y, costs c and penalties P, the fit W ``[classes, d]`` is the minimum of

    ``F(W) = sum over classes of w'P w / 2 + sum_i c_i loss(W x_i, y_i)``.

Without record t (the others may then have costs c' instead of c) it moves by the Delta that solves

    ``b_t + Delta P + sum_i c'_i (p_i(W + Delta) - p_i(W)) x_i' = 0``,

    ``b_t = sum_i (c'_i - c_i) (p_i(W) - y_i) x_i'``,

where ``c'_t = 0``. Behind steps that are fitted on the records (see :mod:`leakgauge.training.engines.fitted`) P_t takes
the place of P, and ``W (P_t - P)`` adds to b_t. The equation is exact, and a difference: rounding is relative to what
one record moves, so that single precision goes far. Where it ends, the left side is found anew in double precision.

The matrix of second derivatives H is applied to a whole block of records by two products with X. What is inverted,
once, are its diagonal blocks M, one for each class. W and Delta sum to zero over the classes, and on such matrices the
spectrum of H relative to M lies below 2 and hardly reaches down to 0.2: L-BFGS with unit steps that starts from the
inverse of M gains a digit every two or three steps, for each record of the block on its own. The few lowest
eigenvalues are known from the Lanczos method; they improve that start, and turn the gradient into a bound on the
error of every score.

scikit-learn stops when the *mean* gradient is below ``tol``, which leaving out one of n records hardly moves. What is
found here is the minimum itself, that is, what scikit-learn finds at a tolerance far below 1/n.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices, Numbers, Singles
from leakgauge.training.engines.base import Engine, JobOutcome, PreparedJob, Refusal, RefusalKind
from leakgauge.training.engines.fitted import MOVING_VALUES, NO_INTERCEPT, fitted_steps
from leakgauge.training.engines.logistic.wanted import given_logistic_regression, no_multinomial_minimum
from leakgauge.training.engines.stateless import Given, fill_by_training
from leakgauge.training.job import Job
from leakgauge.training.threads import one_thread

State = TypeVar("State", "_Memory", "_Block")

LOG_PROBABILITY_TOLERANCE_NATS = 1e-6
"""Largest error of a log-probability; double precision can promise 1e-9."""

SINGLE_PRECISION_GRADIENT_RATIO = 3e-5
"""How far single precision is followed, relative to the gradient that was last found in double precision."""

SINGLE_PRECISION_LAST_RATIO = 1e-4
"""The same, below which single precision may not say that a model is done."""

MAX_LBFGS_STEPS = 200
MOST_SINGLE_STEPS = 40
MOST_NEWTON_STEPS = 100
MOST_PRODUCTS = 200

N_LBFGS_PAIRS = 5
"""Steps that L-BFGS remembers."""

N_LANCZOS = 60
N_MODES = 10

BLOCK_COLUMNS = 640
"""Records times classes of a block: wide enough for products of matrices to run at full speed."""

BLOCK_NUMBERS = 4_000_000
TILE_NUMBERS = 50_000
"""Numbers that stay in the processor's cache while probabilities are found."""

DEPENDENT_EIGENVALUE_RATIO = 1e-4
"""Ratio of the eigenvalues of a correlation matrix below which single precision is not enough for its inverse."""

MAX_MATRIX_NUMBERS = 100_000_000
"""Largest matrix that is held, be it of features or of the inverses for all classes."""

ENOUGH_KEPT = 0.1
"""Share of M that is known to be left from which records need not be looked at one by one."""

LEAST_KEPT = 1e-2
"""Share of M below which a model is fitted alone."""

RECORD_ERROR_SHARE = 0.5
"""How much of the error that is allowed a model without a record may make; the rest is for the full fit."""


class MultinomialLogisticRegression(Engine):
    """``LogisticRegression`` with three or more classes and a squared penalty."""

    name = "multinomial-logistic-regression"
    method = "L-BFGS from the full fit for blocks of records, to convergence"
    tolerance = LOG_PROBABILITY_TOLERANCE_NATS
    converges = True
    chunk = 128
    takes_missing = True

    def prepare(self, job: Job) -> PreparedLbfgs | Refusal:
        """Another learner or sort of job, two classes, another penalty or solver, more numbers than fit: refused."""
        case = given_logistic_regression(job, unsupported, any_query=True, fitted=fitted_steps)
        if isinstance(case, Refusal):
            return case
        case = case.dense()
        if case.fitted is not None and Coordinates.of(case.matrix, intercept=True).turn is not None:
            return Refusal(RefusalKind.DATA, "features that are scaled depend on each other, or nearly so")
        return PreparedLbfgs(self, job, case)


class PreparedLbfgs(PreparedJob):
    """A job whose fit with all records is found once.

    Args:
        engine: what does it.
        job: the whole job.
        case: as the last step of the learner sees it, dense.
    """

    engine: MultinomialLogisticRegression

    def __init__(self, engine: MultinomialLogisticRegression, job: Job, case: Given) -> None:
        super().__init__(engine, job)
        self.case = case

    @cached_property
    def whole(self) -> Solution | None:
        """The fit with all records, close enough for all that is asked; ``None`` if there is none."""
        with np.errstate(all="ignore"), one_thread():
            return solve(self.case, np.arange(len(self.case.labels)), self.engine.tolerance, self.case.queries)

    def share(self) -> None:
        """Fit all records."""
        if self.whole is not None:
            _ = self.whole.fit.single, self.whole.fit.reach

    def answers(self, models: Indices) -> JobOutcome:
        """The answers ``[m, queries, classes]``."""
        job, whole = self.job, self.whole
        table = np.full((len(models), job.n_queries, job.n_answers), np.nan)
        lost = np.ones(len(table), dtype=bool)
        with np.errstate(all="ignore"), one_thread():
            if whole is not None and job.trains_on_all:
                table[:] = whole.answers(whole.coordinates.rows(self.case.queries), whole.fit.weights)
                lost[:] = False
            elif whole is not None:
                _answer(self.case.part(models), whole, self.engine.tolerance, table, lost)
                lost |= self.case.unknown(models)
        return self._outcome(fill_by_training(job, models, table, lost))

    def displacements(self) -> Floats | None:
        """How far the coefficients, and last the intercepts if there are any, move without each record.

        Coefficients and intercepts sum to zero over the classes.

        Returns:
            ``[models, classes, d (+ 1)]``; 0 for a class that no record has, NaN for a model that loses a class.
            ``None`` where earlier steps are fitted on the records, which have parameters too.

        Raises:
            numpy.linalg.LinAlgError: a minimum was not found: there is hardly any penalty, and classes can be told
                apart.
        """
        case, close = self.case, self.engine.tolerance
        if case.fitted is not None:
            return None
        with np.errstate(all="ignore"), one_thread():
            whole = solve(case, np.arange(len(case.labels)), close)
            if whole is None:
                raise np.linalg.LinAlgError("the fit with all records did not converge")
            return _displacements(case, whole, close)


# ---------------------------------------------------------------- one fit


@dataclass(frozen=True)
class SoftmaxProblem:
    """A weighted, penalised softmax regression.

    Args:
        X: features, with a last column of ones if there are intercepts, ``[n, d]``.
        y: class codes ``[n]``.
        cost: c, the weight of each record's loss, ``[n]``.
        penalty: the diagonal of P ``[d]``; 0 for the intercept.
        n_classes: how many classes there are.
    """

    X: Floats
    y: Indices
    cost: Floats
    penalty: Floats
    n_classes: int

    def at(self, W: Floats) -> tuple[float, Floats, Floats]:
        """F, its gradient ``[classes, d]`` and the probabilities ``[classes, n]``."""
        scores = W @ self.X.T
        highest = scores.max(axis=0)
        total = highest + np.log(np.exp(scores - highest).sum(axis=0))
        records = np.arange(len(self.y))
        value = self.cost @ (total - scores[self.y, records]) + 0.5 * float((self.penalty * W * W).sum())
        p = np.exp(scores - total)
        gradient = (self.cost * self.misses(p)) @ self.X + self.penalty * W
        return float(value), gradient, p

    def misses(self, p: Floats) -> Floats:
        """``p - y`` with one-hot labels ``[classes, n]``."""
        records, missed = np.arange(len(self.y)), p.copy()
        missed[self.y, records] = 0.0
        missed[self.y, records] = -missed.sum(axis=0)  # p - 1 would lose the digits of a p near 1
        return missed

    def weights(self, p: Floats) -> Floats:
        """``c p (1 - p)`` ``[classes, n]``."""
        records, highest, rest = np.arange(len(self.y)), p.argmax(axis=0), p.copy()
        rest[highest, records] = 0.0
        left = 1 - p
        left[highest, records] = rest.sum(axis=0)
        weights: Floats = self.cost * p * left
        return weights

    def curve(self, p: Floats, V: Floats) -> Floats:
        """The second derivatives applied to V ``[classes, d]``."""
        e = V @ self.X.T
        e -= (p * e).sum(axis=0)
        e *= p
        e *= self.cost
        return e @ self.X + self.penalty * V


@dataclass(frozen=True)
class SoftmaxHessian:
    """What is known of the second derivatives H at some point.

    Args:
        inverse: the inverses of the diagonal blocks of H ``[classes, d, d]``: of M.
        modes: eigenvectors of H relative to M, ``[modes, classes * d]``, of length 1 by M.
        gain: ``1 / eigenvalue - 1`` ``[modes]``.
        least: the lowest eigenvalue of H relative to M, on matrices that sum to zero over the classes.
    """

    inverse: Floats
    modes: Floats
    gain: Floats
    least: float

    @classmethod
    def at(cls, problem: SoftmaxProblem, p: Floats) -> SoftmaxHessian:
        """Where the probabilities are p, without eigenvectors.

        Raises:
            numpy.linalg.LinAlgError: a block is singular to rounding.
        """
        weights = problem.weights(p)
        same = np.ptp(weights, axis=0).max() <= 1e-12 * weights.max()  # where all start
        some = np.stack([_inverse(problem, weight) for weight in (weights[:1] if same else weights)])
        inverse = np.repeat(some, len(p), axis=0) if same else some
        d = problem.X.shape[1]
        return cls(inverse, np.empty((0, len(p) * d)), np.empty(0), 0.0)

    def solve(self, G: Floats) -> Floats:
        """The inverse of M times G ``[classes, d]``, summing to zero over the classes."""
        solved: Floats = np.matmul(self.inverse, G[:, :, None])[:, :, 0]
        solved -= solved.mean(axis=0)
        return solved

    def norm(self, G: Floats) -> float:
        """The length of a gradient by the inverse of M; NaN if rounding has made that indefinite."""
        return float(np.sqrt((G * self.solve(G)).sum()))

    def reach(self, rows: Floats) -> Floats:
        """The most that a score of each row changes for a matrix of length 1 by M, squared, ``[rows]``."""
        by_class = [np.einsum("ij,ij->i", rows @ block, rows) for block in self.inverse]
        return np.asarray(np.max(by_class, axis=0), dtype=np.float64)

    def with_modes(self, problem: SoftmaxProblem, p: Floats) -> SoftmaxHessian:
        """The same with the lowest eigenvalues, by the Lanczos method with full orthogonalisation."""
        values, vectors, residuals = _lanczos(problem, p, self)
        use = np.flatnonzero((values < 1) & (residuals < 0.1 * values))[:N_MODES]
        return SoftmaxHessian(self.inverse, vectors[use], 1 / values[use] - 1, float(values[0]))


@dataclass(frozen=True)
class SoftmaxMinimum:
    """A minimum.

    Args:
        problem: what was fitted.
        weights: W ``[classes, d]``.
        p: the probabilities ``[classes, n]``.
        curvature: at the minimum, with eigenvectors.
        norm: what is left of the gradient, by the inverse of M.
    """

    problem: SoftmaxProblem
    weights: Floats
    p: Floats
    curvature: SoftmaxHessian
    norm: float

    @cached_property
    def single(self) -> _Single:
        """What the iterations in single precision need."""
        problem, curvature = self.problem, self.curvature
        parts = (problem.X, problem.penalty, curvature.inverse, curvature.modes, curvature.gain)
        return _Single(*(part.astype(np.float32) for part in parts))

    @cached_property
    def highest(self) -> Indices:
        """The likeliest class of each record ``[n]``."""
        return np.asarray(self.p.argmax(axis=0))

    @cached_property
    def reach(self) -> Floats:
        """The reach of each record ``[n]``."""
        return self.curvature.reach(self.problem.X)

    def error(self, reach: float) -> float:
        """How far log-probabilities at such a reach can be from those of the minimum, to first order."""
        return float(np.sqrt(2 * reach)) * self.norm / self.curvature.least


@dataclass(frozen=True)
class _Single:
    """Parts of a fit in single precision."""

    X: Singles
    penalty: Singles
    inverse: Singles
    modes: Singles
    gain: Singles


def minimum(problem: SoftmaxProblem) -> SoftmaxMinimum:
    """Newton's method with conjugate gradients and step halving, until no step makes the gradient smaller.

    Raises:
        numpy.linalg.LinAlgError: the second derivatives are singular to rounding.
    """
    W, gradient, p = approach(problem, 1e-14)
    curvature = SoftmaxHessian.at(problem, p).with_modes(problem, p)
    if not curvature.least > 0:
        raise np.linalg.LinAlgError("the second derivatives are singular to rounding")
    return SoftmaxMinimum(problem, W, p, curvature, curvature.norm(gradient))


def approach(problem: SoftmaxProblem, rest: float) -> tuple[Floats, Floats, Floats]:
    """The same until ``rest`` of the gradient is left, by the inverse of M, or no step makes it smaller.

    Returns:
        W ``[classes, d]``, the gradient ``[classes, d]`` and the probabilities ``[classes, n]``.

    Raises:
        numpy.linalg.LinAlgError: the second derivatives are singular to rounding.
    """
    W = np.zeros((problem.n_classes, problem.X.shape[1]))
    value, gradient, p = problem.at(W)
    curvature = SoftmaxHessian.at(problem, p)
    first = norm = curvature.norm(gradient)
    for _ in range(MOST_NEWTON_STEPS):
        if norm <= rest * first:
            break
        step, n_products = _newton_step(problem, p, curvature, gradient, min(0.1, max(0.01, norm / first)))
        better = _better(problem, curvature, W, step, value, gradient)
        if better is None:
            break
        W, (value, gradient, p) = better
        if n_products > max(20, problem.X.shape[1] // 8):
            curvature = SoftmaxHessian.at(problem, p)
        norm = curvature.norm(gradient)
    return W, gradient, p


def _inverse(problem: SoftmaxProblem, weight: Floats) -> Floats:
    """Of one block of M."""
    from scipy.linalg import cho_factor, cho_solve

    rooted = problem.X * np.sqrt(weight)[:, None]
    block = rooted.T @ rooted
    diagonal = np.diag_indices_from(block)
    block[diagonal] = (block[diagonal] + problem.penalty) * (1 + 1e-12)
    inverse: Floats = cho_solve(cho_factor(block, overwrite_a=True), np.eye(len(block)), overwrite_b=True)
    return inverse


def _newton_step(
    problem: SoftmaxProblem, p: Floats, curvature: SoftmaxHessian, gradient: Floats, rest: float
) -> tuple[Floats, int]:
    """Conjugate gradients for ``H step = -gradient`` until ``rest`` of it is left, and how often H was applied."""
    step, residual = np.zeros_like(gradient), -gradient
    solved = curvature.solve(residual)
    direction = solved
    size = first = float((residual * solved).sum())
    n_products = 0
    while size > rest**2 * first and n_products < MOST_PRODUCTS:
        image = problem.curve(p, direction)
        n_products += 1
        length = size / float((direction * image).sum())
        step += length * direction
        residual = residual - length * image
        solved = curvature.solve(residual)
        size, before = float((residual * solved).sum()), size
        direction = solved + size / before * direction
    return step, n_products


def _better(
    problem: SoftmaxProblem, curvature: SoftmaxHessian, W: Floats, step: Floats, value: float, gradient: Floats
) -> tuple[Floats, tuple[float, Floats, Floats]] | None:
    """The first of the halved steps that gains; near the minimum, where values are equal, the gradient tells."""
    slope, norm, length = float((gradient * step).sum()), curvature.norm(gradient), 1.0
    while length > 1e-6:
        tried = W + length * step
        tried -= tried.mean(axis=0)
        there = problem.at(tried)
        gains = there[0] < value + 1e-4 * length * slope and -slope * length > 1e-12 * abs(value)
        level = there[0] <= value + 1e-9 * abs(value)
        if gains or (level and curvature.norm(there[1]) < 0.9 * norm):
            return tried, there
        length /= 2
    return None


def _lanczos(problem: SoftmaxProblem, p: Floats, curvature: SoftmaxHessian) -> tuple[Floats, Floats, Floats]:
    """Approximate eigenvalues of H relative to M, ascending, eigenvectors ``[values, classes * d]``, residuals."""
    shape = (problem.n_classes, problem.X.shape[1])
    most = min(N_LANCZOS, (shape[0] - 1) * shape[1])
    images, vectors = np.empty((2, most, shape[0] * shape[1]))
    T = np.zeros((most + 1, most + 1))
    image = np.random.default_rng(0).normal(size=shape)
    for n in range(most + 1):
        image -= image.mean(axis=0)
        vector = curvature.solve(image)
        size = float(np.sqrt((image * vector).sum()))
        if n:
            T[n, n - 1] = T[n - 1, n] = size
        if n == most or not size > 1e-5:
            break
        images[n], vectors[n] = image.ravel() / size, vector.ravel() / size
        flat = problem.curve(p, vectors[n].reshape(shape)).ravel()
        T[n, n] = vectors[n] @ flat
        for _ in range(2):
            flat = flat - images[: n + 1].T @ (vectors[: n + 1] @ flat)
        image = flat.reshape(shape)
    values, mix = np.linalg.eigh(T[:n, :n])
    return values, mix.T @ vectors[:n], np.abs(T[n, n - 1] * mix[-1])


# ---------------------------------------------------------------- without each record


def displaced(
    fit: SoftmaxMinimum, removed: Indices, factors: Floats, goals: Floats, penalties: Floats | None = None
) -> Iterator[tuple[Indices, Floats, Flags]]:
    """How far the minimum moves without each record, block by block.

    Args:
        fit: with all records.
        removed: the record that each model lacks ``[models]``.
        factors: how many times as much as before a record of each class costs each model ``[models, classes]``.
        goals: how small a gradient must be by the inverse of M, if leaving out a record did not change M ``[models]``.
        penalties: the diagonal of P for each model ``[models, d]``; by default that of the fit.

    Yields:
        models ``[m]`` by their places in ``removed``; the moves ``[m, classes, d]``; and bool ``[m]``: where the
        iteration did not converge.
    """
    problem = fit.problem
    missed = (problem.misses(fit.p) ** 2).sum(axis=0)[removed]
    influence = problem.cost[removed] ** 2 * missed * fit.reach[removed]
    # Records that move the model about equally far need about equally many steps.
    order = np.argsort(-influence, kind="stable")
    width = max(1, min(BLOCK_COLUMNS, BLOCK_NUMBERS // max(problem.X.shape)) // problem.n_classes)
    penalties = (
        np.broadcast_to(problem.penalty, (len(removed), len(problem.penalty))) if penalties is None else penalties
    )
    for first in range(0, len(order), width):
        part = order[first : first + width]
        yield part, *_left_out(fit, removed[part], factors[part], goals[part], penalties[part])


def _left_out(
    fit: SoftmaxMinimum, removed: Indices, factors: Floats, goals: Floats, penalties: Floats
) -> tuple[Floats, Flags]:
    """The moves of one block, and which of them did not converge."""
    block = _block(fit, removed, factors, goals, penalties)
    moves, lost = np.zeros(block.moved.shape), np.ones(len(removed), dtype=bool)
    for _ in range(MAX_LBFGS_STEPS):
        found = _settle(fit, block)
        moves[block.model[found]], lost[block.model[found]] = block.moved[found], False
        going = ~found & np.isfinite(block.norm)
        if not going.any():
            break
        if not going.all():
            block = block[going]
        _advance(fit, block)
    return moves, lost


@dataclass
class _Memory:
    """The last steps of each model, for L-BFGS. A slot that holds nothing is zero, but for a 1 on the diagonal of sy.

    Args:
        s: steps ``[m, MEMORY, size]``.
        solved: the start's inverse of H, times how much each step changed the gradient ``[m, MEMORY, size]``.
        sy: products of steps (rows) with the changes of the gradient (columns) in the same or later steps
            ``[m, MEMORY, MEMORY]``.
        yy: products of changes with ``solved`` ``[m, MEMORY, MEMORY]``.
        age: ``[m]``: how many steps were ever taken.
    """

    s: Singles
    solved: Singles
    sy: Floats
    yy: Floats
    age: Indices

    @classmethod
    def of_nothing(cls, m: int, size: int) -> _Memory:
        s, solved = np.zeros((2, m, N_LBFGS_PAIRS, size), np.float32)
        return cls(
            s,
            solved,
            np.tile(np.eye(N_LBFGS_PAIRS), (m, 1, 1)),
            np.zeros((m, N_LBFGS_PAIRS, N_LBFGS_PAIRS)),
            np.zeros(m, np.int64),
        )

    def __getitem__(self, models: Flags) -> _Memory:
        return _some(self, models)

    def step(self, gradient: Singles, solved: Singles) -> Singles:
        """Minus the estimated inverse of H times the gradient ``[m, size]`` (Byrd, Nocedal & Schnabel 1994, eq. 3.1).

        Args:
            gradient: ``[m, size]``.
            solved: the start's inverse of H, times that ``[m, size]``.
        """
        p = np.linalg.solve(self.sy, _products(self.s, gradient))
        diagonal = np.diagonal(self.sy, axis1=1, axis2=2)[:, :, None]
        bent = diagonal * p + self.yy @ p - _products(self.solved, gradient)
        a = np.linalg.solve(self.sy.transpose(0, 2, 1), bent)
        step = _mixed(p, self.solved)
        step -= _mixed(a, self.s)
        step -= solved
        return step

    def add(self, s: Singles, y: Singles, solved: Singles) -> None:
        """Remember a step, the change of the gradient, and the start's inverse times that; forget the oldest."""
        slot = int(self.age[0]) % N_LBFGS_PAIRS
        self.age += 1
        self.s[:, slot], self.solved[:, slot] = s, solved
        self.sy[:, slot] = 0.0
        self.sy[:, :, slot] = _products(self.s, y)[:, :, 0]
        self.yy[:, :, slot] = self.yy[:, slot] = _products(self.solved, y)[:, :, 0]
        useless = ~(self.sy[:, slot, slot] > 0)  # rounding has the upper hand
        self.s[useless, slot] = self.solved[useless, slot] = 0.0
        self.sy[useless, :, slot] = self.yy[useless, :, slot] = self.yy[useless, slot] = 0.0
        self.sy[useless, slot, slot] = 1.0


@dataclass
class _Block:
    """Models that lack a record each, on the way to their minima.

    A model's anchor is where its gradient was last found in double precision; single precision counts from there.

    Args:
        model: their places in the block as it began ``[m]``.
        goal: how small ``norm`` must be if M does not change ``[m]``.
        kept: the least share of M that is left ``[m]``.
        cost: what each record costs, 0 for the one that is missing ``[m, n]``.
        penalty: the diagonal of P ``[m, 1, d]``.
        own, bend: the inverse of M without that record is ``M^-1 + bend own own'``;
            ``[m, classes, d]`` and ``[m, classes]``.
        pull: b, the gradient at the fit with all records ``[m, classes, d]``.
        moved: Delta at the anchor ``[m, classes, d]``.
        p: probabilities at the anchor ``[m, classes, n]``.
        anchored: gradient at the anchor ``[m, classes, d]``.
        delta: Delta less ``moved`` ``[m, classes, d]``.
        gradient, solved: the gradient, and nearly the inverse of H times it ``[m, classes, d]``.
        norm, first: length of the gradient by the inverse of M without the record, and at the anchor ``[m]``.
        n_steps: since the anchor ``[m]``.
        memory: of the last steps.
    """

    model: Indices
    goal: Floats
    kept: Floats
    cost: Floats
    penalty: Floats
    own: Singles
    bend: Singles
    pull: Floats
    moved: Floats
    p: Singles
    anchored: Singles
    delta: Singles
    gradient: Singles
    solved: Singles
    norm: Floats
    first: Floats
    n_steps: Indices
    memory: _Memory

    def __getitem__(self, models: Flags) -> _Block:
        return _some(self, models)


def _some(state: State, models: Flags) -> State:
    """The same for some of its models."""
    return type(state)(**{field.name: getattr(state, field.name)[models] for field in fields(state)})


def _block(fit: SoftmaxMinimum, removed: Indices, factors: Floats, goals: Floats, penalties: Floats) -> _Block:
    """A block of models at the fit with all records."""
    problem, m = fit.problem, len(removed)
    cost = problem.cost * factors[:, problem.y]
    cost[np.arange(m), removed] = 0.0
    # Without the record a block of M is M - weight x x' (Sherman & Morrison 1950).
    x = fit.single.X[removed]
    own = np.ascontiguousarray(np.matmul(x, fit.single.inverse).transpose(1, 0, 2))
    weight = problem.weights(fit.p).T[removed]
    left = np.maximum(1 - weight * np.einsum("md,mkd->mk", x, own), 1e-3)
    pull = _pull(fit, removed, factors)
    if (penalties != problem.penalty).any():
        pull += (penalties - problem.penalty)[:, None] * fit.weights
    delta, anchored, gradient, solved = np.zeros((4, *pull.shape), np.float32)
    block = _Block(
        model=np.arange(m),
        goal=goals * np.sqrt(left.min(axis=1)),
        kept=np.ones(m),
        cost=cost,
        penalty=penalties[:, None],
        own=own,
        bend=(weight / left).astype(np.float32),
        pull=pull,
        moved=np.zeros_like(pull),
        p=np.repeat(fit.p.astype(np.float32)[None], m, axis=0),
        anchored=anchored,
        delta=delta,
        gradient=gradient,
        solved=solved,
        norm=np.zeros(m),
        first=np.zeros(m),
        n_steps=np.zeros(m, np.int64),
        memory=_Memory.of_nothing(m, pull[0].size),
    )
    _anchor(fit, block, np.arange(m), pull)
    return block


def _pull(fit: SoftmaxMinimum, removed: Indices, factors: Floats) -> Floats:
    """The gradient at the fit with all records ``[m, classes, d]``."""
    problem = fit.problem
    missed = problem.cost * problem.misses(fit.p)
    own = factors[np.arange(len(removed)), problem.y[removed]]
    pull: Floats = -np.einsum("m,cm,md->mcd", own, missed[:, removed], problem.X[removed])
    if (factors != 1).any():
        of_class = np.stack([(missed * (problem.y == c)) @ problem.X for c in range(problem.n_classes)])
        pull += np.tensordot(factors - 1, of_class, axes=1)
    return pull


def _settle(fit: SoftmaxMinimum, block: _Block) -> Flags:
    """Anchor anew wherever single precision is exhausted, and say which models have arrived ``[m]``."""
    due = (block.norm <= np.maximum(block.goal * block.kept, SINGLE_PRECISION_GRADIENT_RATIO * block.first)) | (
        block.n_steps >= MOST_SINGLE_STEPS
    )
    found = np.zeros(len(due), dtype=bool)
    if 8 * due.sum() < len(due):  # waiting for others costs less than products with narrow matrices
        return found
    rows = np.flatnonzero(due)
    block.moved[rows] += block.delta[rows]
    block.moved[rows] -= block.moved[rows].mean(axis=1, keepdims=True)
    block.delta[rows] = 0.0
    block.kept[rows] = np.maximum(LEAST_KEPT, _kept(fit, block.cost[rows] > 0, block.moved[rows]))
    goal = block.goal[rows] * block.kept[rows]
    sure = (block.norm[rows] <= goal) & (block.norm[rows] >= SINGLE_PRECISION_LAST_RATIO * block.first[rows])
    if not sure.all():
        _anchor_anew(fit, block, rows[~sure])
    found[rows] = block.norm[rows] <= goal
    return found


def _kept(fit: SoftmaxMinimum, counted: Flags, moved: Floats) -> Floats:
    """The least share of M that is left at other minima ``[m]``, of the records that count ``[m, n]``.

    Scores that move by no more than s leave ``p (1 - p)`` of each record at least ``exp(-4 s)`` of what it was; where
    that is too little, the records are looked at.
    """
    furthest = np.sqrt(np.einsum("nd,nd->n", fit.problem.X, fit.problem.X).max(initial=0.0))
    kept = np.exp(-4 * furthest * np.linalg.norm(moved, axis=2).max(axis=1))
    near = np.flatnonzero(kept < ENOUGH_KEPT)
    if len(near):
        kept[near] = _kept_of_records(fit, counted[near], moved[near])
    return np.asarray(kept)


def _kept_of_records(fit: SoftmaxMinimum, counted: Flags, moved: Floats) -> Floats:
    """The same by every record.

    M is a sum over records: it keeps the share that each record keeps, and loses no more than all lose together, each
    by its weight times its reach.
    """
    problem = fit.problem
    p = moved @ problem.X.T
    _to_probabilities(p, fit.p[None], fit.highest)
    p += fit.p
    weights = np.where(counted, problem.cost, 0.0)[:, None] * fit.p * (1 - fit.p)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.fmin(p * (1 - p) / (fit.p * (1 - fit.p)), 1.0)
    left[weights == 0] = 1.0
    together = 1 - ((1 - left) * weights) @ fit.reach
    return np.asarray(np.maximum(left.min(axis=2), together).min(axis=1))


def _anchor_anew(fit: SoftmaxMinimum, block: _Block, rows: Indices) -> None:
    """Find gradients in double precision."""
    problem, (m, k, d) = fit.problem, block.moved[rows].shape
    moved = block.moved[rows]
    change = (moved.reshape(m * k, d) @ problem.X.T).reshape(m, k, -1)
    _to_probabilities(change, fit.p[None], fit.highest)
    block.p[rows] = fit.p + change
    change *= block.cost[rows][:, None]
    gradient = (change.reshape(m * k, -1) @ problem.X).reshape(m, k, d)
    gradient += block.penalty[rows] * moved + block.pull[rows]
    _anchor(fit, block, rows, gradient)


def _anchor(fit: SoftmaxMinimum, block: _Block, rows: Indices, gradient: Floats) -> None:
    block.anchored[rows] = block.gradient[rows] = gradient
    block.solved[rows], block.norm[rows] = _solve(fit, block, rows, block.gradient[rows])
    block.first[rows] = block.norm[rows]
    block.n_steps[rows] = 0


def _advance(fit: SoftmaxMinimum, block: _Block) -> None:
    """One step of L-BFGS, of length 1."""
    m, k, d = block.gradient.shape
    step = block.memory.step(block.gradient.reshape(m, -1), block.solved.reshape(m, -1))
    block.delta += step.reshape(m, k, d)
    change: Singles = (block.delta.reshape(m * k, d) @ fit.single.X.T).reshape(m, k, -1)
    _to_probabilities(change, block.p, fit.highest)
    change *= block.cost.astype(np.float32)[:, None]
    gradient: Singles = (change.reshape(m * k, -1) @ fit.single.X).reshape(m, k, d)
    gradient += block.penalty.astype(np.float32) * block.delta
    gradient += block.anchored
    solved, block.norm = _solve(fit, block, slice(None), gradient)
    block.memory.add(step, (gradient - block.gradient).reshape(m, -1), (solved - block.solved).reshape(m, -1))
    block.gradient, block.solved = gradient, solved
    block.n_steps += 1


def _solve(fit: SoftmaxMinimum, block: _Block, rows: Any, gradient: Singles) -> tuple[Singles, Floats]:
    """Nearly the inverse of H times the gradients, and their lengths by the inverse of M without the record."""
    single, own, solved = fit.single, block.own[rows], np.empty_like(gradient)
    np.matmul(gradient.transpose(1, 0, 2), single.inverse, out=solved.transpose(1, 0, 2))
    solved += (block.bend[rows] * np.einsum("mkd,mkd->mk", own, gradient))[:, :, None] * own
    solved -= solved.mean(axis=1, keepdims=True)
    norm = np.sqrt(np.einsum("mkd,mkd->m", gradient, solved, dtype=np.float64))
    flat = gradient.reshape(len(gradient), -1)
    solved += ((flat @ single.modes.T * single.gain) @ single.modes).reshape(solved.shape)
    return solved, norm


def _to_probabilities(change: Numbers, p: Numbers, highest: Indices) -> None:
    """Replace changes of scores ``[m, classes, n]`` by those of probabilities, in place.

    No digits are lost where changes are small, nor where p is near 1.

    Args:
        change: of scores.
        p: the probabilities before, ``[m, classes, n]`` or ``[1, classes, n]``.
        highest: the likeliest class of each record ``[n]``.
    """
    tile, records = max(1, TILE_NUMBERS // change[0].size), np.arange(len(highest))
    for first in range(0, len(change), tile):
        part = change[first : first + tile]
        before = p[first : first + tile] if len(p) > 1 else p
        part -= part[:, highest, records][:, None]
        np.expm1(part, out=part)
        part *= before
        total = part.sum(axis=1, keepdims=True)
        part -= before * total
        part /= 1 + total


def _products(vectors: Singles, other: Singles) -> Floats:
    """``[m, MEMORY, 1]`` from ``[m, MEMORY, size]`` and ``[m, size]``."""
    return (vectors @ other[:, :, None]).astype(np.float64)


def _mixed(weights: Numbers, vectors: Singles) -> Singles:
    """``[m, size]`` from ``[m, MEMORY, 1]`` and ``[m, MEMORY, size]``."""
    mixed: Singles = (weights.transpose(0, 2, 1).astype(np.float32) @ vectors)[:, 0]
    return mixed


# ---------------------------------------------------------------- from the job to the problem, and back


@dataclass(frozen=True)
class Coordinates:
    """Features for the problem: centred where an intercept makes up for it, of equal size, and no more than records.

    Args:
        mean: ``[d]``.
        turn: orthonormal columns ``[d, r]``, or ``None`` where all features are kept. Where features nearly depend on
            each other these are the principal axes: inverses in single precision could not tell the others apart.
        size: ``[r]``.
        intercept: whether a column of ones is added.
    """

    mean: Floats
    turn: Floats | None
    size: Floats
    intercept: bool

    @classmethod
    def of(cls, matrix: Floats, intercept: bool) -> Coordinates:
        """Those for features ``[n, d]``."""
        mean = matrix.mean(axis=0) if intercept else np.zeros(matrix.shape[1])
        mean = np.where(np.ptp(matrix, axis=0) == 0, matrix[0], mean) if intercept else mean
        centred = matrix - mean
        turn = np.linalg.qr(centred.T)[0] if len(matrix) < matrix.shape[1] else None
        turned = centred if turn is None else centred @ turn
        size = _sizes(turned)
        correlation = (turned / size).T @ (turned / size)
        constant = correlation.diagonal() < len(matrix) / 2
        correlation[constant, constant] = len(matrix)
        values = np.linalg.eigvalsh(correlation)
        if values.size and values[0] < DEPENDENT_EIGENVALUE_RATIO * values[-1]:
            _, axes = np.linalg.eigh(turned.T @ turned)
            turn = axes if turn is None else turn @ axes
            size = _sizes(centred @ turn)
        return cls(mean, turn, size, intercept)

    @property
    def penalty(self) -> Floats:
        """The diagonal of P ``[r (+ 1)]``."""
        return self.penalties(np.ones(len(self.size)))

    def penalties(self, rho: Floats) -> Floats:
        """The same where coefficients of features, which are all kept, cost rho ``[..., r]``: ``[..., r (+ 1)]``."""
        costs = rho * self.size**-2.0
        return np.concatenate([costs, np.zeros((*costs.shape[:-1], 1))], axis=-1) if self.intercept else costs

    def rows(self, matrix: Floats) -> Floats:
        """Features ``[rows, r (+ 1)]``."""
        centred = matrix - self.mean
        rows = (centred if self.turn is None else centred @ self.turn) / self.size
        return np.column_stack([rows, np.ones(len(rows))]) if self.intercept else rows

    def back(self, W: Floats) -> Floats:
        """Coefficients of the original features, and last the intercept if there is one ``[..., d (+ 1)]``."""
        r = len(self.size)
        w = W[..., :r] / self.size
        w = w if self.turn is None else w @ self.turn.T
        return np.concatenate([w, W[..., r:] - (w @ self.mean)[..., None]], axis=-1) if self.intercept else w


def _sizes(columns: Floats) -> Floats:
    """Root mean squares of columns ``[n, r]``; 1 for those that are 0 but for rounding."""
    size = np.sqrt(np.mean(columns**2, axis=0))
    return np.where(size > 1e-10 * size.max(initial=0.0), size, 1.0)


@dataclass(frozen=True)
class Solution:
    """A fit, and what it answers.

    Args:
        n_classes: of the schema.
        present: the codes of those that some record has.
        coordinates: from features to the problem's.
        fit: the minimum.
    """

    n_classes: int
    present: Indices
    coordinates: Coordinates
    fit: SoftmaxMinimum

    def answers(self, rows: Floats, weights: Floats) -> Floats:
        """Log-probabilities ``[rows, classes]`` of rows in the problem's coordinates."""
        from scipy.special import log_softmax

        answers = np.full((len(rows), self.n_classes), -np.inf)
        answers[:, self.present] = log_softmax(rows @ weights.T, axis=1)
        return answers

    def coefficients(self, weights: Floats) -> Floats:
        """Original coefficients ``[..., classes, d (+ 1)]``; 0 for a class that no record has."""
        found = self.coordinates.back(weights)
        coefficients = np.zeros((*found.shape[:-2], self.n_classes, found.shape[-1]))
        coefficients[..., self.present, :] = found
        return coefficients


def solve(
    case: Given, kept: Indices, close: float, queries: Floats | None = None, rho: Floats | None = None
) -> Solution | None:
    """The minimum for some of the records; ``None`` if it cannot be found.

    Args:
        case: dense.
        kept: the records ``[n]``.
        close: largest error of a log-probability.
        queries: what will be asked besides the records ``[queries, d]``.
        rho: what coefficients of the features cost ``[d]``; by default 1.
    """
    matrix, labels = case.matrix[kept], case.labels[kept]
    present, y = np.unique(labels, return_inverse=True)
    coordinates = Coordinates.of(matrix, case.estimator.fit_intercept)
    # With two classes scikit-learn has one vector w, penalised as a whole; here it is w / 2 and -w / 2.
    if rho is not None and coordinates.turn is not None:
        return None  # what the features cost is no diagonal on their principal axes
    penalty = coordinates.penalty if rho is None else coordinates.penalties(rho)
    penalty = penalty * (2 if len(present) == 2 else 1)
    try:
        cost = float(case.estimator.C) * class_weights(case, labels)[labels]
        fit = minimum(SoftmaxProblem(coordinates.rows(matrix), y, cost, penalty, len(present)))
    except (ValueError, np.linalg.LinAlgError):
        return None
    reach = fit.reach.max()
    if queries is not None:
        reach = max(reach, fit.curvature.reach(coordinates.rows(queries)).max(initial=0.0))
    near = fit.error(reach) <= (1 - RECORD_ERROR_SHARE) * close
    return Solution(len(case.classes), present, coordinates, fit) if near else None


def _answer(case: Given, whole: Solution, close: float, table: Floats, lost: Flags) -> None:
    """Fill in the answers of leave-one-out models; those that stay ``lost`` could not be found."""
    fit, index = whole.fit, case.index
    if index is None:
        rows = whole.coordinates.rows(case.queries)
        reach = np.full(len(table), fit.curvature.reach(rows).max(initial=0.0))
    else:
        rows, reach = fit.problem.X, fit.reach[index].max(axis=1, initial=0.0)
    for models, moves, failed in _moves(case, whole, close, reach):
        for model, move in zip(models, moves, strict=True):
            table[model] = whole.answers(rows if index is None else rows[index[model]], fit.weights + move)
        lost[models] = failed
    for model in np.flatnonzero(lost):
        queries = case.queries if index is None else case.matrix[index[model]]
        alone = _alone(case, model, close, queries)
        if alone is not None:
            table[model] = alone.answers(alone.coordinates.rows(queries), alone.fit.weights)
            lost[model] = False


def _displacements(case: Given, whole: Solution, close: float) -> Floats:
    fit = whole.fit
    d = case.matrix.shape[1] + bool(case.estimator.fit_intercept)
    found = np.full((len(case.removed), whole.n_classes, d), np.nan)
    for models, moves, failed in _moves(case, whole, close, np.full(len(found), fit.reach.max())):
        found[models[~failed]] = whole.coefficients(moves[~failed])
        for model in models[failed]:
            alone = _alone(case, model, close, None)
            if alone is not None:
                found[model] = alone.coefficients(alone.fit.weights) - whole.coefficients(fit.weights)
    return found


def _alone(case: Given, model: Any, close: float, queries: Floats | None) -> Solution | None:
    """The minimum without one record, by Newton's method."""
    record = case.removed[model]
    rho = None if case.fitted is None else case.fitted.without(np.array([record])).rho[0]
    return solve(case, np.delete(np.arange(len(case.labels)), record), close, queries, rho)


def _moves(case: Given, whole: Solution, close: float, reach: Floats) -> Iterator[tuple[Indices, Floats, Flags]]:
    """:func:`displaced` for the models that lose no class, by their places in the job."""
    stay = np.flatnonzero(case.counts[case.labels[case.removed]] > 1)
    goals = RECORD_ERROR_SHARE * close * whole.fit.curvature.least / np.sqrt(2 * reach[stay])
    removed = case.removed[stay]
    factors = np.ones((len(removed), len(whole.present)))
    if isinstance(case.estimator.class_weight, str):  # "balanced": n / (classes * members), with one less of each
        n, own = len(case.labels), whole.fit.problem.y[removed]
        members = case.counts[whole.present][own]
        factors *= (n - 1) / n
        factors[np.arange(len(removed)), own] *= members / (members - 1)
    records, penalties = np.arange(len(case.labels)), None
    if case.fitted is not None:
        rho = case.fitted.without(removed).rho
        penalties = whole.coordinates.penalties(rho)
        goals = goals * rho.min(axis=1, initial=1.0)  # second derivatives keep that share at least
    for part, moves, failed in displaced(whole.fit, removed, factors, goals, penalties):
        yield stay[part], moves, failed | (_kept(whole.fit, records != removed[part, None], moves) < LEAST_KEPT)


def class_weights(case: Given, labels: Indices) -> Floats:
    """What a record of each class costs ``[classes]``, as scikit-learn finds it; NaN for classes without records.

    Raises:
        ValueError: what scikit-learn says of weights that do not fit the classes.
    """
    from sklearn.utils.class_weight import compute_class_weight

    values = case.classes[labels]
    present = np.unique(values)
    found = dict(
        zip(present, compute_class_weight(case.estimator.class_weight, classes=present, y=values), strict=True)
    )
    return np.array([found.get(value, np.nan) for value in case.classes])


def unsupported(case: Given) -> Refusal | None:
    """Why there is no unique minimum of this kind, or not enough room to find it."""
    refusal = no_multinomial_minimum(case)
    if refusal is not None:
        return refusal
    if case.fitted is not None and not case.estimator.fit_intercept:
        return Refusal(RefusalKind.SETTING, NO_INTERCEPT)
    if case.fitted is not None and case.fitted.filled:
        return Refusal(RefusalKind.SETTING, MOVING_VALUES)
    try:
        weights = class_weights(case, case.labels)
    except ValueError as error:
        return Refusal(RefusalKind.SETTING, f"LogisticRegression cannot use these weights ({type(error).__name__})")
    if not (weights[case.counts > 0] > 0).all():
        return Refusal(
            RefusalKind.SETTING, "LogisticRegression(class_weight=...) is supported with weights above 0 only"
        )
    n_present, (n, d) = np.count_nonzero(case.counts), case.matrix.shape
    n_queries = 0 if case.queries is None else case.queries.shape[0]
    if max(n_present * min(n, d) ** 2, max(n, n_queries) * d) > MAX_MATRIX_NUMBERS:
        return Refusal(
            RefusalKind.SIZE,
            f"{n:,} records with {d:,} columns and {n_present} classes take more memory than is allowed for",
        )
    return None
