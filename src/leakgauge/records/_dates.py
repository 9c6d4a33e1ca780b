"""Points of time, and texts that are written as such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from leakgauge.records.columns import MICROSECONDS_A_DAY, Value

_FORMS = (("s", None), ("s", "UTC"), ("ns", None), ("ns", "UTC"))
"""Units and time zones, in the order in which Arrow tries them on a CSV file."""


@dataclass(frozen=True)
class Times:
    """What texts say, read as the same texts in a CSV file are.

    Attributes:
        days: Since 1970, float64 [n], NaN where missing.
        dtype: One of `columns.TIMES`, perhaps with a time zone.
        unit: In which they are counted.
    """

    days: npt.NDArray[np.float64]
    dtype: str
    unit: str


def in_days(arrow: Any) -> npt.NDArray[np.float64]:
    """Days since 1970 [n] of an Arrow array of points of time, NaN where missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    zone = getattr(arrow.type, "tz", None)
    ticks = pc.cast(pc.cast(arrow, pa.timestamp("us", tz=zone), safe=False), pa.int64())
    return np.asarray(ticks.to_numpy(zero_copy_only=False), dtype=np.float64) / MICROSECONDS_A_DAY


def times_of(values: Sequence[Value]) -> Times | None:
    """The points of time [n] that texts stand for, ISO 8601 with or without a time; ``None`` where one does not.

    ``None`` and an empty text are missing ones.

    >>> times_of(["1970-01-02", None]).days.tolist()
    [1.0, nan]
    >>> times_of(["1970-01-02", "north"]) is None
    True
    """
    texts = [value.strip(" \t") if value else None for value in values if value is None or isinstance(value, str)]
    if len(texts) < len(values) or not any(texts):
        return None
    import pyarrow as pa
    import pyarrow.compute as pc

    forms = [(pa.date32(), "date", "us")]
    for unit, zone in _FORMS:
        forms.append((pa.timestamp(unit, zone), "datetime" if zone is None else f"datetime[{zone}]", unit))
    for kind, dtype, unit in forms:
        try:
            return Times(in_days(pc.cast(pa.array(texts, pa.string()), kind)), dtype, unit)
        except (pa.ArrowInvalid, UnicodeEncodeError):  # another form, or text that no file can hold
            continue
    return None
