"""The influence part of an audit: how far each training record moves the model, and whether the DTP rule holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.auditing.budget import Allowance
from leakgauge.auditing.drawn import histogram
from leakgauge.auditing.influence.elsewhere import Elsewhere, elsewhere
from leakgauge.auditing.influence.result import Influence
from leakgauge.auditing.influence.sample import Sample
from leakgauge.auditing.settings import ReleasedOutputs, Settings
from leakgauge.influence import (
    Changes,
    Confirmation,
    DtpBound,
    OwnModels,
    Pdtp,
    confirm,
    dtp_upper_bound,
    pdtp,
)
from leakgauge.influence.delivered import answered
from leakgauge.influence.pdtp import known_log_ratio
from leakgauge.models import Model, binned_logs

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Execution, Learner


NEARLY_ALL = 0.95
"""The share of values that a noise floor covers."""


@dataclass(frozen=True)
class MeasuredInfluence:
    """PDTP of the training records, what is known of other queries, and the second look at the worst.

    Args:
        found: PDTP of the answers as they are released.
        sample: the records that were left out for it.
        bound: upper bound on the DTP of every training record, or ``None``.
        second_look: where seeds change the answers and the first look found a record above the limit.
        elsewhere: what a search over other queries found, unless the rule accepts any but direct ones.
        apart: how far the answers of the released model about the records are from those of the model that the learner
            makes of them, in nats; for a learner with random numbers, beyond what other seeds do. 0 where the learner
            makes the model.
        given: whether the released model was given, and not made here.
    """

    found: Pdtp
    sample: Sample
    bound: DtpBound | None
    second_look: Confirmation | None
    elsewhere: Elsewhere
    apart: float = 0.0
    given: bool = False

    def most_above(self, limit: float) -> int:
        """Of the records that were not measured, how many may lie above a limit at most, with 95 % confidence."""
        drawn = np.isin(self.found.which, self.sample.at_random)
        above = ~((self.found.values + self.found.floor)[drawn] <= limit)  # unknown is not below
        return self.sample.most_above(int(above.sum()))

    @property
    def largest_bound(self) -> float:
        """What no record's DTP exceeds; infinite where nothing is proven, or models could not be trained without."""
        return np.inf if self.bound is None or not self.complete else float(self.bound.values.max())

    @property
    def complete(self) -> bool:
        """Whether a value is known of every record that was to be left out."""
        return not self.found.failures and not bool(np.isnan(self.found.values).any())

    @property
    def ends(self) -> tuple[float, float]:
        """Between what the largest PDTP lies, as far as seeds and solvers let one know; an unknown one may be any.

        Arithmetic may have moved each value by its solver floor, either way, and other seeds by its noise floor; where
        one of them is infinite nothing is known. Noise that two models do not share is in the values of all records, so
        that it adds no more than nearly all of these are: a learner whose pairs share their random numbers has values
        far below its noise floor.
        """
        found = self.found
        noise = np.where(np.isfinite(found.noise_floor), found.noise_floor, found.least)
        low = float(np.nanmax(found.least - np.where(np.isfinite(found.least), noise, 0.0), initial=0.0))
        high = float(np.nanmax(found.values + found.solver_floor + unshared_noise(found), initial=0.0))
        return low, high if self.complete else np.inf


def unshared_noise(found: Pdtp | Changes) -> Floats:
    """How much of each value may be due to seeds that the two models of a pair do not share, at most ``[m]``."""
    known = found.values[~np.isnan(found.values)]
    nearly_all = float(np.quantile(known, NEARLY_ALL, method="higher")) if len(known) else np.inf
    return np.minimum(found.noise_floor, nearly_all)


def measure(
    learner: Learner,
    train: Records,
    sample: Sample,
    settings: Settings,
    *,
    allowed: Allowance,
    model: Model | None,
    own: OwnModels,
    execution: Execution,
    searching: Execution,
) -> MeasuredInfluence:
    """Leave every chosen record out, and look again at the worst if seeds may have made them so.

    Args:
        learner: the algorithm.
        train: the training set S.
        sample: the records to leave out.
        settings: of the audit.
        allowed: how many records there is time to look at again.
        own: models that the learner trains itself.
        model: the released model, as it answers before anything is rounded or withheld; ``None``: the learner's.
        execution: where and how models are trained.
        searching: the same for the search for other queries.
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
            n_candidates=allowed.n_looked_again,
            n_models=allowed.n_seeds,
            released=settings.release,
            confidence=settings.rule.confidence,
            execution=execution.quiet,
        )
    bound = None
    if settings.released is ReleasedOutputs.AS_IS:
        bound = dtp_upper_bound(learner, train, seed=settings.seed, model=model, own=own)
    asked = elsewhere(learner, train, found, settings, searching)
    apart = 0.0 if model is None else _apart(learner, found, own, model, settings)
    return MeasuredInfluence(found, sample, bound, second_look, asked, apart, model is not None)


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
    answers = answered(model, own.records.features[found.rows], k)

    def between(a: Floats, b: Floats) -> float:
        return float(known_log_ratio(binned_logs(a, found.width), binned_logs(b, found.width)).max(axis=1).mean())

    def in_bins(one: Floats, others: Floats) -> Floats:
        """The largest log ratio about each record, ``[r, m]``; in bins a probability of 0 is no infinity."""
        alike = np.broadcast_to(binned_logs(one, found.width), others.shape)
        largest: Floats = known_log_ratio(alike, binned_logs(others, found.width)).max(axis=2)
        return largest

    refits = found.refits
    seeds = max((between(a, b) for i, a in enumerate(refits) for b in refits[:i]), default=0.0)
    if from_all_refits(settings.release(answers), refits, in_bins, 2 * (settings.rule.dtp or 1.0)):
        return np.inf
    here = between(found.with_record[0], settings.release(answers))
    return here if here > 1.25 * seeds else 0.0


def from_all_refits(
    answers: Floats, refits: Floats, distances: Callable[[Floats, Floats], Floats], negligible: float
) -> float:
    """How far the answer about some record is from those of all models that differ in seeds, if unlike any of them.

    The distance to the nearest of them, about the record where that is largest.

    Args:
        answers: of the released model, ``[m, ...]``.
        refits: of the learner's models with other seeds, ``[r, m, ...]``.
        distances: from one model's answers and those of r others to how far they are apart ``[r, m]``.
        negligible: what such a distance is not to exceed.

    Returns:
        The distance; 0 where it is negligible, or at most twice as large as that of any of the refits from the others
        about any record, and where there are fewer than two refits.
    """
    if len(refits) < 2:
        return 0.0

    def furthest(one: Floats, others: Floats) -> float:
        nearest = np.nan_to_num(distances(one, others), nan=np.inf, posinf=np.inf).min(axis=0)  # unknown is not near
        return float(nearest.max(initial=0.0))

    own = [furthest(one, np.delete(refits, r, axis=0)) for r, one in enumerate(refits)]
    here = furthest(answers, refits)
    return here if here > max([negligible, *(2 * one for one in own if np.isfinite(one))]) else 0.0


def summarise(measured: MeasuredInfluence, settings: Settings) -> Influence:
    """The numbers that are judged, and that a report shows."""
    values = measured.found.values[~np.isnan(measured.found.values)]
    limit, (least, most) = settings.rule.dtp or 1.0, measured.ends
    return Influence(
        n_measured=len(measured.found.which),
        n_training=measured.found.n_training,
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
        n_searched=measured.elsewhere.n_searched,
        n_asked_on_train=measured.elsewhere.n_asked,
        n_above_on_train=measured.elsewhere.n_above_on_train(limit),
        indirect=measured.elsewhere.largest,
        n_failed=len(measured.found.failures),
        engine=measured.found.engine,
        n_unconverged=measured.found.n_unconverged,
        histogram=histogram(values, limit),
        least=least,
        most=most,
        indirect_most=measured.elsewhere.most,
        second_look=None if measured.second_look is None else measured.second_look.largest,
        n_unsearched=measured.elsewhere.n_failed,
    )
