"""A holdout that was partly trained on."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leakgauge.errors import DataError, ModelError
from leakgauge.membership.contamination import contamination
from leakgauge.models import AnswerKind
from leakgauge.records import Records
from leakgauge.training import (
    DenseSubsets,
    PredictionTable,
    SklearnLearner,
    balanced_subsets,
    complementary_pairs,
    train_many,
)

N_SIBLINGS = 39


def table_of(signals, members, kind=AnswerKind.PROBABILITIES):
    """Models whose own-class logits, or negative errors, are these [models, n]."""
    if kind is AnswerKind.VALUES:
        answers = np.exp(-signals)[..., None]
    else:
        p = 1 / (1 + np.exp(-signals))
        answers = np.log(np.stack([p, 1 - p], axis=-1))
    return PredictionTable(answers, kind, DenseSubsets(members), np.arange(len(members)), "synthetic")


def simulated(seed, share, gain, *, n=200, pairs=False, kind=AnswerKind.PROBABILITIES):
    """The contamination found where members' signals are higher by ``gain`` and models deviate as a whole."""
    rng = np.random.default_rng(seed)
    drawn = (complementary_pairs(n, 20, rng) if pairs else balanced_subsets(n, n // 2, N_SIBLINGS, rng)).members
    is_member = np.isin(np.arange(n), rng.choice(n, n // 2, replace=False))
    trained_on = is_member | np.isin(np.arange(n), rng.choice(np.flatnonzero(~is_member), int(share * n / 2), False))
    members = np.vstack([drawn, trained_on])
    effects = rng.normal(size=(len(members), 20)) @ rng.normal(size=(20, n)) / np.sqrt(20)
    signals = rng.normal(size=n) + gain * members + 0.5 * effects + 0.5 * rng.normal(size=members.shape)
    table = table_of(signals, members, kind)
    labels = np.zeros(n, dtype=float if kind is AnswerKind.VALUES else int)
    siblings = table.rows(np.arange(len(drawn)))
    return contamination(siblings, table.answers[-1], labels, is_member)


# No contamination first.


@pytest.mark.parametrize("pairs", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_null_ranks_are_even(pairs):
    """200 audits without contamination, at 5 %: 10 expected; each test has more than 22 once in 6,000."""
    found = [simulated(seed, 0.0, 1.0, pairs=pairs) for seed in range(200)]
    assert sum(one.p_value <= 0.05 for one in found) <= 22
    assert sum(one.p_value_of_loss <= 0.05 for one in found) <= 22
    assert np.mean([one.p_value for one in found]) == pytest.approx(0.51, abs=0.09)  # 4 standard errors of 0.02
    shares = np.array([one.share for one in found])
    assert abs(shares.mean()) < 4 * shares.std() / np.sqrt(200)


def test_null_models_that_do_not_look_at_their_records():
    """Nothing moves, so nothing can be found: no share, and the largest p-value."""
    members = balanced_subsets(60, 30, 10, np.random.default_rng(0)).members
    table = table_of(np.full((10, 60), 1 / 3), members)
    found = contamination(table, table.answers[0], np.zeros(60, dtype=int), ~members[0])
    assert found.share is None
    assert found.standard_error is None
    assert found.p_value == found.p_value_of_loss == 1


# Known answers.


@pytest.mark.parametrize(
    ("kind", "share", "least", "least_by_loss"),
    [
        (AnswerKind.PROBABILITIES, 0.0, 0.0, 0.0),
        (AnswerKind.PROBABILITIES, 0.2, 0.9, 0.2),
        (AnswerKind.PROBABILITIES, 0.6, 0.9, 0.8),
        (AnswerKind.VALUES, 0.2, 0.0, 0.0),  # a few large errors count most
        (AnswerKind.VALUES, 0.6, 0.7, 0.4),
    ],
)
def test_the_share_is_that_of_the_records_trained_on(kind, share, least, least_by_loss):
    """Records that leak much: standard error 0.03 an audit (values 0.1), 20 audits; how many find it at 5 %."""
    found = [simulated(seed, share, 2.0, kind=kind) for seed in range(20)]
    assert np.mean([one.share for one in found]) == pytest.approx(share, abs=0.04)
    assert np.mean([one.p_value <= 0.05 for one in found]) >= least
    assert np.mean([one.p_value_of_loss <= 0.05 for one in found]) >= least_by_loss


def test_the_standard_error_is_the_deviation_over_audits():
    found = [simulated(seed, 0.2, 0.5) for seed in range(150)]
    stated = np.mean([one.standard_error for one in found])
    assert np.std([one.share for one in found]) == pytest.approx(stated, rel=0.3)


def logistic_regressions(share, n_repetitions):
    """Logistic regression, C = 1, 20 columns, 200 records and 200 others."""
    found = []
    for seed in range(n_repetitions):
        rng = np.random.default_rng(seed)
        n, n_true = 400, 200 + round(200 * share)
        X = rng.normal(size=(n, 20))
        y = rng.random(n) < 1 / (1 + np.exp(-X @ rng.normal(size=20) / np.sqrt(5)))
        # The model has as many records as its siblings: some of those that it names give way to some of the holdout.
        named = np.isin(np.arange(n), rng.choice(n, 200, replace=False))
        taken = rng.choice(np.flatnonzero(~named), n_true - 200, replace=False)
        given = rng.choice(np.flatnonzero(named), n_true - 200, replace=False)
        true = (named & ~np.isin(np.arange(n), given)) | np.isin(np.arange(n), taken)
        subsets = DenseSubsets(np.vstack([balanced_subsets(n, 200, N_SIBLINGS, rng).members, true]))
        table = train_many(SklearnLearner(LogisticRegression(tol=1e-6)), Records.from_arrays(X, y * 1), subsets, seed=0)
        labels = y.astype(int)
        found.append(contamination(table.rows(np.arange(N_SIBLINGS)), table.answers[-1], labels, named))
    return found


@pytest.mark.slow
def test_logistic_regressions_are_found_out_as_often_as_simulated():
    """100 audits a cell. Simulated before, by P: 0.03 and 0.30, mean share -0.02 and 0.20; SE of a share 0.21."""
    nothing, fifth = logistic_regressions(0.0, 100), logistic_regressions(0.2, 100)
    assert np.mean([one.p_value <= 0.05 for one in nothing]) <= 0.13
    assert 0.12 < np.mean([one.p_value <= 0.05 for one in fifth]) < 0.48
    assert np.mean([one.share for one in nothing]) == pytest.approx(0.0, abs=0.09)
    assert np.mean([one.share for one in fifth]) == pytest.approx(0.2, abs=0.09)
    assert np.mean([one.standard_error for one in nothing]) == pytest.approx(0.21, abs=0.06)


# Slow twins.


def test_one_model_and_record_at_a_time():
    rng = np.random.default_rng(3)
    n = 30
    members = np.vstack([balanced_subsets(n, 15, 12, rng).members, rng.permutation(np.arange(n) < 15)])
    members[11] = ~members[12]  # a complement plays no part for the other
    signals = rng.normal(size=(13, n)) + members
    table = table_of(signals, members)
    found = contamination(table.rows(np.arange(12)), table.answers[-1], np.zeros(n, dtype=int), members[-1])
    shares = {True: [], False: []}
    losses = []
    for model in range(13):
        others = [j for j in range(13) if j != model and (members[j] != ~members[model]).any()]
        below = 0.0
        for kind, store in shares.items():
            top = bottom = 0.0
            for r in np.flatnonzero(members[model] == kind):
                m1 = np.mean([signals[j, r] for j in others if members[j, r]])
                m0 = np.mean([signals[j, r] for j in others if not members[j, r]])
                top, bottom = top + (signals[model, r] - m0) * (m1 - m0), bottom + (m1 - m0) ** 2
                if not kind:
                    out = np.mean([np.log1p(np.exp(-signals[j, r])) for j in others if not members[j, r]])
                    below += out - np.log1p(np.exp(-signals[model, r]))
            store.append(top / bottom)
        losses.append(below)
    reach = np.mean(shares[True][:12]) - np.mean(shares[False][:12])
    assert found.share == pytest.approx((shares[False][12] - np.mean(shares[False][:12])) / reach)
    assert found.standard_error == pytest.approx(np.std(shares[False][:12], ddof=1) / reach)
    assert found.p_value == pytest.approx(np.mean(np.array(shares[False]) >= shares[False][12]))
    assert found.p_value_of_loss == pytest.approx(np.mean(np.array(losses) >= losses[12]))
    assert found.n_siblings == 12


# Edges.


def test_certain_answers_are_judged():
    members = balanced_subsets(40, 20, 20, np.random.default_rng(4)).members
    labels = np.zeros(40, dtype=int)
    with np.errstate(divide="ignore"):
        answers = np.log(np.where(members[..., None], [1.0, 0.0], [0.0, 1.0]))
    table = PredictionTable(answers, AnswerKind.PROBABILITIES, DenseSubsets(members), np.arange(20), "synthetic")
    honest = contamination(table.rows(np.arange(19)), answers[-1], labels, members[-1])
    assert honest.share == pytest.approx(0)
    assert honest.p_value == 1
    swapped = contamination(table.rows(np.arange(19)), answers[-1], labels, ~members[-1])
    assert swapped.share == pytest.approx(1, abs=0.06)
    assert swapped.p_value == swapped.p_value_of_loss == 0.05


def test_bad_input_is_refused():
    members = balanced_subsets(40, 20, 20, np.random.default_rng(5)).members
    table, labels = table_of(np.zeros((20, 40)), members), np.zeros(40, dtype=int)
    with pytest.raises(ModelError, match=r"answers must be those of one model, \(40, 2\), got \(39, 2\)"):
        contamination(table, table.answers[0, 1:], labels, members[0])
    with pytest.raises(DataError, match="as many candidates as the model, 19, got 20 to 20"):
        contamination(table, table.answers[0], labels, members[0] & (np.arange(40) != np.argmax(members[0])))
    with pytest.raises(DataError, match="members must be bool"):
        contamination(table, table.answers[0], labels, members[0] * 1)
    with pytest.raises(DataError, match=r"without model 0 and its complement no other was trained on some record"):
        contamination(table.rows(np.arange(2)), table.answers[2], labels, members[2])
    with pytest.raises(ModelError, match="at most 0 and not NaN"):
        contamination(table, np.full((40, 2), np.nan), labels, members[0])
