"""Where and how models are trained. No answer depends on it, but for how an accelerator rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

Workers: TypeAlias = int | str
"""Processes on this machine, or the address of a Dask scheduler such as ``tcp://127.0.0.1:8786``."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the models done and the models in all."""


@dataclass(frozen=True)
class Execution:
    """How a job is carried out, given on unchanged to whatever trains models.

    Args:
        run: folder that keeps finished chunks; started again with it, training goes on where it stopped. ``None`` keeps
            nothing.
        workers: processes on this machine, or the address of a Dask scheduler.
        device: where engines that can use an accelerator run, as torch calls it (``cpu``, ``cuda``, ``cuda:1``).
        progress: called before the first chunk and after each.
    """

    run: Path | None = None
    workers: Workers = 1
    device: str = "cpu"
    progress: Progress | None = None

    @property
    def quiet(self) -> Execution:
        """The same for a part of the work that is not reported."""
        return replace(self, progress=None)

    @property
    def alone(self) -> Execution:
        """The same for a single model: on this process, and not reported."""
        return replace(self, workers=1, progress=None)

    def tell(self, done: int, total: int) -> None:
        """Report how far it is, where anyone listens."""
        if self.progress is not None:
            self.progress(done, total)


HERE = Execution()
"""On this process and its processor; nothing is kept or reported."""
