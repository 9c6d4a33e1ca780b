"""The interface of engines: one way each of getting the answers of many models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from leakgauge.training.job import Job


class Engine(ABC):
    """A way to get the answers of many models without going through the plain loop.

    It should be the case that ``engine.run(job)`` equals what :class:`leakgauge.training.engines.refit.Refit` finds
    with a fully converged solver, to ``tolerance`` on every log-probability (or predicted value, relative to its
    scale), for every job that it does not refuse.
    """

    name: ClassVar[str]
    method: ClassVar[str]
    tolerance: ClassVar[float]

    @abstractmethod
    def refuses(self, job: Job) -> str | None:
        """Why this engine cannot do the job, in a few words for the user; ``None`` when it can."""

    @abstractmethod
    def run(self, job: Job) -> NDArray[np.float64]:
        """The answers, ``[models, queries, k]``; NaN for a model that could not have been trained."""
