"""The shape of a question: what membership, influence, attributes and properties each bring to an audit.

A question is made for one subject, and checks its settings before anything is trained. Asked, it gives an answer.
The audit, its plan and the gate go through :data:`leakgauge.auditing.questions.QUESTIONS` and name none of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from leakgauge.auditing.advice import Situation
from leakgauge.auditing.finding import Finding
from leakgauge.auditing.settings import ReleaseRule, Settings
from leakgauge.auditing.subject import Subject
from leakgauge.statistics import Estimate

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case
    from leakgauge.auditing.gate import Written
    from leakgauge.auditing.plan import Outline, PlannedStep


class Answer:
    """What one question found about one subject. What it does not say, it leaves at these defaults."""

    def part(self, case: Case) -> Mapping[str, Any]:
        """Fields of the document, by name (:class:`leakgauge.auditing.questions.Parts`); every question was asked."""
        return {}

    def findings(self, case: Case, situation: Situation) -> list[Finding]:
        """The measures held against the release rule; the situation is for the advice."""
        return []

    def notes(self, case: Case) -> list[str]:
        """What a reader should know about these numbers, in sentences."""
        return []

    def not_tested(self, case: Case) -> list[str]:
        """What this question says nothing about, in sentences."""
        return []

    def method(self, case: Case) -> Mapping[str, Any]:
        """Settings and engines needed to repeat it, as JSON can hold them."""
        return {}

    def columns(self, case: Case) -> Mapping[str, Sequence[Any]]:
        """Fields of the table of records (:class:`~leakgauge.auditing.result.ExposedRecord`), for each candidate."""
        return {}


class Question(ABC):
    """A question about one subject.

    Args:
        what: the subject, with its whole holdout.
        settings: of the audit.

    Raises:
        InputError: the settings name what the subject does not have.
    """

    name: ClassVar[str]
    """As findings name it."""
    limit: ClassVar[str]
    """The field of the release rule that holds its limit."""
    baseline: ClassVar[float] = 0.0
    """What a model that reveals nothing measures."""

    def __init__(self, what: Subject, settings: Settings) -> None:
        self.what = what
        self.settings = settings

    @property
    def wants_population(self) -> bool:
        """Whether the attacker needs records known to be outside the training set."""
        return False

    def asks_model(self, outline: Outline) -> bool:
        """Whether the released model itself is asked, besides about the candidates."""
        return False

    def plan(self, outline: Outline) -> Iterator[PlannedStep]:
        """The models that :meth:`ask` will need."""
        yield from ()

    def n_imputations(self, outline: Outline) -> int:
        """How many values are learned to be guessed without the model, for ``leakgauge explain``."""
        return 0

    def announce(self, outline: Outline) -> str:
        """A sentence on what will be asked, for ``leakgauge explain``; empty for none."""
        return ""

    @abstractmethod
    def ask(self, case: Case) -> Answer:
        """Train, measure, and give the answer."""

    @classmethod
    def judged_again(cls, written: Written) -> list[Finding]:
        """The findings of a stored document under a rule that may be another, made anew from its estimates."""
        return written.judged_alone(cls)

    @classmethod
    def estimates(cls, written: Written) -> Mapping[str, Estimate | None] | None:
        """What the numbers of a stored document come to under the rule of its audit, by measure.

        ``None`` for a question whose findings hold all that is known.
        """
        return None

    @classmethod
    def contradictions(cls, written: Written) -> Iterator[str]:
        """What in the numbers of a stored document cannot be, besides findings that are not its :meth:`estimates`."""
        yield from ()

    @classmethod
    def limit_of(cls, finding: Finding) -> str:
        """The field of the release rule that asks for a finding of this question, where it has several."""
        return cls.limit

    @classmethod
    def threshold_of(cls, finding: Finding, rule: ReleaseRule) -> float | None:
        """What a rule holds a finding of this question against."""
        limit: float | None = getattr(rule, cls.limit_of(finding))
        return limit

    @classmethod
    def is_limited(cls, finding: Finding) -> bool:
        """Whether the threshold of a finding of this question is the limit of the rule, and not derived of another."""
        return True
