"""Whether an object remembers anything: everything that can be reached from it, before and after it saw records.

A guarantee on the parameters of a model covers nothing else that goes with it. Where a model's own code keeps notes
(a counter, a list, a cache of its class or of its module), they are found by comparing two snapshots. What is kept in
files, in other processes or in compiled extensions is not found.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import pickle
import sys
from collections.abc import Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias

import numpy as np

Snapshot: TypeAlias = dict[str, str]
"""A digest of each part, by its place in words."""

OTHERS = {"joblib", "leakgauge", "numpy", "pandas", "polars", "pyarrow", "scipy", "sklearn", "torch"}
"""Packages whose classes, functions and modules are not looked into."""

OF_ITSELF = ("__dict__", "__weakref__")
"""What every class has, and what says nothing but where it lies."""

PLAIN_TYPES = (bool, int, float, complex, str, bytes, type(None))

MAX_SNAPSHOT_PARTS = 200_000
"""Parts of a snapshot; what lies beyond is not compared."""


def snapshot(thing: Any, name: str) -> Snapshot:
    """Digests of everything that can be reached from an object.

    That is its attributes and those of its class, the contents of containers, tensors and arrays, and of functions
    what they close over and the names of their module that they use.

    Args:
        thing: any object.
        name: how its place is called.

    >>> model = {"weight": 1.0, "seen": []}
    >>> before = snapshot(model, "model")
    >>> model["seen"].append("somebody")
    >>> changed(before, snapshot(model, "model"))
    'model[seen]'
    """
    found: Snapshot = {}
    _walk(thing, name, found, {})
    return found


def changed(before: Snapshot, after: Snapshot) -> str | None:
    """The first place at which two snapshots differ, ``None`` if there is none."""
    places = [*before, *(place for place in after if place not in before)]
    return next((place for place in places if before.get(place) != after.get(place)), None)


def _walk(value: Any, place: str, found: Snapshot, seen: dict[int, Any]) -> None:
    if place in found or len(found) >= MAX_SNAPSHOT_PARTS:
        return
    if isinstance(value, PLAIN_TYPES):
        found[place] = f"{type(value).__name__} {value!r}"
        return
    if id(value) in seen:
        return
    seen[id(value)] = value  # held, so that no other object takes its address
    found[place] = _own(value)
    for name, part in _parts(value, place):
        _walk(part, name, found, seen)


def _own(value: Any) -> str:
    """What an object is apart from its parts."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if _is_torch(value, "Tensor"):
        return f"{kind} {_tensor_digest(value)}"
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return f"{kind} {value.shape} {value.dtype} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, list | tuple | set | frozenset | Mapping):
        return f"{kind} of {len(value)}"
    if hasattr(value, "cache_info"):
        return f"{kind} {value.cache_info()}"
    if isinstance(value, np.random.Generator | np.random.RandomState) or _is_torch(value, "Generator"):
        return kind  # where a generator stands tells how often it was asked, not what about
    if _is_ours(value) or (hasattr(value, "__dict__") and not _is_of_python(type(value))):
        return kind
    return f"{kind} {_content(value)}"


def _content(value: Any) -> str:
    """Of an object that cannot be looked into, such as a queue or a buffer of Python's own library."""
    try:
        return hashlib.sha256(pickle.dumps(value)).hexdigest()
    except (Exception, SystemExit):  # an object may refuse to be pickled with anything at all
        return repr(value)


def _parts(value: Any, place: str) -> list[tuple[str, Any]]:
    """The parts of an object, each with its place."""
    if isinstance(value, ModuleType) or _is_ours(value):
        return []
    if isinstance(value, type):
        return _parts_of_class(value)
    if isinstance(value, FunctionType):
        return [] if _is_of_others(value) else _parts_of_function(value, place)
    if isinstance(value, MethodType):
        return [(f"{place} (its object)", value.__self__), (f"{place} (its function)", value.__func__)]
    if isinstance(value, functools.partial):
        return [(f"{place}.{name}", getattr(value, name)) for name in ("func", "args", "keywords")]
    if isinstance(value, property):
        return [(f"{place} (its function)", value.fget)]
    parts = [(f"{place} (its function)", value.__wrapped__)] if hasattr(value, "__wrapped__") else []
    if isinstance(value, Mapping):
        pairs = list(value.items())
        parts += [(f"{place}[{_key(key, i)}]", part) for i, (key, part) in enumerate(pairs)]
    elif isinstance(value, list | tuple | set | frozenset):
        parts += [(f"{place}[{i}]", part) for i, part in enumerate(value)]
    elif isinstance(value, np.ndarray) and value.dtype.kind == "O":
        parts += [(f"{place}[{i}]", part) for i, part in enumerate(value.ravel())]
    held = dict(getattr(value, "__dict__", {}))
    held |= {
        name: getattr(value, name) for base in type(value).__mro__ for name in _slots(base) if hasattr(value, name)
    }
    parts += [(f"{place}.{name}", part) for name, part in held.items()]
    kind = type(value)
    return parts if _is_of_others(kind) else [*parts, (f"{kind.__module__}.{kind.__qualname__}", kind)]


def _key(key: Any, i: int) -> str:
    """Text keys are names; others may be anything, also of somebody's record."""
    return key if isinstance(key, str) and key.isidentifier() else str(i)


def _parts_of_class(kind: type) -> list[tuple[str, Any]]:
    """The attributes of a class and of the classes above it."""
    return [
        (f"{base.__module__}.{base.__qualname__}.{name}", part)
        for base in kind.__mro__
        if not _is_of_others(base)
        for name, part in vars(base).items()
        if name not in OF_ITSELF
    ]


def _slots(base: type) -> list[str]:
    slots = vars(base).get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    return [name for name in names if name not in OF_ITSELF]


def _parts_of_function(function: FunctionType, place: str) -> list[tuple[str, Any]]:
    """What it closes over, its defaults and attributes, and the names of its module that it uses."""
    parts: list[tuple[str, Any]] = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            parts.append((f"{place}.{name}", cell.cell_contents))
        except ValueError:  # it is still empty
            continue
    parts += [(f"{place} (defaults)", (function.__defaults__, function.__kwdefaults__))]
    parts += [(f"{place}.{name}", part) for name, part in vars(function).items()]
    names = _names(function.__code__)
    for name in sorted(names & set(function.__globals__)):
        held = function.__globals__[name]
        if not isinstance(held, ModuleType):
            parts.append((f"{function.__module__}.{name}", held))
        elif not _is_of_others(held):
            own = vars(held)
            parts += [(f"{held.__name__}.{part}", own[part]) for part in sorted(names & set(own))]
    return parts


def _names(code: CodeType) -> set[str]:
    """Names that a function uses, and the functions within it."""
    inner = (_names(constant) for constant in code.co_consts if inspect.iscode(constant))
    return set(code.co_names).union(*inner)


def _is_of_others(thing: Any) -> bool:
    """Whether a class, function or module is of a package that is not looked into."""
    return _top(thing) in OTHERS or _is_of_python(thing)


def _is_of_python(thing: Any) -> bool:
    """Whether a class, function or module is of Python itself."""
    return _top(thing) in sys.stdlib_module_names or _top(thing) == "builtins"


def _top(thing: Any) -> str:
    name = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", "") or ""
    return str(name).partition(".")[0]


def _is_ours(value: Any) -> bool:
    """Whether an object is one of this package, which has caches of its own; none holds records."""
    return type(value).__module__.partition(".")[0] == "leakgauge"


def _is_torch(value: Any, kind: str) -> bool:
    """Whether an object is of a class of PyTorch, which need not be installed."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, kind))


def _tensor_digest(value: Any) -> str:
    try:
        held = value.detach().cpu().contiguous().reshape(-1)
        content = held.view(sys.modules["torch"].uint8).numpy().tobytes() if held.numel() else b""
        return f"{tuple(value.shape)} {value.dtype} {hashlib.sha256(content).hexdigest()}"
    except (RuntimeError, TypeError, NotImplementedError):  # a tensor of a pass that is over, or of another layout
        return f"at {id(value)}"
