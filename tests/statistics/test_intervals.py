from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from leakgauge.statistics import clopper_pearson, mean, wilson

COUNTS = st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
CONFIDENCES = st.floats(0.01, 0.9999)
METHODS = [(clopper_pearson, "beta"), (wilson, "wilson")]


@pytest.mark.parametrize(("method", "oracle"), METHODS)
@given(counts=COUNTS, confidence=CONFIDENCES)
def test_agrees_with_statsmodels(method, oracle, counts, confidence):
    low, high = proportion_confint(*counts, alpha=1 - confidence, method=oracle)
    estimate = method(*counts, confidence=confidence)
    assert estimate.value == counts[0] / counts[1]
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=1e-9)


def test_clopper_pearson_solves_its_two_tail_equations():
    estimate = clopper_pearson(7, 50, confidence=0.9)
    # Clopper & Pearson 1934: each tail has probability (1 - 0.9) / 2 at the end of the interval.
    assert stats.binom.sf(6, 50, estimate.low) == pytest.approx(0.05)
    assert stats.binom.cdf(7, 50, estimate.high) == pytest.approx(0.05)


def test_no_success_in_n_trials():
    # (1 - high)^100 = 0.025, solved by hand.
    assert clopper_pearson(0, 100).high == pytest.approx(1 - 0.025 ** (1 / 100), abs=1e-12)
    assert clopper_pearson(0, 100).low == 0.0
    # Wilson at 0: z^2 / (n + z^2) with z = 1.9599639845.
    assert wilson(0, 100).high == pytest.approx(1.9599639845**2 / (100 + 1.9599639845**2), abs=1e-9)


def test_one_trial_says_little():
    assert clopper_pearson(1, 1).low == pytest.approx(0.025)
    assert clopper_pearson(1, 1).high == 1.0


@pytest.mark.parametrize(("method", "_oracle"), METHODS)
@given(counts=COUNTS, confidence=CONFIDENCES)
def test_mirrors_when_successes_and_failures_swap(method, _oracle, counts, confidence):
    k, n = counts
    one, other = method(k, n, confidence=confidence), method(n - k, n, confidence=confidence)
    assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low), abs=1e-9)


@pytest.mark.parametrize(("method", "_oracle"), METHODS)
@given(n=st.integers(1, 200), confidence=CONFIDENCES)
def test_rises_with_successes(method, _oracle, n, confidence):
    estimates = [method(k, n, confidence=confidence) for k in range(n + 1)]
    for end in ("low", "high"):
        assert np.all(np.diff([getattr(e, end) for e in estimates]) > 0)
    assert estimates[0].low == 0.0
    assert estimates[-1].high == 1.0


@pytest.mark.parametrize(("method", "_oracle"), METHODS)
def test_more_confidence_is_wider(method, _oracle):
    widths = [method(3, 40, confidence=c).half_width for c in (0.5, 0.9, 0.99, 0.9999)]
    assert widths == sorted(widths)


@pytest.mark.parametrize(("method", "_oracle"), METHODS)
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, 0), ValueError, r"n must be at least 1, got 0; .* 'cannot tell'"),
        ((-1, 5), ValueError, r"successes must be in \[0, n = 5\], got -1; pass counts"),
        ((6, 5), ValueError, r"successes must be in \[0, n = 5\], got 6"),
        ((0.5, 5), TypeError, "float"),
    ],
)
def test_refuses_impossible_counts(method, _oracle, arguments, error, message):
    with pytest.raises(error, match=message):
        method(*arguments)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0, math.nan])
@pytest.mark.parametrize("method", [lambda **k: clopper_pearson(1, 2, **k), lambda **k: wilson(1, 2, **k)])
def test_refuses_a_confidence_that_is_no_fraction(method, confidence):
    with pytest.raises(ValueError, match=r"confidence must be in \(0, 1\)"):
        method(confidence=confidence)


class TestMean:
    @given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30), CONFIDENCES)
    def test_agrees_with_scipy(self, values, confidence):
        if len(set(values)) == 1 or np.std(values) < 1e-3:
            return
        low, high = stats.t.interval(confidence, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
        estimate = mean(values, confidence=confidence)
        assert (estimate.low, estimate.high) == pytest.approx((low, high), rel=1e-6, abs=1e-6)

    def test_values_beyond_a_bound_by_rounding_count_as_at_it(self):
        assert mean([1 + 1e-15, 1.0, -1e-16, 0.5], lower=0.0, upper=1.0) == mean(
            [1.0, 1.0, 0.0, 0.5], lower=0.0, upper=1.0
        )
        assert mean([1e6, -1e-4], lower=0.0).value == 5e5
        with pytest.raises(ValueError, match=r"in \[lower, upper\] = \[0.0, 1.0\], got 0.5 to 1.00000001"):
            mean([1 + 1e-8, 0.5], lower=0.0, upper=1.0)

    def test_is_clipped_to_what_is_possible(self):
        estimate = mean([0.0, 0.0, 0.1], lower=0.0, upper=1.0)
        assert estimate.low == 0.0
        assert mean([0.0, 0.0, 0.1]).low < 0.0

    def test_equal_values_without_bounds_say_nothing(self):
        estimate = mean([2.5] * 10)
        assert (estimate.value, estimate.low, estimate.high) == (2.5, -math.inf, math.inf)

    def test_equal_values_with_bounds_leave_room_for_the_unseen(self):
        estimate = mean([0.25] * 21, lower=0.0, upper=1.0)
        unseen = 1 - 0.05 ** (1 / 20)  # what 20 further draws miss 5 times in 100
        assert estimate.low == pytest.approx(0.25 * (1 - unseen))
        assert estimate.high == pytest.approx(0.25 + unseen * 0.75)

    @pytest.mark.parametrize(
        ("values", "bounds", "message"),
        [
            ([], {}, r"values must hold at least 2 value\(s\), got 0"),
            ([1.0], {}, r"at least 2 value\(s\), got 1; add records"),
            ([1.0, math.nan], {}, r"values must not hold NaN, got 1"),
            ([1.0, math.inf], {}, r"values must be finite and in \[lower, upper\]"),
            ([1.0, 2.0], {"upper": 1.5}, r"in \[lower, upper\] = \[-inf, 1.5\], got 1.0 to 2.0"),
            ([[1.0, 2.0]], {}, r"values must have one dimension, got shape \(1, 2\)"),
        ],
    )
    def test_refuses(self, values, bounds, message):
        with pytest.raises(ValueError, match=message):
            mean(values, **bounds)
