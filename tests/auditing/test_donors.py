"""Donors of an imputer of nearest neighbours, known from what it fills in."""

from __future__ import annotations

import math
import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.linear_model import BayesianRidge
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from leakgauge.auditing.membership.donors import WINDOW, scores_of_donors, scores_of_own_numbers


def drawn(n: int, d: int, seed: int, *, digits: int | None = None, missing: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X = X if digits is None else np.round(X, digits)
    return np.where(rng.random((n, d)) < missing, np.nan, X)


def halves(n: int, seed: int) -> np.ndarray:
    members = np.zeros(n, dtype=bool)
    members[np.random.default_rng(seed).permutation(n)[: n // 2]] = True
    return members


def every(X: np.ndarray) -> np.ndarray:
    return np.ones(X.shape[1], dtype=bool)


@pytest.mark.parametrize(
    ("weights", "n", "k", "missing"),
    [
        pytest.param(weights, n, k, missing, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, weights in enumerate(["uniform", "distance"])
        for j, (n, k, missing) in enumerate([(200, 5, 0.0), (500, 3, 0.05), (300, 1, 0.0), (300, 10, 0.1)])
    ],
)
def test_who_is_named_is_a_training_record(weights: str, n: int, k: int, missing: float) -> None:
    """Of random halves 15 training records at least are named, and no other."""
    for seed in range(5):
        X = drawn(n, 4, seed, missing=missing)
        members = halves(n, seed)
        found = scores_of_donors(KNNImputer(n_neighbors=k, weights=weights).fit(X[members]), X, every(X))
        assert found.min() >= 0
        assert found.max() <= 1
        assert not (found[~members] > 0.99).any()
        assert (found[members] > 0.99).sum() >= 15


@pytest.mark.parametrize("digits", [1, 0])
def test_numbers_that_many_have_tell_by_many_queries(digits: int) -> None:
    """Several choices have the same mean, and what is likely adds up: 57 of the 64 highest at least are members."""
    for seed in range(5):
        X, members = 10.0 * drawn(400, 4, seed), halves(400, seed)
        X = np.round(X, digits)
        found = scores_of_donors(KNNImputer().fit(X[members]), X, every(X))
        assert members[np.argsort(-found, kind="stable")[:64]].sum() >= 57


def test_a_twin_by_hand() -> None:
    """All choices of three among the nearest, one after another, for the column with most values."""
    X = drawn(100, 3, 0)
    X[:, 2] = np.round(X[:, 2], 2)
    members = halves(100, 0)
    imputer = KNNImputer(n_neighbors=3).fit(X[members])
    odds, elsewhere = np.zeros(100), sum(math.comb(WINDOW, few) for few in range(3)) / 2**WINDOW
    for row in range(100):
        asked = 0.9 * X[[row]] + 0.1 * X[[row - 1]]
        asked[0, 2] = np.nan
        filled = imputer.transform(asked)[0, 2]
        near = np.argsort(pairwise_distances(asked[:, :2], X[:, :2])[0], kind="stable")[:WINDOW]
        ways = list(combinations(range(WINDOW), 3))
        right = [way for way in ways if abs(X[near[list(way)], 2].mean() - filled) < 1e-9 * X[:, 2].std()]
        unknown = elsewhere * max(len(right), 1) / len(ways)
        for place, candidate in enumerate(near):
            total, inside = unknown, unknown / 2
            for way in right:
                chance = 0.5 ** (way[-1] + 1)
                total += chance
                inside += chance if place in way else chance / 2 if place > way[-1] else 0
            share = min(max(inside / total, 1e-4), 1 - 1e-4)
            odds[candidate] += math.log(share / (1 - share))
    expected = np.maximum(0.0, 2 / (1 + np.exp(-odds)) - 1)
    found = scores_of_donors(imputer, X, np.array([False, False, True]))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert (expected > 0.9).sum() > 10


def test_null_models_of_other_records_name_nobody() -> None:
    """By chance one choice of 4,368 among numbers of other records has the mean, about once in 100,000 queries."""
    named = [
        (
            scores_of_donors(KNNImputer().fit(drawn(200, 4, 1000 + seed)), drawn(200, 4, seed), np.ones(4, bool)) > 0
        ).sum()
        for seed in range(20)
    ]
    assert sum(named) <= 10  # 4,000 queries: less than 4 choices of two to five donors


def test_null_rounded_numbers_of_other_records() -> None:
    """Halves that no model was trained on: of 20 the mean difference is within four standard errors of 0."""
    apart = []
    for seed in range(20):
        others = KNNImputer().fit(np.round(10 * drawn(200, 4, 1000 + seed)))
        X, half = np.round(10 * drawn(200, 4, seed)), halves(200, seed)
        found = scores_of_donors(others, X, every(X))
        apart.append(found[half].mean() - found[~half].mean())
    assert abs(np.mean(apart)) < 4 * np.std(apart) / math.sqrt(20)
    assert np.std(apart) > 0


def test_other_marks_of_what_is_missing() -> None:
    X, members = drawn(300, 3, 0, missing=0.1), halves(300, 0)
    marked = np.where(np.isnan(X), -99.0, X)
    found = scores_of_donors(KNNImputer(missing_values=-99.0).fit(marked[members]), marked, every(X))
    np.testing.assert_array_equal(found, scores_of_donors(KNNImputer().fit(X[members]), X, every(X)))
    assert (found > 0.99).sum() >= 30


def test_what_is_not_told_is_not_asked() -> None:
    X = drawn(200, 4, 0)
    assert not scores_of_donors(KNNImputer().fit(X[:100]), X, np.zeros(4, bool)).any()


@pytest.mark.parametrize("k", [WINDOW, 40])
def test_means_of_many_are_passed_over(k: int) -> None:
    X = drawn(200, 3, 0)
    assert not scores_of_donors(KNNImputer(n_neighbors=k).fit(X[:100]), X, every(X)).any()


@pytest.mark.parametrize(
    "own", [{"weights": lambda apart: 1 / (1 + apart)}, {"metric": lambda a, b, **_: abs(a - b).sum()}]
)
def test_weights_and_distances_of_the_users_own_are_passed_over(own: dict[str, Any]) -> None:
    X = drawn(200, 3, 0)
    assert not scores_of_donors(KNNImputer(**own).fit(X[:100]), X, every(X)).any()


@pytest.mark.parametrize("keep", [False, True])
def test_columns_without_any_number_are_in_no_way(keep: bool) -> None:
    """The imputer leaves them out, or fills in zeros."""
    X = drawn(300, 5, 0)
    X[:, [1, 3]] = np.nan
    members = np.arange(300) % 2 == 0
    found = scores_of_donors(KNNImputer(keep_empty_features=keep).fit(X[members]), X, every(X))
    assert not (found[~members] > 0.99).any()
    assert (found[members] > 0.99).sum() >= 30


def test_whoever_has_no_number_gives_none() -> None:
    X = drawn(300, 3, 1)
    X[::3, 2] = np.nan
    members = np.random.default_rng(0).random(300) < 0.5
    found = scores_of_donors(KNNImputer().fit(X[members]), X, np.array([False, False, True]))
    assert not found[::3].any()
    assert (found > 0.99).sum() >= 30


# Models of columns by the others

MEMORIES = {
    "tree": DecisionTreeRegressor(random_state=0),
    "neighbour": KNeighborsRegressor(1),
    "weighted": KNeighborsRegressor(5, weights="distance"),
    "trees": ExtraTreesRegressor(5, random_state=0),
}


def iterative(model: Any, X: np.ndarray, **given: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two rounds are few
        return IterativeImputer(model, max_iter=2, random_state=0, **given).fit(X)


@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize("missing", [0.0, 0.02])
def test_who_gets_the_own_number_back_is_a_training_record(name: str, missing: float) -> None:
    for seed in range(2):
        X, members = drawn(300, 4, seed, missing=missing), halves(300, seed)
        found = scores_of_own_numbers(iterative(MEMORIES[name], X[members]), X, every(X))
        assert 0 <= found.min() <= found.max() <= 1
        assert not (found[~members] > 0.98).any()
        assert (found[members] > 0.98).sum() > 100


def test_numbers_that_many_have_say_less() -> None:
    """Whole numbers come back by chance as well; the more columns they come back in, the surer it is."""
    X, members = np.round(3 * drawn(400, 4, 0)), halves(400, 0)
    found = scores_of_own_numbers(iterative(MEMORIES["tree"], X[members]), X, every(X))
    assert members[np.argsort(-found, kind="stable")[:64]].sum() >= 62
    assert np.unique(found).size > 10


def test_null_models_that_remember_nothing() -> None:
    ahead = 0
    for seed in range(10):
        X, members = drawn(300, 4, seed), halves(300, seed)
        found = scores_of_own_numbers(iterative(BayesianRidge(), X[members]), X, every(X))
        ahead += members[np.argsort(-found, kind="stable")[:16]].sum()
    assert 60 <= ahead <= 100  # of 160


def test_null_models_of_other_records() -> None:
    X = drawn(300, 4, 0)
    found = scores_of_own_numbers(iterative(MEMORIES["tree"], drawn(300, 4, 1)), X, every(X))
    assert found.max() < 0.9


def test_own_numbers_with_another_mark_and_columns_without_any() -> None:
    X, members = drawn(300, 4, 0), halves(300, 0)
    plain = scores_of_own_numbers(iterative(MEMORIES["tree"], X[members]), X, every(X))
    marked = iterative(MEMORIES["tree"], X[members], missing_values=-99)
    np.testing.assert_array_equal(scores_of_own_numbers(marked, X, every(X)), plain)
    wider = np.column_stack([np.full(300, np.nan), X, np.ones(300)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the column without numbers
        found = scores_of_own_numbers(iterative(MEMORIES["tree"], wider[members]), wider, every(wider))
    assert (found[members] > 0.98).sum() > 100
    assert not scores_of_own_numbers(marked, X, np.zeros(4, dtype=bool)).any()
