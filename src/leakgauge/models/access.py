"""What may be asked of a model: access levels are types, and an attack's signature says which one it needs.

Queries are encoded features, float64 ``[m, d]``, in the column order of the schema
(:class:`leakgauge.records.Schema`); answers come back in the schema's class order, whatever order the model
itself was fitted with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Labels
from leakgauge.checking import instance
from leakgauge.errors import ModelError, user_code

if TYPE_CHECKING:
    from leakgauge.records import Schema


RECORDS_ASKED = 1000
"""By which it is found what answers mean, where nothing else says so."""


class AnswerKind(StrEnum):
    """What a model answers: the most that its access level gives."""

    PROBABILITIES = "probabilities"
    LABELS = "labels"
    VALUES = "values"


class Queried:
    """What all models have in common: they are asked, which may cost something.

    Attributes:
        told_before: queries ``[m, d]`` and its answers ``[m, k]`` to them when it was first looked at, if it was.
    """

    told_before: tuple[Floats, Floats] | None = None

    @property
    def may_remember(self) -> bool:
        """Whether it is code that may answer by what it was asked before, or together with."""
        return True

    @property
    def keeps_values(self) -> bool:
        """Whether a part of it keeps values of its training records, which answers to changed records may show."""
        return False

    def afresh(self) -> Self:
        """The same model, whose answers are not those that are kept of earlier queries."""
        return self

    def affordable(self, n_queries: int) -> int:
        """How many of so many further queries may be asked."""
        return n_queries


class LabelAccess(Queried, ABC):
    """The model answers with the class it holds most likely, and nothing else."""

    @abstractmethod
    def labels(self, X: Floats) -> Labels:
        """Class codes ``[m]`` of the queries ``X [m, d]``."""


class ProbabilityAccess(LabelAccess):
    """The model answers with a probability for each class.

    It should be the case that ``np.exp(model.log_probabilities(X)).sum(axis=1)`` is 1 unless the model is a
    wrapper that says otherwise, and that ``model.labels(X)`` is its ``argmax``.
    """

    @abstractmethod
    def log_probabilities(self, X: Floats) -> Floats:
        """Natural logarithms of the class probabilities, ``[m, k]``; ``-inf`` for a probability of 0."""

    def with_sums(self, X: Floats) -> tuple[Floats, Floats | None]:
        """The same, and what each answer added up to before it was made into probabilities ``[m]``.

        ``None`` where that is 1 or can be read off the log-probabilities; see `Outputs.sums`.
        """
        return self.log_probabilities(X), None

    def labels(self, X: Floats) -> Labels:
        """The most likely class; the first one in the schema's order where several are equal."""
        likeliest: Labels = np.argmax(self.log_probabilities(X), axis=1).astype(np.int64)
        return likeliest


class RegressionAccess(Queried, ABC):
    """The model answers with a number."""

    @abstractmethod
    def predict(self, X: Floats) -> Floats:
        """Predicted values ``[m]``, in the units of the label."""


Model: TypeAlias = LabelAccess | RegressionAccess


def kind_of(model: Model) -> AnswerKind:
    """The most informative kind of answer the model gives."""
    match model:
        case ProbabilityAccess():
            return AnswerKind.PROBABILITIES
        case RegressionAccess():
            return AnswerKind.VALUES
        case LabelAccess():
            return AnswerKind.LABELS
    raise ModelError(
        f"a model must be a ProbabilityAccess, LabelAccess or RegressionAccess, got {type(model).__name__}; "
        "wrap it with leakgauge.models.wrap or leakgauge.models.FunctionProbabilities"
    )


def own_table(table: Any) -> Any:
    """What the user's code is given: a table that it may write to, as ``StandardScaler(copy=False)`` does.

    Others are asked about the same queries afterwards, and some of scikit-learn's compiled code refuses arrays that may
    not be written to, which those of records are. Tables of Polars and Arrow cannot be written to.
    """
    return table.copy() if isinstance(table, np.ndarray) or hasattr(table, "iloc") else table


def _sealed(X: Floats) -> Floats:
    """Queries that a model cannot change."""
    seen = X.view()
    seen.flags.writeable = False
    return seen


def answers(model: Model, X: Floats, n_classes: int) -> Floats:
    """What the model says about the queries: the first that `answers_with_sums` gives."""
    return answers_with_sums(model, X, n_classes)[0]


def answers_with_sums(model: Model, X: Floats, n_classes: int) -> tuple[Floats, Floats | None]:
    """What the model says about the queries, in one shape for all access levels.

    Args:
        model: the model.
        X: encoded queries ``[m, d]``.
        n_classes: ``k``; 0 for regression.

    Returns:
        ``[m, k]`` log-probabilities; for a label-only model ``0`` at the class it names and ``-inf`` elsewhere;
        for a regressor ``[m, 1]`` predicted values. And what answers added up to ``[m]``, as
        :meth:`ProbabilityAccess.with_sums` tells it.

    Raises:
        ModelError: the model raises an exception, or its answers are not of that kind.
    """
    who = type(model).__name__
    match model:
        case ProbabilityAccess():
            with user_code(who, "log_probabilities"):
                told, sums = model.with_sums(_sealed(X))
                logs = np.asarray(told, dtype=np.float64)
            _check_shape(logs, (len(X), n_classes), who)
            silent = np.isnan(logs).all(axis=1) & getattr(model, "may_not_know", False)
            _refuse_rows(
                ~((logs <= SUM_SLACK).all(axis=1) | silent),
                f"{who} gave NaN or a log-probability above 0",
                "natural logarithms of probabilities",
            )
            return logs, sums
        case RegressionAccess():
            with user_code(who, "predict"):
                values = np.asarray(model.predict(_sealed(X)), dtype=np.float64)
            return checked_values(values, len(X), who)[:, None], None
        case LabelAccess():
            labels = labels_of(model, X)
            _refuse_rows(
                (labels < 0) | (labels >= n_classes), f"{who} predicted a label that is not a class", "a class code"
            )
            return one_hot_logs(labels, n_classes), None
    raise ModelError(f"a model must have a prediction method, got {type(model).__name__}")


def labels_of(model: LabelAccess, X: Floats) -> Labels:
    """The class codes ``[m]`` that the model answers to the queries ``X [m, d]``.

    Raises:
        ModelError: the model raises an exception, or answers anything but a whole number for each query.
    """
    who = type(model).__name__
    with user_code(who, "labels"):
        labels = np.asarray(model.labels(_sealed(X)))
    if labels.shape != (len(X),) or labels.dtype.kind not in "iu":
        raise ModelError(
            f"{who} gave labels of shape {labels.shape} and type {labels.dtype}; "
            f"expected one class code for each of {len(X)} records"
        )
    return labels.astype(np.int64)


def one_hot_logs(labels: Labels, n_classes: int) -> Floats:
    """Log-probabilities of a model that is certain of its label: 0 at the label, ``-inf`` elsewhere."""
    logs = np.full((len(labels), n_classes), -np.inf)
    logs[np.arange(len(labels)), labels] = 0.0
    return logs


DECLARE_CLASSES = "make the records with leakgauge.records.from_pair(train, holdout, task=Task.CLASSIFICATION)"
"""What to do where a label was taken for a quantity and is none."""

MAX_ABSOLUTE_VALUE = 1e150
"""Of labels and predictions that are numbers: squares of their errors must be finite."""

SUM_SLACK = 1e-6
"""How far the probabilities of one answer may be from summing to 1: float32 models are."""

LOG_SLACK = 1e-2
"""The same of log-probabilities in single precision, whose error is that of sums which may be 100,000; and of those
that scikit-learn computes in double precision, of sums which may be 1e13."""


def checked_schema(schema: object) -> Schema:
    """What an adapter was given as the schema of its records, if it is one."""
    from leakgauge.records import Schema

    checked: Schema = instance(Schema)("schema", schema)
    return checked


def checked_probabilities(
    probabilities: Floats, n_rows: int, n_classes: int, who: str, slack: float = SUM_SLACK
) -> Floats:
    """Logarithms of ``probabilities`` after making sure that they are such.

    Args:
        probabilities: what a model answered, to be ``[n_rows, n_classes]``.
        n_rows: the number of queries.
        n_classes: the number of classes of the schema.
        who: the model's name, for messages.
        slack: how far they may be from summing to 1.

    Returns:
        Natural logarithms ``[n_rows, n_classes]``, ``-inf`` where a probability is 0.

    Raises:
        ModelError: wrong shape, NaN, below 0 or above 1, or rows that do not sum to 1.
    """
    probabilities = np.asarray(probabilities, dtype=np.float64)
    _check_shape(probabilities, (n_rows, n_classes), who)
    _refuse_rows(~np.isfinite(probabilities).all(axis=1), f"{who} gave NaN or infinity", "a probability in [0, 1]")
    outside = ((probabilities < -slack) | (probabilities > 1 + slack)).any(axis=1)
    _refuse_rows(outside, f"{who} gave a probability outside [0, 1]", "probabilities, not scores or logits")
    sums = probabilities.sum(axis=1)
    off = np.abs(sums - 1) > slack
    _refuse_rows(
        off,
        f"{who} gave probabilities that do not sum to 1 (for example {sums[off][0]:.6g})" if off.any() else "",
        "one probability for each class, summing to 1; normalise them, or audit the labels only",
    )
    with np.errstate(divide="ignore"):
        return np.log(np.clip(probabilities, 0.0, 1.0))


def checked_log_probabilities(
    logs: Floats, n_rows: int, n_classes: int, who: str, *, normalises: bool = False
) -> Floats:
    """The same for a model that answers log-probabilities itself, which keeps tiny ones from becoming 0.

    Args:
        logs: what it answered, to be ``[n_rows, n_classes]``.
        n_rows: the number of queries.
        n_classes: the number of classes of the schema.
        who: the model's name, for messages.
        normalises: whether it is known to normalise them, so that what they sum to differs from 1 by rounding alone, as
            where naive Bayes answers far from its records; they are then normalised once more.
    """
    single = np.asarray(logs).dtype == np.float32
    logs = np.asarray(logs, dtype=np.float64)
    _check_shape(logs, (n_rows, n_classes), who)
    _refuse_rows(np.isnan(logs).any(axis=1), f"{who} gave NaN", "log-probabilities at or below 0")
    with np.errstate(over="ignore"):
        probabilities = np.exp(logs)
    checked_probabilities(probabilities, n_rows, n_classes, who, LOG_SLACK if single or normalises else SUM_SLACK)
    sums = probabilities.sum(axis=1)
    off = np.abs(sums - 1) > SUM_SLACK
    if normalises and not single and off.any():
        logs = np.where(off[:, None], logs - np.log(sums)[:, None], logs)
    return np.minimum(logs, 0.0)


def checked_values(values: Floats, n_rows: int, who: str) -> Floats:
    """Predicted values ``[n_rows]`` after making sure that there is one finite number for each query."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    _check_shape(values, (n_rows,), who)
    _refuse_rows(~np.isfinite(values), f"{who} gave NaN or infinity", "a finite number for each record")
    _refuse_rows(np.abs(values) > MAX_ABSOLUTE_VALUE, f"{who} gave more than 1e150 in size", "numbers of usual size")
    return values


def _check_shape(array: Floats, expected: tuple[int, ...], who: str) -> None:
    if array.shape != expected:
        raise ModelError(
            f"{who} gave an array of shape {array.shape}; expected {expected} (records x classes); "
            "check that the model was made for this table and these labels"
        )


def _refuse_rows(bad: NDArray[np.bool_] | np.bool_, what: str, expected: str) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        first = int(rows[0])
        raise ModelError(f"{what} for {len(rows)} of {np.size(bad)} records (first: row {first}); expected {expected}")


def by_turns(rows: Floats, others: Floats | None, most: int) -> tuple[Floats, Flags]:
    """Whom to ask what a model answers: what remembers its first queries must not learn of members alone.

    Args:
        rows: of training records ``[n, d]``.
        others: of as many other records as there are ``[m, d]``.
        most: rows to ask about.

    Returns:
        The first rows of both by turns, and which are of training records.
    """
    n_others = 0 if others is None else min(len(others), most // 2)
    own = rows[: most - most // 2 if n_others else most]
    order = np.argsort(np.concatenate([np.arange(len(own)), np.arange(n_others) + 0.5]))
    every = own if others is None else np.concatenate([own, others[:n_others]])
    return every[order], order < len(own)
