"""Labels that a classifier predicts, which need not be those of its largest probabilities.

The two differ where probabilities are fitted to a score by whose sign it predicts, as those of scikit-learn's ``SVC``
are (Platt 1999), where it has a threshold of its own, and in whatever code of the user's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakgauge.errors import ModelError
from leakgauge.models.access import LabelAccess, Model, labels_of
from leakgauge.models.function import FunctionLabels, FunctionOutputs
from leakgauge.models.sklearn import SklearnLabels, SklearnProbabilities, may_predict_apart

if TYPE_CHECKING:
    from leakgauge.arrays import Floats


def predicted(model: Model, some: Floats | None = None) -> LabelAccess | None:
    """A model that answers what another predicts, where that has probabilities as well and may predict another label.

    Args:
        model: the other.
        some: queries ``[m, d]`` by which it is seen whether an object that is no estimator predicts labels.

    Returns:
        ``None`` for a model without probabilities, and where it is known to predict the most probable label.
    """
    match model:
        case SklearnProbabilities() if may_predict_apart(model.estimator):
            return SklearnLabels(model.estimator, model.schema)
        case FunctionOutputs() if model.predict is not None and some is not None:
            found = FunctionLabels(model.predict, model.schema)
            try:
                labels_of(found, some)
            except ModelError:
                return None
            return found
    return None
