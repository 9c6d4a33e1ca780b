"""The plain loop: train every model. Slow, exact by definition, and the twin of all other engines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Indices
from leakgauge.errors import ModelError
from leakgauge.models import AnswerKind, answers, kind_of
from leakgauge.training.engines.base import Engine, JobOutcome, PreparedJob
from leakgauge.training.job import Job
from leakgauge.training.learners import trained
from leakgauge.training.threads import one_thread


class Refit(Engine):
    """Train and ask the models one after another, on one thread: whatever the learner is."""

    name = "refit"
    method = "training each model"
    tolerance = 0.0
    trains = True
    chunk = 16
    spreads = True

    def prepare(self, job: Job) -> Loop:
        """Any job."""
        return Loop(self, job)


class Loop(PreparedJob):
    """Models to be trained."""

    def answers(self, models: Indices) -> JobOutcome:
        """The answers, and the reasons why models could not be trained or did not answer."""
        job = self.job
        table = np.full((len(models), job.n_queries, job.n_answers), np.nan)
        kind: AnswerKind | None = None
        failures, n_unconverged = {}, 0
        # One thread, whoever runs it: the order of additions, and so the last digit, depends on the threads.
        with one_thread():
            for place, model in enumerate(models.tolist()):
                try:
                    fitted = trained(job.learner, job.records[job.subsets.row(model)], seed=job.seed_of(model))
                    table[place] = answers(fitted.model, job.queries_of(model), job.n_answers)
                except ModelError as error:
                    failures[place] = str(error)
                    continue
                kind = kind_of(fitted.model)
                n_unconverged += not fitted.converged
        return JobOutcome(table, kind, failures, n_unconverged)

    def floor(self) -> NDArray[np.float64]:
        """How far answers of the model of all records move when its solver goes on to the end; 0 without a solver."""
        job, tight = self.job.of_everyone(), self.job.learner.with_converged_solver()
        if tight is None:
            return np.zeros(self.job.asked_shape)
        near, end = (Loop(self.engine, one).all().answers[0] for one in (job, replace(job, learner=tight)))
        with np.errstate(invalid="ignore"):
            moved = np.where(near == end, 0.0, np.abs(near - end))
        return np.asarray(moved.max(axis=1)).reshape(self.job.asked_shape)


def train_each(job: Job, models: Indices) -> JobOutcome:
    """Some of the models of a job, trained: the way out where an engine has none."""
    return Refit().prepare(job).answers(models)
