"""One request to train many models, in a form that engines read and whose parts can be named."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge._version import __version__
from leakgauge.arrays import Floats, Indices
from leakgauge.escaping import shapes
from leakgauge.streams import seed_of, seeds_of
from leakgauge.training.learners import Learner, identity
from leakgauge.training.subsets import DenseSubsets, LeaveOneOut, Subsets, everything
from leakgauge.training.table import EachModel

if TYPE_CHECKING:
    from leakgauge.records import Records

Queries: TypeAlias = Floats | EachModel

FIRST_PLACE = 2**32 - 1
"""What stands for the first place of a job: numpy's seed sequences do not tell a last 0 from nothing, so that the first
of the models with seeds of their own would share its random numbers with models that have the job's seed in common."""

CHUNK_FORMAT = 2
"""Raised when stored chunks of an older form must not be read again."""


class Randomness(StrEnum):
    """Which random numbers the models of one job use.

    ``COMMON``: the same seed for all, so that two models differ by their records alone as far as the learner allows.
    ``INDEPENDENT``: a seed of its own for each, as models trained by different people have.
    """

    COMMON = "common"
    INDEPENDENT = "independent"


@dataclass(frozen=True)
class Job:
    """Train ``learner`` on every subset of ``records`` and ask each model the queries.

    Args:
        learner: the algorithm.
        records: the pool that the subsets index.
        subsets: one set of records for each model.
        queries: encoded features ``[queries, d]`` that all models answer, or records of its own for each.
        seed: drives every random choice.
        randomness: whether the models share their random numbers.
        device: where engines that can use an accelerator run, as torch calls it (``cpu``, ``cuda``, ``cuda:1``).
        places: the place of each model in the job that this one is a part of, int ``[models]``; seeds hang on it.
            ``None`` for a whole job.
        shared_seed: of models that share their random numbers; drawn from ``seed`` if ``None``.
        as_trained: whether seeds count, so that the models have to be those that the learner trains with them.
    """

    learner: Learner
    records: Records
    subsets: Subsets
    queries: Queries
    seed: int
    randomness: Randomness
    device: str = "cpu"
    places: Indices | None = None
    shared_seed: int | None = None
    as_trained: bool = False

    __repr__ = shapes

    def __post_init__(self) -> None:
        if self.subsets.n_records != len(self.records):
            raise ValueError(f"subsets are over {self.subsets.n_records} records, but there are {len(self.records)}")
        if isinstance(self.queries, EachModel) and len(self.queries.index) != len(self.subsets):
            raise ValueError(
                f"queries name records for {len(self.queries.index)} models, but there are {len(self.subsets)} subsets"
            )

    @property
    def n_answers(self) -> int:
        """The last axis of the table: classes, or 1 for regression."""
        return max(1, len(self.records.schema.classes))

    @property
    def n_queries(self) -> int:
        """How many queries each model answers."""
        return self.queries.index.shape[1] if isinstance(self.queries, EachModel) else len(self.queries)

    def queries_of(self, model: int) -> Floats:
        """The encoded queries ``[queries, d]`` of one model."""
        if isinstance(self.queries, EachModel):
            own: Floats = self.records.features[self.queries.index[model]]
            return own
        return self.queries

    def seed_of(self, model: int) -> int:
        """The model's seed, a function of its place in the job and of nothing that happens while running."""
        place = model if self.places is None else int(self.places[model])
        if self.randomness is Randomness.COMMON:
            return self._shared_seed
        return seed_of(self.seed, place or FIRST_PLACE)

    def seeds_of(self, models: Indices) -> NDArray[np.int64]:
        """:meth:`seed_of` of each of some models ``[m]``."""
        if self.randomness is Randomness.COMMON:
            return np.full(len(models), self._shared_seed)
        places = models if self.places is None else self.places[models]
        return seeds_of(self.seed, np.where(places == 0, FIRST_PLACE, places))

    @property
    def _shared_seed(self) -> int:
        return seed_of(self.seed) if self.shared_seed is None else self.shared_seed

    @property
    def asked_shape(self) -> tuple[int, ...]:
        """``(queries,)`` where all models are asked the same, ``(models, queries)`` where each is asked its own."""
        return self.queries.index.shape if isinstance(self.queries, EachModel) else (len(self.queries),)

    def of_everyone(self) -> Job:
        """One model of all records with the seed that models have in common, asked all that any model is asked.

        Its queries are in the order of :attr:`asked_shape`.
        """
        queries = self.queries
        asked = self.records.features[queries.index.ravel()] if isinstance(queries, EachModel) else queries
        return replace(
            self, subsets=everything(len(self.records)), queries=asked, randomness=Randomness.COMMON, places=None
        )

    def with_known_seed(self, instead: int | None = None) -> Job:
        """The same with what an attacker knows of the learner's seeds, where any stand among its settings.

        Models that start alike and see their records in the same order differ less, and so tell an attacker more.

        Args:
            instead: a number in place of all of them.
        """
        known = self.learner.known_seed
        if known is not None:
            number = known if instead is None else instead
            return replace(self, randomness=Randomness.COMMON, shared_seed=number, as_trained=True)
        if self.learner.known_states:
            return replace(self, learner=self.learner.with_known_states(instead), as_trained=True)
        return self

    @property
    def has_missing(self) -> bool:
        """Whether quantities are missing in the records, or in queries of the caller's."""
        asked = None if isinstance(self.queries, EachModel) else self.queries
        return self.records.has_missing or (asked is not None and bool(np.isnan(asked).any()))

    def part(self, models: Indices) -> Job:
        """The same for some of the models, with the same seeds.

        It should be the case that the answers of a part are those rows of the answers of the whole.

        Args:
            models: places in this job, int ``[m]``.
        """
        places = models if self.places is None else self.places[models]
        queries = EachModel(self.queries.index[models]) if isinstance(self.queries, EachModel) else self.queries
        return replace(self, subsets=self.subsets.part(models), queries=queries, places=places)

    @property
    def asks_removed(self) -> bool:
        """Whether every model leaves one record out and is asked about that record alone."""
        return (
            isinstance(self.subsets, LeaveOneOut)
            and isinstance(self.queries, EachModel)
            and np.array_equal(self.queries.index, self.subsets.removed[:, None])
        )

    @property
    def trains_on_all(self) -> bool:
        """Whether every model is trained on all records and all answer the same queries."""
        whole = isinstance(self.subsets, DenseSubsets) and bool(self.subsets.members.all())
        return whole and not isinstance(self.queries, EachModel)

    def chunk_name(self, models: range, engine: str) -> str:
        """The hash of all that determines the answers of some of the models."""
        digest = hashlib.sha256(self._common_digest + engine.encode())
        for model, seed in zip(models, self.seeds_of(np.array(models)).tolist(), strict=True):
            digest.update(np.packbits(self.subsets.row(model)).tobytes())
            digest.update(seed.to_bytes(8, "little"))
            if isinstance(self.queries, EachModel):
                digest.update(np.ascontiguousarray(self.queries.index[model], dtype="<i8").tobytes())
        return digest.hexdigest()[:40]

    @cached_property
    def _common_digest(self) -> bytes:
        text = f"{CHUNK_FORMAT}|{__version__}|{identity(self.learner)}|{self.records.digest()}|{len(self.records)}"
        digest = hashlib.sha256(f"{text}|{self.records.schema.form}|{self.device}".encode())
        if not isinstance(self.queries, EachModel):
            digest.update(repr(self.queries.shape).encode())
            digest.update(np.ascontiguousarray(self.queries, dtype="<f8").tobytes())
        return digest.digest()
