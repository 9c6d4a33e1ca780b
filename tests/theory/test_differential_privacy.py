from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakgauge.theory import (
    PrivacyLoss,
    add_remove_to_replace_one,
    advantage_bound,
    advantage_bound_yeom,
    average_advantage_bound,
)

EPSILONS = st.floats(0, 20)
DELTAS = st.floats(0, 1)
BOUNDS = [advantage_bound, average_advantage_bound, advantage_bound_yeom]


@pytest.mark.parametrize("bound", BOUNDS)
def test_no_privacy_loss_no_advantage(bound):
    assert bound(0.0) == 0.0


@pytest.mark.parametrize(
    ("epsilon", "yeom", "worst", "average"),
    [  # Reference values, computed independently.
        (0.1, 0.1051709181, 0.0499583750, 0.0249947930),
        (0.5, 0.6487212707, 0.2449186624, 0.1243530018),
        (1.0, 1.7182818285, 0.4621171573, 0.2449186624),
        (2.0, 6.3890560989, 0.7615941560, 0.4621171573),
    ],
)
def test_reference_values(epsilon, yeom, worst, average):
    assert advantage_bound_yeom(epsilon) == pytest.approx(yeom, abs=1e-9)
    assert advantage_bound(epsilon) == pytest.approx(worst, abs=1e-9)
    assert average_advantage_bound(epsilon) == pytest.approx(average, abs=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta", "expected"),
    [(1.0, 0.01, 0.4674959857), (0.5, 0.1, 0.3204267962), (2.0, 0.05, 0.7735144482)],
)
def test_reference_values_with_delta(epsilon, delta, expected):
    assert advantage_bound(epsilon, delta) == pytest.approx(expected, abs=1e-9)


def test_first_bound_is_vacuous_from_ln_2():
    assert advantage_bound_yeom(math.log(2)) == pytest.approx(1.0, abs=1e-15)
    assert advantage_bound_yeom(1000.0) == math.inf


@given(EPSILONS)
def test_order_of_the_bounds(epsilon):
    values = [
        average_advantage_bound(epsilon),
        advantage_bound(epsilon),
        advantage_bound_yeom(epsilon),
    ]
    assert values == sorted(values)


@given(EPSILONS, EPSILONS, DELTAS, DELTAS)
def test_more_privacy_loss_is_never_a_smaller_bound(epsilon_a, epsilon_b, delta_a, delta_b):
    less = advantage_bound(min(epsilon_a, epsilon_b), min(delta_a, delta_b))
    assert less <= advantage_bound(max(epsilon_a, epsilon_b), max(delta_a, delta_b)) + 1e-15


@given(st.floats(0, 600), DELTAS)
def test_agrees_with_the_fraction_as_printed(epsilon, delta):
    printed = (math.exp(epsilon) - 1 + 2 * delta) / (math.exp(epsilon) + 1)
    assert advantage_bound(epsilon, delta) == pytest.approx(printed, abs=1e-14)


@pytest.mark.parametrize("bound", [advantage_bound, average_advantage_bound])
def test_no_privacy_at_all(bound):
    assert bound(1e6) == bound(math.inf) == 1.0


def test_delta_one_promises_nothing():
    assert advantage_bound(0.0, 1.0) == 1.0


def total_variation(p: np.ndarray, q: np.ndarray) -> float:
    return 0.5 * float(np.abs(p - q).sum())


def largest_log_ratio(laws: np.ndarray) -> float:
    """Epsilon of a mechanism given as one output law per input."""
    return max(float(np.log(a / b).max()) for a, b in itertools.permutations(laws, 2))


def randomised_response(n_values: int, epsilon: float) -> np.ndarray:
    """Output law per input: the truth with weight e^epsilon, every other value with weight 1."""
    weights = np.ones((n_values, n_values)) + np.expm1(epsilon) * np.eye(n_values)
    return weights / weights.sum(axis=1, keepdims=True)


def average_advantage(laws: np.ndarray) -> float:
    """Best advantage in the game of Yeom et al. 2018, Experiment 1, by enumeration of (record, output).

    One training record, population uniform over the inputs: a member is the trained-on record, a non-member
    a fresh draw.
    """
    n_values = len(laws)
    member = laws / n_values
    nonmember = np.tile(laws.mean(axis=0), (n_values, 1)) / n_values
    return total_variation(member, nonmember)


def pool_advantage(mechanism, n_pool: int, target: int) -> float:
    """Best advantage on one record of a pool of which a random half is trained on, by enumeration."""
    with_target, without = [], []
    for subset in itertools.combinations(range(n_pool), n_pool // 2):
        (with_target if target in subset else without).append(mechanism(subset))
    return total_variation(np.mean(with_target, axis=0), np.mean(without, axis=0))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2 * math.log(3), 4.0])
def test_worst_record_bound_is_attained(epsilon):
    """Randomised response on "is the target in the training set", pool of 4, training sets of 2."""
    laws = randomised_response(2, epsilon)
    assert largest_log_ratio(laws) == pytest.approx(epsilon)
    attained = pool_advantage(lambda subset: laws[int(0 in subset)], 4, target=0)
    assert attained == pytest.approx(advantage_bound(epsilon), abs=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.01), (0.5, 0.1), (0.0, 0.3)])
def test_bound_with_delta_is_attained(epsilon, delta):
    """As above, but with probability delta the answer is given in clear (outputs 2 and 3)."""
    laws = np.hstack([(1 - delta) * randomised_response(2, epsilon), delta * np.eye(2)])
    # (epsilon, delta) by definition: what exceeds e^epsilon times the other law has probability delta.
    assert np.maximum(laws[0] - math.exp(epsilon) * laws[1], 0).sum() == pytest.approx(delta)
    attained = pool_advantage(lambda subset: laws[int(0 in subset)], 4, target=0)
    assert attained == pytest.approx(advantage_bound(epsilon, delta), abs=1e-12)


def test_average_bound_is_attained_by_randomised_response_over_four_values():
    # Reference value, computed independently: true-positive rate 0.75, false-positive rate 0.25.
    epsilon = 2 * math.log(3)
    laws = randomised_response(4, epsilon)
    assert laws[0, 0] == pytest.approx(0.75)
    attained = average_advantage(laws)
    assert attained == pytest.approx(0.5, abs=1e-12)
    assert attained == pytest.approx(average_advantage_bound(epsilon), abs=1e-12)
    # The attack that attains it: member if and only if the output equals the record.
    assert laws[0, 0] - laws.mean(axis=0)[0] == pytest.approx(attained)


def test_no_mechanism_exceeds_the_bounds():
    """3,000 random mechanisms with known epsilon; bounds are theorems, so there are no false alarms."""
    rng = np.random.default_rng(0)
    closest = 0.0
    for _ in range(3000):
        n_values, n_outputs = rng.integers(2, 6, size=2)
        laws = rng.dirichlet(np.full(n_outputs, rng.choice([0.3, 1.0, 10.0])), size=n_values) + 1e-9
        laws /= laws.sum(axis=1, keepdims=True)
        epsilon = largest_log_ratio(laws)
        assert average_advantage(laws) <= average_advantage_bound(epsilon) + 1e-12
        worst = max(total_variation(a, b) for a, b in itertools.combinations(laws, 2))
        assert worst <= advantage_bound(epsilon) + 1e-12
        closest = max(closest, worst / advantage_bound(epsilon))
    assert closest > 0.95


class TestAdjacency:
    def test_values(self):
        converted = add_remove_to_replace_one(1.0, 1e-5)
        assert converted.epsilon == 2.0
        assert converted.delta == pytest.approx((1 + math.e) * 1e-5, rel=1e-12)
        assert add_remove_to_replace_one(0.7) == PrivacyLoss(1.4, 0.0)

    def test_extremes(self):
        assert add_remove_to_replace_one(math.inf) == PrivacyLoss(math.inf, 0.0)
        assert add_remove_to_replace_one(5.0, 0.5) == PrivacyLoss(10.0, 1.0)
        assert add_remove_to_replace_one(1000.0, 1e-9) == PrivacyLoss(2000.0, 1.0)

    @given(st.floats(0, 3), st.floats(0, 0.2))
    def test_two_steps_of_the_worst_mechanism_stay_within(self, epsilon, delta):
        """An event of probability p, q, r under three data sets, each step at the limit of what is allowed."""
        q = 0.3
        p, r = min(1.0, math.exp(epsilon) * q + delta), (q - delta) * math.exp(-epsilon)
        converted = add_remove_to_replace_one(epsilon, delta)
        excess = p - math.exp(converted.epsilon) * r
        assert excess <= converted.delta + 1e-12
        if p < 1.0:
            assert excess == pytest.approx(converted.delta, abs=1e-12)


@pytest.mark.parametrize("bound", [*BOUNDS, add_remove_to_replace_one, PrivacyLoss])
@pytest.mark.parametrize("epsilon", [-0.1, math.nan])
def test_refuses_epsilon(bound, epsilon):
    with pytest.raises(ValueError, match=rf"epsilon must be at least 0, got {epsilon}; it is the largest log"):
        bound(epsilon)


@pytest.mark.parametrize("bound", [advantage_bound, add_remove_to_replace_one, PrivacyLoss])
@pytest.mark.parametrize("delta", [-0.1, 1.1, math.nan])
def test_refuses_delta(bound, delta):
    with pytest.raises(ValueError, match=rf"delta must be in \[0, 1\], got {delta}; it is a probability"):
        bound(1.0, delta)
