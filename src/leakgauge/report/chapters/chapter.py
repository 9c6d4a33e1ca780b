"""The shape of a chapter: what the report says of one question."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any, ClassVar, TypeAlias

from leakgauge.auditing import AuditDocument, Finding
from leakgauge.report import words
from leakgauge.statistics import Estimate

Estimates: TypeAlias = Iterable[tuple[str, Estimate | None]]
"""What was estimated, in words, and the estimate."""


class Chapter:
    """What page, model card, pipeline and terminal say of one question. What it does not say, it leaves at the default.

    ``templates/<question>.html`` holds two macros: ``section(view, h)``, its section of the page with headings from
    level ``h`` down, and ``guide()``, how to read its numbers.
    """

    question: ClassVar[str]
    """The name of the question in findings."""
    title: ClassVar[str]
    label: ClassVar[str]
    """A shorter title, for the head of a column."""
    is_usual: ClassVar[bool] = False
    """Whether its absence is worth saying."""
    is_defended: ClassVar[bool] = True
    """Whether defences are tried against it."""

    @property
    def template(self) -> str:
        """With its section and its guide."""
        return f"{self.question}.html"

    @property
    def says(self) -> ModuleType:
        """Its sentences, for the template."""
        return sys.modules[type(self).__module__]

    def is_asked(self, audit: AuditDocument) -> bool:
        """Whether an audit holds anything on it."""
        return self.is_usual or any(finding.question == self.question for finding in audit.findings)

    def rule(self, audit: AuditDocument) -> list[str]:
        """What the release rule demands of it, in sentences."""
        return []

    def plain(self, audit: AuditDocument, finding: Finding) -> str:
        """A finding of the question in one sentence for whoever decides: no symbol, no name of a measure.

        What fails is told by what was shown at least, what passes by the most that it may be, with the limit beside it.
        """
        return words.sentence(finding.reason)

    def attacker(self, audit: AuditDocument) -> str:
        """What its attacker has besides access to the model and the record; a sentence, or nothing."""
        return ""

    def tested(self, audit: AuditDocument) -> list[str]:
        """What was tested, in phrases."""
        return []

    def results(self, audit: AuditDocument) -> list[str]:
        """What was found, in sentences."""
        return []

    def summary(self, audit: AuditDocument) -> list[str]:
        """What the terminal says of it beside the findings, in sentences."""
        return []

    def identified(self, audit: AuditDocument) -> list[tuple[int, int, int]]:
        """For each list of people: how many are on it, how few it could have shown, of how many."""
        return []

    def estimates(self, audit: AuditDocument) -> Estimates:
        """What was estimated, to tell how."""
        return [(one.measure, one.estimate) for one in audit.findings if one.question == self.question]

    def drawn(self, audit: AuditDocument) -> dict[str, Any]:
        """The numbers that its figures draw, for the script and for whoever has nothing but the page."""
        return {}
