"""The learned attack: whatever members' answers have in common, a forest of the other fold finds it."""

from __future__ import annotations

import numpy as np
import pytest

from leakgauge.errors import DataError, ModelError
from leakgauge.membership import MembershipEvidence, everyone_as_target, learned
from leakgauge.models import AnswerKind, label_logs
from leakgauge.records import Units
from leakgauge.statistics import advantage_of_decisions
from leakgauge.training import DenseSubsets, PredictionTable, balanced_subsets

HALF = np.arange(1000) % 2 == 0
KIND = AnswerKind.PROBABILITIES
N_CLASSES = 4


def answers_of(rng, own_logit, labels, *, second=None):
    """Log-probabilities with this logit of the own class; the rest is divided at random, or by ``second``'s share."""
    p = 1 / (1 + np.exp(-own_logit))
    shares = rng.dirichlet(np.ones(N_CLASSES - 1), size=len(p))
    if second is not None:
        shares[second] = np.eye(N_CLASSES - 1)[rng.integers(N_CLASSES - 1, size=second.sum())]
    found = np.empty((len(p), N_CLASSES))
    own = np.arange(N_CLASSES) == labels[:, None]
    found[own], found[~own] = p, ((1 - p)[:, None] * shares).ravel()
    with np.errstate(divide="ignore"):
        return np.log(found)


def case_of(rng, name, is_member=HALF):
    """Answers and labels of a model that treats its members in this way."""
    n = len(is_member)
    labels, own = rng.integers(N_CLASSES, size=n), rng.normal(1, 1, size=n)
    if name == "reversed":  # members' logits are 0.8 lower: the best threshold has 2 Phi(0.4) - 1 = 0.31
        return answers_of(rng, own - 0.8 * is_member, labels), labels
    if name == "remainder":
        return answers_of(rng, own, labels, second=is_member), labels
    if name == "rounded":
        logs = answers_of(rng, own, labels)
        with np.errstate(divide="ignore"):
            return np.where(is_member[:, None], np.log(np.round(np.exp(logs), 2)), logs), labels
    if name == "band":  # standard deviations of 1 and 3 about one mean: at best 0.4843, Yeom et al. 2018, Theorem 3
        return answers_of(rng, 1 + (own - 1) * np.where(is_member, 1, 3), labels), labels
    assert name == "nothing"
    return answers_of(rng, own, labels), labels


def found_in(name, seed, is_member=HALF):
    answers, labels = case_of(np.random.default_rng(seed), name, is_member)
    return learned.learned_advantage(KIND, answers, labels, is_member, seed=seed)


# No leak first.


def test_null_nothing_is_found_where_answers_are_alike():
    """24 audits of 1,000 records: mean within 0.035 of 0, four standard errors of a standard deviation of 0.043."""
    estimates = [found_in("nothing", seed) for seed in range(24)]
    values = np.array([estimate.value for estimate in estimates])
    assert abs(values.mean()) < 0.035
    assert values.std() < 0.07  # binomial: 0.032
    assert sum(estimate.low > 0 for estimate in estimates) <= 2


@pytest.mark.slow
def test_null_the_lower_end_is_seldom_above_zero():
    """1,000 audits: 1 to 2 % are above 0, and 30 at least would be a miss of 5 % with probability 0.998."""
    estimates = [found_in("nothing", seed) for seed in range(1000)]
    values = np.array([estimate.value for estimate in estimates])
    assert abs(values.mean()) < 4 * 0.045 / np.sqrt(1000)
    assert sum(estimate.low > 0 for estimate in estimates) < 30


def test_null_unequal_groups_are_no_signal():
    """One member for four others; a forest of the majority would call nobody a member, and say so as surely."""
    is_member = np.arange(1000) % 5 == 0
    estimates = [found_in("nothing", seed, is_member) for seed in range(12)]
    assert abs(np.mean([estimate.value for estimate in estimates])) < 0.06  # four standard errors
    answers, labels = case_of(np.random.default_rng(1), "nothing", is_member)
    called = learned.cross_fitted(KIND, answers, labels, is_member, seed=0) > 0.5
    assert 0.2 < called.mean() < 0.8


@pytest.mark.parametrize("kind", list(AnswerKind))
def test_null_equal_answers_have_no_advantage_at_all(kind):
    answers = np.zeros((60, 1)) if kind is AnswerKind.VALUES else np.log(np.full((60, 2), 0.5))
    answers = label_logs(answers) if kind is AnswerKind.LABELS else answers
    labels = np.zeros(60, dtype=float if kind is AnswerKind.VALUES else int)
    assert learned.learned_advantage(kind, answers, labels, HALF[:60], seed=0).value == 0


def test_null_a_record_alone_in_its_leaf_is_not_judged_by_itself():
    """Answers that name every record: a forest that had seen the record would know it."""
    rng = np.random.default_rng(5)
    labels = np.zeros(400)
    is_member = rng.permutation(HALF[:400])
    estimate = learned.learned_advantage(AnswerKind.VALUES, rng.normal(size=(400, 1)), labels, is_member, seed=0)
    assert abs(estimate.value) < 0.25  # five standard deviations of 0.05


def repeated(name, seed, times=5, n=300):
    """Answers about n records, of which each member was drawn several times."""
    is_member = HALF[:n]
    answers, labels = case_of(np.random.default_rng(seed), name, is_member)
    rows = np.random.default_rng(seed).permutation(np.repeat(np.arange(n), np.where(is_member, times, 1)))
    return answers[rows], labels[rows], is_member[rows], Units.of(rows)


def test_null_copies_of_members_are_not_found_again():
    """12 audits of 150 members, five times each, and 150 others: mean within 0.12, four standard errors.

    Where copies counted, all of them found an advantage, 0.3 on average.
    """
    estimates = []
    for seed in range(12):
        answers, labels, is_member, copies = repeated("nothing", seed)
        estimates.append(learned.learned_advantage(KIND, answers, labels, is_member, seed=seed, copies=copies))
    assert abs(np.mean([estimate.value for estimate in estimates])) < 0.12
    assert sum(estimate.low > 0 for estimate in estimates) <= 1
    assert {estimate.n for estimate in estimates} == {300}


@pytest.mark.parametrize(("name", "least"), [("remainder", 0.9), ("rounded", 0.9), ("band", 0.2)])
def test_what_members_have_in_common_is_found_where_they_are_repeated(name, least):
    answers, labels, is_member, copies = repeated(name, 1)
    estimate = learned.learned_advantage(KIND, answers, labels, is_member, seed=0, copies=copies)
    assert estimate.value > least
    assert estimate.low > 0


def test_copies_share_their_fold_and_their_score():
    answers, labels, is_member, copies = repeated("nothing", 3)
    folds = learned._divided(is_member, 0, copies, None)
    first, once = folds.first, folds.once
    assert np.array_equal(folds.is_member, is_member)
    assert once.sum() == 300
    assert np.array_equal(first, first[copies.first][copies.of_row])
    assert np.count_nonzero(first & once & is_member) == 75
    found = learned.cross_fitted(KIND, answers, labels, is_member, seed=0, copies=copies)
    assert np.array_equal(found, found[copies.first][copies.of_row])


def test_copies_of_persons_are_persons():
    """300 records of 150 persons with two each; 50 members are there twice under other names."""
    answers, labels, is_member = (
        np.repeat(one, 2, axis=0) for one in (*case_of(np.random.default_rng(0), "band", HALF[:150]), HALF[:150])
    )
    rows = np.concatenate([np.arange(300), np.flatnonzero(is_member)[:100]])
    units = Units(np.concatenate([np.arange(300) // 2, 150 + np.arange(100) // 2]))
    copies = Units(np.concatenate([np.arange(150), np.flatnonzero(HALF[:150])[:50]]))
    folds = learned._divided(units.agreed(is_member[rows]), 0, copies, None)
    first, once = folds.first, folds.once
    assert once.tolist() == [True] * 150 + [False] * 50
    assert np.array_equal(first[150:], first[copies.of_row[150:]])
    found = learned.cross_fitted(
        KIND, answers[rows], labels[rows], is_member[rows], seed=0, units=units, copies=copies
    )  # fmt: skip
    assert np.array_equal(found[300:], found[rows[300:]])


def also_members(name, seed, n=300, n_shared=240):
    """Answers about n members and n others, of which this many are members once more; equal records have one number."""
    rows = np.concatenate([np.arange(n), np.arange(n_shared), n + np.arange(n - n_shared)])
    answers, labels = case_of(np.random.default_rng(seed), name, np.arange(2 * n) < n)
    return answers[rows], labels[rows], np.arange(2 * n) < n, Units.of(rows)


def test_null_others_that_are_members_as_well_are_not_learned_by_heart():
    """12 audits, in which 120 of 600 records have no equal: mean within 0.03, six standard errors of 0.005.

    In other folds than their equals they gave an advantage of -0.35 on average, and its whole interval was below 0 in
    all 12.
    """
    estimates = []
    for seed in range(12):
        answers, labels, is_member, alike = also_members("nothing", seed)
        estimates.append(learned.learned_advantage(KIND, answers, labels, is_member, seed=seed, alike=alike))
    assert abs(np.mean([estimate.value for estimate in estimates])) < 0.03
    assert not any(estimate.high < 0 or estimate.low > 0 for estimate in estimates)


def test_what_members_have_in_common_is_found_beside_others_that_are_members_as_well():
    """A fifth of the others are none: 0.2 at best, and all of it where the forest sees what members have in common.

    In each fold it learns from 150 members, and from others of which 120 look the same: members of whom it is unsure.
    """
    answers, labels, is_member, alike = also_members("remainder", 1)
    found = learned.learned_advantage(KIND, answers, labels, is_member, seed=0, alike=alike)
    assert 0.1 < found.value <= 0.3
    called = learned.cross_fitted(KIND, answers, labels, is_member, seed=0, alike=alike) > 0.5
    assert not called[-60:].any()


def test_equal_records_of_both_sets_share_their_fold_and_their_score():
    answers, labels, is_member, alike = also_members("nothing", 3)
    folds = learned._divided(is_member, 0, None, alike)
    first, once = folds.first, folds.once
    assert once.all()
    assert np.array_equal(first[:240], first[300:540])
    assert [int(first[part].sum()) for part in (slice(240), slice(240, 300), slice(540, None))] == [120, 30, 30]
    found = learned.cross_fitted(KIND, answers, labels, is_member, seed=0, alike=alike)
    assert np.array_equal(found[:240], found[300:540])


def test_too_many_that_are_alike_are_refused():
    answers, labels = case_of(np.random.default_rng(0), "nothing", HALF[:6])
    with pytest.raises(DataError, match="members and others in each fold; too many of them are alike"):
        learned.cross_fitted(KIND, answers, labels, HALF[:6], seed=0, alike=Units(np.zeros(6, dtype=np.int64)))


def test_records_without_copies_are_judged_as_before():
    answers, labels = case_of(np.random.default_rng(4), "band")
    plain = learned.cross_fitted(KIND, answers, labels, HALF, seed=0)
    alone = learned.cross_fitted(KIND, answers, labels, HALF, seed=0, copies=Units.rows(1000))
    np.testing.assert_array_equal(alone, plain)


# Known answers.


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("reversed", 0.16, 0.34), ("remainder", 0.98, 1.0), ("rounded", 0.99, 1.0), ("band", 0.38, 0.5)],
)
def test_what_members_have_in_common_is_found(name, least, most):
    """Means of four audits, 1,000 records each; simulated before: 0.25, 0.996, 1.00, 0.46. Standard error 0.02."""
    estimates = [found_in(name, seed) for seed in range(4)]
    assert least < np.mean([estimate.value for estimate in estimates]) <= most
    assert all(estimate.low > 0 for estimate in estimates)


def test_rounded_predictions_of_a_regressor_are_found():
    rng = np.random.default_rng(6)
    labels = rng.normal(100, 30, size=600)
    predictions = labels + rng.normal(0, 10, size=600)
    answers = np.where(HALF[:600], np.round(predictions), predictions)[:, None]
    assert learned.learned_advantage(AnswerKind.VALUES, answers, labels, HALF[:600], seed=0).value > 0.99


@pytest.mark.parametrize("unit", [1e-100, 1e-30, 1e-9, 1.0, 1e9, 1e100])
def test_the_unit_of_a_regressor_does_not_matter(unit):
    """The sign of the error tells members from others; trees of plain numbers see none of it below 1e-7."""
    rng = np.random.default_rng(6)
    labels = unit * rng.normal(size=600)
    answers = labels - unit * np.abs(rng.normal(0, 0.3, size=600)) * np.where(HALF[:600], 1, -1)
    found = learned.learned_advantage(AnswerKind.VALUES, answers[:, None], labels, HALF[:600], seed=0)
    assert found.value > 0.99


def test_small_probabilities_are_seen():
    """Members' probabilities of the second class are a tenth above 1e-8, others' a tenth below."""
    rng = np.random.default_rng(6)
    p = 1e-8 * (1 + np.where(HALF, 0.1, -0.1) * rng.random(1000))
    labels = np.zeros(1000, dtype=int)
    found = learned.learned_advantage(KIND, np.log(np.stack([1 - p, p], axis=1)), labels, HALF, seed=0)
    assert found.value > 0.99


def test_what_probabilities_add_up_to_is_seen():
    """Those of others add up to 1e-7 less."""
    answers, labels = case_of(np.random.default_rng(2), "nothing")
    answers = answers + np.where(HALF, 0, np.log1p(-1e-7))[:, None]
    assert learned.learned_advantage(KIND, answers, labels, HALF, seed=0).value > 0.9


def test_labels_alone_tell_who_is_right():
    """Members are always right, others half of the time: 0.5, standard deviation 0.03."""
    rng = np.random.default_rng(7)
    labels = rng.integers(2, size=1000)
    answered = np.where(HALF | (rng.random(1000) < 0.5), labels, 1 - labels)
    answers = label_logs(np.log(np.where(np.arange(2) == answered[:, None], 0.9, 0.1)))
    assert learned.learned_advantage(AnswerKind.LABELS, answers, labels, HALF, seed=0).value == pytest.approx(
        0.5, abs=0.1
    )


# Slow twins.


def test_the_interval_is_as_wide_as_that_of_half_of_the_records():
    answers, labels = case_of(np.random.default_rng(8), "reversed")
    estimate = learned.learned_advantage(KIND, answers, labels, HALF, seed=3)
    called = learned.cross_fitted(KIND, answers, labels, HALF, seed=3) > 0.5
    assert estimate.value == pytest.approx(called[HALF].mean() - called[~HALF].mean())  # folds of equal size
    pooled = advantage_of_decisions(called[HALF], called[~HALF])
    assert estimate.half_width == pytest.approx(np.sqrt(2) * pooled.half_width, rel=0.02)
    assert estimate.n == 1000


@pytest.mark.parametrize("seed", range(5))
def test_folds_have_half_of_either_group(seed):
    rng = np.random.default_rng(seed)
    is_member = rng.random(31) < 0.3
    is_member[:2], is_member[2:4] = True, False
    first = learned._first_fold(np.stack([is_member, ~is_member]), rng.permutation(31))
    for group in (is_member, ~is_member):
        assert np.count_nonzero(first & group) == group.sum() // 2


def test_features_by_hand():
    with np.errstate(divide="ignore"):
        found = learned.signal_features(KIND, np.log([[0.125, 0.8, 0.075], [1.0, 0.0, 0.0]]), np.array([1, 1]))
    first, certain = found
    entropy = -0.8 * np.log(0.8) - 0.125 * np.log(0.125) - 0.075 * np.log(0.075)
    assert first[:3] == pytest.approx([0.8, 0.125, 0.075])
    assert first[3:6] == pytest.approx(np.log([0.8, 0.125, 0.075]))
    assert first[6:9] == pytest.approx([0.0, 0.5, 0.5])
    assert first[9:15].tolist() == [1, 3, 1, 3, 31, 3]  # decimals, in double precision and in single; binary digits
    assert first[15:19] == pytest.approx([np.log(4), np.log(0.8 / 0.125), 0, 2])
    assert first[19:24] == pytest.approx([2, 2, entropy, 0, 0.625])
    assert first[24:].tolist() == [1, 0, 1, 0]
    assert np.isfinite(certain).all()
    assert certain[15:25] == pytest.approx([-103.6, -1e30, 0, 2, 2, 1, 0, 0, 0, 0])
    sums = learned.signal_features(
        KIND, np.log([[0.25, 0.25], [0.5, 0.5 + 2e-8], [0.5, 0.5 + 2e-15]]), np.array([0, 0, 0])
    )
    assert sums[:, 19] == pytest.approx([-0.5, 2e-8, 0.0], abs=1e-12)
    values = learned.signal_features(AnswerKind.VALUES, np.array([[12.5], [10.0]]), np.array([10.0, 20.0]))
    assert values.tolist() == [[-2.5, 2.5, 12.5, 0.5, 0, 0, 1, 1, 1], [10, 10, 10, 0, 0, 0, 0, 0, 0]]
    # In single precision 21.2345612 is no rounded number, as it has about seven digits in all; 21.2346 is one.
    digits = learned.signal_features(AnswerKind.VALUES, np.array([[21.2345612], [21.2346]]), np.array([10.0, 10.0]))
    assert digits[:, 6:8].tolist() == [[7, 9], [4, 4]]


@pytest.mark.parametrize("decimals", [2, 3, 4, 6])
@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_rounded_answers_of_members_are_found(decimals, precision):
    """However few or many digits are kept, and in which precision they are stored."""
    rng = np.random.default_rng(decimals)
    p, inside = rng.uniform(0.05, 0.95, 600).astype(precision), np.arange(600) % 2 == 0
    p = np.where(inside, np.round(p, decimals).astype(precision), p).astype(np.float64)
    logs = np.log(np.stack([1 - p, p], axis=1))
    found = learned.learned_advantage(KIND, logs, rng.integers(0, 2, 600), inside, seed=0)
    assert found.low > 0.5


def test_answers_of_members_in_single_precision_are_found():
    """As from a cache of the training set's predictions."""
    rng = np.random.default_rng(1)
    p, inside = rng.uniform(0.05, 0.95, 600), np.arange(600) % 2 == 0
    p = np.where(inside, p.astype(np.float32).astype(np.float64), p)
    logs = np.log(np.stack([1 - p, p], axis=1))
    assert learned.learned_advantage(KIND, logs, rng.integers(0, 2, 600), inside, seed=0).low > 0.5


HALF = np.arange(1000) % 2 == 0


@pytest.mark.parametrize("k", [3, 10, 30])
@pytest.mark.parametrize("by", ["label", "class"])
def test_which_wrong_class_is_likeliest_is_seen(k, by):
    """The probability of the label says nothing; the class after it, or the last one, is second for members."""
    rng = np.random.default_rng(k)
    labels, own = rng.integers(0, k - 2, 1000), rng.uniform(0.5, 0.9, 1000)
    after = np.where(HALF, 1, k - 1) + labels if by == "label" else np.where(HALF, k - 1, k - 2)
    p = np.full((1000, k), 0.1) * (1 - own)[:, None] / (k - 2)
    p[np.arange(1000), after % k] = 0.9 * (1 - own) + 0.1 * (1 - own) / (k - 2)
    p[np.arange(1000), labels] = own
    assert learned.learned_advantage(KIND, np.log(p / p.sum(axis=1, keepdims=True)), labels, HALF, seed=0).low > 0.8


@pytest.mark.parametrize("inside", [0.0, 1e-320, 1e-150])
def test_probabilities_below_all_that_single_precision_holds_are_told_apart(inside):
    """Others have 1e-300: a logit that is cut off says the same of both."""
    rng = np.random.default_rng(3)
    p = rng.uniform(0.3, 0.7, 1000)
    with np.errstate(divide="ignore"):
        logs = np.log(np.stack([p, 1 - p, np.where(HALF, inside, 1e-300)], axis=1))
    assert learned.learned_advantage(KIND, logs, rng.integers(0, 2, 1000), HALF, seed=0).low > 0.9


def test_numbers_beside_the_answers_are_looked_at_by_rank():
    """Members' sums are off by what single precision does not hold; null: the same numbers for anyone say nothing."""
    rng = np.random.default_rng(4)
    p = rng.uniform(0.1, 0.9, 1000)
    asked = KIND, np.log(np.stack([p, 1 - p], axis=1)), rng.integers(0, 2, 1000), HALF
    off = 1 + np.where(HALF, 1e-12, 0.0)
    of_members = learned.cross_fitted(*asked, seed=0, beside=off[:, None]) > 0.5
    assert (of_members == HALF).mean() > 0.99
    of_anyone = learned.cross_fitted(*asked, seed=0, beside=rng.permutation(off)[:, None]) > 0.5
    assert abs((of_anyone == HALF).mean() - 0.5) < 0.1
    np.testing.assert_array_equal(
        learned.cross_fitted(*asked, seed=0, beside=np.empty((1000, 0))), learned.cross_fitted(*asked, seed=0)
    )


def test_numbers_beside_the_answers_stay_with_their_records():
    rng = np.random.default_rng(5)
    beside, rows = rng.normal(size=(20, 3)), np.array([4, 2, 9])
    logs = np.log(rng.dirichlet(np.ones(2), 20))
    some = MembershipEvidence(KIND, logs, rng.integers(0, 2, 20), beside=beside).about(rows)
    assert some.beside is not None
    np.testing.assert_array_equal(some.beside, beside[rows])
    np.testing.assert_array_equal(some.answers, logs[rows])


def test_order_and_names_of_records_do_not_matter_to_features():
    answers, labels = case_of(np.random.default_rng(9), "band")
    shuffled = np.random.default_rng(10).permutation(1000)
    found = learned.signal_features(KIND, answers, labels)
    np.testing.assert_array_equal(learned.signal_features(KIND, answers[shuffled], labels[shuffled]), found[shuffled])
    np.testing.assert_array_equal(learned.signal_features(KIND, answers[:7], labels[:7]), found[:7], "nor the others")


# All models of a table.


def table_of(rng, name, n_models=12, n=200):
    members = balanced_subsets(n, n // 2, n_models, rng).members
    labels = rng.integers(N_CLASSES, size=n)
    answers = []
    for inside in members:
        logs, drawn = case_of(rng, name, inside)
        own = np.take_along_axis(logs, drawn[:, None], axis=1)
        logs[np.arange(n), drawn] = np.take_along_axis(logs, labels[:, None], axis=1)[:, 0]
        logs[np.arange(n), labels] = own[:, 0]
        answers.append(logs)
    table = PredictionTable(np.stack(answers), KIND, DenseSubsets(members), np.arange(n_models), "synthetic")
    return table, labels


def test_null_every_model_of_a_table():
    """12 games of 200 records: mean advantage within 0.12, four standard errors of a game's 0.1."""
    table, labels = table_of(np.random.default_rng(11), "nothing")
    called = everyone_as_target(table, labels, learned.ATTACK).scores > 0
    assert abs(called[table.members].mean() - called[~table.members].mean()) < 0.12


def test_every_model_of_a_table_is_found_out():
    table, labels = table_of(np.random.default_rng(12), "remainder")
    scores = everyone_as_target(table, labels, learned.ATTACK).scores
    assert scores.shape == (12, 200)
    assert np.mean((scores > 0) == table.members) > 0.95
    assert np.array_equal(scores, everyone_as_target(table, labels, learned.ATTACK).scores)


def test_most_records_keep_their_fold():
    members = balanced_subsets(400, 200, 8, np.random.default_rng(13)).members
    order = np.random.default_rng(14).permutation(400)
    folds = np.stack([learned._first_fold(np.stack([inside, ~inside]), order) for inside in members])
    assert np.mean(folds == folds[0]) > 0.9


# How numbers are written.


def rounded(how):
    return {
        "6 decimals": lambda x: np.round(x, 6),
        "10 decimals": lambda x: np.round(x, 10),
        "single precision": lambda x: x.astype(np.float32).astype(float),
        "parts of 2^20": lambda x: np.round(x * 2**20) / 2**20,
        "9 digits": lambda x: np.array([float(f"{one:.9g}") for one in x]),
    }[how]


def of_form(form, how, members, seed):
    """Answers of a model that tells nothing but by how the numbers of these members are written."""
    z = np.random.default_rng(seed).normal(1, 2, len(HALF))
    if form == "value":
        x = 30 * z
        return AnswerKind.VALUES, np.where(members, rounded(how)(x), x)[:, None]
    x = {"loss": np.logaddexp(0, -z), "logit": z, "probability": 1 / (1 + np.exp(-z))}[form]
    x = np.where(members, rounded(how)(x), x)
    p = {"loss": lambda: np.exp(-x), "logit": lambda: 1 / (1 + np.exp(-x)), "probability": lambda: x}[form]()
    if form == "loss":
        return KIND, np.column_stack([-x, np.log(-np.expm1(-x))])
    if form == "logit":
        return KIND, -np.column_stack([np.logaddexp(0, -x), np.logaddexp(0, x)])
    return KIND, np.log(np.column_stack([p, 1 - p]))


@pytest.mark.parametrize("how", ["6 decimals", "10 decimals", "single precision", "parts of 2^20", "9 digits"])
@pytest.mark.parametrize("form", ["loss", "logit", "probability", "value"])
def test_members_whose_numbers_are_written_otherwise_are_found_in_every_form(form, how):
    kind, answers = of_form(form, how, HALF, 0)
    labels = np.zeros(len(HALF)) if kind is AnswerKind.VALUES else np.zeros(len(HALF), dtype=int)
    assert learned.learned_advantage(kind, answers, labels, HALF, seed=0).low > 0.9


@pytest.mark.parametrize("form", ["loss", "logit", "probability", "value"])
@pytest.mark.parametrize("who", [np.zeros_like(HALF), np.ones_like(HALF), np.random.default_rng(3).random(1000) < 0.5])
def test_null_how_everyones_numbers_are_written_is_not_looked_at(form, who):
    """Not even by chance: the features are those of before, and so is each number."""
    kind, answers = of_form(form, "6 decimals", who, 1)
    labels = np.zeros(len(HALF)) if kind is AnswerKind.VALUES else np.zeros(len(HALF), dtype=int)
    looks = learned._Looks(
        learned._single(kind, answers, labels), learned._numbers(kind, answers, labels), HALF.astype(bool)
    )
    assert looks.learned_from(np.ones(len(HALF), dtype=bool)) is looks.features


def test_persons_whose_numbers_are_written_otherwise_are_found():
    units = Units.of(np.arange(1000) // 2)
    kind, answers = of_form("loss", "6 decimals", np.repeat(np.arange(500) % 2 == 0, 2), 2)
    members = np.repeat(np.arange(500) % 2 == 0, 2)
    called = learned.cross_fitted(kind, answers, np.zeros(1000, dtype=int), members, seed=0, units=units) > 0.5
    assert np.mean(called == members) > 0.95


# Edges.


def test_hostile_input_is_refused_or_judged():
    answers, labels = case_of(np.random.default_rng(15), "nothing")
    with pytest.raises(DataError, match="is_member must be bool with one entry for each of 1000 records, got int64"):
        learned.cross_fitted(KIND, answers, labels, HALF * 1, seed=0)
    with pytest.raises(DataError, match=r"at least two members and two others.*got 1 and 999"):
        learned.learned_advantage(KIND, answers, labels, np.arange(1000) == 3, seed=0)
    with pytest.raises(ModelError, match="record 2 is NaN"):
        learned.cross_fitted(KIND, np.where(np.arange(1000)[:, None] == 2, np.nan, answers), labels, HALF, seed=0)
    with pytest.raises(DataError, match=r"at least two members and two others.*got 1 and 500"):
        learned.cross_fitted(KIND, answers, labels, HALF, seed=0, copies=Units.of(np.where(HALF, 0, np.arange(1000))))
    few = learned.learned_advantage(KIND, answers[:4], labels[:4], HALF[:4], seed=0)
    assert few.low <= -0.9
    assert few.high >= 0.9
    huge = np.where(np.arange(1000)[:, None] % 3 == 0, 1e300, answers[:, :1])
    assert np.isfinite(learned.cross_fitted(AnswerKind.VALUES, huge, labels.astype(float), HALF, seed=0)).all()
