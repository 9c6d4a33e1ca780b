"""Intervals against their limits, and the signs of verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup

from leakgauge.auditing import (
    Finding,
    Verdict,
)
from leakgauge.drawing.axes import Axis
from leakgauge.drawing.marks import joined, path
from leakgauge.report.words import places_for, short, unmeasured, value_and_interval
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
    limit = max((finding.threshold for finding in findings), default=1.0) or 1.0  # one thing, where none may be there
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
    limit, said, mark = round(axis.at(finding.threshold)), unmeasured(finding), Markup("")
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


def digits(values: Iterable[float]) -> list[float | str]:
    """Four significant digits each; JSON has no infinity, so that is written as in ``result.json``."""
    return [
        float(f"{value:.4g}") if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
        for value in values
    ]
