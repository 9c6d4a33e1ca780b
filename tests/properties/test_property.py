from __future__ import annotations

import numpy as np
import pytest

from leakgauge.errors import DataError
from leakgauge.properties import Property, column_is, with_random_bit
from leakgauge.records import Records

TABLE = np.array([["f", 31, "x"], ["m", 47, "y"], ["f", 52, "z"]], dtype=object)


@pytest.fixture
def few():
    return Records.from_arrays(TABLE, [0, 1, 0], names=["sex", "age", "city"])


def test_a_column_by_one_value_or_several(few):
    assert column_is("sex", "f").of(few).tolist() == [True, False, True]
    assert column_is("city", "x", "y").of(few).tolist() == [True, True, False]
    assert column_is("age", 47).of(few).tolist() == [False, True, False]


def test_a_function_may_look_up_what_the_model_does_not_see(few):
    elsewhere = {0: True, 1: False, 2: True}
    secret = Property("owns a car", lambda records: np.array([elsewhere[i] for i in records.ids.tolist()]))
    assert secret.of(few[[2, 1]]).tolist() == [True, False]


def test_a_random_bit_is_a_fair_coin_that_nothing_else_knows(people):
    """At 24,000 people 0.02 and 0.03 are over four standard errors of a share and of a correlation."""
    records = people(24_000)
    more, bit = with_random_bit(records, seed=3)
    has = bit.of(more)
    assert abs(has.mean() - 0.5) < 0.02
    assert np.abs(np.corrcoef(has, np.column_stack([records.features, records.labels]).T)[0, 1:]).max() < 0.03
    np.testing.assert_array_equal(more.features[:, :-1], records.features)
    np.testing.assert_array_equal(more.features[:, -1], has)
    np.testing.assert_array_equal(more.ids, records.ids)
    assert bit.name == "random bit"
    np.testing.assert_array_equal(with_random_bit(records, seed=3)[0].features, more.features)


def test_bad_input_is_refused(few):
    with pytest.raises(DataError, match="has no category 'q'; name one of its 2 values"):
        column_is("sex", "q").of(few)
    with pytest.raises(DataError, match="no value is named"):
        column_is("sex")
    with pytest.raises(DataError, match="expected true or false for each of 3 records"):
        Property("age", lambda records: records.features[:, 1]).of(few)
    with pytest.raises(DataError, match="two columns called 'age'"):
        with_random_bit(few, seed=0, name="age")
