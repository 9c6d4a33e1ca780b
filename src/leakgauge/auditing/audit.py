"""One audit, from records to verdict. It orders the work; every number is computed by the question's own package."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge._version import __version__
from leakgauge.auditing import influence as influence_part
from leakgauge.auditing import membership as membership_part
from leakgauge.auditing.finding import overall
from leakgauge.auditing.influence import Measured
from leakgauge.auditing.membership import Attacked
from leakgauge.auditing.result import AuditResult, Description, ExposedRecord
from leakgauge.auditing.settings import Queries, Released, Settings
from leakgauge.auditing.subject import Data, Subject, subject
from leakgauge.errors import ModelError
from leakgauge.influence import EVERY_QUERY
from leakgauge.membership import ATTACKS, Evidence, Success, everyone_as_target, left_out_error
from leakgauge.models import AnswerKind, answers, kind_of
from leakgauge.records import concatenate, find_duplicates
from leakgauge.statistics import Estimate, clopper_pearson, mean
from leakgauge.training import PredictionTable, Randomness, balanced_subsets, everything, train_many

Floats: TypeAlias = NDArray[np.float64]
Stage: TypeAlias = Callable[[str, int, int], None]
"""Progress: called with the name of a stage, the models done and the models in all."""

SUCCESS_ATTACK = next(attack for attack in ATTACKS if attack.name == "distance")
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
    workers: int = 1,
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
        workers: processes; they change no number.
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
    workers: int = 1,
    progress: Stage | None = None,
) -> AuditResult:
    """The same for a subject that has been brought into form."""
    folder = None if run is None else Path(run)
    tell = progress or (lambda stage, done, total: None)
    candidates = concatenate(what.train, what.holdout)
    is_member = np.arange(len(candidates)) < len(what.train)
    kind, target_answers = _target_answers(what, candidates.features, settings, folder)
    table = _shadows(what, candidates, kind, settings, folder, workers, tell)
    evidence = _evidence(what, kind, target_answers, candidates.labels, is_member, table, settings, folder, workers)
    chosen = membership_part.possible_attacks(kind, settings.attacks, shadows=table is not None)
    attacked = membership_part.carry_out(chosen, evidence, is_member, settings.rule)
    success = _success(table, candidates.labels, kind, settings)
    measured, why_not = _influence(what, kind, target_answers, settings, folder, workers, tell)
    findings = [
        *influence_part.findings(measured, what.learner, why_not, settings),
        *membership_part.advantage_findings(attacked, settings.rule, len(what.holdout)),
    ]
    if kind is AnswerKind.VALUES:
        findings = [finding for finding in findings if finding.question != "influence"]
    rows, ids = _records_table(candidates, is_member, attacked, success, measured)
    return AuditResult(
        description=_describe(what, kind, target_answers, candidates.labels, is_member, settings),
        verdict=overall([finding.verdict for finding in findings]),
        findings=tuple(findings),
        attacks=tuple(one.result for one in attacked),
        influence=None if measured is None else influence_part.summarise(measured, len(what.train), settings, success),
        records=rows,
        notes=tuple(_notes(what, kind, table, measured, why_not)),
        not_tested=tuple(_not_tested(kind, settings, table, measured)),
        method=_method(settings, table, measured),
        ids=ids,
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


def _shadows(
    what: Subject,
    candidates: Any,
    kind: AnswerKind,
    settings: Settings,
    run: Path | None,
    workers: int,
    tell: Stage,
) -> PredictionTable | None:
    """Models of the same algorithm on random sets of candidates as large as the training set."""
    wanted = any(
        attack.needs_shadows for attack in ATTACKS if settings.attacks is None or attack.name in settings.attacks
    )
    if what.learner is None or settings.n_shadows == 0 or kind is AnswerKind.VALUES or not wanted:
        return None
    rng = np.random.default_rng([settings.seed, 2])
    # At least a tenth of the candidates stay out of every set, or too few models would be left to compare with.
    size = min(len(what.train), int(0.9 * len(candidates)))
    table = train_many(
        what.learner,
        candidates,
        balanced_subsets(len(candidates), size, settings.n_shadows, rng),
        seed=settings.seed,
        run=run,
        workers=workers,
        progress=lambda done, total: tell("shadow models", done, total),
    )
    if settings.released is Released.LABELS:
        from dataclasses import replace

        from leakgauge.models import label_logs

        return replace(table, answers=label_logs(table.answers), kind=AnswerKind.LABELS)
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
    workers: int,
) -> Evidence:
    evidence = Evidence(kind, target_answers, labels, shadows=table, width=settings.bin_width, seed=settings.seed)
    from dataclasses import replace

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


def _success(
    table: PredictionTable | None, labels: NDArray[Any], kind: AnswerKind, settings: Settings
) -> Success | None:
    if table is None or kind not in SUCCESS_ATTACK.kinds:
        return None
    return everyone_as_target(table, labels, SUCCESS_ATTACK, width=settings.bin_width)


def _influence(
    what: Subject,
    kind: AnswerKind,
    target_answers: Floats,
    settings: Settings,
    run: Path | None,
    workers: int,
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


def _describe(
    what: Subject,
    kind: AnswerKind,
    target_answers: Floats,
    labels: NDArray[Any],
    is_member: NDArray[np.bool_],
    settings: Settings,
) -> Description:
    def score(rows: NDArray[np.bool_]) -> Estimate:
        if kind is AnswerKind.VALUES:
            squares = mean((labels[rows] - target_answers[rows, 0]) ** 2, lower=0.0)
            low, value, high = (float(np.sqrt(v)) for v in (squares.low, squares.value, squares.high))
            return Estimate(value, low, high, squares.confidence, "root of the mean of squares, t interval", squares.n)
        right = np.argmax(target_answers[rows], axis=1) == labels[rows]
        return clopper_pearson(int(right.sum()), len(right))

    shared = find_duplicates(what.train, what.holdout)
    return Description(
        model=what.name,
        learner=None if what.learner is None else what.learner.name,
        released=settings.released.value,
        answers=kind.value,
        n_train=len(what.train),
        n_holdout=len(what.holdout),
        n_features=what.train.schema.n_features,
        classes=tuple(str(value) for value in what.train.schema.classes),
        train_score=score(is_member),
        holdout_score=score(~is_member),
        n_duplicates=shared.identical_across.n_right,
    )


def _records_table(
    candidates: Any,
    is_member: NDArray[np.bool_],
    attacked: tuple[Attacked, ...],
    success: Success | None,
    measured: Measured | None,
) -> tuple[tuple[ExposedRecord, ...], dict[str, str]]:
    """One line for each candidate, most exposed first: by PDTP, then by the attack's success, then by score."""
    n = len(candidates)
    key = candidates.digest().encode()
    opaque = [
        hmac.new(key, f"{i}|{own}".encode(), hashlib.sha256).hexdigest()[:12] for i, own in enumerate(candidates.ids)
    ]
    columns = {name: np.full(n, np.nan) for name in ("pdtp", "pdtp_binned", "noise_floor", "success", "score")}
    if measured is not None:
        columns["pdtp"][measured.found.which] = measured.found.values
        columns["pdtp_binned"][measured.found.which] = measured.found.binned
        columns["noise_floor"][measured.found.which] = measured.found.noise_floor
    if success is not None:
        columns["success"] = success.accuracy
    best = membership_part.strongest(attacked)
    if best is not None:
        columns["score"] = best.scores
    order = np.lexsort(
        [np.arange(n)]
        + [-np.nan_to_num(columns[c], nan=-np.inf) for c in ("score", "success", "pdtp_binned")]
        + [~is_member]
    )
    rows = tuple(
        ExposedRecord(opaque[i], bool(is_member[i]), **{c: _plain(v[i]) for c, v in columns.items()}) for i in order
    )
    return rows, {name: str(own) for name, own in zip(opaque, candidates.ids, strict=True)}


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 9)


def _notes(
    what: Subject, kind: AnswerKind, table: PredictionTable | None, measured: Measured | None, why_not: str
) -> list[str]:
    said = []
    shared = find_duplicates(what.train, what.holdout)
    if shared.identical_across.n_right:
        said.append(
            f"{shared.identical_across.n_right:,} holdout records also stand in the training set, so these non-members "
            "look like members and attacks seem weaker than they are; remove them from the holdout."
        )
    if kind is AnswerKind.LABELS:
        said.append("The model answers labels only, so the attacks that need probabilities were left out.")
    if table is not None and table.failures:
        reason = next(iter(table.failures.values()))
        said.append(f"{len(table.failures)} of {len(table)} shadow models could not be trained: {reason}")
    if table is not None and table.n_unconverged:
        said.append(f"The solver of {table.n_unconverged} of {len(table)} shadow models had not converged.")
    if why_not:
        said.append(f"Influence was not measured: {why_not}.")
    if measured is not None and what.learner is not None:
        said.extend(influence_part.notes(measured, what.learner, len(what.train)))
    return said


def _not_tested(
    kind: AnswerKind, settings: Settings, table: PredictionTable | None, measured: Measured | None
) -> list[str]:
    said = [
        "Attribute inference: guessing a hidden column of a known person.",
        "Property inference: learning a secret about the training set as a whole.",
        "Attackers who see the parameters, the gradients or several versions of the model.",
        "A trainer who hides membership in the model on purpose.",
        "Likelihood-ratio attacks with many shadow models, which are stronger at very low false-positive rates.",
    ]
    if kind is AnswerKind.VALUES:
        said.insert(0, "The influence of single records: differential training privacy is defined for classifiers.")
    elif measured is None:
        said.insert(0, "The influence of single records.")
    elif measured.bound is None:
        word = "accepted by the rule" if settings.rule.queries is Queries.DIRECT else "left open"
        said.insert(0, f"Queries other than the records themselves (indirect queries): no bound is known; {word}.")
    elif measured.bound.covers != EVERY_QUERY:
        said.insert(0, f"Queries beyond these: {measured.bound.covers}.")
    if table is None and kind is not AnswerKind.VALUES:
        said.insert(0, "Attacks with shadow models.")
    if measured is not None and len(measured.found.which) < measured.found.n_training:
        said.insert(
            0, f"The influence of {measured.found.n_training - len(measured.found.which):,} training records not drawn."
        )
    return said


def _method(settings: Settings, table: PredictionTable | None, measured: Measured | None) -> dict[str, Any]:
    import sklearn

    rule = settings.rule
    return {
        "seed": settings.seed,
        "bin_width": settings.bin_width,
        "shadow_models": 0 if table is None else len(table),
        "shadow_engine": None if table is None else table.engine,
        "influence_engine": None if measured is None else measured.found.engine,
        "influence_randomness": None if measured is None else measured.found.randomness.value,
        "influence_repeats": None if measured is None else len(measured.found.with_record),
        "rule": {
            "dtp": rule.dtp,
            "queries": rule.queries.value,
            "advantage": rule.advantage,
            "confidence": rule.confidence,
        },
        "versions": {"leakgauge": __version__, "numpy": np.__version__, "scikit-learn": sklearn.__version__},
    }
