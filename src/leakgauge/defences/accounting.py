"""How much noise a promise of differential privacy takes, by numerical accounting (dp-accounting).

Sources: Zhu, Dong and Wang, "Optimal Accounting of Differential Privacy via Characteristic Function", AISTATS 2022
(composition); Doroshenko et al., "Connect the Dots", PETS 2022 (the accounting).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Any

from leakgauge.errors import MissingExtra

SMALLEST_NOISE_MULTIPLIER = 0.3
"""The smallest noise multiplier: less promises nothing worth having and takes long to account for."""

NOISE_RELATIVE_ERROR = 1e-3
"""Relative error of the noise that is found; it is never too small."""

LOSS_BIN_WIDTH = 1e-4
"""Width of the bins of privacy losses, which are rounded to the safe side, where losses are small."""

WIDE_BIN_LOSS = 20.0
"""Mean loss from which on bins grow with it."""


class Adjacency(StrEnum):
    """Which two training sets must be hard to tell apart: one has a record more, or another record in its place."""

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"


@lru_cache(maxsize=256)
def losses(probability: float, n_steps: int, noise: float, adjacency: Adjacency) -> Any:
    """The accountant of so many steps: ``get_delta(epsilon)`` and ``get_epsilon(delta)``, no less than they are.

    By replacing one record z by z' a step is hardest to tell when their gradients are of full length and opposite:
    ``q N(1) + (1 - q) N(0)`` against ``q N(-1) + (1 - q) N(0)``, in units of the noise. For a test that says z with
    probability a if z takes part says it with at least ``Phi(Phi^-1(a) - 1)`` if neither does, and with at least
    ``Phi(Phi^-1(a) - 2)`` if z' does, as the means are at most so far apart; there a half-line reaches both.

    Args:
        probability: with which a record takes part in a step.
        n_steps: of training.
        noise: the noise multiplier.
        adjacency: which training sets are to be told apart.

    Raises:
        MissingExtra: dp-accounting is not installed.
    """
    try:
        import dp_accounting
        from dp_accounting.pld import PLDAccountant
    except ImportError:
        raise MissingExtra(
            "privacy is accounted for by dp-accounting; install it with: pip install 'leakgauge[dp]'"
        ) from None
    relation = dp_accounting.NeighboringRelation
    step = dp_accounting.GaussianDpEvent(noise)
    if probability < 1:
        step = dp_accounting.PoissonSampledDpEvent(probability, step)
    # The mean loss is at most that of two Gaussians wherever a record takes part.
    largest_mean = n_steps * probability * 2 / noise**2
    accountant = PLDAccountant(
        relation.REPLACE_ONE if adjacency is Adjacency.REPLACE_ONE else relation.ADD_OR_REMOVE_ONE,
        LOSS_BIN_WIDTH * max(1.0, largest_mean / WIDE_BIN_LOSS),
    )
    return accountant.compose(step, n_steps)


def least_noise(excess: Callable[[float], float], start: float = 1.0) -> float:
    """The smallest noise multiplier that keeps a promise, at most ``NOISE_RELATIVE_ERROR`` larger than need be.

    Args:
        excess: of a noise multiplier, above 0 where the promise is not kept; falling.
        start: where to begin, at least :data:`SMALLEST_NOISE_MULTIPLIER`.
    """
    from scipy.optimize import brentq

    high = start
    while excess(high) > 0:
        high *= 2
    low = high / 2
    while excess(low) <= 0:
        if low < SMALLEST_NOISE_MULTIPLIER:
            return SMALLEST_NOISE_MULTIPLIER
        high, low = low, low / 2
    error = NOISE_RELATIVE_ERROR / 2
    return math.exp(brentq(lambda log: excess(math.exp(log)), math.log(low), math.log(high), xtol=error) + error)
