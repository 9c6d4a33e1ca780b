"""The table of records: who is most exposed, under ids that name nobody."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from leakgauge.auditing.keys import MOSTLY
from leakgauge.auditing.result import Description, ExposedRecord
from leakgauge.records import Records
from leakgauge.records._messages import shortened

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case
    from leakgauge.auditing.subject import Subject

MOST_EXPOSED_BY = ("pdtp", "pdtp_binned", "change", "success", "score")
"""Columns that the table is sorted by, members first, the most telling first."""


FEWEST_OWN = 20
"""Of so many records it is worth saying that a column has another text in nearly all."""


def opaque_ids(candidates: Records) -> list[str]:
    """Names for candidates, or persons, that name nobody: a keyed hash of place and id, 12 hexadecimal digits."""
    key = candidates.digest().encode()
    return [hmac.digest(key, f"{i}|{own}".encode(), "sha256").hex()[:12] for i, own in enumerate(_own(candidates))]


def _own(candidates: Records) -> NDArray[Any]:
    """The user's own names of the candidates: ids of records, or names of persons with several."""
    units = candidates.units
    return candidates.ids if units.single or candidates.persons is None else candidates.persons[units.first]


def persons_note(about: Description) -> str:
    """What a reader should know where persons have several rows."""
    n_train, n_holdout = about.n_rows or (0, 0)
    return (
        f"All numbers but accuracy and errors count persons, not rows: {about.n_train:,} persons with {n_train:,} rows "
        f"in the training set and {about.n_holdout:,} persons with {n_holdout:,} rows in the holdout. A person is "
        "removed, and is a member, with all rows; the score of a person is the mean over the rows, and the influence "
        "is the largest over them."
    )


def not_grouped(keys: Sequence[str]) -> list[str]:
    """What was not tested where columns that no model sees look like keys with several rows each."""
    if not keys:
        return []
    said = f"Persons with several rows: rows with the same value of {shortened(keys)} were taken for different persons."
    return [f"{said} Where that column says whose row each is, give it the role person."]


def own_texts(what: Subject) -> list[str]:
    """What a reader should know of columns that hold another text for nearly every record."""
    if what.only_scores:
        return []
    columns = what.own_schema.columns
    names = [column.name for place, column in enumerate(columns) if column.is_categorical and _are_own(what, place)]
    if not names:
        return []
    said = f"Nearly every record has a text of its own in {shortened(names)}: taken for categories, such texts say "
    said += "nothing of other records, and the model may learn each by heart. Where the column names records or "
    said += "persons, give it the role id or person; where it holds numbers in words, write them as numbers."
    return [said]


def _are_own(what: Subject, place: int) -> bool:
    """Whether nearly all records hold a text that no other one has; texts of several words are for a recipe alone.

    Other models may read them.
    """
    categories = what.own_schema.columns[place].categories
    codes = np.concatenate([what.train.features[:, place], what.holdout.features[:, place]]).astype(np.int64)
    by_word = what.original is None
    texts = np.array([isinstance(value, str) and not (by_word and " " in value) for value in categories])
    n_alone = np.count_nonzero(texts & (np.bincount(codes, minlength=len(categories)) == 1))
    return len(codes) >= FEWEST_OWN and bool(n_alone > MOSTLY * len(codes))


class RecordTable(Sequence[ExposedRecord]):
    """Lines of the table of records, kept column by column and made when they are asked for.

    Args:
        columns: of all fields of :class:`~leakgauge.auditing.ExposedRecord`, of one length.
    """

    def __init__(self, columns: Mapping[str, list[Any]]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns["record"])

    @overload
    def __getitem__(self, place: int) -> ExposedRecord: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[ExposedRecord, ...]: ...
    def __getitem__(self, place: int | slice) -> ExposedRecord | tuple[ExposedRecord, ...]:
        if isinstance(place, slice):
            return tuple(RecordTable({name: column[place] for name, column in self._columns.items()}))
        return ExposedRecord(**{name: column[place] for name, column in self._columns.items()})

    def __iter__(self) -> Iterator[ExposedRecord]:
        names = list(self._columns)
        return (
            ExposedRecord(**dict(zip(names, line, strict=True))) for line in zip(*self._columns.values(), strict=True)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"RecordTable of {len(self)}"


def lines(records: Sequence[ExposedRecord]) -> Iterable[tuple[Any, ...]]:
    """The values of records, each in the order of the fields; of a table of a million without making them all."""
    names = [one.name for one in fields(ExposedRecord)]
    if isinstance(records, RecordTable):
        return zip(*(records._columns[name] for name in names), strict=True)
    return map(attrgetter(*names), records)


def records_table(case: Case) -> tuple[RecordTable, dict[str, str]]:
    """One line for each candidate or person, most exposed first, of the columns of all answers; whose ids are whose."""
    n, is_member = len(case.units), case.member_units
    told: dict[str, Sequence[Any]] = {}
    for answer in case.found.values():
        told |= answer.columns(case)
    numbers = {name: np.asarray(told[name], dtype=np.float64) for name in MOST_EXPOSED_BY if name in told}
    keys = [-np.nan_to_num(one, nan=-np.inf) for one in reversed(numbers.values())]
    order = np.lexsort([np.arange(n), *keys, ~is_member]).tolist()
    known: dict[str, Sequence[Any]] = {"record": case.opaque, "member": is_member.tolist()} | told
    columns = {
        one.name: _plain(list(map(known[one.name].__getitem__, order))) if one.name in known else [None] * n
        for one in fields(ExposedRecord)
    }
    return RecordTable(columns), {name: str(own) for name, own in zip(case.opaque, _own(case.candidates), strict=True)}


def _plain(column: list[Any]) -> list[Any]:
    """Numbers rounded, and unknown ones as ``None``; all else as it is."""
    if float not in set(map(type, column)):
        return column
    return [(None if one != one else round(one, 9)) if isinstance(one, float) else one for one in column]
