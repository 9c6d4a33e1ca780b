"""Property inference: can the frequency of a property in the training set be inferred, with poisoned records too?"""

from leakgauge.properties.fraction import FractionAttack, Ridge, prepare_fraction
from leakgauge.properties.game import Played, play
from leakgauge.properties.inference import LinearRule, PreparedAttack, PropertyAttack, prepare
from leakgauge.properties.outlook import outlook
from leakgauge.properties.owner import Power, power_curve
from leakgauge.properties.parameters import GameParameters
from leakgauge.properties.poisoning import PoisonedRecords, plant
from leakgauge.properties.population import Side, Sides, hold_out
from leakgauge.properties.property import Property, column_is, with_random_bit
from leakgauge.properties.queries import FixedBand, TheoreticalBand
from leakgauge.properties.white_box import (
    Layer,
    WhiteBox,
    canonical,
    in_out,
    layers_of,
    learn_white_box,
    play_white_box,
    vector,
    weight_sum,
)
from leakgauge.training.curating import NoisyLabels, WithoutInfluential

__all__ = [
    "FixedBand",
    "FractionAttack",
    "GameParameters",
    "Layer",
    "LinearRule",
    "NoisyLabels",
    "Played",
    "PoisonedRecords",
    "Power",
    "PreparedAttack",
    "Property",
    "PropertyAttack",
    "Ridge",
    "Side",
    "Sides",
    "TheoreticalBand",
    "WhiteBox",
    "WithoutInfluential",
    "canonical",
    "column_is",
    "hold_out",
    "in_out",
    "layers_of",
    "learn_white_box",
    "outlook",
    "plant",
    "play",
    "play_white_box",
    "power_curve",
    "prepare",
    "prepare_fraction",
    "vector",
    "weight_sum",
    "with_random_bit",
]
