"""Bins, labels, and probabilities that are less sure."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from leakgauge.defences import Binning, LabelsOnly, Temperature
from leakgauge.errors import ConfigError, ModelError
from leakgauge.influence import dtp_upper_bound, pdtp
from leakgauge.models import AnswerKind, answers, binned_logs, kind_of
from leakgauge.records import Records
from leakgauge.training import SklearnLearner
from leakgauge.training.learners import PostProcessedLearner

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
RECORDS = Records.from_arrays(X, (X[:, 0] + rng.normal(size=80) > 0).astype(int))
NUMBERS = Records.from_arrays(X, X[:, 0] + rng.normal(size=80))
COOL = Temperature(4.0)
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


def test_a_proof_holds_for_changed_answers():
    """2 / T of it at a temperature, all bins there are, and nothing of labels, which turn at any move."""
    plain = dtp_upper_bound(LINEAR, RECORDS)
    same, cool, bins = (dtp_upper_bound(one.apply(LINEAR), RECORDS) for one in (Temperature(1.0), COOL, Binning(0.1)))
    assert np.array_equal(same.values, plain.values)
    np.testing.assert_allclose(cool.values, plain.values / 2)
    assert (pdtp(COOL.apply(LINEAR), RECORDS, seed=0).values <= cool.values + 1e-6).all()
    np.testing.assert_allclose(bins.values, np.log(19))
    assert cool.covers == plain.covers
    assert dtp_upper_bound(LabelsOnly().apply(LINEAR), RECORDS) is None
    assert dtp_upper_bound(COOL.apply(TREE), RECORDS) is None


@pytest.mark.parametrize("change", [Temperature(4.0), Binning(0.01), LabelsOnly()])
def test_where_nothing_is_known_nothing_is_promised(change):
    moves = np.array([0.0, 0.5, np.inf])
    found = change.release.largest(moves)
    assert found[0] == 0 < found[1]
    assert found[2] == np.inf


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


# What becomes of an answer, and how far it may be off.

DEFENCES = [Temperature(1.0), Temperature(1.2), Temperature(6.0), Binning(0.01), Binning(0.1), LabelsOnly()]
each = pytest.mark.parametrize("defence", DEFENCES, ids=lambda defence: defence.name)


@each
@pytest.mark.parametrize("learner", [LINEAR, TREE])
def test_released_answers_are_what_is_made_of_the_answers_behind(defence, learner):
    behind, released = (answers(model_of(one), X, 2) for one in (learner, defence.apply(learner)))
    assert np.array_equal(defence.release(behind), released)
    assert np.array_equal(defence.release(behind.reshape(8, 10, 2)), released.reshape(8, 10, 2))
    assert defence.release.kind is kind_of(model_of(defence.apply(learner)))
    assert defence.apply(learner).composition == PostProcessedLearner(learner, defence.release)


@each
def test_a_model_that_could_not_be_trained_stays_one(defence):
    logs = np.log([[0.25, 0.75], [np.nan, np.nan]])
    assert np.isnan(defence.release(logs)).tolist() == [[False, False], [True, True]]
    assert not (defence.release.off(logs, np.full((2, 1), 0.01))[1] > 0.02).any()  # no jump, so not trained again


@each
def test_what_is_exact_is_not_off(defence):
    """Level labels, edges of bins, impossible and certain labels among them."""
    logs = np.log(np.array([[0.5, 0.5, 1e-300], [0.3, 0.3, 0.4], [0.1, 0.2, 0.7]]))
    logs = np.concatenate([logs, [[0.0, -np.inf, -np.inf], [-1e300, 0.0, -np.inf]]])
    assert (defence.release.off(logs, np.zeros((5, 1))) == 0).all()


@each
@pytest.mark.parametrize("size", [1e-3, 0.05, 1.0])
def test_no_answer_is_farther_off_than_said(defence, size):
    """2,000 answers about three classes, each moved by up to its error and made to sum to 1 again; the seed is fixed.

    A bound that were 10 per cent too small for temperatures would be broken by dozens of them.
    """
    draw = np.random.default_rng(1)
    logs, moved = draw.normal(size=(2000, 3)) * 2, draw.uniform(-size, size, (2000, 3))
    logs, moved = (one - np.logaddexp.reduce(one, axis=1, keepdims=True) for one in (logs, logs + moved))
    error = np.abs(moved - logs)
    error[::2] = error[::2].max(axis=1, keepdims=True)
    known = defence.release.off(logs, error)
    before, after = defence.release(logs), defence.release(moved)
    with np.errstate(invalid="ignore"):
        found = np.where(before == after, 0.0, np.abs(after - before))
    assert (found <= known + 1e-12).all()
    assert (known > 0).any()
    if isinstance(defence, Temperature):
        assert (known <= 2 * error.max(axis=1, keepdims=True)).all()


def test_a_bound_for_temperatures_is_reached():
    """An unlikely label beside a sure one: ln p / T falls by e / T, and the logarithm of the sum grows by e / T."""
    e, T = 0.01, 2.0
    logs, moved = np.array([[-50.0, 0.0]]), np.array([[-e, e]])
    raised = Temperature(T).release(logs + moved) - Temperature(T).release(logs)
    assert np.abs(raised).max() == pytest.approx(2 * e / T, rel=1e-6)
    assert Temperature(T).release.off(logs, np.full((1, 2), e)).max() == pytest.approx(2 * e / T)


def test_only_answers_near_an_edge_may_jump():
    logs = np.log([[0.399, 0.601], [0.35, 0.65], [0.005, 0.995]])
    off = Binning(0.1).release.off(logs, np.full((3, 1), 0.01))
    np.testing.assert_allclose(off[0], [np.log(0.45 / 0.35), np.log(0.65 / 0.55)])
    assert (off[1:] == 0).all()


def test_only_labels_that_are_nearly_level_may_jump():
    logs = np.log([[0.49, 0.51, 1e-9], [0.4, 0.6, 1e-9]])
    assert LabelsOnly().release.off(logs, np.full((2, 1), 0.03)).tolist() == [[np.inf] * 3, [0.0] * 3]


# Refusals.


@pytest.mark.parametrize("width", [0.0, -0.1, 0.6, 0.03, np.nan])
def test_widths_that_make_no_bins(width):
    with pytest.raises(ConfigError, match=r"width (of bins )?must be in"):
        Binning(width)


@pytest.mark.parametrize("temperature", [0.5, 0.0, np.inf, np.nan])
def test_temperatures_that_make_no_sense(temperature):
    with pytest.raises(ConfigError, match="temperature must be at least 1 and finite"):
        Temperature(temperature)


def test_a_model_of_labels_has_no_probabilities():
    labels = SklearnLearner(LinearSVC())
    with pytest.raises(ModelError, match="only probabilities can be binned; SklearnLabels outputs none"):
        model_of(Binning().apply(labels))
    with pytest.raises(ModelError, match="only probabilities have a temperature; SklearnLabels outputs none"):
        model_of(Temperature().apply(labels))


@pytest.mark.parametrize("defence", [Binning(), LabelsOnly(), Temperature()])
def test_numbers_are_no_classes(defence):
    with pytest.raises(ModelError, match="only"):
        model_of(defence.apply(SklearnLearner(LinearRegression())), NUMBERS)
