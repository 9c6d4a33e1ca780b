"""Draw, train, add noise, release."""

from __future__ import annotations

import math

import numpy as np
import pytest

from leakgauge.defences.memory import snapshot
from leakgauge.defences.mip import (
    Calibration,
    Guarantee,
    Mean,
    NoGuarantee,
    Statistic,
    Swap,
    Tight,
    calibrate,
    release,
)
from leakgauge.errors import ConfigError, DataError, ModelError


def rng(seed=0):
    return np.random.default_rng(seed)


def test_values_that_nobody_changes_are_released_as_they_are():
    shown = release(Mean(np.full((6, 2), 3.0)), eta=0.1)
    assert shown.values.tolist() == [3.0, 3.0]
    assert shown.guarantee.confidence == 1


def test_what_is_released_is_the_output_and_noise():
    """400 releases of a mean: their mean within 5 standard errors of the pool's, their spread within 20 %."""
    algorithm = Mean(rng().normal(size=(50, 2)))
    draw = rng(1)
    shown = [release(algorithm, eta=0.2, rng=draw) for _ in range(400)]
    values = np.array([one.values for one in shown])
    spread = np.hypot(shown[0].noise.deviations, algorithm.deviations(25))
    np.testing.assert_allclose(values.std(axis=0), spread, rtol=0.2)
    assert (np.abs(values.mean(axis=0) - algorithm.rows.mean(axis=0)) < 5 * spread / 20).all()
    assert len({one.size for one in shown}) == 1 == len({one.noise.deviations[0] for one in shown})


def test_the_same_seed_gives_the_same_release():
    algorithm = Statistic(lambda rows: rows.max(axis=0), rng().normal(size=(40, 2)))
    one, other, third = (release(algorithm, eta=0.2, rng=rng(seed), calibration=Tight()).values for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, other)
    assert (one != third).all()


def test_members_that_were_drawn_already():
    algorithm = Mean(np.arange(8.0))
    members = np.arange(8) >= 4
    shown = release(algorithm, eta=0.49, rng=rng(), members=members, calibration=Swap())
    assert shown.size == 4
    assert abs(shown.values[0] - 5.5) < 5 * shown.noise.deviations[0]
    assert release(algorithm, eta=0.2, rng=rng(), size=3).size == 3


def test_the_noise_does_not_hang_on_the_training_set():
    algorithm = Mean(rng().normal(size=(20, 1)))
    sets = [np.arange(20) < 10, np.arange(20) >= 10]
    one, other = (release(algorithm, eta=0.1, rng=rng(), members=members).noise.deviations for members in sets)
    np.testing.assert_array_equal(one, other)


def test_the_default_is_swap_with_half_of_the_pool():
    algorithm = Mean(rng().normal(size=(9, 1)))
    found = calibrate(algorithm, eta=0.1, rng=rng())
    assert found.size == 4
    assert found.guarantee.source == "coupling by the exchange of one record, with Gaussian noise"
    assert found.guarantee.accuracy == 5 / 9 + 0.1


# Who knows the random numbers.


def test_a_release_draws_from_the_operating_system_and_keeps_nothing():
    """Two releases differ, whatever the state of numpy's own generator; nothing of it holds a generator or a seed."""
    algorithm = Mean(np.arange(8.0))
    members = np.arange(8) < 4
    np.random.seed(0)  # noqa: NPY002 - a habit of users
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (release(algorithm, eta=0.1, members=members) for _ in range(2))
    assert first.values != second.values
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert isinstance(first.guarantee, Guarantee)
    assert set(vars(first)) == {"values", "noise", "guarantee", "size"}
    places = snapshot(first, "release")
    assert not any("Generator" in digest or "SeedSequence" in digest for digest in places.values())


def test_a_generator_that_is_given_voids_the_guarantee_in_words():
    """Whoever knows its seed makes the same release on both candidates' sets, and reads off which it was."""
    algorithm = Mean(np.arange(8.0))
    worlds = [np.arange(8) < 4, np.arange(8) >= 4]
    for truth in (0, 1):
        shown = release(algorithm, eta=0.01, members=worlds[truth], rng=rng(5))
        again = [release(algorithm, eta=0.01, members=members, rng=rng(5)).values for members in worlds]
        assert [bool(one == shown.values) for one in again] == [truth == 0, truth == 1]
        assert isinstance(shown.guarantee, NoGuarantee)
        assert "an attacker who knows its seed can subtract the noise" in shown.guarantee.reason
    assert isinstance(calibrate(algorithm, eta=0.01, rng=rng(5)).guarantee, Guarantee)  # of the law of the noise


# Refusals.


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"members": np.ones(7, dtype=bool)}, DataError, r"members must be bool of length 8, got bool \(7,\)"),
        ({"members": np.ones(8)}, DataError, r"members must be bool of length 8, got float64 \(8,\)"),
        ({"members": np.arange(8) < 4, "size": 3}, ConfigError, "size is 3, but members names 4 records"),
        ({"members": np.zeros(8, dtype=bool)}, ConfigError, "size must be in 1..7 for a pool of 8 records, got 0"),
        ({"size": 8}, ConfigError, "size must be in 1..7 for a pool of 8 records, got 8"),
        ({"calibration": Tight(sigma=[1.0, 1.0])}, ModelError, "gave 1 numbers, but noise is for 2"),
    ],
)
def test_refuses(given, kind, message):
    with pytest.raises(kind, match=message):
        release(Mean(np.arange(8.0)), **{"eta": 0.1, "rng": rng(), **given})


def test_an_output_that_is_not_finite_is_not_released():
    algorithm = Statistic(lambda rows: [1.0, math.inf], np.arange(8.0))
    with pytest.raises(ModelError, match=r"not finite \(first: coordinate 1\); nothing is released"):
        release(algorithm, eta=0.1, rng=rng(), calibration=Tight(sigma=[1.0, 1.0]))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0]], r"two records or more, got shape \(1, 1\)"),
        (np.zeros((3, 0)), r"rows must be \[records, numbers\]"),
        ([0.0, np.nan, np.inf], r"row 1 holds NaN or infinity \(2 such rows\)"),
    ],
)
def test_rows_that_are_none_are_refused(rows, message):
    for kind in (Mean, lambda rows: Statistic(np.mean, rows)):
        with pytest.raises(DataError, match=message):
            kind(rows)


def test_a_calibration_of_ones_own():
    """The interface: whatever gives noise and says what it promises."""

    class Twice(Calibration):
        def calibrated(self, algorithm, *, eta, size, rng):
            return Swap().calibrated(algorithm, eta=eta / 2, size=size, rng=rng)

    algorithm = Mean(np.arange(8.0))
    plain, twice = (
        calibrate(algorithm, eta=0.2, rng=rng(), calibration=one).noise.deviations for one in (None, Twice())
    )
    assert twice > 1.5 * plain
