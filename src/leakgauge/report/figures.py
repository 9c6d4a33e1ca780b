"""The pictures of a report as SVG: pure functions from results to markup.

Each draws numbers that were computed elsewhere. Each picture has a title and a description for those who do not see
it, tells lines apart by dashes and letters as well as by colour, and takes all colours from the page's style sheet.
Infinite numbers are drawn at the end of the axis, never left out; every coordinate written is finite. A ``key``
distinguishes the ids of a picture from all others on the page.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

from leakgauge.auditing import (
    Association,
    Finding,
    Histogram,
    InferredProperty,
    Influence,
    MembershipAttackResult,
    PropertyGame,
    RocCurve,
    Verdict,
)
from leakgauge.drawing.axes import Axis, frame
from leakgauge.drawing.marks import N_COLOURS, coordinate, joined, line_look, note, path, picture, shape, text
from leakgauge.report.words import counted, factor, game_title, number, places_for, short, value_and_interval
from leakgauge.statistics import Estimate


def verdict_class(verdict: Verdict) -> str:
    """The class of the style sheet for a verdict."""
    return verdict.value.replace(" ", "-")


def icon(verdict: Verdict) -> Markup:
    """The sign of a verdict; needs ``verdicts.svg`` on the same page, and the word beside it."""
    return Markup('<svg class="icon" aria-hidden="true"><use href="#{}"/></svg>').format(verdict_class(verdict))


def scale_for(findings: Sequence[Finding]) -> tuple[float, float]:
    """Common ends for the interval plots of findings that share a unit, so that they can be compared at a glance.

    All ends, the limit and zero fit in, but for what lies beyond ten times the limit: that would squeeze the rest, and
    gets an arrow instead.

    >>> scale_for([Finding("q", "m", Estimate(3.0, -0.5, 60.0, 0.95, "example", 9), 0.0, 1.0, Verdict.FAILS, "", "")])
    (-0.5, 3.0)
    """
    limit = max((finding.threshold for finding in findings), default=1.0)
    base = min((finding.baseline for finding in findings), default=0.0)
    estimates = [finding.estimate for finding in findings if finding.estimate is not None]
    marks = [base, 2 * limit - base, *(finding.baseline for finding in findings)]
    marks += [end for estimate in estimates for end in (estimate.low, estimate.value, estimate.high)]
    near = [mark for mark in marks if abs(mark) <= 10 * limit]
    return min(near), max(near)


def interval_plot(finding: Finding, scale: tuple[float, float]) -> Markup:
    """A small picture of one finding: the interval as a line, the value as a dot, what is above the limit shaded.

    An end beyond the scale, as from :func:`scale_for`, gets an arrow. Without an estimate there is only the limit.
    """
    width, middle = 180, 13
    axis = Axis(*scale, 6, width - 8)
    limit, said, mark = round(axis.at(finding.threshold)), "not measured", Markup("")
    if finding.estimate is not None:
        said = value_and_interval(finding.estimate, places_for(finding.threshold))
        mark = _interval_marks(finding.estimate, axis, middle)
    title = f"{said}, limit {short(finding.threshold)}: {finding.verdict}"
    return Markup('<svg class="interval" viewBox="0 0 {} 26" role="img"><title>{}</title>{}</svg>').format(
        width,
        title,
        joined(
            path("beyond", "M", limit, 3, "H", width, "V", 23, "H", limit, "z"),
            path("axis", "M0", middle, "H", width, "M", round(axis.at(finding.baseline)), 9, "v8"),
            path("limit", "M", limit, 2, "v22"),
            mark,
        ),
    )


def _interval_marks(estimate: Estimate, axis: Axis, middle: int) -> Markup:
    left, right = round(axis.at(estimate.low)), round(axis.at(estimate.high))
    if estimate.high > axis.high:
        line = path("mark", "M", left, middle, "H", axis.end + 6, "m-5-4l5 4-5 4")
    else:
        ends = ("M", left, middle - 4, "v8M", right, middle - 4, "v8") if right - left > 1 else ()
        line = path("mark", "M", left, middle, "H", right, *ends)
    dot = Markup('<circle cx="{}" cy="{}" r="4"/>').format(round(axis.at(estimate.value)), middle)
    return line + dot if estimate.value <= axis.high else line


CURVE_ROUNDING = 5e-7
"""Rates of a curve are rounded to six decimals, and so may lie above the rate that they stand for."""

N_STEPS = 60
"""Steps along the ROC curves from their lowest false-positive rate to 1."""


_SEEN_AS_STEP = 6
_SEEN_AT_ALL = 3


def tpr_at(curve: RocCurve, fpr: float) -> float:
    """The largest true-positive rate that a threshold reaches without exceeding a false-positive rate.

    >>> tpr_at(RocCurve((0.0, 0.1, 1.0), (0.0, 0.4, 1.0)), 0.5)
    0.4
    """
    i = bisect.bisect_right(curve.fpr, fpr + CURVE_ROUNDING) - 1
    return curve.tpr[i] if i >= 0 else 0.0


def rates_to_quote(lowest: float) -> tuple[float, ...]:
    """False-positive rates 1, 2 and 5 times a power of ten from ``lowest`` to 1, for the table below an ROC curve.

    >>> rates_to_quote(0.04)
    (0.04, 0.05, 0.1, 0.2, 0.5, 1.0)
    """
    powers = range(math.floor(math.log10(lowest)), 1)
    values = {round(m * 10.0**k, 12) for k in powers for m in (1, 2, 5)}
    return (lowest, *sorted(value for value in values if lowest < value <= 1))


def rates_to_walk(lowest: float) -> tuple[float, ...]:
    """The false-positive rates at which the curves can be read on the page, evenly spaced on a logarithmic axis.

    >>> rates_to_walk(0.001)[:2], rates_to_walk(0.001)[40], rates_to_walk(0.001)[-1]
    ((0.001, 0.001122), 0.1, 1.0)
    """
    return tuple(float(f"{lowest ** (1 - i / N_STEPS):.4g}") for i in range(N_STEPS + 1))


def lowest_rate(n_holdout: int) -> float:
    """Where the axes of an ROC curve start: at 1/n, below which nothing is resolved, but not below 0.001.

    >>> lowest_rate(200), lowest_rate(100_000), lowest_rate(3)
    (0.005, 0.001, 0.1)
    """
    return min(0.1, max(0.001, 1 / max(1, n_holdout)))


def letter(i: int) -> str:
    """The letter that stands on the i-th line: A to Z, then A2 and so on.

    >>> letter(0), letter(25), letter(26)
    ('A', 'Z', 'A2')
    """
    return chr(ord("A") + i % 26) + ("" if i < 26 else str(i // 26 + 1))


def roc_plot(attacks: Sequence[MembershipAttackResult], n_holdout: int, key: str) -> Markup:
    """ROC curves on logarithmic axes, so that the low false-positive rates at which attacks hurt can be seen.

    Each curve is drawn as the steps that thresholds reach, and carries its letter; the diagonal is guessing. The number
    of non-members, ``n_holdout``, sets where the axes start.
    """
    low = lowest_rate(n_holdout)
    x, y = Axis(low, 1.0, 54, 468, is_log=True), Axis(low, 1.0, 346, 28, is_log=True)
    places: list[tuple[float, float]] = []
    for i, attack in enumerate(attacks):
        places.append(letter_place(attack.roc, (i + 0.7) / (len(attacks) + 0.9), x, y, places))
    dots = (Markup('<circle class="s{}" r="4.5"/>').format(i % N_COLOURS) for i in range(len(attacks)))
    return picture(
        "plot",
        (480, 392),
        key,
        "ROC curves of the membership attacks",
        _roc_description(attacks, low),
        frame(x, y, "false-positive rate (log scale)", "true-positive rate (log scale)"),
        path("guess", "M", x.start, y.start, "L", x.end, y.end),
        *(path(f"line {line_look(i)}", step_path(attack.roc, x, y)) for i, attack in enumerate(attacks)),
        *(_letter(i, *place) for i, place in enumerate(places)),
        Markup('<g class="cursor" visibility="hidden"><path d="M0 {}V{}"/>{}</g>').format(
            y.end, y.start, joined(*dots)
        ),
        data_roc=f"{low:.6g}",
        data_left=str(x.start),
        data_right=str(x.end),
        data_top=str(y.end),
        data_bottom=str(y.start),
    )


def _roc_description(attacks: Sequence[MembershipAttackResult], low: float) -> str:
    rates = [
        f"at a false-positive rate of {short(fpr)}, "
        + ", ".join(f"{letter(i)} {number(tpr_at(attack.roc, fpr))}" for i, attack in enumerate(attacks))
        for fpr in (low, 0.1)
    ]
    return (
        f"Both axes are logarithmic, from {short(low)} to 1; the diagonal is chance level. "
        f"True-positive rates of the attacks by their letters: {'; '.join(rates)}."
    )


def step_path(curve: RocCurve, x: Axis, y: Axis) -> str:
    """The steps of an ROC curve as SVG path data: level until the next threshold, then up.

    The line starts where the strictest threshold lies that the picture can show: an attack that always accuses many
    has no line at low rates, rather than one at the bottom. Steps too small to be seen as steps are drawn as slopes.

    >>> x, y = Axis(0.01, 1, 0, 200, is_log=True), Axis(0.01, 1, 200, 0, is_log=True)
    >>> step_path(RocCurve((0.0, 0.1, 1.0), (0.01, 0.1, 1.0)), x, y)
    'M0 200H100V100H200V0'
    >>> step_path(RocCurve((0.0, 0.1, 1.0), (0.0, 0.1, 1.0)), x, y)
    'M100 100H200V0'
    """
    start, tpr = _visible_start(curve, x, y)
    at, level = round(x.at(start)), round(y.at(tpr))
    drawn = f"M{at} {level}"
    for fpr, tpr in zip(curve.fpr, curve.tpr, strict=True):
        across, up = round(x.at(max(fpr, start))), round(y.at(tpr))
        if fpr > start and (max(across - at, level - up) >= _SEEN_AT_ALL or fpr == curve.fpr[-1]):
            is_step = across - at > _SEEN_AS_STEP
            drawn += f"H{across}" + f"V{up}" * (up < level) if is_step else f"L{across} {up}"
            at, level = across, up
    return drawn


def letter_place(
    curve: RocCurve, share: float, x: Axis, y: Axis, taken: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """Where the letter of a line stands: on the line, else below it, and on no other letter.

    Args:
        curve: the line.
        share: where along the axis it would best stand, in (0, 1); letters side by side hide none where lines meet.
        x: axis of the false-positive rate.
        y: axis of the true-positive rate.
        taken: places of other letters.
    """
    first = x.at(_visible_start(curve, x, y)[0])
    # 18 is the width of a letter with its ring.
    wanted = max(first, x.start + share * (x.end - x.start))
    along = [wanted, *(first + 18 * k for k in range(int((x.end - first) / 18) + 1))]
    for below in range(0, int(y.start - y.end) + 1, 18):
        for across in along:
            fpr = x.low * (x.high / x.low) ** ((across - x.start) / (x.end - x.start))
            place = across, min(y.at(tpr_at(curve, fpr * (1 + 1e-9))) + below, y.start)
            if all(math.dist(place, other) >= 17 for other in taken):
                return place
    return wanted, y.start


def _visible_start(curve: RocCurve, x: Axis, y: Axis) -> tuple[float, float]:
    """The first pair of rates that the picture can show."""
    tpr = tpr_at(curve, x.low)
    if tpr >= y.low:
        return x.low, tpr
    seen = ((f, t) for f, t in zip(curve.fpr, curve.tpr, strict=True) if f > x.low and t >= y.low)
    fpr, tpr = next(seen, (x.high, 0.0))
    return fpr, max((t for f, t in zip(curve.fpr, curve.tpr, strict=True) if f == fpr), default=tpr)


def line_sample(i: int) -> Markup:
    """The i-th line style with its letter, for a legend."""
    return _sample(path(f"line {line_look(i)}", "M0 10H56") + _letter(i, 28, 10))


def guess_sample() -> Markup:
    """The line of guessing, for a legend."""
    return _sample(path("guess", "M0 10H56"))


def _sample(drawn: Markup) -> Markup:
    return Markup('<svg class="sample" viewBox="0 0 56 20" aria-hidden="true">{}</svg>').format(drawn)


def _letter(i: int, across: float, up: float) -> Markup:
    ring = Markup('<circle cx="{}" cy="{}" r="8"/>').format(round(across), round(up))
    named = text(across, up + 4, letter(i))
    return Markup('<g class="letter s{}">{}</g>').format(i % N_COLOURS, ring + named)


_LINES = ("attack accuracy", "precision", "recall")


def power_plot(found: InferredProperty, key: str) -> Markup:
    """How often the right frequency is named, and what it costs in precision and recall, by the planted share.

    A line joins the games in which labels are asked for; a ring marks the one for the confidences of a clean model.
    """
    games, lines = found.games, _lines(found.games)
    lowest = min([0.4, *(game.accuracy.low for game in games), *(up for line in lines.values() for _, up in line)])
    most = max([0.01, *(game.planted for game in games)])
    named = len(lines) > 1
    x = Axis(-0.06 * most, 1.04 * most, 54, 400 if named else 468)
    y = Axis(math.floor(10 * lowest) / 10, 1.0, 264, 28)
    ends = {name: y.at(points[-1][1]) for name, points in lines.items()}
    return picture(
        "plot",
        (480, 312),
        key,
        f"Attack accuracy for “{found.name}” by the share of poisoned records",
        _description(games),
        frame(x, y, "poisoned share of the training records", "share" if named else "attack accuracy"),
        path("guess", "M", x.start, y.at(0.5), "H", x.end),
        *(_line(_LINES.index(name), points, x, y) for name, points in lines.items()),
        *(_game_mark(game, x, y) for game in games),
        _names(ends, x.end + 4) if named else "",
        note(x.end, y.at(0.5) + 14, "end", "chance level"),
    )


def _lines(games: Sequence[PropertyGame]) -> dict[str, list[tuple[float, float]]]:
    """By name, planted shares and values in the games in which labels are asked for; no line without a point."""
    by_labels = [game for game in games if game.answers == "labels"]
    values = zip(*((game.accuracy, game.precision, game.recall) for game in by_labels), strict=True)
    lines = {
        name: [(game.planted, one.value) for game, one in zip(by_labels, line, strict=True) if one is not None]
        for name, line in zip(_LINES, values, strict=False)
    }
    return {name: points for name, points in lines.items() if points}


def _line(i: int, points: Sequence[tuple[float, float]], x: Axis, y: Axis) -> Markup:
    """A line through points, which is a dash where there is only one."""
    through = [part for across, up in points for part in ("L", x.at(across), y.at(up))]
    return path(f"line {line_look(i)}", "M", *through[1:], *(["m-6 0h12"] if len(points) == 1 else []))


def _names(ends: dict[str, float], across: float) -> Markup:
    """The names of lines beside their ends, moved down where they would stand on each other."""
    said, lowest = Markup(""), -math.inf
    for name, up in sorted(ends.items(), key=lambda item: item[1]):
        lowest = max(up + 4, lowest + 14)
        said += note(across, lowest, "start", name)
    return said


def _description(games: Sequence[PropertyGame]) -> str:
    won = "; ".join(f"{game_title(game)}: {value_and_interval(game.accuracy, 2)}{_use(game)}" for game in games)
    return f"Chance level is 0.5. Attack accuracy: {won}."


def _use(game: PropertyGame) -> str:
    known = (("precision", game.precision), ("recall", game.recall))
    return "".join(f", {name} {value_and_interval(one, 2)}" for name, one in known if one is not None)


def _game_mark(game: PropertyGame, x: Axis, y: Axis) -> Markup:
    """A dot with its interval; the clean game for confidences is a ring a little to the left."""
    kind, aside = ("dot", 0) if game.answers == "labels" else ("ring", 10)
    across, won = x.at(game.planted) - aside, game.accuracy
    return joined(
        path("mark", "M", across - 4, y.at(won.low), "h8m-4 0V", y.at(won.high), "m-4 0h8"),
        shape("circle", kind, cx=across, cy=y.at(won.value), r=4.5),
    )


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


def digits(values: Iterable[float]) -> list[float | str]:
    """Four significant digits each; JSON has no infinity, so that is written as in ``result.json``."""
    return [
        float(f"{value:.4g}") if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
        for value in values
    ]
