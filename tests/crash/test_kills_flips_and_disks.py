"""A slice of what ``benchmarks/robustness.py`` counts: kills at random moments, flipped bits, disks that are full."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("skops")
pytest.importorskip("polars")
pytestmark = [pytest.mark.long, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill -9")]
sys.path.append(str(Path(__file__).parents[1]))

from fuzzing import crashes  # noqa: E402


@pytest.fixture(autouse=True)
def _forking() -> None:
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)


@pytest.mark.parametrize("kind", ["audit", "audit, between result.json and the end"])
def test_a_killed_audit_goes_on(kind: str) -> None:
    with crashes.undisturbed() as (folder, whole):
        assert crashes.one_kill(kind, Random(0), folder, whole, 1.0).startswith("same")


def test_a_flipped_bit_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    for name, (_, one) in crashes._flips(tmp_path).items():
        assert one(Random(name)) in ("noticed", "same"), name


def test_disks_that_are_full(tmp_path: Path) -> None:
    try:
        with crashes.disk(tmp_path / "disk", 4096):
            pass
    except OSError:
        pytest.skip("no file system can be mounted here")
    counts: crashes.Counts = {}
    crashes.disks(counts, lambda: None, sizes=(0.5,))
    assert all(row["defects"] == 0 for row in counts.values()), counts
