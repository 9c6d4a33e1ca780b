"""The influence part of an audit of a regressor: how far each training record moves predictions.

The change is held against the usual error: the root mean square of the errors on records that the model was not trained
on. Training errors would not do, as those of a model that interpolates are 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.auditing.advice import ACCEPT_MEASURED, Situation, advice, unmeasured_influence
from leakgauge.auditing.budget import Allowance
from leakgauge.auditing.drawn import histogram
from leakgauge.auditing.finding import Finding, Verdict, judge
from leakgauge.auditing.influence.elsewhere import Elsewhere, elsewhere
from leakgauge.auditing.influence.findings import (
    CONVERGE,
    MEASURE_MORE,
    MORE_SEEDS,
    known_above,
    search_failed,
    second_look_said,
)
from leakgauge.auditing.influence.measurement import from_all_refits, unshared_noise
from leakgauge.auditing.influence.result import PredictionChange, over
from leakgauge.auditing.influence.sample import Sample
from leakgauge.auditing.settings import ReleaseRule, Settings
from leakgauge.influence import Changes, confirm_change, prediction_change
from leakgauge.statistics import Estimate, bonferroni_confidence, clustered_mean

if TYPE_CHECKING:
    from leakgauge.models import Model
    from leakgauge.records import Records
    from leakgauge.training import Execution, Learner


FEWEST_ERRORS = 30
"""Fewer left-out errors say too little of how large they usually are; the holdout's are then taken."""

UNLIKE_ANY_SHARE_OF_LIMIT = 0.25
"""How far the prediction for a record may be from those of all models of a learner with random numbers."""

MEASURE = "largest change of a prediction found when a record is removed, over the root mean square error elsewhere"

LEFT_OUT_ERRORS, ON_HOLDOUT = "of models trained without the record", "of the model on the holdout"


@dataclass(frozen=True)
class MeasuredChange:
    """How far leaving out records moves the predictions about them.

    Args:
        found: in the units of the label.
        sample: the records that were left out for it.
        deviation: root mean square of the errors on records not trained on, in the same units.
        of: which errors these are, in words.
        second_look: how far the mean prediction moves, where seeds change predictions and a change looked too large.
        elsewhere: what a search over other queries found, unless the rule accepts any but direct ones.
    """

    found: Changes
    sample: Sample
    deviation: Estimate
    of: str
    second_look: Estimate | None
    elsewhere: Elsewhere

    @property
    def in_deviations(self) -> Floats:
        """The change of each prediction over the deviation ``[m]``."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.found.values == 0, 0.0, self.found.values / self.deviation.value)

    @property
    def complete(self) -> bool:
        """Whether a value is known of every record that was to be left out."""
        return not self.found.failures and not bool(np.isnan(self.in_deviations).any())

    @property
    def most(self) -> Floats:
        """What each change is at most, in the units of the label ``[m]``."""
        return self.found.values + self.found.solver_floor + unshared_noise(self.found)

    def most_above(self, limit: float) -> int:
        """Of the records that were not measured, how many may lie above a limit at most, with 95 % confidence."""
        most = self.most[np.isin(self.found.which, self.sample.at_random)]
        return self.sample.most_above(int((~(most <= limit * self.deviation.low)).sum()))


def measure(
    learner: Learner,
    train: Records,
    sample: Sample,
    holdout_errors: tuple[Floats, Indices],
    settings: Settings,
    *,
    allowed: Allowance,
    model: Model | None,
    execution: Execution,
    searching: Execution,
) -> MeasuredChange:
    """Leave every chosen record out, and look again at the worst if seeds may have made them so.

    Args:
        learner: the algorithm.
        train: the training set S.
        sample: the records to leave out.
        holdout_errors: label less prediction of the released model on the holdout, and whose record each is.
        settings: of the audit.
        allowed: how many records there is time to look at again.
        model: the released model; ``None``: the learner's.
        execution: where and how models are trained.
        searching: the same for the search for other queries.
    """
    found = prediction_change(
        learner,
        train,
        sample.rows,
        seed=settings.seed,
        n_repeats=settings.n_repeats,
        execution=execution,
        model=model,
    )
    known = np.isfinite(found.left_out_errors)
    own = found.left_out_errors[known]
    enough = len(own) >= FEWEST_ERRORS
    single = bonferroni_confidence(settings.rule.confidence, 2)  # with the second look's
    deviation = usual_error(*((own, found.place[known]) if enough else holdout_errors), single)
    used = learner.without_unused_seed(train, seed=settings.seed)
    asked = elsewhere(used, train, found, settings, searching)
    measured = MeasuredChange(found, sample, deviation, LEFT_OUT_ERRORS if enough else ON_HOLDOUT, None, asked)
    limit = settings.rule.dtp
    if not learner.randomised or limit is None or not np.nanmax(measured.in_deviations, initial=0.0) > limit:
        return measured
    again = confirm_change(
        learner,
        train,
        found,
        seed=settings.seed,
        n_candidates=allowed.n_looked_again,
        n_models=allowed.n_seeds,
        confidence=single,
        execution=execution.quiet,
    )
    return replace(measured, second_look=again)


def apart(measured: MeasuredChange, released: Floats, limit: float) -> float:
    """How far the released model's predictions are from those of the model that the learner makes, in usual errors.

    The largest over the records; for a learner with random numbers the mean, beyond what other seeds do. A mean does
    not show a few records: where the prediction for some record is further than :data:`UNLIKE_ANY_SHARE_OF_LIMIT` of
    the limit, and twice what other seeds do, from those of all the learner's models, how far that is.

    Args:
        measured: the influence of records.
        released: what the released model predicts for all training records ``[n]``.
        limit: on the change of a prediction, in usual errors.
    """
    found, deviation = measured.found, measured.deviation.value
    answers = released[found.rows]
    moved = np.abs(answers - found.predictions)
    of = found.place
    beyond = np.maximum(moved - found.solver_floor[of] - found.noise_floor[of], 0.0)
    if not found.noise_floor.any():
        return over(float(moved.max(initial=0.0)), deviation)
    unlike = from_all_refits(
        answers, found.refits, lambda one, others: np.abs(one - others), UNLIKE_ANY_SHARE_OF_LIMIT * limit * deviation
    )
    return over(max(float(beyond.mean()), unlike), deviation)


def usual_error(errors: Floats, whose: Indices, confidence: float) -> Estimate:
    """Root of the mean of squares, with an interval by persons.

    Args:
        errors: about records ``[n]``.
        whose: equal for records of one person ``[n]``.
        confidence: of the interval.
    """
    squares = clustered_mean(errors**2, whose, lower=0.0, confidence=confidence)
    low, value, high = (float(np.sqrt(end)) for end in (squares.low, squares.value, squares.high))
    return Estimate(value, low, high, confidence, "root of the mean of squares, t interval", squares.n)


def summarise(measured: MeasuredChange, settings: Settings) -> PredictionChange:
    """The numbers that are judged, and that a report shows."""
    found, deviation, elsewhere = measured.found, measured.deviation.value, measured.elsewhere
    values = measured.in_deviations[~np.isnan(measured.in_deviations)]
    limit = settings.rule.dtp or 1.0
    return PredictionChange(
        n_measured=len(found.which),
        n_training=found.n_training,
        largest=float(values.max()) if len(values) else np.inf,  # unknown is not zero
        median=float(np.median(values)) if len(values) else np.inf,
        n_above_limit=int((values > limit).sum()),
        limit=limit,
        deviation=measured.deviation,
        deviation_of=measured.of,
        noise_floor=over(float(found.noise_floor.max(initial=0.0)), deviation),
        solver_floor=over(float(found.solver_floor.max(initial=0.0)), deviation),
        n_failed=len(found.failures),
        engine=found.engine,
        n_unconverged=found.n_unconverged,
        histogram=histogram(values, limit),
        n_at_random=len(measured.sample.at_random),
        most_above=measured.most_above(limit),
        n_searched=elsewhere.n_searched,
        indirect=over(elsewhere.largest, deviation),
        least=float(np.nanmax(found.values - found.solver_floor, initial=0.0)),
        most=float(np.nanmax(measured.most, initial=0.0)) if measured.complete else np.inf,
        indirect_least=elsewhere.largest,
        indirect_most=elsewhere.most,
        second_look=measured.second_look,
        n_unsearched=elsewhere.n_failed,
    )


def estimates(found: PredictionChange, rule: ReleaseRule) -> dict[str, Estimate | None]:
    """What the numbers of a document come to under a rule with a limit on influence, by measure.

    ``None`` stands for what is not told where it would pass: changes that no bound is known for, and the result of a
    search that did not end.
    """
    made, limit = found.judged(), rule.dtp
    untold = found.n_unsearched or rule.queries.needs_bound
    passes = limit is not None and judge(made, limit) is Verdict.PASSES
    return {MEASURE: None if untold and passes else made}


def finding(
    measured: MeasuredChange | None, learner: Learner | None, why_not: str, settings: Settings, situation: Situation
) -> list[Finding]:
    """The largest change held against the limit on influence; none where the rule has no such limit."""
    limit = settings.rule.dtp
    if limit is None:
        return []
    if measured is None:
        remedy = unmeasured_influence(learner=learner is not None, measured=settings.n_influence != 0)
        return [Finding("influence", MEASURE, None, 0.0, limit, Verdict.CANNOT_TELL, why_not, remedy)]
    found, values = measured.found, measured.in_deviations
    complete = measured.complete and measured.sample.speaks_for_all
    estimate = summarise(measured, settings).judged()
    verdict = judge(estimate, limit)
    if verdict is Verdict.PASSES and settings.rule.queries.needs_bound:
        reason = (
            "removing one training record may change predictions for other queries, and no bound on this change is "
            "known for regressors"
        )
        return [Finding("influence", MEASURE, None, 0.0, limit, Verdict.CANNOT_TELL, reason, ACCEPT_MEASURED)]
    if verdict is Verdict.PASSES and measured.elsewhere.n_failed:
        return [search_failed(MEASURE, measured.elsewhere, limit)]
    n_above = f"{int((values > limit).sum()):,} of {len(values):,}"
    against = f"{measured.deviation.value:.3g}, the root mean square error {measured.of}"
    if verdict is Verdict.FAILS:
        elsewhere = (
            estimate.low > limit and not (found.values - found.solver_floor > limit * measured.deviation.high).any()
        )
        asked = "some prediction" if elsewhere else "the prediction for it"
        reason = (
            f"removing one training record changes {asked} by {estimate.value:.3g} times {against} (limit {limit:g}). "
            f"{n_above} records change theirs by more than {limit:g} times"
        )
        if measured.second_look is not None:
            reason += second_look_said(float(np.nanmax(values)))
        remedy = advice("influence", verdict, replace(situation, n_above=known_above(values, limit, found.n_training)))
    elif verdict is Verdict.PASSES:
        n = measured.elsewhere.n_searched
        one = "one training record never changes"
        if measured.sample.n_left:
            one = f"one of the {len(measured.sample.rows):,} records left out never changes"
        tried = f", nor any other that a search for {n} of the records found," if n else ""
        reason = (
            f"removing {one} the prediction for it{tried} by more than {estimate.high:.3g} "
            f"times {against} (limit {limit:g}){measured.sample.said()}"
        )
        remedy = ""
    elif not complete:
        reason = f"not every record was measured (largest change so far: {estimate.value:.3g} times {against})"
        remedy = f"{MEASURE_MORE}, with a learner that can be trained without each of them"
    elif measured.second_look is not None:
        reason = (
            f"{n_above} records exceed the limit of {limit:g} in the first measurement, but a second measurement with "
            "fresh seeds did not show one that does"
        )
        remedy = MORE_SEEDS
    else:
        floor = over(float(np.max(found.solver_floor + found.noise_floor, initial=0.0)), measured.deviation.value)
        reason = (
            f"the largest change is {estimate.low:.3g} to {estimate.high:.3g} times {against}, and so may be below or "
            f"above the limit of {limit:g}. Seed and solver alone may change a prediction by {floor:.3g} times that"
        )
        remedy = f"give more records, or use a learner with less randomness; if its solver stops early, {CONVERGE}"
    return [Finding("influence", MEASURE, estimate, 0.0, limit, verdict, reason, remedy)]
