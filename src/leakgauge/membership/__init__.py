"""Was this record in the training set?"""

from leakgauge.membership.attacks import ATTACKS, Attack, Evidence
from leakgauge.membership.error_law import left_out_error
from leakgauge.membership.game import Success, TargetedScores, everyone_as_target, targeted

__all__ = [
    "ATTACKS",
    "Attack",
    "Evidence",
    "Success",
    "TargetedScores",
    "everyone_as_target",
    "left_out_error",
    "targeted",
]
