"""Training records, reconstructed from what a model file holds: counts in trees, coefficients, labels."""

from leakgauge.reconstruction.counts import Bagging
from leakgauge.reconstruction.forests import ForestReconstruction, reconstruct_forest
from leakgauge.reconstruction.labels import Extraction, extract_linear
from leakgauge.reconstruction.last_record import LastRecord, last_record
from leakgauge.reconstruction.matching import CellError, Guesses
from leakgauge.reconstruction.solving import Status
from leakgauge.reconstruction.thresholds import ColumnValues, column_values

__all__ = [
    "Bagging",
    "CellError",
    "ColumnValues",
    "Extraction",
    "ForestReconstruction",
    "Guesses",
    "LastRecord",
    "Status",
    "column_values",
    "extract_linear",
    "last_record",
    "reconstruct_forest",
]
