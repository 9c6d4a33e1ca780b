"""Many of scikit-learn's forests at once: its rules, and random numbers that two training sets share.

Forests of scikit-learn draw a bootstrap that depends on the number of records, and break ties by a stream that runs
through all nodes: without one record everything is drawn anew. Here the same forests are grown, equal in distribution,
with random numbers that hang on what they are about, as in :mod:`leakgauge.training.trees`:

* each draw of a tree's bootstrap reads records of the pool from a stream of its own and takes the first one that is
  in the training set, which is uniform there. Without a record those draws change that held it, and no others; and one
  less is made, where as many are made as there are records.
* which columns a node looks at, and a drawn threshold, depend on the seed, the tree and the way to the node.

Regression trees are grown by the compiled loops alone, and split where squared errors become least.

The rules (:class:`~leakgauge.training.trees.Rules`) are those of scikit-learn 1.9: values in single precision, those
within 1e-7 taken for equal; columns in random order, constant ones counted as looked at, and further ones only until
one has two values; of equally good splits the first column in that order; thresholds halfway between values that follow
each other in the node; sizes of leaves in records, however often they were drawn.

Of each tree only the nodes on the way of the queries are grown: for a model that is asked about one record that is a
small part.
"""

from __future__ import annotations

import ctypes
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from math import ceil
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.errors import ModelError
from leakgauge.models.access import checked_values
from leakgauge.models.sklearn import name_of
from leakgauge.training.engines.base import Engine, JobOutcome, PreparedJob, Refusal, RefusalKind
from leakgauge.training.engines.behind import behind, ends_in, with_trained
from leakgauge.training.engines.stateless import given_whole
from leakgauge.training.job import Job, Randomness
from leakgauge.training.native import kernels
from leakgauge.training.table import EachModel
from leakgauge.training.trees import (
    NO_LIMIT,
    Codes,
    Counts,
    Criterion,
    Keys,
    Ranked,
    Rules,
    Sample,
    Tree,
    added,
    asked_by_column,
    call,
    compiled,
    drawn,
    grown,
    grown_on,
    log_mean,
    pointer,
    shares_reached,
)

CRITERIA = {"gini": Criterion.GINI, "entropy": Criterion.ENTROPY, "log_loss": Criterion.ENTROPY}
OF_VALUES = {"squared_error": Criterion.SQUARED_ERROR}

PLAIN = {
    "min_weight_fraction_leaf": 0.0,
    "max_leaf_nodes": None,
    "min_impurity_decrease": 0.0,
    "ccp_alpha": 0.0,
    "monotonic_cst": None,
    "oob_score": False,
    "warm_start": False,
}
"""Settings that are supported as they are by default only."""

COUNTED = (
    *("min_samples_leaf", "min_samples_split", "max_depth", "max_features"),
    *("n_estimators", "max_iter", "max_leaf_nodes"),
)
"""Settings that may be whole numbers; twice a leaf is the smallest node that is split."""

TOO_LARGE = "a number is too large for single precision"

FARTHEST = 1e5
"""Times how far values are apart, beyond which from 0 what splits gain is lost in the rounding of scikit-learn."""

FAR = "values are so far from 0 that rounding decides where trees end"

CERTAIN = 2**32
"""The chance of what is accepted for certain."""


class Forests(Engine):
    """``RandomForestClassifier``, ``ExtraTreesClassifier`` and those of regression, on any subsets.

    They stand alone, or at the end of a pipeline, whose steps that learn from the data are fitted for each model.

    Forests of the same seed share their random numbers. They are those of the plain loop in distribution, not in the
    numbers drawn: no model is the one that scikit-learn trains with that seed. Of splits of values that are equally
    good rounding takes one, here and there, and not quite as often the same.
    """

    name = "forests"
    method = "growing scikit-learn's forests along the queries, equal in distribution, with common random numbers"
    tolerance = 0.0
    trains = True
    redraws = True
    takes_missing = True
    chunk = 16

    def prepare(self, job: Job) -> ManyForests | Refusal:
        """Another learner, other settings, missing values and those beyond single precision: refused."""
        from sklearn import ensemble

        classifiers = (ensemble.RandomForestClassifier, ensemble.ExtraTreesClassifier)
        kinds = (*classifiers, ensemble.RandomForestRegressor, ensemble.ExtraTreesRegressor)
        case = given_whole(job, kinds)
        if isinstance(case, Refusal):
            found = ends_in(job, kinds, case)
            if isinstance(found, Refusal):
                return found
            return _why_not(job, found[0]) or ManyForestsBehind(self, job, found[0])
        if reason := _why_not(job, case.estimator):
            return reason
        ranked = Ranked.of(case.matrix, case.matrix[:0] if isinstance(job.queries, EachModel) else case.queries)
        if ranked is None:
            return Refusal(RefusalKind.DATA, TOO_LARGE)
        classes, labels = told_apart(job)
        sample = Sample(ranked.codes, labels, ranked.n_bins, len(classes), ranked.values)
        return ManyForests(self, job, case.estimator, sample, ranked.asked)


def _why_not(job: Job, estimator: Any) -> Refusal | None:
    """Why forests of these settings cannot be grown."""
    if not len(job.subsets):
        return Refusal(RefusalKind.JOB, "there is no forest to grow")
    schema = job.records.schema
    if not schema.classes and regression() is None:
        return Refusal(RefusalKind.MACHINE, "without the compiled loops scikit-learn is faster")
    if job.randomness is Randomness.INDEPENDENT and compiled() is None:
        why = "without the compiled loops, forests that share no random numbers are grown faster by scikit-learn"
        return Refusal(RefusalKind.MACHINE, why)
    if not schema.classes and far_from_0(job.records.labels):
        return Refusal(RefusalKind.DATA, FAR)
    if reason := _unsupported(estimator, schema.decode_labels(np.arange(len(schema.classes)))):
        return Refusal(RefusalKind.SETTING, reason)
    return None


def far_from_0(values: NDArray[Any]) -> bool:
    """Whether values ``[n]`` are so far from 0, for how near they are to each other, that rounding ends trees.

    Near to each other are all of them, or most of those next to each other: of a few clusters, those of each.
    """
    different = np.unique(values)
    apart = np.median(np.diff(different)) * len(different) if len(different) > 1 else 0.0
    return bool(np.abs(values).max() > FARTHEST * min(values.std(), apart))


class ManyForests(PreparedJob):
    """A job whose values are ranked.

    Equal records stand for each other: of those of a kind, the training set counts as having the first ones.

    Args:
        engine: what does it.
        job: the whole job.
        estimator: the forest's settings.
        sample: the records as trees see them.
        asked: codes of what all models are asked ``[queries, d]``; none where each is asked about records of its own.

    Attributes:
        classes, labels: see :func:`told_apart`.
        order: the records, those of a kind one after the other ``[n]``.
        kind: of each record ``[n]``.
    """

    def __init__(self, engine: Engine, job: Job, estimator: Any, sample: Sample, asked: Codes) -> None:
        super().__init__(engine, job)
        self.sample, self.asked = sample, np.asfortranarray(asked)
        self._sort(estimator, np.column_stack([sample.codes, sample.labels.astype(np.int32)]).astype(">i4"))

    def _sort(self, estimator: Any, content: NDArray[Any]) -> None:
        """Find which records have the same content ``[n, ...]``; its bytes say in which order kinds stand."""
        self.estimator, (self.classes, self.labels) = estimator, told_apart(self.job)
        content = np.ascontiguousarray(content)
        self.kind = np.unique(content.view(f"V{content.itemsize * content.shape[1]}"), return_inverse=True)[1].ravel()
        self.order = np.argsort(self.kind, kind="stable")

    def answers(self, models: Indices) -> JobOutcome:
        """The answers ``[m, queries, k]``; any training set can be trained on."""
        job = self.job.part(models)
        table = np.empty((len(models), job.n_queries, job.n_answers))
        open_ = np.zeros(len(models), dtype=np.bool_)
        for model in range(len(models)):
            row = job.subsets.row(model)
            members = self.members(row)
            try:
                table[model] = self._answered(job, model, row, members, *self._seen(job, model, members))
            except ModelError:
                table[model], open_[model] = np.nan, True
        return with_trained(self.job, models, self._outcome(table), open_)

    def _seen(self, job: Job, model: int, members: Flags) -> tuple[Sample, Codes]:
        """The records in the order of kinds, as the trees of a model see them, and what it is asked."""
        order, queries = self.order, job.queries
        sample = replace(self.sample, codes=self.sample.codes[order], labels=self.sample.labels[order])
        return sample, self.sample.codes[queries.index[model]] if isinstance(queries, EachModel) else self.asked

    def _answered(self, job: Job, model: int, row: Flags, members: Flags, sample: Sample, asked: Codes) -> Floats:
        """What a model answers ``[queries, k]``."""
        of_values, own = not job.records.schema.classes, self.labels[row]
        if of_values and far_from_0(self.classes[own]):
            raise ModelError(f"{job.learner.name}: {FAR}")
        weights = np.ones(len(self.classes)) if of_values else class_weights(self.estimator, self.classes, own)
        weights[np.bincount(own, minlength=len(weights)) == 0] = 0.0  # of whom none can be drawn
        forest = Forest.of(self.estimator, weights[own], len(sample.n_bins), job.seed_of(model))
        accepted = acceptance(weights)[sample.labels] * members
        if not of_values:
            return log_mean(forest.ask(sample, accepted, asked), len(forest.trees))
        total = forest.ask_values(sample, self.classes[sample.labels].astype(np.float64), accepted, asked)
        return checked_values(total / len(forest.trees), len(asked), name_of(self.estimator))[:, None]

    def members(self, row: Flags) -> Flags:
        """Who is in a training set ``[n]``, in the order of kinds: of equal records always the first ones."""
        counts, sizes = np.bincount(self.kind, row), np.bincount(self.kind)
        place = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.asarray(place < np.repeat(counts, sizes))


class ManyForestsBehind(ManyForests):
    """A job whose earlier steps learn from the data: they are fitted for each model, as it is done anyway.

    Args:
        engine: what does it.
        job: the whole job.
        estimator: the forest's settings.
    """

    def __init__(self, engine: Engine, job: Job, estimator: Any) -> None:
        PreparedJob.__init__(self, engine, job)
        columns = (np.unique(column, return_inverse=True)[1].ravel() for column in job.records.features.T)
        self._sort(estimator, np.column_stack([*columns, told_apart(job)[1]]).astype(">i4"))

    def _seen(self, job: Job, model: int, members: Flags) -> tuple[Sample, Codes]:
        """See :meth:`ManyForests._seen`; of records that are not in the training set nothing is known."""
        row = job.subsets.row(model)
        rows, own = np.flatnonzero(row), self.order[row[self.order]]
        matrix, queries = behind(job, rows, job.queries_of(model), job.seed_of(model))
        ranked = Ranked.of(matrix, queries)
        if ranked is None:
            raise ModelError(f"{job.learner.name}: {TOO_LARGE}, or missing")
        codes = np.zeros((len(members), matrix.shape[1]), dtype=ranked.codes.dtype)
        codes[members] = ranked.codes[np.searchsorted(rows, own)]
        sample = Sample(codes, self.labels[self.order], ranked.n_bins, len(self.classes), ranked.values)
        return sample, ranked.asked


def told_apart(job: Job) -> tuple[NDArray[Any], Counts]:
    """The original label of each class, or each value that records have ``[k]``; and the place of each among these."""
    schema, labels = job.records.schema, job.records.labels
    if schema.classes:
        return schema.decode_labels(np.arange(len(schema.classes))), labels.astype(np.int64)
    values, places = np.unique(labels, return_inverse=True)
    return values, places.astype(np.int64)


@dataclass(frozen=True)
class Forest:
    """A forest of scikit-learn on so many records.

    Args:
        rules: how nodes are split.
        n_draws: records drawn for each tree; 0 where each has all that have a chance.
        trees: the key of each.
    """

    rules: Rules
    n_draws: int
    trees: NDArray[np.uint64]

    @classmethod
    def of(cls, estimator: Any, weights: Floats, d: int, seed: int) -> Forest:
        """The forest that an estimator is on records with these weights ``[n]`` and ``d`` columns."""
        leaf, split = in_records(estimator, len(weights))
        rules = Rules(
            max_features=columns_looked_at(estimator.max_features, d),
            max_depth=NO_LIMIT if estimator.max_depth is None else int(estimator.max_depth),
            min_samples_split=split,
            min_samples_leaf=leaf,
            criterion={**CRITERIA, **OF_VALUES}[estimator.criterion],
            looks_on=False,
            drawn_ties=True,
            sizes_by_record=True,
            drawn_thresholds=type(estimator).__name__.startswith("ExtraTrees"),
        )
        keys = drawn(drawn(seed % 2**64, 0), np.arange(estimator.n_estimators))
        return cls(rules, _draws(estimator, weights), keys)

    def grow(self, sample: Sample, accepted: Keys, asked: Codes | None = None) -> list[Tree]:
        """All trees, at least where queries ``[q, d]`` go, from records accepted with these chances ``[n]``."""
        weights = (self.bag(accepted, int(key)) for key in self.trees)
        return grown(sample, weights, self.rules, drawn(self.trees, 0).tolist(), asked)

    def ask(self, sample: Sample, accepted: Keys, asked: Codes) -> Floats:
        """The shares of the classes that queries ``[m, d]`` reach, added up over trees ``[m, k]``.

        Args:
            sample: the pool.
            accepted: the chance of each of its records ``[n]``, see :func:`acceptance`; 0 for others than members.
            asked: the queries.
        """
        library = compiled()
        if library is None:
            return added(shares_reached(self.grow(sample, accepted, asked), asked))
        total = np.zeros((len(asked), sample.n_classes))
        count = self.n_draws or int(np.count_nonzero(accepted))
        call(library.leakgauge_trees_ask, *grown_on(sample, self.rules, count), *self._told(accepted, asked, total))
        return total

    def ask_values(self, sample: Sample, values: Floats, accepted: Keys, asked: Codes) -> Floats:
        """The means of the leaves that queries reach, added up over trees ``[m]``.

        Args:
            sample: the pool.
            values: of its records, to be predicted ``[n]``.
            accepted: see :meth:`ask`.
            asked: the queries ``[m, d]``.
        """
        total = np.zeros(len(asked))
        told = [*grown_on(sample, self.rules, 0), pointer(values), *self._told(accepted, asked, total)]
        call(regression().leakgauge_regression_ask, *told)  # type: ignore[union-attr]
        return total

    def _told(self, accepted: Keys, asked: Codes, total: Floats) -> list[Any]:
        """What the compiled loops are told about a forest and its queries."""
        counts = map(ctypes.c_int64, (self.n_draws, len(self.trees)))
        return [pointer(accepted), *counts, pointer(self.trees), *asked_by_column(asked), pointer(total)]

    def bag(self, accepted: Keys, key: int) -> Counts:
        """How often each record of the pool counts in the tree of a key, int64 ``[n]``."""
        if not self.n_draws:
            return (accepted > 0).astype(np.int64)
        streams, open_ = drawn(drawn(key, 1), np.arange(self.n_draws)), np.arange(self.n_draws)
        counts, place, n = np.zeros(len(accepted), dtype=np.int64), 0, np.uint64(len(accepted))
        while len(open_):
            chance = drawn(streams[open_], place)
            rows = (((chance >> np.uint64(32)) * n) >> np.uint64(32)).astype(np.int64)
            taken = (chance & np.uint64(CERTAIN - 1)) < accepted[rows]
            counts += np.bincount(rows[taken], minlength=len(accepted))
            open_, place = open_[~taken], place + 1
        return counts


def regression() -> ctypes.CDLL | None:
    """The compiled loops of regression trees, where there are any."""
    library = kernels()
    return library if library is not None and hasattr(library, "leakgauge_regression_ask") else None


def class_weights(estimator: Any, classes: NDArray[Any], labels: Counts) -> Floats:
    """The weight ``[k]`` that scikit-learn gives each class in the bootstrap of records with these labels ``[n]``."""
    wanted, counts = estimator.class_weight, np.bincount(labels, minlength=len(classes))
    if wanted == "balanced":
        return np.where(counts > 0, len(labels) / (np.count_nonzero(counts) * np.maximum(counts, 1)), 1.0)
    return np.array([1.0 if wanted is None else float(wanted[label]) for label in classes.tolist()])


def acceptance(weights: Floats) -> Keys:
    """With what chance draws are accepted so that they are in proportion to weights ``[k]``, in units of 2^-32."""
    return np.asarray(np.ceil(weights / weights.max() * CERTAIN), dtype=np.uint64)


def in_records(estimator: Any, n: int) -> tuple[int, int]:
    """The smallest leaf, and the smallest node that is split, of trees on ``n`` records."""
    leaf, split = (
        int(size) if isinstance(size, Integral) else ceil(size * n)
        for size in (estimator.min_samples_leaf, estimator.min_samples_split)
    )
    return leaf, max(2, split, 2 * leaf)


def columns_looked_at(max_features: Any, d: int) -> int:
    """How many of ``d`` columns a node looks at."""
    if max_features is None:
        return d
    if max_features == "sqrt":
        return max(1, int(np.sqrt(d)))
    if max_features == "log2":
        return max(1, int(np.log2(d)))
    return int(max_features) if isinstance(max_features, Integral) else max(1, int(max_features * d))


def _draws(estimator: Any, weights: Floats) -> int:
    """How many records are drawn from those with these weights ``[n]`` for each tree; 0 without a bootstrap."""
    if not estimator.bootstrap:
        return 0
    share = estimator.max_samples
    if share is None or isinstance(share, Integral):
        return len(weights) if share is None else int(share)
    return max(int(share * weights.sum()), 1)


def refused_setting(estimator: Any, plain: Mapping[str, Any], choice: str, choices: Container[Any]) -> str | None:
    """A setting that is not plain, not among the choices, or refused by scikit-learn; ``None`` if there is none."""
    name = name_of(estimator)
    for setting, value in plain.items():
        own = getattr(estimator, setting, value)
        if own is not None if value is None else own != value:
            return f"{name}({setting}=...) is not supported"
    if getattr(estimator, choice) not in choices:
        return f"{name}({choice}={getattr(estimator, choice)!r}) is not supported"
    try:
        estimator._validate_params()
    except ValueError as error:
        return f"{name} refuses its settings ({type(error).__name__})"
    for setting in COUNTED:
        value = getattr(estimator, setting, None)
        if isinstance(value, Integral) and 2 * int(value) > np.iinfo(np.int64).max:
            return f"{name}({setting}=...) is too large a number"
    return None


def _unsupported(estimator: Any, classes: NDArray[Any]) -> str | None:
    """A setting that is not supported, or that scikit-learn refuses; ``None`` if there is none."""
    name = name_of(estimator)
    if reason := refused_setting(estimator, PLAIN, "criterion", CRITERIA if len(classes) else OF_VALUES):
        return reason
    if len(classes) and estimator.class_weight is not None and not _weighs_draws(estimator, classes):
        return f"{name}(class_weight=...) must be 'balanced' or give every class a number above 0, with a bootstrap"
    if not estimator.bootstrap and estimator.max_samples is not None:
        return f"{name}(bootstrap=False) draws no samples, so that max_samples must be None"
    return None


def _weighs_draws(estimator: Any, classes: NDArray[Any]) -> bool:
    """Whether the weights of classes are in the bootstrap alone, and all above 0."""
    wanted = estimator.class_weight
    every = isinstance(wanted, dict) and all(0 < wanted.get(label, 0) < np.inf for label in classes.tolist())
    return bool(estimator.bootstrap) and (wanted == "balanced" or every)
