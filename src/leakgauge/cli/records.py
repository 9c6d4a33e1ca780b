"""``leakgauge records``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from leakgauge.cli._options import RunFolder, at_least, tell_of_changes

if TYPE_CHECKING:
    from rich.table import Table

    from leakgauge.auditing import Run

HEADINGS = {
    "record": "record",
    "id": "your id",
    "pdtp": "PDTP",
    "pdtp_binned": "binned PDTP",
    "change": "change",
    "noise_floor": "noise floor",
    "success": "attack accuracy",
    "score": "score",
    "exposed": "at FDR 5 %",
    "exposed_attributes": "revealed",
}


def records(
    run: RunFolder,
    top: Annotated[
        int,
        typer.Option(metavar="N", callback=at_least(1), help="Number of the most exposed training records to list."),
    ] = 20,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only those of this model.", show_default="all")
    ] = None,
    show_ids: Annotated[
        bool, typer.Option("--show-ids", help="Show the ids of your own table. Such a list is itself sensitive.")
    ] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV rather than a table.")] = False,
) -> None:
    """List the training records that are most exposed, under opaque ids unless you ask for your own.

    They are sorted by PDTP, the change of the prediction for a record, in nats, when it is removed; ties, such as
    infinite values, by PDTP with binned probabilities; those of a regressor by the change of the prediction, over the
    root mean square error elsewhere. The noise floor is the PDTP of retraining without removing a record. "Attack
    accuracy" is the share of target models for which the attack decides correctly whether the record is
    a member (0.5 is chance level). Records identified "at FDR 5 %": at most 5 % of them are expected to be false;
    for the others nothing was shown. Likewise for sensitive attributes whose value is "revealed".

    [dim]Examples:[/dim]

        leakgauge records leakgauge-runs/adult-1a2b3c4d --top 10
        leakgauge records leakgauge-runs/adult-1a2b3c4d --show-ids --csv > exposed.csv
    """
    from leakgauge.auditing import Run
    from leakgauge.cli._console import results
    from leakgauge.escaping import one_line
    from leakgauge.report.terminal import show_table

    tell_of_changes(run, "records.csv", *(("ids.csv",) if show_ids else ()))
    chosen = _chosen(Run(run), top, model, show_ids)
    if csv:
        _print_csv([line for lines in chosen.values() for line in lines])
        return
    console, tables = results(), {name: _table(lines) for name, lines in chosen.items()}
    for name, table in tables.items():
        console.print(
            f"{one_line(name)}: the {table.row_count} most exposed training records", style="bold", markup=False
        )
        show_table(table, console)


def _chosen(run: Run, top: int, model: str | None, show_ids: bool) -> dict[str, list[dict[str, str]]]:
    """The first training records of each model wanted, with the user's own ids if asked for."""
    from leakgauge.errors import ConfigError, StoreError

    members: dict[str, list[dict[str, str]]] = {}
    for line in run.records(most=top):
        if line["member"] == "True":
            members.setdefault(line["model"], []).append(line)
    if model is not None and model not in members:
        raise ConfigError(f"the run has no model {model!r}; its models: {', '.join(members)}")
    chosen = {name: lines[:top] for name, lines in members.items() if model in (None, name)}
    if show_ids:
        ids = run.ids()
        try:
            chosen = {name: [{**line, "id": ids[line["record"]]} for line in lines] for name, lines in chosen.items()}
        except KeyError:
            raise StoreError("ids.csv lacks a record of records.csv; run the audit again") from None
    return chosen


def _print_csv(lines: list[dict[str, str]]) -> None:
    from leakgauge.escaping import csv_table, one_line

    if lines:
        rows = ([one_line(cell) for cell in line.values()] for line in lines)
        print(csv_table(list(lines[0]), rows), end="")


def _table(lines: list[dict[str, str]]) -> Table:
    from rich.text import Text

    from leakgauge.report.terminal import plain_table

    table = plain_table()
    shown = [key for key in HEADINGS if any(line.get(key) for line in lines)]
    for key in shown:
        table.add_column(HEADINGS[key], justify="left" if key in ("record", "id") else "right")
    for line in lines:
        table.add_row(*(Text(_cell(key, line.get(key, ""))) for key in shown))
    return table


def _cell(key: str, text: str) -> str:
    from leakgauge.errors import StoreError
    from leakgauge.escaping import one_line
    from leakgauge.report.words import number

    if key == "exposed":
        return "yes" if text == "True" else "not shown"
    if key in ("record", "id", "exposed_attributes") or not text:
        return one_line(text)
    try:
        return number(float(text))
    except ValueError:
        raise StoreError("records.csv is damaged: a value is not a number; run the audit again") from None
