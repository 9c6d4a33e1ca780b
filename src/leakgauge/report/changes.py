"""Two finished audits compared, as lines of text."""

from __future__ import annotations

from leakgauge.auditing import Finding
from leakgauge.comparing import Change, ComparedFinding, RunComparison
from leakgauge.report.words import interval, number, places_for, value_and_interval
from leakgauge.statistics import Estimate

HEADLINES = {
    Change.NOT_WORSE: "Not worse",
    Change.WORSE: "Worse",
    Change.CANNOT_TELL: "Cannot tell whether it is worse",
}

MARKS = {Change.NOT_WORSE: "✓", Change.WORSE: "✗", Change.CANNOT_TELL: "?"}


def change_line(found: ComparedFinding) -> str:
    """One line for a measure: the answer, both values, and the interval of the difference."""
    places = places_for(found.limit)
    then, now = (_value(finding, places) for finding in (found.before, found.after))
    line = f"{f'{MARKS[found.change]} {found.change}':<13}  {found.model}: {found.measure}: {then} → {now}"
    return line if found.difference is None else f"{line}; change {_difference(found.difference, places)}"


def change_headline(found: RunComparison) -> str:
    """The answer in words, with the names of both audits."""
    return f"{HEADLINES[found.change]}: {found.after} compared with {found.before}"


def _value(finding: Finding | None, places: int) -> str:
    if finding is None or finding.estimate is None:
        return "not measured"
    return value_and_interval(finding.estimate, places)


def _difference(difference: Estimate, places: int) -> str:
    sign = "+" if difference.value > 0 else ""
    return f"{sign}{number(difference.value, places)} ({interval(difference, places)})"
