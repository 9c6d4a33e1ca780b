"""What was audited and how, and what the reader should know: the words around the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge._version import __version__
from leakgauge.auditing import influence as influence_part
from leakgauge.auditing.influence import Measured
from leakgauge.auditing.properties import NO_LEARNER
from leakgauge.auditing.result import Description, InferredColumn, InferredProperty
from leakgauge.auditing.settings import Queries, Settings
from leakgauge.auditing.subject import Subject
from leakgauge.influence import EVERY_QUERY
from leakgauge.membership import Attack
from leakgauge.models import AnswerKind
from leakgauge.records import find_duplicates
from leakgauge.statistics import Estimate, clopper_pearson, mean
from leakgauge.training import PredictionTable

Floats: TypeAlias = NDArray[np.float64]


def describe(
    what: Subject,
    kind: AnswerKind,
    target_answers: Floats,
    labels: NDArray[Any],
    is_member: NDArray[np.bool_],
    n_population: int,
    settings: Settings,
) -> Description:
    """The model, its records and how well it does on both sets."""

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
        n_population=n_population,
        n_features=what.train.schema.n_features,
        classes=tuple(str(value) for value in what.train.schema.classes),
        train_score=score(is_member),
        holdout_score=score(~is_member),
        n_duplicates=shared.identical_across.n_right,
    )


def notes(
    what: Subject,
    kind: AnswerKind,
    table: PredictionTable | None,
    measured: Measured | None,
    why_not: str,
    settings: Settings,
) -> list[str]:
    """What a reader should know about the numbers."""
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
    if settings.properties and what.learner is None:
        names = ", ".join(f"“{secret.name}”" for secret in settings.properties)
        said.append(f"Whether the frequency of {names} can be told was not tested: {NO_LEARNER}.")
    if measured is not None and what.learner is not None:
        said.extend(influence_part.notes(measured, what.learner, len(what.train)))
    return said


def not_tested(
    kind: AnswerKind,
    settings: Settings,
    table: PredictionTable | None,
    measured: Measured | None,
    attacks: Sequence[Attack],
    inferred: Sequence[InferredColumn],
    properties: Sequence[InferredProperty],
) -> list[str]:
    """What this audit says nothing about.

    Args:
        kind: what the model answers.
        settings: of the audit.
        table: the shadow models.
        measured: the influence of records.
        attacks: the membership attacks that were carried out.
        inferred: the hidden columns that were inferred.
        properties: the properties that games were played about.
    """
    said = [
        f"Attribute inference of other columns than {', '.join(column.name for column in inferred)}."
        if inferred
        else "Attribute inference: guessing a hidden column of a known person.",
        f"Property inference of other secrets than {', '.join(one.name for one in properties)}."
        if properties
        else "Property inference: learning a secret about the training set as a whole.",
        "Attackers who see the parameters, the gradients or several versions of the model.",
        "A trainer who hides membership in the model on purpose.",
        "Attacks with hundreds of shadow models, which are stronger at very low false-positive rates.",
    ]
    if kind is AnswerKind.VALUES:
        said.insert(0, "The influence of single records: differential training privacy is defined for classifiers.")
    elif measured is None:
        said.insert(0, "The influence of single records.")
    elif measured.bound is None:
        word = "accepted by the rule" if settings.rule.queries is Queries.DIRECT else "left open"
        tried = "" if measured.indirect is None else f"; {len(measured.indirect.which)} records were searched"
        said.insert(
            0, f"Queries other than the records themselves (indirect queries): no bound is known{tried}; {word}."
        )
    elif measured.bound.covers != EVERY_QUERY:
        said.insert(0, f"Queries beyond these: {measured.bound.covers}.")
    if not any(attack.needs_population for attack in attacks) and kind is not AnswerKind.LABELS:
        said.insert(-1, "Attacks by someone who holds records known to be outside (population and quantile attacks).")
    if table is None:
        said.insert(0, "Attacks with shadow models.")
    if measured is not None and len(measured.found.which) < measured.found.n_training:
        said.insert(
            0, f"The influence of {measured.found.n_training - len(measured.found.which):,} training records not drawn."
        )
    return said


def method(
    settings: Settings,
    table: PredictionTable | None,
    measured: Measured | None,
    inferred: Sequence[InferredColumn],
    properties: Sequence[InferredProperty],
) -> dict[str, Any]:
    """Settings, engines and versions needed to repeat it."""
    import sklearn

    rule = settings.rule
    return {
        "seed": settings.seed,
        "device": settings.device,
        "bin_width": settings.bin_width,
        "shadow_models": 0 if table is None else len(table),
        "shadow_engine": None if table is None else table.engine,
        "influence_engine": None if measured is None else measured.found.engine,
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
