"""Means over games: worked examples of the specification, nothing where nothing leaks, coverage, and slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from leakgauge.statistics import (
    as_correlation,
    auc,
    census_advantage,
    census_mean_difference,
    game_auc,
    game_mean,
    game_tpr,
    joint_correlation,
    joint_quantile,
    outlier_p_value,
)
from leakgauge.training import balanced_subsets, complementary_pairs, random_subsets

SETS = [{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}]
MEMBERS = np.array([[i in one for i in range(4)] for one in SETS])
SAID = np.array([[int(c) for c in row] for row in ("1101", "1010", "1100", "0100", "0001", "1011")])


def test_the_worked_example_of_the_specification():
    found = game_mean(SAID, MEMBERS)
    assert found.value == pytest.approx(0.5)
    assert found.record_variance == pytest.approx(0.1055555556)
    assert found.model_variance == pytest.approx(-0.0123456790)
    assert found.pool_error == pytest.approx(0.3248931448)
    assert special.stdtrit(found.freedom, 0.975) == pytest.approx(2.5705818356)
    assert found.pool().low == pytest.approx(-0.3351644166)
    assert found.pool().high == 1.0


def test_a_constant_answer_is_not_known_without_error():
    members = complementary_pairs(300, 8, np.random.default_rng(0)).members
    found = game_mean(np.ones(members.shape), members)
    assert found.value == 0
    assert found.pool_error == pytest.approx(0.0047062, abs=5e-8)


def test_the_census_of_the_specification():
    found = census_advantage(np.arange(100) < 90, np.arange(200) < 30)
    assert (found.low, found.high) == (pytest.approx(0.6939, abs=5e-5), pytest.approx(0.7929, abs=5e-5))


def twin(values, members, clusters=None):
    """The formulas of the specification, one number at a time."""
    n_games, n = members.shape
    effects, parts = [], np.zeros((n_games, n))
    for i in range(n):
        inside, outside = values[members[:, i], i], values[~members[:, i], i]
        effects.append(inside.mean() - outside.mean())
        for g in range(n_games):
            if members[g, i]:
                parts[g, i] = (values[g, i] - inside.mean()) / (n * len(inside))
            else:
                parts[g, i] = -(values[g, i] - outside.mean()) / (n * len(outside))
    theta = float(np.mean(effects))
    of_records = (sum((a - theta) ** 2 for a in effects) + 2) / (n * (n + 1))

    def of_models(groups):
        squares = 0.0
        for group in sorted(set(groups)):
            together = parts[[g for g in range(n_games) if groups[g] == group]].sum(axis=0)
            squares += together.sum() ** 2 - (together**2).sum()
        return n_games / (n_games - 3) * squares

    groups = list(range(n_games)) if clusters is None else list(clusters)
    return theta, of_records, of_models(groups), n_games * max(0.0, of_models(list(range(n_games))))


@pytest.mark.parametrize("paired", [False, True])
def test_the_sums_are_those_of_the_slow_twin(paired):
    rng = np.random.default_rng(3)
    members = complementary_pairs(11, 5, rng).members if paired else random_subsets(11, 6, 14, rng).members
    clusters = np.arange(len(members)) // 2 if paired else None
    values = rng.random(members.shape) + rng.random((len(members), 1))
    found = game_mean(values, members, clusters)
    theta, of_records, of_models, of_one = twin(values, members, clusters)
    assert found.value == pytest.approx(theta)
    assert found.record_variance == pytest.approx(of_records)
    assert found.model_variance == pytest.approx(of_models)
    assert found.one_model_variance == pytest.approx(of_one)
    assert found.freedom == (len(members) // 2 if paired else len(members) - 1)
    wider = found.population().half_width / found.pool().half_width
    share = members.mean()
    assert wider == pytest.approx(np.sqrt(1 + of_one * share / (1 - share) / found.pool_error**2), rel=1e-6)


def test_every_record_is_twice_in_and_twice_out():
    members = random_subsets(6, 3, 12, np.random.default_rng(0)).members
    members[:, 2] = False
    members[0, 2] = True
    with pytest.raises(ValueError, match="at least 2"):
        game_mean(np.ones(members.shape), members)


def games_of(rng, n, n_games, effect, sd_model, *, pairs=False):
    """Decisions of which each record's depend on its membership by ``effect``, and all of a game on its model."""
    half = n // 2
    members = (complementary_pairs(n, n_games // 2, rng) if pairs else random_subsets(n, half, n_games, rng)).members
    bias = rng.normal(0, 0.7, n)
    model = rng.normal(0, sd_model, (n_games, 1)) * np.where(members, 1, -1)  # some models give away more
    chance = special.ndtr(bias + model + effect[None, :] * members)
    truth = special.ndtr((bias + effect) / np.hypot(1, sd_model)) - special.ndtr(bias / np.hypot(1, sd_model))
    return (rng.random(members.shape) < chance), members, float(truth.mean())


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize(("mean_effect", "sd_model"), [(0.0, 0.0), (0.4, 0.0), (0.4, 0.3)])
def test_the_interval_for_these_records_covers(mean_effect, sd_model, pairs):
    """400 tables each; an interval of 95 % that covers less than 0.92 would be off by more than two standard errors."""
    rng = np.random.default_rng(17)
    hits = 0
    for _ in range(400):
        effect = rng.normal(mean_effect, 0.3 * (mean_effect > 0), 60)
        said, members, truth = games_of(rng, 60, 24, effect, sd_model, pairs=pairs)
        clusters = np.arange(24) // 2 if pairs else None
        interval = game_mean(said, members, clusters).pool()
        hits += interval.low <= truth <= interval.high
    assert hits / 400 >= 0.92


def test_a_difference_of_every_record_is_found():
    rng = np.random.default_rng(5)
    said, members, truth = games_of(rng, 200, 16, np.full(200, 0.6), 0.1)
    found = game_mean(said, members).pool()
    assert found.low > 0.1
    assert found.value == pytest.approx(truth, abs=0.05)


def scores_of(rng, n, n_games, shift, *, pairs=False):
    """Standard normal scores of non-members, which records and games share in part; those of members are shifted."""
    subsets = complementary_pairs(n, n_games // 2, rng) if pairs else balanced_subsets(n, n // 2, n_games, rng)
    members = subsets.members
    noise = rng.normal(0, np.sqrt(0.76), members.shape)
    return rng.normal(0, np.sqrt(0.2), n) + rng.normal(0, 0.2, (n_games, 1)) + noise + shift * members, members


@pytest.mark.parametrize(
    ("pairs", "shift"),
    [
        pytest.param(pairs, shift, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, pairs in enumerate([False, True])
        for j, shift in enumerate([0.0, 1.0])
    ],
)
def test_area_and_rate_of_shifted_normal_scores_are_inside_their_intervals(shift, pairs):
    """Nothing leaks, and a known answer: the area is P(N(0, 1) < shift / sqrt 2), the rate P(N(shift, 1) > z).

    200 tables each. Of an interval that covers 0.95 fewer than 0.90 of them cover with probability 0.001; one that
    covers 0.85 gets there with probability 0.03. Means over tables are within 0.004 of the truth.
    """
    rng, rate = np.random.default_rng(19), 0.02
    truth = special.ndtr(shift / np.sqrt(2)), special.ndtr(shift + special.ndtri(rate))
    values, hits = np.empty((200, 2)), np.empty((200, 2, 2))
    for r in range(200):
        scores, members = scores_of(rng, 300, 32, shift, pairs=pairs)
        clusters = np.arange(32) // 2 if pairs else None
        for i, found in enumerate((game_auc(scores, members, clusters), game_tpr(scores, members, rate, clusters).tpr)):
            values[r, i] = found.value
            hits[r, i] = [one.low <= truth[i] <= one.high for one in (found.pool(), found.population())]
    assert values.mean(axis=0) == pytest.approx(truth, abs=0.004)
    assert hits.mean(axis=0).min() >= 0.90


def test_intervals_of_areas_and_rates_end_at_0_and_1():
    """Scores that separate nearly all members, and the same the wrong way round."""
    rng = np.random.default_rng(21)
    scores, members = scores_of(rng, 12, 6, 2.0)
    for high, one in ((True, scores), (False, -scores)):
        for found in (game_auc(one, members), game_tpr(one, members, 0.3).tpr):
            interval = found.population()
            assert 0.0 <= interval.low <= found.value <= interval.high <= 1.0
            assert abs(2 * found.value - 1) > 0.7, "near one end"
            assert (interval.high == 1.0) if high else (interval.low == 0.0)


def test_area_and_rate_are_those_of_the_slow_twin():
    rng = np.random.default_rng(20)
    scores, members = scores_of(rng, 12, 10, 0.7)
    scores = np.round(scores)  # with ties
    inside = [(g, i) for g in range(10) for i in range(12) if members[g, i]]
    outside = [(g, i) for g in range(10) for i in range(12) if not members[g, i]]

    def below(score, others):
        return sum((scores[other] < score) + 0.5 * (scores[other] == score) for other in others) / len(others)

    def called(k):
        """By going down the list of non-members, the tied in equal parts."""
        said, left = np.zeros(scores.shape), k
        for level in sorted({float(score) for score in scores.ravel()}, reverse=True):
            n_tied = sum(scores[one] == level for one in outside)
            said[scores == level] = 1.0 if n_tied <= left and n_tied < left + 1 else left / n_tied
            if n_tied > left:
                return said
            left -= n_tied
        return said

    area, rate = game_auc(scores, members), game_tpr(scores, members, 0.1)
    values = np.empty(scores.shape)
    for g in range(10):
        for i in range(12):
            values[g, i] = below(scores[g, i], outside if members[g, i] else inside)
    theta, of_records, of_models, of_one = twin(values, members)
    assert area.value == pytest.approx((1 + theta) / 2)
    assert area.value == pytest.approx(np.mean([below(scores[one], outside) for one in inside]))
    assert area.record_variance == pytest.approx(of_records - 2 / (12 * 13))
    assert (area.model_variance, area.one_model_variance) == (pytest.approx(of_models), pytest.approx(of_one))

    k, few, many = (int(share * len(outside)) for share in (0.1, 0.025, 0.4))
    tpr = {j: np.mean([called(j)[one] for one in inside]) for j in (k, few, many)}
    slope = (tpr[many] - tpr[few]) / ((many - few) / len(outside))
    theta, of_records, of_models, _ = twin(np.where(members, 1.0, slope) * called(k), members)
    assert rate.tpr.value == pytest.approx(theta + slope * k / len(outside))
    assert rate.tpr.value == pytest.approx(tpr[k])
    assert rate.tpr.record_variance == pytest.approx(of_records - 2 / (12 * 13))
    assert rate.tpr.model_variance == pytest.approx(of_models)


def test_equal_separated_and_infinite_scores():
    members = complementary_pairs(300, 16, np.random.default_rng(0)).members
    constant = np.zeros(members.shape)
    assert game_auc(constant, members).value == 0.5
    assert game_tpr(constant, members, 0.01).tpr.value == pytest.approx(0.01)  # the attacker tosses a coin
    apart = np.where(members, np.inf, -np.inf)
    assert game_auc(apart, members).value == 1.0
    assert game_tpr(apart, members, 0.01).tpr.value == 1.0
    assert game_auc(-apart, members).value == 0.0
    assert game_tpr(-apart, members, 0.01).tpr.value == 0.0
    with pytest.raises(ValueError, match="NaN"):
        game_tpr(np.where(members, np.nan, 0.0), members, 0.01)
    scores, members = scores_of(np.random.default_rng(1), 300, 32, 1.0)
    assert game_auc(scores, members).value == pytest.approx(auc(scores[members], scores[~members]).value)


def test_a_rate_is_resolved_by_enough_false_positives_of_enough_records():
    rng = np.random.default_rng(2)
    scores, members = scores_of(rng, 650, 32, 0.0)
    enough, few = game_tpr(scores, members, 0.01), game_tpr(scores, members, 0.001)
    assert (enough.n_false, enough.is_resolved) == (104, True)
    assert (few.n_false, few.is_resolved) == (10, False)
    scores[:, :9] += 100.0  # always the same nine records
    assert game_tpr(scores, members, 0.01).n_false_records == 9
    assert not game_tpr(scores, members, 0.01).is_resolved


@pytest.mark.parametrize(("correlation", "quantile"), [(0.0, 2.72), (0.3, 2.70), (0.6, 2.61), (0.9, 2.35)])
def test_the_joint_quantiles_of_the_specification(correlation, quantile):
    matrix = np.full((8, 8), correlation) + (1 - correlation) * np.eye(8)
    assert joint_quantile(matrix, 0.025) == pytest.approx(quantile, abs=0.015)


def test_a_joint_quantile_lies_between_one_test_and_bonferroni():
    assert joint_quantile(np.ones((5, 5)), 0.0125) == pytest.approx(stats.norm.isf(0.0125), abs=0.02)
    assert joint_quantile(np.eye(1), 0.0125) == stats.norm.isf(0.0125)
    assert joint_quantile(np.eye(5), 0.0125) <= stats.norm.isf(0.0125 / 5)


def test_the_covariance_of_means_is_that_of_many_tables():
    """Two attacks that agree on nine decisions of ten: correlation known from 1,500 tables, found on the average."""
    rng = np.random.default_rng(8)
    means, found = [], []
    for _ in range(1500):
        one, members, _ = games_of(rng, 30, 24, np.full(30, 0.3), 0.3)
        other = np.where(rng.random(one.shape) < 0.1, rng.random(one.shape) < 0.5, one)
        means.append([game_mean(values, members).value for values in (one, other)])
        found.append(joint_correlation([one, other], members)[0, 1])
    assert np.mean(found) == pytest.approx(np.corrcoef(np.array(means).T)[0, 1], abs=0.06)


def test_what_does_not_vary_is_independent():
    found = as_correlation(np.array([[4.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 0.0]]))
    assert found == pytest.approx(np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    rounded = as_correlation(np.array([[1.0, 9e-15], [9e-15, 1e-28]]))  # of what varies by rounding
    assert rounded == pytest.approx(np.eye(2))
    negative = as_correlation(np.array([[1.0, 2.0], [2.0, 1.0]]))  # no covariance: one eigenvalue is -1
    assert negative == pytest.approx(np.ones((2, 2)))


def exact_misses(n, rate, confidence, exact):
    """How often each end of the interval misses, over all outcomes for n records outside."""
    tpr = np.arange(100) < 50
    low = high = 0.0
    for called in range(n + 1):
        chance = stats.binom.pmf(called, n, rate)
        found = census_advantage(tpr, np.arange(n) < called, confidence=confidence, exact=exact)
        low += chance * (found.low > 0.5 - rate)
        high += chance * (found.high < 0.5 - rate)
    return low, high


@pytest.mark.parametrize(
    "n", [20, 50, pytest.param(200, marks=pytest.mark.slow), pytest.param(1000, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("confidence", "exact", "times"), [(0.95, False, 1.8), (0.95, True, 1.0), (0.994, True, 1.0)])
def test_no_end_of_the_census_misses_more_than_it_says(n, confidence, exact, times):
    """By enumeration, at rates of 0.5 % to 99.5 %: Wilson's, by which models pass, and the one by which they fail."""
    for rate in np.linspace(0.005, 0.995, 67):
        assert max(exact_misses(n, rate, confidence, exact)) <= times * (1 - confidence) / 2


def test_a_randomised_attack_has_the_same_census():
    rng = np.random.default_rng(2)
    inside, outside = rng.random(50), rng.random(400)
    found = census_mean_difference(inside, outside)
    assert found.value == pytest.approx(inside.mean() - outside.mean())
    assert found.half_width == pytest.approx(1.97 * outside.std() / 20, rel=0.05)
    certain = census_mean_difference(np.ones(40), np.zeros(40))
    assert certain.value == 1.0
    assert certain.low < 1.0
    assert census_mean_difference(np.full(40, 1 + 2.5e-16), np.zeros(40) - 1e-16) == certain


def test_the_outlier_test_is_exact_by_rank():
    """Nothing differs: of 2,000 tables at most one in 20 is called different, to within three standard errors."""
    rng = np.random.default_rng(4)
    found = np.array([outlier_p_value(rng.normal(size=(3, 40)) * [[1.0], [5.0], [0.1]]) for _ in range(2000)])
    assert np.mean(found <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)
    assert np.mean(found <= 0.5) == pytest.approx(0.5, abs=0.04)
    shifted = np.append(rng.normal(size=(3, 39)), [[0.0], [6.0], [0.0]], axis=1)
    assert outlier_p_value(shifted) == 1 / 40


def test_equal_models_are_no_outliers():
    assert outlier_p_value(np.zeros((2, 30))) == 1.0
