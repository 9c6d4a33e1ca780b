"""What is sent to an endpoint and what comes back, for each protocol.

MLflow: https://mlflow.org/docs/latest/ml/deployment/deploy-model-locally (``/invocations``).
Open Inference Protocol v2: https://github.com/open-inference/open-inference-protocol (``/v2/models/NAME/infer``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, TypeAlias
from urllib.parse import quote

from leakgauge.errors import ModelError
from leakgauge.models.endpoints.settings import Endpoint, Layout, Protocol, texts_of
from leakgauge.records import Schema

Row: TypeAlias = Sequence[Any]
"""The values of one query, as JSON has them, in the order of the columns."""

PROBABILITIES = ("predict_proba", "probabilities")
"""Names of outputs that hold probabilities; the first is asked for."""


class UnusableAnswerError(ModelError):
    """What came back is not of the form that the protocol has, which the next attempt may mend."""

    def __init__(self, given: str) -> None:
        super().__init__(f"the endpoint gave {given}")


@dataclass(frozen=True)
class Wire(ABC):
    """A protocol, as one endpoint speaks it.

    Attributes:
        forms: ways to ask, the best first; the first one that the server does not refuse is kept.
    """

    endpoint: Endpoint
    schema: Schema

    forms: ClassVar[tuple[str, ...]] = ("plain",)

    @property
    def batch_rows(self) -> int:
        """Rows in a request, at most."""
        return self.endpoint.batch_rows

    @property
    @abstractmethod
    def url(self) -> str:
        """Where requests go."""

    @abstractmethod
    def body(self, rows: Sequence[Row], form: str) -> Any:
        """What is sent, to be written as JSON."""

    @abstractmethod
    def answers(self, content: Any, n: int) -> list[Any]:
        """One answer for each of ``n`` rows: a number, a text, a list, or numbers by name.

        Raises:
            UnusableAnswerError: there are not so many.
        """

    def _ending_in(self, path: str, ending: str) -> str:
        parts = self.endpoint.parts
        own = parts.path.rstrip("/")
        return self.endpoint.url if own.endswith(ending) else parts._replace(path=own + path).geturl()


class MlflowWire(Wire):
    """``POST /invocations``."""

    @property
    def url(self) -> str:
        """The server's, with ``/invocations``; an address of KServe v1 or TensorFlow Serving as it is."""
        if self.endpoint.parts.path.endswith(":predict"):
            return self.endpoint.url
        return self._ending_in("/invocations", "/invocations")

    def body(self, rows: Sequence[Row], form: str) -> Any:
        """The table, in one of three layouts."""
        names = self.schema.names
        match self.endpoint.layout:
            case Layout.INSTANCES:
                return {"instances": rows}
            case Layout.RECORDS:
                return {"dataframe_records": [dict(zip(names, row, strict=True)) for row in rows]}
            case _:
                return {"dataframe_split": {"columns": names, "data": rows}}

    def answers(self, content: Any, n: int) -> list[Any]:
        """What stands at ``answer``."""
        return _listed(_at(content, self.endpoint.answer), n)


class OpenInferenceWire(Wire):
    """``POST /v2/models/NAME/infer``."""

    forms = (PROBABILITIES[0], "plain")

    @property
    def url(self) -> str:
        """The server's, with the path of the model."""
        return self._ending_in(f"/v2/models/{quote(self.endpoint.model or '', safe='')}/infer", "/infer")

    def body(self, rows: Sequence[Row], form: str) -> Any:
        """One tensor, or one for each column, in double precision."""
        n, columns = len(rows), list(zip(*rows, strict=True))
        wanted = {} if form == "plain" else {"outputs": [{"name": form}]}
        layout = self.endpoint.layout or (Layout.TENSOR if self._is_numeric else Layout.COLUMNS)
        if layout is Layout.TENSOR:
            data = list(chain.from_iterable(rows))
            tensor = {"name": "input-0", "shape": [n, len(columns)], "datatype": "FP64", "data": data}
            return {"inputs": [tensor], **wanted}
        inputs = [_column(name, values) for name, values in zip(self.schema.names, columns, strict=True)]
        return {"parameters": {"content_type": "pd"}, "inputs": inputs, **wanted}

    @property
    def _is_numeric(self) -> bool:
        return all(
            isinstance(value, int | float) and not isinstance(value, bool)
            for column in self.schema.columns
            for value in column.categories
        )

    def answers(self, content: Any, n: int) -> list[Any]:
        """The rows of the output with probabilities, or of the first one."""
        outputs = content.get("outputs") if isinstance(content, dict) else None
        named = {one.get("name"): one for one in outputs or () if isinstance(one, dict)}
        if not named:
            raise UnusableAnswerError("no outputs")
        output = next((named[name] for name in PROBABILITIES if name in named), next(iter(named.values())))
        flat = list(_flat(output.get("data")))
        if not flat or len(flat) % n:
            raise UnusableAnswerError(f"{len(flat):,} numbers for {n:,} queries")
        shape = output.get("shape")
        if n > 1 and isinstance(shape, list) and shape and shape[0] != n:
            raise UnusableAnswerError(f"an output for another number of queries than the {n:,} that were sent")
        width = len(flat) // n
        return flat if width == 1 else [flat[place : place + width] for place in range(0, len(flat), width)]


class TemplateWire(Wire):
    """Any JSON."""

    @property
    def url(self) -> str:
        """As it is given."""
        return self.endpoint.url

    @property
    def batch_rows(self) -> int:
        """1 where the template has a place for one row."""
        return 1 if self._one_row else self.endpoint.batch_rows

    @property
    def _one_row(self) -> bool:
        return any(one in ("$row", "$record") for one in texts_of(self.endpoint.template))

    def body(self, rows: Sequence[Row], form: str) -> Any:
        """The template with the rows in their place."""
        records = [dict(zip(self.schema.names, row, strict=True)) for row in rows]
        given = {"$rows": rows, "$records": records, "$row": rows[0], "$record": records[0]}
        return _filled(self.endpoint.template, given | {"$columns": self.schema.names})

    def answers(self, content: Any, n: int) -> list[Any]:
        """What stands at ``answer``."""
        found = _at(content, self.endpoint.answer)
        return [found] if self._one_row and not (isinstance(found, list) and len(found) == 1) else _listed(found, n)


WIRES: dict[Protocol, type[Wire]] = {
    Protocol.MLFLOW: MlflowWire,
    Protocol.OIP_V2: OpenInferenceWire,
    Protocol.JSON: TemplateWire,
}


def _listed(found: Any, n: int) -> list[Any]:
    if not isinstance(found, list):
        raise UnusableAnswerError("no list where its answers are to stand (answer)")
    if len(found) != n:
        raise UnusableAnswerError(f"{len(found):,} answers for {n:,} queries")
    return found


def _at(content: Any, path: str) -> Any:
    """What stands in a document at a path.

    >>> _at({"items": [{"p": 1}, {"p": 2}]}, "items.*.p")
    [1, 2]
    """
    key, _, rest = path.partition(".")
    if not key:
        return content
    if key == "*" and isinstance(content, list):
        return [_at(one, rest) for one in content]
    if isinstance(content, dict) and key in content:
        return _at(content[key], rest)
    if isinstance(content, list) and key.isdigit() and int(key) < len(content):
        return _at(content[int(key)], rest)
    raise UnusableAnswerError(f"nothing at {key!r}, where its answers are to stand (answer)")


def _filled(template: Any, given: dict[str, Any]) -> Any:
    if isinstance(template, str):
        return given.get(template, template)
    if isinstance(template, dict):
        return {key: _filled(held, given) for key, held in template.items()}
    return [_filled(held, given) for held in template] if isinstance(template, list | tuple) else template


def _column(name: str, values: Sequence[Any]) -> dict[str, Any]:
    """One input of the shape ``[n, 1]``."""
    kinds = {type(value) for value in values}
    datatype = "BOOL" if kinds == {bool} else "INT64" if kinds == {int} else "FP64" if str not in kinds else "BYTES"
    said = {"parameters": {"content_type": "str"}} if datatype == "BYTES" else {}
    return {"name": name, "shape": [len(values), 1], "datatype": datatype, "data": list(values), **said}


def _flat(data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise UnusableAnswerError("no data in the output")
    return list(chain.from_iterable(_flat(one) if isinstance(one, list) else [one] for one in data))
