"""Choquette-Choo et al. 2021: robustness of labels to noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.neighbors import KNeighborsClassifier

from leakgauge.errors import ConfigError, DataError
from leakgauge.membership import noise_robustness
from leakgauge.models import LabelAccess


class Sign(LabelAccess):
    """Class 1 where the first column is above 0."""

    def labels(self, X):
        return (X[:, 0] > 0).astype(np.int64)


class Neighbour(LabelAccess):
    """The class of the nearest training record."""

    def __init__(self, X, y):
        self.model = KNeighborsClassifier(1).fit(X, y)

    def labels(self, X):
        return self.model.predict(X)


NUMERIC = np.array([False])

# No leak first.


def test_null_a_fixed_model_shows_no_advantage():
    """The border was not learned from anyone; 4,000 records, within 4 standard errors of 0.016 at most."""
    rng = np.random.default_rng(101)
    X = rng.normal(size=(4000, 1))
    kept = noise_robustness.steadiness(Sign(), X, (X[:, 0] > 0).astype(int), X, NUMERIC, seed=1, n_queries=10)
    called = noise_robustness.scores(kept) > 0
    assert 0.3 < called.mean() < 0.9
    assert called[:2000].mean() == pytest.approx(called[2000:].mean(), abs=4 * 0.016)


# Known answers.


def test_the_share_is_the_probability_of_staying_on_the_own_side():
    """Phi(x / noise) at x = 0.5, within 4 standard errors of 20,000 queries; and 0 for a record that is got wrong."""
    population = np.array([[-1.0], [1.0]])  # standard deviation 1
    found = noise_robustness.steadiness(
        Sign(), [[0.5], [0.5]], [1, 0], population, NUMERIC, seed=2, n_queries=20_000, noise=0.5
    )
    assert found == pytest.approx([norm.cdf(1.0), 0.0], abs=4 * 0.0026)


def test_categories_are_drawn_from_their_column():
    """A category is drawn anew half of the time and is then 1 in 3 of 4 cases: 0.5 + 0.5 * 0.75; within 4 errors."""
    population = np.array([[0.0], [1.0], [1.0], [1.0]])
    found = noise_robustness.steadiness(
        Sign(), [[1.0]], [1], population, ~NUMERIC, seed=3, n_queries=20_000, redrawn=0.5
    )
    assert found == pytest.approx([0.875], abs=4 * 0.0024)


def test_members_of_a_memorising_model_stand_firm():
    """1-NN and labels that no feature explains: advantage about 0.5 by the gap alone, and robustness keeps it."""
    rng = np.random.default_rng(104)
    X, y = rng.normal(size=(600, 3)), rng.integers(2, size=600)
    model = Neighbour(X[:300], y[:300])
    kept = noise_robustness.steadiness(model, X, y, X, np.zeros(3, bool), seed=4, noise=0.05)
    called = noise_robustness.scores(kept) > 0
    assert called[:300].mean() - called[300:].mean() > 0.35


# Edges.


def test_no_noise_leaves_the_gap_attack():
    X, y = np.array([[1.0], [-1.0], [2.0]]), np.array([1, 1, 1])
    kept = noise_robustness.steadiness(Sign(), X, y, X, NUMERIC, seed=0, noise=0)
    assert noise_robustness.scores(kept, threshold=0.5).tolist() == [0.5, -0.5, 0.5]


def test_the_seed_decides():
    X = np.random.default_rng(0).normal(size=(50, 1))
    first, again, other = (
        noise_robustness.steadiness(Sign(), X, np.ones(50, int), X, NUMERIC, seed=seed, n_queries=9)
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("wrong", [{"n_queries": 0}, {"noise": -1}, {"redrawn": 2}, {"seed": -1}], ids=str)
def test_bad_settings_are_refused(wrong):
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))} must be"):
        noise_robustness.steadiness(Sign(), [[0.0]], [0], [[0.0]], NUMERIC, **{"seed": 0, **wrong})


@pytest.mark.parametrize(
    ("labels", "population", "categorical"),
    [([0, 1], [[0.0]], NUMERIC), ([0], [[0.0, 1.0]], NUMERIC), ([0], [[0.0]], [0]), ([0], np.empty((0, 1)), NUMERIC)],
)
def test_bad_tables_are_refused(labels, population, categorical):
    with pytest.raises(DataError, match="got shape"):
        noise_robustness.steadiness(Sign(), [[0.0]], labels, population, categorical, seed=0)


@pytest.mark.parametrize(
    ("shares", "threshold", "error", "message"),
    [
        ([0.5], 1.0, ConfigError, "threshold must be"),
        ([1.5], 0.9, DataError, "shares in"),
        ([np.nan], 0.9, DataError, "shares in"),
        ([[0.5]], 0.9, DataError, "shape"),
    ],
)
def test_bad_shares_are_refused(shares, threshold, error, message):
    with pytest.raises(error, match=message):
        noise_robustness.scores(shares, threshold=threshold)
