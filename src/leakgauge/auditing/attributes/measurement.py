"""The attribute part of an audit: can a hidden column of a known person be inferred from the model?

What decides is the attribute advantage (Yeom et al. 2018, Definition 5) of the attacks that read the value off the
model. The reductions from membership say nothing about people who do not look like members, so that their advantage is
membership once more, which its own findings judge. Imputation does not ask the model at all: it is what the others are
held against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.attributes import (
    ATTACKS,
    AttributeSuccess,
    Inference,
    MembershipScores,
    Shadows,
    Subgroup,
    infer,
    without_lost_pairs,
)
from leakgauge.attributes.attacks import AttributeAttack
from leakgauge.auditing.advice import BY_ROW_ONLY
from leakgauge.auditing.attributes.hidden import AttributeQuestion, attribute_questions
from leakgauge.auditing.attributes.result import (
    AttributeAttackResult,
    AttributePart,
    ExposedValue,
    ExposedValues,
    InferredColumn,
)
from leakgauge.auditing.membership.games import LARGEST_POOL
from leakgauge.auditing.membership.measurement import FALSE_DISCOVERY_RATE
from leakgauge.auditing.naming import FEWEST_SHOWN, shown_names
from leakgauge.auditing.overlap import Overlap
from leakgauge.auditing.plan import attackers_job
from leakgauge.auditing.released import released_answers
from leakgauge.auditing.settings import Settings
from leakgauge.auditing.subject import Subject
from leakgauge.errors import ConfigError, ModelError
from leakgauge.escaping import shapes
from leakgauge.membership import ATTACKS as MEMBERSHIP_ATTACKS
from leakgauge.membership import MembershipEvidence
from leakgauge.models import AnswerKind, Model, answers, kind_of
from leakgauge.records import Records, concatenate
from leakgauge.statistics import bonferroni_confidence
from leakgauge.streams import AuditStream
from leakgauge.training import DenseSubsets, Execution, complementary_pairs, plan

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case

N_LISTED = 20
"""How many of the people whose value is given away a result lists."""

MEMBERSHIP = {
    AnswerKind.PROBABILITIES: "loss-threshold",
    AnswerKind.LABELS: "gap",
    AnswerKind.VALUES: "error-below-training-error",
}
"""The membership attack that the reductions ask: one that needs no models but the one that is asked."""

N_SHADOW_PAIRS = 2
"""Pairs of shadow models on complementary halves: one of each pair was not trained on a person."""


SHADOW_ATTACK = next(attack.name for attack in ATTACKS if attack.needs_shadows)

NO_SHADOWS = "models on halves of the records could not be trained, or not be asked with every value in place"

_BY_NAME = {attack.name: attack for attack in ATTACKS}


@dataclass(frozen=True, eq=False)
class Inferred:
    """A column that was inferred: its part of the result, and which members are exposed, bool ``[n_members]``.

    Where there are very many candidates, attacks are carried out on a part of them.
    """

    result: InferredColumn
    exposed: Flags
    is_part: bool

    __repr__ = shapes


def hidden_columns(what: Subject, settings: Settings) -> tuple[AttributeQuestion, ...]:
    """The columns to infer, checked before anything is trained.

    Raises:
        DataError: a column cannot be inferred, see :func:`attribute_questions`.
        ConfigError: a column is named twice, or that of the groups is not categorical.
    """
    schema = what.own_schema
    columns = settings.hidden(schema)
    by = settings.group_by
    if by is not None and not schema.columns[schema.index(by, "group_by")].is_categorical and columns:
        raise ConfigError(f"group_by: column {by!r} is numeric and has no groups; name a categorical one")
    return attribute_questions(what, columns)


def infer_columns(case: Case, hidden: Sequence[AttributeQuestion]) -> tuple[tuple[Inferred, ...], dict[str, str]]:
    """Attack every hidden column of the members and of the holdout.

    All intervals on advantages that are judged, of all attacks and columns, hold together at the rule's confidence; so
    do, at a quarter of what is left of it, the bounds on the tail odds of all columns (0.0125 at 0.95); and the false
    discovery rate is kept over the lists of all columns.

    Args:
        case: what is audited.
        hidden: the columns.

    Returns:
        The columns that were inferred, and for each of the others why the model could not be asked about it.
    """
    if not case.units.single:
        return (), {column.name: BY_ROW_ONLY for column in hidden}
    if not hidden:
        return (), {}
    what, settings, execution = case.what, case.settings, case.telling("sensitive attributes")
    overlap = None if case.overlap.share(settings.rule.confidence) is None else case.overlap
    tail_level = (1 - settings.rule.confidence) / (4 * len(hidden)) / (1 if overlap is None else 2)
    membership = _membership(case.model, what.train)
    each = bonferroni_confidence(settings.rule.confidence, len(hidden))
    found: list[Inferred] = []
    lost: dict[str, str] = {}
    covered = [column.covers(case.candidates.features) for column in hidden]
    played = [_played(one, len(what.train), settings.seed) for one in covered]
    answered = _shadows(what, hidden, played, settings, execution.quiet)
    for place, (column, held, rows, shadows) in enumerate(zip(hidden, covered, played, answered, strict=True)):
        execution.tell(place, len(hidden))
        n_queries = column.n_asked * (len(case.candidates) + case.n_population)
        if not case.affords(n_queries):
            lost[column.name] = f"this takes {n_queries:,} queries to the endpoint, more than max_queries leaves"
            continue
        own = _covered(what, case.population, column) if case.n_population > 1 else None
        attacker = own if own is not None and len(own) > 1 else None
        try:
            inference = infer(
                case.model,
                _covered(what, what.train, column),
                _covered(what, what.holdout, column),
                column.attribute,
                prior=column.prior,
                attacker=attacker,
                membership=membership,
                shadows=shadows,
                search=column.search,
                group_by=None if settings.group_by == column.name else settings.group_by,
                confidence=each,
                alone=settings.rule.confidence,
                q=FALSE_DISCOVERY_RATE / len(hidden),
                tail_level=tail_level,
                played=np.searchsorted(np.flatnonzero(held), rows),
                seed=settings.seed,
            )
        except ModelError as error:
            lost[column.name] = str(error)
            continue
        n_own = 0 if attacker is None else len(attacker)
        members = held[: len(what.train)]
        opaque = [name for name, is_held in zip(case.opaque, members, strict=False) if is_held]
        result = replace(_result(inference, n_own, opaque, settings.rule.confidence, overlap), scope=column.scope)
        if shadows is None and wants_shadows(hidden, settings, learner=what.learner is not None):
            result = replace(result, left_out={**result.left_out, SHADOW_ATTACK: NO_SHADOWS})
        exposed = np.zeros(len(members), dtype=bool)
        exposed[members] = inference.people.exposure.exposed
        found.append(Inferred(result, exposed, len(rows) < held.sum()))
    execution.tell(len(hidden), len(hidden))
    return tuple(found), lost


def _covered(what: Subject, records: Records, column: AttributeQuestion) -> Records:
    """The records that hold a value that is tried, under the schema of the user."""
    own = what.in_own_words(records)
    return own if column.every is None else own[column.covers(records.features)]


def wants_shadows(hidden: Sequence[AttributeQuestion], settings: Settings, *, learner: bool) -> bool:
    """Whether shadow models are to be trained that are asked about the hidden columns."""
    return learner and bool(hidden) and settings.n_shadows != 0


def shadow_halves(n_people: int, settings: Settings) -> DenseSubsets:
    """What they are trained on: halves of members and others together."""
    return complementary_pairs(n_people, N_SHADOW_PAIRS, AuditStream.ATTRIBUTE_HALVES.generator(settings.seed))


def _played(covered: Flags, n_members: int, seed: int) -> Indices:
    """The candidates that attacks are carried out on, of those that hold a value that is tried: of very many a part."""
    order = AuditStream.INFERRED.generator(seed).permutation(len(covered))
    order = order[covered[order]]
    is_member = order < n_members
    return np.sort(np.concatenate([order[side][: LARGEST_POOL // 2] for side in (is_member, ~is_member)]))


def _shadows(
    what: Subject,
    hidden: Sequence[AttributeQuestion],
    played: Sequence[Indices],
    settings: Settings,
    execution: Execution,
) -> list[Shadows | None]:
    """For each column what models on halves of members and others say about those attacks are carried out on.

    They are asked about each with every value in place.
    """
    nothing: list[Shadows | None] = [None] * len(hidden)
    if what.learner is None or not wants_shadows(hidden, settings, learner=True):
        return nothing
    people = concatenate(what.train, what.holdout)
    asked = [
        one.attribute.completed(people.features[held]).reshape(-1, people.schema.n_features)
        for one, held in zip(hidden, played, strict=True)
    ]
    try:
        job = attackers_job(what, settings, people, shadow_halves(len(people), settings), np.concatenate(asked))
        table = without_lost_pairs(plan(job).train(execution))
    except ModelError:  # no pair of halves that models could be trained on
        return nothing
    told = np.split(
        released_answers(table, settings.release).answers, np.cumsum([len(one) for one in asked])[:-1], axis=1
    )
    return [
        Shadows(
            answers.reshape(len(table), len(held), len(one.attribute), -1),
            table.members[:, held],
            one.attribute.codes(people.features[held]),
        )
        for one, held, answers in zip(hidden, played, told, strict=True)
    ]


def _membership(model: Model, train: Records) -> MembershipScores:
    """The membership attack that the reductions ask, with what is published of the model."""
    kind = kind_of(model)
    own = MembershipEvidence(kind, answers(model, train.features, len(train.schema.classes)), train.labels)
    loss = float(np.mean(own.losses)) if kind is AnswerKind.PROBABILITIES else None
    # Below a loss of 0 there is nothing: a model that fits exactly is told by what it gets right.
    name = MEMBERSHIP[AnswerKind.LABELS if loss == 0 else kind]
    attack = next(attack for attack in MEMBERSHIP_ATTACKS if attack.name == name)
    error = float(np.sqrt(np.mean(own.errors**2))) if kind is AnswerKind.VALUES else None

    def score(features: Floats, told: Floats, labels: NDArray[np.generic]) -> Floats:
        return attack.score(MembershipEvidence(kind, told, labels, training_loss=loss, sigma_in=error))

    return score


def _result(
    found: Inference, n_own: int, opaque: Sequence[str], confidence: float, overlap: Overlap | None
) -> InferredColumn:
    return InferredColumn(
        name=found.attribute.name,
        values=_names(found.attacks[0].by_value),
        prior=tuple(round(float(share), 9) for share in found.prior),
        ignored=found.ignored,
        n_members=found.n_members,
        n_others=found.n_others,
        n_own=n_own,
        confidence=confidence,
        best_guess_members=found.best_guess_members,
        best_guess_others=found.best_guess_others,
        advantage_without=found.advantage_without,
        attacks=tuple(_attack(success, overlap, ignored=found.ignored) for success in found.attacks),
        left_out=dict(found.left_out),
        exposed=_exposed(found, opaque),
        tail=found.tail if found.tail is None or overlap is None else overlap.corrected_tail(found.tail),
    )


def decides(attack: AttributeAttack, *, ignored: bool) -> bool:
    """Whether the release rule judges an attack: it reads the value off the model's answers.

    Where the model ignores the column, only attacks that use nothing but these answers say anything about the model.
    """
    return attack.reads and (attack.inverts or not ignored)


def _attack(success: AttributeSuccess, overlap: Overlap | None, *, ignored: bool) -> AttributeAttackResult:
    attack, alone = _BY_NAME[success.attack], success.advantage_alone
    return AttributeAttackResult(
        name=attack.name,
        title=attack.title,
        source=attack.source,
        decides=decides(attack, ignored=ignored),
        members=success.members,
        others=success.others,
        advantage=success.advantage if overlap is None else overlap.corrected(success.advantage),
        over_best_guess=success.over_best_guess,
        gain_members=success.gain_members,
        gain_others=success.gain_others,
        silent_members=success.silent_members,
        silent_others=success.silent_others,
        by_value=_shown(success.by_value),
        by_group=_shown(success.by_group),
        advantage_alone=alone if alone is None or overlap is None else overlap.corrected(alone),
    )


def _shown(parts: Sequence[Subgroup]) -> tuple[AttributePart, ...]:
    return tuple(
        AttributePart(name, part.n_members, part.n_others, part.members, part.others, part.advantage)
        if min(part.n_members, part.n_others) >= FEWEST_SHOWN
        else AttributePart(name, None, None, None, None, None)
        for name, part in zip(_names(parts), parts, strict=True)
    )


def _names(parts: Sequence[Subgroup]) -> tuple[str, ...]:
    return shown_names([part.name for part in parts], [part.n_members + part.n_others for part in parts])


def _exposed(found: Inference, opaque: Sequence[str]) -> ExposedValues:
    people, names = found.people, _names(found.attacks[0].by_value)
    n_members = len(people.ids)
    return ExposedValues(
        n=people.exposure.n_exposed,
        n_members=n_members,
        rate=people.exposure.q,
        # The smallest p-value is that of who stands above every holder of the same value in the holdout.
        fewest=int(np.ceil(n_members / (people.exposure.q * (people.n_alike + 1)))),
        people=tuple(
            ExposedValue(opaque[row], names[people.values[row]]) for row in people.exposure.records[:N_LISTED]
        ),
    )
