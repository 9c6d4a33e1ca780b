"""Data sets of text: messages, and how often each word occurs in them."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leakgauge.errors import DataError
from leakgauge.records.columns import Column, Kind, Role
from leakgauge.records.datasets._files import opened_tar, unpacked
from leakgauge.records.schema import Schema
from leakgauge.records.table import Records

_MAX_BYTES = 1 << 28
_MISSING_HERE = ("enron4", "spam", "3111.")  # part, label and start of the file name


@dataclass(frozen=True)
class Message:
    """One message: which part of the corpus and file it is from, ham or spam, and its bytes as Latin-1 text."""

    part: str
    file: str
    label: str
    text: str

    @property
    def id(self) -> str:
        """What its record is called."""
        return f"{self.part}/{self.file}"


@dataclass(frozen=True)
class Corpus:
    """Messages in the order of part, label and file name."""

    messages: tuple[Message, ...]

    def digest(self) -> str:
        """The sha256, in hexadecimal, of all fields of all messages."""
        hasher = hashlib.sha256()
        for message in self.messages:
            fields = (message.part, message.file, message.label, message.text)
            hasher.update("\0".join((*fields, "")).encode("utf-8"))
        return hasher.hexdigest()


def read_lines(paths: Sequence[Path]) -> Corpus:
    """One JSON object per line: `part`, `file`, `label`, `text`."""
    (path,) = paths
    lines = unpacked(path, _MAX_BYTES).decode("utf-8").split("\n")
    return _in_order([Message(**json.loads(line)) for line in lines if line])


def read_archives(paths: Sequence[Path]) -> Corpus:
    """Six tar archives with one file per message, in folders such as `enron1/ham`.

    One message of the corpus, number 3111 of the spam of enron4, is passed over: it is missing from the copy by
    which the content is checked.
    """
    messages = []
    for path in paths:
        with opened_tar(path) as archive:
            messages += _archived(archive)
    return _in_order(messages)


def word_counts(corpus: Corpus, n_words: int) -> Records:
    """How often each of the most frequent words of the whole corpus occurs in each message.

    The choice of words is part of what everybody knows here (public preprocessing), not of what a model learns from
    its training set.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    if n_words < 1:
        raise DataError(f"n_words must be at least 1, got {n_words}; ask for one word or more.")
    vectorizer = CountVectorizer(max_features=n_words)
    counts = vectorizer.fit_transform([message.text for message in corpus.messages])
    columns = tuple(Column(str(word), dtype="int64") for word in vectorizer.get_feature_names_out())
    target = Column(_unlike(columns), Kind.CATEGORICAL, Role.TARGET, ("ham", "spam"), dtype="string")
    labels = np.array([message.label == "spam" for message in corpus.messages], dtype=np.int64)
    ids = np.array([message.id for message in corpus.messages])
    return Records(counts.toarray().astype(np.float64), labels, Schema(columns, target), ids)


def _archived(archive: tarfile.TarFile) -> list[Message]:
    messages = []
    for member in archive:
        part, label, file = (["", "", *member.name.split("/")])[-3:]
        wanted = member.isfile() and label in ("ham", "spam") and member.size <= 1 << 24
        if not wanted or ((part, label) == _MISSING_HERE[:2] and file.startswith(_MISSING_HERE[2])):
            continue
        stream = archive.extractfile(member)
        messages.append(Message(part, file, label, stream.read().decode("latin-1") if stream else ""))
    return messages


def _in_order(messages: Sequence[Message]) -> Corpus:
    return Corpus(tuple(sorted(messages, key=lambda message: (message.part, message.label, message.file))))


def _unlike(columns: Sequence[Column]) -> str:
    return "is_spam" if any(column.name == "label" for column in columns) else "label"
