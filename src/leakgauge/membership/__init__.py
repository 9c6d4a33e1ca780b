"""Membership inference: was this record in the training set?"""

from leakgauge.membership.attack import MembershipAttack
from leakgauge.membership.attacks import ATTACKS, AUDITOR_ATTACKS, OFFLINE_ATTACKS
from leakgauge.membership.bounded_loss import expected_advantage
from leakgauge.membership.contamination import Contamination, contamination
from leakgauge.membership.error_law import left_out_error
from leakgauge.membership.evidence import (
    KnownSteps,
    LinearColumns,
    MembershipEvidence,
    ModelsWithout,
    PopulationRecords,
)
from leakgauge.membership.game import (
    GameResult,
    RecordSuccess,
    Strongest,
    everyone_as_target,
    population_game,
    strongest_per_record,
)
from leakgauge.membership.own import own_attack

__all__ = [
    "ATTACKS",
    "AUDITOR_ATTACKS",
    "OFFLINE_ATTACKS",
    "Contamination",
    "GameResult",
    "KnownSteps",
    "LinearColumns",
    "MembershipAttack",
    "MembershipEvidence",
    "ModelsWithout",
    "PopulationRecords",
    "RecordSuccess",
    "Strongest",
    "contamination",
    "everyone_as_target",
    "expected_advantage",
    "left_out_error",
    "own_attack",
    "population_game",
    "strongest_per_record",
]
