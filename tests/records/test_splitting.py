from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakgauge.errors import DataError
from leakgauge.records import Records, random_half, split


def pool(n: int) -> Records:
    return Records.from_arrays(np.arange(float(n))[:, None], np.arange(n) % 2)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(2, 40), st.integers(0, 2**32), st.data())
def test_parts_are_disjoint_of_the_right_size_and_in_order(n, seed, data):
    n_train = data.draw(st.integers(1, n - 1))
    n_holdout = data.draw(st.integers(1, n - n_train))
    train, holdout = split(pool(n), n_train, n_holdout, rng=seed)
    assert (len(train), len(holdout)) == (n_train, n_holdout)
    assert not set(train.ids.tolist()) & set(holdout.ids.tolist())
    assert train.ids.tolist() == sorted(train.ids.tolist())
    np.testing.assert_array_equal(train.features[:, 0], train.ids)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(2, 41), st.integers(0, 2**32))
def test_in_plus_out_is_everything(n, seed):
    half, rest = random_half(pool(n), seed)
    assert sorted([*half.ids.tolist(), *rest.ids.tolist()]) == list(range(n))
    assert len(half) == n // 2


def test_same_seed_same_split_and_the_generator_moves_on():
    records = pool(100)
    assert split(records, 10, 10, rng=7)[0].ids.tolist() == split(records, 10, 10, rng=7)[0].ids.tolist()
    rng = np.random.default_rng(7)
    assert random_half(records, rng)[0].ids.tolist() != random_half(records, rng)[0].ids.tolist()


def test_every_record_is_as_likely_to_be_in_the_training_set():
    """1,000 splits of 20 records, 5 drawn: counts are Binomial(1000, 1/4).

    By the Chernoff bound a count leaves 250 +- 75 with probability at most 2 exp(-1000 * 0.0143) = 1.3e-6, 20 records
    together at most 3e-5. A split that never drew one record, or drew it 4 times in 10, would be caught for sure.
    """
    rng = np.random.default_rng(20261121)
    counts = np.zeros(20)
    records = pool(20)
    for _ in range(1000):
        counts[split(records, 5, 3, rng=rng)[0].ids] += 1
    assert np.abs(counts - 250).max() <= 75


def test_errors():
    with pytest.raises(DataError, match="3 training and 2 holdout records make 5, but there are only 4"):
        split(pool(4), 3, 2, rng=0)
    with pytest.raises(DataError, match="n_train must be at least 1, got 0"):
        split(pool(4), 0, 2, rng=0)
    with pytest.raises(DataError, match="n_holdout must be at least 1, got -1"):
        split(pool(4), 1, -1, rng=0)
    with pytest.raises(DataError, match="halving needs at least 2 records, got 1"):
        random_half(pool(2)[:1], 0)
