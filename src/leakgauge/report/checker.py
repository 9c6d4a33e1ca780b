"""The form of an output checker: what someone who lets files out of a protected environment has to know and decide."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from leakgauge.auditing import AuditDocument, Document
from leakgauge.auditing.provenance import Provenance
from leakgauge.report import annex, statement
from leakgauge.report.words import against_limit, released, sentence

TO_FILL_IN = ("project", "researcher", "checker", "decision", "conditions", "date")
"""What no audit knows: empty, for people."""


def checker_form(document: Document, provenance: Provenance | None = None) -> str:
    """The form as JSON: one entry for each model, from its verdict to what was not tested, and fields for people.

    It holds no record, no id and no value of one. Keys stay as they are within a schema version of ``result.json``.

    Args:
        document: one or several audits.
        provenance: when, by whom and of what; empty where that is not known.

    Returns:
        The text of a JSON document, ending in a newline.
    """
    known = provenance or Provenance()
    form = {
        "form": "output check of trained models",
        "leakgauge": document.leakgauge,
        "schema_version": document.schema_version,
        "run": {key: getattr(known, key) for key in ("started", "auditor", "data", "source", "python")},
        "verdict": document.verdict.value,
        "models": [_model(audit, document.leakgauge, known) for audit in document.audits],
        "to_fill_in": dict.fromkeys(TO_FILL_IN, ""),
    }
    return json.dumps(form, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _model(audit: AuditDocument, version: str, provenance: Provenance) -> dict[str, Any]:
    what, hashes = audit.description, (provenance.models or {}).get(audit.description.model)
    return {
        "model": what.model,
        "learner": what.learner,
        "checksums": None if hashes is None else asdict(hashes),
        "unit": what.unit,
        "training": what.n_train,
        "holdout": what.n_holdout,
        "released_to": audit.method.get("released_to", "api"),
        "outputs": released(audit),
        "verdict": audit.verdict.value,
        "in_a_sentence": statement.lead(audit),
        "rule": [what.worded(said) for said in statement.rule(audit)],
        "findings": [
            {
                "question": finding.question,
                "measure": finding.measure,
                "value": against_limit(finding),
                "verdict": finding.verdict.value,
                "reason": sentence(finding.reason),
                "what_to_do": sentence(finding.remedy),
            }
            for finding in audit.findings
        ],
        "file_checks": [
            {"check": check.name, "verdict": check.verdict.value, "limit": check.limit, "reason": check.reason}
            for check in (() if audit.file is None else audit.file.checks)
        ],
        "attacks_of_edpb_opinion_28_2024": [asdict(one) for one in annex.edpb(audit)],
        "guarantees_nist_sp_800_226": what.worded(annex.nist(audit)),
        "not_tested": list(audit.not_tested),
        "statement": dict(statement.statement(audit, version)),
    }
