"""Membership advantage among the records of each class, and of each category of columns that the user names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats
from leakgauge.auditing.membership.games import Games
from leakgauge.auditing.membership.measurement import Attacked, of_either_draw
from leakgauge.auditing.membership.result import GroupAdvantage, GroupedAdvantages
from leakgauge.auditing.naming import shown_names
from leakgauge.errors import ConfigError
from leakgauge.records import Schema
from leakgauge.statistics import Estimate, bonferroni_confidence, game_mean

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case

FEWEST_IN_GROUP = 20
"""Members, and others, of a group whose advantage is told: of fewer, little is known and much is about persons."""

MOST_CLASSES, MOST_CATEGORIES = 10, 20
"""Groups that are looked at, the largest."""


def check_groups(schema: Schema, columns: Sequence[str]) -> None:
    """Refuse columns that make no groups.

    Raises:
        DataError: there is no such column, or it is the target.
        ConfigError: a column is numeric, or named twice.
    """
    for place, name in enumerate(columns):
        if not schema.columns[schema.index(name, "groups")].is_categorical:
            raise ConfigError(f"groups: column {name!r} is numeric and has no groups; name a categorical one")
        if name in columns[:place]:
            raise ConfigError(f"groups: column {name!r} is named twice; name it once")


def by_groups(case: Case, attacked: Sequence[Attacked], games: Games) -> tuple[GroupedAdvantages, ...]:
    """The advantage of the strongest attack within each class, and within each category of the columns named.

    The strongest is that with the largest advantage over all records: in games, where there are any, else of the
    audited model among attacks that do not know the members. Nothing where there is none. Copies of one record count
    once. Of persons with several records, a class or column is looked at if it is the same in all of a person's.

    Args:
        case: what was audited.
        attacked: the attacks.
        games: the same in games.
    """
    able = [one for one in attacked if (one.result.games is not None if games.played else not one.attack.knows_members)]
    if not able:
        return ()
    best = max(able, key=_overall)
    schema, candidates = case.what.own_schema, case.candidates
    asked = [(schema.target.name, schema.classes, candidates.labels, MOST_CLASSES)] if schema.classes else []
    for name in case.settings.groups:
        place = schema.index(name)
        asked.append((name, schema.columns[place].categories, candidates.features[:, place], MOST_CATEGORIES))
    found = []
    for name, values, codes, most in asked:
        of_units = case.units.agreed(codes)
        if (of_units[case.units.of_row] == codes).all():
            codes = of_units[case.overlap.copies.first]
            found.append(_grouped(case, best, len(able), games, name, values, codes, most))
    return tuple(one for one in found if len(one.groups) > 1)


def _overall(one: Attacked) -> float:
    """The size of the advantage over all records."""
    return (one.result.advantage if one.result.games is None else one.result.games.pool).magnitude.value


def _grouped(
    case: Case,
    best: Attacked,
    among: int,
    games: Games,
    column: str,
    values: Sequence[Any],
    codes: NDArray[np.generic],
    most: int,
) -> GroupedAdvantages:
    """One column: its largest groups, in the order of its values; the attack was chosen among so many."""
    is_member, called = (case.overlap.copies.agreed(each) for each in (case.member_units, best.called))
    masks = [codes == code for code in range(len(values))]
    n_members = [int((mask & is_member).sum()) for mask in masks]
    n_all = [int(mask.sum()) for mask in masks]
    pool = games.pool if games.played else np.arange(len(codes))
    names, confidence = shown_names(values, n_all), case.settings.rule.confidence
    largest = sorted(np.argsort([-n for n in n_all], kind="stable")[:most].tolist())
    held = [place for place in largest if n_all[place]]
    of_kind = is_member[pool], ~is_member[pool]
    known = [place for place in held if min((masks[place][pool] & one).sum() for one in of_kind) >= FEWEST_IN_GROUP]

    def advantage(place: int, confidence: float) -> Estimate:
        return _advantage(best, called, games, masks[place], is_member, confidence)

    alone = {place: advantage(place, confidence) for place in known}
    at_once = bonferroni_confidence(confidence, among * max(1, len(known)))
    most_exposed = max(alone, key=lambda place: alone[place].magnitude.value, default=None)
    return GroupedAdvantages(
        column,
        best.attack.title,
        bool(games.played),
        tuple(
            GroupAdvantage(names[place], n_members[place], n_all[place] - n_members[place], alone[place])
            if place in alone
            else GroupAdvantage(names[place], None, None, None)
            for place in held
        ),
        sum(n > 0 for n in n_all) - len(held),
        None if most_exposed is None else names[most_exposed],
        None if most_exposed is None else advantage(most_exposed, at_once),
    )


def _advantage(
    best: Attacked, called: Floats, games: Games, group: Flags, is_member: Flags, confidence: float
) -> Estimate:
    """Of an attack within a group, bool ``[n]``: in games, where there are any, else of the audited model."""
    if games.played:
        success, group = games.played[best.attack.name], group[games.pool]
        mean = game_mean(success.called[:, group], success.members[:, group], success.clusters)
        return mean.pool(confidence=confidence)
    return of_either_draw(best.attack, called[group & is_member], called[group & ~is_member], confidence)
