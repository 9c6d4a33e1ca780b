"""What a model file holds about its training records, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from leakgauge.escaping import every_line
from leakgauge.inspecting.structure import AGAINST_CHECKS
from leakgauge.report.terminal.tables import plain_table, show_table
from leakgauge.report.words import counted, listing
from leakgauge.statistics.numerals import short

if TYPE_CHECKING:
    from leakgauge.inspecting import Inspection, ModelFinding, StructuralCheck

NEEDS = {
    False: "Not needed by prediction",
    True: "Needed by prediction",
    None: "Not known whether prediction needs it",
}
"""Headings of findings, in their order."""

STYLES = {"passes": "green", "warns": "yellow", "fails": "red", "not applicable": "dim"}


def show_inspection(found: Inspection, console: Console) -> None:
    """Print what a model holds, and the structural checks; values, words and ids are not printed.

    Args:
        found: the inspection.
        console: where to print.
    """
    found = every_line(found)
    console.print(Text.assemble((found.model, "bold"), f"  {_summary(found)}"), soft_wrap=True)
    for needed, heading in NEEDS.items():
        group = [finding for finding in found.findings if finding.needed is needed]
        if group:
            console.print(f"\n{heading}", style="bold")
            _show_findings(group, console)
    console.print(f"\nStructural checks (rule: {found.rule})", style="bold", markup=False)
    _show_checks(found.checks, console)


def _summary(found: Inspection) -> str:
    what = counted(len(found.findings), "finding") if found.findings else "nothing found"
    failed = _failed(found.checks)
    if failed:
        fails = "a structural check fails" if len(failed) == 1 else "structural checks fail"
        what += f", {'and' if found.findings else 'but'} {fails}: {listing(failed)}"
    if found.n_records is None:
        return f"{what}; without training records, values of single records and rare words cannot be recognised"
    whose = "" if found.n_persons == found.n_records else f" of {counted(found.n_persons or 0, 'person')}"
    return f"{what}; compared with {counted(found.n_records, 'training record')}{whose}"


def _failed(checks: tuple[StructuralCheck, ...]) -> list[str]:
    """The names of the checks that fail."""
    return [check.name for check in checks if check.verdict.value == "fails"]


def _show_findings(findings: list[ModelFinding], console: Console) -> None:
    """Those of one kind and remedy together: where, how many, and what to do."""
    for kind, remedy in dict.fromkeys((finding.kind, finding.remedy) for finding in findings):
        console.print(Text(f"  {kind.value}"), style="bold")
        for one in findings:
            if (one.kind, one.remedy) == (kind, remedy):
                whose = "" if one.n_records is None else f", about {counted(one.n_records, 'record')}"
                many = Text(f"{one.n_entries:,} {'entry' if one.n_entries == 1 else 'entries'}{whose}", style="dim")
                console.print(Padding(Text.assemble(one.where, "  ", many), (0, 0, 0, 4)))
        console.print(Padding(Text(f"→ {remedy}"), (0, 0, 0, 4)))


def _show_checks(checks: tuple[StructuralCheck, ...], console: Console) -> None:
    table = plain_table()
    table.add_column("check", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("value", justify="right")
    table.add_column("limit", justify="right")
    table.add_column("why")
    for check in checks:
        value = "–" if check.value is None else short(check.value)
        verdict = Text(check.verdict.value, style=STYLES[check.verdict.value])
        table.add_row(check.name, verdict, value, short(check.limit), Text(check.reason))
    show_table(table, console)
    for name in _failed(checks):
        console.print(Padding(Text(f"→ {name}: {AGAINST_CHECKS[name]}"), (0, 0, 0, 2)))
