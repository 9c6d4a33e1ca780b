"""Long et al. 2017, Figure 2 and section 5.5: the best of three attacks on each record."""

from __future__ import annotations

from dataclasses import replace

from leakgauge.reproduce import long_figure_1
from leakgauge.reproduce.long import ProtocolRun
from leakgauge.reproduce.result import Row

CORRELATION = 0.8936
CLAIMS = ((1.0, 0.8, 0.8462, ""), (1.0, 0.6, 1.0, "all"), (4.0, 0.9, 1.0, "almost always"))
"""PDTP above, best accuracy above, share of such records, and its words where it is not printed as a number: section
5.5 and abstract."""

HIDDEN, SAFEST = 0.5, 0.665
"""Abstract: on records with less PDTP than the first no attack is better than the second."""


def rows(one: ProtocolRun) -> list[Row]:
    """How straight the cloud is, and what the paper says about its corners."""
    best = one.games.best_accuracy()
    return [
        *one.correlation(None, CORRELATION, what="correlation of the best accuracy with PDTP"),
        *(
            one.share(
                f"with PDTP above {above:g} whose best accuracy is above {level:g}",
                best > level,
                share,
                among=one.exposure > above,
                said=said,
            )
            for above, level, share, said in CLAIMS
        ),
        one.share(
            f"with PDTP below {HIDDEN:g} whose best accuracy is above {SAFEST:g}",
            best > SAFEST,
            0.0,
            among=one.exposure < HIDDEN,
            said="none",
        ),
    ]


STUDY = replace(long_figure_1.STUDY, rows=rows, heading="Best accuracy of three attacks by PDTP", attacks=(None,))


EXPERIMENT = STUDY.entry(
    name="long-figure-2",
    title="Best accuracy of three attacks on each record by its PDTP, networks",
    source="Long et al. 2017, Figure 2 and section 5.5",
    published="a correlation of 0.8936, and the shares of records of large or small PDTP on which attacks are accurate",
    data=("location30",),
)
