"""What differential privacy implies for membership advantage: upper bounds only.

Everywhere: the learning algorithm is (epsilon, delta)-differentially private for **replace-one** adjacency
(training sets of equal size that differ in one record), epsilon in natural units, delta in [0, 1]. For
add/remove adjacency convert first with `add_remove_to_replace_one`. The advantage is
`tpr - fpr = 2 Pr[correct] - 1` with members and non-members equally likely (Yeom et al. 2018, Definition 4).

None of this is a measurement: a model may leak far less than its bound.

Sources: Yeom, Giacomelli, Fredrikson and Jha, "Privacy Risk in Machine Learning: Analyzing the Connection to
Overfitting", CSF 2018; Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy", ICML 2015;
Humphries et al., "Investigating Membership Inference Attacks under Data Dependencies", CSF 2023.
"""

from __future__ import annotations

import dataclasses
import math

from leakgauge.theory._checks import check_not_negative


@dataclasses.dataclass(frozen=True)
class PrivacyLoss:
    """The two numbers of a differential-privacy statement; the adjacency is said by whoever holds it.

    Attributes:
        epsilon: At least 0, may be infinite.
        delta: In [0, 1]; 0 is pure differential privacy.

    Raises:
        ValueError: If a number is out of range or NaN.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_not_negative("epsilon", self.epsilon, "it is the largest log ratio of two output probabilities")
        if not 0.0 <= self.delta <= 1.0:
            raise ValueError(f"delta must be in [0, 1], got {self.delta}; it is a probability.")


def add_remove_to_replace_one(epsilon: float, delta: float = 0.0) -> PrivacyLoss:
    """Convert a guarantee for adding or removing one record into one for replacing one.

    A replacement is a removal and an addition, so the guarantee is used twice:
    `p <= e^epsilon (e^epsilon p'' + delta) + delta`.

    Args:
        epsilon: At least 0, for add/remove adjacency.
        delta: In [0, 1], for add/remove adjacency.

    Returns:
        `(2 epsilon, (1 + e^epsilon) delta)` for replace-one adjacency, delta clipped at 1.

    Raises:
        ValueError: If a number is out of range or NaN.

    Source: group privacy for two records; Dwork and Roth, "The Algorithmic Foundations of Differential
    Privacy" (2014), chapter 2.

    >>> add_remove_to_replace_one(0.0, 0.01)
    PrivacyLoss(epsilon=0.0, delta=0.02)
    """
    given = PrivacyLoss(epsilon, delta)
    if given.delta == 0:
        return PrivacyLoss(2 * given.epsilon)
    return PrivacyLoss(2 * given.epsilon, min(1.0, (1 + _exp(given.epsilon)) * given.delta))


def advantage_bound(epsilon: float, delta: float = 0.0) -> float:
    """Bound the advantage on the worst record; no better bound holds for all private algorithms.

    The one to report. Tight for a fixed record when members and non-members are drawn in balance from a
    known pool.

    Args:
        epsilon: At least 0, for replace-one adjacency.
        delta: In [0, 1].

    Returns:
        `(e^epsilon - 1 + 2 delta) / (e^epsilon + 1)`, in [0, 1]; `tanh(epsilon / 2)` if delta is 0.

    Raises:
        ValueError: If a number is out of range or NaN.

    Source: Kairouz et al. 2015, section 2 (privacy region): `fpr + e^epsilon fnr >= 1 - delta` and
    `e^epsilon fpr + fnr >= 1 - delta`; their sum bounds `tpr - fpr = 1 - fnr - fpr`. Humphries et al. 2023.

    >>> round(advantage_bound(1.0, 0.01), 10)
    0.4674959857
    """
    loss = PrivacyLoss(epsilon, delta)
    pure = math.tanh(loss.epsilon / 2)
    # The same as the printed fraction, without overflow: 2 / (e^epsilon + 1) = 1 - tanh(epsilon / 2).
    return pure + loss.delta * (1 - pure)


def average_advantage_bound(epsilon: float) -> float:
    """Bound the advantage averaged over the record asked about, which is smaller than on the worst record.

    It holds for the game of Yeom et al. 2018, Experiment 1, as defined there: the member is a random record
    of the training set and the non-member a fresh draw from the population. It says nothing about any one
    person, and holds for pure differential privacy only.

    Args:
        epsilon: At least 0, for replace-one adjacency.

    Returns:
        `tanh(epsilon / 4)`, in [0, 1].

    Raises:
        ValueError: If epsilon is negative or NaN.

    Derivation: with the other records fixed, the probabilities q_z of an output over the records z lie in some
    [m, e^epsilon m]; the average advantage is half their mean absolute deviation, summed over outputs. It is
    largest when a share q of the records sits at the top and the rest at the bottom:
    `q (1 - q) (e^epsilon - 1) / (1 + q (e^epsilon - 1))`, whose maximum, at `q = 1 / (1 + e^(epsilon / 2))`,
    is `tanh(epsilon / 4)`.

    >>> round(average_advantage_bound(1.0), 10)
    0.2449186624
    """
    return math.tanh(PrivacyLoss(epsilon).epsilon / 4)


def advantage_bound_yeom(epsilon: float) -> float:
    """Return the first published bound as printed; not clipped, and vacuous from epsilon = ln 2 = 0.693 on.

    For comparison with the literature; `advantage_bound` is never larger.

    Args:
        epsilon: At least 0, for replace-one adjacency.

    Returns:
        `e^epsilon - 1`, at least 0 and without upper limit.

    Raises:
        ValueError: If epsilon is negative or NaN.

    Source: Yeom et al. 2018, Theorem 1.

    >>> round(advantage_bound_yeom(1.0), 10)
    1.7182818285
    """
    return _expm1(PrivacyLoss(epsilon).epsilon)


def _exp(x: float) -> float:
    """Return e^x, infinite where it is too large for a float."""
    return _expm1(x) + 1


def _expm1(x: float) -> float:
    """Return e^x - 1, infinite where it is too large for a float."""
    try:
        return math.expm1(x)
    except OverflowError:
        return math.inf
