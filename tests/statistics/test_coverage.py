"""Do intervals hold the truth as often as they say?

The rule and its error rates are stated in `conftest.py`: a right interval is failed with probability 1e-6 per
parameter set, one that covers 90 % in place of 95 % passes with probability below 1e-4.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from leakgauge.statistics import (
    Estimate,
    advantage,
    advantage_exact,
    advantage_of_decisions,
    auc,
    balanced_accuracy,
    clopper_pearson,
    mean,
    mean_difference,
    pearson,
    spearman,
    tpr_at_fpr,
    wilson,
)

Rng = np.random.Generator
Draw = Callable[[Rng, int], np.ndarray]


def z_interval(rng: Rng, claimed: float, actual: float) -> Estimate:
    x, half = rng.normal(), stats.norm.isf((1 - actual) / 2)
    return Estimate(x, x - half, x + half, claimed, "z", 1)


class TestTheRule:
    def test_passes_what_is_right(self, assert_covers):
        """An exact interval, so a false alarm has probability 1e-6."""
        rng = np.random.default_rng(1)
        assert_covers(lambda: z_interval(rng, 0.95, 0.95), 0.0)

    def test_fails_what_covers_90_in_place_of_95(self, assert_covers):
        """Fails to fail with probability below 1e-4."""
        rng = np.random.default_rng(2)
        with pytest.raises(AssertionError, match="of 2000 intervals miss"):
            assert_covers(lambda: z_interval(rng, 0.95, 0.90), 0.0)

    def test_error_rates_are_as_documented(self):
        allowed = int(stats.binom.isf(1e-6, 2000, 0.05))
        assert allowed == 149
        assert stats.binom.sf(allowed, 2000, 0.05) <= 1e-6
        assert stats.binom.cdf(allowed, 2000, 0.10) < 1e-4


RATES = np.concatenate([[1e-4, 0.001, 0.005], np.linspace(0.01, 0.99, 197), [0.995, 0.999, 1 - 1e-4]])


class TestOneRateByEnumeration:
    """All outcomes are enumerated, so there is no chance in these tests."""

    @staticmethod
    def misses(method: Callable[..., Estimate], n: int, rates: np.ndarray, confidence: float = 0.95):
        ends = [method(k, n, confidence=confidence) for k in range(n + 1)]
        law = stats.binom.pmf(np.arange(n + 1), n, rates[:, None])
        low, high = np.array([e.low for e in ends]), np.array([e.high for e in ends])
        return (law * (low > rates[:, None])).sum(1), (law * (high < rates[:, None])).sum(1)

    @pytest.mark.parametrize("n", [1, 5, 30, 200])
    @pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
    def test_clopper_pearson_never_covers_less_at_either_end(self, n, confidence):
        below, above = self.misses(clopper_pearson, n, RATES, confidence)
        assert below.max() <= (1 - confidence) / 2 + 1e-12
        assert above.max() <= (1 - confidence) / 2 + 1e-12

    @pytest.mark.parametrize("n", [20, 100, 400])
    def test_wilson_covers_on_average_and_at_worst_as_documented(self, n):
        below, above = self.misses(wilson, n, np.linspace(0.0005, 0.9995, 2000))
        coverage = 1 - below - above
        assert coverage.mean() == pytest.approx(0.95, abs=0.007)
        assert coverage.min() > 0.83


class TestAdvantage:
    @pytest.mark.parametrize(("n_members", "n_nonmembers"), [(12, 30), (40, 15)])
    def test_exact_never_covers_less_by_enumeration(self, n_members, n_nonmembers):
        rates = np.array([0.0, 0.001, 0.02, 0.1, 0.3, 0.5, 0.8, 0.97, 0.999, 1.0])
        table = [
            [advantage_exact(i, n_members, j, n_nonmembers) for j in range(n_nonmembers + 1)]
            for i in range(n_members + 1)
        ]
        low = np.array([[e.low for e in row] for row in table])
        high = np.array([[e.high for e in row] for row in table])
        for tpr in rates:
            of_members = stats.binom.pmf(np.arange(n_members + 1), n_members, tpr)
            for fpr in rates:
                of_nonmembers = stats.binom.pmf(np.arange(n_nonmembers + 1), n_nonmembers, fpr)
                truth = tpr - fpr
                assert of_members @ (low > truth + 1e-12) @ of_nonmembers <= 0.025 + 1e-12
                assert of_members @ (high < truth - 1e-12) @ of_nonmembers <= 0.025 + 1e-12

    @pytest.mark.parametrize(
        ("tpr", "fpr", "n_members", "n_nonmembers"),
        [
            (0.5, 0.5, 100, 100),
            (0.1, 0.1, 30, 300),
            (0.9, 0.1, 300, 30),
            (0.02, 0.02, 200, 1000),
            (0.99, 0.01, 100, 100),
            (0.9, 0.85, 1000, 50),
        ],
    )
    def test_newcombe_covers(self, assert_covers, tpr, fpr, n_members, n_nonmembers):
        """False alarm 1e-6 per row; 90 % is caught with probability above 0.9999. Rows 1, 2, 4: no leak."""
        rng = np.random.default_rng(3)
        assert_covers(
            lambda: advantage(rng.binomial(n_members, tpr), n_members, rng.binomial(n_nonmembers, fpr), n_nonmembers),
            tpr - fpr,
        )

    def test_balanced_accuracy_covers(self, assert_covers):
        """False alarm 1e-6; 90 % is caught with probability above 0.9999."""
        rng = np.random.default_rng(4)
        assert_covers(lambda: balanced_accuracy(rng.binomial(80, 0.7), 80, rng.binomial(150, 0.4), 150), 0.65)

    def test_decisions_that_ignore_membership_cover_zero(self, assert_covers):
        """Null test. False alarm 1e-6; 90 % is caught with probability above 0.9999."""
        rng = np.random.default_rng(5)
        assert_covers(lambda: advantage_of_decisions(rng.random(60) < 0.2, rng.random(240) < 0.2), 0.0)


class TestMeans:
    @pytest.mark.parametrize(
        ("draw", "n", "truth", "bounds"),
        [
            (lambda rng, n: rng.normal(3, 2, n), 2, 3.0, {}),
            (lambda rng, n: rng.normal(3, 2, n), 10, 3.0, {}),
            (lambda rng, n: rng.random(n), 30, 0.5, {"lower": 0.0, "upper": 1.0}),
            # 2 % of ones: 60 values are all 0 in 30 % of the samples.
            (lambda rng, n: (rng.random(n) < 0.001) * 1.0, 60, 0.001, {"lower": 0.0, "upper": 1.0}),
        ],
    )
    def test_mean_covers(self, assert_covers, draw, n, truth, bounds):
        """False alarm 1e-6 per row; 90 % is caught with probability above 0.9999."""
        rng = np.random.default_rng(6)
        assert_covers(lambda: mean(draw(rng, n), **bounds), truth)

    @pytest.mark.parametrize(
        ("a", "b"),
        [
            ((1, 1), (1, 1)),  # nothing leaks
            ((0.01, 0.5), (0.01, 0.5)),  # nothing leaks, nearly all values near 0
            ((2, 5), (5, 2)),
            ((0.05, 5), (0.1, 1)),  # both near 0
            ((5, 0.05), (0.02, 0.02)),  # near 1 against nearly yes/no
        ],
    )
    @pytest.mark.parametrize(("n_members", "n_nonmembers"), [(100, 100), (20, 400)])
    def test_mean_difference_covers(self, assert_covers, a, b, n_members, n_nonmembers):
        """Beta-distributed values. False alarm 1e-6 per row; 90 % is caught with probability above 0.9999."""
        rng = np.random.default_rng(7)
        assert_covers(
            lambda: mean_difference(3 * rng.beta(*a, n_members), 3 * rng.beta(*b, n_nonmembers), upper=3.0),
            3 * (a[0] / sum(a) - b[0] / sum(b)),
        )


def normal(mean: float) -> Draw:
    return lambda rng, n: rng.normal(mean, 1, n)


def yes_no(rate: float) -> Draw:
    return lambda rng, n: (rng.random(n) < rate) * 1.0


def levels(probabilities: list[float]) -> Draw:
    return lambda rng, n: rng.choice(len(probabilities), n, p=probabilities) * 1.0


def mostly(mean: float, share_at_bottom: float) -> Draw:
    return lambda rng, n: np.where(rng.random(n) < share_at_bottom, -np.inf, rng.normal(mean, 1, n))


LOW_LEVELS, HIGH_LEVELS = [0.4, 0.3, 0.2, 0.07, 0.03], [0.1, 0.2, 0.3, 0.25, 0.15]
SQRT2 = np.sqrt(2)


class TestAuc:
    @pytest.mark.parametrize(
        ("n_members", "n_nonmembers"),
        [
            (30, 300),
            (20, 20),
            pytest.param(100, 100, marks=pytest.mark.slow),
            pytest.param(300, 30, marks=pytest.mark.slow),
        ],
    )
    @pytest.mark.parametrize(
        ("members", "nonmembers", "truth"),
        [
            pytest.param(normal(0), normal(0), 0.5, id="null"),
            pytest.param(yes_no(0.02), yes_no(0.02), 0.5, id="null, nearly all tied"),
            pytest.param(normal(1.5), normal(0), stats.norm.cdf(1.5 / SQRT2), id="0.86"),
            pytest.param(normal(3.5), normal(0), stats.norm.cdf(3.5 / SQRT2), id="0.993"),
            pytest.param(normal(-2.5), normal(0), stats.norm.cdf(-2.5 / SQRT2), id="inverted"),
            pytest.param(yes_no(0.99), yes_no(0.01), 0.99, id="yes/no, 0.99"),
            pytest.param(
                levels(HIGH_LEVELS),
                levels(LOW_LEVELS),
                sum(h * (sum(LOW_LEVELS[:i]) + LOW_LEVELS[i] / 2) for i, h in enumerate(HIGH_LEVELS)),
                id="five levels",
            ),
            pytest.param(mostly(4, 0.03), normal(0), 0.97 * stats.norm.cdf(4 / SQRT2), id="3 % at the bottom"),
        ],
    )
    def test_covers(self, assert_covers, members, nonmembers, truth, n_members, n_nonmembers):
        """False alarm 1e-6 per row; 90 % is caught with probability above 0.9999."""
        rng = np.random.default_rng(8)
        assert_covers(lambda: auc(members(rng, n_members), nonmembers(rng, n_nonmembers)), truth)


class TestTprAtFpr:
    CASES = (
        pytest.param(normal(0), normal(0), 1000, 1000, 0.01, 0.01, id="null"),
        pytest.param(normal(0), normal(0), 50, 20, 0.01, 0.01, id="null, too few non-members"),
        pytest.param(normal(1), normal(0), 300, 500, 0.05, stats.norm.sf(stats.norm.isf(0.05) - 1), id="1"),
        pytest.param(normal(3), normal(0), 30, 800, 0.005, stats.norm.sf(stats.norm.isf(0.005) - 3), id="3"),
        pytest.param(normal(6), normal(0), 200, 100, 0.1, stats.norm.sf(stats.norm.isf(0.1) - 6), id="near 1"),
        pytest.param(normal(-2), normal(0), 200, 100, 0.1, stats.norm.sf(stats.norm.isf(0.1) + 2), id="near 0"),
        # Five levels: a threshold above level 2 has a false-positive rate of 0.1, one above level 3 of 0.03.
        pytest.param(levels(HIGH_LEVELS), levels(LOW_LEVELS), 200, 300, 0.1, 0.4, id="tied, at a step"),
        pytest.param(levels(HIGH_LEVELS), levels(LOW_LEVELS), 200, 300, 0.05, 0.15, id="tied, between steps"),
    )

    @pytest.mark.parametrize(("members", "nonmembers", "n_members", "n_nonmembers", "fpr", "truth"), CASES)
    def test_each_end_covers(self, assert_covers, members, nonmembers, n_members, n_nonmembers, fpr, truth):
        """Each end may miss 2.5 %. False alarm 1e-6 per row and end; 6 % is caught with probability 0.99."""
        rng = np.random.default_rng(9)
        estimates = [tpr_at_fpr(members(rng, n_members), nonmembers(rng, n_nonmembers), fpr) for _ in range(2000)]
        allowed = int(stats.binom.isf(1e-6, 2000, 0.025))
        assert stats.binom.sf(allowed, 2000, 0.06) > 0.99
        assert sum(e.low > truth + 1e-12 for e in estimates) <= allowed
        assert sum(e.high < truth - 1e-12 for e in estimates) <= allowed

    def test_naive_interval_would_be_caught(self, assert_covers):
        """Clopper-Pearson at the empirical threshold covers about 60 %: the test above has teeth."""
        rng = np.random.default_rng(10)

        def naive() -> Estimate:
            members, nonmembers = rng.normal(1, 1, 1000), rng.normal(0, 1, 1000)
            threshold = np.sort(nonmembers)[-11]
            return clopper_pearson(int((members > threshold).sum()), 1000)

        with pytest.raises(AssertionError, match="intervals miss"):
            assert_covers(naive, stats.norm.sf(stats.norm.isf(0.01) - 1))


class TestCorrelation:
    @staticmethod
    def normal_pair(rng: Rng, rho: float, n: int) -> tuple[np.ndarray, np.ndarray]:
        x = rng.normal(size=n)
        return x, rho * x + np.sqrt(1 - rho**2) * rng.normal(size=n)

    @pytest.mark.parametrize(("rho", "n"), [(0.0, 5), (0.0, 100), (0.5, 20), (0.95, 100), (-0.999, 12)])
    def test_pearson_covers(self, assert_covers, rho, n):
        """False alarm 1e-6 per row; 90 % is caught with probability above 0.9999."""
        rng = np.random.default_rng(12)
        assert_covers(lambda: pearson(*self.normal_pair(rng, rho, n)).estimate, rho)

    @pytest.mark.parametrize(("rho", "n"), [(0.0, 10), (0.0, 100), (0.5, 30), (0.9, 100), (-0.9, 8)])
    def test_spearman_covers(self, assert_covers, rho, n):
        """False alarm 1e-6 per row; 90 % is caught with probability above 0.9999."""
        rng = np.random.default_rng(13)
        # Rank correlation of a normal pair: 6 / pi asin(rho / 2), Pearson 1907.
        truth = 6 / np.pi * np.arcsin(rho / 2)
        assert_covers(lambda: spearman(*self.normal_pair(rng, rho, n)).estimate, truth)

    @pytest.mark.parametrize("method", [pearson, spearman])
    def test_p_values_of_unrelated_columns_are_uniform(self, method):
        """Null test: share below 0.05 among 2,000. False alarm 2e-6; a share of 0.10 is caught."""
        rng = np.random.default_rng(14)
        below = sum(method(rng.normal(size=30), rng.normal(size=30)).p_value < 0.05 for _ in range(2000))
        assert stats.binom.ppf(1e-6, 2000, 0.05) <= below <= stats.binom.isf(1e-6, 2000, 0.05)
