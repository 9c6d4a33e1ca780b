"""Two finished audits compared: what changed from one version of a model to the next, finding by finding.

Both results are judged again first, as by the gate. A finding is *worse* where the interval of the difference lies
above a margin. It is *not worse* where the interval has nothing above the margin, or where the value after passes its
limit: an increase beyond the margin, if there is one, stays below the limit. Two audits that are the same in every
number are of a model that did not change, and nothing is worse. Everything else is *cannot tell*.

The margin is a share of the way from the value of a model that reveals nothing to the limit. Measures without sampling
error, such as the largest PDTP, differ a little between any two models; without a margin every second model would be
worse.

No error rate holds for all findings together. With k measures that did not change, one or more is called worse with a
probability of at most k times one less the confidence of the differences, which is a bound for every kind of dependence
and far from reached: by about 0.003 k where both intervals are of 95 % and from independent samples, without a margin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import ConfigDict

from leakgauge._version import __version__
from leakgauge.auditing import AuditDocument, Document, Finding, Run, Verdict
from leakgauge.auditing.form import DocumentFormat
from leakgauge.auditing.influence.findings import MEASURE_FOUND
from leakgauge.checking import number
from leakgauge.errors import ConfigError
from leakgauge.escaping import one_line
from leakgauge.statistics import Estimate

MARGIN = 0.1
"""Of the way from the value of a model that reveals nothing to the limit: smaller increases do not count."""

SCHEMA_VERSION = "1.0"
"""Of the JSON of a comparison: the first number changes when a reader of the old form would be misled."""


class Change(StrEnum):
    """What became of a measure, or of all."""

    NOT_WORSE = "not worse"
    WORSE = "worse"
    CANNOT_TELL = "cannot tell"

    @property
    def exit_code(self) -> int:
        """0 not worse, 1 worse, 3 cannot tell."""
        return {Change.NOT_WORSE: 0, Change.WORSE: 1, Change.CANNOT_TELL: 3}[self]


@dataclass(frozen=True)
class ComparedFinding:
    """One measure in both audits.

    Args:
        model: the name of the model after.
        question: as findings name it.
        measure: what was measured, in words.
        limit: of the release rule.
        before: the finding of the first audit, ``None`` where it has none on this measure.
        after: that of the second.
        difference: after less before, with an interval that needs no independence
            (:meth:`leakgauge.statistics.Estimate.minus`); ``None`` unless both were measured.
        change: the answer.
    """

    model: str
    question: str
    measure: str
    limit: float
    before: Finding | None
    after: Finding | None
    difference: Estimate | None
    change: Change


@dataclass(frozen=True)
class RunComparison:
    """Two finished audits compared.

    Args:
        schema_version: of this form.
        leakgauge: the version that compared.
        before: name of the run folder of the first audit.
        after: that of the second.
        change: the worst of all findings.
        exit_code: of ``leakgauge compare``: 0 not worse, 1 worse, 3 cannot tell.
        margin: increases up to this share of the way to the limit do not count.
        findings: of all models.
        notes: what else differs between the audits, and may be the reason of a difference.
    """

    __pydantic_config__ = ConfigDict(ser_json_inf_nan="strings", extra="forbid")

    schema_version: str
    leakgauge: str
    before: str
    after: str
    change: Change
    exit_code: int
    margin: float
    findings: tuple[ComparedFinding, ...]
    notes: tuple[str, ...]


FORM = DocumentFormat(
    RunComparison, SCHEMA_VERSION, "leakgauge comparison", "what leakgauge compare --json printed", "is not one ({})"
)
"""Of what ``leakgauge compare --json`` prints."""

dump, schema = FORM.dump, FORM.schema


def compare_runs(before: str | Path, after: str | Path, *, margin: float = MARGIN) -> RunComparison:
    """Say what changed between two finished audits, and whether the second model is worse.

    Models are paired by name; where either audit is of one model, those two are compared.

    Args:
        before: run folder of the first audit.
        after: run folder of the second.
        margin: increases up to this share of the way from the value of a model that reveals nothing to the limit do
            not count, in [0, 1].

    Raises:
        StoreError: a folder does not hold a finished audit, or its result was changed since.
        ConfigError: the audits cannot be compared: no model in common, other release rules, or persons and records.
    """
    margin = number(least=0, most=1, hint="0.1 is the default")("margin", margin)
    runs = Run(Path(before)), Run(Path(after))
    documents = _document(runs[0]), _document(runs[1])
    findings: list[ComparedFinding] = []
    notes, of_records = [*_models_alone(*documents)], list(_other_records(*runs))
    for one, other in _paired(*documents):
        _refuse_unlike(one, other)
        notes += [*_differences(one, other), *_proofs_lost(one, other)]
        is_same = one == other and not of_records
        if is_same:
            notes.append(f"both audits of {one_line(other.description.model)} are the same in every number")
        findings += _compared(one, other, margin, is_same=is_same)
    notes += of_records
    new = [audit for audit in documents[1].audits if not any(audit is other for _, other in _paired(*documents))]
    unknown = [Change.CANNOT_TELL for audit in new if audit.verdict is not Verdict.PASSES]
    change = _worst([*(finding.change for finding in findings), *unknown])
    return RunComparison(
        schema_version=SCHEMA_VERSION,
        leakgauge=__version__,
        before=one_line(runs[0].folder.resolve().name),
        after=one_line(runs[1].folder.resolve().name),
        change=change,
        exit_code=change.exit_code,
        margin=margin,
        findings=tuple(findings),
        notes=tuple(dict.fromkeys(notes)),
    )


def change_of(after: Finding, difference: Estimate | None, margin: float) -> Change:
    """What became of a measure; see the module's own words for the rule.

    Args:
        after: the finding of the second audit.
        difference: its estimate less that of the first; ``None`` unless both were measured.
        margin: share of the way to the limit.
    """
    if difference is not None and difference.low > margin * after.unit:
        return Change.WORSE
    within = difference is not None and difference.high <= margin * after.unit
    return Change.NOT_WORSE if within or after.verdict is Verdict.PASSES else Change.CANNOT_TELL


def _compared(
    before: AuditDocument, after: AuditDocument, margin: float, *, is_same: bool
) -> Iterator[ComparedFinding]:
    """The findings of both; one that only the first has is settled where the second passes by another in its place."""
    known = {(finding.question, finding.measure): finding for finding in before.findings}
    model = after.description.model
    for now in after.findings:
        then = known.pop((now.question, now.measure), None)
        difference = None
        if then is not None and then.estimate is not None and now.estimate is not None:
            difference = now.estimate.minus(then.estimate)
        change = Change.NOT_WORSE if is_same else change_of(now, difference, margin)
        yield ComparedFinding(model, now.question, now.measure, now.threshold, then, now, difference, change)
    for gone in known.values():
        settled = any(one.verdict is Verdict.PASSES for one in _instead(gone, before, after))
        change = Change.NOT_WORSE if settled else Change.CANNOT_TELL
        yield ComparedFinding(model, gone.question, gone.measure, gone.threshold, gone, None, None, change)


def _instead(gone: Finding, before: AuditDocument, after: AuditDocument) -> list[Finding]:
    """What the second audit found on the question of a finding that only the first has."""
    measured = {(finding.question, finding.measure) for finding in before.findings}
    others = (one for one in after.findings if (one.question, one.measure) not in measured)
    return [one for one in others if one.question == gone.question]


def _proofs_lost(before: AuditDocument, after: AuditDocument) -> Iterator[str]:
    """A bound over all queries, in whose place the largest value that was found stands now."""
    kept = {finding.measure for finding in after.findings}
    for gone in (finding for finding in before.findings if finding.measure not in kept):
        if any(one.measure == MEASURE_FOUND for one in _instead(gone, before, after)):
            yield f"{after.description.model}: {gone.measure} was bounded before, and is only searched for now"


def _document(run: Run) -> Document:
    with run.as_read():
        document = run.document()
    run.require_unchanged()
    return document


def _worst(changes: list[Change]) -> Change:
    if Change.WORSE in changes:
        return Change.WORSE
    return Change.CANNOT_TELL if not changes or Change.CANNOT_TELL in changes else Change.NOT_WORSE


def _paired(before: Document, after: Document) -> list[tuple[AuditDocument, AuditDocument]]:
    if len(before.audits) == len(after.audits) == 1:
        return [(before.audits[0], after.audits[0])]
    known = {audit.description.model: audit for audit in before.audits}
    pairs = [(known[name], audit) for audit in after.audits if (name := audit.description.model) in known]
    if not pairs:
        raise ConfigError(f"{before.name} and {after.name} have no model of the same name; give audits of one model")
    return pairs


def _models_alone(before: Document, after: Document) -> Iterator[str]:
    """Models of one audit that the other does not have."""
    names = [[audit.description.model for audit in document.audits] for document in (before, after)]
    if len(names[0]) == len(names[1]) == 1:
        return
    for mine, others, where in ((names[0], names[1], "first"), (names[1], names[0], "second")):
        for name in mine:
            if name not in others:
                yield f"{name} is in the {where} audit only, and is not compared"


def _refuse_unlike(before: AuditDocument, after: AuditDocument) -> None:
    """Raise for audits whose findings mean different things."""
    rules = vars(before.rule), vars(after.rule)
    other = [name for name in rules[0] if rules[0][name] != rules[1][name]]
    if other:
        raise ConfigError(
            f"the audits have different release rules ({', '.join(other)}); audit one of them again with the rule of "
            "the other"
        )
    if before.description.unit != after.description.unit:
        raise ConfigError(
            f"one audit counts {before.description.unit}s and the other {after.description.unit}s; give the column of "
            "role person in both or in neither"
        )


def _differences(before: AuditDocument, after: AuditDocument) -> Iterator[str]:
    """What else is not the same."""
    then, now = before.description, after.description
    for what, one, other in (
        ("names of models", then.model, now.model),
        ("training algorithms", then.learner, now.learner),
        ("released outputs", f"{then.answers}, {then.released}", f"{now.answers}, {now.released}"),
        ("releases", _released_to(before), _released_to(after)),
        ("numbers of records", f"{then.n_train:,} and {then.n_holdout:,}", f"{now.n_train:,} and {now.n_holdout:,}"),
        ("versions of leakgauge", _version(before), _version(after)),
    ):
        if one != other:
            yield f"{now.model}: {what} differ: {one or 'not known'} before, {other or 'not known'} after"


def _released_to(audit: AuditDocument) -> str:
    return str(audit.method.get("released_to", "api"))


def _version(audit: AuditDocument) -> str:
    versions = audit.method.get("versions")
    return str(versions.get("leakgauge", "")) if isinstance(versions, dict) else ""


def _other_records(before: Run, after: Run) -> Iterator[str]:
    """Training records and holdouts that are not the same, by the checksums in the manifests."""
    known = [_checksums(run) for run in (before, after)]
    for part, called in (("train", "training records"), ("holdout", "holdout records")):
        one, other = ({str(sums.get(part)) for sums in side} for side in known)
        if one != other:
            yield f"the {called} are not the same: a difference may come from the records, not from the model"


def _checksums(run: Run) -> list[dict[str, str]]:
    manifest = run.manifest() or {}
    models = manifest.get("inputs", {}).get("models")
    return [model for model in models if isinstance(model, dict)] if isinstance(models, list) else []
