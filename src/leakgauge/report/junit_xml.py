"""JUnit XML, which GitLab, Jenkins, Azure and most other pipelines show beside the tests.

There is no standard; the form follows the schema of Jenkins' xUnit plugin (junit-10.xsd), which the other readers
accept too. It has no times, so that the same document gives the same bytes.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from leakgauge.auditing import AuditDocument, Document, Finding, Verdict
from leakgauge.escaping import xml
from leakgauge.report.statement import rests_on
from leakgauge.report.words import against_limit, sentence


def junit(document: Document) -> str:
    """The findings as test cases: one suite for each model, one case for each finding.

    A finding that fails is a *failure*. One that cannot tell is an *error* with what would settle it, so that a
    pipeline stops on it as well: not knowing never counts as passing. A model without any finding gives one error.

    Returns:
        The text of the file, ending in a newline.
    """
    root = ET.Element("testsuites", name=xml(f"leakgauge {document.name}"))
    for audit in document.audits:
        root.append(_suite(audit, document.leakgauge))
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(audit: AuditDocument, version: str) -> ET.Element:
    suite = ET.Element("testsuite", name=xml(audit.description.model))
    properties = ET.SubElement(suite, "properties")
    ET.SubElement(properties, "property", name="verdict", value=audit.verdict.value)
    ET.SubElement(properties, "property", name="leakgauge", value=xml(version))
    if left_out := rests_on(audit):
        ET.SubElement(properties, "property", name="remark", value=xml(left_out))
    cases = [_case(finding) for finding in audit.findings] or [_nothing_measured()]
    suite.extend(cases)
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
    suite.set("errors", str(sum(case.find("error") is not None for case in cases)))
    suite.set("skipped", "0")
    return suite


def _case(finding: Finding) -> ET.Element:
    case = ET.Element("testcase", classname=xml(f"leakgauge.{finding.question}"), name=xml(finding.measure))
    said = xml("\n".join(filter(None, [sentence(finding.reason), sentence(finding.remedy)])))
    if finding.verdict is not Verdict.PASSES:
        tag = "failure" if finding.verdict is Verdict.FAILS else "error"
        outcome = ET.SubElement(case, tag, type=finding.verdict.value, message=xml(finding.reason))
        outcome.text = said
    ET.SubElement(case, "system-out").text = xml(f"{finding.measure}: {against_limit(finding)}")
    return case


def _nothing_measured() -> ET.Element:
    case = ET.Element("testcase", classname="leakgauge", name="release rule")
    message = "no measure was compared with the release rule"
    ET.SubElement(case, "error", type=Verdict.CANNOT_TELL.value, message=message).text = sentence(message)
    return case
