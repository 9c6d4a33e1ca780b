"""A claim of differential privacy: what is stated of a training algorithm, and what of it a test can refute."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from leakgauge.checking import check_fields, number, one_of, optional, whole
from leakgauge.defences.accounting import Adjacency, losses
from leakgauge.errors import ConfigError
from leakgauge.statistics import (
    ApproximateDp,
    GaussianTradeOff,
    ProfileTradeOff,
    TradeOff,
    gaussian_epsilon,
    gaussian_mu,
)

LARGEST_PROFILE_EPSILON = 12.0
PROFILE_STEP = 0.01
"""The epsilons at which the curve of sampled noise is computed: from 0 to the largest in such steps."""

LARGEST_EPSILON, SMALLEST_NOISE, LARGEST_NOISE, MOST_STEPS = 100.0, 0.1, 1e4, 10**7
"""Of a claim that can be tested: outside of these a guarantee says nothing, or cannot be accounted for."""

LARGEST_MEAN_LOSS = 1e4
"""Steps times sampling by the variance of the noise, twice; beyond it there is hardly a guarantee to account for."""

ACCOUNTANTS_DIFFER = 0.02
"""By how much, as a share, an epsilon may be below ours: accountants round to different sides."""

SHORT = {"epsilon": "3", "delta": "1e-5", "noise": "1.1", "sampling": "0.01", "steps": "1000"}
"""The keys of a written claim, with examples."""


@dataclass(frozen=True)
class Claim:
    """What is claimed of a training algorithm: (epsilon, delta)-differential privacy, and perhaps how it is reached.

    With ``noise`` the claim is a whole trade-off curve, that of DP-SGD with such noise: refuting it takes fewer right
    guesses, and refutes this noise, sampling and number of steps, not (epsilon, delta) by other means.

    Args:
        epsilon: above 0.
        delta: in [0, 1), above 0 with noise.
        noise: standard deviation of the noise on a sum of gradients, in units of the longest gradient of a record.
        sampling: with which probability a record takes part in a step (Poisson sampling), in (0, 1]; 1 is full batch.
        steps: of training.
        adjacency: one record added or removed, or one replaced by another.

    Raises:
        ConfigError: a number is out of range; or the noise, sampling and steps give a larger epsilon than is claimed.

    >>> Claim.parse("epsilon=3,delta=1e-5").tested
    ApproximateDp(epsilon=3.0, delta=1e-05)
    """

    epsilon: float
    delta: float = 0.0
    noise: float | None = None
    sampling: float = 1.0
    steps: int = 1
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        check_fields(
            self,
            epsilon=number(above=0, most=LARGEST_EPSILON, hint="3 is an example"),
            delta=number(least=0, below=1, hint="it is a probability, and small"),
            noise=optional(number(least=SMALLEST_NOISE, most=LARGEST_NOISE, hint="it is the noise multiplier")),
            sampling=number(above=0, most=1, hint="it is a probability"),
            steps=_steps,
            adjacency=one_of(Adjacency),
        )
        if self.noise is None:
            if (self.sampling, self.steps) != (1.0, 1):
                raise ConfigError("sampling and steps are of a claim with noise; give noise as well, or neither")
            return
        if self.delta == 0:
            raise ConfigError("delta must be above 0 with noise: no Gaussian noise has an epsilon without a delta")
        if self.sampling < 1 and 2 * self.steps * self.sampling / self.noise**2 > LARGEST_MEAN_LOSS:
            raise ConfigError(
                "the claimed noise is too small for so many steps to be accounted for; correct one of them"
            )
        accounted = self.accounted
        assert accounted is not None  # there is noise
        if accounted * (1 - ACCOUNTANTS_DIFFER) > self.epsilon:
            raise ConfigError(
                f"the claim contradicts itself: noise {self.noise:g}, sampling {self.sampling:g} and {self.steps} "
                f"steps give epsilon {accounted:.3g} at delta {self.delta:g} ({self.adjacency}), and epsilon "
                f"{self.epsilon:g} is claimed; correct one of them"
            )

    @classmethod
    def parse(cls, text: str) -> Claim:
        """Read a claim as it is written on a command line.

        Args:
            text: ``epsilon=3,delta=1e-5``, with ``noise``, ``sampling``, ``steps`` and ``adjacency`` if claimed.

        Raises:
            ConfigError: it cannot be read, or the claim is none.
        """
        known = {one.name for one in fields(cls)}
        example = ",".join(f"{key}={value}" for key, value in SHORT.items())
        given: dict[str, object] = {}
        for part in text.split(","):
            key, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or key not in known or key in given:
                raise ConfigError(
                    f"a claim is written as {example}, each key at most once, with adjacency=replace-one where one "
                    "record is replaced"
                )
            given[key] = value if key == "adjacency" else _number(key, value)
        if "epsilon" not in given:
            raise ConfigError("a claim needs an epsilon; write epsilon=3,delta=1e-5")
        return cls(**given)  # type: ignore[arg-type]

    def __str__(self) -> str:
        """The claim as it is written on a command line."""
        noise = "" if self.noise is None else f",noise={self.noise:g},sampling={self.sampling:g},steps={self.steps}"
        adjacency = "" if self.adjacency is Adjacency.ADD_REMOVE else f",adjacency={self.adjacency}"
        return f"epsilon={self.epsilon:g},delta={self.delta:g}{noise}{adjacency}"

    @cached_property
    def accounted(self) -> float | None:
        """The epsilon at delta of the claimed noise, sampling and steps; ``None`` if no noise is claimed.

        Raises:
            MissingExtra: records are sampled, and dp-accounting is not installed.
        """
        if self.noise is None:
            return None
        if self.sampling == 1:
            return gaussian_epsilon(self._full_batch_mu, self.delta)
        return float(losses(self.sampling, self.steps, self.noise, self.adjacency).get_epsilon(self.delta))

    @cached_property
    def tested(self) -> ApproximateDp | TradeOff:
        """What a test can refute: the curve if noise is claimed, else (epsilon, delta)."""
        if self.noise is None:
            return ApproximateDp(self.epsilon, self.delta)
        if self.sampling == 1:
            return GaussianTradeOff(self._full_batch_mu)
        epsilons = np.arange(0, LARGEST_PROFILE_EPSILON + PROFILE_STEP / 2, PROFILE_STEP)
        deltas = losses(self.sampling, self.steps, self.noise, self.adjacency).get_delta(epsilons)
        return ProfileTradeOff(tuple(epsilons.tolist()), tuple(np.clip(deltas, 0, 1).tolist()))

    @property
    def statement(self) -> str:
        """What is refuted where the test refutes, in words."""
        if self.noise is None:
            return f"({self.epsilon:g}, {self.delta:g})-differential privacy"
        if self.sampling == 1:
            return f"Gaussian noise of mu = {self._full_batch_mu:.4g} (noise {self.noise:g}, {self.steps} full batches)"
        return f"DP-SGD with noise {self.noise:g}, sampling {self.sampling:g} and {self.steps} steps"

    @cached_property
    def mu(self) -> float | None:
        """The mu of Gaussian noise with the claimed epsilon and delta, or with the accounted one if that is smaller.

        ``None`` without delta, where it would be 0.
        """
        if self.delta == 0:
            return None
        if self.noise is not None and self.sampling == 1:
            return self._full_batch_mu
        epsilon = self.epsilon if self.accounted is None else min(self.epsilon, self.accounted)
        return gaussian_mu(epsilon, self.delta)

    @property
    def _full_batch_mu(self) -> float:
        """Two sums of full batches differ by the longest gradient, and by twice of it if a record is replaced."""
        assert self.noise is not None
        distance = 2 if self.adjacency is Adjacency.REPLACE_ONE else 1
        return distance * math.sqrt(self.steps) / self.noise


def _steps(name: str, value: object) -> int:
    steps: int = whole(1, hint="it is the number of noisy sums")(name, value)
    if steps > MOST_STEPS:
        raise ConfigError(f"{name} must be at most {MOST_STEPS:,}, got {steps}")
    return steps


def _number(key: str, text: str) -> float | int:
    try:
        return int(text) if key == "steps" else float(text)
    except ValueError:
        kind = "a whole number" if key == "steps" else "a number"
        raise ConfigError(f"{key} of the claim must be {kind}; write {key}={SHORT[key]}") from None
