"""Numbers of single training records in steps of the user's own, or of other libraries: what they clip to or fill in.

Whatever such a step holds is looked for among the values of the candidates, in its own column or in all of them. What
it holds without need tells nobody anything: only what its output depends on counts, far outside of the training
records or without a number. Where a step is a line, what comes after it makes up for the numbers in it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from leakgauge.arrays import Flags, Floats
from leakgauge.auditing.membership.shares import shares
from leakgauge.inspecting.records_seen import RecordsSeen
from leakgauge.inspecting.walking import walk

N_ASKED = 50
"""Candidates whose numbers are moved or taken away, evenly spread: each group that a step knows may have its own."""

FAR_ABOVE, FAR_BELOW = 1e3, -2e3
"""Standard deviations from the mean, where whatever clips does."""

MOST_NUMBERS = 100
"""Of an array that are looked for, evenly spread."""

ROUNDING = 1e-9
"""Standard deviations by which numbers may be off."""


def is_own(part: Any) -> bool:
    """Whether it is a step of other code than scikit-learn's and ours."""
    kind = type(part)
    return (
        not isinstance(part, type)
        and all(hasattr(part, name) for name in ("fit", "transform", "get_params"))
        and kind.__module__.partition(".")[0] not in ("sklearn", "leakgauge")
    )


def scores_of_own(step: Any, seen: RecordsSeen, columns: Flags, n_train: int) -> Floats:
    """How sure it is that each candidate's number is held by a fitted step ``[n]``.

    Args:
        step: fitted.
        seen: the candidates as it sees them.
        columns: of which outputs tell what a number is changed to ``[d]``.
        n_train: how many records it was fitted to: quantiles lie between values at known places.
    """
    found = np.zeros(len(seen))
    if seen.matrix is None or not columns.any():
        return found
    settings = step.get_params(deep=False)
    fractions = (0.5, *sorted(_fractions(settings.values(), n_train) - {0.5}))
    probes: list[Any] | None = None
    for name, value in vars(step).items():
        if name in settings:
            continue
        held = list(_numbers(value))
        if held and probes is None:
            probes = list(_probes(step, seen))
        if not held or not _matters(step, name, value, probes or []):
            continue
        for numbers in held:
            aligned = numbers.ndim in (1, 2) and numbers.shape[-1] == len(columns)
            for place in np.flatnonzero(columns):
                of_column = np.ravel(numbers[..., place] if aligned else numbers)
                of_column = np.unique(of_column[np.isfinite(of_column)])
                of_column = of_column[:: max(1, math.ceil(len(of_column) / MOST_NUMBERS))]
                values = seen.matrix[:, place]
                tolerance = ROUNDING * float(np.nanstd(values))
                np.maximum(found, shares(values, of_column, tolerance, fractions), out=found)
    return found


def _fractions(settings: Any, n_train: int) -> set[float]:
    """Where between two values quantiles lie that the settings name, as shares or in per cent."""
    flat = [one for value in settings for one in (value if isinstance(value, tuple | list) else [value])]
    numbers = [float(one) for one in flat if isinstance(one, int | float | np.number) and not isinstance(one, bool)]
    shares = [one for number in numbers if 0 < (one := number if number < 1 else number / 100) < 1]
    shares += [1 - one for one in shares]
    return {math.modf((n_train - 1) * one)[0] for one in shares} - {0.0}


def _numbers(value: Any) -> Iterator[Floats]:
    """All arrays of decimals that something holds."""
    for place in walk(value, None, lambda _: True):
        if isinstance(place.value, np.ndarray) and place.value.dtype.kind == "f" and place.value.size:
            yield place.value.astype(np.float64)


def _probes(step: Any, seen: RecordsSeen) -> Iterator[Any]:
    """Tables about which a step answers otherwise than a line, or fills in numbers."""
    rows = np.unique(np.linspace(0, len(seen) - 1, N_ASKED).astype(int))
    assert seen.matrix is not None
    known: Flags = np.asarray(~np.isnan(seen.matrix).all(axis=0))
    middle, spread = np.zeros((2, len(known)))
    middle[known] = np.nanmean(seen.matrix[:, known], axis=0)
    spread[known] = np.nanstd(seen.matrix[:, known], axis=0)
    tables = [_with(seen.table, rows, known, middle + way * spread) for way in (0.0, FAR_ABOVE, FAR_BELOW)]
    near, above, below = (_output(step, table) for table in tables)
    if near is not None and above is not None and below is not None:
        with np.errstate(invalid="ignore"):
            up, down = (above - near) / FAR_ABOVE, (below - near) / FAR_BELOW
            bends = np.abs(up - down) > 1e-6 * np.maximum(np.abs(up), np.abs(down))
        if bends.any():
            yield from tables[1:]
    empty = _with(seen.table, rows, known, np.full(len(known), np.nan))
    filled = _output(step, empty)
    if filled is not None and np.isfinite(filled).any():
        yield empty


def _with(table: Any, rows: Any, known: Flags, values: Floats) -> Any:
    """Some rows with other numbers, the same in all; ``None`` for tables that are neither arrays nor data frames."""
    if hasattr(table, "iloc"):
        some = table.iloc[rows].copy()
        for place in np.flatnonzero(known):
            some.isetitem(place, np.full(len(rows), values[place]))
        return some
    if isinstance(table, np.ndarray) and table.dtype.kind in "fiuO":
        some = table[rows].astype(object if table.dtype.kind == "O" else np.float64)
        some[:, known] = values[known]
        return some
    return None


def _output(step: Any, table: Any) -> Floats | None:
    """What a step makes of a table, as far as these are numbers; ``None`` where it takes none of this kind."""
    if table is None:
        return None
    try:
        output = step.transform(table)
        output = output.toarray() if hasattr(output, "toarray") else np.asarray(output)
        return np.asarray(output, dtype=np.float64)
    except Exception:  # code of the user's, which may raise anything
        return None


def _matters(step: Any, name: str, value: Any, probes: list[Any]) -> bool:
    """Whether the output about one of some tables depends on the numbers in an attribute."""
    other = copy.copy(step)
    try:
        setattr(other, name, _moved(value))
    except Exception:  # an object that is no container of numbers, or that cannot be set
        return False
    for table in probes:
        before, after = _output(step, table), _output(other, table)
        if before is not None and after is not None and not np.array_equal(before, after, equal_nan=True):
            return True
    return False


def _moved(value: Any) -> Any:
    """The same with other numbers."""
    if isinstance(value, Mapping):
        return type(value)({key: _moved(one) for key, one in value.items()})  # type: ignore[call-arg]
    if isinstance(value, list | tuple):
        return type(value)([_moved(one) for one in value])
    if isinstance(value, str | bool) or value is None:
        return value
    if isinstance(value, int | float | np.number) or hasattr(value, "dtype"):
        return value * 1.001 + 0.001
    if hasattr(value, "select_dtypes"):
        numbers = value.select_dtypes("number")
        return value.assign(**{name: numbers[name] * 1.001 + 0.001 for name in numbers})
    raise TypeError
