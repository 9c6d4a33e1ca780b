"""Membership games in which every model of a table plays the target: one number over models and records, and how sure.

Each record is in some of the training sets and out of the others, so that the difference a record makes is seen on
that record itself: what differs between records does not count, and the intervals shrink with the number of models.
Three things may be asked (:class:`GameMean`): what the learner gives away about these records when it is trained on
random shares of them, what it gives away on data like these, and what one very model does, which a holdout alone
answers (:func:`leakgauge.statistics.census_advantage`).

Sources: the games are those of Long et al. 2017, section 2, and Yeom et al. 2018, Experiment 1; standard errors that
are clustered by record and by model at once are those of Cameron, Gelbach and Miller, "Robust inference with multiway
clustering", Journal of Business and Economic Statistics 29 (2011); the quantile for several means at once is the max-T
of Westfall and Young, "Resampling-based multiple testing" (1993). What the variance of the population adds is derived.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from leakgauge.statistics._checks import check_fraction, check_values
from leakgauge.statistics.estimate import Estimate
from leakgauge.statistics.roc import placements

FEWEST_GAMES = 4
"""Models from which a variance between models is estimated."""

FEWEST_FALSE_POSITIVES = 100
"""Scores of non-members above a threshold from which a true-positive rate there is quoted: a rule of thumb."""

FEWEST_FALSE_RECORDS = 10
"""Records that these belong to, at least: more games of the same records are no other records."""

_BLOCK = 250_000
"""Numbers in a temporary array, about: what a processor's cache holds."""

_DRAWS = 100_000
"""Normal draws that a joint quantile is read from."""

_SEED = 20260
"""Of these draws: the same correlations give the same quantile."""


@dataclass(frozen=True)
class GameMean:
    """The mean of ``value in a game with the record in - value in one with it out`` over records, and its variances.

    Args:
        value: the mean; for decisions (1 is "member") the membership advantage.
        record_variance: of the mean, since other records would differ.
        model_variance: of the mean, since other training sets and seeds would differ; an unbiased estimate, which may
            be below 0.
        one_model_variance: of the same mean over a single model.
        share: of the records that are in a training set.
        n_games: models.
        n_records: records.
        freedom: degrees of freedom of the model variance.
        bounds: between which the value lies.
    """

    value: float
    record_variance: float
    model_variance: float
    one_model_variance: float
    share: float
    n_games: int
    n_records: int
    freedom: int
    bounds: tuple[float, float] = (-1.0, 1.0)

    @property
    def pool_error(self) -> float:
        """Standard error as an estimate for this learner on random shares of these records."""
        return math.sqrt(self.record_variance + max(0.0, self.model_variance))

    @property
    def population_error(self) -> float:
        """Standard error as an estimate for this learner on training sets of data like these.

        The mean over shares of one pool moves from pool to pool by ``q / (1 - q)`` times the variance of one model
        within a pool, which no number of models lessens.
        """
        between = self.one_model_variance * self.share / (1 - self.share)
        return math.sqrt(self.pool_error**2 + between)

    def pool(self, *, confidence: float = 0.95) -> Estimate:
        """The mean for this learner on random shares of these records, within the bounds.

        On the conservative side: at 95 % it covered in 96 to 100 % of 118 repetitions, over the settings of
        ``docs/benchmarks/coverage.md``. Rare outcomes of training that no game showed are not covered: where one
        training in twenty makes a model that leaks much less, or much more, the games may hold none of these.
        """
        return self._interval(self.pool_error, confidence, "games, two-way clustered")

    def population(self, *, confidence: float = 0.95) -> Estimate:
        """The mean for this learner on data like these, within the bounds; there it covered in 92 to 100 %."""
        return self._interval(self.population_error, confidence, "games, any training set")

    def _interval(self, error: float, confidence: float, method: str) -> Estimate:
        half = float(special.stdtrit(self.freedom, (1 + check_fraction("confidence", confidence)) / 2)) * error
        low, high = max(self.bounds[0], self.value - half), min(self.bounds[1], self.value + half)
        return Estimate(self.value, low, high, confidence, method, self.n_records)


def game_mean(
    values: NDArray[np.generic],
    members: NDArray[np.bool_],
    clusters: NDArray[np.integer] | None = None,
    *,
    decisions: bool = True,
) -> GameMean:
    """The mean difference that being in the training set makes to a value, over the games of a table.

    ``a_i`` is the mean over the games with record i in less that over those with it out, and the result the mean of
    all ``a_i``.

    Args:
        values: of each record in each game ``[games, n]``: decisions (0 or 1, or their probability), or others.
        members: whether the record was in, bool ``[games, n]``; each record at least twice in and twice out.
        clusters: models whose training sets were drawn together, such as a set and its complement, share a number
            ``[games]``; by default each stands alone.
        decisions: whether values are in [0, 1]; two records at -1 and 1 are then added to those that the variance is
            taken of, or a constant answer would have an interval of width 0.

    Raises:
        ValueError: too few games, or a record that is not twice in and twice out.

    >>> sets = [{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}]
    >>> members = np.array([[i in one for i in range(4)] for one in sets])
    >>> said = np.array([[int(c) for c in row] for row in "1101 1010 1100 0100 0001 1011".split()])
    >>> found = game_mean(said, members)
    >>> round(found.value, 6), round(found.pool_error, 6)
    (0.5, 0.324893)
    """
    n_games, n = members.shape
    groups = np.arange(n_games) if clusters is None else np.asarray(clusters)
    effects, together, apart = _differences([values], members, groups)
    value = float(effects.mean())
    spread = float(((effects - value) ** 2).sum())
    record_variance = (spread + 2 * decisions) / (n * (n + 1))
    alone = len(np.unique(groups)) == n_games
    return GameMean(
        value,
        record_variance,
        float(together[0, 0]),
        n_games * max(0.0, float(apart[0, 0])),
        float(members.mean()),
        n_games,
        n,
        n_games - 1 if alone else len(np.unique(groups)),
    )


def game_auc(
    scores: NDArray[np.float64], members: NDArray[np.bool_], clusters: NDArray[np.integer] | None = None
) -> GameMean:
    """The area under the ROC curve over the games of a table: one threshold at a time for all games.

    The value of a member is the share of all scores of non-members below its own, and that of a non-member the share
    of all scores of members below, ties counting one half. Their mean difference is twice the area less 1, and has the
    standard error of the area (Hoeffding's projection, as in DeLong's variance). No records are added to those that
    the variance is taken of: the interval of scores that separate all members has width 0.

    Args:
        scores: of each record in each game ``[games, n]``; higher means member. NaN is refused.
        members: as for `game_mean`.
        clusters: as for `game_mean`.

    Raises:
        ValueError: too few games, or a record that is not twice in and twice out.
    """
    inside, outside = check_values("scores", scores[members]), check_values("scores", scores[~members])
    values = np.empty(scores.shape)
    values[members], values[~members] = placements(inside, outside), placements(outside, inside)
    found = game_mean(values, members, clusters, decisions=False)
    return replace(found, value=min(1.0, max(0.0, (1 + found.value) / 2)), bounds=(0.0, 1.0))


@dataclass(frozen=True)
class GameTpr:
    """The true-positive rate at one threshold for all games of a table.

    Args:
        fpr: the false-positive rate.
        tpr: the true-positive rate.
        n_false: scores of non-members that are called members, over all games.
        n_false_records: records that they may belong to.
    """

    fpr: float
    tpr: GameMean
    n_false: int
    n_false_records: int

    @property
    def is_resolved(self) -> bool:
        """Whether there are enough false positives, of enough records, to quote the rate (a rule of thumb)."""
        return self.n_false >= FEWEST_FALSE_POSITIVES and self.n_false_records >= FEWEST_FALSE_RECORDS


def game_tpr(
    scores: NDArray[np.float64],
    members: NDArray[np.bool_],
    fpr: float,
    clusters: NDArray[np.integer] | None = None,
) -> GameTpr:
    """The true-positive rate at a low false-positive rate over the games of a table.

    The threshold lies just below the ``floor(fpr N)`` highest of all N scores of non-members; of scores tied there the
    attacker calls as many as are missing, drawn at random. The value of a member is whether it is called, and that of
    a non-member the same times the slope of the ROC curve, read off between a quarter of the rate and four times the
    rate: so much the true-positive rate moves where the threshold does.

    Where the curve is steep that slope is too small, and so are the intervals: of normal scores that are shifted by one
    standard deviation, 64 games of 400 records, the pool interval of 95 % covered the rate at 1 % in 0.89 to 0.92 of
    200 repetitions (its upper end was too low in 0.035), and of scores that are not shifted in 0.96 or more.

    Args:
        scores: of each record in each game ``[games, n]``; higher means member. NaN is refused.
        members: as for `game_mean`.
        fpr: in (0, 1).
        clusters: as for `game_mean`.

    Raises:
        ValueError: too few games, or a record that is not twice in and twice out.
    """
    check_fraction("fpr", fpr)
    check_values("scores", scores[members])
    outside = check_values("scores", scores[~members])
    n = len(outside)
    least, k, most = (min(n - 1, math.floor(rate * n + 1e-9)) for rate in (fpr / 4, fpr, 4 * fpr))
    falling = -np.partition(-outside, np.unique([least, k, most]))

    def called(n_false: int) -> NDArray[np.float64]:
        """The probability of being called where so many non-members are ``[games, n]``."""
        threshold = falling[n_false]
        above, tied = np.count_nonzero(outside > threshold), np.count_nonzero(outside == threshold)
        return np.asarray(np.where(scores == threshold, (n_false - above) / tied, scores > threshold))

    rise = float(called(most)[members].mean() - called(least)[members].mean())
    slope = rise * n / (most - least) if most > least else 0.0
    said = called(k)
    found = game_mean(np.where(members, said, slope * said), members, clusters, decisions=False)
    tpr = replace(found, value=min(1.0, max(0.0, found.value + slope * k / n)), bounds=(0.0, 1.0))
    return GameTpr(fpr, tpr, k, int(((said > 0) & ~members).any(axis=0).sum()))


def joint_correlation(
    values: Sequence[NDArray[np.generic]],
    members: NDArray[np.bool_],
    clusters: NDArray[np.integer] | None = None,
) -> NDArray[np.float64]:
    """How the means of several values over the same games hang together: their correlations ``[m, m]``.

    Args:
        values: of each attack, ``[games, n]`` each.
        members: as for `game_mean`.
        clusters: as for `game_mean`.
    """
    groups = np.arange(len(members)) if clusters is None else np.asarray(clusters)
    effects, together, _ = _differences(values, members, groups)
    covariance = np.atleast_2d(np.cov(effects)) / members.shape[1] + together
    return as_correlation(covariance)


def as_correlation(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The correlations of an estimated covariance ``[m, m]``, which may not be one: negative eigenvalues become 0.

    What does not vary is independent of everything else.
    """
    roots, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    positive = (vectors * np.maximum(roots, 0.0)) @ vectors.T
    deviations = np.sqrt(np.maximum(np.diag(positive), 0.0))
    still = deviations <= 1e-12 * max(1e-300, float(deviations.max(initial=0.0)))
    scale = np.where(still, 1.0, deviations)
    correlation = positive / np.outer(scale, scale)
    correlation[still] = correlation[:, still] = 0.0
    np.fill_diagonal(correlation, 1.0)
    clipped: NDArray[np.float64] = np.clip(correlation, -1.0, 1.0)
    return clipped


def joint_quantile(correlation: NDArray[np.float64], level: float) -> float:
    """What the largest of several standard normal variables exceeds with a given probability: max-T.

    Args:
        correlation: of the variables ``[m, m]``.
        level: the probability, in (0, 0.5).

    >>> round(joint_quantile(np.eye(1), 0.025), 2), round(joint_quantile(np.eye(8), 0.025), 1)
    (1.96, 2.7)
    """
    check_fraction("level", level)
    m = len(correlation)
    alone = -float(special.ndtri(level))
    if m == 1:
        return alone
    roots, vectors = np.linalg.eigh(correlation)
    half = vectors * np.sqrt(np.maximum(roots, 0.0))
    draws = _draws(m) @ half.T
    largest = float(np.quantile(draws.max(axis=1), 1 - level))
    return min(max(alone, largest), -float(special.ndtri(level / m)))


@lru_cache(maxsize=2)
def _draws(m: int) -> NDArray[np.float64]:
    return np.random.default_rng(_SEED).standard_normal((_DRAWS, m))


def outlier_p_value(shifts: NDArray[np.float64]) -> float:
    """How rarely one of several exchangeable models lies as far from the others as the last one does.

    Exact by rank: if the last model is like the others, the p-value is at most p with probability at most p. Of several
    measures the largest deviation from the median counts, in units of the median deviation.

    Args:
        shifts: measures of all models ``[m, G + 1]``, found in the same way for each; last the model asked about.

    >>> outlier_p_value(np.append(np.arange(19.0), 99.0)[None])
    0.05
    """
    far = np.abs(shifts - np.median(shifts, axis=1, keepdims=True))
    usual = np.median(far, axis=1, keepdims=True)
    largest = (far / np.where(usual > 0, usual, 1.0)).max(axis=0)
    return float(np.mean(largest >= largest[-1] * (1 - 1e-9)))


def _differences(
    values: Sequence[NDArray[np.generic]], members: NDArray[np.bool_], groups: NDArray[np.integer]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """What being in does to each record's mean, and how the means over records vary since models would differ.

    Args:
        values: of m measures, ``[games, n]`` each.
        members: whether the record was in, bool ``[games, n]``.
        groups: what the models share that were drawn together, ``[games]``.

    Returns:
        The difference of each record ``[m, n]``; the covariance of the means over records that comes of the models
        ``[m, m]``, what single records add to it taken off; and the same as if no models were drawn together.
    """
    n_games, n = members.shape
    n_in = members.sum(axis=0)
    if n_games < FEWEST_GAMES or n == 0 or min(n_in.min(), n_games - n_in.max()) < 2:
        raise ValueError(
            f"every record must be in at least 2 of at least {FEWEST_GAMES} training sets and out of at least 2; "
            "play more games."
        )
    m, (_, place) = len(values), np.unique(groups, return_inverse=True)
    of_group = (np.arange(place.max() + 1)[:, None] == place).astype(np.float64)
    ways = (of_group,) if len(of_group) == n_games else (of_group, np.eye(n_games))
    effects, sums = np.empty((m, n)), np.zeros((m, n_games))
    products = np.zeros((len(ways), m, m))
    size = max(1, _BLOCK // (m * n_games))
    for records in (slice(start, start + size) for start in range(0, n, size)):
        inside, counts = members[:, records], n_in[records]
        numbers = np.stack([np.asarray(one[:, records], dtype=np.float64) for one in values])
        mean_in = np.where(inside, numbers, 0.0).sum(axis=1) / counts
        mean_out = np.where(inside, 0.0, numbers).sum(axis=1) / (n_games - counts)
        effects[:, records] = mean_in - mean_out
        # What each game adds to the error of the mean ``[m, games, records]``.
        numbers -= np.where(inside, mean_in[:, None], mean_out[:, None])
        numbers /= np.where(inside, counts, counts - n_games) * n
        sums += numbers.sum(axis=2)
        for way, total in zip(ways, products, strict=True):
            flat = (numbers if len(way) == n_games else way @ numbers).reshape(m, -1)
            total += flat @ flat.T
    covariances = [
        n_games / (n_games - 3) * ((sums @ way.T) @ (sums @ way.T).T - total)
        for way, total in zip(ways, products, strict=True)
    ]
    return effects, covariances[0], covariances[-1]
