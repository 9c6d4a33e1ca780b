"""Models that can be queried: access levels as types, adapters, and releases that say less."""

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
from leakgauge.models.function import FunctionProbabilities, FunctionRegression, answering, called
from leakgauge.models.release import Bins, LabelOnly, Release, Tempered, as_is, binned_logs, label_logs
from leakgauge.models.sklearn import wrap
from leakgauge.models.torch import is_module, trained_module, wrap_module

__all__ = [
    "AnswerKind",
    "Bins",
    "FunctionProbabilities",
    "FunctionRegression",
    "LabelAccess",
    "LabelOnly",
    "Model",
    "ProbabilityAccess",
    "RegressionAccess",
    "Release",
    "Tempered",
    "answering",
    "answers",
    "as_is",
    "binned_logs",
    "called",
    "is_module",
    "kind_of",
    "label_logs",
    "labels_of",
    "load_estimator",
    "load_factory",
    "trained_module",
    "wrap",
    "wrap_module",
]
