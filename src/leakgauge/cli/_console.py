"""Where output goes: results to stdout, all else to stderr; colour only where a terminal shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakgauge.escaping import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from leakgauge.auditing import Verdict

STYLES = {"passes": "green", "fails": "red", "cannot tell": "yellow"}
MARKS = {"passes": "✓", "fails": "✗", "cannot tell": "?"}


def results() -> Console:
    """The console of results."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


def plain_table(*, show_header: bool = True) -> Table:
    """A table without lines."""
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=show_header)


def show_table(table: Table, console: Console) -> None:
    """Print a table and lose no character of it.

    Long words are broken where a column is too narrow for them; where the terminal is too narrow even for the longest
    words, lines run on beyond its edge, for the terminal to break.
    """
    from rich.measure import Measurement

    wide = console.options.update(max_width=10_000)
    for column in table.columns:
        column.overflow = "fold"
        if column.no_wrap:
            whole = (column.header, *column.cells) if table.show_header else tuple(column.cells)
            column.min_width = max((Measurement.get(console, wide, one).maximum for one in whole), default=0)
    least = Measurement.get(console, wide, table).minimum
    if least > console.width:
        table.width = least
    console.print(table, crop=False)


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


def marked(verdict: Verdict) -> str:
    """A verdict with its mark, so that it does not depend on colour."""
    return f"{MARKS[verdict.value]} {verdict.value}"
