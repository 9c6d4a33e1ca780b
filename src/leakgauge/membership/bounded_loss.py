"""Membership from a bounded loss: answer "member" the more often, the smaller the loss.

The attacker holds the record and its label, asks the model once, and knows an upper bound of the loss; it
knows nothing about the training set. It answers "non-member" with probability ``loss / loss_bound``. Its
advantage is then exactly the generalisation gap divided by the bound, whatever the laws of the losses:
overfitting is sufficient for leakage. With 0-1 loss and bound 1 the rule is "member if and only if classified
correctly", the attack that needs labels only. Source: Yeom, Giacomelli, Fredrikson, Jha, "Privacy Risk in
Machine Learning", CSF 2018, Adversary 1 and Theorem 2. (The paper writes 0 for "member"; here True and larger
numbers mean member.)
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Floats
from leakgauge.checking import number
from leakgauge.errors import DataError, ModelError
from leakgauge.membership._checks import checked_vector
from leakgauge.membership.attack import CLASSES, PROBABILITIES, MembershipAttack

if TYPE_CHECKING:
    from leakgauge.membership.evidence import MembershipEvidence


def member_probability(losses: ArrayLike, loss_bound: float, *, clip: bool = False) -> NDArray[np.float64]:
    """Probability with which the attack answers "member": ``1 - loss / loss_bound``.

    It is not the probability that the record is a member.

    Args:
        losses: [records], in [0, loss_bound].
        loss_bound: upper bound of the loss, positive and finite, in the units of the losses.
        clip: lower larger losses (also +infinity) to the bound, with a warning, instead of refusing them. The
            attack then works on the clipped loss, and Theorem 2 holds for that loss.

    Returns:
        [records], float64 in [0, 1]; higher means member.

    Raises:
        ModelError: losses are not one number per record, hold NaN, are negative, or exceed the bound without
            ``clip``.
        ConfigError: the bound is not positive and finite.

    Source:
        Yeom et al. 2018, Adversary 1.

    >>> member_probability([0.0, 0.5, 2.0], 2.0).tolist()
    [1.0, 0.75, 0.0]
    """
    return 1.0 - _bounded(losses, "losses", loss_bound, clip) / loss_bound


def decisions(
    losses: ArrayLike, loss_bound: float, *, rng: np.random.Generator, clip: bool = False
) -> NDArray[np.bool_]:
    """The attack's randomised answers, True for "member", each drawn with its `member_probability`.

    Args:
        losses: [records], in [0, loss_bound].
        loss_bound: upper bound of the loss, positive and finite.
        rng: where the coins come from; one uniform number per record is drawn, in the order of the records.
        clip: as in `member_probability`.

    Returns:
        [records], bool. A loss of 0 is always answered True, a loss at the bound always False.

    Raises:
        ModelError, ConfigError: as in `member_probability`.

    Source:
        Yeom et al. 2018, Adversary 1.

    >>> import numpy as np
    >>> decisions([0.0, 1.0], 1.0, rng=np.random.default_rng(0)).tolist()
    [True, False]
    """
    probability = member_probability(losses, loss_bound, clip=clip)
    return rng.random(probability.size) < probability


def expected_advantage(
    member_losses: ArrayLike, nonmember_losses: ArrayLike, loss_bound: float, *, clip: bool = False
) -> float:
    """Advantage of the randomised attack on these records, without the noise of its coins.

    It still carries the sampling noise of the records and of the training set: it estimates the advantage of
    Theorem 2, which averages over training sets.

    Args:
        member_losses: [members], losses of records of the training set.
        nonmember_losses: [non-members], losses of other records of the same population.
        loss_bound: upper bound of the loss, positive and finite.
        clip: as in `member_probability`.

    Returns:
        Mean loss of non-members minus mean loss of members, divided by the bound; in [-1, 1], positive when
        members are fitted better.

    Raises:
        ModelError, ConfigError: as in `member_probability`, naming the group at fault.

    Source:
        Yeom et al. 2018, Theorem 2.

    >>> round(expected_advantage([0.0, 0.0, 0.2, 0.4], [0.1, 0.5, 0.9, 0.5], 1.0), 12)
    0.35
    """
    members = _bounded(member_losses, "member_losses", loss_bound, clip)
    nonmembers = _bounded(nonmember_losses, "nonmember_losses", loss_bound, clip)
    # Yeom et al. 2018, Theorem 2: Adv = R_gen / B, with R_gen = E[loss | non-member] - E[loss | member].
    return float((nonmembers.mean() - members.mean()) / loss_bound)


def zero_one_scores(labels_predicted: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """The 0-1 form: a record is called a member if and only if it is classified correctly.

    Only labels are needed, no probabilities. The advantage equals training accuracy minus test accuracy,
    hence the name "gap attack". It ranks records in two groups only: most thresholds on its score mean
    nothing.

    Args:
        labels_predicted: [records], what the model answered; numbers or strings.
        labels: [records], the true labels, of the same kind.

    Returns:
        [records], float64: +1/2 where the two agree, -1/2 where they differ.

    Raises:
        ModelError: the predictions have another shape or kind than the labels, or hold NaN.
        DataError: the labels are not one per record, or hold NaN.

    Source:
        Yeom et al. 2018, Theorem 2 with 0-1 loss and bound 1.

    >>> zero_one_scores(["a", "b"], ["a", "a"]).tolist()
    [0.5, -0.5]
    """
    true = np.asarray(labels)
    predicted = np.asarray(labels_predicted)
    if true.ndim != 1 or true.size == 0:
        raise DataError(f"labels must have shape [records] with at least one record, got {true.shape}.")
    if predicted.shape != true.shape:
        raise ModelError(
            f"labels_predicted must have the shape of labels, {true.shape}, one answer per record, "
            f"got {predicted.shape}."
        )
    if _kind(predicted) != _kind(true):
        raise ModelError(
            f"labels_predicted holds {_kind(predicted)} ({predicted.dtype}) but labels holds {_kind(true)} "
            f"({true.dtype}), so that none would ever agree; decode the predictions to the labels' values."
        )
    row = _first_nan(predicted)
    if row is not None:
        raise ModelError(f"labels_predicted[{row}] is NaN; every record needs a prediction.")
    row = _first_nan(true)
    if row is not None:
        raise DataError(f"labels[{row}] is NaN; drop records without a label.")
    return np.where(predicted == true, 0.5, -0.5)


def _bounded(losses: ArrayLike, name: str, loss_bound: float, clip: bool) -> NDArray[np.float64]:
    """The losses, all in [0, loss_bound]."""
    number(above=0, hint="for 0-1 loss it is 1")("loss_bound", loss_bound)
    values = checked_vector(losses, name, finite=False)
    if (values < 0).any():
        row = int(np.argmax(values < 0))
        raise ModelError(
            f"{name}[{row}] is {values[row]}; losses must lie in [0, {loss_bound}]: this attack is defined "
            "for non-negative losses such as 0-1, squared or cross-entropy loss."
        )
    above = values > loss_bound
    if not above.any():
        return values
    row = int(np.argmax(above))
    found = f"{name}[{row}] is {values[row]}, above loss_bound = {loss_bound} ({above.sum()} such records)"
    if not clip:
        raise ModelError(f"{found}; losses must lie in [0, {loss_bound}]: raise the bound or pass clip=True.")
    warnings.warn(f"{found}; clipped to the bound.", UserWarning, stacklevel=3)
    return np.minimum(values, loss_bound)


def _kind(values: NDArray[np.generic]) -> str:
    """Numbers, strings or other objects: what can be compared with what."""
    return {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "U": "strings"}.get(
        values.dtype.kind, f"values of type {values.dtype}"
    )


def _first_nan(values: NDArray[np.generic]) -> int | None:
    """Row of the first value that differs from itself, as only NaN does."""
    odd = values != values
    return int(np.argmax(odd)) if odd.any() else None


def _gap(evidence: MembershipEvidence) -> Floats:
    return zero_one_scores(np.argmax(evidence.answers, axis=1), evidence.codes)


def _confidence(evidence: MembershipEvidence) -> Floats:
    # The loss 1 - p(y) lies in [0, 1], so that the bound of Adversary 1 is 1.
    own = np.exp(np.take_along_axis(evidence.answers, evidence.codes[:, None], axis=1)[:, 0])
    return member_probability(1 - np.minimum(own, 1.0), 1.0)


GAP = MembershipAttack(
    "gap",
    "Gap attack (label only)",
    "correct prediction = member",
    "Yeom et al. 2018, Adversary 1 with the 0-1 loss",
    CLASSES,
    False,
    _gap,
)

CONFIDENCE = MembershipAttack(
    "confidence",
    "Confidence attack",
    "member with the probability of the true class",
    "Yeom et al. 2018, Adversary 1 with the loss 1 − p",
    PROBABILITIES,
    False,
    _confidence,
    _confidence,
)
