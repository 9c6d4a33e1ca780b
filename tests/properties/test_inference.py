"""Algorithm 3 of Chase et al. 2021, and what an attacker has in hand before it meets a model."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import RidgeClassifier

from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.models import AnswerKind, LabelAccess, LabelOnly
from leakgauge.properties import FixedBand, GameParameters, LinearRule, PropertyAttack, TheoreticalBand, prepare
from leakgauge.properties.inference import shadow_sets
from leakgauge.theory import Variant, certainty_band
from leakgauge.training import SklearnLearner

GAME = GameParameters(0.3, 0.7, n=300, poison=0.1)
SMALL = PropertyAttack(n_ensemble=60, n_queries=40, n_shadow=20)


@pytest.mark.parametrize("standardise", [False, True])
def test_the_rule_is_the_minimum_of_mean_loss_and_penalty(standardise):
    rng = np.random.default_rng(0)
    vectors = (rng.random((60, 8)) < 0.5) * 1.0
    is_t1 = rng.random(60) < 0.3 + 0.4 * vectors[:, 0]
    rows = (vectors - vectors.mean(axis=0)) / vectors.std(axis=0) if standardise else vectors
    signs = np.where(is_t1, 1, -1)

    def loss(w):
        return np.logaddexp(0, -signs * (rows @ w[1:] + w[0])).mean() + 0.3 * w[1:] @ w[1:] / 2

    best = optimize.minimize(loss, np.zeros(9), tol=1e-12).x
    rule = LinearRule.fitted(vectors, is_t1, 0.3, standardise=standardise)
    np.testing.assert_allclose(rule.scores(vectors), rows @ best[1:] + best[0], atol=1e-4)


def test_the_default_penalty_is_that_of_the_paper(two_sides, learner):
    """Weight 2 / sqrt(k) of |w|^2 / 2 beside the mean loss over 2k vectors."""
    side = two_sides().attacker
    implied = prepare(learner, side, GAME, SMALL, seed=1).rule
    explicit = prepare(
        learner,
        side,
        GAME,
        PropertyAttack(n_ensemble=60, n_queries=40, n_shadow=20, penalty=2 / np.sqrt(20)),
        seed=1,
    ).rule
    np.testing.assert_array_equal(implied.weights, explicit.weights)
    heavier = prepare(
        learner, side, GAME, PropertyAttack(n_ensemble=60, n_queries=40, n_shadow=20, penalty=9.0), seed=1
    ).rule
    assert np.linalg.norm(heavier.weights) < np.linalg.norm(implied.weights) / 3


def test_answers_that_are_all_the_same_make_a_constant_guess():
    rule = LinearRule.fitted(np.ones((10, 4)), np.arange(10) % 2 == 1, 0.5)
    np.testing.assert_allclose(rule.weights, 0, atol=1e-12)
    assert len(set((rule.scores(np.array([[1.0] * 4, [0.0] * 4])) > 0).tolist())) == 1


def test_queries_are_uncertain_points_and_then_the_planted_ones(two_sides, learner):
    side = two_sides().attacker
    prepared = prepare(learner, side, GAME, SMALL, seed=2)
    assert prepared.n_uncertain == 40
    assert len(prepared.poisoned.records) == 30
    np.testing.assert_array_equal(prepared.features[40:], prepared.poisoned.records.features)
    known = {row.tobytes() for row in side.records.features}
    assert all(row.tobytes() in known for row in prepared.features)


def test_the_same_seed_prepares_the_same_attack(two_sides, learner):
    side = two_sides().attacker
    first, again, other = (prepare(learner, side, GAME, SMALL, seed=seed) for seed in (2, 2, 3))
    np.testing.assert_array_equal(first.features, again.features)
    np.testing.assert_array_equal(first.rule.weights, again.rule.weights)
    assert not np.array_equal(first.features, other.features)


def test_no_uncertain_point_leaves_the_planted_ones(two_sides, learner):
    """The vote of an odd number of models is never even."""
    attack = PropertyAttack(n_ensemble=11, n_queries=10, n_shadow=10, band=FixedBand(0.0), most_drawn=200)
    prepared = prepare(learner, two_sides().attacker, GAME, attack)
    assert (prepared.n_uncertain, prepared.n_drawn, len(prepared.features)) == (0, 200, 30)


def test_nothing_to_ask_at_all_is_an_error(two_sides, learner):
    attack = PropertyAttack(n_ensemble=11, n_queries=10, n_shadow=10, band=FixedBand(0.0), most_drawn=200)
    with pytest.raises(DataError, match="no uncertain point was found among 200, and no record is poisoned"):
        prepare(learner, two_sides().attacker, GameParameters(0.3, 0.7, 300), attack)


def test_printed_sizes_are_a_choice(two_sides):
    side, rng = two_sides().attacker, np.random.default_rng(0)
    assert shadow_sets(side, GAME, PropertyAttack(), np.array([0.3]), rng).shape == (1, 270)
    assert shadow_sets(side, GAME, PropertyAttack(paper_sizes=True), np.array([0.3]), rng).shape == (1, 300)


class OnlyLabels(LabelAccess):
    """Answers labels, and nothing else there is to ask."""

    def __init__(self, model):
        self.model = model

    def labels(self, X):
        return self.model.labels(X)

    def __getattr__(self, name):
        raise AssertionError(f"asked for {name}")


def test_labels_are_enough_to_decide(two_sides, learner):
    sides = two_sides()
    prepared = prepare(learner, sides.attacker, GAME, SMALL, seed=2)
    model = learner.fit(sides.owner.records[:300], seed=0).model
    said = prepared.says_t1(model)
    assert isinstance(said, bool)
    assert prepared.says_t1(OnlyLabels(model)) == prepared.says_t1(LabelOnly(model)) == said


def test_an_attack_on_probabilities_needs_them(two_sides, learner):
    sides = two_sides()
    attack = PropertyAttack(n_ensemble=60, n_queries=40, n_shadow=20, answers=AnswerKind.PROBABILITIES)
    prepared = prepare(learner, sides.attacker, GAME, attack, seed=2)
    with pytest.raises(ModelError, match="queries probabilities, which LabelOnly does not output"):
        prepared.says_t1(LabelOnly(learner.fit(sides.owner.records[:300], seed=0).model))


def test_a_classifier_without_probabilities_can_be_attacked(two_sides):
    attack = PropertyAttack(n_ensemble=30, n_queries=20, n_shadow=10)
    learner = SklearnLearner(RidgeClassifier())
    prepared = prepare(learner, two_sides().attacker, GAME, attack)
    assert prepared.n_uncertain == 20
    assert prepared.says_t1(learner.fit(two_sides().owner.records[:300], seed=0).model) in (True, False)


@pytest.mark.parametrize("variant", [Variant(w, label) for w in (True, False) for label in (0, 1)], ids=str)
def test_every_variant_can_be_prepared_with_the_theorems_band(variant, two_sides, learner):
    band = TheoreticalBand(certainty_band(0.3, 0.7, 0.1, variant=variant))
    attack = PropertyAttack(n_ensemble=40, n_queries=10, n_shadow=10, variant=variant, band=band)
    prepared = prepare(learner, two_sides().attacker, GAME, attack)
    assert prepared.poisoned.variant == variant
    assert prepared.n_uncertain == 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_shadow": 0}, "n_shadow must be a whole number of at least 1"),
        ({"n_ensemble": 0}, "n_ensemble must be a whole number of at least 1"),
        ({"n_queries": -1}, "n_queries must be a whole number of at least 0"),
        ({"variant": 1}, "variant must be"),
        ({"band": 0.5}, "band must be"),
        ({"paper_sizes": 1}, "paper_sizes must be"),
        ({"most_drawn": -1}, "most_drawn must be"),
        ({"most_records": 1}, "most_records must be a whole number of at least 2"),
        ({"penalty": 0.0}, "penalty must be above 0"),
        ({"answers": AnswerKind.VALUES}, "the attack needs labels or probabilities"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        PropertyAttack(**settings)


def test_too_few_records_of_ones_own(two_sides, learner):
    with pytest.raises(DataError, match=r"of the attacker's records without the property are needed, but there are"):
        prepare(learner, two_sides().attacker, GameParameters(0.3, 0.7, n=9000, poison=0.6), SMALL)
