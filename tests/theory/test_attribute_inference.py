from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from leakgauge.theory import (
    answered_errors,
    best_tau,
    gaussian_advantage,
    gaussian_crossing,
    inversion_advantage,
    inversion_advantage_of_values,
    inversion_success,
    largest_inversion_advantage,
    several_queries_advantage,
    several_queries_success,
    uniform_guess_advantage,
)

SIGMAS = st.floats(0.05, 20)
THIRD = 1 / 3

# Yeom et al. 2018, Theorem 5; reference values, computed independently: tau, sigma_in, sigma_out, advantage.
TWO_VALUES = [
    (1.0, 1.0, 2.0, 0.0927561356),
    (2.0, 1.0, 2.0, 0.1498822848),
    (4.0, 1.0, 5.0, 0.3218281264),
    (2.0, 0.5, 1.5, 0.2297424056),
    (3.0, 1.0, 1.2, 0.0388425724),
    (2.7191119739, 1.0, 2.0, 0.1613372844),
]

# The general attack: predictions, prior, sigma_in, sigma_out, assumed, success on members, on others, advantage.
SEVERAL_VALUES = [
    ((2, 0), (0.1, 0.9), 1.0, 2.0, 1.0, 0.9299393141, 0.8157170086, 0.1142223055),
    ((2, 0), (0.3, 0.7), 0.5, 1.5, 0.5, 0.9794952676, 0.7559952450, 0.2235000226),
    ((0, 1, 2), (0.2, 0.5, 0.3), 0.5, 1.5, 0.5, 0.7841975826, 0.4681019178, 0.3160956648),
    ((0, 1.5, 4), (THIRD, THIRD, THIRD), 0.7, 2.1, 0.7, 0.8806258990, 0.5757769363, 0.3048489627),
    ((0, 0.2, 3), (0.6, 0.05, 0.35), 1.0, 3.0, 1.0, 0.8894166869, 0.6618584902, 0.2275581967),
]

# Several queries, threshold where both densities are equal: predictions, prior, sigma_in, sigma_out, that threshold,
# membership advantage, one uniform guess, several queries.
QUERIES = [
    ((0, 1), (0.5, 0.5), 1.0, 2.0, 1.359556, 0.3226745688, 0.1613372844, 0.2074690121),
    ((0, 3), (0.5, 0.5), 1.0, 2.0, 1.359556, 0.3226745688, 0.1613372844, 0.3226745688),
    ((0, 1, 2), (0.5, 0.3, 0.2), 0.5, 1.5, 0.786110, 0.4843279965, 0.1614426655, 0.4176959423),
    ((0, 2, 4), (0.2, 0.5, 0.3), 0.5, 2.0, 0.859859, 0.5817632113, 0.1939210704, 0.5817632113),
]


def distributions(most=5):
    """Predictions with ties now and then, and a prior with values that do not occur."""
    values = st.tuples(st.integers(-6, 6).map(lambda k: k / 2), st.integers(0, 4))
    chosen = st.lists(values, min_size=1, max_size=most).filter(lambda rows: sum(w for _, w in rows) > 0)
    return chosen.map(lambda rows: ([a for a, _ in rows], [w / sum(v for _, v in rows) for _, w in rows]))


@given(distributions(), SIGMAS)
def test_a_model_that_errs_alike_on_everybody_gives_nothing_away(values, sigma):
    predictions, prior = values
    assert inversion_advantage(1.7, sigma, sigma) == 0
    assert inversion_advantage_of_values(predictions, prior, sigma, sigma) == 0
    assert several_queries_advantage(predictions, prior, sigma, sigma, 1.3) == 0


@given(SIGMAS, SIGMAS)
def test_a_column_that_does_not_move_the_prediction_is_not_given_away(sigma_in, sigma_out):
    assert inversion_advantage(0.0, sigma_in, sigma_out) == 0
    assert inversion_advantage_of_values([1.0, 1.0, 1.0], [0.2, 0.5, 0.3], sigma_in, sigma_out) == 0
    assert largest_inversion_advantage([1.0, 1.0, 1.0], [0.2, 0.5, 0.3]) == 0


@pytest.mark.parametrize("prior", [[1.0], [1.0, 0.0], [0.0, 1.0, 0.0]])
def test_where_one_value_is_possible_there_is_nothing_to_infer(prior):
    predictions = [float(k) for k in range(len(prior))]
    assert inversion_advantage_of_values(predictions, prior, 1.0, 3.0) == 0
    assert several_queries_advantage(predictions, prior, 1.0, 3.0, 1.5) == 0
    assert largest_inversion_advantage(predictions, prior) == 0
    assert uniform_guess_advantage(0.4, 1) == 0


@pytest.mark.parametrize(("tau", "sigma_in", "sigma_out", "expected"), TWO_VALUES)
def test_two_values_against_reference_values(tau, sigma_in, sigma_out, expected):
    assert inversion_advantage(tau, sigma_in, sigma_out) == pytest.approx(expected, abs=1e-9)
    general = inversion_advantage_of_values([tau, 0.0], [0.5, 0.5], sigma_in, sigma_out)
    assert general == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("tau", "sigma_in", "sigma_out", "expected"), TWO_VALUES)
def test_two_values_succeed_as_often_as_printed(tau, sigma_in, sigma_out, expected):
    # Yeom et al. 2018, Theorem 5: 1/2 + erf(tau / (2 sqrt2 sigma)) / 2, whatever deviation is assumed.
    for sigma in (sigma_in, sigma_out):
        printed = 1 / 2 + math.erf(tau / (2 * math.sqrt(2) * sigma)) / 2
        for assumed in (0.3, sigma_in):
            found = inversion_success([tau, 0.0], [0.5, 0.5], sigma, assumed_sigma=assumed)
            assert found == pytest.approx(printed, abs=1e-12)


def test_a_column_that_says_all_is_given_away_by_anybody():
    """Theorem 5: nothing at no influence, nothing at any, never above 1/2, and near it for two extremes."""
    for sigma_in, sigma_out in ((1.0, 2.0), (0.1, 30.0)):
        curve = [inversion_advantage(tau, sigma_in, sigma_out) for tau in np.geomspace(1e-9, 1e9, 200)]
        assert curve[0] == pytest.approx(0, abs=1e-7)
        assert curve[-1] == 0
        assert all(0 <= advantage < 0.5 for advantage in curve)
    assert inversion_advantage(1.0, 1e-6, 1e6) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize(("a", "prior", "sigma_in", "sigma_out", "assumed", "inside", "outside", "adv"), SEVERAL_VALUES)
def test_several_values_against_reference_values(a, prior, sigma_in, sigma_out, assumed, inside, outside, adv):
    assert inversion_success(a, prior, sigma_in, assumed_sigma=assumed) == pytest.approx(inside, abs=1e-9)
    assert inversion_success(a, prior, sigma_out, assumed_sigma=assumed) == pytest.approx(outside, abs=1e-9)
    for given_sigma in (None, assumed):
        found = inversion_advantage_of_values(a, prior, sigma_in, sigma_out, assumed_sigma=given_sigma)
        assert found == pytest.approx(adv, abs=1e-9)


@pytest.mark.parametrize(("a", "prior", "sigma_in", "sigma_out", "theta", "membership", "uniform", "several"), QUERIES)
def test_queries_against_reference_values(a, prior, sigma_in, sigma_out, theta, membership, uniform, several):
    crossing = gaussian_crossing(sigma_in, sigma_out)
    assert crossing == pytest.approx(theta, abs=1e-6)
    assert gaussian_advantage(sigma_in, sigma_out) == pytest.approx(membership, abs=1e-9)
    assert uniform_guess_advantage(membership, len(a)) == pytest.approx(uniform, abs=1e-9)
    assert several_queries_advantage(a, prior, sigma_in, sigma_out, crossing) == pytest.approx(several, abs=1e-9)


@pytest.mark.parametrize(
    ("predictions", "prior", "limit"),
    [
        # Derived from Yeom et al. 2018, section 4.2; a uniform prior gives the printed 1 - 1/m.
        ((0, 1, 2), (THIRD, THIRD, THIRD), 2 / 3),
        ((0, 1, 2), (0.1, 0.8, 0.1), 0.9),
        ((0, 1, 2), (0.45, 0.1, 0.45), 0.55),
        ((7, 3), (0.9, 0.1), 0.5),
        ((3, 7), (0.5, 0.5), 0.5),
        ((3, 7), (0.99, 0.01), 0.5),
        # The third value shares its prediction with the more frequent first, and is never answered.
        ((0, 1, 0), (0.5, 0.3, 0.2), 0.8 - 0.4),
        ((5, 0, 1, 2), (0.0, 0.1, 0.8, 0.1), 0.9),
    ],
)
def test_the_limit_is_what_the_advantage_tends_to(predictions, prior, limit):
    assert largest_inversion_advantage(predictions, prior) == pytest.approx(limit, abs=1e-12)
    for sigma_in in (0.0, 1e-6):
        near = inversion_advantage_of_values(predictions, prior, sigma_in, 1e7)
        assert near == pytest.approx(limit, abs=1e-6)


# Yeom et al. 2018, Figure 1: peaks of the three curves, computed.
@pytest.mark.parametrize(
    ("r", "tau", "peak"),
    [(5.0, 3.662237, 0.3235576505), (2.0, 2.719112, 0.1613372844), (1.2, 2.184836, 0.0439947107)],
)
def test_the_best_influence_gives_half_the_membership_advantage(r, tau, peak):
    assert best_tau(1.0, r) == pytest.approx(tau, abs=1e-6)
    found = inversion_advantage(best_tau(1.0, r), 1.0, r)
    assert found == pytest.approx(peak, abs=1e-9)
    assert found == pytest.approx(gaussian_advantage(1.0, r) / 2, abs=1e-12)
    sought = optimize.minimize_scalar(lambda t: -inversion_advantage(t, 1.0, r), bounds=(0, 20), method="bounded")
    assert sought.x == pytest.approx(tau, abs=1e-3)


@given(distributions(), SIGMAS, SIGMAS)
def test_cells_are_where_the_attack_answers(values, sigma, assumed):
    """The slow twin: the score of every value at responses on a grid, first of the highest."""
    predictions, prior = values
    cells = answered_errors(predictions, prior, assumed)
    for u in np.linspace(-9.3, 8.7, 37):
        scores = [
            math.log(p) - (u - a) ** 2 / (2 * assumed**2) if p else -math.inf
            for a, p in zip(predictions, prior, strict=True)
        ]
        best = max(range(len(scores)), key=lambda i: scores[i])
        margin = min((scores[best] - s for i, s in enumerate(scores) if predictions[i] != predictions[best]), default=1)
        if margin > 1e-9:
            assert [i for i, (low, high) in enumerate(cells) if low < u < high] == [best]


@given(distributions(3), SIGMAS, st.floats(0.01, 5), st.sampled_from(["highest_prior", "lowest_prior"]))
def test_several_queries_against_summing_up(values, sigma, theta, order):
    """The slow twin: the attack carried out at the midpoints of 40,000 equally likely cells of the error.

    The attack changes its answer at no more than 6 errors for each value, so that the sum is off by at most 6 cells.
    """
    from scipy import special

    predictions, prior = np.asarray(values[0]), np.asarray(values[1])
    errors = sigma * special.ndtri((np.arange(40_000) + 0.5) / 40_000)
    sign = -1 if order == "highest_prior" else 1
    ranked = [i for i in np.argsort(sign * prior, kind="stable") if prior[i] > 0]
    total = 0.0
    for t in ranked:
        flagged = np.abs(errors[:, None] + predictions[t] - predictions[ranked]) < theta
        right = flagged.any(axis=1) & (np.asarray(ranked)[flagged.argmax(axis=1)] == t)
        total += prior[t] * (right.mean() if len(ranked) > 1 else 1.0)
    found = several_queries_success(values[0], values[1], sigma, theta, order=order)
    assert found == pytest.approx(total, abs=6 / 40_000)


def test_the_reductions_meet():
    """Yeom et al. 2018, Theorem 6: the membership attack "member if the guess is right" has the same advantage.

    800,000 simulated people a side: four standard errors are 0.003.
    """
    rng = np.random.default_rng(0)
    predictions, prior = np.array([2.0, 0.0]), np.array([0.3, 0.7])
    rates = []
    for sigma in (0.5, 1.5):
        t = rng.choice(2, size=800_000, p=prior)
        y = predictions[t] + sigma * rng.normal(size=t.size)
        scores = np.log(prior) - (y[:, None] - predictions) ** 2 / (2 * 0.5**2)
        rates.append(np.mean(scores.argmax(axis=1) == t))
    assert rates[0] - rates[1] == pytest.approx(0.2235000226, abs=0.003)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: inversion_advantage(-1.0, 1.0, 2.0), "tau must be finite and at least 0"),
        (lambda: inversion_advantage(1.0, math.nan, 2.0), "sigma_in must be"),
        (lambda: inversion_advantage(1.0, 1.0, math.inf), "sigma_out must be"),
        (lambda: inversion_success([0.0], [0.5], 1.0, assumed_sigma=1.0), "sum to 1"),
        (lambda: inversion_success([0.0, 1.0], [1.5, -0.5], 1.0, assumed_sigma=1.0), "at least 0"),
        (lambda: inversion_success([0.0, 1.0], [1.0], 1.0, assumed_sigma=1.0), "one entry per value"),
        (lambda: inversion_success([], [], 1.0, assumed_sigma=1.0), "one entry per value"),
        (lambda: inversion_success([math.nan], [1.0], 1.0, assumed_sigma=1.0), "predictions must be finite"),
        (lambda: answered_errors([0.0], [1.0], -1.0), "assumed_sigma must be"),
        (lambda: uniform_guess_advantage(1.5, 2), "membership_advantage must be in"),
        (lambda: uniform_guess_advantage(0.5, 0), "n_values must be at least 1"),
        (lambda: several_queries_success([0.0], [1.0], 1.0, -1.0), "threshold must be"),
        (lambda: several_queries_success([0.0], [1.0], 1.0, 1.0, order="any"), "order must be"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
