"""What is protected: an algorithm that turns a training set out of a fixed pool into a vector of numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from leakgauge.arrays import Floats, Indices, Members
from leakgauge.defences.mip.parameters import Layout, layout_of
from leakgauge.errors import DataError, ModelError
from leakgauge.training import EachModel, Job, Learner, Randomness, leave_one_out, plan
from leakgauge.training.engines import EXACT

if TYPE_CHECKING:
    from leakgauge.models import Model
    from leakgauge.records import Records


class Algorithm(ABC):
    """An algorithm together with the pool that its training sets are drawn from.

    It should be the case that ``output(members, seed=s)`` is the same each time.

    Attributes:
        first_error: the message of the first error for which a training set gave nothing; empty where there was none.
    """

    first_error: str = ""

    @property
    @abstractmethod
    def n_pool(self) -> int:
        """How many records there are to draw from."""

    @property
    @abstractmethod
    def randomised(self) -> bool:
        """Whether the seed may change the output."""

    @abstractmethod
    def output(self, members: Members, *, seed: int) -> Floats:
        """What a training set gives, without noise.

        Args:
            members: who is in it, bool ``[n]``.
            seed: drives every random choice of the algorithm.

        Returns:
            ``[d]``, with the same d for every training set; NaN where the training set gives nothing.
        """

    def removals(self, members: Members, *, seed: int) -> Floats | None:
        """How far the output moves without each member in turn ``[k, d]``; ``None`` where there is no short cut."""
        return None

    def covariance(self, size: int) -> Floats | None:
        """What noise on the output should be like, from the pool alone and never from one training set.

        Args:
            size: k, records in a training set.

        Returns:
            ``[d, d]``, positive definite, up to a factor; ``None`` where none is known.
        """
        return None


class _OfRows(Algorithm):
    """A function of the rows of the pool ``[n, d]``."""

    rows: Floats

    @property
    def n_pool(self) -> int:
        """The number of rows."""
        return len(self.rows)

    @property
    def randomised(self) -> bool:
        """Never."""
        return False


class Mean(_OfRows):
    """The mean of one vector for each record: of numbers, of products, or of indicators, which gives a table of shares.

    Args:
        rows: a vector for each record of the pool ``[n, d]``.

    Raises:
        DataError: these are not finite vectors.
    """

    def __init__(self, rows: Any) -> None:
        self.rows = _vectors(rows)

    def output(self, members: Members, *, seed: int = 0) -> Floats:
        """The mean over the members ``[d]``."""
        del seed
        return np.asarray(self.rows[members].mean(axis=0))

    def deviations(self, size: int) -> Floats:
        """The exact deviation of the output over random training sets of that size ``[d]``."""
        n = len(self.rows)
        return np.asarray(self.rows.std(axis=0, ddof=1) * math.sqrt((n - size) / (n * size)))

    def about_mean(self, size: int) -> Floats:
        """How far each record, in a training set of that size, moves the output from the pool's mean ``[n, d]``.

        Exchanging one record for another moves the output by the difference of their rows here.
        """
        return np.asarray((self.rows - self.rows.mean(axis=0)) / size)


class Statistic(_OfRows):
    """Any function of the rows of a training set that gives a vector.

    Args:
        function: from rows ``[k, p]`` to a vector ``[d]``; deterministic.
        rows: of the pool ``[n, p]``.

    Raises:
        DataError: the rows are not finite.
    """

    def __init__(self, function: Callable[[Floats], Any], rows: Any) -> None:
        self.function = function
        self.rows = _vectors(rows)

    def output(self, members: Members, *, seed: int = 0) -> Floats:
        """What the function gives ``[d]``."""
        del seed
        return np.asarray(self.function(self.rows[members]), dtype=np.float64).ravel()


class ModelParameters(Algorithm):
    """The parameters of the models that a learner trains.

    For scikit-learn's linear models, naive Bayes and PyTorch modules. Earlier steps of a pipeline must be fixed: what
    they learnt would be released beside the parameters, without noise.

    A learner that is not randomised is solved to its end, so that what is released is what was analysed.

    Args:
        learner: the algorithm.
        records: the pool.

    Raises:
        ModelError: the learner's models are no vector of parameters, or an earlier step learns from the records.
    """

    def __init__(self, learner: Learner, records: Records) -> None:
        self.records = records
        self.layout: Layout = layout_of(learner, records.schema)
        self.learner = learner if learner.randomised else learner.with_converged_solver() or learner

    @property
    def n_pool(self) -> int:
        """The number of records."""
        return len(self.records)

    @property
    def randomised(self) -> bool:
        """Whether the learner is."""
        return self.learner.randomised

    def output(self, members: Members, *, seed: int = 0) -> Floats:
        """The parameters ``[d]``; NaN where the training set has no such model, say for want of a class."""
        try:
            fitted = self.learner.fit(self.records[members], seed=seed).model
        except ModelError as error:
            self.first_error = self.first_error or str(error)
            return np.full(self.layout.dimension, np.nan)
        return self.layout.vector(fitted)

    def removals(self, members: Members, *, seed: int = 0) -> Floats | None:
        """By a closed form ``[k, d]``, NaN without a model; ``None`` if the learner has no closed form."""
        if self.randomised:
            return None
        records = self.records[members]
        own: Indices = np.arange(len(records))
        job = Job(self.learner, records, leave_one_out(len(records)), EachModel(own[:, None]), seed, Randomness.COMMON)
        prepared = plan(job, engines=EXACT).prepared
        try:
            found = prepared.displacements()
        except np.linalg.LinAlgError:
            found = np.empty((len(records), 0))
        if found is None:
            return None
        moves = found.reshape(len(records), -1)
        same = moves.shape[1] == self.layout.dimension
        return moves if same else np.full((len(records), self.layout.dimension), np.nan)

    def covariance(self, size: int) -> Floats | None:
        """As the curvature of the loss over the pool has it ``[d, d]``, for ``LogisticRegression``; else ``None``."""
        return self.layout.covariance(self.records, size / self.n_pool)

    def model(self, parameters: Floats) -> Model:
        """A usable model with these parameters and nothing else of any training set.

        Args:
            parameters: ``[d]``, finite, with or without noise. Shares are made to sum to 1 again, and variances that
                noise made negative become the smallest of the others: functions of what is released anyway.

        Raises:
            ModelError: there are not d finite numbers.
        """
        vector = np.asarray(parameters, dtype=np.float64)
        if vector.shape != (self.layout.dimension,) or not np.isfinite(vector).all():
            raise ModelError(
                f"parameters must be {self.layout.dimension} finite numbers, got shape {vector.shape}"
                + ("" if vector.shape != (self.layout.dimension,) else " with NaN or infinity")
            )
        return self.layout.model(vector)


def _vectors(rows: Any) -> Floats:
    array = np.asarray(rows, dtype=np.float64)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[0] < 2 or not array.shape[1]:
        raise DataError(f"rows must be [records, numbers] with two records or more, got shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise DataError(f"row {bad[0]} holds NaN or infinity ({len(bad)} such rows); fill them in or leave them out")
    return array
