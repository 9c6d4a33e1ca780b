"""Values that one candidate alone has: do outputs change when others are put in their place?

Of a category that no training record has a model mostly knows nothing, and answers as about any other that it does not
know; a column in which all training records are alike it cannot read. So the output about a record hardly depends on
what it alone has, unless it was trained on. The score of a record is by how much its output changes at least when a
category is replaced by others that one candidate alone has, some of which are unknown, too, or a number by the one that
all others have. No attack by the output about the record itself finds that, where a penalty keeps it small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Indices
from leakgauge.escaping import shapes
from leakgauge.membership import likelihood_ratio
from leakgauge.models import AnswerKind
from leakgauge.records import Records, Units

FEWEST = 8
"""Units that have something alone: with half of fewer in a training set nothing can be shown."""

MOST = 250
"""Rows of such units that are asked about, at most; more show nothing else."""

N_OTHERS = 4
"""Categories that are put in the place of one."""


@dataclass(frozen=True, eq=False)
class HeldAlone:
    """Candidates who alone have a category, or a number other than the one that all others have.

    Args:
        rows: of the candidates, ascending ``[e]``.
        features: of these with something else in its place, in several ways one after the other ``[s * e, d]``.
    """

    rows: Indices
    features: Floats

    __repr__ = shapes

    @classmethod
    def of(cls, candidates: Records, units: Units) -> HeldAlone | None:
        """Those among the candidates; ``None`` where they are too few.

        Args:
            candidates: to look at.
            units: which of them are in training sets together.
        """
        features = candidates.features
        put = [*_categories(candidates, units), *_numbers(candidates, units)]
        rows = np.unique(np.concatenate([held for _, held, _ in put])) if put else np.zeros(0, dtype=np.int64)
        if len(np.unique(units.of_row[rows])) < FEWEST:
            return None
        rows = rows[:: -(-len(rows) // MOST)]
        changed = np.repeat(features[None, rows], N_OTHERS, axis=0)
        for column, held, others in put:
            chosen = np.isin(held, rows)
            changed[:, np.searchsorted(rows, held[chosen]), column] = others[:, chosen]
        if (changed == changed[0]).all():
            changed = changed[:1]
        return cls(rows, changed.reshape(-1, features.shape[1]))

    def scores(self, kind: AnswerKind, own: Floats, changed: Floats, labels: NDArray[np.generic]) -> Floats:
        """By how much outputs about each candidate change at least ``[m, n]``; -1 of those who have nothing alone.

        Args:
            kind: of the answers.
            own: of some models about the candidates ``[m, n, k]``.
            changed: of the same models about the changed ones ``[m, s * e, k]``.
            labels: of the candidates ``[n]``.
        """
        n_models, known = len(own), labels[self.rows]

        def signal(answers: Floats) -> Floats:
            told = answers[..., 0] if kind is AnswerKind.VALUES else likelihood_ratio.confidences(answers, known)
            return told.reshape(n_models, -1, len(self.rows))

        ways = signal(changed.reshape(-1, len(self.rows), own.shape[-1]))
        found = np.full(own.shape[:2], -1.0)
        found[:, self.rows] = np.abs(signal(own[:, self.rows]) - ways).min(axis=1)
        return found


def _categories(candidates: Records, units: Units) -> Iterator[tuple[int, Indices, Floats]]:
    """Columns of categories, rows with one that they alone have, and others in its place ``[s, rows]``."""
    for place, column in enumerate(candidates.schema.columns):
        codes = candidates.features[:, place]
        if not column.is_categorical or candidates.schema.n_categories[place] > len(codes) / 2:  # numbers, texts
            continue
        known = np.flatnonzero(~np.isnan(codes))
        values, of_known = np.unique(codes[known], return_inverse=True)
        pairs = np.unique(np.stack([of_known, units.of_row[known]]), axis=1)
        rare = np.flatnonzero(np.bincount(pairs[0], minlength=len(values)) == 1)
        if len(rare) <= N_OTHERS:
            continue
        held = np.isin(of_known, rare)
        which = np.searchsorted(rare, of_known[held])
        others = np.stack([np.roll(values[rare], shift + 1)[which] for shift in range(N_OTHERS)])
        yield place, known[held], others


def _numbers(candidates: Records, units: Units) -> Iterator[tuple[int, Indices, Floats]]:
    """Columns that are the same for all units but one, that unit's rows, and what the others have ``[s, rows]``."""
    features = candidates.features
    usual = np.median(features[units.first[:3]], axis=0)  # that of two units at least
    differ = features != usual
    few = np.flatnonzero(differ.any(axis=0) & (differ.sum(axis=0) <= units.sizes.max()) & np.isfinite(usual))
    for place in few:
        held = np.flatnonzero(differ[:, place] & ~np.isnan(features[:, place]))
        if len(np.unique(units.of_row[held])) == 1:
            yield int(place), held, np.full((N_OTHERS, len(held)), usual[place])
