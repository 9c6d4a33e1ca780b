"""What is learned from the attacker's own records, with and without the model's answers."""

import numpy as np
import pytest

from leakgauge.attributes import imputation, learned
from leakgauge.errors import DataError
from leakgauge.statistics import advantage_of_decisions


def draw(n, seed):
    """A known number that says something about the hidden value, one that does not, and a category."""
    rng = np.random.default_rng(seed)
    hidden = rng.choice(3, size=n, p=[0.6, 0.3, 0.1])
    known = np.column_stack([hidden + rng.normal(size=n), rng.normal(size=n), (hidden == 1) ^ (rng.random(n) < 0.2)])
    return known.astype(float), hidden


CATEGORICAL = np.array([False, False, True])


def right(known, own_known, own_values, truth, **kwargs):
    found = imputation.guesses(known, own_known, own_values, None, n_values=3, **kwargs)
    return found.right(truth).mean()


@pytest.mark.long
@pytest.mark.parametrize("with_answers", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_people_drawn_alike_are_guessed_alike(with_answers, monkeypatch):
    """Null: 400 games among 150 members and 150 others of whom the model knows equally much.

    Intervals that cover 0 in exactly 95 % of them reach 93 % with probability 0.97, those that do so in 90 % with 0.02.
    """
    monkeypatch.setattr(imputation, "N_TREES", 2)
    covered = right_at_all = 0
    for seed in range(400):
        known, hidden = draw(400, seed)
        people, own = slice(0, 300), slice(300, 400)
        answers = np.log(np.random.default_rng([seed, 1]).dirichlet([1, 1, 1], 400) + np.eye(3)[hidden])
        if with_answers:
            found = learned.guesses(known[people], answers[people], known[own], answers[own], hidden[own], None)
        else:
            found = imputation.guesses(known[people], known[own], hidden[own], None, n_values=3)
        guessed = found.right(hidden[people])
        interval = advantage_of_decisions(guessed[:150] > 0, guessed[150:] > 0)
        covered += interval.low <= 0 <= interval.high
        right_at_all += guessed.mean() / 400
    assert covered / 400 >= 0.93
    assert right_at_all > 0.62 + 0.2 * with_answers  # more than the most frequent value, and more with answers


def test_nothing_known_gives_the_most_frequent_value():
    """Null: columns that say nothing. Nobody can be right about more than 0.6; 0.64 is some 4 standard errors above."""
    rng = np.random.default_rng(0)
    _, hidden = draw(5000, 1)
    noise = rng.normal(size=(5000, 3))
    assert right(noise[:3000], noise[3000:], hidden[3000:], hidden[:3000]) <= 0.64


def test_what_is_known_is_used():
    """The Bayes rule is right about 0.774 of these people, the most frequent value about 0.6; 3,000 people."""
    known, hidden = draw(5000, 2)
    got = right(known[:3000], known[3000:], hidden[3000:], hidden[:3000], categorical=CATEGORICAL)
    assert 0.73 < got < 0.8


def test_scores_are_log_posteriors_that_hold_what_they_promise():
    known, hidden = draw(6000, 3)
    found = imputation.guesses(known[:3000], known[3000:], hidden[3000:], None, n_values=3, categorical=CATEGORICAL)
    np.testing.assert_allclose(np.exp(found.scores).sum(axis=1), 1)
    promised = np.exp(found.scores.max(axis=1)).mean()
    assert promised == pytest.approx(found.right(hidden[:3000]).mean(), abs=0.04)


def test_few_records_give_the_most_frequent_value():
    known, hidden = draw(2000, 4)
    found = imputation.guesses(known, known[:30], hidden[:30], None, n_values=3)
    assert set(found.values.tolist()) == {int(np.bincount(hidden[:30]).argmax())}


def test_a_value_never_seen_is_unlikely_but_possible_unless_its_prior_is_0():
    known, hidden = draw(400, 5)
    seen = hidden < 2
    found = imputation.guesses(known[:5], known[seen], hidden[seen], [0.5, 0.3, 0.2], n_values=3)
    np.testing.assert_allclose(np.exp(found.scores[:, 2]), 0.2 / (seen.sum() + 1))
    found = imputation.guesses(known[:5], known[seen], hidden[seen], [0.5, 0.5, 0.0], n_values=3)
    assert np.isneginf(found.scores[:, 2]).all()
    one = imputation.guesses(known[:5], known[hidden == 1], hidden[hidden == 1], None, n_values=3)
    assert one.values.tolist() == [1] * 5


def test_records_guessed_by_one_another_are_not_guessed_by_themselves():
    """A number that names each record exactly helps only where a record could look itself up."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, 600)
    name = rng.permutation(600).astype(float)[:, None]
    found = imputation.crossed_guesses(name, hidden, None, n_values=2, rng=np.random.default_rng(1))
    # 600 coins: below 0.6 but for 1 in 10^6.
    assert found.right(hidden).mean() < 0.6
    known, values = draw(1500, 6)
    found = imputation.crossed_guesses(known, values, None, n_values=3, rng=np.random.default_rng(1))
    assert found.right(values).mean() > 0.7


def test_answers_of_the_model_add_to_what_is_known():
    """Where inverting the model says the hidden value outright, learned inversion finds that out."""
    known, hidden = draw(3000, 7)
    told = np.where(np.arange(3) == hidden[:, None], -0.01, -np.inf)
    got = learned.guesses(known[:2000], told[:2000], known[2000:], told[2000:], hidden[2000:], None)
    assert got.right(hidden[:2000]).mean() > 0.99
    # Answers that say nothing leave it where it was: within 0.03, for 2,000 people and the same trees.
    flat = np.full((3000, 3), np.log(1 / 3))
    same = learned.guesses(known[:2000], flat[:2000], known[2000:], flat[2000:], hidden[2000:], None)
    without = right(known[:2000], known[2000:], hidden[2000:], hidden[:2000])
    assert same.right(hidden[:2000]).mean() == pytest.approx(without, abs=0.03)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: imputation.guesses(np.zeros((2, 3)), np.zeros((2, 2)), [0, 1], None, n_values=2), "same columns"),
        (lambda: imputation.guesses(np.zeros((2, 3)), np.zeros((0, 3)), [], None, n_values=2), "needs records"),
        (lambda: imputation.guesses(np.zeros((2, 3)), np.zeros((2, 3)), [0, 2], None, n_values=2), "codes from 0 to 1"),
        (
            lambda: imputation.guesses(np.zeros((2, 3)), np.zeros((2, 3)), [0.5, 1], None, n_values=2),
            "sensitive value of",
        ),
        (
            lambda: imputation.crossed_guesses([[1.0]], [0], None, n_values=2, rng=np.random.default_rng(0)),
            "at least 2, got 1",
        ),
        (lambda: learned.guesses(np.zeros((2, 3)), np.zeros((1, 2)), [[0]], [[0]], [0], None), "do not fit together"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(DataError, match=message):
        call()
