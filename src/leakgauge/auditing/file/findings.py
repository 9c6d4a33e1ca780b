"""What a model file holds, held against the release rule: nothing about single records, and no check that fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from leakgauge.auditing.finding import Finding, Verdict, judge
from leakgauge.inspecting import CheckVerdict, Inspection, Kind, ModelFinding, StructuralCheck
from leakgauge.inspecting.structure import AGAINST_CHECKS
from leakgauge.statistics import Estimate

QUESTION = "file"
NOT_NEEDED = "file contents that prediction does not need"
SINGLE = "file contents about single training records"
CHECK = "structural check: "
CLEAN = "remove them: leakgauge inspect FILE --clean OUT"
N_NAMED = 3
"""Contents that a reason names."""


def measured(found: Inspection) -> Iterator[tuple[str, Estimate]]:
    """How many contents or places fall short of the rule, by measure; whatever is counted should be 0.

    Thresholds halfway between two people's values are counted in the upper end alone: each bounds two values, and how
    much that tells depends on the column. Leaves of one class are judged by the check of class disclosure,
    and of the checks not those that can only warn.
    """
    removable, halfway, single = _sorted(found)
    yield NOT_NEEDED, _count(len(removable), 0, found)
    yield SINGLE, _count(len(single), len(halfway), found)
    for check in _judged(found):
        yield CHECK + check.name, _count(check.n_short, 0, found)


def findings(found: Inspection) -> list[Finding]:
    """One finding for each measure."""
    removable, halfway, single = _sorted(found)
    made = []
    for measure, estimate in measured(found):
        verdict = judge(estimate, 0.0)
        if measure == NOT_NEEDED:
            reason, remedy = _held(removable), CLEAN
        elif measure == SINGLE:
            reason, remedy = _held(single or halfway), _remedies(single or halfway)
            if verdict is Verdict.CANNOT_TELL:
                reason += ": each bounds two people’s values, and how closely depends on the column"
        else:
            check = next(check for check in _judged(found) if CHECK + check.name == measure)
            reason, remedy = f"{check.reason} (limit {check.limit:g})", AGAINST_CHECKS.get(check.name, "")
        made.append(_finding(measure, estimate, verdict, reason, remedy if verdict is not Verdict.PASSES else ""))
    return made


def unknown(reason: str) -> Finding:
    """In place of all findings where the model could not be looked into."""
    remedy = "give the fitted model or its file (skops, XGBoost, LightGBM, CatBoost, ONNX, safetensors)"
    return _finding(SINGLE, None, Verdict.CANNOT_TELL, reason, remedy)


def _finding(measure: str, estimate: Estimate | None, verdict: Verdict, reason: str, remedy: str) -> Finding:
    return Finding(QUESTION, measure, estimate, 0.0, 0.0, verdict, reason, remedy)


def _judged(found: Inspection) -> list[StructuralCheck]:
    """The checks that apply, but for those that can only warn."""
    return [
        check
        for check in found.checks
        if check.verdict is not CheckVerdict.NOT_APPLICABLE
        and not (check.verdict is CheckVerdict.WARNS and check.n_short)
    ]


def _sorted(found: Inspection) -> tuple[list[ModelFinding], list[ModelFinding], list[ModelFinding]]:
    """Contents that can be removed, thresholds between two values, and everything else about single records."""
    kept = [one for one in found.findings if one.needed is not False and one.kind is not Kind.DISCLOSURE]
    halfway = [one for one in kept if one.kind is Kind.MIDPOINT]
    return list(found.removable), halfway, [one for one in kept if one.kind is not Kind.MIDPOINT]


def _count(certain: int, possible: int, found: Inspection) -> Estimate:
    return Estimate(certain, certain, certain + possible, 1.0, "count in the model file", found.n_records or 0)


def _held(contents: Sequence[ModelFinding]) -> str:
    """What the file holds, the first few by name."""
    if not contents:
        return "nothing of the kind was found in the file"
    named = [f"{one.kind.value} in {one.where} ({one.n_entries:,})" for one in islice(contents, N_NAMED)]
    more = f", and {len(contents) - N_NAMED:,} more" if len(contents) > N_NAMED else ""
    return f"the file holds {', '.join(named)}{more}"


def _remedies(contents: Sequence[ModelFinding]) -> str:
    return "; ".join(islice(dict.fromkeys(one.remedy for one in contents), N_NAMED))
