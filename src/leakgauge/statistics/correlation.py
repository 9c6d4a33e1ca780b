"""Correlation of two columns with interval and p-value.

Used for the question of Long et al. 2017, section 5.4: do records with a higher pointwise differential
training privacy fall more often to the attack?
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from leakgauge.statistics._checks import check_fraction, check_values
from leakgauge.statistics.estimate import Estimate
from leakgauge.statistics.intervals import normal_quantile


@dataclasses.dataclass(frozen=True)
class Correlation:
    """A correlation coefficient and the evidence against its being zero.

    Attributes:
        estimate: The coefficient, in [-1, 1].
        p_value: Two-sided probability of a coefficient at least as far from 0 if there is none, in [0, 1];
            0 stands for less than 1e-307.
    """

    estimate: Estimate
    p_value: float


def pearson(x: ArrayLike, y: ArrayLike, *, confidence: float = 0.95) -> Correlation:
    """Estimate the linear correlation of two columns.

    Interval and p-value are those of jointly normal columns and independent rows. A coefficient of exactly
    1 or -1 has the interval of zero width which that model implies.

    Args:
        x: One number per record [n], n at least 4, finite and not all equal.
        y: The other column [n].
        confidence: In (0, 1).

    Returns:
        Pearson's r with Fisher's interval and the p-value of Student's t with n - 2 degrees of freedom.

    Raises:
        ValueError: If the columns differ in length, are too short, not finite, or constant.

    Source: Fisher, "On the 'probable error' of a coefficient of correlation deduced from a small sample",
    Metron 1 (1921).

    >>> result = pearson([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 1.0, 4.0, 3.0, 5.0])
    >>> print(result.estimate)
    0.8 [−0.28, 0.986]
    >>> round(result.p_value, 6)
    0.104088
    """
    a, b = _check_columns(x, y)
    r = _coefficient(a, b)
    return _correlation(r, r, 1 / math.sqrt(a.size - 3), a.size, confidence, "Fisher z")


def spearman(x: ArrayLike, y: ArrayLike, *, confidence: float = 0.95) -> Correlation:
    """Estimate the correlation of the ranks of two columns; ties get the mean of their ranks.

    The interval widens Fisher's by the factor of Bonett and Wright. Ranks in perfect order do not prove
    perfect order: there the interval is computed at the next coefficient that n ranks can have.

    Args:
        x: One number per record [n], n at least 4, finite and not all equal.
        y: The other column [n].
        confidence: In (0, 1).

    Returns:
        Spearman's coefficient, its interval, and the p-value of Student's t with n - 2 degrees of freedom
        (an approximation, poor below about 10 rows).

    Raises:
        ValueError: If the columns differ in length, are too short, not finite, or constant.

    Source: Bonett and Wright, "Sample size requirements for estimating Pearson, Kendall and Spearman
    correlations", Psychometrika 65 (2000).

    >>> print(spearman([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 4.0, 9.0, 16.0, 25.0]).estimate)
    1 [−0.169, 1]
    """
    a, b = _check_columns(x, y)
    n = a.size
    r = _coefficient(_midranks(a), _midranks(b))
    # Spearman: r = 1 - 6 sum d^2 / (n (n^2 - 1)); the smallest disorder, one swap of neighbours, has sum 2.
    next_to_one = 1 - 12 / (n * (n**2 - 1))
    at = max(-next_to_one, min(next_to_one, r))
    # Bonett & Wright 2000: variance of Fisher's z is (1 + r^2 / 2) / (n - 3).
    return _correlation(r, at, math.sqrt((1 + at**2 / 2) / (n - 3)), n, confidence, "Bonett-Wright z")


def _check_columns(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both columns if a coefficient is defined for them."""
    a, b = check_values("x", x, at_least=4), check_values("y", y, at_least=4)
    if a.size != b.size:
        raise ValueError(f"x and y must have equal lengths, got {a.size} and {b.size}; pair them by record.")
    for name, column in (("x", a), ("y", b)):
        if not np.isfinite(column).all():
            raise ValueError(
                f"{name} must be finite, got {int((~np.isfinite(column)).sum())} infinite value(s); bin the "
                "predictions, or correlate ranks of finite values."
            )
        if column.min() == column.max():
            raise ValueError(
                f"{name} must not be constant, got {column[0]} {column.size} times; no correlation is "
                "defined: report the constant instead."
            )
    return a, b


def _coefficient(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return Pearson's r."""
    return float(np.clip(_unit_deviations(a) @ _unit_deviations(b), -1.0, 1.0))


def _unit_deviations(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the deviations from the mean at length 1, scaled so that squares neither overflow nor vanish."""
    scaled = column / np.abs(column).max()
    deviations = scaled - scaled.mean()
    deviations = deviations / np.abs(deviations).max()
    return np.asarray(deviations / np.linalg.norm(deviations))


def _midranks(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks from 1 to n; tied values share the mean of their ranks."""
    ordered = np.sort(column)
    first, last = (np.searchsorted(ordered, column, side=side) for side in ("left", "right"))
    return np.asarray((first + last + 1) / 2)


def _correlation(r: float, at: float, standard_error: float, n: int, confidence: float, method: str) -> Correlation:
    """Build the result from r, the coefficient `at` which the interval is taken, and the error of its z."""
    half = normal_quantile(check_fraction("confidence", confidence)) * standard_error
    z = math.atanh(at) if abs(at) < 1 else math.copysign(math.inf, at)
    low, high = min(r, math.tanh(z - half)), max(r, math.tanh(z + half))
    # Pr[|T| >= |t|] with t = r sqrt((n - 2) / (1 - r^2)) is this beta tail; 1 - p would lose small p.
    p_value = float(special.betainc((n - 2) / 2, 0.5, (1 - r) * (1 + r)))
    return Correlation(Estimate(r, low, high, confidence, method, n), p_value)
