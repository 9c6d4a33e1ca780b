"""A limit on true-positive rates at 1 %: a ratio that is known, and no pass of what is not there."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leakgauge.auditing import Document, ReleaseRule, Settings, Verdict, audit
from leakgauge.auditing.config import Config
from leakgauge.auditing.gate import Limits, apply
from leakgauge.auditing.membership.low_fpr import TPR_MEASURE, tpr_findings
from leakgauge.errors import ConfigError
from leakgauge.membership import Contamination
from leakgauge.report import render_html
from leakgauge.statistics import Estimate
from leakgauge.training import SklearnLearner

RULE = ReleaseRule(dtp=None, advantage=None, tpr_ratio=10, attacks=("loss-threshold", "lira"))


def audited(labels, *, rule=RULE, n_shadows=32, C=0.01, attacks=("loss-threshold", "lira")):
    X = np.random.default_rng(5).normal(size=(640, 30))
    y = labels(X)
    settings = Settings(n_shadows=n_shadows, n_influence=0, attacks=attacks, rule=rule)
    learner = SklearnLearner(LogisticRegression(C=C))
    return audit(learner, train=(X[:320], y[:320]), holdout=(X[320:], y[320:]), settings=settings)


@pytest.fixture(scope="module")
def harmless():
    return audited(lambda X: (X[:, 0] > 0).astype(int))


def of(result):
    return [one for one in result.findings if one.measure == TPR_MEASURE]


def gated(result, **changed):
    document = Document.of("x", [dataclasses.replace(result, **changed)])
    return apply(document, Limits()).audits[0]


def test_a_model_that_reveals_little_keeps_the_limit(harmless):
    (found,) = of(harmless)
    assert (found.verdict, found.threshold, found.baseline) == (Verdict.PASSES, 10, 1.0)
    assert found.estimate.low < found.estimate.value < found.estimate.high < 10
    rates = {one.name: one.games.tpr[0] for one in harmless.attacks}
    assert found.estimate.high == pytest.approx(100 * max(rate.pool.high for rate in rates.values()))
    assert "10 % of members" in render_html(Document.of("x", [harmless]))
    assert harmless.verdict is Verdict.PASSES
    assert apply(Document.of("x", [harmless]), Limits()).audits[0].findings == harmless.findings


def test_by_default_it_is_not_judged():
    assert of(audited(lambda X: (X[:, 0] > 0).astype(int), rule=ReleaseRule(dtp=None), n_shadows=8)) == []


@pytest.mark.parametrize(
    ("tpr", "half", "verdict"),
    [
        (0.01, 0.003, Verdict.PASSES),
        (0.096, 0.003, Verdict.PASSES),
        (0.098, 0.003, Verdict.CANNOT_TELL),
        (0.102, 0.003, Verdict.CANNOT_TELL),
        (0.105, 0.003, Verdict.CANNOT_TELL),  # above by itself, and not with all attacks together
        (0.108, 0.003, Verdict.FAILS),
        (0.5, 0.1, Verdict.FAILS),
    ],
)
def test_the_whole_interval_lies_on_one_side(harmless, tpr, half, verdict):
    def estimate(half):
        return Estimate(tpr, tpr - half, tpr + half, 0.95, "example", 640)

    first, second = harmless.attacks
    low, very_low = first.games.tpr
    changed = dataclasses.replace(low, pool=estimate(half), together=estimate(2 * half))
    games = dataclasses.replace(first.games, tpr=(changed, very_low))
    (found,) = of(gated(harmless, attacks=(dataclasses.replace(first, games=games), second), findings=()))
    assert found.verdict is verdict
    if tpr > 0.05:  # the worst attack decides
        assert found.estimate.value == pytest.approx(100 * tpr)
        assert bool(found.remedy) == (verdict is not Verdict.PASSES)


def test_what_is_not_resolved_is_not_told_and_says_what_it_takes():
    (found,) = of(audited(lambda X: (X[:, 0] > 0).astype(int), n_shadows=8))
    assert (found.verdict, found.estimate) == (Verdict.CANNOT_TELL, None)
    assert "25 false positives of" in found.reason
    assert "about 32 shadow models" in found.remedy
    assert "4.0 times as many training and holdout records" in found.remedy


def test_no_more_models_are_asked_for_than_anyone_trains(harmless):
    """A single false positive would take a hundred times as many models."""
    first, second = harmless.attacks
    low, very_low = first.games.tpr
    rare = dataclasses.replace(low, pool=None, together=None, n_false=1)
    attacks = (dataclasses.replace(first, games=dataclasses.replace(first.games, tpr=(rare, very_low))), second)
    found = of(gated(harmless, attacks=attacks, findings=()))[0]
    assert found.remedy == "give 100.0 times as many training and holdout records"


def test_without_games_nothing_is_told():
    (found,) = of(audited(lambda X: (X[:, 0] > 0).astype(int), n_shadows=0, attacks=("loss-threshold",)))
    assert found.verdict is Verdict.CANNOT_TELL
    assert "shadow models" in found.remedy


def test_the_gate_does_not_pass_what_was_taken_out_of_the_document(harmless):
    assert gated(harmless, findings=()).verdict is Verdict.PASSES  # made anew
    first, second = harmless.attacks
    games = dataclasses.replace(first.games, tpr=())
    for changed in (
        {"attacks": ()},
        {"attacks": (first,)},
        {"attacks": (dataclasses.replace(first, games=None), second)},
        {"attacks": (dataclasses.replace(first, games=games), second)},
        {"n_games": 0},
        {"outlier": None},
    ):
        for findings in ((), harmless.findings):
            assert gated(harmless, findings=findings, **changed).verdict is Verdict.CANNOT_TELL, changed
    without = gated(harmless, rule=ReleaseRule(dtp=None, tpr_ratio=None))  # the finding still says that there was one
    assert without.rule.tpr_ratio == 10


def test_doubts_about_the_model_and_its_holdout_withhold_the_pass(harmless):
    gross = Contamination(0.5, 0.2, 0.03, 0.5, 32)
    assert of(gated(harmless, contamination=gross))[0].verdict is Verdict.CANNOT_TELL
    assert of(gated(harmless, outlier=0.04))[0].verdict is Verdict.CANNOT_TELL
    shared = dataclasses.replace(harmless.description, overlap=Estimate(0.1, 0.05, 0.2, 0.95, "example", 320))
    assert of(gated(harmless, description=shared))[0].verdict is Verdict.CANNOT_TELL


def test_another_limit_is_applied_to_the_same_estimates(harmless):
    document = Document.of("x", [harmless])
    (strict,) = of(apply(document, Limits(tpr_ratio=1.001)).audits[0])
    assert strict.verdict is not Verdict.PASSES
    none = apply(document, Limits(tpr_ratio=None, advantage=0.9)).audits[0]
    assert of(none) == []
    both = apply(document, Limits(advantage=0.9)).audits[0]
    assert {one.threshold for one in both.findings} >= {0.9, 10}


def test_a_file_sets_it():
    config = Config.for_dataset("breast-cancer")
    assert config.settings().rule.tpr_ratio is None
    given = config.model_dump(mode="json", exclude_unset=True) | {"rule": {"tpr_ratio": 10.0}}
    assert Config.model_validate(given, strict=False).settings().rule.tpr_ratio == 10
    for wrong in (1, 100, 0.5):
        with pytest.raises(ConfigError, match="tpr_ratio"):
            ReleaseRule(tpr_ratio=wrong)


def test_a_rule_without_it_has_no_finding(harmless):
    assert tpr_findings(
        harmless.attacks, harmless.description, ReleaseRule(), None, n_games=32, outlier=1.0, contamination=None
    ) == []  # fmt: skip


def test_what_the_holdout_may_share_is_part_of_the_reason(harmless):
    shared = dataclasses.replace(harmless.description, overlap=Estimate(0.01, 0.0, 0.023, 0.95, "example", 320))
    (found,) = of(gated(harmless, description=shared))
    assert found.verdict is Verdict.PASSES
    assert found.reason.endswith(" (up to 2.3 % of the holdout may also be in the training set)")
