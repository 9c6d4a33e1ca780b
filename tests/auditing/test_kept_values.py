"""Models that keep values of their training records: answers to changed records tell who they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import KNNImputer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, QuantileTransformer

from leakgauge.auditing import AuditResult, ReleaseRule, Settings, Verdict, audit
from leakgauge.auditing.membership.findings import RELEASED_MEASURE
from leakgauge.auditing.membership.nearby import unseen_categories
from leakgauge.records import Records

N = 300
SETTINGS = Settings(n_shadows=8, n_influence=0, rule=ReleaseRule(dtp=None), budget=1e-6)
"""Without time for the attack by all outputs."""


def numbers(seed: int, n: int = 2 * N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + rng.normal(size=n)


def itself(result: AuditResult) -> tuple[float, Verdict]:
    finding = next(one for one in result.findings if one.measure == RELEASED_MEASURE)
    assert finding.estimate is not None
    return finding.estimate.value, finding.verdict


KEEPING = [
    (make_pipeline(QuantileTransformer(n_quantiles=N), Ridge()), False),
    (make_pipeline(QuantileTransformer(n_quantiles=N), LogisticRegression(C=0.1)), True),
    (make_pipeline(KNNImputer(weights="distance"), Ridge(alpha=300.0)), False),
]


@pytest.mark.parametrize(
    ("fitted", "model", "classes"),
    [
        pytest.param(fitted, model, classes, marks=() if i == j % 2 else pytest.mark.slow)
        for i, fitted in enumerate([True, False])
        for j, (model, classes) in enumerate(KEEPING)
    ],
)
def test_values_that_are_kept_tell_members(model: Any, classes: bool, fitted: bool) -> None:
    """A map with a bend at each training value, and a record that is its own nearest neighbour: nearly all members are
    told by two or three queries each, whatever the answers about their own records say."""
    X, y = numbers(0)
    y = (y > 0).astype(int) if classes else y
    given = model.fit(X[:N], y[:N]) if fitted else model
    result = audit(given, train=(X[:N], y[:N]), holdout=(X[N:], y[N:]), settings=SETTINGS)
    advantage, verdict = itself(result)
    assert advantage > 0.7
    assert verdict is Verdict.FAILS


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "classes"),
    [
        pytest.param(model, classes, marks=() if i == 1 else pytest.mark.slow)
        for i, (model, classes) in enumerate(KEEPING)
    ],
)
def test_null_values_of_other_records_tell_nobody(model: Any, classes: bool) -> None:
    """Of 5 models that were trained on other records none is seen to reveal more than the limit allows: each is with
    probability below 0.025."""
    failed = 0
    for seed in range(5):
        X, y = numbers(seed, 3 * N)
        y = (y > 0).astype(int) if classes else y
        given = model.fit(X[2 * N :], y[2 * N :])
        result = audit(given, train=(X[:N], y[:N]), holdout=(X[N : 2 * N], y[N : 2 * N]), settings=SETTINGS)
        failed += itself(result)[1] is Verdict.FAILS
    assert failed == 0


def people(n_alone: int, seed: int = 0, n: int = 500) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    title = rng.choice(["clerk", "nurse", "driver"], 2 * n).astype(object)
    title[rng.choice(2 * n, n_alone, replace=False)] = [f"title {k}" for k in range(n_alone)]
    age = rng.normal(size=2 * n)
    frame = pd.DataFrame({"age": age, "title": title, "visits": rng.poisson(np.exp(0.3 * age + 1)) + 0.5})
    return frame[:n], frame[n:]


def counts() -> Any:
    encoded = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["title"]), remainder="passthrough")
    return make_pipeline(encoded, PoissonRegressor(alpha=1.0))


@pytest.mark.parametrize(("n_alone", "fails"), [(400, True), (0, False), (10, False)])
@pytest.mark.parametrize("fitted", [True, False])
def test_whose_category_is_in_no_training_record_is_told(n_alone: int, fails: bool, fitted: bool) -> None:
    """A person with a title of her own is answered as one with an unheard-of title exactly if she was not trained on;
    of 1,000 that is so for 400, and the penalty lets no answer about themselves show it."""
    train, holdout = people(n_alone)
    model = counts().fit(train[["age", "title"]], train["visits"]) if fitted else counts()
    result = audit(model, train=train, holdout=holdout, target="visits", settings=SETTINGS)
    assert (itself(result)[1] is Verdict.FAILS) is fails
    if fails:
        assert itself(result)[0] > 0.3


@pytest.mark.long
def test_null_a_model_of_other_people_does_not_tell_whose_category_is_new() -> None:
    """Of 400 of 1,000 with a title of their own it knows neither members nor others."""
    failed = 0
    for seed in range(4):
        (train, holdout), (others, _) = people(400, seed), people(400, seed + 100)
        others = others.assign(title=others["title"].where(~others["title"].str.startswith("title"), "an older title"))
        model = counts().fit(others[["age", "title"]], others["visits"])
        result = audit(model, train=train, holdout=holdout, target="visits", settings=SETTINGS)
        failed += itself(result)[1] is Verdict.FAILS
    assert failed == 0  # each is with probability below 0.025


def test_categories_that_no_training_record_has() -> None:
    """The first of each column, of the first few columns."""
    frame = pd.DataFrame({"one": list("aabbccdd"), "two": list("xxxxxxxx"), "text": list("stuvwxyz")})
    records = Records.from_frame(frame.assign(number=np.arange(8.0) ** 2, y=list("nynynyny")), target="y")
    categories = records.schema.columns[0].categories
    assert [categories[int(code)] for code in unseen_categories(records, 4).values()] == ["c"]
    assert list(unseen_categories(records, 4)) == [0]  # of texts each is one record's
    assert unseen_categories(records, 8) == {}
