"""From measurements to a decision: findings, the release rule, and the run folder."""

from leakgauge.auditing.attributes.result import (
    AttributeAttackResult,
    AttributePart,
    ExposedValue,
    ExposedValues,
    InferredColumn,
)
from leakgauge.auditing.audit import audit, audit_subject
from leakgauge.auditing.document import AuditDocument, AuditResult, Document
from leakgauge.auditing.drawn import Histogram, RocCurve
from leakgauge.auditing.explain import Explanation, explain, explain_subject
from leakgauge.auditing.finding import Finding, Verdict, judge, overall
from leakgauge.auditing.influence.result import Influence, PredictionChange
from leakgauge.auditing.membership.result import Association, ExposedRecords, GroupedAdvantages, MembershipAttackResult
from leakgauge.auditing.properties.result import InferredProperty, PropertyGame, PropertyMitigation
from leakgauge.auditing.result import Description, ExposedRecord
from leakgauge.auditing.run import Run
from leakgauge.auditing.scores import audit_scores
from leakgauge.auditing.settings import (
    PropertyGames,
    Queries,
    ReleasedOutputs,
    ReleasedTo,
    ReleaseRule,
    SensitiveColumn,
    Settings,
    TargetProperty,
)
from leakgauge.auditing.subject import Subject, subject

__all__ = [
    "Association",
    "AttributeAttackResult",
    "AttributePart",
    "AuditDocument",
    "AuditResult",
    "Description",
    "Document",
    "Explanation",
    "ExposedRecord",
    "ExposedRecords",
    "ExposedValue",
    "ExposedValues",
    "Finding",
    "GroupedAdvantages",
    "Histogram",
    "InferredColumn",
    "InferredProperty",
    "Influence",
    "MembershipAttackResult",
    "PredictionChange",
    "PropertyGame",
    "PropertyGames",
    "PropertyMitigation",
    "Queries",
    "ReleaseRule",
    "ReleasedOutputs",
    "ReleasedTo",
    "RocCurve",
    "Run",
    "SensitiveColumn",
    "Settings",
    "Subject",
    "TargetProperty",
    "Verdict",
    "audit",
    "audit_scores",
    "audit_subject",
    "explain",
    "explain_subject",
    "judge",
    "overall",
    "subject",
]
