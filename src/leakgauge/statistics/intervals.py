"""Intervals for one rate and for one mean.

Notation: `alpha = 1 - confidence`; each end of an interval may miss with probability `alpha / 2`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from leakgauge.statistics._checks import check_count, check_fraction, check_values, without_rounding
from leakgauge.statistics.estimate import Estimate

_ROUNDING = 1e-12


def normal_quantile(confidence: float) -> float:
    """Return z with `Pr[|Z| <= z] = confidence` for a standard normal Z."""
    return float(special.ndtri((1 + confidence) / 2))


def clopper_pearson(successes: int, n: int, *, confidence: float = 0.95) -> Estimate:
    """Estimate a rate from independent trials; the interval never covers less than it says.

    Use it wherever a decision hangs on the end of an interval. It is wider than `wilson`, and its coverage
    is above the nominal one for most rates.

    Args:
        successes: Number of trials that came out true, 0 to `n`.
        n: Number of trials, at least 1. With no trials there is no estimate, and an error is raised: a
            caller with nothing to count must say so rather than show [0, 1] around a made-up value.
        confidence: In (0, 1).

    Returns:
        The rate `successes / n`, in [0, 1].

    Raises:
        ValueError: If a count or the confidence is out of range.
        TypeError: If a count is not an integer.

    Source: Clopper and Pearson, "The use of confidence or fiducial limits", Biometrika 26 (1934).

    >>> print(clopper_pearson(0, 100))
    0 [0, 0.0362]
    """
    successes, n = check_count("successes", successes, "n", n)
    tail = (1 - check_fraction("confidence", confidence)) / 2
    # The rates at which seeing >= k (<= k) successes has probability `tail` are beta quantiles.
    low = float(special.betaincinv(successes, n - successes + 1, tail)) if successes > 0 else 0.0
    high = float(special.betainccinv(successes + 1, n - successes, tail)) if successes < n else 1.0
    return Estimate(successes / n, low, high, confidence, "Clopper-Pearson", n)


def wilson(successes: int, n: int, *, confidence: float = 0.95) -> Estimate:
    """Estimate a rate from independent trials with the score interval.

    Its coverage is nominal on average over rates, and dips below for rates within a few `1 / n` of 0 or 1
    (to about 0.84 at 95 %). For a bound that must hold use `clopper_pearson`.

    Args:
        successes: Number of trials that came out true, 0 to `n`.
        n: Number of trials, at least 1 (see `clopper_pearson`).
        confidence: In (0, 1).

    Returns:
        The rate `successes / n`, in [0, 1].

    Raises:
        ValueError: If a count or the confidence is out of range.
        TypeError: If a count is not an integer.

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).

    >>> print(wilson(0, 100))
    0 [0, 0.037]
    """
    successes, n = check_count("successes", successes, "n", n)
    z = normal_quantile(check_fraction("confidence", confidence))
    p = successes / n
    # The rates r that solve (p - r)^2 = z^2 r (1 - r) / n.
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2) / (1 + z**2 / n)
    return Estimate(p, max(0.0, centre - half), min(1.0, centre + half), confidence, "Wilson", n)


def mean(values: ArrayLike, *, confidence: float = 0.95, lower: float = -math.inf, upper: float = math.inf) -> Estimate:
    """Estimate a mean with Student's t interval.

    It is exact for normal values and approximate otherwise; it is not for a handful of very skewed values.
    Values that are all equal show no spread to compute with, which is not the same as having none: then the
    interval is the distribution-free one, `[v - p (v - lower), v + p (upper - v)]` with
    `p = 1 - alpha^(1 / (n - 1))`, because p is what may at most have gone unseen. Without bounds that is the
    whole line, the honest answer.

    Args:
        values: Independent observations [n], n at least 2, finite.
        confidence: In (0, 1).
        lower: Smallest possible value, if there is one; the interval is clipped to it.
        upper: Largest possible value, if there is one; the interval is clipped to it.

    Returns:
        The arithmetic mean, in the unit of the values.

    Raises:
        ValueError: On fewer than 2 values, NaN, infinity, or values outside [lower, upper].

    Source: Student, "The probable error of a mean", Biometrika 6 (1908). For equal values: if a value has
    probability below 1 - p then n draws agree on it with probability at most (1 - p)^(n - 1) = alpha.

    >>> print(mean([1.0, 2.0, 3.0, 4.0]))
    2.5 [0.446, 4.55]
    >>> print(mean([0.0] * 100, lower=0.0, upper=1.0))
    0 [0, 0.0298]
    """
    values = _check_bounded(values, lower, upper)
    alpha = 1 - check_fraction("confidence", confidence)
    n = values.size
    if values.min() == values.max():
        return _equal_values(float(values[0]), n, n, confidence, lower, upper)
    value = float(values.mean())
    half = float(special.stdtrit(n - 1, 1 - alpha / 2) * values.std(ddof=1) / math.sqrt(n))
    return Estimate(value, max(lower, value - half), min(upper, value + half), confidence, "Student t", n)


def _check_bounded(values: ArrayLike, lower: float, upper: float) -> NDArray[np.float64]:
    array = without_rounding(check_values("values", values, at_least=2), lower, upper)
    if not (np.isfinite(array).all() and array.min() >= lower and array.max() <= upper):
        raise ValueError(
            f"values must be finite and in [lower, upper] = [{lower}, {upper}], got {array.min()} to "
            f"{array.max()}; widen the bounds, or look at these records first."
        )
    return array


def _equal_values(value: float, effective: float, n: int, confidence: float, lower: float, upper: float) -> Estimate:
    """The distribution-free interval of `mean`, for as many values as count."""
    unseen = 1 - (1 - confidence) ** (1 / (effective - 1))
    low, high = value - unseen * (value - lower), value + unseen * (upper - value)
    return Estimate(value, low, high, confidence, "equal values, distribution-free", n)


def clustered_mean(
    values: ArrayLike,
    clusters: ArrayLike,
    *,
    confidence: float = 0.95,
    lower: float = -math.inf,
    upper: float = math.inf,
) -> Estimate:
    """Estimate a mean of values that hang together within clusters, such as the rows of one person.

    The mean is the ratio of two totals over clusters, and its error that of the jackknife, which leaves out one cluster
    at a time. Where few clusters hold most of the values, the others say little of how far these may be off: so the
    degrees of freedom are those of the effective number of clusters, and the interval may be as wide as the bounds.
    Where values have two bounds, each end is Wilson's if that is wider: a mean near a bound has an error on one side.
    Without bounds, clusters of one size have the interval of Student over the means of clusters.

    It is for clusters that are drawn alike. What is said of values which only clusters larger than any seen have errs
    more often than is stated, as with `mean`.

    Where clusters are single values the interval is that of `mean`. Where all have the same mean it is the
    distribution-free one of `mean`, of as many values as there are effective clusters.

    Args:
        values: Finite, [n].
        clusters: Equal for values of the same of G clusters [n]; G is at least 2.
        confidence: In (0, 1).
        lower: Smallest possible value, if there is one; the interval is clipped to it.
        upper: Largest possible value, if there is one; the interval is clipped to it.

    Returns:
        The arithmetic mean of the values, with `n` the number of clusters.

    Raises:
        ValueError: On fewer than 2 clusters, or as `mean`.

    Source: Cochran, "Sampling Techniques", 3rd edition (1977), section 6.3: u_c = k_c - p n_c; each u_c is divided by
    1 - w_c, where w_c = n_c / n, as without cluster c the mean is p - u_c / (n (1 - w_c)). Degrees of freedom
    (sum of w^2)^2 / (sum of w^4) - 1: Satterthwaite, Biometrics Bulletin 2 (1946), with the sizes in the place of
    estimates, as in Carter, Schnepel and Steigerwald, Review of Economics and Statistics 99 (2017). Effective clusters
    1 / (sum of w^2): Kish, "Survey Sampling" (1965).

    >>> print(clustered_mean([1.0, 1.0, 0.0, 0.0], [0, 0, 1, 2], lower=0, upper=1))
    0.5 [0, 1]
    """
    values = _check_bounded(values, lower, upper)
    check_fraction("confidence", confidence)
    _, of, sizes = np.unique(np.asarray(clusters), return_inverse=True, return_counts=True)
    n_clusters, value = len(sizes), float(values.mean())
    if n_clusters == len(values):
        return mean(values, confidence=confidence, lower=lower, upper=upper)
    if n_clusters < 2:
        raise ValueError(f"clusters must hold at least 2 different ones, got {n_clusters}; add records of others.")
    weights = sizes / len(values)
    residuals = np.bincount(of, weights=values) - value * sizes
    if np.all(np.abs(residuals) <= _ROUNDING * np.abs(values).max() * sizes):
        effective = 1 / float(np.sum(weights**2))
        return _equal_values(value, effective, n_clusters, confidence, lower, upper)
    # Values in all clusters but one; how far the mean moves without it is its residual over these.
    others = len(values) - sizes
    error = math.sqrt((n_clusters - 1) / n_clusters * float(np.sum((residuals / others) ** 2)))
    degrees = max(1.0, float(np.sum(weights**2) ** 2 / np.sum(weights**4)) - 1)
    quantile = float(special.stdtrit(degrees, (1 + confidence) / 2))
    low, high = value - quantile * error, value + quantile * error
    if math.isfinite(upper - lower) and lower < value < upper:
        wide_low, wide_high = _wilson_ends(value, error, quantile, lower, upper)
        low, high = min(low, wide_low), max(high, wide_high)
    return Estimate(value, max(lower, low), min(upper, high), confidence, "ratio over clusters, Student t", n_clusters)


def _wilson_ends(value: float, error: float, quantile: float, lower: float, upper: float) -> tuple[float, float]:
    """Wilson's interval of as many trials as have this error, for means in [lower, upper]."""
    # The rates r that solve (p - r)^2 = z^2 r (1 - r) / n, where p (1 - p) / n is the squared error.
    width, per_n = upper - lower, error**2 / ((value - lower) * (upper - value))
    stretch = 1 + quantile**2 * per_n
    centre = ((value - lower) / width + quantile**2 * per_n / 2) / stretch
    half = quantile * math.sqrt((error / width) ** 2 + (quantile * per_n / 2) ** 2) / stretch
    return lower + width * (centre - half), lower + width * (centre + half)


def welch_half_width(variance_a: float, n_a: int, variance_b: float, n_b: int, confidence: float) -> float:
    """Half the interval of a difference of two independent means.

    Args:
        variance_a: Estimated variance of the first mean (not of the values), positive or zero.
        n_a: Number of values behind it, at least 2.
        variance_b: The same for the second mean; not both variances may be zero.
        n_b: Number of values behind it, at least 2.
        confidence: In (0, 1).

    Returns:
        t quantile times standard error.

    Source: Welch, "The generalization of 'Student's' problem when several different population variances
    are involved", Biometrika 34 (1947).
    """
    variance = variance_a + variance_b
    degrees = variance**2 / (variance_a**2 / (n_a - 1) + variance_b**2 / (n_b - 1))
    return float(special.stdtrit(degrees, (1 + confidence) / 2) * math.sqrt(variance))
