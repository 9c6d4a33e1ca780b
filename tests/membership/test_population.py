"""Ye et al. 2022: Attack P."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.membership import population

# No leak first.


@pytest.mark.parametrize(
    ("n_known", "significance"),
    [
        pytest.param(n_known, significance, marks=() if i % 2 == j else pytest.mark.slow)
        for i, n_known in enumerate([4, 9, 10, 50])
        for j, significance in enumerate([0.2, 0.5])
    ],
)
def test_null_no_more_non_members_are_called_than_stated(n_known, significance):
    """The rate over draws of the known non-members is floor(a (n + 1)) / (n + 1) exactly.

    20,000 draws, each with one further non-member; within 4 standard errors (0.014 at most), so a new seed fails 6
    times in 100,000.
    """
    losses = np.random.default_rng(81).exponential(size=(20_000, n_known + 1))
    called = np.mean([population.scores(row[:1], row[1:], significance=significance)[0] > 0 for row in losses])
    exact = np.floor(significance * (n_known + 1) + 1e-9) / (n_known + 1)
    assert exact <= significance + 1e-12
    assert called == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000))


def test_null_equal_losses_call_no_one():
    assert population.scores(np.full(5, 0.3), np.full(30, 0.3)).tolist() == [0.0] * 5


# Known answers.


def test_shifted_losses_give_the_known_true_positive_rate():
    """Losses N(0, 1) against N(1.5, 1): TPR at 0.2 is Phi(1.5 + Phi^-1(0.2)) = 0.745, within 4 errors of 0.0035."""
    rng = np.random.default_rng(82)
    found = population.scores(rng.normal(size=40_000), 1.5 + rng.normal(size=40_000))
    assert np.mean(found > 0) == pytest.approx(norm.cdf(1.5 + norm.ppf(0.2)), abs=0.014)


def test_the_threshold_is_a_loss_of_the_population():
    # By hand: floor(0.2 * 10) = 2, the second smallest.
    assert population.threshold([5, 3, 8, 1, 9, 2, 7, 4, 6.0]) == 2.0


# Edges.


def test_infinite_losses():
    found = population.scores([0.0, np.inf], [np.inf] * 10)
    assert found.tolist() == [np.inf, -np.inf]
    assert population.scores([0.0, np.inf], [1.0, np.inf] * 5).tolist() == [1.0, -np.inf]


def test_bad_input_is_refused():
    with pytest.raises(DataError, match=r"3 known non-members, too few for a false-positive rate of 0\.2; at least 4"):
        population.scores([0.1], [0.1, 0.2, 0.3])
    with pytest.raises(ModelError, match="population_losses holds no records"):
        population.scores([0.1], [])
    with pytest.raises(ModelError, match=r"population_losses\[0\] is nan"):
        population.scores([0.1], [np.nan])
    for significance in (0, 1, np.nan):
        with pytest.raises(ConfigError, match=r"significance must be in \(0, 1\)"):
            population.threshold([0.1], significance)
