"""Who closes the pipe, or presses Ctrl-C, gets the exit code that belongs to it, one line at most, and no litter."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from leakgauge.__main__ import run
from leakgauge.auditing.batch import audit_config
from leakgauge.auditing.config import Config
from leakgauge.cli._streams import Lasting, lasting_streams
from leakgauge.cli.main import main

pytestmark = [pytest.mark.long, pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")]

COMMAND = [sys.executable, "-m", "leakgauge"]

STOPPED = ("", "error: stopped\n", "error: stopped; run the same command again to continue\n")
"""What is said, depending on how far it was: one line at most."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a model that fails."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    audit_config(Config.for_dataset("wine", train_records=60, holdout_records=60), folder=folder)
    return folder


def with_closed(arguments: list[str], *, out: bool, err: bool) -> tuple[int, str]:
    """The exit code, and what was said on stderr, with pipes that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=write if out else subprocess.PIPE,
        stderr=write if err else subprocess.PIPE,
        text=True,
    )
    os.close(write)
    _, said = process.communicate(timeout=120)
    return process.returncode, said or ""


NOT_CHECKED = (
    "Judged from the estimates in result.json. No signature was checked (leakgauge verify --key does): without one, "
    "anyone who can write to the file can change them.\n"
)


@pytest.mark.parametrize(
    "command",
    [
        ["gate"],
        pytest.param(["report", "--markdown"], marks=pytest.mark.slow),
        pytest.param(["records", "--csv"], marks=pytest.mark.slow),
    ],
    ids=lambda c: c[0],
)
def test_a_closed_pipe_changes_no_exit_code(finished: Path, command: list[str]) -> None:
    arguments = [command[0], str(finished), *command[1:]]
    expected = main(arguments)
    code, said = with_closed(arguments, out=True, err=False)
    assert code == expected
    assert said in ("", NOT_CHECKED)


@pytest.mark.slow
def test_closed_pipes_change_no_exit_code_of_errors_either(finished: Path) -> None:
    assert with_closed(["gate", "nowhere"], out=True, err=True) == (2, "")
    assert with_closed(["gate", str(finished)], out=True, err=True) == (1, "")


def test_streams_that_were_closed_from_the_start(finished: Path) -> None:
    for closing in (">&-", ">&- 2>&- <&-"):
        done = subprocess.run(
            ["sh", "-c", f'"$0" -m leakgauge gate "$1" {closing}', sys.executable, str(finished)],
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1
        assert done.stderr in ("", NOT_CHECKED)


def test_what_cannot_be_written_for_want_of_space_is_an_error(finished: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "gate", str(finished)], check=False, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: No space left on device")


@pytest.mark.parametrize(
    ("arguments", "both", "expected"),
    [
        pytest.param("nowhere", False, 2, marks=pytest.mark.slow),
        pytest.param("", False, 1, marks=pytest.mark.slow),
        ("", True, 2),
    ],
)
def test_messages_that_find_no_space_change_no_exit_code(
    finished: Path, arguments: str, both: bool, expected: int
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with open("/dev/full", "w") as full:
        command = [*COMMAND, "gate", arguments or str(finished)]
        done = subprocess.run(command, check=False, stdout=full if both else subprocess.PIPE, stderr=full)
    assert done.returncode == expected


def test_a_stream_without_a_reader_drops_what_is_written() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as behind:
        stream = Lasting(behind)
        assert stream.write("x" * 100_000) == 100_000
        stream.writelines(["a", "b"])
        stream.flush()
        assert stream.encoding == behind.encoding


def test_the_streams_are_as_before_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    before = sys.stdout
    with lasting_streams():
        assert isinstance(sys.stdout, Lasting)
        print("x", file=sys.stderr)
    assert sys.stdout is before
    assert sys.stderr is None


def test_other_errors_of_a_stream_are_told() -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, "broken")

    with pytest.raises(OSError, match="broken"):
        Lasting(Broken()).write("x")


INTERRUPTED = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

module = sys.argv.pop(1)
sys.meta_path.insert(0, Interrupts())
from leakgauge.__main__ import run
sys.exit(run())
"""
"""A command line that gets SIGINT when it imports a module."""


@pytest.mark.parametrize(
    "module",
    [
        pytest.param("leakgauge.cli", marks=pytest.mark.slow),
        "typer",
        pytest.param("leakgauge.auditing.config", marks=pytest.mark.slow),
        "numpy",
        pytest.param("pyarrow.csv", marks=pytest.mark.slow),
        pytest.param("sklearn.pipeline", marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_in_the_middle_of_an_import_is_one_line(tmp_path: Path, module: str) -> None:
    (tmp_path / "people.csv").write_text("a,y\n" + "1,p\n2,q\n" * 30)
    (tmp_path / "audit.toml").write_text('[data]\nfile = "people.csv"\ntarget = "y"\n')
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module, "audit", "audit.toml"],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr in STOPPED


@pytest.mark.parametrize("code", [0, 1, 2, 130])
def test_only_a_stopped_command_ends_the_process_by_itself(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Everything else is left to Python, which runs what was registered for its end; what was said is not lost."""
    ended: list[int] = []
    arrived: list[tuple[bytes, bytes]] = []
    behind = io.BytesIO(), io.BytesIO()

    def main() -> int:
        print("a line")
        print("another", file=sys.stderr)
        return code

    def end(status: int) -> None:
        ended.append(status)
        arrived.append((behind[0].getvalue(), behind[1].getvalue()))

    monkeypatch.setattr("leakgauge.cli.main.main", main)
    monkeypatch.setattr("os._exit", end)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(behind[0], newline=""))
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(behind[1], newline=""))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    try:
        assert run() == code
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert ended == [130] * (code == 130)
    assert [[one.split() for one in said] for said in arrived] == [[[b"a", b"line"], [b"another"]]] * (code == 130)


SLOW = """
import os, time
from pathlib import Path
from leakgauge.models import FunctionProbabilities
from leakgauge.training import FunctionLearner

Path(f"imported-{os.getpid()}").touch()
time.sleep(0.3)


def answers(X):
    return [[0.5, 0.5]] * len(X)


def train(records, seed):
    time.sleep(0.05)
    return FunctionProbabilities(answers, records.schema)


def learner():
    return FunctionLearner(train, name="slow")
"""


@pytest.mark.parametrize("twice", [pytest.param(False, marks=pytest.mark.slow), True])
def test_ctrl_c_while_worker_processes_start_is_one_line(tmp_path: Path, twice: bool) -> None:
    """They are importing the user's module; a second press, while they are ended, changes nothing."""
    (tmp_path / "slow.py").write_text(SLOW)
    rows = "\n".join(f"{i},{i * i % 7},{'pq'[i % 2]}" for i in range(200))
    (tmp_path / "people.csv").write_text(f"a,b,y\n{rows}\n")
    (tmp_path / "audit.toml").write_text(
        '[data]\nfile = "people.csv"\ntarget = "y"\n[[models]]\nkind = "factory"\nfactory = "slow:learner"\n'
    )
    process = subprocess.Popen(
        [*COMMAND, "audit", "audit.toml", "--run", "run", "--workers", "2"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("imported-*"))) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for _ in range(1 + twice):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.05)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert said in STOPPED
    assert [path.name for path in tmp_path.rglob("*.part")] == []
