"""Audits of many kinds in one process, round after round: does anything grow?

    python benchmarks/soak.py [--rounds 3] [--quick] [--out docs/benchmarks]

A round is a sequence of audits: learners, questions, persons, scores, an endpoint, a file with its gate, worker
processes, `protect`. After each, what the process holds is counted: resident memory, open files, threads, child
processes, temporary files, and folders of ours or of joblib in shared memory. The last round is
compared with the one before, audit by audit, as the first ones still load modules and start workers. Then the same
audits run two at a time, in two threads and in two processes, as users would start them. Each audit must give the same
bytes every time.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import leakgauge as lg

N = 60
"""Records of either kind."""

X, Y = (part[: 2 * N] for part in load_breast_cancer(return_X_y=True))
X = X[:, :8].copy()
SHARED_MEMORY = Path("/dev/shm")

FILE = """
[data]
dataset = "breast-cancer"
train_records = 60
holdout_records = 60

[attacks]
shadow_models = 8

[[models]]
kind = "recipe"
name = "naive-bayes"
"""


def audited(model: Any, *, target: Any = None, workers: int = 1, **settings: Any) -> str:
    """The result of an audit of few shadow models and records left out, as JSON."""
    y = Y if target is None else target
    few = lg.Settings(n_shadows=8, n_influence=6, **settings)
    given: dict[str, Any] = {"train": (X[:N], y[:N]), "holdout": (X[N:], y[N:])}
    return str(lg.audit(model, settings=few, workers=workers, progress=False, **given).to_json())


def of_persons() -> str:
    persons = np.arange(2 * N) // 3
    few = lg.Settings(n_shadows=8, n_influence=6)
    given: dict[str, Any] = {"train": (X[:N], Y[:N]), "holdout": (X[N:], Y[N:])}
    found = lg.audit(GaussianNB(), settings=few, persons=(persons[:N], persons[N:]), progress=False, **given)
    return str(found.to_json())


def of_scores() -> str:
    from leakgauge.auditing import audit_scores

    loss = np.random.default_rng(0).exponential(size=2 * N)
    few = lg.Settings(rule=lg.ReleaseRule(dtp=None))
    return str(audit_scores(np.arange(2 * N) < N, loss=loss, settings=few, progress=False).to_json())


@contextlib.contextmanager
def served(model: Any) -> Iterator[str]:
    """A model behind the protocol of mlflow, on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *given: object) -> None:
            pass

        def do_POST(self) -> None:
            table = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["dataframe_split"]
            answer = json.dumps({"predictions": model.predict_proba(np.array(table["data"])).tolist()}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def of_endpoint() -> str:
    given: dict[str, Any] = {"train": (X[:N], Y[:N]), "holdout": (X[N:], Y[N:])}
    with served(GaussianNB().fit(X[:N], Y[:N])) as url:
        few = lg.Settings(n_shadows=8, n_influence=6)
        found = lg.audit(lg.Endpoint(url), learner=GaussianNB(), name="served", settings=few, progress=False, **given)
    return str(found.to_json())


def of_module() -> str:
    import torch
    from torch import nn

    def factory() -> nn.Module:
        return nn.Sequential(nn.Linear(X.shape[1], 8), nn.ReLU(), nn.Linear(8, 2))

    torch.set_num_threads(1)
    return audited(lg.TorchLearner(factory, n_epochs=3, name="module"))


def of_file() -> str:
    """An audit of a TOML file with its report, a second start that finds everything done, and the gate."""
    from leakgauge.auditing.batch import audit_config
    from leakgauge.auditing.config import load_config
    from leakgauge.auditing.gate import Limits, apply
    from leakgauge.report import write_report

    with tempfile.TemporaryDirectory() as folder:
        path, run = Path(folder) / "audit.toml", Path(folder) / "run"
        path.write_text(FILE)
        for _ in range(2):
            outcome = audit_config(load_config(path), folder=run)
            write_report(outcome.run, outcome.document)
        return f"{apply(outcome.document, Limits()).verdict} {(run / 'result.json').read_text()}"


def of_defences() -> str:
    given: dict[str, Any] = {"train": (X[:N], Y[:N]), "holdout": (X[N:], Y[N:])}
    few = lg.Settings(n_shadows=8, n_influence=6)
    found = lg.protect(lg.subject(GaussianNB(), **given), few, progress=False)
    return str(found)


def own_attack(evidence: Any) -> Any:
    """The confidence in the true class, as an attack of the user's."""
    return evidence.answers[np.arange(len(evidence.labels)), evidence.labels] + 0.1


COARSE = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.25, 0.5, 0.75]))

AUDITS: dict[str, Callable[[], str]] = {
    "naive Bayes": lambda: audited(GaussianNB()),
    "logistic regression": lambda: audited(LogisticRegression(max_iter=1000)),
    "pipeline": lambda: audited(make_pipeline(StandardScaler(), LogisticRegression())),
    "random forest": lambda: audited(RandomForestClassifier(10)),
    "boosting": lambda: audited(HistGradientBoostingClassifier(max_iter=10)),
    "network": lambda: audited(make_pipeline(StandardScaler(), MLPClassifier(8, max_iter=20))),
    "nearest neighbours": lambda: audited(KNeighborsClassifier()),
    "tree": lambda: audited(DecisionTreeClassifier()),
    "ridge regression": lambda: audited(Ridge(), target=X[:, 0] + X[:, 1]),
    "regression tree": lambda: audited(DecisionTreeRegressor(), target=X[:, 0] + X[:, 1]),
    "fitted model": lambda: audited(GaussianNB().fit(X[:N], Y[:N])),
    "labels": lambda: audited(GaussianNB(), released=lg.ReleasedOutputs.LABELS),
    "binned": lambda: audited(GaussianNB(), released=lg.ReleasedOutputs.BINNED),
    "model file": lambda: audited(RandomForestClassifier(5, random_state=0).fit(X[:N], Y[:N]), released_to="file"),
    "population": lambda: audited(GaussianNB(), population=0.2, attacks=("all", "population", "quantile")),
    "own attack": lambda: audited(GaussianNB(), attacks=("all", own_attack)),
    "sensitive attribute": lambda: audited(
        GaussianNB(), attributes=(lg.SensitiveColumn("x0", edges=tuple(np.quantile(X[:, 0], [0, 0.3, 0.7, 1]))),)
    ),
    "persons": of_persons,
    "scores": of_scores,
    "endpoint": of_endpoint,
    "torch module": of_module,
    "file, report, gate": of_file,
    "protect": of_defences,
    "two workers": lambda: audited(DecisionTreeClassifier(max_depth=3), workers=2),
}

QUICK = (
    "naive Bayes",
    "random forest",
    "network",
    "sensitive attribute",
    "endpoint",
    "file, report, gate",
    "two workers",
)
"""Those that stand for the others where there is no time for all."""


@dataclass(frozen=True)
class Held:
    """What a process holds.

    Args:
        megabytes: of resident memory.
        files: open.
        threads: of this process.
        children: child processes, and theirs.
        temporary: files in the folder of temporary files.
        shared: folders in shared memory: those of workers, and those of joblib that name this process.
    """

    megabytes: float
    files: int
    threads: int
    children: int
    temporary: int
    shared: int


COUNTS = ("open files", "threads", "child processes", "temporary files", "in shared memory")


def held() -> Held:
    """What this process holds, once the garbage was collected."""
    gc.collect()
    own = psutil.Process()
    shared = list(SHARED_MEMORY.iterdir()) if SHARED_MEMORY.is_dir() else []
    return Held(
        own.memory_info().rss / 1e6,
        own.num_fds() if hasattr(own, "num_fds") else own.num_handles(),
        own.num_threads(),
        len(own.children(recursive=True)),
        sum(len(files) for _, _, files in os.walk(tempfile.gettempdir())),
        sum(f"_{os.getpid()}_" in one.name or (one / "owner").exists() for one in shared),
    )


def carried_out(name: str) -> str:
    """The hash of what an audit gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hashlib.sha256(AUDITS[name]().encode()).hexdigest()


def grown(before: list[Held], after: list[Held]) -> Held:
    """How much more is held after the audits of a round than after those of the round before: medians."""
    return Held(
        *(
            median(b - a for a, b in zip(one, two, strict=True))
            for one, two in zip(
                zip(*map(astuple, before), strict=True), zip(*map(astuple, after), strict=True), strict=True
            )
        )
    )


def rounds(names: list[str], n: int) -> tuple[list[list[Held]], dict[str, str]]:
    """What was held after each audit of each round, and the hashes of the audits."""
    told: list[list[Held]] = []
    hashes: dict[str, str] = {}
    for number in range(n):
        told.append([])
        for name in names:
            found = carried_out(name)
            if hashes.setdefault(name, found) != found:
                raise SystemExit(f"{name}: round {number + 1} gave other bytes than the first")
            told[-1].append(held())
        print(f"round {number + 1}: {told[-1][-1]}", flush=True)
    return told, hashes


def two_at_a_time(names: list[str], hashes: dict[str, str]) -> Held:
    """What is held after the audits were carried out by two threads."""
    with ThreadPoolExecutor(2) as pool:
        for name, found in zip(names, pool.map(carried_out, names), strict=True):
            if found != hashes[name]:
                raise SystemExit(f"{name}: two threads gave other bytes than one")
    return held()


def two_processes(names: list[str], hashes: dict[str, str]) -> Held:
    """What is held after two processes carried out all audits at the same time."""
    started = [subprocess.Popen([sys.executable, __file__, "--once", *names], stdout=subprocess.PIPE) for _ in range(2)]
    for one in started:
        printed, _ = one.communicate()
        if json.loads(printed.splitlines()[-1]) != {name: hashes[name] for name in names}:
            raise SystemExit("two processes at the same time gave other bytes than one")
    return held()


def line(name: str, one: Held) -> str:
    """Of the table."""
    return f"| {name} | {one.megabytes:,.1f} | " + " | ".join(f"{number:g}" for number in astuple(one)[1:]) + " |"


def page(names: list[str], told: list[list[Held]], others: dict[str, Held]) -> str:
    """What was counted, and what grew."""
    title, _, about = (__doc__ or "").strip().split("\n\n", maxsplit=2)
    where = f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}. Audits of a round:"
    growth = grown(told[-2], told[-1])
    least, most = (pick(b.megabytes - a.megabytes for a, b in zip(*told[-2:], strict=True)) for pick in (min, max))
    lines = [
        f"# {title.splitlines()[0]}", "", about, "", f"{where} {', '.join(names)}.", "",
        "| after | resident memory, MB | " + " | ".join(COUNTS) + " |",
        "|" + "---|" * (2 + len(COUNTS)),
        *(line(f"round {number + 1}", one[-1]) for number, one in enumerate(told)),
        *(line(name, one) for name, one in others.items()),
        "",
        f"From round {len(told) - 1} to round {len(told)}, audit by audit: resident memory grew by "
        f"{growth.megabytes:.1f} MB in the median ({least:.1f} to {most:.1f}), and "
        + ", ".join(f"{name} by {number:g}" for name, number in zip(COUNTS, astuple(growth)[1:], strict=True))
        + ".",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> None:
    """Carry out the rounds, print what is held after each, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="seven audits a round")
    parser.add_argument("--out", type=Path, help="folder for soak.md")
    parser.add_argument("--once", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        print(json.dumps({name: carried_out(name) for name in options.once}))
        return
    names = list(QUICK if options.quick else AUDITS)
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder  # so that nothing else is counted
        os.environ["TMPDIR"] = folder
        told, hashes = rounds(names, options.rounds)
        others = {which: two_at_a_time(names, hashes) for which in ("two threads", "two threads, again")}
        others["two processes"] = two_processes(names, hashes)
        others["one more round"] = rounds(names, 1)[0][0][-1]
        print(text := page(names, told, others))
    if options.out:
        (options.out / "soak.md").write_text(text)


if __name__ == "__main__":
    main()
