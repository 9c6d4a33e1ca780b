"""Mitigations that make a model safer to release. One package or file for each."""

from leakgauge.defences.accounting import Adjacency
from leakgauge.defences.clipping import ClippedInputs
from leakgauge.defences.defence import Defence, Defended, TrainingDefence, Unchanged
from leakgauge.defences.dp_sgd import DpSgd
from leakgauge.defences.ensemble import Ensemble, Votes, parts
from leakgauge.defences.noise import NoisyParameters, ParameterNoise
from leakgauge.defences.outputs import Binning, LabelsOnly, OutputDefence, Temperature
from leakgauge.defences.regularise import EarlierStop, StrongerPenalty
from leakgauge.defences.removal import Influence, Removal

__all__ = [
    "Adjacency",
    "Binning",
    "ClippedInputs",
    "Defence",
    "Defended",
    "DpSgd",
    "EarlierStop",
    "Ensemble",
    "Influence",
    "LabelsOnly",
    "NoisyParameters",
    "OutputDefence",
    "ParameterNoise",
    "Removal",
    "StrongerPenalty",
    "Temperature",
    "TrainingDefence",
    "Unchanged",
    "Votes",
    "parts",
]
