"""The influence part of an audit: how far each training record moves the model, and whether the DTP rule holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.auditing.drawn import histogram
from leakgauge.auditing.influence.result import Influence
from leakgauge.auditing.influence.sample import Sample
from leakgauge.auditing.settings import Queries, ReleasedOutputs, Settings
from leakgauge.errors import ModelError
from leakgauge.influence import (
    Confirmation,
    DtpBound,
    OwnModels,
    Pdtp,
    QuerySearch,
    confirm,
    dtp_upper_bound,
    pdtp,
    search,
)
from leakgauge.influence.delivered import answered
from leakgauge.influence.pdtp import known_log_ratio
from leakgauge.influence.search import stopping_floor
from leakgauge.models import Model, binned_logs

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Execution, Learner


CERTAIN = 1.0
"""The confidence of what was computed rather than sampled."""

N_SEARCHED = 8
"""Records about which other queries are searched for: those with the largest PDTP."""


@dataclass(frozen=True)
class MeasuredInfluence:
    """PDTP of the training records, what is known of other queries, and the second look at the worst.

    Args:
        found: PDTP of the answers as they are released.
        sample: the records that were left out for it.
        bound: upper bound on the DTP of every training record, or ``None``.
        second_look: where seeds change the answers and the first look found a record above the limit.
        indirect: the best queries found about the worst records, unless the rule accepts any but direct ones.
        indirect_floor: how far arithmetic alone may move what was found there ``[m]``.
        apart: how far the answers of the released model about the records are from those of the model that the learner
            makes of them, in nats; for a learner with random numbers, beyond what other seeds do. 0 where the learner
            makes the model.
        given: whether the released model was given, and not made here.
    """

    found: Pdtp
    sample: Sample
    bound: DtpBound | None
    second_look: Confirmation | None
    indirect: QuerySearch | None
    indirect_floor: Floats
    apart: float = 0.0
    given: bool = False

    def most_above(self, limit: float) -> int:
        """Of the records that were not measured, how many may lie above a limit at most, with 95 % confidence."""
        drawn = np.isin(self.found.which, self.sample.at_random)
        above = ~((self.found.values + self.found.floor)[drawn] <= limit)  # unknown is not below
        return self.sample.most_above(int(above.sum()))

    @property
    def largest_indirect(self) -> float:
        """Largest log ratio at any query found, arithmetic taken off; 0 where nothing was searched."""
        return float(self._certain().max(initial=0.0))

    @property
    def largest_elsewhere(self) -> float:
        """The same of queries that tell more than the record itself, from which the search starts."""
        if self.indirect is None:
            return 0.0
        return float(self._certain()[self.indirect.values > self.indirect.own].max(initial=0.0))

    @property
    def largest_bound(self) -> float:
        """What no record's DTP exceeds; infinite where nothing is proven, or models could not be trained without."""
        lost = bool(self.found.failures) or bool(np.isnan(self.found.values).any())
        return np.inf if self.bound is None or lost else float(self.bound.values.max())

    def _certain(self) -> Floats:
        """What was found about each record of the search, arithmetic taken off."""
        if self.indirect is None:
            return np.zeros(0)
        found = np.nan_to_num(self.indirect.values, nan=0.0, posinf=np.inf)
        certain = np.where(np.isinf(found), found, found - self.indirect_floor)
        return np.nan_to_num(certain, nan=0.0, posinf=np.inf, neginf=0.0)


def measure(
    learner: Learner,
    train: Records,
    sample: Sample,
    settings: Settings,
    *,
    model: Model | None,
    own: OwnModels,
    execution: Execution,
) -> MeasuredInfluence:
    """Leave every chosen record out, and look again at the worst if seeds may have made them so.

    Args:
        learner: the algorithm.
        train: the training set S.
        sample: the records to leave out.
        settings: of the audit.
        own: models that the learner trains itself.
        model: the released model, as it answers before anything is rounded or withheld; ``None``: the learner's.
        execution: where and how models are trained.
    """
    found = pdtp(
        learner,
        train,
        sample.rows,
        seed=settings.seed,
        n_repeats=settings.n_repeats,
        released=settings.release,
        width=settings.bin_width,
        execution=execution,
        model=model,
        own=own,
    )
    learner = found.learner  # known by now to be deterministic or not
    second_look = None
    limit = settings.rule.dtp
    noisy = bool(found.noise_floor.max(initial=0.0) > 0)
    if noisy and limit is not None and np.nanmax(found.values, initial=0.0) > limit:
        second_look = confirm(
            learner,
            train,
            found,
            seed=settings.seed,
            released=settings.release,
            confidence=settings.rule.confidence,
            execution=execution.quiet,
        )
    bound = None
    if settings.released is ReleasedOutputs.AS_IS:
        bound = dtp_upper_bound(learner, train, seed=settings.seed, model=model, own=own)
    indirect = _indirect(learner, train, found, settings)
    floor = np.zeros(0)
    if indirect is not None:
        floor = indirect.floor + stopping_floor(learner, train, indirect, settings.seed, execution.device)
    apart = 0.0 if model is None else _apart(learner, found, own, model, settings)
    return MeasuredInfluence(found, sample, bound, second_look, indirect, floor, apart, model is not None)


def _apart(learner: Learner, found: Pdtp, own: OwnModels, model: Model, settings: Settings) -> float:
    """How far a released model's answers are from those of the model that the learner makes, in nats.

    The largest log ratio over the records. Of a learner with random numbers the mean, with binned probabilities, beyond
    a quarter more than the largest between its own models with other seeds. A mean does not show that a few records are
    answered as by none of these: infinite where the released answer about some record is more than twice as far from
    all of them as the limit, and as any of them is from the others about any record.
    """
    k = found.with_record.shape[2]
    if not learner.randomised:  # all records can be compared, whichever were left out
        answers = answered(model, own.records.features, k)
        ratios = own.log_ratios(learner, own.records.features, answers)
        return float(np.nan_to_num(ratios, nan=np.inf, posinf=np.inf).max(initial=0.0))
    answers = answered(model, own.records.features[found.which], k)

    def between(a: Floats, b: Floats) -> float:
        return float(known_log_ratio(binned_logs(a, found.width), binned_logs(b, found.width)).max(axis=1).mean())

    refits = found.refits
    seeds = max((between(a, b) for i, a in enumerate(refits) for b in refits[:i]), default=0.0)
    if len(refits) > 1:
        nearest = [_nearest(one, np.delete(refits, r, axis=0), found.width) for r, one in enumerate(refits)]
        furthest = _nearest(settings.release(answers), refits, found.width)
        if furthest > 2 * max(settings.rule.dtp or 1.0, *filter(np.isfinite, nearest)):
            return np.inf
    here = between(found.with_record[0], settings.release(answers))
    return here if here > 1.25 * seeds else 0.0


def _nearest(answers: Floats, others: Floats, width: float) -> float:
    """The log ratio to the nearest of other models' answers, about the record where that is largest.

    Args:
        answers: log-probabilities ``[m, k]``.
        others: of r models ``[r, m, k]``.
        width: of the bins in which they are compared, so that a probability of 0 is no infinity.
    """
    one = np.broadcast_to(binned_logs(answers, width), others.shape)
    ratios = known_log_ratio(one, binned_logs(others, width)).max(axis=2)
    return float(np.nan_to_num(ratios, nan=np.inf, posinf=np.inf).min(axis=0).max(initial=0.0))  # unknown is not near


def _indirect(learner: Learner, train: Records, found: Pdtp, settings: Settings) -> QuerySearch | None:
    """Search for other queries about the worst records, unless the rule accepts such queries.

    For a randomised learner one pair of models shows nothing, so nothing is searched.
    """
    if settings.rule.queries is Queries.DIRECT or learner.randomised or len(found.which) == 0:
        return None
    known = np.nan_to_num(found.values, nan=0.0, posinf=np.inf)
    worst = np.sort(found.which[np.argsort(-known, kind="stable")[:N_SEARCHED]])
    try:
        found_elsewhere = search(
            learner, train, worst, seed=settings.seed, released=settings.release, width=settings.bin_width
        )
    except ModelError:  # the model of all records could not be trained to the end of its solver, or did not answer
        return None
    return found_elsewhere.known()


def summarise(measured: MeasuredInfluence, n_training: int, settings: Settings) -> Influence:
    """The numbers a report shows."""
    values = measured.found.values[~np.isnan(measured.found.values)]
    limit = settings.rule.dtp or 1.0
    return Influence(
        n_measured=len(measured.found.which),
        n_training=n_training,
        n_at_random=len(measured.sample.at_random),
        most_above=measured.most_above(limit),
        largest=float(values.max()) if len(values) else np.inf,  # unknown is not zero
        median=float(np.median(values)) if len(values) else np.inf,
        n_above_limit=int((values > limit).sum()),
        limit=limit,
        noise_floor=float(measured.found.noise_floor.max(initial=0.0)),
        solver_floor=float(measured.found.solver_floor.max(initial=0.0)),
        n_below_floor=int((measured.found.values <= measured.found.floor).sum()),
        bound=measured.largest_bound,
        bound_covers="" if measured.bound is None else measured.bound.covers,
        bound_checked=0 if measured.bound is None else measured.bound.n_checked,
        n_searched=0 if measured.indirect is None else len(measured.indirect.which),
        indirect=measured.largest_indirect,
        n_failed=len(measured.found.failures),
        engine=measured.found.engine,
        n_unconverged=measured.found.n_unconverged,
        histogram=histogram(values, limit),
    )
