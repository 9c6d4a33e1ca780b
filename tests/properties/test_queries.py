"""Algorithm 2 of Chase et al. 2021."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

from leakgauge.models import AnswerKind
from leakgauge.properties import FixedBand, TheoreticalBand, queries
from leakgauge.properties.queries import CleanModels, uncertain
from leakgauge.properties.training_sets import Trainer
from leakgauge.theory import Variant, certainty_band
from leakgauge.training import SklearnLearner


@pytest.fixture
def trainer(two_sides, learner):
    side = two_sides().attacker
    return Trainer(learner, side, side.records[:0])


def test_worked_example_7():
    """Ten models: 3 or 7 votes are kept, 2 or 8 are dropped."""
    kept = FixedBand().keeps(np.arange(11.0), 10, np.ones(11, dtype=bool))
    assert np.flatnonzero(kept).tolist() == [3, 4, 5, 6, 7]


@pytest.mark.parametrize("n_models", [10, 50, 100, 1000])
def test_the_ends_of_the_band_are_kept_whatever_rounding_does(n_models):
    votes = np.array([0.3, 0.7]) * n_models
    assert FixedBand().keeps(votes, n_models, np.ones(2, dtype=bool)).all()


def test_votes_against_models_trained_one_by_one(trainer):
    rng = np.random.default_rng(0)
    side = trainer.side
    sets, rows = side.draw_halves(200, 12, rng), rng.integers(0, len(side.records), 300)
    ensemble = CleanModels(trainer, side, sets, FixedBand(), seed=0)
    votes = ensemble.votes(sets, rows)
    one_by_one = [trainer.learner.fit(side.records[np.sort(s)], seed=0).model for s in sets]
    expected = sum(model.labels(side.records.features[rows]) for model in one_by_one)
    np.testing.assert_array_equal(votes, expected)
    few, kept, may_keep = ensemble.pilot(rows)
    np.testing.assert_array_equal(few, votes)
    np.testing.assert_array_equal(kept, np.abs(12 - 2 * expected) <= 4.8)
    np.testing.assert_array_equal(may_keep, (expected > 0) & (expected < 12))
    np.testing.assert_array_equal(ensemble.keeps(rows, few), kept)


@pytest.mark.parametrize("band", [FixedBand(), TheoreticalBand(certainty_band(0.3, 0.7, 0.1))], ids=["fixed", "theory"])
def test_models_that_were_asked_first_are_not_trained_again(trainer, band, monkeypatch):
    """The votes of the few and of the rest are those of all."""
    trained, groups = [], Trainer.groups

    def counted(self, sets, queries, **how):
        trained.append(len(sets))
        return groups(self, sets, queries, **how)

    monkeypatch.setattr(Trainer, "groups", counted)
    side = trainer.side
    sets, rows = side.draw_halves(100, 70, np.random.default_rng(0)), np.arange(0, 900, 3)
    ensemble = CleanModels(trainer, side, sets, band, seed=0)
    kept = ensemble.keeps(rows, ensemble.pilot(rows)[0])
    assert trained == [50, 20]
    np.testing.assert_array_equal(kept, band.keeps(ensemble.votes(sets, rows), 70, side.has[rows]))
    trained.clear()
    small = CleanModels(trainer, side, sets[:50], band, seed=0)
    small.keeps(rows, small.pilot(rows)[0])
    assert trained == [50]


def found_by(trainer, **changes):
    asked = {"n_ensemble": 60, "n_queries": 200, "most_drawn": 40_000, "rng": np.random.default_rng(5)} | changes
    return uncertain(trainer, trainer.side, 300, asked.pop("band", FixedBand()), **asked)


def test_the_first_uncertain_points_are_found_in_the_order_in_which_they_were_drawn(trainer, monkeypatch):
    """However few points are looked at at a time, those found are the same as by asking everybody about all."""
    found = found_by(trainer)
    assert len(found.rows) == 200
    rng = np.random.default_rng(5)
    sets = trainer.side.draw_halves(300, 60, rng)
    drawn = queries._half_half(trainer.side, 40_000, rng)
    ensemble = CleanModels(trainer, trainer.side, sets, FixedBand(), int(rng.integers(2**32)))
    kept = FixedBand().keeps(ensemble.votes(sets, drawn), 60, trainer.side.has[drawn])
    np.testing.assert_array_equal(found.rows, drawn[kept][:200])
    monkeypatch.setattr(queries, "FIRST_POINTS_PER_QUERY", 2)
    np.testing.assert_array_equal(found_by(trainer).rows, found.rows)


def test_points_are_drawn_half_and_half(trainer):
    """At 40,000 points 0.012 is over four standard errors."""
    drawn = queries._half_half(trainer.side, 40_000, np.random.default_rng(0))
    assert trainer.side.has[drawn].mean() == pytest.approx(0.5, abs=0.012)


def test_the_search_is_given_up(trainer):
    found = found_by(trainer, most_drawn=500)
    assert found.n_drawn == 500
    assert 0 < len(found.rows) < 200
    nothing = found_by(trainer, band=FixedBand(0.0), n_ensemble=51, most_drawn=300)
    assert (len(nothing.rows), nothing.n_drawn) == (0, 300)
    assert len(found_by(trainer, n_queries=0).rows) == 0


def test_models_that_all_say_the_same_leave_nothing_uncertain(two_sides):
    """The answer is the label of the majority everywhere, so that no point is taken to the whole ensemble."""
    side = two_sides().attacker
    stubborn = Trainer(SklearnLearner(RidgeClassifier(alpha=1e9)), side, side.records[:0])
    found = found_by(stubborn, n_ensemble=11, most_drawn=300)
    assert (len(found.rows), found.n_drawn) == (0, 300)


@pytest.mark.parametrize("variant", [Variant(True, 1), Variant(False, 1), Variant(False, 0)], ids=str)
def test_the_theorems_band_keeps_points_like_the_planted_ones(trainer, variant):
    band = certainty_band(0.3, 0.7, 0.1, variant=variant)
    found = found_by(trainer, band=TheoreticalBand(band), n_queries=50)
    assert len(found.rows) == 50
    assert (trainer.side.has[found.rows] == variant.with_property).all()
    models = trainer.learner.fit(trainer.side.records, seed=0).model
    certainty = 1 - 2 * np.exp(models.log_probabilities(trainer.side.records.features[found.rows])[:, 1])
    assert band.low - 0.1 < np.median(certainty) < band.high + 0.1


def test_models_that_answer_labels_only_are_counted_by_their_votes(two_sides):
    side = two_sides().attacker
    trainer = Trainer(SklearnLearner(RidgeClassifier()), side, side.records[:0])
    sets = side.draw_halves(200, 8, np.random.default_rng(0))
    band = TheoreticalBand(certainty_band(0.3, 0.7, 0.1))
    rows = np.arange(200)
    by_labels = CleanModels(trainer, side, sets, FixedBand(), 0).votes(sets, rows)
    by_mean = CleanModels(trainer, side, sets, band, 0).votes(sets, rows)
    assert band.kind is AnswerKind.PROBABILITIES
    np.testing.assert_allclose(by_mean, by_labels, atol=1e-10)
