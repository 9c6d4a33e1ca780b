"""``leakgauge explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakgauge.cli._options import (
    AllowPickle,
    Attributes,
    Budget,
    HoldoutRecords,
    Models,
    ProfileName,
    Properties,
    Seed,
    Source,
    TrainRecords,
    configured,
    tell_of_pickles,
)

if TYPE_CHECKING:
    from leakgauge.auditing import Subject


def explain(
    source: Source,
    model: Models = None,
    seed: Seed = None,
    train_records: TrainRecords = None,
    holdout_records: HoldoutRecords = None,
    attribute: Attributes = None,
    property: Properties = None,
    budget: Budget = None,
    profile: ProfileName = None,
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
    from leakgauge.escaping import one_line
    from leakgauge.progress import of_part, reported
    from leakgauge.report.terminal import show_explanation

    config = configured(source, model, seed, train_records, holdout_records, attribute, property, budget, profile)
    if allow_pickle:
        tell_of_pickles(config)
    subjects = config.subjects(allow_pickle=allow_pickle)
    with reported(True) as tell:
        explanations = [
            explain_subject(what, config.settings(), progress=of_part(what.name, tell)) for what in subjects
        ]
    console = results()
    console.print(one_line(_data(config.name, subjects[0])), style="bold", markup=False)
    for found in explanations:
        console.print()
        show_explanation(found, console)


def _data(name: str, what: Subject) -> str:
    from leakgauge.report.words import counted

    schema = what.train.schema
    if what.only_scores:
        return f"{name}: scores of {len(what.train):,} training and {counted(len(what.holdout), 'holdout record')}"
    units = [part.units for part in (what.train, what.holdout)]
    persons = f" of {len(units[0]):,} and {len(units[1]):,} persons" if not all(one.single for one in units) else ""
    predicted = counted(len(schema.classes), "class", "classes") if schema.classes else "a number"
    return (
        f"{name}: {len(what.train):,} training and {counted(len(what.holdout), 'holdout record')}{persons}, "
        f"{counted(schema.n_features, 'column')} ({int(schema.categorical.sum())} categorical), "
        f"predicting {schema.target.name} ({predicted})"
    )
