"""What other documents ask of an audit, as tables: attacks of a regulator's list, catalogues of threats, guarantees."""

from __future__ import annotations

import math
from dataclasses import dataclass

from leakgauge.auditing import AuditDocument
from leakgauge.auditing.finding import overall
from leakgauge.report.words import counted, listing, number, short


@dataclass(frozen=True)
class Tested:
    """One attack of a list, and what this audit did about it.

    Args:
        attack: its name in the list.
        atlas: id of the technique in MITRE ATLAS; empty where it has none.
        scope: whether it is possible against this model.
        executed: what was carried out, or why nothing was.
        result: what it came to.
    """

    attack: str
    atlas: str
    scope: str
    executed: str
    result: str


NOT_EXECUTED = "no"


def edpb(audit: AuditDocument) -> list[Tested]:
    """The attacks that Opinion 28/2024 of the European Data Protection Board names in paragraph 55."""
    answers = audit.description.answers
    attributes = [f"“{column.name}”" for column in audit.attributes]
    inferred = f"yes, {listing(attributes)}" if attributes else NOT_EXECUTED
    inversions = sorted({one.title for column in audit.attributes for one in column.attacks if "nversion" in one.title})
    n_attacks = len(audit.attacks)
    held = audit.file is not None
    return [
        Tested("Attribute inference", "", "yes", inferred, _result(audit, "attributes")),
        Tested(
            "Membership inference",
            "AML.T0024.000",
            "yes",
            f"yes, {counted(n_attacks, 'attack')}" if n_attacks else NOT_EXECUTED,
            _result(audit, "membership"),
        ),
        Tested(
            "Exfiltration",
            "AML.T0024",
            "yes"
            if held or audit.method.get("released_to") == "file"
            else "only where others are given the model file",
            "yes, what the model file holds was looked into" if held else NOT_EXECUTED,
            _result(audit, "file"),
        ),
        Tested(
            "Regurgitation of training data",
            "",
            "not known: only scores were given"
            if audit.description.only_scores
            else f"no: the model outputs {answers}, and no text or image",
            NOT_EXECUTED,
            "–",
        ),
        Tested(
            "Model inversion",
            "AML.T0024.001",
            "yes",
            f"yes, {listing(inversions)}" if inversions else NOT_EXECUTED,
            _result(audit, "attributes") if inversions else "–",
        ),
        Tested("Reconstruction", "", "yes", "no; leakgauge reconstruct does, on a model file", "–"),
    ]


def _result(audit: AuditDocument, question: str) -> str:
    verdicts = [finding.verdict for finding in audit.findings if finding.question == question]
    return overall(verdicts).value if verdicts else "–"


def nist(audit: AuditDocument) -> str:
    """What NIST SP 800-226 asks to be stated of a guarantee: whether there is one, its unit and its neighbours."""
    none = (
        "This audit states and verifies no guarantee of differential privacy: it measures one model. A claim of "
        "differential privacy is tested by leakgauge canaries."
    )
    found = audit.influence
    if found is None or math.isinf(found.bound):
        return none
    checked = f", as measured on {counted(found.bound_checked, 'model')}" if found.bound_checked else ""
    limit = "none" if audit.rule.dtp is None else short(audit.rule.dtp)
    return (
        f"{none} A bound on differential training privacy (Long et al. 2017) is known: {number(found.bound, 2)} for "
        f"{found.bound_covers}{checked}; unit, one training record; neighbouring training sets, this one and the one "
        f"without that record; a property of this training set, not of all; limit of the rule {limit}."
    )
