"""One audit, from records to verdict. It orders the work; every number is computed by the question's own package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.auditing import attributes as attributes_part
from leakgauge.auditing import influence as influence_part
from leakgauge.auditing import membership as membership_part
from leakgauge.auditing import properties as properties_part
from leakgauge.auditing.description import describe, method, not_tested, notes
from leakgauge.auditing.finding import overall
from leakgauge.auditing.influence import Measured
from leakgauge.auditing.people import opaque_ids, records_table
from leakgauge.auditing.released import released_model
from leakgauge.auditing.result import AuditResult
from leakgauge.auditing.settings import Released, Settings
from leakgauge.auditing.subject import Data, Subject, subject
from leakgauge.errors import ModelError
from leakgauge.membership import Evidence, Population, left_out_error
from leakgauge.models import AnswerKind, answers, kind_of, label_logs
from leakgauge.records import Records, concatenate
from leakgauge.training import PredictionTable, Randomness, balanced_subsets, everything, train_many
from leakgauge.training.chunks import Workers

Floats: TypeAlias = NDArray[np.float64]
Stage: TypeAlias = Callable[[str, int, int], None]
"""Progress: called with the name of a stage, the models done and the models in all."""

MISMATCH = 0.01
"""A learner whose models differ from the audited one by more than this in mean probability did not make it."""


def audit(
    model: Any,
    *,
    train: Data,
    holdout: Data,
    target: str | None = None,
    learner: Any = None,
    name: str | None = None,
    settings: Settings | None = None,
    run: str | Path | None = None,
    workers: Workers = 1,
    progress: Stage | None = None,
) -> AuditResult:
    """Measure what a model gives away about its training records, and decide whether it may be released.

    Args:
        model: a fitted scikit-learn classifier, regressor or pipeline; an unfitted one or a
            :class:`~leakgauge.training.Learner`, which is then trained on ``train``; or any model of
            :mod:`leakgauge.models`.
        train: the records it was trained on: ``Records``, ``(X, y)``, or a data frame with the label column.
        holdout: records of the same population that it was not trained on, in the same form.
        target: name of the label column of data frames.
        learner: how the model was trained, if the model does not say; without it nothing can be said about the
            influence of single records, and that part of the verdict is *cannot tell*.
        name: how the report calls the model.
        settings: what to do, and the release rule.
        run: folder that keeps finished training, so that an interrupted audit goes on where it stopped.
        workers: processes, or the address of a Dask scheduler; they change no number.
        progress: called while models are trained.

    Returns:
        Verdict, findings with intervals, attacks, influence, and the table of records, most exposed first.

    Raises:
        InputError: records, model or settings cannot be used; the message says what to change.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> result = audit(GaussianNB().fit(X[:300], y[:300]), train=(X[:300], y[:300]), holdout=(X[300:], y[300:]))
    >>> result.verdict.value
    'fails'
    """
    what = subject(model, train, holdout, target=target, learner=learner, name=name)
    return audit_subject(what, settings or Settings(), run=run, workers=workers, progress=progress)


def audit_subject(
    what: Subject,
    settings: Settings,
    *,
    run: str | Path | None = None,
    workers: Workers = 1,
    progress: Stage | None = None,
) -> AuditResult:
    """The same for a subject that has been brought into form."""
    folder = None if run is None else Path(run)
    tell = progress or (lambda stage, done, total: None)
    hidden = attributes_part.hidden_columns(what, settings)
    wanted = properties_part.wanted_properties(what, settings)
    everyone = concatenate(what.train, what.holdout)
    kind, all_answers = _target_answers(what, everyone.features, settings, folder)
    aside = _set_aside(what, kind, settings, attributes=bool(hidden))
    judged = np.delete(np.arange(len(everyone)), aside)
    candidates, target_answers, is_member = everyone[judged], all_answers[judged], judged < len(what.train)
    given, what = what, replace(what, holdout=candidates[~is_member])
    known = Population(all_answers[aside], everyone.labels[aside], everyone.features[aside]) if len(aside) else None
    opaque = opaque_ids(candidates)
    copies = membership_part.wants_copies(kind, settings)
    model = released_model(what, settings) if hidden or copies or wanted else None
    inferred = attributes_part.infer_columns(
        model,
        what,
        hidden,
        everyone[aside] if len(aside) > 1 else None,
        opaque,
        settings,
        progress=lambda done, total: tell("hidden columns", done, total),
    )
    table = _shadows(what, candidates, kind, settings, folder, workers, tell)
    evidence = replace(
        _evidence(what, kind, target_answers, candidates.labels, is_member, table, settings, folder, workers),
        features=candidates.features,
        population=known,
        steadiness=membership_part.steadiness(model, candidates, settings) if model is not None and copies else None,
    )
    chosen = membership_part.possible_attacks(
        kind, settings.attacks, shadows=table is not None, population=known is not None
    )
    attacked = membership_part.carry_out(chosen, evidence, is_member, settings.rule)
    exposed, listed = membership_part.exposed(attacked, is_member)
    success = None if table is None else membership_part.per_record(table, candidates.labels, width=settings.bin_width)
    told = properties_part.infer_properties(
        model,
        given,
        kind,
        wanted,
        settings,
        run=folder,
        workers=workers,
        progress=lambda done, total: tell("games about properties", done, total),
    )
    measured, why_not = _influence(what, kind, target_answers, settings, folder, workers, tell)
    columns = tuple(column.result for column in inferred)
    findings = membership_part.advantage_findings(attacked, settings.rule, len(what.holdout))
    findings += attributes_part.findings(columns, settings.rule.advantage)
    findings += properties_part.findings(told, settings.rule.property, settings.rule.planted)
    findings += properties_part.unknown(settings, learner=what.learner is not None)
    if kind is not AnswerKind.VALUES:  # differential training privacy is defined for answers about classes
        findings = [*influence_part.findings(measured, what.learner, why_not, settings), *findings]
    rows, ids = records_table(candidates, opaque, is_member, attacked, success, measured, listed, inferred)
    return AuditResult(
        description=describe(what, kind, target_answers, candidates.labels, is_member, len(aside), settings),
        verdict=overall([finding.verdict for finding in findings]),
        findings=tuple(findings),
        attacks=tuple(one.result for one in attacked),
        influence=None if measured is None else influence_part.summarise(measured, len(what.train), settings, success),
        exposed=exposed,
        records=rows,
        notes=tuple(notes(what, kind, table, measured, why_not, settings)),
        not_tested=tuple(not_tested(kind, settings, table, measured, chosen, columns, told)),
        method=method(settings, table, measured, columns, told),
        ids=ids,
        attributes=columns,
        properties=told,
    )


def _target_answers(what: Subject, features: Floats, settings: Settings, run: Path | None) -> tuple[AnswerKind, Floats]:
    """What the released model says about all candidates, ``[n, k]``."""
    if what.model is not None:
        kind, given = kind_of(what.model), answers(what.model, features, len(what.train.schema.classes))
    else:
        assert what.learner is not None
        table = train_many(
            what.learner,
            what.train,
            everything(len(what.train)),
            features,
            seed=settings.seed,
            randomness=Randomness.COMMON,
            device=settings.device,
            run=run,
        )
        kind, given = table.kind, table.answers[0]
    if settings.released is not Released.AS_IS and kind is AnswerKind.VALUES:
        raise ModelError(f"released = {settings.released.value!r} is for classifiers; this model answers numbers")
    if settings.released is Released.BINNED and kind is AnswerKind.LABELS:
        raise ModelError("released = 'binned' needs probabilities; this model answers labels only")
    if kind is AnswerKind.PROBABILITIES:
        given = settings.release(given)
    return _released_kind(kind, settings), given


def _released_kind(kind: AnswerKind, settings: Settings) -> AnswerKind:
    labels = settings.released is Released.LABELS and kind is AnswerKind.PROBABILITIES
    return AnswerKind.LABELS if labels else kind


def _set_aside(what: Subject, kind: AnswerKind, settings: Settings, *, attributes: bool) -> NDArray[np.int64]:
    """Rows of training and holdout records together: part of the holdout, which the attacker is to hold."""
    n = membership_part.n_set_aside(
        kind, settings, len(what.holdout), learner=what.learner is not None, attributes=attributes
    )
    rng = np.random.default_rng([settings.seed, 3])
    return len(what.train) + np.sort(rng.choice(len(what.holdout), n, replace=False)).astype(np.int64)


def _shadows(
    what: Subject,
    candidates: Records,
    kind: AnswerKind,
    settings: Settings,
    run: Path | None,
    workers: Workers,
    tell: Stage,
) -> PredictionTable | None:
    """Models of the same algorithm on random sets of candidates as large as the training set."""
    if what.learner is None or not membership_part.wants_shadows(kind, settings, learner=True):
        return None
    rng = np.random.default_rng([settings.seed, 2])
    # At least a tenth of the candidates stay out of every set, or too few models would be left to compare with.
    size = min(len(what.train), int(0.9 * len(candidates)))
    table = train_many(
        what.learner,
        candidates,
        balanced_subsets(len(candidates), size, settings.n_shadows, rng),
        seed=settings.seed,
        device=settings.device,
        run=run,
        workers=workers,
        progress=lambda done, total: tell("shadow models", done, total),
    )
    if settings.released is Released.LABELS:
        return replace(table, answers=label_logs(table.answers), kind=AnswerKind.LABELS)
    if settings.released is Released.BINNED:  # the attacker's own models must answer as the target does
        return replace(table, answers=settings.release(table.answers))
    return table


def _evidence(
    what: Subject,
    kind: AnswerKind,
    target_answers: Floats,
    labels: NDArray[Any],
    is_member: NDArray[np.bool_],
    table: PredictionTable | None,
    settings: Settings,
    run: Path | None,
    workers: Workers,
) -> Evidence:
    evidence = Evidence(kind, target_answers, labels, shadows=table, width=settings.bin_width, seed=settings.seed)
    if kind is AnswerKind.PROBABILITIES:
        return replace(evidence, training_loss=float(np.mean(evidence.losses[is_member])))
    if kind is AnswerKind.VALUES:
        errors = evidence.errors
        out = (
            float(np.sqrt(np.mean(errors[~is_member] ** 2)))
            if what.learner is None
            else left_out_error(what.learner, what.train, seed=settings.seed, run=run, workers=workers)
        )
        return replace(evidence, sigma_in=float(np.sqrt(np.mean(errors[is_member] ** 2))), sigma_out=out)
    return evidence


def _influence(
    what: Subject,
    kind: AnswerKind,
    target_answers: Floats,
    settings: Settings,
    run: Path | None,
    workers: Workers,
    tell: Stage,
) -> tuple[Measured | None, str]:
    """PDTP, or why it could not be measured."""
    if kind is AnswerKind.VALUES:
        return None, "PDTP is defined for answers about classes; this model answers numbers"
    if what.learner is None:
        return None, "the model could only be queried: nobody said how it was trained"
    if settings.n_influence == 0:
        return None, "measuring influence was switched off"
    measured = influence_part.measure(
        what.learner,
        what.train,
        settings,
        run=run,
        workers=workers,
        progress=lambda done, total: tell("leave-one-out models", done, total),
    )
    apart = _distance_to_own(measured, target_answers)
    if what.model is not None and apart > MISMATCH + _distance_between_own(measured):
        return None, (
            f"the learner does not make the audited model: trained on these records it answers differently "
            f"(mean difference of probabilities {apart:.3f}); were these the training records and settings?"
        )
    return measured, ""


def _distance_to_own(measured: Measured, target_answers: Floats) -> float:
    """Mean over records of the largest difference between the audited model's probabilities and the learner's."""
    target = np.exp(target_answers[measured.found.which])
    return float(np.abs(np.exp(measured.found.with_record[0]) - target).max(axis=1).mean())


def _distance_between_own(measured: Measured) -> float:
    """The same between the learner's own models with different seeds, the largest over pairs; 0 for one seed."""
    refits = np.exp(measured.found.refits)
    return max((float(np.abs(a - b).max(axis=1).mean()) for i, a in enumerate(refits) for b in refits[:i]), default=0.0)
