"""A claim of differential privacy that an audit was asked to test: what it does to the verdict on its run folder.

The manifest remembers that a claim is to be tested, from before it is; ``claim.json`` has the answers. A refuted claim
fails, whatever the release rule says. One without an answer that can be relied on makes a pass *cannot tell*: of this
claim, and that the numbers beside it do not contradict. One that was not refuted changes no verdict, since that is no
proof of it.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from leakgauge.auditing.document import AuditDocument, Document
from leakgauge.auditing.finding import Finding, Verdict, overall
from leakgauge.escaping import one_line

ANSWERS = "claim.json"
"""The file with the answers, by model."""

QUESTION = "claim"
"""Of findings on a claim; no result.json has one."""

MEASURE = "claim of differential privacy"

REFUTED, NOT_REFUTED, CANNOT_TEST = "refuted", "not refuted", "cannot test"
"""Answers, as they are written."""

LEAST_SHARE_AT_CLIP = 0.9
"""Below this share of steps with gradients of full length nothing is said to be not refuted."""

BOUNDS_DIFFER = (1.1, 0.01)
"""How far a bound on epsilon may be beyond a claim that its p-value does not refute, as a factor and in addition: both
are minima over prices of the same bound, and these are not searched alike."""


@dataclass(frozen=True)
class HeldClaim:
    """The claim of a run folder, and what is known about it.

    Args:
        stated: as on a command line; empty where nothing in the folder says it.
        answers: refuted, not refuted or cannot test, by the name of the model.
        doubt: why the answers are not relied on, unless they refute; empty where they are.
    """

    stated: str
    answers: Mapping[str, str] = field(default_factory=dict)
    doubt: str = ""

    def is_answered(self, models: list[str]) -> bool:
        """Whether there is an answer that can be relied on for each of these models."""
        return not self.doubt and all(one_line(model) in self.answers for model in models)

    def judged(self, document: Document) -> Document:
        """The document with a finding on the claim for each model, or a note where it was not refuted."""
        models = {one_line(audit.description.model) for audit in document.audits}
        others_refuted = REFUTED in (answer for model, answer in self.answers.items() if model not in models)
        audits = tuple(self._judged_one(audit, others_refuted=others_refuted) for audit in document.audits)
        verdict = overall([document.verdict, *(audit.verdict for audit in audits)])
        return replace(document, audits=audits, verdict=verdict)

    def _judged_one(self, audit: AuditDocument, *, others_refuted: bool) -> AuditDocument:
        answer = self.answers.get(one_line(audit.description.model))
        if answer == NOT_REFUTED and not self.doubt and not others_refuted:
            return replace(audit, notes=(*audit.notes, self.not_refuted))
        found = self._finding(REFUTED if others_refuted else answer)
        return replace(audit, findings=(*audit.findings, found), verdict=overall([audit.verdict, found.verdict]))

    def _finding(self, answer: str | None) -> Finding:
        verdict, again = Verdict.CANNOT_TELL, self._again
        if answer == REFUTED:
            verdict, reason = Verdict.FAILS, f"the {self._claim} is refuted; {ANSWERS} in the run folder says how"
            again = "correct the training or the claim, and test it in another run folder"
        elif self.doubt:
            reason, again = self.doubt, f"delete {ANSWERS} and {again}"
        elif answer == CANNOT_TEST:
            reason = f"the {self._claim} could not be tested; {ANSWERS} in the run folder says why"
            again = "test the claim with other canaries (leakgauge canaries), or audit without it in another run folder"
        else:
            reason = f"the {self._claim} was to be tested, and {ANSWERS} in the run folder has no answer"
        return Finding(QUESTION, MEASURE, None, 0.0, _epsilon(self.stated), verdict, reason, again)

    @property
    def not_refuted(self) -> str:
        """The note on a model on which the claim was not refuted."""
        return (
            f"the {self._claim} was not refuted, which is no proof of it; {ANSWERS} in the run folder says what the "
            "test could have shown"
        )

    @property
    def _claim(self) -> str:
        return f"claim {self.stated}" if self.stated else MEASURE

    @property
    def _again(self) -> str:
        claim = self.stated or "CLAIM"
        return f"run leakgauge audit on this folder again with --claim {claim}, or without it in another run folder"


def _epsilon(stated: str) -> float:
    """What is claimed; 0 where it is not known."""
    found = re.search(r"\bepsilon=([^,]+)", stated)
    with contextlib.suppress(ValueError):
        epsilon = float(found[1]) if found else 0.0
        return epsilon if math.isfinite(epsilon) else 0.0
    return 0.0


def read_answers(path: Path, asked: str) -> HeldClaim | None:
    """What ``claim.json`` says; ``None`` where it is not there. What is damaged in it is a doubt, and no error.

    Args:
        path: of the file.
        asked: the claim that was to be tested; empty where only the answers say it.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        return HeldClaim(asked, doubt=f"{ANSWERS} in the run folder cannot be read")
    answers, stated, doubt = dict[str, str](), asked, ""
    for model, one in content.items():
        known = isinstance(one, dict) and one.get("outcome") in (REFUTED, NOT_REFUTED, CANNOT_TEST)
        if not known or one_line(model) in answers:
            doubt = doubt or f"{ANSWERS} in the run folder is damaged"
            continue
        stated = stated or one_line(str(one.get("claim", "")))
        if one_line(str(one.get("claim", ""))) != stated:
            doubt = doubt or f"{ANSWERS} in the run folder has an answer to another claim than {stated}"
            continue
        answers[one_line(model)] = one["outcome"]
        if one["outcome"] == NOT_REFUTED and (wrong := _contradicting(one, _epsilon(stated))):
            doubt = doubt or (
                f"{ANSWERS} in the run folder contradicts itself: that the claim was not refuted does not follow from "
                f"its {wrong}"
            )
    return HeldClaim(stated, answers, doubt)


def _contradicting(answer: Mapping[str, Any], claimed: float) -> str:
    """What in an answer cannot stand beside “not refuted”, as such answers are decided; empty where all can.

    Args:
        answer: of one model.
        claimed: epsilon.
    """
    bound, factor, more = answer.get("epsilon"), *BOUNDS_DIFFER
    low, confidence = [_number(bound.get(name) if isinstance(bound, dict) else None) for name in ("low", "confidence")]
    alpha, largest, share = _number(answer.get("alpha")), answer.get("largest_epsilon"), answer.get("share_at_clip")
    of_noise = "noise=" in str(answer.get("claim"))  # which is tested by its curve, and not by epsilon
    stands = {
        "exit code": answer.get("exit_code") == 0,
        "reason": str(answer.get("reason")).startswith(f"{NOT_REFUTED}:"),
        "alpha": abs(alpha + confidence - 1) < 1e-9,
        "p-value": alpha < _number(answer.get("p_value")) <= 1,
        "bound on epsilon": low <= factor * claimed + more,
        "largest epsilon that could have been shown": of_noise
        or largest is None  # infinite
        or factor * _number(largest) + more >= claimed,
        "share of steps with gradients of full length": share is None or _number(share) >= LEAST_SHARE_AT_CLIP,
    }
    return next((name for name, holds in stands.items() if not holds), "")


def _number(value: object) -> float:
    """A number of JSON; NaN, which compares with nothing, where it is none."""
    with contextlib.suppress(OverflowError):
        return float(value) if isinstance(value, int | float) else math.nan
    return math.nan
