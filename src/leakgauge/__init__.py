"""Measure what a trained model reveals about its training records, and decide whether it may be released.

>>> import leakgauge as lg
>>> lg.ReleaseRule().dtp
1.0

The names exported here are stable, and all that an audit takes. The packages below export the names in their
``__all__``: ``auditing``, ``protecting``, ``comparing`` and ``claims``; a package for each question (``membership``,
``influence``, ``attributes``, ``properties``, ``versions``), each a set of functions of arrays; ``inspecting``,
``reconstruction`` and ``defences``; ``report``; and under them ``training``, ``models``, ``records``, ``statistics``
and ``theory``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from leakgauge._version import __version__

if TYPE_CHECKING:
    from leakgauge.auditing import (
        AuditResult,
        Explanation,
        PropertyGames,
        Queries,
        ReleasedOutputs,
        ReleaseRule,
        SensitiveColumn,
        Settings,
        Subject,
        TargetProperty,
        Verdict,
        audit,
        explain,
        subject,
    )
    from leakgauge.claims import Claim, make_canaries, measure_claim
    from leakgauge.comparing import AttackComparison, compare_attacks
    from leakgauge.inspecting import Inspection, inspect
    from leakgauge.membership import MembershipAttack, MembershipEvidence, own_attack
    from leakgauge.models import Endpoint, FunctionProbabilities, FunctionRegression
    from leakgauge.protecting import Protection, ReleasedModel, protect, release
    from leakgauge.records import Records
    from leakgauge.report import log_to_mlflow
    from leakgauge.training import FunctionLearner, SklearnLearner, TorchLearner
    from leakgauge.versions import VersionComparison, compare_versions

_HOMES = {
    "auditing": (
        *(
            "AuditResult",
            "Explanation",
            "SensitiveColumn",
            "PropertyGames",
            "Queries",
            "ReleaseRule",
            "ReleasedOutputs",
            "TargetProperty",
            "Settings",
        ),
        *("Subject", "Verdict", "audit", "audit_scores", "explain", "subject"),
    ),
    "claims": ("Claim", "make_canaries", "measure_claim"),
    "comparing": ("AttackComparison", "compare_attacks"),
    "inspecting": ("Inspection", "inspect"),
    "membership": ("MembershipAttack", "MembershipEvidence", "own_attack"),
    "models": ("Endpoint", "FunctionProbabilities", "FunctionRegression"),
    "protecting": ("Protection", "ReleasedModel", "protect", "release"),
    "records": ("Records",),
    "report": ("log_to_mlflow",),
    "training": ("FunctionLearner", "SklearnLearner", "TorchLearner"),
    "versions": ("VersionComparison", "compare_versions"),
}

__all__ = [
    "AttackComparison",
    "AuditResult",
    "Claim",
    "Endpoint",
    "Explanation",
    "FunctionLearner",
    "FunctionProbabilities",
    "FunctionRegression",
    "Inspection",
    "MembershipAttack",
    "MembershipEvidence",
    "PropertyGames",
    "Protection",
    "Queries",
    "Records",
    "ReleaseRule",
    "ReleasedModel",
    "ReleasedOutputs",
    "SensitiveColumn",
    "Settings",
    "SklearnLearner",
    "Subject",
    "TargetProperty",
    "TorchLearner",
    "Verdict",
    "VersionComparison",
    "__version__",
    "audit",
    "audit_scores",
    "compare_attacks",
    "compare_versions",
    "explain",
    "inspect",
    "log_to_mlflow",
    "make_canaries",
    "measure_claim",
    "own_attack",
    "protect",
    "release",
    "subject",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for only then: ``leakgauge --help`` must not wait for scikit-learn."""
    for room, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"leakgauge.{room}"), name)
    raise AttributeError(f"module 'leakgauge' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
