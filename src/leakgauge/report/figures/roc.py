"""ROC curves on logarithmic axes, and what is read off them."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

from markupsafe import Markup

from leakgauge.auditing import (
    MembershipAttackResult,
    RocCurve,
)
from leakgauge.drawing.axes import Axis, frame
from leakgauge.drawing.marks import N_COLOURS, joined, line_look, path, picture, text
from leakgauge.report.words import number, short

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
