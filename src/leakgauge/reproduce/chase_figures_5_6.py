"""Chase et al. 2021, Figures 5 and 6: what poison does to precision and recall of the logistic regression attacked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from leakgauge.properties import Power, PropertyAttack, Side, hold_out, power_curve
from leakgauge.records import Records, split
from leakgauge.reproduce import chase, chase_figures
from leakgauge.reproduce.chase import FULL, MAIL, PEOPLE, QUICK, Budget
from leakgauge.reproduce.chase_figures import BALANCED, CENSUS, ENRON, Case, Data, below
from leakgauge.reproduce.plots import Series, panels
from leakgauge.reproduce.result import Experiment, Reproduction, Row
from leakgauge.streams import GameStream
from leakgauge.training import HERE, Execution

POISONS = (0.0, 0.05, 0.10, 0.15, 0.20)
QUICK_POISONS = (0.0, 0.10, 0.20)
N_TEST = 3000

ATTACK = PropertyAttack(n_ensemble=50, n_queries=10, n_shadow=5)
"""Hardly any: what is poisoned does not hang on it."""

LARGEST_ON_CENSUS = 0.5
TESTED_ON = (
    "Precision and recall are measured on records among which the frequency of the property is halfway between the "
    "two frequencies; with more records like the poisoned ones precision would be lower and recall higher. Intervals "
    "are over other target models, given these records. The attack accuracy is not measured here."
)
PLANTED = (
    "Algorithm 1 determines the label of the poisoned records: the rarer one among the records drawn. Where that is "
    "ham, more messages are predicted to be ham, and the recall of spam falls."
)
BETTER = "these models are more precise: another encoding or another threshold"


def run(*, quick: bool, seed: int, execution: Execution = HERE) -> Reproduction:
    """Five shares of poison; with ``quick`` three, and a fifth of the targets."""
    poisons, budget = (QUICK_POISONS, QUICK) if quick else (POISONS, FULL)
    cases = (*CENSUS, *BALANCED, *ENRON)
    return reproduced(cases, poisons, N_TEST, chase_figures.load, budget, seed=seed, execution=execution)


def reproduced(
    cases: Sequence[Case],
    poisons: Sequence[float],
    n_test: int,
    data: Data,
    budget: Budget,
    *,
    seed: int,
    execution: Execution = HERE,
) -> Reproduction:
    """Some experiments on anybody's records, of which twice the number of test records is on neither side.

    Among the test records the property is as frequent as halfway between the two hypotheses.
    """
    rows: list[Row] = []
    drawn: list[Series] = []
    for case in cases:
        records, secret = case.secret.told_by(data(case.data), seed)
        others, rest = split(records, 2 * n_test, len(records) - 2 * n_test, rng=seed)
        sides = hold_out(rest, secret, seed=seed).as_codes()
        tester = Side("tester", others, secret.of(others), sides.owner.positive).as_codes()
        found = power_curve(
            case.learner(case.estimator(), sides),
            sides,
            case.secret.game(0.0, case.n_training),
            poisons,
            drawn_from(tester, n_test, (case.secret.t0 + case.secret.t1) / 2, seed),
            ATTACK,
            n_targets=budget.n_targets,
            seed=seed,
            execution=execution,
        )
        rows += [row for point in found for row in said(case, point)]
        known = [(point.poison, point.precision.value) for point in found if point.precision]
        drawn += [
            Series(f"{case.name}: precision", [x for x, _ in known], [y for _, y in known], "line"),
            Series(f"{case.name}: recall", poisons, [point.recall.value for point in found], "line"),
        ]
    settings = {"seed": seed, "target models of each frequency": budget.n_targets, "test records": n_test}
    remarks = (
        chase.NOT_PRINTED,
        chase_figures.MAIL_AS_WORDS,
        chase_figures.SENTIMENT_BY,
        chase_figures.WEIGHED,
        TESTED_ON,
        PLANTED,
    )
    picture = panels(EXPERIMENT.title, "share of poisoned records", "share", drawn, in_a_row=2)
    return EXPERIMENT.result(rows, picture, settings=settings, remarks=remarks)


def drawn_from(side: Side, n: int, frequency: float, seed: int) -> Records:
    """Records that are like those of a training set."""
    (rows,) = side.draw_sets(n, np.array([frequency]), GameStream.TESTED_RECORDS.generator(seed))
    return side.records[rows]


def said(case: Case, point: Power) -> Iterator[Row]:
    """Precision, where it is known, and recall at one share of poison."""
    what = f"{case.name}, {point.poison:.0%} poison"
    if point.precision and case.data == PEOPLE:
        yield below(f"{what}: precision", LARGEST_ON_CENSUS, point.precision, why_not=BETTER)
    elif point.precision:
        yield Row(f"{what}: precision", None, point.precision)
    note = f"{point.n_never} target models never predict the second class: no precision" if point.n_never else ""
    yield Row(f"{what}: recall", None, point.recall, None, note)


EXPERIMENT = Experiment(
    name="chase-figures-5-6",
    title="Precision and recall of the target models, by the share of poisoned records",
    source="Chase et al. 2021, Figures 5 and 6",
    published="precision falls slowly and recall rises with poison; precision is below 0.5 on Census",
    data=(PEOPLE, MAIL),
    run=run,
)
