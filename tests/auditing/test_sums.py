"""Who of few candidates is in a sum: coefficients of categories and words, leaves of regression trees."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    GammaRegressor,
    Lars,
    Lasso,
    LassoCV,
    LassoLars,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    TweedieRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from leakgauge.auditing.membership.sums import (
    MOST_TOGETHER,
    Gradients,
    Penalty,
    Sum,
    by_units,
    few_together,
    of_few,
    scores_of_sums,
    sums_of_gradients,
)


def of(parts: np.ndarray, total: float, tolerance: float = 0.0) -> np.ndarray:
    rows = np.arange(len(parts))
    return scores_of_sums([Sum(rows, parts[:, None], np.array([total]), tolerance)], len(parts))


def test_a_sum_that_one_choice_has() -> None:
    assert of(np.array([1.0, 2.5, 4.25, 8.125]), 5.25).tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_a_twin_that_tries_all_choices(n: int) -> None:
    """Whole numbers, of which several choices have a sum: each is as likely."""
    parts = np.random.default_rng(n).integers(-4, 5, n).astype(float)
    ways = [way for k in range(1, n + 1) for way in combinations(range(n), k)]
    for total in range(-10, 11):
        right = [way for way in ways if parts[list(way)].sum() == total]
        share = np.array([sum(place in way for way in right) for place in range(n)]) / max(1, len(right))
        np.testing.assert_allclose(of(parts, total), np.maximum(0, 2 * share - 1))


def test_sums_of_forty_have_one_choice_and_of_more_none_is_looked_for() -> None:
    rng = np.random.default_rng(0)
    parts, chosen = rng.normal(size=MOST_TOGETHER), rng.random(MOST_TOGETHER) < 0.5
    assert (of(parts, parts[chosen].sum()) == chosen).all()
    assert not of(np.append(parts, 1.0), parts[chosen].sum()).any()


def test_sums_of_several_numbers_have_to_agree_in_each() -> None:
    parts = np.array([[1.0, 5.0], [2.0, 7.0], [3.0, 1.0]])
    found = scores_of_sums([Sum(np.arange(3), parts, np.array([3.0, 1.0]))], 3)
    assert found.tolist() == [0, 0, 1]  # the first two add up to 3 and 12


def test_a_sum_within_what_it_may_be_off() -> None:
    parts = np.array([1.0, 2.0, 4.0])
    assert of(parts, 3.1, 0.2).tolist() == [1, 1, 0]
    assert of(parts, 3.1, 0.05).tolist() == [1, 1, 0]  # within more than solvers mostly leave
    assert not of(parts, 3.1, 0.0005).any()


def test_sums_that_any_choice_may_have_say_nothing() -> None:
    assert of(np.random.default_rng(0).normal(size=30), 0.0, 100.0).tolist() == [0] * 30


def test_rows_of_a_person_are_in_a_sum_together() -> None:
    rng = np.random.default_rng(0)
    whose, rows = np.repeat(np.arange(30), 3), np.arange(90)
    parts, members = rng.normal(size=(90, 1)), rng.random(30) < 0.5
    total = parts[members[whose]].sum(axis=0)
    assert not scores_of_sums([Sum(rows, parts, total)], 90).any()
    assert (scores_of_sums(by_units([Sum(rows, parts, total)], whose), 90) == members[whose]).all()


def test_columns_of_few() -> None:
    X = np.zeros((200, 4))
    X[:, 1], X[:3, 1] = 7.0, 8.0
    X[:5, 2], X[:100, 3] = 1.0, np.arange(100)
    columns, usual = few_together(X)
    assert columns.tolist() == [1, 2, 3]
    assert usual[:3].tolist() == [0, 7, 0]
    assert few_together(X, constant=False)[0].tolist() == [2, 3, 1]


def learned(fitted: Any, X: np.ndarray, y: np.ndarray) -> Penalty:
    """What is known of gradients by a model of which the training records are."""
    own = Gradients.of(fitted, X, y, y)
    assert own is not None
    penalty = Penalty.learned(X, own, of_few(X))
    assert penalty is not None
    return penalty


class OwnRidge(Ridge):
    """Under another name."""


REGRESSORS = [
    Lars(),
    LassoLars(0.001),
    BayesianRidge(tol=1e-12, max_iter=1000),
    OwnRidge(2.0),
    LinearRegression(),
    LinearRegression(fit_intercept=False),
    Ridge(0.5),
    Ridge(0.5, solver="lsqr", tol=1e-10),
    RidgeCV([0.1, 1.0]),
    Lasso(0.001, tol=1e-10, max_iter=100_000),
    LassoCV(alphas=[0.001], tol=1e-10, max_iter=100_000),
    ElasticNet(0.002, l1_ratio=0.3, tol=1e-10, max_iter=100_000),
    PoissonRegressor(alpha=0.01, tol=1e-9, solver="newton-cholesky"),
    GammaRegressor(alpha=0.01, tol=1e-9, solver="newton-cholesky"),
    TweedieRegressor(power=1.5, alpha=0.01, tol=1e-9, solver="newton-cholesky"),
    TweedieRegressor(power=0, alpha=0.01, tol=1e-9, solver="newton-cholesky"),
]

CLASSIFIERS = [
    RidgeClassifier(),
    RidgeClassifier(class_weight="balanced"),
    RidgeClassifierCV([0.1, 1.0]),
    LogisticRegression(tol=1e-9, max_iter=10_000),
    LogisticRegression(solver="newton-cholesky", class_weight="balanced", tol=1e-9),
    LogisticRegressionCV(Cs=[0.5, 1.0], cv=3, solver="newton-cholesky", tol=1e-9),
]

OF_CLASSES = [
    *((one, 0) for one in REGRESSORS),
    *((one, n_classes) for one in CLASSIFIERS for n_classes in (2, 3)),
    (LogisticRegression(solver="liblinear", tol=1e-10, max_iter=10_000), 2),
]


def of_groups(n: int, seed: int, n_classes: int = 0, *, together: int = 6) -> tuple[Any, Any, Any]:
    """Records in groups, with two numbers, labels and a random half as members."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) // together
    X = np.column_stack([rng.normal(size=(n, 2)), group[:, None] == np.arange(n // together // 4)])
    score = X[:, 0] + rng.normal(size=n)
    y: Any = np.exp(score / 2)
    if n_classes:
        y = np.array(["a", "b", "c"])[np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)]
    members = np.zeros(n, dtype=bool)
    members[rng.permutation(n)[: n // 2]] = True
    return X, y, members


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "n_classes"), OF_CLASSES, ids=lambda one: str(one)[:40])
def test_coefficients_name_training_records_alone(model: Any, n_classes: int) -> None:
    X, y, members = of_groups(400, 0, n_classes)
    fitted = model.fit(X[members], y[members])
    other = np.random.default_rng(1).permutation(members)
    penalty = learned(clone(model).fit(X[other], y[other]), X[other], y[other])
    assert penalty.slack < 1e-4
    found = scores_of_sums(sums_of_gradients(X, Gradients.of(fitted, X, y, y[members]), penalty), len(X))
    in_groups = X[:, 2:][:, np.atleast_2d(fitted.coef_)[:, 2:].any(axis=0)].any(axis=1)  # a penalty may make some 0
    assert (found[members & in_groups] > 0.9).mean() > 0.8
    assert (found[~members] > 0.9).sum() <= 1
    assert not found[~in_groups].any()


def test_people_of_a_class_that_the_model_never_saw_are_no_members() -> None:
    X, y, members = of_groups(400, 0, 2)
    fitted = LogisticRegression(solver="newton-cholesky", tol=1e-9).fit(X[members], y[members])
    penalty, other = learned(fitted, X[members], y[members]), np.flatnonzero(~members)[::5]
    y = y.copy()
    y[other] = "z"
    found = scores_of_sums(sums_of_gradients(X, Gradients.of(fitted, X, y, y[members]), penalty), len(X))
    assert (found[members & X[:, 2:].any(axis=1)] > 0.9).mean() > 0.8
    assert not found[other].any()


def test_models_that_are_not_linear_have_no_gradients() -> None:
    X, y, _ = of_groups(400, 0, 2)
    radial = LinearDiscriminantAnalysis().fit(X, y)
    assert Gradients.of(LogisticRegression(l1_ratio=1.0, solver="liblinear").fit(X, y).sparsify(), X, y, y) is None
    assert Gradients.of(LinearRegression().fit(X[:, :3], y == "a"), X, y == "a", y == "a") is None
    own = Gradients.of(radial, X, y, y)
    assert own is not None  # a softmax of scores, which minimise another loss
    assert Penalty.learned(X, own, of_few(X)) is None


@pytest.mark.parametrize(
    "columns",
    [
        make_pipeline(OneHotEncoder(drop=[1], handle_unknown="ignore", sparse_output=False), StandardScaler()),
        make_pipeline(OneHotEncoder(sparse_output=False), PCA(n_components=5)),
    ],
    ids=["left out", "rotated"],
)
@pytest.mark.parametrize("constant", [True, False])
def test_a_group_that_columns_say_together(columns: Any, constant: bool) -> None:
    rng = np.random.default_rng(0)
    group = np.concatenate([np.repeat([1, 2], 20), rng.integers(3, 7, 360)])[:, None]
    X, y = np.column_stack([columns.fit_transform(group), rng.normal(size=(400, 2))]), rng.normal(size=400)
    X = X if constant else np.column_stack([X, np.ones(400)])
    members = rng.random(400) < 0.5
    fitted = Ridge(0.5, fit_intercept=constant).fit(X[members], y[members])
    gradients, few = Gradients.of(fitted, X, y, y[members]), of_few(np.column_stack([group, rng.normal(size=400)]))
    assert [rows.tolist() for rows in few[:2]] == [list(range(20)), list(range(20, 40))]
    penalty = learned(fitted, X[members], y[members])._replace(slack=1e-9)
    found = scores_of_sums(sums_of_gradients(X, gradients, penalty, few), 400)
    assert (found[:40] == members[:40]).all()
    assert not found[40:].any()


@pytest.mark.parametrize(
    "model", [Ridge(0.5), LogisticRegression(tol=1e-9, max_iter=10_000)], ids=["ridge", "logistic"]
)
def test_null_coefficients_of_other_records(model: Any) -> None:
    """Nobody asked about was trained on: with a sum of its own, no choice has it."""
    X, y, members = of_groups(400, 0, 2 * isinstance(model, LogisticRegression))
    fitted = model.fit(X[members], y[members])
    others = np.random.default_rng(1).permutation(np.flatnonzero(~members))
    moved = X.copy()
    moved[:, :2] += 1e-3  # nearly the same people, with other numbers
    penalty = learned(fitted, X[members], y[members])
    found = scores_of_sums(sums_of_gradients(moved, Gradients.of(fitted, moved, y, y[members]), penalty), len(X))
    assert not found[others].any()
