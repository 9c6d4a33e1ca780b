"""The laws of the noise that is added to a vector before it is released.

Noise is drawn in floating point: as in libraries for differential privacy, the lowest bits of a released number may
tell a little about the number behind it. Round what is released where that matters.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.errors import ConfigError


class Noise(ABC):
    """A law of vectors.

    It should be the case that a histogram of ``draw(n, rng)`` is that of ``exp(log_density)``.
    """

    @property
    @abstractmethod
    def deviations(self) -> Floats:
        """The standard deviation of each coordinate ``[d]``, in units of the output; 0 where nothing is added."""

    @abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Independent draws ``[n, d]``."""

    @abstractmethod
    def log_density(self, x: Floats) -> Floats:
        """Of vectors ``[..., d]``, in nats ``[...]``.

        A density in the coordinates that have noise; ``-inf`` for a vector that is not 0 in the others.
        """


@dataclass(frozen=True, eq=False)
class GaussianNoise(Noise):
    """Normal with mean 0.

    Args:
        root: the deviation of each coordinate ``[d]``, 0 for one without noise; or a lower triangular matrix L
            ``[d, d]`` without zeros on its diagonal, for the covariance ``L L'``.
    """

    root: Floats

    @property
    def deviations(self) -> Floats:
        """From the root."""
        return self.root if self.root.ndim == 1 else np.asarray(np.sqrt((self.root**2).sum(axis=1)))

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Independent draws ``[n, d]``."""
        standard = rng.standard_normal((n, len(self.root)))
        return standard * self.root if self.root.ndim == 1 else np.asarray(standard @ self.root.T)

    def log_density(self, x: Floats) -> Floats:
        """Of vectors ``[..., d]``."""
        diagonal = self.root if self.root.ndim == 1 else self.root.diagonal()
        noisy = diagonal > 0
        constant = float(np.log(diagonal[noisy]).sum()) + 0.5 * int(noisy.sum()) * math.log(2 * math.pi)
        return np.asarray(-0.5 * lengths(x, self.root) ** 2 - constant)


class Radius(StrEnum):
    """How far from 0 noise of a norm is.

    ``GAMMA``: as its density demands. ``LAPLACE_PAPER``: as printed, which is the same in one dimension only; in more
    its density is infinite at 0, and it keeps no promise.
    """

    GAMMA = "gamma"
    LAPLACE_PAPER = "laplace_paper"


@dataclass(frozen=True, eq=False)
class NormNoise(Noise):
    """Density proportional to ``exp(-norm(x) / factor)``, with ``norm(x) = (mean_i (|x_i| / sigma_i)^M)^(1/M)``.

    The direction is a normalised vector of independent generalised normals (the cone measure of the norm's sphere, not
    the uniform law on its surface), the length is Gamma distributed with shape d and scale ``factor``.

    Args:
        sigma: scale of each coordinate ``[d]``, at least 0; one of scale 0 gets no noise and does not count in d.
        moment: M, at least 1; infinite for the largest coordinate.
        factor: c, above 0.
        radius: the law of the length.

    Raises:
        ConfigError: a number is out of range.

    Source: Izzo et al. 2022, Theorem 7 and Corollary 8, with the length that the density of Theorem 7 has.
    """

    sigma: Floats
    moment: float
    factor: float
    radius: Radius = Radius.GAMMA

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", np.asarray(self.sigma, dtype=np.float64))
        if self.sigma.ndim != 1 or not (np.isfinite(self.sigma).all() and (self.sigma >= 0).all()):
            raise ConfigError("sigma must hold one finite number of at least 0 for each coordinate")
        if not self.moment >= 1:
            raise ConfigError(f"moment must be at least 1, got {self.moment}; use 2 for standard deviations")
        if not self.factor > 0:
            raise ConfigError(f"factor must be above 0, got {self.factor}")

    @property
    def deviations(self) -> Floats:
        """By symmetry: those of a direction times the root mean square of the length."""
        d, M = self._n_noisy, self.moment
        if d == 0:
            return np.zeros(len(self.sigma))
        square = d * (d + 1) if self.radius is Radius.GAMMA else 2
        return self.sigma * self.factor * math.sqrt(square * _mean_square_of_direction(d, M))

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Independent draws ``[n, d]``."""
        noisy, M = self.sigma > 0, self.moment
        shape = (n, self._n_noisy)
        found = np.zeros((n, len(self.sigma)))
        if not shape[1]:
            return found
        if math.isinf(M):
            direction = rng.uniform(-1, 1, shape)
        else:
            direction = rng.gamma(1 / M, 1.0, shape) ** (1 / M) * rng.choice([-1.0, 1.0], shape)
        direction /= power_mean(np.abs(direction), M)[:, None]
        length = rng.gamma(shape[1] if self.radius is Radius.GAMMA else 1.0, self.factor, n)
        found[:, noisy] = length[:, None] * direction * self.sigma[noisy]
        return found

    def log_density(self, x: Floats) -> Floats:
        """Of vectors ``[..., d]``; infinite at 0 for the printed length in two dimensions or more."""
        d, c = self._n_noisy, self.factor
        moved = (x[..., self.sigma == 0] != 0).any(axis=-1)
        if not d:
            return np.where(moved, -np.inf, 0.0)
        noisy = self.sigma > 0
        norm = power_mean(np.abs(x[..., noisy]) / self.sigma[noisy], self.moment)
        volume = float(np.log(2 * self.sigma[noisy]).sum()) + _log_ball(d, self.moment)
        if self.radius is Radius.GAMMA:
            found = -norm / c - (volume + d * math.log(c) + math.lgamma(d + 1))
        else:
            with np.errstate(divide="ignore"):
                found = -(d - 1) * np.log(norm) - norm / c - (volume + math.log(c * d))
        return np.where(moved, -np.inf, found)

    @property
    def _n_noisy(self) -> int:
        return int((self.sigma > 0).sum())


def lengths(moves: Floats, root: Floats) -> Floats:
    """How long vectors ``[..., d]`` are once whitened, ``[...]``.

    Args:
        moves: vectors; NaN or infinite counts as infinitely long.
        root: deviations ``[d]``, where a move along a coordinate of deviation 0 is infinitely long and no move is not;
            or a lower triangular matrix ``[d, d]``.
    """
    if root.ndim == 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            white = np.where(moves == 0, 0.0, moves / root)
    else:
        from scipy.linalg import solve_triangular

        flat = np.where(np.isfinite(moves), moves, 0.0).reshape(-1, len(root))
        white = solve_triangular(root, flat.T, lower=True).T.reshape(moves.shape)
    found = np.asarray(np.sqrt((white**2).sum(axis=-1)))
    return np.where(np.isfinite(moves).all(axis=-1), found, np.inf)


def power_mean(values: Floats, order: float) -> Floats:
    """``(mean of values^order)^(1/order)`` over the last axis, of values of at least 0."""
    largest = values.max(axis=-1, keepdims=True)
    if math.isinf(order):
        return np.asarray(largest[..., 0])
    scaled = values / np.where(largest > 0, largest, 1.0)  # powers of large numbers overflow
    return np.asarray(largest[..., 0] * (scaled**order).mean(axis=-1) ** (1 / order))


def _log_ball(d: int, M: float) -> float:
    """Log volume of ``power_mean(|x|, M) <= 1`` in d dimensions, in units of the cube [-1, 1]^d."""
    if math.isinf(M):
        return 0.0
    return d * math.lgamma(1 + 1 / M) - math.lgamma(1 + d / M) + d / M * math.log(d)


def _mean_square_of_direction(d: int, M: float) -> float:
    """E u_1^2 of the cone measure: the mean square of one coordinate in the ball, times (d + 2) / d."""
    if math.isinf(M):
        return (d + 2) / (3 * d)
    # |y_i|^M are Gamma(1/M); their shares are Dirichlet, and |u_i|^M = d times the share
    logs = math.lgamma(3 / M) - math.lgamma(1 / M) + math.lgamma(d / M) - math.lgamma((d + 2) / M)
    return math.exp(2 / M * math.log(d) + logs)
