"""Yeom et al. 2018, Adversary 1 and Theorem 2."""

from __future__ import annotations

import numpy as np
import pytest

from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.membership import bounded_loss

MEMBER_LOSSES = [0.0, 0.0, 0.2, 0.4]
NONMEMBER_LOSSES = [0.1, 0.5, 0.9, 0.5]


def share_covering_zero(member_answers, nonmember_answers):
    """Share of audits [audits, records] whose 95 % Wald interval of tpr - fpr covers 0."""
    tpr, fpr = member_answers.mean(axis=1), nonmember_answers.mean(axis=1)
    error = np.sqrt(tpr * (1 - tpr) / member_answers.shape[1] + fpr * (1 - fpr) / nonmember_answers.shape[1])
    return np.mean(np.abs(tpr - fpr) <= 1.96 * error)


# No leak first.


def test_null_randomised_answers_show_no_advantage():
    """400 audits without a leak; at least 93 % of the 95 % intervals must cover 0.

    With a new seed a correct attack fails 3 times in a hundred, one whose intervals miss 10 % passes 2 in a hundred.
    """
    rng = np.random.default_rng(1)
    losses = rng.random((2, 400 * 150))
    members, nonmembers = (bounded_loss.decisions(group, 1.0, rng=rng).reshape(400, 150) for group in losses)
    assert share_covering_zero(members, nonmembers) >= 0.93


def test_null_zero_one_answers_show_no_advantage():
    """As above, for a classifier that is right on 70 % of members and non-members alike."""
    rng = np.random.default_rng(2)
    labels = rng.integers(3, size=(2, 400 * 150))
    predicted = np.where(rng.random(labels.shape) < 0.7, labels, (labels + 1) % 3)
    members, nonmembers = (
        (bounded_loss.zero_one_scores(p, y) > 0).reshape(400, 150) for p, y in zip(predicted, labels, strict=True)
    )
    assert members.mean() == pytest.approx(0.7, abs=0.01)
    assert share_covering_zero(members, nonmembers) >= 0.93


def test_equal_losses_give_no_advantage():
    assert bounded_loss.expected_advantage([0.3, 0.6], [0.6, 0.3], 1.0) == 0.0


# Known answers.


@pytest.mark.parametrize(("bound", "advantage"), [(1.0, 0.35), (2.0, 0.175)])
def test_expected_advantage_of_the_worked_example(bound, advantage):
    # Yeom et al. 2018, Theorem 2: (mean 0.5 - mean 0.15) / B.
    found = bounded_loss.expected_advantage(MEMBER_LOSSES, NONMEMBER_LOSSES, bound)
    assert found == pytest.approx(advantage, abs=1e-12)


def test_advantage_is_the_mean_difference_of_the_answers():
    """Two roads: Theorem 2's gap over bound, and the difference of the mean probabilities of "member"."""
    difference = np.mean(bounded_loss.member_probability(MEMBER_LOSSES, 2.0)) - np.mean(
        bounded_loss.member_probability(NONMEMBER_LOSSES, 2.0)
    )
    assert bounded_loss.expected_advantage(MEMBER_LOSSES, NONMEMBER_LOSSES, 2.0) == pytest.approx(difference)


def test_theorem_2_on_a_memorising_classifier():
    """200,000 population games: gap over bound in closed form against the measured advantage, within 4 errors.

    The population is uniform on 8 values, odd ones labelled 1. The classifier recalls the 5 records it was trained on
    and answers 0 elsewhere; a wrong answer costs 0.8 and the bound is 2. A fresh record is unknown with probability
    (7/8)^5 and then wrong half of the time, so the gap is 0.4 (7/8)^5. A new seed fails 6 times in 100,000.
    """
    rng = np.random.default_rng(3)
    n_games = 200_000
    training = rng.integers(8, size=(n_games, 5))
    is_member = rng.random(n_games) < 0.5
    challenge = np.where(is_member, training[:, 0], rng.integers(8, size=n_games))
    recalled = (training == challenge[:, None]).any(axis=1)
    losses = np.where(recalled | (challenge % 2 == 0), 0.0, 0.8)

    answers = bounded_loss.decisions(losses, 2.0, rng=rng)

    tpr, fpr = answers[is_member].mean(), answers[~is_member].mean()
    exact = 0.4 * (7 / 8) ** 5 / 2
    assert tpr == 1.0  # a member is always recalled, and a loss of 0 is always answered "member"
    assert tpr - fpr == pytest.approx(exact, abs=4 * np.sqrt(fpr * (1 - fpr) / (~is_member).sum()))
    without_coins = bounded_loss.expected_advantage(losses[is_member], losses[~is_member], 2.0)
    assert without_coins == pytest.approx(exact, abs=4 * losses.std() / 2 / np.sqrt((~is_member).sum()))


def test_zero_one_advantage_is_the_accuracy_gap():
    # Yeom et al. 2018, Theorem 2 with 0-1 loss: 0.9 - 0.6, as in 9 of 10 against 12 of 20 right.
    right_on_training = np.arange(10) < 9
    right_elsewhere = np.arange(20) < 12
    members = bounded_loss.zero_one_scores(right_on_training, np.ones(10, dtype=bool)) > 0
    others = bounded_loss.zero_one_scores(right_elsewhere, np.ones(20, dtype=bool)) > 0
    assert members.mean() - others.mean() == pytest.approx(0.3)
    assert bounded_loss.expected_advantage(~right_on_training, ~right_elsewhere, 1.0) == pytest.approx(0.3)


def test_decisions_follow_their_probabilities():
    """Frequencies of 40,000 answers per loss lie within 4 standard errors; a new seed fails 2 times in 10,000."""
    losses = np.repeat([0.1, 0.5, 0.8], 40_000)
    answers = bounded_loss.decisions(losses, 1.0, rng=np.random.default_rng(4)).reshape(3, -1).mean(axis=1)
    assert np.all(np.abs(answers - [0.9, 0.5, 0.2]) < 4 * np.sqrt(np.array([0.09, 0.25, 0.16]) / 40_000))


def test_same_generator_state_same_answers():
    losses = np.linspace(0, 1, 50)
    first, second, other = (bounded_loss.decisions(losses, 1.0, rng=np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


# Edges.


def test_perfect_and_inverted_separation():
    assert bounded_loss.expected_advantage([0.0, 0.0], [1.0], 1.0) == 1.0
    assert bounded_loss.expected_advantage([1.0], [0.0, 0.0], 1.0) == -1.0


def test_losses_at_both_ends_leave_nothing_to_chance():
    rng = np.random.default_rng(7)
    assert bounded_loss.decisions(np.zeros(10_000), 3.0, rng=rng).all()
    assert not bounded_loss.decisions(np.full(10_000, 3.0), 3.0, rng=rng).any()


def test_zero_one_scores_compare_values_not_types():
    assert bounded_loss.zero_one_scores([1.0, 0.0], [1, 1]).tolist() == [0.5, -0.5]
    assert bounded_loss.zero_one_scores(["yes", "no"], ["yes", "yes"]).tolist() == [0.5, -0.5]
    assert bounded_loss.zero_one_scores([True, False], [1, 1]).tolist() == [0.5, -0.5]


def test_clip_warns_and_lowers_to_the_bound():
    with pytest.warns(UserWarning, match=r"losses\[1\] is 3\.0, above loss_bound = 2\.0 \(2 such records\); clipped"):
        found = bounded_loss.member_probability([1.0, 3.0, np.inf], 2.0, clip=True)
    assert found.tolist() == [0.5, 0.0, 0.0]
    with pytest.warns(UserWarning, match="nonmember_losses"):
        assert bounded_loss.expected_advantage([0.0], [5.0], 2.0, clip=True) == 1.0
    with pytest.warns(UserWarning, match="losses"):
        assert not bounded_loss.decisions([5.0], 2.0, rng=np.random.default_rng(0), clip=True).any()


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        ([0.5, 1.5], r"losses\[1\] is 1\.5, above loss_bound = 1\.0 \(1 such records\); losses must lie in \[0, 1"),
        ([0.5, np.inf], r"losses\[1\] is inf, above loss_bound"),
        ([0.5, -0.1], r"losses\[1\] is -0\.1; losses must lie in \[0, 1\.0\]"),
        ([np.nan], r"losses\[0\] is nan; every entry must be a number or \+infinity"),
        ([], "losses holds no records"),
        ([[0.1], [0.2]], r"losses must have one dimension \[records\], got shape \(2, 1\).*losses\.ravel\(\)"),
        (["a"], "losses must be one number per record"),
    ],
)
def test_bad_losses_are_refused(losses, message):
    with pytest.raises(ModelError, match=message):
        bounded_loss.member_probability(losses, 1.0)


def test_negative_losses_are_refused_even_with_clip():
    with pytest.raises(ModelError, match=r"losses\[0\] is -1\.0"):
        bounded_loss.member_probability([-1.0], 1.0, clip=True)


@pytest.mark.parametrize("bound", [0.0, -1.0, np.nan, np.inf])
def test_bad_bounds_are_refused(bound):
    with pytest.raises(ConfigError, match="loss_bound must be above 0 and finite"):
        bounded_loss.member_probability([0.0], bound)


def test_the_group_at_fault_is_named():
    with pytest.raises(ModelError, match=r"nonmember_losses\[1\] is -2\.0"):
        bounded_loss.expected_advantage([0.1], [0.1, -2.0], 1.0)
    with pytest.raises(ModelError, match=r"^member_losses\[0\] is nan"):
        bounded_loss.expected_advantage([np.nan], [0.1], 1.0)


@pytest.mark.parametrize(
    ("predicted", "labels", "error", "message"),
    [
        ([1, 2], [[1], [2]], DataError, r"labels must have shape \[records\]"),
        ([], [], DataError, r"labels must have shape \[records\] with at least one record"),
        ([[1], [2]], [1, 2], ModelError, r"labels_predicted must have the shape of labels, \(2,\).*\(2, 1\)"),
        ([0, 1], ["a", "b"], ModelError, "labels_predicted holds numbers.*labels holds strings"),
        ([1.0, np.nan], [1, 2], ModelError, r"labels_predicted\[1\] is NaN"),
        ([1.0, 2.0], [np.nan, 2], DataError, r"labels\[0\] is NaN"),
    ],
)
def test_bad_labels_are_refused(predicted, labels, error, message):
    with pytest.raises(error, match=message):
        bounded_loss.zero_one_scores(predicted, labels)
