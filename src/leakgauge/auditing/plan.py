"""What is known of an audit before anything is measured, and the models that it will need."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.auditing.advice import Outputs, Situation
from leakgauge.auditing.budget import Allowance, allowance
from leakgauge.auditing.membership.changed import AskedBeside, HeldAsName
from leakgauge.auditing.membership.held import N_TRIED, read_as_names, with_new
from leakgauge.auditing.overlap import Overlap
from leakgauge.auditing.settings import Settings
from leakgauge.auditing.subject import Subject
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.membership.without import MOST_TRAINED_EACH, PlannedWithout, may_add_up
from leakgauge.models import AnswerKind, answers
from leakgauge.models.endpoints import RemoteModel
from leakgauge.models.sklearn import is_smooth, own_settings, reads_words, wrap
from leakgauge.records import Records, Units
from leakgauge.streams import AuditStream, seed_of
from leakgauge.training import (
    DenseSubsets,
    FunctionLearner,
    Job,
    Learner,
    LeaveOneOut,
    LeftOut,
    Randomness,
    SklearnLearner,
    Subsets,
    balanced_subsets,
    plan,
)
from leakgauge.training.engines import ENGINES
from leakgauge.training.engines.base import Engine, PreparedJob, Refusal, RefusalKind
from leakgauge.training.engines.refit import Refit
from leakgauge.training.job import Queries
from leakgauge.training.learners import of_other_code, trained


@dataclass(frozen=True)
class PlannedStep:
    """Some models of an audit.

    Args:
        what: what they are for.
        n_models: how many answers of models are needed.
        n_trained: how many of them are really trained.
        engine: how the answers are had.
        refusals: why each exact engine cannot leave records out without training.
        sometimes: whether the step is needed only if something is found.
        seconds: on one worker; a rough estimate.
        prepared: the work itself, or the larger part of it.
        asked_of_all: how many times as many queries each model gets as there are candidates.
        n_calls: how often models are called beside that, about a few queries each.
    """

    what: str
    n_models: int
    n_trained: int
    engine: str
    refusals: dict[str, Refusal]
    sometimes: bool = False
    seconds: float = 0.0
    prepared: PreparedJob | None = field(default=None, repr=False)
    asked_of_all: int = 0
    n_calls: int = 0

    @property
    def seconds_per_model(self) -> float:
        """On one worker, what they share divided among them."""
        return self.seconds / max(1, self.n_models)

    @classmethod
    def of(
        cls,
        what: str,
        job: Job,
        *,
        times: int = 1,
        sometimes: bool = False,
        engines: Sequence[Engine] = ENGINES,
        asked_of_all: int = 0,
    ) -> PlannedStep:
        """A job, by the engine that will do it, so many times."""
        found = plan(job, engines=engines)
        # Of all other models there are few, and that engines are not for them is not worth saying.
        said = isinstance(job.subsets, LeaveOneOut) and not sometimes
        # Engines for other jobs, such as those without persons, say nothing of the learner.
        refusals = {name: why for name, why in found.refusals.items() if said and why.why is not RefusalKind.JOB}
        n_models, n_trained = found.n_models * times, found.n_trained * times
        return cls(
            what, n_models, n_trained, found.engine.name, refusals, sometimes,
            prepared=found.prepared, asked_of_all=asked_of_all,
        )  # fmt: skip

    @classmethod
    def plainly(cls, what: str, job: Job) -> PlannedStep:
        """Models that are trained in the plain loop, whatever engines there are."""
        n = len(job.subsets)
        return cls(what, n, n, Refit.name, {}, prepared=Refit().prepare(job))

    def standing_for(self, n_models: int) -> PlannedStep:
        """The same for more models than are in the job."""
        return replace(self, n_models=n_models, n_trained=n_models if self.n_trained else 0)


def attackers_job(what: Subject, settings: Settings, records: Records, subsets: Subsets, queries: Queries) -> Job:
    """Models that the attacker trains as the audited one was trained, or will be.

    A ``random_state`` that is a number is a setting that the attacker knows, or tries; where the audit trains the
    model, the seed of that model stands for the number.

    Args:
        what: what is audited, with a learner.
        settings: of the audit.
        records: the attacker's.
        subsets: which of them each model is trained on.
        queries: that all models answer.
    """
    assert what.learner is not None
    job = Job(what.learner, records, subsets, queries, settings.seed, Randomness.INDEPENDENT, settings.device)
    return job.with_known_seed(known_state(what, settings))


def known_state(what: Subject, settings: Settings) -> int | None:
    """What stands for the numbers among a learner's settings: the seed of the model that the audit trains."""
    return seed_of(settings.seed) if what.model is None else None


@dataclass(frozen=True, eq=False)
class Outline:
    """What is known of an audit before anything is measured.

    Args:
        what: the subject, with the holdout that attacks are judged by.
        settings: of the audit.
        kind: what the released model answers.
        candidates: members and judged non-members, members first.
        n_population: holdout records that the attacker is given as known non-members.
        shadows: whether shadow models are trained.
        converged: whether the learner's solver came to its end on all records, where that was looked at.
    """

    what: Subject
    settings: Settings
    kind: AnswerKind
    candidates: Records
    n_population: int
    shadows: bool
    converged: bool = True

    @property
    def learner(self) -> Learner:
        """The learner, for those who know that there is one."""
        assert self.what.learner is not None
        return self.what.learner

    @property
    def units(self) -> Units:
        """Who is attacked: the candidates themselves, or persons with their rows."""
        return self.candidates.units

    @cached_property
    def overlap(self) -> Overlap:
        """Which candidates are equal, or nearly so."""
        n_train = len(self.what.train)
        return Overlap.of(self.what.train, self.candidates[n_train:])

    @cached_property
    def drawn(self) -> Units:
        """What is in a training set as a whole or not at all: units, of which copies of one are one."""
        copies = self.overlap.copies
        return self.units if copies.single else Units(copies.of_row[self.units.of_row])

    @property
    def situation(self) -> Situation:
        """What advice depends on, before anything is found."""
        return Situation(
            outputs=Outputs.of(self.kind.value, self.settings.released.value),
            dtp=None if self.kind is AnswerKind.VALUES else self.settings.rule.dtp,
            any_query=self.settings.rule.queries.needs_bound,
            n_train=len(self.what.train.units),
            n_holdout=len(self.what.holdout.units),
            by_record=self.units.single,
        )

    @cached_property
    def allowance(self) -> Allowance:
        """How many models the budget allows; found when first asked for."""
        return allowance(self)

    @property
    def n_shadows(self) -> int:
        """How many shadow models are trained."""
        if not self.shadows or self.settings.n_shadows is not None:
            return (self.settings.n_shadows or 0) * self.shadows
        return self.allowance.n_shadows

    @property
    def _shadow_size(self) -> int:
        """Candidates, or persons, that each shadow model is trained on; copies of one count once.

        At least a tenth of the candidates stay out of every set, or too few models would be left to compare with.
        """
        n_train = int(np.count_nonzero(self.drawn.first < len(self.what.train)))
        return min(n_train, int(0.9 * len(self.drawn)))

    @property
    def rarer_share(self) -> float:
        """Of the shadow models that a candidate is in, or out of, whichever is smaller."""
        return min(self._shadow_size, len(self.drawn) - self._shadow_size) / len(self.drawn)

    @cached_property
    def shadow_job(self) -> Job:
        """Models of the same algorithm on random sets of candidates as large as the training set."""
        return self.shadow_job_of(self.n_shadows)

    @property
    def shadow_sets(self) -> DenseSubsets:
        """Which candidates each of them is trained on."""
        return self._shadow_sets(self.n_shadows, AuditStream.SHADOW_SETS.generator(self.settings.seed))

    def _shadow_sets(self, n_models: int, rng: np.random.Generator) -> DenseSubsets:
        size, n_drawn = self._shadow_size, len(self.drawn)
        _enough_shadows(n_models, size, n_drawn, n_rows=len(self.candidates))
        return balanced_subsets(n_drawn, size, n_models, rng).of_rows(self.drawn)

    def shadow_job_of(self, n_models: int, asked: AskedBeside | None = None) -> Job:
        """The same with so many models; by default they are asked all of `asked_beside`.

        Records of the holdout stand among those of the training set, each sort in its own order. Where a learner reads
        the order (nearest neighbours at the same distance, a network that does not shuffle), neither sort comes first.
        """
        records, rng = self.candidates, AuditStream.SHADOW_SETS.generator(self.settings.seed)
        subsets = self._shadow_sets(n_models, rng)
        if not self.overlap.copies.single:
            rows, like = self._as_often(rng)
            features, labels = records.features[rows], records.labels[rows]
            if records.units.single:
                features = self._as_different(features, like)
                if not records.schema.classes:
                    labels = self._as_different(labels[:, None].astype(np.float64), like)[:, 0]
            records = Records(features, labels, records.schema, np.arange(len(rows)))
            subsets = DenseSubsets(subsets.members[:, rows])
        order = _interleaved(len(self.what.train), len(records), rng)
        subsets, records = DenseSubsets(subsets.members[:, order]), records[order]
        asked = self.asked_beside if asked is None else asked
        if asked.schema is not self.candidates.schema:
            records = Records(records.features, records.labels, asked.schema, records.ids)
        return attackers_job(self.what, self.settings, records, subsets, asked.after(self.candidates.features))

    @cached_property
    def asked_beside(self) -> AskedBeside:
        """What shadow models are asked besides the candidates as they are: some of them changed."""
        learner = self.what.learner
        if self.what.shadows is not None or self.kind is AnswerKind.LABELS or learner is None:
            return AskedBeside((), self.candidates.schema)
        known = isinstance(learner, SklearnLearner)
        words = reads_words(learner.estimator) if isinstance(learner, SklearnLearner) else 0
        answered = self._answered_new(learner) if self._asks_new else ({}, [])
        names, new = answered or ({}, [])
        settings = own_settings(learner.estimator) if isinstance(learner, SklearnLearner) else None
        asked = AskedBeside.of(
            self.candidates, self.drawn, smooth=self._is_smooth, texts=known, words=words, names=names, new=new,
            settings=[] if isinstance(learner, FunctionLearner) else settings,
            share=self._shadow_size / len(self.drawn),
        )  # fmt: skip
        return asked if answered is not None else replace(asked, unknown=(HeldAsName.name,))

    @property
    def _is_smooth(self) -> bool:
        """Whether outputs are known to neither jump nor bend at numbers of training records."""
        return isinstance(self.what.learner, SklearnLearner) and is_smooth(self.what.learner.estimator)

    @property
    def _asks_new(self) -> bool:
        """Whether a model is asked which values that no record has it takes."""
        unknown = self.what.learner is not None and self.what.shadows is None and not self._is_smooth
        return unknown and self.kind is not AnswerKind.LABELS and not AskedBeside.too_many(self.candidates)

    @property
    def trains_to_ask(self) -> bool:
        """Whether one is trained for this: the audited model is not there, answers elsewhere or may remember it."""
        model = self.what.model
        return self._asks_new and (model is None or model.may_remember or isinstance(model, RemoteModel))

    def _answered_new(self, learner: Learner) -> tuple[dict[int, tuple[float, ...]], list[int]] | None:
        """Of which columns a model takes numbers for names, and of which a new category; ``None`` if there is none."""
        model, train, new = self.what.model, self.what.train, list[int]()
        columns, n_classes, rows = train.schema.columns, len(train.schema.classes), slice(N_TRIED)
        if self.trains_to_ask:
            try:
                model = trained(learner, train, seed=0).model
            except (DataError, ModelError):
                return None
        assert model is not None  # or one was trained
        own, estimator = model, getattr(model, "estimator", None)
        reads_texts = isinstance(learner, SklearnLearner) and estimator is not None
        for place, column in enumerate(columns if reads_texts else ()):
            # Of a data type with its own list of categories there may be no others.
            if not column.categories or column.dtype not in ("string", "object"):
                continue
            if not all(isinstance(one, str) for one in column.categories):
                continue
            schema = replace(train.schema, columns=(*columns[:place], with_new(column), *columns[place + 1 :]))
            queries = train.features[rows].copy()
            queries[:, place] = len(column.categories)
            with suppress(DataError, ModelError):
                answers(wrap(estimator, schema), queries, n_classes)
                new.append(place)
        return read_as_names(self.candidates, lambda queries: answers(own, queries, n_classes)), new

    @cached_property
    def without_each(self) -> PlannedWithout | None:
        """Models of all candidates but one each; ``None`` where they cannot be had in time, or there is no use."""
        return self._without_each(np.arange(len(self.candidates)))

    def _without_each(self, rows: Indices) -> PlannedWithout | None:
        """Of some rows of the candidates, each record once: how often those outside would be drawn, nobody knows."""
        learner = self.what.learner
        if learner is None or not self.shadows or self.kind is AnswerKind.LABELS:
            return None
        once = rows[np.isin(self.units.of_row[rows], self.overlap.copies.first)]
        trained = self.adds_up and self.allowance.each_candidate
        return PlannedWithout.of(
            learner, self.candidates, self.drawn, self._shadow_size, self.settings.seed, once, trained=trained
        )

    @property
    def lacks_models_without_each(self) -> bool:
        """Whether models of all candidates but one each, of other code, are too many, or take more than the budget."""
        known = self.what.learner is None or not of_other_code(self.what.learner) or not self._may_add_up
        return not known and not (self.adds_up and self.allowance.each_candidate)

    @property
    def adds_up(self) -> bool:
        """Whether models of all candidates but one each may be trained, of a learner with which that may be of use."""
        return len(self.candidates) <= MOST_TRAINED_EACH and self._may_add_up

    @cached_property
    def _may_add_up(self) -> bool:
        learner = self.what.learner
        return learner is not None and self.shadows and may_add_up(learner, self.what.train, seed=self.settings.seed)

    def _as_often(self, rng: np.random.Generator) -> tuple[Indices, Indices]:
        """Rows of all candidates, and of the holdout again: as often as training records were drawn.

        Shadow models are trained as the audited one was, and a holdout record that was a training record would have
        been drawn several times. How often is drawn from the training records, those of its class where there are any.

        Returns:
            The rows, and for each one of the holdout that stands there again a copy of a training record which it is
            like.
        """
        n_train, copies = len(self.what.train), self.overlap.copies
        first = self.units.first[copies.first]
        inside, outside = np.flatnonzero(first < n_train), np.flatnonzero(first >= n_train)
        rows = np.arange(len(self.candidates))
        if (copies.sizes[outside] > 1).any():  # the holdout has copies of its own
            return rows, rows[:0]
        kinds = self.candidates.labels[first] if self.what.train.schema.classes else np.zeros(len(first))
        like = np.full(len(first), -1)
        for kind in np.unique(kinds[inside]):
            these = outside[kinds[outside] == kind]
            like[these] = rng.choice(inside[kinds[inside] == kind], len(these))
        times = np.where(like < 0, 1, copies.sizes[like])
        again = np.repeat(rows[n_train:], times[self.drawn.of_row[n_train:]] - 1)
        copied, _ = copies.rows_of(like[like >= 0])
        return np.concatenate([rows, again]), copied[~np.isin(copied, copies.first)]

    def _as_different(self, values: Floats, like: Indices) -> Floats:
        """Values of rows ``[e, k]`` of which the last ones differ from the candidates as copies do from the first.

        They stay within the range of the candidates' values.
        """
        copies, n = self.overlap.copies, len(self.candidates)
        change = values[like] - values[copies.first[copies.of_row[like]]]
        change[np.isnan(change)] = 0
        if not change.any():
            return values
        ends = (np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0))
        return np.concatenate([values[:n], np.clip(values[n:] + change, *ends)])

    @property
    def solves(self) -> bool:
        """Whether the engine of the shadow models finds minima which the learner's own solver may stop short of."""
        return self.shadows and plan(self.shadow_job).engine.converges

    def with_learner(self, learner: Learner) -> Outline:
        """The same with another learner."""
        return replace(self, what=replace(self.what, learner=learner))

    def job(self, subsets: Subsets, queries: Queries) -> Job:
        """Models on parts of the training set."""
        return Job(self.learner, self.what.train, subsets, queries, 0, Randomness.COMMON)

    def leaving_out(self, rows: Indices) -> Job:
        """Models without one record or person each, asked about it."""
        left = LeftOut.of(self.what.train, rows)
        return self.job(left.subsets, left.queries)


def _interleaved(n_first: int, n: int, rng: np.random.Generator) -> Indices:
    """The first of n rows at random places among the others ``[n]``; both keep their own order."""
    first = np.zeros(n, dtype=bool)
    first[rng.choice(n, n_first, replace=False)] = True
    order = np.empty(n, dtype=np.int64)
    order[first], order[~first] = np.arange(n_first), np.arange(n_first, n)
    return order


def _enough_shadows(n_models: int, size: int, n_candidates: int, *, n_rows: int) -> None:
    """Raise ConfigError where balanced sets of this size leave some candidate in all shadow models, or in none."""
    rarer = min(size, n_candidates - size)
    if n_models * rarer < n_candidates:
        counted = "" if n_candidates == n_rows else f" (of {n_rows:,} rows; copies, and rows of one person, count once)"
        raise ConfigError(
            f"{n_models} shadow models are too few: each trains on {size:,} of {n_candidates:,} records{counted}, and "
            f"every record must be in some and out of some; train at least {-(-n_candidates // max(1, rarer))} shadow "
            f"models, or give {'fewer' if rarer == size else 'more'} holdout records"
        )
