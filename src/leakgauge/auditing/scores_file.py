"""Files of scores: what a model, and reference models, answered about records, a row for each answer.

.. code-block:: text

    id,member,label,p_cat,p_dog          the audited model: p_CLASS for each class, or loss, or logit
    17,1,cat,0.93,0.07

    id,model,member,p_cat,p_dog          reference models, each about the same records
    17,a,0,0.61,0.39

Columns have these names. In place of ``id``, which is unique (of each model), or beside it, ``record`` may repeat:
several sequences or augmented copies of one person, about whom the audit then is. Where only the ``record`` says which
answers of reference models belong to which of the audited one, they are averaged, losses and logits as they are and
probabilities by their logarithms, whose differences are logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.auditing.scores import SUM_SLACK, scored_subject
from leakgauge.auditing.subject import Subject
from leakgauge.errors import DataError
from leakgauge.records import read_table
from leakgauge.records._messages import closest_column, counted, quoted
from leakgauge.records._tables import FIRST_INEXACT

ID, RECORD, MODEL, MEMBER, LABEL, LOSS, LOGIT = "id", "record", "model", "member", "label", "loss", "logit"
"""Names of columns."""

PROBABILITY = "p_"
"""What the name of a column of probabilities begins with; the class follows."""

HELD = {
    MEMBER: "1 or true for records that the model was trained on, and 0 or false for others",
    LABEL: f"the true class of each record, as what follows {PROBABILITY!r} in the column of its probability",
    MODEL: "the name of the reference model that answered",
    ID: "a name for each record, the same in both files",
    RECORD: "the name of whose record each row is, the same in both files",
}
"""What columns must hold."""

SMALLEST = float(np.finfo(np.float64).tiny)
"""What a probability of 0 counts as where logarithms are averaged."""

MISSING = "(missing)"
"""The category of records whose cell in a column of groups is empty."""

AVERAGES = {LOSS: "mean loss", LOGIT: "mean logit", PROBABILITY: "mean log-probability of each class"}
"""How several answers about one record become one."""


def read_scores(path: Path, references: Path | None, *, groups: Sequence[str], name: str) -> Subject:
    """Read what a model answered, and what reference models did.

    Args:
        path: a row for each answer of the audited model.
        references: a row for each answer of a reference model, or ``None`` where there are none.
        groups: columns of the first file by whose categories the advantage is told as well.
        name: how the report calls the model.

    Raises:
        DataError: a file cannot be read, or holds something that cannot be used; no value of a cell is quoted.
    """
    own, others = _Rows(path), None if references is None else _Rows(references)
    # Rows of reference models find those of the audited one by their id alone.
    held = [one.table.column_names for one in (own, others) if one is not None]
    by_row = others is None or RECORD not in held[0] or all(ID in names for names in held)
    whose = own.records
    records = own.rows if by_row else whose
    answers = own.averaged(records.codes, len(records), own.columns)

    def of_each(name: str, values: NDArray[Any]) -> NDArray[Any]:
        agreed = own.shared(name, values, whose)
        return agreed[whose.codes] if by_row else agreed

    inside = of_each(MEMBER, own.flags(MEMBER))
    if inside.all() or not inside.any():
        raise own.error(
            f"column {MEMBER!r}: all records are {'' if inside.all() else 'non-'}members, expected members and others; "
            f"add records that the model was {'not ' if inside.all() else ''}trained on"
        )
    labels, classes = None, None
    if own.form == PROBABILITY:
        labels = own.labels if by_row else of_each(LABEL, own.labels)
        classes = own.classes
    by_group = {group: of_each(group, own.texts(group)) for group in groups}
    notes = [own.note(averaged=not by_row)]
    shadow_members = shadow_answers = None
    if others is not None:
        shadow_members, shadow_answers = _references(others, own, records, notes)
    form = "probabilities" if own.form == PROBABILITY else own.form
    try:
        return scored_subject(
            inside,
            **{form: answers},
            labels=labels,
            shadow_members=shadow_members,
            shadow_scores=shadow_answers,
            groups=by_group,
            persons=whose.ids[whose.codes] if by_row and len(whose) < len(own) else None,
            name=name,
            classes=classes,
            ids=records.ids,
            note=" ".join(filter(None, notes)),
            written=own.written if len(records) < len(own) else None,
        )
    except DataError as error:
        both = path if references is None else f"{path} and {references}"
        raise DataError(f"{both}: {error}") from None


@dataclass(frozen=True, eq=False)
class _Named:
    """The records of a file: the name of each ``[n]``, and whose each row is ``[rows]``.

    ``values`` are the names as Arrow holds them, or ``None`` where the file has none.
    """

    ids: Indices | NDArray[np.str_]
    codes: Indices
    values: Any

    def __len__(self) -> int:
        return len(self.ids)


class _Rows:
    """The rows of a file of scores; errors name the file, the column, and the first row that is wrong."""

    def __init__(self, path: Path) -> None:
        self.path, self.table = path, read_table(path)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def error(self, said: str) -> DataError:
        return DataError(f"{self.path}: {said}")

    def require(self, right: Flags, column: str, wrong: str, advice: str) -> None:
        """Refuse rows ``[rows]`` that are not right."""
        if not right.all():
            where = f"row {int(np.argmin(right)) + 1:,} below the names"
            n = int((~right).sum())
            raise self.error(f"column {column!r}: {n:,} of {len(self):,} rows {wrong} (the first is {where}); {advice}")

    def column(self, name: str) -> Any:
        """A column as one array of Arrow's."""
        import pyarrow as pa

        if name not in self.table.column_names:
            must = f" {name!r} must hold {HELD[name]}: add it, or rename the column that does" if name in HELD else ""
            raise self.error(f"there is no column {name!r}; {closest_column(name, self.table.column_names)}{must}")
        kind = self.table.column(name).type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise self.error(f"column {name!r} holds lists, fields or bytes, expected numbers, text or true and false")
        column = self.table.column(name).combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0)
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column

    def known(self, name: str) -> Any:
        """A column without an empty cell."""
        column = self.column(name)
        self.require(_numpy(column.is_valid()), name, "are empty", "fill them, or leave these records out")
        return column

    def named(self, name: str) -> Any:
        """A column of names, without an empty cell; numbers among them have all their digits."""
        import pyarrow as pa

        column = self.known(name)
        if pa.types.is_floating(column.type):
            self.require(
                np.abs(_numpy(column)) < FIRST_INEXACT,
                name,
                "are numbers of 16 digits or more that were not read with all of them",
                "write them as text, with a letter before the digits",
            )
        return column

    def numbers(self, name: str) -> Floats:
        """Finite numbers ``[rows]``."""
        import pyarrow as pa

        column = self.known(name)
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            raise self.error(
                f"column {name!r} holds {column.type}, expected numbers with a decimal point in every row; correct it"
            )
        found = np.asarray(_numpy(column), dtype=np.float64)
        self.require(np.isfinite(found), name, "are not finite numbers", "correct them, or leave these records out")
        return found

    def flags(self, name: str) -> Flags:
        """True and false, or 1 and 0 ``[rows]``."""
        import pyarrow as pa

        column, expected = self.known(name), "expected 1 or true for members and 0 or false for others; correct them"
        if pa.types.is_boolean(column.type):
            return np.asarray(_numpy(column), dtype=bool)
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            raise self.error(f"column {name!r} holds {column.type}, {expected}")
        found = _numpy(column)
        self.require(np.isin(found, (0, 1)), name, "are neither", expected)
        return np.asarray(found, dtype=bool)

    def texts(self, name: str) -> NDArray[np.str_]:
        """Values as text ``[rows]``."""
        return np.asarray(_numpy(_as_text(self.column(name)).fill_null(MISSING)), dtype=np.str_)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold the answers."""
        names = self.table.column_names
        probabilities = tuple(name for name in names if name.startswith(PROBABILITY))
        held = [columns for columns in (probabilities, (LOSS,), (LOGIT,)) if columns and columns[0] in names]
        expected = f"expected one of: {PROBABILITY}CLASS for each class, {LOSS}, {LOGIT}"
        if not held:
            raise self.error(f"there is no column with answers of the model, {expected}; add it")
        if len(held) > 1:
            raise self.error(f"columns {quoted(one[0] for one in held)} hold answers, {expected}; keep one kind")
        if len(probabilities) == 1:
            raise self.error(f"{probabilities[0]!r} is the only column of probabilities; give one for each class")
        return held[0]

    @property
    def written(self) -> Floats:
        """The answers as they stand in the file ``[rows, k]``."""
        return np.column_stack([self.numbers(name) for name in self.columns])

    @property
    def form(self) -> str:
        """Which of the three they are."""
        return self.columns[0] if self.columns[0] in (LOSS, LOGIT) else PROBABILITY

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes ``[k]``, as the columns have them."""
        return tuple(name.removeprefix(PROBABILITY) for name in self.columns)

    @property
    def labels(self) -> Indices:
        """Places of the true classes ``[rows]``."""
        import pyarrow as pa

        column, classes = self.known(LABEL), self.classes
        if pa.types.is_boolean(column.type):
            classes = tuple(name.lower() for name in classes)
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        numbers = {_as_number(name): place for place, name in enumerate(classes)}
        if not is_text and len(numbers) < len(classes):
            raise self.error(
                f"column {LABEL!r} is read as {column.type}, which cannot distinguish classes that are the same so; "
                f"give them other names in {LABEL!r} and in the columns {PROBABILITY!r}"
            )
        known = (numbers if len(numbers) == len(classes) else {}) | {name: at for at, name in enumerate(classes)}
        if pa.types.is_floating(column.type):
            column = column.cast(pa.float64())
        elif not pa.types.is_integer(column.type):
            column = _as_text(column)
        encoded = column.dictionary_encode()
        found = [known.get(value, known.get(_as_number(value), -1)) for value in encoded.dictionary.to_pylist()]
        places: Indices = np.array(found, dtype=np.int64)[_numpy(encoded.indices)]
        self.require(
            places >= 0,
            LABEL,
            "name a class that has no column",
            f"expected what follows {PROBABILITY!r} in one of {counted(len(classes), 'column')}; correct them",
        )
        return places

    @cached_property
    def rows(self) -> _Named:
        """Each row by itself, by its id if it has one."""
        if ID not in self.table.column_names:
            return _Named(np.arange(len(self)), np.arange(len(self)), None)
        ids = _coded(self.named(ID))
        first = np.zeros(len(self), dtype=bool)
        first[np.unique(ids.codes, return_index=True)[1]] = True
        self.require(
            first,
            ID,
            "have the id of a row before them",
            f"ids must be unique; where several rows are about one person, name them in a column {RECORD!r}",
        )
        return ids

    @cached_property
    def records(self) -> _Named:
        """Whose the rows are; of each id there is one, and of a record one or more."""
        rows = self.rows
        return _coded(self.named(RECORD)) if RECORD in self.table.column_names else rows

    def shared(self, name: str, values: NDArray[Any], records: _Named) -> NDArray[Any]:
        """What all rows of a record say ``[records]``."""
        found = np.empty(len(records), dtype=values.dtype)
        found[records.codes] = values
        self.require(
            np.asarray(found[records.codes] == values), name, "differ from others of their record", "correct them"
        )
        return found

    def averaged(self, cells: Indices, n: int, columns: Sequence[str]) -> Floats:
        """Answers about each of n records ``[n]``, or ``[n, k]`` of classes, the mean of its rows.

        Args:
            cells: to which of them each row belongs ``[rows]``; each has one or more.
            n: how many there are.
            columns: those of the answers, in the order of the classes.
        """
        counts = np.bincount(cells, minlength=n)
        if self.form != PROBABILITY:
            values = self.numbers(columns[0])
            if self.form == LOSS:
                wrong = "are below 0, and a loss is a negative logarithm of a probability"
                self.require(values >= 0, LOSS, wrong, f"give losses in nats, or a column {LOGIT!r}")
            return np.asarray(np.bincount(cells, weights=values, minlength=n) / counts)
        several = bool((counts > 1).any())
        found, sums = np.empty((n, len(columns))), np.zeros(len(self))
        for place, name in enumerate(columns):
            values = self.numbers(name)
            self.require(values >= 0, name, "are below 0", "give probabilities, not logits")
            sums += values
            if several:
                logs = np.log(np.maximum(values, SMALLEST))
                found[:, place] = np.bincount(cells, weights=logs, minlength=n) / counts
            else:
                found[cells, place] = values
        self.require(
            np.abs(sums - 1) <= SUM_SLACK,
            columns[-1],
            "hold the last of probabilities that do not add up to 1",
            "give the probabilities of all classes, with four digits or more",
        )
        if several:
            found = np.exp(found - found.max(axis=1, keepdims=True))
            found /= found.sum(axis=1, keepdims=True)
        return found

    def note(self, *, averaged: bool) -> str:
        """What the report says of records with several answers."""
        counts = np.bincount(self.records.codes)
        if counts.max() == 1:
            return ""
        each = f"{counts.min():,} to {counts.max():,}" if counts.min() < counts.max() else f"{counts.max():,}"
        said = f"The {len(self):,} answers are about {len(counts):,} persons, {each} each"
        if not averaged:
            return f"{said}."
        return (
            f"{said}, and were averaged for each person ({AVERAGES[self.form]}), which hides one answer that gives "
            f"her away; with a column {ID!r} in both files they are not."
        )


def _references(rows: _Rows, own: _Rows, records: _Named, notes: list[str]) -> tuple[Flags, Floats]:
    """Who was in the sets of the reference models ``[models, n]``, and what these answered ``[models, n(, k)]``."""
    import pyarrow.compute as pc

    key = ID if records is own.rows else RECORD
    if records.values is None:
        raise own.error(f"there is no column {ID!r}, by which answers of reference models find their records; add one")
    if set(rows.columns) != set(own.columns):
        raise rows.error(f"the columns of answers differ from those of {own.path}; give the same kind and classes")
    named, known = rows.named(key), records.values
    if named.type != known.type:
        named, known = _as_text(named), _as_text(known)
    places = pc.index_in(named, value_set=known)
    advice = f"reference models answer about the records of {own.path}; leave others out"
    rows.require(_numpy(places.is_valid()), key, "are about a record that is not in that file", advice)
    models, n = _coded(rows.named(MODEL)), len(records)
    cells = models.codes * n + np.asarray(_numpy(places), dtype=np.int64)
    counts = np.bincount(cells, minlength=len(models) * n).reshape(len(models), n)
    lacking = np.flatnonzero((counts == 0).any(axis=1))
    if len(lacking):
        raise rows.error(
            f"{len(lacking):,} of {counted(len(models), 'reference model')} did not answer about all {n:,} records of "
            f"{own.path} (number {lacking[0] + 1} in the file lacks {int((counts[lacking[0]] == 0).sum()):,}); add them"
        )
    if key == ID:
        first = np.zeros(len(rows), dtype=bool)
        first[np.unique(cells, return_index=True)[1]] = True
        advice = f"where several rows are about one person, name them in a column {RECORD!r} of both files"
        rows.require(first, ID, "repeat a record of the same model", advice)
    answers = rows.averaged(cells, len(models) * n, own.columns)
    inside = rows.shared(MEMBER, rows.flags(MEMBER), _Named(np.arange(len(models) * n), cells, None))
    if counts.max() > 1:
        notes.append("Answers of reference models were averaged likewise.")
    return inside.reshape(len(models), n), answers.reshape(len(models), n, *answers.shape[1:])


def _coded(column: Any) -> _Named:
    """Distinct values of a column without missing ones, in their order, and which each row holds."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type):
        column = _as_text(column)
    encoded = column.dictionary_encode()
    values = encoded.dictionary
    ids = _numpy(values)
    ids = ids if pa.types.is_integer(values.type) else np.asarray(ids, dtype=np.str_)
    return _Named(ids, np.asarray(_numpy(encoded.indices), dtype=np.int64), values)


def _as_number(value: float | str) -> float | str:
    """The number that a text is read as, or else the text: whole ones with all their digits."""
    for read in (int, float) if isinstance(value, str) else ():
        try:
            return read(value)
        except ValueError:
            continue
    return value


def _as_text(column: Any) -> Any:
    """Values as text; whole numbers are written without a point."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
        whole = pc.and_(pc.equal(column, pc.round(column)), pc.less(pc.abs(column), FIRST_INEXACT))
        column = column.cast(pa.int64()) if pc.all(whole).as_py() else column
    return column.cast(pa.large_string())


def _numpy(column: Any) -> NDArray[Any]:
    return np.asarray(column.to_numpy(zero_copy_only=False))
