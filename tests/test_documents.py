"""Everything that a reader may copy runs: the Python of the README and the pages, and the examples."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import leakgauge.theory

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "theory.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


LONGEST = {("protecting.md", 1), ("protecting.md", 2), ("protecting.md", 3)}
"""Blocks of which the page has shorter ones of their sort."""


def python_blocks():
    for page in PAGES:
        for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)):
            marks = pytest.mark.slow if (page.name, number) in LONGEST else ()
            yield pytest.param(block, id=f"{page.name}-{number}", marks=marks)


@pytest.mark.long
@pytest.mark.parametrize("block", list(python_blocks()))
def test_python_of_the_pages_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "torch" in block:
        pytest.importorskip("torch")
    if "reconstruct_forest" in block:
        pytest.importorskip("ortools")
    if "savefig" in block:
        pytest.importorskip("matplotlib")
    exec(compile(block, "page", "exec"), {"__name__": "page"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_theorem_is_on_its_page():
    """What the page names is there, and nothing of the theory is left out."""
    rooms = "theory|statistics|membership|influence|attributes|properties|collusion"
    named = set(re.findall(rf"`({rooms})\.(\w+)`", PAGE))
    for room, name in named:
        assert name in importlib.import_module(f"leakgauge.{room}").__all__, (room, name)
    assert {name for room, name in named if room == "theory"} == set(leakgauge.theory.__all__)


@pytest.mark.slow
def test_the_example_of_a_table_runs(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "own_table.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Most exposed: row train/" in done.stdout
    assert (tmp_path / "own_table.html").exists()
