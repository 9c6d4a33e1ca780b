"""What holds of every finding of every audit, whichever test makes it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from leakgauge.auditing import AuditResult, Finding, Verdict, plan
from leakgauge.auditing.gate import Written, _contradictions, agreed
from leakgauge.auditing.questions import QUESTIONS
from leakgauge.membership import without

NOTHING_GIVEN_AWAY = {"attack accuracy": 0.5, "tail odds": 1.0, "true-positive rate over": 1.0}
"""The value of a model that gives nothing away, by how a measure begins; of all others it is 0."""


def check(finding: Finding) -> None:
    baselines = [value for start, value in NOTHING_GIVEN_AWAY.items() if finding.measure.startswith(start)]
    assert finding.baseline == (baselines or [0.0])[0], finding
    for text in (finding.reason, finding.remedy):
        assert text == text.strip(), finding
        assert "  " not in text, finding
        assert "None" not in text, finding
    assert (finding.remedy == "") == (finding.verdict is Verdict.PASSES), finding
    found = finding.estimate
    if found is None:
        assert finding.verdict is not Verdict.PASSES, finding
    elif finding.verdict is Verdict.FAILS:
        assert found.low > finding.threshold, finding
    elif finding.verdict is Verdict.PASSES:
        assert found.low <= finding.threshold, finding


@pytest.fixture(autouse=True, scope="session")
def findings() -> Iterator[None]:
    """Each is looked at where a question makes it; what tests write and what is read from files may be anything."""
    made = Finding.__init__

    @functools.wraps(made)
    def checked(finding: Finding, *given: Any, **named: Any) -> None:
        made(finding, *given, **named)
        frame = sys._getframe(1)
        caller, is_example = frame.f_globals["__name__"], frame.f_code.co_filename.startswith("<doctest")
        if caller.startswith("leakgauge.auditing.") and "gate" not in caller and not is_example:
            check(finding)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Finding, "__init__", checked)
        yield


def check_agreed(result: AuditResult) -> AuditResult:
    """The verdicts stated are those of the numbers, and these do not contradict each other."""
    assert agreed(result) is result
    written = Written(result, result.rule)
    assert [said for question in QUESTIONS for said in _contradictions(question, written)] == []
    return result


@pytest.fixture(autouse=True, scope="session")
def agreement() -> Iterator[None]:
    """What an audit states is what all that read its result say."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["leakgauge.auditing.audit"], "agreed", check_agreed)
        yield


@pytest.fixture
def none_trained_without_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of other attacks: no model without a record is trained where no engine solves for it."""
    for module in (without, plan):
        monkeypatch.setattr(module, "MOST_TRAINED_EACH", 0)
