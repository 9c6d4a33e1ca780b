"""One suite for every membership attack and every rate that its scores are turned into.

`tests/membership/test_attacks.py` holds what an attack says about members; here is what must not matter to it (order,
names of classes, precision of the answers, copies of shadow models), what it does at the edges, how often it finds a
leak where there is none, and what the statistics say of its scores there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import optimize, special, stats

from leakgauge.auditing.finding import Verdict, judge
from leakgauge.errors import InputError, ModelError
from leakgauge.membership import ATTACKS, OFFLINE_ATTACKS, MembershipEvidence, PopulationRecords
from leakgauge.models import AnswerKind, label_logs
from leakgauge.statistics import (
    Estimate,
    GuessGrid,
    ThresholdGrid,
    advantage,
    advantage_exact,
    advantage_of_decisions,
    auc,
    epsilon_clopper_pearson,
    epsilon_of_guesses,
    epsilon_one_run,
    mean_difference,
    tpr_at_fpr,
)
from leakgauge.training import DenseSubsets, PredictionTable, balanced_subsets
from leakgauge.training.subsets import Subsets

from ..membership.without import without_each  # noqa: TID252 - tests are no package

CASES = [(attack, kind) for attack in ATTACKS + OFFLINE_ATTACKS for kind in sorted(attack.kinds)]
WITH_SHADOWS = [case for case in CASES if case[0].needs_shadows]
CLASSES = [case for case in CASES if case[1] is not AnswerKind.VALUES]
N_CLASSES = 3


def named(case):
    return case.name if hasattr(case, "name") else str(case)


def every(cases):
    return pytest.mark.parametrize(("attack", "kind"), cases, ids=named)


# Evidence with a known leak.


def answers_of(rng, kind, own, labels):
    """Answers about records [n] by models [...] whose signal is ``own`` [..., n]: higher is better fitted."""
    if kind is AnswerKind.VALUES:
        return (labels + np.exp(-own) * rng.choice([-1, 1], size=own.shape))[..., None]
    logs = np.empty((*own.shape, N_CLASSES))
    others = rng.dirichlet(np.ones(N_CLASSES - 1), size=own.shape)
    column = np.argsort(np.eye(N_CLASSES)[labels] == 1, axis=-1, kind="stable")  # the label's own column comes last
    found = np.concatenate([np.log(others) - np.logaddexp(0, own)[..., None], -np.logaddexp(0, -own)[..., None]], -1)
    np.put_along_axis(logs, np.broadcast_to(column, logs.shape), found, axis=-1)
    return label_logs(logs) if kind is AnswerKind.LABELS else logs


def labels_of(rng, kind, n):
    return rng.normal(size=n) if kind is AnswerKind.VALUES else rng.integers(0, N_CLASSES, n)


def evidence_of(seed, kind, is_member, gain=0.0, *, shadow_gain=None, n_models=12, n_known=60, grid=None, without=True):
    """Signals N(gain, 1) of members and N(0, 1) of others, or rounded to a grid, for the target and for shadow models.

    Shadow models gain ``shadow_gain`` by training on a record, as much as the target unless given. Models without each
    record take most of the time, and may be left out.
    """
    rng, n = np.random.default_rng(seed), len(is_member)
    members = balanced_subsets(n, max(1, n // 2), n_models, rng).members

    def signals(gained):
        own = gained + rng.normal(size=np.shape(gained))
        return own if grid is None else np.round(own / grid) * grid

    labels, known = labels_of(rng, kind, n), labels_of(rng, kind, n_known)
    shadows = answers_of(rng, kind, signals((gain if shadow_gain is None else shadow_gain) * members), labels)
    own = signals(gain * is_member)
    base = answers_of(np.random.default_rng(seed), kind, np.zeros(n), labels)
    return MembershipEvidence(
        kind,
        answers_of(rng, kind, own, labels),
        labels,
        training_loss=0.5,
        sigma_in=0.6,
        sigma_out=1.6,
        shadows=PredictionTable(shadows, kind, DenseSubsets(members), np.arange(n_models), "synthetic"),
        seed=1,
        features=rng.normal(size=(n, 2)),
        population=PopulationRecords(
            answers_of(rng, kind, signals(np.zeros(n_known)), known), known, rng.normal(size=(n_known, 2))
        ),
        steadiness=special.expit(2 * own),
        models_without=without_each(kind, base, labels) if without else None,
    )


def changed(evidence, answers, labels=lambda labels: labels):
    """The same evidence after ``answers`` has changed what all models answer, and ``labels`` the truth."""
    known, without = evidence.population, evidence.models_without
    return replace(
        evidence,
        models_without=replace(without, answers=answers(without.answers)),
        answers=answers(evidence.answers),
        labels=labels(evidence.labels),
        shadows=replace(evidence.shadows, answers=answers(evidence.shadows.answers)),
        population=replace(known, answers=answers(known.answers), labels=labels(known.labels)),
    )


def area(scores, is_member):
    return auc(scores[is_member], scores[~is_member]).value


HALF = np.arange(200) % 2 == 0


# What must not matter.


@every(CASES)
def test_permuted_candidates_have_permuted_scores(attack, kind):
    """Row i out belongs to row i in. A network that is trained on the rows in another order is another network."""
    held = evidence_of(1, kind, HALF, 2.0)
    order = np.random.default_rng(2).permutation(len(HALF))
    shadows = replace(
        held.shadows, answers=held.shadows.answers[:, order], subsets=DenseSubsets(held.shadows.members[:, order])
    )
    moved = replace(
        held,
        answers=held.answers[order],
        labels=held.labels[order],
        features=held.features[order],
        shadows=shadows,
        steadiness=held.steadiness[order],
        models_without=held.models_without.about(order),
    )
    before, after = attack.score(held)[order], attack.score(moved)
    if attack.name == "shadow-classifier":
        assert stats.spearmanr(before, after).statistic > 0.9
    else:
        np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9)


@every(CLASSES)
def test_names_of_classes_leave_scores_alone(attack, kind):
    """Classes 0, 1, 2 are called 2, 0, 1. A network has other first weights for a column in another place."""
    held = evidence_of(3, kind, HALF, 2.0)
    names = np.array([2, 0, 1])
    moved = changed(held, lambda answers: answers[..., np.argsort(names)], lambda labels: names[labels])
    before, after = attack.score(held), attack.score(moved)
    if attack.name == "shadow-classifier":
        assert stats.spearmanr(before, after).statistic > 0.9
    else:
        np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9)


@every(CASES)
def test_answers_in_single_precision_say_the_same(attack, kind):
    """Scores are float64 and decisions the same but for a few at the border; the AUC moves by less than 0.02."""
    held = evidence_of(4, kind, HALF, 2.0)
    whole, single = attack.score(held), attack.score(changed(held, lambda answers: answers.astype(np.float32)))
    assert single.dtype == np.float64
    assert np.mean((single > 0) != (whole > 0)) <= 0.02
    assert area(single, HALF) == pytest.approx(area(whole, HALF), abs=0.02)


@every(WITH_SHADOWS)
def test_shadow_models_in_another_order_say_the_same(attack, kind):
    """Where each record has as many models of either kind, none is left aside, whatever their order."""
    held = evidence_of(5, kind, HALF, 2.0)
    order = np.random.default_rng(6).permutation(12)
    before, after = attack.score(held), attack.score(replace(held, shadows=held.shadows.rows(order)))
    if attack.name == "shadow-classifier":
        assert stats.spearmanr(before, after).statistic > 0.9
    else:
        np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9)


@every(WITH_SHADOWS)
def test_shadow_models_given_twice_say_no_more(attack, kind):
    """Means stay the same. Smoothed counts, variances and networks move a little: the AUC by less than 0.03."""
    held = evidence_of(7, kind, HALF, 2.0)
    once, twice = attack.score(held), attack.score(replace(held, shadows=held.shadows.rows(np.arange(24) % 12)))
    if attack.name in {"distance", "rmia", "rmia-offline"}:
        np.testing.assert_allclose(twice, once, rtol=1e-9, atol=1e-9)
    else:
        assert np.mean((once > 0) != (twice > 0)) <= 0.05
        assert area(twice, HALF) == pytest.approx(area(once, HALF), abs=0.03)


@every(WITH_SHADOWS)
def test_copies_of_two_shadow_models_are_scored(attack, kind):
    """One model with and one without each record, 6 and 40 times: no law of their answers has any width."""
    held = evidence_of(8, kind, HALF[:40], 2.0, n_models=2)
    for copies in (6, 40):
        scores = attack.score(replace(held, shadows=held.shadows.rows(np.arange(2 * copies) % 2)))
        assert scores.shape == (40,)
        assert not np.isnan(scores).any()


# Higher always means member.

FITTED_IS_MEMBER = {
    "gap",
    "confidence",
    "loss-threshold",
    "error-both-known",
    "error-below-training-error",
    "population",
    "quantile",
    "rmia",
    "rmia-offline",
    "lira-offline",
}
"""Attacks that take a good fit for membership, rather than to learn what members look like."""


OF_MEANS = {"gradients", "influence"}
"""Attacks to which errors to either side are alike."""


@every([case for case in CASES if case[0].name in FITTED_IS_MEMBER])
def test_a_record_that_is_fitted_better_never_scores_lower(attack, kind):
    """The answer about one record after another is made better, the rest left as it is; exact."""
    held = evidence_of(9, kind, HALF[:40], 1.0)
    before = attack.score(held)
    for row in range(8):
        answers = held.answers.copy()
        if kind is AnswerKind.VALUES:
            answers[row] += 0.5 * (held.labels[row] - answers[row])
        else:
            answers[row] = np.logaddexp(answers[row] - math.log(2), np.log(np.eye(3)[held.labels[row]] + 1e-300))
            answers[row] = np.log(np.exp(answers[row]) / np.exp(answers[row]).sum())
            if kind is AnswerKind.LABELS:
                answers[row] = label_logs(answers[row])
        assert attack.score(replace(held, answers=answers))[row] >= before[row] - 1e-9


@every([case for case in CASES if case[0].name not in OF_MEANS or case[1] is AnswerKind.PROBABILITIES])
def test_inverted_answers_give_negative_advantages_that_nothing_hides(attack, kind):
    """The target answers *worse* on members, by three deviations, while shadow models answer better on theirs.

    The advantage is negative and stays so (no clipping to 0), the AUC below one half, and no rule calls it a leak: with
    100 records of either kind and true rates this far apart, a wrong sign has a probability below 1e-6 for each. Of
    errors to either side, as here, gradients and influence have no mean that could be inverted.
    """
    held = evidence_of(10, kind, HALF, -3.0, shadow_gain=3.0)
    scores = attack.score(held)
    inside, outside = scores[HALF], scores[~HALF]
    if attack.member_probability is None:
        gained = advantage_of_decisions(inside > 0, outside > 0)
    else:
        probability = attack.member_probability(held)
        gained = mean_difference(probability[HALF], probability[~HALF])
    found = auc(inside, outside)
    assert -1 <= gained.low <= gained.value < 0
    assert found.value < 0.5
    assert judge(gained, 0.0) is not Verdict.FAILS
    assert judge(gained, 0.1) is Verdict.PASSES
    assert tpr_at_fpr(inside, outside, 0.1).low < 0.1
    assert epsilon_clopper_pearson(inside, outside).low == 0


# Edges.


@every([case for case in CASES if case[1] is AnswerKind.PROBABILITIES])
def test_answers_that_are_exactly_certain(attack, kind):
    """Every model gives 1 to a class and 0 (a logarithm of -inf) to all others; the right one for members mostly."""
    scores = attack.score(changed(evidence_of(11, kind, HALF, 3.0), label_logs))
    assert not np.isnan(scores).any()
    assert area(scores, HALF) >= 0.5
    if attack.name in {"gap", "confidence", "frequency", "distance", "shadow-classifier", "lira", "rmia"}:
        assert area(scores, HALF) > 0.6


@every([case for case in CASES if case[1] is AnswerKind.PROBABILITIES])
def test_no_probability_for_the_own_class(attack, kind):
    """The target gives 0 to the right class of every candidate: nobody looks like a member of a model that learns."""
    held = evidence_of(12, kind, HALF, 3.0)
    wrong = label_logs(np.where(np.eye(N_CLASSES)[held.labels] == 1, -50.0, held.answers))
    scores = attack.score(replace(held, answers=wrong))
    assert not np.isnan(scores).any()
    if attack.name in FITTED_IS_MEMBER - {"rmia", "rmia-offline"}:
        assert not (scores > 0).any()
    assert abs(advantage_of_decisions(scores[HALF] > 0, scores[~HALF] > 0).value) < 0.2


@every(CASES)
def test_constant_answers_of_the_target(attack, kind):
    """The target says the same about everyone, the shadow models do not: defined, and no leak is found."""
    held = evidence_of(13, kind, HALF, 3.0)
    held = replace(held, answers=np.broadcast_to(held.answers[:1], held.answers.shape), steadiness=np.ones(200))
    scores = attack.score(held)
    assert not np.isnan(scores).any()
    assert (
        judge(advantage_of_decisions(scores[HALF] > 0, scores[~HALF] > 0, confidence=0.999), 0.0) is not Verdict.FAILS
    )


@every(CLASSES)
def test_one_class(attack, kind):
    """All candidates of one class are scored; a model with one class alone says nothing, or is refused by name."""
    held = evidence_of(14, kind, HALF, 2.0)
    assert not np.isnan(attack.score(replace(held, labels=np.zeros_like(held.labels)))).any()

    def alone():
        return changed(held, lambda answers: np.zeros((*answers.shape[:-1], 1)), np.zeros_like)

    if attack.name in {"gap", "confidence"}:
        assert np.ptp(attack.score(alone())) == 0
    elif attack.needs_copies:
        assert np.ptp(attack.score(replace(alone(), steadiness=np.ones(200)))) == 0
    else:
        with pytest.raises(ModelError, match="class"):
            attack.score(alone())


@dataclass(frozen=True)
class Alone(Subsets):
    """What shadow models know of a single candidate; whoever else they were trained on is no candidate."""

    inside: tuple[bool, ...]
    n_records = 1

    def __len__(self):
        return len(self.inside)

    def row(self, model):
        return np.array([self.inside[model]])

    def part(self, models):
        return Alone(tuple(self.inside[m] for m in models))


@every(CASES)
def test_a_single_candidate(attack, kind):
    """Attacks that look at each record on its own say of it alone what they say of it among others."""
    held = evidence_of(15, kind, HALF[:20], 2.0)
    one = slice(7, 8)
    shadows = replace(
        held.shadows, answers=held.shadows.answers[:, one], subsets=Alone(tuple(held.shadows.members[:, 7].tolist()))
    )
    alone = replace(
        held,
        answers=held.answers[one],
        labels=held.labels[one],
        features=held.features[one],
        shadows=shadows,
        steadiness=held.steadiness[one],
        models_without=without_each(kind, held.answers[one], held.labels[one]),
    )
    score = attack.score(alone)
    assert score.shape == (1,)
    assert not np.isnan(score).any()
    if attack.name in FITTED_IS_MEMBER - {"rmia", "rmia-offline", "lira-offline"} | {"distance", "frequency"}:
        assert score[0] == pytest.approx(attack.score(held)[7], abs=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the standard deviation of no labels
@every(CASES)
def test_no_candidates_are_refused(attack, kind):
    held = evidence_of(16, kind, HALF[:10], 1.0)
    shadows = replace(
        held.shadows, answers=held.shadows.answers[:, :0], subsets=DenseSubsets(held.shadows.members[:, :10])
    )
    none = {"answers": held.answers[:0], "labels": held.labels[:0], "features": held.features[:0], "shadows": shadows}
    none["steadiness"] = held.steadiness[:0]
    none["models_without"] = held.models_without.about(np.arange(0))
    with pytest.raises(InputError, match=r"at least one|no records|shape"):
        attack.score(replace(held, **none))


# Evidence that is none.


def with_one(row, value):
    def answers(evidence):
        found = evidence.answers.copy()
        found[row] = value
        return replace(evidence, answers=found)

    return answers


def with_label(value):
    def labels(evidence):
        found = evidence.labels.astype(np.result_type(evidence.labels, type(value)))
        found[3] = value
        return replace(evidence, labels=found)

    return labels


SPOILED = {
    "NaN": with_one(3, np.nan),
    "a class that is none": with_label(7),
    "a negative class": with_label(-1),
    "a class between two": with_label(0.5),
    "too few labels": lambda evidence: replace(evidence, labels=evidence.labels[:-1]),
    "one label": lambda evidence: replace(evidence, labels=evidence.labels[:1]),
}

OF_LABELS = {name for name in SPOILED if name != "NaN"}
NO_LABELS = {"frequency", "distance"}
"""Attacks that do not look at labels."""


def spoiled_cases():
    for spoiled in SPOILED:
        for attack, kind in CASES:
            if spoiled in OF_LABELS and (
                attack.name in NO_LABELS or (kind is AnswerKind.VALUES and "class" in spoiled)
            ):
                continue
            yield pytest.param(attack, kind, spoiled, id=f"{attack.name}-{kind}-{spoiled}")


@pytest.mark.parametrize(("attack", "kind", "spoiled"), list(spoiled_cases()))
def test_evidence_that_is_none_is_refused(attack, kind, spoiled):
    """By an error of ours, and never by a score."""
    held = evidence_of(17, kind, HALF[:40], 1.0)
    with pytest.raises(InputError):
        attack.score(SPOILED[spoiled](held))


@every(CLASSES)
def test_a_logarithm_a_rounding_error_above_zero_is_a_probability_of_one(attack, kind):
    """1.19e-7 is the logarithm of 1 + the epsilon of float32, as a softmax in single precision may give."""
    held = evidence_of(18, kind, HALF[:40], 1.0)
    sure, above = np.array([0.0, -np.inf, -np.inf]), np.array([1.19e-7, -np.inf, -np.inf])
    scores = [attack.score(with_one(3, row)(held)) for row in (sure, above)]
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-6)


# The rates.

RATES: dict[str, Callable[[np.ndarray, np.ndarray], Estimate]] = {
    "advantage": lambda inside, outside: advantage_of_decisions(inside > 0, outside > 0),
    "advantage, exact": lambda inside, outside: advantage_exact(
        int((inside > 0).sum()), len(inside), int((outside > 0).sum()), len(outside)
    ),
    "auc": auc,
    "tpr at fpr": lambda inside, outside: tpr_at_fpr(inside, outside, 0.1),
    "epsilon": epsilon_clopper_pearson,
}
GUESSING = {
    "advantage": 0.0,
    "advantage, exact": 0.0,
    "auc": 0.5,
    "tpr at fpr": 0.1,
    "epsilon": 0,
}
LOWEST = {"advantage": -1.0, "advantage, exact": -1.0}


@every(CASES)
def test_one_member_or_one_non_member_decides_nothing(attack, kind):
    """All rates are defined and in range, and no interval excludes guessing: one record never proves a leak. Exact.

    But for the interval of the advantage that holds on average only, of which the next test tells.
    """
    for first in (1, 59):
        is_member = np.arange(60) < first
        scores = attack.score(evidence_of(19, kind, is_member, 2.0))
        for rate, estimate in RATES.items():
            found = estimate(scores[is_member], scores[~is_member])
            assert LOWEST.get(rate, 0.0) <= found.low <= found.value <= found.high, rate
            assert found.low <= GUESSING[rate] or rate == "advantage", rate


def test_null_one_member_against_a_hundred_others():
    """All outcomes at rates from 0.5 to 99.5 %: how often an interval at 95 % excludes 0 where nothing leaks.

    The exact one in 5 % at most. The other holds on average over rates and for groups that are not small: a single
    member who is called one makes it exclude 0 in up to 14 %, so that it must not decide about few records.
    """
    worst = {}
    for interval in (advantage, advantage_exact):
        found = [[interval(i, 1, j, 100) for j in range(101)] for i in range(2)]
        excludes = np.array([[e.low > 0 or e.high < 0 for e in row] for row in found])
        rates = np.linspace(0.005, 0.995, 100)
        of_others = stats.binom.pmf(np.arange(101), 100, rates[:, None])
        worst[interval] = np.einsum("rm,mk,rk->r", np.stack([1 - rates, rates], axis=1), excludes, of_others).max()
    assert worst[advantage_exact] <= 0.05
    assert worst[advantage] == pytest.approx(0.142, abs=0.002)


@every(CASES)
def test_ties_everywhere_find_nothing(attack, kind):
    """All models say the same about all records, who are alike: AUC and advantage are those of guessing, exactly."""
    held = evidence_of(20, kind, HALF, 2.0)
    alike = changed(held, lambda answers: np.broadcast_to(held.answers[0], answers.shape))
    known = replace(alike.population, labels=np.full(60, held.labels[0]), features=np.zeros((60, 2)))
    scores = attack.score(
        replace(
            alike,
            labels=np.full(200, held.labels[0]),
            features=np.zeros((200, 2)),
            population=known,
            steadiness=np.full(200, 0.95),
        )
    )
    scores = np.round(scores, 9)  # a network may round equal rows differently
    for rate, estimate in RATES.items():
        found = estimate(scores[HALF], scores[~HALF])
        # One threshold cannot separate ties, so that a small false-positive rate leaves no one above it.
        assert found.value == (0.0 if rate == "tpr at fpr" else GUESSING[rate]), rate
        assert found.low <= found.value, rate


@pytest.mark.parametrize("rate", RATES)
def test_no_members_and_no_non_members_are_refused_by_name(rate):
    """Statistics raise ValueError: nobody's records are at fault, but the caller."""
    with pytest.raises(ValueError, match=r"(^| )n?_?member_(scores|decisions)|n_members") as problem:
        RATES[rate](np.empty(0), np.ones(3))
    assert "at least 1" in str(problem.value)
    with pytest.raises(ValueError, match=r"nonmember_(scores|decisions)|n_nonmembers") as problem:
        RATES[rate](np.ones(3), np.empty(0))
    assert "at least 1" in str(problem.value)


@pytest.mark.parametrize("rate", RATES)
def test_rates_depend_on_the_order_of_scores_alone(rate):
    """A rising function of all scores that keeps their sign, also one that squeezes and one that spreads them."""
    rng = np.random.default_rng(21)
    inside, outside = np.round(rng.normal(0.8, 1, 90), 1), np.round(rng.normal(size=130), 1)
    before = RATES[rate](inside, outside)
    for rising in (lambda s: s**3, lambda s: np.sign(s) * np.log1p(np.abs(s) * 1e-6), np.sinh):
        assert RATES[rate](rising(inside), rising(outside)) == before
    shuffled = RATES[rate](inside[::-1], rng.permutation(outside))
    assert (shuffled.value, shuffled.low, shuffled.high) == pytest.approx((before.value, before.low, before.high))


@pytest.mark.parametrize("rate", RATES)
def test_infinite_scores_are_the_highest_and_the_lowest(rate):
    """An interpolating regressor is attacked by scores that are infinite throughout; only their order counts."""
    rng = np.random.default_rng(22)
    inside, outside = rng.normal(0.5, 1, 90), rng.normal(size=130)
    inside[:20], outside[:10], outside[-20:] = 9.0, 9.0, -9.0
    infinite = [np.where(np.abs(s) == 9.0, np.sign(s) * np.inf, s) for s in (inside, outside)]
    assert RATES[rate](*infinite) == RATES[rate](inside, outside)


# Nothing to find.

TABLES, GROUPS = 25, 40
ALLOWED = 86


def test_error_rates_are_as_documented():
    assert stats.binom.sf(ALLOWED, TABLES * GROUPS, 0.05) < 1e-6
    assert stats.binom.cdf(ALLOWED, TABLES * GROUPS, 0.10) == pytest.approx(0.08, abs=0.01)


def excluding_zero(attack, kind, grid):
    """In how many of 1,000 audits the interval of the advantage excludes 0, by side.

    Each is of 40 members and 40 others; of 10 for attacks that look at all of them at once. 40 audits share a target,
    its shadow models and its known non-members, but no candidate.
    """
    found = Counter()
    side, n_models = {"shadow-classifier": (10, 2), "influence": (10, 8)}.get(attack.name, (40, 8))
    for table in range(TABLES):
        held = evidence_of(
            [23, table], kind, np.zeros(GROUPS * 2 * side), n_models=n_models, n_known=100, grid=grid,
            without=attack.needs_models_without,
        )  # fmt: skip
        said = attack.score(held) > 0 if attack.member_probability is None else attack.member_probability(held)
        for inside, outside in said.reshape(GROUPS, 2, side):
            measure = advantage_of_decisions if attack.member_probability is None else mean_difference
            gained = measure(inside, outside)
            found["above"] += gained.low > 0
            found["below"] += gained.high < 0
    return found


QUICK = [(attack, kind) for attack, kind in CASES if attack.name not in {"shadow-classifier", "quantile", "influence"}]
NULLS = [(attack, kind, None) for attack, kind in CASES] + [(attack, kind, 0.5) for attack, kind in QUICK]


@pytest.mark.long
@pytest.mark.parametrize(
    ("attack", "kind", "grid"),
    [
        pytest.param(attack, kind, grid, marks=() if i % 3 != 1 else pytest.mark.slow)
        for i, (attack, kind, grid) in enumerate(NULLS)
    ],
    ids=named,
)
def test_null_answers_independent_of_membership(attack, kind, grid):
    """1,000 audits of each attack's own decision, also where answers take few values: its interval excludes 0 in 5 %.

    At most 86 of them may. A right interval is failed with probability below 1e-6, one that excludes 0 in 10 % passes
    with probability 0.08. On either side alone at most 52 may, where 25 are expected: probability below 1e-6 as well.
    """
    found = excluding_zero(attack, kind, grid)
    assert found["above"] + found["below"] <= ALLOWED
    assert stats.binom.sf(52, 1000, 0.025) < 1e-6
    assert max(found.values()) <= 52


# Lower bounds on epsilon, beside those of tests/statistics/test_epsilon.py.


def above_zero(bound, n=1000):
    return sum(bound() > 0 for _ in range(n))


@pytest.mark.parametrize("delta", [1e-5, 1e-3])
@pytest.mark.parametrize("guesses", [None, GuessGrid(((20, 0),))], ids=str)
def test_null_one_run_with_delta(guesses, delta):
    """1,000 runs of 60 canaries, at most 86 bounds above 0: false alarm below 1e-6; 10 % is caught in 92 of 100."""
    rng = np.random.default_rng(25)
    assert (
        above_zero(lambda: epsilon_one_run(rng.normal(size=60), rng.random(60) < 0.5, delta=delta, guesses=guesses).low)
        <= ALLOWED
    )


@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_null_guesses(delta):
    """10,000 runs of 40 guesses on 100 coins, at most 613 bounds above 0: false alarm below 1e-6."""
    rng = np.random.default_rng(26)
    low = np.array([epsilon_of_guesses(right, 40, 100, delta=delta).low for right in range(41)])
    assert stats.binom.sf(613, 10_000, 0.05) < 1e-6
    assert (low[rng.binomial(40, 0.5, 10_000)] > 0).sum() <= 613


def gaussian_epsilon(mu, delta):
    """Dong, Roth and Su 2022, Corollary 2.13."""

    def excess(epsilon):
        first, second = special.ndtr(-epsilon / mu + mu / 2), special.log_ndtr(-epsilon / mu - mu / 2)
        return first - math.exp(epsilon + second) - delta

    return optimize.brentq(excess, 0, 100, xtol=1e-12) if mu > 0 and excess(0) > 0 else 0.0


@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("n", [30, 1000])
def test_evenly_spaced_normal_scores_stay_below_the_analytic_epsilon(n, mu):
    """Scores without sampling noise; the other strategies are in tests/statistics."""
    scores = special.ndtri((np.arange(n) + 0.5) / n)
    for delta in (1e-5, 0.01):
        low = epsilon_clopper_pearson(scores + mu, scores, delta=delta, thresholds=ThresholdGrid((0.5,))).low
        assert 0 <= low <= gaussian_epsilon(mu, delta)


@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("n", [30, 200])
def test_evenly_spaced_normal_canaries_of_one_run_stay_below_the_analytic_epsilon(n, mu):
    """Half of 2 n canaries in, the scores of either half evenly spaced; delta counts once for each canary."""
    scores = special.ndtri((np.arange(n) + 0.5) / n)
    included = np.arange(2 * n) < n
    for delta in (1e-6, 1e-5):
        low = epsilon_one_run(np.concatenate([scores + mu, scores]), included, delta=delta).low
        assert 0 <= low <= gaussian_epsilon(mu, delta)
    if mu == 4.0 and n == 200:
        assert low > 1.5
