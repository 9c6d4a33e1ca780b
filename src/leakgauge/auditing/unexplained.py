"""A model that explains nothing of its own training records: perhaps it is asked about what it was not trained on.

With its columns in another order, with another target, or with outputs that mean something else, a model answers about
its training records as about any others, and no attack finds what it reveals. A model that has truly learned nothing
answers so as well; retraining it tells the two apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import entropy

from leakgauge.arrays import Floats, Labels
from leakgauge.auditing.finding import Finding, Verdict
from leakgauge.auditing.result import Description
from leakgauge.auditing.settings import ReleaseRule
from leakgauge.models import AnswerKind

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case

EXPLAINS_NOTHING = "explains_nothing"
"""What the method says of a model that is no better than a constant, and that no retraining reproduced."""

MEASURE = "membership advantage, outputs that explain no training record"

ROUNDING = 1e-9
"""By which a constant, as a model answers it, may differ from the best one."""

N_SCALINGS = 50
"""Steps by which the factors of classes are found."""


def explains_nothing(case: Case) -> bool:
    """Whether the released answers about the training records fit them no better than the best constant answer.

    Of a regressor: its squared error is not below that of the mean. Of a classifier: its mean log loss is not below
    that of the class shares, whatever factor each class is given, as where classes had weights in training. And it is
    not shown to be more right than the most frequent class alone, or so sure of what is wrong that its probabilities
    have a larger squared error than the class shares.
    """
    labels, answers, about = case.candidates.labels[case.is_member], case.answers[case.is_member], case.description
    if about.only_scores:  # no query was put to a model
        return False
    if case.kind is AnswerKind.VALUES:
        return about.train_score.value >= float(labels.std()) * (1 - ROUNDING)
    labels = labels.astype(np.int64)
    shares = np.bincount(labels, minlength=answers.shape[1]) / len(labels)
    if _log_loss(answers, labels, shares) < float(entropy(shares)) - ROUNDING:
        return False
    if about.train_score.low <= shares.max():
        return True
    only_labels = bool(np.isin(answers, (0.0, -np.inf)).all())
    return not only_labels and _squared_error(answers, labels) >= 1 - float(np.sum(shares**2))


def _log_loss(logs: Floats, labels: Labels, shares: Floats) -> float:
    """The mean log loss of log-probabilities ``[n, k]``, with factors of the classes by which it is least, about.

    With these the classes have their shares on average, which iterative scaling leads to.
    """
    place = np.arange(len(labels)), labels
    with np.errstate(all="ignore"):
        least, factors = float(np.mean(-logs[place])), np.zeros(logs.shape[1])
        for _ in range(N_SCALINGS):
            scaled = logs + factors
            scaled = scaled - np.logaddexp.reduce(scaled, axis=1, keepdims=True)
            least = min(least, float(np.mean(-scaled[place])))
            step = np.log(shares) - np.log(np.exp(scaled).mean(axis=0))
            factors = factors + np.where(np.isfinite(step), step, 0.0)
    return least


def _squared_error(logs: Floats, labels: Labels) -> float:
    """The mean squared error of probabilities."""
    apart = np.exp(logs)
    apart[np.arange(len(labels)), labels] -= 1
    return float(np.mean(np.sum(apart**2, axis=1)))


def unexplained(method: Mapping[str, Any], description: Description, rule: ReleaseRule) -> list[Finding]:
    """That nothing passes by attacks on answers that explain nothing, unless retraining reproduced the model.

    Args:
        method: of the audit.
        description: of what was audited.
        rule: asks for it where it has a limit on the advantage.
    """
    if rule.advantage is None or method.get(EXPLAINS_NOTHING) is not True:
        return []
    constant = "their mean" if description.answers == AnswerKind.VALUES else "the shares of the classes"
    known = "measure the influence of records, or train shadow models"
    known = "give the learner" if description.learner is None else known
    return [
        Finding(
            "membership", MEASURE, None, 0.0, rule.advantage, Verdict.CANNOT_TELL,
            f"the outputs about the training records fit their labels no better than {constant} alone would: the model "
            "may have been trained on other columns, on columns in another order or on another target, or its outputs "
            "may mean something else. Attacks on such outputs find nothing, whatever the model reveals",
            "check the columns and their order, the target and what the outputs mean; or "
            f"{known}, by which a model that has truly learned nothing is recognised",
        )
    ]  # fmt: skip
