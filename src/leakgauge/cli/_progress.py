"""How far a command is: a bar on a terminal, lines elsewhere, and a log file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from leakgauge.progress import Stage

Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print no progress and no result, only errors; the exit code counts.")
]
Verbose: TypeAlias = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print a line for each stage, in place of a bar.")
]
LogFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--log-file", metavar="FILE", help="Append the stages, with times, and the end to this file."),
]

SECONDS_OF_SILENCE = 10.0
"""Where there is no terminal, what is done sooner prints no progress."""

Log: TypeAlias = Callable[[str], None]


@contextmanager
def logged(log_file: Path | None, command: str) -> Iterator[Log]:
    """Something to write lines into a log file with; the last of them says how the command ended."""
    from datetime import UTC, datetime

    from leakgauge._version import __version__
    from leakgauge.errors import ConfigError, LeakgaugeError
    from leakgauge.escaping import one_line

    if log_file is None:
        yield lambda _: None
        return
    try:
        file = log_file.open("a", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ConfigError(f"--log-file: {log_file} cannot be written ({error.strerror}); name another file") from None
    with file:

        def log(line: str) -> None:
            print(f"{datetime.now(UTC).isoformat(timespec='seconds')} {one_line(line)}", file=file, flush=True)

        log(f"leakgauge {__version__} {command}")
        try:
            yield log
        except BaseException as error:  # Ctrl-C too
            log(f"error: {error}" if isinstance(error, LeakgaugeError) else f"ended by {type(error).__name__}")
            raise


@contextmanager
def followed(log: Log, *, quiet: bool, verbose: bool, first: str = "reading") -> Iterator[Stage]:
    """What to call with stage, parts done and parts in all: it tells the log, and who looks."""
    from leakgauge.cli._console import remark
    from leakgauge.progress import in_lines, on_terminal, reported

    if quiet and verbose:
        raise typer.BadParameter("give either --quiet or --verbose")
    with ExitStack() as open_bar:
        stages: list[Stage | None] = [in_lines(log, first=first)]
        if verbose:
            stages.append(in_lines(remark, first=first))
        elif not quiet and on_terminal():
            stages.append(open_bar.enter_context(reported(True, first=first)))
        elif not quiet:
            stages.append(in_lines(remark, first=first, patience=SECONDS_OF_SILENCE))

        def tell(stage: str, done: int, total: int) -> None:
            for one in filter(None, stages):
                one(stage, done, total)

        yield tell
