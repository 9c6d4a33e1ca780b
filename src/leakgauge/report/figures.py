"""The pictures of a report as SVG: pure functions from results to markup.

Each draws numbers that were computed elsewhere. Each picture has a title and a description for those who do not see
it, tells lines apart by dashes and letters as well as by colour, and takes all colours from the page's style sheet.
Infinite numbers are drawn at the end of the axis, never left out; every coordinate written is finite.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from leakgauge.auditing import AttackResult, Finding, InferredProperty, Influence, PropertyGame, Verdict
from leakgauge.auditing.result import Association, Curve, Histogram
from leakgauge.report.words import counted, factor, game_title, number, places_for, short, value_and_interval
from leakgauge.statistics import Estimate

N_COLOURS = N_DASHES = 8
"""Colours and dashes of lines in the style sheet; each pair comes once in 64 lines."""

CURVE_ROUNDING = 5e-7
"""Rates of a curve are rounded to six decimals, and so may lie above the rate that they stand for."""

LOG_COUNTS_FROM = 50
"""A histogram whose highest bar has more records than this gets a logarithmic axis of counts."""

LOG_PDTP_FROM = 8.0
"""A scatter plot whose PDTP reaches beyond this multiple of the limit gets a logarithmic axis."""

N_STEPS = 60
"""Steps along the ROC curves from their lowest false-positive rate to 1."""

_LAYERS = 4
_SEEN_AS_STEP = 6
_SEEN_AT_ALL = 3


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
        """Round values within the axis: decades on a logarithmic one, steps of 1, 2 or 5 times a power of ten else.

        >>> Axis(0.0, 1.3, 0, 1).ticks(), Axis(0.002, 1.0, 0, 1, is_log=True).ticks()
        ((0.0, 0.5, 1.0), (0.01, 0.1, 1.0))
        """
        if self.is_log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            every = max(1, math.ceil((last - first + 1) / at_most))
            return tuple(10.0**k for k in range(last, first - 1, -every))[::-1]
        rough = (self.high - self.low) / max(1, at_most - 1)
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return tuple(round(k * step, 12) for k in range(first, last + 1))

    def minor_ticks(self) -> tuple[float, ...]:
        """The values 2 to 9 times a power of ten between the ends of a logarithmic axis."""
        if not self.is_log:
            return ()
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)))
        values = (round(m * 10.0**k, 12) for k in powers for m in range(2, 10))
        return tuple(value for value in values if self.low <= value <= self.high)


def tpr_at(curve: Curve, fpr: float) -> float:
    """The largest true-positive rate that a threshold reaches without exceeding a false-positive rate.

    >>> tpr_at(Curve((0.0, 0.1, 1.0), (0.0, 0.4, 1.0)), 0.5)
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


_ICONS = {
    Verdict.PASSES: '<circle cx="12" cy="12" r="11"/><path d="M6.5 12.5l3.8 3.8 7.2-8"/>',
    Verdict.FAILS: (
        '<path class="body" d="M7.4 1h9.2L23 7.4v9.2L16.6 23H7.4L1 16.6V7.4z"/><path d="M8 8l8 8M16 8l-8 8"/>'
    ),
    Verdict.CANNOT_TELL: (
        '<rect class="body" x="1.5" y="1.5" width="21" height="21" rx="5"/>'
        '<path d="M8.4 9.3c0-4.6 7.2-4.5 7.2-.4 0 2.7-3.6 2.7-3.6 5.3M12 18v.1"/>'
    ),
}


def icons() -> Markup:
    """The signs of the verdicts, to stand once on a page; they differ in shape, not only in colour."""
    symbols = (
        Markup('<symbol id="{}" viewBox="0 0 24 24">{}</symbol>').format(_verdict_class(verdict), Markup(drawn))
        for verdict, drawn in _ICONS.items()
    )
    return Markup('<svg class="vh" width="0" height="0" aria-hidden="true">{}</svg>').format(Markup("").join(symbols))


def icon(verdict: Verdict) -> Markup:
    """The sign of a verdict; needs :func:`icons` on the same page, and the word beside it."""
    return Markup('<svg class="icon" aria-hidden="true"><use href="#{}"/></svg>').format(_verdict_class(verdict))


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

    An end beyond the scale gets an arrow. Without an estimate there is only the limit.

    Args:
        finding: what to draw.
        scale: values at the left and right edge, as from :func:`scale_for`.
    """
    width, height, middle = 180, 26, 13
    axis = Axis(*scale, 6, width - 8)
    limit = round(axis.at(finding.threshold))
    mark = Markup("")
    said = "not measured"
    if finding.estimate is not None:
        mark = _interval_marks(finding.estimate, axis, middle)
        said = value_and_interval(finding.estimate, places_for(finding.threshold))
    return Markup(
        '<svg class="interval" viewBox="0 0 {width} {height}" role="img"><title>{title}</title>'
        '<path class="beyond" d="M{limit} 3H{width}V23H{limit}z"/>'
        '<path class="axis" d="M0 {middle}H{width}M{base} 9v8"/><path class="limit" d="M{limit} 2v22"/>{mark}</svg>'
    ).format(
        width=width,
        height=height,
        title=f"{said}, limit {short(finding.threshold)}: {finding.verdict}",
        limit=limit,
        middle=middle,
        base=round(axis.at(finding.baseline)),
        mark=mark,
    )


def _interval_marks(estimate: Estimate, axis: Axis, middle: int) -> Markup:
    left, right = round(axis.at(estimate.low)), round(axis.at(estimate.high))
    drawn = f"M{left} {middle}H{right}"
    if estimate.high > axis.high:
        drawn = f"M{left} {middle}H{round(axis.end) + 6}m-5-4l5 4-5 4"
    elif right - left > 1:
        drawn += f"M{left} {middle - 4}v8M{right} {middle - 4}v8"
    dot = Markup('<circle cx="{}" cy="{}" r="4"/>').format(round(axis.at(estimate.value)), middle)
    return Markup('<path class="mark" d="{}"/>{}').format(drawn, dot if estimate.value <= axis.high else "")


def roc_plot(attacks: Sequence[AttackResult], n_holdout: int, key: str) -> Markup:
    """ROC curves on logarithmic axes, so that the low false-positive rates at which attacks hurt can be seen.

    Each curve is drawn as the steps that thresholds reach. The diagonal is guessing. Each line carries its letter.

    Args:
        attacks: one line each.
        n_holdout: non-members; sets where the axes start.
        key: distinguishes the ids of this picture from all others on the page.
    """
    low = lowest_rate(n_holdout)
    x, y = Axis(low, 1.0, 54, 468, is_log=True), Axis(low, 1.0, 346, 28, is_log=True)
    lines, letters, dots = [], [], []
    taken: list[tuple[float, float]] = []
    for i, attack in enumerate(attacks):
        lines.append(Markup('<path class="line {}" d="{}"/>').format(line_look(i), step_path(attack.roc, x, y)))
        taken.append(letter_place(attack.roc, (i + 0.7) / (len(attacks) + 0.9), x, y, taken))
        letters.append(_letter(i, *taken[-1]))
        dots.append(Markup('<circle class="s{}" r="4.5"/>').format(i % N_COLOURS))
    return Markup(
        '<svg class="plot" viewBox="0 0 480 392" role="img" aria-labelledby="{key}-t {key}-d" data-roc="{low}" '
        'data-left="{left}" data-right="{right}" data-top="{top}" data-bottom="{bottom}">'
        '<title id="{key}-t">{title}</title><desc id="{key}-d">{desc}</desc>'
        '{frame}<path class="guess" d="M{left} {bottom}L{right} {top}"/>{lines}{letters}'
        '<g class="cursor" visibility="hidden"><path d="M0 {top}V{bottom}"/>{dots}</g></svg>'
    ).format(
        key=key,
        low=f"{low:.6g}",
        left=x.start,
        right=x.end,
        top=y.end,
        bottom=y.start,
        title="ROC curves of the membership attacks",
        desc=_roc_description(attacks, low),
        frame=_frame(x, y, "false-positive rate (log scale)", "true-positive rate (log scale)"),
        lines=Markup("").join(lines),
        letters=Markup("").join(letters),
        dots=Markup("").join(dots),
    )


def _roc_description(attacks: Sequence[AttackResult], low: float) -> str:
    rates = [
        f"at a false-positive rate of {short(fpr)}, "
        + ", ".join(f"{letter(i)} {number(tpr_at(attack.roc, fpr))}" for i, attack in enumerate(attacks))
        for fpr in (low, 0.1)
    ]
    return (
        f"Both axes are logarithmic, from {short(low)} to 1; the diagonal is chance level. "
        f"True-positive rates of the attacks by their letters: {'; '.join(rates)}."
    )


def step_path(curve: Curve, x: Axis, y: Axis) -> str:
    """The steps of an ROC curve as SVG path data: level until the next threshold, then up.

    The line starts where the strictest threshold lies that the picture can show: an attack that always accuses many
    has no line at low rates, rather than one at the bottom. Steps too small to be seen as steps are drawn as slopes.

    >>> x, y = Axis(0.01, 1, 0, 200, is_log=True), Axis(0.01, 1, 200, 0, is_log=True)
    >>> step_path(Curve((0.0, 0.1, 1.0), (0.01, 0.1, 1.0)), x, y)
    'M0 200H100V100H200V0'
    >>> step_path(Curve((0.0, 0.1, 1.0), (0.0, 0.1, 1.0)), x, y)
    'M100 100H200V0'
    """
    start, tpr = _visible_start(curve, x, y)
    at, level = round(x.at(start)), round(y.at(tpr))
    drawn, pending = [f"M{at} {level}"], ""
    for fpr, tpr in zip(curve.fpr, curve.tpr, strict=True):
        if fpr <= start:
            continue
        across, up = round(x.at(fpr)), round(y.at(tpr))
        if across - at > _SEEN_AS_STEP:
            drawn += [pending, f"H{across}", f"V{up}" if up != level else ""]
            at, level, pending = across, up, ""
        elif max(across - at, level - up) >= _SEEN_AT_ALL:
            drawn.append(f"L{across} {up}")
            at, level, pending = across, up, ""
        else:
            pending = f"L{across} {up}" if (across, up) != (at, level) else ""
    end = "" if at == round(x.end) else f"H{round(x.end)}"
    return "".join([*drawn, pending, end])


def letter_place(
    curve: Curve, share: float, x: Axis, y: Axis, taken: Sequence[tuple[float, float]]
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
    for below in range(int((y.start - y.end) / 18) + 1):
        for across in along:
            fpr = x.low * (x.high / x.low) ** ((across - x.start) / (x.end - x.start))
            up = min(y.at(tpr_at(curve, fpr * (1 + 1e-9))) + 18 * below, y.start)
            if all(math.hypot(across - a, up - b) >= 17 for a, b in taken):
                return across, up
    return wanted, y.start


def _visible_start(curve: Curve, x: Axis, y: Axis) -> tuple[float, float]:
    """The first pair of rates that the picture can show."""
    tpr = tpr_at(curve, x.low)
    if tpr >= y.low:
        return x.low, tpr
    seen = ((f, t) for f, t in zip(curve.fpr, curve.tpr, strict=True) if f > x.low and t >= y.low)
    fpr, tpr = next(seen, (x.high, 0.0))
    return fpr, max((t for f, t in zip(curve.fpr, curve.tpr, strict=True) if f == fpr), default=tpr)


def power_plot(found: InferredProperty, key: str) -> Markup:
    """How often the right frequency is named, and what it costs in precision and recall, by the planted share.

    A line joins the games in which labels are asked for; a ring marks the one for the confidences of a clean model.

    Args:
        found: what to draw; at least one game.
        key: distinguishes the ids of this picture from all others on the page.
    """
    games, lines = found.games, _power_lines(found.games)
    lowest = min([0.4, *(game.accuracy.low for game in games), *(up for line in lines.values() for _, up in line)])
    most = max([0.01, *(game.planted for game in games)])
    named = len(lines) > 1
    x = Axis(-0.06 * most, 1.04 * most, 54, 400 if named else 468)
    y = Axis(math.floor(10 * lowest) / 10, 1.0, 264, 28)
    return Markup(
        '<svg class="plot" viewBox="0 0 480 312" role="img" aria-labelledby="{key}-t {key}-d">'
        '<title id="{key}-t">{title}</title><desc id="{key}-d">{desc}</desc>{frame}'
        '<path class="guess" d="M{left} {half}H{right}"/>{lines}{marks}{names}{guessing}</svg>'
    ).format(
        key=key,
        title=f"Attack accuracy for “{found.name}” by the share of poisoned records",
        desc=_power_description(games),
        frame=_frame(x, y, "poisoned share of the training records", "share" if named else "attack accuracy"),
        left=_c(x.start),
        right=_c(x.end),
        half=_c(y.at(0.5)),
        lines=Markup("").join(
            Markup('<path class="line {}" d="{}"/>').format(line_look(_POWER_LINES.index(name)), _line(points, x, y))
            for name, points in lines.items()
        ),
        marks=Markup("").join(_game_mark(game, x, y) for game in games),
        names=_names({name: y.at(points[-1][1]) for name, points in lines.items()}, x.end + 4) if named else "",
        guessing=_note(x.end, y.at(0.5) + 14, "end", "chance level"),
    )


_POWER_LINES = ("attack accuracy", "precision", "recall")


def _power_lines(games: Sequence[PropertyGame]) -> dict[str, list[tuple[float, float]]]:
    """By name, planted shares and values in the games in which labels are asked for; no line without a point."""
    by_labels = [game for game in games if game.answers == "labels"]
    values = zip(*((game.accuracy, game.precision, game.recall) for game in by_labels), strict=True)
    lines = {
        name: [(game.planted, one.value) for game, one in zip(by_labels, line, strict=True) if one is not None]
        for name, line in zip(_POWER_LINES, values, strict=False)
    }
    return {name: points for name, points in lines.items() if points}


def _line(points: Sequence[tuple[float, float]], x: Axis, y: Axis) -> str:
    """A line through points, which is a dash where there is only one."""
    joined = "L".join(f"{_c(x.at(across))} {_c(y.at(up))}" for across, up in points)
    return f"M{joined}" if len(points) > 1 else f"M{joined}m-6 0h12"


def _names(ends: dict[str, float], across: float) -> Markup:
    """The names of lines beside their ends, moved down where they would stand on each other."""
    said, lowest = Markup(""), -math.inf
    for name, up in sorted(ends.items(), key=lambda item: item[1]):
        lowest = max(up + 4, lowest + 14)
        said += _note(across, lowest, "start", name)
    return said


def _power_description(games: Sequence[PropertyGame]) -> str:
    won = "; ".join(f"{game_title(game)}: {value_and_interval(game.accuracy, 2)}{_use(game)}" for game in games)
    return f"Chance level is 0.5. Attack accuracy: {won}."


def _use(game: PropertyGame) -> str:
    known = (("precision", game.precision), ("recall", game.recall))
    return "".join(f", {name} {value_and_interval(one, 2)}" for name, one in known if one is not None)


def _game_mark(game: PropertyGame, x: Axis, y: Axis) -> Markup:
    """A dot with its interval; the clean game for confidences is a ring a little to the left."""
    ring = game.answers != "labels"
    across = x.at(game.planted) - (10 if ring else 0)
    low, high = y.at(game.accuracy.low), y.at(game.accuracy.high)
    return Markup(
        '<path class="mark" d="M{left} {low}h8m-4 0V{high}m-4 0h8"/>'
        '<circle class="{kind}" cx="{across}" cy="{up}" r="4.5"/>'
    ).format(
        left=_c(across - 4),
        low=_c(low),
        high=_c(high),
        kind="ring" if ring else "dot",
        across=_c(across),
        up=_c(y.at(game.accuracy.value)),
    )


def line_look(i: int) -> str:
    """Return the classes of the style sheet for the i-th line: its colour and its dashes.

    >>> line_look(0), line_look(7), line_look(8)
    ('s0 d0', 's7 d7', 's0 d1')
    """
    return f"s{i % N_COLOURS} d{(i + i // N_COLOURS) % N_DASHES}"


def line_sample(i: int) -> Markup:
    """The i-th line style with its letter, for a legend."""
    return Markup(
        '<svg class="sample" viewBox="0 0 56 20" aria-hidden="true"><path class="line {}" d="M0 10H56"/>{}</svg>'
    ).format(line_look(i), _letter(i, 28, 10))


def guess_sample() -> Markup:
    """The line of guessing, for a legend."""
    return Markup('<svg class="sample" viewBox="0 0 56 20" aria-hidden="true"><path class="guess" d="M0 10H56"/></svg>')


def pdtp_histogram(influence: Influence, key: str) -> Markup:
    """How many records have which PDTP, with the limit and the noise floor; infinite ones as a bar of their own.

    Args:
        influence: what to draw; without any counts the axes stand alone.
        key: distinguishes the ids of this picture from all others on the page.
    """
    histogram = influence.histogram
    highest = max([*histogram.counts, histogram.n_infinite, 1])
    is_log = highest > LOG_COUNTS_FROM
    right = 408.0 if histogram.n_infinite else 468.0
    edges = histogram.edges or (0.0, 1.25 * influence.limit)
    x = Axis(edges[0], edges[-1], 54, right)
    y = Axis(0.5, 1.3 * highest, 264, 28, is_log=True) if is_log else Axis(0, 1.08 * highest, 264, 28)
    noise, noise_name = _noise_floor(influence.noise_floor, x, y)
    within: list[str] = []
    beyond: list[str] = []
    for left, until, count in zip(histogram.edges, histogram.edges[1:], histogram.counts, strict=False):
        if count:
            bars = beyond if left >= influence.limit else within
            bars.append(_bar(x.at(left), x.at(until), y.at(count), y.start))
    infinite = Markup("")
    if histogram.n_infinite:
        infinite = Markup(
            '<path class="bar over" d="{}"/><g class="middle"><text x="444" y="{}">∞</text>'
            '<text x="444" y="{}">{}</text></g><path class="grid" d="M420 {}H468"/>'
        ).format(
            _bar(431, 457, y.at(histogram.n_infinite), y.start),
            _c(y.start + 17),
            _c(max(10.0, y.at(histogram.n_infinite) - 5)),
            f"{histogram.n_infinite:,}",
            _c(y.start),
        )
    return Markup(
        '<svg class="plot" viewBox="0 0 480 312" role="img" aria-labelledby="{key}-t {key}-d">'
        '<title id="{key}-t">{title}</title><desc id="{key}-d">{desc}</desc>{noise}{frame}'
        '<path class="bar" d="{within}"/><path class="bar over" d="{beyond}"/>{infinite}{limit}{noise_name}</svg>'
    ).format(
        key=key,
        title="Histogram of the PDTP of the training records",
        desc=_histogram_description(influence),
        noise=noise,
        noise_name=noise_name,
        frame=_frame(x, y, "PDTP in nats", "records (log scale)" if is_log else "records", whole=True),
        within="".join(within),
        beyond="".join(beyond),
        infinite=infinite,
        limit=_limit_line(influence.limit, x, y, with_factor=True),
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
    offset, anchor = _beside(until, x)
    strip = Markup('<rect class="noise" x="{}" y="{}" width="{}" height="{}"/>').format(
        _c(x.start), _c(y.end), _c(until - x.start), _c(y.start - y.end)
    )
    return strip, _note(until + offset, y.end + 34, anchor, f"noise floor {number(noise_floor, 2)}")


def _limit_line(limit: float, x: Axis, y: Axis, *, with_factor: bool) -> Markup:
    at = x.at(limit)
    offset, anchor = _beside(at, x)
    said = f"limit {short(limit)}" + (f" (factor {factor(limit)})" if with_factor else "")
    line = Markup('<path class="limit" d="M{0} {1}V{2}"/>').format(_c(at), _c(y.end), _c(y.start))
    return line + _note(at + offset, y.end + 14, anchor, said)


def _note(across: float, up: float, anchor: str, said: str) -> Markup:
    """Words beside a line of a picture."""
    return Markup('<text class="note" x="{}" y="{}" text-anchor="{}">{}</text>').format(
        round(across), round(up), anchor, said
    )


def _beside(at: float, x: Axis) -> tuple[float, str]:
    """On which side of a vertical line there is room for its name: the offset and the anchor."""
    return (6, "start") if at < x.start + 0.55 * (x.end - x.start) else (-6, "end")


def success_axis(association: Association, limit: float) -> Axis:
    """The PDTP axis of the scatter plot: linear from 0, or logarithmic where PDTP reaches far beyond the limit."""
    largest = max([1.25 * limit, *(pdtp for pdtp in association.pdtp if math.isfinite(pdtp))])
    if largest > LOG_PDTP_FROM * limit:
        return Axis(0.01 * limit, 1.1 * largest, 54, 468, is_log=True)
    return Axis(0.0, 1.04 * largest, 54, 468)


def success_scatter(association: Association, limit: float, key: str) -> Markup:
    """Binned PDTP of records against the success of an attack on them, with the lines of guessing and of the limit.

    Args:
        association: what to draw; may hold no records.
        limit: of PDTP.
        key: distinguishes the ids of this picture from all others on the page.
    """
    lowest = min([0.4, *(math.floor(10 * success) / 10 for success in association.success)])
    x, y = success_axis(association, limit), Axis(lowest, 1.0, 264, 28)
    places = Counter(
        (round(x.at(p)), round(y.at(s))) for p, s in zip(association.pdtp, association.success, strict=True)
    )
    # One path does not darken where it crosses itself; a few, drawn over each other, show where dots pile up.
    layers = [
        "".join(f"M{across} {up}h0" for (across, up), n in places.items() if n > layer) for layer in range(_LAYERS)
    ]
    label = "binned PDTP in nats" + (f" (log scale; below {short(x.low)} at the edge)" if x.is_log else "")
    return Markup(
        '<svg class="plot" viewBox="0 0 480 312" role="img" aria-labelledby="{key}-t {key}-d">'
        '<title id="{key}-t">{title}</title><desc id="{key}-d">{desc}</desc>{frame}'
        '<path class="guess" d="M{left} {half}H{right}"/>'
        "{dots}{limit}{guessing}</svg>"
    ).format(
        key=key,
        title=f"PDTP with binned probabilities and the success of the attack “{association.attack}”",
        desc=(
            f"{counted(len(association.pdtp), 'dot')}, one for each record shown. Guessing succeeds in half of the "
            f"cases. The correlation is {value_and_interval(association.correlation, 2)}."
        ),
        frame=_frame(x, y, label, "success of the attack"),
        left=_c(x.start),
        right=_c(x.end),
        half=_c(y.at(0.5)),
        guessing=_note(x.end, y.at(0.5) + 14, "end", "chance level"),
        dots=Markup("").join(Markup('<path class="dots" d="{}"/>').format(layer) for layer in layers if layer),
        limit=_limit_line(limit, x, y, with_factor=False),
    )


@dataclass(frozen=True)
class CrossTable:
    """How many dots of a scatter plot lie in which field.

    Args:
        columns: bands of success, in words.
        rows: bands of PDTP in words, each with one count for each column.
    """

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


def _frame(x: Axis, y: Axis, x_label: str, y_label: str, *, whole: bool = False) -> Markup:
    """Grid lines, tick labels and axis labels."""
    across, up = x.ticks(), y.ticks(5)
    if whole:
        up = tuple(tick for tick in up if tick == int(tick))
    fine = [f"M{_c(x.at(t))} {_c(y.end)}V{_c(y.start)}" for t in x.minor_ticks()]
    fine += [f"M{_c(x.start)} {_c(y.at(t))}H{_c(x.end)}" for t in y.minor_ticks() if not whole]
    coarse = [f"M{_c(x.at(t))} {_c(y.start)}v4" for t in across] if not x.is_log else []
    coarse += [f"M{_c(x.at(t))} {_c(y.end)}V{_c(y.start)}" for t in across] if x.is_log else []
    coarse += [f"M{_c(x.start)} {_c(y.at(t))}H{_c(x.end)}" for t in up]
    coarse.append(f"M{_c(x.start)} {_c(y.start)}H{_c(x.end)}")
    return Markup(
        '<path class="fine" d="{}"/><path class="grid" d="{}"/><g class="up">{}</g><g class="middle">{}'
        '<text x="{}" y="{}">{}</text></g><text y="13">{}</text>'
    ).format(
        "".join(fine),
        "".join(coarse),
        Markup("").join(_text(x.start - 7, y.at(t) + 4, short(t)) for t in up),
        Markup("").join(_text(x.at(t), y.start + 17, short(t)) for t in across),
        _c((x.start + x.end) / 2),
        _c(y.start + 40),
        x_label,
        y_label,
    )


def _text(across: float, up: float, said: str) -> Markup:
    return Markup('<text x="{}" y="{}">{}</text>').format(round(across), round(up), said)


def _letter(i: int, across: float, up: float) -> Markup:
    return Markup('<g class="letter s{}"><circle cx="{}" cy="{}" r="8"/>{}</g>').format(
        i % N_COLOURS, round(across), round(up), _text(across, up + 4, letter(i))
    )


def _bar(left: float, right: float, top: float, bottom: float) -> str:
    """A bar as path data, with a hair of space to its neighbour."""
    return f"M{_c(left + 0.5)} {_c(bottom)}V{_c(top)}H{_c(max(left + 1, right - 0.5))}V{_c(bottom)}z"


def _spoken(value: float) -> str:
    return "infinite" if math.isinf(value) else number(value, 2)


def _verdict_class(verdict: Verdict) -> str:
    """The class of the style sheet for a verdict."""
    return verdict.value.replace(" ", "-")


def verdict_classes() -> Iterable[tuple[Verdict, str]]:
    """Every verdict with its class of the style sheet."""
    return ((verdict, _verdict_class(verdict)) for verdict in Verdict)


def _c(value: float) -> str:
    """A coordinate with one decimal at most.

    >>> _c(12.04), _c(-0.01), _c(7.25)
    ('12', '0', '7.2')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
