from __future__ import annotations

from dataclasses import replace

import pytest

from leakgauge.auditing import Document, Verdict
from leakgauge.report import markdown
from leakgauge.report.model_card import escape

HOSTILE = "</td>|<img src=x onerror=alert(1)>\n# [link](https://example.org) `*_~$@team"


def test_nothing_measured_does_not_read_as_passing(documents):
    nothing = replace(documents.undecided(), findings=(), attacks=(), verdict=Verdict.CANNOT_TELL)
    text = markdown(documents.alone(nothing))
    assert "**? Cannot tell whether the release rule holds.**" in text
    assert "pass" not in text.lower()


def test_no_model_at_all(three_models):
    text = markdown(replace(three_models, audits=(), verdict=Verdict.CANNOT_TELL))
    assert "Cannot tell" in text


@pytest.mark.parametrize(
    ("name", "mark"), [("passing", "✓ Passes"), ("failing", "✗ Fails"), ("undecided", "? Cannot tell")]
)
def test_the_verdict_comes_first_in_mark_and_word(documents, name, mark):
    lines = markdown(documents.alone(getattr(documents, name)())).splitlines()
    assert lines[0].startswith("## Privacy audit: ")
    assert lines[2].startswith(f"**{mark}")


def test_every_finding_is_a_row(documents):
    text = markdown(documents.alone(documents.failing()))
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(documents.failing().findings)
    assert "| Largest PDTP (queries about the record itself) | ∞ | infinite | 1 | ✗ fails |" in rows
    assert "| Membership advantage, Gap attack (label only) | 0.110 | 0.070 to 0.150 | 0.1 | ? cannot tell |" in rows


def test_what_was_not_measured_is_not_a_number(documents):
    text = markdown(documents.alone(documents.undecided()))
    assert "| Differential training privacy of the training records | not measured | – | 1 | ? cannot tell |" in text


def test_several_models_have_an_overview_and_a_section_each(three_models):
    text = markdown(three_models)
    assert "Of 3 models: 1 fails, 1 cannot tell, 1 passes." in text
    assert text.index("| Model | Verdict | Reason |") < text.index("### Logistic regression")
    assert text.count("#### For the file") == 3
    assert text.count("\n### ") == 3


def test_the_paragraph_stands_alone(documents):
    text = markdown(documents.alone(documents.passing()))
    paragraph = text.split("### For the file\n\n")[1].split("\n\n")[0]
    assert "\n" not in paragraph.strip()
    for part in ("Audited", "Threat model", "Tested", "Results", "Release rule", "Verdict", "Not tested"):
        assert f"**{part}:**" in paragraph
    assert "anonym" not in text.lower()


def test_the_reason_and_the_remedy_are_there(documents):
    text = markdown(documents.alone(documents.undecided()))
    assert "- No training procedure was given, so the model cannot be retrained without a record." in text
    assert "- What would settle it: give the learner" in text.replace("it: Give", "it: give")


def test_nobody_is_named(documents, three_models):
    text = markdown(three_models)
    assert not any(own in text for own in documents.OWN_IDS)
    assert not any(record.record in text for record in documents.failing().records)


def test_hostile_names_stay_text_on_their_line(documents):
    result = documents.failing()
    broken = replace(result, description=replace(result.description, model=HOSTILE), notes=(HOSTILE,))
    text = markdown(Document.of(HOSTILE, [broken, documents.passing()]))
    assert "<img" not in text.replace(r"\<img", "")
    assert "https://" not in text
    assert sum(line.startswith("#") for line in text.splitlines()) == 1 + 2 + 2 + 1
    for row in text.splitlines():
        if row.startswith("| "):
            assert row.replace(r"\|", "").count("|") in {4, 6}


def test_escaping_is_undone_by_reading():
    assert escape("plain, with (brackets) - and. dots") == "plain, with (brackets) - and. dots"
    assert escape(r"a\b") == r"a\\b"
    assert escape(" two\n\n lines ") == "two lines"


def test_the_same_document_gives_the_same_text(documents):
    assert markdown(documents.three_models()) == markdown(documents.three_models())
