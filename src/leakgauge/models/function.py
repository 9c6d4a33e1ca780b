"""Any function as a model: the adapter for everything that is not scikit-learn.

What answers a table of queries is a function, whether it is one, a method, or an object of another library that can
predict: what its answers mean is read off those about records that it was trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Labels
from leakgauge.errors import ModelError, UserCodeError, user_code
from leakgauge.models.access import (
    RECORDS_ASKED,
    LabelAccess,
    Model,
    ProbabilityAccess,
    RegressionAccess,
    by_turns,
    checked_log_probabilities,
    checked_probabilities,
    checked_schema,
    checked_values,
    one_hot_logs,
    own_table,
)
from leakgauge.models.outputs import Outputs, meaning_of
from leakgauge.models.stated import Stated, refuse_number, refuse_other

if TYPE_CHECKING:
    from leakgauge.records import Records, Schema

OUT_OF_ORDER = (
    " Read like that, they predict no more training records correctly than the most frequent class alone would: check "
    "that the columns are those that the model takes, in their order, that the target is what it was trained on, and "
    "that the answers are probabilities or logits, in the order of the sorted labels."
)
"""What is said of answers whose classes, or of queries whose columns may stand in another order."""


class _Function:
    def __init__(self, function: Callable[[object], Floats], schema: Schema) -> None:
        self.function = function
        self.schema = checked_schema(schema)
        self.name = called(function)

    def _asked(self, X: Floats, method: str) -> Floats:
        """What the function answers to the decoded queries; an exception of it is told as one of that method."""
        return _told(self.function, self.schema, X, method, np.float64)


def called(function: Any) -> str:
    """How messages call a function, or what answers like one."""
    name = str(getattr(function, "__name__", type(function).__name__))
    return "function" if name == "<lambda>" else name


def _told(
    function: Callable[[object], Any], schema: Schema, X: Floats, method: str, dtype: type | None = None
) -> NDArray[Any]:
    queries = own_table(schema.decode(X))
    with user_code(called(function), method):
        answers = function(queries)
        if schema.classes and isinstance(answers, list) and answers and isinstance(answers[0], Mapping):
            return _by_label(answers, schema)
        return _in_order(np.asarray(answers, dtype=dtype), list(getattr(function, "classes_", ())), schema)


def _by_label(answers: list[Mapping[Any, float]], schema: Schema) -> Floats:
    """A number for each class and query ``[m, k]`` where each answer is a map from labels, or from their codes."""
    keys = schema.classes if schema.classes[0] in answers[0] else range(len(schema.classes))
    return np.array([[float(one[key]) for key in keys] for one in answers])


def _in_order(told: NDArray[Any], known: list[Any], schema: Schema) -> NDArray[Any]:
    """Answers with their columns in the order of the classes, where the function says which is which."""
    if told.ndim != 2 or told.shape[1] != len(known) or set(known) != set(schema.classes):
        return told
    return told[:, [known.index(label) for label in schema.classes]]


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


class FunctionOutputs(_Function, ProbabilityAccess):
    """A function whose answers were found to mean probabilities, in one form or another.

    Args:
        function: takes the decoded queries and returns one number for each of ``schema.classes`` ``[m, k]``, or one for
            the second of two classes, ``[m]`` or ``[m, 1]``.
        schema: of the records.
        meaning: what the numbers mean.
        doubt: what speaks against it, for the note.
    """

    def __init__(self, function: Callable[[object], Floats], schema: Schema, meaning: Outputs, doubt: str = "") -> None:
        super().__init__(function, schema)
        self.meaning, self.doubt = meaning, doubt
        self.predict = getattr(function, "stated", Stated()).predict

    @property
    def note(self) -> str:
        """What a reader should know of it."""
        what = "for the second class" if self.meaning.single else "for the classes in the order of their labels"
        return f"The answers of {self.name} were taken for {self.meaning.value} {what}.{self.doubt}"

    def log_probabilities(self, X: Floats) -> Floats:
        """Log-probabilities ``[m, k]``."""
        return self.with_sums(X)[0]

    def with_sums(self, X: Floats) -> tuple[Floats, Floats | None]:
        """The same, and what the numbers add up to ``[m]``."""
        told, k = self._asked(X, "its call"), len(self.schema.classes)
        width = 1 if self.meaning.single else k
        if told.shape not in ((len(X), width), (len(X),) * (width == 1)):
            raise ModelError(
                f"{self.name} gave an array of shape {told.shape} for {len(X)} queries; expected {width} for each"
            )
        told = told.reshape(len(X), width)
        logs = checked_log_probabilities(self.meaning.log_probabilities(told), len(X), k, self.name)
        return logs, self.meaning.sums(told)


class FunctionLabels(_Function, LabelAccess):
    """A function from a table of queries to labels ``[m]``, as they stand in the records."""

    @property
    def note(self) -> str:
        """What a reader should know of it."""
        return f"The answers of {self.name} were taken for labels; a function that answers probabilities tells more."

    def labels(self, X: Floats) -> Labels:
        """Class codes ``[m]``."""
        told = _told(self.function, self.schema, X, "its call").reshape(-1)
        codes = _codes(told, self.schema)
        if len(told) != len(X) or (codes < 0).any():
            raise ModelError(f"{self.name} gave something other than one label of the classes for each query")
        return codes


def answering(function: Callable[[object], Any], records: Records, others: Records | None = None) -> Model:
    """A function of which nothing else is known as a model: what it answers is read off its answers about records.

    A function that remembers what it was asked is then asked for the second time: so it is asked about as many others,
    by turns, and its first answers are kept.

    Args:
        function: takes a table of queries, of the kind that the records came from, and returns for each row a label, a
            number for each class in the order of the labels, or of its attribute ``classes_`` (probabilities, their
            logarithms or logits), a list of maps from labels to these, or one number for the second of two classes;
            for regression a value.
        records: that it was trained on, some of which it is asked about.
        others: that it was not trained on.

    Raises:
        ModelError: it raises an exception, or answers something else.

    >>> from leakgauge.records import Records
    >>> records = Records.from_arrays([[0.0], [1.0], [2.0]], ["a", "b", "b"])
    >>> answering(lambda table: table[:, 0] / 2, records).note
    'The answers of function were taken for one probability for the second class.'
    """
    schema = records.schema
    stated = getattr(function, "stated", Stated())
    refuse_other(stated, records, called(function))
    if not schema.classes:
        return FunctionRegression(function, schema)
    some, is_one = by_turns(records.features, None if others is None else others.features, RECORDS_ASKED)
    n, k, who = len(some), len(schema.classes), called(function)
    try:
        told = _told(function, schema, some, "its call")
    except UserCodeError as error:
        refuse_number(stated, schema)
        raise UserCodeError(f"{error}; what does not answer a table of queries cannot be audited") from error
    single = told.shape in ((n,), (n, 1))
    codes = _codes(told.reshape(-1), schema) if single else np.empty(0, dtype=np.int64)
    if single and (codes >= 0).all():
        named = FunctionLabels(function, schema)
        named.told_before = some, one_hot_logs(codes, k)
        return named
    if single and told.dtype.kind in "USO":
        raise ModelError(
            f"{who} gave something else than the labels of the records for {int((codes < 0).sum())} of {n}; expected "
            "each as it stands in the table: a number is not its text"
        )
    if told.dtype.kind not in "fiub" or not ((single and k == 2) or told.shape == (n, k)):
        raise ModelError(
            f"{who} gave an array of shape {told.shape} and type {told.dtype} for {n} records; expected a label for "
            f"each, or numbers of shape ({n}, {k}) with one for each class in the order of the labels"
            + (", or one number each for the second class" if k == 2 else "")
        )
    numbers = told.reshape(n, -1).astype(np.float64)
    if not np.isfinite(numbers[np.isnan(numbers) | (numbers > 0)]).all():
        raise ModelError(f"{who} gave NaN or infinity; expected labels, probabilities or logits")
    every = numbers
    numbers, labels = numbers[is_one], records.labels[: int(is_one.sum())].astype(np.int64)
    meaning = meaning_of(numbers, labels, no_logit=stated.is_probability)
    if meaning is Outputs.LOGITS and (numbers >= 0).all():
        raise ModelError(
            f"{who} gave numbers that are not below 0 and do not add up to 1, so that they may be logits or anything "
            "else; give probabilities, or subtract from the logits of each record their mean"
        )
    n_right = int((meaning.log_probabilities(numbers).argmax(axis=1) == labels).sum())
    n_constant = int(np.bincount(labels).max()) + (meaning is Outputs.LOGIT)
    found = FunctionOutputs(function, schema, meaning, OUT_OF_ORDER if n_right < n_constant else "")
    found.told_before = some, meaning.log_probabilities(every)
    return found


def _codes(told: NDArray[Any], schema: Schema) -> Labels:
    """The place of each label among the classes ``[m]``, -1 where it is none."""
    place = {value: code for code, value in enumerate(schema.classes)}
    return np.array([place.get(value, -1) for value in told.tolist()], dtype=np.int64)
