"""Data sets that are a matrix of numbers and a class for each row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from leakgauge.records.columns import Column, Kind, Role, Value
from leakgauge.records.schema import Schema
from leakgauge.records.table import Records


def classified(
    features: npt.ArrayLike,
    codes: npt.ArrayLike,
    names: Iterable[str],
    target: str,
    classes: Sequence[Value],
    dtype: str = "float64",
) -> Records:
    """Records with numeric columns, numbered from 0.

    Args:
        features: Numbers [n, d].
        codes: The place of each class among the classes [n].
        names: Of the columns.
        target: What the class is called.
        classes: All of one type, text or whole numbers.
        dtype: How the columns are written back.
    """
    label = Column(
        target, Kind.CATEGORICAL, Role.TARGET, tuple(classes), "string" if isinstance(classes[0], str) else "int64"
    )
    schema = Schema(tuple(Column(str(name), dtype=dtype) for name in names), label)
    matrix = np.array(features, dtype=np.float64)
    return Records(matrix, np.array(codes, dtype=np.int64), schema, np.arange(len(matrix)))
