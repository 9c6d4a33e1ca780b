"""Linear models as minima of penalised losses: what their coefficients say about their training records.

A minimum is stationary: Σ x̃(μ(x̃ᵀθ) − y) + Dθ = 0 over the training records, with x̃ = (1, x), μ the mean of the model
and Dθ the gradient of the penalty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from leakgauge.arrays import Floats
from leakgauge.errors import DataError, ModelError

SOLVERS_WITH_GRADIENT = ("lbfgs", "newton-cg", "newton-cholesky")
"""Of logistic regression: their ``tol`` bounds the largest entry of the mean gradient."""

LBFGS_CHANGE = 64 * float(np.finfo(float).eps)
"""Relative change of the loss below which scikit-learn's L-BFGS stops, whatever its ``tol``."""


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
        is_newton: whether by Newton's method with the full Hessian, which does not depend on scales of columns.
        is_normwise: whether rounding of its largest columns enters all, as in a singular value decomposition.
    """

    theta: Floats
    penalty: Floats
    has_intercept: bool
    classes: tuple[Any, ...]
    tolerance: float
    rounding: float
    by_iteration: bool = False
    is_newton: bool = False
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
        """Labels ``[m]`` (``[m, k]`` of several outputs) in the form of the means.

        Raises:
            DataError: they are no finite numbers, or none of the classes.
        """
        if not self.classes:
            try:
                found = np.asarray(y, dtype=float).reshape(len(y), -1)
            except (TypeError, ValueError):
                raise DataError("the labels of a regression must be numbers, and some are not") from None
            if not np.isfinite(found).all():
                raise DataError("the labels of a regression must be finite numbers; some are missing or infinite")
            return found
        is_class = np.asarray(y, dtype=object)[:, None] == np.asarray(self.classes, dtype=object)[None]
        if not is_class.any(axis=1).all():
            n_other = int((~is_class.any(axis=1)).sum())
            raise DataError(f"{n_other:,} of {len(y):,} labels are none of the classes of the model")
        return np.asarray(is_class[:, 1:] if len(self.classes) == 2 else is_class, dtype=float)

    def gradient(self, rows: Floats, y: Any) -> Floats:
        """Of the loss and the penalty ``[p, k]``: 0 at a solved minimum over these records."""
        design = self.design(rows)
        return np.asarray(design.T @ (self.means(design) - self.targets(y)) + self.penalty)

    def rounded(self, size: Floats, largest: Floats) -> Floats:
        """What a gradient sums up ``[p, k]``, by which its rounding is measured.

        Args:
            size: |x̃| of the records ``[m, p]``.
            largest: |θ| ``[p, k]``.
        """
        terms = size.max(axis=1, keepdims=True) * largest.sum(axis=0) if self.is_normwise else size @ largest
        return np.asarray(size.T @ terms)

    def stopping(self, design: Floats, n: int) -> Floats:
        """What a solver may leave of a gradient over ``n`` records, in each column of x̃ ``[m, p]``: ``[p, 1]``.

        A descent that takes at least a share 1/κ of what is left of the loss in each step, κ the condition of the
        Hessian, stops with at most κ times the smallest change that it sees; the gradient is at most the root of that
        times the curvature.
        """
        if np.isinf(self.tolerance) or not self.by_iteration:
            return np.full((design.shape[1], 1), n * self.tolerance)
        condition = 1.0 if self.is_newton else self.condition(design, n)
        unseen = np.sqrt((LBFGS_CHANGE + self.rounding) * condition)
        return np.asarray(n * (self.tolerance + unseen * np.sqrt((design**2).mean(axis=0)))[:, None])

    def condition(self, design: Floats, n: int) -> float:
        """Of the Hessian of a classifier over ``n`` records like those of x̃ ``[m, p]``; infinite if it is singular.

        The penalty counts as that of all coefficients, and classes as one with their mean curvature.
        """
        means, first = self.means(design), int(self.has_intercept)
        weighted = design * np.sqrt((means * (1 - means)).mean(axis=1, keepdims=True))
        is_wide = weighted.shape[0] < weighted.shape[1]
        curvatures = np.linalg.eigvalsh(weighted @ weighted.T if is_wide else weighted.T @ weighted) / len(design)
        size = float(np.linalg.norm(self.theta[first:]))
        penalty = float(np.linalg.norm(self.penalty[first:])) / (n * size) if size > 0 else 0.0
        least = penalty + (0.0 if is_wide else max(float(curvatures[0]), 0.0))
        return (float(curvatures[-1]) + penalty) / least if least > 0 else np.inf


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
    is_newton = settings.get("solver") == "newton-cholesky"
    return Minimum(theta, penalty, has_intercept, classes, tolerance, rounding, bool(classes), is_newton, is_normwise)


def _require_ridge(settings: dict[str, Any], name: str) -> None:
    if settings.get("penalty") not in ("l2", "deprecated", None) or settings.get("l1_ratio"):
        raise ModelError(f"{name} with an L1 penalty has no gradient where a coefficient is 0; give a model with L2")
    if settings.get("penalty") is None and "penalty" in settings:
        settings["C"] = np.inf
    if settings.get("class_weight") is not None:
        raise ModelError(f"{name} with class_weight weighs each record by its label; give a model without weights")
    if settings.get("multi_class") == "ovr":
        raise ModelError(f"{name} with multi_class='ovr' is several models; give one multinomial model")
