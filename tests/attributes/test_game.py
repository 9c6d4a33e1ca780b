import numpy as np
import pytest

from leakgauge.attributes import NONE, Guesses, play
from leakgauge.statistics import advantage_of_decisions, clopper_pearson, wilson


def guesses(values, chances=None):
    return Guesses(np.zeros((len(values), 3)), np.asarray(values, dtype=np.int64), chances)


INSIDE, TRUTH_IN = guesses([0, 0, 1, NONE, 2, 1]), np.array([0, 0, 1, 1, 2, 2])
OUTSIDE, TRUTH_OUT = guesses([0, 1, NONE, 1]), np.array([0, 0, 1, 1])
BEST_GUESS = np.array([1.0, 1.0, 0.0, 1.0])


def played(**kwargs):
    return play("any", INSIDE, TRUTH_IN, OUTSIDE, TRUTH_OUT, BEST_GUESS, ("a", "b", "c"), **kwargs)


def test_rates_are_counted_by_hand():
    """Right about members 1 1 1 0 1 0, about others 1 0 0 1; no guess about one of either."""
    found = played()
    assert found.members == wilson(4, 6)
    assert found.others == wilson(2, 4)
    right = [True, True, True, False, True, False]
    assert found.advantage == advantage_of_decisions(right, [True, False, False, True])
    assert found.over_best_guess == advantage_of_decisions(right, [True, True, False, True])
    assert found.silent_members == wilson(1, 6)
    assert found.silent_others == wilson(1, 4)


def test_the_advantage_is_that_of_the_values_weighed_by_their_frequency():
    """Yeom et al. 2018, Eq. 4, where both groups hold the values equally often."""
    truth = np.array([0, 0, 0, 1, 1, 2])
    rng = np.random.default_rng(0)
    inside, outside = guesses(rng.integers(0, 3, 6)), guesses(rng.integers(0, 3, 6))
    found = play("any", inside, truth, outside, truth, np.ones(6), ("a", "b", "c"))
    weighed = sum(part.n_members / 6 * part.advantage.value for part in found.by_value)
    assert found.advantage.value == pytest.approx(weighed)


def test_values_that_nobody_holds_have_no_rates():
    a, b, c = played().by_value
    assert (a.name, a.n_members, a.n_others) == ("a", 2, 2)
    assert (b.n_members, b.n_others) == (2, 2)
    assert (c.n_members, c.n_others, c.others, c.advantage) == (2, 0, None, None)
    assert c.members.value == 0.5
    assert b.advantage.value == 0
    # Three intervals that hold together: each leaves a third of 5 %.
    assert a.advantage.confidence == pytest.approx(1 - 0.05 / 3)


def test_groups_are_looked_at_apart():
    groups = (np.array([0, 1, 0, 1, 0, 1]), np.array([1, 1, 0, 0]), ("f", "m"))
    f, m = played(groups=groups).by_group
    assert (f.name, f.members.value, f.others.value) == ("f", 1.0, 0.5)
    assert (m.name, m.members.value, m.others.value) == ("m", 1 / 3, 0.5)
    assert m.advantage.confidence == pytest.approx(0.975)
    assert played().by_group == ()


def test_where_nothing_can_be_learned_the_advantage_is_0_for_certain():
    found = played(nothing="only one value is possible")
    assert (found.advantage.value, found.advantage.low, found.advantage.high) == (0, 0, 0)
    assert found.advantage.confidence == 1
    assert found.advantage.method == "only one value is possible"
    assert found.members.value == 4 / 6


def test_a_coin_is_not_tossed():
    """What an attack that draws would get on average: chances instead of draws."""
    chances = np.array([[0.5, 0.0, 0.5], [0.0, 0.5, 0.0]])
    inside = guesses([0, NONE], chances)
    found = play("coin", inside, np.array([0, 0]), inside, np.array([2, 1]), np.ones(2), ("a", "b", "c"))
    assert (found.members.value, found.others.value) == (0.25, 0.5)
    assert found.advantage.value == -0.25
    assert found.silent_members.value == 0.25
    assert found.by_value[1].others.low == 0
    assert found.by_value[1].others.high == 1


def test_intervals_are_as_sure_as_asked():
    wide, narrow = played(confidence=0.999).advantage, played(confidence=0.8).advantage
    assert wide.low < narrow.low <= narrow.high < wide.high
    assert played().members.high <= clopper_pearson(4, 6, confidence=0.999).high
