"""What an audit states, and the three answers it can give."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from leakgauge.escaping import one_line
from leakgauge.statistics import Estimate


class Verdict(StrEnum):
    """The three answers. Not knowing is an answer of its own and never counts as passing."""

    PASSES = "passes"
    FAILS = "fails"
    CANNOT_TELL = "cannot tell"

    @property
    def exit_code(self) -> int:
        """0 passes, 1 fails, 3 cannot tell."""
        return {Verdict.PASSES: 0, Verdict.FAILS: 1, Verdict.CANNOT_TELL: 3}[self]


@dataclass(frozen=True)
class Finding:
    """One measure held against its threshold.

    Args:
        question: the question it belongs to, such as ``membership``.
        measure: what was measured, in words.
        estimate: the value with its interval; ``None`` where nothing could be measured.
        baseline: the value of a model that gives nothing away.
        threshold: the largest value that passes.
        verdict: the answer.
        reason: one sentence that says why.
        remedy: what would settle it, where the verdict is *cannot tell*; what to try, where it fails.
    """

    question: str
    measure: str
    estimate: Estimate | None
    baseline: float
    threshold: float
    verdict: Verdict
    reason: str
    remedy: str

    @property
    def unit(self) -> float:
        """How far the limit lies above the value of a model that reveals nothing: what unlike measures share.

        One thing, where nothing may be there at all.
        """
        return 1.0 if self.threshold == self.baseline == 0 else max(self.threshold - self.baseline, 1e-9)

    def __repr__(self) -> str:
        value = "not measured" if self.estimate is None else self.estimate
        return f"<Finding: {self.verdict}, {one_line(self.measure)}, {value}, limit {self.threshold:g}>"


def judge(estimate: Estimate, threshold: float) -> Verdict:
    """The three-way answer: the whole interval must lie on one side of the threshold.

    >>> judge(Estimate(0.3, 0.2, 0.4, 0.95, "example", 100), threshold=0.1).value
    'fails'
    >>> judge(Estimate(0.05, 0.0, 0.2, 0.95, "example", 100), threshold=0.1).value
    'cannot tell'
    """
    if estimate.low > threshold:
        return Verdict.FAILS
    return Verdict.PASSES if estimate.high <= threshold else Verdict.CANNOT_TELL


def overall(verdicts: list[Verdict]) -> Verdict:
    """The worst of the answers; without any there is nothing that could pass."""
    if Verdict.FAILS in verdicts:
        return Verdict.FAILS
    if not verdicts or Verdict.CANNOT_TELL in verdicts:
        return Verdict.CANNOT_TELL
    return Verdict.PASSES
