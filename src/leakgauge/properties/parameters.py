"""What both sides of the game know before it begins."""

from __future__ import annotations

import math
from dataclasses import dataclass

from leakgauge.checking import check_fields, number, whole
from leakgauge.errors import ConfigError
from leakgauge.theory.property_inference import check_frequencies


@dataclass(frozen=True)
class GameParameters:
    """The parameters that both sides know.

    Args:
        t0: the smaller frequency of the property in clean data, in [0, 1).
        t1: the larger one, in (t0, 1].
        n: records of the final training set, poisoned ones included.
        poison: share of it that is poisoned, in [0, 1).

    Raises:
        ConfigError: a parameter is out of range.

    >>> game = GameParameters(0.4, 0.6, n=1000, poison=0.03)
    >>> game.n_clean, game.n_poisoned
    (970, 30)
    """

    t0: float
    t1: float
    n: int
    poison: float = 0.0

    def __post_init__(self) -> None:
        check_fields(
            self,
            t0=number(least=0, below=1),
            t1=number(above=0, most=1),
            n=whole(1),
            poison=number(least=0, below=1, hint="it is poisoned / all records"),
        )
        try:
            check_frequencies(self.t0, self.t1)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        if self.n_clean < 1:
            raise ConfigError(
                f"a training set of {self.n} records, {self.n_poisoned} of them poisoned, has no clean record; make n "
                "larger or the poison share smaller."
            )

    @property
    def n_poisoned(self) -> int:
        """How many records are poisoned: the share of n, rounded, halves up."""
        return math.floor(self.poison * self.n + 0.5)

    @property
    def n_clean(self) -> int:
        """How many are the owner's."""
        return self.n - self.n_poisoned
