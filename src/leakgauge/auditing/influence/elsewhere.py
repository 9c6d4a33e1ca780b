"""Queries other than the records themselves: the other training records, and a search for the worst.

Where models without a record take no training, each is asked about all training records, or as many as time allows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.auditing.influence.settings import Queries
from leakgauge.errors import ModelError
from leakgauge.influence import Changes, Dtp, Pdtp, QuerySearch, dtp_on_train, search
from leakgauge.influence.search import stopping_floor
from leakgauge.streams import AuditStream
from leakgauge.training import Execution, Job, Randomness, leave_units_out, plan
from leakgauge.training.engines import STOPPING

if TYPE_CHECKING:
    from leakgauge.auditing.settings import Settings
    from leakgauge.records import Records
    from leakgauge.training import Learner

N_SEARCHED = 8
"""Records about which other queries are searched for: those of largest influence."""

MOST_ANSWERS = 2**21
"""Of models without a record, about other training records."""


@dataclass(frozen=True)
class Elsewhere:
    """What a search over queries other than the records themselves found, in nats or in the units of the label.

    Args:
        found: the best queries about the worst records; ``None`` where nothing was searched, or no model was had.
        floor: how far arithmetic alone may move what was found there ``[m]``.
        n_sought: records for which a search was due.
        on_train: the largest log ratio about training records, of the records that were left out, where engines need no
            training for it.
        n_asked: training records asked about for that.
    """

    found: QuerySearch | None = None
    floor: Floats | None = None
    n_sought: int = 0
    on_train: Dtp | None = None
    n_asked: int = 0

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
        """The largest value found, arithmetic added; 0 where nothing was asked, and unknown is not small."""
        told = self.on_train
        most = 0.0
        if told is not None:
            most = float(np.nan_to_num(told.values + told.floor, nan=np.inf, posinf=np.inf).max(initial=0.0))
        if self.found is None or self.floor is None:
            return most
        return float(np.nan_to_num(self.found.values + self.floor, nan=np.inf, posinf=np.inf).max(initial=most))

    @property
    def largest(self) -> float:
        """The largest value that is certain, at any query; 0 where nothing was asked."""
        return float(self.least.max(initial=self.largest_on_train))

    @property
    def largest_on_train(self) -> float:
        """The largest value about a training record that is certain; 0 where nothing was asked."""
        if self.on_train is None:
            return 0.0
        with np.errstate(invalid="ignore"):  # what is infinite, of an engine that knows nothing
            return float(np.nanmax(self.on_train.values - self.on_train.floor, initial=0.0))

    def n_above_on_train(self, limit: float) -> int:
        """Records that change the answer about some training record by more than a limit."""
        return 0 if self.on_train is None else int((self.on_train.values > limit).sum())

    @property
    def largest_searched(self) -> float:
        """The largest that the search found beyond the record itself, from which it starts; 0 without such a query."""
        if self.found is None:
            return 0.0
        return float(self.least[self.found.values > self.found.own].max(initial=0.0))


def elsewhere(
    learner: Learner, train: Records, found: Pdtp | Changes, settings: Settings, execution: Execution
) -> Elsewhere:
    """Ask about other records, and search for other queries about the worst, unless the rule accepts such queries.

    For a randomised learner one pair of models shows nothing, so nothing is asked.
    """
    if settings.rule.queries is Queries.DIRECT or learner.randomised or len(found.which) == 0:
        return Elsewhere()
    known = np.nan_to_num(found.values, nan=0.0, posinf=np.inf)
    asked, on_train = _on_train(learner, train, found, settings)
    if on_train is not None:
        known = np.maximum(known, np.nan_to_num(on_train.values, nan=0.0, posinf=np.inf))
    worst = np.sort(found.which[np.argsort(-known, kind="stable")[:N_SEARCHED]])
    try:
        best = search(
            learner,
            train,
            worst,
            seed=settings.seed,
            released=settings.release,
            width=settings.bin_width,
            execution=execution,
        ).known()
    except ModelError:  # the model of all records could not be trained to the end of its solver, or did not answer
        return Elsewhere(None, None, len(worst), on_train, asked)
    floor = best.floor + stopping_floor(learner, train, best, settings.seed, execution.device)
    return Elsewhere(best, floor, len(worst), on_train, asked)


def asked_on_train(learner: Learner, train: Records, which: Indices, settings: Settings) -> Indices:
    """Training records about which models without each of some others are asked; none where that takes training."""
    n, k = len(train), len(train.schema.classes)
    if settings.rule.queries is Queries.DIRECT or learner.randomised or k == 0 or len(which) == 0:
        return np.empty(0, dtype=np.int64)
    n_asked = min(n, MOST_ANSWERS // (len(which) * k))
    rows = np.sort(AuditStream.QUERIES.generator(settings.seed).choice(n, n_asked, replace=False))
    job = Job(
        learner, train, leave_units_out(train.units, which), train.features[rows], settings.seed, Randomness.COMMON
    )
    return rows[:0] if plan(job, engines=STOPPING).engine.trains else rows


def _on_train(learner: Learner, train: Records, found: Pdtp | Changes, settings: Settings) -> tuple[int, Dtp | None]:
    """How many training records were asked about, and what was found; nothing where models would have to be trained."""
    rows = asked_on_train(learner, train, found.which, settings)
    if not len(rows) or isinstance(found, Changes):
        return 0, None
    told = dtp_on_train(
        learner,
        train,
        found.which,
        seed=settings.seed,
        queries=rows,
        released=settings.release,
        width=settings.bin_width,
    )
    return len(rows), replace(told, floor=found.solver_floor)
