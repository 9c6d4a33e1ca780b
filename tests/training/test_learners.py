"""Estimators that fit others several times, or beside each other: these draw as they do in the user's hands."""

import copy

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline, make_union

from leakgauge.records import Records
from leakgauge.training import SklearnLearner
from leakgauge.training.learners import _DrawnAnew


def test_each_copy_draws_other_numbers_and_the_same_again():
    first, again = (_DrawnAnew(3, 0) for _ in range(2))
    copies = [copy.deepcopy(first) for _ in range(3)] + [copy.deepcopy(copy.deepcopy(again))]
    drawn = [one.random_sample() for one in (first, *copies)]
    assert len(set(drawn)) == 5
    assert again.random_sample() == drawn[0]
    assert copy.deepcopy(again).random_sample() == drawn[2]


@pytest.mark.parametrize("outer", ["calibrated", "voting", "stacking", "one against the rest"])
def test_parts_that_are_fitted_several_times_draw_anew_each_time(outer):
    """As those of a model do whose ``random_state`` is ``None``; by the seed alone, and others draw as before."""
    inner = make_pipeline(RBFSampler(n_components=5), LogisticRegression())
    X = np.random.default_rng(0).normal(size=(90, 3))
    y = np.arange(90) % 3
    estimator = {
        "calibrated": CalibratedClassifierCV(inner, cv=3),
        "voting": VotingClassifier([("a", inner), ("b", inner)], voting="soft"),
        "stacking": StackingClassifier([("a", inner), ("b", inner)], cv=3),
        "one against the rest": OneVsRestClassifier(inner),
    }[outer]
    learner, records = SklearnLearner(estimator), Records.from_arrays(X, y)
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1]  # noqa: NPY002

    def weights(seed):
        fitted = learner.fit(records, seed=seed).model.estimator
        parts = getattr(fitted, "calibrated_classifiers_", None) or fitted.estimators_
        return np.stack([getattr(one, "estimator", one)[0].random_weights_ for one in parts])

    first = weights(1)
    assert all(not np.allclose(one, first[0]) for one in first[1:])
    np.testing.assert_array_equal(weights(1), first)
    assert not np.allclose(weights(2), first)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("beside", ["union", "columns"])
def test_parts_beside_each_other_draw_other_numbers(beside):
    """With the same ones two expansions would say no more than one."""
    both = [RBFSampler(n_components=5), RBFSampler(n_components=5)]
    step = make_union(*both) if beside == "union" else make_column_transformer(*((one, [0, 1, 2]) for one in both))
    X = np.random.default_rng(0).normal(size=(90, 3))
    learner = SklearnLearner(make_pipeline(step, LogisticRegression()))
    records = Records.from_arrays(X, np.arange(90) % 2)

    def made(seed):
        return learner.fit(records, seed=seed).model.estimator[0].transform(X)

    first = made(1)
    assert not np.allclose(first[:, :5], first[:, 5:])
    np.testing.assert_array_equal(made(1), first)
    assert not np.allclose(made(2), first)


def test_parts_with_a_number_keep_what_they_have_in_common():
    inner = make_pipeline(RBFSampler(n_components=5, random_state=7), LogisticRegression())
    X = np.random.default_rng(0).normal(size=(90, 3))
    learner = SklearnLearner(CalibratedClassifierCV(inner, cv=3))
    fitted = learner.fit(Records.from_arrays(X, np.arange(90) % 2), seed=3).model.estimator
    first, *others = (one.estimator[0].random_weights_ for one in fitted.calibrated_classifiers_)
    assert all(np.array_equal(one, first) for one in others)
