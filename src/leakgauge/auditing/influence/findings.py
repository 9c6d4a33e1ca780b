"""PDTP and DTP held against the release rule, in words."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.auditing.advice import (
    ACCEPT_MEASURED,
    Outputs,
    Situation,
    advice,
    bounding,
    unbounded_queries,
    unmeasured_influence,
)
from leakgauge.auditing.finding import Finding, Verdict, judge
from leakgauge.auditing.influence.elsewhere import Elsewhere
from leakgauge.auditing.influence.measurement import MeasuredInfluence, summarise
from leakgauge.auditing.influence.result import CERTAIN, Influence
from leakgauge.auditing.settings import Queries, ReleaseRule, Settings
from leakgauge.statistics import Estimate
from leakgauge.statistics.numerals import changed, factor, interval_name, short
from leakgauge.training import Learner, coarse_tolerance
from leakgauge.training.engines.refit import Refit

CONVERGE = (
    "make the solver converge and fit the model again: scale the columns to similar ranges (such as by a scaler with "
    "fixed settings before the learner), or set a larger max_iter or a smaller tol"
)

MEASURE_MORE = "measure more training records: a larger budget, or more of them by name (records in influence)"

MORE_SEEDS = "average over more seeds (repeats), or use a learner with less randomness, such as more trees"

LARGEST_FLOOR = 1e3
"""Nats beyond which the error of a solver has no size: the answer is a label, or a probability that may be 0."""

MEASURE_FOUND = "largest DTP found (direct queries and a search for others)"

MEASURE_DIRECT = "largest PDTP (queries about the record itself)"


def findings(
    measured: MeasuredInfluence | None, learner: Learner | None, why_not: str, settings: Settings, situation: Situation
) -> list[Finding]:
    """The DTP rule: its direct part (PDTP) and, unless the rule is content with that, the part for any query.

    The situation is for the advice.
    """
    limit = settings.rule.dtp
    if limit is None:
        return []
    if measured is None or learner is None:
        return [
            Finding(
                "influence", "differential training privacy of the training records", None, 0.0, limit,
                Verdict.CANNOT_TELL, why_not,
                unmeasured_influence(learner=learner is not None, measured=settings.n_influence != 0),
            )
        ]  # fmt: skip
    situation = replace(
        situation,
        n_above=known_above(measured.found.values, limit, measured.found.n_training),
        largest=float(np.nanmax(measured.found.values, initial=0.0)),
        largest_binned=float(np.nanmax(measured.found.binned, initial=0.0)),
    )
    summary, queries = summarise(measured, settings), settings.rule.queries
    direct = _direct(measured, summary.direct(queries), limit, situation, queries)
    situation = replace(situation, largest_binned=math.inf)  # how large DTP is for other queries then, nobody measured
    match queries:
        case Queries.DIRECT:
            return [direct]
        case Queries.MEASURED if not summary.proves(limit):
            return [direct, _searched(measured, summary.found(queries), direct, limit, situation)]
        case _:
            estimate = summary.any_query(queries, settings.rule.confidence)
            beyond = summary.exceeds_bound(queries)
            return [direct, _any_query(measured, estimate, direct, limit, situation, beyond, any_measure(queries))]


def estimates(found: Influence, rule: ReleaseRule) -> dict[str, Estimate | None]:
    """What the numbers of a document come to under a rule with a limit on DTP, by measure.

    ``None`` stands for what is not told where it would pass: the result of a search that did not end.
    """
    queries, limit = rule.queries, rule.dtp
    made: dict[str, Estimate | None] = {MEASURE_DIRECT: found.direct(queries)}
    if queries is Queries.MEASURED:
        largest = found.found(queries)
        untold = limit is not None and found.n_unsearched and judge(largest, limit) is Verdict.PASSES
        made[MEASURE_FOUND] = None if untold else largest
    if queries is not Queries.DIRECT:
        made[any_measure(queries)] = found.any_query(queries, rule.confidence)
    return made


def other_measures(queries: Queries) -> list[set[str]]:
    """The findings beside the direct one that an audit makes for such queries, each under one of its names."""
    match queries:
        case Queries.DIRECT:
            return []
        case Queries.MEASURED:
            return [{MEASURE_FOUND, any_measure(queries)}]
        case _:
            return [{any_measure(queries)}]


def any_measure(queries: Queries) -> str:
    """The name of DTP over more queries than were measured."""
    within = queries is Queries.IN_RANGE
    return f"largest DTP ({'any query within the range of the training records' if within else 'any query'})"


def known_above(values: Floats, limit: float, n_training: int) -> int:
    """Return how many training records are above the limit, for advice on them; 0 where only a sample was measured.

    Args:
        values: of the records measured.
        limit: on each.
        n_training: training records, measured or not.
    """
    return int((values > limit).sum()) if len(values) == n_training else 0


def _direct(
    measured: MeasuredInfluence, estimate: Estimate, limit: float, situation: Situation, queries: Queries
) -> Finding:
    """PDTP: queries about the record itself."""
    sample = measured.sample
    complete = measured.complete and (sample.n_left == 0 or (sample.speaks_for_all and not queries.needs_bound))
    largest = float(np.nanmax(measured.found.values, initial=0.0))
    n_above = int((measured.found.values > limit).sum())
    verdict = judge(estimate, limit)
    how_many = f"{n_above:,} of {_records(len(measured.found.values))} {'has' if n_above == 1 else 'have'} a PDTP"
    how_many += f" above {limit:g}"
    if verdict is Verdict.FAILS:
        reason = (
            f"removing one training record changes the prediction for that record {changed(estimate.value)} "
            f"({_log_ratio(estimate, limit)}). {how_many}"
        )
        if measured.second_look is not None:
            reason += second_look_said(largest)
        remedy = advice("influence", verdict, situation)
    elif verdict is Verdict.PASSES:
        bounded = measured.largest_bound <= limit
        rest = ". Not all records were measured, but a bound is known for all" if bounded else sample.said()
        rest = rest if sample.n_left else ""
        one = "one training record never changes"
        if sample.n_left and not bounded:
            one = f"one of the {_records(len(sample.rows))} left out never changes"
        reason = (
            f"removing {one} the prediction for that record by more than about a factor of "
            f"{factor(estimate.high)} (log ratio at most {estimate.high:.3g}; limit {limit:g}){rest}"
        )
        remedy = ""
    elif measured.second_look is not None:
        noisy = int((measured.found.values <= measured.found.noise_floor).sum())
        reason = (
            f"{how_many} in the first measurement, but retraining with other seeds alone changes the predictions for "
            f"{noisy:,} records as much. A second measurement with fresh seeds did not show a record above the limit"
        )
        remedy = MORE_SEEDS
    elif complete and np.isinf(measured.found.solver_floor).any() and not np.isinf(largest):
        reason = (
            f"the largest PDTP is {largest:.3g} for converged models, but the learner's own solver stops before it "
            "converges, and the PDTP of the models it returns is unknown"
        )
        remedy = CONVERGE
    elif complete and largest <= limit < estimate.high:
        reason = (
            f"the largest PDTP is {largest:.3g} (limit {limit:g}), but seed and solver alone may change a prediction "
            f"by {float(measured.found.floor.max()):.3g} without any record removed (noise floor and numerical floor)"
        )
        remedy = "set a smaller tolerance of the solver, or use a learner with less randomness, such as more trees"
    elif complete and largest > limit:
        reason = (
            f"the largest PDTP is {largest:.3g} (limit {limit:g}), of which up to "
            f"{float(measured.found.solver_floor.max()):.3g} may be numerical error of the solver"
        )
        remedy = "set a smaller tolerance of the solver"
    elif measured.found.failures:
        n_failed, why = len(measured.found.failures), next(iter(measured.found.failures.values()))
        reason = (
            f"training without {_records(n_failed)} failed ({why}), so the influence of "
            f"{'this record' if n_failed == 1 else 'these records'} is unknown. The largest PDTP of the others is "
            f"{largest:.3g}"
        )
        remedy = (
            "use a learner that can be trained without each record and then predict it: give its encoder all "
            'categories, or let it ignore unknown ones (handle_unknown="ignore")'
        )
    else:
        reason = f"not every record was measured (largest PDTP so far: {largest:.3g}; limit {limit:g})"
        remedy = MEASURE_MORE
    return Finding("influence", MEASURE_DIRECT, estimate, 0.0, limit, verdict, reason, remedy)


def second_look_said(first: float) -> str:
    """What a finding's value is after a second look, beside the largest at first sight, which a report shows too."""
    return (
        f" in the first measurement (largest {short(first, 3)}). The value and its interval are from a second "
        "measurement of the largest ones with fresh seeds"
    )


def _log_ratio(estimate: Estimate, limit: float) -> str:
    """The log ratio of a finding, its lower end where it is not exact, and the limit."""
    least = "at least" if estimate.confidence == CERTAIN else f"{interval_name(estimate.confidence)} from"
    value, low = short(estimate.value, 3), short(estimate.low, 3)
    return f"log ratio {value}{'' if low == value else f', {least} {low}'}; limit {limit:g}"


def _records(n: int) -> str:
    return "1 record" if n == 1 else f"{n:,} records"


def _any_query(
    measured: MeasuredInfluence,
    estimate: Estimate,
    direct: Finding,
    limit: float,
    situation: Situation,
    beyond: bool,
    measure: str,
) -> Finding:
    """DTP: any query, some of them perhaps beyond the bound; it can pass on an upper bound alone (Long et al. 2017)."""
    bound, high, verdict = measured.bound, estimate.high, judge(estimate, limit)
    doubt, way_out = _doubt(measured, beyond, situation)
    reason = {
        Verdict.FAILS: _exceeded(measured, direct, limit),
        Verdict.PASSES: f"removing one training record cannot change a prediction by more than about a factor of "
        f"{factor(high)} (log ratio at most {high:.3g}; limit {limit:g}). This covers "
        f"{'' if bound is None else bound.covers}{_how_known(measured)}",
        Verdict.CANNOT_TELL: f"removing one training record may change predictions for other queries, and {doubt}"
        + _search_said(measured),
    }[verdict]
    remedy = {
        Verdict.FAILS: advice("influence", verdict, situation),
        Verdict.PASSES: "",
        Verdict.CANNOT_TELL: way_out,
    }[verdict]
    return Finding("influence", measure, estimate, 0.0, limit, verdict, reason, remedy)


def _searched(
    measured: MeasuredInfluence, estimate: Estimate, direct: Finding, limit: float, situation: Situation
) -> Finding:
    """DTP as far as it was measured: queries about the records, and those that a search found."""
    elsewhere, n_searched = measured.elsewhere.largest, measured.elsewhere.n_searched
    seen = measured.elsewhere.most
    verdict = judge(estimate, limit)
    if verdict is Verdict.PASSES and measured.elsewhere.n_failed:
        return search_failed(MEASURE_FOUND, measured.elsewhere, limit)
    if verdict is Verdict.FAILS:
        reason, remedy = _exceeded(measured, direct, limit), advice("influence", verdict, situation)
    elif verdict is Verdict.PASSES:
        tried = (
            "queries about each record only, since a pair of models of a randomised learner shows nothing about others"
            if not n_searched
            else "a search over queries within the range of the training records for the "
            f"{_records(n_searched)} of largest PDTP"
        )
        n_asked = measured.elsewhere.n_asked
        about = f"queries about {_records(n_asked)} and " if n_asked else ""
        reason = (
            "no query was found whose prediction changes by more than about a factor of "
            f"{factor(estimate.high)} when one training record is removed (log ratio at most {estimate.high:.3g}; "
            f"limit {limit:g}). Measured by {about}{tried}; no bound proves it for every other query"
        )
        remedy = ""
    elif verdict is Verdict.CANNOT_TELL and elsewhere <= limit < seen:
        reason = (
            f"a search found a log ratio of {elsewhere:.3g} (limit {limit:g}), of which solver and rounding leave up "
            f"to {seen - elsewhere:.3g} open"
        )
        remedy = CONVERGE
    else:
        reason, remedy = f"DTP is at least as large as the largest PDTP, and {direct.reason}", direct.remedy
    return Finding("influence", MEASURE_FOUND, estimate, 0.0, limit, verdict, reason, remedy)


def search_failed(measure: str, elsewhere: Elsewhere, limit: float) -> Finding:
    """Undecided, as a search that did not end is not one that found nothing."""
    return Finding(
        "influence", measure, None, 0.0, limit, Verdict.CANNOT_TELL,
        f"the search over queries other than the record itself failed for {elsewhere.n_failed} of "
        f"{_records(elsewhere.n_sought)}: a model could not be trained to the end, or did not answer some query",
        f"let the model answer every query within the range of the training records, or {CONVERGE}",
    )  # fmt: skip


def _exceeded(measured: MeasuredInfluence, direct: Finding, limit: float) -> str:
    """Which query shows that the limit is exceeded."""
    beyond = max(limit, 0.0 if direct.estimate is None else direct.estimate.low)
    searched, on_train = measured.elsewhere.largest_searched, measured.elsewhere.largest_on_train
    largest = max(searched, on_train)
    if largest > beyond:
        how = (
            "searching queries other than the record" if searched > on_train else "asking about other training records"
        )
        return (
            f"removing one training record changes some prediction {changed(largest)} (log ratio "
            f"{short(largest, 3)}; limit {limit:g}). Found by {how}"
        )
    return f"DTP is at least as large as the largest PDTP, which exceeds the limit of {limit:g}"


def _doubt(measured: MeasuredInfluence, beyond: bool, situation: Situation) -> tuple[str, str]:
    """Why the bound, if there is one, does not settle it, and what would."""
    bound, high = measured.bound, measured.largest_bound
    usual = unbounded_queries(situation, high)
    if bound is None or np.isinf(bound.at_minimum):
        return "no bound on this change is known for this learner", usual
    if bound.n_unconverged:
        return (
            f"the known bound, {bound.at_minimum:.3g}, holds for converged models: of {bound.n_checked:,} models "
            f"that the learner trained itself, {bound.n_unconverged:,} did not converge"
        ), f"{CONVERGE}, or {ACCEPT_MEASURED}"
    if np.isinf(high) and np.isinf(bound.rounding):
        return (
            f"the known bound, {bound.at_minimum:.3g}, holds for probabilities without rounding: for some query a "
            "probability is so close to 0 that it may be rounded to 0 with a record and not without it"
        ), f"set a stronger penalty, or remove far outliers from the columns, or {ACCEPT_MEASURED}"
    if np.isinf(high):
        return (
            f"the known bound, {bound.at_minimum:.3g}, holds for the learner's own models: it is not known whether the "
            "released model is one of them"
        ), f"give the learner that made the model, with the same settings, or {ACCEPT_MEASURED}"
    if beyond:
        return (f"the known bound, {high:.3g}, covers {bound.covers}: outside, predictions may change without limit"), (
            'release a model that clips its inputs to a range fixed beforehand, or set queries = "in range" in the '
            "release rule "
            f"if the released model refuses inputs outside the range, or {ACCEPT_MEASURED}"
        )
    return f"the known bound is {high:.3g}", usual


def _how_known(measured: MeasuredInfluence) -> str:
    """Whether a bound is proven of what is delivered, or partly measured."""
    bound = measured.bound
    if bound is None or not bound.proven:
        added = "" if bound is None else f"{float(bound.values.max()) - bound.at_minimum:.2g}"
        n, n_models = (0, 0) if bound is None else (bound.n_checked, len(bound.values) + 1)
        others = "" if n == n_models else f" and estimated for the other {n_models - n:,}"
        return (
            f". The bound is proven for converged models; it includes {added} for the learner's own solver, which "
            f"stops earlier, measured on {'all ' if n == n_models else ''}{n:,} of its models{others}"
        )
    made = "; the released model was compared with these at the training records only" if measured.given else ""
    return f". The bound is proven for all models of this learner{made}"


def _search_said(measured: MeasuredInfluence) -> str:
    """What the search for other queries came to, where it decided nothing."""
    if measured.elsewhere.found is None:
        return ""
    n, largest = measured.elsewhere.n_searched, measured.elsewhere.largest
    return (
        f". A search over queries for {n:,} of the records found a log ratio of up to {largest:.3g}, which says "
        "nothing about queries that were not tried"
    )


def notes(measured: MeasuredInfluence, learner: Learner, n_training: int, outputs: Outputs) -> list[str]:
    """What a reader should know about these numbers."""
    said = []
    tolerance = coarse_tolerance(learner, n_training)
    if tolerance is not None and measured.found.engine == Refit.name:
        most = float(measured.found.solver_floor.max())
        how_much = f"up to {most:.2g}" if most < LARGEST_FLOOR else "any part"  # a label may be another one
        said.append(
            f"The learner's solver stops at a tolerance of {tolerance:g}, which is coarse for removing one of "
            f"{n_training:,} records (above 0.01/n): {how_much} of a PDTP may be due to the solver and not to the "
            f"record. A tolerance of {0.001 / n_training:.0e} avoids this."
        )
    if measured.found.n_unconverged:
        said.append(f"The solver did not converge for {measured.found.n_unconverged:,} of the leave-one-out models.")
    if measured.found.failures:
        said.append(
            f"Training without {_records(len(measured.found.failures))} failed, so their influence is unknown. First "
            f"error: {next(iter(measured.found.failures.values()))}."
        )
    if np.isinf(measured.found.values).any():
        said.append(
            f"PDTP is infinite for {_records(int(np.isinf(measured.found.values).sum()))}: a predicted probability is "
            f"exactly 0 either with or without the record. {bounding(outputs)}"
        )
    return said
