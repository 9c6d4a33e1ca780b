"""Text on its way out: names and messages that came from outside are made harmless for what shows them.

A column name, a class, an id or the name of a model may hold anything: escape sequences that a terminal obeys, marks
that turn the direction of writing, line breaks that put the rest where a pipeline looks for commands, formulas that a
spreadsheet computes. :func:`one_line` is the common part, for terminals, logs and reports; the others add what one
form of output needs. HTML is escaped by the templates themselves.
"""

from __future__ import annotations

import csv
import dataclasses
import enum
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import NoneType
from typing import Any, TypeVar

T = TypeVar("T")

_JOINERS = "\u200c\u200d"  # without them words of some languages fall apart; harmless between letters of theirs

# What pipelines take for commands in the log of a job: `::name ...::` at the start of a line (GitHub; where a terminal
# breaks a line is not known here, so anywhere), `##[name]` and `##vso[name]` (GitHub, Azure), `##teamcity[name]`.
_COMMAND = re.compile(r"(?<=:):(?=[A-Za-z])|(?<=#)#(?=\w*\[)")

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~#&$@])")

# XML 1.0, section 2.2: all other characters cannot stand in a document, not even escaped.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# Where a spreadsheet may begin to read a cell (some split at semicolons whatever the file says), and what makes it a
# formula; the apostrophe is there so that what is guarded can be told from what had one of its own.
_FORMULA = re.compile(r"""((?:^|[;,|"\t\r\n])\s*)(?=[=+\-@＝＋－＠\'])""")
_GUARDED = re.compile(r"""((?:^|[;,|"\t\r\n])\s*)\'(?=[=+\-@＝＋－＠\'])""")

_ROWS = 10_000  # of a table that are written at once: a column of them is of one kind


def one_line(text: str) -> str:
    r"""Text as one line that shows what is in it: each character that does not print stands as its escape.

    That covers control characters, line breaks, marks of direction and other invisible ones, and halves of surrogate
    pairs. Colons and number signs by which pipelines know commands are escaped as well. Applied twice it gives the
    same as once.

    >>> print(one_line("a\nb \x1b[31mred \u202eabc"))
    a\nb \x1b[31mred \u202eabc
    >>> print(one_line("::set-output name=x::1"))
    :\x3aset-output name=x::1
    """
    if text.isascii() and text.isprintable() and "::" not in text and "##" not in text:
        return text
    shown = "".join(_shown(char, text[i - 1 : i]) for i, char in enumerate(text))
    return _COMMAND.sub(lambda found: f"\\x{ord(found[0]):02x}", shown)


def several_lines(text: str) -> str:
    """As :func:`one_line`, for a text of ours whose line breaks are meant."""
    return "\n".join(map(one_line, text.split("\n")))


def every_line(value: T) -> T:
    """A document (dataclasses, tuples, lists, dictionaries) with :func:`one_line` of every text in it."""
    return _mapped(value)  # type: ignore[no-any-return]


def markdown(text: str) -> str:
    r"""Text that Markdown shows as it is, on one line.

    >>> print(markdown("a|b <img> *c*"))
    a\|b \<img\> \*c\*
    """
    # A backslash before the colon or the dot keeps addresses from becoming links.
    escaped = _MARKDOWN.sub(r"\\\1", one_line(" ".join(text.split())))
    return re.sub(r"(?i)\b(www)\.", r"\1\\.", escaped.replace("://", r"\://"))


def xml(text: str) -> str:
    """Text in which every character that XML cannot hold is the replacement character; it is yet to be quoted."""
    return _NO_XML.sub("\ufffd", text)


def workflow_command(text: str, *, in_title: bool = False) -> str:
    """Text as a part of one of GitHub's workflow commands."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if in_title else text


def csv_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The text of a CSV file in which no cell is a formula to a spreadsheet.

    An apostrophe stands before what would be one, as spreadsheets themselves have it; :func:`csv_rows` takes it away
    again. Numbers stay as they are, and ``None`` is an empty cell.
    """
    text, rest = [f"{','.join(map(_cell, header))}\n"], iter(rows)
    while part := list(islice(rest, _ROWS)):
        lines = map(",".join, zip(*map(_cells, zip(*part, strict=True)), strict=True))
        text.append("\n".join([*lines, ""]))
    return "".join(text)


def csv_rows(lines: Iterable[str], header: Sequence[str]) -> Iterator[dict[str, str]]:
    """The lines of such a file as text, by the names in its first line, one after the other.

    Args:
        lines: of a file that was opened with ``newline=""``.
        header: the names that its first line holds.

    Raises:
        ValueError: if it holds others or there is none, or a line has another number of cells.
    """
    rows = (map(_as_written, row) for row in csv.reader(lines))
    try:
        if list(next(rows, ())) != list(header):
            raise ValueError("other columns")
        for row in rows:
            yield dict(zip(header, row, strict=True))
    except csv.Error:
        raise ValueError("no CSV") from None


def _shown(char: str, before: str) -> str:
    if char.isprintable():
        return char
    if unicodedata.category(char) == "Zs":  # a space that is not the usual one
        return " "
    if char in _JOINERS and before.isprintable() and not before.isascii():
        return char
    return ascii(char)[1:-1]


def _cells(column: Sequence[Any]) -> Iterable[str]:
    """The cells of a column; what it holds most often without looking at each."""
    kinds = set(map(type, column))
    if kinds == {float}:
        return map(repr, column)
    if kinds == {NoneType}:
        return [""] * len(column)
    if kinds <= {str, bool} and len(different := set(column)) < len(column) / 2:
        return map({one: _cell(one) for one in different}.__getitem__, column)
    return column if kinds == {str} and all(map(str.isalnum, column)) else map(_cell, column)


def _cell(held: object) -> str:
    text = "" if held is None else str(held)
    if text.isalnum() or isinstance(held, float):
        return text
    if isinstance(held, str) and not _is_number(held):
        text = _FORMULA.sub(r"\1'", text)
    # Python's own writer leaves a carriage return unquoted, which its reader takes for the end of the line.
    return '"' + text.replace('"', '""') + '"' if re.search(r'[",;|\t\r\n]', text) else text


def _as_written(cell: str) -> str:
    return _GUARDED.sub(r"\1", cell) if "'" in cell else cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text == text.strip()


def _mapped(value: Any) -> Any:
    if type(value) is str:  # members of enumerations are words of ours and stay what they are
        return one_line(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(
            value, **{field.name: _mapped(getattr(value, field.name)) for field in dataclasses.fields(value)}
        )
    if isinstance(value, Mapping):
        return {_mapped(key): _mapped(held) for key, held in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map(_mapped, value))
    return value


def shapes(holder: Any) -> str:
    """The ``__repr__`` of dataclasses that hold records or what belongs to single ones: shapes and sizes, no values.

    A notebook shows the last value of a cell, and a failing test shows the values of its function.
    """
    held = ((field.name, getattr(holder, field.name)) for field in dataclasses.fields(holder) if field.repr)
    return f"{type(holder).__name__}({', '.join(f'{name}={_shape(value)}' for name, value in held)})"


def _shape(value: Any) -> str:
    if value is None or isinstance(value, bool | int | float | enum.Enum):
        return repr(value)
    if isinstance(value, str):
        return repr(one_line(value))
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype} {list(value.shape)}"
    if isinstance(value, Mapping | tuple | list | set | frozenset):
        return f"{type(value).__name__} of {len(value)}"
    return shapes(value) if vars(type(value)).get("__repr__") is shapes else type(value).__name__
