from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakgauge.errors import DataError
from leakgauge.records import Records, Twins, duplicates, find_duplicates, from_pair, record_codes

NONE = Twins(0, 0, 0, ())


def test_distinct_records_have_no_twins():
    """The null: nothing repeats, nothing is found, nothing is said."""
    rng = np.random.default_rng(1)
    records = Records.from_arrays(rng.normal(size=(60, 5)), np.arange(60) % 3)
    found = find_duplicates(records[:40], records[40:])
    assert (found.identical_in_train, found.conflicting_in_train) == (NONE, NONE)
    assert (found.identical_in_holdout, found.conflicting_in_holdout) == (NONE, NONE)
    assert (found.identical_across, found.conflicting_across) == (NONE, NONE)
    assert (found.n_repeats_in_train, found.n_repeats_in_holdout, found.n_shared_ids) == (0, 0, 0)
    assert found.messages() == ()


def test_a_case_done_by_hand():
    train = pd.DataFrame({"a": [1, 1, 1, 2], "t": ["x", "x", "y", "x"]})
    holdout = pd.DataFrame({"a": [1, 2, 3, 3], "t": ["x", "y", "x", "x"]})
    found = find_duplicates(*from_pair(train, holdout, target="t"))
    # train: rows 0 and 1 are identical; each of them conflicts with row 2
    assert found.identical_in_train == Twins(1, 2, 2, (("train/0", "train/1"),))
    assert found.conflicting_in_train == Twins(2, 3, 3, (("train/0", "train/2"),))
    assert found.identical_in_holdout == Twins(1, 2, 2, (("holdout/2", "holdout/3"),))
    assert found.conflicting_in_holdout == NONE
    # across: holdout 0 equals train 0 and 1, conflicts with train 2; holdout 1 conflicts with train 3
    assert found.identical_across == Twins(2, 2, 1, (("train/0", "holdout/0"),))
    assert found.conflicting_across == Twins(2, 2, 2, (("train/2", "holdout/0"), ("train/3", "holdout/1")))
    assert (found.n_repeats_in_train, found.n_repeats_in_holdout) == (2, 1)
    messages = found.messages()
    assert messages[0].startswith("1 holdout record of 4 equal a training record in every column")
    assert "remove these records from the holdout" in messages[0]
    assert messages[1].startswith("2 holdout records of 4 with the features of a training record and another label")
    assert messages[2].startswith("2 training records of 4 with an identical twin")
    assert messages[3].startswith("2 holdout records of 4 with an identical twin")
    assert not any("/" in message for message in messages)  # no ids


def test_all_records_equal():
    records = Records.from_arrays(np.ones((6, 2)), [0] * 6)
    found = find_duplicates(records[:4], records[4:])
    assert found.identical_in_train.n_pairs == 6
    assert found.identical_across == Twins(8, 4, 2, ((0, 4), (0, 5)))
    assert found.n_repeats_in_train == 3


def test_shared_ids_are_counted_and_told():
    records = Records.from_arrays(np.arange(6.0)[:, None], [0, 1] * 3)
    found = find_duplicates(records[:4], records[2:])
    assert found.n_shared_ids == 2
    assert "2 ids of the holdout also in the training records" in "".join(found.messages())
    text = Records.from_arrays(np.arange(6.0)[:, None], [0, 1] * 3, ids=list("012345"))
    assert find_duplicates(records, text).n_shared_ids == 0


def test_the_list_of_ids_is_bounded_and_the_counts_are_not():
    records = Records.from_arrays(np.ones((50, 1)), [0] * 25 + [1] * 25)
    found = find_duplicates(records, n_ids=3)
    assert found.identical_in_train.n_pairs == 2 * 25 * 24 // 2
    assert found.identical_in_train.pairs == ((0, 1), (0, 2), (0, 3))
    assert found.conflicting_in_train == Twins(625, 50, 50, ((0, 25), (0, 26), (0, 27)))
    assert find_duplicates(records, n_ids=0).identical_in_train.pairs == ()


def test_minus_zero_equals_zero():
    records = Records.from_arrays(np.array([[0.0, 1.0], [-0.0, 1.0]]), [0.5, 0.5])
    assert find_duplicates(records).identical_in_train.n_pairs == 1


def test_labels_of_regression_count_as_labels():
    records = Records.from_arrays(np.ones((3, 1)), [0.5, 0.5, 0.75])
    found = find_duplicates(records)
    assert (found.identical_in_train.n_pairs, found.conflicting_in_train.n_pairs) == (1, 2)


def quadratic_twin(left: Records, right: Records, same_label: bool, within: bool) -> tuple[int, int, int, set]:
    """The same by comparing each with each."""
    pairs = [
        (i, j)
        for i, j in itertools.product(range(len(left)), range(len(right)))
        if (not within or i < j)
        and np.array_equal(left.features[i], right.features[j])
        and (left.labels[i] == right.labels[j]) == same_label
    ]
    lefts, rights = {i for i, _ in pairs}, {j for _, j in pairs}
    if within:
        lefts = rights = lefts | rights
    return len(pairs), len(lefts), len(rights), {(left.ids[i].item(), right.ids[j].item()) for i, j in pairs}


def agrees(found: Twins, slow: tuple[int, int, int, set]) -> bool:
    n_pairs, n_left, n_right, pairs = slow
    listed = set(found.pairs)
    all_listed_once = len(listed) == len(found.pairs) and (bool(listed) == bool(pairs))
    return (
        (found.n_pairs, found.n_left, found.n_right) == (n_pairs, n_left, n_right)
        and listed <= pairs
        and all_listed_once
    )


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
    left, right = records[:cut], records[cut:]
    found = find_duplicates(left, right)
    assert agrees(found.identical_in_train, quadratic_twin(left, left, True, True))
    assert agrees(found.conflicting_in_train, quadratic_twin(left, left, False, True))
    assert agrees(found.identical_in_holdout, quadratic_twin(right, right, True, True))
    assert agrees(found.conflicting_in_holdout, quadratic_twin(right, right, False, True))
    assert agrees(found.identical_across, quadratic_twin(left, right, True, False))
    assert agrees(found.conflicting_across, quadratic_twin(left, right, False, False))
    assert found.n_repeats_in_train == cut - len(np.unique(left.features, axis=0))


def test_rows_are_compared_across_blocks():
    table = np.arange(10_000.0)[:, None] % 6000  # longer than one block of rows
    found = find_duplicates(Records.from_arrays(table, np.zeros(10_000)))
    assert found.identical_in_train.n_pairs == 4000
    assert found.n_repeats_in_train == 4000


def test_different_schemas_are_refused(few):
    with pytest.raises(DataError, match="different schemas, so their rows cannot be compared"):
        find_duplicates(few, few.as_codes())


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
