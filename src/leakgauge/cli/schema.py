"""``leakgauge schema``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Form(StrEnum):
    """What there is a schema of."""

    CONFIG = "config"
    RESULT = "result"


def schema(
    form: Annotated[Form, typer.Argument(help="config: the TOML file of an audit. result: result.json.")] = Form.CONFIG,
) -> None:
    """Print the JSON Schema of the TOML file of an audit, or of result.json.

    [dim]Example:[/dim]

        leakgauge schema result > result.schema.json
    """
    import json

    from leakgauge.auditing import config, document

    made = config.schema() if form is Form.CONFIG else document.schema()
    typer.echo(json.dumps(made, indent=2))
