from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score, roc_curve

from leakgauge.statistics import (
    auc,
    clopper_pearson,
    delong_variances,
    resolvable_fpr,
    roc,
    tpr_at_fpr,
)

# Few distinct values, so that ties are the rule.
TIED = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=25)
WITH_INFINITIES = st.lists(st.sampled_from([-math.inf, -1.0, 0.0, 0.5, math.inf]), min_size=1, max_size=25)
BOTH = st.tuples(TIED, TIED)


def yes_no(n_members, members_called, n_nonmembers, nonmembers_called):
    return (
        np.repeat([1.0, 0.0], [members_called, n_members - members_called]),
        np.repeat([1.0, 0.0], [nonmembers_called, n_nonmembers - nonmembers_called]),
    )


def labels_and_scores(members, nonmembers):
    return np.repeat([1, 0], [len(members), len(nonmembers)]), np.concatenate([members, nonmembers])


class TestRoc:
    def test_equal_scores_are_one_diagonal_step(self):
        curve = roc([2.0] * 5, [2.0] * 7)
        assert curve.fpr.tolist() == curve.tpr.tolist() == [0.0, 1.0]

    @given(BOTH)
    def test_agrees_with_sklearn_on_ties(self, groups):
        fpr, tpr, thresholds = roc_curve(*labels_and_scores(*groups), drop_intermediate=False)
        curve = roc(*groups)
        np.testing.assert_allclose(curve.fpr, fpr, atol=1e-15)
        np.testing.assert_allclose(curve.tpr, tpr, atol=1e-15)
        np.testing.assert_array_equal(curve.thresholds[1:], thresholds[1:])

    @given(st.tuples(WITH_INFINITIES, WITH_INFINITIES))
    def test_every_point_is_reached_by_its_threshold(self, groups):
        """The law in the class documentation, by a loop, with infinite scores."""
        curve, (members, nonmembers) = roc(*groups), map(np.array, groups)
        for fpr, tpr, threshold in zip(curve.fpr, curve.tpr, curve.thresholds, strict=True):
            assert fpr == pytest.approx(np.mean(nonmembers >= threshold), abs=1e-15)
            assert tpr == pytest.approx(np.mean(members >= threshold), abs=1e-15)
        assert (curve.fpr[0], curve.tpr[0]) == (0.0, 0.0)
        assert (curve.fpr[-1], curve.tpr[-1]) == (1.0, 1.0)

    @given(BOTH)
    def test_depends_on_order_only(self, groups):
        curve, moved = roc(*groups), roc(*(np.exp(np.array(g) / 2) - 7 for g in groups))
        np.testing.assert_array_equal(curve.fpr, moved.fpr)
        np.testing.assert_array_equal(curve.tpr, moved.tpr)

    @pytest.mark.parametrize("function", [roc, auc, lambda m, n: tpr_at_fpr(m, n, 0.1)])
    def test_refuses_nothing_and_nan(self, function):
        with pytest.raises(ValueError, match=r"member_scores must not hold NaN, got 1; find out why"):
            function([0.1, math.nan], [0.2])
        with pytest.raises(ValueError, match="nonmember_scores must hold at least 1"):
            function([0.1], [])
        with pytest.raises(ValueError, match="nonmember_scores must have one dimension"):
            function([0.1], [[0.2]])


class TestAuc:
    def test_equal_scores_are_guessing(self):
        estimate = auc([2.0] * 30, [2.0] * 40)
        assert estimate.value == 0.5
        assert estimate.low < 0.5 < estimate.high

    def test_yes_no_attack(self):
        # 90 % of members and 10 % of non-members called member: (1 + 0.9 - 0.1) / 2.
        assert auc(*yes_no(100, 90, 100, 10)).value == 0.9
        assert auc(*yes_no(1000, 900, 70, 7)).value == pytest.approx(0.9, abs=1e-15)

    def test_quarter_circle(self):
        # Member scores sqrt(1 - u^2) against uniform ones: TPR = sqrt(f (2 - f)), so the area is pi / 4.
        grid = (np.arange(4000) + 0.5) / 4000
        assert auc(np.sqrt(1 - grid**2), grid).value == pytest.approx(math.pi / 4, abs=1e-4)

    @given(BOTH)
    def test_agrees_with_sklearn_and_with_the_curve(self, groups):
        value = auc(*groups).value
        assert value == pytest.approx(roc_auc_score(*labels_and_scores(*groups)), abs=1e-12)
        curve = roc(*groups)
        assert value == pytest.approx(np.trapezoid(curve.tpr, curve.fpr), abs=1e-12)

    @given(BOTH)
    def test_mirrors_when_the_groups_swap(self, groups):
        one, other = auc(*groups), auc(*groups[::-1])
        assert (one.value, one.low, one.high) == pytest.approx(
            (1 - other.value, 1 - other.high, 1 - other.low), abs=1e-12
        )

    @given(BOTH)
    def test_depends_on_order_only(self, groups):
        assert auc(*groups) == auc(*(np.exp(np.array(g) / 2) - 7 for g in groups))

    @given(st.tuples(WITH_INFINITIES, WITH_INFINITIES))
    def test_infinite_scores_are_scores(self, groups):
        finite = [np.clip(g, -9, 9) for g in groups]
        assert auc(*groups).value == auc(*finite).value

    def test_separated_groups_keep_their_doubt(self):
        """As wide as, or wider than, what 50 agreeing pairs can show: area^50 = 0.025."""
        perfect, inverted = auc([2.0] * 50, [1.0] * 50), auc([1.0] * 50, [2.0] * 50)
        assert perfect.value == perfect.high == 1.0
        assert inverted.value == inverted.low == 0.0
        assert perfect.low <= 0.025 ** (1 / 50)
        assert perfect.low > 0.85
        assert inverted.high == pytest.approx(1 - perfect.low)

    @given(st.tuples(*[st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=12)] * 2))
    def test_variance_against_the_quadratic_twin(self, groups):
        members, nonmembers = map(np.array, groups)
        wins = (members[:, None] > nonmembers) + 0.5 * (members[:, None] == nonmembers)
        expected = (
            np.var(wins.mean(axis=1), ddof=1) / len(members),
            np.var(wins.mean(axis=0), ddof=1) / len(nonmembers),
        )
        assert delong_variances(*groups) == pytest.approx(expected, abs=1e-12)

    def test_variance_by_hand(self):
        # Members 1, 3 against 0, 2: shares beaten 1/2, 1 and 1, 1/2 of members above; variance 1/8 each.
        assert delong_variances([1.0, 3.0], [0.0, 2.0]) == pytest.approx((1 / 16, 1 / 16))

    def test_variance_needs_two(self):
        with pytest.raises(ValueError, match=r"member_scores must hold at least 2 value\(s\), got 1"):
            delong_variances([1.0], [1.0, 2.0])

    def test_interval_is_that_of_brunner_and_munzel(self):
        """At confidence 1 - p one end is exactly 0.5, p from their test on the lengthened groups."""
        rng = np.random.default_rng(0)
        members, nonmembers = rng.normal(0.4, 2, 35).round(1), rng.normal(0, 1, 90).round(1)
        a, b = np.append(members, [-99, 99]), np.append(nonmembers, [-99, 99])
        p = stats.brunnermunzel(a, b, distribution="t").pvalue
        estimate = auc(members, nonmembers, confidence=1 - p)
        assert min(abs(estimate.low - 0.5), abs(estimate.high - 0.5)) < 1e-9

    def test_one_record_each_says_nothing(self):
        estimate = auc([1.0], [0.0])
        assert (estimate.low, estimate.high) == (0.0, 1.0)


def slow_tpr_at_fpr(members, nonmembers, fpr, alpha=0.05):
    """The definition, with loops and scipy's binomial law."""
    n, falling = len(nonmembers), sorted(nonmembers, reverse=True)

    def count_above(rank):
        if rank < 0:
            return 0
        return len(members) if rank >= n else sum(m > falling[rank] for m in members)

    above = max((j for j in range(n + 1) if stats.binom.cdf(j, n, fpr) <= alpha / 4), default=-1)
    below = min(i for i in range(n + 1) if stats.binom.sf(i, n, fpr) <= alpha / 4)
    best = max(
        (sum(m > t for m in members) for t in [*falling, math.inf] if sum(x > t for x in nonmembers) <= fpr * n),
    )
    low = clopper_pearson(count_above(above), len(members), confidence=1 - alpha / 2).low
    high = clopper_pearson(count_above(below), len(members), confidence=1 - alpha / 2).high
    return best / len(members), low, high


class TestTprAtFpr:
    def test_equal_scores_reach_nothing(self):
        estimate = tpr_at_fpr([1.0] * 200, [1.0] * 1000, 0.1)
        assert estimate.value == estimate.low == 0.0
        assert estimate.high < 0.03

    @given(
        st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=15),
        st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=60),
        st.sampled_from([0.003, 0.05, 0.1, 0.37, 0.5, 0.9]),
    )
    def test_against_the_slow_twin(self, members, nonmembers, fpr):
        estimate = tpr_at_fpr(members, nonmembers, fpr)
        expected = slow_tpr_at_fpr(members, nonmembers, fpr)
        assert (estimate.value, estimate.low, estimate.high) == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("k", range(1, 100))
    def test_a_rate_that_is_a_whole_number_of_records_is_used_in_full(self, k):
        """0.29 * 100 is 28.999999999999996 in floating point; 29 non-members may exceed the threshold."""
        scores = np.arange(100.0)
        assert tpr_at_fpr(scores, scores, k / 100).value == k / 100

    def test_never_claims_what_few_nonmembers_cannot_show(self):
        # All members above all 100 non-members, wanted at a false-positive rate of 0.1 %.
        estimate = tpr_at_fpr(np.ones(100), np.zeros(100), 0.001)
        assert (estimate.value, estimate.low, estimate.high) == (1.0, 0.0, 1.0)
        # No member above any: the upper end must not fall below what a lower threshold might reach.
        estimate = tpr_at_fpr(np.full(100, 0.5), np.append(np.ones(1), np.zeros(99)), 0.001)
        assert (estimate.value, estimate.low) == (0.0, 0.0)
        assert estimate.high > 0.04
        assert tpr_at_fpr([0.0], [1.0], 0.5).high == 1.0

    def test_perfect_attack_is_seen_with_enough_nonmembers(self):
        estimate = tpr_at_fpr(np.ones(1000), np.zeros(1000), 0.01)
        assert estimate.value == estimate.high == 1.0
        assert estimate.low > 0.99

    def test_inverted_attack(self):
        estimate = tpr_at_fpr(np.zeros(1000), np.ones(1000), 0.01)
        assert estimate.value == estimate.low == 0.0
        assert estimate.high < 0.01

    def test_infinite_scores_are_tied_not_lost(self):
        infinite = tpr_at_fpr([math.inf, math.inf, 0.0], [math.inf, 0.0, -math.inf] * 50, 0.4)
        finite = tpr_at_fpr([9.0, 9.0, 0.0], [9.0, 0.0, -9.0] * 50, 0.4)
        assert infinite == finite
        assert infinite.value == pytest.approx(2 / 3)

    @given(BOTH, st.floats(0.01, 0.98))
    def test_rises_with_the_rate_allowed(self, groups, fpr):
        one, more = tpr_at_fpr(*groups, fpr), tpr_at_fpr(*groups, fpr + 0.01)
        assert one.value <= more.value
        assert one.low <= more.low
        assert one.high <= more.high

    @given(BOTH, st.floats(0.01, 0.99))
    def test_depends_on_order_only(self, groups, fpr):
        moved = [np.exp(np.array(g) / 2) - 7 for g in groups]
        assert tpr_at_fpr(*groups, fpr) == tpr_at_fpr(*moved, fpr)

    @pytest.mark.parametrize("fpr", [0.0, 1.0, -0.1, math.nan])
    def test_refuses_a_rate_that_is_no_fraction(self, fpr):
        with pytest.raises(ValueError, match=r"fpr must be in \(0, 1\)"):
            tpr_at_fpr([1.0], [0.0], fpr)


def test_resolvable_fpr():
    assert resolvable_fpr(1000) == 0.01
    assert resolvable_fpr(171, minimum=1) == pytest.approx(0.005848, abs=1e-6)
    assert resolvable_fpr(5) == 2.0
    with pytest.raises(ValueError, match="n_nonmembers must be at least 1, got 0"):
        resolvable_fpr(0)
    with pytest.raises(ValueError, match="minimum must be at least 1, got 0"):
        resolvable_fpr(10, minimum=0)
