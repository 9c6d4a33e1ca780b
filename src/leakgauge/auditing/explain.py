"""What an audit would do, before it does it: how many models, by which engine, how long, with how much memory.

One model is trained to know how long that takes, a few by each engine that takes them in chunks, and two where only
that shows whether seeds matter; nothing else is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from leakgauge.arrays import Indices
from leakgauge.auditing import attributes as attributes_part
from leakgauge.auditing.attributes import Hidden, hidden_columns
from leakgauge.auditing.influence import N_SEARCHED
from leakgauge.auditing.membership import n_set_aside, possible_attacks, wants_copies, wants_shadows
from leakgauge.auditing.properties import (
    Wanted,
    influence_job,
    n_estimate_models,
    n_game_models,
    n_influence_models,
    not_filtered,
    released_learner,
    some_models,
    wanted_properties,
)
from leakgauge.auditing.settings import Queries as AskedOf
from leakgauge.auditing.settings import Released, Settings
from leakgauge.auditing.subject import Subject
from leakgauge.influence.delivered import n_looked_at
from leakgauge.influence.pdtp import N_TRIED as N_PROBED
from leakgauge.influence.pdtp import N_TWINS
from leakgauge.membership.error_law import MANY
from leakgauge.models import AnswerKind, answers, kind_of
from leakgauge.records import concatenate
from leakgauge.training import (
    EachModel,
    Job,
    Learner,
    LeaveOneOut,
    Randomness,
    Subsets,
    balanced_subsets,
    coarse_tolerance,
    everything,
    plan,
)
from leakgauge.training.engines import ENGINES, STOPPING
from leakgauge.training.engines.base import Engine, Prepared, Refusal
from leakgauge.training.engines.logistic.binary import LogisticRegressionNewton
from leakgauge.training.engines.refit import Refit
from leakgauge.training.fingerprints import UNREPEATABLE
from leakgauge.training.job import Queries
from leakgauge.training.learners import identity, trained
from leakgauge.training.threads import one_thread

if TYPE_CHECKING:
    from leakgauge.records import Records

INDEPENDENT = Randomness.INDEPENDENT

N_NOISE_MODELS = 8
"""Models trained on all records to find the noise floor of a randomised learner."""

N_WORST, N_SEEDS = 8, 16
"""A second look: 16 models on all records, and 16 without each of the 8 records that looked worst."""

COPIES = 6
"""Tables of answers of shadow models that are in memory at once: logarithms, probabilities, bins, and what attacks
select from them. Found from the peak memory of audits with 4, 32 and 64 shadow models."""

SHADOWS = "shadow models"
ASKED_ABOUT = "shadow models for attribute inference"
GAMES, FILTERING, ESTIMATE = "games about ", "filtering in games about ", "fraction of "
ASKED = "the model again, more queries"
NOISE = "other seeds, for the noise floor"

N_TRIED = 16
"""Models that an engine with chunks is tried with, to know its pace."""


@dataclass(frozen=True)
class Step:
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
    """

    what: str
    n_models: int
    n_trained: int
    engine: str
    refusals: dict[str, Refusal]
    sometimes: bool = False
    seconds: float = 0.0
    prepared: Prepared | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Explanation:
    """What an audit of one model would do.

    Args:
        model: its name.
        learner: the algorithm, or ``None``.
        answers: what the released model answers.
        attacks: names of the membership attacks.
        hidden: names of the columns that attackers try to infer.
        properties: names of the properties of the training set that games are played about.
        n_questions: how often the model is asked about records with a value of such a column in place.
        steps: the models.
        seconds_per_fit: time that training one model took, or ``None`` where there is no learner.
        seconds: of all training that is certain, on one worker; a rough estimate from that one fit.
        seconds_more: of what is needed only sometimes.
        n_bytes: memory of the answers of all shadow models, with the copies that attacks make, and of the records; on
            top of what Python and its libraries take.
        warnings: what should be changed before.
    """

    model: str
    learner: str | None
    answers: AnswerKind
    attacks: tuple[str, ...]
    hidden: tuple[str, ...]
    properties: tuple[str, ...]
    n_questions: int
    steps: tuple[Step, ...]
    seconds_per_fit: float | None
    seconds: float
    seconds_more: float
    n_bytes: int
    warnings: tuple[str, ...]


def explain(what: Subject, settings: Settings) -> Explanation:
    """Plan the audit of a model, and train it once to know how long that takes.

    Args:
        what: the model and its data.
        settings: what the audit would do.

    Raises:
        ModelError: the learner cannot be trained on the training records, or the model does not answer.
    """
    hidden, wanted = hidden_columns(what, settings), wanted_properties(what, settings)
    candidates = concatenate(what.train, what.holdout)
    n_answers = max(1, len(what.train.schema.classes))
    if what.learner is None:
        assert what.model is not None  # a subject has one of the two
        kind, per_fit, per_asked, converged = kind_of(what.model), None, 0.0, True
    else:
        kind, per_fit, per_asked, converged = _one_fit(what, candidates.features, n_answers)
    n_aside = n_set_aside(kind, settings, len(what.holdout), learner=what.learner is not None, attributes=bool(hidden))
    judged = candidates[: len(candidates) - n_aside]
    steps = tuple(
        replace(step, seconds=_seconds(step, per_fit or 0.0, per_asked, sum(len(one.attribute) for one in hidden)))
        for step in _steps(what, kind, settings, judged, hidden, wanted, converged)
    )
    shadows = next((step.n_models for step in steps if step.what == SHADOWS), 0)
    chosen = possible_attacks(kind, settings.attacks, shadows=shadows > 0, population=n_aside > 0)
    return Explanation(
        model=what.name,
        learner=None if what.learner is None else what.learner.name,
        answers=kind,
        attacks=tuple(attack.name for attack in chosen),
        hidden=tuple(column.name for column in hidden),
        properties=tuple(one.name for one in wanted),
        n_questions=len(candidates) * sum(len(column.attribute) for column in hidden),
        steps=steps,
        seconds_per_fit=per_fit,
        seconds=sum(step.seconds for step in steps if not step.sometimes),
        seconds_more=sum(step.seconds for step in steps if step.sometimes),
        n_bytes=_bytes(
            len(candidates),
            n_answers,
            max(shadows, 1, *(len(column.attribute) for column in hidden)),
            candidates.features.nbytes,
        ),
        warnings=tuple(_warnings(what, kind)),
    )


def _one_fit(what: Subject, features: Any, n_answers: int) -> tuple[AnswerKind, float, float, bool]:
    """What the learner's models answer, the seconds to train one and to ask it all candidates; whether it converged."""
    assert what.learner is not None
    with one_thread():  # as in the audit itself
        start = time.perf_counter()
        fitted = trained(what.learner, what.train, seed=0)
        ready = time.perf_counter()
        answers(fitted.model, features, n_answers)
        return kind_of(fitted.model), ready - start, time.perf_counter() - ready, fitted.converged


def _steps(
    what: Subject,
    kind: AnswerKind,
    settings: Settings,
    candidates: Records,
    hidden: Sequence[Hidden],
    wanted: Sequence[Wanted],
    converged: bool,
) -> list[Step]:
    """The jobs of an audit, as :func:`leakgauge.auditing.audit_subject` makes them."""
    if what.learner is None:
        return []
    steps, solves = [], False
    if what.model is None:
        whole = _job(what, everything(len(what.train)), candidates.features)
        audited = _step("the audited model", whole, engines=STOPPING)
        steps.append(audited)
        if hidden or wanted or wants_copies(kind, settings):
            steps.append(replace(audited, what=ASKED, n_models=1, n_trained=1, engine=Refit.name, refusals={}))
    if wants_shadows(kind, settings, learner=True):
        size = min(len(what.train), int(0.9 * len(candidates)))
        subsets = balanced_subsets(len(candidates), size, settings.n_shadows, np.random.default_rng(0))
        job = Job(what.learner, candidates, subsets, candidates.features, 0, INDEPENDENT, settings.device)
        solves = plan(job).engine.converges
        steps.append(_step(SHADOWS, job, engines=ENGINES if converged or not solves else STOPPING))
    if attributes_part.wants_shadows(hidden, settings, learner=True):
        halves = attributes_part.shadow_halves(len(candidates), settings)
        steps.append(
            _step(
                ASKED_ABOUT,
                Job(what.learner, candidates, halves, candidates.features, settings.seed, INDEPENDENT, settings.device),
            )
        )
    for one in wanted:
        steps += _property_steps(what.learner, one, kind, settings)
    n_chosen = len(what.train) if settings.n_influence is None else min(settings.n_influence, len(what.train))
    steps += _own_steps(what, settings, kind, n_chosen, solves=solves)
    if n_chosen == 0:
        return steps + _usual_error_step(what, kind)
    return [*steps, *_influence_steps(what, settings, np.arange(n_chosen, dtype=np.int64))]


def _property_steps(learner: Learner, wanted: Wanted, kind: AnswerKind, settings: Settings) -> Iterator[Step]:
    """The games about a property, for which the target models of one stand, filtering in them, and the estimate."""
    asked = AnswerKind.LABELS if settings.released is Released.LABELS else kind
    yield _many(
        f"{GAMES}{wanted.name}",
        some_models(wanted.sides.owner, wanted.game, learner, settings),
        n_game_models(asked, settings.games),
    )
    how = released_learner(learner, settings)
    if settings.games.remedies and not not_filtered(how, wanted):
        yield _many(f"{FILTERING}{wanted.name}", influence_job(how, wanted), n_influence_models(wanted, settings.games))
    if wanted.is_estimated:
        yield _many(
            f"{ESTIMATE}{wanted.name}",
            some_models(wanted.sides.attacker, wanted.possible, learner, settings),
            n_estimate_models(wanted, settings.games),
        )


def _many(what: str, some: Job, n_models: int) -> Step:
    """A step for which part of the work stands."""
    step = _step(what, some)
    return replace(step, n_models=n_models, n_trained=n_models if step.n_trained else 0)


def _influence_steps(what: Subject, settings: Settings, rows: Indices) -> Iterator[Step]:
    assert what.learner is not None
    n, asked = len(what.train), what.train.features[rows]
    learner = what.learner.without_unused_seed(what.train, seed=settings.seed)
    if _is_tried(what.learner, learner):
        yield _plainly(
            "the model with two seeds, to find out whether seeds matter", _job(what, everything(n, 2), asked)
        )
    what = replace(what, learner=learner)
    repeats = settings.n_repeats if learner.randomised else 1
    yield _step("the model on all records, again", _job(what, everything(n), asked), times=repeats)
    values = not what.train.schema.classes
    without = _step("models without one record", _leave_out(what, rows), times=repeats)
    yield without
    tight = learner.solved_to_the_end() or (learner if learner.seed_tried else None)
    plain = without.engine == Refit.name and not values
    if plain and learner.seed_tried:
        yield _plainly(
            "some models without one record, with two more seeds", _leave_out(what, np.repeat(rows[: 2 * N_PROBED], 2))
        )
        yield _step(NOISE, _job(what, everything(n, N_NOISE_MODELS), asked), sometimes=True)
    if plain and learner.rounding_otherwise(0) is not None:
        yield _plainly("the model on all records, rounded otherwise", _job(what, everything(n, N_TWINS), asked))
    if plain and tight is not None:
        end = replace(what, learner=tight)
        yield _plainly("the model on all records, converged", _job(end, everything(n), asked))
        yield _plainly("models without one record, converged", _leave_out(end, rows))
    if learner.randomised:
        yield _step(NOISE, _job(what, everything(n, N_NOISE_MODELS), asked))
        if settings.rule.dtp is not None:
            removed = np.repeat(rows[:N_WORST], N_SEEDS)
            again = _step(
                "second measurement of the records of largest PDTP", _leave_out(what, removed), sometimes=True
            )
            full = _step("", _job(what, everything(n, N_SEEDS), asked[:N_WORST]))
            yield replace(again, n_models=again.n_models + full.n_models, n_trained=again.n_trained + full.n_trained)
    elif settings.rule.queries is not AskedOf.DIRECT and not values:
        search = _step("search for other queries for the records of largest PDTP", _leave_out(what, rows[:N_SEARCHED]))
        n_floor = 0 if learner.solved_to_the_end() is None else 2  # how far its solver stops from the end
        n_trained = search.n_models + 1 + n_floor
        yield replace(search, n_models=n_trained, n_trained=n_trained, engine=Refit.name, refusals={})


def _is_tried(given: Learner, found: Learner) -> bool:
    """Whether two fits were to tell if seeds matter."""
    behind = given
    while isinstance(getattr(behind, "learner", None), Learner):
        behind = behind.learner  # type: ignore[attr-defined]
    tries = type(behind).without_unused_seed is not Learner.without_unused_seed
    return tries and behind.randomised and (found.randomised or found.seed_tried)


def _plainly(what: str, job: Job) -> Step:
    """Models that are trained in the plain loop, whatever engines there are."""
    return Step(what, len(job.subsets), len(job.subsets), Refit.name, {}, prepared=Refit().prepare(job))


def _own_steps(what: Subject, settings: Settings, kind: AnswerKind, n_chosen: int, *, solves: bool) -> list[Step]:
    """Models that the learner trains itself, to see how far they are from minima, or from the released model."""
    assert what.learner is not None
    left_out = _leave_out(what, np.arange(max(1, n_chosen), dtype=np.int64))
    engine = plan(left_out).engine
    n_models = int(solves)
    if n_chosen and engine.converges:
        bounded = isinstance(engine, LogisticRegressionNewton) and settings.released is Released.AS_IS
        n_models = 1 + n_looked_at(len(what.train) if bounded else n_chosen, len(what.train))
    elif n_chosen and what.model is not None and not what.learner.randomised and kind is not AnswerKind.VALUES:
        n_models = 1
    step = _step("the learner's own models, to compare with", left_out, engines=())
    return [replace(step, n_models=n_models, n_trained=n_models, refusals={})] if n_models else []


def _usual_error_step(what: Subject, kind: AnswerKind) -> list[Step]:
    """The error of a regressor on records it was not trained on, where a closed form has it."""
    n = len(what.train)
    if kind is not AnswerKind.VALUES or n > MANY:
        return []
    step = _step("models without one record", _leave_out(what, np.arange(n, dtype=np.int64)))
    return [] if step.n_trained else [step]


def _leave_out(what: Subject, removed: Indices) -> Job:
    return _job(what, LeaveOneOut(len(what.train), removed), EachModel(removed[:, None]))


def _job(what: Subject, subsets: Subsets, queries: Queries) -> Job:
    assert what.learner is not None
    return Job(what.learner, what.train, subsets, queries, 0, Randomness.COMMON)


def _step(what: str, job: Job, *, times: int = 1, sometimes: bool = False, engines: Sequence[Engine] = ENGINES) -> Step:
    found = plan(job, engines=engines)
    # Of all other models there are few, and that engines are not for them is not worth saying.
    worth_saying = isinstance(job.subsets, LeaveOneOut) and not sometimes
    refusals = found.refusals if worth_saying else {}
    n_models, n_trained = found.n_models * times, found.n_trained * times
    return Step(what, n_models, n_trained, found.engine.name, refusals, sometimes, prepared=found.prepared)


def _seconds(step: Step, per_fit: float, per_asked: float, n_values: int) -> float:
    """How long a step takes: from the one fit for the plain loop, from a small part of it for an engine with chunks."""
    assert step.prepared is not None
    if step.engine == Refit.name:
        asked = per_asked if step.what == SHADOWS or step.what.startswith((GAMES, ESTIMATE)) else 0.0
        asked += n_values * per_asked * (step.what == ASKED_ABOUT)
        return step.n_models * (per_fit + asked)
    prepared, n = step.prepared, len(step.prepared.job.subsets)
    if prepared.engine.chunk is None or n < 2:
        return 0.0
    n_few = min(N_TRIED, n)
    with one_thread():
        shared = _elapsed(prepared.share)
        one, few = (_elapsed(partial(prepared.answers, np.arange(m))) for m in (1, n_few))
    each = max(0.0, few - one) / max(1, n_few - 1)
    return (shared + -(-n // prepared.engine.chunk) * one + n * each) * step.n_models / n


def _elapsed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _bytes(n_candidates: int, n_answers: int, n_models: int, n_features_bytes: int) -> int:
    return COPIES * 8 * n_models * n_candidates * n_answers + 2 * n_features_bytes


def _warnings(what: Subject, kind: AnswerKind) -> list[str]:
    said: list[str] = []
    if what.learner is None:
        return said
    tolerance = coarse_tolerance(what.learner, len(what.train))
    if tolerance is not None and kind is not AnswerKind.VALUES:
        said.append(_coarse(what, tolerance))
    if identity(what.learner).startswith(UNREPEATABLE):
        said.append(
            f"The learner {what.learner.name} cannot be identified when the audit is run again, so a stopped audit "
            "would start from the beginning. Its code could not be traced: it is in no file, is compiled without a "
            "version, or reads files or builds code while it runs."
        )
    return said


def _coarse(what: Subject, tolerance: float) -> str:
    """What a solver that stops early does to the numbers: seen on the model of all records, solved to the end."""
    assert what.learner is not None
    n = len(what.train)
    whole = _job(what, everything(n), what.train.features)
    moved = Refit().prepare(whole).floor()
    said = (
        f"The solver of {what.learner.name} stops at a tolerance of {tolerance:g}, above 0.01/n for {n:,} records. "
        f"With a converged solver, its predictions for the training records change by up to {moved.max():.2g} nats "
        f"(median {np.median(moved):.2g}), and PDTP compares two such predictions. "
    )
    if not plan(_leave_out(what, np.arange(n, dtype=np.int64))).engine.trains:
        return said + "Models without a record are converged here, whatever the tolerance."
    return said + f"Influence below that cannot be distinguished from 0; set tol to {0.001 / n:.0e} or less."
