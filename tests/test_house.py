"""The house stands as it was drawn: imports point downwards, and opening the door is quick."""

import re
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


def test_every_room_is_drawn():
    """In the table of rooms, in words that name what is there; and the package's own words name what it has."""
    plan = (ROOT / "docs" / "architecture.md").read_text()
    rooms = {path.parent.name for path in (ROOT / "src" / "leakgauge").glob("*/__init__.py")}
    assert rooms <= set(re.findall(r"^\| `(\w+)` \|", plan, re.MULTILINE))
    for name in re.findall(r"`([\w/]+\.py)`", plan):
        assert list((ROOT / "src" / "leakgauge").rglob(name)) or (ROOT / name).exists(), name
    for name in re.findall(r":func:`leakgauge\.(\w+)`|``(\w+)``", leakgauge.__doc__):
        assert name[1] in rooms or callable(getattr(leakgauge, name[0])), name


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, leakgauge; print([m for m in ('numpy', 'scipy', 'sklearn', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_everything_exported_is_there_and_sorted():
    assert leakgauge.__all__ == sorted(leakgauge.__all__)
    for name in leakgauge.__all__:
        assert getattr(leakgauge, name) is not None
