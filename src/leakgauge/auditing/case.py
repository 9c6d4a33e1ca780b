"""One subject in the form in which every question looks at it: records judged, answers as released, who is a member."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.auditing.description import describe
from leakgauge.auditing.membership.edges import edges_tell, jumps
from leakgauge.auditing.membership.holding import holds_records
from leakgauge.auditing.membership.last_part import LastPart
from leakgauge.auditing.membership.nearby import nearby, steadiness, unseen_categories
from leakgauge.auditing.membership.selection import n_set_aside, wants_copies, wants_models_without, wants_shadows
from leakgauge.auditing.membership.shadows import ShadowModels, known_steps, train_shadows
from leakgauge.auditing.overlap import TOLERANCES, holdout_repeats
from leakgauge.auditing.people import opaque_ids
from leakgauge.auditing.plan import Outline, known_state
from leakgauge.auditing.question import Answer
from leakgauge.auditing.released import (
    Releasing,
    predicts_otherwise,
    released_model,
    with_predicted_labels,
)
from leakgauge.auditing.result import Description
from leakgauge.auditing.settings import ReleasedOutputs, Settings
from leakgauge.auditing.subject import Subject
from leakgauge.errors import DataError, ModelError, UserCodeError
from leakgauge.escaping import shapes
from leakgauge.influence import OwnModels
from leakgauge.membership import KnownSteps, LinearColumns, ModelsWithout
from leakgauge.membership.columns import columns_of
from leakgauge.membership.noise_robustness import N_COPIES
from leakgauge.membership.without import PlannedWithout
from leakgauge.models import (
    AnswerKind,
    Model,
    Release,
    answers,
    answers_with_sums,
    as_is,
    kind_of,
    label_logs,
)
from leakgauge.models.sklearn import GIVE_THOSE, keeps_values, other_columns
from leakgauge.progress import Stage
from leakgauge.records import Native, Records, Units, concatenate, record_codes
from leakgauge.records._messages import shortened
from leakgauge.streams import AuditStream
from leakgauge.training import (
    Execution,
    Learner,
    Randomness,
    SklearnLearner,
    everything,
    train_many,
)
from leakgauge.training.engines import STOPPING
from leakgauge.training.learners import of_other_code, trained
from leakgauge.training.random_features import draw_features, with_known_features

A = TypeVar("A", bound=Answer)

N_ASKED_AGAIN, FEWEST_ASKED_AGAIN = 200, 20
"""Records that the released model is asked about a second time, in another order, and as many as say anything."""

MOST_ERRORS_APART, ALIKE_LEVEL = 2.0, 0.05
"""Standard errors by which means of two sets may differ for these to be alike, and what a p-value must exceed."""

N_ASKED_ALONE = 100
"""Of these, each in a query of its own: a model may answer a single row as it answers no batch."""

FEW_ASKED_ALONE = 10
"""The same of code that is known to answer alike, where each call takes as long as one about all."""

BATCH_ROUNDING = 1e-4
"""Change of a probability, or of a number over its size, that a batch of another size may make in single precision."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Case(Outline):
    """One subject, and what was found about it so far.

    Args:
        answers: what is released about the candidates ``[n, k]``: log-probabilities, or numbers.
        behind: the same as the model knows it.
        beside: what else is known of each answer ``[n, b]``, such as what it added up to.
        asked_nearby: whether the model answered about records that are hardly changed.
        is_member: which candidates are members, bool ``[n]``.
        given: the subject with the whole holdout, without rows that repeat others.
        judged: places of the candidates among all records of that subject, training records first, int ``[n]``.
        n_repeats: holdout records that were left out for repeating others.
        n_moved: records that got another answer when the model was asked again, of `n_asked_again`.
        n_asked_again: how many it was asked about again.
        population: holdout records that the attacker is given as known non-members.
        population_behind: what the model knows about them.
        opaque: names of the candidates that name nobody.
        execution: where and how models are trained.
        progress: called while models are trained.
        found: the answers of the questions asked so far, by name.
    """

    answers: Floats
    behind: Floats
    beside: Floats
    asked_nearby: bool
    is_member: Flags
    given: Subject
    judged: Indices
    n_repeats: int
    n_moved: int
    n_asked_again: int
    population: Records
    population_behind: Floats
    opaque: Sequence[str]
    execution: Execution
    progress: Stage | None = None
    found: dict[str, Answer] = field(default_factory=dict)

    def answer(self, kind: type[A]) -> A | None:
        """What a question answered that was asked before, by the type of its answers."""
        return next((one for one in self.found.values() if isinstance(one, kind)), None)

    def telling(self, stage: str) -> Execution:
        """Where and how models of a stage are trained, with their progress under its name."""
        if self.progress is None:
            return self.execution
        return replace(self.execution, progress=partial(self.progress, stage))

    @cached_property
    def member_units(self) -> Flags:
        """Which units of the candidates are members, bool ``[m]``: those of the training set come first."""
        return self.units.agreed(self.is_member)

    @cached_property
    def different(self) -> Indices:
        """Rows of the candidates without those that equal an earlier row of their person, ``[e]``.

        All rows, where persons of both sets have as many equal ones, up to chance: then these tell nothing.
        """
        all_rows = np.arange(len(self.candidates))
        if self.units.single:
            return all_rows
        whose = self.units.of_row
        if self.given.only_scores:  # answers in full tell rows apart, unless several persons have the same one
            told = np.column_stack([self.answers, self.candidates.labels])
            code = np.unique(told, axis=0, return_inverse=True)[1].reshape(-1)
            n_persons = np.bincount(np.unique(np.stack([code, whose]), axis=1)[0])
            code = np.where(n_persons[code] == 1, code, len(n_persons) + np.arange(len(code)))
        else:
            codes = record_codes(self.what.train, self.what.holdout, tolerance=TOLERANCES[0])
            code = np.concatenate([codes.train, codes.holdout])
        first = np.sort(np.unique(np.stack([whose, code]), axis=1, return_index=True)[1])
        share = np.bincount(whose[first]) / self.units.sizes
        return all_rows if self._drawn_alike(share) else first

    def _drawn_alike(self, numbers: NDArray[np.generic]) -> bool:
        """Whether a number of each unit ``[m]`` seems to be drawn alike for members and others, by mean and by law."""
        from scipy.stats import ks_2samp

        if (numbers == numbers[0]).all():
            return True
        inside, outside = numbers[self.member_units], numbers[~self.member_units]
        error = np.sqrt(inside.var() / len(inside) + outside.var() / len(outside))
        if abs(inside.mean() - outside.mean()) > MOST_ERRORS_APART * error:
            return False
        return bool(ks_2samp(inside, outside, method="asymp").pvalue > ALIKE_LEVEL)

    @cached_property
    def levelled(self) -> Indices:
        """Rows of the candidates that attacks look at ``[e]``: of members as many for each person as of others.

        All different ones, where numbers of rows seem to be drawn alike: then they tell members by chance only, which
        intervals allow for.
        """
        units = Units(self.units.of_row[self.different])
        if self._drawn_alike(units.sizes):
            return self.different
        return self.different[units.levelled(self.member_units, AuditStream.ROWS.generator(self.settings.seed))]

    @property
    def rows_differ(self) -> bool:
        """Whether persons of the two sets have different numbers of rows, by more than chance."""
        return len(self.levelled) < len(self.different)

    @cached_property
    def edges_tell(self) -> bool:
        """Whether labels, or bins, may tell more by where they change than by what they are."""
        return edges_tell(self)

    @cached_property
    def jumps(self) -> bool:
        """Whether outputs jump where no column has a threshold, of code or trees that are not looked into."""
        return jumps(self)

    @cached_property
    def looked_into(self) -> Model:
        """The audited model where it is an estimator, else one of the learner.

        Raises:
            DataError: none can be trained.
            ModelError: the same.
        """
        model = self.what.model
        return (
            model
            if model is not None and hasattr(model, "estimator")
            else trained(self.learner, self.what.train, seed=0).model
        )

    @cached_property
    def hides_steps(self) -> bool:
        """Whether it is not known that models trained to compare with the audited one read the same features."""
        learner, part, known = self.what.learner, self.last_part, self.known_steps
        if part is not None:
            return known is None or known.is_many
        return learner is not None and draw_features(learner)

    @cached_property
    def last_part(self) -> LastPart | None:
        """The last step of the audited pipeline, where the others make other columns than those of shadow models."""
        return LastPart.of(self)

    @cached_property
    def known_steps(self) -> KnownSteps | None:
        """Shadow models of the last part that read what the steps of the audited one make of records."""
        part = self.last_part
        if part is None or part.made is None or (job := part.job(self)) is None:
            return None
        return known_steps(self, part.made, job)

    @cached_property
    def columns(self) -> LinearColumns:
        """What a linear model, or a network, of the learner reads of the candidates."""
        train = self.shadow_models.table is not None
        learner, model = (self.what.learner, None) if train else (None, self.what.model)
        return columns_of(self.candidates, learner, model, self.settings.seed, known_state(self.what, self.settings))

    @cached_property
    def holds_records(self) -> bool:
        """Whether code that is not known holds training records, of which outputs may tell which they are."""
        return holds_records(self)

    @property
    def learned(self) -> Release:
        """What attackers learn of answers: those released, or also what is behind bins whose edges tell it.

        An endpoint, or a function, may have put its answers into bins itself, and has no others.
        """
        binned, model = self.settings.released is ReleasedOutputs.BINNED, self.what.model
        has_others = model is None or hasattr(model, "estimator")
        return as_is if binned and has_others and self.edges_tell else self.settings.release

    @cached_property
    def rows_left_out(self) -> float:
        """Share of the pairs of different rows of a member, on average, that attacks do not look at together.

        Of scores alone rows with equal ones may be different: that they are equal may be what distinguishes members, or
        others, so that of either the larger share counts, and a person who has such rows counts whole.
        """

        def unseen(looked_at: Indices, rows: Indices, side: Flags) -> float:
            kept, sizes = (np.bincount(self.units.of_row[some]) for some in (looked_at, rows))
            seen = np.where(kept == sizes, 1.0, kept * (kept - 1) / np.maximum(1, sizes * (sizes - 1)))
            return float(1 - seen[side].mean())

        inside, all_rows = self.member_units, np.arange(len(self.candidates))
        if self.given.only_scores:
            again = np.bincount(self.units.of_row[self.different]) < self.units.sizes
            shares = [
                unseen(self.levelled, all_rows, inside),
                *(float(again[side].mean()) for side in (inside, ~inside)),
            ]
        else:
            shares = [unseen(self.levelled, self.different, inside)]
        return round(max(shares), 9)

    @cached_property
    def model(self) -> Model:
        """The released model itself, for questions about records that are in no table of answers."""
        return released_model(self.what, self.settings)

    def affords(self, n_queries: int) -> bool:
        """Whether the released model may be asked so many more queries."""
        return self.what.model is None or self.what.model.affordable(n_queries) == n_queries

    @cached_property
    def asks_copies(self) -> bool:
        """Whether the released model is asked about changed copies of the candidates."""
        return wants_copies(self.kind, self.settings) and self.affords(N_COPIES * len(self.candidates))

    @cached_property
    def steadiness(self) -> Floats | None:
        """How often it keeps their classes then ``[n]``; ``None`` where it is not asked, or does not answer."""
        if self.asks_copies:
            with suppress(DataError, ModelError):
                return steadiness(self.model, self.candidates, self.settings)
        return None

    @cached_property
    def shadow_models(self) -> ShadowModels:
        """Answers of the shadow models about the candidates, or why there are none; trained when first asked for."""
        return train_shadows(self)

    @cached_property
    def without_each(self) -> PlannedWithout | None:
        """Models of all candidates but one each: of as many rows of members as of others, who move a model alike."""
        return self._without_each(np.sort(self.levelled))

    @cached_property
    def models_without(self) -> ModelsWithout | None:
        """Outputs of models of all candidates but one each, where an engine solves for them."""
        planned = self.without_each
        if planned is None or not wants_models_without(self.kind, self.settings):
            return None
        with suppress(ModelError):
            return planned.train(self.telling("models without one record"))
        return None

    @cached_property
    def description(self) -> Description:
        """What was audited."""
        return describe(self)

    @cached_property
    def own(self) -> OwnModels:
        """Models that the learner trains itself, to compare with."""
        return OwnModels(self.learner, self.what.train, self.settings.seed)


KNOWN_FEATURES = (
    "The model has random features, which were drawn without a number, and can be found in its file or by queries: "
    "models that are trained to compare with it have the same ones."
)
"""What a report says where an audited model has some."""


def _joined(*notes: str) -> str:
    return " ".join(filter(None, notes))


def _with_known_features(what: Subject, settings: Settings) -> Subject:
    if what.learner is None:
        return what
    learner = with_known_features(what.learner, what.model, what.train, settings.seed)
    return what if learner is what.learner else replace(what, learner=learner, note=_joined(what.note, KNOWN_FEATURES))


def open_case(
    what: Subject, settings: Settings, *, wants_population: bool, execution: Execution, progress: Stage | None
) -> Case:
    """Ask the released model about everybody, and set aside what the attacker is given.

    Args:
        what: the model or learner with its records.
        settings: of the audit.
        wants_population: whether a question besides membership needs records known to be outside.
        execution: where and how models are trained.
        progress: called while models are trained.
    """
    what = with_predicted_labels(_with_known_features(what, settings), settings)
    repeats = holdout_repeats(what.train, what.holdout)
    if repeats.any():
        what = replace(what, holdout=what.holdout[~repeats])
    everyone = concatenate(what.train, what.holdout)
    told = _asked(what, everyone, settings, execution)
    if told.kind is AnswerKind.PROBABILITIES:
        said = predicts_otherwise(what, everyone, told.answers, settings.seed)
        what = replace(what, note=_joined(what.note, said))
    aside = _set_aside(what, told.kind, settings, attributes=wants_population)
    judged = np.delete(np.arange(len(everyone)), aside)
    candidates, is_member = everyone[judged], judged < len(what.train)
    return Case(
        what=replace(what, holdout=candidates[~is_member]),
        settings=settings,
        kind=told.kind,
        candidates=candidates,
        n_population=len(everyone.units) - len(candidates.units),
        shadows=wants_shadows(told.kind, settings, learner=what.learner is not None or what.shadows is not None),
        answers=told.answers[judged],
        behind=told.behind[judged],
        beside=told.beside[judged],
        asked_nearby=told.asked_nearby,
        is_member=is_member,
        given=what,
        judged=judged,
        n_repeats=int(repeats.sum()),
        n_moved=told.n_moved,
        n_asked_again=told.n_again,
        population=everyone[aside],
        population_behind=told.behind[aside],
        opaque=opaque_ids(candidates),
        execution=execution,
        progress=progress,
    )


def opened(what: Subject, run: Path | None = None, progress: Stage | None = None) -> Subject:
    """A subject that can be asked.

    Where a model behind an endpoint outputs labels, the learner's models output labels as well.

    Args:
        what: the model or learner with its records.
        run: folder that keeps the answers of an endpoint.
        progress: called as it answers.
    """
    if what.endpoint is None:
        return what
    what = what.opened(run, None if progress is None else partial(progress, "queries to the endpoint"))
    if what.learner is not None and what.model is not None and kind_of(what.model) is AnswerKind.LABELS:
        what = replace(what, learner=Releasing(what.learner, label_logs))
    return what


def released_kind(kind: AnswerKind, settings: Settings) -> AnswerKind:
    """What the released model answers, of what it would answer as it is.

    Raises:
        ModelError: such answers cannot be released in the form that the settings ask for.
    """
    if settings.released is not ReleasedOutputs.AS_IS and kind is AnswerKind.VALUES:
        raise ModelError(f"released = {settings.released.value!r} is for classifiers; this model predicts numbers")
    if settings.released is ReleasedOutputs.BINNED and kind is AnswerKind.LABELS:
        raise ModelError("released = 'binned' needs probabilities; this model outputs labels only")
    labels = settings.released is ReleasedOutputs.LABELS and kind is AnswerKind.PROBABILITIES
    return AnswerKind.LABELS if labels else kind


@dataclass(frozen=True, eq=False)
class _Released:
    """What is released about everyone.

    Args:
        kind: of the answers.
        answers: ``[n, k]``.
        behind: the same as the model knows it.
        n_moved: about how many of whom an answer changes when asked again.
        n_again: how many were asked about again.
        beside: what else is known of each answer ``[n, b]``.
        asked_nearby: whether the model answered about records that are hardly changed.
    """

    kind: AnswerKind
    answers: Floats
    behind: Floats
    n_moved: int
    n_again: int
    beside: Floats
    asked_nearby: bool

    __repr__ = shapes


def _asked(what: Subject, everyone: Records, settings: Settings, execution: Execution) -> _Released:
    """What is released about everyone."""
    features, n_moved, n_again, asked_nearby = everyone.features, 0, 0, False
    beside: list[Floats] = []
    if what.model is not None:
        n_classes = len(what.train.schema.classes)
        try:
            kind = kind_of(what.model)
            released_kind(kind, settings)  # before queries that may cost something
            rng = AuditStream.ASKED_AGAIN.generator(settings.seed)
            again = _drawn_again(everyone.units, len(what.train), rng)
            told, sums = _told(what.model, features, n_classes, rng)
            affordable = what.model.affordable(len(again))
            again = again[: affordable if affordable >= min(FEWEST_ASKED_AGAIN, len(again)) else 0]
            whose = everyone.units.of_row[again]
            moved = _moved(kind, told[again], _again(what.model.afresh(), features[again], n_classes))
            before, moved_before = _told_before(what, everyone, kind, told)
            whose, moved = np.append(whose, everyone.units.of_row[before]), np.append(moved, moved_before)
            n_again, n_moved = len(np.unique(whose)), len(np.unique(whose[moved]))
            if settings.released is ReleasedOutputs.AS_IS:
                rng = AuditStream.NEARBY.generator(settings.seed)
                near, asked_nearby = nearby(what.model, everyone, len(what.train), kind, told, rng)
                beside = near if sums is None else [sums, *near]
        except UserCodeError as error:
            differ = _other_columns(what)
            if differ:
                raise DataError(f"{differ}; {GIVE_THOSE}") from error
            hints = _hints(everyone)
            raise UserCodeError(f"{error}; it must predict all training and holdout records: {hints}") from error
    else:
        assert what.learner is not None
        assert what.endpoint is None  # it was opened
        table = train_many(
            what.learner,
            what.train,
            everything(len(what.train)),
            features,
            seed=settings.seed,
            randomness=Randomness.COMMON,
            engines=STOPPING,  # what is released is where the solver stops
            execution=execution.alone,
        )
        kind, told = table.kind, table.answers[0]
        keeps = _may_keep_values(what.learner) or unseen_categories(everyone, len(what.train))
        if settings.released is ReleasedOutputs.AS_IS and not table.failures and keeps:
            draws = AuditStream.NEARBY.generator(settings.seed)
            with suppress(DataError, ModelError):  # an engine may find models that the learner's own solver does not
                model = trained(what.learner, what.train, seed=int(table.seeds[0])).model
                beside, asked_nearby = nearby(model, everyone, len(what.train), kind, told, draws)
    released = released_kind(kind, settings)
    probabilities = kind is AnswerKind.PROBABILITIES
    answered = settings.release(told) if probabilities else told
    behind = answered if released is AnswerKind.LABELS else told
    columns = np.stack(beside, axis=1) if beside else np.empty((len(told), 0))
    return _Released(released, answered, behind, n_moved, n_again, columns, asked_nearby)


def _may_keep_values(learner: Learner) -> bool:
    """Whether a model of it may say more of a training record that is changed, or of which something is left out."""
    return of_other_code(learner) or (isinstance(learner, SklearnLearner) and keeps_values(learner.estimator))


def _told(model: Model, features: Floats, n_classes: int, rng: np.random.Generator) -> tuple[Floats, Floats | None]:
    """What a model answers about everyone, in an order that tells nobody's membership to code that may remember.

    And what these answers added up to, if that is known ``[n]``.
    """
    if not model.may_remember:
        return answers_with_sums(model, features, n_classes)
    order = rng.permutation(len(features))
    back = np.argsort(order)
    told, sums = answers_with_sums(model, features[order], n_classes)
    return told[back], None if sums is None else sums[back]


def _told_before(what: Subject, everyone: Records, kind: AnswerKind, told: Floats) -> tuple[Indices, Flags]:
    """About which rows a model had been asked before and of which it said something else; none if of none."""
    assert what.model is not None
    if what.model.told_before is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
    asked, answered = what.model.told_before
    place = {row.tobytes(): number for number, row in enumerate(everyone.features)}
    rows = np.array([place.get(row.tobytes(), -1) for row in asked], dtype=np.int64)
    kept = rows >= 0
    moved = _moved(kind, answered[kept], told[rows[kept]])
    return (rows[kept], moved) if moved.any() else (rows[:0], moved[:0])


def _drawn_again(units: Units, n_train: int, rng: np.random.Generator) -> Indices:
    """Whom to ask about again: rows of members and of others by turns, all of one person's before the next."""
    whose = units.of_row[n_train:]
    sides = [
        units.rows_of(rng.permutation(side))[0][:N_ASKED_AGAIN]
        for side in (np.unique(units.of_row[:n_train]), np.unique(whose))
    ]
    n_each = min(map(len, sides))
    by_turns = np.column_stack([side[:n_each] for side in sides]).reshape(-1)
    return np.concatenate([by_turns, *(side[n_each:] for side in sides)])[:N_ASKED_AGAIN]


def _again(model: Model, rows: Floats, n_classes: int) -> Floats:
    """What a model answers about rows ``[m, d]``, the first by themselves if it can: of those it cannot NaN."""
    alone, told = rows[: N_ASKED_ALONE if model.may_remember else FEW_ASKED_ALONE], []
    for row in alone:
        try:
            told.append(answers(model, row[None], n_classes))
        except ModelError:
            told.append(np.full((1, max(1, n_classes)), np.nan))
    if all(np.isnan(one).all() for one in told):  # it takes no single rows
        told, alone = [], rows[:0]
    rest = rows[len(alone) :]
    return np.concatenate([*told, answers(model, rest, n_classes)] if len(rest) or not told else told)


def _hints(everyone: Records) -> str:
    """What may keep a model from predicting these records, by what they hold."""
    hints = []
    if everyone.features.dtype.kind == "f" and np.isnan(everyone.features).any():
        hints.append("some have missing values, which it has to take")
    if texts := [column.name for column in everyone.schema.columns if column.is_categorical]:
        hints.append(
            f"columns of categories ({shortened(texts)}): give its encoder every category, or let it ignore unknown "
            'ones (handle_unknown="ignore"); a model of pandas categories needs a table that keeps them, as Parquet; '
            "one that was fitted to digits as text needs text = true for the column of a CSV file"
        )
    return "; ".join(hints) or f"call it with all {len(everyone):,} at once to see what it raises"


def _other_columns(what: Subject) -> str:
    """How the columns differ from those that the model was trained on; empty where they do not."""
    schema, model = what.train.schema, getattr(what.model, "estimator", None)
    if schema.array.shape is not None:
        return ""
    return other_columns(model, None if schema.native is Native.NUMPY else schema.names, schema.n_features)


def _moved(kind: AnswerKind, before: Floats, after: Floats) -> Flags:
    """For which records two answers differ by more than a batch of another size may round differently ``[n]``."""
    if kind is AnswerKind.VALUES:
        differs = ~(np.abs(after - before) <= BATCH_ROUNDING * (np.abs(before) + float(np.std(before))))
    else:
        differs = ~np.isclose(np.exp(before), np.exp(after), rtol=0, atol=BATCH_ROUNDING, equal_nan=True)
    return np.asarray(differs.any(axis=1))


def _set_aside(what: Subject, kind: AnswerKind, settings: Settings, *, attributes: bool) -> Indices:
    """Rows of training and holdout records together: part of the holdout, which the attacker is to hold."""
    shadows = what.learner is not None or what.shadows is not None
    units = what.holdout.units
    n = n_set_aside(kind, settings, len(units), learner=shadows, attributes=attributes)
    rng = AuditStream.SET_ASIDE.generator(settings.seed)
    rows, _ = units.rows_of(rng.choice(len(units), n, replace=False))
    return len(what.train) + np.sort(rows).astype(np.int64)
