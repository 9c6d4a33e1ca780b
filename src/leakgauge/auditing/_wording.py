"""Validation errors in words: one line for each, with the key, what was found, and what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from leakgauge.records._messages import closest

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

_TYPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "finite_number": "a finite number",
}
"""What was expected, for pydantic's errors about types."""

_BOUNDS = {
    "greater_than": ("gt", "a number above"),
    "greater_than_equal": ("ge", "a number of at least"),
    "less_than": ("lt", "a number below"),
    "less_than_equal": ("le", "a number of at most"),
}


def lines(error: ValidationError, sections: Mapping[tuple[str, ...], type[BaseModel]]) -> list[str]:
    """One line for each problem, in the order of the file.

    Args:
        error: what pydantic found.
        sections: the models by the path of keys that leads to them, without numbers, with the kinds of models.
    """
    tags = {path[-1] for path in sections if path[:1] == ("models",) and len(path) == 2}
    found: dict[str, str] = {}  # of several problems at one place, say those of a union, the first is told
    meant = set()
    for problem in error.errors(include_url=False):
        path = _path(problem["loc"], tags)
        found.setdefault(path, _line(problem, path, sections))
        if problem["type"] == "extra_forbidden" and (near := _nearest(problem["loc"], sections)):
            meant.add(".".join([*path.split(".")[:-1], near]))
    # A misspelt key is missing under its right name; that goes without saying.
    return [line for path, line in found.items() if not (path in meant and f"{path}: missing" in line)]


def _path(loc: tuple[int | str, ...], tags: set[str]) -> str:
    """The place as a user would write it: ``models.0.name``, without the kind that pydantic puts in."""
    kept = [
        part
        for before, part in zip((None, *loc), loc, strict=False)
        if not (part in tags and loc[0] == "models" and (isinstance(before, int) or before == "learner"))
        and not _is_of_union(part)
    ]
    return ".".join(str(part) for part in kept)


def _nearest(loc: tuple[int | str, ...], sections: Mapping[tuple[str, ...], type[BaseModel]]) -> str | None:
    """The key that a misspelt one is closest to."""
    section = tuple(part for part in loc[:-1] if isinstance(part, str))
    return next(iter(get_close_matches(str(loc[-1]), list(sections[section].model_fields), n=1)), None)


def _is_of_union(part: int | str) -> bool:
    return part in ("int", "float", "str", "bool", "none") or (isinstance(part, str) and "[" in part)


def _line(problem: Mapping[str, Any], path: str, sections: Mapping[tuple[str, ...], type[BaseModel]]) -> str:
    kind, context, given = problem["type"], problem.get("ctx", {}), problem.get("input")
    section = tuple(part for part in problem["loc"][:-1] if isinstance(part, str))
    key = str(problem["loc"][-1]) if problem["loc"] else ""
    if kind == "extra_forbidden":
        near, known = _nearest(problem["loc"], sections), ", ".join(sections[section].model_fields)
        hint = f"did you mean {near!r}? " if near else ""
        return f"{path}: unknown key; {hint}the keys here are {known}"
    if kind == "missing":
        described = sections[section].model_fields[key].description or ""
        return f"{path}: missing; expected {described}"
    if kind == "union_tag_not_found":
        return f"{path}.kind: missing; expected one of {_alternatives(_kinds(problem, sections))}"
    if kind == "union_tag_invalid":
        kinds = _kinds(problem, sections)
        near = closest(context["tag"], sorted(kinds)).rstrip(".")
        return f"{path}.kind: {context['tag']!r} is not known; expected one of {_alternatives(kinds)}; {near}"
    if kind in ("enum", "literal_error"):
        return f"{path}: got {given!r}, expected {context['expected']}"
    if kind in _TYPES:
        return f"{path}: got {_short(given)}, expected {_TYPES[kind]}"
    if kind in _BOUNDS:
        bound, words = _BOUNDS[kind]
        return f"{path}: got {given!r}, expected {words} {context[bound]:g}"
    if kind == "too_short":
        return f"{path}: the list is empty; leave it out, or name at least {context['min_length']}"
    if kind == "value_error":
        said = str(context["error"])
        return f"{path}: {said}" if path else said
    return f"{path}: {problem['msg'][:1].lower()}{problem['msg'][1:]}"


def _kinds(problem: Mapping[str, Any], sections: Mapping[tuple[str, ...], type[BaseModel]]) -> set[str]:
    """The kinds of tables that may stand in the place of a problem."""
    place = tuple(part for part in problem["loc"] if isinstance(part, str))
    return {path[-1] for path in sections if path[:-1] == place}


def _alternatives(tags: set[str]) -> str:
    return ", ".join(repr(tag) for tag in sorted(tags))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
