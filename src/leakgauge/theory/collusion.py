"""What a trainer and an attacker who share secret keys achieve, in closed form.

For every record x of the training set and every key the trainer adds a marker: a pseudorandom input, which only the
key leads to from x, with a pseudorandom label. The attacker asks the released model about the markers of a record and
says member if the answers are theirs. The model here is the idealised one of the proof: it answers markers of its
training records exactly, and otherwise as an honestly trained one.

Source: Yeom et al. 2018, sections 3.4 and 6.4, Theorem 4.
"""

from __future__ import annotations

import math
import operator

from leakgauge.theory._checks import check_not_negative


def colluding_stability(
    stability: float, n_records: int, *, n_keys: int, bits_in: float, loss_bound: float, mu: float = 0.0
) -> float:
    """Bound the stability rate of the colluding algorithm: hardly worse than that of the honest one.

    A record is asked about wrongly only if it happens to be a marker of another record. So the loss of the colluding
    model, and with it the generalisation gap, is nearly that of the honest one, however much it gives away.

    Args:
        stability: Rate e(n) of the honest algorithm, in the units of the loss, at least 0.
        n_records: Training records n, at least 1.
        n_keys: Shared keys, at least 1.
        bits_in: d, logarithm to base 2 of the number of inputs; infinite for a continuum.
        loss_bound: Largest possible loss B, positive and finite.
        mu: Probability that a fresh record is among the training records, in [0, 1].

    Returns:
        `stability + n_keys n_records loss_bound 2^-bits_in + mu`, as printed: not clipped.

    Raises:
        ValueError: If a number is out of range or NaN.

    Source: Yeom et al. 2018, Theorem 4.

    >>> colluding_stability(0.125, 64, n_keys=2, bits_in=10, loss_bound=1.0)
    0.25
    """
    rate = check_not_negative("stability", stability, "it is a mean difference of losses", finite=True)
    bits = check_not_negative("bits_in", bits_in, "it is the logarithm of the number of inputs")
    if not 0 < loss_bound < math.inf:
        raise ValueError(f"loss_bound must be positive and finite, got {loss_bound}; give the largest possible loss.")
    n, k = _at_least_one("n_records", n_records), _at_least_one("n_keys", n_keys)
    return rate + n * k * loss_bound * 2**-bits + _probability("mu", mu)


def colluding_advantage_yeom(n_classes: int, n_keys: int, mu: float = 0.0) -> float:
    """Return the advantage as printed; a little below the exact `colluding_advantage`, by `mu / n_classes^n_keys`.

    Args:
        n_classes: Number of labels ``|Y|``, at least 2; the paper's m is its logarithm to base 2.
        n_keys: Shared keys, at least 1.
        mu: Probability that a fresh record is among the training records, in [0, 1].

    Returns:
        `1 - mu - n_classes^-n_keys`.

    Raises:
        ValueError: If a number is out of range or NaN.

    Source: Yeom et al. 2018, Theorem 4.

    >>> colluding_advantage_yeom(2, 3)
    0.875
    """
    return 1 - _probability("mu", mu) - _by_chance(n_classes, n_keys, None)


def colluding_advantage(n_classes: int, n_keys: int, mu: float = 0.0, *, min_matches: int | None = None) -> float:
    """Return the advantage of the attacker with the keys against the idealised model, which is exact.

    Args:
        n_classes: Number of labels ``|Y|``, at least 2.
        n_keys: Shared keys, at least 1.
        mu: Probability that a fresh record is among the training records, in [0, 1].
        min_matches: Answers that must be a marker's for "member", in 1..n_keys; by default all.

    Returns:
        `1 - fpr` with the `colluding_false_positive_rate`, as every member is recognised; in [0, 1].

    Raises:
        ValueError: If a number is out of range or NaN.

    >>> colluding_advantage(2, 10)
    0.9990234375
    >>> colluding_advantage(2, 1, mu=0.5)
    0.25
    """
    return 1 - colluding_false_positive_rate(n_classes, n_keys, mu, min_matches=min_matches)


def colluding_false_positive_rate(
    n_classes: int, n_keys: int, mu: float = 0.0, *, min_matches: int | None = None
) -> float:
    """Return how often a fresh record is called a member by the attacker with the keys.

    A fresh record that happens to be a training record is recognised as one; the answers about any other agree with
    its markers by chance alone, each with probability `1 / n_classes`, since labels of markers are uniform.

    Args:
        n_classes: Number of labels ``|Y|``, at least 2.
        n_keys: Shared keys, at least 1.
        mu: Probability that a fresh record is among the training records, in [0, 1]; 0 for the rate of records
            that are not.
        min_matches: Answers that must be a marker's for "member", in 1..n_keys; by default all.

    Returns:
        `mu + (1 - mu) n_classes^-n_keys`; with fewer matches, the binomial tail in place of the power. In [0, 1].

    Raises:
        ValueError: If a number is out of range or NaN.

    >>> [round(colluding_false_positive_rate(10, k), 12) for k in (1, 2, 3)]
    [0.1, 0.01, 0.001]
    """
    mu = _probability("mu", mu)
    return mu + (1 - mu) * _by_chance(n_classes, n_keys, min_matches)


def _by_chance(n_classes: int, n_keys: int, min_matches: int | None) -> float:
    """Return the probability that at least so many of `n_keys` uniform labels are the ones asked for."""
    k = _at_least_one("n_keys", n_keys)
    if operator.index(n_classes) < 2:
        raise ValueError(f"n_classes must be at least 2, got {n_classes}; with one label every answer agrees.")
    least = k if min_matches is None else operator.index(min_matches)
    if not 1 <= least <= k:
        raise ValueError(f"min_matches must be in 1..n_keys = {k}, got {least}; it counts answers that agree.")
    p = 1 / n_classes
    return math.fsum(math.comb(k, i) * p**i * (1 - p) ** (k - i) for i in range(least, k + 1))


def _at_least_one(name: str, count: int) -> int:
    if operator.index(count) < 1:
        raise ValueError(f"{name} must be at least 1, got {count}.")
    return operator.index(count)


def _probability(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {value}; it is a probability.")
    return float(value)
