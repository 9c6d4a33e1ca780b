"""``leakgauge reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakgauge.cli._options import at_least

if TYPE_CHECKING:
    from rich.table import Table

    from leakgauge.reproduce import Reproduction, Row

AGREEMENT = {True: "✓ yes", False: "✗ no", None: ""}


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Which published result. Without it: what there is.", show_default=False),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer models and records: minutes become seconds, intervals wider.")
    ] = False,
    workers: Annotated[
        int, typer.Option(metavar="N", callback=at_least(1), help="Processes. They change no number.")
    ] = 1,
    seed: Annotated[int, typer.Option(metavar="N", callback=at_least(0), help="Drives every random choice.")] = 0,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Folder for numbers (JSON) and picture (SVG); finished models are kept there too."
        ),
    ] = Path("leakgauge-reproduce"),
) -> None:
    """Compute published results anew and put the printed numbers beside them.

    Each row says whether the two agree, given the interval of ours, and if not, why that may be. Stopped and started
    again, it goes on where it was.

    [dim]Examples:[/dim]

        leakgauge reproduce
        leakgauge reproduce yeom-figure-2-eyedata
        leakgauge reproduce long-table-2 --quick --workers 2
    """
    from leakgauge.cli._console import complain, remark, results

    if name is None:
        results().print(_listed())
        return
    from leakgauge.reproduce import experiment

    chosen = experiment(name)
    try:
        outcome = chosen.run(quick=quick, seed=seed, workers=workers, folder=out)
    except KeyboardInterrupt:
        complain("stopped; start the same command again and it goes on where it was")
        raise typer.Exit(130) from None
    console = results()
    console.print(f"{outcome.title} ({outcome.source})", style="bold", markup=False)
    console.print(_table(outcome))
    for said in outcome.remarks:
        remark(said)
    numbers, picture = outcome.write(out)
    remark(f"Written: {numbers} and {picture}")


def _listed() -> Table:
    from rich.table import Table

    from leakgauge.reproduce import EXPERIMENTS

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("name", "source", "published", "data sets"):
        table.add_column(heading, no_wrap=heading == "name")
    for one in EXPERIMENTS:
        table.add_row(one.name, one.source, one.published, ", ".join(one.data))
    return table


def _table(outcome: Reproduction) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("what")
    for heading in ("published", "ours"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("agrees", no_wrap=True)
    table.add_column("note", style="dim")
    for row in outcome.rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> tuple[str, ...]:
    from rich.markup import escape

    published = "" if row.published is None else f"{row.published:.4g}"
    return escape(row.what), published, escape(_value(row)), AGREEMENT[row.agrees], escape(row.note)


def _value(row: Row) -> str:
    """Ours, with its interval where it hangs on a sample."""
    ours = row.ours
    if ours.confidence == 1:
        return f"{ours.value:.4g}"
    return f"{ours.value:.4g} [{ours.low:.3g}, {ours.high:.3g}]"
