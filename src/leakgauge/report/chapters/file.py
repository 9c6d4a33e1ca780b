"""What the report says of the model file."""

from __future__ import annotations

from leakgauge.auditing import AuditDocument, Finding, Verdict
from leakgauge.auditing.file.findings import CHECK, NOT_NEEDED, SINGLE
from leakgauge.inspecting import Inspection, ModelFinding
from leakgauge.report.chapters.chapter import Chapter
from leakgauge.report.words import counted

NEEDED = {True: "yes", False: "no", None: "not known"}


class FileChapter(Chapter):
    """What the model itself holds about its training records."""

    question = "file"
    title = label = "Model file"
    is_defended = False

    def rule(self, audit: AuditDocument) -> list[str]:
        """What a released file may hold."""
        if not self.is_asked(audit):
            return []
        return [
            (
                "The model file is released: it may hold nothing about single training records and nothing that "
                f"prediction does not need, and no structural check may fail (limits: {audit.rule.structure})."
            )
        ]

    def plain(self, audit: AuditDocument, finding: Finding) -> str:
        """How many contents the file holds that it may not."""
        found, called = finding.estimate, finding.measure.removeprefix(CHECK)
        if found is None:
            return "What the model file holds about training records could not be looked into."
        if finding.measure in (SINGLE, NOT_NEEDED):
            about = (
                "that single training records can be read from"
                if finding.measure == SINGLE
                else "that prediction does not need"
            )
            if finding.verdict is Verdict.FAILS:
                return f"The model file holds {counted(int(found.low), 'kind')} of contents {about}; it may hold none."
            if finding.verdict is Verdict.PASSES:
                return f"The model file was not found to hold anything {about}."
            return f"The model file holds {counted(int(found.high), 'kind')} of contents {about} more or less closely."
        if finding.verdict is Verdict.PASSES:
            return f"The model file keeps the limit on {called}."
        places = counted(int(found.low), "place")
        return f"The model file falls short of the limit on {called} in {places}; none may."

    def attacker(self, audit: AuditDocument) -> str:
        """The file, and nothing else."""
        return "Others are given the model file and read all that it holds." if self.is_asked(audit) else ""

    def tested(self, audit: AuditDocument) -> list[str]:
        """What the file holds."""
        return [] if audit.file is None else ["what the model file holds about training records"]

    def results(self, audit: AuditDocument) -> list[str]:
        """How many contents, and how many checks fail."""
        return [] if audit.file is None else [told(audit.file)]

    summary = results


def told(found: Inspection) -> str:
    """What was found in the model file, in a sentence."""
    failed = [check.name for check in found.checks if check.verdict == "fails"]
    checks = f"{counted(len(failed), 'structural check')} failed" if failed else "no structural check failed"
    if not found.findings:
        return f"Nothing was found in the model file about single training records; {checks}."
    removable = f", of which prediction does not need {len(found.removable):,}" if found.removable else ""
    return (
        f"The model file holds {counted(len(found.findings), 'kind')} of contents about training records{removable}; "
        f"{checks}."
    )


def whose(one: ModelFinding) -> str:
    """How many records some contents are about."""
    return "not known" if one.n_records is None else f"{one.n_records:,}"
