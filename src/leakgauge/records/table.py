"""People as rows: a matrix of features, a label each, and an id that survives every split."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from leakgauge.errors import DataError
from leakgauge.escaping import shapes
from leakgauge.records import _encoding, _freezing, _tables
from leakgauge.records._dates import times_of
from leakgauge.records._decoding import as_codes
from leakgauge.records._messages import closest_column, shortened
from leakgauge.records.columns import Column, Hole, Native, Role, Task, Value
from leakgauge.records.one_hot import require_one_hot
from leakgauge.records.schema import Schema
from leakgauge.records.units import MISSING_IDS, Units, plain_names

Index: TypeAlias = int | slice | npt.NDArray[np.bool_] | npt.NDArray[np.integer[Any]] | Sequence[int]
_ROWS_AT_ONCE = 4096  # rows hashed or compared in one go: bounds the memory of temporary copies


@dataclass(frozen=True, eq=False)
class Records:
    """n people: what is known about each, and what the model should say about them.

    The arrays are read-only. The constructor does not copy (a data set of images may fill half of the memory), so
    whoever passes an array must leave it alone afterwards; `from_arrays` and `from_frame` do copy.

    Two records may be equal in every column; only ids tell rows apart. Equality of `Records` is by identity;
    compare `digest()` for equality of content.

    Attributes:
        features: Float64 [n, d]: quantities, NaN where one is missing, and codes of categories, as `schema` says.
        labels: Int64 codes of classes [n], or float64 [n] for regression.
        schema: What the columns mean.
        ids: Unique, [n], integers or text. They survive selection and splitting, so that a report can name a row
            of the user's own file.
        persons: Whose row each is, [n], integers or text; ``None`` where every row is a person by itself. It is no
            feature: no model sees it.

    Raises:
        DataError: If shapes disagree, a number is infinite or a label missing, a code is not that of a category or
            class, or an id occurs twice.

    >>> records = Records.from_arrays([[31.0, 1.0], [47.0, 0.0], [52.0, 1.0]], ["ill", "well", "ill"])
    >>> len(records), records.schema.classes, records.labels.tolist()
    (3, ('ill', 'well'), [0, 1, 0])
    >>> records[np.array([False, True, True])].ids.tolist()
    [1, 2]
    """

    features: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64] | npt.NDArray[np.float64]
    schema: Schema
    ids: npt.NDArray[Any]
    persons: npt.NDArray[Any] | None = None

    __repr__ = shapes

    def __post_init__(self) -> None:
        features = np.ascontiguousarray(self.features, dtype=np.float64)
        labels, ids = np.asarray(self.labels), _plain_ids(np.asarray(self.ids))
        _require_shapes(features, labels, ids, self.schema)
        features = _one_sort_of_missing(features, self.schema)
        for j, column in enumerate(self.schema.columns):
            if column.is_categorical:
                as_codes(column, features[:, j])
        persons = None if self.persons is None else _plain_ids(np.asarray(self.persons), "persons")
        if persons is not None and persons.shape != ids.shape:
            raise DataError(f"persons must have shape ({len(ids)},), one per row, got {persons.shape}.")
        if persons is not None and persons.dtype.kind == "U":
            require_one_writing(persons)
        self._set(features, _checked_labels(labels, self.schema), self.schema, ids, persons)
        _require_unique(ids)

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, index: Index) -> Records:
        """The chosen records, in the chosen order: an index, a slice, a mask [n], or indices.

        Raises:
            DataError: If a mask has another length than n, or a record is asked for twice.
            IndexError: If an index is out of range.
        """
        rows = self._rows(index)
        persons = None if self.persons is None else self.persons[rows]
        return _unchecked(self.features[rows], self.labels[rows], self.schema, self.ids[rows], persons)

    @cached_property
    def units(self) -> Units:
        """Who is protected: persons with their rows, numbered in the order of their first ones."""
        return Units.rows(len(self)) if self.persons is None else Units.of(self.persons)

    @property
    def has_missing(self) -> bool:
        """Whether a quantity is missing; a category that is missing is one of its column's categories."""
        return bool(np.isnan(self.features).any())

    def __iter__(self) -> Iterator[Records]:
        return (self[row] for row in range(len(self)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        # a copy that was pickled for a worker process must be as read-only as the original
        self._set(state["features"], state["labels"], state["schema"], state["ids"], state["persons"])

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        names: Sequence[str] | None = None,
        categorical: Collection[str | int] = (),
        sensitive: Collection[str | int] = (),
        task: Task | None = None,
        classes: Sequence[Value] | None = None,
        ids: npt.ArrayLike | None = None,
        persons: npt.ArrayLike | None = None,
        one_hot: Mapping[str, Sequence[str]] | None = None,
    ) -> Records:
        """Records from features and labels apart, as for scikit-learn.

        Args:
            X: [n, d]: an array, nested lists, or a data frame.
            y: [n]: original labels.
            names: Names of the columns; by default x0, x1, … (a data frame has its own).
            categorical: Names or positions of columns whose numbers are categories.
            sensitive: Names or positions of the columns that attribute inference tries to guess.
            task: Classification or regression. By default: text, true/false and categories are classes; numbers are
                classes if all are whole and at most 20 are distinct; all else is regression.
            classes: The classes in order, if they are more than those that occur, or in another order.
            ids: Unique integers or text [n]; by default 0, 1, 2, …
            persons: Whose row each is, integers or text [n]; by default every row is a person by itself.
            one_hot: By the name of a feature its columns of 0 and 1, of which each row has exactly one 1.

        Raises:
            DataError: If the arrays do not fit together or hold what a model cannot be given.

        >>> Records.from_arrays(np.array([[1.0], [2.0]]), [0.5, 1.25]).schema.task
        <Task.REGRESSION: 'regression'>
        """
        part = _part_from_arrays(X, y, names, ids, persons, "the table")
        return _build([part], _array_wishes(part, categorical, sensitive, task, classes, one_hot))[0]

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        target: str | None = None,
        columns: Sequence[Column] | None = None,
        sensitive: Collection[str] = (),
        categorical: Collection[str] = (),
        id_column: str | None = None,
        persons: str | None = None,
        ignore: Collection[str] = (),
        task: Task | None = None,
        one_hot: Mapping[str, Sequence[str]] | None = None,
    ) -> Records:
        """Records from a data frame of pandas, Polars or Arrow.

        What is not declared is inferred: numbers are numeric; text, true/false and categories are categorical; an
        ordered pandas categorical and a Polars Enum are ordinal. Categories are frozen from the table: in the order
        that the column's own type declares (pandas categorical, Polars Enum), else ascending, missing last.

        Args:
            frame: The table, one person per row.
            target: Name of the column to predict (or declare one with the role target).
            columns: Declared columns (kind, role, categories); the others are inferred. The dtype is always the
                table's own.
            sensitive: Names of features that attribute inference tries to guess.
            categorical: Names of features whose numbers are categories.
            id_column: Name of a column with unique ids; by default rows are numbered from 0.
            persons: Name of a column that says whose row each is (or declare one with the role person); by default
                every row is a person by itself.
            ignore: Names of columns to leave out.
            task: As for `from_arrays`.
            one_hot: As for `from_arrays`; `sensitive` may name such a group.

        Raises:
            DataError: If a name is unknown, values are missing where they must not be, or a column is of a sort
                that a model cannot be given.
        """
        wishes, named = _frame_wishes(
            target, columns, sensitive, categorical, id_column, persons, ignore, task, one_hot
        )
        return _build([_part_from_frame(frame, named, "the table")], wishes)[0]

    def as_codes(self) -> Records:
        """The same people with codes 0, 1, 2, … as the values of categorical columns; see `Schema.as_codes`."""
        return _unchecked(self.features, self.labels, self.schema.as_codes(), self.ids, self.persons)

    def with_dates(self) -> Records:
        """The same people, with points of time in place of texts of dates; see `Column.dates`.

        A column comes out as it does where the same table is read from a CSV file, which has no text of its own.
        """
        columns, features = list(self.schema.columns), self.features.copy()
        for place, column in enumerate(columns):
            times = times_of(column.categories) if column.dates else None
            if times is None:
                continue
            hole = Hole.NONE if np.isnan(times.days).any() else Hole.NAN
            columns[place] = Column(column.name, role=column.role, dtype=times.dtype, hole=hole, unit=times.unit)
            features[:, place] = times.days[features[:, place].astype(np.int64)]
        schema = dataclasses.replace(self.schema, columns=tuple(columns))
        return _unchecked(features, self.labels, schema, self.ids, self.persons)

    def middle(self) -> npt.NDArray[np.float64]:
        """The median of each column's numbers [d], 0 of a column without any; of codes it means nothing."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of columns without a number
            return np.nan_to_num(np.nanmedian(self.features, axis=0))

    def filled(self, values: npt.NDArray[np.float64]) -> Records:
        """The same people, with a value of each column [d] where a number is missing.

        >>> Records.from_arrays([[np.nan], [2.0]], ["a", "b"]).filled(np.array([1.5])).features.ravel().tolist()
        [1.5, 2.0]
        """
        features = np.where(np.isnan(self.features), values, self.features)
        return _unchecked(features, self.labels, self.schema, self.ids, self.persons)

    def with_native(self, native: Native) -> Records:
        """The same people, for a model that is asked with another table type."""
        schema = dataclasses.replace(self.schema, native=native)
        return _unchecked(self.features, self.labels, schema, self.ids, self.persons)

    def digest(self) -> str:
        """The sha256, in hexadecimal, of the content: features, labels, and what the columns mean.

        Ids and the table type do not enter: the same values give the same digest whether they came from pandas,
        Polars, Arrow or NumPy, and however their rows were named. The order of rows does.
        """
        hasher = hashlib.sha256(_canonical(self.schema).encode())
        for start in range(0, len(self), _ROWS_AT_ONCE):
            hasher.update((self.features[start : start + _ROWS_AT_ONCE] + 0.0).astype("<f8").tobytes())  # no -0.0
        hasher.update((self.labels + self.labels.dtype.type(0)).astype(self.labels.dtype.newbyteorder("<")).tobytes())
        return hasher.hexdigest()

    def _rows(self, index: Index) -> slice | npt.NDArray[Any]:
        if isinstance(index, slice):
            return index
        rows = np.atleast_1d(np.asarray(index))
        if rows.dtype == bool:
            if rows.shape != (len(self),):
                raise DataError(f"a mask of records must have shape ({len(self)},), got {rows.shape}; one per record.")
            return rows
        rows = rows.astype(np.int64) if rows.size == 0 else rows
        if rows.dtype.kind not in "iu" or rows.ndim != 1:
            raise DataError(
                f"records are chosen by an index, a slice, a mask or indices, got {rows.dtype} of shape {rows.shape}."
            )
        chosen, counts = np.unique(np.arange(len(self))[rows], return_counts=True)
        if len(chosen) < len(rows):
            raise DataError(
                f"record {int(chosen[np.argmax(counts > 1)])} is asked for twice; ids must stay unique, so choose "
                "each record at most once."
            )
        return rows

    def _set(self, features: Any, labels: Any, schema: Schema, ids: Any, persons: Any) -> None:
        for name, value in (("features", features), ("labels", labels), ("ids", ids), ("persons", persons)):
            object.__setattr__(self, name, None if value is None else _read_only(value))
        object.__setattr__(self, "schema", schema)


def from_pair(
    train: Any,
    holdout: Any,
    *,
    target: str | None = None,
    columns: Sequence[Column] | None = None,
    sensitive: Collection[str] = (),
    categorical: Collection[str] = (),
    id_column: str | None = None,
    persons: str | tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    ignore: Collection[str] = (),
    task: Task | None = None,
    one_hot: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Records, Records]:
    """Records of a training and a holdout table under one schema.

    Categories and classes are frozen from both tables together, unless they are declared: a value that occurs in
    the holdout table only is a category too. Without an id column the ids are `train/0`, `train/1`, …, `holdout/0`,
    …, by row.

    Args:
        train: The table the model was trained on: a data frame, or a pair (X, y) as for `Records.from_arrays`.
        holdout: A table it was not trained on, of the same form and with the same columns.
        target: Name of the column to predict; needed for data frames, not used for pairs.
        columns: As for `Records.from_frame`.
        sensitive: As for `Records.from_frame`.
        categorical: As for `Records.from_frame`.
        id_column: As for `Records.from_frame`.
        persons: As for `Records.from_frame`; for pairs (X, y), whose row each is in either table, ([n], [m]).
        ignore: As for `Records.from_frame`.
        task: As for `Records.from_arrays`.
        one_hot: As for `Records.from_frame`.

    Returns:
        The training records and the holdout records; row i of each is row i of its table.

    Raises:
        DataError: If the tables' columns differ, or as for `Records.from_frame`.
    """
    places = ("the training table", "the holdout table")
    if isinstance(train, tuple) or isinstance(holdout, tuple):
        if isinstance(persons, str):
            raise DataError("a column of persons can only be named for data frames; pass a pair of arrays of persons.")
        whose = (None, None) if persons is None else persons
        if not isinstance(whose, tuple | list) or len(whose) != 2:
            raise DataError("persons of pairs (X, y) are a pair of arrays, whose row each is in either table.")
        parts = [
            _part_of_pair(pair, own, place) for pair, own, place in zip((train, holdout), whose, places, strict=True)
        ]
        wishes = _pair_wishes(columns, sensitive, categorical, id_column, ignore, task, one_hot)
    else:
        if persons is not None and not isinstance(persons, str):
            raise DataError("persons of data frames are the name of one of their columns.")
        wishes, named = _frame_wishes(
            target, columns, sensitive, categorical, id_column, persons, ignore, task, one_hot
        )
        id_column = named.id
        parts = [_part_from_frame(frame, named, place) for frame, place in zip((train, holdout), places, strict=True)]
    if id_column is None:
        parts = [
            dataclasses.replace(part, ids=np.array([f"{word}/{row}" for row in range(part.table.n_rows)], np.str_))
            for part, word in zip(parts, ("train", "holdout"), strict=True)
        ]
    first, second = _build(parts, wishes)
    return first, second


def concatenate(first: Records, second: Records) -> Records:
    """The records of both, first those of `first`.

    Raises:
        DataError: If their schemas differ, or an id occurs in both.
    """
    if first.schema != second.schema:
        raise DataError(
            "the two sets of records have different schemas; build both with from_pair, or declare the same columns."
        )
    if first.ids.dtype.kind != second.ids.dtype.kind:
        raise DataError(
            f"the ids are {first.ids.dtype} in one set of records and {second.ids.dtype} in the other; use text or "
            "integers in both."
        )
    persons = None
    if first.persons is not None and second.persons is not None:
        require_one_kind_of_persons(first.persons, second.persons)
        persons = np.concatenate([first.persons, second.persons])
    elif first.persons is not None or second.persons is not None:
        raise DataError("one set of records says whose its rows are and the other does not; name persons in both.")
    return Records(
        np.concatenate([first.features, second.features]),
        np.concatenate([first.labels, second.labels]),
        first.schema,
        np.concatenate([first.ids, second.ids]),
        persons,
    )


def n_shared_persons(first: Records, second: Records) -> tuple[int, int]:
    """How many persons have rows in both sets, and how many rows of the second are theirs; none where nobody is named.

    Raises:
        DataError: If persons are text in one set and numbers in the other.
    """
    if first.persons is None or second.persons is None:
        return 0, 0
    require_one_kind_of_persons(first.persons, second.persons)
    names = [plain_names(one) if one.dtype.kind == "U" else one for one in (first.persons, second.persons)]
    shared = np.isin(names[1], names[0])
    return len(np.unique(names[1][shared])), int(shared.sum())


def require_one_row_each(what: str, *sets: Records) -> None:
    """Refuse persons with several rows where records are taken as independent.

    Args:
        what: what takes them so, in words.
        sets: of records, which hold one row of each person, or say nothing of persons.

    Raises:
        DataError: If a person has several.
    """
    for records in sets:
        if not records.units.single:
            raise DataError(
                f"{what} counts records, and a person has up to {records.units.sizes.max()} here, so that intervals "
                "would be too narrow; give one row for each person."
            )


def require_one_kind_of_persons(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> None:
    """Refuse persons that are text in one set and numbers in the other: none of one would be in the other."""
    if (first.dtype.kind == "U") is not (second.dtype.kind == "U"):
        raise DataError(
            f"persons are {first.dtype} in one set of records and {second.dtype} in the other; use text or integers in "
            "both."
        )


def require_one_writing(persons: npt.NDArray[Any]) -> None:
    """Refuse text ``[n]`` that names nobody, or a person in two ways: each would count as another person.

    Raises:
        DataError: If an id is empty or the text of a missing value, or two differ in nothing that can be seen.
    """
    names = plain_names(persons)
    if "" in names:
        row = int(np.argmax(names == ""))
        raise DataError(f"persons: the id of row {row} (counting from 0) is empty; give every row an id.")
    missing = np.isin(np.char.lower(names), list(MISSING_IDS))
    if missing.any():
        raise DataError(
            f"persons: the id of row {np.argmax(missing)} (counting from 0) is the text of a missing value (nan, NA, "
            f"None, null). All rows with such ids ({missing.sum()} here) would count as one person. Missing ids become "
            "this when they are turned into text; give every row an id."
        )
    n_twice = len(np.unique(persons)) - len(np.unique(names))
    if n_twice:
        raise DataError(
            f"persons hold {n_twice} id(s) that another one equals but for spaces, characters that are not shown, or "
            ".0 behind a number; write each person in one way."
        )


def _unchecked(features: Any, labels: Any, schema: Schema, ids: Any, persons: Any) -> Records:
    """Records from parts of records that were checked before: no second look at every number."""
    records = object.__new__(Records)
    records._set(features, labels, schema, ids, persons)
    return records


def _read_only(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view


def _plain_ids(ids: npt.NDArray[Any], what: str = "ids") -> npt.NDArray[Any]:
    if ids.dtype.kind in "OT" and all(isinstance(value, str) for value in ids.flat):
        ids = ids.astype(np.str_)
    if ids.dtype.kind not in "iuU":
        raise DataError(f"{what} must be whole numbers or text, got {ids.dtype}; turn them into text.")
    return ids


def _require_shapes(features: Any, labels: Any, ids: Any, schema: Schema) -> None:
    if features.ndim != 2 or features.shape[1] != schema.n_features:
        raise DataError(f"features must have shape [n, {schema.n_features}], got {features.shape}; one column each.")
    for name, array in (("labels", labels), ("ids", ids)):
        if array.shape != (len(features),):
            raise DataError(
                f"{name} must have shape ({len(features)},), one per row of the features, got {array.shape}."
            )


def _one_sort_of_missing(features: npt.NDArray[np.float64], schema: Schema) -> npt.NDArray[np.float64]:
    """The same with one NaN for all, since equal records must have equal bytes; infinite numbers are refused."""
    missing = False
    for start in range(0, len(features), _ROWS_AT_ONCE):
        block = features[start : start + _ROWS_AT_ONCE]
        if np.isinf(block).any():
            row, j = np.argwhere(np.isinf(block))[0]
            raise DataError(
                f"column {schema.names[j]!r}, row {start + row} (counting from 0): {block[row, j]} is not "
                "a finite number; correct it, drop the row, or declare the column categorical."
            )
        missing |= bool(np.isnan(block).any())
    return np.where(np.isnan(features), np.nan, features) if missing else features


def _checked_labels(labels: npt.NDArray[Any], schema: Schema) -> npt.NDArray[Any]:
    numbers = labels.astype(np.float64) if labels.dtype.kind in "iuf" else None
    if numbers is None or not np.isfinite(numbers).all():
        raise DataError(f"labels must be finite numbers (codes of classes, or quantities), got {labels.dtype}.")
    return as_codes(schema.target, numbers) if schema.target.is_categorical else numbers


def _require_unique(ids: npt.NDArray[Any]) -> None:
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < len(ids):
        rows = np.flatnonzero(ids == values[np.argmax(counts > 1)])[:2]
        raise DataError(
            f"an id occurs twice, in rows {rows[0]} and {rows[1]} (counting from 0); every record needs an id of its "
            "own."
        )


def _canonical(schema: Schema) -> str:
    """What the columns mean, as text: how a table is written (dtype, table type) does not enter."""
    columns = [
        [
            column.name,
            column.kind.value,
            column.role.value,
            [[type(value).__name__, repr(value)] for value in column.categories],
        ]
        for column in (*schema.columns, schema.target)
    ]
    groups = [[group.name, group.role.value, group.columns] for group in schema.one_hot]
    return json.dumps(["leakgauge records 1", columns, *([groups] if groups else [])])


class _Named(NamedTuple):
    """Columns of a data frame that are no features."""

    target: str
    id: str | None
    person: str | None


def _part_from_frame(frame: Any, named: _Named, place: str) -> _freezing.TargetedTable:
    table = _tables.as_table(frame, place=place)
    for name in named:
        if name is not None and name not in table.names:
            raise DataError(f"{place} has no column {name!r}; {closest_column(name, table.names)}")
    ids = np.arange(table.n_rows) if named.id is None else _freezing.identifiers(table.column(named.id))
    persons = None if named.person is None else _freezing.identifiers(table.column(named.person))
    return _freezing.TargetedTable(table, table.column(named.target), ids, persons)


def _part_from_arrays(
    X: Any,
    y: Any,
    names: Sequence[str] | None,
    ids: npt.ArrayLike | None,
    persons: npt.ArrayLike | None,
    place: str,
) -> _freezing.TargetedTable:
    if names is not None and _tables.is_frame(X):
        raise DataError("names are given, but the features are a data frame, which has its own; leave names out.")
    table = _tables.as_table(X, names=names, place=place)
    name = getattr(y, "name", None)
    name = name if isinstance(name, str) and name else "y"
    column = _tables.as_column(y, name if name not in table.names else "label", place)
    if len(column) != table.n_rows:
        raise DataError(f"{place} has {table.n_rows} rows but {len(column)} labels; pass one label per row.")
    own = np.arange(table.n_rows) if ids is None else np.asarray(ids)
    return _freezing.TargetedTable(table, column, own, None if persons is None else np.asarray(persons))


def _part_of_pair(pair: Any, persons: npt.ArrayLike | None, place: str) -> _freezing.TargetedTable:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise DataError(f"{place} must be a pair (X, y), like the other table; pass both in the same form.")
    return _part_from_arrays(*pair, None, None, persons, place)


def _array_wishes(
    part: _freezing.TargetedTable,
    categorical: Collection[str | int],
    sensitive: Collection[str | int],
    task: Task | None,
    classes: Sequence[Value] | None,
    one_hot: Mapping[str, Sequence[str]] | None,
) -> _freezing.Wishes:
    names = part.table.names

    def named(wanted: Collection[str | int]) -> tuple[str, ...]:
        for place in wanted:
            if not isinstance(place, str) and not 0 <= place < len(names):
                raise DataError(f"there is no column number {place}; columns are numbered from 0 to {len(names) - 1}.")
        return tuple(place if isinstance(place, str) else names[place] for place in wanted)

    return _freezing.Wishes(
        sensitive=named(sensitive),
        categorical=named(categorical),
        task=None if task is None else Task(task),
        classes=None if classes is None else tuple(classes),
        one_hot=one_hot or {},
    )


def _frame_wishes(
    target: str | None,
    columns: Sequence[Column] | None,
    sensitive: Collection[str],
    categorical: Collection[str],
    id_column: str | None,
    person_column: str | None,
    ignore: Collection[str],
    task: Task | None,
    one_hot: Mapping[str, Sequence[str]] | None,
) -> tuple[_freezing.Wishes, _Named]:
    """What was said about a data frame's columns, and which are no features."""
    declared = _by_name(columns)
    target = _only(target, [c.name for c in declared.values() if c.role is Role.TARGET], "target")
    id_column = _only(id_column, [c.name for c in declared.values() if c.role is Role.ID], "id column")
    person_column = _only(person_column, [c.name for c in declared.values() if c.role is Role.PERSON], "person column")
    if target is None:
        raise DataError("no target is named; say which column the model predicts (target=…).")
    named = _Named(target, id_column, person_column)
    left_out = dict.fromkeys([*filter(None, named), *ignore])
    task = None if task is None else Task(task)
    wishes = _freezing.Wishes(
        declared, tuple(sensitive), tuple(categorical), tuple(left_out), task, one_hot=one_hot or {}
    )
    return wishes, named


def _pair_wishes(
    columns: Sequence[Column] | None,
    sensitive: Collection[str],
    categorical: Collection[str],
    id_column: str | None,
    ignore: Collection[str],
    task: Task | None,
    one_hot: Mapping[str, Sequence[str]] | None,
) -> _freezing.Wishes:
    """What was said about the columns of X; a declared target says what y is, whatever its name."""
    if id_column is not None:
        raise DataError("an id column can only be named for data frames; pass data frames, or leave it out.")
    declared = _by_name(columns)
    target = [declared.pop(name) for name, column in list(declared.items()) if column.role is Role.TARGET]
    if target and task is None:
        task = Task.CLASSIFICATION if target[0].is_categorical else Task.REGRESSION
    return _freezing.Wishes(
        declared,
        tuple(sensitive),
        tuple(categorical),
        tuple(ignore),
        None if task is None else Task(task),
        target[0].categories if target and target[0].categories else None,
        one_hot or {},
    )


def _by_name(columns: Sequence[Column] | None) -> dict[str, Column]:
    declared = {column.name: column for column in columns or ()}
    if len(declared) < len(columns or ()):
        twice = next(name for name in declared if sum(column.name == name for column in columns or ()) > 1)
        raise DataError(f"column {twice!r} is declared twice; declare each once.")
    return declared


def _only(named: str | None, declared: Sequence[str], what: str) -> str | None:
    names = list(dict.fromkeys([*([named] if named is not None else []), *declared]))
    if len(names) > 1:
        raise DataError(f"there can be only one {what}, got {shortened(names)}; name one.")
    return names[0] if names else None


def _build(parts: Sequence[_freezing.TargetedTable], wishes: _freezing.Wishes) -> list[Records]:
    schema = _freezing.freeze(parts, wishes)
    made = [
        Records(
            _encoding.matrix(schema, part.table),
            _encoding.encode_labels(schema, part.target),
            schema,
            part.ids,
            part.persons,
        )
        for part in parts
    ]
    for records, part in zip(made, parts, strict=True):
        require_one_hot(schema, records.features, part.table.place)
    return made
