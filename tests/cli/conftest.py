from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from leakgauge.cli.main import main


class Printed(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Cli = Callable[..., Printed]

VARIABLES = ("CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "COLUMNS")
"""Those of a pipeline or a terminal, which change what is printed."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test runs in a folder of its own, without the pipeline's variables, and leaves the import path alone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command line in this process."""

    def run(*arguments: object) -> Printed:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Printed(code, *capsys.readouterr())

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a file of the test's folder."""

    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return written


def people(n: int, seed: int) -> str:
    """A CSV table of made-up people: two numbers, a category, and an income that depends on one of the numbers."""
    rng = np.random.default_rng(seed)
    age, hours = rng.integers(18, 80, n), rng.normal(40, 5, n).round(2)
    town = rng.choice(["north", "south", "west"], n)
    income = np.where(age + rng.normal(0, 15, n) > 45, "high", "low")
    lines = [f"{a},{h},{t},{i}" for a, h, t, i in zip(age, hours, town, income, strict=True)]
    return "\n".join(["age,hours,town,income", *lines]) + "\n"


@pytest.fixture
def tables(write: Callable[[str, str], Path]) -> None:
    """``train.csv`` and ``holdout.csv``, 60 people each."""
    write("train.csv", people(60, seed=1))
    write("holdout.csv", people(60, seed=2))


FILES = """
[data]
train = "train.csv"
holdout = "holdout.csv"
target = "income"
"""

QUICK = """
[attacks]
shadow_models = 4
"""

NAIVE_BAYES = """
[[models]]
kind = "recipe"
name = "naive-bayes"
"""


@pytest.fixture
def config(write: Callable[[str, str], Path], tables: None) -> Callable[..., Path]:
    """Writes ``audit.toml`` about the two tables."""

    def written(models: str = NAIVE_BAYES, data: str = FILES, rest: str = QUICK) -> Path:
        return write("audit.toml", data + models + rest)

    return written


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an audit that each test takes a copy of."""
    folder = tmp_path_factory.mktemp("audited")
    for name, seed in (("train", 1), ("holdout", 2)):
        (folder / f"{name}.csv").write_text(people(60, seed))
    (folder / "audit.toml").write_text(FILES + NAIVE_BAYES + QUICK)
    with pytest.MonkeyPatch.context() as patch:
        for name in VARIABLES:
            patch.delenv(name, raising=False)
        assert main(["audit", str(folder / "audit.toml"), "--run", str(folder / "run")]) in (0, 1, 3)
    return folder / "run"


@pytest.fixture
def run(config: Callable[..., Path], audited: Path) -> Path:
    """The folder of a finished audit of naive Bayes, beside its ``audit.toml``."""
    config()
    return shutil.copytree(audited, Path("run"))
