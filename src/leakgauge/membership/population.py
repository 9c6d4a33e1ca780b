"""Population attack: is the loss lower than on most records that the model was certainly not trained on?

The attacker holds the record, and records of its own from the same population that are known to be non-members, asks
the target once for each, and trains nothing. It succeeds when it tells members from other records of the population.
Source: Ye, Maddi, Murakonda, Bindschaedler, Shokri, "Enhanced Membership Inference Attacks against Machine Learning
Models", CCS 2022, Attack P. The known non-members must not be among the records that the attack is then
judged by.

Scores point towards membership: ``threshold - loss``, and the rule is exactly ``score > 0``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Floats
from leakgauge.checking import number
from leakgauge.errors import DataError
from leakgauge.membership import loss_threshold
from leakgauge.membership._checks import checked_vector
from leakgauge.membership.attack import NUMBERS, MembershipAttack
from leakgauge.models import AnswerKind

if TYPE_CHECKING:
    from leakgauge.membership.evidence import MembershipEvidence

SIGNIFICANCE = 0.2


def threshold(population_losses: ArrayLike, significance: float = SIGNIFICANCE) -> float:
    """The loss that at most a share ``significance`` of non-members falls below, from known non-members.

    It is the loss of rank ``floor(significance (n + 1))`` from below. A further non-member's loss is smaller with
    probability at most ``significance``, whatever the law of the losses.

    Args:
        population_losses: [records], losses on known non-members; +infinity is allowed.
        significance: false-positive rate aimed at, in (0, 1).

    Returns:
        One of the losses.

    Raises:
        ModelError: not one number per record, or NaN.
        DataError: too few records for this significance: at least ``1 / significance - 1`` are needed.
        ConfigError: the significance is not in (0, 1).

    Source:
        Ye et al. 2022, Attack P.

    >>> threshold([0.3, 0.1, 0.4, 0.2], 0.5)
    0.2
    """
    number(above=0, below=1)("significance", significance)
    losses = checked_vector(population_losses, "population_losses", finite=False)
    rank = math.floor(significance * (losses.size + 1) + 1e-9)
    if rank < 1:
        raise DataError(
            f"population_losses has {losses.size} known non-members, too few for a false-positive rate of "
            f"{significance:g}; at least {math.ceil(1 / significance - 1)} are needed."
        )
    return float(np.sort(losses)[rank - 1])


def scores(
    losses: ArrayLike, population_losses: ArrayLike, *, significance: float = SIGNIFICANCE
) -> NDArray[np.float64]:
    """Membership scores ``threshold - loss``; higher means member, and member means ``score > 0``.

    Args:
        losses: [records], the target's losses on the records in question (cross-entropy, or size of the error).
        population_losses: [known non-members], likewise.
        significance: see `threshold`.

    Returns:
        [records], float64; -infinity for an infinite loss. Never NaN.

    Raises:
        ModelError: losses are not one number per record, or NaN.
        DataError: too few known non-members for this significance.
        ConfigError: the significance is not in (0, 1).

    Source:
        Ye et al. 2022, Attack P.

    >>> scores([0.1, 0.25], [0.3, 0.1, 0.4, 0.2], significance=0.5).round(3).tolist()
    [0.1, -0.05]
    """
    return loss_threshold.scores(losses, threshold(population_losses, significance))


def _score(evidence: MembershipEvidence) -> Floats:
    known = evidence.of_population
    if evidence.kind is AnswerKind.VALUES:
        return scores(np.abs(evidence.errors), np.abs(known.errors))
    return scores(evidence.losses, known.losses)


ATTACK = MembershipAttack(
    "population",
    "Population attack",
    "loss lower than on most known non-members",
    "Ye et al. 2022, Attack P",
    NUMBERS,
    False,
    _score,
    needs_population=True,
)
