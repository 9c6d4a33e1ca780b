"""What the trees of scikit-learn hold: thresholds, leaves with one record or one class, and draws of records."""

from __future__ import annotations

import numpy as np

from leakgauge.arrays import Indices
from leakgauge.inspecting.findings import Kind
from leakgauge.inspecting.records_seen import Match
from leakgauge.inspecting.walking import Place, is_tree

NO_LEAVES = frozenset({"IsolationForest", "RandomTreesEmbedding"})
"""Estimators that do not use the values in the leaves of their trees."""

WITHOUT_LABELS = NO_LEAVES | {"BaseGradientBoosting"}
"""Estimators whose trees are fitted to something else than labels."""


def is_of_tree(place: Place, attribute: str) -> bool:
    """Whether a place is that attribute of a compiled tree."""
    return is_tree(place.owner) and place.attribute == attribute


def threshold_match(place: Place, column: int | None) -> Match | None:
    """Thresholds halfway between values of single records; of a tree each in the column that it divides.

    Args:
        place: of an array of thresholds, in a model whose training records are known.
        column: that they are about, if they are about one.
    """
    seen, thresholds = place.seen, place.value.ravel().astype(float)
    assert seen is not None
    features = _features(place, len(seen.columns) - 1)
    if features is None:
        return seen.halfway(thresholds[np.isfinite(thresholds)], column)
    matches = [seen.halfway(thresholds[features == one], int(one)) for one in np.unique(features[features >= 0])]
    found = [match for match in matches if match is not None]
    if not found:
        return None
    records = frozenset().union(*(match.records for match in found))
    return Match(Kind.MIDPOINT, sum(match.n_entries for match in found), records)


def _features(place: Place, n_columns: int) -> Indices | None:
    """The column that each node of a tree divides, −2 of leaves; ``None`` where the tree saw other columns."""
    tree = place.owner
    if is_of_tree(place, "threshold") and tree.n_features == n_columns:
        return np.asarray(tree.feature)
    if place.attribute == "nodes.num_threshold" and tree.nodes["feature_idx"].max() < n_columns:
        return np.where(tree.nodes["is_leaf"], -2, tree.nodes["feature_idx"])
    return None


def labels_alone(place: Place) -> Match | None:
    """Leaves of a regression tree with one record in each, which hold its label; ``None`` where that cannot be seen."""
    tree = place.owner
    if not is_of_tree(place, "value") or np.asarray(tree.value).shape[2] != 1:
        return None
    counts = np.asarray(tree.n_node_samples)
    if (counts == 1).all() or _around(place) & WITHOUT_LABELS:
        return None
    leaves, seen = np.asarray(tree.children_left) == -1, place.seen
    alone = np.asarray(tree.value)[leaves & (counts == 1)].ravel()
    if seen is None:
        return Match(Kind.VALUE, len(alone), frozenset())
    several = np.asarray(tree.value)[leaves & (counts > 1)].ravel()  # one record, drawn several times
    label = len(seen.columns) - 1
    matches = (seen.match(alone, column=label, certain=True), seen.match(several, column=label))
    found = [match for match in matches if match is not None and match.kind is Kind.VALUE]
    n_several = sum(match.n_entries for match in found if match is matches[1])
    return Match(Kind.VALUE, len(alone) + n_several, frozenset().union(*(match.records for match in found)))


def n_pure_leaves(place: Place) -> int:
    """Leaves of a classification tree in which a class is missing."""
    *_, owner, tree = (None, *place.holder)
    value = np.asarray(tree.value)
    if getattr(owner, "classes_", None) is None or value.shape[1] != 1 or value.shape[2] < 2:
        return 0
    leaves = np.asarray(tree.children_left) == -1
    return int((value[leaves, 0] == 0).any(axis=1).sum())


def n_inner_values(place: Place) -> int:
    """Inner nodes of a tree with a value other than 0: a mean over those below, from which their counts follow."""
    tree = place.owner
    inner = np.asarray(tree.children_left) != -1
    return int((np.asarray(tree.value)[inner] != 0).any(axis=(1, 2)).sum())


def n_possible(place: Place) -> int:
    """How many thresholds or leaves of a tree could be those of single records, where the records are not known."""
    tree = place.owner
    leaves = np.asarray(tree.children_left) == -1
    if place.attribute == "threshold":
        return int((~leaves).sum())
    if np.asarray(tree.value).shape[2] > 1 or _around(place) & NO_LEAVES:
        return 0
    return int((leaves & (np.asarray(tree.n_node_samples) == 1)).sum())  # all of them where counts were removed


def _around(place: Place) -> frozenset[str]:
    """Names of the classes of the objects around a place, with those they inherit from."""
    return frozenset(one.__name__ for held in place.holder for one in type(held).__mro__)


def draws_records(place: Place) -> bool:
    """Whether one of the estimators around a place draws records at random for each of its parts."""
    for one in place.holder:
        share, drawn = getattr(one, "subsample", 1), getattr(one, "_max_samples", None)
        if getattr(one, "bootstrap", False) is True or (isinstance(share, float) and share < 1):
            return True
        if drawn is not None and drawn < getattr(one, "_n_samples", drawn):
            return True
    return False
