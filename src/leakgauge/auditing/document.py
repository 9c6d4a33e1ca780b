"""``result.json``: the result of one run, for machines; a versioned schema, and no person's own id in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict

from leakgauge._version import __version__
from leakgauge.auditing.finding import Finding, Verdict, overall
from leakgauge.auditing.form import Form
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
    PredictionChange,
)
from leakgauge.escaping import every_line

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
    change: PredictionChange | None = None

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
            change=result.change,
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
        """The document of one run; what does not print in a name stands in it as its escape."""
        document = cls(
            schema_version=SCHEMA_VERSION,
            leakgauge=__version__,
            name=name,
            verdict=overall([result.verdict for result in results]),
            audits=tuple(AuditDocument.of(result) for result in results),
        )
        return every_line(document)


FORM = Form(
    Document,
    SCHEMA_VERSION,
    "leakgauge result",
    "the folder of a finished audit",
    "is not a result of leakgauge ({}); run the audit again",
)
"""Of ``result.json``."""

dump, load, schema = FORM.dump, FORM.load, FORM.schema
