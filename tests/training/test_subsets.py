import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakgauge.training import (
    DenseSubsets,
    balanced_subsets,
    complementary_pairs,
    everything,
    leave_one_out,
    random_subsets,
    with_and_without,
)


def rng():
    return np.random.default_rng(0)


@given(n=st.integers(2, 40), pairs=st.integers(1, 5))
def test_in_plus_out_is_everything_in_each_pair(n, pairs):
    members = complementary_pairs(n, pairs, rng()).members
    np.testing.assert_array_equal(members[::2] ^ members[1::2], np.ones((pairs, n), dtype=bool))


@given(n=st.integers(2, 40), share=st.floats(0.1, 0.9), models=st.integers(1, 12))
def test_balanced_subsets_have_their_size_and_treat_records_alike(n, share, models):
    size = max(1, int(share * n))
    members = balanced_subsets(n, size, models, rng()).members
    assert (members.sum(axis=1) == size).all()
    counts = members.sum(axis=0)
    assert counts.max() - counts.min() <= 1


def test_balanced_halves_are_complementary_pairs():
    members = balanced_subsets(30, 15, 6, rng()).members
    np.testing.assert_array_equal(members[::2], ~members[1::2])


def test_every_record_is_as_likely_as_any_other():
    """20,000 sets of 3 out of 10: each count is Binomial(20,000, 0.3); 6 deviations fail once in 10^8."""
    counts = random_subsets(10, 3, 20_000, rng()).members.sum(axis=0)
    assert np.abs(counts - 6000).max() < 6 * np.sqrt(20_000 * 0.3 * 0.7)


def test_leave_one_out_rows_equal_the_matrix():
    subsets = leave_one_out(5, np.array([3, 0]))
    expected = np.ones((2, 5), dtype=bool)
    expected[0, 3] = expected[1, 0] = False
    np.testing.assert_array_equal(subsets.dense(), expected)
    assert len(leave_one_out(5)) == 5


def test_pairs_with_and_without_differ_in_the_target_alone():
    targets = np.array([4, 0, 9])
    members = with_and_without(10, 5, targets, 3, rng()).members
    differs = members[::2] ^ members[1::2]
    np.testing.assert_array_equal(differs, np.repeat(np.eye(10, dtype=bool)[targets], 3, axis=0))
    assert (members[::2].sum(axis=1) == 5).all()
    assert members[::2][np.arange(9), np.repeat(targets, 3)].all()


def test_the_others_are_drawn_uniformly():
    """4,000 draws of 2 out of 9 others: Binomial(4,000, 2/9) each; 6 deviations fail once in 10^8."""
    members = with_and_without(10, 3, np.array([4]), 4000, rng()).members[1::2]
    counts = np.delete(members.sum(axis=0), 4)
    assert members[:, 4].sum() == 0
    assert np.abs(counts - 4000 * 2 / 9).max() < 6 * np.sqrt(4000 * 2 / 9 * 7 / 9)


def test_everything_is_everything():
    assert everything(4, 3).members.all()
    assert everything(4).members.tolist() == [[True] * 4]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: random_subsets(5, 6, 1, rng()), r"size must be in \[1, 5\]"),
        (lambda: DenseSubsets(np.zeros((1, 3), dtype=bool)), r"members\[0\] has no record"),
        (lambda: DenseSubsets(np.ones(3, dtype=bool)), r"must be bool \[models, records\]"),
        (lambda: leave_one_out(5, np.array([5])), r"indices in \[0, 5\)"),
        (lambda: leave_one_out(1), "at least 2 records, got 1"),
        (lambda: complementary_pairs(1, 1, rng()), "at least 2 records, got 1"),
        (lambda: with_and_without(5, 1, np.array([0]), 1, rng()), "size must be at least 2"),
    ],
)
def test_impossible_subsets_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(("n", "size", "models"), [(10, 7, 10), (101, 50, 9), (30, 29, 40), (12, 12, 3), (40, 1, 5)])
def test_balanced_subsets_are_those_of_sorting_by_how_often_and_then_at_random(n, size, models):
    """The slow twin."""
    draws, left_out = np.random.default_rng(4), np.zeros(n, dtype=int)
    for row in balanced_subsets(n, size, models, np.random.default_rng(4)).members:
        chosen = np.lexsort((draws.random(n), left_out))[: n - size]
        left_out[chosen] += 1
        assert set(np.flatnonzero(~row)) == set(chosen)
