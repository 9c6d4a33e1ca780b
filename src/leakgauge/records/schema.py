"""What the columns of a table mean, and the way there and back between a table and a matrix of numbers.

A model sees a table: text, whole numbers, categories, in the table type its owner likes. Everything in leakgauge
computes on one float64 matrix. `Schema` is the dictionary between the two. It is frozen once, from all records of
an audit, so that every shadow model sees the same categories in the same order: categories inferred anew from each
random half would change the meaning, and even the number, of the matrix's columns.

What is *not* here: scaling, imputation, one-hot encoding. Whatever learns from data belongs to the learner, because
it is part of what gives people away.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from leakgauge.errors import DataError
from leakgauge.escaping import shapes
from leakgauge.records import _decoding, _encoding, _tables
from leakgauge.records._messages import closest_column, repeated
from leakgauge.records.columns import ArrayForm, Column, Kind, Native, OneHot, Role, Task, Value

__all__ = ["ArrayForm", "Column", "Kind", "Native", "OneHot", "Role", "Schema", "Task", "Value"]

_Scalar = TypeVar("_Scalar", bound=np.generic)


@dataclass(frozen=True)
class Schema:
    """The columns a model sees, in model order, and the target; frozen for a whole audit.

    It should be the case that `schema.encode(schema.decode(features))` equals `features`, and that
    `schema.decode(schema.encode(table))` equals `table`, rows in the same order, columns in the schema's.

    Attributes:
        columns: The features, in the order in which the model takes them; roles feature or sensitive.
        target: The column to predict; its categories are the classes, none for regression.
        native: The table type that `decode` returns.
        one_hot: Groups of columns of 0 and 1 that are one feature each.
        array: The form of the array that `decode` returns for NumPy.

    Raises:
        DataError: If names repeat, a column is no feature, categories are not frozen yet, or groups share a column
            or name one that is not there.

    >>> age = Column("age", dtype="int64")
    >>> smokes = Column("smokes", Kind.CATEGORICAL, Role.SENSITIVE, ("no", "yes"), dtype="string")
    >>> ill = Column("ill", Kind.CATEGORICAL, Role.TARGET, (False, True), dtype="bool")
    >>> schema = Schema((age, smokes), ill, Native.NUMPY)
    >>> schema.decode(np.array([[31.0, 1.0], [47.0, 0.0]]))
    array([[31, 'yes'],
           [47, 'no']], dtype=object)
    >>> schema.encode(np.array([[52, "no"]], dtype=object))
    array([[52.,  0.]])
    """

    columns: tuple[Column, ...]
    target: Column
    native: Native = Native.NUMPY
    one_hot: tuple[OneHot, ...] = field(default=(), repr=False)
    array: ArrayForm = field(default_factory=ArrayForm, repr=False)

    __repr__ = shapes

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "native", Native(self.native))
        object.__setattr__(self, "one_hot", tuple(self.one_hot))
        if not self.columns:
            raise DataError("a schema needs at least one feature column, got none; add one.")
        names = {column.name for column in self.columns}
        if len(names) < len(self.columns):
            twice = repeated(column.name for column in self.columns)
            raise DataError(f"a schema has {twice}; rename one, names must be unique.")
        for column in self.columns:
            _require_frozen_feature(column)
        if self.target.role is not Role.TARGET:
            raise DataError(f"the target {self.target.name!r} has role {self.target.role}; give it the role target.")
        if self.target.name in names:
            raise DataError(
                f"the target {self.target.name!r} is also a feature, so the model would see what it predicts; "
                "remove it from the features."
            )
        if self.target.is_categorical and (not self.target.categories or None in self.target.categories):
            raise DataError(
                f"target {self.target.name!r}: classes must be known and none may be missing (None); list "
                "the classes, or drop rows without a label."
            )
        if self.array.shape is not None and math.prod(self.array.shape) != len(self.columns):
            raise DataError(
                f"a record of shape {self.array.shape} has {math.prod(self.array.shape)} entries, but the schema has "
                f"{len(self.columns)} columns; give one for each entry."
            )
        self._require_groups()

    @property
    def task(self) -> Task:
        """Classification if the target has classes, else regression."""
        return Task.CLASSIFICATION if self.target.is_categorical else Task.REGRESSION

    @property
    def classes(self) -> tuple[Value, ...]:
        """The original label values; label code c stands for `classes[c]`. Empty for regression."""
        return self.target.categories

    @property
    def n_features(self) -> int:
        """Number of columns that the model sees, d."""
        return len(self.columns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features, in model order."""
        return tuple(column.name for column in self.columns)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """Names of the features, and of the one-hot groups, marked for attribute inference."""
        columns: tuple[Column | OneHot, ...] = (*self.columns, *self.one_hot)
        return tuple(column.name for column in columns if column.role is Role.SENSITIVE)

    def group(self, name: str) -> OneHot | None:
        """The one-hot group of that name, or ``None``."""
        return next((group for group in self.one_hot if group.name == name), None)

    @cached_property
    def categorical(self) -> npt.NDArray[np.bool_]:
        """Bool [d]: True where the matrix holds codes of categories (categorical and ordinal columns)."""
        return _read_only(np.array([column.is_categorical for column in self.columns], dtype=bool))

    @cached_property
    def n_categories(self) -> npt.NDArray[np.int64]:
        """Int [d]: number of categories of each column, 0 for numeric ones."""
        return _read_only(np.array([len(column.categories) for column in self.columns], dtype=np.int64))

    def index(self, name: str, setting: str = "") -> int:
        """The place of the feature called `name` in the matrix; a `setting` that named it begins what is said of it.

        Raises:
            DataError: If there is none; the message names the closest one.
        """
        if name in self._places:
            return self._places[name]
        where = f"{setting}: " if setting else ""
        if name == self.target.name:
            raise DataError(f"{where}{name!r} is the target, not a feature; ask for one of the features.")
        raise DataError(f"{where}there is no feature called {name!r}; {closest_column(name, self.names)}")

    def decode(self, features: npt.ArrayLike) -> Any:
        """The table that a model is asked with, for a matrix of encoded rows; row i out belongs to row i in.

        Args:
            features: Float [m, d]: quantities, and codes of categories. Rows may be made up (attribute inference
                asks about people who do not exist), so an integer column that holds a value which is not whole
                comes back as floats rather than rounded.

        Returns:
            A table of type `native`, columns in model order. For NumPy, a matrix: `features` itself if all
            columns are numeric, float64 if the categories are numbers too, else an object array of the original
            values; all in the form of `array`, as far as its type can hold the numbers. Nullable and Arrow-backed
            pandas types come back as the plain type of the same name, and numbers that were kept as objects as
            numbers.

        Raises:
            DataError: If the shape is not [m, d] or a code is not that of a category.
            MissingExtra: If the table type's package is not installed.
        """
        return _decoding.decode(self, features)

    def plain_rows(self, features: npt.ArrayLike) -> list[list[Value]]:
        """The rows of `decode` as lists of plain values, whatever the table type; None stands for what is missing.

        They can be written as JSON, in which numbers keep all digits.

        Args:
            features: Float [m, d], as for `decode`.

        Raises:
            DataError: If a code is not that of a category.
        """
        return _decoding.plain_rows(self, features)

    def decode_labels(self, labels: npt.ArrayLike) -> npt.NDArray[Any]:
        """The original label values for codes [m]; for regression, the labels themselves as float64.

        Raises:
            DataError: If a code is not that of a class.
        """
        return _decoding.decode_labels(self, labels)

    def encode(self, table: Any) -> npt.NDArray[np.float64]:
        """The matrix [m, d] for a table with this schema's columns; row i out belongs to row i in.

        Columns of a table are found by name, whatever their order; those of a plain array by position. The target
        may be among the columns of a table and is passed over.

        Raises:
            DataError: If columns are missing or unknown, a numeric column holds text, missing or infinite values,
                or a categorical column holds a value that is not among its categories.
        """
        return _encoding.encode(self, _tables.as_table(table, names=self.names))

    def encode_labels(self, labels: Any) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
        """Int64 codes [m] of original label values, or for regression float64 [m].

        Raises:
            DataError: If a label is missing, or is no class (a number, for regression).
        """
        return _encoding.encode_labels(self, _tables.as_column(labels, self.target.name))

    def as_codes(self) -> Schema:
        """The same columns with codes 0, 1, 2, … in place of the categories, as a NumPy matrix.

        A learner that wants numbers only, such as categorical naive Bayes, is given the matrix as it is.
        """
        columns = tuple(
            dataclasses.replace(column, categories=tuple(range(len(column.categories))), dtype="int64", dates=False)
            if column.is_categorical
            else dataclasses.replace(column, dtype="float64")
            if column.is_time
            else column
            for column in self.columns
        )
        return dataclasses.replace(self, columns=columns, native=Native.NUMPY, array=ArrayForm())

    @property
    def form(self) -> str:
        """In what form tables are handed to a model: their type, and what is special about arrays."""
        return self.native.value if self.array == ArrayForm() else f"{self.native.value} {self.array}"

    @cached_property
    def codes_are_values(self) -> bool:
        """Whether the matrix is already what the columns hold: categories, if any, are the numbers 0, 1, 2, ..."""
        return not any(column.is_time for column in self.columns) and all(
            not column.is_categorical
            or all(type(v) in (int, float) and v == code for code, v in enumerate(column.categories))
            for column in self.columns
        )

    def _require_groups(self) -> None:
        group_of: dict[str, str] = {}
        for group in self.one_hot:
            if group.name in self._places or group.name in (self.target.name, *group_of.values()):
                raise DataError(f"one-hot group {group.name!r} has the name of another column or group; rename it.")
            for name in group.columns:
                if name not in self._places:
                    raise DataError(
                        f"one-hot group {group.name!r}: there is no feature called {name!r}; "
                        f"{closest_column(name, self.names)}"
                    )
                if name in group_of:
                    raise DataError(
                        f"column {name!r} belongs to the one-hot groups {group_of[name]!r} and {group.name!r}; groups "
                        "must not overlap."
                    )
                column = self.columns[self._places[name]]
                if column.role is Role.SENSITIVE:
                    raise DataError(
                        f"column {name!r} is sensitive and belongs to the one-hot group {group.name!r}; make the "
                        "group sensitive."
                    )
                if column.is_categorical and column.categories not in ((False, True), (0, 1)):
                    raise DataError(
                        f"column {name!r} of the one-hot group {group.name!r} holds categories, expected 0 and 1, or "
                        "true and false; turn it into numbers."
                    )
                group_of[name] = group.name

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}


def _require_frozen_feature(column: Column) -> None:
    if not column.is_feature:
        raise DataError(
            f"column {column.name!r} has role {column.role}; a schema's columns are features, so leave it out or "
            "give it the role feature or sensitive."
        )
    if column.is_categorical and not column.categories:
        raise DataError(
            f"column {column.name!r} is {column.kind} and has no categories yet; list them, or build the schema "
            "from records."
        )


def _read_only(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    array.flags.writeable = False
    return array
