"""Attacks compared, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from leakgauge.escaping import every_line
from leakgauge.report.terminal.tables import plain_table, show_table
from leakgauge.report.words import value_and_interval

if TYPE_CHECKING:
    from leakgauge.comparing import AttackComparison
    from leakgauge.statistics import Estimate

COLUMNS = ("model", "data", "attack", "seed", "AUC", "advantage", "TPR at FPR 1 %", "TPR at FPR 0.1 %")


def show_comparison(found: AttackComparison, console: Console) -> None:
    """Print what each attack achieved on each model, data set and seed, and what could not be compared.

    Args:
        found: the comparison.
        console: where to print.
    """
    console.print(Text(found.headline, style="bold"))
    table = plain_table()
    for column in COLUMNS:
        table.add_column(column)
    for one in every_line(found.attacks):
        rates = (one.tpr_at_1_percent, one.tpr_at_01_percent)
        measures = map(measured, (one.auc, one.advantage, *rates))
        table.add_row(Text(one.model), Text(one.data), one.attack, str(one.seed), *measures)
    if found.attacks:
        show_table(table, console)
    for missing in every_line(found.not_compared):
        place = f"{missing.attack} on {missing.model}, {missing.data}, seed {missing.seed}"
        console.print(Text.assemble(("Not compared: ", "bold yellow"), f"{place}: {missing.reason}"))


def measured(estimate: Estimate | None) -> str:
    """A value with its interval, or that it is not resolved."""
    return "not resolved" if estimate is None else value_and_interval(estimate)
