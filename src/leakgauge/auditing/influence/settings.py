"""The settings of the influence of single records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from leakgauge.auditing.tables import Or, Part, said_of
from leakgauge.checking import Checked, number, one_of, optional, setting, whole

LARGEST_DTP_NATS = 100.0
"""Of limits: a factor of e^100 gives any record away, and a limit above it would judge nothing."""


class Queries(StrEnum):
    """Which queries the release rule protects against.

    ``MEASURED``: queries about the record itself, which are measured for every record, and others as far as a search
    finds any. A pass then is one of what was measured, as in Long et al. 2017, section 5, and proves nothing about
    queries that were not tried. ``ANY``: any query at all. A limit on DTP can then be failed on what was found, but
    passed only where a bound for every query is known: such a pass is proven. ``IN_RANGE``: any query whose numeric
    columns lie within the range of the training records; right where the release refuses or clips others. ``DIRECT``:
    queries about the record itself only; other queries that reveal a record are accepted, and none is searched for.
    """

    MEASURED = "measured"
    ANY = "any"
    IN_RANGE = "in range"
    DIRECT = "direct"

    @property
    def needs_bound(self) -> bool:
        """Whether a pass needs a bound on queries that nobody tried."""
        return self in (Queries.ANY, Queries.IN_RANGE)


@dataclass(frozen=True, kw_only=True)
class InfluenceLimits(Checked):
    """The limit on influence.

    Args:
        dtp: largest differential training privacy, in nats, in (0, 100]; ``None`` leaves it out.
        queries: which queries the limit on DTP covers.
    """

    dtp: float | None = setting(
        1.0,
        optional(number(above=0, most=LARGEST_DTP_NATS, hint="the DTP-1 rule is 1.0")),
        'largest differential training privacy, in nats, or "none"',
    )
    queries: Queries = setting(
        Queries.MEASURED,
        one_of(Queries),
        "the queries that the limit on DTP covers: measured, any, in range or direct",
    )


@dataclass(frozen=True, kw_only=True)
class InfluenceSettings(Checked):
    """How influence is measured.

    Args:
        n_influence: how many training records to measure influence of, drawn at random; ``None`` for all, 0 for none.
        n_repeats: seeds that PDTP of a randomised learner is averaged over.
    """

    n_influence: int | None = setting(
        None, optional(whole(0, hint="leave it out for all")), 'how many training records to measure, or "all"'
    )
    n_repeats: int = setting(1, whole(1), "seeds that the measure is averaged over, for randomised learners")


class InfluencePart(Part):
    """[influence]: the influence of single records."""

    sets: ClassVar[dict[str, str]] = {"records": "n_influence", "repeats": "n_repeats"}

    records: Annotated[int | None, Or("all", InfluenceSettings, "n_influence", "a whole number")] = said_of(
        InfluenceSettings, "n_influence"
    )
    repeats: int = said_of(InfluenceSettings, "n_repeats")
