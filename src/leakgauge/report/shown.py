"""Results as Python shows them: below a cell of a notebook, as text, and as a page in the browser."""

from __future__ import annotations

import re
import tempfile
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

from markupsafe import Markup

from leakgauge.auditing import AuditDocument, Document, Explanation, Finding, Verdict
from leakgauge.auditing.shown import Shown
from leakgauge.checking import whole
from leakgauge.comparing import AttackComparison, AttackStrength
from leakgauge.drawing.marks import style as drawn_style
from leakgauge.errors import ConfigError
from leakgauge.escaping import every_line, one_line
from leakgauge.progress import in_notebook
from leakgauge.protecting import Protection, ProtectionDocument, TriedDocument
from leakgauge.report import protection as protections
from leakgauge.report import statement, words
from leakgauge.report.figures import verdict_class
from leakgauge.report.page import _environment, _source, render_html
from leakgauge.report.terminal import (
    not_tried,
    show_audits,
    show_comparison,
    show_explanation,
    show_protection,
    text_of,
)
from leakgauge.report.terminal.comparison import COLUMNS, measured
from leakgauge.report.terminal.explanation import cost as cost_of
from leakgauge.report.terminal.explanation import duration
from leakgauge.statistics import Estimate
from leakgauge.training import write_atomically

MAX_ROWS, MAX_CHARACTERS = 24, 360
"""Of a table below a cell, and of one text in it: notebooks keep what they show, and the report has all of it."""


@dataclass(frozen=True)
class Card:
    """What stands below a cell about one model.

    Args:
        verdict: the verdict, or ``None`` where nothing was judged.
        headline: what it amounts to.
        name: of the model.
        sentences: what to do, and what it was measured on.
        reasons: why, each with its question.
        caption: of the table.
        header: names of its columns.
        rows: of it; the verdict of a row, or ``None``, and its cells, the first of which is its name.
        more: where to find what was left out of it; empty where nothing was.
    """

    verdict: Verdict | None
    headline: str
    name: str
    sentences: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...]
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Verdict | None, tuple[str, ...]], ...]
    more: str

    @property
    def state(self) -> str:
        """The class of the style sheet."""
        return "" if self.verdict is None else verdict_class(self.verdict)


def fragment(result: Shown) -> str:
    """HTML for below a cell: verdict, reasons and the main table; no script, no picture, and no record.

    It brings its own colours for light and dark, and is smaller than 20 kB for one model. Every name in it is escaped
    and cut off where it is long.
    """
    template = _environment().get_template("fragment.html")
    return template.render(cards=_cards(result), style=Markup(_style()), marked=words.marked, classes=verdict_class)


def summary(result: Shown, width: int) -> str:
    """What the command line prints about a result, on so many columns."""
    columns: int = whole(20)("width", width)
    match result:
        case AuditDocument() | Document():
            return text_of(lambda console: show_audits(_document(result), console), columns)
        case Protection():
            shown = text_of(lambda console: show_protection(result, console), columns)
            return "\n".join([shown, *not_tried(result)])
        case Explanation():
            return text_of(lambda console: show_explanation(result, console), columns)
        case AttackComparison():
            return text_of(lambda console: show_comparison(result, console), columns)
    raise TypeError(f"a {type(result).__name__} has no summary")


def page(result: Shown) -> str:
    """The report of an audit or of defences, as one page."""
    match result:
        case AuditDocument():
            return render_html(Document.of("audit", [result]))
        case Document():
            return render_html(result)
        case Protection():
            return protections.render_protection(ProtectionDocument.of(result))
    raise TypeError(f"a {type(result).__name__} has no report")


def write_page(result: Shown, path: Path) -> Path:
    """Write the report, whole or not at all, readable by its owner alone; its path."""
    content = page(result).encode("utf-8", "replace")
    write_atomically(path, lambda file: file.write(content))
    return path


def show(result: Shown) -> None:
    """The report below the cell, in a frame of its own, or in the browser."""
    if in_notebook():
        from IPython.display import display

        frame = (
            f'<div><iframe title="leakgauge report" sandbox="allow-scripts" srcdoc="{escape(page(result))}" '
            'style="width:100%;height:44rem;border:0"></iframe></div>'
        )
        display({"text/html": frame, "text/plain": summary(result, 100)}, raw=True)
        return
    path = write_page(result, Path(tempfile.mkdtemp(prefix="leakgauge-")) / "report.html")
    if not webbrowser.open(path.as_uri()):
        raise ConfigError(f"no browser could be opened; the report is in {path}")


def _document(result: AuditDocument | Document) -> Document:
    """As one document; that of a single result has no name besides the model's."""
    return result if isinstance(result, Document) else Document.of("", [result])


def _cards(result: Shown) -> list[Card]:
    match result:
        case AuditDocument() | Document():
            return [_of_audit(audit) for audit in _document(result).audits]
        case Protection():
            return [_of_protection(ProtectionDocument.of(result))]
        case Explanation():
            return [_of_explanation(every_line(result.described))]
        case AttackComparison():
            return [_of_comparison(result)]
    raise TypeError(f"a {type(result).__name__} cannot be shown")


def _of_audit(audit: AuditDocument) -> Card:
    about = audit.description
    records = f"{about.n_train:,} training and {words.counted(about.n_holdout, 'holdout record')}"
    left_out = len(audit.findings) - MAX_ROWS
    return Card(
        audit.verdict,
        statement.headline(audit),
        _cut(about.model),
        (statement.advice(audit), f"{records}; released outputs: {words.released(audit)}."),
        tuple((ground.question, _cut(words.sentence(ground.clearest.reason))) for ground in statement.grounds(audit)),
        "Measures and their limits",
        ("Measure", "Value", "Interval", "Limit", "Verdict"),
        tuple((finding.verdict, _row(finding)) for finding in _worst_first(audit.findings)[:MAX_ROWS]),
        f"{words.counted(left_out, 'more measure')}: to_frame()." if left_out > 0 else "",
    )


def _worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Where not all can be shown, those that decide come first; else the order of the questions."""
    if len(findings) <= MAX_ROWS:
        return list(findings)
    order = (Verdict.FAILS, Verdict.CANNOT_TELL, Verdict.PASSES)
    return sorted(findings, key=lambda finding: order.index(finding.verdict))


def _row(finding: Finding) -> tuple[str, ...]:
    places = words.places_for(finding.threshold)
    value, interval = _numbers(finding.estimate, places, words.unmeasured(finding))
    return _cut(words.capital(finding.measure)), value, interval, words.short(finding.threshold)


def _numbers(estimate: Estimate | None, places: int = 3, unmeasured: str = "not measured") -> tuple[str, str]:
    if estimate is None:
        return "–", unmeasured
    return words.number(estimate.value, places), words.interval(estimate, places)


def _of_protection(document: ProtectionDocument) -> Card:
    left_out = len(document.tried) - MAX_ROWS
    refused = f"{words.counted(len(document.refused), 'defence')} could not be tried: summary()."
    return Card(
        document.verdict,
        protections.headline(document),
        _cut(document.model),
        (protections.advice(document), *([refused] if document.refused else [])),
        (),
        "Defences, their risk and their cost",
        ("Defence", "Of the limit", "Interval", "Error on the holdout", "Cost", "Verdict"),
        tuple((one.verdict, _tried(one)) for one in document.tried[:MAX_ROWS]),
        f"{words.counted(left_out, 'more defence')}: to_frame()." if left_out > 0 else "",
    )


def _tried(one: TriedDocument) -> tuple[str, ...]:
    cost = "–" if one.name == "unchanged" else words.value_and_interval(one.cost)
    return _cut(words.capital(one.title)), *_numbers(one.of_limits), words.short(one.error.value, 3), cost


def _of_explanation(found: Explanation) -> Card:
    left_out = len(found.steps) - MAX_ROWS
    return Card(
        None,
        "What an audit would do",
        _cut(found.model),
        tuple(map(_cut, (*found.questions, cost_of(found), *(f"Warning: {one}" for one in found.warnings)))),
        (),
        "Models that it takes",
        ("Models for", "Needed", "Trained", "Engine", "Time"),
        tuple(
            (None, (_cut(step.what), f"{step.n_models:,}", f"{step.n_trained:,}", step.engine, duration(step.seconds)))
            for step in found.steps[:MAX_ROWS]
        ),
        f"{words.counted(left_out, 'more step')}: to_frame()." if left_out > 0 else "",
    )


def _of_comparison(found: AttackComparison) -> Card:
    left_out = len(found.attacks) - MAX_ROWS
    missing = f"{words.counted(len(found.not_compared), 'game')} could not be played: summary()."
    return Card(
        None,
        "Membership attacks compared",
        _cut(found.headline),
        (missing,) if found.not_compared else (),
        (),
        f"What the attacks achieved, each interval at {words.per_cent(found.confidence)} by itself",
        COLUMNS,
        tuple(
            (None, (*map(_cut, (one.model, one.data, one.attack, str(one.seed))), *map(measured, _measures(one))))
            for one in found.attacks[:MAX_ROWS]
        ),
        f"{words.counted(left_out, 'more line')}: to_frame()." if left_out > 0 else "",
    )


def _measures(one: AttackStrength) -> tuple[Estimate | None, ...]:
    return one.auc, one.advantage, one.tpr_at_1_percent, one.tpr_at_01_percent


def _cut(text: str) -> str:
    """A text of bounded length; what does not print stands as its escape."""
    text = one_line(text)
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 1] + "…"


@cache
def _style() -> str:
    """The colours of the report's pictures, each for light and dark, and the form of the fragment."""
    blocks = re.findall(r":root \{(.*?)\}", drawn_style(), re.S)
    light, dark = (dict(re.findall(r"--([a-z-]+): ([^;]+);", block)) for block in blocks)
    used = ("paper", "ink", "soft", "line", "passes", "fails", "unsure")
    colours = "".join(f"--{name}:light-dark({light[name]},{dark[name]});" for name in used)
    return _source("fragment.css").replace("/* colours */", colours)
