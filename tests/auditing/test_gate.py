"""The release rule applied again, with other limits, to what was measured."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import (
    AuditDocument,
    Document,
    Finding,
    Queries,
    ReleasedOutputs,
    ReleaseRule,
    Settings,
    Verdict,
    audit,
    audit_scores,
)
from leakgauge.auditing.drawn import RocCurve
from leakgauge.auditing.gate import Limits, Written, agreed, apply
from leakgauge.auditing.membership.changed import SHARED, ChangedRecords
from leakgauge.auditing.membership.consistency import MOST_SCORES
from leakgauge.auditing.membership.findings import MEMBERSHIP_TAIL_MEASURE, TAIL_BY, TAIL_MEASURES
from leakgauge.auditing.membership.question import Membership
from leakgauge.auditing.membership.stored import STORED
from leakgauge.auditing.membership.summed import SUMMED
from leakgauge.auditing.tails import fits_in_games, tail_level
from leakgauge.errors import ConfigError
from leakgauge.report import junit, markdown, render_html
from leakgauge.report.statement import document_lines
from leakgauge.statistics import Estimate, GamesTail, games_tail_bound

_rng = np.random.default_rng(5)
_y = np.arange(240) % 2
_X = _rng.normal(_y[:, None], 1.0, (240, 3))
TRAIN, HOLDOUT = (_X[:120], _y[:120]), (_X[120:], _y[120:])


def documented(model: object, **settings: object) -> Document:
    result = audit(model, train=TRAIN, holdout=HOLDOUT, settings=Settings(n_shadows=8, **settings))  # type: ignore[arg-type]
    return Document.of("gate", [result])


@pytest.fixture(scope="module")
def naive_bayes() -> Document:
    return documented(GaussianNB())


def verdicts(document: Document, question: str) -> list[Verdict]:
    return [one.verdict for audit in document.audits for one in audit.findings if one.question == question]


def test_without_new_limits_nothing_changes(naive_bayes: Document) -> None:
    assert apply(naive_bayes, Limits()) == naive_bayes


@pytest.mark.parametrize(
    "limits",
    [(0.3, 0.02), pytest.param((2.5, 0.4), marks=pytest.mark.slow), pytest.param((1.0, 0.1), marks=pytest.mark.slow)],
)
def test_other_limits_give_what_an_audit_with_them_gives(naive_bayes: Document, limits: tuple[float, float]) -> None:
    """Nothing is measured again, and yet the verdicts are those of the slow way."""
    dtp, advantage = limits
    found = apply(naive_bayes, Limits(dtp, advantage))
    twin = documented(GaussianNB(), rule=ReleaseRule(dtp=dtp, advantage=advantage))
    assert found.verdict is twin.verdict
    for one, other in zip(found.audits[0].findings, twin.audits[0].findings, strict=True):
        assert (one.measure, one.threshold, one.verdict) == (other.measure, other.threshold, other.verdict)
        assert one.estimate == other.estimate
    assert found.audits[0].rule == twin.audits[0].rule


def test_a_limit_far_above_passes_and_far_below_fails(naive_bayes: Document) -> None:
    largest = naive_bayes.audits[0].influence.largest  # type: ignore[union-attr]
    assert verdicts(apply(naive_bayes, Limits(dtp=largest / 2)), "influence") == [Verdict.FAILS, Verdict.FAILS]
    # The search found queries that tell more than any record about itself.
    found = naive_bayes.audits[0].influence.indirect  # type: ignore[union-attr]
    assert found > 1.5 * largest
    assert verdicts(apply(naive_bayes, Limits(dtp=1.5 * largest)), "influence") == [Verdict.PASSES, Verdict.FAILS]
    assert verdicts(apply(naive_bayes, Limits(dtp=2 * found)), "influence") == [Verdict.PASSES, Verdict.PASSES]
    assert set(verdicts(apply(naive_bayes, Limits(advantage=0.9)), "membership")) == {Verdict.PASSES}


def test_a_limit_that_is_left_out_takes_its_findings_with_it(naive_bayes: Document) -> None:
    found = apply(naive_bayes, Limits(dtp=None, advantage=0.9))
    assert verdicts(found, "influence") == []
    assert found.verdict is Verdict.PASSES
    assert found.audits[0].rule.dtp is None


@pytest.mark.parametrize(
    ("limits", "without"),
    [
        (Limits(dtp=None, advantage=0.95), "the influence of single records (dtp)"),
        (Limits(dtp=100.0, advantage=None), "the advantages of attacks and their tails (advantage)"),
    ],
)
def test_a_pass_says_which_limits_are_switched_off(naive_bayes: Document, limits: Limits, without: str) -> None:
    document = apply(naive_bayes, limits)
    assert document.verdict is Verdict.PASSES
    said = f"The release rule has no limit on {without}: the pass says nothing about that."
    both = dataclasses.replace(document, audits=document.audits * 2)
    for shown in (
        render_html(document),
        markdown(document),
        document.summary(width=100_000),
        both.summary(width=100_000),
        junit(document),
        "\n".join(document_lines(document)),
    ):
        assert said in " ".join(shown.split())


def test_a_verdict_under_all_limits_says_nothing_of_limits(naive_bayes: Document) -> None:
    for limits in (Limits(dtp=100.0, advantage=0.95), Limits(dtp=None, advantage=1e-6)):
        document = apply(naive_bayes, limits)
        assert "has no limit on" not in markdown(document) + "\n".join(document_lines(document))


def test_reasons_and_remedies_fit_the_new_verdict(naive_bayes: Document) -> None:
    for limits in (Limits(0.01, 0.01), Limits(50.0, 0.9)):
        for finding in apply(naive_bayes, limits).audits[0].findings:
            digits = ".3g" if finding.measure in TAIL_MEASURES else "g"
            assert f"{finding.threshold:{digits}}" in finding.reason
            assert bool(finding.remedy) == (finding.verdict is not Verdict.PASSES)


@pytest.mark.parametrize("rule", [ReleaseRule(dtp=None), ReleaseRule(advantage=None)])
def test_what_the_audit_did_not_judge_is_not_guessed(rule: ReleaseRule) -> None:
    found = apply(documented(GaussianNB(), rule=rule), Limits(dtp=5.0, advantage=0.9))
    if rule.dtp is None:
        assert verdicts(found, "influence") == [Verdict.CANNOT_TELL]
    else:
        assert set(verdicts(found, "membership")) == {Verdict.PASSES}  # advantages are measured in any case


def test_a_second_look_does_not_carry_over_to_another_limit() -> None:
    """A randomised learner: the records measured twice were chosen by the old limit, so nothing passes by it."""
    document = documented(DecisionTreeClassifier(max_depth=2), rule=ReleaseRule(dtp=0.5))
    direct = document.audits[0].findings[0]
    assert direct.estimate is not None
    looked_twice = dataclasses.replace(
        direct, estimate=Estimate(0.8, 0.6, 1.0, 0.95, "second look", 32), verdict=Verdict.FAILS
    )
    changed = dataclasses.replace(document.audits[0], findings=(looked_twice, *document.audits[0].findings[1:]))
    document = dataclasses.replace(document, audits=(changed,))
    assert apply(document, Limits(dtp=2.0)).audits[0].findings[0].verdict is Verdict.CANNOT_TELL
    assert apply(document, Limits(dtp=0.55)).audits[0].findings[0].verdict is Verdict.FAILS


def test_noise_does_not_fail_a_lower_limit_without_a_second_look() -> None:
    document = documented(GaussianNB())
    audited = document.audits[0]
    assert audited.influence is not None
    noisy = dataclasses.replace(audited, influence=dataclasses.replace(audited.influence, noise_floor=0.2))
    document = dataclasses.replace(document, audits=(noisy,))
    finding = apply(document, Limits(dtp=1e-6)).audits[0].findings[0]
    assert finding.verdict is Verdict.CANNOT_TELL
    assert "randomised" in finding.reason
    assert "audit the model again" in finding.remedy


def test_an_unmeasured_influence_stays_unknown() -> None:
    model = LogisticRegression(tol=1e-8).fit(*TRAIN)
    document = documented(model, n_influence=0)
    found = apply(document, Limits(dtp=100.0))
    assert verdicts(found, "influence") == [Verdict.CANNOT_TELL]


def test_labels_only_has_no_advantage_that_was_not_measured() -> None:
    rule = ReleaseRule(attacks=("gap",))  # or nothing passes by labels of naive Bayes
    document = documented(GaussianNB(), released=ReleasedOutputs.LABELS, rule=rule)
    assert set(verdicts(apply(document, Limits(advantage=0.95)), "membership")) == {Verdict.PASSES}


@pytest.mark.parametrize("limits", [{"dtp": 0.0}, {"dtp": -1.0}, {"advantage": 0.0}, {"advantage": 1.0}])
def test_limits_out_of_range_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=f"rule.{next(iter(limits))} must be"):
        Limits(**limits)  # type: ignore[arg-type]


def test_no_limit_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, match="no limit at all"):
        Limits(None, None)


def test_an_audit_states_no_other_verdicts_than_the_gate() -> None:
    """Should a finding and what the gate makes of it ever part, an audit states what the gate would."""
    result = audit(DecisionTreeClassifier(random_state=0), train=TRAIN, holdout=HOLDOUT, settings=Settings(n_shadows=8))
    assert agreed(result) is result
    easy = [dataclasses.replace(one, verdict=Verdict.PASSES, remedy="") for one in result.findings]
    stated = dataclasses.replace(result, verdict=Verdict.PASSES, findings=tuple(easy))
    found = agreed(stated)
    assert found.verdict is result.verdict is Verdict.FAILS
    assert (found.records, found.ids) == (result.records, result.ids)
    assert found.document == only(apply(Document.of("gate", [stated]), Limits()))


@pytest.mark.parametrize("among", [1, 2])
@pytest.mark.parametrize("n_scores", range(1, MOST_SCORES + 1))
def test_tail_odds_of_any_number_of_scores_in_games_fit(n_scores: int, among: int) -> None:
    """A level may be shared by the scores of all that shadow models were asked about, and by no more."""
    counts = (340, 32, 16, 400, 320)
    for n, fits in ((n_scores * among, True), (2 * MOST_SCORES + 1, False)):
        level = tail_level(0.95) / n
        tail = GamesTail(games_tail_bound(*counts, level=level), 32, 16, 340, 400, 320, level)
        assert fits_in_games(tail, 32, 0.95, n_scores=MOST_SCORES) is fits


def test_every_score_in_games_has_its_words_and_is_counted() -> None:
    def kinds(of: type) -> set[str]:
        return {of.__dict__.get("name", "")}.union(*map(kinds, of.__subclasses__())) - {""}

    assert {*TAIL_BY} == kinds(ChangedRecords) | {SHARED, STORED, SUMMED, "alike"}


# Nothing that a document says about its own verdicts is believed.


def only(document: Document) -> AuditDocument:
    (found,) = document.audits
    return found


def changed(document: Document, **fields: object) -> Document:
    """The document with other fields of its audit, and a verdict that claims the best."""
    return dataclasses.replace(
        document,
        verdict=Verdict.PASSES,
        audits=(dataclasses.replace(only(document), verdict=Verdict.PASSES, **fields),),  # type: ignore[arg-type]
    )


def claimed(finding: Finding) -> Finding:
    return dataclasses.replace(finding, verdict=Verdict.PASSES, reason="all is well", remedy="")


@pytest.fixture(scope="module")
def tree() -> Document:
    """It remembers everything, and fails on most."""
    return documented(DecisionTreeClassifier(random_state=0), n_influence=20)


def test_passes_written_over_failing_estimates_is_not_believed(tree: Document) -> None:
    forged = changed(tree, findings=tuple(claimed(one) for one in only(tree).findings))
    judged = apply(forged, Limits())
    assert judged.verdict is Verdict.FAILS
    assert [one.verdict for one in only(judged).findings] == [one.verdict for one in only(tree).findings]
    assert all("all is well" not in one.reason for one in only(judged).findings if one.verdict is not Verdict.PASSES)


def test_a_forged_verdict_over_honest_findings_is_not_believed(tree: Document) -> None:
    assert apply(changed(tree), Limits()) == tree


@pytest.mark.parametrize("question", ["influence", "membership"])
def test_findings_that_were_taken_out_are_missed(tree: Document, question: str) -> None:
    """Those about membership are made again from the attacks; of influence it is said that they are not there."""
    left = tuple(one for one in only(tree).findings if one.question != question)
    judged = apply(changed(tree, findings=left), Limits(advantage=0.99) if question == "influence" else Limits())
    assert judged.verdict is not Verdict.PASSES
    if question == "membership":
        assert judged == tree
    else:
        assert verdicts(judged, "influence") == [Verdict.CANNOT_TELL]


def test_a_document_without_any_finding_does_not_pass(naive_bayes: Document) -> None:
    for document in (changed(naive_bayes, findings=()), changed(naive_bayes, findings=(), attacks=())):
        assert apply(document, Limits()).verdict is not Verdict.PASSES


def test_of_two_findings_about_influence_neither_can_be_left_out(naive_bayes: Document) -> None:
    loose = apply(naive_bayes, Limits(dtp=100.0, advantage=0.95))
    direct, anything = (one for one in only(loose).findings if one.question == "influence")
    assert (direct.verdict, anything.verdict) == (Verdict.PASSES, Verdict.PASSES)
    rest = tuple(one for one in only(loose).findings if one.question != "influence")
    for left in ((direct,), (direct, direct), (anything,)):
        assert apply(changed(loose, findings=(*left, *rest)), Limits()).verdict is Verdict.CANNOT_TELL


def test_a_finding_without_an_estimate_cannot_pass(naive_bayes: Document) -> None:
    first, *rest = only(naive_bayes).findings
    judged = apply(changed(naive_bayes, findings=(dataclasses.replace(claimed(first), estimate=None), *rest)), Limits())
    assert only(judged).findings[0].verdict is Verdict.CANNOT_TELL


def test_where_the_written_verdict_is_the_worse_it_is_kept(naive_bayes: Document) -> None:
    """What an audit knew beyond the estimate, such as that few records were looked at twice, only makes it worse."""
    loose = apply(naive_bayes, Limits(dtp=100.0, advantage=0.95))
    found = [dataclasses.replace(one, verdict=Verdict.CANNOT_TELL, reason="known") for one in only(loose).findings]
    judged = apply(changed(loose, findings=tuple(found)), Limits())
    assert {one.verdict for one in only(judged).findings} == {Verdict.CANNOT_TELL}
    assert {one.reason for one in only(judged).findings} == {"known"}
    # Another limit is judged afresh.
    afresh = only(apply(changed(loose, findings=tuple(found)), Limits(advantage=0.96))).findings
    assert {one.verdict for one in afresh if one.threshold == 0.96} == {Verdict.PASSES}


def test_a_second_look_never_passes_whatever_is_written(tree: Document) -> None:
    direct = claimed(only(tree).findings[0])
    looked_twice = dataclasses.replace(direct, estimate=Estimate(0.2, 0.1, 0.3, 0.95, "second look", 32))
    judged = apply(changed(tree, findings=(looked_twice, *only(tree).findings[1:])), Limits())
    assert only(judged).findings[0].verdict is Verdict.CANNOT_TELL


@pytest.mark.parametrize(
    "rule", [ReleaseRule(dtp=None), ReleaseRule(advantage=None), ReleaseRule(advantage=0.95, dtp=100.0)]
)
def test_a_rule_that_does_not_agree_with_its_findings_counts_as_the_stricter(tree: Document, rule: ReleaseRule) -> None:
    forged = changed(tree, rule=rule, findings=tuple(claimed(one) for one in only(tree).findings))
    judged = apply(forged, Limits())
    assert judged.verdict is Verdict.FAILS
    assert {one.threshold for one in only(judged).findings if one.measure not in TAIL_MEASURES} == {0.1, 1.0}


def test_what_was_asked_about_and_is_not_there_is_missed(naive_bayes: Document) -> None:
    method = {**only(naive_bayes).method, "hidden_columns": ["sex"], "properties": ["sex is f"]}
    judged = apply(changed(naive_bayes, method=method, rule=ReleaseRule(property=0.6)), Limits())
    assert verdicts(judged, "attributes") == [Verdict.CANNOT_TELL]
    assert verdicts(judged, "properties") == [Verdict.CANNOT_TELL]


def test_results_that_hold_no_tail_odds_cannot_pass(naive_bayes: Document) -> None:
    """As older versions wrote them; or one attack's were taken out."""
    loose = apply(naive_bayes, Limits(dtp=100.0, advantage=0.95))
    first, *rest = only(loose).attacks
    for attacks in (
        (dataclasses.replace(first, tail=None), *rest),
        [dataclasses.replace(one, tail=None) for one in rest],
    ):
        judged = apply(changed(loose, attacks=tuple(attacks)), Limits())
        tail = next(one for one in only(judged).findings if one.measure == MEMBERSHIP_TAIL_MEASURE)
        assert tail.verdict is Verdict.CANNOT_TELL
        assert "audit the model again" in tail.remedy


def test_findings_of_questions_that_are_not_known_are_judged_by_what_they_say(naive_bayes: Document) -> None:
    strange = Finding("robots", "robots", Estimate(0.9, 0.8, 1.0, 0.95, "m", 10), 0.0, 0.1, Verdict.PASSES, "", "")
    judged = apply(
        changed(naive_bayes, findings=(*only(naive_bayes).findings, strange)), Limits(advantage=0.9, dtp=9.0)
    )
    assert only(judged).findings[-1].verdict is Verdict.FAILS


def test_reversed_signals_are_judged_at_the_gate_too(naive_bayes: Document) -> None:
    first, *rest = only(naive_bayes).attacks
    far = Estimate(-0.8, -0.9, -0.7, 0.99, "m", 240)
    turned = dataclasses.replace(first, advantage=far, together=far)
    judged = apply(changed(naive_bayes, attacks=(turned, *rest)), Limits(advantage=0.6))
    assert Verdict.FAILS in verdicts(judged, "membership")


def test_without_its_findings_nothing_passes(naive_bayes: Document) -> None:
    strange = Finding("robots", "robots", Estimate(0.0, 0.0, 0.0, 0.95, "m", 10), 0.0, 0.1, Verdict.PASSES, "", "")
    judged = apply(changed(naive_bayes, findings=(strange,), attacks=()), Limits())
    assert judged.verdict is Verdict.CANNOT_TELL
    assert verdicts(judged, "influence") == verdicts(judged, "membership") == [Verdict.CANNOT_TELL]


def test_no_limit_that_is_left_is_refused(naive_bayes: Document) -> None:
    """The audit had one on properties neither."""
    with pytest.raises(ConfigError, match="no limit at all"):
        apply(naive_bayes, Limits(dtp=None, advantage=None))


@pytest.mark.long
def test_a_model_that_answers_differently_cannot_pass_without_saying_so() -> None:
    """Nor under a limit that the audit did not have."""

    class Unsteady(GaussianNB):
        def predict_log_proba(self, X: np.ndarray) -> np.ndarray:
            shares = np.exp(super().predict_log_proba(X)) + 0.01 * np.random.default_rng().random((len(X), 2))
            return np.log(shares / shares.sum(axis=1, keepdims=True))

    model = Unsteady().fit(*TRAIN)
    judged = documented(model, n_influence=0, rule=ReleaseRule(dtp=None, advantage=0.9))
    unjudged = documented(model, n_influence=0, rule=ReleaseRule(advantage=None))
    assert judged.verdict is Verdict.CANNOT_TELL
    steady = [one for one in only(judged).findings if "repeated queries" not in one.measure]
    assert apply(judged, Limits()) == judged
    assert apply(changed(judged, findings=tuple(steady)), Limits()).verdict is Verdict.CANNOT_TELL
    assert apply(unjudged, Limits(dtp=None, advantage=0.9)).verdict is Verdict.CANNOT_TELL


def test_shadow_models_that_could_not_be_trained_are_missed_by_every_limit() -> None:
    class Narrow(GaussianNB):
        """Predicts nothing beyond the range that it was fitted on."""

        def fit(self, X: np.ndarray, y: np.ndarray) -> Narrow:
            self.top_ = X.max()
            return super().fit(X, y)

        def predict_log_proba(self, X: np.ndarray) -> np.ndarray:
            if X.max() > self.top_:
                raise ValueError("out of range")
            return super().predict_log_proba(X)

    settings = Settings(n_shadows=8, n_influence=0, rule=ReleaseRule(advantage=None))
    inside = HOLDOUT[0].max(axis=1) < TRAIN[0].max()
    holdout = HOLDOUT[0][inside], HOLDOUT[1][inside]
    document = Document.of("gate", [audit(Narrow().fit(*TRAIN), train=TRAIN, holdout=holdout, settings=settings)])
    judged = apply(document, Limits(dtp=None, advantage=0.9))
    assert judged.verdict is Verdict.CANNOT_TELL
    assert [one.measure for one in only(judged).findings if one.verdict is Verdict.CANNOT_TELL] == [
        "membership advantage, attacks with shadow models"
    ]


def test_an_attack_that_was_taken_out_is_missed(naive_bayes: Document) -> None:
    loose = apply(naive_bayes, Limits(dtp=None, advantage=0.95))
    assert loose.verdict is Verdict.PASSES
    first, *rest = only(loose).attacks
    findings = tuple(one for one in only(loose).findings if first.title not in one.measure)
    judged = apply(changed(loose, attacks=tuple(rest), findings=findings), Limits())
    assert judged.verdict is Verdict.CANNOT_TELL
    assert [one.measure for one in only(judged).findings if one.verdict is Verdict.CANNOT_TELL] == [
        f"membership advantage, {first.title}"
    ]


def test_without_its_games_no_attack_passes() -> None:
    """Games that are taken out of a result do not leave the verdict to the audited model alone."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(1200, 3)), rng.integers(0, 2, 1200)
    data = {"train": (X[:600], y[:600]), "holdout": (X[600:], y[600:])}
    settings = Settings(
        n_shadows=16, attacks=("gap", "lira"), rule=ReleaseRule(dtp=None, attacks=("gap", "lira")), seed=1
    )
    result = audit(GaussianNB(), **data, settings=settings)
    whole = Document.of("x", [result])
    assert apply(whole, Limits(advantage=0.9)).verdict is Verdict.PASSES
    bare = tuple(dataclasses.replace(one, games=None) for one in result.attacks)
    found = [one for one in result.findings if not one.measure.startswith("membership advantage")]
    for attacks in (bare, (bare[0], *result.attacks[1:])):
        judged = apply(changed(whole, attacks=attacks, findings=tuple(found)), Limits(advantage=0.9))
        assert judged.verdict is Verdict.CANNOT_TELL
    judged = apply(changed(whole, outlier=None, findings=tuple(found)), Limits(advantage=0.9))
    assert judged.verdict is Verdict.CANNOT_TELL


def test_a_looser_limit_does_not_pass_what_only_a_bound_could() -> None:
    """A regressor that fails where the rule asks for any query: an audit with the other limit cannot tell."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = X.sum(axis=1) + rng.normal(size=80)

    def documented_at(dtp: float) -> Document:
        rule = ReleaseRule(dtp=dtp, queries=Queries.ANY, advantage=0.95)
        settings = Settings(n_shadows=0, rule=rule, attacks=("gap",))
        return Document.of("x", [audit(Ridge(), train=(X[:40], y[:40]), holdout=(X[40:], y[40:]), settings=settings)])

    failing, twin = documented_at(1e-6), documented_at(50.0)
    assert verdicts(failing, "influence") == [Verdict.FAILS]
    assert verdicts(twin, "influence") == verdicts(apply(failing, Limits(dtp=50.0)), "influence")
    assert verdicts(twin, "influence") == [Verdict.CANNOT_TELL]


@pytest.fixture(scope="module", params=[LogisticRegression(C=0.001), Ridge(1000.0), None], ids=str)
def whole(request: pytest.FixtureRequest) -> AuditDocument:
    """A result that passes, of all attacks that are possible on a classifier, a regression model, or losses alone."""
    told = Settings(n_shadows=8, n_influence=0, rule=ReleaseRule(dtp=None, advantage=0.9))
    if request.param is None:
        loss = np.random.default_rng(3).exponential(size=1000)
        return audit_scores(np.arange(1000) < 500, loss=loss, settings=told).document
    return audit(request.param, train=TRAIN, holdout=HOLDOUT, settings=told).document


def test_no_attack_can_be_taken_out_of_a_result(whole: AuditDocument) -> None:
    """With all that says it was carried out, but for one of which nothing else says whether it was possible."""

    def judged(audit: AuditDocument) -> AuditDocument:
        document = dataclasses.replace(Document.of("x", []), audits=(audit,))
        found = [apply(document, limits).audits[0] for limits in (Limits(), Limits(attacks=None))]
        assert found[0].verdict is found[1].verdict
        return found[0]

    assert judged(whole).verdict is Verdict.PASSES
    names = [one.name for one in whole.attacks]
    assert "learned" in names
    assert ("population" in names) is whole.description.only_scores
    for gone in (one for one in whole.attacks if one.name != "influence"):
        method = {
            **whole.method,
            "attacks": [title for title in whole.method["attacks"] if title != gone.title],
            "shadow_models": 0,
        }
        without = dataclasses.replace(
            whole,
            attacks=tuple(one for one in whole.attacks if one is not gone),
            findings=tuple(one for one in whole.findings if gone.title not in one.measure),
            method=method,
        )
        assert judged(without).verdict is Verdict.CANNOT_TELL, gone.name
        lacking = f"it says that no attack was left out, and lacks: {gone.title}"
        assert lacking in Membership.contradictions(Written(without, without.rule))


def test_an_attack_that_may_have_been_impossible_is_not_missed(whole: AuditDocument) -> None:
    """The auditor's, where records may be equal: persons, shared records, too few, or scores that do not differ."""
    about, method = whole.description, {**whole.method, "attacks": None}
    *others, learned = whole.attacks
    assert learned.name == "learned"
    without = dataclasses.replace(whole, attacks=tuple(others), method=method)

    def lacks(audit: AuditDocument) -> bool:
        return any("lacks" in said for said in Membership.contradictions(Written(audit, audit.rule)))

    assert lacks(without)
    few = {"n_train": 19} if about.only_scores else {"overlap": Estimate(0.1, 0.0, 0.2, 0.95, "x", 9)}
    for changed in ({"n_rows": (500, 500)}, few):
        assert not lacks(dataclasses.replace(without, description=dataclasses.replace(about, **changed)))
    curves = [dataclasses.replace(one, roc=RocCurve((0.0, 0.5, 1.0), (0.0, 0.5, 1.0))) for one in others]
    assert lacks(dataclasses.replace(without, attacks=tuple(curves))) is about.only_scores
