"""The bound and PDTP of logistic regression are about what the learner delivers, not about the minimum it aims at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from leakgauge.defences import Binning, Temperature
from leakgauge.influence import dtp, dtp_upper_bound, linear_bound, pdtp
from leakgauge.influence.bounds import QUERIES_IN_RANGE
from leakgauge.influence.delivered import n_looked_at
from leakgauge.models import wrap
from leakgauge.records import Records
from leakgauge.training import Learner, SklearnLearner
from leakgauge.training.learners import PostProcessedLearner

pytestmark = pytest.mark.long


def table(n: int, d: int, seed: int, magnitude: float) -> tuple[np.ndarray, np.ndarray]:
    """Numeric columns whose scales differ by up to ``10 ** magnitude``, and labels that depend on all of them."""
    rng = np.random.default_rng(seed)
    scale, noise = 10 ** rng.uniform(0, magnitude, d), rng.normal(size=(n, d))
    y = (noise @ rng.normal(size=d) + rng.logistic(size=n) > 0).astype(int)
    return (noise + rng.normal(size=d)) * scale, y


def own_moves(estimator: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How far the parameters that scikit-learn itself delivers move without each record ``[n, d + 1]``."""

    def parameters(kept: np.ndarray) -> np.ndarray:
        fitted = clone(estimator).fit(X[kept], y[kept])
        return np.append(fitted.coef_[0], fitted.intercept_)

    everyone = np.arange(len(y))
    return parameters(everyone >= 0) - np.stack([parameters(everyone != t) for t in everyone])


def largest_anywhere(moves: np.ndarray, X: np.ndarray) -> np.ndarray:
    """The largest change of a score within the range of the records, record by record."""
    ends = np.stack([X.min(axis=0), X.max(axis=0)])
    up = np.maximum(moves[:, :-1] * ends[0], moves[:, :-1] * ends[1]).sum(axis=1) + moves[:, -1]
    down = np.minimum(moves[:, :-1] * ends[0], moves[:, :-1] * ends[1]).sum(axis=1) + moves[:, -1]
    return np.maximum(np.abs(up), np.abs(down))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_solver_that_stops_early_has_no_bound() -> None:
    """Unscaled columns: the learner's own models move further than those at the minimum, so there is no bound."""
    X, y = table(120, 7, seed=2, magnitude=3.5)
    estimator = LogisticRegression()
    own = largest_anywhere(own_moves(estimator, X, y), X).max()
    bound = dtp_upper_bound(SklearnLearner(estimator), Records.from_arrays(X, y))
    assert bound is not None
    assert own > 1.2 * bound.at_minimum  # what used to be called proven
    assert np.isinf(bound.values).all()
    assert bound.n_unconverged > 0
    assert not bound.proven


@pytest.mark.parametrize(
    ("C", "magnitude"),
    [
        pytest.param(C, magnitude, marks=() if i % 2 == j else pytest.mark.slow)
        for i, C in enumerate([1e-3, 1.0, 10.0])
        for j, magnitude in enumerate([0.0, 1.0])
    ],
)
def test_a_converged_solver_keeps_its_bound_and_loses_little(C: float, magnitude: float) -> None:
    """Every record's own change stays below its bound, which is hardly larger than that of the minimum."""
    X, y = table(90, 4, seed=3, magnitude=magnitude)
    estimator = LogisticRegression(C=C, tol=1e-6, max_iter=10_000)
    own = largest_anywhere(own_moves(estimator, X, y), X)
    bound = dtp_upper_bound(SklearnLearner(estimator), Records.from_arrays(X, y))
    assert bound is not None
    assert (own <= bound.values).all()
    assert bound.values.max() < bound.at_minimum + 0.05
    assert own.max() > 0.9 * bound.values.max()


@pytest.mark.parametrize("seed", [11, pytest.param(17, marks=pytest.mark.slow)])
def test_a_solver_that_stops_early_without_few_records_keeps_its_bound_and_floor(seed: int) -> None:
    """The tolerance is one at which most models take another step: 1 and 4 of 250 records move answers by far more."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 3))
    y = (X @ np.linspace(1, 0.2, 3) + rng.normal(size=500) > 0).astype(int)[:250]
    X[::37] *= 8
    X = X[:250] / 4
    estimator = LogisticRegression(solver="newton-cholesky", tol={11: 0.02021937918, 17: 0.02048937488}[seed])
    own = largest_anywhere(own_moves(estimator, X, y), X)
    records = Records.from_arrays(X, y)
    bound = dtp_upper_bound(SklearnLearner(estimator), records)
    assert bound is not None
    assert own.max() > 1.2 > 1.0 > bound.at_minimum
    assert (own <= bound.values).all()
    assert bound.n_checked == 251
    found = pdtp(SklearnLearner(estimator), records, seed=0)
    whole = clone(estimator).fit(X, y)
    at_worst = int(own.argmax())
    without = clone(estimator).fit(np.delete(X, at_worst, 0), np.delete(y, at_worst))
    asked = X[at_worst : at_worst + 1]
    moved = np.abs(whole.predict_log_proba(asked) - without.predict_log_proba(asked)).max()
    assert abs(moved - found.values[at_worst]) <= found.solver_floor[at_worst] + 1e-9


def test_a_large_training_set_is_looked_at_in_part_and_stops_at_once_without_convergence() -> None:
    assert n_looked_at(250, 250) == 250
    assert n_looked_at(1000, 1000) == 500
    assert n_looked_at(50_000, 50_000) == 32
    X, y = table(700, 3, seed=9, magnitude=3.5)
    bound = dtp_upper_bound(SklearnLearner(LogisticRegression(max_iter=5)), Records.from_arrays(X, y))
    assert bound is not None
    assert bound.n_checked == 33
    assert bound.n_unconverged > 0


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_a_bound_counts_answers_that_are_rounded_to_0(seed: int) -> None:
    """Far out in a long tail one model answers 0 and the other does not: no finite bound holds of what is delivered."""
    rng = np.random.default_rng(seed)
    X = np.append(np.exp(rng.normal(size=600)), 60.0)[:, None]
    y = (rng.random(601) < 1 / (1 + np.exp(2 - X[:, 0]))).astype(int)
    estimator = LogisticRegression(solver="newton-cholesky", tol=1e-10)
    whole, without = estimator.fit(X, y), clone(estimator).fit(X[1:], y[1:])
    asked = np.linspace(0, 60, 100_001)[:, None]
    assert ((whole.predict_proba(asked) == 0) != (without.predict_proba(asked) == 0)).any()
    bound = dtp_upper_bound(SklearnLearner(estimator), Records.from_arrays(X, y))
    assert bound is not None
    assert np.isinf(bound.values).all()
    assert np.isinf(bound.rounding)
    near = dtp_upper_bound(SklearnLearner(estimator), Records.from_arrays(X[:-1], y[:-1]))
    assert near is not None
    assert near.rounding < 0.01
    assert np.isfinite(near.values).all()


@pytest.mark.parametrize("change", [0.0, pytest.param(0.3, marks=pytest.mark.slow)])
def test_a_fitted_model_counts_with_its_own_parameters(change: float) -> None:
    """A model that was altered after training: the bound grows by what its answers moved, exactly."""
    X, y = table(90, 4, seed=4, magnitude=0.5)
    records = Records.from_arrays(X, y)
    estimator = LogisticRegression(tol=1e-8, max_iter=10_000)
    fitted = clone(estimator).fit(X, y)
    fitted.intercept_ = fitted.intercept_ + change
    as_trained = dtp_upper_bound(SklearnLearner(estimator), records)
    delivered = dtp_upper_bound(SklearnLearner(estimator), records, model=wrap(fitted, records.schema))
    assert as_trained is not None
    assert delivered is not None
    np.testing.assert_allclose(delivered.values - as_trained.values, change, atol=1e-5)
    found = pdtp(SklearnLearner(estimator), records, seed=0, model=wrap(fitted, records.schema))
    score = fitted.decision_function(X)
    here = -np.logaddexp(0, np.stack([score, -score]))
    there = -np.logaddexp(0, np.stack([score - change, change - score]))
    np.testing.assert_allclose(found.solver_floor, np.abs(here - there).max(axis=0), atol=1e-5)


def test_a_model_of_another_sort_has_no_bound() -> None:
    X, y = table(60, 3, seed=5, magnitude=0.5)
    records = Records.from_arrays(X, y)
    other = wrap(LogisticRegression(tol=1e-8).fit(X, y), records.schema)
    warm = Temperature(2.0).apply(SklearnLearner(LogisticRegression(tol=1e-8)))
    assert dtp_upper_bound(warm, records, model=other) is None, "answers that were not changed as the learner says"
    right = dtp_upper_bound(warm, records, model=Temperature(2.0).release.wrap(other))
    assert right is not None
    assert np.isfinite(right.values).all()
    assert dtp_upper_bound(warm, records, model=Temperature(3.0).release.wrap(other)) is None


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("max_iter", "defence"),
    [
        pytest.param(max_iter, defence, marks=() if (i + j) % 3 == 0 else pytest.mark.slow)
        for i, max_iter in enumerate([100, 10_000])
        for j, defence in enumerate([None, Temperature(2.0), Binning(0.1)])
    ],
)
def test_pdtp_with_its_floor_holds_what_the_learner_delivers(max_iter: int, defence: Any) -> None:
    """The largest log ratio of the learner's own models lies within the floors, for changed answers too."""
    X, y = table(60, 5, seed=6, magnitude=3.0)
    records = Records.from_arrays(X, y)
    learner: Learner = SklearnLearner(LogisticRegression(max_iter=max_iter))
    learner = learner if defence is None else defence.apply(learner)
    found = pdtp(learner, records, seed=0)
    whole = learner.fit(records, seed=0).model
    everyone = np.arange(60)
    own = np.array(
        [
            np.abs(
                whole.log_probabilities(X[t : t + 1])  # type: ignore[attr-defined]
                - learner.fit(records[everyone != t], seed=0).model.log_probabilities(X[t : t + 1])  # type: ignore[attr-defined]
            ).max()
            for t in everyone
        ]
    )
    assert (np.abs(found.values - own) <= found.solver_floor + 1e-9).all()


def test_pdtp_of_many_classes_counts_where_the_solver_stops() -> None:
    """Three classes: no bound, but the floor says how far the learner's own models are."""
    X, y = table(60, 3, seed=7, magnitude=0.0)
    y = y + (X[:, 0] > X[:, 0].mean())
    records = Records.from_arrays(X, y)
    coarse, fine = (
        pdtp(SklearnLearner(LogisticRegression(tol=tol, max_iter=10_000)), records, seed=0) for tol in (1e-2, 1e-8)
    )
    assert fine.solver_floor.max() < 1e-4 < coarse.solver_floor.max()
    np.testing.assert_allclose(fine.values, coarse.values, atol=1e-6)


def test_enumerated_dtp_is_that_of_the_learners_own_models() -> None:
    rng = np.random.default_rng(8)
    X = rng.integers(0, 2, (40, 3)).astype(float)
    y = (X.sum(axis=1) + rng.normal(size=40) > 1.5).astype(int)
    records = Records.from_arrays(X, y, categorical=[0, 1, 2])
    estimator = LogisticRegression(tol=0.05)
    found = dtp(SklearnLearner(estimator), records, seed=0)
    moves = own_moves(estimator, X, y)
    corners = np.array(np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij")).reshape(3, -1).T
    whole = clone(estimator).fit(X, y)
    score = corners @ whole.coef_[0] + whole.intercept_
    without = score[None] - (moves[:, :-1] @ corners.T + moves[:, -1:])
    change = np.abs(np.logaddexp(0, -score)[None] - np.logaddexp(0, -without))
    other = np.abs(np.logaddexp(0, score)[None] - np.logaddexp(0, without))
    np.testing.assert_allclose(found.values, np.maximum(change, other).max(axis=1), atol=1e-9)


class Clipping(Learner):
    """Test double: logistic regression whose models clip their queries to a range fixed before training."""

    def __init__(self, inner: Learner, ends: tuple[np.ndarray, np.ndarray] | None) -> None:
        self.inner, self.ends = inner, ends

    name = "clipping"
    randomised = False
    input_range = property(lambda self: self.ends)  # type: ignore[assignment]
    composition = property(lambda self: PostProcessedLearner(self.inner, Temperature(1.0).release))  # type: ignore[assignment]

    def fit(self, records: Records, *, seed: int | None) -> Any:
        return self.inner.fit(records, seed=seed)

    def fingerprint(self) -> str:
        return "clipping"


def test_a_bound_covers_every_query_only_where_inputs_are_clipped() -> None:
    """At the ends of a wider range the bound is larger, and reaches what answers there really move by."""
    X, y = table(60, 3, seed=9, magnitude=0.0)
    records = Records.from_arrays(X, y)
    learner = SklearnLearner(LogisticRegression(tol=1e-8))
    plain = dtp_upper_bound(learner, records)
    ends = np.full(3, -16.0), np.full(3, 16.0)
    clipped = dtp_upper_bound(Clipping(learner, ends), records)
    assert plain is not None
    assert clipped is not None
    assert plain.covers == QUERIES_IN_RANGE
    assert clipped.covers == "every query"
    moves = own_moves(learner.estimator, X, y)
    widths = np.zeros(3, dtype=np.int64)
    far = linear_bound(moves[:, :-1], moves[:, -1], widths, *ends)
    np.testing.assert_allclose(clipped.values, far, rtol=1e-3)
    assert clipped.values.max() > 5 * plain.values.max()


def test_a_bound_in_range_passes_only_who_accepts_it() -> None:
    X, y = table(400, 2, seed=10, magnitude=0.0)
    found = dtp(
        SklearnLearner(LogisticRegression(C=0.01, tol=1e-8)),
        Records.from_arrays(X, y),
        np.arange(3),
        seed=0,
        n_queries=20,
    )
    assert found.covers == QUERIES_IN_RANGE
    assert (found.release(), found.release(in_range=True)) == ("undecided", "pass")


def test_a_record_that_no_model_can_do_without_has_no_bound():
    """The last of its class: the bound is infinite and no NaN, which would compare as being below any limit."""
    rng = np.random.default_rng(0)
    records = Records.from_arrays(rng.normal(size=(60, 2)), np.arange(60) == 0)
    bound = dtp_upper_bound(SklearnLearner(LogisticRegression()), records)
    assert bound.values[0] == np.inf
    assert np.isfinite(bound.values[1:]).all()
