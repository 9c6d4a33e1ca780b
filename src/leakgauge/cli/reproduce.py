"""``leakgauge reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakgauge.cli._options import at_least

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from leakgauge.reproduce import Reproduction, Row

AGREEMENT = {True: "✓ yes", False: "✗ no", None: ""}

WIDTH_FOR_NOTES = 120
"""Columns of a terminal from which on notes stand in the table; on a narrower one they follow it, numbered."""


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="The published result. Without it: the list of results.", show_default=False
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer models and records: seconds instead of minutes, wider intervals.")
    ] = False,
    workers: Annotated[
        int,
        typer.Option(metavar="N", callback=at_least(1), help="Worker processes. Results do not depend on this number."),
    ] = 1,
    seed: Annotated[int, typer.Option(metavar="N", callback=at_least(0), help="Seed of all random numbers.")] = 0,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Folder for numbers (JSON) and picture (SVG); finished models are kept there too."
        ),
    ] = Path("leakgauge-reproduce"),
) -> None:
    """Recompute published results and compare them with the printed numbers.

    Each row states whether the two agree, given the interval of ours, and if not, a possible reason. Where a paper
    prints no number, a reference has a column of its own, with its origin; printed numbers, printed sentences and
    references are counted separately, and the last line counts all rows. On a narrow terminal notes are numbered and
    follow the table. An interrupted run continues where it stopped.

    [dim]Examples:[/dim]

        leakgauge reproduce
        leakgauge reproduce yeom-figure-2-eyedata
        leakgauge reproduce long-table-2 --quick --workers 2
    """
    from leakgauge.cli._console import complain, remark, results
    from leakgauge.report.terminal import show_table

    if name is None:
        show_table(_listed(), results())
        return
    from leakgauge.report.words import capital
    from leakgauge.reproduce import experiment
    from leakgauge.training import Execution

    chosen = experiment(name)
    try:
        outcome = chosen.run(quick=quick, seed=seed, execution=Execution(out, workers))
    except KeyboardInterrupt:
        complain("stopped; run the same command again to continue")
        raise typer.Exit(130) from None
    console = results()
    console.print(f"{outcome.title} ({outcome.source})", style="bold", markup=False)
    if console.width < WIDTH_FOR_NOTES:
        notes = _notes(outcome)
        show_table(_table(outcome, notes), console)
        if notes:
            show_table(_numbered(notes), console)
    else:
        show_table(_table(outcome), console)
    for against, counts in outcome.agreement.items():
        console.print(f"{capital(against)}: {counts.agree} of {counts.compared} rows agree.", markup=False)
    origins = _origins(outcome)
    if len(origins) == 1:
        console.print(f"References: {origins.pop()}.", markup=False)
    for said in outcome.remarks:
        remark(said)
    numbers, picture = outcome.write(out)
    remark(f"Written: {numbers} and {picture}")
    console.print(_in_all(outcome), markup=False)


def _listed() -> Table:
    from leakgauge.report.terminal import plain_table
    from leakgauge.reproduce import EXPERIMENTS

    table = plain_table()
    for heading in ("name", "source", "published", "data sets"):
        table.add_column(heading, no_wrap=heading == "name")
    for one in EXPERIMENTS:
        table.add_row(one.name, one.source, one.published, ", ".join(one.data))
    return table


def _table(outcome: Reproduction, notes: Sequence[str] | None = None) -> Table:
    """The rows; a column of printed numbers, or of references, only where there are any.

    Args:
        outcome: whose rows they are.
        notes: those that follow the table, of which rows then have the number; by default they stand in the rows.
    """
    from leakgauge.report.terminal import plain_table

    columns = [
        name for name in ("published", "reference") if any(getattr(row, name) is not None for row in outcome.rows)
    ]
    table = plain_table()
    table.add_column("what")
    for heading in (*columns, "ours"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("agrees", no_wrap=True)
    table.add_column("note", style="dim", justify="left" if notes is None else "right")
    for row, note in zip(outcome.rows, _said(outcome), strict=True):
        shown = note if notes is None or not note else str(notes.index(note) + 1)
        table.add_row(*_cells(row, columns, shown))
    return table


def _said(outcome: Reproduction) -> list[str]:
    """What there is to know about each row, or nothing; with the origin of its reference where there are several."""
    name_origin = len(_origins(outcome)) > 1
    return [
        "; ".join(filter(None, [row.note, f"reference {row.origin}" if name_origin and row.origin else ""]))
        for row in outcome.rows
    ]


def _notes(outcome: Reproduction) -> list[str]:
    """The notes, each once, in the order of the rows."""
    return list(dict.fromkeys(filter(None, _said(outcome))))


def _numbered(notes: Sequence[str]) -> Table:
    """Notes after the table."""
    from rich.markup import escape

    from leakgauge.report.terminal import plain_table

    table = plain_table(show_header=False)
    table.add_column("number", justify="right", no_wrap=True)
    table.add_column("note", style="dim")
    for number, note in enumerate(notes, start=1):
        table.add_row(f"{number}", escape(note))
    return table


def _in_all(outcome: Reproduction) -> str:
    """The closing line."""
    counts = outcome.agreement.values()
    n_compared = sum(one.compared for one in counts)
    others = len(outcome.rows) - n_compared
    rest = f"; {others} {'is' if others == 1 else 'are'} not compared" if others else ""
    return f"In all, {sum(one.agree for one in counts)} of {n_compared} rows agree{rest}."


def _origins(outcome: Reproduction) -> set[str]:
    """Where references come from; where there are several, each row names its own."""
    return {row.origin for row in outcome.rows if row.origin}


def _cells(row: Row, columns: list[str], note: str) -> tuple[str, ...]:
    from rich.markup import escape

    from leakgauge.report.words import short

    numbers = (getattr(row, name) for name in columns)
    beside = ("" if value is None else short(value) for value in numbers)
    return escape(row.what), *beside, escape(_value(row)), AGREEMENT[row.agrees], escape(note)


def _value(row: Row) -> str:
    """Ours, with its interval where it hangs on a sample."""
    from leakgauge.report.words import short

    ours = row.ours
    if ours.confidence == 1:
        return short(ours.value)
    return f"{short(ours.value)} [{short(ours.low, 3)}, {short(ours.high, 3)}]"
