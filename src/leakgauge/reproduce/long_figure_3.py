"""Long et al. 2017, Figure 3: how many measurements of PDTP are enough."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.reproduce import long
from leakgauge.reproduce.long import LOCATION, NAIVE_BAYES, PURCHASE_LIKE, ProtocolRun, Source
from leakgauge.reproduce.long_protocol import ProtocolSizes
from leakgauge.reproduce.plots import Series, plot
from leakgauge.reproduce.result import READ_OFF, Experiment, Reproduction, Row, exact
from leakgauge.statistics import Estimate, pearson
from leakgauge.training import HERE, Execution

ATTACK = "distance"
SHOWN = (1, 2, 5, 10, 20, 50, 100)
ENOUGH = 10
"""Measurements after which the printed curve no longer rises."""

NEAR = 0.05
"""Correlations that a curve of this size shows as level."""

FLAT = "the curve is flat after about 10; stand-in for Purchase"

N_RESAMPLES = 1000


def run(*, quick: bool, seed: int, execution: Execution = HERE) -> Reproduction:
    """Naive Bayes on both stand-ins for Purchase."""
    sizes = (
        ProtocolSizes(targets=40, iterations=20, untargeted=0, measurements=20)
        if quick
        else ProtocolSizes(untargeted=0)
    )
    return curves((PURCHASE_LIKE, LOCATION), sizes, seed=seed, execution=execution)


def curves(
    sources: tuple[Source, ...],
    sizes: ProtocolSizes,
    *,
    seed: int,
    execution: Execution = HERE,
    pool_size: int = long.POOL,
) -> Reproduction:
    """The curve for some data: PDTP is measured in every iteration.

    Args:
        sources: of the pools.
        sizes: of the protocol; its measurements are all iterations.
        seed: drives every random choice.
        execution: where and how models are trained.
        pool_size: records in a pool.
    """
    sizes = ProtocolSizes(sizes.targets, sizes.iterations, sizes.pairs, 0, sizes.iterations)
    measured = {
        source: long.measure(NAIVE_BAYES, source, sizes, seed=seed, execution=execution, pool_size=pool_size)
        for source in sources
    }
    numbers = list(range(1, sizes.iterations + 1))
    picture = plot(
        "Correlation of PDTP with attack accuracy, by number of measurements",
        "measurements of PDTP",
        "correlation with the attack accuracy",
        [
            Series(source.name, numbers, [_coefficient(one, n) for n in numbers], "line")
            for source, one in measured.items()
        ],
    )
    return EXPERIMENT.result(
        [row for source, one in measured.items() for row in rows(source, one, seed)],
        picture,
        settings=long.settings(sizes, seed, pool_size),
        remarks=[long.STAND_INS, long.INTERVALS],
    )


def rows(source: Source, one: ProtocolRun, seed: int) -> list[Row]:
    """The curve at some places, and what measurements beyond ten add."""
    n_all = len(one.exposures)
    accuracy = one.games.accuracy(ATTACK)
    name = f"{NAIVE_BAYES}, {source.name}"
    found = [
        Row(
            f"{name}: correlation after {n} measurement{'s' if n > 1 else ''}",
            None,
            pearson(_means(one, n), accuracy).estimate,
        )
        for n in SHOWN
        if n <= n_all
    ]
    if n_all > ENOUGH:
        settled = exact(_settled([_coefficient(one, n) for n in range(1, n_all + 1)]), "of this run", len(accuracy))
        gained = _gain(one, n_all, np.random.default_rng(seed))
        beside = (
            (f"{name}: measurements after which it stays within {NEAR} of its last value", ENOUGH, settled),
            (f"{name}: correlation gained from {ENOUGH} to {n_all} measurements", 0.0, gained),
        )
        found += [Row(what, None, ours, None, FLAT, reference, READ_OFF) for what, reference, ours in beside]
    return found


def _settled(curve: list[float]) -> int:
    """From how many measurements on a curve is near its end."""
    away = np.flatnonzero(np.abs(np.array(curve) - curve[-1]) > NEAR)
    return int(away[-1]) + 2 if len(away) else 1


def _means(one: ProtocolRun, n: int) -> Floats:
    means: Floats = one.exposures[:n].mean(axis=0)
    return means


def _coefficient(one: ProtocolRun, n: int) -> float:
    return float(np.corrcoef(_means(one, n), one.games.accuracy(ATTACK))[0, 1])


def _gain(one: ProtocolRun, n_all: int, rng: np.random.Generator) -> Estimate:
    """Difference of two correlations on the same targets, with the bootstrap over targets."""
    few, many, accuracy = _means(one, ENOUGH), _means(one, n_all), one.games.accuracy(ATTACK)

    def gain(rows: NDArray[np.int64]) -> float:
        return float(np.corrcoef(many[rows], accuracy[rows])[0, 1] - np.corrcoef(few[rows], accuracy[rows])[0, 1])

    n = len(accuracy)
    with np.errstate(invalid="ignore"):
        resampled = [gain(rng.integers(0, n, n)) for _ in range(N_RESAMPLES)]
    low, high = np.nanquantile(resampled, [0.025, 0.975])
    value = gain(np.arange(n))
    return Estimate(value, min(low, value), max(high, value), 0.95, "bootstrap over records", n)


EXPERIMENT = Experiment(
    name="long-figure-3",
    title="Correlation of PDTP with attack accuracy, by the number of measurements",
    source="Long et al. 2017, Figure 3",
    published="the correlation stops rising after about 10 measurements (naive Bayes on Purchase)",
    data=("location30",),
    run=run,
)
