"""What stands in a pickle, without opening it.

A pickle is a program whose instructions name functions and classes of any module: these are its globals. Reading them
is no check, since a name can be hidden; who made the file is what matters.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import pickletools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from leakgauge.errors import ModelError

_MOST_NAMED = 30
"""Globals that are listed; a file may name any number."""

_UNPACKED: tuple[tuple[bytes, Callable[..., Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ", lzma.open),
    (b"\x5d\x00", lzma.open),
)
"""How joblib compresses, by the first bytes; beside zlib, which needs a class of its own."""


@dataclass(frozen=True)
class PickleFile:
    """A pickle that was looked at and not opened.

    Args:
        path: where it is.
        sha256: of the file.
        names: the globals that were found, in the order of the file, each once.
        whole: whether it was read to the end; joblib puts numbers between the instructions, where reading ends.
    """

    path: Path
    sha256: str
    names: tuple[str, ...]
    whole: bool

    def __str__(self) -> str:
        shown = [name[:200] for name in self.names[:_MOST_NAMED]]
        more = len(self.names) - len(shown)
        listed = ", ".join([*shown, *([f"{more:,} more"] if more else [])]) or "none"
        rest = "" if self.whole else " up to its first array, and perhaps others after it"
        return f"{self.path.name} (sha256 {self.sha256}) is a pickle; its globals are {listed}{rest}"


def looked_at(path: Path) -> PickleFile:
    """A pickle as `pickletools` reads it, which runs nothing of it.

    Raises:
        ModelError: the file cannot be read.
    """
    found: dict[str, None] = {}
    whole = True
    try:
        with path.open("rb") as file:
            try:
                for name in _globals(_unpacked(file)):
                    if name is None:
                        whole = False
                        break
                    found.setdefault(name)
            except Exception:  # what is no pickle, or is damaged, raises whatever was met first
                whole = False
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"model file {path} cannot be read ({error.strerror})") from None
    return PickleFile(path, digest, tuple(found), whole)


def _unpacked(file: IO[bytes]) -> Any:
    head = file.read(5)
    file.seek(0)
    if head[:1] == b"x":
        from joblib.compressor import BinaryZlibFile

        return BinaryZlibFile(file)
    return next((opened(file) for start, opened in _UNPACKED if head.startswith(start)), file)


def _globals(file: IO[bytes]) -> Iterator[str | None]:
    """The names in the instructions; ``None`` where joblib's first array begins."""
    texts: list[str] = []
    memory: dict[Any, str] = {}
    for code, argument, _ in pickletools.genops(file):
        if code.name in ("GLOBAL", "INST"):
            texts.append(str(argument).replace(" ", "."))
            yield texts[-1]
        elif code.name == "STACK_GLOBAL":
            yield ".".join(texts[-2:])
            texts.append("")
        elif code.name == "MEMOIZE":
            memory[len(memory)] = texts[-1] if texts else ""
        elif code.name in ("PUT", "BINPUT", "LONG_BINPUT"):
            memory[argument] = texts[-1] if texts else ""
        elif code.name in ("GET", "BINGET", "LONG_BINGET"):
            texts.append(memory.get(argument, "?"))
        elif isinstance(argument, str):
            texts.append(argument)
        elif code.name == "BUILD" and "NumpyArrayWrapper" in texts:
            yield None
        del texts[:-1000]
