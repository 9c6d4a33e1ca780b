"""Learners made of another learner: its engine does their work too.

A defence that changes answers leaves the models behind as they are: their engine answers for them, and its answers are
changed (:class:`PostProcessing`). A committee is many models of one learner, each of a part of the records: leaving a
record out touches one part, in which the learner's engine leaves it out, and the models of the other parts are the
same for all (:class:`Voting`). :func:`composed` puts the engines together as the learner is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Indices
from leakgauge.models import AnswerKind, as_is
from leakgauge.streams import seed_of
from leakgauge.training.engines.base import Engine, JobOutcome, PreparedJob, Refusal, RefusalKind
from leakgauge.training.engines.refit import Refit, train_each
from leakgauge.training.job import Job, Queries, Randomness
from leakgauge.training.learners import Learner, PostProcessedLearner, VotingLearner
from leakgauge.training.subsets import DenseSubsets, LeaveOneOut, Subsets, everything, leave_one_out
from leakgauge.training.table import EachModel

if TYPE_CHECKING:
    from leakgauge.records import Records


NO_COMPOSITION = "{} is not a composition"
NUMBERS = "the label is numeric, and only predictions of classes can be combined here"


def composed(learner: Learner, engines: Sequence[Engine]) -> Sequence[Engine]:
    """The engines for a learner: those given, at work inside of what the learner is made of.

    Args:
        learner: any.
        engines: for learners that are made of no other.
    """
    made = learner.composition
    if isinstance(made, PostProcessedLearner):
        return [PostProcessing(one) for one in composed(made.learner, engines)]
    if isinstance(made, VotingLearner):
        return [Voting(one) for one in composed(made.learner, engines)]
    return engines


class Composed(Engine):
    """An engine at work for a learner that is made of the one it is for.

    Its answers are at most twice as far off as those of the engine inside; see :class:`PostProcessing` for jumps.

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
        self.redraws = inner.redraws  # type: ignore[misc]
        self.chunk = inner.chunk  # type: ignore[misc]
        self.spreads = inner.spreads  # type: ignore[misc]


# ---------------------------------------------------------------- changed answers


class PostProcessing(Composed):
    """For :class:`~leakgauge.training.learners.PostProcessedLearner`: the answers of the models behind, changed.

    Where an answer jumps, as at the edge of a bin or where two labels are level, an error of any size may decide on
    which side it falls. A model that answers so near a jump that the engine inside cannot tell is trained, its solver
    run to the end. Models of randomised learners are not: one that is trained anew has lost the random numbers that it
    shares with the others. How far their answers may be off near a jump, the floor says.
    """

    method = "post-processing the predictions of the ordinary learner's models"
    suffix = "released"

    def prepare(self, job: Job) -> PreparedPostProcessing | Refusal:
        """A learner that changes no other's answers, numbers and what the engine inside refuses are refused."""
        made = job.learner.composition
        if not isinstance(made, PostProcessedLearner):
            return Refusal(RefusalKind.LEARNER, NO_COMPOSITION.format(job.learner.name))
        if not job.records.schema.classes:
            return Refusal(RefusalKind.DATA, NUMBERS)
        if made.release.kind is AnswerKind.PROBABILITIES and made.release != as_is and _answers_labels(made.learner):
            return Refusal(RefusalKind.SETTING, f"{made.learner.name} outputs labels, which have no probabilities")
        behind = self.inner.prepare(replace(job, learner=made.learner))
        return behind if isinstance(behind, Refusal) else PreparedPostProcessing(self, job, made, behind)


def _answers_labels(learner: Learner) -> bool:
    """Whether a learner's models release their labels alone, as they are or with changes that let labels through."""
    made = learner.composition
    if not isinstance(made, PostProcessedLearner):
        return False
    return made.release.kind is AnswerKind.LABELS or (made.release == as_is and _answers_labels(made.learner))


class PreparedPostProcessing(PreparedJob):
    """A job whose models behind are prepared.

    Args:
        engine: what changes their answers.
        job: the whole job.
        made: how answers are changed.
        behind: the models behind.
    """

    engine: PostProcessing

    def __init__(self, engine: PostProcessing, job: Job, made: PostProcessedLearner, behind: PreparedJob) -> None:
        super().__init__(engine, job)
        self.release, self.behind = made.release, behind

    def share(self) -> None:
        """What the models behind share."""
        self.behind.share()

    def answers(self, models: Indices) -> JobOutcome:
        """The answers as they are seen; the rest as it is with the models behind."""
        behind = self.behind.answers(models)
        found = replace(behind, answers=self.release(behind.answers), kind=behind.kind and self.release.kind)
        doubtful = self._doubtful(behind.answers)
        if not len(doubtful):
            return found
        return found.with_others(doubtful, train_each(_to_the_end(self.job), models[doubtful]))

    def floor(self) -> Floats:
        """What is left of the floor of the models behind: more where an answer is near a jump."""
        logs = _done(self.engine.inner, self.behind.job.of_everyone()).answers[0]
        error = self.behind.floor()
        off = self.release.off(logs, error.reshape(-1, 1)).max(axis=1)
        return np.asarray(off.reshape(error.shape))

    def _doubtful(self, logs: Floats) -> Indices:
        """The models with an answer that the errors of the engine inside may have put on the wrong side of a jump."""
        if self.job.learner.randomised:
            return np.zeros(0, dtype=np.int64)
        size = np.where(np.isfinite(logs), np.abs(logs), 0.0)
        error = self.engine.inner.tolerance * np.maximum(size, 1.0)
        jumps = self.release.off(logs, error) > 2 * error.max(axis=2, keepdims=True)
        return np.flatnonzero(jumps.any(axis=(1, 2)))


# ---------------------------------------------------------------- votes


class Voting(Composed):
    """For :class:`~leakgauge.training.learners.VotingLearner`: the engine inside answers for the models of the parts.

    Models without one record that share their seed differ by the part that it was in: there it is left out, and the
    models of the other parts are trained once for all. (Of several equal records it is the last that leaves a part,
    whichever is left out.) Other models have parts of their own.
    """

    method = "adding up the votes of the models of the parts"
    suffix = "voting"

    def prepare(self, job: Job) -> Election | Refusal:
        """A learner whose models do not vote, numbers, what the engine inside refuses for the models of the parts."""
        made = job.learner.composition
        if not isinstance(made, VotingLearner):
            return Refusal(RefusalKind.LEARNER, NO_COMPOSITION.format(job.learner.name))
        if not job.records.schema.classes:
            return Refusal(RefusalKind.DATA, NUMBERS)
        if not len(job.subsets):
            return Refusal(RefusalKind.JOB, "there is no model to train")
        if isinstance(job.queries, EachModel) and _leaves_out(job) and not job.asks_removed:
            return Refusal(
                RefusalKind.JOB,
                (
                    "not a leave-one-out job with the same queries for all models, or with the left-out record as "
                    "each model's query"
                ),
            )
        refusals = []
        for way in _ways(job):
            # Without a record all tasks are done later; of other models those of the first stand for all.
            tasks = list(way(_in_order(job if way is _without else job.part(np.zeros(1, dtype=np.int64)))))
            found = [self.inner.prepare(task.job) for task in tasks]
            # An engine is chosen for tasks that matter, and need not be able to do the others.
            refused = [one for one, task in zip(found, tasks, strict=True) if task.matters and isinstance(one, Refusal)]
            if not refused:
                all_known = zip(tasks, found, strict=True) if way is _without else ()
                return Election(self, job, made, way, list(all_known))
            refusals.append(refused[0])
        return refusals[0]


class Election(PreparedJob):
    """A job whose parts are known.

    Args:
        engine: what adds up the votes.
        job: the whole job.
        committee: what the learner is made of.
        way: from a job with its records in order to what the engine inside is asked for.
        tasks: all of models without a record, and what the engine inside says to them.
    """

    engine: Voting

    def __init__(
        self,
        engine: Voting,
        job: Job,
        committee: VotingLearner,
        way: Way,
        tasks: list[tuple[PartModels, PreparedJob | Refusal]],
    ) -> None:
        super().__init__(engine, job)
        self.committee, self.way = committee, way
        self.tasks = [(task, _or_trained(found, task.job)) for task, found in tasks]

    def share(self) -> None:
        """What the models of the parts share, and the models of parts that lack nobody."""
        for _, prepared in self.tasks:
            prepared.share()
        _ = self.untouched

    @cached_property
    def untouched(self) -> dict[int, JobOutcome]:
        """What the models answer that lack nobody, by the place of their task."""
        return {place: ready.all() for place, (task, ready) in enumerate(self.tasks) if not task.matters}

    def answers(self, models: Indices) -> JobOutcome:
        """The answers: logarithms of shares of votes."""
        job, committee = self.job, self.committee
        shape = len(models), job.n_queries, job.n_answers
        votes, n_votes = np.zeros(shape), np.zeros(shape[0], dtype=np.int64)
        lost = np.zeros(shape[0], dtype=bool)
        n_unconverged = 0
        for task, found in self._found(models):
            votes[task.models] += np.exp(found.answers).reshape(-1, *shape[1:])
            n_votes[task.models] += 1
            lost[task.lost(found)] = True
            n_unconverged += found.n_unconverged
        votes += ((committee.n_parts - n_votes) / shape[2])[:, None, None]
        failures = dict.fromkeys(np.flatnonzero(n_votes == 0).tolist(), NO_VOTE.format(committee.n_parts))
        answers = committee.log_shares(votes)
        answers[list(failures)] = np.nan
        kind = AnswerKind.PROBABILITIES if len(failures) + lost.sum() < shape[0] else None
        found = JobOutcome(answers, kind, failures, min(n_unconverged, shape[0]))
        # Where a part has no answer the committee may have one: only the plain loop tells it from one with no model.
        places = np.flatnonzero(lost)
        return found.with_others(places, train_each(job, models[places])) if len(places) else found

    def floor(self) -> Floats:
        """The largest of the parts: no share is off by a larger factor than every vote for it is."""
        inner, parts = self.engine.inner, []
        for task in _wholes(_in_order(self.job.of_everyone())):
            prepared = inner.prepare(task.job)
            tolerance = np.full(task.job.n_queries, inner.tolerance)
            parts.append(tolerance if isinstance(prepared, Refusal) else prepared.floor())
        return np.asarray(np.max(parts, axis=0).reshape(self.job.asked_shape))

    def _found(self, models: Indices) -> Iterator[tuple[PartModels, JobOutcome]]:
        """What the parts' models answer; the tasks name models by their places among those asked for."""
        if self.way is not _without:
            for task in self.way(_in_order(self.job.part(models))):
                yield task, _done(self.engine.inner, task.job)
            return
        for at, (task, prepared) in enumerate(self.tasks):
            place = np.full(len(self.job.subsets), -1)
            place[task.models] = np.arange(len(task.models))
            here = np.flatnonzero(place[models] >= 0)
            if not len(here):
                continue
            if task.matters:
                found = prepared.answers(place[models[here]])
            else:
                found = self.untouched[at]
                if isinstance(self.job.queries, EachModel):  # the one model is asked about each in turn
                    found = replace(found, answers=found.answers[:, place[models[here]]])
            yield replace(task, models=here), found


NO_VOTE = "none of {} parts of the records has two classes; take fewer parts"


@dataclass(frozen=True)
class PartModels:
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

    def lost(self, found: JobOutcome) -> Indices:
        """The models that have no answer of this part."""
        return self.models[np.isin(np.arange(len(self.models)) * (len(found.answers) > 1), list(found.failures))]


Way: TypeAlias = Callable[[Job], Iterable[PartModels]]
"""From a job with its records in order to what the engine inside is asked for."""


def _committee(job: Job) -> VotingLearner:
    made = job.learner.composition
    assert isinstance(made, VotingLearner)
    return made


def _leaves_out(job: Job) -> bool:
    """Whether models differ by a record alone."""
    return isinstance(job.subsets, LeaveOneOut) and job.randomness is Randomness.COMMON


def _ways(job: Job) -> list[Way]:
    """The ways to the models of a job, the best first."""
    if _leaves_out(job):
        return [_without]
    if not job.trains_on_all:
        return [_apart]
    # With common random numbers as without a record, so that untouched parts are the same.
    return [_wholes, _apart] if job.randomness is Randomness.COMMON else [_apart, _wholes]


def _apart(job: Job) -> Iterator[PartModels]:
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
            seeds = [seed_of(some.seed_of(place), part) for place in range(len(models))]
            yield PartModels(models, _members(some, job.records, subsets, some.queries, seeds, job.randomness))


def _wholes(job: Job) -> Iterator[PartModels]:
    """Models trained on all records, one after another: each part by itself."""
    committee = _committee(job)
    for model in range(len(job.subsets)):
        seed = job.seed_of(model)
        part_of = committee.part_of(job.records, seed)
        for part in range(committee.n_parts):
            rows = np.flatnonzero(part_of == part)
            if _n_classes(job, rows) > 1:
                yield PartModels(np.array([model]), _whole(job, rows, job.queries, seed_of(seed, part)))


def _without(job: Job) -> Iterator[PartModels]:
    """Models without one record that share their seed: in each part those that lack one, and one for all others."""
    committee, seed = _committee(job), job.seed_of(0)
    assert isinstance(job.subsets, LeaveOneOut)
    part_of = committee.part_of(job.records, seed)
    gone = _last_of_equals(job.records)[job.subsets.removed]
    for part in range(committee.n_parts):
        rows, own_seed = np.flatnonzero(part_of == part), seed_of(seed, part)
        others = np.flatnonzero(part_of[gone] != part)
        if _n_classes(job, rows) > 1 and len(others):
            yield PartModels(others, _whole(job, rows, _asked(job, others), own_seed), matters=False)
        counts = np.bincount(job.records.labels[rows], minlength=job.n_answers)
        is_last = counts[job.records.labels[gone]] == 1  # of its class
        models = np.flatnonzero((part_of[gone] == part) & (np.count_nonzero(counts) - is_last > 1))
        if len(models):
            yield PartModels(models, _lacking(job, rows, np.searchsorted(rows, gone[models]), own_seed))


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

    def seeds_of(self, models: Indices) -> Indices:
        """Those given."""
        return self.seeds[models]

    def part(self, models: Indices) -> _Seeded:
        """The same for some of the models, with the same seeds."""
        part = super().part(models)
        assert isinstance(part, _Seeded)
        return replace(part, seeds=self.seeds[models])


def _done(engine: Engine, job: Job) -> JobOutcome:
    """By the engine, or trained where it refuses."""
    return _or_trained(engine.prepare(job), job).all()


def _or_trained(found: PreparedJob | Refusal, job: Job) -> PreparedJob:
    """What an engine prepared, or, where it refuses, training with the solver run to its end."""
    return Refit().prepare(_to_the_end(job)) if isinstance(found, Refusal) else found


def _to_the_end(job: Job) -> Job:
    """The same with a solver that does not stop before its end, where there is anything to tighten."""
    return replace(job, learner=job.learner.with_converged_solver() or job.learner)
