"""Where answers go as they come, in memory or on disk.

A table that is larger than memory is never in memory: parts are written to the file as they come, and the finished
file is mapped, so that a slice by model or by record reads what it needs.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.errors import StoreError


class AnswersMemory:
    """Answers in memory.

    Args:
        shape: ``[models, queries, k]``.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._answers: Floats | None = None

    def write(self, models: range, answers: Floats) -> None:
        """Write the answers of some models."""
        if self._answers is None:
            self._answers = np.empty(self._shape)
        self._answers[models.start : models.stop] = answers

    def move(self, memory: Floats) -> None:
        """Go on in other memory of the same shape, into which answers may also be written directly."""
        if self._answers is not None:
            memory[:] = self._answers
        self._answers = memory

    def whole(self) -> Floats:
        """All answers, once each was written."""
        return np.empty(self._shape) if self._answers is None else self._answers


class AnswersFile:
    """Answers that go to a file as they come; the file has no name and is gone when nobody looks at it any more.

    Args:
        folder: where the disk has room.
        shape: ``[models, queries, k]``.
    """

    def __init__(self, folder: Path, shape: tuple[int, ...]) -> None:
        self._folder = folder
        self._shape = shape
        self._row = 8 * int(np.prod(shape[1:]))
        with self._told():
            self._file = tempfile.TemporaryFile(dir=folder, prefix=".table.", suffix=".part", buffering=0)  # noqa: SIM115
        with self._told():
            self._file.truncate(self._row * shape[0])

    def write(self, models: range, answers: Floats) -> None:
        """Write the answers of some models."""
        with self._told():
            write_rows(self._file, models, answers)

    def whole(self) -> Floats:
        """All answers, mapped and read-only."""
        with self._told():
            _drop_cache(self._file)
            answers = np.memmap(self._file, dtype=np.float64, mode="r", shape=self._shape)
        self._file.close()  # the mapping keeps it
        return answers

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if hasattr(self, "_file"):
                self._file.close()
            raise StoreError(
                f"{self._folder} has no room for a table of {self._row * self._shape[0] / 1e6:,.0f} MB "
                f"({error.strerror}); free space, name another run folder, or give fewer records or shadow models"
            ) from error


def write_rows(file: Any, models: range, answers: Floats) -> None:
    """Write the answers of some models ``[m, queries, k]`` to their place in an unbuffered file of all answers."""
    rest = np.ascontiguousarray(answers, dtype=np.float64).data.cast("B")
    file.seek(len(rest) // len(models) * models.start)
    while len(rest):  # a full disk takes a part first
        rest = rest[file.write(rest) :]


def let_go(answers: Floats) -> None:
    """Of a mapped table, give back what was read; it is read again from the file when it is looked at.

    Otherwise one pass over a table by record leaves all of it in memory. Nothing happens to one that is not mapped.
    """
    held: Any = answers
    while isinstance(held, np.ndarray):
        held = held.base
    if isinstance(held, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        held.madvise(mmap.MADV_DONTNEED)


def _drop_cache(file: Any) -> None:
    """Let the system forget what was just written: else one look at the mapping may bring all of it into memory."""
    if hasattr(os, "posix_fadvise"):
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
