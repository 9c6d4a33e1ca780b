"""What goes out is harmless to what shows it, and the same the second time."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakgauge.errors import DataError
from leakgauge.escaping import csv_rows, csv_table, every_line, markdown, one_line, shapes

ANYTHING = st.text(st.characters(codec=None), max_size=30)
TRICKY = st.text(st.sampled_from("=+-@'\";,|\t\r\n a1:#[]＝\x1b\u202e\u200c\ud800م"), max_size=12)


@given(ANYTHING | TRICKY)
def test_one_line_prints_and_is_one_line(text):
    shown = one_line(text)
    assert all(char.isprintable() or char in "\u200c\u200d" for char in shown)
    assert len(shown.splitlines()) <= 1
    assert one_line(shown) == shown
    assert not any(unicodedata.bidirectional(char) in ("RLO", "LRO", "RLE", "LRE", "RLI", "LRI") for char in shown)


@pytest.mark.parametrize(
    "text", ["Müller, Ærø", "年齢 (歳)", "C:\\data\\x", "a:b", "a # b", "می\u200cخواهم", "x²≤½ – “y”"]
)
def test_ordinary_text_stays_as_it_is(text):
    assert one_line(text) == text


@pytest.mark.parametrize(
    "text",
    ["::set-output name=x::1", "a\n::error::b", "##[error]x", "##vso[task.setvariable variable=x]y", "##teamcity[x]"],
)
def test_no_command_of_a_pipeline_is_left(text):
    shown = one_line(text)
    assert not re.search(r"::[A-Za-z]|##\w*\[", shown)


@given(st.lists(st.lists(ANYTHING | TRICKY, min_size=2, max_size=2), max_size=4))
def test_a_table_comes_back_as_it_was(rows):
    file = io.StringIO(csv_table(["a", "b"], rows), newline="")
    assert [list(row.values()) for row in csv_rows(file, ["a", "b"])] == rows


@given(st.lists(TRICKY, min_size=2, max_size=3), st.sampled_from(",;\t|"))
def test_no_cell_is_a_formula_wherever_a_spreadsheet_splits(cells, separator):
    """Also where it takes another character than the comma for the separator, as many do."""
    text = csv_table([f"c{i}" for i in range(len(cells))], [cells])
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
        for cell in map(str.strip, row):
            assert not cell.startswith(("=", "+", "-", "@", "＝")) or _is_number(cell), (cell, text)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_numbers_stay_numbers():
    assert (
        csv_table(["score"], [[-0.5], ["-1e9"], [float("-inf")], [None], [True]]) == "score\n-0.5\n-1e9\n-inf\n\nTrue\n"
    )


@pytest.mark.parametrize("text", ["", "a,b\n1\n", "a\n1\n", "b,a\n1,2\n", "a,b\n1,2,3\n", "a,b\n1," + "x" * 200_000])
def test_a_damaged_table_is_refused(text):
    with pytest.raises(ValueError):
        list(csv_rows(io.StringIO(text, newline=""), ["a", "b"]))


def test_markdown_shows_what_is_there():
    assert markdown("[a](http://x) www.x.org <b>\n# c") == r"\[a\](http\://x) www\.x.org \<b\> \# c"


class Word(StrEnum):
    OURS = "ours"


@dataclass(frozen=True)
class Leaf:
    name: str
    word: Word
    numbers: tuple[float, ...]


@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf, ...]
    by_name: dict[str, list[str]]

    __repr__ = shapes


def test_every_text_of_a_document_is_one_line():
    tree = Tree((Leaf("a\nb", Word.OURS, (1.0,)),), {"c\x1b": ["d\u202e", "e"]})
    clean = every_line(tree)
    assert clean.leaves == (Leaf(r"a\nb", Word.OURS, (1.0,)),)
    assert clean.leaves[0].word is Word.OURS
    assert clean.by_name == {r"c\x1b": [r"d\u202e", "e"]}
    assert repr(tree) == "Tree(leaves=tuple of 1, by_name=dict of 1)"


def test_messages_of_errors_print():
    assert str(DataError("column 'a\x1b[2J' of\nthe table \u2028")) == "column 'a\\x1b[2J' of\nthe table \\u2028"


def test_columns_of_one_kind_are_written_as_single_cells_are():
    """Whatever is fast for a column gives what a cell by itself does: columns longer than a part of them, too."""
    columns = {
        "numbers": [0.1, -0.0, 1e-300, float("nan"), float("inf"), 3.0],
        "nothing": [None] * 6,
        "equal": ["=1+1", "=1+1", "naive-bayes", "naive-bayes", "naive-bayes", "naive-bayes"],
        "flags": [True, False, True, True, False, True],
        "flags and texts": [True, "True", True, True, "True", True],
        "ids": ["0a1", "b2", "c3", "d4", "e5", "f6"],
        "hostile": ["=cmd", 'a"b', "x;y", "line\nbreak", "+1", "\t@a"],
        "mixed": [1, 1.0, True, "1", None, "-x"],
    }
    rows = list(zip(*columns.values(), strict=True))
    text = csv_table(list(columns), rows)
    assert text == csv_table(list(columns), rows[:1]) + "".join(csv_table(row, []) for row in rows[1:])
    many = csv_table(list(columns), rows * 4000)  # several parts
    head, _, body = text.partition("\n")
    assert many == f"{head}\n" + body * 4000
    assert csv_table(["a"], []) == "a\n"
