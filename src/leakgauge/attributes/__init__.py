"""Attribute inference: can a sensitive attribute of a known person be inferred from the model?"""

from leakgauge.attributes.across_models import AcrossModels, across_models, without_lost_pairs
from leakgauge.attributes.asking import ask_about_values, ignores
from leakgauge.attributes.attacks import ATTACKS, Attack, Evidence, Own, invert
from leakgauge.attributes.attribute import Attribute, Bins, one_hot, single, together
from leakgauge.attributes.exposure import calibrated_p_values, exposed_by_models, margins, tail_scores, wins_of_pairs
from leakgauge.attributes.game import Part, Success, play
from leakgauge.attributes.guesses import NONE, Guesses
from leakgauge.attributes.inference import N_TAIL_SCORES, Inference, MembershipScores, People, infer
from leakgauge.attributes.shadow_models import Shadows

__all__ = [
    "ATTACKS",
    "NONE",
    "N_TAIL_SCORES",
    "AcrossModels",
    "Attack",
    "Attribute",
    "Bins",
    "Evidence",
    "Guesses",
    "Inference",
    "MembershipScores",
    "Own",
    "Part",
    "People",
    "Shadows",
    "Success",
    "across_models",
    "ask_about_values",
    "calibrated_p_values",
    "exposed_by_models",
    "ignores",
    "infer",
    "invert",
    "margins",
    "one_hot",
    "play",
    "single",
    "tail_scores",
    "together",
    "wins_of_pairs",
    "without_lost_pairs",
]
