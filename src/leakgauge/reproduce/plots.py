"""Pictures of results, as SVG that stands alone: points and lines on two axes, and histograms.

Series differ by shape and dashes as well as by colour. All coordinates written are finite: what is not finite is drawn
at the edge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape

from leakgauge.statistics.numerals import short

WIDTH, HEIGHT = 560, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 544, 40, 336
COLOURS = ("#0b5394", "#b45309", "#2e7d32", "#8e24aa", "#5d4037", "#37474f")
DASHES = ("", "7 4", "2 3", "9 3 2 3", "4 2", "1 2")
N_LOOKS = len(COLOURS) * len(DASHES)
"""Looks that differ in colour or in dashes; marks have as many shapes as lines have dashes."""

_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#222}.title{font-weight:600}"
    ".axis{stroke:#888;fill:none}.grid{stroke:#e4e4e4;fill:none}"
)


@dataclass(frozen=True)
class Series:
    """Points with one look.

    Args:
        name: in the legend.
        x: across.
        y: up; as many.
        kind: dots, a line through them in the given order, or bars from 0 at each x.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    kind: Literal["dots", "line", "bars"] = "dots"


def plot(title: str, x_label: str, y_label: str, series: Sequence[Series], *, log_x: bool = False) -> str:
    """A picture of some series with a legend.

    Args:
        title: above it.
        x_label: below it.
        y_label: beside it.
        series: what to draw; without any point the axes stand alone.
        log_x: whether equal factors across are equal lengths; then all ``x`` must be above 0.

    Raises:
        ValueError: there are more series than looks.
    """
    if len(series) > N_LOOKS:
        raise ValueError(f"a figure can tell at most {N_LOOKS} series apart, got {len(series)}; draw several figures.")
    x_axis, y_axis = _axes(series, log_x)
    drawn = "".join(_drawn(i, one, x_axis, y_axis) for i, one in enumerate(series))
    inside = _panel(x_axis, y_axis, x_label, y_label, drawn) + _legend(series)
    return _picture(title, x_label, y_label, series, WIDTH, HEIGHT + 18 * len(series), inside)


def panels(title: str, x_label: str, y_label: str, series: Sequence[Series], *, in_a_row: int = 3) -> str:
    """A picture of each series beside the others, on equal axes and under its name.

    Args:
        title: above all.
        x_label: below each.
        y_label: beside each.
        series: what to draw; at least one.
        in_a_row: pictures beside each other at most.
    """
    x_axis, y_axis = _axes(series)
    n_across, n_down = min(in_a_row, len(series)), -(-len(series) // in_a_row)
    inside = "".join(
        f'<g transform="translate({WIDTH * (i % in_a_row)} {HEIGHT * (i // in_a_row) + TOP / 2:g})">'
        f'<text x="{LEFT}" y="{TOP - 12}">{escape(one.name)}</text>'
        f"{_panel(x_axis, y_axis, x_label, y_label, _drawn(i, one, x_axis, y_axis))}</g>"
        for i, one in enumerate(series)
    )
    return _picture(title, x_label, y_label, series, WIDTH * n_across, HEIGHT * n_down + TOP // 2, inside)


def _picture(
    title: str, x_label: str, y_label: str, series: Sequence[Series], width: int, height: int, inside: str
) -> str:
    """The frame of a picture: what it says in words, and its title."""
    said = "; ".join(f"{one.name}: {len(one.x)} points" for one in series)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f"<title>{escape(title)}</title><desc>{escape(f'{y_label} against {x_label}. {said}.')}</desc>"
        f'<style>{_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>'
        f'<text class="title" x="8" y="20">{escape(title)}</text>{inside}</svg>\n'
    )


def _panel(x_axis: _Axis, y_axis: _Axis, x_label: str, y_label: str, drawn: str) -> str:
    """Two axes with labels and what is drawn between them."""
    return (
        f"{_grid(x_axis, y_axis)}{drawn}"
        f'<text x="{(LEFT + RIGHT) / 2:g}" y="{BOTTOM + 40}" text-anchor="middle">{escape(x_label)}</text>'
        f'<text transform="rotate(-90)" x="{-(TOP + BOTTOM) / 2:g}" y="16" text-anchor="middle">'
        f"{escape(y_label)}</text>"
    )


def _axes(series: Sequence[Series], log_x: bool = False) -> tuple[_Axis, _Axis]:
    """Axes that hold all series; bars start at 0."""
    base = [0.0] if any(one.kind == "bars" for one in series) else []
    return (
        _Axis.around([value for one in series for value in one.x], LEFT, RIGHT, is_log=log_x),
        _Axis.around([*(value for one in series for value in one.y), *base], BOTTOM, TOP),
    )


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    start: float
    end: float
    is_log: bool

    @classmethod
    def around(cls, values: Sequence[float], start: float, end: float, *, is_log: bool = False) -> _Axis:
        """An axis that holds all finite values, with some room."""
        finite = [math.log10(value) if is_log else value for value in values if math.isfinite(value)] or [0.0, 1.0]
        low, high = min(finite), max(finite)
        room = 0.04 * (high - low) or 0.5
        return cls(low - room, high + room, start, end, is_log)

    def at(self, value: float) -> float:
        """The coordinate; what is not finite lies at the edge."""
        inside = min(max(math.log10(value) if self.is_log and math.isfinite(value) else value, self.low), self.high)
        return round(self.start + (inside - self.low) / (self.high - self.low) * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """Round values on the axis."""
        if self.is_log:
            decades = range(math.floor(self.low), math.ceil(self.high) + 1)
            values = [m * 10.0**k for k in decades for m in (1, 2, 5)]
            return [value for value in values if self.low <= math.log10(value) <= self.high]
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
        return [k * step for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def _grid(x: _Axis, y: _Axis) -> str:
    lines = "".join(f"M{LEFT} {y.at(tick)}H{RIGHT}" for tick in y.ticks())
    across = "".join(
        f'<text x="{x.at(tick)}" y="{BOTTOM + 18}" text-anchor="middle">{short(tick)}</text>' for tick in x.ticks()
    )
    up = "".join(
        f'<text x="{LEFT - 6}" y="{y.at(tick) + 4:g}" text-anchor="end">{short(tick)}</text>' for tick in y.ticks()
    )
    return f'<path class="grid" d="{lines}"/><path class="axis" d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"/>{across}{up}'


def _drawn(i: int, one: Series, x: _Axis, y: _Axis) -> str:
    known = [(a, b) for a, b in zip(one.x, one.y, strict=True) if not (math.isnan(a) or math.isnan(b))]
    places = [(x.at(a), y.at(b)) for a, b in known]
    if one.kind == "dots":
        return "".join(_mark(i, a, b) for a, b in places)
    if one.kind == "bars":
        path = "".join(f"M{a} {y.at(0)}V{b}" for a, b in places)
    else:
        path = "".join(f"{'L' if place else 'M'}{a} {b}" for place, (a, b) in enumerate(places))
    return _stroke(i, one.kind, path)


def _look(i: int) -> tuple[str, int]:
    """Colour of the i-th series, and which dashes or shape it has: the pair comes once in N_LOOKS series."""
    n = len(COLOURS)
    return COLOURS[i % n], (i + i // n) % len(DASHES)


def _stroke(i: int, kind: str, path: str) -> str:
    """A line, or bars, of the i-th series; the first bars of each colour are not dashed."""
    colour, pattern = _look(i)
    width, dashes = (6, DASHES[i // len(COLOURS)]) if kind == "bars" else (2, DASHES[pattern])
    faint = ' stroke-opacity=".6"' if kind == "bars" else ""
    return f'<path d="{path}" stroke="{colour}" stroke-width="{width}"{faint} stroke-dasharray="{dashes}" fill="none"/>'


def _mark(i: int, a: float, b: float) -> str:
    """A dot, square, triangle, cross, diamond or plus, by the place of the series."""
    colour, shape = _look(i)
    look = f'fill="{colour}" fill-opacity=".7"'
    match shape:
        case 0:
            return f'<circle cx="{a}" cy="{b}" r="4" {look}/>'
        case 1:
            return f'<path d="M{a - 3.5:g} {b - 3.5:g}h7v7h-7z" {look}/>'
        case 2:
            return f'<path d="M{a} {b - 4.5:g}l4.5 8h-9z" {look}/>'
        case 3:
            return f'<path d="M{a - 4:g} {b - 4:g}l8 8m0-8l-8 8" stroke="{colour}" fill="none"/>'
        case 4:
            return f'<path d="M{a} {b - 5:g}l5 5l-5 5l-5-5z" {look}/>'
        case _:
            return f'<path d="M{a} {b - 5:g}v10m-5-5h10" stroke="{colour}" fill="none"/>'


def _legend(series: Sequence[Series]) -> str:
    parts = []
    for i, one in enumerate(series):
        up = BOTTOM + 64 + 18 * i
        line = f"M{LEFT} {up - 4}h28"
        sample = _mark(i, LEFT + 14, up - 4) if one.kind == "dots" else _stroke(i, one.kind, line)
        parts.append(f'{sample}<text x="{LEFT + 38}" y="{up}">{escape(one.name)}</text>')
    return "".join(parts)
