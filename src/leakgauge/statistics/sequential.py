"""A test of (epsilon, delta)-differential privacy that may be stopped after any model: one canary, many trainings.

Source: the supermartingale of bets against the claim (Ville 1939; Shafer 2021), as in González et al. 2025,
"Sequentially auditing differential privacy", here with an event in place of a kernel.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.statistics.epsilon import _check_delta

Floats = NDArray[np.float64]

N_STAKES = 12
"""Stakes between which the wealth is divided: the best one depends on how far the claim is missed."""


def wealth_against_claim(
    included: ArrayLike, high: ArrayLike, low: ArrayLike | None = None, *, epsilon: float, delta: float = 0.0
) -> Floats:
    """Return the wealth of a bettor against a claim after each model; the claim is refuted once it is 1 / alpha.

    For each model a fair coin says whether the canary is in its training set; the event "the score is high" is fixed
    from earlier models or beforehand. `X = 2 [in, high] - 2 e^epsilon [out, high] - delta` has mean at most 0 under
    the claim, so the wealth `prod (1 + stake X)` is a supermartingale for stakes in [0, 1 / (2 e^epsilon + delta)), and
    so are means of such. By Ville's inequality it ever reaches 1 / alpha with probability at most alpha, whatever
    the rule is by which one stops.

    Args:
        included: The coins, bool [n], in the order of training.
        high: Whether the score is high, bool [n]. The bet wins most where `e^epsilon Pr[high | out]` is far below 1.
        low: Whether the score is low, bool [n], for half of the wealth on the mirror image; none unless given.
        epsilon: At least 0.
        delta: In [0, 1).

    Returns:
        The wealth [n], above 0; 1 at the start.

    Raises:
        ValueError: If the lengths differ or a number is out of range.
        TypeError: If an array is not boolean.

    >>> wealth = wealth_against_claim([True, False] * 50, [True, False] * 50, epsilon=1.0)
    >>> int(np.argmax(wealth >= 20)) + 1
    29
    """
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"epsilon must be at least 0 and finite, got {epsilon}.")
    coins = _flags("included", included)
    bets = [(coins, _flags("high", high))] + ([] if low is None else [(~coins, _flags("low", low))])
    if any(event.shape != coins.shape for _, event in bets):
        raise ValueError("included, high and low must have one length: one value for each model.")
    # What one model may lose at most is 2 e^epsilon + delta. Written by its inverse, which no epsilon overflows.
    inverse = math.exp(-epsilon) / (2 + _check_delta(delta) * math.exp(-epsilon))
    stakes = np.arange(1, N_STAKES + 1)[:, None] / (N_STAKES + 1)
    gains = [
        2 * inverse * (side & event) - (1 - delta * inverse) * (~side & event) - delta * inverse for side, event in bets
    ]
    wealth = [np.exp(np.cumsum(np.log1p(stakes * gain), axis=1)) for gain in gains]
    return np.asarray(np.mean(wealth, axis=(0, 1)))


def _flags(name: str, values: ArrayLike) -> NDArray[np.bool_]:
    array = np.asarray(values)
    if array.dtype != np.bool_ or array.ndim != 1:
        raise TypeError(f"{name} must be boolean and of one dimension, got {array.dtype} of shape {array.shape}.")
    return array
