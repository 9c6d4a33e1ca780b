"""Answers that were paid for, kept so that no crash can take them and no query is sent twice.

One file for each request, written whole or not at all before its answers are used. Its first line is the checksum of
the second, which holds the keys of the rows and what was answered about them. Keys are hashes: of the endpoint, of the
way it was asked, of the row and of how often the row was asked before.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leakgauge.errors import StoreError
from leakgauge.storing import not_through_links, refuse_links, write_atomically

log = logging.getLogger(__name__)

FOLDER = "answers"
"""Of the run folder."""


class KeptAnswers:
    """What one endpoint answered, by key: in memory, and in a folder where there is one.

    Args:
        identity: of the endpoint and of the way it is asked, hexadecimal digits.
        folder: made with the first answer (mode 0700); ``None`` keeps nothing on disk.

    Raises:
        StoreError: the folder cannot be read, or is a link.
    """

    def __init__(self, identity: str, folder: Path | None) -> None:
        self.identity, self.folder = identity, folder
        self._answers: dict[str, Any] = {}
        if folder is not None:
            if folder.is_symlink():
                raise StoreError(f"{folder} is a link, and leakgauge makes none; give another folder")
            refuse_links(folder)
            for path in sorted(folder.glob(f"{identity[:16]}-*.json")):
                self._answers |= _read(path)

    def __contains__(self, key: str) -> bool:
        """Whether it was answered."""
        return key in self._answers

    def __getitem__(self, key: str) -> Any:
        """The answer."""
        return self._answers[key]

    def keep(self, keys: Sequence[str], answers: Sequence[Any]) -> None:
        """Keep what was answered to one request; on disk before this returns.

        Raises:
            StoreError: the folder cannot be made or written.
        """
        if self.folder is not None:
            _make(self.folder)
            content = json.dumps({"keys": list(keys), "answers": list(answers)}, separators=(",", ":")).encode()
            name = f"{self.identity[:16]}-{hashlib.sha256(''.join(keys).encode()).hexdigest()[:32]}.json"
            text = hashlib.sha256(content).hexdigest().encode() + b"\n" + content
            write_atomically(self.folder / name, lambda file: file.write(text))
        self._answers |= dict(zip(keys, answers, strict=True))

    def key(self, row: Sequence[Any], turn: int) -> str:
        """Of a row, asked for the first time (0) or again (1)."""
        text = json.dumps([self.identity, turn, row], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StoreError(f"folder {folder} cannot be made ({error.strerror}); choose another") from None


def _read(path: Path) -> dict[str, Any]:
    """The answers in a file; none of one that is damaged."""
    try:
        with open(path, "rb", opener=not_through_links) as file:
            checksum, _, content = file.read().partition(b"\n")
        if hashlib.sha256(content).hexdigest().encode() != checksum:
            raise ValueError("another checksum")
        held = json.loads(content)
        return dict(zip(held["keys"], held["answers"], strict=True))
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror}); choose another folder") from None
    except Exception as error:  # a damaged file may make its parser raise anything
        log.warning("%s is damaged (%s), and its queries are sent again", path.name, type(error).__name__)
        return {}
