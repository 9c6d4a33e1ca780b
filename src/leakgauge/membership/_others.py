"""Sums over shadow models when every model of a table plays the target in turn, without a loop over targets.

The shadow models of a target are all the others, thinned to equally many trained with and without each record
(`leakgauge.membership._checks.thinned_groups`). Sums over the others are sums over all less the target's own term, so
all targets together cost a few passes over the table and not one each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.errors import DataError
from leakgauge.membership._checks import refuse_one_sided_records, thinned_groups

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]


class Others:
    """The thinned groups of each target's shadow models.

    It should be the case that ``Others(members, targets).sums(v)`` holds, for target t, the sums of ``v`` over the two
    groups of ``thinned_groups`` on ``members`` and ``v`` without row t, up to rounding.

    Args:
        members: [models, records], bool.
        targets: [t], the models that play the target.

    Raises:
        DataError: a target leaves some record without shadow models of both kinds.

    Attributes:
        inside: [t, records], whether each target was trained on each record.
        size: [t, records], shadow models of either kind, at least 1.
    """

    def __init__(self, members: Mask, targets: NDArray[np.int64]) -> None:
        refuse_one_sided_records(members)
        n_in = np.count_nonzero(members, axis=0)
        n_out = len(members) - n_in
        self.inside = members[targets]
        self._members, self._targets = members, targets
        self._size_if_in, self._size_if_out = np.minimum(n_in - 1, n_out), np.minimum(n_in, n_out - 1)
        self.size = np.where(self.inside, self._size_if_in, self._size_if_out)
        if not self.size.all():
            target, record = (int(i) for i in np.argwhere(self.size == 0)[0])
            raise DataError(
                f"members: with model {targets[target]} as the target, no other model is trained "
                f"{'on' if self.inside[target, record] else 'without'} record {record}; every record must be in at "
                "least two training sets and out of at least two: train more models."
            )
        # Place of each model among those of its kind, for each record.
        self._place = np.where(members, np.cumsum(members, axis=0), np.cumsum(~members, axis=0)) - 1

    def sums(self, values: Floats) -> tuple[Floats, Floats]:
        """Sums of ``values`` [models, records, ...] over shadow models with and without: twice [t, records, ...]."""
        return self.combined(
            lambda chosen: np.einsum("mr,mr...->r...", chosen.astype(np.float64), values), values[self._targets]
        )

    def combined(self, over: Callable[[Mask], Floats], own: Floats) -> tuple[Floats, Floats]:
        """Any sum over both groups of shadow models, twice [t, records, ...].

        Args:
            over: from a choice of models for each record, bool [models, records], to the sum over those chosen, as an
                array that broadcasts to [t, records, ...].
            own: each target's own term of such a sum, likewise.
        """

        def first(kind: bool, size: NDArray[np.int64]) -> Floats:
            return over((self._members == kind) & (self._place < size))

        def others_of(kind: bool, size: NDArray[np.int64]) -> Floats:
            """The first ``size`` models of the target's own kind, the target itself passed over."""
            return np.where(
                _wide(self._place[self._targets] <= size, own), first(kind, size + 1) - own, first(kind, size)
            )

        inside = _wide(self.inside, own)
        if_in, if_out = self._size_if_in, self._size_if_out
        return (
            np.where(inside, others_of(True, if_in), first(True, if_out)),
            np.where(inside, first(False, if_in), others_of(False, if_out)),
        )


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
