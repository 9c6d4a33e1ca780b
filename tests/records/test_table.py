from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakgauge.errors import DataError
from leakgauge.records import Column, Kind, Native, Records, Role, Schema, Task, concatenate, from_pair

CITY = Column("city", Kind.CATEGORICAL, categories=("Bonn", "Ulm"), dtype="string")
ILL = Column("ill", Kind.CATEGORICAL, Role.TARGET, ("no", "yes"), dtype="string")
SCHEMA = Schema((Column("age"), CITY), ILL)


def refuses(match, call, error=DataError):
    with pytest.raises(error, match=match):
        call()


def made(features=((31.0, 1.0), (47.0, 0.0)), labels=(1, 0), schema=SCHEMA, ids=(10, 11)) -> Records:
    return Records(np.array(features), np.array(labels), schema, np.array(ids))


# --- the frozen value -------------------------------------------------------------------------------------------


def test_arrays_are_read_only_and_of_the_documented_types():
    records = made()
    assert records.features.dtype == np.float64
    assert records.labels.dtype == np.int64
    for array in (records.features, records.labels, records.ids):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_the_callers_array_stays_writeable():
    mine = np.array([[31.0, 1.0], [47.0, 0.0]])
    records = Records.from_arrays(mine, [1, 0])
    mine[0, 0] = -1.0
    assert records.features[0, 0] == 31.0


def test_a_pickled_copy_is_as_read_only():
    copy = pickle.loads(pickle.dumps(made()))
    assert copy.digest() == made().digest()
    assert not copy.features.flags.writeable


def test_records_without_rows_are_allowed():
    assert len(made()[:0]) == 0
    assert made()[[]].features.shape == (0, 2)


def test_errors_of_the_constructor():
    refuses(r"features must have shape \[n, 2\], got \(2, 1\)", lambda: made(features=[[1.0], [2.0]]))
    refuses(r"labels must have shape \(2,\), .* got \(3,\)", lambda: made(labels=[0, 1, 0]))
    refuses(r"ids must have shape \(2,\), .* got \(1,\)", lambda: made(ids=[1]))
    refuses(r"'age', row 1 .*: inf is not a finite number", lambda: made(features=[[1, 1], [np.inf, 0]]))
    refuses(r"row 1 .*: the number is not the code of a category", lambda: made(features=[[1, 1], [1, np.nan]]))
    assert made(features=[[1, 1], [np.nan, 0]]).has_missing
    refuses(r"'city', row 0 .*: the number is not the code", lambda: made(features=[[1, 2], [1, 0]]))
    refuses(r"'ill', row 1 .*: the number is not the code", lambda: made(labels=[0, 2]))
    refuses(r"labels must be finite numbers .* got <U1", lambda: made(labels=["a", "b"]))
    regression = Schema(SCHEMA.columns, Column("dose", role=Role.TARGET))
    refuses("labels must be finite numbers", lambda: made(labels=[1.0, np.inf], schema=regression))
    refuses(r"an id occurs twice, in rows 0 and 1 .*; every record needs", lambda: made(ids=[7, 7]))
    refuses("ids must be whole numbers or text, got float64", lambda: made(ids=[1.5, 2.5]))


# --- choosing records -------------------------------------------------------------------------------------------


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 19), unique=True))
def test_row_i_out_is_the_row_that_was_asked_for(rows):
    features = np.arange(40.0).reshape(20, 2)
    records = Records.from_arrays(features, features[:, 0] / 7, task=Task.REGRESSION)
    chosen = records[np.array(rows, dtype=int)]
    assert chosen.ids.tolist() == rows
    np.testing.assert_array_equal(chosen.features, features[rows])
    np.testing.assert_array_equal(chosen.labels, features[rows, 0] / 7)


def test_all_ways_of_choosing(few):
    mask = np.array([True, False, False, True, False])
    assert few[mask].ids.tolist() == [0, 3]
    assert few[3].ids.tolist() == [3]
    assert few[-1].ids.tolist() == [4]
    assert few[np.int64(2)].ids.tolist() == [2]
    assert few[1:3].ids.tolist() == [1, 2]
    assert few[[4, 0]].ids.tolist() == [4, 0]
    assert [one.ids.item() for one in few] == [0, 1, 2, 3, 4]


def test_errors_of_choosing(few):
    refuses(r"mask of records must have shape \(5,\), got \(2,\)", lambda: few[np.array([True, False])])
    refuses("record 3 is asked for twice", lambda: few[[3, 1, 3]])
    refuses("record 4 is asked for twice", lambda: few[[4, -1]])
    refuses("chosen by an index, a slice, a mask or indices, got float64", lambda: few[np.array([0.0])])
    refuses("out of bounds", lambda: few[9], IndexError)


# --- from arrays ------------------------------------------------------------------------------------------------


def test_from_arrays_takes_what_scikit_learn_takes():
    table, labels = [[1, 2.5], [3, 4.5]], ["b", "a"]
    for X, y in (
        (table, labels),
        (np.array(table), np.array(labels)),
        (pd.DataFrame(table, columns=["x0", "x1"]), pd.Series(labels)),
        (pl.DataFrame(table, schema=["x0", "x1"], orient="row"), pl.Series(labels)),
        (pa.table({"x0": [1, 3], "x1": [2.5, 4.5]}), pa.array(labels)),
    ):
        records = Records.from_arrays(X, y)
        assert records.features.tolist() == table
        assert records.labels.tolist() == [1, 0]
        assert records.schema.classes == ("a", "b")
        assert records.schema.target.name == "y"


def test_from_arrays_options():
    X = np.array([[5, 0.5], [9, 1.5]])
    records = Records.from_arrays(
        X, [1, 0], names=["ward", "age"], categorical=["ward"], sensitive=[0], classes=[2, 1, 0], ids=["p", "q"]
    )
    assert records.schema.columns[0] == Column("ward", Kind.CATEGORICAL, Role.SENSITIVE, (5.0, 9.0))
    assert records.features.tolist() == [[0, 0.5], [1, 1.5]]
    assert records.labels.tolist() == [1, 2]
    assert records.ids.tolist() == ["p", "q"]
    assert Records.from_arrays(X, [1, 0], task=Task.REGRESSION).labels.dtype == np.float64
    named_y = Records.from_arrays(X, pd.Series([1, 0], name="ill"))
    assert named_y.schema.target.name == "ill"
    taken = Records.from_arrays(X, pd.Series([1, 0], name="x1"))
    assert taken.schema.target.name == "label"


@pytest.mark.parametrize(
    ("labels", "task", "classes"),
    [
        (["b", "a"], Task.CLASSIFICATION, ("a", "b")),
        ([True, False], Task.CLASSIFICATION, (False, True)),
        ([3, 1], Task.CLASSIFICATION, (1, 3)),
        ([1.0, 0.0], Task.CLASSIFICATION, (0.0, 1.0)),
        (list(range(20)), Task.CLASSIFICATION, tuple(range(20))),
        (list(range(21)), Task.REGRESSION, ()),
        ([0.5, 1.0], Task.REGRESSION, ()),
    ],
)
def test_the_task_follows_from_the_labels(labels, task, classes):
    schema = Records.from_arrays(np.zeros((len(labels), 1)), labels).schema
    assert schema.task is task
    assert schema.classes == classes


def test_errors_of_from_arrays():
    X = np.zeros((2, 2))
    refuses("has 2 rows but 3 labels", lambda: Records.from_arrays(X, [0, 1, 0]))
    refuses(
        "no column number 2; columns are numbered from 0 to 1", lambda: Records.from_arrays(X, [0, 1], categorical=[2])
    )
    refuses(
        "has no column 'age', which is named as sensitive", lambda: Records.from_arrays(X, [0, 1], sensitive=["age"])
    )
    refuses(
        "names are given, but the features are a data frame",
        lambda: Records.from_arrays(pd.DataFrame(X), [0, 1], names=["a", "b"]),
    )
    refuses("two columns called 'a'", lambda: Records.from_arrays(X, [0, 1], names=["a", "a"]))
    refuses("names must be a list of texts", lambda: Records.from_arrays(X, [0, 1], names=3.0))
    refuses("has 2 columns, expected 1: 'a'", lambda: Records.from_arrays(X, [0, 1], names=["a"]))
    refuses(
        "classes are given, but the task is regression",
        lambda: Records.from_arrays(X, [0, 1], classes=[0, 1], task=Task.REGRESSION),
    )
    refuses(
        "'y' of the table, row 1 .*: the value is not among", lambda: Records.from_arrays(X, [0, 1], classes=[0, 2])
    )
    np.testing.assert_array_equal(Records.from_arrays([[1, None], [1, 2]], [0, 1]).features, [[1, np.nan], [1, 2]])
    refuses("column 'x1' of the table: 1 value infinite", lambda: Records.from_arrays([[1, 2.0], [1, np.inf]], [0, 1]))
    for big in (np.array([[2**53 + 1], [1]]), np.array([[2**53 + 1, "a"], [1, "b"]], dtype=object)):
        refuses("column 'x0' of the table holds whole numbers of 2", lambda big=big: Records.from_arrays(big, [0, 1]))
    refuses("column 'x0' of the table is of type complex128", lambda: Records.from_arrays(X.astype(complex), [0, 1]))


# --- from data frames -------------------------------------------------------------------------------------------


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "pid": ["p7", "p3", "p5"],
            "age": [31, 47, 52],
            "ward": [2, 1, 2],
            "city": ["Ulm", "Bonn", "Ulm"],
            "note": ["x", "y", "z"],
            "ill": ["no", "yes", "no"],
        }
    )


def test_from_frame_takes_names_and_declarations():
    by_name = Records.from_frame(
        table(), target="ill", sensitive=["city"], categorical=["ward"], id_column="pid", ignore=["note"]
    )
    declared = Records.from_frame(
        table(),
        columns=[
            Column("pid", role=Role.ID),
            Column("ward", Kind.CATEGORICAL),
            Column("city", Kind.CATEGORICAL, Role.SENSITIVE),
            Column("note", role=Role.IGNORE),
            Column("ill", Kind.CATEGORICAL, Role.TARGET),
        ],
    )
    for records in (by_name, declared):
        assert records.schema.names == ("age", "ward", "city")
        assert records.schema.sensitive == ("city",)
        assert records.features.tolist() == [[31, 1, 1], [47, 0, 0], [52, 1, 1]]
        assert records.ids.tolist() == ["p7", "p3", "p5"]
    assert by_name.digest() == declared.digest()


def test_declared_categories_and_classes_are_kept_in_their_order():
    records = Records.from_frame(
        table()[["city", "ill"]],
        columns=[
            Column("city", Kind.ORDINAL, categories=("Ulm", "Köln", "Bonn")),
            Column("ill", Kind.CATEGORICAL, Role.TARGET, ("yes", "no", "unknown")),
        ],
    )
    assert records.features.ravel().tolist() == [0, 2, 0]
    assert records.labels.tolist() == [1, 0, 1]
    assert records.schema.n_categories.tolist() == [3]


def test_a_declared_numeric_target_is_a_quantity_and_the_task_overrides():
    frame = pd.DataFrame({"age": [1.5, 2.5], "n": [0, 1]})
    declared = Records.from_frame(frame, columns=[Column("n", role=Role.TARGET)])
    assert declared.schema.task is Task.REGRESSION
    assert Records.from_frame(frame, target="n", task=Task.REGRESSION).schema.task is Task.REGRESSION


def test_true_and_false_may_be_declared_numeric():
    frame = pd.DataFrame({"smokes": [True, False], "n": [0, 1]})
    records = Records.from_frame(frame, target="n", columns=[Column("smokes")])
    assert records.features.ravel().tolist() == [1.0, 0.0]
    assert records.schema.decode(records.features)["smokes"].tolist() == [True, False]


def test_errors_of_from_frame():
    frame = table()
    declared = lambda *columns: Records.from_frame(frame, target="ill", columns=columns)  # noqa: E731
    refuses("no target is named", lambda: Records.from_frame(frame))
    refuses("has no column 'il'; did you mean 'ill'", lambda: Records.from_frame(frame, target="il"))
    refuses("has no column 'id'", lambda: Records.from_frame(frame, target="ill", id_column="id"))
    refuses(
        "has no column 'x', which is named as target, id or ignored",
        lambda: Records.from_frame(frame, target="ill", ignore=["x"]),
    )
    refuses("has no column 'agee', which is declared; did you mean 'age'", lambda: declared(Column("agee")))
    refuses("column 'age' is declared twice", lambda: declared(Column("age"), Column("age")))
    refuses("there can be only one target, got 'ill', 'age'", lambda: declared(Column("age", role=Role.TARGET)))
    refuses(
        "'ill' is named as sensitive or categorical, but also",
        lambda: Records.from_frame(frame, target="ill", sensitive=["ill"]),
    )
    refuses("is to be numeric but holds text", lambda: declared(Column("city")))
    refuses("declared ordinal but its values have no order", lambda: declared(Column("city", Kind.ORDINAL)))
    refuses(
        "the value is not among the known ones",
        lambda: declared(Column("city", Kind.CATEGORICAL, categories=("Ulm",))),
    )
    refuses("has no feature column left", lambda: Records.from_frame(frame[["ill"]], target="ill"))
    refuses(
        "1 label missing, the first in row 0",
        lambda: Records.from_frame(frame.assign(ill=[None, "a", "b"]), target="ill"),
    )
    refuses(
        "is of type Duration.*turn it into one of these",
        lambda: Records.from_frame(frame.assign(stay=pd.Timedelta(1, "D")), target="ill"),
    )
    refuses(
        "column 'day' of the table holds points of time, expected classes or numbers",
        lambda: Records.from_frame(frame.assign(day=pd.Timestamp(0)), target="day"),
    )
    refuses(
        "column 'gone' of the table has no values at all",
        lambda: Records.from_frame(frame.assign(gone=None), target="ill"),
    )
    refuses("has no values at all", lambda: Records.from_frame(pl.DataFrame({"a": [None], "t": [1]}), target="t"))
    refuses(
        r"a category is of type list",
        lambda: Records.from_frame(frame.assign(age=[[1], [2], [3]]), target="ill"),
    )


def test_errors_of_ids():
    frame = table()
    with_ids = lambda ids: Records.from_frame(frame.assign(pid=ids), target="ill", id_column="pid")  # noqa: E731
    refuses("the id of row 1 .* is missing", lambda: with_ids(["a", None, "b"]))
    refuses("an id occurs twice, in rows 0 and 2", lambda: with_ids(["a", "b", "a"]))
    refuses("must hold ids that are all text or all whole numbers below", lambda: with_ids([0.5, 1.5, 2.5]))


# --- two tables under one schema --------------------------------------------------------------------------------


def test_from_pair_freezes_categories_and_classes_from_both():
    train = pd.DataFrame({"city": ["Ulm", "Bonn"], "age": [1, 2], "ill": ["b", "a"]})
    holdout = pd.DataFrame({"age": [3.5], "city": [None], "ill": ["c"]})
    first, second = from_pair(train, holdout, target="ill")
    assert first.schema == second.schema
    assert first.schema.columns[0].categories == ("Bonn", "Ulm", None)
    assert first.schema.columns[1].dtype == "float64"
    assert first.schema.classes == ("a", "b", "c")
    assert first.features.tolist() == [[1, 1], [0, 2]]
    assert second.features.tolist() == [[2, 3.5]]
    assert first.ids.tolist() == ["train/0", "train/1"]
    assert second.ids.tolist() == ["holdout/0"]


def test_from_pair_of_arrays_and_of_different_table_types():
    first, second = from_pair((np.array([[1.0], [2.0]]), ["a", "b"]), (np.array([[3.0]]), ["c"]), categorical=["x0"])
    assert first.schema.columns[0].categories == (1.0, 2.0, 3.0)
    assert second.labels.tolist() == [2]
    train, holdout = from_pair(pd.DataFrame({"a": [1], "t": [0]}), pl.DataFrame({"t": [1], "a": [2]}), target="t")
    assert (train.schema.native, holdout.features.tolist()) == (Native.PANDAS, [[2.0]])
    target = Column("t", Kind.CATEGORICAL, Role.TARGET, ("no", "yes", "unknown"))
    declared, _ = from_pair((np.zeros((1, 1)), ["yes"]), (np.zeros((1, 1)), ["no"]), columns=[target])
    assert declared.schema.classes == ("no", "yes", "unknown")


def test_pandas_categories_of_a_pair():
    train = pd.DataFrame({"a": pd.Categorical(["u"], categories=["v", "u"]), "t": [0]})
    same = pd.DataFrame({"a": pd.Categorical(["v"], categories=["v", "u"]), "t": [1]})
    other = pd.DataFrame({"a": pd.Categorical(["w"], categories=["w"]), "t": [1]})
    assert from_pair(train, same, target="t")[0].schema.columns[0].categories == ("v", "u")
    assert from_pair(train, other, target="t")[0].schema.columns[0].categories == ("u", "v", "w")


def test_errors_of_from_pair():
    train = pd.DataFrame({"age": [1], "city": ["Ulm"], "t": [0]})
    refuses(
        "the holdout table lacks 'age', which the training table has; the holdout table has 'Age', which the training",
        lambda: from_pair(train, train.rename(columns={"age": "Age"}), target="t"),
    )
    refuses("the holdout table has no column 't'", lambda: from_pair(train, train[["age", "city"]], target="t"))
    refuses(
        "column 'age' of the training table holds numbers but the holdout table holds other",
        lambda: from_pair(train, train.assign(age=["x"]), target="t"),
    )
    refuses(
        "column 'age' of the holdout table: 1 value infinite",
        lambda: from_pair(train, train.assign(age=[np.inf]), target="t"),
    )
    refuses(r"the holdout table must be a pair \(X, y\)", lambda: from_pair((np.zeros((1, 1)), [0]), train))
    refuses(
        "an id column can only be named for data frames",
        lambda: from_pair((np.zeros((1, 1)), [0]), (np.zeros((1, 1)), [1]), id_column="a"),
    )
    refuses("no target is named", lambda: from_pair(train, train))


# --- putting together and re-expressing -------------------------------------------------------------------------


def test_concatenate_keeps_order_and_ids():
    train, holdout = from_pair(table(), table().assign(pid=["a", "b", "c"]), target="ill", id_column="pid")
    both = concatenate(train, holdout)
    assert both.ids.tolist() == ["p7", "p3", "p5", "a", "b", "c"]
    np.testing.assert_array_equal(both.features, np.vstack([train.features, holdout.features]))
    assert both[3:].digest() == holdout.digest()


def test_errors_of_concatenate(few):
    refuses("an id occurs twice", lambda: concatenate(few, few))
    refuses("different schemas; build both with from_pair", lambda: concatenate(few, few.as_codes()))
    text_ids = dataclasses.replace(few, ids=np.array(list("abcde")))
    refuses("the ids are int64 in one set of records and <U1 in the other", lambda: concatenate(few, text_ids))


def test_as_codes_keeps_the_matrix(few):
    coded = few.as_codes()
    np.testing.assert_array_equal(coded.schema.decode(coded.features), few.features)
    assert coded.schema.decode(coded.features).dtype == np.float64
    assert coded.ids.tolist() == few.ids.tolist()


# --- the digest -------------------------------------------------------------------------------------------------


def test_the_digest_sees_content_only(few):
    assert few.digest() == few.with_native(Native.PANDAS).digest()
    assert few.digest() == dataclasses.replace(few, ids=np.arange(5) + 100).digest()
    assert few.digest() == dataclasses.replace(few, features=few.features * np.where(few.features == 0, -1, 1)).digest()
    assert len(few.digest()) == 64


def test_the_digest_sees_every_change_of_content(few):
    age, city = few.schema.columns
    features, labels = few.features.copy(), few.labels.copy()
    features[2, 0] += 1e-9
    labels[1] = 1 - labels[1]
    target = few.schema.target
    changed = [
        dataclasses.replace(few, features=features),
        dataclasses.replace(few, labels=labels),
        few[[1, 0, 2, 3, 4]],
        few[:4],
        dataclasses.replace(few, schema=Schema((dataclasses.replace(age, name="Age"), city), target)),
        dataclasses.replace(few, schema=Schema((age, dataclasses.replace(city, role=Role.FEATURE)), target)),
        dataclasses.replace(few, schema=Schema((age, dataclasses.replace(city, categories=("Ulm", "Bonn"))), target)),
        dataclasses.replace(few, schema=Schema((age, dataclasses.replace(city, categories=(1, "1"))), target)),
        dataclasses.replace(few, schema=Schema((age, dataclasses.replace(city, categories=(1, 2))), target)),
        dataclasses.replace(few, schema=Schema((age, city), dataclasses.replace(target, categories=("a", "b")))),
    ]
    assert len({records.digest() for records in [few, *changed]}) == 1 + len(changed)


def test_the_digest_does_not_depend_on_blocks():
    big = Records.from_arrays(np.arange(10_000.0)[:, None], np.arange(10_000) % 2)
    assert big.digest() != big[: 2 * 4096].digest()
    assert big.digest() == Records.from_arrays(np.arange(10_000.0)[:, None], np.arange(10_000) % 2).digest()


def test_a_whole_number_beyond_all_floats_is_refused():
    table = np.array([[1, 2], [10**400, 3], [4, 5]], dtype=object)
    with pytest.raises(DataError, match=r"2\*\*53 or more") as error:
        Records.from_arrays(table, ["a", "b", "a"])
    assert "000" not in str(error.value)
