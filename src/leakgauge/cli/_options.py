"""Arguments that several commands share, and the configuration they make."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from leakgauge.cli._console import remark

if TYPE_CHECKING:
    from leakgauge.auditing.config import Config


def at_least(lowest: int) -> Callable[[int | None], int | None]:
    """A check of an option's number, with the value in its message."""

    def checked(value: int | None) -> int | None:
        if value is not None and value < lowest:
            raise typer.BadParameter(f"got {value}, expected a whole number of at least {lowest}")
        return value

    return checked


def folder(text: str) -> Path:
    """The path of a folder; an empty one, such as of a variable that is not set, would be the current folder."""
    if not text or "\0" in text:
        raise typer.BadParameter(f"got {'an empty text' if not text else 'a NUL character'}, expected a folder")
    return Path(text)


Source: TypeAlias = Annotated[
    str, typer.Argument(metavar="SOURCE", help="A TOML file, or the name of a public data set such as breast-cancer.")
]
RunFolder: TypeAlias = Annotated[
    Path, typer.Argument(metavar="RUN", help="The run folder of a finished audit.", show_default=False)
]
Models: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="For a data set: a recipe, such as naive-bayes. For a file: one of its models. Repeatable."
    ),
]
Seed: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", callback=at_least(0), help="Seed of all random numbers.", show_default="0")
]
TrainRecords: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", callback=at_least(1), help="How many training records to draw.", show_default="half"),
]
HoldoutRecords: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", callback=at_least(1), help="How many holdout records to draw.", show_default="half"),
]
Attributes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A sensitive attribute to infer. Repeatable.", show_default="sensitive ones"),
]
Properties: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        metavar="PROPERTY",
        help="A target property of the training set: COLUMN=VALUE, COLUMN<NUMBER or COLUMN>NUMBER. Repeatable.",
        show_default="none",
    ),
]
Budget: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Processor time for leaving records out, about: 90s, 10m, 2h, or none to leave out every record.",
        show_default="2m",
    ),
]
ProfileName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="smoke: in an eighth of the time, as far as that allows. thorough: more models, and all records. Settings "
        "that are given otherwise count instead.",
        show_default="routine",
    ),
]
LabelColumn: TypeAlias = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The label column of these files.", show_default="none")
]
AllowPickle: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--allow-pickle", help="Open model files that are pickles; these can run code. For your own files only."
    ),
]


def configured(
    source: str,
    models: list[str] | None,
    seed: int | None,
    train_records: int | None,
    holdout_records: int | None,
    attributes: list[str] | None,
    properties: list[str] | None,
    budget: str | None = None,
    profile: str | None = None,
) -> Config:
    """The configuration that a command line describes.

    Args:
        source: a file, or the name of a data set.
        models: recipes for a data set, or names of models in the file.
        seed: replaces the file's.
        train_records: replaces the file's.
        holdout_records: replaces the file's.
        attributes: the columns to infer, in place of the file's or of the sensitive ones.
        properties: the secrets to play about, in place of the file's.
        budget: replaces the file's.
        profile: replaces the file's.
    """
    from leakgauge.auditing.config import Config, load_config

    secrets = [_secret(text) for text in properties or ()]
    if _is_file(source):
        return load_config(source, properties=secrets).changed(
            seed=seed,
            train_records=train_records,
            holdout_records=holdout_records,
            attributes=attributes or (),
            properties=secrets,
            models=models or (),
            budget=_budget(budget),
            profile=profile,
        )
    return Config.for_dataset(
        source,
        models=models or (),
        seed=seed or 0,
        train_records=train_records,
        holdout_records=holdout_records,
        attributes=attributes or (),
        properties=secrets,
        budget=_budget(budget),
        profile=profile,
    )


def tell_of_pickles(config: Config) -> None:
    """Say what is in the pickles that are about to be opened."""
    remark("Pickles are opened: code in the model files runs with your rights.")
    for pickled in config.pickles():
        remark(f"{pickled}.")


def tell_of_changes(run: Path, *names: str) -> None:
    """Say which of these files of a run folder are not as the audit left them."""
    from leakgauge.auditing import Run

    for name in Run(run).changed(*names):
        remark(f"{name} in {run} was changed since the audit, or is damaged: its checksum is another one.")


def tell_of_broken_seals(run: Path) -> None:
    """Say of every file of a run folder that is not as the audit left it what became of it."""
    from leakgauge.auditing import Run

    broken = Run(run).broken_seals()
    tell_of_changes(run, *broken)
    for name, what in broken.items():
        if what != "changed":
            remark(f"{name} in {run} is missing." if what == "missing" else f"{name} in {run} is not of the audit.")


def _budget(text: str | None) -> float | str | None:
    """Seconds, or the word of the file for no budget; ``None`` where none was given."""
    from leakgauge.errors import ConfigError

    if text is None or text == "none":
        return text
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text)
    if found is None:
        raise ConfigError(f"--budget must be a time such as 90s, 10m or 2h, or none, got {text!r}")
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]]


def _secret(text: str) -> dict[str, object]:
    """A property as the file has it."""
    from leakgauge.errors import ConfigError

    found = re.fullmatch(r"(.+?)([=<>])(.+)", text)
    if found is None:
        raise ConfigError(f"--property must be COLUMN=VALUE, COLUMN<NUMBER or COLUMN>NUMBER, got {text!r}")
    column, sign, end = (part.strip() for part in found.groups())
    if sign == "=":
        return {"column": column, "value": end}
    try:
        return {"column": column, "below" if sign == "<" else "above": float(end)}
    except ValueError:
        raise ConfigError(f"--property {text!r}: {end!r} is not a number") from None


def _is_file(source: str) -> bool:
    """What looks like a file is one, even if it is not there: its absence is then what is wrong."""
    return Path(source).suffix.lower() in (".toml", ".json") or "/" in source or os.path.isfile(source)
