"""One thread of linear algebra: the order of additions, and so the last digit, depends on how many there are."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import lru_cache
from itertools import chain, islice
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")

MAX_FREE_THREADS = 4
"""Threads of an audit that did not say how many it may use, at most."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold the numerical libraries, and torch where it is loaded, to one thread.

    Many small products are also many times faster this way: threads that wait for each other cost more than the work.
    """
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch is not None else 1
    with _controller(len(sys.modules)).limit(limits=1):
        if torch is not None:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(before)


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Let :func:`side_by_side` use n threads inside."""
    before = _n_threads.set(n)
    try:
        yield
    finally:
        _n_threads.reset(before)


def free_threads() -> int:
    """As many as this process has processors, or as the numerical libraries are allowed; four at most.

    The rest of an audit goes on one thread: more would wait for memory.
    """
    allowed = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(MAX_FREE_THREADS, processors, int(allowed) if allowed.isdecimal() else processors))


def side_by_side(function: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """What a function gives for each item, in their order, by the threads that :func:`threads` allows.

    Each item is done by one thread, so that no number depends on how many there are.
    """
    n, rest = _n_threads.get(), iter(items)
    first = list(islice(rest, 2))
    if n == 1 or len(first) < 2:
        yield from map(function, chain(first, rest))
        return

    def alone(item: S) -> T:
        with threads(1):
            return function(item)

    with ThreadPoolExecutor(n) as pool:
        waiting = deque[Future[T]]()
        for item in chain(first, rest):
            waiting.append(pool.submit(copy_context().run, alone, item))
            if len(waiting) > n:  # no more results at a time than threads, and the one that is given
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


_n_threads = ContextVar("n_threads", default=1)


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> Any:
    """What holds all numerical libraries loaded so far, each of which has threads of its own.

    Args:
        n_modules: how many modules are imported; libraries are looked for again when there are more.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
