"""The table of records: who is most exposed, under ids that name nobody."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.auditing.result import Description, ExposedRecord
from leakgauge.records import Records

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case

MOST_EXPOSED_BY = ("pdtp", "pdtp_binned", "change", "success", "score")
"""Columns that the table is sorted by, members first, the most telling first."""


def opaque_ids(candidates: Records) -> list[str]:
    """Names for candidates, or persons, that name nobody: a keyed hash of place and id, 12 hexadecimal digits."""
    key = candidates.digest().encode()
    return [
        hmac.new(key, f"{i}|{own}".encode(), hashlib.sha256).hexdigest()[:12] for i, own in enumerate(_own(candidates))
    ]


def _own(candidates: Records) -> NDArray[Any]:
    """The user's own names of the candidates: ids of records, or names of persons with several."""
    units = candidates.units
    return candidates.ids if units.single or candidates.persons is None else candidates.persons[units.first]


def persons_note(about: Description) -> str:
    """What a reader should know where persons have several rows."""
    n_train, n_holdout = about.n_rows or (0, 0)
    return (
        f"All numbers count persons, not rows: {about.n_train:,} persons with {n_train:,} rows in the training set and "
        f"{about.n_holdout:,} persons with {n_holdout:,} rows in the holdout. A person is removed, and is a member, "
        "with all rows; the score of a person is the mean over the rows, and the influence is the largest over them."
    )


def records_table(case: Case) -> tuple[tuple[ExposedRecord, ...], dict[str, str]]:
    """One line for each candidate or person, most exposed first, of the columns of all answers; whose ids are whose."""
    n, is_member = len(case.units), case.member_units
    known = [one.name for one in fields(ExposedRecord) if one.name not in ("record", "member")]
    columns: dict[str, Any] = {name: [None] * n for name in known}
    for answer in case.found.values():
        columns |= answer.columns(case)
    keys = [
        -np.nan_to_num(np.asarray(columns[name], dtype=np.float64), nan=-np.inf) for name in reversed(MOST_EXPOSED_BY)
    ]
    order = np.lexsort([np.arange(n), *keys, ~is_member])
    rows = tuple(
        ExposedRecord(
            case.opaque[i], bool(is_member[i]), **{name: _plain(column[i]) for name, column in columns.items()}
        )
        for i in order
    )
    return rows, {name: str(own) for name, own in zip(case.opaque, _own(case.candidates), strict=True)}


def _plain(value: Any) -> Any:
    """Numbers rounded, and unknown ones as ``None``; all else as it is."""
    if not isinstance(value, float):
        return value
    return None if np.isnan(value) else round(value, 9)
