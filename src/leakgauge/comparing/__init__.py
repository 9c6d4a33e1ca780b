"""Membership attacks compared: on several models, data sets and seeds, in the games that an audit plays."""

from leakgauge.comparing.comparison import (
    AttackComparison,
    AttackStrength,
    ExposureStability,
    NotCompared,
    RecordExposure,
    compare_attacks,
    tables,
)

__all__ = [
    "AttackComparison",
    "AttackStrength",
    "ExposureStability",
    "NotCompared",
    "RecordExposure",
    "compare_attacks",
    "tables",
]
