"""Models trained on drawn sets, with or without the poisoned records, and what they answer about label 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.errors import ModelError, user_code
from leakgauge.escaping import shapes
from leakgauge.models import AnswerKind, LabelAccess, Model, ProbabilityAccess, labels_of
from leakgauge.properties.population import Side
from leakgauge.records import Records
from leakgauge.streams import seed_of
from leakgauge.training import (
    HERE,
    DenseSubsets,
    Execution,
    Job,
    Learner,
    PredictionTable,
    Randomness,
    plan,
)
from leakgauge.training.curating import Curating

MAX_POOL_RECORDS = 2**17
"""Records in one pool: of larger sides only those that some models need, which are then trained in groups."""

MAX_CACHED_PREDICTIONS = 2**24
"""Answers kept at a time: 128 MB."""

LOG_ODDS_OF_CERTAINTY = 30.0
"""Log-odds beyond which a probability is taken for 0 or 1."""


@dataclass(frozen=True, eq=False)
class Trainer:
    """How models are trained on one side's records, and on the poisoned ones.

    Args:
        learner: the algorithm.
        side: whose records the sets are made of.
        poisoned: records that may be in every training set besides.
        execution: where and how models are trained.
    """

    learner: Learner
    side: Side
    poisoned: Records
    execution: Execution = HERE

    __repr__ = shapes

    def responses(
        self, sets: Indices, queries: Floats, *, kind: AnswerKind, seed: int, poisoned: bool = True
    ) -> Floats:
        """What models answer about label 1, ``[models, queries]``, as :func:`read` puts it.

        Args:
            sets: rows of each training set, int ``[models, size]``.
            queries: encoded features ``[queries, d]``.
            kind: labels, or log-odds of probabilities.
            seed: of the learner.
            poisoned: whether the poisoned records are in the training sets.

        Raises:
            ModelError: a model could not be trained.
        """
        return np.concatenate(list(self.groups(sets, queries, kind=kind, seed=seed, poisoned=poisoned)))

    def groups(
        self, sets: Indices, queries: Floats, *, kind: AnswerKind, seed: int, poisoned: bool
    ) -> Iterator[Floats]:
        """The same for some of the models after the other."""
        n_classes, run = len(self.side.records.schema.classes), self.execution.run
        most = max(1, MAX_CACHED_PREDICTIONS // max(1, len(queries) * n_classes))
        for start, stop in _cuts(sets, most, len(self.side.records)):
            pool, members = self._pool(sets[start:stop], poisoned)
            job = Job(
                self.learner, pool, DenseSubsets(members), queries,
                seed_of(seed, start), Randomness.INDEPENDENT, self.execution.device,
            ).with_known_seed()  # fmt: skip
            while isinstance(job.learner, Curating):
                job = _curated(job.learner, job)
            execution = replace(self.execution, run=run and run / f"{seed}-{start}", progress=None)
            pool, table = job.records, plan(job).train(execution)
            yield _read_table(table, pool, self.side.positive, kind)

    def _pool(self, sets: Indices, poisoned: bool) -> tuple[Records, Flags]:
        """Records with the poisoned ones last, and which models are trained on which, bool ``[models, pool]``.

        As long as all fit, the pool is the same whatever the sets: what engines find out about it is found once.
        They reckon with training sets that are like the pool, so poisoned records are as frequent in it as they are in
        a training set, though only one copy of each is ever used.
        """
        records, places = self.side.records, sets
        if len(records) > MAX_POOL_RECORDS:
            rows, flat = np.unique(sets, return_inverse=True)
            records, places = records[rows], flat.reshape(sets.shape)
        n, n_poisoned = len(records), len(self.poisoned) if poisoned else 0
        copies = max(1, round(n / sets.shape[1])) if poisoned else 0
        members = np.zeros((len(sets), n + copies * n_poisoned), dtype=bool)
        np.put_along_axis(members, places, True, axis=1)
        members[:, n : n + n_poisoned] = True
        return _with(records, self.poisoned, copies), members


def read(answers: Floats, positive: int, kind: AnswerKind) -> Floats:
    """What log-probabilities ``[..., k]`` say about label 1.

    Args:
        answers: of the models.
        positive: code of the class that counts as label 1.
        kind: labels or probabilities.

    Returns:
        ``[...]``: for labels 1.0 where the class is the likeliest (the first of equals) and 0.0 elsewhere; for
        probabilities the log-odds of the class against all others, cut at -30 and 30.
    """
    if kind is AnswerKind.LABELS:
        return np.asarray(np.argmax(answers, axis=-1) == positive, dtype=np.float64)
    with np.errstate(divide="ignore"):
        others = np.log(np.exp(np.delete(answers, positive, axis=-1)).sum(axis=-1))
    with np.errstate(invalid="ignore"):
        odds: Floats = np.clip(answers[..., positive] - others, -LOG_ODDS_OF_CERTAINTY, LOG_ODDS_OF_CERTAINTY)
    return odds


def ask(model: Model, queries: Floats, positive: int, kind: AnswerKind) -> Floats:
    """What one model says about label 1, ``[queries]``; for labels nothing but its labels is asked for.

    Raises:
        ModelError: the model does not answer this kind of question.
    """
    match kind, model:
        case AnswerKind.LABELS, LabelAccess():
            return np.asarray(labels_of(model, queries) == positive, dtype=np.float64)
        case AnswerKind.PROBABILITIES, ProbabilityAccess():
            with user_code(type(model).__name__, "log_probabilities"):
                logs = model.log_probabilities(queries)
            return read(logs, positive, kind)
    raise ModelError(f"this attack queries {kind.value}, which {type(model).__name__} does not output.")


def _cuts(sets: Indices, most: int, n_records: int) -> Iterator[tuple[int, int]]:
    """Models that are trained together: few enough, and where the side is large on few enough distinct records."""
    if n_records > MAX_POOL_RECORDS:
        most = min(most, max(1, MAX_POOL_RECORDS // sets.shape[1]))
    for start in range(0, len(sets), most):
        yield start, min(start + most, len(sets))


def _with(records: Records, poisoned: Records, copies: int) -> Records:
    """Both, under new ids, since the same person may be there several times."""
    features = np.concatenate([records.features, *[poisoned.features] * copies])
    labels = np.concatenate([records.labels, *[poisoned.labels] * copies])
    return Records(features, labels, records.schema, np.arange(len(features)))


def _curated(learner: Curating, job: Job) -> Job:
    """The same models by the learner inside, on what the learner leaves of each training set.

    In the pool records under other labels come after those they are made from. Each model's set is curated with the
    seed that the model is trained with.
    """
    pool, members = job.records, job.subsets.dense()
    n_classes = len(pool.schema.classes)
    there = np.arange(len(pool)) * n_classes + pool.labels
    wanted = []
    for model, row in enumerate(members):
        own = np.flatnonzero(row)
        rows, labels = learner.curated(pool[own], seed=job.seed_of(model))
        wanted.append(own[rows] * n_classes + labels)
    both = np.unique(np.concatenate([there, *wanted]))
    curated = np.zeros((len(members), len(both)), dtype=bool)
    for row, codes in zip(curated, wanted, strict=True):
        row[np.searchsorted(both, codes)] = True
    left = Records(pool.features[both // n_classes], both % n_classes, pool.schema, np.arange(len(both)))
    return replace(job, learner=learner.learner, records=left, subsets=DenseSubsets(curated))


def _read_table(table: PredictionTable, pool: Records, positive: int, kind: AnswerKind) -> Floats:
    """Answers about label 1; a model whose records all have one label answers that label."""
    told = read(table.answers, positive, kind)
    for model, reason in table.failures.items():
        labels = pool.labels[table.subsets.row(model)]
        if (labels != labels[0]).any():
            raise ModelError(reason)
        is_one = labels[0] == positive
        told[model] = (
            float(is_one)
            if kind is AnswerKind.LABELS
            else (LOG_ODDS_OF_CERTAINTY if is_one else -LOG_ODDS_OF_CERTAINTY)
        )
    return told
