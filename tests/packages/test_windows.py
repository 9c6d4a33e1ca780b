"""What Windows lacks is not needed: its functions, its letters."""

import io
import subprocess
import sys

import pytest

from leakgauge.cli._streams import lasting_streams

ABOARD = """
import os, signal, sys
for name in ("O_NOFOLLOW", "O_DIRECTORY", "geteuid", "posix_fallocate", "posix_fadvise"):
    delattr(os, name)
del signal.pthread_sigmask
sys.modules["fcntl"] = None  # cannot be imported
opened = os.open
def open_(path, flags, *more, **named):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    return opened(path, flags, *more, **named)
os.open = open_
from leakgauge.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""The command line on a Python without what that of Windows lacks, and where folders cannot be opened."""

CONFIG = """
seed = 0
[data]
dataset = "wine"
[[models]]
kind = "recipe"
name = "naive-bayes"
[influence]
records = 5
[attacks]
shadow_models = 0
"""


@pytest.mark.long
def test_an_audit_needs_nothing_that_windows_lacks(tmp_path):
    (tmp_path / "audit.toml").write_text(CONFIG)
    command = [sys.executable, "-c", ABOARD, "audit", "audit.toml", "--run", "run"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode in (0, 1, 3), done.stderr
    assert {"result.json", "records.csv", "report.html"} <= {path.name for path in (tmp_path / "run").iterdir()}


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "ascii"])
def test_consoles_that_lack_letters_show_others_in_their_place(monkeypatch, encoding):
    behind = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(behind, encoding=encoding))
    with lasting_streams():
        print("ε ≤ 3 … −1 ✓")
        sys.stdout.flush()
    assert b"3" in behind.getvalue()
