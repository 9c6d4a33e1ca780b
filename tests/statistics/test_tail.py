"""The odds of membership in the tails of a score: no leak, nothing found; a few members given away surely are found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from leakgauge.statistics import (
    games_tail,
    games_tail_bound,
    smallest_sure_games_tail,
    smallest_sure_tail,
    tail_odds,
)
from leakgauge.statistics.tail import _lower_odds

LEVEL = 0.0125


@pytest.mark.parametrize(
    ("n_members", "k", "share"),
    [(32, 32, 0.772662), (31, 32, 0.711540), (64, 64, 0.879012), (60, 64, 0.765423)],
)
def test_the_bound_is_that_of_the_worked_example(n_members: int, k: int, share: float) -> None:
    """Specification of the verdict, section 10: one-sided Clopper-Pearson bounds at level 0.0125/48."""
    odds = _lower_odds(n_members, k, LEVEL / 48)
    assert odds / (1 + odds) == pytest.approx(share, abs=5e-7)
    # Slow twin: the share at which so many or more have exactly that probability.
    assert stats.binom.sf(n_members - 1, k, share) == pytest.approx(LEVEL / 48, rel=1e-4)


@pytest.mark.parametrize("n", [64, 300, 1000])
def test_no_leak_exceeds_even_odds_as_rarely_as_stated(n: int) -> None:
    """500 audits without a leak: the bound exceeds 1 with probability at most 0.05 each; more than 43 by chance has
    probability 4e-4 even if the level were used up, and a test at twice the level would be found nearly always."""
    rng = np.random.default_rng(n)
    above = sum(
        tail_odds(*rng.normal(size=(2, n)), level=0.05, rng=rng).odds > 1  # type: ignore[union-attr]
        for _ in range(500)
    )
    assert above <= 43


@pytest.mark.parametrize("n", [300, 1000, 3000])
@pytest.mark.parametrize("upper", [True, False])
def test_a_few_people_given_away_surely_are_found_whatever_the_size(n: int, upper: bool) -> None:
    rng = np.random.default_rng(n)
    inside, outside = rng.normal(size=(2, n))
    sign = 1 if upper else -1
    inside[:32] = 99 * sign
    found = tail_odds(inside, outside, level=LEVEL / 8, rng=rng)
    assert found is not None
    assert found.odds > math.e
    assert (found.k, found.n_members, found.upper) == (32, 32, upper)
    inside[20:32] = 0.0
    missed = tail_odds(inside, outside, level=LEVEL / 8, rng=rng)
    assert missed is not None
    assert missed.odds < math.e  # twenty cannot be shown


def test_group_sizes_are_divided_out() -> None:
    """Four times as many members as others: four of five in any tail are members, and nothing leaks."""
    rng = np.random.default_rng(1)
    above = sum(
        tail_odds(rng.normal(size=4000), rng.normal(size=1000), level=0.05, rng=rng).odds > 1  # type: ignore[union-attr]
        for _ in range(300)
    )
    assert above <= 27


@pytest.mark.parametrize(
    ("n_members", "n_nonmembers", "fewest"), [(4000, 1000, 128), (9000, 800, 512), (5000, 400, 512)]
)
def test_as_many_as_stated_are_found_against_a_small_holdout(n_members: int, n_nonmembers: int, fewest: int) -> None:
    rng = np.random.default_rng(n_members)
    inside, outside = rng.normal(size=n_members), rng.normal(size=n_nonmembers)
    assert smallest_sure_tail(n_members, n_nonmembers, level=LEVEL / 8, odds=math.e) == fewest
    inside[:fewest] = 99
    found = tail_odds(inside, outside, level=LEVEL / 8, rng=rng)
    assert found is not None
    assert found.odds > math.e
    assert found.n_members == fewest


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_odds_at_the_limit_against_a_small_holdout_exceed_it_as_rarely_as_stated(share: float) -> None:
    """Members are e times as likely as others to lie above 2: of 300 audits at level 0.05 more than 27 exceed the
    limit with a probability of at most 2e-3."""
    rng = np.random.default_rng(round(100 * share))
    above = 0
    for _ in range(300):
        inside, outside = rng.random(3000), rng.random(200)
        inside[rng.random(3000) < math.e * share] += 2
        outside[rng.random(200) < share] += 2
        above += tail_odds(inside, outside, level=0.05, rng=rng).odds > math.e  # type: ignore[union-attr]
    assert above <= 27


def test_ties_and_infinities() -> None:
    """Equal scores are broken at random: all equal is no leak, whichever group comes first."""
    rng = np.random.default_rng(2)
    equal = tail_odds(np.zeros(500), np.zeros(500), level=LEVEL, rng=rng)
    assert equal is not None
    assert equal.odds < 1.5
    inside = np.r_[np.full(64, np.inf), np.zeros(436)]
    sure = tail_odds(inside, np.r_[-np.inf, np.zeros(499)], level=LEVEL, rng=rng)
    assert sure is not None
    assert (sure.k, sure.n_members) == (64, 64)


def test_too_few_records_have_no_tail() -> None:
    assert tail_odds(np.ones(31), np.zeros(500), level=LEVEL, rng=np.random.default_rng(0)) is None
    assert tail_odds(np.ones(32), np.zeros(500), level=LEVEL, rng=np.random.default_rng(0)) is not None


@pytest.mark.parametrize("level", [0.0, 1.0, float("nan")])
def test_a_level_outside_its_range_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="level must be in"):
        tail_odds([1.0], [0.0], level=level, rng=np.random.default_rng(0))


# In games.


def pairs(n: int, n_inside: int, rng: np.random.Generator, n_pairs: int = 16) -> np.ndarray:
    """Who is in which set, of which each second is the complement of the one before where halves are drawn."""
    sets = []
    for _ in range(n_pairs):
        drawn = rng.permutation(n) < n_inside
        sets += [drawn, ~drawn] if 2 * n_inside == n else [drawn, rng.permutation(n) < n_inside]
    return np.stack(sets)


FIRST = np.arange(32) < 16


def test_null_games_without_a_leak_exceed_even_odds_as_rarely_as_stated() -> None:
    """500 tables: the bound exceeds 1 with probability at most 0.05 each; more than 43 by chance has 4e-4."""
    rng = np.random.default_rng(0)
    above = sum(
        games_tail(rng.normal(size=(32, 100)), pairs(100, 50, rng), FIRST, level=0.05, rng=rng).odds > 1  # type: ignore[union-attr]
        for _ in range(500)
    )
    assert above <= 43


@pytest.mark.parametrize(
    ("share", "n_inside"),
    [
        (0.05, 50),
        pytest.param(0.3, 50, marks=pytest.mark.slow),
        (1.0, 50),
        pytest.param(0.3, 75, marks=pytest.mark.slow),
    ],
)
def test_outputs_at_the_limit_exceed_it_as_rarely_as_stated(share: float, n_inside: int) -> None:
    """Randomised response about a share of the records, which changes their odds by a factor of e and by no more, and
    an attacker who reads it. 400 tables at level 0.05: more than 36 by chance have probability 3e-4."""
    rng = np.random.default_rng(int(100 * share) + n_inside)
    true = math.e / (1 + math.e)
    above = 0
    for _ in range(400):
        members = pairs(100, n_inside, rng)
        told = np.where(rng.random(members.shape) < true, members, ~members)
        scores = np.where(np.arange(100) < 100 * share, np.where(told, 1.0, -1.0), 0.0)
        tail = games_tail(scores, members, FIRST, level=0.05, rng=rng)
        above += tail.odds > math.e  # type: ignore[union-attr]
    assert above <= 36


def test_a_few_records_given_away_in_every_game_are_found() -> None:
    """Of 10, 20 and 40 records of 2,000 half are in each game: found as often, and what is said of it is so.

    The bound is Clopper and Pearson's, whose slow twin is the binomial law.
    """
    rng = np.random.default_rng(1)
    for n_known, k in ((10, 4), (20, 8), (40, 16)):
        members = pairs(2000, 1000, rng)
        known = np.arange(2000) < n_known
        scores = np.where(known, np.where(members, 50.0, -50.0), rng.normal(size=members.shape))
        tail = games_tail(scores, members, FIRST, level=LEVEL, rng=rng)
        assert tail is not None
        assert (tail.n_games, tail.n_inside, tail.n_outside, tail.level) == (16, 1000, 1000, LEVEL)
        assert tail.k in (k // 2, k)
        assert tail.n_members > 0.9 * 16 * tail.k
        share = tail.odds / (1 + tail.odds)
        assert stats.binom.sf(tail.n_members - 1, 16 * tail.k, share) == pytest.approx(LEVEL / 2 / 9, rel=1e-4)
        assert smallest_sure_games_tail(tail, odds=math.e) == 2
    sure = np.where(np.arange(2000) < 8, np.where(members, 50.0, -50.0), 0.0)
    assert games_tail(sure, members, FIRST, level=LEVEL, rng=rng).odds > math.e  # type: ignore[union-attr]


def test_the_better_half_counts_and_is_divided_by_the_odds_among_all_records() -> None:
    rng = np.random.default_rng(2)
    members = np.stack([rng.permutation(100) < 75 for _ in range(30)])
    first = np.arange(30) < 10
    scores = np.where(members, 1.0, 0.0)
    scores[~first] = 0.0
    tail = games_tail(scores, members, first, level=LEVEL, rng=rng)
    assert tail is not None
    assert (tail.k, tail.n_games, tail.n_members) == (8, 10, 80)
    assert tail.odds == pytest.approx(_lower_odds(80, 80, LEVEL / 8) / 3)
    assert tail.odds == games_tail_bound(80, 8, 10, 75, 25, level=LEVEL)
    turned = games_tail(scores, members, ~first, level=LEVEL, rng=rng)
    assert turned == tail


@pytest.mark.parametrize("spread", [0.0, 0.2])
def test_null_games_with_other_numbers_of_members(spread: float) -> None:
    """Sets by coins, or by coins of other weights in each game, known to the attacker: no bound is above even odds more
    often than stated, since the odds among all records are those of the game with most members."""
    rng = np.random.default_rng(5)
    above = 0
    for _ in range(400):
        members = rng.random((32, 100)) < rng.uniform(0.5 - spread, 0.5 + spread, (32, 1))
        tail = games_tail(rng.normal(size=members.shape), members, FIRST, level=0.05, rng=rng)
        assert tail is not None
        assert (tail.n_inside, tail.n_outside) == (members.sum(axis=1).max(), 100 - members.sum(axis=1).max())
        above += tail.odds > 1
    assert above <= 36  # 3e-4 by chance


def test_too_few_games_or_records_have_no_tail() -> None:
    rng = np.random.default_rng(3)
    members = pairs(100, 50, rng)
    scores = rng.normal(size=(32, 100))
    assert games_tail(scores, members, np.ones(32, dtype=bool), level=LEVEL, rng=rng) is None
    one_left = np.arange(100) < np.full((32, 1), 99)
    assert games_tail(scores, one_left, FIRST, level=LEVEL, rng=rng) is None
    for odd in (3, 100):
        assert math.isnan(games_tail_bound(1, odd, 16, 50, 50, level=LEVEL))
    assert math.isnan(games_tail_bound(17, 1, 16, 50, 50, level=LEVEL))
    assert math.isnan(games_tail_bound(0, 1, 0, 50, 50, level=LEVEL))
    assert games_tail_bound(0, 1, 16, 50, 50, level=LEVEL) == 0
    few = games_tail(scores[:4], members[:4], FIRST[14:18], level=LEVEL, rng=rng)
    assert few is not None
    assert smallest_sure_games_tail(few, odds=math.e) == 16
    assert smallest_sure_games_tail(few, odds=1e6) is None


def test_games_that_cannot_be_are_refused() -> None:
    rng = np.random.default_rng(4)
    members, scores = pairs(100, 50, rng), rng.normal(size=(32, 100))
    with pytest.raises(ValueError, match="level"):
        games_tail(scores, members, FIRST, level=1.0, rng=rng)
    with pytest.raises(ValueError, match="NaN"):
        games_tail(np.full_like(scores, np.nan), members, FIRST, level=LEVEL, rng=rng)
