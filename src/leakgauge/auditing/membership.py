"""The membership part of an audit: every possible attack against the one model that is to be released."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats
from leakgauge.auditing.advice import UNKNOWN_OUTPUTS, Situation, advice, settled_by_records
from leakgauge.auditing.finding import Finding, Verdict, judge
from leakgauge.auditing.overlap import FRESH_HOLDOUT, Overlap, allowance
from leakgauge.auditing.result import AttackResult, Curve, Description, Exposed
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
    SMALLEST_GROUP,
    Dependence,
    Estimate,
    TailOdds,
    advantage_of_decisions,
    auc,
    bonferroni_confidence,
    exposed_records,
    mean_difference,
    outside_p_values,
    resolvable_fpr,
    roc,
    smallest_sure_tail,
    tail_odds,
    tpr_at_fpr,
)
from leakgauge.statistics.numerals import interval_name, number
from leakgauge.streams import AuditStream

if TYPE_CHECKING:
    from leakgauge.training import PredictionTable


FALSE_DISCOVERY_RATE = 0.05
"""Of the list of exposed records."""

BY_LABELS_ALONE = ("gap",)
"""Attacks that use nothing but the label, so that they succeed as well where labels alone are released."""

FEWEST_TO_CHOOSE = 16
"""Fewer shadow models are too few to choose an attack for each record on some and judge it on others."""

FEWEST_LEFT = 0.5
"""Share of the shadow models that must be left where others failed: with fewer, attacks are weaker than was asked."""

LOW_RATES = (0.001, 0.01, 0.1)
"""False-positive rates at which true-positive rates are quoted."""

QUOTED_RATES = tuple(m * 10.0**k for k in range(-4, 0) for m in (1, 2, 5))
"""False-positive rates in the tables below the curves."""

CURVE_POINTS = 200

LARGEST_LIMIT = 700.0
"""Nats; e to a larger power is no number."""

TAIL_MEASURE = "tail odds of the strongest attack"


@dataclass(frozen=True)
class Attacked:
    """One attack carried out.

    Args:
        attack: which.
        scores: of the candidates ``[n]``; higher means member, unless it points the other way.
        points_down: whether members score lower: the whole interval on the AUC lies below 0.5, at a confidence that
            all attacks share. Of an audit of a model that leaks nothing that is so with a probability of at most half
            of what is left of the rule's confidence.
        result: what it amounts to.
    """

    attack: Attack
    scores: Floats
    points_down: bool
    result: AttackResult

    @property
    def rising(self) -> Floats:
        """The scores, turned round where members score lower ``[n]``: higher means member."""
        return -self.scores if self.points_down else self.scores


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
        ``None`` where there are too few models to play with, or some failed: which ones may hang on who was in their
        training sets, and then guessing is not right in half of the games any more.
    """
    able = [one for one in ATTACKS if one.together is not None and one.possible(table.kind, shadows=True)]
    if table.failures:
        return None
    if len(able) > 1 and len(table) >= FEWEST_TO_CHOOSE and _covered_in_halves(table.members):
        best = strongest_per_record(table, labels, able, width=width)
        return PerRecord("best of " + ", ".join(best.attacks), best.accuracy)
    one = next((one for one in able if one.name in ("distance", "lira")), None)
    if one is None or not _covered(table.members):
        return None
    return PerRecord(one.name, everyone_as_target(table, labels, one, width=width).accuracy)


def why_no_shadows(table: PredictionTable) -> str:
    """Why attacks with shadow models cannot be judged, although some were trained; empty where they can.

    A model counts as failed if it could not be trained or did not answer about every candidate. Failures depend on the
    shadow models' own training sets and not on the target's, so that they favour neither members nor non-members. But
    where every model trained without a record fails, nothing is known about that record.
    """
    lost = table.failures
    usable = np.delete(table.members, list(lost), axis=0)
    if not lost or (len(usable) >= FEWEST_LEFT * len(table) and _covered(usable)):
        return ""
    counts = Counter(lost.values()).most_common(1)[0]
    others = "" if counts[1] == len(lost) else f", and {len(lost) - counts[1]} for other reasons"
    few = len(usable) < FEWEST_LEFT * len(table)
    rest = "too few are left" if few else "some records are in the training sets of all that are left, or of none"
    return (
        f"{len(lost)} of {len(table)} shadow models could not be trained or could not predict all records "
        f"({counts[0]}{others}); {rest}"
    )


def shadows_finding(why_not: str, rule: ReleaseRule) -> list[Finding]:
    """That the attacks with shadow models could not be carried out, where the rule asks for them."""
    if not why_not or rule.advantage is None:
        return []
    return [
        Finding(
            "membership", "membership advantage, attacks with shadow models", None, 0.0, rule.advantage,
            Verdict.CANNOT_TELL, why_not,
            "use a model that predicts every record whatever its training set: give its encoder all categories, or let "
            "it ignore unknown ones (handle_unknown=\"ignore\")",
        )
    ]  # fmt: skip


def unsteady_finding(moved: tuple[int, int], rule: ReleaseRule) -> list[Finding]:
    """That the model answers the same question differently, of which attacks that ask once see little.

    Args:
        moved: how many records got another answer when the model was asked again, and of how many.
        rule: asks for it where it has a limit on the advantage.
    """
    n_moved, n = moved
    if not n_moved or rule.advantage is None:
        return []
    return [
        Finding(
            "membership", "membership advantage, repeated queries", None, 0.0, rule.advantage,
            Verdict.CANNOT_TELL,
            f"on a second query, the model's output differs for {n_moved:,} of {n:,} records. An attacker averages "
            "this randomness out by repeating queries, and the attacks of this audit query each record once",
            "let the model give the same output for the same query (random numbers drawn from the record, no state "
            "between queries), or audit it without the randomness",
        )
    ]  # fmt: skip


def exposed(
    attacked: tuple[Attacked, ...], is_member: Flags, *, among: int | None = None
) -> tuple[Exposed | None, Flags]:
    """The members that stand out beyond chance: which of them ``[n]``, and what is claimed about them.

    A member that the model tells nothing about has a score like the holdout's, so the share of the holdout with at
    least its score is a p-value. They hang together through the holdout, but positively, so that Benjamini and
    Hochberg's procedure holds (Bates et al. 2023). Each attack gets its part of the rate, and so the longest of their
    lists keeps all of it. Where an attack points down, members stand out at the low end and are looked for there; that
    a model that leaks nothing is read the wrong way round adds at most half of what is left of the rule's confidence.
    The rate is divided among at least ``among`` attacks, by default among those carried out.
    """
    listed = np.zeros(len(is_member), dtype=bool)
    if not attacked:
        return None, listed
    rate = FALSE_DISCOVERY_RATE / max(len(attacked), among or 0)
    found = {
        one.attack.name: exposed_records(
            outside_p_values(one.rising[is_member], one.rising[~is_member]), q=rate, dependence=Dependence.POSITIVE
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
    attacks: tuple[Attack, ...],
    evidence: Evidence,
    is_member: NDArray[np.bool_],
    rule: ReleaseRule,
    overlap: Overlap | None = None,
    *,
    among: int | None = None,
) -> tuple[Attacked, ...]:
    """Score all candidates with every attack.

    The intervals on the advantages hold together at the rule's confidence, and so do, at a quarter of what is left of
    it, the bounds on the tail odds of all attacks (0.0125 at 0.95).

    Args:
        attacks: those to carry out.
        evidence: what the attacker holds.
        is_member: which candidates are members, bool ``[n]``.
        rule: whose confidence is divided among the attacks.
        overlap: holdout records that stand in the training set, which advantages and tail odds are corrected for.
        among: among how many at least; by default among those carried out.
    """
    n = max(1, len(attacks), among or 0)
    levels = _Levels(bonferroni_confidence(rule.confidence, n), rule.confidence, (1 - rule.confidence) / (4 * n))
    if overlap is not None and overlap.share(rule.confidence) is None:
        overlap = None
    return tuple(_carry_out(attack, evidence, is_member, levels, overlap) for attack in attacks)


def findings(
    attacks: Sequence[AttackResult],
    description: Description,
    situation: Situation = UNKNOWN_OUTPUTS,
    *,
    advantage: float | None,
    dtp: float | None,
    learner: bool,
) -> list[Finding]:
    """One finding for each attack, and one for the tails of all; none where the rule has no limit on the advantage.

    Args:
        attacks: what they achieved.
        description: of what was audited.
        situation: what is released, for the advice.
        advantage: limit on the advantage, whichever way a signal points.
        dtp: limit on DTP; tail odds may reach e to this power, or e where there is none.
        learner: whether the training procedure was given.
    """
    if advantage is None:
        return []
    if not attacks:
        return [
            Finding(
                "membership", "membership advantage", None, 0.0, advantage, Verdict.CANNOT_TELL,
                "no membership attack could be carried out with the released outputs",
                "name other attacks" + (", or give the learner so that shadow models can be trained" * (not learner)),
            )
        ]  # fmt: skip
    by_labels = any(
        one.name in BY_LABELS_ALONE and judge(one.advantage.magnitude, advantage) is Verdict.FAILS for one in attacks
    )
    situation = replace(situation, labels_suffice=by_labels)
    found = [advantage_finding(one, advantage, description, situation, len(attacks)) for one in attacks]
    tail = tail_finding(attacks, description, 1.0 if dtp is None else dtp)
    return found if tail is None else [*found, tail]


def strongest(attacked: tuple[Attacked, ...]) -> Attacked | None:
    """The attack whose AUC is known to be furthest from 0.5; used for ranking records, never quoted as a rate."""
    return max(attacked, key=lambda one: (_off(one.result.auc).low, _off(one.result.auc).value), default=None)


def _off(area: Estimate) -> Estimate:
    """How far an AUC is from 0.5, in either direction."""
    return replace(area, value=area.value - 0.5, low=area.low - 0.5, high=area.high - 0.5).magnitude


@dataclass(frozen=True)
class _Levels:
    """How sure the statements about one attack are.

    Args:
        advantage: confidence of its advantage alone.
        shown: confidence of what is shown and not judged.
        tail: probability of an error in its tail odds.
    """

    advantage: float
    shown: float
    tail: float


def _carry_out(
    attack: Attack, evidence: Evidence, is_member: NDArray[np.bool_], levels: _Levels, overlap: Overlap | None
) -> Attacked:
    scores = attack.score(evidence)
    inside, outside = scores[is_member], scores[~is_member]
    if attack.member_probability is None:
        gained = advantage_of_decisions(inside > 0, outside > 0, confidence=levels.advantage)
    else:
        probability = attack.member_probability(evidence)
        gained = mean_difference(probability[is_member], probability[~is_member], confidence=levels.advantage)
    low_fpr = next((rate for rate in LOW_RATES if rate >= resolvable_fpr(len(outside))), LOW_RATES[-1])
    rng = AuditStream.MEMBERSHIP_TAIL.generator(evidence.seed)
    tail = tail_odds(inside, outside, level=levels.tail if overlap is None else levels.tail / 2, rng=rng)
    if tail is not None and overlap is not None:
        tail = overlap.corrected_tail(tail)
    result = AttackResult(
        name=attack.name,
        title=attack.title,
        source=attack.source,
        advantage=gained if overlap is None else overlap.corrected(gained),
        auc=auc(inside, outside, confidence=levels.shown),
        tpr_at_low_fpr=tpr_at_fpr(inside, outside, low_fpr, confidence=levels.shown),
        low_fpr=low_fpr,
        roc=_thin(inside, outside),
        tail=tail,
    )
    points_down = auc(inside, outside, confidence=levels.advantage).high < 0.5
    return Attacked(attack, scores, points_down, result)


def advantage_finding(
    result: AttackResult, limit: float, description: Description, situation: Situation, n_attacks: int
) -> Finding:
    """The advantage of one attack, of so many, held against the limit, whichever way it points."""
    shared = description.overlap
    gained = result.advantage.magnitude
    verdict = judge(gained, limit)
    advantage = f"{number(gained.value)} ({interval_name(gained.confidence)} {number(gained.low)} to "
    advantage += f"{number(gained.high)}), limit {limit:g}"
    settle = settled_by_records(situation, limit, gained.confidence, n_attacks)
    remedy = advice("membership", verdict, situation, settle=settle)
    if verdict is Verdict.PASSES:
        reason = f"{result.title} stays within the limit: advantage {advantage}"
    elif verdict is Verdict.CANNOT_TELL:
        reason = f"{result.title} may exceed the limit: advantage {advantage}"
        if shared is not None and shared.low > 0:
            remedy = FRESH_HOLDOUT
    elif result.advantage.value < 0:
        reason = (
            f"{result.title}, reversed, distinguishes members from non-members: advantage {advantage}. The attack "
            "calls fewer members than non-members “member”"
        )
        remedy = (
            "find the cause: either the model was changed to hide its members, which identifies them, or the holdout "
            "does not come from the distribution of the training set"
        )
    else:
        reason = f"{result.title} distinguishes members from non-members: advantage {advantage}"
    measure = f"membership advantage, {result.title}"
    return Finding("membership", measure, gained, 0.0, limit, verdict, reason + allowance(shared), remedy)


def tail_finding(attacks: Sequence[AttackResult], description: Description, dtp: float) -> Finding | None:
    """The largest tail odds of all attacks held against e to the limit on DTP; ``None`` where no tail can be looked at.

    If no answer of a model changes the odds of membership by more than e to the limit, tail odds above it come up with
    the probability that :func:`carry_out` states. Odds below it prove nothing; the finding passes, and says so.

    Args:
        attacks: what they achieved.
        description: of what was audited.
        dtp: limit on DTP in nats.
    """
    n_in, n_out = description.n_train, description.n_holdout
    if min(n_in, n_out) < SMALLEST_GROUP:
        return None
    limit = math.exp(min(dtp, LARGEST_LIMIT))
    tails = [(attack, attack.tail) for attack in attacks if attack.tail is not None]
    title, tail = max(
        ((attack.title, tail) for attack, tail in tails), key=lambda pair: pair[1].odds, default=("", None)
    )
    estimate = None
    if tail is not None:
        level = sum(each.level for _, each in tails)
        seen = math.inf if tail.n_members == tail.k else tail.n_members / (tail.k - tail.n_members) * n_out / n_in
        estimate = Estimate(
            max(seen, tail.odds), tail.odds, math.inf, 1 - level, "lower bound, Clopper-Pearson", n_in + n_out
        )
    if tail is not None and tail.odds > limit:
        which = "highest" if tail.upper else "lowest"
        return Finding(
            "membership", TAIL_MEASURE, estimate, 1.0, limit, Verdict.FAILS,
            f"{title} identifies a group of training records: {tail.n_members:,} of the {tail.k:,} records with the "
            f"{which} scores are training records. The odds of membership among them are at least {tail.odds:.3g} "
            f"times those among all records (limit {limit:.3g})" + allowance(description.overlap),
            "inspect the most exposed records, group rare values, or train with stronger regularisation",
        )  # fmt: skip
    if tail is None or len(tails) < len(attacks):
        return Finding(
            "membership", TAIL_MEASURE, estimate, 1.0, limit, Verdict.CANNOT_TELL,
            f"the result lacks the tail odds of some attack, so they cannot be compared with the limit of {limit:.3g}",
            "audit the model again with this version",
        )  # fmt: skip
    return Finding(
        "membership", TAIL_MEASURE, estimate, 1.0, limit, Verdict.PASSES,
        "among the records with the most extreme scores of an attack, the odds of membership were not shown to exceed "
        f"{limit:.3g} times those among all records. {_not_shown(tail, description, limit)}"
        f"{allowance(description.overlap)}",
        "",
    )  # fmt: skip


def _not_shown(tail: TailOdds, description: Description, limit: float) -> str:
    """What a tail below the limit does not say."""
    spent = 1 if description.overlap is None else 2  # half of the level is that of the share of shared records
    fewest = smallest_sure_tail(description.n_train, description.n_holdout, level=tail.level / spent, odds=limit)
    if fewest is None:
        return "With so few records this test cannot detect any identified group"
    single = "the largest change of a prediction" if description.answers == "values" else "PDTP"
    return (
        f"This test cannot detect fewer than about {fewest:,} records identified with certainty ({single} measures "
        "single records)"
    )


def _thin(inside: Floats, outside: Floats) -> Curve:
    """The ROC curve with points spread evenly over the ranks *and* over the orders of magnitude of the FPR.

    Points at the rates that a report quotes are kept, so that what is read there is that of the whole curve.
    """
    curve = roc(inside, outside)
    n = len(curve.fpr)
    if n > CURVE_POINTS:
        even = np.linspace(0, n - 1, CURVE_POINTS // 2)
        small = np.concatenate([np.geomspace(1 / len(outside), 1, CURVE_POINTS // 2), QUOTED_RATES])
        corners = np.searchsorted(curve.fpr, small, side="right") - 1
        keep = np.unique(np.concatenate([even, corners, [0, n - 1]]).astype(np.int64))
        return Curve(_rounded(curve.fpr[keep]), _rounded(curve.tpr[keep]))
    return Curve(_rounded(curve.fpr), _rounded(curve.tpr))


def _rounded(values: Floats) -> tuple[float, ...]:
    return tuple(round(float(v), 6) for v in values)
