"""Which values of a column a result may name: those that several people hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FEWEST_SHOWN = 5
"""Smaller groups of people are not shown apart, nor are their values named: that would be about persons."""


def shown_names(values: Sequence[Any], counts: Sequence[int]) -> tuple[str, ...]:
    """The values as text, and the places of those that fewer than five people hold.

    Args:
        values: of a column, classes or groups ``[k]``.
        counts: how many training and holdout records together hold each ``[k]``.

    >>> shown_names(["flu", "Fabry", None], [40, 1, 7])
    ('flu', 'value 2 (held by fewer than 5)', 'missing')
    """
    return tuple(
        f"value {place} (held by fewer than {FEWEST_SHOWN})"
        if n < FEWEST_SHOWN
        else "missing"
        if value is None
        else str(value)
        for place, (value, n) in enumerate(zip(values, counts, strict=True), start=1)
    )
