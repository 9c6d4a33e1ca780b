"""Chase et al. 2021, Figure 1: how often the attacker is right, by the share of poison, in all six experiments."""

from __future__ import annotations

from collections.abc import Iterator

from leakgauge.reproduce import chase_figures
from leakgauge.reproduce.chase import FULL, MAIL, PEOPLE, QUICK
from leakgauge.reproduce.chase_figures import (
    BALANCED,
    SHOWN,
    SHOWN_TO_MODEL,
    SIX,
    WEIGHED,
    Case,
    ExperimentCurve,
    Found,
    above,
)
from leakgauge.reproduce.result import Experiment, Reproduction, Row
from leakgauge.training import HERE, Execution

POISONS = (0.0, 0.01, 0.03, 0.05, 0.10, 0.15, 0.20)
QUICK_POISONS = (0.0, 0.05, 0.10)

TOLD = 0.9
ENOUGH = {PEOPLE: (0.05, 0.10), MAIL: (0.10,)}
"""Shares of poison with which the attacker is said to be right more often than that (section VII-E)."""

VARIANTS = (*BALANCED, SHOWN)
"""Other settings that the paper leaves open, at those shares."""

TOO_FEW = "too few predicted labels differ between the two frequencies"


def run(*, quick: bool, seed: int, execution: Execution = HERE) -> Reproduction:
    """Seven shares of poison; with ``quick`` three, a tenth of the shadow models and a fifth of the targets."""
    poisons, budget = (QUICK_POISONS, QUICK) if quick else (POISONS, FULL)
    curves = [ExperimentCurve(case, "poison", poisons) for case in SIX]
    curves += [ExperimentCurve(case, "poison", ENOUGH[case.data]) for case in VARIANTS]
    return chase_figures.reproduced(
        EXPERIMENT,
        curves,
        rows,
        chase_figures.load,
        budget,
        seed=seed,
        execution=execution,
        remarks=(WEIGHED, SHOWN_TO_MODEL),
    )


def rows(case: Case, found: Found) -> Iterator[Row]:
    """Each point; beside some what the text says."""
    for poison, one in found.items():
        what = f"{case.name}: {poison:.0%} poison"
        if poison in ENOUGH[case.data]:
            yield above(what, TOLD, one.win_rate, why_not=TOO_FEW)
        else:
            yield Row(what, None, one.win_rate)


EXPERIMENT = Experiment(
    name="chase-figure-1",
    title="Property inference from labels, by the share of poisoned records",
    source="Chase et al. 2021, Figure 1",
    published="attack accuracy above 0.9 with 9 to 10 % poison, on Census with 4 to 5 %",
    data=(PEOPLE, MAIL),
    run=run,
)
