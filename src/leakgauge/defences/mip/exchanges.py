"""How much exchanging one record moves an output, and how much noise hides it: what the swap calibration rests on.

Fix a record z*. Draw a training set D with it and a record z outside, and put z in its place: that gives D', uniform
among the training sets without z*. So no attack on z* tells the two worlds apart better than, on average, it tells D
from D' (the pair couples the two worlds, and the accuracy of the best attack is convex in them). With Gaussian noise of
deviation s, in units in which D and D' are l apart, and q = k / n, that is

``eta(z*) <= E[q Phi(l/2s + s c/l) + (1 - q) Phi(l/2s - s c/l)] - max(q, 1 - q)``, ``c = ln(q / (1 - q))``.

At q = 1/2 the right side is ``E[tv(l / s)] / 2``, with ``tv(l) = 2 Phi(l / 2) - 1`` the distance of two Gaussians in
total variation; for other q it is less than ``min(q, 1 - q) E[tv(l / s)]``.

There are three ways to the expectation. For small pools, and means of not too large ones, every exchange is looked at;
for means of large pools it has a bound in closed form; else exchanges are drawn at random, and a test decides whether
an s is enough.

No factor of the dimension appears, and l is the effect of one record (of order 1 / n for a mean), not the spread over
random training sets (1 / sqrt(n)) that calibrations by moments pay for.

Source of the test: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024,
section 4, here with fixed bets.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from leakgauge.arrays import Floats, Indices, Members
from leakgauge.defences.mip.algorithms import Algorithm, Mean
from leakgauge.defences.mip.noise import lengths
from leakgauge.errors import ConfigError, ModelError

MOST_SUBSETS = 1_000_000
"""Training sets that are enumerated at most."""

BETS = ((1.0, 0.5), (0.5, 0.25), (0.25, 0.125), (0.125, 0.125))
"""Bets of the test, as shares of the largest possible one, and how much of the stakes is on each."""

NOISE_RELATIVE_ERROR = 1e-6
"""Relative error of the noise that is found; it is never too small."""


class ExchangeEvidence(ABC):
    """What is known of exchanges.

    Attributes:
        lengths: how far exchanges, or removals, move the output, in units of the noise at scale 1; any shape.
    """

    lengths: Floats

    def holds(self, scale: float, eta: float) -> bool:
        """Whether noise of that scale keeps every record's eta, as far as is known; true for all larger scales then."""
        return bool(self.etas(scale).max() <= eta)

    @abstractmethod
    def etas(self, scale: float) -> Floats:
        """An upper bound on the eta of each record ``[n]``, or, for a sample, an estimate of it."""

    def least_scale(self, eta: float) -> float:
        """The smallest scale that holds; 0 where no noise is needed.

        Raises:
            ModelError: not even infinite noise does.
        """
        if not self.holds(math.inf, eta):
            raise ModelError(self.why_never(eta))
        if self.holds(0.0, eta):
            return 0.0
        high = float(np.max(self.lengths, where=np.isfinite(self.lengths), initial=0.0))
        while not self.holds(high, eta):
            high *= 2
        while self.holds(high / 2, eta):
            high /= 2
        low = high / 2
        while high > low * (1 + NOISE_RELATIVE_ERROR):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.holds(middle, eta) else (middle, high)
        return high

    def why_never(self, eta: float) -> str:
        """What to say when not even infinite noise is enough."""
        return (
            f"no noise guarantees eta = {eta:g}: after some exchanges no model could be trained, or they change a "
            "number that has no noise; use a larger training set, more smoothing, or give the noise a shape without "
            "zeros"
        )


@dataclass(frozen=True, eq=False)
class Enumerated(ExchangeEvidence):
    """Every exchange of a record.

    Args:
        lengths: how far each of its exchanges moves the output, for each record ``[exchanges, n]``.
        share: q.
    """

    lengths: Floats
    share: float

    def etas(self, scale: float) -> Floats:
        """The bound for each record ``[n]``."""
        weight = min(self.share, 1 - self.share)
        return np.asarray(weight * distinguished(self.lengths, scale, self.share).mean(axis=0))


@dataclass(frozen=True, eq=False)
class Farthest(ExchangeEvidence):
    """A bound on the exchanges of each record of a mean.

    Args:
        lengths: root mean square length of its exchanges, for each record ``[n]``.
        weight: min(q, 1 - q).
    """

    lengths: Floats
    weight: float

    def etas(self, scale: float) -> Floats:
        """As tv is concave and increasing, its mean is at most its value at the root mean square."""
        return self.weight * distinguished(self.lengths, scale)


@dataclass(frozen=True, eq=False)
class Tested(ExchangeEvidence):
    """Exchanges drawn at random.

    Args:
        lengths: how far the record moves the output in each; NaN where there is no such exchange.
        share: q.
        confidence: with which a scale that holds is enough.
    """

    lengths: Floats
    share: float
    confidence: float

    @property
    @abstractmethod
    def weight(self) -> float:
        """What a mean of observations is multiplied by."""

    @abstractmethod
    def observed(self, scale: float) -> Floats:
        """Independent observations of each record in [0, 1] ``[splits, n]``, NaN where a split has none.

        Their mean, times the weight, bounds its eta.
        """

    def holds(self, scale: float, eta: float) -> bool:
        """Whether the hypothesis that a record's mean is too large is rejected, for each record.

        No correction for many records or many scales is due: a scale that is too small is found only if the test of
        the record that needs most noise fails at the scale that it needs, and that is one test.
        """
        most = eta / self.weight
        gains = (most - self.observed(scale)) / (1 - most)
        with np.errstate(divide="ignore"):
            wealth = [math.log(stake) + np.nansum(np.log1p(bet * gains), axis=0) for bet, stake in BETS]
        return bool((np.logaddexp.reduce(wealth, axis=0) >= -math.log1p(-self.confidence)).all())

    def etas(self, scale: float) -> Floats:
        """The estimate for each record ``[n]``; NaN for one that was never exchanged."""
        seen = self.observed(scale)
        n_seen = (~np.isnan(seen)).sum(axis=0)
        return np.asarray(self.weight * np.nansum(seen, axis=0) / np.where(n_seen > 0, n_seen, np.nan))

    def why_never(self, eta: float) -> str:
        """That there are too few splits, if so."""
        most = eta / self.weight
        fewest = int((~np.isnan(self.observed(1.0))).sum(axis=0).min())
        needed = math.ceil((math.log1p(-self.confidence) + math.log(BETS[0][1])) / math.log1p(-most))
        if fewest >= needed:
            return super().why_never(eta)
        return (
            f"eta = {eta:g} at confidence {self.confidence:g} takes {needed} or more random exchanges of each record, "
            f"and some record had {fewest}; raise eta, or in Python n_splits of ParameterNoise"
        )


@dataclass(frozen=True, eq=False)
class Exchanges(Tested):
    """Random exchanges: lengths of one exchange of each record, for each of independent splits ``[splits, n]``."""

    @property
    def weight(self) -> float:
        """min(q, 1 - q)."""
        return min(self.share, 1 - self.share)

    def observed(self, scale: float) -> Floats:
        """Of the exchanges themselves."""
        return distinguished(self.lengths, scale, self.share)


@dataclass(frozen=True, eq=False)
class RandomRemovals(Tested):
    """Random removals, two of which make an exchange: D without z* is D' without z.

    tv is concave with tv(0) = 0, so tv of an exchange is at most the sum of both. In the first, D is a random training
    set with z*; in the second, D' is a random one without z*, and z any of its members. The lengths are those of the
    removal of each record, for each of independent pairs of training sets ``[pairs, 2, n]``; NaN for sets without it.
    """

    @property
    def weight(self) -> float:
        """2 min(q, 1 - q): an observation is the mean of two removals, and their sum counts."""
        return 2 * min(self.share, 1 - self.share)

    def observed(self, scale: float) -> Floats:
        """The mean of both removals, where a record is in one training set of a pair and not in the other."""
        own = distinguished(self.lengths, scale)
        others = np.nanmean(own, axis=2, keepdims=True)[:, ::-1]
        inside = ~np.isnan(self.lengths)
        halves = np.where(inside, (own + others) / 2, 0.0).sum(axis=1)
        return np.where(inside.sum(axis=1) == 1, halves, np.nan)


def distinguished(moves: Floats, scale: float, share: float = 0.5) -> Floats:
    """How well two Gaussians can be told apart whose means are ``moves / scale`` deviations apart.

    Args:
        moves: at least 0, any shape; NaN stays NaN, and infinitely far stays so however much noise there is.
        scale: of the noise, at least 0; may be infinite.
        share: q, the probability of the one before anything is seen.

    Returns:
        How much better than guessing the best guess is, as a share of min(q, 1 - q): in [0, 1], 0 if not at all. At
        q = 1/2 the distance in total variation.
    """
    from scipy.special import erf, ndtr

    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.where(moves == 0, 0.0, moves / scale)
        if share == 0.5:
            found = erf(apart / math.sqrt(8))
        else:
            q = min(share, 1 - share)
            at = math.log((1 - q) / q) / apart
            found = ndtr(apart / 2 - at) - (1 - q) / q * ndtr(-apart / 2 - at)
    return np.asarray(np.where(np.isinf(moves), 1.0, found))


def checked_size(n_pool: int, size: int) -> int:
    """The size of the training sets, or an error where there is nothing to guess."""
    if not 1 <= size <= n_pool - 1:
        raise ConfigError(
            f"size must be in 1..{n_pool - 1} for a pool of {n_pool} records, got {size}; "
            "otherwise membership of every record is known"
        )
    return int(size)


def all_subsets(n_pool: int, size: int) -> Members:
    """Every subset of that size, bool ``[subsets, n]``.

    Raises:
        ConfigError: there are too many, or none that leaves anything to guess.

    >>> all_subsets(3, 1).sum(axis=0)
    array([1, 1, 1])
    """
    checked_size(n_pool, size)
    n_subsets = math.comb(n_pool, size)
    if n_subsets > MOST_SUBSETS:
        raise ConfigError(
            f"there are {n_subsets:,} training sets of {size} records out of {n_pool}, more than {MOST_SUBSETS:,}; "
            "the best attack can be computed for smaller pools only"
        )
    rows = np.array(list(itertools.combinations(range(n_pool), size)))
    members = np.zeros((n_subsets, n_pool), dtype=bool)
    np.put_along_axis(members, rows, True, axis=1)
    return members


def enumerated(algorithm: Algorithm, size: int) -> tuple[Floats, Members]:
    """The outputs of all training sets ``[subsets, d]``, and who is in which ``[subsets, n]``."""
    members = all_subsets(algorithm.n_pool, size)
    return np.stack([algorithm.output(row, seed=0) for row in members]), members


def all_exchanges(outputs: Floats, members: Members) -> tuple[Floats, Indices]:
    """Every exchange of every record, by enumeration.

    Args:
        outputs: of all training sets ``[subsets, d]``.
        members: who is in which, bool ``[subsets, n]``.

    Returns:
        For every exchange of record i for record j how far the output moves ``[exchanges, d]``, and (i, j)
        ``[exchanges, 2]``, each pair of training sets once.
    """
    n = members.shape[1]
    names = members @ (1 << np.arange(n, dtype=np.int64))
    order = np.argsort(names)
    moves, pairs = [], []
    for i in range(n):
        for j in range(i + 1, n):
            rows = np.flatnonzero(members[:, i] & ~members[:, j])
            partners = order[np.searchsorted(names, names[rows] - (1 << i) + (1 << j), sorter=order)]
            moves.append(outputs[partners] - outputs[rows])
            pairs.append(np.full((len(rows), 2), (i, j)))
    return np.concatenate(moves), np.concatenate(pairs)


def of_each(moved: Floats, pairs: Indices, n: int) -> Floats:
    """Lengths of exchanges ``[exchanges]`` sorted by the record that they exchange, ``[exchanges of one, n]``."""
    return np.stack([moved[(pairs == i).any(axis=1)] for i in range(n)], axis=1)


def exchanges_of_mean(algorithm: Mean, size: int, root: Floats) -> Floats:
    """Length of every exchange of each record ``[n - 1, n]``: it does not depend on the other members."""
    rows = algorithm.about_mean(size)
    return np.stack([lengths(np.delete(rows, i, axis=0) - rows[i], root) for i in range(len(rows))], axis=1)


def far_in_mean(algorithm: Mean, size: int, root: Floats) -> Floats:
    """Root mean square length of the exchanges of each record ``[n]``."""
    squares = lengths(algorithm.about_mean(size), root) ** 2
    return np.asarray(np.sqrt((squares + squares.mean()) * len(squares) / (len(squares) - 1)))


def drawn_exchanges(algorithm: Algorithm, size: int, rng: np.random.Generator) -> tuple[Floats, Indices, Indices]:
    """A random training set, and as many exchanges from it as there are disjoint ones, with common random numbers.

    Returns:
        The moves ``[exchanges, d]``, and the records that leave and that come, int ``[exchanges]`` each. An exchange is
        a uniform one of either record.
    """
    members, seed = drawn(algorithm.n_pool, size, rng), int(rng.integers(2**31))
    n_pairs = min(size, algorithm.n_pool - size)
    leaving, coming = (rng.permutation(np.flatnonzero(side))[:n_pairs] for side in (members, ~members))
    before = algorithm.output(members, seed=seed)
    moves = np.empty((n_pairs, len(before)))
    for row, (out, into) in enumerate(zip(leaving, coming, strict=True)):
        other = members.copy()
        other[out], other[into] = False, True
        moves[row] = algorithm.output(other, seed=seed) - before
    return moves, leaving, coming


def drawn(n_pool: int, size: int, rng: np.random.Generator) -> Members:
    """A uniform training set of that size, bool ``[n]``."""
    members = np.zeros(n_pool, dtype=bool)
    members[rng.permutation(n_pool)[:size]] = True
    return members


def opposite(members: Members, rng: np.random.Generator) -> Members:
    """A random training set of the same size with as few records in common as can be."""
    size, outside = int(members.sum()), np.flatnonzero(~members)
    found = np.zeros(len(members), dtype=bool)
    found[rng.permutation(outside)[:size]] = True
    missing = size - int(found.sum())
    found[rng.permutation(np.flatnonzero(members))[:missing]] = True
    return found
