"""Donors of an imputer of nearest neighbours, known from what it fills in."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.impute import KNNImputer
from sklearn.metrics import pairwise_distances

from leakgauge.auditing.membership.donors import WINDOW, scores_of_donors


def drawn(n: int, d: int, seed: int, *, digits: int | None = None, missing: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X = X if digits is None else np.round(X, digits)
    return np.where(rng.random((n, d)) < missing, np.nan, X)


def every(X: np.ndarray) -> np.ndarray:
    return np.ones(X.shape[1], dtype=bool)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize(("n", "k", "missing"), [(200, 5, 0.0), (500, 3, 0.05), (300, 1, 0.0), (300, 10, 0.1)])
def test_who_is_named_is_a_training_record(weights: str, n: int, k: int, missing: float) -> None:
    """Of random halves 30 training records at least are named, and no other."""
    for seed in range(5):
        X = drawn(n, 4, seed, missing=missing)
        members = np.zeros(n, dtype=bool)
        members[np.random.default_rng(seed).permutation(n)[: n // 2]] = True
        found = scores_of_donors(KNNImputer(n_neighbors=k, weights=weights).fit(X[members]), X, every(X))
        assert found.min() >= 0
        assert found.max() < 1
        assert not (found[~members] > 0).any()
        assert (found[members] > 0).sum() >= 30


def test_a_twin_by_hand() -> None:
    """All choices of three among the nearest, one after another, for the column with most values."""
    X = drawn(100, 3, 0)
    X[:, :2] = np.round(X[:, :2], 1)
    members = np.arange(100) % 2 == 0
    imputer = KNNImputer(n_neighbors=3).fit(X[members])
    columns = np.array([False, False, True])
    votes, against = np.zeros(100), np.zeros(100)
    for row in range(100):
        asked = 0.9 * X[[row]] + 0.1 * X[[row - 1]]
        asked[0, 2] = np.nan
        filled = imputer.transform(asked)[0, 2]
        apart = pairwise_distances(asked[:, :2], X[:, :2])[0]
        near = np.argsort(apart, kind="stable")[:WINDOW]
        chosen = [one for one in combinations(near, 3) if abs(X[list(one), 2].mean() - filled) < 1e-9 * X[:, 2].std()]
        if len(chosen) == 1:
            votes[list(chosen[0])] += 1
            furthest = apart[list(chosen[0])].max()
            against[[one for one in near if one not in chosen[0] and apart[one] < furthest - 1e-12]] += 1
    expected = np.where(against > 0, 0.0, 1 - 0.5**votes)
    np.testing.assert_allclose(scores_of_donors(imputer, X, columns), expected, atol=1e-12)
    assert (expected > 0).sum() > 10


def test_null_models_of_other_records_name_nobody() -> None:
    """By chance one choice of 4,368 among numbers of other records has the mean, about once in 100,000 queries."""
    named = [
        (
            scores_of_donors(KNNImputer().fit(drawn(200, 4, 1000 + seed)), drawn(200, 4, seed), np.ones(4, bool)) > 0
        ).sum()
        for seed in range(20)
    ]
    assert sum(named) <= 10  # 4,000 queries: less than 4 choices of two to five donors


def test_null_numbers_that_many_have_name_nobody() -> None:
    """Many choices have the same mean."""
    X = drawn(300, 4, 0, digits=0)
    assert not scores_of_donors(KNNImputer().fit(X[:150]), X, every(X)).any()


def test_what_is_not_told_is_not_asked() -> None:
    X = drawn(200, 4, 0)
    assert not scores_of_donors(KNNImputer().fit(X[:100]), X, np.zeros(4, bool)).any()


@pytest.mark.parametrize("k", [WINDOW, 40])
def test_means_of_many_are_passed_over(k: int) -> None:
    X = drawn(200, 3, 0)
    assert not scores_of_donors(KNNImputer(n_neighbors=k).fit(X[:100]), X, every(X)).any()


def test_weights_of_the_users_own_are_passed_over() -> None:
    X = drawn(200, 3, 0)
    imputer = KNNImputer(weights=lambda apart: 1 / (1 + apart)).fit(X[:100])
    assert not scores_of_donors(imputer, X, every(X)).any()


@pytest.mark.parametrize("keep", [False, True])
def test_columns_without_any_number_are_in_no_way(keep: bool) -> None:
    """The imputer leaves them out, or fills in zeros."""
    X = drawn(300, 5, 0)
    X[:, [1, 3]] = np.nan
    members = np.arange(300) % 2 == 0
    found = scores_of_donors(KNNImputer(keep_empty_features=keep).fit(X[members]), X, every(X))
    assert not (found[~members] > 0).any()
    assert (found[members] > 0).sum() >= 30


def test_whoever_has_no_number_gives_none() -> None:
    X = drawn(300, 3, 1)
    X[::3, 2] = np.nan
    members = np.random.default_rng(0).random(300) < 0.5
    found = scores_of_donors(KNNImputer().fit(X[members]), X, np.array([False, False, True]))
    assert not found[::3].any()
    assert (found > 0).sum() >= 30
