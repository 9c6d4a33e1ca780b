"""What commands say while they work: nothing, a bar, lines, and a log file; and what shells complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Written = Callable[..., Path]


@pytest.mark.long
def test_quiet_prints_nothing_and_the_exit_code_counts(cli: Callable, config: Written) -> None:
    loud = cli("audit", config(), "--run", "run")
    quiet = cli("audit", config(), "--run", "run", "--quiet")
    assert (quiet.out, quiet.err, quiet.code) == ("", "", loud.code)
    as_json = cli("audit", config(), "--run", "run", "--quiet", "--json")
    assert as_json.out == Path("run/result.json").read_text()
    both = cli("audit", config(), "--run", "run", "--quiet", "--verbose")
    assert both.code == 2
    assert "either --quiet or --verbose" in both.err


def test_errors_are_printed_all_the_same(cli: Callable) -> None:
    printed = cli("audit", "nowhere.toml", "--quiet")
    assert printed.code == 2
    assert "nowhere.toml does not exist" in printed.err


def test_verbose_prints_a_line_for_each_stage(cli: Callable, config: Written) -> None:
    lines = cli("audit", config(), "--run", "run", "--verbose").err.splitlines()
    assert lines[0] == "reading"
    assert any(line.startswith("naive-bayes: shadow models") for line in lines)


def test_a_pipeline_is_told_how_far_a_long_audit_is(
    cli: Callable, config: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes less than ten seconds prints nothing (:mod:`test_commands`)."""
    monkeypatch.setattr("leakgauge.cli._progress.SECONDS_OF_SILENCE", 0.0)
    printed = cli("audit", config(), "--run", "run")
    assert "naive-bayes: shadow models" in printed.err
    assert "\x1b" not in printed.err
    assert "naive-bayes: shadow models" not in printed.out


def test_a_log_file_has_stages_with_times_and_the_end(cli: Callable, config: Written, tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    printed = cli("audit", config(), "--run", "run", "--log-file", log)
    assert printed.err == ""
    lines = log.read_text().splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00 \S", line) for line in lines)
    said = [line.partition(" ")[2] for line in lines]
    assert re.fullmatch(r"leakgauge \S+ audit .*audit\.toml", said[0])
    assert any(one.startswith("naive-bayes: shadow models") for one in said)
    assert any("the release rule" in one and one.endswith(": audit") for one in said)
    n = len(lines)
    cli("audit", config(), "--run", "run", "--log-file", log)
    assert len(log.read_text().splitlines()) > n, "the second audit was appended"


def test_a_log_file_says_what_was_wrong(cli: Callable, config: Written, tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    Path("full").mkdir()
    Path("full/file").touch()
    assert cli("audit", config(), "--run", "full", "--log-file", log).code == 2
    assert log.read_text().splitlines()[-1].endswith("name another folder with --run")
    printed = cli("audit", config(), "--log-file", tmp_path / "no" / "where.log")
    assert printed.code == 2
    assert "--log-file" in printed.err


@pytest.mark.long
def test_protect_has_the_same_options(cli: Callable, config: Written, tmp_path: Path) -> None:
    log = tmp_path / "protect.log"
    given = ("protect", config(), "--defence", "labels-only", "--log-file", log)
    loud = cli(*given)
    quiet = cli(*given, "--quiet")
    assert (quiet.out, quiet.err, quiet.code) == ("", "", loud.code)
    assert re.search(r"naive-bayes: (passes|fails|cannot tell)\n", log.read_text())


@pytest.mark.parametrize(
    ("words", "expected"),
    [("leakgauge ", {"audit", "gate", "compare", "init", "protect"}), ("leakgauge audit --pro", {"--profile"})],
)
def test_a_shell_completes(words: str, expected: set[str]) -> None:
    """As the function does that ``leakgauge --show-completion`` prints for Bash."""
    environment = os.environ | {
        "_LEAKGAUGE_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run(
        [sys.executable, "-m", "leakgauge"], env=environment, capture_output=True, text=True, check=True
    )
    assert expected <= set(done.stdout.split())
    assert done.stderr == ""
