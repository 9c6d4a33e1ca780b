"""Where finished chunks of training are kept so that no crash can take them.

A chunk is an uncompressed ``.npz`` (its checksum catches a flipped byte) named by the hash of everything that made
it: a file that exists is a chunk that is done, and one that belongs to something else has another name. Nothing is
ever pickled.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.errors import StoreError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ChunkStore:
    """Chunks in ``folder``, which is made when it is missing (mode 0700: it tells who was a member)."""

    folder: Path

    def __post_init__(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StoreError(f"run folder {self.folder} cannot be made ({error.strerror}); choose another") from error

    def path(self, name: str) -> Path:
        """The file of the chunk ``name``."""
        return self.folder / f"{name}.npz"

    def load(self, name: str) -> tuple[NDArray[np.float64], dict[str, Any]] | None:
        """The answers and the notes of a chunk, or ``None`` when it is not there or is damaged."""
        path = self.path(name)
        try:
            with np.load(path, allow_pickle=False) as archive:
                return archive["answers"], json.loads(archive["notes"].tobytes().decode())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            log.warning("chunk %s is damaged (%s) and is made again", path.name, error)
            return None

    def save(self, name: str, answers: NDArray[np.float64], notes: dict[str, Any]) -> None:
        """Store a chunk: whole or not at all, and on disk before this returns."""
        text = np.frombuffer(json.dumps(notes).encode(), dtype=np.uint8)
        write_atomically(self.path(name), lambda file: np.savez(file, answers=answers, notes=text))

    def sweep(self) -> None:
        """Remove what a killed process left half written."""
        for litter in self.folder.glob(".*.part"):
            litter.unlink(missing_ok=True)


def write_atomically(path: Path, write: Any) -> None:
    """Write a file through a temporary name, fsynced and renamed, readable by its owner alone.

    Args:
        path: the file.
        write: called with the open binary file.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _fsync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StoreError(
            f"{path} cannot be written ({error.strerror or error}); free space or choose another folder"
        ) from error


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
