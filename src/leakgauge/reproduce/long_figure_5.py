"""Long et al. 2017, Figure 5 and section 5.5: the distance-based attack on three learners, record by record, Adult."""

from __future__ import annotations

from dataclasses import replace

from leakgauge.reproduce import long_table_2
from leakgauge.reproduce.long import ADULT, DIFFERENCES, LEARNERS, NETWORK, TRIED, ProtocolRun
from leakgauge.reproduce.long_figure_4 import RISKY
from leakgauge.reproduce.result import Row

REACHED = 0.7
"""Accuracy below which the attack stays on every record, for naive Bayes and logistic regression."""


def rows(one: ProtocolRun) -> list[Row]:
    """How straight the cloud is, and what the paper says about its ends."""
    found, high, risky = long_table_2.correlation(one), one.games.accuracy("distance") >= REACHED, one.exposure > RISKY
    what = f"with PDTP above {RISKY:g}"
    if one.kind == NETWORK:
        row = one.share(what, risky, None)
        # One of a hundred would be some: where there is none, chance may be the reason.
        note = "the paper: some" if risky.any() else f"the paper: some; {DIFFERENCES[NETWORK]}"
        return [*found, replace(row, agrees=True if risky.any() else None, note=f"{row.note}; {note}")]
    shares = (what, risky), (f"with attack accuracy {REACHED:g} or more", high)
    return [*found, *(one.share(what, hits, 0.0, said="none") for what, hits in shares)]


STUDY = replace(long_table_2.STUDY, wanted=tuple((kind, ADULT) for kind in LEARNERS), rows=rows, remarks=TRIED)


EXPERIMENT = STUDY.entry(
    name="long-figure-5",
    title="Accuracy of the distance attack on each record by its PDTP, Adult",
    source="Long et al. 2017, Figure 5 and section 5.5",
    published=(
        "correlations for three learners on Adult; no PDTP above 1 and no attack accuracy from 0.7 on for two of them"
    ),
    data=("adult",),
)
