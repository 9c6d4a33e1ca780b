"""Defences tried on a model: what is measured, what it costs, and which is the cheapest that passes."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import CategoricalNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import Queries, ReleasedOutputs, ReleaseRule, Settings, Subject, Verdict, audit_subject, subject
from leakgauge.defences import Binning, EarlierStop, Ensemble, LabelsOnly, Removal, StrongerPenalty, Temperature
from leakgauge.errors import ConfigError, DataError, MissingExtra, ModelError, StoreError, WorkerError
from leakgauge.influence import own_influence
from leakgauge.models import AnswerKind, FunctionProbabilities, wrap
from leakgauge.protecting import Protection, ProtectionDocument, Refused, Tried, default_defences, protect, trying
from leakgauge.protecting.document import dump
from leakgauge.records import from_pair
from leakgauge.statistics import Estimate

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
Y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
TRAIN, HOLDOUT = (X[:150], Y[:150]), (X[150:], Y[150:])
TREE = subject(DecisionTreeClassifier(random_state=0).fit(*TRAIN), TRAIN, HOLDOUT)
LINEAR = subject(LogisticRegression(), TRAIN, HOLDOUT)
ATTACKS_ONLY = Settings(n_shadows=0, n_influence=0, attacks=("gap",), rule=ReleaseRule(dtp=None, advantage=0.2))
INFLUENCE_ONLY = Settings(
    n_shadows=0, attacks=("gap",), rule=ReleaseRule(dtp=1.0, advantage=None, queries=Queries.DIRECT)
)


def by_name(found):
    return {one.defence.name: one for one in found.tried}


def estimate(value, half=0.01):
    return Estimate(value, value - half, value + half, 0.95, "example", 100)


# Nothing is changed.


def test_a_defence_that_changes_nothing_leaves_everything_as_it_was():
    """No engine knows this tree, so that the same models are trained with the defence and without."""
    tree = subject(DecisionTreeClassifier(max_depth=3, random_state=0), TRAIN, HOLDOUT)
    rule = ReleaseRule(queries=Queries.DIRECT)
    settings = Settings(n_shadows=4, attacks=("gap", "loss-threshold", "distance"), n_influence=20, rule=rule)
    plain, same = protect(tree, settings, [Temperature(1)]).tried
    assert same.result.attacks == plain.result.attacks
    assert same.result.influence == plain.result.influence
    assert same.result.findings == plain.result.findings
    assert (same.risk, same.error, same.verdict) == (plain.risk, plain.error, plain.verdict)
    assert same.cost.value == 0
    assert same.cost.low < 0 < same.cost.high  # 150 equal records do not show that all are


def test_the_undefended_model_is_audited_as_ever():
    found = protect(TREE, ATTACKS_ONLY, [])
    rule = replace(ATTACKS_ONLY.rule, confidence=found.confidence)
    alone = audit_subject(TREE, replace(ATTACKS_ONLY, rule=rule))
    assert found.confidence == pytest.approx(0.95)
    assert found.undefended.result.attacks == alone.attacks
    assert found.undefended.result.findings == alone.findings
    assert found.undefended.error.value == pytest.approx(1 - alone.description.holdout_score.value)


# Known answers.


@pytest.mark.slow
def test_what_an_ensemble_proves_about_any_query_is_enough_for_the_rule():
    """A memorising tree fails the DTP-1 rule for any query; ten of them, each on a tenth, keep ln 2 by proof."""
    rule = ReleaseRule(dtp=1.0, advantage=None)
    settings = Settings(n_shadows=0, attacks=("gap",), n_influence=20, n_repeats=1, rule=rule)
    found = by_name(protect(TREE, settings, [Ensemble(10), Ensemble(10, smoothing=0.5)]))
    assert found["unchanged"].verdict is Verdict.FAILS
    assert found["ensemble-10"].verdict is Verdict.PASSES
    assert found["ensemble-10"].result.influence.bound == pytest.approx(np.log(2))
    assert found["ensemble-10-smoothing-0.5"].verdict is not Verdict.PASSES  # ln 3 is above 1


def test_labels_only_of_a_memorising_tree_leave_the_gap():
    """Yeom et al. 2018, Theorem 2: the advantage of the 0-1 loss is the generalisation gap, with labels as without."""
    found = by_name(protect(TREE, ATTACKS_ONLY, [LabelsOnly(), Binning(0.1)]))
    plain, labels = found["unchanged"], found["labels-only"]
    assert plain.result.description.train_score.value == 1.0
    assert labels.risk.value == pytest.approx(plain.error.value) == pytest.approx(plain.risk.value)
    assert labels.result.description.answers == "labels"
    assert labels.verdict is Verdict.FAILS
    # The tree's probabilities are 0 and 1: as labels they say as much.
    assert [one.more_error.value for one in found.values()] == [0, 0, 0]
    assert [one.cost.value for one in found.values()] == pytest.approx([0, 0, 0], abs=1e-9)
    assert found["labels-only"].calibration is None
    assert found["unchanged"].calibration == pytest.approx(plain.error.value)  # always sure, and wrong so often


def test_bins_bound_pdtp_by_ln_199():
    found = by_name(protect(TREE, replace(INFLUENCE_ONLY, n_influence=40), [Binning(0.01)]))
    assert found["unchanged"].result.influence.largest == np.inf
    assert found["binning-0.01"].result.influence.largest == pytest.approx(np.log(199))


def test_the_ensemble_keeps_its_bound_under_audit():
    one = protect(TREE, replace(INFLUENCE_ONLY, n_influence=20), [Ensemble(5)]).tried[1]
    assert 0 < one.result.influence.largest <= Ensemble(5).largest_dtp + 1e-12
    assert f"{np.log(2):.3g} nats" in one.defence.guarantee


def test_larger_leaves_lower_the_risk_of_a_tree():
    plain, pruned = protect(TREE, ATTACKS_ONLY, [StrongerPenalty(40)]).tried
    assert pruned.risk.value < plain.risk.value / 2
    assert pruned.cost.value == pytest.approx(pruned.log_loss.value - plain.log_loss.value)
    assert pruned.more_error.value == pytest.approx(pruned.error.value - plain.error.value)
    assert pruned.more_error.low < pruned.more_error.value < pruned.more_error.high
    # Paired: record by record the difference is better known than either error.
    assert pruned.more_error.half_width < plain.error.half_width + pruned.error.half_width


def test_labels_need_no_training():
    """Closed forms see the ordinary learner."""
    near = subject(KNeighborsClassifier(5), TRAIN, HOLDOUT)
    found = protect(near, INFLUENCE_ONLY, [LabelsOnly()])
    assert [one.result.influence.engine for one in found.tried] == ["nearest-neighbours"] * 2
    assert {one.result.influence.n_measured for one in found.tried} == {150}


def test_labels_by_the_audit_or_by_the_learner_are_the_same():
    """The short cut against the slow twin: the learner with the defence around it, audited as it is."""
    tree = subject(DecisionTreeClassifier(max_depth=3), TRAIN, HOLDOUT)
    rule = ReleaseRule(queries=Queries.DIRECT, confidence=0.9)
    settings = Settings(n_shadows=4, attacks=("gap", "distance"), n_influence=20, rule=rule)
    short = protect(tree, settings, [LabelsOnly()]).tried[1].result
    strict = replace(settings, rule=replace(rule, confidence=0.95))
    slow = audit_subject(replace(tree, learner=LabelsOnly().apply(tree.learner)), strict)
    assert short.attacks == slow.attacks
    assert short.influence.largest == slow.influence.largest
    assert short.verdict is slow.verdict


@pytest.mark.long
def test_the_cheapest_that_passes():
    """Five binary columns, 2,000 records: smoothed naive Bayes passes by a proof; so no change is the cheapest."""
    codes = rng.integers(0, 2, size=(4000, 5)).astype(float)
    y = (codes.sum(axis=1) + rng.normal(size=4000) > 2.5).astype(int)
    bayes = subject(CategoricalNB(min_categories=2), (codes[:2000], y[:2000]), (codes[2000:], y[2000:]))
    found = protect(
        bayes,
        Settings(n_shadows=0, attacks=("gap",), rule=ReleaseRule(attacks=("gap",))),
        [StrongerPenalty(1000), LabelsOnly()],
    )
    verdicts = {name: one.verdict for name, one in by_name(found).items()}
    assert verdicts["unchanged"] is verdicts["penalty-1000"] is Verdict.PASSES
    assert found.cheapest is found.undefended


def test_the_frontier_and_the_cheapest_by_hand():
    """Five made-up outcomes (risk, error, verdict); only the numbers count."""
    real = protect(TREE, ATTACKS_ONLY, []).undefended

    def outcome(name, risk, error, verdict):
        attack = replace(real.result.attacks[0], name=name, advantage=estimate(risk))
        finding = replace(
            real.result.findings[0], estimate=estimate(risk), baseline=0.0, threshold=1.0, verdict=verdict
        )
        result = replace(real.result, attacks=(attack,), findings=(finding,), verdict=verdict)
        return Tried(Temperature(), result, estimate(error), estimate(0), estimate(1), 0.0, estimate(error - 0.1))

    a = outcome("a", 0.5, 0.1, Verdict.FAILS)
    b = outcome("b", 0.2, 0.2, Verdict.PASSES)
    c = outcome("c", 0.2, 0.3, Verdict.PASSES)
    d = outcome("d", 0.3, 0.2, Verdict.CANNOT_TELL)
    e = outcome("e", 0.1, 0.3, Verdict.PASSES)
    found = Protection("model", (a, b, c, d, e), {}, ReleaseRule(), 0.99)
    assert found.frontier == (e, b, a)
    assert found.cheapest is b
    assert Protection("model", (a, d), {}, ReleaseRule(), 0.99).cheapest is None  # not knowing is not passing
    verdicts = [Protection("model", some, {}, ReleaseRule(), 0.99).verdict for some in ((d, b, a), (a, d), (a,))]
    assert verdicts == [Verdict.PASSES, Verdict.CANNOT_TELL, Verdict.FAILS]


def test_the_largest_of_several_advantages():
    """The largest lower end of those that hold together, and the largest upper end of those by themselves."""
    real = protect(TREE, ATTACKS_ONLY, []).undefended
    attacks = tuple(
        replace(real.result.attacks[0], advantage=one, together=wider)
        for one, wider in ((estimate(0.3, 0.01), estimate(0.3, 0.02)), (estimate(0.2, 0.2), estimate(0.2, 0.3)))
    )
    risk = replace(real, result=replace(real.result, attacks=attacks)).risk
    assert (risk.low, risk.value, risk.high) == pytest.approx((0.28, 0.3, 0.4))
    assert replace(real, result=replace(real.result, attacks=())).risk is None


def test_regression():
    numbers = X @ [1.0, 2.0, 0.0, 0.0] + rng.normal(size=300)
    ridge = subject(Ridge(1e-3), (X[:150], numbers[:150]), (X[150:], numbers[150:]))
    settings = Settings(n_shadows=4, rule=ReleaseRule(dtp=None, advantage=0.5))
    found = protect(ridge, settings, [StrongerPenalty(1e6), LabelsOnly()])
    plain, strong = found.tried
    assert strong.cost.value > 0.5  # the penalty is 1,000 for 150 records
    assert plain.error.value == pytest.approx(plain.result.description.holdout_score.value**2)
    assert strong.cost == strong.more_error
    assert strong.log_loss is strong.calibration is None
    assert "is for classifiers" in found.refused["labels-only"].reason


# What costs nothing, and what labels cost.


def test_labels_of_a_model_that_is_never_sure_lose_what_it_knew():
    """Known answer: two groups, right in 0.9 and 0.6 of cases, and the model says so.

    Its log loss is the mean of both entropies, 0.499 nats; that of its labels, believed in 0.75 of cases, 0.562.
    """
    from leakgauge.protecting.cost import quality

    groups, n = np.repeat([0.9, 0.6], 500), np.arange(1000) % 500
    codes = (n >= 500 * groups).astype(int)
    logs = np.log(np.column_stack([groups, 1 - groups]))
    given = quality(logs, codes, probabilities=True)
    assert given.whose.tolist() == list(range(1000))
    whose = np.repeat(np.arange(250), 4)
    np.testing.assert_array_equal(quality(logs, codes, probabilities=True, whose=whose).whose, whose)
    labels = quality(np.where(logs == logs.max(axis=1, keepdims=True), 0.0, -np.inf), codes, probabilities=False)
    entropy = [-(p * np.log(p) + (1 - p) * np.log(1 - p)) for p in (0.9, 0.6, 0.75)]
    assert given.log_losses.mean() == pytest.approx(np.mean(entropy[:2]), abs=1e-6)
    assert labels.log_losses.mean() == pytest.approx(entropy[2], abs=1e-6)
    assert given.errors.mean() == labels.errors.mean() == 0.25
    assert given.calibration == pytest.approx(0, abs=1e-12)
    assert labels.calibration is None


def test_equal_probabilities_for_all_are_worth_what_they_are():
    """No information: ln k, whatever k; and answers that are wrong every time are worth no more than that."""
    from leakgauge.protecting.cost import quality

    for k in (2, 5):
        codes = np.arange(100) % k
        flat = quality(np.full((100, k), -np.log(k)), codes, probabilities=True)
        wrong = quality(np.where(np.eye(k)[(codes + 1) % k] > 0, 0.0, -np.inf), codes, probabilities=True)
        for one in (flat, wrong):
            assert one.log_losses.mean() == pytest.approx(np.log(k), abs=1e-5)
        assert wrong.calibration == 1.0


def test_labels_are_not_free():
    """Logistic regression on a noisy label, 2,000 people: all pass the loose rule and none makes a mistake more.

    The labels cost 0.053 nats (0.030 to 0.075).
    """
    draw = np.random.default_rng(1)
    X = draw.normal(size=(2000, 2))
    y = (X[:, 0] + draw.normal(size=2000) > 0).astype(int)
    noisy = subject(LogisticRegression(), (X[:1000], y[:1000]), (X[1000:], y[1000:]))
    rule = ReleaseRule(dtp=None, advantage=0.5, attacks=("gap",))
    settings = Settings(n_shadows=0, n_influence=0, attacks=("gap",), rule=rule)
    found = protect(noisy, settings, [LabelsOnly(), Binning(0.1)])
    plain, labels, binned = found.tried
    assert {one.verdict for one in found.tried} == {Verdict.PASSES}
    assert labels.more_error.value == binned.more_error.value == 0
    assert labels.cost.low > 0.02
    assert binned.cost.high < 0.01
    failing = replace(plain, result=replace(plain.result, verdict=Verdict.FAILS))
    assert replace(found, tried=(failing, labels, binned)).cheapest is binned
    assert replace(found, tried=(failing, labels)).cheapest is labels


# The same audit.


def test_each_defence_is_judged_as_by_an_audit_of_its_own_at_that_confidence():
    """Labels allow a quarter of the attacks; what the others would have cost in confidence loosens no failure."""
    settings = Settings(n_shadows=4, n_influence=0, rule=ReleaseRule(dtp=None, advantage=0.2))
    tree = subject(DecisionTreeClassifier(max_depth=3), TRAIN, HOLDOUT)
    found = by_name(protect(tree, settings, [LabelsOnly(), StrongerPenalty(5)]))
    strict = replace(settings, rule=replace(settings.rule, confidence=found["unchanged"].error.confidence))
    alone = audit_subject(tree, replace(strict, released=ReleasedOutputs.LABELS))
    assert len(found["unchanged"].result.attacks) > len(alone.attacks) + 2
    assert found["labels-only"].result.attacks == alone.attacks
    assert found["labels-only"].result.findings == alone.findings


# What is tried and what is not.


class Quoting(StrongerPenalty):
    """A defence whose code fails with somebody's record in its message."""

    def apply(self, learner):
        raise self.failure


def foreign():
    try:
        raise ValueError("could not convert string to float: 'Smith, 12 Elm Road'")
    except ValueError as error:
        raised = DataError(f"column 3 cannot be read: {error}")
        raised.__cause__ = error
        return raised


@pytest.mark.parametrize(
    ("failure", "error", "reason"),
    [
        (DataError("changed copies of coded columns are no codes; name other attacks"), "DataError", "are no codes"),
        (ConfigError("out of range; take less"), "ConfigError", "out of range; take less"),
        (KeyError("Smith, 12 Elm Road"), "KeyError", "the code of the model or of a library failed"),
        (MemoryError("Smith, 12 Elm Road"), "MemoryError", "the code of the model or of a library failed"),
        (foreign(), "DataError", "column 3 cannot be read: ValueError"),
    ],
)
def test_one_defence_that_fails_does_not_lose_the_others(failure, error, reason, monkeypatch):
    """Whatever it fails with, its row says so in our words, and the others are tried."""
    monkeypatch.setattr(Quoting, "failure", failure, raising=False)
    found = protect(TREE, ATTACKS_ONLY, [Quoting(3), LabelsOnly()])
    assert list(by_name(found)) == ["unchanged", "labels-only"]
    refused = found.refused["penalty-3"]
    assert refused.error == error
    assert reason in refused.reason
    assert "Smith" not in dump(ProtectionDocument.of(found))


def test_a_defence_whose_audit_fails_does_not_lose_the_others(monkeypatch):
    """What attackers know of this model's labels cannot be gathered."""
    from leakgauge.auditing.membership import question

    def gather(case, *given, gather=question.gather):
        if case.kind is AnswerKind.LABELS:
            raise DataError("column 'a' holds codes, and 0.3 is none; name other attacks")
        return gather(case, *given)

    monkeypatch.setattr(question, "gather", gather)
    settings = replace(ATTACKS_ONLY, attacks=None)
    found = protect(TREE, settings, [LabelsOnly(), StrongerPenalty(5)])
    assert list(by_name(found)) == ["unchanged", "penalty-5"]
    assert found.refused["labels-only"].reason == "column 'a' holds codes, and 0.3 is none; name other attacks"


@pytest.mark.parametrize("error", [StoreError("the disk is full"), WorkerError("workers die"), KeyboardInterrupt()])
def test_what_is_wrong_with_the_run_ends_it(error, monkeypatch):
    monkeypatch.setattr(Quoting, "failure", error, raising=False)
    with pytest.raises(type(error)):
        protect(TREE, ATTACKS_ONLY, [Quoting(3), LabelsOnly()])


def test_what_does_not_suit_the_learner_is_refused_with_a_reason():
    found = protect(TREE, ATTACKS_ONLY, [EarlierStop(2), Temperature(2)])
    assert list(by_name(found)) == ["unchanged", "temperature-2"]
    assert list(found.refused) == ["earlier-stop-2"]
    assert found.refused["earlier-stop-2"].title == "rounds of training divided by 2"
    assert found.refused["earlier-stop-2"].error == "ModelError"
    assert "not trained in rounds" in found.refused["earlier-stop-2"].reason


def test_a_model_that_can_only_be_queried():
    train, holdout = from_pair(TRAIN, HOLDOUT)
    alone = Subject("model", train, holdout, wrap(DecisionTreeClassifier().fit(*TRAIN), train.schema), None)
    named = [defence.name for defence in default_defences(alone, ATTACKS_ONLY)]
    assert named == ["binning-0.01", "binning-0.1", "temperature-2", "labels-only"]
    found = protect(alone, ATTACKS_ONLY, [Temperature(2), LabelsOnly(), StrongerPenalty(10)])
    assert list(by_name(found)) == ["unchanged", "temperature-2", "labels-only"]
    assert "no training procedure was given" in found.refused["penalty-10"].reason


def test_no_record_is_left_out_where_none_is_above_the_limit():
    found = protect(LINEAR, ATTACKS_ONLY, [Removal(own_influence, 5.0), Removal(own_influence, 0.2)])
    assert list(by_name(found)) == ["unchanged", "removal-0.2"]
    assert found.refused["removal-5"].reason == "no record has influence above 5, so none would be removed"


def test_answers_that_are_released_in_another_form_already():
    found = protect(TREE, replace(ATTACKS_ONLY, released=ReleasedOutputs.LABELS), [Binning(), StrongerPenalty(10)])
    assert "the outputs are labels already" in found.refused["binning-0.01"].reason
    assert by_name(found)["penalty-10"].result.description.answers == "labels"


def test_the_defaults_follow_the_rule():
    names = {one.name: one for one in default_defences(LINEAR, Settings(rule=ReleaseRule(dtp=0.5, advantage=0.2)))}
    assert names["removal-0.5"].limit == 0.5
    assert names["noise-0.1"].eta == pytest.approx(0.1)  # an advantage of 2 eta
    assert "removal-1" not in {one.name for one in default_defences(TREE, Settings())}  # each would train 150 trees
    assert len({one.name for one in default_defences(LINEAR, Settings())}) == 11


@pytest.mark.long
def test_no_more_records_are_left_out_than_there_is_time_for(monkeypatch):
    """Where each takes a model; the rule is then not kept for all that was measured."""
    monkeypatch.setattr(trying, "MOST_REFITS", 10)
    found = by_name(protect(TREE, INFLUENCE_ONLY, [Ensemble(5, smoothing=0.5)]))
    assert {one.result.influence.n_measured for one in found.values()} == {10}
    assert found["ensemble-5-smoothing-0.5"].verdict is Verdict.CANNOT_TELL  # what is proven is ln 3
    asked = protect(TREE, replace(INFLUENCE_ONLY, n_influence=15), [Ensemble(5)])
    assert {one.result.influence.n_measured for one in asked.tried} == {15}
    near = subject(KNeighborsClassifier(5), TRAIN, HOLDOUT)
    assert protect(near, INFLUENCE_ONLY, []).undefended.result.influence.n_measured == 150


def test_attacks_know_the_defence():
    """The learner of the shadow models, and of those without a record, is the defended one."""
    settings = Settings(n_shadows=4, n_influence=0, attacks=("distance",), rule=ReleaseRule(dtp=None))
    found = by_name(protect(TREE, settings, [Ensemble(5), Temperature(2)]))
    for name in ("ensemble-5", "temperature-2"):
        assert found[name].result.description.learner == f"DecisionTreeClassifier, {found[name].defence.title}"
        assert found[name].result.method["shadow_engine"] == "refit"


@pytest.mark.long
def test_fine_bins_are_no_help_against_attacks_that_know_them():
    """Bins of 0.01 round the shares of 10 trees a little and tell them apart as before. An attack that holds its own
    models' answers as they were against bins would see a difference everywhere, and be fooled by it.
    """
    forest = subject(RandomForestClassifier(10), TRAIN, HOLDOUT)
    settings = Settings(n_shadows=16, n_influence=0, attacks=("lira", "rmia"), rule=ReleaseRule(dtp=None))
    plain, binned = protect(forest, settings, [Binning(0.01)]).tried
    for before, after in zip(plain.result.attacks, binned.result.attacks, strict=True):
        assert before.auc.value > 0.65
        assert after.auc.value > before.auc.value - 0.05  # above, where shares of 0 and 1 are no longer infinitely far


def test_more_defences_take_more_confidence():
    found = protect(TREE, ATTACKS_ONLY, [Binning(0.1), Binning(0.01), LabelsOnly()])
    assert found.confidence == pytest.approx(1 - 0.05 / 4)
    assert {one.result.rule.confidence for one in found.tried} == {found.confidence}
    assert {one.error.confidence for one in found.tried} == {found.confidence}


def test_a_run_goes_on_and_tells_where_it_is(tmp_path):
    settings = replace(INFLUENCE_ONLY, n_influence=5)
    stages = []
    first, again = (
        protect(TREE, settings, [Ensemble(3)], run=tmp_path, progress=lambda *said: stages.append(said))
        for _ in range(2)
    )
    assert [one.error for one in first.tried] == [one.error for one in again.tried]
    assert [one.result.influence for one in first.tried] == [one.result.influence for one in again.tried]
    assert (tmp_path / "ensemble-3" / "chunks").is_dir()
    assert ("ensemble-3: leave-one-out models", 5, 5) in stages


def test_defences_of_answers_train_nothing_of_their_own(tmp_path):
    """Their shadow models are those of the model without a defence, answering in another form."""
    settings = Settings(n_shadows=4, n_influence=0, attacks=("distance",), rule=ReleaseRule(dtp=None))
    found = by_name(protect(TREE, settings, [Binning(0.1), LabelsOnly(), StrongerPenalty(5)], run=tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["penalty-5", "unchanged"]
    alone = by_name(protect(TREE, settings, [Binning(0.1), LabelsOnly(), StrongerPenalty(5)]))
    assert [one.result for one in found.values()] == [one.result for one in alone.values()]


def test_an_extra_that_is_not_installed_is_a_reason_not_a_crash(monkeypatch):
    def missing(self, learner):
        raise MissingExtra("it needs something; install it")

    monkeypatch.setattr(StrongerPenalty, "apply", missing)
    found = protect(TREE, ATTACKS_ONLY, [StrongerPenalty(10), LabelsOnly()])
    reason = Refused("regularised 10 times as strongly", "MissingExtra", "it needs something; install it")
    assert found.refused == {"penalty-10": reason}
    assert "labels-only" in by_name(found)


# Refusals.


def test_the_same_defence_twice():
    with pytest.raises(ConfigError, match=r"defence 'binning-0\.01' is named twice"):
        protect(TREE, ATTACKS_ONLY, [Binning(), Binning(0.01)])


def test_defences_that_need_a_confidence_beyond_the_highest():
    rule = replace(ATTACKS_ONLY.rule, confidence=0.999999)
    with pytest.raises(
        ConfigError, match=r"for 2 defences together is more than 0\.999999 for each; give a confidence"
    ):
        protect(TREE, replace(ATTACKS_ONLY, rule=rule), [LabelsOnly()])


def test_a_model_that_cannot_be_audited_at_all():
    train, holdout = from_pair(TRAIN, HOLDOUT)
    wrong = FunctionProbabilities(lambda X: np.full((len(X), 2), 0.7), train.schema)
    with pytest.raises(ModelError, match="sum to 1"):
        protect(Subject("wrong", train, holdout, wrong, None), ATTACKS_ONLY, [LabelsOnly()])


# Real people.


@pytest.mark.slow
@pytest.mark.skipif("LEAKGAUGE_DATA" not in os.environ, reason="needs the data set adult: set LEAKGAUGE_DATA")
def test_logistic_regression_on_adult():
    """1,000 people of Adult: a stronger penalty lowers PDTP; labels cost no accuracy, but the probabilities."""
    from leakgauge.records import datasets
    from leakgauge.training import recipe

    whole = datasets.load("adult").records.as_codes()
    pool = whole[np.random.default_rng(13).choice(len(whole), 1000, replace=False)]
    learner = recipe("logistic-regression", pool)
    adult = Subject("adult", pool[np.arange(500)], pool[np.arange(500, 1000)], None, learner)
    settings = Settings(n_shadows=4, attacks=("gap", "loss-threshold"), n_influence=60)
    found = by_name(protect(adult, settings, [StrongerPenalty(100), Binning(0.01), LabelsOnly()]))
    largest = {name: one.result.influence.largest for name, one in found.items()}
    assert largest["penalty-100"] < largest["unchanged"] / 2
    assert largest["binning-0.01"] <= np.log(199) + 1e-12
    assert largest["labels-only"] == np.inf
    assert found["binning-0.01"].more_error.value == found["labels-only"].more_error.value == 0
    assert found["binning-0.01"].cost.high < 0.01 < 0.05 < found["labels-only"].cost.low
    assert found["penalty-100"].error.value < 0.3
    assert all(one.risk.low < 0.15 for one in found.values())
    engines = {name: one.result.influence.engine for name, one in found.items()}
    assert engines["unchanged"] == engines["penalty-100"] == engines["labels-only"] == "logistic-regression"
