"""``leakgauge inspect``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakgauge.cli._options import AllowPickle

if TYPE_CHECKING:
    from leakgauge.inspecting import Cleaned
    from leakgauge.records import Records


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A model file.")],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="SOURCE", help="The training records: the TOML file of an audit, or a table with --target."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of the table that the model predicts.")
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of the table that says whose record it is; no feature."),
    ] = None,
    rule: Annotated[
        str, typer.Option(metavar="RULE", help="Limits of the structural checks: leakgauge or sacro.")
    ] = "leakgauge",
    trusted: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE", help="A further type that a skops file may contain. Repeatable."),
    ] = None,
    allow_pickle: AllowPickle = False,
    clean: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Write a copy without what prediction does not need.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Show what a model file itself holds about its training records: rows, values, words, counts, curves, seeds.

    Values, words and ids are not printed, only where they are and how many. No code in the file is run. With the
    training records, values of single persons and rare words are found as well.

    The exit code is 0 where nothing was found and no structural check fails, 1 otherwise; with --clean it is that of
    the copy, whose answers are compared with the model's before it is written.

    [dim]Examples:[/dim]

        leakgauge inspect model.skops --data audit.toml
        leakgauge inspect model.skops --data train.csv --target income --rule sacro --json
        leakgauge inspect model.skops --data audit.toml --clean clean.skops
    """
    from leakgauge.cli._console import remark, results
    from leakgauge.errors import ModelError
    from leakgauge.inspecting import as_seen, cleaned, read_model, written
    from leakgauge.inspecting import inspect as inspected
    from leakgauge.models import is_pickle, looked_at
    from leakgauge.report.terminal import show_inspection

    if is_pickle(file):
        if not allow_pickle:
            raise ModelError(
                f"{looked_at(file)}; it was not opened, as that runs code of its maker: save the model with "
                "skops.io.dump, or pass --allow-pickle if you made the file yourself"
            )
        remark(f"A pickle is opened: code in it runs with your rights. {looked_at(file)}.")
    model = read_model(file, trusted=trusted or (), allow_pickle=allow_pickle)
    records = _records(data, target, person)
    found = inspected(model, records, rule=rule, name=file.name)
    if clean is not None:
        seen = as_seen(model, records, None, None)
        made = cleaned(model, seen)
        trusted_types = written(made, file, clean)
        _tell_of_copy(made, clean, trusted_types)
        found = replace(inspected(made.model, records, rule=rule, name=clean.name), findings=made.left)
    if as_json:
        typer.echo(json.dumps(found.as_json(), indent=2))
    else:
        show_inspection(found, results())
    return found.exit_code


def _tell_of_copy(made: Cleaned, out: Path, trusted: tuple[str, ...]) -> None:
    """What became of the copy, beside the results."""
    from leakgauge.cli._console import remark
    from leakgauge.report.words import counted, listing

    if made.removed:
        remark(f"{out} written without {counted(len(made.removed), 'finding')} that prediction does not need")
    else:
        remark(f"{out} written; nothing was found that could be removed")
    if made.compared:
        remark(f"The outputs of {listing(made.compared)} are the same for {made.queries}.")
    elif made.note:
        remark(made.note)
    else:
        remark("The outputs could not be compared: no query is known that the model takes.")
    if trusted:
        remark(f"To open it, trust these types after a look at what they do: {', '.join(trusted)}.")


def _records(data: Path | None, target: str | None, person: str | None) -> Records | None:
    """The training records, which say whose they are."""
    from leakgauge.errors import ConfigError

    is_config = data is not None and data.suffix.lower() in (".toml", ".json")
    for option, given in (("--target", target), ("--person", person)):
        if given is not None and (data is None or is_config):
            raise ConfigError(f"{option} names a column of a table; give the table with --data")
    if data is None:
        return None
    if is_config:
        from leakgauge.auditing.config import load_config

        return load_config(data).training_records()
    if target is None:
        raise ConfigError(f"--target is missing: the column of {data} that the model predicts")
    from leakgauge.records import Records, read_table

    return Records.from_frame(
        read_table(data, named=[target, *([person] if person else [])]), target=target, persons=person
    )
