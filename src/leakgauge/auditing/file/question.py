"""File: what the model itself holds about its training records, for a release in which others are given the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leakgauge.auditing.advice import Situation
from leakgauge.auditing.file.findings import QUESTION, SINGLE, findings, measured, unknown
from leakgauge.auditing.file.settings import ReleasedTo
from leakgauge.auditing.finding import Finding
from leakgauge.auditing.plan import Outline
from leakgauge.auditing.question import Answer, Question
from leakgauge.auditing.settings import Settings
from leakgauge.auditing.subject import Subject
from leakgauge.errors import ConfigError, InputError
from leakgauge.inspecting import RULES, Inspection, inspect
from leakgauge.statistics import Estimate

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case
    from leakgauge.auditing.gate import Written

NO_FILE = "the model is only queried, so that its file could not be looked into"


@dataclass(frozen=True, eq=False)
class FileAnswer(Answer):
    """What the model itself holds about its training records.

    Args:
        inspection: of the model; ``None`` where it was not looked into.
        reason: why not, where it should have been.
    """

    inspection: Inspection | None = None
    reason: str = ""

    def part(self, case: Case) -> Mapping[str, Any]:
        """The inspection."""
        return {"file": self.inspection}

    def findings(self, case: Case, situation: Situation) -> list[Finding]:
        """What is in the file, where the file is released."""
        if case.settings.released_to is not ReleasedTo.FILE:
            return []
        return [unknown(self.reason)] if self.inspection is None else findings(self.inspection)

    def notes(self, case: Case) -> list[str]:
        """That it was looked into and not judged."""
        if case.settings.released_to is not ReleasedTo.INTERNAL:
            return []
        return ["The model file stays within the organisation: what it holds is reported and not judged."]

    def not_tested(self, case: Case) -> list[str]:
        """The file, or what it may hold in a form that cannot be recognised."""
        if case.settings.released_to is ReleasedTo.API:
            return ["What the model file itself holds: the model is released through an API (release.to)."]
        return ["Training records that the file holds in another form, and records reconstructed from its parameters."]

    def method(self, case: Case) -> Mapping[str, Any]:
        """To whom the model is released."""
        return {"released_to": case.settings.released_to.value}


class FileOfModel(Question):
    """What the model file holds."""

    name = QUESTION
    limit = "in_file"

    def __init__(self, what: Subject, settings: Settings) -> None:
        super().__init__(what, settings)
        if settings.released_to is ReleasedTo.FILE and what.only_scores:
            raise ConfigError(
                'release.to = "file" needs the model, and only scores were given; set it to "api", or give the model'
            )

    def announce(self, outline: Outline) -> str:
        """That the file is looked into."""
        return "" if self.settings.released_to is ReleasedTo.API else "The model file is inspected."

    def ask(self, case: Case) -> FileAnswer:
        """Inspect the model beside the training records."""
        if case.settings.released_to is ReleasedTo.API:
            return FileAnswer()
        model = case.what.artefact() if case.what.artefact is not None else getattr(case.model, "estimator", None)
        if model is None:
            return FileAnswer(reason=NO_FILE)
        rule = RULES[case.settings.rule.structure.value]
        try:
            return FileAnswer(inspect(model, case.what.train, rule=rule, name=case.what.name))
        except InputError as error:
            return FileAnswer(reason=f"the model file could not be looked into: {error}")

    @classmethod
    def judged_again(cls, written: Written) -> list[Finding]:
        """Made anew of the inspection; one that is there is judged unless it is said that it was not to be."""
        found, to = written.audit.file, written.audit.method.get("released_to", ReleasedTo.API.value)
        if to != ReleasedTo.FILE.value and (found is None or to == ReleasedTo.INTERNAL.value):
            return written.worse_of([], cls)
        made = [written.missing(cls, SINGLE)] if found is None else findings(found)
        return written.worse_of(made, cls)

    @classmethod
    def estimates(cls, written: Written) -> Mapping[str, Estimate | None]:
        """The counts of the inspection."""
        found = written.audit.file
        return {SINGLE: None} if found is None else dict(measured(found))

    @classmethod
    def contradictions(cls, written: Written) -> Iterator[str]:
        """Checks of another rule, and such as do not agree with their numbers."""
        found = written.audit.file
        if found is not None and found.rule != written.rule.structure.value:
            yield "its structural checks are of another rule"
        if found is not None and not (found.checks and all(check.is_consistent for check in found.checks)):
            yield "a structural check does not agree with its number, or none is there"

    @classmethod
    def is_limited(cls, finding: Finding) -> bool:
        """No limit of the rule: none of what is counted may be there, and the limits are those of the checks."""
        return False
