"""One bar for what is being trained, on stderr, gone when it is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from leakgauge.cli._console import asides, is_watched

if TYPE_CHECKING:
    from leakgauge.audit.batch import BatchStage


@contextmanager
def progress() -> Iterator[BatchStage | None]:
    """What to call with model, stage, models done and models in all; ``None`` where nobody looks."""
    if not is_watched():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=asides(), transient=True) as bars:
        waiting = bars.add_task("reading", total=None)
        tasks: dict[tuple[str, str], TaskID] = {}

        def tell(model: str, stage: str, done: int, total: int) -> None:
            bars.update(waiting, visible=False)
            if (model, stage) not in tasks:
                for task in tasks.values():
                    bars.update(task, visible=False)
                tasks[model, stage] = bars.add_task(f"{model}: {stage}", total=total)
            bars.update(tasks[model, stage], completed=done, visible=done < total)
            bars.update(waiting, description=f"{model}: working", visible=done >= total)

        yield tell
