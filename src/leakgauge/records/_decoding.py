"""From the matrix back to the table that a model knows."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from leakgauge.errors import DataError, MissingExtra
from leakgauge.records.columns import INTEGERS, TICKS_A_DAY, ArrayForm, Column, Hole, Kind, Native, Value

if TYPE_CHECKING:
    from types import ModuleType

    from leakgauge.records.schema import Schema

FloatVector = npt.NDArray[np.float64]


def decode(schema: Schema, features: npt.ArrayLike) -> Any:
    """The table of type `schema.native` for a matrix [m, d]."""
    matrix = np.asarray(features, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != schema.n_features:
        raise DataError(
            f"rows to decode must be a matrix of shape [rows, {schema.n_features}], got shape {matrix.shape}; pass "
            "one column per feature."
        )
    match schema.native:
        case Native.NUMPY:
            return _in_form(_to_numpy(schema, matrix), schema.array)
        case Native.PANDAS:
            return _to_pandas(schema, matrix)
        case Native.POLARS:
            return _to_polars(schema, matrix)
        case Native.PYARROW:
            return _to_pyarrow(schema, matrix)


def decode_labels(schema: Schema, labels: npt.ArrayLike) -> npt.NDArray[Any]:
    """Original label values [m] for codes [m]; for regression the labels as float64."""
    if not schema.target.is_categorical:
        return np.asarray(labels, dtype=np.float64)
    return as_array(schema.classes)[as_codes(schema.target, np.asarray(labels, dtype=np.float64))]


def plain_rows(schema: Schema, features: npt.ArrayLike) -> list[list[Value]]:
    """Rows [m][d] of plain values for a matrix [m, d]; None for a missing number."""
    matrix = np.asarray(features, dtype=np.float64)
    columns = [_values(column, matrix[:, j]).tolist() for j, column in enumerate(schema.columns)]
    gaps = np.isnan(matrix).any(axis=0)
    for j in np.flatnonzero(gaps):
        columns[j] = [None if value != value else value for value in columns[j]]
    return [list(row) for row in zip(*columns, strict=True)]


def as_codes(column: Column, numbers: FloatVector) -> npt.NDArray[np.int64]:
    """Codes [m] as integers, refused if one is not that of a category."""
    n = len(column.categories)
    valid = (numbers >= 0) & (numbers < n) & (numbers == np.floor(numbers))
    if not valid.all():
        row = int(np.argmin(valid))
        raise DataError(
            f"column {column.name!r}, row {row} (counting from 0): the number is not the code of a category, "
            f"expected a whole number from 0 to {n - 1}."
        )
    return numbers.astype(np.int64)


def as_array(values: Sequence[Value]) -> npt.NDArray[Any]:
    """Values as the array type that is natural for them: text, true/false, integers, floats, else objects."""
    kinds = {type(value) for value in values}
    cut = any(isinstance(value, str) and value.endswith("\0") for value in values)  # as NumPy's own text would be
    if kinds in ({str}, {bool}, {int}, {float}, {int, float}) and not cut:
        return np.array(values)
    return _as_objects(values)


def _as_objects(values: Sequence[Value]) -> npt.NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _to_numpy(schema: Schema, matrix: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    if schema.codes_are_values and _all_are_codes(schema, matrix):  # numbers alone, or categories 0, 1, 2, …
        return matrix
    holes = [_hole(column) for column in schema.columns]
    decoded = [
        _values(column, matrix[:, j], holes[j]) for j, column in enumerate(schema.columns) if column.is_categorical
    ]
    if len(decoded) < schema.n_features:
        decoded = [_values(column, matrix[:, j], holes[j]) for j, column in enumerate(schema.columns)]
    kinds = {values.dtype.kind for values in decoded}
    if kinds <= set("iuf"):
        return np.column_stack(decoded).astype(np.float64)
    if kinds == {"b"}:
        return np.column_stack(decoded)
    table = np.empty(matrix.shape, dtype=object)
    for j, values in enumerate(decoded):
        table[:, j] = values
    return table


def _all_are_codes(schema: Schema, matrix: npt.NDArray[np.float64]) -> bool:
    """Whether categorical columns hold codes of their categories: what :func:`as_codes` asks of each, at once."""
    valid = (matrix >= 0) & (matrix < schema.n_categories) & (matrix == np.floor(matrix))
    return bool((valid | ~schema.categorical).all())


def _in_form(table: npt.NDArray[Any], form: ArrayForm) -> Any:
    table = _in_dtype(table, np.dtype(form.dtype))
    if form.sparse is not None:
        return getattr(_import("scipy.sparse"), form.sparse)(table)
    return table if form.shape is None else table.reshape(-1, *form.shape)


def _in_dtype(table: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The table with numbers, or text, of a type; as it is where that type cannot hold them."""
    if table.dtype == dtype or (table.dtype.kind != "f" and dtype.kind != "U"):
        return table
    if dtype.kind in "iu" and not _fit(table, dtype):
        return table
    with np.errstate(over="ignore"):
        return table.astype(dtype)


def _values(column: Column, numbers: FloatVector, hole: object = None) -> npt.NDArray[Any]:
    """Original values [m] of one column; `hole` stands for a missing one."""
    if column.is_categorical:
        # Texts as objects: NumPy's own text takes for each the memory of the longest.
        values = _as_objects(column.categories) if column.dtype == "string" else as_array(column.categories)
        if hole is not None and None in column.categories:
            values[column.categories.index(None)] = hole
        return values[as_codes(column, numbers)]
    if column.is_time:
        return _times(numbers, column.unit)
    if column.dtype == "bool":
        return numbers.astype(bool) if np.isin(numbers, (0.0, 1.0)).all() else numbers
    if column.dtype in INTEGERS:
        return numbers.astype(column.dtype) if _fit(numbers, np.dtype(column.dtype)) else numbers
    return numbers.astype("float32" if column.dtype == "float32" else "float64")


def _times(days: FloatVector, unit: str) -> npt.NDArray[np.datetime64]:
    """Points of time [m] counted in a unit, to the microsecond until 2059, NaT where missing."""
    known = "us" if unit == "ns" else unit
    with np.errstate(invalid="ignore"):
        ticks = np.round(days * TICKS_A_DAY[known])
        times = np.where(np.isnan(ticks), 0, ticks).astype(np.int64).astype(f"datetime64[{known}]")
    times[np.isnan(days)] = np.datetime64("NaT")
    return times.astype(f"datetime64[{unit}]")


def _fit(numbers: FloatVector, dtype: np.dtype[Any]) -> bool:
    # made-up rows need not be whole: handing 2.5 on is better than asking about another person
    limits = np.iinfo(dtype)
    return bool(np.all((numbers == np.floor(numbers)) & (numbers >= limits.min) & (numbers <= limits.max)))


def _to_pandas(schema: Schema, matrix: npt.NDArray[np.float64]) -> Any:
    pandas = _import("pandas")
    if all(column.dtype == "float64" and not column.is_categorical for column in schema.columns):
        return pandas.DataFrame(matrix, columns=list(schema.names))
    return pandas.DataFrame(
        {column.name: _pandas_series(pandas, column, matrix[:, j]) for j, column in enumerate(schema.columns)}
    )


def _pandas_series(pandas: ModuleType, column: Column, numbers: FloatVector) -> Any:
    if column.is_categorical and column.dtype in ("categorical", "enum"):
        levels, codes = _levels(column, numbers)
        return pandas.Categorical.from_codes(codes, levels, ordered=column.kind is Kind.ORDINAL)
    values = _values(column, numbers, _hole(column))
    if column.is_time:
        series = pandas.Series(values)
        return series if column.time_zone is None else series.dt.tz_localize("UTC").dt.tz_convert(column.time_zone)
    return pandas.Series(values, dtype=_pandas_dtype(pandas, column))


def _hole(column: Column) -> object:
    """What stands for a missing category in tables of pandas and NumPy."""
    if column.hole is Hole.NA:
        return _import("pandas").NA
    return None if column.hole is Hole.NONE else float("nan")


def _pandas_dtype(pandas: ModuleType, column: Column) -> Any:
    if column.dtype == "object" and column.is_categorical:
        return object
    if not column.is_categorical:
        return None
    if column.dtype == "string":  # not left to pandas, which would take missing values alone for numbers
        if column.hole is Hole.NA:
            return pandas.StringDtype()
        return pandas.Series(["text"]).dtype
    if None not in column.categories:
        return column.dtype
    # NumPy's bool and integers have no missing value; pandas' own do, and are called Int64, UInt8, boolean
    return {"bool": "boolean"}.get(column.dtype, column.dtype.replace("int", "Int").replace("uI", "UI"))


def _to_polars(schema: Schema, matrix: npt.NDArray[np.float64]) -> Any:
    polars = _import("polars")
    return polars.DataFrame([_polars_series(polars, column, matrix[:, j]) for j, column in enumerate(schema.columns)])


def _polars_series(polars: ModuleType, column: Column, numbers: FloatVector) -> Any:
    values = _values(column, numbers)
    if column.is_time:
        series = polars.Series(column.name, values)
        if column.dtype == "date":
            return series.cast(polars.Date)
        zone = column.time_zone
        return series if zone is None else series.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    if not column.is_categorical:
        series = polars.Series(column.name, values)
        if column.hole is not Hole.NONE or values.dtype.kind != "f":
            return series
        whole = column.dtype in INTEGERS and _fit(numbers[~np.isnan(numbers)], np.dtype(column.dtype))
        series = series.fill_nan(None)
        return series.cast(_polars_dtype(polars, column)) if whole else series
    return polars.Series(column.name, values.tolist(), dtype=_polars_dtype(polars, column))


def _polars_dtype(polars: ModuleType, column: Column) -> Any:
    match column.dtype:
        case "enum":
            return polars.Enum([value for value in column.categories if value is not None])
        case "categorical":
            return polars.Categorical
        case "bool":
            return polars.Boolean
        case "string" | "object":
            return polars.String if _is_text(column) else None
        case number:
            return getattr(polars, number.replace("uint", "UInt").replace("int", "Int").replace("float", "Float"))


def _to_pyarrow(schema: Schema, matrix: npt.NDArray[np.float64]) -> Any:
    pyarrow = _import("pyarrow")
    return pyarrow.table(
        {column.name: _arrow_array(pyarrow, column, matrix[:, j]) for j, column in enumerate(schema.columns)}
    )


def _arrow_array(pyarrow: ModuleType, column: Column, numbers: FloatVector) -> Any:
    if column.is_categorical and column.dtype in ("categorical", "enum"):
        levels, codes = _levels(column, numbers)
        return pyarrow.DictionaryArray.from_arrays(
            pyarrow.array(codes.astype(np.int32), mask=codes < 0),
            pyarrow.array(levels),
            ordered=column.kind is Kind.ORDINAL,
        )
    values = _values(column, numbers)
    if column.is_time:
        array = pyarrow.array(values)
        kind = pyarrow.date32() if column.dtype == "date" else pyarrow.timestamp(column.unit, tz=column.time_zone)
        return array.cast(kind, safe=False)  # of a made-up date the hours are lost
    if not column.is_categorical:
        return pyarrow.array(values, from_pandas=column.hole is Hole.NONE)
    if column.dtype in ("string", "object"):
        return pyarrow.array(values.tolist(), type=pyarrow.string() if _is_text(column) else None)
    return pyarrow.array(values.tolist(), type=pyarrow.type_for_alias(column.dtype))


def _is_text(column: Column) -> bool:
    return all(value is None or isinstance(value, str) for value in column.categories)


def _levels(column: Column, numbers: FloatVector) -> tuple[list[Value], npt.NDArray[np.int64]]:
    """The categories without the missing one, and codes into them with -1 for missing."""
    levels: list[Value] = [value for value in column.categories if value is not None]
    place: dict[Value, int] = {value: code for code, value in enumerate(levels)}
    codes = np.array([place.get(value, -1) for value in column.categories], dtype=np.int64)
    return levels, codes[as_codes(column, numbers)]


def _import(package: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingExtra(
            f"the model is queried with {package} tables, but {package} is not installed; run: pip install {package}"
        ) from None
