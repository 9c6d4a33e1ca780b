"""Small pieces of error messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def quoted(names: Iterable[object]) -> str:
    """Names in quotes, separated by commas."""
    return ", ".join(repr(name) for name in names)


def shortened(names: Sequence[object], limit: int = 8) -> str:
    """The first few names, quoted, and how many more there are.

    None of them where one is a number: a file whose first line holds a record, not names, has values for names.
    """
    if any(is_number(name) for name in names):
        return f"{counted(len(names), 'name')}, not shown as some are numbers: does the first line name the columns?"
    if len(names) <= limit:
        return quoted(names)
    return f"{quoted(names[:limit])} and {len(names) - limit} more"


def repeated(names: Iterable[str]) -> str:
    """Which two columns have one name; the name itself is shown if it looks like one."""
    listed = list(names)
    second = next(place for place, name in enumerate(listed) if name in listed[:place])
    called = "of one name" if is_number(listed[second]) or not listed[second] else f"called {listed[second]!r}"
    return f"two columns {called} (number {listed.index(listed[second]) + 1} and {second + 1}, counting from 1)"


def closest(name: object, known: Sequence[str]) -> str:
    """The end of a message about an unknown name: the nearest known one, or else the first few."""
    near = get_close_matches(str(name), known, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"known are {shortened(known)}."


def closest_column(name: str, columns: Sequence[str]) -> str:
    """The same about a column: no others are listed, which are a record's values where a file has no line of names."""
    near = get_close_matches(name, columns, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"it has {counted(len(columns), 'column')} of other names."


def counted(n: int, noun: str) -> str:
    """`1 value`, `2 values`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def is_number(name: object) -> bool:
    """Whether a name is a number: perhaps that of a record, in a file without a line of names."""
    try:
        float(str(name))
    except ValueError:
        return False
    return True
