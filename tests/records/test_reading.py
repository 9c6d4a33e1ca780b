from __future__ import annotations

import gzip
import lzma
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from leakgauge.errors import DataError
from leakgauge.records import Records, read_table
from leakgauge.records._tables import _as_array

CSV = 'name,age,city\n"a, b",31,?\n"multi\nline",,NA\n,47,\n'
ROWS = [
    {"name": "a, b", "age": 31, "city": "?"},
    {"name": "multi\nline", "age": None, "city": "NA"},
    {"name": None, "age": 47, "city": None},
]


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refuses(match, path):
    with pytest.raises(DataError, match=match) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_csv_plain_and_packed(tmp_path):
    for name, pack in (("t.csv", bytes), ("t.csv.gz", gzip.compress), ("t.CSV.xz", lzma.compress)):
        table = read_table(write(tmp_path / name, pack(CSV.encode())))
        assert table.to_pylist() == ROWS
        assert [str(field.type) for field in table.schema] == ["string", "int64", "string"]


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    table = read_table(write(tmp_path / "t.csv", b"\xef\xbb\xbfage,b\r\n1,2\r\n"))
    assert table.to_pylist() == [{"age": 1, "b": 2}]


def test_parquet(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    frame.to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]


def test_the_index_that_pandas_wrote_is_no_column(tmp_path):
    """Rows that were drawn keep theirs: as a column it would number the records, those of either set apart."""
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [4, 9, 6]})
    frame.iloc[[2, 0, 1]].to_parquet(tmp_path / "chosen.parquet")
    assert pa.parquet.read_table(tmp_path / "chosen.parquet").column_names == ["a", "b", "__index_level_0__"]
    assert read_table(tmp_path / "chosen.parquet").to_pydict() == {"a": [3, 1, 2], "b": [6, 4, 9]}
    frame.set_index("b").to_parquet(tmp_path / "called.parquet")
    assert read_table(tmp_path / "called.parquet").column_names == ["a"]
    assert read_table(tmp_path / "called.parquet", named=["b", "c"]).to_pydict() == {"a": [1, 2, 3], "b": [4, 9, 6]}
    frame.assign(c=7).set_index(["a", "b"]).to_parquet(tmp_path / "two.parquet")
    assert read_table(tmp_path / "two.parquet").column_names == ["c"]


@pytest.mark.parametrize("said", [b"{", b"[]", b"1", b"{}", b'{"index_columns": null}', b'{"index_columns": [{}]}'])
def test_what_is_not_of_pandas_has_no_index(said, tmp_path):
    table = pa.table({"a": [1]}).replace_schema_metadata({b"pandas": said})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").column_names == ["a"]


def test_digits_stay_text_on_demand(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n007,1\n07,2\n,3\n")
    assert read_table(path).to_pydict() == {"a": [7, 7, None], "b": [1, 2, 3]}
    assert read_table(path, texts=["a"]).to_pydict() == read_table(path).to_pydict()
    assert read_table(path, codes=["a", "c"]).to_pydict() == {"a": ["007", "07", None], "b": [1, 2, 3]}


def test_npz(tmp_path):
    X, y = np.array([[1.5, 2.0], [3.0, 4.0]], dtype=np.float32), np.array(["b", "a"])
    np.savez(tmp_path / "t.npz", X=X, y=y)
    assert read_table(str(tmp_path / "t.npz")).to_pydict() == {"x0": [1.5, 3.0], "x1": [2.0, 4.0], "y": ["b", "a"]}
    np.savez(tmp_path / "named.npz", X=X, names=np.array(["age", "dose"]))
    assert read_table(tmp_path / "named.npz").column_names == ["age", "dose"]


def test_what_is_read_becomes_records(tmp_path):
    path = write(tmp_path / "t.csv", "age,city,ill\n31,?,yes\n47,,no\n")
    records = Records.from_frame(read_table(path), target="ill")
    assert records.schema.columns[1].categories == ("?", None)
    assert records.features.tolist() == [[31, 0], [47, 1]]


def test_errors_of_paths(tmp_path):
    write(tmp_path / "patients.csv", CSV)
    refuses(r"patient\.csv does not exist; did you mean 'patients.csv'\?", tmp_path / "patient.csv")
    refuses("zzz.csv does not exist; check the path", tmp_path / "zzz.csv")
    refuses("does not exist, nor does the folder .*none", tmp_path / "none" / "a.csv")
    refuses("is a folder, expected a file", tmp_path)
    refuses(
        r"t\.xlsx has an unknown ending, expected one of .csv, .csv.gz, .csv.xz, .parquet, .npz",
        write(tmp_path / "t.xlsx", "x"),
    )


def test_errors_of_csv(tmp_path):
    refuses("is empty; expected a line of column names", write(tmp_path / "a.csv", ""))
    refuses("is empty", write(tmp_path / "a.csv.gz", gzip.compress(b"")))
    refuses("has no rows", write(tmp_path / "b.csv", "a,b\n"))
    refuses("cannot be read as CSV", write(tmp_path / "c.csv", "\n\n"))
    refuses("two columns called 'a'", write(tmp_path / "d.csv", "a,a\n1,2\n"))
    refuses(r"column 2 \(counting from 1\): the text is not UTF-8", write(tmp_path / "e.csv", b"a,b\n1,M\xfcller\n"))
    message = refuses(
        "line 3: expected 2 cells as in the first line, found 3", write(tmp_path / "f.csv", "a,b\n1,2\nMeyer,3,4\n")
    )
    assert "Meyer" not in message  # a message may be logged, and rows name people
    refuses("separated by semicolons, expected commas", write(tmp_path / "g.csv", "a;b\n1,5;2\n"))
    refuses("separated by tabs, expected commas", write(tmp_path / "h.csv", "a\tb\n1\t2\n"))
    refuses("is in UTF-16, expected UTF-8", write(tmp_path / "i.csv", "a,b\n1,2\n".encode("utf-16")))
    assert read_table(write(tmp_path / "j.csv", '"a;b",c\n1,2\n')).column_names == ["a;b", "c"]


@pytest.mark.parametrize(("name", "pack"), [("t.csv.gz", gzip.compress), ("t.csv.xz", lzma.compress)])
def test_damaged_archives(tmp_path, name, pack):
    whole = pack(os.urandom(5000).hex().encode())
    refuses("cannot be read: .* fetch it again", write(tmp_path / name, whole[:-100]))
    refuses("cannot be read: .* fetch it again", write(tmp_path / name, b"a,b\n1,2\n"))


def test_errors_of_parquet(tmp_path):
    refuses("cannot be read as Parquet .*damaged", write(tmp_path / "t.parquet", "a,b\n1,2\n"))
    table = pa.table({"a": pa.array([], pa.int64())})
    pyarrow.parquet.write_table(table, tmp_path / "none.parquet")
    refuses("has no rows", tmp_path / "none.parquet")


class Trap:
    def __reduce__(self):
        return (os.mkdir, (os.environ["TRAP"],))


def test_a_numpy_archive_of_objects_is_refused_and_not_run(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAP", str(tmp_path / "sprung"))
    np.savez(tmp_path / "t.npz", X=np.array([[Trap()]], dtype=object))
    refuses("of objects, which would run code from the file", tmp_path / "t.npz")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("dtype", ["f2", ">f2", ">f4", ">f8", ">i2", ">i8", ">u4", "u1", "?", ">U4"])
def test_npz_of_few_bits_or_in_another_order_of_bytes(tmp_path, dtype):
    X = np.array([[1, 0], [3, 200], [0, 7]]).astype(dtype)
    np.savez(tmp_path / "t.npz", X=X, y=X[:, 0])
    table = read_table(tmp_path / "t.npz")
    assert table.to_pydict() == {"x0": X[:, 0].tolist(), "x1": X[:, 1].tolist(), "y": X[:, 0].tolist()}
    if dtype != ">U4":
        assert Records.from_frame(table, target="y").features.tolist() == X.astype(float).tolist()


def test_errors_of_npz(tmp_path):
    def saved(**arrays):
        np.savez(tmp_path / "t.npz", **arrays)
        return tmp_path / "t.npz"

    refuses("has no array X; expected X", saved(features=np.zeros((2, 2))))
    refuses(r"holds X \(2,\), expected X of shape", saved(X=np.zeros(2)))
    refuses(r"holds X \(2, 2\) and y \(3,\)", saved(X=np.zeros((2, 2)), y=np.zeros(3)))
    refuses("has 1 names for 2 columns", saved(X=np.zeros((2, 2)), names=np.array(["a"])))
    refuses("two columns called 'y'", saved(X=np.zeros((1, 1)), y=np.zeros(1), names=np.array(["y"])))
    refuses("is not an archive made by numpy.savez", write(tmp_path / "u.npz", "no archive"))
    np.save(tmp_path / "w.npy", np.zeros(3))
    refuses("is not an archive made by numpy.savez", (tmp_path / "w.npy").rename(tmp_path / "w.npz"))
    damaged = bytearray(saved(X=np.zeros((50, 50))).read_bytes())
    damaged[5000] ^= 1
    refuses("cannot be read: it is a damaged archive", write(tmp_path / "t.npz", bytes(damaged)))
    refuses("has no rows", saved(X=np.zeros((0, 2))))


def test_rows_of_numbers_and_rows_of_other_things_stay_what_they_are():
    """A list of arrays is stacked where all are numbers; NumPy would turn numbers beside words into words."""
    mixed = _as_array([np.array([1.0, 2.0]), np.array(["a", "b"])])
    assert mixed.dtype == object
    assert mixed.tolist() == [[1.0, 2.0], ["a", "b"]]
    assert _as_array([np.array([1.0, 2.0]), np.array([3, 4])]).dtype == np.float64
