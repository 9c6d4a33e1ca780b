"""Defences tried on one model, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from leakgauge.escaping import one_line
from leakgauge.protecting import ProtectionDocument, of_limits
from leakgauge.report.protection import advice, headline
from leakgauge.report.terminal.tables import STYLES, plain_table, show_table
from leakgauge.report.words import interval, marked, number, short

if TYPE_CHECKING:
    from leakgauge.protecting import Protection, Tried
    from leakgauge.statistics import Estimate


def show_protection(found: Protection, console: Console) -> None:
    """Print what each defence is worth and costs, and which is the cheapest that passes.

    Args:
        found: the defences tried on one model.
        console: where to print.
    """
    document = ProtectionDocument.of(found)
    console.print(document.model, style="bold", markup=False)
    show_table(_table(found), console)
    if len(found.tried) > 1:
        together = f"The intervals hold for all {len(found.tried)} models together"
        console.print(f"{together}: they are wider than those of an audit of one.", style="dim", markup=False)
    console.print(f"{headline(document)}.", style=STYLES[found.verdict.value], markup=False)
    console.print(advice(document), markup=False)


def not_tried(found: Protection) -> list[str]:
    """Why each defence that could not be tried was not, in sentences."""
    refused = ProtectionDocument.of(found).refused
    return [f"Not tried: {name}: {one.reason} ({one.error})" for name, one in refused.items()]


def _table(found: Protection) -> Table:
    table = plain_table()
    table.add_column("defence")
    table.add_column("verdict", no_wrap=True)
    more = "log loss" if found.undefended.calibration is not None else "error"
    for heading in ("of the\nlimit", "largest\nPDTP", "error on\nholdout", f"more {more}\nthan without"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in found.tried:
        table.add_row(*_cells(one))
    for refused in found.refused.values():
        table.add_row(escape(refused.title), "not tried", *["–"] * 4)
    return table


def _cells(one: Tried) -> tuple[str, ...]:
    influence = one.result.influence
    verdict = f"[{STYLES[one.verdict.value]}]{marked(one.verdict)}[/]"
    pdtp = "–" if influence is None else short(influence.largest, 3)
    found = of_limits(one.result)
    risk = "–" if found is None else _interval(found, 2)
    cost = "–" if one.defence.name == "unchanged" else _interval(one.cost)
    return escape(one_line(one.defence.title)), verdict, risk, pdtp, short(one.error.value, 3), cost


def _interval(ours: Estimate, places: int = 3) -> str:
    """A value, and its interval on a line below."""
    return f"{number(ours.value, places)}\n[dim]{interval(ours, places)}[/]"
