from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from leakgauge.auditing import Document


@pytest.fixture(scope="session")
def documents() -> ModuleType:
    """The documents made by hand; the tests in the browser use the same."""
    spec = importlib.util.spec_from_file_location("documents", Path(__file__).with_name("documents.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def three_models(documents: ModuleType) -> Document:
    return documents.three_models()
