"""Nearest neighbours without a record: by hand, ties and copies."""

import numpy as np
import pytest
from sklearn import neighbors
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from leakgauge.records import Records
from leakgauge.training import EachModel, Job, Randomness, SklearnLearner, leave_one_out
from leakgauge.training.engines.base import PreparedJob, Refusal
from leakgauge.training.engines.fitted import fitted_steps
from leakgauge.training.engines.nearest_neighbours import (
    NearestNeighbours,
    Neighbours,
    NeighbourSearch,
    RadiusNeighbours,
    TiedNeighbours,
)
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
    kinds = (KNeighborsClassifier, KNeighborsRegressor)
    case = given(job_of(estimator, records), kinds, sparse=True, fitted=fitted_steps)
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
    far = np.array([3.0])
    found = Neighbours(np.zeros((1, 4), dtype=int), np.array([[1.0, 2.0, 2.0 + 1e-13, 2.1]]), np.array([0.0]), far)
    assert found.level_with(2).tolist() == [[False, True, True, False]]
    blurred = Neighbours(found.index, found.distances, np.array([0.3]), far)
    assert blurred.level_with(2).tolist() == [[False, True, True, True]]
    unknown = Neighbours(found.index, np.array([[1.0, 2.0, np.inf, np.inf]]), np.array([0.0]), far)
    assert unknown.level_with(3)[0, 2], "infinite distances cannot be told apart"


def test_few_records_are_not_probed_for_ties():
    records = Records.from_arrays(np.zeros((20, 2)), [0, 1] * 10)
    assert isinstance(NearestNeighbours().prepare(job_of(KNeighborsClassifier(3), records)), PreparedJob)


# ---------------------------------------------------------------- behind steps that are fitted without the record too


@pytest.mark.parametrize("steps", [[], [StandardScaler()]], ids=["plain", "scaled"])
def test_one_query_that_ties_leave_open_for_all_models_is_refused_beforehand(steps):
    # Between two records of different classes no model knows which is nearer, but those without one of the two.
    X = np.linspace(0.0, 10.0, 301)[:, None] ** 2
    records = Records.from_arrays(X, np.arange(301) % 2)
    learner = SklearnLearner(make_pipeline(*steps, KNeighborsClassifier(1)))
    for query, answered_ in ((X[100:101] + 0.001, True), ((X[100:101] + X[101:102]) / 2, False)):
        job = Job(learner, records, leave_one_out(301), query, 0, Randomness.COMMON)
        prepared = NearestNeighbours().prepare(job)
        assert isinstance(prepared, PreparedJob if answered_ else Refusal)
    assert "of 64 models asked (ties)" in str(prepared)


def test_another_record_is_nearest_on_the_scale_without_the_record():
    """By hand: with (20, 4) record 0 is nearest to it, on the scale of the other four record 3."""
    X = np.array([[4.0, 5], [7, 9], [0, 1], [8, 9], [2, 3], [20, 4]])
    records = Records.from_arrays(X, list("abaaab"), task="classification")
    with_it = (X - X.mean(axis=0)) / X.std(axis=0)
    without = (X - X[:5].mean(axis=0)) / X[:5].std(axis=0)
    assert [np.linalg.norm(Z[:5] - Z[5], axis=1).argmin() for Z in (with_it, without)] == [0, 3]
    assert np.linalg.norm(without[3] - without[5]) == pytest.approx(4.302654392514993, abs=1e-12)
    values = Records.from_arrays(X, [0.5, 1.0, 2.0, 3.0, 4.0, 5.0])
    found, open_ = answered(make_pipeline(StandardScaler(), KNeighborsRegressor(1)), values)
    assert (found[5, 0], open_[5]) == (3.0, False)
    logs, _ = answered(make_pipeline(StandardScaler(), KNeighborsClassifier(1)), records)
    np.testing.assert_array_equal(np.exp(logs[5]), [1.0, 0.0])


def test_those_far_away_may_become_the_nearest():
    """Without the one record that is far out, 30 that were further away than 40 others are nearer than these."""
    far = np.array([[0.0, 1e3]])
    near = np.column_stack([np.linspace(1.0, 1.1, 40), np.full(40, 1e-3) + np.linspace(0, 1e-4, 40)])
    others = np.column_stack([np.linspace(2.0, 2.1, 30), np.full(30, 900.0) + np.linspace(0, 1, 30)])
    X = np.vstack([far, near, others])
    records = Records.from_arrays(X, [0.5] + [1.0] * 40 + [2.0] * 30)
    for scaler in (StandardScaler(), MinMaxScaler()):
        for p in (1, 2):
            estimator = make_pipeline(scaler, KNeighborsRegressor(3, p=p))
            found, open_ = answered(estimator, records)
            for t in np.flatnonzero(~open_):
                rest = np.arange(len(X)) != t
                values = records.labels[rest]
                assert found[t, 0] == pytest.approx(estimator.fit(X[rest], values).predict(X[[t]])[0], rel=1e-12)
            assert open_.sum() <= 3


def test_a_column_that_is_constant_without_a_record():
    """It adds the same to all distances: the model is trained where that is seen, or where the column is scaled."""
    rng = np.random.default_rng(3)
    records = Records.from_arrays(
        np.column_stack([np.arange(30) == 4, rng.normal(size=30)]), rng.integers(0, 2, 30), task="classification"
    )
    for weights in ("uniform", "distance"):
        _, open_ = answered(make_pipeline(StandardScaler(), KNeighborsClassifier(3, weights=weights)), records)
        assert np.flatnonzero(open_).tolist() == [4]


def test_ties_on_the_other_scale_are_open():
    """Without the last record a square of (0, 0), (1, 1) and so on is scaled alike: its corners stay level."""
    X = np.array([[0.0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5]])
    _, open_ = answered(make_pipeline(MinMaxScaler(), KNeighborsClassifier(1)), Records.from_arrays(X, list("abaaa")))
    assert open_[4]
    _, open_ = answered(make_pipeline(MinMaxScaler(), KNeighborsClassifier(1)), Records.from_arrays(X, list("aaaab")))
    assert not open_[4]


def test_other_metrics_behind_fitted_steps_are_refused():
    records = Records.from_arrays(np.random.default_rng(5).normal(size=(30, 2)), [0, 1] * 15)
    for settings in ({"p": 3}, {"metric": "chebyshev"}, {"p": np.inf}):
        job = job_of(make_pipeline(StandardScaler(), KNeighborsClassifier(3, **settings)), records)
        refusal = NearestNeighbours().prepare(job)
        assert isinstance(refusal, Refusal)
        assert "p=1 and p=2 are supported only" in str(refusal)


def tapered(distances):
    """Weights of the user's, as scikit-learn gives them: of a table, or of a list of rows."""
    if distances.dtype == object:
        return np.array([tapered(one) for one in distances] + [None], dtype=object)[:-1]
    return 1 / (1 + distances)


def skewed(left, right):
    """A metric of the user's."""
    return float(np.abs(left - right) @ [1.0, 2.0, 0.5])


@pytest.mark.parametrize("classes", [0, 2, 3])
@pytest.mark.parametrize(
    ("kind", "given_to"),
    [
        ("KNeighbors", {"n_neighbors": 7, "weights": tapered}),
        ("KNeighbors", {"n_neighbors": 7, "metric": skewed}),
        ("KNeighbors", {"n_neighbors": 7, "metric": "canberra", "weights": "distance"}),
        ("KNeighbors", {"n_neighbors": 7, "metric": "seuclidean", "metric_params": {"V": [1.0, 2.0, 3.0]}}),
        ("RadiusNeighbors", {"radius": 1.5}),
        ("RadiusNeighbors", {"radius": 1.5, "weights": "distance"}),
        ("RadiusNeighbors", {"radius": 1.5, "weights": tapered}),
        ("RadiusNeighbors", {"radius": 2.5, "metric": skewed}),
    ],
)
def test_neighbours_of_any_kind_nearly(kind, given_to, classes):
    """Slow twin: trained without each record. By distance, a record's own query without others at 0 stays open."""
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(60, 3)), rng.normal(size=(9, 3)) / 4
    y = rng.integers(0, classes, 60) if classes else rng.normal(size=60)
    estimator = getattr(neighbors, f"{kind}{'Classifier' if classes else 'Regressor'}")(**given_to)
    engine = RadiusNeighbours() if kind == "RadiusNeighbors" else TiedNeighbours()
    records = Records.from_arrays(X, y, task="classification" if classes else "regression")
    job = Job(SklearnLearner(estimator), records, leave_one_out(60), queries, 0, Randomness.COMMON)
    found = engine.prepare(job).nearly(0)
    for row in range(60):
        fitted = estimator.fit(np.delete(X, row, 0), np.delete(y, row))
        expected = fitted.predict_proba(queries) if classes else fitted.predict(queries)[:, None]
        np.testing.assert_allclose(np.exp(found[row]) if classes else found[row], expected, atol=1e-12)


def test_each_model_within_a_radius_may_be_asked_something_else():
    records = Records.from_arrays(LINE, [10.5, 20.0, 40.0, 80.0, 160.0])
    prepared = RadiusNeighbours().prepare(job_of(neighbors.RadiusNeighborsRegressor(3.0), records))
    # Within 3 of each other record: 1 and 3; 0 and 3; 0 and 1; nobody; nobody.
    np.testing.assert_allclose(prepared.nearly(0)[:, 0, 0], [30.0, 25.25, 15.25, np.nan, np.nan])
    with np.errstate(invalid="ignore"):
        own, open_ = prepared.solved.own(np.arange(5))
    np.testing.assert_array_equal(own[:, 0], prepared.nearly(0)[:, 0, 0])
    assert not open_.any()


@pytest.mark.parametrize(
    ("engine", "kind"), [(RadiusNeighbours(), "RadiusNeighborsRegressor"), (TiedNeighbours(), "KNeighborsRegressor")]
)
def test_distances_that_are_given_are_refused(engine, kind):
    records = Records.from_arrays(np.abs(LINE - LINE.T), np.arange(5) / 3)
    refusal = engine.prepare(job_of(getattr(neighbors, kind)(metric="precomputed"), records))
    assert isinstance(refusal, Refusal)
    assert "precomputed" in refusal.words
