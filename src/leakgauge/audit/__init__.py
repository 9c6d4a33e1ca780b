"""From measurements to a decision: findings, the release rule, and the run folder.

``leakgauge.audit`` is this package and at the same time the function of its name: importing any part of it puts the
package where ``leakgauge.audit(...)`` looks for the function, so the package can be called as well.
"""

import sys
from types import ModuleType
from typing import Any

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


class _Door(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> AuditResult:
        return audit(*arguments, **options)


sys.modules[__name__].__class__ = _Door
