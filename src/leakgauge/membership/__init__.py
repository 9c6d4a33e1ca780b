"""Membership inference: was this record in the training set?"""

from leakgauge.membership.attacks import ATTACKS, OFFLINE_ATTACKS, Attack, Evidence, Population
from leakgauge.membership.error_law import left_out_error
from leakgauge.membership.game import (
    Strongest,
    Success,
    everyone_as_target,
    strongest_per_record,
)

__all__ = [
    "ATTACKS",
    "OFFLINE_ATTACKS",
    "Attack",
    "Evidence",
    "Population",
    "Strongest",
    "Success",
    "everyone_as_target",
    "left_out_error",
    "strongest_per_record",
]
