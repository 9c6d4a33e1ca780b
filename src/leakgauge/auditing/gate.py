"""The release rule alone, applied to a result that is already there, perhaps with other limits.

Nothing is measured again. Where another limit would have called for another measurement, the answer is *cannot tell*
and says so, rather than a guess.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from leakgauge.auditing import attributes, properties
from leakgauge.auditing.document import AuditDocument, Document
from leakgauge.auditing.finding import Finding, Verdict, judge, overall
from leakgauge.auditing.membership import advantage_finding
from leakgauge.auditing.settings import ReleaseRule

AGAIN = "audit the model again with this limit in its release rule"


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
    """The same document under other limits: findings and verdicts are made anew, measurements stay.

    A finding whose limit does not change stays as it was.
    """
    audits = tuple(_apply_one(audit, limits) for audit in document.audits)
    return replace(document, audits=audits, verdict=overall([audit.verdict for audit in audits]))


def _apply_one(audit: AuditDocument, limits: Limits) -> AuditDocument:
    findings = [
        *_influence(audit, limits.dtp),
        *_membership(audit, limits.advantage),
        *_attributes(audit, limits.advantage),
        *_properties(audit, limits.property),
    ]
    rule = dict(audit.method.get("rule", {}))
    rule |= {name: value for name, value in vars(limits).items() if not isinstance(value, Kept)}
    return replace(
        audit,
        findings=tuple(findings),
        verdict=overall([finding.verdict for finding in findings]),
        method={**audit.method, "rule": rule},
    )


def _influence(audit: AuditDocument, limit: float | Kept | None) -> list[Finding]:
    found = [finding for finding in audit.findings if finding.question == "influence"]
    if isinstance(limit, Kept):
        return found
    if limit is None or audit.description.answers == "values":
        return []
    if not found:
        return [
            Finding(
                "influence", "largest PDTP (queries about the record itself)", None, 0.0, limit, Verdict.CANNOT_TELL,
                "the audit had no limit on differential training privacy and did not judge it", AGAIN,
            )
        ]  # fmt: skip
    return [_influence_finding(finding, limit, audit) for finding in found]


def _influence_finding(finding: Finding, limit: float, audit: AuditDocument) -> Finding:
    """A finding on influence under another limit."""
    if finding.estimate is None or limit == finding.threshold:
        return replace(finding, threshold=limit)
    verdict = judge(finding.estimate, limit)
    looked_twice = finding.estimate.confidence < 1
    noisy = audit.influence is not None and audit.influence.noise_floor > 0
    # What looks too large in a randomised learner is looked at again with fresh seeds, and which records those are
    # depends on the limit: neither a pass after a second look nor a fail without one carries over.
    unsettled = (looked_twice and verdict is Verdict.PASSES) or (
        noisy and not looked_twice and verdict is Verdict.FAILS
    )
    if unsettled:
        reason = "the learner is randomised, and which records are measured again with fresh seeds depends on the limit"
        return replace(finding, threshold=limit, verdict=Verdict.CANNOT_TELL, reason=reason, remedy=AGAIN)
    return _judged(finding, limit, verdict)


def _membership(audit: AuditDocument, limit: float | Kept | None) -> list[Finding]:
    found = [finding for finding in audit.findings if finding.question == "membership"]
    if isinstance(limit, Kept):
        return found
    if limit is None:
        return []
    if audit.attacks:
        return [advantage_finding(attack, limit, audit.description.n_holdout) for attack in audit.attacks]
    if not found:
        return [
            Finding(
                "membership", "membership advantage", None, 0.0, limit, Verdict.CANNOT_TELL,
                "no membership attack was carried out in the audit", AGAIN,
            )
        ]  # fmt: skip
    return [replace(finding, threshold=limit) for finding in found]


def _attributes(audit: AuditDocument, limit: float | Kept | None) -> list[Finding]:
    if isinstance(limit, Kept):
        return [finding for finding in audit.findings if finding.question == "attributes"]
    return attributes.findings(audit.attributes, limit)


def _properties(audit: AuditDocument, limit: float | Kept | None) -> list[Finding]:
    found = [finding for finding in audit.findings if finding.question == "properties"]
    if isinstance(limit, Kept):
        return found
    if limit is None:
        return []
    if audit.properties:
        planted = float(audit.method.get("rule", {}).get("planted", 0.0))
        return properties.findings(audit.properties, limit, planted)
    if not found:
        return [
            Finding(
                "properties", "accuracy of telling the frequency of a property", None, 0.5, limit, Verdict.CANNOT_TELL,
                "no property was named in the audit", AGAIN,
            )
        ]  # fmt: skip
    return [replace(finding, threshold=limit) for finding in found]


def _judged(finding: Finding, limit: float, verdict: Verdict) -> Finding:
    estimate = finding.estimate
    assert estimate is not None  # the caller has looked
    reason = {
        Verdict.FAILS: f"even the lower end, {estimate.low:.3g}, is above {limit:g}",
        Verdict.PASSES: f"even the upper end, {estimate.high:.3g}, is at most {limit:g}",
        Verdict.CANNOT_TELL: f"between {estimate.low:.3g} and {estimate.high:.3g}, on both sides of {limit:g}",
    }[verdict]
    remedy = "" if verdict is Verdict.PASSES else finding.remedy or "regularise more strongly, or release less"
    return replace(finding, threshold=limit, verdict=verdict, reason=reason, remedy=remedy)
