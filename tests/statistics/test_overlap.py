"""Shared records: none are seen where there are none, a known share is found, and corrected advantages are right."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from leakgauge.statistics import (
    Estimate,
    advantage,
    most_to_tell,
    odds_without_overlap,
    pairs_by_chance,
    repeats_beyond_chance,
    shared_share,
    without_overlap,
)

CONFIDENCE = 0.975


def mixed(rng: np.random.Generator, kinds: int, n1: int, n0: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """A training set, and a holdout of which this share was taken from it; all else is drawn alike."""
    train, n_shared = rng.integers(kinds, size=n1), round(share * n0)
    return train, np.concatenate([rng.choice(train, n_shared, replace=False), rng.integers(kinds, size=n0 - n_shared)])


@pytest.mark.parametrize(("kinds", "n1", "n0"), [(8, 500, 500), (64, 1000, 1000), (500, 400, 200), (10**5, 1000, 1000)])
def test_records_that_are_equal_by_chance_are_not_taken_for_shared_ones(kinds: int, n1: int, n0: int) -> None:
    """Null, 300 tables: a lower end above 0 is an error with probability 0.0125; more than 11 have probability 5e-4,
    and an interval that errs three times as often is found with probability 0.5 and more."""
    rng = np.random.default_rng(kinds)
    found = [shared_share(*mixed(rng, kinds, n1, n0, 0.0), confidence=CONFIDENCE) for _ in range(300)]
    assert sum(one is not None and one.low > 0 for one in found) <= 11


@pytest.mark.parametrize(
    ("kinds", "n1", "n0", "share"),
    [
        (8, 500, 500, 0.5),
        pytest.param(64, 1000, 1000, 0.5, marks=pytest.mark.slow),
        pytest.param(64, 1000, 1000, 0.9, marks=pytest.mark.slow),
        (64, 2000, 500, 0.5),
        pytest.param(2000, 500, 1000, 0.2, marks=pytest.mark.slow),
        pytest.param(1000, 2000, 2000, 0.5, marks=pytest.mark.slow),
        (1000, 4000, 4000, 0.7),
        pytest.param(600, 4000, 4000, 0.9, marks=pytest.mark.slow),
    ],
)
def test_the_upper_end_is_seldom_exceeded(kinds: int, n1: int, n0: int, share: float) -> None:
    """300 tables; the upper end is missed in at most 4 %: 26 and more have probability 2e-4, and an end that is missed
    in 15 % is found with probability 0.999."""
    rng = np.random.default_rng(kinds)
    found = [shared_share(*mixed(rng, kinds, n1, n0, share), confidence=CONFIDENCE) for _ in range(300)]
    assert sum(one is None or one.high < share for one in found) <= 25


def test_records_that_never_agree_by_chance_show_the_share() -> None:
    for share in (0.01, 0.3, 1.0):
        train, holdout = mixed(np.random.default_rng(0), 2**60, 1000, 1000, share)
        found = shared_share(train, holdout)
        assert found is not None
        assert found.value == pytest.approx(share, abs=1e-9)
        assert found.high == pytest.approx(share, abs=1e-9)
        assert found.low <= share
    assert found.low > 0.8


def test_no_equal_record_is_no_overlap_for_certain() -> None:
    assert shared_share([1, 2, 2], [3, 4]) is None


@pytest.mark.parametrize("kinds", [1, 2, 30, 2**60])
def test_a_holdout_that_is_the_training_set_may_be_all_shared(kinds: int) -> None:
    train = np.random.default_rng(1).integers(kinds, size=400)
    found = shared_share(train, train)
    assert found is not None
    assert found.high == 1


def test_a_training_set_of_repeated_records_does_not_hide_shared_ones() -> None:
    """Each training record twice, as where a rare class is drawn again: half of the holdout are training records."""
    train, holdout = mixed(np.random.default_rng(2), 2**60, 500, 500, 0.5)
    found = shared_share(np.tile(train, 2), holdout)
    assert found is not None
    assert found.high == pytest.approx(0.5)


def test_order_and_codes_do_not_matter() -> None:
    rng = np.random.default_rng(3)
    train, holdout = mixed(rng, 50, 200, 100, 0.3)
    names = rng.permutation(50) * 7
    one = shared_share(train, holdout)
    other = shared_share(names[rng.permutation(train)], names[rng.permutation(holdout)])
    assert one is not None
    assert other is not None
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))


def test_one_record_on_a_side() -> None:
    assert shared_share([1], [2]) is None
    found = shared_share([1], [1])
    assert found is not None
    assert (found.low, found.high) == (0, 1)


@pytest.mark.parametrize(("n1", "n0"), [(200, 200), (400, 100), (1000, 50), (60, 600)])
@pytest.mark.parametrize("tail", [0.025, 0.0125, 0.001, 1e-4])
def test_chance_pairs_exceed_the_bound_no_more_often_than_stated(n1: int, n0: int, tail: float) -> None:
    """Null, without drawing: independent pairs at 60 rates; a sum over the pairs within the sets. No error."""
    n = n1 + n0
    p = 2 * n1 * n0 / (n * (n - 1))
    within = np.arange(400)
    bounds = np.array([pairs_by_chance(int(w), n1, n0, tail=tail) for w in within])
    for rate in np.geomspace(0.05, 250, 60):
        exceeded = stats.poisson.pmf(within, rate * (1 - p)) * stats.poisson.sf(bounds, rate * p)
        assert exceeded.sum() <= tail


def test_pairs_across_that_are_enough() -> None:
    """Known answers: e**-l P(Poisson(l) > 3) is at most 0.0199 at l = 2.5, and P(Poisson(l) > 2) 0.044; with one pair
    within equal sets, 8 of 9 across have probability 10/512 and 7 of 8 9/256; all sizes with a lone record of each."""
    assert pairs_by_chance(0, 10**6, 10**6) == 3
    assert pairs_by_chance(1, 10**6, 10**6) == 7
    assert pairs_by_chance(0, 10**6, 10**6, tail=0.051) == 2
    assert pairs_by_chance(0, 10**6, 10**6, tail=0.048) == 3  # nine tenths are spent where none is within
    assert pairs_by_chance(0, 1, 1) == 1
    assert pairs_by_chance(5, 10**6, 1) == 1
    assert pairs_by_chance(0, 400, 100) == pairs_by_chance(0, 100, 400) == 2


def test_an_empty_set_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one record each"):
        shared_share([], [1])


def known(value: float, low: float, high: float) -> Estimate:
    return Estimate(value, low, high, 0.95, "example", 200)


def test_a_share_known_exactly_divides() -> None:
    """Section 9 of the specification of the verdict: a known share divides value and both ends by 1 - d."""
    found = without_overlap(known(0.09, 0.05, 0.13), known(0.5, 0.5, 0.5))
    assert [found.value, found.low, found.high] == pytest.approx([0.18, 0.10, 0.26])
    turned = without_overlap(known(-0.09, -0.13, -0.05), known(0.5, 0.5, 0.5))
    assert [turned.value, turned.low, turned.high] == pytest.approx([-0.18, -0.26, -0.10])


def test_the_interval_lies_within_that_of_the_ends_divided_one_by_one() -> None:
    """The example of section 9, where dividing end by end gives 0.0526 to 0.1625 with two intervals at 97.5 %."""
    found = without_overlap(known(0.09, 0.05, 0.13), known(0.1, 0.05, 0.2))
    assert found.value == pytest.approx(0.1)
    assert 0.05 / 0.95 < found.low < 0.05 / 0.9
    assert 0.13 / 0.9 < found.high < 0.13 / 0.8


def test_where_nothing_is_left_of_the_holdout_nothing_is_known() -> None:
    found = without_overlap(known(0.0, -0.02, 0.02), known(1.0, 0.9, 1.0))
    assert (found.low, found.high) == (-1, 1)
    assert without_overlap(known(0.1, 0.0, 0.2), None) == known(0.1, 0.0, 0.2)
    with pytest.raises(ValueError, match="need the same confidence"):
        without_overlap(Estimate(0.1, 0.0, 0.2, 0.99, "example", 200), known(0.1, 0.0, 0.2))


@pytest.mark.parametrize(
    ("kinds", "n1", "n0", "share"), [(64, 1000, 1000, 0.3), (1000, 1000, 500, 0.6), (16, 800, 200, 0)]
)
def test_corrected_intervals_hold_the_true_advantage(kinds: int, n1: int, n0: int, share: float) -> None:
    """200 models that tell a record's kind is more frequent in training than it should be: the most any attack can do.

    Either end is missed with probability at most 2.5 %: 14 and more of 200 have probability 6e-4. Uncorrected, the
    upper end is missed in a fifth and in all of the two tables with shared records.
    """
    rng = np.random.default_rng(kinds)
    missed = 0
    for _ in range(200):
        train, holdout = mixed(rng, kinds, n1, n0, share)
        excess = np.bincount(train, minlength=kinds) / n1 - 1 / kinds
        says, truth = excess > 0, float(excess[excess > 0].sum())
        measured = advantage(int(says[train].sum()), n1, int(says[holdout].sum()), n0)
        most = most_to_tell(train)
        assert truth <= most
        found = without_overlap(measured, shared_share(train, holdout), most=most)
        missed += not found.low <= truth <= found.high
    assert missed <= 13


def test_many_records_of_few_kinds_cannot_tell_much() -> None:
    """A bound that shrinks with the square root of the records, and says nothing about records that never recur."""
    rng = np.random.default_rng(4)
    bounds = [most_to_tell(rng.integers(16, size=n)) for n in (1000, 4000, 16000)]
    assert bounds[0] / bounds[1] == pytest.approx(2, rel=0.1)
    assert bounds[1] / bounds[2] == pytest.approx(2, rel=0.1)
    assert most_to_tell(np.arange(1000)) == 1.0


def test_an_upper_end_is_not_corrected_beyond_what_can_be_told() -> None:
    found = without_overlap(known(0.0, -0.03, 0.03), known(0.5, 0.0, 1.0), most=0.08)
    assert (found.low, found.high) == (-0.08, 0.08)
    assert without_overlap(known(0.2, 0.15, 0.25), known(0.0, 0.0, 0.9), most=0.08).high == 0.25


def test_tail_odds_of_a_shared_holdout() -> None:
    """125 members given away surely, and 30 % of the holdout are members: the odds cannot exceed 1/0.3 in any tail."""
    shared = known(0.3, 0.3, 0.3)
    assert odds_without_overlap(1 / 0.3, shared) == math.inf
    assert odds_without_overlap(2.0, shared) == pytest.approx(0.7 * 2 / 0.4)
    assert odds_without_overlap(0.8, shared) == 0.8
    assert odds_without_overlap(2.0, known(0.2, 0.0, 0.4)) == 2.0


@pytest.mark.parametrize("value", [0.09, -0.2, 0.0])
def test_where_all_of_the_holdout_may_have_been_trained_on_nothing_is_known(value: float) -> None:
    measured = Estimate(value, value - 0.04, value + 0.04, 0.95, "example", 400)
    found = without_overlap(measured, Estimate(1.0, 0.9, 1.0, 0.95, "", 200))
    assert (found.low, found.high) == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("n1", "n0", "kinds"),
    [
        pytest.param(n1, n0, kinds, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, (n1, n0) in enumerate([(500, 500), (2000, 200), (200, 2000), (1000, 30)])
        for j, kinds in enumerate([8, 500, 20_000])
    ],
)
@pytest.mark.parametrize("steepness", [0.0, 1.0])
def test_records_that_repeat_by_chance_are_no_copies(n1: int, n0: int, kinds: int, steepness: float) -> None:
    """Null, 100 pairs of sets each, of equally and of unequally frequent kinds; at most 3 of 100 were measured.

    More than 8 have a probability below 4e-3 at that rate.
    """
    p = np.arange(1, kinds + 1) ** -steepness
    found = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        own, other = (rng.choice(kinds, n, p=p / p.sum()) for n in (n1, n0))
        found += bool(repeats_beyond_chance(own, other).any())
    assert found <= 8


@pytest.mark.parametrize(("n1", "n0"), [(300, 300), (40, 40), (60, 600)])
@pytest.mark.parametrize("times", [2, 5])
def test_records_that_were_drawn_several_times_are_copies_of_the_first(n1: int, n0: int, times: int) -> None:
    """Of 10,000 kinds; with half of a holdout as large in the training set as well."""
    rng = np.random.default_rng(times)
    own = rng.permutation(10_000)[:n1]
    other = np.concatenate([own[: n0 // 2], 10_000 + np.arange(n0 - n0 // 2)])
    order = rng.permutation(times * n1)
    drawn = np.repeat(own, times)[order]
    for holdout in (10_000 + np.arange(n0), other) if times > 2 else (10_000 + np.arange(n0),):
        copies = repeats_beyond_chance(drawn, holdout)
        assert sorted(drawn[~copies]) == sorted(own)
        assert not copies[0]


def test_few_copies_none_and_empty_sets() -> None:
    own = np.arange(100)
    assert not repeats_beyond_chance(own, own).any()
    assert not repeats_beyond_chance(np.append(own, own[:4]), own + 1000).any()  # less than a twentieth
    assert repeats_beyond_chance(np.append(own, own[:6]), own + 1000).sum() == 6
    assert not repeats_beyond_chance([], own).any()
    assert not repeats_beyond_chance(np.zeros(10), []).any()
    assert not repeats_beyond_chance([1, 1], [2]).any()  # one pair may be chance
