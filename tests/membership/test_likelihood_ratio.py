"""Carlini et al. 2022: LiRA, online and offline."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm, t

from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.membership import MembershipEvidence, likelihood_ratio
from leakgauge.models import AnswerKind
from leakgauge.statistics import auc, tpr_at_fpr
from leakgauge.training import DenseSubsets, PredictionTable


def balanced_members(rng, n_models, n_records):
    """Random halves of the models, for each record on its own."""
    return np.argsort(rng.random((n_models, n_records)), axis=0) < n_models // 2


def slow_scores(target, shadows, members, per_record):
    """One record at a time, with the densities of scipy; groups must be equal and differ within every record."""
    records = range(len(target))
    groups = {kind: [shadows[members[:, r] == kind, r] for r in records] for kind in (True, False)}
    if per_record is None:
        return slow_predictive_scores(target, groups)
    found = []
    for r in records:
        logs = {}
        for kind, values in groups.items():
            deviations = [v - v.mean() for v in ([values[r]] if per_record else values)]
            freedom = sum(len(d) - 1 for d in deviations)
            sd = math.sqrt(sum((d**2).sum() for d in deviations) / freedom)
            logs[kind] = norm.logpdf(target[r], values[r].mean(), sd)
        found.append(logs[True] - logs[False])
    return found


def slow_predictive_scores(target, groups):
    """Variances with 16 models more at the median; both means of a record from their joint normal posterior."""
    records, n = range(len(target)), len(groups[True][0])
    variance = {
        kind: [((n - 1) * v.var(ddof=1) + 16 * np.median([w.var(ddof=1) for w in values])) / (n + 15) for v in values]
        for kind, values in groups.items()
    }
    differences = [groups[True][r].mean() - groups[False][r].mean() for r in records]
    levels = [(groups[True][r].mean() + groups[False][r].mean()) / 2 for r in records]
    centres = np.polyval(np.polyfit(levels, differences, 1), levels)
    noise = [(variance[True][r] + variance[False][r]) / n for r in records]
    spread = max(0, np.mean([(differences[r] - centres[r]) ** 2 - noise[r] for r in records]))
    found = []
    for r in records:
        # Means (in, out): a flat prior on their level, N(centre, spread) on their difference, what was observed; the
        # centre is on a line over the observed level.
        contrast = np.array([1.0, -1.0])
        observed = np.diag([n / variance[True][r], n / variance[False][r]])
        precision = observed + np.outer(contrast, contrast) / spread
        covariance = np.linalg.inv(precision)
        means = np.array([groups[True][r].mean(), groups[False][r].mean()])
        posterior = covariance @ (observed @ means + contrast * centres[r] / spread)
        logs = [
            t.logpdf(target[r], n + 15, posterior[i], math.sqrt(variance[kind][r] + covariance[i, i]))
            for i, kind in enumerate((True, False))
        ]
        found.append(logs[0] - logs[1])
    return found


# No leak first; the coverage of intervals over 400 audits is in tests/statistical/test_null_attacks.py.


@pytest.mark.parametrize("constant", [0.0, 1 / 3, -103.6, 1e-9])
def test_null_constant_models_score_exactly_zero(constant):
    """Whatever the group sizes: averages that differ by rounding must not decide."""
    members = np.arange(21)[:, None] < np.arange(1, 21)[None, :]
    shadows = np.full((21, 20), constant)
    assert not likelihood_ratio.scores(np.full(20, constant), shadows, members).any()


def test_null_constant_models_are_no_members_offline():
    members = np.tile([[True], [False]], (5, 30))
    assert not (likelihood_ratio.offline_scores(np.full(30, 0.3), np.full((10, 30), 0.3), members) > 0).any()


# Known answers.


@pytest.mark.parametrize(
    ("per_record", "fpr"),
    [
        pytest.param(per_record, fpr, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, per_record in enumerate([False, True, None])
        for j, fpr in enumerate([0.01, 0.1])
    ],
)
def test_normal_laws_give_the_known_true_positive_rate(fpr, per_record):
    """Members N(1.5, 1), others N(0, 1), shifted by a normal amount for each record: TPR = Phi(1.5 + Phi^-1(fpr)).

    20,000 records and 200 shadow models, so that the laws are known to a few per cent. Within 0.02: four standard
    errors of a rate of 0.2 to 0.6 with its estimated threshold are 0.016 to 0.018; a new seed fails about once in
    10,000. The best attack without shadow models, which does not know the shifts, has 0.04 and 0.25.
    """
    rng = np.random.default_rng(61)
    n = 20_000
    shift = 2 * rng.normal(size=n)
    members = np.tile([[True], [False]], (100, n))
    is_member = np.arange(n) % 2 == 0
    shadows = shift + 1.5 * members + rng.normal(size=members.shape)
    target = shift + 1.5 * is_member + rng.normal(size=n)
    exact = norm.cdf(1.5 + norm.ppf(fpr))
    online = likelihood_ratio.scores(target, shadows, members, per_record=per_record)
    assert tpr_at_fpr(online[is_member], online[~is_member], fpr).value == pytest.approx(exact, abs=0.02)
    # Equal variances: the likelihood ratio rises with the signal, and so does the one-sided test.
    offline = likelihood_ratio.offline_scores(target, shadows, members, significance=fpr, per_record=per_record)
    assert np.mean(offline[~is_member] > 0) == pytest.approx(fpr, abs=0.01)
    assert np.mean(offline[is_member] > 0) == pytest.approx(exact, abs=0.02)


def test_few_models_know_a_common_gain():
    """Members N(1.5, 1), others N(0, 1), shifted for each record; with 4 + 4 models only that level is unknown.

    It is known with a variance of 1/8, so TPR = Phi(1.5 / sqrt(1 + 1/8) + Phi^-1(0.1)) = 0.553, where means of
    each record's own, as published, have 0.52. 40,000 records; within 0.015, four standard errors with the threshold.
    """
    rng = np.random.default_rng(71)
    n = 40_000
    members = balanced_members(rng, 8, n)
    is_member, shift = rng.random(n) < 0.5, 2 * rng.normal(size=n)
    shadows = shift + 1.5 * members + rng.normal(size=members.shape)
    target = shift + 1.5 * is_member + rng.normal(size=n)
    found = likelihood_ratio.scores(target, shadows, members)
    exact = norm.cdf(1.5 / math.sqrt(1.125) + norm.ppf(0.1))
    assert tpr_at_fpr(found[is_member], found[~is_member], 0.1).value == pytest.approx(exact, abs=0.015)


def test_narrower_laws_of_members_are_told_by_variances_alone():
    """Yeom et al. 2018, Theorem 3: N(0, 1) against N(0, 9) has advantage 0.4843; within 4 standard errors (0.028)."""
    rng = np.random.default_rng(62)
    n = 20_000
    members = np.tile([[True], [False]], (30, n))
    is_member = np.arange(n) % 2 == 0
    shadows, target = (np.where(kind, 1, 3) * rng.normal(size=kind.shape) for kind in (members, is_member))
    called = likelihood_ratio.scores(target, shadows, members) > 0
    assert called[is_member].mean() - called[~is_member].mean() == pytest.approx(0.4843, abs=0.028)


def test_swapping_in_and_out_turns_the_sign():
    rng = np.random.default_rng(63)
    members, shadows, target = balanced_members(rng, 8, 40), rng.normal(size=(8, 40)), rng.normal(size=40)
    forth, back = (likelihood_ratio.scores(target, shadows, table) for table in (members, ~members))
    np.testing.assert_allclose(back, -forth, rtol=1e-12)


def test_one_model_of_either_kind_chooses_the_nearer():
    # By hand: variance 8 / 2 for both, so (x^2 - (x - 2 sqrt 2)^2) / 8 for the first record.
    far = 2 * math.sqrt(2)
    found = likelihood_ratio.scores([far, 0.0], [[far, 0.0], [0.0, far]], [[True, False], [False, True]])
    assert found == pytest.approx([1.0, -1.0])


# Slow twins.


@pytest.mark.parametrize("per_record", [False, True, None])
def test_scores_equal_the_densities(per_record):
    rng = np.random.default_rng(64)
    members = balanced_members(rng, 10, 60)
    gain = rng.normal(1, 1.5, size=60)  # how far the two means of a record are apart differs
    shadows, target = rng.normal(size=(10, 60)) + gain * members, rng.normal(size=60)
    found = likelihood_ratio.scores(target, shadows, members, per_record=per_record)
    assert found == pytest.approx(slow_scores(target, shadows, members, per_record), rel=1e-10)


@pytest.mark.parametrize("shrinks", [0.1, -0.1])
def test_errors_that_shrink_in_proportion_are_read_as_who_knows_the_law_reads_them(shrinks):
    """As by least squares: with eight models of either kind a record by itself tells hardly anything."""
    rng = np.random.default_rng(66)
    members, level = balanced_members(rng, 16, 4_000), 3 * rng.normal(size=4_000)
    inside = rng.random(4_000) < 0.5
    shadows = level * (1 - shrinks * members) + rng.normal(size=members.shape)
    target = level * (1 - shrinks * inside) + rng.normal(size=4_000)
    best = ((target - level) ** 2 - (target - level * (1 - shrinks)) ** 2) / 2
    found = likelihood_ratio.scores(target, shadows, members)
    assert np.corrcoef(found, best)[0, 1] > 0.8
    gained = [np.mean(said[inside] > 0) - np.mean(said[~inside] > 0) for said in (found, best)]
    assert gained[0] > 0.85 * gained[1] > 0.05


def quiet_and_noisy(offset: float, quiet: float, n: int = 2_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Signals of 33 models about records a third of which move by an offset of either sign, and differ little else."""
    rng = np.random.default_rng(72)
    members = np.vstack([balanced_members(rng, 32, n), rng.random(n) < 0.5])
    is_quiet = np.arange(n) % 3 == 0
    moved = np.where(is_quiet, offset * rng.choice([-1, 1], n), 0.0) * members
    return moved + np.where(is_quiet, quiet, 0.2) * rng.normal(size=members.shape), members, is_quiet


@pytest.mark.parametrize("quiet", [0.0, 1e-9, 1e-4, 3e-3])
def test_quiet_records_are_not_lost_among_noisy_ones(quiet):
    """An offset of 0.02, nearly noiseless in a third of the records and far below the noise of the others.

    Who knows the laws has advantage 1 in the third. The median variance of all would hide it; those that are no
    quieter than others keep it.
    """
    signals, members, is_quiet = quiet_and_noisy(0.02, quiet)
    own, is_member = signals[-1], members[-1]
    scores = likelihood_ratio.scores(own, signals[:-1], members[:-1])
    ahead = scores > np.quantile(scores[~is_quiet], 0.99)
    assert np.mean(ahead[is_member & is_quiet]) > 0.8
    assert not ahead[~is_member & is_quiet].any()
    right = (scores > 0) == is_member
    assert np.mean(right[is_quiet]) > 0.99
    if quiet:  # without a record only: what is farther out in the direction of members is told as well
        offline = np.abs(likelihood_ratio.offline_scores(own, signals[:-1], members[:-1], significance=0.5))
        assert np.median(offline[is_member & is_quiet]) > 3 > np.quantile(offline[~is_member & is_quiet], 0.95)


def test_null_quiet_records_without_an_offset_show_nothing():
    """Scores of 700 quiet records that move by nothing are 0 on average, and rarely far from it."""
    signals, members, is_quiet = quiet_and_noisy(0.0, 1e-3)
    scores, is_member = likelihood_ratio.scores(signals[-1], signals[:-1], members[:-1]), members[-1]
    gap = np.mean(scores[is_quiet & is_member] > 0) - np.mean(scores[is_quiet & ~is_member] > 0)
    assert abs(gap) < 4 * 2 * 0.5 / math.sqrt(is_quiet.sum())
    assert auc(scores[is_member], scores[~is_member]).value == pytest.approx(0.5, abs=0.05)


def test_equal_variances_are_drawn_to_their_median_as_before(monkeypatch):
    """The limit takes effect where a record is quieter than others: for 1 in 1,000 of equal ones, at most."""
    rng = np.random.default_rng(73)
    members, target = balanced_members(rng, 16, 20_000), rng.normal(size=20_000)
    shadows = rng.normal(size=members.shape)
    found = likelihood_ratio.scores(target, shadows, members)
    monkeypatch.setattr(likelihood_ratio, "QUIETER_THAN_MOST", 1e-12)
    assert np.mean(np.abs(found - likelihood_ratio.scores(target, shadows, members)) > 1e-3) < 1e-3


def test_records_about_which_all_models_agree_do_not_set_the_median():
    """Nine in ten records are certain; the others' variance of 1 is still the median of what is known."""
    rng = np.random.default_rng(65)
    members = np.arange(20)[:, None] < np.full(200, 10)
    shadows = np.where(np.arange(200) < 20, rng.normal(size=(20, 200)), 7.0)
    target = np.full(200, 6.0)
    target[:20] = 0.0
    found = likelihood_ratio.scores(target, shadows, members)
    assert np.array_equal(found[20:], np.zeros(180))  # nothing tells members from others there, however far off
    assert 0 < np.abs(found[:20]).max() < 5


def test_few_certain_answers_of_forests_do_not_hide_the_rest():
    """Forests answer exactly 1 about some records; one variance for all was inflated by them, as published.

    32 forests on halves of 400 records with coarse columns. True-positive rate at a false-positive rate of 1 %, and
    AUC: 0.052 and 0.805; one pooled variance 0.029 and 0.603, a variance for each record 0.044 and 0.727. The margins
    asserted are about half of these leads.
    """
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(70)
    X, y = make_classification(400, 12, n_informative=5, flip_y=0.2, class_sep=1.5, random_state=0)
    X = np.round(X)
    members = np.array([np.isin(np.arange(400), rng.choice(400, 200, replace=False)) for _ in range(32)])
    with np.errstate(divide="ignore"):
        logs = np.stack(
            [
                np.log(RandomForestClassifier(30, random_state=i).fit(X[m], y[m]).predict_proba(X))
                for i, m in enumerate(members)
            ]
        )
    rates, areas = {}, {}
    forms = {"ours": (None, likelihood_ratio.MAX_SIGNAL_NATS), "pooled": (False, 103.6), "per record": (True, 103.6)}
    for name, (per_record, largest) in forms.items():
        signal = likelihood_ratio.confidences(logs, y, largest=largest)
        scores = np.stack(
            [
                likelihood_ratio.scores(
                    signal[t], np.delete(signal, t, 0), np.delete(members, t, 0), per_record=per_record
                )
                for t in range(32)
            ]
        )
        rates[name] = tpr_at_fpr(scores[members], scores[~members], 0.01).value
        areas[name] = auc(scores[members], scores[~members]).value
    assert rates["ours"] > 1.4 * rates["pooled"], rates
    assert areas["ours"] > areas["pooled"] + 0.1, areas
    assert areas["ours"] > areas["per record"] + 0.04, areas


def test_unequal_groups_are_thinned_from_the_end():
    rng = np.random.default_rng(66)
    shadows, target = rng.normal(size=(7, 20)), rng.normal(size=20)
    members = np.arange(7)[:, None] < np.full(20, 3)
    found = likelihood_ratio.scores(target, shadows, members)
    assert np.array_equal(found, likelihood_ratio.scores(target, shadows[:6], members[:6]))
    assert not np.allclose(found, likelihood_ratio.scores(target, shadows, members, equal_groups=False))


def test_certain_answers_do_not_reach_the_variances():
    """Probabilities of 0 and 1 are signals of -7 and 7, as 0.0009 and 0.9991 are, for the target and its shadows."""
    rng = np.random.default_rng(72)
    members = balanced_members(rng, 12, 50)
    p = rng.choice([0.0, 0.0005, 0.3, 0.6, 0.9995, 1.0], size=(13, 50))
    bounded = np.clip(p, 1 / (1 + math.exp(7)), 1 / (1 + math.exp(-7)))
    scores = []
    for answers in (p, bounded):
        with np.errstate(divide="ignore"):
            logs = np.log(np.stack([answers, 1 - answers], axis=2))
        shadows = PredictionTable(logs[1:], AnswerKind.PROBABILITIES, DenseSubsets(members), np.arange(12), "synthetic")
        evidence = MembershipEvidence(AnswerKind.PROBABILITIES, logs[0], np.zeros(50, dtype=int), shadows=shadows)
        scores += [likelihood_ratio.ATTACK.score(evidence), likelihood_ratio.OFFLINE.score(evidence)]
    np.testing.assert_allclose(scores[0], scores[2], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(scores[1], scores[3], rtol=1e-6, atol=1e-9)


# The signal.


def test_confidences_are_logits():
    rng = np.random.default_rng(67)
    p = rng.dirichlet(np.ones(4), size=(3, 20))
    labels = rng.integers(4, size=20)
    own = p[:, np.arange(20), labels]
    np.testing.assert_allclose(likelihood_ratio.confidences(np.log(p), labels), np.log(own / (1 - own)), rtol=1e-9)
    np.testing.assert_allclose(
        likelihood_ratio.confidences(np.log(p[0]), labels), likelihood_ratio.confidences(np.log(p), labels)[0]
    )


def test_confidences_near_certainty_are_exact_and_finite():
    # 1 - p is e^-60, far below the spacing of float64 at 1.
    assert likelihood_ratio.confidences([[0.0, -60.0], [-60.0, 0.0]], [0, 0]) == pytest.approx([60, -60])
    with np.errstate(all="raise"):
        certain = likelihood_ratio.confidences([[0.0, -np.inf], [-np.inf, 0.0], [-2000.0, 0.0]], [0, 0, 0])
        nothing = likelihood_ratio.confidences([[-np.inf, -np.inf]], [0])
    assert certain.tolist() == [103.6, -103.6, -103.6]
    assert nothing.tolist() == [0.0]


# Edges.


GOOD = np.zeros((4, 3))
MEMBERS = np.tile([[True], [False]], (2, 3))


@pytest.mark.parametrize(
    ("target", "shadows", "members", "error", "message"),
    [
        (np.array([0, np.nan, 0]), GOOD, MEMBERS, ModelError, r"target\[1\] is nan"),
        (np.zeros(2), GOOD, MEMBERS, ModelError, r"shadows must have shape \[models, records\] with 2 records"),
        (np.zeros(3), GOOD + np.inf, MEMBERS, ModelError, r"shadows\[0, 0\] is inf"),
        (np.zeros(3), GOOD, MEMBERS * 1, DataError, "members must be bool"),
        (np.zeros(3), GOOD, np.zeros((4, 3), dtype=bool), DataError, "3 of 3 records are trained on by none"),
        (np.zeros(3), GOOD, np.ones((4, 3), dtype=bool), DataError, "3 of 3 records are left out by none"),
    ],
)
def test_bad_tables_are_refused(target, shadows, members, error, message):
    with pytest.raises(error, match=message):
        likelihood_ratio.scores(target, shadows, members)


def test_bad_settings_are_refused():
    with pytest.raises(ConfigError, match=r"at least two shadow models of either kind.*record 0 has 1"):
        likelihood_ratio.scores(np.zeros(3), GOOD[:2], MEMBERS[:2], per_record=True)
    with pytest.raises(ConfigError, match=r"significance must be in \(0, 1\), got 1"):
        likelihood_ratio.offline_scores(np.zeros(3), GOOD, MEMBERS, significance=1)
    with pytest.raises(DataError, match="nothing to make equal; pass equal_groups=False"):
        likelihood_ratio.offline_scores(np.zeros(3), GOOD, ~MEMBERS & MEMBERS)
    with pytest.raises(DataError, match="a single shadow model without it"):
        likelihood_ratio.offline_scores(np.zeros(3), GOOD[:2], MEMBERS[:2])
    with pytest.raises(DataError, match="left out by none"):
        likelihood_ratio.offline_scores(np.zeros(3), GOOD, MEMBERS | True, equal_groups=False)
    with pytest.raises(ModelError, match="at most 0 and not NaN"):
        likelihood_ratio.confidences([[0.3, 0.7]], [0])
    with pytest.raises(ModelError, match=r"\[records, classes\]"):
        likelihood_ratio.confidences([0.3], [0])
