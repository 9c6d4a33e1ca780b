"""The release rule alone, applied to a result that is already there, perhaps with other limits.

Nothing is measured again. What a result says about its own verdicts is not believed: every finding is judged anew from
the estimates, those that were left out are made again, and where a verdict depends on more than its estimate (a second
look at a randomised learner) the worse of the written and the new one counts. Nothing passes in a document that
contradicts itself: whose findings do not follow from the numbers beside them under the rule of its audit, or whose
numbers cannot all be true. No signature is checked: whoever can write to the file can change all that depend on each
other.

Where another limit would have called for another measurement, the answer is *cannot tell* and says so, rather than a
guess.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from leakgauge.auditing.advice import Outputs, Situation, advice
from leakgauge.auditing.document import AuditDocument, Document
from leakgauge.auditing.finding import Finding, Verdict, judge, overall
from leakgauge.auditing.question import Question
from leakgauge.auditing.questions import QUESTIONS
from leakgauge.auditing.settings import ReleaseRule
from leakgauge.auditing.tails import ROUNDING
from leakgauge.auditing.unexplained import MEASURE as UNEXPLAINED
from leakgauge.auditing.unexplained import unexplained
from leakgauge.statistics import Estimate
from leakgauge.statistics.numerals import short

AGAIN = "audit the model again with this limit in its release rule"
NOT_HELD = "audit the model again: the result lacks what its release rule needs"
CONTRADICTED = "audit the model again with this version: the result was changed, or another version wrote it"


T = TypeVar("T", bound=AuditDocument)


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
        tpr_ratio: largest true-positive rate of an attack at 1 %, over 1 %, or ``None`` to leave it out.
        attacks: ``None`` where a pass takes all membership attacks that were possible, whatever the rule takes for
            enough.

    Raises:
        ConfigError: a limit is out of range, or all are left out.
    """

    dtp: float | Kept | None = KEPT
    advantage: float | Kept | None = KEPT
    property: float | Kept | None = KEPT
    tpr_ratio: float | Kept | None = KEPT
    attacks: Kept | None = KEPT

    def __post_init__(self) -> None:
        self.over(ReleaseRule())  # refuses what is out of range, and no limit at all

    def over(self, rule: ReleaseRule) -> ReleaseRule:
        """A rule with these limits in place of its own.

        Raises:
            ConfigError: a limit is out of range, or none is left.
        """
        given: dict[str, Any] = {name: value for name, value in vars(self).items() if not isinstance(value, Kept)}
        return replace(rule, **given)


def apply(document: Document, limits: Limits) -> Document:
    """The same document, its findings and verdicts made anew from its estimates; measurements stay.

    For a document that leakgauge wrote, and no other limits, that is the same document.

    Raises:
        ConfigError: no limit is left.
    """
    audits = tuple(_apply_one(audit, limits) for audit in document.audits)
    return replace(document, audits=audits, verdict=overall([audit.verdict for audit in audits]))


def agreed(result: T) -> T:
    """A result with the verdicts of its numbers, should others be stated: all that read its document have these."""
    judged = _apply_one(result, Limits())
    return result if verdicts(judged) == verdicts(result) else judged


def verdicts(audit: AuditDocument) -> list[Verdict]:
    """Of an audit and of its findings."""
    return [audit.verdict, *(finding.verdict for finding in audit.findings)]


def _apply_one(audit: T, limits: Limits) -> T:
    own = _strictest(audit)
    rule = limits.over(own)
    written = Written(audit, rule)
    findings = [
        *(finding for question in QUESTIONS for finding in _judged_again(question, written, Written(audit, own))),
        *(written.rejudge(finding, finding.threshold) for finding in written.of_others()),
    ]
    held = {finding.measure for finding in findings}
    findings += [one for one in unexplained(audit.method, audit.description, rule) if one.measure not in held]
    findings.sort(key=lambda one: one.measure == UNEXPLAINED)  # last, as an audit has it
    return replace(
        audit,
        findings=audit.description.of(findings),
        verdict=overall([finding.verdict for finding in findings]),
        rule=rule,
    )


def _judged_again(question: type[Question], written: Written, own: Written) -> list[Finding]:
    """The findings on a question under a rule; if all of them pass, what the document says under its own has to agree.

    Args:
        question: whose findings.
        written: the document, under the rule to apply.
        own: the document under the rule of its audit.
    """
    found = question.judged_again(written)
    if any(finding.verdict is not Verdict.PASSES for finding in found):
        return found
    doubt = next(_contradictions(question, own), None)
    return found if doubt is None else [_doubted(finding, doubt) for finding in found]


def _contradictions(question: type[Question], written: Written) -> Iterator[str]:
    """What in a document cannot all be true, under the rule of its audit: numbers, and findings that are not theirs."""
    yield from question.contradictions(written)
    made = question.estimates(written)
    for finding in written.of(question.name):
        if made is not None and not _same(finding.estimate, made.get(finding.measure)):
            yield f"its finding on “{finding.measure}” does not follow from its other numbers"
        elif finding.threshold != question.threshold_of(finding, written.rule):
            yield f"its finding on “{finding.measure}” is compared with another limit than that of the rule"
        elif finding.estimate is not None and finding.estimate.confidence < written.rule.confidence - ROUNDING:
            yield f"its finding on “{finding.measure}” is of a lower confidence than the rule asks for"


def _same(one: Estimate | None, other: Estimate | None) -> bool:
    """Whether two estimates have one value and one interval."""
    if one is None or other is None:
        return one is other
    ends = zip((one.value, one.low, one.high), (other.value, other.low, other.high), strict=True)
    return all(math.isclose(a, b, rel_tol=ROUNDING, abs_tol=ROUNDING) for a, b in ends)


def _doubted(finding: Finding, doubt: str) -> Finding:
    """A finding that would pass in a document which contradicts itself."""
    reason = f"the result contradicts itself: {doubt}"
    return replace(finding, verdict=Verdict.CANNOT_TELL, reason=reason, remedy=CONTRADICTED)


def _strictest(audit: AuditDocument) -> ReleaseRule:
    """The rule of the audit; where rule and findings do not agree, with the strictest of what is written."""
    strictest: dict[str, Any] = {}
    asked = {question.name: question for question in QUESTIONS}
    by_limit: dict[str, list[float]] = {}
    for finding in audit.findings:
        question = asked.get(finding.question)
        if question is not None and question.is_limited(finding):
            by_limit.setdefault(question.limit_of(finding), []).append(finding.threshold)
    for name, applied in by_limit.items():
        given = getattr(audit.rule, name)
        if given not in applied:
            known = [limit for limit in (given, *applied) if limit is not None and not math.isnan(limit)]
            strictest[name] = min(known, default=None)
    return replace(audit.rule, **strictest)


@dataclass(frozen=True)
class Written:
    """What a document says about itself, to be judged under a rule that may be another.

    Args:
        audit: as it is written.
        rule: to apply.
    """

    audit: AuditDocument
    rule: ReleaseRule

    @property
    def situation(self) -> Situation:
        """What advice depends on; how many records are above another limit is not in the result."""
        description, influence = self.audit.description, self.audit.influence
        return Situation(
            outputs=Outputs.of(description.answers, description.released),
            dtp=None if description.answers == "values" else self.rule.dtp,
            any_query=self.rule.queries.needs_bound,
            n_train=description.n_train,
            n_holdout=description.n_holdout,
            largest=0.0 if influence is None else influence.largest,
            by_record=description.n_rows is None,
        )

    def limit(self, question: type[Question]) -> float | None:
        """The limit on the measures of a question."""
        limit: float | None = getattr(self.rule, question.limit)
        return limit

    def of(self, question: str) -> list[Finding]:
        """The findings about a question."""
        return [finding for finding in self.audit.findings if finding.question == question]

    def of_others(self) -> list[Finding]:
        """Those about questions that this version does not know."""
        known = [question.name for question in QUESTIONS]
        return [finding for finding in self.audit.findings if finding.question not in known]

    def judged_alone(self, question: type[Question]) -> list[Finding]:
        """The written findings about a question, each judged by its own estimate; none without a limit."""
        limit = self.limit(question)
        return [] if limit is None else [self.rejudge(finding, limit) for finding in self.of(question.name)]

    def worse_of(self, made: Iterable[Finding], question: type[Question]) -> list[Finding]:
        """Findings made anew, each beside the one of the same measure and limit in the document: the worse counts.

        A finding that is written and not made again says something about a measure of another version; it is judged
        by what it says, unless its limit was left out.
        """
        made, left = list(made), {(one.measure, one.threshold): one for one in self.of(question.name)}
        found = [_worse(one, left.pop((one.measure, one.threshold), one)) for one in made]
        measures = {one.measure for one in made}
        for one in left.values():
            limit: float | None = getattr(self.rule, question.limit_of(one))
            if one.measure not in measures and limit is not None:
                found.append(self.rejudge(one, limit if one.estimate is None else one.threshold))
        return found

    def rejudge(self, finding: Finding, limit: float) -> Finding:
        """A finding judged by its own estimate, which a written verdict can only make worse."""
        if finding.estimate is None:
            if finding.verdict is not Verdict.PASSES:
                return replace(finding, threshold=limit)
            return self.undecided(finding, limit, "no value was measured", NOT_HELD)
        verdict = judge(finding.estimate, limit)
        if limit == finding.threshold:
            verdict = overall([verdict, finding.verdict])
        if (verdict, limit) == (finding.verdict, finding.threshold):
            return finding
        return self.judged(finding, limit, verdict)

    def judged(self, finding: Finding, limit: float, verdict: Verdict) -> Finding:
        """A finding with another verdict or limit, and a reason that says no more than its estimate does."""
        estimate = finding.estimate
        assert estimate is not None  # the caller has looked
        reason = {
            Verdict.FAILS: f"the value is at least {short(estimate.low, 3)}, which exceeds the limit of {limit:g}",
            Verdict.PASSES: f"the value is at most {short(estimate.high, 3)}, which does not exceed the limit of "
            f"{limit:g}",
            Verdict.CANNOT_TELL: f"the value lies between {short(estimate.low, 3)} and {short(estimate.high, 3)}, and "
            f"so may be below or above the limit of {limit:g}",
        }[verdict]
        same = verdict is Verdict.CANNOT_TELL and finding.verdict is verdict
        remedy = finding.remedy if same else advice(finding.question, verdict, self.situation)
        return replace(finding, threshold=limit, verdict=verdict, reason=reason, remedy=remedy)

    def undecided(self, finding: Finding, limit: float, reason: str, remedy: str = AGAIN) -> Finding:
        """A finding that nothing can be said about under this limit."""
        return replace(finding, threshold=limit, verdict=Verdict.CANNOT_TELL, reason=reason, remedy=remedy)

    def not_asked(self, question: type[Question], measure: str, reason: str) -> Finding:
        """In place of a finding that the rule asks for now, and the audit did not."""
        limit = self.limit(question) or 0.0
        name, baseline = question.name, question.baseline
        return Finding(name, measure, None, baseline, limit, Verdict.CANNOT_TELL, reason, AGAIN)

    def missing(self, question: type[Question], measure: str) -> Finding:
        """In place of a finding that the rule of the audit asked for and the document does not hold."""
        reason = f"the result has no finding on this measure (limit {self.limit(question) or 0.0:g})"
        return replace(self.not_asked(question, measure, reason), remedy=NOT_HELD)

    def unanswered(
        self, question: type[Question], asked: str, answered: Sequence[str], measure: Callable[[str], str]
    ) -> list[Finding]:
        """A finding for each name that the audit was asked about and the document holds nothing on.

        Args:
            question: with the names.
            asked: under which the method lists what was asked about, such as columns.
            answered: the names that the document holds something on.
            measure: what is measured of each, in words.
        """
        names = self.audit.method.get(asked)
        if self.limit(question) is None or not isinstance(names, list | tuple):
            return []
        return [
            self.missing(question, measure(name)) for name in names if isinstance(name, str) and name not in answered
        ]


def _worse(one: Finding, other: Finding) -> Finding:
    """Of two findings about the same measure the worse; the first where they agree, unless it says nothing."""
    if one.estimate is None and other.estimate is None and one.verdict is other.verdict:
        return other
    return one if overall([one.verdict, other.verdict]) is one.verdict else other
