"""Is it the record or the seed? A second look at the most influential records of a randomised learner.

For a randomised learner one pair of models says little: the largest of many log ratios is large even if no record
matters. The records that look worst are therefore measured again with fresh seeds. What is estimated is PDTP with
the learner's own coins counted in: ``|ln E p(y | x_t, A(S)) - ln E p(y | x_t, A(S without t))|``, the expectation being
over seeds, at one label fixed beforehand. Noise cancels in it, and since neither seeds nor label were used to choose
the records, its interval covers at the stated rate. For a deterministic learner it is the log ratio itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.escaping import shapes
from leakgauge.influence.leaving_out import largest_first, train_again
from leakgauge.models import Release, as_is
from leakgauge.statistics import Estimate, bonferroni_confidence
from leakgauge.streams import generator_of
from leakgauge.training import HERE, Execution

if TYPE_CHECKING:
    from leakgauge.influence.pdtp import Pdtp
    from leakgauge.records import Records
    from leakgauge.training import Learner


N_PERMUTATIONS = 10_000
"""Ways to divide two samples in two that a permutation test looks at, unless there are fewer."""

N_FACTORS = 64
"""Factors between two samples, evenly spaced in nats, at which a permutation test is made to find a lower end."""


@dataclass(frozen=True)
class Confirmation:
    """Log ratios of a few records, each with an interval; all intervals hold together at ``confidence``.

    Args:
        which: row of each record, int ``[c]``.
        estimates: for each, the absolute log ratio of its mean probabilities with and without it, in nats.
        confidence: of all intervals together.
        n_models: models with and models without, for each record.
    """

    which: Indices
    estimates: tuple[Estimate, ...]
    confidence: float
    n_models: int

    __repr__ = shapes

    @property
    def largest(self) -> Estimate:
        """The estimate whose lower end is highest."""
        return max(self.estimates, key=lambda estimate: (estimate.low, estimate.value))


def confirm(
    learner: Learner,
    records: Records,
    found: Pdtp,
    *,
    seed: int,
    n_candidates: int = 8,
    n_models: int = 16,
    released: Release = as_is,
    confidence: float = 0.95,
    execution: Execution = HERE,
) -> Confirmation:
    """Measure the records with the largest binned PDTP again with fresh seeds.

    Args:
        learner: the randomised algorithm.
        records: the training set S.
        found: PDTP of its records, the first look.
        seed: of the first look; the fresh seeds are derived from it and differ from all used there.
        n_candidates: how many records to measure again.
        n_models: models with, and for each candidate as many without; at least 4. With fewer than 6 no lower end is
            above 0 at the usual confidence.
        released: what becomes of the answers before anyone sees them, as in the first look.
        confidence: of all intervals together.
        execution: where and how models are trained.

    Returns:
        An estimate of each candidate's log ratio at the label where the first look found most.
    """
    places = largest_first(found.binned)[:n_candidates]
    rows, labels = found.asked[places], found.labels[places]
    full, without = train_again(learner, records, rows, n_models, seed=seed, execution=execution)
    p_with = np.exp(released(full.log_probabilities))
    p_without = np.exp(released(without.log_probabilities[:, 0])).reshape(len(rows), n_models, -1)
    single = bonferroni_confidence(confidence, max(1, len(rows)))
    estimates = tuple(
        log_ratio_of_means(p_with[:, c, label], p_without[c, :, label], single) for c, label in enumerate(labels)
    )
    return Confirmation(found.which[places], estimates, confidence, n_models)


def log_ratio_of_means(a: Floats, b: Floats, confidence: float) -> Estimate:
    """``|ln mean(a) - ln mean(b)|`` of two samples of probabilities, with an interval.

    The interval is Student's on the logarithms of the means (delta method). A sample that is 0 throughout says only
    that its mean is below ``1 - alpha^(1/n)``, for values in [0, 1]; the estimate is then infinite and its lower end
    uses that bound. NaN (a model that could not be trained) is left out.

    Student's interval is too short where a few seeds give a far larger probability than the others, and none of one
    sample is such a seed. The lower end is therefore no higher than that of a permutation test: it exceeds a log ratio
    with probability below ``alpha / 2``, whatever the distribution, if the two samples have one distribution but for a
    factor of at most that log ratio.

    >>> same = log_ratio_of_means(np.array([0.2, 0.4]), np.array([0.4, 0.2]), 0.95)
    >>> (same.value, same.low)
    (0.0, 0.0)
    """
    a, b = a[~np.isnan(a)], b[~np.isnan(b)]
    method, n = "log ratio of mean probabilities over seeds, t interval and permutation test", len(a) + len(b)
    if len(a) < 2 or len(b) < 2:
        return Estimate(0.0, 0.0, np.inf, confidence, "fewer than two models on one side", n)
    tail = (1 - confidence) / 2
    (low_a, mid_a, high_a), (low_b, mid_b, high_b) = _log_mean(a, tail), _log_mean(b, tail)
    if mid_a == mid_b == -np.inf:
        return Estimate(0.0, 0.0, np.inf, confidence, method, n)
    larger, smaller = (a, b) if mid_a >= mid_b else (b, a)
    if not np.isfinite(mid_a) or not np.isfinite(mid_b):
        smallest = max(0.0, low_a - high_b, low_b - high_a)
        return Estimate(np.inf, _least_by_permutation(larger, smaller, smallest, tail), np.inf, confidence, method, n)
    # Half widths add in squares, as the two samples are independent.
    half = float(np.hypot(high_a - mid_a, high_b - mid_b))
    low, high = mid_a - mid_b - half, mid_a - mid_b + half
    smallest = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
    smallest = _least_by_permutation(larger, smaller, smallest, tail)
    return Estimate(abs(mid_a - mid_b), smallest, max(abs(low), abs(high)), confidence, method, n)


def _least_by_permutation(larger: Floats, smaller: Floats, least: float, tail: float) -> float:
    """The lower end of a log ratio of means by a permutation test, if it is below another lower end.

    Where the larger sample over ``e^r`` has the distribution of the smaller one, each division of all values in two is
    equally likely, and a difference of means as large as the one found has a p-value of at most its share among them.

    Args:
        larger: the sample of the larger mean.
        smaller: the other.
        least: the other lower end, in nats; at least 0.
        tail: the level of the test.

    Returns:
        The largest of some log ratios from 0 to ``least`` up to which the test rejects each; 0 where it rejects none.
    """
    if least == 0.0:
        return 0.0
    log_ratios = np.linspace(0.0, least, N_FACTORS)
    values = np.concatenate([larger[:, None] * np.exp(-log_ratios), np.tile(smaller[:, None], N_FACTORS)])
    sums = _divisions(len(larger), len(smaller)) @ values
    # Of all values the sum is the same, so that the sum of one side tells the difference of means. Ties count.
    rounding = 1e-12 * values.sum(axis=0)
    rejected = (sums >= sums[0] - rounding).mean(axis=0) <= tail
    n_rejected = len(rejected) if rejected.all() else int(np.argmin(rejected))
    return float(log_ratios[max(n_rejected - 1, 0)])


@cache
def _divisions(n_first: int, n_second: int) -> Floats:
    """Which values are on the first side, in some or all divisions of all values in two ``[d, n]``.

    The first division is the one that was found, which keeps the level of a test exact where others are drawn.
    """
    n = n_first + n_second
    if comb(n, n_first) <= N_PERMUTATIONS:
        chosen = np.array(list(combinations(range(n), n_first)), dtype=np.int64)
    else:
        order = generator_of(n, n_first).random((N_PERMUTATIONS - 1, n)).argsort(axis=1)[:, :n_first]
        chosen = np.concatenate([np.arange(n_first)[None], order])
    divisions = np.zeros((len(chosen), n))
    np.put_along_axis(divisions, chosen, 1.0, axis=1)
    return divisions


def _log_mean(sample: Floats, tail: float) -> tuple[float, float, float]:
    """Lower end, value and upper end of the logarithm of a mean; each end misses with probability ``tail``."""
    from scipy import stats

    mean = float(sample.mean())
    if mean == 0.0:
        return -np.inf, -np.inf, float(np.log(1 - tail ** (1 / len(sample))))
    error = float(sample.std(ddof=1)) / np.sqrt(len(sample)) / mean
    half = float(stats.t.ppf(1 - tail, len(sample) - 1)) * error
    return float(np.log(mean)) - half, float(np.log(mean)), float(np.log(mean)) + half
