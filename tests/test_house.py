"""The house stands as it was drawn: imports point downwards, and opening the door is quick."""

import dataclasses
import importlib
import pkgutil
import re
import subprocess
import sys
import typing
from pathlib import Path

import leakgauge

PATH = leakgauge.__path__
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
    assert set(re.findall(r"``([a-z]\w*)``", leakgauge.__doc__)) <= rooms


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, leakgauge; print([m for m in ('numpy', 'scipy', 'sklearn', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def rooms():
    """All packages, those within others too, that say what they export."""
    inner = [importlib.import_module(one.name) for one in pkgutil.walk_packages(PATH, "leakgauge.") if one.ispkg]
    return [one for one in (leakgauge, *inner) if hasattr(one, "__all__")]


def test_everything_exported_is_there_sorted_and_told():
    assert len(rooms()) > 10
    for room in rooms():
        assert room.__all__ == sorted(set(room.__all__), key=_as_ruff_sorts), room.__name__
        for name in room.__all__:
            value = getattr(room, name)
            assert not callable(value) or value.__doc__ or typing.get_origin(value), (room.__name__, name)


def _as_ruff_sorts(name):
    """Constants, classes, the rest; each by the alphabet."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_the_documentation_imports_public_names_only():
    """What a user copies from there is stable."""
    known = {room.__name__: set(room.__all__) for room in rooms()}
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.py")]:
        for module, names in re.findall(r"^from (leakgauge[\w.]*) import ([\w, ]+)$", path.read_text(), re.M):
            assert set(names.split(", ")) <= known.get(module, set()), (path.name, module, names)
        for name in re.findall(r"\blg\.(\w+)", path.read_text()):
            assert name in known["leakgauge"], (path.name, name)


def test_no_repr_of_a_public_value_holds_an_array():
    """A notebook shows the last value of a cell, and keeps it: shapes are shown, and no numbers of single records.

    Statistics know nothing of ours, and mechanisms of noise hold no records.
    """
    arrays = re.compile(r"^(Floats|Flags|Indices|Labels|Members|NDArray|Records)\b")
    others = ("leakgauge.statistics", "leakgauge.defences.mip")
    for room in [one for one in rooms() if one.__name__ not in others]:
        for name in room.__all__:
            value = getattr(room, name)
            if isinstance(value, type) and dataclasses.is_dataclass(value) and "__repr__" in vars(value):
                held = [one.name for one in dataclasses.fields(value) if one.repr and arrays.search(str(one.type))]
                generated = vars(value)["__repr__"].__module__ != "leakgauge.escaping"
                assert not (held and generated), (room.__name__, name, held)
