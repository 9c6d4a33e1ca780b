"""What the closed forms have in common: one solution for all models, answers to any query, displaced parameters.

A closed form for leave-one-out models works on all records once and then speaks of each model without another look at
the others. An engine here says which learner it is for and how a job is solved; what was solved answers about the
removed records themselves (the fast road), about any other queries, and, for learners that release a vector of
parameters, says how far each record moves it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib import import_module
from typing import Any, ClassVar, TypeAlias

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.errors import ModelError
from leakgauge.models.sklearn import last_step
from leakgauge.training.engines.base import Engine, JobOutcome, PreparedJob, Refusal, RefusalKind
from leakgauge.training.engines.fitted import MOVING_VALUES, fitted_steps
from leakgauge.training.engines.stateless import Given, fill_by_training, given
from leakgauge.training.job import Job
from leakgauge.training.learners import trained
from leakgauge.training.threads import one_thread

Answers: TypeAlias = tuple[Floats, Flags]
"""Answers, models first, and bool ``[models]``: which models rounding, ties or special cases leave to training."""

UNIT_ROUNDOFF = 2.0**-53
"""Relative error of one operation in float64."""

ROUNDING_DEVIATION_SHARE = 1e5 * UNIT_ROUNDOFF
"""A standard deviation below this share of the values themselves is of rounding errors, not of people."""

BLOCK_NUMBERS = 2**21
"""Numbers in the answers of a block of models."""


class Solved(ABC):
    """A leave-one-out job as far as it is the same for all models."""

    @abstractmethod
    def own(self, rows: Indices) -> Answers:
        """What the model without each record says about that record.

        Args:
            rows: the records, int ``[m]``.

        Returns:
            Answers ``[m, k]``, and which models are left to training ``[m]``.
        """

    @abstractmethod
    def asked(self, rows: Indices, queries: Floats) -> Answers:
        """What the model without each record says about queries.

        Args:
            rows: the records, int ``[m]``.
            queries: ``[q, columns]`` for all models, or ``[m, q, columns]``.

        Returns:
            Answers ``[m, q, k]``, and which models are left to training ``[m]``.
        """


class Moving(Solved):
    """The same for a learner whose model is a vector of parameters."""

    @abstractmethod
    def moves(self, rows: Indices) -> Answers:
        """How far the parameters move without each record ``[m, parameters]``, and which are left to training."""


class ClosedForm(Engine):
    """An engine that solves a leave-one-out job once for all of its models."""

    learners: ClassVar[tuple[str, ...]]
    """The classes of scikit-learn that it is for, such as ``linear_model.Ridge``; a subclass is another learner."""
    takes_missing = True
    takes_sparse: ClassVar[bool] = False
    takes_fitted: ClassVar[bool] = False
    """Whether earlier steps may be fitted on the records; see :mod:`leakgauge.training.engines.fitted`."""
    by_unit: ClassVar[bool] = False
    """Whether it leaves out persons of several records; by default it leaves out records."""

    def prepare(self, job: Job) -> PreparedJob | Refusal:
        """Solve the job, once for all models; another learner or sort of job, parameters or data are refused."""
        kinds = tuple(map(_class_named, self.learners))
        fitting = fitted_steps if self.takes_fitted else None
        case = given(job, kinds, sparse=self.takes_sparse, any_query=True, fitted=fitting, by_unit=self.by_unit)
        if isinstance(case, Refusal):
            return case
        if case.fitted is not None and case.fitted.filled:
            return Refusal(RefusalKind.SETTING, MOVING_VALUES)
        with np.errstate(all="ignore"), one_thread():
            solved = self.solve(case)
        return Refusal(RefusalKind.SETTING, solved) if isinstance(solved, str) else Ready(self, job, case, solved)

    @abstractmethod
    def solve(self, case: Given) -> Solved | str:
        """All that the models have in common, or why there is no closed form."""


class Displacing(ClosedForm):
    """A closed form for a learner whose model is a vector of parameters."""

    @abstractmethod
    def parameters(self, estimator: Any, classes: Any) -> Floats:
        """The parameters of a fitted estimator, in the order in which displacements name them.

        Args:
            estimator: the last step of the learner, fitted.
            classes: label values in the order of the schema, ``[classes]``.
        """


class Ready(PreparedJob):
    """A solved job.

    Args:
        engine: what solved it.
        job: the whole job.
        case: as the last step of the learner sees it.
        solved: all that the models have in common.
    """

    engine: ClosedForm

    def __init__(self, engine: ClosedForm, job: Job, case: Given, solved: Solved) -> None:
        super().__init__(engine, job)
        self.case, self.solved = case, solved

    def answers(self, models: Indices) -> JobOutcome:
        """The answers of some models; those that rounding, ties or special cases leave open are trained."""
        with np.errstate(all="ignore"), one_thread():
            if self.job.asks_removed:
                own, doubtful = self.solved.own(self.case.removed[models])
                table = own[:, None, :]
            else:
                table, doubtful = self._any_answers(models)
        return self._outcome(fill_by_training(self.job, models, table, doubtful | self.case.unknown(models)))

    def nearly(self, most: int) -> Floats:
        """The answers ``[models, queries, k]`` of all models, where as many are trained at most as are worth it.

        For who needs no exact answers: where rounding or ties leave more than ``most`` models open, they are as the
        closed form has them, which may be NaN.
        """
        models = np.arange(len(self.job.subsets))
        with np.errstate(all="ignore"), one_thread():
            table, doubtful = self._any_answers(models)
        unknown = self.case.unknown(models)
        whole = doubtful | unknown
        return fill_by_training(self.job, models, table, whole if whole.sum() <= most else unknown)

    def displacements(self) -> Floats | None:
        """How far the parameters that the model releases move without each record.

        What a defence has to hide: the largest norm over the records is the sensitivity of the parameters on these
        data. The order of the parameters is that of :meth:`Displacing.parameters`; the job's queries do not matter.

        Returns:
            ``[models, parameters]``: those of the model without the record less those of the model of all; NaN where
            there is no such model, or it has other parameters (a class less). ``None`` for other learners, and where
            earlier steps are fitted on the records, which have parameters too.
        """
        if not isinstance(self.solved, Moving) or self.case.fitted is not None:
            return None
        with np.errstate(all="ignore"), one_thread():
            moves, doubtful = self.solved.moves(self.case.removed)
            for model in np.flatnonzero(doubtful):
                moves[model] = self._trained_move(int(model), moves.shape[1])
        return moves

    def _any_answers(self, models: Indices) -> Answers:
        job, case = self.job, self.case
        removed = case.removed[models]
        shape = (len(removed), job.n_queries, job.n_answers)
        table, doubtful = np.empty(shape), np.zeros(shape[0], dtype=bool)
        shared = None if case.queries is None else dense(case.queries)
        n_columns = case.matrix.shape[1]
        width = shape[1] * (shape[2] if shared is not None else max(shape[2], n_columns))
        for part in blocks(shape[0], width):
            queries = shared
            if queries is None:
                assert case.index is not None
                index = case.index[models[part]]
                queries = dense(case.matrix[index.ravel()]).reshape(*index.shape, n_columns)
            table[part], doubtful[part] = self.solved.asked(removed[part], queries)
        return table, doubtful

    def _trained_move(self, model: int, n_parameters: int) -> Floats:
        assert isinstance(self.engine, Displacing)
        job = self.job
        classes = job.records.schema.decode_labels(np.arange(len(job.records.schema.classes)))
        found = []
        for records in (job.records, job.records[job.subsets.row(model)]):
            try:
                fitted: Any = trained(job.learner, records, seed=job.seed_of(model)).model
            except ModelError:
                return np.full(n_parameters, np.nan)
            found.append(self.engine.parameters(last_step(fitted.estimator), classes))
        if any(len(parameters) != n_parameters for parameters in found):
            return np.full(n_parameters, np.nan)
        return change(found[1], found[0])


def _class_named(name: str) -> type:
    module, kind = name.split(".")
    found: type = getattr(import_module(f"sklearn.{module}"), kind)
    return found


def change(after: Floats, before: Floats) -> Floats:
    """The difference, 0 where both are the same infinity."""
    return np.asarray(np.where(after == before, 0.0, after - before))


def products(rows: Floats, queries: Floats) -> Floats:
    """Each model's row times each of its queries ``[m, q]``.

    Args:
        rows: ``[m, columns]``.
        queries: ``[q, columns]`` for all models, or ``[m, q, columns]``.
    """
    if queries.ndim == 2:
        return np.asarray(rows @ queries.T)
    return np.asarray(np.matmul(queries, rows[:, :, None])[:, :, 0])


def classes_first(scores: Floats) -> Floats:
    """A copy of ``[..., classes]`` as ``[classes, ...]``, over which few classes are reduced many times faster."""
    return np.array(np.moveaxis(scores, -1, 0), order="C")


def blocks(n_models: int, width: int) -> Iterator[slice]:
    """Models whose answers together are few enough to be held several times over."""
    step = max(1, BLOCK_NUMBERS // max(1, width))
    return (slice(start, start + step) for start in range(0, n_models, step))


def dense(matrix: Any) -> Floats:
    """A table of numbers, or a SciPy matrix, as an array."""
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)
