"""Long et al. 2017, Figure 4: the distance-based attack on three learners, record by record, Purchase."""

from __future__ import annotations

from dataclasses import replace

from leakgauge.reproduce import long_table_2
from leakgauge.reproduce.long import LEARNERS, LOCATION, PURCHASE_LIKE, ProtocolRun
from leakgauge.reproduce.result import Row

RISKY = 1.0
"""PDTP above which a model should not be published (section 5)."""


def rows(one: ProtocolRun) -> list[Row]:
    """How straight the cloud is, and how many records should have stopped the model."""
    exposed = one.share(f"with PDTP above {RISKY:g}", one.exposure > RISKY, None)
    return [*long_table_2.correlation(one), replace(exposed, note=f"{exposed.note}; the paper: some")]


STUDY = replace(
    long_table_2.STUDY,
    wanted=tuple((kind, source) for source in (PURCHASE_LIKE, LOCATION) for kind in LEARNERS),
    rows=rows,
    remarks=(),
)


EXPERIMENT = STUDY.entry(
    name="long-figure-4",
    title="Accuracy of the distance attack on each record by its PDTP, Purchase",
    source="Long et al. 2017, Figure 4",
    published="correlations for three learners on Purchase; some records have a PDTP above 1",
    data=("location30",),
)
