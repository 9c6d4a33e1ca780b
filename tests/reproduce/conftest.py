from __future__ import annotations

import os

import pytest


@pytest.fixture
def published_data():
    """Skips where there are no local copies of the data sets."""
    if not os.environ.get("LEAKGAUGE_DATA"):
        pytest.skip("needs local copies of the data sets: set LEAKGAUGE_DATA")
