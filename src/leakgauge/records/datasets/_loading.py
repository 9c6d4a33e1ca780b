"""The door: `load(name)`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leakgauge.errors import DataError
from leakgauge.records._messages import closest
from leakgauge.records.datasets import _text
from leakgauge.records.datasets._catalogue import ENTRIES, Entry
from leakgauge.records.datasets._files import obtain
from leakgauge.records.table import Records


@dataclass(frozen=True, eq=False)
class Dataset:
    """A public data set.

    Attributes:
        name: Its name here.
        records: All its records, in the original order.
        description: What a row is, what is predicted, and what was changed.
        source: Public name and home.
        licence: As stated at the home; check it before redistributing.
    """

    name: str
    records: Records = field(repr=False)
    description: str
    source: str
    licence: str

    @property
    def sensitive(self) -> tuple[str, ...]:
        """Names of the columns that attribute inference tries to guess."""
        return self.records.schema.sensitive


def names() -> tuple[str, ...]:
    """Names of all data sets, in alphabetical order.

    >>> "adult" in names()
    True
    """
    return tuple(sorted(ENTRIES))


def load(name: str, *, path: str | Path | None = None, progress: bool = True) -> Dataset:
    """Load a public data set.

    Those that come with scikit-learn (breast-cancer, diabetes, digits, wine) need no files. For the others the files
    are looked for in the folder that the environment variable `LEAKGAUGE_DATA` names, then in the user's cache
    (`$XDG_CACHE_HOME/leakgauge` or `~/.cache/leakgauge`), and fetched from their public home into the cache if they
    are in neither. Either way they are used only if their checksum agrees.

    Args:
        name: One of `names()`.
        path: A folder to look in instead; then nothing is fetched.
        progress: Whether to draw a progress bar on stderr while fetching, if that is a terminal.

    Raises:
        DataError: If the name is unknown, the files cannot be had, or a checksum is wrong.
        MissingExtra: If reading the files needs a package that is not installed (Pillow for JPEG images).

    >>> wine = load("wine")
    >>> len(wine.records), wine.records.schema.n_features, wine.records.schema.classes
    (178, 13, ('class_0', 'class_1', 'class_2'))
    """
    if name not in ENTRIES:
        raise DataError(f"there is no data set {name!r}; {closest(name, names())}")
    entry = ENTRIES[name]
    content, note = _content(name, entry, path, progress)
    return _dataset(name, entry, entry.build(content), note)


def enron_spam(n_words: int = 1000, *, path: str | Path | None = None, progress: bool = True) -> Dataset:
    """The data set enron-spam with a vocabulary of another size.

    Args:
        n_words: How many of the most frequent words of the whole corpus are counted, at least 1.
        path: As for `load`.
        progress: As for `load`.

    Raises:
        DataError: As for `load`, or if `n_words` is below 1.
    """
    entry = ENTRIES["enron-spam"]
    content, note = _content("enron-spam", entry, path, progress)
    return _dataset("enron-spam", entry, _text.word_counts(content, n_words), note)


def enron_messages(*, path: str | Path | None = None, progress: bool = True) -> tuple[_text.Message, ...]:
    """The messages of enron-spam themselves, in the order of its records.

    Args:
        path: As for `load`.
        progress: As for `load`.

    Raises:
        DataError: As for `load`.
    """
    content, _ = _content("enron-spam", ENTRIES["enron-spam"], path, progress)
    messages: tuple[_text.Message, ...] = content.messages
    return messages


def _content(name: str, entry: Entry, path: str | Path | None, progress: bool) -> tuple[Any, str]:
    if not entry.forms:
        return None, ""
    found = obtain(name, entry.forms, path=path, progress=progress)
    return found.content, found.form.note


def _dataset(name: str, entry: Entry, records: Records, note: str) -> Dataset:
    return Dataset(name, records, f"{entry.description} {note}".rstrip(), entry.source, entry.licence)
