"""Chase et al. 2021, Figure 2: so much poison in Enron-Spam that more of it does not help the attacker."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from leakgauge.reproduce import chase_figures
from leakgauge.reproduce.chase import FULL, MAIL, QUICK
from leakgauge.reproduce.chase_figures import ENRON, Case, ExperimentCurve, Found, lost
from leakgauge.reproduce.result import Experiment, Reproduction, Row, positive
from leakgauge.training import HERE, Execution

CASES = [dataclasses.replace(case, n_training=1000, n_shadow=400) for case in ENRON]

POISONS = (0.0, 0.05, 0.10, 0.20, 0.30, 0.40)
QUICK_POISONS = (0.10, 0.40)
SOME, MOST = 0.10, 0.40
"""Shares of poison that are held against each other; a curve must have both."""

STILL_TOLD = "here models with this much poison still distinguish the frequencies"


def run(*, quick: bool, seed: int, execution: Execution = HERE) -> Reproduction:
    """Six shares of poison; with ``quick`` two, a tenth of the shadow models and a fifth of the targets."""
    poisons, budget = (QUICK_POISONS, QUICK) if quick else (POISONS, FULL)
    curves = [ExperimentCurve(case, "poison", poisons) for case in CASES]
    return chase_figures.reproduced(
        EXPERIMENT, curves, rows, chase_figures.load, budget, seed=seed, execution=execution
    )


def rows(case: Case, found: Found) -> Iterator[Row]:
    """Each point, and how far the curve falls."""
    for poison, one in found.items():
        yield Row(f"{case.name}: {poison:.0%} poison", None, one.win_rate)
    what = f"{case.name}: accuracy lost from {SOME:.0%} to {MOST:.0%} poison"
    yield positive(what, lost(found[SOME], found[MOST]), why_not=STILL_TOLD)


EXPERIMENT = Experiment(
    name="chase-figure-2",
    title="Property inference from labels, with up to 40 % poisoned records",
    source="Chase et al. 2021, Figure 2",
    published="attack accuracy falls again with much poison: for the random bit near 30 %, for the sentiment earlier",
    data=(MAIL,),
    run=run,
)
