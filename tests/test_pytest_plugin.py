"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from leakgauge import ReleaseRule, Settings, audit
from leakgauge.auditing import Document, Run
from leakgauge.auditing.document import dump
from leakgauge.pytest_plugin import CannotTellWarning, ReleaseGate

ROOT = Path(__file__).parent.parent

START = """
import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.naive_bayes import GaussianNB
from leakgauge import ReleaseRule, Settings

rng = np.random.default_rng(0)
X, X_holdout = rng.normal(size=(2, 60, 2))
y, y_holdout = (X[:, 0] > 0).astype(int), (X_holdout[:, 0] > 0).astype(int)
data = {"train": (X, y), "holdout": (X_holdout, y_holdout)}
loose = Settings(n_shadows=8, rule=ReleaseRule(dtp=None, advantage=0.9))
tight = Settings(n_shadows=4, rule=ReleaseRule(dtp=None, advantage=0.3))
neighbour = KNeighborsClassifier(1).fit(X, y)
bayes = GaussianNB().fit(X, y)
"""

AUDIT = """
[data]
dataset = "wine"

[[models]]
kind = "recipe"
name = "naive-bayes"

[attacks]
shadow_models = 4

[rule]
attacks = ["gap", "loss-threshold"]
dtp = "none"
advantage = 0.9
"""


def run(folder: Path, test: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A run of pytest on one test file, with this plugin and no other."""
    (folder / "test_release.py").write_text(START + test)
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "leakgauge.pytest_plugin", "-p", "no:cacheprovider", "-q", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


X, Y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
BAYES, DATA = GaussianNB().fit(X[:20], Y[:20]), {"train": (X[:20], Y[:20]), "holdout": (X[20:], Y[20:])}


@pytest.mark.long
def test_verdicts_of_a_model_in_this_process() -> None:
    """Of labels that are noise: no advantage is near 0.9, and below 0.2 so few records cannot show it to be."""

    def settings(advantage: float) -> Settings:
        return Settings(n_shadows=8, rule=ReleaseRule(dtp=None, advantage=advantage))

    assert ReleaseGate().assert_passes(BAYES, settings=settings(0.9), **DATA).verdict == "passes"
    with pytest.raises(pytest.fail.Exception, match="an undecided measure does not count as safe"):
        ReleaseGate().assert_passes(BAYES, settings=settings(0.2), **DATA)
    with pytest.warns(CannotTellWarning, match="Cannot tell whether the release rule holds"):
        ReleaseGate().assert_passes(BAYES, settings=settings(0.2), cannot_tell="warn", **DATA)


def test_settings_beside_a_file_or_a_finished_audit_are_refused(tmp_path: Path) -> None:
    """A file has its settings in it; what of its run can be said beside it is read before it."""
    file = tmp_path / "audit.toml"
    with pytest.raises(
        pytest.fail.Exception, match=r"audit\.toml has its settings in it and takes no seed; only run, "
    ):
        ReleaseGate().assert_passes(file, run=tmp_path / "run", seed=3)
    with pytest.raises(pytest.fail.Exception, match=r"audit\.toml does not exist"):
        ReleaseGate().assert_passes(file, run=tmp_path / "run", workers=2, allow_pickle=True)
    with pytest.raises(pytest.fail.Exception, match="is a finished audit, which takes no workers"):
        ReleaseGate().assert_passes(tmp_path, workers=2)


def test_a_finished_audit_that_was_edited_since_is_refused(tmp_path: Path) -> None:
    """As by ``leakgauge gate``: by its checksum, whatever the numbers say now."""
    settings = Settings(n_shadows=8, rule=ReleaseRule(dtp=None, advantage=0.9))
    document = Document.of("audit", [audit(BAYES, settings=settings, progress=False, **DATA)])
    (tmp_path / "result.json").write_text(dump(document))
    Run(tmp_path).seal()
    assert ReleaseGate().assert_passes(tmp_path).verdict == "passes"
    (tmp_path / "result.json").write_text(dump(replace(document, name="other")))
    with pytest.raises(pytest.fail.Exception, match=r"result\.json in .* was changed since the audit"):
        ReleaseGate().assert_passes(tmp_path)


@pytest.mark.long
def test_a_model_that_passes(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
def test_release(leakgauge):
    document = leakgauge.assert_passes(bayes, settings=loose, **data)
    assert document.verdict == "passes"
""",
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_a_model_that_fails_is_told_in_lines_without_values(tmp_path: Path) -> None:
    """Arguments of the test are not shown either, as they are for other failures: they may be records."""
    done = run(
        tmp_path,
        """
import pytest

@pytest.fixture
def person():
    return "patient-4711"

def test_release(leakgauge, person):
    leakgauge.assert_passes(neighbour, settings=Settings(n_shadows=8), **data)
""",
    )
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert "Fails the release rule: audit" in lines
    assert any(line.startswith("✗ fails        KNeighborsClassifier: ") for line in lines)
    assert "patient-4711" not in done.stdout
    assert "train =" not in done.stdout
    assert "array(" not in done.stdout


@pytest.mark.slow
def test_cannot_tell_fails_in_its_own_words_or_warns(tmp_path: Path) -> None:
    failing = "def test_release(leakgauge):\n    leakgauge.assert_passes(bayes, settings=tight, **data)\n"
    done = run(tmp_path, failing)
    assert done.returncode == 1
    assert "Cannot tell whether the release rule holds: audit" in done.stdout
    assert "an undecided measure does not count as safe" in done.stdout
    warned = run(tmp_path, failing.replace("**data", 'cannot_tell="warn", **data'))
    assert warned.returncode == 0
    assert "CannotTellWarning: Cannot tell whether the release rule holds" in warned.stdout
    assert "1 passed, 1 warning" in warned.stdout
    refused = run(tmp_path, failing.replace("**data", "cannot_tell=True, **data"))
    assert "cannot_tell must be 'fail' or 'warn', got True" in refused.stdout


@pytest.mark.slow
def test_a_file_and_a_finished_audit(tmp_path: Path) -> None:
    """The folder is judged again: a verdict that was written into the file does not pass."""
    (tmp_path / "audit.toml").write_text(AUDIT)
    both = """
def test_release(leakgauge):
    leakgauge.assert_passes("audit.toml", run="kept")
    leakgauge.assert_passes("kept")
"""
    assert run(tmp_path, both).returncode == 0
    (tmp_path / "audit.toml").write_text(AUDIT.replace('dtp = "none"', "dtp = 1e-6"))
    failing = """
def test_file(leakgauge):
    leakgauge.assert_passes("audit.toml", run="other")

def test_folder(leakgauge):
    leakgauge.assert_passes("other")
"""
    done = run(tmp_path, failing)
    assert "2 failed" in done.stdout
    result = tmp_path / "other" / "result.json"
    result.write_text(result.read_text().replace('"verdict": "fails"', '"verdict": "passes"'))
    assert "2 failed" in run(tmp_path, failing).stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("call", "said"),
    [
        pytest.param('"nowhere.toml"', "nowhere.toml does not exist", marks=pytest.mark.slow),
        pytest.param('".", workers=2', "is a finished audit, which takes no workers", marks=pytest.mark.slow),
        ("bayes, settings=loose, train=(X, y), holdout=(X[:, :1], y)", "The audit was not carried out: "),
    ],
)
def test_what_cannot_be_audited_fails_without_a_traceback(tmp_path: Path, call: str, said: str) -> None:
    done = run(tmp_path, f"def test_release(leakgauge):\n    leakgauge.assert_passes({call})\n")
    assert done.returncode == 1
    assert said in done.stdout
    assert "Traceback" not in done.stdout
    assert "array(" not in done.stdout


@pytest.mark.long
def test_a_run_of_pytest_that_does_not_use_it_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\n\ndef test_other():\n"
        "    assert not {'numpy', 'sklearn', 'scipy', 'pydantic', 'typer', 'rich'} & set(sys.modules)\n"
        "    ours = {name for name in sys.modules if name.startswith('leakgauge')}\n"
        "    assert ours == {'leakgauge', 'leakgauge._version', 'leakgauge.pytest_plugin'}\n"
    )
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "leakgauge.pytest_plugin", "-q", "test_other.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_plugin_is_declared_for_pytest() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert declared == {"leakgauge": "leakgauge.pytest_plugin"}


@pytest.mark.long
def test_the_example_of_the_documentation_passes(tmp_path):
    text = (ROOT / "docs" / "pipelines.md").read_text("utf-8")
    example = next(block.split("```")[0] for block in text.split("```python\n")[1:] if "def test_release" in block)
    done = run(tmp_path, example)
    assert done.returncode == 0, done.stdout
