"""A model that explains nothing of its own training records: perhaps it is asked about what it was not trained on.

With its columns in another order, with another target, or with outputs that mean something else, a model answers about
its training records as about any others, and no attack finds what it reveals. A model that has truly learned nothing
answers so as well; retraining it tells the two apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import chi2_contingency, entropy, fisher_exact, spearmanr

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

ERROR_RATE = 0.01
"""How often labels or values that have nothing to do with the true ones are taken to explain them."""

N_SCALINGS = 50
"""Steps by which the factors of classes are found."""


def explains_nothing(case: Case) -> bool:
    """Whether the released answers about the training records fit them no better than the best constant answer.

    Of a regressor: its squared error is not below that of the mean, and its values are not shown to rise with the
    true ones (rank correlation, p < 0.01), as quantiles, medians and logarithms do, or vary more than they explain.

    Of a classifier: its mean log loss is not below that of the class shares, whatever factor each class is given, as
    where classes had weights in training. And it is not shown to be more right than the most frequent class alone, or
    so sure of what is wrong that its probabilities have a larger squared error than the class shares. If it answers
    labels alone, these are neither shown to agree with the true ones more often than by chance (p < 0.01).

    Rows of one person depend on each other, so that the two tests with p < 0.01 take the first row of each.
    """
    labels, answers, about = case.candidates.labels[case.is_member], case.answers[case.is_member], case.description
    if about.only_scores:  # no query was put to a model
        return False
    alone = np.unique(case.units.of_row[case.is_member], return_index=True)[1]
    if case.kind is AnswerKind.VALUES:
        worse = about.train_score.value >= float(labels.std()) * (1 - ROUNDING)
        return worse and not _rises(answers[alone, 0], labels[alone])
    labels = labels.astype(np.int64)
    shares = np.bincount(labels, minlength=answers.shape[1]) / len(labels)
    if _log_loss(answers, labels, shares) < float(entropy(shares)) - ROUNDING:
        return False
    only_labels = bool(np.isin(answers, (0.0, -np.inf)).all())
    if about.train_score.low <= shares.max():
        return not (only_labels and _agrees(answers[alone].argmax(axis=1), labels[alone]))
    return not only_labels and _squared_error(answers, labels) >= 1 - float(np.sum(shares**2))


def _rises(values: Floats, labels: Labels | Floats) -> bool:
    """Whether values ``[n]`` rise with the true ones beyond chance, and by no more than these or their logarithms do.

    Values of a model that is asked about other columns, which may depend on its own, vary more than they explain.
    """
    if len(values) < 3 or np.ptp(values) == 0 or np.ptp(labels) == 0:
        return False
    if not spearmanr(values, labels, alternative="greater").pvalue < ERROR_RATE:
        return False
    scales = [labels] + ([np.log(labels)] if labels.min() > 0 else [])
    return any(np.std(scale - values) < np.std(scale) for scale in scales)


def _agrees(answered: Labels, labels: Labels) -> bool:
    """Whether answered classes ``[n]`` agree with the true ones beyond chance: Fisher's test, or chi-square."""
    classes, codes = np.unique(np.concatenate([answered, labels]), return_inverse=True)
    table = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(table, (codes[: len(labels)], codes[len(labels) :]), 1)
    of_answered, of_labels = table.sum(axis=1), table.sum(axis=0)
    if np.trace(table) * len(labels) <= of_answered @ of_labels:
        return False
    if len(classes) == 2:
        return bool(fisher_exact(table, alternative="greater").pvalue < ERROR_RATE)
    occurring = table[of_answered > 0][:, of_labels > 0]
    return bool(chi2_contingency(occurring, correction=False).pvalue < ERROR_RATE)


def _log_loss(logs: Floats, labels: Labels, shares: Floats) -> float:
    """The mean log loss of log-probabilities ``[n, k]``, with factors of the classes by which it is least, about.

    With these the classes have their shares on average, which iterative scaling leads to. A probability of 0, which may
    be a small one that was rounded, counts as half of the smallest other one.
    """
    place = np.arange(len(labels)), labels
    uncertain = logs[np.isfinite(logs) & (logs < 0)]
    logs = np.maximum(logs, uncertain.min() - np.log(2)) if len(uncertain) else logs
    with np.errstate(all="ignore"):
        least, factors = np.inf, np.zeros(logs.shape[1])
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
