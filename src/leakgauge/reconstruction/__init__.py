"""Training records, reconstructed from what a model file holds: counts in trees, coefficients, labels."""

from leakgauge.reconstruction.counts import Bagging
from leakgauge.reconstruction.forests import ForestReconstruction, reconstruct_forest
from leakgauge.reconstruction.last_record import LastRecord, last_record
from leakgauge.reconstruction.matching import CellError, Guesses
from leakgauge.reconstruction.solving import Status

__all__ = [
    "Bagging",
    "CellError",
    "ForestReconstruction",
    "Guesses",
    "LastRecord",
    "Status",
    "last_record",
    "reconstruct_forest",
]
