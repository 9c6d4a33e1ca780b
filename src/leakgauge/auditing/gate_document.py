"""What ``leakgauge gate --json`` prints: verdict, exit code, findings of a judged document, and its numbers alone."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ConfigDict

from leakgauge._version import __version__
from leakgauge.auditing.document import Document
from leakgauge.auditing.finding import Finding, Verdict
from leakgauge.auditing.form import DocumentFormat

SCHEMA_VERSION = "1.0"
"""Of the JSON of the gate: the first number changes when a reader of the old form would be misled."""


@dataclass(frozen=True, repr=False)
class JudgedFinding(Finding):
    """A finding with the name of the model that it is about."""

    model: str


@dataclass(frozen=True)
class GateDocument:
    """A document as the gate judged it.

    Args:
        schema_version: of this form.
        leakgauge: the version that judged.
        name: of the run.
        verdict: the worst of the models'.
        exit_code: of ``leakgauge gate``: 0 passes, 1 fails, 3 cannot tell.
        models: the verdict of each model, by its name.
        findings: of all models.
        metrics: the same as numbers for tools that follow them over time: by model and measure ``value``, ``low``,
            ``high`` and ``limit``. What was not measured is not there.
    """

    __pydantic_config__ = ConfigDict(ser_json_inf_nan="strings", extra="forbid")

    schema_version: str
    leakgauge: str
    name: str
    verdict: Verdict
    exit_code: int
    models: dict[str, Verdict]
    findings: tuple[JudgedFinding, ...]
    metrics: dict[str, dict[str, dict[str, float]]]

    @classmethod
    def of(cls, document: Document) -> GateDocument:
        """The judgement of a document whose findings were judged again."""
        return cls(
            schema_version=SCHEMA_VERSION,
            leakgauge=__version__,
            name=document.name,
            verdict=document.verdict,
            exit_code=document.verdict.exit_code,
            models={audit.description.model: audit.verdict for audit in document.audits},
            findings=tuple(
                JudgedFinding(**vars(finding), model=audit.description.model)
                for audit in document.audits
                for finding in audit.findings
            ),
            metrics=metrics(document),
        )


def metrics(document: Document) -> dict[str, dict[str, dict[str, float]]]:
    """The estimates of all findings with their limits, by model and measure."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for audit in document.audits:
        numbers = found.setdefault(audit.description.model, {})
        for finding in audit.findings:
            if (estimate := finding.estimate) is not None:
                ends = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
                numbers[finding.measure] = {**ends, "limit": finding.threshold}
    return found


FORM = DocumentFormat(
    GateDocument, SCHEMA_VERSION, "leakgauge gate", "what leakgauge gate --json printed", "is no judgement ({})"
)
"""Of what ``leakgauge gate --json`` prints."""

dump, schema = FORM.dump, FORM.schema
