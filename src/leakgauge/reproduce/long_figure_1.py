"""Long et al. 2017, Figure 1: three attacks on networks, record by record."""

from __future__ import annotations

from dataclasses import replace

from leakgauge.reproduce import long_table_1
from leakgauge.reproduce.long import DIFFERENCES, NETWORK, ProtocolRun
from leakgauge.reproduce.result import Row, exact

PRINTED = 0.94, 0.5
"""Accuracy of the untargeted and of the distance-based attack on the record where the first is most ahead."""


def rows(one: ProtocolRun) -> list[Row]:
    """How straight each cloud is, and the record on which the untargeted attack is most ahead."""
    untargeted, distance = one.games.accuracy("untargeted"), one.games.accuracy("distance")
    place = int((untargeted - distance).argmax())
    where = "on the record with the largest lead of untargeted"
    return [
        *(row for attack in long_table_1.PUBLISHED for row in long_table_1.correlation(attack, one)),
        *(
            one.row(f"{attack}, accuracy {where}", printed, exact(float(values[place]), "of this run", len(values)))
            for attack, printed, values in zip(("untargeted", "distance"), PRINTED, (untargeted, distance), strict=True)
        ),
    ]


STUDY = replace(long_table_1.STUDY, rows=rows, remarks=(f"Networks: {DIFFERENCES[NETWORK]}.",))


EXPERIMENT = STUDY.entry(
    name="long-figure-1",
    title="Accuracy of three attacks on each record by its PDTP, networks",
    source="Long et al. 2017, Figure 1",
    published=(
        "correlations, and a record on which the untargeted attack is correct in 94 of 100 games, the other in 50"
    ),
    data=("location30",),
)
