"""Training records as one part of a model saw them, and what of an array of a model is equal to theirs.

An array holds values of single records where a number in it is a cell of exactly one record. Numbers may agree by
chance: a column of whole ages has few possible values, and any of them may be in a model for another reason. So what
agrees counts only where far fewer numbers would be expected to agree if they were drawn from the grid on which the
values of the column lie.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.errors import DataError
from leakgauge.inspecting.findings import Kind
from leakgauge.records.table import require_one_writing

_QUOTED = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")

MOST_BY_CHANCE = 0.05
"""Numbers of an array that may be expected to agree with values of records by chance."""

MOST_ROWS_BY_CHANCE = 0.01
"""Records that may be expected to equal a vector in every column, were columns independent, for one that does to be a
stored row: medians of counts are frequent values, and some record may have them all."""

MOST_SHARE = 0.2
"""Of numbers on the grid of a column that may be values of single persons, for agreement to say anything."""

LEAST_SHARE = 0.001
"""The same, where nothing is known of the numbers."""

LEAST_HALFWAY = 0.2
"""Of the numbers of an array of which nothing is known that must lie halfway between values; some do by chance."""

MOST_HOLDERS = 50
"""Persons who are remembered for each word; one that as many hold is not rare."""

MOST_CELLS = 20_000_000
"""Of a table that is searched for; larger ones are searched for by their first rows."""

MOST_MIDPOINTS = 100
"""Different numbers of an array that are compared with midpoints, which takes all records for each."""

MOST_COMPARISONS = 5e7
"""For midpoints in all arrays of a model; when these are used up one number of each array is compared."""


@dataclass(frozen=True)
class Match:
    """What of an array is equal to something of single records.

    Args:
        kind: rows, values or midpoints.
        n_entries: rows or numbers of the array.
        records: rows of the training records.
    """

    kind: Kind
    n_entries: int
    records: frozenset[int]


@dataclass(frozen=True)
class Column:
    """The values of one column that a single person holds.

    Args:
        values: ascending ``[v]``.
        rows: a row that holds each ``[v]``.
        n_possible: how many values the column could have, by its grid and its range.
    """

    values: Floats
    rows: Indices
    n_possible: float


class RecordsSeen:
    """The training records as one estimator of a model saw them.

    Args:
        table: ``[n, d]``, of any kind that estimators take: an array, a data frame, a sparse matrix, a list of texts.
        labels: ``[n]``, as the model was given them.
        persons: whose record each is, as codes ``[n]``.
    """

    def __init__(self, table: Any, labels: NDArray[Any], persons: Indices) -> None:
        self.table, self.labels, self.persons = table, labels, persons
        self._comparisons_left = MOST_COMPARISONS

    def __len__(self) -> int:
        return len(self.persons)

    def seen_as(self, table: Any) -> RecordsSeen:
        """The same records as a later step sees them."""
        return RecordsSeen(table, self.labels, self.persons)

    @cached_property
    def matrix(self) -> Floats | None:
        """The numbers of the table ``[n, d]``, NaN for what is none; ``None`` where there are none."""
        columns = self._columns
        return None if not columns else np.column_stack([_numbers(column) for column in columns])

    @cached_property
    def columns(self) -> list[Column]:
        """Values of single persons, by column; the last is the label where that is a quantity."""
        numbers = [] if self.matrix is None else list(self.matrix.T)
        return [self._own(column) for column in (*numbers, _numbers(self.labels))]

    @cached_property
    def singles(self) -> list[Column]:
        """As :attr:`columns`, of the values in single precision, as trees and boosters see them."""
        numbers = [] if self.matrix is None else list(self.matrix.T)
        with np.errstate(over="ignore"):
            rounded = [column.astype(np.float32).astype(float) for column in (*numbers, _numbers(self.labels))]
        return [self._own(column) for column in rounded]

    @cached_property
    def _own_rows(self) -> dict[type[np.floating[Any]], dict[bytes, int]]:
        """The rows that a single person holds, in double and in single precision."""
        assert self.matrix is not None
        with np.errstate(over="ignore"):
            return {kind: _own_rows(self.matrix.astype(kind), self.persons) for kind in (np.float64, np.float32)}

    @cached_property
    def _possible_rows(self) -> float:
        """How many rows there could be, by the grids of the columns."""
        return float(np.exp(np.minimum(700.0, np.sum(np.log([column.n_possible for column in self.columns[:-1]])))))

    @cached_property
    def words(self) -> dict[str, set[int]]:
        """The persons, up to `MOST_HOLDERS`, who hold each text: as a whole cell, a word of one, or a feature."""
        holders: dict[str, set[int]] = {}
        for column in (*self._columns, self.labels):
            if column.dtype.kind in "OUST":
                for cell, person in zip(column.tolist(), self.persons.tolist(), strict=True):
                    for word in _words_of(cell):
                        known = holders.setdefault(word, set())
                        if len(known) < MOST_HOLDERS:
                            known.add(person)
        return holders

    @cached_property
    def _columns(self) -> list[NDArray[Any]]:
        table = self.table
        if hasattr(table, "tocsc"):
            most = max(1, MOST_CELLS // max(1, table.shape[0]))
            return list(table.tocsc()[:, :most].toarray().T)
        if hasattr(table, "columns") and hasattr(table, "iloc"):
            return [table.iloc[:, place].to_numpy() for place in range(table.shape[1])]
        array = np.asarray(table) if not isinstance(table, list) else np.array(table, dtype=object)
        array = array.reshape(len(array), -1)
        return list(array.T[: max(1, MOST_CELLS // max(1, len(array)))])

    def _own(self, column: Floats) -> Column:
        known = np.flatnonzero(np.isfinite(column))
        values, places, inverse = np.unique(column[known], return_index=True, return_inverse=True)
        pairs = np.unique(np.column_stack([inverse.ravel(), self.persons[known]]), axis=0)
        own = np.bincount(pairs[:, 0], minlength=len(values)) == 1
        return Column(values[own], known[places[own]], _n_possible(values))

    def match(self, array: NDArray[Any], *, column: int | None = None, certain: bool = False) -> Match | None:
        """The most that an array holds of single records: whole rows, else values, else midpoints of two values.

        Numbers of up to three digits are passed over where nothing is known of the array: 0, 1, 0.5 and their like have
        other reasons.

        Args:
            array: numbers of any shape.
            column: the column that all of them are about, if they are about one.
            certain: whether they are known to be values or midpoints of the training data, so that chance is no
                other explanation.
        """
        if array.dtype.kind not in "fiu" or array.size == 0 or not len(self):
            return None
        if column is None and (found := self._rows(array, certain)) is not None:
            return found
        if not certain and array.dtype.kind != "f":
            return None
        numbers = array.astype(float) if certain else np.where(_is_short(array.astype(float)), np.nan, array)
        flat = numbers[np.isfinite(numbers)]
        return (
            (self._aligned(numbers, certain) if column is None else None)
            or self._values(flat, column, certain)
            or self.halfway(flat, column, certain)
        )

    def halfway(self, numbers: Floats, column: int | None = None, certain: bool = True) -> Match | None:
        """Numbers halfway between two values, each of a single record.

        Args:
            numbers: finite ones ``[m]``.
            column: the column that all of them are about, if they are about one.
            certain: whether they are known to be thresholds.
        """
        different, counts = np.unique(numbers, return_counts=True)
        most = max(1, min(MOST_MIDPOINTS, int(self._comparisons_left / max(1, len(self) * len(self.columns)))))
        some = np.linspace(0, len(different) - 1, min(len(different), most)).astype(int)
        self._comparisons_left -= len(some) * len(self) * (1 if column is not None else len(self.columns))
        most_share = MOST_SHARE if certain else LEAST_SHARE
        for columns in (self.singles, self.columns):
            found = _Found()
            for one in columns if column is None else [columns[column]]:
                share = min(1.0, len(one.values) ** 2 / 4 / one.n_possible)
                if len(one.values) and share < most_share:
                    found.add(*_halfway(one, different[some], counts[some]), expected=len(some) * share)
            match = found.match(Kind.MIDPOINT, certain=False)
            if match is not None and (certain or match.n_entries >= LEAST_HALFWAY * len(numbers)):
                return match
        return None

    def _rows(self, array: NDArray[Any], certain: bool) -> Match | None:
        matrix = self.matrix
        if matrix is None or matrix.shape[1] < 2:
            return None
        if array.ndim != 2:  # one row, or several one after another
            if array.size % matrix.shape[1]:
                return None
            array = array.reshape(-1, matrix.shape[1])
        for candidate in (array, array.T):
            if candidate.shape[1] == matrix.shape[1]:
                for dtype in (np.float64, np.float32):
                    keys = {values.tobytes() for values in np.add(candidate.astype(dtype), 0.0)}
                    rows = [row for key, row in self._own_rows[dtype].items() if key in keys]
                    if len(rows) == 1:
                        by_chance = len(candidate) * self._as_frequent(rows[0], dtype, of_columns=certain)
                        if by_chance >= MOST_ROWS_BY_CHANCE:
                            continue
                    if rows and (certain or len(matrix) * len(candidate) / self._possible_rows < MOST_BY_CHANCE):
                        return Match(Kind.ROWS, len(rows), frozenset(rows))
        return None

    def _as_frequent(self, row: int, dtype: type[np.floating[Any]], *, of_columns: bool) -> float:
        """How many records would be expected to equal a record, were columns independent.

        Args:
            row: of the record.
            dtype: in which precision.
            of_columns: whether the vector is made of values of the columns, as medians are, so that in each column some
                record agrees; else the record itself is not counted.
        """
        assert self.matrix is not None
        with np.errstate(over="ignore"):
            matrix = self.matrix.astype(dtype)
        same = (matrix == matrix[row]) | (np.isnan(matrix) & np.isnan(matrix[row]))
        return len(matrix) * float(np.prod((same.sum(axis=0) - (not of_columns)) / len(matrix)))

    def _aligned(self, array: NDArray[Any], certain: bool) -> Match | None:
        """Values of an array with a number for each column, each in its own column: extremes, medians, centres."""
        width = len(self.columns) - 1
        if not 1 <= array.ndim <= 2 or array.shape[-1] != width or array.size > 4 * width or width == 0:
            return None
        found = _Found()
        for values, column in zip(np.atleast_2d(array).T, self.columns[:-1], strict=True):
            found.add(*_among(column, values), expected=len(values) * min(1.0, len(column.values) / column.n_possible))
        return found.match(Kind.VALUE, certain)

    def _values(self, flat: Floats, of: int | None, certain: bool) -> Match | None:
        n_different = len(np.unique(flat))
        for columns in (self.columns, self.singles):
            found = _Found()
            for column in columns if of is None else [columns[of]]:
                share = min(1.0, len(column.values) / column.n_possible)
                if share < LEAST_SHARE or (certain and (of is not None or share < MOST_SHARE)):
                    found.add(*_among(column, flat), expected=n_different * share)
            if (match := found.match(Kind.VALUE, certain and of is not None)) is not None:
                return match
        return None

    def by_column(self, array: NDArray[Any]) -> Match | None:
        """The values of single records in an array ``[m, d]`` with the columns of the table."""
        found = [self.match(values, column=place, certain=True) for place, values in enumerate(array.T)]
        held = [one for one in found if one is not None and one.kind is Kind.VALUE]
        if not held:
            return next((one for one in found if one is not None), None)
        records = frozenset().union(*(one.records for one in held))
        return Match(Kind.VALUE, sum(one.n_entries for one in held), records)

    def rows_quoted(self, texts: Sequence[str]) -> Match | None:
        """Whole rows whose numbers stand one after another in texts: in a line, or in texts of one number each."""
        if self.matrix is None or self.matrix.shape[1] < 2:
            return None
        width, whole = self.matrix.shape[1], [_QUOTED.findall(text) for text in texts]
        if all(len(found) == 1 for found in whole):
            lines = [[found[0] for found in whole]]
        else:
            lines = [_QUOTED.findall(line) for text in texts for line in re.split(r"[\n\]\[]", text)]
        numbers = [np.array(line, dtype=float) for line in lines if len(line) >= width]
        if not numbers or sum(map(len, numbers)) * width > MOST_CELLS:
            return None
        windows = [np.lib.stride_tricks.sliding_window_view(line, width) for line in numbers]
        return self._rows(np.concatenate(windows), certain=False)

    def rare(self, texts: Iterable[str], k: int) -> tuple[int, frozenset[int]]:
        """How many of some texts fewer than k persons hold, and these persons; of several words the rarest counts."""
        held = [min((self.words.get(word, set()) for word in text.split() or [text]), key=len) for text in texts]
        held = [persons for persons in held if 0 < len(persons) < min(k, MOST_HOLDERS)]
        return len(held), frozenset().union(*held)


class _Found:
    """Numbers that agree with those of records, and how many would by chance."""

    def __init__(self) -> None:
        self.rows: set[int] = set()
        self.n_entries = 0
        self.expected = 0.0

    def add(self, rows: Iterable[int], n_entries: int, expected: float) -> None:
        """What agrees with one column."""
        self.rows.update(rows)
        self.n_entries += n_entries
        self.expected += expected

    def match(self, kind: Kind, certain: bool) -> Match | None:
        """All of it, if chance does not explain it."""
        by_chance = 0 if certain or self.expected < MOST_BY_CHANCE else 3 * self.expected + 3
        return Match(kind, self.n_entries, frozenset(self.rows)) if self.n_entries > by_chance else None


def _words_of(cell: Any) -> Iterator[str]:
    """A text, its words as they are and in lower case; of a dictionary the names that `DictVectorizer` gives."""
    if isinstance(cell, Mapping):
        for key, value in cell.items():
            yield from (str(key), f"{key}={value}")
            yield from _words_of(value)
    elif isinstance(cell, str):
        yield cell
        yield from re.findall(r"\b\w\w+\b", cell)
        yield from re.findall(r"\b\w\w+\b", cell.lower())


def as_persons(given: Sequence[Any] | NDArray[Any] | None, n: int) -> Indices:
    """Whose record each of n is, as codes; each its own person where nothing is given.

    Raises:
        DataError: nobody is named in a row, or a person is written in two ways.
    """
    if given is None:
        return np.arange(n)
    persons = np.asarray(given)
    if persons.dtype.kind not in "iub":
        held = given.tolist() if hasattr(given, "tolist") else list(given)
        missing = [one is None or (one == one) is not True for one in held]
        if any(missing):
            raise DataError(f"persons: the id of row {missing.index(True)} (counting from 0) is missing")
        persons = persons.astype(np.str_)
        require_one_writing(persons)
    return np.unique(persons, return_inverse=True)[1].astype(np.int64)


def _numbers(column: NDArray[Any]) -> Floats:
    if column.dtype.kind in "fiub":
        return column.astype(float)
    return np.array([_number(value) for value in column.tolist()])


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else np.nan


def _n_possible(values: Floats) -> float:
    """How many values a column could have: the points of the coarsest decimal grid on its range, at most 2**24."""
    if len(values) < 2:
        return 1.0
    extent = float(values[-1] - values[0])
    for decimals in range(8):
        scaled = values * 10.0**decimals
        whole = np.round(scaled)
        if np.abs(whole).max() < 2**50 and np.allclose(scaled, whole, rtol=1e-12, atol=1e-6) and np.diff(whole).all():
            return extent * 10.0**decimals + 1
    return 2.0**50 if not np.array_equal(values, values.astype(np.float32)) else 2.0**24


def _is_short(numbers: Floats) -> Flags:
    """Whether numbers have three digits at most."""
    with np.errstate(all="ignore"):
        unit = 10.0 ** (np.floor(np.log10(np.abs(numbers))) - 2)
        scaled = numbers / unit
        return np.asarray((numbers == 0) | (np.abs(scaled - np.round(scaled)) < 1e-9))


def _among(column: Column, flat: NDArray[Any]) -> tuple[list[int], int]:
    """Rows of the records whose value is among some numbers, and how many of those numbers are such values."""
    if not len(column.values):
        return [], 0
    places = np.searchsorted(column.values, flat).clip(0, len(column.values) - 1)
    equal = column.values[places] == flat
    return column.rows[np.unique(places[equal])].tolist(), int(equal.sum())


def _own_rows(matrix: NDArray[Any], persons: Indices) -> dict[bytes, int]:
    """The rows that a single person holds, as bytes, with the place of the first."""
    owners: dict[bytes, set[int]] = {}
    rows: dict[bytes, int] = {}
    for row, values in enumerate(matrix + 0.0):
        owners.setdefault(values.tobytes(), set()).add(int(persons[row]))
        rows.setdefault(values.tobytes(), row)
    return {key: row for key, row in rows.items() if len(owners[key]) == 1}


def _halfway(column: Column, numbers: Floats, counts: Indices) -> tuple[set[int], int]:
    """Rows of the records between two of whose values numbers lie halfway, and how many of the numbers do.

    Only numbers halfway between one pair are counted: on a coarse grid there are many pairs for each.
    """
    rows: set[int] = set()
    n_entries = 0
    for number, count in zip(numbers, counts, strict=True):
        other = 2 * number - column.values
        places = np.searchsorted(column.values, other).clip(1, len(column.values) - 1) if len(column.values) > 1 else 0
        nearest = column.values[places]
        below = column.values[places - 1] if len(column.values) > 1 else nearest
        gap = np.minimum(np.abs(nearest - other), np.abs(below - other))
        equal = (gap <= 4 * np.spacing(np.abs(number) + np.abs(other))) & (column.values != number)
        if equal.sum() == 2:  # one pair, seen from either side; several say nothing of any
            rows.update(column.rows[equal].tolist())
            n_entries += int(count)
    return rows, n_entries
