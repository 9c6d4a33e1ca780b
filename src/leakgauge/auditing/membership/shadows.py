"""The shadow models of an audit: their training, and what they say about each record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats
from leakgauge.auditing.membership.changed import AskedBeside, SomeScores
from leakgauge.auditing.membership.stored import STORED, stored
from leakgauge.auditing.released import released_answers
from leakgauge.errors import DataError, ModelError
from leakgauge.membership import (
    ATTACKS,
    KnownSteps,
    everyone_as_target,
    strongest_per_record,
)
from leakgauge.membership.columns import are_many, of_known_steps
from leakgauge.models import answers
from leakgauge.records import Records, Units
from leakgauge.training import Job, PredictionTable, plan
from leakgauge.training.engines import STOPPING
from leakgauge.training.learners import trained

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case


FEWEST_TO_CHOOSE = 16
"""Fewer shadow models are too few to choose an attack for each record on some and judge it on others."""

SMALLEST_SHADOW_SHARE = 0.5
"""Share of the shadow models that must be left where others failed: with fewer, attacks are weaker than was asked."""


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
    if not case.shadows:
        return ShadowModels(None)
    if case.what.shadows is not None:
        return ShadowModels(released_answers(case.what.shadows.about(case.judged), case.learned))
    asked, refused = case.asked_beside, set[str]()
    failed = set(asked.unknown)
    table = _trained_shadows(case, case.shadow_job)
    for fewer, lost in ((_answered, refused), (_without_most, failed), (_nothing_beside, failed)):
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
    changed = case.learned(table.answers[:, n:])
    # Of the candidates in their own order.
    table = replace(table, answers=table.answers[:, :n], subsets=case.shadow_sets)
    why_not = why_no_shadows(table)
    if why_not:
        return ShadowModels(None, why_not)
    table, scores = released_answers(table, case.learned), dict[str, SomeScores]()
    if changed.shape[1] and not table.failures:
        scores = asked.scores(table, changed, case.candidates.labels)
    try:
        scores |= {} if table.failures else stored(case)
    except ModelError:
        failed |= {STORED}
    return ShadowModels(table, "", scores, tuple(sorted(refused | failed)), tuple(sorted(failed)))


def known_steps(case: Case, columns: Floats, job: Job) -> KnownSteps | None:
    """Models of the last part of the audited one, which read what its steps make of records; ``None`` where one fails.

    Args:
        case: what is audited.
        columns: what the steps make of the candidates ``[n, e]``.
        job: the training of these models.
    """
    table = _trained_shadows(case, job)
    if isinstance(table, str) or table.failures:
        return None
    table = released_answers(replace(table, subsets=case.shadow_sets), case.learned)
    return KnownSteps(of_known_steps(case.candidates, columns), table, are_many(columns))


def _answered(case: Case, asked: AskedBeside) -> AskedBeside:
    """Without the changes about which a model of the learner does not answer: neither would the audited one."""
    train = case.what.train
    try:
        model = trained(case.learner, Records(train.features, train.labels, asked.schema, train.ids), seed=0).model
    except (DataError, ModelError):  # which says nothing of what it would answer
        return asked
    features = case.candidates.features
    return asked.answered(features, lambda queries: answers(model, queries, len(train.schema.classes)))


def _without_most(case: Case, asked: AskedBeside) -> AskedBeside:
    """Without the kind of changes that makes the most queries: a model may take no more at once."""
    most = max(asked.records, key=lambda one: len(one.features)).name
    return replace(asked, records=tuple(one for one in asked.records if one.name != most))


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


@dataclass(frozen=True)
class PerRecord:
    """How often attacks are right about each candidate, when shadow models play the target.

    Args:
        attack: the attack, or the attacks that the best is chosen from for each record.
        accuracy: in [0, 1], 0.5 is guessing; NaN where it is not known ``[n]``.
    """

    attack: str
    accuracy: Floats


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


def _covered(members: Flags) -> bool:
    """Whether each record is in two training sets and out of two."""
    n_in = members.sum(axis=0)
    return len(members) >= 4 and bool((np.minimum(n_in, len(members) - n_in) >= 2).all())


def _covered_in_halves(members: Flags) -> bool:
    middle = len(members) // 4 * 2
    return _covered(members[:middle]) and _covered(members[middle:])
