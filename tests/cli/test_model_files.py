"""Files of other libraries in an audit's file: with a learner beside them, and problems of it in clear lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Cli, Written = Callable[..., tuple[int, str, str]], Callable[..., Path]

DATA = """
[data]
train = "a.csv"
holdout = "b.csv"
target = "high"
"""


@pytest.fixture
def model(write: Written) -> None:
    """``a.csv``, ``b.csv`` and ``model.txt``, of LightGBM."""
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    for name in ("a.csv", "b.csv"):
        X = rng.normal(size=(60, 2))
        y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
        rows = "\n".join(f"{a},{b},{label}" for (a, b), label in zip(X.tolist(), y.tolist(), strict=True))
        write(name, f"age,hours,high\n{rows}\n")
        if name == "a.csv":
            lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(X, y).booster_.save_model("model.txt")


FILE = """
[[models]]
kind = "file"
path = "model.txt"
"""
LEARNER = """
[models.learner]
kind = "recipe"
name = "naive-bayes"
"""


def test_a_file_without_a_learner_is_asked_alone(cli: Cli, model: None, config: Written) -> None:
    code, _, err = cli("audit", config(models=FILE, data=DATA), "--run", "run")
    assert code in (1, 3), err
    result = json.loads(Path("run/result.json").read_text())
    assert "The answers of Booster were taken for one probability for the second class." in str(result)


@pytest.mark.long
def test_a_learner_trains_the_shadow_models(cli: Cli, model: None, config: Written) -> None:
    code, _, err = cli("audit", config(models=FILE + LEARNER, data=DATA), "--run", "run")
    assert code in (0, 1, 3), err
    assert "LiRA" in Path("run/result.json").read_text()


@pytest.mark.parametrize(
    ("learner", "words"),
    [
        ('kind = "recipe"', "models.0.learner.name: missing"),
        ('kind = "receipt"', "models.0.learner.kind: 'receipt' is not known"),
        ('name = "naive-bayes"', "models.0.learner.kind: missing; expected one of 'factory', 'recipe'"),
    ],
)
def test_a_learner_that_is_none(cli: Cli, config: Written, learner: str, words: str) -> None:
    code, out, err = cli("audit", config(models=f"{FILE}[models.learner]\n{learner}\n"))
    assert (code, out) == (2, "")
    assert words in err
