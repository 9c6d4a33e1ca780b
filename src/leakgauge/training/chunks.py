"""Running the chunks of a job: each stored before anyone is told, on this process, on several, or on a cluster."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from tempfile import gettempdir
from threading import Lock

import numpy as np

from leakgauge.errors import MissingExtra, WorkerError
from leakgauge.models import AnswerKind
from leakgauge.training.engines.base import JobOutcome, PreparedJob
from leakgauge.training.execution import Workers
from leakgauge.training.handing import Handed, handed
from leakgauge.training.store import ChunkStore
from leakgauge.training.table_file import AnswersFile, AnswersMemory
from leakgauge.training.threads import one_thread

MAX_WORKER_DEATHS = 3
"""How often workers may die, one death after another without a chunk in between, before it is given up."""

CONNECT_TIMEOUT_SECONDS = 10

_ENVIRONMENT = Lock()
_SAFE_PATHS: list[str | None] = []
"""What the variable was when each thread that is at it began: the last one out puts back what the first one found."""

log = logging.getLogger(__name__)


def chunks(n_models: int, size: int) -> list[range]:
    """The models cut into chunks, in a way that does not depend on the workers."""
    return [range(start, min(start + size, n_models)) for start in range(0, n_models, size)]


def finished(
    prepared: PreparedJob,
    size: int,
    store: ChunkStore | None,
    workers: Workers,
    answers: AnswersMemory | AnswersFile,
) -> Iterator[tuple[range, JobOutcome]]:
    """Chunks of ``size`` models as they come: first those that an earlier run left, then the others in any order.

    What they answer is in ``answers`` by then, and need not be in the outcome.
    """
    missing = chunks(len(prepared.job.subsets), size)
    yield from _taken(prepared, missing, store, answers)
    if isinstance(workers, int) and workers != 1 and len(missing) > 1 and _work_together():
        yield from _on_processes(prepared, missing, store, workers, answers)
        return
    here = ((models, _run_chunk(prepared, models, store)) for models in missing)
    for models, outcome in here if isinstance(workers, int) else _on_cluster(prepared, missing, store, workers):
        answers.write(models, outcome.answers)
        yield models, outcome


def _taken(
    prepared: PreparedJob, missing: list[range], store: ChunkStore | None, answers: AnswersMemory | AnswersFile
) -> Iterator[tuple[range, JobOutcome]]:
    """Take what is stored out of the list of what is missing."""
    job = prepared.job
    for models in missing.copy():
        shape = len(models), job.n_queries, job.n_answers
        stored = None if store is None else load(store, job.chunk_name(models, prepared.engine.name), shape)
        if stored is not None:
            missing.remove(models)
            answers.write(models, stored.answers)
            yield models, stored


def _work_together() -> bool:
    """Whether processes of this machine can; joblib needs semaphores, which a read-only /dev/shm does not have."""
    from joblib._multiprocessing_helpers import mp

    if mp is None:
        log.warning("this system does not let processes work together; this one computes all chunks")
    return mp is not None


def _on_processes(
    prepared: PreparedJob,
    missing: list[range],
    store: ChunkStore | None,
    workers: int,
    answers: AnswersMemory | AnswersFile,
) -> Iterator[tuple[range, JobOutcome]]:
    """On processes of this machine; when one is killed, those that are left undone are done by new ones."""
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    deaths, job = 0, prepared.job
    shape = (len(job.subsets), job.n_queries, job.n_answers) if isinstance(answers, AnswersMemory) else None
    # Whatever is started from here on, and what watches over the shared folder is, must not import files from here.
    with _safe_path(), handed(prepared, shape, workers) as given:
        kept = given.table() if given.in_memory else None
        if kept is not None and isinstance(answers, AnswersMemory):
            answers.move(kept)
        while missing:
            n_missing = len(missing)
            tasks = [joblib.delayed(_run_handed)(given, models, store) for models in missing]
            try:
                with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
                    # Without a folder joblib makes one in shared memory for each call, and keeps it until the end.
                    parallel = joblib.Parallel(workers, return_as="generator_unordered", temp_folder=gettempdir())
                    with _deaf_to_ctrl_c():
                        outcomes = parallel(tasks)
                    for models, outcome in outcomes:
                        missing.remove(models)
                        if kept is None:
                            table = given.table()
                            part = outcome.answers if table is None else table[models.start : models.stop]
                            answers.write(models, part)
                        yield models, outcome
            except TerminatedWorkerError as error:
                deaths = 1 if len(missing) < n_missing else deaths + 1
                yield from _taken(prepared, missing, store, answers)
                log.warning("a worker process died; new ones compute the remaining %d chunks", len(missing))
                if missing and deaths == MAX_WORKER_DEATHS:
                    raise WorkerError(
                        f"worker processes died {MAX_WORKER_DEATHS} times in a row without finishing anything, "
                        "possibly for lack of memory; use fewer workers. Finished chunks in the run folder are kept"
                    ) from error


def _run_handed(given: Handed, models: range, store: ChunkStore | None) -> tuple[range, JobOutcome]:
    """In a worker; answers go into the shared table, where there is one, and do not come back with the rest."""
    outcome = _run_chunk(given.prepared(), models, store)
    if given.shape is None:
        return models, outcome
    given.write(models, outcome.answers)
    return models, replace(outcome, answers=outcome.answers[:0])


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
    with _ENVIRONMENT:
        _SAFE_PATHS.append(os.environ.get("PYTHONSAFEPATH"))
        os.environ["PYTHONSAFEPATH"] = _SAFE_PATHS[0] or "1"
    try:
        yield
    finally:
        with _ENVIRONMENT:
            known = _SAFE_PATHS[0]
            _SAFE_PATHS.pop()
            if not _SAFE_PATHS:
                os.environ.pop("PYTHONSAFEPATH")
                if known is not None:
                    os.environ["PYTHONSAFEPATH"] = known


def _on_cluster(
    prepared: PreparedJob, missing: list[range], store: ChunkStore | None, address: str
) -> Iterator[tuple[range, JobOutcome]]:
    """On the workers of a Dask cluster, which does again by itself what a killed worker was doing."""
    import joblib

    prepared.share()
    with _connected(address), joblib.parallel_config(backend="dask", scatter=[prepared]):  # each worker gets it once
        tasks = [joblib.delayed(_run_named)(prepared, models, store) for models in missing]
        for models, outcome in joblib.Parallel(return_as="generator_unordered")(tasks):
            name = prepared.job.chunk_name(models, prepared.engine.name)
            if store is not None and not store.path(name).exists():  # the worker has a disk of its own
                save(store, name, outcome)
            yield models, outcome


def _run_named(prepared: PreparedJob, models: range, store: ChunkStore | None) -> tuple[range, JobOutcome]:
    return models, _run_chunk(prepared, models, store)


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
        client = Client(address, timeout=CONNECT_TIMEOUT_SECONDS)
    except (OSError, ValueError) as error:
        raise WorkerError(
            f"no Dask scheduler responds at {address} ({type(error).__name__}); "
            "start one with `dask scheduler`, or give the address that it prints"
        ) from error
    with client:
        try:
            yield
        except KilledWorker as error:
            raise WorkerError(
                f"workers of the cluster at {address} died repeatedly over the same chunk, possibly for lack of "
                "memory; finished chunks in the run folder are kept"
            ) from error


def _run_chunk(prepared: PreparedJob, models: range, store: ChunkStore | None) -> JobOutcome:
    with one_thread():
        outcome = prepared.answers(np.arange(models.start, models.stop))
    if store is not None:
        save(store, prepared.job.chunk_name(models, prepared.engine.name), outcome)  # before anyone is told
    return outcome


def save(store: ChunkStore, name: str, outcome: JobOutcome) -> None:
    """Store what became of a chunk."""
    notes = {
        "kind": None if outcome.kind is None else outcome.kind.value,
        "failures": {str(model): reason for model, reason in outcome.failures.items()},
        "n_unconverged": int(outcome.n_unconverged),
    }
    store.save(name, outcome.answers, notes)


def load(store: ChunkStore, name: str, shape: tuple[int, int, int]) -> JobOutcome | None:
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
        return JobOutcome(answers, kind, failures, int(notes["n_unconverged"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        log.warning("chunk %s is damaged and is computed again", store.path(name).name)
        return None
