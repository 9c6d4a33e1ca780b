"""Files to Arrow tables: CSV (plain, gzip, xz), Parquet, and NumPy archives. No file is ever unpickled."""

from __future__ import annotations

import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from leakgauge.errors import DataError
from leakgauge.records._messages import quoted
from leakgauge.records.columns import first_repeated

if TYPE_CHECKING:
    import pyarrow as pa


def read_table(path: str | Path) -> pa.Table:
    """Read a table of records; row i of the table is row i of the file.

    In CSV files the first line names the columns, an empty cell is a missing value, and everything else (`?`, `NA`,
    `null`) is a value. In NumPy archives, `X` [n, d] becomes columns x0, x1, … (or those that an array `names`
    gives), and `y` [n], if there is one, a column y; arrays of objects are refused, since reading them would run
    code from the file.

    Args:
        path: A file whose name ends in .csv, .csv.gz, .csv.xz, .parquet or .npz.

    Raises:
        DataError: If the file is missing, of another sort, damaged, empty, or has a line that cannot be read.
    """
    path = Path(path)
    _require_file(path)
    try:
        table = _reader(path)(path)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataError(
            f"{path} cannot be read: {error}; it may be damaged or cut short, so fetch it again."
        ) from error
    if table.num_rows == 0:
        raise DataError(f"{path} has no rows; a table needs one row per record.")
    if len(set(table.column_names)) < table.num_columns:
        repeated = first_repeated(table.column_names)
        raise DataError(f"{path} has two columns called {repeated!r}; rename one, names must be unique.")
    return table


def _require_file(path: Path) -> None:
    if path.is_file():
        return
    if path.is_dir():
        raise DataError(f"{path} is a folder, expected a file; name a file in it.")
    folder = path.parent
    if not folder.is_dir():
        raise DataError(f"{path} does not exist, nor does the folder {folder}; check the path.")
    near = get_close_matches(path.name, [entry.name for entry in folder.iterdir() if entry.is_file()])
    hint = f"did you mean {quoted(near)}?" if near else "check the path."
    raise DataError(f"{path} does not exist; {hint}")


def _reader(path: Path) -> Callable[[Path], Any]:
    for ending, reader in _READERS.items():
        if path.name.lower().endswith(ending):
            return reader
    raise DataError(f"{path} has an unknown ending, expected one of {', '.join(_READERS)}; convert or rename it.")


def _read_csv(path: Path) -> pa.Table:
    with _opened(path) as stream:
        if not stream.read(1):
            raise DataError(f"{path} is empty; expected a line of column names and one line per record.")
    with _opened(path) as stream:
        return _parsed_csv(stream, path)


def _opened(path: Path) -> IO[bytes]:
    match path.suffix.lower():
        case ".gz":
            return gzip.open(path)  # type: ignore[return-value]
        case ".xz":
            return lzma.open(path)
    return path.open("rb")


def _parsed_csv(stream: IO[bytes], path: Path) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    bad_rows: list[Any] = []

    def refuse(row: Any) -> str:
        bad_rows.append(row)
        return "error"

    try:
        table = csv.read_csv(
            stream,
            read_options=csv.ReadOptions(use_threads=False),  # only then are bad rows numbered
            parse_options=csv.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
            convert_options=csv.ConvertOptions(null_values=[""], strings_can_be_null=True),
        )
    except pa.ArrowInvalid as error:
        if bad_rows:  # Arrow's own message quotes the row, which may name a person
            row = bad_rows[0]
            raise DataError(
                f"{path}, line {row.number}: expected {row.expected_columns} cells as in the first line, found "
                f"{row.actual_columns}; correct the line, and quote cells that contain commas."
            ) from None
        raise DataError(f"{path} cannot be read as CSV: {_first_line(error)}; correct the file.") from None
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_binary(column.type):
            raise DataError(f"{path}, column {name!r}: the text is not UTF-8; save the file in that encoding.")
    return table


def _read_parquet(path: Path) -> pa.Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            return file.read()
    except pa.ArrowException as error:
        raise DataError(f"{path} cannot be read as Parquet: {_first_line(error)}; it may be damaged.") from None


def _read_npz(path: Path) -> pa.Table:
    import pyarrow as pa

    arrays = _npz_arrays(path)
    if "X" not in arrays:
        raise DataError(f"{path} has no array X; expected X [n, d] and y [n].")
    X, y = arrays["X"], arrays.get("y")
    if X.ndim != 2 or (y is not None and y.shape != (len(X),)):
        shapes = f"X {X.shape}" + ("" if y is None else f" and y {y.shape}")
        raise DataError(f"{path} holds {shapes}, expected X of shape [n, d] and y of shape [n]; reshape them.")
    names = [str(name) for name in arrays.get("names", [f"x{j}" for j in range(X.shape[1])])]
    if len(names) != X.shape[1]:
        raise DataError(f"{path} has {len(names)} names for {X.shape[1]} columns of X; give one per column.")
    columns = [pa.array(X[:, j]) for j in range(X.shape[1])]
    if y is None:
        return pa.Table.from_arrays(columns, names)
    return pa.Table.from_arrays([*columns, pa.array(y)], [*names, "y"])


def _npz_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    if not zipfile.is_zipfile(path):
        raise DataError(
            f"{path} is not an archive made by numpy.savez, or it is damaged; save X and y with numpy.savez."
        )
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            return {name: archive[name] for name in ("X", "y", "names") if name in archive.files}
    except zipfile.BadZipFile as error:
        raise DataError(f"{path} cannot be read: {error}; it may be damaged, so fetch it again.") from None
    except ValueError as error:
        raise DataError(
            f"{path} cannot be read: {_first_line(error)} Arrays of objects would run code from the file; save "
            "numbers or text instead."
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") + "." if str(error) else type(error).__name__


_READERS: dict[str, Callable[[Path], Any]] = {
    ".csv": _read_csv,
    ".csv.gz": _read_csv,
    ".csv.xz": _read_csv,
    ".parquet": _read_parquet,
    ".npz": _read_npz,
}
