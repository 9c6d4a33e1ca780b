"""Steps of the user's own that clip to numbers of single training records, or fill these in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakgauge.auditing import AuditResult, ReleaseRule, Settings, Verdict, audit
from leakgauge.auditing.membership.findings import GAMES_TAIL_MEASURE
from leakgauge.auditing.membership.own_steps import _fractions, is_own, scores_of_own
from leakgauge.auditing.membership.shares import shares
from leakgauge.auditing.membership.stored import STORED
from leakgauge.inspecting.records_seen import RecordsSeen

SETTINGS = Settings(n_shadows=32, n_influence=0, rule=ReleaseRule(dtp=None))


class Step(TransformerMixin, BaseEstimator):
    """What they have in common."""

    def fit(self, X: Any, y: Any = None) -> Step:
        self.n_features_in_ = X.shape[1]
        self.learn(pd.DataFrame(X))
        return self

    def learn(self, X: pd.DataFrame) -> None:
        raise NotImplementedError


class Winsoriser(Step):
    """Clips to quantiles."""

    def __init__(self, low: float = 0.01, high: float = 0.99) -> None:
        self.low, self.high = low, high

    def learn(self, X: pd.DataFrame) -> None:
        self.low_, self.high_ = X.quantile(self.low).to_numpy(), X.quantile(self.high).to_numpy()

    def transform(self, X: Any) -> np.ndarray:
        return np.clip(np.asarray(X, dtype=float), self.low_, self.high_)


class PerCent(Winsoriser):
    """The same with percentiles, in a dictionary."""

    def __init__(self, limits: tuple[float, float] = (2.0, 98.0)) -> None:
        self.limits = limits

    def learn(self, X: pd.DataFrame) -> None:
        self.ends_ = {name: tuple(np.nanpercentile(X[name], self.limits)) for name in X}

    def transform(self, X: Any) -> np.ndarray:
        table = pd.DataFrame(X)
        return np.column_stack([table[name].clip(*self.ends_[name]) for name in table])


class Extremes(Step):
    """Clips to the least and the largest, which it holds in a frame."""

    def learn(self, X: pd.DataFrame) -> None:
        self.ends_ = X.agg(["min", "max"])

    def transform(self, X: Any) -> np.ndarray:
        return pd.DataFrame(X).clip(self.ends_.loc["min"], self.ends_.loc["max"], axis=1).to_numpy()


class MedianOfGroup(Step):
    """Fills in the median of a group, which it drops."""

    def learn(self, X: pd.DataFrame) -> None:
        self.middle_ = X.groupby("group").median()

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        own = self.middle_.reindex(X["group"]).set_index(X.index)
        return X.drop(columns="group").fillna(own).to_numpy()


class MinMax(Step):
    """A line."""

    def learn(self, X: pd.DataFrame) -> None:
        self.low_, self.high_ = X.min().to_numpy(), X.max().to_numpy()

    def transform(self, X: Any) -> np.ndarray:
        return (np.asarray(X, dtype=float) - self.low_) / (self.high_ - self.low_)


class Remembering(Winsoriser):
    """Clips to public limits, and holds extremes that nothing depends on."""

    def __init__(self, limit: float = 2.0) -> None:
        self.limit = limit

    def learn(self, X: pd.DataFrame) -> None:
        self.seen_ = X.agg(["min", "max"]).to_numpy()

    def transform(self, X: Any) -> np.ndarray:
        return np.clip(np.asarray(X, dtype=float), -self.limit, self.limit)


class Choosy(Winsoriser):
    """Takes nothing that is far away or missing."""

    def transform(self, X: Any) -> np.ndarray:
        table = np.asarray(X, dtype=float)
        if not (np.abs(table) < 50).all():
            raise ValueError("no such records")
        return super().transform(table)


def people(n: int, *, seed: int = 0, groups: bool = False, digits: int | None = None) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    table = pd.DataFrame(X if digits is None else np.round(X, digits), columns=[f"c{i}" for i in range(8)])
    if groups:
        table["group"] = rng.choice(["a", "b", "c"], n)
        table["c1"] = table["c1"].mask(rng.random(n) < 0.1)
    table["y"] = np.where(X[:, 0] + rng.normal(size=n) > 0, "yes", "no")
    return table


def audited(model: Any, table: pd.DataFrame) -> AuditResult:
    half = len(table) // 2
    return audit(model, train=table[:half], holdout=table[half:], target="y", settings=SETTINGS)


def told_by(result: AuditResult) -> str:
    lira = next(one for one in result.attacks if one.name == "lira")
    assert lira.games is not None
    return lira.games.tail_by


@pytest.mark.parametrize(
    "step", [Winsoriser(), PerCent(), Extremes(), MedianOfGroup()], ids=lambda one: type(one).__name__
)
def test_whose_number_it_is_is_told(step: Step) -> None:
    table = people(600, groups=isinstance(step, MedianOfGroup))
    result = audited(make_pipeline(step, StandardScaler(), LogisticRegression(C=0.1)), table)
    found = next(one for one in result.findings if one.measure == GAMES_TAIL_MEASURE)
    assert found.verdict is Verdict.FAILS
    assert told_by(result) == STORED


@pytest.mark.parametrize(
    ("steps", "digits"),
    [
        ((MinMax(), LogisticRegression(C=0.1)), None),
        ((Remembering(), LogisticRegression(C=0.1)), None),
        ((Winsoriser(), LogisticRegression(C=0.1)), 0),
        ((Choosy(), LogisticRegression(C=0.1)), None),
    ],
    ids=["a line", "held without need", "numbers that many have", "takes no queries"],
)
def test_null_nobody_is_told(steps: Any, digits: int | None) -> None:
    """No output depends on the numbers, or many records have them."""
    result = audited(make_pipeline(*steps), people(600, digits=digits))
    found = next(one for one in result.findings if one.measure == GAMES_TAIL_MEASURE)
    assert found.verdict is Verdict.PASSES
    assert digits is not None or told_by(result) != STORED


def test_null_a_forest_does_not_tell_numbers_to_the_last_digit() -> None:
    forest = RandomForestClassifier(50, min_samples_leaf=60, random_state=0)
    assert told_by(audited(make_pipeline(Extremes(), forest), people(600))) != STORED


def test_who_is_named_is_a_training_record() -> None:
    """Of each of 8 columns two members are named at either end, of 10 random halves, and hardly anybody else."""
    X = people(400).drop(columns="y")
    seen = RecordsSeen(X, np.zeros(400), np.arange(400))
    right = wrong = 0
    for seed in range(10):
        members = np.random.default_rng(seed).permutation(400)[:200]
        step = Winsoriser().fit(X.iloc[members])
        named = np.flatnonzero(scores_of_own(step, seen, np.ones(8, dtype=bool), 200) > 0.5)
        right += np.isin(named, members).sum()
        wrong += (~np.isin(named, members)).sum()
    assert right >= 10 * 20
    assert wrong <= 0.02 * right


def test_columns_that_are_not_told_name_nobody() -> None:
    X = people(200).drop(columns="y")
    seen = RecordsSeen(X, np.zeros(200), np.arange(200))
    assert not scores_of_own(Extremes().fit(X), seen, np.zeros(8, dtype=bool), 200).any()


def test_places_of_quantiles() -> None:
    """Of 300 values the hundredth part is at 2.99, and so is 1 %; the rest of what settings are names none."""
    for settings in ([0.01, True, "a", None], [(1, 99)]):
        np.testing.assert_allclose(sorted(set(np.round(list(_fractions(settings, 300)), 9).tolist())), [0.01, 0.99])
    assert _fractions([5000, -1, 0], 300) == set()


def test_a_number_between_two() -> None:
    values = np.array([0.0, 1.0, 3.0, 10.0])
    np.testing.assert_allclose(shares(values, [1.2], 1e-9, (0.5, 0.1)), [0, 1, 1, 0])
    np.testing.assert_allclose(shares(values, [1.2], 1e-9), 0)


def test_other_code_is_own() -> None:
    assert is_own(Winsoriser())
    assert not is_own(StandardScaler())
    assert not is_own(Winsoriser)
