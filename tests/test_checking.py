"""The checks that all dataclasses of settings share."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from leakgauge.checking import check_fields, either, flag, instance, many, number, one_of, optional, plain, text, whole
from leakgauge.errors import ConfigError


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


SHARE = number(above=0, below=1)


@pytest.mark.parametrize(
    ("check", "value", "plainly"),
    [
        (whole(1), 1, 1),
        (whole(1), np.int64(7), 7),
        (whole(), -3, -3),
        (SHARE, np.float32(0.5), 0.5),
        (SHARE, Fraction(1, 4), 0.25),
        (number(least=0, most=1), 0, 0.0),
        (number(least=0, most=1), 1, 1.0),
        (flag, True, True),
        (text, "x", "x"),
        (plain, None, None),
        (plain, np.str_("f"), "f"),
        (plain, np.int8(2), 2),
        (plain, True, True),
        (optional(text), None, None),
        (many(whole()), [1, 2], (1, 2)),
        (many(whole()), np.arange(3), (0, 1, 2)),
        (many(text), (), ()),
        (many(SHARE, length=2), (0.1, 0.2), (0.1, 0.2)),
        (one_of(Colour), "blue", Colour.BLUE),
        (either(Colour, otherwise=text), "green", "green"),
        (instance(list), [1], [1]),
    ],
)
def test_what_is_taken_comes_in_its_plain_form(check, value, plainly):
    found = check("field", value)
    assert found == plainly
    assert type(found) is type(plainly)


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (whole(1), 0, "field must be a whole number of at least 1, got 0"),
        (whole(1), 7.0, "field must be a whole number of at least 1, got 7.0"),
        (whole(1), True, "got True"),
        (whole(1), "7", "got '7'"),
        (whole(1), None, "got None"),
        (whole(1), np.float64(2), "got"),
        (whole(0, hint="32 is the default"), -1, "got -1; 32 is the default"),
        (SHARE, 0, r"field must be in \(0, 1\), got 0"),
        (SHARE, 1, r"field must be in \(0, 1\), got 1"),
        (number(least=0, most=1), 1.0001, r"field must be in \[0, 1\], got 1.0001"),
        (number(), float("nan"), "field must be a finite number, got nan"),
        (number(), -np.inf, "field must be a finite number, got -inf"),
        (number(above=0), np.inf, "field must be above 0 and finite, got inf"),
        (number(above=0), 10**400, "field must be above 0 and finite, got 1000"),
        (number(most=3), 4, "field must be at most 3 and finite, got 4"),
        (SHARE, True, "got True"),
        (SHARE, "0.5", "got '0.5'"),
        (SHARE, Decimal("0.5"), "got Decimal"),
        (SHARE, [0.5], "got"),
        (SHARE, np.array([0.5]), "got a value of type ndarray$"),
        (whole(), ["Fabry"], "got a value of type list$"),
        (whole(), [1, 2, 3, 4, 5], "got a value of type list$"),
        (text, {"age": 3}, "got a value of type dict$"),
        (many(whole()), np.array(3), "field must be a list, got a value of type ndarray$"),
        (one_of(Colour), 3, "field must be one of 'red', 'blue', got 3"),
        (plain, np.array([1, 2]), "got a value of type ndarray$"),
        (flag, 1, "field must be true or false, got 1"),
        (text, "", "field must be text that is not empty, got ''"),
        (text, b"x", "got b'x'"),
        (plain, float("nan"), "field must be text, a finite number, true or false, or None, got nan"),
        (plain, [1], "got"),
        (many(text), "sex", r"field must be a list, got 'sex'; write \['sex'\]"),
        (many(whole()), 3, "field must be a list, got 3"),
        (many(text), {"a": 1}, "field must be a list"),
        (many(text), ["a", 1], r"field\[1\] must be text"),
        (many(SHARE, length=2), (0.1, 0.2, 0.3), r"field must be a list of 2, got \[0.1, 0.2, 0.3\]"),
        (one_of(Colour), "green", "field must be one of 'red', 'blue', got 'green'"),
        (one_of(Colour), [], "field must be one of"),
        (instance(int, str), 1.5, "field must be a int or a str, got 1.5"),
    ],
)
def test_what_is_refused_is_named_with_what_was_expected(check, value, message):
    with pytest.raises(ConfigError, match=message) as error:
        check("field", value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("wrap", [pd.DataFrame, lambda cells: pd.Series(cells["diagnosis"]), lambda cells: cells])
@pytest.mark.parametrize("check", [whole(), SHARE, text, flag, plain, one_of(Colour), instance(int), many(whole())])
def test_tables_given_by_mistake_are_not_quoted(check, wrap):
    with pytest.raises(ConfigError) as error:
        check("field", wrap({"diagnosis": [("Fabry",)] * 2}))
    assert "Fabry" not in str(error.value)


def test_objects_that_cannot_be_shown_or_compared_are_named_by_their_class():
    class Odd:
        def __eq__(self, other):
            raise RuntimeError("Fabry")

        __repr__ = __str__ = __hash__ = None

    for check in (whole(), SHARE, text, flag, plain, one_of(Colour), instance(int), many(whole())):
        with pytest.raises(ConfigError, match=r"field must be .*got a value of type Odd"):
            check("field", Odd())


def test_fields_of_a_frozen_dataclass_are_put_in_their_plain_form():
    @dataclass(frozen=True)
    class Settings:
        n: int
        names: tuple[str, ...]

        def __post_init__(self) -> None:
            check_fields(self, "settings.", n=whole(1), names=many(text))

    made = Settings(np.int32(3), ["a", "b"])
    assert made == Settings(3, ("a", "b"))
    assert type(made.n) is int
    with pytest.raises(ConfigError, match=r"settings\.n must be a whole number"):
        Settings(1.5, ())
    with pytest.raises(FrozenInstanceError):
        made.n = 4
