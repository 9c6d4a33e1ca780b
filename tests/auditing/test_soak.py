"""A slice of ``benchmarks/soak.py``: audits in one process, again and again, leave nothing behind and say the same."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from dataclasses import astuple
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("psutil")

pytestmark = pytest.mark.long

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "soak.py"


@pytest.fixture(scope="module")
def soak() -> ModuleType:
    spec = importlib.util.spec_from_file_location("soak", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["soak"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["soak"])
    return sys.modules["soak"]


def test_nothing_grows_from_round_to_round(soak: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(soak, "SHARED_MEMORY", tmp_path)  # what other processes do there is not looked at
    told, _ = soak.rounds(["naive Bayes", "endpoint", "file, report, gate", "two workers"], 3)
    for before, after in zip(*told[-2:], strict=True):
        assert astuple(after)[1:] == astuple(before)[1:]
    assert soak.grown(*told[-2:]).megabytes < 5  # an audit of 120 records that kept its shadow models would keep more


def test_what_grows_is_found(soak: ModuleType) -> None:
    """The median of several audits, so that one that takes more memory once is no growth."""
    flat = [soak.Held(100.0, 5, 1, 0, 0, 0)] * 3
    assert astuple(soak.grown(flat, flat)) == (0, 0, 0, 0, 0, 0)
    more = [soak.Held(101.0, 6, 1, 0, 0, 2)] * 2 + [soak.Held(180.0, 5, 1, 0, 0, 2)]
    assert astuple(soak.grown(flat, more)) == (1.0, 1, 0, 0, 0, 2)
