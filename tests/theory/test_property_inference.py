"""Chase et al. 2021, section V: the closed forms, against reference values and against slower ways to compute them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakgauge.theory import (
    Variant,
    certainty_band,
    flipped_up_to,
    largest_margin,
    largest_poison,
    poisoned_probability,
    prospect,
    queries_needed,
)

SHARES = st.floats(0.005, 0.9)
FREQUENCIES = st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)).filter(lambda pair: pair[1] - pair[0] > 1e-3)
VARIANTS = [Variant(with_property, label) for with_property in (True, False) for label in (0, 1)]


def bayes_label(certainty, has, share, t, variant):
    """The likelier label of a point once records are poisoned, from the joint frequencies; None if both are as likely.

    A slow twin of the band: clean records of the point's kind weigh t (1 - p) or (1 - t) (1 - p), poisoned ones p.
    """
    clean = (t if has else 1 - t) * (1 - share)
    ones, zeros = clean * (1 - certainty) / 2, clean * (1 + certainty) / 2
    if has == variant.with_property:
        ones, zeros = ones + share * variant.label, zeros + share * (1 - variant.label)
    if ones == pytest.approx(zeros, rel=1e-9):
        return None
    return int(ones > zeros)


def test_without_poison_nothing_flips():
    band = certainty_band(0.3, 0.7, 0.0)
    assert not band.is_attainable
    assert not any(band.holds(c) for c in np.linspace(-1, 1, 101))
    assert largest_margin(0.3, 0.7, 0.0) == 0
    assert prospect([0.0, 0.2, 0.9], 0.3, 0.7, 0.0).wins_with(excess=0.0) is None


# Worked examples 1 and 2: t0, t1, p, low, high, poison limit.
BANDS = [
    (0.3, 0.7, 0.1, 0.1587301587, 0.3703703704, 0.4117647059),
    (0.05, 0.15, 0.05, 0.350877, 1.052632, 0.130435),
    (0.05, 0.15, 0.1, 0.740741, 2.222222, 0.130435),
    (0.1, 0.25, 0.05, 0.210526, 0.526316, 0.2),
    (0.4, 0.6, 0.05, 0.087719, 0.131579, 0.375),
    (0.4, 0.6, 0.1, 0.185185, 0.277778, 0.375),
    (0.05, 0.1, 0.1, 1.111111, 2.222222, 0.090909),
]


@pytest.mark.parametrize(("t0", "t1", "p", "low", "high", "limit"), BANDS)
def test_bands_of_the_published_settings(t0, t1, p, low, high, limit):
    band = certainty_band(t0, t1, p)
    assert (band.low, band.high) == pytest.approx((low, high), abs=1e-6)
    assert largest_poison(t0, t1) == pytest.approx(limit, abs=1e-6)
    assert band.is_attainable == (p < limit)


def test_the_margin_of_the_first_worked_example():
    assert largest_margin(0.3, 0.7, 0.1) == pytest.approx(0.0476190476, abs=1e-10)


@pytest.mark.parametrize(
    ("p", "t", "clean", "poisoned"),
    [
        (0.1, 0.3, 0.4, 0.5621621622),
        (0.1, 0.7, 0.4, 0.4821917808),
        (0.05, 0.1, 0.2, 0.4758620690),
        (0.2, 0.5, 0.3, 0.5333333333),
    ],
)
def test_claim_12(p, t, clean, poisoned):
    assert poisoned_probability(clean, p, t) == pytest.approx(poisoned, abs=1e-10)


def test_claim_12_by_drawing_people():
    """Four million draws: 0.002 is over four standard errors of the share among those with the property."""
    rng = np.random.default_rng(0)
    n, p, t, clean = 4_000_000, 0.1, 0.3, 0.4
    poisoned = rng.random(n) < p
    has = poisoned | (rng.random(n) < t)
    ones = poisoned | (rng.random(n) < clean)
    assert ones[has].mean() == pytest.approx(poisoned_probability(clean, p, t), abs=0.002)


def test_corollary_13_at_equality():
    certainty = flipped_up_to(0.1, 0.3, 0.05)
    assert certainty == pytest.approx(0.2592592593, abs=1e-10)
    assert poisoned_probability((1 - certainty) / 2, 0.1, 0.3) == pytest.approx(0.5405405405, abs=1e-10)
    other_side = 0.5 + 0.05 * 0.3 / (0.1 + 0.3 * 0.9)
    assert other_side == pytest.approx(0.5405405405, abs=1e-10)


@given(SHARES, st.floats(0.01, 0.99), st.floats(-0.5, 0.5), st.floats(-1, 1))
def test_corollary_13_both_ways(p, t, margin, certainty):
    beyond = flipped_up_to(p, t, margin) - certainty
    above = poisoned_probability((1 - certainty) / 2, p, t) - (0.5 + margin * t / (p + t * (1 - p)))
    assert above * beyond > 0 or max(abs(above), abs(beyond)) < 1e-6 or min(abs(above), abs(beyond)) < 1e-12


@pytest.mark.parametrize(("g", "fail", "m"), [(0.25, 0.05, 24), (0.25, 0.01, 37), (0.1, 0.05, 150)])
def test_sample_sizes(g, fail, m):
    assert queries_needed(fail, gap=g) == m


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@given(frequencies=FREQUENCIES, p=SHARES, certainty=st.floats(-1, 1))
def test_points_in_the_band_are_those_that_change_between_the_worlds(variant, frequencies, p, certainty):
    """Every variant against the likelier label in both worlds, and its rule names the world from that label."""
    t0, t1 = frequencies
    like = variant.with_property
    labels = [bayes_label(certainty, like, p, t, variant) for t in (t0, t1)]
    if None in labels:
        return
    band = certainty_band(t0, t1, p, variant=variant)
    near_an_end = min(abs(certainty - band.low), abs(certainty - band.high)) < 1e-9
    if not near_an_end:
        assert band.holds(certainty) == (labels[0] != labels[1])
    if labels[0] != labels[1]:
        assert [variant.is_t1(float(label)) for label in labels] == [False, True]
    assert bayes_label(certainty, not like, p, t0, variant) in (None, int(certainty < 0))


@given(FREQUENCIES, SHARES, st.floats(0, 0.5))
def test_the_band_is_empty_from_the_largest_margin_on(frequencies, p, margin):
    t0, t1 = frequencies
    for with_property in (True, False):
        band = certainty_band(t0, t1, p, margin=margin, variant=Variant(with_property))
        limit = largest_margin(t0, t1, p, with_property=with_property)
        if abs(margin - limit) > 1e-9:
            assert (band.low < band.high) == (margin < limit)


def test_a_property_that_nobody_has_in_one_world():
    band = certainty_band(0.0, 0.1, 0.05)
    assert band.high == math.inf
    assert band.low == pytest.approx(0.05 / (0.1 * 0.95))
    assert largest_margin(0.0, 0.1, 0.05) == math.inf
    assert prospect([0.9], 0.0, 0.1, 0.05).wins_with(excess=0.0) is None


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_the_prospect_against_a_search_over_margins(variant):
    rng = np.random.default_rng(1)
    sign = 1 if variant.label else -1
    certainties = sign * rng.uniform(0, 0.6, 200)
    t0, t1, p = 0.3, 0.7, 0.1
    found = prospect(certainties.tolist(), t0, t1, p, variant=variant)
    rare = t0 if variant.with_property else 1 - t1
    searched = 0.0
    for margin in np.linspace(1e-4, 0.05, 2000):
        band = certainty_band(t0, t1, p, margin=margin, variant=variant)
        searched = max(searched, margin * rare * np.mean([band.holds(c) for c in certainties]) / 2)
    assert found.tolerated_excess == pytest.approx(searched, rel=2e-3)
    assert found.tolerated_excess >= searched


def test_what_the_theorem_promises():
    found = prospect([0.25] * 10, 0.3, 0.7, 0.1)
    assert found.mass == pytest.approx(0.3)
    assert found.wins_with(excess=0.9 * found.tolerated_excess, fail=0.01) == pytest.approx(0.98)
    assert found.wins_with(excess=found.tolerated_excess, fail=0.01) is None
    assert prospect([], 0.3, 0.7, 0.1).wins_with(excess=0.0) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: certainty_band(0.7, 0.3, 0.1), "must be ordered"),
        (lambda: certainty_band(0.3, 0.3, 0.1), "must be ordered"),
        (lambda: certainty_band(0.3, 0.7, 1.0), r"poison must be in \[0, 1\)"),
        (lambda: certainty_band(0.3, 0.7, 0.1, margin=-0.1), "margin must be at least 0"),
        (lambda: poisoned_probability(1.2, 0.1, 0.3), "probability must be"),
        (lambda: poisoned_probability(0.2, 0.0, 0.0), "no record has the property"),
        (lambda: poisoned_probability(0.2, 0.1, math.nan), "frequency must be"),
        (lambda: flipped_up_to(0.1, 0.3, 2.0), "margin must be"),
        (lambda: queries_needed(0.0), "fail must be"),
        (lambda: queries_needed(0.1, gap=0.6), "gap must be"),
        (lambda: Variant(True, 2), "label must be 0 or 1"),
        (lambda: prospect([1.5], 0.3, 0.7, 0.1), "certainties must be"),
        (lambda: prospect([0.2], 0.3, 0.7, 0.1).wins_with(-1.0), "excess must be"),
        (lambda: prospect([0.2], 0.3, 0.7, 0.1).wins_with(0.0, 2.0), "fail must be"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
