"""Asking the model about everybody with every value in place: the queries that all attacks share.

One call of the model answers many records and values at once; see ``benchmarks/attributes.py`` for what that saves
against asking record by record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.attributes.attribute import SensitiveAttribute
from leakgauge.errors import ModelError
from leakgauge.models import AnswerKind, Model, answers, kind_of
from leakgauge.records import Schema, Task

Answering: TypeAlias = Model | Callable[[Floats], Floats]
"""A model; or a function from encoded queries ``[q, d]`` to log-probabilities ``[q, k]`` or values ``[q, 1]``."""

NUMBERS_AT_ONCE = 2**18
"""Entries of the matrix of queries of one call: 2 MB, so that what a model makes of them stays in the cache."""

_SAME = 1e-9


def kind_of_answers(model: Answering, schema: Schema) -> AnswerKind:
    """What the model answers; a mere function answers what the task asks for."""
    if callable(model):
        return AnswerKind.VALUES if schema.task is Task.REGRESSION else AnswerKind.PROBABILITIES
    return kind_of(model)


def ask(model: Answering, features: Floats, schema: Schema) -> Floats:
    """What the model says about encoded queries, ``[q, k]`` as :func:`leakgauge.models.answers`.

    Raises:
        ModelError: a function answered in another shape, or NaN.
    """
    if not callable(model):
        return answers(model, features, len(schema.classes))
    told = np.asarray(model(features), dtype=np.float64)
    expected = (len(features), max(1, len(schema.classes)))
    if told.shape != expected:
        raise ModelError(f"the prediction function gave an array of shape {told.shape}; expected {expected}")
    if np.isnan(told).any():
        raise ModelError("the prediction function gave NaN; expected a number for each query")
    return told


def ask_about_values(model: Answering, features: Floats, schema: Schema, attribute: SensitiveAttribute) -> Floats:
    """What the model says about each record with each value of an attribute in place.

    Raw columns are what changes: an encoding inside a pipeline is applied anew to each query.

    Args:
        model: what is asked.
        features: encoded records ``[n, d]``; what their hidden columns hold does not matter.
        schema: of the records.
        attribute: the hidden columns and their m values.

    Returns:
        ``[n, m, k]`` log-probabilities, or ``[n, m, 1]`` numbers; row i belongs to record i.

    Raises:
        ModelError: the model refuses a query, such as a value that it was trained without, or as :func:`ask`.
    """
    n, d = features.shape
    m, k = len(attribute), max(1, len(schema.classes))
    told = np.empty((n, m, k))
    rows = max(1, NUMBERS_AT_ONCE // (m * d))
    for start in range(0, n, rows):
        part = attribute.completed(features[start : start + rows])
        try:
            told[start : start + rows] = ask(model, part.reshape(len(part) * m, d), schema).reshape(len(part), m, k)
        except ModelError as error:
            raise ModelError(
                f"attribute {attribute.name!r}: the model cannot be queried with each of {m} values ({error}); "
                'if it was trained without one of them, let its encoder accept such values (handle_unknown="ignore")'
            ) from error
    return told


def ignores(told: Floats) -> bool:
    """Whether the model said the same whatever the value, about everybody, ``told [n, m, k]``; up to rounding."""
    first = told[:, :1]
    with np.errstate(invalid="ignore"):
        change = np.where(told == first, 0.0, np.abs(told - first))
    return bool((change <= _SAME * (1 + np.abs(np.where(np.isinf(first), 0.0, first)))).all())
