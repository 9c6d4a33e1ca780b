"""What makes a model safe to release, at what cost in accuracy? One package or file for each defence."""

from leakgauge.defences.defence import Defence, Defended, TrainingDefence, Unchanged
from leakgauge.defences.dp_sgd import Adjacency, DpSgd
from leakgauge.defences.ensemble import Ensemble, Votes, parts
from leakgauge.defences.noise import NoisyParameters, ParameterNoise
from leakgauge.defences.outputs import Binning, LabelsOnly, OutputDefence, Temperature
from leakgauge.defences.regularise import EarlierStop, StrongerPenalty
from leakgauge.defences.removal import Influence, Removal

__all__ = [
    "Adjacency",
    "Binning",
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
