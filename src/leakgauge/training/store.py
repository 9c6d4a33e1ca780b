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
from contextlib import suppress
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
        if self.folder.is_symlink():
            raise StoreError(f"{self.folder} is a link, and what it points to is not ours; remove it")
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StoreError(f"run folder {self.folder} cannot be made ({error.strerror}); choose another") from None

    def path(self, name: str) -> Path:
        """The file of the chunk ``name``."""
        return self.folder / f"{name}.npz"

    def load(self, name: str) -> tuple[NDArray[np.float64], dict[str, Any]] | None:
        """The answers and the notes of a chunk, or ``None`` when it is not there or is damaged."""
        path = self.path(name)
        try:
            with open(path, "rb", opener=not_through_links) as file, np.load(file, allow_pickle=False) as archive:
                return archive["answers"], json.loads(archive["notes"].tobytes().decode())
        except FileNotFoundError:
            return None
        except Exception as error:  # a damaged file may make its parser raise anything
            log.warning("chunk %s is damaged (%s) and is computed again", path.name, type(error).__name__)
            return None

    def save(self, name: str, answers: NDArray[np.float64], notes: dict[str, Any]) -> None:
        """Store a chunk: whole or not at all, and on disk before this returns."""
        text = np.frombuffer(json.dumps(notes).encode(), dtype=np.uint8)
        write_atomically(self.path(name), lambda file: np.savez(file, answers=answers, notes=text))


def not_through_links(path: str, flags: int) -> int:
    """An opener of files that refuses a link in place of the file itself."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def litter(folder: Path) -> list[Path]:
    """The files that a killed process left half written in a folder, as :func:`write_atomically` names them."""
    with os.scandir(folder) as entries:
        return [
            folder / entry.name
            for entry in entries
            if entry.name.startswith(".") and entry.name.endswith(".part") and entry.is_file(follow_symlinks=False)
        ]


def refuse_links(folder: Path) -> None:
    """Refuse a folder of ours in which somebody has put links, or pipes and devices: reading or writing goes astray.

    Raises:
        StoreError: there is one in it, or it cannot be listed. A folder that is not there is not refused.
    """
    try:
        with os.scandir(folder) as entries:
            links = [entry.name for entry in entries if not _is_plain(entry)]
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StoreError(f"folder {folder} cannot be read ({error.strerror}); choose another") from None
    if links:
        raise StoreError(f"{folder / links[0]} is a link or no file at all, and none of ours; remove it")


def _is_plain(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)


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
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if not isinstance(error, OSError):
            raise
        raise StoreError(
            f"{path} cannot be written ({error.strerror or error}); free space or choose another folder"
        ) from error


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
