"""Lower bounds on the epsilon of (epsilon, delta)-differential privacy, from attack scores.

What is bounded: the smallest epsilon for which the learning algorithm, as it was run, is (epsilon, delta)-private
for the pair of training sets that the games were played with. The adjacency is that of the games: add/remove if
a canary (a record put there to be looked for) was in or out, replace-one if another record took its place. Natural
units.

Every result is an `Estimate` whose `value` and `low` are the bound, rounded down, and whose `high` is infinite: an
attack can show that privacy is worse than epsilon, never that it is better. The bound exceeds the true epsilon with
probability at most `1 - confidence`; that is one-sided, all of the error is spent on the low end. **A bound of 0 is
"cannot tell", not "private"**: the attack is weak, or the trials are too few.

IMPORTANT: scores that are *higher* mean member. Scores that point the wrong way give 0.

Sources: Jagielski, Ullman and Oprea, "Auditing differentially private machine learning: how private is private
SGD?", NeurIPS 2020; Nasr et al., "Adversary instantiation: lower bounds for differentially private machine
learning", IEEE S&P 2021; Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from leakgauge.statistics._checks import check_count, check_fraction, check_values
from leakgauge.statistics.estimate import Estimate

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_DECIMALS = 1e6
_HALVINGS = 60
_FAIR_COIN = 1e-9


@dataclasses.dataclass(frozen=True)
class RankGrid:
    """Thresholds at fixed ranks of the scores, so that nothing need be known about their scale.

    Rank k is a threshold just above the k-th highest non-member (a small false-positive rate), and once more just
    below the k-th lowest member (a small false-negative rate). Each rank spends its part of the error (Bonferroni).

    The rate of the group that sets the threshold is bounded by its order statistic, that of the other group is an
    ordinary count, the two groups being independent. Valid for any distribution, with any ties; but scores with few
    distinct values (yes/no answers) leave few useful ranks, and a `ThresholdGrid` serves them better.

    Attributes:
        ranks: At least 1 each; those above the size of a group are left out for that group.

    Raises:
        ValueError: If there is no rank, or one is below 1.
    """

    ranks: tuple[int, ...] = tuple(2**i for i in range(14))

    def __post_init__(self) -> None:
        if not self.ranks or min(self.ranks) < 1:
            raise ValueError(f"ranks must be whole numbers of at least 1, got {self.ranks}; 1 is the highest score.")


@dataclasses.dataclass(frozen=True)
class ThresholdGrid:
    """Thresholds chosen before any of these scores was seen; each spends its part of the error (Bonferroni).

    Attributes:
        thresholds: A record is called member if its score is at least the threshold. One is enough.

    Raises:
        ValueError: If there is none, or one is NaN.
    """

    thresholds: tuple[float, ...]

    def __post_init__(self) -> None:
        check_values("thresholds", self.thresholds)


Thresholds = RankGrid | ThresholdGrid


def epsilon_clopper_pearson(
    member_scores: ArrayLike,
    nonmember_scores: ArrayLike,
    *,
    delta: float = 0.0,
    thresholds: Thresholds | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Bound epsilon from below by the two error rates of an attack; one score per independently trained model.

    The game: many models are trained, each with one canary in or out, and the attack gives each model one score.
    Differential privacy demands `tpr <= e^epsilon fpr + delta` and the same of the two negatives,
    `1 - fpr <= e^epsilon (1 - tpr) + delta`, at every threshold.

    The scores of a group must be independent draws. Several canaries in one model are not: their scores share that
    model's noise, and the stated confidence then does not hold. For those see `epsilon_one_run`.

    Taking the largest bound over all thresholds as if each had been the only one claims too much: at 95 % it
    was above 0 in 7 of 100 audits without a leak for 1,000 scores a side, and in 22 of 100 for 300 against 20,000.
    The strategies pay for what they look at.

    Args:
        member_scores: One score per model trained with the canary [n_members]; higher means member.
        nonmember_scores: One score per model trained without it [n_nonmembers].
        delta: The delta of the statement under test, in [0, 1).
        thresholds: How thresholds are chosen, and paid for: `RankGrid()` unless given.
        confidence: Of the bound, one-sided, in (0, 1).

    Returns:
        The bound on epsilon, at least 0; 0 means "cannot tell". `n` counts both groups.

    Raises:
        ValueError: If a group is empty or holds NaN, or delta or the confidence is out of range.

    Sources: Jagielski et al. 2020 (Clopper-Pearson, one direction); Nasr et al. 2021 (both directions).

    >>> in_scores, out_scores = range(1500, 2500), range(1000)
    >>> print(epsilon_clopper_pearson(in_scores, out_scores))
    5 [5, ∞]
    >>> print(epsilon_clopper_pearson(out_scores, out_scores))
    0 [0, ∞]
    """
    delta = _check_delta(delta)
    members = check_values("member_scores", member_scores)
    nonmembers = check_values("nonmember_scores", nonmember_scores)
    alpha = 1 - check_fraction("confidence", confidence)
    match thresholds if thresholds is not None else RankGrid():
        case RankGrid() as grid:
            low, how = _at_ranks(members, nonmembers, grid, delta, alpha), "ranks (Bonferroni)"
        case ThresholdGrid(levels):
            low, how = _at_levels(members, nonmembers, levels, delta, alpha), f"{len(levels)} threshold(s) (Bonferroni)"
        case unknown:
            raise TypeError(f"thresholds must be a RankGrid or ThresholdGrid, got {unknown!r}.")
    return _lower_bound(low, confidence, f"Clopper-Pearson, {how}", members.size + nonmembers.size)


@dataclasses.dataclass(frozen=True)
class GuessGrid:
    """How many canaries to guess on; each pair of numbers spends its part of the error (Bonferroni).

    Attributes:
        counts: Pairs (number of highest scores called included, number of lowest scores called excluded), fixed
            before the scores were seen. One pair is enough.
        seed: Of the order in which tied scores are taken, at least 0.

    Raises:
        ValueError: If there is no pair, or one makes no guess or has a negative number.
    """

    counts: tuple[tuple[int, int], ...]
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.counts or any(min(pair) < 0 or sum(pair) < 1 for pair in self.counts):
            raise ValueError(f"counts must be pairs of at least 0 with a guess in each, got {self.counts}.")

    @classmethod
    def halving(cls, n_canaries: int, *, seed: int = 0) -> GuessGrid:
        """Guess on all canaries, on half, a quarter, ... down to 8 of them, as many highest as lowest.

        >>> GuessGrid.halving(40).counts
        ((20, 20), (10, 10), (5, 5))
        """
        half = max(1, n_canaries // 2)
        sizes = [half >> i for i in range(half.bit_length()) if half >> i >= 4] or [half]
        if n_canaries == 1:
            return cls(((1, 0),), seed)
        return cls(tuple((size, size) for size in sizes), seed)


def epsilon_one_run(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    delta: float = 0.0,
    guesses: GuessGrid | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Bound epsilon from below with one training run that holds many canaries.

    The game: before training, a fair coin for each canary, independent of all others, says whether it is included.
    The attack scores all canaries, calls the highest included and the lowest excluded, and abstains between. The
    canaries' scores may depend on each other in any way; the coins may not. "Exactly half of them" is not this
    game, and the bound is not proved for it.

    Epsilon is for add/remove adjacency: what one coin changes.

    Args:
        scores: One per canary [n_canaries]; higher means included. Computed without a look at the coins.
        included: The coins, bool [n_canaries], in the same order.
        delta: In [0, 1). It counts once per canary: above about `error / n_canaries` nothing can be shown.
        guesses: How many guesses to make, `GuessGrid.halving(n_canaries)` unless given.
        confidence: Of the bound, one-sided, in (0, 1).

    Returns:
        The bound on epsilon, at least 0; 0 means "cannot tell". `n` is the number of canaries.

    Raises:
        ValueError: If the lengths differ, a score is NaN, there are fewer canaries than guesses, or the number of
            included canaries is not that of a fair coin (probability below 1e-9).
        TypeError: If `included` is not boolean.

    Source: Steinke, Nasr and Jagielski 2023, Algorithm 1; the bound is that of `p_value_one_run`.

    >>> coins = np.random.default_rng(0).random(200) < 0.5
    >>> print(epsilon_one_run(1.0 * coins, coins, guesses=GuessGrid(((50, 50),))))
    3.49 [3.49, ∞]
    """
    counted, n_canaries = right_guesses(scores, included, guesses)
    alpha = (1 - check_fraction("confidence", confidence)) / len(counted)
    delta = _check_delta(delta)
    return _lower_bound(
        max(_epsilon_one_run(n_correct, n_guesses, n_canaries, delta, alpha) for n_correct, n_guesses in counted),
        confidence,
        f"one training run, {len(counted)} number(s) of guesses (Bonferroni)",
        n_canaries,
    )


def right_guesses(
    scores: ArrayLike, included: ArrayLike, guesses: GuessGrid | None = None
) -> tuple[list[tuple[int, int]], int]:
    """Count the right guesses about canaries for each number of guesses.

    Arguments and errors are those of `epsilon_one_run`.

    Returns:
        Pairs (right guesses, guesses), one for each pair of the grid, and the number of canaries.

    >>> right_guesses([3.0, 2.0, 1.0, 0.0], np.array([True, False, True, False]), GuessGrid(((1, 1), (2, 2))))
    ([(2, 2), (2, 4)], 4)
    """
    scores, included = check_values("scores", scores), _check_coins(included)
    if scores.size != included.size:
        raise ValueError(f"scores and included must have one length, got {scores.size} and {included.size}.")
    guesses = guesses or GuessGrid.halving(scores.size)
    n_guesses = max(sum(pair) for pair in guesses.counts)
    if n_guesses > scores.size:
        raise ValueError(f"counts must be at most the {scores.size} canaries together, got {n_guesses}.")
    ties = np.random.default_rng(guesses.seed).random(scores.size)
    falling = included[np.lexsort((ties, scores))][::-1]

    def correct(high: int, low: int) -> int:
        return int(falling[:high].sum()) + int((~falling[falling.size - low :]).sum())

    return [(correct(*pair), sum(pair)) for pair in guesses.counts], scores.size


def epsilon_of_guesses(
    n_correct: int, n_guesses: int, n_canaries: int, *, delta: float = 0.0, confidence: float = 0.95
) -> Estimate:
    """Bound epsilon from below by the number of right guesses about the canaries of one training run.

    For attacks that answer yes, no or nothing; see `epsilon_one_run` for the game and for scores. The number of
    guesses must be fixed beforehand if delta is above 0; if delta is 0 it may depend on the model.

    Args:
        n_correct: Number of right guesses, 0 to `n_guesses`.
        n_guesses: Number of canaries guessed on, 1 to `n_canaries`.
        n_canaries: Number of coins tossed.
        delta: In [0, 1).
        confidence: Of the bound, one-sided, in (0, 1).

    Returns:
        The bound on epsilon, at least 0; 0 means "cannot tell".

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If a count is not an integer.

    Source: Steinke et al. 2023; without delta its appendix D prints 0.702 for the example.

    >>> round(epsilon_of_guesses(75, 100, 100).low, 3)
    0.702
    """
    n_correct, n_guesses = _check_guesses(n_correct, n_guesses, n_canaries)
    alpha = 1 - check_fraction("confidence", confidence)
    low = _epsilon_one_run(n_correct, n_guesses, n_canaries, _check_delta(delta), alpha)
    return _lower_bound(low, confidence, "one training run", n_canaries)


def p_value_one_run(n_correct: int, n_guesses: int, n_canaries: int, *, epsilon: float, delta: float = 0.0) -> float:
    """Bound the probability of at least so many right guesses if the algorithm is (epsilon, delta)-private.

    Let the canaries be revealed one after the other. Given the model and the coins already seen, a guess is right
    with probability at most `q + (1 - q) b`, where `q = e^epsilon / (1 + e^epsilon)` and
    `b = (P - e^epsilon P')+ / (P + P')` for the likelihoods P, P' of the model under the guessed coin and the
    other. Summed over models, b has mean at most delta, so all canaries together have at most `n_canaries delta`
    of sure wins. The opponent who spends them best, guess by guess, each at price c, wins with probability at most
    `c n_canaries delta + U(n_guesses, n_correct)`, whatever c is:

        U(k, need) = max(q U(k - 1, need - 1) + (1 - q) U(k - 1, need), U(k - 1, need - 1) - c),
        U(k, 0) = 1,  U(0, need) = 0 otherwise.

    This is not the formula of Steinke et al. 2023, Corollary 5.4, with which it agrees if delta is 0 (a binomial
    tail). That formula lets the opponent spend the sure wins only before the guesses are revealed. It can be
    exceeded: for 1 right guess of 2, 2 canaries, epsilon 2 and delta 0.05 it gives 0.9886, and there is an
    algorithm that reaches 0.9925.

    Args:
        n_correct: Number of right guesses, 0 to `n_guesses`.
        n_guesses: Number of canaries guessed on, 1 to `n_canaries`; fixed beforehand if delta is above 0.
        n_canaries: Number of coins tossed.
        epsilon: At least 0.
        delta: In [0, 1).

    Returns:
        A number in [0, 1], no less than that probability.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If a count is not an integer.

    >>> round(p_value_one_run(75, 100, 100, epsilon=math.log(3)), 3)
    0.553
    """
    n_correct, n_guesses = _check_guesses(n_correct, n_guesses, n_canaries)
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be at least 0, got {epsilon}.")
    if n_correct == 0:
        return 1.0
    q, sure_wins = float(special.expit(epsilon)), n_canaries * _check_delta(delta)
    if sure_wins == 0:
        return float(special.betainc(n_correct, n_guesses - n_correct + 1, q))
    return min(1.0, *(_win(q, n_guesses, n_correct, c, sure_wins) for c in _prices(n_correct)))


def _at_ranks(members: Floats, nonmembers: Floats, grid: RankGrid, delta: float, alpha: float) -> float:
    """Return the largest bound over the ranks of either group, each rank with two rates to be wrong about."""
    ranks = np.array(sorted(set(grid.ranks)))
    of_nonmembers, of_members = ranks[ranks <= nonmembers.size], ranks[ranks <= members.size]
    n_ranks = of_nonmembers.size + of_members.size
    if n_ranks == 0:
        return 0.0
    tail = alpha / (2 * n_ranks)

    def largest(above: Floats, below: Floats, ranks: Counts) -> float:
        levels = np.sort(below)[::-1][ranks - 1]
        called = above.size - np.searchsorted(np.sort(above), levels, side="right")
        # If the rate above the level were u then fewer than `rank` of the group would reach the level's score
        # with probability at most Pr[Bin(n, u) <= rank - 1], as if rank - 1 had been counted.
        return _epsilon(_rates_low(called, above.size, tail), _rates_high(ranks - 1, below.size, tail), delta)

    sides = [(members, nonmembers, of_nonmembers), (-nonmembers, -members, of_members)]
    return max(largest(above, below, ranks) for above, below, ranks in sides if ranks.size)


def _at_levels(members: Floats, nonmembers: Floats, levels: tuple[float, ...], delta: float, alpha: float) -> float:
    """Return the largest bound over fixed levels, each with two rates to be wrong about."""
    tail = alpha / (2 * len(levels))

    def count(scores: Floats) -> Counts:
        return np.asarray(scores.size - np.searchsorted(np.sort(scores), levels, side="left"))

    tpr_low = _rates_low(count(members), members.size, tail)
    return _epsilon(tpr_low, _rates_high(count(nonmembers), nonmembers.size, tail), delta)


def _epsilon(tpr_low: Floats, fpr_high: Floats, delta: float) -> float:
    """Return the largest epsilon that lower ends of true- and upper ends of false-positive rates [k] show."""
    # Kairouz, Oh and Viswanath 2015, section 2 (privacy region), for "called member" and for its complement.
    called, not_called = _log_ratio(tpr_low - delta, fpr_high), _log_ratio(1 - fpr_high - delta, 1 - tpr_low)
    return float(np.maximum(called, not_called).max())


def _rates_low(counts: Counts, n: int, tail: float) -> Floats:
    """Return the lower Clopper-Pearson ends [k]."""
    return np.where(counts > 0, special.betaincinv(np.maximum(counts, 1), n - counts + 1, tail), 0.0)


def _rates_high(counts: Counts, n: int, tail: float) -> Floats:
    """Return the upper Clopper-Pearson ends [k]."""
    return np.where(counts < n, special.betainccinv(counts + 1, np.maximum(n - counts, 1), tail), 1.0)


def _log_ratio(above: Floats, below: Floats) -> Floats:
    """Return ln(above / below), minus infinity where `above` is not positive."""
    return np.log(np.maximum(above, 0.0) / below, out=np.full_like(above, -math.inf), where=above > 0)


def _epsilon_one_run(n_correct: int, n_guesses: int, n_canaries: int, delta: float, alpha: float) -> float:
    """Return an epsilon, at most the largest whose p-value is at most alpha, or 0."""
    if n_correct == 0:
        return 0.0
    pure = float(special.logit(special.betaincinv(n_correct, n_guesses - n_correct + 1, alpha)))
    sure_wins = n_canaries * delta
    if sure_wins == 0 or pure <= 0:
        return max(0.0, pure)

    prices = _prices(n_correct)
    at = len(prices) // 2

    def rejected(epsilon: float) -> bool:
        """Walk downhill from the last best price: `_win` is convex in the price."""
        nonlocal at
        q = float(special.expit(epsilon))
        least = _win(q, n_guesses, n_correct, prices[at], sure_wins)
        for step in (-1, 1):
            while least > alpha and 0 <= at + step < len(prices):
                there = _win(q, n_guesses, n_correct, prices[at + step], sure_wins)
                if there >= least:
                    break
                at, least = at + step, there
        return least <= alpha

    return _last_true(rejected, 0.0, pure)


def _prices(n_correct: int) -> list[float]:
    """Return the prices worth trying, each of which gives a valid bound: lower ones buy every win, 1 buys none."""
    return [float(price) for price in np.geomspace(0.5 / n_correct, 1.0, 24)]


def p_values_one_run(n_guesses: ArrayLike, n_canaries: int, *, epsilon: float, delta: float = 0.0) -> list[Floats]:
    """Return `p_value_one_run` for all numbers of right guesses at once.

    Args:
        n_guesses: Numbers of guesses [g], 1 to `n_canaries` each.
        n_canaries: Number of coins tossed.
        epsilon: At least 0.
        delta: In [0, 1).

    Returns:
        For each number of guesses k the bounds for 0 to k right guesses [k + 1]; they hold for fixed k.

    >>> round(float(p_values_one_run([50, 100], 100, epsilon=math.log(3))[1][75]), 3)
    0.553
    """
    counts = [int(k) for k in np.atleast_1d(np.asarray(n_guesses))]
    q, sure_wins = float(special.expit(epsilon)), n_canaries * _check_delta(delta)
    if sure_wins == 0:
        return [np.append(1.0, special.betainc(np.arange(1, k + 1), np.arange(k, 0, -1), q)) for k in counts]
    bounds = [np.ones(k + 1) for k in counts]
    for price in _prices(max(counts)):
        for bound, wins in zip(bounds, _wins(q, counts, max(counts), price), strict=True):
            np.minimum(bound, wins[: len(bound)] + price * sure_wins, out=bound)
    return bounds


def _win(q: float, n_guesses: int, n_correct: int, price: float, sure_wins: float) -> float:
    """Return the opponent's winning probability of `p_value_one_run` at one price; may exceed 1."""
    return float(_wins(q, [n_guesses], n_correct, price)[0][-1]) + price * sure_wins


def _wins(q: float, counts: list[int], n_correct: int, price: float) -> list[Floats]:
    """Return U(k, need) for need = 0 .. n_correct, for each number of guesses k."""
    best = np.zeros(n_correct + 1)  # U(0, need)
    best[0] = 1.0
    kept = {}
    for k in range(1, max(counts) + 1):
        best[1:] = np.maximum(q * best[:-1] + (1 - q) * best[1:], best[:-1] - price)
        if k in counts:
            kept[k] = best.copy()
    return [kept[k] for k in counts]


def _last_true(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the last point found where a falling condition holds, `low` if there is none, to half a decimal."""
    for _ in range(_HALVINGS):
        if (high - low) * _DECIMALS < 0.5:
            break
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _lower_bound(low: float, confidence: float, method: str, n: int) -> Estimate:
    """Return the one-sided estimate, rounded down and not below 0."""
    low = _round_down(low)
    return Estimate(low, low, math.inf, confidence, f"{method}, one-sided", n)


def _round_down(epsilon: float) -> float:
    """Return epsilon rounded down to the decimals that the root finding and the beta quantiles can vouch for."""
    return max(0.0, math.floor(epsilon * _DECIMALS) / _DECIMALS) if math.isfinite(epsilon) else max(0.0, epsilon)


def _check_delta(delta: float) -> float:
    """Return delta if it is in [0, 1)."""
    if not 0.0 <= delta < 1.0:
        raise ValueError(f"delta must be in [0, 1), got {delta}; it is a probability, and small.")
    return float(delta)


def _check_guesses(n_correct: int, n_guesses: int, n_canaries: int) -> tuple[int, int]:
    """Return the counts of right guesses and of guesses if they fit into each other."""
    check_count("n_guesses", n_guesses, "n_canaries", n_canaries)
    return check_count("n_correct", n_correct, "n_guesses", n_guesses)


def _check_coins(included: ArrayLike) -> NDArray[np.bool_]:
    """Return the coins as a bool array [n], if they can have been fair."""
    coins = np.asarray(included)
    if coins.dtype != np.bool_:
        raise TypeError(f"included must be boolean, got {coins.dtype}; True says that the canary was trained on.")
    check_values("included", coins)
    n, rarer = coins.size, int(min(coins.sum(), (~coins).sum()))
    if 2 * float(special.betainc(n - rarer, rarer + 1, 0.5)) < _FAIR_COIN:
        raise ValueError(
            f"included must come from fair coins, got {int(coins.sum())} of {n}; pass all canaries, in and out, "
            "each included with probability one half."
        )
    return coins
