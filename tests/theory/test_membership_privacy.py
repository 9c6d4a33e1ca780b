"""Izzo et al. 2022: what membership inference privacy promises, and what implies it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakgauge.theory import (
    ReciprocalSum,
    accuracy_bound,
    accuracy_from_advantage,
    advantage_bound,
    advantage_from_eta,
    epsilon_from_eta,
    eta_from_advantage,
    eta_from_epsilon,
    gaussian_noise_factor,
    laplace_scale,
    least_noise_factor,
    membership_accuracy,
    noise_factor,
    noise_factor_izzo,
    posterior_range,
    published_records_accuracy,
)

shares = st.floats(0.01, 0.99)

# No leak first.


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_an_output_that_tells_nothing_leaves_the_guess(share):
    law = [0.2, 0.3, 0.5]
    assert membership_accuracy(law, law, share=share) == pytest.approx(max(share, 1 - share))
    assert accuracy_bound(0.0, share=share) == max(share, 1 - share)
    assert eta_from_epsilon(0.0, share=share) == 0.0
    assert eta_from_advantage(0.0, share=share) == 0.0
    assert posterior_range(0.0, share=share) == pytest.approx((share, share))


@pytest.mark.parametrize(("n", "k"), [(4, 2), (5, 1), (6, 4)])
def test_nothing_published_tells_nothing(n, k):
    assert published_records_accuracy(n, k, 0.0) == pytest.approx(max(k, n - k) / n)


# Known answers.


@pytest.mark.parametrize(
    ("epsilon", "delta", "expected"),
    [
        (0.1, 0, 0.0249791875),
        (0.5, 0, 0.1224593312),
        (math.log(2), 0, 0.1666666667),
        (1, 0, 0.2310585786),
        (2, 0, 0.3807970780),
        (1, 1e-5, 0.2310612680),
        (1, 0.01, 0.2337479928),
        (0.5, 0.1, 0.1602133981),
        (2, 0.05, 0.3867572241),
    ],
)
def test_values_of_eta(epsilon, delta, expected):
    # Specification of MIP, section 3; Izzo et al. 2022, Theorem 4, and Kairouz et al. 2015.
    assert eta_from_epsilon(epsilon, delta) == pytest.approx(expected, abs=1e-10)
    assert accuracy_bound(epsilon, delta) == pytest.approx(0.5 + expected, abs=1e-10)
    assert epsilon_from_eta(expected, delta) == pytest.approx(epsilon, abs=1e-8)


def test_small_epsilon_is_four_eta():
    # Izzo et al. 2022, section 3.4.
    assert eta_from_epsilon(1e-6) == pytest.approx(2.5e-7, rel=1e-9)
    assert epsilon_from_eta(0.1) == pytest.approx(math.log(1.2 / 0.8))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_theorem_4_is_tight(epsilon):
    """Pool of two records, training sets of one: the set with probability e^eps / (1 + e^eps), else the other."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert membership_accuracy([p, 1 - p], [1 - p, p]) == pytest.approx(accuracy_bound(epsilon))


@pytest.mark.parametrize(
    ("n", "k", "p", "expected"), [(4, 2, 0.1, 0.55), (6, 3, 0.2, 0.6), (6, 3, 0.5, 0.75), (5, 2, 0.3, 0.72)]
)
def test_theorem_5_published_records(n, k, p, expected):
    # Specification of MIP, section 3.
    assert published_records_accuracy(n, k, p) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 6, 7])
@pytest.mark.parametrize("part", [0.0, 0.3, 1.0])
def test_what_eta_allows_of_an_advantage_is_reached_by_an_algorithm_that_keeps_it(n, part):
    """By enumeration of all training sets, every k: the output is 1 with z* = 0, else 1 with probability f.

    The best attack on every record is right with probability ``max(q, 1 - q) + eta`` at most, and the best on z* has
    the advantage that the theorem allows.
    """
    for k in range(1, n):
        q = k / n
        eta = part * min(q, 1 - q)
        allowed = advantage_from_eta(eta, share=q)
        sets = [set(one) for one in itertools.combinations(range(n), k)]
        # For q above 1/2 the two worlds of z* change places.
        ones = [1.0 if (0 in one) == (q <= 0.5) else 1 - allowed for one in sets]
        for record in range(n):
            inside = float(np.mean([p for one, p in zip(sets, ones, strict=True) if record in one]))
            outside = float(np.mean([p for one, p in zip(sets, ones, strict=True) if record not in one]))
            accuracy = membership_accuracy([inside, 1 - inside], [outside, 1 - outside], share=q)
            assert accuracy <= max(q, 1 - q) + eta + 1e-12
            if record == 0:
                assert abs(inside - outside) == pytest.approx(allowed, abs=1e-12)
                assert accuracy == pytest.approx(max(q, 1 - q) + eta, abs=1e-12)


@given(st.lists(st.floats(0.01, 1), min_size=4, max_size=4), shares)
def test_no_attack_beats_what_eta_allows(weights, share):
    """Any two laws of two outputs: their eta, and the advantage of the best attack, by hand."""
    a, b = weights[0] / (weights[0] + weights[1]), weights[2] / (weights[2] + weights[3])
    eta = max(0.0, membership_accuracy([a, 1 - a], [b, 1 - b], share=share) - max(share, 1 - share))
    assert abs(a - b) <= advantage_from_eta(min(eta, share, 1 - share), share=share) + 1e-9


def test_an_eta_says_little_about_an_advantage_where_most_are_members():
    """10 of 12: eta = 0.1 / 6, meant as an advantage of 0.1, allows 0.82; even eta = 0 allows 0.8."""
    assert advantage_from_eta(0.1 / 6, share=10 / 12) == pytest.approx(0.82)
    assert advantage_from_eta(0.0, share=10 / 12) == pytest.approx(0.8)


@pytest.mark.parametrize("share", [0.1, 0.5, 10 / 12])
def test_a_bound_on_the_advantage_bounds_the_accuracy(share):
    """The two worlds of which an output tells nothing, except that it gives a record away with that probability."""
    assert accuracy_from_advantage(0.0, share=share) == max(share, 1 - share)
    assert accuracy_from_advantage(1.0, share=share) == pytest.approx(1.0)
    told = [0.3, 0.0, 0.7], [0.0, 0.3, 0.7]
    assert membership_accuracy(*told, share=share) == pytest.approx(accuracy_from_advantage(0.3, share=share))


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (2, (379456.0, 15178.24, 3794.56, 948.64, 421.6178, 237.16)),
        (4, (15288.7179, 1367.4645, 483.4717, 170.9331, 93.0442, 60.4340)),
        (6, (5241.3233, 613.0289, 243.2807, 96.5460, 56.2271, 38.3143)),
    ],
)
def test_the_printed_factor(moment, expected):
    # Specification of MIP, section 4.
    for eta, factor in zip((0.01, 0.05, 0.1, 0.2, 0.3, 0.4), expected, strict=True):
        assert noise_factor_izzo(eta, moment) == pytest.approx(factor, abs=6e-5)


def test_the_printed_factor_of_theorem_7():
    # Specification of MIP, section 4, last column, by its formula with 7.5: what holds for M below 2.
    for eta, factor in zip(
        (0.01, 0.05, 0.1, 0.2, 0.3, 0.4), (562500, 22500, 5625, 1406.25, 625, 351.5625), strict=True
    ):
        assert (7.5 / eta) ** 2 == pytest.approx(factor)
    assert noise_factor_izzo(0.1, 1.5) == pytest.approx((7.5 / 0.1) ** (1 + 2 / 1.5))


def test_the_sharp_factor_and_how_sharp_it_is():
    # Specification of MIP, section 6.2.
    assert [noise_factor(eta) for eta in (0.05, 0.1, 0.2)] == pytest.approx([10, 5, 2.5])
    assert [least_noise_factor(eta) for eta in (0.05, 0.1, 0.2)] == pytest.approx([9.4912, 4.4814, 1.9576], abs=5e-5)
    assert noise_factor_izzo(0.1) / noise_factor(0.1) == pytest.approx(759, abs=0.5)


def test_the_gaussian_factor():
    # Specification of MIP, section 6.3.
    assert gaussian_noise_factor(0.1, 9) == pytest.approx(3 / (0.1 * math.sqrt(2 * math.pi)))


@pytest.mark.parametrize(
    ("n", "n_subsets", "largest", "sensitivity", "deviation", "absolute"),
    [
        (8, 70, 8.366600, 8.352516, 0.990051, 0.237926),
        (12, 924, 30.397368, 30.396420, 0.999401, 0.065796),
        (16, 12870, 113.446022, 113.445962, 0.999960, 0.017629),
        (20, 184756, 429.832526, 429.832522, 0.999997, 0.004653),
    ],
)
def test_proposition_9(n, n_subsets, largest, sensitivity, deviation, absolute):
    # Specification of MIP, section 7.
    example = ReciprocalSum(n)
    assert example.n_subsets == n_subsets
    assert example.largest == pytest.approx(largest, abs=6e-7)
    assert example.sensitivity == pytest.approx(sensitivity, abs=6e-7)
    assert example.deviation == pytest.approx(deviation, abs=6e-7)
    assert example.mean_absolute_deviation == pytest.approx(absolute, abs=6e-7)


@pytest.mark.parametrize(
    ("n", "n_subsets", "largest"), [(36, 9075135300, 95263.504554), (48, 32247603683100, 5678697.357942)]
)
def test_proposition_9_for_large_pools(n, n_subsets, largest):
    # Specification of MIP, section 7; A loses its digits beside 2^(n/2), and is never formed.
    example = ReciprocalSum(n)
    assert example.n_subsets == n_subsets
    assert example.largest == pytest.approx(largest, abs=6e-7)
    assert example.sensitivity > 2 ** (n / 3)


def test_the_laplace_scale_of_dp():
    # Specification of MIP, section 7: n = 24, eta = 0.1.
    assert laplace_scale(ReciprocalSum(24).sensitivity, 0.1) == pytest.approx(4055.67, abs=0.005)


# The slow twins.


def test_proposition_9_by_hand():
    """Every half of the pool of six, with A as it is printed."""
    p = 1 / 20
    pool = [1, 2, 4, 8, 16, math.sqrt(p) - 3]
    outputs = np.array([1 / sum(half) for half in itertools.combinations(pool, 3)])
    example = ReciprocalSum(6)
    assert example.largest == pytest.approx(outputs.max())
    assert np.sort(outputs)[:-1].max() <= 1
    assert example.deviation == pytest.approx(outputs.std())
    assert example.mean_absolute_deviation == pytest.approx(np.abs(outputs - outputs.mean()).mean())
    halves = [set(half) for half in itertools.combinations(range(6), 3)]
    neighbours = [(i, j) for i, j in itertools.combinations(range(20), 2) if len(halves[i] & halves[j]) == 2]
    assert example.sensitivity == pytest.approx(max(abs(outputs[i] - outputs[j]) for i, j in neighbours))


@pytest.mark.parametrize(
    ("n", "k", "p"), [(4, 2, 0.1), (5, 2, 0.3), (5, 3, 0.3), (6, 4, 0.5), (4, 1, 0.9), (4, 3, 1.0)]
)
def test_published_records_by_enumeration(n, k, p):
    """Every training set and every set of published records; all of them is the output."""
    inside, outside = {}, {}
    for members in itertools.combinations(range(n), k):
        for n_shown in range(k + 1):
            for shown in itertools.combinations(members, n_shown):
                law = inside if 0 in members else outside
                law[shown] = law.get(shown, 0.0) + p**n_shown * (1 - p) ** (k - n_shown)
    laws = [
        [law.get(shown, 0.0) / math.comb(n - 1, k - own) for shown in inside.keys() | outside.keys()]
        for law, own in ((inside, 1), (outside, 0))
    ]
    assert membership_accuracy(*laws, share=k / n) == pytest.approx(published_records_accuracy(n, k, p))


def test_the_bound_for_every_size_of_training_sets():
    """Izzo et al. 2022, Theorem 4 and the specification's form for all k: 3,000 random mechanisms, none above it.

    Mechanisms are random tables of probabilities over four outputs; their epsilon is the largest log ratio of two
    neighbouring training sets, so that each bound is asked at exactly the epsilon that the mechanism has.
    """
    rng = np.random.default_rng(0)
    gaps = []
    for n, k in [(3, 1), (3, 2), (4, 1), (4, 2), (4, 3), (5, 1), (5, 2), (5, 3), (5, 4)] * 334:
        sets = list(itertools.combinations(range(n), k))
        tables = rng.dirichlet(np.ones(4) * rng.uniform(0.3, 3), len(sets)) + 1e-6
        tables /= tables.sum(axis=1, keepdims=True)
        epsilon = max(
            np.abs(np.log(tables[i] / tables[j])).max()
            for i, j in itertools.combinations(range(len(sets)), 2)
            if len(set(sets[i]) & set(sets[j])) == k - 1
        )
        inside = np.array([0 in one for one in sets])
        accuracy = membership_accuracy(tables[inside].mean(axis=0), tables[~inside].mean(axis=0), share=k / n)
        gaps.append(accuracy_bound(float(epsilon), share=k / n) - accuracy)
    assert len(gaps) > 3000
    assert min(gaps) > -1e-12


# Laws.


@given(shares, st.floats(0, 1))
def test_no_attack_is_better_than_its_advantage_allows_and_the_other_way_round(share, advantage):
    """The best case of either conversion is reached: an attack with tpr = a, fpr = 0, or with tpr = 1."""
    most = min(share, 1 - share)
    eta = eta_from_advantage(advantage, share=share)
    assert 0 <= eta <= most
    assert advantage_from_eta(eta, share=share) >= advantage - 1e-12
    told = [advantage, 1 - advantage]  # one output happens in one world only
    worst = max(membership_accuracy(told, [0.0, 1.0], share=share), membership_accuracy([0.0, 1.0], told, share=share))
    both = membership_accuracy([*told, 0.0], [0.0, told[1], advantage], share=share)
    assert max(worst, both) == pytest.approx(max(share, 1 - share) + eta)


@given(st.floats(0, 20), st.floats(0, 0.3))
def test_equal_shares_are_half_the_advantage(epsilon, delta):
    assert 2 * eta_from_epsilon(epsilon, delta) == pytest.approx(advantage_bound(epsilon, delta))


@given(st.floats(0.01, 15), shares)
def test_epsilon_and_back(epsilon, share):
    eta = eta_from_epsilon(epsilon, share=share)
    back = epsilon_from_eta(min(eta, min(share, 1 - share)), share=share)
    assert back >= epsilon * (1 - 1e-6) - 1e-9
    if eta > 1e-9:
        assert back == pytest.approx(epsilon, rel=1e-3)


@given(st.floats(0, 10), shares)
def test_proposition_6_bounds_every_output(epsilon, share):
    low, high = posterior_range(epsilon, share=share)
    assert low <= share * (1 + 1e-12)
    assert high >= share * (1 - 1e-12)
    assert math.log(high / (1 - high)) == pytest.approx(math.log(share / (1 - share)) + epsilon)


def test_limits():
    assert epsilon_from_eta(0.5) == math.inf
    assert eta_from_epsilon(math.inf) == 0.5
    assert posterior_range(math.inf, share=0.3) == (0.0, 1.0)
    assert noise_factor_izzo(0.1, math.inf) == pytest.approx(61.6)


# Refusals.


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: noise_factor(0.0), r"eta must be in \(0, 1/2\), got 0.0; at 0 no noise is enough"),
        (lambda: noise_factor(0.5), r"eta must be in \(0, 1/2\), got 0.5"),
        (lambda: noise_factor(math.nan), r"eta must be in \(0, 1/2\), got nan"),
        (lambda: noise_factor_izzo(0.1, 0.5), "moment must be at least 1, got 0.5"),
        (lambda: gaussian_noise_factor(0.1, 0), "dimension must be at least 1, got 0"),
        (lambda: accuracy_bound(1.0, share=1.0), r"share must be in \(0, 1\), got 1.0; with none or all"),
        (lambda: accuracy_bound(-1.0), "epsilon must be at least 0"),
        (lambda: advantage_from_eta(0.4, share=0.25), r"eta must be in \[0, 0.25\], got 0.4"),
        (lambda: eta_from_advantage(1.5), r"advantage must be in \[0, 1\], got 1.5"),
        (lambda: epsilon_from_eta(0.1, 0.3), "delta = 0.3 is too large for eta = 0.1"),
        (lambda: published_records_accuracy(4, 4, 0.5), "size must be in 1..n_pool - 1 = 3, got 4"),
        (lambda: published_records_accuracy(4, 2, 1.5), r"probability must be in \[0, 1\], got 1.5"),
        (lambda: membership_accuracy([0.5], [1.0]), "inside must be probabilities that sum to 1, got a sum of 0.5"),
        (lambda: ReciprocalSum(7), "n must be even and at least 4, got 7"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
