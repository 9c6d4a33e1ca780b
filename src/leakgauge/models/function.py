"""Any function as a model: the adapter for everything that is not scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.errors import user_code
from leakgauge.models.access import (
    ProbabilityAccess,
    RegressionAccess,
    checked_probabilities,
    checked_values,
    own_table,
)

if TYPE_CHECKING:
    from leakgauge.records import Schema


class FunctionProbabilities(ProbabilityAccess):
    """A function from a table of queries to class probabilities.

    Args:
        function: takes the decoded queries (the kind of table the records came from) and returns ``[m, k]``
            probabilities, one column for each of ``schema.classes`` in that order.
        schema: of the records.
    """

    def __init__(self, function: Callable[[object], Floats], schema: Schema) -> None:
        self.function = function
        self.schema = schema

    def log_probabilities(self, X: Floats) -> Floats:
        """Log-probabilities ``[m, k]``."""
        queries = own_table(self.schema.decode(X))
        with user_code(_name(self.function), "predict_proba"):
            answered = np.asarray(self.function(queries), dtype=np.float64)
        return checked_probabilities(answered, len(X), len(self.schema.classes), _name(self.function))


class FunctionRegression(RegressionAccess):
    """A function from a table of queries to predicted values ``[m]``."""

    def __init__(self, function: Callable[[object], Floats], schema: Schema) -> None:
        self.function = function
        self.schema = schema

    def predict(self, X: Floats) -> Floats:
        """Predicted values ``[m]``."""
        queries = own_table(self.schema.decode(X))
        with user_code(_name(self.function), "predict"):
            answered = np.asarray(self.function(queries), dtype=np.float64)
        return checked_values(answered, len(X), _name(self.function))


def _name(function: Callable[..., object]) -> str:
    return getattr(function, "__name__", type(function).__name__)
