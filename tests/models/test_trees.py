"""Trees of model files that lead nowhere are refused before compiled code follows them."""

import json
import re

import numpy as np
import pytest
from sklearn import ensemble, neighbors, tree

from leakgauge.errors import ModelError
from leakgauge.models import load_estimator
from leakgauge.models.trees import (
    TreeError,
    require_estimator_trees,
    require_lightgbm_trees,
    require_tree,
    require_xgboost_trees,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
Y = (X[:, 0] > 0).astype(int)

ROOT, CHILDREN = [True, False, False], ([1, -1, -1], [2, -1, -1])


def test_a_tree_is_a_tree():
    require_tree(*CHILDREN, ROOT, [0, -2, -2], 1)
    require_tree([-1], [-1], [False], [-2], 0)


@pytest.mark.parametrize(
    ("left", "right", "features", "n_features"),
    [
        ([3, -1, -1], [2, -1, -1], [0, 0, 0], 1),
        ([-2, -1, -1], [2, -1, -1], [0, 0, 0], 1),
        ([0, -1, -1], [2, -1, -1], [0, 0, 0], 1),
        ([2, -1, -1], [2, -1, -1], [0, 0, 0], 1),
        ([1.5, -1, -1], [2, -1, -1], [0, 0, 0], 1),
        ([1, -1, -1], [2, -1, -1], [1, 0, 0], 1),
        ([1, -1, -1], [2, -1, -1], [-1, 0, 0], 1),
        ([1, -1], [2, -1, -1], [0, 0, 0], 1),
    ],
)
def test_what_is_no_tree_is_refused(left, right, features, n_features):
    with pytest.raises(TreeError):
        require_tree(left, right, ROOT, features, n_features)


ESTIMATORS = [
    tree.DecisionTreeClassifier(max_depth=3),
    tree.ExtraTreeRegressor(max_depth=3),
    ensemble.RandomForestClassifier(3, max_depth=3),
    ensemble.BaggingClassifier(tree.DecisionTreeClassifier(max_depth=2), 3, max_features=2),
    ensemble.GradientBoostingClassifier(n_estimators=3),
    ensemble.HistGradientBoostingClassifier(max_iter=3),
    ensemble.IsolationForest(n_estimators=3, max_features=2),
    ensemble.RandomTreesEmbedding(3),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_fitted_trees_are_trees(estimator):
    require_estimator_trees(estimator.fit(X, Y))


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree"])
@pytest.mark.parametrize("damaged", [False, True])
def test_a_tree_of_neighbours_names_rows_that_are_there(algorithm, damaged):
    model = neighbors.KNeighborsClassifier(algorithm=algorithm, leaf_size=5).fit(X, Y)
    if not damaged:
        require_estimator_trees(model)
        return
    state = list(model._tree.__getstate__())
    state[1] = np.full_like(np.asarray(state[1]), 10**9)
    model._tree.__setstate__(tuple(state))
    with pytest.raises(TreeError):
        require_estimator_trees(model)


@pytest.mark.parametrize("n", [1, 2, 37, 1000])
def test_trees_of_neighbours_of_any_size_are_trees(n):
    rows = rng.normal(size=(n, 2))
    for estimator in (neighbors.KernelDensity(algorithm="kd_tree"), neighbors.KernelDensity(algorithm="ball_tree")):
        require_estimator_trees(estimator.fit(rows))


def with_nodes(made, **changed):
    """A copy of a compiled tree with other numbers in its root."""
    kind, arguments, state = made.__reduce__()
    nodes = state["nodes"].copy()
    for name, value in changed.items():
        nodes[name][0] = value
    copy = kind(*arguments)
    copy.__setstate__({**state, "nodes": nodes})
    return copy


@pytest.mark.parametrize("changed", [{"left_child": 10**9}, {"right_child": 0}, {"feature": 10**8}])
def test_a_skops_file_whose_tree_leads_nowhere_is_refused(changed, tmp_path):
    """Its predictions would read outside of memory, or never end."""
    dump = pytest.importorskip("skops.io").dump
    model = ensemble.RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, Y)
    model.estimators_[1].tree_ = with_nodes(model.estimators_[1].tree_, **changed)
    dump(model, tmp_path / "m.skops")
    with pytest.raises(ModelError, match=r"m.skops cannot be read as skops"):
        load_estimator(tmp_path / "m.skops")


def test_a_tree_of_other_columns_than_its_estimator_is_refused():
    model = tree.DecisionTreeClassifier(max_depth=3).fit(X, Y)
    model.tree_ = tree.DecisionTreeClassifier(max_depth=3).fit(rng.normal(size=(50, 9)), rng.integers(0, 2, 50)).tree_
    with pytest.raises(TreeError):
        require_estimator_trees([model])


def test_nodes_of_histogram_boosting_are_followed():
    model = ensemble.HistGradientBoostingClassifier(max_iter=3).fit(X, Y)
    model._predictors[1][0].nodes["left"][0] = 0
    with pytest.raises(TreeError):
        require_estimator_trees(model)


XGBOOST = {
    "child": lambda document, nodes: nodes["left_children"].__setitem__(0, 10**9),
    "circle": lambda document, nodes: nodes["left_children"].__setitem__(0, nodes["right_children"][0]),
    "column": lambda document, nodes: nodes["split_indices"].__setitem__(0, 10**8),
    "columns": lambda document, nodes: document["learner"]["learner_model_param"].__setitem__("num_feature", "-5"),
}


@pytest.mark.parametrize("ending", [".json", ".ubj"])
@pytest.mark.parametrize("name", [None, *XGBOOST])
def test_a_tree_of_xgboost_that_leads_nowhere_is_refused(name, ending, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.train({"max_depth": 3}, xgboost.DMatrix(X, Y), 3)
    document = json.loads(bytes(booster.save_raw("json")))
    if name is not None:
        XGBOOST[name](document, document["learner"]["gradient_booster"]["model"]["trees"][1])
    changed = xgboost.Booster(model_file=bytearray(json.dumps(document).encode()))
    (tmp_path / f"m{ending}").write_bytes(changed.save_raw(ending[1:]))
    if name is None:
        load_estimator(tmp_path / f"m{ending}")
        return
    with pytest.raises(ModelError, match=r"cannot be read by xgboost \(TreeError\)"):
        load_estimator(tmp_path / f"m{ending}")


LIGHTGBM = {
    "child": (r"left_child=\S+", "left_child=99999"),
    "leaf": (r"left_child=\S+", "left_child=-99"),
    "circle": (r"left_child=\S+", "left_child=0"),
    "column": (r"split_feature=\S+", "split_feature=9999"),
    "leaves": (r"num_leaves=\S+", "num_leaves=999999"),
    "categories": (r"num_cat=\S+", "num_cat=3"),
    "number": (r"right_child=\S+", "right_child=x"),
}


@pytest.mark.parametrize("name", [None, *LIGHTGBM])
def test_a_tree_of_lightgbm_that_leads_nowhere_is_refused(name, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    categories = rng.integers(0, 5, (120, 1))
    data = lightgbm.Dataset(np.hstack([X, categories]), Y, categorical_feature=[3])
    settings = {"objective": "binary", "num_leaves": 7, "min_data_in_leaf": 5, "verbose": -1, "min_data_per_group": 5}
    text = lightgbm.train(settings, data, 3).model_to_string()
    if name is not None:
        changed = re.sub(*LIGHTGBM[name], text, count=1)
        assert changed != text
        with pytest.raises((ValueError, KeyError)):
            require_lightgbm_trees(changed)
        return
    require_lightgbm_trees(text)
    (tmp_path / "m.txt").write_text(text)
    load_estimator(tmp_path / "m.txt")


# Files of other libraries, written by hand: what they say is checked before a library opens them, and without it.

# Node 0 divides column 1 into 1 and 2; node 2 divides column 0 into 3 and 4.
LEFT, RIGHT, COLUMNS = [1, -1, 3, -1, -1], [2, -1, 4, -1, -1], [1, 7, 0, 7, 7]


def xgboost_document(n_features="2", booster="gbtree", **changed):
    tree_ = {"left_children": LEFT, "right_children": RIGHT, "split_indices": COLUMNS} | changed
    one = {"left_children": [-1], "right_children": [-1], "split_indices": [0]}
    held = {"model": {"trees": [one, tree_]}}
    if booster == "dart":
        held = {"gbtree": held}
    return {"learner": {"learner_model_param": {"num_feature": n_features}, "gradient_booster": held}}


@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_every_tree_of_a_document_of_xgboost_is_followed(booster):
    require_xgboost_trees(xgboost_document(booster=booster))
    for damage in (
        {"left_children": [9, -1, 3, -1, -1]},
        {"split_indices": [2, 0, 0, 0, 0]},
        {"n_features": "-1"},
        {"n_features": "1"},
        {"n_features": str(2**31)},
    ):
        with pytest.raises(TreeError):
            require_xgboost_trees(xgboost_document(booster=booster, **damage))
    require_xgboost_trees(xgboost_document(n_features=str(2**31 - 1), booster=booster))
    linear = xgboost_document()
    linear["learner"]["gradient_booster"] = {"model": {"weights": [0.5, 0.25]}}
    require_xgboost_trees(linear)


def lightgbm_text(**changed):
    """Inner nodes 0 and 1, leaves -1 to -3; node 1 divides by a set of categories, the first of two."""
    lines = {
        "num_leaves": "3",
        "num_cat": "2",
        "split_feature": "1 0",
        "threshold": "0.5 0",
        "decision_type": "2 1",
        "left_child": "1 -1",
        "right_child": "-2 -3",
        "leaf_value": "0.1 0.2 0.3",
        "cat_boundaries": "0 1 3",
        "cat_threshold": "5 6 7",
    } | changed
    told = "\n".join(f"{name}={value}" for name, value in lines.items() if value is not None)
    head = f"tree\nversion=v4\nmax_feature_idx={lines.get('max_feature_idx', 1)}"
    return f"{head}\n\nTree=0\nnum_leaves=1\nleaf_value=0.5\n\nTree=1\n{told}\n\nend of trees\n\nleft_child=99\n"


def test_every_tree_of_a_text_of_lightgbm_is_followed():
    require_lightgbm_trees(lightgbm_text())
    plain = {"num_cat": "0", "decision_type": "2 2", "cat_boundaries": None, "cat_threshold": None}
    require_lightgbm_trees(lightgbm_text(**plain))
    require_lightgbm_trees(lightgbm_text(threshold="0.5 1"))


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"left_child": "2 -1"}, TreeError),  # there are two inner nodes
        ({"left_child": "1 -4"}, TreeError),  # and three leaves
        ({"left_child": "0 -1"}, TreeError),
        ({"right_child": "-1 -3"}, TreeError),  # two parents
        ({"left_child": "1"}, TreeError),
        ({"left_child": "1 x"}, ValueError),
        ({"right_child": None}, KeyError),
        ({"split_feature": "2 0"}, TreeError),
        ({"max_feature_idx": 0}, TreeError),
        ({"decision_type": "2"}, TreeError),
        ({"threshold": "0.5"}, TreeError),
        ({"leaf_value": "0.1 0.2"}, TreeError),
        ({"num_leaves": "4"}, TreeError),
        ({"threshold": "0.5 2"}, TreeError),  # there are two sets
        ({"threshold": "0.5 -1"}, TreeError),
        ({"threshold": "0.5 0.5"}, TreeError),
        ({"num_cat": "1"}, TreeError),
        ({"num_cat": "0"}, TreeError),
        ({"cat_boundaries": "0 1 4"}, TreeError),
        ({"cat_boundaries": "1 1 3"}, TreeError),
        ({"cat_boundaries": "0 4 3"}, TreeError),
        ({"cat_boundaries": "0 3"}, TreeError),
        ({"cat_boundaries": None}, KeyError),
    ],
    ids=str,
)
def test_a_text_of_lightgbm_that_leads_nowhere(changed, error):
    with pytest.raises(error):
        require_lightgbm_trees(lightgbm_text(**changed))
