"""From a table to records and back: the same table, and the same matrix whatever the table type."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakgauge.errors import DataError
from leakgauge.records import Kind, Native, Records, from_pair

PLAIN = {
    "age": [31, 47, 52, 19],
    "score": [0.5, -1.25, 3.0, 2.5],
    "city": ["Ulm", "Bonn", None, "Ulm"],
    "smokes": [True, False, True, True],
    "ill": ["yes", "no", "no", "yes"],
}


def as_objects(table: dict) -> np.ndarray:
    array = np.empty((len(table["age"]), len(table) - 1), dtype=object)
    for j, name in enumerate(name for name in table if name != "ill"):
        array[:, j] = table[name]
    return array


def all_four(table: dict) -> dict[str, Records]:
    names = [name for name in table if name != "ill"]
    return {
        "numpy": Records.from_arrays(as_objects(table), pd.Series(table["ill"], name="ill"), names=names),
        "pandas": Records.from_frame(pd.DataFrame(table), target="ill"),
        "polars": Records.from_frame(pl.DataFrame(table), target="ill"),
        "pyarrow": Records.from_frame(pa.table(table), target="ill"),
    }


def test_all_table_types_give_the_same_matrix_and_digest():
    records = all_four(PLAIN)
    expected = [[31, 0.5, 1, 1], [47, -1.25, 0, 0], [52, 3.0, 2, 1], [19, 2.5, 1, 1]]  # by hand: Bonn, Ulm, missing
    for native, made in records.items():
        assert made.schema.native == native
        assert made.features.tolist() == expected
        assert made.labels.tolist() == [1, 0, 0, 1]
        assert [column.kind for column in made.schema.columns] == ["numeric", "numeric", "categorical", "categorical"]
    assert len({made.digest() for made in records.values()}) == 1


def test_pandas_comes_back_as_it_was():
    frame = pd.DataFrame(PLAIN).assign(
        rank=pd.Categorical(["lo", "hi", "lo", "hi"], categories=["lo", "hi"], ordered=True),
        ward=pd.Categorical(["b", None, "a", "b"], categories=["b", "c", "a"]),
        small=np.array([1, 2, 3, 250], dtype=np.uint8),
        half=np.array([1.5, 2.5, 3.5, 4.5], dtype=np.float32),
        old=pd.Series(["p", None, "q", "p"], dtype=object),
        known=pd.Series([True, None, False, True], dtype="boolean"),
    )
    records = Records.from_frame(frame, target="ill")
    pd.testing.assert_frame_equal(records.schema.decode(records.features), frame.drop(columns="ill"))
    kinds = {column.name: column.kind for column in records.schema.columns}
    assert (kinds["rank"], kinds["ward"], kinds["known"]) == (Kind.ORDINAL, Kind.CATEGORICAL, Kind.CATEGORICAL)
    assert records.schema.columns[records.schema.index("ward")].categories == ("b", "c", "a", None)


def test_polars_comes_back_as_it_was():
    frame = pl.DataFrame(PLAIN).with_columns(
        rank=pl.Series(["lo", "hi", "lo", "hi"], dtype=pl.Enum(["lo", "hi"])),
        ward=pl.Series(["b", None, "a", "b"], dtype=pl.Categorical),
        small=pl.Series([1, 2, 3, 250], dtype=pl.UInt8),
        half=pl.Series([1.5, 2.5, 3.5, 4.5], dtype=pl.Float32),
        known=pl.Series([True, None, False, True]),
    )
    records = Records.from_frame(frame, target="ill")
    polars.testing.assert_frame_equal(records.schema.decode(records.features), frame.drop("ill"))
    assert records.schema.columns[records.schema.index("rank")].kind is Kind.ORDINAL


def test_arrow_comes_back_as_it_was():
    table = pa.table(
        {
            **PLAIN,
            "ward": pa.array(["b", None, "a", "b"]).dictionary_encode(),
            "small": pa.array([1, 2, 3, 250], pa.uint8()),
            "known": pa.array([True, None, False, True]),
        }
    )
    records = Records.from_frame(table, target="ill")
    back, expected = records.schema.decode(records.features), table.drop(["ill"])
    assert back.column_names == expected.column_names
    assert back.to_pydict() == expected.to_pydict()
    assert [back.schema.field(name).type for name in PLAIN if name != "ill"] == [
        expected.schema.field(name).type for name in PLAIN if name != "ill"
    ]


def test_numpy_comes_back_as_it_was():
    records = all_four(PLAIN)["numpy"]
    assert records.schema.decode(records.features).tolist() == as_objects(PLAIN).tolist()
    matrix = np.array([[1.5, 2.0], [3.0, -0.5]])
    numeric = Records.from_arrays(matrix, [0, 1])
    np.testing.assert_array_equal(numeric.schema.decode(numeric.features), matrix)
    whole = Records.from_arrays(np.array([[3, 10], [5, 20]]), [0, 1], categorical=[1])
    assert whole.schema.columns[1].categories == (10, 20)
    assert whole.schema.decode(whole.features).tolist() == [[3, 10], [5, 20]]


def test_arrow_in_several_chunks_is_read_in_order():
    first, second = pa.table({"a": ["x", "y"], "t": [1, 2]}), pa.table({"a": ["z", "x"], "t": [2, 1]})
    chunked = pa.concat_tables([first, second])
    encoded = pa.table(
        {
            "a": pa.chunked_array([pa.array(["x", "y"]).dictionary_encode(), pa.array(["z", "x"]).dictionary_encode()]),
            "t": [1, 2, 2, 1],
        }
    )
    for table in (chunked, encoded):
        assert Records.from_frame(table, target="t").features.ravel().tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize(
    "city",
    [
        pd.Series(["Ulm", None, "Bonn"], dtype=pd.StringDtype()),
        pd.Series(["Ulm", None, "Bonn"]),
        pd.Series(["Ulm", None, "Bonn"], dtype=object),
        pd.Series(["Ulm", np.nan, "Bonn"], dtype=object),
        pd.Series(["Ulm", pd.NA, 7], dtype=object),
        pd.Series(["Ulm", None, "Bonn"], dtype="category"),
    ],
    ids=lambda city: f"{city.dtype}, {city[1]}",
)
def test_a_missing_category_comes_back_as_what_it_was_whoever_else_is_asked_about(city):
    """An imputer that was fitted on one sort of missing value passes over another."""
    frame = pd.DataFrame({"city": city, "age": [1.5, 2.5, 3.5], "ill": ["yes", "no", "no"]})
    schema = Records.from_frame(frame, target="ill").schema
    encoded = schema.encode(frame.drop(columns="ill"))
    for some in ([0, 1, 2], [1], [2], [1, 0]):
        expected = frame.drop(columns="ill").iloc[some].reset_index(drop=True)
        back = schema.decode(encoded[some])
        pd.testing.assert_frame_equal(back, expected)
        assert [type(value) for value in back.city] == [type(value) for value in expected.city]


@pytest.mark.parametrize("hole", [None, np.nan])
def test_so_does_that_of_an_array(hole):
    table = np.array([["Ulm", 1.5], [hole, 2.5], ["Bonn", 3.5]], dtype=object)
    records = Records.from_arrays(table, [0, 1, 0])
    for some in ([0, 1, 2], [1], [2]):
        back = records.schema.decode(records.features[some])
        assert [type(value) for value in back[:, 0]] == [type(value) for value in table[some, 0]]


DAYS = ["2001-05-03 10:31:22.123457", None, "1969-12-31", "2049-02-28 23:59:59.999999"]
TIMES = {
    "pandas": pd.to_datetime(pd.Series(DAYS), format="ISO8601").astype("datetime64[us]"),
    "pandas, zone": pd.to_datetime(pd.Series(DAYS), format="ISO8601", utc=True).dt.tz_convert("Europe/Berlin"),
    "polars": pl.Series(pd.to_datetime(pd.Series(DAYS), format="ISO8601").astype("datetime64[us]").to_numpy()),
    "polars, zone": pl.Series(["2001-05-03", None, "1969-12-31", "2049-02-28"])
    .str.to_datetime("%Y-%m-%d")
    .dt.replace_time_zone("Asia/Tokyo"),
    "polars, dates": pl.Series(["2001-05-03", None, "1969-12-31", "9999-12-31"]).str.to_date(),
}


@pytest.mark.parametrize("name", TIMES)
def test_points_of_time_are_days_and_come_back(name):
    """To the microsecond in our time, alone or with others; in tables of Arrow too."""
    day = TIMES[name]
    frame_of = pd.DataFrame if name.startswith("pandas") else pl.DataFrame
    frame = frame_of({"day": day, "age": [1.0, 2.0, 3.0, 4.0], "ill": ["a", "b", "a", "b"]})
    records = Records.from_frame(frame, target="ill")
    assert records.schema.columns[0].kind == "numeric"
    assert records.features[2, 0] == pytest.approx(-1, abs=0.5)  # but for the zone
    assert np.isnan(records.features[1, 0])
    back = records.schema.decode(records.features[[2, 0]])
    expected = frame[["day", "age"]].iloc[[2, 0]] if name.startswith("pandas") else frame[["day", "age"]][[2, 0]]
    if name.startswith("pandas"):
        pd.testing.assert_frame_equal(back, expected.reset_index(drop=True), check_dtype=name == "pandas")
    else:
        pl.testing.assert_frame_equal(back, expected)
        arrow = Records.from_frame(frame.to_arrow(), target="ill")
        np.testing.assert_array_equal(arrow.features, records.features)
        assert arrow.schema.decode(arrow.features).column("day").to_pylist() == day.to_list()
    coded = records.as_codes()
    np.testing.assert_array_equal(coded.schema.decode(coded.features), records.features)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_points_of_time_come_back_in_their_unit(unit, zone):
    """A step that reads them as whole numbers, as ``astype("int64") // 10**9`` does, depends on it."""
    days = pd.to_datetime(["2001-05-03 10:31:22", None, "1969-12-31 23:59:59"])
    day = pd.Series(days).astype(f"datetime64[{unit}]")
    frame = pd.DataFrame({"day": day if zone is None else day.dt.tz_localize(zone), "ill": ["a", "b", "a"]})
    records = Records.from_frame(frame, target="ill")
    pd.testing.assert_frame_equal(records.schema.decode(records.features), frame[["day"]])
    if unit != "s":
        other = pl.from_pandas(frame)
        records = Records.from_frame(other, target="ill")
        pl.testing.assert_frame_equal(records.schema.decode(records.features), other[["day"]])
        arrow = other.to_arrow()
        records = Records.from_frame(arrow, target="ill")
        assert records.schema.decode(records.features).column("day").equals(arrow.column("day"))


def test_quantities_that_are_null_in_polars_and_arrow_come_back_as_null():
    frame = pl.DataFrame(
        {"whole": [1, None, 3], "real": [0.5, None, 1.5], "small": [1, 2, 3], "gone": [0.5, math.nan, 1.5]},
        schema_overrides={"small": pl.Int8},
    )
    for table in (frame, frame.to_arrow()):
        records = from_pair((table, ["a", "b", "a"]), (table[:2], ["a", "b"]))[0]
        back = pl.DataFrame(records.schema.decode(records.features))
        pl.testing.assert_frame_equal(back[["whole", "real", "small", "gone"]], frame, check_dtypes=table is frame)
        assert back["gone"].is_nan().any()


def test_days_and_anything_else_in_the_other_table_are_refused():
    frame = pd.DataFrame({"day": pd.to_datetime(["2001-05-03", "2002-01-01"]), "ill": [0, 1]})
    for other in (frame.assign(day=["2001-05-03", "x"]), frame.assign(day=frame.day.dt.tz_localize("UTC"))):
        with pytest.raises(DataError, match=r"holds datetime values but another table holds .*make both alike"):
            from_pair(frame, other, target="ill")


def test_every_sort_of_missing_is_the_same_category():
    objects = np.array([["a"], [None], [np.nan], [pd.NA], [pd.NaT]], dtype=object)
    made = Records.from_arrays(objects, [0, 1, 0, 1, 0])
    assert made.schema.columns[0].categories == ("a", None)
    assert made.features.ravel().tolist() == [0, 1, 1, 1, 1]
    numbers = Records.from_frame(
        pl.DataFrame({"n": [1.0, None, math.nan], "t": [0, 1, 0]}), target="t", categorical=["n"]
    )
    assert numbers.schema.columns[0].categories == (1.0, None)
    assert numbers.features.ravel().tolist() == [0, 1, 1]


def test_numbers_as_categories_with_missing_ones_come_back_as_nullable_numbers():
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "small": pd.array([1, None, 3], dtype="UInt8"),
            "half": [0.5, None, 1.5],
            "t": [0, 1, 0],
        }
    )
    records = Records.from_frame(frame, target="t", categorical=["whole", "small", "half"])
    assert [column.categories for column in records.schema.columns] == [(1, 3, None), (1, 3, None), (0.5, 1.5, None)]
    pd.testing.assert_frame_equal(records.schema.decode(records.features), frame.drop(columns="t"))
    in_polars = records.with_native(Native.POLARS).schema.decode(records.features)
    assert [str(dtype) for dtype in in_polars.dtypes] == ["Int64", "UInt8", "Float64"]
    in_arrow = records.with_native(Native.PYARROW).schema.decode(records.features)
    assert [str(field.type) for field in in_arrow.schema] == ["int64", "uint8", "double"]
    assert in_polars.rows() == [(1, 1, 0.5), (None, None, None), (3, 3, 1.5)]


def test_true_and_false_alone_stay_true_and_false():
    records = Records.from_arrays(np.array([[True, False], [False, False]]), [0, 1])
    back = records.schema.decode(records.features)
    assert back.dtype == bool
    assert back.tolist() == [[True, False], [False, False]]


values = st.one_of(st.none(), st.text(max_size=3), st.sampled_from(["a", "b", "b\0"]))
rows = st.lists(
    st.tuples(
        st.integers(-(2**53) + 1, 2**53 - 1), st.floats(-1e300, 1e300), values, st.booleans(), st.sampled_from("01")
    ),
    min_size=1,
    max_size=12,
).filter(lambda rows: any(row[2] is not None for row in rows))


@pytest.mark.long
@settings(derandomize=True, deadline=None, max_examples=30)
@given(rows, st.randoms(use_true_random=False))
def test_any_table_goes_there_and_back_through_every_table_type(rows, random):
    table = dict(zip(PLAIN, (list(column) for column in zip(*rows, strict=True)), strict=True))
    made = all_four(table)
    original = as_objects(table).tolist()
    for records in made.values():
        np.testing.assert_array_equal(records.features, made["numpy"].features)
        for native in Native:
            schema = records.with_native(native).schema
            some = sorted(random.sample(range(len(rows)), random.randint(1, len(rows))))
            back = schema.decode(records.features[some])
            np.testing.assert_array_equal(schema.encode(back), records.features[some])
            assert _as_lists(back, schema.names) == [original[i] for i in some]


def _as_lists(table, names) -> list[list]:
    if isinstance(table, np.ndarray):
        columns = [column.tolist() for column in table.T]
    elif isinstance(table, pa.Table):
        columns = [table[name].to_pylist() for name in names]
    else:
        columns = [table[name].to_list() for name in names]
    plain = [[None if isinstance(v, float) and math.isnan(v) else v for v in column] for column in columns]
    return [list(row) for row in zip(*plain, strict=True)]


@pytest.mark.parametrize("native", Native)
def test_a_permutation_of_rows_in_is_the_same_permutation_out(native):
    records = all_four(PLAIN)["pandas"].with_native(native)
    order = np.array([2, 0, 3, 1])
    back = records.schema.decode(records.features[order])
    assert _as_lists(back, records.schema.names) == [as_objects(PLAIN).tolist()[i] for i in order]
