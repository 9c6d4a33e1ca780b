"""PDTP of the training records, alone and beside the success of an attack."""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

from leakgauge.auditing import (
    Association,
    Histogram,
    Influence,
)
from leakgauge.drawing.axes import Axis, frame
from leakgauge.drawing.marks import coordinate, joined, note, path, picture, shape, text
from leakgauge.report.words import counted, factor, number, short, value_and_interval

LOG_COUNTS_FROM = 50
"""A histogram whose highest bar has more records than this gets a logarithmic axis of counts."""

LOG_PDTP_FROM = 8.0
"""A scatter plot whose PDTP reaches beyond this multiple of the limit gets a logarithmic axis."""

_LAYERS = 4


def pdtp_histogram(influence: Influence, key: str) -> Markup:
    """How many records have which PDTP, with the limit and the noise floor; infinite ones as a bar of their own."""
    histogram, limit = influence.histogram, influence.limit
    highest = max([*histogram.counts, histogram.n_infinite, 1])
    is_log = highest > LOG_COUNTS_FROM
    edges = histogram.edges or (0.0, 1.25 * limit)
    x = Axis(edges[0], edges[-1], 54, 408 if histogram.n_infinite else 468)
    y = Axis(0.5, 1.3 * highest, 264, 28, is_log=True) if is_log else Axis(0, 1.08 * highest, 264, 28)
    bars = [
        (left >= limit, _bar(x.at(left), x.at(until), y.at(count), y.start))
        for (left, until), count in zip(pairwise(histogram.edges), histogram.counts, strict=True)
        if count
    ]
    noise, noise_name = _noise_floor(influence.noise_floor, x, y)
    return picture(
        "plot",
        (480, 312),
        key,
        "Histogram of the PDTP of the training records",
        _histogram_description(influence),
        noise,
        frame(x, y, "PDTP in nats", "records (log scale)" if is_log else "records", whole=True),
        path("bar", *(bar for is_beyond, bar in bars if not is_beyond)),
        path("bar over", *(bar for is_beyond, bar in bars if is_beyond)),
        _infinite(histogram.n_infinite, y) if histogram.n_infinite else "",
        _limit_line(limit, x, y, f" (factor {factor(limit)})"),
        noise_name,
    )


def _infinite(n: int, y: Axis) -> Markup:
    """The bar of infinite values, to the right of the axis."""
    top = y.at(n)
    return joined(
        path("bar over", _bar(431, 457, top, y.start)),
        text(444, y.start + 17, "∞", look="mid"),
        text(444, max(10.0, top - 5), f"{n:,}", look="mid"),
        path("grid", "M420", y.start, "H468"),
    )


def _histogram_description(influence: Influence) -> str:
    return (
        f"{counted(influence.n_measured, 'record')}. The median PDTP is {number(influence.median, 2)}, the largest "
        f"{_spoken(influence.largest)}. {influence.n_above_limit:,} are above the limit of {short(influence.limit)}, "
        f"{influence.histogram.n_infinite:,} of them infinite. The noise floor is {_spoken(influence.noise_floor)}."
    )


def histogram_table(histogram: Histogram) -> list[tuple[str, int]]:
    """The bars of the histogram for those who read rather than look: the range of PDTP of each, and its records.

    Ranges without records are left out, and infinite values are in none. Ends have the decimals it takes to tell those
    of one range apart.

    >>> histogram_table(Histogram((0.0, 0.5, 1.0, 1.5), (3, 0, 2), 1))
    [('0.00 to 0.50', 3), ('1.00 to 1.50', 2)]
    """
    places = 2
    if histogram.counts and histogram.edges[-1] > histogram.edges[0]:
        width = (histogram.edges[-1] - histogram.edges[0]) / len(histogram.counts)
        places = max(places, math.ceil(1 - math.log10(width)))
    return [
        (f"{number(left, places)} to {number(right, places)}", count)
        for (left, right), count in zip(pairwise(histogram.edges), histogram.counts, strict=True)
        if count
    ]


def _noise_floor(noise_floor: float, x: Axis, y: Axis) -> tuple[Markup, Markup]:
    """What PDTP shows when nothing is removed: a shaded strip to lie below the bars, and its name to lie above."""
    if noise_floor <= x.low:
        return Markup(""), Markup("")
    until = x.at(noise_floor)
    strip = shape("rect", "noise", x=x.start, y=y.end, width=until - x.start, height=y.start - y.end)
    return strip, _beside(until, y.end + 34, x, f"noise floor {number(noise_floor, 2)}")


def _limit_line(limit: float, x: Axis, y: Axis, in_other_words: str = "") -> Markup:
    at = x.at(limit)
    line = path("limit", "M", at, y.end, "V", y.start)
    return line + _beside(at, y.end + 14, x, f"limit {short(limit)}{in_other_words}")


def _beside(at: float, up: float, x: Axis, said: str) -> Markup:
    """The name of a vertical line, on the side where there is room."""
    on_the_right = at < x.start + 0.55 * (x.end - x.start)
    return note(at + 6, up, "start", said) if on_the_right else note(at - 6, up, "end", said)


def success_axis(association: Association, limit: float) -> Axis:
    """The PDTP axis of the scatter plot: linear from 0, or logarithmic where PDTP reaches far beyond the limit."""
    largest = max([1.25 * limit, *(pdtp for pdtp in association.pdtp if math.isfinite(pdtp))])
    if largest > LOG_PDTP_FROM * limit:
        return Axis(0.01 * limit, 1.1 * largest, 54, 468, is_log=True)
    return Axis(0.0, 1.04 * largest, 54, 468)


def success_scatter(association: Association, limit: float, key: str) -> Markup:
    """Binned PDTP of records against the success of an attack on them, with the lines of guessing and of the limit."""
    lowest = min([0.4, *(math.floor(10 * success) / 10 for success in association.success)])
    x, y = success_axis(association, limit), Axis(lowest, 1.0, 264, 28)
    places = Counter(
        (round(x.at(p)), round(y.at(s))) for p, s in zip(association.pdtp, association.success, strict=True)
    )
    # One path does not darken where it crosses itself; a few, drawn over each other, show where dots pile up.
    layers = ([f"M{across} {up}h0" for (across, up), n in places.items() if n > layer] for layer in range(_LAYERS))
    return picture(
        "plot",
        (480, 312),
        key,
        f"PDTP with binned probabilities and the success of the attack “{association.attack}”",
        f"{counted(len(association.pdtp), 'dot')}, one for each record shown. Guessing succeeds in half of the "
        f"cases. The correlation is {value_and_interval(association.correlation, 2)}.",
        frame(
            x,
            y,
            "binned PDTP in nats" + (f" (log scale; below {short(x.low)} at the edge)" if x.is_log else ""),
            "success of the attack",
        ),
        path("guess", "M", x.start, y.at(0.5), "H", x.end),
        *(path("dots", *layer) for layer in layers if layer),
        _limit_line(limit, x, y),
        note(x.end, y.at(0.5) + 14, "end", "chance level"),
    )


class CrossTable(NamedTuple):
    """How many dots lie in which field: bands of success, and of PDTP with one count for each band of success."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...]], ...]


def cross_table(association: Association, limit: float) -> CrossTable:
    """The scatter plot for those who read rather than look: its dots counted in bands of PDTP and of success."""
    lower = (0.0, 0.01 * limit, 0.1 * limit, 0.5 * limit, limit, 2 * limit, 5 * limit)
    chances = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9)
    counts = [[0] * len(chances) for _ in lower]
    for pdtp, success in zip(association.pdtp, association.success, strict=True):
        # Open below and closed above: a PDTP equal to the limit does not exceed it.
        row, column = bisect.bisect_left(lower, pdtp) - 1, bisect.bisect_left(chances, success) - 1
        counts[max(0, row)][max(0, column)] += 1
    columns = tuple(_band(chances, i, last=f"{chances[-1]:g} to 1") for i in range(len(chances)))
    rows = tuple(
        (_band(lower, i, last=f"above {lower[-1]:g}"), tuple(counts[i])) for i in range(len(lower)) if any(counts[i])
    )
    return CrossTable(columns, rows)


def _band(edges: Sequence[float], i: int, *, last: str) -> str:
    return last if i == len(edges) - 1 else f"{edges[i]:g} to {edges[i + 1]:g}"


def _bar(left: float, right: float, top: float, bottom: float) -> str:
    """A bar as path data, with a hair of space to its neighbour."""
    start, end, up, down = map(coordinate, (left + 0.5, max(left + 1, right - 0.5), top, bottom))
    return f"M{start} {down}V{up}H{end}V{down}z"


def _spoken(value: float) -> str:
    return "infinite" if math.isinf(value) else number(value, 2)
