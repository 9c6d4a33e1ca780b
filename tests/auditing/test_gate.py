"""The release rule applied again, with other limits, to what was measured."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import Document, Released, ReleaseRule, Settings, Verdict, audit
from leakgauge.auditing.gate import Limits, apply
from leakgauge.errors import ConfigError
from leakgauge.statistics import Estimate

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


@pytest.mark.parametrize("limits", [(0.3, 0.02), (2.5, 0.4), (1.0, 0.1)])
def test_other_limits_give_what_an_audit_with_them_gives(naive_bayes: Document, limits: tuple[float, float]) -> None:
    """Nothing is measured again, and yet the verdicts are those of the slow way."""
    dtp, advantage = limits
    found = apply(naive_bayes, Limits(dtp, advantage))
    twin = documented(GaussianNB(), rule=ReleaseRule(dtp=dtp, advantage=advantage))
    assert found.verdict is twin.verdict
    for one, other in zip(found.audits[0].findings, twin.audits[0].findings, strict=True):
        assert (one.measure, one.threshold, one.verdict) == (other.measure, other.threshold, other.verdict)
        assert one.estimate == other.estimate
    assert found.audits[0].method["rule"] == twin.audits[0].method["rule"]


def test_a_limit_far_above_passes_and_far_below_fails(naive_bayes: Document) -> None:
    largest = naive_bayes.audits[0].influence.largest  # type: ignore[union-attr]
    assert verdicts(apply(naive_bayes, Limits(dtp=largest / 2)), "influence") == [Verdict.FAILS, Verdict.FAILS]
    # No bound is known for any query to Gaussian naive Bayes, so no limit on DTP can be passed.
    assert verdicts(apply(naive_bayes, Limits(dtp=2 * largest)), "influence") == [Verdict.PASSES, Verdict.CANNOT_TELL]
    assert set(verdicts(apply(naive_bayes, Limits(advantage=0.9)), "membership")) == {Verdict.PASSES}


def test_a_limit_that_is_left_out_takes_its_findings_with_it(naive_bayes: Document) -> None:
    found = apply(naive_bayes, Limits(dtp=None, advantage=0.9))
    assert verdicts(found, "influence") == []
    assert found.verdict is Verdict.PASSES
    assert found.audits[0].method["rule"]["dtp"] is None


def test_reasons_and_remedies_fit_the_new_verdict(naive_bayes: Document) -> None:
    for limits in (Limits(0.01, 0.01), Limits(50.0, 0.9)):
        for finding in apply(naive_bayes, limits).audits[0].findings:
            assert f"{finding.threshold:g}" in finding.reason
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
    document = documented(GaussianNB(), released=Released.LABELS)
    assert set(verdicts(apply(document, Limits(advantage=0.95)), "membership")) == {Verdict.PASSES}


@pytest.mark.parametrize("limits", [{"dtp": 0.0}, {"dtp": -1.0}, {"advantage": 0.0}, {"advantage": 1.0}])
def test_limits_out_of_range_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=f"rule.{next(iter(limits))} must be"):
        Limits(**limits)  # type: ignore[arg-type]


def test_no_limit_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, match="no limit at all"):
        Limits(None, None)
