"""Membership from the size of a regression error, when errors are roughly normal.

The attacker holds the record with its true value, asks the model once, and knows how large the model's errors
usually are: on its training set (``sigma_in``), or also elsewhere (``sigma_out``). Such numbers are often
published with the model as its training and test error. It succeeds when it tells members from fresh records
of the population. Source: Yeom, Giacomelli, Fredrikson, Jha, "Privacy Risk in Machine Learning", CSF 2018,
Adversary 2, Theorem 3, sections 3.3 and 6.1. The advantage in closed form is
`leakgauge.theory.gaussian_advantage`.

Scores point towards membership, and the paper's rule is exactly ``score > 0``; equality means non-member.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Floats
from leakgauge.checking import number
from leakgauge.errors import ConfigError
from leakgauge.membership._checks import checked_vector
from leakgauge.membership.attack import VALUES, MembershipAttack, published

if TYPE_CHECKING:
    from leakgauge.membership.evidence import MembershipEvidence

# A standard deviation below this fraction of the scale of y is an interpolating model seen through rounding
# errors.
_RELATIVE_TOLERANCE = 1e-12


def known_both(
    errors: ArrayLike, sigma_in: float, sigma_out: float, *, scale: float | None = None
) -> NDArray[np.float64]:
    """Membership scores with both standard deviations known: the log density ratio of the error.

    The score is the logarithm of the error's density as a member minus that of its density otherwise. The
    errors of members are taken to be N(0, sigma_in^2) and all others N(0, sigma_out^2). Where sigma_in is
    below sigma_out small errors speak for membership, where it is above large errors do. The model's real
    errors need not be normal; the rule stays valid but is then no longer the best.

    Args:
        errors: [records], ``y - prediction``, finite; only the absolute value matters.
        sigma_in: standard deviation of the error on members, at least 0, units of y.
        sigma_out: standard deviation of the error on other records, at least 0, units of y.
        scale: typical size of y, for example its standard deviation; the larger of the two sigmas if not
            given. A sigma of at most 1e-12 times the scale counts as 0.

    Returns:
        [records], float64, in nats; never NaN. Equal sigmas carry no information: all scores are 0, all
        records "non-member". With sigma_in = 0 (an interpolating model) errors below 1e-12 times the scale
        score +infinity and all others -infinity; with sigma_out = 0 it is the other way round.

    Raises:
        ModelError: errors are not one finite number per record.
        ConfigError: a sigma is negative or not finite, or the scale is not positive.

    Source:
        Yeom et al. 2018, Adversary 2 and Theorem 3.

    >>> known_both([0.0, 3.0], 1.0, 2.0).round(4).tolist()
    [0.6931, -2.6819]
    """
    values = np.abs(checked_vector(errors, "errors"))
    inside = _checked_sigma(sigma_in, "sigma_in")
    outside = _checked_sigma(sigma_out, "sigma_out")
    tolerance = _tolerance(max(inside, outside), scale)
    if inside == outside or max(inside, outside) <= tolerance:
        return np.zeros(values.size)
    if inside <= tolerance:
        return np.where(values < tolerance, np.inf, -np.inf)
    if outside <= tolerance:
        return np.where(values < tolerance, -np.inf, np.inf)
    # ln f_in - ln f_out = ln r - (err^2 / 2 sigma_out^2)(r^2 - 1) with r = sigma_out / sigma_in, as a product
    # of factors that neither cancel near r = 1 nor become infinity minus infinity for huge errors.
    excess = (outside - inside) / inside
    with np.errstate(over="ignore"):
        standardised = values / outside
        penalty: NDArray[np.float64] = (standardised * excess) * (standardised * (excess + 2.0)) / 2.0
    return math.log1p(excess) - penalty


def known_sigma_in(errors: ArrayLike, sigma_in: float, *, scale: float | None = None) -> NDArray[np.float64]:
    """Membership scores with only the training error known: ``sigma_in - |error|``.

    It is not a likelihood ratio. On models whose training errors pile up at zero it can do better than
    `known_both`.

    Args:
        errors: [records], ``y - prediction``, finite; only the absolute value matters.
        sigma_in: standard deviation of the error on members, at least 0, units of y.
        scale: typical size of y, for example its standard deviation. Needed when sigma_in is 0: the threshold
            is never below 1e-12 times the scale, so that the exactly fitted records of an interpolating model
            are found.

    Returns:
        [records], float64, units of y; higher means member, member means ``score > 0``.

    Raises:
        ModelError: errors are not one finite number per record.
        ConfigError: sigma_in is negative or not finite, or 0 without a scale, or the scale is not positive.

    Source:
        Yeom et al. 2018, section 3.3.

    >>> known_sigma_in([0.5, -1.0, 3.0], 1.0).tolist()
    [0.5, 0.0, -2.0]
    """
    values = np.abs(checked_vector(errors, "errors"))
    inside = _checked_sigma(sigma_in, "sigma_in")
    if inside == 0 and scale is None:
        raise ConfigError(
            "sigma_in is 0, an interpolating model, and then scale must be given: "
            "pass the standard deviation of y, so that rounding errors are distinguished from real ones."
        )
    return max(inside, _tolerance(inside, scale)) - values


def sigma_in(errors_on_training: ArrayLike) -> float:
    """Estimate of sigma_in: root mean squared error of the model on its own training set.

    Args:
        errors_on_training: [members], ``y - prediction``, finite.

    Returns:
        The estimate, units of y; no correction for degrees of freedom and no centring.

    Raises:
        ModelError: not one finite number per record.

    Source:
        Yeom et al. 2018, section 6.1.

    >>> sigma_in([1.0, -7.0, 5.0, 5.0])
    5.0
    """
    return _root_mean_square(checked_vector(errors_on_training, "errors_on_training"))


def sigma_out(leave_one_out_errors: ArrayLike) -> float:
    """Estimate of sigma_out: root mean squared leave-one-out error.

    Args:
        leave_one_out_errors: [records], the error on each record of the model trained without it. Errors of a
            shuffled 10-fold cross-validation may stand in where there are more than 10,000 records.

    Returns:
        The estimate, units of y.

    Raises:
        ModelError: not one finite number per record.

    Source:
        Yeom et al. 2018, section 6.1.

    >>> sigma_out([2.0, -2.0])
    2.0
    """
    return _root_mean_square(checked_vector(leave_one_out_errors, "leave_one_out_errors"))


def _root_mean_square(values: NDArray[np.float64]) -> float:
    """Square root of the mean square, safe from overflow and underflow of the squares."""
    largest = float(np.max(np.abs(values)))
    return largest * math.sqrt(float(np.mean((values / largest) ** 2))) if largest > 0 else 0.0


def _checked_sigma(value: float, name: str) -> float:
    """The standard deviation as a float, finite and at least 0."""
    number(least=0, hint=f"estimate it with gaussian_error.{name}(errors)")(name, value)
    return float(value)


def _tolerance(largest_sigma: float, scale: float | None) -> float:
    """Absolute size, in units of y, below which an error or a standard deviation counts as 0."""
    if scale is None:
        return _RELATIVE_TOLERANCE * largest_sigma
    number(above=0, hint="pass the standard deviation of y")("scale", scale)
    return _RELATIVE_TOLERANCE * max(scale, largest_sigma)


def _known_both(evidence: MembershipEvidence) -> Floats:
    return known_both(
        evidence.errors,
        published(evidence.sigma_in, "training error"),
        published(evidence.sigma_out, "error on other records"),
        scale=evidence.scale,
    )


def _known_sigma_in(evidence: MembershipEvidence) -> Floats:
    sigma_in = published(evidence.sigma_in, "training error")
    return known_sigma_in(evidence.errors, sigma_in, scale=evidence.scale)


BOTH_KNOWN = MembershipAttack(
    "error-both-known",
    "Gaussian error attack",
    "error more probable among members, both error distributions known",
    "Yeom et al. 2018, Adversary 2",
    VALUES,
    False,
    _known_both,
)

BELOW_TRAINING_ERROR = MembershipAttack(
    "error-below-training-error",
    "Error threshold",
    "error below the training error",
    "Yeom et al. 2018, section 3.3",
    VALUES,
    False,
    _known_sigma_in,
)
