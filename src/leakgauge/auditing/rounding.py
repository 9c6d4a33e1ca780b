"""What rounding took from scores: what grid they lie on, and how many records it made equal.

An attack that calls a record a member by a threshold cannot part records with the same score. Where rounding made them
equal, a threshold among their scores in full would change the advantage by as much as the share of the members, or of
the others, that have this score: that much rounding may hide, and no more by one threshold.

Equal scores alone are no rounding: a tree has few. Seen are few decimals or significant digits, half precision,
multiples of a part of 1 such as 1/255, and scores that were cut off at an end. Probabilities of exactly 0 or 1 are none
of these where others come close to them, as those of a model do that reach them by rounding: they are what is released.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from scipy.special import expit

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.auditing.settings import ReleasedOutputs, Settings
from leakgauge.models.outputs import n_decimals

MOST_DECIMALS = 8
"""Scores with more decimals are not taken for rounded; tables are written with six of them, or in full."""

MOST_DIGITS = 5
"""Significant digits of scores that are taken for rounded; single precision has seven."""

MOST_BITS = 11
"""Significant bits likewise: those of half precision; single precision has 24."""

MOST_PARTS = 1000
"""Of 1, that scores are looked for to be multiples of."""

EXACT = 1e-7
"""How far numbers that were written in single precision may be from what they stand for, in parts of themselves."""

NEXT_TO_EACH_OTHER = 0.5
"""Share of the neighbours on a grid of parts that are one part from each other; shares in leaves of a tree are not."""

MANY = 5
"""Different scores, of which the smallest and the largest need not be on the grid."""

A_FEW = 1000
"""Numbers that are looked at first."""

ALL_DIFFER = 0.9
"""Share of the other scores that differ from each other where some were cut off."""


CLOSE = 1e-6
"""How close the next probability comes to 0 or 1 where a model reaches these by rounding, most often far closer."""


class Grid(StrEnum):
    """How scores seem to be rounded."""

    ONE = "one"
    DECIMALS = "decimals"
    PARTS = "parts"
    DIGITS = "digits"
    BITS = "bits"
    CUT = "cut"


SEEN = {
    Grid.DECIMALS: "have at most {} decimals",
    Grid.PARTS: "are multiples of 1/{}",
    Grid.DIGITS: "have at most {} significant digits",
    Grid.BITS: "have at most {} significant bits, as in half precision",
    Grid.CUT: "are cut off at an end",
}
"""Said of the scores, with the size of the grid."""

WIDTHS = {
    Grid.DECIMALS: lambda n: 10.0**-n,
    Grid.PARTS: lambda n: 1 / n,
    Grid.DIGITS: lambda n: 10.0**-n,
    Grid.BITS: lambda n: 2.0**-n,
}
"""How far probabilities next to each other on a grid are apart, at most."""


@dataclass(frozen=True)
class Rounding:
    """Scores on a visible grid.

    Args:
        grid: of the scores, or of the probabilities which they stand for.
        size: of the grid: decimals, parts of 1, digits, or bits; 0 of one score, and of scores that are cut off.
        share: of the members, or of the others, that have the most frequent score.
        n_values: different scores.
        of_references: whether they are those of reference models.
    """

    grid: Grid
    size: int
    share: float
    n_values: int
    of_references: bool = False

    @classmethod
    def written(cls, fields: Any) -> Rounding | None:
        """What :meth:`as_json` made of one; ``None`` where that holds something else."""
        if not isinstance(fields, Mapping) or set(fields) != set(cls.__dataclass_fields__):
            return None
        share, size = fields["share"], fields["size"]
        if not (fields["grid"] in list(Grid) and isinstance(size, int) and isinstance(share, float | int)):
            return None
        return cls(**{**fields, "grid": Grid(fields["grid"])}) if 0 <= share <= 1 else None

    def as_json(self) -> dict[str, Any]:
        """For files."""
        return asdict(self) | {"grid": self.grid.value}

    @property
    def decimals(self) -> int | None:
        """Of scores with few."""
        return self.size if self.grid is Grid.DECIMALS else None

    @property
    def said(self) -> str:
        """What is seen, in words that follow those for the scores."""
        return SEEN[self.grid].format(self.size)

    def matters(self, settings: Settings) -> bool:
        """Whether released outputs are finer than these scores: labels are not, nor bins of the width of the grid."""
        match settings.released:
            case ReleasedOutputs.LABELS:
                return False
            case ReleasedOutputs.BINNED:
                return self.grid not in WIDTHS or WIDTHS[self.grid](self.size) > settings.bin_width * (1 + 1e-9)
        return True


def rounding_of(
    form: str, scores: Floats, inside: Flags, *, written: Floats | None = None, of_references: bool = False
) -> Rounding | None:
    """The rounding of scores; ``None`` where there is none to be seen.

    Args:
        form: ``loss``, ``logit`` or ``probabilities``.
        scores: of what is true, in that form, of records ``[n]`` or of models and records ``[models, n]``.
        inside: whether each is of a member, in the same shape.
        written: the numbers of which they are averages, if they are.
        of_references: whether they are those of reference models.
    """
    values, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    if len(values) == 1:
        grid: tuple[Grid, int] | None = (Grid.ONE, 0)
    else:
        readings = _readings(form, scores if written is None else written)
        grid = next((found for one in readings if (found := _grid(np.unique(one))) is not None), None)
        if grid is None and _is_cut(values, counts, _readings(form, values)[-1]):
            grid = (Grid.CUT, 0)
    if grid is None:
        return None
    places = places.reshape(scores.shape)
    shares = [np.bincount(places[side]).max() / max(1, int(side.sum())) for side in (inside, ~inside) if side.any()]
    return Rounding(*grid, float(max(shares)), len(values), of_references)


def _readings(form: str, scores: Floats) -> tuple[Floats, ...]:
    """The numbers as they are, and the probabilities that they were computed from, which may be what was rounded."""
    if form == "probabilities":
        return (scores,)
    return scores, np.exp(-scores) if form == "loss" else expit(scores)


def _grid(values: Floats) -> tuple[Grid, int] | None:
    """The grid on which different numbers lie, in ascending order, if any; the ends may have been kept from 0 and 1."""
    values = values[1:-1] if len(values) > MANY else values
    some = values[:: max(1, len(values) // A_FEW)]
    if (n := n_decimals(some, MOST_DECIMALS)) is not None and (n := n_decimals(values, MOST_DECIMALS)) is not None:
        return Grid.DECIMALS, n
    for n in range(2, MOST_PARTS + 1):
        if _are_whole(some * n).all() and _are_whole(values * n).all():
            steps = np.diff(np.unique(np.round(values * n)))
            if len(steps) and np.mean(steps == 1) >= NEXT_TO_EACH_OTHER:
                return Grid.PARTS, n
            break
    for grid, most, are_on in ((Grid.BITS, MOST_BITS, _of_bits), (Grid.DIGITS, MOST_DIGITS, _of_digits)):
        for n in range(1, most + 1):
            # Of a probability that was rounded 1 less it may be given, which has more digits.
            if all((are_on(part, n) | are_on(1 - part, n)).all() for part in (some, values)):
                return grid, n
    return None


def _of_bits(numbers: Floats, n: int) -> Flags:
    """Which can be written with so many significant bits."""
    return _are_whole(np.frexp(numbers)[0] * 2.0**n)


def _of_digits(numbers: Floats, n: int) -> Flags:
    """Which can be written with so many significant decimal digits."""
    sizes = np.abs(np.where(numbers == 0, 1.0, numbers))
    return _are_whole(10 ** (np.log10(sizes) % 1 + n - 1))


def _are_whole(numbers: Floats) -> Flags:
    """Which numbers are whole but for rounding errors of single precision."""
    whole: Flags = np.abs(numbers - np.round(numbers)) <= EXACT * np.maximum(1.0, np.abs(numbers))
    return whole


def _is_cut(values: Floats, counts: Indices, probabilities: Floats) -> bool:
    """Whether the most frequent score is at an end, and most others differ from each other."""
    place, inner = int(np.argmax(counts)), slice(1, -1)
    if place not in (0, len(values) - 1) or counts[place] == 1:
        return False
    next_one = probabilities[1 if place == 0 else -2]
    if probabilities[place] in (0, 1) and abs(next_one - probabilities[place]) <= CLOSE:
        return False
    return bool(len(values) - 2 >= ALL_DIFFER * counts[inner].sum() > 0)
