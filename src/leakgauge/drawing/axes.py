"""Where values lie on a picture, and the grid with its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from leakgauge.drawing.marks import joined, path, text
from leakgauge.statistics.numerals import short


@dataclass(frozen=True)
class Axis:
    """Where a value lies on a picture.

    Args:
        low: value at the start.
        high: value at the end, above ``low``.
        start: coordinate of ``low``.
        end: coordinate of ``high``; for a vertical axis smaller than ``start``.
        is_log: whether equal factors are equal lengths; then ``low`` must be above 0.

    Raises:
        ValueError: the ends are no range.

    >>> round(Axis(0.001, 1.0, 0.0, 300.0, is_log=True).at(0.01), 9)
    100.0
    """

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"an axis needs finite low < high, got {self.low} and {self.high}; choose other ends.")
        if self.is_log and self.low <= 0:
            raise ValueError(f"low must be above 0 on a logarithmic axis, got {self.low}; start at 1/n.")

    @classmethod
    def around(
        cls, values: Iterable[float], start: float, end: float, *, room: float = 0.04, is_log: bool = False
    ) -> Axis:
        """An axis that holds all finite values, with a share of its length as room at each end.

        >>> Axis.around([100.0, 200.0, math.inf], 0, 1)
        Axis(low=96.0, high=204.0, start=0, end=1, is_log=False)
        """
        finite = [math.log10(value) if is_log else value for value in values if math.isfinite(value)] or [0.0, 1.0]
        more = room * (max(finite) - min(finite)) or 0.5
        low, high = min(finite) - more, max(finite) + more
        return cls(10.0**low, 10.0**high, start, end, is_log) if is_log else cls(low, high, start, end)

    def at(self, value: float) -> float:
        """The coordinate of a value; what lies beyond an end is drawn at that end.

        Raises:
            ValueError: on NaN, which is nowhere.
        """
        if math.isnan(value):
            raise ValueError("value must be a number, got NaN; leave out what was not measured.")
        inside = min(max(value, self.low), self.high)
        if self.is_log:
            share = math.log(inside / self.low) / math.log(self.high / self.low)
        else:
            share = (inside - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, at_most: int = 6) -> tuple[float, ...]:
        """Round values within the axis: 1, 2 or 5 times powers of ten or, on a long logarithmic one, decades.

        >>> Axis(0.0, 1.3, 0, 1).ticks(), Axis(0.002, 1.0, 0, 1, is_log=True).ticks()
        ((0.0, 0.5, 1.0), (0.01, 0.1, 1.0))
        """
        if self.is_log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            every = max(1, math.ceil((last - first + 1) / at_most))
            near = self._multiples((1, 2, 5))
            return near if len(near) <= at_most else tuple(10.0**k for k in range(last, first - 1, -every))[::-1]
        rough = (self.high - self.low) / max(1, at_most - 1)
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return tuple(round(k * step, 12) for k in range(first, last + 1))

    def minor_ticks(self) -> tuple[float, ...]:
        """The values 2 to 9 times a power of ten between the ends of a logarithmic axis."""
        return self._multiples(range(2, 10)) if self.is_log else ()

    def _multiples(self, of: Iterable[int]) -> tuple[float, ...]:
        """Multiples of the powers of ten that lie between the ends of a logarithmic axis."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        values = (round(m * 10.0**k, 12) for k in powers for m in of)
        return tuple(value for value in values if self.low <= value <= self.high)


def frame(x: Axis, y: Axis, x_label: str, y_label: str, *, whole: bool = False, top: float | None = None) -> Markup:
    """Grid lines, numbers and names of two axes.

    Args:
        x: across.
        y: up.
        x_label: below the numbers.
        y_label: above the upper left corner.
        whole: only whole numbers stand on the axis that goes up.
        top: where ``y_label`` stands; 15 above the axis unless told.
    """
    across, up = x.ticks(), [tick for tick in y.ticks(5) if not whole or tick == int(tick)]
    short_marks = [part for t in across for part in ("M", x.at(t), y.start, "v4")]
    coarse = _upright(across, x, y) if x.is_log else short_marks
    return joined(
        path("fine", *_upright(x.minor_ticks(), x, y), *_level(() if whole else y.minor_ticks(), x, y)),
        path("grid", *coarse, *_level(up, x, y), "M", x.start, y.start, "H", x.end),
        *(text(x.start - 7, y.at(t) + 4, short(t), look="up") for t in up),
        *(text(x.at(t), y.start + 17, short(t), look="mid") for t in across),
        text((x.start + x.end) / 2, y.start + 40, x_label, look="mid"),
        text(x.start - 54, y.end - 15 if top is None else top, y_label),
    )


def _upright(values: Iterable[float], x: Axis, y: Axis) -> list[str | float]:
    return [part for value in values for part in ("M", x.at(value), y.end, "V", y.start)]


def _level(values: Iterable[float], x: Axis, y: Axis) -> list[str | float]:
    return [part for value in values for part in ("M", x.start, y.at(value), "H", x.end)]
