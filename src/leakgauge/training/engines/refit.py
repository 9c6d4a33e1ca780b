"""The plain loop: train every model. Slow, exact by definition, and the twin of all other engines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from leakgauge.errors import ModelError
from leakgauge.models import AnswerKind, answers, kind_of
from leakgauge.training.engines.base import Engine, Outcome
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

    def refuses(self, job: Job) -> None:
        """Nothing."""

    def run(self, job: Job) -> NDArray[np.float64]:
        """The answers ``[models, queries, k]``; NaN for a model that could not be trained."""
        return self.outcome(job).answers

    def floor(self, job: Job) -> NDArray[np.float64]:
        """How far the answers move when the solver is made to go on to the end ``[queries]``; 0 without a solver."""
        tight = job.learner.solved_to_the_end()
        if tight is None:
            return np.zeros(job.n_queries)
        near, end = self.run(job)[0], self.run(replace(job, learner=tight))[0]
        with np.errstate(invalid="ignore"):
            moved = np.where(near == end, 0.0, np.abs(near - end))
        return np.asarray(moved.max(axis=1))

    def outcome(self, job: Job) -> Outcome:
        """The answers, and the reasons why models could not be trained or did not answer."""
        table = np.full((len(job.subsets), job.n_queries, job.n_answers), np.nan)
        kind: AnswerKind | None = None
        failures, n_unconverged = {}, 0
        # One thread, whoever runs it: the order of additions, and so the last digit, depends on the threads.
        with one_thread():
            for model in range(len(job.subsets)):
                try:
                    fitted = trained(job.learner, job.records[job.subsets.row(model)], seed=job.seed_of(model))
                    table[model] = answers(fitted.model, job.queries_of(model), job.n_answers)
                except ModelError as error:
                    failures[model] = str(error)
                    continue
                kind = kind_of(fitted.model)
                n_unconverged += not fitted.converged
        return Outcome(table, kind, failures, n_unconverged)
