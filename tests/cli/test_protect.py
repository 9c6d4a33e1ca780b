"""``leakgauge protect``, from the command line."""

from __future__ import annotations

import os

import numpy as np
import pytest
from typer.main import get_command

from leakgauge.auditing import Verdict
from leakgauge.cli.main import app
from leakgauge.protecting import KINDS
from leakgauge.protecting.document import load
from leakgauge.report.frontier import frontier_svg
from leakgauge.report.protection import render_protection

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


@pytest.mark.long
def test_every_defence_has_a_line_and_the_exit_code_is_that_of_the_best(cli, config, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    printed = cli("protect", config("decision-tree"), "--run", tmp_path / "kept")
    lines = printed.out.splitlines()
    assert any(line.startswith("no defence") and "✗ fails" in line for line in lines)
    assert any(line.startswith("votes of 10 models") for line in lines)
    n_tried = sum(f" {verdict.value} " in line for line in lines for verdict in Verdict)
    assert f"The intervals hold for all {n_tried} models together: they are wider than those of an audit" in printed.out
    assert "Not tried: earlier-stop-2" in printed.err
    verdicts = [verdict for verdict in Verdict for line in lines if f" {verdict.value} " in line]
    assert printed.code == (0 if Verdict.PASSES in verdicts else 3 if Verdict.CANNOT_TELL in verdicts else 1)
    assert {"unchanged", "ensemble-10"} <= set(os.listdir(tmp_path / "kept" / "model-0"))
    passes = "Passes the release rule under a defence: votes of 10 models"
    assert (passes if printed.code == 0 else "No defence was shown to pass the release rule") in printed.out


def test_defences_can_be_named_and_what_is_found_be_kept(cli, config, tmp_path):
    """The vote of ten trees keeps the rule by proof; the tree alone breaks it, and so does whoever answers labels."""
    named = ("--defence", "ensemble", "--defence", "labels-only", "--defence", "earlier-stop=3")
    printed = cli("protect", config("decision-tree"), *named, "--out", tmp_path / "out")
    document = load(tmp_path / "out" / "protection.json")
    assert [one.name for one in document.tried] == ["unchanged", "ensemble-10", "labels-only"]
    assert document.model == "decision-tree"
    assert list(document.refused) == ["earlier-stop-3"]
    assert printed.code == document.verdict.exit_code
    assert f"Report: {tmp_path / 'out' / 'protection.html'}" in printed.out
    assert (tmp_path / "out" / "protection.html").read_text() == render_protection(document)
    assert (tmp_path / "out" / "frontier.svg").read_text() == frontier_svg(document)
    gated = cli("gate", tmp_path / "out" / "unchanged")
    assert gated.code == document.undefended.verdict.exit_code == 1


def test_several_models_have_folders_of_their_own(cli, config, write, tmp_path):
    text = config("decision-tree").read_text()
    second = '[[models]]\nkind = "recipe"\nname = "naive-bayes"\n'
    both = write("both.toml", text.replace("[attacks]", f"{second}\n[attacks]"))
    cli("protect", both, "--defence", "labels-only", "--out", tmp_path / "out")
    models = [load(tmp_path / "out" / f"model-{i}" / "protection.json").model for i in range(2)]
    assert models == ["decision-tree", "naive-bayes"]


def test_what_is_wrong_is_said_before_anything_is_trained(cli, config, write, tmp_path):
    write("letter.txt", "dear")
    unknown = cli("protect", config("decision-tree"), "--defence", "penlty=3", "--out", tmp_path / "out")
    assert unknown.code == 2
    assert "defence 'penlty' is not known; the defences are penalty=FACTOR" in unknown.err
    assert not (tmp_path / "out").exists()
    full = cli("protect", config("decision-tree"), "--out", tmp_path)
    assert full.code == 2
    assert "is not empty" in full.err


def test_the_help_names_every_defence():
    option = next(one for one in get_command(app).commands["protect"].params if one.name == "defence")
    listed = option.help.partition(": ")[2].partition(". ")[0].split(", ")
    assert listed == [kind.usage for kind in KINDS]


def test_bad_input_is_one_line(cli, config):
    printed = cli("protect", "no-such-file.toml")
    assert printed.code == 2
    assert printed.err.startswith("error: ")
