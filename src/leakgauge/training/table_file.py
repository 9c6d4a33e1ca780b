"""Tables of answers on disk: written part by part, opened without being read.

A table that is larger than memory is never in memory: parts are written to the file as they come, and the finished
file is mapped, so that a slice by model or by record reads what it needs. Answers are an ordinary ``.npy`` file.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.errors import StoreError
from leakgauge.models import AnswerKind
from leakgauge.training.store import write_atomically
from leakgauge.training.subsets import DenseSubsets, LeaveOneOut, Subsets

if TYPE_CHECKING:
    from leakgauge.training.table import PredictionTable


FORMAT = 1
BLOCK = 64 * 1024**2
"""Bytes of a mapped array that are read at a time."""


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
            self._file.seek(self._row * models.start)
            rest = np.ascontiguousarray(answers, dtype=np.float64).data.cast("B")
            while len(rest):  # a full disk takes a part first
                rest = rest[self._file.write(rest) :]

    def mapped(self) -> Floats:
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


def save(table: PredictionTable, folder: Path) -> None:
    """Write a table to a folder, which must not hold one yet.

    Raises:
        StoreError: there is something in the folder, or it cannot be written.
    """
    if (folder / "table.json").exists():
        raise StoreError(f"{folder} holds a table already; choose another folder or remove it")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StoreError(f"folder {folder} cannot be made ({error.strerror}); choose another") from error
    arrays: dict[str, NDArray[Any]] = {"seeds": table.seeds}
    if isinstance(table.subsets, LeaveOneOut):
        arrays["removed"] = table.subsets.removed
    else:
        arrays["members"] = np.packbits(table.members, axis=1)
    if table.query_index is not None:
        arrays["query_index"] = table.query_index
    about = {
        "format": FORMAT,
        "n_records": table.subsets.n_records,
        "kind": table.kind.value,
        "engine": table.engine,
        "failures": {str(model): reason for model, reason in table.failures.items()},
        "n_unconverged": table.n_unconverged,
    }
    write_atomically(folder / "answers.npy", lambda file: _write_array(file, table.answers))
    write_atomically(folder / "arrays.npz", lambda file: np.savez(file, allow_pickle=False, **arrays))
    # Last: a folder with this file is a whole table.
    write_atomically(folder / "table.json", lambda file: file.write(json.dumps(about, indent=1).encode()))


def load(folder: Path) -> PredictionTable:
    """Open a table; its answers are mapped, not read.

    Raises:
        StoreError: no table is there, or it is damaged.
    """
    from leakgauge.training.table import PredictionTable

    try:
        about = json.loads((folder / "table.json").read_text())
        if about["format"] != FORMAT:
            raise StoreError(f"{folder} holds a table of another version of leakgauge; make it again")
        answers = np.load(folder / "answers.npy", mmap_mode="r", allow_pickle=False)
        with open(folder / "arrays.npz", "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive)
        return PredictionTable(
            answers=answers,
            kind=AnswerKind(about["kind"]),
            subsets=_subsets(arrays, about["n_records"]),
            seeds=arrays["seeds"],
            engine=about["engine"],
            query_index=arrays.get("query_index"),
            failures={int(model): reason for model, reason in about["failures"].items()},
            n_unconverged=about["n_unconverged"],
        )
    except StoreError:
        raise
    except FileNotFoundError as error:
        raise StoreError(f"no table in {folder} ({Path(error.filename).name} is missing)") from None
    except Exception as error:  # a damaged file may make its parser raise anything
        raise StoreError(f"the table in {folder} is damaged ({type(error).__name__}); make it again") from None


def _subsets(arrays: dict[str, NDArray[Any]], n_records: int) -> Subsets:
    if "removed" in arrays:
        return LeaveOneOut(n_records, arrays["removed"])
    return DenseSubsets(np.unpackbits(arrays["members"], axis=1, count=n_records).astype(bool))


def _write_array(file: BinaryIO, array: Floats) -> None:
    """As ``numpy.save`` does, but what is mapped leaves memory again as soon as it is written."""
    header = {"descr": "<f8", "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(file, header)
    step = max(1, BLOCK // max(1, array[:1].nbytes))
    for start in range(0, len(array), step):
        file.write(np.ascontiguousarray(array[start : start + step], dtype="<f8").data)
        _release(array)
    if array.nbytes > BLOCK:
        file.flush()
        _drop_cache(file)


def _drop_cache(file: Any) -> None:
    """Let the system forget what was just written: else one look at the mapping may bring all of it into memory."""
    if hasattr(os, "posix_fadvise"):
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _release(array: Floats) -> None:
    """Let the system take back the pages of a mapped array; they are read again when they are looked at."""
    mapping = getattr(array, "_mmap", None)
    if isinstance(mapping, mmap.mmap) and hasattr(mapping, "madvise"):
        mapping.madvise(mmap.MADV_DONTNEED)
