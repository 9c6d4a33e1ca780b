"""Tests of a claimed trade-off curve by the guesses about the canaries of one training run (f-differential privacy).

A trade-off curve says for each false-positive rate x which true-positive rate `f_bar(x)` a test of "this record was in
the training set" can have at most. It says more than (epsilon, delta), which is one point of it, and refuting it takes
fewer right guesses. **A refuted Gaussian curve refutes "Gaussian noise of this strength", not (epsilon, delta)**; where
nothing but (epsilon, delta) is claimed, `p_value_one_run` is the stronger test.

The game and the adjacency are those of `epsilon_one_run`: independent fair coins, one for each canary.

Sources: Mahloujifar, Melis and Chaudhuri, "Auditing f-differential privacy in one run", ICML 2025 (the recursion);
Dong, Roth and Su, "Gaussian differential privacy", 2022 (the curves).
"""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_right
from functools import cached_property
from typing import Protocol

from numpy.typing import ArrayLike
from scipy import optimize, special

from leakgauge.statistics._checks import check_fraction
from leakgauge.statistics.epsilon import GuessGrid, _check_guesses, _last_true, _lower_bound, right_guesses
from leakgauge.statistics.estimate import Estimate

_LARGEST_MU = 40.0
_STEEPEST = 700.0
_SMALLEST_P_VALUE = 1e-300
_HALVINGS = 60


class TradeOff(Protocol):
    """A symmetric trade-off curve: `f_bar` is increasing and concave."""

    def false_positive_rate(self, true_positive_rate: float) -> float:
        """Return the least x in [0, 1] with `f_bar(x) >= true_positive_rate`."""


@dataclasses.dataclass(frozen=True)
class GaussianTradeOff:
    """What tests of N(0, 1) against N(mu, 1) reach: full-batch DP-SGD with `mu = sqrt(steps) / noise`.

    Attributes:
        mu: Above 0, for add/remove adjacency; twice as large for replace-one.

    Raises:
        ValueError: If mu is not above 0.
    """

    mu: float

    def __post_init__(self) -> None:
        if not 0 < self.mu < math.inf:
            raise ValueError(f"mu must be above 0 and finite, got {self.mu}; it is the distance of the two means.")

    def false_positive_rate(self, true_positive_rate: float) -> float:
        """Return the rate of a half-line."""
        return float(special.ndtr(special.ndtri(min(1.0, true_positive_rate)) - self.mu))


@dataclasses.dataclass(frozen=True)
class ProfileTradeOff:
    """The curve of a mechanism of which several (epsilon, delta) are known, such as by an accountant.

    Attributes:
        epsilons: At least 0 each.
        deltas: Of each epsilon, in [0, 1]; no less than the true ones, for which the test is then valid.

    Raises:
        ValueError: If the lengths differ or a number is out of range.
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.epsilons or len(self.epsilons) != len(self.deltas):
            raise ValueError("epsilons and deltas must be as many, and one at least.")
        if not all(0 <= epsilon < math.inf for epsilon in self.epsilons) or not all(0 <= d <= 1 for d in self.deltas):
            raise ValueError("epsilons must be at least 0 and finite, and deltas in [0, 1].")

    def false_positive_rate(self, true_positive_rate: float) -> float:
        """Return the largest of the lines `(tpr - delta) / e^epsilon`, and of their mirror images."""
        starts, lines = self._envelope
        slope, offset = lines[bisect_right(starts, true_positive_rate) - 1]
        return min(1.0, max(0.0, slope * true_positive_rate + offset))

    @cached_property
    def _envelope(self) -> tuple[list[float], list[tuple[float, float]]]:
        """The lines that are largest somewhere, by slope, and the rates from which on each is the largest."""
        pairs = list(zip(self.epsilons, self.deltas, strict=True))
        lines = [(math.exp(-epsilon), -delta * math.exp(-epsilon)) for epsilon, delta in pairs]
        # delta(-epsilon) = 1 - e^-epsilon (1 - delta(epsilon)), as the curve is symmetric.
        # Of an epsilon of 700 or more it is below 0 at any number below 1.
        steep = [(math.exp(min(epsilon, _STEEPEST)), delta) for epsilon, delta in pairs]
        lines += [(slope, 1 - delta - slope) for slope, delta in steep]
        kept: list[tuple[float, float]] = []
        starts: list[float] = []
        for slope, offset in sorted(lines):
            while kept:
                steeper = slope - kept[-1][0]
                start = (kept[-1][1] - offset) / steeper if steeper > 0 else -math.inf
                if steeper == 0 and kept[-1][1] >= offset:
                    break
                if start > starts[-1]:
                    kept.append((slope, offset))
                    starts.append(start)
                    break
                kept.pop()
                starts.pop()
            else:
                kept.append((slope, offset))
                starts.append(-math.inf)
        return starts, kept


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta of N(0, 1) against N(mu, 1) at an epsilon.

    Args:
        mu: Above 0.
        epsilon: Any.

    Source: Dong, Roth and Su 2022, Corollary 2.13.
    """
    upper = float(special.ndtr(-epsilon / mu + mu / 2))
    return max(0.0, upper - math.exp(epsilon + float(special.log_ndtr(-epsilon / mu - mu / 2))))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the mu of the Gaussian curve that is (epsilon, delta)-private and not better.

    Args:
        epsilon: At least 0.
        delta: In (0, 1).

    Raises:
        ValueError: If a number is out of range.

    >>> round(gaussian_mu(1.0, 1e-5), 4)
    0.2681
    """
    _check_promise(epsilon, delta)
    high = 1.0
    while gaussian_delta(high, epsilon) < delta:
        high *= 2
    return float(optimize.brentq(lambda mu: gaussian_delta(mu, epsilon) - delta, 1e-12, high, xtol=1e-12))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the least epsilon with which N(0, 1) against N(mu, 1) is (epsilon, delta)-private.

    Args:
        mu: At least 0.
        delta: In (0, 1); without delta no Gaussian noise has an epsilon.

    Raises:
        ValueError: If a number is out of range.

    >>> round(gaussian_epsilon(0.69820, 1e-6), 4)
    3.2612
    """
    _check_promise(mu, delta, "mu")
    if mu == 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(mu, high) > delta:
        high *= 2
    return float(optimize.brentq(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, high, xtol=1e-12))


def p_value_trade_off(n_correct: int, n_guesses: int, n_canaries: int, *, curve: TradeOff) -> float:
    """Bound the probability of at least so many right guesses if the algorithm has this trade-off curve.

    Let p_l be the probability of l right guesses. To toss one coin again turns "canary i right, and more than j right"
    into "i wrong, and at least j right"; averaged over the canaries, since f_bar is concave:

        sum_{l >= j} ((k - l) / m) p_l >= inv( sum_{l > j} (l / m) p_l )    for each j.

    From the top downwards this is more probability than there is, if `Pr[right >= n_correct]` is too large.

    Args:
        n_correct: Number of right guesses, 0 to `n_guesses`.
        n_guesses: Number of canaries guessed on, k, 1 to `n_canaries`; fixed beforehand.
        n_canaries: Number of coins tossed, m.
        curve: The trade-off curve that is claimed, for the adjacency that one coin changes.

    Returns:
        A number in (0, 1], no less than that probability.

    Raises:
        ValueError: If a count is out of range.
        TypeError: If a count is not an integer.

    Source: Mahloujifar et al. 2025.

    >>> round(p_value_trade_off(180, 200, 1000, curve=GaussianTradeOff(0.69820)), 4)
    0.05
    """
    n_correct, n_guesses = _check_guesses(n_correct, n_guesses, n_canaries)
    if n_correct == 0 or not is_impossible(1.0, n_correct, n_guesses, n_canaries, curve):
        return 1.0
    low, high = math.log(_SMALLEST_P_VALUE), 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if is_impossible(math.exp(middle), n_correct, n_guesses, n_canaries, curve):
            high = middle
        else:
            low = middle
    return math.exp(high)


def is_impossible(probability: float, n_correct: int, n_guesses: int, n_canaries: int, curve: TradeOff) -> bool:
    """Say whether no algorithm with this curve lets a guesser be right so often with this probability.

    The arguments are those of `p_value_trade_off`, with the probability of at least `n_correct` right guesses.
    """
    most = n_guesses / n_canaries
    right = probability * n_correct / n_canaries
    wrong = probability * (n_guesses - n_correct) / n_canaries
    for j in range(n_correct - 1, -1, -1):
        needed = max(wrong, curve.false_positive_rate(right))
        if needed == wrong:
            break
        right += j / (n_guesses - j) * (needed - wrong)
        wrong = needed
        if right + wrong > most * (1 + 1e-12):
            return True
    return right + wrong > most * (1 + 1e-12)


def mu_of_guesses(n_correct: int, n_guesses: int, n_canaries: int, *, confidence: float = 0.95) -> Estimate:
    """Bound the mu of Gaussian noise from below by the number of right guesses about the canaries of one run.

    Args:
        n_correct: Number of right guesses, 0 to `n_guesses`.
        n_guesses: Number of canaries guessed on, 1 to `n_canaries`; fixed beforehand.
        n_canaries: Number of coins tossed.
        confidence: Of the bound, one-sided, in (0, 1).

    Returns:
        The largest mu whose curve is refuted, at least 0; 0 means "cannot tell". Of algorithms with Gaussian noise
        only; `gaussian_epsilon` converts it.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If a count is not an integer.

    >>> round(mu_of_guesses(180, 200, 1000).low, 4)
    0.6982
    """
    n_correct, n_guesses = _check_guesses(n_correct, n_guesses, n_canaries)
    low = _mu(n_correct, n_guesses, n_canaries, 1 - check_fraction("confidence", confidence))
    return _lower_bound(low, confidence, "one training run, Gaussian curves", n_canaries)


def mu_one_run(
    scores: ArrayLike, included: ArrayLike, *, guesses: GuessGrid | None = None, confidence: float = 0.95
) -> Estimate:
    """Bound the mu of Gaussian noise from below with one training run that holds many canaries.

    Arguments, game and errors are those of `epsilon_one_run`, the result that of `mu_of_guesses`.

    >>> import numpy as np
    >>> coins = np.random.default_rng(0).random(200) < 0.5
    >>> round(mu_one_run(1.0 * coins, coins, guesses=GuessGrid(((50, 50),))).low, 2)
    1.52
    """
    counted, n_canaries = right_guesses(scores, included, guesses)
    alpha = (1 - check_fraction("confidence", confidence)) / len(counted)
    low = max(_mu(n_correct, n_guesses, n_canaries, alpha) for n_correct, n_guesses in counted)
    method = f"one training run, Gaussian curves, {len(counted)} number(s) of guesses (Bonferroni)"
    return _lower_bound(low, confidence, method, n_canaries)


def _mu(n_correct: int, n_guesses: int, n_canaries: int, alpha: float) -> float:
    """Return the largest mu that is refuted, 0 if none is."""
    if n_correct == 0:
        return 0.0

    def refuted(mu: float) -> bool:
        return mu == 0 or is_impossible(alpha, n_correct, n_guesses, n_canaries, GaussianTradeOff(mu))

    return _last_true(refuted, 0.0, _LARGEST_MU)


def _check_promise(epsilon: float, delta: float, name: str = "epsilon") -> None:
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"{name} must be at least 0 and finite, got {epsilon}.")
    check_fraction("delta", delta)
