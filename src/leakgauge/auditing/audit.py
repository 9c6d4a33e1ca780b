"""One audit, from records to verdict. It goes through the questions; every number is computed by their own packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from leakgauge._version import __version__
from leakgauge.auditing.case import Case, open_case, opened
from leakgauge.auditing.document import N_LISTED, AuditResult
from leakgauge.auditing.finding import overall
from leakgauge.auditing.gate import agreed
from leakgauge.auditing.overlap import copies_note, note, repeats_note
from leakgauge.auditing.people import not_grouped, own_texts, persons_note, records_table
from leakgauge.auditing.questions import QUESTIONS
from leakgauge.auditing.settings import Settings
from leakgauge.auditing.subject import Data, Persons, Subject, possible_settings, subject
from leakgauge.auditing.unexplained import EXPLAINS_NOTHING, explains_nothing, unexplained
from leakgauge.checking import either, instance, optional, whole
from leakgauge.progress import ShownProgress, Stage, reported
from leakgauge.training import Execution, Workers
from leakgauge.training.threads import free_threads, threads

OUT_OF_REACH = (
    "Attackers with access to the parameters, the gradients or several versions of the model.",
    "A trainer who hides membership in the model on purpose.",
)
"""What no audit says anything about."""


def audit(
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
    run: str | Path | None = None,
    workers: Workers = 1,
    progress: ShownProgress = True,
) -> AuditResult:
    """Measure what a model reveals about its training records, and decide whether it may be released.

    Args:
        model: a fitted scikit-learn classifier, regressor or pipeline; an unfitted one or a
            :class:`~leakgauge.training.Learner`, which is then trained on ``train``; a trained ``torch.nn.Module``,
            which is asked about the encoded features; an :class:`~leakgauge.models.Endpoint`, which is only queried;
            or any model of :mod:`leakgauge.models`.
        train: the records it was trained on: ``Records``, ``(X, y)``, or a data frame with the label column.
        holdout: records of the same population that it was not trained on, in the same form.
        target: name of the label column of data frames.
        one_hot: by the name of a feature its columns of 0 and 1, such as ``{"race": ["race_white", "race_black"]}``:
            attribute inference asks about the feature, and queries that are searched for keep exactly one 1. Columns of
            arrays are called ``x0``, ``x1``, ….
        persons: whose row each is: the name of a column of data frames, or a pair of arrays, one for either set. Then
            persons are audited with all of their rows; the model never sees this column.
        learner: how the model was trained, if the model does not say; without it nothing can be said about the
            influence of single records, and that part of the verdict is *cannot tell*.
        name: how the report calls the model.
        settings: what to do, and the release rule.
        run: folder that keeps finished training, so that an interrupted audit goes on where it stopped.
        workers: processes, or the address of a Dask scheduler; results do not depend on it.
        progress: a bar with the stage and the remaining time, on a terminal or in a notebook; ``False`` for none, or a
            function that is called with the name of the stage, the models done and the models in all.

    Returns:
        Verdict, findings with intervals, attacks, influence, and the table of records, most exposed first.

    Raises:
        InputError: records, model or settings cannot be used; the message says what to change.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> result = audit(GaussianNB().fit(X[:300], y[:300]), train=(X[:300], y[:300]), holdout=(X[300:], y[300:]))
    >>> result
    <AuditResult: fails, GaussianNB, 300 training and 269 holdout records>
    >>> print(result.summary(width=80).splitlines()[0])
    ✗ Fails the release rule  GaussianNB
    >>> result.to_frame("findings").verdict.iloc[0]
    'fails'
    """
    settings = optional(instance(Settings))("settings", settings) or Settings()
    what = subject(model, train, holdout, target=target, learner=learner, name=name, one_hot=one_hot, persons=persons)
    with reported(progress) as tell:
        return audit_subject(what, settings, run=run, workers=workers, progress=tell)


def audit_subject(
    what: Subject,
    settings: Settings,
    *,
    run: str | Path | None = None,
    workers: Workers = 1,
    progress: Stage | None = None,
) -> AuditResult:
    """The same for a subject that has been brought into form."""
    either(str, otherwise=whole(1))("workers", workers)
    optional(instance(str, PathLike))("run", run)
    settings.require_known_attacks()
    settings = possible_settings(what, settings)
    execution = Execution(None if run is None else Path(run), workers, settings.device)
    what = opened(what, execution.run, progress)
    questions = [question(what, settings) for question in QUESTIONS]
    population = any(question.wants_population for question in questions)
    case = open_case(what, settings, wants_population=population, execution=execution, progress=progress)
    with threads(free_threads()):
        for question in questions:
            case.found[question.name] = question.ask(case)
        return agreed(_result(case))


def _result(case: Case) -> AuditResult:
    """The answers to all questions as one result."""
    found, settings = list(case.found.values()), case.settings
    about, parts = case.description, {name: value for one in found for name, value in one.part(case).items()}
    method: dict[str, Any] = {"seed": settings.seed, "device": settings.device, "bin_width": settings.bin_width}
    for one in found:
        method |= one.method(case)
    retrained = case.what.model is None or any(parts[name] is not None for name in ("influence", "change", "outlier"))
    if not retrained and explains_nothing(case):
        method[EXPLAINS_NOTHING] = True
    made = [finding for one in found for finding in one.findings(case, case.situation)]
    findings = about.of([*made, *unexplained(method, about, settings.rule)])
    rows, ids = records_table(case)
    notes = [
        note(about.overlap, about.n_duplicates, about.n_holdout),
        "" if about.n_rows is None else persons_note(about),
        case.what.note,
        getattr(case.what.model, "note", ""),
        *own_texts(case.given),
        *repeats_note(case.n_repeats, len(case.given.holdout) + case.n_repeats),
        *copies_note(
            len(case.overlap.train_once), len(case.overlap.equal.train), nearly=case.overlap.nearly_equal_copies
        ),
        *(said for one in found for said in one.notes(case)),
    ]
    versions = {"leakgauge": __version__, "numpy": np.__version__, "scikit-learn": sklearn.__version__}
    return AuditResult(
        description=about,
        verdict=overall([finding.verdict for finding in findings]),
        findings=findings,
        most_exposed=rows[:N_LISTED],
        notes=tuple(about.worded(one) for one in notes if one),
        not_tested=(
            *(about.worded(said) for one in found for said in one.not_tested(case)),
            *not_grouped(case.given.repeated_keys),
            *OUT_OF_REACH,
        ),
        rule=settings.rule,
        method=method | {"versions": versions},
        records=rows,
        ids=ids,
        **parts,
    )
