"""Bertran et al. 2023: quantile regression."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.membership import population, quantile


def people(rng, n, gain):
    """Signals whose level depends on a column, raised by ``gain``; the second column says nothing."""
    features = rng.normal(size=(n, 2))
    return 4 * (features[:, 0] > 0) + gain + rng.normal(size=n), features


# No leak first; the coverage of intervals over audits is in tests/statistical/test_null_attacks.py.


def test_null_non_members_are_called_at_about_the_stated_rate():
    """20,000 non-members against 2,000 known ones; the regression may be off by 0.03, sampling by 0.003."""
    rng = np.random.default_rng(91)
    (own, X), (known, Z) = people(rng, 20_000, 0), people(rng, 2000, 0)
    found = quantile.scores(own, X, known, Z)
    assert np.mean(found > 0) == pytest.approx(0.2, abs=0.03)
    for half in (X[:, 0] > 0, X[:, 0] <= 0):  # one quantile for all would call 40 % of one half
        assert np.mean(found[half] > 0) == pytest.approx(0.2, abs=0.04)


def test_null_equal_signals_call_no_one():
    found = quantile.scores(np.full(5, 0.3), np.zeros((5, 1)), np.full(100, 0.3), np.zeros((100, 1)))
    assert found == pytest.approx(np.zeros(5), abs=1e-12)
    assert not (found > 0).any()


# Known answers.


def test_it_comes_near_the_best_attack_that_knows_the_levels():
    """A gain of 2 within either half gives TPR Phi(2 + Phi^-1(0.2)) = 0.877; the learned quantile may cost 0.05.

    The population attack, with one threshold for all, has about 0.53.
    """
    rng = np.random.default_rng(92)
    (own, X), (known, Z) = people(rng, 10_000, 2), people(rng, 2000, 0)
    best = norm.cdf(2 + norm.ppf(0.2))
    found = np.mean(quantile.scores(own, X, known, Z) > 0)
    assert found == pytest.approx(best, abs=0.05)
    assert np.mean(population.scores(-own, -known) > 0) < best - 0.25


def test_few_known_records_make_one_quantile_for_all():
    rng = np.random.default_rng(93)
    (own, X), (known, Z) = people(rng, 10, 0), people(rng, 30, 0)
    found = quantile.scores(own, X, known, Z)
    np.testing.assert_allclose(own - found, np.quantile(known, 0.8), atol=0.5)
    assert np.ptp(own - found) < 1e-9


def test_the_same_input_gives_the_same_scores():
    rng = np.random.default_rng(94)
    (own, X), (known, Z) = people(rng, 100, 0), people(rng, 200, 0)
    assert np.array_equal(quantile.scores(own, X, known, Z), quantile.scores(own, X, known, Z))


# Edges.


def test_bad_input_is_refused():
    one, column = [0.1], [[0.0]]
    with pytest.raises(ModelError, match="population_signals holds no records"):
        quantile.scores(one, column, [], column)
    with pytest.raises(ModelError, match=r"signals\[0\] is inf"):
        quantile.scores([np.inf], column, one, column)
    with pytest.raises(DataError, match=r"features must have shape \[records, features\] with 1 records.*\(2, 1\)"):
        quantile.scores(one, [[0.0], [1.0]], one, column)
    with pytest.raises(DataError, match=r"population_features\[0, 0\] is infinite"):
        quantile.scores(one, column, one, [[np.inf]])
    with pytest.raises(DataError, match="must have the 1 columns of features, got 2"):
        quantile.scores(one, column, one, [[0.0, 0.0]])
    with pytest.raises(ConfigError, match=r"significance must be in \(0, 1\), got 0"):
        quantile.scores(one, column, one, column, significance=0)
