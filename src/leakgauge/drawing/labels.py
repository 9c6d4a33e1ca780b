"""Names beside the points of a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

SIGN = 8.0
"""Half the size of the sign at a point."""

LETTER, LINE = 6.5, 15.0
"""Width of a letter and height of a line of a label, no less than in any usual font."""

_HIDES = 1e4
"""The price of hiding something: nothing else comes near it."""

_ANGLES = (0.0, 180.0, 270.0, 90.0, 315.0, 225.0, 45.0, 135.0, 292.5, 247.5, 337.5, 22.5, 202.5, 157.5, 67.5, 112.5)
"""Directions in which a label may stand, the best first; 270 is upwards."""

_DISTANCES = (12.0, 19.0, 28.0, 38.0, 50.0, 64.0, 80.0, 98.0, 118.0)

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A rectangle of the picture, from its upper left to its lower right corner."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, point: Point, reach: float) -> Box:
        """The square that reaches so far to each side of a point."""
        x, y = point
        return cls(x - reach, y - reach, x + reach, y + reach)

    def overlap(self, other: Box) -> float:
        """The area that both cover."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, across) * max(0.0, down)

    def within(self, other: Box) -> bool:
        """Whether the other covers all of it."""
        wide = other.left <= self.left and self.right <= other.right
        return wide and other.top <= self.top and self.bottom <= other.bottom

    def nearest(self, point: Point) -> Point:
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


def place_labels(
    names: Mapping[str, str], places: Mapping[str, Point], area: Box, avoid: Sequence[Box] = ()
) -> dict[str, Label]:
    """Names beside their points that cover neither each other nor a point, as long as there is room.

    Each takes the place that costs least: near its point, not nearer to another, and not across what is better left
    free. Who chooses first matters; so several orders are tried.

    Args:
        names: what to write at each point, by key.
        places: the points, by the same keys.
        area: where labels may stand.
        avoid: what they had better not cover.
    """
    options = {name: _options(said, places[name], list(places.values()), area, avoid) for name, said in names.items()}
    across, down = sorted(names, key=lambda name: places[name]), sorted(names, key=lambda name: places[name][::-1])
    tried = [_chosen(order, options) for order in (across, across[::-1], down, down[::-1])]
    best = min(tried, key=lambda found: sum(cost for cost, _ in found.values()))
    return {name: best[name][1] for name in names}


Option: TypeAlias = tuple[float, Label]
"""A place for a label, with what speaks against it."""


def _chosen(order: Sequence[str], options: Mapping[str, Sequence[Option]]) -> dict[str, Option]:
    """One after the other takes the best place that is left; then each again, now that it knows where all are."""
    found: dict[str, Option] = {}
    for name in [*order, *order]:
        taken = [label.box for other, (_, label) in found.items() if other != name]
        costs = [burden + _hidden(label.box, taken) for burden, label in options[name]]
        found[name] = min(costs), options[name][costs.index(min(costs))][1]
    return found


def _options(text: str, own: Point, points: Sequence[Point], area: Box, avoid: Sequence[Box]) -> list[Option]:
    """Places for a label, with what speaks against each whatever the other labels do.

    Above all that it hides a sign, then how far off it is, what it crosses, and how easily it is taken for the label of
    another point: one that is as near, or that its line passes.
    """
    signs = [Box.around(point, SIGN + 2) for point in points]
    others = [point for point in points if math.dist(point, own) > 3]
    found = []
    for label in (_at(text, own, angle, distance) for distance in _DISTANCES for angle in _ANGLES):
        end = label.box.nearest(own)
        as_near = sum(math.dist(other, label.box.nearest(other)) < math.dist(own, end) + 6 for other in others)
        passed = sum(_distance(other, own, end) < SIGN for other in others)
        crossed = sum(map(label.box.overlap, avoid))
        outside = _HIDES * (not label.box.within(area))
        burden = _hidden(label.box, signs) + outside + label.distance + 0.25 * crossed + 24.0 * (as_near + passed)
        found.append((burden, label))
    return found


def _hidden(box: Box, others: Sequence[Box]) -> float:
    area = sum(map(box.overlap, others))
    return _HIDES * (area > 0) + area


def _at(text: str, point: Point, angle: float, distance: float) -> Label:
    across, down = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    anchor = "start" if across > 0.3 else "end" if across < -0.3 else "middle"
    left, width = point[0] + across * distance, LETTER * len(text)
    start = left - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    middle = point[1] + down * (distance + (LINE / 2 - 3 if anchor == "middle" else 0))
    box = Box(start, middle - LINE / 2, start + width, middle + LINE / 2)
    return Label(text, left, middle + 4, anchor, box, distance)


def _distance(point: Point, start: Point, end: Point) -> float:
    """From a point to a piece of a line."""
    along = (end[0] - start[0], end[1] - start[1])
    length = along[0] ** 2 + along[1] ** 2
    share = (point[0] - start[0]) * along[0] + (point[1] - start[1]) * along[1]
    share = min(max(share / length, 0.0), 1.0) if length else 0.0
    return math.dist(point, (start[0] + share * along[0], start[1] + share * along[1]))
