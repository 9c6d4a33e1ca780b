"""The entry point: all commands, and what becomes of errors.

Exit codes are a contract: 0 passes, 1 fails the release rule, 2 bad input or usage, 3 cannot tell, 4 internal error,
130 stopped by Ctrl-C.

Nothing heavy is imported here or in the modules of the commands: ``leakgauge --help`` must not wait for NumPy.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import cleandoc
from typing import Annotated, Any

import typer

from leakgauge._version import __version__
from leakgauge.cli import (
    audit,
    canaries,
    compare,
    convert,
    explain,
    gate,
    init,
    inspect,
    protect,
    reconstruct,
    records,
    report,
    reproduce,
    schema,
    sign,
    verify,
    versions,
)
from leakgauge.cli._console import complain
from leakgauge.cli._streams import lasting_streams
from leakgauge.errors import LeakgaugeError, UserCodeError, place_of
from leakgauge.escaping import one_line

_OUTSIDE = (
    "EACCES EPERM EROFS ENOSPC EDQUOT EFBIG EIO ENAMETOOLONG ENOTDIR EISDIR ELOOP EMFILE ENFILE"  # not everywhere all
)
OUTSIDE = {getattr(errno, name, None) for name in _OUTSIDE.split()} - {None}
"""What the system refuses for reasons outside: no space, no permission, a name too long."""

COMPLETING = "_LEAKGAUGE_COMPLETE"
"""The variable by which the completion of a shell asks for possible words."""

BAD_INPUT = 2
INTERNAL = 4
STOPPED = 130


def _unwrapped(command: Callable[..., Any]) -> str:
    """The docstring of a command with each paragraph on one line, so that the terminal can wrap it; examples stay."""
    paragraphs = cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(text if text.startswith(" ") else " ".join(text.split("\n")) for text in paragraphs)


app = typer.Typer(
    name="leakgauge",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (
    init.init,
    audit.audit,
    report.report,
    gate.gate,
    compare.compare,
    records.records,
    explain.explain,
    convert.convert,
    inspect.inspect,
    protect.protect,
    reconstruct.reconstruct,
    reproduce.reproduce,
    schema.schema,
    sign.sign,
    verify.verify,
    versions.versions,
):
    app.command(help=_unwrapped(_command))(_command)
_with_canaries = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
_with_canaries.command(help=_unwrapped(canaries.make))(canaries.make)
_with_canaries.command(help=_unwrapped(canaries.measure))(canaries.measure)
_with_canaries.callback()(canaries.canaries)
app.add_typer(_with_canaries, name="canaries", help=_unwrapped(canaries.canaries))

_UsageError: Any = typer.BadParameter.__mro__[1]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"leakgauge {__version__}")
        raise typer.Exit


@app.callback()
def leakgauge(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; it may hold values of records.")
    ] = False,
) -> None:
    """Measure what a trained model reveals about its training records, and decide whether to release it.

    Exit codes: 0 passes, 1 fails, 2 bad input, 3 cannot tell, 4 internal error.

    Start with:  [bold]leakgauge audit breast-cancer[/bold]
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Args:
        arguments: those of the command line; by default the process's own.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if COMPLETING in os.environ:
        return _complete()
    debug = "--debug" in given
    with warnings.catch_warnings(), lasting_streams(), interrupts() as interrupted:
        if debug:
            return _guarded(given, debug, interrupted)
        with _quiet():
            warnings.simplefilter("ignore")
            return _guarded(given, debug, interrupted)


def _complete() -> int:
    """What a shell asks for that completes a command line; whatever is wrong completes nothing."""
    try:
        app(prog_name="leakgauge")
    except SystemExit as end:
        return int(bool(end.code))
    return 0


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what Python itself says of other people's code, which may hold values of records, off stderr.

    Worker processes read the variable when they start.
    """
    hook, known = sys.unraisablehook, os.environ.get("PYTHONWARNINGS")
    sys.unraisablehook = lambda _: None
    warnings.showwarning = lambda *_, **__: None  # what catch_warnings puts right again
    os.environ["PYTHONWARNINGS"] = "ignore"
    try:
        yield
    finally:
        sys.unraisablehook = hook
        del os.environ["PYTHONWARNINGS"]
        if known is not None:
            os.environ["PYTHONWARNINGS"] = known


@contextmanager
def interrupts() -> Iterator[list[bool]]:
    """Take note of Ctrl-C: a list that is not empty once it was pressed, whatever became of the KeyboardInterrupt.

    Libraries that are interrupted while they are imported raise errors of their own.
    """
    noted: list[bool] = []

    def note(signum: int, frame: object) -> None:
        noted.append(True)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one changes nothing: the command is ending
        raise KeyboardInterrupt

    usual = signal.getsignal(signal.SIGINT)
    mine = usual is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if mine:
        signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        if mine and not noted:
            signal.signal(signal.SIGINT, usual)


def _guarded(given: list[str], debug: bool, interrupted: list[bool]) -> int:
    try:
        code = int(app(given, prog_name="leakgauge", standalone_mode=False) or 0)
        sys.stdout.flush()  # a full disk is an error to be told, and not one of the interpreter's end
        return code
    except (KeyboardInterrupt, typer.Abort):
        complain("stopped")
        return STOPPED
    except BaseException as error:  # a SystemExit of the user's code must not become the exit code
        if interrupted:
            complain("stopped")
            return STOPPED
        return _told(error, debug)


def _told(error: BaseException, debug: bool) -> int:
    """Say what was wrong; the exit code."""
    _show_traceback(error, debug and not isinstance(error, _UsageError))
    if not isinstance(error, Exception):  # nothing of ours raises one
        error = UserCodeError(f"the code of a model or of a library raised {type(error).__name__}")
    if isinstance(error, UserCodeError):
        complain(f"{error}; its message may quote records and is not shown (leakgauge --debug shows it)")
    elif isinstance(error, LeakgaugeError):
        complain(str(error))
    elif isinstance(error, _UsageError):
        complain(f"{error.format_message().rstrip('.')}; see leakgauge {_command_of(error)}--help")
    elif isinstance(error, OSError) and error.errno in OUTSIDE:
        where = f" ({error.filename})" if error.filename else ""
        complain(f"{error.strerror}{where}; free space, check permissions, or choose another place")
    elif isinstance(error, MemoryError):
        complain("out of memory; give fewer records, shadow models or workers")
    else:
        hint = "" if debug else "; leakgauge --debug ... shows the traceback, which may hold values of records"
        complain(f"internal error ({place_of(error)}){hint}")
        return INTERNAL
    return BAD_INPUT


def _show_traceback(error: BaseException, wanted: bool) -> None:
    """Print the traceback of an error and of those it came from, if that is wanted."""
    if not wanted:
        return

    complain("--debug: the traceback may hold values of records; do not pass it on unread")
    cause: BaseException | None = error
    while cause is not None:
        cause.__suppress_context__ = False  # what is raised `from None` shows its origin here alone
        cause = cause.__cause__ or cause.__context__
    for line in "".join(traceback.format_exception(error)).splitlines():
        print(one_line(line), file=sys.stderr)


def _command_of(error: Any) -> str:
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "") if context is not None else ""
    return "".join(f"{part} " for part in path.split()[1:])
