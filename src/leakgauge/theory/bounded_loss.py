"""The advantage of the simplest attack: deny membership in proportion to the loss."""

from __future__ import annotations

import math


def bounded_loss_advantage(gap: float, loss_bound: float) -> float:
    """Return the expected advantage of answering "non-member" with probability `loss / loss_bound`.

    Exact, not a bound, when `gap` is the true gap. With 0-1 loss and `loss_bound = 1` the attack is "member if
    and only if classified correctly" and the gap is train accuracy minus test accuracy.

    Args:
        gap: Mean loss of non-members minus mean loss of members, in [-loss_bound, loss_bound]; both means
            over records and training sets.
        loss_bound: Largest possible loss, positive and finite.

    Returns:
        `gap / loss_bound`, in [-1, 1]; negative if members have the larger loss.

    Raises:
        ValueError: If the bound is not positive and finite, or the gap is NaN or exceeds the bound.

    Source: Yeom et al. 2018, Adversary 1 and Theorem 2.

    >>> bounded_loss_advantage(0.35, 2.0)
    0.175
    """
    if not 0 < loss_bound < math.inf:
        raise ValueError(
            f"loss_bound must be positive and finite, got {loss_bound}; give the largest possible loss "
            "(an unbounded loss has none: clip it first)."
        )
    if not abs(gap) <= loss_bound:
        raise ValueError(
            f"gap must be in [-loss_bound, loss_bound] = [{-loss_bound}, {loss_bound}], got {gap}; "
            "a difference of two losses cannot exceed their bound, so raise the bound."
        )
    return gap / loss_bound
