"""Tests of claimed trade-off curves: printed numbers, exact opponents, and no more false alarms than stated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special, stats

from leakgauge.statistics import (
    ApproximateDp,
    GaussianTradeOff,
    GuessGrid,
    OneRunTest,
    ProfileTradeOff,
    epsilon_of_guesses,
    epsilon_one_run,
    gaussian_epsilon,
    gaussian_mu,
    mu_of_guesses,
    mu_one_run,
    p_value_one_run,
    p_value_trade_off,
    p_values_one_run,
    wealth_against_claim,
)
from leakgauge.statistics.trade_off import gaussian_delta

GRID = [round(0.01 * i, 2) for i in range(1201)]


def profile(mu: float, epsilons: list[float] = GRID) -> ProfileTradeOff:
    """The Gaussian curve by its (epsilon, delta) at some epsilons."""
    return ProfileTradeOff(tuple(epsilons), tuple(gaussian_delta(mu, epsilon) for epsilon in epsilons))


def opponent(n_correct: int, k: int, m: int, lines: dict[float, float]) -> float:
    """The largest Pr[right >= n_correct] of any algorithm that is (epsilon, delta)-private for each of the lines.

    An opponent may be averaged over all ways to exchange in and out, and canaries: what it then does is to draw k
    canaries and r right guesses among them, each pattern with probability w_r. Its privacy for one coin is a sum over
    patterns of how far one probability exceeds e^epsilon times the other; a linear program in w_r and the excesses.
    """
    patterns = special.comb(k, np.arange(k + 1))
    n_excess = 2 * k * len(lines)
    objective = np.zeros(k + 1 + n_excess)
    objective[n_correct : k + 1] = -patterns[n_correct:]
    rows, limits = [], []
    for line, (epsilon, delta) in enumerate(lines.items()):
        budget, start = np.zeros(k + 1 + n_excess), k + 1 + line * 2 * k
        for r in range(k):  # canary i wrong among r right ones, against right among r + 1
            for side, (above, below) in enumerate([(r, r + 1), (r + 1, r)]):
                excess = np.zeros(k + 1 + n_excess)
                excess[above], excess[below], excess[start + 2 * r + side] = 1, -math.exp(epsilon), -1
                rows.append(excess)
                limits.append(0.0)
                budget[start + 2 * r + side] = k / m * special.comb(k - 1, r)
        rows.append(budget)
        limits.append(delta)
    total = np.append(patterns, np.zeros(n_excess))
    found = optimize.linprog(objective, A_ub=np.array(rows), b_ub=limits, A_eq=total[None], b_eq=[1.0])
    assert found.success
    return -float(found.fun)


class TestPrintedNumbers:
    @pytest.mark.parametrize(
        ("m", "k", "c", "epsilon", "mu", "any_mechanism"),
        [
            (100, 100, 75, 1.78642, 0.40431, 0.7021),
            (100, 50, 48, 4.51574, 0.93286, 1.9866),
            (1000, 200, 180, 3.26119, 0.69820, 1.7985),
            (1000, 1000, 700, 1.56100, 0.35721, 0.7318),
            (10000, 500, 495, 5.96446, 1.19015, 3.8456),
            (1000, 100, 100, 6.16947, 1.22553, 3.4928),
        ],
    )
    def test_bounds(self, m, k, c, epsilon, mu, any_mechanism):
        """Delta 1e-6, 95 %; computed independently, and by the public function of JAX Privacy."""
        found = mu_of_guesses(c, k, m).low
        assert found == pytest.approx(mu, abs=6e-6)
        assert gaussian_epsilon(found, 1e-6) == pytest.approx(epsilon, abs=1.5e-5)
        assert epsilon_of_guesses(c, k, m, delta=1e-6).low == pytest.approx(any_mechanism, abs=6e-5)

    def test_mu_of_an_epsilon(self):
        printed = {0.5: 0.1422, 1: 0.2681, 2: 0.5016, 4: 0.9249, 8: 1.6660}
        assert {epsilon: round(gaussian_mu(epsilon, 1e-5), 4) for epsilon in printed} == printed

    @pytest.mark.parametrize(
        ("k", "m", "c", "mu", "printed"),
        [(10, 10, 8, 0.5, 0.2779), (10, 20, 9, 1, 0.5223), (6, 6, 6, 1, 0.2218), (8, 8, 6, 0.1, 0.2098)],
    )
    def test_p_values_beside_a_linear_program(self, k, m, c, mu, printed):
        """A linear program over the numbers of right guesses gave the same, but 0.2060 in the last line."""
        assert p_value_trade_off(c, k, m, curve=GaussianTradeOff(mu)) == pytest.approx(printed, abs=6e-5)
        assert p_value_trade_off(c, k, m, curve=profile(mu)) == pytest.approx(printed, abs=2e-4)

    def test_one_pair_is_weaker_by_the_recursion(self):
        """Where only (epsilon, delta) is claimed the bound for any mechanism is the stronger one."""
        pure, approximate = ProfileTradeOff((math.log(3),), (0.0,)), ProfileTradeOff((1.0,), (1e-3,))
        assert p_value_trade_off(75, 100, 100, curve=pure) == 1.0
        assert p_value_one_run(75, 100, 100, epsilon=math.log(3)) == pytest.approx(0.5535, abs=6e-5)
        assert p_value_trade_off(9, 10, 10, curve=approximate) == pytest.approx(0.2253, abs=6e-5)
        assert p_value_one_run(9, 10, 10, epsilon=1.0, delta=1e-3) == pytest.approx(0.2069, abs=6e-5)

    def test_the_curve_of_sampled_noise_is_the_strongest(self):
        """Sampling 0.01, 1,000 steps, noise 0.96: epsilon 2.0."""
        pytest.importorskip("dp_accounting")
        from leakgauge.claims import Claim

        claim = Claim(2.0, 1e-5, noise=0.96, sampling=0.01, steps=1000)
        assert claim.accounted == pytest.approx(2.0, abs=0.01)
        assert p_value_trade_off(150, 200, 1000, curve=claim.tested) == pytest.approx(0.293, abs=2e-3)
        equal = GaussianTradeOff(gaussian_mu(2.0, 1e-5))
        assert p_value_trade_off(150, 200, 1000, curve=equal) == pytest.approx(0.452, abs=6e-4)
        assert p_value_one_run(150, 200, 1000, epsilon=2.0, delta=1e-5) == pytest.approx(1.0, abs=1e-3)

    @pytest.mark.parametrize(("k", "m"), [(1, 1), (3, 7), (10, 10), (49, 98), (200, 1000)])
    def test_where_everything_may_be_told_right_guesses_are_no_evidence(self, k, m):
        """The probability of 1 is possible, and rounding does not make it impossible."""
        assert all(p_value_trade_off(c, k, m, curve=GaussianTradeOff(100.0)) == 1.0 for c in range(k + 1))

    @pytest.mark.parametrize(("m", "any_mechanism", "gaussian"), [(100, 3.10, 6.32), (1000, 5.31, 9.36)])
    def test_the_largest_epsilon_that_can_be_shown(self, m, any_mechanism, gaussian):
        assert OneRunTest(ApproximateDp(1.0, 1e-5), m).largest_epsilon(1e-5) == pytest.approx(any_mechanism, abs=6e-3)
        assert OneRunTest(GaussianTradeOff(1.0), m).largest_epsilon(1e-5) == pytest.approx(gaussian, abs=6e-3)

    def test_the_largest_epsilon_of_ten_thousand_canaries(self):
        assert OneRunTest(GaussianTradeOff(1.0), 10000).largest_epsilon(1e-5) == pytest.approx(12.11, abs=6e-3)


class TestOpponents:
    """What the best opponent reaches is below the bound; both are exact but for the recursion."""

    @pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 2.0])
    @pytest.mark.parametrize(("k", "m"), [(1, 1), (2, 2), (3, 7), (6, 6), (8, 20)])
    def test_with_a_curve(self, k, m, mu):
        epsilons = [0.0, 0.2, 0.5, 1.0, 2.0, 4.0]
        lines = {epsilon: gaussian_delta(mu, epsilon) for epsilon in epsilons}
        for c in range(1, k + 1):
            reached = opponent(c, k, m, lines)
            assert reached <= p_value_trade_off(c, k, m, curve=profile(mu, epsilons)) + 1e-7, c

    @pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, 0.01), (2.0, 0.05)])
    @pytest.mark.parametrize(("k", "m"), [(1, 2), (3, 3), (5, 12), (8, 8)])
    def test_with_one_pair(self, k, m, epsilon, delta):
        """Here the opponent reaches the bound for any mechanism where delta is 0."""
        bounds = p_values_one_run([k], m, epsilon=epsilon, delta=delta)[0]
        for c in range(1, k + 1):
            reached = opponent(c, k, m, {epsilon: delta})
            assert reached <= bounds[c] + 1e-7, c
            assert reached <= p_value_trade_off(c, k, m, curve=ProfileTradeOff((epsilon,), (delta,))) + 1e-7, c
            if delta == 0 and k == m:
                assert reached == pytest.approx(bounds[c], abs=1e-6)

    def test_the_opponent_is_as_good_as_the_curve_for_one_canary(self):
        """One canary, guessed on always: right with probability at most 1 - x where f_bar(x) = 1 - x."""
        curve = profile(1.0, [0.0, 0.5, 1.0])
        reached = opponent(1, 1, 1, {epsilon: gaussian_delta(1.0, epsilon) for epsilon in (0.0, 0.5, 1.0)})
        assert reached == pytest.approx(p_value_trade_off(1, 1, 1, curve=curve), abs=1e-7)
        assert reached == pytest.approx(stats.norm.cdf(0.5), abs=1e-7)


class TestCurves:
    @given(st.floats(0.01, 5), st.floats(0, 1))
    def test_the_profile_of_gaussian_noise_is_its_curve(self, mu, rate):
        exact = GaussianTradeOff(mu).false_positive_rate(rate)
        assert exact - 0.01 <= profile(mu, GRID[::20]).false_positive_rate(rate) <= exact + 1e-9

    @given(
        st.lists(st.tuples(st.floats(0, 8), st.floats(0, 1)), min_size=1, max_size=6),
        st.floats(0, 1),
    )
    def test_a_profile_is_the_largest_of_its_lines(self, pairs, rate):
        epsilons, deltas = zip(*pairs, strict=True)
        expected = max(
            [0.0] + [(rate - d) * math.exp(-e) for e, d in pairs] + [1 - d - math.exp(e) * (1 - rate) for e, d in pairs]
        )
        assert ProfileTradeOff(epsilons, deltas).false_positive_rate(rate) == pytest.approx(min(1, expected), abs=1e-9)

    @given(st.floats(0.05, 12), st.floats(1e-12, 0.2))
    def test_epsilon_and_mu_are_inverse(self, epsilon, delta):
        assert gaussian_epsilon(gaussian_mu(epsilon, delta), delta) == pytest.approx(epsilon, abs=1e-6)

    def test_no_noise_worth_naming_has_epsilon_0(self):
        assert gaussian_epsilon(0.0, 1e-5) == gaussian_epsilon(1e-6, 1e-5) == 0.0

    @pytest.mark.parametrize("wrong", [lambda: GaussianTradeOff(0.0), lambda: gaussian_mu(1.0, 0.0)])
    def test_numbers_out_of_range_are_refused(self, wrong):
        with pytest.raises(ValueError, match="must be"):
            wrong()

    def test_profiles_out_of_range_are_refused(self):
        for pairs in (((), ()), ((1.0,), (0.1, 0.2)), ((-1.0,), (0.0,)), ((1.0,), (1.5,)), ((math.inf,), (0.0,))):
            with pytest.raises(ValueError, match="must be"):
                ProfileTradeOff(*pairs)


class TestOneRun:
    def test_critical_counts_are_those_of_the_p_values(self):
        for claim in (ApproximateDp(1.0, 1e-3), ApproximateDp(0.5), GaussianTradeOff(0.5)):
            test = OneRunTest(claim, 60)
            for k, least in zip(test.counts, test.critical, strict=True):
                by_hand = [test._p_value(c, k) <= test.alpha for c in range(k + 1)] + [True]
                assert by_hand.index(True) == least, (claim, k)

    @pytest.mark.parametrize("claim", [ApproximateDp(1.0, 1e-5), GaussianTradeOff(gaussian_mu(1.0, 1e-5))], ids=str)
    def test_a_true_claim_is_refuted_no_more_often_than_stated(self, claim):
        """1,000 audits at 95 %: at most 86 for a right test (false alarm below 1e-6); seen: 0 and 2."""
        assert OneRunTest(claim, 300).power(gaussian_mu(1.0, 1e-5), repetitions=1000) <= 0.086

    def test_nothing_is_refuted_where_nothing_leaks(self):
        """Scores that say nothing, many of them tied: any claim above 0 holds; 1,000 audits as above."""
        rng, test = np.random.default_rng(1), OneRunTest(GaussianTradeOff(1e-3), 60)
        refuted = 0
        for _ in range(1000):
            result = test(rng.integers(0, 3, 60), rng.random(60) < 0.5)
            refuted += result.is_refuted
            assert result.is_refuted == (result.p_value <= 0.05)
        assert 0 < refuted <= 86

    def test_the_worst_opponent_of_a_small_game_is_refuted_no_more_often_than_stated(self):
        """The critical counts of each number of guesses, against the linear program."""
        lines = {epsilon: gaussian_delta(0.5, epsilon) for epsilon in (0.0, 0.5, 1.0)}
        test = OneRunTest(profile(0.5, [0.0, 0.5, 1.0]), 10, GuessGrid(((5, 5), (3, 3), (2, 1))), confidence=0.7)
        spent = [
            opponent(least, k, 10, lines) if least <= k else 0.0
            for k, least in zip(test.counts, test.critical, strict=True)
        ]
        assert 0 < sum(spent) <= 0.3

    @pytest.mark.parametrize(
        ("m", "epsilon", "factor", "by_any", "by_curve"),
        [(100, 2, 4, 0.12, 0.99), (1000, 2, 2, 0.04, 0.64), (1000, 4, 3, 0.54, 1.0), (1000, 1, 3, 0.74, 1.0)],
    )
    def test_power_is_as_computed_independently(self, m, epsilon, factor, by_any, by_curve):
        """200 audits beside 400: within 0.15 with probability above 0.999."""
        mu = gaussian_mu(epsilon, 1e-5)
        for claim, printed in ((ApproximateDp(epsilon, 1e-5), by_any), (GaussianTradeOff(mu), by_curve)):
            assert OneRunTest(claim, m).power(factor * mu) == pytest.approx(printed, abs=0.15)

    def test_a_claim_out_of_reach(self):
        """100 canaries cannot refute epsilon 4 whatever the leak is, unless more than that is claimed."""
        assert not OneRunTest(ApproximateDp(4.0, 1e-5), 100).can_refute
        assert OneRunTest(GaussianTradeOff(gaussian_mu(4.0, 1e-5)), 100).can_refute

    def test_bounds_of_scores_pay_for_the_grid(self):
        rng = np.random.default_rng(3)
        coins = rng.random(1000) < 0.5
        scores = rng.standard_normal(1000) + 1.666 * coins
        assert mu_one_run(scores, coins).low < 1.666
        fixed = mu_one_run(scores, coins, guesses=GuessGrid(((62, 62),))).low
        free = mu_one_run(scores, coins, guesses=GuessGrid(((62, 62), (500, 500)))).low
        assert free < fixed
        assert epsilon_one_run(scores, coins, delta=1e-5).low < gaussian_epsilon(mu_one_run(scores, coins).low, 1e-5)

    def test_other_numbers_of_scores_are_refused(self):
        with pytest.raises(ValueError, match="must be of 20 canaries"):
            OneRunTest(GaussianTradeOff(1.0), 20)(np.arange(30), np.arange(30) % 2 == 0)
        with pytest.raises(ValueError, match="at most the 20 canaries"):
            OneRunTest(GaussianTradeOff(1.0), 20, GuessGrid(((15, 15),)))


@pytest.mark.parametrize("largest", [690.0, 710.0, 1e6])
def test_a_line_of_any_epsilon_leaves_the_others_as_they_are(largest):
    alone, both = ProfileTradeOff((1.0,), (1e-5,)), ProfileTradeOff((1.0, largest), (1e-5, 0.0))
    for rate in (0.0, 1e-4, 0.5, 0.9, 0.999):
        assert both.false_positive_rate(rate) == pytest.approx(alone.false_positive_rate(rate), abs=1e-15)


class TestManyModels:
    @staticmethod
    def stopping(epsilon: float, factor: float, threshold: float, repetitions: int, n_models: int) -> np.ndarray:
        """The model after which the claim is refuted, infinite if never, of Gaussian noise of so many times its mu."""
        rng, mu = np.random.default_rng(0), gaussian_mu(epsilon, 1e-5)
        stops = []
        for _ in range(repetitions):
            coins = rng.random(n_models) < 0.5
            scores = rng.standard_normal(n_models) + factor * mu * coins
            wealth = wealth_against_claim(coins, scores > threshold, scores < -threshold, epsilon=epsilon, delta=1e-5)
            reached = np.flatnonzero(wealth >= 20)
            stops.append(reached[0] + 1 if len(reached) else math.inf)
        return np.array(stops)

    @pytest.mark.parametrize(("epsilon", "threshold"), [(1.0, 2.0), (2.0, 2.0), (4.0, 3.0)])
    def test_a_true_claim_is_hardly_ever_refuted(self, epsilon, threshold):
        """Stopping at any of 4,000 models; at most 30 of 300 for a right test (false alarm below 1e-3); seen: 0."""
        assert np.isfinite(self.stopping(epsilon, 1.0, threshold, 300, 4000)).sum() <= 30

    @pytest.mark.parametrize(("epsilon", "threshold", "median"), [(1.0, 2.0, 518), (2.0, 2.0, 440), (4.0, 3.0, 797)])
    def test_four_times_the_leak_is_found(self, epsilon, threshold, median):
        """Medians computed independently."""
        stops = self.stopping(epsilon, 4.0, threshold, 100, 4000)
        assert np.isfinite(stops).all()
        assert np.median(stops) == pytest.approx(median, rel=0.25)

    def test_the_worst_case_is_a_fair_game(self):
        """Randomised response at the claim: the mean wealth is 1 by enumeration, and 1.0 after many models."""
        epsilon, q = 1.0, special.expit(1.0)
        outcomes = [(coin, yes, (q if yes == coin else 1 - q) / 2) for coin in (True, False) for yes in (True, False)]
        means = sum(p * wealth_against_claim([coin], [yes], [not yes], epsilon=epsilon)[0] for coin, yes, p in outcomes)
        assert means == pytest.approx(1.0, abs=1e-12)

    @pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
    @pytest.mark.parametrize("delta", [0.01, 0.2])
    def test_the_worst_case_with_a_delta_is_a_fair_game_too(self, epsilon, delta):
        """Pr[yes | in] = e^epsilon Pr[yes | out] + delta, the most that the claim allows."""
        out = 0.9 * (1 - delta) / math.exp(epsilon)
        given = {True: math.exp(epsilon) * out + delta, False: out}
        outcomes = [(coin, yes, (p if yes else 1 - p) / 2) for coin, p in given.items() for yes in (True, False)]
        wealth = [
            wealth_against_claim([coin], [yes], epsilon=epsilon, delta=delta).tolist() for coin, yes, _ in outcomes
        ]
        assert sum(p * one for (_, _, p), (one,) in zip(outcomes, wealth, strict=True)) == pytest.approx(1.0, abs=1e-12)
        assert wealth[0][0] > 1 > wealth[1][0] == wealth[3][0] > wealth[2][0] > 0

    def test_no_epsilon_is_too_large(self):
        """e^-750 is 0: nothing is won, and i / 13 of a stake is lost where the canary is out and the score high."""
        coins, high = np.array([True, False, False]), np.array([True, False, True])
        left = [1.0, 1.0, np.mean(1 - np.arange(1, 13) / 13)]
        assert wealth_against_claim(coins, high, epsilon=750.0) == pytest.approx(left)
        assert wealth_against_claim(coins, high, epsilon=700.0) == pytest.approx(left)

    def test_wrong_arrays_are_refused(self):
        with pytest.raises(TypeError, match="boolean"):
            wealth_against_claim([0, 1], [True, False], epsilon=1.0)
        with pytest.raises(ValueError, match="one length"):
            wealth_against_claim([True], [True, False], epsilon=1.0)
        with pytest.raises(ValueError, match="epsilon"):
            wealth_against_claim([True], [True], epsilon=-1.0)
