"""What fitted models hold is found, and where there is nothing, nothing is found."""

import functools
import io
import json
import re
from array import array
from collections import deque
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import (
    cluster,
    compose,
    decomposition,
    discriminant_analysis,
    dummy,
    ensemble,
    impute,
    isotonic,
    linear_model,
    mixture,
    model_selection,
    naive_bayes,
    neighbors,
    pipeline,
    preprocessing,
    svm,
    tree,
)
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import leakgauge as lg
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.inspecting import Kind, as_seen, inspect, records_seen
from leakgauge.records import Records

from .holders import CLASSES, HOLDERS, MLP, TABLE, VALUES, WORDS, N, X, fitted, named

ROWS, ENTRY, VALUE, MIDPOINT, WORD = Kind.ROWS, Kind.PER_RECORD, Kind.VALUE, Kind.MIDPOINT, Kind.WORD


def places(found):
    return {(one.where, one.kind, one.needed) for one in found.findings}


@pytest.mark.parametrize(("estimator", "y", "expected"), HOLDERS, ids=named)
def test_what_an_estimator_holds_is_found(estimator, y, expected):
    found = inspect(fitted(estimator, y), (X, CLASSES if y is None else y))
    assert expected <= places(found), places(found)
    assert found.exit_code == 1


@pytest.mark.parametrize(("estimator", "y", "expected"), HOLDERS, ids=named)
def test_what_is_known_of_an_estimator_is_found_without_records(estimator, y, expected):
    """All but values, rows and midpoints of centres and medians, which may be means."""
    found = {(where.replace("[0]", "[*]"), needed) for where, _, needed in places(inspect(fitted(estimator, y)))}
    means = ("cluster_centers_", "subcluster_centers_", "categories_[*]", "bin_edges_[*]")
    wanted = {(where.replace("[0]", "[*]"), needed) for where, _, needed in expected if where not in means}
    assert wanted <= found


PLENTY = np.random.default_rng(1).normal(size=(400, 3))
BY_FIRST = (PLENTY[:, 0] + np.random.default_rng(2).normal(size=400) > 0).astype(int)


@pytest.mark.parametrize(
    "estimator",
    [
        dummy.DummyClassifier(),
        dummy.DummyRegressor(),
        linear_model.LogisticRegression(),
        linear_model.Ridge(),
        linear_model.LinearRegression(),
        linear_model.SGDClassifier(),
        svm.LinearSVC(),
        naive_bayes.GaussianNB(),
        discriminant_analysis.LinearDiscriminantAnalysis(),
        decomposition.PCA(2),
        mixture.GaussianMixture(2),
        cluster.FeatureAgglomeration(),
        preprocessing.StandardScaler(),
        impute.SimpleImputer(),
        pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
        ensemble.VotingClassifier([("a", linear_model.LogisticRegression()), ("b", naive_bayes.GaussianNB())]),
    ],
    ids=named,
)
def test_nothing_is_found_where_there_is_nothing(estimator):
    found = inspect(fitted(estimator, BY_FIRST, PLENTY), (PLENTY, BY_FIRST))
    assert found.findings == ()
    assert found.exit_code == 0
    assert inspect(estimator).findings == ()


@pytest.mark.parametrize("columns", [2, 5])
def test_whole_numbers_do_not_agree_by_chance(columns):
    """Ages and counts of 300 records, of which some are single persons', against models that hold none of them."""
    ages = np.random.default_rng(3).integers(0, 90, size=(300, columns)).astype(float)
    y = (ages[:, 0] > 45).astype(int)
    for estimator in (linear_model.LogisticRegression(), naive_bayes.GaussianNB(), MLP()):
        kinds = {finding.kind for finding in inspect(fitted(estimator, y, ages), (ages, y)).findings}
        assert not kinds & {ROWS, VALUE, MIDPOINT, ENTRY, WORD}


def counts(n=1000, seed=0):
    """Small whole numbers, as of visits and drugs, with a record that has the median in each column and no twin."""
    rng = np.random.default_rng(seed)
    table = np.column_stack([rng.poisson(mean, n) for mean in (4, 2, 16, 0.6, 40)]).astype(float)
    median = np.median(table, axis=0)
    table = np.concatenate([table[(table != median).any(axis=1)], median[None]])
    assert (np.median(table, axis=0) == median).all()
    return table, (table[:, 0] > 4).astype(int)


def test_medians_of_counts_that_one_record_equals_by_chance_are_no_stored_row():
    table, y = counts()
    model = pipeline.make_pipeline(impute.SimpleImputer(strategy="median"), linear_model.LogisticRegression())
    found = inspect(model.fit(table, y), (table, y))
    assert not any(one.kind is ROWS for one in found.findings)
    model.held_ = model[0].statistics_.copy()  # nor anywhere else
    assert not any(one.kind is ROWS for one in inspect(model, (table, y)).findings)


def test_a_stored_row_is_found_among_counts_where_chance_does_not_explain_it():
    table, y = counts()
    model = linear_model.LogisticRegression(max_iter=9999).fit(table, y)
    rare = int(np.argmax(table[:, 3] + table[:, 1]))
    for held in (table[rare], table[[rare, -1]]):  # or several rows
        model.held_ = held.copy()
        assert {one.kind for one in inspect(model, (table, y)).findings} == {ROWS}
    for n_columns in (2, 4):
        decimals = np.random.default_rng(1).normal(size=(200, n_columns))
        model = linear_model.LogisticRegression().fit(decimals, decimals[:, 0] > 0)
        model.held_ = decimals[7].copy()
        found = inspect(model, (decimals, decimals[:, 0] > 0)).findings
        assert [(one.where, one.kind) for one in found] == [("held_", ROWS)]


def test_a_planted_name_in_a_vocabulary():
    texts = ["fever and cough"] * 40 + ["cough of Ravenscroft"]
    vectorizer = CountVectorizer().fit(texts)
    (finding,) = inspect(vectorizer, (texts, np.zeros(41))).findings
    assert (finding.where, finding.kind, finding.needed) == ("vocabulary_", WORD, True)
    assert (finding.n_entries, finding.n_records) == (2, 1)  # the name, and the "of" beside it, of one person
    assert "avenscroft" not in str(inspect(vectorizer, (texts, np.zeros(41))))


@pytest.mark.parametrize(
    ("encoder", "table", "where"),
    [
        (preprocessing.OneHotEncoder(), TABLE, "categories_[*]"),
        (preprocessing.OrdinalEncoder(), TABLE, "categories_[*]"),
        (TfidfVectorizer(), WORDS.tolist(), "vocabulary_"),
    ],
    ids=named,
)
def test_a_category_of_one_person(encoder, table, where):
    found = inspect(fitted(encoder, None, table), (table, CLASSES))
    assert (where, WORD, True) in places(found)
    assert "anzibar" not in str(found)


def test_names_of_a_dictionary():
    towns = [{"town": "Zanzibar"}, *[{"town": "south"}] * 20]
    vectorizer = DictVectorizer().fit(towns)
    for found in (inspect(vectorizer), inspect(vectorizer, (towns, np.zeros(21)))):
        assert ("vocabulary_", WORD, True) in places(found)
        assert "Zanzibar" not in str(found)


def test_rare_words_of_several_persons():
    table = np.array([["north"], *[["south"]] * 20, ["west"], ["west"]], dtype=object)
    encoder = preprocessing.OneHotEncoder(min_frequency=5).fit(table)
    (finding,) = inspect(encoder, (table, np.zeros(23))).findings
    assert (finding.where, finding.n_entries, finding.n_records) == ("categories_[0]", 2, 3)


def test_a_class_of_one_person():
    classes = np.where(CLASSES, "yes", "no").astype(object)
    classes[7] = "Ravenscroft"
    model = fitted(linear_model.LogisticRegression(), classes)
    assert places(inspect(model, (X, classes))) == {("classes_", WORD, True)}
    assert inspect(model).findings == ()


def test_a_planted_value_as_an_edge():
    ages = np.r_[np.repeat(np.arange(20.0, 70.0), 4), 103.0][:, None]
    edges = preprocessing.KBinsDiscretizer(3, strategy="uniform").fit(ages)
    (finding,) = inspect(edges, (ages, np.zeros(len(ages)))).findings
    assert (finding.where, finding.kind, finding.n_records) == ("bin_edges_[0]", VALUE, 1)


@pytest.mark.parametrize(("roundings", "kinds"), [(0, {MIDPOINT}), (1, {MIDPOINT}), (-1, {MIDPOINT}), (5, set())])
def test_a_median_of_two_persons_up_to_rounding(roundings, kinds):
    """Half of a sum is rounded once; what lies further off is the middle of nobody."""
    incomes = np.sort(PLENTY[:, :1], axis=0) + 10
    imputer = impute.SimpleImputer(strategy="median").fit(incomes)
    imputer.statistics_ += roundings * np.spacing(imputer.statistics_)
    assert {finding.kind for finding in inspect(imputer, (incomes, BY_FIRST)).findings} == kinds


def test_of_a_large_sparse_table_the_first_columns_are_searched(monkeypatch):
    """The same as of a dense one: as many as make up the cells that may be looked at."""
    monkeypatch.setattr(records_seen, "MOST_CELLS", 2 * 400)
    holder = preprocessing.MaxAbsScaler().fit(PLENTY)
    for table in (PLENTY, sparse.csr_array(PLENTY), sparse.csc_array(PLENTY)):
        assert as_seen(holder, (table, BY_FIRST), None, None).matrix.shape == (400, 2)


def test_two_rows_of_one_person_are_no_two_persons():
    """A value that one person has twice is that person's; one that two persons have is nobody's."""
    ages = np.r_[np.repeat(np.arange(20.0, 70.0), 4), 103.0, 103.0][:, None]
    scaler, y = preprocessing.MinMaxScaler().fit(ages), np.zeros(len(ages))
    whose = np.arange(len(ages))
    assert inspect(scaler, (ages, y)).findings == ()
    whose[-1] = whose[-2]
    (finding,) = inspect(scaler, (ages, y), persons=whose).findings
    assert (finding.where, finding.n_records) == ("data_max_", 1)


def test_records_are_searched_for_as_each_step_sees_them():
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(town=WORDS)
    encode = compose.make_column_transformer(
        (preprocessing.StandardScaler(), ["a", "b"]), (preprocessing.OneHotEncoder(), ["town"]), remainder="drop"
    )
    model = pipeline.make_pipeline(encode, svm.SVC()).fit(table, CLASSES)
    found = inspect(model, (table, CLASSES))
    assert ("steps[0].transformers_[1].categories_[0]", WORD, True) in places(found)
    (support,) = [one for one in found.findings if one.where == "steps[1].support_vectors_"]
    assert support.n_records == len(model[-1].support_)


def test_an_attribute_that_no_table_knows():
    """The general walk finds rows in single precision, entries, texts, paths and names in what a user added."""
    model = fitted(linear_model.LogisticRegression(), CLASSES)
    model.kept = X[:5].astype(np.float32)
    model.flags = CLASSES.astype(bool)
    model.deep = {"a": [(X[3, 1], "x")]}
    model.log = "/home/meier/study/run.log"
    model.closure = (lambda held: lambda: held)(X[9])
    found = {one.where: (one.kind, one.n_records) for one in inspect(model, (X, CLASSES)).findings}
    assert found["kept"] == (ROWS, 5)
    assert found["flags"] == (ENTRY, N)
    assert found["deep[0][0][0]"] == (VALUE, 1)
    assert found["log"] == (Kind.NAME, None)
    assert found["closure.__closure__[0]"][0] is ROWS


@dataclass(slots=True)
class Slotted:
    held: object


CONTAINERS = {
    "frame": pd.DataFrame(X[:5]),
    "index": pd.DataFrame({"a": [1, 2]}, index=X[:2, 0]),
    "column names": pd.DataFrame([[1, 2]], columns=list(X[:2, 0])),
    "polars": pl.DataFrame({"a": X[:5, 0]}),
    "lists": X[:5].tolist(),
    "set": set(X[:5, 0]),
    "deque": deque(X[:5, 0]),
    "array": array("d", X[:5, 0]),
    "keys": dict.fromkeys(X[:5, 0]),
    "slots": Slotted(X[:5]),
    "matrix": X[:5].view(np.matrix),
    "structured": np.array([(1, X[0, 0]), (2, X[1, 0])], dtype=[("a", "i8"), ("b", "f8")]),
    "objects": np.array([X[:5], "a", None], dtype=object),
    "bytes": X[:5].tobytes(),
    "stream": io.BytesIO(X[:5].tobytes()),
    "sparse": sparse.dok_array(X[:5]),
    "partial": functools.partial(print, X[:5]),
    "keyword": lambda *, held=X[:5]: held,
    "method": Slotted(X[:5]).__eq__,
    "complex": X[:5].astype(complex),
    "decimals": [Decimal(X[0, 0]), Decimal(X[1, 0])],
    "text": json.dumps(X[:5].tolist()),
    "exception": ValueError(f"bad {X[0, 0]}"),
    "names": [f"patient {row}" for row in range(N)],
    "dates": np.arange(N).astype("datetime64[D]"),
    "turned": np.asfortranarray(X[:5][::-1]).astype(">f8"),
}


@pytest.mark.parametrize("held", CONTAINERS.values(), ids=CONTAINERS)
def test_whatever_holds_them(held):
    model = fitted(linear_model.LogisticRegression(), CLASSES)
    model.kept = held
    found = inspect(model, (X, CLASSES)).findings
    assert {one.kind for one in found} <= {ROWS, VALUE, ENTRY}
    assert found


def test_records_of_the_package_and_frames(tmp_path):
    records = Records.from_arrays(X, CLASSES)
    model = fitted(svm.SVC(), CLASSES)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=CLASSES)
    expected = lg.inspect(model, (X, CLASSES))
    assert lg.inspect(model, records) == expected
    assert lg.inspect(model, frame, target="y") == expected


def test_an_array_by_itself_is_no_tree():
    assert inspect(np.random.default_rng(0).normal(size=(30, 2))) is not None


def test_bad_arguments_are_clear():
    model = fitted(svm.SVC(), CLASSES)
    with pytest.raises(ConfigError, match="rule 'other' is not known; use one of 'leakgauge', 'sacro'"):
        inspect(model, rule="other")
    with pytest.raises(DataError, match="60 records and 3 labels"):
        inspect(model, (X, CLASSES[:3]))
    with pytest.raises(DataError, match=r"labels must be one for each record, got shape \(60, 2\)"):
        inspect(model, (X, np.zeros((60, 2))))
    with pytest.raises(DataError, match="not rows of several lengths"):
        inspect(model, (X, [[1, 2], [3]]))
    with pytest.raises(DataError, match="60 records and 3 persons"):
        inspect(model, (X, CLASSES), persons=[1, 2, 3])
    with pytest.raises(DataError, match="must be Records, a pair"):
        inspect(model, X)
    with pytest.raises(DataError, match="must be Records, a pair"):
        inspect(model, pd.DataFrame(X))


def test_isotonic_regression():
    found = inspect(isotonic.IsotonicRegression().fit(X[:, 0], VALUES), (X[:, :1], VALUES))
    assert ("X_thresholds_", VALUE, True) in places(found)


def test_a_class_of_the_users_with_the_name_of_another():
    """Classes are known by name; one that only has the name of a compiled tree is walked like any other."""

    class Tree:
        def __init__(self):
            self.value, self.threshold = X[:4], X[:2, 0]

    model = fitted(linear_model.LogisticRegression(), CLASSES)
    model.tree = Tree()
    assert ("tree.value", ROWS) in {(one.where, one.kind) for one in inspect(model, (X, CLASSES)).findings}


COARSE = np.column_stack([rng_.integers(0, top, 300) for rng_, top in zip(
    np.random.default_rng(4).spawn(6), (72, 20, 2, 9, 60, 3000), strict=True
)]).astype(float)  # fmt: skip
COARSE_CLASSES = (COARSE[:, 0] > 36).astype(int)


@pytest.mark.parametrize(
    "held",
    [
        COARSE[3].copy(),
        tuple(COARSE[3].tolist()),
        COARSE[:4].ravel(),
        COARSE.astype(str),
        [str(row) for row in COARSE[:7].tolist()],
        pd.DataFrame(COARSE).to_csv(),
        json.dumps(COARSE[:3].tolist()),
    ],
    ids=["row", "tuple", "flat", "text", "texts", "csv", "json"],
)
def test_rows_of_coarse_columns_are_found_in_every_readable_form(held):
    model = linear_model.LogisticRegression(max_iter=9999).fit(COARSE, COARSE_CLASSES)
    assert inspect(model, (COARSE, COARSE_CLASSES)).findings == ()
    model.held_ = held
    assert {one.kind for one in inspect(model, (COARSE, COARSE_CLASSES)).findings} == {ROWS}
    other = np.random.default_rng(9).integers(0, 2, 6 * 40).astype(float)  # no row of the table
    model.held_ = other
    assert inspect(model, (COARSE, COARSE_CLASSES)).findings == ()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("D:/meier/train.csv", Kind.PATH),
        ("data/meier/train.csv", Kind.PATH),
        ("s3://bucket/meier", Kind.PATH),
        ("https://meier:secret@host/x", Kind.NAME),
        ("https://scikit-learn.org/stable/index.html", None),
        ("a/b", None),
    ],
)
def test_paths_and_users_of_every_form(text, kind):
    model = linear_model.LogisticRegression().fit(X, CLASSES)
    model.note_ = text
    assert [one.kind for one in inspect(model).findings] == ([] if kind is None else [kind])


@pytest.mark.parametrize("held", [["x", ["y"]], [["x", ("a",)]], [["x", {"a": 1}]]])
def test_lists_of_texts_and_others(held):
    model = linear_model.LogisticRegression().fit(X, CLASSES)
    model.note_ = held
    assert inspect(model, (X, CLASSES)).findings == ()


@pytest.mark.parametrize("n_quantiles", [10, 100])
def test_extremes_among_many_quantiles(n_quantiles):
    step = preprocessing.QuantileTransformer(n_quantiles=n_quantiles).fit(COARSE)
    assert ("quantiles_", VALUE, True) in places(inspect(step, (COARSE, COARSE_CLASSES)))
    spline = preprocessing.SplineTransformer(n_knots=2, degree=1).fit(COARSE)
    assert any(one.kind is VALUE for one in inspect(spline, (COARSE, COARSE_CLASSES)).findings)


def test_searches_whose_estimator_was_never_fitted():
    search = model_selection.GridSearchCV(ensemble.RandomForestClassifier(5), {"max_depth": [2, 3]}, cv=2)
    checks = {one.name: one.verdict.value for one in inspect(search.fit(X, CLASSES), (X, CLASSES)).checks}
    assert checks["residual degrees of freedom"] == "passes"
    inner = model_selection.GridSearchCV(linear_model.LogisticRegression(), {"C": [1, 2]}, cv=2)
    nested = model_selection.GridSearchCV(pipeline.make_pipeline(inner), {}, cv=2)
    checks = {one.name: one.verdict.value for one in inspect(nested.fit(X, CLASSES), (X, CLASSES)).checks}
    assert checks["largest leverage"] == "passes"


NEIGHBOURS = fitted(neighbors.KNeighborsClassifier(3), CLASSES)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (None, "an object of type NoneType is no model"),
        (5, "an object of type int is no model"),
        (0.5, "an object of type float is no model"),
        (np.float64(0.5), "an object of type float64 is no model"),
        (True, "an object of type bool is no model"),
        (neighbors.KNeighborsClassifier, "KNeighborsClassifier is a class; give an instance of it"),
        ((one for one in [NEIGHBOURS]), "an object of type generator is no model"),
        (iter([NEIGHBOURS]), "an object of type list_iterator is no model"),
        (neighbors.KNeighborsClassifier(), "KNeighborsClassifier is not fitted"),
        (pipeline.make_pipeline(preprocessing.StandardScaler(), svm.SVC()), "Pipeline ending in SVC is not fitted"),
        (linear_model.Ridge(), "Ridge is not fitted"),
        (lambda table: NEIGHBOURS.predict(table), "what a function predicts by cannot be read"),
        (functools.partial(lambda held, table: table, 5), "what a function predicts by cannot be read"),
        (len, "what a function predicts by cannot be read"),
        (object(), "an object of type object holds nothing that can be read"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
@pytest.mark.parametrize("records", [None, (X, CLASSES)], ids=["alone", "with records"])
def test_what_cannot_be_read_is_not_said_to_hold_nothing(model, said, records):
    with pytest.raises(ModelError, match=re.escape(said)):
        inspect(model, records)


@pytest.mark.parametrize(
    "model",
    [
        NEIGHBOURS.predict,
        (lambda held: lambda table: held.predict(table))(NEIGHBOURS),
        functools.partial(NEIGHBOURS.predict),
        [NEIGHBOURS],
        {"model": NEIGHBOURS},
    ],
    ids=["method", "closure", "partial", "list", "dict"],
)
def test_what_holds_a_model_is_read(model):
    assert Kind.ROWS in {kind for _, kind, _ in places(inspect(model, (X, CLASSES)))}


def test_an_estimator_that_keeps_its_fit_under_other_names_is_read():
    """scikit-learn takes it for not fitted."""

    class Own(dummy.DummyClassifier):
        def fit(self, X, y):
            self.kept = X
            return self

    assert inspect(Own().fit(X, CLASSES), (X, CLASSES)).exit_code == 1
    assert inspect(preprocessing.FunctionTransformer(), (X, CLASSES)).findings == (), "which has nothing to learn"


def test_labels_of_leaves_with_one_record_are_counted():
    model = tree.DecisionTreeRegressor(max_leaf_nodes=30, random_state=0).fit(X, VALUES)
    leaves = model.tree_.children_left == -1
    alone = int((leaves & (model.tree_.n_node_samples == 1)).sum())
    assert 1 < alone < leaves.sum()
    for known in ((), ((X, VALUES),)):
        found = inspect(model, *known).findings
        assert [one.n_entries for one in found if (one.where, one.kind) == ("tree_.value", VALUE)] == [alone]


def test_no_more_midpoints_are_compared_than_there_is_time_for():
    table = np.random.default_rng(0).normal(size=(200, 3))
    seen = records_seen.RecordsSeen(table, np.zeros(200), np.arange(200))
    halves = (table[:-1, 0] + table[1:, 0]) / 2
    rounds = 200 * len(seen.columns)
    seen._comparisons_left = 7.5 * rounds
    seen.halfway(halves)
    assert seen._comparisons_left == 0.5 * rounds
