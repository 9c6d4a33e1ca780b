"""Chunks that are damaged are made again, and a disk without room is told in words."""

from __future__ import annotations

import io
import json
import sys
import zipfile

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from leakgauge.errors import StoreError
from leakgauge.records import Records
from leakgauge.training import (
    ChunkStore,
    Execution,
    SklearnLearner,
    random_subsets,
    store,
    train_many,
    write_atomically,
)
from leakgauge.training import many as many_module
from leakgauge.training.table_file import AnswersFile

RECORDS = Records.from_arrays(np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2)
SUBSETS = random_subsets(40, 20, 20, np.random.default_rng(0))
NOTES = {"kind": "probabilities", "failures": {}, "n_unconverged": 0}


def trained(folder):
    return train_many(SklearnLearner(GaussianNB()), RECORDS, SUBSETS, seed=1, engines=(), execution=Execution(folder))


def packed(answers, notes):
    """A chunk as it is stored."""
    file = io.BytesIO()
    np.savez(file, answers=answers, notes=np.frombuffer(json.dumps(notes).encode(), dtype=np.uint8))
    return file.getvalue()


def header_of(shape, descr="<f8"):
    """An archive whose array claims a shape."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("answers.npy", header.getvalue())
        archive.writestr("notes.npy", b"")
    return file.getvalue()


ANSWERS = np.log(np.full((2, 40, 2), 0.5))

DAMAGE = {
    "empty": b"",
    "text": b"no archive",
    "an array alone": b"\x93NUMPY\x01\x00v\x00" + b"x" * 100,
    "a plain array": None,
    "header of another type": header_of((2, 40, 2), "|O"),
    "larger than memory": header_of((10**15, 2)),
    "negative shape": header_of((-1, 2)),
    "another shape": packed(ANSWERS[:, :39], NOTES),
    "another type": packed(ANSWERS.astype(np.float32), NOTES),
    "notes of a list": packed(ANSWERS, []),
    "notes without failures": packed(ANSWERS, {"kind": None, "n_unconverged": 0}),
    "unknown kind": packed(ANSWERS, NOTES | {"kind": "guesses"}),
    "failures of a list": packed(ANSWERS, NOTES | {"failures": []}),
    "count of words": packed(ANSWERS, NOTES | {"n_unconverged": "many"}),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_chunk_is_made_again(tmp_path, what, caplog):
    whole = trained(tmp_path)
    victim = max((tmp_path / "chunks").glob("*.npz"), key=lambda path: path.stat().st_size)
    content = DAMAGE[what]
    if content is None:
        file = io.BytesIO()
        np.save(file, ANSWERS)
        content = file.getvalue()
    victim.write_bytes(content)
    again = trained(tmp_path)
    assert np.array_equal(again.answers, whole.answers)
    assert again.kind is whole.kind
    assert sum("is damaged" in record.message for record in caplog.records) == 1


def test_any_flipped_byte_of_a_chunk_is_noticed_or_changes_nothing(tmp_path):
    """300 flips, drawn with a fixed seed: no exception, and never other answers."""
    whole = trained(tmp_path)
    (first, *_) = sorted((tmp_path / "chunks").glob("*.npz"))
    content, kept, rng = first.read_bytes(), ChunkStore(tmp_path / "chunks"), np.random.default_rng(0)
    answers, notes = kept.load(first.stem)
    for place in rng.integers(0, len(content), 300):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        first.write_bytes(damaged)
        found = kept.load(first.stem)
        assert found is None or (np.array_equal(found[0], answers) and found[1] == notes)
    first.unlink()
    assert np.array_equal(trained(tmp_path).answers, whole.answers)


def limited(n_bytes):
    """No file of this process may grow beyond so many bytes: as on a disk that is full."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
def test_a_mapped_table_on_a_full_disk_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(many_module, "MAX_MEMORY_BYTES", 0)
    lift = limited(4096)
    try:
        with pytest.raises(StoreError, match=r"no room for a table of .* MB \(File too large\); free space"):
            trained(tmp_path)
    finally:
        lift()
    assert [path for path in tmp_path.rglob("*") if path.name.endswith(".part")] == []
    assert np.array_equal(trained(tmp_path).answers, trained(None).answers)


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
def test_a_chunk_on_a_full_disk_is_told_and_leaves_nothing(tmp_path):
    lift = limited(1024)
    try:
        with pytest.raises(StoreError, match="cannot be written"):
            trained(tmp_path)
    finally:
        lift()
    assert list((tmp_path / "chunks").iterdir()) == []


def test_answers_that_a_disk_takes_in_parts_are_written_whole(tmp_path):
    class Slow:
        def __init__(self, file):
            self.file = file

        def write(self, data):
            return self.file.write(data[:7])

        def __getattr__(self, name):
            return getattr(self.file, name)

    answers, file = np.random.default_rng(0).normal(size=(4, 3, 2)), AnswersFile(tmp_path, (4, 3, 2))
    file._file = Slow(file._file)
    file.write(range(2, 4), answers[2:])
    file.write(range(2), answers[:2])
    file._file = file._file.file
    assert np.array_equal(file.whole(), answers)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ValueError])
def test_what_stops_in_the_middle_of_writing_leaves_nothing(tmp_path, error):
    def write(file):
        file.write(b"half")
        raise error

    with pytest.raises(error):
        write_atomically(tmp_path / "x", write)
    assert list(tmp_path.iterdir()) == []
    assert store.write_atomically is write_atomically


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be written"):
        write_atomically(tmp_path / "file" / "x", lambda file: file.write(b"x"))
