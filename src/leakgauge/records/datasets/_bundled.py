"""Data sets that come with scikit-learn: nothing is fetched."""

from __future__ import annotations

import numpy as np

from leakgauge.records.columns import Column, Kind, Role
from leakgauge.records.datasets._matrices import classified
from leakgauge.records.schema import Schema
from leakgauge.records.table import Records


def breast_cancer() -> Records:
    """Measurements of cell nuclei; malignant or benign."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    classes = [str(name) for name in bunch.target_names]
    return classified(bunch.data, bunch.target, bunch.feature_names, "diagnosis", classes)


def digits() -> Records:
    """Handwritten digits as 8 x 8 counts of 0 to 16."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return classified(bunch.data, bunch.target, bunch.feature_names, "digit", range(10))


def wine() -> Records:
    """Chemical analyses of wines of three growers."""
    from sklearn.datasets import load_wine

    bunch = load_wine()
    classes = [str(name) for name in bunch.target_names]
    return classified(bunch.data, bunch.target, bunch.feature_names, "grower", classes)


def diabetes() -> Records:
    """Ten measurements of patients and the progression of their disease a year later, in original units."""
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    columns = [Column(str(name)) for name in bunch.feature_names]
    sex = bunch.feature_names.index("sex")
    columns[sex] = Column("sex", Kind.CATEGORICAL, Role.SENSITIVE, (1, 2), dtype="int64")
    features = np.array(bunch.data, dtype=np.float64)
    features[:, sex] -= 1  # 1 and 2 become the codes 0 and 1
    schema = Schema(tuple(columns), Column("progression", role=Role.TARGET))
    return Records(features, bunch.target, schema, np.arange(len(features)))
