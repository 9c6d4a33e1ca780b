"""The house stands as it was drawn: imports point downwards, and opening the door is quick."""

import subprocess
import sys
from pathlib import Path

import leakgauge

ROOT = Path(__file__).parent.parent


def test_imports_point_downwards_only():
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_statistics_and_theory_import_nothing_of_ours():
    for room in ("statistics", "theory"):
        for path in (ROOT / "src" / "leakgauge" / room).glob("*.py"):
            ours = [line for line in path.read_text().splitlines() if "import" in line and "leakgauge." in line]
            assert all(f"leakgauge.{room}" in line or ">>>" in line for line in ours), (path, ours)


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, leakgauge; print([m for m in ('numpy', 'scipy', 'sklearn', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_everything_exported_is_there_and_sorted():
    assert leakgauge.__all__ == sorted(leakgauge.__all__)
    for name in leakgauge.__all__:
        assert getattr(leakgauge, name) is not None
