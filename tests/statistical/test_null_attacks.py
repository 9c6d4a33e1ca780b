"""Never cry wolf: attacks on answers that do not depend on membership.

The tables are synthetic and cheap: each record has a level and a spread of its own, and all models answer about it by
one law, whether they were trained on it or not. So the advantage of every attack is 0 in truth.
"""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest

from leakgauge.membership import ATTACKS, OFFLINE_ATTACKS, MembershipEvidence, PopulationRecords, everyone_as_target
from leakgauge.models import AnswerKind
from leakgauge.statistics import advantage_of_decisions, auc, tpr_at_fpr
from leakgauge.training import PredictionTable, balanced_subsets, complementary_pairs

NEW = [attack for attack in ATTACKS + OFFLINE_ATTACKS if attack.name.split("-")[0] in {"population", "lira", "rmia"}]
QUANTILE = [attack for attack in ATTACKS if attack.name == "quantile"]
N_AUDITS = 400


def answers_of(own, kind):
    """Answers of models whose signal about records of class 0 (or value 0) is ``own`` [...]."""
    if kind is AnswerKind.VALUES:
        return own[..., None]
    return np.stack([-np.logaddexp(0, -own), -np.logaddexp(0, own)], axis=-1)


def evidence_without_leak(rng, kind, n=200, n_shadows=8, n_known=100):
    """What an attacker holds in an audit of 100 members and 100 others, a target that was trained on neither."""
    X = rng.normal(size=(n + n_known, 2))
    signals = 2 * X[:, 0] + np.exp(0.5 * X[:, 1]) * rng.normal(size=(n_shadows + 1, n + n_known))
    members = balanced_subsets(n, n // 2, n_shadows, rng)
    labels = np.zeros(n + n_known, dtype=float if kind is AnswerKind.VALUES else int)
    answers = answers_of(signals, kind)
    return MembershipEvidence(
        kind,
        answers[0, :n],
        labels[:n],
        shadows=PredictionTable(answers[1:, :n], kind, members, np.arange(n_shadows), "synthetic"),
        features=X[:n],
        population=PopulationRecords(answers[0, n:], labels[n:], X[n:]),
    )


def coverage(attacks, kind):
    """Share of 400 audits in which each attack's 95 % interval of the advantage covers 0, and of the AUC 0.5."""
    advantage, area = Counter(), Counter()
    for seed in range(N_AUDITS):
        evidence = evidence_without_leak(np.random.default_rng([seed, 3]), kind)
        for attack in attacks:
            scores = attack.score(evidence)
            inside, outside = scores[:100], scores[100:]
            found = advantage_of_decisions(inside > 0, outside > 0)
            advantage[attack.name] += found.low <= 0 <= found.high
            found = auc(inside, outside)
            area[attack.name] += found.low <= 0.5 <= found.high
    return {name: (advantage[name] / N_AUDITS, area[name] / N_AUDITS) for name in advantage}


@pytest.mark.parametrize(
    "kind", [AnswerKind.PROBABILITIES, pytest.param(AnswerKind.VALUES, marks=pytest.mark.slow)], ids=str
)
def test_intervals_cover_nothing_at_their_rate(kind):
    """At least 92 % of the 95 % intervals cover 0 (AUC: 0.5), for each attack.

    An interval that covers in exactly 95 % misses this with probability 0.004 for one attack and one seed; the seeds
    are fixed. One that covers in 88 % is caught with probability 0.99. RMIA calls exactly half of all records members,
    so that its advantage moves in steps of 0.02 and its interval covers in 93.4 %.
    """
    rates = coverage([attack for attack in NEW if kind in attack.kinds], kind)
    assert len(rates) == (5 if kind is AnswerKind.PROBABILITIES else 3)
    assert min(rate for pair in rates.values() for rate in pair) >= 0.92, rates


@pytest.mark.slow
@pytest.mark.parametrize("kind", [AnswerKind.PROBABILITIES, AnswerKind.VALUES], ids=str)
def test_intervals_of_quantile_regression_cover_nothing_at_their_rate(kind):
    """The same for 400 regressions, with the same error rates."""
    rates = coverage(QUANTILE, kind)
    assert min(rates["quantile"]) >= 0.93, rates


GAMES = [
    attack
    for attack in ATTACKS + OFFLINE_ATTACKS
    if attack.together is not None and AnswerKind.PROBABILITIES in attack.kinds
]


@pytest.mark.parametrize(
    ("grid", "attack"),
    [
        pytest.param(grid, attack, marks=() if i == j % 2 else pytest.mark.slow)
        for i, grid in enumerate([None, 0.5])
        for j, attack in enumerate(GAMES)
    ],
    ids=lambda one: getattr(one, "name", str(one)),
)
def test_games_among_complementary_halves_find_nothing(attack, grid):
    """300 tables of 10 models: every model plays the target, and the one left over on the other side tells on no one.

    The mean advantage and the mean AUC over tables lie within 4 of their standard errors, which are at most 0.005 (from
    the tables' own spread); a new seed fails 6 times in 100,000 for each. Groups that were not made equal would give
    -0.10 to the frequency attack on the few distinct answers, and -0.03 to LiRA on either.
    """
    gained, area = [], []
    for seed in range(300):
        rng = np.random.default_rng([seed, 4])
        own = rng.normal(size=50) + rng.normal(size=(10, 50))
        answers = answers_of(own if grid is None else np.round(own / grid) * grid, AnswerKind.PROBABILITIES)
        subsets = complementary_pairs(50, 5, rng)
        table = PredictionTable(answers, AnswerKind.PROBABILITIES, subsets, np.arange(10), "synthetic")
        success = everyone_as_target(table, np.zeros(50, dtype=int), attack)
        gained.append(np.mean(success.inside > 0) - np.mean(success.outside > 0))
        area.append(auc(success.inside, success.outside).value - 0.5)
    for found in (gained, area):
        error = np.std(found) / np.sqrt(len(found))
        assert error < 0.005
        assert abs(np.mean(found)) < 4 * error


def models_with_effects(rng, members, spread):
    """Signals about 400 records that every model's own training set shifts, but no record's own membership.

    Each model deviates from the mean of all models along 60 hidden directions, complementary sets in opposite ones.
    """
    share = members.mean(axis=1, keepdims=True)
    n = members.shape[1]
    model = (members - share) @ rng.normal(size=(n, 60)) / np.sqrt(n * share * (1 - share))
    records = rng.normal(size=(n, 60))
    return 2 * rng.normal(size=n) + model @ records.T / np.sqrt(60) + spread * rng.normal(size=members.shape)


@pytest.mark.parametrize("share", [0.5, 0.67])
def test_what_a_training_set_does_to_all_answers_tells_nobody(share):
    """LiRA among 64 models that differ as models do, where membership of a record does not change its own answer.

    A shadow model trained on the target's complement would give an advantage of 0.03 to 0.08 and 0.015 or more at a
    false-positive rate of 1 %. Six tables; standard error of the mean advantage 0.003 to 0.005 (over tables), so that a
    new seed fails once in about 400.
    """
    (lira,) = (attack for attack in ATTACKS if attack.name == "lira")
    gained, rate = [], []
    for seed in range(6):
        rng = np.random.default_rng([seed, 6])
        subsets = balanced_subsets(400, int(share * 400), 64, rng)
        answers = answers_of(models_with_effects(rng, subsets.members, 0.3), AnswerKind.PROBABILITIES)
        table = PredictionTable(answers, AnswerKind.PROBABILITIES, subsets, np.arange(64), "synthetic")
        success = everyone_as_target(table, np.zeros(400, dtype=int), lira)
        gained.append(np.mean(success.inside > 0) - np.mean(success.outside > 0))
        rate.append(tpr_at_fpr(success.inside, success.outside, 0.01).value)
    assert abs(np.mean(gained)) < 0.015, gained
    assert 0.007 < np.mean(rate) < 0.013, rate


@pytest.mark.slow
@pytest.mark.skipif("LEAKGAUGE_DATA" not in os.environ, reason="needs the data set location30: set LEAKGAUGE_DATA")
def test_the_modern_attacks_beat_the_older_ones_on_location30():
    """Not a null test: 64 networks, each on a random half of 2,000 records of 30 classes; the same models for all.

    Measured in one run: true-positive rate at a false-positive rate of 1 %, and AUC, pooled over target models:

    ==================  =====  =====
    LiRA                0.920  0.997
    RMIA                0.901  0.996
    frequency           0.784  0.982
    distance            0.645  0.977
    shadow classifier   0.578  0.981   (4 of the models as targets)
    ==================  =====  =====

    The margins asserted, 0.05 and 0.005, are less than half of these leads.
    """
    from leakgauge.records import datasets
    from leakgauge.training import recipe, train_many

    rng = np.random.default_rng(0)
    whole = datasets.load("location30").records
    pool = whole[rng.choice(len(whole), 2000, replace=False)]
    table = train_many(recipe("neural-network", pool), pool, complementary_pairs(2000, 32, rng), seed=0)
    rate, area = {}, {}
    for attack in ATTACKS:
        if attack.name in {"lira", "rmia", "frequency", "distance", "shadow-classifier"}:
            few = np.arange(4) if attack.together is None else None
            success = everyone_as_target(table, pool.labels, attack, targets=few)
            rate[attack.name] = tpr_at_fpr(success.inside, success.outside, 0.01).value
            area[attack.name] = auc(success.inside, success.outside).value
    for old in ("frequency", "distance", "shadow-classifier"):
        for new in ("lira", "rmia"):
            assert rate[new] > rate[old] + 0.05, rate
            assert area[new] > area[old] + 0.005, area
