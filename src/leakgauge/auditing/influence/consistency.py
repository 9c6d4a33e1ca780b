"""Whether what a document says about influence agrees with itself.

Estimates are believed as they stand, but not where two numbers of one document cannot both be true.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from leakgauge.auditing.influence.result import Influence, InfluencePart, PredictionChange
from leakgauge.auditing.influence.sample import most_above
from leakgauge.auditing.result import Description, ExposedRecord

ROUNDING = 1e-9
"""How far numbers that are one number may be apart, as a share; those of single records are rounded to as much."""


def contradictions(
    part: InfluencePart, description: Description, most_exposed: Sequence[ExposedRecord]
) -> Iterator[str]:
    """What cannot be, each in a sentence without its stop.

    Args:
        part: of the document.
        description: of what was audited.
        most_exposed: the records that stand in the document.
    """
    found = part.influence or part.change
    if found is None:
        return
    if not _counts_fit(found, description.n_train):
        yield "its counts of records whose influence was measured do not fit each other"
    if not _ends_fit(found):
        yield "the largest influence does not lie between its ends"
    listed = [(one.pdtp if part.change is None else one.change, found.largest) for one in most_exposed]
    listed += [(one.dtp_on_train, found.indirect_most) for one in most_exposed]
    if any(value is not None and value > largest + ROUNDING for value, largest in listed):
        yield "it lists a record of more influence than the largest"


def _counts_fit(found: Influence | PredictionChange, n_training: int) -> bool:
    n_left = found.n_training - found.n_measured
    least_above = most_above(0, found.n_at_random, n_left) if 0 <= found.n_at_random <= found.n_measured else -1
    above_on_train = isinstance(found, Influence) and found.n_above_on_train > 0
    return (
        found.n_training == n_training
        and n_left >= 0
        and 0 <= found.n_failed <= found.n_measured
        and (found.n_failed == 0 or math.isinf(found.most))
        and 0 <= found.n_above_limit <= found.n_measured
        and found.histogram.n <= found.n_measured
        and (found.n_above_limit > 0) is (found.histogram.n > 0 and found.largest > found.limit)
        and (found.histogram.n_infinite > 0) is (found.histogram.n > 0 and math.isinf(found.largest))
        and 0 <= least_above <= found.most_above <= n_left
        and (found.most_above == least_above or found.noise_floor > 0 or _most(found) > found.limit)
        and (not above_on_train or found.indirect_most > found.limit)
    )


def _most(found: Influence | PredictionChange) -> float:
    """What the largest influence is at most, in the units of the limit."""
    return found.most if isinstance(found, Influence) else found.judged().high


def _ends_fit(found: Influence | PredictionChange) -> bool:
    """Whether each value is between its ends; not so for NaN."""
    unit = 1.0 if isinstance(found, Influence) else found.deviation.value
    indirect_least = found.indirect if isinstance(found, Influence) else found.indirect_least
    direct, elsewhere = (unit * (1 + ROUNDING) * value for value in (found.largest, found.indirect))
    return (
        0 <= found.least <= direct <= found.most * (1 + ROUNDING) ** 2
        and 0 <= indirect_least <= elsewhere <= found.indirect_most * (1 + ROUNDING) ** 2
        and 0 <= found.median <= found.largest
        and 0 <= found.solver_floor * unit <= found.most * (1 + ROUNDING)
        and found.noise_floor >= 0
        and found.limit > 0
        and (isinstance(found, PredictionChange) or found.bound >= 0)
    )
