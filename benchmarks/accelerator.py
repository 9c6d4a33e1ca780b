"""Shadow models trained on an accelerator, beside the same trained on the processor, in one run.

    python benchmarks/accelerator.py [networks] [images] [--device cuda] [--models 256] [--epochs 15] [--records 20000]
                                     [--normalised]

networks: 1,000 of scikit-learn's networks on halves of 2,000 records, by the engine that trains them together on the
device, by the compiled one on all processors and on one, and by scikit-learn's own loop (a few, scaled). All draw the
same random numbers, so that answers can be compared: the largest and the median difference of a log-probability.

images: convolutional networks on halves of CIFAR-10 (LEAKGAUGE_DATA must name a folder that has it), in complementary
pairs, and the attacks with shadow models on some of them: AUC and true-positive rates with intervals; on request with
batch normalisation after each convolution and dropout before the last layer. The loop that anyone would write, a module
and an optimiser on the same device, is timed beside them on a few models.

Times are seconds of wall time, since two machines work together.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import people
from leakgauge.membership import ATTACKS, everyone_as_target
from leakgauge.records import Records, datasets
from leakgauge.statistics import auc, mean, tpr_at_fpr
from leakgauge.training import (
    Execution,
    Job,
    Randomness,
    SklearnLearner,
    TorchLearner,
    complementary_pairs,
    plan,
    random_subsets,
    train_many,
)
from leakgauge.training.engines.networks.engine import NativeNetworks, TorchNetworks

N_TARGETS = 8
"""Models that play the target, in complementary pairs; all others but its complement are its shadow models."""

FPRS = (0.01, 0.001)


def wall(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and what came out."""
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


# ---------------------------------------------------------------- scikit-learn's networks


def networks(device: str, n_models: int, n_loop: int = 8) -> None:
    """The table of networks."""
    from sklearn.neural_network import MLPClassifier

    print("| data | trained by | models | seconds | models per second | largest difference, nats | median |")
    print("|---" * 7 + "|")
    for table in (people.one_hot(people.codes(2000)), people.purchases(2000)):
        learner = SklearnLearner(
            MLPClassifier(64, activation="tanh", batch_size=50, max_iter=50, n_iter_no_change=np.inf, tol=0)
        )
        records = Records.from_arrays(table.X, table.y.astype(str))
        subsets = random_subsets(2000, 1000, n_models, np.random.default_rng(0))
        asked = records.features[:200]

        def trained(engines: tuple, models: int, where: str = "cpu", workers: int = 1) -> Any:
            job = Job(learner, records, subsets, asked, 0, Randomness.INDEPENDENT, where)  # noqa: B023
            return plan(job.part(np.arange(models)), engines=engines).train(Execution(None, workers, where))

        trained((TorchNetworks(),), 2, device)  # torch sets itself up
        answers = {}
        n_cores = os.cpu_count() or 1
        for who, engines, models, where, workers in (
            ("together, on the device", (TorchNetworks(),), n_models, device, 1),
            (f"compiled, {n_cores} processors", (NativeNetworks(),), n_models, "cpu", n_cores),
            ("compiled, one processor", (NativeNetworks(),), n_models // 8, "cpu", 1),
            ("scikit-learn, one after another", (), n_loop, "cpu", 1),
        ):
            seconds, found = wall(lambda e=engines, m=models, at=where, w=workers: trained(e, m, at, w))
            answers[who] = found.answers
            first = answers["together, on the device"][: len(found.answers)]
            apart = np.abs(found.answers - first).max(axis=(1, 2))
            print(
                f"| {table.name} | {who} ({found.engine}) | {len(found.answers)} | {seconds:.2f} "
                f"| {len(found.answers) / seconds:.1f} | {apart.max():.2g} | {np.median(apart):.2g} |",
                flush=True,
            )


# ---------------------------------------------------------------- convolutional networks


def convolutional(normalised: bool = False) -> Any:
    """Three convolutions and a linear layer, for rows of 32 x 32 x 3 bytes; with batch normalisation and dropout."""
    from torch import nn

    class Scaled(nn.Module):
        """Bytes, channels last, as the layers want them."""

        def forward(self, X: Any) -> Any:
            return X.view(-1, 32, 32, 3).permute(0, 3, 1, 2) / 127.5 - 1

    layers: list[Any] = [Scaled()]
    for n_in, n_out in ((3, 32), (32, 64), (64, 128)):
        norm = [nn.BatchNorm2d(n_out)] if normalised else []
        layers += [nn.Conv2d(n_in, n_out, 3, padding=1), *norm, nn.ReLU(), nn.MaxPool2d(2)]
    drop = [nn.Dropout(0.3)] if normalised else []
    return nn.Sequential(*layers, nn.Flatten(), *drop, nn.Linear(128 * 16, 10))


def loop(records: Records, subsets: Any, models: int, epochs: int, batch: int, device: str, make: Any) -> None:
    """What anyone would write."""
    import torch

    X = torch.tensor(records.features, dtype=torch.float32, device=device)
    y = torch.tensor(records.labels, device=device)
    for model in range(models):
        torch.manual_seed(model)
        rows = torch.tensor(np.flatnonzero(subsets.row(model)), device=device)
        module = make().to(device)
        optimiser = torch.optim.Adam(module.parameters(), lr=1e-3)
        for _ in range(epochs):
            order = rows[torch.randperm(len(rows), device=device)]
            for start in range(0, len(order), batch):
                some = order[start : start + batch]
                loss = torch.nn.functional.cross_entropy(module(X[some]), y[some])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        module.eval()
        with torch.no_grad():
            for start in range(0, len(y), 1024):
                torch.log_softmax(module(X[start : start + 1024]), 1).cpu()


def images(
    device: str, n_models: int, epochs: int, n_records: int, workers: int, normalised: bool, batch: int = 128
) -> None:
    """The table of convolutional networks and of the attacks on them."""
    import torch

    make = partial(convolutional, normalised)

    seconds, records = wall(lambda: datasets.load("cifar10").records[np.arange(n_records)])
    print(f"{len(records):,} records read in {seconds:.0f} s", flush=True)
    subsets = complementary_pairs(len(records), n_models // 2, np.random.default_rng(0))
    learner = TorchLearner(make, batch_size=batch, n_epochs=epochs, learning_rate=1e-3, name="convolutional")

    n_loop = max(1, n_models // 64)
    loop(records, subsets, 1, 1, batch, device, make)
    seconds, _ = wall(lambda: loop(records, subsets, n_loop, epochs, batch, device, make))
    print(f"a loop on the same device: {seconds / n_loop:.2f} s for each of {n_loop} models", flush=True)

    seconds, table = wall(
        lambda: train_many(learner, records, subsets, seed=0, execution=Execution(None, workers, device))
    )
    print(f"{n_models} models by {table.engine}: {seconds:.0f} s, {seconds / n_models:.2f} s each", flush=True)
    if device != "cpu":
        print(f"at most {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB of the device", flush=True)
    labels = np.asarray(records.labels)
    right = table.answers.argmax(axis=2) == labels
    inside, outside = right[table.members].mean(), right[~table.members].mean()
    print(f"accuracy: {inside:.3f} of members, {outside:.3f} of others", flush=True)
    print("\n| attack | AUC | " + " | ".join(f"TPR at {100 * fpr:g} %" for fpr in FPRS) + " | seconds |")
    print("|---" * (3 + len(FPRS)) + "|")
    targets = np.arange(min(N_TARGETS, n_models))
    for attack in ATTACKS:
        if attack.name not in ("lira", "rmia", "loss"):
            continue
        seconds, found = wall(lambda one=attack: everyone_as_target(table, labels, one, targets=targets))
        each = [
            [auc(s[m], s[~m]).value, *(tpr_at_fpr(s[m], s[~m], fpr).value for fpr in FPRS)]
            for s, m in zip(found.scores, found.members, strict=True)
        ]
        cells = [mean(values) for values in np.array(each).T]
        numbers = " | ".join(f"{one.value:.4f} ± {one.half_width:.4f}" for one in cells)
        print(f"| {attack.name} | {numbers} | {seconds:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help="networks or images; both by default")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--models", type=int, default=256, help="convolutional networks")
    parser.add_argument("--networks", type=int, default=1000, help="scikit-learn's networks")
    parser.add_argument("--epochs", type=int, default=15, help="of convolutional networks")
    parser.add_argument("--records", type=int, default=20_000, help="images")
    parser.add_argument("--workers", type=int, default=1, help="processes that train convolutional networks")
    parser.add_argument(
        "--normalised", action="store_true", help="batch normalisation and dropout in the images' networks"
    )
    given = parser.parse_args()
    import torch

    name = torch.cuda.get_device_name() if given.device != "cpu" else platform.processor()
    print(f"torch {torch.__version__} on {name}, {os.cpu_count()} processors\n")
    if not given.what or "networks" in given.what:
        networks(given.device, given.networks)
    if not given.what or "images" in given.what:
        images(given.device, given.models, given.epochs, given.records, given.workers, given.normalised)


if __name__ == "__main__":
    main()
