"""Score test: do the coefficients of a linear model lie in the direction in which this record would move them?

The attacker holds the model itself, not its answers alone, and records of the same population; it trains no shadow
models. With θ* the minimum on those records, penalised as strongly, and g the gradient of the loss of a record z there,
the coefficients θ̂ of a model of n records are normal with mean θ* − H⁻¹g/n if z is one of them, and θ* otherwise, and
covariance H⁻¹ΣH⁻¹/n, where H is the mean Hessian and Σ the covariance of gradients. The log-likelihood ratio is

    −gᵀΣ⁻¹H(θ̂ − θ*) − gᵀΣ⁻¹g/(2n),

Rao's score test of the record. Scores are that ratio: higher means member, and above 0 the attacker says so. No
published attack; Suri et al. 2024 (arXiv 2406.11544) derive the loss, gradient and Hessian of the target as sufficient
for an attacker who knows all other records.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.errors import DataError, ModelError
from leakgauge.models.linear import Minimum, is_linear, minimum

SMALLEST_DIRECTION = 1e-10
"""Share of the largest variance of gradients below which a direction is a combination of columns that does not vary."""


def scores(model: Any, population: tuple[Floats, Any], records: tuple[Floats, Any], n: int) -> Floats:
    """Score records ``[m]`` by the log-likelihood ratio of the coefficients with and without each of them.

    Args:
        model: a fitted ``LinearRegression``, ``Ridge``, or ``LogisticRegression`` of two classes with L2 or no penalty;
            the target.
        population: features ``[r, d]`` and labels ``[r]`` of records of the same population, none of them training
            records or among those scored.
        records: features ``[m, d]`` and labels ``[m]`` of the candidates.
        n: training records of the target.

    Returns:
        ``[m]``, in nats; higher means member, and above 0 the attacker says so.

    Raises:
        ModelError: the model is another one, or has several outputs.
        DataError: there are fewer records of the population than coefficients.
    """
    if not is_linear(model):
        raise ModelError(
            f"the score test reads fitted linear and logistic regressions and ridge, got {type(model).__name__}"
        )
    target = minimum(model)
    if target.theta.shape[1] != 1:
        raise ModelError(f"the score test is for models of one output, and this has {target.theta.shape[1]}")
    X, y = population
    if len(y) <= len(target.theta):
        raise DataError(f"population has {len(y)} records; give more than the {len(target.theta)} coefficients")
    reference = _fitted_elsewhere(model, X, y, n)
    own = _gradients(reference, X, y)
    middle = own.mean(axis=0)
    variances, directions = np.linalg.eigh(np.atleast_2d(np.cov(own, rowvar=False)))
    used = variances > SMALLEST_DIRECTION * variances.max()
    inverse = (directions[:, used] / variances[used]) @ directions[:, used].T
    g = _gradients(reference, *records) - middle
    moved = _hessian(reference, X, _strength(model) / n) @ (target.theta - reference.theta)[:, 0]
    return np.asarray(-g @ inverse @ moved - np.einsum("ij,jk,ik->i", g, inverse, g) / (2 * n))


def _fitted_elsewhere(model: Any, X: Floats, y: Any, n: int) -> Minimum:
    """The same model on other records, whose number changes how strong its penalty is beside the loss."""
    from sklearn.base import clone

    settings = model.get_params()
    scaled = {"alpha": settings["alpha"] * len(y) / n} if "alpha" in settings else {}
    if "C" in settings:
        scaled = {"C": settings["C"] * n / len(y)}
    return minimum(clone(model).set_params(**scaled).fit(X, y))


def _strength(model: Any) -> float:
    """The factor of half the squared coefficients in the sum of the losses."""
    settings = model.get_params()
    return float(settings["alpha"] if "alpha" in settings else 1 / settings["C"] if "C" in settings else 0.0)


def _gradients(model: Minimum, X: Floats, y: Any) -> Floats:
    """Of the loss of each record ``[m, p]``, without the penalty."""
    design = model.design(np.asarray(X, dtype=float))
    return np.asarray(design * (model.means(design) - model.targets(y)))


def _hessian(model: Minimum, X: Floats, strength: float) -> Floats:
    """Of the mean loss and the penalty ``[p, p]``; an intercept is not penalised."""
    design = model.design(np.asarray(X, dtype=float))
    means = model.means(design)
    weights = means * (1 - means) if model.classes else np.ones_like(means)
    penalised = np.full(len(model.theta), strength)
    penalised[: int(model.has_intercept)] = 0.0
    return np.asarray((design * weights).T @ design / len(design) + np.diag(penalised))
