import numpy as np
import pytest

from leakgauge.attributes import calibrated_p_values, margins, tail_scores
from leakgauge.errors import DataError
from leakgauge.statistics import Dependence, exposed_records, tail_odds

N_REPETITIONS = 400


def test_margins_by_hand():
    scores = np.array([[0.0, -2.0, -3.0], [-1.0, -4.0, -np.inf], [-np.inf, 0.0, -1.0], [-np.inf, -np.inf, 0.0]])
    assert margins(scores, np.array([0, 1, 0, 2])).tolist() == [2.0, -3.0, -np.inf, np.inf]
    assert margins(np.zeros((2, 1)), np.array([0, 0])).tolist() == [np.inf, np.inf]
    assert margins(np.full((1, 2), -np.inf), np.array([0])).tolist() == [-np.inf]  # nothing is possible: no warning
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


def unequal(rng, n):
    """Two values whose margins lie and scatter differently, a third of them far out."""
    values = rng.choice(2, n, p=[0.7, 0.3])
    return rng.standard_t(2, size=n) * (1 + 9 * values) + 5 * values, values


def few_kinds(rng, n):
    """Margins of five kinds, most of them equal, some infinite."""
    values = rng.choice(3, n, p=[0.9, 0.07, 0.03])
    return rng.choice([0.0, 0.0, 0.0, 1.0, np.inf, -np.inf], n) + values, values


def rare_values(rng, n):
    """Hundreds of values, most of them held by a handful."""
    return rng.standard_cauchy(n), rng.integers(0, n // 6, n)


@pytest.mark.long
@pytest.mark.parametrize("draw", [unequal, few_kinds, rare_values])
@pytest.mark.parametrize(("n_members", "n_others"), [pytest.param(300, 250, marks=pytest.mark.slow), (900, 150)])
def test_tails_of_people_drawn_alike_exceed_1_as_seldom_as_they_say(draw, n_members, n_others):
    """Null: 400 audits at level 0.05, of which at most 8 % show odds above 1.

    Bounds that exceed it in exactly 5 % fail with probability 0.003; those that do so in 12 % are caught with 0.99.
    Odds of e, the default limit, are never shown.
    """
    shown = []
    for seed in range(400):
        rng = np.random.default_rng([seed, 5])
        scores = tail_scores(*draw(rng, n_members + n_others))
        shown.append(tail_odds(scores[:n_members], scores[n_members:], level=0.05, rng=rng).odds)
    assert (np.array(shown) > 1).mean() <= 0.08
    assert max(shown) < np.e


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_people_given_away_show_in_one_tail_whichever_values_they_hold(share):
    """60 of 500 members, spread over two values or most of them with the rarer one, far above all others of theirs."""
    rng = np.random.default_rng(0)
    values = rng.choice(2, 1000, p=[1 - share, share])
    found = rng.normal(size=1000) * (1 + 4 * values) + 8 * values
    given = np.concatenate([np.flatnonzero(values[:500] == code)[:30] for code in (0, 1)])
    assert len(given) == 60
    found[given] += 40
    scores = tail_scores(found, values)
    tail = tail_odds(scores[:500], scores[500:], level=0.0125 / 3, rng=rng)
    assert tail.upper
    assert tail.odds > np.e


def test_tail_scores_do_not_depend_on_who_is_a_member():
    found, values = unequal(np.random.default_rng(1), 200)
    order = np.random.default_rng(2).permutation(200)
    np.testing.assert_array_equal(tail_scores(found, values)[order], tail_scores(found[order], values[order]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibrated_p_values([1.0], np.array([0, 1]), [1.0], np.array([0])), "one margin and one value"),
        (lambda: calibrated_p_values([np.nan], np.array([0]), [1.0], np.array([0])), "NaN"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(DataError, match=message):
        call()
