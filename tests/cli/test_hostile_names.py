"""Names that terminals, pipelines, spreadsheets and markup would obey: every command shows them as they are."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from leakgauge.auditing import Run

ESCAPES = "\x1b]0;title\x07\x1b[2J"
MARKUP = "a[/x][link=file:///etc]b"
COMMAND = "x\n::set-output name=y::z\r\n##vso[task.x]w"
TURNED = "user\u202egpj.exe"
FORMULA = "=cmd|' /C calc'!A0"
HTML = "</script><img src=x onerror=alert(1)>"
NAMES = (ESCAPES, MARKUP, COMMAND, TURNED, FORMULA, HTML)


@pytest.fixture
def run(cli: Callable, tmp_path: Path) -> Path:
    """A finished audit in which ids, classes, columns, values, the model and the audit have such names."""
    for name in ("train", "holdout"):
        n = 60
        frame = pd.DataFrame(
            {
                "key": [f"{NAMES[i % 6]}{name}{i}" for i in range(n)],
                COMMAND: [NAMES[i % 5] for i in range(n)],
                MARKUP: [float(i * 7 % 31) for i in range(n)],
                HTML: [COMMAND if (i * i) % 7 < 3 else ESCAPES for i in range(n)],
            }
        )
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    import json

    (tmp_path / "audit.json").write_text(
        json.dumps(
            {
                "name": COMMAND,
                "data": {
                    "train": "train.csv", "holdout": "holdout.csv", "target": HTML,
                    "columns": [{"name": "key", "role": "id"}, {"name": COMMAND, "role": "sensitive"}],
                },
                "models": [
                    {"kind": "recipe", "name": "naive-bayes", "label": f"::error::{MARKUP}\n::error::{ESCAPES}"}
                ],
                "attacks": {"shadow_models": 4},
                "influence": {"records": 5},
            }
        )
    )  # fmt: skip
    printed = cli("audit", "audit.json", "--run", "run")
    assert printed.code in (0, 1, 3), printed.err
    harmless(printed.out + printed.err)
    return tmp_path / "run"


OURS = "::(error title=leakgauge fails|warning title=leakgauge cannot tell)::"
OTHER_COMMAND = rf"^\s*(?!{OURS})::"


def harmless(text: str) -> None:
    """Nothing that does not print but the line breaks that are ours, and no command of a pipeline."""
    assert all(char.isprintable() or char == "\n" for char in text)
    assert not re.search(OTHER_COMMAND, text, re.MULTILINE)
    assert "##vso[" not in text


@pytest.mark.long
def test_every_command(cli: Callable, run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for command in (
        ["gate", "run"],
        ["report", "run"],
        ["report", "run", "--markdown"],
        ["report", "run", "--junit"],
        ["records", "run"],
        ["records", "run", "--show-ids", "--top", 60],
        ["records", "run", "--show-ids", "--csv", "--top", 60],
        ["explain", "audit.json"],
        ["protect", "audit.json", "--defence", "labels-only", "--out", "safe"],
    ):
        printed = cli(*command)
        assert printed.code in (0, 1, 3), (command, printed.err)
        harmless(printed.out + printed.err)
    for page in (run / "report.html", tmp_path / "safe" / "protection.html"):
        text = page.read_text("utf-8")
        assert "<img src=x" not in text
        assert all(char.isprintable() or char == "\n" for char in text)
    for narrow in ("40", "300"):
        monkeypatch.setenv("COLUMNS", narrow)
        harmless(cli("gate", "run").out + cli("records", "run", "--show-ids").out)


def test_github_gets_no_commands_but_ours(
    cli: Callable, run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    printed = cli("gate", "run", "--dtp", "0.0001")
    harmless(printed.out)
    harmless((tmp_path / "summary.md").read_text("utf-8"))
    commands = [line for line in printed.out.splitlines() if line.startswith("::")]
    assert commands
    assert all(re.match(OURS, line) for line in commands)


def test_files_for_spreadsheets(cli: Callable, run: Path) -> None:
    printed = cli("records", "run", "--show-ids", "--csv", "--top", 60).out
    for text in ((run / "ids.csv").read_text("utf-8"), (run / "records.csv").read_text("utf-8"), printed):
        for row in csv.reader(io.StringIO(text, newline="")):
            assert not any(cell.startswith(("=", "@", "\t", "\r")) for cell in row)
    own = Run(run).ids()
    assert any(value.startswith(FORMULA) for value in own.values())
    assert any(value.startswith(COMMAND) for value in own.values())


def test_a_message_about_such_a_name(cli: Callable, tmp_path: Path, run: Path) -> None:
    text = (tmp_path / "audit.json").read_text()
    (tmp_path / "audit.json").write_text(text.replace('"train.csv"', '"no\\u001b[2J\\n::error::.csv"'))
    printed = cli("audit", "audit.json")
    assert printed.code == 2
    harmless(printed.err)
    harmless(cli("records", "run", "--model", ESCAPES).err)
