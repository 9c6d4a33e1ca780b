"""Audits on the terminal: verdict first, then why, then what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from leakgauge.report.chapters import CHAPTERS
from leakgauge.report.statement import advice, remedies, rests_on, tally, verdict_on_all
from leakgauge.report.terminal.tables import STYLES, plain_table, show_table
from leakgauge.report.words import (
    ADVICE,
    ADVICE_FOR_SEVERAL,
    MARKS,
    REMEDY_TITLES,
    against_limit,
    counted,
    interval,
    limit_of,
    marked,
    number,
    places_for,
    released,
    sentence,
    unmeasured,
    value_of,
)

if TYPE_CHECKING:
    from leakgauge.auditing import AuditDocument, Document, Finding

WIDE_TERMINAL_COLUMNS = 110
"""Columns from which numbers and reasons stand beside a finding; below, they stand under it."""

MAX_LINE_COLUMNS = 132
"""Longer lines are hard to read."""


def show_audits(document: Document, console: Console) -> None:
    """Print the verdict, and each model's findings with their reasons.

    Args:
        document: the result.
        console: where to print.
    """
    console.width = min(console.width, MAX_LINE_COLUMNS)
    console.print(_headline(document))
    for audit in document.audits:
        console.print()
        _show_audit(audit, console, several=len(document.audits) > 1)


def _headline(document: Document) -> RenderableType:
    style = STYLES[document.verdict.value]
    models = [audit.description.model for audit in document.audits]
    name = ": ".join(filter(None, (document.name, *(models if len(models) == 1 else ()))))
    text = Text.assemble((f"{MARKS[document.verdict]} {verdict_on_all(document)}", f"bold {style}"))
    text.append(f"  {name}\n", style="bold")
    if len(document.audits) > 1:
        text.append(f"{tally(document)} {ADVICE_FOR_SEVERAL[document.verdict]}")
    else:
        text.append(advice(document.audits[0]) if document.audits else ADVICE[document.verdict])
    return Padding(text, (0, 0))


def _show_audit(audit: AuditDocument, console: Console, *, several: bool) -> None:
    if several:
        style = STYLES[audit.verdict.value]
        console.rule(
            Text.assemble(audit.description.model, "  ", (marked(audit.verdict), style)), align="left", style="dim"
        )
    console.print(Text(audit.description.worded(_description(audit)), style="dim"))
    if several and (left_out := rests_on(audit)):
        console.print(Text(left_out))
    console.print()
    show_table(_findings(audit, console.width), console)
    said = [(chapter.title, chapter.summary(audit)) for chapter in CHAPTERS]
    said += [(REMEDY_TITLES[audit.verdict], remedies(audit)), ("Notes", list(audit.notes))]
    for title, sentences in said:
        if sentences:
            console.print()
            console.print(Text(title, style="bold"))
            for one in sentences:
                console.print(_bullet(audit.description.worded(sentence(one))))


def _description(audit: AuditDocument) -> str:
    what = audit.description
    score = "RMSE" if what.answers == "values" else "accuracy"
    scores = ""
    if what.knows_classes:
        scores = f"; {score} {number(what.train_score.value)} on training, "
        scores += f"{number(what.holdout_score.value)} on holdout {'records' if what.n_rows is None else 'rows'}"
    return (
        f"{what.n_train:,} training and {counted(what.n_holdout, 'holdout record')}; released outputs: "
        f"{released(audit)}{scores}."
    )


def _findings(audit: AuditDocument, width: int) -> Table:
    """The findings, one a row; reasons stand beside the numbers where there is room, else numbers and reasons below."""
    table = plain_table(show_header=width >= WIDE_TERMINAL_COLUMNS)
    table.add_column("verdict", no_wrap=True)
    table.add_column("measure", ratio=5)
    if width < WIDE_TERMINAL_COLUMNS:
        for finding in audit.findings:
            table.add_row(_verdict(finding), _below(finding))
        return table
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("interval", no_wrap=True)
    table.add_column("limit", justify="right", no_wrap=True)
    table.add_column("reason", ratio=6)
    for finding in audit.findings:
        table.add_row(_verdict(finding), *_beside(finding))
    return table


def _verdict(finding: Finding) -> Text:
    return Text(marked(finding.verdict), style=STYLES[finding.verdict.value])


def _below(finding: Finding) -> Text:
    return Text.assemble(finding.measure, "\n", against_limit(finding), ("\n" + sentence(finding.reason), "dim"))


def _beside(finding: Finding) -> list[Text]:
    places = places_for(finding.threshold)
    value, around = "–", unmeasured(finding)
    if finding.estimate is not None:
        value, around = value_of(finding), interval(finding.estimate, places)
    cells = (finding.measure, value, around, limit_of(finding).removeprefix("limit "))
    return [*(Text(cell) for cell in cells), Text(sentence(finding.reason), style="dim")]


def _bullet(text: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("•", Text(text))
    return grid
