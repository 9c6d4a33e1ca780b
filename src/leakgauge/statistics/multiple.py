"""Corrections for looking more than once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.statistics._checks import check_fraction, check_size, check_values


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust p-values so that the expected share of false findings among all findings is kept.

    Weaker than keeping the chance of any false finding: right for a list of exposed records to look at, not for a
    verdict. Valid for independent or positively dependent tests.

    Args:
        p_values: One per test [n], in [0, 1].

    Returns:
        Adjusted p-values [n] in the order given.

    Raises:
        ValueError: If there is none, or one is NaN or outside [0, 1].

    Source: Benjamini and Hochberg, "Controlling the false discovery rate", JRSS B 57 (1995).

    >>> benjamini_hochberg([0.04, 0.01, 0.03]).round(6).tolist()
    [0.04, 0.03, 0.04]
    """
    p = _check_p_values(p_values)
    falling = np.argsort(p, kind="stable")[::-1]
    adjusted = np.empty_like(p)
    adjusted[falling] = np.minimum.accumulate(p.size / np.arange(p.size, 0, -1) * p[falling])
    return adjusted


def benjamini_yekutieli(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust p-values so that the expected share of false findings is kept, whatever the dependence.

    `benjamini_hochberg` times the harmonic number `1 + 1/2 + ... + 1/n`.

    Args:
        p_values: One per test [n], in [0, 1].

    Returns:
        Adjusted p-values [n] in the order given.

    Raises:
        ValueError: If there is none, or one is NaN or outside [0, 1].

    Source: Benjamini and Yekutieli 2001, Theorem 1.3.

    >>> benjamini_yekutieli([0.04, 0.01, 0.03]).round(6).tolist()
    [0.073333, 0.055, 0.073333]
    """
    # BH clips at 1, which the factor cannot bring back below 1.
    adjusted = benjamini_hochberg(p_values)
    return np.minimum(1.0, harmonic(adjusted.size) * adjusted)


def harmonic(n: int) -> float:
    """Return 1 + 1/2 + ... + 1/n."""
    return math.fsum(1 / i for i in range(1, n + 1))


def bonferroni_confidence(confidence: float, n_intervals: int) -> float:
    """Return the confidence each of several intervals needs so that all hold together with `confidence`.

    Args:
        confidence: Wanted for all together, in (0, 1).
        n_intervals: Number of intervals, at least 1.

    Returns:
        `1 - (1 - confidence) / n_intervals`.

    Raises:
        ValueError: If the confidence or the number is out of range.
        TypeError: If the number is not an integer.

    >>> round(bonferroni_confidence(0.95, 5), 9)
    0.99
    """
    return 1 - (1 - check_fraction("confidence", confidence)) / check_size("n_intervals", n_intervals)


def _check_p_values(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return the p-values as an array within [0, 1]."""
    p = check_values("p_values", p_values)
    if p.min() < 0 or p.max() > 1:
        raise ValueError(f"p_values must be in [0, 1], got {p.min()} to {p.max()}; pass probabilities.")
    return p
