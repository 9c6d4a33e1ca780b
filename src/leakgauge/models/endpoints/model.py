"""A model behind an endpoint, with the access that its answers give: what they mean is read off the first ones."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from leakgauge.arrays import Floats, Indices, Labels
from leakgauge.errors import ConfigError, ModelError
from leakgauge.models.access import (
    LabelAccess,
    ProbabilityAccess,
    RegressionAccess,
    by_turns,
    checked_log_probabilities,
    checked_values,
)
from leakgauge.models.endpoints.asking import Asker, Tell
from leakgauge.models.endpoints.kept import FOLDER
from leakgauge.models.endpoints.protocols import UnusableAnswerError
from leakgauge.models.endpoints.settings import Endpoint, EndpointOutputs, Protocol
from leakgauge.models.outputs import Outputs, meaning_of, n_decimals
from leakgauge.records import Records, Value
from leakgauge.records.columns import in_order

SINGLE_PRECISION_SLACK = 1e-6
"""How far probabilities in single precision may be from summing to 1."""

HALF_PRECISION_SLACK = 2.0**-11
"""The same in half precision, which moves each by no more than this part of it."""

LONGEST_DECIMALS = 9
"""Decimals that a server may round to; what it rounds further adds up to 1 in single precision."""

FEW_VALUES = 50
"""So many different probabilities, or fewer, are said to be few, of at least ten times as many."""


@dataclass(frozen=True)
class Form:
    """The form that all answers of one endpoint have.

    Args:
        kind: in words.
        names: of the numbers in one answer, where they have names.
        width: how many numbers there are in it; 0 for text and for true and false.
    """

    kind: str
    names: tuple[str, ...] = ()
    width: int = 1

    @classmethod
    def of(cls, answer: Any) -> Form:
        """Of one answer.

        Raises:
            UnusableAnswerError: it is of none that answers have.
        """
        values = list(answer.values()) if isinstance(answer, dict) else answer
        match values:
            case str():
                return cls("text", width=0)
            case bool() | [bool()]:  # which are numbers to Python
                return cls("true or false", width=0)
            case int() | float():
                return cls("a number")
            case list() if values and all(map(_is_number, values)):
                if len(values) == 1:
                    return cls("a number")
                names = tuple(sorted(answer)) if isinstance(answer, dict) else ()
                return cls("numbers by name" if names else "numbers", names, len(values))
        raise UnusableAnswerError("an answer that is neither a label nor numbers")

    @classmethod
    def of_all(cls, answers: Sequence[Any]) -> Form:
        """The one that all have."""
        forms = {cls.of(answer) for answer in answers}
        if len(forms) > 1:
            raise UnusableAnswerError("answers of several forms")
        return next(iter(forms))

    def numbers(self, answers: Sequence[Any]) -> Floats:
        """All numbers ``[m, width]``, by name in the order of the names."""
        rows = answers
        if self.names:
            rows = [[answer[name] for name in self.names] for answer in answers]
        elif self.width == 1:
            rows = [[_only(answer)] for answer in answers]
        try:
            return np.array(rows, dtype=np.float64)
        except OverflowError:
            raise UnusableAnswerError("an answer with a number of more than 1e308 in size") from None


@dataclass(frozen=True)
class LabelReading:
    """Answers are labels.

    Args:
        codes: code of each class, by label and by its text.
        who: the endpoint's name, for messages.
    """

    codes: dict[Value, int]
    who: str

    @property
    def of_nothing(self) -> Labels:
        """Of no answers."""
        return np.empty(0, dtype=np.int64)

    def __call__(self, answers: Sequence[Any]) -> Labels:
        """Class codes ``[m]``."""
        if Form.of_all(answers).width > 1:
            raise UnusableAnswerError("answers of another form than before")
        binary = {label for label in self.codes if not isinstance(label, str)} <= {False, True}
        given = map(_only, answers)
        labels = [self.codes.get(one) if binary or not isinstance(one, bool) else None for one in given]
        unknown = sum(label is None for label in labels)
        if unknown:
            raise ModelError(
                f"{self.who} gave a label that is not among the classes for {unknown:,} of {len(labels):,} records; "
                'declare all classes, check the label column, or set outputs = "probabilities" if these are such'
            )
        return np.array(labels, dtype=np.int64)


@dataclass(frozen=True)
class ProbabilityReading:
    """Answers are numbers about classes.

    Args:
        form: of the answers.
        meaning: of the numbers.
        order: code of the class that each column is about; those of both classes where there is one number.
        n_classes: of the schema.
        who: the endpoint's name, for messages.
    """

    form: Form
    meaning: Outputs
    order: tuple[int, ...]
    n_classes: int
    who: str

    @property
    def of_nothing(self) -> Floats:
        """Of no answers."""
        return np.empty((0, self.n_classes))

    def __call__(self, answers: Sequence[Any]) -> Floats:
        """Log-probabilities ``[m, k]`` in the schema's order."""
        if Form.of_all(answers) != self.form:
            raise UnusableAnswerError("answers of another form than before")
        given, n = self.form.numbers(answers), len(answers)
        if self.meaning in (Outputs.PROBABILITIES, Outputs.PROBABILITY):
            own = self._of_probabilities(np.hstack([1 - given, given]) if self.meaning.single else given)
        elif not np.isfinite(given).all() and self.meaning is not Outputs.LOG_PROBABILITIES:
            n_broken = int(np.count_nonzero(~np.isfinite(given).all(axis=1)))
            raise ModelError(
                f"{self.who} gave NaN or infinity for {n_broken:,} of {n:,} records; expected finite numbers"
            )
        else:
            own = checked_log_probabilities(self.meaning.log_probabilities(given), n, len(self.order), self.who)
        logs = np.full((n, self.n_classes), -np.inf)
        logs[:, self.order] = own
        return logs

    def _of_probabilities(self, given: Floats) -> Floats:
        """Logarithms; the sum of rounded probabilities may be off by what rounding each of them does to it.

        Rounding k numbers to d decimals moves their sum by less than ``k / 2`` times ``10 ** -d``, and to a multiple of
        that, but for ties.
        """
        with np.errstate(invalid="ignore"):
            inside = (given >= -SINGLE_PRECISION_SLACK) & (given <= 1 + SINGLE_PRECISION_SLACK)
        outside = int(np.count_nonzero(~inside.all(axis=1)))
        if outside:
            raise ModelError(
                f"{self.who} gave a number outside [0, 1] for {outside:,} of {len(given):,} records; expected "
                'probabilities; if they are logits, set outputs = "logits"'
            )
        decimals = n_decimals(given, LONGEST_DECIMALS)
        slack = SINGLE_PRECISION_SLACK + ((given.shape[1] - 1) // 2 * 10.0**-decimals if decimals else 0.0)
        if np.array_equal(given.astype(np.float16), given):
            slack += HALF_PRECISION_SLACK
        sums = given.sum(axis=1)
        off = np.abs(sums - 1) > slack
        if off.any():
            raise ModelError(
                f"{self.who} gave probabilities that do not sum to 1 for {int(off.sum()):,} of {len(given):,} records "
                f"(for example {sums[off][0]:.6g}); expected one for each class, in [0, 1]; "
                'if they are logits, set outputs = "logits"'
            )
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.clip(given, 0.0, 1.0)))


@dataclass(frozen=True)
class ValueReading:
    """Answers are numbers that a regressor predicts.

    Args:
        who: the endpoint's name, for messages.
    """

    who: str

    @property
    def of_nothing(self) -> Floats:
        """Of no answers."""
        return np.empty(0)

    def __call__(self, answers: Sequence[Any]) -> Floats:
        """Predicted values ``[m]``."""
        form = Form.of_all(answers)
        if form.width != 1:
            raise UnusableAnswerError("answers that are not one number")
        return checked_values(form.numbers(answers), len(answers), self.who)


Reading: TypeAlias = LabelReading | ProbabilityReading | ValueReading


class RemoteModel:
    """What models behind an endpoint have in common.

    Args:
        asker: of the endpoint.
        reading: what its answers mean.
    """

    def __init__(self, asker: Asker, reading: Reading) -> None:
        self.asker, self.reading, self.turn = asker, reading, 0

    def afresh(self) -> Self:
        """Asked again about rows that it has answered."""
        again = copy.copy(self)
        again.turn = 1
        return again

    def affordable(self, n_queries: int) -> int:
        """As ``max_queries`` allows."""
        return self.asker.affordable(n_queries)

    @property
    def note(self) -> str:
        """What a reader should know of it."""
        protocol, n = self.asker.endpoint.protocol.value, self.asker.n_asked
        return f"The model was queried behind an endpoint (protocol {protocol}; {n:,} queries)."

    def _answers(self, X: Floats) -> Any:
        if not len(X):
            return self.reading.of_nothing
        return self.reading(self.asker.ask(X, self.reading, turn=self.turn))


class RemoteProbabilities(RemoteModel, ProbabilityAccess):
    """Behind an endpoint that answers probabilities or logits."""

    reading: ProbabilityReading

    def __init__(self, asker: Asker, reading: ProbabilityReading) -> None:
        super().__init__(asker, reading)
        self._first: Floats | None = None

    def log_probabilities(self, X: Floats) -> Floats:
        """Log-probabilities ``[m, k]``."""
        logs: Floats = self._answers(X)
        self._first = logs if self._first is None else self._first
        return logs

    def with_sums(self, X: Floats) -> tuple[Floats, Floats | None]:
        """The same, and what the numbers add up to ``[m]``: what was answered once is not asked for again."""
        logs = self.log_probabilities(X)
        if not len(X):
            return logs, None
        given = self.reading.form.numbers(self.asker.ask(X, self.reading, turn=self.turn))
        return logs, self.reading.meaning.sums(given)

    @property
    def note(self) -> str:
        """What its answers were taken for, in which order, and whether they are rounded."""
        said = f"{super().note} Its answers were taken for {self.reading.meaning.value}{self._order}."
        return said + self._coarse

    @property
    def _order(self) -> str:
        if self.reading.form.names:
            return ", by the names of the classes in them"
        declared = bool(self.asker.endpoint.classes)
        return f" in the order of the {'declared' if declared else 'sorted'} classes"

    @property
    def _coarse(self) -> str:
        probabilities = np.exp(np.empty((0, 1)) if self._first is None else self._first)
        decimals, n_values = n_decimals(probabilities), len(np.unique(probabilities))
        rounded = decimals is not None and probabilities.size > 0
        if not rounded and not (n_values <= FEW_VALUES and 10 * n_values <= probabilities.size):
            return ""
        how = f"have at most {decimals} decimals and " if rounded else ""
        return (
            f" The probabilities {how}take {n_values:,} different values among {probabilities.size:,}: they are "
            "rounded, or those of a model with few different outputs. Shadow models, if there are any, are not "
            "rounded; with binned probabilities as released outputs, all models are compared alike."
        )


class RemoteLabels(RemoteModel, LabelAccess):
    """Behind an endpoint that answers labels."""

    def labels(self, X: Floats) -> Labels:
        """Class codes ``[m]``."""
        codes: Labels = self._answers(X)
        return codes

    @property
    def note(self) -> str:
        """That there are no probabilities, and how there could be."""
        match self.asker.endpoint.protocol:
            case Protocol.MLFLOW:
                how = 'log the model with pyfunc_predict_fn="predict_proba"'
            case Protocol.OIP_V2:
                how = 'let the server have an output "predict_proba"'
            case Protocol.JSON:
                how = "name the place of the probabilities as the answer"
        return f"{super().note} It answers labels only, the default of many servers; to audit probabilities, {how}."


class RemoteRegression(RemoteModel, RegressionAccess):
    """Behind an endpoint that answers numbers."""

    def predict(self, X: Floats) -> Floats:
        """Predicted values ``[m]``."""
        values: Floats = self._answers(X)
        return values


def open_endpoint(
    endpoint: Endpoint, train: Records, holdout: Records, *, folder: Path | None = None, tell: Tell | None = None
) -> RemoteLabels | RemoteProbabilities | RemoteRegression:
    """A model behind an endpoint, asked about a few members and others by turns to see what it answers.

    Args:
        endpoint: says where it is and how it is asked.
        train: training records, under the schema that the model knows.
        holdout: others, which it will be asked about too.
        folder: the run folder; answers are kept in ``cache`` of the endpoint where that is given.
        tell: called as answers come, with the queries that were answered and those of that call.

    Raises:
        ConfigError: ``max_queries`` does not allow one query for each record, or the token is missing.
        ModelError: what it answers is nothing that a model for these labels answers.
        EndpointError: it cannot be reached, or does not take the queries.
    """
    schema = train.schema
    asker = Asker(endpoint, schema, endpoint.cache or (None if folder is None else folder / FOLDER), tell)
    everyone = np.concatenate([train.features, holdout.features])
    n_needed = asker.n_different(everyone)
    if asker.affordable(n_needed) < n_needed:
        raise ConfigError(
            f"max_queries = {endpoint.max_queries:,} is less than one query for each of {n_needed:,} different "
            "training and holdout records; raise it, or give fewer records"
        )
    some, of_train = by_turns(train.features, holdout.features, asker.wire.batch_rows)
    trained_on = train[: int(of_train.sum())]

    def read_off(answers: list[Any]) -> Reading:
        found = _reading(endpoint, trained_on, [answers[place] for place in np.flatnonzero(of_train)])
        found(answers)
        return found

    asker.find_form(some, lambda answers: read_off(_of_rows(asker, some, answers)))
    reading = read_off(asker.ask(some, len))
    match reading:
        case ValueReading():
            return RemoteRegression(asker, reading)
        case LabelReading():
            return RemoteLabels(asker, reading)
        case ProbabilityReading():
            return RemoteProbabilities(asker, reading)


def _of_rows(asker: Asker, some: Floats, answers: list[Any]) -> list[Any]:
    """Answers about different rows as those about all."""
    rows = [json.dumps(row) for row in asker.schema.plain_rows(some)]
    known = dict(zip(dict.fromkeys(rows), answers, strict=True))
    return [known[row] for row in rows]


def _reading(endpoint: Endpoint, records: Records, answers: Sequence[Any]) -> Reading:
    """What answers about training records mean."""
    schema, who, form = records.schema, f"endpoint {endpoint.name}", Form.of_all(answers)
    if not schema.classes:
        if form.width != 1:
            raise UnusableAnswerError("answers that are not one number")
        return ValueReading(who)
    codes, declared = _codes(schema.classes), endpoint.outputs
    if form.width <= 1:
        known = all(_only(answer) in codes for answer in answers)
        if declared is EndpointOutputs.LABELS or form.width == 0 or (declared is None and known):
            return LabelReading(codes, who)
    elif declared is EndpointOutputs.LABELS:
        raise ModelError(f'{who} gave several numbers for each record, and outputs = "labels" is set; leave it out')
    order, given = _order(endpoint, form, schema.classes), form.numbers(answers)
    labels = np.asarray(records.labels, dtype=np.int64)
    if form.width > 1:
        meaning = _meaning(given, labels) if declared is None else Outputs(declared.value)
    elif len(order) == 2:
        meaning = _SINGLE.get(declared) or meaning_of(given, (labels == order[1]).astype(np.int64))
    else:
        raise ModelError(
            f"{who} gave one number for each record that is not among the {len(order)} classes; expected a label, or a "
            "number for each class"
        )
    reading = ProbabilityReading(form, meaning, order, len(schema.classes), who)
    if not form.names and not endpoint.classes:
        _refuse_other_order(reading(answers), labels, who)
    return reading


_SINGLE: dict[EndpointOutputs | None, Outputs] = {
    EndpointOutputs.PROBABILITIES: Outputs.PROBABILITY,
    EndpointOutputs.LOGITS: Outputs.LOGIT,
}
"""What a single number means, where the user says what outputs are."""


def _meaning(given: Floats, labels: Indices) -> Outputs:
    """As for modules; but what has no number below 0 is meant as probabilities, and must then be such."""
    meaning = meaning_of(given, labels)
    return Outputs.PROBABILITIES if meaning is Outputs.LOGITS and (given >= 0).all() else meaning


def _order(endpoint: Endpoint, form: Form, classes: tuple[Value, ...]) -> tuple[int, ...]:
    """Code of the class that each column is about."""
    who = f"endpoint {endpoint.name}"
    codes = _codes(classes)
    names: Sequence[Value] = form.names or endpoint.classes or in_order(classes)
    order = [codes.get(name) for name in names]
    if None in order:
        source = "gave numbers by names" if form.names else "is declared with classes"
        raise ModelError(f"{who} {source} that are not among the {len(classes)} classes of the label column")
    if form.width not in (1, len(order)):
        raise UnusableAnswerError(
            f"{form.width} numbers for each record, where the label column has {len(order)} classes; expected one for "
            "each class"
        )
    return tuple(code for code in order if code is not None)


def _codes(classes: Sequence[Value]) -> dict[Value, int]:
    """Codes by the label itself and by its text, as keys of JSON are text."""
    texts: dict[Value, int] = {_text(label): code for code, label in enumerate(classes)}
    return texts | {label: code for code, label in enumerate(classes)}


def _text(label: Value) -> str:
    return json.dumps(label) if isinstance(label, bool) else str(label)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _only(answer: Any) -> Any:
    """The only value of an answer that has one."""
    while isinstance(answer, list | dict):
        answer = next(iter(answer.values() if isinstance(answer, dict) else answer))
    return answer


def _refuse_other_order(logs: Floats, labels: Labels, who: str) -> None:
    """Refuse an order of classes by which another one would be right about twice as many training records."""
    from scipy.optimize import linear_sum_assignment

    said = np.argmax(logs, axis=1)
    together = np.zeros((logs.shape[1], logs.shape[1]))
    np.add.at(together, (said, labels), 1)
    best = together[linear_sum_assignment(-together)].sum()
    if best > 2 * np.trace(together) and best - np.trace(together) > 10:
        raise ModelError(
            f"{who} seems to give probabilities in another order than that of the sorted classes: right about "
            f"{int(np.trace(together)):,} of {len(labels):,} training records, and about {int(best):,} in another "
            "order; declare classes in the order of its answers"
        )
