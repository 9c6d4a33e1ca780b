"""JUnit XML, which GitLab, Jenkins, Azure and most other pipelines show beside the tests.

There is no standard; the form follows the schema of Jenkins' xUnit plugin (junit-10.xsd), which the other readers
accept too. It has no times, so that the same document gives the same bytes.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from leakgauge.auditing import AuditDocument, Document, Finding, Verdict
from leakgauge.report.words import against_limit, sentence

# XML 1.0, section 2.2: all other characters cannot stand in a document, not even escaped.
_IMPOSSIBLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(document: Document) -> str:
    """The findings as test cases: one suite for each model, one case for each finding.

    A finding that fails is a *failure*. One that cannot tell is an *error* with what would settle it, so that a
    pipeline stops on it as well: not knowing never counts as passing. A model without any finding gives one error.

    Returns:
        The text of the file, ending in a newline.
    """
    root = ET.Element("testsuites", name=_possible(f"leakgauge {document.name}"))
    for audit in document.audits:
        root.append(_suite(audit, document.leakgauge))
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(audit: AuditDocument, version: str) -> ET.Element:
    suite = ET.Element("testsuite", name=_possible(audit.description.model))
    properties = ET.SubElement(suite, "properties")
    ET.SubElement(properties, "property", name="verdict", value=audit.verdict.value)
    ET.SubElement(properties, "property", name="leakgauge", value=_possible(version))
    cases = [_case(finding) for finding in audit.findings] or [_nothing_measured()]
    suite.extend(cases)
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
    suite.set("errors", str(sum(case.find("error") is not None for case in cases)))
    suite.set("skipped", "0")
    return suite


def _case(finding: Finding) -> ET.Element:
    case = ET.Element("testcase", classname=_possible(f"leakgauge.{finding.question}"), name=_possible(finding.measure))
    said = _possible("\n".join(filter(None, [sentence(finding.reason), sentence(finding.remedy)])))
    if finding.verdict is not Verdict.PASSES:
        tag = "failure" if finding.verdict is Verdict.FAILS else "error"
        outcome = ET.SubElement(case, tag, type=finding.verdict.value, message=_possible(finding.reason))
        outcome.text = said
    ET.SubElement(case, "system-out").text = _possible(f"{finding.measure}: {against_limit(finding)}")
    return case


def _nothing_measured() -> ET.Element:
    case = ET.Element("testcase", classname="leakgauge", name="release rule")
    message = "nothing was held against the release rule"
    ET.SubElement(case, "error", type=Verdict.CANNOT_TELL.value, message=message).text = sentence(message)
    return case


def _possible(text: str) -> str:
    """The text with every character that XML cannot hold replaced by the replacement character."""
    return _IMPOSSIBLE.sub("\ufffd", text)
