"""``leakgauge audit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakgauge.cli._options import (
    AllowPickle,
    Attributes,
    Budget,
    HoldoutRecords,
    Models,
    Properties,
    Seed,
    Source,
    TrainRecords,
    at_least,
    configured,
    tell_of_pickles,
)

if TYPE_CHECKING:
    from rich.text import Text


def audit(
    source: Source,
    model: Models = None,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The run folder. By default leakgauge-runs/<name>-<hash of everything that affects the results>.",
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(metavar="N", callback=at_least(1), help="Worker processes. Results do not depend on this number."),
    ] = 1,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Train on the workers of a Dask cluster instead, such as tcp://10.0.0.1:8786."
        ),
    ] = None,
    seed: Seed = None,
    train_records: TrainRecords = None,
    holdout_records: HoldoutRecords = None,
    attribute: Attributes = None,
    property: Properties = None,
    budget: Budget = None,
    allow_pickle: AllowPickle = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")] = False,
) -> int:
    """Measure what models reveal about their training records, and decide whether they may be released.

    Writes a run folder with the report, result.json and the table of records. An audit that was stopped continues when
    it is run again.

    [dim]Examples:[/dim]

        leakgauge audit breast-cancer --model random-forest
        leakgauge audit adult --attribute sex --attribute race
        leakgauge audit adult --property sex=Female
        leakgauge audit audit.toml --workers 4
        leakgauge audit audit.toml --dask tcp://10.0.0.1:8786
    """
    from leakgauge.auditing.batch import audit_config
    from leakgauge.auditing.document import dump
    from leakgauge.cli._console import complain, results
    from leakgauge.progress import reported
    from leakgauge.report import write_html
    from leakgauge.report.terminal import show_audits

    if dask is not None and workers != 1:
        raise typer.BadParameter("give either --workers or --dask: a cluster has its own workers")
    config = configured(source, model, seed, train_records, holdout_records, attribute, property, budget)
    if allow_pickle:
        tell_of_pickles(config)
    try:
        with reported(True, first="reading") as tell:
            outcome = audit_config(
                config, folder=run, workers=dask or workers, allow_pickle=allow_pickle, progress=tell
            )
            write_html(outcome.document, outcome.run.folder / "report.html")
    except KeyboardInterrupt:
        complain("stopped; run the same command again to continue")
        raise typer.Exit(130) from None
    if json:
        typer.echo(dump(outcome.document), nl=False)
    else:
        console = results()
        show_audits(outcome.document, console)
        console.print(_where(outcome.run.folder), soft_wrap=True)
    return outcome.document.verdict.exit_code


def _where(folder: Path) -> Text:
    """Where to read on."""
    from rich.text import Text

    from leakgauge.escaping import one_line

    return Text.assemble(
        ("\nReport             ", "bold"),
        one_line(str(folder / "report.html")),
        ("\nExposed records    ", "bold"),
        one_line(f"leakgauge records {folder}"),
    )
