"""What regulators and output checkers ask: rows of the annex, and the form."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from leakgauge.auditing import Verdict
from leakgauge.auditing.provenance import Hashes, Provenance
from leakgauge.report import annex, checker_form, render_html
from leakgauge.report.checker import TO_FILL_IN

PROVENANCE = Provenance(
    "2026-05-04T09:30:00+00:00", "Data office", "loans.csv", "loans.toml", "3.11.7",
    {"Decision tree": Hashes("a" * 64, "b" * 64, "c" * 64, "sha256 " + "d" * 64)},
)  # fmt: skip


def rows(audit):
    return {one.attack: one for one in annex.edpb(audit)}


def test_the_annex_has_the_attacks_that_the_opinion_names(documents):
    assert list(rows(documents.failing())) == [
        "Attribute inference",
        "Membership inference",
        "Exfiltration",
        "Regurgitation of training data",
        "Model inversion",
        "Reconstruction",
    ]


def test_what_was_executed_has_its_result(documents):
    found = rows(documents.failing())
    assert found["Membership inference"].executed == f"yes, {len(documents.failing().attacks)} attacks"
    assert found["Membership inference"].result == "fails"
    assert found["Attribute inference"].executed.startswith("yes, “")
    assert found["Attribute inference"].result == "fails"


def test_a_file_can_be_taken_where_one_is_given_away(documents):
    audit = documents.passing()
    for changed, applies in (
        ({}, "only where others are given the model file"),
        ({"method": audit.method | {"released_to": "file"}}, "yes"),
        ({"method": audit.method | {"released_to": "api"}}, "only where others are given the model file"),
    ):
        found = rows(replace(audit, file=None, **changed))["Exfiltration"]
        assert found.scope == applies
        assert found.executed.startswith("no")


def test_what_was_not_executed_claims_nothing(documents):
    bare = replace(documents.passing(), attributes=(), attacks=(), findings=(), verdict=Verdict.CANNOT_TELL)
    for one in annex.edpb(bare):
        assert one.executed.split(";")[0] == "no"
        assert one.result == "–"


def test_no_differential_privacy_is_read_out_of_a_measurement(documents):
    for audit in (documents.passing(), documents.failing(), documents.undecided()):
        assert annex.nist(audit).startswith("This audit states and verifies no guarantee of differential privacy")


def test_where_a_result_comes_from_stands_on_its_first_screen(documents):
    page = render_html(documents.alone(documents.failing()), PROVENANCE)
    first = page[: page.index('class="why"')]
    for said in (
        "4 May 2026, 09:30 UTC",
        "Data office",
        "loans.csv",
        "sha256 dddddddddddd…",
        "aaaaaaaaaaaa…",
        "3.11.7",
    ):
        assert said in first
    assert "leakgauge protect loans.toml --model" in page


@pytest.mark.parametrize("stamp", ["", "yesterday", "2026-13-45"])
def test_a_date_that_is_none_stays_as_it_is(documents, stamp):
    assert stamp in render_html(documents.alone(documents.failing()), replace(PROVENANCE, started=stamp))


def test_hostile_origins_stay_text(documents):
    hostile = replace(PROVENANCE, auditor="<script>x</script>", data="<b>", source="a; rm -rf /")
    page = render_html(documents.alone(documents.failing()), hostile)
    assert "<script>x" not in page
    assert "<b>," not in page
    assert "leakgauge protect &#39;a; rm -rf /&#39;" in page


@pytest.mark.parametrize("manifest", [{}, {"inputs": 3}, {"inputs": {"models": [7, {"name": "x"}]}, "auditor": 9}])
def test_a_manifest_of_another_form_leaves_fields_empty(manifest):
    made = Provenance.of(manifest)
    assert made.auditor == made.started == ""


def test_no_field_of_a_manifest_holds_what_a_terminal_obeys():
    made = Provenance.of({"auditor": "me\x1b[2J\u202e", "inputs": {"models": [{"name": "a\nb", "train": "\x07"}]}})
    assert made.auditor == "me\\x1b[2J\\u202e"
    assert {name: one.train for name, one in made.models.items()} == {"a\\nb": "\\x07"}


def test_the_form_has_what_a_checker_needs_and_fields_to_fill_in(documents):
    form = json.loads(checker_form(documents.alone(documents.failing()), PROVENANCE))
    assert form["verdict"] == form["models"][0]["verdict"] == "fails"
    assert form["run"]["auditor"] == "Data office"
    model = form["models"][0]
    assert model["checksums"]["source"].endswith("d" * 64)
    assert model["in_a_sentence"].startswith("Leaving one record out")
    assert len(model["findings"]) == len(documents.failing().findings)
    assert len(model["attacks_of_edpb_opinion_28_2024"]) == 6
    assert model["not_tested"] == list(documents.failing().not_tested)
    assert form["to_fill_in"] == dict.fromkeys(TO_FILL_IN, "")


def test_the_form_names_nobody(documents):
    text = checker_form(documents.three_models())
    assert all(one.record not in text for audit in documents.three_models().audits for one in audit.most_exposed)
