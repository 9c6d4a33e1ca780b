"""What many models answered, in one table: the only thing that attacks and influence look at."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Indices, Members
from leakgauge.errors import ModelError
from leakgauge.escaping import shapes
from leakgauge.models import AnswerKind, binned_logs
from leakgauge.training.subsets import Subsets
from leakgauge.training.table_file import let_go


@dataclass(frozen=True)
class EachModel:
    """Every model is asked about records of its own.

    Args:
        index: int ``[models, queries]``: which rows of the records model i is asked about.
    """

    index: Indices

    __repr__ = shapes

    def __post_init__(self) -> None:
        if self.index.ndim != 2:
            raise ValueError(f"index must be [models, queries], got shape {self.index.shape}")


@dataclass(frozen=True)
class PredictionTable:
    """The answers of many models.

    Answers are float64: at float32 a probability of 0.29 falls into the wrong bin of width 0.01.

    Args:
        answers: ``[models, queries, k]``: natural log-probabilities (``kind`` probabilities), 0 at the named class
            and ``-inf`` elsewhere (labels), or ``[models, queries, 1]`` numbers (values). NaN throughout for a
            model that could not be trained.
        kind: what the answers are.
        subsets: what each model was trained on.
        seeds: int ``[models]``.
        engine: the name of the engine that made the answers.
        query_index: int ``[models, queries]`` where each model was asked about records of its own, else ``None``.
        failures: why models could not be trained, by model.
        n_unconverged: how many models' solvers said that they had not converged.
    """

    answers: Floats
    kind: AnswerKind
    subsets: Subsets
    seeds: NDArray[np.int64]
    engine: str
    query_index: Indices | None = None
    failures: dict[int, str] = field(default_factory=dict)
    n_unconverged: int = 0

    __repr__ = shapes

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def members(self) -> Members:
        """Whether each record was in each model's training set, bool ``[models, records]``."""
        return self.subsets.dense()

    @property
    def log_probabilities(self) -> Floats:
        """The answers as log-probabilities; refused where models do not answer probabilities."""
        if self.kind is AnswerKind.VALUES:
            raise ModelError("these models predict numbers, not probabilities; use table.values")
        return self.answers

    @property
    def values(self) -> Floats:
        """Predicted values ``[models, queries]`` of regressors."""
        if self.kind is not AnswerKind.VALUES:
            raise ModelError("these models predict classes, not numbers; use table.log_probabilities")
        return self.answers[:, :, 0]

    def binned(self, width: float = 0.01) -> PredictionTable:
        """The table as it is when every model's probabilities are released as bin centres."""
        return replace(self, answers=binned_logs(self.log_probabilities, width))

    def rows(self, models: Indices) -> PredictionTable:
        """The part of the table that belongs to some of the models; subsets become a matrix.

        Of models that follow each other, in either direction, the answers are those of the whole table and no copy.
        """
        from leakgauge.training.subsets import DenseSubsets

        step = int(models[1] - models[0]) if len(models) > 1 else 1
        if len(models) and abs(step) == 1 and (np.diff(models) == step).all():
            first, end = int(models[0]), int(models[-1]) + step
            answers = self.answers[slice(first, None if end < 0 else end, step)]
        else:
            answers = self.answers[models]
        return replace(
            self,
            answers=answers,
            subsets=DenseSubsets(np.stack([self.subsets.row(int(m)) for m in models])),
            seeds=self.seeds[models],
            query_index=None if self.query_index is None else self.query_index[models],
            failures={i: self.failures[int(m)] for i, m in enumerate(models) if int(m) in self.failures},
        )

    def about(self, queries: Indices) -> PredictionTable:
        """The part of the table about some of the records, where every model was asked about each record in order."""
        from leakgauge.training.subsets import DenseSubsets

        about = replace(self, answers=self.answers[:, queries], subsets=DenseSubsets(self.members[:, queries]))
        self.let_go()
        return about

    def let_go(self) -> None:
        """Where the answers are in a file, keep none of them in memory until they are looked at again."""
        let_go(self.answers)
