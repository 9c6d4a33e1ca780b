"""How far training is, for people: one bar on a terminal or in a notebook, lines in a log, and nothing elsewhere."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any, TypeAlias

from leakgauge.errors import ConfigError
from leakgauge.escaping import one_line

Stage: TypeAlias = Callable[[str, int, int], None]
"""Progress: called with the name of a stage, the models (or other parts) done, and all there are."""

ShownProgress: TypeAlias = bool | Stage | None
"""True for a bar where somebody sees it, a function to be called instead, false or ``None`` for neither."""

SECONDS_BETWEEN_UPDATES = 0.2
"""Of the bar in a notebook: each update is a message to the page."""

SECONDS_BETWEEN_LINES = 10.0
"""Of the same stage."""


def on_terminal() -> bool:
    """Whether somebody looks at stderr: a terminal, and no pipeline."""
    return sys.stderr.isatty() and not os.environ.get("CI")


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook; IPython on a terminal is none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def reported(progress: ShownProgress, *, first: str = "starting") -> Iterator[Stage | None]:
    """What to call with stage, parts done and parts in all; ``None`` where nobody looks.

    Args:
        progress: what the user wants; true draws a bar on a terminal or in a notebook, and nothing in pipelines.
        first: what is being done before the first stage.

    Raises:
        ConfigError: it is none of these.

    >>> with reported(False) as tell:
    ...     print(tell)
    None
    """
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise ConfigError(f"progress must be true, false or a function, got a value of type {type(progress).__name__}")
    if not progress or callable(progress):
        yield progress or None
    elif on_terminal():
        with _terminal_bar(first) as tell:
            yield tell
    elif in_notebook() and not os.environ.get("CI"):
        with _notebook_bar(first) as tell:
            yield tell
    else:
        yield None


def of_part(name: str, tell: Stage | None) -> Stage | None:
    """The same for one of several models or defences, whose name stands before each stage.

    >>> of_part("forest", print)("shadow models", 16, 32)
    forest: shadow models 16 32
    """
    return None if tell is None else lambda stage, done, total: tell(f"{name}: {stage}", done, total)


def in_lines(write: Callable[[str], None], *, first: str = "starting", patience: float = 0.0) -> Stage:
    """What to call, as by :func:`reported`; it writes a line for each stage, and one every ten seconds in between.

    Args:
        write: called with each line.
        first: what is being done before the first stage.
        patience: seconds in which nothing is written, so that what is done sooner says nothing.

    >>> tell = in_lines(print)
    starting
    >>> tell("shadow models", 0, 32), tell("shadow models", 16, 32)
    shadow models 0/32
    (None, None)
    """
    began, written, stage = time.monotonic(), -math.inf, ""

    def draw(reached: _Reached) -> None:
        nonlocal written, stage
        now = time.monotonic()
        if now - began >= patience and (reached.stage != stage or now - written >= SECONDS_BETWEEN_LINES):
            written, stage = now, reached.stage
            write(", ".join(filter(None, (reached.words, reached.left))))

    return _following(first, draw)


@dataclass
class _Reached:
    """How far one stage is, and when it will be done.

    Args:
        stage: its name.
        done: parts that are done.
        total: all parts; 0 where that is not known.
        first: parts that were done when it was first heard of.
        began: when that was, in seconds.
    """

    stage: str
    done: int
    total: int
    first: int
    began: float

    @property
    def is_open(self) -> bool:
        """Whether there is no saying how far it is: all parts are done, and what follows is not counted."""
        return self.done >= self.total

    @property
    def words(self) -> str:
        """The stage with its count."""
        if not self.total:
            return self.stage
        return f"{self.stage}: {self.total:,} done" if self.is_open else f"{self.stage} {self.done:,}/{self.total:,}"

    @property
    def left(self) -> str:
        """The time it will still take at the pace so far; empty where that is not known."""
        if self.is_open or self.done == self.first:
            return ""
        pace = (time.monotonic() - self.began) / (self.done - self.first)
        minutes, seconds = divmod(round(pace * (self.total - self.done)), 60)
        return f"{minutes}:{seconds:02d} left"


def _following(first: str, draw: Callable[[_Reached], None]) -> Stage:
    """What to call; it draws what was reached, a new stage from its beginning."""
    reached = _Reached(first, 0, 0, 0, time.monotonic())
    draw(reached)

    def tell(stage: str, done: int, total: int) -> None:
        nonlocal reached
        stage = one_line(stage)
        if (stage, total) != (reached.stage, reached.total) or done < reached.done:
            reached = _Reached(stage, done, total, done, time.monotonic())
        reached.done = done
        draw(reached)

    return tell


@contextmanager
def _terminal_bar(first: str) -> Iterator[Stage]:
    """On stderr, gone when it is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as bars:
        task = bars.add_task(first, total=None, left="")

        def draw(reached: _Reached) -> None:
            # Not started, the bar moves without saying how far it is.
            bars.reset(
                task,
                start=not reached.is_open,
                description=reached.words,
                total=reached.total,
                completed=reached.done,
                left=reached.left,
            )

        yield _following(first, draw)


@contextmanager
def _notebook_bar(first: str) -> Iterator[Stage]:
    """Below the cell, gone when it is done."""
    from IPython.display import display

    handle: Any = None
    drawn = -SECONDS_BETWEEN_UPDATES
    stage = ""

    def draw(reached: _Reached) -> None:
        nonlocal handle, drawn, stage
        now = time.monotonic()
        if reached.stage == stage and not reached.is_open and now - drawn < SECONDS_BETWEEN_UPDATES:
            return
        drawn, stage = now, reached.stage
        if handle is None:
            handle = display(_in_notebook(reached), raw=True, display_id=True)
        else:
            handle.update(_in_notebook(reached), raw=True)

    try:
        yield _following(first, draw)
    finally:
        handle.update({"text/plain": "", "text/html": ""}, raw=True)


def _in_notebook(reached: _Reached) -> dict[str, str]:
    """The bar as HTML, and as text for pages that show none."""
    said = ", ".join(filter(None, (reached.words, reached.left)))
    place = "" if reached.is_open else f' max="{reached.total}" value="{reached.done}"'
    bar = f'<progress{place} style="width:14rem;max-width:40%;vertical-align:middle" aria-hidden="true"></progress>'
    return {"text/plain": said, "text/html": f'<div role="status">{bar} {escape(said)}</div>'}
