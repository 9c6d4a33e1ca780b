"""Persons with several rows: what leaving out one of them with all of these moves."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from leakgauge.influence import dtp_on_train, pdtp, prediction_change, search
from leakgauge.records import Records, Task
from leakgauge.training import LeftOut, SklearnLearner

CLASSIFIERS = [LogisticRegression(), GaussianNB(), KNeighborsClassifier(3)]


def classified(n_persons: int = 20, seed: int = 0) -> Records:
    """Persons of one to four rows, in no order."""
    rng = np.random.default_rng(seed)
    persons = np.repeat(np.arange(n_persons), rng.integers(1, 5, n_persons))
    rng.shuffle(persons)
    X = rng.normal(size=(len(persons), 3)) + 0.3 * rng.normal(size=(n_persons, 3))[persons]
    return Records.from_arrays(X, (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int), persons=persons)


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda one: type(one).__name__)
def test_pdtp_is_the_largest_answer_about_any_row_of_the_person(estimator):
    records = classified()
    found = pdtp(SklearnLearner(estimator), records, seed=0)
    tight = estimator.set_params(tol=1e-12, max_iter=10_000) if "tol" in estimator.get_params() else estimator
    X, y, of = records.features, records.labels, records.units.of_row
    whole = tight.fit(X, y).predict_proba(X)
    with np.errstate(divide="ignore", invalid="ignore"):
        for person, value in enumerate(found.values):
            own = of == person
            without = tight.fit(X[~own], y[~own]).predict_proba(X[own])
            expected = np.nanmax(np.abs(np.log(whole[own]) - np.log(without)))
            assert value == pytest.approx(expected, abs=2e-6)
            assert of[found.asked[person]] == person
    assert len(found.rows) == len(records)


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda one: type(one).__name__)
def test_one_row_each_is_the_same_bit_for_bit(estimator):
    plain = classified()
    plain = Records.from_arrays(plain.features, plain.labels)
    named = Records.from_arrays(plain.features, plain.labels, persons=[f"p{i}" for i in range(len(plain))])
    first, second = (pdtp(SklearnLearner(estimator), one, seed=0) for one in (plain, named))
    for name, value in vars(first).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, getattr(second, name), err_msg=name)
    assert first.engine == second.engine


def test_the_example_of_two_rows_left_out_of_a_ridge_regression():
    """theta = (0.974359, 0.871795); without rows 3 and 4 it moves by (0.358974, -0.538462), own derivation."""
    X, y = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([1.0, 2.0, 2.0, 5.0])
    records = Records.from_arrays(X, y, persons=["a", "b", "c", "c"], task=Task.REGRESSION)
    found = prediction_change(SklearnLearner(Ridge(alpha=1.0)), records, seed=0)
    moved = np.abs(0.358974 - 0.538462 * X[2:, 0])
    assert found.values[2] == pytest.approx(moved.max(), abs=1e-5)
    assert found.asked[2] == 3


def planted(m: int) -> Records:
    """200 rows by 4 columns, m of them equal and of one person."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 4))
    y = X @ np.ones(4) + rng.normal(size=200)
    X[:m] = 2.55 * X[0] / np.linalg.norm(X[0])
    y[:m] = X[0] @ np.ones(4) + 1.4
    persons = np.r_[np.zeros(m, dtype=int), np.arange(1, 201 - m)]
    return Records.from_arrays(X, y, persons=persons, task=Task.REGRESSION)


@pytest.mark.parametrize(
    ("m", "ratio", "row", "person"),
    [
        (1, 1.00, 0.058, 0.058),
        (2, 2.08, None, None),
        (5, 5.77, None, None),
        (10, 13.47, None, None),
        (20, 34.65, 0.020, 0.682),
    ],
)
def test_equal_rows_of_one_person_are_understated_row_by_row(m, ratio, row, person):
    """The own answer moves m h e / (1 - m h) by person and h e / (1 - h) by row: m (1 - h) / (1 - m h) times as much.

    The numbers are those of a prototype on another table of this shape, whose leverages and errors are near these; the
    ratio by the leverage of this one is exact.
    """
    learner, whole = SklearnLearner(LinearRegression()), planted(m)
    rows = Records(whole.features, whole.labels, whole.schema, whole.ids)
    by_row, by_person = (prediction_change(learner, one, np.array([0]), seed=0).values[0] for one in (rows, whole))
    A = np.column_stack([whole.features, np.ones(200)])
    h = float(A[0] @ np.linalg.solve(A.T @ A, A[0]))
    assert by_person / by_row == pytest.approx(m * (1 - h) / (1 - m * h), rel=1e-6)
    assert by_person / by_row == pytest.approx(ratio, rel=0.02)
    if row is not None:
        assert (by_row, by_person) == pytest.approx((row, person), rel=0.1)


def test_a_person_without_whom_no_model_can_be_trained_has_no_value():
    """All rows of one class are hers: with a row left out there is a model, without her there is none."""
    X = np.arange(8.0)[:, None]
    y = np.array([0, 0, 0, 0, 0, 1, 1, 1])
    whole = Records.from_arrays(X, y, persons=[0, 1, 2, 3, 4, 5, 5, 5])
    found = pdtp(SklearnLearner(LogisticRegression()), whole, seed=0)
    assert np.isnan(found.values[5])
    assert set(found.failures) == {5}
    assert np.isfinite(found.values[:5]).all()


def test_other_queries_are_searched_for_by_person():
    records = classified()
    learner = SklearnLearner(LogisticRegression())
    own = pdtp(learner, records, seed=0)
    others = dtp_on_train(learner, records, seed=0)
    searched = search(learner, records, np.array([0, 3]), seed=0, n_queries=300)
    assert (others.values >= own.values - 1e-3).all()
    np.testing.assert_allclose(searched.own, own.values[[0, 3]], atol=1e-3)
    assert (searched.values >= searched.own).all()


def test_answers_are_put_back_to_their_rows():
    records = Records.from_arrays(np.arange(6.0)[:, None], [0, 1] * 3, persons=list("abacab"))
    left = LeftOut.of(records, np.array([0, 2]))
    assert left.rows.tolist() == [0, 2, 4, 3]
    assert left.queries.index.tolist() == [[0, 2, 4], [3, 3, 3]]
    assert left.about(left.queries.index).tolist() == left.rows.tolist()
    assert left.largest(np.array([1.0, 5.0, 2.0, 4.0])).tolist() == [5.0, 4.0]
    assert left.subsets.dense().tolist() == [[False, True, False, True, False, True], [True] * 3 + [False] + [True] * 2]
