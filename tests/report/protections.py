"""Defences tried on a model, made by hand: what the page and the picture of ``leakgauge protect`` have to cope with.

Nothing here is measured.
"""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from leakgauge.auditing import ReleaseRule, Verdict, judge
from leakgauge.auditing.finding import overall
from leakgauge.defences import (
    Binning,
    Defence,
    EarlierStop,
    Ensemble,
    LabelsOnly,
    StrongerPenalty,
    Temperature,
    Unchanged,
)
from leakgauge.protecting import Protection, ProtectionDocument, Refused, Tried
from leakgauge.statistics import Estimate


def _documents() -> ModuleType:
    """The audits made by hand."""
    spec = importlib.util.spec_from_file_location("documents", Path(__file__).with_name("documents.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


documents = _documents()

CONFIDENCE = 1 - 0.05 / 7


def outcome(
    defence: Defence,
    risk: float | None,
    cost: float,
    *,
    half: float = 0.02,
    verdict: Verdict | None = None,
) -> Tried:
    """A defence with one attack of this advantage, and this cost on top of an error of 0.2; None was not measured."""
    plain = documents.passing()
    attacks, findings = (), ()
    if risk is not None:
        advantage = Estimate(risk, risk - half, risk + half, CONFIDENCE, "Newcombe hybrid score", 3_000)
        attacks = (replace(plain.attacks[2], advantage=advantage, together=advantage),)
        finding = documents.advantage_finding(attacks[0])
        findings = (replace(finding, verdict=judge(advantage, 0.1)),)
    reached = verdict or overall([finding.verdict for finding in findings])
    result = replace(
        plain,
        description=documents.description(f"Loans, {defence.title}"),
        verdict=reached,
        findings=findings,
        attacks=attacks,
        influence=None,
    )
    error = Estimate(0.2 + cost, 0.18 + cost, 0.22 + cost, CONFIDENCE, "Clopper-Pearson", 1_000)
    more = Estimate(cost, cost - 0.01, cost + 0.01, CONFIDENCE, "Student t", 1_000)
    is_labels = isinstance(defence, LabelsOnly)
    loss = replace(error, value=0.4 + cost, low=0.38 + cost, high=0.42 + cost, method="Student t")
    return Tried(defence, result, error, more, loss, None if is_labels else 0.03, more)


def protection(*tried: Tried, refused: dict[str, Refused] | None = None) -> ProtectionDocument:
    rule = ReleaseRule(dtp=None, advantage=0.1)
    return ProtectionDocument.of(Protection("Loans", tried, refused or {}, rule, CONFIDENCE))


def usual() -> ProtectionDocument:
    """Answers in another form cost nothing and help little; of two that pass the weaker penalty is the cheaper."""
    return protection(
        outcome(Unchanged(), 0.42, 0.0),
        outcome(StrongerPenalty(10), 0.06, 0.03),
        outcome(StrongerPenalty(100), 0.02, 0.09),
        outcome(Binning(0.01), 0.41, 0.0),
        outcome(Temperature(2), 0.42, 0.0),
        outcome(LabelsOnly(), 0.18, 0.0),
        outcome(Ensemble(10), 0.09, 0.06),
        refused={
            "earlier-stop-2": Refused(
                "rounds of training divided by 2",
                "ModelError",
                "LogisticRegression is not trained in rounds that could be fewer",
            )
        },
    )


def harmless() -> ProtectionDocument:
    """A model that gives nothing away: the best that can be done is nothing."""
    return protection(outcome(Unchanged(), 0.0, 0.0), outcome(LabelsOnly(), 0.0, 0.0))


def hopeless() -> ProtectionDocument:
    """Whatever is done, members are recognised."""
    return protection(outcome(Unchanged(), 0.5, 0.0), outcome(EarlierStop(2), 0.3, 0.02))


def unsettled() -> ProtectionDocument:
    """One fails, about one nothing is shown either way, and of one the risk could not be measured."""
    return protection(
        outcome(Unchanged(), 0.5, 0.0),
        outcome(StrongerPenalty(10), 0.09, 0.04),
        outcome(Ensemble(10), None, 0.01),
    )
