"""Preprocessing that is fitted on the records: its output without each of them, compared with fitting it anew."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from leakgauge.training.engines.fitted import fitted_steps

WORKED = np.column_stack([[0.0, 1, 2, 4, 5, 9], [0.0, 0, 0, 0, 0, 3]])
"""Two columns, the second constant without the last record."""


def odd_columns():
    """Smooth, skewed, binary, lonely, constant, nearly constant, heavy-tailed, far from 0, and with many ties."""
    rng = np.random.default_rng(0)
    n = 40
    return np.column_stack(
        [
            rng.normal(size=n),
            rng.lognormal(sigma=2, size=n),
            rng.random(n) < 0.5,
            np.arange(n) == 7,
            np.arange(n) < 2,
            np.full(n, 0.1),
            np.full(n, 5.0) + 1e-3 * (np.arange(n) == 3),
            rng.standard_cauchy(n) * 1e3,
            1e6 + rng.normal(size=n),
            rng.integers(0, 3, n),
            -rng.integers(0, 3, n),
        ]
    ).astype(float)


def known(step, table):
    found = fitted_steps(make_pipeline(step, LinearRegression()), table)
    assert not isinstance(found, str), found
    return found


def design_without(step, table, t):
    """What the step makes of all records if it is fitted without one."""
    others = np.delete(table, t, axis=0) if isinstance(table, np.ndarray) else table.drop(index=t)
    made = clone(step).fit(others).transform(table)
    return made.toarray() if hasattr(made, "toarray") else np.asarray(made, dtype=float)


SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler(),
    MinMaxScaler((-1, 3)),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(quantile_range=(10.0, 65.0), unit_variance=True),
    RobustScaler(with_centering=False),
    RobustScaler(with_scaling=False),
]


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
@pytest.mark.parametrize("X", [WORKED, odd_columns()], ids=["worked", "odd"])
def test_the_design_without_a_record_is_known_but_for_a_constant(scaler, X):
    transform, _, steps = known(scaler, X)
    whole, change = transform(X), steps.without(np.arange(len(X)))
    assert change.rho.shape == X.shape
    for t in np.flatnonzero(~change.unknown):
        others = np.arange(len(X)) != t
        expected, found = design_without(scaler, X, t), whole / np.sqrt(change.rho[t])
        varies = np.ptp(X[others], axis=0) > 0
        assert (change.rho[t, ~varies] == 1).all()
        difference = (found - expected)[:, varies]
        size = np.abs(expected[:, varies]).max(axis=0) + 1
        np.testing.assert_allclose(np.ptp(difference, axis=0) / size, 0, atol=1e-9)
    assert change.unknown.mean() < 0.1


def test_the_worked_example():
    """Computed by hand and with scikit-learn 1.9.1; n = 6, and 5 of the 6 values of the second column are 0."""
    rho = known(StandardScaler(), WORKED)[2].without(np.arange(6)).rho
    first = [0.8702803738, 1.0317757009, 1.1394392523, 1.1932710280, 1.1394392523, 0.3857943925]
    np.testing.assert_allclose(rho, np.column_stack([first, [1.152] * 5 + [1.0]]), atol=1e-10)
    np.testing.assert_array_equal(known(MinMaxScaler(), WORKED)[2].without(np.arange(1, 5)).rho, 1.0)


@pytest.mark.parametrize(
    "scaler", [StandardScaler(with_mean=False), MaxAbsScaler(), RobustScaler(with_centering=False)], ids=str
)
def test_rounding_goes_by_the_largest_value_of_a_column_on_either_side_of_0(scaler):
    """Where nothing is subtracted that is the largest of what comes out; as large without a sign."""
    transform, _, steps = known(scaler, odd_columns())
    np.testing.assert_allclose(steps.sizes, np.abs(transform(odd_columns())).max(axis=0), rtol=1e-12)
    np.testing.assert_allclose(known(scaler, -odd_columns())[2].sizes, steps.sizes, rtol=1e-12)


@pytest.mark.parametrize("size", [5, 20, 40])
def test_the_scale_of_any_subset(size):
    """With columns that are constant on some of them, on all, or nearly so."""
    X, members = odd_columns(), np.argsort(np.random.default_rng(4).random((30, 40)), axis=1) < size
    step = ColumnTransformer([("numbers", StandardScaler(), slice(0, 9)), ("codes", OneHotEncoder(), [9])])
    steps = known(step.set_params(codes__handle_unknown="ignore"), X)[2]
    assert not steps.one_less
    change, whole = steps.on(members), StandardScaler().fit(X[:, :9]).scale_
    assert not change.unknown.any()
    for rho, own in zip(change.rho, members, strict=True):
        part = X[own, :9]
        expected = np.where(np.ptp(part, axis=0) == 0, 1.0, (StandardScaler().fit(part).scale_ / whole) ** 2)
        np.testing.assert_allclose(rho[:9], expected, rtol=1e-7)
        assert (rho[9:] == 1).all()


def test_what_is_not_known_on_any_subset():
    for step in (MinMaxScaler(), RobustScaler(), OneHotEncoder(), SimpleImputer(), SimpleImputer(strategy="constant")):
        assert known(step, WORKED)[2].one_less
    assert known(make_pipeline(SimpleImputer(), StandardScaler()), WORKED)[2].one_less
    assert known(make_pipeline(OneHotEncoder(), StandardScaler(with_mean=False)), WORKED)[2].one_less
    for step in (StandardScaler(), StandardScaler(with_std=False), OneHotEncoder(handle_unknown="ignore")):
        assert not known(step, WORKED)[2].one_less


def test_columns_on_the_edge_of_being_constant_are_not_judged():
    """Without record 3 a spread of 2e-11 is left of values near 5000: below the bound on its rounding, or nearly so."""
    X = np.column_stack([np.full(30, 5e3), np.arange(30.0)])
    X[3, 0], X[4, 0] = 6e3, 5e3 + 2e-11
    change = known(StandardScaler(), X)[2].without(np.arange(30))
    assert np.flatnonzero(change.unknown).tolist() == [3]
    X = np.column_stack([np.arange(30) == 3, np.full(30, 0.0)]).astype(float)
    X[4, 0] = 3e-15  # a range that RobustScaler, MinMaxScaler and MaxAbsScaler may take for 0
    assert np.flatnonzero(known(MinMaxScaler(), X)[2].without(np.arange(30)).unknown).tolist() == [3]


def with_holes():
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=(30, 2)), rng.lognormal(size=30), rng.integers(0, 3, 30), np.arange(30) % 2])
    X[rng.random(X.shape) < [0.1, 0.0, 0.4, 0.2, 0.1]] = np.nan
    X[:, 4] = np.where(np.arange(30) < 3, X[:, 4], np.nan)
    X[0, 4] = 5.0
    return X


@pytest.mark.parametrize("strategy", ["mean", "median"])
@pytest.mark.parametrize("scaler", [None, StandardScaler(), StandardScaler(with_mean=False)], ids=str)
def test_what_is_filled_in_moves_and_the_scale_with_it(strategy, scaler):
    """Columns of any share of missing values, down to three values."""
    X, step = with_holes(), make_pipeline(SimpleImputer(strategy=strategy), scaler)
    transform, _, steps = known(step, X)
    whole, change = transform(X), steps.without(np.arange(30))
    assert change.fill is not None
    np.testing.assert_array_equal(steps.missing, np.isnan(X))
    assert not change.unknown.any()
    for t in range(30):
        difference = (whole - steps.missing * change.fill[t]) / np.sqrt(change.rho[t]) - design_without(step, X, t)
        np.testing.assert_allclose(np.ptp(difference, axis=0), 0, atol=1e-10)


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
def test_records_that_alone_have_a_value_or_decide_which_is_most_frequent(strategy):
    X = np.array([[1.0, 2.0], [np.nan, 2.0], [np.nan, 3.0], [np.nan, 3.0], [np.nan, 2.0], [np.nan, np.nan]])
    unknown = known(SimpleImputer(strategy=strategy), X)[2].without(np.arange(6)).unknown
    assert np.flatnonzero(unknown).tolist() == ([0, 1, 4] if strategy == "most_frequent" else [0])


def table_of_people():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    frame = pandas.DataFrame(
        {
            "age": rng.integers(18, 80, 60) * 1.0,
            "gain": rng.lognormal(size=60),
            "colour": rng.choice(["red", "green", "blue"], 60),
            "town": rng.choice(["here", "there"], 60),
        }
    )
    frame.loc[5, "colour"] = "mauve"
    return frame


@pytest.mark.parametrize("handle_unknown", ["ignore", "error"])
@pytest.mark.parametrize("drop", [None, "first", "if_binary"])
def test_blocks_of_columns_side_by_side(drop, handle_unknown):
    """Whatever is not marked is as without the record: the same columns, but for those that are 0 throughout."""
    table = table_of_people()
    step = ColumnTransformer(
        [
            ("colours", OneHotEncoder(drop=drop, handle_unknown=handle_unknown), ["colour", "town"]),
            ("none", "drop", ["gain"]),
            ("numbers", make_pipeline("passthrough", StandardScaler()), make_column_selector(dtype_include=float)),
        ],
        remainder="passthrough",
        sparse_threshold=0,
    )
    transform, _, steps = known(step, table)
    change, whole = steps.without(np.arange(60)), transform(table)
    assert change.rho.shape == whole.shape
    assert np.flatnonzero(change.unknown).tolist() == ([5] if drop or handle_unknown == "error" else [])
    for t in (0, 5, 59):
        if change.unknown[t]:
            continue
        others = np.arange(60) != t
        expected, found = design_without(step, table, t), whole / np.sqrt(change.rho[t])
        there = (np.ptp(found[others], axis=0) > 0) | (found[others] != 0).any(axis=0)
        found = found[:, there]
        np.testing.assert_allclose((found - expected) - (found - expected)[0], 0, atol=1e-12)


def same_without(step, table, some):
    """Records without which the step is known to make of all others and of these what it makes with them."""
    transform, _, steps = known(step, table)
    change, whole = steps.without(np.arange(len(table))), transform(table)
    whole = whole.toarray() if hasattr(whole, "toarray") else whole
    assert (change.rho == 1).all()
    for t in np.setdiff1d(some, np.flatnonzero(change.unknown)):
        np.testing.assert_array_equal(design_without(step, table, t), whole)
    return change.unknown


def letters():
    """Column one: a 6 times, b 4, c 4, d 3, e 1, f 2; column two: x 12, y 8."""
    return np.column_stack([list("aaaaaabbbbccccdddeff"), list("xxxxxxyyyyyyyyxxxxxx")])


@pytest.mark.parametrize(
    ("settings", "marked"),
    [
        ({"min_frequency": 4}, "bce"),  # without one of 4 these are infrequent too
        ({"min_frequency": 3}, "de"),
        ({"min_frequency": 0.2}, "bce"),  # 4 of 20, and 3.8 of 19: neither a count of 4 nor one of 3 changes sides
        ({"max_categories": 3}, "bce"),  # a and c are left: without a c, of 3 left, it would be b; ties go by order
        ({"max_categories": 2}, "e"),  # a is 2 ahead
        ({"max_categories": 4, "min_frequency": 2}, "cdeb"),
        ({"max_categories": 6}, "e"),
    ],
    ids=str,
)
@pytest.mark.parametrize("unknown", ["infrequent_if_exist", "ignore", "error"])
def test_records_without_which_other_categories_are_infrequent(settings, marked, unknown):
    """As found by fitting without each record; those alone in a category are marked besides."""
    table, step = letters(), OneHotEncoder(handle_unknown=unknown, **settings)
    found = same_without(step, table, np.arange(20))
    assert found[17], "e is there once"
    assert set(np.unique(table[found, 0])) <= set(marked)


def test_marks_of_a_block_without_columns():
    """All categories are infrequent, and the column that they share is dropped: without a record it may still fail."""
    encoder = OneHotEncoder(drop="first", min_frequency=2)
    table = np.column_stack([np.arange(20.0), np.arange(20) % 2])
    blocks = [
        ("codes", encoder, [0]),
        ("none", "drop", [1]),
        ("nothing", StandardScaler(), []),
        ("rest", MinMaxScaler(), [1]),
    ]
    transform, _, steps = known(ColumnTransformer(blocks), table)
    assert transform(table).shape == (20, 1)
    assert steps.without(np.arange(20)).unknown.all()


def test_numbers_of_categories():
    """Without the only e, f has its number, and e has none."""
    found = same_without(OrdinalEncoder(), letters(), np.arange(20))
    assert np.flatnonzero(found).tolist() == [17]
    unknown = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    assert np.flatnonzero(same_without(unknown, letters(), np.arange(20))).tolist() == [17]


@pytest.mark.parametrize("threshold", [0.0, 1e-12, 0.05, 0.2, 0.24, 0.6])
def test_columns_that_are_near_the_threshold_without_a_record(threshold):
    X = odd_columns()[:, [0, 2, 3, 4, 5, 6, 9]]
    found = same_without(VarianceThreshold(threshold), X, np.arange(40))
    expected = [
        VarianceThreshold(threshold).fit(np.delete(X, t, axis=0)).get_support().tolist()
        != VarianceThreshold(threshold).fit(X).get_support().tolist()
        for t in range(40)
    ]
    assert (found >= expected).all()
    assert found.mean() < 0.5


def test_a_variance_at_the_threshold_is_not_judged():
    X = np.column_stack([np.arange(20.0), np.arange(20) % 2])
    exact = float(np.delete(X, 4, axis=0).var(axis=0)[1])
    assert known(VarianceThreshold(exact), X)[2].without(np.arange(20)).unknown[4]


@pytest.mark.parametrize(("threshold", "unknown"), [(1e-14, True), (1e-10, False)])
def test_a_constant_far_from_0_has_a_variance_by_rounding_alone(threshold, unknown):
    """The mean of some records may be off by a part in 10^16 of 1e8, where that of all is exact."""
    X = np.column_stack([np.arange(20.0), np.full(20, 1e8 + 0.5)])
    assert (known(VarianceThreshold(threshold), X)[2].without(np.arange(20)).unknown == unknown).all()


def test_listed_categories_depend_on_nobody():
    table = table_of_people()[["colour"]]
    encoder = OneHotEncoder(categories=[["blue", "green", "mauve", "red"]], drop="first")
    assert not known(encoder, table)[2].without(np.arange(60)).unknown.any()


def test_steps_in_turn():
    """Fixed steps first, a scaler last, also of dummies; the marks of an encoder stay."""
    X = odd_columns()
    steps = known(make_pipeline(Normalizer(), None, make_pipeline("passthrough", StandardScaler())), X)[2]
    alone = known(StandardScaler(), Normalizer().transform(X))[2]
    np.testing.assert_array_equal(steps.without(np.arange(40)).rho, alone.without(np.arange(40)).rho)
    dummies = make_pipeline(OneHotEncoder(), StandardScaler(with_mean=False))
    change = known(dummies, X[:, [3, 9]])[2].without(np.arange(40))
    assert np.flatnonzero(change.unknown).tolist() == [7]
    assert (change.rho[7, :2] == 1).all()


def test_a_nested_learner_is_found():
    last = LinearRegression()
    _, found, _ = fitted_steps(make_pipeline(Normalizer(), make_pipeline(StandardScaler(), last)), WORKED)
    assert found is last


class MyScaler(StandardScaler):
    """Not scikit-learn's own."""


class MyPipeline(Pipeline):
    """Not scikit-learn's own."""


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (MyScaler(), "MyScaler is fitted on the data"),
        (MyPipeline([("a", StandardScaler())]), "MyPipeline is fitted on the data"),
        (FeatureUnion([("a", StandardScaler())]), "FeatureUnion is fitted on the data"),
        (PCA(), "PCA is fitted on the data"),
        (SimpleImputer(add_indicator=True), "SimpleImputer(add_indicator=True) loses a column"),
        (SimpleImputer(missing_values=0), "SimpleImputer is supported with missing_values=np.nan"),
        (SimpleImputer(strategy=np.max), "SimpleImputer(strategy=...) may look"),
        (make_pipeline(SimpleImputer(), MinMaxScaler()), "MinMaxScaler is given what a fitted step makes"),
        (make_pipeline(SimpleImputer(), StandardScaler(with_std=False)), "StandardScaler is given what a fitted step"),
        (KNNImputer(), "KNNImputer is fitted on the data"),
        (PolynomialFeatures(), "PolynomialFeatures is fitted on the data"),
        (OrdinalEncoder(min_frequency=2), "OrdinalEncoder(min_frequency=...) is fitted"),
        (OrdinalEncoder(max_categories=2), "OrdinalEncoder(max_categories=...) is fitted"),
        (make_pipeline(StandardScaler(), VarianceThreshold()), "VarianceThreshold is given what a fitted step makes"),
        (SelectKBest(k=1), "cannot be given this table"),
        (MinMaxScaler(clip=True), "MinMaxScaler(clip=True) clips"),
        (make_pipeline(StandardScaler(), Normalizer()), "Normalizer is given what a fitted step makes"),
        (make_pipeline(StandardScaler(), MinMaxScaler()), "MinMaxScaler is given what a fitted step makes"),
        (make_pipeline(OneHotEncoder(), Binarizer()), "Binarizer is given what a fitted step makes"),
        (ColumnTransformer([("a", PCA(), [0, 1])]), "PCA is fitted on the data"),
        (
            ColumnTransformer([("a", StandardScaler(), lambda table: table.max(axis=0) > 4)]),
            "ColumnTransformer selects columns by a function",
        ),
        (make_pipeline(OneHotEncoder(), StandardScaler()), "cannot be given this table"),  # sparse
    ],
    ids=lambda value: re.sub(r"\s|0x[0-9a-f]+", "", str(value))[:50],
)
def test_steps_without_a_closed_form_are_refused_with_a_reason(step, message):
    found = fitted_steps(make_pipeline(step, LinearRegression()), WORKED)
    assert isinstance(found, str)
    assert message in found


def test_odd_tables_and_pipelines_are_refused():
    assert "float32, which rounds" in fitted_steps(
        make_pipeline(StandardScaler(), LinearRegression()), WORKED.astype(np.float32)
    )
    missing = np.where(WORKED == 9, np.nan, WORKED)
    assert "given missing values" in fitted_steps(make_pipeline(StandardScaler(), LinearRegression()), missing)
    assert "without any value" in fitted_steps(
        make_pipeline(SimpleImputer(keep_empty_features=True), LinearRegression()), WORKED * [np.nan, 1]
    )
    assert "float32" in fitted_steps(make_pipeline(SimpleImputer(), LinearRegression()), WORKED.astype(np.float32))
    assert "3 records or more" in fitted_steps(make_pipeline(StandardScaler(), LinearRegression()), WORKED[:2])
    passed_on = Pipeline([("first", StandardScaler()), ("last", LinearRegression())], transform_input=["X_val"])
    assert fitted_steps(passed_on, WORKED) == "Pipeline(transform_input=...) is not supported"
    assert "not scikit-learn's own Pipeline" in fitted_steps(MyPipeline([("last", LinearRegression())]), WORKED)


def test_steps_that_do_nothing_mark_no_record():
    steps = known(make_pipeline("passthrough", None), WORKED)[2]
    change = steps.without(np.arange(len(WORKED)))
    assert not change.unknown.any()
    assert (steps.width, steps.learns) == (WORKED.shape[1], False)
