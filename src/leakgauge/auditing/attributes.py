"""The attribute part of an audit: can a hidden column of a known person be inferred from the model?

What decides is the attribute advantage (Yeom et al. 2018, Definition 5) of the attacks that read the value off the
model. The reductions from membership say nothing about people who do not look like members, so that their advantage is
membership once more, which its own findings judge. Imputation does not ask the model at all: it is what the others are
held against.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats
from leakgauge.attributes import (
    ATTACKS,
    N_TAIL_SCORES,
    Attribute,
    Inference,
    MembershipScores,
    Part,
    Shadows,
    Success,
    infer,
    single,
    without_lost_pairs,
)
from leakgauge.attributes.guesses import checked_prior
from leakgauge.auditing.advice import UNKNOWN_OUTPUTS, Situation, advice, settled_by_records
from leakgauge.auditing.finding import Finding, Verdict, judge
from leakgauge.auditing.membership import FALSE_DISCOVERY_RATE
from leakgauge.auditing.naming import FEWEST_SHOWN, shown_names
from leakgauge.auditing.overlap import Overlap
from leakgauge.auditing.released import released_answers
from leakgauge.auditing.result import AttributeAttack, AttributePart, ExposedValue, ExposedValues, InferredColumn
from leakgauge.auditing.settings import HiddenColumn, Settings
from leakgauge.auditing.subject import Subject
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.escaping import shapes
from leakgauge.membership import ATTACKS as MEMBERSHIP_ATTACKS
from leakgauge.membership import Evidence
from leakgauge.models import AnswerKind, Model, answers, kind_of
from leakgauge.records import Records, Schema, concatenate
from leakgauge.statistics import SMALLEST_GROUP, Estimate, TailOdds, bonferroni_confidence, smallest_sure_tail
from leakgauge.statistics.numerals import interval_name, number
from leakgauge.streams import AuditStream
from leakgauge.training import HERE, DenseSubsets, Execution, complementary_pairs, train_many

N_LISTED = 20
"""How many of the people whose value is given away a result lists."""

MEMBERSHIP = {
    AnswerKind.PROBABILITIES: "loss-threshold",
    AnswerKind.LABELS: "gap",
    AnswerKind.VALUES: "error-below-training-error",
}
"""The membership attack that the reductions ask: one that needs no models but the one that is asked."""

N_PAIRS = 2
"""Pairs of shadow models on complementary halves: one of each pair was not trained on a person."""

SHADOW_ATTACK = next(attack.name for attack in ATTACKS if attack.needs_shadows)

NO_SHADOWS = "models on halves of the records could not be trained, or not be asked with every value in place"

TAIL_MEASURE = "tail odds at the sensitive attributes"

ALIKE = "give a holdout drawn from the same population as the training set"

LARGEST_LIMIT_NATS = 700.0
"""Larger limits on DTP have no power of e."""

_BY_NAME = {attack.name: attack for attack in ATTACKS}


@dataclass(frozen=True, eq=False)
class Hidden:
    """A column to infer, made ready: its values, and how frequent they are if the user said so."""

    attribute: Attribute
    prior: tuple[float, ...] | None

    @property
    def name(self) -> str:
        """Of the column."""
        return self.attribute.name


@dataclass(frozen=True, eq=False)
class Inferred:
    """A column that was inferred: its part of the result, and which members are exposed, bool ``[n_members]``."""

    result: InferredColumn
    exposed: Flags

    __repr__ = shapes


def hidden_columns(what: Subject, settings: Settings) -> tuple[Hidden, ...]:
    """The columns to infer, checked before anything is trained.

    Raises:
        DataError: there is no such column, it is numeric and has no bins, or its prior is none.
        ConfigError: a column is named twice, or that of the groups is not categorical.
    """
    schema = what.own_schema
    columns = settings.hidden(schema)
    if columns and settings.group_by is not None and not schema.columns[schema.index(settings.group_by)].is_categorical:
        raise ConfigError(
            f"group_by: column {settings.group_by!r} is numeric and has no groups; name a categorical one"
        )
    return tuple(_hidden(schema, column) for column in columns)


def _hidden(schema: Schema, column: HiddenColumn) -> Hidden:
    name = column.name
    if not schema.columns[schema.index(name)].is_categorical and column.edges is None:
        raise DataError(
            f"column {name!r} is numeric and can be inferred in bins only: give edges, such as edges = [0, 10, 20], or "
            "exclude it with attack = false"
        )
    attribute = single(schema, name, edges=column.edges)
    if column.prior is not None:
        try:
            checked_prior(column.prior, len(attribute))
        except DataError as error:
            raise DataError(f"column {name!r}: {error}") from None
    return Hidden(attribute, column.prior)


def infer_columns(
    model: Model | None,
    what: Subject,
    hidden: Sequence[Hidden],
    attacker: Records | None,
    opaque: Sequence[str],
    settings: Settings,
    *,
    overlap: Overlap | None = None,
    execution: Execution = HERE,
) -> tuple[tuple[Inferred, ...], dict[str, str]]:
    """Attack every hidden column of the members and of the holdout.

    All intervals on advantages that are judged, of all attacks and columns, hold together at the rule's confidence; so
    do, at a quarter of what is left of it, the bounds on the tail odds of all columns (0.0125 at 0.95); and the false
    discovery rate is kept over the lists of all columns.

    Args:
        model: as it is released; ``None`` only if no column is hidden.
        what: its training records and those of the holdout that attacks are judged by.
        hidden: the columns.
        attacker: records of the attacker's own, in neither set; ``None`` for none.
        opaque: names for the members ``[n_members]``.
        settings: of the audit.
        overlap: holdout records that stand in the training set, which advantages are corrected for.
        execution: where and how models are trained; reported are the columns done and the columns in all.

    Returns:
        The columns that were inferred, and for each of the others why the model could not be asked about it.
    """
    if model is None or not hidden:
        return (), {}
    if overlap is not None and overlap.share(settings.rule.confidence) is None:
        overlap = None
    tail_level = (1 - settings.rule.confidence) / (4 * len(hidden)) / (1 if overlap is None else 2)
    membership = _membership(model, what.train)
    each = bonferroni_confidence(settings.rule.confidence, len(hidden))
    found: list[Inferred] = []
    lost: dict[str, str] = {}
    answered = _shadows(what, hidden, settings, execution.quiet)
    for place, (column, shadows) in enumerate(zip(hidden, answered, strict=True)):
        execution.tell(place, len(hidden))
        try:
            inference = infer(
                model,
                what.in_own_words(what.train),
                what.in_own_words(what.holdout),
                column.attribute,
                prior=column.prior,
                attacker=None if attacker is None else what.in_own_words(attacker),
                membership=membership,
                shadows=shadows,
                group_by=None if settings.group_by == column.name else settings.group_by,
                confidence=each,
                alone=settings.rule.confidence,
                q=FALSE_DISCOVERY_RATE / len(hidden),
                tail_level=tail_level,
                seed=settings.seed,
            )
        except ModelError as error:
            lost[column.name] = str(error)
            continue
        n_own = 0 if attacker is None else len(attacker)
        result = _result(inference, n_own, opaque, settings.rule.confidence, overlap)
        if shadows is None and wants_shadows(hidden, settings, learner=what.learner is not None):
            result = replace(result, left_out={**result.left_out, SHADOW_ATTACK: NO_SHADOWS})
        found.append(Inferred(result, inference.people.exposure.exposed))
    execution.tell(len(hidden), len(hidden))
    return tuple(found), lost


def wants_shadows(hidden: Sequence[Hidden], settings: Settings, *, learner: bool) -> bool:
    """Whether shadow models are to be trained that are asked about the hidden columns."""
    return learner and bool(hidden) and settings.n_shadows > 0


def shadow_halves(n_people: int, settings: Settings) -> DenseSubsets:
    """What they are trained on: halves of members and others together."""
    return complementary_pairs(n_people, N_PAIRS, AuditStream.ATTRIBUTE_HALVES.generator(settings.seed))


def _shadows(what: Subject, hidden: Sequence[Hidden], settings: Settings, execution: Execution) -> list[Shadows | None]:
    """For each column what models on halves of members and others say about everybody with every value in place."""
    nothing: list[Shadows | None] = [None] * len(hidden)
    if what.learner is None or not wants_shadows(hidden, settings, learner=True):
        return nothing
    people = concatenate(what.train, what.holdout)
    asked = [one.attribute.completed(people.features).reshape(-1, people.schema.n_features) for one in hidden]
    try:
        table = without_lost_pairs(
            train_many(
                what.learner,
                people,
                shadow_halves(len(people), settings),
                np.concatenate(asked),
                seed=settings.seed,
                execution=execution,
            )
        )
    except ModelError:  # no pair of halves that models could be trained on
        return nothing
    told = np.split(released_answers(table, settings).answers, np.cumsum([len(one) for one in asked])[:-1], axis=1)
    return [
        Shadows(
            answers.reshape(len(table), len(people), len(one.attribute), -1),
            table.members,
            one.attribute.codes(people.features),
        )
        for one, answers in zip(hidden, told, strict=True)
    ]


def findings(
    columns: Sequence[InferredColumn],
    limit: float | None,
    dtp: float | None = None,
    situation: Situation = UNKNOWN_OUTPUTS,
) -> list[Finding]:
    """The largest attribute advantage at each column held against the limit, and the tail odds of all columns.

    Args:
        columns: those that were inferred.
        limit: on the advantage, in whichever direction; ``None`` where nothing is judged.
        dtp: limit on DTP in nats; tail odds may reach e to this power, or e where there is none.
        situation: what is released, for the advice.
    """
    if limit is None:
        return []
    tail = _tail_finding(columns, 1.0 if dtp is None else dtp)
    return [*(_finding(column, limit, situation) for column in columns), *([] if tail is None else [tail])]


def unknown(lost: Mapping[str, str], limit: float | None) -> list[Finding]:
    """One finding for each column that the model could not be asked about, with the reason; none without a limit."""
    remedy = 'use a model that accepts every value: let its encoder ignore unknown ones (handle_unknown="ignore")'
    return [
        Finding("attributes", measure(name), None, 0.0, limit, Verdict.CANNOT_TELL, reason, remedy)
        for name, reason in lost.items()
        if limit is not None
    ]


def measure(name: str) -> str:
    """What is measured of a sensitive attribute, in words."""
    return f"attribute advantage, sensitive attribute “{name}”"


def _finding(column: InferredColumn, limit: float, situation: Situation) -> Finding:
    deciding = [attack for attack in column.attacks if attack.decides]
    gained = _largest(deciding, column.confidence)
    verdict = judge(gained, limit)
    best = max(deciding, key=lambda attack: attack.advantage.magnitude.low)
    reason, remedy = f"{_predicted(column, best, gained)}, which may be below or above the limit of {limit:g}", ""
    if verdict is Verdict.PASSES:
        reason = f"{_predicted(column, best, gained)}, limit {limit:g}"
        if column.ignored:
            reason = f"the model's predictions do not depend on “{column.name}”"
        elif column.left_out.get(SHADOW_ATTACK) == NO_SHADOWS:  # what was wanted and failed is not safe
            verdict = Verdict.CANNOT_TELL
            reason = f"the attack with shadow models could not be carried out: {NO_SHADOWS}"
            remedy = "give a learner that can be trained on half of the records and accepts every value"
    elif verdict is Verdict.CANNOT_TELL:
        here = replace(situation, n_train=column.n_members, n_holdout=column.n_others)
        alone = (deciding[0].advantage_alone or deciding[0].advantage).confidence
        settle = settled_by_records(here, limit, alone, len(deciding)) if alone < 1 else ""
        remedy = advice("attributes", verdict, situation, settle=settle)
    elif column.advantage_without.magnitude.low > 0:
        verdict, reason, remedy = Verdict.CANNOT_TELL, _unlike(column), ALIKE
    else:
        reason = f"{_predicted(column, best, gained)}, limit {limit:g}"
        if column.best_guess_members is not None:
            reason += f"; without the model: {100 * column.best_guess_members.value:.0f} % of training records"
        remedy = advice("attributes", verdict, situation)
    return Finding("attributes", measure(column.name), gained, 0.0, limit, verdict, reason, remedy)


def _predicted(column: InferredColumn, attack: AttributeAttack, advantage: Estimate) -> str:
    """How often an attack predicts an attribute correctly, and the largest advantage of all attacks."""
    return (
        f"sensitive attribute “{column.name}”: predicted correctly for {100 * attack.members.value:.0f} % of training "
        f"records and {100 * attack.others.value:.0f} % of holdout records ({attack.title}); largest advantage "
        f"{number(advantage.value)} ({interval_name(advantage.confidence)} {number(advantage.low)} to "
        f"{number(advantage.high)})"
    )


def _unlike(column: InferredColumn) -> str:
    """Why nothing can be said: members and others differ without the model."""
    without = column.advantage_without
    how = "more" if without.value > 0 else "less"
    return (
        f"without the model, “{column.name}” is predicted correctly {how} often for training records than for holdout "
        f"records (by {number(without.magnitude.value)}), so the holdout differs from the training set"
    )


def _tail_finding(columns: Sequence[InferredColumn], dtp: float) -> Finding | None:
    """The largest tail odds of all columns held against e to the limit on DTP; ``None`` where there are none.

    Odds below the limit prove nothing; the finding passes, and says so.
    """
    tails = [(column, column.tail) for column in columns if column.tail is not None]
    lacking = [
        column.name
        for column in columns
        if column.tail is None and not column.ignored and min(column.n_members, column.n_others) >= SMALLEST_GROUP
    ]
    if not tails and not lacking:
        return None
    limit = math.exp(min(dtp, LARGEST_LIMIT_NATS))
    if not tails:
        return _untold_tail(lacking, limit, None)
    column, tail = max(tails, key=lambda pair: pair[1].odds)
    level = sum(each.level for _, each in tails)
    verdict, remedy = Verdict.PASSES, ""
    reason = (
        "no group of training records was identified by their sensitive attributes (odds of membership shown to exceed "
        f"{limit:.3g} times those among all records). {_not_shown(tails, limit)}"
    )
    if tail.odds > limit and column.advantage_without.magnitude.low > 0:
        verdict, reason, remedy = Verdict.CANNOT_TELL, _unlike(column), ALIKE
    elif tail.odds > limit:
        verdict = Verdict.FAILS
        reason = (
            f"the model reveals the sensitive attribute “{column.name}” of a group of training records: "
            f"{_in_tail(column, tail)} (limit {limit:.3g})"
        )
        remedy = "inspect the records whose value is revealed, train without the column, or regularise more strongly"
    observed = _observed(column, tail, level)
    if lacking and verdict is Verdict.PASSES:
        return _untold_tail(lacking, limit, observed)
    return Finding("attributes", TAIL_MEASURE, observed, 1.0, limit, verdict, reason, remedy)


def _not_shown(tails: Sequence[tuple[InferredColumn, TailOdds]], limit: float) -> str:
    """How few people no tail would show, of the column where it takes most."""
    fewest = [
        smallest_sure_tail(column.n_members, column.n_others, level=tail.level / N_TAIL_SCORES, odds=limit)
        for column, tail in tails
    ]
    if None in fewest:
        return "With so few records this test cannot detect any identified group"
    return f"This test cannot detect fewer than about {max(n for n in fewest if n is not None):,} records"


def _untold_tail(lacking: Sequence[str], limit: float, observed: Estimate | None) -> Finding:
    """Where the tail odds of some columns are not known, although there are records enough."""
    return Finding(
        "attributes", TAIL_MEASURE, observed, 1.0, limit, Verdict.CANNOT_TELL,
        f"the result lacks the tail odds of {', '.join(f'“{name}”' for name in lacking)}",
        "audit the model again with this version",
    )  # fmt: skip


def _in_tail(column: InferredColumn, tail: TailOdds) -> str:
    """Who is in the tail, in words."""
    most = "most" if tail.upper else "least"
    return (
        f"of the {tail.k:,} records for whose true value the model gives the {most} evidence, {tail.n_members:,} are "
        f"training records. The odds of membership among them are at least {tail.odds:.3g} times those among all "
        "records"
    )


def _observed(column: InferredColumn, tail: TailOdds, level: float) -> Estimate:
    """The odds seen in the tail, and their bound from below; the levels of all columns add up."""
    n_in, n_out = column.n_members, column.n_others
    seen = math.inf if tail.n_members == tail.k else tail.n_members / (tail.k - tail.n_members) * n_out / n_in
    method = "lower bound, Clopper-Pearson"
    return Estimate(max(seen, tail.odds), tail.odds, math.inf, 1 - level, method, n_in + n_out)


def _largest(attacks: Sequence[AttributeAttack], confidence: float) -> Estimate:
    """The largest advantage in size: fewer right guesses about members depend on who was trained on just as well.

    The lower ends hold together for all attacks and columns, since one of them suffices to fail. The upper ends hold
    one by one: all of them are needed to pass, which is no likelier for a larger number of attacks (Berger 1982).
    """
    sizes = [attack.advantage.magnitude for attack in attacks]
    alone = [(attack.advantage_alone or attack.advantage).magnitude for attack in attacks]
    best = max(sizes, key=lambda one: one.value)
    low, high = max(one.low for one in sizes), max(best.value, *(one.high for one in alone))
    certain = all(one.confidence == 1 for one in sizes)
    method = best.method if certain else f"largest of {len(sizes)} attacks, {best.method}"
    return Estimate(best.value, low, high, 1.0 if certain else confidence, method, best.n)


def _membership(model: Model, train: Records) -> MembershipScores:
    """The membership attack that the reductions ask, with what is published of the model."""
    kind = kind_of(model)
    own = Evidence(kind, answers(model, train.features, len(train.schema.classes)), train.labels)
    loss = float(np.mean(own.losses)) if kind is AnswerKind.PROBABILITIES else None
    # Below a loss of 0 there is nothing: a model that fits exactly is told by what it gets right.
    name = MEMBERSHIP[AnswerKind.LABELS if loss == 0 else kind]
    attack = next(attack for attack in MEMBERSHIP_ATTACKS if attack.name == name)
    error = float(np.sqrt(np.mean(own.errors**2))) if kind is AnswerKind.VALUES else None

    def score(features: Floats, told: Floats, labels: NDArray[np.generic]) -> Floats:
        return attack.score(Evidence(kind, told, labels, training_loss=loss, sigma_in=error))

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


def _attack(success: Success, overlap: Overlap | None, *, ignored: bool) -> AttributeAttack:
    attack, alone = _BY_NAME[success.attack], success.advantage_alone
    return AttributeAttack(
        name=attack.name,
        title=attack.title,
        source=attack.source,
        decides=attack.reads and (attack.inverts or not ignored),
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


def _shown(parts: Sequence[Part]) -> tuple[AttributePart, ...]:
    return tuple(
        AttributePart(name, part.n_members, part.n_others, part.members, part.others, part.advantage)
        if min(part.n_members, part.n_others) >= FEWEST_SHOWN
        else AttributePart(name, None, None, None, None, None)
        for name, part in zip(_names(parts), parts, strict=True)
    )


def _names(parts: Sequence[Part]) -> tuple[str, ...]:
    return shown_names([part.name for part in parts], [part.n_members + part.n_others for part in parts])


def _exposed(found: Inference, opaque: Sequence[str]) -> ExposedValues:
    people, names = found.people, _names(found.attacks[0].by_value)
    # The smallest p-value is that of who stands above every holder of the same value in the holdout.
    same = max((part.n_others for part in found.attacks[0].by_value), default=0)
    return ExposedValues(
        n=people.exposure.n_exposed,
        n_members=found.n_members,
        rate=people.exposure.q,
        fewest=int(np.ceil(found.n_members / (people.exposure.q * (same + 1)))),
        people=tuple(
            ExposedValue(opaque[row], names[people.values[row]]) for row in people.exposure.records[:N_LISTED]
        ),
    )
