"""Audits from files of scores: a network on images, trained elsewhere and audited from what it answered alone.

A small convolutional network and eight reference networks are trained on halves of 4,000 images of CIFAR-10, and each
writes what it answers about all of them; then the audit, which sees these files and nothing else, is timed, and that of
files of any number of records.

    LEAKGAUGE_DATA=... python benchmarks/scores.py FOLDER [--epochs 30]    the networks; files that are there are kept
    python benchmarks/scores.py FOLDER --records 1000000 --references 8    made-up losses
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

N_IMAGES, N_REFERENCES = 4000, 8
AUDIT = """[[models]]
kind = "scores"
path = "{path}"
references = "{references}"

[rule]
dtp = "none"      # the influence of single records takes the training procedure
"""


def images() -> tuple[np.ndarray, np.ndarray]:
    """Pixels ``[n, 3, 32, 32]`` in [-1, 1] and classes ``[n]`` of the first images of CIFAR-10."""
    with np.load(Path(os.environ["LEAKGAUGE_DATA"]) / "cifar10" / "cifar10_first4000_lossless.npz") as file:
        return file["images"][:N_IMAGES].transpose(0, 3, 1, 2) / np.float32(127.5) - 1, file["labels"][:N_IMAGES]


def probabilities(X: np.ndarray, y: np.ndarray, inside: np.ndarray, seed: int, n_epochs: int) -> np.ndarray:
    """What a network trained on some of the images answers about all ``[n, 10]``."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    network = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 64, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    pixels, classes = torch.from_numpy(X), torch.from_numpy(y.astype(np.int64))
    members = torch.from_numpy(np.flatnonzero(inside))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(n_epochs):
        for batch in members[torch.randperm(len(members))].split(50):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(pixels[batch]), classes[batch]).backward()
            optimiser.step()
    with torch.no_grad():
        return network(pixels).double().softmax(dim=1).numpy()


def train(folder: Path, n_epochs: int) -> None:
    """Write the answers of all networks: ``scores.csv`` and ``references.csv``."""
    X, y = images()
    rng = np.random.default_rng(0)
    halves = [rng.permutation(len(y)) < len(y) // 2 for _ in range(1 + N_REFERENCES // 2)]
    sets = [halves[0], *halves[1:], *(~half for half in halves[1:])]
    tables = []
    for seed, inside in enumerate(sets):
        found = probabilities(X, y, inside, seed, n_epochs)
        right = found.argmax(axis=1) == y
        print(f"network {seed}: accuracy {right[inside].mean():.3f} on members, {right[~inside].mean():.3f} on others")
        columns = {"id": np.arange(len(y)), "member": inside.astype(int), "label": y}
        columns |= {f"p_{k}": found[:, k] for k in range(found.shape[1])}
        tables.append(pa.table(columns))
    csv.write_csv(tables[0], folder / "scores.csv")
    references = [
        table.append_column("model", pa.array([f"reference {k}"] * len(y))) for k, table in enumerate(tables[1:])
    ]
    csv.write_csv(pa.concat_tables(references), folder / "references.csv")


def make_up(folder: Path, n: int, n_references: int) -> None:
    """Losses about n records, a little lower for members, and those of reference models."""
    rng = np.random.default_rng(0)
    typical = rng.exponential(size=n)
    halves = [rng.permutation(n) < n // 2 for _ in range(1 + n_references // 2)]
    sets = [halves[0], *halves[1:], *(~half for half in halves[1:])]
    for k, inside in enumerate(sets):
        loss = typical * np.where(inside, 0.8, 1.0) * rng.lognormal(0, 0.3, n)
        table = pa.table({"id": np.arange(n), "member": inside.astype(int), "loss": loss})
        if k == 0:
            csv.write_csv(table, folder / "scores.csv")
            continue
        table = table.append_column("model", pa.array([f"reference {k}"] * n))
        with (folder / "references.csv").open("wb" if k == 1 else "ab") as file:
            csv.write_csv(table, file, csv.WriteOptions(include_header=k == 1))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--epochs", type=int, default=30)
    asked.add_argument("--records", type=int)
    asked.add_argument("--references", type=int, default=N_REFERENCES)
    options = asked.parse_args()
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    if options.records is not None:
        make_up(folder, options.records, options.references)
    elif not (folder / "references.csv").exists():
        train(folder, options.epochs)
    text = AUDIT.format(path="scores.csv", references="references.csv")
    if options.records is not None and not options.references:
        text = text.replace('references = "references.csv"\n', "")
    (folder / "audit.toml").write_text(text)
    command = [sys.executable, "-m", "leakgauge", "audit", "audit.toml", "--json"]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    took = time.perf_counter() - start
    if done.returncode not in (0, 1, 3):
        raise SystemExit(done.stderr)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    (audit,) = json.loads(done.stdout)["audits"]
    cpu, gigabytes = used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6
    print(f"\n{audit['verdict']}; {took:.1f} s, {cpu:.1f} s of processor time, {gigabytes:.2f} GB\n")
    print("| attack | advantage of this model | of the learner, in games | AUC |\n|---|---|---|---|")
    for attack in audit["attacks"]:
        games = attack["games"]
        found = attack["advantage"], None if games is None else games["pool"], attack["auc"]
        print(" | ".join(["| " + attack["title"], *map(shown, found)]) + " |")


def shown(estimate: dict[str, float] | None) -> str:
    """A number with its interval."""
    return "–" if estimate is None else "{value:.3f} ({low:.3f} to {high:.3f})".format(**estimate)


if __name__ == "__main__":
    main()
