"""``leakgauge protect``, from the command line."""

from __future__ import annotations

import os

import numpy as np
import pytest

from leakgauge.auditing import Verdict

CONFIG = """
seed = 1

[data]
file = "people.csv"
target = "ill"
train_records = 150
holdout_records = 150

[[models]]
kind = "recipe"
name = "MODEL"

[attacks]
shadow_models = 0

[influence]
records = 10

[rule]
dtp = 1.0
"""


@pytest.fixture
def config(write):
    """A file about people of whom one column says something."""
    rng = np.random.default_rng(0)
    ill = rng.integers(0, 2, 300)
    rows = [f"{a:.6f},{b:.6f},{i}" for a, b, i in zip(rng.normal(ill), rng.normal(size=300), ill, strict=True)]
    write("people.csv", "\n".join(["a,b,ill", *rows]) + "\n")
    return lambda model: write(f"{model}.toml", CONFIG.replace("MODEL", model))


def test_every_defence_has_a_line_and_the_exit_code_is_that_of_the_best(cli, config, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    printed = cli("protect", config("decision-tree"), "--run", tmp_path / "kept")
    lines = printed.out.splitlines()
    assert any(line.startswith("no defence") and "✗ fails" in line for line in lines)
    assert any(line.startswith("votes of 10 models") for line in lines)
    assert "Not tried: earlier-stop-2" in printed.err
    verdicts = [verdict for verdict in Verdict for line in lines if f" {verdict.value} " in line]
    assert printed.code == (0 if Verdict.PASSES in verdicts else 3 if Verdict.CANNOT_TELL in verdicts else 1)
    assert {"unchanged", "ensemble-10"} <= set(os.listdir(tmp_path / "kept" / "model-0"))
    conclusion = "The cheapest that passes" if printed.code == 0 else "None of these is shown to pass"
    assert conclusion in printed.out


def test_bad_input_is_one_line(cli, config):
    printed = cli("protect", "no-such-file.toml")
    assert printed.code == 2
    assert printed.err.startswith("error: ")
