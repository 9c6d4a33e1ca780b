"""What a second worker brings: each engine that works in chunks, on one process and on two, warm, in the same run.

    python benchmarks/workers.py [--quick] [--out docs/benchmarks]

Each time is the median of three, one and two workers in turn; the answers of both must be the same bits. The machine
must have two processors and nothing else to do.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from leakgauge.records import Records
from leakgauge.training import (
    EachModel,
    Execution,
    Job,
    Learner,
    RandomForest,
    Randomness,
    SklearnLearner,
    leave_one_out,
    plan,
    public_thresholds,
    random_subsets,
)

N_TIMES = 3
GOAL = 1.7


@dataclass(frozen=True)
class Row:
    """A job.

    Args:
        task: in words.
        make: makes it.
    """

    task: str
    make: Callable[[], Job]


def table(n: int, d: int, n_classes: int = 2) -> Records:
    """Overlapping classes of normal records."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    return Records.from_arrays(rng.normal(size=(n, d)) + 0.3 * rng.normal(size=(n_classes, d))[y], y)


def without(learner: Learner, records: Records, n_models: int) -> Job:
    """Models without one record each, asked about it."""
    rows = np.arange(n_models)
    subsets, queries = leave_one_out(len(records), rows), EachModel(rows[:, None])
    return Job(learner, records, subsets, queries, 0, Randomness.COMMON)


def shadows(learner: Learner, records: Records, n_models: int) -> Job:
    """Models of random halves, asked about all."""
    subsets = random_subsets(len(records), len(records) // 2, n_models, np.random.default_rng(1))
    return Job(learner, records, subsets, records.features, 0, Randomness.INDEPENDENT)


def rows(scale: float) -> list[Row]:
    """All jobs; ``scale`` 1 for more than two seconds of work each."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.tree import DecisionTreeClassifier

    from leakgauge.defences import Binning, Ensemble

    def many(n: int) -> int:
        return max(4, round(scale * n))

    logistic = SklearnLearner(LogisticRegression())
    network = SklearnLearner(MLPClassifier(64, activation="tanh", max_iter=50, n_iter_no_change=np.inf, tol=0.0))
    binned, voting = Binning(0.01).apply(logistic), Ensemble(10).apply(logistic)
    wide, ten = table(many(40_000), 100), table(2_000, 60, 10)
    forest = table(2_000, 20)
    return [
        Row(f"logistic regression without each of {len(wide):,} records", lambda: without(logistic, wide, len(wide))),
        Row("logistic regression, shadow models", lambda: shadows(logistic, table(4_000, 50), many(6_000))),
        Row("10-class logistic regression without each record", lambda: without(logistic, ten, many(1_500))),
        Row("10-class logistic regression, shadow models", lambda: shadows(logistic, ten, many(256))),
        Row("forest without each record", lambda: without(RandomForest(public_thresholds(forest), 400), forest, 2_000)),
        Row("networks on halves", lambda: shadows(network, table(1_000, 50), many(256))),
        Row("networks without each record", lambda: without(network, table(500, 50), many(256))),
        Row("plain trees, refitted", lambda: shadows(SklearnLearner(DecisionTreeClassifier()), wide[:4_000], many(64))),
        Row("binned logistic regression, shadow models", lambda: shadows(binned, ten, many(192))),
        Row(
            "ten voting logistic regressions",
            lambda: shadows(voting, table(4_000, 50), many(600)),
        ),
    ]


def measured(job: Job) -> tuple[str, list[list[float]]]:
    """The engine, and the seconds with one and with two workers."""
    prepared = plan(job)
    seconds: list[list[float]] = [[], []]
    executions = Execution(workers=1), Execution(workers=2)
    answers = [plan(job).train(execution).answers for execution in executions]  # workers are warm from here on
    if not np.array_equal(*answers, equal_nan=True):
        raise SystemExit(f"{prepared.engine.name}: two workers gave other answers than one")
    for _ in range(N_TIMES):
        for taken, execution in zip(seconds, executions, strict=True):
            start = time.perf_counter()
            plan(job).train(execution)
            taken.append(time.perf_counter() - start)
    return prepared.engine.name, seconds


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work; the factors mean little")
    parser.add_argument("--out", type=Path, help="folder for workers.md")
    options = parser.parse_args()
    about = (
        f"Python {platform.python_version()}, numpy {np.__version__}, {os.cpu_count()} processors; wall seconds, "
        f"median of {N_TIMES} (least to most), in one run. The goal is ×{GOAL} for more than two seconds of work."
    )
    lines = [
        "# Speed-up of a second worker",
        "",
        about,
        "",
        "| task | engine | one worker | two workers | factor |",
        "|---|---|---|---|---|",
    ]
    print("\n".join(lines[4:]), flush=True)
    for row in rows(0.1 if options.quick else 1.0):
        engine, times = measured(row.make())
        one, two = (f"{median(each):.2f} ({min(each):.2f} to {max(each):.2f})" for each in times)
        lines.append(f"| {row.task} | {engine} | {one} | {two} | ×{median(times[0]) / median(times[1]):.2f} |")
        print(lines[-1], flush=True)
    if options.out:
        (options.out / "workers.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
