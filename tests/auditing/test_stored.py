"""Numbers of single training records that models store, where outputs tell them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

from leakgauge.auditing import AuditResult, Finding, ReleaseRule, Settings, Verdict, audit
from leakgauge.auditing.document import load
from leakgauge.auditing.gate import Limits, apply
from leakgauge.auditing.membership.findings import GAMES_TAIL_MEASURE
from leakgauge.auditing.membership.question import REFUSED
from leakgauge.auditing.membership.shares import shares
from leakgauge.auditing.membership.stored import READERS, STORED, _binned, _middles, is_told, scores_of_tree
from leakgauge.report import render_html

pytestmark = pytest.mark.usefixtures("none_trained_without_each")

SETTINGS = Settings(n_shadows=32, n_influence=0, rule=ReleaseRule(dtp=None))


def people(n: int, d: int = 12, *, seed: int = 0, digits: int | None = None, missing: float = 0.0) -> pd.DataFrame:
    """Numbers of all digits, or of few, that say little about the class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    table = pd.DataFrame(X if digits is None else np.round(X, digits), columns=[f"c{i}" for i in range(d)])
    table = table.mask(rng.random((n, d)) < missing)
    table["y"] = np.where(X[:, 0] + rng.normal(size=n) > 0, "yes", "no")
    return table


def audited(model: Any, table: pd.DataFrame, **given: Any) -> AuditResult:
    half = len(table) // 2
    return audit(model, train=table[:half], holdout=table[half:], target="y", settings=SETTINGS, **given)


def in_games(result: AuditResult) -> Finding:
    return next(one for one in result.findings if one.measure == GAMES_TAIL_MEASURE)


def told_by(result: AuditResult) -> str:
    lira = next(one for one in result.attacks if one.name == "lira")
    assert lira.games is not None
    return lira.games.tail_by


MIDDLES: dict[str, Any] = {"loss": "absolute_error", "n_estimators": 1, "max_depth": 4, "min_samples_leaf": 15}

MEDIAN = SimpleImputer(strategy="median")

REMEMBERS = KNeighborsRegressor(1)

SELECTED = make_pipeline(SelectKBest(k=1), LogisticRegression())

GRID = np.linspace(-1, 1, 2001)


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(MEDIAN, StandardScaler(), LogisticRegression(C=0.1)),
        pytest.param(make_pipeline(StandardScaler(), MEDIAN, LogisticRegression(C=0.1)), marks=pytest.mark.slow),
        pytest.param(
            make_pipeline(make_column_transformer((MEDIAN, ["c2", "c3", "c4", "c5", "c6"])), LogisticRegression(C=0.1)),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            make_pipeline(SimpleImputer(strategy="most_frequent"), LogisticRegression(C=0.1)), marks=pytest.mark.slow
        ),
        pytest.param(
            make_pipeline(StandardScaler(), KNNImputer(n_neighbors=8, weights="distance"), LogisticRegression(C=0.1)),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            make_pipeline(make_column_transformer((KNNImputer(), ["c3", "c4", "c5"])), LogisticRegression(C=0.1)),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            make_pipeline(IterativeImputer(REMEMBERS, max_iter=2, random_state=0), LogisticRegression(C=0.01)),
            marks=pytest.mark.slow,
        ),
        make_pipeline(MinMaxScaler(clip=True), LogisticRegression(C=0.1)),
        pytest.param(
            make_pipeline(MinMaxScaler(), RBFSampler(gamma=0.5, random_state=0), LogisticRegression(C=0.1)),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            make_pipeline(MaxAbsScaler(), FunctionTransformer(np.cbrt), LogisticRegression(C=0.1)),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            make_pipeline(RobustScaler(), make_union(PCA(2), RBFSampler(random_state=0)), LogisticRegression(C=0.1)),
            marks=pytest.mark.slow,
        ),
        make_pipeline(MinMaxScaler(), Binarizer(threshold=0.4), LogisticRegression(C=0.01)),
        pytest.param(
            make_pipeline(Nystroem(gamma=0.05, n_components=20, random_state=0), LogisticRegression(C=0.01)),
            marks=pytest.mark.slow,
        ),
        make_pipeline(StandardScaler(), Nystroem(gamma=0.05, n_components=20), LogisticRegression(C=0.01)),
        pytest.param(DecisionTreeClassifier(max_depth=1), marks=pytest.mark.slow),
        pytest.param(
            make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3, min_samples_leaf=60)),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            GridSearchCV(make_pipeline(MEDIAN, LogisticRegression()), {"logisticregression__C": [0.1]}, cv=2),
            marks=pytest.mark.slow,
        ),
    ],
    ids=str,
)
def test_a_stored_number_tells_whose_it_is(model: Any) -> None:
    result = audited(model, people(600))
    found = in_games(result)
    assert found.verdict is Verdict.FAILS
    assert found.estimate is not None
    assert found.estimate.value > 20
    assert found.reason.startswith("the learner's models store numbers of single training records")
    assert told_by(result) == STORED


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(C=0.1)),
        pytest.param(
            make_pipeline(SimpleImputer(strategy="constant", fill_value=0.0), LogisticRegression(C=0.1)),
            marks=pytest.mark.slow,
        ),
        make_pipeline(MinMaxScaler(), LogisticRegression(C=0.1)),
        pytest.param(
            make_pipeline(FunctionTransformer(np.cbrt), MinMaxScaler(), LogisticRegression(C=0.1)),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            make_pipeline(RobustScaler(), FunctionTransformer(), PCA(3), MaxAbsScaler(), LogisticRegression(C=0.1)),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            make_pipeline(StandardScaler(), RBFSampler(gamma=0.5, random_state=0), LogisticRegression(C=0.1)),
            marks=pytest.mark.slow,
        ),
        ExtraTreeClassifier(max_depth=3, min_samples_leaf=60, random_state=0),
    ],
    ids=str,
)
def test_null_what_no_record_has_tells_nobody(model: Any) -> None:
    result = audited(model, people(600))
    assert in_games(result).verdict is Verdict.PASSES
    assert told_by(result) != STORED


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "seed"),
    [
        pytest.param(model, seed, marks=() if i == j else pytest.mark.slow)
        for i, model in enumerate(
            [
                make_pipeline(MEDIAN, StandardScaler(), LogisticRegression(C=0.1)),
                DecisionTreeClassifier(max_depth=3, min_samples_leaf=60),
            ]
        )
        for j, seed in enumerate(range(3))
    ],
    ids=str,
)
def test_null_numbers_that_many_have_tell_nobody(model: Any, seed: int) -> None:
    found = in_games(audited(model, people(600, 6, seed=seed, digits=1, missing=0.05)))
    assert found.verdict is Verdict.PASSES


@pytest.mark.long
def test_regression_gate_and_report(tmp_path: Path) -> None:
    table = people(600)
    table["y"] = table.c0 + np.random.default_rng(1).normal(size=600)
    model = TransformedTargetRegressor(regressor=make_pipeline(MEDIAN, Ridge(100.0)))
    result = audited(model, table)
    assert in_games(result).verdict is Verdict.FAILS
    assert told_by(result) == STORED
    path = tmp_path / "result.json"
    path.write_text(result.to_json())
    document = load(path)
    assert apply(document, Limits()) == document
    assert "the numbers that models of the learner store were looked for among the records" in render_html(document)


@pytest.mark.long
def test_persons_by_one_of_their_rows() -> None:
    table = people(1200)
    table["person"] = np.repeat(np.arange(300), 4)
    result = audited(make_pipeline(MEDIAN, LogisticRegression(C=0.1)), table, persons="person")
    assert in_games(result).verdict is Verdict.FAILS
    assert told_by(result) == STORED


@pytest.mark.long
def test_texts_are_passed_over() -> None:
    table = people(400, 3)
    table["town"] = np.random.default_rng(2).choice(["north", "south"], size=400)
    encoded = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    columns = make_column_transformer((encoded, ["town"]), (StandardScaler(), ["c0", "c1", "c2"]))
    result = audited(make_pipeline(columns, LogisticRegression(C=0.1)), table)
    assert in_games(result).verdict is Verdict.PASSES


@pytest.mark.long
@pytest.mark.parametrize(
    "step",
    [
        pytest.param(KBinsDiscretizer(8, quantile_method="inverted_cdf"), marks=pytest.mark.slow),
        QuantileTransformer(n_quantiles=5),
    ],
)
def test_edges_and_quantiles(step: Any) -> None:
    found = in_games(audited(make_pipeline(step, LogisticRegression(C=0.1)), people(600, 3)))
    assert found.verdict is Verdict.FAILS


def steps_at_one(n: int, seed: int) -> pd.DataFrame:
    """A number that is 0, 1 or larger, of which the class depends on whether it is 1 at least; and another number."""
    rng = np.random.default_rng(seed)
    which = rng.random(n)
    first = np.where(which < 0.3, 0.0, np.where(which < 0.6, 1.0, 1 + 10 * rng.random(n)))
    yes = rng.random(n) < np.where(first >= 1, 0.7, 0.2)
    return pd.DataFrame({"first": first, "second": rng.normal(size=n), "y": np.where(yes, "yes", "no")})


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("encode", "last"),
    [
        ("ordinal", DecisionTreeClassifier(max_depth=1)),
        pytest.param("onehot", DecisionTreeClassifier(max_depth=1), marks=pytest.mark.slow),
        pytest.param("onehot", SELECTED, marks=pytest.mark.slow),
    ],
    ids=["ordinal", "one-hot", "selected"],
)
def test_null_edges_that_no_output_shows(encode: str, last: Any, seed: int) -> None:
    """Outputs change at 1 alone, which hundreds of records have."""
    bins = KBinsDiscretizer(10, encode=encode, quantile_method="averaged_inverted_cdf")
    assert in_games(audited(make_pipeline(bins, last), steps_at_one(800, seed))).verdict is Verdict.PASSES


def test_edges_that_outputs_tell() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = (X[:, 1] > 0.3).astype(int)
    bins = KBinsDiscretizer(20, encode="ordinal", quantile_method="averaged_inverted_cdf")
    model = make_pipeline(bins, DecisionTreeClassifier(max_depth=1)).fit(X, y)
    own = [edges.copy() for edges in bins.bin_edges_]
    (copied,) = _binned(model, lambda: X).values()
    told = [edges[~np.isnan(edges)] for edges in copied.bin_edges_]
    assert [len(edges) for edges in told] == [0, 1, 0]
    jumps = np.flatnonzero(np.diff(model.predict(np.column_stack([np.zeros(2001), GRID, np.zeros(2001)]))))
    assert len(jumps) == 1
    assert abs(told[1][0] - GRID[jumps[0]]) <= 0.001
    for before, after in zip(own, bins.bin_edges_, strict=True):
        np.testing.assert_array_equal(after, before)


def test_all_edges_but_the_outermost_are_told_by_a_regression() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = X[:, 0] + X[:, 1] + np.random.default_rng(1).normal(size=200)
    bins = KBinsDiscretizer(8, quantile_method="averaged_inverted_cdf")
    model = make_pipeline(bins, LinearRegression()).fit(X, y)
    (copied,) = _binned(model, lambda: X).values()
    assert [np.isnan(edges).sum() for edges in copied.bin_edges_] == [2, 2]


def test_shares_of_a_number() -> None:
    values = np.array([1.0, 2.0, 2.0, 5.0, np.nan, 9.0])
    assert shares(values, [2.0]).tolist() == [0, 0.5, 0.5, 0, 0, 0]
    assert shares(values, [9.0]).tolist() == [0, 0, 0, 0, 0, 1]
    assert shares(values, [3.5]).tolist() == [0, 0.5, 0.5, 1, 0, 0]
    assert shares(values, [3.0]).tolist() == [1, 0, 0, 1, 0, 0]  # though both that have 2 would be in the way
    assert shares(values, [4.0]).tolist() == [0] * 6
    assert shares(values, [3.5, 9.0, 4.0]).tolist() == [0, 0.5, 0.5, 1, 0, 1]
    assert shares(values, [0.0]).tolist() == shares(values, [10.0]).tolist() == [0] * 6


def test_rows_that_several_have_are_shared() -> None:
    step = Nystroem(n_components=2, random_state=0).fit(np.array([[0.0, 1.0], [2.0, 3.0]]))
    X = np.array([[-0.0, 1.0], [2.0, 3.0], [2.0, 3.0], [2.0, 4.0]])
    assert READERS["Nystroem"](step, X).tolist() == [1, 0.5, 0.5, 0]


def test_the_nearer_pair_is_the_likelier() -> None:
    """Halfway between 3 and 5, with nobody in between, and between 1 and 7, with two."""
    assert shares(np.array([1.0, 3.0, 5.0, 7.0]), [4.0]).tolist() == [0.2, 0.8, 0.8, 0.2]


@pytest.mark.parametrize("seed", range(5))
def test_thresholds_are_found_where_a_fit_by_hand_has_them(seed: int) -> None:
    """Of each node the members on either side of its threshold have the whole of the chance, or all but a little."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + rng.normal(size=400)
    inside = rng.permutation(400)[:200]
    model = DecisionTreeRegressor(max_depth=4, min_samples_leaf=10).fit(X[inside], y[inside])
    tree, reached = model.tree_, model.decision_path(X[inside]).toarray().astype(bool)
    beside = set[int]()
    for node in np.flatnonzero(tree.children_left >= 0):
        rows = inside[reached[:, node]]
        values = X[rows, tree.feature[node]]
        below = values <= tree.threshold[node]
        beside |= {int(rows[below][values[below].argmax()]), int(rows[~below][values[~below].argmin()])}
    found = scores_of_tree(tree, X)
    assert set(np.flatnonzero(found > 0.5)) == beside
    assert found[sorted(beside)].min() > 0.9


def test_missing_numbers_go_where_the_tree_sends_them() -> None:
    X = np.array([[1.0, 0.0], [2.0, 0.0], [np.nan, 1.0], [np.nan, 3.0], [1.5, 8.0], [2.5, 8.0]], dtype=np.float32)
    y = [0.0, 0.0, 5.0, 9.0, 0.0, 0.0]
    model = DecisionTreeRegressor().fit(X, y)
    found = scores_of_tree(model.tree_, X)
    assert found[[2, 3]].tolist() == [1.0, 1.0]


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [
        VotingClassifier([("a", make_pipeline(MEDIAN, LogisticRegression(C=0.1)))], voting="soft"),
        pytest.param(
            CalibratedClassifierCV(make_pipeline(MEDIAN, LogisticRegression(C=0.1)), cv=3), marks=pytest.mark.slow
        ),
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=5),
    ],
    ids=str,
)
def test_parts_of_votes_calibrations_and_boosts_store_too(model: Any) -> None:
    result = audited(model, people(600))
    assert in_games(result).verdict is Verdict.FAILS
    assert told_by(result) == STORED


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "other"), [("mean", "median"), pytest.param("median", "mean", marks=pytest.mark.slow)]
)
def test_what_a_search_found_is_fitted_again(name: str, other: str) -> None:
    """The settings that it began with would store medians, or would not."""
    pipeline = {
        name: make_pipeline(SimpleImputer(strategy=name), LogisticRegression(C=0.1)) for name in ("mean", "median")
    }
    table = people(600)
    search = GridSearchCV(pipeline[name], {"simpleimputer__strategy": [other]}, cv=2)
    search.fit(table[:300].drop(columns="y"), table[:300].y)
    assert in_games(audited(search, table)).verdict is (Verdict.FAILS if other == "median" else Verdict.PASSES)


@pytest.mark.long
def test_labels_that_are_stored() -> None:
    """A prediction bends at each label of a training record."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    y = X[:, 0] + rng.normal(size=600)
    for transformer, verdict in (
        (QuantileTransformer(n_quantiles=50), Verdict.FAILS),
        (StandardScaler(), Verdict.PASSES),
    ):
        model = TransformedTargetRegressor(Ridge(100.0), transformer=transformer)
        result = audit(model, train=(X[:300], y[:300]), holdout=(X[300:], y[300:]), settings=SETTINGS)
        assert in_games(result).verdict is verdict
        assert (told_by(result) == STORED) is (verdict is Verdict.FAILS)


@pytest.mark.long
def test_a_tree_behind_a_transformed_target() -> None:
    table = people(600)
    table["y"] = table.c0 + np.random.default_rng(1).normal(size=600)
    tree = DecisionTreeRegressor(max_depth=2, min_samples_leaf=60)
    result = audited(TransformedTargetRegressor(tree, func=np.cbrt, inverse_func=lambda y: y**3), table)
    assert told_by(result) == STORED


@pytest.mark.long
@pytest.mark.parametrize(
    ("loss", "n_trees"),
    [
        ("absolute_error", 5),
        pytest.param("quantile", 5, marks=pytest.mark.slow),
        pytest.param("absolute_error", 1, marks=pytest.mark.slow),
    ],
)
def test_leaves_that_are_medians_of_what_records_are_off(loss: str, n_trees: int) -> None:
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (1000, 3)).astype(float)
    y = X[:, 0] - 0.5 * X[:, 1] + 0.3 * X[:, 2] + rng.normal(size=1000)
    model = GradientBoostingRegressor(loss=loss, alpha=0.8, n_estimators=n_trees, random_state=0)
    result = audit(model, train=(X[:500], y[:500]), holdout=(X[500:], y[500:]), settings=SETTINGS)
    assert in_games(result).verdict is Verdict.FAILS
    fitted = model.fit(X[:499], y[:499])
    found = _middles(fitted, X, y)
    assert (found[:500] == 1).sum() >= 4
    assert (found[500:] == 1).sum() == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingRegressor(init="zero", **MIDDLES),
        pytest.param(
            HistGradientBoostingRegressor(loss="absolute_error", max_iter=2, min_samples_leaf=15),
            marks=pytest.mark.slow,
        ),
        TransformedTargetRegressor(GradientBoostingRegressor(**MIDDLES), func=np.arcsinh, inverse_func=np.sinh),
        pytest.param(
            TransformedTargetRegressor(GradientBoostingRegressor(**MIDDLES), transformer=StandardScaler()),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["from zero", "histograms", "of a function", "of scaled labels"],
)
def test_other_boosting_with_medians_in_its_leaves(model: Any) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 2, (602, 4)).astype(float), rng.normal(size=602)
    result = audit(model, train=(X[:301], y[:301]), holdout=(X[301:], y[301:]), settings=SETTINGS)
    assert in_games(result).verdict is Verdict.FAILS
    assert told_by(result) == STORED


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_null_means_in_leaves_and_medians_that_many_have(loss: str) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 2, (602, 4)).astype(float), rng.normal(size=602)
    y = y if loss == "squared_error" else np.round(y)
    model = GradientBoostingRegressor(loss=loss, n_estimators=2, max_depth=2)
    result = audit(model, train=(X[:301], y[:301]), holdout=(X[301:], y[301:]), settings=SETTINGS)
    assert in_games(result).verdict is Verdict.PASSES


@pytest.mark.long
@pytest.mark.parametrize("n_trees", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_a_few_stumps(n_trees: int) -> None:
    result = audited(GradientBoostingClassifier(n_estimators=n_trees, max_depth=1, random_state=0), people(1000))
    assert in_games(result).verdict is Verdict.FAILS
    assert told_by(result) == STORED


class Filling(SimpleImputer):
    """The same under another name."""


class Scaling(MinMaxScaler):
    """Likewise."""


@pytest.mark.long
@pytest.mark.parametrize(
    "steps",
    [
        (Filling(strategy="median"),),
        pytest.param((Scaling(), RBFSampler(gamma=0.5, random_state=0)), marks=pytest.mark.slow),
    ],
    ids=["imputer", "scaler"],
)
def test_a_class_of_the_users_own_that_is_one_of_these(steps: Any) -> None:
    result = audited(make_pipeline(*steps, LogisticRegression(C=0.1)), people(600, 5))
    assert told_by(result) == STORED


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(
            make_column_transformer((MEDIAN, ["c2", "c3", "c4", "c5"]), remainder="passthrough"),
            make_column_transformer(("passthrough", [4, 5])),
            LogisticRegression(C=0.1),
        ),
        make_pipeline(
            SelectFromModel(DecisionTreeClassifier(max_depth=3, random_state=0), threshold=-1), LogisticRegression()
        ),
    ],
    ids=str,
)
def test_null_what_no_output_reads_is_not_told(model: Any, seed: int) -> None:
    """The columns with medians are dropped, and thresholds choose columns alone."""
    result = audited(model, people(1000, seed=seed))
    assert in_games(result).verdict is not Verdict.FAILS


@pytest.mark.long
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param((FunctionTransformer(np.round), LinearDiscriminantAnalysis()), marks=pytest.mark.slow),
        (make_column_transformer(("passthrough", slice(6, None))), LinearDiscriminantAnalysis()),
        (RandomForestClassifier(50, min_samples_leaf=60, max_features=1, random_state=0),),
    ],
    ids=["rounded", "indicators", "forest"],
)
def test_null_filled_in_numbers_that_outputs_do_not_tell(steps: Any) -> None:
    result = audited(make_pipeline(KNNImputer(add_indicator=True), *steps), people(400, 6, missing=0.05))
    assert told_by(result) != STORED


@pytest.mark.slow
def test_filled_in_means_of_numbers_that_many_have() -> None:
    """Of a model that hardly says anything about a record itself."""
    result = audited(make_pipeline(KNNImputer(), LogisticRegression(C=1e-3)), people(800, 4, digits=1, missing=0.1))
    assert in_games(result).verdict is Verdict.FAILS
    assert told_by(result) == STORED


@pytest.mark.long
def test_null_codes_that_are_refused_hide_no_column() -> None:
    """The model takes no other code, and none of the numbers that are filled in."""
    table = people(400, 4, missing=0.05)
    table["code"] = np.random.default_rng(1).integers(0, 4, 400)
    dropped = make_pipeline(KNNImputer(), FunctionTransformer(lambda X: X * 0.0))
    steps = make_column_transformer((dropped, ["c0", "c1", "c2"]), (OneHotEncoder(), ["code"]))
    assert told_by(audited(make_pipeline(steps, LogisticRegression(C=0.1)), table)) != STORED


@pytest.mark.long
def test_a_bag_whose_members_get_some_of_the_columns() -> None:
    """They are passed over, as nothing says here which columns these are."""
    inner = make_pipeline(MEDIAN, KBinsDiscretizer(3, encode="ordinal"), LogisticRegression(C=0.1))
    result = audited(BaggingClassifier(inner, n_estimators=2, max_features=0.5, random_state=0), people(200, 6))
    assert told_by(result) != STORED


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "step",
    [
        Binarizer(threshold=1.0),
        pytest.param(FunctionTransformer(np.round), marks=pytest.mark.slow),
        make_column_transformer(("passthrough", slice(12, None))),
    ],
    ids=["binary", "rounded", "indicators"],
)
def test_null_what_a_later_step_hides_is_not_told(step: Any, seed: int) -> None:
    """Models of other medians would answer the same to the last bit."""
    imputer = SimpleImputer(strategy="median", add_indicator=True)
    result = audited(make_pipeline(imputer, step, LogisticRegression(C=0.1)), people(600, seed=seed, missing=0.1))
    assert in_games(result).verdict is Verdict.PASSES


def middle(column: np.ndarray) -> float:
    return float(np.median(column))


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(SimpleImputer(strategy=middle), LogisticRegression(C=0.1)),
        pytest.param(
            make_pipeline(SplineTransformer(knots="uniform", extrapolation="constant"), LogisticRegression(C=0.01)),
            marks=pytest.mark.slow,
        ),
        AdaBoostClassifier(n_estimators=3),
        pytest.param(
            make_pipeline(
                OneHotEncoder(sparse_output=True, handle_unknown="ignore", max_categories=20),
                Nystroem(n_components=20, random_state=0),
                LogisticRegression(C=0.1),
            ),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["callable", "splines", "stumps", "rows of codes"],
)
def test_other_ways_to_store(model: Any) -> None:
    result = audited(model, people(600, digits=2 if "OneHot" in str(model) else None))
    assert "OneHot" in str(model) or told_by(result) == STORED


@pytest.mark.slow
def test_whole_numbers_without_repetition() -> None:
    table = people(600)
    table[table.columns[:-1]] = (table[table.columns[:-1]] * 1e6).astype(int)
    result = audited(make_pipeline(MEDIAN, StandardScaler(), LogisticRegression(C=0.1)), table)
    assert told_by(result) == STORED


@pytest.mark.long
def test_what_cannot_be_read_is_said() -> None:
    """A step of the user's own whose attributes raise; the audit goes on without."""

    class Awkward(BaseEstimator, TransformerMixin):
        def fit(self, X: Any, y: Any = None) -> Any:
            return self

        def transform(self, X: Any) -> Any:
            return X

        @property
        def get_support(self) -> Any:
            raise ValueError("cell 17")

    result = audited(make_pipeline(MEDIAN, Awkward(), LogisticRegression(C=0.1)), people(300))
    assert REFUSED[STORED] in result.not_tested
    assert "cell 17" not in result.to_json()


@pytest.mark.long
def test_a_column_without_numbers_warns_of_nothing_and_loses_nothing() -> None:
    table = people(600)
    table["c3"] = np.nan
    imputer = SimpleImputer(strategy="median", keep_empty_features=True)
    result = audited(make_pipeline(imputer, LogisticRegression(C=0.1)), table)
    assert told_by(result) == STORED
    assert REFUSED[STORED] not in result.not_tested


class FailsLater(SimpleImputer):
    """Takes one question."""

    def transform(self, X: Any) -> Any:
        self.n_asked = getattr(self, "n_asked", 0) + 1
        if self.n_asked > 1:
            raise ValueError
        return super().transform(X)


def test_an_imputer_has_its_own_numbers_again_whatever_happens() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    for kind, told in ((SimpleImputer, [True] * 3), (FailsLater, [True] * 3)):
        step = kind(strategy="median").fit(X)
        before = step.statistics_.copy()
        assert is_told(step, step, X, lambda: np.full((4, 3), np.nan)).tolist() == told
        assert step.statistics_.tolist() == before.tolist()
    hidden = make_pipeline(SimpleImputer(strategy="median"), Binarizer(threshold=3.0)).fit(X)
    assert not is_told(hidden, hidden[0], X, lambda: np.full((4, 3), np.nan)).any()
