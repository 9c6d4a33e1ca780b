"""The counts in the trees of a forest: which predicates lead to each leaf, how many records of each class are in it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.errors import ModelError
from leakgauge.escaping import shapes

CLASSIFIERS = ("DecisionTreeClassifier", "ExtraTreeClassifier", "RandomForestClassifier", "ExtraTreesClassifier")
"""Whose counts are read."""

MOST_LEAVES = 100_000
"""Of all trees, beyond which the paths to them fill the memory and no search ends."""

WHOLE = 1e-6
"""Relative difference from a whole number within which a weight is a count: shares are stored in double precision."""

WEIGHTED = "the leaves of {} hold weights that are no counts: its records had different weights"


class Bagging(StrEnum):
    """What the file says about the draws of records for each tree."""

    NONE = "no bagging"
    """Each tree was given every record once."""
    SEEDS = "bagging, seeds in the file"
    """Each tree was given a bootstrap, which its seed repeats exactly."""
    UNKNOWN = "bagging, no seeds"
    """Each tree was given a bootstrap, and how often it holds a record is not known."""


@dataclass(frozen=True)
class Tree:
    """The leaves of one tree.

    Args:
        paths: of each leaf the predicates that lead to it, and whether they hold.
        shares: of each class in each leaf ``[leaves, classes]``, by weight.
        counts: records of each class in each leaf, one that was drawn twice counted twice ``[leaves, classes]``;
            ``None`` where they were removed from the file.
        n_records: different records in each leaf ``[leaves]``, likewise.
    """

    paths: tuple[dict[int, bool], ...]
    shares: Floats
    counts: Indices | None
    n_records: Indices | None

    __repr__ = shapes


@dataclass(frozen=True)
class Forest:
    """What the trees of a forest say about its training records.

    Args:
        trees: the trees.
        n: training records.
        n_columns: columns of a record.
        columns: of each predicate "column ≤ threshold" its column ``[p]``, in ascending order.
        thresholds: of each predicate ``[p]``, in ascending order within a column; 0.5 of columns of 0 and 1.
        binary: which columns hold 0 and 1 ``[d]``.
        draws: how often each tree was given each record ``[trees, n]``; ``None`` if that is not known.
        bagging: what the file says about these.
        classes: what the classifier predicts.
        least: how many records a leaf holds at least, by the settings in the file.
        rounding: largest error of a share.
    """

    trees: tuple[Tree, ...]
    n: int
    n_columns: int
    columns: Indices
    thresholds: Floats
    binary: Flags
    draws: Indices | None
    bagging: Bagging
    classes: tuple[Any, ...]
    least: int = 1
    rounding: float = WHOLE

    __repr__ = shapes

    @property
    def edges(self) -> tuple[Floats, ...]:
        """Thresholds of each column, 0.5 of columns of 0 and 1; none where no tree divides it."""
        return tuple(self.thresholds[self.columns == column] for column in range(self.n_columns))

    def predicates(self, records: Floats) -> Flags:
        """Whether each predicate holds for records ``[m, d]``: ``[m, p]``, in the precision in which trees compare."""
        return np.asarray(records.astype(np.float32)[:, self.columns] <= self.thresholds)


def read_forest(model: Any, *, binary: Collection[int] | None = None, n: int | None = None) -> Forest:
    """Return the counts of a fitted tree or forest of classification, or the shares where counts were removed.

    Args:
        model: a classifier of scikit-learn that is one tree, or a forest of trees.
        binary: positions of the columns that hold 0 and 1, whatever the thresholds that divide them; by default those
            with no threshold but 0.5.
        n: training records, where the file does not say it.

    Raises:
        ModelError: there are no counts of records, or they are weighted; or it is not known how many records there are.
    """
    name = type(model).__name__
    if name not in CLASSIFIERS or not hasattr(model, "n_features_in_"):
        raise ModelError(
            f"counts are read of fitted trees and forests of classification ({', '.join(CLASSIFIERS)}), got {name}"
        )
    if model.n_outputs_ != 1:
        raise ModelError(f"{name} predicts {model.n_outputs_} outputs; give a forest of one")
    if model.get_params().get("monotonic_cst") is not None:
        raise ModelError(f"{name} with monotonic_cst changes the shares in its leaves; these are no counts")
    inner = [tree.tree_ for tree in getattr(model, "estimators_", [model])]
    if not inner or not all(_is_tree(tree, model.n_features_in_) for tree in inner):
        raise ModelError(f"{name} holds something that is no tree: nodes without a place in it, or of other columns")
    n_leaves = sum(int((tree.children_left == -1).sum()) for tree in inner)
    if n_leaves > MOST_LEAVES:
        raise ModelError(
            f"the trees have {n_leaves:,} leaves, and the search is for up to {MOST_LEAVES:,}; that is no evidence of "
            "safety"
        )
    has_counts = any((tree.n_node_samples > 1).any() for tree in inner)
    if not has_counts and model.class_weight is not None and not getattr(model, "bootstrap", False):
        raise ModelError(f"the counts of {name} were removed, and its shares are weighted by class")
    at_root = np.array([tree.n_node_samples[0] for tree in inner]) if has_counts else None
    draws, bagging, n = _draws(model, at_root, n)
    columns, thresholds, is_binary = _predicates(inner, model.n_features_in_, binary)
    number = {(int(one), float(at)): i for i, (one, at) in enumerate(zip(columns, thresholds, strict=True))}
    weights = _class_weights(model, inner, bagging) if has_counts else None
    trees = tuple(_leaves(tree, number, is_binary, weights, name) for tree in inner)
    if bagging is Bagging.NONE and any(
        tree.counts is not None and ((tree.counts.sum(axis=1) != tree.n_records).any() or tree.counts.sum() != n)
        for tree in trees
    ):
        raise ModelError(WEIGHTED.format(name))
    least = model.min_samples_leaf
    return Forest(
        *(trees, n, model.n_features_in_, columns, thresholds, is_binary, draws, bagging),
        classes=tuple(np.asarray(model.classes_).tolist()),
        least=int(least) if least >= 1 else int(np.ceil(least * n)),
        rounding=_rounding(np.concatenate([tree.shares for tree in trees])),
    )


def _is_tree(tree: Any, n_columns: int) -> bool:
    """Whether every node but the first is the child of one other, and is divided by a column that there is."""
    left, right, n = np.asarray(tree.children_left), np.asarray(tree.children_right), len(tree.value)
    inner, columns = left != -1, np.asarray(tree.feature)
    shapes_fit = len(left) == len(right) == len(columns) == len(tree.n_node_samples) == n > 0
    if not shapes_fit or ((right != -1) != inner).any() or np.isnan(tree.threshold[inner]).any():
        return False
    children = np.sort(np.concatenate([left[inner], right[inner]]))
    parents = np.concatenate([np.flatnonzero(inner)] * 2)
    in_order = (np.concatenate([left[inner], right[inner]]) > parents).all()  # so that there is no way back
    is_column = (columns[inner] >= 0) & (columns[inner] < n_columns)
    return bool(np.array_equal(children, np.arange(1, n)) and in_order and is_column.all())


def _draws(model: Any, at_root: Indices | None, n: int | None) -> tuple[Indices | None, Bagging, int]:
    """How often each tree was given each record, what the file says about it, and how many records there are.

    The bootstrap is drawn again as scikit-learn does it, which counts if every tree then has as many different records
    at its root as the file says: another version may draw otherwise.
    """
    n_trees, is_bagged = len(getattr(model, "estimators_", [model])), getattr(model, "bootstrap", False)
    if at_root is not None and not is_bagged:
        if len(set(at_root.tolist())) > 1:
            raise ModelError("the trees were given different numbers of records though the forest has no bootstrap")
        n = int(at_root[0])
    n = getattr(model, "_n_samples", n)
    if n is None:
        raise ModelError("the number of training records is not in the file; give n_records")
    if not is_bagged:
        return np.ones((n_trees, n), dtype=np.int64), Bagging.NONE, n
    seeds = [tree.random_state for tree in model.estimators_]
    if not all(isinstance(seed, int | np.integer) for seed in seeds):
        return None, Bagging.UNKNOWN, n
    draws = np.array([np.bincount(_drawn(model, n, int(seed)), minlength=n) for seed in seeds])
    if at_root is not None and not np.array_equal((draws > 0).sum(axis=1), at_root):
        return None, Bagging.UNKNOWN, n
    return draws, Bagging.SEEDS, n


def _drawn(model: Any, n: int, seed: int) -> Indices:
    """The records of one bootstrap: by weight, as scikit-learn 1.9 draws where it stores weights, else uniform."""
    from sklearn.utils import check_random_state

    generator, weights = check_random_state(seed), getattr(model, "_sample_weight", None)
    n_drawn = getattr(model, "_n_samples_bootstrap", None) or n
    if weights is None:
        return np.asarray(generator.randint(0, n, n_drawn), dtype=np.int64)
    return np.asarray(generator.choice(n, n_drawn, replace=True, p=weights / np.sum(weights)), dtype=np.int64)


def _rounding(shares: Floats) -> float:
    """Half a unit of the last decimal place that shares have, where some are no whole numbers and all have few."""
    between = shares[(shares > 0) & (shares < 1)]
    for digits in range(1, 7):
        if len(between) and (np.abs(between - np.round(between, digits)) < WHOLE**2).all():
            return float(0.5 * 10.0**-digits)
    return WHOLE


def _predicates(inner: list[Any], d: int, binary: Collection[int] | None) -> tuple[Indices, Floats, Flags]:
    """Column and threshold of each predicate, and which columns hold 0 and 1."""
    pairs = {
        (int(column), float(threshold))
        for tree in inner
        for column, threshold in zip(tree.feature, tree.threshold, strict=True)
        if column >= 0
    }
    ordinary = {column for column, threshold in pairs if threshold != 0.5}
    is_binary = np.array([column not in ordinary if binary is None else column in binary for column in range(d)])
    beyond = [column for column, at in pairs if is_binary[column] and not 0 <= at < 1]
    if beyond:
        raise ModelError(f"column {beyond[0]} is divided outside 0 to 1; it is not one of 0 and 1")
    found = sorted({(column, 0.5 if is_binary[column] else threshold) for column, threshold in pairs})
    return np.array([c for c, _ in found], dtype=np.int64), np.array([t for _, t in found], dtype=float), is_binary


def _class_weights(model: Any, inner: list[Any], bagging: Bagging) -> Floats:
    """The weight of a record of each class ``[classes]``: 1 in a bootstrap, which draws by weight.

    Balanced weights solve the equations of all leaves: their weight of each class over that of a record, summed over
    the classes, is their number of records.
    """
    given = model.class_weight
    if bagging is not Bagging.NONE and given == "balanced_subsample":
        raise ModelError(WEIGHTED.format(type(model).__name__))
    if given is None or bagging is not Bagging.NONE:
        return np.ones(len(model.classes_))
    if isinstance(given, dict):
        return np.array([given.get(label, 1.0) for label in model.classes_.tolist()], dtype=float)
    leaves = [tree.children_left == -1 for tree in inner]
    held = [tree.value[at, 0] * tree.weighted_n_node_samples[at, None] for tree, at in zip(inner, leaves, strict=True)]
    n_records = [tree.n_node_samples[at] for tree, at in zip(inner, leaves, strict=True)]
    per_weight, _, rank, _ = np.linalg.lstsq(np.concatenate(held), np.concatenate(n_records), rcond=None)
    if rank < len(per_weight) or (per_weight <= 0).any():
        raise ModelError(WEIGHTED.format(type(model).__name__))
    return np.asarray(1 / per_weight)


def _leaves(
    tree: Any, number: dict[tuple[int, float], int], is_binary: Flags, weights: Floats | None, name: str
) -> Tree:
    left, right = tree.children_left, tree.children_right
    leaves, paths, open_nodes = [], [], [(0, dict[int, bool]())]
    while open_nodes:
        node, path = open_nodes.pop()
        if left[node] == -1:
            leaves.append(node)
            paths.append(path)
            continue
        column = int(tree.feature[node])
        predicate = number[column, 0.5 if is_binary[column] else float(tree.threshold[node])]
        open_nodes += [(int(left[node]), {**path, predicate: True}), (int(right[node]), {**path, predicate: False})]
    shares = np.asarray(tree.value[leaves, 0], dtype=float)
    if weights is None:
        return Tree(tuple(paths), shares, None, None)
    held = shares * tree.weighted_n_node_samples[leaves, None]
    counts = np.divide(held, weights, out=np.full_like(held, np.nan), where=weights > 0)
    whole = np.rint(counts)
    if not (np.abs(counts - whole) <= WHOLE * np.maximum(counts, 1)).all():
        raise ModelError(WEIGHTED.format(name))
    n_records = np.asarray(tree.n_node_samples[leaves], dtype=np.int64)
    return Tree(tuple(paths), shares, whole.astype(np.int64), n_records)
