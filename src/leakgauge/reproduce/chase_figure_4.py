"""Chase et al. 2021, Figure 4: how often the attacker is right, by the size of the training set, with 10 % poison."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from leakgauge.reproduce import chase_figures
from leakgauge.reproduce.chase import FULL, MAIL, PEOPLE, QUICK
from leakgauge.reproduce.chase_figures import SIX, Case, ExperimentCurve, Found, lost
from leakgauge.reproduce.result import Experiment, Reproduction, Row, positive
from leakgauge.training import HERE, Execution

N_SHADOW = 200
CASES = [dataclasses.replace(case, n_shadow=N_SHADOW) for case in SIX]

SIZES = (100, 200, 500, 1000, 1500)
QUICK_SIZES = (100, 1000)

NO_ROOM = "with 10 % poison small training sets reveal as much"


def run(*, quick: bool, seed: int, execution: Execution = HERE) -> Reproduction:
    """Five sizes; with ``quick`` two, a tenth of the shadow models and a fifth of the targets."""
    sizes, budget = (QUICK_SIZES, QUICK) if quick else (SIZES, FULL)
    curves = [ExperimentCurve(case, "n_training", sizes) for case in CASES]
    return chase_figures.reproduced(
        EXPERIMENT, curves, rows, chase_figures.load, budget, seed=seed, execution=execution
    )


def rows(case: Case, found: Found) -> Iterator[Row]:
    """Each point, and how far the curve rises."""
    for n_training, one in found.items():
        yield Row(f"{case.name}: {n_training:,} records", None, one.win_rate)
    smallest, largest = min(found), max(found)
    what = f"{case.name}: accuracy gained from {smallest:,} to {largest:,} records"
    yield positive(what, lost(found[largest], found[smallest]), why_not=NO_ROOM)


EXPERIMENT = Experiment(
    name="chase-figure-4",
    title="Property inference from labels, by the size of the training set",
    source="Chase et al. 2021, Figure 4",
    published="attack accuracy rises with the size of the training set, from 100 to 1,500 records",
    data=(PEOPLE, MAIL),
    run=run,
)
