"""Quantities may be missing: learners that take them are audited like any other, the others say so."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakgauge.auditing import ReleasedOutputs, SensitiveColumn, Settings, audit, explain
from leakgauge.auditing.batch import audit_config
from leakgauge.auditing.config import load_config
from leakgauge.errors import DataError, InputError, ModelError
from leakgauge.influence import most_influential, pdtp, search
from leakgauge.membership import noise_robustness
from leakgauge.models import FunctionProbabilities
from leakgauge.records import Records, bin_edges
from leakgauge.records.duplicates import record_codes
from leakgauge.training import (
    FunctionLearner,
    Job,
    Randomness,
    SklearnLearner,
    leave_one_out,
    plan,
    random_subsets,
    train_many,
)
from leakgauge.training.recipes import recipe
from leakgauge.training.trees import RandomForest, public_thresholds

rng = np.random.default_rng(3)
N = 40
y = np.arange(2 * N) % 2
X = rng.normal(y[:, None], 1.0, (2 * N, 3))
X[rng.random(X.shape) < 0.2] = np.nan
TRAIN, HOLDOUT = (X[:N], y[:N]), (X[N:], y[N:])
SETTINGS = Settings(n_shadows=4, n_influence=6)
BOOSTING = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5)
IMPUTED = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())


@pytest.mark.parametrize(
    ("released", "model"),
    [
        pytest.param(released, model, marks=() if i == j else pytest.mark.slow)
        for i, released in enumerate(list(ReleasedOutputs))
        for j, model in enumerate([BOOSTING, IMPUTED, RandomForestClassifier(3, random_state=0)])
    ],
)
def test_learners_that_take_them_are_audited(model: Any, released: ReleasedOutputs) -> None:
    settings = Settings(n_shadows=4, n_influence=6, released=released)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = audit(model, train=TRAIN, holdout=HOLDOUT, settings=settings)
    assert result.influence is not None
    assert result.influence.n_failed == 0
    assert explain(model, train=TRAIN, holdout=HOLDOUT, settings=settings).steps


def test_sensitive_columns_beside_columns_with_gaps() -> None:
    table = np.column_stack([X, rng.integers(0, 3, 2 * N)])
    records = Records.from_arrays(table, y, categorical=[3], sensitive=[3])
    train, holdout = records[np.arange(N)], records[np.arange(N, 2 * N)]
    (column,) = audit(BOOSTING, train=train, holdout=holdout, settings=SETTINGS).attributes
    assert column.name == "x3"
    assert column.attacks
    binned = SensitiveColumn("x0", edges=(-5.0, 0.0, 5.0))
    settings = Settings(attributes=(binned,), n_shadows=4)
    with pytest.raises(InputError, match="'x0' is to be inferred and is missing in 12 records"):
        audit(BOOSTING, train=train, holdout=holdout, settings=settings)


def test_a_column_that_nobody_has_a_value_in() -> None:
    empty = np.column_stack([X, np.full(2 * N, np.nan)])
    model = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), LogisticRegression())
    result = audit(model, train=(empty[:N], y[:N]), holdout=(empty[N:], y[N:]), settings=SETTINGS)
    assert result.influence is not None
    assert result.influence.n_searched == 6


def test_a_regressor() -> None:
    values = np.nan_to_num(X[:, 0]) + rng.normal(size=2 * N)
    model = HistGradientBoostingRegressor(max_iter=5)
    result = audit(model, train=(X[:N], values[:N]), holdout=(X[N:], values[N:]), settings=SETTINGS)
    assert result.change is not None


@pytest.mark.parametrize("model", [GaussianNB(), KNeighborsClassifier(3), LogisticRegression()])
def test_learners_that_do_not_take_them_say_so(model: Any) -> None:
    with pytest.raises(ModelError, match="the records have missing values: put an imputer before it"):
        audit(model, train=TRAIN, holdout=HOLDOUT, settings=SETTINGS)


def test_who_takes_them_and_fails_for_another_reason_is_not_told_to_fill_them_in() -> None:
    model = HistGradientBoostingClassifier(max_iter=5, monotonic_cst={"of another name": 1})
    with pytest.raises(ModelError) as failure:
        audit(model, train=TRAIN, holdout=HOLDOUT, settings=SETTINGS)
    assert "missing" not in str(failure.value)


def test_columns_by_name_are_the_likelier_cause_behind_an_imputer() -> None:
    by_name = make_column_transformer((SimpleImputer(), ["x0", "x1"]))
    with pytest.raises(ModelError) as failure:
        audit(make_pipeline(by_name, LogisticRegression()), train=TRAIN, holdout=HOLDOUT, settings=SETTINGS)
    assert 'selects columns by name and gets an array: give data frames, or in a file table = "pandas"' in str(
        failure.value
    )
    assert "put an imputer before it" not in str(failure.value)


def test_gaps_in_the_holdout_alone() -> None:
    """The model can be trained, but not be asked about the holdout."""
    with pytest.raises(ModelError):
        audit(GaussianNB(), train=(np.nan_to_num(X[:N]), y[:N]), holdout=HOLDOUT, settings=SETTINGS)


def test_leaving_one_out_is_refitting() -> None:
    records = Records.from_arrays(*TRAIN)
    solved = clone(IMPUTED).set_params(logisticregression__tol=1e-10, logisticregression__max_iter=10_000)
    for estimator in (BOOSTING, solved):
        found = pdtp(SklearnLearner(estimator), records, np.arange(5), seed=0)
        for t in range(5):
            keep = np.arange(N) != t
            models = (clone(estimator).fit(X[:N][rows], y[:N][rows]) for rows in (np.arange(N), keep))
            full, without = (np.log(model.predict_proba(X[[t]])[0]) for model in models)
            assert found.values[t] == pytest.approx(np.abs(full - without).max(), abs=1e-6)


ALONE = [
    GaussianNB(),
    KNeighborsClassifier(3),
    LogisticRegression(),
    LinearDiscriminantAnalysis(),
    QuadraticDiscriminantAnalysis(),
    MLPClassifier(3, max_iter=3),
    RandomForestClassifier(3),
]


@pytest.mark.parametrize("last", ALONE, ids=lambda last: type(last).__name__)
@pytest.mark.parametrize("before", [(), (StandardScaler(),)])
def test_no_engine_computes_with_them(last: Any, before: tuple[Any, ...]) -> None:
    """Neither where they are in the records nor in the queries alone; what fills them in may stand before."""
    records = Records.from_arrays(*TRAIN)
    filled = Records.from_arrays(np.nan_to_num(X[:N]), y[:N])
    learner = SklearnLearner(make_pipeline(*before, last))
    for one, asked in ((records, records.features), (filled, records.features)):
        for subsets in (leave_one_out(N), random_subsets(N, N // 2, 4, np.random.default_rng(0))):
            found = plan(Job(learner, one, subsets, asked, 0, Randomness.COMMON))
            assert found.engine.name == "refit"
    assert train_many(SklearnLearner(GaussianNB()), filled, leave_one_out(N), seed=0).engine != "refit"


def test_learners_and_bins_of_leakgauge_refuse_them() -> None:
    records = Records.from_arrays(*TRAIN)
    for name in ("naive-bayes", "logistic-regression", "random-forest", "k-nearest-neighbours"):
        with pytest.raises(DataError, match="recipes need all numbers, but some are missing"):
            recipe(name, records)
    with pytest.raises(DataError, match="bin edges need the numbers of all columns"):
        bin_edges(records, 3)
    filled = Records.from_arrays(np.nan_to_num(X[:N]), y[:N])
    with pytest.raises(ModelError, match="take no missing values"):
        RandomForest(public_thresholds(filled), n_trees=2).fit(records, seed=0)
    with pytest.raises(ModelError, match="cannot be screened: the records have missing values"):
        most_influential(SklearnLearner(LogisticRegression()), records, 3)


@pytest.mark.parametrize(
    "name",
    [
        "naive-bayes",
        pytest.param("decision-tree", marks=pytest.mark.slow),
        pytest.param("logistic-regression", marks=pytest.mark.slow),
    ],
)
def test_recipes_of_a_file_get_the_middle_of_each_column(name: str, tmp_path: Path) -> None:
    """Of all records, as their centre and scale are; with a note, and what the audit of the filled table finds."""
    middle = np.nanmedian(X, axis=0)
    found = []
    for table in (X, np.where(np.isnan(X), middle, X)):
        frame = pd.DataFrame(table, columns=list("abc")).assign(y=np.where(y, "ill", "well"))
        for part, rows in (("train", slice(0, N)), ("holdout", slice(N, None))):
            frame[rows].to_csv(tmp_path / f"{part}.csv", index=False)
        (tmp_path / "audit.toml").write_text(
            '[data]\ntrain = "train.csv"\nholdout = "holdout.csv"\ntarget = "y"\n'
            f'[[models]]\nkind = "recipe"\nname = "{name}"\n[attacks]\nshadow_models = 4\n'
        )
        folder = tmp_path / f"run {len(found)}"
        found.append(audit_config(load_config(tmp_path / "audit.toml"), folder=folder).document.audits[0])
    said = "Missing numbers, in 3 columns, were replaced by the median of their column over all records"
    assert [any(note.startswith(said) for note in one.notes) for one in found] == [True, False]
    first, second = ([(one.measure, one.estimate) for one in audited.findings] for audited in found)
    assert first == second


@pytest.mark.parametrize("edges", ["", "edges = [-9.0, 0.0, 9.0]\n"])
def test_a_number_that_was_filled_in_is_no_true_value(edges: str, tmp_path: Path) -> None:
    """A column with gaps is not inferred behind a recipe, which fills them in, as it is not elsewhere."""
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=np.where(y, "ill", "well"))
    for part, rows in (("train", slice(0, N)), ("holdout", slice(N, None))):
        frame[rows].to_csv(tmp_path / f"{part}.csv", index=False)
    (tmp_path / "audit.toml").write_text(
        '[data]\ntrain = "train.csv"\nholdout = "holdout.csv"\ntarget = "y"\n'
        f'[[data.columns]]\nname = "a"\nrole = "sensitive"\n{edges}'
        '[[models]]\nkind = "recipe"\nname = "decision-tree"\n[attacks]\nshadow_models = 4\n'
    )
    n_missing = int(np.isnan(X[:, 0]).sum())
    with pytest.raises(DataError, match=f"'a' is to be inferred and is missing in {n_missing:,} records; fill in"):
        audit_config(load_config(tmp_path / "audit.toml"))


def test_equal_rows_are_equal_where_they_have_gaps() -> None:
    odd = np.array([0x7FF8000000000001, 0xFFF8000000000000], dtype=np.uint64).view(np.float64)
    one, other = (Records.from_arrays([[gap, 1.0], [2.0, 3.0]], ["a", "b"]) for gap in odd)
    raw = [Records(np.array([[gap, 1.0], [2.0, 3.0]]), one.labels, one.schema, np.arange(2)) for gap in odd]
    assert len({records.digest() for records in (one, other, *raw)}) == 1
    for tolerance in (0.0, 0.01):
        codes = record_codes(raw[0], raw[1], tolerance=tolerance)
        assert codes.train.tolist() == codes.holdout.tolist()
        assert codes.train[0] != codes.train[1]


def test_the_search_asks_about_gaps_and_numbers() -> None:
    asked = []

    def answer(table: np.ndarray) -> np.ndarray:
        asked.append(np.array(table))
        return np.full((len(table), 2), 0.5)

    records = Records.from_arrays(*TRAIN)
    learner = FunctionLearner(lambda records, seed: FunctionProbabilities(answer, records.schema), randomised=False)
    found = search(learner, records, np.array([0, 1]), seed=0, n_queries=200)
    assert found.values.tolist() == [0.0, 0.0]
    table = np.concatenate(asked)
    assert np.isnan(table[:, 0]).any()
    assert (~np.isnan(table[:, 0])).any()
    assert not np.isinf(table).any()


def test_changed_copies_keep_their_gaps() -> None:
    copies = noise_robustness.perturbed(
        X[:N], X[:N], np.zeros(3, dtype=bool), noise=0.1, redrawn=0.1, rng=np.random.default_rng(0)
    )
    np.testing.assert_array_equal(np.isnan(copies), np.isnan(X[:N]))
    assert (copies[:, 0] != X[:N, 0]).all()


@pytest.mark.parametrize(
    "dtype",
    [
        "float64",
        pytest.param("float32", marks=pytest.mark.slow),
        "Int64",
        pytest.param("Float64", marks=pytest.mark.slow),
    ],
)
def test_frames_go_there_and_back(dtype: str) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"a": pandas.Series([1, None, 3, 4] * 10, dtype=dtype), "b": np.arange(40.0), "y": [0, 1] * 20}
    )
    records = Records.from_frame(frame, target="y")
    assert np.isnan(records.features[:, 0]).sum() == 10
    table = records.schema.decode(records.features)
    np.testing.assert_array_equal(records.schema.encode(table), records.features)
    result = audit(BOOSTING, train=frame[:20], holdout=frame[20:], target="y", settings=SETTINGS)
    assert result.influence is not None


def test_labels_are_never_missing() -> None:
    with pytest.raises(DataError, match="a record needs a label"):
        Records.from_arrays(X, np.where(y == 0, np.nan, 0.5), task="regression")
    with pytest.raises(DataError, match="infinite"):
        Records.from_arrays([[np.inf], [1.0]], ["a", "b"])
