"""``result.json``: the result of one run, for machines; a versioned schema, and no person's own id in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict

from leakgauge._version import __version__
from leakgauge.auditing.finding import Finding, Verdict, overall
from leakgauge.auditing.form import DocumentFormat
from leakgauge.auditing.questions import Parts
from leakgauge.auditing.result import Description, ExposedRecord
from leakgauge.auditing.settings import ReleaseRule
from leakgauge.auditing.shown import Reported
from leakgauge.escaping import every_line, one_line

if TYPE_CHECKING:
    from leakgauge.report.plots import AuditPlots

SCHEMA_VERSION = "2.6"
"""Of ``result.json``: the first number changes when a reader of the old form would be misled."""

N_LISTED = 20
"""How many of the most exposed records a document lists."""


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditDocument(Reported, Parts):
    """The part of an :class:`AuditResult` that may leave the run folder.

    Args:
        description: what was audited.
        verdict: whether the model may be released under the rule.
        findings: the measures held against the rule.
        rule: the release rule.
        most_exposed: the first of the records, most exposed first, under opaque ids.
        notes: what a reader should know about the numbers.
        not_tested: what this audit says nothing about.
        method: settings and versions needed to repeat it.
    """

    description: Description
    verdict: Verdict
    findings: tuple[Finding, ...]
    rule: ReleaseRule
    most_exposed: tuple[ExposedRecord, ...]
    notes: tuple[str, ...]
    not_tested: tuple[str, ...]
    method: dict[str, Any]

    @property
    def headline(self) -> str:
        """The verdict, the model and the numbers of records."""
        about = self.description
        records = about.worded(f"{about.n_train:,} training and {about.n_holdout:,} holdout records")
        return f"{self.verdict}, {one_line(about.model)}, {records}"

    @property
    def plot(self) -> AuditPlots:
        """Pictures of the result, drawn by matplotlib: ``result.plot.roc()``.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        from leakgauge.report.plots import AuditPlots

        return AuditPlots(self)


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditResult(AuditDocument):
    """All that an audit of one model found; see :class:`AuditDocument` for what of it goes into ``result.json``.

    Args:
        records: one line for each candidate, most exposed first, under opaque ids.
        ids: opaque id to the id in the user's own table; never part of any file but ``ids.csv``.
    """

    records: Sequence[ExposedRecord]
    ids: dict[str, str] = field(repr=False)

    @property
    def document(self) -> AuditDocument:
        """Without the table of records but for its head, and without ids."""
        return AuditDocument(**{one.name: getattr(self, one.name) for one in fields(AuditDocument)})

    def to_json(self) -> str:
        """The text of a ``result.json`` that holds this audit alone."""
        return dump(Document.of("audit", [self]))


@dataclass(frozen=True, repr=False)
class Document(Reported):
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

    @property
    def headline(self) -> str:
        """The verdict, and the number of models."""
        return f"{self.verdict}, {one_line(self.name)}, {len(self.audits):,} models"

    @classmethod
    def of(cls, name: str, results: Sequence[AuditDocument]) -> Document:
        """The document of one run; what does not print in a name stands in it as its escape."""
        document = cls(
            schema_version=SCHEMA_VERSION,
            leakgauge=__version__,
            name=name,
            verdict=overall([result.verdict for result in results]),
            audits=tuple(_without_table(result) for result in results),
        )
        return every_line(document)


def _without_table(result: AuditDocument) -> AuditDocument:
    return result.document if isinstance(result, AuditResult) else result


FORM = DocumentFormat(
    Document,
    SCHEMA_VERSION,
    "leakgauge result",
    "the folder of a finished audit",
    "is not a result of leakgauge ({}); run the audit again",
)
"""Of ``result.json``."""

dump, load, schema = FORM.dump, FORM.load, FORM.schema
