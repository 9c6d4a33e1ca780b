"""Threads that share what is found before the work is handed out: no number depends on how many there are."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leakgauge.records import Records
from leakgauge.training import EachModel, Job, Randomness, SklearnLearner, leave_one_out, plan
from leakgauge.training.threads import side_by_side, threads


@pytest.mark.parametrize("n", [1, 2, 5])
def test_results_come_in_order_and_errors_reach_the_caller(n: int) -> None:
    with threads(n):
        assert list(side_by_side(lambda item: item**2, range(12))) == [item**2 for item in range(12)]
        assert list(side_by_side(abs, [])) == []
        with pytest.raises(ZeroDivisionError):
            list(side_by_side(lambda item: 1 / item, [2, 1, 0]))


def test_several_threads_work_at_the_same_time_under_the_same_settings() -> None:
    both = threading.Barrier(2, timeout=30)

    def handling(_: int) -> str:
        both.wait()
        return np.geterr()["over"]

    with threads(2), np.errstate(over="raise"):
        assert list(side_by_side(handling, range(2))) == ["raise", "raise"]


def test_what_models_share_has_the_same_bits_however_many_threads_find_it() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(5_000) % 2
    records = Records.from_arrays(rng.normal(0.2 * y[:, None], 1.0, (5_000, 12)), y)
    rows = np.arange(5_000)
    subsets, queries = leave_one_out(5_000, rows), EachModel(rows[:, None])
    fits = []
    for n in (1, 3):
        job = Job(SklearnLearner(LogisticRegression()), records, subsets, queries, 0, Randomness.COMMON)
        prepared = plan(job).prepared
        with threads(n):
            prepared.share()
        fits.append(prepared.groups[0].full)
    one, three = fits
    assert "second_order" in vars(one)
    np.testing.assert_array_equal(one.weights, three.weights)
    np.testing.assert_array_equal(one.lower, three.lower)
    np.testing.assert_array_equal(one.second_order.form, three.second_order.form)
