"""Lists of exposed records: how many false ones, how many of the true ones?

Where a test repeats an audit 1,000 times and asks for a rate of at most 5 % it allows 86: a right method is failed
with probability below 1e-6, and one at 10 % passes with probability 0.08.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from leakgauge.statistics import (
    Dependence,
    benjamini_hochberg,
    benjamini_yekutieli,
    exposed_records,
    outside_p_values,
)

REPETITIONS, ALLOWED = 1000, 86
P_VALUES = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.5, 1.0])), min_size=1, max_size=40)


def exposed_by_wins(wins, games, **settings):
    """Records whose games were won more often than by a fair coin: a valid p-value for each."""
    return exposed_records(stats.binom.sf(np.asarray(wins) - 1, games, 0.5), **settings)


@pytest.mark.parametrize("dependence", Dependence)
class TestWithoutLeak:
    def test_coins_expose_nobody(self, dependence):
        """Any finding is false. False alarm below 1e-6; a rate of 10 % is caught with probability 0.92."""
        rng = np.random.default_rng(0)
        found = sum(
            exposed_by_wins(rng.binomial(40, 0.5, 200), 40, dependence=dependence).n_exposed > 0
            for _ in range(REPETITIONS)
        )
        assert found <= ALLOWED

    def test_records_that_share_their_luck(self, dependence):
        """Half of the records have the same games (positive dependence). Error rates as above."""
        rng = np.random.default_rng(1)

        def wins() -> np.ndarray:
            return np.concatenate([np.full(50, rng.binomial(40, 0.5)), rng.binomial(40, 0.5, 50)])

        found = sum(exposed_by_wins(wins(), 40, dependence=dependence).n_exposed > 0 for _ in range(REPETITIONS))
        assert found <= ALLOWED

    def test_no_games_expose_nobody(self, dependence):
        assert exposed_by_wins([0, 0, 0], [0, 0, 0], dependence=dependence).n_exposed == 0


def worst_case(rng: np.random.Generator, n: int, q: float) -> np.ndarray:
    """P-values, each uniform, that Benjamini-Hochberg takes for a finding as often as is possible.

    With k of them in the k-th interval of length q / n, for a k drawn with probability proportional to 1 / k, the
    k smallest are found. Guo and Rao 2008, "On control of the false discovery rate under no assumption of dependency".
    """
    reach = q * np.sum(1 / np.arange(1, n + 1))
    if rng.random() >= reach:
        return rng.uniform(q, 1, n)
    k = rng.choice(np.arange(1, n + 1), p=(1 / np.arange(1, n + 1)) / np.sum(1 / np.arange(1, n + 1)))
    p = rng.uniform(q, 1, n)
    p[rng.permutation(n)[:k]] = rng.uniform((k - 1) * q / n, k * q / n, k)
    return p


def test_the_worst_dependence_needs_yekutieli():
    """100 records, none exposed: Hochberg finds some in 26 % of audits, Yekutieli in at most 5 %.

    Fails a right method with probability below 1e-6, and misses the difference with probability below 1e-9.
    """
    rng = np.random.default_rng(2)
    draws = [worst_case(rng, 100, 0.05) for _ in range(REPETITIONS)]
    assert sum(exposed_records(p, dependence=Dependence.POSITIVE).n_exposed > 0 for p in draws) > 2 * ALLOWED
    assert sum(exposed_records(p).n_exposed > 0 for p in draws) <= ALLOWED


@pytest.mark.parametrize(("dependence", "least"), [(Dependence.UNKNOWN, 0.97), (Dependence.POSITIVE, 0.99)])
def test_exposed_records_are_found_and_false_ones_are_few(dependence, least):
    """40 of 200 records won at 0.85 in 40 games. Mean false share at most q = 0.1 up to 0.02, nine of its deviations.

    Power was seen at 0.988 and 0.999 (300 audits), with deviations of 0.001 and 0.0003.
    """
    rng = np.random.default_rng(3)
    chance = np.repeat([0.85, 0.5], [40, 160])
    false_share, power = [], []
    for _ in range(300):
        found = exposed_by_wins(rng.binomial(40, chance), 40, q=0.1, dependence=dependence)
        false_share.append(found.exposed[40:].sum() / max(1, found.n_exposed))
        power.append(found.exposed[:40].mean())
    assert np.mean(false_share) <= 0.1 + 0.02
    assert np.mean(power) > least


class TestTwins:
    @settings(max_examples=50)
    @given(p_values=P_VALUES)
    def test_yekutieli_agrees_with_statsmodels(self, p_values):
        expected = multipletests(p_values, method="fdr_by")[1]
        np.testing.assert_allclose(benjamini_yekutieli(p_values), expected, rtol=1e-12, atol=0)

    @given(p_values=P_VALUES, q=st.floats(0.01, 0.5))
    def test_against_the_step_up_definition(self, p_values, q):
        """Reject the k smallest for the largest k with p_(k) <= k q / (n c)."""
        n = len(p_values)
        for dependence, c in ((Dependence.POSITIVE, 1.0), (Dependence.UNKNOWN, sum(1 / i for i in range(1, n + 1)))):
            # Ties with the border are decided by rounding: keep away.
            rising = np.sort(p_values)
            borders = q * np.arange(1, n + 1) / (n * c)
            if np.any(np.isclose(rising, borders, rtol=1e-9, atol=0)):
                continue
            k = max((i + 1 for i in range(n) if rising[i] <= borders[i]), default=0)
            assert exposed_records(p_values, q=q, dependence=dependence).n_exposed == k


class TestByHand:
    def test_order_is_kept_and_the_strongest_come_first(self):
        found = exposed_by_wins([50, 100, 45, 90], 100)
        assert found.exposed.tolist() == [False, True, False, True]
        assert found.records.tolist() == [1, 3]
        assert found.n_exposed == 2
        np.testing.assert_array_equal(found.exposed, found.adjusted <= found.q)
        assert str(found) == "2 of 4 records exposed (false discovery rate 0.05, Benjamini-Yekutieli)"

    def test_losing_is_not_exposure(self):
        assert exposed_by_wins([0, 0, 0], 1000).n_exposed == 0

    def test_one_record_needs_no_correction(self):
        assert benjamini_yekutieli([0.03]).tolist() == [0.03]

    def test_unknown_dependence_costs_the_harmonic_number(self):
        p = [0.001, 0.01, 0.02]
        np.testing.assert_allclose(benjamini_yekutieli(p), np.array(benjamini_hochberg(p)) * (1 + 1 / 2 + 1 / 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: exposed_records([]), ValueError, "p_values must hold at least 1"),
        (lambda: exposed_records([math.nan]), ValueError, "must not hold NaN"),
        (lambda: exposed_records([2.0]), ValueError, r"p_values must be in \[0, 1\]"),
        (lambda: exposed_records([0.5], q=0.0), ValueError, r"q must be in \(0, 1\)"),
        (lambda: exposed_records([0.5], dependence="BH"), TypeError, "must be a Dependence, got 'BH'"),
    ],
)
def test_refuses(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_scores_like_those_from_outside_are_listed_as_seldom_as_promised():
    """2,000 lists at rate 0.1 with ties: listing anybody has probability at most 0.1; above 0.13 once in 10^5."""
    rng = np.random.default_rng(8)
    anybody = 0
    for _ in range(2000):
        scores, outside = rng.normal(size=60).round(1), rng.normal(size=80).round(1)
        found = exposed_records(outside_p_values(scores, outside), q=0.1, dependence=Dependence.POSITIVE)
        anybody += found.n_exposed > 0
    assert 0 < anybody / 2000 <= 0.13


def test_beside_those_who_stand_out_few_others_are_listed():
    """30 of 100 are exposed: of those listed at most 0.1 are others on average; standard error 0.003."""
    rng = np.random.default_rng(9)
    shares, hits = [], []
    for _ in range(1000):
        scores = rng.normal(size=100)
        scores[:30] += 4
        p_values = outside_p_values(scores, rng.normal(size=1000))
        listed = exposed_records(p_values, q=0.1, dependence=Dependence.POSITIVE).exposed
        shares.append(listed[30:].sum() / max(1, listed.sum()))
        hits.append(listed[:30].mean())
    assert np.mean(shares) <= 0.1 + 4 * 0.003
    assert np.mean(hits) > 0.9


@pytest.mark.parametrize("u", [0.05, 0.3, 0.7])
def test_outside_p_values_are_small_as_seldom_as_they_say(u):
    """400,000 scores in 4,000 games: above u by four standard errors of 0.002 once in 10^4."""
    rng = np.random.default_rng(10)
    small = [(outside_p_values(rng.normal(size=100), rng.normal(size=50)) <= u).mean() for _ in range(4000)]
    assert np.mean(small) <= u + 0.008
    np.testing.assert_allclose(outside_p_values([np.inf, -np.inf], [0.0, 1.0]), [1 / 3, 1.0])
