"""Threads that share what is found before the work is handed out: no number depends on how many there are."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakgauge.membership import ATTACKS, everyone_as_target
from leakgauge.models import AnswerKind
from leakgauge.records import Records
from leakgauge.training import (
    EachModel,
    Job,
    PredictionTable,
    Randomness,
    SklearnLearner,
    balanced_subsets,
    leave_one_out,
    plan,
)
from leakgauge.training.threads import MAX_FREE_THREADS, free_threads, side_by_side, threads


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


LOADED_LATER = """
import sys
from leakgauge.training.threads import one_thread
with one_thread():
    assert "sklearn.ensemble" not in sys.modules
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_info
with one_thread():
    print(sorted((part["user_api"], part["num_threads"]) for part in threadpool_info()))
"""


def test_a_library_that_is_loaded_later_has_one_thread_too() -> None:
    told = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "2")
    done = subprocess.run(
        [sys.executable, "-c", LOADED_LATER], env=os.environ | told, capture_output=True, text=True, check=True
    )
    assert "openmp" in done.stdout
    assert all(n == 1 for _, n in ast.literal_eval(done.stdout)), done.stdout


class Boosting(ClassifierMixin, BaseEstimator):
    """Keeps how many threads it was told to train with."""

    def __init__(self, n_jobs: int | None = -1) -> None:
        self.n_jobs = n_jobs

    def fit(self, X: np.ndarray, y: np.ndarray) -> Boosting:
        self.classes_, self.n_jobs_ = np.unique(y), self.n_jobs
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), self.classes_[0])


class Oblivious(Boosting):
    """Tells of no parameter, as CatBoost does of those that are not set, and takes them all the same."""

    def get_params(self, deep: bool = True) -> dict[str, int]:
        return {}

    def set_params(self, **given: int) -> Oblivious:
        self.thread_count_ = given["thread_count"]
        return self


Boosting.__module__, Oblivious.__module__ = "xgboost.sklearn", "catboost.core"


class OfTheUser(Boosting):
    """Inherits the threads."""


class Parallel(ClassifierMixin, BaseEstimator):
    """Is not known to start threads of its own."""

    __init__, fit, predict = Boosting.__init__, Boosting.fit, Boosting.predict


@pytest.mark.parametrize(
    ("estimator", "path"),
    [
        (Boosting(), ()),
        (Boosting(None), ()),
        (OfTheUser(4), ()),
        (make_pipeline(StandardScaler(), Boosting()), (1,)),
        (make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), Boosting())), (1, 1)),
    ],
)
def test_boosting_that_starts_threads_of_its_own_trains_on_one(estimator: Any, path: tuple[int, ...]) -> None:
    records = Records.from_arrays(np.arange(12.0).reshape(6, 2), np.arange(6) % 2)
    fitted = SklearnLearner(estimator).fit(records, seed=0).model.estimator
    for step in path:
        fitted = fitted[step]
    assert fitted.n_jobs_ == 1


def test_boosting_that_tells_of_no_parameter_trains_on_one_thread_and_others_as_they_say() -> None:
    records = Records.from_arrays(np.arange(12.0).reshape(6, 2), np.arange(6) % 2)
    assert SklearnLearner(Oblivious()).fit(records, seed=0).model.estimator.thread_count_ == 1
    assert SklearnLearner(Parallel(3)).fit(records, seed=0).model.estimator.n_jobs_ == 3


def test_items_are_taken_as_they_are_needed_and_what_is_inside_goes_on_one_thread() -> None:
    """Results that nobody has taken yet are held by none but as many as there are threads, and one."""
    taken: list[int] = []

    def items() -> Any:
        for item in range(50):
            taken.append(item)
            yield item

    def nested(item: int) -> tuple[int, list[str]]:
        return item, list(side_by_side(lambda _: threading.current_thread().name, range(3)))

    with threads(3):
        for place, (item, names) in enumerate(side_by_side(nested, items())):
            assert item == place
            assert len(set(names)) == 1
            assert len(taken) <= place + 5
    assert taken == list(range(50))
    with threads(3):
        assert list(side_by_side(lambda item: threading.current_thread() is threading.main_thread(), [1])) == [True]


@pytest.mark.parametrize(
    ("said", "allowed"), [("1", 1), ("2", 2), ("2,1", 2), ("1000", None), ("", None), ("all", None), ("0", 1)]
)
def test_an_audit_takes_no_more_threads_than_it_is_allowed(
    said: str, allowed: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(3)), raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert free_threads() == (3 if allowed is None else allowed)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert free_threads() == (MAX_FREE_THREADS if allowed is None else allowed)


@pytest.mark.parametrize("n_classes", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_games_have_the_same_bits_however_many_threads_play_them(n_classes: int) -> None:
    """Enough records for several blocks of each attack that goes by blocks."""
    rng = np.random.default_rng(n_classes)
    n, subsets = 20_000, balanced_subsets(20_000, 10_000, 16, rng)
    logits = rng.normal(size=(16, n, n_classes)).astype(np.float64)
    logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    table = PredictionTable(logs, AnswerKind.PROBABILITIES, subsets, np.arange(16), "synthetic")
    labels = rng.integers(0, n_classes, n)
    for attack in ATTACKS:
        if attack.together is None or not attack.possible(table.kind, shadows=True):
            continue
        played = []
        for n_threads in (1, 2, 3):
            with threads(n_threads):
                played.append(everyone_as_target(table, labels, attack).scores)
        np.testing.assert_array_equal(played[0], played[1])
        np.testing.assert_array_equal(played[0], played[2])
