"""What CONTRIBUTING says about adding to the house is carried out, on a copy of the source."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

HOME = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^`(\S+)`\n\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def recipe(title: str) -> dict[str, tuple[str, str]]:
    """The files of a recipe: its language and its text, by path."""
    text = (HOME / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split(f"### {title}\n")[1].split("\n### ")[0]
    return {path: (language, body) for path, language, body in BLOCK.findall(section)}


def changed(text: str, diff: str) -> str:
    """The lines marked - replaced by those marked + that follow them."""
    for old, new in re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", diff, re.MULTILINE):
        before, after = (re.sub(r"^[-+]", "", part, flags=re.MULTILINE) for part in (old, new))
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the source, with the compiled loops."""
    shutil.copytree(HOME / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def follow(house: Path, title: str) -> set[str]:
    """Carry a recipe out; return the files that it touched."""
    files = recipe(title)
    for path, (language, body) in files.items():
        (house / path).parent.mkdir(exist_ok=True)
        (house / path).write_text(changed((house / path).read_text(), body) if language == "diff" else body)
    return set(files)


def run(house: Path, *command: str, codes: tuple[int, ...] = (0,)) -> str:
    environment = os.environ | {"PYTHONPATH": str(house / "src")}
    done = subprocess.run(
        [sys.executable, *command], cwd=house, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in codes, done.stdout + done.stderr
    return done.stdout


def test_a_question(house: Path) -> None:
    """It is asked, judged, judged again at the gate, written down, shown and told, and takes six files."""
    assert len(follow(house, "A question")) == 6
    settings = house / "audit.toml"
    settings.write_text(
        '[data]\ndataset = "wine"\n[[models]]\nkind = "recipe"\nname = "naive-bayes"\n'
        "[attacks]\nshadow_models = 0\n[influence]\nrecords = 0\n"
    )
    verdicts = (0, 1, 3)
    shown = run(house, "-m", "leakgauge", "audit", "audit.toml", "--run", "run", codes=verdicts)
    assert "The mean confidence of members less that of others is" in shown
    (audit,) = json.loads((house / "run" / "result.json").read_text())["audits"]
    (finding,) = [one for one in audit["findings"] if one["question"] == "confidence"]
    assert audit["confidence"]["value"] == pytest.approx(finding["estimate"]["value"], abs=0.2)
    page = (house / "run" / "report.html").read_text()
    assert "m1-confidence" in page
    assert "The largest probability that the model gives for a record" in page
    judged = run(house, "-m", "leakgauge", "gate", "run", "--advantage", "0.9", codes=verdicts)
    (line,) = [line for line in judged.splitlines() if ": confidence:" in line]
    assert "passes" in line
    assert "limit 0.9" in line
    assert '"confidence"' in run(house, "-m", "leakgauge", "schema", "result")
    document = json.loads((house / "run" / "result.json").read_text())
    document["audits"][0]["findings"] = [one for one in audit["findings"] if one["question"] != "confidence"]
    (house / "run" / "result.json").write_text(json.dumps(document))
    (house / "run" / "checksums.sha256").unlink()  # of which the gate would say that the file was changed
    assert ": confidence:" in run(house, "-m", "leakgauge", "gate", "run", codes=verdicts)


def test_an_attack(house: Path) -> None:
    """It is carried out, judged and told; named in a file it is known."""
    assert len(follow(house, "A membership attack")) == 2
    (house / "audit.toml").write_text(
        '[data]\ndataset = "breast-cancer"\n[[models]]\nkind = "recipe"\nname = "naive-bayes"\n'
        '[attacks]\nnames = ["entropy"]\n[influence]\nrecords = 0\n'
    )
    run(house, "-m", "leakgauge", "audit", "audit.toml", "--run", "run", codes=(0, 1, 3))
    (audit,) = json.loads((house / "run" / "result.json").read_text())["audits"]
    assert [one["name"] for one in audit["attacks"]] == ["entropy"]
    assert "membership advantage, Entropy threshold" in [one["measure"] for one in audit["findings"]]
    assert "entropy below the median of known non-members" in (house / "run" / "report.html").read_text()


ENGINE = """
import numpy as np
from sklearn.dummy import DummyClassifier
from leakgauge.records import Records
from leakgauge.training import EachModel, Job, Randomness, SklearnLearner, leave_one_out, plan
from leakgauge.training.engines.refit import Refit

rng = np.random.default_rng(0)
records = Records.from_arrays(rng.normal(size=(30, 2)), np.arange(30) % 3)
for queries in (EachModel(np.arange(30)[:, None]), records.features[:4]):
    job = Job(SklearnLearner(DummyClassifier()), records, leave_one_out(30), queries, 0, Randomness.COMMON)
    found = plan(job)
    assert found.engine.name == "class-frequencies", found.refusals
    np.testing.assert_allclose(found.prepared.all().answers, Refit().prepare(job).all().answers, atol=1e-12)
other = SklearnLearner(DummyClassifier(strategy="uniform"))
refused = plan(Job(other, records, leave_one_out(30), queries, 0, Randomness.COMMON)).refusals
assert "not 'uniform'" in refused["class-frequencies"].words
"""


def test_an_engine(house: Path) -> None:
    """It answers as the plain loop does, and refuses what it cannot do."""
    assert len(follow(house, "An engine")) == 2
    run(house, "-c", ENGINE)


def test_a_defence(house: Path) -> None:
    """It is named, tried and held against the rule, by the engine of the ordinary learner."""
    assert len(follow(house, "A defence")) == 2
    command = ["protect", "wine", "--model", "naive-bayes", "--defence", "floor=0.1", "--out", "tried"]
    run(house, "-m", "leakgauge", *command, codes=(0, 1, 3))
    document = json.loads((house / "tried" / "protection.json").read_text())
    largest = {one["name"]: one["audit"]["influence"]["largest"] for one in document["tried"]}
    assert largest["floor-0.1"] <= math.log(10) < largest["unchanged"]


def test_a_reproduction(house: Path) -> None:
    assert len(follow(house, "A reproduction")) == 2
    assert "yeom-theorem-1" in run(house, "-m", "leakgauge", "reproduce")
    run(house, "-m", "leakgauge", "reproduce", "yeom-theorem-1", "--out", "made")
    (found,) = (house / "made").glob("*.json")
    assert [row["agrees"] for row in json.loads(found.read_text())["rows"]] == [True, True]


def test_a_data_set(house: Path) -> None:
    assert len(follow(house, "A data set")) == 2
    shown = run(house, "-m", "leakgauge", "explain", "iris")
    assert "predicting species (3 classes)" in " ".join(shown.split())
