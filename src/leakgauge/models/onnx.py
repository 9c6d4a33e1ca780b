"""ONNX: what a file says before it is opened, and sessions of onnxruntime as functions of a table.

A file is a tree of protocol buffers, of which only operator sets and references to other files matter here: they are
read by a few lines that know nothing else, so that no package is needed for it. Field numbers are those of
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.errors import ModelError
from leakgauge.models.stated import Stated
from leakgauge.records.columns import Task

_DOMAINS = {b"", b"ai.onnx", b"ai.onnx.ml"}
"""Of operators that the standard defines; those of all others are code of somebody's."""

_PARTS: Mapping[str, Mapping[int, str]] = {
    "model": {7: "graph", 8: "operators", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 9: "operators", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
"""The messages in a message of each kind in which operator sets and references to files can stand."""

_MOST_DEPTH = 100
"""To which graphs may be nested; protocol buffers refuse more."""

_TYPES: Mapping[str, type] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.str_,
}


def checked_onnx(content: bytes, path: Path) -> str:
    """The operator sets that a file was made for, in words, of one that may be opened.

    Args:
        content: of the file.
        path: where it is; data that it refers to must stand in the same folder, or below.

    Raises:
        ModelError: the file is damaged, needs operators that are not of the standard, or refers to other files.
    """
    try:
        return _checked(memoryview(content), b"location" in content, path)
    except ModelError:
        raise
    except (IndexError, ValueError, RuntimeError):  # a path of links that lead to each other is one of the last
        raise ModelError(f"model file {path} is no whole ONNX file; export the model again") from None


def _checked(content: memoryview, refers: bool, path: Path) -> str:
    operators: dict[bytes, int] = {}
    own: set[bytes] = set()  # domains of functions whose bodies the file holds
    has_graph = False
    for kind, message in _messages(content, ("graph", "function", "training") if refers else ("function",)):
        has_graph |= kind == "graph"
        if kind == "operators":
            read = dict(fields_of(message))
            operators[bytes(read.get(1, b""))] = read.get(2, 0)
        elif kind == "function":
            own.add(next((bytes(value) for number, value in fields_of(message) if number == 10), b""))
        elif kind == "entry":
            read = dict(fields_of(message))
            if bytes(read.get(1, b"")) == b"location":
                _require_beside(bytes(read.get(2, b"")).decode(), path)
    if not (has_graph and operators):
        raise ValueError
    foreign = operators.keys() - _DOMAINS - own
    if foreign:
        named = ", ".join(sorted(repr(name.decode(errors="replace")) for name in foreign))
        raise ModelError(
            f"model file {path} needs operators of {named}, which are not of the ONNX standard and may run code; "
            "export the model with those of ai.onnx and ai.onnx.ml alone"
        )
    return ", ".join(f"{name.decode() or 'ai.onnx'} {version}" for name, version in sorted(operators.items()))


def _messages(content: memoryview, opened: tuple[str, ...]) -> Iterator[tuple[str, memoryview]]:
    """The parts of a model, those within others too, with the kind of each.

    Args:
        content: of the model.
        opened: which of its parts are looked into.
    """
    waiting = [("model", content, 0)]
    while waiting:
        kind, message, depth = waiting.pop()
        if depth > _MOST_DEPTH:
            raise ValueError
        parts = _PARTS.get(kind, {})
        for number, value in fields_of(message):
            if isinstance(value, memoryview) and number in parts:
                yield parts[number], value
                if depth or parts[number] in opened:
                    waiting.append((parts[number], value, depth + 1))


def fields_of(message: memoryview) -> Iterator[tuple[int, Any]]:
    """Number and value of each field: bytes, or a whole number.

    Raises:
        IndexError: the message ends within a field.
        ValueError: it is no message.
    """
    for number, value, _ in spans_of(message):
        yield number, value


def spans_of(message: memoryview) -> Iterator[tuple[int, Any, memoryview]]:
    """The same, and the bytes of the whole field as they stand in the message.

    Raises:
        IndexError: the message ends within a field.
        ValueError: it is no message.
    """
    place = 0
    while place < len(message):
        start = place
        key, place = varint(message, place)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, place = varint(message, place)
            yield number, value, message[start:place]
            continue
        if wire not in (1, 2, 5) or number == 0:
            raise ValueError
        size = {1: 8, 5: 4}.get(wire, 0)
        if wire == 2:
            size, place = varint(message, place)
        if place + size > len(message):
            raise IndexError
        yield number, message[place : place + size], message[start : place + size]
        place += size


def field(number: int, content: bytes) -> bytes:
    """A field that holds bytes, as it stands in a message."""
    return _as_varint(number << 3 | 2) + _as_varint(len(content)) + content


def _as_varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def varint(message: memoryview, place: int) -> tuple[int, int]:
    """The whole number that begins at a place, and where it ends.

    Raises:
        IndexError: the message ends within it.
        ValueError: it is of more than 64 bits.
    """
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 127) << shift
        place += 1
        if byte < 128:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError


def _require_beside(location: str, path: Path) -> None:
    folder = path.resolve().parent
    roots = PurePosixPath(location).is_absolute() or PureWindowsPath(location).anchor
    climbs = ".." in location.replace("\\", "/").split("/")
    if roots or climbs or "\0" in location or not (folder / location).resolve().is_relative_to(folder):
        raise ModelError(
            f"model file {path} refers to data outside its folder; export the model with its data in the same file"
        )
    if not (folder / location).is_file():
        raise ModelError(f"model file {path} refers to a file beside it that is not there; put it there")


def is_session(model: Any) -> bool:
    """Whether something is a session of onnxruntime."""
    return type(model).__module__.startswith("onnxruntime.") and hasattr(model, "get_inputs")


class SessionFunction:
    """A session of onnxruntime as a function from a table to what it answers: numbers, labels, or a map by label.

    Args:
        session: takes all columns as one matrix, or several inputs of one or more columns each, by name where the
            table has these names, else in the order of the columns; or arrays of a shape as one input. Its first
            dimension must be open.

    Raises:
        ModelError: its inputs are of other shapes or types.
    """

    def __init__(self, session: Any) -> None:
        self.__name__ = "the ONNX model"
        self._session = session
        self._inputs = session.get_inputs()
        for one in self._inputs:
            if one.type not in _TYPES:
                raise ModelError(
                    f"the ONNX model takes {one.type} as {one.name!r}; expected one of {', '.join(_TYPES)}"
                )
            most = 2 if len(self._inputs) > 1 else np.inf
            if not 1 <= len(one.shape) <= most or isinstance(one.shape[0], int):
                raise ModelError(
                    f"the ONNX model takes {one.name!r} in the shape {one.shape}; expected [any rows, columns]"
                )
        self._output = _told(session.get_outputs())
        by_class = any(one.name == self._output and one.type.startswith("seq(map(") for one in session.get_outputs())
        self.stated = Stated(task=Task.CLASSIFICATION if by_class else None)

    def __call__(self, table: Any) -> Any:
        """What is answered about each row."""
        (told,) = self._session.run([self._output], self._fed(table))
        return told

    def _fed(self, table: Any) -> dict[str, NDArray[Any]]:
        names = list(getattr(table, "column_names", getattr(table, "columns", ())))
        values = np.asarray(table, dtype=None if len(self._inputs) == 1 else object)
        if values.ndim == 1:
            values = values[:, None]
        if max(values.ndim, len(self._inputs[0].shape)) > 2:
            return {self._inputs[0].name: self._shaped(values)}
        widths = [one.shape[1] if len(one.shape) == 2 else 1 for one in self._inputs]
        n_columns = values.shape[1]
        if len(widths) == 1 and not isinstance(widths[0], int):
            widths = [n_columns]
        if not all(isinstance(width, int) for width in widths) or sum(widths) != n_columns:
            raise ModelError(
                f"the ONNX model takes {sum(width for width in widths if isinstance(width, int))} columns in "
                f"{len(widths)} inputs, and the records have {n_columns}; give it the columns it was exported with"
            )
        by_name = set(names) == {one.name for one in self._inputs} and n_columns == len(widths)
        starts = np.cumsum([0, *widths])
        fed = {}
        for place, (one, width) in enumerate(zip(self._inputs, widths, strict=True)):
            start = names.index(one.name) if by_name else int(starts[place])
            block = values[:, start : start + width].reshape(-1, *([width] * (len(one.shape) - 1)))
            fed[one.name] = _cast(block, one)
        return fed

    def _shaped(self, values: NDArray[Any]) -> NDArray[Any]:
        """Arrays of a shape for the one input that takes them."""
        taken = self._inputs[0].shape
        fits = len(self._inputs) == 1 and len(taken) == values.ndim
        if not fits or any(isinstance(a, int) and a != b for a, b in zip(taken, values.shape, strict=True)):
            raise ModelError(
                f"the ONNX model takes {self._inputs[0].name!r} in the shape {taken}, and the records are given as "
                f"{('any rows', *values.shape[1:])}; give X in that shape"
            )
        return _cast(values, self._inputs[0])


def _cast(block: NDArray[Any], taken: Any) -> NDArray[Any]:
    """Values in the type that an input takes; numbers are rounded to its precision and never to whole ones."""
    wanted = _TYPES[taken.type]
    if wanted is np.str_:
        return block.astype(str).astype(object)
    try:
        numbers = block.astype(np.float64)
    except (TypeError, ValueError):
        raise ModelError(
            f"the ONNX model takes {taken.type} as {taken.name!r}, and the records hold something else there"
        ) from None
    if not issubclass(wanted, np.floating) and not np.array_equal(numbers, numbers.astype(wanted)):
        raise ModelError(
            f"the ONNX model takes {taken.type} as {taken.name!r}, and the records hold other numbers there"
        )
    return numbers.astype(wanted)


def _told(outputs: list[Any]) -> str:
    """The name of the output that tells most: a map from labels to probabilities, or numbers, or labels.

    Raises:
        ModelError: several could be meant.
    """
    ranks = [
        [one for one in outputs if one.type.startswith("seq(map(")],
        [one for one in outputs if one.type in ("tensor(float)", "tensor(double)") and "prob" in one.name.lower()],
        [one for one in outputs if one.type in ("tensor(float)", "tensor(double)")],
        outputs,
    ]
    best = next(rank for rank in ranks if rank)
    if len(best) > 1:
        raise ModelError(
            f"the ONNX model has the outputs {', '.join(one.name for one in best)}; export it with one of them alone"
        )
    return str(best[0].name)
