"""Long et al. 2017, Table 1: three attacks on networks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from leakgauge.reproduce.long import DIFFERENCES, LOCATION, NETWORK, PURCHASE_LIKE, ProtocolRun, Study
from leakgauge.reproduce.long_protocol import Games
from leakgauge.reproduce.result import Row
from leakgauge.statistics import Estimate, mean


@dataclass(frozen=True)
class AttackLine:
    """A line of the table."""

    accuracy: float
    precision: float
    recall: float
    f1: float
    correlation: float
    p_value: float


PUBLISHED = {
    "distance": AttackLine(0.8533, 0.8470, 0.9087, 0.8768, 0.7653, 1.85e-20),
    "untargeted": AttackLine(0.6680, 0.6386, 0.8500, 0.7294, 0.4864, 2.89e-7),
    "frequency": AttackLine(0.6257, 0.5933, 0.8253, 0.7174, 0.5052, 8.29e-8),
}
"""By attack, the best first."""

SLIP = "the printed F1 does not follow from the printed precision and recall (0.6903 would)"
NOT_PRINTED = "not in the paper"
DERIVED = "difference of two printed accuracies"
FEW = (
    "The targeted attacks have five shadow models with and five without each record; the untargeted one is trained on "
    "twenty for all records together. Where the target models are each other's shadow models, there are about a "
    "hundred with and a hundred without each record. The gain of the targeted attacks then shows what the sampling "
    "noise of five models costs them, above all in counting equal bins."
)


def rows(one: ProtocolRun) -> list[Row]:
    """The table for one data set, its order, and what more shadow models would change."""
    found = [row for attack in PUBLISHED for row in _of_attack(attack, one)]
    for better, worse in pairwise(PUBLISHED):
        derived = round(PUBLISHED[better].accuracy - PUBLISHED[worse].accuracy, 4)
        row = one.row(f"{better}, lead over {worse}", None, _lead(one.games, one.games, better, worse))
        found.append(replace(row, reference=derived, origin=DERIVED))
    many = "if the target models are each other's shadow models"
    found += [
        one.row(f"{attack}, accuracy {many}", None, one.shared.averaged(attack).accuracy, NOT_PRINTED)
        for attack in one.shared.called
    ]
    lead = _lead(one.shared, one.games, "distance", "untargeted")
    return [*found, one.row(f"distance, lead over untargeted {many}", None, lead, NOT_PRINTED)]


def _of_attack(attack: str, one: ProtocolRun) -> list[Row]:
    printed, metrics, pooled = PUBLISHED[attack], one.games.averaged(attack), one.games.pooled(attack)
    slip = SLIP if attack == "frequency" else f"pooled {pooled.f1}"
    return [
        one.row(f"{attack}, accuracy", printed.accuracy, metrics.accuracy),
        one.row(f"{attack}, precision", printed.precision, metrics.precision, f"pooled {pooled.precision}"),
        one.row(f"{attack}, recall", printed.recall, metrics.recall),
        one.row(f"{attack}, F1", printed.f1, metrics.f1, slip),
        *correlation(attack, one),
    ]


def correlation(attack: str, one: ProtocolRun) -> list[Row]:
    """The row about PDTP and one of the attacks."""
    printed = PUBLISHED[attack]
    return one.correlation(attack, printed.correlation, printed.p_value, what=f"{attack}, correlation with PDTP")


def _lead(ahead: Games, behind: Games, better: str, worse: str) -> Estimate:
    """Difference of accuracies on the same targets."""
    return mean(ahead.accuracy(better) - behind.accuracy(worse), lower=-1.0, upper=1.0)


STUDY = Study(
    wanted=((NETWORK, PURCHASE_LIKE), (NETWORK, LOCATION)),
    rows=rows,
    heading="Accuracy of three attacks by PDTP",
    attacks=tuple(PUBLISHED),
    remarks=(f"Networks: {DIFFERENCES[NETWORK]}.", FEW),
)


EXPERIMENT = STUDY.entry(
    name="long-table-1",
    title="Untargeted, frequency and distance attack on networks",
    source="Long et al. 2017, Table 1",
    published="accuracy, precision, recall and F1 of each attack on networks for Purchase, and correlations with PDTP",
    data=("location30",),
)
