"""Removal of the riskiest records, with measuring anew."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from leakgauge.defences import Removal
from leakgauge.errors import ConfigError, ModelError
from leakgauge.influence import own_influence
from leakgauge.records import Records
from leakgauge.training import SklearnLearner

rng = np.random.default_rng(0)
BAYES = SklearnLearner(GaussianNB())
RECORDS = Records.from_arrays(np.arange(10.0)[:, None], [0, 1] * 5)


def nothing(learner, records, seed):
    return np.zeros(len(records))


def place(learner, records, seed):
    """The value itself, and one more once nobody is above 8."""
    values = records.features[:, 0]
    return values + (values.max() <= 8)


def unknown(learner, records, seed):
    return np.full(len(records), np.nan)


def test_without_influence_nobody_is_removed():
    defence = Removal(nothing)
    assert defence.left(BAYES, RECORDS, seed=0).tolist() == list(range(10))
    plain, same = (one.fit(RECORDS, seed=0).model for one in (BAYES, defence.apply(BAYES)))
    assert np.array_equal(plain.log_probabilities(RECORDS.features), same.log_probabilities(RECORDS.features))


def test_those_who_are_left_are_measured_again():
    """9 goes first; then 8 counts as 9 and goes as well; then 7 counts as 8, which is at the limit."""
    assert Removal(place, 8.0).left(BAYES, RECORDS, seed=0).tolist() == list(range(8))
    assert Removal(place, 8.0, n_rounds=1).left(BAYES, RECORDS, seed=0).tolist() == list(range(9))


def test_what_is_not_known_stays():
    assert len(Removal(unknown).left(BAYES, RECORDS, seed=0)) == 10


def test_real_influence_is_below_the_limit_afterwards():
    X = np.concatenate([rng.normal(size=(80, 2)), [[6.0, -6.0]]])
    records = Records.from_arrays(X, [*(X[:80, 0] > 0).astype(int), 0])
    defence = Removal(own_influence, 1.0)
    left = defence.left(BAYES, records, seed=0)
    assert 80 not in left
    assert len(left) > 65
    assert own_influence(BAYES, records[left], 0).max() <= 1.0
    model = defence.apply(BAYES).fit(records, seed=0).model
    alone = BAYES.fit(records[left], seed=0).model
    assert np.array_equal(model.log_probabilities(X), alone.log_probabilities(X))


# Refusals.


def test_too_many_to_remove():
    with pytest.raises(
        ModelError, match=r"5 of 10 records have influence above 4, too many .*; regularise GaussianNB first"
    ):
        Removal(place, 4.0).left(BAYES, RECORDS, seed=0)


def test_influence_of_another_length():
    with pytest.raises(ModelError, match=r"one number for each of 10 records, got \(3,\)"):
        Removal(lambda learner, records, seed: np.zeros(3)).left(BAYES, RECORDS, seed=0)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"limit": 0.0}, "limit must be"), ({"n_rounds": 0}, "n_rounds must be"), ({"most": 1.0}, "most must be")],
)
def test_settings_out_of_range(settings, reason):
    with pytest.raises(ConfigError, match=reason):
        Removal(nothing, **settings)
