"""The most influential records against leaving every record out."""

import os

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from leakgauge.errors import ModelError
from leakgauge.influence import most_influential, pdtp
from leakgauge.influence.screening import pdtp_bounds
from leakgauge.records import Records, datasets
from leakgauge.training import EachModel, Job, Randomness, SklearnLearner, leave_one_out, recipe
from leakgauge.training.engines.logistic.binary import groups, leaving_out, minimum, problem_of

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4))
CODES = rng.integers(0, 6, (400, 3))
ONE_HOT = np.concatenate([CODES[:, [j]] == np.arange(6) for j in range(3)], axis=1).astype(float)
COIN = rng.logistic(size=400)
Y = (X @ [1.0, -1, 0.5, 0] + COIN > 0).astype(int)

DATA = {
    "numbers": (X, Y),
    "categories": (ONE_HOT, (ONE_HOT @ rng.normal(size=18) + COIN > 0).astype(int)),
    "no signal": (X, rng.integers(0, 2, 400)),
    "outliers": (np.r_[X[:200], 20 * X[200:205]], np.r_[Y[:200], 1 - Y[200:205]]),
    "rare class": (X[:150], (np.arange(150) % 30 == 0).astype(int)),
    "copies": (X[np.arange(200) % 20], Y[np.arange(200) % 20]),
    "separable": (rng.normal(size=(30, 50)), np.arange(30) % 2),
}
LEARNERS = {
    "plain": LogisticRegression(),
    "weak penalty": LogisticRegression(C=100.0),
    "strong penalty": LogisticRegression(C=0.01),
    "no intercept": LogisticRegression(fit_intercept=False),
    "balanced": LogisticRegression(class_weight="balanced"),
    "weights": LogisticRegression(class_weight={0: 0.3, 1: 2.0}),
}


def case_of(learner, records):
    everyone = np.arange(len(records))
    queries = EachModel(everyone[:, None])
    return leaving_out(Job(learner, records, leave_one_out(len(records)), queries, 0, Randomness.COMMON))


def test_where_nothing_moves_the_model_nothing_is_found():
    """Records at 0 have score 0 with any weights if there is no intercept."""
    records = Records.from_arrays(np.zeros((20, 2)), np.arange(20) % 2)
    found = most_influential(SklearnLearner(LogisticRegression(fit_intercept=False)), records, 3)
    np.testing.assert_array_equal(found.values, 0.0)
    assert (found.guaranteed, found.n_exact, found.largest_left) == (True, 3, 0.0)


def test_a_record_whose_influence_follows_by_hand():
    """At x = 1 with opposite labels w = 0; alone either has ``C (1 - s(w)) = w``, so w = 1 at C = 1 + e.

    Of the others' log-probabilities ln(1/2) the larger change is to ``ln(1 - s(1))``.
    """
    records = Records.from_arrays([[1.0], [1.0], [0.0], [0.0]], [0, 1, 0, 1])
    found = most_influential(SklearnLearner(LogisticRegression(C=1 + np.e, fit_intercept=False)), records, 2)
    assert set(found.which) == {0, 1}
    np.testing.assert_allclose(found.values, np.log(0.5) - np.log(1 / (1 + np.e)), atol=1e-7)


@pytest.mark.long
@pytest.mark.parametrize(
    ("data", "learner"),
    [
        pytest.param(data, learner, marks=() if (i + 2 * j) % 6 == 0 else pytest.mark.slow)
        for i, data in enumerate(DATA)
        for j, learner in enumerate(LEARNERS)
    ],
)
def test_the_largest_are_those_of_leaving_out_every_record(data, learner):
    """Nothing here is statistical: the bound must hold for every record, and the order is that of the exact values."""
    records, learner = Records.from_arrays(*DATA[data]), SklearnLearner(LEARNERS[learner])
    exact = pdtp(learner, records, seed=0).values
    case = case_of(learner, records)
    whole = minimum(problem_of(case)).scores
    for group in groups(case):
        with np.errstate(over="ignore"):
            assert (pdtp_bounds(whole, group) >= exact[group.records] - 1e-7).all()
    for k in (1, 10):
        found = most_influential(learner, records, k)
        assert found.guaranteed
        np.testing.assert_allclose(found.values, np.sort(exact)[::-1][:k], atol=3e-7)
        np.testing.assert_allclose(found.values, exact[found.which], atol=3e-7)
        assert len(set(found.which.tolist())) == k


@pytest.mark.parametrize("name", ["numbers", "categories"])
def test_most_records_need_not_be_left_out(name):
    records = Records.from_arrays(*DATA[name])
    found = most_influential(SklearnLearner(LogisticRegression()), records, 10)
    assert found.guaranteed
    assert found.n_exact < 100


@pytest.mark.long
def test_if_it_must_stop_early_it_says_what_the_rest_cannot_exceed():
    records, learner = Records.from_arrays(*DATA["categories"]), SklearnLearner(LogisticRegression(C=10.0))
    exact = pdtp(learner, records, seed=0).values
    found = most_influential(learner, records, 20, most_exact=20)
    assert (found.n_exact, found.guaranteed) == (20, False)
    others = np.delete(np.arange(400), found.which)
    assert found.values[-1] < found.largest_left
    assert exact[others].max() <= found.largest_left


def test_all_records_if_there_are_fewer():
    records = Records.from_arrays(X[:12], Y[:12])
    found = most_influential(SklearnLearner(LogisticRegression()), records, 50)
    assert sorted(found.which) == list(range(12))
    assert (found.guaranteed, found.n_exact, found.largest_left) == (True, 12, 0.0)


@pytest.mark.parametrize("weights", [None, "balanced"])
def test_a_record_without_which_there_is_no_model_is_unknown(weights):
    records = Records.from_arrays(X[:30], (np.arange(30) == 7).astype(int))
    found = most_influential(SklearnLearner(LogisticRegression(class_weight=weights)), records, 30)
    np.testing.assert_array_equal(found.unknown, [7])
    assert sorted(found.which) == [t for t in range(30) if t != 7]


def test_other_learners_and_impossible_numbers():
    records = Records.from_arrays(X, Y)
    with pytest.raises(ModelError, match="influence cannot be screened: GaussianNB is not LogisticRegression"):
        most_influential(SklearnLearner(GaussianNB()), records, 3)
    for k, most in ((0, None), (5, 4)):
        with pytest.raises(ValueError, match="k must be at least 1 and most_exact at least k"):
            most_influential(SklearnLearner(LogisticRegression()), records, k, most_exact=most)


@pytest.mark.slow
@pytest.mark.skipif("LEAKGAUGE_DATA" not in os.environ, reason="needs the data set adult: set LEAKGAUGE_DATA")
def test_people_of_adult():
    whole = datasets.load("adult").records.as_codes()
    records = whole[np.random.default_rng(1).choice(len(whole), 3000, replace=False)]
    learner = recipe("logistic-regression", whole)
    exact = pdtp(learner, records, seed=0).values
    found = most_influential(learner, records, 60)
    assert found.guaranteed
    assert found.n_exact < 300
    np.testing.assert_allclose(found.values, np.sort(exact)[::-1][:60], atol=3e-7)
