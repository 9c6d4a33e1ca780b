"""What the package offers, and with which defaults, as it stands in ``signatures.txt``.

A default is part of what users rely on: an audit that says no more than before gives other numbers once it changes. So
it changes on purpose, and the difference is read: with ``LEAKGAUGE_SIGNATURES=1`` the file is written anew.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import typing
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import leakgauge

FILE = Path(__file__).parent / "signatures.txt"


def _described(name: str, value: Any) -> Iterator[str]:
    """A line for a function or a class, and one for each public method; for anything else its value."""
    if inspect.isclass(value):
        yield f"class {name}{_signature(value)}"
        for key, held in sorted(vars(value).items()):
            if key.startswith("_") or isinstance(held, property | cached_property):
                continue
            function = held.__func__ if isinstance(held, classmethod | staticmethod) else held
            if inspect.isfunction(function):
                yield f"{name}.{key}{_signature(function)}"
    elif callable(value):
        yield f"{name}{_signature(value)}"
    elif isinstance(value, tuple):
        yield f"{name} = ({', '.join(getattr(one, 'name', type(one).__name__) for one in value)})"
    elif isinstance(value, str | int | float):
        yield f"{name} = {value!r}"


def _signature(of: Any) -> str:
    """Names and defaults of its arguments, without types, which a checker looks after.

    Those of enumerations and of aliases of types are Python's own, which differ between its versions, and are left out.
    """
    if typing.get_origin(of) is not None or (inspect.isclass(of) and issubclass(of, Enum)):
        return ""
    try:
        parameters = inspect.signature(of).parameters.values()
    except (TypeError, ValueError):
        return ""
    words = []
    for one in parameters:
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        words.append(star + one.name + ("" if one.default is one.empty else f"={_default(one.default)}"))
    return f"({', '.join(words)})"


def _default(value: Any) -> str:
    if inspect.isfunction(value) or inspect.isclass(value):
        return str(value.__qualname__)
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    said = repr(value)
    return f"<{type(value).__name__}>" if " at 0x" in said else said


def offered() -> list[str]:
    """All of it, by the room that offers it."""
    lines = []
    inner = [one.name for one in pkgutil.walk_packages(leakgauge.__path__, "leakgauge.") if one.ispkg]
    for room in (leakgauge, *map(importlib.import_module, inner)):
        for name in getattr(room, "__all__", ()):
            value = getattr(room, name)
            if room is leakgauge and getattr(value, "__module__", "leakgauge") != "leakgauge":
                continue  # its own room offers it as well
            lines += _described(f"{room.__name__}.{name}", value)
    return lines


def test_defaults_change_on_purpose():
    lines = offered()
    if os.environ.get("LEAKGAUGE_SIGNATURES"):
        FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert lines == FILE.read_text(encoding="utf-8").splitlines()
