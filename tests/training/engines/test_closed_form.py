"""What closed forms share: solved once, any query, displaced parameters; first where nothing can be found."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from leakgauge.records import Records
from leakgauge.training import EachModel, Job, Randomness, SklearnLearner, leave_one_out
from leakgauge.training.engines import closed_form
from leakgauge.training.engines.closed_form import blocks, change, products
from leakgauge.training.engines.kernels import KernelRidgeRegression
from leakgauge.training.engines.linear import LinearLeastSquares, RidgeRegression
from leakgauge.training.engines.naive_bayes.engines import GaussianNaiveBayes, MultinomialNaiveBayes
from leakgauge.training.engines.refit import Refit


def job_of(estimator, records, queries, removed=None):
    learner = SklearnLearner(estimator)
    return Job(learner, records, leave_one_out(len(records), removed), queries, 0, Randomness.COMMON)


def some_records(n=30, d=3):
    rng = np.random.default_rng(0)
    return Records.from_arrays(rng.normal(size=(n, d)), rng.normal(size=n))


# ---------------------------------------------------------------- nothing to find


def test_where_labels_follow_exactly_no_record_moves_anything():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3))
    records = Records.from_arrays(X, X @ [1.0, -2.0, 0.5] + 4.0)
    queries = rng.normal(size=(5, 3))
    job = job_of(LinearRegression(), records, queries)
    np.testing.assert_allclose(LinearLeastSquares().prepare(job).displacements(), 0.0, atol=1e-13)
    expected = np.tile(queries @ [1.0, -2.0, 0.5] + 4.0, (30, 1))
    np.testing.assert_allclose(LinearLeastSquares().prepare(job).all().answers[:, :, 0], expected, rtol=1e-12)


def test_where_all_labels_are_0_every_query_is_answered_0():
    records = Records.from_arrays(some_records().features, np.zeros(30), task="regression")
    job = job_of(KernelRidge(kernel="rbf"), records, records.features[:4] + 0.1)
    np.testing.assert_array_equal(KernelRidgeRegression().prepare(job).all().answers, 0.0)


# ---------------------------------------------------------------- known answers


def test_a_line_and_its_displacement_by_hand():
    # Through (0, 0), (1, 1), (2, 2), (3, 7) least squares puts y = 2.2 x - 0.8; without the last record y = x.
    records = Records.from_arrays([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 7.0], task="regression")
    job = job_of(LinearRegression(), records, np.array([[10.0], [-4.0]]))
    np.testing.assert_allclose(LinearLeastSquares().prepare(job).all().answers[3, :, 0], [10.0, -4.0], rtol=1e-12)
    np.testing.assert_allclose(LinearLeastSquares().prepare(job).displacements()[3], [-1.2, 0.8], rtol=1e-12)


def test_displaced_shares_by_hand():
    # Totals of class a with 1 added are [4, 2], without the first record [2, 2]; class b stays at [1, 4]. The priors
    # go from 2/3 and 1/3 to one half each.
    records = Records.from_arrays([[2.0, 0.0], [1.0, 1.0], [0.0, 3.0]], list("aab"))
    moves = MultinomialNaiveBayes().prepare(job_of(MultinomialNB(), records, records.features)).displacements()
    np.testing.assert_allclose(
        moves[0], [*np.log([(1 / 2) / (2 / 3), (1 / 2) / (4 / 6), (1 / 2) / (2 / 6)]), np.log(3 / 2), 0, 0], rtol=1e-12
    )
    assert np.isnan(moves[2]).all(), "without its last member a class has no parameters"


# ---------------------------------------------------------------- once


def test_a_job_is_solved_once(monkeypatch):
    solved = []
    real = RidgeRegression.solve
    monkeypatch.setattr(RidgeRegression, "solve", lambda self, case: solved.append(case) or real(self, case))
    records = some_records()
    job = job_of(Ridge(), records, records.features)
    ready = RidgeRegression().prepare(job)
    ready.all()
    ready.displacements()
    assert len(solved) == 1


def test_two_jobs_are_not_mistaken_for_each_other():
    records, other = some_records(), some_records(20)
    engine = RidgeRegression()
    jobs = [job_of(Ridge(alpha=alpha), table, table.features[:2]) for alpha in (1.0, 9.0) for table in (records, other)]
    for job in [*jobs, *reversed(jobs)]:
        np.testing.assert_allclose(engine.prepare(job).all().answers, Refit().prepare(job).all().answers, rtol=1e-10)


@pytest.mark.parametrize("queries", ["own", "each", "shared"])
def test_parts_are_rows_of_the_whole(queries, monkeypatch):
    """Also where the models are done in blocks of one."""
    records = some_records()
    index = np.random.default_rng(2).integers(0, 30, (30, 4))
    asked = {"own": EachModel(np.arange(30)[:, None]), "each": EachModel(index), "shared": records.features[:7]}
    job = job_of(Ridge(), records, asked[queries])
    whole = RidgeRegression().prepare(job).all().answers
    models = np.array([29, 4, 11])
    np.testing.assert_allclose(RidgeRegression().prepare(job.part(models)).all().answers, whole[models], rtol=1e-13)
    monkeypatch.setattr(closed_form, "BLOCK_NUMBERS", 1)
    np.testing.assert_allclose(RidgeRegression().prepare(job).all().answers, whole, rtol=1e-13)


# ---------------------------------------------------------------- what cannot be told is trained


def test_models_left_to_training_are_trained_and_displaced():
    """A feature that is constant but for one record: its direction is gone without it, and ridge cannot tell."""
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(20, 2)), 1e-9 * rng.normal(size=20)])
    X[6, 2] = 1e3
    records = Records.from_arrays(X, rng.normal(size=20))
    job = job_of(Ridge(alpha=1e-10), records, records.features[:5] * 1.5)
    ready = RidgeRegression().prepare(job)
    lost = np.flatnonzero(ready.solved.moves(ready.case.removed)[1])
    assert lost.tolist() == [6]
    np.testing.assert_allclose(
        RidgeRegression().prepare(job).all().answers[lost],
        Refit().prepare(job).all().answers[lost],
        rtol=1e-12,
    )
    rest, estimator = np.arange(20) != 6, Ridge(alpha=1e-10)
    before = estimator.fit(X, records.labels).coef_.copy()
    moved = estimator.fit(X[rest], records.labels[rest]).coef_ - before
    np.testing.assert_allclose(RidgeRegression().prepare(job).displacements()[6, :3], moved, rtol=1e-12)


def test_queries_of_which_rounding_leaves_nothing_are_trained():
    """Features of 1e9 times the spread: what a variance leaves of the distance are rounding errors."""
    rng = np.random.default_rng(4)
    records = Records.from_arrays(rng.normal(size=(20, 2)), rng.integers(0, 2, 20))
    near, far = records.features[:2], records.features[:2] + 1e12
    for queries, lost in ((near, False), (far, True)):
        job = job_of(GaussianNB(), records, queries)
        ready = GaussianNaiveBayes().prepare(job)
        with np.errstate(all="ignore"):
            assert ready.solved.asked(ready.case.removed, ready.case.queries)[1].all() == lost
        np.testing.assert_allclose(
            GaussianNaiveBayes().prepare(job).all().answers,
            Refit().prepare(job).all().answers,
            rtol=1e-9,
        )


# ---------------------------------------------------------------- small helpers


def test_products_of_queries_for_all_and_for_each():
    rng = np.random.default_rng(5)
    rows, shared, each = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=(4, 6, 3))
    np.testing.assert_allclose(products(rows, shared), np.einsum("md,qd->mq", rows, shared))
    np.testing.assert_allclose(products(rows, each), np.einsum("md,mqd->mq", rows, each))


def test_blocks_cover_every_model_once():
    for n_models, width in ((0, 5), (1, 10**9), (7, 2**20), (100, 3)):
        parts = [np.arange(n_models)[part] for part in blocks(n_models, width)]
        np.testing.assert_array_equal(np.concatenate([*parts, np.empty(0, dtype=int)]), np.arange(n_models))


def test_the_same_infinity_is_no_change():
    infinite = np.array([-np.inf, -np.inf, 1.0])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(change(infinite, np.array([-np.inf, 0.0, 3.0])), [0.0, -np.inf, -2.0])
