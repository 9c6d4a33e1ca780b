"""Whose labels a mean is made of: leaves of regression trees and numbers of target encoders."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, OneHotEncoder, StandardScaler, TargetEncoder
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from leakgauge.auditing import Finding, ReleaseRule, Settings, Verdict, audit
from leakgauge.auditing.membership.findings import GAMES_TAIL_MEASURE
from leakgauge.auditing.membership.means import (
    MOST_IN_MEAN,
    scores_of_encodings,
    scores_of_means,
    sums_by_class,
    sums_of_leaves,
)
from leakgauge.auditing.membership.sums import scores_of_sums

pytestmark = pytest.mark.usefixtures("none_trained_without_each")

SETTINGS = Settings(n_shadows=32, n_influence=0, rule=ReleaseRule(dtp=None))


def the_mean(_: np.ndarray, mean: np.ndarray, __: np.ndarray) -> np.ndarray:
    return mean


def halves(n: int, seed: int) -> np.ndarray:
    members = np.zeros(n, dtype=bool)
    members[np.random.default_rng(seed).permutation(n)[: n // 2]] = True
    return members


def towns(n: int, seed: int, *, small: float = 0.3, together: int = 16) -> pd.DataFrame:
    """People of towns, some of which have few candidates, and a number of many digits."""
    rng = np.random.default_rng(seed)
    n_small = int(small * n) // together
    town = np.concatenate(
        [np.repeat(np.arange(n_small), together), n_small + rng.integers(0, 4, n - n_small * together)]
    )
    table = pd.DataFrame({"town": [f"t{one:03d}" for one in town], "x": rng.normal(size=n)})
    table["y"] = 50 + 3 * table.x + 8 * rng.normal(size=n) + 4 * rng.normal(size=n_small + 4)[town]
    return table.iloc[rng.permutation(n)].reset_index(drop=True)


def in_games(model: Any, table: pd.DataFrame) -> Finding:
    half = len(table) // 2
    result = audit(model, train=table[:half], holdout=table[half:], target="y", settings=SETTINGS)
    return next(one for one in result.findings if one.measure == GAMES_TAIL_MEASURE)


def test_a_mean_that_one_choice_has() -> None:
    labels = np.array([1.0, 2.5, 4.25, 8.125, 3.0])
    groups = np.array([0, 0, 0, 0, 1])
    told = np.array([labels[[0, 2]].mean(), 7.0])
    assert scores_of_means(labels, groups, told, the_mean).tolist() == [1, 0, 1, 0, 0]


def test_a_twin_by_hand() -> None:
    """Whole numbers: several choices have the mean, and each of them is as likely."""
    labels = np.random.default_rng(0).integers(0, 9, 8).astype(float)
    told = labels[[0, 3, 5]].mean()
    ways = [
        way for k in range(1, 9) for way in combinations(range(8), k) if abs(labels[list(way)].mean() - told) < 1e-9
    ]
    assert len(ways) > 1
    share = np.array([sum(place in way for way in ways) for place in range(8)]) / len(ways)
    found = scores_of_means(labels, np.zeros(8, dtype=int), np.array([told]), the_mean)
    np.testing.assert_allclose(found, np.maximum(0, 2 * share - 1))


def test_labels_of_equal_people_tell_nobody_apart() -> None:
    labels = np.array([1.0, 1.0, 2.0, 2.0])
    found = scores_of_means(labels, np.zeros(4, dtype=int), np.array([1.5]), the_mean)
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert found.max() < 0.5


def test_larger_groups_and_those_of_none_are_passed_over() -> None:
    labels = np.random.default_rng(0).normal(size=MOST_IN_MEAN + 2)
    groups = np.zeros(len(labels), dtype=int)
    groups[-1] = -1
    told = np.array([labels[:3].mean()])
    assert not scores_of_means(labels, groups, told, the_mean).any()
    groups[-2] = -1
    assert scores_of_means(labels, groups, told, the_mean).sum() == 3


@pytest.mark.parametrize("seed", range(3))
def test_leaves_name_training_records_alone(seed: int) -> None:
    rng, members = np.random.default_rng(seed), halves(400, seed)
    X, y = rng.normal(size=(400, 3)), rng.normal(size=400)
    tree = DecisionTreeRegressor(min_samples_leaf=4, random_state=0).fit(X[members], y[members])
    found = scores_of_sums(sums_of_leaves(tree, X, y), len(X))
    assert (found[members] == 1).sum() > 100
    assert not found[~members].any()


def test_null_leaves_of_other_records() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(800, 3)), rng.normal(size=800)
    tree = DecisionTreeRegressor(min_samples_leaf=4, random_state=0).fit(X[:400], y[:400])
    assert not scores_of_sums(sums_of_leaves(tree, X[400:], y[400:]), 400).any()


def test_leaves_that_hold_medians_are_passed_over() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.normal(size=100)
    tree = DecisionTreeRegressor(criterion="absolute_error", min_samples_leaf=4).fit(X, y)
    assert not scores_of_sums(sums_of_leaves(tree, X, y), len(X)).any()


@pytest.mark.parametrize("smooth", ["auto", 2.0, 0.0])
@pytest.mark.parametrize("as_frame", [True, False])
def test_numbers_of_categories_name_training_records_alone(smooth: float | str, as_frame: bool) -> None:
    table, members = towns(400, 0, together=12), halves(400, 0)
    X, y = table[["town"]] if as_frame else table[["town"]].to_numpy(), table.y.to_numpy()
    encoder = TargetEncoder(smooth=smooth)
    encoder.fit_transform(X[members], y[members])
    found = scores_of_encodings(encoder, X, [0.0], y, y[members])
    assert (found[members] == 1).sum() > 30
    assert not found[~members].any()


def test_labels_far_from_0_name_the_same_records() -> None:
    """Their means are rounded by more than a small share of how they vary."""
    table, members = towns(400, 0, together=12), halves(400, 0)
    X, named = table[["town"]], []
    for middle in (0.0, 3e8):
        y = table.y.to_numpy() + middle
        encoder = TargetEncoder(smooth=2.0)
        encoder.fit_transform(X[members], y[members])
        named.append(np.flatnonzero(scores_of_encodings(encoder, X, [0.0], y, y[members]) > 0.9).tolist())
    assert named[0] == named[1]
    assert len(named[0]) > 30


@pytest.mark.parametrize("n_classes", [2, 3])
def test_numbers_of_categories_by_classes(n_classes: int) -> None:
    """A class says little: nobody who was not trained on is sure, and what is likely leans to the members."""
    leaning = 0.0
    for seed in range(10):
        rng, members = np.random.default_rng(seed), halves(400, seed)
        X = np.repeat(np.arange(100), 4)[:, None].astype(float)
        y = np.array(["a", "b", "c"])[rng.integers(0, n_classes, 400)]
        encoder = TargetEncoder()
        encoder.fit_transform(X[members], y[members])
        found = scores_of_encodings(encoder, X, [0.0], y, y[members])
        assert not (found[~members] == 1).any()
        leaning += found[members].sum() - found[~members].sum()
    assert leaning > 100


def test_null_numbers_of_other_records() -> None:
    table, members = towns(800, 0, together=12), halves(800, 0)
    X, y = table[["town"]], table.y.to_numpy()
    encoder = TargetEncoder()
    encoder.fit_transform(X[members], y[members])
    moved = np.random.default_rng(1).permutation(y)
    assert not scores_of_encodings(encoder, X, [0.0], moved, y[members]).any()


def test_columns_that_outputs_do_not_depend_on() -> None:
    table, members = towns(400, 0, together=12), halves(400, 0)
    encoder = TargetEncoder()
    encoder.fit_transform(table[["town"]][members], table.y[members])
    same = table[["town"]].assign(town="t001")
    assert not scores_of_encodings(
        encoder, table[["town"]], [np.inf], table.y.to_numpy(), table.y[members].to_numpy()
    ).any()
    assert not scores_of_encodings(encoder, same, [0.0], table.y.to_numpy(), table.y[members].to_numpy()).any()


ENCODED = make_column_transformer((TargetEncoder(), ["town"]), remainder="passthrough")
ONE_HOT_AND_NUMBERS = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["town"]), remainder="passthrough"
)
ONE_HOT = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["town"]))
TREE = DecisionTreeRegressor(min_samples_leaf=6, max_leaf_nodes=40, random_state=0)


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(ENCODED, Ridge(1.0)),
        pytest.param(make_pipeline(ENCODED, StandardScaler(), Ridge(1.0)), marks=pytest.mark.slow),
        pytest.param(make_pipeline(ONE_HOT, TREE), marks=pytest.mark.slow),
        TransformedTargetRegressor(make_pipeline(ONE_HOT, TREE), transformer=StandardScaler()),
    ],
    ids=["encoder", "scaled", "tree", "target"],
)
def test_means_of_few_labels_fail(model: Any) -> None:
    found = in_games(model, towns(800, 0))
    assert found.verdict is Verdict.FAILS
    assert "leaves or means that few records decide" in found.reason


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_null_means_of_many_labels_pass(seed: int) -> None:
    model = make_pipeline(ENCODED, Ridge(1.0))
    assert in_games(model, towns(800, seed, small=0.0)).verdict is Verdict.PASSES


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(ENCODED, Binarizer(), Ridge(1.0)),
        make_pipeline(ENCODED, DecisionTreeRegressor(max_depth=1)),
        TransformedTargetRegressor(make_pipeline(ONE_HOT, TREE), func=np.asarray, inverse_func=np.round),
    ],
    ids=["bits", "stump", "rounded"],
)
def test_null_means_that_outputs_do_not_tell(model: Any, seed: int) -> None:
    """Models that hold slightly other numbers would answer the same."""
    table = towns(800, seed)
    assert "leaves or means that few records decide" not in in_games(model, table.assign(x=np.sign(table.x))).reason


@pytest.mark.long
@pytest.mark.parametrize(
    "last",
    [
        Ridge(1.0),
        LogisticRegression(),
        pytest.param(LinearRegression(), marks=pytest.mark.slow),
        pytest.param(RidgeCV(), marks=pytest.mark.slow),
        pytest.param(PoissonRegressor(alpha=1e-3), marks=pytest.mark.slow),
    ],
    ids=lambda one: type(one).__name__,
)
def test_coefficients_of_few_records_fail(last: Any) -> None:
    """Where so few people live in small towns that no attack by outputs about the record itself shows it."""
    table = towns(1000, 0, small=0.1, together=8)
    labels = table.y > table.y.median() if isinstance(last, LogisticRegression) else table.y
    found = in_games(make_pipeline(ONE_HOT_AND_NUMBERS, last), table.assign(y=labels))
    assert found.verdict is Verdict.FAILS
    assert "coefficients, leaves or means that few records decide" in found.reason.lower()


@pytest.mark.long
def test_a_town_that_columns_leave_out_fails() -> None:
    """All others are told apart from it."""
    table = towns(1000, 0, small=0.0)
    table.loc[np.random.default_rng(0).permutation(1000)[:40], "town"] = "a"
    columns = make_column_transformer((OneHotEncoder(drop="first"), ["town"]), remainder="passthrough")
    assert in_games(make_pipeline(columns, StandardScaler(), Ridge(1.0)), table).verdict is Verdict.FAILS


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("last", [Ridge(1.0), LogisticRegression()], ids=["ridge", "logistic"])
def test_null_coefficients_that_many_records_decide_pass(last: Any, seed: int) -> None:
    table = towns(1000, seed, small=0.0)
    labels = table.y > table.y.median() if isinstance(last, LogisticRegression) else table.y
    assert in_games(make_pipeline(ONE_HOT_AND_NUMBERS, last), table.assign(y=labels)).verdict is Verdict.PASSES


@pytest.mark.long
def test_bins_whose_edges_tell_the_probabilities_hide_no_coefficients() -> None:
    table = towns(1000, 0, small=0.1, together=8)
    table["y"] = np.where(table.y > table.y.median(), "high", "low")
    model = make_pipeline(ONE_HOT_AND_NUMBERS, LogisticRegression())
    rounded = replace(SETTINGS, released="binned")
    half = len(table) // 2
    result = audit(model, train=table[:half], holdout=table[half:], target="y", settings=rounded)
    found = next(one for one in result.findings if one.measure == GAMES_TAIL_MEASURE)
    assert "few records decide" in found.reason


class Town(TransformerMixin, BaseEstimator):
    """Knows a mean of each town."""

    def fit(self, X: pd.DataFrame, y: Any) -> Town:
        self.means_ = X.assign(y=y).groupby("town")[self.column].mean()
        return self

    column = "x"

    def of(self, X: pd.DataFrame) -> pd.Series:
        return X.town.map(self.means_).fillna(0.0)


class Filling(Town):
    """Fills it in."""

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        return X[["x"]].assign(x=X.x.fillna(self.of(X)))


class Centring(Town):
    """Takes it off."""

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(X.x.fillna(0.0) - self.of(X))[:, None]


class Adding(Town):
    """Adds it as a column."""

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        return np.column_stack([X.x.fillna(0.0), self.of(X)])


class Encoding(Town):
    """Likewise that of the labels, smoothed."""

    column = "y"

    def __init__(self, m: float = 20.0) -> None:
        self.m = m

    def fit(self, X: pd.DataFrame, y: Any) -> Encoding:
        of_town = pd.Series(np.asarray(y)).groupby(X.town.to_numpy())
        self.means_ = (of_town.sum() + self.m * np.mean(y)) / (of_town.count() + self.m)
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        return X[["x"]].fillna(0.0).assign(mean=self.of(X))


class TownsMean(RegressorMixin, BaseEstimator):
    """Answers with the mean label of the town."""

    def fit(self, X: pd.DataFrame, y: Any) -> TownsMean:
        self.middle_, self.means_ = np.mean(y), pd.Series(np.asarray(y)).groupby(X.town.to_numpy()).mean()
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return X.town.map(self.means_).fillna(self.middle_).to_numpy()


STEPS = [Filling(), *(pytest.param(one, marks=pytest.mark.slow) for one in (Centring(), Adding())), Encoding()]


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS, ids=lambda one: type(one).__name__)
def test_means_of_few_in_steps_of_the_users_own_fail(step: Any) -> None:
    table = towns(1000, 0, small=0.2, together=10)
    table["x"] = table.x.mask(np.random.default_rng(0).random(len(table)) < 0.05)
    assert in_games(make_pipeline(step, Ridge(1.0)), table).verdict is Verdict.FAILS


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS, ids=lambda one: type(one).__name__)
def test_null_means_of_many_in_steps_of_the_users_own(step: Any) -> None:
    found = in_games(make_pipeline(step, Ridge(1.0)), towns(1000, 0, small=0.0))
    assert found.verdict is not Verdict.FAILS


WITHIN = {
    "vote": VotingRegressor([("a", Ridge(1.0)), ("b", LinearRegression())]),
    "bag": BaggingRegressor(LinearRegression(), n_estimators=1, bootstrap=False),
    "search": GridSearchCV(Ridge(), {"alpha": [0.5, 1.0]}, cv=2),
    "rest": OneVsRestClassifier(LogisticRegression(solver="newton-cholesky", tol=1e-8)),
    "votes": VotingClassifier([("a", LogisticRegression(solver="newton-cholesky", tol=1e-8))], voting="soft"),
}


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ("vote", "rest") else pytest.mark.slow) for name in WITHIN]
)
def test_coefficients_of_models_within_others_fail(name: str) -> None:
    table = towns(1000, 0, small=0.1, together=8)
    if name in ("rest", "votes"):
        table["y"] = np.array(["low", "mid", "high"])[pd.qcut(table.y, 3, labels=False)]
    assert in_games(make_pipeline(ONE_HOT_AND_NUMBERS, WITHIN[name]), table).verdict is Verdict.FAILS


def few_amounts(n: int, seed: int) -> pd.DataFrame:
    """Columns of amounts that few people have, and classes that hardly depend on them."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 2)), columns=["x", "z"])
    for place in range(8):
        table[f"a{place}"] = 0.0
        table.loc[rng.choice(n, 16, replace=False), f"a{place}"] = rng.gamma(2.0, size=16)
    table["y"] = np.where(table.x + 2 * rng.normal(size=n) > 0, "yes", "no")
    return table


@pytest.mark.long
@pytest.mark.parametrize(
    "model", [GaussianNB(var_smoothing=1e-2), NearestCentroid()], ids=lambda one: type(one).__name__
)
def test_means_of_classes_in_columns_of_few_fail(model: Any) -> None:
    assert in_games(model, few_amounts(1000, 0)).verdict is Verdict.FAILS


def test_null_means_of_a_small_class_are_no_sums_that_outputs_tell() -> None:
    """They tell how classes differ: all people of both would have to be tried together."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), np.repeat(["a", "b"], [20, 100])
    assert not [*sums_by_class(GaussianNB().fit(X[::2], y[::2]), X, y, y[::2])]


@pytest.mark.long
def test_null_means_of_classes_in_columns_of_many() -> None:
    table = few_amounts(1000, 0)[["x", "z", "y"]]
    assert in_games(GaussianNB(var_smoothing=1e-2), table).verdict is Verdict.PASSES


@pytest.mark.long
def test_means_that_an_imputer_fills_in_for_few() -> None:
    """Lasting for a column that hardly anybody has."""
    table = towns(1000, 0, small=0.0)[["x", "y"]]
    for place in range(4):
        table[f"test{place}"] = np.nan
        rows = np.random.default_rng(place).choice(1000, 30, replace=False)
        table.loc[rows, f"test{place}"] = np.random.default_rng(place).normal(size=30)
    table["y"] = np.where(table.y > table.y.median(), "high", "low")
    model = make_pipeline(SimpleImputer(), LogisticRegression())
    found = in_games(model, table)
    assert found.verdict is Verdict.FAILS


@pytest.mark.long
def test_rows_of_persons_are_tried_together() -> None:
    people = towns(400, 0, small=0.2, together=17)
    table = pd.concat([people.assign(x=people.x + shift, y=people.y + 3 * shift) for shift in (0.0, 0.7, 1.9)])
    table["person"] = [f"p{one}" for one in range(400)] * 3
    inside = table.person.isin([f"p{one}" for one in range(200)])
    of_town = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((of_town, ["town"]), ("passthrough", ["x"]))
    result = audit(
        make_pipeline(columns, Ridge(1.0)),
        train=table[inside], holdout=table[~inside], target="y", persons="person", settings=SETTINGS,
    )  # fmt: skip
    found = next(one for one in result.findings if one.measure == GAMES_TAIL_MEASURE)
    assert found.verdict is Verdict.FAILS


@pytest.mark.long
def test_an_audit_leaves_the_users_step_as_it_was() -> None:
    table = towns(400, 0, small=0.2, together=10)
    model = make_pipeline(Adding(), Ridge(1.0)).fit(table[["town", "x"]][:200], table.y[:200])
    before = pickle.dumps(model)
    audit(model, train=table[:200], holdout=table[200:], target="y", settings=replace(SETTINGS, n_shadows=16))
    assert pickle.dumps(model) == before


ALIKE = {
    "neighbours": make_pipeline(ONE_HOT, KNeighborsRegressor(7)),
    "one tree": make_pipeline(ONE_HOT, ExtraTreesRegressor(1, bootstrap=False, min_samples_leaf=6, random_state=0)),
}


@pytest.mark.long
@pytest.mark.parametrize("name", ALIKE)
def test_equal_answers_about_few_fail(name: str) -> None:
    assert in_games(ALIKE[name], towns(1000, 0, small=0.2, together=14)).verdict is Verdict.FAILS


def to_cents(values: np.ndarray) -> np.ndarray:
    return np.round(values, 2)


@pytest.mark.long
def test_null_sums_that_outputs_do_not_tell_to_their_last_digits() -> None:
    """Of 32 people in a town many choices lead to the same cents."""
    table = towns(1000, 0, small=0.2, together=32)[["town", "y"]]
    table["y"] = 200_000 + 6_000 * (table.y - 50)
    within = make_pipeline(ONE_HOT, Ridge(1.0))
    model = TransformedTargetRegressor(within, func=np.asarray, inverse_func=to_cents, check_inverse=False)
    found = in_games(model, table)
    assert found.verdict is not Verdict.FAILS


@pytest.mark.long
def test_null_coefficients_beside_a_forest() -> None:
    """What both answer together tells no coefficient."""
    table = towns(600, 0, small=0.2, together=30)
    both = VotingRegressor([("a", Ridge(1.0)), ("b", RandomForestRegressor(50, min_samples_leaf=60, random_state=0))])
    assert "few records decide" not in in_games(make_pipeline(ONE_HOT_AND_NUMBERS, both), table).reason


@pytest.mark.long
def test_answers_of_the_users_own_model_that_are_means_of_few_labels() -> None:
    assert in_games(TownsMean(), towns(1000, 0, small=0.2, together=20)).verdict is Verdict.FAILS


@pytest.mark.long
def test_leaves_of_trees_with_random_thresholds() -> None:
    model = make_pipeline(ONE_HOT, ExtraTreeRegressor(min_samples_leaf=6, random_state=0))
    assert in_games(model, towns(800, 0)).verdict is Verdict.FAILS


def one_small_town(seed: int, above: float = 0.0) -> pd.DataFrame:
    """A town of 12 candidates, whose labels may be higher."""
    table = towns(600, seed, small=0.02, together=12)
    return table.assign(y=table.y + above * (table.town == "t000"))


def clipped(numbers: Any) -> Any:
    return np.clip(numbers, 45.0, 55.0)


BEHIND = make_column_transformer(
    (make_pipeline(TargetEncoder(smooth=2.0), FunctionTransformer(clipped)), ["town"]), remainder="passthrough"
)
MIXED = {
    "one number": make_pipeline(ENCODED, Ridge(1.0)),
    "one number, smoothed": make_pipeline(clone(ENCODED).set_params(targetencoder__smooth=5.0), Ridge(1.0)),
    "a step of one's own": make_pipeline(Encoding(), Ridge(1.0)),
    "two penalties": make_pipeline(ONE_HOT_AND_NUMBERS, VotingRegressor([("a", Ridge(1.0)), ("b", Ridge(30.0))])),
    "stacked": make_pipeline(ONE_HOT_AND_NUMBERS, StackingRegressor([("a", Ridge(3.0))], LinearRegression())),
    "clipped": make_pipeline(BEHIND, Ridge(1.0)),
}


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        one if one in ("one number", "two penalties", "stacked") else pytest.param(one, marks=pytest.mark.slow)
        for one in MIXED
    ],
)
def test_null_what_outputs_mix_with_other_numbers(name: str) -> None:
    """Of one small town they tell no more than its number times something, with something added, or not even that."""
    above = 100.0 if name == "clipped" else 0.0
    found = in_games(MIXED[name], one_small_town(0, above))
    assert found.verdict is not Verdict.FAILS


@pytest.mark.long
def test_null_a_coefficient_behind_a_calibration() -> None:
    model = CalibratedClassifierCV(LogisticRegression(tol=1e-8), ensemble=False)
    table = one_small_town(0)
    table["y"] = np.where(table.y > table.y.median(), "high", "low")
    assert in_games(make_pipeline(ONE_HOT_AND_NUMBERS, model), table).verdict is not Verdict.FAILS


@pytest.mark.long
def test_an_imputer_of_one_column_is_asked_about_its_gaps() -> None:
    """The other columns take none."""
    table = towns(600, 0, small=0.0)[["x", "y"]]
    table["test"] = np.where(np.arange(600) % 40 == 0, np.random.default_rng(0).normal(size=600), np.nan)
    columns = make_column_transformer((SimpleImputer(), ["test"]), remainder="passthrough")
    assert in_games(make_pipeline(columns, Ridge(1.0)), table).verdict is Verdict.FAILS
