"""The release rule alone, applied to a result that is already there, perhaps with other limits.

Nothing is measured again. What a result says about its own verdicts is not believed: every finding is judged anew from
the estimates, those that were left out are made again, and where a verdict depends on more than its estimate (a second
look at a randomised learner) the worse of the written and the new one counts. The estimates themselves, and the rule of
the audit, are taken as they stand: the file is not signed, and whoever can write to it can change them.

Where another limit would have called for another measurement, the answer is *cannot tell* and says so, rather than a
guess.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from leakgauge.auditing import attributes, membership, properties
from leakgauge.auditing.advice import Outputs, Situation, advice
from leakgauge.auditing.change import MEASURE
from leakgauge.auditing.document import AuditDocument, Document
from leakgauge.auditing.finding import Finding, Verdict, judge, overall
from leakgauge.auditing.influence import MEASURE_DIRECT
from leakgauge.auditing.settings import Queries, ReleaseRule
from leakgauge.errors import StoreError
from leakgauge.statistics.numerals import short

AGAIN = "audit the model again with this limit in its release rule"
NOT_HELD = "audit the model again: the result lacks what its release rule needs"
CERTAIN = 1.0
"""The confidence of what was computed rather than sampled."""


class Kept(Enum):
    """A limit that stays as the audit had it."""

    KEPT = "kept"


KEPT = Kept.KEPT


@dataclass(frozen=True)
class Limits:
    """The limits to apply; each by default the one of the audit.

    Args:
        dtp: largest differential training privacy in nats, or ``None`` to leave it out.
        advantage: largest advantage of an attack, or ``None`` to leave it out.
        property: largest accuracy of telling a property's frequency, or ``None`` to leave it out.

    Raises:
        ConfigError: a limit is out of range.
    """

    dtp: float | Kept | None = KEPT
    advantage: float | Kept | None = KEPT
    property: float | Kept | None = KEPT

    def __post_init__(self) -> None:
        dtp = 1.0 if isinstance(self.dtp, Kept) else self.dtp
        advantage = 0.1 if isinstance(self.advantage, Kept) else self.advantage
        accuracy = None if isinstance(self.property, Kept) else self.property
        ReleaseRule(
            dtp=dtp, advantage=advantage, property=accuracy
        )  # refuses what is out of range, and no limit at all


def apply(document: Document, limits: Limits) -> Document:
    """The same document, its findings and verdicts made anew from its estimates; measurements stay.

    For a document that leakgauge wrote, and no other limits, that is the same document.
    """
    audits = tuple(_apply_one(audit, limits) for audit in document.audits)
    return replace(document, audits=audits, verdict=overall([audit.verdict for audit in audits]))


def _apply_one(audit: AuditDocument, limits: Limits) -> AuditDocument:
    written = _Written(audit, Situation())
    dtp = written.limit("dtp", ("influence",)) if isinstance(limits.dtp, Kept) else limits.dtp
    advantage = (
        written.limit("advantage", ("membership", "attributes"))
        if isinstance(limits.advantage, Kept)
        else limits.advantage
    )
    accuracy = written.limit("property", ("properties",)) if isinstance(limits.property, Kept) else limits.property
    rule = dict(written.rule)
    rule |= {name: value for name, value in vars(limits).items() if not isinstance(value, Kept)}
    situation = _situation(audit, rule | {"dtp": dtp})
    written = _Written(audit, situation)
    attacked = membership.findings(
        audit.attacks,
        audit.description,
        situation,
        advantage=advantage,
        dtp=dtp,
        learner=audit.description.learner is not None,
    )
    findings = [
        *_influence(written, dtp),
        *written.worse_of(attacked, "membership", advantage),
        *written.worse_of(_attributes(written, advantage, dtp), "attributes", advantage),
        *written.worse_of(_properties(written, accuracy), "properties", accuracy),
        *(_rejudged(finding, finding.threshold, situation) for finding in written.of_others()),
    ]
    if dtp is None and advantage is None and accuracy is None:  # what is left cannot be all that was asked
        findings.append(_missing("membership", "release rule", 0.0, 0.0))
    return replace(
        audit,
        findings=tuple(findings),
        verdict=overall([finding.verdict for finding in findings]),
        method={**audit.method, "rule": rule},
    )


def _situation(audit: AuditDocument, rule: dict[str, Any]) -> Situation:
    """What advice depends on; how many records are above another limit is not in the result."""
    description, influence = audit.description, audit.influence
    return Situation(
        outputs=Outputs.of(description.answers, description.released),
        dtp=None if description.answers == "values" else rule.get("dtp"),
        any_query=rule.get("queries", Queries.ANY) != Queries.DIRECT,
        n_train=description.n_train,
        n_holdout=description.n_holdout,
        largest=0.0 if influence is None else influence.largest,
    )


@dataclass(frozen=True)
class _Written:
    """What a document says about itself, and what advice about it depends on."""

    audit: AuditDocument
    situation: Situation

    @property
    def rule(self) -> dict[str, Any]:
        """The release rule, as far as it is written down."""
        rule = self.audit.method.get("rule", {})
        if not isinstance(rule, dict) or not isinstance(rule.get("planted", 0.0), int | float):
            raise StoreError("the result has no release rule; run the audit again")
        return rule

    def names(self, key: str) -> list[str]:
        """What the audit was asked about, such as the hidden columns."""
        given = self.audit.method.get(key)
        return [name for name in given if isinstance(name, str)] if isinstance(given, list | tuple) else []

    def of(self, question: str) -> list[Finding]:
        """The findings about a question."""
        return [finding for finding in self.audit.findings if finding.question == question]

    def of_others(self) -> list[Finding]:
        """Those about questions that this version does not know."""
        known = ("influence", "membership", "attributes", "properties")
        return [finding for finding in self.audit.findings if finding.question not in known]

    def limit(self, name: str, questions: Sequence[str]) -> float | None:
        """The limit of the audit; where rule and findings do not agree, the strictest of what is written."""
        given = self.rule.get(name)
        limits = [float(given)] if isinstance(given, int | float) and not isinstance(given, bool) else []
        applied = [
            finding.threshold
            for question in questions
            for finding in self.of(question)
            if finding.measure not in (membership.TAIL_MEASURE, attributes.TAIL_MEASURE)
        ]
        if applied and not set(limits) & set(applied):
            limits += applied
        return min((limit for limit in limits if not math.isnan(limit)), default=None)

    def worse_of(self, made: Iterable[Finding], question: str, limit: float | None) -> list[Finding]:
        """Findings made anew, each beside the one of the same measure and limit in the document: the worse counts.

        A finding that is written and not made again says something about a measure of another version; it is judged
        by what it says, unless its limit was left out.
        """
        made, left = list(made), {(one.measure, one.threshold): one for one in self.of(question)}
        found = [_worse(one, left.pop((one.measure, one.threshold), one)) for one in made]
        measures = {one.measure for one in made}
        others = [one for one in left.values() if one.measure not in measures]
        if limit is None:
            return found
        return found + [
            _rejudged(one, limit if one.estimate is None else one.threshold, self.situation) for one in others
        ]


def _worse(one: Finding, other: Finding) -> Finding:
    """Of two findings about the same measure the worse; the first where they agree, unless it says nothing."""
    if one.estimate is None and other.estimate is None and one.verdict is other.verdict:
        return other
    return one if overall([one.verdict, other.verdict]) is one.verdict else other


def _rejudged(finding: Finding, limit: float, situation: Situation) -> Finding:
    """A finding judged by its own estimate, which a written verdict can only make worse."""
    if finding.estimate is None:
        if finding.verdict is not Verdict.PASSES:
            return replace(finding, threshold=limit)
        return replace(
            finding, threshold=limit, verdict=Verdict.CANNOT_TELL, reason="no value was measured", remedy=NOT_HELD
        )
    verdict = judge(finding.estimate, limit)
    if limit == finding.threshold:
        verdict = overall([verdict, finding.verdict])
    if (verdict, limit) == (finding.verdict, finding.threshold):
        return finding
    return _judged(finding, limit, verdict, situation)


def _missing(question: str, measure: str, baseline: float, limit: float) -> Finding:
    """In place of a finding that the rule asks for and the document does not hold."""
    reason = (
        f"the result has no finding on this measure (limit {limit:g})" if limit else "the result has no release rule"
    )
    return Finding(question, measure, None, baseline, limit, Verdict.CANNOT_TELL, reason, NOT_HELD)


def _influence(written: _Written, limit: float | None) -> list[Finding]:
    """The findings on influence; the rule asks about the record itself and, unless it says otherwise, any query."""
    if limit is None:
        return []
    audit, found = written.audit, written.of("influence")
    values = audit.description.answers == "values"
    if not found and written.rule.get("dtp") is None:
        return [
            Finding(
                "influence", MEASURE if values else MEASURE_DIRECT, None, 0.0, limit, Verdict.CANNOT_TELL,
                "the audit had no limit on differential training privacy", AGAIN,
            )
        ]  # fmt: skip
    judged = [_influence_finding(finding, limit, audit, written.situation) for finding in found]
    unknown = any(finding.estimate is None for finding in found)
    direct = unknown or values or written.rule.get("queries") == Queries.DIRECT.value
    if len({finding.measure for finding in found}) < (1 if direct else 2):
        measure = MEASURE if values else "differential training privacy of the training records"
        judged.append(_missing("influence", measure, 0.0, limit))
    return judged


def _influence_finding(finding: Finding, limit: float, audit: AuditDocument, situation: Situation) -> Finding:
    """A finding on influence, perhaps under another limit."""
    estimate = finding.estimate
    if estimate is None:
        return _rejudged(finding, limit, situation)
    verdict = judge(estimate, limit)
    looked_twice = estimate.confidence < CERTAIN and audit.change is None
    noisy = any(part is not None and part.noise_floor > 0 for part in (audit.influence, audit.change))
    if limit == finding.threshold:
        # Only a few of the records that looked worst are looked at again, so a second look does not pass.
        if looked_twice and verdict is Verdict.PASSES:
            verdict = Verdict.CANNOT_TELL
        verdict = overall([verdict, finding.verdict])
        return finding if verdict is finding.verdict else _judged(finding, limit, verdict, situation)
    # What looks too large in a randomised learner is looked at again with fresh seeds, and which records those are
    # depends on the limit: neither a pass after a second look nor a fail without one carries over.
    unsettled = (looked_twice and verdict is Verdict.PASSES) or (
        noisy and not looked_twice and verdict is Verdict.FAILS
    )
    if unsettled:
        reason = "the learner is randomised, and the limit decides which records are measured again with fresh seeds"
        return replace(finding, threshold=limit, verdict=Verdict.CANNOT_TELL, reason=reason, remedy=AGAIN)
    return _judged(finding, limit, verdict, situation)


def _attributes(written: _Written, limit: float | None, dtp: float | None) -> list[Finding]:
    found = attributes.findings(written.audit.attributes, limit, dtp, written.situation)
    return found + _unanswered(
        written.names("hidden_columns"), [one.name for one in written.audit.attributes], limit,
        lambda name, at: _missing("attributes", attributes.measure(name), 0.0, at),
    )  # fmt: skip


def _properties(written: _Written, limit: float | None) -> list[Finding]:
    audit, planted = written.audit, float(written.rule.get("planted", 0.0))
    found = properties.findings(audit.properties, limit, planted, written.situation)
    found += _unanswered(
        written.names("properties"), [one.name for one in audit.properties], limit,
        lambda name, at: _missing("properties", properties.measure(name), 0.5, at),
    )  # fmt: skip
    if limit is None or found or written.of("properties"):
        return found
    return [
        Finding(
            "properties", "attack accuracy, frequency of a property", None, 0.5, limit, Verdict.CANNOT_TELL,
            "no property was named in the audit", AGAIN,
        )
    ]  # fmt: skip


def _unanswered(
    asked: Sequence[str], answered: Sequence[str], limit: float | None, missing: Callable[[str, float], Finding]
) -> list[Finding]:
    """A finding for each name that the audit was asked about and the document holds nothing on."""
    return [] if limit is None else [missing(name, limit) for name in asked if name not in answered]


def _judged(finding: Finding, limit: float, verdict: Verdict, situation: Situation) -> Finding:
    estimate = finding.estimate
    assert estimate is not None  # the caller has looked
    reason = {
        Verdict.FAILS: f"the value is at least {short(estimate.low, 3)}, which exceeds the limit of {limit:g}",
        Verdict.PASSES: f"the value is at most {short(estimate.high, 3)}, which does not exceed the limit of {limit:g}",
        Verdict.CANNOT_TELL: f"the value lies between {short(estimate.low, 3)} and {short(estimate.high, 3)}, and so "
        f"may be below or above the limit of {limit:g}",
    }[verdict]
    same = verdict is Verdict.CANNOT_TELL and finding.verdict is verdict
    remedy = finding.remedy if same else advice(finding.question, verdict, situation)
    return replace(finding, threshold=limit, verdict=verdict, reason=reason, remedy=remedy)
