"""Membership inference privacy (MIP): what it promises, what implies it, how much noise it takes.

The game: a training set S of k records is drawn uniformly from a pool of n, an algorithm is trained on it and gives a
vector, and an attacker who knows the pool and sees the vector says of one record whether it was in S. Everywhere
`share` is q = k / n, in (0, 1). Who looks at nothing is right with probability `max(q, 1 - q)`; an algorithm is
**eta-MIP** if no attack on any record is right with probability above `max(q, 1 - q) + eta`. So eta lies in
[0, min(q, 1 - q)], smaller is more private, and at `min(q, 1 - q)` nothing is promised.

Differential privacy is here for **replace-one** adjacency, as in `leakgauge.theory.differential_privacy`.

Sources: Izzo, Yoon, Arik and Zou, "Provable Membership Inference Privacy", 2022; Kairouz, Oh and Viswanath, "The
Composition Theorem for Differential Privacy", ICML 2015. What is marked *derived* is proved where it stands.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leakgauge.theory.differential_privacy import PrivacyLoss

PAPER_CONSTANT = 7.5
"""Of Theorem 7, for moments of order below 2."""

PAPER_CONSTANT_FROM_2 = 6.16
"""Of Corollary 11, for moments of order 2 or more."""


def membership_accuracy(inside: Sequence[float], outside: Sequence[float], *, share: float = 0.5) -> float:
    """Return how often the best attack on a record is right, where there are finitely many outputs.

    Args:
        inside: Probability of each output if the record is in the training set [outputs].
        outside: The same if it is not [outputs].
        share: k / n, the probability that it is.

    Returns:
        `sum(max(q inside, (1 - q) outside))`, in [max(q, 1 - q), 1].

    Raises:
        ValueError: If the lengths differ, or these are no probabilities.

    Source: Izzo et al. 2022, Proposition 2.

    >>> membership_accuracy([0.75, 0.25], [0.25, 0.75])
    0.75
    """
    q = _share(share)
    for name, law in (("inside", inside), ("outside", outside)):
        if not (min(law, default=0) >= 0 and math.isclose(math.fsum(law), 1, abs_tol=1e-9)):
            raise ValueError(f"{name} must be probabilities that sum to 1, got a sum of {math.fsum(law)}.")
    return math.fsum(max(q * a, (1 - q) * b) for a, b in zip(inside, outside, strict=True))


def accuracy_bound(epsilon: float, delta: float = 0.0, *, share: float = 0.5) -> float:
    """Bound how often any attack on an (epsilon, delta)-differentially private algorithm is right.

    Args:
        epsilon: At least 0, for replace-one adjacency.
        delta: In [0, 1].
        share: k / n.

    Returns:
        `max((e^epsilon + delta) / (1 + e^epsilon), 1 - q + q delta, q + (1 - q) delta)`, in [max(q, 1 - q), 1].

    Raises:
        ValueError: If a number is out of range or NaN.

    Derivation: each training set with the record has n - k neighbours without it and each without it has k with it. So
    the laws of the output in the two worlds are averages over the two ends of one random edge, and
    (epsilon, delta)-close as these are; the rest is Kairouz et al. 2015, section 2.

    >>> round(accuracy_bound(1.0, 0.01), 10)
    0.7337479928
    """
    loss, q = PrivacyLoss(epsilon, delta), _share(share)
    odds = (1 + math.tanh(loss.epsilon / 2)) / 2  # e^epsilon / (1 + e^epsilon), without overflow
    return max(odds + loss.delta * (1 - odds), 1 - q + q * loss.delta, q + (1 - q) * loss.delta)


def eta_from_epsilon(epsilon: float, delta: float = 0.0, *, share: float = 0.5) -> float:
    """Return the eta that differential privacy implies; about epsilon / 4 for small epsilon and equal shares.

    Args:
        epsilon: At least 0, for replace-one adjacency.
        delta: In [0, 1].
        share: k / n.

    Returns:
        `accuracy_bound - max(q, 1 - q)`, at least 0. No smaller value holds for all such algorithms at q = 1/2.

    Raises:
        ValueError: If a number is out of range or NaN.

    Source: Izzo et al. 2022, Theorem 4, for delta = 0 and q = 1/2: `tanh(epsilon / 2) / 2`.

    >>> round(eta_from_epsilon(1.0), 10)
    0.2310585786
    """
    if share == 0.5:  # no difference of two numbers near 1/2
        loss = PrivacyLoss(epsilon, delta)
        pure = math.tanh(loss.epsilon / 2) / 2
        return pure + loss.delta * (0.5 - pure)
    return accuracy_bound(epsilon, delta, share=share) - max(share, 1 - share)


def epsilon_from_eta(eta: float, delta: float = 0.0, *, share: float = 0.5) -> float:
    """Return the largest epsilon from which eta-MIP follows.

    Args:
        eta: In [0, min(q, 1 - q)].
        delta: In [0, 1].
        share: k / n.

    Returns:
        Epsilon for replace-one adjacency; `ln((1 + 2 eta) / (1 - 2 eta))` for delta = 0 and q = 1/2.

    Raises:
        ValueError: If a number is out of range, or if delta is too large for any epsilon.

    Source: Izzo et al. 2022, Theorem 4, solved for epsilon; `accuracy_bound` for the general case.

    >>> round(epsilon_from_eta(0.1), 10)
    0.4054651081
    """
    q, loss = _share(share), PrivacyLoss(0.0, delta)
    right = max(q, 1 - q) + _eta(eta, q)
    wrong = min(q, 1 - q) - eta
    if accuracy_bound(0.0, loss.delta, share=q) > right + 1e-15:
        raise ValueError(
            f"delta = {delta} is too large for eta = {eta}; no epsilon keeps it, so ask for a smaller delta."
        )
    if wrong <= 0:
        return math.inf
    return max(0.0, math.log1p((right - wrong - loss.delta) / wrong))


def eta_from_advantage(advantage: float, *, share: float = 0.5) -> float:
    """Return the eta that a bound on every attack's advantage implies.

    Args:
        advantage: Largest `tpr - fpr` of any attack on any record, in [0, 1].
        share: k / n.

    Returns:
        `min(q, 1 - q) advantage`; `advantage / 2` for q = 1/2. No smaller value follows.

    Raises:
        ValueError: If a number is out of range or NaN.

    Derivation: `q f_in` and `(1 - q) f_out` overlap in at least `min(q, 1 - q)` times the overlap of f_in and f_out.

    >>> eta_from_advantage(0.5), eta_from_advantage(0.5, share=0.25)
    (0.25, 0.125)
    """
    q = _share(share)
    if not 0 <= advantage <= 1:
        raise ValueError(f"advantage must be in [0, 1], got {advantage}; it is tpr - fpr of the best attack.")
    return min(q, 1 - q) * advantage


def accuracy_from_advantage(advantage: float, *, share: float = 0.5) -> float:
    """Return how often an attack may be right where no attack has a larger advantage.

    Args:
        advantage: Largest `tpr - fpr` of any attack, in [0, 1].
        share: Probability that the record is in the training set.

    Returns:
        `max(q, 1 - q) + min(q, 1 - q) advantage`. No smaller value follows.

    Raises:
        ValueError: If a number is out of range or NaN.

    Derivation: `eta_from_advantage`.

    >>> accuracy_from_advantage(0.1), round(accuracy_from_advantage(0.1, share=10 / 12), 4)
    (0.55, 0.85)
    """
    return max(share, 1 - share) + eta_from_advantage(advantage, share=share)


def advantage_from_eta(eta: float, *, share: float = 0.5) -> float:
    """Return how large the advantage `tpr - fpr` of an attack may be where the algorithm is eta-MIP.

    At a share other than 1/2 an eta says little about it. An attack that never answers against the majority adds
    nothing to the accuracy of guessing, so that even eta = 0 allows an advantage of `|1 - 2 q| / max(q, 1 - q)`: 0.8
    for 10 of 12 records. Where an advantage is to be limited, limit it: `Swap(prior=0.5)` in
    `leakgauge.defences.mip` finds the noise for `eta = advantage / 2` in the balanced game, at every share.

    Args:
        eta: In [0, min(q, 1 - q)].
        share: q = k / n.

    Returns:
        `(|1 - 2 q| + eta) / max(q, 1 - q)`, in [0, 1]; `2 eta` for q = 1/2. No smaller value follows, for any n and k.

    Raises:
        ValueError: If a number is out of range or NaN.

    Proof: let q <= 1/2 (else swap the two answers, and with them q and 1 - q). An attack with rates tpr and fpr is
    right with probability `q tpr + (1 - q)(1 - fpr)`, so eta-MIP says `q tpr - (1 - q) fpr <= eta`, hence
    `tpr - fpr <= tpr - (q tpr - eta) / (1 - q) = ((1 - 2 q) tpr + eta) / (1 - q)`. That is largest at tpr = 1.
    An algorithm that reaches it: fix z*, and release 1 if z* is in S, else 1 with probability
    `f = (q - eta) / (1 - q)` and 0 otherwise. The attack "member at 1" has tpr 1 and fpr f, an advantage of
    `1 - f = (1 - 2 q + eta) / (1 - q)`. It is eta-MIP: about z* the best accuracy at prior q is
    `max(q, (1 - q) f) + (1 - q)(1 - f)`, where `(1 - q) f = q - eta <= q`, so `1 - q + eta`. About another record z
    the output is a function of whether z* is in S, and of a coin. 0 says that z* is out, which makes z more likely to
    be in. To answer "in" at 0 and "out" at 1 beats "out" by
    `(1 - f) (Pr[z in, z* out] - Pr[z out, z* out]) = (1 - f) (1 - q) (2 k - n + 1) / (n - 1)`,
    which is at most 0 for 2 k < n and `(1 - f) / (2 (n - 1)) <= eta` for 2 k = n, where `eta = (1 - f) / 2`.

    >>> advantage_from_eta(0.1)
    0.2
    >>> round(advantage_from_eta(1 / 60, share=10 / 12), 4)
    0.82
    """
    q = _share(share)
    return (abs(1 - 2 * q) + _eta(eta, q)) / max(q, 1 - q)


def posterior_range(epsilon: float, *, share: float = 0.5) -> tuple[float, float]:
    """Return between which values every output of an epsilon-differentially private algorithm leaves the posterior.

    The strength of differential privacy over MIP, which bounds an average over outputs.

    Args:
        epsilon: At least 0, for replace-one adjacency.
        share: k / n, the probability of "member" before anything is seen.

    Returns:
        The least and the largest `Pr[member | output]`: prior odds times `e^-epsilon` and `e^epsilon`.

    Raises:
        ValueError: If a number is out of range or NaN.

    Source: Izzo et al. 2022, Proposition 6.

    >>> posterior_range(0.0, share=0.25)
    (0.25, 0.25)
    """
    q, factor = _share(share), math.exp(-PrivacyLoss(epsilon).epsilon)
    return q * factor / (q * factor + 1 - q), q / (q + (1 - q) * factor)


def published_records_accuracy(n_pool: int, size: int, probability: float) -> float:
    """Return how often the best attack is right if each training record is published with some probability.

    Not epsilon-differentially private for any epsilon, and yet MIP.

    Args:
        n_pool: n, at least 2.
        size: k, in 1..n - 1.
        probability: With which each training record is published, independently; in [0, 1].

    Returns:
        The exact value; `1 - q + q probability` for k <= n / 2, so that eta is `probability / 2` at k = n / 2.

    Raises:
        ValueError: If a number is out of range.

    Source: Izzo et al. 2022, Theorem 5. Exact value derived: a published record is a member. Of any other, the number m
    of published ones is all that is known; it is binomial of k - 1 trials if the record is in, of k if it is out.

    >>> round(published_records_accuracy(4, 2, 0.1), 12)
    0.55
    """
    n, k = operator.index(n_pool), operator.index(size)
    if not 1 <= k <= n - 1:
        raise ValueError(
            f"size must be in 1..n_pool - 1 = {n - 1}, got {k}; otherwise membership of every record is known."
        )
    if not 0 <= probability <= 1:
        raise ValueError(f"probability must be in [0, 1], got {probability}.")
    p, q = float(probability), k / n

    def hidden(m: int) -> float:
        inside = q * (1 - p) * _binomial(k - 1, m, p) if m < k else 0.0
        return max(inside, (1 - q) * _binomial(k, m, p))

    return q * p + math.fsum(hidden(m) for m in range(k + 1))


def noise_factor(eta: float) -> float:
    """Return the factor c for noise of density `exp(-norm(x) / (c sigma))` with sigma a first moment of the norm.

    Args:
        eta: In (0, 1/2).

    Returns:
        `1 / (2 eta)`. It suffices for every norm, every dimension and every share, if
        `sigma >= E norm(output - centre)`, with any fixed centre.

    Raises:
        ValueError: If eta is out of range.

    Derivation: shifting the noise by v changes its density by a factor of at most e^t, t = norm(v) / (c sigma), so the
    two are `tanh(t / 2) <= t / 2` apart in total variation. For independent outputs a of the one world and b of the
    other, `E norm(a - b) <= E norm(a - centre) + E norm(b - centre) <= sigma / min(q, 1 - q)`.

    >>> noise_factor(0.1)
    5.0
    """
    return 1 / (2 * _eta_for_noise(eta))


def noise_factor_izzo(eta: float, moment: float = 2.0) -> float:
    """Return the factor c as printed, hundreds of times `noise_factor`; for comparison with the literature.

    Args:
        eta: In (0, 1/2).
        moment: Order M of the moments that are bounded, at least 1; may be infinite.

    Returns:
        `(C / eta)^(1 + 2 / M)`, with C = 6.16 for M of 2 or more (Corollary 11) and 7.5 below.

    Raises:
        ValueError: If a number is out of range.

    Source: Izzo et al. 2022, Theorem 7 and Corollary 11.

    >>> round(noise_factor_izzo(0.1), 2)
    3794.56
    """
    order = _moment(moment)
    constant = PAPER_CONSTANT if order < 2 else PAPER_CONSTANT_FROM_2
    return float((constant / _eta_for_noise(eta)) ** (1 + 2 / order))


def least_noise_factor(eta: float) -> float:
    """Return the factor c below which no guarantee from one moment alone can hold: how sharp `noise_factor` is.

    Args:
        eta: In (0, 1/2).

    Returns:
        `-1 / ln(1 - 2 eta)`: what an algorithm needs that gives 1 with the record and -1 without it, at q = 1/2.

    Raises:
        ValueError: If eta is out of range.

    Derivation: two Laplace laws of scale c, 2 apart, differ by `1 - e^(-1/c)` in total variation.

    >>> round(least_noise_factor(0.1), 4)
    4.4814
    """
    return -1 / math.log1p(-2 * _eta_for_noise(eta))


def gaussian_noise_factor(eta: float, dimension: int) -> float:
    """Return the factor s for independent Gaussian noise of deviation `s sd_i` on each coordinate.

    Args:
        eta: In (0, 1/2).
        dimension: Coordinates that move, at least 1.

    Returns:
        `sqrt(dimension) / (eta sqrt(2 pi))`; suffices for every share, if sd_i bounds the deviation of coordinate i.

    Raises:
        ValueError: If a number is out of range.

    Derivation: two Gaussians l deviations apart differ by at most `l / sqrt(2 pi)` in total variation, and the mean
    distance of an output from the mean of all is at most `sqrt(dimension)` in units of sd_i; then as `noise_factor`.

    >>> round(gaussian_noise_factor(0.1, 4), 4)
    7.9788
    """
    if operator.index(dimension) < 1:
        raise ValueError(f"dimension must be at least 1, got {dimension}; it counts the coordinates that move.")
    return math.sqrt(dimension) / (_eta_for_noise(eta) * math.sqrt(2 * math.pi))


def laplace_scale(sensitivity: float, eta: float) -> float:
    """Return the scale of the Laplace noise that gives eta-MIP by way of differential privacy.

    Args:
        sensitivity: Largest change of the output when one record is replaced; at least 0.
        eta: In (0, 1/2).

    Returns:
        `sensitivity / ln((1 + 2 eta) / (1 - 2 eta))`, in the units of the output.

    Raises:
        ValueError: If eta is out of range.

    Source: Izzo et al. 2022, section 5.1.
    """
    return sensitivity / epsilon_from_eta(_eta_for_noise(eta))


@dataclasses.dataclass(frozen=True)
class ReciprocalSum:
    """An algorithm whose outputs hardly vary although one of them is enormous: where MIP needs less noise than DP.

    It gives `1 / sum(S)` for halves S of the pool `1, 2, 4, .., 2^(n - 2), A`, with
    `A = sqrt(p) - (2^(n/2 - 1) - 1)` and `p = 1 / C(n, n/2)`. The half of A and the smallest others gives `p^(-1/2)`,
    all others give values in [0, 1].

    Args:
        n: Records in the pool; even, at least 4.

    Raises:
        ValueError: If n is odd or too small.

    Source: Izzo et al. 2022, Proposition 9. Sums are kept as whole numbers, with or without sqrt(p), since A loses all
    its digits beside 2^(n/2) from n = 40 on.

    >>> example = ReciprocalSum(8)
    >>> example.n_subsets, round(example.largest, 6), round(example.sensitivity, 6)
    (70, 8.3666, 8.352516)
    """

    n: int

    def __post_init__(self) -> None:
        if operator.index(self.n) < 4 or self.n % 2:
            raise ValueError(f"n must be even and at least 4, got {self.n}; the training set is half of the pool.")

    @property
    def n_subsets(self) -> int:
        """Number of halves, C(n, n/2)."""
        return math.comb(self.n, self.n // 2)

    @property
    def largest(self) -> float:
        """The largest output, p^(-1/2)."""
        return math.sqrt(self.n_subsets)

    @property
    def sensitivity(self) -> float:
        """Largest change of the output when one record is replaced, which grows faster than 2^(n/3)."""
        return self.largest - 1 / float(2 ** (self.n // 2 - 1) - 1 + 2 ** (self.n - 2))

    @property
    def deviation(self) -> float:
        """Standard deviation of the output over random halves, by enumeration; tends to 1."""
        mean, square, _ = self._moments
        return math.sqrt(square - mean * mean)

    @property
    def mean_absolute_deviation(self) -> float:
        """Mean absolute deviation of the output over random halves, by enumeration; tends to 0."""
        return self._moments[2]

    @cached_property
    def _moments(self) -> tuple[float, float, float]:
        k = self.n // 2
        least = 2 ** (k - 1) - 1
        without = _subset_sums(self.n - 1, k)
        outputs = 1 / np.concatenate(
            [without, _subset_sums(self.n - 1, k - 1) - least + 1 / self.largest]  # differences are exact
        )
        mean = math.fsum(outputs) / len(outputs)
        return mean, math.fsum(outputs**2) / len(outputs), math.fsum(np.abs(outputs - mean)) / len(outputs)


def _subset_sums(n_bits: int, size: int) -> NDArray[np.int64]:
    """Return all sums of `size` different powers of 2 below 2^n_bits, as whole numbers [subsets]."""
    sums = [np.zeros(1, dtype=np.int64)] + [np.empty(0, dtype=np.int64)] * size
    for bit, j in itertools.product(range(n_bits), range(size, 0, -1)):
        sums[j] = np.concatenate([sums[j], sums[j - 1] + 2**bit])
    return sums[size]


def _binomial(n: int, m: int, p: float) -> float:
    return math.comb(n, m) * p**m * (1 - p) ** (n - m)


def _share(share: float) -> float:
    if not 0 < share < 1:
        raise ValueError(
            f"share must be in (0, 1), got {share}; with none or all of the pool in the training set membership "
            "is known."
        )
    return float(share)


def _eta(eta: float, share: float) -> float:
    most = min(share, 1 - share)
    if not 0 <= eta <= most:
        raise ValueError(
            f"eta must be in [0, {most:g}], got {eta}; it is the largest margin of an attack over chance level."
        )
    return float(eta)


def _eta_for_noise(eta: float) -> float:
    if not 0 < eta < 0.5:
        raise ValueError(
            f"eta must be in (0, 1/2), got {eta}; at 0 no noise is enough, and from 1/2 on none is needed."
        )
    return float(eta)


def _moment(moment: float) -> float:
    if not moment >= 1:
        raise ValueError(f"moment must be at least 1, got {moment}; use 2 for standard deviations.")
    return float(moment)
