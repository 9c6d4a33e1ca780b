"""The threshold attack on a regression error that is normal with one spread for members, another for others.

The error `y - prediction` is N(0, sigma_in^2) on members and N(0, sigma_out^2) on non-members; the attacker
answers "member" where the first density is the larger. Nothing here looks at data: whether errors are normal
is for the caller to judge.

Source: Yeom et al. 2018, section 3.3, Adversary 2 and Theorem 3. All results depend on the ratio
`r = sigma_out / sigma_in`, and those for both spreads known are the same for r and 1 / r.
"""

from __future__ import annotations

import math

from leakgauge.theory._checks import check_not_negative


def gaussian_crossing(sigma_in: float, sigma_out: float) -> float:
    """Return the size of error at which both densities are equal.

    With `sigma_out > sigma_in` the attack says member if the error is smaller in size, with
    `sigma_out < sigma_in` if it is larger. With equal spreads every error is as likely under both, the attack
    always says non-member, and the value returned is only the limit.

    Args:
        sigma_in: Standard deviation of the error on members, finite and at least 0.
        sigma_out: Standard deviation of the error on non-members, finite and at least 0.

    Returns:
        `sigma_out sqrt(2 ln r / (r^2 - 1))`, in the unit of the error; `sigma_in` if both are equal; 0 if only
        one is 0 (the attack then asks whether the error is exactly 0).

    Raises:
        ValueError: If a standard deviation is negative, NaN or infinite.

    >>> round(gaussian_crossing(1.0, 2.0), 10)
    1.3595559869
    """
    smaller, larger = _check_sigmas(sigma_in, sigma_out)
    if smaller == larger or smaller == 0:
        return smaller
    # With v of `_upper_limit`: sigma_out sqrt(2 ln r / (r^2 - 1)) = sigma_in sqrt(2) v.
    return smaller * math.sqrt(2) * _upper_limit(_log_ratio(smaller, larger))


def gaussian_advantage(sigma_in: float, sigma_out: float) -> float:
    """Return the advantage of the attacker who knows both spreads.

    Args:
        sigma_in: Standard deviation of the error on members, finite and at least 0.
        sigma_out: Standard deviation of the error on non-members, finite and at least 0.

    Returns:
        `erf(r w) - erf(w)` with `w = sqrt(ln r / (r^2 - 1))`, in [0, 1]; 0 if both spreads are equal (also if
        both are 0), 1 if only one is 0.

    Raises:
        ValueError: If a standard deviation is negative, NaN or infinite.

    Source: Yeom et al. 2018, Theorem 3.

    >>> round(gaussian_advantage(1.0, 2.0), 10)
    0.3226745688
    """
    smaller, larger = _check_sigmas(sigma_in, sigma_out)
    if smaller == larger:
        return 0.0
    if smaller == 0:
        return 1.0
    log_r = _log_ratio(smaller, larger)
    v = _upper_limit(log_r)
    return math.erf(v) - math.erf(v * math.exp(-log_r))


def gaussian_advantage_sigma_in_only(sigma_in: float, sigma_out: float) -> float:
    """Return the advantage of the attacker who knows `sigma_in` alone: member if and only if `abs(error) < sigma_in`.

    Args:
        sigma_in: Standard deviation of the error on members, finite and at least 0.
        sigma_out: Standard deviation of the error on non-members, finite and at least 0; the attacker does
            not need it, its advantage does.

    Returns:
        `erf(1 / sqrt 2) - erf(1 / (r sqrt 2))`: below 0.6826894921, which it approaches as r grows, and
        negative if non-members have the smaller spread. If `sigma_in` is 0 the attack becomes "member if and
        only if the error is 0" and the advantage is 1 (0 if `sigma_out` is 0 too).

    Raises:
        ValueError: If a standard deviation is negative, NaN or infinite.

    Source: Yeom et al. 2018, section 3.3.

    >>> round(gaussian_advantage_sigma_in_only(1.0, 2.0), 10)
    0.2997645696
    """
    _check_sigmas(sigma_in, sigma_out)
    if sigma_in == sigma_out:
        return 0.0
    if sigma_in == 0:
        return 1.0
    fpr = math.erf(sigma_in / (sigma_out * math.sqrt(2))) if sigma_out > 0 else 1.0
    return math.erf(1 / math.sqrt(2)) - fpr


def _check_sigmas(sigma_in: float, sigma_out: float) -> tuple[float, float]:
    """Return both standard deviations, the smaller first."""
    advice = "it is a root mean squared error"
    a = check_not_negative("sigma_in", sigma_in, advice, finite=True)
    b = check_not_negative("sigma_out", sigma_out, advice, finite=True)
    return min(a, b), max(a, b)


def _log_ratio(smaller: float, larger: float) -> float:
    """Return ln(larger / smaller), accurate where both are nearly equal and where their ratio overflows."""
    if larger < 2 * smaller:
        return math.log1p((larger - smaller) / smaller)
    return math.log(larger) - math.log(smaller)


def _upper_limit(log_r: float) -> float:
    """Return `v = r w = sqrt(ln r / (1 - r^-2))` for r > 1; it needs no r, which might overflow."""
    return math.sqrt(log_r / -math.expm1(-2 * log_r))
