"""The cost of an audit as records, features, models and workers grow.

    python benchmarks/scale.py [--only WORD] [--out docs/benchmarks]

Each line is an audit as users start it, ``leakgauge audit FILE --run FOLDER``: in a process of its own, with the
default settings, every attack, and the report written. Processor seconds are those of all processes of the audit,
workers among them; wall seconds depend on what else the machine does. Peak memory is the largest resident memory of the
first process. Where there are workers it is the largest sum over all processes, in which a page that several of them
map is divided among them (the proportional set size), and beside it what the largest worker shares with no other
process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

MB = 1e6
INTERVAL_SECONDS = 0.25
"""Between two looks at the memory of the processes."""


@dataclass(frozen=True)
class Row:
    """An audit.

    Args:
        task: in words.
        audit: the TOML file of it, or the name of a function below.
        table: a table that is written beside it: records of either kind, features; ``None`` for none.
        workers: how many.
        goal: seconds of processor and MB at most; ``None`` for none.
    """

    task: str
    audit: str
    table: tuple[int, int] | None = None
    workers: int = 1
    goal: tuple[int, int] | None = None


def of_dataset(name: str, recipe: str, train: int | None = None, holdout: int | None = None, more: str = "") -> str:
    """The file of an audit of a recipe on a public data set; by default of two halves of it."""
    sizes = "" if train is None else f"train_records = {train}\nholdout_records = {holdout or train}\n"
    return f'[data]\ndataset = "{name}"\n{sizes}{of_recipe(recipe)}{more}'


def of_table(recipe: str, more: str = "") -> str:
    """The same on the table that is written beside it."""
    return f'[data]\ntrain = "train.parquet"\nholdout = "holdout.parquet"\ntarget = "y"\n{of_recipe(recipe)}{more}'


def of_recipe(recipe: str) -> str:
    return f'\n[[models]]\nkind = "recipe"\nname = "{recipe}"\n'


def shadows(n: int) -> str:
    return f"\n[attacks]\nshadow_models = {n}\n"


BAYES, LOGISTIC, NETWORK = "naive-bayes", "logistic-regression", "neural-network"

SECTIONS: dict[str, list[Row]] = {
    "Real data": [
        Row("naive Bayes, 898,610 records of ACSIncome", of_dataset("acs-income", BAYES), goal=(180, 2000)),
        Row("logistic regression, 48,842 records of Adult", of_dataset("adult", LOGISTIC)),
        Row("networks, 20,000 records of Adult", of_dataset("adult", NETWORK, 10_000)),
    ],
    "Records": [
        *(
            Row(f"naive Bayes, {2 * n:,} records of ACSIncome", of_dataset("acs-income", BAYES, n))
            for n in (500, 5_000, 50_000)
        ),
        *(
            Row(f"logistic regression, {2 * n:,} records of Adult", of_dataset("adult", LOGISTIC, n))
            for n in (500, 2_000, 8_000)
        ),
    ],
    "Features": [
        Row(f"{recipe}, 2,000 records, {d:,} columns", of_table(recipe), table=(1_000, d))
        for recipe in (BAYES, LOGISTIC)
        for d in (100, 300, 1_000)
    ],
    "Shadow models": [
        Row(
            f"{recipe}, 4,000 records of Adult, {n} shadow models",
            of_dataset("adult", recipe, 2_000, more=shadows(n)),
        )
        for recipe in (BAYES, LOGISTIC)
        for n in (16, 32, 64, 128)
    ],
    "Workers": [
        Row(f"{task}, {n} worker{'s' * (n > 1)}", audit, table, workers=n)
        for task, audit, table in (
            ("logistic regression, 48,842 records of Adult", of_dataset("adult", LOGISTIC), None),
            ("networks, 4,000 records of Adult", of_dataset("adult", NETWORK, 2_000), None),
        )
        for n in (1, 2)
    ],
    "Large tables": [
        Row(f"{task}, {n} worker{'s' * (n > 1)}", audit, workers=n)
        for task, audit in (
            ("answers of 1,000 models about 100,000 records (1.6 GB)", "many_answers"),
            ("models of 100,000 records with 1,000 columns (0.8 GB)", "many_columns"),
        )
        for n in (1, 2)
    ],
}


def many_answers(folder: Path, workers: int) -> None:
    """A table of answers that is larger than what is kept in memory, written to a file as it grows and mapped."""
    _train(100_000, 10, 50_000, 1_000, folder, workers)


def many_columns(folder: Path, workers: int) -> None:
    """Small models of a large table of records: what a worker needs of its own is little."""
    _train(100_000, 1_000, 2_000, 100, folder, workers, n_queries=1_000)


def _train(
    n: int, d: int, size: int, n_models: int, folder: Path, workers: int, *, n_queries: int | None = None
) -> None:
    """Refit naive Bayes on random sets of so many records of n."""
    from sklearn.naive_bayes import GaussianNB

    from leakgauge.records import Records
    from leakgauge.training import Execution, SklearnLearner, random_subsets, train_many

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d))
    X += 0.1 * y[:, None]
    records, subsets = Records.from_arrays(X, y), random_subsets(n, size, n_models, rng)
    del X
    execution = Execution(folder, workers)
    train_many(
        SklearnLearner(GaussianNB()),
        records,
        subsets,
        records.features[:n_queries],
        seed=0,
        engines=(),
        execution=execution,
    )


MADE = {one.__name__: one for one in (many_answers, many_columns)}
"""What is measured without a TOML file."""


@dataclass(frozen=True)
class Cost:
    """What a row took.

    Args:
        processor: seconds of all processes.
        wall: seconds.
        peak: largest resident memory of the first process, MB.
        together: largest sum over all processes, pages that several map divided among them, MB.
        own: what the largest of the other processes shared with none, MB; 0 where there was none.
    """

    processor: float
    wall: float
    peak: float
    together: float
    own: float


class Watch(threading.Thread):
    """Looks at the memory and the processor time of a process and its children until told to stop."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.root, self.ended = psutil.Process(pid), threading.Event()
        self.together, self.own, self.seconds = 0.0, 0.0, dict[int, float]()

    def run(self) -> None:
        while not self.ended.wait(INTERVAL_SECONDS):
            together = 0.0
            for one in self._processes():
                try:
                    memory, times = one.memory_full_info(), one.cpu_times()
                except psutil.Error:  # it has ended
                    continue
                together += memory.pss / MB
                self.seconds[one.pid] = times.user + times.system
                if one.pid != self.root.pid:
                    self.own = max(self.own, memory.uss / MB)
            self.together = max(self.together, together)

    def _processes(self) -> list[psutil.Process]:
        try:
            return [self.root, *self.root.children(recursive=True)]
        except psutil.Error:
            return []


def measured(row: Row, scratch: Path) -> Cost:
    """What the row takes, in a process of its own."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    if row.audit in MADE:
        command = [sys.executable, __file__, "--carry-out", row.audit, str(folder), str(row.workers)]
    else:
        (folder / "audit.toml").write_text(row.audit)
        if row.table is not None:
            _write_tables(folder, *row.table)
        options = ["--run", str(folder / "run"), "--workers", str(row.workers), "--quiet"]
        command = [sys.executable, "-m", "leakgauge", "audit", str(folder / "audit.toml"), *options]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    watch = Watch(process.pid)
    if row.workers > 1:
        watch.start()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    watch.ended.set()
    if os.waitstatus_to_exitcode(status) not in (0, 1, 3):  # these are verdicts
        raise SystemExit(f"{row.task} ended with status {status}")
    # Of workers the last look counts: whether the first process waited for them, and so counts them, is by chance.
    processor = used.ru_utime + used.ru_stime if row.workers == 1 else sum(watch.seconds.values())
    return Cost(processor, wall, used.ru_maxrss * 1024 / MB, watch.together, watch.own)


def _write_tables(folder: Path, n: int, d: int) -> None:
    """Two samples of a population of two overlapping normal classes."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    for name in ("train", "holdout"):
        y = rng.integers(0, 2, n)
        X = rng.normal(size=(n, d)) + 0.1 * y[:, None]
        columns = {f"x{j}": column for j, column in enumerate(X.T)}
        parquet.write_table(pa.table(columns | {"y": np.array(["no", "yes"])[y]}), folder / f"{name}.parquet")


def line(row: Row, cost: Cost) -> str:
    """Of a table."""
    memory = f"{cost.peak:,.0f}" if row.workers == 1 else f"{cost.together:,.0f} together, {cost.own:,.0f} of a worker"
    goal = "" if row.goal is None else f"{row.goal[0]} s, {row.goal[1]:,} MB"
    return f"| {row.task} | {cost.processor:,.1f} | {cost.wall:,.1f} | {memory} | {goal} |"


HEADINGS = ("audit", "processor seconds", "wall seconds", "peak memory, MB", "goal")


def page(costs: dict[str, Cost]) -> str:
    """All that was measured so far, as a page."""
    title, _, about = (__doc__ or "").strip().split("\n\n", maxsplit=2)
    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    where = f"{platform.machine()}, {os.cpu_count()} processors, {versions}."
    lines = ["# " + title.rstrip("."), "", about, "", where]
    for section, rows in SECTIONS.items():
        told = [line(row, costs[row.task]) for row in rows if row.task in costs]
        if told:
            lines += ["", f"## {section}", "", "| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS), *told]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure what is asked for, keep the numbers, and write the page of all that were kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", metavar="WORD", help="sections and tasks that hold this word")
    parser.add_argument("--out", type=Path, help="folder of scale.md, and of scale.json, which keeps the numbers")
    parser.add_argument("--carry-out", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.carry_out:
        name, folder, workers = options.carry_out
        MADE[name](Path(folder), int(workers))
        return
    kept = None if options.out is None else options.out / "scale.json"
    costs = {task: Cost(**one) for task, one in json.loads(kept.read_text()).items()} if kept and kept.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        for section, rows in SECTIONS.items():
            for row in rows:
                if options.only in f"{section}: {row.task}":
                    costs[row.task] = measured(row, Path(scratch))
                    print(line(row, costs[row.task]), flush=True)
                    if kept:
                        kept.write_text(json.dumps({task: vars(one) for task, one in costs.items()}, indent=1) + "\n")
    if kept:
        kept.with_suffix(".md").write_text(page(costs))


if __name__ == "__main__":
    main()
