"""Small pieces of error messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def quoted(names: Iterable[object]) -> str:
    """Names in quotes, separated by commas."""
    return ", ".join(repr(name) for name in names)


def shortened(values: Sequence[object], limit: int = 8) -> str:
    """The first few values, quoted, and how many more there are."""
    if len(values) <= limit:
        return quoted(values)
    return f"{quoted(values[:limit])} and {len(values) - limit} more"


def closest(name: object, known: Sequence[str]) -> str:
    """The end of a message about an unknown name: the nearest known one, or else the first few."""
    near = get_close_matches(str(name), known, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"known are {shortened(known)}."


def counted(n: int, noun: str) -> str:
    """`1 value`, `2 values`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
