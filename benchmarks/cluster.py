"""How far a Dask cluster speeds training up: measured with one and two workers, simulated up to a hundred.

    python benchmarks/cluster.py [--pairs 3] [--out docs/benchmarks]

A simulation by discrete events takes from a real run what a chunk takes a worker, how large its answers are, what the
client does before the first chunk and for each one, and how large the prepared job is, which is sent to each worker
once: from the client to one, and from those that have it to the others, each to two. The client and its network link
do one thing at a time; a worker asks for the next chunk when the last one is done. Times are processor seconds, so
that other work of the machine does not count. The bottleneck is what is busy for most of the time: the workers, the
client's processor, its link, sending the job, or the last chunk, when there are too few to go round. Amdahl's formula
is for a client that works while no worker does; in the simulation, as on a cluster, both work at the same time, so
that the speed-up may be larger.
"""

from __future__ import annotations

import argparse
import heapq
import math
import os
import pickle
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import cloudpickle
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from leakgauge.training import Execution, Job, SklearnLearner, plan, random_subsets
from leakgauge.training.chunks import chunks
from leakgauge.training.table_file import AnswersMemory
from leakgauge.training.threads import one_thread
from workers import GOAL, shadows, table, without

WORKERS = (1, 2, 4, 8, 16, 32, 64, 100)
N_SAMPLED = 12
"""Chunks that are measured."""

AGAINST = (
    f"Two Dask workers against one on this machine, in wall seconds and in turn. The goal is ×{GOAL} for a task of "
    "more than twenty seconds. Other work on the machine lengthens the times and distorts the factor."
)


@dataclass(frozen=True)
class Network:
    """What lies between the machines.

    Args:
        name: in words.
        bytes_per_second: of the link of any machine.
        latency: seconds of a message.
    """

    name: str
    bytes_per_second: float
    latency: float


LOOPBACK = Network("this machine", 1e9, 1e-4)
NETWORKS = (Network("10 Gbit/s, 0.1 ms", 1.25e9, 1e-4), Network("1 Gbit/s, 0.5 ms", 1.25e8, 5e-4))


@dataclass(frozen=True)
class Work:
    """What a job takes.

    Args:
        name: in words.
        start: seconds of the client before the first chunk: what all models share, pickling, connecting.
        job_bytes: of the prepared job.
        loading: seconds of a worker to read it.
        chunk_seconds: of a worker, for each chunk.
        answer_bytes: of a chunk.
        client_seconds: of client and scheduler for each chunk, to send it, and to read and write its answers.
    """

    name: str
    start: float
    job_bytes: int
    loading: float
    chunk_seconds: tuple[float, ...]
    answer_bytes: int
    client_seconds: float


@dataclass(frozen=True)
class Simulated:
    """A simulated run.

    Args:
        seconds: until the last answers are written.
        busy: seconds for which each part that may be the bottleneck is busy or waited for.
    """

    seconds: float
    busy: dict[str, float]

    @property
    def bottleneck(self) -> str:
        """What is busy for most of the time."""
        return max(self.busy, key=lambda name: self.busy[name])


def jobs() -> dict[str, Job]:
    """Jobs of more than twenty seconds on one worker: many models trained one by one, and a fast engine."""
    wide = table(40_000, 100)
    return {
        "plain trees, refitted": shadows(SklearnLearner(DecisionTreeClassifier()), wide[:4_000], 192),
        "logistic regression without each record": without(SklearnLearner(LogisticRegression()), wide, len(wide)),
    }


def measured(name: str, job: Job, overhead: float, connecting: float) -> Work:
    """What the job takes, of a sample of its chunks."""
    start = time.process_time()
    prepared = plan(job).prepared
    prepared.share()
    stream = cloudpickle.dumps(prepared)
    start = time.process_time() - start + connecting
    loading = time.process_time()
    pickle.loads(stream)
    loading = time.process_time() - loading
    n_models = len(job.subsets)
    parts = chunks(n_models, prepared.engine.chunk_of(n_models) or n_models)
    answers = AnswersMemory((n_models, job.n_queries, job.n_answers))
    sampled = [parts[i] for i in np.unique(np.linspace(0, len(parts) - 1, N_SAMPLED).astype(int))]
    seconds, sizes, client = list[float](), list[int](), list[float]()
    for models in sampled:
        begun = time.process_time()
        with one_thread():
            outcome = prepared.answers(np.arange(models.start, models.stop))
        packed = pickle.dumps(outcome, protocol=5)
        seconds.append(time.process_time() - begun)
        begun = time.process_time()
        answers.write(models, pickle.loads(packed).answers)
        client.append(time.process_time() - begun)
        sizes.append(len(packed))
    # Chunks that were not measured are those that were, over and over.
    all_seconds = tuple(seconds[i % len(seconds)] for i in range(len(parts)))
    return Work(name, start, len(stream), loading, all_seconds, int(median(sizes)), median(client) + overhead)


def nothing(_: int) -> None:
    """A chunk without any work."""


def task_overhead(address: str, n: int = 200) -> tuple[float, float]:
    """Processor seconds of client and scheduler to connect, and for each task that does nothing."""
    import joblib

    from leakgauge.training.chunks import _connected

    times = []
    for n_tasks in (1, n):
        begun = time.process_time()
        with _connected(address), joblib.parallel_config(backend="dask"):
            joblib.Parallel(batch_size=1)(joblib.delayed(nothing)(i) for i in range(n_tasks))
        times.append(time.process_time() - begun)
    return times[0], (times[1] - times[0]) / (n - 1)


def simulate(work: Work, n_workers: int, network: Network) -> Simulated:
    """A run on so many workers."""
    sending = work.job_bytes / network.bytes_per_second + network.latency
    answering = work.answer_bytes / network.bytes_per_second + network.latency
    # After k rounds 2^k - 1 workers have the job; each round passes it on once.
    have = [work.start + sending * math.ceil(math.log2(i + 2)) + work.loading for i in range(n_workers)]
    events = [(when, worker, False) for worker, when in enumerate(have)]  # when, who, whether with answers
    heapq.heapify(events)
    waiting, client, link, last = list(work.chunk_seconds), work.start, 0.0, 0.0
    while events:
        when, worker, answered = heapq.heappop(events)
        if answered:  # answers go over the client's link, one after another, and then to its processor
            link = max(link, when) + answering
            client = max(client, link) + work.client_seconds
            last = when = client
        if waiting:
            heapq.heappush(events, (when + network.latency + waiting.pop(), worker, True))
    n, total = len(work.chunk_seconds), sum(work.chunk_seconds)
    rounds = math.ceil(n / n_workers) * total / n
    return Simulated(
        last,
        {
            "the workers": total / n_workers,
            "chunks that do not divide evenly": rounds if rounds > 1.1 * total / n_workers else 0.0,
            "the client before the first chunk": work.start,
            "the client for each chunk": n * work.client_seconds,
            "the client's link": n * answering,
            "sending the job": have[-1] - work.start,
        },
    )


def amdahl(work: Work, n_workers: int) -> float:
    """The speed-up if all that the client does is done while no worker works: Amdahl's formula."""
    serial = work.start + len(work.chunk_seconds) * work.client_seconds
    parallel = sum(work.chunk_seconds)
    return (serial + parallel) / (serial + parallel / n_workers)


@contextmanager
def cluster(n_workers: int) -> Iterator[str]:
    """The address of a Dask cluster of processes of this machine."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=n_workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0") as local:
        yield local.scheduler_address


def pairs(job: Job, n: int) -> list[tuple[float, float]]:
    """Wall seconds with one worker and with two, in turn, warm; both must answer the same."""
    found = []
    with cluster(1) as one, cluster(2) as two:
        for address in (one, two):
            few = Job(job.learner, job.records[:100], random_subsets(100, 50, 8, np.random.default_rng(0)),
                      job.records.features[:100], 0, job.randomness)  # fmt: skip
            plan(few).train(Execution(workers=address))
        for _ in range(n):
            times, answers = [], []
            for address in (one, two):
                begun = time.perf_counter()
                answers.append(plan(job).train(Execution(workers=address)).answers)
                times.append(time.perf_counter() - begun)
            if not np.array_equal(*answers, equal_nan=True):
                raise SystemExit("two workers gave other answers than one")
            found.append((times[0], times[1]))
            print(f"{times[0]:.1f} s, {times[1]:.1f} s: ×{times[0] / times[1]:.2f}", file=sys.stderr, flush=True)
    return found


def page(works: list[Work], measured_pairs: dict[str, list[tuple[float, float]]]) -> str:
    """What was measured, and what was simulated."""
    title, _, about = (__doc__ or "").strip().split("\n\n", maxsplit=2)
    where = f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}."
    lines = [f"# {title.rstrip('.')}", "", about, "", where, "", "## Measured", ""]
    lines += [
        "| task | chunks | a chunk, s | its answers, MB | the job, MB | client at first, s | client for a chunk, ms |",
        "|---|---|---|---|---|---|---|",
    ]
    for work in works:
        lines.append(
            f"| {work.name} | {len(work.chunk_seconds)} | {median(work.chunk_seconds):.3f} "
            f"| {work.answer_bytes / 1e6:.2f} | {work.job_bytes / 1e6:.1f} | {work.start:.2f} "
            f"| {1e3 * work.client_seconds:.1f} |"
        )
    lines += [
        "",
        AGAINST,
        "",
        "| task | one worker | two workers | factors of the pairs | best | simulated | Amdahl |",
        "|---|---|---|---|---|---|---|",
    ]
    for work in works:
        if not (found := measured_pairs.get(work.name)):
            continue
        factors = [a / b for a, b in found]
        one, two = found[int(np.argmax(factors))]
        ran = simulate(work, 1, LOOPBACK).seconds / simulate(work, 2, LOOPBACK).seconds
        told = ", ".join(f"×{factor:.2f}" for factor in factors)
        expected = f"×{ran:.2f} | ×{amdahl(work, 2):.2f}"
        lines.append(f"| {work.name} | {one:.1f} | {two:.1f} | {told} | ×{max(factors):.2f} | {expected} |")
    for network in NETWORKS:
        lines += ["", f"## Simulated: {network.name}", ""]
        lines += [
            "| task | workers | seconds | speed-up | Amdahl | busiest | its share of the time |",
            "|---|---|---|---|---|---|---|",
        ]
        for work in works:
            alone = simulate(work, 1, network).seconds
            for n in WORKERS:
                ran = simulate(work, n, network)
                share = min(1.0, ran.busy[ran.bottleneck] / ran.seconds)
                lines.append(
                    f"| {work.name} | {n} | {ran.seconds:.2f} | ×{alone / ran.seconds:.1f} | ×{amdahl(work, n):.1f} "
                    f"| {ran.bottleneck} | {100 * share:.0f} % |"
                )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, simulate, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=3, help="pairs of runs with one and two workers of this machine")
    parser.add_argument("--out", type=Path, help="folder for cluster.md")
    options = parser.parse_args()
    with cluster(1) as address:
        connecting, overhead = task_overhead(address)
    works = [measured(name, job, overhead, connecting) for name, job in jobs().items()]
    name, job = next(iter(jobs().items()))
    found = {name: pairs(job, options.pairs)} if options.pairs else {}
    print(text := page(works, found))
    if options.out:
        (options.out / "cluster.md").write_text(text)


if __name__ == "__main__":
    main()
