"""What was audited and how, and what the reader should know: the words around the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge._version import __version__
from leakgauge.arrays import Floats
from leakgauge.auditing import influence as influence_part
from leakgauge.auditing.advice import Outputs
from leakgauge.auditing.change import Measured as MeasuredChange
from leakgauge.auditing.influence import Measured
from leakgauge.auditing.naming import shown_names
from leakgauge.auditing.overlap import note
from leakgauge.auditing.result import Description, InferredColumn, InferredProperty
from leakgauge.auditing.settings import Queries, Settings
from leakgauge.auditing.subject import Subject
from leakgauge.influence import EVERY_QUERY
from leakgauge.membership import ATTACKS, Attack
from leakgauge.models import AnswerKind
from leakgauge.records import Schema, record_codes
from leakgauge.statistics import SMALLEST_GROUP, Estimate, clopper_pearson, mean
from leakgauge.training import PredictionTable


def describe(
    what: Subject,
    kind: AnswerKind,
    target_answers: Floats,
    labels: NDArray[Any],
    is_member: NDArray[np.bool_],
    n_population: int,
    settings: Settings,
    overlap: Estimate | None,
) -> Description:
    """The model, its records and how well it does on both sets."""

    def score(rows: NDArray[np.bool_]) -> Estimate:
        if kind is AnswerKind.VALUES:
            squares = mean((labels[rows] - target_answers[rows, 0]) ** 2, lower=0.0)
            low, value, high = (float(np.sqrt(v)) for v in (squares.low, squares.value, squares.high))
            return Estimate(value, low, high, squares.confidence, "root of the mean of squares, t interval", squares.n)
        right = np.argmax(target_answers[rows], axis=1) == labels[rows]
        return clopper_pearson(int(right.sum()), len(right))

    codes = record_codes(what.train, what.holdout)
    return Description(
        model=what.name,
        learner=None if what.learner is None else what.learner.name,
        released=settings.released.value,
        answers=kind.value,
        n_train=len(what.train),
        n_holdout=len(what.holdout),
        n_population=n_population,
        n_features=what.train.schema.n_features,
        classes=_class_names(what.train.schema, labels),
        train_score=score(is_member),
        holdout_score=score(~is_member),
        n_duplicates=int(np.isin(codes.holdout, codes.train).sum()),
        overlap=overlap,
    )


def _class_names(schema: Schema, labels: NDArray[Any]) -> tuple[str, ...]:
    """The classes as a result may name them; none for regression."""
    classes = schema.classes
    return shown_names(classes, np.bincount(labels, minlength=len(classes)).tolist()) if classes else ()


def notes(
    what: Subject,
    kind: AnswerKind,
    table: PredictionTable | None,
    measured: Measured | None,
    why_not: str,
    no_shadows: str,
    not_inferred: Mapping[str, str],
    not_told: Mapping[str, str],
    settings: Settings,
    usual: tuple[float, str] | None,
    description: Description,
) -> list[str]:
    """What a reader should know about the numbers.

    Args:
        what: the model and its records.
        kind: what the model answers.
        table: the shadow models.
        measured: the influence of records.
        why_not: why it was not measured; empty where it was.
        no_shadows: why the attacks with shadow models could not be carried out; empty where they could.
        not_inferred: columns that the model could not be asked about, with the reason.
        not_told: properties that no game could be played about, with the reason.
        settings: of the audit.
        usual: how far a regressor usually errs on other records, and where that is from.
        description: of what was audited.
    """
    said = [note(description.overlap, description.n_duplicates, description.n_holdout)]
    if kind is AnswerKind.LABELS:
        said.append("The model outputs labels only, so the attacks that need probabilities were left out.")
    if table is not None and table.failures:
        reason = next(iter(table.failures.values()))
        said.append(
            f"{len(table.failures)} of {len(table)} shadow models could not be trained or gave no predictions: "
            f"{reason}."
        )
    if table is not None and table.n_unconverged:
        said.append(f"The solver did not converge for {table.n_unconverged} of {len(table)} shadow models.")
    if usual is not None:
        said.append(
            f"The attacker is given {usual[0]:.3g} as the usual error on other records, measured on {usual[1]}."
        )
    if why_not:
        said.append(f"Influence was not measured: {why_not}.")
    if no_shadows:
        said.append(f"Attacks with shadow models were not carried out: {no_shadows}.")
    said += [f"The sensitive attribute “{name}” was not inferred: {reason}." for name, reason in not_inferred.items()]
    said += [f"Property inference of “{name}” was not tested: {reason}." for name, reason in not_told.items()]
    if measured is not None and what.learner is not None:
        outputs = Outputs.of(kind.value, settings.released.value)
        said.extend(influence_part.notes(measured, what.learner, len(what.train), outputs))
    return list(filter(None, said))


def not_tested(
    what: Subject,
    kind: AnswerKind,
    settings: Settings,
    table: PredictionTable | None,
    measured: Measured | None,
    change: MeasuredChange | None,
    attacks: Sequence[Attack],
    inferred: Sequence[InferredColumn],
    properties: Sequence[InferredProperty],
) -> list[str]:
    """What this audit says nothing about.

    Args:
        what: the model and its records.
        kind: what the model answers.
        settings: of the audit.
        table: the shadow models.
        measured: the influence of records.
        change: of a regressor.
        attacks: the membership attacks that were carried out.
        inferred: the hidden columns that were inferred.
        properties: the properties that games were played about.
    """
    said = [
        f"Attribute inference of columns other than {', '.join(column.name for column in inferred)}."
        if inferred
        else "Attribute inference: predicting a sensitive attribute of a known person.",
        f"Property inference of properties other than {', '.join(one.name for one in properties)}."
        if properties
        else "Property inference: inferring a property of the training set as a whole.",
        "Attackers with access to the parameters, the gradients or several versions of the model.",
        "A trainer who hides membership in the model on purpose.",
        "Attacks with hundreds of shadow models, which are stronger at very low false-positive rates.",
    ]
    if change is not None:
        said.insert(
            0,
            "Influence on predictions for other records: only the prediction for the record itself was measured, and "
            "differential training privacy is defined for classifiers.",
        )
        left = change.found.n_training - len(change.found.which)
        if left:
            said.insert(0, f"The influence of {left:,} training records not drawn.")
    elif measured is None:
        said.insert(0, "The influence of single records.")
    elif measured.bound is None or not np.isfinite(measured.bound.values).any():
        word = "the rule accepts this" if settings.rule.queries is Queries.DIRECT else "this is undecided"
        tried = (
            "" if measured.indirect is None else f"; queries were searched for {len(measured.indirect.which)} records"
        )
        said.insert(
            0, f"Queries other than the records themselves (indirect queries): no bound on DTP is known{tried}; {word}."
        )
    elif measured.bound.covers != EVERY_QUERY:
        said.insert(0, f"Queries outside the bound on DTP, which covers {measured.bound.covers}.")
    if not any(attack.needs_population for attack in attacks) and kind is not AnswerKind.LABELS:
        said.insert(-1, "Attacks that need known non-members (population attack and quantile regression).")
    if min(len(what.train), len(what.holdout)) < SMALLEST_GROUP:
        said.insert(0, f"Tail odds: they need at least {SMALLEST_GROUP} training and {SMALLEST_GROUP} holdout records.")
    if table is None:
        said.insert(0, "Attacks with shadow models.")
    if left_out := _left_out(kind, settings, table is not None):
        said.insert(0, f"Membership attacks that the settings leave out: {', '.join(f'“{one}”' for one in left_out)}.")
    if measured is not None and len(measured.found.which) < measured.found.n_training:
        said.insert(
            0, f"The influence of {measured.found.n_training - len(measured.found.which):,} training records not drawn."
        )
    return said


def _left_out(kind: AnswerKind, settings: Settings, shadows: bool) -> list[str]:
    """Titles of the membership attacks that could have been carried out, and were not named."""
    return [
        attack.title
        for attack in ATTACKS
        if settings.attacks is not None
        and attack.name not in settings.attacks
        and not attack.needs_population
        and attack.possible(kind, shadows=shadows, population=False, copies=True)
    ]


def method(
    settings: Settings,
    table: PredictionTable | None,
    measured: Measured | None,
    change: MeasuredChange | None,
    inferred: Sequence[InferredColumn],
    properties: Sequence[InferredProperty],
) -> dict[str, Any]:
    """Settings, engines and versions needed to repeat it."""
    import sklearn

    rule = settings.rule
    left_out = measured or change
    return {
        "seed": settings.seed,
        "device": settings.device,
        "bin_width": settings.bin_width,
        "shadow_models": 0 if table is None else len(table),
        "shadow_engine": None if table is None else table.engine,
        "influence_engine": None if left_out is None else left_out.found.engine,
        "influence_randomness": None if measured is None else measured.found.randomness.value,
        "influence_repeats": None if measured is None else len(measured.found.with_record),
        "hidden_columns": [column.name for column in inferred],
        "group_by": settings.group_by,
        "properties": [one.name for one in properties],
        "property_games": asdict(settings.games) | {"planted": list(settings.games.planted)} if properties else None,
        "rule": {
            "dtp": rule.dtp,
            "queries": rule.queries.value,
            "advantage": rule.advantage,
            "confidence": rule.confidence,
            "property": rule.property,
            "planted": rule.planted,
        },
        "versions": {"leakgauge": __version__, "numpy": np.__version__, "scikit-learn": sklearn.__version__},
    }
