"""True-positive rates at a false-positive rate of 1 %, held against the release rule where it limits them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from leakgauge.auditing.advice import MOST_MODELS, TOO_LARGE_ADVICE, Situation, advice, settled_by_models
from leakgauge.auditing.finding import Finding, Verdict, judge
from leakgauge.auditing.membership.findings import (
    GIVE_LEARNER,
    GIVE_REFERENCES,
    JUDGED_ALONE,
    JUDGED_FPR,
    unlike_siblings,
)
from leakgauge.auditing.membership.result import GamesTpr, MembershipAttackResult
from leakgauge.auditing.overlap import FRESH_HOLDOUT, allowance
from leakgauge.auditing.result import Description
from leakgauge.auditing.settings import ReleaseRule
from leakgauge.membership import Contamination
from leakgauge.statistics import FEWEST_FALSE_POSITIVES, FEWEST_FALSE_RECORDS, Estimate
from leakgauge.statistics.numerals import interval_name, number

TPR_MEASURE = "true-positive rate over a false-positive rate of 1 %"

AGAIN = "audit the model again with this version"

GRAVITY = (Verdict.PASSES, Verdict.CANNOT_TELL, Verdict.FAILS)


def tpr_findings(
    attacks: Sequence[MembershipAttackResult],
    description: Description,
    rule: ReleaseRule,
    situation: Situation,
    *,
    n_games: int,
    outlier: float | None,
    contamination: Contamination | None,
    lost: Sequence[str] = (),
) -> list[Finding]:
    """One finding, of the attack that decides, on how many times the rate of chance is reached; none without a limit.

    It is a statement about the learner: a pass needs the interval of every attack in games at or below the limit, a
    failure one of those that hold together above it. Where a rate is not resolved, an attack was not played, or the
    audited model differs from its learner's other models, nothing passes.

    Args:
        attacks: what they achieved.
        description: of what was audited.
        rule: with the largest ratio.
        situation: what is released, for the advice.
        n_games: shadow models that played the target.
        outlier: how rarely a model of the learner differs as much from the others as the audited one, as a p-value.
        contamination: whether part of the holdout seems to have been trained on.
        lost: titles of attacks that were carried out and that the result lacks.
    """
    limit = rule.tpr_ratio
    if limit is None:
        return []
    found = [_of_attack(one, limit, situation, n_games) for one in attacks if one.name not in JUDGED_ALONE]
    found += [_undecided(limit, f"the result lacks {title}", AGAIN) for title in lost]
    if not n_games or not found:
        no_games = f"no attack was played in games, in which a rate of {100 * JUDGED_FPR:g} % is measured"
        give = GIVE_REFERENCES if description.only_scores else GIVE_LEARNER
        remedy = give.removeprefix("or ") if description.learner is None else "train shadow models (32)"
        return [_undecided(limit, no_games, remedy)]
    worst = max(found, key=lambda one: (GRAVITY.index(one.verdict), 0.0 if one.estimate is None else one.estimate.high))
    if worst.verdict is Verdict.PASSES:
        shared, doubt = description.overlap, unlike_siblings(outlier, contamination)
        if shared is not None and shared.low > 0:
            doubt = "the holdout shares records with the training set, which hides a leak", FRESH_HOLDOUT
        if doubt is not None:
            worst = replace(worst, verdict=Verdict.CANNOT_TELL, reason=doubt[0], remedy=doubt[1])
    return [replace(worst, reason=worst.reason + allowance(description.overlap))]


def _of_attack(result: MembershipAttackResult, limit: float, situation: Situation, n_games: int) -> Finding:
    """One attack against the limit."""
    rates = () if result.games is None else result.games.tpr
    rate = next((one for one in rates if one.fpr == JUDGED_FPR), None)
    if rate is None:
        return _undecided(limit, f"the result lacks the rate of {result.title} in games", AGAIN)
    if rate.pool is None or rate.together is None:
        return _undecided(limit, *_unresolved(result.title, rate, n_games))
    pool, together = _over_chance(rate.pool), _over_chance(rate.together)
    ratio = replace(pool, low=min(pool.value, together.low))
    verdict = judge(ratio, limit)
    says = {Verdict.PASSES: "stays within", Verdict.FAILS: "exceeds", Verdict.CANNOT_TELL: "may exceed"}[verdict]
    reason = (
        f"{result.title} {says} the limit: of members it identifies {number(ratio.value, 2)} times the share of "
        f"non-members that it takes for members, {100 * JUDGED_FPR:g} % ({interval_name(ratio.confidence)} "
        f"{number(ratio.low, 2)} to {number(ratio.high, 2)}), limit {limit:g}"
    )
    settle = settled_by_models(pool, limit, n_games)
    remedy = advice("membership", verdict, situation, settle=settle, unsettled=TOO_LARGE_ADVICE)
    return Finding("membership", TPR_MEASURE, ratio, 1.0, limit, verdict, reason, remedy)


def _over_chance(rate: Estimate) -> Estimate:
    """How many times the false-positive rate it is."""
    value, low, high = (end / JUDGED_FPR for end in (rate.value, rate.low, rate.high))
    return replace(rate, value=value, low=low, high=high)


def _unresolved(title: str, rate: GamesTpr, n_games: int) -> tuple[str, str]:
    """Why a rate is not resolved, and what it would take."""
    reason = (
        f"the true-positive rate of {title} at a false-positive rate of {100 * rate.fpr:g} % is not resolved: "
        f"{rate.n_false:,} false positives of {rate.n_false_records:,} records, expected at least "
        f"{FEWEST_FALSE_POSITIVES} of {FEWEST_FALSE_RECORDS}"
    )
    if rate.n_false >= FEWEST_FALSE_POSITIVES:
        return reason, "give more training and holdout records"
    times = FEWEST_FALSE_POSITIVES / max(1, rate.n_false)
    models, records = math.ceil(n_games * times), f"give {times:.1f} times as many training and holdout records"
    if models > MOST_MODELS:
        return reason, records
    return reason, f"train about {models:,} shadow models ([attacks] shadow_models), or {records}"


def _undecided(limit: float, reason: str, remedy: str) -> Finding:
    return Finding("membership", TPR_MEASURE, None, 1.0, limit, Verdict.CANNOT_TELL, reason, remedy)
