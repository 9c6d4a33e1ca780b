"""Kernel methods without a record: by hand, and which models rounding leaves to training."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge

from leakgauge.records import Records
from leakgauge.training import EachModel, Job, Randomness, SklearnLearner, leave_one_out
from leakgauge.training.engines.base import PreparedJob
from leakgauge.training.engines.kernels import (
    GaussianProcessRegression,
    Kernel,
    KernelMachine,
    KernelRidgeRegression,
)


def values(engine, estimator, X, y):
    records = Records.from_arrays(np.array(X, dtype=float), np.array(y, dtype=float), task="regression")
    queries = EachModel(np.arange(len(records))[:, None])
    job = Job(SklearnLearner(estimator), records, leave_one_out(len(records)), queries, 0, Randomness.COMMON)
    assert isinstance(engine.prepare(job), PreparedJob)
    return engine.prepare(job).all().answers[:, 0, 0]


def machine(matrix, rounding, y, centred=False):
    with np.errstate(invalid="ignore"):
        return KernelMachine.of(
            Kernel(matrix.copy(), rounding), y, centred, lambda queries: matrix[queries[:, 0].astype(int)]
        )


def test_records_that_share_nothing_say_nothing_of_each_other():
    """Far apart under a narrow kernel, a record left out is predicted by the prior mean, 0."""
    X, y = 100.0 * np.arange(5)[:, None], np.array([3.0, 5.0, 10.0, 2.0, 7.0])
    narrow = GaussianProcessRegressor(RBF(1.0), optimizer=None, alpha=0.1)
    for found in (
        values(GaussianProcessRegression(), narrow, X, y),
        values(KernelRidgeRegression(), KernelRidge(kernel="rbf"), X, y),
    ):
        np.testing.assert_allclose(found, 0.0, atol=1e-13)


def test_a_linear_kernel_by_hand():
    # It is ridge regression without an intercept: w = (1 * 1 + 1 * 3) / (1 + 1 + alpha) = 4/3, which at 2 says 8/3.
    found = values(KernelRidgeRegression(), KernelRidge(alpha=1.0), [[1], [1], [2]], [1, 3, 4])
    assert found[2] == pytest.approx(8 / 3, rel=1e-12)


def test_a_constant_kernel_by_hand():
    # n records with noise 1 about a common value of variance 1: the posterior mean is their sum / (n + 1).
    y = np.array([3.0, 5.0, 10.0, 2.0])
    constant = GaussianProcessRegressor(ConstantKernel(1.0), optimizer=None, alpha=1.0)
    found = values(GaussianProcessRegression(), constant, np.zeros((4, 1)), y)
    np.testing.assert_allclose(found, (y.sum() - y) / 4, rtol=1e-12)
    # About the mean of the others their sum is 0, so that their mean is what is left.
    constant.normalize_y = True
    found = values(GaussianProcessRegression(), constant, np.zeros((4, 1)), y)
    np.testing.assert_allclose(found, (y.sum() - y) / 3, rtol=1e-12)


def test_white_noise_is_the_same_as_alpha():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    white = GaussianProcessRegressor(RBF(2.0) + WhiteKernel(0.5), optimizer=None, alpha=0.0)
    alpha = GaussianProcessRegressor(RBF(2.0), optimizer=None, alpha=0.5)
    found = [values(GaussianProcessRegression(), estimator, X, y) for estimator in (white, alpha)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-10)


@pytest.mark.parametrize("centred", [False, True])
def test_the_formula_equals_solving_for_each(centred):
    rng = np.random.default_rng(1)
    half = rng.normal(size=(12, 12))
    K, y = half @ half.T + np.eye(12), rng.normal(size=12) + 5
    found, doubtful = machine(K, 0.0, y, centred).own(np.arange(12))
    assert not doubtful.any()
    for t in range(12):
        rest = np.arange(12) != t
        mean = y[rest].mean() if centred else 0.0
        expected = mean + K[t, rest] @ np.linalg.solve(K[np.ix_(rest, rest)], y[rest] - mean)
        assert found[t, 0] == pytest.approx(expected, rel=1e-10)


def test_rounding_of_the_kernel_leaves_models_to_training():
    y = np.array([1.0, 2.0, 3.0])
    K = np.eye(3) + 0.5
    assert not machine(K, 1e-12, y).doubtful.any()
    assert machine(K, 1e-6, y).doubtful.all()
    assert "not positive definite" in machine(-K, 0.0, y)
