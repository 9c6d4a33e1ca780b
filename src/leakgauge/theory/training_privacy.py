"""Arithmetic of differential training privacy: binning of predictions and log ratios of two of them.

Source: Long, Bindschaedler and Gunter, "Towards Measuring Membership Privacy", 2017, sections 4 and 5.2.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

_SLACK = 1e-9
_FLOAT32_ROUNDING = 1e-6


def bin_centres(probabilities: ArrayLike, width: float = 0.01) -> NDArray[np.float64]:
    """Replace each probability by the centre of its bin, as the released model is assumed to do.

    A vector of binned probabilities need not sum to 1 and is not renormalised.

    Args:
        probabilities: Any shape, in [0, 1] up to 1e-9.
        width: Width of a bin, `1 / width` a whole number.

    Returns:
        Array of the same shape with values `(k + 0.5) width`, k = 0 to `1 / width - 1`. A value on an edge goes
        to the upper bin, 1 to the last. The values are read as float64: a float32 value on an edge may lie
        below it by its own rounding and then goes to the lower bin.

    Raises:
        ValueError: On NaN, on a value outside [0, 1] by more than 1e-9, or on a width that does not divide 1.

    Source: Long et al. 2017, section 5.2.

    >>> bin_centres([0.0, 0.29, 0.5, 1.0]).round(9).tolist()
    [0.005, 0.295, 0.505, 0.995]
    """
    n_bins = _check_width(width)
    p = np.asarray(probabilities, dtype=np.float64)
    # Written so that NaN fails.
    if not np.all((p >= -_SLACK) & (p <= 1 + _SLACK)):
        raise ValueError(
            f"probabilities must be in [0, 1] without NaN, got {np.min(p)} to {np.max(p)}; "
            "pass probabilities, not logits or log-probabilities."
        )
    # The offset keeps edges in the upper bin: 0.29 / 0.01 and 0.57 / 0.01 fall just below 29 and 57.
    index = np.floor(p / width + _SLACK)
    return np.asarray((np.clip(index, 0, n_bins - 1) + 0.5) * width)


def largest_binned_log_ratio(width: float = 0.01) -> float:
    """Return the largest log ratio that two binned probabilities can have.

    Measurements near this value are to be read as "at least".

    Args:
        width: Width of a bin, `1 / width` a whole number.

    Returns:
        `ln((1 - width / 2) / (width / 2))`; ln 199 for bins of 0.01.

    Raises:
        ValueError: If the width does not divide 1.

    >>> round(largest_binned_log_ratio(), 10)
    5.2933048247
    """
    return math.log(2 * _check_width(width) - 1)


def log_ratio(log_p: ArrayLike, log_q: ArrayLike) -> NDArray[np.float64]:
    """Compare two models' probabilities for the same queries, element by element.

    Args:
        log_p: Natural logs of probabilities, at most 0 (up to 1e-6, the rounding of float32); -inf is
            probability 0.
        log_q: The other model's, of a shape that broadcasts with `log_p`.

    Returns:
        `|log_p - log_q|`, at least 0; 0 where both probabilities are 0, infinite where exactly one is.

    Raises:
        ValueError: On NaN or a positive logarithm.

    Source: Long et al. 2017, Definition 4.1. (The display below Definition 4.2 omits the logarithm; the
    paper's numbers have it.)

    >>> log_ratio([-1.0, -np.inf, -np.inf], [-3.0, -np.inf, -1.0]).tolist()
    [2.0, 0.0, inf]
    """
    p, q = _check_logs("log_p", log_p), _check_logs("log_q", log_q)
    both_zero = np.isneginf(p) & np.isneginf(q)
    return np.asarray(np.abs(np.subtract(p, q, where=~both_zero, out=np.zeros(both_zero.shape))))


def advantage_from_log_ratio(largest_log_ratio: ArrayLike) -> NDArray[np.float64]:
    """Bound what one sampled answer tells about membership, given the largest log ratio over labels.

    The attacker knows both models, with the record and without it, asks the released one once and sees one
    label drawn from the predicted distribution. All probabilities of its two hypotheses have a ratio in
    [e^-d, e^d], so they are indistinguishable in the sense of differential privacy with epsilon = d and
    delta = 0, and the advantage from that answer is at most `tanh(d / 2)`; two labels with probabilities
    `1 / (1 + e^d)` and `e^d / (1 + e^d)`, swapped between the models, attain it.

    It is not a bound for an attacker who sees the probabilities themselves, asks several queries, or asks
    about other points than those d was taken over; and d must come from unbinned probabilities.

    Args:
        largest_log_ratio: d = max over labels of `log_ratio`, any shape, at least 0, may be infinite.

    Returns:
        Array of the same shape, in [0, 1].

    Raises:
        ValueError: If a value is negative or NaN.

    Source: Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy", ICML 2015, section
    2, applied to the pair of predicted distributions of Long et al. 2017, Definition 4.1.

    >>> advantage_from_log_ratio([0.0, 1.0, np.inf]).round(10).tolist()
    [0.0, 0.4621171573, 1.0]
    """
    d = np.asarray(largest_log_ratio, dtype=np.float64)
    if not np.all(d >= 0):
        raise ValueError(
            f"largest_log_ratio must be at least 0 without NaN, got {np.min(d)}; pass absolute log ratios."
        )
    return np.asarray(np.tanh(d / 2))


def _check_width(width: float) -> int:
    """Return the number of bins."""
    n_bins = round(1 / width) if 0 < width <= 1 else 0
    if n_bins < 1 or abs(n_bins * width - 1) > _SLACK:
        raise ValueError(f"width must be in (0, 1] and divide 1, got {width}; try 0.01.")
    return n_bins


def _check_logs(name: str, logs: ArrayLike) -> NDArray[np.float64]:
    """Return logarithms of probabilities as float64."""
    array = np.asarray(logs, dtype=np.float64)
    if not np.all(array <= _FLOAT32_ROUNDING):
        raise ValueError(
            f"{name} must be at most 0 without NaN, got {np.max(array)}; pass logarithms of probabilities."
        )
    return array
