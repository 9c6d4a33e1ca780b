"""Least squares without each record in turn: the residual, corrected by the leverage.

If e is the residual of record t in the fit to all records and h its leverage, the fit without t predicts
y - e / (1 - h) at t (Allen 1974 for ridge regression, Cook & Weisberg 1982, section 2.2, without a penalty). An
intercept, which is not penalised, adds 1/n to the leverage of the centred features.

A record may be alone in some direction of the features (h = 1), say as the only holder of a category: without it
least squares with the smallest coefficients leaves that direction out, which has a closed form of its own. Where this
or rounding cannot be told for certain, the model is trained. Where the equations are so ill-conditioned that
scikit-learn's own rounding could be seen in its answers, the job is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from leakgauge.training.engines.base import Engine
from leakgauge.training.engines.stateless import Flags, Floats, Given, fill_by_training, given
from leakgauge.training.job import Job
from leakgauge.training.threads import one_thread

TOLERANCE = 1e-8
"""Of a predicted value, relative to the standard deviation of the labels, or to its own size if that is larger."""

UNIT = 2.0**-53
"""Relative error of one operation in float64."""

NOISE = 1e5 * UNIT
"""Features that differ from their mean by less than this share of their size differ by rounding errors only."""

ALONE = 1e-7
"""A record of whose direction less than this share is left without it is alone in that direction."""

ZERO = 1e-13
"""Singular values below this share of the largest are rounding errors of 0."""


@dataclass(frozen=True)
class Centred:
    """Features and labels about their means, or as they are if there is no intercept.

    Args:
        X: ``[records, features]``.
        y: ``[records]``.
        mean_x: ``[features]``, 0 without an intercept.
        mean_y: 0 without an intercept.
        noise: norm of a column that holds nothing but rounding errors of the centring, ``[features]``.
        intercept: whether there is one.
    """

    X: Floats
    y: Floats
    mean_x: Floats
    mean_y: float
    noise: Floats
    intercept: bool

    @classmethod
    def of(cls, case: Given) -> Centred:
        """The features and labels of a case."""
        X, y = case.matrix, case.labels
        if not case.estimator.fit_intercept:
            return cls(X, y, np.zeros(X.shape[1]), 0.0, np.zeros(X.shape[1]), False)
        mean_x, mean_y = X.mean(axis=0), float(y.mean())
        noise = NOISE * np.sqrt(len(X)) * np.abs(X).max(axis=0)
        return cls(X - mean_x, y - mean_y, mean_x, mean_y, noise, True)

    @property
    def stretch(self) -> float:
        """How much further a record is from the mean of the others than from the mean of all."""
        return len(self.y) / (len(self.y) - 1) if self.intercept else 1.0


@dataclass(frozen=True)
class Fit:
    """The fit to all records.

    Args:
        coefficients: ``[features]``.
        leverages: of the features without the intercept's share, in [0, 1], ``[records]``.
        fitted: ``[records]``, about the mean of the labels.
        condition: how much solving may magnify rounding errors, at least 1.
    """

    coefficients: Floats
    leverages: Floats
    fitted: Floats
    condition: float


class LinearLeastSquares(Engine):
    """``LinearRegression``: dense, unconstrained, with the smallest coefficients where they are not determined."""

    name = "linear-least-squares"
    method = "closed form: residuals divided by one minus the leverage"
    tolerance: ClassVar[float] = TOLERANCE

    def refuses(self, job: Job) -> str | None:
        """Another learner or sort of job, constraints, or features on the edge of linear dependence."""
        case = given(job, _linear_regression(), sparse=False)
        if isinstance(case, str):
            return case
        if case.estimator.positive:
            return "LinearRegression(positive=True) has no closed form"
        with np.errstate(all="ignore"), one_thread():
            parts = decompose(Centred.of(case), _cutoff(case))
        return parts if isinstance(parts, str) else None

    def run(self, job: Job) -> Floats:
        """The predicted values ``[models, 1, 1]``."""
        case = given(job, _linear_regression(), sparse=False)
        assert isinstance(case, Given)  # a job that is refused is not run
        with np.errstate(all="ignore"), one_thread():
            data = Centred.of(case)
            parts = decompose(data, _cutoff(case))
            assert isinstance(parts, Decomposition)
            values, doubtful = least_squares_without_each(data, parts)
        return fill_by_training(job, values[case.removed, None, None], doubtful[case.removed])


class RidgeRegression(Engine):
    """``Ridge``: dense, one penalty, solved directly."""

    name = "ridge-regression"
    method = "closed form: residuals divided by one minus the leverage"
    tolerance: ClassVar[float] = TOLERANCE

    def refuses(self, job: Job) -> str | None:
        """Another learner or sort of job, constraints, a solver that stops early, or ill-conditioned equations."""
        case = given(job, _ridge(), sparse=False)
        if isinstance(case, str):
            return case
        reason = _unsupported_ridge(case)
        if reason:
            return reason
        with np.errstate(all="ignore"), one_thread():
            condition = Equations.of(Centred.of(case), float(case.estimator.alpha)).condition
        if 16 * UNIT * condition <= TOLERANCE:
            return None
        return (
            f"the equations are ill-conditioned (by a factor of {condition:.1e}), so that scikit-learn's own rounding "
            "shows; raise alpha, or take features that depend less on each other"
        )

    def run(self, job: Job) -> Floats:
        """The predicted values ``[models, 1, 1]``."""
        case = given(job, _ridge(), sparse=False)
        assert isinstance(case, Given)  # a job that is refused is not run
        with np.errstate(all="ignore"), one_thread():
            data = Centred.of(case)
            values, doubtful = without_each(data, Equations.of(data, float(case.estimator.alpha)).fit(data))
        return fill_by_training(job, values[case.removed, None, None], doubtful[case.removed])


@dataclass(frozen=True)
class Equations:
    """The normal equations of ridge regression, in primal (features) or dual form (records), whichever are fewer.

    They are scaled to a diagonal of ones, which leaves the solution alone and the rounding errors of a Cholesky
    factorisation as well; the condition of the scaled ones is what counts (van der Sluis 1969).

    Args:
        factor: lower Cholesky factor of the scaled matrix.
        scale: square roots of the diagonal before scaling.
        alpha: the penalty.
        dual: whether the unknowns belong to records.
        condition: estimate of the scaled matrix's condition in the 1-norm; infinite if it is not positive definite or
            a feature holds rounding errors only.
    """

    factor: Floats
    scale: Floats
    alpha: float
    dual: bool
    condition: float

    @classmethod
    def of(cls, data: Centred, alpha: float) -> Equations:
        """Set up and factorise."""
        from scipy.linalg.lapack import dpocon, dpotrf

        n, d = data.X.shape
        dual = d > n
        matrix = data.X @ data.X.T if dual else data.X.T @ data.X
        matrix.flat[:: len(matrix) + 1] += alpha
        scale = np.sqrt(matrix.diagonal())
        matrix = matrix / scale / scale[:, None]
        factor, failed = dpotrf(matrix, lower=1, clean=1)
        only_noise = (data.X**2).sum(axis=0) + alpha <= data.noise**2
        if failed or not np.isfinite(factor).all() or only_noise.any():
            return cls(factor, scale, alpha, dual, np.inf)
        reciprocal, _ = dpocon(factor, np.abs(matrix).sum(axis=0).max(), uplo="L")
        return cls(factor, scale, alpha, dual, 1 / reciprocal if reciprocal > 0 else np.inf)

    def fit(self, data: Centred) -> Fit:
        """Solve for all records at once."""
        from scipy.linalg import solve_triangular

        if self.dual:
            inverse_root = solve_triangular(self.factor, np.diag(1 / self.scale), lower=True, check_finite=False)
            dual = inverse_root.T @ (inverse_root @ data.y)
            leverages = 1 - self.alpha * (inverse_root**2).sum(axis=0)
            return Fit(data.X.T @ dual, leverages, data.y - self.alpha * dual, self.condition)
        whitened = solve_triangular(self.factor, (data.X / self.scale).T, lower=True, check_finite=False)
        products = whitened @ data.y
        coefficients = solve_triangular(self.factor, products, lower=True, trans="T", check_finite=False) / self.scale
        return Fit(coefficients, (whitened**2).sum(axis=0), whitened.T @ products, self.condition)


@dataclass(frozen=True)
class Decomposition:
    """The directions in which centred features differ: ``X = basis * singular @ directions``.

    Args:
        basis: ``[records, rank]``, orthonormal columns.
        singular: ``[rank]``, descending, above the cut-off.
        directions: ``[rank, features]``, orthonormal rows.
        cutoff: scikit-learn leaves out directions whose singular value is below this share of the largest.
    """

    basis: Floats
    singular: Floats
    directions: Floats
    cutoff: float

    def fit(self, data: Centred) -> Fit:
        """The least-squares fit with the smallest coefficients."""
        weights = self.basis.T @ data.y
        condition = float(self.singular[0] / self.singular[-1]) if len(self.singular) else 1.0
        coefficients = self.directions.T @ (weights / self.singular)
        return Fit(coefficients, (self.basis**2).sum(axis=1), self.basis @ weights, condition)


def decompose(data: Centred, cutoff: float) -> Decomposition | str:
    """The directions of the features, or why rounding would decide which of them count."""
    Q, R = np.linalg.qr(data.X)
    left, singular, directions = np.linalg.svd(R, full_matrices=False)
    share = singular / singular[0] if singular[0] > 0 else np.zeros_like(singular)
    kept = share > max(cutoff, ZERO)
    norms = np.sqrt((data.X**2).sum(axis=0))
    if ((norms <= data.noise) & (norms > ZERO * singular[0])).any():
        return "features differ from their mean by rounding errors only, which LinearRegression then learns"
    dropped = share[~kept]
    if (dropped > ZERO).any() or (len(dropped) and kept.any() and cutoff < 1e3 * ZERO):
        return (
            f"features depend on each other, or differ in scale, so much (singular values down to {share.min():.1e} of "
            "the largest) that the cut-off of LinearRegression changes its answers"
        )
    return Decomposition(Q @ left[:, kept], singular[kept], directions[kept], cutoff)


def least_squares_without_each(data: Centred, parts: Decomposition) -> tuple[Floats, Flags]:
    """What the least-squares fit without each record predicts for it.

    Returns:
        Predicted values ``[records]``, and bool ``[records]``: where rounding decides.
    """
    fit = parts.fit(data)
    values, doubtful = without_each(data, fit)
    own = np.maximum(1 - fit.leverages * data.stretch, 0.0)
    # The smallest singular value falls by no more than the root of what is left of the record's own direction, and
    # the largest does not grow: the same directions stay above the cut-off.
    doubtful |= ~(np.sqrt(own) > 1.001 * max(parts.cutoff, ZERO) * fit.condition)
    if len(parts.singular) < 2 or not ALONE * parts.singular[0] < parts.cutoff * parts.singular[1]:
        return values, doubtful
    # Nothing is left: one direction is gone, and the others are no closer to the cut-off than before (interlacing).
    alone = np.flatnonzero(own <= ALONE**2)
    values[alone] = without_direction(data, parts, alone)
    doubtful[alone] = ~(16 * UNIT * fit.condition * np.std(data.y) <= TOLERANCE * np.std(data.y))
    return values, doubtful


def without_direction(data: Centred, parts: Decomposition, rows: NDArray[np.int64]) -> Floats:
    """What the smallest least-squares fit predicts for records whose direction vanishes with them.

    With A = X'X and c xx' what the record adds to it, A - c xx' has the null vector v along A^-1 x, and its
    pseudo-inverse is P A^-1 P with P = I - vv', as multiplying out shows (a case of Meyer 1973, theorem 6).
    """
    x = parts.basis[rows] * parts.singular  # in the coordinates of the directions
    vanishing = parts.basis[rows] / parts.singular
    vanishing /= np.sqrt((vanishing**2).sum(axis=1, keepdims=True))
    solution = (parts.basis.T @ data.y) / parts.singular - data.stretch * data.y[rows, None] * x / parts.singular**2
    solution -= (solution * vanishing).sum(axis=1, keepdims=True) * vanishing
    mean = data.mean_y - (data.stretch - 1) * data.y[rows]
    return np.asarray(mean + data.stretch * (x * solution).sum(axis=1))


def without_each(data: Centred, fit: Fit) -> tuple[Floats, Flags]:
    """What the fit without each record predicts for it.

    Returns:
        Predicted values ``[records]``, and bool ``[records]``: where rounding may exceed the tolerance.
    """
    n = len(data.y)
    left = 1 - fit.leverages - (1 / n if data.intercept else 0.0)
    values = data.mean_y + data.y - (data.y - fit.fitted) / left
    scale = np.maximum(np.std(data.y), np.abs(values))
    # scikit-learn multiplies features that are not centred by the coefficients and adds the intercept.
    products = (np.abs(data.X) + 2 * np.abs(data.mean_x)) @ np.abs(fit.coefficients) + abs(data.mean_y)
    rounding = 16 * UNIT * products / left + 16 * UNIT * fit.condition * np.std(data.y) / left
    return values, ~((left > 0) & (rounding <= TOLERANCE * scale))


def _cutoff(case: Given) -> float:
    # releases before 1.7 have no cut-off of their own
    return float(getattr(case.estimator, "tol", np.finfo(np.float64).eps))


def _unsupported_ridge(case: Given) -> str | None:
    wanted = case.estimator
    if wanted.positive:
        return "Ridge(positive=True) has no closed form"
    if wanted.solver not in ("auto", "cholesky", "svd"):
        return f"Ridge(solver={wanted.solver!r}) stops before it has converged; use 'cholesky' or 'svd'"
    if not isinstance(wanted.alpha, Real) or not 0 <= float(wanted.alpha) < np.inf:
        return f"Ridge(alpha={wanted.alpha!r}) is supported with one number of at least 0 only"
    return None


def _linear_regression() -> tuple[type, ...]:
    from sklearn.linear_model import LinearRegression

    return (LinearRegression,)


def _ridge() -> tuple[type, ...]:
    from sklearn.linear_model import Ridge

    return (Ridge,)
