"""Targeted attack by distance: is the model's answer nearer to models with the record or to those without it?

The attacker holds the record, the candidate pool and the learning algorithm. It trains some shadow models
with the record and some without, averages each group's answers on the record, and asks the target model once.
It succeeds when it tells whether the record was in the target's training set. Source: Long, Bindschaedler,
Gunter, "Towards Measuring Membership Privacy", 2017, section 5.3, distance-based attack.

In the paper every answer is binned before it is released (`leakgauge.theory.bin_centres`); give all arrays
binned, or all of them unbinned. Binned answers do not sum to 1 and are not renormalised.

Scores point towards membership, and the paper's rule is exactly ``score > 0``; equality means non-member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Floats, over_last
from leakgauge.errors import ModelError
from leakgauge.membership._checks import (
    checked_members,
    checked_probabilities,
    refuse_one_sided_records,
    thinned_groups,
)
from leakgauge.membership._others import OtherModels
from leakgauge.membership.attack import CLASSES, MembershipAttack

if TYPE_CHECKING:
    from leakgauge.membership.evidence import MembershipEvidence
    from leakgauge.membership.together import SharedTableGame

# Averages of the same numbers in another order, or over another number of models, differ by rounding. A score
# below this, in nats per unit of probability, is such a difference and not evidence: a tie, so a non-member.
_ROUNDING = 1e-12


def means_by_membership(
    probabilities: ArrayLike, members: ArrayLike, *, equal_groups: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
    """Average answer on each record of the shadow models trained with it and of those trained without it.

    It does not look at the target model: leave the target's own row out of both arrays.

    Args:
        probabilities: [models, records, classes], in [0, 1]: what shadow model j answers on record r.
        members: [models, records], bool: whether shadow model j was trained on record r.
        equal_groups: average over equally many models of either kind, see `thinned_groups`. False uses all
            models; do that only where the sizes of the groups have nothing to do with the target's own
            training set.

    Returns:
        ``mean_in`` and ``mean_out`` [records, classes], float64, and ``n_in`` and ``n_out`` [records], the
        numbers of models behind them, at least 1.

    Raises:
        ModelError: probabilities have another shape, or are outside [0, 1] or NaN.
        DataError: members have another shape or type, or some record is in all or in none of the training
            sets.

    Source:
        Long et al. 2017, section 5.3. The paper trains five models with and five without each target; here
        every record of a shared table plays the target.

    >>> import numpy as np
    >>> shadows = np.array([[[0.9, 0.1]], [[0.5, 0.5]], [[0.3, 0.7]]])
    >>> mean_in, mean_out, n_in, n_out = means_by_membership(shadows, [[True], [False], [False]])
    >>> mean_in.tolist(), mean_out.tolist(), n_in.tolist(), n_out.tolist()
    ([[0.9, 0.1]], [[0.5, 0.5]], [1], [1])
    """
    table = checked_probabilities(probabilities, "probabilities", "models, records, classes")
    known = checked_members(members, table.shape[0], table.shape[1])
    refuse_one_sided_records(known)
    in_group, out_group = thinned_groups(known) if equal_groups else (known, ~known)
    mean_in, n_in = _mean_over(in_group, table)
    mean_out, n_out = _mean_over(out_group, table)
    return mean_in, mean_out, n_in, n_out


def _mean_over(group: NDArray[np.bool_], table: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Average answer per record over the models of its group, and how many they are."""
    size = np.count_nonzero(group, axis=0)
    total: NDArray[np.float64] = np.einsum("mr,mrk->rk", group.astype(np.float64), table)
    return total / size[:, None], size


def scores(target: ArrayLike, mean_in: ArrayLike, mean_out: ArrayLike) -> NDArray[np.float64]:
    """Membership scores ``KL(target || mean_out) - KL(target || mean_in)``; higher means member.

    ``KL(a || b)`` is the sum over classes of ``a ln(a / b)``, taken as it stands although binned answers do
    not sum to 1. Both share the first argument, so the score is the sum over classes of ``target ln(mean_in /
    mean_out)``.

    Args:
        target: [records, classes], the target model's answers, in [0, 1].
        mean_in: [records, classes], average answers of shadow models trained with the record.
        mean_out: [records, classes], the same for shadow models trained without it.

    Returns:
        [records], float64, in nats. Where averages are 0 (unbinned answers only): a class with target 0
        counts nothing; a class with target above 0 and average 0 makes that distance infinite, so the score
        is +infinity or -infinity; both distances infinite give 0, non-member. Differences within rounding
        error are 0. Never NaN.

    Raises:
        ModelError: shapes disagree, or a probability is outside [0, 1] or NaN.

    Source:
        Long et al. 2017, section 5.3.

    >>> scores([[0.905, 0.095]], [[0.835, 0.165]], [[0.605, 0.395]]).round(6).tolist()
    [0.208665]
    """
    q = checked_probabilities(target, "target", "records, classes").astype(np.float64)
    inside = _same_shape(mean_in, "mean_in", q.shape)
    outside = _same_shape(mean_out, "mean_out", q.shape)
    # Long et al. 2017, section 5.3: member iff KL(q || mean_out) > KL(q || mean_in).
    usable = (inside > 0) & (outside > 0)
    ratio = np.log(np.where(usable, inside, 1.0)) - np.log(np.where(usable, outside, 1.0))
    score = over_last(np.add, q * ratio)
    score[np.abs(score) <= _ROUNDING * over_last(np.add, q)] = 0.0
    infinite_in = over_last(np.logical_or, (q > 0) & (inside == 0))
    infinite_out = over_last(np.logical_or, (q > 0) & (outside == 0))
    score[infinite_out] = np.inf
    score[infinite_in] = -np.inf
    score[infinite_in & infinite_out] = 0.0
    return score


def _same_shape(values: ArrayLike, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """The probabilities as float64, of the target's shape."""
    table = checked_probabilities(values, name, "records, classes")
    if table.shape != shape:
        raise ModelError(f"{name} must have the shape of target, {shape}, got {table.shape}.")
    return table.astype(np.float64)


def _score(evidence: MembershipEvidence) -> Floats:
    table, members, target = evidence.shadow_table, evidence.shadow_table.members, evidence.binned

    def score(part: slice) -> Floats:
        shadows = evidence.in_bins(table.log_probabilities[:, part])
        mean_in, mean_out, _, _ = means_by_membership(shadows, members[:, part])
        return scores(target[part], mean_in, mean_out)

    return evidence.by_records(score)


def _together(game: SharedTableGame) -> Floats:
    """`scores`, ``[t, n]``."""
    n_models, _, k = game.table.answers.shape

    def score(records: slice, others: OtherModels) -> Floats:
        answers = game.binned(records)
        groups = (np.moveaxis(one / others.size, 0, -1) for one in others.sums(np.moveaxis(answers, -1, 0).copy()))
        found = scores(*(one.reshape(-1, k) for one in (answers[game.targets], *groups)))
        return found.reshape(others.size.shape)

    return game.by_records(score, n_models * k)


ATTACK = MembershipAttack(
    "distance",
    "Long distance attack",
    "targeted, nearest mean prediction",
    "Long et al. 2017, distance-based targeted attack",
    CLASSES,
    True,
    _score,
    together=_together,
)
