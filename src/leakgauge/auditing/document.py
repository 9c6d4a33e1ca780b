"""``result.json``: the result of one run, for machines; a versioned schema, and no person's own id in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from leakgauge._version import __version__
from leakgauge.auditing.finding import Finding, Verdict, overall
from leakgauge.auditing.result import (
    SCHEMA_VERSION,
    AttackResult,
    AuditResult,
    Description,
    Exposed,
    ExposedRecord,
    InferredColumn,
    InferredProperty,
    Influence,
)
from leakgauge.errors import StoreError

N_LISTED = 20
"""How many of the most exposed records a document lists."""


@dataclass(frozen=True)
class AuditDocument:
    """The part of an :class:`AuditResult` that may leave the run folder; see there for the fields."""

    description: Description
    verdict: Verdict
    findings: tuple[Finding, ...]
    attacks: tuple[AttackResult, ...]
    influence: Influence | None
    exposed: Exposed | None
    most_exposed: tuple[ExposedRecord, ...]
    notes: tuple[str, ...]
    not_tested: tuple[str, ...]
    method: dict[str, Any]
    attributes: tuple[InferredColumn, ...] = ()
    properties: tuple[InferredProperty, ...] = ()

    @classmethod
    def of(cls, result: AuditResult) -> AuditDocument:
        """Drop the table of records but for its head, and all ids."""
        return cls(
            description=result.description,
            verdict=result.verdict,
            findings=result.findings,
            attacks=result.attacks,
            influence=result.influence,
            exposed=result.exposed,
            most_exposed=result.records[:N_LISTED],
            notes=result.notes,
            not_tested=result.not_tested,
            method=result.method,
            attributes=result.attributes,
            properties=result.properties,
        )


@dataclass(frozen=True)
class Document:
    """A whole ``result.json``.

    Args:
        schema_version: of this form.
        leakgauge: the version that wrote it.
        name: of the run.
        verdict: the worst of the audits'.
        audits: one for each model.
    """

    __pydantic_config__ = ConfigDict(ser_json_inf_nan="strings", extra="forbid")

    schema_version: str
    leakgauge: str
    name: str
    verdict: Verdict
    audits: tuple[AuditDocument, ...]

    @classmethod
    def of(cls, name: str, results: list[AuditResult]) -> Document:
        """The document of one run."""
        return cls(
            schema_version=SCHEMA_VERSION,
            leakgauge=__version__,
            name=name,
            verdict=overall([result.verdict for result in results]),
            audits=tuple(AuditDocument.of(result) for result in results),
        )


class _InfinityAsText(GenerateJsonSchema):
    """JSON has no infinity: where a number may be infinite it is written as text."""

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        number = super().float_schema(schema)
        return {"anyOf": [number, {"enum": ["Infinity", "-Infinity"]}]}


@cache
def _adapter() -> TypeAdapter[Document]:
    return TypeAdapter(Document)


def dump(document: Document) -> str:
    """The text of ``result.json``: the same document gives the same text."""
    return _adapter().dump_json(document, indent=2).decode() + "\n"


def load(path: str | Path) -> Document:
    """Read ``result.json`` again.

    Raises:
        StoreError: it is not there, is not one, or has a form this version does not know.
    """
    path = Path(path)
    try:
        text = path.read_text()
        version = json.loads(text).get("schema_version", "")
        if version.split(".")[0] != SCHEMA_VERSION.split(".")[0]:
            raise StoreError(f"{path} has schema version {version!r}, this leakgauge reads {SCHEMA_VERSION!r}")
        return _adapter().validate_json(text)
    except FileNotFoundError:
        raise StoreError(f"{path} does not exist; give the folder of a finished audit") from None
    except (ValidationError, ValueError, AttributeError, OSError) as error:
        reason = str(error).split("\n")[0]
        raise StoreError(f"{path} is not a result of leakgauge ({reason}); run the audit again") from error


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of ``result.json``."""
    made = _adapter().json_schema(schema_generator=_InfinityAsText, mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "leakgauge result", **made}
