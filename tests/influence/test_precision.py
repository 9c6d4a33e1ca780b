"""Digits that an answer in single precision does not have are not held against a record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax

from leakgauge.influence import pdtp, search
from leakgauge.influence.precision import EPS, Precision
from leakgauge.models import FunctionProbabilities
from leakgauge.records import Records
from leakgauge.training import FunctionLearner

rng = np.random.default_rng(0)
N = 80
SCORES = rng.normal(size=N) * 6
RECORDS = Records.from_arrays(SCORES[:, None], (SCORES > 0).astype(int))


def binary(scores: NDArray[Any]) -> NDArray[Any]:
    """As libraries of boosting answer: 1 less what was computed."""
    p = expit(scores.astype(np.float32))
    return np.stack([1 - p, p], axis=-1)


def logs(p: NDArray[Any]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.log(p.astype(np.float64))


def exact(scores: NDArray[Any]) -> NDArray[np.float64]:
    return -np.logaddexp(0.0, np.stack([scores, -scores], axis=-1))


def test_double_precision_has_all_digits() -> None:
    """Null: nothing is taken off, neither of shares of votes, which single precision could hold, nor of labels."""
    for answers in (
        exact(SCORES),
        logs(np.array([[0.25, 0.75], [0.5, 0.5], [0.0, 1.0]])),
        logs(np.array([[1 / 3, 2 / 3], [0.1, 0.9]])),
        logs(np.array([[0.0, 1.0], [1.0, 0.0]])),
    ):
        precision = Precision.of(answers)
        assert not precision.single
        assert (precision.error(answers) == 0).all()
        np.testing.assert_array_equal(precision.least(answers), answers)


@pytest.mark.parametrize("scale", [1.0, 4.0, 8.0])
def test_the_error_of_a_small_probability_is_covered(scale: float) -> None:
    """Against the same in double precision; within a factor of 100 where digits are lost, so that it is of use."""
    scores = rng.normal(size=2000) * scale
    answered = logs(binary(scores))
    precision = Precision.of(answered)
    assert precision.single
    assert precision.lost.tolist() == [True, scale < 4], "with none that is small it does not show"
    known = np.isfinite(answered)
    error = np.abs(np.where(known, answered, 0.0) - np.where(known, exact(scores), 0.0))
    assert (error <= precision.error(answered)).all()
    small = known[:, 0] & (answered[:, 0] < np.log(1e-3)) & (answered[:, 0] > np.log(1e-6))
    if scale >= 4:
        assert np.quantile(error[small, 0] / precision.error(answered)[small, 0], 0.9) > 0.01


@pytest.mark.parametrize("as_logs", [False, True])
def test_a_softmax_keeps_the_digits_of_small_probabilities(as_logs: bool) -> None:
    scores = rng.normal(size=(500, 3)).astype(np.float32) * 5
    answered = log_softmax(scores, axis=1).astype(np.float64) if as_logs else logs(softmax(scores, axis=1))
    truth = log_softmax(scores.astype(np.float64), axis=1)
    precision = Precision.of(answered)
    assert precision.single
    assert not precision.lost.any()
    assert (np.abs(answered - truth) <= precision.error(answered)).all()
    assert precision.error(answered).max() < 1e-4


def learner(single: bool, shift: float = 0.02) -> FunctionLearner:
    """Answers a score that each record moves by a little."""

    def train(records: Records, seed: int) -> FunctionProbabilities:
        moved = shift * (N - len(records))

        def answer(X: Any) -> Any:
            scores = np.asarray(X)[:, 0] + moved
            return binary(scores) if single else np.exp(exact(scores))

        return FunctionProbabilities(answer, records.schema)

    return FunctionLearner(train, randomised=False, name="shifted")


def test_the_floor_covers_the_digits_that_answers_lack() -> None:
    rounded, truth = pdtp(learner(True), RECORDS, seed=0), pdtp(learner(False), RECORDS, seed=0)
    assert (truth.solver_floor == 0).all()
    finite = np.isfinite(rounded.values)
    assert finite.mean() > 0.9
    error = np.abs(rounded.values - truth.values)[finite]
    assert error.max() > 1e-3, "there is something to cover"
    assert (error <= rounded.solver_floor[finite]).all()
    assert np.median(rounded.solver_floor) < 1e-4
    assert (rounded.least <= truth.values).all()


def test_what_single_precision_rounds_to_0_is_no_infinite_leak() -> None:
    """Scores beyond 16.6: without the record the small probability is 0, with it 6e-8. Nobody is given away."""
    scores = np.full(N, 16.62)
    scores[: N // 2] *= -1
    records = Records.from_arrays(scores[:, None], (scores > 0).astype(int))
    found = pdtp(learner(True, 0.05), records, seed=0)
    certain = np.isinf(found.values)
    assert certain.any()
    assert (found.least[certain] <= 0.05).all()
    assert (search(learner(True, 0.05), records, np.arange(N - 3, N), seed=0, n_queries=50).values < np.inf).all()


def test_an_answer_that_really_becomes_0_is_certain() -> None:
    """In single precision from 0.3 to 0: at least a factor of 0.3 / 1e-7; in double precision without end."""

    def train(records: Records, seed: int) -> FunctionProbabilities:
        def answer(X: Any) -> Any:
            p = binary(np.asarray(X)[:, 0])
            return p if len(records) == N else np.where(np.arange(2) == 0, 0, 1).astype(p.dtype) + 0 * p

        return FunctionProbabilities(answer, records.schema)

    found = pdtp(FunctionLearner(train, randomised=False), RECORDS, seed=0)
    likely = binary(SCORES)[:, 0] > 0.3
    assert np.isinf(found.values[likely]).all()
    assert (found.least[likely] > np.log(0.3 / EPS) - 0.01).all()
