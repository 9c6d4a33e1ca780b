"""A Markdown fragment for model cards and for the summary page of a pipeline."""

from __future__ import annotations

from leakgauge.auditing import AuditDocument, Document, Finding
from leakgauge.escaping import markdown as escape
from leakgauge.report.statement import advice, grounds, headline, remedies, statement, tally, verdict_on_all
from leakgauge.report.words import (
    ADVICE_FOR_SEVERAL,
    MARKS,
    REMEDY_TITLES,
    capital,
    interval,
    limit_of,
    marked,
    places_for,
    sentence,
    unmeasured,
    value_of,
)


def markdown(document: Document) -> str:
    """The verdict, the findings and, for each model, a paragraph for the file of a data-protection officer.

    The paragraph states who was assumed to attack, what was tested, the bounds with their confidence, and what was
    not tested; it stands alone, so that it can be copied. Names that come from the user are written so that Markdown
    shows them as they are.

    Returns:
        GitHub-flavoured Markdown from the second heading level down, ending in a newline.
    """
    several = len(document.audits) != 1
    parts = [f"## Privacy audit: {escape(document.name if several else document.audits[0].description.model)}"]
    if several:
        said = f"{tally(document)} {ADVICE_FOR_SEVERAL[document.verdict]}"
        parts += [f"**{MARKS[document.verdict]} {verdict_on_all(document)}.** {said}", _overview(document)]
    for audit in document.audits:
        parts += _audit(audit, document.leakgauge, several=several)
    return "\n\n".join(parts) + "\n"


def _overview(document: Document) -> str:
    rows = [
        f"| {escape(audit.description.model)} | {marked(audit.verdict)} | {escape(_first_ground(audit))} |"
        for audit in document.audits
    ]
    return "\n".join(["| Model | Verdict | Reason |", "|---|---|---|", *rows])


def _first_ground(audit: AuditDocument) -> str:
    found = grounds(audit)
    return sentence(found[0].clearest.reason) if found else "No measure was compared with the rule."


def _audit(audit: AuditDocument, version: str, *, several: bool) -> list[str]:
    level = "###" if several else "##"
    parts = [f"### {escape(audit.description.model)}"] if several else []
    parts.append(f"**{MARKS[audit.verdict]} {headline(audit)}.** {advice(audit)}")
    why = [f"- {escape(sentence(ground.clearest.reason))}" for ground in grounds(audit)]
    what = [f"- {REMEDY_TITLES[audit.verdict]}: {escape(sentence(remedy))}" for remedy in remedies(audit)]
    if why or what:
        parts.append("\n".join([*why, *what]))
    rows = [_row(finding) for finding in audit.findings]
    parts.append("\n".join(["| Measure | Value | Interval | Limit | Verdict |", "|---|--:|---|--:|---|", *rows]))
    parts += [f"{level}# For the file", _paragraph(audit, version)]
    if audit.notes:
        parts += [f"{level}# Notes", "\n".join(f"- {escape(note)}" for note in audit.notes)]
    return parts


def _paragraph(audit: AuditDocument, version: str) -> str:
    return " ".join(f"**{name}:** {escape(said)}" for name, said in statement(audit, version))


def _row(finding: Finding) -> str:
    places = places_for(finding.threshold)
    value, around = unmeasured(finding), "–"
    if finding.estimate is not None:
        value, around = value_of(finding), interval(finding.estimate, places)
    limit = limit_of(finding).removeprefix("limit ")
    cells = [escape(capital(finding.measure)), value, around, limit, marked(finding.verdict)]
    return f"| {' | '.join(cells)} |"
