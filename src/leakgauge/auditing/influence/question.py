"""Influence: how far does a single training record move the model?

Of a classifier it is differential training privacy; of a regressor, for which that is not defined, the change of its
predictions.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.auditing.advice import Situation
from leakgauge.auditing.finding import Finding, Verdict, judge, overall
from leakgauge.auditing.influence import change as change_part
from leakgauge.auditing.influence.change import MEASURE, MeasuredChange
from leakgauge.auditing.influence.consistency import contradictions
from leakgauge.auditing.influence.elsewhere import N_SEARCHED, asked_on_train
from leakgauge.auditing.influence.findings import MEASURE_DIRECT, estimates, findings, notes, other_measures
from leakgauge.auditing.influence.measurement import MeasuredInfluence, measure, summarise
from leakgauge.auditing.influence.result import CERTAIN
from leakgauge.auditing.influence.sample import sampled
from leakgauge.auditing.plan import Outline, PlannedStep
from leakgauge.auditing.question import Answer, Question
from leakgauge.auditing.settings import Queries, ReleasedOutputs
from leakgauge.errors import ModelError
from leakgauge.escaping import shapes
from leakgauge.influence import EVERY_QUERY
from leakgauge.influence.delivered import n_looked_at
from leakgauge.influence.pdtp import N_BOOSTING_TWINS
from leakgauge.influence.pdtp import N_SEED_TRIED_RECORDS as N_PROBED
from leakgauge.influence.search import N_CALLS
from leakgauge.models import AnswerKind
from leakgauge.statistics import Estimate
from leakgauge.training import Learner, everything, plan
from leakgauge.training.engines import STOPPING
from leakgauge.training.engines.logistic.binary import LogisticRegressionNewton
from leakgauge.training.engines.refit import Refit

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case
    from leakgauge.auditing.gate import Written

MISMATCH_SHARE_OF_LIMIT = 0.1
"""Of the limit on DTP: how far the released model may be from the learner's, of a randomised one on average and beyond
what seeds do. Further away, the learner is said not to have made it: heavy records can cancel in all answers."""

N_NOISE_MODELS = 8
"""Models trained on all records to find the noise floor of a randomised learner."""

NOISE_FLOOR_STEP = "other seeds, for the noise floor"

ON_TRAIN_STEP = "the model on all records, asked about all of them"


@dataclass(frozen=True, eq=False)
class InfluenceAnswer(Answer):
    """How far training records move the model; at most one of the two is known.

    Args:
        measured: of a classifier.
        change: of a regressor.
        why_not: why neither could be measured; empty where one was.
        unlike: whether it is that the learner does not make such a model of the training records.
    """

    measured: MeasuredInfluence | None
    change: MeasuredChange | None
    why_not: str
    unlike: bool = False

    __repr__ = shapes

    @property
    def left_out_errors(self) -> Floats | None:
        """Of a regressor, the errors about records of models that were trained without them, where there are such."""
        return None if self.change is None else self.change.found.left_out_errors

    def part(self, case: Case) -> Mapping[str, Any]:
        """The summary."""
        settings = case.settings
        return {
            "influence": None if self.measured is None else summarise(self.measured, settings),
            "change": None if self.change is None else change_part.summarise(self.change, settings),
        }

    def findings(self, case: Case, situation: Situation) -> list[Finding]:
        """PDTP and DTP, or the largest change, against the limit on DTP."""
        if case.kind is AnswerKind.VALUES:  # differential training privacy is defined for answers about classes
            return change_part.finding(self.change, case.what.learner, self.why_not, case.settings, situation)
        return findings(self.measured, case.what.learner, self.why_not, case.settings, situation)

    def notes(self, case: Case) -> list[str]:
        """What a solver or an infinite value means, or why nothing was measured."""
        if self.why_not:
            return [f"Influence was not measured: {self.why_not}."]
        if self.measured is None:
            return []
        return notes(self.measured, case.learner, len(case.what.train.units), case.situation.outputs)

    def not_tested(self, case: Case) -> list[str]:
        """Records that were not drawn, and queries that no bound covers."""
        measured = self.measured or self.change
        left = 0 if measured is None else measured.found.n_training - len(measured.found.which)
        said = []
        if measured is not None and left:
            limit = case.settings.rule.dtp or 1.0
            known = f"at most {measured.most_above(limit):,} of which exceed the limit (95 % confidence)"
            if self.measured is not None and self.measured.largest_bound <= limit:
                known = "of which a bound is known, within the limit"
            said.append(f"The influence of {left:,} training records, {known}.")
        if self.change is not None:
            n = self.change.elsewhere.n_searched
            tried = f", and other queries were searched for {n} records" if n else ""
            said.append(
                f"Influence on other predictions: the prediction for each record was measured{tried}. Differential "
                "training privacy is defined for classifiers only."
            )
        elif self.measured is None:
            said.append("The influence of single records.")
        elif self.measured.bound is None or not np.isfinite(self.measured.bound.values).any():
            word = "this is undecided" if case.settings.rule.queries.needs_bound else "the rule accepts this"
            n = self.measured.elsewhere.n_searched
            tried = f"; queries were searched for {n} records" if n else ""
            said.append(
                "Queries other than the records themselves (indirect queries): no bound on DTP is "
                f"known{tried}; {word}."
            )
        elif self.measured.bound.covers != EVERY_QUERY:
            said.append(f"Queries outside the bound on DTP, which covers {self.measured.bound.covers}.")
        return said

    def method(self, case: Case) -> Mapping[str, Any]:
        """By which engine models without a record were had, and how often."""
        found = self.measured or self.change
        measured = None if self.measured is None else self.measured.found
        return {
            "influence_engine": None if found is None else found.found.engine,
            "influence_randomness": None if measured is None else measured.randomness.value,
            "influence_repeats": None if measured is None else len(measured.with_record),
        }

    def columns(self, case: Case) -> Mapping[str, Sequence[Any]]:
        """PDTP with its floors, or the change, of the records that were measured."""

        def of_all(which: Indices, values: Floats) -> list[float]:
            column = np.full(len(case.units), np.nan)
            column[which] = values
            return column.tolist()

        if self.change is not None:
            return {"change": of_all(self.change.found.which, self.change.in_deviations)}
        if self.measured is None:
            return {}
        found = self.measured.found
        numbers = {
            "pdtp": found.values,
            "pdtp_binned": found.binned,
            "noise_floor": found.noise_floor,
            "solver_floor": found.solver_floor,
        }
        on_train = self.measured.elsewhere.on_train
        if on_train is not None:
            numbers["dtp_on_train"] = on_train.values
        return {name: of_all(found.which, values) for name, values in numbers.items()}


class InfluenceOfRecords(Question):
    """PDTP of the training records and bounds on DTP; of a regressor, the change of predictions."""

    name = "influence"
    limit = "dtp"

    def plan(self, outline: Outline) -> Iterator[PlannedStep]:
        """Models on all records, without one record each, with other seeds, and solved to the end."""
        n_chosen = outline.allowance.n_left_out
        yield from self._own_models(outline, n_chosen)
        if n_chosen:
            yield from self._without_records(outline, np.arange(n_chosen, dtype=np.int64))

    def _own_models(self, outline: Outline, n_chosen: int) -> Iterator[PlannedStep]:
        """Models that the learner trains itself, to see how far they are from minima, or from the released model."""
        n = len(self.what.train.units)
        left_out = outline.leaving_out(np.arange(max(1, n_chosen), dtype=np.int64))
        engine = plan(left_out).engine
        n_models = int(outline.solves)
        if n_chosen and engine.converges:
            bounded = isinstance(engine, LogisticRegressionNewton) and self.settings.released is ReleasedOutputs.AS_IS
            n_models = 1 + n_looked_at(n if bounded else n_chosen, n)
        elif n_chosen and self.what.model is not None and not outline.learner.randomised:
            n_models = max(n_models, int(outline.kind is not AnswerKind.VALUES))
        if n_models:
            step = PlannedStep.of("the learner's own models, to compare with", left_out, engines=())
            yield replace(step, n_models=n_models, n_trained=n_models, refusals={})

    def _without_records(self, outline: Outline, rows: Indices) -> Iterator[PlannedStep]:
        n, settings = len(self.what.train), self.settings
        asked = self.what.train.features[self.what.train.units.rows_of(rows)[0]]
        learner, allowed = outline.learner.without_unused_seed(self.what.train, seed=settings.seed), outline.allowance
        if _is_tried(outline.learner, learner):
            yield PlannedStep.plainly(
                "the model with two seeds, to find out whether seeds matter", outline.job(everything(n, 2), asked)
            )
        outline = outline.with_learner(learner)
        repeats = settings.n_repeats if learner.randomised else 1
        yield PlannedStep.of("the model on all records, again", outline.job(everything(n), asked), times=repeats)
        values = outline.kind is AnswerKind.VALUES
        without = PlannedStep.of("models without one record", outline.leaving_out(rows), times=repeats)
        yield without
        noise = outline.job(everything(n, N_NOISE_MODELS), asked)
        tight = learner.with_converged_solver() or (learner if learner.seed_tried else None)
        plain = without.engine == Refit.name and not values
        if plain and learner.seed_tried:
            yield PlannedStep.plainly(
                "some models without one record, with two more seeds",
                outline.leaving_out(np.repeat(rows[: 2 * N_PROBED], 2)),
            )
            yield PlannedStep.of(NOISE_FLOOR_STEP, noise, sometimes=True)
        if not values and learner.rounding_otherwise(0) is not None:
            yield PlannedStep.plainly(
                "the model on all records, rounded otherwise", outline.job(everything(n, N_BOOSTING_TWINS), asked)
            )
        if plain and tight is not None:
            end = outline.with_learner(tight)
            yield PlannedStep.plainly("the model on all records, converged", end.job(everything(n), asked))
            yield PlannedStep.plainly("models without one record, converged", end.leaving_out(rows))
        if learner.randomised:
            yield PlannedStep.of(NOISE_FLOOR_STEP, noise)
            if settings.rule.dtp is not None:
                removed = np.repeat(rows[: allowed.n_looked_again], allowed.n_seeds)
                what = "second measurement of the records of largest PDTP"
                again = PlannedStep.of(what, outline.leaving_out(removed), sometimes=True)
                full = PlannedStep.of("", outline.job(everything(n, allowed.n_seeds), asked[: allowed.n_looked_again]))
                yield replace(
                    again, n_models=again.n_models + full.n_models, n_trained=again.n_trained + full.n_trained
                )
        elif settings.rule.queries is not Queries.DIRECT:
            on_train = asked_on_train(learner, self.what.train, rows, settings)
            if len(on_train):
                asked = self.what.train.features[on_train]
                yield PlannedStep.of(ON_TRAIN_STEP, outline.job(everything(n), asked), engines=STOPPING)
            solved = learner.with_converged_solver()
            found = PlannedStep.plainly(
                "search for other queries for the records of largest influence",
                outline.with_learner(solved or learner).leaving_out(rows[:N_SEARCHED]),
            )
            n_trained = found.n_models + 1 + (0 if solved is None else 2)  # how far its solver stops from the end
            yield replace(found, n_models=n_trained, n_trained=n_trained, n_calls=2 * found.n_models * N_CALLS)

    def ask(self, case: Case) -> InfluenceAnswer:
        """Leave records out, one at a time."""
        if case.what.learner is None:
            return _unknown("no training procedure was given, so the model cannot be retrained without a record")
        if self.settings.n_influence == 0:
            return _unknown("the settings switch the measurement of influence off")
        limit, execution = self.settings.rule.dtp or 1.0, case.telling("leave-one-out models")
        searching = case.telling("search for other queries")
        learner, train, model = case.what.learner, case.what.train, case.what.model
        try:
            sample = sampled(case)
            if case.kind is AnswerKind.VALUES:
                errors = np.asarray(case.candidates.labels - case.answers[:, 0], dtype=np.float64)
                change = change_part.measure(
                    learner,
                    train,
                    sample,
                    (errors[~case.is_member], case.units.of_row[~case.is_member]),
                    self.settings,
                    allowed=case.allowance,
                    model=model,
                    execution=execution,
                    searching=searching,
                )
                apart = change_part.apart(change, np.asarray(case.answers[case.is_member, 0]), limit)
                if apart <= limit * MISMATCH_SHARE_OF_LIMIT:
                    return InfluenceAnswer(None, change, "")
                return _mismatch(f"usual errors {apart:.3g}")
            measured = measure(
                learner,
                train,
                sample,
                self.settings,
                allowed=case.allowance,
                model=model,
                own=case.own,
                execution=execution,
                searching=searching,
            )
        except ModelError as error:
            return _unknown(f"training without single records failed, or those models gave no predictions ({error})")
        if measured.apart > limit * MISMATCH_SHARE_OF_LIMIT:
            return _mismatch(f"log ratio of probabilities {measured.apart:.3g}")
        return InfluenceAnswer(measured, None, "")

    @classmethod
    def judged_again(cls, written: Written) -> list[Finding]:
        """The written findings, judged again; the rule asks about the record itself and, mostly, any query."""
        limit, audit, found = written.rule.dtp, written.audit, written.of(cls.name)
        if limit is None:
            return []
        values = audit.description.answers == "values"
        if not found and audit.rule.dtp is None:
            reason = "the audit had no limit on differential training privacy"
            return [written.not_asked(cls, MEASURE if values else MEASURE_DIRECT, reason)]
        untold = {measure for measure, estimate in cls.estimates(written).items() if estimate is None}
        judged = [_judged_again(finding, limit, written, untold) for finding in found]
        needed = [{MEASURE}] if values else [{MEASURE_DIRECT}, *other_measures(audit.rule.queries)]
        measures, unknown = {finding.measure for finding in found}, any(finding.estimate is None for finding in found)
        if not found or not (unknown or all(measures & either for either in needed)):
            judged.append(
                written.missing(cls, MEASURE if values else "differential training privacy of the training records")
            )
        return judged

    @classmethod
    def estimates(cls, written: Written) -> dict[str, Estimate | None]:
        """Of the largest influence."""
        audit = written.audit
        if audit.change is not None:
            return change_part.estimates(audit.change, written.rule)
        return {} if audit.influence is None else estimates(audit.influence, written.rule)

    @classmethod
    def contradictions(cls, written: Written) -> Iterator[str]:
        """Of counts and largest values."""
        yield from contradictions(written.audit, written.audit.description, written.audit.most_exposed)


def _unknown(why_not: str) -> InfluenceAnswer:
    return InfluenceAnswer(None, None, why_not)


def _mismatch(how_far: str) -> InfluenceAnswer:
    why_not = (
        "retraining with these records and settings does not reproduce the audited model: its predictions for the "
        f"training records differ ({how_far})"
    )
    return InfluenceAnswer(None, None, why_not, unlike=True)


def _is_tried(given: Learner, found: Learner) -> bool:
    """Whether two fits were to tell if seeds matter."""
    behind = given
    while isinstance(getattr(behind, "learner", None), Learner):
        behind = behind.learner  # type: ignore[attr-defined]
    tries = type(behind).without_unused_seed is not Learner.without_unused_seed
    return tries and behind.randomised and (found.randomised or found.seed_tried)


def _judged_again(finding: Finding, limit: float, written: Written, untold: Container[str]) -> Finding:
    """A finding on influence, perhaps under another limit; `untold` are measures that may fail and not pass."""
    estimate, audit = finding.estimate, written.audit
    if estimate is None:
        return written.rejudge(finding, limit)
    verdict = judge(estimate, limit)
    looked_twice = estimate.confidence < CERTAIN and audit.change is None
    noisy = any(part is not None and part.noise_floor > 0 for part in (audit.influence, audit.change))
    # Only a few of the records that looked worst are looked at again, so a second look does not pass. Which they are
    # depends on the limit: neither a pass after a second look nor a fail without one carries over to another.
    hidden = looked_twice and verdict is Verdict.PASSES
    if limit == finding.threshold:
        verdict = overall([Verdict.CANNOT_TELL if hidden else verdict, finding.verdict])
        return finding if verdict is finding.verdict else written.judged(finding, limit, verdict)
    if hidden or (noisy and not looked_twice and verdict is Verdict.FAILS):
        reason = "the learner is randomised, and the limit decides which records are measured again with fresh seeds"
        return written.undecided(finding, limit, reason)
    if finding.measure in untold and verdict is Verdict.PASSES:
        reason = "no bound is known that the rule asks for, or the search over other queries was not completed"
        return written.undecided(finding, limit, reason)
    return written.judged(finding, limit, verdict)
