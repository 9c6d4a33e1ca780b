"""What the coefficients of two versions say about the records in which their training sets differ.

A minimum is stationary, so that Σ x̃(μ(x̃ᵀθ) − y) + Dθ = 0 over its training records, with x̃ = (1, x), μ the mean of the
model and Dθ the gradient of the penalty. Where the second version lacks some records of the first, the difference of
both conditions is

    G = Σ_old x̃ (μ(x̃ᵀθ) − μ(x̃ᵀθ')) + Dθ − D'θ'  =  Σ_removed x̃ e',    e' = y − μ(x̃ᵀθ'),

which needs neither the labels of the other records nor, if a public sample stands for them, the records themselves.
For one record x̃ = G/G₀. For squared loss this is A(θ − θ') of the normal equations (A = XᵀX + D); for logistic
regression the usual form takes the Hessian half way between both versions, which agrees to third order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy import linalg, special

from leakgauge.arrays import Floats
from leakgauge.errors import ModelError

SOLVERS_WITH_GRADIENT = ("lbfgs", "newton-cg", "newton-cholesky")
"""Of logistic regression: their ``tol`` bounds the largest entry of the mean gradient."""

LBFGS_CHANGE = 64 * float(np.finfo(float).eps)
"""Relative change of the loss below which scikit-learn's L-BFGS stops, whatever its ``tol``."""

ROUNDINGS = 64.0
"""Units in the last place that the terms of a sum of gradients may be off by; up to 12 were seen at 1,000 records."""

MOST_IN_SPAN = 12
"""Removed records that are looked for in the span of G, among 2^m points."""

NEAR_TWO_VALUES = 1e-3
"""How near a point comes to one of two values that it has, in units of their difference."""

LARGEST_MISFIT = 1e-6
"""Of columns of two versions to a line, relative to their size."""


class OtherEncodingError(ModelError):
    """The steps before two versions encode records in different ways, so that nothing follows from their parameters."""


@dataclass(frozen=True)
class Minimum:
    """A linear model as the minimum of a penalised loss, in the units of one matrix.

    Args:
        theta: coefficients ``[p, k]``, with an intercept its row first.
        penalty: gradient of the penalty there ``[p, k]``.
        has_intercept: whether there is a constant among the ``p``.
        classes: of a classifier, else empty. Of two classes ``k`` is 1.
        tolerance: largest entry of the mean gradient at which the solver may have stopped; infinite if unknown.
        rounding: relative rounding error of coefficients and records.
        by_iteration: whether it is solved by lowering a loss, which shows no gradient below the root of its rounding.
        is_normwise: whether rounding of its largest columns enters all, as in a singular value decomposition.
    """

    theta: Floats
    penalty: Floats
    has_intercept: bool
    classes: tuple[Any, ...]
    tolerance: float
    rounding: float
    by_iteration: bool = False
    is_normwise: bool = False

    def design(self, rows: Floats) -> Floats:
        """The records ``[m, d]`` as x̃ ``[m, p]``."""
        return np.column_stack([np.ones(len(rows)), rows]) if self.has_intercept else rows

    def means(self, design: Floats) -> Floats:
        """What the model expects ``[m, k]`` for x̃ ``[m, p]``."""
        scores = design @ self.theta
        if not self.classes:
            return np.asarray(scores)
        return np.asarray(special.expit(scores) if scores.shape[1] == 1 else special.softmax(scores, axis=1))

    def targets(self, y: Any) -> Floats:
        """Labels ``[m]`` (``[m, k]`` of several outputs) in the form of the means."""
        if not self.classes:
            return np.asarray(y, dtype=float).reshape(len(y), -1)
        is_class = np.asarray(y)[:, None] == np.asarray(self.classes)[None]
        return np.asarray(is_class[:, 1:] if len(self.classes) == 2 else is_class, dtype=float)

    def gradient(self, rows: Floats, y: Any) -> Floats:
        """Of the loss and the penalty ``[p, k]``: 0 at a solved minimum over these records."""
        design = self.design(rows)
        return np.asarray(design.T @ (self.means(design) - self.targets(y)) + self.penalty)

    def in_units(self, slope: Floats, shift: Floats, misfit: float) -> Minimum:
        """The same model for records z, where its own matrix holds ``slope * z + shift`` ``[d]``.

        With M of x̃ = M z̃ the coefficients are Mᵀθ, and the condition Σ z̃(μ − y) = −M⁻¹Dθ.
        """
        if not self.has_intercept and (shift != 0).any():
            raise ModelError(
                "the versions have no intercept, and a step before them that was fitted again moves their columns; "
                "compare versions with an intercept"
            )
        theta, penalty = self.theta.copy(), self.penalty.copy()
        first = int(self.has_intercept)
        if self.has_intercept:
            theta[0] += shift @ self.theta[1:]
        theta[first:] = slope[:, None] * self.theta[first:]
        carried = np.outer(shift, self.penalty[0]) if self.has_intercept else 0.0
        penalty[first:] = (self.penalty[first:] - carried) / slope[:, None]
        return replace(self, theta=theta, penalty=penalty, rounding=self.rounding + misfit)


def is_linear(estimator: Any) -> bool:
    """Whether an estimator is one of those that :func:`minimum` reads."""
    return type(estimator).__name__ in ("LinearRegression", "Ridge", "LogisticRegression") and hasattr(
        estimator, "coef_"
    )


def minimum(estimator: Any) -> Minimum:
    """A fitted ``LinearRegression``, ``Ridge`` or ``LogisticRegression`` as the minimum that it is.

    Raises:
        ModelError: its penalty or its constraint makes it another minimum.
    """
    name, settings = type(estimator).__name__, estimator.get_params()
    coefficients = np.atleast_2d(estimator.coef_)
    rounding = float(np.finfo(coefficients.dtype).eps)
    theta = np.asarray(coefficients.T, dtype=float)
    has_intercept = bool(settings["fit_intercept"])
    penalty = np.zeros_like(theta)
    intercept = np.zeros((1, theta.shape[1]))
    classes: tuple[Any, ...] = ()
    tolerance, is_normwise = 0.0, name == "LinearRegression"
    if settings.get("positive"):
        raise ModelError(f"{name} with positive=True is at the edge of what is allowed, where no gradient is 0")
    if name == "Ridge":
        penalty = theta * np.asarray(settings["alpha"], dtype=float)
        solver = getattr(estimator, "solver_", settings["solver"])  # what "auto" stood for
        tolerance, is_normwise = 0.0 if solver in ("auto", "svd", "cholesky") else np.inf, solver == "svd"
    if name == "LinearRegression" and not hasattr(estimator, "rank_"):  # of sparse records, by an iteration
        tolerance = np.inf
    if name == "LogisticRegression":
        _require_ridge(settings, name)
        classes = tuple(estimator.classes_.tolist())
        if len(classes) > 2 and len(theta.T) != len(classes):
            raise ModelError(f"{name} has {len(theta.T)} rows of coefficients for {len(classes)} classes")
        weight = 1.0 / float(settings["C"])
        penalty = weight * theta
        if settings["solver"] == "liblinear":  # it penalises the intercept like a coefficient
            intercept = weight * np.reshape(estimator.intercept_, (1, -1)) / settings["intercept_scaling"] ** 2
        is_done = settings["solver"] in SOLVERS_WITH_GRADIENT and np.max(estimator.n_iter_) < settings["max_iter"]
        tolerance = float(settings["tol"]) if is_done else np.inf
    if has_intercept:
        constant = np.broadcast_to(np.asarray(estimator.intercept_, dtype=float), theta.shape[1])
        theta, penalty = np.vstack([constant, theta]), np.vstack([intercept, penalty])
    return Minimum(theta, penalty, has_intercept, classes, tolerance, rounding, bool(classes), is_normwise)


def _require_ridge(settings: dict[str, Any], name: str) -> None:
    if settings.get("penalty") not in ("l2", "deprecated", None) or settings.get("l1_ratio"):
        raise ModelError(f"{name} with an L1 penalty has no gradient where a coefficient is 0; give versions with L2")
    if settings.get("penalty") is None and "penalty" in settings:
        settings["C"] = np.inf
    if settings.get("class_weight") is not None:
        raise ModelError(f"{name} with class_weight weighs each record by its label; give versions without weights")
    if settings.get("multi_class") == "ovr":
        raise ModelError(f"{name} with multi_class='ovr' is several models; give versions of one multinomial model")


def line(old: Floats, new: Floats) -> tuple[Floats, Floats, float]:
    """Slope and shift ``[d]`` that make columns of one matrix ``[m, d]`` those of another, and the largest misfit.

    Of a column that does not vary the slope is 1.

    Raises:
        OtherEncodingError: the columns are not on lines: the steps before encode records in different ways.
    """
    if old.shape != new.shape:
        raise OtherEncodingError(
            f"the versions see {old.shape[1]} and {new.shape[1]} columns; give versions with the same features and "
            "the same categories"
        )
    centred = old - old.mean(axis=0)
    spread = (centred**2).sum(axis=0)
    size = np.maximum(np.abs(old).max(axis=0), np.abs(new).max(axis=0))
    varies = spread > (1e-12 * size) ** 2 * len(old)
    slope = np.where(varies, (centred * (new - new.mean(axis=0))).sum(axis=0) / np.where(varies, spread, 1.0), 1.0)
    same = (old == new).all(axis=0)
    slope[same] = 1.0
    shift = np.where(same, 0.0, new.mean(axis=0) - slope * old.mean(axis=0))
    misfit = np.abs(old * slope + shift - new).max(axis=0) / np.where(size > 0, size, 1.0)
    if (misfit > LARGEST_MISFIT).any() or (slope == 0).any():
        raise OtherEncodingError(
            "the steps before the two versions encode records in different ways, beyond another scale and another "
            "mean; give versions with the same features, categories and vocabulary"
        )
    return slope, shift, float(misfit.max(initial=0.0))


@dataclass(frozen=True)
class GradientDifference:
    """The sum over the removed records of x̃ times their residual in the second version.

    Args:
        G: that sum ``[p, k]``; up to one factor where it comes from a covariance.
        floor: what rounding, and solvers that stopped at their tolerance, may leave of it ``[p, k]``.
        typical: what one record makes of it, on average ``[p, k]``; 0 if unknown.
        constant: a vector ``[p]`` with x̃ᵀc = 1 for every record, or ``None``.
    """

    G: Floats
    floor: Floats
    typical: Floats
    constant: Floats | None

    @property
    def signal(self) -> float:
        """How many times its floor the difference is, in its largest entry."""
        return _largest_ratio(np.abs(self.G), self.floor)

    @property
    def would_show(self) -> float:
        """How many times its floor the difference would be for a typical record."""
        return _largest_ratio(self.typical, self.floor)

    @property
    def rank(self) -> int:
        """How many removed records it takes at least to explain it, if no public sample stands for the others."""
        sizes = np.linalg.svd(self.G, compute_uv=False)
        return int((sizes > np.linalg.norm(self.floor)).sum())

    @property
    def residuals(self) -> Floats | None:
        """Sum of the residuals of the removed records in each output ``[k]``: the gradient along the constant."""
        return None if self.constant is None else np.asarray(self.constant @ self.G)

    @property
    def point(self) -> Floats | None:
        """The record x̃ ``[p]`` that explains the difference best, by least squares over the outputs.

        Of several records it is their mean, weighted by their residuals, of either sign.
        """
        residuals = self.residuals
        if residuals is None or not residuals.any():
            return None
        return np.asarray(self.G @ residuals / (residuals @ residuals))


def gradient_difference(old: Minimum, new: Minimum, rows: Floats, n: int, labels: Any = None) -> GradientDifference:
    """The difference of two minima in the units of one matrix.

    Args:
        old: the version with the records.
        new: the version without them.
        rows: records of the first version, or public ones in their place ``[m, d]``.
        n: training records of the first version.
        labels: of its records ``[m]`` where these are the rows: how far its solver came is then measured.
    """
    design, weight = old.design(rows), n / len(rows)
    means = old.means(design)
    change = means - new.means(design) if old.classes else design @ (old.theta - new.theta)
    G = weight * (design.T @ change) + (old.penalty - new.penalty)
    size, largest = np.abs(design), np.maximum(np.abs(old.theta), np.abs(new.theta))
    terms = size.max(axis=1, keepdims=True) * largest.sum(axis=0) if old.is_normwise else size @ largest
    rounding = ROUNDINGS * max(old.rounding, new.rounding)
    floor = rounding * (weight * (size.T @ terms) + np.abs(old.penalty))
    if labels is None:
        residuals = 2 * means * (1 - means) if old.classes else np.broadcast_to(means.std(axis=0), means.shape)
        floor = floor + sum(_stopping(version, size, n) for version in (old, new))
    else:
        residuals = np.abs(means - old.targets(labels))
        floor = floor + 2 * np.abs(old.gradient(rows, labels)).max()
    typical = size.T @ residuals / len(rows)
    return GradientDifference(G, floor, typical, _constant(design, old.has_intercept))


def _stopping(version: Minimum, size: Floats, n: int) -> Floats:
    """What a solver may leave of a gradient, in each column of absolute values ``[m, p]``: ``[p, 1]``."""
    unseen = np.sqrt(LBFGS_CHANGE + version.rounding) if version.by_iteration else 0.0
    return np.asarray(n * (version.tolerance + unseen * np.sqrt((size**2).mean(axis=0)))[:, None])


def from_covariance(old: Minimum, new: Minimum, covariance: Floats) -> GradientDifference:
    """The same up to one factor from the published covariance of the coefficients ``[p, p]``, σ²A⁻¹.

    Raises:
        ModelError: the covariance has another shape, or cannot be inverted.
    """
    p = len(old.theta)
    if covariance.shape != (p, p):
        what = "the intercept first" if old.has_intercept else "one row for each column"
        raise ModelError(f"covariance must have shape ({p}, {p}), {what}; got {covariance.shape}")
    change = old.theta - new.theta
    try:
        inverse = np.asarray(np.linalg.inv(covariance))
    except np.linalg.LinAlgError:
        raise ModelError("the covariance is singular; give that of coefficients that are all estimated") from None
    G, largest = np.asarray(inverse @ change), np.maximum(np.abs(old.theta), np.abs(new.theta))
    floor = ROUNDINGS * max(old.rounding, new.rounding) * (np.abs(inverse) @ largest)
    constant = np.eye(1, p)[0] if old.has_intercept else None
    return GradientDifference(G, floor, np.zeros_like(G), constant)


def points_in_span(difference: GradientDifference, blocks: Sequence[Sequence[int]], values: Floats) -> Floats | None:
    """The ``m`` removed records ``[m, p]`` where their number is the rank of G, or ``None`` if that is not certain.

    With as many outputs as records, G = Σ x̃e'ᵀ spans the same space as the records. Each is a point of it at which the
    constant is 1 and every column of two values has one of them; if there are exactly ``m`` such points, they are it.

    Args:
        difference: exact, of several outputs.
        blocks: columns of x̃ with two values each, of which each record has one high, or single ones.
        values: the lower and the higher value of each column ``[2, p]``.
    """
    G, constant = difference.G, difference.constant
    left, m = np.linalg.svd(G, full_matrices=False)[0], difference.rank
    binary = [column for block in blocks for column in block]
    if constant is None or not 1 < m <= MOST_IN_SPAN or not binary:
        return None
    basis = left[:, :m]
    along = constant @ basis
    low, high = values[:, binary]
    heights = (basis[binary] - np.outer(low, along)) / (high - low)[:, None]
    one, free = along / (along @ along), linalg.null_space(along[None])
    turned = heights @ free
    triangle, order = linalg.qr(turned.T, mode="r", pivoting=True)
    chosen = order[: m - 1]
    if len(chosen) < m - 1 or abs(triangle[m - 2, m - 2]) < NEAR_TWO_VALUES:
        return None
    bits = np.array(list(product((0.0, 1.0), repeat=m - 1))).T
    weights = one[:, None] + free @ np.linalg.solve(turned[chosen], bits - heights[chosen] @ one[:, None])
    at = heights @ weights
    fits = (np.minimum(np.abs(at), np.abs(at - 1)) < NEAR_TWO_VALUES).all(axis=0)
    return np.asarray((basis @ weights[:, fits]).T) if fits.sum() == m else None


def _largest_ratio(size: Floats, floor: Floats) -> float:
    ratio = np.divide(size, floor, out=np.where(size > 0, np.inf, 0.0), where=floor > 0)
    return float(ratio.max(initial=0.0))


def _constant(design: Floats, has_intercept: bool) -> Floats | None:
    """What of x̃ sums to 1 for every record: the intercept, or a block of one-hot columns."""
    if has_intercept:
        return np.asarray(np.eye(1, design.shape[1])[0])
    found = np.linalg.lstsq(design, np.ones(len(design)), rcond=None)[0]
    return np.asarray(found) if np.abs(design @ found - 1).max() < 1e-9 else None
