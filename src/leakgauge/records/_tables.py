"""The edge: any table or array in, its columns as NumPy arrays out.

narwhals speaks to pandas, Polars and Arrow alike, and Arrow carries each column across, so that one code path makes
the same numbers from all of them. Nothing here knows what a column means.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from leakgauge.errors import DataError
from leakgauge.escaping import shapes
from leakgauge.records._dates import in_days
from leakgauge.records._messages import counted, repeated, shortened
from leakgauge.records.columns import FLOATS, INTEGERS, TIMES, Hole, Native, Value, plain_value

if TYPE_CHECKING:
    import narwhals as nw

ARRAY_FORM = "leakgauge.array"
"""Of the metadata of an Arrow table, the entry that says from what array it was made."""

MAX_DENSE_BYTES = 2**31
"""Of a sparse matrix with its zeros, in double precision."""

FIRST_INEXACT = 2.0**53  # from here on float64 cannot tell neighbouring whole numbers apart


@dataclass(frozen=True)
class RawColumn:
    """One column as it came.

    Attributes:
        name: Its name.
        values: NumPy [n], or a narwhals series.
        place: Which table it stands in, for messages.
    """

    name: str
    values: Any
    place: str = "the table"

    __repr__ = shapes

    def __len__(self) -> int:
        return len(self.values)

    @property
    def where(self) -> str:
        """How messages name it."""
        return f"column {self.name!r} of {self.place}"

    @cached_property
    def dtype(self) -> str:
        """Its type in the neutral words of `columns.DTYPES`, or "null" if every value is missing.

        Raises:
            DataError: If the values are neither numbers, nor text, nor true/false, nor categories.
        """
        return _array_dtype(self) if isinstance(self.values, np.ndarray) else _series_dtype(self)

    @cached_property
    def hole(self) -> Hole:
        """What stands for a missing value: of pandas and NumPy the first there is, of others null if there is one."""
        if _knows_null(self.values):
            return Hole.NONE if self.values.null_count() else Hole.NAN
        native = self.values if isinstance(self.values, np.ndarray) else self.values.to_native()
        if _holds_objects(self.values):
            first = next((value for value in native if _is_missing(value)), math.nan)
            return Hole.NONE if first is None else Hole.NAN if isinstance(first, float) else Hole.NA
        na_value = getattr(getattr(native, "dtype", None), "na_value", math.nan)
        return Hole.NAN if isinstance(na_value, float) else Hole.NA

    @property
    def unit(self) -> str:
        """In which points of time are counted; microseconds where nothing says so."""
        return str(getattr(self.values.dtype, "time_unit", "us"))

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers (true/false are categories, not numbers)."""
        return self.dtype in INTEGERS or self.dtype in FLOATS

    @property
    def is_time(self) -> bool:
        """Whether it holds points of time."""
        return self.dtype.partition("[")[0] in TIMES

    def numbers(self) -> npt.NDArray[np.float64]:
        """Its values as float64 [n], NaN where missing; of points of time the days since 1970.

        Raises:
            DataError: If it holds text, or whole numbers too large for float64 to tell apart.
        """
        if len(self) == 0 or self.dtype == "null":
            return np.full(len(self), math.nan)
        if self.is_time:
            return in_days(_arrow(self.values))
        if not (self.is_number or self.dtype == "bool"):
            raise DataError(
                f"{self.where} is to be numeric but holds {self._described()}; declare it "
                "categorical or turn it into numbers."
            )
        numbers = _as_float(self.values)
        if self.dtype in INTEGERS and np.nanmax(np.abs(numbers), initial=0.0) >= FIRST_INEXACT:
            raise DataError(
                f"{self.where} holds whole numbers of 2**53 or more, which cannot be distinguished as quantities; such "
                "columns are usually identifiers: ignore it or name it as the id column."
            )
        return numbers

    def distinct(self) -> tuple[npt.NDArray[np.int64], list[Value]]:
        """Which distinct value each row holds (int [n]), and the distinct values as plain Python values.

        Missing values of every sort (None, NaN, NA) become one value, None.

        Raises:
            DataError: If a value is no plain value (a date, a list, …).
        """
        _ = self.dtype  # refuses lists, dates and the like
        raw_codes, raw_values = self._raw_distinct()
        places: dict[Value, int] = {}
        place_of = np.array(
            [places.setdefault(self._plain(value), len(places)) for value in raw_values], dtype=np.int64
        )
        return place_of[raw_codes] if len(raw_codes) else raw_codes, list(places)

    def declared_categories(self) -> tuple[Value, ...] | None:
        """The categories in the order that the column's own type declares, if it declares one.

        A pandas categorical and a Polars Enum do; a Polars Categorical and an Arrow dictionary merely list what
        has come along, in the order in which it came.
        """
        if self.dtype not in ("categorical", "enum") or isinstance(self.values, np.ndarray):
            return None
        native = self.values.to_native()
        if hasattr(native, "cat") and hasattr(native.cat, "categories"):  # pandas
            return tuple(self._plain(value) for value in native.cat.categories)
        if self.dtype == "enum":
            return tuple(self.values.dtype.categories)
        return None

    def _described(self) -> str:
        """What it holds instead of numbers, and where first."""
        codes, values = self.distinct()
        texts = [place for place, value in enumerate(values) if isinstance(value, str)]
        if not texts:
            return "categories"
        row = int(np.flatnonzero(np.isin(codes, texts))[0])
        what = "text" if len(texts) == len(values) - (None in values) else "mixed values"
        return f"{what} (first in row {row}, counting from 0)"

    def _plain(self, value: object) -> Value:
        return None if _is_missing(value) else plain_value(value, self.name)

    def _raw_distinct(self) -> tuple[npt.NDArray[np.int64], Sequence[object]]:
        if not _holds_objects(self.values):
            return _arrow_distinct(self.values)
        places: dict[Value, int] = {}
        codes = [places.setdefault(self._plain(value), len(places)) for value in self.values]
        return np.array(codes, dtype=np.int64), list(places)


@dataclass(frozen=True)
class RawTable:
    """A table as it came.

    Attributes:
        names: Names of its columns.
        n_rows: Number of rows.
        native: The type of the table.
        data: A NumPy matrix, or a narwhals data frame.
        place: Which table it is, for messages.
        shape: Of one record of an array, where it is no row of columns.
        sparse: The class of a sparse matrix, of which `data` is dense.
        entries: The type of the entries of an array.
    """

    names: tuple[str, ...]
    n_rows: int
    native: Native
    data: Any
    place: str = "the table"
    shape: tuple[int, ...] | None = None
    sparse: str | None = None
    entries: np.dtype[Any] | None = None

    __repr__ = shapes

    @property
    def described(self) -> str:
        """In what form it was given, for messages."""
        shape = (self.n_rows, *((len(self.names),) if self.shape is None else self.shape))
        return f"{f'a {self.sparse}' if self.sparse else 'an array'} of shape {shape}"

    def column(self, name: str) -> RawColumn:
        """The column of that name."""
        if isinstance(self.data, np.ndarray):
            return RawColumn(name, self.data[:, self._places[name]], self.place)
        return RawColumn(name, self.data[name], self.place)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @property
    def is_numeric_matrix(self) -> bool:
        """Whether it is a NumPy matrix of numbers."""
        return isinstance(self.data, np.ndarray) and self.data.dtype.kind in "iuf"


def is_frame(table: object) -> bool:
    """Whether narwhals knows it as a data frame."""
    import narwhals as nw

    return isinstance(_narwhalified(table), nw.DataFrame)


def as_table(table: Any, *, names: Sequence[str] | None = None, place: str = "the table") -> RawTable:
    """A data frame, or an array [n, d] whose columns are called `names` (by default x0, x1, …).

    Of an array [n, ...] of another shape the columns are the entries of a record in C order; of texts [n] there is one
    column. A sparse matrix must be in CSR form.

    Raises:
        DataError: If it is none of these, or its column names repeat or are no text, or a sparse matrix is too large.
    """
    if is_sparse(table):
        return _of_sparse(table, names, place)
    _require_unique_columns(table, place)
    if not is_frame(table):
        return _as_matrix(table, names, place)
    frame = _narwhalified(table)
    _require_text_names(frame.columns, place)
    return RawTable(tuple(frame.columns), len(frame), _native_of(frame), frame, place, **_form_of_array(frame, place))


def as_column(values: Any, name: str, place: str = "the table") -> RawColumn:
    """A series, a list, or an array [n].

    Raises:
        DataError: If it is not one-dimensional.
    """
    import narwhals as nw

    known = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(known, nw.Series):
        return RawColumn(name, known, place)
    array = values.toarray() if is_sparse(values) else _as_array(values)
    if array.ndim != 1:
        remedy = "pass a one-dimensional array"
        if array.ndim == 2 and array.shape[1] > 1:
            remedy = (
                "an audit holds the predictions of one label against the limits, so audit each by itself: "
                "lg.audit(model.estimators_[0], train=(X, Y[:, 0]), holdout=(X_holdout, Y_holdout[:, 0])) for a "
                "MultiOutputClassifier or MultiOutputRegressor; for other models give lambda X: model.predict(X)[:, 0] "
                "in place of model.estimators_[0]"
            )
        raise DataError(
            f"{name!r} of {place} must be one value per row, got an array of shape {array.shape}; {remedy}."
        )
    return RawColumn(name, array, place)


def is_sparse(table: object) -> bool:
    """Whether it is a sparse matrix or array of SciPy."""
    return hasattr(table, "toarray") and hasattr(table, "tocsr")


def _narwhalified(table: Any) -> Any:
    import narwhals as nw

    return nw.from_native(table, eager_only=True, pass_through=True)


def _native_of(frame: nw.DataFrame[Any]) -> Native:
    try:
        return Native(frame.implementation.value)
    except ValueError:
        raise DataError(
            f"tables of {frame.implementation} are not supported, expected pandas, Polars, Arrow or NumPy; "
            "convert the table to one of these."
        ) from None


def _require_unique_columns(table: Any, place: str) -> None:
    # narwhals refuses repeated names in words of its own, so look before it does; Polars cannot have any
    framed = hasattr(table, "iloc") and hasattr(table, "columns")
    names = list(table.columns) if framed else list(getattr(table, "column_names", ()))
    if len({str(name) for name in names}) < len(names):
        raise DataError(f"{place} has {repeated(str(name) for name in names)}; rename one, names must be unique.")


def _require_text_names(names: Sequence[object], place: str) -> None:
    wrong = [name for name in names if not isinstance(name, str) or not name]
    if wrong:
        raise DataError(
            f"column names must be non-empty text, but {place} has {counted(len(wrong), 'column')} without "
            "such a name; rename the columns."
        )


def with_form(table: Any, shape: tuple[int, ...] | None, entries: np.dtype[Any]) -> Any:
    """An Arrow table of the entries of an array, which says of which: `as_table` gives it that form."""
    form = json.dumps({"shape": shape, "dtype": entries.str})
    return table.replace_schema_metadata({**(table.schema.metadata or {}), ARRAY_FORM: form})


def _form_of_array(frame: nw.DataFrame[Any], place: str) -> dict[str, Any]:
    """What :func:`with_form` wrote."""
    metadata = getattr(getattr(frame.to_native(), "schema", None), "metadata", None) or {}
    if not isinstance(metadata, Mapping) or ARRAY_FORM.encode() not in metadata:
        return {}
    try:
        form = json.loads(metadata[ARRAY_FORM.encode()])
        shape, entries = form["shape"], np.dtype(form["dtype"])
        return {"shape": None if shape is None else tuple(int(side) for side in shape), "entries": entries}
    except (ValueError, TypeError, KeyError):
        raise DataError(f"{place} has metadata {ARRAY_FORM!r} that cannot be read; write the file again.") from None


def _as_matrix(table: Any, names: Sequence[str] | None, place: str) -> RawTable:
    array = _as_array(table)
    shape = None if array.ndim == 2 else array.shape[1:]
    if array.ndim == 0 or (array.ndim == 1 and not _is_text(array)):
        raise DataError(
            f"{place} must be a data frame (pandas, Polars, Arrow) or an array of shape [rows, columns], got "
            f"{type(table).__name__} of shape {array.shape}; reshape it, or call collect() on a lazy frame."
        )
    array = array.reshape(len(array), math.prod(array.shape[1:]))
    names = _names_of(array, names, place)
    return RawTable(names, len(array), Native.NUMPY, array, place, shape, entries=array.dtype)


def _of_sparse(table: Any, names: Sequence[str] | None, place: str) -> RawTable:
    """A sparse matrix as the matrix that it stands for, where that is not too large."""
    if table.format != "csr" or table.ndim != 2:
        raise DataError(f"{place} is sparse in {table.format.upper()} form; call .tocsr(), as CSR is supported.")
    n, d = table.shape
    if 8 * n * d > MAX_DENSE_BYTES:
        raise DataError(
            f"{place} has {n:,} rows and {d:,} columns, which an audit holds in {8 * n * d / 2**30:.1f} GiB of memory "
            f"(8 bytes for each, zeros too), more than {MAX_DENSE_BYTES / 2**30:g} GiB; give fewer records or columns."
        )
    if n_zeros := int((table.data == 0).sum()):
        raise DataError(
            f"{place} stores {counted(n_zeros, 'zero')}, which some models take for values and others do not; call "
            ".eliminate_zeros() before training and auditing."
        )
    kind = "csr_array" if type(table).__name__ == "csr_array" else "csr_matrix"
    array = table.toarray()
    names = _names_of(array, names, place)
    return RawTable(names, n, Native.NUMPY, array, place, sparse=kind, entries=array.dtype)


def _is_text(array: npt.NDArray[Any]) -> bool:
    return array.dtype.kind == "U" or (array.dtype.kind == "O" and all(isinstance(value, str) for value in array))


def _names_of(array: npt.NDArray[Any], names: Sequence[str] | None, place: str) -> tuple[str, ...]:
    try:
        names = tuple(names) if names is not None else tuple(f"x{j}" for j in range(array.shape[1]))
    except TypeError:
        raise DataError(f"{place}: names must be a list of texts, one for each column.") from None
    if len(names) != array.shape[1]:
        raise DataError(
            f"{place} has {counted(array.shape[1], 'column')}, expected {len(names)}: {shortened(names)}; "
            "pass the columns in this order."
        )
    _require_text_names(names, place)
    if len(set(names)) < len(names):
        raise DataError(f"{place} has {repeated(names)}; rename one, names must be unique.")
    return names


def _as_array(values: Any) -> npt.NDArray[Any]:
    if hasattr(values, "toarray"):
        raise DataError("sparse matrices of this kind are not supported; use scipy.sparse, or call .toarray() first.")
    if isinstance(values, list | tuple) and values and all(isinstance(value, np.ndarray) for value in values):
        shapes_of_all = {value.shape for value in values}
        if len(shapes_of_all) == 1 and all(value.dtype.kind in "biuf" for value in values):
            return np.stack(values)
    if isinstance(values, list | tuple):  # as objects: NumPy would turn [1, "a"] into text
        try:
            array = np.array(values, dtype=object)
        except ValueError:
            array = np.empty(0, dtype=object)
        if array.ndim == 1 and any(isinstance(value, list | tuple | np.ndarray) for value in values):
            raise DataError("the rows are not equally long; every row needs one value per column.")
        return array
    try:
        return np.asarray(values)
    except (TypeError, RuntimeError) as error:  # such as a tensor on an accelerator
        raise DataError(
            f"a {type(values).__name__} cannot be read as an array ({type(error).__name__}); give a NumPy array."
        ) from None


def _holds_objects(values: Any) -> bool:
    if isinstance(values, np.ndarray):
        return bool(values.dtype.kind == "O")
    return str(getattr(values.to_native(), "dtype", "")).lower() == "object"


def _knows_null(values: Any) -> bool:
    """Whether it is of a table that has null beside NaN."""
    import narwhals as nw

    return isinstance(values, nw.Series) and not values.implementation.is_pandas_like()


def _array_dtype(column: RawColumn) -> str:
    dtype: np.dtype[Any] = column.values.dtype
    match dtype.kind:
        case "i" | "u":
            return dtype.name
        case "f":
            return "float32" if dtype.itemsize == 4 else "float64"
        case "b":
            return "bool"
        case "U" | "T":
            return "string"
        case "O":
            return _object_dtype(column)
    raise _unsupported(column, dtype.name)


def _series_dtype(column: RawColumn) -> str:
    import narwhals as nw

    if _holds_objects(column.values):
        return _object_dtype(column)
    dtype = column.values.dtype
    if dtype.is_integer() and str(dtype).lower() in INTEGERS:
        return str(dtype).lower()
    if dtype.is_float() or dtype.is_decimal():
        return "float32" if dtype == nw.Float32 else "float64"
    if isinstance(dtype, nw.Datetime):
        return f"datetime[{dtype.time_zone}]" if dtype.time_zone else "datetime"
    for known, name in (
        (nw.Date, "date"),
        (nw.Boolean, "bool"),
        (nw.String, "string"),
        (nw.Enum, "enum"),
        (nw.Categorical, "categorical"),
    ):
        if dtype == known:
            return name
    if len(column) and column.values.is_null().all():
        return "null"
    raise _unsupported(column, str(dtype))


def _object_dtype(column: RawColumn) -> str:
    kinds = {type(value) for value in column.values if not _is_missing(value)}
    if len(column) and not kinds:
        return "null"
    if kinds and all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        return "int64"
    if kinds and all(issubclass(kind, int | float | np.number) and kind is not bool for kind in kinds):
        return "float64"
    return "object"


def _unsupported(column: RawColumn, dtype: str) -> DataError:
    kind = dtype.partition("(")[0]  # what follows may be names of fields, which may be anything
    return DataError(
        f"{column.where} is of type {kind}, expected numbers, text, true/false or categories; turn it into one of "
        "these (a date into a number of days, say) or ignore it."
    )


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def _as_float(values: Any) -> npt.NDArray[np.float64]:
    if _holds_objects(values):
        return np.array([_number(value) for value in values], dtype=np.float64)
    if isinstance(values, np.ndarray):
        return values.astype(np.float64)
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow = pc.cast(_arrow(values), pa.float64(), safe=False)
    return np.asarray(arrow.to_numpy(zero_copy_only=False), dtype=np.float64)


def _number(value: Any) -> float:
    """A number of a column of objects: NaN for a missing one, and infinite beyond what a float can hold."""
    if _is_missing(value):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _arrow(values: Any) -> Any:
    import pyarrow as pa

    arrow = pa.array(values, from_pandas=True) if isinstance(values, np.ndarray) else values.to_arrow()
    if isinstance(arrow, pa.ChunkedArray):
        arrow = arrow.combine_chunks() if arrow.num_chunks != 1 else arrow.chunk(0)
    return arrow.dictionary_decode() if pa.types.is_dictionary(arrow.type) else arrow


def _arrow_distinct(values: Any) -> tuple[npt.NDArray[np.int64], list[object]]:
    import pyarrow.compute as pc

    encoded = pc.dictionary_encode(_arrow(values), null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary.to_pylist()
