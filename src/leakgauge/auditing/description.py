"""What was audited, in a form that names nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Flags
from leakgauge.auditing.naming import shown_names
from leakgauge.auditing.result import Description
from leakgauge.models import AnswerKind
from leakgauge.records import record_codes
from leakgauge.statistics import Estimate, clopper_pearson, mean

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case


def describe(case: Case) -> Description:
    """The model, its records and how well it does on both sets."""
    what, labels = case.what, case.candidates.labels
    classes = what.train.schema.classes

    def score(rows: Flags) -> Estimate:
        if case.kind is AnswerKind.VALUES:
            squares = mean((labels[rows] - case.answers[rows, 0]) ** 2, lower=0.0)
            low, value, high = (float(np.sqrt(v)) for v in (squares.low, squares.value, squares.high))
            return Estimate(value, low, high, squares.confidence, "root of the mean of squares, t interval", squares.n)
        right = np.argmax(case.answers[rows], axis=1) == labels[rows]
        return clopper_pearson(int(right.sum()), len(right))

    codes = record_codes(what.train, what.holdout)
    return Description(
        model=what.name,
        learner=None if what.learner is None else what.learner.name,
        released=case.settings.released.value,
        answers=case.kind.value,
        n_train=len(what.train),
        n_holdout=len(what.holdout),
        n_population=case.n_population,
        n_features=0 if what.only_scores else what.train.schema.n_features,
        classes=shown_names(classes, np.bincount(labels, minlength=len(classes)).tolist()) if classes else (),
        train_score=score(case.is_member),
        holdout_score=score(~case.is_member),
        n_duplicates=int(np.isin(codes.holdout, codes.train).sum()),
        overlap=case.overlap.share(case.settings.rule.confidence),
    )
