"""Records that are alike, found by counting and by sorting."""

import numpy as np
import pytest

from leakgauge.training import EachModel, Job, Randomness, SklearnLearner, leave_one_out
from leakgauge.training.engines.cells import distinct, packed
from leakgauge.training.engines.naive_bayes import counts, engines


def test_no_two_rows_share_a_number():
    widths = np.array([2, 3, 5])
    every = np.indices(widths).reshape(3, -1)
    np.testing.assert_array_equal(packed(list(every), widths), np.arange(30))
    assert packed(list(every), np.array([2**21, 2**21, 2**20])) is None


@pytest.mark.parametrize("width", [4, 10**8])
def test_stand_ins_are_equal_to_those_they_stand_for(width):
    """Counted where there are few combinations, sorted where there are many."""
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 4, 300), rng.integers(0, 3, 300)]
    rows, places = distinct(columns, np.array([width, 3]))
    assert len(rows) == 12
    for column in columns:
        np.testing.assert_array_equal(column[rows][places], column)


def test_where_hardly_any_are_alike_it_says_so():
    assert distinct([np.arange(100), np.zeros(100, dtype=int)], np.array([10**9, 1])) is None
    assert distinct([np.zeros(2, dtype=int)] * 2, np.array([2**31, 2**31])) is None


def test_answers_do_not_depend_on_looking_for_those_alike(monkeypatch):
    from sklearn.naive_bayes import CategoricalNB

    from leakgauge.records import Records

    rng = np.random.default_rng(1)
    records = Records.from_arrays(rng.integers(0, 3, (200, 2)).astype(float), rng.integers(0, 3, 200))
    engine, found = engines.CategoricalNaiveBayes(), []
    for many in (2**14, 1):
        monkeypatch.setattr(counts, "DISTINCT_SEARCH_FROM_RECORDS", many)
        job = Job(
            SklearnLearner(CategoricalNB(min_categories=3)),
            records,
            leave_one_out(200),
            EachModel(np.arange(200)[:, None]),
            0,
            Randomness.COMMON,
        )
        found.append(engine.prepare(job).all().answers)
    np.testing.assert_array_equal(*found)
