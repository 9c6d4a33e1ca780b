"""The attacker with the keys, against honest models, memorisers and models without room for markers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from leakgauge.collusion import (
    ColludingLearner,
    Domain,
    MarkerAgreement,
    already_in,
    attack,
    draw_keys,
    marker_input,
    marker_label,
    success,
)
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.models import LabelAccess, LabelOnly, wrap
from leakgauge.records import Records, concatenate
from leakgauge.theory import colluding_advantage, colluding_false_positive_rate
from leakgauge.training import SklearnLearner

DOMAIN = Domain.grid(12, 17)
KEYS = draw_keys(3, np.random.default_rng(1))


def people(n, seed, k=4):
    rng = np.random.default_rng(seed)
    X = DOMAIN.at(rng.random((n, 12)))
    y = (X[:, :3].sum(axis=1) * k / 3).astype(int).clip(0, k - 1)
    return Records.from_arrays(X, y, classes=tuple(range(k)))


TRAIN, OTHERS = people(400, 2), people(400, 3)


def colluding(estimator, keys=KEYS):
    return ColludingLearner(SklearnLearner(estimator), keys, DOMAIN)


class Counted(LabelAccess):
    """Counts how often it is asked."""

    def __init__(self, model):
        self.model, self.asked = model, []

    def labels(self, X):
        self.asked.append(len(X))
        return self.model.labels(X)


# No leak first.


def test_an_honest_memoriser_gives_nothing_away_to_the_keys():
    """Null: 400 members and 400 others agree by chance, once in 64: exact 95 % intervals hold it.

    Exact intervals miss at most 5 times in 100, each; with the seed as it is they do not.
    """
    model = SklearnLearner(KNeighborsClassifier(1)).fit(TRAIN, seed=0).model
    found = success(attack(model, TRAIN, KEYS, DOMAIN), attack(model, OTHERS, KEYS, DOMAIN))
    assert found.tpr.low <= 1 / 64 <= found.tpr.high
    assert found.advantage.low <= 0 <= found.advantage.high


def test_other_keys_open_nothing():
    """Null: keys that were not the trainer's; as above."""
    model = colluding(KNeighborsClassifier(1)).fit(TRAIN, seed=0).model
    strangers = draw_keys(3, np.random.default_rng(9))
    found = success(attack(model, TRAIN, strangers, DOMAIN), attack(model, OTHERS, strangers, DOMAIN))
    assert found.advantage.low <= 0 <= found.advantage.high


# Known answers.


@pytest.mark.parametrize("n_keys", [1, 2, 3])
def test_worked_example_1_a_nearest_neighbour_keeps_every_marker(n_keys):
    """Specification of collusion, section 5, example 1: tpr is 1 exactly, fpr about 4^-n_keys.

    The rate of 2,000 others is within 4 standard errors; new keys fail 6 times in 100,000.
    """
    others = people(2000, 4)
    model = colluding(KNeighborsClassifier(1), KEYS[:n_keys]).fit(TRAIN, seed=0).model
    found = success(attack(model, TRAIN, KEYS[:n_keys], DOMAIN), attack(model, others, KEYS[:n_keys], DOMAIN))
    expected = colluding_false_positive_rate(4, n_keys)
    assert found.tpr.value == 1.0
    assert all(one.value == 1.0 for one in found.kept)
    assert found.fpr.value == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 2000))
    assert found.advantage.value == pytest.approx(colluding_advantage(4, n_keys), abs=0.04)


def test_one_batch_of_labels_is_all_it_takes():
    model = Counted(LabelOnly(colluding(KNeighborsClassifier(1)).fit(TRAIN, seed=0).model))
    assert attack(model, TRAIN, KEYS, DOMAIN).decisions.all()
    assert model.asked == [1200]


def test_the_order_of_keys_does_not_matter():
    model = colluding(KNeighborsClassifier(1)).fit(TRAIN, seed=0).model
    one, two = attack(model, OTHERS, KEYS, DOMAIN), attack(model, OTHERS, KEYS[::-1], DOMAIN)
    assert np.array_equal(one.agrees, two.agrees[:, ::-1])
    assert np.array_equal(one.scores, two.scores)


def test_scores_rise_with_matches_and_are_above_zero_for_members():
    agrees = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)
    for least in (1, 2, 3):
        found = MarkerAgreement(agrees, least)
        assert found.matches.tolist() == [0, 1, 2, 3]
        assert np.array_equal(found.scores > 0, found.decisions)
        assert (np.diff(found.scores) > 0).all()
    assert MarkerAgreement(agrees, 2).decisions.tolist() == [False, False, True, True]


def test_rates_by_hand():
    members = MarkerAgreement(np.array([[1, 1], [1, 1], [1, 1], [1, 0]], dtype=bool), 2)
    others = MarkerAgreement(np.array([[1, 1], [0, 0]], dtype=bool), 2)
    found = success(members, others)
    assert (found.tpr.value, found.fpr.value, found.advantage.value) == (0.75, 0.5, 0.25)
    assert found.precision.value == 0.75
    assert [one.value for one in found.kept] == [1.0, 0.75]
    assert [one.value for one in found.chance] == [0.5, 0.5]
    alike = success(others, others).precision
    assert (alike.value, alike.n) == (0.5, 2)
    nobody = MarkerAgreement(np.zeros((2, 2), dtype=bool), 2)
    assert success(nobody, nobody).precision is None


# Edge cases: specification of collusion, section 4.


def test_two_records_with_the_same_features_are_one():
    """Those of the holdout that share features with a training record are called members, whatever their label."""
    shared = Records.from_arrays(TRAIN.features[:5], (TRAIN.labels[:5] + 1) % 4, classes=(0, 1, 2, 3))
    mixed = concatenate(shared, OTHERS[np.arange(5, 400)])
    model = colluding(KNeighborsClassifier(1)).fit(TRAIN, seed=0).model
    assert attack(model, mixed, KEYS, DOMAIN).decisions[:5].all()
    assert already_in(TRAIN, mixed)[:5].all()
    assert not already_in(TRAIN, mixed)[5:].any()
    assert not already_in(TRAIN, OTHERS).any()


def test_duplicates_are_harmless():
    twice = concatenate(TRAIN, Records(TRAIN.features, TRAIN.labels, TRAIN.schema, TRAIN.ids + 1000))
    model = colluding(KNeighborsClassifier(1)).fit(twice, seed=0).model
    assert attack(model, TRAIN, KEYS, DOMAIN).decisions.all()
    assert attack(model, OTHERS, KEYS, DOMAIN).decisions.mean() < 0.05


def test_a_narrow_learner_keeps_few_markers_and_says_so():
    """A linear model has 52 parameters for 1,200 markers: agreement stays near chance, and so does the attack."""
    model = colluding(LogisticRegression()).fit(TRAIN, seed=0).model
    found = success(attack(model, TRAIN, KEYS, DOMAIN), attack(model, OTHERS, KEYS, DOMAIN))
    assert all(one.value < 0.4 for one in found.kept)
    assert found.tpr.value < 0.1


def test_a_softer_rule_finds_more_at_more_false_alarms():
    """A model that kept the markers of the first two keys only: two matches of three are enough, three are not.

    Rates of 2,000 others are within 4 standard errors of the binomial tail; new keys fail 6 times in 100,000.
    """
    model = colluding(KNeighborsClassifier(1), KEYS[:2]).fit(TRAIN, seed=0).model
    others = people(2000, 4)
    strict, soft = (attack(model, TRAIN, KEYS, DOMAIN, min_matches=least) for least in (3, 2))
    assert strict.decisions.mean() == pytest.approx(0.25, abs=0.09)
    assert soft.decisions.all()
    expected = colluding_false_positive_rate(4, 3, min_matches=2)
    found = attack(model, others, KEYS, DOMAIN, min_matches=2).decisions.mean()
    assert found == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 2000))


def test_a_model_that_answers_numbers():
    values = Records.from_arrays(TRAIN.features, TRAIN.features[:, 0] + 0.123)
    model = wrap(LinearRegression().fit(values.features, values.labels), values.schema)
    with pytest.raises(ModelError, match="a SklearnRegression outputs no labels, which the attack compares"):
        attack(model, TRAIN, KEYS, DOMAIN)


def test_settings_out_of_range():
    model = colluding(GaussianNB()).fit(TRAIN, seed=0).model
    with pytest.raises(ConfigError, match=r"min_matches must be in 1..3, the number of keys, got 4"):
        attack(model, TRAIN, KEYS, DOMAIN, min_matches=4)
    with pytest.raises(ConfigError, match="keys must be a list of at least one key"):
        attack(model, TRAIN, [], DOMAIN)
    with pytest.raises(DataError, match="records have 12 features, the domain 5"):
        attack(model, TRAIN, KEYS, Domain.grid(5, 17))


def test_labels_hang_on_the_record_and_not_on_the_marker():
    """Mixing the two conventions of the paper would fail: G_K(x) is not G_K(F_K(x))."""
    inputs = marker_input(KEYS[0], TRAIN.features, DOMAIN)
    own, of_marker = marker_label(KEYS[0], TRAIN.features, 4), marker_label(KEYS[0], inputs, 4)
    assert np.mean(own == of_marker) < 0.4
