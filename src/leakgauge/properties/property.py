"""The secret: a yes-or-no fact about a record, whose frequency in the training set is what an attacker is after."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from leakgauge.arrays import Flags
from leakgauge.errors import DataError
from leakgauge.records import Column, Records, Value


@dataclass(frozen=True, eq=False)
class Property:
    """A yes-or-no fact about a record.

    It may be a column, a function of columns, or something that the model does not see: a function may look up
    `records.ids` in a table of its own.

    Args:
        name: how reports call it.
        function: records to bool ``[n]``; must not depend on who else is among the records.

    >>> people = Records.from_arrays([[17.0], [54.0], [71.0]], ["no", "yes", "yes"], names=["age"])
    >>> Property("over 50", lambda records: records.features[:, 0] > 50).of(people)
    array([False,  True,  True])
    """

    name: str
    function: Callable[[Records], ArrayLike]

    def of(self, records: Records) -> Flags:
        """Whether each record has the property, bool ``[n]``.

        Raises:
            DataError: the function did not answer true or false for each record.
        """
        flags = np.asarray(self.function(records))
        if flags.dtype != np.bool_ or flags.shape != (len(records),):
            raise DataError(
                f"property {self.name!r} gave {flags.dtype} of shape {flags.shape}, expected true or false for "
                f"each of {len(records)} records; let its function return a boolean array."
            )
        return flags


def column_is(column: str, *values: Value) -> Property:
    """The property of holding one of these values in a column; the values are original ones.

    Raises:
        DataError: no value is given. When it is asked about records: they have no such column, or it is categorical
            and a value is none of its categories.

    >>> people = Records.from_arrays(np.array([["f", 31], ["m", 47]], dtype=object), [0, 1], names=["sex", "age"])
    >>> column_is("sex", "f").of(people)
    array([ True, False])
    """
    if not values:
        raise DataError(f"column {column!r}: no value is named; say which values make the property.")
    name = f"{column} is {' or '.join(map(str, values))}"
    return Property(name, lambda records: _holds(records, column, values))


def with_random_bit(records: Records, *, seed: int, name: str = "random bit") -> tuple[Records, Property]:
    """The records with one more column, the toss of a fair coin that has nothing to do with anything.

    Any leak of its frequency is the attacker's doing alone: no clean model depends on it but by chance.

    Args:
        records: the people.
        seed: of the coin.
        name: of the new column, which holds 0 or 1; the property is to hold 1.

    Returns:
        The records with the bit as their last column, and the property.

    Raises:
        DataError: the records have a column of this name.

    Source: Chase et al. 2021, section VII.
    """
    bits = np.random.default_rng(seed).integers(0, 2, len(records)).astype(np.float64)
    features = np.concatenate([records.features, bits[:, None]], axis=1)
    schema = dataclasses.replace(records.schema, columns=(*records.schema.columns, Column(name, dtype="int64")))
    return Records(features, records.labels, schema, records.ids), dataclasses.replace(column_is(name, 1), name=name)


def _holds(records: Records, column: str, values: tuple[Value, ...]) -> Flags:
    place = records.schema.index(column)
    described, held = records.schema.columns[place], records.features[:, place]
    if not described.is_categorical:
        return np.isin(held, np.array(values, dtype=np.float64))
    unknown = [value for value in values if value not in described.categories]
    if unknown:
        raise DataError(
            f"column {column!r} has no category {unknown[0]!r}; name one of its {len(described.categories)} values."
        )
    return np.isin(held, [described.categories.index(value) for value in values])
