"""Least squares without a record: by hand, and the edges of linear dependence."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakgauge.records import Records
from leakgauge.training import EachModel, Job, Randomness, SklearnLearner, leave_one_out
from leakgauge.training.engines import linear
from leakgauge.training.engines.base import PreparedJob
from leakgauge.training.engines.linear import (
    CentredData,
    Decomposition,
    Equations,
    LinearLeastSquares,
    RidgeRegression,
    SmallestLeastSquares,
    decompose,
    directions_lost,
    without_each,
)
from leakgauge.training.engines.stateless import Given


def values(engine, estimator, X, y):
    records = Records.from_arrays(np.array(X, dtype=float), np.array(y, dtype=float), task="regression")
    which = np.arange(len(records))
    job = Job(
        SklearnLearner(estimator),
        records,
        leave_one_out(len(records)),
        EachModel(which[:, None]),
        0,
        Randomness.COMMON,
    )
    assert isinstance(engine.prepare(job), PreparedJob)
    return engine.prepare(job).all().answers[:, 0, 0]


def centred(X, y, *, intercept=True, alpha=1.0):
    estimator = Ridge(alpha=alpha, fit_intercept=intercept)
    none = np.array([])
    return CentredData.of(
        Given(estimator, np.asarray(X, dtype=float), np.asarray(y, dtype=float), none, np.arange(len(y)))
    )


def test_a_line_by_hand():
    # Through (0, 0), (1, 1), (2, 2), (3, 7): without the last record the line says 3; without the first, through
    # (1, 1), (2, 2), (3, 7), it is y = 3x - 8/3 and says -8/3.
    found = values(LinearLeastSquares(), LinearRegression(), [[0], [1], [2], [3]], [0, 1, 2, 7])
    np.testing.assert_allclose(found[[0, 3]], [-8 / 3, 3.0], rtol=1e-12)


def test_ridge_by_hand():
    # Without the last record w = (1 * 1 + 1 * 3) / (1 + 1 + alpha) = 4/3, which at 2 says 8/3.
    found = values(RidgeRegression(), Ridge(alpha=1.0, fit_intercept=False), [[1], [1], [2]], [1, 3, 4])
    assert found[2] == pytest.approx(8 / 3, rel=1e-12)


def test_ridge_behind_a_scaler():
    """Computed with scikit-learn 1.9.1: each of six records predicted by the pipeline that was fitted without it."""
    X = np.column_stack([[0, 1, 2, 4, 5, 9], [1, -1, 2, 0, 1, 3]])
    found = values(RidgeRegression(), make_pipeline(StandardScaler(), Ridge(1.0)), X, [0, 1, 1, 3, 2, 5])
    expected = [0.6492280547, 0.8502738476, 1.5318934193, 1.8846108726, 2.8470271885, 3.4979324810]
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("largest", [0.0, 0.9])
def test_ridge_behind_a_scaler_by_fixed_points_or_equations(largest, monkeypatch):
    """Either way gives the same, whatever the change of scale: here by up to nine tenths."""
    rng = np.random.default_rng(4)
    X, y = np.column_stack([rng.lognormal(sigma=1.5, size=(40, 3)), np.arange(40) < 3]), rng.normal(size=40)
    estimator = make_pipeline(StandardScaler(), Ridge(5.0))
    expected = values(RidgeRegression(), estimator, X, y)
    monkeypatch.setattr(linear, "LARGEST_CONTRACTION", largest)
    np.testing.assert_allclose(values(RidgeRegression(), estimator, X, y), expected, rtol=1e-10)


def test_an_infinite_penalty_leaves_the_mean_of_the_others():
    y = np.array([3.0, 5.0, 10.0, 2.0])
    found = values(RidgeRegression(), Ridge(alpha=1e12), [[1], [2], [4], [9]], y)
    np.testing.assert_allclose(found, (y.sum() - y) / 3, rtol=1e-9)


def test_a_feature_of_zeros_leaves_the_mean_of_the_others():
    y = np.array([3.0, 5.0, 10.0, 2.0])
    found = values(LinearLeastSquares(), LinearRegression(), np.zeros((4, 1)), y)
    np.testing.assert_allclose(found, (y.sum() - y) / 3, rtol=1e-12)


def test_primal_and_dual_equations_agree():
    """The same fit whether the unknowns belong to the features or to the records."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 30)), rng.normal(size=20)
    for intercept in (True, False):
        data = centred(X, y, intercept=intercept)
        dual = Equations.of(data, 0.7)
        assert dual.dual
        padded = centred(np.vstack([X, np.zeros((20, 30))]), np.zeros(40), intercept=False)
        assert not Equations.of(padded, 0.7).dual
        gram = np.linalg.inv(data.X.T @ data.X + 0.7 * np.eye(30))
        fit = dual.fit()
        np.testing.assert_allclose(fit.coefficients, gram @ data.X.T @ data.y, atol=1e-12)
        np.testing.assert_allclose(fit.leverages, np.einsum("ij,jk,ik->i", data.X, gram, data.X), atol=1e-12)
        np.testing.assert_allclose(fit.fitted, data.X @ fit.coefficients, atol=1e-12)


def test_leverages_sum_to_the_rank():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 4))
    X = np.column_stack([X, X[:, 0] - X[:, 1]])  # rank 4
    data = centred(X, rng.normal(size=30))
    parts = decompose(data, 1e-6)
    assert isinstance(parts, Decomposition)
    assert parts.fit(data).leverages.sum() == pytest.approx(4.0, rel=1e-12)


def test_the_only_holder_of_a_feature_is_answered_without_it():
    """Without the one holder the feature is constant, and its coefficient 0: as if it had never been there."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    flagged = np.column_stack([X, np.arange(20) == 6])
    found = values(LinearLeastSquares(), LinearRegression(), flagged, y)
    assert found[6] == pytest.approx(values(LinearLeastSquares(), LinearRegression(), X, y)[6], rel=1e-10)
    data = centred(flagged, y)
    parts = decompose(data, 1e-6)
    assert isinstance(parts, Decomposition)
    assert not SmallestLeastSquares(data, parts).doubtful.any(), "nothing is left to training"
    assert np.flatnonzero(without_each(data, parts.fit(data))[1]).tolist() == [6], "though h = 1"


def test_mirrored_columns_and_values_change_no_answer_and_no_doubt():
    """Columns that nearly say the same: the nearer, the more records are doubtful, whatever the signs."""
    rng = np.random.default_rng(5)
    X, y, apart = rng.normal(size=(30, 3)) + np.array([3, 0, 0]), rng.normal(size=30) - 2, rng.normal(size=30)
    doubted = []
    for distance in np.geomspace(1e-7, 1e-4, 20):
        X[:, 1] = X[:, 0] + distance * apart
        given = [centred(X * signs, sign * y) for signs in ([1, 1, 1], [1, -1, 1], [-1, -1, -1]) for sign in (1, -1)]
        found = [without_each(data, decompose(data, 1e-12).fit(data))[1] for data in given]
        for other in found[1:]:
            np.testing.assert_array_equal(other, found[0])
        doubted.append(int(found[0].sum()))
    assert doubted == sorted(doubted, reverse=True)
    assert (doubted[0], doubted[-1]) == (30, 0)


@pytest.mark.parametrize(("distance", "unclear"), [(1e-7, [6]), (1e-5, []), (1e-3, [])])
def test_a_scale_that_changes_alike_in_all_columns_leaves_what_is_clear(distance, unclear):
    """Whether a record is nearly alone in a direction depends on how unlike the scales become, not on their size."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(20, 3)), distance * rng.normal(size=20) + (np.arange(20) == 6)])
    data = centred(X, rng.normal(size=20))
    parts = decompose(data, 1e-6)
    assert isinstance(parts, Decomposition)
    for rho in (None, np.full(X.shape, 1e-4), np.full(X.shape, 1e4)):
        alone, found = directions_lost(data, parts, parts.fit(data), rho)
        assert (np.flatnonzero(alone).tolist(), np.flatnonzero(found).tolist()) == ([], unclear)
    unlike = directions_lost(data, parts, parts.fit(data), np.array([1e-4, 1, 1, 1]) * np.ones((20, 1)))[1]
    assert set(unclear) <= set(np.flatnonzero(unlike).tolist())


def test_interpolation_by_hand():
    # Without the first record 2 b = 4 and b + c = 3, so that a, of which nothing is known, is 0, and a + b = 2.
    X, y = [[1, 1, 0], [0, 2, 0], [0, 1, 1]], [5, 4, 3]
    found = values(LinearLeastSquares(), LinearRegression(fit_intercept=False), X, y)
    assert found[0] == pytest.approx(2.0, rel=1e-12)


def test_a_record_nearly_alone_is_left_to_training():
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(size=(20, 2)), 1e-6 * rng.normal(size=20)])
    X[6, 2] = 1.0
    data = centred(X, rng.normal(size=20))
    parts = decompose(data, 1e-6)
    assert isinstance(parts, Decomposition)
    assert np.flatnonzero(SmallestLeastSquares(data, parts).doubtful).tolist() == [6]


def test_directions_near_the_cut_off_are_refused():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 3))
    for closeness, refused in ((1e-3, False), (1e-7, True), (1e-10, True), (0.0, False)):
        near = np.column_stack([X, X[:, 0] + closeness * rng.normal(size=30)])
        assert isinstance(decompose(centred(near, X[:, 1]), 1e-6), str) == refused


def test_scales_do_not_make_ridge_ill_conditioned():
    """Columns in other units leave the condition alone; columns that nearly agree do not."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(50, 3)) * [1e-3, 1.0, 1e6]
    assert Equations.of(centred(X, X[:, 1]), 1e-9).condition < 10
    near = np.column_stack([X, X[:, 2] * (1 + 1e-9 * rng.normal(size=50))])
    assert Equations.of(centred(near, X[:, 1]), 1e-9).condition > 1e8
