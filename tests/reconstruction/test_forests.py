"""Forests: true records always agree with their counts, seeds repeat the draws, and the solver finds the records."""

import sys

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from leakgauge.errors import ConfigError, DataError, MissingExtra, ModelError
from leakgauge.inspecting import cleaned
from leakgauge.reconstruction import Bagging, Status, counts, reconstruct_forest
from leakgauge.reconstruction.counts import read_forest
from leakgauge.reconstruction.matching import cell_error, guesses
from leakgauge.reconstruction.solving import labels_of_draws

SEEDS = 3


def people(n, d=8, seed=0, n_classes=2):
    """Binary records whose columns depend on each other, and classes that depend on these."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=n)
    X = (rng.random((n, d)) < rng.random((3, d))[kind]).astype(float)
    return X, (X[:, 0] + X[:, 1] + (rng.random(n) < 0.2)).astype(int) % n_classes


FORESTS = [
    DecisionTreeClassifier(random_state=0),
    DecisionTreeClassifier(min_weight_fraction_leaf=0.1, class_weight={0: 2.0, 1: 0.5, 2: 3.0}, random_state=0),
    DecisionTreeClassifier(ccp_alpha=0.005, class_weight="balanced", random_state=0),
    DecisionTreeClassifier(max_leaf_nodes=3, class_weight="balanced", random_state=0),
    ExtraTreeClassifier(random_state=0),
    RandomForestClassifier(7, random_state=0),
    RandomForestClassifier(7, max_samples=9, random_state=0),
    RandomForestClassifier(7, max_samples=3, criterion="entropy", min_samples_leaf=3, random_state=0),
    RandomForestClassifier(7, class_weight="balanced", random_state=0),
    RandomForestClassifier(7, class_weight={0: 0.3, 1: 1.7, 2: 1.0}, bootstrap=False, random_state=0),
    RandomForestClassifier(7, max_leaf_nodes=6, min_weight_fraction_leaf=0.05, random_state=0),
    ExtraTreesClassifier(7, random_state=0),
    ExtraTreesClassifier(7, bootstrap=True, oob_score=False, random_state=0),
]


def counted(forest, tree, X, codes, draws):
    """What the leaves of one tree would hold of these records."""
    holds = forest.predicates(X)
    inside = [
        np.all([holds[:, p] == wanted for p, wanted in path.items()] or [[True] * len(X)], axis=0)
        for path in tree.paths
    ]
    one_hot = np.eye(len(forest.classes), dtype=int)[codes]
    counts = np.array([(draws[leaf, None] * one_hot[leaf]).sum(axis=0) for leaf in inside])
    return counts, np.array([(draws[leaf] > 0).sum() for leaf in inside])


# The counts


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", FORESTS, ids=str)
def test_the_true_records_agree_with_all_counts(model, n_classes, seed):
    """In every leaf of every tree, with the draws repeated from the seeds."""
    X, y = people(30 + seed, seed=seed, n_classes=n_classes)
    if n_classes == 3:
        X = np.column_stack([X, np.random.default_rng(seed).normal(size=(len(X), 2))])
    model = model.fit(X, y)
    forest = read_forest(model, binary=range(8))
    assert forest.n == len(X)
    assert forest.bagging is (Bagging.SEEDS if getattr(model, "bootstrap", False) else Bagging.NONE)
    for tree, draws in zip(forest.trees, forest.draws, strict=True):
        of_classes, n_records = counted(forest, tree, X, y, draws)
        np.testing.assert_array_equal(of_classes, tree.counts)
        np.testing.assert_array_equal(n_records, tree.n_records)


@pytest.mark.parametrize(("smallest", "least"), [(4, 4), (0.11, 4), (0.1, 3)])
def test_the_smallest_leaf_is_a_number_of_records_or_a_share_of_them(smallest, least):
    """0.11 of 30 records are 3.3, so that a leaf has 4."""
    forest = read_forest(DecisionTreeClassifier(min_samples_leaf=smallest, random_state=0).fit(*people(30)))
    assert forest.least == least
    assert min(tree.n_records.min() for tree in forest.trees) >= least


def test_draws_that_do_not_agree_with_the_roots_are_not_used():
    X, y = people(30)
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    model.estimators_[2].random_state += 1
    assert read_forest(model).bagging is Bagging.UNKNOWN
    for tree in model.estimators_:
        tree.random_state = None
    assert read_forest(model).bagging is Bagging.UNKNOWN


def test_files_of_earlier_releases_hold_no_weights_and_the_same_seeds():
    """Those of scikit-learn 1.6, opened by 1.9, have no ``_sample_weight``."""
    X, y = people(30)
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    expected = read_forest(model).draws
    vars(model).pop("_sample_weight", None)
    assert read_forest(model).bagging is Bagging.SEEDS
    np.testing.assert_array_equal(read_forest(model).draws, expected)


def test_classes_that_the_roots_determine():
    X, y = people(30)
    forest = read_forest(RandomForestClassifier(60, random_state=0).fit(X, y))
    np.testing.assert_array_equal(labels_of_draws(forest), y)
    forest = read_forest(RandomForestClassifier(8, random_state=0).fit(X, y))
    assert (labels_of_draws(forest) == -1).any()


def test_what_has_no_counts_is_refused():
    X, y = people(30)
    weights = np.arange(30) % 3 + 1.0
    for message, model in {
        "counts are read of fitted trees": RandomForestRegressor(5).fit(X, y),
        "got GradientBoosting": GradientBoostingClassifier(n_estimators=2).fit(X, y),
        "got RandomForestClassifier": RandomForestClassifier(),
        "2 outputs": RandomForestClassifier(5).fit(X, np.column_stack([y, y])),
        "had different weights": DecisionTreeClassifier().fit(X, y, sample_weight=weights),
        "RandomForestClassifier hold weights": RandomForestClassifier(5, bootstrap=False).fit(X, y, weights / 7),
        "ExtraTreesClassifier hold weights": ExtraTreesClassifier(5).fit(X, y, weights - 1 > 0),
        "ExtraTreeClassifier hold weights": ExtraTreeClassifier(class_weight={0: 0}).fit(X, y),
        "monotonic_cst": DecisionTreeClassifier(monotonic_cst=[1] + [0] * 7).fit(X, y),
    }.items():
        with pytest.raises(ModelError, match=message):
            read_forest(model)
    with pytest.raises(ModelError, match="outside 0 to 1"):
        read_forest(DecisionTreeClassifier().fit(X * 5, y), binary=range(8))


# The error


def test_errors_by_hand():
    truth = np.array([[0.0, 0, 1], [1, 1, 1]])
    assert cell_error(truth[::-1], truth).cells == 0
    assert cell_error(np.array([[1.0, 1, 0], [0, 1, 1]]), truth).cells == pytest.approx(2 / 6)
    found = guesses(truth, None)
    assert found.others is None
    assert found.most_frequent.cells == pytest.approx(2 / 6)
    assert guesses(truth, truth).others.cells <= found.marginals.cells
    assert guesses(truth, truth).best.cells == guesses(truth, truth).others.cells


def test_guesses_are_right_as_often_as_chance_has_it():
    """One record of ten fair coins: each cell is wrong with probability 1/2."""
    rng = np.random.default_rng(0)
    found = [guesses(rng.integers(2, size=(1, 10)), rng.integers(2, size=(500, 10)), seed) for seed in range(20)]
    assert np.mean([one.marginals.cells for one in found]) == pytest.approx(0.5, abs=0.03)
    assert np.mean([one.others.cells for one in found]) == pytest.approx(0.5, abs=0.03)


def test_without_the_solver_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    X, y = people(10)
    with pytest.raises(MissingExtra, match=r"leakgauge\[reconstruction\]"):
        reconstruct_forest(DecisionTreeClassifier().fit(X, y))


# The solver


def solved(model, **given):
    pytest.importorskip("ortools")
    return reconstruct_forest(model, seconds=30, workers=2, **given)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", FORESTS, ids=str)
def test_what_is_found_agrees_with_all_counts(model, n_classes):
    X, y = people(14, seed=1, n_classes=n_classes)
    model = model.fit(X, y)
    found = solved(model, truth=X, binary=range(8))
    assert found.status is Status.SOLVED
    forest, codes = read_forest(model, binary=range(8)), np.array(found.labels)
    for tree, draws in zip(forest.trees, forest.draws, strict=True):
        of_classes, n_records = counted(forest, tree, found.records, codes, draws)
        np.testing.assert_array_equal(of_classes, tree.counts)
        np.testing.assert_array_equal(n_records, tree.n_records)


@pytest.mark.parametrize("bootstrap", [False, True])
def test_records_of_a_forest_are_found(bootstrap):
    """Of 20 people and 60 trees nearly all cells; guesses do far worse."""
    X, y = people(1020)
    model = RandomForestClassifier(60, bootstrap=bootstrap, random_state=0).fit(X[:20], y[:20])
    found = solved(model, truth=X[:20], population=X[20:])
    assert found.error.cells < 0.03 < 0.1 < found.guess.best.cells
    assert found.error.rows_exact > 0.8
    if bootstrap:  # the seeds name the records: each label is its own
        assert found.labels == tuple(y[:20])


def test_where_counts_were_removed_no_leaf_is_smaller_than_the_model_says():
    """The shares alone would leave one record to each of the leaves that are of one class."""
    X, y = people(20)
    model = DecisionTreeClassifier(min_samples_leaf=4, random_state=0).fit(X, y)
    bare = cleaned(model).model
    assert (bare.tree_.n_node_samples == 1).all()
    found = solved(bare, n_records=20, binary=range(8))
    assert found.status is Status.SOLVED
    forest = read_forest(bare, binary=range(8), n=20)
    of_classes, n_records = counted(forest, forest.trees[0], found.records, np.array(found.labels), np.ones(20, int))
    assert n_records.min() >= 4
    np.testing.assert_allclose(of_classes / n_records[:, None], forest.trees[0].shares, atol=1e-9)


def test_an_independent_label_is_not_found_in_its_records():
    """Where records are independent coins a stump says the label counts, and the error is that of a guess."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(2, size=(20, 8)).astype(float), rng.integers(2, size=20)
    found = solved(DecisionTreeClassifier(max_depth=1).fit(X, y), truth=X, population=rng.integers(2, size=(500, 8)))
    assert found.error.cells > found.guess.best.cells - 0.15


def test_a_prior_makes_the_choice_that_the_counts_leave():
    X, y = people(520, seed=2)
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X[:20], y[:20])
    with_prior = solved(model, truth=X[:20], population=X[20:])
    assert with_prior.error.cells < solved(model, truth=X[:20]).error.cells
    assert with_prior.error.cells <= with_prior.guess.most_frequent.cells


def test_columns_of_a_population_that_hold_other_numbers_are_no_flags():
    """Nor those of which a single value is neither 0 nor 1."""
    X, y = people(30)
    others = X[20:].copy()
    others[0, 3] = 0.5
    model = DecisionTreeClassifier(random_state=0).fit(X[:20], y[:20])
    found = solved(model, population=others)
    assert found.is_binary.tolist() == [column != 3 for column in range(X.shape[1])]


def test_without_seeds_draws_are_found_too_or_it_is_said_that_they_were_not():
    X, y = people(8, d=4)
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    for tree in model.estimators_:
        tree.random_state = None
    found = solved(model, truth=X)
    assert found.status is Status.SOLVED
    assert found.bagging is Bagging.UNKNOWN
    X, y = people(40)
    model = RandomForestClassifier(60, random_state=0).fit(X, y)
    for tree in model.estimators_:
        tree.random_state = None
    pytest.importorskip("ortools")
    found = reconstruct_forest(model, truth=X, seconds=0.01)
    assert found.status is Status.NOT_SOLVED
    assert found.error is None
    assert len(found.records) == 0
    assert "not solved in 0.01 s, which is no evidence of safety" in str(found)


def test_a_large_forest_ends_in_its_time():
    """Setting up the search counts, and what is far too large is refused."""
    pytest.importorskip("ortools")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8))
    model = RandomForestClassifier(30, random_state=0).fit(X, rng.integers(2, size=600))
    found = reconstruct_forest(model, seconds=0.5)
    assert found.status is Status.NOT_SOLVED
    assert found.seconds < 5
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "MOST_LEAVES", 1000)
        with pytest.raises(ModelError, match="no evidence of safety"):
            reconstruct_forest(model)


def test_values_that_were_missing_have_a_number_or_there_is_no_solution():
    X, y = people(30)
    X[::3, 0] = np.nan
    X[:, 1] = X[:, 0]
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    found = solved(model)
    assert found.status in (Status.SOLVED, Status.IMPOSSIBLE)
    for table in ("truth", "population"):
        with pytest.raises(DataError, match=f"{table} must be finite numbers; 20 of 240 cells are missing or infinite"):
            solved(model, **{table: X})


def test_of_columns_that_no_tree_divides_nothing_is_said():
    """Nineteen in twenty hold 1 in the last column, which counted as 0; the error is about the other one."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(2, size=40), rng.random(40) < 0.95]).astype(float)
    found = solved(DecisionTreeClassifier(max_depth=1).fit(X, X[:, 0].astype(int)), truth=X, population=X)
    assert found.columns.tolist() == [0]
    assert found.error.cells == 0
    assert np.isnan(found.records[:, 1]).all()
    assert np.isfinite(found.records[:, 0]).all()
    assert "1 of 2 columns is divided by a tree; of others it says nothing" in str(found)
    assert "records exact in this one: 1.00" in str(found)
    assert (found.as_json()["columns"], found.as_json()["table_columns"]) == (1, 2)


@pytest.mark.parametrize("model", [DecisionTreeClassifier(), RandomForestClassifier(3, random_state=0)], ids=str)
def test_trees_without_a_split_say_how_many_are_of_each_class(model):
    X, y = np.ones((12, 3)), np.arange(12) % 3
    found = solved(model.fit(X, y), truth=X, population=X)
    assert found.status is Status.SOLVED
    assert (found.error, found.guess) == (None, None)
    assert sorted(found.labels) == sorted(y) or isinstance(model, RandomForestClassifier)
    assert "none of 3 columns are divided by a tree" in str(found)


def test_trees_that_lead_back_or_nowhere_are_refused():
    X, y = people(30)
    for part, place, value in (
        ("children_left", 2, 0),
        ("children_right", 0, 0),
        ("children_left", 0, 10_000),
        ("children_right", 2, -1),
        ("feature", 0, 8),
        ("feature", 0, -2),
    ):
        model = DecisionTreeClassifier(random_state=0).fit(X, y)
        assert model.tree_.children_left[2] != -1
        getattr(model.tree_, part)[place] = value
        with pytest.raises(ModelError, match="holds something that is no tree"):
            read_forest(model)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seconds": 0.0}, "seconds"),
        ({"seconds": np.nan}, "seconds"),
        ({"workers": -3}, "workers"),
        ({"workers": 0}, "workers"),
    ],
)
def test_numbers_that_make_no_search(given, message):
    X, y = people(8, d=4)
    with pytest.raises(ConfigError, match=message):
        reconstruct_forest(DecisionTreeClassifier().fit(X, y), **given)


def test_ordinary_columns_are_found_as_intervals():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(5, size=12), rng.integers(2, size=12)]).astype(float)
    y = ((X[:, 0] > 2) ^ (X[:, 1] == 1)).astype(int)
    model = make_pipeline(StandardScaler(), RandomForestClassifier(40, bootstrap=False, random_state=0)).fit(X, y)
    found = solved(model, truth=X)
    assert found.status is Status.SOLVED
    assert found.error.cells < found.guess.best.cells
    assert np.isfinite(found.records).all()
    assert not found.is_binary.any()


def test_no_cell_is_printed():
    X, y = people(8, d=4)
    found = solved(DecisionTreeClassifier().fit(X, np.array(["Mr", "Mrs"])[y]), truth=X)
    assert "Mr" not in f"{found} {found!r} {found.as_json()}"
    assert "[[" not in f"{found} {found!r} {found.as_json()}"


def test_tables_that_do_not_fit():
    X, y = people(8, d=4)
    model = DecisionTreeClassifier().fit(X, y)
    with pytest.raises(DataError, match="trained on 8 records and truth has 7"):
        reconstruct_forest(model, truth=X[:7])
    with pytest.raises(DataError, match="4 columns"):
        reconstruct_forest(model, truth=X[:, :3])
