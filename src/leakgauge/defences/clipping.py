"""Queries clipped to a range that is fixed beforehand: bounds for that range then hold for every query."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leakgauge.checking import many, number
from leakgauge.defences.defence import Defence
from leakgauge.errors import ConfigError, ModelError
from leakgauge.training import ClipColumns, Learner, SklearnLearner

if TYPE_CHECKING:
    from leakgauge.records import Schema


@dataclass(frozen=True)
class ClippedInputs(Defence):
    """Numbers beyond a stated range are moved to its end, in queries and in training records alike.

    By itself it lowers no influence. It makes proofs possible: a bound for queries within a range (of logistic
    regression, behind :class:`~leakgauge.training.FixedDesign` or alone) is then one for every query, so that the limit
    on DTP can pass with ``queries = "any"``. The range must be public knowledge, such as ages from 0 to 120: one that
    is read off the training records tells whose values they were.

    Args:
        lowest: of each column, in the order of the schema; ``-inf`` for categories.
        highest: of each column; ``inf`` for categories.

    Raises:
        ConfigError: the range is none.

    >>> ClippedInputs((0.0, 0.0), (120.0, 24.0)).title
    'queries clipped to a stated range'
    """

    source = "Long et al. 2017, section 6, whose bounds are for queries in a range"
    name_form = "clipped-inputs"
    title_form = "queries clipped to a stated range"

    lowest: tuple[float, ...]
    highest: tuple[float, ...]

    def __post_init__(self) -> None:
        ends = zip(self.lowest, self.highest, strict=False)
        if len(self.lowest) != len(self.highest) or any(not low <= high for low, high in ends):
            raise ConfigError("lowest and highest must have one number for each column, the highest no lower")

    @classmethod
    def of(cls, schema: Schema, ranges: Mapping[str, tuple[float, float]]) -> ClippedInputs:
        """The same with ranges by the names of columns.

        Args:
            schema: of the records.
            ranges: the lowest and the highest number of each numeric column.

        Raises:
            ConfigError: a column is unknown or not numeric, or the range of a numeric one is missing.
        """
        numeric = [column.name for column in schema.columns if not column.is_categorical]
        for name in ranges:
            if name not in numeric:
                raise ConfigError(f"column {name!r} is no numeric feature; those are: {', '.join(numeric) or 'none'}")
        missing = next((name for name in numeric if name not in ranges), None)
        if missing is not None:
            raise ConfigError(f"column {missing!r} has no range; every numeric column needs one for a bound to hold")
        pair = many(number(), length=2)
        ends = [
            (-math.inf, math.inf) if column.is_categorical else pair(f"range of {column.name!r}", ranges[column.name])
            for column in schema.columns
        ]
        return cls(tuple(low for low, _ in ends), tuple(high for _, high in ends))

    def apply(self, learner: Learner) -> Learner:
        """A pipeline whose first step clips.

        Raises:
            ModelError: the learner is no estimator of scikit-learn.
        """
        from sklearn.base import clone
        from sklearn.pipeline import Pipeline

        if type(learner) is not SklearnLearner:
            raise ModelError(f"{learner.name} is no estimator of scikit-learn; clip its queries where it is served")
        estimator = clone(learner.estimator)
        steps = list(estimator.steps) if type(estimator) is Pipeline else [("model", estimator)]
        return SklearnLearner(Pipeline([("clip", ClipColumns(self.lowest, self.highest)), *steps]))
