"""Optimisers of many models at once: the parameters of a group are the rows of one torch tensor ``[models, p]``.

Each model has its own count of steps, and sits out a batch that holds none of its records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

from leakgauge.models.torch import imported

Tensor: TypeAlias = Any


class Optimiser(ABC):
    """Moves weights against their gradients."""

    @abstractmethod
    def step(self, weights: Tensor, gradient: Tensor, present: Tensor, rate: Tensor) -> None:
        """One step of every model, in place.

        Args:
            weights: ``[models, p]``.
            gradient: ``[models, p]``; overwritten.
            present: float32 ``[models, 1]``: 1 for the models that make the step, 0 for those that sit it out.
            rate: the learning rates, float64 ``[models, 1]``.
        """

    @abstractmethod
    def keep(self, models: Tensor) -> None:
        """Go on with some of the models only, int ``[m]``."""


class Adam(Optimiser):
    """Adam (Kingma and Ba 2015).

    Args:
        weights: ``[models, p]`` at the start.
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        epsilon: added to the root of the second moment,
        corrected: with its bias corrected, as torch and algorithm 1 of the paper do it, or without, as scikit-learn and
            the end of the paper's section 2 do.
    """

    def __init__(self, weights: Tensor, *, beta_1: float, beta_2: float, epsilon: float, corrected: bool) -> None:
        torch = imported()
        self.beta_1, self.beta_2, self.epsilon, self.corrected = beta_1, beta_2, epsilon, corrected
        self.first, self.second = torch.zeros_like(weights), torch.zeros_like(weights)
        self.steps = torch.zeros(len(weights), 1, dtype=torch.float64, device=weights.device)

    def step(self, weights: Tensor, gradient: Tensor, present: Tensor, rate: Tensor) -> None:
        """See :class:`Optimiser`."""
        torch = imported()
        self.steps += present
        steps = self.steps.clamp(min=1)
        unbiased = (1 - self.beta_2**steps).sqrt()
        size = (rate * unbiased / (1 - self.beta_1**steps) * present).float()
        self.first.lerp_(gradient, (1 - self.beta_1) * present)
        # Not lerp_: 0.999 is not 1 - 0.001 in single precision, and a memory of 1,000 steps adds the difference up.
        self.second.mul_(torch.where(present > 0, self.beta_2, 1.0))
        self.second.addcmul_(gradient.square_(), (1 - self.beta_2) * present)
        spread = torch.sqrt(self.second, out=gradient)
        spread += (self.epsilon * unbiased).float() if self.corrected else self.epsilon
        weights.addcmul_(torch.div(self.first, spread, out=spread), size, value=-1)

    def keep(self, models: Tensor) -> None:
        """See :class:`Optimiser`."""
        self.first, self.second, self.steps = self.first[models], self.second[models], self.steps[models]


class Momentum(Optimiser):
    """Gradient descent with momentum, plain or Nesterov's.

    The rate is inside the velocity, as in scikit-learn; while it is constant this is what torch does.

    Args:
        weights: ``[models, p]`` at the start.
        momentum: decay of the velocity, in [0, 1).
        nesterov: whether to look ahead by one step.
    """

    def __init__(self, weights: Tensor, *, momentum: float, nesterov: bool) -> None:
        self.momentum, self.nesterov = momentum, nesterov
        self.velocity = imported().zeros_like(weights)

    def step(self, weights: Tensor, gradient: Tensor, present: Tensor, rate: Tensor) -> None:
        """See :class:`Optimiser`."""
        gradient *= rate.float()
        moved = self.momentum * self.velocity - gradient
        self.velocity.lerp_(moved, present)
        weights.addcmul_(self.momentum * moved - gradient if self.nesterov else moved, present)

    def keep(self, models: Tensor) -> None:
        """See :class:`Optimiser`."""
        self.velocity = self.velocity[models]
