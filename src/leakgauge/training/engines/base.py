"""The interface of engines: one way each of getting the answers of many models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Indices
from leakgauge.models import AnswerKind
from leakgauge.training.job import Job


@dataclass(frozen=True)
class JobOutcome:
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

    def with_others(self, places: Indices, others: JobOutcome) -> JobOutcome:
        """With the models at some places ``[m]`` as they came out elsewhere; answers are put in place."""
        self.answers[places] = others.answers
        failures = self.failures | {int(places[model]): why for model, why in others.failures.items()}
        kind = None if len(failures) == len(self.answers) else self.kind or others.kind
        return JobOutcome(self.answers, kind, dict(sorted(failures.items())), self.n_unconverged + others.n_unconverged)


class RefusalKind(StrEnum):
    """Why an engine does not do a job.

    ``LEARNER``: it is for other learners. ``JOB``: it is for other jobs of this learner, say for leaving records out.
    ``SETTING``: the learner or a step before it has a setting that the engine has no answer for. ``DATA``: the records
    or queries are such. ``SIZE``: there are too many. ``MACHINE``: this machine lacks what it runs on.
    """

    LEARNER = "learner"
    JOB = "job"
    SETTING = "setting"
    DATA = "data"
    SIZE = "size"
    MACHINE = "machine"


@dataclass(frozen=True)
class Refusal:
    """An engine that cannot do a job says why.

    Args:
        why: the kind of reason.
        words: the reason, for the user.
    """

    why: RefusalKind
    words: str

    def __str__(self) -> str:
        return self.words


class PreparedJob(ABC):
    """A job that an engine can do: looked at once, and what its models share is found once.

    It is what workers are given: it can be pickled, and holds what is shared once :meth:`share` was called.

    Args:
        engine: what does it.
        job: the whole job.
    """

    def __init__(self, engine: Engine, job: Job) -> None:
        self.engine = engine
        self.job = job

    def share(self) -> None:  # noqa: B027  # most share nothing that is not there already
        """Find what all models share, before the work is handed out; nothing where that is done or costs nothing."""

    @abstractmethod
    def answers(self, models: Indices) -> JobOutcome:
        """What some of the models answer.

        It should be the case that the answers of some of the models are those rows of the answers of all.

        Args:
            models: places in the job, int ``[m]``.

        Returns:
            Their answers ``[m, queries, k]``, and why some could not be trained, by their place among these.
        """

    def floor(self) -> NDArray[np.float64]:
        """How far an answer may be off for reasons of arithmetic alone: rounding, and solvers that stop.

        Returns:
            ``[queries]`` where all models are asked the same, else ``[models, queries]``: the largest error of a
            log-probability in nats, or of a predicted value.
        """
        job = self.job
        return np.full(job.asked_shape, self.engine.tolerance)

    def displacements(self) -> NDArray[np.float64] | None:
        """How far the parameters move without each record ``[models, ...]``; ``None`` where they are not known.

        Raises:
            numpy.linalg.LinAlgError: they could not be found.
        """
        return None

    def all(self) -> JobOutcome:
        """What all models answer."""
        return self.answers(np.arange(len(self.job.subsets)))

    def _outcome(self, answers: NDArray[np.float64]) -> JobOutcome:
        """The outcome of answers ``[m, queries, k]``: where all are NaN, no model exists."""
        lost = np.flatnonzero(np.isnan(answers).all(axis=(1, 2)))
        kind = AnswerKind.PROBABILITIES if self.job.records.schema.classes else AnswerKind.VALUES
        some = len(lost) < len(answers)
        return JobOutcome(
            answers, kind if some else None, {int(model): "no model exists without this record" for model in lost}
        )


FEWEST_CHUNKS = 128
"""Into which models are cut that gain nothing from being done together: so many workers have something to do."""


class Engine(ABC):
    """A way to get the answers of many models.

    It should be the case that the answers of a prepared job equal what
    :class:`leakgauge.training.engines.refit.Refit` finds with a fully converged solver, to ``tolerance`` on every
    log-probability (or predicted value, relative to its scale). An engine for a randomised learner draws its own random
    numbers from the seeds of the job; its ``method`` then says in which sense it equals the plain loop.

    Attributes:
        name: what tables, chunks and reports call it. Chunks are named by it too: when the numbers of an engine
            change, so must its name or the version of the package.
        method: in a few words, how the answers are had.
        tolerance: see above.
        trains: whether every model is trained, though many at once; otherwise no model but a few is.
        converges: whether it finds the minimum of an objective, which the learner's own solver may stop short of.
        redraws: whether its models are the learner's in distribution only, and none is the one that the learner trains
            with the same seed: what a seed releases is never taken from it.
        chunk: how many models at most are done, stored and handed to a worker together; ``None`` for all at once.
        spreads: whether models gain nothing from being done together, so that chunks of a few models may be smaller.
        takes_missing: whether quantities may be missing (NaN) in records and queries, which earlier steps fill in.
    """

    name: ClassVar[str]
    method: ClassVar[str]
    tolerance: ClassVar[float]
    trains: ClassVar[bool] = False
    converges: ClassVar[bool] = False
    redraws: ClassVar[bool] = False
    chunk: ClassVar[int | None] = None
    spreads: ClassVar[bool] = False
    takes_missing: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, job: Job) -> PreparedJob | Refusal:
        """The job, ready to be done; or why this engine cannot do it."""

    def chunk_of(self, n_models: int) -> int | None:
        """How many of the models of a job are done together: the same for any number of workers."""
        if self.chunk is None or not self.spreads:
            return self.chunk
        return min(self.chunk, -(-n_models // FEWEST_CHUNKS))
