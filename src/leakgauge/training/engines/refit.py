"""The plain loop: train every model. Slow, exact by definition, and the twin of all other engines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.errors import ModelError
from leakgauge.models import answers, kind_of
from leakgauge.training.job import Job

CHUNK = 16
"""Models in a chunk: what a crash can lose, and the unit of parallel work. It does not depend on the workers."""


def chunks(n_models: int) -> list[range]:
    """The models cut into chunks."""
    return [range(start, min(start + CHUNK, n_models)) for start in range(0, n_models, CHUNK)]


def refit(job: Job, models: range) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Train and ask some of the job's models, one after another, on one thread.

    Returns:
        Answers ``[models, queries, k]`` and notes: ``kind``, ``failures`` (model to reason) and ``n_unconverged``.
    """
    from threadpoolctl import threadpool_limits

    table = np.full((len(models), job.n_queries, job.n_answers), np.nan)
    notes: dict[str, Any] = {"kind": None, "failures": {}, "n_unconverged": 0}
    # One thread, whoever runs it: the order of additions, and so the last digit, depends on the threads.
    with threadpool_limits(limits=1):
        for place, model in enumerate(models):
            try:
                fitted = job.learner.fit(job.records[job.subsets.row(model)], seed=job.seed_of(model))
                table[place] = answers(fitted.model, job.queries_of(model), job.n_answers)
            except ModelError as error:
                notes["failures"][str(model)] = str(error)
                continue
            notes["kind"] = kind_of(fitted.model).value
            notes["n_unconverged"] += not fitted.converged
    return table, notes
