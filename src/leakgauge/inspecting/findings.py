"""What was found in a model file: where it is, what it is about, and whether prediction needs it; never a value."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass


class Kind(enum.StrEnum):
    """What a model holds about its training records."""

    ROWS = "stored rows"
    PER_RECORD = "one entry per training record"
    VALUE = "value of one training record"
    MIDPOINT = "midpoint of two records' values"
    WORD = "words or categories"
    COUNT = "counts below k"
    DISCLOSURE = "class disclosure in leaves"
    SCORE = "validation score"
    CURVE = "training curve"
    SEED = "seed that undoes bagging"
    OPTIMISER = "optimiser state"
    STATISTIC = "statistics of nodes"
    PATH = "file path"
    NAME = "user name or address"


@dataclass(frozen=True)
class ModelFinding:
    """One thing that a model holds about its training records.

    Args:
        where: the path from the model to it, such as ``steps[1].tree_.n_node_samples``; ``[*]`` stands for several
            positions. Keys of dictionaries are positions too, since they may be words of a record.
        kind: what it is.
        n_entries: how many numbers, rows or words.
        n_records: how many training records it is about, as far as it is known; ``None`` without training records.
        needed: whether prediction needs it; ``None`` where that is not known.
        remedy: what to do about it.
    """

    where: str
    kind: Kind
    n_entries: int
    n_records: int | None
    needed: bool | None
    remedy: str


@dataclass(frozen=True)
class Sighting:
    """A finding at one place, before those at like places are joined.

    Args:
        where: the path, with its positions.
        kind: what it is.
        n_entries: how many numbers, rows or words.
        records: rows of the training records it is about; ``None`` where that is not known.
        needed: whether prediction needs it; ``None`` where that is not known.
        remedy: what to do about it.
    """

    where: str
    kind: Kind
    n_entries: int
    records: frozenset[int] | None
    needed: bool | None
    remedy: str

    @property
    def pattern(self) -> str:
        """The path without its positions."""
        return re.sub(r"\[\d+\]", "[*]", self.where)


def joined(sightings: Iterable[Sighting]) -> tuple[ModelFinding, ...]:
    """Findings, one for all places whose paths differ in positions only, in the order of the first of each.

    >>> same = [Sighting(f"trees[{i}].value", Kind.VALUE, 2, frozenset({i, 7}), True, "round") for i in range(3)]
    >>> [(finding.where, finding.n_entries, finding.n_records) for finding in joined(same)]
    [('trees[*].value', 6, 4)]
    """
    groups: dict[tuple[str, Kind, bool | None], list[Sighting]] = {}
    for one in sightings:
        groups.setdefault((one.pattern, one.kind, one.needed), []).append(one)
    findings = []
    for (_, kind, needed), group in groups.items():
        known = [one.records for one in group if one.records is not None]
        findings.append(
            ModelFinding(
                where=_together([one.where for one in group]),
                kind=kind,
                n_entries=sum(one.n_entries for one in group),
                n_records=len(frozenset().union(*known)) if known else None,
                needed=needed,
                remedy=group[0].remedy,
            )
        )
    return tuple(findings)


def _together(paths: list[str]) -> str:
    """Paths that differ in positions only as one, with ``[*]`` where they differ.

    >>> _together(["steps[1].trees[0].value", "steps[1].trees[7].value"])
    'steps[1].trees[*].value'
    """
    parts = [re.split(r"(\[\d+\])", path) for path in paths]
    return "".join(same[0] if len(set(same)) == 1 else "[*]" for same in zip(*parts, strict=True))
