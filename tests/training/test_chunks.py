"""Chunks: the same work however it is cut up and whoever does it; killed workers are in ``tests/crash``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from leakgauge.errors import MissingExtra, WorkerError
from leakgauge.records import Records
from leakgauge.training import (
    Execution,
    Job,
    Randomness,
    SklearnLearner,
    chunks,
    leave_one_out,
    random_subsets,
    train_many,
)
from leakgauge.training.chunks import _safe_path
from leakgauge.training.engines.refit import Loop, Refit


def job(randomness: Randomness = Randomness.INDEPENDENT) -> Job:
    rng = np.random.default_rng(0)
    records = Records.from_arrays(rng.normal(size=(30, 2)), np.arange(30) % 2)
    subsets = random_subsets(30, 12, 20, rng)
    return Job(SklearnLearner(GaussianNB()), records, subsets, records.features, 3, randomness)


def test_chunks_cover_all_models_once() -> None:
    assert [list(part) for part in chunks.chunks(5, 2)] == [[0, 1], [2, 3], [4]]
    assert chunks.chunks(0, 2) == []


@pytest.mark.parametrize("randomness", list(Randomness))
def test_a_part_answers_as_those_models_of_the_whole(randomness: Randomness) -> None:
    whole = job(randomness)
    which = np.array([17, 3, 4])
    part = whole.part(which)
    assert [part.seed_of(place) for place in range(3)] == [whole.seed_of(model) for model in which]
    twice = whole.part(np.arange(10, 20)).part(np.array([7]))
    assert twice.seed_of(0) == whole.seed_of(17)
    np.testing.assert_array_equal(Refit().prepare(part).all().answers, Refit().prepare(whole).all().answers[which])


def test_no_model_with_a_seed_of_its_own_has_the_seed_in_common():
    """NumPy's seed sequences do not tell [5] from [5, 0]: the first shadow model was trained like the audited one."""
    records = Records.from_arrays(np.arange(20.0)[:, None], np.arange(20) % 2)
    subsets = leave_one_out(20)
    for seed in (0, 5, 2**40):
        own, shared = (
            Job(SklearnLearner(GaussianNB()), records, subsets, records.features, seed, how)
            for how in (Randomness.INDEPENDENT, Randomness.COMMON)
        )
        seeds = [own.seed_of(model) for model in range(20)]
        assert len({*seeds, shared.seed_of(0)}) == 21
        assert own.seeds_of(np.arange(20)).tolist() == seeds


def test_the_name_of_a_chunk_hangs_on_all_that_makes_it() -> None:
    first = job()
    names = {
        first.chunk_name(range(3), "refit"),
        first.chunk_name(range(4), "refit"),
        first.chunk_name(range(3), "another engine"),
        job(Randomness.COMMON).chunk_name(range(3), "refit"),
    }
    assert len(names) == 4
    assert job().chunk_name(range(3), "refit") in names


def test_a_cluster_that_does_not_answer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(chunks, "CONNECT_TIMEOUT_SECONDS", 0.3)
    wanted = job()
    with pytest.raises(WorkerError, match=r"no Dask scheduler responds at tcp://127\.0\.0\.1:9 .*start one with"):
        train_many(
            wanted.learner, wanted.records, wanted.subsets, seed=0, execution=Execution(workers="tcp://127.0.0.1:9")
        )


def test_an_address_that_is_none_is_said() -> None:
    pytest.importorskip("distributed")
    wanted = job()
    with pytest.raises(WorkerError, match=r"no Dask scheduler responds at nonsense"):
        train_many(wanted.learner, wanted.records, wanted.subsets, seed=0, execution=Execution(workers="nonsense"))


def test_without_dask_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    wanted = job()
    with pytest.raises(MissingExtra, match=r"leakgauge\[dask\]"):
        train_many(
            wanted.learner, wanted.records, wanted.subsets, seed=0, execution=Execution(workers="tcp://127.0.0.1:9")
        )


def test_chunks_that_are_stored_are_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = job()
    first = train_many(wanted.learner, wanted.records, wanted.subsets, seed=0, execution=Execution(tmp_path))
    monkeypatch.setattr(Loop, "answers", lambda self, models: pytest.fail("trained again"))
    again = train_many(wanted.learner, wanted.records, wanted.subsets, seed=0, execution=Execution(tmp_path))
    np.testing.assert_array_equal(first.answers, again.answers)


DEAF = """
import signal

import joblib

from leakgauge.training.chunks import _deaf_to_ctrl_c


def heard():
    return signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


if __name__ == "__main__":
    with joblib.parallel_config(backend="loky"), _deaf_to_ctrl_c():
        answers = joblib.Parallel(n_jobs=2)(joblib.delayed(heard)() for _ in range(4))
    print(answers, heard())
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs masks of signals")
def test_processes_started_for_work_do_not_hear_ctrl_c(tmp_path: Path) -> None:
    """In a process of its own, where no helper of multiprocessing runs yet: each that starts hears signals again."""
    (tmp_path / "deaf.py").write_text(DEAF)
    done = subprocess.run([sys.executable, tmp_path / "deaf.py"], check=True, capture_output=True, text=True)
    assert done.stdout.split("] ") == ["[False, False, False, False", "True\n"], done.stderr


def test_two_threads_keep_the_working_folder_out_of_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second to come in is still inside when the first leaves; then all is as before."""
    for before in (None, "yes"):
        monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
        if before is not None:
            monkeypatch.setenv("PYTHONSAFEPATH", before)
        first, second = _safe_path(), _safe_path()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert os.environ["PYTHONSAFEPATH"] == (before or "1")
        second.__exit__(None, None, None)
        assert os.environ.get("PYTHONSAFEPATH") == before
