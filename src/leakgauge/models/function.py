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


class _Function:
    def __init__(self, function: Callable[[object], Floats], schema: Schema) -> None:
        self.function = function
        self.schema = schema
        self.name: str = getattr(function, "__name__", type(function).__name__)

    def _asked(self, X: Floats, method: str) -> Floats:
        """What the function answers to the decoded queries; an exception of it is told as one of that method."""
        queries = own_table(self.schema.decode(X))
        with user_code(self.name, method):
            return np.asarray(self.function(queries), dtype=np.float64)


class FunctionProbabilities(_Function, ProbabilityAccess):
    """A function from a table of queries to class probabilities.

    Args:
        function: takes the decoded queries (the kind of table the records came from) and returns ``[m, k]``
            probabilities, one column for each of ``schema.classes`` in that order.
        schema: of the records.
    """

    def log_probabilities(self, X: Floats) -> Floats:
        """Log-probabilities ``[m, k]``."""
        return checked_probabilities(self._asked(X, "predict_proba"), len(X), len(self.schema.classes), self.name)


class FunctionRegression(_Function, RegressionAccess):
    """A function from a table of queries to predicted values ``[m]``."""

    def predict(self, X: Floats) -> Floats:
        """Predicted values ``[m]``."""
        return checked_values(self._asked(X, "predict"), len(X), self.name)
