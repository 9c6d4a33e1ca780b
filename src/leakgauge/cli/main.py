"""The entry point: all commands, and what becomes of errors.

Exit codes are a contract: 0 passes, 1 fails the release rule, 2 bad input or usage, 3 cannot tell, 4 internal error,
130 stopped by Ctrl-C.

Nothing heavy is imported here or in the modules of the commands: ``leakgauge --help`` must not wait for NumPy.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from leakgauge._version import __version__
from leakgauge.cli import audit, explain, gate, protect, records, report, reproduce, schema
from leakgauge.cli._console import complain
from leakgauge.errors import LeakgaugeError

BAD_INPUT = 2
INTERNAL = 4
STOPPED = 130


def _unwrapped(command: Callable[..., Any]) -> str:
    """The docstring of a command with each paragraph on one line, so that the terminal can wrap it; examples stay."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(text if text.startswith(" ") else " ".join(text.split("\n")) for text in paragraphs)


app = typer.Typer(
    name="leakgauge",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (
    audit.audit,
    report.report,
    gate.gate,
    records.records,
    explain.explain,
    protect.protect,
    reproduce.reproduce,
    schema.schema,
):
    app.command(help=_unwrapped(_command))(_command)

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
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an internal error.")] = False,
) -> None:
    """Measure what a trained model gives away about the people it was trained on, and decide whether to release it.

    Exit codes: 0 passes, 1 fails, 2 bad input, 3 cannot tell, 4 internal error.

    Start with:  [bold]leakgauge audit breast-cancer[/bold]
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Args:
        arguments: those of the command line; by default the process's own.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    debug = "--debug" in given
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without Unicode shall see "?", not a crash
            stream.reconfigure(errors="replace")
    with warnings.catch_warnings():
        if not debug:
            warnings.simplefilter("ignore")
        return _guarded(given, debug)


def _guarded(given: list[str], debug: bool) -> int:
    try:
        return int(app(given, prog_name="leakgauge", standalone_mode=False) or 0)
    except LeakgaugeError as error:
        complain(str(error))
        return BAD_INPUT
    except _UsageError as error:
        complain(f"{error.format_message().rstrip('.')}; see leakgauge {_command_of(error)}--help")
        return BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        complain("stopped")
        return STOPPED
    except Exception as error:
        if debug:
            raise
        complain(f"internal error ({type(error).__name__}: {_first_line(error)}); the traceback is in {_stored()}")
        return INTERNAL


def _command_of(error: Any) -> str:
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "") if context is not None else ""
    return "".join(f"{part} " for part in path.split()[1:])


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0]


def _stored() -> str:
    """Write the traceback of the exception being handled to a file that its owner alone can read."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="leakgauge-", suffix=".traceback", delete=False) as file:
        file.write(f"leakgauge {__version__}, Python {sys.version}\n{traceback.format_exc()}")
    return f"{file.name} (or run again with: leakgauge --debug ...)"


def run() -> None:
    """The entry point of ``python -m leakgauge``."""
    sys.exit(main())


if __name__ == "__main__":
    run()
