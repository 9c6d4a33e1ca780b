"""Models that can be queried: access levels as types, adapters, and releases that say less."""

from leakgauge.models.access import (
    AnswerKind,
    LabelAccess,
    Model,
    ProbabilityAccess,
    RegressionAccess,
    answers,
    answers_with_sums,
    kind_of,
    labels_of,
)
from leakgauge.models.endpoints import Endpoint, EndpointOutputs, Layout, Protocol, open_endpoint
from leakgauge.models.files import SAFETENSORS_SUFFIX, is_pickle, load_estimator, load_factory, load_object
from leakgauge.models.function import FunctionProbabilities, FunctionRegression, answering, called
from leakgauge.models.onnx import SessionFunction, is_session
from leakgauge.models.pickles import PickleFile, looked_at
from leakgauge.models.release import Bins, LabelOnly, Release, Tempered, as_is, binned_logs, label_logs
from leakgauge.models.sklearn import wrap
from leakgauge.models.torch import is_module, trained_module, with_state, wrap_module

__all__ = [
    "SAFETENSORS_SUFFIX",
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
    "PickleFile",
    "ProbabilityAccess",
    "Protocol",
    "RegressionAccess",
    "Release",
    "SessionFunction",
    "Tempered",
    "answering",
    "answers",
    "answers_with_sums",
    "as_is",
    "binned_logs",
    "called",
    "is_module",
    "is_pickle",
    "is_session",
    "kind_of",
    "label_logs",
    "labels_of",
    "load_estimator",
    "load_factory",
    "load_object",
    "looked_at",
    "open_endpoint",
    "trained_module",
    "with_state",
    "wrap",
    "wrap_module",
]
