"""Tables of records: valid ones, and what may be wrong with them, as values, as text, and as types of Arrow."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import gzip
import io
import lzma
import math
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

Table = dict[str, list[Any]]

TARGET, KEY = "ill", "key"
NAMES = (
    "", " ", "  a", "a,b", 'a"b', "a\nb", "ünïcode", "日本", "😀", "=1+1", "@SUM(A1)", "x" * 5000, "0", "1.5", "nan",
    "None", "member", "id", "model", "__class__", "A", "a b", "[red]", "{0}", "%s", "\x1b[2J", "\u202egpj", "\x7f", "-",
)  # fmt: skip
NUMBERS = (
    0, -0.0, 1, -1, 7319.4771, 1e308, -1e308, 1e-310, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63), 10**30, 10**400,
    math.inf, -math.inf, math.nan, 0.1, 1e16,
)  # fmt: skip
TEXTS = ("", " ", "zqWord", "?", "NA", "nan", "null", "inf", "1e5", "0x10", "True", "zq\nline", "zq,comma", 'zq"quote',
         "zqÜnï", "zq😀", "zq" + "y" * 3000, "=zq()", "zq\x00null", "2020-01-01", "01", "1,5", "-",
         "zq\ud800")  # fmt: skip


def people(rng: Random, n: int, name: str = "a", *, values: bool = False) -> Table:
    """Made-up records: two numbers, a category, an id, and a label that depends on one of the numbers."""
    drawn = np.random.default_rng(rng.randrange(2**32))
    age, hours = drawn.integers(18, 80, n), drawn.normal(40, 5, n).round(2)
    town = drawn.integers(0, 3, n)
    noisy = age + drawn.normal(0, 15, n)
    label = noisy.round(3).tolist() if values else [f"kq{'yes' if one > 45 else 'no'}" for one in noisy]
    return {
        KEY: [f"zqM{name}{i}" for i in range(n)],
        "age": age.tolist(),
        "hours": hours.tolist(),
        "town": [f"zqTown{'ABC'[k]}" for k in town],
        TARGET: label,
    }


def n_rows(table: Table) -> int:
    """The length of its longest column."""
    return max(map(len, table.values()), default=0)


def _column(rng: Random, table: Table) -> str:
    return rng.choice(list(table))


def _cells(rng: Random, table: Table, what: tuple[Any, ...]) -> None:
    name = _column(rng, table)
    held = table[name]
    for _ in range(rng.choice((1, 1, 2, 10)) if held else 0):
        held[rng.randrange(len(held))] = rng.choice(what)


def _fill(rng: Random, table: Table) -> None:
    name = _column(rng, table)
    value = rng.choice((None, 0, 1, "zqOne", 7319.4771, math.nan, True, "", 10**30))
    table[name] = [value] * len(table[name])


def _new_column(rng: Random, table: Table) -> None:
    n = n_rows(table)
    drawn = {
        "flag": [rng.random() < 0.5 for _ in range(n)],
        "note": [f"zq text {i} of many" for i in range(n)],
        "day": [f"2020-01-{1 + i % 28:02d}" for i in range(n)],
        "code": [i % 7 for i in range(n)],
        "serial": [10**15 + i for i in range(n)],
        "big": [2**62 + i for i in range(n)],
        "tiny": [i * 1e-300 for i in range(n)],
        "mixed": [rng.choice((1, "zqA", 2.5, None, True)) for _ in range(n)],
        "alike": list(table.get(TARGET, [0] * n)),
    }
    name = rng.choice(list(drawn))
    table[name] = drawn[name]


def _rename(rng: Random, table: Table) -> None:
    old = _column(rng, table)
    new = rng.choice((*NAMES, *table))
    held = list(table.items())
    table.clear()
    table.update((new if name == old else name, column) for name, column in held)


def _drop(rng: Random, table: Table) -> None:
    if len(table) > 1:
        del table[_column(rng, table)]


def _reorder(rng: Random, table: Table) -> None:
    held = list(table.items())
    rng.shuffle(held)
    table.clear()
    table.update(held)


def _repeat_rows(rng: Random, table: Table) -> None:
    n = n_rows(table)
    rows = [rng.randrange(n) for _ in range(n)] if n else []
    for name, column in table.items():
        if name != KEY or rng.random() < 0.3:
            table[name] = [column[row % len(column)] for row in rows] if column else []


def _cut(rng: Random, table: Table) -> None:
    n = rng.choice((0, 1, 2, 3, 5))
    for name in table:
        table[name] = table[name][:n]


def _classes(rng: Random, table: Table) -> None:
    """Other labels: one class, one for each record, a rare one, of other types."""
    n = len(table.get(TARGET, ()))
    kinds = (
        lambda i: "kqyes", lambda i: f"zqc{i}", lambda i: "zqrare" if i == 0 else f"kqc{i % 2}", lambda i: i % 2,
        lambda i: i % 2 == 0, lambda i: i * 0.37, lambda i: (None, "kqyes", "kqno")[i % 3], lambda i: float(i % 3),
        lambda i: str(i % 2), lambda i: 7319.4771 * i, lambda i: 10**17 + i % 2, lambda i: ("kqyes", "kqYES")[i % 2],
        lambda i: f"kqc{i % 2}", lambda i: f"kqc{i % 3}", lambda i: i % 3,
    )  # fmt: skip
    one = rng.choice(kinds)
    table[TARGET] = [(rng.choice(kinds) if mixed else one)(i) for mixed in (rng.random() < 0.05,) for i in range(n)]


MUTATIONS: tuple[Callable[[Random, Table], None], ...] = (
    lambda rng, table: _cells(rng, table, (None,)),
    lambda rng, table: _cells(rng, table, NUMBERS),
    lambda rng, table: _cells(rng, table, TEXTS),
    _fill,
    _new_column,
    _new_column,
    _rename,
    _drop,
    _reorder,
    _reorder,
    _repeat_rows,
    _repeat_rows,
    _cut,
    _classes,
    _classes,
)


def mutate(rng: Random, *tables: Table) -> None:
    """Some mutations, mostly of all tables alike, sometimes of one of them."""
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        mutation, state = rng.choice(MUTATIONS), rng.randrange(2**32)
        for table in tables if rng.random() < 0.8 else (rng.choice(tables),):
            if table:
                mutation(Random(state), table)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = repr(value) if isinstance(value, float) else str(value)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


def as_csv(table: Table) -> bytes:
    """The text of a table as UTF-8."""
    lines = [",".join(map(_cell, table))]
    lines += [",".join(_cell(c[i] if i < len(c) else None) for c in table.values()) for i in range(n_rows(table))]
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def _ragged(rng: Random, text: bytes) -> bytes:
    lines = text.split(b"\n")
    row = rng.randrange(len(lines))
    lines[row] = rng.choice((lines[row] + b",1", lines[row].rpartition(b",")[0], b"", b",,,,,,", lines[row][:5]))
    return b"\n".join(lines)


def _flip(rng: Random, text: bytes) -> bytes:
    held = bytearray(text)
    for _ in range(rng.choice((1, 1, 3)) if held else 0):
        held[rng.randrange(len(held))] ^= 1 << rng.randrange(8)
    return bytes(held)


TEXT_MUTATIONS: tuple[Callable[[Random, bytes], bytes], ...] = (
    lambda rng, text: text.replace(b"\n", b"\r\n"),
    lambda rng, text: text.replace(b"\n", b"\r"),
    lambda rng, text: b"\xef\xbb\xbf" + text,
    lambda rng, text: text.decode("utf-8", "replace").encode("utf-16"),
    lambda rng, text: text.decode("utf-8", "replace").encode("latin-1", "replace"),
    lambda rng, text: text.replace(b"A", b"\xe9"),
    lambda rng, text: text.replace(b",", b";"),
    lambda rng, text: text.replace(b",", b"\t"),
    lambda rng, text: text.replace(b",", b", "),
    lambda rng, text: text.rstrip(b"\n"),
    lambda rng, text: text + b"\n\n",
    lambda rng, text: b"\n" + text,
    lambda rng, text: text[: rng.randrange(len(text) + 1)],
    lambda rng, text: b"",
    lambda rng, text: text.replace(b"zqTownA", b'"zqTownA'),
    lambda rng, text: text + b"\x00",
    _ragged,
    _ragged,
    _flip,
    _flip,
)


def damaged(rng: Random, text: bytes) -> bytes:
    """Bytes of a file after one mutation of them."""
    return rng.choice(TEXT_MUTATIONS)(rng, text)


def _as(kind: pa.DataType) -> Callable[[list[Any]], pa.Array]:
    return lambda held: pa.array(held).cast(kind, safe=False)


TYPES: tuple[Callable[[list[Any]], Any], ...] = (
    *map(_as, (pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.bool_(), pa.large_string(), pa.binary())),
    *map(_as, (pa.date32(), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.duration("s"), pa.time64("ns"))),
    *map(_as, (pa.decimal128(20, 3), pa.decimal256(40, 0), pa.string_view(), pa.dictionary(pa.int8(), pa.string()))),
    lambda held: pa.nulls(len(held)),
    lambda held: pa.array([[one] for one in held]),
    lambda held: pa.array([{"a": one} for one in held]),
    lambda held: pa.array([decimal.Decimal(i) for i in range(len(held))]),
    lambda held: pa.array([datetime.date(2020, 1, 1 + i % 28) for i in range(len(held))]),
    lambda held: pa.array(held).dictionary_encode(),
    lambda held: pa.array(["a", "b"] * len(held))[: len(held)].dictionary_encode(),
)


def as_arrow(rng: Random, table: Table, *, odd: bool = False) -> pa.Table:
    """A table of Arrow; with ``odd`` one column is of another type, where that is possible."""
    n, columns = n_rows(table), []
    chosen, kind = rng.choice(list(table)) if table else "", rng.choice(TYPES)
    for name, held in table.items():
        held = held + [None] * (n - len(held))
        try:
            plain = pa.array(held, from_pandas=False)
        except (pa.ArrowException, OverflowError, UnicodeEncodeError, TypeError):
            plain = pa.array([None if one is None else str(one).encode("utf-8", "replace").decode() for one in held])
        if odd and name == chosen:
            with contextlib.suppress(pa.ArrowException, OverflowError, ValueError, TypeError):
                plain = kind(held)
        columns.append(plain)
    return pa.table(columns, names=list(table))


def as_parquet(rng: Random, table: Table, *, odd: bool = False) -> bytes:
    """A Parquet file."""
    stream = io.BytesIO()
    found = as_arrow(rng, table, odd=odd)
    try:
        parquet.write_table(found, stream)
    except pa.ArrowException:  # not every type of Arrow is one of Parquet
        stream = io.BytesIO()
        parquet.write_table(as_arrow(rng, table), stream)
    return stream.getvalue()


def as_npz(rng: Random, table: Table) -> bytes:
    """A NumPy archive of the numbers, or of something else."""
    numbers = [held for held in table.values() if held and all(isinstance(one, int | float) for one in held)]
    try:
        X = np.array(numbers, dtype=float).T if numbers else np.zeros((0, 0))
    except (OverflowError, ValueError):
        X = np.zeros((n_rows(table), 1))
    y = np.array([str(one) for one in table.get(TARGET, [])])
    kinds = (
        {"X": X, "y": y}, {"X": X}, {"X": X[:, :1].ravel(), "y": y}, {"X": X[:-1], "y": y}, {"x": X, "y": y},
        {"X": X.astype(np.float32), "y": y}, {"X": X.astype(complex), "y": y}, {"X": X[..., None], "y": y},
        {"X": X.astype(str), "y": y}, {"X": X, "y": y, "names": np.array(["a", "b", "c"])}, {"X": X, "y": y[:, None]},
    )  # fmt: skip
    stream = io.BytesIO()
    np.savez(stream, **rng.choice((kinds[0], kinds[0], *kinds)))
    return stream.getvalue()


def stored(rng: Random, table: Table, *, kind: str | None = None) -> tuple[str, bytes]:
    """The ending of a file and its bytes: mostly sound, sometimes damaged."""
    kind = kind or rng.choice((".csv", ".csv", ".csv", ".csv.gz", ".csv.xz", ".parquet", ".parquet", ".npz"))
    damage = rng.random() < 0.1
    if kind == ".parquet":
        content = as_parquet(rng, table, odd=rng.random() < 0.3)
        return kind, _flip(rng, content) if damage and rng.random() < 0.4 else content
    if kind == ".npz":
        content = as_npz(rng, table)
        return kind, _flip(rng, content) if damage else content
    content = as_csv(table)
    content = damaged(rng, content) if damage else content
    packed = {".csv.gz": lambda held: gzip.compress(held, 1), ".csv.xz": lambda held: lzma.compress(held, preset=0)}
    if kind in packed:
        content = packed[kind](content)
        return kind, _flip(rng, content) if damage and rng.random() < 0.3 else content
    return kind, content


def stored_plain(table: Table, ending: str) -> bytes:
    """A CSV file, packed where its ending says so."""
    return gzip.compress(as_csv(table), 1) if ending == ".csv.gz" else as_csv(table)
