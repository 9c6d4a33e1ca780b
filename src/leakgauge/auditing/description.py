"""What was audited, in a form that names nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Flags
from leakgauge.auditing.influence.change import usual_error
from leakgauge.auditing.naming import shown_names
from leakgauge.auditing.result import Description
from leakgauge.models import AnswerKind
from leakgauge.statistics import Estimate, clopper_pearson, clustered_mean

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case


def describe(case: Case) -> Description:
    """The model, its records and how well it does on both sets."""
    what, labels = case.what, case.candidates.labels
    classes = what.train.schema.classes

    def score(rows: Flags) -> Estimate:
        if case.kind is AnswerKind.VALUES:
            return usual_error(labels[rows] - case.answers[rows, 0], case.units.of_row[rows], 0.95)
        right = np.argmax(case.answers[rows], axis=1) == labels[rows]
        if case.units.single:
            return clopper_pearson(int(right.sum()), len(right))
        return clustered_mean(right, case.units.of_row[rows], lower=0.0, upper=1.0)

    equal = case.overlap.equal
    held = [len(np.unique(case.units.of_row[labels == code])) for code in range(len(classes))]
    return Description(
        model=what.name,
        learner=None if what.learner is None else what.learner.name,
        released=case.settings.released.value,
        answers=case.kind.value,
        n_train=len(what.train.units),
        n_holdout=len(what.holdout.units),
        n_population=case.n_population,
        n_features=0 if what.only_scores else what.train.schema.n_features,
        classes=shown_names(classes, held) if classes else (),
        train_score=score(case.is_member),
        holdout_score=score(~case.is_member),
        n_duplicates=int(np.isin(equal.holdout, equal.train).sum()),
        overlap=case.overlap.share(case.settings.rule.confidence),
        n_rows=None if case.units.single else (len(what.train), len(what.holdout)),
    )
