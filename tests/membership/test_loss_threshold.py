"""Yeom et al. 2018, section 6.2: the average training loss as a threshold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.membership import MembershipEvidence, loss_threshold
from leakgauge.models import AnswerKind

# No leak first.


def test_null_losses_of_one_law_show_no_advantage():
    """400 audits, losses of members and non-members of one law, threshold the members' own average.

    At least 93 % of the 95 % Wald intervals of tpr - fpr must cover 0. With a new seed a correct attack fails 3 times
    in a hundred, one whose intervals miss 10 % passes 2 in a hundred.
    """
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(400):
        members, others = rng.exponential(size=(2, 200))
        threshold = loss_threshold.mean_training_loss(members)
        tpr, fpr = (np.mean(loss_threshold.scores(group, threshold) > 0) for group in (members, others))
        covered += abs(tpr - fpr) <= 1.96 * math.sqrt((tpr * (1 - tpr) + fpr * (1 - fpr)) / 200)
    assert covered >= 0.93 * 400


# Known answers.


def test_advantage_on_exponential_losses():
    """Members' losses are exponential with mean 1/4, others' with mean 1: the advantage is e^(-1/4) - e^(-1).

    A loss is below the members' average 1/4 with probability 1 - e^(-1) and 1 - e^(-1/4). Measured on 100,000 each,
    within 4 standard errors; a new seed fails 6 times in 100,000.
    """
    rng = np.random.default_rng(12)
    members, others = rng.exponential(0.25, 100_000), rng.exponential(1.0, 100_000)
    threshold = loss_threshold.mean_training_loss(members)
    tpr, fpr = (np.mean(loss_threshold.scores(group, threshold) > 0) for group in (members, others))
    error = math.sqrt((tpr * (1 - tpr) + fpr * (1 - fpr)) / 100_000)
    assert tpr - fpr == pytest.approx(math.exp(-0.25) - math.exp(-1), abs=4 * error)


def test_cross_entropy_picks_the_label_s_own_column():
    table = np.log([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]])
    found = loss_threshold.cross_entropy(table, [0, 2, 1])
    assert found == pytest.approx([-math.log(0.7), -math.log(0.3), -math.log(0.25)])  # slow twin, by hand


def test_cross_entropy_keeps_float32_answers_and_returns_float64():
    table = np.log(np.array([[0.5, 0.5]], dtype=np.float32))
    found = loss_threshold.cross_entropy(table, np.array([1], dtype=np.uint8))
    assert found.dtype == np.float64
    assert found == pytest.approx([math.log(2)], rel=1e-6)


def test_scores_keep_the_order_of_records():
    losses = np.array([0.4, 0.1, 0.9, 0.2])
    assert loss_threshold.scores(losses, 0.3).tolist() == (0.3 - losses).tolist()
    assert np.argsort(loss_threshold.scores(losses, 0.3)).tolist() == np.argsort(-losses).tolist()


def test_a_loss_at_the_threshold_is_a_non_member():
    assert (loss_threshold.scores([0.5, math.nextafter(0.5, 0)], 0.5) > 0).tolist() == [False, True]


# Edges.


def test_all_losses_equal_mean_no_member():
    losses = np.full(7, 0.25)
    assert not np.any(loss_threshold.scores(losses, loss_threshold.mean_training_loss(losses)) > 0)


def test_infinite_losses_are_never_members():
    log_probabilities = np.array([[0.0, -np.inf], [math.log(0.5), math.log(0.5)]])
    losses = loss_threshold.cross_entropy(log_probabilities, [1, 0])
    assert losses.tolist() == [np.inf, -math.log(0.5)]
    assert loss_threshold.scores(losses, 1.0)[0] == -np.inf
    assert loss_threshold.scores(losses, 1.0)[1] == pytest.approx(1.0 - math.log(2))


def test_an_infinite_training_loss_makes_every_finite_loss_a_member():
    threshold = loss_threshold.mean_training_loss([0.1, np.inf])
    assert threshold == np.inf
    assert loss_threshold.scores([0.1, 50.0, np.inf], threshold).tolist() == [np.inf, np.inf, -np.inf]


def test_a_probability_of_one_costs_exactly_zero():
    found = loss_threshold.cross_entropy([[0.0, -np.inf], [1e-7, -20.0]], [0, 0])
    assert found.tolist() == [0.0, 0.0]
    assert not np.signbit(found).any()


@pytest.mark.parametrize(
    ("losses", "threshold", "error", "message"),
    [
        ([0.1, np.nan], 0.5, ModelError, r"losses\[1\] is nan"),
        ([0.1, -np.inf], 0.5, ModelError, r"losses\[1\] is -inf; every entry must be a number or \+infinity"),
        ([], 0.5, ModelError, "losses holds no records"),
        ([[0.1]], 0.5, ModelError, r"losses must have one dimension"),
        ([0.1], math.nan, ConfigError, "threshold must be a number or \\+infinity, got nan"),
        ([0.1], -math.inf, ConfigError, "threshold must be a number or \\+infinity, got -inf"),
    ],
)
def test_bad_losses_and_thresholds_are_refused(losses, threshold, error, message):
    with pytest.raises(error, match=message):
        loss_threshold.scores(losses, threshold)


def test_the_average_of_nothing_is_refused():
    with pytest.raises(ModelError, match="training_losses holds no records"):
        loss_threshold.mean_training_loss([])
    with pytest.raises(ModelError, match=r"training_losses\[0\] is nan"):
        loss_threshold.mean_training_loss([np.nan])


@pytest.mark.parametrize(
    ("table", "labels", "error", "message"),
    [
        ([-1.0, -2.0], [0], ModelError, r"log_probabilities must be numbers of shape \[records, classes\]"),
        ([["a", "b"]], [0], ModelError, "log_probabilities must be numbers"),
        (np.zeros((0, 2)), [], ModelError, "log_probabilities must hold at least one record"),
        ([[-1.0]], [0], ModelError, "one column per class"),
        ([[-1.0, -1.0], [-1.0, np.nan]], [0, 0], ModelError, r"log_probabilities\[1, 1\] is nan"),
        ([[0.4, 0.6]], [0], ModelError, r"log_probabilities\[0, 0\] is 0\.4;.*pass their natural logarithm"),
        ([[-1.0, -1.0]], [0, 1], DataError, r"labels must have shape \(1,\)"),
        ([[-1.0, -1.0]], [2], DataError, r"labels\[0\] is 2; labels must lie in 0\.\.1"),
        ([[-1.0, -1.0]], [-1], DataError, r"labels\[0\] is -1"),
        ([[-1.0, -1.0]], ["a"], DataError, "labels must be whole numbers from 0 to 1"),
        ([[-1.0, -1.0]], [0.5], DataError, "labels must be whole numbers from 0 to 1"),
    ],
)
def test_bad_tables_and_labels_are_refused(table, labels, error, message):
    with pytest.raises(error, match=message):
        loss_threshold.cross_entropy(table, labels)


@pytest.mark.parametrize(("threshold", "members"), [(0.0, [True, True, False]), (0.3, [True, True, True])])
def test_of_a_model_that_is_certain_about_its_records_who_costs_nothing_is_a_member(threshold, members):
    with np.errstate(divide="ignore"):
        answers = np.log([[1.0, 0.0], [0.0, 1.0], [0.8, 0.2]])
    evidence = MembershipEvidence(AnswerKind.PROBABILITIES, answers, np.array([0, 1, 0]), training_loss=threshold)
    assert (loss_threshold.ATTACK.score(evidence) > 0).tolist() == members
