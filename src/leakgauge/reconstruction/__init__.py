"""Training records, reconstructed from what a model file holds: counts in trees, coefficients, labels."""

from leakgauge.reconstruction.counts import Bagging
from leakgauge.reconstruction.forests import ForestReconstruction, reconstruct_forest
from leakgauge.reconstruction.matching import CellError, Guesses
from leakgauge.reconstruction.solving import Status

__all__ = ["Bagging", "CellError", "ForestReconstruction", "Guesses", "Status", "reconstruct_forest"]
