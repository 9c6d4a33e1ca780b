"""Tables on disk: what is opened is what was saved, and a table larger than memory stays out of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leakgauge.errors import StoreError
from leakgauge.models import AnswerKind
from leakgauge.records import Records
from leakgauge.training import (
    EachModel,
    Execution,
    PredictionTable,
    SklearnLearner,
    leave_one_out,
    many,
    random_subsets,
    train_many,
)


def records(n: int = 20) -> Records:
    rng = np.random.default_rng(0)
    return Records.from_arrays(rng.normal(size=(n, 2)), np.arange(n) % 2)


def learner() -> SklearnLearner:
    from sklearn.naive_bayes import GaussianNB

    return SklearnLearner(GaussianNB())


def same(a: PredictionTable, b: PredictionTable) -> bool:
    index = a.query_index is b.query_index is None or np.array_equal(a.query_index, b.query_index)  # type: ignore[arg-type]
    return bool(
        index
        and np.array_equal(a.answers, b.answers, equal_nan=True)
        and np.array_equal(a.members, b.members)
        and np.array_equal(a.seeds, b.seeds)
        and (a.kind, a.engine, a.failures, a.n_unconverged) == (b.kind, b.engine, b.failures, b.n_unconverged)
    )


def test_what_is_opened_is_what_was_saved(tmp_path: Path) -> None:
    people = records()
    dense = train_many(learner(), people, random_subsets(20, 9, 7, np.random.default_rng(1)), seed=0)
    left_out = train_many(learner(), people, leave_one_out(20), EachModel(np.arange(20)[:, None]), seed=0)
    for name, table in (("dense", dense), ("left out", left_out)):
        table.save(tmp_path / name)
        opened = PredictionTable.open(tmp_path / name)
        assert same(opened, table)
        assert isinstance(opened.answers, np.memmap)
        assert type(opened.subsets) is type(table.subsets)
        assert (tmp_path / name).stat().st_mode & 0o077 == 0


def test_failures_are_kept(tmp_path: Path) -> None:
    people = records()
    subsets = random_subsets(20, 1, 3, np.random.default_rng(1))
    table = PredictionTable(
        np.full((3, 1, 2), np.nan), AnswerKind.PROBABILITIES, subsets, np.arange(3), "refit", None, {1: "no"}, 2
    )
    assert len(people) == 20
    table.save(tmp_path / "t")
    assert same(PredictionTable.open(tmp_path / "t"), table)


def test_a_large_table_is_mapped_and_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people, subsets = records(), random_subsets(20, 9, 37, np.random.default_rng(1))
    small = train_many(learner(), people, subsets, seed=0, execution=Execution(tmp_path / "small"))
    monkeypatch.setattr(many, "IN_MEMORY", 0)
    large = train_many(learner(), people, subsets, seed=0, execution=Execution(tmp_path / "large"))
    assert isinstance(large.answers, np.memmap)
    assert same(small, large)
    large.save(tmp_path / "saved")
    assert same(PredictionTable.open(tmp_path / "saved"), small)
    assert [path.name for path in (tmp_path / "large").iterdir()] == ["chunks"]  # the file has no name


def test_a_table_is_not_written_over(tmp_path: Path) -> None:
    table = train_many(learner(), records(), random_subsets(20, 9, 2, np.random.default_rng(1)), seed=0)
    table.save(tmp_path)
    with pytest.raises(StoreError, match=r"holds a table already"):
        table.save(tmp_path)


@pytest.mark.parametrize("damage", ["missing", "json", "answers", "arrays", "format"])
def test_damage_is_said(tmp_path: Path, damage: str) -> None:
    train_many(learner(), records(), random_subsets(20, 9, 2, np.random.default_rng(1)), seed=0).save(tmp_path)
    match damage:
        case "missing":
            (tmp_path / "answers.npy").unlink()
        case "json":
            (tmp_path / "table.json").write_text("{")
        case "answers":
            (tmp_path / "answers.npy").write_bytes((tmp_path / "answers.npy").read_bytes()[:-100])
        case "arrays":
            (tmp_path / "arrays.npz").write_bytes(b"PK\x03\x04")
        case "format":
            (tmp_path / "table.json").write_text(
                (tmp_path / "table.json").read_text().replace('"format": 1', '"format": 9')
            )
    with pytest.raises(StoreError, match=r"missing|damaged|another version"):
        PredictionTable.open(tmp_path)


BIG = '''
"""100,000 records, 1,000 models: build, save, reopen, slice; print the peak of resident memory in MB."""

import sys
from pathlib import Path

import numpy as np

from leakgauge.models import ProbabilityAccess
from leakgauge.records import Records
from leakgauge.training import Execution, FunctionLearner, PredictionTable, random_subsets, train_many


class Coin(ProbabilityAccess):
    def __init__(self, p):
        self.n_classes, self.p = 2, p

    def log_probabilities(self, X):
        p = self.p + X[:, 0] * 1e-7
        return np.log(np.column_stack([1 - p, p]))


def train(records, seed):
    return Coin(0.2 + records.labels.mean() / 2)


folder = Path(sys.argv[1])
n, m = 100_000, 1_000
rng = np.random.default_rng(0)
records = Records.from_arrays(np.arange(n)[:, None] * 1.0, rng.integers(0, 2, n))
subsets = random_subsets(n, 100, m, rng)
learner, execution = FunctionLearner(train, randomised=False), Execution(folder / "run")
table = train_many(learner, records, subsets, seed=0, execution=execution)
assert table.answers.shape == (m, n, 2)
expected = table.answers[700, ::997].copy(), table.answers[:, 70_000].copy()
table.save(folder / "saved")
del table
opened = PredictionTable.open(folder / "saved")
assert np.array_equal(opened.answers[700, ::997], expected[0])
assert np.array_equal(opened.answers[:, 70_000], expected[1])
assert np.array_equal(opened.members, subsets.members)
# Not getrusage: its peak counts that of the process which started this one.
(peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(int(peak.split()[1]) // 1024)
'''


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to know the peak of resident memory")
def test_a_hundred_thousand_records_by_a_thousand_models_in_less_than_a_gigabyte(tmp_path: Path) -> None:
    """The table alone is 1.6 GB."""
    script = tmp_path / "big.py"
    script.write_text(BIG)
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1000
