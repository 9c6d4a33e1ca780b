"""The table of records: who is most exposed, under ids that name nobody."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from leakgauge.auditing.result import ExposedRecord
from leakgauge.records import Records

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case

MOST_EXPOSED_BY = ("pdtp", "pdtp_binned", "change", "success", "score")
"""Columns that the table is sorted by, members first, the most telling first."""


def opaque_ids(candidates: Records) -> list[str]:
    """Names for the candidates that name nobody: a keyed hash of place and id, 12 hexadecimal digits."""
    key = candidates.digest().encode()
    return [
        hmac.new(key, f"{i}|{own}".encode(), hashlib.sha256).hexdigest()[:12] for i, own in enumerate(candidates.ids)
    ]


def records_table(case: Case) -> tuple[tuple[ExposedRecord, ...], dict[str, str]]:
    """One line for each candidate, most exposed first, of the columns that answers bring; whose ids are whose."""
    n = len(case.candidates)
    known = [one.name for one in fields(ExposedRecord) if one.name not in ("record", "member")]
    columns: dict[str, Any] = {name: [None] * n for name in known}
    for answer in case.found.values():
        columns |= answer.columns(case)
    keys = [
        -np.nan_to_num(np.asarray(columns[name], dtype=np.float64), nan=-np.inf) for name in reversed(MOST_EXPOSED_BY)
    ]
    order = np.lexsort([np.arange(n), *keys, ~case.is_member])
    rows = tuple(
        ExposedRecord(
            case.opaque[i], bool(case.is_member[i]), **{name: _plain(column[i]) for name, column in columns.items()}
        )
        for i in order
    )
    return rows, {name: str(own) for name, own in zip(case.opaque, case.candidates.ids, strict=True)}


def _plain(value: Any) -> Any:
    """Numbers rounded, and unknown ones as ``None``; all else as it is."""
    if not isinstance(value, float):
        return value
    return None if np.isnan(value) else round(value, 9)
