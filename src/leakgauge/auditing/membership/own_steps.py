"""Numbers of single training records in steps of the user's own, or of other libraries: what they clip to or fill in.

Whatever such a step holds is looked for among the values of the candidates, in its own column or in all of them. What
it holds without need tells nobody anything: only what its output depends on counts, far outside of the training
records or without a number. Where a step is a line, what comes after it makes up for the numbers in it.
"""

from __future__ import annotations

import copy
import math
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.auditing.membership.means import groups_of, sums_off
from leakgauge.auditing.membership.shares import shares
from leakgauge.auditing.membership.sums import LARGEST_LOG, MOST_GUESSED, Sum
from leakgauge.inspecting.records_seen import RecordsSeen
from leakgauge.inspecting.walking import walk
from leakgauge.models.sklearn import is_of_other_code

N_ASKED = 50
"""Candidates whose numbers are moved or taken away, evenly spread: each group that a step knows may have its own."""

MOST_COLUMNS = 16
"""Columns of which each is changed by itself, those with the most different numbers first."""

BESIDE, FAR_ABOVE, FAR_BELOW = 0.1, 1e3, -2e3
"""Standard deviations from the mean: a line is told beside it, and far away whatever clips does so."""

MOST_WITH_MEANS = 4
"""Columns of whose numbers a step may hold means, those with the most different ones first."""

MOST_NUMBERS = 300
"""Of an attribute that are looked for in a column, evenly spread."""

ROUNDING = 1e-9
"""Standard deviations by which numbers, and places on a line, may be off."""

BENT = 1e-6
"""Share by which an answer is off a line, at least, where it is on none."""

MOST_DEPTH = 20
"""Of objects within objects whose numbers are moved."""


def is_own(part: Any) -> bool:
    """Whether it is a step of other code than scikit-learn's and ours."""
    return is_of_other_code(part) and hasattr(part, "transform") and hasattr(part, "get_params")


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
    kept, others = list[_Probe](), _probes(step, seen)
    for name, value in vars(step).items():
        held = [] if name in settings or name == "n_features_in_" else list(_numbers(value))
        of_attribute = _scores_of(value, held, seen, columns, fractions)
        if (of_attribute > found).any() and _matters(step, name, held, lambda: _again(kept, others)):
            np.maximum(found, of_attribute, out=found)
    return found


def sums_of_own_means(
    step: Any, seen: RecordsSeen, columns: Flags, labels: NDArray[Any], fitted_to: NDArray[Any]
) -> Iterator[tuple[int, list[Sum]]]:
    """Sums of the candidates' numbers in small groups whose mean or sum a step may know.

    What it fills in, where a line of it is 0, how steep that is, and what it answers whatever the numbers are, is
    compared with means, their logarithms and sums of all choices of those candidates about whom it is the same; of
    labels also with what smoothing by one of its settings makes of means. Outputs tell what is filled in. Of a line
    they tell no more than how groups differ, and of an answer that times something: one group more, or two, settle it.

    Args:
        step: fitted.
        seen: the candidates as it sees them.
        columns: of which outputs tell what a number is changed to ``[d]``.
        labels: of the candidates ``[n]``.
        fitted_to: labels ``[m]``.

    Yields:
        A column of what it makes of a table, and sums that follow from it.
    """
    if seen.matrix is None:
        return
    known = np.flatnonzero(columns & ~np.isnan(seen.matrix).all(axis=0))
    most_first = known[np.argsort([-len(np.unique(seen.matrix[:, one])) for one in known], kind="stable")]
    own_numbers = [seen.matrix[:, place] for place in most_first[:MOST_WITH_MEANS]]
    for place, numbers in zip(most_first, own_numbers, strict=False):
        for which, told, n_unknown in _told_by_lines(step, seen, place, numbers):
            yield which, list(_sums_told(numbers, *groups_of(told), (1, MOST_GUESSED), n_unknown))
    of_labels, everyones = (_as_quantity(some, fitted_to) for some in (labels, fitted_to))
    smoothing = {0.0, *(float(one) for one in step.get_params(deep=False).values() if _is_smoothing(one))}
    looked_up = _output(step, seen.table)
    of_some = (2, MOST_GUESSED)
    for which, told in enumerate(() if looked_up is None else looked_up.T):
        groups, means = groups_of(told)
        if len(means) < 2:
            continue
        sums = [one for numbers in (*own_numbers, of_labels) for one in _sums_told(numbers, groups, means, of_some, 2)]
        for smooth in smoothing if sums else ():
            sums += sums_off(of_labels, groups, means, smooth, float(everyones.mean()), sizes=of_some)
        yield which, sums


def _sums_told(numbers: Floats, groups: Indices, told: Floats, sizes: tuple[int, int], n_unknown: int) -> Iterator[Sum]:
    """Sums of numbers of small groups, where what is told of each is their mean, its logarithm or their sum.

    Args:
        numbers: of the candidates ``[n]``.
        groups: which one each is in ``[n]``; -1 for none.
        told: of each group ``[g]``.
        sizes: how many candidates a group has at least and at most.
        n_unknown: other numbers that have to be found; there must be more groups.
    """
    n_each = np.bincount(groups[(groups >= 0) & ~np.isnan(numbers)])
    if np.count_nonzero((n_each >= sizes[0]) & (n_each <= sizes[1])) <= n_unknown:
        return
    yield from sums_off(numbers, groups, told, sizes=sizes)
    yield from sums_off(numbers, groups, np.exp(np.where(told < LARGEST_LOG, told, np.nan)), sizes=sizes)
    for off in sums_off(numbers, groups, np.where(np.isfinite(told), 0.0, np.nan), sizes=sizes):
        yield off._replace(total=told[groups[off.rows[:1]]])


@contextmanager
def moved_output(step: Any, column: int, by: float) -> Iterator[None]:
    """While this lasts, a column of what a step makes of tables is larger by so many standard deviations."""
    own = step.transform

    def transform(X: Any) -> Any:
        output = own(X)
        if hasattr(output, "isetitem"):
            numbers = output.iloc[:, column]
            output = output.copy()
            output.isetitem(column, numbers + by * (float(np.std(numbers)) or 1.0))
            return output
        moved = np.array(output, dtype=np.float64).reshape(len(output), -1)
        moved[:, column] += by * (float(moved[:, column].std()) or 1.0)
        return moved.reshape(np.shape(output))

    step.transform = transform
    try:
        yield
    finally:
        del step.transform


def _told_by_lines(step: Any, seen: RecordsSeen, place: int, numbers: Floats) -> Iterator[tuple[int, Floats, int]]:
    """Where a step is 0 as a line for each candidate, how flat, and what it fills in for a number ``[n]``.

    Yields:
        A column of what it makes of a table, one of these, and how many other numbers outputs mix it with.
    """
    rows, middle, spread = np.arange(len(seen)), float(np.nanmean(numbers)), float(np.nanstd(numbers))
    ways = middle + np.array([0.0, BESIDE, np.nan]) * (spread or 1.0)
    for n_ways in (3, 2):  # some take no gaps
        table = _with(
            seen.table, np.tile(rows, n_ways), np.array([place]), np.repeat(ways[:n_ways], len(rows))[:, None]
        )
        output = None if table is None else _output(step, table)
        if output is not None:
            near, beside, *gone = np.split(output, n_ways)
            with np.errstate(all="ignore"):
                slope = (beside - near) / (ways[1] - ways[0])
                found = [middle - near / slope, 1 / slope, *(middle + (one - near) / slope for one in gone)]
            for told, n_unknown in zip(found, (1, 1, 0), strict=False):
                for which, one in enumerate(told.T):
                    if len(np.unique(one[np.isfinite(one)])) > 1:
                        yield which, one, n_unknown
            return


def _as_quantity(labels: NDArray[Any], fitted_to: NDArray[Any]) -> Floats:
    """Labels as numbers; of classes whether they are the last of those that were fitted to."""
    if labels.dtype.kind == "f":
        return labels.astype(np.float64)
    return np.asarray(labels == np.unique(fitted_to)[-1], dtype=np.float64)


def _is_smoothing(value: Any) -> bool:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return is_number and bool(0 < value < math.inf)


def _scores_of(
    value: Any, held: Sequence[NDArray[Any]], seen: RecordsSeen, columns: Flags, fractions: Sequence[float]
) -> Floats:
    """How sure it is that each candidate's number is one that an attribute holds, in its own column or in all."""
    found = np.zeros(len(seen))
    if not held:
        return found
    assert seen.matrix is not None
    aligned, together = _aligned(value, seen.table, len(columns)), np.concatenate([np.ravel(one) for one in held])
    for place in np.flatnonzero(columns & ~np.isnan(seen.matrix).all(axis=0)):
        numbers = np.ravel(together if aligned is None else aligned[..., place]).astype(np.float64)
        numbers = np.unique(numbers[np.isfinite(numbers)])
        numbers = numbers[:: max(1, math.ceil(len(numbers) / MOST_NUMBERS))]
        values = seen.matrix[:, place]
        np.maximum(found, shares(values, numbers, ROUNDING * float(np.nanstd(values)), fractions), out=found)
    return found


def _aligned(value: Any, table: Any, n_columns: int) -> NDArray[Any] | None:
    """What has numbers for each column of a table, in their order ``[..., d]``; ``None`` where it is something else."""
    names = list(getattr(table, "columns", range(n_columns)))
    if isinstance(value, np.ndarray):
        is_so = value.ndim in (1, 2) and value.shape[-1] == n_columns and value.dtype.kind in "fiu"
        return value if is_so else None
    if not hasattr(value, "iloc") or list(getattr(value, "columns", value.index)) != names:
        return None
    numbers = np.asarray(value)
    return numbers if numbers.dtype.kind in "fiu" else None


def _fractions(settings: Any, n_train: int) -> set[float]:
    """Where between two values quantiles lie that the settings name, as shares or in per cent."""
    flat = [one for value in settings for one in (value if isinstance(value, tuple | list) else [value])]
    numbers = [float(one) for one in flat if isinstance(one, int | float | np.number) and not isinstance(one, bool)]
    shares = [one for number in numbers if 0 < (one := number if number < 1 else number / 100) < 1]
    shares += [1 - one for one in shares]
    return {math.modf((n_train - 1) * one)[0] for one in shares} - {0.0}


def _numbers(value: Any) -> Iterator[NDArray[Any]]:
    """All arrays of numbers that something holds."""
    for place in walk(value, None, lambda _: True):
        if isinstance(place.value, np.ndarray) and place.value.dtype.kind in "fiu" and place.value.size:
            yield place.value


class _Probe(NamedTuple):
    """Rows with numbers at the mean, the same beside it, and changed in some way.

    Args:
        table: all of them.
        ways: to which the numbers are changed, in standard deviations from the mean; NaN for none.
        before: what the step answers, as :func:`_places` has it.
        told: which of these answers tell something that a line does not.
    """

    table: Any
    ways: tuple[float, ...]
    before: Floats
    told: Flags


def _again(kept: list[_Probe], others: Iterator[_Probe]) -> Iterator[_Probe]:
    """Those that were made, and then others, which are kept."""
    yield from kept
    for one in others:
        kept.append(one)
        yield one


def _probes(step: Any, seen: RecordsSeen) -> Iterator[_Probe]:
    """Changes about which a step answers otherwise than a line, or fills in numbers.

    All columns are changed, and then one at a time: where each group has its own number, the group must stay.
    """
    assert seen.matrix is not None
    rows = np.unique(np.linspace(0, len(seen) - 1, N_ASKED).astype(int))
    known = np.flatnonzero(~np.isnan(seen.matrix).all(axis=0))
    most_first = known[np.argsort([-len(np.unique(seen.matrix[:, one])) for one in known], kind="stable")]
    for places in (known, *(most_first[:MOST_COLUMNS, None] if len(known) > 1 else ())):
        middle, spread = np.nanmean(seen.matrix[:, places], axis=0), np.nanstd(seen.matrix[:, places], axis=0)
        for ways in ((FAR_ABOVE, FAR_BELOW), (np.nan,)):
            numbers = middle + np.repeat((0.0, BESIDE, *ways), len(rows))[:, None] * spread
            table = _with(seen.table, np.tile(rows, 2 + len(ways)), places, numbers)
            found = None if table is None else _places(step, table, ways)
            if found is None:
                continue
            before, told = found
            if told.any():
                yield _Probe(table, ways, before, told)


def _with(table: Any, rows: Indices, places: Indices, numbers: Floats) -> Any:
    """Some rows with other numbers in some columns; ``None`` for what is neither an array nor a data frame."""
    if hasattr(table, "iloc"):
        some = table.iloc[rows].reset_index(drop=True)
        for place, values in zip(places, numbers.T, strict=True):
            some.isetitem(place, values)
        return some
    if isinstance(table, np.ndarray) and table.dtype.kind in "fiuO":
        some = table[rows].astype(object if table.dtype.kind == "O" else np.float64)
        some[:, places] = numbers
        return some
    return None


def _places(step: Any, table: Any, ways: Sequence[float]) -> tuple[Floats, Flags] | None:
    """Which numbers would have had the answers about changed ones, were the step the line that it is at the mean.

    This is what outputs tell: what scales all of them does not change it. Where the step answers the same about the
    first two, the answers themselves.

    Returns:
        The numbers ``[m, n, k]``, and which of them say more than that it is a line; ``None`` where it takes no such
        table.
    """
    output = _output(step, table)
    if output is None:
        return None
    near, beside, *changed = np.split(output, 2 + len(ways))
    with np.errstate(all="ignore"):
        slope, moved, far = beside - near, np.array(changed), np.array(ways)[:, None, None]
        places = np.where(slope == 0, moved, BESIDE * (moved - near) / slope)
        off = np.where(slope == 0, moved != near, np.isnan(far) | (np.abs(places - far) > BENT * np.abs(far)))
    return places, off & np.isfinite(places)


def _output(step: Any, table: Any) -> Floats | None:
    """What a step makes of a table ``[n, k]``, NaN for what is no number; ``None`` where it takes none of this kind."""
    try:
        output = step.transform(table.copy())
        output = output.toarray() if hasattr(output, "toarray") else output
        by_column = hasattr(output, "iloc") and output.ndim == 2
        columns = (
            [output.iloc[:, place] for place in range(output.shape[1])] if by_column else _columns(output, len(table))
        )
        return np.column_stack([_as_numbers(one) for one in columns]).reshape(len(table), -1)
    except Exception:  # code of the user's, which may raise anything
        return None


def _columns(output: Any, n: int) -> Any:
    return np.asarray(output).reshape(n, -1).T


def _as_numbers(column: Any) -> Floats:
    """A column as decimals: NaN for all of a column of texts, which a step may pass on."""
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return np.full(len(column), np.nan)


def _matters(step: Any, name: str, held: Sequence[NDArray[Any]], probes: Callable[[], Iterable[_Probe]]) -> bool:
    """Whether what the outputs tell depends on the numbers in an attribute.

    Decimals alone are moved first: sizes and places, among whole numbers, may not be.
    """
    for kinds in ("f", "fiu")[: 1 + any(one.dtype.kind != "f" for one in held)]:
        other = _Moving(kinds).attribute(step, name)
        for probe in probes() if other is not None else ():
            found = _places(other, probe.table, probe.ways)
            if found is None or found[0].shape != probe.before.shape:
                continue
            off = np.abs(found[0] - probe.before) > ROUNDING * np.maximum(1.0, np.abs(probe.before))
            if (off & probe.told).any():
                return True
    return False


class _Moving:
    """Makes the same with other numbers, and leaves what is given as it is.

    Args:
        kinds: of numbers that are moved, as NumPy has them.
    """

    def __init__(self, kinds: str) -> None:
        self.kinds, self.made, self.kept = kinds, dict[int, Any](), list[Any]()

    def attribute(self, step: Any, name: str) -> Any:
        """A copy of a step, with other numbers in one attribute; ``None`` where that cannot be."""
        other = _copied(step)
        if other is None:
            return None
        vars(other)[name] = self(vars(step)[name])
        return other

    def __call__(self, value: Any, depth: int = 0) -> Any:
        """The same with other numbers, as far as it can be copied."""
        if isinstance(value, bool | int | float | np.generic):
            kind = np.asarray(value).dtype.kind
            return _other(value) if kind in self.kinds else value
        if value is None or isinstance(value, str | bytes | type | types.ModuleType) or depth > MOST_DEPTH:
            return value
        if id(value) not in self.made:
            self.kept.append(value)  # an object that is gone would leave its number to the next
            try:
                self.made[id(value)] = self._other_object(value, depth + 1)
            except Exception:  # of code of the user's, which may raise anything
                self.made[id(value)] = value
        return self.made[id(value)]

    def _other_object(self, value: Any, depth: int) -> Any:
        if isinstance(value, Mapping):
            held = {key: self(one, depth) for key, one in value.items()}
            if not hasattr(value, "update"):
                return held
            other: Any = copy.copy(value)
            other.update(held)
            return other
        if isinstance(value, list | tuple | set | frozenset | deque):
            make = getattr(type(value), "_make", type(value))  # of tuples with names
            return make([self(one, depth) for one in value])
        if hasattr(value, "isetitem"):
            other = value.copy()
            for place in range(value.shape[1]):
                other.isetitem(place, self._array(value.iloc[:, place], depth))
            return other
        if hasattr(value, "dtype") and not hasattr(value, "tocoo"):
            return self._array(value, depth)
        if isinstance(value, partial):
            return type(value)(self(value.func, depth), *self(value.args, depth), **self(value.keywords, depth))
        if isinstance(value, types.MethodType):
            return types.MethodType(value.__func__, self(value.__self__, depth))
        if isinstance(value, types.FunctionType):
            cells = [types.CellType(self(cell.cell_contents, depth)) for cell in value.__closure__ or ()]
            defaults = self(value.__defaults__, depth)
            function = types.FunctionType(value.__code__, value.__globals__, value.__name__, defaults, tuple(cells))
            function.__kwdefaults__ = self(value.__kwdefaults__, depth)
            return function
        return self._with_attributes(value, depth)

    def _array(self, value: Any, depth: int) -> Any:
        """An array, a series or a tensor with other numbers."""
        kind = getattr(value.dtype, "kind", "f" if getattr(value.dtype, "is_floating_point", False) else "i")
        if kind in self.kinds:
            return _other(value)
        if kind != "O":
            return value
        if hasattr(value, "map"):
            return value.map(lambda one: self(one, depth))
        other = value.copy()
        for place, one in np.ndenumerate(value):
            other[place] = self(one, depth)
        return other

    def _with_attributes(self, value: Any, depth: int) -> Any:
        other = _copied(value)
        if other is None:
            return value
        self.made[id(value)] = other
        for name, one in getattr(value, "__dict__", {}).items():
            vars(other)[name] = self(one, depth)
        for name in {one for kind in type(value).__mro__ for one in np.atleast_1d(getattr(kind, "__slots__", ()))}:
            if hasattr(value, name) and name not in ("__dict__", "__weakref__"):
                object.__setattr__(other, name, self(getattr(value, name), depth))
        return other


def _copied(value: Any) -> Any:
    """A copy of an object that has nothing of its own in common with it; ``None`` where there is none."""
    try:
        other = copy.copy(value)
    except Exception:  # of code of the user's, which may raise anything
        return None
    shared = hasattr(value, "__dict__") and vars(other) is vars(value)
    return None if other is value or shared else other


def _other(numbers: Any) -> Any:
    return numbers * 1.001 + 0.001
