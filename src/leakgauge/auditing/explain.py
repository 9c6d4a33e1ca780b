"""What an audit would do, before it does it: how many models, by which engine, how long, with how much memory.

A few models of each kind are trained to know how long that takes, as many as it takes to measure it, and two where only
that shows whether seeds matter; nothing else is.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from leakgauge.attributes.imputation import N_TREES
from leakgauge.auditing.case import N_ASKED_AGAIN, opened, released_kind
from leakgauge.auditing.membership.selection import n_set_aside, wants_copies, wants_shadows
from leakgauge.auditing.pace import Pace, elapsed, pace
from leakgauge.auditing.plan import Outline, PlannedStep
from leakgauge.auditing.question import Question
from leakgauge.auditing.questions import QUESTIONS
from leakgauge.auditing.settings import Settings
from leakgauge.auditing.shown import Shown
from leakgauge.auditing.subject import Data, Persons, Subject, possible_settings, subject
from leakgauge.checking import instance, optional
from leakgauge.escaping import one_line
from leakgauge.membership.noise_robustness import N_COPIES
from leakgauge.membership.shadow_classifier import PAPER_ROWS
from leakgauge.models import AnswerKind, answers, kind_of
from leakgauge.models.endpoints import RemoteModel
from leakgauge.progress import ShownProgress, Stage, reported
from leakgauge.records import concatenate
from leakgauge.training import coarse_tolerance, everything, plan
from leakgauge.training.engines import STOPPING
from leakgauge.training.engines.refit import Refit
from leakgauge.training.fingerprints import UNREPEATABLE
from leakgauge.training.learners import identity, trained
from leakgauge.training.threads import one_thread

TABLES_IN_MEMORY, OUTPUTS_IN_MEMORY, BYTES_PER_RECORD = 13, 3, 1500
"""Tables of answers of shadow models that are in memory at once: logarithms, probabilities, bins, and what attacks
select from them; of outputs of models without each record, these, influence, and equations; and what is kept of each
record beside. The first and the last were found from the peak memory of audits of 2,000 to 80,000 records with 16 and
64 shadow models and up to 10 classes; the second counts what is held."""

SECONDS_PER_NUMBER, SECONDS_PER_ROW = 1.5e-6, 1.6e-5
"""What the attacks take, for each number in the table of the shadow models, and for each row that a classifier learns
from; measured on audits of 500 to 16,000 records, 16 and 64 shadow models, 2 and 10 classes."""

SECONDS_PER_TREE = 3e-3
"""What a guess without the model takes, for each tree of its boosting."""

SECONDS_PER_CALL, ROWS_PER_CALL = 6e-4, 150
"""What the search for other queries takes for each call of a model beside the call, and about how many it asks."""


@dataclass(frozen=True, repr=False)
class Explanation(Shown):
    """What an audit of one model would do.

    Args:
        model: its name.
        learner: the algorithm, or ``None``.
        answers: what the released model answers.
        questions: what will be asked, a sentence for each question that has something to say.
        steps: the models.
        seconds_per_fit: time that training one model took, or ``None`` where there is no learner.
        seconds: of all training that is certain, on one worker; an estimate from a few models of each kind.
        seconds_more: of what is needed only sometimes.
        seconds_attacks: of the attacks on those models.
        n_bytes: memory of the answers of all shadow models, with the copies that attacks make, of the records, and of
            a model with what all models share; on top of what Python and its libraries take.
        warnings: what should be changed before.
    """

    model: str
    learner: str | None
    answers: AnswerKind
    questions: tuple[str, ...]
    steps: tuple[PlannedStep, ...]
    seconds_per_fit: float | None
    seconds: float
    seconds_more: float
    seconds_attacks: float
    n_bytes: int
    warnings: tuple[str, ...]

    @property
    def headline(self) -> str:
        """The model, and how many are trained for its audit."""
        n_trained = sum(step.n_trained for step in self.steps if not step.sometimes)
        return f"{one_line(self.model)}, {n_trained:,} models to train, about {self.seconds:,.3g} s"

    @property
    def described(self) -> Explanation:
        """What can be said in words, without the prepared work of the engines."""
        return replace(self, steps=tuple(replace(step, prepared=None) for step in self.steps))


def explain(
    model: Any,
    *,
    train: Data,
    holdout: Data,
    target: str | None = None,
    one_hot: Mapping[str, Sequence[str]] | None = None,
    persons: Persons = None,
    learner: Any = None,
    name: str | None = None,
    settings: Settings | None = None,
    progress: ShownProgress = True,
) -> Explanation:
    """Say what :func:`leakgauge.audit` would do, which takes the same: models, engines, time and memory.

    Args:
        model: a fitted or unfitted estimator, a learner, an endpoint, which is sent one request, or any model of
            :mod:`leakgauge.models`.
        train: the records it was trained on: ``Records``, ``(X, y)``, or a data frame with the label column.
        holdout: records of the same population that it was not trained on, in the same form.
        target: name of the label column of data frames.
        one_hot: as in :func:`leakgauge.audit`.
        persons: as in :func:`leakgauge.audit`.
        learner: how the model was trained, if the model does not say.
        name: how the report would call the model.
        settings: what the audit would do.
        progress: as in :func:`leakgauge.audit`, while the pace of the models is measured.

    Raises:
        InputError: records, model or settings cannot be used; the message says what to change.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = explain(GaussianNB(), train=(X[:300], y[:300]), holdout=(X[300:], y[300:]))
    >>> [(step.n_models, step.n_trained) for step in found.steps if step.what == "models without one record"]
    [(300, 0)]
    >>> found.to_frame().columns[:3].tolist()
    ['what', 'n_models', 'n_trained']
    """
    settings = optional(instance(Settings))("settings", settings) or Settings()
    what = subject(model, train, holdout, target=target, learner=learner, name=name, one_hot=one_hot, persons=persons)
    with reported(progress) as tell:
        return explain_subject(what, settings, progress=tell)


def explain_subject(what: Subject, settings: Settings, *, progress: Stage | None = None) -> Explanation:
    """The same for a subject that has been brought into form.

    Args:
        what: the model and its data.
        settings: what the audit would do.
        progress: called while the pace of the models is measured.

    Raises:
        ModelError: the learner cannot be trained on the training records, or the model does not answer.
    """
    settings.require_known_attacks()
    settings, what = possible_settings(what, settings), opened(what)
    questions = [question(what, settings) for question in QUESTIONS]
    everyone, learner = concatenate(what.train, what.holdout), what.learner is not None
    n_answers = max(1, len(what.train.schema.classes))
    if learner:
        kind, cost, converged = _one_fit(what, everyone.features, n_answers)
    else:
        assert what.model is not None  # a subject has one of the two
        kind, cost, converged = kind_of(what.model), _Cost(0.0, 0.0, 0.0), True
    kind = released_kind(kind, settings)
    population = any(question.wants_population for question in questions)
    attacked_by_shadows = learner or what.shadows is not None
    n_aside = n_set_aside(kind, settings, len(what.holdout), learner=attacked_by_shadows, attributes=population)
    judged = everyone[: len(everyone) - n_aside]
    shadows = wants_shadows(kind, settings, learner=attacked_by_shadows)
    if shadows and what.shadows is not None:
        settings = replace(settings, n_shadows=len(what.shadows))
    outline = Outline(what, settings, kind, judged, n_aside, shadows, converged)
    steps, most = [], 0
    if learner:
        if what.model is None:
            audited = PlannedStep.of(
                "the audited model", outline.job(everything(len(what.train)), judged.features), engines=STOPPING
            )
            steps.append(audited)
            if any(question.asks_model(outline) for question in questions):
                again = "the model again, more queries"
                steps.append(replace(audited, what=again, n_models=1, n_trained=1, engine=Refit.name, refusals={}))
        steps += _trial(outline)
        steps += [step for question in questions for step in question.plan(outline)]
        paces: dict[tuple[object, ...], Pace] = {}
        measured: list[PlannedStep] = []
        for step in steps:
            if progress is not None:
                progress("measuring the pace of models", len(measured), len(steps))
            measured.append(replace(step, seconds=_seconds(step, cost, paces)))
        steps = measured
        most = max((pace.n_bytes for pace in paces.values()), default=0)
    without = 0 if outline.without_each is None else outline.without_each.n_outputs
    n_tables = max(outline.n_shadows, *(step.asked_of_all for step in steps), 1)
    return Explanation(
        model=what.name,
        learner=None if what.learner is None else what.learner.name,
        answers=kind,
        questions=tuple(filter(None, (_queries(outline), *(question.announce(outline) for question in questions)))),
        steps=tuple(steps),
        seconds_per_fit=cost.fit if learner else None,
        seconds=sum(step.seconds for step in steps if not step.sometimes),
        seconds_more=sum(step.seconds for step in steps if step.sometimes),
        seconds_attacks=_seconds_of_attacks(outline, n_answers, questions) if attacked_by_shadows else 0.0,
        n_bytes=8 * (TABLES_IN_MEMORY * n_tables * len(everyone) + OUTPUTS_IN_MEMORY * without) * n_answers
        + BYTES_PER_RECORD * len(everyone)
        + 2 * everyone.features.nbytes
        + most,
        warnings=tuple(_warnings(outline)),
    )


def _queries(outline: Outline) -> str:
    """What an endpoint is asked, which may be paid for; attribute inference says its own."""
    if not isinstance(outline.what.model, RemoteModel):
        return ""
    n = len(outline.candidates)
    copies = f", and {N_COPIES * n:,} changed copies of records" if wants_copies(outline.kind, outline.settings) else ""
    again = min(N_ASKED_AGAIN, n + outline.n_population)
    return f"Queries to the endpoint: {n + outline.n_population:,} records, {again:,} of them twice{copies}."


def _trial(outline: Outline) -> list[PlannedStep]:
    """The model by which an audit sees how many its budget allows."""
    if not outline.allowance.measured:
        return []
    one = outline.leaving_out(np.zeros(1, dtype=np.int64))
    return [PlannedStep.of("a model without one record, to see how long it takes", one)]


@dataclass(frozen=True)
class _Cost:
    """Seconds to train a model, to ask it about all candidates, and to call it about a few queries."""

    fit: float
    everyone: float
    call: float


def _one_fit(what: Subject, features: Any, n_answers: int) -> tuple[AnswerKind, _Cost, bool]:
    """What the learner's models answer, what one costs, and whether it converged."""
    assert what.learner is not None
    with one_thread():  # as in the audit itself
        start = time.perf_counter()
        fitted = trained(what.learner, what.train, seed=0)
        took = time.perf_counter() - start
        everyone, call = (
            elapsed(partial(answers, fitted.model, rows, n_answers)) for rows in (features, features[:ROWS_PER_CALL])
        )
        return kind_of(fitted.model), _Cost(took, everyone, call), fitted.converged


def _seconds(step: PlannedStep, cost: _Cost, paces: dict[tuple[object, ...], Pace]) -> float:
    """How long a step takes, from the pace of its models; those like others are not measured again."""
    assert step.prepared is not None
    prepared, job = step.prepared, step.prepared.job
    if prepared.engine.name != step.engine:
        prepared = Refit().prepare(job)
    size = np.count_nonzero(job.subsets.row(0)) // max(1, len(job.records) // 20)
    like = (step.engine, id(job.learner), id(job.records), size, job.n_queries, step.engine == Refit.name or step.what)
    if like not in paces:
        paces[like] = pace(prepared, memory=True)
    n = len(job.subsets)
    asked = step.n_trained * max(0, step.asked_of_all - 1) * cost.everyone + step.n_calls * (
        cost.call + SECONDS_PER_CALL
    )
    return paces[like].seconds(n) * step.n_models / n + asked


def _seconds_of_attacks(outline: Outline, n_answers: int, questions: Sequence[Question]) -> float:
    """What is done with the answers of models, by its size."""
    n_numbers = max(1, outline.n_shadows) * len(outline.candidates) * n_answers
    learned = outline.shadows and outline.kind is AnswerKind.PROBABILITIES
    n_rows = min(PAPER_ROWS, n_numbers // n_answers) if learned else 0
    n_trees = sum(question.n_imputations(outline) for question in questions) * N_TREES
    return n_numbers * SECONDS_PER_NUMBER + n_rows * SECONDS_PER_ROW + n_trees * SECONDS_PER_TREE


def _warnings(outline: Outline) -> list[str]:
    what, said = outline.what, list[str]()
    if what.learner is None:
        return said
    tolerance = coarse_tolerance(what.learner, len(what.train))
    if tolerance is not None and outline.kind is not AnswerKind.VALUES:
        said.append(_coarse(outline, tolerance))
    if identity(what.learner).startswith(UNREPEATABLE):
        said.append(
            f"The learner {what.learner.name} cannot be identified when the audit is run again, so a stopped audit "
            "would start from the beginning. Its code could not be traced: it is in no file, is compiled without a "
            "version, or may read files or build code while it runs."
        )
    return said


def _coarse(outline: Outline, tolerance: float) -> str:
    """What a solver that stops early does to the numbers: seen on the model of all records, solved to the end."""
    train = outline.what.train
    n = len(train)
    whole = outline.job(everything(n), train.features)
    moved = Refit().prepare(whole).floor()
    said = (
        f"The solver of {outline.learner.name} stops at a tolerance of {tolerance:g}, above 0.01/n for {n:,} records. "
        f"With a converged solver, its predictions for the training records change by up to {moved.max():.2g} nats "
        f"(median {np.median(moved):.2g}), and PDTP compares two such predictions. "
    )
    if not plan(outline.leaving_out(np.arange(len(train.units)))).engine.trains:
        return said + "Models without a record are converged here, whatever the tolerance."
    return said + f"Influence below that cannot be distinguished from 0; set tol to {0.001 / n:.0e} or less."
