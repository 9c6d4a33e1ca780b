"""``leakgauge init``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakgauge.cli._options import LabelColumn

if TYPE_CHECKING:
    import pyarrow as pa


def init(
    table: Annotated[
        Path,
        typer.Argument(metavar="TABLE", help="Records: CSV, Parquet or NumPy. With --holdout the training records."),
    ],
    target: LabelColumn = None,
    holdout: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Records that the model was not trained on.", show_default="half of TABLE"),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="A recipe, such as decision-tree, or the file of a trained model, which needs --holdout.",
            show_default="a recipe that suits",
        ),
    ] = None,
    module: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="What makes the network whose state a .safetensors file holds."),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="The column that says whose row each is, or none.", show_default="asked, or guessed"
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write; it must not be there.")] = Path(
        "audit.toml"
    ),
) -> None:
    """Write the TOML file of an audit for a table, with comments on what was guessed about its columns.

    Looks for ids, keys of persons, texts that are no categories, codes, dates and columns that are often sensitive. The
    file holds names of columns and no values; leakgauge audit takes it as it is. On a terminal, the label column and
    the column of persons are asked for where they are not given; elsewhere a key whose values repeat, and that
    may be one of persons by its name or its look, is taken for one.

    [dim]Examples:[/dim]

        leakgauge init patients.csv --target diagnosis --model logistic-regression
        leakgauge init train.parquet --holdout holdout.parquet --model model.skops --target income --person customer
    """
    from leakgauge.auditing.starting import first_config, possible_persons, refuse_out, write_first
    from leakgauge.cli._console import remark
    from leakgauge.errors import ConfigError
    from leakgauge.escaping import one_line
    from leakgauge.records import read_table

    refuse_out(out)
    records = read_table(table, named=[name for name in (target, person) if name])
    if target is None:
        if not _asks():
            raise ConfigError("--target: missing; it is the column that the model predicts")
        target = _asked_target(records)
    if person is None and _asks():
        person = _asked_person(possible_persons(records, target))
    alone, person = person == "none", None if person == "none" else person
    start = first_config(
        records, table, target, out=out, holdout=holdout, model=model, module=module, person=person, alone=alone
    )
    write_first(start, out)
    if start.doubt:
        remark(f"{target}: target. {start.doubt}")
    for guess in start.guesses:
        remark(f"{guess.name}: {guess.role.value}. {guess.why}.")
    typer.echo(one_line(str(out)))


def _asks() -> bool:
    """Whether there is a person who can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty() and not os.environ.get("CI")


def _asked_target(records: pa.Table) -> str:
    from leakgauge.cli._console import remark

    remark(f"Columns: {', '.join(records.column_names)}")
    answer: str = typer.prompt("Which column does the model predict", err=True)
    return answer


def _asked_person(possible: list[str]) -> str:
    from leakgauge.escaping import one_line

    for name in possible:
        if typer.confirm(f"Does {one_line(name)} say whose row each is, of persons with several rows", err=True):
            return name
    return "none"
