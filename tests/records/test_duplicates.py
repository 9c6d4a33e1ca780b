from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakgauge.records import Records, duplicates, record_codes
from leakgauge.records.duplicates import _deviation


def test_distinct_records_have_codes_of_their_own():
    """The null: nothing repeats, nothing is found."""
    rng = np.random.default_rng(1)
    records = Records.from_arrays(rng.normal(size=(60, 5)), np.arange(60) % 3)
    codes = record_codes(records[:40], records[40:])
    assert len({*codes.train.tolist(), *codes.holdout.tolist()}) == 60


def test_neighbouring_codes_of_categories_are_not_nearly_equal():
    """Categories differ or do not, however their codes lie; a number beside them may be rounded."""
    towns = Records.from_arrays(np.c_[np.arange(400), np.linspace(0, 1, 400)], np.zeros(400), categorical=[0])
    codes = record_codes(towns[:200], towns[200:], tolerance=0.01)
    assert len({*codes.train.tolist(), *codes.holdout.tolist()}) == 400
    moved = Records(towns.features + np.array([0.0, 1e-5]), towns.labels, towns.schema, towns.ids)
    codes = record_codes(towns, moved, tolerance=0.01)
    assert (codes.train == codes.holdout).mean() > 0.9


def test_numbers_that_one_step_cuts_apart_are_together_where_steps_begin_elsewhere():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    train, holdout = (Records.from_arrays(part, np.zeros(500)) for part in (X, X + rng.uniform(-0.01, 0.01, X.shape)))
    codes = [record_codes(train, holdout, tolerance=0.01, shift=shift) for shift in (0.0, 0.5)]
    together = np.array([one.train == one.holdout for one in codes])
    assert (together.mean(axis=1) < 0.95).all()
    assert together.any(axis=0).mean() > 0.97


def test_all_records_equal():
    records = Records.from_arrays(np.ones((6, 2)), [0] * 6)
    codes = record_codes(records[:4], records[4:])
    assert (codes.train.tolist(), codes.holdout.tolist()) == ([0] * 4, [0] * 2)


def test_minus_zero_equals_zero():
    records = Records.from_arrays(np.array([[0.0, 1.0], [-0.0, 1.0]]), [0.5, 0.5])
    assert np.ptp(record_codes(records, records[:0]).train) == 0


def test_labels_of_regression_count_as_labels():
    records = Records.from_arrays(np.ones((3, 1)), [0.5, 0.5, 0.75])
    first, second, third = record_codes(records, records[:0]).train
    assert first == second != third


tables = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=14)


@pytest.mark.parametrize("colliding", [False, True])
def test_agrees_with_comparing_each_with_each(monkeypatch, colliding):
    """Also if all hashes collide, so that only the exact comparison can tell rows apart."""
    if colliding:
        monkeypatch.setattr(duplicates, "_row_hashes", lambda features: np.zeros(len(features), dtype=np.uint64))
    _agree_on_many()


@settings(derandomize=True, deadline=None, max_examples=150)
@given(tables, st.data())
def _agree_on_many(rows, data):
    table = np.array(rows, dtype=float)
    records = Records.from_arrays(table[:, :2], table[:, 2].astype(int), classes=[0, 1])
    cut = data.draw(st.integers(1, len(rows) - 1))
    codes = record_codes(records[:cut], records[cut:])
    together = np.concatenate([codes.train, codes.holdout])
    equal = (table[:, None] == table).all(axis=2)
    np.testing.assert_array_equal(together[:, None] == together, equal)


def test_rows_are_compared_across_blocks():
    table = np.arange(10_000.0)[:, None] % 6000  # longer than one block of rows
    records = Records.from_arrays(table, np.zeros(10_000))
    assert len(np.unique(record_codes(records[:9000], records[9000:]).train)) == 6000


def test_codes_tell_records_apart_as_far_as_asked():
    places = np.array([0.0, 1e-9, 50.0, 100.0, 150.0])
    records = Records.from_arrays(places[:, None], ["a", "a", "b", "b", "b"], ids=np.arange(5))
    train, holdout = records[[0, 2, 4]], records[[1, 3]]
    exact = record_codes(train, holdout)
    assert len({*exact.train.tolist(), *exact.holdout.tolist()}) == 5
    near = record_codes(train, holdout, tolerance=0.01)
    assert near.holdout[0] == near.train[0]
    assert len({*near.train.tolist(), near.holdout[1]}) == 4


def test_codes_of_numbers_to_be_predicted_are_rounded_like_features():
    labels = np.array([1.0, 2.0, 1.0 + 1e-9, 1.5])
    records = Records.from_arrays(np.zeros((4, 1)), labels, ids=np.arange(4))
    near = record_codes(records[:2], records[2:], tolerance=0.01)
    assert near.holdout[0] == near.train[0]
    assert near.holdout[1] not in near.train
    assert record_codes(records[:2], records[2:]).holdout[0] not in record_codes(records[:2], records[2:]).train


@pytest.mark.parametrize("sentinel", [None, 1e6, 1e10, 1e140])
def test_a_number_that_stands_for_missing_does_not_make_all_others_equal(sentinel):
    """The tolerance is a part of the standard deviation, which one cell of 1e10 makes 10 million times as large."""
    rng = np.random.default_rng(0)
    X = rng.normal(50.0, 10.0, (2000, 2))
    if sentinel is not None:
        X[[5, 1500], [0, 1]] = sentinel
    table = Records.from_arrays(X, np.zeros(2000, dtype=int))
    codes = record_codes(table[:1000], table[1000:], tolerance=1e-6)
    assert len(np.unique(np.concatenate([codes.train, codes.holdout]))) == 2000
    copied = Records.from_arrays(np.vstack([X, X[:1000] * (1 + 1e-9)]), np.zeros(3000, dtype=int))
    codes = record_codes(copied[:2000], copied[2000:], tolerance=1e-6)
    assert np.isin(codes.holdout, codes.train).mean() > 0.9


@pytest.mark.parametrize("share", [0.6, 0.9])
def test_nor_does_it_in_a_column_of_mostly_one_number(share):
    rng = np.random.default_rng(0)
    column = np.where(rng.random(4000) < share, 0.0, rng.normal(50.0, 10.0, 4000))
    ordinary = _deviation(column)
    assert ordinary == np.std(column)
    column[7] = 1e10
    assert 5 < _deviation(column) < 50
    assert _deviation(np.full(10, 3.0)) == _deviation(np.array([])) == 0.0
