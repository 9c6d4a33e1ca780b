"""The mechanism: draw a training set, train, add noise, release."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakgauge.arrays import Floats, Members
from leakgauge.defences.mip.algorithms import Algorithm
from leakgauge.defences.mip.calibrations import Calibrated, Calibration, Guarantee, NoGuarantee, Swap
from leakgauge.defences.mip.exchanges import checked_size, drawn
from leakgauge.defences.mip.noise import Noise
from leakgauge.errors import ConfigError, DataError, ModelError

GENERATOR_GIVEN = (
    "its random numbers come from a generator that was given, and an attacker who knows its seed can subtract the "
    "noise; for a release leave rng out, and they come from the operating system"
)


@dataclass(frozen=True, eq=False)
class Release:
    """What may be shown to anyone; whatever is computed from it keeps its guarantee (Izzo et al. 2022, Theorem 3).

    Args:
        values: the output with noise ``[d]``.
        noise: the law of the noise.
        guarantee: what is promised, or that nothing is and why.
        size: k, records in the training set.
    """

    values: Floats
    noise: Noise
    guarantee: Guarantee | NoGuarantee
    size: int


def calibrate(
    algorithm: Algorithm,
    *,
    eta: float,
    rng: np.random.Generator,
    size: int | None = None,
    calibration: Calibration | None = None,
) -> Calibrated:
    """How much noise makes the output of an algorithm eta-MIP.

    Args:
        algorithm: what is protected, with its pool.
        eta: how much better than guessing an attack may be, in (0, min(q, 1 - q)); smaller is more private. It must not
            be chosen by looking at a training set.
        rng: draws what the calibration draws; its seed need not be secret, as long as nothing else comes from it.
        size: k, records in a training set; by default half of the pool.
        calibration: how the noise is found; by default :class:`Swap`.

    Returns:
        The noise and what it promises. It depends on the pool and on no training set.

    Raises:
        ConfigError: a number is out of range.
        ModelError: the algorithm cannot be protected.

    >>> from leakgauge.defences.mip import Mean
    >>> found = calibrate(Mean([0.0, 1.0, 2.0, 5.0]), eta=0.1, rng=np.random.default_rng(0))
    >>> found.guarantee.accuracy, found.guarantee.confidence
    (0.6, 1.0)
    """
    k = checked_size(algorithm.n_pool, algorithm.n_pool // 2 if size is None else size)
    return (calibration or Swap()).calibrated(algorithm, eta=eta, size=k, rng=rng)


def release(
    algorithm: Algorithm,
    *,
    eta: float,
    size: int | None = None,
    calibration: Calibration | None = None,
    members: Members | None = None,
    rng: np.random.Generator | None = None,
) -> Release:
    """Draw a training set, train on it, add noise.

    Each release of the same pool costs: the guarantee is on one. All random numbers come from the operating system and
    are kept nowhere.

    Args:
        algorithm: what is protected, with its pool.
        eta: see :func:`calibrate`.
        size: k, records in the training set; by default half of the pool.
        calibration: how the noise is found; by default :class:`Swap`.
        members: the training set, bool ``[n]``, if it was drawn already: uniformly, from this pool, and kept secret.
        rng: for measuring only: draws the splits of the calibration, the training set and the noise, so that they come
            again. It voids the guarantee, since whoever knows its seed can subtract the noise.

    Raises:
        ConfigError: a number is out of range.
        DataError: the members do not fit the pool.
        ModelError: the algorithm cannot be protected, or its output is not finite.
    """
    k = size
    if members is not None:
        members = np.asarray(members)
        if members.shape != (algorithm.n_pool,) or members.dtype != np.bool_:
            raise DataError(f"members must be bool of length {algorithm.n_pool}, got {members.dtype} {members.shape}")
        k = int(members.sum())
        if size not in (None, k):
            raise ConfigError(f"size is {size}, but members names {k} records; give one of them")
    guarantee_stands = rng is None
    rng = np.random.default_rng() if rng is None else rng
    found = calibrate(algorithm, eta=eta, rng=rng, size=k, calibration=calibration)
    if members is None:
        members = drawn(algorithm.n_pool, found.size, rng)
    output = algorithm.output(members, seed=int(rng.integers(2**31)))
    bad = np.flatnonzero(~np.isfinite(output))
    if len(bad):
        raise ModelError(
            f"the algorithm gave numbers that are not finite (first: coordinate {bad[0]}); nothing is released"
        )
    if len(output) != len(found.noise.deviations):
        raise ModelError(f"the algorithm gave {len(output)} numbers, but noise is for {len(found.noise.deviations)}")
    promise = found.guarantee if guarantee_stands else NoGuarantee(GENERATOR_GIVEN)
    return Release(output + found.noise.draw(1, rng)[0], found.noise, promise, found.size)
