"""Where finished chunks of training are kept so that no crash can take them.

A chunk is an uncompressed ``.npz`` (its checksum catches a flipped byte) named by the hash of everything that made
it: a file that exists is a chunk that is done, and one that belongs to something else has another name. Nothing is
ever pickled.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.errors import StoreError
from leakgauge.storing import make_folder, not_through_links, write_atomically

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ChunkStore:
    """Chunks in ``folder``, which is made when it is missing (mode 0700: it tells who was a member)."""

    folder: Path

    def __post_init__(self) -> None:
        if self.folder.is_symlink():
            raise StoreError(f"{self.folder} is a link, and leakgauge makes none; give another folder")
        make_folder(self.folder, "run folder")

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
