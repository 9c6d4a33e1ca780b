"""Nearest neighbours without a record: by hand, ties and copies."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from leakgauge.records import Records
from leakgauge.training import EachModel, Job, Randomness, SklearnLearner, leave_one_out
from leakgauge.training.engines.base import PreparedJob
from leakgauge.training.engines.nearest_neighbours import NearestNeighbours, Neighbours, NeighbourSearch
from leakgauge.training.engines.stateless import given

LINE = np.array([[0.0], [1.0], [3.0], [7.0], [15.0]])


def job_of(estimator, records):
    which = np.arange(len(records))
    return Job(
        SklearnLearner(estimator),
        records,
        leave_one_out(len(records)),
        EachModel(which[:, None]),
        0,
        Randomness.COMMON,
    )


def answered(estimator, records):
    """Answers, and which of them are left open."""
    case = given(job_of(estimator, records), (type(estimator),), sparse=True)
    with np.errstate(divide="ignore"):
        return NeighbourSearch(case).own(case.removed)


def test_votes_by_hand():
    # Nearest two others: 1 and 3; 0 and 3; 1 and 0; 3 and 1; 7 and 3.
    records = Records.from_arrays(LINE, list("abaab"))
    logs, open_ = answered(KNeighborsClassifier(2), records)
    np.testing.assert_array_equal(np.exp(logs[:, 0]), [0.5, 1, 0.5, 0.5, 1])
    assert not open_.any()


def test_weighted_values_by_hand():
    # Record 0: distances 1 and 3 of values 20 and 40: (20 / 1 + 40 / 3) / (1 + 1 / 3) = 25.
    records = Records.from_arrays(LINE, [10.5, 20.0, 40.0, 80.0, 160.0])
    values, open_ = answered(KNeighborsRegressor(2, weights="distance", algorithm="kd_tree"), records)
    assert values[0, 0] == pytest.approx(25.0, rel=1e-14)
    assert not open_.any()


def test_a_tie_is_open_only_if_labels_differ():
    X = [[-1.0], [0.0], [1.0]]
    _, open_ = answered(KNeighborsClassifier(1), Records.from_arrays(X, list("aba")))
    assert open_.tolist() == [False, False, False]
    _, open_ = answered(KNeighborsClassifier(1), Records.from_arrays(X, list("abb")))
    assert open_.tolist() == [False, True, False]
    _, open_ = answered(KNeighborsClassifier(2), Records.from_arrays(X, list("abb")))
    assert not open_.any(), "all others are neighbours: there is no choice"
    _, open_ = answered(KNeighborsRegressor(1), Records.from_arrays(X, [1.5, 2.0, 1.5]))
    assert not open_.any()


def test_level_neighbours_are_looked_for_beyond_the_next():
    """Twelve records level with the nearest, of which only the last differs."""
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    X = np.vstack([[0.0, 0.0], np.column_stack([np.cos(angles), np.sin(angles)])])
    same = Records.from_arrays(X, ["b"] + ["a"] * 12)
    assert not answered(KNeighborsClassifier(1), same)[1][0]
    one_differs = Records.from_arrays(X, ["b"] + ["a"] * 11 + ["b"])
    assert answered(KNeighborsClassifier(1), one_differs)[1][0]


def test_more_copies_than_neighbours():
    """A record hidden behind its own copies: whatever label they share is the answer, else it is open."""
    X = np.vstack([np.zeros((200, 2)), np.ones((5, 2))])
    same = Records.from_arrays(X, ["a"] * 200 + ["b"] * 5)
    logs, open_ = answered(KNeighborsClassifier(3, algorithm="kd_tree", weights="distance"), same)
    assert not open_.any()
    np.testing.assert_array_equal(np.exp(logs[:200]), np.tile([1.0, 0.0], (200, 1)))
    np.testing.assert_array_equal(np.exp(logs[200:]), np.tile([0.0, 1.0], (5, 1)))
    mixed = Records.from_arrays(X, ["a", "b"] * 100 + ["b"] * 5)
    assert answered(KNeighborsClassifier(3, algorithm="kd_tree"), mixed)[1][:200].all()


def test_distances_by_products_are_not_trusted_at_0():
    """|x|^2 - 2xy + |y|^2 of a copy need not be 0, so that weights of copies are left to scikit-learn itself."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 20))
    X[1] = X[0]
    records = Records.from_arrays(X, rng.integers(0, 2, 30))
    _, by_products = answered(KNeighborsClassifier(3, weights="distance"), records)
    _, by_differences = answered(KNeighborsClassifier(3, weights="distance", algorithm="ball_tree"), records)
    _, unweighted = answered(KNeighborsClassifier(3), records)
    assert np.flatnonzero(by_products).tolist() == [0, 1]
    assert not by_differences.any()
    assert not unweighted.any()


def test_level_means_within_rounding():
    found = Neighbours(np.zeros((1, 4), dtype=int), np.array([[1.0, 2.0, 2.0 + 1e-13, 2.1]]), np.array([0.0]))
    assert found.level_with(2).tolist() == [[False, True, True, False]]
    blurred = Neighbours(found.index, found.distances, np.array([0.3]))
    assert blurred.level_with(2).tolist() == [[False, True, True, True]]
    unknown = Neighbours(found.index, np.array([[1.0, 2.0, np.inf, np.inf]]), np.array([0.0]))
    assert unknown.level_with(3)[0, 2], "infinite distances cannot be told apart"


def test_few_records_are_not_probed_for_ties():
    records = Records.from_arrays(np.zeros((20, 2)), [0, 1] * 10)
    assert isinstance(NearestNeighbours().prepare(job_of(KNeighborsClassifier(3), records)), PreparedJob)


def test_the_scale_without_the_record_decides_who_is_nearest():
    """On the scale of all records the nearest to (20, 4) is (4, 5), without it (8, 9) (scikit-learn 1.9.1)."""
    X = np.array([[4.0, 5], [7, 9], [0, 1], [8, 9], [2, 3], [20, 4]])
    records = Records.from_arrays(X, [10.5, 20, 30, 40, 50, 60])
    whole = KNeighborsRegressor(1).fit(StandardScaler().fit_transform(X)[:5], [10.5, 20, 30, 40, 50])
    assert whole.predict(StandardScaler().fit(X).transform(X[5:])) == [10.5]
    job = job_of(make_pipeline(StandardScaler(), KNeighborsRegressor(1)), records)
    prepared = NearestNeighbours().prepare(job)
    assert isinstance(prepared, PreparedJob)
    values, open_ = prepared.solved.own(np.array([5]))
    assert values.tolist() == [[40.0]]
    assert not open_.any()


def test_neighbours_beyond_the_candidates_of_the_common_scale_are_found():
    """A record that makes up the scale of the first column: without it that column decides, and not the second."""
    rng = np.random.default_rng(3)
    X = np.column_stack([np.r_[1e3, rng.normal(size=299)], rng.normal(size=300)])
    records = Records.from_arrays(X, rng.normal(size=300))
    estimator = make_pipeline(StandardScaler(), KNeighborsRegressor(3, weights="distance"))
    query = X[5:6] + 0.03
    search = NearestNeighbours().prepare(job_of(estimator, records)).solved
    search.unclear[:] = False  # to see the number itself, which is trained where lengths change that much
    alone = search.asked(np.array([0]), StandardScaler().fit(X).transform(query))[0]
    expected = estimator.fit(X[1:], records.labels[1:]).predict(query)
    np.testing.assert_allclose(alone.ravel(), expected, rtol=1e-8)


def test_without_the_only_record_of_a_category_its_model_is_trained():
    """Its column is not there without it: distances are others."""
    X = np.array([["a"], ["b"], ["a"], ["b"], ["c"], ["a"], ["b"]])
    records = Records.from_arrays(X, [0, 1, 0, 1, 1, 0, 1])
    estimator = make_pipeline(OneHotEncoder(handle_unknown="ignore"), KNeighborsClassifier(2, weights="distance"))
    with np.errstate(divide="ignore"):
        _, open_ = NearestNeighbours().prepare(job_of(estimator, records)).solved.own(np.arange(7))
    assert open_[4]
