"""Which attacks can be carried out, and what they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.auditing.membership.result import EDGES, HELD, STEPS
from leakgauge.auditing.settings import Settings
from leakgauge.auditing.subject import possible_settings
from leakgauge.membership import (
    ATTACKS,
    AUDITOR_ATTACKS,
    MembershipAttack,
    gradients,
)
from leakgauge.membership.own import EVERYTHING
from leakgauge.models import AnswerKind

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case


FEWEST_TO_LEARN = 20
"""Members, and others, from which the auditor's attack learns anything: ten in each half."""


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

    Where labels tell scores, or outputs training records or the steps of a pipeline, no attack on these is carried out.

    To train no shadow models, to set no known non-members aside, to allow an endpoint too few queries, or models
    without each candidate too little time, is a selection of attacks as well.

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
        copies=case.steadiness is not None or not case.asks_copies,
        models_without=shadows_possible and (case.without_each is not None or case.lacks_models_without_each),
    )
    possible = [one.name for one in by_default if not one.knows_members or learns(case)]
    if (case.edges_tell and case.learned == case.settings.release) or case.jumps:
        possible.append(EDGES)
    if case.kind is not AnswerKind.LABELS and case.holds_records:
        possible.append(HELD)
    if gradients.ATTACK.name in carried_out and case.hides_steps:
        possible.append(STEPS)
    return tuple(name for name in possible if name not in carried_out)


def wants_copies(kind: AnswerKind, settings: Settings) -> bool:
    """Whether the model is to be asked about changed copies of the candidates."""
    return any(attack.needs_copies for attack in possible_attacks(kind, settings.attacks, shadows=False))


def wants_models_without(kind: AnswerKind, settings: Settings) -> bool:
    """Whether models of all candidates but one each are to be had, where an engine solves for them."""
    possible = possible_attacks(kind, settings.attacks, shadows=True, models_without=True)
    return any(attack.needs_models_without for attack in possible)


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
