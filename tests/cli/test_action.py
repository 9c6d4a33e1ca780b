"""The action for GitHub, the job for GitLab and the stage for DVC, carried out here as their runners do."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

pytestmark = pytest.mark.long

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent.parent
ACTION = yaml.safe_load((ROOT / "action" / "action.yml").read_text())
PAGE = (ROOT / "docs" / "pipelines.md").read_text()
EXPRESSION = re.compile(r"\$\{\{ (\S+) \}\}")


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, str]:
    """The environment of a runner: leakgauge is this one, and pip installs nothing but notes what it was given."""
    folder = tmp_path / "bin"
    folder.mkdir()
    pip = f'echo "$@" >> {tmp_path / "pip.log"}'
    scripts = {
        "leakgauge": f'exec {sys.executable} -m leakgauge "$@"',
        "python": f'if [ "$1 $2" = "-m pip" ]; then {pip}; else exec {sys.executable} "$@"; fi',
        "pip": pip,
    }
    for name, line in scripts.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    known = ("HOME", "LANG", "PYTHONPATH", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "LEAKGAUGE_DATA")
    kept = {name: os.environ[name] for name in known if name in os.environ}
    return {**kept, "CI": "true", "PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.fixture
def people(tmp_path: Path) -> None:
    """``people.csv``: 1,200 made-up people, of whom two numbers, a category and an income are known."""
    rng = np.random.default_rng(1)
    n = 1200
    age, hours = rng.integers(18, 80, n), rng.normal(40, 5, n).round(2)
    town = rng.choice(["north", "south", "west"], n)
    income = np.where(age + rng.normal(0, 15, n) > 45, "high", "low")
    rows = zip(age, hours, town, income, strict=True)
    lines = ["age,hours,town,income", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")


@dataclass
class Job:
    """What a runner makes of the action in a job."""

    folder: Path
    environment: dict[str, str]
    inputs: dict[str, str]
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    used: dict[str, dict[str, str]] = field(default_factory=dict)
    log: str = ""

    def value(self, text: str) -> str:
        """A text with the expressions in it evaluated."""

        def evaluated(found: re.Match[str]) -> str:
            match found[1].split("."):
                case ["inputs", name]:
                    return self.inputs[name]
                case ["steps", step, "outputs", name]:
                    return self.outputs[step][name]
            raise AssertionError(f"no runner knows {found[1]}")

        return EXPRESSION.sub(evaluated, text)

    def run(self) -> int:
        """All steps until one fails; its exit code."""
        for step in ACTION["runs"]["steps"]:
            if "if" in step:
                name = re.fullmatch(r"inputs\.(\S+) != \'\'", step["if"])
                assert name, step["if"]
                if not self.inputs[name[1]]:
                    continue
            if "uses" in step:
                self.used[step["uses"]] = {key: self.value(text) for key, text in step["with"].items()}
            elif code := self.done(step):
                return code
        return 0

    def done(self, step: dict[str, Any]) -> int:
        """One step with a script."""
        assert step["shell"] == "bash"
        assert not EXPRESSION.search(step["run"]), "what stands in an input must not become part of a script"
        output = self.folder / "output"
        output.write_text("")
        environment = self.environment | {
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            "RUNNER_TEMP": str(self.folder / "temp"),
            **{name: self.value(text) for name, text in step.get("env", {}).items()},
        }
        script = self.folder / "step.sh"
        script.write_text(step["run"])
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script]
        ran = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        self.log += ran.stdout + ran.stderr
        if "id" in step:
            self.outputs[step["id"]] = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return ran.returncode


@pytest.fixture
def job(tmp_path: Path, tools: dict[str, str]) -> Callable[..., Job]:
    """A job with the defaults of the action and these inputs."""

    def made(**inputs: str) -> Job:
        (tmp_path / "temp").mkdir(exist_ok=True)
        given = {name.replace("_", "-"): text for name, text in inputs.items()}
        assert given.keys() <= ACTION["inputs"].keys()
        defaults = {name: one.get("default", "") for name, one in ACTION["inputs"].items()}
        return Job(tmp_path, tools, defaults | given)

    return made


def test_five_commands_to_a_red_and_a_green_pipeline(
    people: None, tools: dict[str, str], job: Callable[..., Job], tmp_path: Path
) -> None:
    """The commands of the page as they stand there, and the action on the two files that they write."""
    block = PAGE.split("## Five commands")[1].split("\n\n")[2]
    commands = [line.strip() for line in block.splitlines()]
    assert len(commands) == 5
    codes = []
    for command in commands:
        line = ["bash", "-c", command]
        ran = subprocess.run(line, cwd=tmp_path, env=tools, capture_output=True, text=True, check=False)
        codes.append(ran.returncode)
        if "exit code" in command:
            assert f"exit code {ran.returncode}" in command, ran.stdout + ran.stderr
    assert codes == [0, 0, 1, 0, 0]
    assert (tmp_path / "pip.log").read_text() == "install leakgauge\n"

    red = job(config="tree.toml")
    assert red.run() == 1, red.log
    assert red.outputs["gate"]["verdict"] == "fails"
    assert "::error title=leakgauge fails::" in red.log
    assert (tmp_path / "summary.md").read_text().startswith("## Privacy audit")
    upload = red.used["actions/upload-artifact@v4"]
    assert upload["name"] == "leakgauge"
    uploaded = sorted(path.name for path in Path(upload["path"]).iterdir())
    assert uploaded == ["gate.json", "leakgauge.xml", "report.html", "result.json"]
    assert json.loads((Path(upload["path"]) / "gate.json").read_text())["exit_code"] == 1
    assert ET.parse(Path(upload["path"]) / "leakgauge.xml").getroot().tag == "testsuites"

    green = job(config="logistic.toml", artifact="", python_version="")
    assert green.run() == 0, green.log
    assert green.outputs["gate"]["verdict"] == "passes"
    assert green.used == {}
    assert "::error" not in green.log


def test_cannot_tell_fails_the_job_or_warns(job: Callable[..., Job], tmp_path: Path) -> None:
    (tmp_path / "open.toml").write_text(
        '[data]\ndataset = "breast-cancer"\n[[models]]\nkind = "recipe"\nname = "logistic-regression"\n'
        '[attacks]\nshadow_models = 4\n[rule]\ndtp = "none"\n'
    )
    assert job(config="open.toml", profile="smoke").run() == 3
    warned = job(config="open.toml", cannot_tell="warn", profile="smoke", requirement="leakgauge==0.1.0")
    assert warned.run() == 0, warned.log
    assert warned.outputs["gate"] | {"folder": ""} == {"verdict": "cannot tell", "exit-code": "3", "folder": ""}
    assert "::warning title=leakgauge cannot tell::" in warned.log
    assert "leakgauge==0.1.0" in (tmp_path / "pip.log").read_text()


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"config": "nowhere.toml"}, "nowhere.toml does not exist"),
        ({"config": "open.toml", "cannot_tell": "ignore"}, "cannot-tell must be fail or warn"),
        ({"config": "$(touch broken)"}, "there is no data set"),
    ],
)
def test_what_cannot_be_audited_fails_the_job(
    job: Callable[..., Job], tmp_path: Path, inputs: dict[str, str], said: str
) -> None:
    made = job(**inputs)
    assert made.run() == 2
    assert said in made.log
    assert not (tmp_path / "broken").exists()


def test_the_first_page_has_the_same_five_commands() -> None:
    commands = re.findall(
        r"^    (?:pip install|leakgauge (?:init|audit)) .*$", PAGE[: PAGE.index("## The first file")], re.M
    )
    assert len(commands) == 5
    assert "\n".join(commands) in (ROOT / "README.md").read_text()


def test_the_page_names_all_inputs_and_outputs() -> None:
    for name, one in ACTION["inputs"].items():
        assert f"| `{name}` |" in PAGE
        assert one["description"]
    for name in ACTION["outputs"]:
        assert f"`{name}`" in PAGE


def test_the_job_for_gitlab(people: None, tools: dict[str, str], tmp_path: Path) -> None:
    """Its script as the page has it, which GitLab runs in one shell that stops at the first error."""
    written = PAGE.split("## GitLab")[1].split("```yaml\n")[1].split("```")[0]
    (job,) = yaml.safe_load(written).values()
    (tmp_path / "audit.toml").write_text(
        '[data]\nfile = "people.csv"\ntarget = "income"\n[[models]]\nkind = "recipe"\nname = "decision-tree"\n'
    )
    script = "\n".join(job["script"])
    ran = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script], cwd=tmp_path, env=tools, capture_output=True, check=False
    )
    assert ran.returncode == 1
    assert ET.parse(tmp_path / job["artifacts"]["reports"]["junit"]).getroot().get("failures") != "0"
    assert all((tmp_path / path).exists() for path in job["artifacts"]["paths"])


@pytest.mark.parametrize("recipe", ["decision-tree", pytest.param("naive-bayes", marks=pytest.mark.slow)])
def test_the_stage_for_dvc(tools: dict[str, str], tmp_path: Path, recipe: str) -> None:
    """It succeeds on a model that fails, and not on a file that is not there; DVC runs each command in a shell."""
    written = PAGE.split("## DVC")[1].split("```yaml\n")[1].split("```")[0]
    stage = yaml.safe_load(written)["stages"]["privacy"]

    def codes() -> list[int]:
        return [
            subprocess.run(["sh", "-c", one], cwd=tmp_path, env=tools, check=False).returncode for one in stage["cmd"]
        ]

    assert codes() == [0, 1, 1]
    (tmp_path / "audit.toml").write_text(
        f'[data]\ndataset = "wine"\n[[models]]\nkind = "recipe"\nname = "{recipe}"\n[attacks]\nshadow_models = 8\n'
    )
    assert codes() == [0, 0, 0]
    (metrics,) = stage["metrics"]
    (name,) = metrics
    numbers = json.loads((tmp_path / name).read_text())["metrics"][recipe]
    assert all(set(one) == {"value", "low", "high", "limit"} for one in numbers.values())
