"""Logistic regression on any subsets of a pool: what models of two classes and those of several have in common.

Models trained on parts of one pool have much in common: the second derivatives of each are roughly those of the whole
pool times the share of the records that it has. What is found for a share, once for the pool, is where all models with
about that share start. The files beside this one say how they go on from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices, Members
from leakgauge.models import AnswerKind
from leakgauge.training.engines.base import Engine, JobOutcome, PreparedJob, Refusal, RefusalKind
from leakgauge.training.engines.fitted import fitted_steps
from leakgauge.training.engines.logistic.wanted import Unsupported, given_logistic_regression
from leakgauge.training.engines.refit import train_each
from leakgauge.training.engines.stateless import FittingSteps, Given
from leakgauge.training.job import Job
from leakgauge.training.subsets import everything
from leakgauge.training.table import EachModel
from leakgauge.training.threads import one_thread

if TYPE_CHECKING:
    from leakgauge.records import Records

LOG_PROBABILITY_TOLERANCE_NATS = 1e-6
"""Largest error of a log-probability."""

MAX_GRADIENT_STEPS = 200
MAX_ROUNDS = 8

MAX_SPARSE_SHARE = 0.15
"""Share of cells that are not 0 up to which products leave the zeros out."""

METRIC_ROWS = 5_000
"""Rows that are enough to find the metric."""

SUM_RELATIVE_ERROR = 1e-15
"""Relative error of a sum in double precision, no less."""

SMALLEST_RESIDUAL_FACTOR = 1e-5
"""The largest factor by which single precision is trusted to reduce a residual."""


@dataclass(frozen=True, eq=False)
class Pool(ABC):
    """All records as the last step of the learner sees them, and what its models minimise.

    Args:
        known: what models with about ``2^-halvings`` of the records have in common, by that number.
    """

    known: dict[int, Any] = field(default_factory=dict, repr=False, kw_only=True)

    @property
    def fitted(self) -> bool:
        """Whether what the last step sees of queries was fitted on the records."""
        return False

    @abstractmethod
    def trainable(self, members: Members) -> Flags:
        """Which training sets ``[models, n]`` have records of two classes or more, bool ``[models]``."""

    @abstractmethod
    def shared(self, halvings: int) -> Any:
        """Find what models with about ``2^-halvings`` of the records have in common.

        Raises:
            numpy.linalg.LinAlgError: second derivatives are singular to rounding.
        """

    @abstractmethod
    def fill(self, queries: Floats | EachModel, members: Members, models: Indices, answers: Floats) -> Flags:
        """Put the answers of some models into the table.

        Args:
            queries: what all are asked ``[queries, columns]``, or which records each is asked about.
            members: all training sets ``[models, n]``.
            models: those to find, each with records of two classes or more.
            answers: the table ``[models, queries, k]``.

        Returns:
            Whether all answers of a model are certain to :data:`LOG_PROBABILITY_TOLERANCE_NATS`, bool ``[models]``.
        """

    def start(self, halvings: int) -> Any:
        """What models with about ``2^-halvings`` of the records have in common, found once."""
        if halvings not in self.known:
            self.known[halvings] = self.shared(halvings)
        return self.known[halvings]


def halved(n: int, sizes: Indices) -> Indices:
    """About how often the share of training sets of these sizes must be doubled to be all n records."""
    halvings: Indices = np.rint(np.log2(n / np.maximum(sizes, 1))).astype(np.int64)
    return halvings


def asked(queries: Floats | EachModel, records: Floats, model: int) -> Floats:
    """What a model is asked ``[queries, columns]``: the same as all, or rows of its own of the records."""
    own: Floats = records[queries.index[model]] if isinstance(queries, EachModel) else queries
    return own


class LogisticSubsets(Engine):
    """``LogisticRegression`` with a squared penalty, on any subsets."""

    method = "conjugate gradients for many models at once, each to a verified minimum"
    tolerance = LOG_PROBABILITY_TOLERANCE_NATS
    trains = True
    converges = True
    takes_missing = True
    takes_fitted: ClassVar[bool] = False
    """Whether earlier steps may be fitted on the records; see :mod:`leakgauge.training.engines.fitted`."""

    def prepare(self, job: Job) -> OnSubsets | Refusal:
        """Another learner, another penalty or solver and more numbers than fit are refused."""
        pool = self.pool(job)
        if isinstance(pool, Refusal):
            return pool
        if isinstance(job.queries, EachModel):
            return OnSubsets(self, job, pool, None)
        steps = fitted_steps if self.takes_fitted else None
        records = job.records if pool.fitted else job.records[:1]
        asked = _given_all(job, records, job.queries, lambda _: None, steps)
        queries = asked if isinstance(asked, Refusal) else self.queries(asked)
        return queries if isinstance(queries, Refusal) else OnSubsets(self, job, pool, queries)

    def pool(self, job: Job) -> Pool | Refusal:
        """The pool of a job; or why it cannot be done, of which its queries are no part."""
        steps = fitted_steps if self.takes_fitted else None
        case = _given_all(job, job.records, job.records.features[:1], self.unsupported, steps)
        if isinstance(case, Refusal):
            return case
        if case.fitted is not None and case.fitted.one_less:
            return Refusal(RefusalKind.SETTING, "of its earlier steps only StandardScaler is known on any subset")
        return self.pool_of(case)

    @abstractmethod
    def unsupported(self, case: Given) -> Refusal | None:
        """Why there is no such minimum, or not enough room to find it."""

    @abstractmethod
    def pool_of(self, case: Given) -> Pool:
        """The pool of what the last step is given."""

    @abstractmethod
    def queries(self, case: Given) -> Floats | Refusal:
        """What all models are asked ``[queries, columns]``."""


class OnSubsets(PreparedJob):
    """A job whose pool is looked at once.

    Args:
        engine: what does it.
        job: the whole job.
        pool: all records, as the last step of the learner sees them.
        queries: what all models are asked ``[queries, columns]``, ``None`` where each is asked about its own.
    """

    def __init__(self, engine: Engine, job: Job, pool: Pool, queries: Floats | None) -> None:
        super().__init__(engine, job)
        self.pool, self.queries = pool, queries

    def share(self) -> None:
        """Find where all models start."""
        subsets = self.job.subsets
        sizes = np.unique([np.count_nonzero(subsets.row(model)) for model in range(len(subsets))])
        with np.errstate(all="ignore"), one_thread(), suppress(np.linalg.LinAlgError):
            for halvings in np.unique(halved(len(self.job.records), sizes)):
                self.pool.start(int(halvings))

    def answers(self, models: Indices) -> JobOutcome:
        """The answers ``[m, queries, k]``, and which models have records of one class only."""
        job = self.job.part(models)
        members = job.subsets.dense()
        answers = np.full((len(members), job.n_queries, job.n_answers), np.nan)
        several = self.pool.trainable(members)
        failures = {int(model): one_class(job, members[model]) for model in np.flatnonzero(~several)}
        queries = job.queries if self.queries is None else self.queries
        with np.errstate(all="ignore"), one_thread():
            sure = self.pool.fill(queries, members, np.flatnonzero(several), answers)
        lost = np.flatnonzero(several & ~sure)
        kind = AnswerKind.PROBABILITIES if len(failures) < len(members) else None
        found = JobOutcome(answers, kind, failures)
        # Hardly any penalty, and classes that can be told apart: no better than the solver asked for.
        return found.with_others(lost, replace(train_each(job, lost), n_unconverged=len(lost))) if len(lost) else found


def _given_all(
    job: Job, records: Records, queries: Floats, unsupported: Unsupported, fitted: FittingSteps | None
) -> Given | Refusal:
    """What the last step sees of records and queries; or why it cannot be done."""
    whole = replace(job, records=records, subsets=everything(len(records)), queries=queries, places=None)
    return given_logistic_regression(whole, unsupported, fitted=fitted)


def one_class(job: Job, members: Flags) -> str:
    """Why a model cannot be trained on these records ``[n]``, which have one label."""
    return f"{job.learner.name} cannot be trained on {members.sum()} records that all have the same label"
