"""The one door to training many models: it picks the fastest engine, runs it in parallel, resumes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.errors import ModelError
from leakgauge.models.torch import device_named
from leakgauge.training.chunks import finished
from leakgauge.training.engines import ENGINES
from leakgauge.training.engines.base import Engine, JobOutcome, PreparedJob, Refusal, RefusalKind
from leakgauge.training.engines.composed import composed
from leakgauge.training.engines.refit import Refit
from leakgauge.training.execution import HERE, Execution
from leakgauge.training.job import Job, Queries, Randomness
from leakgauge.training.store import ChunkStore
from leakgauge.training.table import EachModel, PredictionTable
from leakgauge.training.table_file import AnswersFile, AnswersMemory

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training.learners import Learner
    from leakgauge.training.subsets import Subsets

MAX_MEMORY_BYTES = 256 * 1024**2
"""Bytes above which a table with a run folder is written there and mapped."""


MISSING = Refusal(RefusalKind.DATA, "the records have missing values")
"""Of engines that do not say that they take them."""

REDRAWS = Refusal(RefusalKind.JOB, "its models are not those that the learner trains with a seed that is known")
"""Of engines that draw random numbers of their own."""


@dataclass(frozen=True)
class Plan:
    """Which engine does a job, and why not another.

    Args:
        prepared: the job, ready for the engine.
        refusals: for each engine that would have been preferred and cannot do it, the reason.
    """

    prepared: PreparedJob
    refusals: dict[str, Refusal]

    @property
    def engine(self) -> Engine:
        """What does it."""
        return self.prepared.engine

    @property
    def n_models(self) -> int:
        """How many models the answers stand for."""
        return len(self.prepared.job.subsets)

    @property
    def n_trained(self) -> int:
        """How many models are really trained."""
        return self.n_models if self.engine.trains else 0

    def train(self, execution: Execution = HERE) -> PredictionTable:
        """Do the job, on the device that it is for; see :func:`train_many`."""
        job = self.prepared.job
        outcome = _run(self.prepared, execution)
        if outcome.kind is None:
            raise ModelError(next(iter(outcome.failures.values()), "there are no models to train"))
        return PredictionTable(
            answers=outcome.answers,
            kind=outcome.kind,
            subsets=job.subsets,
            seeds=job.seeds_of(np.arange(len(job.subsets))),
            engine=self.engine.name,
            query_index=job.queries.index if isinstance(job.queries, EachModel) else None,
            failures=outcome.failures,
            n_unconverged=outcome.n_unconverged,
        )


def train_many(
    learner: Learner,
    records: Records,
    subsets: Subsets,
    queries: Queries | None = None,
    *,
    seed: int,
    randomness: Randomness = Randomness.INDEPENDENT,
    engines: Sequence[Engine] = ENGINES,
    execution: Execution = HERE,
) -> PredictionTable:
    """Train a model on each subset of the records and ask all of them the queries.

    The answers do not depend on the number of workers, nor on crashes in between.

    Args:
        learner: the algorithm A.
        records: the pool.
        subsets: which records each model is trained on.
        queries: encoded features ``[queries, d]`` for all models; :class:`EachModel` for records of its own for each
            model; by default all records.
        seed: drives every random choice.
        randomness: one seed for all models, or one each.
        engines: tried in this order before the plain loop; an empty sequence trains every model in the plain loop.
        execution: where and how they are trained.

    Returns:
        The table; models that could not be trained answer NaN and stand in ``failures``.

    Raises:
        ModelError: no model at all could be trained, or an answer was not what it must be.
        ConfigError: the device is not there.
        StoreError: the run folder cannot be written.
    """
    asked = records.features if queries is None else queries
    job = Job(learner, records, subsets, asked, seed, randomness, execution.device)
    return plan(job, engines=engines).train(execution)


def plan(job: Job, *, engines: Sequence[Engine] = ENGINES) -> Plan:
    """Which engine does the job: the first that does not refuse, else the plain loop.

    Raises:
        ConfigError: the device is not there.
    """
    if job.device != "cpu":
        device_named(job.device)
    refusals: dict[str, Refusal] = {}
    missing = job.has_missing
    for engine in composed(job.learner, engines):
        if job.as_trained and engine.redraws:
            found: PreparedJob | Refusal = REDRAWS
        else:
            found = engine.prepare(job) if engine.takes_missing or not missing else MISSING
        if isinstance(found, PreparedJob):
            return Plan(found, refusals)
        refusals[engine.name] = found
    return Plan(Refit().prepare(job), refusals)


def _run(prepared: PreparedJob, execution: Execution) -> JobOutcome:
    """The whole job, chunk by chunk where the engine works in chunks."""
    job = prepared.job
    n_models = len(job.subsets)
    chunk = prepared.engine.chunk_of(n_models)
    execution.tell(0, n_models)
    shape = (n_models, job.n_queries, job.n_answers)
    n_bytes = 8 * int(np.prod(shape))
    if chunk is None and n_bytes <= MAX_MEMORY_BYTES:
        outcome = prepared.all()
        execution.tell(n_models, n_models)
        return outcome
    run = execution.run
    store = None if run is None else ChunkStore(run / "chunks")
    answers = AnswersMemory(shape) if run is None or n_bytes <= MAX_MEMORY_BYTES else AnswersFile(run, shape)
    size = chunk or max(1, MAX_MEMORY_BYTES * n_models // n_bytes)
    failures: dict[int, str] = {}
    kind, n_unconverged, done = None, 0, 0
    for models, part in finished(prepared, size, store, execution.workers, answers):
        failures.update({models.start + model: reason for model, reason in part.failures.items()})
        n_unconverged += part.n_unconverged
        kind = kind or part.kind
        done += len(models)
        execution.tell(done, n_models)
    return JobOutcome(answers.whole(), kind, dict(sorted(failures.items())), n_unconverged)
