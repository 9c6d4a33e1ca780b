"""The one door to training many models: it picks the fastest exact engine, runs it in parallel, resumes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.errors import ModelError
from leakgauge.models import AnswerKind
from leakgauge.training.engines import EXACT
from leakgauge.training.engines.base import Engine
from leakgauge.training.engines.refit import chunks, refit
from leakgauge.training.job import Floats, Job, Queries, Randomness
from leakgauge.training.store import ChunkStore
from leakgauge.training.table import EachModel, PredictionTable

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training.learners import Learner
    from leakgauge.training.subsets import Subsets

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the models done and the models in all."""

IN_MEMORY = 2 * 1024**3
"""Bytes above which a table with a run folder is written to it and read memory-mapped."""


@dataclass(frozen=True)
class Plan:
    """Which engine would do a job, and why not another.

    Args:
        engine: the exact engine, or ``None`` when every model is trained.
        n_models: how many models the answers stand for.
        refusals: for each exact engine that cannot do it, the reason.
    """

    engine: Engine | None
    n_models: int
    refusals: dict[str, str]

    @property
    def engine_name(self) -> str:
        """The engine's name as tables and reports record it."""
        return "refit" if self.engine is None else self.engine.name

    @property
    def n_trained(self) -> int:
        """How many models are really trained."""
        return self.n_models if self.engine is None else 0


def train_many(
    learner: Learner,
    records: Records,
    subsets: Subsets,
    queries: Queries | None = None,
    *,
    seed: int,
    randomness: Randomness = Randomness.INDEPENDENT,
    exact_engines: bool = True,
    run: Path | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> PredictionTable:
    """Train a model on each subset of the records and ask all of them the queries.

    The answers depend on the arguments above ``run`` alone: not on the number of workers, nor on crashes in between.

    Args:
        learner: the algorithm A.
        records: the pool.
        subsets: which records each model is trained on.
        queries: encoded features ``[queries, d]`` for all models; :class:`EachModel` for records of its own for each
            model; by default all records.
        seed: drives every random choice.
        randomness: one seed for all models, or one each.
        exact_engines: take a closed form instead of training where one exists.
        run: folder that keeps finished chunks; started again with it, training goes on where it stopped.
        workers: processes.
        progress: called after each chunk.

    Returns:
        The table; models that could not be trained answer NaN and stand in ``failures``.

    Raises:
        ModelError: no model at all could be trained, or an answer was not what it must be.
        StoreError: the run folder cannot be written.
    """
    job = Job(learner, records, subsets, records.features if queries is None else queries, seed, randomness)
    chosen = plan(job, exact_engines=exact_engines)
    if chosen.engine is not None:
        answers, kind = chosen.engine.run(job), _kind_of_exact(job)
        notes: dict[str, Any] = {"failures": _untrained(answers), "n_unconverged": 0}
        if progress:
            progress(len(subsets), len(subsets))
    else:
        answers, kind, notes = _refit_all(job, run, workers, progress)
    return PredictionTable(
        answers=answers,
        kind=kind,
        subsets=subsets,
        seeds=_seeds(job),
        engine=chosen.engine_name,
        query_index=job.queries.index if isinstance(job.queries, EachModel) else None,
        failures=notes["failures"],
        n_unconverged=notes["n_unconverged"],
    )


def plan(job: Job, *, exact_engines: bool = True) -> Plan:
    """Which engine does the job: the first exact one that does not refuse, else the plain loop."""
    refusals: dict[str, str] = {}
    for engine in EXACT if exact_engines else ():
        reason = engine.refuses(job)
        if reason is None:
            return Plan(engine, len(job.subsets), refusals)
        refusals[engine.name] = reason
    return Plan(None, len(job.subsets), refusals)


def _refit_all(
    job: Job, run: Path | None, workers: int, progress: Progress | None
) -> tuple[Floats, AnswerKind, dict[str, Any]]:
    store = None if run is None else ChunkStore(Path(run) / "chunks")
    parts = chunks(len(job.subsets))
    names = [None if store is None else job.chunk_name(part) for part in parts]
    answers = _empty_table(job, run)
    notes: dict[str, Any] = {"failures": {}, "n_unconverged": 0}
    kind, done = None, 0
    for place, (part_answers, part_notes) in _finished(job, parts, names, store, workers):
        part = parts[place]
        answers[part.start : part.stop] = part_answers
        notes["failures"].update({int(model): reason for model, reason in part_notes["failures"].items()})
        notes["n_unconverged"] += part_notes["n_unconverged"]
        kind = kind or part_notes["kind"]
        done += len(part)
        if progress:
            progress(done, len(job.subsets))
    if kind is None:
        raise ModelError(next(iter(notes["failures"].values()), "there are no models to train"))
    notes["failures"] = dict(sorted(notes["failures"].items()))
    return answers, AnswerKind(kind), notes


def _finished(
    job: Job, parts: list[range], names: list[str | None], store: ChunkStore | None, workers: int
) -> Iterator[tuple[int, tuple[Floats, dict[str, Any]]]]:
    """Chunks as they come: first those that an earlier run left, then the others in any order."""
    missing = []
    for place, name in enumerate(names):
        stored = None if store is None or name is None else store.load(name)
        if stored is None:
            missing.append(place)
        else:
            yield place, stored
    if workers == 1 or len(missing) < 2:
        for place in missing:
            yield _train_chunk(job, parts[place], place, names[place], store)
        return
    import joblib

    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        tasks = (joblib.delayed(_train_chunk)(job, parts[i], i, names[i], store) for i in missing)
        yield from joblib.Parallel(n_jobs=workers, return_as="generator_unordered")(tasks)


def _train_chunk(
    job: Job, part: range, place: int, name: str | None, store: ChunkStore | None
) -> tuple[int, tuple[Floats, dict[str, Any]]]:
    answers, notes = refit(job, part)
    if store is not None and name is not None:
        store.save(name, answers, notes)  # before anyone is told that it is done
    return place, (answers, notes)


def _seeds(job: Job) -> NDArray[np.int64]:
    if job.randomness is Randomness.COMMON:
        return np.full(len(job.subsets), job.seed_of(0), dtype=np.int64)
    return np.array([job.seed_of(model) for model in range(len(job.subsets))], dtype=np.int64)


def _empty_table(job: Job, run: Path | None) -> Floats:
    shape = (len(job.subsets), job.n_queries, job.n_answers)
    if run is None or 8 * int(np.prod(shape)) <= IN_MEMORY:
        return np.full(shape, np.nan)
    import tempfile

    file = tempfile.NamedTemporaryFile(dir=run, prefix=".table.", suffix=".part")  # noqa: SIM115 - lives with the array
    return np.memmap(file, dtype=np.float64, mode="w+", shape=shape)


def _kind_of_exact(job: Job) -> AnswerKind:
    return AnswerKind.VALUES if job.records.schema.task == "regression" else AnswerKind.PROBABILITIES


def _untrained(answers: Floats) -> dict[int, str]:
    lost = np.flatnonzero(np.isnan(answers).all(axis=(1, 2)))
    return {int(model): "no model exists without this record" for model in lost}
