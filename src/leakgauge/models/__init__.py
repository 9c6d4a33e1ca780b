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
from leakgauge.models.endpoints import Endpoint, EndpointOutputs, Layout, Protocol, open_endpoint
from leakgauge.models.files import load_estimator, load_factory
from leakgauge.models.function import FunctionProbabilities, FunctionRegression, answering, called
from leakgauge.models.release import Bins, LabelOnly, Release, Tempered, as_is, binned_logs, label_logs
from leakgauge.models.sklearn import wrap
from leakgauge.models.torch import is_module, trained_module, wrap_module

__all__ = [
    "AnswerKind",
    "Bins",
    "Endpoint",
    "EndpointOutputs",
    "FunctionProbabilities",
    "FunctionRegression",
    "LabelAccess",
    "LabelOnly",
    "Layout",
    "Model",
    "ProbabilityAccess",
    "Protocol",
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
    "open_endpoint",
    "trained_module",
    "wrap",
    "wrap_module",
]
