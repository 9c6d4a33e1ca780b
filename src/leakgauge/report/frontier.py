"""The picture of risk against cost: every defence a point, and the line of those that no other beats.

Risk is the measure that decides, as a multiple of its limit, so that the line of the limit separates what passes from
what fails, whichever measure that is.

A pure function from a document to markup, drawn with the helpers and the style sheet of the report's other figures. A
verdict is told by shape and sign as well as by colour. What was not measured is never drawn as if it were 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from markupsafe import Markup

from leakgauge.auditing import Verdict
from leakgauge.drawing.axes import Axis, frame
from leakgauge.drawing.labels import LETTER, SIGN, Box, Label, place_labels
from leakgauge.drawing.marks import coordinate, joined, note, path, picture, shape, standalone, text
from leakgauge.protecting import ProtectionDocument, TriedDocument
from leakgauge.report import figures
from leakgauge.report.page import _source
from leakgauge.report.words import counted, listing, value_and_interval
from leakgauge.statistics import Estimate
from leakgauge.statistics.numerals import MINUS


@dataclass(frozen=True)
class Sheet:
    """The room of a picture.

    Args:
        width: of all of it.
        height: likewise.
        left: where the axes begin.
        right: where they end.
        bottom: where they stand.
        is_narrow: for a telephone: short words, and a legend in two rows.
    """

    width: float
    height: float
    left: float
    right: float
    bottom: float
    is_narrow: bool = False


WIDE = Sheet(720.0, 470.0, 56.0, 700.0, 386.0)
NARROW = Sheet(360.0, 470.0, 56.0, 352.0, 366.0, is_narrow=True)

BEST = ", cheapest that passes"
"""What stands behind the name of the chosen defence."""

_TOP = 30.0
_STRIP = 34.0
"""Height of the strip above the axes, for what has no measured risk."""

MULTIPLE = "largest measure, as a multiple of its limit"
"""What is drawn upwards."""

LEAST, MOST = 0.05, 1000.0
"""Multiples of the limit at the ends of the axis; the upper one where nothing large is seen is smaller."""

_RING = 13.0
"""Radius of the ring around the chosen sign."""


def frontier_plot(document: ProtectionDocument, key: str, sheet: Sheet = WIDE) -> Markup:
    """Risk against cost, with intervals, the limit of the release rule, the frontier, and the cheapest that passes.

    Args:
        document: the defences that were tried.
        key: distinguishes the ids of this picture from all others on the page.
        sheet: how wide it is.
    """
    title = f"Risk against cost of {counted(len(document.tried) - 1, 'defence')} of {document.model}"
    look = "frontier narrow" if sheet.is_narrow else "frontier"
    return picture(look, (sheet.width, sheet.height), key, title, describe(document), _drawn(document, sheet))


def frontier_svg(document: ProtectionDocument) -> str:
    """The picture as a file of its own, with a title; it brings its style along and follows light and dark.

    The same document gives the same bytes.

    Args:
        document: the defences that were tried.
    """
    title = f"{document.model}: risk against cost of {counted(len(document.tried) - 1, 'defence')}"
    records = counted(document.undefended.audit.description.n_train, "training record")
    return standalone(
        (WIDE.width + 16, WIDE.height + 66),
        title,
        describe(document),
        Markup(_source("verdicts.svg")),
        text(16, 28, title, look="heading"),
        text(16, 47, f"{records}; every attacker knows the defence. Lower left is better."),
        Markup('<g class="frontier" transform="translate(8 62)">{}</g>').format(_drawn(document, WIDE)),
        more_style=_source("frontier.css"),
    )


def label_of(name: str) -> str:
    """What a defence is called beside its point: its short name in words.

    >>> label_of("earlier-stop-2"), label_of("noise-1e-05"), label_of("unchanged")
    ('earlier stop 2', 'noise 1e−05', 'no defence')
    """
    said = re.sub(r"(?<!\de)-", " ", name).replace("dp sgd", "DP-SGD").replace("e-", f"e{MINUS}")
    return "no defence" if name == "unchanged" else said


def describe(document: ProtectionDocument) -> str:
    """The picture in words, for those who do not see it."""
    points = "; ".join(
        f"{label_of(one.name)}: {one.verdict.value}, "
        + ("not measured" if one.of_limits is None else f"{value_and_interval(one.of_limits, 2)} of the limit")
        + f", cost {value_and_interval(one.cost)}"
        for one in document.tried
    )
    best = "None is shown to pass the release rule."
    if document.cheapest is not None:
        best = f"The cheapest that passes the release rule is {label_of(document.cheapest)}."
    line = f" On the frontier: {listing(map(label_of, document.frontier))}." if document.frontier else ""
    return f"Lower left is better. {points}. 1 is the limit.{line} {best}"


def _drawn(document: ProtectionDocument, sheet: Sheet) -> Markup:
    """All that stands in the picture."""
    x, y = _axes(document, sheet)
    places = {one.name: _place(one, x, y) for one in document.tried}
    best = "" if sheet.is_narrow else BEST
    names = {name: label_of(name) + (best if name == document.cheapest else "") for name in places}
    corners = [places[name] for name in document.frontier]
    limit, limit_boxes = _limit(corners, x, y)
    crosses = [_cross(one, one.of_limits, x, y) for one in document.tried if one.of_limits is not None]
    # What labels had better not cover: the arrow, the ring, intervals, the frontier, the limit with its name.
    avoid = [Box(x.start, y.start - 44, x.start + 84, y.start), *limit_boxes]
    avoid += [box for _, boxes in crosses for box in boxes]
    for (across, up), (left, higher) in pairwise(corners):
        avoid += [Box(across - 1, higher, across + 1, up), Box(left, higher - 1, across, higher + 1)]
    ring = Markup("")
    if document.cheapest is not None:
        across, up = places[document.cheapest]
        avoid.append(Box.around((across, up), _RING + 2))
        ring = shape("circle", "chosen", cx=across, cy=up, r=_RING)
    top = y.end - (_STRIP if _has_strip(document) else 0)
    labels = place_labels(names, places, Box(x.start + 2, top + 2, x.end - 2, y.start - 2), avoid)
    return joined(
        frame(x, y, _cost_label(document, sheet), MULTIPLE, top=13),
        _unmeasured(x, y, sheet) if _has_strip(document) else "",
        path("guess", "M", x.at(0.0), y.end, "V", y.start),
        limit,
        *(cross for cross, _ in crosses),
        _staircase(corners),
        *(_leader(places[name], label) for name, label in labels.items()),
        ring,
        *(_sign(one.verdict, *places[one.name]) for one in document.tried),
        *(
            text(one.x, one.y, one.text, anchor=one.anchor, look="note best" if name == document.cheapest else "note")
            for name, one in labels.items()
        ),
        path("better", "M", x.start + 26, y.start - 26, "l-14 14m0 -9v9h9"),
        note(x.start + 32, y.start - 24, "start", "better"),
        _legend(sheet),
    )


def _cost_label(document: ProtectionDocument, sheet: Sheet) -> str:
    if sheet.is_narrow:
        return "cost on the holdout (0 is no defence)"
    if document.undefended.audit.description.answers == "values":
        return "cost: how much larger the mean squared error on the holdout is than without a defence"
    if document.undefended.calibration is None:
        return "cost: more errors on the holdout than without a defence (share of its records)"
    return "cost: how much larger the log loss on the holdout is than without a defence (nats)"


def _has_strip(document: ProtectionDocument) -> bool:
    return any(one.of_limits is None for one in document.tried)


def _axes(document: ProtectionDocument, sheet: Sheet) -> tuple[Axis, Axis]:
    """All costs fit in with their intervals, and so does the limit; what lies beyond the ends is drawn at them."""
    risks = [one.of_limits for one in document.tried if one.of_limits is not None]
    costs = [one.cost for one in document.tried]
    x = Axis.around([0.0, *_ends(costs)], sheet.left, sheet.right, room=0.06)
    top = _TOP + (_STRIP if _has_strip(document) else 0)
    # Names stand best to the left of where most points are.
    # The values and the limit decide what is shown; ends of intervals beyond that lie at the edge.
    high = min(MOST, max([3.0, *(2 * one.value for one in risks)]))
    return replace(x, low=x.low - 0.05 * (x.high - x.low)), Axis(LEAST, high, sheet.bottom, top, is_log=True)


def _ends(estimates: Iterable[Estimate]) -> list[float]:
    return [end for one in estimates for end in (one.low, one.value, one.high)]


def _place(one: TriedDocument, x: Axis, y: Axis) -> tuple[float, float]:
    """The point of a defence; in the strip above the axes where its risk was not measured."""
    return x.at(one.cost.value), y.end - _STRIP / 2 if one.of_limits is None else y.at(one.of_limits.value)


def _cross(one: TriedDocument, risk: Estimate, x: Axis, y: Axis) -> tuple[Markup, list[Box]]:
    """Both intervals, and what they cover; where nothing was done the cost is 0 and has none."""
    across, up = x.at(one.cost.value), y.at(risk.value)
    left, right, low, high = x.at(one.cost.low), x.at(one.cost.high), y.at(risk.low), y.at(risk.high)
    level = () if one.name == "unchanged" else ("M", left, up, "H", right)
    drawn = path(f"cross {figures.verdict_class(one.verdict)}", *level, "M", across, low, "V", high)
    return drawn, [Box(across - 1, high, across + 1, low), Box(left, up - 1, right, up + 1)]


def _staircase(corners: Sequence[tuple[float, float]]) -> Markup:
    """The frontier from the lowest risk on: between two defences there is no third, so it runs in steps."""
    if not corners:
        return Markup("")
    steps = [part for across, up in corners[1:] for part in ("V", up, "H", across)]
    return path("edge", "M", *corners[0], *steps)


def _limit(corners: Sequence[tuple[float, float]], x: Axis, y: Axis) -> tuple[Markup, list[Box]]:
    """The limit and what it covers; its name stands above its right end, or its left where the frontier comes down."""
    said = "limit of the release rule"
    up, width = y.at(1.0), LETTER * len(said)
    crossing = next((across for (across, low), (_, high) in pairwise(corners) if high < up <= low + 18), x.start)
    on_the_left = crossing > x.end - width
    left = x.start + 6 if on_the_left else x.end - width
    name = note(left, up - 6, "start", said) if on_the_left else note(x.end, up - 6, "end", said)
    drawn = path("limit", "M", x.start, up, "H", x.end) + name
    return drawn, [Box(x.start, up - 1, x.end, up + 1), Box(left - 8, up - 22, left + width + 8, up)]


def _unmeasured(x: Axis, y: Axis, sheet: Sheet) -> Markup:
    """The strip; where there is no room for its words, the caption has them."""
    strip = shape("rect", "noise", x=x.start, y=y.end - _STRIP, width=x.end - x.start, height=_STRIP - 4)
    return strip if sheet.is_narrow else strip + note(x.end - 6, y.end - _STRIP / 2 + 2, "end", "not measured")


def _sign(verdict: Verdict, across: float, up: float) -> Markup:
    return Markup('<use class="icon {0}" href="#{0}" x="{1}" y="{2}" width="{3}" height="{3}"/>').format(
        figures.verdict_class(verdict), *map(coordinate, (across - SIGN, up - SIGN, 2 * SIGN))
    )


def _leader(place: tuple[float, float], label: Label) -> Markup:
    return path("leader", "M", *place, "L", *label.box.nearest(place)) if label.distance >= 20 else Markup("")


def _legend(sheet: Sheet) -> Markup:
    """Below the axes, in one row or two."""
    across, up = sheet.left, sheet.height - (36 if sheet.is_narrow else 16)
    drawn = []
    for verdict in (Verdict.PASSES, Verdict.CANNOT_TELL, Verdict.FAILS):
        drawn += [_sign(verdict, across + SIGN, up - 4), text(across + 22, up, verdict.value)]
        across += 22 + LETTER * len(verdict.value) + 20
    crosses = "intervals" if sheet.is_narrow else "simultaneous confidence intervals"
    if sheet.is_narrow:
        across, up = sheet.left, up + 22
    further = across + 30 + LETTER * len(crosses) + 14
    return joined(
        *drawn,
        path("cross", "M", across, up - 4, "h24m-12 -8v16"),
        text(across + 30, up, crosses),
        path("edge", "M", further, up - 4, "h24"),
        text(further + 30, up, "frontier"),
    )
