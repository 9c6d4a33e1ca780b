"""What workers are given: once, for their owner's eyes, and gone afterwards."""

from __future__ import annotations

import os
import pickle
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from leakgauge.errors import StoreError, WorkerError
from leakgauge.records import Records
from leakgauge.training import (
    Execution,
    Job,
    Randomness,
    SklearnLearner,
    handing,
    leave_one_out,
    plan,
    random_subsets,
    train_many,
)
from leakgauge.training.handing import handed

N = 40


@pytest.fixture
def prepared():
    rng = np.random.default_rng(0)
    records = Records.from_arrays(rng.normal(size=(N, 3)), np.arange(N) % 2)
    learner = SklearnLearner(LogisticRegression())
    return plan(Job(learner, records, leave_one_out(N), records.features, 0, Randomness.COMMON)).prepared


def test_what_is_handed_over_answers_as_before(prepared):
    expected = prepared.all().answers
    with handed(prepared, expected.shape) as given:
        again = given.prepared()
        np.testing.assert_array_equal(again.all().answers, expected)
        assert again is given.prepared(), "a worker reads it once"
        assert again is not prepared
        table = given.table()
        assert table.shape == expected.shape
        table[3] = expected[3]
        np.testing.assert_array_equal(given.table()[3], expected[3])


def test_a_worker_that_writes_to_what_it_was_given_changes_nobody_elses(prepared):
    with handed(prepared, (N, N, 2)) as given:
        given.prepared().groups[0].full.weights[:] = 0.0
        handing._read.cache_clear()
        assert given.prepared().groups[0].full.weights.any()
    handing._read.cache_clear()


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux tells how much of a mapping is in memory")
def test_all_of_a_job_is_in_memory_before_the_first_chunk():
    """Joblib ends workers that grow after their first task by 300 MB; a job that is mapped whole can grow no more."""
    records = Records.from_arrays(np.random.default_rng(0).normal(size=(N, 20_000)), np.arange(N) % 2)
    job = Job(SklearnLearner(LogisticRegression()), records, leave_one_out(N), records.features, 0, Randomness.COMMON)
    with handed(plan(job, engines=()).prepared, None) as given:
        assert len(given.prepared().job.records) == N
        size = (Path(given.folder) / "job").stat().st_size
        _, _, told = Path("/proc/self/smaps").read_text().partition(f"{given.folder}/job\n")
        resident = 1024 * int(told.partition("\nRss:")[2].split()[0])
    handing._read.cache_clear()
    assert records.features.nbytes <= size <= resident


def test_only_the_owner_can_look_and_nothing_is_left(prepared):
    with handed(prepared, (N, N, 2)) as given:
        folder = Path(given.folder)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {path.name for path in folder.iterdir()} == {"job", "sizes.npy", "answers", "owner"}
    assert not folder.exists()
    with pytest.raises(ZeroDivisionError), handed(prepared, (N, N, 2)) as given:
        raise ZeroDivisionError
    assert not Path(given.folder).exists()


def test_large_tables_are_handed_back_in_parts(prepared, monkeypatch):
    monkeypatch.setattr(handing, "MAX_SHARED_BYTES", 1000)
    with handed(prepared, (N, N, 2)) as given:
        assert given.table() is None
    job = prepared.job
    monkeypatch.setattr(type(prepared.engine), "chunk", 7)
    tables = [
        train_many(
            job.learner, job.records, job.subsets, seed=0, randomness=job.randomness, execution=Execution(workers=n)
        ).answers
        for n in (1, 2)
    ]
    np.testing.assert_array_equal(*tables)


def test_the_table_that_workers_wrote_stays_with_what_an_earlier_run_left(prepared, monkeypatch, tmp_path):
    job = prepared.job
    monkeypatch.setattr(type(prepared.engine), "chunk", 7)
    run = tmp_path / "run"
    expected = plan(job).train(Execution(run)).answers
    for path in sorted((run / "chunks").iterdir())[::2]:
        path.unlink()
    resumed = plan(job).train(Execution(run, workers=2)).answers
    again = plan(job).train(Execution(workers=2)).answers  # another job in between changes nothing
    np.testing.assert_array_equal(resumed, expected)
    np.testing.assert_array_equal(again, expected)
    resumed[0] = 0.0  # it is the caller's own
    assert type(resumed) is np.ndarray
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(resumed)), resumed)


def test_where_there_is_no_room_it_says_so(prepared, monkeypatch, tmp_path):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(handing, "_write", full)
    monkeypatch.setattr(handing, "_where", lambda room: tmp_path)
    with pytest.raises(StoreError, match=r"has no space for the .* MB that workers share \(No space left on device\)"):
        handed(prepared, (N, N, 2)).__enter__()
    assert not list(tmp_path.iterdir())


def test_a_worker_that_finds_no_room_for_its_answers_says_so(prepared, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(handing, "write_rows", full)
    with handed(prepared, (N, N, 2)) as given, pytest.raises(StoreError, match="has no space for the 0 MB"):
        given.write(range(3), np.zeros((3, N, 2)))


def test_workers_share_answers_where_no_memory_can_be_kept(prepared, monkeypatch, tmp_path):
    job = prepared.job
    monkeypatch.setattr(type(prepared.engine), "chunk", 7)
    monkeypatch.setattr(handing, "_where", lambda room: tmp_path)
    answers = plan(job).train(Execution(workers=2)).answers
    np.testing.assert_array_equal(answers, plan(job).train(Execution()).answers)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="elsewhere space cannot be taken in advance")
def test_the_space_of_the_table_is_taken_at_once(prepared, monkeypatch, tmp_path):
    """Else a worker that writes where there is no space left is killed."""
    monkeypatch.setattr(handing, "_where", lambda room: tmp_path)
    with handed(prepared, (N, N, 200)) as given:
        taken = (Path(given.folder) / "answers").stat()
        assert taken.st_size == 8 * N * N * 200
        assert taken.st_blocks * 512 >= taken.st_size


def test_without_semaphores_one_process_does_all(monkeypatch):
    """As where /dev/shm is read-only."""
    from joblib import _multiprocessing_helpers

    records = Records.from_arrays(np.random.default_rng(0).normal(size=(N, 3)), np.arange(N) % 2)
    learner = SklearnLearner(DecisionTreeClassifier())
    expected = train_many(learner, records, leave_one_out(N), seed=0)
    monkeypatch.setattr(_multiprocessing_helpers, "mp", None)
    found = train_many(learner, records, leave_one_out(N), seed=0, execution=Execution(workers=2))
    assert np.array_equal(found.answers, expected.answers)


def test_what_cannot_be_pickled_says_so(prepared, monkeypatch):
    monkeypatch.setattr(prepared, "lock", threading.Lock(), raising=False)
    with pytest.raises(
        WorkerError, match=r"LogisticRegression cannot be sent to worker processes \(TypeError\); use one"
    ):
        handed(prepared, (N, N, 2)).__enter__()


KILLED = """
import sys, time, numpy as np
from leakgauge.records import Records
from leakgauge.training import Job, Randomness, SklearnLearner, leave_one_out, plan
from leakgauge.training import handing
from sklearn.linear_model import LogisticRegression
handing._where = lambda room: sys.argv[1]
records = Records.from_arrays(np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2)
job = Job(SklearnLearner(LogisticRegression()), records, leave_one_out(40), records.features, 0, Randomness.COMMON)
with handing.handed(plan(job).prepared, (40, 40, 2)):
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")
def test_nothing_is_left_by_a_process_that_was_killed(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert len(list(tmp_path.iterdir())) == 1
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    for _ in range(300):  # what tracks such folders sees that its process is gone
        if not list(tmp_path.iterdir()):
            return
        time.sleep(0.1)
    pytest.fail("the records of a killed process are still there")


@pytest.mark.skipif(not handing.SHARED_MEMORY.is_dir(), reason="needs shared memory")
def test_what_a_killed_process_left_in_memory_is_removed(prepared, monkeypatch, tmp_path):
    """Where it was killed together with what watched over its folder; that of a living process stays."""
    monkeypatch.setattr(handing, "SHARED_MEMORY", tmp_path)
    left = tmp_path / "leakgauge-left"
    left.mkdir()
    (left / "owner").touch()
    (left / "job").write_bytes(b"records")
    with handed(prepared, (N, N, 2)) as first, handed(prepared, (N, N, 2)) as second:
        assert not left.exists()
        assert Path(first.folder).parent == Path(second.folder).parent == tmp_path
        assert first.prepared() is not None
        assert Path(first.folder).exists()
    assert not list(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.skipif(not handing.SHARED_MEMORY.is_dir(), reason="needs a folder in memory")
def test_nothing_is_left_in_shared_memory_by_workers():
    rng = np.random.default_rng(0)
    records = Records.from_arrays(rng.normal(size=(N, 3)), np.arange(N) % 2)

    def of_this_process() -> list[str]:
        return [path.name for path in handing.SHARED_MEMORY.iterdir() if f"_{os.getpid()}_" in path.name]

    before = of_this_process()
    learner, subsets = SklearnLearner(DecisionTreeClassifier()), random_subsets(N, N // 2, 64, rng)
    for _ in range(2):
        train_many(learner, records, subsets, seed=0, engines=(), execution=Execution(workers=2))
    assert of_this_process() == before
