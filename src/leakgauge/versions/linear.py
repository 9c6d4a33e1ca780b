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
from scipy import linalg

from leakgauge.arrays import Floats
from leakgauge.errors import DataError, ModelError
from leakgauge.models.linear import Minimum

ROUNDINGS = 64.0
"""Units in the last place that the terms of a sum of gradients may be off by; up to 12 were seen at 1,000 records."""

MOST_IN_SPAN = 12
"""Removed records that are looked for in the span of G, among 2^m points."""

NEAR_TWO_VALUES = 1e-3
"""How near a point comes to one of two values that it has, in units of their difference."""

BY_CHANCE = 1e-3
"""Probability with which noise alone is explained by one of the known training records."""

LARGEST_MISFIT = 1e-6
"""Of columns of two versions to a line, relative to their size."""


class OtherEncodingError(ModelError):
    """The steps before two versions encode records in different ways, so that nothing follows from their parameters."""


def in_units(version: Minimum, slope: Floats, shift: Floats, misfit: float) -> Minimum:
    """A version for records z, where its own matrix holds ``slope * z + shift`` ``[d]``.

    With M of x̃ = M z̃ the coefficients are Mᵀθ, and the condition Σ z̃(μ − y) = −M⁻¹Dθ.
    """
    if not version.has_intercept and (shift != 0).any():
        raise ModelError(
            "the versions have no intercept, and a step before them that was fitted again moves their columns; "
            "compare versions with an intercept"
        )
    theta, penalty = version.theta.copy(), version.penalty.copy()
    first = int(version.has_intercept)
    if version.has_intercept:
        theta[0] += shift @ version.theta[1:]
    theta[first:] = slope[:, None] * version.theta[first:]
    carried = np.outer(shift, version.penalty[0]) if version.has_intercept else 0.0
    penalty[first:] = (version.penalty[first:] - carried) / slope[:, None]
    return replace(version, theta=theta, penalty=penalty, rounding=version.rounding + misfit)


def label_of(residuals: Floats, version: Minimum, point: Floats) -> Any:
    """The label of a record x̃ ``[p]``: what a version expects of it, and its residuals y − μ ``[k]``."""
    if len(version.classes) == 2:
        return version.classes[int(residuals[0] > 0)]
    if version.classes:
        return version.classes[int(np.argmax(residuals))]
    value = point @ version.theta + residuals
    return float(value[0]) if len(value) == 1 else tuple(value.tolist())


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
    if not len(old):
        raise OtherEncodingError("no public record has all values that come to the models; give some that have")
    centred = old - old.mean(axis=0)
    spread = (centred**2).sum(axis=0)
    size = np.maximum(np.abs(old).max(axis=0), np.abs(new).max(axis=0))
    varies = spread > (1e-12 * size) ** 2 * len(old)
    slope = np.where(varies, (centred * (new - new.mean(axis=0))).sum(axis=0) / np.where(varies, spread, 1.0), 1.0)
    shift = new.mean(axis=0) - slope * old.mean(axis=0)
    misfit = np.abs(old * slope + shift - new).max(axis=0) / np.where(size > 0, size, 1.0)
    if (misfit > LARGEST_MISFIT).any() or (slope == 0).any():
        raise OtherEncodingError(
            "the steps before the two versions encode records in different ways, beyond another scale and another "
            "mean; give versions with the same features, categories and vocabulary"
        )
    return slope, shift, float(misfit.max(initial=0.0))


SURE = 10.0
"""Times that a difference must be above what rounding and solvers may leave, for a record to be found."""


@dataclass(frozen=True)
class GradientDifference:
    """The sum over the removed records of x̃ times their residual in the second version.

    Args:
        G: that sum ``[p, k]``; up to one factor where it comes from a covariance.
        floor: what rounding, and solvers that stopped at their tolerance, may leave of it ``[p, k]``.
        typical: what one record makes of it, on average ``[p, k]``; 0 if unknown.
        constant: a vector ``[p]`` with x̃ᵀc = 1 for every record, or ``None``.
        is_one: whether one of the known training records explains it; ``None`` if that was not, or cannot be, checked.
    """

    G: Floats
    floor: Floats
    typical: Floats
    constant: Floats | None
    is_one: bool | None = None

    @property
    def signal(self) -> float:
        """How many times its floor the difference is, in its largest entry."""
        return _largest_ratio(np.abs(self.G), self.floor)

    @property
    def would_show(self) -> float:
        """How many times its floor the difference would be for a typical record."""
        return _largest_ratio(self.typical, self.floor)

    @property
    def is_sure(self) -> bool:
        """Whether it is a record's, beyond what rounding and solvers may leave."""
        return self.signal >= SURE

    @property
    def is_nothing(self) -> bool:
        """Whether it is nothing: nothing is left, or no more than rounding may leave, where a record would show."""
        return not self.G.any() or (self.signal < 1 and self.would_show >= SURE**2)

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

    @property
    def point_error(self) -> Floats:
        """How far rounding and solvers may move the point ``[p]``, to first order; infinite where there is none."""
        point, residuals = self.point, self.residuals
        if point is None or residuals is None or self.constant is None:
            return np.full(len(self.G), np.inf)
        used = self.constant != 0
        of_residuals = np.linalg.norm(np.abs(self.constant[used]) @ self.floor[used])
        left = np.linalg.norm(self.floor, axis=1) + np.abs(point) * of_residuals
        return np.asarray(left / np.linalg.norm(residuals))


def gradient_difference(old: Minimum, new: Minimum, rows: Floats, n: int, labels: Any = None) -> GradientDifference:
    """The difference of two minima in the units of one matrix.

    Args:
        old: the version with the records.
        new: the version without them.
        rows: records of the first version, or public ones in their place ``[m, d]``.
        n: training records of the first version.
        labels: of its records ``[m]`` where these are the rows, or of those that stayed. The gradient that the solver
            of their version left is then measured. Where one of the records explains the difference, what remains of it
            is the gradient that both solvers left; otherwise the tolerance of the other solver counts.
    """
    design, weight = old.design(rows), n / len(rows)
    means = old.means(design)
    change = means - new.means(design) if old.classes else design @ (old.theta - new.theta)
    G = weight * (design.T @ change) + (old.penalty - new.penalty)
    size, largest = np.abs(design), np.maximum(np.abs(old.theta), np.abs(new.theta))
    rounding = ROUNDINGS * max(old.rounding, new.rounding)
    rounded = np.maximum(old.rounded(size, largest), new.rounded(size, largest))
    floor = rounding * (weight * rounded + np.abs(old.penalty))
    is_one = None
    if labels is None:
        residuals = 2 * means * (1 - means) if old.classes else np.broadcast_to(means.std(axis=0), means.shape)
        floor = floor + old.stopping(design, n) + new.stopping(design, n)
    else:
        residuals = np.abs(means - old.targets(labels))
        left = [np.abs(version.gradient(rows, labels)).max(axis=1, keepdims=True) for version in (old, new)]
        of_old = left[0].max() <= left[1].max()  # else the rows are those that stayed
        other = (new if of_old else old).stopping(design, n)
        if of_old:
            is_one, remains = _explained(G, design, new.targets(labels) - new.means(design), floor + left[0] + other)
            other = remains if is_one else left[0] + other
        else:
            other = left[1] + other
        floor = floor + other
    typical = size.T @ residuals / len(rows)
    return GradientDifference(G, floor, typical, constant_of(design, old.has_intercept), is_one)


def _explained(G: Floats, design: Floats, residuals: Floats, floor: Floats) -> tuple[bool | None, Floats]:
    """Whether one record explains G = x̃e' ``[p, k]``, and how much of each row of G remains without it ``[p, 1]``.

    Of points that lie around another one by chance in p dimensions, the nearest is within a share s of the distance of
    the second one with probability sᵖ.

    Args:
        G: the difference.
        design: x̃ of the known training records ``[m, p]``.
        residuals: theirs in the second version ``[m, k]``.
        floor: what rounding and solvers may leave of G by their tolerances ``[p, k]``.
    """
    scale = np.sqrt((design**2).mean(axis=0))[:, None]
    scale[scale == 0] = 1.0
    unit, rows = G / scale, design / scale.T
    distances = (rows**2).sum(axis=1) * (residuals**2).sum(axis=1) - 2 * ((rows @ unit) * residuals).sum(axis=1)
    nearest = int(distances.argmin())
    remains = np.linalg.norm(unit - np.outer(rows[nearest], residuals[nearest]))
    equal = (rows == rows[nearest]).all(axis=1) & (residuals == residuals[nearest]).all(axis=1)
    whole = float((unit**2).sum())
    second = np.sqrt(np.clip(distances[~equal] + whole, 0, whole).min(initial=whole))
    if remains <= min(1 / SURE, BY_CHANCE ** (1 / _rank(rows))) * second:
        return True, scale * remains
    beyond = remains > np.linalg.norm(floor / scale)
    return (False if beyond else None), scale * remains


def from_covariance(old: Minimum, new: Minimum, covariance: Floats, rows: Floats, n: int | None) -> GradientDifference:
    """The same up to one factor from the published covariance of the coefficients ``[p, p]``, σ²A⁻¹.

    Of a classifier it is the inverse Hessian of the first version: the difference is right to first order.

    Args:
        old: the version with the records.
        new: the version without them.
        covariance: of the coefficients of the first.
        rows: known or public records ``[m, d]``, for what solvers of classifiers may leave.
        n: training records of the first version; only classifiers need it.

    Raises:
        ModelError: the covariance has another shape, or cannot be inverted.
        DataError: the number of training records is needed and not known.
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
    if old.classes:
        if n is None:
            raise DataError("the number of training records of the first version is not known; give n_records")
        design = old.design(rows)
        floor = floor + old.stopping(design, n) + new.stopping(design, n)
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


def _rank(rows: Floats) -> int:
    """Of a matrix ``[m, p]``, by the smaller of its products with itself; no larger than it is."""
    return int(np.linalg.matrix_rank(rows @ rows.T if len(rows) < rows.shape[1] else rows.T @ rows))


def largest_rank(version: Minimum) -> int:
    """Of G, however many records were removed: entries of a row over the classes have the sum 0."""
    outputs = int(version.theta.shape[1])
    return min(len(version.theta), outputs - 1 if len(version.classes) > 2 else outputs)


def _largest_ratio(size: Floats, floor: Floats) -> float:
    ratio = np.divide(size, floor, out=np.where(size > 0, np.inf, 0.0), where=floor > 0)
    return float(ratio.max(initial=0.0))


def constant_of(design: Floats, has_intercept: bool) -> Floats | None:
    """What of x̃ sums to 1 for every record: the intercept, or a block of one-hot columns."""
    if has_intercept:
        return np.asarray(np.eye(1, design.shape[1])[0])
    found = np.linalg.lstsq(design, np.ones(len(design)), rcond=None)[0]
    return np.asarray(found) if np.abs(design @ found - 1).max() < 1e-9 else None
