"""Naive Bayes of categories on subsets, against scikit-learn's own for each model: the same numbers, bit for bit."""

import re

import numpy as np
import pytest
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline

from leakgauge.records import Records
from leakgauge.records.discretise import FixedBins
from leakgauge.training import DenseSubsets, EachModel, Job, Randomness, SklearnLearner, plan, random_subsets
from leakgauge.training.engines.naive_bayes.subsets import CategoricalNaiveBayesSubsets
from leakgauge.training.engines.refit import Refit

N, SIZES = 300, (3, 7, 300, 2)
ENGINE = CategoricalNaiveBayesSubsets()


def data(n_classes=2, n=N):
    rng = np.random.default_rng(n_classes)
    y = rng.integers(0, n_classes, n)
    X = np.column_stack([np.minimum(rng.geometric(0.2 + 0.1 * (y % 3)) - 1, k - 1) for k in SIZES]).astype(float)
    return Records.from_arrays(X, np.char.add("c", y.astype(str)), task="classification")


def job_of(estimator, records, *, n_models=5, queries=None, subsets=None):
    subsets = subsets or random_subsets(len(records), len(records) // 2, n_models, np.random.default_rng(1))
    asked = records.features if queries is None else queries
    return Job(SklearnLearner(estimator), records, subsets, asked, 0, Randomness.INDEPENDENT)


def check(job):
    found, expected = (engine.prepare(job).all() for engine in (ENGINE, Refit()))
    np.testing.assert_array_equal(found.answers, expected.answers)
    assert (found.kind, found.failures) == (expected.kind, expected.failures)
    return found


def nb(**settings):
    return CategoricalNB(**{"min_categories": list(SIZES), **settings})


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"alpha": 0.1},
        {"alpha": 1e-12, "force_alpha": False},
        {"alpha": 50},
        {"fit_prior": False},
        {"min_categories": 301},
        {"min_categories": np.array([5, 9, 400, 2])},
    ],
)
def test_the_models_are_those_of_scikit_learn(settings, n_classes):
    check(job_of(nb(**settings), data(n_classes)))


def test_priors_that_are_given():
    check(job_of(nb(class_prior=[0.9, 0.06, 0.04]), data(3)))


def test_of_many_classes_the_last_bit_may_differ():
    """NumPy adds up eight and more in another order than it adds up rows."""
    job = job_of(nb(), data(12, 900))
    found, expected = (engine.prepare(job).all().answers for engine in (ENGINE, Refit()))
    np.testing.assert_allclose(found, expected, rtol=0, atol=ENGINE.tolerance)


def test_behind_public_bins_and_with_other_queries():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=N), rng.integers(0, 3, N)])
    records = Records.from_arrays(X, rng.integers(0, 2, N))
    estimator = make_pipeline(FixedBins(((-9.0, -0.5, 0.5, 9.0), None)), CategoricalNB(min_categories=[3, 3]))
    check(job_of(estimator, records, queries=np.array([[0.0, 1.0], [55.0, 2.0], [-55.0, 0.0]])))


def test_codes_that_are_no_whole_numbers_are_cut_off():
    check(job_of(nb(), data(), queries=np.array([[0.9, 6.99, 17.2, 1.0]])))


def test_where_each_model_is_asked_about_records_of_its_own():
    rng = np.random.default_rng(2)
    check(job_of(nb(), data(), queries=EachModel(np.stack([rng.permutation(N)[:9] for _ in range(5)]))))


def test_more_queries_than_are_answered_at_once(monkeypatch):
    monkeypatch.setattr("leakgauge.training.engines.naive_bayes.subsets.BLOCK_ROWS", 7)
    check(job_of(nb(), data(3)))


def test_a_model_that_lacks_a_class_is_trained():
    records = data(3)
    members = np.random.default_rng(1).random((4, N)) < 0.5
    members[1] &= np.asarray(records.labels) != 1
    found = check(job_of(nb(), records, subsets=DenseSubsets(members)))
    assert np.isneginf(found.answers[1, :, 1]).all()


def test_parts_are_those_of_the_whole():
    job = job_of(nb(), data())
    whole = ENGINE.prepare(job).all().answers
    np.testing.assert_array_equal(ENGINE.prepare(job).answers(np.array([3, 0])).answers, whole[[3, 0]])


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (CategoricalNB(), "the number of categories depends on who is in the training set; set min_categories"),
        (nb(min_categories=[3, 7, 17, 2]), "the number of categories depends on"),
        (nb(min_categories=2.5), "min_categories must be one whole number"),
        (nb(alpha=0), r"CategoricalNB\(alpha=0\) may give no numbers"),
        (nb(alpha=[1, 2]), "is not supported"),
        (nb(class_prior=[1.0]), "class_prior must be one number"),
        (GaussianNB(), "GaussianNB is not CategoricalNB"),
    ],
)
def test_what_it_has_no_answer_for_is_refused(estimator, words):
    assert re.search(words, str(ENGINE.prepare(job_of(estimator, data()))))


def test_codes_below_zero_are_refused_in_records_and_queries():
    records = data()
    negative = Records.from_arrays(records.features - 1, np.asarray(records.labels), task="classification")
    for job in (job_of(nb(), negative), job_of(nb(), records, queries=-np.ones((1, 4)))):
        assert str(ENGINE.prepare(job)) == "CategoricalNB takes no negative codes"


def test_a_class_without_records_is_refused():
    records = data()
    more = Records.from_arrays(records.features, np.asarray(records.labels).astype(str), classes=["0", "1", "2"])
    assert str(ENGINE.prepare(job_of(nb(), more))) == "there is a class without records"


def test_it_is_the_engine_that_is_chosen():
    assert plan(job_of(nb(), data())).prepared.engine.name == ENGINE.name
