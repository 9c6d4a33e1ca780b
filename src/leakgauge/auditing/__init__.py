"""From measurements to a decision: findings, the release rule, and the run folder."""

from leakgauge.auditing.audit import audit, audit_subject
from leakgauge.auditing.document import AuditDocument, Document
from leakgauge.auditing.finding import Finding, Verdict, judge, overall
from leakgauge.auditing.result import (
    AttackResult,
    AttributeAttack,
    AttributePart,
    AuditResult,
    Description,
    Exposed,
    ExposedRecord,
    ExposedValue,
    ExposedValues,
    InferredColumn,
    InferredProperty,
    Influence,
    PredictionChange,
    PropertyGame,
    PropertyRemedy,
)
from leakgauge.auditing.run import Run
from leakgauge.auditing.settings import HiddenColumn, PropertyGames, Queries, Released, ReleaseRule, Secret, Settings
from leakgauge.auditing.subject import Subject, subject

__all__ = [
    "AttackResult",
    "AttributeAttack",
    "AttributePart",
    "AuditDocument",
    "AuditResult",
    "Description",
    "Document",
    "Exposed",
    "ExposedRecord",
    "ExposedValue",
    "ExposedValues",
    "Finding",
    "HiddenColumn",
    "InferredColumn",
    "InferredProperty",
    "Influence",
    "PredictionChange",
    "PropertyGame",
    "PropertyGames",
    "PropertyRemedy",
    "Queries",
    "ReleaseRule",
    "Released",
    "Run",
    "Secret",
    "Settings",
    "Subject",
    "Verdict",
    "audit",
    "audit_subject",
    "judge",
    "overall",
    "subject",
]
