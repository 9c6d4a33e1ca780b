"""One audit, from records to verdict. It orders the work; every number is computed by the question's own package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.auditing import attributes as attributes_part
from leakgauge.auditing import change as change_part
from leakgauge.auditing import influence as influence_part
from leakgauge.auditing import membership as membership_part
from leakgauge.auditing import properties as properties_part
from leakgauge.auditing.advice import Outputs, Situation
from leakgauge.auditing.change import Measured as MeasuredChange
from leakgauge.auditing.description import describe, method, not_tested, notes
from leakgauge.auditing.finding import overall
from leakgauge.auditing.influence import Measured
from leakgauge.auditing.overlap import Overlap, holdout_repeats, repeats_note
from leakgauge.auditing.people import opaque_ids, records_table
from leakgauge.auditing.released import released_answers, released_model
from leakgauge.auditing.result import AuditResult
from leakgauge.auditing.settings import Queries, Released, Settings
from leakgauge.auditing.subject import Data, Subject, subject
from leakgauge.checking import either, instance, optional, whole
from leakgauge.errors import ConfigError, ModelError, UserCodeError
from leakgauge.influence import OwnModels
from leakgauge.membership import Evidence, Population, left_out_error
from leakgauge.membership.error_law import MANY
from leakgauge.models import AnswerKind, answers, kind_of
from leakgauge.records import Records, concatenate
from leakgauge.streams import AuditStream
from leakgauge.training import (
    EachModel,
    Execution,
    Job,
    PredictionTable,
    Randomness,
    Workers,
    balanced_subsets,
    everything,
    leave_one_out,
    plan,
    train_many,
)
from leakgauge.training.engines import ENGINES, STOPPING

Stage: TypeAlias = Callable[[str, int, int], None]
"""Progress: called with the name of a stage, the models done and the models in all."""

MISMATCH = 0.1
"""Of the limit on DTP: a mean log ratio between the released model and a randomised learner's, beyond that between
seeds, at which the learner is said not to have made it."""


N_ASKED_AGAIN = 200
"""Records that the released model is asked about a second time, in another order."""

LARGEST_ROUNDING = 1e-4
"""Change of a probability, or of a number over its size, that a batch of another size may make in single precision."""


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
    settings = optional(instance(Settings))("settings", settings) or Settings()
    what = subject(model, train, holdout, target=target, learner=learner, name=name)
    return audit_subject(what, settings, run=run, workers=workers, progress=progress)


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
    if progress is not None and not callable(progress):
        raise ConfigError(f"progress must be a function, got a value of type {type(progress).__name__}")
    execution = Execution(None if run is None else Path(run), workers, settings.device)

    def telling(stage: str) -> Execution:
        return execution if progress is None else replace(execution, progress=partial(progress, stage))

    hidden = attributes_part.hidden_columns(what, settings)
    wanted = properties_part.wanted_properties(what, settings)
    repeats, n_holdout = holdout_repeats(what.train, what.holdout), len(what.holdout)
    if repeats.any():
        what = replace(what, holdout=what.holdout[~repeats])
    everyone = concatenate(what.train, what.holdout)
    kind, all_answers, moved = _target_answers(what, everyone.features, settings, execution)
    aside = _set_aside(what, kind, settings, attributes=bool(hidden))
    judged = np.delete(np.arange(len(everyone)), aside)
    candidates, target_answers, is_member = everyone[judged], all_answers[judged], judged < len(what.train)
    given, what = what, replace(what, holdout=candidates[~is_member])
    known = Population(all_answers[aside], everyone.labels[aside], everyone.features[aside]) if len(aside) else None
    opaque = opaque_ids(candidates)
    overlap = Overlap.of(what.train, what.holdout)
    copies = membership_part.wants_copies(kind, settings)
    model = released_model(what, settings) if hidden or copies or wanted else None
    inferred, not_inferred = attributes_part.infer_columns(
        model,
        what,
        hidden,
        everyone[aside] if len(aside) > 1 else None,
        opaque,
        settings,
        overlap=overlap,
        execution=telling("sensitive attributes"),
    )
    own = None if what.learner is None else OwnModels(what.learner, what.train, settings.seed)
    table, no_shadows = _shadows(what, candidates, kind, settings, own, telling("shadow models"))
    measured, change, why_not = _influence(
        what, kind, target_answers, candidates, is_member, settings, own, telling("leave-one-out models")
    )
    usual = _usual_error(what, kind, target_answers, candidates, is_member, table, change, settings, execution)
    evidence = replace(
        _evidence(kind, target_answers, candidates.labels, is_member, table, usual, settings),
        features=candidates.features,
        population=known,
        steadiness=membership_part.steadiness(model, candidates, settings) if model is not None and copies else None,
    )
    chosen = membership_part.possible_attacks(
        kind, settings.attacks, shadows=table is not None, population=known is not None
    )
    attacked = membership_part.carry_out(chosen, evidence, is_member, settings.rule, overlap, among=settings.n_attacks)
    exposed, listed = membership_part.exposed(attacked, is_member, among=settings.n_attacks)
    success = None if table is None else membership_part.per_record(table, candidates.labels, width=settings.bin_width)
    told, not_told = properties_part.infer_properties(
        model,
        given,
        kind,
        wanted,
        settings,
        execution=telling("property inference"),
    )
    columns = tuple(column.result for column in inferred)
    description = describe(
        what, kind, target_answers, candidates.labels, is_member, len(aside), settings,
        overlap.share(settings.rule.confidence),
    )  # fmt: skip
    situation = _situation(what, kind, settings)
    attacks, rule = tuple(one.result for one in attacked), settings.rule
    findings = membership_part.findings(
        attacks, description, situation, advantage=rule.advantage, dtp=rule.dtp, learner=what.learner is not None
    )
    findings += membership_part.shadows_finding(no_shadows, rule)
    findings += membership_part.unsteady_finding(moved, rule)
    findings += attributes_part.findings(columns, rule.advantage, rule.dtp, situation)
    findings += attributes_part.unknown(not_inferred, rule.advantage)
    findings += properties_part.findings(told, rule.property, rule.planted, situation)
    findings += properties_part.unknown(not_told, rule.property)
    if kind is AnswerKind.VALUES:  # differential training privacy is defined for answers about classes
        findings = [*change_part.finding(change, what.learner, why_not, settings, situation), *findings]
    else:
        findings = [*influence_part.findings(measured, what.learner, why_not, settings, situation), *findings]
    rows, ids = records_table(candidates, opaque, is_member, attacked, success, measured or change, listed, inferred)
    return AuditResult(
        description=description,
        verdict=overall([finding.verdict for finding in findings]),
        findings=tuple(findings),
        attacks=attacks,
        influence=None if measured is None else influence_part.summarise(measured, len(what.train), settings, success),
        exposed=exposed,
        records=rows,
        notes=(
            *notes(
                what, kind, table, measured, why_not, no_shadows, not_inferred, not_told, settings, usual, description
            ),
            *repeats_note(int(repeats.sum()), n_holdout),
        ),
        not_tested=tuple(not_tested(what, kind, settings, table, measured, change, chosen, columns, told)),
        method=method(settings, table, measured, change, columns, told),
        ids=ids,
        attributes=columns,
        properties=told,
        change=None if change is None else change_part.summarise(change, settings),
    )


def _target_answers(
    what: Subject, features: Floats, settings: Settings, execution: Execution
) -> tuple[AnswerKind, Floats, tuple[int, int]]:
    """What the released model says about all candidates, ``[n, k]``; how many answers change when it is asked again."""
    moved = 0, 0
    if what.model is not None:
        n_classes = len(what.train.schema.classes)
        try:
            kind, given = kind_of(what.model), answers(what.model, features, n_classes)
            again = AuditStream.ASKED_AGAIN.generator(settings.seed).permutation(len(features))[:N_ASKED_AGAIN]
            moved = _n_moved(kind, given[again], answers(what.model, features[again], n_classes)), len(again)
        except UserCodeError as error:
            raise UserCodeError(
                f"{error}; it must predict all training and holdout records: give its encoder all "
                'categories, or let it ignore unknown ones (handle_unknown="ignore")'
            ) from error
    else:
        assert what.learner is not None
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
        kind, given = table.kind, table.answers[0]
    if settings.released is not Released.AS_IS and kind is AnswerKind.VALUES:
        raise ModelError(f"released = {settings.released.value!r} is for classifiers; this model predicts numbers")
    if settings.released is Released.BINNED and kind is AnswerKind.LABELS:
        raise ModelError("released = 'binned' needs probabilities; this model outputs labels only")
    if kind is AnswerKind.PROBABILITIES:
        given = settings.release(given)
    return _released_kind(kind, settings), given, moved


def _n_moved(kind: AnswerKind, before: Floats, after: Floats) -> int:
    """For how many records two answers differ by more than a batch of another size may round differently."""
    if kind is AnswerKind.VALUES:
        differs = np.abs(after - before) > LARGEST_ROUNDING * (np.abs(before) + float(np.std(before)))
    else:
        differs = ~np.isclose(np.exp(before), np.exp(after), rtol=0, atol=LARGEST_ROUNDING, equal_nan=True)
    return int(np.count_nonzero(differs.any(axis=1)))


def _situation(what: Subject, kind: AnswerKind, settings: Settings) -> Situation:
    """What advice depends on, before anything is found."""
    return Situation(
        outputs=Outputs.of(kind.value, settings.released.value),
        dtp=None if kind is AnswerKind.VALUES else settings.rule.dtp,
        any_query=settings.rule.queries is not Queries.DIRECT,
        n_train=len(what.train),
        n_holdout=len(what.holdout),
    )


def _released_kind(kind: AnswerKind, settings: Settings) -> AnswerKind:
    labels = settings.released is Released.LABELS and kind is AnswerKind.PROBABILITIES
    return AnswerKind.LABELS if labels else kind


def _set_aside(what: Subject, kind: AnswerKind, settings: Settings, *, attributes: bool) -> NDArray[np.int64]:
    """Rows of training and holdout records together: part of the holdout, which the attacker is to hold."""
    n = membership_part.n_set_aside(
        kind, settings, len(what.holdout), learner=what.learner is not None, attributes=attributes
    )
    rng = AuditStream.SET_ASIDE.generator(settings.seed)
    return len(what.train) + np.sort(rng.choice(len(what.holdout), n, replace=False)).astype(np.int64)


def _shadows(
    what: Subject,
    candidates: Records,
    kind: AnswerKind,
    settings: Settings,
    own: OwnModels | None,
    execution: Execution,
) -> tuple[PredictionTable | None, str]:
    """Models of the same algorithm on random sets of candidates as large as the training set, or why there are none.

    The reason is empty where none are wanted.
    """
    if what.learner is None or own is None or not membership_part.wants_shadows(kind, settings, learner=True):
        return None, ""
    rng = AuditStream.SHADOW_SETS.generator(settings.seed)
    # At least a tenth of the candidates stay out of every set, or too few models would be left to compare with.
    size = min(len(what.train), int(0.9 * len(candidates)))
    subsets = balanced_subsets(len(candidates), size, settings.n_shadows, rng)
    job = Job(what.learner, candidates, subsets, candidates.features, settings.seed, Randomness.INDEPENDENT)
    try:
        # The attacker's models are trained as the target was, even where that does not come to the end of its solver.
        stops = plan(job).engine.converges and not own.converged
        table = train_many(
            what.learner,
            candidates,
            subsets,
            seed=settings.seed,
            engines=STOPPING if stops else ENGINES,
            execution=execution,
        )
    except ModelError as error:
        return (
            None,
            f"none of {settings.n_shadows} shadow models could be trained and predict all records ({error})",
        )
    why_not = membership_part.why_no_shadows(table)
    if why_not:
        return None, why_not
    return released_answers(table, settings), ""


def _usual_error(
    what: Subject,
    kind: AnswerKind,
    target_answers: Floats,
    candidates: Records,
    is_member: NDArray[np.bool_],
    table: PredictionTable | None,
    change: MeasuredChange | None,
    settings: Settings,
    execution: Execution,
) -> tuple[float, str] | None:
    """How far a regressor usually errs on records it was not trained on, and where that is from.

    No model is trained for it. By models without each record where they have a closed form or were trained for their
    influence; else by the shadow models that were trained without a record; else by the holdout.
    """
    if kind is not AnswerKind.VALUES:
        return None
    n = len(what.train)
    errors = None if change is None else change.found.left_out_errors
    if errors is not None and len(errors) == n and np.isfinite(errors).all():
        return float(np.sqrt(np.mean(errors**2))), "all models without one record"
    if what.learner is not None and n <= MANY:
        everyone = np.arange(n)
        queries = EachModel(everyone[:, None])
        job = Job(what.learner, what.train, leave_one_out(n), queries, settings.seed, Randomness.INDEPENDENT)
        if not plan(job).engine.trains:
            return (
                left_out_error(what.learner, what.train, seed=settings.seed, execution=execution),
                "all models without one record",
            )
    if errors is not None and np.isfinite(errors).sum() >= change_part.FEWEST_ERRORS:
        known = errors[np.isfinite(errors)]
        return float(np.sqrt(np.mean(known**2))), f"models without one of {len(known):,} records"
    if table is not None:
        known = (table.values - candidates.labels)[~table.members]
        known = known[np.isfinite(known)]
        if len(known):
            return float(np.sqrt(np.mean(known**2))), "shadow models, for records that they were not trained on"
    outside = candidates.labels[~is_member] - target_answers[~is_member, 0]
    return float(np.sqrt(np.mean(outside**2))), "the holdout"


def _evidence(
    kind: AnswerKind,
    target_answers: Floats,
    labels: NDArray[Any],
    is_member: NDArray[np.bool_],
    table: PredictionTable | None,
    usual: tuple[float, str] | None,
    settings: Settings,
) -> Evidence:
    evidence = Evidence(kind, target_answers, labels, shadows=table, width=settings.bin_width, seed=settings.seed)
    if kind is AnswerKind.PROBABILITIES:
        return replace(evidence, training_loss=float(np.mean(evidence.losses[is_member])))
    if usual is not None:
        own = float(np.sqrt(np.mean(evidence.errors[is_member] ** 2)))
        return replace(evidence, sigma_in=own, sigma_out=usual[0])
    return evidence


def _influence(
    what: Subject,
    kind: AnswerKind,
    target_answers: Floats,
    candidates: Records,
    is_member: NDArray[np.bool_],
    settings: Settings,
    own: OwnModels | None,
    execution: Execution,
) -> tuple[Measured | None, MeasuredChange | None, str]:
    """PDTP, or of a regressor the change of its predictions; or why neither could be measured."""
    if what.learner is None or own is None:
        return None, None, "no training procedure was given, so the model cannot be retrained without a record"
    if settings.n_influence == 0:
        return None, None, "the settings switch the measurement of influence off"
    limit = settings.rule.dtp or 1.0
    try:
        if kind is AnswerKind.VALUES:
            errors = candidates.labels - target_answers[:, 0]
            change = change_part.measure(
                what.learner,
                what.train,
                np.asarray(errors[~is_member], dtype=np.float64),
                settings,
                model=what.model,
                execution=execution,
            )
            apart = change_part.apart(change, np.asarray(target_answers[is_member, 0]))
            return (None, change, "") if apart <= limit else (None, None, _mismatch(f"usual errors {apart:.3g}"))
        measured = influence_part.measure(
            what.learner,
            what.train,
            settings,
            model=what.model,
            own=own,
            execution=execution,
        )
    except ModelError as error:
        return None, None, f"training without single records failed, or those models gave no predictions ({error})"
    if measured.apart > (limit * MISMATCH if measured.found.learner.randomised else limit):
        return None, None, _mismatch(f"log ratio of probabilities {measured.apart:.3g}")
    return measured, None, ""


def _mismatch(how_far: str) -> str:
    return (
        "retraining with these records and settings does not reproduce the audited model: its predictions for the "
        f"training records differ ({how_far})"
    )
