"""Steps of the user's own that clip to numbers of single training records, or fill these in."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakgauge.auditing import AuditResult, ReleaseRule, Settings, Verdict, audit
from leakgauge.auditing.membership.findings import GAMES_TAIL_MEASURE
from leakgauge.auditing.membership.own_steps import _fractions, _Moving, is_own, scores_of_own
from leakgauge.auditing.membership.shares import shares
from leakgauge.auditing.membership.stored import STORED
from leakgauge.inspecting.records_seen import RecordsSeen

pytestmark = pytest.mark.usefixtures("none_trained_without_each")

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


@pytest.mark.long
@pytest.mark.parametrize(
    "step",
    [Winsoriser(), *(pytest.param(one, marks=pytest.mark.slow) for one in (PerCent(), Extremes())), MedianOfGroup()],
    ids=lambda one: type(one).__name__,
)
def test_whose_number_it_is_is_told(step: Step) -> None:
    table = people(600, groups=isinstance(step, MedianOfGroup))
    result = audited(make_pipeline(step, StandardScaler(), LogisticRegression(C=0.1)), table)
    found = next(one for one in result.findings if one.measure == GAMES_TAIL_MEASURE)
    assert found.verdict is Verdict.FAILS
    assert told_by(result) == STORED


@pytest.mark.long
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


@pytest.mark.long
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


class OfGroups(BaseEstimator):
    """What fills in, or clips to, a number of each group, passes the group on and leaves the other columns.

    Args:
        held: makes what is kept of the numbers and groups that it is fitted to.
        used: makes the numbers, with those kept.
    """

    def __init__(self, held: Callable[[Any, Any], Any], used: Callable[[Any, Any, Any], Any]) -> None:
        self.held, self.used = held, used

    def fit(self, X: pd.DataFrame, y: Any = None) -> OfGroups:
        self.held_ = self.held(X["x"], X["g"])
        return self

    def transform(self, X: pd.DataFrame) -> Any:
        return X.assign(x=self.used(X["x"], X["g"], self.held_))


class Changing(OfGroups):
    """Writes into what it is given."""

    def transform(self, X: pd.DataFrame) -> Any:
        X["x"] = self.used(X["x"], X["g"], self.held_)
        return X


class AnArray(OfGroups):
    """Gives an array, of objects where it passes texts on."""

    def transform(self, X: pd.DataFrame) -> Any:
        return super().transform(X).to_numpy()


@dataclass(frozen=True)
class Ends:
    """Of a group."""

    low: float
    high: float


class Slots:
    """Something of the user's own without a dictionary."""

    __slots__ = ("middle",)

    def __init__(self, middle: float) -> None:
        self.middle = middle


def medians(x: Any, g: Any) -> Any:
    return x.groupby(g, observed=True).median()


def fill(x: Any, g: Any, held: Any) -> Any:
    return x.fillna(g.astype(object).map(held)).fillna(0.0).astype(float)


def imputed(x: Any, g: Any, held: Any) -> Any:
    done = x.copy()
    for name, one in held.items():
        rows = (g == name).to_numpy()
        if rows.any():
            done[rows] = one.transform(x[rows].to_frame())[:, 0]
    return done


def clip(x: Any, g: Any, held: Any) -> Any:
    ends = [held.get(name, Ends(-9.0, 9.0)) for name in g]
    return x.clip([one.low for one in ends], [one.high for one in ends])


def filler(middles: Any) -> Any:
    """A function that has the numbers in it."""
    return lambda x, g: fill(x, g, middles)


WAYS: dict[str, tuple[Any, Any]] = {
    "a dictionary": (lambda x, g: medians(x, g).to_dict(), fill),
    "a series": (medians, fill),
    "a frame to merge": (
        lambda x, g: medians(x, g).rename_axis("g").reset_index(),
        lambda x, g, held: fill(x, g, held.set_index("g")["x"]),
    ),
    "imputers": (
        lambda x, g: {name: SimpleImputer(strategy="median").fit(x[g == name].to_frame()) for name in g.unique()},
        imputed,
    ),
    "objects with slots": (
        lambda x, g: {name: Slots(one) for name, one in medians(x, g).items()},
        lambda x, g, held: fill(x, g, {name: one.middle for name, one in held.items()}),
    ),
    "objects that cannot be set": (
        lambda x, g: {name: Ends(one.min(), one.max()) for name, one in x.groupby(g, observed=True)},
        clip,
    ),
    "a function": (lambda x, g: filler(medians(x, g).to_dict()), lambda x, g, held: held(x, g)),
}

N_GROUPS = 30


def grouped(n: int, kind: str, *, seed: int = 0) -> pd.DataFrame:
    """Records of groups that are texts, categories or numbers, some without x."""
    rng = np.random.default_rng(seed)
    x, z, g = rng.normal(size=n), rng.normal(size=n), np.arange(n) % N_GROUPS
    texts = [f"s{one}" for one in g]
    groups = {"texts": texts, "categories": pd.Categorical(texts), "numbers": g.astype(float)}[kind]
    return pd.DataFrame({"x": np.where(rng.random(n) < 0.05, np.nan, x), "z": z, "g": groups})


def named_by(step: Any, X: Any, n_train: int) -> Any:
    """Whom a step fitted to the first records names."""
    seen = RecordsSeen(X, np.zeros(len(X)), np.arange(len(X)))
    return np.flatnonzero(scores_of_own(step.fit(X[:n_train]), seen, np.ones(X.shape[1], dtype=bool), n_train) > 0.5)


@pytest.mark.parametrize("kind", ["texts", "categories", "numbers"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("which", [OfGroups, Changing, AnArray])
def test_numbers_of_groups_are_found(which: type[OfGroups], way: str, kind: str) -> None:
    """A median of an odd number is a record's own, in about half of the 30 groups. Seeded."""
    named = named_by(which(*WAYS[way]), grouped(600, kind), 300)
    assert len(named) >= 10
    assert np.mean(named < 300) > 0.95


@pytest.mark.long
def test_numbers_of_groups_are_told() -> None:
    """122 of 800 members are named without error by who asks about records without x of each group."""
    table = grouped(800, "categories")
    table["y"] = table["x"].fillna(0.0) + table["z"] + np.random.default_rng(1).normal(size=800)
    numbers_only = make_column_transformer(("drop", ["g"]), remainder="passthrough")
    result = audited(make_pipeline(OfGroups(*WAYS["a dictionary"]), numbers_only, Ridge()), table)
    found = next(one for one in result.findings if one.measure == GAMES_TAIL_MEASURE)
    assert found.verdict is Verdict.FAILS
    assert told_by(result) == STORED


def in_other_units(x: Any, g: Any, held: Any) -> Any:
    factors = g.astype(object).map(held["factors"])
    return x.fillna(held["fill"]).clip(*held["ends"]) * 2.54 * factors


@pytest.mark.long
@pytest.mark.parametrize("kind", ["categories", pytest.param("numbers", marks=pytest.mark.slow)])
def test_null_what_is_fixed_tells_nobody(kind: str) -> None:
    """Factors of regions, ends and what is filled in are the same whoever is a member, and some are a record's own."""
    table = grouped(800, kind)
    table["y"] = table["x"].fillna(0.0) + table["z"] + np.random.default_rng(1).normal(size=800)
    factors = {name: 1 + place / 100 for place, name in enumerate(table["g"].unique())}
    fixed = {"factors": factors, "fill": table["x"][3], "ends": (table["x"][5] - 2, table["x"][7] + 2)}
    numbers_only = make_column_transformer(("drop", ["g"]), remainder="passthrough")
    step = OfGroups(Fixed(fixed), in_other_units)
    result = audited(make_pipeline(step, numbers_only, Ridge()), table)
    found = next(one for one in result.findings if one.measure == GAMES_TAIL_MEASURE)
    assert found.verdict is Verdict.PASSES


@dataclass
class Fixed:
    """Gives the same whatever it is fitted to."""

    held: Any

    def __call__(self, x: Any, g: Any) -> Any:
        return self.held


@pytest.mark.parametrize("kind", ["texts", "numbers"])
@pytest.mark.parametrize(
    "used",
    [
        lambda x, g, held: x,
        lambda x, g, held: fill(x, g, {}),
        lambda x, g, held: (x - held.iloc[0]) / (held.iloc[-1] - held.iloc[0]),
        lambda x, g, held: ((x - held.iloc[0]) / 2).fillna((0.3 - held.iloc[0]) / 2),
        lambda x, g, held: np.where(x.isna(), 1.0, 0.0),
    ],
    ids=["needless", "another is filled in", "a line", "filled in before a line", "whether there is one"],
)
def test_null_outputs_do_not_depend_on_what_groups_hold(used: Any, kind: str) -> None:
    """Nobody is named: also where z passes, or goes on as a line, while x is taken away."""
    assert not len(named_by(OfGroups(medians, used), grouped(600, kind), 300))
    assert not len(named_by(AnArray(medians, used), grouped(600, kind), 300))


def test_null_other_columns_are_lines_while_one_is_taken_away() -> None:
    X = people(400).drop(columns="y")
    assert not len(named_by(MinMax(), X, 200))
    assert not len(named_by(MinMax(), X.to_numpy(), 200))


class WholeExtremes(Step):
    """Clips to the least and the largest whole number."""

    def learn(self, X: pd.DataFrame) -> None:
        self.ends_ = {name: (int(X[name].min()), int(X[name].max())) for name in X}

    def transform(self, X: Any) -> Any:
        table = pd.DataFrame(X)
        return np.column_stack([table[name].clip(*self.ends_[name]) for name in table])


def test_whole_numbers_are_found() -> None:
    X = (people(400).drop(columns="y") * 1e6).round().astype(int)
    named = named_by(WholeExtremes(), X, 200)
    assert len(named) >= 12
    assert (named < 200).all()


class Refusing:
    """Cannot be copied."""

    def __init__(self) -> None:
        self.lock, self.middle = threading.Lock(), 1.0

    def __copy__(self) -> Refusing:
        raise RuntimeError("no copies")


class Shared:
    """All of them have one dictionary."""

    def __init__(self) -> None:
        self.middle = 1.0

    def __copy__(self) -> Shared:
        other = Shared.__new__(Shared)
        other.__dict__ = self.__dict__
        return other


def test_what_is_fitted_stays_as_it_is() -> None:
    held = {
        "array": np.array([1.0, 2.0]),
        "objects": np.array(["a", 1.5, None], dtype=object),
        "frame": pd.DataFrame({"g": ["a", "b"], "x": [0.5, 1.5]}),
        "imputer": SimpleImputer(strategy="median").fit([[1.0], [2.0]]),
        "nested": [(Ends(-1.0, 1.0), Slots(0.5)), {"a": {1.0, 2.0}}],
    }
    before, other = pickle.dumps(copy.deepcopy(held)), _Moving("f")(held)
    assert pickle.dumps(copy.deepcopy(held)) == before
    assert (other["array"] != held["array"]).all()
    assert other["objects"][1] != 1.5
    assert (other["frame"]["x"] != held["frame"]["x"]).all()
    assert other["frame"]["g"].tolist() == ["a", "b"]
    assert other["imputer"].statistics_ != held["imputer"].statistics_
    assert other["imputer"].n_features_in_ == 1
    assert other["nested"][0][0].high != 1.0
    assert other["nested"][0][1].middle != 0.5
    assert other["nested"][1]["a"].isdisjoint({1.0, 2.0})


def test_objects_that_cannot_be_copied_are_passed_over() -> None:
    refusing, shared = Refusing(), Shared()
    ring: list[Any] = [refusing, shared, 1.0]
    ring.append(ring)
    other = _Moving("f")(ring)
    assert other[:2] == [refusing, shared]
    assert other[2] != 1.0
    assert refusing.middle == shared.middle == 1.0
