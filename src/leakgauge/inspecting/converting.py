"""A model as a skops file, which answers as the model does: a trusted pickle, once, by who made it, or a copy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakgauge.errors import ModelError
from leakgauge.inspecting.queries import answers_of, equal_answers, queries_for
from leakgauge.models import load_estimator
from leakgauge.models.writing import as_skops, require_new, write_new

ROUNDING = 1e-9
"""By which answers of two copies of a model may differ, relative to their size: sums depend on where numbers lie."""


@dataclass(frozen=True)
class Converted:
    """A skops file that was written.

    Args:
        trusted: full names of the types in it that have to be trusted by name.
        compared: the methods whose answers were found to be the same; none where the model answers no made-up query.
        queries: what they were asked.
    """

    trusted: tuple[str, ...]
    compared: tuple[str, ...]
    queries: str


def convert_pickle(source: Path, target: Path) -> Converted:
    """Open a pickle, which runs code in it, and write the model as a skops file.

    Args:
        source: a pickle or joblib file of one's own.
        target: the file to write, which must not exist.

    Raises:
        ModelError: the pickle cannot be opened, skops cannot store it, or the stored model answers something else.
        MissingExtra: skops is not installed.
    """
    require_new(target, ".skops")
    return written_as_skops(load_estimator(source, allow_pickle=True), source, target)


def written_as_skops(model: Any, source: Path, target: Path) -> Converted:
    """Write an estimator as a skops file, once what is stored was asked and answers as it does.

    Args:
        model: the estimator.
        source: the file it came from.
        target: the file to write, which must not exist.

    Raises:
        ModelError: skops cannot store it, or the stored model answers something else.
        MissingExtra: skops is not installed.
    """
    require_new(target, ".skops")
    content, stored, trusted = as_skops(model, source, target)
    queries = queries_for(model, None)
    same = equal_answers(answers_of(model, queries), answers_of(stored, queries), ROUNDING)
    if type(stored) is not type(model) or not same:
        raise ModelError(f"the stored {type(model).__name__} answers otherwise than the model; it was not written")
    write_new(target, content)
    return Converted(trusted, queries.methods, queries.told)
