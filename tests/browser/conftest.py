from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leakgauge.auditing import Document

REQUIRED = os.environ.get("LEAKGAUGE_REQUIRE_BROWSER") == "1"
SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def missing(what: str) -> None:
    """Without a browser these tests are skipped, unless whoever runs them says that there must be one."""
    if REQUIRED:
        pytest.fail(f"{what}, and LEAKGAUGE_REQUIRE_BROWSER=1 forbids to skip this")
    pytest.skip(what)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("Playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        missing("Chromium is not installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(SWITCHES))
        yield started
        started.close()


@pytest.fixture(scope="session")
def documents() -> ModuleType:
    """The documents that the tests of the report made by hand."""
    spec = importlib.util.spec_from_file_location("documents", Path(__file__).parents[1] / "report" / "documents.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def three_models(documents: ModuleType) -> Document:
    return documents.three_models()
