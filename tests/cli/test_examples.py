"""Every example runs, from a copy, as a user would run it."""

from __future__ import annotations

import os
import runpy
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from leakgauge.auditing.config import load_config

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy of the examples, in the test's own folder."""
    return shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("own_files", "__pycache__"))


def run(script: Path) -> None:
    runpy.run_path(str(script), run_name="__main__")


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.toml")))
def test_every_configuration_can_be_read(name: str) -> None:
    assert load_config(EXAMPLES / name).settings()


def test_a_table_of_ones_own(examples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(examples / "own_table.py")
    said = capsys.readouterr().out
    assert said.startswith("The model ")
    assert "largest PDTP" in said
    assert "inf [inf" not in said
    assert Path("own_table.html").read_text().lower().startswith("<!doctype html>")


def test_files_of_ones_own_are_explained(examples: Path, cli: Callable) -> None:
    run(examples / "own_files.py")
    printed = cli("explain", examples / "own_files.toml")
    assert printed.code == 0, printed.err
    text = " ".join(printed.out.split())
    assert "284 training and 285 holdout records, 4 columns (1 categorical), predicting diagnosis" in text
    assert "diagnosis model" in text
    assert "careful_forest" in text


@pytest.mark.slow
def test_files_of_ones_own_are_audited(examples: Path, cli: Callable) -> None:
    """The forest with a leaf for each patient fails; that with large leaves gives away less."""
    run(examples / "own_files.py")
    printed = cli("audit", examples / "own_files.toml", "--run", "run")
    assert printed.code == 1, printed.err
    assert "diagnosis model  ✗ fails" in printed.out
    assert "careful_forest  ? cannot tell" in printed.out
    named = cli("records", "run", "--show-ids", "--top", 3, "--model", "diagnosis model", "--csv")
    assert len(named.out.splitlines()) == 4


@pytest.mark.slow
@pytest.mark.skipif("LEAKGAUGE_DATA" not in os.environ, reason="the data set is not here and would be fetched")
def test_adults_with_fewer_records(examples: Path, cli: Callable) -> None:
    names = [model["name"] for model in tomllib.loads((examples / "adult.toml").read_text())["models"]]
    assert names == ["naive-bayes", "logistic-regression", "random-forest"]
    printed = cli(
        "audit", examples / "adult.toml", "--model", "naive-bayes", "--model", "logistic-regression",
        "--train-records", 100, "--holdout-records", 100, "--run", "run",
    )  # fmt: skip
    assert printed.code in (0, 1, 3), printed.err
    assert "Of 2 models" in printed.out
