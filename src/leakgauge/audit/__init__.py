"""From measurements to a decision: findings, the release rule, and the run folder."""

from leakgauge.audit.audit import audit, audit_subject
from leakgauge.audit.document import AuditDocument, Document
from leakgauge.audit.finding import Finding, Verdict, judge, overall
from leakgauge.audit.result import AttackResult, AuditResult, Description, ExposedRecord, Influence
from leakgauge.audit.run import Run
from leakgauge.audit.settings import Queries, Released, ReleaseRule, Settings
from leakgauge.audit.subject import Subject, subject

__all__ = [
    "AttackResult",
    "AuditDocument",
    "AuditResult",
    "Description",
    "Document",
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
