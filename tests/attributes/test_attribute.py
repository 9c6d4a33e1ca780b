import numpy as np
import pandas as pd
import pytest

from leakgauge.attributes import one_hot, single, together
from leakgauge.errors import DataError
from leakgauge.records import Records, bin_edges

RECORDS = Records.from_arrays(
    np.array([["f", 31.0, 1.0], ["m", 47.0, 0.0], ["f", 58.0, 1.0]], dtype=object),
    [0.5, 1.5, 2.25],
    names=["sex", "age", "smokes"],
)
SCHEMA = RECORDS.schema
DUMMIES = Records.from_arrays(
    [[1.0, 0.0, 3.5], [0.0, 1.0, 2.5], [0.0, 0.0, 1.5]], [0.5, 1.5, 2.5], names=["a", "b", "x"]
)


def test_a_categorical_column_has_its_categories():
    sex = single(SCHEMA, "sex")
    assert sex.values == ("f", "m")
    assert sex.codes(RECORDS.features).tolist() == [0, 1, 0]
    assert sex.known(RECORDS.features).tolist() == RECORDS.features[:, 1:].tolist()


def test_a_numeric_column_has_the_numbers_or_the_bins_it_is_given():
    smokes = single(SCHEMA, "smokes", values=(0, 1))
    assert smokes.codes(RECORDS.features).tolist() == [1, 0, 1]
    age = single(SCHEMA, "age", edges=(20, 40, 60))
    assert age.values == ("20 to 40", "40 to 60")
    assert age.codes(RECORDS.features).tolist() == [0, 1, 1]
    # Values beyond the outermost edges belong to the outermost bins.
    beyond = RECORDS.features.copy()
    beyond[:, 1] = [-5.0, 40.0, 99.0]
    assert age.codes(beyond).tolist() == [0, 1, 1]


def test_quantile_bins_of_public_records():
    edges = bin_edges(RECORDS, 2)[1]
    assert single(SCHEMA, "age", edges=edges).codes(RECORDS.features).tolist() == [0, 1, 1]


def test_the_model_is_asked_with_the_middle_of_a_bin_or_with_what_is_given():
    assert single(SCHEMA, "age", edges=(20, 41, 60)).settings.ravel().tolist() == [30.5, 50.5]
    assert single(SCHEMA, "age", edges=(20, 41, 60), representatives=(30, 51)).settings.ravel().tolist() == [30, 51]
    whole = Records.from_arrays(np.array([[20], [35], [50]]), [0.5, 1.5, 2.5], names=["age"]).schema
    assert single(whole, "age", edges=(20, 41, 60)).settings.ravel().tolist() == [30, 50]


def test_every_value_is_put_in_place_and_nothing_else_changes():
    completed = single(SCHEMA, "sex").completed(RECORDS.features)
    assert completed.shape == (3, 2, 3)
    assert completed[:, :, 0].tolist() == [[0, 1]] * 3
    np.testing.assert_array_equal(completed[:, 0, 1:], RECORDS.features[:, 1:])
    np.testing.assert_array_equal(completed[:, 1, 1:], RECORDS.features[:, 1:])
    truth = single(SCHEMA, "sex").codes(RECORDS.features)
    np.testing.assert_array_equal(completed[np.arange(3), truth], RECORDS.features)


def test_a_group_of_columns_is_set_as_a_block():
    group = one_hot(DUMMIES.schema, ["a", "b"], values=["A", "B"], none="C")
    assert group.values == ("A", "B", "C")
    assert group.codes(DUMMIES.features).tolist() == [0, 1, 2]
    assert group.completed(DUMMIES.features)[0].tolist() == [[1, 0, 3.5], [0, 1, 3.5], [0, 0, 3.5]]


@pytest.mark.parametrize("kind", [bool, int, float])
def test_columns_of_a_group_may_be_flags_or_numbers_in_any_form(kind):
    """Whole numbers declared as categories have their codes as values; text is none of these."""
    table = {"a": np.array([1, 0, 0]).astype(kind), "b": np.array([0, 1, 1]).astype(kind), "y": [0.5, 1.5, 2.5]}
    for categorical in ([], ["a", "b"]):
        records = Records.from_frame(pd.DataFrame(table), target="y", categorical=categorical)
        group = one_hot(records.schema, ["b", "a"])
        assert group.values == ("b", "a")
        assert group.codes(records.features).tolist() == [1, 0, 0]
    for other in (["0", "1", "1"], [1, 2, 2]):
        records = Records.from_frame(pd.DataFrame({**table, "b": other}), target="y", categorical=["a", "b"])
        with pytest.raises(DataError, match="column 'b' is categorical, no column of a group of 0 and 1"):
            one_hot(records.schema, ["a", "b"])


def test_several_columns_together_have_all_combinations():
    both = together(single(SCHEMA, "sex"), single(SCHEMA, "age", edges=(20, 40, 60)))
    assert both.values == (("f", "20 to 40"), ("f", "40 to 60"), ("m", "20 to 40"), ("m", "40 to 60"))
    assert both.codes(RECORDS.features).tolist() == [0, 3, 1]
    assert both.completed(RECORDS.features)[2, :, :2].tolist() == [[0, 30], [0, 50], [1, 30], [1, 50]]
    assert both.known(RECORDS.features).ravel().tolist() == [1, 0, 1]


def test_many_records_are_looked_up_in_parts(monkeypatch):
    monkeypatch.setattr("leakgauge.attributes.attribute._ENTRIES_AT_ONCE", 4)
    assert single(SCHEMA, "sex").codes(RECORDS.features).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: single(SCHEMA, "sec"), "no feature called 'sec'; did you mean 'sex'"),
        (lambda: single(SCHEMA, "y"), "'y' is the target"),
        (lambda: single(SCHEMA, "age"), "'age' is numeric, so name the values to distinguish"),
        (lambda: single(SCHEMA, "age", edges=(20, 40), values=(0, 1)), "'age' is numeric, so name"),
        (lambda: single(SCHEMA, "age", edges=(40, 20)), "edges must be at least two finite numbers that ascend"),
        (lambda: single(SCHEMA, "age", edges=(20,)), "edges must be at least two"),
        (
            lambda: single(SCHEMA, "age", edges=(20, 40, 60), representatives=(30,)),
            "one number in each of 2 bins",
        ),
        (
            lambda: single(SCHEMA, "age", edges=(20, 40, 60), representatives=(30, 30)),
            "one number in each of 2 bins",
        ),
        (
            lambda: single(SCHEMA, "age", edges=(20, 40, 60), representatives=(39, 38)),
            "one number in each of 2 bins",
        ),
        (lambda: single(SCHEMA, "smokes", values=(0, 1), representatives=(0, 1)), "give the edges of the bins as well"),
        (lambda: single(SCHEMA, "sex", representatives=(0, 1)), "give the edges of the bins as well"),
        (lambda: single(SCHEMA, "smokes", values=(0, 0)), "values must be finite and differ"),
        (lambda: single(SCHEMA, "sex", values=(0, 1)), "its values are its categories"),
        (
            lambda: single(SCHEMA, "smokes", values=(1, 2)).codes(RECORDS.features),
            "row 1 .* the record holds none of the 2 values",
        ),
        (lambda: one_hot(SCHEMA, ["sex"]), "'sex' is categorical"),
        (lambda: one_hot(DUMMIES.schema, ["a", "a"]), "different columns"),
        (lambda: one_hot(DUMMIES.schema, []), "different columns"),
        (lambda: one_hot(DUMMIES.schema, ["a", "b"]).codes(DUMMIES.features), "row 2"),
        (lambda: together(single(SCHEMA, "sex"), single(SCHEMA, "sex")), "share no column"),
        (lambda: together(), "share no column"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(DataError, match=message):
        make()
