"""The last training record of a linear model, for an attacker who knows all others.

At a minimum Σ x̃(μ − y) + Dθ = 0 over all training records, with x̃ = (1, x). Without the last one

    G = Σ_others x̃(μ − y) + Dθ = x̃(y − μ),

so that x̃ = G/G₀, and y = μ + G₀; of two classes, G₀ > 0 says the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.errors import DataError, ModelError
from leakgauge.escaping import shapes
from leakgauge.models.linear import is_linear, minimum
from leakgauge.reconstruction.steps import last_step
from leakgauge.versions.linear import ROUNDINGS, GradientDifference, constant_of, label_of

SURE = 10.0
"""Times that a residual must be above what rounding and the solver may leave."""

UNCERTAIN = 10.0
"""Times that features may be further off than the signal says."""

LARGEST_ERROR, ROUNDED = 0.1, 1e-3
"""Of a feature, above which a whole number is not known from others; and by how much it may be off in any case."""


@dataclass(frozen=True)
class LastRecord:
    """The training record that explains why the gradient of the others is not 0.

    Args:
        features: in the units of what comes to the last step of a pipeline ``[d]``.
        label: its class or number; of several outputs a tuple.
        signal: how many times what rounding and the solver may leave its residual is; the error of the features,
            relative to the largest ones, is about one over it.
        n_outside: features below the smallest value of the other records, or above the largest one.
        farthest: by how many of their standard deviations, at most; infinite where all others are equal.
    """

    features: Floats
    label: Any
    signal: float
    n_outside: int
    farthest: float

    __repr__ = shapes

    def __str__(self) -> str:
        """What was found, without a value."""
        said = (
            f"the last record was found, if one record is missing and the others are as they were: its gradient is "
            f"{self.signal:.2g} times what the solver may have left"
        )
        if not self.n_outside:
            return f"{said}, and all of its features lie among those of the others"
        verb = "lies" if self.n_outside == 1 else "lie"
        return (
            f"{said}. {self.n_outside} of {len(self.features)} features {verb} outside those of the others, by up to "
            f"{self.farthest:.2g} standard deviations: if that is far, more than one is missing, or others were given"
        )


def last_record(model: Any, others: tuple[Any, Any]) -> LastRecord:
    """Return the only training record of a linear model that is not known.

    That more than one is missing, or that other records are given, shows with several outputs or classes, where no
    record has so large a gradient, and where a column holds whole numbers alone and no whole number is found; otherwise
    the result is their mean, weighted by their residuals, and often far from all records.

    Args:
        model: a fitted ``LinearRegression``, ``Ridge`` or ``LogisticRegression`` (L2 or no penalty), or a pipeline that
            ends in one; the steps before are taken as they are in the file.
        others: features and labels of all training records but one.

    Raises:
        ModelError: it is another model; its solver may have left as large a gradient as the record makes; or it shows
            that more than one record is missing.
        DataError: the tables do not fit it.

    >>> from sklearn.linear_model import Ridge
    >>> X, y = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([1.0, 2.0, 2.0, 5.0])
    >>> found = last_record(Ridge().fit(X, y), (X[:3], y[:3]))
    >>> found.features.round(6).tolist(), round(found.label, 6)
    ([4.0], 5.0)
    """
    X, y = others
    last, tables = last_step(model, {"others": X})
    rows = tables["others"]
    if not is_linear(last):
        raise ModelError(
            f"the last record follows from fitted linear and logistic regressions and ridge, got {type(last).__name__}"
        )
    if rows is None or np.ndim(y) == 0 or len(y) != len(rows):
        raise DataError("others must be features and labels of the same records")
    fitted = minimum(last)
    design = fitted.design(rows)
    size = np.abs(design)
    summed = fitted.rounded(size, np.abs(fitted.theta)) + np.abs(fitted.penalty)
    floor = ROUNDINGS * fitted.rounding * summed + fitted.stopping(design, len(rows) + 1)
    constant = constant_of(design, fitted.has_intercept)
    if constant is None:
        raise ModelError(
            "the model has no intercept, and no columns with a constant sum: the record is known up to a factor"
        )
    found = GradientDifference(fitted.gradient(rows, y), floor, np.zeros_like(floor), constant)
    used = constant != 0  # of an unknown solver the floor is infinite
    signal = float(np.max(np.abs(constant @ found.G) / (np.abs(constant[used]) @ floor[used])))
    if not signal >= SURE:
        raise ModelError(
            f"the residual of the last record is {signal:.2g} times what rounding and the solver may leave: the "
            "optimum is not solved well enough, or no record is missing"
        )
    if found.rank > 1 or found.point is None:
        raise ModelError("the gradient of the other records is not that of one record: more than one is missing")
    residuals = np.linalg.lstsq(found.point[:, None], found.G, rcond=None)[0][0]
    if fitted.classes and (np.abs(residuals) > 1 + SURE / signal).any():
        raise ModelError("no record has so large a gradient: more than one is missing, or the optimum is not solved")
    features = found.point[1:] if fitted.has_intercept else found.point
    error = UNCERTAIN * np.abs(features).max() / signal
    whole = (rows == np.round(rows)).all(axis=0)
    if error < LARGEST_ERROR and (np.abs(features - np.round(features))[whole] > error + ROUNDED).any():
        raise ModelError(
            "a column in which all other records hold whole numbers would have another number: more than one record is "
            "missing, or other records were given"
        )
    beyond = np.maximum(features - rows.max(axis=0), rows.min(axis=0) - features) - error
    with np.errstate(divide="ignore", invalid="ignore"):
        far = beyond / rows.std(axis=0)
    outside = beyond > 0
    farthest = float(far[outside].max(initial=0.0))
    return LastRecord(features, label_of(residuals, fitted, found.point), signal, int(outside.sum()), farthest)
