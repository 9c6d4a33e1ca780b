"""The membership part of an audit: every possible attack against the one model that is to be released."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from leakgauge.arrays import Flags, Floats
from leakgauge.auditing.drawn import RocCurve
from leakgauge.auditing.influence.change import FEWEST_ERRORS
from leakgauge.auditing.membership.games import Games, shared_quantile
from leakgauge.auditing.membership.result import (
    Association,
    AttackGames,
    ExposedRecords,
    MembershipAttackResult,
)
from leakgauge.auditing.membership.shadows import PerRecord
from leakgauge.auditing.overlap import Overlap
from leakgauge.auditing.settings import ReleaseRule
from leakgauge.influence import Pdtp
from leakgauge.membership import (
    MembershipAttack,
    MembershipEvidence,
    PopulationRecords,
    gradients,
    left_out_error,
)
from leakgauge.membership.error_law import SHUFFLED_FOLDS_FROM_RECORDS
from leakgauge.membership.own import require_repeatable
from leakgauge.models import AnswerKind
from leakgauge.records import Units
from leakgauge.statistics import (
    Dependence,
    Estimate,
    advantage_of_decisions,
    as_correlation,
    auc,
    bonferroni_confidence,
    census_advantage,
    census_mean_difference,
    exposed_records,
    mean_difference,
    outside_p_values,
    pearson,
    resolvable_fpr,
    roc,
    tail_odds,
    tpr_at_fpr,
)
from leakgauge.streams import AuditStream
from leakgauge.training import PredictionTable, plan

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case


FALSE_DISCOVERY_RATE = 0.05
"""Of the list of exposed records."""

SCATTER_POINTS = 400


LOW_RATES = (0.001, 0.01, 0.1)
"""False-positive rates at which true-positive rates are quoted."""

QUOTED_RATES = tuple(m * 10.0**k for k in range(-4, 0) for m in (1, 2, 5))
"""False-positive rates in the tables below the curves."""

CURVE_POINTS = 200


@dataclass(frozen=True)
class Attacked:
    """One attack carried out.

    Args:
        attack: which.
        scores: of the candidates, or persons, ``[n]``; higher means member, unless it points the other way.
        called: the probability with which each is called member ``[n]``: 0 or 1 but where a coin is tossed.
        points_down: whether members score lower: the whole interval on the AUC lies below 0.5, at a confidence that
            all attacks share. Of an audit of a model that leaks nothing that is so with a probability of at most half
            of what is left of the rule's confidence.
        result: what it amounts to.
    """

    attack: MembershipAttack
    scores: Floats
    called: Floats
    points_down: bool
    result: MembershipAttackResult

    @property
    def rising(self) -> Floats:
        """The scores, turned round where members score lower ``[n]``: higher means member."""
        return -self.scores if self.points_down else self.scores


def exposed(attacked: tuple[Attacked, ...], is_member: Flags) -> tuple[ExposedRecords | None, Flags]:
    """The members that stand out beyond chance: which of them ``[n]``, and what is claimed about them.

    A member that the model tells nothing about has a score like the holdout's, so the share of the holdout with at
    least its score is a p-value. They hang together through the holdout, but positively, so that Benjamini and
    Hochberg's procedure holds (Bates et al. 2023). Each attack gets its part of the rate, and so the longest of their
    lists keeps all of it. Where an attack points down, members stand out at the low end and are looked for there; that
    a model that leaks nothing is read the wrong way round adds at most half of what is left of the rule's confidence.
    """
    listed = np.zeros(len(is_member), dtype=bool)
    attacked = tuple(one for one in attacked if not one.attack.knows_members)
    if not attacked:
        return None, listed
    rate = FALSE_DISCOVERY_RATE / len(attacked)
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
    return ExposedRecords(name, longest.n_exposed, n_members, FALSE_DISCOVERY_RATE, fewest), listed


def carry_out(
    attacks: tuple[MembershipAttack, ...],
    evidence: MembershipEvidence,
    is_member: NDArray[np.bool_],
    rule: ReleaseRule,
    overlap: Overlap | None = None,
    *,
    games: Games | None = None,
    among: int = 0,
) -> tuple[Attacked, ...]:
    """Score all candidates with every attack; a person's score is the mean of those of her rows.

    Each interval on an advantage has the rule's confidence by itself; a second one, ``together``, holds for all
    attacks at once, and so do, at a quarter of what is left of the confidence, the bounds on the tail odds of all
    attacks (0.0125 at 0.95).

    Args:
        attacks: those to carry out.
        evidence: what the attacker holds.
        is_member: which candidates are members, bool ``[n]``.
        rule: whose confidence is divided among the attacks.
        overlap: holdout records that stand in the training set, which advantages and tail odds are corrected for.
        games: the same attacks against the shadow models.
        among: among how many at least; by default among those carried out.
    """
    n = max(1, len(attacks), among)
    if overlap is not None and overlap.share(rule.confidence) is None:
        overlap = None
    units = evidence.of_units
    is_member = units.agreed(is_member)
    scores = [attack.score(evidence) for attack in attacks]
    for attack, found in zip(attacks, scores, strict=True):
        require_repeatable(attack, found, partial(attack.score, evidence))

    def of_units(values: Floats) -> Floats:
        each = units.mean(values)
        return each if overlap is None or not overlap.beyond_chance else overlap.as_one(each)

    scores = [of_units(found) for found in scores]
    called = [
        (own > 0).astype(np.float64)
        if attack.member_probability is None
        else of_units(attack.member_probability(evidence))
        for attack, own in zip(attacks, scores, strict=True)
    ]
    # Half of what may go wrong is left to the games, where there are any.
    level = (1 - rule.confidence) / (4 if games is not None and games.played else 2)
    # Luck may point either way.
    each, luck = (
        2 * float(ndtr(shared_quantile(_sampled_together(called, is_member), one, n) if attacks else 0.0)) - 1
        for one in (level, level / 2)
    )
    levels = _Levels(
        rule.confidence, each, luck, 1 - 2 * level, bonferroni_confidence(rule.confidence, n),
        (1 - rule.confidence) / (4 * max(1, n - sum(attack.knows_members for attack in attacks))),
    )  # fmt: skip
    played = {} if games is None else games.results(rule.confidence, overlap, among=n)
    return tuple(
        _carried_out(attack, own, says, evidence, is_member, levels, overlap, played.get(attack.name))
        for attack, own, says in zip(attacks, scores, called, strict=True)
    )


def _sampled_together(called: Sequence[Floats], is_member: Flags) -> Floats:
    """How the false-positive rates of attacks hang together, each counted the way it points ``[m, m]``."""
    signs = [-1.0 if says[is_member].mean() < says[~is_member].mean() else 1.0 for says in called]
    outside = np.stack([sign * says[~is_member] for sign, says in zip(signs, called, strict=True)])
    if outside.shape[1] < 2:
        return np.eye(len(called))
    return as_correlation(np.atleast_2d(np.cov(outside)))


def strongest(attacked: tuple[Attacked, ...]) -> Attacked | None:
    """The attack whose AUC is known to be furthest from 0.5; used for ranking records, never quoted as a rate."""
    of_outsiders = (one for one in attacked if not one.attack.knows_members)
    return max(of_outsiders, key=lambda one: (_off(one.result.auc).low, _off(one.result.auc).value), default=None)


def _off(area: Estimate) -> Estimate:
    """How far an AUC is from 0.5, in either direction."""
    return replace(area, value=area.value - 0.5, low=area.low - 0.5, high=area.high - 0.5).magnitude


def association(pdtp: Pdtp | None, success: PerRecord | None, copies: Units) -> Association | None:
    """PDTP with binned probabilities against the success of an attack; ``None`` where either is unknown or constant.

    Copies of one record count once.
    """
    if pdtp is None or success is None:
        return None
    x, y = pdtp.binned, success.accuracy[pdtp.which]
    known = np.isfinite(x) & np.isfinite(y) & np.isin(pdtp.which, copies.first)
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


@dataclass(frozen=True)
class _Levels:
    """How sure the statements about one attack are.

    Args:
        alone: confidence of its advantage by itself.
        each: confidence of an interval of which those of all attacks hold together.
        luck: confidence of an interval without 0, of all attacks together, where it is not known which way they point.
        together: with what confidence they do.
        direction: confidence with which it is said which way the scores point.
        tail: probability of an error in its tail odds.
    """

    alone: float
    each: float
    luck: float
    together: float
    direction: float
    tail: float


def _carried_out(
    attack: MembershipAttack,
    scores: Floats,
    called: Floats,
    evidence: MembershipEvidence,
    is_member: NDArray[np.bool_],
    levels: _Levels,
    overlap: Overlap | None,
    games: AttackGames | None,
) -> Attacked:
    once = evidence.first_copies
    counted = is_member & once, ~is_member & once
    inside, outside = (scores[one] for one in counted)

    said, others = (called[one] for one in counted)

    advantage = of_members(attack, said, others, levels.alone)
    together = of_either_draw(attack, said, others, levels.each, luck=levels.luck, exact=True)
    if overlap is not None:
        advantage, together = overlap.corrected(advantage), overlap.corrected(together)
    low_fpr = next((rate for rate in LOW_RATES if rate >= resolvable_fpr(len(outside))), LOW_RATES[-1])
    rng = AuditStream.MEMBERSHIP_TAIL.generator(evidence.seed)
    level = levels.tail if overlap is None else levels.tail / 2
    tail = None if attack.knows_members else tail_odds(inside, outside, level=level, rng=rng)
    if tail is not None and overlap is not None:
        tail = overlap.corrected_tail(tail)
    result = MembershipAttackResult(
        name=attack.name,
        title=attack.title,
        source=attack.source,
        advantage=advantage,
        together=replace(together, confidence=levels.together),
        games=games,
        auc=auc(inside, outside, confidence=levels.alone),
        tpr_at_low_fpr=tpr_at_fpr(inside, outside, low_fpr, confidence=levels.alone),
        low_fpr=low_fpr,
        roc=_thin(inside, outside),
        tail=tail,
    )
    points_down = auc(inside, outside, confidence=levels.direction).high < 0.5
    return Attacked(attack, scores, called, points_down, result)


def of_members(
    attack: MembershipAttack, said: Floats, others: Floats, confidence: float, *, exact: bool = False
) -> Estimate:
    """The advantage of one model about its own members, the census of whom they are.

    Args:
        attack: whose answers.
        said: what it said of each member, "member" or the probability of saying so ``[n_members]``,
        others: and of each other ``[n_others]``.
        confidence: of the interval.
        exact: whether its ends err no more often than they say, which makes them wider.
    """
    if attack.knows_members:
        return _as_from_half(_of_samples(attack, said, others, confidence))
    if attack.member_probability is None:
        return census_advantage(said > 0, others > 0, confidence=confidence, exact=exact)
    return census_mean_difference(said, others, confidence=confidence)


def of_either_draw(
    attack: MembershipAttack,
    said: Floats,
    others: Floats,
    confidence: float,
    *,
    luck: float | None = None,
    exact: bool = False,
) -> Estimate:
    """:func:`of_members`, and two samples' interval besides where the luck of their draw may explain all of it.

    The members are all there are. But of 40, drawn at random, a function that was trained on nothing may call a quarter
    more than of others; that is no leak, and no failure, unless it would be seen for others drawn in their place.
    """
    census = of_members(attack, said, others, confidence, exact=exact)
    drawn = _of_samples(attack, said, others, confidence if luck is None else luck)
    if attack.knows_members or not drawn.low <= 0 <= drawn.high:
        return census
    return replace(census, low=min(census.low, drawn.low), high=max(census.high, drawn.high))


def _of_samples(attack: MembershipAttack, said: Floats, others: Floats, confidence: float) -> Estimate:
    """The same, its members a sample as the holdout is."""
    if attack.member_probability is None:
        return advantage_of_decisions(said > 0, others > 0, confidence=confidence)
    return mean_difference(said, others, confidence=confidence)


def _as_from_half(advantage: Estimate) -> Estimate:
    """An advantage whose two folds give nearly the same number: its interval is that of half as many records."""
    low = advantage.value - math.sqrt(2) * (advantage.value - advantage.low)
    high = advantage.value + math.sqrt(2) * (advantage.high - advantage.value)
    return replace(advantage, low=max(-1.0, low), high=min(1.0, high), method=f"{advantage.method}, two folds")


def _thin(inside: Floats, outside: Floats) -> RocCurve:
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
        return RocCurve(_rounded(curve.fpr[keep]), _rounded(curve.tpr[keep]))
    return RocCurve(_rounded(curve.fpr), _rounded(curve.tpr))


def _rounded(values: Floats) -> tuple[float, ...]:
    return tuple(round(float(v), 6) for v in values)


def usual_error(case: Case, table: PredictionTable | None, errors: Floats | None) -> tuple[float, str] | None:
    """How far a regressor usually errs on records it was not trained on, and where that is from.

    No model is trained for it. By models without each record where they have a closed form or were trained for their
    influence; else by the shadow models that were trained without a record; else by the holdout.

    Args:
        case: what is audited.
        table: answers of the shadow models about the candidates.
        errors: of models without a record about that record, where there are any ``[m]``.
    """
    if case.kind is not AnswerKind.VALUES:
        return None
    n = len(case.what.train)
    if errors is not None and len(errors) == n and np.isfinite(errors).all():
        return float(np.sqrt(np.mean(errors**2))), "all models without one record"
    if (
        case.what.learner is not None
        and n <= SHUFFLED_FOLDS_FROM_RECORDS
        and not plan(case.leaving_out(np.arange(len(case.what.train.units)))).engine.trains
    ):
        error = left_out_error(case.learner, case.what.train, seed=case.settings.seed, execution=case.execution)
        return error, "all models without one record"
    if errors is not None and np.isfinite(errors).sum() >= FEWEST_ERRORS:
        known = errors[np.isfinite(errors)]
        return float(np.sqrt(np.mean(known**2))), f"models without one of {len(known):,} records"
    if table is not None:
        known = (table.values - case.candidates.labels)[~table.members]
        known = known[np.isfinite(known)]
        if len(known):
            return float(np.sqrt(np.mean(known**2))), "shadow models, for records that they were not trained on"
    outside = (case.candidates.labels - case.answers[:, 0])[~case.is_member]
    return float(np.sqrt(np.mean(outside**2))), "the holdout"


def gather(
    case: Case,
    table: PredictionTable | None,
    usual: tuple[float, str] | None,
    attacks: Sequence[MembershipAttack],
) -> MembershipEvidence:
    """What the attacker holds.

    Args:
        case: what is audited.
        table: answers of the shadow models about the candidates.
        usual: how far a regressor usually errs on other records, and where that is from.
        attacks: that are to be carried out.
    """
    settings, known, told = case.settings, case.population, case.learned(case.population_behind)
    evidence = MembershipEvidence(
        case.kind,
        case.learned(case.behind),
        case.candidates.labels,
        shadows=table,
        width=settings.bin_width,
        seed=settings.seed,
        features=case.candidates.features,
        population=PopulationRecords(told, known.labels, known.features) if len(known) else None,
        steadiness=case.steadiness,
        members=case.is_member,
        units=case.units,
        copies=case.overlap.copies,
        alike=case.overlap.alike,
        beside=case.beside,
        columns=case.columns,
        models_without=None if table is None else case.models_without,
        known_steps=case.known_steps if gradients.ATTACK in attacks else None,
    )
    if case.kind is AnswerKind.PROBABILITIES:
        return replace(evidence, training_loss=float(np.mean(evidence.losses[case.is_member])))
    if usual is not None:
        own = float(np.sqrt(np.mean(evidence.errors[case.is_member] ** 2)))
        return replace(evidence, sigma_in=own, sigma_out=usual[0])
    return evidence
