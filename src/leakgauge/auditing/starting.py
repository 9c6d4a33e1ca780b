"""The first file of an audit, written for a table: what its columns may be, guessed from names, types and counts.

The text holds names of columns and no value of any cell. What is guessed says so in a comment, since a guess about the
roles of columns decides what is measured.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakgauge.auditing.config import parse_config
from leakgauge.auditing.keys import (
    KEY,
    MOST_TEXTS,
    MOSTLY,
    PERSON,
    holds_dates,
    is_text,
    looks_like_key,
    n_different,
    names_persons,
    plain,
    repeats,
)
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.escaping import one_line
from leakgauge.models import SAFETENSORS_SUFFIX, is_pickle, load_estimator
from leakgauge.models.stated import Stated, as_written
from leakgauge.records import Kind, Role
from leakgauge.records._messages import closest, closest_column, is_number, shortened
from leakgauge.records._tables import FIRST_INEXACT, RawColumn
from leakgauge.training import RECIPES

if TYPE_CHECKING:
    import pyarrow as pa

    from leakgauge.auditing.subject import Subject

SENSITIVE = re.compile(r"(?i)(^|[\W_])(sex|gender|race|ethnic\w*|religion|disab\w*|pregnan\w*|nationality)([\W_]|$)")
"""Names of columns that are often sensitive."""

CODE = re.compile(r"(?i)[\W_](id|code|nbr)$|[a-z](ID|Id|Code)$")
"""Names of columns whose whole numbers stand for something else, if they are few."""


DECIMAL_COMMA = (
    "numbers with a decimal comma: write a point before the decimals and nothing between groups of digits, then remove "
    "this entry"
)
"""What is said of a column of such texts."""

NOT_TAKEN = "the model does not take it"
"""What is said of a column that is no feature of a given model."""


@dataclass(frozen=True)
class ColumnGuess:
    """What a column may be.

    Args:
        name: of the column.
        role: that is written.
        why: what was seen, and what the role means.
        kind: of a feature that is not what its values look like.
        other: a role that stands in a comment, for the user to decide.
    """

    name: str
    role: Role
    why: str
    kind: Kind | None = None
    other: Role | None = None


@dataclass(frozen=True)
class Start:
    """A file that was not written yet.

    Args:
        text: of the file.
        guesses: the columns that it describes.
        doubt: why the target may be the wrong column; empty where nothing was seen.
    """

    text: str
    guesses: tuple[ColumnGuess, ...]
    doubt: str = ""


def guess_columns(
    table: pa.Table,
    target: str,
    *,
    person: str | None = None,
    alone: bool = False,
    features: Collection[str] | None = None,
) -> tuple[ColumnGuess, ...]:
    """What the columns are that are not plain features.

    Args:
        table: of records.
        target: name of the label column.
        person: name of the column that says whose row each is, if that is known.
        alone: whether it is known that no column says so.
        features: names of the columns that the model takes, if that is known: these are features, and no others.

    Raises:
        ConfigError: there is no such column.
    """
    for option, name in (("--target", target), ("--person", person)):
        if name is not None and name not in table.column_names:
            raise ConfigError(f"{option}: no column is called {name!r}; {closest_column(name, table.column_names)}")
    if person == target:
        raise ConfigError("--person and --target name the same column; the target is what the model predicts")
    guesses: list[ColumnGuess] = []
    for name in table.column_names:
        if name == target or not name or is_number(name):  # such a name may be the value of a record
            continue
        if name == person:
            guesses.append(ColumnGuess(name, Role.PERSON, "whose row it is; the model does not see it"))
        elif (guess := _guess(table, name, features)) is not None:
            second = guess.role is Role.ID and any(one.role is Role.ID for one in guesses)
            why = f"{guess.why} (a table has one id)" if second else guess.why
            guesses.append(ColumnGuess(name, Role.IGNORE, why) if second else guess)
    if person is None and not alone:
        _choose_person(guesses, table)
    return tuple(guesses)


def _choose_person(guesses: list[ColumnGuess], table: pa.Table) -> None:
    """Give one of the clear keys that repeat the role person: called like one if any is, with the fewest values.

    Rows that belong together by another key are then together as well, if that names parts of a person.
    """
    columns = {one.name: plain(table.column(one.name)) for one in guesses if one.other is Role.PERSON}
    keys = [name for name, column in columns.items() if not column.null_count and repeats(column)]
    clear = [name for name in keys if names_persons(name, columns[name])]
    if not clear:
        return
    chosen = min(clear, key=lambda name: (not PERSON.search(name), n_different(columns[name])))
    others = [name for name in keys if name != chosen]
    for place, guess in enumerate(guesses):
        called = "the key of a person" if PERSON.search(guess.name) else "a key"
        if guess.name == chosen:
            why = (
                f"it looks like {called}, and its values repeat: all rows of one value are taken for one person's. If "
                "each row is of another person, set the role ignore"
            )
            why += f"; so do the values of {shortened(others)}, of which one may be meant" if others else ""
            guesses[place] = ColumnGuess(guess.name, Role.PERSON, why, other=Role.IGNORE)
        elif guess.name in others:
            why = f"it looks like {called}: if it says whose row each is, give it the role person in the place of "
            guesses[place] = replace(guess, why=why + one_line(chosen))


def _guess(table: pa.Table, name: str, features: Collection[str] | None) -> ColumnGuess | None:
    """What one column is, where it is no plain feature."""
    import pyarrow as pa

    column, n_rows = table.column(name), table.num_rows
    column = plain(column)
    if not _can_be_read(column):
        return ColumnGuess(name, Role.IGNORE, "its values are neither numbers, texts, true and false nor dates")
    text, whole, n_distinct = is_text(column), pa.types.is_integer(column.type), n_different(column)
    if features is not None and name in features:
        return _sensitive(name)
    if n_distinct == 0:
        return ColumnGuess(name, Role.IGNORE, "it has no values")
    if text and n_distinct == n_rows and 0 < (n_wrong := _no_numbers(column)) < (1 - MOSTLY) * n_rows:
        why = (
            f"in {n_wrong:,} of {n_rows:,} rows the value is not a number: correct these values, then remove this entry"
        )
        return ColumnGuess(name, Role.IGNORE, why)
    if text and _written_dates(column):
        why = "dates of another form: write year, month and day, as in 1950-12-31, then remove this entry"
        return ColumnGuess(name, Role.IGNORE, why)
    if text and _decimal_commas(column):
        return ColumnGuess(name, Role.IGNORE, DECIMAL_COMMA)
    if text and holds_dates(column):
        if features is not None:
            return ColumnGuess(name, Role.IGNORE, NOT_TAKEN)
        why = "points of time written as text: a recipe takes them as numbers, another model as text"
        return ColumnGuess(name, Role.FEATURE, why)
    if n_distinct == n_rows > 1 and (_one_word(column) if text else whole and (KEY.search(name) or _counts(column))):
        return ColumnGuess(name, Role.ID, "different in every row: it names records, and the model does not see it")
    if looks_like_key(name, column):
        called = "the key of a person" if PERSON.search(name) else "a key"
        why = f"it looks like {called}: if a person has several rows, set the role person"
        return ColumnGuess(name, Role.IGNORE, why, other=Role.PERSON)
    if features is not None:
        return ColumnGuess(name, Role.IGNORE, NOT_TAKEN)
    if text and n_distinct > max(MOST_TEXTS, n_rows // 2):
        return ColumnGuess(name, Role.IGNORE, "different texts in most rows: it is no category")
    if whole and _is_inexact(column):
        return ColumnGuess(name, Role.IGNORE, "whole numbers of 2**53 or more name something: they are no quantity")
    if whole and CODE.search(name):
        return ColumnGuess(name, Role.FEATURE, "it looks like codes, whose order means nothing", Kind.CATEGORICAL)
    if pa.types.is_temporal(column.type):
        return ColumnGuess(name, Role.FEATURE, "a point of time, which the model takes as a number")
    return _sensitive(name)


def doubt_about(table: pa.Table, target: str) -> str:
    """Why the column that the model is to predict may be the wrong one; empty where nothing was seen.

    Of texts each is a class, whatever they look like.
    """
    column = plain(table.column(target))
    n_distinct, n_rows = n_different(column), table.num_rows
    if looks_like_key(target, column):
        return "it looks like a key, which a model has no reason to predict: is another column meant?"
    if not is_text(column) or n_distinct == 0:
        return ""
    if _written_dates(column) or holds_dates(column):
        return f"dates as text, of which each is a class ({n_distinct:,} of them): is another column meant?"
    if _decimal_commas(column):
        how = "numbers with a decimal comma are text, of which each is a class"
        return f"{how} ({n_distinct:,} of them): write a point before the decimals if it is a quantity"
    if n_distinct > max(MOST_TEXTS, n_rows // 2):
        return "different texts in most rows, of which each is a class: is another column meant?"
    return ""


def _can_be_read(column: pa.ChunkedArray) -> bool:
    """Whether a table of records takes values of this type."""
    import narwhals as nw

    try:
        RawColumn("", nw.from_native(column, series_only=True)).dtype  # noqa: B018
    except DataError:
        return False
    return True


def _is_inexact(column: pa.ChunkedArray) -> bool:
    """Whether float64 does not tell whole numbers apart."""
    import pyarrow.compute as pc

    ends = pc.min_max(column).as_py()
    return ends["max"] is not None and max(-ends["min"], ends["max"]) >= FIRST_INEXACT


def _sensitive(name: str) -> ColumnGuess | None:
    if not SENSITIVE.search(name):
        return None
    return ColumnGuess(name, Role.FEATURE, "with the role sensitive, attackers try to infer it", other=Role.SENSITIVE)


def _one_word(column: pa.ChunkedArray) -> bool:
    """Whether no text of a column holds a space."""
    import pyarrow.compute as pc

    return not pc.any(pc.match_substring(column, " ")).as_py()


def _no_numbers(column: pa.ChunkedArray) -> int:
    """How many texts of a column stand for no number."""
    import pyarrow.compute as pc

    numbers = pc.match_substring_regex(column, r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$")
    return int(pc.sum(pc.invert(numbers)).as_py() or 0)


def _decimal_commas(column: pa.ChunkedArray) -> bool:
    """Whether all texts of a column are numbers as many languages write them, some of them no whole ones.

    With a comma before the decimals, and perhaps points or spaces between groups of three digits.
    """
    import pyarrow.compute as pc

    numbers = pc.match_substring_regex(column, r"^\s*[-+]?(\d+|\d{1,3}([.\x{a0}\x{202f} ]\d{3})+)(,\d+)?\s*$")
    return bool(pc.all(numbers).as_py()) and bool(pc.any(pc.match_substring(column, ",")).as_py())


def _written_dates(column: pa.ChunkedArray) -> bool:
    """Whether all texts of a column are dates whose year comes last, with day and month in either order."""
    import pyarrow.compute as pc

    date, time = r"\d{1,2}[./-]\s?\d{1,2}[./-]\s?(\d{4}|\d{2})", r"\s\d{1,2}:\d{2}(:\d{2})?"
    dates = pc.match_substring_regex(column, rf"^\s*{date}({time})?\s*$")
    return bool(pc.all(dates).as_py())


def _counts(column: pa.ChunkedArray) -> bool:
    """Whether whole numbers without repetition are those of rows: from 0 or 1, without a gap."""
    import pyarrow.compute as pc

    ends = pc.min_max(column).as_py()
    return ends["min"] in (0, 1) and ends["max"] - ends["min"] + 1 == len(column)


def possible_persons(table: pa.Table, target: str) -> list[str]:
    """The columns that look like keys of persons with several rows."""
    return [one.name for one in guess_columns(table, target, alone=True) if one.other is Role.PERSON]


def first_config(
    table: pa.Table,
    path: Path,
    target: str,
    *,
    out: Path,
    holdout: Path | None = None,
    model: str | None = None,
    module: str | None = None,
    person: str | None = None,
    alone: bool = False,
) -> Start:
    """The text of a file that ``leakgauge audit`` takes as it is; it is checked on the records themselves.

    Args:
        table: of all records, or of the training records if there is a holdout.
        path: from where it was read.
        target: name of the label column.
        out: the file to be; paths in it are relative to its folder.
        holdout: records that the model was not trained on.
        model: the name of a recipe, or a model file; by default a recipe that suits the task.
        module: the function that makes the network of which the model file holds the state, as ``module:function``.
        person: name of the column that says whose row each is; by default one that looks like a key and repeats.
        alone: whether no column says so.

    Raises:
        InputError: a column or a file cannot be used.
    """
    recipes = [one.name for one in RECIPES]
    file = None if model is None or model in recipes else Path(model)
    if file is not None and file.name == model and not file.suffix and not file.exists():  # no name of a model file
        near = closest(model, recipes).rstrip(".")
        raise ConfigError(
            f"--model {one_line(model)} is no recipe and no file; {near}; the recipes: {', '.join(recipes)}"
        )
    if file is not None and holdout is None:
        raise ConfigError(
            f"--model {model} is no recipe, so it is the file of a trained model: TABLE must hold its training records "
            f"and --holdout others; give --holdout, or one of {', '.join(recipes)}"
        )
    if file is not None and is_pickle(file):
        raise ModelError(
            f"model file {file} is a pickle, which runs code of its maker when opened; if you made the file yourself, "
            f"make a skops file of it (leakgauge convert {file} {file.with_suffix('.skops')} --allow-pickle) and give "
            "that to --model"
        )
    is_state = file is not None and file.suffix.lower() == SAFETENSORS_SUFFIX
    if is_state and module is None:
        raise ConfigError(
            f"--model {model} holds the state of a network and not the network; name the function that makes it: "
            "--module module:function"
        )
    if module is not None and not is_state:
        raise ConfigError("--module is for .safetensors files given by --model; leave it out")
    features = None if file is None or module is not None else _features(load_estimator(file), table.column_names)
    guesses = guess_columns(table, target, person=person, alone=alone, features=features)
    guessed = [one.name for one in guesses if one.role is Role.PERSON and person is None]
    doubt = doubt_about(table, target)
    blocks = [_HEAD.format(out=one_line(out.name)), "\n".join(_data(path, holdout, target, doubt, out.parent))]
    blocks += ["\n".join(_column(guess)) for guess in guesses]
    if file is not None:
        chosen = ['kind = "file"', f"path = {_path(file, out.parent)}"]
        chosen += [] if module is None else [f"module = {_quoted(module)}"]
    else:
        name = model or _try("\n\n".join(blocks), out, guessed)[0].name
        learner = 'kind = "recipe"         # a learner that the audit trains; or "file", "factory", "endpoint"'
        chosen = [learner, f"name = {_quoted(name)}"]
    text = "\n\n".join([*blocks, "\n".join(["[[models]]", *chosen]), _REST])
    if model is None:  # the records were tried before
        parse_config(text, out)
    else:
        _try(text, out, guessed)
    return Start(text, guesses, doubt)


def _features(model: Any, columns: Sequence[str]) -> set[str] | None:
    """The columns that a model takes, as far as it names them as the table does."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return {*map(str, names)}
    stated = set(getattr(model, "stated", Stated()).names)
    for written in (columns, [*map(as_written, columns)]):
        if stated and stated <= {*written}:
            return {name for name, one in zip(columns, written, strict=True) if one in stated}
    return None


def _try(text: str, out: Path, guessed: Sequence[str]) -> list[Subject]:
    """The models of a file that was not written yet; of a refused table it is said which column was guessed."""
    try:
        return parse_config(text, out).subjects()
    except DataError as error:
        if not guessed:
            raise
        raise DataError(
            f"{error} (column {guessed[0]!r} was taken for the one that says whose row each is: give another one, or "
            "none, with --person)"
        ) from None


def write_first(start: Start, out: Path) -> None:
    """Write the file; one that is there is never replaced.

    Raises:
        ConfigError: as :func:`refuse_out`, or the file cannot be written.
    """
    refuse_out(out)
    made = False
    try:
        with out.open("x", encoding="utf-8") as file:
            made = True
            file.write(start.text)
    except OSError as error:
        if made:  # a part of it, on a disk that is full
            with suppress(OSError):
                out.unlink()
        raise ConfigError(f"{out} cannot be written ({error.strerror}); name another file with --out") from None


def refuse_out(out: Path) -> None:
    """Raise ConfigError for a file that is there already, or whose folder is not."""
    if out.exists() or out.is_symlink():
        raise ConfigError(f"{out} is there already, and is not replaced; name another file with --out")
    if not out.parent.is_dir():
        raise ConfigError(f"{out} cannot be written (there is no such folder); name another file with --out")


_HEAD = """# An audit of leakgauge, with guesses about the columns: read them before you trust a verdict. Then
#
#     leakgauge explain {out}      shows what would be done, and how long it takes
#     leakgauge audit {out}        does it
#
# Paths are relative to this file. Columns that are not described here are features, numbers as numbers and texts as
# categories. leakgauge schema config prints all keys."""

_REST = """\
# [rule]                       # the defaults:
# dtp = 1.0                    # largest differential training privacy, in nats
# advantage = 0.1              # largest advantage of a membership or attribute attack

# [release]
# outputs = "as is"            # or "binned" or "labels": what the released model outputs
"""


def _data(path: Path, holdout: Path | None, target: str, doubt: str, folder: Path) -> Iterator[str]:
    yield "[data]"
    if holdout is None:
        yield f"file = {_path(path, folder)}    # half of it is drawn for training, the rest is the holdout"
        yield "# train_records = 1000         # draw fewer, for a first look"
        yield "# holdout_records = 1000"
    else:
        yield f"train = {_path(path, folder)}"
        yield f"holdout = {_path(holdout, folder)}"
    if doubt:
        yield f"# {doubt}"
    yield f"target = {_quoted(target)}"


def _column(guess: ColumnGuess) -> Iterator[str]:
    yield f"# {one_line(guess.why)}"
    yield "[[data.columns]]"
    yield f"name = {_quoted(guess.name)}"
    if guess.kind is not None:
        yield f'type = "{guess.kind.value}"'
    if guess.role is not Role.FEATURE:
        yield f'role = "{guess.role.value}"'
    if guess.other is not None:
        instead = "" if guess.role is Role.FEATURE else "    # in its place"
        yield f'# role = "{guess.other.value}"{instead}'


def _path(path: Path, folder: Path) -> str:
    return _quoted(Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix())


def _quoted(text: str) -> str:
    """As a basic string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
