"""Where output goes: results to stdout, all else to stderr; colour only where a terminal shows it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from leakgauge.auditing import Verdict

STYLES = {"passes": "green", "fails": "red", "cannot tell": "yellow"}
MARKS = {"passes": "✓", "fails": "✗", "cannot tell": "?"}


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
    for line in message.splitlines():
        console.print(Text.assemble(("error: ", "bold red"), line), soft_wrap=True)


def remark(message: str) -> None:
    """Say something that is no result."""
    from rich.text import Text

    asides().print(Text(message), soft_wrap=True)


def is_watched() -> bool:
    """Whether somebody looks at stderr: a terminal, and no pipeline."""
    return sys.stderr.isatty() and not os.environ.get("CI")


def marked(verdict: Verdict) -> str:
    """A verdict with its mark, so that it does not depend on colour."""
    return f"{MARKS[verdict.value]} {verdict.value}"
