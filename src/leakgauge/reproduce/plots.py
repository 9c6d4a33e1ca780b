"""Pictures of results, as SVG that stands alone: points and lines on two axes, and histograms.

Series differ by shape and dashes as well as by colour. What is not a number is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from leakgauge.drawing.axes import Axis, frame
from leakgauge.drawing.marks import N_COLOURS, N_DASHES, N_LOOKS, joined, line_look, note, path, shape, standalone, text

WIDTH, HEIGHT = 560, 408
LEFT, RIGHT, TOP, BOTTOM = 64, 544, 56, 352

_SHAPES = (
    "",  # a circle
    "m-3.5-3.5h7v7h-7z",
    "m0-4.5l4.5 8h-9z",
    "m-4-4l8 8m0-8l-8 8",
    "m0-5l5 5-5 5-5-5z",
    "m0-5v10m-5-5h10",
    "m0 4.5l4.5-8h-9z",
    "m-4-4h8l-8 8h8z",
)
"""A square, triangle, cross, diamond, plus, triangle and hourglass: as many as lines have dashes."""


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
        y_label: above its left end.
        series: what to draw; without any point the axes stand alone.
        log_x: whether equal factors across are equal lengths; then all ``x`` must be above 0.

    Raises:
        ValueError: there are more series than looks.
    """
    if len(series) > N_LOOKS:
        raise ValueError(f"a figure can show at most {N_LOOKS} series, got {len(series)}; draw several figures.")
    x, y = _axes(series, log_x)
    panel = [frame(x, y, x_label, y_label), *(_drawn(i, one, x, y) for i, one in enumerate(series))]
    legend = (_legend(i, one, BOTTOM + 64 + 18 * i) for i, one in enumerate(series))
    return _picture(title, x_label, y_label, series, WIDTH, HEIGHT + 18 * len(series), *panel, *legend)


def panels(title: str, x_label: str, y_label: str, series: Sequence[Series], *, in_a_row: int = 3) -> str:
    """A picture of each series beside the others, on equal axes and under its name.

    Args:
        title: above all.
        x_label: below each.
        y_label: above the left end of each.
        series: what to draw; at least one.
        in_a_row: pictures beside each other at most.
    """
    x, y = _axes(series)
    inside = (
        Markup('<g transform="translate({} {})">{}</g>').format(
            WIDTH * (i % in_a_row),
            HEIGHT * (i // in_a_row) + 20,
            joined(note(10, TOP - 34, "start", one.name), frame(x, y, x_label, y_label), _drawn(i, one, x, y)),
        )
        for i, one in enumerate(series)
    )
    n_across, n_down = min(in_a_row, len(series)), -(-len(series) // in_a_row)
    return _picture(title, x_label, y_label, series, WIDTH * n_across, HEIGHT * n_down + 20, *inside)


def _picture(
    title: str, x_label: str, y_label: str, series: Sequence[Series], width: int, height: int, *parts: Markup
) -> str:
    said = "; ".join(f"{one.name}: {len(one.x)} points" for one in series)
    desc = f"{y_label} against {x_label}. {said}."
    return standalone((width, height), title, desc, text(10, 20, title, look="title"), *parts)


def _axes(series: Sequence[Series], log_x: bool = False) -> tuple[Axis, Axis]:
    """Axes that hold all series; bars start at 0."""
    base = [0.0] if any(one.kind == "bars" for one in series) else []
    return (
        Axis.around([value for one in series for value in one.x], LEFT, RIGHT, is_log=log_x),
        Axis.around([*(value for one in series for value in one.y), *base], BOTTOM, TOP),
    )


def _drawn(i: int, one: Series, x: Axis, y: Axis) -> Markup:
    known = [(a, b) for a, b in zip(one.x, one.y, strict=True) if not (math.isnan(a) or math.isnan(b))]
    places = [(x.at(a), y.at(b)) for a, b in known]
    if one.kind == "dots":
        return joined(*(_sign(i, *place) for place in places))
    if one.kind == "bars":
        return path(_look(i, one), *(part for a, b in places for part in ("M", a, y.at(0), "V", b)))
    return path(_look(i, one), "M", *[part for a, b in places for part in ("L", a, b)][1:])


def _look(i: int, one: Series) -> str:
    """The classes of a line, or of bars; the first bars of each colour are not dashed."""
    return f"line {line_look(i)}" if one.kind == "line" else f"bars s{i % N_COLOURS} d{i // N_COLOURS}"


def _sign(i: int, across: float, up: float) -> Markup:
    """A dot of the i-th series; the pair of colour and shape comes once in as many series as there are looks."""
    look = f"sign s{i % N_COLOURS}"
    drawn = _SHAPES[(i + i // N_COLOURS) % N_DASHES]
    return path(look, "M", across, up, drawn) if drawn else shape("circle", look, cx=across, cy=up, r=3.5)


def _legend(i: int, one: Series, up: float) -> Markup:
    sample = _sign(i, LEFT + 14, up - 4) if one.kind == "dots" else path(_look(i, one), "M", LEFT, up - 4, "h28")
    return sample + note(LEFT + 38, up, "start", one.name)
