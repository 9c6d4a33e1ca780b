"""Running the chunks of a job: each stored before anyone is told, on this process, on several, or on a cluster."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np

from leakgauge.errors import MissingExtra, WorkerError
from leakgauge.models import AnswerKind
from leakgauge.training.engines.base import Engine, Outcome
from leakgauge.training.job import Job
from leakgauge.training.store import ChunkStore
from leakgauge.training.threads import one_thread

Workers: TypeAlias = int | str
"""Processes on this machine, or the address of a Dask scheduler such as ``tcp://127.0.0.1:8786``."""

MOST_DEATHS = 3
"""How often workers may die, one death after another without a chunk in between, before it is given up."""

CONNECT_SECONDS = 10

log = logging.getLogger(__name__)


def chunks(n_models: int, size: int) -> list[range]:
    """The models cut into chunks, in a way that does not depend on the workers."""
    return [range(start, min(start + size, n_models)) for start in range(0, n_models, size)]


def finished(
    job: Job, engine: Engine, size: int, store: ChunkStore | None, workers: Workers
) -> Iterator[tuple[range, Outcome]]:
    """Chunks of ``size`` models as they come: first those that an earlier run left, then the others in any order."""
    missing = chunks(len(job.subsets), size)
    yield from _taken(job, engine, missing, store)
    if workers == 1 or (isinstance(workers, int) and len(missing) < 2):
        for models in missing:
            yield _run_chunk(job, engine, models, store)
    elif isinstance(workers, int):
        yield from _on_processes(job, engine, missing, store, workers)
    else:
        yield from _on_cluster(job, engine, missing, store, workers)


def _taken(job: Job, engine: Engine, missing: list[range], store: ChunkStore | None) -> Iterator[tuple[range, Outcome]]:
    """Take what is stored out of the list of what is missing."""
    for models in missing.copy():
        shape = len(models), job.n_queries, job.n_answers
        stored = None if store is None else load(store, job.chunk_name(models, engine.name), shape)
        if stored is not None:
            missing.remove(models)
            yield models, stored


def _on_processes(
    job: Job, engine: Engine, missing: list[range], store: ChunkStore | None, workers: int
) -> Iterator[tuple[range, Outcome]]:
    """On processes of this machine; when one is killed, those that are left undone are done by new ones."""
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    deaths = 0
    while missing:
        n_missing = len(missing)
        tasks = [joblib.delayed(_run_chunk)(job, engine, models, store) for models in missing]
        try:
            with _safe_path(), joblib.parallel_config(backend="loky", inner_max_num_threads=1):
                with _deaf_to_ctrl_c():
                    outcomes = joblib.Parallel(n_jobs=workers, return_as="generator_unordered")(tasks)
                for models, outcome in outcomes:
                    missing.remove(models)
                    yield models, outcome
        except TerminatedWorkerError as error:
            deaths = 1 if len(missing) < n_missing else deaths + 1
            yield from _taken(job, engine, missing, store)
            log.warning("a worker process died; %d chunks are done by new ones", len(missing))
            if missing and deaths == MOST_DEATHS:
                raise WorkerError(
                    f"worker processes died {MOST_DEATHS} times in a row without finishing anything, perhaps for want "
                    "of memory; use fewer workers. Finished chunks in the run folder are kept"
                ) from error


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Processes that are started inside do not hear Ctrl-C, and print no traceback; this one ends them instead.

    A signal that comes meanwhile is answered afterwards.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as of_joblib

    for tracker in (resource_tracker, of_joblib):
        tracker.ensure_running()  # which hears signals again, and so would what is started after it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep the working folder out of the import path of processes that are started.

    Python puts it first for ``python -m``, by which workers are started, so that a ``random.py`` there would stand in
    for the library. From wherever this process imports modules, workers import them anyway.
    """
    known = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = known or "1"
    try:
        yield
    finally:
        os.environ.pop("PYTHONSAFEPATH")
        if known is not None:
            os.environ["PYTHONSAFEPATH"] = known


def _on_cluster(
    job: Job, engine: Engine, missing: list[range], store: ChunkStore | None, address: str
) -> Iterator[tuple[range, Outcome]]:
    """On the workers of a Dask cluster, which does again by itself what a killed worker was doing."""
    import joblib

    with _connected(address), joblib.parallel_config(backend="dask"):
        tasks = [joblib.delayed(_run_chunk)(job, engine, models, store) for models in missing]
        for models, outcome in joblib.Parallel(return_as="generator_unordered")(tasks):
            name = job.chunk_name(models, engine.name)
            if store is not None and not store.path(name).exists():  # the worker has a disk of its own
                save(store, name, outcome)
            yield models, outcome


@contextmanager
def _connected(address: str) -> Iterator[None]:
    try:
        from distributed import Client
        from distributed.scheduler import KilledWorker
    except ImportError as error:
        raise MissingExtra(
            f"a cluster ({address}) needs the package distributed; install it with: pip install 'leakgauge[dask]'"
        ) from error
    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise WorkerError(
            f"no Dask scheduler answers at {address} ({type(error).__name__}); "
            "start one with `dask scheduler`, or give the address that it prints"
        ) from error
    with client:
        try:
            yield
        except KilledWorker as error:
            raise WorkerError(
                f"workers of the cluster at {address} died again and again over the same chunk, perhaps for want of "
                "memory; finished chunks in the run folder are kept"
            ) from error


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
        "n_unconverged": int(outcome.n_unconverged),
    }
    store.save(name, outcome.answers, notes)


def load(store: ChunkStore, name: str, shape: tuple[int, int, int]) -> Outcome | None:
    """What became of a chunk with answers of this shape, or ``None`` when it is not there or is damaged."""
    stored = store.load(name)
    if stored is None:
        return None
    answers, notes = stored
    try:
        if answers.shape != shape or answers.dtype != np.float64:
            raise ValueError(f"answers of shape {answers.shape} and type {answers.dtype}")
        kind = None if notes["kind"] is None else AnswerKind(notes["kind"])
        failures = {int(model): str(reason) for model, reason in notes["failures"].items()}
        return Outcome(answers, kind, failures, int(notes["n_unconverged"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        log.warning("chunk %s is damaged and is made again", store.path(name).name)
        return None
