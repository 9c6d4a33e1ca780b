"""Everything that can be reached from a fitted model, as paths to arrays of numbers and lists of texts.

Nothing is called but what says what an object holds: its ``__dict__``, and of compiled trees ``__getstate__``.
"""

from __future__ import annotations

import array
import io
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from leakgauge.inspecting.formats import Content, translated
from leakgauge.inspecting.records_seen import RecordsSeen

MOST_DEPTH = 60
"""Of objects within objects."""

NOTHING_INSIDE = (type, types.ModuleType, types.BuiltinFunctionType, np.dtype, np.random.BitGenerator, np.ufunc)


@dataclass(frozen=True)
class Place:
    """Something that a model holds.

    Args:
        path: from the model to it.
        owners: names of the classes of the object whose attribute it is, with those it inherits from.
        attribute: the path from that object to it.
        value: an array of numbers, a list of texts, or an object.
        is_setting: whether the user gave it before the fit.
        seen: the training records as that object saw them; ``None`` where they are not known.
        holder: the objects from the model to the owner, the model first.
    """

    path: str
    owners: tuple[str, ...]
    attribute: str
    value: Any
    is_setting: bool
    seen: RecordsSeen | None
    holder: tuple[Any, ...]

    @property
    def owner(self) -> Any:
        """The object that holds it; ``None`` for the model itself."""
        return self.holder[-1] if self.holder else None


def walk(model: Any, seen: RecordsSeen | None, enters: Callable[[Place], bool]) -> Iterator[Place]:
    """All places of a model, an object before what is in it; what is in an object of two places is walked once.

    Args:
        model: a fitted estimator, or the :class:`Content` of another library's model.
        seen: the training records as the model was given them.
        enters: whether what is in an object is to be walked too.
    """
    kept: dict[int, Any] = {}  # an object that is gone would leave its number to the next
    waiting: list[tuple[Place, int]] = [(Place("", (), "", model, False, seen, ()), 0)]
    while waiting:
        place, depth = waiting.pop()
        value = place.value
        if value is None or isinstance(value, NOTHING_INSIDE) or depth > MOST_DEPTH:
            continue
        if (leaf := _leaf(value)) is not None:
            yield replace(place, value=leaf)
            continue
        yield place
        if id(value) in kept or not enters(place):
            continue
        kept[id(value)] = value
        inner = [(one, depth + 1) for one in _inside(place)]
        waiting.extend(reversed(inner))


def _leaf(value: Any) -> Any:
    """An array of numbers or a list of texts; ``None`` for what has parts of its own."""
    value = _standard(value)
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return np.asarray(value)
    if isinstance(value, str):
        return [value]
    if isinstance(value, bytes):
        return _as_text(value)
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "biuf":
            return value
        if value.dtype.kind == "U":
            return value.ravel().tolist()
        if value.dtype.kind == "S":
            return [text.decode(errors="replace") for text in value.ravel().tolist()]
        if value.dtype.kind == "O":
            return _plain(value.ravel().tolist())
    if isinstance(value, LISTS) and value:
        return _plain(list(value))
    return None


LISTS = (list, tuple, set, frozenset, deque, array.array)


def _standard(value: Any) -> Any:
    """Numbers and buffers of less usual types as those of NumPy and Python."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):  # a tensor
        value = value.detach().cpu()
        return np.asarray(value.double().numpy() if value.is_floating_point() else value)
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "mM":
            return np.asarray(value).view(np.int64)
        if value.dtype.kind == "c":
            return np.stack([value.real, value.imag])
        return np.asarray(value)  # of matrices and masked arrays all that they hold
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, io.BytesIO):
        return value.getvalue()
    if isinstance(value, complex | np.complexfloating):
        return np.array([value.real, value.imag])
    return float(value) if isinstance(value, Decimal | Fraction) else value


def _as_text(content: bytes) -> list[str] | None:
    try:
        return [content.decode()]
    except UnicodeDecodeError:
        return None


def _plain(values: list[Any]) -> Any:
    """Numbers or texts alone as a leaf."""
    values = [_standard(one) for one in values]
    if values and all(isinstance(one, str) or one is None for one in values):
        return [one for one in values if one is not None]
    if values and all(isinstance(one, bool | int | float | np.number | np.bool_) or one is None for one in values):
        numbers = [one for one in values if one is not None]
        try:
            return np.array(numbers)
        except OverflowError:
            return np.array(numbers, dtype=float)
    return None


def _inside(place: Place) -> Iterator[Place]:
    """What an object or a container holds."""
    value = place.value
    if isinstance(value, Content):
        yield from _of_content(place)
    elif (content := translated(value)) is not None:
        yield from _of_content(replace(place, value=content))
        if not isinstance(value, Mapping) and content.library != "torch":
            yield from (one for one in _of_object(place) if one.attribute not in content)
    elif hasattr(value, "tocoo"):
        yield replace(place, value=np.asarray(value.tocoo().data))
    elif isinstance(value, bytes | bytearray | memoryview | io.BytesIO):
        content = _standard(value)
        for dtype in (np.float64, np.float32):
            yield replace(place, value=np.frombuffer(content[: len(content) // 8 * 8], dtype))
    elif (columns := _columns(value)) is not None:
        yield from map(partial(_item, place), range(len(columns)), columns)
    elif isinstance(value, Mapping):
        yield replace(place, value=list(value))
        yield from map(partial(_item, place), range(len(value)), value.values())
    elif isinstance(value, np.ndarray) and value.dtype.names:
        for name in value.dtype.names:
            yield _part(place, name, np.ascontiguousarray(value[name]))
    elif isinstance(value, (np.ndarray, *LISTS)):
        held = value.ravel().tolist() if isinstance(value, np.ndarray) else value
        yield from map(partial(_item, place), range(len(held)), held)
    elif isinstance(value, partial):
        for name in ("args", "keywords", "func"):
            yield _part(place, name, getattr(value, name))
    elif isinstance(value, types.MethodType):
        yield _part(place, "__self__", value.__self__)
    elif isinstance(value, types.FunctionType):
        cells = tuple(cell.cell_contents for cell in value.__closure__ or () if _filled(cell))
        yield _part(place, "__closure__", cells)
        yield _part(place, "__defaults__", value.__defaults__)
        yield _part(place, "__kwdefaults__", value.__kwdefaults__)
        yield from _of_object(place)
    elif isinstance(value, BaseException):
        yield _part(place, "args", value.args)
    else:
        yield from _of_object(place)


def _columns(value: Any) -> list[Any] | None:
    """The columns of a data frame or series of any library, with the index of pandas; ``None`` for all else."""
    if type(value).__module__.partition(".")[0] not in ("pandas", "polars", "pyarrow"):
        return None
    import narwhals as nw

    native = nw.from_native(value, pass_through=True, allow_series=True)
    if isinstance(native, nw.DataFrame):
        columns = [native.get_column(name).to_numpy() for name in native.columns]
        return [native.columns, *columns, *_index(value)]
    return [native.to_numpy(), *_index(value)] if isinstance(native, nw.Series) else None


def _index(value: Any) -> list[Any]:
    return [value.index.to_numpy()] if hasattr(value, "index") and hasattr(value, "iloc") else []


def _of_content(place: Place) -> Iterator[Place]:
    content = place.value
    for name, held in content.items():
        attribute, holder = name.rpartition(".")[2], (*place.holder, content)
        yield replace(
            place,
            path=_dot(place.path, name),
            owners=(content.library,),
            attribute=attribute,
            value=held,
            holder=holder,
        )


def _item(place: Place, position: int, held: Any) -> Place:
    mark = f"[{position}]"
    return replace(place, path=place.path + mark, attribute=place.attribute + mark, value=held)


def _part(place: Place, name: str, held: Any) -> Place:
    return replace(place, path=_dot(place.path, name), attribute=_dot(place.attribute, name), value=held)


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _of_object(place: Place) -> Iterator[Place]:
    value = place.value
    owners = tuple(one.__name__ for one in type(value).__mro__ if one is not object)
    settings = _settings(value)
    holder = (*place.holder, value)
    for name, held in parts_of(value).items():
        is_setting = name in settings if settings else place.is_setting  # a fitted estimator may be a setting
        path = _dot(place.path, name)
        if name in VIEWED.get(type(value).__name__, ()):
            yield from _steps(place, owners, path, name, held, holder)
        else:
            seen = None if name in UNSEEN.get(type(value).__name__, ()) else place.seen
            yield Place(path, owners, name, held, is_setting, seen, holder)


def is_tree(value: Any) -> bool:
    """Whether it is a compiled tree of scikit-learn."""
    return type(value).__name__ == "Tree" and type(value).__module__.startswith("sklearn.tree")


def parts_of(value: Any) -> dict[str, Any]:
    """The attributes of an object by name, as it holds them; of compiled ones, what they would be stored as."""
    if is_tree(value):
        state = value.__getstate__()
        nodes = state.pop("nodes", None)
        fields = {} if nodes is None else {name: np.ascontiguousarray(nodes[name]) for name in nodes.dtype.names}
        return {**fields, "value": state.get("values")}
    held = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if isinstance(name, str) and not name.startswith("__") and hasattr(value, name):
                held.setdefault(name, getattr(value, name))
    if not held and "__getstate__" in {name for kind in type(value).__mro__[:-1] for name in vars(kind)}:
        try:
            state = value.__getstate__()
        except Exception:  # an object that cannot be stored
            return {}
        held = state if isinstance(state, dict) else {f"state{i}": one for i, one in enumerate(state or ())}
    for kind in type(value).__mro__:  # what instances share
        held.update({name: one for name, one in vars(kind).items() if isinstance(one, np.ndarray)})
    return {str(name): one for name, one in held.items()}


def _settings(value: Any) -> frozenset[str]:
    names = getattr(type(value), "_get_param_names", None)
    try:
        return frozenset(names()) if names is not None else frozenset()
    except Exception:  # an estimator whose constructor takes anything
        return frozenset()


VIEWED: Mapping[str, frozenset[str]] = {
    "Pipeline": frozenset({"steps"}),
    "FeatureUnion": frozenset({"transformer_list"}),
    "ColumnTransformer": frozenset({"transformers_"}),
}
"""Attributes of estimators whose parts see other records than the estimator itself."""

UNSEEN: Mapping[str, frozenset[str]] = {
    "_CalibratedClassifier": frozenset({"calibrators"}),
    "StackingClassifier": frozenset({"final_estimator_"}),
    "StackingRegressor": frozenset({"final_estimator_"}),
}
"""Attributes of estimators whose parts are fitted to predictions that are not stored."""


def _steps(
    place: Place, owners: tuple[str, ...], path: str, name: str, held: Any, holder: tuple[Any, ...]
) -> Iterator[Place]:
    """The estimators in a composition, each with the records as it saw them."""
    seen = place.seen
    for position, step in enumerate(held):
        estimator, mark = step[1], f"[{position}]"
        own = seen
        if name == "transformers_" and seen is not None:
            own = _some(seen, step[2])
        yield Place(path + mark, owners, name + mark, estimator, False, own, holder)
        if name == "steps":
            seen = _through(seen, estimator)


def _through(seen: RecordsSeen | None, step: Any) -> RecordsSeen | None:
    """The records as they come out of a fitted step; ``None`` where it does not take them."""
    if seen is None or step is None or step == "passthrough":
        return seen
    try:
        return seen.seen_as(step.transform(seen.table))
    except Exception:  # the last step, or code of the user's, which may raise anything
        return None


def _some(seen: RecordsSeen, columns: Any) -> RecordsSeen | None:
    try:
        table = seen.table
        if hasattr(table, "iloc"):
            chosen = columns(table) if callable(columns) else columns
            by_name = isinstance(chosen, str) or (not isinstance(chosen, slice | int) and isinstance(chosen[0], str))
            return seen.seen_as(table.loc[:, chosen] if by_name else table.iloc[:, chosen])
        return seen.seen_as(table[:, columns])
    except Exception:  # a choice of columns that only the estimator understands
        return None


def _dot(path: str, name: str) -> str:
    return f"{path}.{name}" if path and not name.startswith("[") else path + name
