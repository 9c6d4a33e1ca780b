"""How stable exposures are: chance, certainty, ties, and intervals that cover."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from scipy.stats import beta

from leakgauge.comparing.stability import exposure, n_top, rank_correlation, top_overlap


def test_independent_exposures_overlap_by_chance() -> None:
    """400 pairs of independent exposures of 2,000 records: the mean overlap is 1 %, and the intervals cover.

    The number in common is hypergeometric with mean 0.2 and standard deviation 0.44, so that the mean overlap of 400
    is within 5 standard errors, 0.0055, of 0.01 but once in two million runs. The interval misses 0.01 where 2 or more
    are in common (Clopper and Pearson), with probability 0.0165: more than 20 of 400 misses are as rare as 1 in
    100,000, and a true miss rate of 0.1 is found with probability 0.9995.
    """
    rng = np.random.default_rng(0)
    found = [top_overlap(rng.random(2000), rng.random(2000), confidence=0.95) for _ in range(400)]
    assert np.mean([one.value for one in found]) == pytest.approx(0.01, abs=0.0055)
    assert sum(not one.low <= 0.01 <= one.high for one in found) <= 20


def test_ties_are_drawn_and_not_taken_by_place() -> None:
    """300 records of few distinct values: the expectation over random draws among those tied, by simulation."""
    rng = np.random.default_rng(1)
    one, other = rng.integers(0, 12, 300) / 12, rng.integers(0, 12, 300) / 12
    n, draws = n_top(300), []
    for _ in range(4000):
        tops = [set(np.lexsort((rng.random(300), -values))[:n]) for values in (one, other)]
        draws.append(len(tops[0] & tops[1]) / n)
    error = np.std(draws) / np.sqrt(len(draws))
    assert top_overlap(one, other, confidence=0.95).value == pytest.approx(np.mean(draws), abs=5 * error)


def test_equal_and_opposite_exposures() -> None:
    rising = np.arange(500.0)
    same, opposite = (top_overlap(rising, other, confidence=0.95) for other in (rising, -rising))
    assert (same.value, same.high, opposite.value, opposite.low) == (1, 1, 0, 0)
    assert same.low == pytest.approx(0.025 ** (1 / 5))  # Clopper and Pearson 1934: all of 5
    assert rank_correlation(rising, rising**3, confidence=0.95).value == pytest.approx(1)
    assert rank_correlation(rising, -rising, confidence=0.95).value == pytest.approx(-1)
    assert rank_correlation(rising, np.zeros(500), confidence=0.95) is None
    assert rank_correlation(rising[:3], rising[:3], confidence=0.95) is None


@pytest.mark.parametrize(("n_both", "n_in_common"), [(48, 16), (46, Fraction(46, 3)), (2, Fraction(2, 3)), (0, 0)])
def test_between_whole_numbers_in_common_the_interval_holds_those_of_both(n_both: int, n_in_common: Fraction) -> None:
    """Of 4,900 records 49 are the most exposed: by one measure a third of 147 that are tied, by the other ``n_both`` of
    these and others. Clopper and Pearson 1934 by quantiles of beta distributions.
    """
    one, other = np.zeros(4900), np.arange(4900.0)
    one[4900 - n_both :] = one[: 147 - n_both] = 1.0
    found = top_overlap(one, other, confidence=0.9)
    down, up = floor(n_in_common), ceil(n_in_common)
    assert found.value == pytest.approx(n_in_common / 49, abs=1e-12)
    assert found.low == pytest.approx(beta.ppf(0.05, down, 50 - down) if down else 0)
    assert found.high == pytest.approx(beta.ppf(0.95, up + 1, 49 - up))
    assert top_overlap(other, one, confidence=0.9) == found


@pytest.mark.parametrize(("n", "expected"), [(4, 1), (100, 1), (149, 1), (151, 2), (1000, 10)])
def test_one_per_cent_is_at_least_one_record(n: int, expected: int) -> None:
    assert n_top(n) == expected


def test_exposure_is_the_area_under_the_curve_of_one_record() -> None:
    """Against a loop over pairs, with ties and infinities."""
    rng = np.random.default_rng(2)
    scores = rng.integers(0, 5, (20, 30)).astype(float)
    scores[scores == 0], scores[scores == 4] = -np.inf, np.inf
    members = np.stack([rng.permutation(20) < 10 for _ in range(30)], axis=1)
    found = exposure(scores, members)
    for i in range(30):
        inside, outside = scores[members[:, i], i], scores[~members[:, i], i]
        pairs = [(a > b) + 0.5 * (a == b) for a in inside for b in outside]
        assert found[i] == pytest.approx(np.mean(pairs), abs=1e-12)
    assert exposure(np.where(members, 1.0, 0.0), members).tolist() == [1.0] * 30
    assert exposure(np.zeros((20, 30)), members).tolist() == [0.5] * 30
