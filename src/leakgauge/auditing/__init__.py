"""From measurements to a decision: findings, the release rule, and the run folder."""

from leakgauge.auditing.attributes.result import (
    AttributeAttack,
    AttributePart,
    ExposedValue,
    ExposedValues,
    InferredColumn,
)
from leakgauge.auditing.audit import audit, audit_subject
from leakgauge.auditing.document import AuditDocument, AuditResult, Document
from leakgauge.auditing.drawn import Curve, Histogram
from leakgauge.auditing.finding import Finding, Verdict, judge, overall
from leakgauge.auditing.influence.result import Influence, PredictionChange
from leakgauge.auditing.membership.result import Association, AttackResult, Exposed
from leakgauge.auditing.properties.result import InferredProperty, PropertyGame, PropertyRemedy
from leakgauge.auditing.result import Description, ExposedRecord
from leakgauge.auditing.run import Run
from leakgauge.auditing.settings import HiddenColumn, PropertyGames, Queries, Released, ReleaseRule, Secret, Settings
from leakgauge.auditing.subject import Subject, subject

__all__ = [
    "Association",
    "AttackResult",
    "AttributeAttack",
    "AttributePart",
    "AuditDocument",
    "AuditResult",
    "Curve",
    "Description",
    "Document",
    "Exposed",
    "ExposedRecord",
    "ExposedValue",
    "ExposedValues",
    "Finding",
    "HiddenColumn",
    "Histogram",
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
