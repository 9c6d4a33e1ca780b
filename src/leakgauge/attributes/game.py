"""The attribute game: how much more often is the hidden value named for members than for others?

Experiment 2 of Yeom et al. 2018: a person from the training set or a fresh one, each equally likely; the attacker is
told everything but the hidden column. Two advantages are reported.

* **Attribute advantage** (Definition 5): `Pr[right | member] - Pr[right | non-member]`. What the model says about its
  training records beyond what it says about everybody; an attack that is equally good on everybody has none.
* **Over the best guess** (Definition 6): `Pr[right | member] - Pr[best guess without the model is right | non-member]`.
  It rewards a model for being accurate as well: what can be learned from it about a person at all.

No guess counts as wrong. Records are taken as independent given the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Codes, Floats
from leakgauge.attributes.guesses import Guesses
from leakgauge.statistics import Estimate, advantage_of_decisions, bonferroni_confidence, mean, mean_difference, wilson

Groups: TypeAlias = tuple[Codes, Codes, Sequence[Any]]
"""The group of each member, of each other, as codes, and the names that the codes stand for."""


@dataclass(frozen=True)
class Subgroup:
    """The game among some of the people: those who hold one value, or one group.

    Args:
        name: of the value or group.
        n_members: how many members are in it.
        n_others: how many others.
        members: how often the attack is right about its members; ``None`` if there are none.
        others: likewise about its others.
        advantage: the difference; ``None`` if there are none of either kind. Its intervals hold together for all
            values, or all groups.
    """

    name: Any
    n_members: int
    n_others: int
    members: Estimate | None
    others: Estimate | None
    advantage: Estimate | None


@dataclass(frozen=True)
class AttributeSuccess:
    """What one attack amounts to.

    Args:
        attack: its name.
        members: how often it is right about members.
        others: how often about non-members.
        advantage: Definition 5, in [-1, 1]; 0 where the model gives nothing away about its records.
        advantage_alone: the same with an interval of its own: to show that *every* attack stays below a limit, each is
            held against it alone.
        over_best_guess: Definition 6, in [-1, 1]; below 0 where the best guess without the model is better.
        silent_members: how often it makes no guess about members.
        silent_others: likewise about non-members.
        by_value: the game among holders of each value; rare ones are often the most exposed.
        by_group: the game within each group, if groups were given.
        gain_members: how much more often it is right than the best guess without the model about the same members, in
            [-1, 1]; ``None`` where the best guess about members is not known.
        gain_others: likewise about the same non-members. A gain on both sides is what the model says about everybody.
    """

    attack: str
    members: Estimate
    others: Estimate
    advantage: Estimate
    advantage_alone: Estimate
    over_best_guess: Estimate
    silent_members: Estimate
    silent_others: Estimate
    by_value: tuple[Subgroup, ...]
    by_group: tuple[Subgroup, ...] = ()
    gain_members: Estimate | None = None
    gain_others: Estimate | None = None


def play(
    attack: str,
    members: Guesses,
    truth_of_members: Codes,
    others: Guesses,
    truth_of_others: Codes,
    best_guess: Floats,
    values: Sequence[Any],
    *,
    best_guess_of_members: Floats | None = None,
    groups: Groups | None = None,
    nothing: str | None = None,
    confidence: float = 0.95,
    alone: float = 0.95,
) -> AttributeSuccess:
    """Count how often the guesses are right.

    Args:
        attack: its name.
        members: guesses about members.
        truth_of_members: the value that each holds, int ``[n_members]``.
        others: guesses about non-members from the same population.
        truth_of_others: the value that each holds, int ``[n_others]``.
        best_guess: for each non-member the probability that the best guess without the model is right,
            ``[n_others]``.
        values: the possible values, by code.
        best_guess_of_members: likewise for each member, ``[n_members]``, if it is known.
        groups: which people to look at apart, if any.
        nothing: why the advantage is 0 for certain, where that is known.
        confidence: of each interval, in (0, 1); see :class:`Subgroup` for those by value and group.
        alone: confidence of the interval of ``advantage_alone``, in (0, 1).
    """
    inside, outside = members.right(truth_of_members), others.right(truth_of_others)
    if nothing is None:
        advantage, single = (difference(inside, outside, one) for one in (confidence, alone))
    else:
        advantage = single = Estimate(0.0, 0.0, 0.0, 1.0, nothing, inside.size + outside.size)
    return AttributeSuccess(
        attack,
        rate(inside, confidence),
        rate(outside, confidence),
        advantage,
        single,
        difference(inside, best_guess, confidence),
        rate(members.silent, confidence),
        rate(others.silent, confidence),
        _parts((truth_of_members, truth_of_others, values), inside, outside, confidence),
        () if groups is None else _parts(groups, inside, outside, confidence),
        None if best_guess_of_members is None else _gain(inside, best_guess_of_members, confidence),
        None if best_guess_of_members is None else _gain(outside, best_guess, confidence),
    )


def _parts(groups: Groups, inside: Floats, outside: Floats, confidence: float) -> tuple[Subgroup, ...]:
    in_group, out_group, names = groups
    each = bonferroni_confidence(confidence, len(names))
    parts = ((name, inside[in_group == code], outside[out_group == code]) for code, name in enumerate(names))
    return tuple(
        Subgroup(
            name,
            own.size,
            other.size,
            rate(own, each) if own.size else None,
            rate(other, each) if other.size else None,
            difference(own, other, each) if own.size and other.size else None,
        )
        for name, own, other in parts
    )


def difference(inside: Floats, outside: Floats, confidence: float) -> Estimate:
    """How much more often members are guessed rightly than others, from the probabilities of it for each."""
    if _is_counted(inside) and _is_counted(outside):
        return advantage_of_decisions(inside > 0, outside > 0, confidence=confidence)
    return mean_difference(inside, outside, confidence=confidence)


def _gain(right: Floats, best_guess: Floats, confidence: float) -> Estimate:
    """Mean difference about the same people, who are pairs.

    As in :func:`leakgauge.statistics.mean_difference`, one person more at either end keeps rare differences from giving
    an interval that is too short (after Agresti and Min 2005, who add half a pair to each cell of the table).
    """
    gained = right - best_guess
    around = mean(np.append(gained, [-1.0, 1.0]), confidence=confidence, lower=-1.0, upper=1.0)
    value = float(gained.mean())
    low, high = min(value, around.low), max(value, around.high)
    return Estimate(value, low, high, confidence, "t of pairs, plus one at either end", gained.size)


def rate(right: Floats, confidence: float) -> Estimate:
    """How often people are guessed rightly, from the probability of it for each ``[n]``."""
    if _is_counted(right):
        return wilson(int(right.sum()), right.size, confidence=confidence)
    if right.size == 1:  # one toss of a coin, which was not made
        return Estimate(float(right[0]), 0.0, 1.0, confidence, "one record", 1)
    return mean(right, confidence=confidence, lower=0.0, upper=1.0)


def _is_counted(right: NDArray[np.float64]) -> bool:
    """Whether every person was answered rightly or not, without a coin."""
    return bool(((right == 0) | (right == 1)).all())
