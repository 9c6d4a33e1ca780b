"""What every case is held against: exit codes, one line for an error, no value of a record, half a minute at most.

Tables hold values that begin with ``zq`` and numbers that begin with 7319.47, which occur nowhere else: where they turn
up in what a command prints or writes, other than in a file that is meant to hold them, a cell was shown.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import typer

from leakgauge.cli import main as command_line
from leakgauge.errors import LeakgaugeError, place_of
from leakgauge.models import files

COMMAND = typer.main.get_command(command_line.app)
"""All commands, made once: to make them takes longer than most cases."""

LONGEST = 30.0
"""Seconds that a command or a call may take."""

MARKER = re.compile(r"(?<![a-z0-9+])zq\w*|7319\.47\d*", re.I)
"""What is in cells and ids, and nowhere else; within a longer word it is part of a key or a checksum."""

CLASS = re.compile(r"(?<![a-z0-9+])kq\w*", re.I)
"""Classes and groups, which a report names and an error does not."""

FOREIGN = re.compile(
    r"Traceback|object has no attribute|could not convert string|invalid literal|"
    r"not supported between|unhashable|index \d+ is out of bounds|'NoneType'|<class '|object at 0x|"
    r"\[Errno|pydantic|shape mismatch|could not be broadcast|\bdtype\("
)
"""Words of Python and of libraries, in place of ours."""

OPEN = ("ids.csv",)
"""Files of a run folder that hold the ids of the user's own table."""

SHOWN_FILES = (".json", ".html", ".csv", ".md", ".svg", ".toml", ".txt", ".sha256")

CODES = {0: "passes", 1: "fails", 3: "cannot tell"}


@dataclass
class Defect(Exception):  # noqa: N818 - reads as what it is
    """Something that must not be.

    Args:
        kind: in a few words, for a table.
        details: what was called, and what it said.
    """

    kind: str
    details: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.details}"


@dataclass
class Printed:
    """What a command left behind."""

    code: int
    out: str
    err: str


@dataclass
class Trial:
    """One case: what it draws from, where it writes, and how it ended.

    Args:
        rng: all that the case draws.
        folder: an empty one of its own.
        ended: how the last command or call ended: a verdict, ``result``, ``clear error``.
    """

    rng: Random
    folder: Path
    ended: str = "clear error"
    calls: list[str] = field(default_factory=list)

    def leaky(self) -> bool:
        """Whether a rare thing is to be done."""
        return self.rng.random() < 0.1

    def write(self, name: str, content: str | bytes) -> Path:
        """A file of the case's folder."""
        path = self.folder / name
        path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
        return path

    def run(self, *arguments: object, shown: bool = False, told: str = "") -> Printed:
        """Run a command line in this process.

        Args:
            arguments: of the command line.
            shown: whether values of records are asked for.
            told: names that the user gave, in which a marker may stand.
        """
        given = [str(one) for one in arguments]
        out, err, start = io.StringIO(), io.StringIO(), time.perf_counter()
        path = list(sys.path)
        made_once = mock.patch.object(command_line, "app", COMMAND)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), made_once:
            try:
                code = command_line.main(given)
            except BaseException as error:
                raise Defect("traceback", f"{given}: {place_of(error)}: {error}") from error
            finally:
                sys.path[:] = path
                sys.modules.pop("zq_memorises", None)
                files._FOLDERS.clear()  # of cases before, which are gone
        printed = Printed(code, out.getvalue(), err.getvalue())
        self.calls.append(" ".join(given))
        self._judge(given, printed, time.perf_counter() - start, shown, told)
        self.ended = "clear error" if code == 2 else CODES[code]
        return printed

    def _judge(self, given: list[str], printed: Printed, seconds: float, shown: bool, told: str) -> None:
        said = f"{given} -> {printed.code}\n{printed.err[-1500:]}"
        if printed.code == 4:
            raise Defect("internal error", said)
        if printed.code not in (0, 1, 2, 3):
            raise Defect("exit code", said)
        if seconds > LONGEST:
            raise Defect("too slow", f"{seconds:.0f} s: {said}")
        both = printed.out + printed.err
        if FOREIGN.search(both.replace(told, "") if told else both):
            raise Defect("foreign words", f"{FOREIGN.search(both)}\n{said}")
        if printed.code == 2:
            last = printed.err.rstrip("\n").splitlines()[-1:] or [""]
            if not last[0].startswith("error: "):
                raise Defect("no clear line", said)
            self.hides(printed.err, said, told, CLASS)
        if not shown:
            self.hides(both, said, told)

    def hides(self, text: str, where: str, told: str = "", marker: re.Pattern[str] = MARKER) -> None:
        """No marker stands in a text, other than in names that were given."""
        found = [one for one in marker.findall(text.replace(str(self.folder), "")) if one not in told]
        if found:
            raise Defect("value shown", f"{found[:3]} in {where}")

    def hidden(self, folder: Path, told: str = "") -> None:
        """No marker stands in the files of a run folder that may be passed on."""
        for path in folder.rglob("*"):
            if path.is_file() and path.suffix in SHOWN_FILES and path.name not in OPEN and path.parent == folder:
                self.hides(path.read_text("utf-8", "replace"), path.name, told)

    def call(self, function: Callable[[], Any], what: str, told: str = "") -> Any:
        """Call the library; ``None`` where it refuses what it is given.

        Errors of leakgauge are what is promised; a `TypeError` of Python for a wrong number or name of arguments too.
        """
        start = time.perf_counter()
        self.calls.append(what)
        out = io.StringIO()
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                warnings.simplefilter("ignore")
                found = function()
        except LeakgaugeError as error:
            text = str(error)
            for marker in (MARKER, CLASS):
                self.hides(text, f"{what}: {text}", told, marker)
            if FOREIGN.search(text):
                raise Defect("foreign words", f"{what}: {text}") from error
            self.ended = "clear error"
            return None
        except BaseException as error:
            raise Defect("foreign exception", f"{what}: {place_of(error)}: {str(error)[:300]}") from error
        if time.perf_counter() - start > LONGEST:
            raise Defect("too slow", what)
        self.hides(out.getvalue(), what, told)
        self.ended = str(getattr(found, "verdict", "result"))
        return found
