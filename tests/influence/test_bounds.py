"""Bounds on DTP that follow from how a learner answers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, Normalizer, StandardScaler

from leakgauge.influence import EVERY_QUERY, dtp_upper_bound, pdtp
from leakgauge.records import Records
from leakgauge.training import SklearnLearner


@pytest.mark.parametrize(
    ("strategy", "seed"),
    [
        pytest.param(strategy, seed, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, strategy in enumerate(["prior", "most_frequent", "uniform"])
        for j, seed in enumerate(range(6))
    ],
)
def test_a_constant_classifier_has_the_same_influence_at_every_query(strategy, seed):
    """The bound is PDTP itself, behind a scaler as well, but where two classes are as frequent or one would vanish."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([[0, 1, 1, 2, 2, 2], rng.integers(0, 3, 8)])
    records = Records.from_arrays(rng.normal(size=(14, 2)), labels)
    learner = SklearnLearner(make_pipeline(StandardScaler(), DummyClassifier(strategy=strategy)))
    bound, found = dtp_upper_bound(learner, records), pdtp(learner, records, seed=0)
    assert bound is not None
    assert bound.covers == EVERY_QUERY
    known = np.isfinite(bound.values)
    assert bound.values[known] == pytest.approx(found.values[known], abs=1e-12)
    lonely = np.bincount(labels)[labels] == 1
    tied = strategy == "most_frequent" and np.sort(np.bincount(labels))[-1] - np.sort(np.bincount(labels))[-2] <= 1
    assert (known | lonely | tied).all()


@pytest.mark.parametrize("steps", [[StandardScaler()], [Normalizer()], [Binarizer(), Normalizer()]], ids=str)
def test_there_is_no_bound_where_steps_may_give_the_regression_any_rows(steps):
    """The bound is for rows between the extremes of all columns; what steps make of a query may lie elsewhere."""
    rng = np.random.default_rng(0)
    records = Records.from_arrays(rng.normal(size=(40, 2)), np.arange(40) % 2)
    assert dtp_upper_bound(SklearnLearner(make_pipeline(*steps, LogisticRegression())), records) is None
    assert dtp_upper_bound(SklearnLearner(LogisticRegression()), records) is not None
