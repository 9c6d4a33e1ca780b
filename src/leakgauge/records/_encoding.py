"""From a table to the matrix: codes for categories, float64 for quantities, and an error for all else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from leakgauge.errors import DataError
from leakgauge.records._messages import closest_column, counted, shortened
from leakgauge.records._tables import FIRST_INEXACT, RawColumn, RawTable
from leakgauge.records.columns import Value

if TYPE_CHECKING:
    from leakgauge.records.schema import Schema


def encode(schema: Schema, table: RawTable) -> npt.NDArray[np.float64]:
    """The matrix [n, d] of a table that has exactly the schema's columns (and perhaps the target)."""
    require_columns(schema.names, table, passed_over=schema.target.name)
    return matrix(schema, table)


def matrix(schema: Schema, table: RawTable) -> npt.NDArray[np.float64]:
    """The matrix [n, d] of a table that has all the schema's columns, and perhaps others."""
    if table.is_numeric_matrix and table.names == schema.names and not schema.categorical.any():
        features = np.array(table.data, dtype=np.float64, order="C")
        _require_numbers(features, table)
        return features
    features = np.empty((table.n_rows, schema.n_features), dtype=np.float64)
    for j, column in enumerate(schema.columns):
        raw = table.column(column.name)
        features[:, j] = codes(raw, column.categories) if column.is_categorical else quantities(raw)
    return features


def encode_labels(schema: Schema, raw: RawColumn) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """Codes [n] of the classes, or the finite values [n] for regression."""
    if not schema.target.is_categorical:
        return finite_numbers(raw, missing="a record needs a label: drop these rows")
    require_no_missing_label(raw)
    return codes(raw, schema.classes)


def codes(raw: RawColumn, categories: Sequence[Value]) -> npt.NDArray[np.int64]:
    """The place of each value among the categories, int64 [n]."""
    value_of_row, values = raw.distinct()
    known = {category: code for code, category in enumerate(categories)}
    code_of_value = np.array([known.get(value, -1) for value in values], dtype=np.int64)
    codes_of_rows = code_of_value[value_of_row]
    if (codes_of_rows < 0).any():
        row = int(np.argmax(codes_of_rows < 0))
        raise DataError(
            f"{raw.where}, row {row} (counting from 0): the value is not among the known ones, of which there are "
            f"{len(categories)}; correct it, or declare the column's categories so that they include it."
        )
    return codes_of_rows


def quantities(raw: RawColumn) -> npt.NDArray[np.float64]:
    """The values [n] of a numeric column, NaN where missing, none infinite."""
    numbers = raw.numbers()
    _refuse(
        np.isinf(numbers), "infinite", raw.where, "correct them, drop these rows, or declare the column categorical"
    )
    return numbers


def finite_numbers(raw: RawColumn, missing: str) -> npt.NDArray[np.float64]:
    """The values [n] of a numeric column, none missing, none infinite."""
    numbers = raw.numbers()
    _refuse(np.isnan(numbers), "missing", raw.where, missing)
    _refuse(np.isinf(numbers), "infinite", raw.where, "correct them, or drop these rows")
    return numbers


def require_no_missing_label(raw: RawColumn) -> None:
    """Refuse a target with missing values."""
    value_of_row, values = raw.distinct()
    if None in values:
        is_missing = value_of_row == values.index(None)
        raise DataError(
            f"{raw.where}: {counted(int(is_missing.sum()), 'label')} missing, the first in row "
            f"{int(np.argmax(is_missing))} (counting from 0); a record needs a label: drop these rows."
        )


def require_columns(expected: Sequence[str], table: RawTable, passed_over: str | None = None) -> None:
    """Refuse a table that lacks a column, or has one that is not expected."""
    missing = [name for name in expected if name not in set(table.names)]
    extra = [name for name in table.names if name not in {*expected, passed_over}]
    if missing:
        known = any(name in table.names for name in expected)  # else its own may be no names at all
        hint = f" It has instead {shortened(extra)}: {closest_column(missing[0], extra)}" if extra and known else ""
        raise DataError(
            f"{table.place} lacks the {'column' if len(missing) == 1 else 'columns'} {shortened(missing)}; add what "
            f"is missing, or correct the names.{hint}"
        )
    if extra:
        raise DataError(
            f"{table.place} has {'a column' if len(extra) == 1 else 'columns'} that the model does not know, "
            f"{shortened(extra)}; remove what is too much. Expected are {shortened(expected)}."
        )


def _refuse(wrong: npt.NDArray[np.bool_], what: str, where: str, remedy: str) -> None:
    if wrong.any():
        raise DataError(
            f"{where}: {counted(int(wrong.sum()), 'value')} {what} of {len(wrong)}, the first in row "
            f"{int(np.argmax(wrong))} (counting from 0), expected finite numbers; {remedy}."
        )


def _require_numbers(features: npt.NDArray[np.float64], table: RawTable) -> None:
    """As `quantities` for every column, but looking at the columns one by one only if something is wrong."""
    inexact = table.data.dtype.kind in "iu" and np.abs(features).max(initial=0.0) >= FIRST_INEXACT
    if inexact or np.isinf(features).any():
        for name in table.names:
            quantities(table.column(name))
