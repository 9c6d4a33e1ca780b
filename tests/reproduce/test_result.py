import json
import math
from importlib import import_module

import pytest

from leakgauge.errors import ConfigError, StoreError
from leakgauge.reproduce import EXPERIMENTS, Reproduction, Row, experiment
from leakgauge.reproduce.result import (
    COMPUTED,
    READ_OFF,
    Against,
    AgreementCount,
    agrees,
    compared,
    exact,
    positive,
    sentence,
)
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


def test_a_number_printed_with_more_than_four_decimals_is_held_against_all_of_them():
    """Otherwise anything would agree with one that is smaller than what four decimals tell apart."""
    for value, fits in ((0.0000276, True), (0.0000278, False), (0.0000258, True), (0.0000256, False), (0.0, False)):
        assert compared("x", 0.0000267, exact(value, "closed form"), tolerance=1e-6, why_not="").agrees is fits
    assert agrees(0.0000267, exact(0.00002674, "closed form"))
    assert not agrees(0.0000267, exact(0.00002676, "closed form"))


def test_a_row_that_does_not_agree_says_why():
    assert compared("x", 0.5, ours(), why_not="other solver") == Row("x", 0.5, ours(), True, "")
    row = compared("x", 0.9, ours(), why_not="other solver", note="p = 0.1")
    assert (row.agrees, row.note) == (False, "p = 0.1; other solver")
    assert compared("x", 0.505, ours(), tolerance=0.005, why_not="").agrees
    assert not compared("x", 0.506, ours(), tolerance=0.005, why_not="another").agrees


def test_a_reference_is_never_in_the_column_of_printed_numbers():
    row = compared("x", 0.5, ours(), why_not="another", origin=COMPUTED)
    assert (row.published, row.reference, row.origin, row.against) == (None, 0.5, COMPUTED, Against.REFERENCE)
    assert compared("x", 0.5, ours(), why_not="another").against is Against.NUMBER
    assert compared("x", 0.9, ours(), why_not="another", origin=READ_OFF).note == "another"
    with pytest.raises(ValueError, match="x: a printed number needs no reference"):
        Row("x", 1.0, ours(), True, "", 1.0, COMPUTED)
    with pytest.raises(ValueError, match="a reference needs its origin"):
        Row("x", None, ours(), True, "", 1.0)
    with pytest.raises(ValueError, match="an origin a reference"):
        Row("x", None, ours(), True, "", None, COMPUTED)


def test_a_sentence_holds_or_does_not_or_cannot_be_told():
    assert positive("x", ours(), why_not="never").agrees
    assert not positive("x", ours(-0.2, -0.3, -0.1), why_not="never").agrees
    assert positive("x", ours(-0.2, -0.3, -0.1), why_not="never").note == "the paper: above 0; never"
    unknown = positive("x", ours(0.1, -0.1, 0.3), why_not="never", note="at depth 3")
    assert (unknown.agrees, unknown.note) == (
        None,
        "at depth 3; the paper: above 0; not significantly different from 0",
    )
    assert unknown.against is None
    row = sentence("x", ours(), False, said="said so", why_not="never")
    assert (row.published, row.reference, row.against, row.note) == (None, None, Against.SENTENCE, "said so; never")


def test_agreement_is_counted_apart():
    rows = (
        compared("a", 0.5, ours(), why_not=""),
        compared("b", 9.0, ours(), why_not=""),
        compared("c", 0.5, ours(), why_not="", origin=COMPUTED),
        sentence("d", ours(), True, said="", why_not=""),
        Row("e", 1.0, ours()),
        Row("f", None, ours()),
    )
    counted = Reproduction("n", "t", "s", rows, "", {}).agreement
    assert counted == {
        Against.NUMBER: AgreementCount(1, 2),
        Against.SENTENCE: AgreementCount(1, 1),
        Against.REFERENCE: AgreementCount(1, 1),
    }
    assert Reproduction("n", "t", "s", rows[4:], "", {}).agreement == {}


def reproduction():
    rows = (Row("x", 1.0, ours()), Row("y", None, Estimate(math.inf, 0.0, math.inf, 0.95, "example", 1), None, "n"))
    rows += (compared("z", 0.5, ours(), why_not="", origin=COMPUTED),)
    return Reproduction("some-table", "A table", "Paper, Table 1", rows, "<svg/>\n", {"seed": 1}, ("said",))


def test_files_hold_what_was_found_and_are_the_same_each_time(tmp_path):
    numbers, picture = reproduction().write(tmp_path / "new" / "folder")
    found = json.loads(numbers.read_text())
    assert found["rows"][0]["ours"]["value"] == 0.5
    assert found["rows"][1]["ours"]["high"] == "inf"
    assert (found["settings"], found["remarks"]) == ({"seed": 1}, ["said"])
    assert found["agreement"] == {"reference values": {"agree": 1, "compared": 1}}
    assert (found["rows"][2]["published"], found["rows"][2]["reference"]) == (None, 0.5)
    assert found["rows"][2]["origin"] == COMPUTED
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
        assert import_module(f"leakgauge.reproduce.{one.name.replace('-', '_')}").EXPERIMENT is one  # one file for each


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"result 'long-table-9'; the results are: yeom-figure-1, "):
        experiment("long-table-9")


def test_all_data_sets_are_known():
    from leakgauge.records.datasets import names

    assert {name for one in EXPERIMENTS for name in one.data} <= set(names())
