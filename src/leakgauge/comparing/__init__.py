"""Comparisons: of membership attacks on models, data sets and seeds, and of two finished audits."""

from leakgauge.comparing.comparison import (
    AttackComparison,
    AttackStrength,
    ExposureStability,
    NotCompared,
    RecordExposure,
    compare_attacks,
    tables,
)
from leakgauge.comparing.runs import Change, ComparedFinding, RunComparison, compare_runs

__all__ = [
    "AttackComparison",
    "AttackStrength",
    "Change",
    "ComparedFinding",
    "ExposureStability",
    "NotCompared",
    "RecordExposure",
    "RunComparison",
    "compare_attacks",
    "compare_runs",
    "tables",
]
