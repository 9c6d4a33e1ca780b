"""Bins, labels, and probabilities that are less sure."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from leakgauge.defences import Binning, LabelsOnly, Temperature
from leakgauge.errors import ConfigError, ModelError
from leakgauge.influence import pdtp
from leakgauge.models import AnswerKind, binned_logs, kind_of
from leakgauge.records import Records
from leakgauge.training import SklearnLearner

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
RECORDS = Records.from_arrays(X, (X[:, 0] + rng.normal(size=80) > 0).astype(int))
NUMBERS = Records.from_arrays(X, X[:, 0] + rng.normal(size=80))
LINEAR, TREE = SklearnLearner(LogisticRegression()), SklearnLearner(DecisionTreeClassifier(random_state=0))


def model_of(learner, records=RECORDS):
    return learner.fit(records, seed=0).model


def test_a_temperature_of_1_changes_nothing():
    plain, defended = model_of(LINEAR), model_of(Temperature(1.0).apply(LINEAR))
    assert np.array_equal(plain.log_probabilities(X), defended.log_probabilities(X))


def test_a_temperature_divides_the_score_of_two_classes():
    plain = model_of(LINEAR).log_probabilities(X)
    cool = model_of(Temperature(4.0).apply(LINEAR)).log_probabilities(X)
    np.testing.assert_allclose(cool[:, 1] - cool[:, 0], (plain[:, 1] - plain[:, 0]) / 4, atol=1e-12)
    np.testing.assert_allclose(np.exp(cool).sum(axis=1), 1.0, rtol=1e-12)
    assert np.array_equal(cool.argmax(axis=1), plain.argmax(axis=1))


def test_what_is_certain_stays_certain():
    """So a temperature does not save a model that gives a label the probability 0."""
    cool = model_of(Temperature(4.0).apply(TREE)).log_probabilities(X)
    assert set(np.unique(cool)) == {-np.inf, 0.0}


def test_pdtp_shrinks_with_the_temperature():
    """ln p / T moves by 1 / T of what ln p does, and the logarithm of their sum by no more."""
    tight = SklearnLearner(LogisticRegression(tol=1e-10, max_iter=10_000))
    plain, cool = pdtp(tight, RECORDS, seed=0), pdtp(Temperature(4.0).apply(tight), RECORDS, seed=0)
    assert (cool.values <= 2 / 4 * plain.values + 1e-6).all()
    assert (cool.values > 0.01).any()


def test_bins_put_an_end_to_pdtp():
    """ln 199 for bins of 0.01 (specification of training privacy, section 4), where a tree has no end."""
    assert np.isinf(pdtp(TREE, RECORDS, seed=0, floors=False).values).any()
    found = pdtp(Binning(0.01).apply(TREE), RECORDS, seed=0, floors=False).values
    assert found.max() == pytest.approx(np.log(199), abs=1e-12)
    assert f"{np.log(199):.3g} nats" in Binning(0.01).guarantee


def test_bins_are_those_of_every_audit():
    plain, defended = model_of(LINEAR), model_of(Binning(0.1).apply(LINEAR))
    assert np.array_equal(defended.log_probabilities(X), binned_logs(plain.log_probabilities(X), 0.1))


def test_labels_are_the_same_and_no_more_is_said():
    plain, defended = model_of(TREE), model_of(LabelsOnly().apply(TREE))
    assert kind_of(defended) is AnswerKind.LABELS
    assert np.array_equal(plain.labels(X), defended.labels(X))
    assert not hasattr(defended, "log_probabilities")


# Refusals.


@pytest.mark.parametrize("width", [0.0, -0.1, 0.6, 0.03, np.nan])
def test_widths_that_make_no_bins(width):
    with pytest.raises(ConfigError, match="width of bins must be in"):
        Binning(width)


@pytest.mark.parametrize("temperature", [0.5, 0.0, np.inf, np.nan])
def test_temperatures_that_make_no_sense(temperature):
    with pytest.raises(ConfigError, match="temperature must be at least 1 and finite"):
        Temperature(temperature)


def test_a_model_of_labels_has_no_probabilities():
    labels = SklearnLearner(LinearSVC())
    with pytest.raises(ModelError, match="only probabilities can be binned; SklearnLabels answers none"):
        model_of(Binning().apply(labels))
    with pytest.raises(ModelError, match="only probabilities have a temperature; SklearnLabels answers none"):
        model_of(Temperature().apply(labels))


@pytest.mark.parametrize("defence", [Binning(), LabelsOnly(), Temperature()])
def test_numbers_are_no_classes(defence):
    with pytest.raises(ModelError, match="only"):
        model_of(defence.apply(SklearnLearner(LinearRegression())), NUMBERS)
