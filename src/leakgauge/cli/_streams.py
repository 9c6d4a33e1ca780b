"""Standard output and error that a closed pipe cannot break: the exit code is the verdict's, whoever reads it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TextIO


class Lasting:
    """A stream that goes on without a reader: what is written after the pipe was closed is dropped.

    Args:
        stream: the one behind.
        dropped: what else ends it: of standard error anything, for where could it be told?
    """

    def __init__(self, stream: TextIO, dropped: type[OSError] = BrokenPipeError) -> None:
        self.stream = stream
        self.dropped = dropped

    def write(self, text: str) -> int:
        """Write text, if anybody reads it."""
        try:
            self.stream.write(text)
        except self.dropped:
            drop(self.stream)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each of the lines."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush, if anybody reads it."""
        try:
            self.stream.flush()
        except self.dropped:
            drop(self.stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def drop(stream: TextIO) -> None:
    """Lead a stream to nowhere, so that what it still holds breaks nothing when the interpreter ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextmanager
def lasting_streams() -> Iterator[None]:
    """Standard output and error as :class:`Lasting`; one that was closed from the start leads to nowhere."""
    before = sys.stdout, sys.stderr
    with ExitStack() as opened:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name) or opened.enter_context(open(os.devnull, "w"))
            if hasattr(stream, "reconfigure"):  # a terminal without Unicode shall see "?", not a crash
                stream.reconfigure(errors="replace")
            setattr(sys, name, Lasting(stream, OSError if name == "stderr" else BrokenPipeError))
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
