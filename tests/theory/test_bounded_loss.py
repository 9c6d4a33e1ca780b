from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from leakgauge.theory import bounded_loss_advantage


def test_no_gap_no_advantage():
    assert bounded_loss_advantage(0.0, 3.0) == 0.0


@pytest.mark.parametrize(("loss_bound", "expected"), [(1.0, 0.35), (2.0, 0.175)])
def test_worked_example(loss_bound, expected):
    # Reference value by hand: member losses 0, 0, 0.2, 0.4; non-member losses 0.1, 0.5, 0.9, 0.5.
    gap = np.mean([0.1, 0.5, 0.9, 0.5]) - np.mean([0, 0, 0.2, 0.4])
    assert bounded_loss_advantage(gap, loss_bound) == pytest.approx(expected, abs=1e-9)


def test_zero_one_loss_is_train_minus_test_accuracy():
    # Yeom et al. 2018, section 3.2: bound 1; accuracies 1.0 and 0.64 are losses 0 and 0.36.
    assert bounded_loss_advantage(0.36, 1.0) == pytest.approx(1.0 - 0.64, abs=1e-12)
    assert bounded_loss_advantage(1.0, 1.0) == 1.0


def test_a_model_better_on_strangers_has_negative_advantage():
    assert bounded_loss_advantage(-0.2, 1.0) == -0.2


def games(loss_bound: float):
    """Enumerate Yeom et al. 2018, Experiment 1: uniform population of 5, training sets of 3, a memoriser.

    Yields (is member, loss, probability that Adversary 1 says member, weight of the game in its branch).
    """
    for training_set in itertools.product(range(5), repeat=3):
        for _member in training_set:
            yield True, 0.0, 1.0, 1 / (5**3 * 3)
        for record in range(5):
            loss = 0.0 if record in training_set else 0.8
            yield False, loss, 1 - loss / loss_bound, 1 / (5**3 * 5)


def test_theorem_2_by_enumeration_of_all_games():
    played = list(games(loss_bound=2.0))
    mean_loss = {b: sum(w * loss for m, loss, _, w in played if m is b) for b in (True, False)}
    rate = {b: sum(w * says for m, _, says, w in played if m is b) for b in (True, False)}
    gap = mean_loss[False] - mean_loss[True]
    # A fresh draw is unseen with probability (4/5)^3.
    assert gap == pytest.approx(0.8 * 0.8**3)
    assert rate[True] - rate[False] == pytest.approx(bounded_loss_advantage(gap, 2.0), abs=1e-12)


@pytest.mark.parametrize(
    ("gap", "loss_bound", "message"),
    [
        (0.1, 0.0, "loss_bound must be positive and finite, got 0.0; give the largest"),
        (0.1, -1.0, "loss_bound must be positive"),
        (0.1, math.inf, "loss_bound must be positive and finite, got inf"),
        (0.1, math.nan, "loss_bound must be positive and finite, got nan"),
        (1.5, 1.0, r"gap must be in \[-loss_bound, loss_bound\] = \[-1.0, 1.0\], got 1.5; .* raise the bound"),
        (-1.5, 1.0, "gap must be in"),
        (math.nan, 1.0, "gap must be in .* got nan"),
    ],
)
def test_refuses(gap, loss_bound, message):
    with pytest.raises(ValueError, match=message):
        bounded_loss_advantage(gap, loss_bound)
