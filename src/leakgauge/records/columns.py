"""The words for a column: its kind, its role, its categories, and how it is written back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import numpy as np

from leakgauge.errors import DataError
from leakgauge.escaping import shapes

Value: TypeAlias = str | int | bool | float | None
"""An original value of a categorical column or a class; None stands for a missing value."""

INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
FLOATS = frozenset({"float32", "float64"})
TIMES = frozenset({"date", "datetime"})
"""Points of time, which are quantities: days since 1970. Those of a time zone are called ``datetime[zone]``."""

MICROSECONDS_A_DAY = 86_400_000_000

TICKS_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": MICROSECONDS_A_DAY}

DTYPES = INTEGERS | FLOATS | TIMES | {"bool", "string", "categorical", "enum", "object"}
"""The ways in which a column is written back into a table, whatever the table type."""


class Kind(StrEnum):
    """How the values of a column compare: as quantities, as names, or as ranks."""

    NUMERIC = "numeric"
    CATEGORICAL = "categorical"
    ORDINAL = "ordinal"


class Role(StrEnum):
    """What a column is used for.

    A sensitive column is a feature that attribute inference tries to guess; a person's says whose row it is.
    """

    FEATURE = "feature"
    TARGET = "target"
    SENSITIVE = "sensitive"
    ID = "id"
    PERSON = "person"
    IGNORE = "ignore"


class Task(StrEnum):
    """What the model predicts: one of finitely many classes, or a quantity."""

    CLASSIFICATION = "classification"
    REGRESSION = "regression"


class Hole(StrEnum):
    """What stands for a missing value in tables that know several."""

    NONE = "None"
    NAN = "NaN"
    NA = "NA"


class Native(StrEnum):
    """The table type that a model is asked with."""

    NUMPY = "numpy"
    PANDAS = "pandas"
    POLARS = "polars"
    PYARROW = "pyarrow"


@dataclass(frozen=True)
class ArrayForm:
    """The form of the array that a model takes in place of a table with names of columns.

    Attributes:
        dtype: Of its entries: numbers of this type, or text.
        shape: Of one record, such as (28, 28) for images and () for texts alone; the columns are its entries in C
            order. ``None`` for a row of columns.
        sparse: The class of SciPy for sparse ones, ``csr_matrix`` or ``csr_array``; ``None`` for those of NumPy.
    """

    dtype: str = "float64"
    shape: tuple[int, ...] | None = None
    sparse: str | None = None


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        name: Its name, as in the table.
        kind: Numeric, categorical or ordinal.
        role: What it is used for.
        categories: The original values in frozen order; the code of a value is its place here. None stands for a
            missing value. Empty for numeric columns, and for columns whose categories are still to be frozen.
        dtype: How the column is written back into a table; one of `DTYPES`. An integer column comes back as
            integers, a categorical one as its original values.
        hole: What stands for a missing category in tables of pandas and NumPy; other tables have their own. Of
            quantities in tables of Polars and Arrow, whether that is NaN or null (``Hole.NONE``).
        unit: In which points of time are counted: s, ms, us or ns.
        dates: Whether its categories are texts of dates, of a column of which it was not said that it is categorical.
            `Records.with_dates` takes them for points of time.

    Raises:
        DataError: If the name is empty, the dtype unknown, or the categories repeat, are no plain values, or are
            given for a numeric column.

    >>> Column("sex", Kind.CATEGORICAL, Role.SENSITIVE, ("f", "m"), dtype="string").is_feature
    True
    """

    name: str
    kind: Kind = Kind.NUMERIC
    role: Role = Role.FEATURE
    categories: tuple[Value, ...] = ()
    dtype: str = "float64"
    hole: Hole = Hole.NAN
    unit: str = "us"
    dates: bool = field(default=False, repr=False)

    __repr__ = shapes

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise DataError(f"a column's name must be non-empty text, got {self.name!r}; rename the column.")
        object.__setattr__(self, "kind", Kind(self.kind))
        object.__setattr__(self, "role", Role(self.role))
        object.__setattr__(self, "categories", tuple(plain_value(value, self.name) for value in self.categories))
        if self.dtype.partition("[")[0] not in DTYPES:
            raise DataError(
                f"column {self.name!r}: dtype must be one of {', '.join(sorted(DTYPES))}, got {self.dtype!r}."
            )
        if self.categories and self.kind is Kind.NUMERIC:
            raise DataError(
                f"column {self.name!r} is numeric and cannot have categories; declare it categorical or ordinal, "
                "or leave the categories out."
            )
        if len(set(self.categories)) < len(self.categories):
            second = next(i for i, value in enumerate(self.categories) if value in self.categories[:i])
            raise DataError(
                f"column {self.name!r}: a category is listed twice (number {second + 1}, counting from 1); "
                "list each value once."
            )

    @property
    def is_categorical(self) -> bool:
        """Whether the matrix holds codes of categories (categorical and ordinal columns)."""
        return self.kind is not Kind.NUMERIC

    @property
    def is_time(self) -> bool:
        """Whether the matrix holds days since 1970, and the table points of time."""
        return self.dtype.partition("[")[0] in TIMES

    @property
    def time_zone(self) -> str | None:
        """Of a column of points of time."""
        return self.dtype.partition("[")[2].rstrip("]") or None

    @property
    def is_feature(self) -> bool:
        """Whether the model sees it (features and sensitive features)."""
        return self.role in (Role.FEATURE, Role.SENSITIVE)


@dataclass(frozen=True)
class OneHot:
    """A group of columns of 0 and 1 that are one feature: of each record exactly one of them is 1.

    Attributes:
        name: What the group is called; no column has this name.
        columns: Names of its columns, two at least; each stands for a category, in this order.
        role: Feature or sensitive: attribute inference asks about the group as a whole.

    Raises:
        DataError: If there are fewer than two columns, one is named twice, or the role is that of no feature.
    """

    name: str
    columns: Sequence[str]
    role: Role = Role.FEATURE

    def __post_init__(self) -> None:
        if isinstance(self.columns, str) or not all(isinstance(name, str) for name in self.columns):
            raise DataError(f"one-hot group {self.name!r}: expected a list of names of columns; give one.")
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "role", Role(self.role))
        if not isinstance(self.name, str) or not self.name:
            raise DataError(f"a one-hot group's name must be non-empty text, got {self.name!r}; name the feature.")
        if len(self.columns) < 2 or len(set(self.columns)) < len(self.columns):
            raise DataError(
                f"one-hot group {self.name!r}: expected at least two different columns, got {len(self.columns)}; "
                "list each column of the feature once."
            )
        if self.role not in (Role.FEATURE, Role.SENSITIVE):
            raise DataError(f"one-hot group {self.name!r} has role {self.role}; give it the role feature or sensitive.")


def plain_value(value: object, name: str) -> Value:
    """A declared category as a plain Python value."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and math.isnan(value):
        raise DataError(f"column {name!r}: NaN cannot be a category; write None for missing values.")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise DataError(
        f"column {name!r}: a category is of type {type(value).__name__}, expected text, a number, true or false, or "
        "None for missing; turn such values into text."
    )


def in_order(values: Iterable[Value]) -> tuple[Value, ...]:
    """Categories in the order in which they are frozen: numbers, then text, each ascending; missing last.

    >>> in_order(["b", None, 10, "a", 9])
    (9, 10, 'a', 'b', None)
    """
    return tuple(sorted(set(values), key=_rank))


def _rank(value: Value) -> tuple[int, float, str]:
    if value is None:
        return (2, 0.0, "")
    return (1, 0.0, value) if isinstance(value, str) else (0, value, "")
