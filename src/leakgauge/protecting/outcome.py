"""What became of a model under each defence: frozen values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leakgauge.auditing import AuditDocument, AuditResult, ReleaseRule, Verdict
from leakgauge.auditing.shown import Reported
from leakgauge.defences import Defence
from leakgauge.escaping import one_line
from leakgauge.statistics import Estimate

if TYPE_CHECKING:
    from leakgauge.report.plots import ProtectionPlots

BEST_FIRST = (Verdict.PASSES, Verdict.CANNOT_TELL, Verdict.FAILS)

COST_PLACES = 9
"""Decimals in which costs are compared: what differs further on is rounding."""


def of_limits(audit: AuditDocument) -> Estimate | None:
    """The measure that decides, as a multiple of its limit: 0 where the model reveals nothing, 1 at the limit.

    The largest of all that the rule limits, end by end: a model fails where the lower end is above 1, and passes only
    where the upper one is not. A measure with a lower bound alone counts by that. What passes counts at most as its
    limit, and has no upper end where none is judged (the tail odds).

    Returns:
        The largest; its upper end is infinite where something could not be measured. ``None`` where nothing was.
    """
    known = [(finding, finding.estimate) for finding in audit.findings if finding.estimate is not None]
    if not known:
        return None
    multiples = []
    for finding, estimate in known:
        bounded = math.isfinite(estimate.high)
        ends = [estimate.low, estimate.value if bounded else estimate.low, estimate.high]
        if finding.verdict is Verdict.PASSES:
            ends = [min(end, finding.threshold) for end in (*ends[:2], estimate.high if bounded else estimate.low)]
        room = finding.threshold - finding.baseline
        # Where nothing may be there at all, one thing is one more than allowed.
        multiples.append([max(0.0, (end - finding.baseline) / room if room > 0 else 1 + end) for end in ends])
    low, value, high = (max(ends) for ends in zip(*multiples, strict=True))
    if len(known) < len(audit.findings):
        high = math.inf
    return Estimate(value, low, high, known[0][1].confidence, "largest measure over its limit", known[0][1].n)


@dataclass(frozen=True, repr=False)
class Tried:
    """One defence and what became of the model.

    Args:
        defence: what was done.
        result: the audit of the defended model; its intervals hold together over all defences tried.
        error: on the holdout, lower is better: the share of records classified wrongly, or the mean squared error.
        more_error: how much larger that is than without a defence, record by record; below 0 it is smaller.
        log_loss: on the holdout in nats per record, see :func:`leakgauge.protecting.cost.log_losses`; ``None`` for a
            regressor.
        calibration: expected calibration error on the holdout; ``None`` where no probabilities are released.
        cost: what defences are compared by: how much larger the log loss is than without a defence, record by record,
            so that lost probabilities count; where the model answers labels or numbers without a defence, as
            ``more_error``.
    """

    defence: Defence
    result: AuditResult
    error: Estimate
    more_error: Estimate
    log_loss: Estimate | None
    calibration: float | None
    cost: Estimate

    def __repr__(self) -> str:
        return f"<Tried: {self.defence.name}, {self.verdict}>"

    @property
    def verdict(self) -> Verdict:
        """Whether the defended model passes the release rule."""
        return self.result.verdict

    @property
    def risk(self) -> Estimate | None:
        """The largest advantage of all membership attacks, whichever way they point; ``None`` where there was none.

        The lower ends hold for all attacks together, and so does the largest of them. The attack whose advantage is
        the largest is below its own upper end, and so below the largest of these.
        """
        attacks = self.result.attacks
        if not attacks:
            return None
        gained = [attack.advantage.magnitude for attack in attacks]
        value, high = (max(getattr(one, end) for one in gained) for end in ("value", "high"))
        low = min(value, max(attack.together.magnitude.low for attack in attacks))
        return Estimate(value, low, high, self.error.confidence, "largest advantage", gained[0].n)


@dataclass(frozen=True)
class Refused:
    """A defence that could not be tried.

    Args:
        title: what it does.
        error: class of the error.
        reason: why not, in our own words.
    """

    title: str
    error: str
    reason: str


@dataclass(frozen=True, repr=False)
class Protection(Reported):
    """The defences tried on one model, the undefended one first.

    Args:
        model: its name.
        tried: those that could be applied, in the order given.
        refused: those that could not, by name.
        rule: the release rule, as asked.
        confidence: what each defence was audited at, so that the rule's confidence holds for all of them together.
    """

    model: str
    tried: tuple[Tried, ...]
    refused: dict[str, Refused]
    rule: ReleaseRule
    confidence: float

    @property
    def headline(self) -> str:
        """The best verdict, the model, and the cheapest defence that passes."""
        best = "" if self.cheapest is None else f", cheapest that passes: {self.cheapest.defence.name}"
        return f"{self.verdict}, {one_line(self.model)}, {len(self.tried) - 1:,} defences{best}"

    @property
    def plot(self) -> ProtectionPlots:
        """Pictures of the result, drawn by matplotlib: ``protection.plot.frontier()``.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        from leakgauge.report.plots import ProtectionPlots

        return ProtectionPlots(self)

    @property
    def undefended(self) -> Tried:
        """What the others are held against."""
        return self.tried[0]

    @property
    def verdict(self) -> Verdict:
        """The best that any of them reached."""
        return min((one.verdict for one in self.tried), key=BEST_FIRST.index)

    @property
    def cheapest(self) -> Tried | None:
        """Of those that pass the release rule the one that costs least, the first of equals; ``None`` if none does."""
        passing = [one for one in self.tried if one.verdict is Verdict.PASSES]
        return min(passing, key=lambda one: round(one.cost.value, COST_PLACES), default=None)

    @property
    def frontier(self) -> tuple[Tried, ...]:
        """Those that no other beats in the measure that decides and in cost, lowest first: a line to draw, no claim.

        Two whose intervals overlap may well be the other way round.
        """
        known = [
            (multiple.value, round(one.cost.value, COST_PLACES), one)
            for one in self.tried
            if (multiple := of_limits(one.result)) is not None
        ]
        ordered = sorted(known, key=lambda each: each[:2])
        best, found = np.inf, []
        for _, cost, one in ordered:
            if cost < best:
                best = cost
                found.append(one)
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """What ``protection.json`` holds, as plain values; an infinite number is text."""
        import json

        from leakgauge.protecting.document import ProtectionDocument, dump

        found: dict[str, Any] = json.loads(dump(ProtectionDocument.of(self)))
        return found
