"""Long et al. 2017, section 5.3: frequency-based targeted attack."""

from __future__ import annotations

import math

import numpy as np
import pytest

from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.membership import frequency
from leakgauge.theory import bin_centres


def balanced_members(rng, n_models, n_records):
    """Random halves of the models, for each record on its own."""
    order = np.argsort(rng.random((n_models, n_records)), axis=0)
    return order < n_models // 2


def slow_bin(p, width=0.01):
    """Number of the bin, from the definition."""
    return min(math.floor(p / width + 1e-9), round(1 / width) - 1)


def slow_score(target, shadows, trained_on, pseudo_count):
    """The score of one record, one class at a time, for groups of equal size."""
    factors = []
    for class_, p in enumerate(target):
        same = [slow_bin(shadow[class_]) == slow_bin(p) for shadow in shadows]
        o_in = sum(hit for hit, inside in zip(same, trained_on, strict=True) if inside) + pseudo_count
        o_out = sum(hit for hit, inside in zip(same, trained_on, strict=True) if not inside) + pseudo_count
        if o_in == o_out == 0:
            continue
        factors.append(math.inf if o_out == 0 else -math.inf if o_in == 0 else math.log(o_in / o_out))
    if math.inf in factors and -math.inf in factors:
        return 0.0
    return sum(factors)


# No leak first.


def test_null_answers_independent_of_membership_show_no_advantage():
    """400 audits of 100 members and 100 others, ten shadow models, answers of one law everywhere.

    At least 93 % of the 95 % Wald intervals of tpr - fpr must cover 0. With a new seed a correct attack fails 3 times
    in a hundred, one whose intervals miss 10 % passes 2 in a hundred.
    """
    rng = np.random.default_rng(41)
    n_records = 400 * 200
    shadows = rng.beta(2, 2, size=(10, n_records, 1))
    target = rng.beta(2, 2, size=(n_records, 1))
    found = frequency.scores(
        np.concatenate([target, 1 - target], axis=-1),
        np.concatenate([shadows, 1 - shadows], axis=-1),
        balanced_members(rng, 10, n_records),
        width=0.1,
    )
    tpr, fpr = (found > 0).reshape(400, 2, 100).mean(axis=2).T
    assert 0.2 < tpr.mean() < 0.6
    covers = np.abs(tpr - fpr) <= 1.96 * np.sqrt((tpr * (1 - tpr) + fpr * (1 - fpr)) / 100)
    assert covers.mean() >= 0.93


def test_null_a_table_of_complementary_halves_without_the_target_shows_no_advantage():
    """Two answers of one law for all; every model plays the target once, the others are its shadow models.

    Half of the models are trained on the complements of the others' training sets, so once the target is taken out
    one more model lacks its records than has them. Raw counts over all of them would find an advantage of -0.33 here;
    the truth is 0. Within 4 standard errors of 0.0055, measured over 20 seeds since answers about one record share
    their shadow models; a new seed fails 6 times in 100,000.
    """
    rng = np.random.default_rng(46)
    n_models, n_records = 16, 4000
    first = rng.random((n_models // 2, n_records)) < 0.5
    members = np.concatenate([first, ~first])
    own = rng.choice([0.105, 0.905], p=[0.2, 0.8], size=(n_models, n_records))
    answers = np.stack([own, 1 - own], axis=-1)
    called = np.empty_like(members)
    for model in range(n_models):
        others = np.arange(n_models) != model
        called[model] = frequency.scores(answers[model], answers[others], members[others]) > 0
    assert called.mean() > 0.2
    assert called[members].mean() - called[~members].mean() == pytest.approx(0, abs=4 * 0.0055)


@pytest.mark.parametrize("pseudo_count", [0.0, 0.5, 1.0])
def test_null_group_sizes_alone_decide_nothing(pseudo_count):
    """All shadow models in the target's bin, or none: the score is exactly 0 for any sizes of the two groups."""
    n_models = 11
    members = np.arange(n_models)[:, None] < np.arange(1, n_models)[None, :]
    shadows = np.broadcast_to([0.3, 0.7], (n_models, n_models - 1, 2))
    for answer in ([0.3, 0.7], [0.51, 0.49]):
        target = np.broadcast_to(answer, (n_models - 1, 2))
        assert not frequency.scores(target, shadows, members, pseudo_count=pseudo_count).any()


# Known answers.


@pytest.mark.parametrize(
    ("o_in", "o_out", "pseudo_count", "score"),
    # Long et al. 2017, section 5.3; reference values, computed independently.
    [
        ((3, 2, 5), (1, 0, 4), 1.0, 1.9740810260),  # ln 7.2
        ((3, 2, 5), (1, 0, 4), 0.0, math.inf),
        ((0, 2, 5), (1, 0, 4), 0.0, 0.0),  # infinities of both signs
        ((0, 2, 5), (1, 0, 4), 1.0, math.log(1.8)),
        ((0, 2, 5), (0, 1, 4), 0.0, math.log(2.5)),  # 0/0 counts as 1
        ((0, 2, 5), (3, 1, 4), 0.0, -math.inf),
    ],
)
def test_worked_examples(o_in, o_out, pseudo_count, score):
    found = frequency.scores_from_counts([o_in], [o_out], pseudo_count=pseudo_count)
    assert found == pytest.approx([score], abs=1e-9)


def test_unequal_groups_are_thinned_from_the_end():
    # By hand: two models with the record, four without; of the latter only the first two count.
    members = np.array([[False], [True], [False], [True], [False], [False]])
    first = np.array([0.9, 0.9, 0.1, 0.9, 0.9, 0.9])
    shadows = np.stack([first, 1 - first], axis=-1)[:, None, :]
    in_counts, out_counts = frequency.same_bin_counts([[0.9, 0.1]], shadows, members)
    assert (in_counts.tolist(), out_counts.tolist()) == ([[2, 2]], [[1, 1]])
    assert frequency.scores([[0.9, 0.1]], shadows, members) == pytest.approx([2 * math.log(3 / 2)])


def test_counts_of_a_small_table():
    target = [[0.29, 0.71], [0.50, 0.50]]
    shadows = [
        [[0.295, 0.705], [0.505, 0.495]],
        [[0.2899, 0.7101], [0.50, 0.50]],
        [[0.2901, 0.7099], [0.51, 0.49]],
        [[0.8, 0.2], [0.49, 0.51]],
    ]
    members = np.array([[True, False], [False, True], [True, True], [False, False]])
    in_counts, out_counts = frequency.same_bin_counts(target, shadows, members)
    # Bins of the target: 29 and 71, 50 and 50. By hand.
    assert in_counts.tolist() == [[2, 0], [1, 1]]
    assert out_counts.tolist() == [[0, 1], [1, 0]]


def test_accuracy_of_a_rounded_leak():
    """One bit leaks through noise: the shadow and target models agree with membership in 80 % of answers.

    With 40 shadow models the counts tell the two answers apart almost surely, so the attack is right where the
    target's own answer is, in 80 % of cases. Within 4 standard errors on 10,000 answers; random guessing is 75 away.
    """
    rng = np.random.default_rng(42)

    def answers(is_member):
        honest = rng.random(is_member.shape) < 0.8
        first = np.where(is_member == honest, 0.905, 0.605)
        return np.stack([first, 1 - first], axis=-1)

    members = balanced_members(rng, 40, 10_000)
    is_member = np.arange(10_000) % 2 == 0
    found = frequency.scores(answers(is_member), answers(members), members)
    assert np.mean((found > 0) == is_member) == pytest.approx(0.8, abs=4 * 0.004)


@pytest.mark.parametrize("pseudo_count", [0.0, 1.0])
def test_swapping_in_and_out_turns_the_sign(pseudo_count):
    rng = np.random.default_rng(43)
    shadows = rng.dirichlet(np.ones(3), size=(6, 200))
    target = rng.dirichlet(np.ones(3), size=200)
    members = balanced_members(rng, 6, 200)
    forth, back = (
        frequency.scores(target, shadows, table, width=0.1, pseudo_count=pseudo_count) for table in (members, ~members)
    )
    assert np.count_nonzero(forth) > 50
    assert np.array_equal(back, -forth)


# The slow twin.


@pytest.mark.parametrize("pseudo_count", [0.0, 0.5, 1.0])
def test_scores_equal_the_printed_formula(pseudo_count):
    rng = np.random.default_rng(44)
    centres = rng.dirichlet(np.ones(4), size=150)
    shadows = np.round(np.clip(centres + 0.006 * rng.normal(size=(10, 150, 4)), 0, 1), 3)
    target = np.round(np.clip(centres + 0.006 * rng.normal(size=(150, 4)), 0, 1), 3)
    members = balanced_members(rng, 10, 150)
    expected = [slow_score(target[r], shadows[:, r], members[:, r], pseudo_count) for r in range(150)]
    found = frequency.scores(target, shadows, members, pseudo_count=pseudo_count)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert np.array_equal(found > 0, np.array(expected) > 1e-12)
    if pseudo_count == 0:
        assert {math.inf, -math.inf, 0.0} < set(expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_answers_binned_before_give_the_same_scores(dtype):
    rng = np.random.default_rng(45)
    shadows, target = rng.dirichlet(np.ones(3), size=(8, 60)), rng.dirichlet(np.ones(3), size=60)
    members = balanced_members(rng, 8, 60)
    binned_shadows, binned_target = bin_centres(shadows).astype(dtype), bin_centres(target).astype(dtype)
    expected = frequency.scores(target, shadows, members)
    assert np.array_equal(frequency.scores(binned_target, binned_shadows, members, width=None), expected)
    assert np.array_equal(frequency.scores(binned_target, binned_shadows, members), expected)


# Edges.


def test_equal_products_of_counts_are_a_tie():
    # 1 * 1 * 10 = 1 * 2 * 5, although the sum of logarithms comes out as 3e-16.
    found = frequency.scores_from_counts([[0, 0, 9]], [[0, 1, 4]])
    assert found.tolist() == [0.0]


def test_perfect_and_inverted_separation():
    members = np.arange(10)[:, None] < 5
    shadows = np.where(members[:, :, None], [0.9, 0.1], [0.6, 0.4])
    assert frequency.scores([[0.9, 0.1]], shadows, members) == pytest.approx([2 * math.log(6)])
    assert frequency.scores([[0.6, 0.4]], shadows, members) == pytest.approx([-2 * math.log(6)])
    assert frequency.scores([[0.9, 0.1]], shadows, members, pseudo_count=0).tolist() == [np.inf]


def test_the_last_bin_includes_one():
    shadows = np.array([[[1.0, 0.0]], [[0.5, 0.5]]])
    members = np.array([[True], [False]])
    assert frequency.scores([[0.993, 0.007]], shadows, members) == pytest.approx([2 * math.log(2)])


GOOD = np.array([[0.4, 0.6], [0.5, 0.5]])
SHADOWS = np.stack([GOOD, GOOD])
MEMBERS = np.array([[True, False], [False, True]])


@pytest.mark.parametrize(
    ("target", "shadows", "members", "error", "message"),
    [
        (GOOD * np.nan, SHADOWS, MEMBERS, ModelError, r"target\[0, 0\] is nan"),
        (GOOD, SHADOWS * 3, MEMBERS, ModelError, r"shadows\[0, 0, 0\] is 1\.2"),
        (GOOD[:1], SHADOWS, MEMBERS, ModelError, r"shadows must have shape.*\(models, 1, 2\), got \(2, 2, 2\)"),
        (GOOD, GOOD, MEMBERS, ModelError, r"shadows must have shape \[models, records, classes\]"),
        (GOOD, SHADOWS, MEMBERS[:, :1], DataError, r"members must have shape \[models, records\]"),
        (GOOD, SHADOWS, MEMBERS * 1.0, DataError, "members must be bool"),
        (GOOD, SHADOWS, MEMBERS & [True, False], DataError, r"records are trained on by none of the 2.*\(records 1\)"),
    ],
)
def test_bad_tables_are_refused(target, shadows, members, error, message):
    with pytest.raises(error, match=message):
        frequency.scores(target, shadows, members)


@pytest.mark.parametrize("width", [0.0, -0.1, 0.3, 2.0, math.nan])
def test_bad_widths_are_refused(width):
    with pytest.raises(ConfigError, match=r"width must be in \(0, 1\].*se None for predictions"):
        frequency.scores(GOOD, SHADOWS, MEMBERS, width=width)


@pytest.mark.parametrize("pseudo_count", [-1.0, math.nan, math.inf])
def test_bad_pseudo_counts_are_refused(pseudo_count):
    with pytest.raises(ConfigError, match="pseudo_count must be at least 0 and finite"):
        frequency.scores(GOOD, SHADOWS, MEMBERS, pseudo_count=pseudo_count)


@pytest.mark.parametrize(
    ("in_counts", "out_counts", "message"),
    [
        ([1, 2], [[1, 2]], r"in_counts must have shape \[records, classes\].*got \(2,\)"),
        ([[1, 2]], [[]], r"out_counts must have shape \[records, classes\] with at least one of each"),
        ([[1, 2]], [[1, 2, 3]], r"out_counts must have the shape of in_counts, \(1, 2\), got \(1, 3\)"),
        ([[1, 2]], [[-1, 2]], r"out_counts\[0, 0\] is -1; counts must be finite and at least 0"),
        ([[1, np.nan]], [[1, 2]], r"in_counts\[0, 1\] is nan"),
    ],
)
def test_bad_counts_are_refused(in_counts, out_counts, message):
    with pytest.raises(DataError, match=message):
        frequency.scores_from_counts(in_counts, out_counts)
