"""Labels and bins of models whose scores, or records, follow from where these change: nothing passes by them alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from leakgauge.auditing import AuditResult, ReleaseRule, Settings, Verdict, audit
from leakgauge.auditing.document import Document
from leakgauge.auditing.gate import Limits, apply
from leakgauge.auditing.membership.edges import _told, jump_askew
from leakgauge.auditing.membership.findings import LEFT_OUT_MEASURES
from leakgauge.errors import ModelError
from leakgauge.models.access import RegressionAccess
from leakgauge.models.sklearn import edges_tell

TOLD = "places where outputs change"


class Own(ClassifierMixin, BaseEstimator):
    """A classifier of the user's own, which may be a line or its square."""

    def __init__(self, square: bool = False) -> None:
        self.square = square

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Own:
        self.classes_, self.model_ = np.unique(y), LogisticRegression(C=1e-3).fit(X, y)
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        scores = self.model_.decision_function(X)
        return self.classes_[((scores**2 if self.square else scores) > 0.01).astype(int)]


class Choosy(Own):
    """Fills gaps with 0, takes nothing that is far away, and has as many records on either side."""

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Choosy:
        super().fit(np.nan_to_num(X), y)
        self.middle_ = np.median(self.model_.decision_function(np.nan_to_num(X)))
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        if np.nanmax(np.abs(X)) > 1e4:
            raise ValueError("no such records")
        return self.classes_[(self.model_.decision_function(np.nan_to_num(X)) > self.middle_).astype(int)]


def people(n: int = 600) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of whom one in five is of the second class, by chance."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 10)), (rng.random(n) < 0.2).astype(int)


def audited(model: Any, X: Any = None, *, rule: ReleaseRule | None = None) -> AuditResult:
    numbers, y = people()
    X, half = numbers if X is None else X, len(y) // 2
    settings = Settings(
        n_shadows=8, n_influence=0, released="labels", rule=rule or ReleaseRule(dtp=None, advantage=0.3)
    )
    return audit(model, train=(X[:half], y[:half]), holdout=(X[half:], y[half:]), settings=settings)


def said(result: AuditResult) -> str:
    return " ".join(one.reason for one in result.findings if one.measure in LEFT_OUT_MEASURES.values())


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(C=1e-3),
        RidgeClassifier(3e4),
        pytest.param(make_pipeline(StandardScaler(), LinearSVC(C=1e-4)), marks=pytest.mark.slow),
        KNeighborsClassifier(60),
        SVC(C=0.01),
        GaussianNB(),
        Own(),
        Own(square=True),
        Own().fit(*people()),
    ],
    ids=["logistic", "ridge", "linear", "neighbours", "support vectors", "squares", "own", "own square", "own, fitted"],
)
def test_nothing_passes(model: Any) -> None:
    result = audited(model)
    assert result.verdict is Verdict.CANNOT_TELL
    assert TOLD in said(result)
    document = Document.of("run", [result])
    assert apply(document, Limits()).verdict is Verdict.CANNOT_TELL


@pytest.mark.parametrize("model", [DecisionTreeClassifier(max_depth=2), MLPClassifier((4,), alpha=10)])
def test_null_what_is_of_pieces_may_pass(model: Any) -> None:
    assert not said(audited(model, people()[0].round(1)))


@pytest.mark.parametrize("model", [DecisionTreeClassifier(max_depth=2), RandomForestClassifier(20, max_depth=2)])
def test_thresholds_of_trees_tell_numbers_that_one_record_has(model: Any) -> None:
    assert TOLD in said(audited(model))


def test_a_line_that_takes_nothing_far_away_and_some_gaps() -> None:
    X, _ = people()
    X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    model = Choosy().fit(X[:300], people()[1][:300])
    assert TOLD in said(audited(lambda rows: model.predict(rows), X))


def test_null_a_function_that_is_no_line_may_pass() -> None:
    X, y = people()
    model = DecisionTreeClassifier(max_depth=2).fit(X[:300], y[:300])
    assert not said(audited(lambda rows: model.predict(rows)))


def test_null_categories_alone_have_no_numbers_to_move() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"town": rng.choice(["a", "b", "c"], 600), "work": rng.choice(["d", "e"], 600)})
    columns = make_column_transformer((OneHotEncoder(), ["town", "work"]))
    assert not said(audited(make_pipeline(columns, LogisticRegression()), X))


def test_a_rule_may_name_the_attacks_that_suffice() -> None:
    rule = ReleaseRule(dtp=None, advantage=0.3, attacks=("gap",))
    assert not said(audited(LogisticRegression(C=1e-3), rule=rule))


@pytest.mark.parametrize("seed", [0, 1])
def test_labels_of_neighbours_tell_them(seed: int) -> None:
    """Places where labels change are as far from two training records of other labels, and from hardly any others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + rng.logistic(size=400) > 0).astype(int)
    model = KNeighborsClassifier(40).fit(X[:200], y[:200])
    one, other = X[rng.integers(0, 400, (2, 4000))]
    label = model.predict(one)
    apart = model.predict(other) != label
    one, way, label = one[apart], (other - one)[apart], label[apart]
    low, high = np.zeros(len(one)), np.ones(len(one))
    for _ in range(50):
        middle = (low + high) / 2
        same = model.predict(one + middle[:, None] * way) == label
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    named: set[int] = set()
    for place in one + low[:, None] * way:
        away = np.linalg.norm(X - place, axis=1)
        order = np.argsort(away)
        pairs = [pair for pair in pairwise(order) if away[pair[1]] - away[pair[0]] < 1e-11]
        if len(pairs) == 1:
            named.update(map(int, pairs[0]))
    assert np.mean([row in named for row in range(200)]) > 0.5
    assert np.mean([row in named for row in range(200, 400)]) < 0.02


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (GridSearchCV(LogisticRegression(), {"C": [1.0]}), True),
        (CalibratedClassifierCV(KNeighborsClassifier()), True),
        (VotingClassifier([("tree", DecisionTreeClassifier()), ("line", LogisticRegression())]), True),
        (BaggingClassifier(SVC()), True),
        (Own(), True),
        (make_pipeline(StandardScaler(), MLPClassifier()), False),
        (BaggingClassifier(), False),
        (VotingClassifier([("tree", DecisionTreeClassifier()), ("forest", RandomForestClassifier())]), False),
    ],
    ids=lambda one: type(one).__name__,
)
def test_of_which_edges_tell(model: Any, told: bool) -> None:
    assert edges_tell(model) is told


def test_boosted_lines_are_no_trees() -> None:
    xgboost, lightgbm = map(pytest.importorskip, ("xgboost", "lightgbm"))
    assert edges_tell(xgboost.XGBClassifier(booster="gblinear"))
    assert edges_tell(lightgbm.LGBMClassifier(linear_tree=True))
    assert edges_tell(lightgbm.LGBMClassifier(linear_trees=True))
    assert not edges_tell(xgboost.XGBClassifier())
    assert not edges_tell(lightgbm.LGBMClassifier())


class Hidden(RegressorMixin, BaseEstimator):
    """A regressor in code of the user's that does not say what it is."""

    def __init__(self, kind: str = "neighbours") -> None:
        self.kind = kind

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Hidden:
        kinds = {
            "neighbours": KNeighborsRegressor(99, metric="cityblock"),
            "weighted": KNeighborsRegressor(50, weights="distance"),
            "axes": make_pipeline(PCA(), DecisionTreeRegressor(max_depth=3)),
            "tree": DecisionTreeRegressor(max_depth=3),
            "forest": RandomForestRegressor(20, max_depth=3, random_state=0),
            "boosting": HistGradientBoostingRegressor(max_iter=10),
            "line": Ridge(),
            "vectors": SVR(),
            "network": MLPRegressor(hidden_layer_sizes=(10,), max_iter=50, random_state=0),
        }
        self.model_ = kinds[self.kind].fit(X, y)
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.model_.predict(X))


def numbers(n: int = 400, d: int = 4) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of columns on different scales."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, d)) * 10.0 ** np.arange(d)
    return X, X[:, 0] + rng.normal(size=n)


@pytest.mark.parametrize("kind", ["neighbours", "weighted", "axes"])
def test_jumps_between_records_are_seen(kind: str) -> None:
    X, y = numbers()
    model = Hidden(kind).fit(X[:200], y[:200])
    assert jump_askew(lambda rows: model.predict(rows)[:, None], X, np.arange(4), np.random.default_rng(0))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["tree", "forest", "boosting", "line", "vectors", "network"])
def test_null_thresholds_of_single_columns_and_curves_are_none(kind: str) -> None:
    X, y = numbers()
    model = Hidden(kind).fit(X[:200], y[:200])
    assert not jump_askew(lambda rows: model.predict(rows)[:, None], X, np.arange(4), np.random.default_rng(0))


def test_null_one_value_for_all_and_columns_that_are_not_known() -> None:
    X, _ = numbers()
    X[:, 0] = np.nan
    for moved in (np.arange(1, 4), np.arange(4), np.arange(0)):
        assert not jump_askew(lambda rows: np.zeros((len(rows), 1)), X, moved, np.random.default_rng(0))


@pytest.mark.parametrize(("kind", "passes"), [("axes", False), ("tree", True)])
def test_code_of_the_users_that_jumps_between_records_does_not_pass(kind: str, passes: bool) -> None:
    X, y = numbers()
    settings = Settings(n_shadows=8, n_influence=0, rule=ReleaseRule(dtp=None, advantage=0.9))
    result = audit(Hidden(kind), train=(X[:200], y[:200]), holdout=(X[200:], y[200:]), settings=settings)
    assert (TOLD in said(result)) is not passes
    assert any("What the places tell" in one for one in result.not_tested) is not passes


def binned(model: Any, outputs: str) -> dict[str, float]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 12))
    y = (rng.random(200) < 0.5).astype(int)
    settings = Settings(
        n_shadows=16,
        n_influence=0,
        released=outputs,
        bin_width=0.5,
        rule=ReleaseRule(dtp=None),
        attacks=("loss-threshold", "lira"),
    )
    result = audit(model, train=(X[:100], y[:100]), holdout=(X[100:], y[100:]), settings=settings)
    return {one.name: one.advantage.value for one in result.attacks}


def test_bins_of_what_follows_from_their_edges_hide_nothing() -> None:
    model = LogisticRegression(C=100.0)
    assert binned(model, "binned") == binned(model, "as is")


@pytest.mark.parametrize(("kind", "told"), [("neighbours", True), ("axes", True), ("tree", False), ("line", False)])
def test_whole_numbers_are_moved_to_whole_numbers(kind: str, told: bool) -> None:
    X = np.random.default_rng(0).integers(0, 1000, (400, 4))
    y = X[:, 0] / 300 + np.random.default_rng(1).normal(size=400)
    model = Hidden(kind).fit(X[:200], y[:200])

    def answer(rows: NDArray[Any]) -> NDArray[Any]:
        assert (rows == np.round(rows)).all()
        return model.predict(rows)[:, None]

    assert jump_askew(answer, X.astype(float), np.arange(4), np.random.default_rng(0), whole=True) is told


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "told"),
    [
        (make_pipeline(PCA(), RandomForestClassifier(30, max_depth=1, random_state=0)), True),
        (make_pipeline(StandardScaler(), RandomForestClassifier(30, max_depth=1, random_state=0)), False),
        (make_pipeline(PCA(), RandomForestClassifier(5, max_depth=1, random_state=0)), False),
        (CalibratedClassifierCV(make_pipeline(PCA(), RandomForestClassifier(30, max_depth=1, random_state=0))), True),
    ],
)
def test_many_trees_behind_steps_that_mix_columns(model: Any, told: bool) -> None:
    """Thresholds of a few are looked at one by one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    settings = Settings(n_shadows=8, n_influence=0, rule=ReleaseRule(dtp=None, advantage=0.9, tpr_ratio=None))
    result = audit(model, train=(X[:200], y[:200]), holdout=(X[200:], y[200:]), settings=settings)
    assert (TOLD in said(result)) is told


def test_nor_do_bins_or_labels_hide_those_thresholds() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)).round(1)  # numbers that several have
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    model = make_pipeline(PCA(), RandomForestClassifier(30, max_depth=1, random_state=0))
    rule = ReleaseRule(dtp=None, advantage=0.9, tpr_ratio=None)
    for outputs in ("binned", "labels"):
        settings = Settings(n_shadows=8, n_influence=0, released=outputs, bin_width=0.1, rule=rule)
        result = audit(model, train=(X[:200], y[:200]), holdout=(X[200:], y[200:]), settings=settings)
        assert TOLD in said(result), outputs


def test_null_one_number_among_categories_is_no_other_column() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=400), "town": rng.choice(["a", "b"], 400)})
    y = (X.x + rng.normal(size=400) > 0).astype(int)
    columns = make_column_transformer((OneHotEncoder(), ["town"]), (StandardScaler(), ["x"]))
    model = make_pipeline(columns, RandomForestClassifier(30, max_depth=1, random_state=0))
    settings = Settings(n_shadows=8, n_influence=0, rule=ReleaseRule(dtp=None, advantage=0.9, tpr_ratio=None))
    assert not said(audit(model, train=(X[:200], y[:200]), holdout=(X[200:], y[200:]), settings=settings))


@pytest.mark.long
def test_gaps_and_refused_records_hide_no_jumps() -> None:
    X, y = numbers()
    model = Hidden("axes").fit(X[:200], y[:200])
    highest = float(np.quantile(X[:, 0], 0.8))

    def shy(rows: NDArray[Any]) -> NDArray[Any]:
        if (rows[:, 0] > highest).any():
            raise ModelError("no such records")
        return model.predict(np.nan_to_num(rows))[:, None]

    X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    told = partial(_told, _Asked(shy), 0)
    assert jump_askew(told, X, np.arange(4), np.random.default_rng(0))


def test_null_a_model_that_refuses_all_that_is_moved() -> None:
    X, y = numbers()
    seen, model = {row.tobytes() for row in X}, Hidden("axes").fit(X[:200], y[:200])

    def shy(rows: NDArray[Any]) -> NDArray[Any]:
        if any(row.tobytes() not in seen for row in rows):
            raise ModelError("no such records")
        return model.predict(rows)[:, None]

    assert not jump_askew(partial(_told, _Asked(shy), 0), X, np.arange(4), np.random.default_rng(0))


@dataclass
class _Asked(RegressionAccess):
    function: Callable[[NDArray[Any]], NDArray[Any]]

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        return self.function(X)[:, 0]


@pytest.mark.parametrize(("width", "told"), [(0.05, True), (1e-5, False)])
def test_a_function_that_rounds_by_itself_has_nothing_behind(width: float, told: bool) -> None:
    X, y = people()
    model = LogisticRegression(C=1e-3).fit(X[:300], y[:300])
    settings = Settings(
        n_shadows=8, n_influence=0, released="binned", bin_width=width, rule=ReleaseRule(dtp=None, advantage=0.3)
    )

    def rounded(rows: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.round(model.predict_proba(rows) / width) * width)

    result = audit(
        rounded,
        train=(X[:300], y[:300]),
        holdout=(X[300:], y[300:]),
        learner=LogisticRegression(C=1e-3),
        settings=settings,
    )
    assert (TOLD in said(result)) is told


def test_bins_of_trees_hide_something() -> None:
    model = DecisionTreeClassifier(min_samples_leaf=10, random_state=0)
    assert binned(model, "binned") != binned(model, "as is")
