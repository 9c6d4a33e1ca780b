from __future__ import annotations

import numpy as np
import pytest

from leakgauge.errors import ConfigError, DataError
from leakgauge.properties import GameParameters, Property, Side, hold_out
from leakgauge.records import Records


@pytest.fixture
def side():
    records = Records.from_arrays(np.arange(400.0)[:, None], [0, 1] * 200)
    return Side("attacker", records, np.arange(400) < 100, 1)


def test_every_record_is_on_one_side_and_a_third_is_the_attackers(people):
    records = people(300)
    sides = hold_out(records, Property("x", lambda r: r.features[:, 0] > 0), seed=1)
    both = [*sides.owner.records.ids.tolist(), *sides.attacker.records.ids.tolist()]
    assert sorted(both) == records.ids.tolist()
    assert len(sides.attacker.records) == 100
    np.testing.assert_array_equal(sides.owner.has, sides.owner.records.features[:, 0] > 0)
    np.testing.assert_array_equal(sides.owner.as_codes().records.features, sides.owner.records.features)


def test_training_sets_have_exact_sizes_and_frequencies_on_average(side):
    """Binomial: 2,000 sets of 60 at frequency 0.25, four standard errors of the mean share are 0.005."""
    sets = side.draw_sets(60, np.full(2000, 0.25), np.random.default_rng(0))
    assert sets.shape == (2000, 60)
    assert all(len(set(rows)) == 60 for rows in sets[:100].tolist())
    shares = side.share(sets)
    assert shares.mean() == pytest.approx(0.25, abs=0.005)
    assert shares.std() == pytest.approx(np.sqrt(0.25 * 0.75 / 60), rel=0.1)


def test_frequencies_of_0_and_1_are_kept_to(side):
    sets = side.draw_sets(50, np.array([0.0, 1.0]), np.random.default_rng(0))
    assert side.share(sets).tolist() == [0.0, 1.0]


def test_halves_are_halves(side):
    sets = side.draw_halves(51, 20, np.random.default_rng(0))
    assert sets.shape == (20, 51)
    assert set(side.has[sets].sum(axis=1).tolist()) == {25}
    assert all(len(set(rows)) == 51 for rows in sets.tolist())


def test_some_records_hold_as_many_of_either_kind_as_there_are(side):
    rng = np.random.default_rng(0)
    assert side.some(400, rng) is side
    few, more = side.some(50, rng), side.some(300, rng)
    assert (len(few.records), few.has.sum()) == (50, 25)
    assert (len(more.records), more.has.sum()) == (300, 100)


def test_label_0_of_many_classes_is_the_most_frequent_other():
    records = Records.from_arrays(np.zeros((6, 1)), ["a", "a", "b", "c", "c", "c"])
    side = Side("owner", records, np.arange(6) < 3, 2)
    assert side.negative == 0
    assert side.labels.tolist() == [False] * 3 + [True] * 3


@pytest.mark.parametrize(
    ("n", "poison", "n_poisoned"), [(1000, 0.03, 30), (1000, 0.0, 0), (5, 0.5, 3), (7, 0.1, 1), (1000, 0.1234, 123)]
)
def test_the_training_set_has_exactly_n_records(n, poison, n_poisoned):
    game = GameParameters(0.3, 0.7, n, poison)
    assert game.n_poisoned == n_poisoned
    assert game.n_poisoned + game.n_clean == n


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ((0.7, 0.3, 100), "t0 < t1"),
        ((0.3, 0.3, 100), "t0 < t1"),
        ((0.3, 1.2, 100), r"t1 must be in \(0, 1\], got 1.2"),
        ((0.3, 0.7, 100, 1.0), r"poison must be in \[0, 1\), got 1.0"),
        ((0.3, 0.7, 100, -0.1), r"poison must be in \[0, 1\), got -0.1"),
        ((0.3, 0.7, 0), "n must be a whole number of at least 1, got 0"),
        ((0.3, 0.7, 4, 0.9), "has no clean record"),
    ],
)
def test_impossible_games_are_refused(parameters, message):
    with pytest.raises(ConfigError, match=message) as error:
        GameParameters(*parameters)
    assert "\n" not in str(error.value)


def test_sides_that_cannot_be_drawn_from_are_refused(side, people):
    records = people(60)
    with pytest.raises(DataError, match="no record of the owner's 40 has the property"):
        hold_out(records, Property("none", lambda r: np.zeros(len(r), dtype=bool)), seed=0)
    with pytest.raises(DataError, match="no record of the owner's 40 lacks the property"):
        hold_out(records, Property("all", lambda r: np.ones(len(r), dtype=bool)), seed=0)
    with pytest.raises(
        DataError, match=r"120 of the attacker's records with the property are needed, but there are 100"
    ):
        side.draw(120, True, np.random.default_rng(0))
    first = Property("x", lambda r: r.features[:, 0] > 0)
    with pytest.raises(DataError, match=r"share of the records must be in \(0, 1\)"):
        hold_out(records, first, share=1.0, seed=0)


def test_labels_that_are_not_two_classes_need_one_to_be_named(people):
    secret = Property("x", lambda r: r.features[:, 0] > 0)
    three = people(90, 0, 3)
    with pytest.raises(DataError, match=r"has 3 classes where two are needed; name the one .*positive="):
        hold_out(three, secret, seed=0)
    with pytest.raises(DataError, match="has no class 7"):
        hold_out(three, secret, positive=7, seed=0)
    assert hold_out(three, secret, positive=2, seed=0).owner.positive == 2
    numbers = Records.from_arrays(np.arange(50.0)[:, None], np.arange(50) + 0.5)
    with pytest.raises(DataError, match="is a number, but the attack needs classes"):
        hold_out(numbers, secret, seed=0)
