"""A worker that is killed in the middle of its work costs time and changes no number, here and on a cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.long, pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")]

SCRIPT = '''
"""Train 40 models and print what they answer: script.py [workers|dask] [how many times a worker dies]."""

import hashlib
import os
import signal
import sys
from pathlib import Path

import numpy as np
from sklearn.naive_bayes import GaussianNB

from leakgauge.errors import WorkerError
from leakgauge.models import wrap
from leakgauge.records import Records
from leakgauge.training import Execution, FunctionLearner, random_subsets, train_many

def train(records, seed):
    if os.environ["DEATHS"] != "0" and seed % 5 == 0 and os.getppid() != int(os.environ["PARENT"]):
        for death in range(int(os.environ["DEATHS"])):
            try:
                Path(f"death-{death}").touch(exist_ok=False)
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)
    with open("trained.log", "a") as log:
        log.write(f"{os.getpid()}\\n")
    fitted = GaussianNB().fit(records.schema.decode(records.features), records.labels)
    return wrap(fitted, records.schema)


def answers(workers):
    rng = np.random.default_rng(0)
    records = Records.from_arrays(rng.normal(size=(30, 3)), np.arange(30) % 2)
    subsets = random_subsets(30, 20, 40, rng)
    table = train_many(FunctionLearner(train), records, subsets, seed=1, execution=Execution(Path("run"), workers))
    return hashlib.sha256(table.answers.tobytes()).hexdigest()


if __name__ == "__main__":
    os.environ["PARENT"] = str(os.getppid())
    try:
        if sys.argv[1] == "dask":
            from distributed import LocalCluster

            with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
                print(answers(cluster.scheduler_address))
        else:
            print(answers(int(sys.argv[1])))
    except WorkerError as error:
        print(f"given up: {error}")
'''


def run(folder: Path, workers: str, deaths: int = 0) -> str:
    """What the script prints when so many workers are killed."""
    (folder / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "DEATHS": str(deaths), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(folder)}
    command = [sys.executable, "-W", "ignore", "script.py", workers]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def died(folder: Path) -> int:
    return len(list(folder.glob("death-*")))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = run(tmp_path_factory.mktemp("alone"), "1")
    assert len(found) == 64
    return found


def test_a_killed_process_costs_no_number(tmp_path: Path, undisturbed: str) -> None:
    assert run(tmp_path, "2", deaths=1) == undisturbed
    assert died(tmp_path) == 1
    assert len(set((tmp_path / "trained.log").read_text().split())) >= 2


def test_processes_that_always_die_are_given_up(tmp_path: Path) -> None:
    said = run(tmp_path, "2", deaths=1000)
    assert said.startswith("given up: worker processes died 3 times in a row")
    assert "use fewer workers" in said


@pytest.mark.slow
def test_a_cluster_finds_the_same(tmp_path: Path, undisturbed: str) -> None:
    pytest.importorskip("distributed")
    assert run(tmp_path, "dask") == undisturbed
    assert len(set((tmp_path / "trained.log").read_text().split())) == 2


def test_a_killed_worker_of_a_cluster_costs_no_number(tmp_path: Path, undisturbed: str) -> None:
    pytest.importorskip("distributed")
    assert run(tmp_path, "dask", deaths=1) == undisturbed
    assert died(tmp_path) == 1
