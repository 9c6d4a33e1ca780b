"""Sums over shadow models when every model of a table plays the target in turn, without a loop over targets.

The shadow models of a target are all the others but one trained on its complement, thinned to equally many trained
with and without each record (`leakgauge.membership._checks.thinned_groups`). Sums over them are sums over all less the
terms of the target and of its complement, so all targets together cost a few passes over the table and not one each.
Where more models are left aside there is a pass for each target, over what was computed once.

A model trained on the target's complement is not a shadow model: it was trained without a record exactly if the target
was trained with it, so it is among the models "without" for members and among those "with" for others, and it deviates
from the mean of all models in the direction opposite to the target. Attacks would be told the truth, and find an
advantage of 0.03 to 0.08 where answers do not depend on membership.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.errors import DataError
from leakgauge.membership._checks import refuse_one_sided_records, thinned_groups

Mask: TypeAlias = NDArray[np.bool_]
Summed: TypeAlias = Callable[[Mask, slice], Floats]


class OtherModels:
    """The thinned groups of each target's shadow models.

    It should be the case that ``OtherModels(members, targets).sums(v)`` holds, for target t, the sums of ``v`` over the
    two groups of ``thinned_groups`` on ``members`` and ``v`` without row t and its complement, up to rounding.

    Args:
        members: [models, records], bool.
        targets: [t], the models that play the target.
        complements: [t], for each target a model trained on exactly the other records, -1 for none.

    Raises:
        DataError: a target leaves some record without shadow models of both kinds.

    Attributes:
        targets: [t].
        complements: [t], -1 for none.
        inside: [t, records], whether each target was trained on each record.
        size: [t, records], shadow models of either kind, at least 1.
    """

    def __init__(self, members: Mask, targets: NDArray[np.int64], complements: NDArray[np.int64] | None = None) -> None:
        refuse_one_sided_records(members)
        n_in = np.count_nonzero(members, axis=0)
        n_out = len(members) - n_in
        self.inside = members[targets]
        self._members, self.targets = members, targets
        self.complements = np.full(len(targets), -1) if complements is None else complements
        self._paired = self.complements >= 0
        self._size_if_in, self._size_if_out = np.minimum(n_in - 1, n_out), np.minimum(n_in, n_out - 1)
        # Of a target and its complement one was trained on the record and the other without it: each kind loses one.
        self._size_if_paired = np.minimum(n_in, n_out) - 1
        size = np.where(self.inside, self._size_if_in, self._size_if_out)
        self.size = np.where(self._paired[:, None], self._size_if_paired, size)
        if not (self.size > 0).all():
            target, record = (int(i) for i in np.argwhere(self.size <= 0)[0])
            lost_in = self.inside[target, record] or self._paired[target]
            raise DataError(
                f"members: with model {targets[target]} as the target, no other model is trained "
                f"{'on' if n_in[record] - lost_in <= 0 else 'without'} record {record}; every record must be in at "
                "least two training sets and out of at least two, the complement of the target's not counted: train "
                "more models."
            )
        # Place of each model among those of its kind, for each record.
        self._place = np.where(members, np.cumsum(members, axis=0), np.cumsum(~members, axis=0)) - 1

    def sums(self, values: Floats) -> tuple[Floats, Floats]:
        """Sums of ``values`` [models, records, ...] over shadow models with and without: twice [t, records, ...]."""
        return self.combined(
            lambda chosen, _: np.einsum("mr,mr...->r...", chosen.astype(np.float64), values),
            values[self.targets],
            values[self.complements],
        )

    def combined(self, over: Summed, own: Floats, complement: Floats) -> tuple[Floats, Floats]:
        """Any sum over both groups of shadow models, twice [t, records, ...].

        Args:
            over: from a choice of models for each record, bool [models, records], and some of the targets to the sum
                over those chosen, as an array that broadcasts to [targets, records, ...].
            own: each target's own term of such a sum, likewise.
            complement: the term of its complement; anything for a target that has none.
        """

        def first(kind: bool, size: NDArray[np.int64]) -> Floats:
            return over((self._members == kind) & (self._place < size), slice(None))

        def without(term: Floats, place: NDArray[np.int64], kind: bool, size: NDArray[np.int64]) -> Floats:
            """The first ``size`` models of a kind, the one with this term and place passed over."""
            return np.where(_wide(place <= size, own), first(kind, size + 1) - term, first(kind, size))

        inside, place = _wide(self.inside, own), self._place[self.targets]
        if not self._paired.any():
            if_in, if_out = self._size_if_in, self._size_if_out
            return (
                np.where(inside, without(own, place, True, if_in), first(True, if_out)),
                np.where(inside, first(False, if_in), without(own, place, False, if_out)),
            )
        both = (np.where(inside, own, complement), np.where(inside, complement, own))
        places = place, self._place[self.complements]
        in_pair = (
            without(both[0], np.where(self.inside, *places), True, self._size_if_paired),
            without(both[1], np.where(self.inside, *places[::-1]), False, self._size_if_paired),
        )
        if self._paired.all():
            return in_pair
        alone = OtherModels(self._members, self.targets).combined(over, own, complement)
        paired = self._paired.reshape((-1,) + (1,) * (own.ndim - 1))
        return np.where(paired, in_pair[0], alone[0]), np.where(paired, in_pair[1], alone[1])


class AllowedModels(OtherModels):
    """The thinned groups where any models may be barred from being a target's shadow models: one target after another.

    Args:
        members: [models, records], bool.
        targets: [t], the models that play the target.
        barred: [t, models], bool; a target is no shadow model of its own in any case.

    Raises:
        DataError: a target leaves some record without shadow models of both kinds.
    """

    def __init__(self, members: Mask, targets: NDArray[np.int64], barred: Mask) -> None:
        self.inside, self.targets, self.complements = members[targets], targets, np.full(len(targets), -1)
        self._members, self._allowed = members, ~barred & (np.arange(len(members)) != targets[:, None])
        for allowed in self._allowed:
            refuse_one_sided_records(members[allowed])
        n_in, n_out = (self._allowed.astype(np.float64) @ kind for kind in (members, ~members))
        self.size = np.minimum(n_in, n_out).astype(np.int64)

    def _groups(self, t: int) -> Mask:
        """The shadow models of a target with and without each record, bool [2, models, records]."""
        groups = np.zeros((2, *self._members.shape), dtype=bool)
        groups[:, self._allowed[t]] = thinned_groups(self._members[self._allowed[t]])
        return groups

    def combined(self, over: Summed, own: Floats, complement: Floats) -> tuple[Floats, Floats]:
        """Any sum over both groups of shadow models, twice [t, records, ...]; see :meth:`OtherModels.combined`."""
        found = np.empty((2, *own.shape))
        for t in range(len(self.targets)):
            for kind, group in enumerate(self._groups(t)):
                found[kind, t] = over(group, slice(t, t + 1))
        return found[0], found[1]


def _wide(table: Mask, like: Floats) -> Mask:
    """The table with as many dimensions as ``like`` has."""
    return table.reshape(table.shape + (1,) * (like.ndim - table.ndim))


def models_without(members: Mask, *, equal_groups: bool) -> Mask:
    """The models that an offline attack uses for each record, bool [models, records]: some trained without it.

    Args:
        members: [models, records], bool.
        equal_groups: as many as there are models with the record (`thinned_groups`); False for all.

    Raises:
        DataError: some record has no such model.
    """
    if not equal_groups:
        always = members.all(axis=0)
        if always.any():
            raise DataError(
                f"members: {always.sum()} of {always.size} records are left out by none of the {len(members)} models "
                f"(the first is record {int(np.argmax(always))}), but every record needs models trained without it."
            )
        return ~members
    if not members.any():
        raise DataError(
            "members: no model was trained on any record, so that there is nothing to make equal; "
            "pass equal_groups=False."
        )
    refuse_one_sided_records(members)
    return thinned_groups(members)[1]
