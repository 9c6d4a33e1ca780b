"""Which records are exposed? Many records tested at once, with the share of false alarms among the findings kept.

The list of records whose tests reject is a finding: among the records named, the expected share that is not exposed is
at most q (the false discovery rate). A record that is **not** on the list is not thereby safe: the attack is weak, or
the records that it is held against are too few.

Sources: Benjamini and Hochberg, "Controlling the false discovery rate", JRSS B 57 (1995); Benjamini and Yekutieli,
"The control of the false discovery rate in multiple testing under dependency", Annals of Statistics 29 (2001).
"""

from __future__ import annotations

import dataclasses
import enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.statistics._checks import check_fraction, check_values
from leakgauge.statistics.multiple import benjamini_hochberg, benjamini_yekutieli

Floats = NDArray[np.float64]


class Dependence(enum.Enum):
    """What is known about how the records' tests depend on each other; it decides what the error control costs.

    Attributes:
        UNKNOWN: Nothing. Benjamini and Yekutieli 2001, valid always; it costs a factor of about `ln n + 0.58`.
        POSITIVE: Independent, or positively dependent on each record that is not exposed (PRDS). Benjamini and
            Hochberg 1995.
    """

    UNKNOWN = "Benjamini-Yekutieli"
    POSITIVE = "Benjamini-Hochberg"


@dataclasses.dataclass(frozen=True, eq=False)
class IdentifiedRecords:
    """The records found to be exposed, in the order in which they were given.

    Attributes:
        exposed: True where a record is exposed [n].
        adjusted: Adjusted p-values [n]: the smallest false discovery rate at which a record would be on the list.
        q: False discovery rate allowed: the expected share of the list that is not exposed.
        dependence: What was assumed.
    """

    exposed: NDArray[np.bool_]
    adjusted: Floats
    q: float
    dependence: Dependence

    @property
    def n_exposed(self) -> int:
        """Number of records on the list."""
        return int(self.exposed.sum())

    @property
    def records(self) -> NDArray[np.int64]:
        """Positions of the exposed records, those with the strongest evidence first."""
        order = np.argsort(self.adjusted, kind="stable")
        return order[self.exposed[order]]

    def __str__(self) -> str:
        return (
            f"{self.n_exposed} of {self.exposed.size} records exposed "
            f"(false discovery rate {self.q:g}, {self.dependence.value})"
        )


def exposed_records(
    p_values: ArrayLike, *, q: float = 0.05, dependence: Dependence = Dependence.UNKNOWN
) -> IdentifiedRecords:
    """Find the records whose p-values are small, keeping the false discovery rate.

    Args:
        p_values: One per record [n], in [0, 1]; each must be valid alone: at most u with probability at most u if
            the record is not exposed.
        q: False discovery rate, in (0, 1).
        dependence: `POSITIVE` only if that is known. Games that share their models are not independent, and
            training sets of fixed size even depend negatively: one record's place is another's loss.

    Returns:
        The list, with the evidence for each record.

    Raises:
        ValueError: If there is no p-value, or one is NaN or outside [0, 1], or q is out of range.

    >>> found = exposed_records([0.001, 0.8, 0.004, 0.3])
    >>> print(found)
    2 of 4 records exposed (false discovery rate 0.05, Benjamini-Yekutieli)
    >>> found.records.tolist(), found.adjusted.round(4).tolist()
    ([0, 2], [0.0083, 1.0, 0.0167, 0.8333])
    """
    q = check_fraction("q", q)
    match dependence:
        case Dependence.UNKNOWN:
            adjusted = benjamini_yekutieli(p_values)
        case Dependence.POSITIVE:
            adjusted = benjamini_hochberg(p_values)
        case unknown:
            raise TypeError(f"dependence must be a Dependence, got {unknown!r}; try Dependence.UNKNOWN.")
    return IdentifiedRecords(adjusted <= q, adjusted, q, dependence)


def outside_p_values(scores: ArrayLike, outside: ArrayLike) -> Floats:
    """Compute for each score the share of scores from outside that are at least as high, the score itself counted in.

    A record whose score follows the same law as those from outside has such a p-value: at most u with probability at
    most u, whatever the law, ties or not. All are held against the same scores from outside, so they depend on each
    other, but positively (PRDS), and `exposed_records` with `Dependence.POSITIVE` keeps its rate.

    Args:
        scores: One per record tested [n]; higher means more exposed. Infinite values are allowed.
        outside: Scores of records known not to be exposed [m], drawn like those tested.

    Returns:
        P-values [n], at least 1/(m + 1).

    Raises:
        ValueError: If there is no score in one of the two, or one is NaN.

    Source:
        Bates, Candès, Lei, Romano and Sesia, "Testing for outliers with conformal p-values", Annals of Statistics 51
        (2023), equation 2 and theorem 2.

    >>> outside_p_values([5.0, 1.0, 0.0], [1.0, 2.0, 3.0]).tolist()
    [0.25, 1.0, 1.0]
    """
    tested, known = check_values("scores", scores), np.sort(check_values("outside", outside))
    at_least = known.size - np.searchsorted(known, tested, side="left")
    return (1 + at_least) / (known.size + 1)
