"""What an auditor can look at in a model's answers without any key: one number each, with its interval.

None of these is a score of a record. They are numbers about the model, to be held against the same numbers of models
that are known to be honest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leakgauge.arrays import Floats, Labels
from leakgauge.escaping import shapes
from leakgauge.membership import bounded_loss, loss_threshold
from leakgauge.statistics import Estimate, advantage_of_decisions, clopper_pearson, mean

if TYPE_CHECKING:
    from leakgauge.models import Model


@dataclass(frozen=True)
class Seen:
    """One model's answers, as log-probabilities.

    Args:
        members: about the training records ``[n, k]``.
        others: about the holdout ``[m, k]``.
        noise: about random inputs ``[q, k]``.
        member_labels: class codes ``[n]``.
        other_labels: class codes ``[m]``.
    """

    members: Floats
    others: Floats
    noise: Floats
    member_labels: Labels
    other_labels: Labels

    __repr__ = shapes

    @property
    def on_records(self) -> Floats:
        """Probabilities about all records ``[n + m, k]``."""
        probabilities: Floats = np.exp(np.concatenate([self.members, self.others]))
        return probabilities


@dataclass(frozen=True)
class Look:
    """A number that is found for every model alike.

    Args:
        name: short.
        what: what is looked at.
        needs_probabilities: whether labels alone are not enough.
        measure: the number, with its interval.
    """

    name: str
    what: str
    needs_probabilities: bool
    measure: Callable[[Seen], Estimate]


def holdout_accuracy(seen: Seen) -> Estimate:
    """Share of holdout records classified correctly."""
    right = np.argmax(seen.others, axis=1) == seen.other_labels
    return clopper_pearson(int(right.sum()), len(right))


def gap(seen: Seen) -> Estimate:
    """Accuracy on the training set less that on the holdout: the advantage of the attack that needs no more."""
    inside = bounded_loss.zero_one_scores(np.argmax(seen.members, axis=1), seen.member_labels) > 0
    outside = bounded_loss.zero_one_scores(np.argmax(seen.others, axis=1), seen.other_labels) > 0
    return advantage_of_decisions(inside, outside)


def loss_threshold_advantage(seen: Seen) -> Estimate:
    """Advantage of "member if the loss is below the mean training loss"."""
    inside = loss_threshold.cross_entropy(seen.members, seen.member_labels)
    outside = loss_threshold.cross_entropy(seen.others, seen.other_labels)
    limit = loss_threshold.mean_training_loss(inside)
    return advantage_of_decisions(loss_threshold.scores(inside, limit) > 0, loss_threshold.scores(outside, limit) > 0)


def confidence_on_noise(seen: Seen) -> Estimate:
    """Mean probability of the likeliest class of a random input: how sure the model is of what means nothing."""
    return mean(np.minimum(np.exp(seen.noise.max(axis=1)), 1.0), lower=0.0, upper=1.0)


def commonest_on_noise(seen: Seen) -> Estimate:
    """Share of random inputs that get the label which most of them get: low where noise was learned by heart."""
    counts = np.bincount(np.argmax(seen.noise, axis=1))
    return clopper_pearson(int(counts.max()), len(seen.noise))


LOOKS = (
    Look("accuracy", "accuracy on the holdout", False, holdout_accuracy),
    Look("gap", "generalisation gap in accuracy, the advantage of the gap attack", False, gap),
    Look("loss-threshold", "advantage of the loss-threshold attack", True, loss_threshold_advantage),
    Look("noise-confidence", "mean confidence on random inputs", True, confidence_on_noise),
    Look("noise-labels", "share of random inputs with the most frequent label", False, commonest_on_noise),
)


def apart(models: list[Floats]) -> tuple[Floats, Estimate]:
    """How far each model's probabilities are from those of all others.

    Args:
        models: probabilities of each ``[q, k]``; two models or more, the released one first.

    Returns:
        For each model the mean over queries and other models of the largest difference over classes ``[models]``, and
        the first of these numbers with its interval over queries.
    """
    between = np.zeros((len(models), len(models)))
    first = np.zeros(len(models[0]))
    for i, one in enumerate(models):
        for j in range(i):
            difference = np.abs(one - models[j]).max(axis=1)
            between[i, j] = between[j, i] = difference.mean()
            first += difference / (len(models) - 1) if j == 0 else 0.0
    return between.sum(axis=1) / (len(models) - 1), mean(np.minimum(first, 1.0), lower=0.0, upper=1.0)


def records_remembered(model: Model) -> int | None:
    """How many records a fitted scikit-learn model says that it was trained on; ``None`` where it does not say.

    Nearest neighbours, a single tree and naive Bayes keep that number; whoever releases a model can remove it.
    """
    estimator: Any = getattr(model, "estimator", None)
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if hasattr(last, "n_samples_fit_"):
        return int(last.n_samples_fit_)
    if hasattr(last, "tree_"):
        return int(last.tree_.n_node_samples[0])
    if hasattr(last, "class_count_"):
        return round(float(np.sum(last.class_count_)))
    return None
