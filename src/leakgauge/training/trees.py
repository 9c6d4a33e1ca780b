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

How a node is split is a matter of :class:`Rules`, of which scikit-learn has others: see
:mod:`leakgauge.training.engines.forests`.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from enum import IntEnum
from functools import cached_property
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

Codes: TypeAlias = NDArray[np.integer[Any]]
Keys: TypeAlias = NDArray[np.uint64]
Counts: TypeAlias = NDArray[np.int64]

MAX_BINS = 255
LEAF = -1
NO_LIMIT = 2**31 - 1
"""No limit."""

BLOCK_CELLS = 2**20
"""Cells of the temporary arrays of numpy: bounds how many trees or queries are done together."""

NEAR = np.float32(1e-7)
"""What scikit-learn adds to a value before it is less than another one, in single precision."""


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


class Criterion(IntEnum):
    """By what splits are compared.

    ``FRACTION``: the Gini impurity as one fraction of whole numbers. ``GINI``: the same as scikit-learn rounds it, so
    that it parts the splits that rounding parts there. ``ENTROPY``: of the classes, as scikit-learn has it but for
    rounding. ``SQUARED_ERROR``: of values, by the compiled loops alone.
    """

    FRACTION = 0
    GINI = 1
    ENTROPY = 2
    SQUARED_ERROR = 3


@dataclass(frozen=True)
class Rules:
    """How a node is split, and when it is a leaf; the defaults are those of our own trees.

    Args:
        max_features: how many columns a node looks at.
        max_depth: splits on the way to a leaf, at the most.
        min_samples_split: size of a node that is split, at the least.
        min_samples_leaf: size of a leaf, at the least.
        criterion: by what splits are compared.
        looks_on: whether a node that cannot be split at the columns it looks at looks on until it can; otherwise only
            until the lowest and the highest value of one of them are told apart.
        drawn_ties: whether of equally good splits that of the column drawn first is taken, instead of the first column.
        sizes_by_record: whether a size is a number of records, instead of how often they count together.
        drawn_thresholds: whether a column is split at one threshold drawn between its lowest and highest value.
    """

    max_features: int
    max_depth: int
    min_samples_split: int
    min_samples_leaf: int
    criterion: Criterion = Criterion.FRACTION
    looks_on: bool = True
    drawn_ties: bool = False
    sizes_by_record: bool = False
    drawn_thresholds: bool = False


@dataclass(frozen=True)
class Growth:
    """How trees are grown; the same for a single tree and for those of a forest.

    Args:
        thresholds: for each column where it may be split.
        n_trees: the number of trees.
        bootstrap: whether a record counts as often as a Poisson variable of mean 1 says, instead of once.
        rules: how nodes are split.
    """

    thresholds: Thresholds
    n_trees: int
    bootstrap: bool
    rules: Rules

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
        values = np.concatenate([np.arange(n, dtype=np.float32) for n in self.n_bins])
        return Sample(self.codes(records.features), labels, self.n_bins, len(records.schema.classes), values)

    def weights(self, sample: Sample, seed: int) -> Iterator[Counts]:
        """How often each record counts in each tree, int64 ``[n]``.

        It should be the case that a sample without a record has the weights of the whole sample, without one of the
        records like it (:attr:`Sample.representatives`).
        """
        keys, trees = sample.keys, tree_keys(seed, self.n_trees)
        if not self.bootstrap:
            yield from np.ones((self.n_trees, len(keys)), dtype=np.int64)
            return
        together = max(1, BLOCK_CELLS // len(keys))
        for start in range(0, self.n_trees, together):
            chance = drawn(keys, drawn(trees[start : start + together], 1)[:, None])
            counts = np.zeros(chance.shape, dtype=np.int64)
            for bound in _POISSON[: np.searchsorted(_POISSON, chance.max(), side="right")]:
                counts += chance >= bound
            yield from counts


@dataclass(frozen=True)
class Ranked:
    """Records and queries as scikit-learn's trees see them, in single precision: values by their rank in the column.

    Args:
        codes: of the records ``[n, d]``.
        asked: of the queries ``[q, d]``.
        n_bins: how many values each column has ``[d]``.
        values: these, ascending, float32 ``[sum of n_bins]``.
    """

    codes: Codes
    asked: Codes
    n_bins: Counts
    values: NDArray[np.float32]

    @classmethod
    def of(cls, matrix: Floats, asked: Floats) -> Ranked | None:
        """Records ``[n, d]`` and queries ``[q, d]``; ``None`` where a number is too large for single precision."""
        with np.errstate(over="ignore"):
            X = np.concatenate([matrix, asked]).astype(np.float32)
        if not np.isfinite(X).all():
            return None
        lowest, highest = X.min(axis=0, initial=np.inf), X.max(axis=0, initial=-np.inf)
        two = ((lowest == X) | (highest == X)).all(axis=0) & (lowest < highest)  # these need not be sorted
        ranked = [
            (ends, column == ends[1]) if of_two else np.unique(column, return_inverse=True)
            for column, ends, of_two in zip(X.T, np.column_stack([lowest, highest]), two, strict=True)
        ]
        n_bins = np.array([len(values) for values, _ in ranked], dtype=np.int64)
        codes = np.empty(X.shape, dtype=narrowest(int(n_bins.max(initial=0))))
        for j, (_, ranks) in enumerate(ranked):
            codes[:, j] = ranks
        values, n = np.concatenate([values for values, _ in ranked]), len(matrix)
        return cls(codes[:n], codes[n:], n_bins, values)


@dataclass(frozen=True)
class Sample:
    """Records as trees see them: each value by its rank among those of its column.

    Args:
        codes: ``[n, d]``.
        labels: class codes ``[n]``.
        n_bins: how many codes each column has ``[d]``.
        n_classes: k; a class need not have records.
        values: what each code of each column stands for, ascending, float32 ``[sum of n_bins]``: a node is split
            halfway between two values that follow each other in it. Bins have no values but their codes.
    """

    codes: Codes
    labels: Counts
    n_bins: Counts
    n_classes: int
    values: NDArray[np.float32]

    @cached_property
    def by_column(self) -> tuple[Codes, Keys, Keys]:
        """For trees to be grown on: the codes column by column, and as bits which are above 0, of rows and of columns.

        Bits are in words ``[n, words of columns]`` and ``[d, words of rows]``, the lowest first.
        """
        return np.asfortranarray(self.codes), _bits(self.codes > 0), _bits(self.codes.T > 0)

    @property
    def first_bin(self) -> Counts:
        """Where the values of each column begin ``[d]``."""
        return np.cumsum(self.n_bins) - self.n_bins

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
        parts = [added(shares_reached(self.trees, codes[start : start + step])) for start in range(0, len(codes), step)]
        total = np.concatenate(parts) if parts else np.zeros((0, self.trees[0].counts.shape[1]))
        return log_mean(total, len(self.trees))


def shares_reached(trees: list[Tree], codes: Codes) -> Iterator[Floats]:
    """For each tree the shares of the classes in the leaves that queries reach, ``[m, k]``.

    Args:
        trees: at least one.
        codes: the queries ``[m, d]``.
    """
    root = np.cumsum([0] + [len(tree.column) for tree in trees[:-1]])
    column, split = (np.concatenate([getattr(tree, part) for tree in trees]) for part in ("column", "bin"))
    left = np.concatenate([tree.left + first for tree, first in zip(trees, root, strict=True)])
    leaves = shares(np.concatenate([tree.counts for tree in trees]))
    node, query = np.repeat(root, len(codes)), np.tile(np.arange(len(codes)), len(root))
    moving = np.flatnonzero(column[node] != LEAF)
    while len(moving):
        at = node[moving]
        node[moving] = left[at] + (codes[query[moving], column[at]] > split[at])
        moving = moving[column[node[moving]] != LEAF]
    return (leaves[reached] for reached in node.reshape(len(root), -1))


def added(parts: Iterable[Floats]) -> Floats:
    """The sum of the shares of trees, one after another: the order of additions shows."""
    return np.asarray(sum(parts))


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
        return Growth(self.thresholds, 1, False, Rules(d, depth, self.min_samples_split, self.min_samples_leaf))


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
        rules = Rules(columns, depth, self.min_samples_split, self.min_samples_leaf)
        return Growth(self.thresholds, self.n_trees, True, rules)


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


def tree_keys(seed: int, n_trees: int) -> Keys:
    """The key of all random choices of each tree ``[trees]``."""
    keys: Keys = drawn(drawn(seed % 2**64, 0), np.arange(n_trees))
    return keys


def root_keys(seed: int, n_trees: int) -> Keys:
    """The key of the root of each tree ``[trees]``."""
    keys: Keys = drawn(tree_keys(seed, n_trees), 0)
    return keys


def child_keys(keys: Any, n_columns: int) -> Any:
    """The keys of the nodes on the left and on the right below the nodes of ``keys [...]``, ``[..., 2]``."""
    return drawn(np.asarray(keys, np.uint64)[..., None], n_columns + np.arange(2))


def column_batches(keys: Keys, n_columns: int, max_features: int, *, in_order: bool = False) -> Iterator[Counts]:
    """The columns that nodes look at: ``max_features`` of them at first, then one after the other.

    They are drawn without replacement (Fisher and Yates), for each node by its key ``[nodes]``; each batch
    ``[nodes, c]`` is ascending, or ``in_order`` in which they were drawn.
    """
    order = np.repeat(np.arange(n_columns)[None, :], len(keys), axis=0)
    if max_features >= n_columns and not in_order:
        yield order
        return
    nodes = np.arange(len(keys))
    for i in range(n_columns):
        chance = (drawn(keys, i) >> np.uint64(32)) * np.uint64(n_columns - i)
        other = i + (chance >> np.uint64(32)).astype(np.int64)
        order[nodes, i], order[nodes, other] = order[nodes, other], order[nodes, i]
        if i + 1 >= min(max_features, n_columns):
            batch = order[:, 0 if i + 1 == min(max_features, n_columns) else i : i + 1]
            yield batch.copy() if in_order else np.sort(batch, axis=1)


_POISSON = np.array(
    [int(2**64 * sum(1 / math.factorial(i) for i in range(n + 1)) / math.e) for n in range(16)], dtype=np.uint64
)
"""The distribution function of a Poisson variable of mean 1, in units of 2^-64; beyond, there are 2e-14."""


# ---------------------------------------------------------------- growing


def grow(sample: Sample, growth: Growth, seed: int) -> list[Tree]:
    """All trees."""
    return grown(sample, growth.weights(sample, seed), growth.rules, root_keys(seed, growth.n_trees).tolist())


def grown(
    sample: Sample, weights: Iterable[Counts], rules: Rules, roots: list[int], asked: Codes | None = None
) -> list[Tree]:
    """The trees of some roots.

    Args:
        sample: the records.
        weights: how often each record counts ``[n]``, one after the other for each tree.
        rules: how nodes are split.
        roots: the key of each tree's root.
        asked: queries ``[q, d]``: nodes that none of them reaches may be left out, as leaves without a record.
    """
    library, weights = compiled(), iter(weights)
    if library is not None:
        return [_grow_compiled(library, sample, w, rules, key) for w, key in zip(weights, roots, strict=True)]
    together = max(1, BLOCK_CELLS // (len(sample.labels) * rules.max_features))
    groups = (roots[start : start + together] for start in range(0, len(roots), together))
    return [
        tree
        for group in groups
        for tree in _grow_in_numpy(sample, np.stack(list(islice(weights, len(group)))), rules, group, asked)
    ]


def ask(sample: Sample, weights: Iterable[Counts], rules: Rules, roots: Keys, asked: Codes) -> Floats:
    """The shares of the classes in the leaves that queries reach, added up over trees ``[q, k]``.

    Of each tree only the nodes on the way of the queries are grown.

    Args:
        sample: the records.
        weights: how often each record counts ``[n]``, one after the other for each tree.
        rules: how nodes are split.
        roots: the key of each tree's root ``[trees]``.
        asked: the queries ``[q, d]``.
    """
    library, weights = compiled(), iter(weights)
    if library is None:
        return added(shares_reached(grown(sample, weights, rules, roots.tolist(), asked), asked))
    total, queries = np.zeros((len(asked), sample.n_classes)), asked_by_column(asked)
    together = max(1, BLOCK_CELLS // len(sample.labels))
    for group in (roots[start : start + together] for start in range(0, len(roots), together)):
        counts = np.stack([one.astype(np.int32) for one in islice(weights, len(group))])
        told = [*grown_on(sample, rules, int(counts.sum(axis=1).max())), ctypes.c_int64(len(group)), pointer(counts)]
        told += [pointer(group), *queries, pointer(total)]
        call(library.leakgauge_trees_ask_counted, *told)
    return total


def _grow_in_numpy(sample: Sample, weights: Counts, rules: Rules, roots: list[int], asked: Codes | None) -> list[Tree]:
    """The trees of some roots, all level by level, with weights ``[trees, n]``."""
    node, row = np.nonzero(weights)
    entries = NodeEntries(sample, row, weights[node, row].astype(np.float64), node)
    owner, keys = np.arange(len(roots)), np.array(roots, dtype=np.uint64)
    levels, reached = [], Reached.roots(len(roots), asked)
    for depth in count():
        totals = entries.class_counts(len(owner))
        n_records = np.bincount(entries.node, minlength=len(owner))
        column, split = _splits(entries, rules, keys, np.flatnonzero(~ends(totals, n_records, rules, depth)))
        levels.append((owner, column, split, totals.astype(np.int64)))
        inner = column != LEAF
        if not inner.any():
            break
        entries, reached = entries.below(column, split), reached and reached.below(column, split)
        entries = entries if reached is None else entries.at(reached.node)
        owner, keys = np.repeat(owner[inner], 2), child_keys(keys[inner], len(sample.n_bins)).ravel()
    return _assembled(*map(np.concatenate, zip(*levels, strict=True)))


@dataclass(frozen=True)
class Reached:
    """Where queries are among the nodes of a level.

    Args:
        asked: codes ``[q, d]``.
        query: which of them ``[r]``.
        node: the place of its node in the level ``[r]``; those at leaves are gone.
    """

    asked: Codes
    query: Counts
    node: Counts

    @classmethod
    def roots(cls, n_trees: int, asked: Codes | None) -> Reached | None:
        """All at the root of every tree; ``None`` where it does not matter where they are."""
        if asked is None:
            return None
        return cls(asked, np.tile(np.arange(len(asked)), n_trees), np.repeat(np.arange(n_trees), len(asked)))

    def below(self, column: Counts, split: Counts) -> Reached:
        """Where they are in the next level; see :meth:`NodeEntries.below`."""
        inner = column != LEAF
        kept = inner[self.node]
        query, node = self.query[kept], self.node[kept]
        right = self.asked[query, column[node]] > split[node]
        return Reached(self.asked, query, 2 * (np.cumsum(inner) - 1)[node] + right)


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

    def cells(self, columns: Counts, nodes: Counts) -> Cells:
        """How often each class counts at each value of some columns ``[nodes, c]`` of nodes."""
        sample, n_codes = self.sample, int(self.sample.n_bins.max())
        n_columns, k = columns.shape[1], sample.n_classes
        place = np.full(self.node.max() + 1, -1)
        place[nodes] = np.arange(len(nodes))
        mine = np.flatnonzero(place[self.node] >= 0)
        row, at = self.row[mine], place[self.node[mine]]
        slots = at[:, None] * n_columns + np.arange(n_columns)
        filled, cell = np.unique(slots * n_codes + sample.codes[row[:, None], columns[at]], return_inverse=True)
        cell = cell.ravel()
        slot, code = np.divmod(filled, n_codes)
        labels, weight = (np.repeat(part, n_columns) for part in (sample.labels[row], self.weight[mine]))
        counts = np.bincount(cell * k + labels, weight, len(filled) * k).astype(np.float64).reshape(-1, k)
        return Cells(slot, columns.ravel()[slot], code, code, counts, np.bincount(cell, minlength=len(filled)))

    def below(self, column: Counts, split: Counts) -> NodeEntries:
        """Where they are in the next level, when nodes are split as said ``[nodes]``; leaves keep theirs."""
        inner = column != LEAF
        kept = inner[self.node]
        row, node = self.row[kept], self.node[kept]
        right = self.sample.codes[row, column[node]] > split[node]
        return NodeEntries(self.sample, row, self.weight[kept], 2 * (np.cumsum(inner) - 1)[node] + right)

    def at(self, nodes: Counts) -> NodeEntries:
        """Those at some nodes, which may repeat."""
        kept = np.isin(self.node, nodes)
        return NodeEntries(self.sample, self.row[kept], self.weight[kept], self.node[kept])


@dataclass(frozen=True)
class Cells:
    """The values that columns have in nodes, in ascending order, one column after the other.

    Args:
        slot: which of the columns of which of the nodes ``[cells]``, ascending.
        column: the column itself ``[cells]``.
        low: the first code of the values that count as this one ``[cells]``.
        high: the last one.
        counts: how often each class counts ``[cells, k]``.
        records: of how many records ``[cells]``.
    """

    slot: Counts
    column: Counts
    low: Counts
    high: Counts
    counts: Floats
    records: Counts

    @property
    def ends(self) -> tuple[Counts, Counts]:
        """The first and the last cell of each slot."""
        first = np.flatnonzero(np.r_[True, self.slot[1:] != self.slot[:-1]])
        return first, np.r_[first[1:], len(self.slot)] - 1

    def reach(self, sample: Sample) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The lowest and the highest value of each slot."""
        first, last = self.ends
        begins = sample.first_bin[self.column[first]]
        return sample.values[begins + self.low[first]], sample.values[begins + self.high[last]]

    def told_apart(self, sample: Sample) -> Cells:
        """With values that are as good as equal in one cell."""
        value = sample.values[sample.first_bin[self.column] + self.low]
        apart = np.r_[True, (self.slot[1:] != self.slot[:-1]) | (value[1:] > value[:-1] + NEAR)]
        if apart.all():
            return self
        first = np.flatnonzero(apart)
        high = self.high[np.r_[first[1:], len(apart)] - 1]
        counts, records = np.add.reduceat(self.counts, first, axis=0), np.add.reduceat(self.records, first)
        return Cells(self.slot[first], self.column[first], self.low[first], high, counts, records)

    def scores(self, rules: Rules) -> Floats:
        """How good it is to split a column behind each cell, ``-inf`` where that may not be ``[cells]``."""
        first, last = self.ends
        size = last - first + 1
        left, n_left = (part.cumsum(axis=0) for part in (self.counts, self.records))
        left -= np.repeat(left[first] - self.counts[first], size, axis=0)
        n_left -= np.repeat(n_left[first] - self.records[first], size)
        right, n_right = np.repeat(left[last], size, axis=0) - left, np.repeat(n_left[last], size) - n_left
        sizes = (n_left, n_right) if rules.sizes_by_record else (left.sum(axis=1), right.sum(axis=1))
        sound = np.minimum(*sizes) >= rules.min_samples_leaf
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(sound, purity(left, right, rules.criterion), -np.inf)


def _splits(entries: NodeEntries, rules: Rules, keys: Keys, undecided: Counts) -> tuple[Counts, Counts]:
    """The column, or :data:`LEAF`, and bin at which each node of a level is split; all but ``undecided`` are leaves."""
    column, split = np.full(len(keys), LEAF), np.zeros(len(keys), dtype=np.int64)
    d = len(entries.sample.n_bins)
    for columns in column_batches(keys, d, rules.max_features, in_order=rules.drawn_ties):
        if not len(undecided):
            break
        cells = entries.cells(columns[undecided], undecided)
        find = _drawn_splits if rules.drawn_thresholds else _best_splits
        column[undecided], split[undecided], varies = find(
            entries.sample, cells, columns.shape[1], rules, keys[undecided]
        )
        undecided = undecided[(column[undecided] == LEAF) & (rules.looks_on | ~varies)]
    return column, split


def _best_splits(
    sample: Sample, cells: Cells, n_columns: int, rules: Rules, keys: Keys
) -> tuple[Counts, Counts, NDArray[np.bool_]]:
    """The best split of each node: its column or :data:`LEAF`, the bin, and whether any of its columns varies."""
    cells = cells.told_apart(sample)
    lowest, highest = cells.reach(sample)
    varies = np.asarray((highest > lowest + NEAR).reshape(-1, n_columns).any(axis=1))
    best, sound = _first_highest(cells.scores(rules), cells.slot // n_columns)
    column, low, high = cells.column[best], cells.high[best], cells.low[np.minimum(best + 1, len(cells.low) - 1)]
    low, high = np.where(sound, low, 0), np.where(sound, high, 0)
    first_bin = sample.first_bin[column]
    threshold = sample.values[first_bin + low] / np.float64(2) + sample.values[first_bin + high] / np.float64(2)
    return np.where(sound, column, LEAF), last_at_most(sample, column, low, high, threshold), varies


def _drawn_splits(
    sample: Sample, cells: Cells, n_columns: int, rules: Rules, keys: Keys
) -> tuple[Counts, Counts, NDArray[np.bool_]]:
    """The best of one drawn threshold for each column, as :func:`_best_splits`."""
    first, last = cells.ends
    column, low, high = cells.column[first], cells.low[first], cells.high[last]
    lowest, highest = cells.reach(sample)
    varies = np.asarray(highest > lowest + NEAR)
    chance = drawn(np.repeat(keys, n_columns), len(sample.n_bins) + 2 + column) >> np.uint64(11)
    threshold = (highest.astype(np.float64) - lowest) * (chance.astype(np.float64) * 2.0**-53) + lowest
    split = last_at_most(sample, column, low, high, threshold)
    behind = np.add.reduceat(cells.low <= np.repeat(split, last - first + 1), first) + first - 1
    scores = np.full(len(cells.slot), -np.inf)
    scores[behind[varies]] = cells.scores(rules)[behind[varies]]
    best, sound = _first_highest(scores, cells.slot // n_columns)
    found = np.where(sound, split[np.searchsorted(first, best, side="right") - 1], 0)
    return np.where(sound, cells.column[best], LEAF), found, np.asarray(varies.reshape(-1, n_columns).any(axis=1))


def _first_highest(scores: Floats, node: Counts) -> tuple[Counts, NDArray[np.bool_]]:
    """The place of the first of the highest scores of each node ``[nodes]``, and whether it is one at all."""
    first = np.flatnonzero(np.r_[True, node[1:] != node[:-1]])
    top = np.maximum.reduceat(scores, first)
    highest = np.flatnonzero(scores == top[node])
    return highest[np.unique(node[highest], return_index=True)[1]], np.asarray(top > -np.inf)


def last_at_most(sample: Sample, column: Counts, low: Counts, high: Counts, threshold: Floats) -> Counts:
    """The last code of each column from ``low`` up to but not ``high`` whose value is at most the threshold ``[m]``."""
    low, high, first_bin = low.copy(), high.copy(), sample.first_bin[column]
    while (high - low > 1).any():
        middle = (low + high) // 2
        below = sample.values[first_bin + middle] <= threshold
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def purity(left: Floats, right: Floats, criterion: Criterion) -> Floats:
    """How pure splits are, from the counts on both sides ``[..., k]``: more is better ``[...]``.

    The Gini impurity of the two sides together is 1 less, over the total, the sum of squared counts by their total on
    both sides.
    """
    n_left, n_right = left.sum(axis=-1), right.sum(axis=-1)
    if criterion is Criterion.ENTROPY:
        terms = entropy_terms(int((n_left + n_right).max(initial=0.0)))
        parts = [sum(terms[side[..., c].astype(np.int64)] for c in range(side.shape[-1])) for side in (left, right)]
        return np.asarray((parts[0] - terms[n_left.astype(np.int64)]) + (parts[1] - terms[n_right.astype(np.int64)]))
    squares_left, squares_right = (left * left).sum(axis=-1), (right * right).sum(axis=-1)
    if criterion is Criterion.GINI:
        return np.asarray(
            -n_right * (1.0 - squares_right / (n_right * n_right)) - n_left * (1.0 - squares_left / (n_left * n_left))
        )
    # One fraction of whole numbers, both below 2^53 up to 330,000 records: equal scores are equal numbers.
    return np.asarray((squares_left * n_right + squares_right * n_left) / (n_left * n_right))


def entropy_terms(most: int) -> Floats:
    """``c log2 c`` of each count up to the most ``[most + 1]``."""
    counts = np.arange(most + 1, dtype=np.float64)
    return counts * np.log2(np.maximum(counts, 1.0))


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


def _grow_compiled(library: ctypes.CDLL, sample: Sample, weights: Counts, rules: Rules, key: int) -> Tree:
    most = 2 * max(1, int((weights > 0).sum())) - 1
    parts = np.empty((3, most), dtype=np.int32)
    counts = np.empty((most, sample.n_classes), dtype=np.int64)
    into = [pointer(part) for part in parts]
    told = [*grown_on(sample, rules, int(weights.sum())), pointer(weights.astype(np.int32)), ctypes.c_uint64(key)]
    n = call(library.leakgauge_trees_grow, *told, *into, pointer(counts))
    column, split, left = parts[:, :n].astype(np.int64)
    return Tree(column, split, left, counts[:n].copy())


def ends(counts: NDArray[Any], n_records: Any, rules: Rules, depth: int) -> Any:
    """Whether nodes of so many records ``[...]`` with these counts ``[..., k]`` are leaves for certain."""
    total = counts.sum(axis=-1)
    size = n_records if rules.sizes_by_record else total
    return (depth >= rules.max_depth) | (size < rules.min_samples_split) | (counts.max(axis=-1) == total)


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


def compiled() -> ctypes.CDLL | None:
    """The compiled loops of trees, where there are any."""
    library = kernels()
    return library if library is not None and hasattr(library, "leakgauge_trees_ask_counted") else None


def arguments(sample: Sample, rules: Rules, codes: Codes) -> list[Any]:
    """What the compiled loops are told about trees on a sample whose codes lie like this."""
    return [
        *map(ctypes.c_int64, (*codes.shape, sample.n_classes, codes.itemsize)),
        pointer(codes),
        *(pointer(part) for part in (sample.n_bins.astype(np.int32), sample.values, sample.labels.astype(np.int32))),
        pointer(np.array(astuple(rules), dtype=np.int64)),
    ]


def grown_on(sample: Sample, rules: Rules, total: int) -> list[Any]:
    """What they are told about trees that are grown, in which records count ``total`` times together."""
    codes, row_bits, column_bits = sample.by_column
    terms = entropy_terms(total) if rules.criterion is Criterion.ENTROPY else np.zeros(1)
    by_row = np.ascontiguousarray(sample.codes)
    return [*arguments(sample, rules, codes), pointer(by_row), pointer(terms), pointer(row_bits), pointer(column_bits)]


def asked_by_column(asked: Codes) -> list[Any]:
    """What they are told about queries: how many, their codes column by column, and as bits which are above 0."""
    return [ctypes.c_int64(len(asked)), pointer(np.asfortranarray(asked)), pointer(_bits(asked.T > 0))]


def narrowest(n: int) -> type[np.uint8] | type[np.uint16] | type[np.int32]:
    """The type of codes below ``n`` that the compiled loops read fastest."""
    return np.uint8 if n <= 2**8 else np.uint16 if n <= 2**16 else np.int32


def _bits(flags: NDArray[np.bool_]) -> Keys:
    """Flags ``[m, n]`` as words of 64 of them ``[m, words]``, the lowest bit first."""
    packed = np.packbits(np.ascontiguousarray(flags), axis=1, bitorder="little")
    padded = np.zeros((len(flags), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view("<u8").astype(np.uint64)


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
