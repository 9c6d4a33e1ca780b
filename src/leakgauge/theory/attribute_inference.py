"""What inverting a regression model gives away about a hidden column, where its errors are normal.

The attacker is told everything about a person but one column: the other features and the response. It asks the model
about each value `t_i` of the hidden column, and answers the value whose error `y - a_i` is likeliest, weighed by how
frequent the value is. Here `a_i` is the prediction with `t_i` in place (up to a shift that all values share), the
error is N(0, sigma_in^2) on members and N(0, sigma_out^2) on others, and the **attribute advantage** is
`Pr[right | member] - Pr[right | non-member]` (Definition 5): what the model says about its training records beyond
what it says about everybody. Nothing here looks at data.

Several values share one rule: those of prior 0 are never answered, and where only one value is possible there is
nothing to infer and the advantage is 0.

Source: Yeom, Giacomelli, Fredrikson and Jha, "Privacy Risk in Machine Learning: Analyzing the Connection to
Overfitting", CSF 2018, sections 4 and 5. For general priors and more than two values the paper describes the attack
and prints no formula; those here are derived from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

from leakgauge.theory._checks import check_not_negative
from leakgauge.theory.gaussian_error import gaussian_crossing

Interval: TypeAlias = tuple[float, float]
Order: TypeAlias = Literal["highest_prior", "lowest_prior"]

_SUM_SLACK = 1e-9
_EMPTY: Interval = (math.inf, -math.inf)


def inversion_advantage(tau: float, sigma_in: float, sigma_out: float) -> float:
    """Return the attribute advantage for two values that are equally frequent.

    Args:
        tau: How far the prediction moves from one value to the other, at least 0, in the unit of the response.
        sigma_in: Standard deviation of the error on members, finite and at least 0.
        sigma_out: Standard deviation of the error on non-members, finite and at least 0.

    Returns:
        `(erf(tau / (2 sqrt2 sigma_in)) - erf(tau / (2 sqrt2 sigma_out))) / 2`: 0 at `tau = 0`, near 0 for large
        `tau`, never above 1/2; negative if non-members have the smaller spread.

    Raises:
        ValueError: If an argument is negative, NaN, or infinite.

    Source: Yeom et al. 2018, Theorem 5.

    >>> round(inversion_advantage(2.0, 1.0, 2.0), 10)
    0.1498822848
    """
    tau = check_not_negative("tau", tau, "it is the size of a change", finite=True)
    sigma_in, sigma_out = _check_sigma("sigma_in", sigma_in), _check_sigma("sigma_out", sigma_out)
    return (_two_sided(tau / 2, sigma_in) - _two_sided(tau / 2, sigma_out)) / 2


def best_tau(sigma_in: float, sigma_out: float) -> float:
    """Return the influence of the hidden column at which `inversion_advantage` is largest.

    There it is exactly half the membership advantage of the attacker who knows both spreads
    (`leakgauge.theory.gaussian_advantage`).

    Args:
        sigma_in: Standard deviation of the error on members, finite and at least 0.
        sigma_out: Standard deviation of the error on non-members, finite and at least 0.

    Returns:
        Twice `leakgauge.theory.gaussian_crossing`, in the unit of the response.

    Raises:
        ValueError: If a standard deviation is negative, NaN or infinite.

    Source: derived from Yeom et al. 2018, Theorem 5: the derivative in `tau` is 0 where both densities are equal at
    `tau / 2`.

    >>> round(best_tau(1.0, 2.0), 9)
    2.719111974
    """
    return 2 * gaussian_crossing(sigma_in, sigma_out)


def answered_errors(predictions: Sequence[float], prior: Sequence[float], assumed_sigma: float) -> tuple[Interval, ...]:
    """Return for each value the responses for which the inversion attack answers it.

    The score of a value is linear in the response once what all values share is taken away, so each value is answered
    on one interval: a cell of the upper envelope of m lines.

    Args:
        predictions: What the model says with each value in place [m], up to a shift that all share.
        prior: How frequent each value is [m], at least 0, together 1.
        assumed_sigma: Standard deviation of the error that the attacker reckons with, finite and at least 0.

    Returns:
        For each value the interval `(low, high)` of the response on the scale of the predictions; one with
        `low >= high` is empty.

    Raises:
        ValueError: If lengths differ, a prediction is not finite, the prior is none, or the deviation is out of range.

    Source: derived from Yeom et al. 2018, Adversary 4.

    >>> answered_errors([2.0, 0.0], [0.5, 0.5], 1.0)
    ((1.0, inf), (-inf, 1.0))
    """
    a, p = _check_values(predictions, prior)
    s = _check_sigma("assumed_sigma", assumed_sigma)
    return tuple(_cell(i, a, p, s) for i in range(len(a)))


def inversion_success(
    predictions: Sequence[float], prior: Sequence[float], sigma: float, *, assumed_sigma: float
) -> float:
    """Return how often the inversion attack names the right value, for any number of values and any prior.

    Args:
        predictions: What the model says with each value in place [m], up to a shift that all share.
        prior: How frequent each value is [m], at least 0, together 1.
        sigma: Standard deviation of the error on the people in question, finite and at least 0.
        assumed_sigma: The one that the attacker reckons with, likewise; usually `sigma_in`.

    Returns:
        The probability, in [0, 1].

    Raises:
        ValueError: As `answered_errors`, or if `sigma` is out of range.

    Source: derived from Yeom et al. 2018, Adversary 4.

    >>> round(inversion_success([0.0, 1.0, 2.0], [0.2, 0.5, 0.3], 1.5, assumed_sigma=0.5), 10)
    0.4681019178
    """
    a, p = _check_values(predictions, prior)
    sigma = _check_sigma("sigma", sigma)
    cells = answered_errors(a, p, assumed_sigma)
    return math.fsum(
        p_i * _mass(low - a_i, high - a_i, sigma) for a_i, p_i, (low, high) in zip(a, p, cells, strict=True)
    )


def inversion_advantage_of_values(
    predictions: Sequence[float],
    prior: Sequence[float],
    sigma_in: float,
    sigma_out: float,
    *,
    assumed_sigma: float | None = None,
) -> float:
    """Return the attribute advantage for any number of values and any prior.

    Args:
        predictions: What the model says with each value in place [m], up to a shift that all share.
        prior: How frequent each value is [m], at least 0, together 1.
        sigma_in: Standard deviation of the error on members, finite and at least 0.
        sigma_out: Standard deviation of the error on non-members, finite and at least 0.
        assumed_sigma: The one that the attacker reckons with; `sigma_in` if not given.

    Returns:
        `inversion_success` on members less that on non-members, in [-1, 1].

    Raises:
        ValueError: As `inversion_success`.

    Source: derived from Yeom et al. 2018, Adversary 4 and Definition 5.

    >>> round(inversion_advantage_of_values([2.0, 0.0], [0.1, 0.9], 1.0, 2.0), 10)
    0.1142223055
    """
    assumed = sigma_in if assumed_sigma is None else assumed_sigma
    inside, outside = (
        inversion_success(predictions, prior, sigma, assumed_sigma=assumed) for sigma in (sigma_in, sigma_out)
    )
    return inside - outside


def largest_inversion_advantage(predictions: Sequence[float], prior: Sequence[float]) -> float:
    """Return what the advantage tends to when members are fitted exactly and the error on others has no bound.

    A non-member is then answered with the value of the largest or of the smallest prediction, each half of the time.
    The paper's `1 - 1/m` is this for a uniform prior.

    Args:
        predictions: What the model says with each value in place [m]; only their order counts.
        prior: How frequent each value is [m], at least 0, together 1.

    Returns:
        `1 - (prior of the largest + prior of the smallest) / 2` where the predictions differ, in [0, 1].

    Raises:
        ValueError: If lengths differ, a prediction is not finite, or the prior is none.

    Source: derived; Yeom et al. 2018, section 4.2, for the uniform prior.

    >>> round(largest_inversion_advantage([0.0, 1.0, 2.0], [0.1, 0.8, 0.1]), 10)
    0.9
    """
    a, p = _check_values(predictions, prior)
    # Among values with equal predictions the most frequent is answered, so the others are never right.
    answered = [(a_i, p_i) for i, (a_i, p_i) in enumerate(zip(a, p, strict=True)) if not _is_hidden(i, a, p)]
    first, last = min(answered), max(answered)
    return math.fsum(p_i for _, p_i in answered) - (first[1] + last[1]) / 2


def uniform_guess_advantage(membership_advantage: float, n_values: int) -> float:
    """Return the attribute advantage of guessing one value and asking a membership attack whether it is right.

    Args:
        membership_advantage: That of the membership attack, in [-1, 1], on records completed with the true value.
        n_values: Number of values to guess from, m, at least 1.

    Returns:
        `membership_advantage / m`; 0 if there is only one value.

    Raises:
        ValueError: If an argument is out of range.

    Source: Yeom et al. 2018, Adversary 6 and Theorem 7.

    >>> uniform_guess_advantage(0.5, 4)
    0.125
    """
    if not -1 <= membership_advantage <= 1:
        raise ValueError(f"membership_advantage must be in [-1, 1], got {membership_advantage}; it is tpr - fpr.")
    if n_values < 1:
        raise ValueError(f"n_values must be at least 1, got {n_values}; it counts the possible values.")
    return membership_advantage / n_values if n_values > 1 else 0.0


def several_queries_success(
    predictions: Sequence[float],
    prior: Sequence[float],
    sigma: float,
    threshold: float,
    *,
    order: Order = "highest_prior",
) -> float:
    """Return how often asking a membership attack about every value names the right one.

    The membership attack says "member" if the error is smaller in size than the threshold. Among the values for which
    it does, the attacker answers the most frequent; if there is none, it makes no guess, which counts as wrong.

    Args:
        predictions: What the model says with each value in place [m], up to a shift that all share.
        prior: How frequent each value is [m], at least 0, together 1. Of equal ones the earlier goes first.
        sigma: Standard deviation of the error on the people in question, finite and at least 0.
        threshold: Of the membership attack, finite and at least 0, in the unit of the response.
        order: `"highest_prior"` is the attack; `"lowest_prior"` is what the authors' published code does.

    Returns:
        The probability, in [0, 1]; 1 if only one value is possible, which is answered without asking.

    Raises:
        ValueError: If an argument is out of range or the order is unknown.

    Source: Yeom et al. 2018, Adversary 7; the formula is derived.

    >>> round(several_queries_success([0.0, 1.0], [0.5, 0.5], 1.0, 1.359556), 6)
    0.549317
    """
    a, p = _check_values(predictions, prior)
    sigma, theta = _check_sigma("sigma", sigma), check_not_negative("threshold", threshold, "it is a size", finite=True)
    ranked = _ranked(p, order)
    if len(ranked) == 1:
        return 1.0
    total = 0.0
    for place, t in enumerate(ranked):
        # The error with value j in place is e + a_t - a_j, and e is that with the true value t.
        flagged_before = [(a[j] - a[t] - theta, a[j] - a[t] + theta) for j in ranked[:place]]
        total += p[t] * math.fsum(_mass(*gap, sigma) for gap in _uncovered((-theta, theta), flagged_before))
    return total


def several_queries_advantage(
    predictions: Sequence[float],
    prior: Sequence[float],
    sigma_in: float,
    sigma_out: float,
    threshold: float,
    *,
    order: Order = "highest_prior",
) -> float:
    """Return the attribute advantage of asking a membership attack about every value.

    Args:
        predictions: What the model says with each value in place [m], up to a shift that all share.
        prior: How frequent each value is [m], at least 0, together 1.
        sigma_in: Standard deviation of the error on members, finite and at least 0.
        sigma_out: Standard deviation of the error on non-members, finite and at least 0.
        threshold: Of the membership attack; see `several_queries_success`.
        order: See `several_queries_success`.

    Returns:
        `several_queries_success` on members less that on non-members. Where the predictions of all values are more than
        two thresholds apart it is the advantage of the membership attack itself.

    Raises:
        ValueError: As `several_queries_success`.

    Source: Yeom et al. 2018, Adversary 7; the formula is derived.

    >>> round(several_queries_advantage([0.0, 3.0], [0.5, 0.5], 1.0, 2.0, 1.3595559869), 10)
    0.3226745688
    """
    inside, outside = (
        several_queries_success(predictions, prior, sigma, threshold, order=order) for sigma in (sigma_in, sigma_out)
    )
    return inside - outside


def _cell(i: int, a: Sequence[float], p: Sequence[float], s: float) -> Interval:
    """Where value i has the highest score."""
    if _is_hidden(i, a, p):
        return _EMPTY
    others = [j for j in range(len(a)) if p[j] > 0 and a[j] != a[i]]
    borders = [(a[j], (a[i] + a[j]) / 2 + s**2 * math.log(p[j] / p[i]) / (a[i] - a[j])) for j in others]
    low = max((border for a_j, border in borders if a_j < a[i]), default=-math.inf)
    high = min((border for a_j, border in borders if a_j > a[i]), default=math.inf)
    return low, high


def _is_hidden(i: int, a: Sequence[float], p: Sequence[float]) -> bool:
    """Whether value i is never answered: its prior is 0, or another with the same prediction is more frequent."""
    return p[i] == 0 or any(a[j] == a[i] and (-p[j], j) < (-p[i], i) for j in range(len(a)))


def _ranked(p: Sequence[float], order: Order) -> list[int]:
    """The values that may be answered, the one that is preferred first; of equals the earlier first."""
    if order not in ("highest_prior", "lowest_prior"):
        raise ValueError(f"order must be 'highest_prior' or 'lowest_prior', got {order!r}.")
    return sorted((i for i in range(len(p)) if p[i] > 0), key=lambda i: p[i], reverse=order == "highest_prior")


def _uncovered(whole: Interval, covers: Sequence[Interval]) -> list[Interval]:
    """What is left of an interval when others are taken out of it."""
    low, high = whole
    inside = sorted((max(left, low), min(right, high)) for left, right in covers if right > low and left < high)
    reached = low
    gaps = []
    for left, right in [*inside, (high, high)]:
        if left > reached:
            gaps.append((reached, left))
        reached = max(reached, right)
    return gaps


def _mass(low: float, high: float, sigma: float) -> float:
    """Probability of N(0, sigma^2) between two numbers, to full relative accuracy in either tail."""
    if low >= high:
        return 0.0
    if low > 0:
        low, high = -high, -low
    upper, lower = (_below(limit, sigma) for limit in (high, low))
    return upper - lower


def _below(limit: float, sigma: float) -> float:
    """Probability of N(0, sigma^2) below a limit; for sigma = 0 what it tends to, 1/2 at 0."""
    if sigma == 0:
        return 0.5 if limit == 0 else float(limit > 0)
    return math.erfc(-limit / (sigma * math.sqrt(2))) / 2


def _two_sided(limit: float, sigma: float) -> float:
    """Probability of N(0, sigma^2) within a distance of 0; for sigma = 0 what it tends to."""
    if sigma == 0:
        return float(limit > 0)
    return math.erf(limit / (sigma * math.sqrt(2)))


def _check_sigma(name: str, value: float) -> float:
    return check_not_negative(name, value, "it is a root mean squared error", finite=True)


def _check_values(predictions: Sequence[float], prior: Sequence[float]) -> tuple[list[float], list[float]]:
    """Predictions and prior as floats of one length; refuses what is no distribution."""
    a, p = [float(value) for value in predictions], [float(value) for value in prior]
    if not a or len(a) != len(p):
        raise ValueError(f"predictions and prior must have one entry per value, got {len(a)} and {len(p)}.")
    if not all(map(math.isfinite, a)):
        raise ValueError(
            f"predictions must be finite, got {a}; leave values out that the model cannot be queried with."
        )
    if not all(value >= 0 for value in p) or abs(math.fsum(p) - 1) > _SUM_SLACK:
        raise ValueError(f"prior must be at least 0 and sum to 1, got {p}; divide frequencies by their sum.")
    return a, p
