import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from leakgauge.influence import Variation, pairwise_floor, sample_variation, seed_variation
from leakgauge.models import ProbabilityAccess
from leakgauge.records import Records
from leakgauge.training import FunctionLearner, Randomness, SklearnLearner

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 2))
RECORDS = Records.from_arrays(X, (X[:, 0] + rng.normal(size=80) > 0).astype(int))


def coin(records, seed):
    """A learner that looks at no record: its answers come from the seed alone, uniform on [0.2, 0.8]."""

    class Coin(ProbabilityAccess):
        def log_probabilities(self, X):
            p = np.random.default_rng(seed).uniform(0.2, 0.8, size=len(X))
            return np.log(np.stack([p, 1 - p], axis=1))

    return Coin()


def test_a_learner_without_choices_does_not_vary_with_the_seed():
    """Null."""
    found = seed_variation(SklearnLearner(GaussianNB()), RECORDS, X[:3], seed=0, n_models=4)
    assert (found.sd == 0).all()
    assert (found.floor == 0).all()
    assert found.source == "seeds"


def test_a_learner_that_looks_at_no_record_does_not_vary_with_the_sample():
    """Null: one seed for all models, so that only the samples differ."""
    found = sample_variation(FunctionLearner(coin), RECORDS, X[:3], 40, seed=0, n_models=5)
    assert found.sd.max() < 1e-15
    assert (found.floor == 0).all()
    apart = sample_variation(
        FunctionLearner(coin), RECORDS, X[:3], 40, seed=0, n_models=5, randomness=Randomness.INDEPENDENT
    )
    assert (apart.sd > 0).all()


def test_numbers_of_a_small_case():
    # three models, one query: probabilities 0.5, 0.5, 0.25 of the first label
    found = Variation(np.log(np.array([[[0.5, 0.5]], [[0.5, 0.5]], [[0.25, 0.75]]])), "seeds")
    assert found.mean[0, 0] == pytest.approx(1.25 / 3)
    assert found.sd[0, 0] == pytest.approx(np.sqrt((2 * (1 / 12) ** 2 + (1 / 6) ** 2) / 2))
    low, high = found.range
    assert (low[0, 0], high[0, 0]) == (pytest.approx(0.25), pytest.approx(0.5))
    # pairs differ by 0, ln 2, ln 2 at the first label and by 0, ln 1.5, ln 1.5 at the second
    np.testing.assert_allclose(found.log_ratios(0)[:, 0], [0, np.log(2), np.log(2)])
    np.testing.assert_allclose(found.log_ratios(0)[:, 1], [0, np.log(1.5), np.log(1.5)])
    assert found.floor[0] == pytest.approx(np.log(2))


def test_the_spread_of_a_known_distribution_is_found():
    """200 models, uniform on [0.2, 0.8]: mean 0.5, standard deviation 0.1732.

    The mean's standard error is 0.0122 and that of the standard deviation 0.0055: either misses 0.06, respectively
    0.03, with probability below 1e-5. That every seed is the same would give 0.
    """
    found = seed_variation(FunctionLearner(coin), RECORDS, X[:1], seed=0, n_models=200)
    assert found.probabilities.shape == (200, 1, 2)
    assert found.mean[0, 0] == pytest.approx(0.5, abs=0.06)
    assert found.sd[0, 0] == pytest.approx(0.6 / np.sqrt(12), abs=0.03)
    assert found.floor[0] <= np.log(4) + 1e-12
    assert found.floor[0] > np.log(2)
    assert found.floor[0] == pairwise_floor(found.log_probabilities)[0]


def test_samples_and_seeds_of_a_forest_both_matter():
    forest = SklearnLearner(RandomForestClassifier(5))
    by_seed = seed_variation(forest, RECORDS, X[:4], seed=0, n_models=6)
    by_sample = sample_variation(forest, RECORDS, X[:4], 40, seed=0, n_models=6)
    assert (by_seed.sd > 0).any()
    assert (by_sample.sd > 0).any()
    assert by_sample.source == "samples of 40 of 80 records"
    again = sample_variation(forest, RECORDS, X[:4], 40, seed=0, n_models=6)
    np.testing.assert_array_equal(again.log_probabilities, by_sample.log_probabilities)


def test_larger_samples_vary_less():
    learner = SklearnLearner(LogisticRegression())
    small = sample_variation(learner, RECORDS, X[:10], 20, seed=0, n_models=12)
    large = sample_variation(learner, RECORDS, X[:10], 60, seed=0, n_models=12)
    assert large.sd.mean() < 0.6 * small.sd.mean()


def test_models_that_could_not_be_trained_are_counted_and_left_out():
    records = Records.from_arrays(X[:12], [0] * 9 + [1] * 3)
    found = sample_variation(SklearnLearner(LogisticRegression()), records, X[:2], 3, seed=0, n_models=12)
    assert found.n_failed > 0
    assert len(found.log_probabilities) == 12 - found.n_failed
    assert not np.isnan(found.mean).any()


def test_errors():
    with pytest.raises(ValueError, match="n_models must be at least 2, got 1"):
        seed_variation(SklearnLearner(GaussianNB()), RECORDS, X[:1], seed=0, n_models=1)
    with pytest.raises(ValueError, match=r"size must be in \[1, 80\]"):
        sample_variation(SklearnLearner(GaussianNB()), RECORDS, X[:1], 81, seed=0)
