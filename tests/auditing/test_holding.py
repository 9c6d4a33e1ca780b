"""Code that is not known and holds training records: nothing passes, as outputs may tell which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakgauge as lg
from leakgauge.auditing import AuditResult, ReleaseRule, Settings, Verdict, audit, plan
from leakgauge.auditing.document import Document
from leakgauge.auditing.gate import Limits, apply
from leakgauge.auditing.membership import holding
from leakgauge.auditing.membership.findings import LEFT_OUT_MEASURES
from leakgauge.membership import without
from leakgauge.models import FunctionRegression, Model
from leakgauge.records import Records

N, SCALES = 200, np.array([1.0, 100.0, 0.01])


def people() -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * N, 3)) * SCALES + SCALES
    return X, X[:, 0] + rng.normal(size=2 * N)


class Centres(RegressorMixin, BaseEstimator):
    """Radial basis functions around some training records; ``way`` says how these are held."""

    def __init__(self, way: str = "as they are") -> None:
        self.way = way

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Centres:
        self.mean_, self.scale_ = X.mean(axis=0), X.std(axis=0)
        scaled = (X - self.mean_) / self.scale_
        chosen = np.random.default_rng(0).choice(len(X), 40, replace=False)
        centres = scaled[chosen] if self.way != "means" else scaled[: len(X) // 40 * 40].reshape(40, -1, 3).mean(axis=1)
        kernel = rbf_kernel(scaled, centres, gamma=0.3)
        weights = np.linalg.solve(kernel.T @ kernel + 300 * np.eye(40), kernel.T @ (y - y.mean()))
        held = {
            "as they are": X[chosen],
            "scaled": centres,
            "in single precision": X[chosen].astype(np.float32),
            "column by column": list(X[chosen].T),
            "in a function": lambda: X[chosen],
        }
        self.held_ = held.get(self.way)
        self.weights_, self.level_, self.centres_ = weights, y.mean(), None
        self._kernel = _Kernel(centres + 1e-3 if self.way != "means" else centres)
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self._kernel((X - self.mean_) / self.scale_) @ self.weights_ + self.level_)


class _Kernel:
    """Around centres, which are moved here so that :class:`Centres` alone says how they are held."""

    def __init__(self, centres: NDArray[Any]) -> None:
        self.centres = centres

    def __call__(self, X: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(rbf_kernel(X, self.centres, gamma=0.3))


class Nothing(TransformerMixin, BaseEstimator):
    """A step of the user's that keeps its table, and leaves it as it is."""

    def fit(self, X: NDArray[Any], y: Any = None) -> Nothing:
        self.table_ = X
        return self

    def transform(self, X: NDArray[Any]) -> NDArray[Any]:
        return X


def neighbours(records: Records, seed: int) -> Model:
    model = KNeighborsRegressor(30, weights="distance").fit(records.features, records.labels)
    return FunctionRegression(lambda rows: np.asarray(model.predict(rows)), records.schema)


def line(records: Records, seed: int) -> Model:
    """A line, in a function that holds its records only to know their columns."""
    model = Ridge().fit(records.features, records.labels)
    return FunctionRegression(
        lambda rows: np.asarray(model.predict(rows[:, : records.features.shape[1]])), records.schema
    )


def audited(model: Any) -> AuditResult:
    X, y = people()
    rule = ReleaseRule(dtp=None, advantage=0.9, tpr_ratio=None)
    settings = Settings(n_shadows=8, n_influence=0, rule=rule)
    return audit(model, train=(X[:N], y[:N]), holdout=(X[N:], y[N:]), settings=settings)


def said(result: AuditResult) -> bool:
    return any(
        "holds training records" in one.reason for one in result.findings if one.measure in LEFT_OUT_MEASURES.values()
    )


WAYS = ["as they are", "scaled", "in single precision", "column by column"]


@pytest.mark.parametrize("way", [*WAYS, "in a function"])
def test_nothing_passes_that_holds_training_records(way: str) -> None:
    result = audited(Centres(way))
    assert said(result)
    assert result.verdict is not Verdict.PASSES
    assert any("training records that the model holds" in one for one in result.not_tested)


def test_the_gate_says_so_too() -> None:
    document = Document.of("run", [audited(Centres("scaled"))])
    assert apply(document, Limits()).verdict is not Verdict.PASSES


@pytest.mark.parametrize("made", [lambda: Centres("means"), lambda: Ridge(), lambda: KNeighborsRegressor(50)])
def test_null_means_of_records_and_known_code_are_none(made: Callable[[], Any]) -> None:
    assert not said(audited(made()))


@pytest.mark.long
def test_steps_of_other_code_count_and_those_of_known_code_do_not() -> None:
    assert said(audited(make_pipeline(Nothing(), StandardScaler(), Ridge())))
    assert not said(audited(make_pipeline(StandardScaler(), KNeighborsRegressor(50))))


@pytest.mark.parametrize(("function", "held"), [(neighbours, True), (line, False)])
def test_of_functions_what_they_refer_to_counts_but_for_the_records_object(function: Any, held: bool) -> None:
    assert said(audited(lg.FunctionLearner(function, randomised=False))) is held


def test_null_what_both_sets_have_alike_is_held_of_nobody() -> None:
    """All numbers are on one grid, of which a model holds every point."""

    class Grid(Centres):
        def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Grid:
            super().fit(X, y)
            self.held_ = np.arange(-50, 51)[:, None] * np.ones(3)
            return self

    X = np.random.default_rng(1).integers(-50, 51, (2 * N, 3)).astype(float)
    y = X[:, 0] + np.random.default_rng(2).normal(size=2 * N)
    settings = Settings(n_shadows=8, n_influence=0, rule=ReleaseRule(dtp=None, advantage=0.9, tpr_ratio=None))
    assert not said(audit(Grid("means"), train=(X[:N], y[:N]), holdout=(X[N:], y[N:]), settings=settings))


def shuffled(records: Records, seed: int) -> Model:
    """A line whose level is that of some records, drawn by the seed."""
    some = np.random.default_rng(seed).permutation(len(records)) < len(records) // 2
    model, level = Ridge().fit(records.features, records.labels), records.labels[some].mean()
    return FunctionRegression(lambda rows: np.asarray(model.predict(rows)) + level, records.schema)


def test_functions_that_train_with_random_numbers_are_asked_about_all_outputs() -> None:
    result = audited(lg.FunctionLearner(shuffled))
    assert "influence" in [one.name for one in result.attacks]


@pytest.mark.parametrize(("most", "told"), [(4 * N, False), (N, True)])
def test_nothing_of_other_code_passes_without_it(monkeypatch: pytest.MonkeyPatch, most: int, told: bool) -> None:
    for module in (plan, without):
        monkeypatch.setattr(module, "MOST_TRAINED_EACH", most)
    result = audited(lg.FunctionLearner(shuffled))
    reasons = [one.reason for one in result.findings if one.measure in LEFT_OUT_MEASURES.values()]
    assert any("influence" in one for one in reasons) is told
    assert (result.verdict is Verdict.CANNOT_TELL) or not told


class Prickly(Centres):
    """Keeps something of which no attribute can be asked for."""

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Prickly:
        super().fit(X, y)
        self.held_ = _Thorn()  # type: ignore[assignment]
        return self


class _Thorn:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("a secret")


def test_what_cannot_be_looked_through_does_not_pass() -> None:
    result = audited(Prickly("means"))
    assert said(result)
    assert "a secret" not in result.summary()


@pytest.mark.long
def test_nor_what_holds_too_many_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not said(audited(Centres("means")))
    monkeypatch.setattr(holding, "MOST_HELD", 100)
    assert said(audited(Centres("means")))


@pytest.mark.parametrize("held", [True, False])
def test_modules_are_looked_through(held: bool) -> None:
    torch = pytest.importorskip("torch")

    def network() -> Any:
        module = torch.nn.Linear(3, 1)
        rows = torch.as_tensor(people()[0][: N // 4]) if held else torch.zeros(50, 3)
        module.register_buffer("centres", rows.double())
        return module

    learner = lg.TorchLearner(network, loss="squared-error", n_epochs=1)
    assert said(audited(learner)) is held


def classes() -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = people()
    return X, (y > y.mean()).astype(int)


def asked(function: Callable[[Any], Any]) -> AuditResult:
    """An audit of a function without a learner."""
    X, y = classes()
    settings = Settings(n_shadows=0, n_influence=0, rule=ReleaseRule(dtp=None, advantage=0.9, tpr_ratio=None))
    return audit(function, train=(X[:N], y[:N]), holdout=(X[N:], y[N:]), settings=settings)


def around(held: Any) -> Callable[[Any], Any]:
    """A function that answers by a line, and holds something else."""
    X, y = classes()
    model = LogisticRegression(C=0.01).fit(X[:N], y[:N])

    def function(table: Any) -> Any:
        return model.predict_proba(table) if held is not None else None

    return function


TABLE = classes()[0][:N]


def names_no_table(table: Any) -> Any:
    """It names an attribute as a global is called, and no global."""
    level = table.TABLE if hasattr(table, "TABLE") else 0.3
    return np.tile([1 - level, level], (len(table), 1))


def names_the_table(table: Any) -> Any:
    level = 0.3 + 0 * len(TABLE)
    return np.tile([1 - level, level], (len(table), 1))


def asks_another(table: Any) -> Any:
    return names_the_table(table)


def names_it_within(table: Any) -> Any:
    return np.array([(lambda row: [0.7, 0.3 + 0 * len(TABLE)])(row) for row in table])


class Holding:
    rows = TABLE


def names_a_class(table: Any) -> Any:
    level = 0.3 + 0 * len(Holding.rows)
    return np.tile([1 - level, level], (len(table), 1))


def names_neighbours(table: Any) -> Any:
    level = 0.3 + 0 * len(NEIGHBOURS._fit_X)
    return np.tile([1 - level, level], (len(table), 1))


NEIGHBOURS = NearestNeighbors().fit(TABLE)


HARMLESS = [LogisticRegression(), GaussianNB(), GradientBoostingClassifier(n_estimators=20), RandomForestClassifier(20)]


@pytest.mark.parametrize("model", HARMLESS, ids=lambda one: type(one).__name__)
def test_null_methods_of_models_that_hold_no_records(model: Any) -> None:
    X, y = classes()
    assert not said(asked(make_pipeline(StandardScaler(), model).fit(X[:N], y[:N]).predict_proba))


def grids() -> dict[str, Any]:
    X = classes()[0]
    return {
        "tenths": [i / 10 for i in range(-500, 500)],
        "whole numbers": np.arange(-500, 500),
        "words": {f"w{i}": i for i in range(1000)},
        "thousandths": np.arange(-5000, 5000) / 1000,
        "quantiles": np.quantile(X[:N], np.linspace(0.013, 0.987, 50), axis=0),
        "rounded quantiles": np.quantile(X[:N], np.linspace(0.013, 0.987, 90), axis=0).round(2),
        "rounded means": [[float(one) for one in part.mean(axis=0).round(2)] for part in np.array_split(X[:N], 20)],
        "others": np.random.default_rng(1).normal(size=(2000, 3)).round(3),
        "very many": np.random.default_rng(2).normal(size=(100_000, 3)),
        "other rows": [tuple(row) for row in X[N:].tolist()],
    }


@pytest.mark.parametrize("held", list(grids()))
def test_null_public_numbers_and_those_of_many_records(held: str) -> None:
    assert not said(asked(around(grids()[held])))


def test_null_a_grid_of_all_numbers_with_few_records_outside() -> None:
    """It has the numbers of everyone: as large a share of the few others as of the many training records."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 3)).round(3)
    grid, y = np.arange(-5000, 5001) / 1000, (X[:, 0] > 0).astype(int)
    model = LogisticRegression(C=0.01).fit(X[:420], y[:420])

    def function(table: Any) -> Any:
        return model.predict_proba(table) if len(grid) else None

    settings = Settings(n_shadows=0, n_influence=0, rule=ReleaseRule(dtp=None, advantage=0.9, tpr_ratio=None))
    assert not said(audit(function, train=(X[:420], y[:420]), holdout=(X[420:], y[420:]), settings=settings))


def test_null_globals_that_no_code_names() -> None:
    assert not said(asked(names_no_table))


def test_a_harmless_function_passes() -> None:
    assert asked(around("nothing")).verdict is Verdict.PASSES


def holders() -> dict[str, Any]:
    rows = classes()[0][:N]
    lists = rows.tolist()
    return {
        "tuples": [tuple(row) for row in lists],
        "lists": lists,
        "a dictionary of rows": dict(enumerate(lists)),
        "rows with names": [("a name", *row) for row in lists],
        "some lists": lists[:8],
        "arrays": list(rows),
        "rows by name": [dict(zip("abc", row, strict=True)) for row in lists],
        "from 0 to 1": (rows - rows.min(axis=0)) / (rows.max(axis=0) - rows.min(axis=0)),
        "in half precision": rows.astype(np.float16),
        "rounded": rows.round(3),
        "rounded lists": rows.round(3).tolist(),
    }


@pytest.mark.parametrize("held", list(holders()))
def test_functions_without_a_learner_are_looked_through(held: str) -> None:
    result = asked(around(holders()[held]))
    assert said(result)
    assert result.verdict is not Verdict.PASSES


@pytest.mark.parametrize("function", [names_the_table, asks_another, names_it_within, names_a_class, names_neighbours])
def test_globals_that_code_names_count(function: Any) -> None:
    assert said(asked(function))


class Kept(Centres):
    """Centres that are held as ``kept`` says."""

    def __init__(self, way: str = "means", kept: str = "lists") -> None:
        super().__init__(way)
        self.kept = kept

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Kept:
        super().fit(X, y)
        self.held_ = X.tolist() if self.kept == "lists" else X.round(3)  # type: ignore[assignment]
        return self


@pytest.mark.parametrize("kept", ["lists", "rounded"])
def test_so_do_lists_and_rounded_rows_of_estimators(kept: str) -> None:
    assert said(audited(Kept(kept=kept)))
