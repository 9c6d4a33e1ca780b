"""Columns that look like keys: of persons, or of other things that have several rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from leakgauge.records._dates import times_of

if TYPE_CHECKING:
    import pyarrow as pa

KEY = re.compile(r"(?i)(^|[\W_])(id|key|nbr|nr|no|num|number|uuid)\.?$|[a-z](ID|Id|Nr|Nbr|Key)\.?$|^rownames?$")
"""Names of columns that identify something."""

ID = re.compile(r"(?i:(^|[\W_])(id|key|uuid))\.?$|[a-z](ID|Id|Key)\.?$")
"""Names of columns that are plainly keys, though not always of persons."""

NUMBERED = re.compile(r"(?i)(no|nr|nbr|num|number|code)\.?$")
"""Ends of names of columns that number or classify things, whatever their values look like."""

QUANTITY = re.compile(r"(?i:(^|[\W_])(age|counts?|size|visits)([\W_]|$))|[a-z](Age|Counts?|Size|Visits)(?![a-z])")
"""Names of numbers about something, which are no keys whatever they end in, unless they are plainly keys."""

PERSON = re.compile(
    r"(?i)patient|person|subject|participant|respondent|customer|client|user|member|employee|household|pupil|student"
)
"""Names of columns that identify persons, if they are keys."""

ROWS_OF_KEY = 20
"""A key has at least one value for so many rows,"""

FEWEST_OF_KEY = 10
"""and more values than this."""

MOST_TEXTS = 20
"""A column of more different texts than this, different in half of all rows, is no category."""

MOSTLY = 0.9
"""The share of texts that have to look like codes."""


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values of a column, which may be stored as a dictionary."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether a column holds texts."""
    import pyarrow as pa

    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def holds_dates(column: pa.ChunkedArray) -> bool:
    """Whether a column of texts holds dates, or dates with times."""
    return is_text(column) and times_of(column.unique().to_pylist()) is not None


def n_different(column: pa.ChunkedArray) -> int:
    """How many different values a column has, without missing ones."""
    return int(len(column.unique()) - (column.null_count > 0))


def looks_like_key(name: str, column: pa.ChunkedArray) -> bool:
    """Whether a column of whole numbers or texts is a key, by its name or its look, and by how many values it has.

    Texts that are dates look like none.
    """
    import pyarrow as pa

    text = is_text(column)
    if not (text or pa.types.is_integer(column.type)):
        return False
    n = n_different(column)
    named = bool(ID.search(name) or PERSON.fullmatch(name) or (KEY.search(name) and not QUANTITY.search(name)))
    return (
        (named or (text and n > MOST_TEXTS and _numbered(column) and not holds_dates(column)))
        and n > FEWEST_OF_KEY
        and ROWS_OF_KEY * n >= len(column)
    )


def names_persons(name: str, column: pa.ChunkedArray) -> bool:
    """Whether a key may be taken for one of persons unasked: by its name, or as codes that are not those of a class.

    A number of a ward, a batch or an invoice, and a code of a country, is none.
    """
    codes = is_text(column) and _numbered(column) and not NUMBERED.search(name)
    return bool(PERSON.search(name) or ID.search(name) or codes)


def repeats(column: pa.ChunkedArray) -> bool:
    """Whether several rows of a column have the same value."""
    return bool(n_different(column) < len(column) - column.null_count)


def repeated_keys(tables: tuple[pa.Table, ...], names: list[str]) -> tuple[str, ...]:
    """Those of some columns that look like keys and have the same value in several rows of a table."""
    found = []
    for name in names:
        columns = [plain(one.column(name)) for one in tables if name in one.column_names]
        if any(looks_like_key(name, one) and repeats(one) for one in columns):
            found.append(name)
    return tuple(found)


def _numbered(column: pa.ChunkedArray) -> bool:
    """Whether nearly all texts are one word with a digit in it and no plain number, as codes that name a thing are."""
    import pyarrow.compute as pc

    words = pc.match_substring_regex(column, r"^\S*\d\S*$")
    numbers = pc.match_substring_regex(column, r"^[-+]?[\d.,]+$")
    share = pc.mean(pc.cast(pc.and_not(words, numbers), "float64")).as_py()
    return share is not None and share > MOSTLY
