"""Wheel and source distribution, built and installed where there is no compiler."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from leakgauge import __version__

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel():
    """What `scripts/wheels` builds, checks and leaves in dist/."""
    if not shutil.which("c++"):
        pytest.skip("a wheel with compiled loops takes a C++ compiler")
    done = subprocess.run(["sh", ROOT / "scripts" / "wheels", sys.executable], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("loops: compiled") == 1
    assert done.stdout.count("loops: numpy the compiled loops are not installed; ") == 1
    (path,) = (ROOT / "dist").glob("*.whl")
    return path


def test_the_wheel_is_for_all_versions_of_python(wheel):
    assert wheel.name.startswith(f"leakgauge-{__version__}-py3-none-")


@pytest.mark.parametrize("command", [["pipx", "run", "--spec"], ["uvx", "--from"]])
def test_the_command_works_from_a_wheel(wheel, command):
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run([*command, str(wheel), "leakgauge", "--version"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert __version__ in done.stdout
