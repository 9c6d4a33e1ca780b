"""Running the chunks of a job: each stored before anyone is told, on this process, on several, or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np

from leakgauge.models import AnswerKind
from leakgauge.training.engines.base import Engine, Outcome
from leakgauge.training.job import Job
from leakgauge.training.store import ChunkStore
from leakgauge.training.threads import one_thread

Workers: TypeAlias = int | str
"""Processes on this machine, or the address of a Dask scheduler such as ``tcp://127.0.0.1:8786``."""


def chunks(n_models: int, size: int) -> list[range]:
    """The models cut into chunks, in a way that does not depend on the workers."""
    return [range(start, min(start + size, n_models)) for start in range(0, n_models, size)]


def finished(job: Job, engine: Engine, store: ChunkStore | None, workers: Workers) -> Iterator[tuple[range, Outcome]]:
    """Chunks as they come: first those that an earlier run left, then the others in any order."""
    assert engine.chunk is not None
    missing = []
    for models in chunks(len(job.subsets), engine.chunk):
        stored = None if store is None else load(store, job.chunk_name(models, engine.name))
        if stored is None:
            missing.append(models)
        else:
            yield models, stored
    if workers == 1 or (isinstance(workers, int) and len(missing) < 2):
        for models in missing:
            yield _run_chunk(job, engine, models, store)
        return
    import joblib

    with _backend(workers):
        tasks = (joblib.delayed(_run_chunk)(job, engine, models, store) for models in missing)
        yield from joblib.Parallel(n_jobs=workers, return_as="generator_unordered")(tasks)


def _run_chunk(job: Job, engine: Engine, models: range, store: ChunkStore | None) -> tuple[range, Outcome]:
    with one_thread():
        outcome = engine.outcome(job.part(np.arange(models.start, models.stop)))
    if store is not None:
        save(store, job.chunk_name(models, engine.name), outcome)  # before anyone is told that it is done
    return models, outcome


def save(store: ChunkStore, name: str, outcome: Outcome) -> None:
    """Store what became of a chunk."""
    notes = {
        "kind": None if outcome.kind is None else outcome.kind.value,
        "failures": {str(model): reason for model, reason in outcome.failures.items()},
        "n_unconverged": outcome.n_unconverged,
    }
    store.save(name, outcome.answers, notes)


def load(store: ChunkStore, name: str) -> Outcome | None:
    """What became of a chunk, or ``None`` when it is not there or is damaged."""
    stored = store.load(name)
    if stored is None:
        return None
    answers, notes = stored
    kind = None if notes["kind"] is None else AnswerKind(notes["kind"])
    failures = {int(model): reason for model, reason in notes["failures"].items()}
    return Outcome(answers, kind, failures, notes["n_unconverged"])


@contextmanager
def _backend(workers: Workers) -> Iterator[None]:
    import joblib

    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        yield
