"""Files to Arrow tables: CSV (plain, gzip, xz), Parquet, and NumPy archives. No file is ever unpickled."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import lzma
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Collection
from difflib import get_close_matches
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from leakgauge.errors import DataError
from leakgauge.records._messages import quoted, repeated
from leakgauge.records._tables import with_form

if TYPE_CHECKING:
    import pyarrow as pa

MOST_UNPACKED = 64 * 1024**2
"""Bytes to which any file may unpack, however small it is."""

LONGEST_LINE_OF_NAMES = 1 << 20
"""Bytes of a CSV file's first line that are looked at for what separates its names."""

MOST_TIMES = 100
"""How many times its size a larger one may unpack to; tables of zeros and ones reach about half of that."""


def read_table(
    path: str | Path, *, texts: Collection[str] = (), codes: Collection[str] = (), named: Collection[str] = ()
) -> pa.Table:
    """Read a table of records; row i of the table is row i of the file.

    In CSV files the first line names the columns, an empty cell is a missing value, and everything else (`?`, `NA`,
    `null`) is a value. In NumPy archives, `X` [n, d] becomes columns x0, x1, … (or those that an array `names`
    gives), and `y` [n], if there is one, a column y; of images [n, ...] the columns are the pixels in C order, and
    models are given arrays of that shape. Arrays of objects are refused, since reading them would run code from the
    file. The index of a data frame, which pandas writes to Parquet files as a column and reads as none, is left out.

    Args:
        path: A file whose name ends in .csv, .csv.gz, .csv.xz, .parquet or .npz.
        texts: Columns whose dates and times of day stay text; else those of a CSV file are points of time.
        codes: Columns of which all values stay text, with leading zeros; else digits of a CSV file are numbers.
        named: Columns that are read even where they are the index of a data frame.

    Raises:
        DataError: If the file is missing, of another sort, damaged, empty, or has a line that cannot be read.
    """
    path = Path(path)
    try:
        _require_file(path)
        table = _without_index(_reader(path)(path, texts, codes), named)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or "it is damaged or cut short, so fetch it again"
        raise DataError(f"{path} cannot be read: {reason}.") from None
    except MemoryError:
        raise DataError(f"{path} is larger than the memory that is left; give fewer rows or columns.") from None
    if table.num_rows == 0:
        raise DataError(f"{path} has no rows; a table needs one row per record.")
    if len(set(table.column_names)) < table.num_columns:
        raise DataError(f"{path} has {repeated(table.column_names)}; rename one, names must be unique.")
    return table


def _require_file(path: Path) -> None:
    if path.is_file():
        return
    if path.is_dir():
        raise DataError(f"{path} is a folder, expected a file; name a file in it.")
    if path.exists():
        raise DataError(f"{path} is a pipe or a device, expected a file that can be read again; write it to one first.")
    folder = path.parent
    if not folder.is_dir():
        raise DataError(f"{path} does not exist, nor does the folder {folder}; check the path.")
    near = get_close_matches(path.name, [entry.name for entry in folder.iterdir() if entry.is_file()])
    hint = f"did you mean {quoted(near)}?" if near else "check the path."
    raise DataError(f"{path} does not exist; {hint}")


def _without_index(table: pa.Table, named: Collection[str]) -> pa.Table:
    """A table without the columns that pandas says are the index of a data frame, but for those that are named."""
    try:
        said = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
        index = [one for one in said["index_columns"] if isinstance(one, str)]
    except (ValueError, TypeError, KeyError):  # written by no pandas
        return table
    return table.drop_columns([name for name in table.column_names if name in index and name not in named])


def _reader(path: Path) -> Callable[[Path, Collection[str], Collection[str]], Any]:
    for ending, reader in _READERS.items():
        if path.name.lower().endswith(ending):
            return reader
    raise DataError(f"{path} has an unknown ending, expected one of {', '.join(_READERS)}; convert or rename it.")


def _read_csv(path: Path, texts: Collection[str], codes: Collection[str]) -> pa.Table:
    import pyarrow as pa

    with _opened(path) as stream:
        names = stream.readline(LONGEST_LINE_OF_NAMES)
    if not names:
        raise DataError(f"{path} is empty; expected a line of column names and one line per record.")
    if names.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{path} is in UTF-16, expected UTF-8; save it in that encoding.")
    for mark, called in ((b";", "semicolons"), (b"\t", "tabs")):
        if mark in names and b"," not in names:
            raise DataError(
                f"{path}: the names in its first line are separated by {called}, expected commas; save it as CSV with "
                "commas, and numbers with a decimal point."
            )
    with _opened(path) as stream:
        table = _parsed_csv(stream, path)
    stay = [
        name
        for name, column in zip(table.column_names, table.columns, strict=True)
        if name in codes or (name in texts and pa.types.is_temporal(column.type))
    ]
    if not stay:
        return table
    with _opened(path) as stream:
        return _parsed_csv(stream, path, stay)


def _opened(path: Path) -> IO[bytes]:
    packed = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix.lower())
    if packed is None:
        return path.open("rb")
    return io.BufferedReader(_Unpacked(packed(path), path), buffer_size=1 << 20)  # type: ignore[operator]


class _Unpacked(io.RawIOBase):
    """What a compressed file holds, and an error where that is out of all proportion to its size."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream, self._path, self._size = stream, path, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(len(buffer))
        self._size += len(block)
        require_proportion(self._size, self._path)
        buffer[: len(block)] = block
        return len(block)

    def close(self) -> None:
        self._stream.close()
        super().close()


def require_proportion(n_bytes: int, path: Path, n_packed: int | None = None) -> None:
    """Refuse to unpack what fills the memory though it is small on disk.

    Args:
        n_bytes: what it is unpacked, or would be.
        path: the file.
        n_packed: what it is packed; by default the size of the file.

    Raises:
        DataError: it is more than `MOST_UNPACKED` and more than `MOST_TIMES` what it is packed.
    """
    packed = path.stat().st_size if n_packed is None else n_packed
    if n_bytes > max(MOST_UNPACKED, MOST_TIMES * packed):
        raise DataError(
            f"{path} holds {packed:,} bytes that unpack to more than {MOST_TIMES} times as many, which would fill the "
            "memory; if the file is yours, unpack it or save it as plain CSV, and name that file."
        )


def _parsed_csv(stream: IO[bytes], path: Path, texts: Collection[str] = ()) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    try:
        table = csv.read_csv(
            stream,
            read_options=csv.ReadOptions(use_threads=False),  # only then are bad rows numbered
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                null_values=[""], strings_can_be_null=True, column_types=dict.fromkeys(texts, pa.string())
            ),
        )
        _ = table.column_names  # decodes them
    except pa.ArrowException as error:
        raise DataError(f"{path}{_csv_problem(str(error))}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: the first line is not UTF-8; save the file in that encoding.") from None
    for place, column in enumerate(table.columns, start=1):
        if pa.types.is_binary(column.type):  # its name is perhaps none: the file may lack a line of names
            raise DataError(
                f"{path}, column {place} (counting from 1): the text is not UTF-8; save it in that encoding."
            )
    return table


def _csv_problem(said: str) -> str:
    """What Arrow has against a CSV file, in words of ours: its own quote the row, which may name a person."""
    row = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", said)
    if row is not None:
        return (
            f", line {row[1]}: expected {row[2]} cells as in the first line, found {row[3]}; correct the line, and "
            "quote cells that contain commas."
        )
    column = re.search(r"In CSV column #(\d+)", said)
    where = "" if column is None else f", column {int(column[1]) + 1}"
    return f"{where} cannot be read as CSV in UTF-8 with commas; correct the file."


def _read_parquet(path: Path, *_: Collection[str]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            about, schema = file.metadata, file.schema_arrow
        require_proportion(_least_unpacked(about), path)
        texts = {
            about.schema.column(j).path
            for j in range(about.num_columns)
            if about.schema.column(j).physical_type == "BYTE_ARRAY"
        } & {field.name for field in schema if not pa.types.is_dictionary(field.type)}
        with parquet.ParquetFile(path, read_dictionary=sorted(texts)) as file:
            table = file.read()
        require_proportion(sum(_length_of_texts(table.column(name)) for name in texts), path)
        return table.cast(schema)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as Parquet ({type(error).__name__}); it may be damaged.") from None


def _least_unpacked(about: Any) -> int:
    """Bytes of the table in memory, at least: a number that is in the file once may stand in many rows."""
    chunks = (about.row_group(i).column(j) for i in range(about.num_row_groups) for j in range(about.num_columns))
    return sum(max(chunk.total_uncompressed_size, 8 * chunk.num_values) for chunk in chunks)


def _length_of_texts(column: Any) -> int:
    """Bytes of a column of texts that was read as a dictionary, once every row has its own."""
    import pyarrow.compute as pc

    lengths = (pc.take(pc.binary_length(part.dictionary), part.indices) for part in column.chunks)
    return sum(int(pc.sum(part).as_py() or 0) for part in lengths)


def _read_npz(path: Path, *_: Collection[str]) -> pa.Table:
    import pyarrow as pa

    arrays = _npz_arrays(path)
    if "X" not in arrays:
        raise DataError(f"{path} has no array X; expected X [n, d] and y [n].")
    X, y = arrays["X"], arrays.get("y")
    alone = X.ndim == 1 and X.dtype.kind == "U"  # texts
    if (X.ndim < 2 and not alone) or (y is not None and y.shape != (len(X),)):
        shapes = f"X {X.shape}" + ("" if y is None else f" and y {y.shape}")
        raise DataError(f"{path} holds {shapes}, expected X of shape [n, d] and y of shape [n]; reshape them.")
    shape = None if X.ndim == 2 else X.shape[1:]
    X = X.reshape(len(X), math.prod(X.shape[1:]))
    given = arrays.get("names", np.array([f"x{j}" for j in range(X.shape[1])], dtype=np.str_))
    names = [str(name) for name in given.ravel()]
    if given.ndim != 1 or len(names) != X.shape[1]:
        raise DataError(f"{path} has {len(names)} names for {X.shape[1]} columns of X; give one per column.")
    X = _plain(X, "X", path)
    columns = [pa.array(X[:, j]) for j in range(X.shape[1])]
    if y is None:
        return with_form(pa.Table.from_arrays(columns, names), shape, X.dtype)
    table = pa.Table.from_arrays([*columns, pa.array(_plain(y, "y", path))], [*names, "y"])
    return with_form(table, shape, X.dtype)


def _plain(array: npt.NDArray[Any], name: str, path: Path) -> npt.NDArray[Any]:
    """An array of a type that Arrow knows, in this machine's order of bytes."""
    if array.dtype.kind not in "biufU" or (array.dtype.kind == "f" and array.dtype.itemsize > 8):
        raise DataError(
            f"{path}: array {name} is of type {array.dtype}, expected numbers of at most 64 bits, text or true/false; "
            "convert it, for example with astype(float)."
        )
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _npz_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    if not zipfile.is_zipfile(path):
        raise DataError(
            f"{path} is not an archive made by numpy.savez, or it is damaged; save X and y with numpy.savez."
        )
    try:
        require_proportion(unpacked_zip(path), path)
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            found = {name: archive[name] for name in ("X", "y", "names") if name in archive.files}
    except DataError:
        raise
    except zipfile.BadZipFile:
        raise DataError(f"{path} cannot be read: it is a damaged archive, so fetch it again.") from None
    except (ValueError, SyntaxError) as error:  # what NumPy raises on a header that makes no sense
        raise DataError(
            f"{path} cannot be read ({type(error).__name__}): an array in it is damaged, or of objects, which would "
            "run code from the file; save numbers or text with numpy.savez."
        ) from None
    foreign = next((name for name, array in found.items() if not isinstance(array, np.ndarray)), None)
    if foreign is not None:
        raise DataError(f"{path}: {foreign} is not a NumPy array; save X and y with numpy.savez.")
    return found


def unpacked_zip(path: Path) -> int:
    """Bytes to which an archive says that it unpacks; no more are ever read from it."""
    with zipfile.ZipFile(path) as archive:
        return sum(member.file_size for member in archive.infolist())


_READERS: dict[str, Callable[[Path, Collection[str], Collection[str]], Any]] = {
    ".csv": _read_csv,
    ".csv.gz": _read_csv,
    ".csv.xz": _read_csv,
    ".parquet": _read_parquet,
    ".npz": _read_npz,
}
