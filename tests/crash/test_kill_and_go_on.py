"""An audit that is killed, stopped, or run by more processes ends with the same bytes, and trains nothing twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from leakgauge.auditing.influence.elsewhere import N_SEARCHED

pytestmark = [pytest.mark.long, pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")]

N_TRAIN, N_HOLDOUT = 48, 64
N_SHADOWS = 8

LEARNER = '''
"""A learner that takes its time and writes down every training."""

import logging
import os
import time

import numpy as np
from sklearn.naive_bayes import GaussianNB

from leakgauge.models import ProbabilityAccess
from leakgauge.training import FunctionLearner

# What opens files itself is trained anew each time, since it may read what it depends on.
LOG = logging.getLogger("slow_learner")
LOG.setLevel(logging.INFO)
LOG.propagate = False
LOG.addHandler(logging.FileHandler(os.environ["TRAINING_LOG"]))


class Model(ProbabilityAccess):
    def __init__(self, fitted, n_classes):
        self.fitted = fitted
        self.n_classes = n_classes

    def log_probabilities(self, X):
        logs = np.full((len(X), self.n_classes), -np.inf)
        logs[:, self.fitted.classes_] = self.fitted.predict_log_proba(X)
        return logs


def train(records, seed):
    time.sleep(0.02)
    LOG.info("%d %d", os.getpid(), len(records))
    return Model(GaussianNB().fit(records.features, records.labels), len(records.schema.classes))


def slow():
    return FunctionLearner(train, randomised=False, name="slow")
'''

CONFIG = f"""
[data]
file = "people.csv"
target = "ill"
train_records = {N_TRAIN}
holdout_records = {N_HOLDOUT}

[[models]]
kind = "factory"
factory = "slow_learner:slow"

[attacks]
shadow_models = {N_SHADOWS}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a learner and a configuration."""
    folder = tmp_path_factory.mktemp("crash")
    rng = np.random.default_rng(0)
    ill = rng.integers(0, 2, 200)
    lines = [f"{a:.6f},{b:.6f},{i}" for a, b, i in zip(rng.normal(ill), rng.normal(size=200), ill, strict=True)]
    (folder / "people.csv").write_text("\n".join(["a,b,ill", *lines]) + "\n")
    (folder / "slow_learner.py").write_text(LEARNER)
    (folder / "audit.toml").write_text(CONFIG)
    return folder


def start(folder: Path, run: str, *options: str) -> subprocess.Popen[str]:
    """An audit in a process group of its own."""
    environment = {**os.environ, "TRAINING_LOG": str(folder / f"{run}.log"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "leakgauge", "audit", "audit.toml", "--run", run, *options]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(folder: Path, run: str, *options: str) -> tuple[int, str]:
    """Run an audit to its end; its exit code and what it said on stderr."""
    process = start(folder, run, *options)
    _, said = process.communicate(timeout=120)
    return process.returncode, said


def stop_in_the_middle(folder: Path, run: str, how: signal.Signals, *options: str) -> tuple[int, str]:
    """Signal the whole process group once two chunks are there and more are to come."""
    process = start(folder, run, *options)
    deadline = time.monotonic() + 60
    while len(chunks(folder, run)) < 2 or trained(folder, run) % 16 < 3:  # in the middle of another chunk
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.killpg(process.pid, how)
    _, said = process.communicate(timeout=60)
    return process.returncode, said


def chunks(folder: Path, run: str) -> dict[str, int]:
    """The finished chunks of a run and when they were written."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / run / "chunks").glob("*.npz")}


def trained(folder: Path, run: str) -> int:
    """How many models a run has trained in all its processes."""
    log = folder / f"{run}.log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def result(folder: Path, run: str) -> bytes:
    """The bytes of the result."""
    return (folder / run / "result.json").read_bytes()


def litter(folder: Path, run: str) -> list[str]:
    """Files that no finished run has."""
    known = {"checksums.sha256", "chunks", "ids.csv", "manifest.json", "records.csv", "report.html", "result.json"}
    found = [path.name for path in (folder / run).iterdir() if path.name not in known]
    return found + [path.name for path in (folder / run / "chunks").iterdir() if path.suffix != ".npz"]


@pytest.fixture(scope="module")
def undisturbed(folder: Path) -> Path:
    """The folder after an audit that nothing happened to."""
    code, said = finish(folder, "undisturbed")
    assert code in (0, 1, 3), said
    # The audited model, asked about everybody; the same, asked about them changed; another, asked about new values; the
    # shadow models; the same model, asked about its members; one without each member, after one to see how long that
    # takes, and without each candidate; one that is looked into; and both sorts again, to search for other queries
    # about those with the largest PDTP.
    n_without = N_TRAIN + N_TRAIN + N_HOLDOUT
    assert trained(folder, "undisturbed") == 1 + 1 + 1 + N_SHADOWS + 1 + 1 + n_without + 1 + 1 + N_SEARCHED
    assert litter(folder, "undisturbed") == []
    return folder


def test_an_audit_that_was_killed_goes_on(undisturbed: Path) -> None:
    """``kill -9`` of the whole group: finished chunks are kept, at most the one in the making is lost."""
    folder = undisturbed
    code, _ = stop_in_the_middle(folder, "killed", signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert not (folder / "killed" / "result.json").exists()
    before, n_before = chunks(folder, "killed"), trained(folder, "killed")
    # What a process leaves that is killed while it writes.
    (folder / "killed" / "chunks" / ".half.npz.0a1b2c3d.part").write_bytes(b"half")

    code, said = finish(folder, "killed")
    assert code in (0, 1, 3), said
    after = chunks(folder, "killed")
    assert {name: after[name] for name in before} == before  # none was made again
    n_all = trained(folder, "undisturbed")
    n_stored = sum(n_models(folder / "killed" / "chunks" / name) for name in before)
    assert trained(folder, "killed") - n_before == n_all - n_stored
    assert n_before - n_stored < 16
    assert result(folder, "killed") == result(folder, "undisturbed")
    assert litter(folder, "killed") == []


def n_models(chunk: Path) -> int:
    """How many models' answers a chunk holds."""
    with np.load(chunk) as archive:
        return len(archive["answers"])


@pytest.mark.slow
def test_two_processes_find_the_same(undisturbed: Path) -> None:
    folder = undisturbed
    code, said = finish(folder, "two", "--workers", "2")
    assert code in (0, 1, 3), said
    assert result(folder, "two") == result(folder, "undisturbed")
    assert trained(folder, "two") == trained(folder, "undisturbed")
    processes = {line.split()[0] for line in (folder / "two.log").read_text().splitlines()}
    assert len(processes) == 3  # the first and two workers
    assert litter(folder, "two") == []


def test_two_processes_that_were_killed_go_on_alone(undisturbed: Path) -> None:
    folder = undisturbed
    stop_in_the_middle(folder, "both", signal.SIGKILL, "--workers", "2")
    code, said = finish(folder, "both")
    assert code in (0, 1, 3), said
    assert result(folder, "both") == result(folder, "undisturbed")
    assert trained(folder, "both") <= trained(folder, "undisturbed") + 2 * 16
    assert litter(folder, "both") == []


@pytest.mark.parametrize(
    "options", [pytest.param((), marks=pytest.mark.slow), ("--workers", "2")], ids=["alone", "workers"]
)
def test_ctrl_c_ends_with_one_line_and_the_audit_goes_on(undisturbed: Path, options: tuple[str, ...]) -> None:
    folder, run = undisturbed, f"interrupted-{len(options)}"
    code, said = stop_in_the_middle(folder, run, signal.SIGINT, *options)
    assert code == 130, said
    assert said == "error: stopped; run the same command again to continue\n"
    code, said = finish(folder, run)
    assert code in (0, 1, 3), said
    assert result(folder, run) == result(folder, "undisturbed")
    assert litter(folder, run) == []


@pytest.mark.slow
def test_a_damaged_chunk_is_made_again(undisturbed: Path) -> None:
    folder = undisturbed
    shutil.copytree(folder / "undisturbed", folder / "damaged")
    shutil.copy(folder / "undisturbed.log", folder / "damaged.log")
    victim = max((folder / "damaged" / "chunks").glob("*.npz"), key=lambda path: path.stat().st_size)
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    n_before = trained(folder, "damaged")
    code, said = finish(folder, "damaged")
    assert code in (0, 1, 3)
    assert "is damaged" in said
    # One chunk, and the models of the search, which asks as it goes and keeps no table.
    assert 0 < trained(folder, "damaged") - n_before - (2 + N_SEARCHED) <= 16
    assert result(folder, "damaged") == result(folder, "undisturbed")


def test_the_manifest_says_what_was_run(undisturbed: Path) -> None:
    manifest = json.loads((undisturbed / "undisturbed" / "manifest.json").read_text())
    (model,) = manifest["inputs"]["models"]
    assert model["learner"].startswith("function-")
    assert model["source"].startswith("slow_learner:slow {} code-")
    assert len(model["train"]) == len(model["holdout"]) == 64
    assert manifest["seconds"] > 0
