"""Where output goes: results to stdout, all else to stderr; colour only where a terminal shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakgauge.escaping import one_line

if TYPE_CHECKING:
    from rich.console import Console


def results() -> Console:
    """The console of results."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


def asides() -> Console:
    """The console of progress and complaints."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def complain(message: str) -> None:
    """Say what was wrong, one line for each problem, never wrapped."""
    from rich.text import Text

    console = asides()
    for line in message.split("\n"):
        console.print(Text.assemble(("error: ", "bold red"), one_line(line)), soft_wrap=True)


def remark(message: str) -> None:
    """Say something that is no result."""
    from rich.text import Text

    asides().print(Text(one_line(message)), soft_wrap=True)
