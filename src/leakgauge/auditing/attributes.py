"""The attribute part of an audit: can a hidden column of a known person be inferred from the model?

What decides is the attribute advantage (Yeom et al. 2018, Definition 5) of the attacks that read the value off the
model. The reductions from membership say nothing about people who do not look like members, so that their advantage is
membership once more, which its own findings judge. Imputation does not ask the model at all: it is what the others are
held against.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.attributes import ATTACKS, Attribute, Inference, MembershipScores, Part, Success, infer, single
from leakgauge.attributes.guesses import checked_prior
from leakgauge.auditing.finding import Finding, Verdict, judge
from leakgauge.auditing.membership import FALSE_DISCOVERY_RATE, more_records
from leakgauge.auditing.result import AttributeAttack, AttributePart, ExposedValue, ExposedValues, InferredColumn
from leakgauge.auditing.settings import HiddenColumn, Settings
from leakgauge.auditing.subject import Subject
from leakgauge.errors import ConfigError, DataError
from leakgauge.membership import ATTACKS as MEMBERSHIP_ATTACKS
from leakgauge.membership import Evidence
from leakgauge.models import AnswerKind, Model, answers, kind_of
from leakgauge.records import Records, Schema
from leakgauge.statistics import Estimate, bonferroni_confidence

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Progress: TypeAlias = Callable[[int, int], None]

FEWEST_SHOWN = 5
"""Smaller groups of people are not shown apart: their rates would be about persons."""

N_LISTED = 20
"""How many of the people whose value is given away a result lists."""

MEMBERSHIP = {
    AnswerKind.PROBABILITIES: "loss-threshold",
    AnswerKind.LABELS: "gap",
    AnswerKind.VALUES: "error-below-training-error",
}
"""The membership attack that the reductions ask: one that needs no models but the one that is asked."""

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
            f"group_by: column {settings.group_by!r} is numeric and makes no groups; name a categorical one"
        )
    return tuple(_hidden(schema, column) for column in columns)


def _hidden(schema: Schema, column: HiddenColumn) -> Hidden:
    name = column.name
    if not schema.columns[schema.index(name)].is_categorical and column.edges is None:
        raise DataError(
            f"column {name!r} is numeric and can be inferred in bins only: give edges, such as edges = [0, 10, 20], or "
            "leave it out with attack = false"
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
    progress: Progress,
) -> tuple[Inferred, ...]:
    """Attack every hidden column of the members and of the holdout.

    All intervals on advantages, of all attacks and columns, hold together at the rule's confidence, and the false
    discovery rate is kept over the lists of all columns.

    Args:
        model: as it is released; ``None`` only if no column is hidden.
        what: its training records and those of the holdout that attacks are judged by.
        hidden: the columns.
        attacker: records of the attacker's own, in neither set; ``None`` for none.
        opaque: names for the members ``[n_members]``.
        settings: of the audit.
        progress: called with the columns done and the columns in all.
    """
    if model is None or not hidden:
        return ()
    membership = _membership(model, what.train)
    each = bonferroni_confidence(settings.rule.confidence, len(hidden))
    found: list[Inferred] = []
    for column in hidden:
        progress(len(found), len(hidden))
        inference = infer(
            model,
            what.in_own_words(what.train),
            what.in_own_words(what.holdout),
            column.attribute,
            prior=column.prior,
            attacker=None if attacker is None else what.in_own_words(attacker),
            membership=membership,
            group_by=None if settings.group_by == column.name else settings.group_by,
            confidence=each,
            q=FALSE_DISCOVERY_RATE / len(hidden),
            seed=settings.seed,
        )
        n_own = 0 if attacker is None else len(attacker)
        result = _result(inference, n_own, opaque, settings.rule.confidence)
        found.append(Inferred(result, inference.people.exposure.exposed))
    progress(len(hidden), len(hidden))
    return tuple(found)


def findings(columns: Sequence[InferredColumn], limit: float | None) -> list[Finding]:
    """The largest attribute advantage at each column held against the limit."""
    return [] if limit is None else [_finding(column, limit) for column in columns]


def _finding(column: InferredColumn, limit: float) -> Finding:
    deciding = [attack for attack in column.attacks if attack.decides]
    gained = _largest([attack.advantage for attack in deciding], column.confidence)
    verdict = judge(gained, limit)
    reason, remedy = f"the interval from {gained.low:.3f} to {gained.high:.3f} lies on both sides of {limit:g}", ""
    if verdict is Verdict.PASSES:
        reason = f"even the upper end, {gained.high:.3f}, is at most {limit:g}"
        if column.ignored:
            reason = f"the model answers the same whatever the value of “{column.name}”"
    elif verdict is Verdict.CANNOT_TELL:
        remedy = more_records(gained, limit, column.n_others)
    elif column.advantage_without.low > 0:
        verdict = Verdict.CANNOT_TELL
        reason = (
            f"even who does not ask the model names “{column.name}” more often for members than for others (by "
            f"{column.advantage_without.value:.3f}), so the holdout is not like the training set"
        )
        remedy = "a holdout drawn from the same population as the training set"
    else:
        best = max(deciding, key=lambda attack: attack.advantage.low)
        reason = (
            f"“{column.name}” is named rightly for {100 * best.members.value:.0f} % of members and "
            f"{100 * best.others.value:.0f} % of others: even the lower end, {gained.low:.3f}, is above {limit:g}"
        )
        remedy = "regularise more strongly, train without the column, or release rounded answers or labels only"
    measure = f"advantage at the hidden column “{column.name}”"
    return Finding("attributes", measure, gained, 0.0, limit, verdict, reason, remedy)


def _largest(advantages: Sequence[Estimate], confidence: float) -> Estimate:
    """The largest of several advantages whose intervals hold together."""
    best = max(advantages, key=lambda one: one.value)
    low, high = max(one.low for one in advantages), max(one.high for one in advantages)
    certain = all(one.confidence == 1 for one in advantages)
    method = best.method if certain else f"largest of {len(advantages)} attacks, {best.method}"
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


def _result(found: Inference, n_own: int, opaque: Sequence[str], confidence: float) -> InferredColumn:
    return InferredColumn(
        name=found.attribute.name,
        values=tuple(_text(value) for value in found.attribute.values),
        prior=tuple(round(float(share), 9) for share in found.prior),
        ignored=found.ignored,
        n_members=found.n_members,
        n_others=found.n_others,
        n_own=n_own,
        confidence=confidence,
        best_guess_members=found.best_guess_members,
        best_guess_others=found.best_guess_others,
        advantage_without=found.advantage_without,
        attacks=tuple(_attack(success, ignored=found.ignored) for success in found.attacks),
        left_out=dict(found.left_out),
        exposed=_exposed(found, opaque),
    )


def _attack(success: Success, *, ignored: bool) -> AttributeAttack:
    attack = _BY_NAME[success.attack]
    return AttributeAttack(
        name=attack.name,
        title=attack.title,
        source=attack.source,
        decides=attack.reads and (attack.inverts or not ignored),
        members=success.members,
        others=success.others,
        advantage=success.advantage,
        over_best_guess=success.over_best_guess,
        gain_members=success.gain_members,
        gain_others=success.gain_others,
        silent_members=success.silent_members,
        silent_others=success.silent_others,
        by_value=_shown(success.by_value),
        by_group=_shown(success.by_group),
    )


def _shown(parts: Sequence[Part]) -> tuple[AttributePart, ...]:
    return tuple(
        AttributePart(_text(part.name), part.n_members, part.n_others, part.members, part.others, part.advantage)
        if min(part.n_members, part.n_others) >= FEWEST_SHOWN
        else AttributePart(_text(part.name), None, None, None, None, None)
        for part in parts
    )


def _exposed(found: Inference, opaque: Sequence[str]) -> ExposedValues:
    people = found.people
    # The smallest p-value is that of who stands above every holder of the same value in the holdout.
    same = max((part.n_others for part in found.attacks[0].by_value), default=0)
    return ExposedValues(
        n=people.exposure.n_exposed,
        n_members=found.n_members,
        rate=people.exposure.q,
        fewest=int(np.ceil(found.n_members / (people.exposure.q * (same + 1)))),
        people=tuple(
            ExposedValue(opaque[row], _text(found.attribute.values[people.values[row]]))
            for row in people.exposure.records[:N_LISTED]
        ),
    )


def _text(value: Any) -> str:
    return "missing" if value is None else str(value)
