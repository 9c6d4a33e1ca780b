from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from leakgauge.statistics import benjamini_hochberg, bonferroni_confidence

P_VALUES = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.5, 1.0])), min_size=1, max_size=40)


@given(p_values=P_VALUES)
def test_agrees_with_statsmodels(p_values):
    expected = multipletests(p_values, method="fdr_bh")[1]
    np.testing.assert_allclose(benjamini_hochberg(p_values), expected, rtol=1e-12, atol=0)


@given(p_values=P_VALUES)
def test_order_and_size_are_kept(p_values):
    adjusted = benjamini_hochberg(p_values)
    np.testing.assert_array_equal(benjamini_hochberg(p_values[::-1]), adjusted[::-1])
    assert np.all(adjusted >= p_values)
    assert np.all(adjusted <= 1.0)
    assert np.all(np.diff(adjusted[np.argsort(p_values)]) >= 0)


def test_one_test_needs_no_correction():
    assert benjamini_hochberg([0.03]).tolist() == [0.03]


@pytest.mark.parametrize(
    ("p_values", "message"),
    [
        ([], "p_values must hold at least 1"),
        ([0.1, math.nan], "p_values must not hold NaN"),
        ([0.1, 1.5], r"p_values must be in \[0, 1\], got 0.1 to 1.5"),
        ([-0.1], r"p_values must be in \[0, 1\]"),
    ],
)
def test_refuses(p_values, message):
    with pytest.raises(ValueError, match=message):
        benjamini_hochberg(p_values)


def test_bonferroni_confidence():
    assert bonferroni_confidence(0.95, 1) == pytest.approx(0.95, abs=1e-15)
    assert bonferroni_confidence(0.95, 10) == pytest.approx(0.995, abs=1e-15)
    with pytest.raises(ValueError, match="n_intervals must be at least 1, got 0"):
        bonferroni_confidence(0.95, 0)
    with pytest.raises(ValueError, match="confidence must be in"):
        bonferroni_confidence(95, 2)
