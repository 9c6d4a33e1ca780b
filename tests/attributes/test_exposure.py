import numpy as np
import pytest

from leakgauge.attributes import calibrated_p_values, exposed_by_models, margins, wins_of_pairs
from leakgauge.errors import DataError
from leakgauge.statistics import Dependence, exposed_records
from leakgauge.training import complementary_pairs, random_subsets

N_REPETITIONS = 400


def test_margins_by_hand():
    scores = np.array([[0.0, -2.0, -3.0], [-1.0, -4.0, -np.inf], [-np.inf, 0.0, -1.0], [-np.inf, -np.inf, 0.0]])
    assert margins(scores, np.array([0, 1, 0, 2])).tolist() == [2.0, -3.0, -np.inf, np.inf]
    assert margins(np.zeros((2, 1)), np.array([0, 0])).tolist() == [np.inf, np.inf]
    tables = np.stack([scores[:2], scores[:2, ::-1]])
    np.testing.assert_array_equal(margins(tables, np.array([0, 1])), [[2, -3], [-3, -3]])


def test_ranks_by_hand():
    members, values = [3.0, 2.0, 9.0, 0.0], np.array([0, 0, 1, 2])
    others, other_values = [1.0, 2.0, 2.0, 5.0, 7.0], np.array([0, 0, 0, 0, 1])
    p = calibrated_p_values(members, values, others, other_values)
    assert p.tolist() == [2 / 5, 4 / 5, 1 / 2, 1.0]  # nobody outside holds the last value


def draw_p_values(rng, *, rounded, n=60, exposed=0):
    """Margins whose law depends on the value, the same for members and others but for the exposed."""
    values, other_values = rng.choice(2, n, p=[0.8, 0.2]), rng.choice(2, 2000, p=[0.8, 0.2])
    inside = (1 + 5 * values) * rng.normal(size=n) + 3 * values
    outside = (1 + 5 * other_values) * rng.normal(size=2000) + 3 * other_values
    inside[:exposed] += 40
    if rounded:  # margins of trees and labels have many ties
        inside, outside = np.round(inside / 2), np.round(outside / 2)
    return calibrated_p_values(inside, values, outside, other_values)


@pytest.mark.parametrize("rounded", [False, True])
def test_ranks_are_small_as_seldom_as_they_say(rounded):
    """400 times 60 p-values: at most 5.7 % are at most 5 %, 5 standard errors above; 10 % could not hide."""
    p = np.concatenate(
        [draw_p_values(np.random.default_rng([seed, 0]), rounded=rounded) for seed in range(N_REPETITIONS)]
    )
    assert (p <= 0.05).mean() <= 0.057


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("exposed", [0, 15])
def test_the_share_of_false_discoveries_is_kept(rounded, exposed):
    """400 lists at q = 10 %, nobody exposed or 15 of 60: the average share of false names is at most 0.13.

    With a share of exactly 0.1 (a standard error of at most 0.015 where nobody is exposed, less otherwise) this fails
    with probability below 0.03; a share of 0.16 is caught with probability above 0.97.
    """
    shares, found = [], 0
    for seed in range(N_REPETITIONS):
        p = draw_p_values(np.random.default_rng([seed, 1]), rounded=rounded, exposed=exposed)
        named = exposed_records(p, q=0.1, dependence=Dependence.POSITIVE).exposed
        shares.append(named[exposed:].sum() / max(1, named.sum()))
        found += named[:exposed].sum()
    assert np.mean(shares) <= 0.13
    assert found >= 0.9 * exposed * N_REPETITIONS


def test_wins_by_hand():
    table = [[2.0, 1.0, 5.0], [1.0, 1.0, 9.0], [0.0, 4.0, 1.0], [3.0, 2.0, 0.0]]
    members = np.array([[1, 1, 1], [0, 0, 1], [1, 0, 0], [0, 1, 1]], dtype=bool)
    wins, games = wins_of_pairs(table, members)
    assert games.tolist() == [2, 2, 1]  # the first pair both know the third person
    assert wins.tolist() == [1, 0, 0]  # equal margins are a loss


@pytest.mark.parametrize("pairs", ["complementary", "independent"])
def test_models_that_do_not_depend_on_people_name_nobody(pairs):
    """400 tables of 24 models and 40 people whose margins hang together, at q = 5 %.

    At most 7 % name anybody; exactly 5 % would fail this with probability 0.03, 10 % passes with probability 0.02.
    """
    named = 0
    for seed in range(N_REPETITIONS):
        rng = np.random.default_rng([seed, 2])
        draw = complementary_pairs(40, 12, rng) if pairs == "complementary" else random_subsets(40, 20, 24, rng)
        table = np.round(rng.normal(size=(24, 40)) + 2 * rng.normal(size=(24, 1)), 1)
        named += exposed_by_models(table, draw.members).n_exposed > 0
    assert named / N_REPETITIONS <= 0.07


def test_models_that_remember_some_people_name_them():
    rng = np.random.default_rng(0)
    members = complementary_pairs(40, 20, rng).members
    table = rng.normal(size=(40, 40)) + np.where(np.arange(40) < 5, 20.0, 0.0) * members
    assert sorted(exposed_by_models(table, members).records.tolist()) == [0, 1, 2, 3, 4]
    # Models that hold the true value for *less* likely after training expose nobody.
    assert exposed_by_models(-20.0 * members, members).n_exposed == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibrated_p_values([1.0], np.array([0, 1]), [1.0], np.array([0])), "one margin and one value"),
        (lambda: calibrated_p_values([np.nan], np.array([0]), [1.0], np.array([0])), "NaN"),
        (lambda: wins_of_pairs(np.zeros((3, 2)), np.zeros((3, 2), bool)), "even number of models"),
        (lambda: wins_of_pairs(np.zeros((2, 2)), np.zeros((2, 2))), "members bool"),
        (lambda: wins_of_pairs(np.full((2, 2), np.nan), np.zeros((2, 2), bool)), "NaN"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(DataError, match=message):
        call()
