"""Learners made of another learner: its engine does their work too.

A defence that changes answers leaves the models behind as they are: their engine answers for them, and its answers are
changed (:class:`Released`). A committee is many models of one learner, each of a part of the records: leaving a record
out touches one part, in which the learner's engine leaves it out, and the models of the other parts are the same for
all (:class:`Voting`).

There is one of either for each engine, since answers are stored under its name.
"""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.models import AnswerKind
from leakgauge.training.engines.base import Engine, Outcome
from leakgauge.training.engines.refit import Refit
from leakgauge.training.job import Job, Queries, Randomness
from leakgauge.training.learners import Changed, Committee
from leakgauge.training.subsets import DenseSubsets, Indices, LeaveOneOut, Subsets, everything, leave_one_out
from leakgauge.training.table import EachModel

if TYPE_CHECKING:
    from leakgauge.records import Records

Floats: TypeAlias = NDArray[np.float64]

NO_COMPOSITION = "{} is not a composition"
NUMBERS = "the label is a number, and only answers about classes are put together here"


class Composed(Engine):
    """An engine at work for a learner that is made of the one it is for.

    Its answers are at most twice as far off as those of the engine inside; how they may jump, see :class:`Released`.

    Args:
        inner: the engine inside; chunks are as large as its own.
    """

    suffix: ClassVar[str]

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self.name = f"{inner.name}-{self.suffix}"  # type: ignore[misc]
        self.tolerance = 2 * inner.tolerance  # type: ignore[misc]
        self.trains = inner.trains  # type: ignore[misc]
        self.converges = inner.converges  # type: ignore[misc]
        self.chunk = inner.chunk  # type: ignore[misc]

    def run(self, job: Job) -> Floats:
        """The answers ``[models, queries, k]``; NaN for a model that could not have been trained."""
        return self.outcome(job).answers

    @abstractmethod
    def outcome(self, job: Job) -> Outcome:
        """The answers, and what else there is to say about them."""


# ---------------------------------------------------------------- changed answers


class Released(Composed):
    """For :class:`~leakgauge.training.learners.Changed`: the answers of the models behind, changed.

    Where an answer jumps, as at the edge of a bin or where two labels are level, an error of any size may decide on
    which side it falls. A model that answers so near a jump that the engine inside cannot tell is trained, its solver
    run to the end. Models of randomised learners are not: one that is trained anew has lost the random numbers that it
    shares with the others. How far their answers may be off near a jump, :meth:`floor` says.
    """

    method = "changing the answers of the models behind"
    suffix = "released"

    def refuses(self, job: Job) -> str | None:
        """A learner that changes no other's answers, numbers, what the engine inside refuses."""
        if not isinstance(job.learner.made_of, Changed):
            return NO_COMPOSITION.format(job.learner.name)
        return self.inner.refuses(_behind(job)) if job.records.schema.classes else NUMBERS

    def outcome(self, job: Job) -> Outcome:
        """The answers as they are seen; the rest as it is with the models behind."""
        change = _changed(job).change
        behind = self.inner.outcome(_behind(job))
        found = replace(behind, answers=change.changed(behind.answers), kind=behind.kind and change.kind)
        doubtful = self._doubtful(job, behind.answers)
        return _with_trained(found, job, doubtful) if len(doubtful) else found

    def floor(self, job: Job) -> Floats:
        """What is left of the floor of the engine inside ``[queries]``: more where an answer is near a jump."""
        behind = _behind(job)
        logs = _outcome(self.inner, behind).answers[0]
        error = self.inner.floor(behind)[:, None]
        return np.asarray(_changed(job).change.off(logs, error).max(axis=1))

    def _doubtful(self, job: Job, logs: Floats) -> Indices:
        """The models with an answer that the errors of the engine inside may have put on the wrong side of a jump."""
        if job.learner.randomised:
            return np.zeros(0, dtype=np.int64)
        size = np.where(np.isfinite(logs), np.abs(logs), 0.0)
        error = self.inner.tolerance * np.maximum(size, 1.0)
        jumps = _changed(job).change.off(logs, error) > 2 * error.max(axis=2, keepdims=True)
        return np.flatnonzero(jumps.any(axis=(1, 2)))


def _changed(job: Job) -> Changed:
    made = job.learner.made_of
    assert isinstance(made, Changed)  # a job that is refused is not run
    return made


def _behind(job: Job) -> Job:
    """The job of the models behind; one and the same for a job, as closed forms know again what they have solved."""
    found: Job = _remembered(job, lambda: replace(job, learner=_changed(job).learner))
    return found


def _with_trained(found: Outcome, job: Job, models: Indices) -> Outcome:
    """With some of the models trained, the solver run to its end."""
    trained = Refit().outcome(_to_the_end(job).part(models))
    found.answers[models] = trained.answers
    failures = found.failures | {int(models[place]): why for place, why in trained.failures.items()}
    return replace(found, failures=failures, n_unconverged=found.n_unconverged + trained.n_unconverged)


# ---------------------------------------------------------------- votes


class Voting(Composed):
    """For :class:`~leakgauge.training.learners.Committee`: the engine inside answers for the models of the parts.

    Models without one record that share their seed differ by the part that it was in: there it is left out, and the
    models of the other parts are trained once for all. (Of several equal records it is the last that leaves a part,
    whichever is left out.) Other models have parts of their own.
    """

    method = "adding up the votes of the models of the parts"
    suffix = "voting"

    def refuses(self, job: Job) -> str | None:
        """A learner whose models do not vote, numbers, what the engine inside refuses for the models of the parts."""
        if not isinstance(job.learner.made_of, Committee):
            return NO_COMPOSITION.format(job.learner.name)
        if not job.records.schema.classes:
            return NUMBERS
        if not len(job.subsets):
            return "there is no model to train"
        if isinstance(job.queries, EachModel) and _leaves_out(job) and not job.asks_removed:
            return "not a leave-one-out job that asks all models the same, or each about the record it lacks"
        reasons = [self._why_not(sample, _committee(job)) for sample in _samples(job).values()]
        return None if None in reasons else reasons[0]

    def outcome(self, job: Job) -> Outcome:
        """The answers: logarithms of shares of votes."""
        committee = _committee(job)
        engine, shape = self._engine(committee), (len(job.subsets), job.n_queries, job.n_answers)
        votes, n_votes = np.zeros(shape), np.zeros(shape[0], dtype=np.int64)
        failures: dict[int, str] = {}
        n_unconverged = 0
        for task in self._tasks(job, committee):
            found = _outcome(engine, task.job)
            votes[task.models] += np.exp(found.answers).reshape(-1, *shape[1:])
            n_votes[task.models] += 1
            failures = task.failures(found) | failures  # the reason is that of the first part
            n_unconverged += found.n_unconverged
        votes += ((committee.n_parts - n_votes) / shape[2])[:, None, None]
        failures |= dict.fromkeys(np.flatnonzero(n_votes == 0).tolist(), NO_VOTE.format(committee.n_parts))
        answers = committee.log_shares(votes)
        answers[list(failures)] = np.nan
        kind = AnswerKind.PROBABILITIES if len(failures) < shape[0] else None
        return Outcome(answers, kind, dict(sorted(failures.items())), min(n_unconverged, shape[0]))

    def floor(self, job: Job) -> Floats:
        """The largest of the parts ``[queries]``: no share is off by a larger factor than every vote for it is."""
        engine = self._engine(_committee(job))
        return np.asarray(np.max([engine.floor(task.job) for task in _wholes(_in_order(job))], axis=0))

    def _engine(self, committee: Committee) -> Engine:
        """What answers for the models of the parts, which may be made of others themselves."""
        return Released(self.inner) if isinstance(committee.learner.made_of, Changed) else self.inner

    def _tasks(self, job: Job, committee: Committee) -> Iterable[Task]:
        """What the engine inside is asked for, part by part."""
        samples = _samples(job)
        if _leaves_out(job):
            return samples[_without]
        way = next(way for way, sample in samples.items() if self._why_not(sample, committee) is None)
        return way(_in_order(job))

    def _why_not(self, sample: Iterable[Task], committee: Committee) -> str | None:
        """Why the engine inside cannot do a task that it is chosen for; it need not be able to do the others."""
        engine = self._engine(committee)
        reasons = (engine.refuses(task.job) for task in sample if task.matters)
        return next((why for why in reasons if why), None)


NO_VOTE = "none of {} parts of the records has two classes; take fewer parts"


@dataclass(frozen=True)
class Task:
    """Models of one part.

    Args:
        models: the models of the committee in which they vote, int ``[m]``.
        job: trains one for each of them, or one for all; that one is asked what all are asked, or, of as many queries
            as there are models, each about its own.
        matters: whether an engine is chosen for such jobs; where it cannot do others they are trained.
    """

    models: Indices
    job: Job
    matters: bool = True

    def failures(self, found: Outcome) -> dict[int, str]:
        """Why models have no vote of this part."""
        if len(found.answers) == 1:
            return {int(model): why for model in self.models for why in found.failures.values()}
        return {int(self.models[place]): why for place, why in found.failures.items()}


Way: TypeAlias = Callable[[Job], Iterable[Task]]
"""From a job with its records in order to what the engine inside is asked for."""


def _committee(job: Job) -> Committee:
    made = job.learner.made_of
    assert isinstance(made, Committee)  # a job that is refused is not run
    return made


def _leaves_out(job: Job) -> bool:
    """Whether models differ by a record alone."""
    return isinstance(job.subsets, LeaveOneOut) and job.randomness is Randomness.COMMON


def _samples(job: Job) -> dict[Way, list[Task]]:
    """The ways to the models of a job, and enough tasks of each to see whether an engine can do them."""

    def found() -> dict[Way, list[Task]]:
        if _leaves_out(job):
            return {_without: list(_without(_in_order(job)))}
        ways: list[Way] = [_apart]
        if job.trains_on_all:  # with common random numbers as without a record, so that untouched parts are the same
            ways.insert(0 if job.randomness is Randomness.COMMON else 1, _wholes)
        first = _in_order(job.part(np.zeros(1, dtype=np.int64)))
        return {way: list(way(first)) for way in ways}

    samples: dict[Way, list[Task]] = _remembered(job, found)
    return samples


def _apart(job: Job) -> Iterator[Task]:
    """Any models: in each part subsets of all records."""
    committee = _committee(job)
    part_of = np.full((len(job.subsets), len(job.records)), -1, dtype=np.int32)
    for model, own in enumerate(part_of):
        rows = np.flatnonzero(job.subsets.row(model))
        own[rows] = committee.part_of(job.records[rows], job.seed_of(model))
    for part in range(committee.n_parts):
        members = part_of == part
        models = np.flatnonzero([_n_classes(job, own) > 1 for own in members])
        if len(models):
            some, subsets = job.part(models), DenseSubsets(members[models])
            seeds = [committee.seed_of(part, some.seed_of(place)) for place in range(len(models))]
            yield Task(models, _members(some, job.records, subsets, some.queries, seeds, job.randomness))


def _wholes(job: Job) -> Iterator[Task]:
    """Models trained on all records, one after another: each part by itself."""
    committee = _committee(job)
    for model in range(len(job.subsets)):
        seed = job.seed_of(model)
        part_of = committee.part_of(job.records, seed)
        for part in range(committee.n_parts):
            rows = np.flatnonzero(part_of == part)
            if _n_classes(job, rows) > 1:
                yield Task(np.array([model]), _whole(job, rows, job.queries, committee.seed_of(part, seed)))


def _without(job: Job) -> Iterator[Task]:
    """Models without one record that share their seed: in each part those that lack one, and one for all others."""
    committee, seed = _committee(job), job.seed_of(0)
    assert isinstance(job.subsets, LeaveOneOut)
    part_of = committee.part_of(job.records, seed)
    gone = _last_of_equals(job.records)[job.subsets.removed]
    for part in range(committee.n_parts):
        rows, own_seed = np.flatnonzero(part_of == part), committee.seed_of(part, seed)
        others = np.flatnonzero(part_of[gone] != part)
        if _n_classes(job, rows) > 1 and len(others):
            yield Task(others, _whole(job, rows, _asked(job, others), own_seed), matters=False)
        counts = np.bincount(job.records.labels[rows], minlength=job.n_answers)
        is_last = counts[job.records.labels[gone]] == 1  # of its class
        models = np.flatnonzero((part_of[gone] == part) & (np.count_nonzero(counts) - is_last > 1))
        if len(models):
            yield Task(models, _lacking(job, rows, np.searchsorted(rows, gone[models]), own_seed))


def _lacking(job: Job, rows: Indices, places: Indices, seed: int) -> Job:
    """Models of some of the records, each without the one at a place among them."""
    queries = EachModel(places[:, None]) if isinstance(job.queries, EachModel) else job.queries
    return _members(job, job.records[rows], leave_one_out(len(rows), places), queries, [seed] * len(places))


def _whole(job: Job, rows: Indices, queries: Queries, seed: int) -> Job:
    """One model of some of the records."""
    return _members(job, job.records[rows], everything(len(rows)), queries, [seed])


def _members(
    job: Job,
    records: Records,
    subsets: Subsets,
    queries: Queries,
    seeds: list[int],
    randomness: Randomness = Randomness.COMMON,
) -> Job:
    """Models of a committee's parts, with seeds of their own."""
    learner, given = _committee(job).learner, np.array(seeds, dtype=np.int64)
    return _Seeded(learner, records, subsets, queries, job.seed, randomness, job.device, seeds=given)


def _asked(job: Job, models: Indices) -> Floats:
    """What all models are asked ``[queries, d]``, or what each of some is ``[models, d]``."""
    if not isinstance(job.queries, EachModel):
        return job.queries
    asked: Floats = job.records.features[job.queries.index[models, 0]]
    return asked


def _n_classes(job: Job, rows: NDArray[Any]) -> int:
    """How many classes some of the records have, named by their places or by a mask."""
    return len(np.unique(job.records.labels[rows]))


def _in_order(job: Job) -> Job:
    """The same with the records in the order in which parts are trained."""
    order = _committee(job).order(job.records)
    place = np.argsort(order)
    subsets: Subsets
    if isinstance(job.subsets, LeaveOneOut):
        subsets = leave_one_out(len(order), place[job.subsets.removed])
    else:
        subsets = DenseSubsets(job.subsets.dense()[:, order])
    queries = EachModel(place[job.queries.index]) if isinstance(job.queries, EachModel) else job.queries
    return replace(job, records=job.records[order], subsets=subsets, queries=queries)


def _last_of_equals(records: Records) -> Indices:
    """For each record the last that equals it ``[n]``, where equal ones are next to each other."""
    content = np.column_stack([records.features, records.labels])
    ends = np.append(np.flatnonzero((content[1:] != content[:-1]).any(axis=1)), len(content) - 1)
    return ends[np.searchsorted(ends, np.arange(len(content)))]


# ---------------------------------------------------------------- what both need


@dataclass(frozen=True)
class _Seeded(Job):
    """A job whose models have seeds that were chosen elsewhere.

    Args:
        seeds: one for each model.
    """

    seeds: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def seed_of(self, model: int) -> int:
        """The seed given."""
        return int(self.seeds[model])

    def part(self, models: Indices) -> _Seeded:
        """The same for some of the models, with the same seeds."""
        part = super().part(models)
        assert isinstance(part, _Seeded)
        return replace(part, seeds=self.seeds[models])


def _outcome(engine: Engine, job: Job) -> Outcome:
    """By the engine, or by training with the solver run to its end, where the engine refuses."""
    if engine.refuses(job) is None:
        return engine.outcome(job)
    return Refit().outcome(_to_the_end(job))


def _to_the_end(job: Job) -> Job:
    """The same with a solver that does not stop before its end, where there is anything to tighten."""
    return replace(job, learner=job.learner.solved_to_the_end() or job.learner)


_REMEMBERED: dict[int, Any] = {}


def _remembered(job: Job, make: Callable[[], Any]) -> Any:
    """What is made for a job, which must not hold it: made once, and forgotten with the job."""
    if id(job) not in _REMEMBERED:
        _REMEMBERED[id(job)] = make()
        weakref.finalize(job, _REMEMBERED.pop, id(job), None).atexit = False
    return _REMEMBERED[id(job)]
