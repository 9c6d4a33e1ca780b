"""What every attack must do, whoever wrote it; and games of all targets at once against the loop over targets."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from leakgauge.errors import InputError, ModelError
from leakgauge.membership import (
    ATTACKS,
    OFFLINE_ATTACKS,
    MembershipEvidence,
    PopulationRecords,
    everyone_as_target,
    evidence,
    frequency,
    likelihood_ratio,
    relative,
)
from leakgauge.membership._checks import thinned_groups
from leakgauge.membership._others import OtherModels
from leakgauge.membership.game import _opposed
from leakgauge.models import AnswerKind, label_logs
from leakgauge.training import DenseSubsets, PredictionTable, balanced_subsets, random_subsets

from .without import without_each

ALL = ATTACKS + OFFLINE_ATTACKS
CASES = [(attack, kind) for attack in ALL for kind in sorted(attack.kinds)]
BLIND = [
    (attack, kind) for attack, kind in CASES if attack.name in {"gradients", "influence"} and kind is AnswerKind.VALUES
]
"""Errors to either side that are smaller for members have the same mean as larger ones."""

TOGETHER = [(attack, kind) for attack, kind in CASES if attack.together is not None]


def named(case):
    return case.name if hasattr(case, "name") else str(case)


def answers_of(rng, kind, own):
    """Answers about records of class 0 (or value 0) whose signal is ``own`` [...]: higher is better fitted."""
    if kind is AnswerKind.VALUES:
        return np.exp(-own)[..., None] * rng.choice([-1, 1], size=(*own.shape, 1))
    p = 1 / (1 + np.exp(-own))
    shares = rng.dirichlet(np.ones(2), size=own.shape)
    logs = np.log(np.concatenate([p[..., None], (1 - p)[..., None] * shares], axis=-1))
    return label_logs(logs) if kind is AnswerKind.LABELS else logs


def evidence_of(rng, kind, is_member, gain, n_models=16, n_known=100):
    """Signals N(gain, 1) of members and N(0, 1) of others, for the target and for shadow models alike."""
    n = len(is_member)
    members = balanced_subsets(n, max(1, n // 2), n_models, rng).members
    shadows = PredictionTable(
        answers_of(rng, kind, gain * members + rng.normal(size=members.shape)),
        kind,
        DenseSubsets(members),
        np.arange(n_models),
        "synthetic",
    )
    dtype = float if kind is AnswerKind.VALUES else int
    base = answers_of(np.random.default_rng(n), kind, np.zeros(n))
    known = PopulationRecords(
        answers_of(rng, kind, rng.normal(size=n_known)), np.zeros(n_known, dtype), rng.normal(size=(n_known, 2))
    )
    own = gain * is_member + rng.normal(size=n)
    return MembershipEvidence(
        kind,
        answers_of(rng, kind, own),
        np.zeros(n, dtype),
        training_loss=0.3,
        sigma_in=0.6,
        sigma_out=1.6,
        shadows=shadows,
        seed=1,
        features=rng.normal(size=(n, 2)),
        population=known,
        steadiness=1 / (1 + np.exp(-2 * own)),
        models_without=without_each(kind, base, np.zeros(n, dtype)) if n <= 1000 else None,
    )


HALF = np.arange(400) % 2 == 0


@pytest.mark.parametrize(("attack", "kind"), [one for one in CASES if one not in BLIND], ids=named)
def test_scores_point_towards_members(attack, kind):
    """Members fitted better by 3 standard deviations score higher in mean rank: an AUC above 0.6 with 200 of either.

    Guessing has 0.5 with a standard error of 0.03, so it passes once in 2,000; labels alone know least (0.7 in truth).
    """
    evidence = evidence_of(np.random.default_rng(1), kind, HALF, 3.0)
    scores = attack.score(evidence)
    assert scores.shape == HALF.shape
    assert scores.dtype == np.float64
    assert not np.isnan(scores).any()
    above = (scores[HALF][:, None] > scores[~HALF]) + (scores[HALF][:, None] == scores[~HALF]) / 2
    assert above.mean() > 0.6
    if attack.member_probability is not None:
        assert np.all((attack.member_probability(evidence) >= 0) & (attack.member_probability(evidence) <= 1))


@pytest.mark.parametrize(("attack", "kind"), [one for one in CASES if one not in BLIND], ids=named)
def test_inverted_scores_do_not_look_like_members(attack, kind):
    """Members fitted *worse*. Attacks that take a good fit for membership say non-member; those that learn find out."""
    evidence = evidence_of(np.random.default_rng(2), kind, HALF, -3.0)
    called = attack.score(evidence) > 0
    advantage = called[HALF].mean() - called[~HALF].mean()
    learns = attack.name in {"shadow-classifier", "frequency", "distance", "lira", "gradients"}
    assert advantage > 0.1 if learns else advantage <= 0.0


@pytest.mark.parametrize(("attack", "kind"), CASES, ids=named)
def test_all_records_alike_are_all_told_the_same(attack, kind):
    """Equal answers about all records by target and shadow models: one score for all, so no advantage."""
    rng = np.random.default_rng(3)
    evidence = evidence_of(rng, kind, HALF, 0.0)
    answer = answers_of(rng, kind, np.zeros(1))
    known = evidence.population
    assert known is not None
    assert evidence.shadows is not None
    scores = attack.score(
        replace(
            evidence,
            answers=np.repeat(answer, 400, axis=0),
            shadows=replace(evidence.shadows, answers=np.tile(answer, (16, 400, 1))),
            features=np.zeros((400, 2)),
            population=PopulationRecords(np.repeat(answer, 100, axis=0), known.labels, np.zeros((100, 2))),
            steadiness=np.full(400, 0.5),
        )
    )
    assert np.ptp(scores) < 1e-12  # a network may round equal rows differently
    if attack.needs_shadows and attack.name != "shadow-classifier":
        assert not (scores > 0).any()


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(("attack", "kind"), CASES, ids=named)
def test_few_records_are_scored(attack, kind, n):
    """One candidate alone (no shadow model can be trained without it), two, three; five known non-members."""
    if n == 1 and attack.needs_shadows:
        return
    evidence = evidence_of(np.random.default_rng(4), kind, np.ones(n, dtype=bool), 1.0, n_models=4, n_known=5)
    scores = attack.score(evidence)
    assert scores.shape == (n,)
    assert not np.isnan(scores).any()


@pytest.mark.parametrize("n_inside", [0, 1, 40])
@pytest.mark.parametrize(("attack", "kind"), CASES, ids=named)
def test_no_member_one_member_and_members_only_are_scored_all_the_same(attack, kind, n_inside):
    scores = attack.score(evidence_of(np.random.default_rng(5), kind, np.arange(40) < n_inside, 1.0))
    assert scores.shape == (40,)
    assert not np.isnan(scores).any()


@pytest.mark.parametrize(("attack", "kind"), CASES, ids=named)
def test_extreme_answers_give_no_nan(attack, kind):
    """Probabilities of 0 and 1 (or huge errors) from target, shadow models and about known non-members."""
    rng = np.random.default_rng(6)
    evidence = evidence_of(rng, kind, HALF, 1.0)
    known = evidence.population
    assert known is not None
    assert evidence.shadows is not None

    def extreme(answers):
        if kind is AnswerKind.VALUES:
            return np.where(rng.random(answers.shape) < 0.2, 1e12, answers)
        return np.where(rng.random((*answers.shape[:-1], 1)) < 0.5, label_logs(answers), answers)

    scores = attack.score(
        replace(
            evidence,
            answers=extreme(evidence.answers),
            shadows=replace(evidence.shadows, answers=extreme(evidence.shadows.answers)),
            population=replace(known, answers=extreme(known.answers)),
        )
    )
    assert scores.shape == (400,)
    assert not np.isnan(scores).any()


@pytest.mark.parametrize(("attack", "kind"), CASES, ids=named)
def test_what_is_missing_is_named(attack, kind):
    """Without what it needs an attack is not possible, and says what that is."""
    evidence = evidence_of(np.random.default_rng(7), kind, HALF[:40], 1.0)
    assert attack.possible(kind, shadows=True, population=True, copies=True, models_without=True)
    needs = attack.needs_shadows or attack.needs_population or attack.needs_copies
    assert attack.possible(kind, shadows=True, population=True, copies=True) == (not attack.needs_models_without)
    assert attack.possible(kind, shadows=False) == (not needs)
    if attack.needs_shadows:
        with pytest.raises(ModelError, match="needs shadow models"):
            attack.score(replace(evidence, shadows=None))
    if attack.needs_population:
        with pytest.raises(ModelError, match="needs records known to be non-members"):
            attack.score(replace(evidence, population=None))
    if attack.needs_copies:
        with pytest.raises(ModelError, match="needs predictions for changed copies"):
            attack.score(replace(evidence, steadiness=None))
    if attack.needs_models_without:
        with pytest.raises(ModelError, match="needs outputs of models without each record"):
            attack.score(replace(evidence, models_without=None))
    if attack.reads_features:
        with pytest.raises(ModelError, match="needs the candidates' features"):
            attack.score(replace(evidence, features=None))


@pytest.mark.parametrize(("attack", "kind"), [case for case in CASES if case[0].needs_shadows], ids=named)
def test_records_that_all_shadow_models_were_trained_on_are_refused(attack, kind):
    evidence = evidence_of(np.random.default_rng(8), kind, HALF, 1.0)
    assert evidence.shadows is not None
    everyone = DenseSubsets(np.ones((16, 400), dtype=bool))
    with pytest.raises(InputError, match="members"):
        attack.score(replace(evidence, shadows=replace(evidence.shadows, subsets=everyone)))


def test_names_are_unique_and_the_offline_ones_are_not_in_audits():
    names = [attack.name for attack in ALL]
    assert len(set(names)) == len(names)
    assert all(attack.name.endswith("-offline") for attack in OFFLINE_ATTACKS)


# Games of all targets at once.


def table_of(rng, kind, members, n_classes=3):
    n_models, n = members.shape
    own = 2 * rng.normal(size=n) + members + rng.normal(size=members.shape)
    return PredictionTable(answers_of(rng, kind, own), kind, DenseSubsets(members), np.arange(n_models), "synthetic")


@pytest.mark.parametrize("n_models", [127, 128, 129, 255, 256, 257])
def test_groups_are_of_one_size_whatever_counts_them(n_models):
    """Small types count the models; a record may be in all of them, or in none."""
    members = np.ones((n_models, 5), dtype=bool)
    members[-2:, 0] = members[:5, 1] = members[::2, 2] = members[:, 3] = False
    used_in, used_out = thinned_groups(members)
    size = np.minimum(members.sum(axis=0), (~members).sum(axis=0))
    np.testing.assert_array_equal(used_in.sum(axis=0), size)
    np.testing.assert_array_equal(used_out.sum(axis=0), size)


@pytest.mark.parametrize("opposed", ["none", "complements", "many"])
@pytest.mark.parametrize("seed", range(6))
def test_sums_over_others_are_those_over_thinned_groups(seed, opposed):
    """Balanced tables and tables of any shares; a target in front, at the end, and beyond the thinned group."""
    rng = np.random.default_rng(seed)
    members = rng.random((14, 40)) < (0.5 if seed % 2 else 0.3)
    members[:3], members[-3:] = True, False
    values, targets = rng.normal(size=(2, 14, 40)), np.array([0, 4, 13, 7])
    barred = np.zeros((4, 14), dtype=bool)
    if opposed == "complements":
        members[[3, 6]] = ~members[[4, 7]]
        barred[[1, 3], [3, 6]] = True
    elif opposed == "many":
        barred[:, 2:-2] = rng.random((4, 10)) < 0.2
    others = OtherModels(members, targets, barred)
    sums = others.sums(values)
    for t, target in enumerate(targets):
        rest = ~barred[t] & (np.arange(14) != target)
        used = others.groups(t)
        for group, found, mask in zip(thinned_groups(members[rest]), (one[:, t] for one in sums), used, strict=True):
            np.testing.assert_allclose(found, np.where(group, values[:, rest], 0).sum(axis=1), atol=1e-12)
            np.testing.assert_array_equal(mask[rest], group)
            assert not mask[~rest].any()
            assert np.array_equal(group.sum(axis=0), others.size[t])


@pytest.mark.parametrize("n_models", [126, 127, 128, 129, 255, 256, 257])
def test_sums_over_others_are_right_whatever_counts_the_models(n_models):
    """Small types count the models; a record may be in nearly all of them, or in hardly any."""
    members = np.ones((n_models, 5), dtype=bool)
    members[-3:, 0] = members[3:, 1] = members[::2, 2] = members[: n_models // 2, 3] = members[-n_models // 3 :, 4] = (
        False
    )
    values, targets = np.random.default_rng(n_models).normal(size=(n_models, 5)), np.array([0, 1, n_models - 1])
    barred = np.zeros((3, n_models), dtype=bool)
    others = OtherModels(members, targets, barred)
    sums = others.sums(values)
    for t, target in enumerate(targets):
        rest = np.arange(n_models) != target
        for group, found in zip(thinned_groups(members[rest]), (one[t] for one in sums), strict=True):
            np.testing.assert_allclose(found, np.where(group, values[rest], 0).sum(axis=0), atol=1e-11)
            assert np.array_equal(group.sum(axis=0), others.size[t])


@pytest.mark.parametrize(
    "subsets",
    ["halves", pytest.param("shares", marks=pytest.mark.slow), "many", pytest.param("opposed", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(("attack", "kind"), TOGETHER, ids=named)
def test_all_targets_at_once_equal_one_target_at_a_time(attack, kind, subsets):
    """Complementary halves, unequal random sets, and enough models for variances of each record's own."""
    rng = np.random.default_rng(9)
    n_models = 70 if subsets == "many" else 14
    drawn = random_subsets(30, 18, n_models, rng) if subsets == "shares" else balanced_subsets(30, 15, n_models, rng)
    if subsets == "opposed":
        members = random_subsets(30, 15, 14, rng).members
        members[5] = ~members[0] ^ (np.arange(30) == 3)  # but one record is in both or in neither
        drawn = DenseSubsets(members)
        assert _opposed(members, np.array([0, 5]))[0].sum() == 2
    table, labels = table_of(rng, kind, drawn.members), np.zeros(30, dtype=float if kind is AnswerKind.VALUES else int)
    targets = np.array([0, 5, n_models - 1])
    for playing in (None, targets):
        quick = everyone_as_target(table, labels, attack, targets=playing)
        slow = everyone_as_target(table, labels, replace(attack, together=None), targets=playing)
        np.testing.assert_allclose(quick.scores, slow.scores, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(quick.accuracy, slow.accuracy)


@pytest.mark.parametrize(
    ("attack", "kind"),
    [
        (likelihood_ratio, AnswerKind.PROBABILITIES),
        (likelihood_ratio, AnswerKind.VALUES),
        (frequency, AnswerKind.LABELS),
    ],
)
@pytest.mark.parametrize("subsets", ["pairs", "shares"])
def test_models_of_either_half_are_judged_by_those_of_the_other(attack, kind, subsets):
    """The attack as it is carried out against one model, with the other half as its shadow models."""
    rng = np.random.default_rng(12)
    drawn = balanced_subsets(30, 15, 40, rng) if subsets == "pairs" else random_subsets(30, 18, 40, rng)
    table, labels = table_of(rng, kind, drawn.members), np.zeros(30, dtype=float if kind is AnswerKind.VALUES else int)
    found = everyone_as_target(table, labels, attack.BY_HALVES)
    np.testing.assert_array_equal(found.first_half, np.arange(40) < 20)
    for t in range(40):
        shadows = table.rows(np.arange(20, 40) if t < 20 else np.arange(20))
        held = MembershipEvidence(kind, table.answers[t], labels, shadows=shadows)
        np.testing.assert_allclose(found.scores[t], attack.ATTACK.score(held), rtol=1e-12)
    some = everyone_as_target(table, labels, attack.BY_HALVES, targets=np.array([2, 29]))
    assert some.first_half.tolist() == [True, False]
    np.testing.assert_array_equal(some.scores, found.scores[[2, 29]])


@pytest.mark.parametrize(("attack", "kind"), TOGETHER, ids=named)
def test_all_targets_at_once_find_nothing_in_constant_models(attack, kind):
    rng = np.random.default_rng(10)
    table = table_of(rng, kind, balanced_subsets(30, 18, 14, rng).members)
    table = replace(table, answers=np.broadcast_to(table.answers[0], table.answers.shape))
    success = everyone_as_target(table, np.zeros(30, dtype=float if kind is AnswerKind.VALUES else int), attack)
    if attack.name.startswith("rmia-offline"):  # compares with other records, which differ here
        return
    assert not success.decisions.any()
    np.testing.assert_allclose(success.accuracy, 0.5)


@pytest.mark.parametrize(("attack", "kind"), TOGETHER, ids=named)
def test_blocks_of_records_change_nothing(attack, kind, monkeypatch):
    rng = np.random.default_rng(11)
    table = table_of(rng, kind, balanced_subsets(30, 15, 10, rng).members)
    labels = np.zeros(30, dtype=float if kind is AnswerKind.VALUES else int)
    whole = everyone_as_target(table, labels, attack).scores
    monkeypatch.setattr("leakgauge.membership.together._BLOCK", 700)
    assert np.array_equal(everyone_as_target(table, labels, attack).scores, whole)


@pytest.mark.parametrize(("attack", "kind"), TOGETHER, ids=named)
def test_a_record_without_shadow_models_of_both_kinds_is_refused(attack, kind):
    rng = np.random.default_rng(12)
    members = random_subsets(30, 15, 12, rng).members.copy()
    members[:, 3] = np.arange(12) == 5
    table = table_of(rng, kind, members)
    with pytest.raises(InputError, match=r"with model 5 as the target, no other model is trained on record 3"):
        everyone_as_target(table, np.zeros(30, dtype=float if kind is AnswerKind.VALUES else int), attack)


def by_shadows(kind):
    return [one for one in ALL if one.needs_shadows and kind in one.kinds]


@pytest.mark.parametrize("kind", list(AnswerKind))
def test_some_records_at_a_time_give_the_same_bits(kind, monkeypatch):
    """No sum goes over records, so that where a block ends changes no digit; 400 records, seven at a time."""
    held = evidence_of(np.random.default_rng(80), kind, HALF, 0.5)
    by_records = [attack for attack in by_shadows(kind) if not attack.needs_models_without]
    whole = [attack.score(held) for attack in by_records]
    monkeypatch.setattr(evidence, "RECORDS_AT_ONCE", 7)
    parts = [attack.score(held) for attack in by_records]
    assert whole
    assert all(np.array_equal(one, other) for one, other in zip(whole, parts, strict=True))


@pytest.mark.parametrize(
    ("attack", "twin"),
    [
        ("lira", lambda own, shadows, members: likelihood_ratio.scores(*map(signal_of, (own, shadows)), members)),
        (
            "lira-offline",
            lambda own, shadows, members: likelihood_ratio.offline_scores(*map(signal_of, (own, shadows)), members),
        ),
        ("rmia", lambda own, shadows, members: relative.scores(*map(own_of, (own, shadows)), members, break_ties=True)),
        (
            "rmia-offline",
            lambda own, shadows, members: relative.offline_scores(
                *map(own_of, (own, shadows)), members, break_ties=True
            ),
        ),
    ],
)
def test_attacks_are_the_public_functions_on_the_whole_table(attack, twin, monkeypatch):
    monkeypatch.setattr(evidence, "RECORDS_AT_ONCE", 64)
    held = evidence_of(np.random.default_rng(81), AnswerKind.PROBABILITIES, HALF, 0.5)
    found = next(one for one in ALL if one.name == attack).score(held)
    assert np.array_equal(found, twin(held.answers, held.shadows.answers, held.shadows.members))


def signal_of(answers):
    return likelihood_ratio.signals(AnswerKind.PROBABILITIES, answers, np.zeros(len(HALF), dtype=int))


def own_of(answers):
    return relative.own_probabilities(answers, np.zeros(len(HALF), dtype=int))


@pytest.mark.parametrize(
    "attack", [one for one in by_shadows(AnswerKind.PROBABILITIES) if not one.needs_models_without], ids=named
)
def test_no_attack_makes_another_table_of_the_answers(attack, monkeypatch):
    """32 models, 3 classes: 768 bytes of answers about a record. A copy would take as much, one number for each answer
    a third of it, beside what is made of that; numbers of each record, of which there are about 30, take 240."""
    monkeypatch.setattr(evidence, "RECORDS_AT_ONCE", 1_000)
    few, many = (
        evidence_of(np.random.default_rng(82), AnswerKind.PROBABILITIES, np.arange(n) % 2 == 0, 0.5, 32)
        for n in (10_000, 30_000)
    )
    attack.score(few)  # what is imported on the way counts for nothing
    peaks = []
    for held in (few, many):
        tracemalloc.start()
        attack.score(held)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 0.6 * (many.shadows.answers.nbytes - few.shadows.answers.nbytes)


@pytest.mark.parametrize("has_shadows", [False, True])
def test_pages_of_a_mapped_table_are_let_go_after_each_part(monkeypatch, has_shadows):
    """With shadow models after each part of the candidates, and without them there is nothing to let go."""
    from leakgauge.membership import evidence as module

    gone = []
    monkeypatch.setattr(module, "RECORDS_AT_ONCE", 4)
    shadows = SimpleNamespace(let_go=lambda: gone.append(True)) if has_shadows else None
    evidence = MembershipEvidence(AnswerKind.VALUES, np.zeros((10, 1)), np.arange(10.0), shadows=shadows)
    assert evidence.by_records(lambda part: evidence.labels[part]).tolist() == list(range(10))
    assert len(gone) == (3 if has_shadows else 0)
