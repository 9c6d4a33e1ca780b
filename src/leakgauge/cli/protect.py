"""``leakgauge protect``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakgauge.cli._options import AllowPickle, HoldoutRecords, Models, Seed, Source, TrainRecords, at_least, configured

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from leakgauge.protecting import Protection, Tried
    from leakgauge.statistics import Estimate


def protect(
    source: Source,
    model: Models = None,
    defence: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER",
            help="A defence to try: penalty=FACTOR, earlier-stop=FACTOR, binning=WIDTH, temperature=T, labels-only, "
            "ensemble=PARTS, removal=LIMIT, noise=ETA, dp-sgd=EPSILON. The number is optional. Repeatable.",
            show_default="a few of every kind",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for protection.html, frontier.svg, protection.json, and the result of each audit.",
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder that keeps finished training, for each model and defence."),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(metavar="N", callback=at_least(1), help="Worker processes. Results do not depend on this number."),
    ] = 1,
    seed: Seed = None,
    train_records: TrainRecords = None,
    holdout_records: HoldoutRecords = None,
    allow_pickle: AllowPickle = False,
) -> int:
    """Try defences on models, and measure the effect and the cost of each.

    Every defended model is audited like the model itself, by attackers who know the defence. The cost is the increase
    of the log loss on the holdout, so that lost probabilities count. The intervals of all defences have simultaneous
    confidence. The exit code is that of the best verdict reached, for the model where that is worst.

    [dim]Examples:[/dim]

        leakgauge protect breast-cancer --model random-forest
        leakgauge protect breast-cancer --defence penalty=100 --defence labels-only --out defences
        leakgauge protect audit.toml --workers 2
    """
    from leakgauge.auditing.finding import overall
    from leakgauge.cli._console import complain, remark, results
    from leakgauge.progress import of_part, reported
    from leakgauge.protecting import named_defence
    from leakgauge.protecting import protect as protected
    from leakgauge.protecting.trying import kept_folder

    config = configured(source, model, seed, train_records, holdout_records, None, None)
    if allow_pickle:
        remark("Pickles are opened: code in the model files runs with your rights.")
    console, reached = results(), []
    subjects, settings = config.subjects(allow_pickle=allow_pickle), config.settings()
    chosen = [[named_defence(text, what, settings) for text in defence] if defence else None for what in subjects]
    folders = _folders(out, len(subjects))
    kept = None if run is None else kept_folder(run)
    try:
        for place, (what, defences, folder) in enumerate(zip(subjects, chosen, folders, strict=True)):
            with reported(True) as tell:
                found = protected(
                    what,
                    settings,
                    defences,
                    run=None if kept is None else kept / f"model-{place}",
                    workers=workers,
                    progress=of_part(what.name, tell),
                )
            _show(found, console)
            if folder is not None:
                console.print(f"Report: {_written(found, folder)}\n", markup=False, soft_wrap=True)
            reached.append(found.verdict)
    except KeyboardInterrupt:
        again = "run the same command again to continue" if run else "with --run finished training would be kept"
        complain(f"stopped; {again}")
        raise typer.Exit(130) from None
    return overall(reached).exit_code


def _folders(out: Path | None, n: int) -> list[Path | None]:
    """One for each model, made before anything is trained."""
    from leakgauge.protecting.document import prepare

    if out is None:
        return [None] * n
    return [prepare(out)] if n == 1 else [prepare(out / f"model-{place}") for place in range(n)]


def _written(found: Protection, folder: Path) -> Path:
    from leakgauge.protecting.document import write
    from leakgauge.report.protection import write_protection

    return write_protection(write(found, folder), folder)


def _show(found: Protection, console: Console) -> None:
    from leakgauge.cli._console import STYLES, remark, show_table
    from leakgauge.protecting import ProtectionDocument
    from leakgauge.report.protection import advice, headline

    document = ProtectionDocument.of(found)
    console.print(document.model, style="bold", markup=False)
    show_table(_table(found), console)
    console.print(f"{headline(document)}.", style=STYLES[found.verdict.value], markup=False)
    console.print(advice(document), markup=False)
    for name, refused in document.refused.items():
        remark(f"Not tried: {name}: {refused.reason} ({refused.error})")
    console.print()


def _table(found: Protection) -> Table:
    from rich.markup import escape

    from leakgauge.cli._console import plain_table

    table = plain_table()
    table.add_column("defence")
    table.add_column("verdict", no_wrap=True)
    more = "log loss" if found.undefended.calibration is not None else "error"
    for heading in ("largest\nadvantage", "largest\nPDTP", "error on\nholdout", f"more {more}\nthan without"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in found.tried:
        table.add_row(*_cells(one))
    for refused in found.refused.values():
        table.add_row(escape(refused.title), "not tried", *["–"] * 4)
    return table


def _cells(one: Tried) -> tuple[str, ...]:
    from rich.markup import escape

    from leakgauge.cli._console import STYLES, marked
    from leakgauge.escaping import one_line
    from leakgauge.report.words import short

    influence = one.result.influence
    verdict = f"[{STYLES[one.verdict.value]}]{marked(one.verdict)}[/]"
    pdtp = "–" if influence is None else short(influence.largest, 3)
    risk = "–" if one.risk is None else _interval(one.risk)
    cost = "–" if one.defence.name == "unchanged" else _interval(one.cost)
    return escape(one_line(one.defence.title)), verdict, risk, pdtp, short(one.error.value, 3), cost


def _interval(ours: Estimate) -> str:
    """A value, and its interval on a line below."""
    from leakgauge.report.words import number

    return f"{number(ours.value)}\n[dim]{number(ours.low)} to {number(ours.high)}[/]"
