"""Targeted attack by frequency: do models with the record give the model's answer more often than the others?

The attacker holds the record, the candidate pool and the learning algorithm. It trains some shadow models
with the record and some without, and counts for each class in how many of either kind the probability falls
into the same bin as the target model's. It succeeds when it tells whether the record was in the target's
training set. Source: Long, Bindschaedler, Gunter, "Towards Measuring Membership Privacy", 2017, section 5.3,
frequency-based attack; the bins are those of section 5.2.

The paper does not say what to do with counts of zero, which are common (five models, a hundred bins). Here a
pseudo-count is added, and setting it to 0 gives the printed formula.

Scores point towards membership, and the rule is exactly ``score > 0``; equality means non-member.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Floats, over_last
from leakgauge.checking import number
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.membership._checks import (
    checked_members,
    checked_probabilities,
    refuse_one_sided_records,
    thinned_groups,
)
from leakgauge.membership._others import OtherModels
from leakgauge.membership.attack import CLASSES, MembershipAttack
from leakgauge.theory import bin_centres

if TYPE_CHECKING:
    from leakgauge.membership.evidence import MembershipEvidence
    from leakgauge.membership.together import SharedTableGame

# Products of counts that are equal may differ by rounding once they are sums of logarithms; a tie is a
# non-member.
_ROUNDING = 1e-12


def same_bin_counts(
    target: ArrayLike, shadows: ArrayLike, members: ArrayLike, *, width: float | None = 0.01
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """In how many shadow models, with and without each record, a class probability shares the target's bin.

    Equally many models of either kind are looked at, see `leakgauge.membership.distance.thinned_groups`:
    where a record has more of one kind, the last ones are left aside.

    Args:
        target: [records, classes], the target model's answers, in [0, 1].
        shadows: [models, records, classes], the shadow models' answers on the same records.
        members: [models, records], bool: whether shadow model j was trained on record r.
        width: bin width, 1 / width a whole number; None if all answers are binned already, and then equal
            means same bin.

    Returns:
        ``in_counts`` and ``out_counts`` [records, classes], whole numbers.

    Raises:
        ModelError: shapes disagree, or a probability is outside [0, 1] or NaN.
        DataError: members have another shape or type, or some record is in all or in none of the training
            sets.
        ConfigError: the width does not divide 1.

    Source:
        Long et al. 2017, sections 5.2 and 5.3.

    >>> shadows = [[[0.902, 0.098]], [[0.61, 0.39]], [[0.908, 0.092]], [[0.901, 0.099]]]
    >>> members = [[True], [False], [False], [True]]
    >>> [counts.tolist() for counts in same_bin_counts([[0.905, 0.095]], shadows, members)]
    [[[2, 2]], [[1, 1]]]
    """
    own, table, in_group, out_group = _checked(target, shadows, members, width)
    own_bins = own if width is None else bin_centres(own, width)
    in_counts = np.zeros(own.shape, dtype=np.int64)
    out_counts = np.zeros(own.shape, dtype=np.int64)
    for answers, inside, outside in zip(table, in_group, out_group, strict=True):
        same = (answers if width is None else bin_centres(answers, width)) == own_bins
        in_counts += same & inside[:, None]
        out_counts += same & outside[:, None]
    return in_counts, out_counts


def scores_from_counts(
    in_counts: ArrayLike, out_counts: ArrayLike, *, pseudo_count: float = 1.0
) -> NDArray[np.float64]:
    """Membership scores from the counts: sum over classes of ``ln(in_count + a) - ln(out_count + a)``.

    The counts must come from equally many models of either kind, as those of `same_bin_counts` do; otherwise
    the score would measure which kind is more numerous.

    Args:
        in_counts: [records, classes], shadow models trained with the record that share the target's bin.
        out_counts: [records, classes], the same for shadow models trained without it.
        pseudo_count: a, at least 0 and finite.

    Returns:
        [records], float64, in nats. With ``pseudo_count=0``: a class with both counts 0 contributes nothing;
        one count 0 makes the score infinite; infinities of both signs give 0, non-member. Never NaN.

    Raises:
        DataError: shapes disagree, or a count is negative or not finite.
        ConfigError: the pseudo-count is negative or not finite.

    Source:
        Long et al. 2017, section 5.3: member if and only if the product of ``in_count / out_count`` exceeds
        1.

    >>> scores_from_counts([[3, 2, 5]], [[1, 0, 4]]).round(6).tolist()
    [1.974081]
    """
    number(least=0, hint="use 1, or 0 for the printed formula")("pseudo_count", pseudo_count)
    o_in = _checked_counts(in_counts, "in_counts") + pseudo_count
    o_out = _checked_counts(out_counts, "out_counts") + pseudo_count
    if o_in.shape != o_out.shape:
        raise DataError(f"out_counts must have the shape of in_counts, {o_in.shape}, got {o_out.shape}.")
    # Long et al. 2017, section 5.3: ln of the product over classes of o_in / o_out, zeros set apart.
    usable = (o_in > 0) & (o_out > 0)
    ratio = np.log(np.where(usable, o_in, 1.0)) - np.log(np.where(usable, o_out, 1.0))
    score = over_last(np.add, ratio)
    score[np.abs(score) <= _ROUNDING * o_in.shape[1]] = 0.0
    above = over_last(np.logical_or, (o_in > 0) & (o_out == 0))
    below = over_last(np.logical_or, (o_in == 0) & (o_out > 0))
    score[above] = np.inf
    score[below] = -np.inf
    score[above & below] = 0.0
    return score


def scores(
    target: ArrayLike,
    shadows: ArrayLike,
    members: ArrayLike,
    *,
    width: float | None = 0.01,
    pseudo_count: float = 1.0,
) -> NDArray[np.float64]:
    """Membership scores of each record: `scores_from_counts` of `same_bin_counts`; higher means member.

    Leave the target's own row out of ``shadows`` and ``members``.

    Args:
        target: [records, classes], the target model's answers, in [0, 1].
        shadows: [models, records, classes], the shadow models' answers on the same records.
        members: [models, records], bool: whether shadow model j was trained on record r.
        width: bin width, 1 / width a whole number; None if all answers are binned already.
        pseudo_count: added to every count, at least 0; 0 gives the printed formula, see `scores_from_counts`.

    Returns:
        [records], float64, in nats; member means ``score > 0``. Infinite only with ``pseudo_count=0``; never
        NaN.

    Raises:
        ModelError: shapes disagree, or a probability is outside [0, 1] or NaN.
        DataError: members have another shape or type, or some record is in all or in none of the training
            sets.
        ConfigError: the width does not divide 1, or the pseudo-count is negative or not finite.

    Source:
        Long et al. 2017, section 5.3.

    >>> shadows = [[[0.902, 0.098]], [[0.61, 0.39]]]
    >>> scores([[0.905, 0.095]], shadows, [[True], [False]]).round(4).tolist()
    [1.3863]
    """
    in_counts, out_counts = same_bin_counts(target, shadows, members, width=width)
    return scores_from_counts(in_counts, out_counts, pseudo_count=pseudo_count)


def _checked(
    target: ArrayLike, shadows: ArrayLike, members: ArrayLike, width: float | None
) -> tuple[NDArray[np.floating], NDArray[np.floating], NDArray[np.bool_], NDArray[np.bool_]]:
    """Target, shadows and the two groups of models, with shapes that fit together and a usable width."""
    if width is not None:
        number(above=0, most=1, hint="use None for predictions that are binned already")("width", width)
        try:
            bin_centres(0.0, width)
        except ValueError as problem:
            raise ConfigError(f"{problem} Use None for predictions that are binned already.") from problem
    own = checked_probabilities(target, "target", "records, classes")
    table = checked_probabilities(shadows, "shadows", "models, records, classes")
    if table.shape[1:] != own.shape:
        raise ModelError(
            f"shadows must have shape [models, records, classes] with the records and classes of target, "
            f"(models, {own.shape[0]}, {own.shape[1]}), got {table.shape}."
        )
    known = checked_members(members, table.shape[0], table.shape[1])
    refuse_one_sided_records(known)
    in_group, out_group = thinned_groups(known)
    return own, table, in_group, out_group


def _checked_counts(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """The counts as float64 [records, classes], at least 0 and finite."""
    counts = np.asarray(values, dtype=np.float64)
    if counts.ndim != 2 or counts.size == 0:
        raise DataError(f"{name} must have shape [records, classes] with at least one of each, got {counts.shape}.")
    outside = ~((counts >= 0) & (counts < math.inf))
    if outside.any():
        row, class_ = (int(index) for index in np.argwhere(outside)[0])
        raise DataError(f"{name}[{row}, {class_}] is {counts[row, class_]:g}; counts must be finite and at least 0.")
    return counts


def _score(evidence: MembershipEvidence) -> Floats:
    table, members, target = evidence.shadow_table, evidence.shadow_table.members, evidence.binned

    def score(part: slice) -> Floats:
        shadows = evidence.in_bins(table.log_probabilities[:, part])
        return scores(target[part], shadows, members[:, part], width=evidence.width)

    return evidence.by_records(score)


def _together(game: SharedTableGame) -> Floats:
    """`scores`, ``[t, n]``."""
    n_models, _, k = game.table.answers.shape
    bin_type, count_type = (np.min_scalar_type(most) for most in (round(1 / game.width), n_models))

    def score(records: slice, others: OtherModels) -> Floats:
        bins = np.moveaxis(np.rint(game.binned(records) / game.width - 0.5).astype(bin_type), -1, 0).copy()
        counts = np.empty((2, *others.size.shape, k))
        for t, target in enumerate(others.targets):
            same = bins == bins[:, target, None]
            for count, group in zip(counts[:, t], others.groups(t), strict=True):
                count[:] = (same & group).view(np.uint8).sum(axis=1, dtype=count_type).T
        return scores_from_counts(*(c.reshape(-1, k) for c in counts)).reshape(others.size.shape)

    return game.by_records(score, k * n_models)


ATTACK = MembershipAttack(
    "frequency",
    "Long frequency attack",
    "targeted, frequencies of binned predictions",
    "Long et al. 2017, frequency-based targeted attack",
    CLASSES,
    True,
    _score,
    together=_together,
)

BY_HALVES = replace(ATTACK, together=None, train=lambda _: _score)
"""The same, but in games the shadow models of either half of a table judge the other half."""
