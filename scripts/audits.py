"""Audit every recipe on the data sets that come with scikit-learn, to compare ``records.csv`` between installations.

    python scripts/audits.py FOLDER [DATA ...]

Two installations, such as of two versions of Python, agree if their folders hold the same ``records.csv``, byte for
byte. It takes nothing but an installed leakgauge.
"""

from __future__ import annotations

import sys
from pathlib import Path

from leakgauge.cli.main import main
from leakgauge.training.recipes import RECIPES, Task

DATA = ("wine", "breast-cancer")

SETTINGS = "[attacks]\nshadow_models = 8\n[influence]\nrecords = 12\n"
"""Small, and every part of a table of records is there."""


def config(data: str) -> str:
    """The TOML file of an audit of all classifiers."""
    names = [recipe.name for recipe in RECIPES if recipe.task is Task.CLASSIFICATION]
    models = "".join(f'[[models]]\nkind = "recipe"\nname = "{name}"\n' for name in names)
    return f'seed = 0\n[data]\ndataset = "{data}"\n{models}{SETTINGS}'


def audits(folder: Path, names: list[str]) -> None:
    """Carry them out, each in a run folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = folder / f"{name}.toml"
        path.write_text(config(name), "utf-8")
        code = main(["audit", str(path), "--run", str(folder / name)])
        if code not in (0, 1, 3):  # these are verdicts
            sys.exit(code)


if __name__ == "__main__":
    audits(Path(sys.argv[1]), sys.argv[2:] or list(DATA))
