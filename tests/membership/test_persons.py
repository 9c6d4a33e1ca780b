"""Membership attacks on persons with several rows."""

import numpy as np
import pytest

from leakgauge.errors import DataError
from leakgauge.membership import ATTACKS, contamination, everyone_as_target, game, learned, strongest_per_record
from leakgauge.membership.learned import cross_fitted
from leakgauge.models import AnswerKind
from leakgauge.records import Units
from leakgauge.statistics import auc
from leakgauge.training import PredictionTable, complementary_pairs

LIRA, DISTANCE, LOSS = (
    next(one for one in ATTACKS if one.name == name) for name in ("lira", "distance", "loss-threshold")
)


def visits(n_persons: int, seed: int = 0) -> Units:
    """Persons of one to five rows, in no order."""
    rng = np.random.default_rng(seed)
    return Units.of(rng.permutation(np.repeat(np.arange(n_persons), rng.integers(1, 6, n_persons))))


def table_of(units: Units, effect: float, n_models: int = 16, seed: int = 0) -> PredictionTable:
    """Models on persons: log odds of the class 0 of each row, of which the person's part is shared by the rows."""
    rng = np.random.default_rng(seed)
    subsets = complementary_pairs(len(units), n_models // 2, rng).of_rows(units)
    shared = rng.normal(size=(n_models, len(units)))[:, units.of_row]
    odds = shared + 0.3 * rng.normal(size=shared.shape) + effect * subsets.members
    answers = np.stack([-np.logaddexp(0, -odds), -np.logaddexp(0, odds)], axis=-1)
    return PredictionTable(answers, AnswerKind.PROBABILITIES, subsets, np.arange(n_models), "made up")


@pytest.mark.parametrize("attack", [LIRA, DISTANCE, LOSS], ids=lambda one: one.name)
def test_the_score_of_a_person_is_the_mean_of_those_of_the_rows(attack, monkeypatch):
    monkeypatch.setattr(game, "OPPOSED_OVERLAP_SD", 1e9)  # by row, sets of persons would look opposed
    units = visits(40)
    table, labels = table_of(units, 1.0), np.zeros(len(units.of_row), dtype=np.int64)
    by_person = everyone_as_target(table, labels, attack, units=units)
    members = units.agreed(table.members)
    assert by_person.scores.shape == members.shape == (16, 40)
    np.testing.assert_array_equal(by_person.members, members)
    by_row = everyone_as_target(table, labels, attack)
    for person in range(40):
        expected = by_row.scores[:, units.of_row == person].mean(axis=1)
        np.testing.assert_allclose(by_person.scores[:, person], expected, rtol=1e-9, atol=1e-9)
    assert by_person.accuracy.shape == (40,)


def test_one_row_each_is_a_record_bit_for_bit():
    units = Units.rows(40)
    table, labels = table_of(units, 1.0), np.zeros(40, dtype=np.int64)
    named, plain = (everyone_as_target(table, labels, LIRA, units=one) for one in (units, None))
    np.testing.assert_array_equal(named.scores, plain.scores)
    np.testing.assert_array_equal(named.accuracy, plain.accuracy)


def test_null_the_interval_over_persons_covers_nothing():
    """60 tables of models that ignore membership: intervals of 95 % miss at most 8 times, one by row far more often.

    With the true rate of 0.05, 8 misses are exceeded 1 time in 200.
    """
    units, missed = visits(60), {"person": 0, "row": 0}
    for seed in range(60):
        table, labels = table_of(units, 0.0, seed=seed), np.zeros(len(units.of_row), dtype=np.int64)
        for unit, whose in (("person", units), ("row", None)):
            found = everyone_as_target(table, labels, LOSS, units=whose).advantage.pool()
            missed[unit] += not found.low <= 0 <= found.high
    assert missed["person"] <= 8


def test_the_best_attack_is_chosen_by_person():
    units = visits(30)
    table, labels = table_of(units, 2.0, 32), np.zeros(len(units.of_row), dtype=np.int64)
    best = strongest_per_record(table, labels, [DISTANCE, LIRA], units=units)
    assert best.accuracy.shape == (30,)
    assert best.accuracy.mean() > 0.6


def test_the_learned_attack_does_not_recognise_persons_by_their_other_rows():
    """Rows of a person are equal and say nothing of membership: split by row the forest knows the person, and wins."""
    rng = np.random.default_rng(0)
    units = Units(np.repeat(np.arange(100), 4))
    is_member = (rng.permutation(100) < 50)[units.of_row]
    odds = rng.normal(size=100)[units.of_row]
    answers = np.stack([-np.logaddexp(0, -odds), -np.logaddexp(0, odds)], axis=-1)
    labels = np.zeros(400, dtype=np.int64)

    def area(whose):
        scores = cross_fitted(AnswerKind.PROBABILITIES, answers, labels, is_member, seed=0, units=whose)
        scores, members = units.mean(scores), units.agreed(is_member)
        return auc(scores[members], scores[~members])

    assert area(None).low > 0.8
    assert area(units).low < 0.5 < area(units).high


def texts(rng, kept):
    """Losses of ten texts of each of 1,000 persons, of half of whom one text has a part of its loss."""
    is_member = np.arange(1000) < 500
    loss = (1 + rng.gamma(4, 0.5, size=(1000, 1))) * np.exp(rng.normal(size=(1000, 10)) * 0.1)
    loss[np.flatnonzero(is_member), rng.integers(0, 10, 500)] *= kept
    held = np.stack([-loss, np.log(-np.expm1(-loss))], axis=-1).reshape(-1, 2)
    return held, Units(np.repeat(np.arange(1000), 10)), is_member


def test_one_remembered_row_among_many_is_found():
    """Its loss is 30 % of what it was: the mean of ten hardly shows it, the smallest beside the mean does."""
    held, units, is_member = texts(np.random.default_rng(0), 0.3)
    labels, of_rows = np.zeros(10_000, dtype=np.int64), is_member[units.of_row]
    found = cross_fitted(AnswerKind.PROBABILITIES, held, labels, of_rows, seed=0, units=units)
    called = units.agreed(found) > 0.5
    assert called[is_member].mean() - called[~is_member].mean() > 0.9
    by_mean = units.mean(cross_fitted(AnswerKind.PROBABILITIES, held, labels, of_rows, seed=0)) > 0.5
    assert by_mean[is_member].mean() - by_mean[~is_member].mean() < 0.5


def called_by(losses, units, is_member, seed=0):
    """Who is called a member, by losses of the rows."""
    held = np.stack([-losses, np.log(-np.expm1(-losses))], axis=-1)
    labels, of_rows = np.zeros(len(losses), dtype=np.int64), is_member[units.of_row]
    return units.agreed(cross_fitted(AnswerKind.PROBABILITIES, held, labels, of_rows, seed=seed, units=units)) > 0.5


@pytest.mark.parametrize("remembered", [True, False])
def test_a_remembered_row_between_the_others_is_found(remembered):
    """1,000 persons of 20 rows that are answered well or badly; one of each member is answered in between."""
    rng = np.random.default_rng(0)
    units, is_member = Units(np.repeat(np.arange(1000), 20)), np.arange(1000) < 500
    losses = np.where(rng.random((1000, 20)) < rng.uniform(0.3, 0.7, (1000, 1)), 0.01, 3.0)
    losses *= rng.uniform(1, 1.5, losses.shape)
    if remembered:
        losses[np.flatnonzero(is_member), rng.integers(0, 20, 500)] = rng.uniform(0.5, 1.0, 500)
    called = called_by(losses.ravel(), units, is_member)
    gained = called[is_member].mean() - called[~is_member].mean()
    assert gained > 0.9 if remembered else abs(gained) < 0.15  # without a leak its standard deviation is 0.045


@pytest.mark.parametrize("gain", [0.1, 0.0])
def test_persons_are_compared_with_those_of_as_many_rows(gain):
    """Persons with more rows are answered better; members are by a part of what a row makes."""
    rng = np.random.default_rng(0)
    n_rows = np.tile(rng.integers(1, 21, 1000), 2)
    units, is_member = Units(np.repeat(np.arange(2000), n_rows)), np.arange(2000) < 1000
    losses = 3 - 0.1 * n_rows - gain * is_member + 0.02 * rng.normal(size=2000)
    called = called_by(losses[units.of_row], units, is_member)
    gained = called[is_member].mean() - called[~is_member].mean()
    assert gained > 0.25 if gain else abs(gained) < 0.12  # without a leak its standard deviation is 0.03


def test_persons_too_few_to_be_halved_are_judged_by_what_rows_show():
    """Two members and two others: either fold has one of each, and no row is judged by rows of others."""
    losses = np.array([0.1, 0.2, 0.1, 2.0, 0.1, 0.3, 1.0, 2.0])
    is_member = np.array([True, False, True, False])
    folds = learned._divided(is_member, 0, None, None)
    assert folds.halves() is None
    assert learned._divided(np.repeat(is_member, 2), 0, None, None).halves() is not None
    called = called_by(losses, Units(np.repeat(np.arange(4), 2)), is_member)
    for fold in folds.both:  # no forest of one member and one other divides them
        assert len(np.unique(called[fold])) == 1


@pytest.mark.long
def test_null_no_row_is_remembered():
    """40 audits: the mean advantage is within four standard errors, 0.045 each by the binomial law, of 0."""
    advantages = []
    for seed in range(40):
        held, units, is_member = texts(np.random.default_rng(seed), 1.0)
        labels, of_rows = np.zeros(10_000, dtype=np.int64), is_member[units.of_row]
        found = cross_fitted(AnswerKind.PROBABILITIES, held, labels, of_rows, seed=seed, units=units)
        called = units.agreed(found) > 0.5
        advantages.append(called[is_member].mean() - called[~is_member].mean())
    assert abs(np.mean(advantages)) < 4 * 0.045 / np.sqrt(40)
    assert np.std(advantages) < 0.07


@pytest.mark.parametrize(
    ("correlation", "n_rows", "row", "mean"), [(0.0, 5, 0.639, 0.787), (0.0, 20, 0.637, 0.943), (0.9, 20, 0.642, 0.649)]
)
def test_means_gain_as_much_as_rows_are_independent(correlation, n_rows, row, mean):
    """Rows at a shift of half a deviation; areas are those of an own prototype, and normal theory has the same."""
    rng, n = np.random.default_rng(0), 10_000
    units = Units(np.repeat(np.arange(2 * n), n_rows))
    own = np.sqrt(correlation) * rng.normal(size=2 * n)[units.of_row]
    scores = own + np.sqrt(1 - correlation) * rng.normal(size=len(units.of_row)) + 0.5 * (units.of_row < n)
    assert auc(scores[: n * n_rows], scores[n * n_rows :]).value == pytest.approx(row, abs=0.015)
    of_persons = units.mean(scores)
    assert auc(of_persons[:n], of_persons[n:]).value == pytest.approx(mean, abs=0.015)


def test_null_a_holdout_of_persons_is_suspected_as_rarely_as_said():
    """100 models among 20 siblings, each on half of the persons: p at most 0.1 in 10 of them, more than 20 in 1 of 800.

    Training sets hold as many persons and not as many rows, which is refused where nobody says whose they are.
    """
    units, suspected = visits(40), 0
    for seed in range(100):
        table, labels = table_of(units, 1.0, 22, seed), np.zeros(len(units.of_row), dtype=np.int64)
        siblings, answers, is_member = table.rows(np.arange(20)), table.answers[20], table.members[20]
        suspected += contamination(siblings, answers, labels, is_member, units).p_value <= 0.1
    assert suspected <= 20
    with pytest.raises(DataError, match="siblings must be trained on as many candidates as the model"):
        contamination(siblings, answers, labels, is_member)
