"""Tables on a terminal, and text that is printed nowhere."""

from __future__ import annotations

import io
from collections.abc import Callable

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

STYLES = {"passes": "green", "fails": "red", "cannot tell": "yellow"}


def plain_table(*, show_header: bool = True) -> Table:
    """A table without lines."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=show_header)


def show_table(table: Table, console: Console) -> None:
    """Print a table and lose no character of it.

    Long words are broken where a column is too narrow for them; where the terminal is too narrow even for the longest
    words, lines run on beyond its edge, for the terminal to break.
    """
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


def text_of(show: Callable[[Console], None], width: int) -> str:
    """What would be printed on a terminal of so many columns, without colours and without spaces at the ends of lines.

    >>> text_of(lambda console: console.print("passes", style="green"), 20)
    'passes'
    """
    file = io.StringIO()
    show(Console(file=file, width=width, highlight=False, color_system=None, force_terminal=False, force_jupyter=False))
    return "\n".join(line.rstrip() for line in file.getvalue().split("\n")).strip("\n")
