"""The interface of engines: one way each of getting the answers of many models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from leakgauge.models import AnswerKind
from leakgauge.training.job import Job


@dataclass(frozen=True)
class Outcome:
    """What became of a job, or of a part of one.

    Args:
        answers: ``[models, queries, k]``; NaN for a model that could not have been trained.
        kind: what the answers are; ``None`` where no model could be trained.
        failures: why models could not be trained, by their place in the job.
        n_unconverged: how many models' solvers did not converge.
    """

    answers: NDArray[np.float64]
    kind: AnswerKind | None
    failures: dict[int, str] = field(default_factory=dict)
    n_unconverged: int = 0


class Engine(ABC):
    """A way to get the answers of many models.

    It should be the case that ``engine.run(job)`` equals what :class:`leakgauge.training.engines.refit.Refit` finds
    with a fully converged solver, to ``tolerance`` on every log-probability (or predicted value, relative to its
    scale), for every job that it does not refuse. An engine for a randomised learner draws its own random numbers
    from the seeds of the job; its ``method`` then says in which sense it equals the plain loop.

    Attributes:
        name: what tables, chunks and reports call it. Chunks are named by it too: when the numbers of an engine
            change, so must its name or the version of the package.
        method: in a few words, how the answers are had.
        tolerance: see above.
        trains: whether every model is trained, though many at once; otherwise no model but a few is.
        converges: whether it finds the minimum of an objective, which the learner's own solver may stop short of.
        chunk: how many models are done, stored and handed to a worker together; ``None`` for all at once.
    """

    name: ClassVar[str]
    method: ClassVar[str]
    tolerance: ClassVar[float]
    trains: ClassVar[bool] = False
    converges: ClassVar[bool] = False
    chunk: ClassVar[int | None] = None

    @abstractmethod
    def refuses(self, job: Job) -> str | None:
        """Why this engine cannot do the job, in a few words for the user; ``None`` when it can.

        It should be the case that an engine that does not refuse a job does not refuse a part of it.
        """

    @abstractmethod
    def run(self, job: Job) -> NDArray[np.float64]:
        """The answers, ``[models, queries, k]``; NaN for a model that could not have been trained."""

    def floor(self, job: Job) -> NDArray[np.float64]:
        """How far an answer may be off for reasons of arithmetic alone: rounding, and solvers that stop.

        Args:
            job: one model trained on all records; its answers stand for those of all models.

        Returns:
            For each query the largest error of a log-probability in nats, or of a predicted value ``[queries]``.
        """
        return np.full(job.n_queries, self.tolerance)

    def outcome(self, job: Job) -> Outcome:
        """The answers, and what else there is to say about them."""
        answers = self.run(job)
        lost = np.flatnonzero(np.isnan(answers).all(axis=(1, 2)))
        kind = AnswerKind.PROBABILITIES if job.records.schema.classes else AnswerKind.VALUES
        return Outcome(answers, kind, {int(model): "no model exists without this record" for model in lost})
