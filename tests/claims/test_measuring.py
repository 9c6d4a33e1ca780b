"""Whether canaries refute a claim: first where there is nothing to find, then where there is."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

from leakgauge.claims import Claim, Outcome, measure_claim, measure_claim_many
from leakgauge.claims.measuring import _reversed
from leakgauge.errors import DataError
from leakgauge.statistics import epsilon_one_run, gaussian_mu


def game(m: int, mu: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores of ideal canaries, and their coins."""
    rng = np.random.default_rng(seed)
    coins = rng.random(m) < 0.5
    return rng.standard_normal(m) + mu * coins, coins


CLAIM = Claim(2.0, 1e-5)
NOISE = math.sqrt(20) / gaussian_mu(2.0, 1e-5)
WITH_NOISE = Claim(2.0, 1e-5, noise=NOISE, steps=20)


@pytest.mark.parametrize("claim", [CLAIM, WITH_NOISE], ids=str)
def test_a_true_claim_is_not_refuted(claim):
    found = measure_claim(claim, *game(1000, gaussian_mu(2.0, 1e-5)))
    assert found.outcome is Outcome.NOT_REFUTED
    assert found.exit_code == 0
    assert found.p_value > 0.05
    assert found.epsilon.low < 2
    assert "this is no proof of the claim" in str(found)
    assert "verified" not in str(found)


@pytest.mark.long
@pytest.mark.parametrize(("claim", "curve"), [(CLAIM, "(2, 1e-05)-differential"), (WITH_NOISE, "Gaussian noise of mu")])
def test_a_false_claim_is_refuted_and_the_curve_named(claim, curve):
    scores, coins = game(1000, 6 * gaussian_mu(2.0, 1e-5))
    found = measure_claim(claim, scores, coins)
    assert found.outcome is Outcome.REFUTED
    assert found.exit_code == 1
    assert found.p_value < 0.05
    assert found.reason.startswith(f"refuted: {curve}")
    assert found.epsilon.low == epsilon_one_run(scores, coins, delta=1e-5).low > 2
    assert found.epsilon.low < found.gaussian_epsilon.low < found.largest_epsilon * (1 if claim.noise else 2)
    assert found.power[4.0] > found.power[2.0]


def test_two_times_the_leak_takes_the_curve():
    """Power 0.04 by (epsilon, delta) and 0.64 by the curve; computed independently over 400 audits."""
    power = {claim.noise is None: measure_claim(claim, *game(1000, 0.5)).power for claim in (CLAIM, WITH_NOISE)}
    assert power[True][2.0] == pytest.approx(0.04, abs=0.06)
    assert power[False][2.0] == pytest.approx(0.64, abs=0.12)
    assert power[True][4.0] == power[False][4.0] == 1.0


def test_too_few_canaries_cannot_test():
    found = measure_claim(Claim(4.0, 1e-5), *game(100, 20.0))
    assert found.outcome is Outcome.CANNOT_TEST
    assert found.exit_code == 3
    assert found.largest_epsilon == pytest.approx(3.10, abs=0.01)
    assert "claim the noise as well" in found.reason


def test_short_gradients_cannot_test_but_a_refutation_holds():
    scores, coins = game(300, 0.3)
    assert measure_claim(CLAIM, scores, coins, share_at_clip=0.95).outcome is Outcome.NOT_REFUTED
    found = measure_claim(CLAIM, scores, coins, share_at_clip=0.5)
    assert found.outcome is Outcome.CANNOT_TEST
    assert "50% of their steps" in found.reason
    assert measure_claim(CLAIM, *game(300, 5.0), share_at_clip=0.5).outcome is Outcome.REFUTED


def test_a_reference_is_subtracted():
    scores, coins = game(300, 4.0)
    varied = 50 * np.random.default_rng(5).standard_normal(300)
    assert measure_claim(CLAIM, scores + varied, coins).outcome is Outcome.NOT_REFUTED
    with_it = measure_claim(CLAIM, scores + varied, coins, reference=varied)
    assert with_it.outcome is Outcome.REFUTED
    assert len(with_it.coverage) < len(measure_claim(CLAIM, scores, coins).coverage)


@pytest.mark.parametrize("measure", [measure_claim, measure_claim_many])
def test_reversed_scores_cannot_test(measure):
    """Of an ideal attack 149 and more of 150 guesses are correct, and turned round as many are wrong."""
    scores, coins = game(300, 5.0)
    found = measure(CLAIM, -scores, coins)
    assert found.p_value > 0.99
    assert found.outcome is Outcome.CANNOT_TEST
    assert found.exit_code == 3
    assert "look reversed" in found.reason
    assert "higher means included" in found.reason
    assert measure(CLAIM, scores, coins).outcome is Outcome.REFUTED


@pytest.mark.parametrize("measure", [measure_claim, measure_claim_many])
def test_equal_scores_cannot_test(measure):
    _, coins = game(300, 5.0)
    found = measure(CLAIM, np.full(300, 0.5), coins)
    assert found.outcome is Outcome.CANNOT_TEST
    assert "all scores are equal" in found.reason


@pytest.mark.parametrize(("reference", "seeds"), [(None, [3, 56, 81]), (np.arange(100.0), [20, 63, 64])])
def test_equal_scores_never_refute(reference, seeds):
    """However the coins fall: in an order by chance, or that of a reference, these would refute the claim."""
    for seed in seeds:
        coins = np.random.default_rng(seed).random(100) < 0.5
        found = measure_claim(Claim(0.01, 1e-6), np.full(100, 0.7), coins, reference=reference)
        assert (found.outcome, found.exit_code) == (Outcome.CANNOT_TEST, 3)
        assert (found.epsilon.value, found.epsilon.low, found.gaussian_epsilon.low) == (0, 0, 0)
        assert (found.p_value, found.n_correct, found.n_guesses) == (1, None, None)
    assert "guesses correct" not in str(found)


def test_equal_scores_less_those_of_a_reference_cannot_test():
    scores, coins = game(300, 5.0)
    assert "all scores are equal" in measure_claim(CLAIM, np.zeros(300), coins, reference=scores).reason
    assert "all scores are equal" in measure_claim(CLAIM, scores, coins, reference=scores).reason


@pytest.mark.parametrize("order", ["mixed", "sorted"])
@pytest.mark.parametrize("values", [2, 5, None])
def test_noise_does_not_look_reversed(order, values):
    """Of 40 audits each, with ties and where the coins stand in order; 1 in 1e6 may look so."""
    for seed in range(40):
        scores, coins = game(400, 0.0, seed)
        scores = scores if values is None else np.floor(values * np.random.default_rng(1000 + seed).random(400))
        coins = np.sort(coins) if order == "sorted" else coins
        assert _reversed(scores, coins, ((50, 50), (200, 200))) == ""
    assert _reversed(*game(400, -3.0), ((50, 50), (200, 200))) != ""


def test_a_claim_without_delta():
    found = measure_claim(Claim(1.0), *game(300, 4.0))
    assert found.outcome is Outcome.REFUTED
    assert found.gaussian_epsilon is None
    assert found.power == {}


@pytest.mark.slow
def test_ten_thousand_canaries_take_seconds():
    found = measure_claim(CLAIM, *game(10_000, 2.0))
    assert found.outcome is Outcome.REFUTED
    assert found.largest_epsilon == pytest.approx(6.17, abs=0.01)


def test_it_is_written_as_json():
    for found in (measure_claim(CLAIM, *game(100, 1.0)), measure_claim_many(CLAIM, *game(100, 1.0))):
        document = json.loads(json.dumps(found.as_json(), allow_nan=False))
        assert document["claim"] == "epsilon=2,delta=1e-05"
        assert document["epsilon"]["high"] is None
        assert document["outcome"] in ("not refuted", "cannot test")


@pytest.mark.parametrize(
    ("scores", "coins", "part"),
    [
        ([1.0, 2.0], [True], "one value for each score"),
        ([1.0, math.nan], [True, False], "finite numbers"),
        (["Fabry", "x"], [True, False], "must be numbers"),
        ([[1.0], [2.0]], [True, False], "list of finite numbers"),
        ([1.0 + 41.5j, 2.0], [True, False], "none complex"),
        ([10**400, 2], [True, False], "must be numbers"),
        (np.ma.masked_equal([41.5, 2.0], 41.5), [True, False], "scores must have no masked values"),
        ([1.0, 2.0], np.ma.array([True, False], mask=[True, False]), "included must have no masked values"),
        ([1.0, 2.0], [1, 0], "true and false"),
        ([], [], "true and false"),
    ],
)
def test_what_does_not_fit_is_refused(scores, coins, part):
    for measure in (measure_claim, measure_claim_many):
        with pytest.raises(DataError, match=part) as raised:
            measure(CLAIM, scores, coins)
        assert not re.search(r"Fabry|41\.5", str(raised.value))


def test_coins_that_cannot_be_fair_are_refused():
    with pytest.raises(DataError, match="fair coins"):
        measure_claim(CLAIM, np.arange(100.0), np.ones(100, dtype=bool))


def test_a_reference_that_does_not_fit_is_refused():
    for reference in (np.ma.masked_equal(np.arange(40.0), 3.0), np.full(40, 1j)):
        with pytest.raises(DataError, match="reference must"):
            measure_claim(CLAIM, *game(40, 1.0), reference=reference)


def test_a_masked_array_without_masked_values_is_taken():
    scores, coins = game(40, 1.0)
    assert measure_claim(CLAIM, np.ma.array(scores), np.ma.array(coins)) == measure_claim(CLAIM, scores, coins)


class TestManyModels:
    def test_a_true_claim_is_not_refuted(self):
        """50 audits at 95 %: at most 8 for a right test (false alarm below 1e-2); seen: 0."""
        mu = gaussian_mu(1.0, 1e-5)
        refuted = [
            measure_claim_many(Claim(1.0, 1e-5), *game(200, mu, seed)).outcome is Outcome.REFUTED for seed in range(50)
        ]
        assert sum(refuted) <= 8

    def test_power_is_as_computed_independently(self):
        """250 models a side refute 4 times the mu of claims 1 and 4 with probability .385 and 0; 50 audits."""
        found = measure_claim_many(Claim(1.0, 1e-5), *game(500, 0.3))
        assert found.power[4.0] == pytest.approx(0.385, abs=0.2)
        assert found.power[2.0] <= 0.05
        assert measure_claim_many(Claim(4.0, 1e-5), *game(500, 0.3)).power == {}

    def test_too_few_models_cannot_test(self):
        found = measure_claim_many(Claim(6.0, 1e-5), *game(100, 10.0))
        assert found.outcome is Outcome.CANNOT_TEST
        assert found.reason.endswith("use more models")

    def test_a_perfect_attack_refutes_with_a_p_value(self):
        found = measure_claim_many(Claim(1.0, 1e-5), *game(500, 10.0))
        assert found.outcome is Outcome.REFUTED
        assert found.p_value < 1e-3
        assert found.epsilon.low == found.largest_epsilon

    def test_models_of_one_kind_are_refused(self):
        with pytest.raises(DataError, match="train both kinds"):
            measure_claim_many(CLAIM, [1.0, 2.0], [True, True])


@pytest.mark.parametrize("settings", [{"confidence": 1.0}, {"confidence": math.nan}, {"share_at_clip": math.nan}])
def test_settings_out_of_range_are_refused(settings):
    for measure in (measure_claim, measure_claim_many):
        with pytest.raises(DataError, match="must be in"):
            measure(CLAIM, *game(40, 1.0), **settings)


@pytest.mark.parametrize("name", ["confidence", "share_at_clip"])
def test_settings_that_are_no_numbers_are_refused(name):
    for measure in (measure_claim, measure_claim_many):
        for given in ("0.9417", [0.9417], 0.9417j, *[None] * (name == "confidence")):
            with pytest.raises(DataError, match=f"{name} must be a number, got {type(given).__name__}") as raised:
                measure(CLAIM, *game(40, 1.0), **{name: given})
            assert "9417" not in str(raised.value)


def test_alpha_and_the_share_at_clip_are_told():
    found = measure_claim(CLAIM, *game(200, 0.0), confidence=0.9, share_at_clip=0.375)
    assert found.alpha == pytest.approx(0.1)
    assert "(alpha 0.1, " in str(found)
    assert "gradients of canaries at clip in 38% of their steps" in str(found)
    assert "at clip" not in str(measure_claim(CLAIM, *game(200, 0.0)))
