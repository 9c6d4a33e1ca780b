"""``leakgauge convert``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leakgauge.cli._options import AllowPickle


def convert(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A pickle or joblib file of your own.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The .skops file to write.")],
    allow_pickle: AllowPickle = False,
) -> int:
    """Make a skops file of a pickle that you trust.

    Opening a pickle runs code in it: convert it once, where it was made, and pass on the skops file. The stored model
    is asked made-up queries, and is written only if it answers the same.

    [dim]Examples:[/dim]

        leakgauge convert model.pkl model.skops --allow-pickle
    """
    from leakgauge.cli._console import remark
    from leakgauge.errors import ModelError
    from leakgauge.escaping import one_line
    from leakgauge.inspecting import convert_pickle
    from leakgauge.models import is_pickle, looked_at
    from leakgauge.report.words import listing

    if not is_pickle(model):
        raise ModelError(f"model file {model} is no pickle; give a .pkl or .joblib file")
    remark(str(looked_at(model)))
    if not allow_pickle:
        raise ModelError(
            f"model file {model} is a pickle, which runs code of its maker when opened; pass --allow-pickle if you "
            "made the file yourself"
        )
    made = convert_pickle(model, out)
    typer.echo(one_line(f"{out} written"))
    if made.compared:
        typer.echo(f"The outputs of {listing(made.compared)} are the same for {made.queries}.")
    else:
        remark(
            "The answers could not be compared: the model answered no made-up query twice the same. Compare those of "
            "both files about a few rows of your table before you pass on the copy, and audit the copy."
        )
    if made.trusted:
        typer.echo("To audit it, write beside its path, after a look at what these types do:")
        typer.echo(one_line(f"trusted = [{', '.join(repr(name) for name in made.trusted)}]".replace("'", '"')))
    return 0
