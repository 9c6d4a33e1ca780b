"""Labels of linear classifiers, which tell their scores up to one factor: nothing passes by labels alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import AuditResult, ReleaseRule, Settings, Verdict, audit
from leakgauge.auditing.document import Document
from leakgauge.auditing.gate import Limits, apply
from leakgauge.auditing.membership.findings import LEFT_OUT_MEASURES
from leakgauge.models.sklearn import is_linear


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
        Own(),
        Own().fit(*people()),
    ],
    ids=["logistic", "ridge", "support vectors", "own", "own, fitted"],
)
def test_nothing_passes(model: Any) -> None:
    result = audited(model)
    assert result.verdict is Verdict.CANNOT_TELL
    assert "tell all scores of a linear classifier" in said(result)
    document = Document.of("run", [result])
    assert apply(document, Limits()).verdict is Verdict.CANNOT_TELL


@pytest.mark.parametrize("model", [DecisionTreeClassifier(max_depth=2), SVC(C=0.01), Own(square=True)])
def test_null_what_is_no_line_may_pass(model: Any) -> None:
    assert not said(audited(model))


def test_a_line_that_takes_nothing_far_away_and_some_gaps() -> None:
    X, _ = people()
    X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    assert "tell all scores of a linear classifier" in said(audited(Choosy(), X))


def test_null_categories_alone_have_no_numbers_to_move() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"town": rng.choice(["a", "b", "c"], 600), "work": rng.choice(["d", "e"], 600)})
    columns = make_column_transformer((OneHotEncoder(), ["town", "work"]))
    assert not said(audited(make_pipeline(columns, LogisticRegression()), X))


def test_a_rule_may_name_the_attacks_that_suffice() -> None:
    rule = ReleaseRule(dtp=None, advantage=0.3, attacks=("gap",))
    assert not said(audited(LogisticRegression(C=1e-3), rule=rule))


@pytest.mark.parametrize(
    ("model", "known"),
    [
        (GridSearchCV(LogisticRegression(), {"C": [1.0]}), True),
        (NearestCentroid(), True),
        (SVC(kernel="linear"), True),
        (SVC(), False),
        (DecisionTreeClassifier(), False),
    ],
    ids=lambda one: type(one).__name__,
)
def test_which_are_lines(model: Any, known: bool) -> None:
    assert is_linear(model) is known
