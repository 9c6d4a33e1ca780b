from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from leakgauge.models.endpoints import transport


@pytest.fixture(scope="session")
def servers() -> ModuleType:
    """Servers on loopback that answer as those of the protocols do, and as broken ones do."""
    if "servers" not in sys.modules:
        spec = importlib.util.spec_from_file_location("servers", Path(__file__).with_name("servers.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules["servers"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["servers"])
    return sys.modules["servers"]


@pytest.fixture
def serve(servers: ModuleType) -> Iterator:
    """Start a server that answers; it is stopped with the test."""
    started = []

    def start(answer, **more):
        started.append(servers.Server(answer, **more))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture(autouse=True)
def _no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(transport, "LONGEST_WAIT", 0.01)
