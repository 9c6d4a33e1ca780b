from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

from leakgauge.auditing import Verdict
from leakgauge.report import junit

# What the schema of Jenkins' xUnit plugin (junit-10.xsd) allows: children, needed attributes, other attributes.
SCHEMA = {
    "testsuites": ({"testsuite"}, set(), {"name", "time", "tests", "failures", "errors"}),
    "testsuite": (
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
    ),
    "properties": ({"property"}, set(), set()),
    "property": (set(), {"name", "value"}, set()),
    "testcase": ({"skipped", "error", "failure", "system-out", "system-err"}, {"name"}, {"time", "classname", "group"}),
    "failure": (set(), set(), {"type", "message"}),
    "error": (set(), set(), {"type", "message"}),
    "system-out": (set(), set(), set()),
}


def valid(root: ET.Element) -> ET.Element:
    for element in root.iter():
        children, needed, others = SCHEMA[element.tag]
        assert {child.tag for child in element} <= children
        assert needed <= set(element.attrib) <= needed | others
    return root


def test_nothing_measured_is_an_error_and_not_an_empty_suite(documents):
    nothing = replace(documents.undecided(), findings=(), attacks=(), verdict=Verdict.CANNOT_TELL)
    root = valid(ET.fromstring(junit(documents.alone(nothing)).encode()))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("1", "0", "1")
    assert root.find(".//error").get("message") == "no measure was compared with the release rule"


def test_one_suite_for_each_model_and_one_case_for_each_finding(three_models):
    root = valid(ET.fromstring(junit(three_models).encode()))
    assert [suite.get("name") for suite in root] == [audit.description.model for audit in three_models.audits]
    for suite, audit in zip(root, three_models.audits, strict=True):
        cases = suite.findall("testcase")
        assert [case.get("name") for case in cases] == [finding.measure for finding in audit.findings]
        assert [case.get("classname") for case in cases] == [
            f"leakgauge.{finding.question}" for finding in audit.findings
        ]


def test_fails_is_a_failure_and_cannot_tell_an_error(three_models):
    root = ET.fromstring(junit(three_models).encode())
    for suite, audit in zip(root, three_models.audits, strict=True):
        for case, finding in zip(suite.findall("testcase"), audit.findings, strict=True):
            tag = {Verdict.FAILS: "failure", Verdict.CANNOT_TELL: "error", Verdict.PASSES: None}[finding.verdict]
            assert [child.tag for child in case if child.tag != "system-out"] == ([] if tag is None else [tag])


def test_counts_are_the_sums_of_the_cases(three_models):
    root = ET.fromstring(junit(three_models).encode())
    # 8 passing; 2 + 5 + 1 failing, 1 undecided and 1 passing; 2 undecided.
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("21", "8", "3")
    assert [(s.get("tests"), s.get("failures"), s.get("errors")) for s in root] == [
        ("8", "0", "0"),
        ("11", "8", "1"),
        ("2", "0", "2"),
    ]


def test_an_error_says_what_would_settle_it(documents):
    root = ET.fromstring(junit(documents.alone(documents.undecided())).encode())
    error = root.find(".//error")
    assert error.get("message") == "no training procedure was given, so the model cannot be retrained without a record"
    assert "Give the learner, so that models without each record can be trained." in error.text


def test_every_case_has_its_number(documents):
    root = ET.fromstring(junit(documents.alone(documents.passing())).encode())
    outs = [case.findtext("system-out") for case in root.iter("testcase")]
    assert outs[0] == "largest PDTP (queries about the record itself): 0.42 (exact), limit 1"
    assert outs[2].endswith("0.010 (−0.030 to 0.050), limit 0.1")


def test_hostile_and_impossible_characters_stay_text(documents):
    result = documents.failing()
    name = ']]></testsuite><x a="1">&\x00\x1b\ud83d\ufffe ✓ 𝛼'
    broken = replace(result, description=replace(result.description, model=name))
    root = valid(ET.fromstring(junit(documents.alone(broken)).encode()))
    assert root[0].get("name") == r']]></testsuite><x a="1">&\x00\x1b\ud83d\ufffe ✓ 𝛼'


def test_nobody_is_named(documents, three_models):
    assert not any(own in junit(three_models) for own in documents.OWN_IDS)


def test_the_same_document_gives_the_same_text(documents):
    assert junit(documents.three_models()) == junit(documents.three_models())
