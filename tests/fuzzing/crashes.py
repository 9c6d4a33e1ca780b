"""Kills at random moments, flipped bits, and full disks; what follows is the same result, or one clear line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from fuzzing import callers, surfaces, tables
from fuzzing.drive import COMMAND, Defect, Trial
from leakgauge.cli import main as command_line

Counts = dict[str, dict[str, Any]]

SLOW = """
import time
import numpy as np
from sklearn.naive_bayes import GaussianNB
from leakgauge.models import wrap
from leakgauge.training import FunctionLearner


def train(records, seed):
    time.sleep(0.01)
    schema = records.schema
    return wrap(GaussianNB().fit(schema.decode(records.features), schema.decode_labels(records.labels)), schema)


def slow():
    return FunctionLearner(train, randomised=False, name="slow")
"""

CONFIG = """
[data]
train = "train.csv"
holdout = "holdout.csv"
target = "ill"

[[models]]
kind = "factory"
factory = "zq_slow:slow"

[attacks]
shadow_models = 4
names = ["gap", "lira"]

[rule]
attacks = ["gap", "lira"]
"""

SAME = ("result.json", "records.csv", "ids.csv")
"""Files that hold no times."""


def prepare(folder: Path) -> Path:
    """Tables, a learner that takes its time, and the file of an audit."""
    for name in ("train", "holdout"):
        (folder / f"{name}.csv").write_bytes(tables.as_csv(callers.numbers(Random(name), 40, name[0])))
    (folder / "zq_slow.py").write_text(SLOW)
    (folder / "audit.toml").write_text(CONFIG)
    return folder


def forked(function: Callable[[], int], said: Path) -> int:
    """Call a function in a child process with a group of its own; the process id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        os.setsid()
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        code = function()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def waited(child: int, seconds: float = 120.0) -> int:
    """The exit code of a child, negative for a signal."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # workers that wait for more to do
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise Defect("too slow", f"no end after {seconds:.0f} s")


def audit(folder: Path, run: str, *options: str) -> Callable[[], int]:
    """The command line of an audit."""
    return lambda: command_line.main(["audit", str(folder / "audit.toml"), "--run", str(folder / run), *options])


def finished(folder: Path, run: str) -> dict[str, bytes]:
    """What an audit left that holds no times."""
    return {name: (folder / run / name).read_bytes() for name in SAME}


def clear(said: str) -> bool:
    """Whether the last line is that of an error of ours, and nothing else went wrong."""
    lines = said.rstrip("\n").splitlines()
    return bool(lines) and lines[-1].startswith("error: ") and "Traceback" not in said and "internal error" not in said


def goes_on(folder: Path, run: str, whole: dict[str, bytes], *options: str) -> None:
    """Run a killed audit again: the result is that of an undisturbed one, and nothing half written is left."""
    said = folder / "said"
    code = waited(forked(audit(folder, run, *options), said))
    if code not in (0, 1, 3):
        raise Defect("does not go on", f"{code}: {said.read_text()[-500:]}")
    if finished(folder, run) != whole:
        raise Defect("another result", run)
    left = [path.name for path in (folder / run).rglob("*.part")]
    if left or not (folder / run / "report.html").exists():
        raise Defect("half a file", f"{left} in {run}, or no report")


def children(of: int) -> list[int]:
    """The processes of Python that a process has started, and those that these have."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                words = (entry / "cmdline").read_bytes()
                if parent == of and b"tracker" not in words:
                    found += [int(entry.name), *children(int(entry.name))]
    return found


def one_kill(kind: str, rng: Random, folder: Path, whole: dict[str, bytes], seconds: float, cluster: Any = None) -> str:
    """Kill something at a random moment, and go on; how it ended."""
    run, said = f"run-{rng.randrange(2**40)}", folder / "said"
    options: tuple[str, ...] = ()
    if "loky" in kind:
        options = ("--workers", "2")
    if "Dask" in kind:
        options = ("--dask", cluster.address)
    act = audit(folder, run, *options)
    if "between" in kind:
        child = forked(lambda: _killed_after_the_result(act, rng.randrange(7)), said)
    else:
        child = forked(act, said)
        time.sleep(rng.uniform(0.02, 1.0) * seconds)
        victims = (
            children(cluster.process.pid)
            if kind == "Dask worker"
            else children(child)
            if kind == "loky worker"
            else [child]
        )
        for victim in rng.sample(victims, 1) if victims else ():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL) if victim == child else os.kill(victim, signal.SIGKILL)
    code = waited(child)
    if code == 2 and not clear(said.read_text()):
        raise Defect("no clear line", said.read_text()[-500:])
    if code not in (0, 1, 2, 3, -signal.SIGKILL):
        raise Defect("exit code", f"{code}: {said.read_text()[-500:]}")
    if code in (0, 1, 3):
        if finished(folder, run) != whole:
            raise Defect("another result", f"{kind}, not run again")
    else:
        goes_on(folder, run, whole, *(options if kind == "Dask client" else ()))
    shutil.rmtree(folder / run)
    return {2: "one line, then the same"}.get(code, "same after going on" if code < 0 else "same without a second run")


def _killed_after_the_result(act: Callable[[], int], steps: int) -> int:
    """Run an audit that kills itself so many system calls after it wrote its result."""
    state = {"left": -1}

    def step(function: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*given: Any, **more: Any) -> Any:
            if state["left"] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            state["left"] -= state["left"] > 0
            done = function(*given, **more)
            if function is replace and str(given[1]).endswith("result.json"):
                state["left"] = steps
            return done

        return stepped

    replace = os.replace
    os.replace, os.fsync, os.open = step(os.replace), step(os.fsync), step(os.open)  # type: ignore[assignment]
    return act()


KILLS = {
    "audit": 30,
    "audit, between result.json and the end": 16,
    "audit with two loky workers": 14,
    "loky worker": 14,
    "Dask worker": 13,
    "Dask client": 13,
}


class Cluster:
    """A cluster of two workers on this machine, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        script = (
            "import sys\nfrom distributed import LocalCluster\nif __name__ == '__main__':\n"
            "    given = {'n_workers': 2, 'threads_per_worker': 1, 'host': '127.0.0.1', 'dashboard_address': None}\n"
            "    with LocalCluster(**given) as cluster:\n"
            "        print(cluster.scheduler_address, flush=True)\n        sys.stdin.read()\n"
        )
        (folder / "cluster.py").write_text(script)
        path = os.pathsep.join([str(folder), *filter(None, sys.path)])
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "cluster.py"], cwd=folder, env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    def close(self) -> None:
        """End it."""
        self.process.stdin.close()  # type: ignore[union-attr]
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            for child in children(self.process.pid):
                os.kill(child, signal.SIGKILL)
            self.process.kill()


@contextmanager
def undisturbed() -> Iterator[tuple[Path, dict[str, bytes]]]:
    """A folder after an audit that nothing happened to, and what that left."""
    with _folder() as folder:
        prepare(folder)
        code = waited(forked(audit(folder, "whole"), folder / "said"))
        assert code in (0, 1, 3), (folder / "said").read_text()
        yield folder, finished(folder, "whole")


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="leakgauge-robust-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def counted(counts: Counts, name: str, n: int, write: Any, one: Callable[[int], str]) -> None:
    """Count how cases ended, going on where the counts end."""
    row = counts.setdefault(name, {"cases": 0, "defects": 0})
    while row["cases"] < n:
        try:
            end = one(row["cases"])
        except Defect as defect:
            print(f"{name}:{row['cases']}: {defect}", flush=True)
            end = "defects"
        row[end] = row.get(end, 0) + 1
        row["cases"] += 1
        if row["cases"] % 5 == 0 or row["cases"] == n:
            write()
    print(name, row, flush=True)


def kills(counts: Counts, write: Any) -> None:
    """Kill audits, workers and clients at random moments."""
    with undisturbed() as (folder, whole):
        for kind, n in KILLS.items():
            if counts.get(kind, {}).get("cases", 0) >= n:
                continue
            cluster = Cluster(folder) if "Dask" in kind else None
            options = ("--dask", cluster.address) if cluster else ("--workers", "2") if "loky" in kind else ()
            try:
                start = time.monotonic()
                goes_on(folder, f"first-{n}-{len(kind)}", whole, *options)
                seconds = time.monotonic() - start
                counted(
                    counts, kind, n, write,
                    lambda k, kind=kind, seconds=seconds, cluster=cluster: one_kill(
                        kind, Random(f"{kind}:{k}"), folder, whole, seconds, cluster
                    ),
                )  # fmt: skip
            finally:
                if cluster:
                    cluster.close()


def told(*arguments: object) -> tuple[int, str, str]:
    """Run a command in this process; its exit code, and what it said."""
    out, err = io.StringIO(), io.StringIO()
    made_once = mock.patch.object(command_line, "app", COMMAND)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), made_once:
        code = command_line.main([str(one) for one in arguments])
    if code == 4 or (code == 2 and not clear(err.getvalue())):
        raise Defect("no clear line", f"{arguments}: {err.getvalue()[-500:]}")
    return code, out.getvalue(), err.getvalue()


def flipped(path: Path, rng: Random) -> tuple[bytes, bytes]:
    """The content of a file, and what it is after one bit was flipped, of its first or last bytes or anywhere."""
    content = path.read_bytes()
    n = len(content)
    place = rng.choice(
        (rng.randrange(n), rng.randrange(n), rng.randrange(min(n, 64)), n - 1 - rng.randrange(min(n, 64)))
    )
    damaged = bytearray(content)
    damaged[place] ^= 1 << rng.randrange(8)
    path.write_bytes(damaged)
    return content, bytes(damaged)


@contextmanager
def _flipped(path: Path, rng: Random) -> Iterator[None]:
    before, _ = flipped(path, rng)
    try:
        yield
    finally:
        path.write_bytes(before)


def flips(counts: Counts, write: Any) -> None:
    """Flip single bits of everything that is read again."""
    with _folder() as folder:
        for name, (n, one) in _flips(folder).items():
            counted(counts, name, n, write, lambda k, name=name, one=one: one(Random(f"{name}:{k}")))


def _flips(folder: Path) -> dict[str, tuple[int, Callable[[Random], str]]]:
    """What is flipped, how often, and how it is looked at."""
    prepare(folder)
    run, scored, stored = folder / "run", folder / "scored", folder / "stored"
    table, others = (
        maker(Random(0), 60, "p_", *k) for maker, k in ((surfaces.score_table, ()), (surfaces.reference_table, (4,)))
    )
    (folder / "scores.csv").write_bytes(tables.as_csv(table))
    (folder / "references.csv").write_bytes(tables.as_csv(others))
    (folder / "model.skops").write_bytes(callers.stored_models(0)[0][1])
    cheap: dict[str, Any] = {
        "attacks": {"shadow_models": 0, "names": ["gap"]}, "influence": {"records": 0},
        "rule": {"dtp": "none", "advantage": 0.5, "attacks": ["gap"]},
    }  # fmt: skip
    data = {"train": "train.csv", "holdout": "holdout.csv", "target": tables.TARGET}
    scores = {"kind": "scores", "path": "scores.csv", "references": "references.csv"}
    (folder / "scored.json").write_text(
        json.dumps(
            {"models": [scores], "rule": cheap["rule"] | {"attacks": "none"}}
            | {"rule": {"dtp": "none", "advantage": 0.5}}
        )
    )
    (folder / "stored.json").write_text(
        json.dumps({**cheap, "data": data, "models": [{"kind": "file", "path": "model.skops"}]})
    )
    sources = {run: folder / "audit.toml", scored: folder / "scored.json", stored: folder / "stored.json"}
    for place, source in sources.items():
        code, _, err = told("audit", source, "--run", place)
        assert code in (0, 1, 3), err
    whole = {place: (place / "result.json").read_bytes() for place in sources}
    plain = {
        command: told(*command)
        for command in (("gate", str(run)), ("report", str(run), "--markdown"), ("records", str(run)))
    }

    def sealed(name: str) -> Callable[[Random], str]:
        def look(rng: Random) -> str:
            with _flipped(run / name, rng):
                code, _, _ = told("verify", run)
                if code == 0:
                    raise Defect("wrong number accepted", f"verify finds nothing in {name}")
                for command, before in plain.items():
                    code, out, err = told(*command)
                    if code != 2 and (code, out) != before[:2] and err == before[2]:
                        raise Defect(
                            "wrong number accepted", f"{command[0]} prints another text after a flip in {name}"
                        )
            return "noticed"

        return look

    def again(place: Path, *paths: Path, forget: bool = False) -> Callable[[Random], str]:
        """The same audit again, in the folder of the first, after a flip."""

        def look(rng: Random) -> str:
            chosen = rng.choice(
                [one for path in paths for one in (sorted(path.glob("*")) if path.is_dir() else [path])]
            )
            kept = folder / "kept"
            shutil.copytree(place, kept)
            try:
                if forget:
                    (place / "result.json").unlink()
                inside = place in chosen.parents
                before, _ = flipped(chosen, rng)
                try:
                    code, _, _ = told("audit", sources[place], "--run", place)
                    if code == 2:
                        return "noticed"
                    if (place / "result.json").read_bytes() != whole[place]:
                        raise Defect("wrong number accepted", f"after a flip in {chosen.name}")
                    return "same"
                finally:
                    if not inside:
                        chosen.write_bytes(before)
            finally:
                shutil.rmtree(place)
                kept.rename(place)

        return look

    return {
        "result.json": (200, sealed("result.json")),
        "records.csv and ids.csv": (80, lambda rng: sealed(rng.choice(("records.csv", "ids.csv")))(rng)),
        "manifest.json": (70, sealed("manifest.json")),
        "report.html": (40, sealed("report.html")),
        "checksums.sha256": (60, sealed("checksums.sha256")),
        "manifest.json, and the audit again": (60, again(run, run / "manifest.json")),
        "chunks of predictions": (150, again(run, run / "chunks", forget=True)),
        "tables and file of the audit": (
            90,
            again(run, folder / "train.csv", folder / "holdout.csv", folder / "audit.toml"),
        ),
        "model file": (100, again(stored, folder / "model.skops")),
        "files of scores": (70, again(scored, folder / "scores.csv", folder / "references.csv")),
        "answers of an endpoint": (50, _answers(folder)),
        "coins of canaries": (50, _coins(folder)),
    }


def _answers(folder: Path) -> Callable[[Random], str]:
    """The answers that an audit of an endpoint keeps."""

    def look(rng: Random) -> str:
        with _folder() as place, callers.endpoint(_Always()) as (url, _):
            trial = Trial(Random(3), place)
            for name in ("train", "holdout"):
                (place / f"{name}.csv").write_bytes(tables.as_csv(callers.numbers(Random(name), 12, name[0])))
            data = {"train": "train.csv", "holdout": "holdout.csv", "target": tables.TARGET}
            part = {"kind": "endpoint", "url": url, "classes": ["kqno", "kqyes"], "attempts": 1}
            held = {
                "data": data, "models": [part], "attacks": {"shadow_models": 0, "names": ["gap"]},
                "influence": {"records": 0}, "rule": {"dtp": "none", "advantage": 0.5, "attacks": ["gap"]},
            }  # fmt: skip
            source, run = trial.write("audit.json", json.dumps(held)), place / "run"
            told("audit", source, "--run", run)
            whole = (run / "result.json").read_bytes()
            (run / "result.json").unlink()
            flipped(rng.choice(sorted((run / "answers").iterdir())), rng)
            code, _, _ = told("audit", source, "--run", run)
            if code == 2:
                return "noticed"
            if (run / "result.json").read_bytes() != whole:
                raise Defect("wrong number accepted", "after a flip in an answer")
            return "same"

    return look


class _Always(Random):
    """Draws that make the endpoint one that answers rightly."""

    def choice(self, seq: Any) -> Any:
        """The first."""
        return seq[0]


def _coins(folder: Path) -> Callable[[Random], str]:
    """The canaries and their coins, whose digest is published."""
    made, scores, claim = folder / "made", folder / "canary-scores.csv", "epsilon=0.1,delta=0"
    given = ["canaries", "make", folder / "train.csv", "--target", tables.TARGET, "--out", made, "--n", 60, "--seed", 1]
    assert told(*given)[0] == 0
    coins = json.loads((made / "coins.json").read_text())["included"]
    scores.write_text("score\n" + "\n".join(f"{2 * one + 0.01 * i}" for i, one in enumerate(coins)) + "\n")
    command = ("canaries", "measure", scores, "--canaries", made, "--claim", claim)
    whole = told(*command)

    def look(rng: Random) -> str:
        with _flipped(made / rng.choice(("coins.json", "canaries.json")), rng):
            found = told(*command)
            if found[0] == 2:
                return "noticed"
            if found[:2] != whole[:2]:
                raise Defect("wrong number accepted", "after a flip in the coins")
            return "same"

    return look


SIZES = (0.1, 0.3, 0.5, 0.7, 0.85, 0.97)
"""Of a disk, as a share of what an undisturbed command writes."""


@contextmanager
def disk(place: Path, size: int) -> Iterator[None]:
    """A file system in memory of so many bytes; takes the rights of root."""
    place.mkdir(exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], capture_output=True, check=False
    )
    if done.returncode:
        raise OSError("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def _held(path: Path) -> Any:
    """What a file holds; of a model, which is never stored twice alike, what an inspection finds in it."""
    return told("inspect", path) if path.suffix == ".skops" else path.read_bytes()


def disks(counts: Counts, write: Any, *, sizes: Sequence[float] = SIZES) -> None:
    """Commands on disks that are too small for what they write; of these sizes, as shares of that."""
    with _folder() as folder:
        prepare(folder)
        model = folder / "model.skops"
        model.write_bytes(callers.stored_models(0)[2][1])
        place = folder / "disk"
        data = ("--data", folder / "train.csv", "--target", tables.TARGET)
        commands: dict[str, tuple[tuple[Any, ...], tuple[str, ...]]] = {
            "audit": (("audit", folder / "audit.toml", "--run", place / "run"), tuple(f"run/{name}" for name in SAME)),
            "protect": (
                (
                    "protect",
                    folder / "audit.toml",
                    "--defence",
                    "labels-only",
                    "--out",
                    place / "out",
                    "--run",
                    place / "kept",
                ),
                ("out/protection.json",),
            ),
            "inspect --clean": (("inspect", model, *data, "--clean", place / "clean.skops"), ("clean.skops",)),
            "canaries make": (
                (
                    "canaries",
                    "make",
                    folder / "train.csv",
                    "--target",
                    tables.TARGET,
                    "--out",
                    place / "made",
                    "--seed",
                    1,
                ),
                ("made/training.csv", "made/coins.json"),
            ),
        }
        for name, (command, files) in commands.items():
            with disk(place, 2**28):
                first = told(*command)
                assert first[0] in (0, 1, 3), first
                whole = {one: _held(place / one) for one in files}
                used = shutil.disk_usage(place).used

            def one(
                k: int,
                *,
                command: Any = command,
                files: Any = files,
                whole: Any = whole,
                used: int = used,
                first: Any = first,
            ) -> str:
                with disk(place, max(4096, int(sizes[k] * used) // 4096 * 4096)):
                    code, _, _ = told(*command)
                    left = [path.name for path in place.rglob("*.part")]
                    there = {one: _held(place / one) for one in files if (place / one).exists()}
                    if left or any(there[one] != whole[one] for one in there):
                        raise Defect("half a file", f"{left} {list(there)} of {command[0]} at {sizes[k]:.0%}")
                    if code != 2:
                        if there != whole:
                            raise Defect("half a file", f"{command[0]} ends with {code} and without its files")
                        return "same"
                    subprocess.run(["mount", "-o", "remount,size=256m", place], check=True)
                    code, _, err = told(*command)
                    if code != first[0] or {one: _held(place / one) for one in files} != whole:
                        raise Defect("another result", f"{command[0]} at {sizes[k]:.0%}: {code} {err[-300:]}")
                    return "one line, then the same"

            counted(counts, name, len(sizes), write, one)


PARTS: dict[str, Callable[[Counts, Any], None]] = {"kills": kills, "flips": flips, "disks": disks}
HEADINGS = {"kills": "Kills", "flips": "Flipped bits", "disks": "Full disks"}
