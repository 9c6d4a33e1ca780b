"""The membership part of an audit: every possible attack against the one model that is to be released."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from leakgauge.arrays import Flags, Floats
from leakgauge.auditing.drawn import RocCurve
from leakgauge.auditing.influence.change import FEWEST_ERRORS
from leakgauge.auditing.membership.changed import AskedBeside, SomeScores
from leakgauge.auditing.membership.games import Games, shared_quantile
from leakgauge.auditing.membership.result import (
    Association,
    AttackGames,
    ExposedRecords,
    MembershipAttackResult,
)
from leakgauge.auditing.membership.stored import STORED, stored
from leakgauge.auditing.overlap import Overlap
from leakgauge.auditing.released import released_answers
from leakgauge.auditing.settings import ReleaseRule, Settings
from leakgauge.auditing.subject import possible_settings
from leakgauge.errors import DataError, ModelError
from leakgauge.influence import Pdtp
from leakgauge.membership import (
    ATTACKS,
    AUDITOR_ATTACKS,
    LinearColumns,
    MembershipAttack,
    MembershipEvidence,
    PopulationRecords,
    everyone_as_target,
    left_out_error,
    likelihood_ratio,
    noise_robustness,
    strongest_per_record,
)
from leakgauge.membership.error_law import SHUFFLED_FOLDS_FROM_RECORDS
from leakgauge.membership.own import EVERYTHING, require_repeatable
from leakgauge.models import AnswerKind, LabelAccess, Model, answers
from leakgauge.models.endpoints import RemoteModel
from leakgauge.records import OneHotCodes, Records, Units
from leakgauge.records.columns import FLOATS, INTEGERS
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
from leakgauge.training import Job, PredictionTable, plan
from leakgauge.training.engines import STOPPING
from leakgauge.training.learners import trained

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case


FALSE_DISCOVERY_RATE = 0.05
"""Of the list of exposed records."""


FEWEST_TO_CHOOSE = 16
"""Fewer shadow models are too few to choose an attack for each record on some and judge it on others."""

FEWEST_TO_LEARN = 20
"""Members, and others, from which the auditor's attack learns anything: ten in each half."""

SMALLEST_SHADOW_SHARE = 0.5
"""Share of the shadow models that must be left where others failed: with fewer, attacks are weaker than was asked."""

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
    kind: AnswerKind,
    selected: tuple[str | MembershipAttack, ...] | None,
    *,
    shadows: bool,
    population: bool = False,
    copies: bool = True,
    models_without: bool = False,
) -> tuple[MembershipAttack, ...]:
    """The attacks that can be carried out, of those selected; without ``copies`` the model takes no further queries.

    By default all but those that need known non-members where there are shadow models, which tell an attacker more.
    Those of the user's come last.
    """
    everything, names = selected is None or EVERYTHING in selected, selected or ()
    ours = [
        attack
        for attack in ATTACKS + AUDITOR_ATTACKS
        if attack.name in names or (everything and not (shadows and attack.needs_population))
    ]
    own = [one for one in names if isinstance(one, MembershipAttack)]
    held = {"shadows": shadows, "population": population, "copies": copies, "models_without": models_without}
    return tuple(one for one in (*ours, *own) if one.possible(kind, **held))


def learns(case: Case) -> bool:
    """Whether there are enough records for the auditor's attack."""
    kinds, known = case.overlap.alike.of_row, case.member_units
    return min(len(np.unique(kinds[one])) for one in (known, ~known)) >= FEWEST_TO_LEARN


def left_out(case: Case, carried_out: Sequence[str], *, shadows_possible: bool) -> tuple[str, ...]:
    """Names of the attacks that would be carried out without a selection, and were not.

    To train no shadow models, to set no known non-members aside, or to allow an endpoint too few queries is a selection
    of attacks as well.

    Args:
        case: what is audited.
        carried_out: names of the attacks that were.
        shadows_possible: whether shadow models could be trained, or were not tried.
    """
    given = case.given
    without = replace(case.settings, attacks=None, n_shadows=case.settings.n_shadows or None, population=None)
    settings = possible_settings(given, without)
    learner = given.learner is not None or given.shadows is not None
    n_aside = n_set_aside(case.kind, settings, len(given.holdout.units), learner=learner, attributes=False)
    by_default = possible_attacks(
        case.kind,
        settings.attacks,
        shadows=wants_shadows(case.kind, settings, learner=learner) and shadows_possible,
        population=n_aside > 0,
        copies=True,
        models_without=shadows_possible and case.without_each is not None,
    )
    return tuple(
        one.name for one in by_default if one.name not in carried_out and (not one.knows_members or learns(case))
    )


def wants_copies(kind: AnswerKind, settings: Settings) -> bool:
    """Whether the model is to be asked about changed copies of the candidates."""
    return any(attack.needs_copies for attack in possible_attacks(kind, settings.attacks, shadows=False))


def wants_models_without(kind: AnswerKind, settings: Settings) -> bool:
    """Whether models of all candidates but one each are to be had, where an engine solves for them."""
    possible = possible_attacks(kind, settings.attacks, shadows=True, models_without=True)
    return any(attack.needs_models_without for attack in possible)


def steadiness(model: Model, candidates: Records, settings: Settings) -> Floats:
    """How often the model keeps a candidate's class while the record is changed a little ``[n]``.

    Columns of two values are redrawn like categories: noise would leave them neither; so are one-hot groups.
    """
    assert isinstance(model, LabelAccess)  # only such answers classes
    codes = OneHotCodes.of(candidates.schema)
    features = codes.collapse(candidates.features)
    two_values = np.array([len(np.unique(column)) <= 2 for column in features.T], dtype=bool)
    return noise_robustness.steadiness(
        model,
        features,
        candidates.labels,
        features,
        (codes.n_categories > 0) | two_values,
        seed=settings.seed,
        queries_of=codes.expand,
    )


HARDLY = (1e-3, 1e-6)
"""Standard deviations of a number by which a record is hardly changed."""

LITTLE = 0.1
"""The same by which it is changed a little, either way."""

FEW_MISSING = 4
"""Columns at most of which a number is left out, each by itself, where a model keeps values of training records."""

MOST_CHANGED = 50_000_000
"""Numbers of records that are held changed."""


def unseen_categories(everyone: Records, n_train: int) -> dict[int, float]:
    """Columns of categories of which the holdout has one that no training record has, and one such category of each.

    The first few of them; texts that hardly any record shares are no categories. A model knows nothing of such a
    category: whoever has one it answers as it would without.
    """
    found, counts = dict[int, float](), everyone.schema.n_categories
    for place, column in enumerate(everyone.schema.columns):
        if column.is_categorical and counts[place] <= len(everyone) / 2 and len(found) < FEW_MISSING:
            values = everyone.features[:, place]
            unseen = np.setdiff1d(values[n_train:], values[:n_train])
            if len(unseen):
                found[place] = float(unseen[0])
    return found


def asks_nearby(model: Model, everyone: Records, kind: AnswerKind) -> bool:
    """Whether it is asked about records that are hardly changed, see :func:`nearby`."""
    keeps = model.may_remember or model.keeps_values
    return keeps and may_ask_changed(model, everyone, kind) and bool(_numeric(everyone).any())


def may_ask_changed(model: Model, everyone: Records, kind: AnswerKind) -> bool:
    """Whether it can be asked about changed records."""
    return (
        kind is not AnswerKind.LABELS
        and not isinstance(model, RemoteModel)
        and not everyone.schema.array.sparse
        and not everyone.schema.one_hot
        and everyone.features.size <= MOST_CHANGED
    )


def nearby(
    model: Model, everyone: Records, n_train: int, kind: AnswerKind, told: Floats, rng: np.random.Generator
) -> tuple[list[Floats], bool]:
    """How what is said of each record differs from what is said of changed ones ``[n]``, in some ways, code willing.

    Of probabilities by the logits of the record's own class, of values by these. An answer for a member alone, kept in
    a table, or off the rest by more than a smooth function changes, is told by it: from a record that is hardly
    changed, and by how far it is from the middle of two that are changed a little in opposite directions, which is
    little for what is nearly linear. Numbers alone are changed, whole ones to whole ones. Known code answers alike, but
    for what keeps values of training records: there answers bend, which shows in two opposite changes that are small,
    or a record is its own nearest neighbour, which shows where a number of it is missing. Queries to an endpoint cost;
    and answers that are labels are asked about in their own way.

    Args:
        model: what is asked.
        everyone: members and others.
        n_train: members, who come first.
        kind: of its answers.
        told: what it answered about them.
        rng: draws the changes, and in which order it is asked.

    Returns:
        The differences, and whether it answered about all changes.
    """
    features = everyone.features.astype(np.float64)
    unseen = unseen_categories(everyone, n_train) if may_ask_changed(model, everyone, kind) else {}

    def signal(answered: Floats) -> Floats:
        if kind is AnswerKind.VALUES:
            return answered[:, 0]
        return likelihood_ratio.confidences(answered, everyone.labels)

    def asked(changed: Floats) -> Floats:
        order = rng.permutation(len(changed))
        queries = changed[order].astype(everyone.features.dtype)
        return signal(answers(model, queries, len(everyone.schema.classes))[np.argsort(order)])

    own, found = signal(told), list[Floats]()
    if not asks_nearby(model, everyone, kind):
        return list(_without_category(features, unseen, own, asked)), False
    columns = np.flatnonzero(_numeric(everyone))
    held = features[:, columns]
    whole = np.array([everyone.schema.columns[place].dtype in INTEGERS for place in columns])
    signs = np.where(rng.random(held.shape) < 0.5, -1.0, 1.0)
    spread, low, high = np.nanstd(held, axis=0), np.nanmin(held, axis=0), np.nanmax(held, axis=0)
    steps = np.maximum(LITTLE * spread, [_smallest_step(column) for column in held.T])
    steps = np.where(whole, np.round(steps), steps)

    def of(changes: Floats) -> Floats:
        changed = features.copy()
        changed[:, columns] = np.clip(held + changes, low, high)
        return asked(changed)

    hardly = [] if whole.all() else [(size * spread * ~whole * signs,) for size in HARDLY]
    every = [*hardly, (steps * signs, -steps * signs)]
    n_all = len(every)
    if model.keeps_values:
        every += [(change, -change) for (change,) in hardly]
        missing = np.flatnonzero(~whole)[:FEW_MISSING]
        every += [(np.where(np.arange(len(columns)) == one, np.nan, 0.0),) for one in missing]
    answered = 0
    for place, changes in enumerate(every):
        with suppress(ModelError, DataError):  # of the records themselves it has answered
            found.append(len(changes) * own - sum(of(one) for one in changes))
            answered += place < n_all
    return [*found, *_without_category(features, unseen, own, asked)], answered == n_all


def _without_category(
    features: Floats, unseen: Mapping[int, float], own: Floats, asked: Callable[[Floats], Floats]
) -> Iterator[Floats]:
    """How answers differ from those about the same records with a category that no training record has ``[n]``."""
    for place, category in unseen.items():
        changed = features.copy()
        changed[:, place] = category
        with suppress(ModelError, DataError):
            yield own - asked(changed)


def _numeric(records: Records) -> Flags:
    """Which columns hold numbers of which there are more than two ``[d]``."""
    kinds = [column.dtype in FLOATS | INTEGERS and not column.is_categorical for column in records.schema.columns]
    n_values = [len(np.unique(column[~np.isnan(column)])) for column in records.features.T]
    return np.array(kinds) & (np.array(n_values) > 2)


def _smallest_step(column: Floats) -> float:
    """The smallest distance of two of its values."""
    steps = np.diff(np.unique(column[~np.isnan(column)]))
    return float(steps.min()) if len(steps) else 0.0


def n_set_aside(kind: AnswerKind, settings: Settings, n_holdout: int, *, learner: bool, attributes: bool) -> int:
    """How many holdout records the attacker is given as known to be outside; none where no attack could use them."""
    if not attributes and not any(attack.needs_population and kind in attack.kinds for attack in ATTACKS):
        return 0
    shadows = learner and settings.n_shadows != 0
    return min(n_holdout - 1, settings.n_population(n_holdout, shadows=shadows, attributes=attributes))


def wants_shadows(kind: AnswerKind, settings: Settings, *, learner: bool) -> bool:
    """Whether shadow models are to be trained."""
    possible = possible_attacks(kind, settings.attacks, shadows=True, population=True, models_without=True)
    return learner and settings.n_shadows != 0 and any(attack.needs_shadows for attack in possible)


def per_record(
    table: PredictionTable, labels: NDArray[np.generic], *, width: float, units: Units | None = None
) -> PerRecord | None:
    """How often attacks are right about each candidate, from the shadow models alone.

    With enough models the best attack is chosen for each record, on other games than those it is judged by. With few
    it is the distance-based attack for classes, and the likelihood ratio for numbers.

    Args:
        table: answers of the shadow models about the candidates.
        labels: of the candidates ``[n]``.
        width: bin width.
        units: whose candidate each is; by default each is by itself.

    Returns:
        ``None`` where there are too few models to play with, or some failed: which ones may hang on who was in their
        training sets, and then guessing is not right in half of the games any more.
    """
    able = [one for one in ATTACKS if one.together is not None and one.possible(table.kind, shadows=True)]
    if table.failures:
        return None
    if len(able) > 1 and len(table) >= FEWEST_TO_CHOOSE and _covered_in_halves(table.members):
        best = strongest_per_record(table, labels, able, width=width, units=units)
        return PerRecord("best of " + ", ".join(best.attacks), best.accuracy)
    one = next((one for one in able if one.name in ("distance", "lira")), None)
    if one is None or not _covered(table.members):
        return None
    return PerRecord(one.name, everyone_as_target(table, labels, one, width=width, units=units).accuracy)


def why_no_shadows(table: PredictionTable) -> str:
    """Why attacks with shadow models cannot be judged, although some were trained; empty where they can.

    A model counts as failed if it could not be trained or did not answer about every candidate. Failures depend on the
    shadow models' own training sets and not on the target's, so that they favour neither members nor non-members. But
    where every model trained without a record fails, nothing is known about that record.
    """
    lost = table.failures
    usable = np.delete(table.members, list(lost), axis=0)
    if not lost or (len(usable) >= SMALLEST_SHADOW_SHARE * len(table) and _covered(usable)):
        return ""
    counts = Counter(lost.values()).most_common(1)[0]
    others = "" if counts[1] == len(lost) else f", and {len(lost) - counts[1]} for other reasons"
    few = len(usable) < SMALLEST_SHADOW_SHARE * len(table)
    rest = "too few are left" if few else "some records are in the training sets of all that are left, or of none"
    return (
        f"{len(lost)} of {len(table)} shadow models could not be trained or could not predict all records "
        f"({counts[0]}{others}); {rest}"
    )


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


def _covered(members: Flags) -> bool:
    """Whether each record is in two training sets and out of two."""
    n_in = members.sum(axis=0)
    return len(members) >= 4 and bool((np.minimum(n_in, len(members) - n_in) >= 2).all())


def _covered_in_halves(members: Flags) -> bool:
    middle = len(members) // 4 * 2
    return _covered(members[:middle]) and _covered(members[middle:])


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


class ShadowModels(NamedTuple):
    """What they answer about the candidates.

    Args:
        table: of answers, or ``None``.
        why_not: why there are none; empty where there are some, or none are wanted.
        changed: scores by how much outputs move where candidates are changed, by the name of the change.
        refused: kinds of changes about which models do not answer, by name.
        failed: those of them about which the model of all training records answers: they were to be looked at.
    """

    table: PredictionTable | None
    why_not: str = ""
    changed: Mapping[str, SomeScores] = MappingProxyType({})
    refused: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def train_shadows(case: Case) -> ShadowModels:
    """Models of the same algorithm on random sets of candidates as large as the training set, or why there are none."""
    settings = case.settings
    if not case.shadows:
        return ShadowModels(None)
    if case.what.shadows is not None:
        return ShadowModels(released_answers(case.what.shadows.about(case.judged), settings.release))
    asked, refused, failed = case.asked_beside, set[str](), set[str]()
    table = _trained_shadows(case, case.shadow_job)
    for fewer, lost in ((_answered, refused), (_nothing_beside, failed)):
        if not asked.records or not (isinstance(table, str) or table.failures):
            break
        left = fewer(case, asked)
        if left.records == asked.records:  # each by itself: of as many queries some may be others
            continue
        before, names = table, asked.names
        table, asked = _trained_shadows(case, case.shadow_job_of(case.n_shadows, left)), left
        if lost is refused or _n_failed(table, case) < _n_failed(before, case):
            lost |= names - left.names
    if isinstance(table, str):
        return ShadowModels(None, table)
    n = len(case.candidates)
    changed = settings.release(table.answers[:, n:])
    # Of the candidates in their own order.
    table = replace(table, answers=table.answers[:, :n], subsets=case.shadow_sets)
    why_not = why_no_shadows(table)
    if why_not:
        return ShadowModels(None, why_not)
    table, scores = released_answers(table, settings.release), dict[str, SomeScores]()
    if changed.shape[1] and not table.failures:
        scores = asked.scores(table.kind, table.answers, changed, case.candidates.labels)
    try:
        found = None if table.failures else stored(case)
    except ModelError:
        found, failed = None, failed | {STORED}
    if found is not None:
        scores[STORED] = found
    return ShadowModels(table, "", scores, tuple(sorted(refused | failed)), tuple(sorted(failed)))


def _answered(case: Case, asked: AskedBeside) -> AskedBeside:
    """Without the changes about which a model of the learner does not answer: neither would the audited one."""
    train = case.what.train
    try:
        model = trained(case.learner, Records(train.features, train.labels, asked.schema, train.ids), seed=0).model
    except (DataError, ModelError):  # which says nothing of what it would answer
        return asked
    features = case.candidates.features
    return asked.answered(features, lambda queries: answers(model, queries, len(train.schema.classes)))


def _nothing_beside(case: Case, asked: AskedBeside) -> AskedBeside:
    return AskedBeside((), case.candidates.schema)


def _n_failed(table: PredictionTable | str, case: Case) -> int:
    return case.n_shadows if isinstance(table, str) else len(table.failures)


def _trained_shadows(case: Case, job: Job) -> PredictionTable | str:
    """Answers of shadow models, or why there are none."""
    try:
        # The attacker's models are trained as the target was, even where that does not come to the end of its solver.
        planned = plan(job)
        if planned.engine.converges and not case.own.converged:
            planned = plan(job, engines=STOPPING)
        return planned.train(case.telling("shadow models"))
    except ModelError as error:
        return f"none of {len(job.subsets)} shadow models could be trained and predict all records ({error})"


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


def _linear_columns(case: Case) -> LinearColumns:
    """What a linear model reads of the candidates: their columns, or more that the steps of a pipeline make of these.

    No more are scaled columns, or the categories of a column: such a model has the same numbers as a function.
    """
    candidates, counts, read = case.candidates, case.candidates.schema.n_categories, None
    with suppress(ModelError):  # of the records themselves it has answered
        read = None if case.what.model is None else case.what.model.last_columns(candidates.features)
    of_text = counts > len(candidates) / 2
    if read is None or read.shape[1] <= np.maximum(counts, 1)[~of_text].sum():
        return LinearColumns(candidates.features, counts)
    return LinearColumns.numbers(read)


def gather(case: Case, table: PredictionTable | None, usual: tuple[float, str] | None) -> MembershipEvidence:
    """What the attacker holds.

    Args:
        case: what is audited.
        table: answers of the shadow models about the candidates.
        usual: how far a regressor usually errs on other records, and where that is from.
    """
    settings, known = case.settings, case.population
    evidence = MembershipEvidence(
        case.kind,
        case.answers,
        case.candidates.labels,
        shadows=table,
        width=settings.bin_width,
        seed=settings.seed,
        features=case.candidates.features,
        population=PopulationRecords(case.population_answers, known.labels, known.features) if len(known) else None,
        steadiness=steadiness(case.model, case.candidates, settings) if case.asks_copies else None,
        members=case.is_member,
        units=case.units,
        copies=case.overlap.copies,
        alike=case.overlap.alike,
        beside=case.beside,
        columns=_linear_columns(case),
        models_without=None if table is None else case.models_without,
    )
    if case.kind is AnswerKind.PROBABILITIES:
        return replace(evidence, training_loss=float(np.mean(evidence.losses[case.is_member])))
    if usual is not None:
        own = float(np.sqrt(np.mean(evidence.errors[case.is_member] ** 2)))
        return replace(evidence, sigma_in=own, sigma_out=usual[0])
    return evidence
