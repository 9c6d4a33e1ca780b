"""Tables on disk: a table larger than memory stays out of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leakgauge.records import Records
from leakgauge.training import (
    Execution,
    PredictionTable,
    SklearnLearner,
    many,
    random_subsets,
    train_many,
)
from leakgauge.training.table_file import AnswersFile, let_go


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


def test_a_large_table_is_mapped_and_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people, subsets = records(), random_subsets(20, 9, 37, np.random.default_rng(1))
    small = train_many(learner(), people, subsets, seed=0, execution=Execution(tmp_path / "small"))
    monkeypatch.setattr(many, "MAX_MEMORY_BYTES", 0)
    large = train_many(learner(), people, subsets, seed=0, execution=Execution(tmp_path / "large"))
    assert isinstance(large.answers, np.memmap)
    assert same(small, large)
    assert [path.name for path in (tmp_path / "large").iterdir()] == ["chunks"]  # the file has no name


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux tells how much of a mapping is in memory")
def test_a_mapped_table_lets_go_of_what_was_read(tmp_path: Path) -> None:
    """8 MB of answers: read, they are in memory; let go, none is; and each is read again as it was."""
    written, file = np.random.default_rng(0).normal(size=(10, 50_000, 2)), AnswersFile(tmp_path, (10, 50_000, 2))
    file.write(range(10), written)
    mapped = file.whole()
    part = mapped[::-1, 10:]  # a look at part of it is at the same mapping
    assert part.sum() == written[::-1, 10:].sum()
    assert in_memory(mapped) > 0.9 * written.nbytes
    let_go(part)
    assert in_memory(mapped) == 0
    assert np.array_equal(mapped, written)
    before = written.copy()
    let_go(written)  # in memory and nowhere else
    assert np.array_equal(before, written)


def in_memory(mapped: np.ndarray) -> int:
    """How many bytes of a mapping are resident."""
    start = f"{mapped.ctypes.data:x}-"
    _, _, told = Path("/proc/self/smaps").read_text().partition(f"\n{start}")
    return 1024 * int(told.partition("\nRss:")[2].split()[0])


BIG = '''
"""100,000 records, 1,000 models: build and slice; print the peak of resident memory in MB."""

import sys
from pathlib import Path

import numpy as np

from leakgauge.models import ProbabilityAccess
from leakgauge.records import Records
from leakgauge.training import Execution, FunctionLearner, random_subsets, train_many


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
p = 0.2 + np.array([records.labels[subsets.row(model)].mean() for model in range(m)]) / 2
assert np.allclose(np.exp(table.answers[700, ::997, 1]), p[700] + records.features[::997, 0] * 1e-7)
assert np.allclose(np.exp(table.answers[:, 70_000, 1]), p + 0.007)
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
