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

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.errors import DataError, ModelError

# Averages of the same numbers in another order, or over another number of models, differ by rounding. A score
# below this, in nats per unit of probability, is such a difference and not evidence: a tie, so a non-member.
_ROUNDING = 1e-12


def checked_probabilities(values: ArrayLike, name: str, shape: str) -> NDArray[np.floating]:
    """The probabilities in [0, 1] with the dimensions that ``shape`` names; refuses everything else.

    The type is kept when it is a floating one; rounding errors beyond 0 and 1 are removed.
    """
    table = np.asarray(values)
    if table.dtype.kind not in "fiu":
        raise ModelError(f"{name} must hold probabilities, got values of type {table.dtype}.")
    dimensions = shape.split(", ")
    if table.ndim != len(dimensions):
        raise ModelError(f"{name} must have shape [{shape}], got {table.shape}.")
    if table.dtype.kind != "f":
        table = table.astype(np.float64)
    for dimension, size in zip(dimensions, table.shape, strict=True):
        if size < (2 if dimension == "classes" else 1):
            raise ModelError(
                f"{name} must have shape [{shape}] with at least one of each and one column per class "
                f"(two or more), got {table.shape}."
            )
    lowest, highest = float(table.min()), float(table.max())
    slack = max(1e-9, 4 * float(np.finfo(table.dtype).eps))
    if not (lowest >= -slack and highest <= 1 + slack):
        unusable = ~((table >= -slack) & (table <= 1 + slack))
        where = tuple(int(index) for index in np.argwhere(unusable)[0])
        raise ModelError(
            f"{name}[{', '.join(map(str, where))}] is {table[where]}; probabilities must lie in [0, 1] and "
            "not be NaN: drop the record or repair the model's answer (logarithms must be exponentiated)."
        )
    return table if lowest >= 0 and highest <= 1 else np.clip(table, 0, 1)


def checked_members(members: ArrayLike, n_models: int, n_records: int) -> NDArray[np.bool_]:
    """The membership table as bool [models, records]; refuses other shapes and types."""
    table = np.asarray(members)
    if table.shape != (n_models, n_records):
        raise DataError(
            f"members must have shape [models, records] = ({n_models}, {n_records}), one entry per shadow "
            f"model and record, got {table.shape}."
        )
    if table.dtype != np.bool_:
        raise DataError(f"members must be bool (True: trained on), got {table.dtype}; use .astype(bool).")
    return table


def thinned_groups(members: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """For each record, equally many models trained with it and without it.

    The larger group loses its last models. This is not a matter of taste. Take the target model out of a
    table of complementary halves, and the group that lost a model tells which records the target was trained
    on. Counts, averages of few distinct answers, and networks that recognise a record feel that difference,
    and an attack would find a leak in a model that has none. In the paper both groups have five models.

    Args:
        members: [models, records], bool, as from `checked_members`.

    Returns:
        Two tables of the shape of ``members``, bool: used as "with" and used as "without". Columns of records
        that lack either kind are False throughout.
    """
    n_in = np.count_nonzero(members, axis=0)
    size = np.minimum(n_in, members.shape[0] - n_in)
    return members & (np.cumsum(members, axis=0) <= size), ~members & (np.cumsum(~members, axis=0) <= size)


def refuse_one_sided_records(members: NDArray[np.bool_]) -> None:
    """Raise DataError if some record is in all training sets or in none, naming the first few."""
    n_in = np.count_nonzero(members, axis=0)
    for lacking, kind in ((n_in == 0, "trained on"), (n_in == members.shape[0], "left out")):
        if lacking.any():
            rows = ", ".join(str(row) for row in np.flatnonzero(lacking)[:5])
            more = ", ..." if lacking.sum() > 5 else ""
            raise DataError(
                f"members: {lacking.sum()} of {members.shape[1]} records are {kind} by none of the "
                f"{members.shape[0]} shadow models (records {rows}{more}), but every record needs models of "
                "both kinds: train more shadow models, or draw balanced subsets."
            )


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
    score: NDArray[np.float64] = np.sum(q * ratio, axis=1)
    score[np.abs(score) <= _ROUNDING * q.sum(axis=1)] = 0.0
    infinite_in = np.any((q > 0) & (inside == 0), axis=1)
    infinite_out = np.any((q > 0) & (outside == 0), axis=1)
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
