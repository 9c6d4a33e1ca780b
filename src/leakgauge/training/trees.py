"""Decision trees and random forests that two training sets grow alike wherever they are alike.

scikit-learn's trees break ties by a stream of random numbers that runs through all nodes, and its forests draw a
bootstrap that depends on the number of records: leaving one record out draws everything anew, even under the same
seed. Here every random choice is a function of what it is about. Which columns a node may split at depends on the
seed, the tree and the way to the node; how often a record counts depends on the seed, the tree and the record itself.
So the same seed without a record changes what the record changed, and nothing else.

Trees are CART (Breiman et al. 1984): binary splits ``x <= threshold`` that make the Gini impurity smallest, grown
until leaves are pure or a limit is reached. Thresholds are given and public (:func:`public_thresholds`), so a split
is a column and a bin. Of equally good splits the first column and the lowest threshold is taken, and of thresholds that
part a node's records in the same way the one in the middle. A score is one fraction of whole numbers, the counts on
either side: it is the same number however they were come by, and splits that are equally good have equal scores
(up to 330,000 records; beyond, the sixteenth digit decides).
"""

from __future__ import annotations

import ctypes
import hashlib
import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.errors import ConfigError, ModelError
from leakgauge.models import ProbabilityAccess
from leakgauge.records import Records
from leakgauge.training.learners import Fitted, Learner
from leakgauge.training.native import kernels

Thresholds: TypeAlias = tuple[tuple[float, ...], ...]
"""For each column the values at which it may be split, ascending."""

Codes: TypeAlias = NDArray[np.uint8]
Keys: TypeAlias = NDArray[np.uint64]
Counts: TypeAlias = NDArray[np.int64]

MAX_BINS = 255
LEAF = -1
NO_LIMIT = 2**31 - 1
"""No limit."""

BLOCK_CELLS = 2**20
"""Cells of the temporary arrays of numpy: bounds how many nodes, trees or queries are done together."""


def public_thresholds(pool: Records, n_bins: int = MAX_BINS) -> Thresholds:
    """Where trees may split: halfway between neighbouring values of the pool.

    A numeric column with more than ``n_bins`` values gets ``n_bins`` bins with about equally many records each. A
    column of categories is split between any two codes, whoever has them. The thresholds depend on the pool: they
    count among what the attacker knows, as bins do (:func:`leakgauge.records.bin_edges`).

    Args:
        pool: all records of the audit, members or not.
        n_bins: the most bins of a column, from 2 to 255.

    Raises:
        ConfigError: ``n_bins`` is out of range.

    >>> public_thresholds(Records.from_arrays([[0.0, 1.0], [1.0, 1.0], [4.0, 2.0]], ["a", "b", "b"]))
    ((0.5, 2.5), (1.5,))
    """
    if not 2 <= n_bins <= MAX_BINS:
        raise ConfigError(f"n_bins must be in [2, {MAX_BINS}], got {n_bins}; a code of a bin is one byte")
    return tuple(
        _between(np.arange(n, dtype=np.float64) if n else np.unique(column), column, n_bins)
        for column, n in zip(pool.features.T, pool.schema.n_categories, strict=True)
    )


@dataclass(frozen=True)
class Growth:
    """How trees are grown; the same for a single tree and for those of a forest.

    Args:
        thresholds: for each column where it may be split.
        n_trees: the number of trees.
        bootstrap: whether a record counts as often as a Poisson variable of mean 1 says, instead of once.
        max_features: how many columns a node looks at. If it cannot be split at any of them it looks on.
        max_depth: splits on the way to a leaf, at the most.
        min_samples_split: records of a node that is split, at the least; in a forest, as often as they count.
        min_samples_leaf: records of a leaf, at the least; in a forest, as often as they count.
    """

    thresholds: Thresholds
    n_trees: int
    bootstrap: bool
    max_features: int
    max_depth: int
    min_samples_split: int
    min_samples_leaf: int

    @property
    def n_bins(self) -> Counts:
        """How many codes each column has, int64 ``[d]``."""
        return np.array([len(bounds) + 1 for bounds in self.thresholds], dtype=np.int64)

    def codes(self, X: Floats) -> Codes:
        """The bin of each value, uint8 ``[m, d]``: how many thresholds are below it.

        Raises:
            ModelError: the matrix has another number of columns.
        """
        if X.shape[1] != len(self.thresholds):
            raise ModelError(
                f"the thresholds are for {len(self.thresholds)} columns, but the records have {X.shape[1]}; "
                "take them from records like these (public_thresholds)"
            )
        if np.isnan(X).any():
            raise ModelError("trees of leakgauge take no missing values; fill them in")
        codes = np.empty(X.shape, dtype=np.uint8)
        for j, bounds in enumerate(self.thresholds):
            codes[:, j] = np.searchsorted(np.asarray(bounds, dtype=np.float64), X[:, j], side="left")
        return codes

    def sample(self, records: Records) -> Sample:
        """The records as trees see them.

        Raises:
            ModelError: the records have no classes, or other columns.
        """
        if not len(records):
            raise ModelError("a tree needs at least one record, got none")
        if not records.schema.classes:
            raise ModelError("a tree of leakgauge predicts classes; it cannot be trained for regression")
        labels = np.asarray(records.labels, dtype=np.int64)
        return Sample(self.codes(records.features), labels, self.n_bins, len(records.schema.classes))

    def weights(self, sample: Sample, seed: int) -> Iterator[Counts]:
        """How often each record counts in each tree, int64 ``[n]``.

        It should be the case that a sample without a record has the weights of the whole sample, without one of the
        records like it (:attr:`Sample.representatives`).
        """
        keys = sample.keys
        for tree in range(self.n_trees):
            if self.bootstrap:
                drawn_numbers = drawn(keys, np.uint64(drawn(tree_key(seed, tree), 1)))
                yield np.searchsorted(_POISSON, drawn_numbers, side="right").astype(np.int64)
            else:
                yield np.ones(len(keys), dtype=np.int64)


@dataclass(frozen=True)
class Sample:
    """Binned records.

    Args:
        codes: ``[n, d]``.
        labels: class codes ``[n]``.
        n_bins: how many codes each column has ``[d]``.
        n_classes: k; a class need not have records.
    """

    codes: Codes
    labels: Counts
    n_bins: Counts
    n_classes: int

    @property
    def keys(self) -> Keys:
        """A name for each record ``[n]``, made of its codes, its label, and how many like it come before it.

        Names do not depend on ids, nor on the order of different records: the same table grows the same forest, and
        whichever of several equal records is left out, what remains is the same.
        """
        contents = self._contents
        order = np.argsort(contents, kind="stable")
        ordered = contents[order]
        first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        sizes = np.diff(np.r_[first, len(order)])
        before = np.empty(len(order), dtype=np.uint64)
        before[order] = np.arange(len(order)) - np.repeat(first, sizes)
        names: Keys = drawn(contents, before)
        return names

    @property
    def representatives(self) -> Counts:
        """For each record the last one that is equal to it ``[n]``: the one whose name is lost when it is left out."""
        _, kind = np.unique(self._contents, return_inverse=True)
        last = np.zeros(len(kind), dtype=np.int64)
        last[kind] = np.arange(len(kind))  # of repeated assignments the last one stands
        return last[kind]

    @property
    def _contents(self) -> Keys:
        n, d = self.codes.shape
        words = np.zeros((n, -(-d // 8) * 8), dtype=np.uint8)
        words[:, :d] = self.codes
        content = np.column_stack([words.view("<u8"), self.labels.astype(np.uint64)])
        hashed: Keys = drawn(content, np.arange(content.shape[1], dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
        return hashed


@dataclass(frozen=True)
class Tree:
    """A grown tree; nodes stand level by level, the root first.

    Args:
        column: where each node is split, :data:`LEAF` for a leaf, int ``[nodes]``.
        bin: codes of at most this go left ``[nodes]``.
        left: the node on the left ``[nodes]``, which the one on the right follows; :data:`LEAF` for a leaf.
        counts: records of each class at each node ``[nodes, k]``, as often as they count.
    """

    column: Counts
    bin: Counts
    left: Counts
    counts: Counts


class Forest(ProbabilityAccess):
    """One or more trees; a probability is the mean of the shares that a class has in the leaves that are reached.

    Args:
        growth: how they were grown.
        trees: at least one.
    """

    def __init__(self, growth: Growth, trees: list[Tree]) -> None:
        self.growth = growth
        self.trees = trees

    def log_probabilities(self, X: Floats) -> Floats:
        """Log-probabilities ``[m, k]``; ``-inf`` for a class that none of the leaves has."""
        codes = self.growth.codes(X)
        step = max(1, BLOCK_CELLS // len(self.trees))
        parts = [self._shares(codes[start : start + step]) for start in range(0, len(codes), step)]
        total = np.concatenate(parts) if parts else np.zeros((0, self.trees[0].counts.shape[1]))
        return log_mean(total, len(self.trees))

    def _shares(self, codes: Codes) -> Floats:
        """The sum over the trees, in their order, ``[m, k]``."""
        root = np.cumsum([0] + [len(tree.column) for tree in self.trees[:-1]])
        column, split = (np.concatenate([getattr(tree, part) for tree in self.trees]) for part in ("column", "bin"))
        left = np.concatenate([tree.left + first for tree, first in zip(self.trees, root, strict=True)])
        leaves = shares(np.concatenate([tree.counts for tree in self.trees]))
        node, query = np.repeat(root, len(codes)), np.tile(np.arange(len(codes)), len(root))
        moving = np.flatnonzero(column[node] != LEAF)
        while len(moving):
            at = node[moving]
            node[moving] = left[at] + (codes[query[moving], column[at]] > split[at])
            moving = moving[column[node[moving]] != LEAF]
        total = np.zeros((len(codes), leaves.shape[1]))
        for reached in node.reshape(len(root), -1):  # one tree after another: the order of additions shows
            total += leaves[reached]
        return total


class TreeLearner(Learner):
    """A learner whose models are trees grown as :class:`Growth` says."""

    @property
    def name(self) -> str:
        """The class."""
        return type(self).__name__

    @property
    @abstractmethod
    def growth(self) -> Growth:
        """How its trees are grown."""

    def fit(self, records: Records, *, seed: int | None) -> Fitted:
        """Grow the trees.

        Args:
            records: the training set; of columns of categories, the codes are split.
            seed: drives the bootstrap and the choice of columns; ``None`` is 0.

        Raises:
            ModelError: the records have no classes, or other columns than the thresholds.
        """
        growth = self.growth
        return Fitted(Forest(growth, grow(growth.sample(records), growth, seed or 0)), converged=True)

    def fingerprint(self) -> str:
        """Hash of how the trees are grown."""
        return f"trees-{hashlib.sha256(repr(self.growth).encode()).hexdigest()}"


@dataclass(frozen=True)
class DecisionTree(TreeLearner):
    """One tree on all records and all columns, as scikit-learn's ``DecisionTreeClassifier``; no choice is random.

    Args:
        thresholds: for each column where it may be split; see :func:`public_thresholds`.
        max_depth: splits on the way to a leaf, at the most; ``None`` for no limit.
        min_samples_split: records of a node that is split, at the least, from 2.
        min_samples_leaf: records of a leaf, at the least, from 1.

    Raises:
        ConfigError: a setting is out of range.

    >>> records = Records.from_arrays([[1.0], [2.0], [4.0], [5.0]], ["a", "a", "b", "b"])
    >>> model = DecisionTree(public_thresholds(records)).fit(records, seed=0).model
    >>> np.exp(model.log_probabilities(np.array([[2.9], [3.1]])))
    array([[1., 0.],
           [0., 1.]])
    """

    thresholds: Thresholds
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1

    def __post_init__(self) -> None:
        _check(self.thresholds, self.max_depth, self.min_samples_split, self.min_samples_leaf)

    @property
    def randomised(self) -> bool:
        """No."""
        return False

    @property
    def growth(self) -> Growth:
        """All records, all columns."""
        d = len(self.thresholds)
        depth = NO_LIMIT if self.max_depth is None else self.max_depth
        return Growth(self.thresholds, 1, False, d, depth, self.min_samples_split, self.min_samples_leaf)


@dataclass(frozen=True)
class RandomForest(TreeLearner):
    """Trees on bootstrapped records and random columns, like scikit-learn's ``RandomForestClassifier``.

    What is different is the bootstrap: each record counts as often as a Poisson variable of mean 1 says, on its own,
    where n draws out of n make the counts of all records depend on each other. A tree for which no record counts says
    that all classes are equally likely.

    Args:
        thresholds: for each column where it may be split; see :func:`public_thresholds`.
        n_trees: the number of trees.
        max_features: how many columns a node looks at, ``"sqrt"`` for the square root of their number.
        max_depth: splits on the way to a leaf, at the most; ``None`` for no limit.
        min_samples_split: records of a node that is split, at the least, from 2, as often as they count.
        min_samples_leaf: records of a leaf, at the least, from 1, as often as they count.

    Raises:
        ConfigError: a setting is out of range.
    """

    thresholds: Thresholds
    n_trees: int = 100
    max_features: int | Literal["sqrt"] = "sqrt"
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1

    def __post_init__(self) -> None:
        _check(self.thresholds, self.max_depth, self.min_samples_split, self.min_samples_leaf)
        _require(self.n_trees >= 1, f"n_trees must be at least 1, got {self.n_trees}")
        sound = self.max_features == "sqrt" or (isinstance(self.max_features, int) and self.max_features >= 1)
        _require(sound, f"max_features must be 'sqrt' or a whole number of at least 1, got {self.max_features!r}")

    @property
    def randomised(self) -> bool:
        """Yes: the bootstrap, and the columns."""
        return True

    @property
    def growth(self) -> Growth:
        """Bootstrapped records, some columns."""
        d = len(self.thresholds)
        columns = math.isqrt(d) if self.max_features == "sqrt" else min(self.max_features, d)
        depth = NO_LIMIT if self.max_depth is None else self.max_depth
        return Growth(
            self.thresholds, self.n_trees, True, columns, depth, self.min_samples_split, self.min_samples_leaf
        )


# ---------------------------------------------------------------- random numbers


def drawn(key: Any, place: Any) -> Any:
    """The number at a place of the stream of a key, uint64: splitmix64 (Steele, Lea and Flood 2014).

    >>> int(drawn(np.uint64(0), np.uint64(0)))
    16294208416658607535
    """
    with np.errstate(over="ignore"):
        z = np.asarray(key, np.uint64) + np.uint64(0x9E3779B97F4A7C15) * (np.asarray(place, np.uint64) + np.uint64(1))
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def tree_key(seed: int, tree: int) -> int:
    """The key of all random choices of one tree."""
    return int(drawn(drawn(seed % 2**64, 0), tree))


def root_key(seed: int, tree: int) -> int:
    """The key of the root of one tree."""
    return int(drawn(tree_key(seed, tree), 0))


def child_keys(keys: Any, n_columns: int) -> Any:
    """The keys of the nodes on the left and on the right below the nodes of ``keys [...]``, ``[..., 2]``."""
    return drawn(np.asarray(keys, np.uint64)[..., None], n_columns + np.arange(2))


def column_batches(keys: Keys, n_columns: int, max_features: int) -> Iterator[Counts]:
    """The columns that nodes look at: ``max_features`` of them at first, then one after the other.

    They are drawn without replacement (Fisher and Yates), for each node by its key ``[nodes]``; each batch
    ``[nodes, c]`` is ascending.
    """
    order = np.repeat(np.arange(n_columns)[None, :], len(keys), axis=0)
    if max_features >= n_columns:
        yield order
        return
    nodes = np.arange(len(keys))
    for i in range(n_columns):
        chance = (drawn(keys, i) >> np.uint64(32)) * np.uint64(n_columns - i)
        other = i + (chance >> np.uint64(32)).astype(np.int64)
        order[nodes, i], order[nodes, other] = order[nodes, other], order[nodes, i]
        if i + 1 >= max_features:
            yield np.sort(order[:, 0 if i + 1 == max_features else i : i + 1], axis=1)


_POISSON = np.array(
    [int(2**64 * sum(1 / math.factorial(i) for i in range(n + 1)) / math.e) for n in range(16)], dtype=np.uint64
)
"""The distribution function of a Poisson variable of mean 1, in units of 2^-64; beyond, there are 2e-14."""


# ---------------------------------------------------------------- growing


def grow(sample: Sample, growth: Growth, seed: int) -> list[Tree]:
    """All trees."""
    library = kernels()
    weights = growth.weights(sample, seed)
    keys = [root_key(seed, tree) for tree in range(growth.n_trees)]
    if library is not None and hasattr(library, "leakgauge_trees_grow"):
        return [_grow_compiled(library, sample, w, growth, key) for w, key in zip(weights, keys, strict=True)]
    together = max(1, BLOCK_CELLS // (len(sample.labels) * growth.max_features))
    groups = (keys[start : start + together] for start in range(0, growth.n_trees, together))
    return [
        tree
        for group in groups
        for tree in _grow_in_numpy(sample, np.stack(list(islice(weights, len(group)))), growth, group)
    ]


def _grow_in_numpy(sample: Sample, weights: Counts, growth: Growth, roots: list[int]) -> list[Tree]:
    """The trees of some roots, all level by level, with weights ``[trees, n]``."""
    node, row = np.nonzero(weights)
    entries = NodeEntries(sample, row, weights[node, row].astype(np.float64), node)
    owner, keys = np.arange(len(roots)), np.array(roots, dtype=np.uint64)
    levels = []
    for depth in count():
        totals = entries.class_counts(len(owner))
        column, split = _splits(entries, growth, keys, np.flatnonzero(~ends(totals, growth, depth)))
        levels.append((owner, column, split, totals.astype(np.int64)))
        inner = column != LEAF
        if not inner.any():
            break
        entries = entries.below(column, split)
        owner, keys = np.repeat(owner[inner], 2), child_keys(keys[inner], len(sample.n_bins)).ravel()
    return _assembled(*map(np.concatenate, zip(*levels, strict=True)))


@dataclass(frozen=True)
class NodeEntries:
    """Where records are among the nodes of a level.

    Args:
        sample: the records.
        row: which of them ``[e]``.
        weight: how often each counts ``[e]``.
        node: the place of its node in the level ``[e]``.
    """

    sample: Sample
    row: Counts
    weight: Floats
    node: Counts

    def class_counts(self, n_nodes: int) -> Floats:
        """How often each class counts at each node ``[nodes, k]``."""
        k = self.sample.n_classes
        counted = np.bincount(self.node * k + self.sample.labels[self.row], self.weight, n_nodes * k)
        return np.asarray(counted, dtype=np.float64).reshape(n_nodes, k)

    def counts(self, columns: Counts, nodes: Counts) -> Floats:
        """How often each class counts in each bin of some columns ``[nodes, c]`` of nodes: ``[nodes, c, bins, k]``."""
        shape = (*columns.shape, int(self.sample.n_bins[columns].max()), self.sample.n_classes)
        place = np.full(self.node.max() + 1, -1)
        place[nodes] = np.arange(len(nodes))
        mine = np.flatnonzero(place[self.node] >= 0)
        row, at = self.row[mine], place[self.node[mine]]
        cells = at[:, None] * shape[1] + np.arange(shape[1])
        cells = cells * shape[2] + self.sample.codes[row[:, None], columns[at]]
        cells = cells * shape[3] + self.sample.labels[row, None]
        counted = np.bincount(cells.ravel(), np.repeat(self.weight[mine], shape[1]), math.prod(shape))
        return np.asarray(counted, dtype=np.float64).reshape(shape)

    def below(self, column: Counts, split: Counts) -> NodeEntries:
        """Where they are in the next level, when nodes are split as said ``[nodes]``; leaves keep theirs."""
        inner = column != LEAF
        kept = inner[self.node]
        row, node = self.row[kept], self.node[kept]
        right = self.sample.codes[row, column[node]] > split[node]
        return NodeEntries(self.sample, row, self.weight[kept], 2 * (np.cumsum(inner) - 1)[node] + right)


def _splits(entries: NodeEntries, growth: Growth, keys: Keys, undecided: Counts) -> tuple[Counts, Counts]:
    """The column, or :data:`LEAF`, and bin at which each node of a level is split; all but ``undecided`` are leaves."""
    column, split = np.full(len(keys), LEAF), np.zeros(len(keys), dtype=np.int64)
    cells = int(growth.n_bins.max()) * entries.sample.n_classes
    for columns in column_batches(keys, len(growth.thresholds), growth.max_features):
        step = max(1, BLOCK_CELLS // (cells * columns.shape[1]))
        for start in range(0, len(undecided), step):
            nodes = undecided[start : start + step]
            found = best_splits(entries.counts(columns[nodes], nodes), growth.min_samples_leaf)
            column[nodes] = np.where(found[0] == LEAF, LEAF, columns[nodes, found[0]])
            split[nodes] = found[1]
        undecided = undecided[column[undecided] == LEAF]
        if not len(undecided):
            break
    return column, split


def best_splits(counts: Floats, min_samples_leaf: int) -> tuple[Counts, Counts]:
    """The best split of each node.

    Args:
        counts: how often each class counts in each bin of each column ``[nodes, c, bins, k]``.
        min_samples_leaf: what must be left on either side.

    Returns:
        The place of the column ``[nodes]``, :data:`LEAF` where nothing can be split, and the bin ``[nodes]``, then 0.
    """
    nodes, n_bins = np.arange(len(counts)), counts.shape[2]
    score = split_scores(*sides(counts), min_samples_leaf).reshape(len(counts), -1)
    best = np.argmax(score, axis=1)
    place, split = np.divmod(best, n_bins)
    filled = counts.sum(axis=3)[nodes, place] > 0
    sound = score[nodes, best] > -np.inf
    return np.where(sound, place, LEAF), np.where(sound, middle(filled, split), 0)


def sides(counts: Floats) -> tuple[Floats, Floats]:
    """Counts on the left and on the right of a split after each bin, ``[..., bins, k]``."""
    left = counts.cumsum(axis=-2)
    return left, left[..., -1:, :] - left


def split_scores(left: Floats, right: Floats, min_samples_leaf: int) -> Floats:
    """How pure splits are ``[...]``: over both sides the sum of squared counts ``[..., k]`` by their total.

    The Gini impurity of the two sides together is 1 less this over the total: the highest score is the best.
    """
    n_left, n_right = left.sum(axis=-1), right.sum(axis=-1)
    sound = (n_left >= min_samples_leaf) & (n_right >= min_samples_leaf)
    with np.errstate(divide="ignore", invalid="ignore"):
        # One fraction of whole numbers, both below 2^53 up to 330,000 records: equal scores are equal numbers.
        score = ((left * left).sum(axis=-1) * n_right + (right * right).sum(axis=-1) * n_left) / (n_left * n_right)
    return np.where(sound, score, -np.inf)


def middle(filled: NDArray[np.bool_], split: Counts) -> Counts:
    """The middle of the empty bins ``[m, bins]`` after each split ``[m]``: all part the records in the same way."""
    following = np.argmax(filled & (np.arange(filled.shape[1]) > split[:, None]), axis=1)
    between: Counts = (split + following) // 2
    return between


def _assembled(owner: Counts, column: Counts, split: Counts, counts: Counts) -> list[Tree]:
    """Trees from their nodes, which stand level by level; all have a root."""
    inner, n_trees = column != LEAF, int(owner.max()) + 1
    order = np.argsort(owner, kind="stable")
    first = np.searchsorted(owner[order], np.arange(n_trees))
    place = np.empty(len(owner), dtype=np.int64)
    place[order] = np.arange(len(owner)) - first[owner[order]]
    left = np.full(len(owner), LEAF)
    left[inner] = place[n_trees + 2 * np.arange(inner.sum())]  # children stand in the order of their parents
    return [Tree(column[nodes], split[nodes], left[nodes], counts[nodes]) for nodes in np.split(order, first[1:])]


def _grow_compiled(library: ctypes.CDLL, sample: Sample, weights: Counts, growth: Growth, key: int) -> Tree:
    most = 2 * max(1, int((weights > 0).sum())) - 1
    parts = np.empty((3, most), dtype=np.int32)
    counts = np.empty((most, sample.n_classes), dtype=np.int64)
    into = [pointer(part) for part in parts]
    n = call(library.leakgauge_trees_grow, *arguments(sample, weights, growth, key), *into, pointer(counts))
    column, split, left = parts[:, :n].astype(np.int64)
    return Tree(column, split, left, counts[:n].copy())


def ends(counts: NDArray[Any], growth: Growth, depth: int) -> Any:
    """Whether a node with these counts ``[..., k]`` is a leaf for certain."""
    total = counts.sum(axis=-1)
    return (depth >= growth.max_depth) | (total < growth.min_samples_split) | (counts.max(axis=-1) == total)


def shares(counts: NDArray[Any]) -> Floats:
    """Shares of the classes ``[..., k]``; equal ones where nothing was counted."""
    total = counts.sum(axis=-1, keepdims=True)
    part: Floats = np.where(total > 0, counts / np.maximum(total, 1), 1 / counts.shape[-1])
    return part


def log_mean(total: Floats, n_trees: int) -> Floats:
    """Log-probabilities for the sum of the shares over trees."""
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(total / n_trees)
    return logs


# ---------------------------------------------------------------- compiled loops


def arguments(sample: Sample, weights: Counts, growth: Growth, key: int) -> list[Any]:
    """What the compiled loops are told about a tree."""
    return [
        *map(ctypes.c_int64, (*sample.codes.shape, sample.n_classes)),
        pointer(np.ascontiguousarray(sample.codes)),
        *(pointer(part.astype(np.int32)) for part in (sample.n_bins, sample.labels, weights)),
        *map(ctypes.c_int64, (growth.max_features, growth.max_depth)),
        *map(ctypes.c_int64, (growth.min_samples_split, growth.min_samples_leaf)),
        ctypes.c_uint64(key),
    ]


def pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    """Where an array is; it stays there as long as this is kept."""
    return array.ctypes.data_as(ctypes.c_void_p)


def call(function: Any, *given: Any) -> int:
    """What a compiled loop returns.

    Raises:
        MemoryError: it needed more memory than there is.
    """
    function.restype = ctypes.c_int64
    result = int(function(*given))
    if result < 0:
        raise MemoryError("there is not enough memory for these trees")
    return result


# ---------------------------------------------------------------- settings


def _between(values: Floats, column: Floats, n_bins: int) -> tuple[float, ...]:
    """Halfway between values that follow each other: all of them, or so many that ``n_bins`` bins are left."""
    last = np.arange(len(values) - 1)
    if len(values) > n_bins:
        ranks = np.arange(1, n_bins) / n_bins
        found = np.unique(np.searchsorted(values, np.quantile(column, ranks, method="inverted_cdf")))
        last = found[found < len(values) - 1]
    lower, upper = values[last], values[last + 1]
    middle = lower / 2 + upper / 2
    return tuple(np.where((lower <= middle) & (middle < upper), middle, lower).tolist())


def _check(thresholds: Thresholds, max_depth: int | None, min_samples_split: int, min_samples_leaf: int) -> None:
    for j, bounds in enumerate(thresholds):
        ascending = np.isfinite(bounds).all() and (np.diff(bounds) > 0).all()
        _require(bool(ascending), f"the thresholds of column {j} must be finite and ascend, got {bounds}")
        _require(
            len(bounds) < MAX_BINS, f"column {j} has {len(bounds)} thresholds; at most {MAX_BINS - 1} are possible"
        )
    _require(max_depth is None or max_depth >= 1, f"max_depth must be at least 1, or None, got {max_depth}")
    _require(min_samples_split >= 2, f"min_samples_split must be at least 2, got {min_samples_split}")
    _require(min_samples_leaf >= 1, f"min_samples_leaf must be at least 1, got {min_samples_leaf}")


def _require(sound: bool, message: str) -> None:
    if not sound:
        raise ConfigError(message)
