"""Chase et al. 2021, Figure 3: how often the attacker is right, by the number of shadow models, with 10 % poison."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from leakgauge.reproduce import chase_figures
from leakgauge.reproduce.chase import FULL, MAIL, PEOPLE, QUICK
from leakgauge.reproduce.chase_figures import NETWORK, SIX, Case, ExperimentCurve, Found, lost
from leakgauge.reproduce.result import Experiment, Reproduction, Row, agrees, compared, sentence
from leakgauge.training import HERE, Execution

N_SHADOW = (50, 100, 200, 500, 1000, 2000)
QUICK_SHADOW = (50, 100)
MOST_OF_NETWORKS = 200

TOLD_BY_FEW = {"Census random bit": 1.0, "Enron random bit": 1.0}
"""How often the attacker is right with the fewest shadow models."""

FEW, ENOUGH, MOST = 50, 500, 2000
REACHED = "the paper: about the maximum"

CHANCE = "with so few shadow models the linear attack depends much on chance"
MORE_HELP = "here more shadow models still increase the accuracy"


def run(*, quick: bool, seed: int, execution: Execution = HERE) -> Reproduction:
    """Six numbers of shadow models, for networks three; with ``quick`` two and one, and a fifth of the targets."""
    numbers, budget = (QUICK_SHADOW, dataclasses.replace(QUICK, share_of_shadows=1.0)) if quick else (N_SHADOW, FULL)
    few = [n for n in numbers if n <= MOST_OF_NETWORKS]
    curves = [ExperimentCurve(case, "n_shadow", few if case is NETWORK else numbers) for case in SIX]
    return chase_figures.reproduced(
        EXPERIMENT, curves, rows, chase_figures.load, budget, seed=seed, execution=execution
    )


def rows(case: Case, found: Found) -> Iterator[Row]:
    """Each point, and what models are worth beyond those that are said to be enough."""
    for n_shadow, one in found.items():
        what = f"{case.name}: {n_shadow:,} shadow models"
        if n_shadow == FEW and case.name in TOLD_BY_FEW:
            yield compared(what, TOLD_BY_FEW[case.name], one.win_rate, why_not=CHANCE)
        else:
            yield Row(what, None, one.win_rate)
    if {ENOUGH, MOST} <= set(found):
        what = f"{case.name}: accuracy gained from {ENOUGH:,} to {MOST:,} shadow models"
        gained = lost(found[MOST], found[ENOUGH])
        yield sentence(what, gained, agrees(0.0, gained), said=REACHED, why_not=MORE_HELP)


EXPERIMENT = Experiment(
    name="chase-figure-3",
    title="Property inference from labels, by the number of shadow models",
    source="Chase et al. 2021, Figure 3",
    published="about the largest accuracy with 500 shadow models, and an accuracy of 1 with 50 for random bits",
    data=(PEOPLE, MAIL),
    run=run,
)
