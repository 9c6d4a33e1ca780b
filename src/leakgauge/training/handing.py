"""What processes of this machine are given once: a prepared job in shared memory, and room for the answers.

A chunk then costs a message of a few bytes either way. The files are readable by their owner alone, lie in memory where
the system has room for them there, and are gone when the job is done, or when its process is killed. Answers that were
written in memory stay there, without a name, for as long as the process looks at them.
"""

from __future__ import annotations

import mmap
import os
import pickle
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.errors import StoreError, WorkerError
from leakgauge.training.engines.base import PreparedJob
from leakgauge.training.table_file import write_rows
from leakgauge.training.threads import threads

SHARED_MEMORY = Path("/dev/shm")

PREFIX = "leakgauge-"
"""Of the folders."""

MAX_SHARED_BYTES = 1024**3
"""Size of a table up to which workers write their answers into it; of larger ones they hand parts back."""


@dataclass(frozen=True)
class Handed:
    """Where workers find a job.

    Args:
        folder: nobody else's.
        shape: of the table of answers ``[models, queries, k]``; ``None`` where it is not shared.
    """

    folder: str
    shape: tuple[int, ...] | None

    def prepared(self) -> PreparedJob:
        """The job; a worker reads it once."""
        return _read(self.folder)

    @property
    def in_memory(self) -> bool:
        """Whether what is shared lies in memory, where it stays mapped after the folder is gone."""
        return Path(self.folder).parent == SHARED_MEMORY

    def table(self) -> NDArray[np.float64] | None:
        """The table that workers write their answers into, mapped."""
        if self.shape is None:
            return None
        with open(Path(self.folder) / "answers", "r+b") as file:
            return np.ndarray(self.shape, buffer=mmap.mmap(file.fileno(), 0))

    def write(self, models: range, answers: Floats) -> None:
        """Write the answers of some models into the table; new pages of a mapping would be cleared first.

        Raises:
            StoreError: there is no room for them.
        """
        folder = Path(self.folder)
        try:
            with open(folder / "answers", "r+b", buffering=0) as file:
                write_rows(file, models, answers)
        except OSError as error:
            raise _full(folder.parent, answers.nbytes, error) from error


@contextmanager
def handed(prepared: PreparedJob, shape: tuple[int, ...] | None, workers: int = 1) -> Iterator[Handed]:
    """A job as workers of this machine take it, with room for answers.

    Args:
        prepared: the job; what its models share is found by as many threads as there are workers.
        shape: of the table of answers ``[models, queries, k]``; ``None`` where there is other room for it.
        workers: how many will take it.

    Raises:
        StoreError: there is no room for it.
        WorkerError: it cannot be pickled.
    """
    import cloudpickle
    from joblib.externals.loky.backend import resource_tracker

    with threads(workers):
        prepared.share()
    buffers: list[pickle.PickleBuffer] = []
    try:
        stream = cloudpickle.dumps(prepared, protocol=5, buffer_callback=buffers.append)
    except Exception as error:  # of the user's objects, which may raise anything
        raise WorkerError(
            f"{prepared.job.learner.name} cannot be sent to worker processes ({type(error).__name__}); "
            "use one worker, or a learner that can be pickled"
        ) from error
    n_answers = 0 if shape is None else 8 * int(np.prod(shape))
    shared = shape if 0 < n_answers <= MAX_SHARED_BYTES else None
    room = len(stream) + sum(buffer.raw().nbytes for buffer in buffers) + (n_answers if shared else 0)
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_where(room)))
    resource_tracker.register(str(folder), "folder")  # which removes it should this process be killed
    lock = _claimed(folder)
    try:
        try:
            _write(folder, stream, buffers)
            if shared is not None:
                with open(folder / "answers", "wb") as file:
                    _allocate(file.fileno(), n_answers)
        except OSError as error:
            raise _full(folder.parent, room, error) from error
        yield Handed(str(folder), shared)
        with suppress(OSError):  # some systems leave mapped files as they are
            (folder / "job").write_bytes(b"")  # workers that keep it mapped keep no memory
    finally:
        lock.close()  # Windows removes no file that is open
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():  # else the tracker removes it at the end, when no worker has it mapped any more
            resource_tracker.unregister(str(folder), "folder")


def _claimed(folder: Path) -> BinaryIO:
    """A file of the folder that is locked for as long as this process lives and has it open."""
    file = open(folder / "owner", "wb")  # noqa: SIM115 - open until the folder is gone
    with suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def _sweep() -> None:
    """Remove folders in memory whose process was killed together with what watched over them: they hold records."""
    with suppress(ImportError, OSError):
        import fcntl

        for owner in SHARED_MEMORY.glob(f"{PREFIX}*/owner"):
            with suppress(OSError), open(owner, "r+b") as file:  # another's, or in use
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(owner.parent, ignore_errors=True)


def _full(place: Path, n_bytes: int, error: OSError) -> StoreError:
    return StoreError(
        f"{place} has no space for the {n_bytes / 1e6:,.0f} MB that workers share ({error.strerror}); "
        "free space there, set TMPDIR to another folder, or use one worker"
    )


def _where(room: int) -> Path | None:
    """In memory if there is twice the room, else where temporary files go."""
    if SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free > 2 * room:
        return SHARED_MEMORY
    return None


def _write(folder: Path, stream: bytes, buffers: list[pickle.PickleBuffer]) -> None:
    parts = [memoryview(stream), *(buffer.raw() for buffer in buffers)]
    sizes = [part.nbytes for part in parts]
    np.save(folder / "sizes.npy", np.array(sizes, dtype=np.int64))
    with open(folder / "job", "wb") as file:
        for start, part in zip(_starts(sizes), parts, strict=True):
            file.seek(start)
            file.write(part)
        file.truncate(_starts([*sizes, 1])[-1])


def _allocate(file: int, n_bytes: int) -> None:
    """Make a file so large, with its space taken: a worker that maps a file beyond the space there is is killed."""
    os.truncate(file, n_bytes)
    if n_bytes and hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, n_bytes)


def _starts(sizes: list[int]) -> list[int]:
    """Where each part begins: at multiples of 64 bytes, as compiled loops like it."""
    padded = [-(-size // 64) * 64 for size in sizes]
    return [0, *np.cumsum(padded[:-1]).tolist()]


@lru_cache(maxsize=1)
def _read(folder: str) -> PreparedJob:
    sizes = np.load(Path(folder) / "sizes.npy").tolist()
    with open(Path(folder) / "job", "rb") as file:
        # What a worker changes stays its own.
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    _look_at(mapped)
    stream, *buffers = (mapped[start : start + size] for start, size in zip(_starts(sizes), sizes, strict=True))
    prepared = pickle.loads(stream, buffers=buffers)
    assert isinstance(prepared, PreparedJob)
    return prepared


def _look_at(mapped: memoryview) -> None:
    """Have all pages of a mapping counted as a worker's memory before it has done anything.

    Workers that grow after their first task are taken to lose memory, and others are started in their place, each of
    which imports everything anew; pages that are looked at one by one, as chunks need them, would be such a growth.
    """
    np.frombuffer(mapped, dtype=np.uint8)[:: mmap.PAGESIZE].max()
