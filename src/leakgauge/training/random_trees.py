"""Learners that count labels within cells fixed beforehand: Bayes inference by a table, and random decision trees.

Where the cells do not depend on the data, a record moves the counts of its own cells only. That is what makes these
learners stable: how far a record moves the answer about itself bounds how far it moves any other
(Long et al. 2017, section 6.3).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.checking import check_fields, flag, number, whole
from leakgauge.errors import ConfigError, ModelError
from leakgauge.models import ProbabilityAccess
from leakgauge.records import Records
from leakgauge.training.learners import Fitted, Learner
from leakgauge.training.trees import Thresholds

MAX_DEPTH = 20
"""Levels of a tree at the most: it has ``2 ** depth`` leaves, whether anyone is in them or not."""


@dataclass(frozen=True)
class ConditionalFrequencies(Learner):
    """Bayes inference: the share of each label among the training records with exactly these features.

    Args:
        unseen: what is answered about features that no training record has: ``unknown`` (NaN) or ``uniform``.
    """

    unseen: Literal["unknown", "uniform"] = "unknown"

    def __post_init__(self) -> None:
        if self.unseen not in ("unknown", "uniform"):
            raise ConfigError(f"unseen must be 'unknown' or 'uniform', got {self.unseen!r}")

    @property
    def name(self) -> str:
        """What it is."""
        return "Bayes inference"

    @property
    def randomised(self) -> bool:
        """No."""
        return False

    def fit(self, records: Records, *, seed: int | None = None) -> Fitted:
        """Count.

        Raises:
            ModelError: the label is numeric.
        """
        n_classes = _classes_of(records)
        cells: dict[bytes, Floats] = {}
        for row, label in zip(_rows(records.features), records.labels, strict=True):
            cells.setdefault(row, np.zeros(n_classes))[label] += 1.0
        return Fitted(FrequencyTable(cells, n_classes, self.unseen == "uniform"), converged=True)

    def fingerprint(self) -> str:
        """Its one setting."""
        return f"conditional-frequencies-{self.unseen}"


@dataclass(frozen=True)
class FrequencyTable(ProbabilityAccess):
    """What Bayes inference has learned.

    Args:
        cells: how often each label was seen ``[k]`` with the features of each key.
        n_classes: k.
        uniform: whether the answer about features never seen is uniform, instead of NaN.
    """

    cells: dict[bytes, Floats]
    n_classes: int
    uniform: bool
    may_not_know: ClassVar[bool] = True

    def log_probabilities(self, X: Floats) -> Floats:
        """Logs of conditional frequencies ``[m, k]``."""
        unseen = np.full(self.n_classes, 1.0 if self.uniform else np.nan)
        counts = np.array([self.cells.get(row, unseen) for row in _rows(X)]).reshape(len(X), self.n_classes)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(counts / counts.sum(axis=1, keepdims=True)))


@dataclass(frozen=True)
class RandomTrees(Learner):
    """Random decision trees (Fan et al. 2003): columns and thresholds are drawn blindly, records are only counted.

    The trees' log-probabilities are averaged: the answer is the geometric mean of their smoothed frequencies.

    Args:
        thresholds: for each column where it may be split, see :func:`leakgauge.training.public_thresholds`.
        n_trees: how many trees.
        depth: levels of each tree, from 0 to 20.
        alpha: added to each label's count in each leaf; above 0 unless the mean is released as it is.
        normalised: whether the geometric mean is made to sum to 1. Only without that is the algorithm known to be
            stable (:data:`leakgauge.theory.GEOMETRIC_TREES_DELTA`).
    """

    thresholds: Thresholds
    n_trees: int = 10
    depth: int = 5
    alpha: float = 1.0
    normalised: bool = True

    def __post_init__(self) -> None:
        check_fields(self, n_trees=whole(1), depth=whole(0), alpha=number(least=0), normalised=flag)
        if self.depth > MAX_DEPTH:
            raise ConfigError(f"depth must be in [0, {MAX_DEPTH}], got {self.depth}")
        if self.normalised and self.alpha == 0:
            raise ConfigError(
                f"alpha must be finite and above 0, got {self.alpha}; 0 is allowed with normalised=False only, since "
                "the geometric mean may then be 0 for all labels"
            )

    @property
    def name(self) -> str:
        """What it is, and how many."""
        return f"RandomTrees({self.n_trees})"

    @property
    def randomised(self) -> bool:
        """The seed draws the structure."""
        return True

    def fit(self, records: Records, *, seed: int | None = None) -> Fitted:
        """Draw the trees from the seed, then count the records in their leaves.

        Raises:
            ModelError: the label is numeric, or the thresholds are for other columns.
        """
        n_classes = _classes_of(records)
        if records.features.shape[1] != len(self.thresholds):
            raise ModelError(
                f"the thresholds are for {len(self.thresholds)} columns, but the records have "
                f"{records.features.shape[1]}; take them from records like these (public_thresholds)"
            )
        structure = Structure.drawn(self.thresholds, self.n_trees, self.depth, np.random.default_rng(seed or 0))
        counts = np.full((self.n_trees, 2**self.depth, n_classes), self.alpha)
        labels = np.asarray(records.labels, dtype=np.int64)
        for tree, leaves in enumerate(structure.leaves(records.features)):
            np.add.at(counts[tree], (leaves, labels), 1.0)
        return Fitted(GeometricMean(structure, counts, self.normalised), converged=True)

    def fingerprint(self) -> str:
        """Hash of all settings."""
        return f"random-trees-{hashlib.sha256(repr(self).encode()).hexdigest()}"


@dataclass(frozen=True)
class Structure:
    """Full binary trees in heap order: the children of node i are ``2 i + 1`` (at most the bound) and ``2 i + 2``.

    Args:
        columns: at which column each inner node splits ``[trees, 2 ** depth - 1]``.
        bounds: what goes to the left ``[trees, 2 ** depth - 1]``.
        depth: levels.
    """

    columns: Indices
    bounds: Floats
    depth: int

    @classmethod
    def drawn(cls, thresholds: Thresholds, n_trees: int, depth: int, rng: np.random.Generator) -> Structure:
        """Columns that can be split are equally likely at each node, and so are a column's thresholds."""
        shape = (n_trees, 2**depth - 1)
        divisible = np.flatnonzero([len(bounds) > 0 for bounds in thresholds])
        if not len(divisible):
            return cls(np.zeros(shape, dtype=np.int64), np.full(shape, np.inf), depth)
        columns, uniform, bounds = rng.choice(divisible, shape), rng.random(shape), np.empty(shape)
        for j in divisible:
            at = columns == j
            bounds[at] = np.asarray(thresholds[j])[(uniform[at] * len(thresholds[j])).astype(np.int64)]
        return cls(columns, bounds, depth)

    def leaves(self, X: Floats) -> Indices:
        """The leaf of each row in each tree ``[trees, m]``, from 0."""
        node = np.zeros((len(self.columns), len(X)), dtype=np.int64)
        tree, row = np.ogrid[: len(self.columns), : len(X)]
        for _ in range(self.depth):
            right = X[row, self.columns[tree, node]] > self.bounds[tree, node]
            node = 2 * node + 1 + right
        return np.asarray(node - (2**self.depth - 1))


@dataclass(frozen=True)
class GeometricMean(ProbabilityAccess):
    """Random trees with counts in their leaves.

    Args:
        structure: where the leaves are.
        counts: smoothed, ``[trees, leaves, k]``.
        normalised: whether answers are made to sum to 1.
    """

    structure: Structure
    counts: Floats
    normalised: bool

    def log_probabilities(self, X: Floats) -> Floats:
        """Means of the trees' log frequencies ``[m, k]``; a leaf without anyone is uniform."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(self.counts / self.counts.sum(axis=2, keepdims=True))
        logs[np.isnan(logs)] = -np.log(self.counts.shape[2])
        leaves = self.structure.leaves(X)
        mean: Floats = logs[np.arange(len(logs))[:, None], leaves].mean(axis=0)
        return mean - np.logaddexp.reduce(mean, axis=1, keepdims=True) if self.normalised else mean


def _classes_of(records: Records) -> int:
    if not records.schema.classes:
        raise ModelError("frequencies of labels need classes, but the label of these records is numeric")
    return len(records.schema.classes)


def _rows(X: Floats) -> list[bytes]:
    """A key for each row; 0.0 and -0.0 are one number."""
    return [row.tobytes() for row in np.ascontiguousarray(X, dtype=np.float64) + 0.0]
