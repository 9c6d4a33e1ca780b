"""Membership by a loss threshold: a record the model fits better than average was probably trained on.

The attacker holds the record, may ask the model for the probability of its label once, and knows one number:
the average loss of the model on its own training set. It succeeds when it tells members from fresh records.
No shadow model is trained. Source: Yeom, Giacomelli, Fredrikson, Jha, "Privacy Risk in Machine Learning", CSF
2018, section 6.2.

Scores point towards membership: ``score = threshold - loss``, and the paper's rule (member if and only if the
loss is below the threshold) is exactly ``score > 0``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Floats
from leakgauge.errors import ConfigError, ModelError
from leakgauge.membership._checks import checked_labels, checked_vector
from leakgauge.membership.attack import PROBABILITIES, MembershipAttack, published

if TYPE_CHECKING:
    from leakgauge.membership.evidence import MembershipEvidence

# A logarithm computed in float32 may come out above zero by a rounding error of the size of its epsilon,
# 1.2e-7.
_LOG_SLACK = 1e-6


def cross_entropy(log_probabilities: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """Cross-entropy loss of each record: minus the logarithm of the probability given to its label.

    It is not averaged, and it is not rounded or floored: a label of probability 0 costs +infinity.

    Args:
        log_probabilities: [records, classes], natural logarithms, at most 0; -infinity stands for probability
            0.
        labels: [records], whole numbers naming the column of each record's label.

    Returns:
        [records], float64, in [0, +infinity].

    Raises:
        ModelError: the table has another shape, holds NaN, or holds a positive logarithm.
        DataError: labels are not one column number per record.

    Source:
        Yeom et al. 2018, section 6.2.

    >>> import numpy as np
    >>> cross_entropy(np.log([[0.5, 0.5], [0.25, 0.75]]), [0, 1]).round(4).tolist()
    [0.6931, 0.2877]
    """
    table = np.asarray(log_probabilities)
    if table.ndim != 2 or table.dtype.kind not in "fiu":
        raise ModelError(
            f"log_probabilities must be numbers of shape [records, classes], got {table.dtype} of shape {table.shape}."
        )
    if table.shape[0] == 0 or table.shape[1] < 2:
        raise ModelError(
            f"log_probabilities must hold at least one record and one column per class (two or more), "
            f"got shape {table.shape}."
        )
    unusable = np.isnan(table) | (table > _LOG_SLACK)
    if unusable.any():
        row, column = (int(index) for index in np.argwhere(unusable)[0])
        raise ModelError(
            f"log_probabilities[{row}, {column}] is {table[row, column]}; logarithms of probabilities must "
            "be at most 0 and not NaN: if these are probabilities, pass their natural logarithm."
        )
    columns = checked_labels(labels, *table.shape)
    own = table[np.arange(table.shape[0]), columns].astype(np.float64)
    return np.maximum(-own, 0.0)


def mean_training_loss(training_losses: ArrayLike) -> float:
    """Average loss of the model on its training set: the one number this attacker needs.

    One infinite loss makes the average +infinity. That is reported as it is: with such a threshold the attack
    calls every record of finite loss a member, and its advantage is the share of infinite losses among
    non-members minus that among members. Give `scores` a threshold of your own where that is not wanted.

    Args:
        training_losses: [records], losses on the training set; +infinity is allowed.

    Returns:
        The average, possibly +infinity.

    Raises:
        ModelError: not one number per record, or NaN.

    Source:
        Yeom et al. 2018, section 6.2 (L_S).

    >>> mean_training_loss([0.1, 0.3])
    0.2
    """
    return float(np.mean(checked_vector(training_losses, "training_losses", finite=False)))


def scores(losses: ArrayLike, threshold: float) -> NDArray[np.float64]:
    """Membership scores ``threshold - loss``; higher means member, and member means ``score > 0``.

    The average training loss (`mean_training_loss`) is the threshold of the paper; any other number gives the
    general form. A record whose loss equals the threshold is called a non-member.

    Args:
        losses: [records], the model's loss on each record; +infinity is allowed.
        threshold: any number or +infinity, in the units of the losses (nats for `cross_entropy`).

    Returns:
        [records], float64. An infinite loss scores -infinity whatever the threshold; with an infinite
        threshold every finite loss scores +infinity. Never NaN.

    Raises:
        ModelError: losses are not one number per record, or hold NaN.
        ConfigError: the threshold is NaN or -infinity.

    Source:
        Yeom et al. 2018, section 6.2.

    >>> scores([0.1, 0.2, 0.7], 0.2).round(3).tolist()
    [0.1, 0.0, -0.5]
    """
    values = checked_vector(losses, "losses", finite=False)
    if math.isnan(threshold) or threshold == -math.inf:
        raise ConfigError(
            f"threshold must be a number or +infinity, got {threshold}; "
            "use mean_training_loss(losses of the training set)."
        )
    never_fitted = np.isposinf(values)
    return np.where(never_fitted, -np.inf, threshold - np.where(never_fitted, 0.0, values))


def _score(evidence: MembershipEvidence) -> Floats:
    """A model that is certain about all training records has a mean loss of 0, and nobody has less than that."""
    threshold = published(evidence.training_loss, "mean training loss")
    return scores(evidence.losses, threshold if threshold > 0 else float(np.nextafter(0.0, 1.0)))


ATTACK = MembershipAttack(
    "loss-threshold",
    "Loss threshold",
    "loss below the mean training loss, or 0 where that is 0",
    "Yeom et al. 2018, section 6.2",
    PROBABILITIES,
    False,
    _score,
)
