"""Sums over shadow models when every model of a table plays the target in turn.

The shadow models of a target are all the others but those opposed to it, thinned to equally many trained with and
without each record (`leakgauge.membership._checks.thinned_groups`): of either kind those that come first in the table.
So a sum over them is one over the first models of the table, which is kept for every number of models, less the terms
of the few among these that play no shadow. All targets together cost one pass over the table, and not one each.

A model trained on the target's complement is not a shadow model: it was trained without a record exactly if the target
was trained with it, so it is among the models "without" for members and among those "with" for others, and it deviates
from the mean of all models in the direction opposite to the target. Attacks would be told the truth, and find an
advantage of 0.03 to 0.08 where answers do not depend on membership.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.errors import DataError
from leakgauge.membership._checks import refuse_one_sided_records, thinned_groups

Mask: TypeAlias = NDArray[np.bool_]


class OtherModels:
    """The thinned groups of each target's shadow models.

    For each target t ``OtherModels(members, targets, barred).sums(v)`` holds the sums of ``v`` over the two groups of
    ``thinned_groups`` on ``members`` and ``v`` without row t and those that are barred, up to rounding.

    Args:
        members: [models, records], bool.
        targets: [t], the models that play the target.
        barred: [t, models], bool: which are no shadow models of each target; the target itself never is one.

    Raises:
        DataError: a target leaves some record without shadow models of both kinds.

    Attributes:
        targets: [t].
        size: [t, records], shadow models of either kind, at least 1.
    """

    def __init__(self, members: Mask, targets: NDArray[np.int64], barred: Mask) -> None:
        refuse_one_sided_records(members)
        self.targets = targets
        n_models, n_records = members.shape
        self._barred = barred | (np.arange(n_models) == targets[:, None])
        number = np.min_scalar_type(-n_models - 1)  # the smallest that counts them and has a sign
        n_with = np.cumsum(members, axis=0, dtype=number)
        n_without = np.arange(1, n_models + 1, dtype=number)[:, None] - n_with
        self._kinds = (members, n_with), (~members, n_without)
        self.size = np.empty((len(targets), n_records), dtype=np.int64)
        # The first so many models hold the group of each kind.
        self._first = np.empty((2, len(targets), n_records), dtype=number)
        for t, left_out in enumerate(map(np.flatnonzero, self._barred)):
            lost = members[left_out].sum(axis=0, dtype=number)
            left_in, left_without = n_with[-1] - lost, n_without[-1] - (len(left_out) - lost)
            size = np.minimum(left_in, left_without)
            if size.min() < 1:
                record = int(np.argmin(size))
                raise DataError(
                    f"members: with model {targets[t]} as the target, no other model is trained "
                    f"{'on' if left_in[record] < 1 else 'without'} record {record}; every record must be in at least "
                    "two training sets and out of at least two, the complement of the target's not counted: train "
                    "more models."
                )
            self.size[t] = size
            for first, (kind, counted) in zip(self._first[:, t], self._kinds, strict=True):
                last = size.copy()  # of its kind the group's last model is this one, those counted that are left out
                for model in left_out:
                    last += kind[model] & (counted[model] <= last)
                np.sum(counted <= last, axis=0, dtype=number, out=first)

    def sums(self, values: Floats) -> tuple[Floats, Floats]:
        """Sums of ``values`` [..., models, records] over shadow models with and without: twice [..., t, records]."""
        *rest, n_models, n_records = values.shape
        found = np.empty((2, *rest, len(self.targets), n_records))
        added, records = np.zeros((*rest, n_models + 1, n_records)), np.arange(n_records)
        for sums, firsts, (kind, _) in zip(found, self._first, self._kinds, strict=True):
            own = np.where(kind, values, 0.0)
            np.cumsum(own, axis=-2, out=added[..., 1:, :])
            for t, left_out in enumerate(map(np.flatnonzero, self._barred)):
                sums[..., t, :] = added[..., firsts[t].astype(np.intp), records]
                for model in left_out:
                    sums[..., t, :] -= np.where(model < firsts[t], own[..., model, :], 0.0)
        return found[0], found[1]

    def groups(self, t: int) -> tuple[Mask, Mask]:
        """The shadow models of a target with and without each record, twice bool [models, records]."""
        allowed, models = ~self._barred[t][:, None], np.arange(len(self._barred[t]))[:, None]
        (with_record, _), (without, _) = self._kinds
        return with_record & allowed & (models < self._first[0, t]), without & allowed & (models < self._first[1, t])


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
