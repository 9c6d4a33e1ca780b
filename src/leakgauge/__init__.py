"""Measure what a trained model gives away about the people it was trained on, and decide whether it may be released.

>>> import leakgauge as lg
>>> lg.ReleaseRule().dtp
1.0

The door is :func:`leakgauge.audit`. Below it stand the packages of the questions, ``membership``, ``influence``,
``attributes`` and ``properties``, on ``training``, ``models``, ``records``, ``statistics`` and ``theory``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from leakgauge._version import __version__

if TYPE_CHECKING:
    from leakgauge.auditing import (
        AuditResult,
        HiddenColumn,
        Queries,
        Released,
        ReleaseRule,
        Secret,
        Settings,
        Verdict,
        audit,
    )
    from leakgauge.records import Records
    from leakgauge.training import FunctionLearner, SklearnLearner

_HOMES = {
    "AuditResult": "leakgauge.auditing",
    "FunctionLearner": "leakgauge.training",
    "HiddenColumn": "leakgauge.auditing",
    "Queries": "leakgauge.auditing",
    "Records": "leakgauge.records",
    "ReleaseRule": "leakgauge.auditing",
    "Released": "leakgauge.auditing",
    "Secret": "leakgauge.auditing",
    "Settings": "leakgauge.auditing",
    "SklearnLearner": "leakgauge.training",
    "Verdict": "leakgauge.auditing",
    "audit": "leakgauge.auditing",
}

__all__ = [
    "AuditResult",
    "FunctionLearner",
    "HiddenColumn",
    "Queries",
    "Records",
    "ReleaseRule",
    "Released",
    "Secret",
    "Settings",
    "SklearnLearner",
    "Verdict",
    "__version__",
    "audit",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for only then: ``leakgauge --help`` must not wait for scikit-learn."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'leakgauge' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
