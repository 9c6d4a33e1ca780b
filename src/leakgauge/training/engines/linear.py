"""Least squares without each record in turn: the residual, corrected by the leverage.

If e is the residual of record t in the fit to all records and h its leverage, the fit without t predicts
y - e / (1 - h) at t (Allen 1974 for ridge regression, Cook & Weisberg 1982, section 2.2, without a penalty). An
intercept, which is not penalised, adds 1/n to the leverage of the centred features. The coefficients themselves move by
A^-1 x e / (1 - h), with A the matrix of the normal equations, from which follow the answers to all other queries.

A record may be alone in some direction of the features (h = 1), say as the only holder of a category: without it
least squares with the smallest coefficients leaves that direction out, which has a closed form of its own. Where this
or rounding cannot be told for certain, the model is trained. Where the equations are so ill-conditioned that
scikit-learn's own rounding could be seen in its answers, the job is refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.training.engines.closed_form import (
    ROUNDING_DEVIATION_SHARE,
    UNIT_ROUNDOFF,
    Answers,
    Displacing,
    Moving,
    products,
)
from leakgauge.training.engines.fitted import NO_INTERCEPT, FittedSteps
from leakgauge.training.engines.stateless import Given

VALUE_RELATIVE_TOLERANCE = 1e-8
"""Of a predicted value, relative to the standard deviation of the labels, or to its own size if that is larger."""

ALONE_DIRECTION_SHARE = 1e-7
"""A record of whose direction less than this share is left without it is alone in that direction."""

OUTSIDE_DIRECTION_SHARE = 1e-9
"""A feature's share of a direction below which the direction is taken to leave it out."""

LARGEST_CONTRACTION = 0.5
"""That of a fixed point, above which equations are solved instead."""

MAX_FIXED_POINT_STEPS = 60
FIXED_POINT_SHARE = 1e-13
"""A step of less than this share of the weights is rounding."""

SMALLEST_PENALTY_SHARE = 1e-3
"""The least of its penalty that a coefficient must keep for equations to be about as well conditioned as the full."""

ZERO_SINGULAR_VALUE_SHARE = 1e-13
"""Singular values below this share of the largest are rounding errors of 0."""

TINY = float(np.finfo(np.float64).smallest_normal)


@dataclass(frozen=True)
class CentredData:
    """Features and labels about their means, or as they are if there is no intercept.

    Args:
        X: ``[records, features]``.
        y: ``[records]``.
        mean_x: ``[features]``, 0 without an intercept.
        mean_y: 0 without an intercept.
        intercept: whether there is one.
    """

    X: Floats
    y: Floats
    mean_x: Floats
    mean_y: float
    intercept: bool

    @classmethod
    def of(cls, case: Given) -> CentredData:
        """The features and labels of a case."""
        X, y = case.matrix, case.labels
        if not case.estimator.fit_intercept:
            return cls(X, y, np.zeros(X.shape[1]), 0.0, False)
        mean_x, mean_y = np.ones(len(X)) @ X / len(X), float(y.mean())
        return cls(X - mean_x, y - mean_y, mean_x, mean_y, True)

    @cached_property
    def noise(self) -> Floats:
        """Norm of a column that holds nothing but rounding errors of the centring, ``[features]``."""
        # a column so short is all but its mean
        return np.asarray(ROUNDING_DEVIATION_SHARE * np.sqrt(len(self.y)) * np.abs(self.mean_x))

    @property
    def stretch(self) -> float:
        """How much further a record is from the mean of the others than from the mean of all."""
        return len(self.y) / (len(self.y) - 1) if self.intercept else 1.0

    @property
    def share(self) -> float:
        """What the intercept adds to the leverage of each record."""
        return 1 / len(self.y) if self.intercept else 0.0


class Space(ABC):
    """Coordinates of queries in which the fit is a product with weights."""

    @abstractmethod
    def coordinates(self, queries: Floats) -> Floats:
        """Of centred queries ``[..., features]``: ``[..., rank]``."""

    @abstractmethod
    def coefficients(self, weights: Floats) -> Floats:
        """Of features ``[m, features]``, from weights of coordinates ``[m, rank]``."""


@dataclass(frozen=True)
class FullFit:
    """The fit to all records.

    Args:
        space: the coordinates.
        weights: of the coordinates: a centred query is predicted ``mean_y + coordinates @ weights``, ``[rank]``.
        roots: in which direction each record pulls the weights, ``[records, rank]``.
        leverages: of the features without the intercept's share, in [0, 1], ``[records]``.
        fitted: ``[records]``, about the mean of the labels.
        condition: how much solving may magnify rounding errors, at least 1.
        reach: root mean square of the norms of the records' coordinates.
    """

    space: Space
    weights: Floats
    roots: Floats
    leverages: Floats
    fitted: Floats
    condition: float
    reach: float

    @property
    def coefficients(self) -> Floats:
        """``[features]``."""
        return self.space.coefficients(self.weights[None, :]).ravel()


@dataclass(frozen=True)
class Equations(Space):
    """The normal equations of ridge regression, in primal (features) or dual form (records), whichever are fewer.

    They are scaled to a diagonal of ones, which leaves the solution alone and the rounding errors of a Cholesky
    factorisation as well; the condition of the scaled ones is what counts (van der Sluis 1969).

    Args:
        data: what they are of.
        root: the inverse of the lower Cholesky factor of the scaled matrix.
        scale: square roots of the diagonal before scaling.
        alpha: the penalty.
        dual: whether the unknowns belong to records.
        condition: estimate of the scaled matrix's condition in the 1-norm; infinite if it is not positive definite or
            a feature holds rounding errors only.
    """

    data: CentredData
    root: Floats
    scale: Floats
    alpha: float
    dual: bool
    condition: float

    @classmethod
    def of(cls, data: CentredData, alpha: float) -> Equations:
        """Set up and factorise."""
        from scipy.linalg.lapack import dpocon, dpotrf, dtrtri

        n, d = data.X.shape
        dual = d > n
        matrix = data.X @ data.X.T if dual else data.X.T @ data.X
        sizes = np.einsum("ij,ij->j", data.X, data.X) if dual else matrix.diagonal().copy()
        matrix.flat[:: len(matrix) + 1] += alpha
        scale = np.sqrt(matrix.diagonal())
        matrix /= scale
        matrix /= scale[:, None]
        factor, failed = dpotrf(matrix.T, lower=1, clean=1)
        only_noise = sizes + alpha <= data.noise**2
        if failed or not np.isfinite(factor).all() or only_noise.any():
            return cls(data, factor, scale, alpha, dual, np.inf)
        reciprocal, _ = dpocon(factor, np.abs(matrix).sum(axis=0).max(), uplo="L")
        root, _ = dtrtri(factor, lower=1, overwrite_c=1)
        return cls(data, root, scale, alpha, dual, 1 / reciprocal if reciprocal > 0 else np.inf)

    @property
    def basis(self) -> Floats:
        """T: the coefficients are weights times it ``[features, features]``; in primal form."""
        return np.asarray(self.root / self.scale)

    def fit(self) -> FullFit:
        """Solve for all records at once."""
        from scipy.linalg.blas import dtrmm

        X, y = self.data.X, self.data.y
        if self.dual:
            root = self.root / self.scale
            weights = root @ y
            leverages = 1 - self.alpha * np.einsum("ij,ij->j", root, root)
            fitted = y - self.alpha * (root.T @ weights)
            reach = _root_mean(self.scale**2 - self.alpha - self.alpha * leverages)
            return FullFit(self, weights, root.T, leverages, fitted, self.condition, reach)
        roots = dtrmm(1.0, self.root / self.scale, X.T, lower=1).T
        weights = roots.T @ y
        leverages = np.einsum("ij,ij->i", roots, roots)
        return FullFit(self, weights, roots, leverages, roots @ weights, self.condition, _root_mean(leverages))

    def coordinates(self, queries: Floats) -> Floats:
        """Of centred queries ``[..., features]``."""
        products = queries @ self.data.X.T if self.dual else queries
        return np.asarray((products / self.scale) @ self.root.T)

    def coefficients(self, weights: Floats) -> Floats:
        """From weights ``[m, rank]``."""
        solved = (weights @ self.root) / self.scale
        return np.asarray(solved @ self.data.X) if self.dual else solved


@dataclass(frozen=True)
class Decomposition(Space):
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

    @property
    def lost(self) -> Floats:
        """The directions in which no record differs from the mean ``[features - rank, features]``, orthonormal rows."""
        rank, d = self.directions.shape
        return np.linalg.svd(self.directions)[2][rank:] if rank < d else np.empty((0, d))

    def fit(self, data: CentredData) -> FullFit:
        """The least-squares fit with the smallest coefficients."""
        weights = self.basis.T @ data.y
        condition = float(self.singular[0] / self.singular[-1]) if len(self.singular) else 1.0
        leverages = np.einsum("ij,ij->i", self.basis, self.basis)
        return FullFit(self, weights, self.basis, leverages, self.basis @ weights, condition, _root_mean(leverages))

    def coordinates(self, queries: Floats) -> Floats:
        """Of centred queries ``[..., features]``."""
        return np.asarray(queries @ self.directions.T / self.singular)

    def coefficients(self, weights: Floats) -> Floats:
        """From weights ``[m, rank]``."""
        return np.asarray((weights / self.singular) @ self.directions)


@dataclass(frozen=True)
class Lines:
    """The models without some records, in the coordinates of the fit to all.

    Args:
        weights: ``[m, rank]``.
        centre: what they predict at the mean of all records, ``[m]``.
        left: how much solving without the record divides by, ``[m]``.
        lost: bool ``[m]``: of which rounding or a cut-off leaves nothing certain.
    """

    weights: Floats
    centre: Floats
    left: Floats
    lost: Flags


class LeastSquares(Moving):
    """A penalised or plain least-squares fit, solved for all records."""

    def __init__(self, data: CentredData, fit: FullFit) -> None:
        self.data = data
        self.fit = fit
        self.values, self.doubtful = without_each(data, fit)

    def own(self, rows: Indices) -> Answers:
        """Values ``[m, 1]``."""
        return self.values[rows, None], self.doubtful[rows]

    def asked(self, rows: Indices, queries: Floats) -> Answers:
        """Values ``[m, q, 1]``."""
        data, lines = self.data, self.lines(rows)
        at = self.fit.space.coordinates(queries - data.mean_x)
        values = products(lines.weights, at) + lines.centre[:, None]
        # scikit-learn multiplies features that are not centred by the coefficients and adds the intercept.
        size = _norms(data.X, axis=0)
        size = np.where(size > data.noise, size, 1.0)
        terms = _norms(self.fit.space.coefficients(lines.weights) * size)[:, None]
        terms = terms * (_norms(queries / size) + 2 * _norms(data.mean_x / size)) + abs(data.mean_y)
        spread = np.std(data.y)
        solving = self.fit.condition * spread * np.maximum(1.0, _norms(at) / self.fit.reach)
        rounding = 16 * UNIT_ROUNDOFF * (terms + solving / lines.left[:, None])
        scale = np.maximum(spread, np.abs(values))
        return values[:, :, None], lines.lost | ~(rounding <= VALUE_RELATIVE_TOLERANCE * scale).all(axis=1)

    def moves(self, rows: Indices) -> Answers:
        """Coefficients, and last the intercept if there is one."""
        data, lines = self.data, self.lines(rows)
        moves = self.fit.space.coefficients(lines.weights - self.fit.weights)
        if data.intercept:
            moves = np.column_stack([moves, lines.centre - data.mean_y - moves @ data.mean_x])
        return moves, lines.lost

    def lines(self, rows: Indices) -> Lines:
        """The models without the records."""
        data, fit = self.data, self.fit
        left = 1 - fit.leverages[rows] - data.share
        pull = (data.y[rows] - fit.fitted[rows]) / left
        weights = fit.weights - pull[:, None] * fit.roots[rows]
        lost = ~((left > 0) & (16 * UNIT_ROUNDOFF * fit.condition / left <= VALUE_RELATIVE_TOLERANCE))
        return Lines(weights, data.mean_y - pull * data.share, left, lost)


class SmallestLeastSquares(LeastSquares):
    """Least squares with the smallest coefficients where they are not determined."""

    def __init__(self, data: CentredData, parts: Decomposition, rho: Floats | None = None) -> None:
        super().__init__(data, parts.fit(data))
        self.parts = parts
        self.alone, self.unclear = directions_lost(data, parts, self.fit, rho)
        self.doubtful = self.doubtful | self.unclear
        alone = np.flatnonzero(self.alone)
        lines = self.lines(alone)
        at = self.fit.roots[alone]
        self.values[alone] = lines.centre + (lines.weights * at).sum(axis=1)
        self.doubtful[alone] = lines.lost

    def lines(self, rows: Indices) -> Lines:
        """The models without the records, also where a direction vanishes with them."""
        lines, data, fit = super().lines(rows), self.data, self.fit
        alone = np.flatnonzero(self.alone[rows])
        lines.lost[self.unclear[rows]] = True
        if not len(alone):
            return lines
        which = rows[alone]
        weights = without_direction(data, self.parts, which)
        lines.weights[alone] = weights
        lines.left[alone] = 1.0
        own = (fit.roots[which] * weights).sum(axis=1)
        lines.centre[alone] = data.mean_y + (data.stretch - 1) * (own - data.y[which])
        lines.lost[alone] = not 16 * UNIT_ROUNDOFF * fit.condition <= VALUE_RELATIVE_TOLERANCE
        return lines


class RescaledRidge(LeastSquares):
    """Ridge regression whose features are on another scale without each record.

    Coefficients ``beta`` of the features as they are with it cost ``alpha sum_j rho_j beta_j^2`` without it. In the
    coordinates of the fit to all records, ``beta = T'w``, the weights without the record hence solve

        ``w = w0 - (I + uu'/left) alpha T ((rho - 1) * T'w)``,

    where w0 are those at the penalty as it was, u the coordinates of the record and ``uu'/left`` is the update of the
    inverse (Sherman & Morrison 1950). As ``alpha TT' <= I`` and the same without the record, the right side contracts
    by the largest ``|rho - 1|`` at least.

    Args:
        data: the features and labels.
        fit: the fit to all records.
        equations: what was solved, in primal form.
        steps: what scaled the features.
    """

    def __init__(self, data: CentredData, fit: FullFit, equations: Equations, steps: FittedSteps) -> None:
        super().__init__(data, fit)
        self.equations, self.steps = equations, steps

    def own(self, rows: Indices) -> Answers:
        """Values ``[m, 1]``."""
        lines = self.lines(rows)
        values = lines.centre + (lines.weights * self.fit.roots[rows]).sum(axis=1)
        return values[:, None], self.doubtful[rows] | lines.lost

    def lines(self, rows: Indices) -> Lines:
        """The models without the records."""
        lines, data, u = super().lines(rows), self.data, self.fit.roots[rows]
        rho, basis = self.steps.without(rows).rho, self.equations.basis
        start, theta = lines.weights, np.abs(rho - 1).max(axis=1)
        weights = start.copy()
        going = np.flatnonzero(theta <= LARGEST_CONTRACTION)
        for _ in range(MAX_FIXED_POINT_STEPS):
            if not len(going):
                break
            pull = self.equations.alpha * (((rho[going] - 1) * (weights[going] @ basis)) @ basis.T)
            along = (u[going] * pull).sum(axis=1) / lines.left[going]
            image = start[going] - pull - along[:, None] * u[going]
            moved = _norms(image - weights[going]) > FIXED_POINT_SHARE * _norms(image)
            weights[going] = image
            going = going[moved]
        for row in np.flatnonzero(theta > LARGEST_CONTRACTION):
            inner = np.eye(len(basis)) - data.stretch * np.outer(u[row], u[row])
            penalty = self.equations.alpha * (basis * (rho[row] - 1)) @ basis.T
            weights[row] = np.linalg.solve(inner + penalty, inner @ start[row])
        own = (u * weights).sum(axis=1)
        centre = data.mean_y + (data.stretch - 1) * (own - data.y[rows])
        return Lines(weights, centre, lines.left, lines.lost | ~(rho.min(axis=1) >= SMALLEST_PENALTY_SHARE))


class LinearModel(Displacing):
    """What the engines of both share: the parameters."""

    tolerance: ClassVar[float] = VALUE_RELATIVE_TOLERANCE
    method = "closed form: residuals divided by one minus the leverage"

    def parameters(self, estimator: Any, classes: Any) -> Floats:
        """Coefficients, and last the intercept if there is one."""
        coefficients: Floats = np.ravel(estimator.coef_)
        return np.append(coefficients, estimator.intercept_) if estimator.fit_intercept else coefficients


class LinearLeastSquares(LinearModel):
    """``LinearRegression``: dense, unconstrained, with the smallest coefficients where they are not determined."""

    learners = ("linear_model.LinearRegression",)
    name = "linear-least-squares"
    takes_fitted = True

    def solve(self, case: Given) -> LeastSquares | str:
        """By singular values; constraints and features on the edge of linear dependence are refused."""
        if case.estimator.positive:
            return "LinearRegression(positive=True) has no closed form"
        if case.fitted is not None and not case.estimator.fit_intercept:
            return NO_INTERCEPT
        data = CentredData.of(case)
        parts = decompose(data, _cutoff(case))
        if isinstance(parts, str):
            return parts
        rho = None if case.fitted is None else case.fitted.without(np.arange(len(data.y))).rho
        if rho is not None and (np.abs(parts.lost[:, (rho != 1).any(axis=0)]) > OUTSIDE_DIRECTION_SHARE).any():
            return (
                "features that are scaled depend on each other, so that the smallest coefficients depend on the scale"
            )
        return SmallestLeastSquares(data, parts, rho)


class RidgeRegression(LinearModel):
    """``Ridge``: dense, one penalty, solved directly."""

    learners = ("linear_model.Ridge",)
    name = "ridge-regression"
    takes_fitted = True

    def solve(self, case: Given) -> LeastSquares | str:
        """By normal equations; constraints, solvers that stop early and ill-conditioned equations are refused."""
        reason = _unsupported_ridge(case)
        if reason:
            return reason
        if case.fitted is not None and not case.estimator.fit_intercept:
            return NO_INTERCEPT
        if case.fitted is not None and case.matrix.shape[1] > len(case.labels):
            return "with more features than records the equations are those of the records, which have no scale"
        data = CentredData.of(case)
        equations = Equations.of(data, float(case.estimator.alpha))
        if 16 * UNIT_ROUNDOFF * equations.condition <= VALUE_RELATIVE_TOLERANCE:
            fit = equations.fit()
            return LeastSquares(data, fit) if case.fitted is None else RescaledRidge(data, fit, equations, case.fitted)
        return (
            f"the equations are ill-conditioned (by a factor of {equations.condition:.1e}), so that scikit-learn's own "
            "rounding shows; raise alpha, or take features that depend less on each other"
        )


def decompose(data: CentredData, cutoff: float) -> Decomposition | str:
    """The directions of the features, or why rounding would decide which of them count."""
    _, singular, directions = np.linalg.svd(np.linalg.qr(data.X, mode="r"), full_matrices=False)
    share = singular / singular[0] if singular[0] > 0 else np.zeros_like(singular)
    kept = share > max(cutoff, ZERO_SINGULAR_VALUE_SHARE)
    norms = _norms(data.X, axis=0)
    if ((norms <= data.noise) & (norms > ZERO_SINGULAR_VALUE_SHARE * singular[0])).any():
        return "features differ from their mean by rounding errors only, which LinearRegression then learns"
    dropped = share[~kept]
    if (dropped > ZERO_SINGULAR_VALUE_SHARE).any() or (
        len(dropped) and kept.any() and cutoff < 1e3 * ZERO_SINGULAR_VALUE_SHARE
    ):
        return (
            f"features depend on each other, or differ in scale, so much (singular values down to {share.min():.1e} of "
            "the largest) that the cut-off of LinearRegression changes its predictions"
        )
    basis = data.X @ (directions[kept] / singular[kept, None]).T
    # orthonormal but for what rounding does to the smallest directions; this takes it out
    lower = np.linalg.cholesky(basis.T @ basis)
    return Decomposition(basis @ np.linalg.inv(lower).T, singular[kept], directions[kept], cutoff)


def directions_lost(
    data: CentredData, parts: Decomposition, fit: FullFit, rho: Floats | None = None
) -> tuple[Flags, Flags]:
    """Which records are alone in a direction, so that it vanishes with them, and of which that cannot be told.

    Args:
        data: the features and labels.
        parts: their directions.
        fit: the fit to all records.
        rho: how the squared scale of the features changes without each record ``[records, features]``; ``None`` if it
            does not.

    Returns:
        Bool ``[records]`` twice.
    """
    left = np.maximum(1 - fit.leverages * data.stretch, 0.0)
    # The smallest singular value falls by no more than the root of what is left of the record's own direction, and
    # the largest does not grow: the same directions stay above the cut-off.
    condition = fit.condition if rho is None else fit.condition * np.sqrt(rho.max(axis=1) / rho.min(axis=1))
    unclear = ~(np.sqrt(left) > 1.001 * max(parts.cutoff, ZERO_SINGULAR_VALUE_SHARE) * condition)
    if len(parts.singular) < 2 or not ALONE_DIRECTION_SHARE * parts.singular[0] < parts.cutoff * parts.singular[1]:
        return np.zeros(len(left), dtype=bool), unclear
    # Nothing is left: one direction is gone, and the others are no closer to the cut-off than before (interlacing).
    alone = left <= ALONE_DIRECTION_SHARE**2
    if rho is not None:  # what is smallest in other directions than this must not depend on the scale
        which = np.flatnonzero(alone)
        vanishing = _vanishing(parts, which) @ parts.directions
        alone[which] = (np.abs(vanishing * (rho[which] != 1)) <= OUTSIDE_DIRECTION_SHARE).all(axis=1)
    return alone, unclear & ~alone


def _vanishing(parts: Decomposition, rows: Indices) -> Floats:
    """The direction in which each of some records is alone, of length 1, in the coordinates of the directions."""
    vanishing = parts.basis[rows] / parts.singular
    return np.asarray(vanishing / np.sqrt((vanishing**2).sum(axis=1, keepdims=True)))


def without_direction(data: CentredData, parts: Decomposition, rows: NDArray[np.int64]) -> Floats:
    """Weights ``[m, rank]`` of the smallest least-squares fit without records whose direction vanishes with them.

    With A = X'X and c xx' what the record adds to it, A - c xx' has the null vector v along A^-1 x, and its
    pseudo-inverse is P A^-1 P with P = I - vv', as multiplying out shows (a case of Meyer 1973, theorem 6).
    """
    x = parts.basis[rows] * parts.singular  # in the coordinates of the directions
    vanishing = _vanishing(parts, rows)
    solution = (parts.basis.T @ data.y) / parts.singular - data.stretch * data.y[rows, None] * x / parts.singular**2
    solution -= (solution * vanishing).sum(axis=1, keepdims=True) * vanishing
    return np.asarray(solution * parts.singular)


def without_each(data: CentredData, fit: FullFit) -> tuple[Floats, Flags]:
    """What the fit without each record predicts for it.

    Returns:
        Predicted values ``[records]``, and bool ``[records]``: where rounding may exceed the tolerance.
    """
    left = 1 - fit.leverages - data.share
    values = data.mean_y + data.y - (data.y - fit.fitted) / left
    spread = np.std(data.y)
    scale = np.maximum(spread, np.abs(values))
    # scikit-learn multiplies features that are not centred by the coefficients and adds the intercept.
    size = np.abs(fit.coefficients)
    products = np.abs(data.X) @ size + (2 * np.abs(data.mean_x) @ size + abs(data.mean_y))
    rounding = 16 * UNIT_ROUNDOFF * (products + fit.condition * spread) / left
    return values, ~((left > 0) & (rounding <= VALUE_RELATIVE_TOLERANCE * scale))


def _root_mean(squares: Floats) -> float:
    return float(np.sqrt(max(squares.mean(), TINY)))


def _norms(rows: Floats, axis: int = -1) -> Floats:
    return np.asarray(np.sqrt((rows**2).sum(axis=axis)))


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
