"""From tables as they came to one frozen schema: which columns there are, of what kind, with which categories."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from leakgauge.errors import DataError
from leakgauge.escaping import shapes
from leakgauge.records import _encoding
from leakgauge.records._dates import times_of
from leakgauge.records._messages import closest_column, shortened
from leakgauge.records._tables import RawColumn, RawTable
from leakgauge.records.columns import ArrayForm, Column, Hole, Kind, Native, OneHot, Role, Task, Value, in_order
from leakgauge.records.schema import Schema

MOST_CLASSES = 20
"""A target of numbers is taken for classes if all are whole and at most this many are distinct."""


@dataclass(frozen=True)
class TargetedTable:
    """One table of an audit with its target: all records, or the training or holdout table.

    Attributes:
        table: The table with the features (and perhaps more columns).
        target: The labels, one per row.
        ids: One per row, unique.
        persons: Whose row each is, if that was said.
    """

    table: RawTable
    target: RawColumn
    ids: npt.NDArray[np.generic]
    persons: npt.NDArray[np.generic] | None = None

    __repr__ = shapes


@dataclass(frozen=True)
class Wishes:
    """What the user said about the columns; all else is inferred.

    Attributes:
        columns: Declared columns by name.
        sensitive: Names of features to mark as sensitive.
        categorical: Names of features to take as categories although they hold numbers.
        left_out: Names of columns that are not features: the target, the id and person columns, ignored ones.
        task: Classification or regression, if said.
        classes: The classes in order, if said.
        one_hot: By the name of each one-hot group those of its columns.
    """

    columns: Mapping[str, Column] = field(default_factory=dict)
    sensitive: Collection[str] = ()
    categorical: Collection[str] = ()
    left_out: Collection[str] = ()
    task: Task | None = None
    classes: tuple[Value, ...] | None = None
    one_hot: Mapping[str, Sequence[str]] = field(default_factory=dict)

    __repr__ = shapes


def freeze(parts: Sequence[TargetedTable], wishes: Wishes, native: Native | None = None) -> Schema:
    """One schema for all parts, with categories and classes from all of them together unless declared.

    The columns stand in the order of the first part.

    Raises:
        DataError: If the parts differ in their columns, or a column cannot be understood.
    """
    first = parts[0].table
    if not isinstance(wishes.one_hot, Mapping):
        raise DataError('one_hot must give lists of columns by name, such as {"race": ["race_white", "race_black"]}.')
    form = _one_form([part.table for part in parts])
    _require_known(wishes, first)
    left_out = {*wishes.left_out, *(c.name for c in wishes.columns.values() if not c.is_feature)}
    names = [name for name in first.names if name not in left_out]
    if not names:
        raise DataError(f"{first.place} has no feature column left; keep at least one.")
    for part in parts[1:]:
        _require_same_columns(first, part.table, left_out)
    grouped = {name for columns in wishes.one_hot.values() for name in columns}
    columns = tuple(_freeze_feature([part.table.column(name) for part in parts], wishes, grouped) for name in names)
    target = _freeze_target([part.target for part in parts], wishes)
    groups = tuple(
        OneHot(name, columns, Role.SENSITIVE if name in wishes.sensitive else Role.FEATURE)
        for name, columns in wishes.one_hot.items()
    )
    return Schema(columns, target, native or first.native, groups, form)


def _one_form(tables: Sequence[RawTable]) -> ArrayForm:
    """That of arrays of numbers, or of text; the type is one that holds the numbers of all tables."""
    first = tables[0]
    for other in tables[1:]:
        if other.shape != first.shape or other.sparse != first.sparse:
            raise DataError(
                f"{first.place} is {first.described} and {other.place} {other.described}; give both in one form."
            )
    dtypes = [table.entries for table in tables if table.entries is not None]
    kinds = {"number" if dtype.kind in "iuf" else dtype.kind for dtype in dtypes}
    if len(dtypes) < len(tables) or kinds not in ({"number"}, {"U"}):
        return ArrayForm(shape=first.shape, sparse=first.sparse)
    common = np.result_type(*dtypes).newbyteorder("=")
    dtype = common.str if common.kind == "U" else common.name if common.itemsize <= 8 else "float64"
    return ArrayForm(dtype, first.shape, first.sparse)


def identifiers(raw: RawColumn) -> npt.NDArray[np.generic]:
    """The ids [n] of an id column: whole numbers or text, none missing.

    Raises:
        DataError: If one is missing, or they are of another sort.
    """
    value_of_row, values = raw.distinct()
    if None in values:
        row = int(np.argmax(value_of_row == values.index(None)))
        raise DataError(f"{raw.where}: the id of row {row} (counting from 0) is missing; give every row an id.")
    kinds = {type(value) for value in values}
    if not kinds <= {int} and not kinds <= {str}:
        raise DataError(
            f"{raw.where} must hold ids that are all text or all whole numbers below 2**63; turn them into text, in a "
            "CSV file by a letter before each."
        )
    try:
        return np.array(values, dtype=np.int64 if kinds == {int} else np.str_)[value_of_row]
    except OverflowError:
        raise DataError(f"{raw.where} holds ids of 2**63 or more; turn them into text.") from None


def _require_known(wishes: Wishes, table: RawTable) -> None:
    for wish, names in (
        ("declared", wishes.columns),
        ("named as sensitive", wishes.sensitive),
        ("named as categorical", wishes.categorical),
        ("named as target, id or ignored", wishes.left_out),
    ):
        groups = wishes.one_hot if names is wishes.sensitive else ()
        unknown = [name for name in names if name not in table.names and name not in groups]
        if unknown:
            raise DataError(
                f"{table.place} has no column {unknown[0]!r}, which is {wish}; "
                f"{closest_column(unknown[0], table.names)}"
            )
    for name in (*wishes.sensitive, *wishes.categorical):
        if name in wishes.left_out:
            raise DataError(
                f"column {name!r} is named as sensitive or categorical, but also as target, id or ignored; only a "
                "feature can be sensitive or categorical."
            )


def _require_same_columns(first: RawTable, other: RawTable, left_out: Collection[str]) -> None:
    ours, theirs = {*first.names}, {*other.names}
    missing = [n for n in first.names if n not in theirs and n not in left_out]
    extra = [n for n in other.names if n not in ours and n not in left_out]
    if (missing or extra) and not ours & theirs:
        raise DataError(
            f"{first.place} and {other.place} have no column in common; both must have the same ones, named in the "
            "first line of each file."
        )
    if missing or extra:
        parts = [f"{other.place} lacks {shortened(missing)}, which {first.place} has"] if missing else []
        parts += [f"{other.place} has {shortened(extra)}, which {first.place} lacks"] if extra else []
        raise DataError(f"{'; '.join(parts)}: both must have the same columns, so rename, add or ignore these.")


def _freeze_feature(raws: Sequence[RawColumn], wishes: Wishes, grouped: Collection[str]) -> Column:
    name = raws[0].name
    declared = wishes.columns.get(name)
    known = [raw for raw in raws if raw.dtype != "null"]
    if not known:
        raise DataError(f"{raws[0].where} has no values at all; ignore it.")
    dtype = _common_dtype(known)
    kind = declared.kind if declared else _inferred_kind(known, name in wishes.categorical)
    role = Role.SENSITIVE if name in wishes.sensitive else declared.role if declared else Role.FEATURE
    if kind is Kind.NUMERIC:
        hole = Hole.NONE if any(raw.hole is Hole.NONE for raw in known) else Hole.NAN
        return Column(name, kind, role, dtype=dtype, hole=hole, unit=known[0].unit)
    if declared and declared.categories:
        return Column(name, kind, role, declared.categories, dtype, known[0].hole)
    if name in grouped and dtype == "bool":
        return Column(name, kind, role, (False, True), dtype, known[0].hole)
    if kind is Kind.ORDINAL:
        _require_order(known)
    categories = _frozen_categories(raws)
    inferred = declared is None and name not in wishes.categorical and dtype == "string"
    dates = inferred and times_of(categories) is not None
    return Column(name, kind, role, categories, dtype, known[0].hole, dates=dates)


def _inferred_kind(raws: Sequence[RawColumn], named_categorical: bool) -> Kind:
    if all(raw.is_number for raw in raws):
        return Kind.CATEGORICAL if named_categorical else Kind.NUMERIC
    if len({raw.dtype for raw in raws}) == 1 and raws[0].is_time:
        return Kind.NUMERIC
    if all(raw.dtype == "enum" for raw in raws):
        return Kind.ORDINAL
    for raw in raws:
        if raw.is_number and not named_categorical:
            other = next(r for r in raws if not r.is_number)
            raise DataError(
                f"{raw.where} holds numbers but {other.place} holds other values there; make both alike, or declare "
                "the column categorical."
            )
        if raw.is_time:
            raise DataError(
                f"{raw.where} holds {raw.dtype} values but another table holds {_other(raw, raws)} there; make both "
                "alike."
            )
    return Kind.CATEGORICAL


def _other(raw: RawColumn, raws: Sequence[RawColumn]) -> str:
    return next(one.dtype for one in raws if one.dtype != raw.dtype)


def _require_order(raws: Sequence[RawColumn]) -> None:
    for raw in raws:
        if raw.declared_categories() is None and not raw.is_number:
            raise DataError(
                f"{raw.where} is declared ordinal but its values have no order of their own; list its categories "
                "from lowest to highest."
            )


def _frozen_categories(raws: Sequence[RawColumn]) -> tuple[Value, ...]:
    declared = {raw.declared_categories() for raw in raws if raw.dtype != "null"}
    observed = {value for raw in raws for value in raw.distinct()[1]}
    if len(declared) == 1 and (order := next(iter(declared))) is not None:
        return (*order, None) if None in observed else order
    return in_order(observed.union(*(order for order in declared if order is not None)))


def _common_dtype(raws: Sequence[RawColumn]) -> str:
    dtypes = {raw.dtype for raw in raws}
    if len(dtypes) == 1:
        return dtypes.pop()
    if all(raw.is_number for raw in raws):
        return np.result_type(*dtypes).name
    return "object"


def _freeze_target(raws: Sequence[RawColumn], wishes: Wishes) -> Column:
    for raw in raws:
        if raw.is_time:
            raise DataError(
                f"{raw.where} holds points of time, expected classes or numbers; turn it into one of these."
            )
        _encoding.require_no_missing_label(raw)
    _require_alike(raws)
    name, dtype = raws[0].name, _common_dtype(raws)
    declared = wishes.columns.get(name)
    classes = wishes.classes or (declared.categories if declared else ())
    if _task(raws, wishes, declared, classes) is Task.REGRESSION:
        return Column(name, Kind.NUMERIC, Role.TARGET, dtype=dtype)
    kind = declared.kind if declared and declared.is_categorical else Kind.CATEGORICAL
    return Column(name, kind, Role.TARGET, classes or _frozen_categories(raws), dtype)


def _require_alike(raws: Sequence[RawColumn]) -> None:
    """Refuse labels that are numbers in one table and anything else in the other: no class would be in both."""
    numbers = [raw for raw in raws if raw.is_number]
    others = [raw for raw in raws if not raw.is_number]
    if numbers and others:
        raise DataError(
            f"{numbers[0].where} holds numbers but {others[0].place} holds other values there, so that no label of "
            "one stands in the other; write the labels alike in both."
        )


def _task(raws: Sequence[RawColumn], wishes: Wishes, declared: Column | None, classes: tuple[Value, ...]) -> Task:
    if wishes.task is not None:
        if wishes.task is Task.REGRESSION and classes:
            raise DataError(
                f"target {raws[0].name!r}: classes are given, but the task is regression; drop one of the two."
            )
        return wishes.task
    if classes:
        return Task.CLASSIFICATION
    if declared is not None:
        return Task.CLASSIFICATION if declared.is_categorical else Task.REGRESSION
    return _inferred_task(raws)


def _inferred_task(raws: Sequence[RawColumn]) -> Task:
    """Text, true/false and categories are classes; so are few distinct whole numbers; all else is a quantity."""
    if not all(raw.is_number for raw in raws):
        return Task.CLASSIFICATION
    distinct = {value for raw in raws for value in raw.distinct()[1] if isinstance(value, int | float)}
    whole = all(float(value).is_integer() for value in distinct)
    return Task.CLASSIFICATION if whole and len(distinct) <= MOST_CLASSES else Task.REGRESSION
