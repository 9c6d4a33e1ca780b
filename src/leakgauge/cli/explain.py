"""``leakgauge explain``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from leakgauge.cli._options import (
    AllowPickle,
    Attributes,
    Budget,
    HoldoutRecords,
    Models,
    Properties,
    Seed,
    Source,
    TrainRecords,
    configured,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from leakgauge.auditing import Subject
    from leakgauge.auditing.explain import Explanation
    from leakgauge.auditing.plan import PlannedStep
    from leakgauge.training.engines.base import Refusal


def explain(
    source: Source,
    model: Models = None,
    seed: Seed = None,
    train_records: TrainRecords = None,
    holdout_records: HoldoutRecords = None,
    attribute: Attributes = None,
    property: Properties = None,
    budget: Budget = None,
    allow_pickle: AllowPickle = False,
) -> None:
    """Show what an audit would do: which models, by which engine, about how long, with how much memory.

    A few models of each kind are trained to estimate the time; nothing else is trained and nothing is written.

    [dim]Examples:[/dim]

        leakgauge explain audit.toml
        leakgauge explain adult --model logistic-regression --train-records 1000 --holdout-records 1000
    """
    from leakgauge.auditing.explain import explain_subject
    from leakgauge.cli._console import results
    from leakgauge.escaping import every_line, one_line

    config = configured(source, model, seed, train_records, holdout_records, attribute, property, budget)
    subjects = config.subjects(allow_pickle=allow_pickle)
    explanations = [explain_subject(what, config.settings()) for what in subjects]
    console = results()
    console.print(one_line(_data(config.name, subjects[0])), style="bold", markup=False)
    for found in explanations:
        console.print()
        _show(every_line(replace(found, steps=tuple(replace(step, prepared=None) for step in found.steps))), console)


def _data(name: str, what: Subject) -> str:
    from leakgauge.report.words import counted

    schema = what.train.schema
    if what.only_scores:
        return f"{name}: scores of {len(what.train):,} training and {counted(len(what.holdout), 'holdout record')}"
    predicted = counted(len(schema.classes), "class", "classes") if schema.classes else "a number"
    return (
        f"{name}: {len(what.train):,} training and {counted(len(what.holdout), 'holdout record')}, "
        f"{counted(schema.n_features, 'column')} ({int(schema.categorical.sum())} categorical), "
        f"predicting {schema.target.name} ({predicted})"
    )


def _show(found: Explanation, console: Console) -> None:
    from rich.text import Text

    from leakgauge.cli._console import show_table

    learner = f"learner {found.learner}" if found.learner else "no learner"
    console.print(Text.assemble((found.model, "bold"), f"  {learner}; outputs {found.answers.value}"))
    if found.steps:
        show_table(_table(found.steps), console)
    for step in found.steps:
        if step.refusals and step.engine == "refit":
            console.print(f"Trained one after another: {_why(step.refusals, found.learner or 'it')}.", markup=False)
    for sentence in found.questions:
        console.print(sentence, markup=False)
    console.print(_cost(found), markup=False)
    for warning in found.warnings:
        console.print(Text.assemble(("Warning: ", "bold yellow"), warning))


def _table(steps: tuple[PlannedStep, ...]) -> Table:
    from rich.text import Text

    from leakgauge.cli._console import plain_table

    table = plain_table()
    table.add_column("models for")
    table.add_column("needed", justify="right")
    table.add_column("trained", justify="right")
    table.add_column("engine")
    table.add_column("time", justify="right")
    for step in steps:
        what = f"{step.what} (if one is above the limit)" if step.sometimes else step.what
        engine = "plain refit" if step.engine == "refit" else step.engine
        took = _duration(step.seconds) if step.seconds else "–"
        table.add_row(Text(what), f"{step.n_models:,}", f"{step.n_trained:,}", Text(engine), took)
    return table


def _why(refusals: dict[str, Refusal], learner: str) -> str:
    """Why no engine does it; that one is for other learners or machines is not worth saying for each of them."""
    from leakgauge.training.engines.base import RefusalKind

    others = (RefusalKind.LEARNER, RefusalKind.MACHINE)
    telling = dict.fromkeys(refusal.words for refusal in refusals.values() if refusal.why not in others)
    return "; ".join(telling) or f"no faster way is known for {learner}"


def _cost(found: Explanation) -> str:
    memory = f"Memory for it: {_size(found.n_bytes)}."
    if found.seconds_per_fit is None:
        took = f" The attacks take about {_duration(found.seconds_attacks)}." * (found.seconds_attacks > 0)
        return f"Nothing is trained.{took} {memory}"
    more = f", and {_duration(found.seconds_more)} more if a second measurement is needed" if found.seconds_more else ""
    return (
        f"About {_duration(found.seconds)} of training on one worker{more}; a rough estimate from a few models "
        f"trained now, the first in {_duration(found.seconds_per_fit)}. "
        f"The attacks take about {_duration(found.seconds_attacks)}. "
        f"{memory}"
    )


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{max(seconds, 0.001) * 1000:.0f} ms"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _size(n_bytes: int) -> str:
    if n_bytes < 1e6:
        return "less than 1 MB"
    return f"about {n_bytes / 1e6:,.0f} MB" if n_bytes < 1e9 else f"about {n_bytes / 1e9:,.1f} GB"
