"""The table of records: who is most exposed, under ids that name nobody."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leakgauge.auditing.attributes import Inferred
from leakgauge.auditing.change import Measured as MeasuredChange
from leakgauge.auditing.influence import Measured
from leakgauge.auditing.membership import Attacked, PerRecord, strongest
from leakgauge.auditing.result import ExposedRecord
from leakgauge.records import Records

COLUMNS = ("pdtp", "pdtp_binned", "noise_floor", "solver_floor", "success", "score", "change")
"""Numbers about each record."""


def opaque_ids(candidates: Records) -> list[str]:
    """Names for the candidates that name nobody: a keyed hash of place and id, 12 hexadecimal digits."""
    key = candidates.digest().encode()
    return [
        hmac.new(key, f"{i}|{own}".encode(), hashlib.sha256).hexdigest()[:12] for i, own in enumerate(candidates.ids)
    ]


def records_table(
    candidates: Records,
    opaque: Sequence[str],
    is_member: NDArray[np.bool_],
    attacked: tuple[Attacked, ...],
    success: PerRecord | None,
    measured: Measured | MeasuredChange | None,
    exposed: NDArray[np.bool_],
    inferred: Sequence[Inferred],
) -> tuple[tuple[ExposedRecord, ...], dict[str, str]]:
    """One line for each candidate, most exposed first: by PDTP (or change), the same binned, attacks' success, score.

    Args:
        candidates: members and others, members first.
        opaque: their names ``[n]``.
        is_member: which are which, bool ``[n]``.
        attacked: the attacks.
        success: how often attacks are right about each candidate.
        measured: the influence of members.
        exposed: whether a candidate is a member that stands out beyond chance, bool ``[n]``.
        inferred: the hidden columns.
    """
    n = len(candidates)
    columns = {name: np.full(n, np.nan) for name in COLUMNS}
    if isinstance(measured, MeasuredChange):
        columns["change"][measured.found.which] = measured.in_deviations
    elif measured is not None:
        columns["pdtp"][measured.found.which] = measured.found.values
        columns["pdtp_binned"][measured.found.which] = measured.found.binned
        columns["noise_floor"][measured.found.which] = measured.found.noise_floor
        columns["solver_floor"][measured.found.which] = measured.found.solver_floor
    if success is not None:
        columns["success"] = success.accuracy
    best = strongest(attacked)
    if best is not None:
        columns["score"] = best.rising
    order = np.lexsort(
        [np.arange(n)]
        + [-np.nan_to_num(columns[c], nan=-np.inf) for c in ("score", "success", "change", "pdtp_binned", "pdtp")]
        + [~is_member]
    )
    rows = tuple(
        ExposedRecord(
            opaque[i],
            bool(is_member[i]),
            **{c: _plain(v[i]) for c, v in columns.items()},
            exposed=bool(exposed[i]) if is_member[i] else None,
            exposed_attributes=_given_away(inferred, i) if inferred and is_member[i] else None,
        )
        for i in order
    )
    return rows, {name: str(own) for name, own in zip(opaque, candidates.ids, strict=True)}


def _given_away(inferred: Sequence[Inferred], member: int) -> str:
    return "; ".join(column.result.name for column in inferred if column.exposed[member])


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 9)
