"""Data sets that come with scikit-learn: nothing is fetched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leakgauge.records.columns import Column, Kind, Role, Value
from leakgauge.records.schema import Schema
from leakgauge.records.table import Records


def breast_cancer() -> Records:
    """Measurements of cell nuclei; malignant or benign."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    return _classified(bunch, bunch.feature_names, "diagnosis", [str(name) for name in bunch.target_names])


def digits() -> Records:
    """Handwritten digits as 8 x 8 counts of 0 to 16."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return _classified(bunch, bunch.feature_names, "digit", list(range(10)))


def wine() -> Records:
    """Chemical analyses of wines of three growers."""
    from sklearn.datasets import load_wine

    bunch = load_wine()
    return _classified(bunch, bunch.feature_names, "grower", [str(name) for name in bunch.target_names])


def diabetes() -> Records:
    """Ten measurements of patients and the progression of their disease a year later, in original units."""
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    columns = [Column(str(name)) for name in bunch.feature_names]
    sex = bunch.feature_names.index("sex")
    columns[sex] = Column("sex", Kind.CATEGORICAL, Role.SENSITIVE, (1, 2), dtype="int64")
    features = np.array(bunch.data, dtype=np.float64)
    features[:, sex] -= 1  # 1 and 2 become the codes 0 and 1
    return Records(
        features, bunch.target, Schema(tuple(columns), Column("progression", role=Role.TARGET)), _rows(bunch)
    )


def _classified(bunch: Any, names: Sequence[str], target: str, classes: Sequence[Value]) -> Records:
    columns = tuple(Column(str(name)) for name in names)
    dtype = "string" if isinstance(classes[0], str) else "int64"
    schema = Schema(columns, Column(target, Kind.CATEGORICAL, Role.TARGET, tuple(classes), dtype))
    return Records(np.array(bunch.data), np.array(bunch.target), schema, _rows(bunch))


def _rows(bunch: Any) -> Any:
    return np.arange(len(bunch.data))
