"""Long et al. 2017, section 9, Figures 7 and 8: how far predictions vary when nobody in particular is left out.

A hundred networks with different first weights on the same records, and a hundred on different samples; what they say
about one person with a low and one with a high income.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.influence import pairwise_floor
from leakgauge.reproduce import long
from leakgauge.reproduce.long import ADULT, NETWORK
from leakgauge.reproduce.plots import Series, plot
from leakgauge.reproduce.result import Experiment, Reproduction, Row, exact
from leakgauge.statistics import Estimate, mean
from leakgauge.streams import ReproductionStream
from leakgauge.training import HERE, DenseSubsets, Execution, everything, random_subsets, train_many

if TYPE_CHECKING:
    from leakgauge.records import Records


N_MODELS, N_TRAINING, N_POOL = 100, 10_000, 30_000
QUICK_MODELS, QUICK_TRAINING, QUICK_POOL = 20, 1_000, 3_000
N_BINS = 40

SEEDS = (
    "A seed determines the first weights and the order of the training records; models on different samples also have "
    "different seeds."
)


def run(*, quick: bool, seed: int, execution: Execution = HERE) -> Reproduction:
    """On Adult; quick: a tenth of the records and fewer models."""
    n_models, n_training, n_pool = (
        (QUICK_MODELS, QUICK_TRAINING, QUICK_POOL) if quick else (N_MODELS, N_TRAINING, N_POOL)
    )
    return variation(ADULT.pool(seed, n_pool), n_models, n_training, seed=seed, execution=execution)


def variation(pool: Records, n_models: int, n_training: int, *, seed: int, execution: Execution = HERE) -> Reproduction:
    """Both figures.

    Args:
        pool: two classes; the second is the one whose probability is shown.
        n_models: in each figure, at least 2.
        n_training: records a model is trained on.
        seed: drives every random choice.
        execution: where and how models are trained.
    """
    people = [int(np.flatnonzero(pool.labels == code)[0]) for code in (0, 1)]
    asked, rest = pool.features[people], np.delete(np.arange(len(pool)), people)
    others = pool[rest]
    algorithm = long.learner(NETWORK, ADULT, pool)
    first = others[:n_training]
    samples = random_subsets(len(others), n_training, n_models, ReproductionStream.SAMPLES.generator(seed))

    def answers(records: Records, subsets: DenseSubsets) -> Floats:
        table = train_many(algorithm, records, subsets, asked, seed=seed, execution=execution)
        return table.log_probabilities

    by_cause = {
        "first weights": answers(first, everything(len(first), n_models)),
        "training sample": answers(others, samples),
    }
    names = ["person with a low income", "person with a high income"]
    found = [
        row
        for cause, logs in by_cause.items()
        for place, name in enumerate(names)
        for row in _rows(f"{cause}, {name}", logs[:, place])
    ]
    picture = plot(
        "Predictions of networks for two people",
        f"probability of {pool.schema.classes[1]}",
        "models",
        [
            _histogram(f"{cause}, {name}", np.exp(logs[:, place, 1]), side)
            for side, (cause, logs) in zip((-1, 1), by_cause.items(), strict=True)
            for place, name in enumerate(names)
        ],
    )
    settings = {"seed": seed, "models": n_models, "training": n_training, "pool": len(pool)}
    remarks = ["The paper prints histograms and no numbers.", SEEDS, f"Networks: {long.DIFFERENCES[NETWORK]}."]
    return EXPERIMENT.result(found, picture, settings=settings, remarks=remarks)


def _rows(name: str, logs: Floats) -> list[Row]:
    """What is said about one person ``[models, 2]``."""
    p, n = np.exp(logs[:, 1]), len(logs)
    return [
        Row(f"{name}: mean probability", None, mean(p, lower=0.0, upper=1.0)),
        Row(f"{name}: standard deviation", None, _deviation(p)),
        Row(f"{name}: smallest", None, exact(float(p.min()), "of the models trained", n)),
        Row(f"{name}: largest", None, exact(float(p.max()), "of the models trained", n)),
        Row(
            f"{name}: 95 % quantile of the log ratio of two models",
            None,
            exact(float(pairwise_floor(logs[:, None])[0]), "of the models trained", n),
            None,
            "to compare with PDTP",
        ),
    ]


def _deviation(p: Floats) -> Estimate:
    """Standard deviation with a jackknife interval."""
    n = len(p)
    without = np.array([np.delete(p, i).std(ddof=1) for i in range(n)]) if n > 2 else np.full(n, p.std(ddof=1))
    value = float(p.std(ddof=1))
    half = 1.96 * float(np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()))
    return Estimate(value, max(0.0, value - half), value + half, 0.95, "jackknife over models", n)


def _histogram(name: str, p: Floats, side: int) -> Series:
    """Bars in the left (-1) or right (1) half of their bins, so that those of both causes stand side by side."""
    counts, edges = np.histogram(p, bins=N_BINS, range=(0.0, 1.0))
    kept = np.flatnonzero(counts)
    centres = (edges[:-1] + edges[1:] + side / (2 * N_BINS)) / 2
    return Series(name, centres[kept].tolist(), counts[kept].tolist(), "bars")


EXPERIMENT = Experiment(
    name="long-figures-7-8",
    title="Predictions of networks for two people when first weights or the sample change",
    source="Long et al. 2017, Figures 7 and 8",
    published="histograms of the probability of a high income, for one person with a low and one with a high income",
    data=("adult",),
    run=run,
)
