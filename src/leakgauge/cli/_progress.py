"""One bar for what is being trained, on stderr, gone when it is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from leakgauge.cli._console import asides, is_watched
from leakgauge.escaping import one_line

if TYPE_CHECKING:
    from leakgauge.auditing.batch import BatchStage


@contextmanager
def progress() -> Iterator[BatchStage | None]:
    """What to call with model, stage, models done and models in all; ``None`` where nobody looks."""
    if not is_watched():
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[count]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=asides(), transient=True) as bars:
        task = bars.add_task("reading", total=None, count="")
        shown = ("", "")

        def tell(model: str, stage: str, done: int, total: int) -> None:
            nonlocal shown
            model = one_line(model)
            if (model, stage) != shown:
                bars.reset(task, total=total)
                shown = (model, stage)
            if done < total:
                bars.update(task, description=f"{model}: {stage}", completed=done, count=f"{done:,}/{total:,}")
            else:  # what follows does not say how far it is
                bars.reset(task, total=None, description=f"{model}: after {total:,} {stage}", count="")

        yield tell
