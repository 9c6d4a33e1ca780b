"""The best attack there is, where the pool is small enough to look at all training sets.

The attacker knows the pool, the algorithm and the law of the noise, sees the released vector, and says of one record
whether it was in the training set: whatever is the more likely, given the vector. No attack is right more often.

Source: Izzo et al. 2022, Proposition 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from leakgauge.arrays import Floats, Members
from leakgauge.defences.mip.exchanges import checked_size
from leakgauge.defences.mip.noise import Noise
from leakgauge.errors import DataError

AT_ONCE = 2**20
"""Numbers of a block."""

STEPS = 200
"""Points of the integration to a deviation of the noise."""


@dataclass(frozen=True, eq=False)
class OptimalAttack:
    """How often the best attack on each record is right.

    Args:
        accuracy: in [max(q, 1 - q), 1], for each record ``[n]``.
        standard_error: of the accuracy by simulation ``[n]``; 0 where it was integrated.
        share: q = k / n.
    """

    accuracy: Floats
    standard_error: Floats
    share: float

    @property
    def eta(self) -> float:
        """How much better than guessing the attack on the worst record is."""
        return float(self.accuracy.max()) - max(self.share, 1 - self.share)


def integrated_attack(outputs: Floats, members: Members, noise: Noise) -> OptimalAttack:
    """The best attack on one released number, by integration to about 1e-6.

    Args:
        outputs: what the algorithm gives for each of equally likely training sets, without noise ``[subsets, 1]``.
        members: who is in which, bool ``[subsets, n]``; all of one size.
        noise: what is added, of one dimension and not 0.

    Raises:
        DataError: the arrays do not fit together.
    """
    share = _checked(outputs, members)
    if outputs.shape[1] != 1 or not noise.deviations[0] > 0:
        raise DataError("the attack is integrated for one number with noise; use simulated_attack for others")
    step = float(noise.deviations[0]) / STEPS
    reach = 40 * float(noise.deviations[0])  # beyond it a Laplace law has less than 1e-20
    grid = np.arange(outputs.min() - reach, outputs.max() + reach + step, step)
    inside, apart, mass = members.T.astype(np.float64), np.zeros(members.shape[1]), 0.0
    for part in _blocks(len(grid), len(outputs)):
        density = np.exp(noise.log_density((grid[part, None] - outputs[:, 0])[..., None]))
        everyone = density.sum(axis=1)
        apart += np.abs(2 * inside @ density.T - everyone).sum(axis=1)
        mass += everyone.sum()
    accuracy = np.clip((1 + apart / mass) / 2, max(share, 1 - share), 1.0)
    return OptimalAttack(accuracy, np.zeros(len(accuracy)), share)


def simulated_attack(
    outputs: Floats, members: Members, noise: Noise, *, n_draws: int, rng: np.random.Generator
) -> OptimalAttack:
    """The best attack on a released vector, by simulation.

    Training sets and noise are drawn, and the larger of the two posterior probabilities is averaged, which varies far
    less than the number of right answers.

    Args:
        outputs: what the algorithm gives for each of equally likely training sets, without noise ``[subsets, d]``.
        members: who is in which, bool ``[subsets, n]``; all of one size.
        noise: what is added.
        n_draws: released vectors, at least 2.
        rng: draws them.

    Raises:
        DataError: the arrays do not fit together.
    """
    share = _checked(outputs, members)
    inside = members.astype(np.float64)
    drawn = outputs[rng.integers(len(outputs), size=n_draws)] + noise.draw(n_draws, rng)
    right = np.empty((n_draws, members.shape[1]))
    for part in _blocks(n_draws, outputs.size):
        logs = noise.log_density(drawn[part, None, :] - outputs)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        posterior = np.clip(weights @ inside / weights.sum(axis=1, keepdims=True), 0.0, 1.0)
        right[part] = np.maximum(posterior, 1 - posterior)
    return OptimalAttack(right.mean(axis=0), right.std(axis=0, ddof=1) / math.sqrt(n_draws), share)


def _checked(outputs: Floats, members: Members) -> float:
    if outputs.ndim != 2 or members.ndim != 2 or len(outputs) != len(members):
        raise DataError(
            f"outputs [subsets, d] and members [subsets, n] must fit together, got {outputs.shape} and {members.shape}"
        )
    if not np.isfinite(outputs).all():
        raise DataError("outputs must be finite; look for the training sets whose output is not")
    sizes = np.unique(members.sum(axis=1))
    if len(sizes) > 1:
        raise DataError(f"training sets must be of one size, got {sizes.tolist()}")
    n_pool: int = members.shape[1]
    return checked_size(n_pool, int(sizes[0])) / n_pool


def _blocks(n: int, width: int) -> list[slice]:
    step = max(1, AT_ONCE // max(1, width))
    return [slice(start, start + step) for start in range(0, n, step)]
