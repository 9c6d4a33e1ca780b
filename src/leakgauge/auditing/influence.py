"""The influence part of an audit: how far each training record moves the model, and whether the DTP rule holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.auditing.finding import Finding, Verdict, judge
from leakgauge.auditing.membership import PerRecord
from leakgauge.auditing.result import Association, Histogram, Influence
from leakgauge.auditing.settings import Queries, Released, Settings
from leakgauge.influence import (
    Confirmation,
    DtpBound,
    Pdtp,
    Search,
    coarse_tolerance,
    confirm,
    dtp_upper_bound,
    pdtp,
    search,
)
from leakgauge.statistics import Estimate, pearson
from leakgauge.training import Job, Randomness, everything
from leakgauge.training.engines.refit import Refit

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner
    from leakgauge.training.chunks import Workers
    from leakgauge.training.many import Progress

Floats: TypeAlias = NDArray[np.float64]

N_BARS = 40
SCATTER_POINTS = 400
CERTAIN = 1.0

BLUNT = (
    "regularise more strongly, release rounded answers or labels only, or take the records above the limit out of the "
    "training set and measure again"
)

N_SEARCHED = 8
"""Records about which other queries are searched for: those with the largest PDTP."""


@dataclass(frozen=True)
class Measured:
    """PDTP of the training records, what is known of other queries, and the second look at the worst.

    Args:
        found: PDTP of the answers as they are released.
        bound: upper bound on the DTP of every training record, or ``None``.
        second_look: where seeds change the answers and the first look found a record above the limit.
        indirect: the best queries found about the worst records, unless the rule accepts any but direct ones.
        indirect_floor: how far arithmetic alone may move what was found there ``[m]``.
    """

    found: Pdtp
    bound: DtpBound | None
    second_look: Confirmation | None
    indirect: Search | None
    indirect_floor: Floats

    @property
    def largest_indirect(self) -> float:
        """Largest log ratio at any query found, arithmetic taken off; 0 where nothing was searched."""
        if self.indirect is None:
            return 0.0
        found = np.nan_to_num(self.indirect.values, nan=0.0, posinf=np.inf)
        certain = np.where(np.isinf(found), found, found - self.indirect_floor)
        return float(np.nan_to_num(certain, nan=0.0, posinf=np.inf, neginf=0.0).max(initial=0.0))


def measure(
    learner: Learner,
    train: Records,
    settings: Settings,
    *,
    run: Path | None,
    workers: Workers,
    progress: Progress | None,
) -> Measured:
    """Leave every chosen record out, and look again at the worst if seeds may have made them so."""
    n_chosen = len(train) if settings.n_influence is None else min(settings.n_influence, len(train))
    rng = np.random.default_rng([settings.seed, 1])
    which = np.sort(rng.choice(len(train), n_chosen, replace=False)).astype(np.int64)
    found = pdtp(
        learner,
        train,
        which,
        seed=settings.seed,
        n_repeats=settings.n_repeats,
        released=settings.release,
        width=settings.bin_width,
        device=settings.device,
        run=run,
        workers=workers,
        progress=progress,
    )
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
            device=settings.device,
            run=run,
            workers=workers,
        )
    bound = dtp_upper_bound(learner, train) if settings.released is Released.AS_IS else None
    indirect = _indirect(learner, train, found, settings)
    floor = np.zeros(0) if indirect is None else _floor_of(learner, train, indirect, settings)
    return Measured(found, bound, second_look, indirect, floor)


def _indirect(learner: Learner, train: Records, found: Pdtp, settings: Settings) -> Search | None:
    """Search for other queries about the worst records, unless the rule accepts such queries.

    For a randomised learner one pair of models shows nothing, so nothing is searched.
    """
    if settings.rule.queries is Queries.DIRECT or learner.randomised or len(found.which) == 0:
        return None
    known = np.nan_to_num(found.values, nan=0.0, posinf=np.inf)
    worst = np.sort(found.which[np.argsort(-known, kind="stable")[:N_SEARCHED]])
    return search(learner, train, worst, seed=settings.seed, released=settings.release, width=settings.bin_width)


def _floor_of(learner: Learner, train: Records, indirect: Search, settings: Settings) -> Floats:
    """Twice the error of one answer to each of the queries found, as two are compared ``[m]``."""
    tight = learner.solved_to_the_end() or learner
    job = Job(tight, train, everything(len(train)), indirect.queries, settings.seed, Randomness.COMMON, settings.device)
    return np.nan_to_num(2 * Refit().floor(job), nan=np.inf)


def summarise(measured: Measured, n_training: int, settings: Settings, success: PerRecord | None) -> Influence:
    """The numbers a report shows."""
    values = measured.found.values[~np.isnan(measured.found.values)]
    limit = settings.rule.dtp or 1.0
    return Influence(
        n_measured=len(measured.found.which),
        n_training=n_training,
        largest=float(values.max()) if len(values) else np.inf,  # unknown is not zero
        median=float(np.median(values)) if len(values) else np.inf,
        n_above_limit=int((values > limit).sum()),
        limit=limit,
        noise_floor=float(measured.found.noise_floor.max(initial=0.0)),
        solver_floor=float(measured.found.solver_floor.max(initial=0.0)),
        n_below_floor=int((measured.found.values <= measured.found.floor).sum()),
        bound=_bound(measured),
        bound_covers="" if measured.bound is None else measured.bound.covers,
        n_searched=0 if measured.indirect is None else len(measured.indirect.which),
        indirect=measured.largest_indirect,
        n_failed=len(measured.found.failures),
        engine=measured.found.engine,
        n_unconverged=measured.found.n_unconverged,
        histogram=_histogram(values, limit),
        with_success=None if success is None else _with_success(measured, success),
    )


def findings(measured: Measured | None, learner: Learner | None, why_not: str, settings: Settings) -> list[Finding]:
    """The DTP rule: its direct part (PDTP) and, unless the rule is content with that, the part for any query."""
    limit = settings.rule.dtp
    if limit is None:
        return []
    if measured is None or learner is None:
        return [
            Finding(
                "influence", "differential training privacy of the training records", None, 0.0, limit,
                Verdict.CANNOT_TELL, why_not, "give the learner, so that models without each record can be trained",
            )
        ]  # fmt: skip
    direct = _direct(measured, limit)
    if settings.rule.queries is Queries.DIRECT:
        return [direct]
    return [direct, _any_query(measured, direct, limit)]


def notes(measured: Measured, learner: Learner, n_training: int) -> list[str]:
    """What a reader should know about these numbers."""
    said = []
    tolerance = coarse_tolerance(learner, n_training)
    if tolerance is not None and measured.found.engine == Refit.name:
        said.append(
            f"The learner's solver stops at a tolerance of {tolerance:g}, which is coarse for leaving out one of "
            f"{n_training:,} records (above 0.01/n): up to {measured.found.solver_floor.max():.2g} of PDTP may show "
            f"where the solver stopped. A tolerance of {0.001 / n_training:.0e} would measure the records instead."
        )
    if measured.found.n_unconverged:
        said.append(
            f"The solver of {measured.found.n_unconverged:,} leave-one-out models reported that it had not converged."
        )
    if measured.found.failures:
        said.append(
            f"{len(measured.found.failures):,} records have no PDTP because no model could be trained without them; "
            f"the first reason: {next(iter(measured.found.failures.values()))}"
        )
    if np.isinf(measured.found.values).any():
        said.append(
            f"PDTP is infinite for {int(np.isinf(measured.found.values).sum()):,} records: a probability is exactly 0 "
            "with or without the record. Binned answers, or a smoothing learner, would bound it."
        )
    return said


def _direct(measured: Measured, limit: float) -> Finding:
    """PDTP: queries about the record itself."""
    known = not measured.found.failures and not np.isnan(measured.found.values).any()
    complete = known and len(measured.found.which) == measured.found.n_training
    largest = float(np.nanmax(measured.found.values, initial=0.0))
    n_above = int((measured.found.values > limit).sum())
    if measured.second_look is not None:
        estimate = measured.second_look.largest
    else:
        low, high = _ends(measured.found)
        high = min(high, _bound(measured)) if complete else _bound(measured)  # what is proven of any query
        estimate = Estimate(
            min(largest, high),
            min(low, high),
            high,
            CERTAIN,
            "largest PDTP, " + measured.found.engine,
            len(measured.found.values),
        )
    verdict = judge(estimate, limit)
    if verdict is Verdict.PASSES and measured.second_look is not None:
        verdict = Verdict.CANNOT_TELL  # only a few of the records that looked worst were looked at again
    how_many = f"{n_above:,} of {len(measured.found.values):,} records are above {limit:g}"
    if verdict is Verdict.FAILS:
        reason = f"a record changes an answer about itself by more than a factor e^{limit:g}; {how_many}"
        remedy = BLUNT
    elif verdict is Verdict.PASSES:
        proven = "" if complete else "; not all were measured, but a bound is proven"
        reason = f"no record changes any answer about itself by more than a factor e^{estimate.high:.3g}{proven}"
        remedy = ""
    elif measured.second_look is not None:
        noisy = int((measured.found.values <= measured.found.noise_floor).sum())
        reason = (
            f"{how_many} at first sight, but the learner's own randomness alone moves the answers about {noisy:,} "
            "records as far, and a second look with fresh seeds did not show a record above the limit"
        )
        remedy = "more seeds (repeats), or a learner with less randomness, such as more trees"
    elif complete and largest <= limit < estimate.high:
        reason = (
            f"the largest PDTP found is {largest:.3g}, but without anyone left out it may already show "
            f"{float(measured.found.floor.max()):.3g} (the floor that the learner's seed or its solver sets)"
        )
        remedy = "a solver run to a smaller tolerance, or a learner with less randomness, such as more trees"
    elif complete and largest > limit:
        reason = (
            f"the largest PDTP found is {largest:.3g}, of which the solver alone may account for "
            f"{float(measured.found.solver_floor.max()):.3g}"
        )
        remedy = "a solver run to a smaller tolerance"
    else:
        reason = f"not every record was measured (largest found: {largest:.3g})"
        remedy = "measure all training records, and make sure that the learner can be trained without each of them"
    return Finding(
        "influence", "largest PDTP (queries about the record itself)", estimate, 0.0, limit, verdict, reason, remedy
    )


def _ends(found: Pdtp) -> tuple[float, float]:
    """Between what the largest PDTP lies, as far as seeds and solvers let one know.

    Arithmetic may have moved each value by its solver floor, either way. Below the noise floor nothing can be told, so
    that the upper end is not below it.
    """
    moved = np.where(np.isinf(found.values), 0.0, found.solver_floor)
    low = float(np.nanmax(np.maximum(found.values - moved, 0.0), initial=0.0))
    high = float(np.nanmax(found.values + moved, initial=0.0))
    return low, max(high, float(found.noise_floor.max(initial=0.0)))


def _bound(measured: Measured) -> float:
    """What no record's DTP exceeds; infinite where nothing is proven, or no model could be trained without a record."""
    lost = bool(measured.found.failures) or bool(np.isnan(measured.found.values).any())
    return np.inf if measured.bound is None or lost else float(measured.bound.values.max())


def _any_query(measured: Measured, direct: Finding, limit: float) -> Finding:
    """DTP: any query; PDTP is a lower bound of it, and it can pass on an upper bound alone (Long et al. 2017)."""
    elsewhere = measured.largest_indirect
    low = max(elsewhere, direct.estimate.low if direct.estimate is not None else 0.0)
    high = max(low, _bound(measured))
    largest = min(max(low, float(np.nanmax(measured.found.values, initial=0.0))), high)
    confidence = CERTAIN if measured.second_look is None else measured.second_look.confidence
    covers = "" if measured.bound is None else measured.bound.covers
    method = "largest log ratio found below, " + (
        "no bound known above" if measured.bound is None else "a proven bound above"
    )
    estimate = Estimate(largest, low, high, confidence, method, len(measured.found.values))
    verdict = judge(estimate, limit)
    reason = {
        Verdict.FAILS: (
            f"a query other than the record itself was found whose answer changes by {_times(elsewhere)} without it"
            if elsewhere > limit
            else "DTP is at least PDTP, which is above the limit"
        ),
        Verdict.PASSES: f"no answer can change by more than a factor e^{high:.3g}; this covers {covers}",
        Verdict.CANNOT_TELL: "queries other than the record itself may give it away, and "
        + ("no bound on them is known for this learner" if np.isinf(high) else f"the known bound is {high:.3g}")
        + _search_said(measured),
    }[verdict]
    remedy = {
        Verdict.FAILS: direct.remedy or BLUNT,
        Verdict.PASSES: "",
        Verdict.CANNOT_TELL: "a learner whose DTP is bounded (smoothed naive Bayes, binary logistic regression) with a "
        'stronger penalty or more records; or accept such queries by setting queries = "direct" in the release rule',
    }[verdict]
    return Finding("influence", "largest DTP (any query)", estimate, 0.0, limit, verdict, reason, remedy)


def _times(nats: float) -> str:
    return "a factor without end" if np.isinf(nats) else f"a factor e^{nats:.3g}"


def _search_said(measured: Measured) -> str:
    """What the search for other queries came to, where it decided nothing."""
    if measured.indirect is None:
        return ""
    n = len(measured.indirect.which)
    return (
        f"; a search over queries about {n:,} of the records found up to {measured.largest_indirect:.3g}, which proves "
        "nothing about queries not tried"
    )


def _with_success(measured: Measured, success: PerRecord) -> Association | None:
    x, y = measured.found.binned, success.accuracy[measured.found.which]
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) < 4 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    correlation = pearson(x, y)
    falling = np.argsort(-x, kind="stable")
    shown = falling[np.unique(np.linspace(0, len(x) - 1, min(len(x), SCATTER_POINTS)).astype(np.int64))]
    return Association(
        success.attack,
        correlation.estimate,
        correlation.p_value,
        tuple(round(float(v), 4) for v in x[shown]),
        tuple(round(float(v), 4) for v in y[shown]),
    )


def _histogram(values: Floats, limit: float) -> Histogram:
    finite = values[np.isfinite(values)]
    top = max(1.25 * limit, float(finite.max(initial=0.0)))
    counts, edges = np.histogram(finite, bins=N_BARS, range=(0.0, top))
    return Histogram(
        tuple(round(float(e), 6) for e in edges), tuple(int(c) for c in counts), int(np.isinf(values).sum())
    )
