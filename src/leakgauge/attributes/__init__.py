"""Attribute inference: can a sensitive attribute of a known person be inferred from the model?"""

from leakgauge.attributes.asking import ask_about_values, ignores
from leakgauge.attributes.attacks import ATTACKS, AttackerRecords, AttributeAttack, AttributeEvidence, invert
from leakgauge.attributes.attribute import Bins, SensitiveAttribute, one_hot, single, together
from leakgauge.attributes.exposure import calibrated_p_values, margins, tail_scores
from leakgauge.attributes.game import AttributeSuccess, Subgroup, play
from leakgauge.attributes.guesses import NONE, Guesses
from leakgauge.attributes.inference import N_TAIL_SCORES, Inference, MembershipScores, RecordsWithAttribute, infer
from leakgauge.attributes.inversion import by_error, by_gaussian_error
from leakgauge.attributes.reductions import membership_from_attribute, several_queries, uniform_guess
from leakgauge.attributes.shadow_models import Shadows, without_lost_pairs

__all__ = [
    "ATTACKS",
    "NONE",
    "N_TAIL_SCORES",
    "AttackerRecords",
    "AttributeAttack",
    "AttributeEvidence",
    "AttributeSuccess",
    "Bins",
    "Guesses",
    "Inference",
    "MembershipScores",
    "RecordsWithAttribute",
    "SensitiveAttribute",
    "Shadows",
    "Subgroup",
    "ask_about_values",
    "by_error",
    "by_gaussian_error",
    "calibrated_p_values",
    "ignores",
    "infer",
    "invert",
    "margins",
    "membership_from_attribute",
    "one_hot",
    "play",
    "several_queries",
    "single",
    "tail_scores",
    "together",
    "uniform_guess",
    "without_lost_pairs",
]
