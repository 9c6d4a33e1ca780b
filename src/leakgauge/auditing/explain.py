"""What an audit would do, before it does it: how many models, by which engine, how long, with how much memory.

One model is trained to know how long that takes, a few by each engine that takes them in chunks, and two where only
that shows whether seeds matter; nothing else is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from leakgauge.auditing.case import released_kind
from leakgauge.auditing.membership.measurement import n_set_aside, wants_shadows
from leakgauge.auditing.plan import Outline, PlannedStep
from leakgauge.auditing.questions import QUESTIONS
from leakgauge.auditing.settings import Settings
from leakgauge.auditing.subject import Subject
from leakgauge.models import AnswerKind, answers, kind_of
from leakgauge.records import concatenate
from leakgauge.training import coarse_tolerance, everything, plan
from leakgauge.training.engines import STOPPING
from leakgauge.training.engines.refit import Refit
from leakgauge.training.fingerprints import UNREPEATABLE
from leakgauge.training.learners import identity, trained
from leakgauge.training.threads import one_thread

TABLES_IN_MEMORY = 6
"""Tables of answers of shadow models that are in memory at once: logarithms, probabilities, bins, and what attacks
select from them. Found from the peak memory of audits with 4, 32 and 64 shadow models."""

N_PACE_MODELS = 16
"""Models that an engine with chunks is tried with, to know its pace."""


@dataclass(frozen=True)
class Explanation:
    """What an audit of one model would do.

    Args:
        model: its name.
        learner: the algorithm, or ``None``.
        answers: what the released model answers.
        questions: what will be asked, a sentence for each question that has something to say.
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
    questions: tuple[str, ...]
    steps: tuple[PlannedStep, ...]
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
    questions = [question(what, settings) for question in QUESTIONS]
    everyone, learner = concatenate(what.train, what.holdout), what.learner is not None
    n_answers = max(1, len(what.train.schema.classes))
    if learner:
        kind, per_fit, per_asked, converged = _one_fit(what, everyone.features, n_answers)
    else:
        assert what.model is not None  # a subject has one of the two
        kind, per_fit, per_asked, converged = kind_of(what.model), 0.0, 0.0, True
    kind = released_kind(kind, settings)
    population = any(question.wants_population for question in questions)
    n_aside = n_set_aside(kind, settings, len(what.holdout), learner=learner, attributes=population)
    judged = everyone[: len(everyone) - n_aside]
    shadows = wants_shadows(kind, settings, learner=learner)
    outline = Outline(what, settings, kind, judged, n_aside, shadows, converged)
    steps = []
    if learner:
        if what.model is None:
            audited = PlannedStep.of(
                "the audited model", outline.job(everything(len(what.train)), judged.features), engines=STOPPING
            )
            steps.append(audited)
            if any(question.asks_model(outline) for question in questions):
                again = "the model again, more queries"
                steps.append(replace(audited, what=again, n_models=1, n_trained=1, engine=Refit.name, refusals={}))
        steps += [step for question in questions for step in question.plan(outline)]
        steps = [replace(step, seconds=_seconds(step, per_fit, per_asked)) for step in steps]
    n_tables = max(settings.n_shadows if shadows else 1, *(step.asked_of_all for step in steps), 1)
    return Explanation(
        model=what.name,
        learner=None if what.learner is None else what.learner.name,
        answers=kind,
        questions=tuple(filter(None, (question.announce(outline) for question in questions))),
        steps=tuple(steps),
        seconds_per_fit=per_fit if learner else None,
        seconds=sum(step.seconds for step in steps if not step.sometimes),
        seconds_more=sum(step.seconds for step in steps if step.sometimes),
        n_bytes=TABLES_IN_MEMORY * 8 * n_tables * len(everyone) * n_answers + 2 * everyone.features.nbytes,
        warnings=tuple(_warnings(outline)),
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


def _seconds(step: PlannedStep, per_fit: float, per_asked: float) -> float:
    """How long a step takes: from the one fit for the plain loop, from a small part of it for an engine with chunks."""
    assert step.prepared is not None
    if step.engine == Refit.name:
        return step.n_models * (per_fit + step.asked_of_all * per_asked)
    prepared, n = step.prepared, len(step.prepared.job.subsets)
    if prepared.engine.chunk is None or n < 2:
        return 0.0
    n_few = min(N_PACE_MODELS, n)
    with one_thread():
        shared = _elapsed(prepared.share)
        one, few = (_elapsed(partial(prepared.answers, np.arange(m))) for m in (1, n_few))
    each = max(0.0, few - one) / max(1, n_few - 1)
    return (shared + -(-n // prepared.engine.chunk) * one + n * each) * step.n_models / n


def _elapsed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


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
            "version, or reads files or builds code while it runs."
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
    if not plan(outline.leaving_out(np.arange(n, dtype=np.int64))).engine.trains:
        return said + "Models without a record are converged here, whatever the tolerance."
    return said + f"Influence below that cannot be distinguished from 0; set tol to {0.001 / n:.0e} or less."
