"""Queries other than the records themselves: a search for the worst records, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.auditing.influence.settings import Queries
from leakgauge.errors import ModelError
from leakgauge.influence import Changes, Pdtp, QuerySearch, search
from leakgauge.influence.search import stopping_floor

if TYPE_CHECKING:
    from leakgauge.auditing.settings import Settings
    from leakgauge.records import Records
    from leakgauge.training import Learner

N_SEARCHED = 8
"""Records about which other queries are searched for: those of largest influence."""


@dataclass(frozen=True)
class Elsewhere:
    """What a search over queries other than the records themselves found, in nats or in the units of the label.

    Args:
        found: the best queries about the worst records; ``None`` where nothing was searched, or no model was had.
        floor: how far arithmetic alone may move what was found there ``[m]``.
        n_sought: records for which a search was due.
    """

    found: QuerySearch | None = None
    floor: Floats | None = None
    n_sought: int = 0

    @property
    def n_searched(self) -> int:
        """Records for which queries were found."""
        return 0 if self.found is None else len(self.found.which)

    @property
    def n_failed(self) -> int:
        """Records for which the search was due and was not carried out to its end."""
        lost = 0 if self.found is None else len(self.found.failures.keys() & set(self.found.which.tolist()))
        return self.n_sought - self.n_searched + lost

    @property
    def least(self) -> Floats:
        """What was found about each record, arithmetic taken off ``[m]``."""
        if self.found is None or self.floor is None:
            return np.zeros(0)
        found = np.nan_to_num(self.found.values, nan=0.0, posinf=np.inf)
        least = np.where(np.isinf(found), found, found - self.floor)
        return np.nan_to_num(least, nan=0.0, posinf=np.inf, neginf=0.0)

    @property
    def most(self) -> float:
        """The largest value found, arithmetic added; 0 where nothing was searched."""
        if self.found is None or self.floor is None:
            return 0.0
        return float(np.nan_to_num(self.found.values + self.floor, nan=np.inf, posinf=np.inf).max(initial=0.0))

    @property
    def largest(self) -> float:
        """The largest value that is certain, at any query; 0 where nothing was searched."""
        return float(self.least.max(initial=0.0))

    @property
    def largest_other(self) -> float:
        """The same of queries that tell more than the record itself, from which the search starts."""
        if self.found is None:
            return 0.0
        return float(self.least[self.found.values > self.found.own].max(initial=0.0))


def searched(learner: Learner, train: Records, found: Pdtp | Changes, settings: Settings, device: str) -> Elsewhere:
    """Search for other queries about the worst records, unless the rule accepts such queries.

    For a randomised learner one pair of models shows nothing, so nothing is searched.
    """
    if settings.rule.queries is Queries.DIRECT or learner.randomised or len(found.which) == 0:
        return Elsewhere()
    known = np.nan_to_num(found.values, nan=0.0, posinf=np.inf)
    worst = np.sort(found.which[np.argsort(-known, kind="stable")[:N_SEARCHED]])
    try:
        best = search(
            learner, train, worst, seed=settings.seed, released=settings.release, width=settings.bin_width
        ).known()
    except ModelError:  # the model of all records could not be trained to the end of its solver, or did not answer
        return Elsewhere(n_sought=len(worst))
    return Elsewhere(best, best.floor + stopping_floor(learner, train, best, settings.seed, device), len(worst))
