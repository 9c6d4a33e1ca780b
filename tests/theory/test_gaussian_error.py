from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from leakgauge.theory import gaussian_advantage, gaussian_advantage_sigma_in_only, gaussian_crossing

SIGMAS = st.floats(1e-6, 1e6)
FUNCTIONS = [gaussian_crossing, gaussian_advantage, gaussian_advantage_sigma_in_only]

# Yeom et al. 2018, Theorem 3 and section 3.3; reference values, computed independently:
# r, crossing / sigma_in, advantage with both known, advantage with sigma_in only.
REFERENCE = [
    (1.1, 1.0480154377, 0.0460896644, 0.0459916330),
    (1.2, 1.0924181721, 0.0879894214, 0.0873462541),
    (1.5, 1.2081698511, 0.1935800926, 0.1876745672),
    (2.0, 1.3595559869, 0.3226745688, 0.2997645696),
    (3.0, 1.5722206110, 0.4843279965, 0.4215721725),
    (5.0, 1.8311186884, 0.6471153010, 0.5241700733),
    (8.0, 2.0554554484, 0.7573962858, 0.5832130425),
]


@pytest.mark.parametrize("sigma", [0.0, 1e-300, 0.37, 1e300])
def test_equal_spreads_are_no_advantage(sigma):
    assert gaussian_advantage(sigma, sigma) == 0.0
    assert gaussian_advantage_sigma_in_only(sigma, sigma) == 0.0
    assert gaussian_crossing(sigma, sigma) == sigma


@pytest.mark.parametrize("sigma_in", [1.0, 0.37])
@pytest.mark.parametrize(("r", "crossing", "both_known", "sigma_in_only"), REFERENCE)
def test_reference_values(sigma_in, r, crossing, both_known, sigma_in_only):
    sigma_out = r * sigma_in
    assert gaussian_crossing(sigma_in, sigma_out) / sigma_in == pytest.approx(crossing, abs=1e-9)
    assert gaussian_advantage(sigma_in, sigma_out) == pytest.approx(both_known, abs=1e-9)
    assert gaussian_advantage_sigma_in_only(sigma_in, sigma_out) == pytest.approx(sigma_in_only, abs=1e-9)


@pytest.mark.parametrize("r", [row[0] for row in REFERENCE])
def test_against_the_formulas_as_printed(r):
    w = math.sqrt(math.log(r) / (r**2 - 1))
    assert gaussian_advantage(1.0, r) == pytest.approx(math.erf(r * w) - math.erf(w), abs=1e-14)
    assert gaussian_crossing(1.0, r) == pytest.approx(r * math.sqrt(2 * math.log(r) / (r**2 - 1)), abs=1e-14)


@pytest.mark.parametrize("r", [1.1, 2.0, 5.0, 0.3])
def test_advantage_is_the_distance_of_the_two_laws(r):
    """No attack on one error beats total variation; integrated numerically."""
    crossing = gaussian_crossing(1.0, r)
    gap = lambda e: abs(stats.norm.pdf(e) - stats.norm.pdf(e, scale=r)) / 2  # noqa: E731
    distance = 2 * sum(integrate.quad(gap, a, b)[0] for a, b in [(0, crossing), (crossing, 50)])
    assert gaussian_advantage(1.0, r) == pytest.approx(distance, abs=1e-8)


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_densities_cross_there(sigma_in, sigma_out):
    e = gaussian_crossing(sigma_in, sigma_out)
    assert stats.norm.logpdf(e, scale=sigma_in) == pytest.approx(stats.norm.logpdf(e, scale=sigma_out), abs=1e-9)


@pytest.mark.parametrize("r", [1.2, 2.0, 8.0, 0.5])
def test_simulated_attacks(r):
    """1,000,000 errors a side; within 6 standard errors, so a false alarm has probability below 1e-8."""
    rng = np.random.default_rng(0)
    errors_in, errors_out = np.abs(rng.normal(0, 1, 1_000_000)), np.abs(rng.normal(0, r, 1_000_000))
    crossing = gaussian_crossing(1.0, r)
    says_member = (lambda e: e < crossing) if r > 1 else (lambda e: e > crossing)
    measured = says_member(errors_in).mean() - says_member(errors_out).mean()
    assert measured == pytest.approx(gaussian_advantage(1.0, r), abs=6 * math.sqrt(0.5 / 1e6))
    measured = (errors_in < 1).mean() - (errors_out < 1).mean()
    assert measured == pytest.approx(gaussian_advantage_sigma_in_only(1.0, r), abs=6 * math.sqrt(0.5 / 1e6))


@given(SIGMAS, SIGMAS, st.floats(1e-3, 1e3))
def test_only_the_ratio_matters_and_its_inverse_is_as_good(a, b, scale):
    assert gaussian_advantage(a, b) == gaussian_advantage(b, a)
    assert gaussian_advantage(scale * a, scale * b) == pytest.approx(gaussian_advantage(a, b), abs=1e-12)
    assert gaussian_crossing(a, b) == gaussian_crossing(b, a)
    assert gaussian_crossing(scale * a, scale * b) == pytest.approx(scale * gaussian_crossing(a, b))


@given(st.floats(1.0, 1e6), st.floats(1.0, 1e6))
def test_advantage_rises_with_the_ratio(r_a, r_b):
    small, large = sorted((r_a, r_b))
    assert gaussian_advantage(1.0, small) <= gaussian_advantage(1.0, large) + 1e-15
    assert gaussian_advantage_sigma_in_only(1.0, small) <= gaussian_advantage_sigma_in_only(1.0, large) + 1e-15


@given(SIGMAS, SIGMAS)
def test_knowing_both_is_never_worse(a, b):
    assert gaussian_advantage_sigma_in_only(a, b) <= gaussian_advantage(a, b) + 1e-14


def test_slope_at_equal_spreads():
    # First order in ln r at 1: (2 / sqrt pi) e^(-1/2) sqrt(1/2) = sqrt(2 / (pi e)), by hand.
    for step in (1e-4, 1e-7):
        slope = gaussian_advantage(1.0, 1.0 + step) / step
        assert slope == pytest.approx(math.sqrt(2 / (math.pi * math.e)), rel=1e-3)
        assert gaussian_crossing(1.0, 1.0 + step) == pytest.approx(1.0, abs=step)


@pytest.mark.parametrize("sigma", [0.37, 1.0, 12345.678])
def test_spreads_that_differ_in_the_last_digit(sigma):
    """Their logarithms may be equal, which must not end in 0 / 0."""
    next_up = math.nextafter(sigma, math.inf)
    assert gaussian_crossing(sigma, next_up) == pytest.approx(sigma)
    assert gaussian_advantage(sigma, next_up) == pytest.approx(0.0, abs=1e-15)


def test_limits_far_apart():
    assert gaussian_advantage_sigma_in_only(1.0, 1e12) == pytest.approx(0.6826894921, abs=1e-9)
    assert gaussian_advantage(1.0, 1e12) == pytest.approx(1.0, abs=1e-9)
    # A ratio that no float holds.
    assert gaussian_advantage(1e-200, 1e200) == pytest.approx(1.0)
    assert 0.0 < gaussian_crossing(1e-200, 1e200) < 1e-198


def test_a_model_without_error_on_its_members():
    assert gaussian_advantage(0.0, 0.5) == 1.0
    assert gaussian_advantage_sigma_in_only(0.0, 0.5) == 1.0
    assert gaussian_crossing(0.0, 0.5) == 0.0


def test_a_model_without_error_on_strangers():
    assert gaussian_advantage(0.5, 0.0) == 1.0
    assert gaussian_crossing(0.5, 0.0) == 0.0
    # |error| < sigma_in calls every stranger a member.
    assert gaussian_advantage_sigma_in_only(0.5, 0.0) == pytest.approx(0.6826894921 - 1, abs=1e-9)


def test_sigma_in_only_points_the_wrong_way_if_strangers_fit_better():
    assert gaussian_advantage_sigma_in_only(1.0, 0.5) < -0.2


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_refuses(function, bad):
    message = rf"must be finite and at least 0, got {bad}; it is a root mean squared error"
    with pytest.raises(ValueError, match="sigma_in " + message):
        function(bad, 1.0)
    with pytest.raises(ValueError, match="sigma_out " + message):
        function(1.0, bad)
