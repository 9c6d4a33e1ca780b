"""Attack accuracy of property inference by the share of poisoned records."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from leakgauge.auditing import (
    InferredProperty,
    PropertyGame,
)
from leakgauge.drawing.axes import Axis, frame
from leakgauge.drawing.marks import joined, line_look, note, path, picture, shape
from leakgauge.report.words import game_title, value_and_interval

_LINES = ("attack accuracy", "precision", "recall")


def power_plot(found: InferredProperty, key: str) -> Markup:
    """How often the right frequency is named, and what it costs in precision and recall, by the poisoned share.

    A line joins the games in which labels are asked for; a ring marks the one for the confidences of a clean model.
    """
    games, lines = found.games, _lines(found.games)
    lowest = min([0.4, *(game.accuracy.low for game in games), *(up for line in lines.values() for _, up in line)])
    most = max([0.01, *(game.poisoned for game in games)])
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
    """By name, poisoned shares and values in the games in which labels are asked for; no line without a point."""
    by_labels = [game for game in games if game.answers == "labels"]
    values = zip(*((game.accuracy, game.precision, game.recall) for game in by_labels), strict=True)
    lines = {
        name: [(game.poisoned, one.value) for game, one in zip(by_labels, line, strict=True) if one is not None]
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
    across, won = x.at(game.poisoned) - aside, game.accuracy
    return joined(
        path("mark", "M", across - 4, y.at(won.low), "h8m-4 0V", y.at(won.high), "m-4 0h8"),
        shape("circle", kind, cx=across, cy=y.at(won.value), r=4.5),
    )
