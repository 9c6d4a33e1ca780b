"""Whether the trees of a model file lead every query to a leaf: compiled code follows them without looking.

A child that is no node makes such code read outside of its arrays, and a node with two parents, or a root with one,
keeps it walking for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_FEATURES = 2**31
"""Columns that a booster may take."""


class TreeError(ValueError):
    """Nodes that are no tree."""


def require_tree(left: Any, right: Any, inner: Any, features: Any, n_features: int) -> None:
    """Refuse nodes of which one has two parents, or a child or column that is not there; the root comes first.

    Args:
        left: first child of each node, integers ``[n]``; anything at leaves.
        right: second child of each node ``[n]``.
        inner: which nodes have children ``[n]``.
        features: column that each node divides ``[n]``; anything at leaves.
        n_features: columns there are.

    Raises:
        TreeError: they are no tree.
    """
    left, right, inner, features = map(np.asarray, (left, right, inner, features))
    if not len(left) == len(right) == len(inner) == len(features) > 0:
        raise TreeError
    children = np.concatenate([left[inner], right[inner]])
    if len(children) and not (children.dtype.kind in "iu" and children.min() >= 1 and children.max() < len(left)):
        raise TreeError
    if len(np.unique(children)) < len(children):
        raise TreeError
    divided = features[inner]
    if len(divided) and not (divided.dtype.kind in "iu" and divided.min() >= 0 and divided.max() < n_features):
        raise TreeError


def require_xgboost_trees(document: Mapping[str, Any]) -> None:
    """Refuse a model of XGBoost, as it writes JSON, of which a tree is none.

    Raises:
        TreeError: it is none.
    """
    learner = document["learner"]
    n_features = int(learner["learner_model_param"]["num_feature"])
    if not 0 <= n_features < MOST_FEATURES:
        raise TreeError
    booster = learner["gradient_booster"]
    for tree in booster.get("gbtree", booster).get("model", {}).get("trees", ()):
        left = np.array(tree["left_children"])
        require_tree(left, tree["right_children"], left != -1, tree["split_indices"], n_features)


def require_lightgbm_trees(text: str) -> None:
    """Refuse a model of LightGBM, as it writes text, of which a tree is none.

    Raises:
        ValueError: one is none, or a number is none.
        KeyError: a line is missing.
    """
    head, *trees = text.partition("\nend of trees")[0].split("\nTree=")
    for tree in trees:
        named, n_features = _lines(tree), int(_lines(head)["max_feature_idx"]) + 1
        n_leaves = int(named["num_leaves"])
        if n_leaves == 1:
            continue
        left, right, features, kinds = (
            np.array(named[name].split(), dtype=np.int64)
            for name in ("left_child", "right_child", "split_feature", "decision_type")
        )
        thresholds = np.array(named["threshold"].split(), dtype=float)
        n_inner = n_leaves - 1
        if not len(left) == len(kinds) == len(thresholds) == n_inner or len(named["leaf_value"].split()) != n_leaves:
            raise TreeError
        # Leaves are −1, −2, ... there: they come after the inner nodes here.
        first, second = (
            np.append(np.where(one < 0, n_inner - 1 - one, one), np.zeros(n_leaves, int)) for one in (left, right)
        )
        inner = np.arange(n_inner + n_leaves) < n_inner
        require_tree(first, second, inner, np.append(features, np.zeros(n_leaves, int)), n_features)
        _require_categories(named, thresholds[kinds & 1 == 1])


def _require_categories(named: Mapping[str, str], places: NDArray[np.float64]) -> None:
    """Refuse sets of categories, by place, that are not there."""
    n_sets = int(named.get("num_cat", "0"))
    if not len(places) and not n_sets:
        return
    bounds = np.array(named["cat_boundaries"].split(), dtype=np.int64)
    n_words = len(named["cat_threshold"].split())
    if len(bounds) != n_sets + 1 or bounds[0] != 0 or bounds[-1] != n_words or (np.diff(bounds) < 0).any():
        raise TreeError
    if not np.isin(places, np.arange(n_sets)).all():
        raise TreeError


def _lines(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value for name, _, value in pairs}


def require_estimator_trees(estimator: Any) -> None:
    """Refuse an estimator of scikit-learn, with all that is in it, of which a compiled tree is none.

    Raises:
        TreeError: one is none.
    """
    for value, n_features in _parts(estimator):
        kind = type(value).__name__, type(value).__module__.partition(".")[0]
        if kind == ("Tree", "sklearn"):
            if n_features not in (None, value.n_features):
                raise TreeError
            left = value.children_left
            require_tree(left, value.children_right, left != -1, value.feature, value.n_features)
        elif kind in (("KDTree", "sklearn"), ("BallTree", "sklearn")):
            _require_neighbour_tree(*value.get_arrays())
        elif kind == ("TreePredictor", "sklearn"):
            nodes = value.nodes
            columns = nodes["feature_idx"].astype(np.int64)
            left, right = (nodes[name].astype(np.int64) for name in ("left", "right"))
            require_tree(left, right, nodes["is_leaf"] == 0, columns, n_features or MOST_FEATURES)
            sets = nodes["bitset_idx"][(nodes["is_leaf"] == 0) & (nodes["is_categorical"] != 0)]
            if len(sets) and sets.max() >= min(len(value.binned_left_cat_bitsets), len(value.raw_left_cat_bitsets)):
                raise TreeError


def _require_neighbour_tree(data: Any, index: Any, nodes: Any, bounds: Any) -> None:
    """Refuse a tree of nearest neighbours that names rows or nodes that are not there; node i has 2i + 1 and 2i + 2."""
    data, index, nodes, bounds = map(np.asarray, (data, index, nodes, bounds))
    n, n_nodes = len(data), len(nodes)
    start, end, last = nodes["idx_start"], nodes["idx_end"], 2 * np.arange(n_nodes) + 2 >= n_nodes
    in_order = n_nodes > 0 and ((start >= 0) & (start <= end) & (end <= n)).all()
    if not (in_order and np.array_equal(np.sort(index), np.arange(n)) and (nodes["is_leaf"][last] != 0).all()):
        raise TreeError
    if bounds.shape[1:] != (n_nodes, data.shape[1]):
        raise TreeError


def _parts(estimator: Any) -> Iterator[tuple[Any, int | None]]:
    """Objects in an estimator, each with how many columns the nearest estimator around it takes, if it says."""
    kept: dict[int, Any] = {}
    waiting: list[tuple[Any, int | None]] = [(estimator, None)]
    while waiting:
        value, n_features = waiting.pop()
        if id(value) in kept or value is None or isinstance(value, str | bytes | int | float | type):
            continue
        kept[id(value)] = value  # one that is gone would leave its number to the next
        yield value, n_features
        if isinstance(value, Mapping):
            inner = list(value.values())
        elif isinstance(value, list | tuple | set | frozenset):
            inner = list(value)
        elif isinstance(value, np.ndarray):
            inner = list(value.flat) if value.dtype == object else []
        else:
            held = getattr(value, "__dict__", {})
            inner, n_features = list(held.values()), held.get("n_features_in_", n_features)
        waiting += [(one, n_features) for one in inner]
