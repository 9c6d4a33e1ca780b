"""Naive Bayes without a record: by hand, and where rounding bites."""

import numpy as np
import pytest
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB

from leakgauge.records import Records
from leakgauge.training import EachModel, Job, Randomness, SklearnLearner, leave_one_out
from leakgauge.training.engines.base import PreparedJob
from leakgauge.training.engines.naive_bayes.counts import Bernoullis, Categories, Complements, Multinomials
from leakgauge.training.engines.naive_bayes.engines import (
    BernoulliNaiveBayes,
    CategoricalNaiveBayes,
    ComplementNaiveBayes,
    GaussianNaiveBayes,
    MultinomialNaiveBayes,
)
from leakgauge.training.engines.naive_bayes.gaussians import ClassMoments, Gaussians
from leakgauge.training.engines.naive_bayes.models import Classes, Priors, Scores, posterior, priors_without


def answer(engine, estimator, X, y, removed=0):
    """Probabilities of the classes for one removed record, by the model without it."""
    records = Records.from_arrays(np.array(X, dtype=float), y)
    which = np.array([removed])
    job = Job(
        SklearnLearner(estimator),
        records,
        leave_one_out(len(records), which),
        EachModel(which[:, None]),
        0,
        Randomness.COMMON,
    )
    assert isinstance(engine.prepare(job), PreparedJob)
    return np.exp(engine.prepare(job).all().answers[0, 0])


# ---------------------------------------------------------------- by hand


def test_gaussian_by_hand():
    # Without the first record a holds -1, 1 and b holds 2, 4: variances 1, means 0 and 3, equal shares.
    X, y = [[0], [-1], [1], [2], [4]], list("aaabb")
    found = answer(GaussianNaiveBayes(), GaussianNB(var_smoothing=0.0), X, y)
    np.testing.assert_allclose(found, [1 / (1 + np.exp(-4.5)), 1 / (1 + np.exp(4.5))], rtol=1e-12)


def test_gaussian_smoothing_follows_the_removal_by_hand():
    # The variance of -1, 1, 2, 4 is 13/4, so that a share of 4/13 adds 1 to the variances of 1.
    X, y = [[0], [-1], [1], [2], [4]], list("aaabb")
    found = answer(GaussianNaiveBayes(), GaussianNB(var_smoothing=4 / 13), X, y)
    np.testing.assert_allclose(found, [1 / (1 + np.exp(-2.25)), 1 / (1 + np.exp(2.25))], rtol=1e-12)


def test_given_priors_are_in_the_order_of_the_labels_by_hand():
    # The same densities at x = 0 (1 and e^-4.5). Though written first, b comes second in ascending order: prior 0.9.
    X, y = [[2], [4], [0], [-1], [1]], list("bbaaa")
    found = answer(GaussianNaiveBayes(), GaussianNB(priors=[0.1, 0.9], var_smoothing=0.0), X, y, removed=2)
    np.testing.assert_allclose(found[0], 0.1 / (0.1 + 0.9 * np.exp(-4.5)), rtol=1e-12)


def test_bernoulli_by_hand():
    # Without the first record 1 of 2 in a has the feature and 0 of 2 in b: (1+1)/(2+2) against (0+1)/(2+2).
    found = answer(BernoulliNaiveBayes(), BernoulliNB(), [[1], [1], [0], [0], [0]], list("aaabb"))
    np.testing.assert_allclose(found, [2 / 3, 1 / 3], rtol=1e-12)


def test_categorical_by_hand():
    # Category 0: 1 of 2 left in a, 0 of 2 in b, two categories: (1+1)/(2+2) against (0+1)/(2+2).
    found = answer(CategoricalNaiveBayes(), CategoricalNB(), [[0], [0], [1], [1], [1]], list("aaabb"))
    np.testing.assert_allclose(found, [2 / 3, 1 / 3], rtol=1e-12)


def test_multinomial_by_hand():
    # Shares of the first feature: (1+1)/4 in a, (0+1)/5 in b, each squared; one record of each class is left.
    found = answer(MultinomialNaiveBayes(), MultinomialNB(), [[2, 0], [1, 1], [0, 3]], list("aab"))
    np.testing.assert_allclose(found, [(1 / 4) / (1 / 4 + 1 / 25), (1 / 25) / (1 / 4 + 1 / 25)], rtol=1e-12)


def test_complement_by_hand():
    # Outside a: [0, 3] + 1, a share of 1/5; outside b: [1, 1] + 1, a share of 1/2. Scores 2 ln 5 and 2 ln 2.
    found = answer(ComplementNaiveBayes(), ComplementNB(), [[2, 0], [1, 1], [0, 3]], list("aab"))
    np.testing.assert_allclose(found, [25 / 29, 4 / 29], rtol=1e-12)


# ---------------------------------------------------------------- priors and Bayes' rule


def test_priors_without_a_record():
    classes = Classes(np.array([0, 0, 1, 3]), np.array([2, 1, 0, 1]))
    removed = np.array([0, 2])
    shares = priors_without(classes, removed, None, True)
    np.testing.assert_allclose(np.exp(shares.logs), [[1 / 3, 1 / 3, 0, 1 / 3], [2 / 3, 0, 0, 1 / 3]])
    uniform = priors_without(classes, removed, None, False)
    np.testing.assert_allclose(np.exp(uniform.logs), [[1 / 3, 1 / 3, 0, 1 / 3], [1 / 2, 0, 0, 1 / 2]])
    fixed = priors_without(classes, removed, np.array([0.5, 0.3, np.nan, 0.2]), True)
    np.testing.assert_allclose(np.exp(fixed.logs[0]), [0.5, 0.3, 0, 0.2])
    assert fixed.possible.tolist() == [True, False]


def test_posterior_flags_what_it_cannot_say():
    plain = Priors(np.zeros((5, 2)), np.zeros((5, 2), dtype=bool), np.array([True, True, True, True, False]))
    scores = Scores(
        np.array([[0.0, -1.0], [0.0, np.nan], [-np.inf, -np.inf], [1e9, 1e9], [0.0, 0.0]]),
        np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [1e-7, 1e-7], [np.nan, 0.0]]),
    )
    with np.errstate(invalid="ignore"):
        logs, doubtful = posterior(scores, plain)
    assert doubtful.tolist() == [False, True, True, True, False]
    np.testing.assert_allclose(np.exp(logs[0]), [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1))])
    assert np.isnan(logs[4]).all()


# ---------------------------------------------------------------- where rounding bites


def classes_of(labels):
    return Classes(labels, np.bincount(labels))


def variances_anew(X, labels, rows):
    return np.array([X[(labels == labels[t]) & (np.arange(len(X)) != t)].var(axis=0) for t in rows])


@pytest.mark.parametrize("outlier", [1.0, 1e3, 1e8, 1e15])
def test_variances_beside_an_outlier_keep_their_digits(outlier):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    X[7, 2] = outlier
    X[8, 3] = -outlier
    labels = rng.integers(0, 3, 60)
    labels[:2] = 3  # a class of two: without one the other has variance 0
    rows = np.arange(60)
    found = ClassMoments.of(X, classes_of(labels)).variances_without(rows)
    np.testing.assert_allclose(found, variances_anew(X, labels, rows), rtol=1e-13, atol=0)


def test_blocks_do_not_show(monkeypatch):
    """The same numbers whether the records are done in one block or in many."""
    rng = np.random.default_rng(1)
    X, labels = rng.poisson(2.0, (300, 7)).astype(float), rng.integers(0, 3, 300)
    classes, removed = classes_of(labels), rng.permutation(300)
    likelihoods = [
        Gaussians(X, classes, 1e-9),
        Multinomials(X, classes, 1.0),
        Complements(X, classes, 1.0, True),
        Categories(X.astype(np.int64), classes, 1.0, X.astype(np.int64).max(axis=0) + 1),
    ]
    whole = [one.own(removed).values for one in likelihoods]
    monkeypatch.setattr("leakgauge.training.engines.naive_bayes.models.BLOCK_NUMBERS", 1)
    for one, expected in zip(likelihoods, whole, strict=True):
        np.testing.assert_allclose(one.own(removed).values, expected, rtol=1e-13)


def test_sparse_and_dense_give_the_same():
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(2)
    X, labels = rng.poisson(0.5, (80, 9)).astype(float), rng.integers(0, 3, 80)
    X[:, 4] *= 0.3
    classes, removed = classes_of(labels), np.arange(80)
    has = (X > 0).astype(float)
    for dense, sparse in (
        (Multinomials(X, classes, 1.0), Multinomials(csr_matrix(X), classes, 1.0)),
        (Complements(X, classes, 1.0, False), Complements(csr_matrix(X), classes, 1.0, False)),
        (Bernoullis(has, classes, 1.0, None), Bernoullis(csr_matrix(has), classes, 1.0, None)),
    ):
        np.testing.assert_allclose(dense.own(removed).values, sparse.own(removed).values, rtol=1e-12)
        np.testing.assert_allclose(dense.own(removed).rounding, sparse.own(removed).rounding, rtol=1e-9)
        np.testing.assert_allclose(dense.moves(removed), sparse.moves(removed), rtol=1e-12, atol=1e-15)


def test_the_stated_rounding_covers_what_happens():
    """Scores of a million carry the rounding that scikit-learn shows as well, and say so; small scores do not."""
    rng = np.random.default_rng(3)
    X, labels = rng.integers(0, 5, (50, 4)).astype(float), rng.integers(0, 2, 50)
    removed = np.arange(50)
    small = Multinomials(X, classes_of(labels), 1.0).own(removed)
    large = Multinomials(X * 1e7, classes_of(labels), 1.0).own(removed)
    assert small.rounding.max() < 1e-12
    assert large.rounding.max() > 1e-9


def test_sums_of_whole_numbers_are_exact_and_of_others_rounded_by_every_record():
    """Whole counts have no rounding but that of logarithms; sums of n fractions err by up to the root of n more."""
    labels = np.arange(400) % 2
    counts = np.random.default_rng(0).integers(0, 5, (400, 3)).astype(float)
    whole, others = (Multinomials(X, classes_of(labels), 1.0) for X in (counts, counts / 7))
    assert whole.exact
    assert not others.exact
    assert whole.unit == 16 * 2.0**-53
    assert others.unit == pytest.approx((16 + 0.5 * 20) * 2.0**-53)
