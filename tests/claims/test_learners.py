"""Claims about learners that can be trained."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from leakgauge.claims import Claim, Design, Outcome, measure_learner
from leakgauge.defences import DpSgd
from leakgauge.records import Records
from leakgauge.training import SklearnLearner

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 4))
PEOPLE = Records.from_arrays(X, (X[:, 0] + rng.normal(size=600) > 0).astype(int))


def test_dp_sgd_keeps_its_guarantee_and_less_noise_is_refuted():
    pytest.importorskip("dp_accounting")
    learner = DpSgd(800, epsilon=2.0, delta=1e-5, batch=800, rate=0.5).apply(SklearnLearner(LogisticRegression()))
    found = measure_learner(Claim(2.0, 1e-5), learner, PEOPLE, n=200, seed=0)
    assert found.outcome is Outcome.NOT_REFUTED, str(found)
    assert found.share_at_clip > 0.95
    assert found.coverage[0] == "canaries of the design own-column"
    assert measure_learner(Claim(0.1, 1e-5), learner, PEOPLE, n=1000, seed=0).outcome is Outcome.REFUTED


def test_a_learner_without_random_numbers_is_refuted_whatever_canaries_show():
    found = measure_learner(Claim(8.0, 1e-5), SklearnLearner(GaussianNB()), PEOPLE, n=20, seed=0)
    assert found.outcome is Outcome.REFUTED
    assert "no random numbers" in found.reason


class Fixed(ClassifierMixin, BaseEstimator):
    """A model that does not depend on its training records."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Fixed:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes_[(X[:, 0] > 0).astype(int)]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        shares = 1 / (1 + np.exp(-0.3 * X[:, 0]))
        return np.column_stack([1 - shares, shares])


@pytest.mark.parametrize("seed", range(5))
def test_a_learner_that_learns_nothing_is_not_refuted(seed: int) -> None:
    """The mean of equal references may differ from them in the last digit, and that is no leak."""
    found = measure_learner(
        Claim(1.0, 1e-5), SklearnLearner(Fixed()), PEOPLE, design=Design.OUT_OF_DISTRIBUTION, seed=seed
    )
    assert found.outcome is not Outcome.REFUTED, str(found)


def test_a_forest_that_remembers_is_refuted():
    learner = SklearnLearner(RandomForestClassifier(20, max_features=None))
    found = measure_learner(Claim(0.5, 1e-5), learner, PEOPLE, n=100, design=Design.OUT_OF_DISTRIBUTION, seed=0)
    assert found.outcome is Outcome.REFUTED
    assert found.p_value < 0.05


def test_learners_of_fixed_columns_get_canaries_of_these():
    from leakgauge.training import recipe

    found = measure_learner(Claim(0.5, 1e-5), recipe("logistic-regression", PEOPLE), PEOPLE, n=30, seed=0)
    assert found.coverage[0] == "canaries of the design out-of-distribution"
