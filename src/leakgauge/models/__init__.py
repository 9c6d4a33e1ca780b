"""Models that can be queried: access levels as types, adapters, and wrappers with coarser outputs."""

from leakgauge.models.access import (
    AnswerKind,
    LabelAccess,
    Model,
    ProbabilityAccess,
    RegressionAccess,
    answers,
    kind_of,
    labels_of,
)
from leakgauge.models.files import load_estimator, load_factory
from leakgauge.models.function import FunctionProbabilities, FunctionRegression
from leakgauge.models.sklearn import wrap
from leakgauge.models.torch import wrap_module
from leakgauge.models.wrappers import Binned, LabelOnly, Release, as_is, binned_logs, label_logs, released_off

__all__ = [
    "AnswerKind",
    "Binned",
    "FunctionProbabilities",
    "FunctionRegression",
    "LabelAccess",
    "LabelOnly",
    "Model",
    "ProbabilityAccess",
    "RegressionAccess",
    "Release",
    "answers",
    "as_is",
    "binned_logs",
    "kind_of",
    "label_logs",
    "labels_of",
    "load_estimator",
    "load_factory",
    "released_off",
    "wrap",
    "wrap_module",
]
