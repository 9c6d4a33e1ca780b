"""What a ``LogisticRegression`` asks for, as far as the engines of both sorts must agree on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.training.engines.base import Refusal, RefusalKind
from leakgauge.training.engines.stateless import FittingSteps, Given, given
from leakgauge.training.job import Job

Unsupported: TypeAlias = Callable[[Given], Refusal | None]
"""Why what the last step is given cannot be done, or ``None``."""

MULTINOMIAL_SOLVERS = ("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga")


def given_logistic_regression(
    job: Job, unsupported: Unsupported, *, any_query: bool = False, fitted: FittingSteps | None = None
) -> Given | Refusal:
    """What the logistic regression that ends the job's learner is given; or why it cannot be done.

    Args:
        job: models trained on all records; with ``any_query`` also those without one record each.
        unsupported: looked at last.
        any_query: see :func:`leakgauge.training.engines.stateless.given`.
        fitted: see there.
    """
    from sklearn.linear_model import LogisticRegression

    case = given(job, (LogisticRegression,), sparse=True, whole=True, any_query=any_query, fitted=fitted)
    return case if isinstance(case, Refusal) else unsupported(case) or case


def no_binary_minimum(case: Given) -> Refusal | None:
    """Why what is asked for is not the minimum of a logistic loss with a squared penalty of the coefficients."""
    if len(case.classes) != 2:
        return Refusal(RefusalKind.LEARNER, "LogisticRegression is supported for two classes only")
    if case.estimator.solver == "liblinear" and case.estimator.fit_intercept:
        return Refusal(RefusalKind.SETTING, "LogisticRegression(solver='liblinear') penalises the intercept")
    return _not_squared(case.estimator)


def no_multinomial_minimum(case: Given) -> Refusal | None:
    """The same of a softmax loss of all classes together."""
    estimator = case.estimator
    if np.count_nonzero(case.counts) < 3:
        return Refusal(RefusalKind.LEARNER, "LogisticRegression with fewer than three classes is not multinomial")
    if estimator.solver not in MULTINOMIAL_SOLVERS or estimator.dual or _one_by_one(estimator):
        return Refusal(
            RefusalKind.SETTING, f"LogisticRegression(solver={estimator.solver!r}) does not fit all classes together"
        )
    return _not_squared(estimator)


def named_weights(case: Given) -> Floats:
    """What ``class_weight`` says that a record of each class of the schema counts, where it is not ``balanced``."""
    named = case.estimator.class_weight or {}
    return np.array([float(named.get(label, 1.0)) for label in case.classes.tolist()])


def positive(case: Given) -> int:
    """The code of the class whose probability rises with the score: the later of the sorted labels."""
    return 1 if case.classes[0] < case.classes[1] else 0


def _one_by_one(estimator: Any) -> bool:
    return getattr(estimator, "multi_class", "auto") == "ovr"


def _not_squared(estimator: Any) -> Refusal | None:
    penalty = getattr(estimator, "penalty", "l2")
    if not 0 < estimator.C < np.inf or estimator.l1_ratio or penalty not in ("deprecated", "l2"):
        return Refusal(
            RefusalKind.SETTING,
            "LogisticRegression is supported with a squared penalty only (l1_ratio=0, C below infinity)",
        )
    return None
