from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from leakgauge.statistics import pearson, spearman

METHODS = [(pearson, stats.pearsonr), (spearman, stats.spearmanr)]
PAIRS = st.lists(st.tuples(*[st.integers(-20, 20).map(float)] * 2), min_size=4, max_size=30).filter(
    lambda rows: len({x for x, _ in rows}) > 1 and len({y for _, y in rows}) > 1
)


def columns_with(r: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two columns whose correlation is r to rounding."""
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, n))
    x = x - x.mean()
    noise = noise - noise.mean()
    noise = noise - x * (x @ noise) / (x @ x)
    return x, r * x / np.linalg.norm(x) + math.sqrt(1 - r**2) * noise / np.linalg.norm(noise)


@pytest.mark.parametrize(("method", "oracle"), METHODS)
@given(rows=PAIRS)
def test_agrees_with_scipy(method, oracle, rows):
    x, y = np.array(rows).T
    expected, result = oracle(x, y), method(x, y)
    assert result.estimate.value == pytest.approx(expected.statistic, abs=1e-10)
    # Where |r| is 1 to rounding, 1 - r^2 is noise, there as here.
    if abs(expected.statistic) < 1 - 1e-9:
        assert result.p_value == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-300)


@pytest.mark.parametrize("r", [0.0, 0.3, -0.8, 0.999])
def test_pearson_interval_agrees_with_scipy(r):
    x, y = columns_with(r, 25)
    expected = stats.pearsonr(x, y).confidence_interval(0.9)
    estimate = pearson(x, y, confidence=0.9).estimate
    assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high), abs=1e-10)


@pytest.mark.parametrize(
    ("r", "p_value"),
    [  # Long et al. 2017, Tables 1 and 2: correlation over 100 targets, printed p-value.
        (0.4864, 2.89e-7),
        (0.5052, 8.29e-8),
        (0.7653, 1.85e-20),
        (0.9239, 1.16e-42),
        (0.8138, 7.78e-25),
        (0.4588, 1.57e-6),
        (0.5166, 3.76e-8),
    ],
)
def test_published_p_values(r, p_value):
    result = pearson(*columns_with(r, 100))
    assert result.estimate.value == pytest.approx(r, abs=1e-12)
    # The printed r has four digits: allow what half a unit in the last one changes.
    slack = abs(math.log(_p_value(r - 5e-5) / _p_value(r + 5e-5))) / 2 + 0.005
    assert abs(math.log(result.p_value / p_value)) < slack


def _p_value(r: float) -> float:
    return 2 * stats.t.sf(r * math.sqrt(98 / (1 - r**2)), 98)


def test_slip_in_the_published_table():
    # Long et al. 2017, Table 2, last row prints p = 0.9343 for -0.0008; the right p-value is 0.9937.
    assert pearson(*columns_with(-0.0008, 100)).p_value == pytest.approx(0.9937, abs=5e-5)


def test_tiny_p_values_survive():
    x, y = columns_with(0.99, 300)
    # Reference value: log of 2 sf by scipy's t law, far below what 1 - cdf can hold.
    t = 0.99 * math.sqrt(298 / (1 - 0.99**2))
    assert math.log(pearson(x, y).p_value) == pytest.approx(math.log(2) + stats.t.logsf(t, 298), rel=1e-6)


@pytest.mark.parametrize("method", [pearson, spearman])
@given(rows=PAIRS)
def test_symmetry(method, rows):
    x, y = np.array(rows).T
    one, swapped, mirrored = method(x, y), method(y, x), method(x, -y)
    assert one.estimate.value == pytest.approx(swapped.estimate.value, abs=1e-12)
    assert one.estimate.value == pytest.approx(-mirrored.estimate.value, abs=1e-12)
    assert one.estimate.low == pytest.approx(-mirrored.estimate.high, abs=1e-9)


@given(rows=PAIRS)
def test_ranks_depend_on_order_only(rows):
    x, y = np.array(rows).T
    assert spearman(x, y) == spearman(np.exp(x), y**3)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_scale_does_not_matter(scale):
    x, y = columns_with(0.6, 20)
    assert pearson(x * scale, y * scale).estimate.value == pytest.approx(0.6, abs=1e-12)


def test_perfect_order():
    x = np.arange(4.0)
    assert pearson(x, 2 * x).estimate.value == pytest.approx(1.0, abs=1e-15)
    assert pearson(x, -x).p_value < 1e-15
    ranks = spearman(x, x**3).estimate
    assert ranks.value == ranks.high == 1.0
    # Four records in order happen by chance once in 24: no proof of anything.
    assert ranks.low < 0.0
    assert spearman(x, -(x**3)).estimate.low == -1.0


@pytest.mark.parametrize("method", [pearson, spearman])
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], r"x must hold at least 4 value\(s\), got 3"),
        ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0, 5.0], "equal lengths, got 4 and 5"),
        ([1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0], "x must not be constant, got 1.0 4 times; .* report the"),
        ([1.0, 2.0, 3.0, 4.0], [0.1, 0.1, 0.1, 0.1], "y must not be constant"),
        ([1.0, 2.0, 3.0, math.inf], [1.0, 2.0, 3.0, 4.0], "x must be finite, got 1 infinite"),
        ([1.0, 2.0, 3.0, math.nan], [1.0, 2.0, 3.0, 4.0], "x must not hold NaN"),
    ],
)
def test_refuses(method, x, y, message):
    with pytest.raises(ValueError, match=message):
        method(x, y)
