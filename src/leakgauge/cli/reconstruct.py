"""``leakgauge reconstruct``."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakgauge.cli._options import AllowPickle, LabelColumn, at_least
from leakgauge.cli._tables import features_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def reconstruct(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A model file.")],
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The training records, to say how many cells are right. Of forests."),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Other people's records: the guess to compare with. Of forests."),
    ] = None,
    others: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="All training records but one, with --target. Of linear models."),
    ] = None,
    target: LabelColumn = None,
    n_records: Annotated[
        int | None,
        typer.Option(metavar="N", callback=at_least(1), help="Training records.", show_default="as the file says"),
    ] = None,
    seconds: Annotated[float, typer.Option(metavar="T", min=0.1, max=1e7, help="Time for forests.")] = 60.0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the reconstruction as CSV: values of persons, for its owner alone."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the measures as JSON.")] = False,
    allow_pickle: AllowPickle = False,
) -> int:
    """Reconstruct training records from what a model file holds.

    Of forests and trees of classification: records that agree with the counts in all leaves, searched for by constraint
    programming. Of linear and logistic regression: the last record, for an attacker who knows all others. Of histogram
    boosting: the values of each column. No value is printed; --out writes them. The exit code is 0 whatever is found.

    [dim]Examples:[/dim]

        leakgauge reconstruct forest.skops --data train.csv --public other.csv --target income
        leakgauge reconstruct ridge.skops --others others.csv --target income --out record.csv
    """
    from leakgauge.cli._tables import all_features_of
    from leakgauge.errors import ConfigError
    from leakgauge.escaping import several_lines
    from leakgauge.models import load_estimator
    from leakgauge.models.linear import is_linear

    if out is not None:
        _refuse_taken(out)
    model = load_estimator(file, allow_pickle=allow_pickle)
    last = model[-1] if hasattr(model, "steps") else model
    if others is None and is_linear(last):
        raise ConfigError(
            "of a linear model the last record is reconstructed from all others; give --others and --target"
        )
    if others is not None:
        text, measures, table = _last_record(model, others, target)
    elif hasattr(last, "_bin_mapper"):
        text, measures, table = _column_values(model, last)
    else:
        given = {name: path for name, path in (("truth", data), ("population", public)) if path is not None}
        known = {name: features for name, (features, _) in all_features_of(model, given, target).items()}
        text, measures, table = _forest(model, known, n_records, seconds)
    typer.echo(json.dumps(measures, indent=2) if as_json else several_lines(text))
    if out is not None:
        _write(out, *table)
    return 0


def _forest(model: Any, known: dict[str, Any], n_records: int | None, seconds: float) -> tuple[str, Any, Any]:
    from leakgauge.reconstruction import reconstruct_forest

    found = reconstruct_forest(model, **known, n_records=n_records, seconds=seconds)
    rows = [
        [*("" if math.isnan(cell) else cell for cell in row), label]
        for row, label in zip(found.records.tolist(), found.labels, strict=True)
    ]
    return str(found), found.as_json(), ([*_names(model, len(found.edges)), "label"], rows)


def _last_record(model: Any, others: Path, target: str | None) -> tuple[str, Any, Any]:
    from leakgauge.errors import ConfigError
    from leakgauge.reconstruction import last_record

    features, labels = features_of(model, others, target)
    if labels is None:
        wrong = "is missing" if target is None else f"{target}: there is no such column"
        raise ConfigError(f"--target {wrong}; give the column of {others} that the model predicts")
    found = last_record(model, (features, labels))
    header = [*_names(model, len(found.features)), "label"]
    measures = {
        "status": "found",
        "signal": found.signal,
        "n_outside": found.n_outside,
        "farthest": found.farthest if math.isfinite(found.farthest) else None,
    }
    return str(found), measures, (header, [[*found.features.tolist(), found.label]])


def _column_values(model: Any, last: Any) -> tuple[str, Any, Any]:
    from leakgauge.reconstruction import column_values

    found = column_values(last)
    names = _names(model, last.n_features_in_)
    measures = [
        {"column": names[one.column], "values": len(one.values), "width": one.width, "decimals": one.decimals}
        for one in found
    ]
    lines = [
        f"{names[one.column]}: {len(one.values)} values, "
        + (f"known within {one.width:.2g}" if one.decimals is None else f"exact to {one.decimals} decimal places")
        for one in found
    ]
    rows = [[names[one.column], value] for one in found for value in one.values.tolist()]
    return "\n".join(lines) or "no column has its values in the bins", measures, (["column", "value"], rows)


def _names(model: Any, d: int) -> list[str]:
    """Names of the columns that come to the last step, as far as they are known."""
    named = getattr(model, "feature_names_in_", None)
    try:
        if hasattr(model, "steps") and len(model) > 1:
            named = model[:-1].get_feature_names_out()
    except Exception:  # a step of the user's may know no names
        named = None
    return [str(name) for name in named] if named is not None and len(named) == d else [f"x{j}" for j in range(d)]


def _refuse_taken(out: Path) -> None:
    import os

    from leakgauge.errors import ConfigError

    if os.path.lexists(out) or not out.parent.is_dir():
        raise ConfigError(f"--out {out}: the file exists, or its folder does not; give another name")


def _write(out: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table that its owner alone may read, in place of no other file."""
    from leakgauge.cli._console import remark
    from leakgauge.escaping import csv_table
    from leakgauge.storing import write_atomically

    _refuse_taken(out)
    content = csv_table(header, rows).encode()
    write_atomically(out, lambda file: file.write(content))
    remark(f"{out} holds values of persons; it is readable by you alone")
