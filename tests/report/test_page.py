from __future__ import annotations

import base64
import hashlib
import importlib.resources
import io
import itertools
import json
import math
import os
import re
import stat
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from rich.console import Console

from leakgauge.auditing import Document, Finding, Verdict
from leakgauge.auditing.document import dump, load
from leakgauge.errors import StoreError
from leakgauge.report import render_html, statement, words, write_html
from leakgauge.report.chapters import attributes as attributes_chapter
from leakgauge.report.chapters import properties as properties_chapter
from leakgauge.report.page import _flat, _scales, _view
from leakgauge.report.terminal import show_audits
from leakgauge.statistics import Estimate

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&{{7*7}}"
VOID = {"meta", "input", "br", "img", "link", "hr"}
MAY_STAY_OPEN = {"td", "tr"}


class Page(HTMLParser):
    """What a browser would make of the page: elements with their text, and whether every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag in MAY_STAY_OPEN and self.open and self.open[-1] == "td":
            self.open.pop()
        if tag == "tr" and self.open and self.open[-1] == "tr":
            self.open.pop()
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self.open[-1] != tag:
            assert self.open[-1] in MAY_STAY_OPEN, f"<{self.open[-1]}> is not closed before </{tag}>"
            self.open.pop()
        self.open.pop()

    def handle_data(self, data):
        self.texts.append((tuple(self.open), data))

    def text_of(self, *without: str) -> str:
        said = " ".join(data for path, data in self.texts if not {"style", "script", *without} & set(path))
        return " ".join(said.split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture
def page(three_models) -> Page:
    return Page(render_html(three_models))


# Nothing found, nothing claimed.


def test_an_audit_that_measured_nothing_does_not_read_as_passing(documents):
    nothing = replace(
        documents.undecided(), findings=(), attacks=(), records=(), notes=(), not_tested=(), verdict=Verdict.CANNOT_TELL
    )
    text = Page(render_html(documents.alone(nothing))).text_of()
    assert "Cannot tell whether the release rule holds" in text
    assert "No measure was compared with the release rule, so the model cannot pass." in text
    assert "No membership attack was carried out." in text
    assert "Passes" not in text


def test_a_document_without_audits_cannot_tell(three_models):
    empty = replace(three_models, audits=(), verdict=Verdict.CANNOT_TELL)
    text = Page(render_html(empty)).text_of()
    assert "No model was audited." in text
    assert "Cannot tell" in text


def test_accuracy_is_of_rows_where_persons_have_several(documents):
    """All other numbers count persons."""
    persons = replace(documents.passing(), description=replace(documents.passing().description, n_rows=(700, 600)))
    for audit, of in ((persons, "rows"), (documents.passing(), "records")):
        text = Page(render_html(documents.alone(audit))).text_of()
        assert f"Accuracy on training {of}" in text
        assert f"Accuracy on holdout {of}" in text
        console = Console(file=io.StringIO(), width=200)
        show_audits(documents.alone(audit), console)
        assert f" on holdout {of}." in " ".join(console.file.getvalue().split())


# What stands where.


def test_the_verdict_comes_first_with_its_reason_and_the_advice(documents):
    text = Page(render_html(documents.alone(documents.failing()))).text_of()
    order = [
        "Fails the release rule",
        "Leaving one record out changes whether some answer is possible at all; the limit is 2.7-fold.",
        "Do not release this model as it is.",
        "the default rule",
        "Why",
        "Train with stronger regularisation",
        "Not tested",
        "Findings",
        "How much does the prediction for a record change",
        "Membership attacks",
        "The training records with the largest influence",
        "The verdict does not cover",
        "Attacks that Opinion 28/2024",
        "To be filled in by",
        "How to read the numbers",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("name", "headline", "advice", "remedy"),
    [
        ("passing", "Passes the release rule", "permits a release", None),
        ("failing", "Fails the release rule", "Do not release this model as it is.", "Mitigations"),
        ("undecided", "Cannot tell whether", "an undecided measure does not count as safe", "What would settle it"),
    ],
)
def test_each_verdict_is_told_by_word_icon_and_colour(documents, name, headline, advice, remedy):
    result = getattr(documents, name)()
    page = Page(render_html(documents.alone(result)))
    kind = result.verdict.replace(" ", "-")
    assert headline in page.text_of()
    assert advice in page.text_of()
    assert remedy is None or remedy in page.text_of()
    assert page.all("use")[0]["href"] == f"#{kind}"
    assert any(section["class"] == f"verdict {kind}" for section in page.all("section") if "class" in section)
    assert result.verdict in page.text_of("title")


def test_passing_is_never_without_what_was_not_tested(documents):
    text = Page(render_html(documents.alone(documents.passing()))).text_of()
    assert text.index("What this audit did not test (2)") < text.index("Findings")
    for item in documents.NOT_TESTED:
        assert item in text


def test_several_models_stand_side_by_side_before_each_is_told(page, three_models):
    text = page.text_of()
    assert "Of 3 models: 1 fails, 1 cannot tell, 1 passes." in text
    overview = text.index("The models side by side")
    assert overview < text.index("Findings")
    links = {a["href"] for a in page.all("a")}
    assert {"#m1", "#m2", "#m3"} <= links
    for audit in three_models.audits:
        assert text.count(audit.description.model) >= 3


def test_every_finding_stands_with_value_reason_and_remedy(page, three_models):
    text = page.text_of()
    for audit in three_models.audits:
        for finding in audit.findings:
            assert finding.measure[1:] in text
            # Powers of e are raised: e^1 becomes two pieces of text.
            assert finding.reason[1:].replace("e^", "e ") in text.replace(" ;", ";").replace("e 3 .", "e 3.")
            assert finding.remedy[1:] in text


def test_powers_of_e_are_raised(documents):
    html = render_html(documents.alone(documents.failing()))
    assert "by a factor of e<sup>3</sup>." in html
    assert "e^3" not in html


def test_every_attack_stands_with_its_three_measures_and_source(page, documents):
    text = page.text_of()
    for attack in documents.failing().attacks:
        assert attack.title[1:] in text
        assert attack.source in text
        for estimate in (attack.advantage, attack.auc):
            assert f"{estimate.value:.3f}" in text
            assert f"{estimate.low:.3f} to {estimate.high:.3f}" in text
        found = attack.tpr_at_low_fpr
        assert f"{100 * found.value:.1f} % {100 * found.low:.1f} to {100 * found.high:.1f} %" in text


def test_a_rate_that_differs_between_attacks_is_said_for_each(documents):
    result = documents.failing()
    mixed = (replace(result.attacks[0], low_fpr=0.1), *result.attacks[1:])
    text = Page(render_html(documents.alone(replace(result, attacks=mixed)))).text_of()
    assert "True-positive rate at a low FPR" in text
    assert "at 10 % " in text


def test_settings_are_words_and_not_values_of_python():
    given = {"property_games": {"mitigations": False, "poisoned": [], "n_shadow": 20}, "on": True, "group_by": None}
    assert dict(_flat(given)) == {
        "property games: mitigations": "no",
        "property games: poisoned shares": "–",
        "property games: n shadow": "20",
        "on": "yes",
        "group by": "–",
    }


def test_infinity_is_written_as_a_sign_and_read_as_a_word(documents):
    page = Page(render_html(documents.alone(documents.failing())))
    assert {"role": "img", "aria-label": "infinite"} in page.all("span")
    assert "∞" in page.text_of()
    assert not re.search(r"\b(inf|nan|Infinity)\b", page.text_of())


def test_a_regression_model_has_errors_in_place_of_accuracy(documents):
    text = Page(render_html(documents.alone(documents.regression()))).text_of()
    assert "Root mean squared error on holdout records 55 51.2 to 58.7" in text
    assert "Accuracy" not in text
    assert "The influence of single records was not measured." in text


def test_the_reason_why_influence_is_missing_is_said(documents):
    text = Page(render_html(documents.alone(documents.undecided()))).text_of()
    assert (
        "was not measured. No training procedure was given, so the model cannot be retrained without a record." in text
    )


def test_records_without_pdtp_have_no_columns_for_it(documents):
    with_it, without = (
        Page(render_html(documents.alone(r))).text_of() for r in (documents.passing(), documents.regression())
    )
    assert "Record In training PDTP Factor Noise floor Attack’s success Score" in with_it
    assert "Record In training Score" in without


def test_methods_of_intervals_are_told_with_their_confidence(documents):
    text = Page(render_html(documents.alone(documents.passing()))).text_of()
    assert "Newcombe hybrid score 0.9917 3,000 advantage of A; advantage of B" in text


def test_the_guide_explains_each_number(page):
    for term in ("Membership advantage", "PDTP and DTP", "Interval", "Cannot tell", "AUC", "Noise floor"):
        assert page.text_of().count(term) >= 1


# What must not be there.


def test_no_own_id_of_a_person_is_anywhere(documents, three_models):
    for document in (three_models, documents.alone(documents.failing())):
        html = render_html(document)
        assert not any(own in html for own in documents.OWN_IDS)


def test_records_are_listed_by_opaque_id_and_the_page_says_who_resolves_them(documents):
    result = documents.failing()
    text = Page(render_html(documents.alone(result))).text_of()
    for record in result.records:
        assert record.record in text
    assert "leakgauge records RUN --show-ids" in text


def test_classes_are_counted_and_not_named(documents):
    result = documents.failing()
    secret = replace(result, description=replace(result.description, classes=("syphilis", "healthy")))
    html = render_html(documents.alone(secret))
    assert "syphilis" not in html
    assert "Classes 2 " in Page(html).text_of()


def test_nobody_is_promised_anonymity(page):
    assert "anonym" not in page.text_of().lower()


def test_the_page_loads_nothing(three_models):
    html = render_html(three_models)
    page = Page(html)
    for _, attributes in page.elements:
        for key in ("href", "src", "srcset", "action", "data", "poster", "xlink:href", "formaction", "ping"):
            assert (attributes.get(key) or "#").startswith("#"), attributes
        assert "style" not in attributes
        assert not any(key.startswith("on") for key in attributes), attributes
    assert not {"link", "img", "iframe", "object", "embed", "base", "form", "video", "audio"} & {
        t for t, _ in page.elements
    }
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert not re.search(r"url\(|@import|image-set|src\(", style)
    assert not re.search(r"(?:https?:)?//[a-z]", html.replace("// Paper", ""))


# The content policy.


def test_the_policy_allows_exactly_the_style_and_script_of_the_page(three_models):
    html = render_html(three_models)
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', html)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    for rule, pattern in (("style-src", r"<style>(.*?)</style>"), ("script-src", r"<script>(.*?)</script>")):
        (inline,) = re.findall(pattern, html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert "unsafe" not in policy


def test_the_policy_stands_before_what_it_governs(three_models):
    html = render_html(three_models)
    assert html.index("Content-Security-Policy") < html.index("<style") < html.index("<script")


# Hostile text.


def hostile_document(documents) -> Document:
    result = documents.failing()
    attack = replace(result.attacks[0], name=HOSTILE, title=HOSTILE, source=HOSTILE)
    estimate = Estimate(0.2, 0.1, 0.3, 0.95, HOSTILE, 10)
    finding = Finding(HOSTILE, HOSTILE, estimate, 0.0, 0.1, Verdict.FAILS, HOSTILE, HOSTILE)
    association = replace(result.with_influence, attack=HOSTILE)
    return Document.of(
        HOSTILE,
        [
            replace(
                result,
                description=replace(
                    result.description, model=HOSTILE, learner=HOSTILE, released=HOSTILE, answers=HOSTILE
                ),
                findings=(finding, *result.findings),
                attacks=(attack, *result.attacks[1:]),
                influence=replace(result.influence, engine=HOSTILE),
                with_influence=association,
                records=(replace(result.records[0], record=HOSTILE),),
                notes=(HOSTILE,),
                not_tested=(HOSTILE,),
                method={HOSTILE: HOSTILE, "rule": {HOSTILE: HOSTILE}, "versions": [HOSTILE]},
            ),
            documents.passing(),
        ],
    )


def test_hostile_names_stay_text(documents):
    html = render_html(hostile_document(documents))
    page = Page(html)
    assert page.all("img") == []
    assert [attributes.get("id") for attributes in page.all("script")] == ["data", None]
    assert page.text_of().count(HOSTILE[1:]) >= 12
    assert "49" not in re.findall(r"<h1>(.*?)</h1>", html)[0]


def test_hostile_names_do_not_end_the_data(documents):
    html = render_html(hostile_document(documents))
    (block,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert not set("<>&") & set(block)
    assert json.loads(block)["audits"][0]["model"] == HOSTILE


def test_a_name_that_no_encoding_knows_is_written_all_the_same(documents, tmp_path):
    result = documents.passing()
    broken = replace(result, description=replace(result.description, model="half a pair \ud83d"))
    path = write_html(documents.alone(broken), tmp_path / "report.html")
    assert r"half a pair \ud83d" in path.read_text("utf-8")


# The data.


def test_the_data_are_what_is_drawn(documents, three_models):
    html = render_html(three_models)
    (block,) = re.findall(r'id="data">(.*?)</script>', html, re.DOTALL)
    data = json.loads(block)
    assert [audit["verdict"] for audit in data["audits"]] == ["passes", "fails", "cannot tell"]
    failing = data["audits"][1]
    assert failing["pdtp"]["infinite"] == 26
    assert sum(failing["pdtp"]["counts"]) == sum(documents.failing().influence.histogram.counts)
    # The curve of “distance” is fpr ** 0.25; 0.01 is a point of its grid.
    assert failing["tpr"]["distance"][failing["fpr"].index(0.01)] == pytest.approx(0.01**0.25, abs=1e-4)
    assert len(failing["dots"]["pdtp"]) == len(failing["dots"]["success"]) == 400


def test_infinite_numbers_are_text_in_the_data(documents):
    result = documents.failing()
    curve = replace(result.with_influence, pdtp=(math.inf, -math.inf, 1.0), success=(1.0, 0.5, 0.5))
    html = render_html(documents.alone(replace(result, with_influence=curve)))
    (block,) = re.findall(r'id="data">(.*?)</script>', html, re.DOTALL)
    assert json.loads(block)["audits"][0]["dots"]["pdtp"] == ["Infinity", "-Infinity", 1.0]


# For everyone.


def test_the_page_has_language_landmarks_and_one_heading_of_the_first_level(page):
    assert page.all("html") == [{"lang": "en"}]
    for landmark in ("header", "main", "footer", "title", "h1"):
        assert len([tag for tag, a in page.elements if tag == landmark and (landmark != "title" or not a)]) >= 1
    assert len(page.all("h1")) == len(page.all("main")) == 1
    assert page.all("a")[0] == {"class": "skip", "href": "#verdict"}


def test_headings_leave_out_no_level(documents, three_models):
    for document in (three_models, documents.alone(documents.failing())):
        levels = [int(tag[1]) for tag, _ in Page(render_html(document)).elements if re.fullmatch(r"h[1-6]", tag)]
        assert levels[0] == 1
        assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_ids_are_unique_and_every_reference_leads_somewhere(page):
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    referred = [a["href"][1:] for _, a in page.elements if (a.get("href") or "").startswith("#")]
    referred += [name for _, a in page.elements for name in (a.get("aria-labelledby") or "").split()]
    referred += [a["for"] for a in page.all("label")]
    assert set(referred) <= set(ids)


def test_every_figure_has_its_data_as_a_table(page, documents):
    summaries = page.text_of()
    assert summaries.count("The curves as a table") == 3
    assert summaries.count("The histogram as a table") == summaries.count("The dots as a table") == 2
    plots = [a for a in page.all("svg") if a.get("class") == "plot"]
    assert len(plots) == 3 + 2 + 2
    assert all(a["role"] == "img" for a in page.all("svg") if a.get("class") in {"plot", "interval"})


def test_every_cell_of_a_stacked_table_carries_its_label(three_models):
    html = render_html(three_models)
    for table in re.findall(r'<div class="stack">(.*?)</div>', html, re.DOTALL):
        assert all("data-label=" in cell for cell in re.findall(r"<td[^>]*>", table))


# Round trips.


def test_the_same_document_gives_the_same_bytes(documents):
    assert render_html(documents.three_models()) == render_html(documents.three_models())


def test_a_document_read_from_its_file_gives_the_same_page(three_models, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(dump(three_models))
    assert render_html(load(path)) == render_html(three_models)


def test_the_page_is_small(three_models):
    """Three models, one of them with two hidden columns."""
    assert len(render_html(three_models).encode()) < 190_000


# Hidden columns.


def test_a_hidden_column_stands_with_its_sentence_its_attacks_and_its_values(documents):
    result = documents.failing()
    text = Page(render_html(documents.alone(result))).text_of()
    start, end = (
        text.index("Can an attacker who knows all other columns"),
        text.index("The training records with the largest influence"),
    )
    said = text[start:end]
    column = result.attributes[0]
    assert attributes_chapter.hidden_column(result.attributes[0]) in said
    for attack in column.attacks:
        assert attack.title[1:] in said
        for estimate in (attack.members, attack.others, attack.advantage, attack.gain_members, attack.gain_others):
            assert words.interval(estimate) in said
    assert said.count("; not judged") == 2
    assert "CC 100 90 % 100 60 % 0.300 0.200 to 0.400" in said
    assert "rare few – few – – –" in said
    assert "north 100 90 %" in said
    assert "a1b2c3d4e5f6 CC" in said
    assert "The value of 2 of 2,000 training records is identified at FDR 5 %" in said


def test_a_column_that_the_model_does_not_use_has_no_table(documents):
    result = replace(documents.failing(), attributes=(documents.ignored(),))
    said = Page(render_html(documents.alone(result))).text_of()
    assert "The model does not use “sex”: its predictions do not depend on the value" in said
    assert "Gain, members" not in said


def test_questions_stand_in_their_order_and_hidden_columns_in_the_overview(page, documents):
    text = page.text_of()
    assert "Influence Membership inference Attribute inference" in text
    alone = Page(render_html(documents.alone(documents.failing()))).text_of()
    titles = [statement.question_title(question) for question in ("influence", "membership", "attributes")]
    places = [alone.index(title, alone.index("Findings")) for title in titles]
    assert places == sorted(places)


def test_without_hidden_columns_the_page_does_not_speak_of_them(documents):
    text = Page(render_html(documents.alone(documents.passing()))).text_of()
    assert "sensitive attribute" not in text.lower()
    assert "Attribute advantage" not in text


def test_what_is_not_known_of_a_hidden_column_is_said(documents):
    column = documents.hidden()
    bare = tuple(replace(one, gain_members=None, gain_others=None, by_group=()) for one in column.attacks)
    column = replace(column, n_own=0, best_guess_members=None, attacks=bare)
    text = Page(render_html(documents.alone(replace(documents.failing(), attributes=(column,))))).text_of()
    assert text.count("not known") == 2 * 3 + 1
    assert "complete record" not in text[text.index("all other columns") : text.index("How much does")]
    assert "By group" not in text


def test_a_result_writes_its_own_page(documents, tmp_path):
    path = documents.passing().to_html(tmp_path / "report.html")
    assert path.read_text("utf-8") == render_html(documents.alone(documents.passing()))


def test_the_file_is_the_owners_alone_and_whole(three_models, tmp_path):
    path = write_html(three_models, str(tmp_path / "report.html"))
    assert path.read_text("utf-8") == render_html(three_models)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_folder_that_is_not_there_is_an_error_that_says_so(three_models, tmp_path):
    with pytest.raises(StoreError, match=r"report\.html cannot be written \(No such file or directory\)"):
        write_html(three_models, tmp_path / "missing" / "report.html")


def test_templates_travel_with_the_package():
    folder = importlib.resources.files("leakgauge.report") / "templates"
    assert {"page.html", "audit.html", "parts.html", "style.css", "script.js"} <= {f.name for f in folder.iterdir()}


def test_a_property_of_the_whole_stands_with_its_sentence_its_picture_and_its_games(documents):
    result = documents.telling()
    page = Page(render_html(documents.alone(result)))
    text = page.text_of()
    start, end = (
        text.index("Can an attacker find out how frequent"),
        text.index("The training records with the largest influence"),
    )
    said = text[start:end]
    for one in result.properties:
        assert properties_chapter.property_told(one) in said
        for game in one.games:
            assert words.capital(words.game_title(game)) in said
            assert words.interval(game.accuracy) in said
    for remedy in result.properties[0].mitigations:
        assert f"the owner trains {properties_chapter.mitigation_title(remedy)}" in said
        assert words.interval(remedy.game.recall) in said
    assert "The attacker knows the mitigation" in said
    assert "success not guaranteed" in said
    assert "within 0.00012 of the optimum" in said
    assert "The audited model was trained on more records than these" in said
    assert "not known" in said
    assert "not reached" in said
    assert "Attack accuracy of property inference" in text
    assert "Precision and recall" in text
    assert "precision and recall at “sex is f”" in text
    assert statement.question_title("properties") in text


def test_a_remedy_that_was_not_tried_says_why(documents):
    found = documents.whole()
    not_tried = replace(found.mitigations[0], game=None, not_tried="models without a record take training")
    result = replace(documents.telling(), properties=(replace(found, mitigations=(not_tried,)),))
    said = Page(render_html(documents.alone(result))).text_of()
    assert "not tried: models without a record take training" in said


def test_a_property_of_an_older_document_has_no_precision(documents):
    result = replace(documents.telling(), properties=(documents.before_use(),))
    start, end = "Can an attacker find out how frequent", "How much does the prediction"
    said = Page(render_html(documents.alone(result))).text_of()
    assert "recision" not in said[said.index(start) : said.index(end)]


def test_without_properties_the_page_does_not_speak_of_them(three_models):
    text = Page(render_html(three_models)).text_of()
    assert "training set as a whole" not in text
    assert "Attack accuracy of property inference" not in text
    assert "Precision and recall" not in text


def test_properties_stand_in_the_overview_and_in_the_data(documents):
    both = Document.of("two", [documents.telling(), documents.passing()])
    text = Page(render_html(both)).text_of()
    assert "Property inference" in text
    assert '"sex is f":[["probabilities",0.0,0.9,null,null],["labels",0.0,0.5,0.7,0.5]' in render_html(both)


def test_tail_odds_stand_beside_each_attack_and_on_a_scale_of_their_own(documents):
    page = Page(render_html(documents.alone(documents.tailed()))).text_of()
    assert "15.30 or more" in page
    assert "128 of the 128 highest are members" in page
    assert "18 of the 32 lowest are members" in page
    assert "identifies a group of training records: 128 of the 128 records with the highest scores" in page
    scales = _scales(documents.tailed().findings)
    assert scales[("membership", 0.0)][1] < 1
    assert scales[("membership", 1.0)][1] > math.e
    # Documents of schema versions before 1.5 hold none.
    assert "are members" not in Page(render_html(documents.alone(documents.passing()))).text_of()


def test_the_measure_that_lies_furthest_beyond_its_own_limit_stands_in_the_overview(documents):
    view = _view(documents.tailed(), 0)
    assert view.strongest["membership"].verdict is Verdict.FAILS
    # Odds below their limit are a bound from below; advantages lie nearer to theirs.
    quiet = documents.tailed()
    tails = [replace(one, tail=quiet.attacks[1].tail) for one in quiet.attacks]
    findings = documents.membership_findings(tails, quiet.description, quiet.rule)
    view = _view(replace(quiet, findings=tuple(findings), attacks=tuple(tails)), 0)
    assert view.strongest["membership"].measure.startswith("membership advantage")


def test_where_persons_have_several_rows_our_prose_counts_persons(documents):
    result = documents.failing()
    of_persons = replace(result, description=replace(result.description, model="records", n_rows=(9_000, 9_000)))
    text = Page(render_html(documents.alone(of_persons))).text_of()
    start, end = text.index("How much does the prediction for a"), text.index("The training persons with the largest")
    assert "removed from the training set? 2,000 of 2,000 training persons were removed" in text[start:end]
    assert not re.search(r"\b\d[\d,]* (training |holdout )?records?\b", text[start:end])
    assert "The model “records”" in text  # names stay as they are


def test_records_above_the_limit_are_marked_by_all_of_their_digits(documents):
    """Numbers of the table have four digits, and the limit may lie between a value and these."""
    result = documents.failing()
    name, limit = result.description.model, result.rule.dtp
    values = ["", "0.5", "1.0", "1.00004", "inf", "2.0"]
    rows = [
        {"model": name, "record": f"{i:012x}", "member": "True", "exposed": "False", "pdtp": value, "change": "",
         "noise_floor": "", "success": "", "score": ""}
        for i, value in enumerate(values)
    ]  # fmt: skip
    html = render_html(documents.alone(result), None, rows)
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S).group(1))
    held = data["audits"][0]["records"]
    assert limit == 1
    assert held["above"] == "000111"
    assert held["pdtp"] == [None, 0.5, 1.0, 1.0, "inf", 2.0]
