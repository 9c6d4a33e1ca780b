from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable

import pytest
import typer.main

from leakgauge.cli.main import app

TOP = typer.main.get_command(app).commands  # type: ignore[attr-defined]
COMMANDS = {name: one for name, one in TOP.items() if not hasattr(one, "commands")}
COMMANDS |= {f"{name} {inner}": one for name in TOP.keys() - COMMANDS for inner, one in TOP[name].commands.items()}

HEAVY = (
    "numpy",
    "scipy",
    "sklearn",
    "pandas",
    "polars",
    "pyarrow",
    "narwhals",
    "joblib",
    "jinja2",
    "pydantic",
    "skops",
)


@pytest.mark.parametrize("arguments", [["--help"], ["audit", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    """Not a time, which depends on the machine, but its cause: what is imported before help is printed."""
    program = (
        "import sys\nfrom leakgauge.cli.main import main\n"
        f"code = main({arguments!r})\n"
        "print('IMPORTED', *{name.split('.')[0] for name in sys.modules})\n"
        "print('OURS', *(name for name in sys.modules if name.startswith('leakgauge.')))\n"
        "sys.exit(code)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = next(line for line in run.stdout.splitlines() if line.startswith("IMPORTED")).split()
    ours = next(line for line in run.stdout.splitlines() if line.startswith("OURS")).split()[1:]
    allowed = set() if arguments[0].startswith("-") else {"pydantic"}  # typer reads a command's options with it
    assert not (set(HEAVY) - allowed) & set(imported)
    assert {name.split(".")[1] for name in ours} == {"_version", "cli", "errors", "escaping"}


def test_there_are_the_promised_commands() -> None:
    assert set(TOP) == {
        "audit",
        "canaries",
        "compare",
        "convert",
        "report",
        "gate",
        "records",
        "explain",
        "init",
        "inspect",
        "protect",
        "reconstruct",
        "reproduce",
        "schema",
        "sign",
        "verify",
        "versions",
    }


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_with_an_invocation(name: str, cli: Callable) -> None:
    command = COMMANDS[name]
    assert command.help, f"{name} is missing its help"
    assert f"leakgauge {name} " in command.help, f"the help of {name} shows no invocation"
    printed = cli(*name.split(), "--help")
    assert printed.code == 0
    assert f"leakgauge {name} " in printed.out


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_has_help(name: str) -> None:
    for parameter in COMMANDS[name].params:
        assert getattr(parameter, "help", None), f"{name} {parameter.name} is missing its help"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_one_file_for_each_command(name: str) -> None:
    callback = inspect.unwrap(COMMANDS[name].callback)
    assert callback.__module__ == f"leakgauge.cli.{name.split()[0]}"


def test_the_invocations_in_the_help_can_be_parsed(cli: Callable) -> None:
    """Every example names options that exist: only what it works on may be missing."""
    for name, command in COMMANDS.items():
        examples = [line.strip() for line in command.help.splitlines() if line.startswith("    ")]
        assert examples
        for example in examples:
            words = example.partition(" > ")[0].split()[1 + len(name.split()) :]
            with command.make_context(name, words, resilient_parsing=False) as context:
                assert context.params


def test_the_version(cli: Callable) -> None:
    from leakgauge import __version__

    assert cli("--version").out == f"leakgauge {__version__}\n"


def test_no_arguments_print_help(cli: Callable) -> None:
    printed = cli()
    assert "Usage: leakgauge" in printed.out + printed.err
