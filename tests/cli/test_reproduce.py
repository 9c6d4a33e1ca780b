"""``leakgauge reproduce``, called as a function."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from leakgauge import reproduce as room
from leakgauge.cli.reproduce import reproduce
from leakgauge.errors import ConfigError, DataError
from leakgauge.reproduce import EXPERIMENTS, Row
from leakgauge.statistics import Estimate
from leakgauge.training import Execution


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Puts an entry on the list that computes nothing, and shows what it was given."""
    given: dict[str, object] = {}

    def run(**arguments: object):
        given.update(arguments)
        rows = [
            Row("first", 0.25, Estimate(0.2513, 0.21, 0.29, 0.95, "example", 7), True),
            Row("second", 0.9, Estimate(0.5, 0.4, 0.6, 0.95, "example", 7), False, "another solver [sic]"),
            Row("third", None, Estimate(3.0, 3.0, 3.0, 1.0, "closed form", 0)),
        ]
        return entry.result(rows, "<svg/>", settings={"seed": 0}, remarks=["A remark."])

    entry = dataclasses.replace(EXPERIMENTS[0], name="made-up", run=run)
    monkeypatch.setattr(room, "EXPERIMENTS", (*EXPERIMENTS, entry))
    return given


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


def call(name: str | None = None, **options: object) -> None:
    reproduce(name, **{"quick": False, "workers": 1, "seed": 0, "out": Path("out"), **options})


def test_without_a_name_it_lists_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    call()
    out = capsys.readouterr().out
    for one in EXPERIMENTS:
        assert one.name in out
        assert one.source in out


def test_published_and_ours_stand_side_by_side(made_up: object, capsys: pytest.CaptureFixture[str]) -> None:
    call("made-up")
    printed = capsys.readouterr()
    lines = {line.split()[0]: line for line in printed.out.splitlines()}
    assert "0.25  0.2513 [0.21, 0.29]  ✓ yes" in lines["first"]
    assert "✗ no" in lines["second"]
    assert "another solver [sic]" in lines["second"]
    assert lines["third"].split() == ["third", "3"]
    assert "Printed numbers: 1 of 2 rows agree." in printed.out
    assert "reference" not in printed.out.lower()
    assert "A remark." in printed.err


def test_references_have_a_column_and_a_count_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    call("yeom-figure-1")
    printed = capsys.readouterr().out
    assert printed.splitlines()[1].split() == ["what", "reference", "ours", "agrees", "note"]
    assert "Reference values: 9 of 9 rows agree." in printed
    assert "Printed numbers" not in printed
    assert printed.count("reference read off the printed figure") == 3
    assert printed.count("reference computed independently") == 6
    call("izzo-figure-1", quick=True)
    printed = capsys.readouterr().out
    assert printed.splitlines()[1].split() == ["what", "published", "reference", "ours", "agrees", "note"]
    assert "Printed numbers: 1 of 1 rows agree." in printed
    assert "References: computed independently of leakgauge, from the description in the paper." in printed


def test_numbers_and_picture_are_written(made_up: object, tmp_path: Path) -> None:
    call("made-up")
    found = json.loads((tmp_path / "out" / "made-up.json").read_text())
    assert [row["agrees"] for row in found["rows"]] == [True, False, None]
    assert (tmp_path / "out" / "made-up.svg").read_text() == "<svg/>"


def test_options_are_given_on(made_up: dict[str, object]) -> None:
    call("made-up", quick=True, workers=2, seed=5, out=Path("there"))
    assert made_up == {"quick": True, "seed": 5, "execution": Execution(Path("there"), 2)}


def test_an_unknown_name() -> None:
    with pytest.raises(ConfigError, match="there is no published result 'nothing'"):
        call("nothing")


def test_missing_data_are_bad_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One sentence that says where they come from; bad input is exit code 2."""
    from leakgauge.records.datasets import _loading

    def unreachable(name: str, *_: object, **__: object) -> None:
        raise DataError(f"data set {name!r} was not found; fetch it by hand")

    monkeypatch.setattr(_loading, "obtain", unreachable)
    with pytest.raises(DataError, match="data set 'eyedata' was not found; fetch it by hand"):
        call("yeom-figure-2-eyedata", quick=True)
    assert not (tmp_path / "out" / "yeom-figure-2-eyedata.json").exists()


def test_on_a_narrow_terminal_rows_fit_and_notes_follow_once(
    made_up: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    call("yeom-figure-1")
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[-1] for line in lines if "ratio 2:" in line] == ["1", "1", "2"]
    assert printed.count("reference read off the printed figure") == 1
    assert "2  reference read off the printed figure" in printed
    call("made-up")
    lines = capsys.readouterr().out.splitlines()
    (second,) = (line for line in lines if line.startswith("second"))
    assert second.split()[-1] == "1"
    assert "1  another solver [sic]" in [line.rstrip() for line in lines]


def test_the_last_line_counts_all_rows(made_up: object, capsys: pytest.CaptureFixture[str]) -> None:
    call("made-up")
    assert capsys.readouterr().out.splitlines()[-1] == "In all, 1 of 2 rows agree; 1 is not compared."
    call("yeom-figure-1")
    assert capsys.readouterr().out.splitlines()[-1] == "In all, 9 of 9 rows agree."
