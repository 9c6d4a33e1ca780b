"""Long et al. 2017, section 5.3: untargeted attack, after Shokri et al. 2017."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.membership import shadow_classifier


def random_half(rng, *shape):
    return rng.random(shape) < 0.5


def leaking_answers(rng, is_member, labels, effect=0.1, noise=0.05):
    """Two classes; the label's probability is 0.45, or ``effect`` more for members, plus normal noise."""
    own = 0.45 + effect * is_member + noise * rng.normal(size=is_member.shape)
    return np.where((labels == 0)[..., None], np.stack([own, 1 - own], axis=-1), np.stack([1 - own, own], axis=-1))


def fitted(seed=0, n_models=20, n_records=200, effect=0.1):
    """An attack model on the leak above."""
    rng = np.random.default_rng(51)
    labels = rng.integers(2, size=n_records)
    members = random_half(rng, n_models, n_records)
    answers = leaking_answers(rng, members, np.broadcast_to(labels, members.shape), effect=effect)
    return shadow_classifier.fit(answers, members, labels, seed=seed)


# No leak first.


def test_null_answers_independent_of_membership_show_no_advantage():
    """400 audits, 20 for each of 20 attack models, whose shadow answers do not depend on membership.

    At least 93 % of the 95 % Wald intervals of tpr - fpr must cover 0. With a new seed a correct attack fails 3 times
    in a hundred, one whose intervals miss 10 % passes 2 in a hundred.
    """
    covered = 0
    for seed in range(20):
        rng = np.random.default_rng([52, seed])
        labels = rng.integers(3, size=40)
        shadows = rng.dirichlet(np.ones(3), size=(10, 40))
        attack = shadow_classifier.fit(shadows, random_half(rng, 10, 40), labels, seed=seed)
        target = rng.dirichlet(np.ones(3), size=20 * 200)
        found = attack.scores(target, rng.integers(3, size=20 * 200)) > 0
        tpr, fpr = found.reshape(20, 2, 100).mean(axis=2).T
        covered += np.sum(np.abs(tpr - fpr) <= 1.96 * np.sqrt((tpr * (1 - tpr) + fpr * (1 - fpr)) / 100))
    assert covered >= 0.93 * 400


def test_null_recognising_records_reveals_nothing():
    """Complementary halves without the target's row, answers of one law, features that identify each record.

    The remaining models were trained on a record more often if the target was not. A network that sees all rows learns
    that and would find an advantage of -0.28 here; the truth is 0. Mean of 12 audits of 200 records, within 4 standard
    errors of 0.02 (measured); a new seed fails 6 times in 100,000.
    """
    advantages = []
    for seed in range(12):
        rng = np.random.default_rng([63, seed])
        first = random_half(rng, 8, 200)
        members = np.concatenate([first, ~first])
        answers = rng.dirichlet(np.ones(2), size=(16, 200))
        labels, known = rng.integers(2, size=200), rng.normal(size=(200, 50))
        attack = shadow_classifier.fit(answers[1:], members[1:], labels, seed=seed, record_features=known)
        called = attack.scores(answers[0], labels, record_features=known) > 0
        advantages.append(called[members[0]].mean() - called[~members[0]].mean())
    assert np.mean(advantages) == pytest.approx(0, abs=4 * 0.02)


def test_null_nothing_is_learned_from_noise():
    """On 20,000 rows without a leak the loss stays near ln 2.

    Fitting 193 parameters to noise gains about 193 / 40,000 = 0.005 nats per row, so 0.01 is allowed. The leaking
    table below gains 0.3.
    """
    rng = np.random.default_rng(53)
    shadows = rng.dirichlet(np.ones(2), size=(20, 1000))
    attack = shadow_classifier.fit(shadows, random_half(rng, 20, 1000), rng.integers(2, size=1000), seed=1)
    assert attack.training_loss == pytest.approx(math.log(2), abs=0.01)


# Known answers.


def test_accuracy_comes_near_the_best_possible():
    """The best rule cuts the label's probability half-way and is right with probability Phi(0.05 / 0.05) = Phi(1).

    20,000 answers; the attack model, fitted on 4,000 rows, may lose 0.015 and gain nothing but 4 standard errors.
    Random guessing is more than 100 standard errors away.
    """
    rng = np.random.default_rng(54)
    is_member = np.arange(20_000) % 2 == 0
    labels = rng.integers(2, size=20_000)
    found = fitted().scores(leaking_answers(rng, is_member, labels), labels)
    best = norm.cdf(1.0)
    error = math.sqrt(best * (1 - best) / 20_000)
    assert best - 4 * error - 0.015 < np.mean((found > 0) == is_member) < best + 4 * error


def test_score_is_the_log_odds_of_membership():
    """For normal answers of equal spread the true log odds are linear: 40 (p - 0.5) for the label's p.

    Within 0.5 nats over the central range, on average over 9 points; the scores themselves span from -2.8 to 2.8.
    """
    own = np.linspace(0.43, 0.57, 9)
    answers = np.column_stack([own, 1 - own])
    found = fitted(n_records=800).scores(answers, np.zeros(9, dtype=int))
    assert np.mean(np.abs(found - 40 * (own - 0.5))) < 0.5
    assert np.all(np.diff(found) > 0)


def test_exchanging_members_and_others_turns_the_answers():
    rng = np.random.default_rng(55)
    labels = rng.integers(2, size=200)
    members = random_half(rng, 20, 200)
    answers = leaking_answers(rng, members, np.broadcast_to(labels, members.shape))
    is_member = np.arange(200) % 2 == 0
    target = leaking_answers(rng, is_member, labels)
    right = [
        np.mean((shadow_classifier.fit(answers, table, labels, seed=2).scores(target, labels) > 0) == is_member)
        for table in (members, ~members)
    ]
    assert right[0] > 0.75
    assert right[1] < 0.25


def test_record_features_reveal_what_answers_hide():
    """The leak raises or lowers the probability by the sign of a feature: without it there is nothing to see.

    2,000 answers: without the feature accuracy is 1/2 within 4 standard errors of 0.011, with it near Phi(1) = 0.84.
    """
    rng = np.random.default_rng(56)

    def answers(is_member, sign):
        own = 0.5 + 0.05 * sign * np.where(is_member, 1, -1) + 0.05 * rng.normal(size=is_member.shape)
        return np.stack([own, 1 - own], axis=-1)

    n_records = 2000
    sign = rng.choice([-1.0, 1.0], size=n_records)
    labels = np.zeros(n_records, dtype=int)
    members = random_half(rng, 6, n_records)
    shadows = answers(members, sign)
    is_member = random_half(rng, n_records)
    target = answers(is_member, sign)
    blind = shadow_classifier.fit(shadows, members, labels, seed=3)
    seeing = shadow_classifier.fit(shadows, members, labels, seed=3, record_features=sign[:, None])
    assert (blind.n_record_features, seeing.n_record_features) == (0, 1)
    assert np.mean((blind.scores(target, labels) > 0) == is_member) == pytest.approx(0.5, abs=4 * 0.011)
    found = seeing.scores(target, labels, record_features=sign[:, None])
    assert np.mean((found > 0) == is_member) > 0.8


def test_features_are_answer_label_and_record():
    answers = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])
    plain = shadow_classifier.features(answers, [2, 0], 3)
    assert plain.tolist() == [[0.2, 0.3, 0.5, 0, 0, 1], [0.6, 0.4, 0.0, 1, 0, 0]]
    known = shadow_classifier.features(np.stack([answers, answers[::-1]]), [2, 0], 3, record_features=[[7.0], [8.0]])
    assert known.shape == (2, 2, 7)
    assert known[0].tolist() == [[0.2, 0.3, 0.5, 0, 0, 1, 7], [0.6, 0.4, 0.0, 1, 0, 0, 8]]
    assert known[1].tolist() == [[0.6, 0.4, 0.0, 0, 0, 1, 7], [0.2, 0.3, 0.5, 1, 0, 0, 8]]


# The slow twin.


def test_scores_equal_two_log_softmax_outputs_by_hand():
    attack = fitted()
    rng = np.random.default_rng(57)
    target, labels = rng.dirichlet(np.ones(2), size=20), rng.integers(2, size=20)
    found = attack.scores(target, labels)
    assert attack.hidden_weights.shape == (4, 32)
    for record in range(20):
        x = [*target[record], float(labels[record] == 0), float(labels[record] == 1)]
        logit = attack.output_bias
        for unit in range(32):
            total = attack.hidden_bias[unit]
            for column in range(4):
                scaled = (x[column] - attack.centre[column]) / attack.spread[column]
                total += scaled * attack.hidden_weights[column, unit]
            logit += max(total, 0.0) * attack.output_weights[unit]
        log_p_in, log_p_out = -math.log1p(math.exp(-logit)), -math.log1p(math.exp(logit))
        assert found[record] == pytest.approx(log_p_in - log_p_out, rel=1e-9, abs=1e-12)


# Same seed, same numbers.


def test_the_seed_decides_everything():
    first, second, other = (fitted(seed=seed) for seed in (4, 4, 5))
    assert np.array_equal(first.hidden_weights, second.hidden_weights)
    assert first.training_loss == second.training_loss
    assert not np.array_equal(first.hidden_weights, other.hidden_weights)


def test_rows_are_drawn_evenly_and_by_the_seed():
    rng = np.random.default_rng(58)
    members = random_half(rng, 30, 50)
    answers = leaking_answers(rng, members, np.zeros((30, 50)))
    labels = np.zeros(50, dtype=int)
    few, again, every = (
        shadow_classifier.fit(answers, members, labels, seed=6, max_rows=rows, equal_groups=False)
        for rows in (400, 400, None)
    )
    assert (few.n_rows, again.n_rows, every.n_rows) == (400, 400, 1500)
    assert np.array_equal(few.hidden_weights, again.hidden_weights)
    assert few.centre[0] == pytest.approx(every.centre[0], abs=5 * 0.07 / 20)
    assert every.centre[0] == pytest.approx(answers[..., 0].mean())


def test_drawn_rows_keep_answers_and_membership_together():
    """A leak without noise, few of the rows drawn: any mixing up of rows would show, and so would weight decay."""
    rng = np.random.default_rng(59)
    members = random_half(rng, 40, 60)
    answers = np.where(members[..., None], [0.8, 0.2], [0.6, 0.4])
    attack = shadow_classifier.fit(answers, members, np.zeros(60, dtype=int), seed=7, max_rows=600)
    assert attack.training_loss < 0.005
    assert (attack.scores([[0.8, 0.2], [0.6, 0.4]], [0, 0]) > 0).tolist() == [True, False]


def test_rows_are_those_drawn_of_all_pairs():
    """The slow twin lists every pair of a model and a record it may be asked about, and draws places in that list."""
    rng = np.random.default_rng(60)
    usable = random_half(rng, 12, 40)
    usable[[3, 4, 11]] = False  # of some models none
    model, record = np.nonzero(usable)
    for n_rows in (2, 57, model.size - 1, model.size):
        drawn = shadow_classifier._drawn_rows(usable, n_rows, np.random.default_rng(61))
        places = np.sort(np.random.default_rng(61).choice(model.size, size=n_rows, replace=False))
        assert np.array_equal(drawn, (model[places], record[places]))


def test_each_record_gives_as_many_rows_of_either_kind():
    members = np.array([[True, True, False], [True, False, False], [False, True, False], [False, False, False]])
    answers = np.random.default_rng(64).dirichlet(np.ones(2), size=(4, 3))
    attack = shadow_classifier.fit(answers, members, LABELS, seed=0)
    # By hand: four rows of the first record, four of the second, none of the third, which no model was trained on.
    assert attack.n_rows == 8
    assert attack.centre[0] == pytest.approx(answers[:, :2, 0].mean())


def test_a_single_shadow_model_is_enough_if_said_so():
    members = np.arange(60)[None, :] < 30
    answers = np.where(members[..., None], [0.8, 0.2], [0.6, 0.4])
    labels = np.zeros(60, dtype=int)
    attack = shadow_classifier.fit(answers, members, labels, seed=0, equal_groups=False)
    assert attack.n_rows == 60
    with pytest.raises(DataError, match="train at least two shadow models"):
        shadow_classifier.fit(answers, members, labels, seed=0)


def test_the_default_is_the_papers_number_of_rows():
    assert shadow_classifier.PAPER_ROWS == 20 * 2000  # Long et al. 2017, section 5.4


# Edges.


def test_all_answers_equal_score_alike():
    rng = np.random.default_rng(60)
    shadows = np.broadcast_to([0.1, 0.9], (10, 40, 2))
    attack = shadow_classifier.fit(shadows, random_half(rng, 10, 40), np.ones(40, dtype=int), seed=8)
    found = attack.scores(np.broadcast_to([0.1, 0.9], (5, 2)), np.ones(5, dtype=int))
    assert np.ptp(found) < 1e-12
    assert np.all(np.abs(attack.scores([[0.2, 0.8]], [1])) < 5.0)  # a constant column is not blown up


def test_scores_keep_the_order_of_records():
    attack = fitted()
    rng = np.random.default_rng(61)
    target, labels = rng.dirichlet(np.ones(2), size=30), rng.integers(2, size=30)
    order = rng.permutation(30)
    assert np.allclose(attack.scores(target[order], labels[order]), attack.scores(target, labels)[order], rtol=1e-12)


def test_more_classes_and_float32_are_fine():
    rng = np.random.default_rng(62)
    shadows = rng.dirichlet(np.ones(5), size=(6, 30)).astype(np.float32)
    attack = shadow_classifier.fit(shadows, random_half(rng, 6, 30), rng.integers(5, size=30), seed=9)
    found = attack.scores(shadows[0], rng.integers(5, size=30))
    assert found.dtype == np.float64
    assert found.shape == (30,)
    assert np.isfinite(found).all()


SHADOWS = np.full((4, 3, 2), 0.5)
MEMBERS = np.array([[True, False, True], [False, True, False]] * 2)
LABELS = np.array([0, 1, 1])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"shadow_probabilities": SHADOWS[0]}, ModelError, r"shadow_probabilities must have shape \[models, records"),
        ({"shadow_probabilities": SHADOWS * np.nan}, ModelError, r"shadow_probabilities\[0, 0, 0\] is nan"),
        ({"members": MEMBERS[:2]}, DataError, r"members must have shape \[models, records\] = \(4, 3\)"),
        ({"members": MEMBERS.astype(int)}, DataError, "members must be bool"),
        ({"members": np.ones_like(MEMBERS)}, DataError, "the 0 usable rows are not of both kinds"),
        ({"members": ~MEMBERS & False, "equal_groups": False}, DataError, "the 12 usable rows are not of both kinds"),
        ({"labels": LABELS[:2]}, DataError, r"labels must have shape \(3,\)"),
        ({"labels": LABELS + 1}, DataError, r"labels\[1\] is 2; labels must lie in 0\.\.1"),
        ({"seed": -1}, ConfigError, "seed must be a whole number of at least 0, got -1"),
        ({"max_rows": 1}, ConfigError, "max_rows must be a whole number of at least 2"),
        ({"record_features": [[1.0]]}, DataError, r"record_features must have shape.*3 records.*got \(1, 1\)"),
        ({"record_features": [[1.0], [np.nan], [0.0]]}, DataError, r"record_features\[1, 0\] is nan"),
        ({"record_features": [["a"], ["b"], ["c"]]}, DataError, "record_features must be numbers, encode"),
    ],
)
def test_bad_shadows_are_refused(change, error, message):
    arguments = {"shadow_probabilities": SHADOWS, "members": MEMBERS, "labels": LABELS, "seed": 0} | change
    positional = [arguments.pop(name) for name in ("shadow_probabilities", "members", "labels")]
    with pytest.raises(error, match=message):
        shadow_classifier.fit(*positional, **arguments)


def test_bad_targets_are_refused():
    attack = fitted()
    with pytest.raises(ModelError, match=r"target\[0, 1\] is nan"):
        attack.scores([[0.5, np.nan]], [0])
    with pytest.raises(ModelError, match="one column for each of n_classes = 2"):
        attack.scores([[0.5, 0.3, 0.2]], [0])
    with pytest.raises(DataError, match=r"labels must have shape \(1,\)"):
        attack.scores([[0.5, 0.5]], [0, 1])
    with pytest.raises(DataError, match=r"record_features must have the 0 columns .* fitted with, got 1"):
        attack.scores([[0.5, 0.5]], [0], record_features=[[1.0]])
