"""What a ``LogisticRegression`` asks for, as far as the engines of both sorts must agree on it."""

from __future__ import annotations

from typing import Any

import numpy as np

from leakgauge.training.engines.base import Refusal, Why
from leakgauge.training.engines.stateless import Given

MULTINOMIAL_SOLVERS = ("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga")


def no_binary_minimum(case: Given) -> Refusal | None:
    """Why what is asked for is not the minimum of a logistic loss with a squared penalty of the coefficients."""
    if len(case.classes) != 2:
        return Refusal(Why.LEARNER, "LogisticRegression is supported for two classes only")
    if case.estimator.solver == "liblinear" and case.estimator.fit_intercept:
        return Refusal(Why.SETTING, "LogisticRegression(solver='liblinear') penalises the intercept")
    return _not_squared(case.estimator)


def no_multinomial_minimum(case: Given) -> Refusal | None:
    """The same of a softmax loss of all classes together."""
    estimator = case.estimator
    if np.count_nonzero(case.counts) < 3:
        return Refusal(Why.LEARNER, "LogisticRegression with fewer than three classes is not multinomial")
    if estimator.solver not in MULTINOMIAL_SOLVERS or estimator.dual or _one_by_one(estimator):
        return Refusal(
            Why.SETTING, f"LogisticRegression(solver={estimator.solver!r}) does not fit all classes together"
        )
    return _not_squared(estimator)


def positive(case: Given) -> int:
    """The code of the class whose probability rises with the score: the later of the sorted labels."""
    return 1 if case.classes[0] < case.classes[1] else 0


def _one_by_one(estimator: Any) -> bool:
    return getattr(estimator, "multi_class", "auto") == "ovr"


def _not_squared(estimator: Any) -> Refusal | None:
    penalty = getattr(estimator, "penalty", "l2")
    if not 0 < estimator.C < np.inf or estimator.l1_ratio or penalty not in ("deprecated", "l2"):
        return Refusal(
            Why.SETTING, "LogisticRegression is supported with a squared penalty only (l1_ratio=0, C below infinity)"
        )
    return None
