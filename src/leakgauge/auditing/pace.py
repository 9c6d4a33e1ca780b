"""How long the models of a plan take: found by having a few of them, until that took long enough to be measured."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from leakgauge.training.engines.base import PreparedJob
from leakgauge.training.engines.refit import Refit
from leakgauge.training.threads import one_thread

ENOUGH_SECONDS = 0.2
"""A measurement that took so long is not repeated with more models."""

LONG_SECONDS = 5.0
"""One that took so long is not even repeated without looking at memory, which slows it down."""

MORE = 4
"""Times as many models in each measurement as in the one before."""


@dataclass(frozen=True)
class Pace:
    """What the models of a job take, on one worker.

    Args:
        once: seconds for what all models share.
        chunk: seconds for each chunk of models, however many there are in it.
        model: seconds for each model.
        chunk_size: models in a chunk; ``None`` for all of them.
        n_bytes: largest memory while there was one model, without that of libraries that do not tell Python; 0 where
            it was not looked at.
    """

    once: float
    chunk: float
    model: float
    chunk_size: int | None
    n_bytes: int

    def seconds(self, n_models: int) -> float:
        """Of so many models."""
        n_chunks = 1 if self.chunk_size is None else -(-n_models // self.chunk_size)
        return self.once + n_chunks * self.chunk + n_models * self.model


def pace(prepared: PreparedJob, *, memory: bool) -> Pace:
    """Measure it: with one model, which may load libraries, then with more and more of them.

    Models are taken from all over the job. In a small job all of them may be had, and the pace is that of the whole. A
    model of the plain loop that takes long is not trained again.

    Args:
        prepared: the job.
        memory: whether to look at that of the first model, which slows it down.
    """
    n, alone = len(prepared.job.subsets), prepared.engine.name == Refit.name
    size = prepared.engine.chunk_of(n)
    with one_thread():
        once = elapsed(prepared.share)
        with _traced() if memory else nullcontext([0]) as traced:
            first = _of(prepared, 1)
        fewest = 4 if not alone else 3 if memory else 2
        tried, m = [(0, 0.0), (1, first)], 1
        while tried[-1][1] < ENOUGH_SECONDS or (tried[-1][1] < LONG_SECONDS and len(tried) < fewest):
            tried.append((m, _of(prepared, m)))
            if m == n:
                break
            m = min(n, MORE * m)
    (fewer, less), (last, took) = tried[-2:]
    each = took / last
    if not alone and fewer < last < n:
        each = min(max(0.0, took - less) / (last - fewer), each)
    return Pace(once, took - last * each, each, size, traced[0])


@contextmanager
def _traced() -> Iterator[list[int]]:
    """The largest number of bytes that were taken inside, when it is over."""
    found, tracing = [0], tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    try:
        yield found
    finally:
        found[0] = tracemalloc.get_traced_memory()[1] - before
        if not tracing:
            tracemalloc.stop()


def _of(prepared: PreparedJob, n_models: int) -> float:
    places = np.linspace(0, len(prepared.job.subsets) - 1, n_models).astype(np.int64)
    return elapsed(partial(prepared.answers, places))


def elapsed(work: Callable[[], Any]) -> float:
    """Seconds that a piece of work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
