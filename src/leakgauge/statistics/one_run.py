"""A test of a claim of differential privacy with the canaries of one training run: when it refutes, and its power.

How many guesses to make is not known beforehand, so a grid of numbers is tried, and each pays its part of the error.
The numbers of right guesses from which on the claim is refuted depend on the claim alone: they are computed once, and
an audit is then a comparison.

IMPORTANT: scores that are *higher* mean included.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from leakgauge.statistics._checks import check_fraction, check_size
from leakgauge.statistics.epsilon import (
    Floats,
    GuessGrid,
    _check_delta,
    _epsilon_one_run,
    p_values_one_run,
    right_guesses,
)
from leakgauge.statistics.trade_off import TradeOff, _mu, gaussian_epsilon, is_impossible, p_value_trade_off


@dataclasses.dataclass(frozen=True)
class ApproximateDp:
    """(epsilon, delta)-differential privacy and nothing else: no noise, no curve.

    Attributes:
        epsilon: At least 0.
        delta: In [0, 1).

    Raises:
        ValueError: If a number is out of range.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < np.inf:
            raise ValueError(f"epsilon must be at least 0 and finite, got {self.epsilon}.")
        _check_delta(self.delta)


@dataclasses.dataclass(frozen=True)
class OneRunResult:
    """What the guesses about the canaries of one run say about a claim.

    Attributes:
        p_value: Of the claim, corrected for the numbers of guesses that were tried; in (0, 1].
        n_correct: Right guesses, where the claim fits worst.
        n_guesses: Guesses there.
        is_refuted: Whether the p-value is at most one minus the confidence.
    """

    p_value: float
    n_correct: int
    n_guesses: int
    is_refuted: bool


@dataclasses.dataclass(frozen=True)
class OneRunTest:
    """A test of a claim with the canaries of one training run; a true claim is refuted with probability at most alpha.

    Attributes:
        claim: (epsilon, delta), tested by `p_value_one_run`, or a trade-off curve, tested by `p_value_trade_off`.
        n_canaries: Number of coins tossed, at least 1.
        guesses: The numbers of guesses that are tried, `GuessGrid.halving(n_canaries)` unless given.
        confidence: One minus alpha, in (0, 1).

    Raises:
        ValueError: If a number is out of range, or more guesses are to be made than there are canaries.

    >>> test = OneRunTest(ApproximateDp(1.0, 1e-5), 1000)
    >>> coins = np.random.default_rng(0).random(1000) < 0.5
    >>> test(1.0 * coins, coins).is_refuted, round(test.largest_epsilon(1e-5), 1)
    (True, 5.3)
    """

    claim: ApproximateDp | TradeOff
    n_canaries: int
    guesses: GuessGrid | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        check_size("n_canaries", self.n_canaries)
        check_fraction("confidence", self.confidence)
        if max(self.counts) > self.n_canaries:
            raise ValueError(f"counts must be at most the {self.n_canaries} canaries, got {max(self.counts)}.")

    @property
    def grid(self) -> GuessGrid:
        """The pairs of numbers of guesses."""
        return self.guesses or GuessGrid.halving(self.n_canaries)

    @property
    def counts(self) -> list[int]:
        """The numbers of guesses, k."""
        return [sum(pair) for pair in self.grid.counts]

    @property
    def alpha(self) -> float:
        """The error of one number of guesses (Bonferroni)."""
        return (1 - self.confidence) / len(self.grid.counts)

    @cached_property
    def critical(self) -> list[int]:
        """For each number of guesses the least number of right ones that refutes the claim; k + 1 if none does."""
        if isinstance(self.claim, ApproximateDp):
            return [int(np.flatnonzero(np.append(bound, 0.0) <= self.alpha)[0]) for bound in self._bounds.values()]
        return [self._critical(k, self.claim) for k in self.counts]

    def __call__(self, scores: ArrayLike, included: ArrayLike) -> OneRunResult:
        """Test the claim.

        Args:
            scores: One per canary [n_canaries]; higher means included. Computed without a look at the coins.
            included: The coins, bool [n_canaries], in the same order.

        Raises:
            ValueError: As `epsilon_one_run`; or the number of scores is another one.
            TypeError: If `included` is not boolean.
        """
        counted, n_canaries = right_guesses(scores, included, self.grid)
        if n_canaries != self.n_canaries:
            raise ValueError(f"scores must be of {self.n_canaries} canaries, got {n_canaries}.")
        p_values = [self._p_value(*pair) for pair in counted]
        best = int(np.argmin(p_values))
        return OneRunResult(min(1.0, len(counted) * p_values[best]), *counted[best], p_values[best] <= self.alpha)

    @property
    def can_refute(self) -> bool:
        """Whether right guesses alone would refute the claim."""
        return any(least <= k for least, k in zip(self.critical, self.counts, strict=True))

    def largest_epsilon(self, delta: float) -> float:
        """Return the largest epsilon that this test could show: its bound if all guesses are right.

        By (epsilon, delta) if that is the claim, else by the Gaussian curves.

        Args:
            delta: Of the epsilon, in [0, 1), above 0 for a curve.
        """
        if isinstance(self.claim, ApproximateDp):
            return max(_epsilon_one_run(k, k, self.n_canaries, _check_delta(delta), self.alpha) for k in self.counts)
        return gaussian_epsilon(max(_mu(k, k, self.n_canaries, self.alpha) for k in self.counts), delta)

    def power(self, mu: float, *, repetitions: int = 200, seed: int = 0) -> float:
        """Return how often the claim is refuted if the truth is Gaussian noise and the canaries are ideal.

        Ideal canaries have scores N(mu, 1) if included and N(0, 1) if not, independent of each other: no canaries of
        a loop with that noise are easier to guess.

        Args:
            mu: The distance of included canaries, in units of the noise.
            repetitions: Simulated audits, at least 1.
            seed: Of the simulation.
        """
        rng = np.random.default_rng(seed)
        critical = np.array(self.critical)

        def refuted() -> bool:
            coins = rng.random(self.n_canaries) < 0.5
            falling = coins[np.argsort(-(rng.standard_normal(self.n_canaries) + mu * coins))]
            high, low = np.append(0, np.cumsum(falling)), np.append(0, np.cumsum(~falling[::-1]))
            pairs = np.array(self.grid.counts)
            return bool((high[pairs[:, 0]] + low[pairs[:, 1]] >= critical).any())

        return sum(refuted() for _ in range(repetitions)) / check_size("repetitions", repetitions)

    @cached_property
    def _bounds(self) -> dict[int, Floats]:
        """By the number of guesses the p-values of all numbers of right ones."""
        assert isinstance(self.claim, ApproximateDp)
        bounds = p_values_one_run(self.counts, self.n_canaries, epsilon=self.claim.epsilon, delta=self.claim.delta)
        return dict(zip(self.counts, bounds, strict=True))

    def _p_value(self, n_correct: int, n_guesses: int) -> float:
        if isinstance(self.claim, ApproximateDp):
            return float(self._bounds[n_guesses][n_correct])
        return p_value_trade_off(n_correct, n_guesses, self.n_canaries, curve=self.claim)

    def _critical(self, n_guesses: int, curve: TradeOff) -> int:
        low, high = 0, n_guesses + 1  # not refuted, refuted
        while high - low > 1:
            middle = (low + high) // 2
            if is_impossible(self.alpha, middle, n_guesses, self.n_canaries, curve):
                high = middle
            else:
                low = middle
        return high
