"""Long et al. 2017, section 5.3: distance-based targeted attack."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from leakgauge.errors import DataError, ModelError
from leakgauge.membership import distance


def slow_divergence(a, b):
    """KL of two vectors as printed, one class at a time, with the conventions for zeros."""
    total = 0.0
    for a_i, b_i in zip(a, b, strict=True):
        if a_i == 0:
            continue
        if b_i == 0:
            return math.inf
        total += a_i * math.log(a_i / b_i)
    return total


def slow_score(q, mean_in, mean_out):
    """Difference of the two divergences; infinity against infinity says nothing."""
    to_in, to_out = slow_divergence(q, mean_in), slow_divergence(q, mean_out)
    return 0.0 if to_in == to_out == math.inf else to_out - to_in


def balanced_members(rng, n_models, n_records):
    """Random halves of the models, for each record on its own."""
    order = np.argsort(rng.random((n_models, n_records)), axis=0)
    return order < n_models // 2


def audit(target, shadows, members, *, equal_groups=True):
    """The whole attack on a table."""
    mean_in, mean_out, _, _ = distance.means_by_membership(shadows, members, equal_groups=equal_groups)
    return distance.scores(target, mean_in, mean_out)


# No leak first.


def test_null_answers_independent_of_membership_show_no_advantage():
    """400 audits of 100 members and 100 others, ten shadow models, answers of one law everywhere.

    At least 93 % of the 95 % Wald intervals of tpr - fpr must cover 0. With a new seed a correct attack fails 3 times
    in a hundred, one whose intervals miss 10 % passes 2 in a hundred.
    """
    rng = np.random.default_rng(31)
    n_records = 400 * 200
    shadows = rng.dirichlet([2, 2, 2], size=(10, n_records)).astype(np.float32)
    found = audit(rng.dirichlet([2, 2, 2], size=n_records), shadows, balanced_members(rng, 10, n_records))
    called = (found > 0).reshape(400, 2, 100)
    tpr, fpr = called.mean(axis=2).T
    assert 0.3 < called.mean() < 0.7
    covers = np.abs(tpr - fpr) <= 1.96 * np.sqrt((tpr * (1 - tpr) + fpr * (1 - fpr)) / 100)
    assert covers.mean() >= 0.93


def test_null_a_table_of_complementary_halves_without_the_target_shows_no_advantage():
    """Two answers of one law for all; every model plays the target once, the others are its shadow models.

    Half of the models are trained on the complements of the others' training sets, so once the target is taken out
    one more model lacks its records than has them. Averages over all of them would find an advantage of -0.08 here;
    the truth is 0. Within 4 standard errors of 0.0055, measured over 20 seeds since answers about one record share
    their shadow models; a new seed fails 6 times in 100,000.
    """
    rng = np.random.default_rng(37)
    n_models, n_records = 16, 4000
    first = rng.random((n_models // 2, n_records)) < 0.5
    members = np.concatenate([first, ~first])
    own = rng.choice([0.105, 0.905], p=[0.2, 0.8], size=(n_models, n_records))
    answers = np.stack([own, 1 - own], axis=-1)
    called = np.empty_like(members)
    for model in range(n_models):
        others = np.arange(n_models) != model
        called[model] = audit(answers[model], answers[others], members[others]) > 0
    assert called.mean() > 0.2
    assert called[members].mean() - called[~members].mean() == pytest.approx(0, abs=4 * 0.0055)


@pytest.mark.parametrize("equal_groups", [True, False])
@pytest.mark.parametrize("constant", [0.605, 1 / 3, 0.1, 0.7])
def test_null_a_constant_model_gives_exactly_zero_whatever_the_group_sizes(constant, equal_groups):
    """Averages of equal numbers over groups of different size differ by rounding; that must not decide."""
    n_models = 21
    members = np.arange(n_models)[:, None] < np.arange(1, n_models)[None, :]
    row = np.array([constant, 1 - constant, 0.005])
    shadows = np.broadcast_to(row, (n_models, n_models - 1, 3))
    target = np.broadcast_to(row, (n_models - 1, 3))
    assert not audit(target, shadows, members, equal_groups=equal_groups).any()


# Known answers.


@pytest.mark.parametrize(
    ("q", "mean_in", "mean_out", "to_in", "to_out"),
    # Long et al. 2017, section 5.3; reference values, computed independently.
    [
        ((0.905, 0.095), (0.835, 0.165), (0.605, 0.395), 0.0204088977, 0.2290735266),
        (
            (0.885, 0.105, 0.005),
            (0.8583333333, 0.1316666667, 0.005),
            (0.585, 0.335, 0.0816666667),
            0.0033138035,
            0.2305846719,
        ),
    ],
)
def test_worked_examples(q, mean_in, mean_out, to_in, to_out):
    assert slow_divergence(q, mean_in) == pytest.approx(to_in, abs=1e-9)  # the twin's helper is right too
    assert slow_divergence(q, mean_out) == pytest.approx(to_out, abs=1e-9)
    assert distance.scores([q], [mean_in], [mean_out]) == pytest.approx([to_out - to_in], abs=1e-9)


def test_means_of_the_worked_example():
    # Long et al. 2017, section 5.3; reference values, computed independently.
    shadows = [
        (0.905, 0.085, 0.005),
        (0.605, 0.295, 0.095),
        (0.875, 0.115, 0.005),
        (0.655, 0.305, 0.045),
        (0.795, 0.195, 0.005),
        (0.495, 0.405, 0.105),
    ]
    mean_in, mean_out, n_in, n_out = distance.means_by_membership(
        np.array(shadows)[:, None, :], np.array([True, False] * 3)[:, None]
    )
    assert mean_in[0] == pytest.approx([0.8583333333, 0.1316666667, 0.005], abs=1e-9)
    assert mean_out[0] == pytest.approx([0.585, 0.335, 0.0816666667], abs=1e-9)
    assert (n_in.tolist(), n_out.tolist()) == ([3], [3])


def test_accuracy_comes_near_the_best_possible():
    """Two classes; the first probability is 0.45 or 0.55 plus normal noise of 0.05 as a record is out or in.

    The best rule cuts half-way and is right with probability Phi(0.05 / 0.05) = Phi(1). The attack's cut is within
    0.001 of that with exact means; 40 shadow models move it by a few thousandths. Measured on 10,000 answers within 4
    standard errors plus 0.003; random guessing is 90 standard errors away.
    """
    rng = np.random.default_rng(32)
    n_models, n_records = 40, 10_000

    def answers(is_member):
        first = np.where(is_member, 0.55, 0.45) + 0.05 * rng.normal(size=is_member.shape)
        return np.stack([first, 1 - first], axis=-1)

    members = balanced_members(rng, n_models, n_records)
    is_member = np.arange(n_records) % 2 == 0
    found = audit(answers(is_member), answers(members), members)
    accuracy = np.mean((found > 0) == is_member)
    best = norm.cdf(1.0)
    error = math.sqrt(best * (1 - best) / n_records)
    assert best - 4 * error - 0.003 < accuracy < best + 4 * error


def test_swapping_in_and_out_turns_the_sign():
    rng = np.random.default_rng(33)
    target, mean_in, mean_out = rng.dirichlet(np.ones(4), size=(3, 100))
    forth = distance.scores(target, mean_in, mean_out)
    assert np.array_equal(distance.scores(target, mean_out, mean_in), -forth)
    members = balanced_members(rng, 6, 100)
    shadows = rng.dirichlet(np.ones(4), size=(6, 100))
    assert np.array_equal(audit(target, shadows, ~members), -audit(target, shadows, members))


# The slow twin.


def test_scores_equal_the_printed_formula():
    rng = np.random.default_rng(34)
    target, mean_in, mean_out = rng.dirichlet(np.full(5, 0.3), size=(3, 300))
    for table in (target, mean_in, mean_out):
        table[rng.random(table.shape) < 0.15] = 0.0
    expected = [slow_score(*rows) for rows in zip(target, mean_in, mean_out, strict=True)]
    assert {math.inf, -math.inf, 0.0} < set(expected)
    assert distance.scores(target, mean_in, mean_out) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("equal_groups", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_equal_a_loop(dtype, equal_groups):
    rng = np.random.default_rng(35)
    shadows = rng.dirichlet(np.ones(3), size=(7, 40)).astype(dtype)
    members = rng.random((7, 40)) < 0.5
    members[0], members[1] = True, False
    mean_in, mean_out, n_in, n_out = distance.means_by_membership(shadows, members, equal_groups=equal_groups)
    assert np.any(n_in < np.count_nonzero(members, axis=0)) == equal_groups
    for record in range(40):
        inside = [shadows[model, record].astype(float) for model in range(7) if members[model, record]]
        outside = [shadows[model, record].astype(float) for model in range(7) if not members[model, record]]
        if equal_groups:
            size = min(len(inside), len(outside))
            inside, outside = inside[:size], outside[:size]
        assert mean_in[record] == pytest.approx(sum(inside) / len(inside), rel=1e-14)
        assert mean_out[record] == pytest.approx(sum(outside) / len(outside), rel=1e-14)
        assert (n_in[record], n_out[record]) == (len(inside), len(outside))


# Edges.


def test_zeros_follow_the_conventions():
    # Target, mean with, mean without: one class after the other.
    q = [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [0.5, 0.5]]
    mean_in = [[1.0, 0.0], [0.5, 0.5], [1.0, 0.0], [0.9, 0.0], [0.0, 1.0]]
    mean_out = [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0], [0.3, 0.7], [0.0, 1.0]]
    found = distance.scores(q, mean_in, mean_out)
    assert found[:3].tolist() == [-np.inf, np.inf, 0.0]
    assert found[3] == pytest.approx(math.log(3))
    assert found[4] == 0.0


def test_a_tie_is_a_non_member():
    assert distance.scores([[0.5, 0.5]], [[0.3, 0.7]], [[0.7, 0.3]]).tolist() == [0.0]
    assert distance.scores([[0.2, 0.8]], [[0.6, 0.4]], [[0.6, 0.4]]).tolist() == [0.0]


def test_perfect_and_inverted_separation():
    members = np.array([[True, False], [False, True]])
    shadows = np.where(members[:, :, None], [0.995, 0.005], [0.005, 0.995])
    as_in = np.array([[0.995, 0.005]] * 2)
    assert audit(as_in, shadows, members) == pytest.approx([0.99 * math.log(199)] * 2)
    assert audit(as_in[:, ::-1], shadows, members) == pytest.approx([-0.99 * math.log(199)] * 2)


def test_binned_answers_are_not_renormalised():
    q, mean_in, mean_out = [[0.9, 0.05]], [[0.8, 0.15]], [[0.6, 0.35]]
    assert distance.scores(q, mean_in, mean_out) == pytest.approx([slow_score(q[0], mean_in[0], mean_out[0])])


def test_rounding_beyond_the_unit_interval_is_removed():
    found = distance.scores([[1.0 + 1e-12, -1e-12]], [[1.0, 0.0]], [[0.5, 0.5]])
    assert found == pytest.approx([math.log(2)])
    single = np.array([[1.0000001, 0.0]], dtype=np.float32)
    assert distance.scores(single, [[1.0, 0.0]], [[0.5, 0.5]]) == pytest.approx([math.log(2)])


def test_whole_numbers_are_probabilities_too():
    assert distance.scores([[1, 0]], [[1, 0]], [[0, 1]]).tolist() == [np.inf]


GOOD = np.array([[0.4, 0.6], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([[0.4, 0.6], [0.5, np.nan]], r"target\[1, 1\] is nan; probabilities must lie in \[0, 1\] and not be NaN"),
        ([[0.4, 0.6], [1.2, 0.0]], r"target\[1, 0\] is 1\.2"),
        (np.log(GOOD), r"target\[0, 0\] is -0\.9.*logarithms must be exponentiated"),
        ([0.4, 0.6], r"target must have shape \[records, classes\], got \(2,\)"),
        ([[0.4], [0.5]], r"target must have shape \[records, classes\].*one column per class.*\(2, 1\)"),
        (np.zeros((0, 2)), r"target must have shape \[records, classes\] with at least one of each"),
        ([["a", "b"]], r"target must hold probabilities, got values of type <U1"),
    ],
)
def test_bad_targets_are_refused(target, message):
    with pytest.raises(ModelError, match=message):
        distance.scores(target, GOOD, GOOD)


def test_bad_means_are_refused():
    with pytest.raises(ModelError, match=r"mean_in must have the shape of target, \(2, 2\), got \(1, 2\)"):
        distance.scores(GOOD, GOOD[:1], GOOD)
    with pytest.raises(ModelError, match=r"mean_out\[0, 0\] is nan"):
        distance.scores(GOOD, GOOD, np.full((2, 2), np.nan))


def test_bad_tables_are_refused():
    members = np.array([[True, False], [False, True]])
    shadows = np.stack([GOOD, GOOD])
    with pytest.raises(ModelError, match=r"probabilities must have shape \[models, records, classes\], got \(2, 2\)"):
        distance.means_by_membership(GOOD, members)
    with pytest.raises(ModelError, match=r"probabilities\[1, 0, 1\] is nan"):
        distance.means_by_membership(np.where(np.arange(8).reshape(2, 2, 2) == 5, np.nan, shadows), members)
    with pytest.raises(DataError, match=r"members must have shape \[models, records\] = \(2, 2\).*got \(1, 2\)"):
        distance.means_by_membership(shadows, members[:1])
    with pytest.raises(DataError, match=r"members must be bool \(True: trained on\), got int64; use \.astype\(bool\)"):
        distance.means_by_membership(shadows, members.astype(np.int64))


@pytest.mark.parametrize(("value", "kind"), [(False, "trained on"), (True, "left out")])
def test_records_without_models_of_both_kinds_are_named(value, kind):
    members = balanced_members(np.random.default_rng(36), 4, 12)
    members[:, 3:10] = value
    with pytest.raises(
        DataError,
        match=rf"7 of 12 records are {kind} by none of the 4 shadow models \(records 3, 4, 5, 6, 7, \.\.\.\).*"
        "train more shadow models, or draw balanced subsets",
    ):
        distance.means_by_membership(np.full((4, 12, 2), 0.5), members)
