import numpy as np
import pytest

from leakgauge.attributes import NONE
from leakgauge.attributes.guesses import Guesses, highest
from leakgauge.attributes.inversion import by_gaussian_error
from leakgauge.attributes.reductions import membership_from_attribute, several_queries, uniform_guess
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.theory import gaussian_crossing, several_queries_success

rng = np.random.default_rng

# Yeom et al. 2018, Adversaries 6 and 7, threshold where both densities are equal: predictions, prior, sigma_in,
# sigma_out, membership advantage, advantage of one uniform guess, of several queries. Reference values.
WORKED = [
    ((0, 1), (0.5, 0.5), 1.0, 2.0, 0.3226745688, 0.1613372844, 0.2074690121),
    ((0, 3), (0.5, 0.5), 1.0, 2.0, 0.3226745688, 0.1613372844, 0.3226745688),
    ((0, 1, 2), (0.5, 0.3, 0.2), 0.5, 1.5, 0.4843279965, 0.1614426655, 0.4176959423),
    ((0, 2, 4), (0.2, 0.5, 0.3), 0.5, 2.0, 0.5817632113, 0.1939210704, 0.5817632113),
]


def draw(predictions, prior, sigma, n, seed):
    """n people: their hidden value, and the error with each value in place."""
    generator = rng(seed)
    truth = generator.choice(len(prior), size=n, p=prior)
    errors = generator.normal(0, sigma, n)[:, None] + np.asarray(predictions)[truth][:, None] - np.asarray(predictions)
    return truth, errors


@pytest.mark.parametrize(("a", "prior", "sigma_in", "sigma_out", "membership", "uniform", "several"), WORKED)
def test_worked_values_are_met(a, prior, sigma_in, sigma_out, membership, uniform, several):
    """400,000 people a side: advantages are within 0.005 of theory, some 5 standard errors."""
    theta = gaussian_crossing(sigma_in, sigma_out)
    found = {"membership": [], "uniform": [], "drawn": [], "several": [], "lowest": []}
    for seed, sigma in enumerate((sigma_in, sigma_out)):
        truth, errors = draw(a, prior, sigma, 400_000, seed)
        scores = theta - np.abs(errors)
        found["membership"].append((scores[np.arange(truth.size), truth] > 0).mean())
        guess = uniform_guess(scores, prior, rng=rng(9))
        found["uniform"].append(guess.right(truth).mean())
        found["drawn"].append((guess.values == truth).mean())
        found["several"].append(several_queries(scores, prior).right(truth).mean())
        found["lowest"].append(several_queries(scores, prior, order="lowest_prior").right(truth).mean())
    for name, expected in (("membership", membership), ("uniform", uniform), ("drawn", uniform), ("several", several)):
        assert found[name][0] - found[name][1] == pytest.approx(expected, abs=0.005), name
    for rate, sigma in zip(found["lowest"], (sigma_in, sigma_out), strict=True):
        expected = several_queries_success(a, prior, sigma, theta, order="lowest_prior")
        assert rate == pytest.approx(expected, abs=0.005)


def test_one_guess_has_exactly_one_part_in_m_of_the_membership_advantage():
    """Theorem 7, record by record: the chance to be right is 1/m where the true completion is called a member."""
    scores = rng(0).normal(size=(50, 4))
    truth = rng(1).integers(0, 4, 50)
    guess = uniform_guess(scores, rng=rng(2))
    np.testing.assert_array_equal(guess.right(truth), (scores[np.arange(50), truth] > 0) / 4)
    np.testing.assert_allclose(guess.silent, (scores <= 0).mean(axis=1))
    drawn = guess.values != NONE
    assert (scores[np.flatnonzero(drawn), guess.values[drawn]] > 0).all()


def test_membership_by_attributes_has_the_same_advantage():
    """Theorem 6, exactly, whatever the attack."""
    truth, errors = draw((2, 0), (0.3, 0.7), 0.8, 500, 3)
    guess = by_gaussian_error(errors, 0.5, [0.3, 0.7])
    called = membership_from_attribute(guess, truth) > 0
    np.testing.assert_array_equal(called, guess.right(truth) == 1)
    silent = Guesses(np.zeros((2, 2)), np.array([NONE, 1]))
    assert membership_from_attribute(silent, np.array([0, 1])).tolist() == [-1, 1]


def test_the_most_frequent_flagged_value_is_answered_and_the_first_of_equals():
    scores = [[1.0, 1.0, 1.0], [-1.0, 1.0, 1.0], [-1.0, -1.0, -1.0], [0.0, 0.0, 0.5]]
    assert several_queries(scores, [0.3, 0.3, 0.4]).values.tolist() == [2, 2, NONE, 2]
    assert several_queries(scores, [0.4, 0.3, 0.3]).values.tolist() == [0, 1, NONE, 2]
    assert several_queries(scores, [0.4, 0.35, 0.25], order="lowest_prior").values.tolist() == [2, 2, NONE, 2]
    assert several_queries(scores).values.tolist() == [0, 1, NONE, 2]


def test_values_of_prior_0_are_never_answered():
    scores = np.full((1000, 3), 1.0)
    prior = [0.0, 0.6, 0.4]
    assert set(uniform_guess(scores, prior, rng=rng(0)).values.tolist()) == {1, 2}
    for order in ("highest_prior", "lowest_prior"):
        assert 0 not in several_queries(scores, prior, order=order).values


@pytest.mark.parametrize("prior", [[1.0], [0.0, 1.0, 0.0]])
def test_the_only_possible_value_is_answered_without_asking(prior):
    """There is nothing to infer, and no advantage in keeping silent about non-members."""
    scores = np.full((4, len(prior)), -1.0)
    only = prior.index(1.0)
    for guess in (uniform_guess(scores, prior, rng=rng(0)), several_queries(scores, prior)):
        assert guess.values.tolist() == [only] * 4
        assert guess.right(np.full(4, only)).tolist() == [1] * 4


def test_infinite_scores_are_scores():
    assert several_queries([[-np.inf, np.inf]], [0.9, 0.1]).values.tolist() == [1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: several_queries([[np.nan, 1.0]]), ModelError, "not NaN"),
        (lambda: several_queries([1.0, 2.0]), ModelError, "records, values"),
        (lambda: several_queries([[1.0, 2.0]], order="random"), ConfigError, "order must be"),
        (lambda: several_queries([[1.0, 2.0]], [[0.5, 0.5]]), ConfigError, "one prior for all"),
        (lambda: uniform_guess([[1.0, 2.0]], [0.5, 0.2], rng=rng(0)), DataError, "sum of 0.7"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_guess_without_a_coin_says_so():
    assert highest(np.zeros((1, 2))).chances is None
