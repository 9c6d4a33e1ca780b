"""Models of other code that hold training records: what outputs tell of these is known of known code alone.

A network of radial basis functions around training records, medoids, or the landmarks of a kernel: without one record
others are chosen, so that no attack by outputs without it finds which they are, while outputs may be solved for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Flags, Floats
from leakgauge.auditing.membership.changed import FEWEST
from leakgauge.errors import DataError, ModelError
from leakgauge.inspecting.walking import walk
from leakgauge.models.sklearn import is_of_other_code, parts_of
from leakgauge.records import Records
from leakgauge.records.columns import FLOATS, INTEGERS
from leakgauge.training import SklearnLearner, TorchLearner
from leakgauge.training.learners import innermost, of_other_code

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case

MOST_HELD = 50_000_000
"""Numbers of a model that are looked at."""

MOST_OTHERS = 0.25
"""Candidates outside the training set whose numbers a model has by chance, to one of its training records."""

EXACT, SINGLE = 1e-9, 2.0**-22
"""Of a standard deviation, and of a number itself in single precision, by which a number that is held may be off."""


def holds_records(case: Case) -> bool:
    """Whether code that is not known, or a PyTorch module, holds numbers of at least `FEWEST` of its training records.

    They are looked for column by column, as they are and scaled to mean 0 and variance 1, among those that one record
    alone has, in the audited model, or one of the learner. A model that holds more than `MOST_HELD` numbers, or that
    cannot be looked through, may hold them.
    """
    candidates = case.candidates
    if case.what.learner is None or case.given.only_scores:
        return False
    learner = innermost(case.what.learner)
    parts = parts_of(learner.estimator) if isinstance(learner, SklearnLearner) else []
    module = isinstance(learner, TorchLearner)
    if not (any(map(is_of_other_code, parts)) if parts else module or of_other_code(learner)):
        return False
    try:
        model = case.looked_into
    except (DataError, ModelError):  # nor can shadow models be trained then
        return False
    numeric = [not one.is_categorical and one.dtype in FLOATS | INTEGERS for one in candidates.schema.columns]
    columns = list(candidates.features[:, numeric].T.astype(np.float64))
    if not candidates.schema.classes:
        columns.append(candidates.labels.astype(np.float64))
    known = [_Own(one, case.is_member) for one in columns if np.isfinite(one).any()]
    left = MOST_HELD
    try:
        for place in walk(getattr(model, "estimator", model), None, lambda one: not isinstance(one.value, Records)):
            if not isinstance(place.value, np.ndarray) or (parts and not any(map(is_of_other_code, place.holder))):
                continue
            left -= place.value.size
            if left < 0 or any(one.among(values) for values in _columns(place.value) for one in known):
                return True
    except Exception:  # attributes of the user's may raise anything at all
        return True
    return False


def _columns(held: Floats) -> Iterator[Floats]:
    """Numbers that may be of one column, ``[m]`` each."""
    if held.ndim and held.dtype.kind in "iuf":
        with np.errstate(all="ignore"):  # of bytes that stand for no numbers
            wide = held.reshape(len(held), -1).astype(np.float64) if len(held) else held.reshape(0, 1)
        long = wide.T if wide.shape[1] <= len(wide) else wide
        if long.shape[1] >= FEWEST:
            yield from long


class _Own:
    """Numbers of a column that one record alone has.

    Args:
        column: of the candidates ``[n]``.
        is_member: which of them are in the training set ``[n]``.
    """

    def __init__(self, column: Floats, is_member: Flags) -> None:
        known = np.flatnonzero(np.isfinite(column))
        values, first, counts = np.unique(column[known], return_index=True, return_counts=True)
        members = column[known][is_member[known]]
        self.values, self.inside = values[counts == 1], is_member[known][first][counts == 1]
        self.mean, self.spread = (float(members.mean()), float(members.std())) if len(members) else (0.0, 0.0)

    def among(self, held: Floats) -> bool:
        """Whether some numbers ``[m]`` are those of training records, as they are or scaled."""
        if not len(self.values):
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            ways = (held, held * self.spread + self.mean)
        return any(self._equals(one[np.isfinite(one)]) for one in ways)

    def _equals(self, held: Floats) -> bool:
        held = np.unique(held)
        if len(held) < FEWEST:
            return False
        place = np.clip(np.searchsorted(held, self.values), 1, len(held) - 1)
        apart = np.minimum(np.abs(held[place] - self.values), np.abs(held[place - 1] - self.values))
        same = apart <= np.maximum(EXACT * self.spread, SINGLE * np.abs(self.values))
        inside, outside = np.count_nonzero(same & self.inside), np.count_nonzero(same & ~self.inside)
        return bool(inside >= FEWEST and outside <= MOST_OTHERS * inside)
