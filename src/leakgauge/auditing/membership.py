"""The membership part of an audit: every possible attack against the one model that is to be released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.auditing.finding import Finding, Verdict, judge
from leakgauge.auditing.result import AttackResult, Curve, Exposed
from leakgauge.auditing.settings import ReleaseRule, Settings
from leakgauge.membership import (
    ATTACKS,
    Attack,
    Evidence,
    everyone_as_target,
    noise_robustness,
    strongest_per_record,
)
from leakgauge.models import AnswerKind, LabelAccess, Model
from leakgauge.records import Records
from leakgauge.statistics import (
    Dependence,
    Estimate,
    advantage_of_decisions,
    auc,
    bonferroni_confidence,
    exposed_records,
    mean_difference,
    outside_p_values,
    resolvable_fpr,
    roc,
    tpr_at_fpr,
)

if TYPE_CHECKING:
    from leakgauge.training import PredictionTable

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

FALSE_DISCOVERY_RATE = 0.05
"""Of the list of exposed records."""

FEWEST_TO_CHOOSE = 16
"""Fewer shadow models are too few to choose an attack for each record on some and judge it on others."""

LOW_RATES = (0.001, 0.01, 0.1)
"""False-positive rates at which true-positive rates are quoted."""

CURVE_POINTS = 200


@dataclass(frozen=True)
class Attacked:
    """One attack carried out: its scores ``[n]`` and what they amount to."""

    attack: Attack
    scores: Floats
    result: AttackResult


@dataclass(frozen=True)
class PerRecord:
    """How often attacks are right about each candidate, when shadow models play the target.

    Args:
        attack: the attack, or the attacks that the best is chosen from for each record.
        accuracy: in [0, 1], 0.5 is guessing; NaN where it is not known ``[n]``.
    """

    attack: str
    accuracy: Floats


def possible_attacks(
    kind: AnswerKind, names: tuple[str, ...] | None, *, shadows: bool, population: bool = False
) -> tuple[Attack, ...]:
    """The attacks that can be carried out, of those named (default: of all); any question may be put to the model."""
    return tuple(
        attack
        for attack in ATTACKS
        if (names is None or attack.name in names)
        and attack.possible(kind, shadows=shadows, population=population, copies=True)
    )


def wants_copies(kind: AnswerKind, settings: Settings) -> bool:
    """Whether the model is to be asked about changed copies of the candidates."""
    return any(attack.needs_copies for attack in possible_attacks(kind, settings.attacks, shadows=False))


def steadiness(model: Model, candidates: Records, settings: Settings) -> Floats:
    """How often the model keeps a candidate's class while the record is changed a little ``[n]``.

    Columns of two values are redrawn like categories: noise would leave them neither.
    """
    assert isinstance(model, LabelAccess)  # only such answers classes
    features = candidates.features
    two_values = np.array([len(np.unique(column)) <= 2 for column in features.T], dtype=bool)
    return noise_robustness.steadiness(
        model,
        features,
        candidates.labels,
        features,
        candidates.schema.categorical | two_values,
        seed=settings.seed,
    )


def n_set_aside(kind: AnswerKind, settings: Settings, n_holdout: int, *, learner: bool, attributes: bool) -> int:
    """How many holdout records the attacker is given as known to be outside; none where no attack could use them."""
    if not attributes and not any(attack.needs_population and kind in attack.kinds for attack in ATTACKS):
        return 0
    shadows = learner and settings.n_shadows > 0
    return min(n_holdout - 1, settings.n_population(n_holdout, shadows=shadows, attributes=attributes))


def wants_shadows(kind: AnswerKind, settings: Settings, *, learner: bool) -> bool:
    """Whether shadow models are to be trained."""
    possible = possible_attacks(kind, settings.attacks, shadows=True, population=True)
    return learner and settings.n_shadows > 0 and any(attack.needs_shadows for attack in possible)


def per_record(table: PredictionTable, labels: NDArray[np.generic], *, width: float) -> PerRecord | None:
    """How often attacks are right about each candidate, from the shadow models alone.

    With enough models the best attack is chosen for each record, on other games than those it is judged by. With few
    it is the distance-based attack for classes, and the likelihood ratio for numbers.

    Args:
        table: answers of the shadow models about the candidates.
        labels: of the candidates ``[n]``.
        width: bin width.

    Returns:
        ``None`` where too few models are left to play with.
    """
    able = [one for one in ATTACKS if one.together is not None and one.possible(table.kind, shadows=True)]
    if len(able) > 1 and len(table) >= FEWEST_TO_CHOOSE and not table.failures and _covered_in_halves(table.members):
        best = strongest_per_record(table, labels, able, width=width)
        return PerRecord("best of " + ", ".join(best.attacks), best.accuracy)
    one = next((one for one in able if one.name in ("distance", "lira")), None)
    usable = np.delete(table.members, list(table.failures), axis=0)
    if one is None or not _covered(usable):
        return None
    return PerRecord(one.name, everyone_as_target(table, labels, one, width=width).accuracy)


def exposed(attacked: tuple[Attacked, ...], is_member: Flags) -> tuple[Exposed | None, Flags]:
    """The members that stand out beyond chance: which of them ``[n]``, and what is claimed about them.

    A member that the model tells nothing about has a score like the holdout's, so the share of the holdout with at
    least its score is a p-value. They hang together through the holdout, but positively, so that Benjamini and
    Hochberg's procedure holds (Bates et al. 2023). Each attack gets its part of the rate, and so the longest of their
    lists keeps all of it.
    """
    listed = np.zeros(len(is_member), dtype=bool)
    if not attacked:
        return None, listed
    rate = FALSE_DISCOVERY_RATE / len(attacked)
    found = {
        one.attack.name: exposed_records(
            outside_p_values(one.scores[is_member], one.scores[~is_member]), q=rate, dependence=Dependence.POSITIVE
        )
        for one in attacked
    }
    name, longest = max(found.items(), key=lambda pair: pair[1].n_exposed)
    listed[is_member] = longest.exposed
    n_members, n_outside = int(is_member.sum()), int((~is_member).sum())
    fewest = int(np.ceil(n_members / (rate * (n_outside + 1))))
    return Exposed(name, longest.n_exposed, n_members, FALSE_DISCOVERY_RATE, fewest), listed


def _covered(members: Flags) -> bool:
    """Whether each record is in two training sets and out of two."""
    n_in = members.sum(axis=0)
    return len(members) >= 4 and bool((np.minimum(n_in, len(members) - n_in) >= 2).all())


def _covered_in_halves(members: Flags) -> bool:
    middle = len(members) // 4 * 2
    return _covered(members[:middle]) and _covered(members[middle:])


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
            more_records(gained, limit, n_holdout),
        ),
    }[verdict]
    return Finding(
        "membership", f"advantage of the attack “{result.title}”", gained, 0.0, limit, verdict, reason, remedy
    )


def more_records(gained: Estimate, limit: float, n_holdout: int) -> str:
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
