"""Groups of columns of 0 and 1 as one column of codes each, and back: changes of such codes keep exactly one 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leakgauge.errors import DataError
from leakgauge.escaping import shapes
from leakgauge.records._messages import counted
from leakgauge.records.schema import Schema

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OneHotCodes:
    """The way between encoded features ``[m, d]`` and points ``[m, e]`` with one code for each group, in that order.

    First come the columns that belong to no group, then the groups; without groups points are the features themselves.

    It should be the case that ``codes.expand(codes.collapse(features))`` equals ``features`` where each group has
    exactly one 1.

    Attributes:
        others: Places of the columns that belong to no group.
        groups: Places of the columns of each group.
        n_categories: Of each column of a point, 0 for numbers ``[e]``.

    >>> from leakgauge.records import Records
    >>> features = np.array([[1.0, 0.0, 3.5], [0.0, 1.0, 2.5]])
    >>> names = {"names": ["red", "blue", "size"], "one_hot": {"colour": ["red", "blue"]}}
    >>> codes = OneHotCodes.of(Records.from_arrays(features, [0.5, 1.5], **names).schema)
    >>> codes.collapse(features).tolist(), codes.n_categories.tolist()
    ([[3.5, 0.0], [2.5, 1.0]], [0, 2])
    """

    others: npt.NDArray[np.int64]
    groups: tuple[npt.NDArray[np.int64], ...]
    n_categories: npt.NDArray[np.int64]

    __repr__ = shapes

    @classmethod
    def of(cls, schema: Schema) -> OneHotCodes:
        """The groups of a schema."""
        groups = tuple(np.array([schema.index(name) for name in group.columns]) for group in schema.one_hot)
        others = np.setdiff1d(np.arange(schema.n_features), np.concatenate([np.empty(0, np.int64), *groups]))
        sizes = np.array([len(places) for places in groups], dtype=np.int64)
        return cls(others, groups, np.concatenate([schema.n_categories[others], sizes]))

    def collapse(self, features: Floats) -> Floats:
        """Points ``[m, e]`` of encoded features ``[m, d]``, of which each group has exactly one 1."""
        if not self.groups:
            return features
        codes = [features[:, places].argmax(axis=1) for places in self.groups]
        return np.column_stack([features[:, self.others], *codes])

    def expand(self, points: Floats) -> Floats:
        """Encoded features ``[m, d]`` of points ``[m, e]``."""
        if not self.groups:
            return points
        n = len(self.others)
        features = np.zeros((len(points), n + sum(map(len, self.groups))))
        features[:, self.others] = points[:, :n]
        for place, group in enumerate(self.groups, start=n):
            features[np.arange(len(points)), group[points[:, place].astype(np.int64)]] = 1.0
        return features


def require_one_hot(schema: Schema, features: Floats, place: str) -> None:
    """Refuse rows of which a group has not exactly one 1.

    Args:
        schema: With the groups.
        features: Encoded ``[n, d]``.
        place: Which table they are from, for messages.

    Raises:
        DataError: If there are any; the message says how many.
    """
    for group in schema.one_hot:
        part = features[:, [schema.index(name) for name in group.columns]]
        valid = np.isin(part, (0.0, 1.0)).all(axis=1) & (part.sum(axis=1) == 1)
        if not valid.all():
            n_wrong = int((~valid).sum())
            raise DataError(
                f"one-hot group {group.name!r}: {n_wrong} of {counted(len(part), 'row')} of {place} "
                f"{'has' if n_wrong == 1 else 'have'} not exactly one 1 among {len(group.columns)} columns of 0 and 1; "
                "correct these rows, add a column for a category that has none, or do not declare the group."
            )
