"""Records as rows: `Records`, the `Schema` that says what their columns mean, splitting, duplicates, reading.

`leakgauge.records.datasets` holds public data sets. `FixedBins`, `bin_edges` and `bin_counts` import scikit-learn
when they are first asked for; everything else here is quick to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leakgauge.records.duplicates import Codes, record_codes
from leakgauge.records.one_hot import OneHotCodes
from leakgauge.records.reading import read_table
from leakgauge.records.schema import ArrayForm, Column, Kind, Native, OneHot, Role, Schema, Task, Value
from leakgauge.records.splitting import draw, random_half, split
from leakgauge.records.table import Records, concatenate, from_pair, n_shared_persons, require_one_row_each
from leakgauge.records.units import Units

if TYPE_CHECKING:
    from leakgauge.records.discretise import Edges, FixedBins, bin_counts, bin_edges

__all__ = [
    "ArrayForm",
    "Codes",
    "Column",
    "Edges",
    "FixedBins",
    "Kind",
    "Native",
    "OneHot",
    "OneHotCodes",
    "Records",
    "Role",
    "Schema",
    "Task",
    "Units",
    "Value",
    "bin_counts",
    "bin_edges",
    "concatenate",
    "draw",
    "from_pair",
    "n_shared_persons",
    "random_half",
    "read_table",
    "record_codes",
    "require_one_row_each",
    "split",
]

_NEED_SKLEARN = frozenset({"Edges", "FixedBins", "bin_counts", "bin_edges"})


def __getattr__(name: str) -> Any:
    if name in _NEED_SKLEARN:
        from leakgauge.records import discretise

        return getattr(discretise, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
