"""Means of values that hang together within clusters."""

import numpy as np
import pytest

from leakgauge.statistics import clustered_mean, mean


def persons_of_rates(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """100 persons of 1 to 20 rows, each right at a rate of its own, uniform."""
    whose = np.repeat(np.arange(100), rng.integers(1, 21, 100))
    return (rng.random(len(whose)) < rng.random(100)[whose]).astype(float), whose


def test_coverage_by_person_and_by_row():
    """1,000 tables: 95 % intervals cover 0.94 by person and 0.62 by row, as in an own prototype.

    Of 1,000 draws a rate of 0.94 lies within 0.03 with a probability above 0.9999, and so does one of 0.62 within 0.07.
    """
    rng, covered = np.random.default_rng(0), np.zeros(2)
    for _ in range(1000):
        right, whose = persons_of_rates(rng)
        for place, found in enumerate((clustered_mean(right, whose), mean(right))):
            covered[place] += found.low <= 0.5 <= found.high
    assert covered[0] / 1000 == pytest.approx(0.94, abs=0.03)
    assert covered[1] / 1000 == pytest.approx(0.62, abs=0.07)


def test_single_values_are_the_mean_bit_for_bit():
    values = np.random.default_rng(0).normal(size=30)
    assert clustered_mean(values, np.random.default_rng(1).permutation(30)) == mean(values)


def test_the_formula_by_hand():
    """Totals 2, 0, 1 of 2, 1, 1 rows: p = 3/4, u = (1/2, -3/4, 1/4), se = sqrt(3/2 * 7/8) / 4; t(2) = 4.303."""
    found = clustered_mean([1, 1, 0, 1], ["a", "a", "b", "c"])
    half = 4.302652729911275 * np.sqrt(1.5 * 0.875) / 4
    assert (found.value, found.low, found.high) == pytest.approx((0.75, 0.75 - half, 0.75 + half))
    assert found.n == 3


def test_equal_values_are_no_certainty():
    found = clustered_mean([1.0] * 40, np.repeat(np.arange(10), 4), lower=0.0, upper=1.0)
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low < 0.8


def test_one_cluster_has_no_interval():
    with pytest.raises(ValueError, match="at least 2"):
        clustered_mean([1.0, 2.0], [0, 0])
