"""How much noise a given eta takes: three answers, from what is known of the algorithm.

All keep the promise of membership inference privacy: no attack on any record of the pool is right with probability
above ``max(q, 1 - q) + eta``, q = k / n, about a training set of k records drawn at random from a pool of n. They
differ in what they need and in how much noise they take, by factors of hundreds.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from leakgauge.arrays import Floats, Members
from leakgauge.checking import check_fields, confidence_level, number, optional, whole
from leakgauge.defences.mip.algorithms import Algorithm, Mean
from leakgauge.defences.mip.exchanges import (
    Enumerated,
    ExchangeEvidence,
    Exchanges,
    Farthest,
    RandomRemovals,
    all_exchanges,
    checked_size,
    drawn,
    drawn_exchanges,
    enumerated,
    exchanges_of_mean,
    far_in_mean,
    of_each,
    opposite,
)
from leakgauge.defences.mip.noise import GaussianNoise, Noise, NormNoise, Radius, lengths
from leakgauge.errors import ConfigError, ModelError
from leakgauge.theory.membership_privacy import gaussian_noise_factor, noise_factor, noise_factor_izzo

MOST_ENUMERATED = 16
"""Records of a pool whose training sets may all be looked at."""

MOST_PAIRED = 1000
"""Records of a pool whose pairs may all be looked at."""

MOST_DIFFERENCES = 10**8
"""Numbers in all differences of pairs that may be looked at."""


SECRECY_ASSUMPTION = "the training set is drawn uniformly from the pool, and both it and the random numbers stay secret"
"""What every guarantee assumes."""


class GuaranteeWarning(UserWarning):
    """Something weakens a guarantee, or voids it."""


@dataclass(frozen=True, eq=False)
class Guarantee:
    """What is promised of a release.

    Args:
        eta: no attack on any record of the pool is right with probability above ``accuracy``.
        accuracy: ``max(p, 1 - p) + eta``, p the ``prior``.
        prior: the probability of membership that the attacker starts from: k / n, or 1/2, where ``2 eta`` bounds the
            advantage of every attack whatever k / n is.
        confidence: with which this holds, over the random splits that the noise was calibrated with; 1 where nothing
            was drawn, ``None`` where it hangs on estimates whose error is not known.
        source: the theorem.
        assumption: what must be true for it, in words.
        etas: who costs the noise: for each record of the pool how much better than guessing an attack on it may be
            ``[n]``; an upper bound where ``confidence`` is 1, else an estimate of it, and the promise is on the largest
            alone. ``None`` where only the whole is known.
    """

    eta: float
    accuracy: float
    prior: float
    confidence: float | None
    source: str
    assumption: str
    etas: Floats | None = None


@dataclass(frozen=True)
class NoGuarantee:
    """Nothing is promised.

    Args:
        reason: why not, in words.
    """

    reason: str


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The noise for one algorithm and one eta; it hangs on the pool and never on the training set.

    Args:
        noise: what is added.
        guarantee: what is promised of a release with this noise, its random numbers from the operating system.
        size: k, records in a training set.
    """

    noise: Noise
    guarantee: Guarantee | NoGuarantee
    size: int


class Calibration(ABC):
    """A way to find how much noise an eta takes."""

    @abstractmethod
    def calibrated(self, algorithm: Algorithm, *, eta: float, size: int, rng: np.random.Generator) -> Calibrated:
        """The noise.

        Args:
            algorithm: what is protected.
            eta: in (0, min(p, 1 - p)), p = k / n unless the calibration has another prior.
            size: k, records in a training set.
            rng: draws the splits that the noise is calibrated with; they must be independent of the training set.

        Raises:
            ConfigError: a number is out of range.
            ModelError: the algorithm cannot be protected, or gives numbers that are not finite.
        """


@dataclass(frozen=True)
class Swap(Calibration):
    """By what exchanging one record does to the output: the least noise, without a factor of the dimension.

    Gaussian noise. Small pools are enumerated and means solved in closed form, so that the guarantee is certain;
    otherwise random training sets are drawn, and the guarantee holds with the stated confidence: by the leave-one-out
    engines where the learner has one, else by training with one record exchanged for another.

    Args:
        confidence: of the guarantee where training sets are drawn; in (0, 1).
        n_splits: random training sets (pairs of them for leave-one-out engines) that are tested, at least 1; an eighth
            as many again are drawn for the shape of the noise.
        shape: which coordinates get how much of the noise: ``diagonal`` in proportion to how far an exchange moves
            them; ``identity`` all the same; ``curvature`` as :meth:`Algorithm.covariance` has it, and as ``diagonal``
            where that is ``None``; deviations ``[d]``; or a covariance ``[d, d]``, positive definite, both up to a
            factor and fixed in advance. The promise is kept with any; what they differ in is what the noise costs.
        prior: the probability p of membership, in (0, 1), in the game that eta is about: a coin with this probability
            decides whether the record is in, and the training set is a random one of k with or without it. By default
            k / n, as Izzo et al. define it. At 1/2 the promise is that no attack has an advantage above ``2 eta``; at
            k / n the advantage may be far larger than eta (:func:`leakgauge.theory.advantage_from_eta`).

    Raises:
        ConfigError: a number is out of range.

    Source: derived in :mod:`leakgauge.defences.mip.exchanges`.
    """

    confidence: float = 0.95
    n_splits: int = 256
    shape: Literal["diagonal", "identity", "curvature"] | ArrayLike = "diagonal"
    prior: float | None = None

    def __post_init__(self) -> None:
        check_fields(
            self,
            confidence=confidence_level(hint="write a fraction, such as 0.95"),
            n_splits=whole(1),
            prior=optional(number(above=0, below=1, hint="0.5 bounds the advantage")),
        )

    def calibrated(self, algorithm: Algorithm, *, eta: float, size: int, rng: np.random.Generator) -> Calibrated:
        """The noise; see :meth:`Calibration.calibrated`."""
        share = _checked(algorithm, eta, size, self.prior)
        root, evidence = self._evidence(algorithm, size, share, rng)
        scale = evidence.least_scale(eta)
        certain = not isinstance(evidence, Exchanges | RandomRemovals)
        if not certain:
            _warn_of_still(root)
        guarantee = Guarantee(
            eta,
            max(share, 1 - share) + eta,
            share,
            1.0 if certain else self.confidence,
            "coupling by the exchange of one record, with Gaussian noise",
            SECRECY_ASSUMPTION,
            evidence.etas(scale),
        )
        return Calibrated(GaussianNoise(scale * root), guarantee, size)

    def _evidence(
        self, algorithm: Algorithm, size: int, share: float, rng: np.random.Generator
    ) -> tuple[Floats, ExchangeEvidence]:
        n, n_drawn = algorithm.n_pool, self.n_splits * (1 + min(size, algorithm.n_pool - size))
        if isinstance(algorithm, Mean):
            root = self._root(algorithm, size, algorithm.about_mean(size))
            if n <= MOST_PAIRED and n * algorithm.rows.size <= MOST_DIFFERENCES:
                return root, Enumerated(exchanges_of_mean(algorithm, size, root), share)
            return root, Farthest(far_in_mean(algorithm, size, root), min(share, 1 - share))
        if not algorithm.randomised and n <= MOST_ENUMERATED and math.comb(n, size) <= n_drawn:
            moves, pairs = all_exchanges(*enumerated(algorithm, size))
            root = self._root(algorithm, size, moves)
            return root, Enumerated(of_each(lengths(moves, root), pairs, n), share)
        members = drawn(n, size, rng)
        removed = algorithm.removals(members, seed=0)
        if removed is None:
            return self._exchanges(algorithm, size, share, rng)
        return self._removals(algorithm, size, share, removed.shape[1], rng)

    def _exchanges(
        self, algorithm: Algorithm, size: int, share: float, rng: np.random.Generator
    ) -> tuple[Floats, ExchangeEvidence]:
        first = [drawn_exchanges(algorithm, size, rng)[0] for _ in range(self._n_first)]
        root = self._root(algorithm, size, np.concatenate(first))
        found = np.full((self.n_splits, algorithm.n_pool), np.nan)
        for row in found:
            moves, leaving, coming = drawn_exchanges(algorithm, size, rng)
            row[leaving] = row[coming] = lengths(moves, root)
        return root, Exchanges(found, share, self.confidence)

    def _removals(
        self, algorithm: Algorithm, size: int, share: float, d: int, rng: np.random.Generator
    ) -> tuple[Floats, ExchangeEvidence]:
        def removed(members: Members) -> Floats:
            moves = algorithm.removals(members, seed=0)
            return np.full((size, d), np.nan) if moves is None else moves  # no model: infinitely far

        first = [removed(drawn(algorithm.n_pool, size, rng)) for _ in range(self._n_first)]
        root = self._root(algorithm, size, np.concatenate(first))
        found = np.full((self.n_splits, 2, algorithm.n_pool), np.nan)
        for pair in found:
            members = drawn(algorithm.n_pool, size, rng)
            for row, inside in zip(pair, (members, opposite(members, rng)), strict=True):
                row[inside] = lengths(removed(inside), root)
        return root, RandomRemovals(found, share, self.confidence)

    @property
    def _n_first(self) -> int:
        return max(4, self.n_splits // 8)

    def _root(self, algorithm: Algorithm, size: int, moves: Floats) -> Floats:
        """The shape of the noise, for moves ``[m, d]``."""
        d = moves.shape[1]
        shape = self.shape
        if isinstance(shape, str) and shape == "curvature":
            own = algorithm.covariance(size)
            shape = "diagonal" if own is None else own
        if isinstance(shape, str):
            if shape not in ("diagonal", "identity"):
                raise ConfigError(
                    f"shape must be 'diagonal', 'identity', 'curvature', deviations or a covariance, got {shape!r}"
                )
            if shape == "identity":
                return np.ones(d)
            known = moves[np.isfinite(moves).all(axis=1)]
            if not len(known):
                cause = f" (first error: {algorithm.first_error})" if algorithm.first_error else ""
                raise ModelError(
                    f"no model could be trained after any exchange of a record{cause}; use a larger training set, or "
                    "more smoothing"
                )
            return np.asarray(np.sqrt((known**2).mean(axis=0)))
        given = np.asarray(shape, dtype=np.float64)
        if given.shape == (d,) and np.isfinite(given).all() and (given >= 0).all():
            return given
        if given.shape == (d, d) and np.isfinite(given).all() and np.allclose(given, given.T):
            try:
                return np.asarray(np.linalg.cholesky(given))
            except np.linalg.LinAlgError:
                pass
        raise ConfigError(
            f"shape must be {d} deviations of at least 0 or a positive definite {d} x {d} covariance, got an array of "
            f"shape {given.shape}"
        )


@dataclass(frozen=True)
class Tight(Calibration):
    """By a moment of the output over random training sets, with the sharp constant 1 / (2 eta).

    For algorithms that cannot be run often. Noise grows with the dimension, and as the output's deviation, not as the
    effect of one record: use :class:`Swap` where it can be used, and :class:`TightGaussian` else.

    Args:
        moment: M, at least 1; may be infinite. 1 gives independent Laplace noise for each coordinate.
        sigma: for each coordinate an upper bound on ``(E |output - mean|^M)^(1/M)``, ``[d]``; by default estimated.
        n_splits: random training sets for the estimate, at least 2.
        margin: what estimates are multiplied by, at least 1.

    Source: Izzo et al. 2022, Theorem 7, with the constant of :func:`leakgauge.theory.noise_factor`.
    """

    moment: float = 2.0
    sigma: ArrayLike | None = None
    n_splits: int = 128
    margin: float = 1.0

    def calibrated(self, algorithm: Algorithm, *, eta: float, size: int, rng: np.random.Generator) -> Calibrated:
        """The noise; see :meth:`Calibration.calibrated`."""
        share = _checked(algorithm, eta, size)
        moments = _moments(algorithm, size, self.moment, self.sigma, self.n_splits, self.margin, rng)
        noise = NormNoise(moments.sigma, self.moment, noise_factor(eta))
        return Calibrated(noise, moments.guarantee(eta, share, "noise of a norm, c = 1 / (2 eta)"), size)


@dataclass(frozen=True)
class TightGaussian(Calibration):
    """By the deviations of the output over random training sets, with Gaussian noise: grows with the root of d only.

    Args:
        sigma: an upper bound on the deviation of each coordinate ``[d]``; by default estimated.
        n_splits: random training sets for the estimate, at least 2.
        margin: what estimates are multiplied by, at least 1.

    Source: :func:`leakgauge.theory.gaussian_noise_factor`.
    """

    sigma: ArrayLike | None = None
    n_splits: int = 128
    margin: float = 1.0

    def calibrated(self, algorithm: Algorithm, *, eta: float, size: int, rng: np.random.Generator) -> Calibrated:
        """The noise; see :meth:`Calibration.calibrated`."""
        share = _checked(algorithm, eta, size)
        moments = _moments(algorithm, size, 2.0, self.sigma, self.n_splits, self.margin, rng)
        factor = gaussian_noise_factor(eta, max(1, int((moments.sigma > 0).sum())))
        guarantee = moments.guarantee(eta, share, "Gaussian noise, s = sqrt(d) / (eta sqrt(2 pi))")
        return Calibrated(GaussianNoise(factor * moments.sigma), guarantee, size)


@dataclass(frozen=True)
class Paper(Calibration):
    """As published, for comparison: hundreds of times the noise of :class:`Tight`.

    Args:
        moment: M, at least 1.
        sigma: as for :class:`Tight`.
        n_splits: as for :class:`Tight`.
        radius: ``gamma``, which the theorem demands, or ``laplace_paper`` as printed, which warns and promises nothing
            in two dimensions or more.

    Source: Izzo et al. 2022, Theorem 7, Corollaries 8 and 11, Algorithm 1; moments over halves of the pool, not of S.
    """

    moment: float = 2.0
    sigma: ArrayLike | None = None
    n_splits: int = 128
    radius: Radius | str = Radius.GAMMA

    def calibrated(self, algorithm: Algorithm, *, eta: float, size: int, rng: np.random.Generator) -> Calibrated:
        """The noise; see :meth:`Calibration.calibrated`."""
        share = _checked(algorithm, eta, size)
        moments = _moments(algorithm, size, self.moment, self.sigma, self.n_splits, 1.0, rng)
        noise = NormNoise(moments.sigma, self.moment, noise_factor_izzo(eta, self.moment), Radius(self.radius))
        if noise.radius is Radius.LAPLACE_PAPER and (moments.sigma > 0).sum() > 1:
            warnings.warn(
                "noise with the length as printed guarantees nothing in two dimensions or more; it is for "
                "reproducing the paper's figures; use radius='gamma' or another calibration",
                GuaranteeWarning,
                stacklevel=2,
            )
            return Calibrated(noise, NoGuarantee("the length of the noise as printed guarantees nothing"), size)
        return Calibrated(noise, moments.guarantee(eta, share, "Izzo et al. 2022, Theorem 7"), size)


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of the output over random training sets.

    Args:
        sigma: M-th root of the M-th central moment of each coordinate ``[d]``.
        assumption: what must be true for them to be bounds; empty if they follow by mathematics.
        confidence: 1 if they follow by mathematics or were given; else ``None``.
    """

    sigma: Floats
    assumption: str
    confidence: float | None

    def guarantee(self, eta: float, share: float, source: str) -> Guarantee:
        """What follows from them."""
        assumption = "; ".join(part for part in (SECRECY_ASSUMPTION, self.assumption) if part)
        return Guarantee(eta, max(share, 1 - share) + eta, share, self.confidence, source, assumption)


def moments_of_splits(outputs: Floats, moment: float) -> Floats:
    """M-th roots of M-th absolute central moments of each coordinate ``[d]``, about the mean.

    Args:
        outputs: of random training sets ``[splits, d]``, two or more.
        moment: M, at least 1; the largest deviation if infinite. For M = 2 the sum is divided by one less.

    Raises:
        ModelError: an output is not finite.
    """
    bad = np.flatnonzero(~np.isfinite(outputs).all(axis=0))
    if len(bad):
        raise ModelError(
            f"the algorithm gives numbers that are not finite (first: coordinate {bad[0]}) on some random training "
            "sets; noise cannot hide that"
        )
    away = np.abs(outputs - outputs.mean(axis=0))
    largest = away.max(axis=0)
    if math.isinf(moment):
        return np.asarray(largest)
    scaled = away / np.where(largest > 0, largest, 1.0)
    count = len(outputs) - 1 if moment == 2 else len(outputs)
    return np.asarray(largest * ((scaled**moment).sum(axis=0) / count) ** (1 / moment))


def _moments(
    algorithm: Algorithm,
    size: int,
    moment: float,
    sigma: ArrayLike | None,
    n_splits: int,
    margin: float,
    rng: np.random.Generator,
) -> Moments:
    if not moment >= 1:
        raise ConfigError(f"moment must be at least 1, got {moment}; use 2 for standard deviations")
    if not margin >= 1:
        raise ConfigError(f"margin must be at least 1, got {margin}")
    if sigma is not None:
        given = np.asarray(sigma, dtype=np.float64)
        if given.ndim != 1 or not (np.isfinite(given).all() and (given >= 0).all()):
            raise ConfigError("sigma must hold one finite number of at least 0 for each coordinate")
        return Moments(given, "sigma bounds the moments of the output, as given", 1.0)
    if isinstance(algorithm, Mean) and moment == 2:
        return Moments(algorithm.deviations(size), "", 1.0)
    if n_splits < 2:
        raise ConfigError(f"n_splits must be at least 2, got {n_splits}; 128 or more is usual")
    outputs = []
    for _ in range(n_splits):
        members = drawn(algorithm.n_pool, size, rng)
        outputs.append(algorithm.output(members, seed=int(rng.integers(2**31))))
    found = margin * moments_of_splits(np.stack(outputs), moment)
    _warn_of_still(found)
    return Moments(found, f"sigma, estimated from {n_splits} random splits of the pool, bounds the moments", None)


def _checked(algorithm: Algorithm, eta: float, size: int, prior: float | None = None) -> float:
    """The attacker's prior, q = k / n if there is no other, once k and eta have been looked at."""
    n = algorithm.n_pool
    share = checked_size(n, size) / n
    share, meaning = (share, f"{size} of {n} records") if prior is None else (prior, f"a prior of {prior:g}")
    most = min(share, 1 - share)
    if not 0 < eta < most:
        raise ConfigError(
            f"eta must be in (0, {most:g}) for {meaning}, got {eta}; at 0 no noise is enough, and from {most:g} on no "
            "noise is needed"
        )
    return share


def _warn_of_still(root: Floats) -> None:
    still = np.flatnonzero(root == 0 if root.ndim == 1 else np.zeros(len(root)))
    if len(still):
        warnings.warn(
            f"{len(still)} of {len(root)} coordinates never moved in the random training sets (first: {still[0]}) and "
            "get no noise; make sure that they are the same for every training set",
            GuaranteeWarning,
            stacklevel=4,
        )
