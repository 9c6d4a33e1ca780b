"""What an audit would do, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from leakgauge.escaping import every_line
from leakgauge.report.terminal.tables import plain_table, show_table
from leakgauge.training.engines.base import RefusalKind

if TYPE_CHECKING:
    from leakgauge.auditing import Explanation
    from leakgauge.auditing.plan import PlannedStep
    from leakgauge.training.engines.base import Refusal


def show_explanation(found: Explanation, console: Console) -> None:
    """Print which models an audit would train, by which engine, how long and with how much memory.

    Args:
        found: what the audit would do.
        console: where to print.
    """
    found = every_line(found.described)
    learner = f"learner {found.learner}" if found.learner else "no learner"
    console.print(Text.assemble((found.model, "bold"), f"  {learner}; outputs {found.answers.value}"))
    if found.steps:
        show_table(_table(found.steps), console)
    trained = [step for step in found.steps if step.refusals and step.engine == "refit"]
    for why in dict.fromkeys(_why(step.refusals, found.learner or "it") for step in trained):
        console.print(f"Trained one after another: {why}.", markup=False)
    for sentence in found.questions:
        console.print(sentence, markup=False)
    console.print(cost(found), markup=False)
    for warning in found.warnings:
        console.print(Text.assemble(("Warning: ", "bold yellow"), warning))


def _table(steps: tuple[PlannedStep, ...]) -> Table:
    table = plain_table()
    table.add_column("models for")
    table.add_column("needed", justify="right")
    table.add_column("trained", justify="right")
    table.add_column("engine")
    table.add_column("time", justify="right")
    for step in steps:
        what = f"{step.what} (if one is above the limit)" if step.sometimes else step.what
        engine = "plain refit" if step.engine == "refit" else step.engine
        took = duration(step.seconds) if step.seconds else "–"
        table.add_row(Text(what), f"{step.n_models:,}", f"{step.n_trained:,}", Text(engine), took)
    return table


def _why(refusals: dict[str, Refusal], learner: str) -> str:
    """Why no engine does it; that one is for other learners or machines is not worth saying for each of them."""
    others = (RefusalKind.LEARNER, RefusalKind.MACHINE)
    telling = dict.fromkeys(refusal.words for refusal in refusals.values() if refusal.why not in others)
    return "; ".join(telling) or f"no faster way is known for {learner}"


def cost(found: Explanation) -> str:
    """Time and memory, in sentences."""
    memory = f"Memory for it: {_size(found.n_bytes)}."
    if found.seconds_per_fit is None:
        took = f" The attacks take about {duration(found.seconds_attacks)}." * (found.seconds_attacks > 0)
        return f"Nothing is trained.{took} {memory}"
    more = f", and {duration(found.seconds_more)} more if a second measurement is needed" if found.seconds_more else ""
    return (
        f"About {duration(found.seconds)} of training on one worker{more}; a rough estimate from a few models "
        f"trained now, the first in {duration(found.seconds_per_fit)}. "
        f"The attacks take about {duration(found.seconds_attacks)}. "
        f"{memory}"
    )


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    if seconds < 1:
        return f"{max(seconds, 0.001) * 1000:.0f} ms"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _size(n_bytes: int) -> str:
    if n_bytes < 1e6:
        return "less than 1 MB"
    return f"about {n_bytes / 1e6:,.0f} MB" if n_bytes < 1e9 else f"about {n_bytes / 1e9:,.1f} GB"
