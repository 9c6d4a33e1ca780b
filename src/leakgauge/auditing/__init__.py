"""From measurements to a decision: findings, the release rule, and the run folder."""

from leakgauge.auditing.audit import audit, audit_subject
from leakgauge.auditing.document import AuditDocument, Document
from leakgauge.auditing.finding import Finding, Verdict, judge, overall
from leakgauge.auditing.result import AttackResult, AuditResult, Description, Exposed, ExposedRecord, Influence
from leakgauge.auditing.run import Run
from leakgauge.auditing.settings import Queries, Released, ReleaseRule, Settings
from leakgauge.auditing.subject import Subject, subject

__all__ = [
    "AttackResult",
    "AuditDocument",
    "AuditResult",
    "Description",
    "Document",
    "Exposed",
    "ExposedRecord",
    "Finding",
    "Influence",
    "Queries",
    "ReleaseRule",
    "Released",
    "Run",
    "Settings",
    "Subject",
    "Verdict",
    "audit",
    "audit_subject",
    "judge",
    "overall",
    "subject",
]
