"""What a report says of a whole audit: why the verdict, what to do, the rule, and the statement for the file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from shlex import quote

from leakgauge.auditing import AuditDocument, Document, Finding, Verdict
from leakgauge.auditing.advice import REGULARISE
from leakgauge.auditing.claimed import QUESTION as CLAIM
from leakgauge.auditing.file.findings import NOT_NEEDED
from leakgauge.auditing.finding import judge
from leakgauge.membership import ATTACKS
from leakgauge.report.chapters import CHAPTERS
from leakgauge.report.words import (
    ADVICE,
    CLAIM_HEADLINES,
    HEADLINES,
    PROTECT,
    TITLES,
    capital,
    counted,
    finding_line,
    from_below,
    listing,
    per_cent,
    released,
    sentence,
    title_of,
)

REACH = (
    "The result holds for this model, these records and the attacks named; it does not show that every other attack "
    "would fail."
)

TREES = re.compile("tree|forest|boost|xgb|lgbm", re.IGNORECASE)
"""In names of learners that grow trees."""

REGULARISE_TREES = f"{REGULARISE} (larger leaves, fewer levels)"


def question_title(question: str) -> str:
    """The question a finding belongs to, in words.

    >>> question_title("membership"), question_title("hidden columns")
    ('Membership inference', 'Hidden columns')
    """
    return next((one.title for one in CHAPTERS if one.question == question), capital(question))


@dataclass(frozen=True)
class Ground:
    """Why the verdict is what it is, for one question: the findings that decide it, represented by the clearest.

    Args:
        question: the question in words.
        clearest: the deciding finding that lies furthest beyond its limit; of passing ones, the nearest to it.
        n_deciding: how many findings of the question say the same.
        n_findings: how many there are.
    """

    question: str
    clearest: Finding
    n_deciding: int
    n_findings: int


def grounds(audit: AuditDocument) -> list[Ground]:
    """What decides an audit's verdict, one ground for each question that has a finding with that verdict."""
    found = []
    for question in dict.fromkeys(finding.question for finding in audit.findings):
        all_of_it = [finding for finding in audit.findings if finding.question == question]
        deciding = [finding for finding in all_of_it if finding.verdict is audit.verdict]
        if deciding:
            clearest = max(deciding, key=lambda finding: _beyond(finding, audit.verdict))
            found.append(Ground(question_title(question), clearest, len(deciding), len(all_of_it)))
    return found


def _beyond(finding: Finding, verdict: Verdict) -> float:
    """How far a finding lies beyond its limit, in units of that; where nothing was measured nothing is clearer.

    What passes although its upper end is above the limit (the tail odds, the audited model itself) shows least.
    """
    if finding.estimate is None:
        return math.inf
    end = finding.estimate.low if verdict is Verdict.FAILS else finding.estimate.high
    if from_below(finding):
        return -math.inf
    return (end - finding.threshold) / finding.unit


def plain(audit: AuditDocument, finding: Finding) -> str:
    """A finding in one sentence for whoever decides, with its limit and without a symbol.

    Where the interval alone would decide and something else withholds the verdict, the sentence is the reason.
    """
    chapter = next((one for one in CHAPTERS if one.question == finding.question), None)
    decided = finding.estimate is None or judge(finding.estimate, finding.threshold) is Verdict.CANNOT_TELL
    if chapter is None or (finding.verdict is Verdict.CANNOT_TELL and not decided):
        return audit.description.worded(sentence(finding.reason))
    return audit.description.worded(chapter.plain(audit, finding))


def lead(audit: AuditDocument) -> str:
    """The verdict in one sentence: the finding that decides it most clearly, in words."""
    found = grounds(audit)
    if not found:
        return "No measure was compared with the release rule."
    return plain(audit, max((one.clearest for one in found), key=lambda finding: _beyond(finding, audit.verdict)))


def commands(audit: AuditDocument, source: str) -> list[tuple[str, str]]:
    """What to type next, by what failed: what it does, and the command.

    Args:
        audit: the audit.
        source: the file or data set that it was started with; empty where that is not known, as in Python.
    """
    failed = {finding.question for finding in audit.findings if finding.verdict is Verdict.FAILS}
    said = []
    if source and failed & {chapter.question for chapter in CHAPTERS if chapter.is_defended}:
        name = audit.description.model
        chosen = f" --model {quote(name)}" if name.isprintable() else ""
        said.append(
            ("Try defences, with the effect and the cost of each:", f"leakgauge protect {quote(source)}{chosen}")
        )
    if any(one.measure == NOT_NEEDED and one.verdict is Verdict.FAILS for one in audit.findings):
        said.append(("Write a copy of the file without them:", "leakgauge inspect FILE --clean OUT"))
    return said


def headline(audit: AuditDocument) -> str:
    """The verdict in words; of a pass also whether it is measured, or proven for every query."""
    if audit.verdict is not Verdict.PASSES or audit.influence is None or audit.rule.dtp is None:
        return _decided(audit.verdict, audit.findings)
    return f"{HEADLINES[audit.verdict]} ({'proven' if audit.influence.proves(audit.rule.dtp) else 'measured'})"


def _decided(verdict: Verdict, findings: Iterable[Finding]) -> str:
    """A verdict in words, and where claims alone stand against a pass, that they do."""
    deciding = [finding.question == CLAIM for finding in findings if finding.verdict is not Verdict.PASSES]
    if verdict in CLAIM_HEADLINES and deciding and all(deciding):
        return CLAIM_HEADLINES[verdict]
    return HEADLINES[verdict]


def verdict_on_all(document: Document) -> str:
    """The verdict on a whole document in words."""
    if len(document.audits) == 1:
        return headline(document.audits[0])
    return _decided(document.verdict, (finding for audit in document.audits for finding in audit.findings))


def document_headline(document: Document) -> str:
    """The verdict on a whole document in words, and its name."""
    return f"{verdict_on_all(document)}: {document.name}"


def document_lines(document: Document) -> list[str]:
    """The verdict on a whole document, what a pass leaves out, and a line for each finding."""
    left_out = dict.fromkeys(filter(None, map(rests_on, document.audits)))
    findings = [finding_line(audit, finding) for audit in document.audits for finding in audit.findings]
    return [document_headline(document), *left_out, *findings]


def not_proven(audit: AuditDocument) -> str:
    """What a pass does not prove; empty where it proves everything it says, or there is none."""
    found, limit = audit.influence, audit.rule.dtp
    if audit.verdict is not Verdict.PASSES or found is None or limit is None or found.proves(limit):
        return ""
    searched = f" and a search for {counted(found.n_searched, 'record')}" if found.n_searched else ""
    some = f"{found.n_measured:,} of {counted(found.n_training, 'record')}"
    whom = "each record" if found.n_measured >= found.n_training else some
    return (
        f"Measured, not proven: the influence of single records was measured by queries about {whom}{searched}; "
        "no bound is proven for other queries."
    )


def selected(audit: AuditDocument) -> str:
    """Which membership attacks a pass rests on where some that were possible were left out; otherwise empty."""
    if audit.verdict is not Verdict.PASSES or not audit.left_out:
        return ""
    return (
        f"The pass rests on {listing(attack.title for attack in audit.attacks)} alone: the release rule takes them for "
        f"enough, and {listing(map(title_of, audit.left_out))} could have been carried out and were not."
    )


def unlimited(audit: AuditDocument) -> str:
    """What a pass says nothing about, since the release rule has no limit on it; otherwise empty."""
    limits = {
        "the influence of single records (dtp)": audit.rule.dtp,
        "the advantages of attacks and their tails (advantage)": audit.rule.advantage,
    }
    without = [what for what, limit in limits.items() if limit is None]
    if audit.verdict is not Verdict.PASSES or not without:
        return ""
    return f"The release rule has no limit on {listing(without)}: the pass says nothing about that."


def without_shadows(audit: AuditDocument) -> str:
    """That a pass rests on attacks without shadow models, where it does; otherwise empty."""
    carried_out = [attack.name for attack in audit.attacks]
    limited = audit.verdict is Verdict.PASSES and audit.rule.advantage is not None and carried_out
    if not limited or any(one.name in carried_out for one in ATTACKS if one.needs_shadows):
        return ""
    give = "the scores of reference models" if audit.description.only_scores else "the learner"
    return (
        "The pass rests on attacks without shadow models, which may find nothing where attacks with shadow models find "
        f"much: give {give} for those."
    )


def rests_on(audit: AuditDocument) -> str:
    """What a pass leaves out: attacks that were possible, or stronger, and limits; empty where nothing is left out."""
    return _joined(selected(audit), without_shadows(audit), unlimited(audit))


def advice(audit: AuditDocument, *, protect: bool = True) -> str:
    """What the verdict means for a release and, where mitigations can be tried, how.

    Args:
        audit: the audit.
        protect: say how; not where the command itself is printed.
    """
    if audit.verdict is Verdict.PASSES:
        lists = [found for chapter in CHAPTERS for found in chapter.identified(audit)]
        nothing = bool(lists) and all(n == 0 and fewest <= n_members for n, fewest, n_members in lists)
        identified = ", and no training record was identified" if nothing else ""
        said = f"No measure was shown to exceed its limit{identified}."
        return _joined(said, rests_on(audit), not_proven(audit), ADVICE[audit.verdict])
    defended = {chapter.question for chapter in CHAPTERS if chapter.is_defended}
    failed = {finding.question for finding in audit.findings if finding.verdict is Verdict.FAILS}
    return f"{ADVICE[audit.verdict]} {PROTECT}" if protect and failed & defended else ADVICE[audit.verdict]


def remedies(audit: AuditDocument) -> list[str]:
    """What to do about the grounds; where the audit cannot tell, what settles every open finding.

    Each advice is given once, and none that stands in another.
    """
    if audit.verdict is Verdict.CANNOT_TELL:
        deciding = [finding for finding in audit.findings if finding.verdict is audit.verdict]
    else:
        deciding = [ground.clearest for ground in grounds(audit)]
    said = list(dict.fromkeys(finding.remedy for finding in deciding if finding.remedy))
    said = [one for one in said if not any(one != other and _contains(other, one) for other in said)]
    first = next((place for place, one in enumerate(said) if REGULARISE in one), None)
    if first is not None and TREES.search(audit.description.learner or ""):
        said[first] = said[first].replace(REGULARISE, REGULARISE_TREES, 1)
    return said


def _contains(advice: str, other: str) -> bool:
    """Whether other advice stands in an advice, word for word, and not under the condition of another."""
    return re.search(rf"(?<!\w){re.escape(other)}(?!\w)", advice.partition("otherwise ")[0]) is not None


def tally(document: Document) -> str:
    """How many of the models got which verdict, worst first.

    A document of one audit has no use for it.
    """
    verdicts = [audit.verdict for audit in document.audits]
    said = [
        counted(verdicts.count(verdict), verdict.value, several)
        for verdict, several in (
            (Verdict.FAILS, "fail"),
            (Verdict.CANNOT_TELL, "cannot tell"),
            (Verdict.PASSES, "pass"),
        )
        if verdict in verdicts
    ]
    return f"Of {counted(len(verdicts), 'model')}: {', '.join(said)}." if said else "No model was audited."


def rule(audit: AuditDocument) -> list[str]:
    """The release rule that the verdict refers to, in sentences."""
    said = [demand for chapter in CHAPTERS for demand in chapter.rule(audit)]
    level = per_cent(audit.rule.confidence)
    alone = f"Each interval on an advantage has a confidence of {level}"
    ours_alone = all(one.name in TITLES for one in audit.attacks)
    together = "together" if ours_alone else "of leakgauge together, and for all others together"
    return [*said, f"{alone}; those that show that the limit is exceeded have it for all attacks {together}."]


def statement(audit: AuditDocument, version: str) -> list[tuple[str, str]]:
    """The paragraph for the file: who was assumed to attack, what was tested, what was found, what was not tested.

    Args:
        audit: the audit.
        version: of leakgauge.

    Returns:
        Its parts in order, each with a name and its sentences; joined they make one paragraph.
    """
    what = audit.description
    learner = "" if what.learner is None else f" (training algorithm: {what.learner})"
    records = f"{counted(what.n_train, 'training record')} and {counted(what.n_holdout, 'holdout record')}"
    tested = listing(phrase for chapter in CHAPTERS for phrase in chapter.tested(audit))
    results = [said for chapter in CHAPTERS for said in chapter.results(audit)]
    parts = [
        ("Audited", f"The model “{what.model}”{learner}, with leakgauge {version}, on {records}."),
        ("Threat model", _threat_model(audit)),
        ("Tested", f"{capital(tested)}." if tested else "Nothing could be tested."),
        ("Results", _joined(*results)),
        ("Release rule", " ".join(rule(audit))),
        ("Claim", _joined(*(sentence(one.reason) for one in audit.findings if one.question == CLAIM))),
        ("Verdict", _joined(f"{headline(audit)}.", rests_on(audit), not_proven(audit), ADVICE[audit.verdict])),
        ("Not tested", " ".join(sentence(item) for item in audit.not_tested)),
        ("Reach", REACH),
    ]
    return [(name, what.worded(said)) for name, said in parts if said]


def _threat_model(audit: AuditDocument) -> str:
    """Who is assumed to attack; follows from what was carried out."""
    n_shadows = audit.method.get("shadow_models") or 0
    knows = (
        "knows the learning algorithm and holds records of the same population "
        f"({counted(n_shadows, 'shadow model')} were trained)"
        if n_shadows
        else "trains no shadow models"
    )
    parameters = (
        "The attacks on answers do not use the model’s parameters."
        if audit.method.get("released_to") == "file"
        else "The attacker does not know the model’s parameters."
    )
    said = (
        f"The attacker queries the model any number of times, receives {released(audit)}, knows the target record, and "
        f"{knows}. {parameters}"
    )
    return _joined(said, *(chapter.attacker(audit) for chapter in CHAPTERS))


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))
