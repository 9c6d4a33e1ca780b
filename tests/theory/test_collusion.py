"""Yeom et al. 2018, Theorem 4: closed forms of the colluding trainer and attacker."""

from __future__ import annotations

import itertools
import math

import pytest

from leakgauge.theory import (
    colluding_advantage,
    colluding_advantage_yeom,
    colluding_false_positive_rate,
    colluding_stability,
)

# No leak first.


def test_where_every_fresh_record_is_in_the_training_set_there_is_nothing_to_tell():
    assert colluding_advantage(10, 3, mu=1.0) == 0.0
    assert colluding_false_positive_rate(10, 3, mu=1.0) == 1.0


# Known answers.


@pytest.mark.parametrize(
    ("bits_out", "n_keys", "expected"),
    [(1, 3, 0.875), (1, 10, 0.9990234375), (1, 1, 0.5), (2, 3, 0.984375), (1, 5, 0.96875), (3, 1, 0.875)],
)
def test_worked_example_2_and_the_column_of_theorem_4(bits_out, n_keys, expected):
    # Specification of collusion, section 5, example 2, and section 3, with mu = 0: both forms agree there.
    assert colluding_advantage_yeom(2**bits_out, n_keys) == expected
    assert colluding_advantage(2**bits_out, n_keys) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("n_classes", "n_keys", "expected"),
    [(10, 1, 0.1), (10, 2, 0.01), (10, 3, 0.001), (100, 1, 0.01), (100, 2, 1e-4), (100, 3, 1e-6)],
)
def test_expected_false_positive_rates(n_classes, n_keys, expected):
    # Specification of collusion, section 3.
    assert colluding_false_positive_rate(n_classes, n_keys) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("bits_in", "bits_out", "n_keys", "n", "printed"),
    [(16, 3, 1, 500, 0.8674), (10, 2, 2, 100, 0.8444), (20, 1, 3, 50, 0.8750), (24, 1, 5, 50, 0.9687)],
)
def test_the_printed_advantage_with_uniform_records(bits_in, bits_out, n_keys, n, printed):
    # Specification of collusion, section 3, last column: mu is the chance to draw one of n uniform records again.
    mu = 1 - (1 - 2.0**-bits_in) ** n
    assert colluding_advantage_yeom(2**bits_out, n_keys, mu) == pytest.approx(printed, abs=1e-4)


def test_the_exact_advantage_is_a_little_above_the_printed_one():
    exact, printed = colluding_advantage(10, 2, 0.2), colluding_advantage_yeom(10, 2, 0.2)
    assert exact - printed == pytest.approx(0.2 * 0.01)


def test_stability_adds_the_chance_to_meet_a_marker():
    # By hand: 0.05 + 3 * 1000 * 2 / 2^20 + 0.01.
    assert colluding_stability(0.05, 1000, n_keys=3, bits_in=20, loss_bound=2.0, mu=0.01) == pytest.approx(
        0.05 + 6000 / 1048576 + 0.01
    )
    assert colluding_stability(0.05, 1000, n_keys=3, bits_in=math.inf, loss_bound=2.0) == 0.05
    assert colluding_stability(0.0, 9000, n_keys=3, bits_in=784 * 8, loss_bound=1.0) == 0.0  # images: none at all


# The slow twin.


@pytest.mark.parametrize("min_matches", [1, 2, 3])
def test_the_rate_by_enumeration_of_all_answers(min_matches):
    """Three markers, three labels each way: count the answers that agree often enough."""
    marked = (0, 2, 1)
    enough = [
        sum(a == b for a, b in zip(said, marked, strict=True)) >= min_matches
        for said in itertools.product(range(3), repeat=3)
    ]
    rate = colluding_false_positive_rate(3, 3, min_matches=min_matches)
    assert rate == pytest.approx(sum(enough) / 27)
    assert colluding_advantage(3, 3, 0.25, min_matches=min_matches) == pytest.approx(0.75 * (1 - rate))


# Refusals.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 3), "n_classes must be at least 2, got 1; with one label"),
        ((10, 0), "n_keys must be at least 1, got 0"),
        ((10, 3, -0.1), r"mu must be in \[0, 1\], got -0.1"),
        ((10, 3, math.nan), r"mu must be in \[0, 1\], got nan"),
    ],
)
@pytest.mark.parametrize("function", [colluding_advantage, colluding_advantage_yeom, colluding_false_positive_rate])
def test_refuses(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


@pytest.mark.parametrize("min_matches", [0, 4])
def test_refuses_matches_there_cannot_be(min_matches):
    with pytest.raises(ValueError, match=r"min_matches must be in 1\.\.n_keys = 3"):
        colluding_advantage(10, 3, min_matches=min_matches)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"stability": -1.0}, "stability must be finite and at least 0, got -1.0"),
        ({"n_records": 0}, "n_records must be at least 1"),
        ({"n_keys": 0}, "n_keys must be at least 1"),
        ({"bits_in": math.nan}, "bits_in must be at least 0"),
        ({"loss_bound": math.inf}, "loss_bound must be positive and finite"),
        ({"mu": 2.0}, "mu must be in"),
    ],
)
def test_stability_refuses(changed, message):
    arguments = {"stability": 0.1, "n_records": 10, "n_keys": 1, "bits_in": 8, "loss_bound": 1.0} | changed
    with pytest.raises(ValueError, match=message):
        colluding_stability(**arguments)
