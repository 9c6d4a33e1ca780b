"""The membership part of an audit: every possible attack against the one model that is to be released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.auditing.finding import Finding, Verdict, judge
from leakgauge.auditing.result import AttackResult, Curve
from leakgauge.auditing.settings import ReleaseRule
from leakgauge.membership import ATTACKS, Attack, Evidence
from leakgauge.models import AnswerKind
from leakgauge.statistics import (
    Estimate,
    advantage_of_decisions,
    auc,
    bonferroni_confidence,
    mean_difference,
    resolvable_fpr,
    roc,
    tpr_at_fpr,
)

Floats: TypeAlias = NDArray[np.float64]

LOW_RATES = (0.001, 0.01, 0.1)
"""False-positive rates at which true-positive rates are quoted."""

CURVE_POINTS = 200


@dataclass(frozen=True)
class Attacked:
    """One attack carried out: its scores ``[n]`` and what they amount to."""

    attack: Attack
    scores: Floats
    result: AttackResult


def possible_attacks(kind: AnswerKind, names: tuple[str, ...] | None, *, shadows: bool) -> tuple[Attack, ...]:
    """The attacks that can be carried out, of those named (default: of all)."""
    return tuple(
        attack
        for attack in ATTACKS
        if (names is None or attack.name in names) and attack.possible(kind, shadows=shadows)
    )


def carry_out(
    attacks: tuple[Attack, ...], evidence: Evidence, is_member: NDArray[np.bool_], rule: ReleaseRule
) -> tuple[Attacked, ...]:
    """Score all candidates with every attack; the intervals on the advantages hold together."""
    single = bonferroni_confidence(rule.confidence, max(1, len(attacks)))
    return tuple(_carry_out(attack, evidence, is_member, single, rule.confidence) for attack in attacks)


def advantage_findings(attacked: tuple[Attacked, ...], rule: ReleaseRule, n_holdout: int) -> list[Finding]:
    """One finding for each attack."""
    if rule.advantage is None:
        return []
    if not attacked:
        return [
            Finding(
                "membership", "membership advantage", None, 0.0, rule.advantage, Verdict.CANNOT_TELL,
                "no membership attack could be carried out with what the model answers",
                "name other attacks, or give the learner so that shadow models can be trained",
            )
        ]  # fmt: skip
    return [advantage_finding(one.result, rule.advantage, n_holdout) for one in attacked]


def strongest(attacked: tuple[Attacked, ...]) -> Attacked | None:
    """The attack whose AUC is known to be highest; used for ranking records, never quoted as a rate of its own."""
    return max(attacked, key=lambda one: (one.result.auc.low, one.result.auc.value), default=None)


def _carry_out(
    attack: Attack, evidence: Evidence, is_member: NDArray[np.bool_], single: float, confidence: float
) -> Attacked:
    scores = attack.score(evidence)
    inside, outside = scores[is_member], scores[~is_member]
    if attack.member_probability is None:
        gained = advantage_of_decisions(inside > 0, outside > 0, confidence=single)
    else:
        probability = attack.member_probability(evidence)
        gained = mean_difference(probability[is_member], probability[~is_member], confidence=single)
    low_fpr = next((rate for rate in LOW_RATES if rate >= resolvable_fpr(len(outside))), LOW_RATES[-1])
    result = AttackResult(
        name=attack.name,
        title=attack.title,
        source=attack.source,
        advantage=gained,
        auc=auc(inside, outside, confidence=confidence),
        tpr_at_low_fpr=tpr_at_fpr(inside, outside, low_fpr, confidence=confidence),
        low_fpr=low_fpr,
        roc=_thin(inside, outside),
    )
    return Attacked(attack, scores, result)


def advantage_finding(result: AttackResult, limit: float, n_holdout: int) -> Finding:
    """The advantage of one attack held against the limit."""
    gained = result.advantage
    verdict = judge(gained, limit)
    reason, remedy = {
        Verdict.PASSES: (f"even the upper end, {gained.high:.3f}, is at most {limit:g}", ""),
        Verdict.FAILS: (
            f"the attacker tells members from others: even the lower end, {gained.low:.3f}, is above {limit:g}",
            "regularise more strongly, train on more records, or release rounded answers or labels only",
        ),
        Verdict.CANNOT_TELL: (
            f"the interval from {gained.low:.3f} to {gained.high:.3f} lies on both sides of {limit:g}",
            _more_records(gained, limit, n_holdout),
        ),
    }[verdict]
    return Finding(
        "membership", f"advantage of the attack “{result.title}”", gained, 0.0, limit, verdict, reason, remedy
    )


def _more_records(gained: Estimate, limit: float, n_holdout: int) -> str:
    """How many records would shrink the interval to one side, if the value stayed where it is."""
    distance = abs(gained.value - limit)
    half = gained.half_width
    if distance == 0 or half == 0:
        return "more training and holdout records"
    factor = (half / distance) ** 2
    if factor > 1000:
        return "the value is too close to the limit for any reasonable number of records; change the limit or the model"
    needed = int(np.ceil(n_holdout * max(factor, 1.1) / 100) * 100)
    return f"about {needed:,} training and as many holdout records would settle it"


def _thin(inside: Floats, outside: Floats) -> Curve:
    """The ROC curve with points spread evenly over the ranks *and* over the orders of magnitude of the FPR."""
    curve = roc(inside, outside)
    n = len(curve.fpr)
    if n > CURVE_POINTS:
        even = np.linspace(0, n - 1, CURVE_POINTS // 2)
        small = np.searchsorted(curve.fpr, np.geomspace(1 / len(outside), 1, CURVE_POINTS // 2), side="right") - 1
        keep = np.unique(np.concatenate([even, small, [0, n - 1]]).astype(np.int64))
        return Curve(_rounded(curve.fpr[keep]), _rounded(curve.tpr[keep]))
    return Curve(_rounded(curve.fpr), _rounded(curve.tpr))


def _rounded(values: Floats) -> tuple[float, ...]:
    return tuple(round(float(v), 6) for v in values)
