from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from leakgauge.statistics import benjamini_hochberg, bonferroni_confidence, holm

METHODS = [(holm, "holm"), (benjamini_hochberg, "fdr_bh")]
P_VALUES = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.5, 1.0])), min_size=1, max_size=40)


@pytest.mark.parametrize(("method", "oracle"), METHODS)
@settings(max_examples=20)  # Holm takes statsmodels 50 ms a call.
@given(p_values=P_VALUES)
def test_agrees_with_statsmodels(method, oracle, p_values):
    expected = multipletests(p_values, method=oracle)[1]
    np.testing.assert_allclose(method(p_values), expected, rtol=1e-12, atol=0)


@given(p_values=P_VALUES, alpha=st.floats(0.001, 0.5))
def test_holm_against_its_step_down_definition(p_values, alpha):
    """Holm 1979: reject in rising order while p <= alpha / (tests left)."""
    found = np.zeros(len(p_values), dtype=bool)
    for left, i in zip(range(len(p_values), 0, -1), np.argsort(p_values, kind="stable"), strict=True):
        if left * p_values[i] > alpha:
            break
        found[i] = True
    np.testing.assert_array_equal(holm(p_values) <= alpha, found)


def test_holm_keeps_its_promise_without_any_leak():
    """20 tests without a finding, 2,000 times: any finding at 5 % in at most 149; false alarm 1e-6."""
    rng = np.random.default_rng(0)
    assert sum(holm(rng.random(20)).min() <= 0.05 for _ in range(2000)) <= 149


@pytest.mark.parametrize(("method", "_oracle"), METHODS)
@given(p_values=P_VALUES)
def test_order_and_size_are_kept(method, _oracle, p_values):
    adjusted = method(p_values)
    np.testing.assert_array_equal(method(p_values[::-1]), adjusted[::-1])
    assert np.all(adjusted >= p_values)
    assert np.all(adjusted <= 1.0)
    assert np.all(np.diff(adjusted[np.argsort(p_values)]) >= 0)


@pytest.mark.parametrize(("method", "_oracle"), METHODS)
def test_one_test_needs_no_correction(method, _oracle):
    assert method([0.03]).tolist() == [0.03]


@pytest.mark.parametrize(("method", "_oracle"), METHODS)
@pytest.mark.parametrize(
    ("p_values", "message"),
    [
        ([], "p_values must hold at least 1"),
        ([0.1, math.nan], "p_values must not hold NaN"),
        ([0.1, 1.5], r"p_values must be in \[0, 1\], got 0.1 to 1.5"),
        ([-0.1], r"p_values must be in \[0, 1\]"),
    ],
)
def test_refuses(method, _oracle, p_values, message):
    with pytest.raises(ValueError, match=message):
        method(p_values)


def test_bonferroni_confidence():
    assert bonferroni_confidence(0.95, 1) == pytest.approx(0.95, abs=1e-15)
    assert bonferroni_confidence(0.95, 10) == pytest.approx(0.995, abs=1e-15)
    with pytest.raises(ValueError, match="n_intervals must be at least 1, got 0"):
        bonferroni_confidence(0.95, 0)
    with pytest.raises(ValueError, match="confidence must be in"):
        bonferroni_confidence(95, 2)
