"""The picture of risk against cost: every defence a point, and the line of those that no other beats.

A pure function from a document to markup, drawn with the helpers and the style sheet of the report's other figures. A
verdict is told by shape and sign as well as by colour. What was not measured is never drawn as if it were 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeAlias

from markupsafe import Markup

from leakgauge.auditing import Verdict
from leakgauge.protecting import ProtectionDocument, TriedDocument
from leakgauge.report import figures
from leakgauge.report.figures import Axis
from leakgauge.report.page import _source
from leakgauge.report.words import counted, listing, short, value_and_interval
from leakgauge.statistics import Estimate
from leakgauge.statistics.numerals import MINUS

WIDTH, HEIGHT = 720.0, 470.0

BEST = ", cheapest that passes"
"""What stands behind the name of the chosen defence."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 700.0, 30.0, 386.0
_STRIP = 34.0
"""Height of the strip above the axes, for what has no measured risk."""

_SIGN = 8.0
"""Half the size of a verdict's sign."""

_RING = 13.0
"""Radius of the ring around the chosen sign."""

_LETTER, _LINE = 6.5, 15.0
"""Width of a letter and height of a line of a label, no less than in any usual font."""

_HIDES = 1e4
"""The price of hiding something: nothing else comes near it."""

_ANGLES = (0.0, 180.0, 270.0, 90.0, 315.0, 225.0, 45.0, 135.0, 292.5, 247.5, 337.5, 22.5, 202.5, 157.5, 67.5, 112.5)
"""Directions in which a label may stand, the best first; 270 is upwards."""

_DISTANCES = (12.0, 19.0, 28.0, 38.0, 50.0, 64.0, 80.0, 98.0, 118.0)


@dataclass(frozen=True)
class Box:
    """A rectangle of the picture, from its upper left to its lower right corner."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """The area that both cover."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, across) * max(0.0, down)

    def within(self, other: Box) -> bool:
        """Whether the other covers all of it."""
        return (
            self.left >= other.left
            and self.top >= other.top
            and self.right <= other.right
            and self.bottom <= other.bottom
        )

    def nearest(self, point: tuple[float, float]) -> tuple[float, float]:
        """The place in it that is nearest to a point."""
        return min(max(point[0], self.left), self.right), min(max(point[1], self.top), self.bottom)


@dataclass(frozen=True)
class Label:
    """Where the name of a point stands.

    Args:
        text: the name.
        x: of the end or the middle of the text that its anchor names.
        y: of the base line.
        anchor: ``start``, ``middle`` or ``end``.
        box: what the text covers.
        distance: from the point; from 20 on a thin line leads to it.
    """

    text: str
    x: float
    y: float
    anchor: str
    box: Box
    distance: float


def frontier_plot(document: ProtectionDocument, key: str) -> Markup:
    """Risk against cost, with intervals, the limit of the release rule, the frontier, and the cheapest that passes.

    Args:
        document: the defences that were tried.
        key: distinguishes the ids of this picture from all others on the page.
    """
    measured = [one for one in document.tried if one.risk is not None]
    x, y = _axes(document, measured)
    places = {one.name: _place(one, x, y) for one in document.tried}
    area = Box(x.start + 2, y.end - _strip(document) + 2, x.end - 2, y.start - 2)
    names = {name: label_of(name) + (BEST if name == document.cheapest else "") for name in places}
    corners = [places[name] for name in document.frontier]
    labels = place_labels(names, places, area, _kept_free(document, measured, corners, x, y))
    return Markup(
        '<svg class="frontier" viewBox="0 0 {width} {height}" role="img" aria-labelledby="{key}-t {key}-d">'
        '<title id="{key}-t">{title}</title><desc id="{key}-d">{desc}</desc>'
        "{frame}{unmeasured}{no_cost}{limit}{crosses}{line}{leaders}{ring}{signs}{labels}{better}{legend}</svg>"
    ).format(
        width=figures._c(WIDTH),
        height=figures._c(HEIGHT),
        key=key,
        title=f"Risk against cost of {counted(len(document.tried) - 1, 'defence')} of {document.model}",
        desc=describe(document),
        frame=figures._frame(x, y, _cost_label(document), "largest membership advantage (0 is chance level)"),
        unmeasured=_unmeasured(document, x, y),
        no_cost=_no_cost(x, y),
        limit=_limit(document, corners, x, y),
        crosses=_joined(_cross(one, x, y) for one in measured),
        line=_staircase(corners),
        leaders=_joined(_leader(places[name], label) for name, label in labels.items()),
        ring=_ring(None if document.cheapest is None else places[document.cheapest]),
        signs=_joined(_sign(one.verdict, *places[one.name]) for one in document.tried),
        labels=_joined(_label(label, chosen=name == document.cheapest) for name, label in labels.items()),
        better=_better(x, y),
        legend=_legend(document),
    )


def frontier_svg(document: ProtectionDocument) -> str:
    """The picture as a file of its own, with a title; it brings its style along and follows light and dark.

    The same document gives the same bytes.

    Args:
        document: the defences that were tried.
    """
    what = document.undefended.audit.description
    n = counted(len(document.tried) - 1, "defence")
    records = counted(what.n_train, "training record")
    return str(
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" class="picture" width="{width}" height="{height}" '
            'viewBox="0 0 {width} {height}"><style>{style}</style>{signs}'
            '<rect class="paper" width="100%" height="100%" rx="6"/>'
            '<text class="heading" x="16" y="28">{title}</text><text x="16" y="47">{subtitle}</text>'
            '<g transform="translate(8 52)">{plot}</g></svg>\n'
        ).format(
            width=figures._c(WIDTH + 16),
            height=figures._c(HEIGHT + 56),
            style=Markup(_source("style.css") + _source("frontier.css")),
            signs=figures.icons(),
            title=f"{document.model}: risk against cost of {n}",
            subtitle=f"{records}; every attacker knows the defence. Lower left is better.",
            plot=frontier_plot(document, "frontier"),
        )
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
        + ("advantage not measured" if one.risk is None else f"advantage {value_and_interval(one.risk)}")
        + f", cost {value_and_interval(one.cost)}"
        for one in document.tried
    )
    limit = document.rule.advantage
    said = "" if limit is None else f" The limit on the advantage is {short(limit)}."
    best = "None is shown to pass the release rule."
    if document.cheapest is not None:
        best = f"The cheapest that passes the release rule is {label_of(document.cheapest)}."
    line = f" On the frontier: {listing(map(label_of, document.frontier))}." if document.frontier else ""
    return f"Lower left is better. {points}.{said}{line} {best}"


def _cost_label(document: ProtectionDocument) -> str:
    if document.undefended.audit.description.answers == "values":
        return "cost: how much larger the mean squared error on the holdout is than without a defence"
    if document.undefended.calibration is None:
        return "cost: more errors on the holdout than without a defence (share of its records)"
    return "cost: how much larger the log loss on the holdout is than without a defence (nats)"


def _strip(document: ProtectionDocument) -> float:
    return _STRIP if any(one.risk is None for one in document.tried) else 0.0


def _axes(document: ProtectionDocument, measured: Sequence[TriedDocument]) -> tuple[Axis, Axis]:
    """All intervals fit in, and so do the limit, no cost, and no advantage."""
    risks = [one.risk for one in measured if one.risk is not None]
    limit = document.rule.advantage or 0.1
    low, high = _span([one.cost for one in document.tried], [0.0])
    bottom, top = _span(risks, [0.0, 1.3 * limit])
    low -= 0.05 * (high - low)  # names stand best to the left of where most points are
    return Axis(low, high, _LEFT, _RIGHT), Axis(bottom, top, _BOTTOM, _TOP + _strip(document))


def _span(estimates: Sequence[Estimate], marks: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis; an infinite end of an interval does not stretch it."""
    ends = [end for one in estimates for end in (one.low, one.value, one.high) if math.isfinite(end)]
    low, high = min([*ends, *marks]), max([*ends, *marks])
    room = 0.06 * (high - low) or 0.01
    return low - room, high + room


def _place(one: TriedDocument, x: Axis, y: Axis) -> tuple[float, float]:
    """The point of a defence; in the strip above the axes where its risk was not measured."""
    return x.at(one.cost.value), y.end - _STRIP / 2 if one.risk is None else y.at(one.risk.value)


def place_labels(
    names: dict[str, str],
    places: dict[str, tuple[float, float]],
    area: Box,
    avoid: Sequence[Box] = (),
) -> dict[str, Label]:
    """Names beside their points that cover neither each other nor a point, as long as there is room.

    Each takes the place that costs least: near its point, not nearer to another, and not across what is better left
    free. Who chooses first matters; so several orders are tried, and within each all choose again.

    Args:
        names: what to write at each point, by key.
        places: the points, by the same keys.
        area: where labels may stand.
        avoid: what they had better not cover.
    """
    signs = [_around(*place, _SIGN + 2) for place in places.values()]
    options = {}
    for name, said in names.items():
        own = places[name]
        others = [place for place in places.values() if math.dist(place, own) > 3]
        options[name] = [
            (_burden(label, area, signs, avoid) + _ambiguity(label, own, others), label)
            for label in _candidates(said, *own)
        ]
    across, down = sorted(names, key=lambda name: places[name]), sorted(names, key=lambda name: places[name][::-1])
    tried = [_chosen(order, options) for order in (across, across[::-1], down, down[::-1])]
    best = min(tried, key=lambda chosen: _total(list(chosen.values())))
    return {name: best[name][1] for name in names}


Option: TypeAlias = tuple[float, Label]
"""A place for a label, with what speaks against it whatever the others do."""


def _chosen(order: Sequence[str], options: Mapping[str, Sequence[Option]]) -> dict[str, Option]:
    """One after the other takes the best place that is left; then each again, now that it knows where all are."""
    found: dict[str, Option] = {}
    for name in [*order, *order]:
        taken = [label.box for other, (_, label) in found.items() if other != name]
        found[name] = min(options[name], key=partial(_cost, taken=taken))
    return found


def _cost(option: Option, taken: Sequence[Box]) -> float:
    burden, label = option
    hides = sum(map(label.box.overlap, taken))
    return burden + _HIDES * (hides > 0) + hides


def _total(chosen: Sequence[Option]) -> float:
    boxes = [label.box for _, label in chosen]
    return sum(_cost(option, boxes[:i]) for i, option in enumerate(chosen))


def _candidates(text: str, x: float, y: float) -> list[Label]:
    return [_at(text, x, y, angle, distance) for distance in _DISTANCES for angle in _ANGLES]


def _at(text: str, x: float, y: float, angle: float, distance: float) -> Label:
    across, down = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    anchor = "start" if across > 0.3 else "end" if across < -0.3 else "middle"
    left = x + across * distance
    width = _LETTER * len(text)
    start = left - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    middle = y + down * (distance + (_LINE / 2 - 3 if anchor == "middle" else 0))
    box = Box(start, middle - _LINE / 2, start + width, middle + _LINE / 2)
    return Label(text, left, middle + 4, anchor, box, distance)


def _burden(label: Label, area: Box, signs: Sequence[Box], avoid: Sequence[Box]) -> float:
    """What speaks against a place: above all that it hides a sign, then how far off and how untidy it is."""
    hides = sum(map(label.box.overlap, signs))
    crossed = sum(map(label.box.overlap, avoid))
    return _HIDES * (hides > 0 or not label.box.within(area)) + hides + label.distance + 0.25 * crossed


def _ambiguity(label: Label, own: tuple[float, float], others: Sequence[tuple[float, float]]) -> float:
    """How easily a label is taken for that of another point: one that is as near, or that its line passes."""
    end = label.box.nearest(own)
    as_near = sum(math.dist(other, label.box.nearest(other)) < math.dist(own, end) + 6 for other in others)
    passed = sum(_distance(other, own, end) < _SIGN for other in others)
    return 24.0 * as_near + 24.0 * passed


def _distance(point: tuple[float, float], start: tuple[float, float], end: tuple[float, float]) -> float:
    """From a point to a piece of a line."""
    along = (end[0] - start[0], end[1] - start[1])
    length = along[0] ** 2 + along[1] ** 2
    share = (point[0] - start[0]) * along[0] + (point[1] - start[1]) * along[1]
    share = min(max(share / length, 0.0), 1.0) if length else 0.0
    return math.dist(point, (start[0] + share * along[0], start[1] + share * along[1]))


def _around(x: float, y: float, reach: float) -> Box:
    return Box(x - reach, y - reach, x + reach, y + reach)


def _kept_free(
    document: ProtectionDocument,
    measured: Sequence[TriedDocument],
    corners: Sequence[tuple[float, float]],
    x: Axis,
    y: Axis,
) -> list[Box]:
    """What labels had better not cover: intervals, the frontier, the limit with its name, the ring, and the arrow."""
    found = [Box(x.start, y.start - 44, x.start + 84, y.start)]
    if document.cheapest is not None:
        found.append(_around(*_place(document.of_name(document.cheapest), x, y), _RING + 2))
    for one in measured:
        assert one.risk is not None
        across, up = x.at(one.cost.value), y.at(one.risk.value)
        found.append(Box(across - 1, y.at(one.risk.high), across + 1, y.at(one.risk.low)))
        found.append(Box(x.at(one.cost.low), up - 1, x.at(one.cost.high), up + 1))
    for (across, up), (left, higher) in pairwise(corners):
        found += [Box(across - 1, higher, across + 1, up), Box(left, higher - 1, across, higher + 1)]
    if document.rule.advantage is not None:
        name = _limit_box(document.rule.advantage, corners, x, y)
        found.append(Box(x.start, name.bottom - 1, x.end, name.bottom + 1))
        found.append(Box(name.left - 8, name.top - 4, name.right + 8, name.bottom))
    return found


def _cross(one: TriedDocument, x: Axis, y: Axis) -> Markup:
    """Both intervals; where nothing was done the cost is 0 and has none."""
    assert one.risk is not None
    across, up = figures._c(x.at(one.cost.value)), figures._c(y.at(one.risk.value))
    ends = (x.at(one.cost.low), x.at(one.cost.high), y.at(one.risk.low), y.at(one.risk.high))
    left, right, low, high = map(figures._c, ends)
    level = "" if one.name == "unchanged" else f"M{left} {up}H{right}"
    return Markup('<path class="cross {}" d="{}M{} {}V{}"/>').format(
        figures._verdict_class(one.verdict), level, across, low, high
    )


def _staircase(corners: Sequence[tuple[float, float]]) -> Markup:
    """The frontier from the lowest risk on: between two defences there is no third, so it runs in steps."""
    if not corners:
        return Markup("")
    (across, up), *others = corners
    steps = "".join(f"V{figures._c(up)}H{figures._c(across)}" for across, up in others)
    return Markup('<path class="edge" d="M{} {}{}"/>').format(figures._c(across), figures._c(up), steps)


def _no_cost(x: Axis, y: Axis) -> Markup:
    at = figures._c(x.at(0.0))
    return Markup('<path class="guess" d="M{} {}V{}"/>').format(at, figures._c(y.end), figures._c(y.start))


def _limit(document: ProtectionDocument, corners: Sequence[tuple[float, float]], x: Axis, y: Axis) -> Markup:
    limit = document.rule.advantage
    if limit is None:
        return Markup("")
    up, box = y.at(limit), _limit_box(limit, corners, x, y)
    line = Markup('<path class="limit" d="M{} {}H{}"/>').format(*map(figures._c, (x.start, up, x.end)))
    on_the_right = box.right == x.end
    return line + figures._note(
        box.right if on_the_right else box.left, up - 6, "end" if on_the_right else "start", _limit_name(limit)
    )


def _limit_box(limit: float, corners: Sequence[tuple[float, float]], x: Axis, y: Axis) -> Box:
    """The name of the limit: above its right end, or above its left where the frontier comes down there."""
    up, width = y.at(limit), _LETTER * len(_limit_name(limit))
    crossing = next((across for (across, low), (_, high) in pairwise(corners) if high < up <= low + 18), x.start)
    left = x.start + 6 if crossing > x.end - width else x.end - width
    return Box(left, up - 18, left + width, up)


def _limit_name(limit: float) -> str:
    return f"release rule: advantage at most {short(limit)}"


def _unmeasured(document: ProtectionDocument, x: Axis, y: Axis) -> Markup:
    if not _strip(document):
        return Markup("")
    return Markup('<rect class="noise" x="{}" y="{}" width="{}" height="{}"/>').format(
        *map(figures._c, (x.start, y.end - _STRIP, x.end - x.start, _STRIP - 4))
    ) + figures._note(x.end - 6, y.end - _STRIP / 2 + 2, "end", "advantage not measured")


def _sign(verdict: Verdict, across: float, up: float) -> Markup:
    return Markup('<use class="icon {0}" href="#{0}" x="{1}" y="{2}" width="{3}" height="{3}"/>').format(
        figures._verdict_class(verdict), figures._c(across - _SIGN), figures._c(up - _SIGN), figures._c(2 * _SIGN)
    )


def _ring(place: tuple[float, float] | None) -> Markup:
    if place is None:
        return Markup("")
    return Markup('<circle class="chosen" cx="{}" cy="{}" r="{}"/>').format(*map(figures._c, (*place, _RING)))


def _leader(place: tuple[float, float], label: Label) -> Markup:
    if label.distance < 20:
        return Markup("")
    nearest = label.box.nearest(place)
    return Markup('<path class="leader" d="M{} {}L{} {}"/>').format(*map(figures._c, (*place, *nearest)))


def _label(label: Label, *, chosen: bool) -> Markup:
    return Markup('<text class="note{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(
        " best" if chosen else "", round(label.x), round(label.y), label.anchor, label.text
    )


def _better(x: Axis, y: Axis) -> Markup:
    left, down = x.start + 12, y.start - 12
    arrow = Markup('<path class="better" d="M{0} {1}l-14 14m0 -9v9h9"/>').format(
        *map(figures._c, (left + 14, down - 14))
    )
    return arrow + figures._note(left + 20, down - 12, "start", "better")


def _legend(document: ProtectionDocument) -> Markup:
    """One row below the axes."""
    across, up = _LEFT, HEIGHT - 16
    drawn = []
    for verdict in (Verdict.PASSES, Verdict.CANNOT_TELL, Verdict.FAILS):
        drawn += [_sign(verdict, across + _SIGN, up - 4), figures._text(across + 22, up, verdict.value)]
        across += 22 + _LETTER * len(verdict.value) + 20
    drawn.append(Markup('<path class="cross" d="M{} {}h24m-12 -8v16"/>').format(figures._c(across), figures._c(up - 4)))
    drawn.append(figures._text(across + 30, up, "simultaneous confidence intervals"))
    across += 30 + _LETTER * 28 + 14
    drawn.append(Markup('<path class="edge" d="M{} {}h24"/>').format(figures._c(across), figures._c(up - 4)))
    drawn.append(figures._text(across + 30, up, "frontier"))
    return Markup("<g>{}</g>").format(_joined(drawn))


def _joined(parts: Iterable[Markup]) -> Markup:
    return Markup("").join(parts)
