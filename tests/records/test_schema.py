from __future__ import annotations

import dataclasses
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from leakgauge.errors import DataError, MissingExtra
from leakgauge.records import Column, Kind, Native, Role, Schema, Task, _tables

AGE = Column("age", dtype="int64")
CITY = Column("city", Kind.CATEGORICAL, Role.SENSITIVE, ("Bonn", "Ulm", None), dtype="string")
GRADE = Column("grade", Kind.ORDINAL, categories=("low", "high"), dtype="string")
ILL = Column("ill", Kind.CATEGORICAL, Role.TARGET, ("no", "yes"), dtype="string")
DOSE = Column("dose", role=Role.TARGET)
SCHEMA = Schema((AGE, CITY, GRADE), ILL, Native.PANDAS)
CODES = np.array([[31.0, 1.0, 0.0], [47.0, 2.0, 1.0], [52.0, 0.0, 1.0]])


def frame() -> pd.DataFrame:
    return pd.DataFrame({"age": [31, 47, 52], "city": ["Ulm", None, "Bonn"], "grade": ["low", "high", "high"]})


def test_a_schema_says_what_its_columns_are():
    assert SCHEMA.task is Task.CLASSIFICATION
    assert SCHEMA.classes == ("no", "yes")
    assert SCHEMA.n_features == 3
    assert SCHEMA.names == ("age", "city", "grade")
    assert SCHEMA.sensitive == ("city",)
    assert SCHEMA.categorical.tolist() == [False, True, True]
    assert SCHEMA.n_categories.tolist() == [0, 3, 2]
    assert SCHEMA.index("grade") == 2
    assert Schema((AGE,), DOSE).task is Task.REGRESSION
    assert Schema((AGE,), DOSE).classes == ()


def test_a_schema_survives_pickling_with_its_cached_arrays():
    assert SCHEMA.n_categories is not None
    copy = pickle.loads(pickle.dumps(SCHEMA))
    assert copy == SCHEMA
    assert copy.n_categories.tolist() == [0, 3, 2]


def test_cached_arrays_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        SCHEMA.categorical[0] = True


def test_decode_gives_original_values_in_the_same_order():
    pd.testing.assert_frame_equal(SCHEMA.decode(CODES), frame())
    assert SCHEMA.decode_labels([1, 0, 1]).tolist() == ["yes", "no", "yes"]


def test_encode_finds_columns_by_name_and_passes_over_the_target():
    shuffled = frame()[["grade", "age", "city"]].assign(ill="no")
    np.testing.assert_array_equal(SCHEMA.encode(shuffled), CODES)


def test_encode_takes_arrays_by_position():
    np.testing.assert_array_equal(SCHEMA.encode(frame().to_numpy(dtype=object)), CODES)


@pytest.mark.parametrize("native", Native)
def test_a_single_row_whose_category_is_missing_goes_there_and_back(native):
    schema = dataclasses.replace(SCHEMA, native=native)
    np.testing.assert_array_equal(schema.encode(schema.decode(CODES[1:2])), CODES[1:2])


@pytest.mark.parametrize("native", Native)
def test_no_rows_are_a_table_too(native):
    schema = dataclasses.replace(SCHEMA, native=native)
    assert schema.encode(schema.decode(np.empty((0, 3)))).shape == (0, 3)


def test_numeric_columns_are_handed_to_a_numpy_model_unchanged():
    schema = Schema((AGE, Column("height")), DOSE)
    features = np.array([[31.0, 1.8], [47.5, 1.6]])
    assert schema.decode(features) is features


def test_numbers_as_categories_make_a_numeric_matrix_and_mixed_values_an_object_array():
    ward = Column("ward", Kind.CATEGORICAL, categories=(10, 20))
    np.testing.assert_array_equal(Schema((AGE, ward), ILL).decode([[31.0, 1.0]]), [[31.0, 20.0]])
    mixed = Schema((AGE, CITY), ILL).decode([[31.0, 1.0]])
    assert mixed.dtype == object
    assert mixed.tolist() == [[31, "Ulm"]]
    smokes = Column("smokes", Kind.CATEGORICAL, categories=(False, True), dtype="bool")
    assert Schema((smokes,), ILL).decode([[1.0], [0.0]]).tolist() == [[True], [False]]


def test_a_made_up_value_that_is_not_whole_is_not_rounded():
    made_up = SCHEMA.decode([[31.5, 1.0, 0.0]])
    assert made_up["age"].tolist() == [31.5]
    small = Schema((Column("n", dtype="uint8"),), ILL, Native.PANDAS)
    assert small.decode([[300.0]])["n"].tolist() == [300]
    assert small.decode([[200.0]])["n"].dtype == np.uint8


def test_as_codes_hands_on_the_matrix_itself():
    coded = SCHEMA.as_codes()
    assert coded.native is Native.NUMPY
    assert coded.n_categories.tolist() == SCHEMA.n_categories.tolist()
    np.testing.assert_array_equal(coded.decode(CODES), CODES)


def test_labels_are_encoded_by_value():
    assert SCHEMA.encode_labels(["yes", "no"]).tolist() == [1, 0]
    assert SCHEMA.encode_labels(pl.Series(["yes"])).tolist() == [1]
    assert SCHEMA.encode_labels(pa.chunked_array([["no", "yes"]])).tolist() == [0, 1]
    assert Schema((AGE,), DOSE).encode_labels(pd.Series([1.5, 2.0])).tolist() == [1.5, 2.0]
    assert Schema((AGE,), DOSE).decode_labels([1.5]).tolist() == [1.5]


def refuses(match, call, error=DataError):
    with pytest.raises(error, match=match):
        call()


def test_errors_of_columns():
    refuses("name must be non-empty text, got ''; rename", lambda: Column(""))
    refuses("dtype must be one of .*, got 'float'", lambda: Column("age", dtype="float"))
    refuses("'age' is numeric and cannot have categories", lambda: Column("age", categories=(1, 2)))
    refuses(
        "a category is listed twice .number 3,", lambda: Column("city", Kind.CATEGORICAL, categories=("b", "a", "a"))
    )
    refuses("NaN cannot be a category", lambda: Column("city", Kind.CATEGORICAL, categories=(float("nan"),)))
    refuses("a category is of type bytes, expected text", lambda: Column("c", Kind.CATEGORICAL, categories=(b"x",)))


def test_errors_of_schemas():
    open_city = Column("city", Kind.CATEGORICAL)
    target_with_none = dataclasses.replace(ILL, categories=("yes", None))
    refuses("needs at least one feature column", lambda: Schema((), ILL))
    refuses("two columns called 'age'", lambda: Schema((AGE, AGE), ILL))
    refuses("'ill' has role target; a schema's columns are features", lambda: Schema((ILL,), DOSE))
    refuses("'city' is categorical and has no categories yet", lambda: Schema((open_city,), ILL))
    refuses("the target 'age' has role feature", lambda: Schema((CITY,), AGE))
    refuses("the target 'age' is also a feature", lambda: Schema((AGE,), dataclasses.replace(AGE, role=Role.TARGET)))
    refuses("none may be missing", lambda: Schema((AGE,), target_with_none))


def test_errors_of_index():
    refuses("no feature called 'ages'; did you mean 'age'", lambda: SCHEMA.index("ages"))
    refuses("no feature called 'zzz'; it has 3 columns of other names", lambda: SCHEMA.index("zzz"))
    refuses("'ill' is the target, not a feature", lambda: SCHEMA.index("ill"))


def test_errors_of_decode():
    refuses(r"shape \[rows, 3\], got shape \(3,\)", lambda: SCHEMA.decode([1.0, 2.0, 3.0]))
    refuses(
        r"'city', row 1 .*: the number is not the code .* from 0 to 2", lambda: SCHEMA.decode([[1, 0, 0], [1, 3, 0]])
    )
    refuses(r"'grade', row 0 .*: the number is not the code", lambda: SCHEMA.decode([[1, 0, 0.5]]))
    refuses(r"'grade', row 0 .*: the number is not the code", lambda: SCHEMA.decode([[1, 0, float("nan")]]))
    refuses(r"'ill', row 0 .*: the number is not the code", lambda: SCHEMA.decode_labels([-1]))


def test_decode_says_when_the_table_type_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    refuses("pandas is not installed; run: pip install pandas", lambda: SCHEMA.decode(CODES), MissingExtra)


def test_errors_of_encode():
    good = frame()
    refuses(
        "lacks the column 'age'; .* instead 'Age': did you mean 'Age'",
        lambda: SCHEMA.encode(good.rename(columns={"age": "Age"})),
    )
    refuses("lacks the columns 'age', 'city'", lambda: SCHEMA.encode(good[["grade"]]))
    refuses("has a column that the model does not know, 'x'", lambda: SCHEMA.encode(good.assign(x=1)))
    refuses(
        r"'city' of the table, row 2 .*: the value is not among the known ones, of which there are 3",
        lambda: SCHEMA.encode(good.assign(city=["Ulm", "Bonn", "Köln"])),
    )
    refuses(
        r"'age' of the table: 2 values infinite of 3, the first in row 1 .*correct them, drop these rows",
        lambda: SCHEMA.encode(good.assign(age=[31, np.inf, -np.inf])),
    )
    refuses(r"1 value infinite of 3, the first in row 0", lambda: SCHEMA.encode(good.assign(age=[np.inf, None, 2])))
    np.testing.assert_array_equal(SCHEMA.encode(good.assign(age=[31, None, None]))[:, 0], [31, np.nan, np.nan])
    refuses(
        r"'age' of the table is to be numeric but holds text \(first in row 1, counting from 0\)",
        lambda: SCHEMA.encode(good.assign(age=[None, "old", "x"])),
    )
    refuses(
        r"is to be numeric but holds mixed values \(first in row 2",
        lambda: SCHEMA.encode(good.assign(age=pd.Series([1, 2, "x"], dtype=object))),
    )
    refuses(
        "is to be numeric but holds categories",
        lambda: SCHEMA.encode(good.assign(age=pd.Categorical([1, 2, 3]))),
    )
    refuses("has 2 columns, expected 3: 'age', 'city', 'grade'", lambda: SCHEMA.encode(np.zeros((4, 2))))
    refuses(r"must be a data frame .* got list of shape \(3,\)", lambda: SCHEMA.encode([1, 2, 3]))
    refuses(
        "column names must be non-empty text, but the table has 1 column without such a name",
        lambda: SCHEMA.encode(pd.DataFrame([[1]])),
    )
    refuses("sparse matrices of this kind are not supported; .* call .toarray", lambda: SCHEMA.encode(_Sparse()))
    refuses("rows are not equally long", lambda: SCHEMA.encode([[1, 2, 3], [1, 2]]))
    refuses("rows are not equally long", lambda: SCHEMA.encode([np.zeros((2, 2)), np.zeros((2, 3))]))
    refuses("two columns called 'age'", lambda: SCHEMA.encode(pd.DataFrame([[1, 2]], columns=["age", "age"])))
    refuses("must be a data frame .* call collect", lambda: SCHEMA.encode(pl.LazyFrame({"age": [1]})))


def test_other_table_types_are_refused():
    modin = SimpleNamespace(implementation=SimpleNamespace(value="modin"))
    refuses(
        "tables of .* are not supported, expected pandas, Polars, Arrow or NumPy", lambda: _tables._native_of(modin)
    )


class _Sparse:
    def toarray(self):
        raise AssertionError("must not be called")


def test_errors_of_labels():
    refuses(
        r"'ill' of the table, row 1 .*the value is not among the known ones, of which there are 2",
        lambda: SCHEMA.encode_labels(["no", "maybe"]),
    )
    refuses(r"2 labels missing, the first in row 1", lambda: SCHEMA.encode_labels(["no", None, None]))
    refuses(r"1 value missing of 2.*a record needs a label", lambda: Schema((AGE,), DOSE).encode_labels([1.0, None]))
    refuses(r"one value per row, got an array of shape \(1, 2\)", lambda: SCHEMA.encode_labels(np.zeros((1, 2))))


def test_long_lists_of_known_values_are_shortened():
    many = Column("code", Kind.CATEGORICAL, categories=tuple(range(100)))
    refuses("not among the known ones, of which there are 100", lambda: Schema((many,), ILL).encode([[100]]))
