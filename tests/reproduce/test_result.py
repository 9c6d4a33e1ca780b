import json
import math

import pytest

from leakgauge.errors import ConfigError, StoreError
from leakgauge.reproduce import EXPERIMENTS, Reproduction, Row, experiment
from leakgauge.reproduce.result import agrees, compared, exact, within
from leakgauge.statistics import Estimate


def ours(value=0.5, low=0.4, high=0.7):
    return Estimate(value, low, high, 0.95, "example", 9)


def test_two_measurements_may_differ_by_the_interval_of_a_difference():
    """The interval is widened by the root of 2, on the side where the published number lies."""
    assert agrees(0.5, ours())
    assert agrees(0.5 + 0.2 * math.sqrt(2) - 1e-3, ours())
    assert not agrees(0.5 + 0.2 * math.sqrt(2) + 1e-3, ours())
    assert agrees(0.5 - 0.1 * math.sqrt(2) + 1e-3, ours())
    assert not agrees(0.5 - 0.1 * math.sqrt(2) - 1e-3, ours())


def test_only_printed_digits_count():
    assert agrees(0.1235, exact(0.12346, "closed form"))
    assert not agrees(0.1236, exact(0.12346, "closed form"))


def test_a_row_that_does_not_agree_says_why():
    assert compared("x", 0.5, ours(), why_not="other solver") == Row("x", 0.5, ours(), True, "")
    row = compared("x", 0.9, ours(), why_not="other solver", note="p = 0.1")
    assert (row.agrees, row.note) == (False, "p = 0.1; other solver")
    assert within("x", 0.505, ours(), 0.005, why_not="").agrees
    assert not within("x", 0.506, ours(), 0.005, why_not="another").agrees


def reproduction():
    rows = (Row("x", 1.0, ours()), Row("y", None, Estimate(math.inf, 0.0, math.inf, 0.95, "example", 1), None, "n"))
    return Reproduction("some-table", "A table", "Paper, Table 1", rows, "<svg/>\n", {"seed": 1}, ("said",))


def test_files_hold_what_was_found_and_are_the_same_each_time(tmp_path):
    numbers, picture = reproduction().write(tmp_path / "new" / "folder")
    found = json.loads(numbers.read_text())
    assert found["rows"][0]["ours"]["value"] == 0.5
    assert found["rows"][1]["ours"]["high"] == "inf"
    assert (found["settings"], found["remarks"]) == ({"seed": 1}, ["said"])
    assert picture.read_text() == "<svg/>\n"
    before = numbers.read_bytes()
    reproduction().write(tmp_path / "new" / "folder")
    assert numbers.read_bytes() == before


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(StoreError, match="taken cannot be made"):
        reproduction().write(tmp_path / "taken")


def test_the_list_has_names_that_are_found():
    names = [one.name for one in EXPERIMENTS]
    assert len(set(names)) == len(names)
    for one in EXPERIMENTS:
        assert experiment(one.name) is one
        assert one.run.__module__ == f"leakgauge.reproduce.{one.name.replace('-', '_')}"  # one file for each


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"called 'long-table-9' here; there are: yeom-figure-1, "):
        experiment("long-table-9")


def test_all_data_sets_are_known():
    from leakgauge.records.datasets import names

    assert {name for one in EXPERIMENTS for name in one.data} <= set(names())
