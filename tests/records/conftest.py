from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from leakgauge.records import Records


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with local copies of public data sets; tests that need it are skipped without."""
    folder = os.environ.get("LEAKGAUGE_DATA", "")
    if not folder:
        pytest.skip("LEAKGAUGE_DATA is not set, so there are no local copies of the data sets")
    return Path(folder)


@pytest.fixture
def few() -> Records:
    """Five people: age, city (a sensitive category), and whether they are ill."""
    features = np.array([[31.0, 0.0], [47.0, 1.0], [52.0, 1.0], [19.0, 0.0], [31.0, 0.0]])
    cities = np.array(["Ulm", "Bonn"], dtype=object)
    table = np.column_stack([features[:, 0].astype(object), cities[features[:, 1].astype(int)]])
    return Records.from_arrays(table, ["ill", "well", "well", "ill", "well"], names=["age", "city"], sensitive=["city"])
