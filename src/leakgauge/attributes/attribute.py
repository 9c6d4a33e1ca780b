"""What an attacker tries to find out about a person: the hidden columns, and the values they may hold.

Everything else in this package counts values from 0 to m - 1 in the order given here; that order also decides ties.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Codes, Floats
from leakgauge.errors import DataError
from leakgauge.escaping import shapes
from leakgauge.records import Column, Schema
from leakgauge.records.columns import INTEGERS

_ENTRIES_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class Bins:
    """Intervals of a numeric column and the number that stands for each when the model is asked.

    Bin b holds the values from edge b (included) to edge b + 1 (not included); values beyond the outermost edges belong
    to the outermost bins, as in :class:`leakgauge.records.FixedBins`.

    Args:
        edges: ascending, outermost included, at least two.
        representatives: one for each bin.
    """

    edges: tuple[float, ...]
    representatives: tuple[float, ...]

    def places(self, values: Floats) -> NDArray[np.intp]:
        """Which bin each value lies in, from 0, ``[n]``."""
        return np.searchsorted(self.edges[1:-1], values, side="right")

    def snapped(self, values: Floats) -> Floats:
        """The representative of each value's bin, ``[n]``."""
        return np.asarray(self.representatives)[self.places(values)]


@dataclass(frozen=True, eq=False)
class SensitiveAttribute:
    """The hidden columns and what they may hold.

    Made by :func:`single`, :func:`one_hot` and :func:`together`.

    Args:
        name: how reports call it.
        columns: places of the hidden columns in the matrix of features, c of them.
        values: the m possible values as the user knows them.
        settings: what the hidden columns hold with each value in place, ``[m, c]``.
        bins: for each hidden column its bins, or ``None`` where it holds exactly what a setting says.
    """

    name: str
    columns: tuple[int, ...]
    values: tuple[Any, ...]
    settings: Floats
    bins: tuple[Bins | None, ...]

    __repr__ = shapes

    def __len__(self) -> int:
        return len(self.values)

    def codes(self, features: Floats) -> Codes:
        """The value that each record holds, ``[n]``, from its encoded features ``[n, d]``.

        Raises:
            DataError: a record holds none of the values.
        """
        n, m = len(features), len(self)
        codes = np.empty(n, dtype=np.int64)
        rows = max(1, _ENTRIES_AT_ONCE // m)
        for start in range(0, n, rows):
            part = features[start : start + rows]
            holds = np.ones((len(part), m), dtype=bool)
            for place, (column, bins) in enumerate(zip(self.columns, self.bins, strict=True)):
                held = part[:, column] if bins is None else bins.snapped(part[:, column])
                held = np.where(np.isnan(part[:, column]), np.nan, held)  # which equals no value
                holds &= held[:, None] == self.settings[:, place]
            if not holds.any(axis=1).all():
                row = start + int(np.argmin(holds.any(axis=1)))
                raise DataError(
                    f"attribute {self.name!r}, row {row} (counting from 0): the record holds none of the "
                    f"{m} values; declare the value, or leave the record out."
                )
            codes[start : start + rows] = holds.argmax(axis=1)
        return codes

    def completed(self, features: Floats) -> Floats:
        """Each record with each value in place, ``[n, m, d]``; what the hidden columns held does not matter."""
        made = np.repeat(features[:, None, :], len(self), axis=1)
        made[:, :, list(self.columns)] = self.settings
        return made

    def known(self, features: Floats) -> Floats:
        """The features without the hidden columns, ``[n, d - c]``."""
        return np.delete(features, self.columns, axis=1)


def single(
    schema: Schema,
    column: str,
    *,
    edges: Sequence[float] | None = None,
    representatives: Sequence[float] | None = None,
    values: Sequence[float] | None = None,
) -> SensitiveAttribute:
    """One column: the categories of a categorical one, bins or given numbers of a numeric one.

    Args:
        schema: of the records.
        column: its name.
        edges: of the bins of a numeric column, outermost included; public ones, such as
            :func:`leakgauge.records.bin_edges` makes from records that anybody may see.
        representatives: what the model is asked with for each bin, a number in it; by default the middles, rounded down
            to whole numbers in a column of integers.
        values: the numbers that a numeric column may hold, such as ``(0, 1)``, in place of bins.

    Raises:
        DataError: there is no such column; it is numeric and neither bins nor values are given, or both; they are given
            for a categorical one; they do not ascend or repeat; or representatives lie in other bins, or have none.

    >>> from leakgauge.records import Records
    >>> table = [["f", 31.0, 1.0], ["m", 47.0, 0.0]]
    >>> schema = Records.from_arrays(np.array(table, dtype=object), [0.5, 1.5], names=["sex", "age", "smokes"]).schema
    >>> single(schema, "sex").values, single(schema, "smokes", values=(0, 1)).values
    (('f', 'm'), (0, 1))
    >>> single(schema, "age", edges=(20, 40, 60)).settings.ravel().tolist()
    [30.0, 50.0]
    """
    place = schema.index(column)
    described = schema.columns[place]
    if representatives is not None and edges is None:
        raise DataError(f"column {column!r}: representatives stand for bins; give the edges of the bins as well.")
    if described.is_categorical:
        if edges is not None or values is not None:
            raise DataError(f"column {column!r} is {described.kind}: its values are its categories; give no others.")
        numbers = np.arange(len(described.categories), dtype=np.float64)
        return SensitiveAttribute(column, (place,), described.categories, numbers[:, None], (None,))
    if (edges is None) == (values is None):
        raise DataError(
            f"column {column!r} is numeric, so name the values to distinguish: either edges of bins (see "
            "records.bin_edges), or the values it may hold, such as values=(0, 1)."
        )
    if values is not None:
        settings = np.asarray(values, dtype=np.float64)
        if not settings.size or not np.isfinite(settings).all() or len(np.unique(settings)) < settings.size:
            raise DataError(f"column {column!r}: values must be finite and differ, got {list(values)}.")
        return SensitiveAttribute(column, (place,), tuple(values), settings[:, None], (None,))
    assert edges is not None
    bins = _bins(_checked_edges(edges, column), representatives, described)
    names = tuple(f"{low:g} to {high:g}" for low, high in itertools.pairwise(bins.edges))
    return SensitiveAttribute(column, (place,), names, np.asarray(bins.representatives)[:, None], (bins,))


def one_hot(
    schema: Schema,
    columns: Sequence[str],
    *,
    name: str | None = None,
    values: Sequence[Any] | None = None,
    none: Any = None,
) -> SensitiveAttribute:
    """A group of columns of 0 and 1, of which one is 1: set together, never a single one.

    Args:
        schema: of the records.
        columns: their names.
        name: of the attribute; by default the names, joined.
        values: what each column stands for; by default its name.
        none: what it means that all of the columns are 0, where one category has no column of its own; by default
            that does not occur.

    Raises:
        DataError: a column is not there or not numeric, or there are none, or not one value for each.

    >>> from leakgauge.records import Records
    >>> schema = Records.from_arrays([[1.0, 0.0, 3.5], [0.0, 1.0, 2.5]], [0.5, 1.5], names=["a", "b", "x"]).schema
    >>> one_hot(schema, ["a", "b"], none="other").settings.tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """
    places = tuple(schema.index(column) for column in columns)
    named = tuple(columns if values is None else values)
    if not places or len(named) != len(places) or len(set(places)) < len(places):
        raise DataError(f"a group needs different columns and one value for each, got {list(columns)} and {named}.")
    for place in places:
        if schema.columns[place].categories not in ((), (0, 1)):  # False and True are the same
            raise DataError(f"column {schema.names[place]!r} is categorical, no column of a group of 0 and 1.")
    settings = np.eye(len(places))
    if none is not None:
        named, settings = (*named, none), np.vstack([settings, np.zeros(len(places))])
    return SensitiveAttribute(name or ", ".join(columns), places, named, settings, (None,) * len(places))


def together(*attributes: SensitiveAttribute) -> SensitiveAttribute:
    """Several attributes hidden at once: every combination of their values is one value.

    Raises:
        DataError: a column belongs to two of them, or there is none.
    """
    columns = tuple(column for one in attributes for column in one.columns)
    if not columns or len(set(columns)) < len(columns):
        raise DataError("attributes that are hidden together must be at least one and share no column; name each once.")
    combinations = list(itertools.product(*(range(len(one)) for one in attributes)))
    values = tuple(tuple(one.values[i] for one, i in zip(attributes, chosen, strict=True)) for chosen in combinations)
    settings = np.array(
        [
            np.concatenate([one.settings[i] for one, i in zip(attributes, chosen, strict=True)])
            for chosen in combinations
        ]
    )
    bins = tuple(bins for one in attributes for bins in one.bins)
    return SensitiveAttribute(", ".join(one.name for one in attributes), columns, values, settings, bins)


def _checked_edges(edges: Sequence[float], column: str) -> tuple[float, ...]:
    found = tuple(float(edge) for edge in edges)
    if len(found) < 2 or not np.isfinite(found).all() or (np.diff(found) <= 0).any():
        raise DataError(f"column {column!r}: edges must be at least two finite numbers that ascend, got {list(edges)}.")
    return found


def _bins(edges: tuple[float, ...], given: Sequence[float] | None, described: Column) -> Bins:
    low, high = np.asarray(edges[:-1]), np.asarray(edges[1:])
    if given is None:
        middles = (low + high) / 2
        whole = np.floor(middles)
        numbers = np.where((whole >= low) & (described.dtype in INTEGERS), whole, middles)
    else:
        numbers = np.asarray(given, dtype=np.float64)
    bins = Bins(edges, tuple(np.ravel(numbers).tolist()))
    if not np.array_equal(bins.places(numbers), np.arange(len(low))) or not np.isfinite(numbers).all():
        raise DataError(
            f"column {described.name!r}: representatives must be one number in each of {len(low)} bins, in their "
            f"order, got {numbers.tolist()}."
        )
    return bins
