"""Texts of dates are what they are in a CSV file, from whatever file they come."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from leakgauge.errors import DataError
from leakgauge.records import Column, Kind, Native, Records, concatenate, from_pair, read_table

DAYS = ["2020-01-01", "1969-12-31", "2020-02-29", "1600-03-01"]
FORMS = {
    "dates": DAYS,
    "a space": [f"{day} 10:30:05" for day in DAYS],
    "a T": [f"{day}T10:30" for day in DAYS],
    "Greenwich": [f"{day}T10:30:05Z" for day in DAYS],
    "another zone": [f"{day} 10:30:05+02:00" for day in DAYS],
    "fractions": [f"{day} 10:30:05.25" for day in ("2020-01-01", "1969-12-31", "2020-02-29", "1999-03-01")],
    "dates and times": [*DAYS[:3], "2020-01-01 10:00"],
    "a missing one": [*DAYS[:3], None],
    "an empty one": [*DAYS[:3], ""],
    "spaces around": [f" {day} " for day in DAYS],
}
NONE = {
    "one word": [*DAYS[:3], "unknown"],
    "no such day": [*DAYS[:3], "2020-02-31"],
    "another form": ["31.12.2020", "30.12.2020", "29.12.2020", "28.12.2020"],
    "slashes": ["2020/01/01"] * 4,
    "times of day": ["10:30", "11:30", "12:30", "13:30"],
    "numbers": ["20200101", "20200102", "20200103", "20200104"],
    "empty": ["", "", "", None],
    "words": ["north", "south", "north", "south"],
    "spaces": [*DAYS[:3], " "],
    "a space that CSV files keep": [*DAYS[:3], "\u00a02020-01-01"],
    "half of a character": [*DAYS[:3], "\ud800"],
}


def table_of(texts):
    return pa.table({"when": pa.array(texts, pa.string()), "dose": [0.5, 1.5, 2.5, 3.5], "ill": ["y", "n", "y", "n"]})


@pytest.mark.parametrize("texts", FORMS.values(), ids=FORMS)
def test_a_parquet_file_is_as_a_csv_file(tmp_path, texts):
    """The texts themselves stay for models that were fitted to them."""
    table = table_of(texts)
    parquet.write_table(table, tmp_path / "a.parquet")
    lines = [f"{text or ''},{dose},{ill}" for text, dose, ill in zip(*table.to_pydict().values(), strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["when,dose,ill", *lines, ""]))
    csv = Records.from_frame(read_table(tmp_path / "a.csv"), target="ill")
    own = Records.from_frame(read_table(tmp_path / "a.parquet"), target="ill")
    assert csv.schema.columns[0].is_time
    assert own.schema.columns[0].kind is Kind.CATEGORICAL
    assert own.schema.decode(own.features)["when"].to_pylist() == texts
    dated = own.with_dates()
    assert dated.schema.columns == csv.schema.columns
    assert dated.digest() == csv.digest() != own.digest()
    assert dated.as_codes().schema == csv.as_codes().schema
    assert dated.with_dates().digest() == dated.digest()
    assert csv.with_dates().digest() == csv.digest()


@pytest.mark.parametrize("texts", NONE.values(), ids=NONE)
def test_other_texts_stay_categories(texts):
    frame = pd.DataFrame({"when": pd.Series(texts, dtype=object), "dose": [0.5, 1.5, 2.5, 3.5], "ill": list("ynyn")})
    records = Records.from_frame(frame, target="ill")
    assert not records.schema.columns[0].dates
    assert records.with_dates().digest() == records.digest()


@pytest.mark.parametrize(
    "said",
    [{"columns": [Column("when", Kind.CATEGORICAL)]}, {"categorical": ["when"]}, {"ignore": ["when"]}],
)
def test_what_was_said_of_the_column_counts(said):
    records = Records.from_frame(table_of(DAYS), target="ill", **said)
    assert records.with_dates().digest() == records.digest()


def test_both_tables_of_a_pair_are_taken_alike():
    """Dates in one and times in the other are times; a word in either makes categories of both."""
    times, words = FORMS["a space"], NONE["one word"]
    train, holdout = from_pair(table_of(DAYS), table_of(times), target="ill")
    assert train.with_dates().schema == holdout.with_dates().schema
    assert train.with_dates().schema.columns[0].is_time
    both = concatenate(train, holdout).with_dates()
    days = pd.to_datetime(pd.Series(DAYS + times), format="ISO8601") - pd.Timestamp("1970-01-01")
    np.testing.assert_allclose(both.features[:, 0], days / pd.Timedelta(days=1), rtol=0, atol=1e-9)
    for part in from_pair(table_of(DAYS), table_of(words), target="ill"):
        assert part.with_dates().schema.columns[0].is_categorical


def test_codes_are_no_dates():
    coded = Records.from_frame(table_of(DAYS), target="ill").as_codes()
    assert coded.with_dates().digest() == coded.digest()
    assert not coded.schema.columns[0].dates


def test_labels_are_no_dates():
    table = table_of(["north", "south", "north", "south"]).set_column(
        2, "ill", pa.array(["2020-01-01", "2020-01-02"] * 2)
    )
    records = Records.from_frame(table, target="ill").with_dates()
    assert records.schema.classes == ("2020-01-01", "2020-01-02")


@pytest.mark.parametrize("cell", ["2020-01-01", "2020-01-01T10:00", "10:30", "10:30:05"])
def test_dates_of_a_csv_file_stay_text_on_demand(tmp_path, cell):
    """A model that was fitted to text is then given text, to the letter; numbers stay numbers."""
    path = tmp_path / "a.csv"
    path.write_text(f"when,code,ill\n{cell},01,y\n,02,n\n")
    table = read_table(path, texts=["when", "code", "nowhere"])
    assert table["when"].to_pylist() == [cell, None]
    assert table["code"].to_pylist() == [1, 2]
    records = Records.from_frame(table, target="ill", columns=[Column("when", Kind.CATEGORICAL)])
    assert records.schema.columns[0].categories == (cell, None)
    given = records.with_native(Native.PANDAS)
    assert given.schema.decode(given.features)["when"][0] == cell
    assert read_table(path)["when"].type != pa.string()


def test_a_date_declared_as_a_category_is_refused_without_the_text():
    frame = pa.table({"when": pa.array([0, 1], pa.date32()), "ill": ["y", "n"]})
    with pytest.raises(DataError, match="turn such values into text"):
        Records.from_frame(frame, target="ill", columns=[Column("when", Kind.CATEGORICAL)])
