"""Trees and forests without each record in turn: only what the record decides is grown anew.

Leaving a record out changes the counts of the nodes on its way from the root. Where the best split stays the same
without it, the tree below the other side is the same tree; where another split wins, only the path that the query
takes must be grown. So all queries start together at the root. At each node the counts are taken once; for each query
the record that its model lacks is taken out of them, and the best split found: of each column that depends only on the
record's class and bin. Queries that agree on split and side go on together with the rows of that side, until they are
at a leaf. A model for which the record went another way than the query needs nothing taken out from there on.

In a forest a record counts in about 63 of 100 trees, by the numbers drawn for it; the others do not change without it.

Models that share no random numbers, or are trained on other sets, are grown one by one along their queries.
"""

from __future__ import annotations

import math
from ctypes import c_int64, c_uint64
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Indices
from leakgauge.errors import ModelError
from leakgauge.training.engines.base import Engine, JobOutcome, PreparedJob, Refusal, RefusalKind
from leakgauge.training.job import Job, Randomness
from leakgauge.training.subsets import LeaveOneOut
from leakgauge.training.table import EachModel
from leakgauge.training.trees import (
    LEAF,
    Codes,
    Criterion,
    Growth,
    NodeEntries,
    Sample,
    TreeLearner,
    arguments,
    ask,
    call,
    child_keys,
    column_batches,
    compiled,
    ends,
    log_mean,
    pointer,
    purity,
    root_keys,
    shares,
)

NO_RECORD = -1
NOT_OURS = "{} is not leakgauge's own DecisionTree or RandomForest"


class TreesWithout(Engine):
    """:class:`~leakgauge.training.trees.DecisionTree` and :class:`~leakgauge.training.trees.RandomForest`."""

    name = "trees"
    method = "following each query through the tree that grows without the record"
    tolerance = 0.0
    chunk = 1024

    def prepare(self, job: Job) -> Followed | Refusal:
        """Another learner or sort of job and forests that share no random numbers are refused."""
        if not isinstance(job.learner, TreeLearner):
            return Refusal(RefusalKind.LEARNER, NOT_OURS.format(job.learner.name))
        if not isinstance(job.subsets, LeaveOneOut) and not job.trains_on_all:
            return Refusal(RefusalKind.JOB, "not a leave-one-out job")
        if job.learner.randomised and job.randomness is Randomness.INDEPENDENT:
            return Refusal(
                RefusalKind.JOB,
                ("each forest has random numbers of its own, so no forest can be computed from another"),
            )
        if not len(job.subsets):
            return Refusal(RefusalKind.JOB, "there is no record to leave out")
        try:
            sample = job.learner.growth.sample(job.records)
        except ModelError as error:
            return Refusal(RefusalKind.DATA, str(error))
        return Followed(self, job, job.learner.growth, sample)


class Followed(PreparedJob):
    """A job whose records are sorted into bins.

    Args:
        engine: what does it.
        job: the whole job.
        growth: how trees grow.
        sample: the records as trees see them.
    """

    def __init__(self, engine: Engine, job: Job, growth: Growth, sample: Sample) -> None:
        super().__init__(engine, job)
        self.growth, self.sample = growth, sample

    def answers(self, models: Indices) -> JobOutcome:
        """The answers ``[m, queries, k]``, to the last bit those of the plain loop."""
        job, growth, sample = self.job.part(models), self.growth, self.sample
        items, seed = _items(job, growth, sample), job.seed_of(0)
        total = np.zeros((len(items.removed), sample.n_classes))
        for root, weights in zip(root_keys(seed, growth.n_trees).tolist(), growth.weights(sample, seed), strict=True):
            follow(sample, weights, growth, root, items, total)
        answers = log_mean(total, growth.n_trees).reshape(-1, job.n_queries, sample.n_classes)
        return self._outcome(np.repeat(answers, len(models), axis=0) if job.trains_on_all else answers)


class TreesAsked(Engine):
    """The same learners on any sets of records, each forest with random numbers of its own or all with the same."""

    name = "trees-asked"
    method = "growing each tree along the queries"
    tolerance = 0.0
    trains = True
    chunk = 16

    def prepare(self, job: Job) -> Asked | Refusal:
        """Another learner and records that it cannot be trained on are refused."""
        if not isinstance(job.learner, TreeLearner):
            return Refusal(RefusalKind.LEARNER, NOT_OURS.format(job.learner.name))
        if len(job.records) < 2 or not len(job.subsets):
            return Refusal(RefusalKind.JOB, "there is no tree to grow")
        growth = job.learner.growth
        try:
            sample = growth.sample(job.records)
            asked = sample.codes if isinstance(job.queries, EachModel) else growth.codes(job.queries)
        except ModelError as error:
            return Refusal(RefusalKind.DATA, str(error))
        return Asked(self, job, growth, sample, asked)


class Asked(PreparedJob):
    """A job whose records and queries are sorted into bins.

    Args:
        engine: what does it.
        job: the whole job.
        growth: how trees grow.
        sample: the records as trees see them.
        asked: codes of what all models are asked, or of the records that each names.
    """

    def __init__(self, engine: Engine, job: Job, growth: Growth, sample: Sample, asked: Codes) -> None:
        super().__init__(engine, job)
        self.growth, self.sample, self.asked = growth, sample, asked

    def answers(self, models: Indices) -> JobOutcome:
        """The answers ``[m, queries, k]``, to the last bit those of the plain loop."""
        return self._outcome(np.stack([self._of(model) for model in models.tolist()]))

    def _of(self, model: int) -> Floats:
        """The answers ``[queries, k]`` of one model."""
        job, growth, row = self.job, self.growth, self.job.subsets.row(model)
        asked = self.asked[job.queries.index[model]] if isinstance(job.queries, EachModel) else self.asked
        sample = replace(self.sample, codes=self.sample.codes[row], labels=self.sample.labels[row])
        seed = job.seed_of(model)
        roots = root_keys(seed, growth.n_trees)
        return log_mean(ask(sample, growth.weights(sample, seed), growth.rules, roots, asked), growth.n_trees)


@dataclass(frozen=True)
class Items:
    """What is asked of which model.

    Args:
        removed: the row that the model lacks ``[items]``, or :data:`NO_RECORD`.
        query: a row of ``asked`` ``[items]``.
        asked: codes ``[rows, d]``.
    """

    removed: Indices
    query: Indices
    asked: Codes


def follow(sample: Sample, weights: Indices, growth: Growth, key: int, items: Items, total: Floats) -> None:
    """Add the class shares of the leaf that each query reaches in one tree to ``total [items, k]``."""
    library = compiled()
    if library is None:
        _follow_in_numpy(sample, weights, growth, key, items, total)
        return
    removed, query = items.removed.astype(np.int32), items.query.astype(np.int32)
    known = arguments(sample, growth.rules, np.ascontiguousarray(sample.codes))
    told = [*known, pointer(weights.astype(np.int32)), c_uint64(key), c_int64(len(removed)), pointer(removed)]
    told += [pointer(query), pointer(np.ascontiguousarray(items.asked))]
    call(library.leakgauge_trees_walk, *told, pointer(total))


def _follow_in_numpy(sample: Sample, weights: Indices, growth: Growth, key: int, items: Items, total: Floats) -> None:
    gone = np.where((items.removed != NO_RECORD) & (weights[items.removed] > 0), items.removed, NO_RECORD)
    waiting = [(np.flatnonzero(weights), np.arange(len(gone)), 0, key)]
    while waiting:
        rows, here, depth, at = waiting.pop()
        entries = NodeEntries(sample, rows, weights[rows].astype(np.float64), np.zeros(len(rows), dtype=np.int64))
        counts = np.repeat(entries.class_counts(1), len(here), axis=0)
        lacking = np.flatnonzero(gone[here] != NO_RECORD)
        lost = gone[here[lacking]]
        counts[lacking, sample.labels[lost]] -= weights[lost]
        column, split = np.full(len(here), LEAF), np.zeros(len(here), dtype=np.int64)
        open_ = np.flatnonzero(~ends(counts, len(rows), growth.rules, depth))
        column[open_], split[open_] = _splits_without(entries, growth, weights, gone[here[open_]], at)
        leaf = column == LEAF
        total[here[leaf]] += shares(counts[leaf])
        here, column, split = here[~leaf], column[~leaf], split[~leaf]
        right = items.asked[items.query[here], column] > split
        keys = child_keys(at, len(sample.n_bins)).tolist()
        for (j, bin_, side), members in _groups(np.column_stack([column, split, right])):
            goes, moved = (sample.codes[:, j] > bin_) == side, here[members]
            gone[moved] = np.where(goes[gone[moved]], gone[moved], NO_RECORD)
            waiting.append((rows[goes[rows]], moved, depth + 1, keys[side]))


def _splits_without(
    entries: NodeEntries, growth: Growth, weights: Indices, gone: Indices, key: int
) -> tuple[Indices, Indices]:
    """The best column, or :data:`LEAF`, and bin of a node without each of some records ``[m]``."""
    sample = entries.sample
    column, split = np.full(len(gone), LEAF), np.zeros(len(gone), dtype=np.int64)
    sorts = np.where(gone[:, None] == NO_RECORD, 0, np.column_stack([sample.labels[gone], weights[gone]]))
    undecided = np.arange(len(gone))
    for columns in column_batches(np.array([key], dtype=np.uint64), len(sample.n_bins), growth.rules.max_features):
        if not len(undecided):
            break
        counts = _counts(entries, columns[0])
        for (label, lost), members in _groups(sorts[undecided]):
            chosen = undecided[members]
            codes = sample.codes[gone[chosen][:, None], columns[0]]
            place, split[chosen] = best_splits_without(counts, codes, label, lost, growth.rules.min_samples_leaf)
            column[chosen] = np.where(place == LEAF, LEAF, columns[0, place])
        undecided = undecided[column[undecided] == LEAF]
    return column, split


def _counts(entries: NodeEntries, columns: Indices) -> Floats:
    """How often each class counts in each bin of some columns ``[c]`` of one node: ``[c, bins, k]``."""
    sample = entries.sample
    shape = len(columns), int(sample.n_bins[columns].max()), sample.n_classes
    cells = np.arange(len(columns)) * shape[1] + sample.codes[entries.row[:, None], columns]
    cells = cells * shape[2] + sample.labels[entries.row, None]
    counted = np.bincount(cells.ravel(), np.repeat(entries.weight, len(columns)), math.prod(shape))
    return np.asarray(counted, dtype=np.float64).reshape(shape)


def best_splits_without(
    counts: Floats, codes: Codes, label: int, lost: int, min_samples_leaf: int
) -> tuple[Indices, Indices]:
    """The best split of one node without each of several records of the same class that count equally often.

    Args:
        counts: how often each class counts in each bin of each column ``[c, bins, k]``.
        codes: of the records in these columns ``[m, c]``.
        label: their class.
        lost: how often each of them counts; 0 for the best split of all records.
        min_samples_leaf: what must be left on either side.

    Returns:
        The place of the column ``[m]``, :data:`~leakgauge.training.trees.LEAF` where nothing can be split, and the
        bin ``[m]``.
    """
    left = counts.cumsum(axis=-2)
    right = left[..., -1:, :] - left
    own = np.zeros(counts.shape[-1])
    own[label] = lost
    if_left, if_right = _scores(left - own, right, min_samples_leaf), _scores(left, right - own, min_samples_leaf)
    # A record is on the right of a split below its code, and on the left of the others.
    best = np.maximum.accumulate(if_left[:, ::-1], axis=1)[:, ::-1].copy()
    best[:, 1:] = np.maximum(best[:, 1:], np.maximum.accumulate(if_right, axis=1)[:, :-1])
    of_column = best[np.arange(len(counts)), codes]
    place = np.argmax(of_column, axis=1)
    record, bins = np.arange(len(codes)), np.arange(counts.shape[1])
    code = codes[record, place][:, None]
    split = np.argmax(np.where(code <= bins, if_left[place], if_right[place]), axis=1)
    filled = counts.sum(axis=2)[place] > lost * (code == bins)
    following = np.argmax(filled & (bins > split[:, None]), axis=1)  # all in between part the records in the same way
    return np.where(of_column[record, place] > -np.inf, place, LEAF), (split + following) // 2


def _scores(left: Floats, right: Floats, min_samples_leaf: int) -> Floats:
    """How pure splits are ``[...]``, from the counts on both sides ``[..., k]``; ``-inf`` where a side is too small."""
    sound = np.minimum(left.sum(axis=-1), right.sum(axis=-1)) >= min_samples_leaf
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sound, purity(left, right, Criterion.FRACTION), -np.inf)


def _groups(rows: NDArray[Any]) -> list[tuple[list[int], Indices]]:
    """The different rows of a matrix of whole numbers, each with the places where it stands."""
    if not len(rows):
        return []
    order = np.lexsort(rows.T)
    ordered = rows[order]
    first = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)])
    return list(zip(ordered[first].tolist(), np.split(order, first[1:]), strict=True))


def _items(job: Job, growth: Growth, sample: Sample) -> Items:
    if isinstance(job.queries, EachModel):
        query, asked = job.queries.index.astype(np.int64), sample.codes
    else:
        n_models = 1 if job.trains_on_all else len(job.subsets)
        asked = growth.codes(job.queries)
        query = np.repeat(np.arange(len(asked))[None, :], n_models, axis=0)
    removed = np.full(len(query), NO_RECORD)
    if isinstance(job.subsets, LeaveOneOut):
        removed = sample.representatives[job.subsets.removed]
    return Items(np.repeat(removed, query.shape[1]), query.ravel(), asked)
