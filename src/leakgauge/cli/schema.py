"""``leakgauge schema``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer


class SchemaName(StrEnum):
    """What there is a schema of."""

    CONFIG = "config"
    RESULT = "result"
    PROTECTION = "protection"
    GATE = "gate"
    COMPARISON = "comparison"


def schema(
    form: Annotated[
        SchemaName,
        typer.Argument(
            help="config: the TOML file of an audit. result: result.json. protection: protection.json. "
            "gate, comparison: what gate and compare print with --json."
        ),
    ] = SchemaName.CONFIG,
) -> None:
    """Print the JSON Schema of the TOML file of an audit, of result.json, of protection.json, or of other JSON.

    [dim]Example:[/dim]

        leakgauge schema result > result.schema.json
    """
    import json

    typer.echo(json.dumps(_made(form), indent=2))


def _made(form: SchemaName) -> dict[str, Any]:
    match form:
        case SchemaName.CONFIG:
            from leakgauge.auditing.config import schema as made
        case SchemaName.RESULT:
            from leakgauge.auditing.document import schema as made
        case SchemaName.PROTECTION:
            from leakgauge.protecting.document import schema as made
        case SchemaName.GATE:
            from leakgauge.auditing.gate_document import schema as made
        case SchemaName.COMPARISON:
            from leakgauge.comparing.runs import schema as made
    return made()
