"""``leakgauge versions``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from leakgauge.cli._options import AllowPickle, LabelColumn, at_least
from leakgauge.cli._tables import all_features_of


def versions(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Model file of the version with the records.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Model file of the version without them.")],
    data: Annotated[
        Path, typer.Option(metavar="FILE", help="Public records: CSV, Parquet or NumPy, with the columns of the model.")
    ],
    removed: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The removed records: reconstructions are compared with them."),
    ] = None,
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Training records of OLD, for an attacker who knows the others.")
    ] = None,
    target: LabelColumn = None,
    n_records: Annotated[
        int | None,
        typer.Option(metavar="N", callback=at_least(1), help="Training records of OLD.", show_default="as OLD says"),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the reconstructions, which are values of persons.")
    ] = False,
    allow_pickle: AllowPickle = False,
) -> int:
    """Say what the difference of two versions of a model reveals about the records removed in between.

    For records that were added, give the version with them first. Linear and logistic regression, Gaussian naive Bayes,
    nearest neighbours, support vector machines and pipelines of these with scalers and encoders can be compared.
    The exit code is 0 whatever is found.

    [dim]Examples:[/dim]

        leakgauge versions january.skops february.skops --data public.csv
        leakgauge versions old.skops new.skops --data public.csv --removed erased.csv --target income
    """
    from leakgauge.errors import ConfigError
    from leakgauge.escaping import several_lines
    from leakgauge.models import load_estimator
    from leakgauge.versions import compare_versions

    first, second = (load_estimator(path, allow_pickle=allow_pickle) for path in (old, new))
    paths = {"public": data, "records": train, "truth": removed}
    tables = all_features_of(first, {name: path for name, path in paths.items() if path is not None}, target)
    if target is not None and all(labels is None for _, labels in tables.values()):
        raise ConfigError(f"--target {target}: no table has such a column; give the name of the label column")
    known: dict[str, Any] = {name: pair[0] if pair[1] is None else pair for name, pair in tables.items()}
    done = compare_versions(first, second, n_records=n_records, **known)
    typer.echo(several_lines(str(done)))
    if show:
        typer.echo(several_lines(done.show()))
    return 0
