from __future__ import annotations

import importlib.util
import os
import re
import stat
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from leakgauge.auditing import Verdict
from leakgauge.defences import Binning, Ensemble, LabelsOnly, StrongerPenalty, Temperature, Unchanged
from leakgauge.drawing.labels import LETTER, Box, _at, _distance, place_labels
from leakgauge.errors import StoreError
from leakgauge.protecting import Refused
from leakgauge.protecting.document import dump, load
from leakgauge.report.frontier import NARROW, WIDE, describe, frontier_plot, frontier_svg, label_of
from leakgauge.report.protection import advice, headline, nearest, render_protection, settled, write_protection
from leakgauge.statistics import Estimate

HOSTILE = "</style><img src=x onerror=alert(1)>\"'&{{7*7}}"
SVG = "{http://www.w3.org/2000/svg}"
AREA = Box(0.0, 0.0, 640.0, 360.0)


@pytest.fixture(scope="module")
def protections() -> ModuleType:
    """The documents made by hand; the tests in the browser use the same."""
    spec = importlib.util.spec_from_file_location("protections", Path(__file__).with_name("protections.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drawn(document) -> ET.Element:
    return ET.fromstring(str(frontier_plot(document, "k")))


def of_class(root: ET.Element, name: str) -> list[ET.Element]:
    return [element for element in root.iter() if name in (element.get("class") or "").split()]


def texts(html: str) -> str:
    bare = re.sub(r"<(style|svg)\b.*?</\1>", " ", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", bare).split())


# Nothing to protect, nothing known.


def test_a_model_that_gives_nothing_away_passes_as_it_is(protections):
    document = protections.harmless()
    assert headline(document) == "Passes the release rule as it is"
    said = texts(render_protection(document))
    assert "Passes the release rule as it is" in said
    assert "permits a release" in said
    assert "no defence, cheapest that passes" in "".join(drawn(document).itertext())


def test_what_was_not_measured_is_drawn_apart_and_never_at_nothing(protections):
    """Its sign stands above the axes, further up than any measured risk, and no words call it small or safe."""
    document = protections.unsettled()
    signs = of_class(drawn(document), "icon")[: len(document.tried)]
    heights = [float(sign.get("y")) for sign in signs]
    assert heights[2] < min(heights[:2])
    assert "not measured" in "".join(drawn(document).itertext())
    assert "ensemble 10: cannot tell, not measured" in describe(document)
    assert document.frontier == ("penalty-10", "unchanged")
    said = texts(render_protection(document))
    assert "not measured" in said[said.index("The numbers") :]
    assert "nothing could be measured; it may be large" in said


def test_where_nothing_is_shown_nothing_is_recommended(protections):
    document = protections.unsettled()
    assert headline(document) == "No defence was shown to pass the release rule"
    said = texts(render_protection(document))
    assert "an undecided measure does not count as safe" in said
    assert "What might pass Regularised 10 times as strongly. Loss threshold may exceed the limit of 0.1." in said
    named = "Regularised 10 times as strongly: with about 9,000 of each, a harmless model passes."
    assert f"What would settle it {named}" in said
    assert not of_class(drawn(document), "chosen")
    assert "cheapest that passes" not in said


def test_an_advice_stands_once_with_all_defences_that_it_is_about(protections):
    one = protections.unsettled().of_name("penalty-10")
    (said,) = settled([one, replace(one, title="temperature 2")])
    assert said.startswith("regularised 10 times as strongly and temperature 2: ")


def test_those_about_which_nothing_is_shown_stand_by_their_risk_the_unmeasured_last(protections):
    assert [one.name for one in nearest(protections.unsettled())] == ["penalty-10", "ensemble-10"]
    document = protections.protection(
        protections.outcome(Ensemble(10), None, 0.01),
        protections.outcome(StrongerPenalty(10), 0.095, 0.04),
        protections.outcome(Temperature(2), 0.09, 0.0, half=0.04),
        protections.outcome(Binning(0.01), 0.09, 0.0),
    )
    assert [one.name for one in nearest(document)] == ["binning-0.01", "penalty-10", "temperature-2"]
    assert nearest(protections.usual()) == nearest(protections.hopeless()) == []


def test_where_all_fail_it_says_so(protections):
    document = protections.hopeless()
    assert headline(document) == "Fails the release rule with every defence"
    said = texts(render_protection(document))
    assert "Do not release this model as it is." in said
    assert "passes" not in said[: said.index("The numbers")].replace("Whether it passes", "")


def test_no_defence_at_all(protections):
    document = protections.protection(protections.outcome(Unchanged(), 0.5, 0.0))
    said = texts(render_protection(document))
    assert "0 defences were tried" in said
    assert "No defence could be applied." in said


def test_nothing_measured_at_all(protections):
    document = protections.protection(protections.outcome(Unchanged(), None, 0.0))
    assert document.verdict is Verdict.CANNOT_TELL
    assert document.frontier == ()
    assert len(of_class(drawn(document), "cross")) == 1  # that of the legend
    render_protection(document)


@pytest.mark.parametrize("sheet", [WIDE, NARROW])
def test_words_and_signs_stand_within_the_picture(protections, sheet):
    """The legend below the numbers and the names of both axes, and what is better to the right of the axis."""
    root = ET.fromstring(str(frontier_plot(protections.usual(), "k", sheet)))
    elements = [one for one in root.iter() if one.tag in {"text", "use"}]
    places = {(one.text or one.get("href")): (float(one.get("x")), float(one.get("y"))) for one in elements}
    assert all(0 <= across <= sheet.width and 0 <= up <= sheet.height - 6 for across, up in places.values())
    axes = max(up for said, (_, up) in places.items() if said.startswith("cost"))
    legend = [places[said] for said in ("passes", "cannot tell", "fails", "frontier")]
    assert all(up >= axes + 18 for _, up in legend)
    (better,) = of_class(root, "better")
    begins, ends = re.match(r"M([\d.]+) [\d.]+l-([\d.]+) ", better.get("d")).groups()
    assert sheet.left < float(begins) - float(ends) < float(begins) < places["better"][0]


def test_the_signs_of_the_legend_leave_room_for_its_words(protections):
    """What stands left of the line for the frontier ends before the line begins."""
    root = drawn(protections.harmless())
    crosses = next(one for one in root.iter() if one.text == "simultaneous confidence intervals")
    line = of_class(root, "edge")[-1].get("d", "")
    begins = float(re.match(r"M([\d.]+)", line).group(1))
    assert float(crosses.get("x")) + LETTER * len(crosses.text) < begins


# Known answers.


def test_the_cheapest_is_named_with_what_it_costs(protections):
    document = protections.usual()
    assert headline(document) == "Passes the release rule with a defence: regularised 10 times as strongly"
    assert advice(document) == (
        "It is the cheapest of those that pass. The error on the holdout is 23.0 % instead of 20.0 % "
        "(2.0 to 4.0 points more). The log loss is 0.430 instead of 0.400 (0.020 to 0.040 nats more)."
    )
    ring = of_class(drawn(document), "chosen")[0]
    sign = of_class(drawn(document), "icon")[1]
    assert float(ring.get("cx")) == pytest.approx(float(sign.get("x")) + 8)
    assert float(ring.get("cy")) == pytest.approx(float(sign.get("y")) + 8)


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (0.005, "; no difference was found (−0.5 to 1.5 points). "),
        (-0.05, ", which is lower (−6.0 to −4.0 points). "),
        (
            0.05,
            "instead of 20.0 % (4.0 to 6.0 points more). The log loss is 0.450 instead of 0.400 (0.040 to 0.060 nats",
        ),
    ],
)
def test_a_cost_that_is_not_shown_is_called_none_that_is_shown(protections, cost, said):
    plain, better = protections.outcome(Unchanged(), 0.4, 0.0), protections.outcome(StrongerPenalty(10), 0.02, cost)
    assert said in advice(protections.protection(plain, better))


def test_each_point_stands_where_its_risk_and_cost_are(protections):
    """The axis of risk is logarithmic: equal factors are equal lengths; those of equal cost stand above each other."""
    tried = [
        (Unchanged(), 0.4, 0.0),
        (Binning(0.1), 0.2, 0.05),
        (StrongerPenalty(10), 0.1, 0.1),
        (LabelsOnly(), 0.0, 0.1),
    ]
    document = protections.protection(*(protections.outcome(*one) for one in tried))
    places = [(float(sign.get("x")), float(sign.get("y"))) for sign in of_class(drawn(document), "icon")[:4]]
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = places
    assert (x1 - x0, y1 - y0) == pytest.approx((x2 - x1, y2 - y1), abs=0.2)
    assert x2 == x3
    assert y0 < y1 < y2 < y3  # the y of a picture grows downwards


@pytest.mark.parametrize("sheet", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_title_counts_defences_and_better_stands_in_the_corner(protections, sheet):
    """The undefended model is none; lower left is better, and the arrow and its word lie there, within the axes."""
    for document, n in ((protections.usual(), "6 defences"), (protections.hopeless(), "1 defence")):
        assert f"Risk against cost of {n} of Loans" in str(frontier_plot(document, "k", sheet))
        assert f"Loans: risk against cost of {n}" in frontier_svg(document)
        root = ET.fromstring(str(frontier_plot(document, "k", sheet)))
        (arrow,) = of_class(root, "better")
        across, up = map(float, re.match(r"M([\d.]+) ([\d.]+)l-14 14", arrow.get("d")).groups())
        (word,) = [one for one in root.iter() if one.text == "better"]
        assert sheet.left < across - 14 < sheet.left + 30
        assert sheet.bottom - 30 < up + 14 < sheet.bottom
        assert across < float(word.get("x")) < across + 14
        assert up < float(word.get("y")) < up + 14


def test_the_frontier_runs_in_steps_and_the_limit_is_level(protections):
    document = protections.usual()
    assert document.frontier == ("penalty-100", "penalty-10", "labels-only")
    edge = of_class(drawn(document), "edge")[0].get("d")
    assert re.fullmatch(r"M[\d.]+ [\d.]+(V[\d.]+H[\d.]+){2}", edge)
    assert "limit of the release rule" in "".join(drawn(document).itertext())


def test_verdicts_differ_by_shape(protections):
    signs = of_class(drawn(protections.usual()), "icon")[:7]
    kinds = ["fails", "passes", "passes", "fails", "fails", "fails", "cannot-tell"]
    assert [sign.get("href") for sign in signs] == [f"#{kind}" for kind in kinds]


def test_names_of_points():
    assert label_of("dp-sgd-epsilon-3") == "DP-SGD epsilon 3"
    assert label_of("ensemble-10-smoothing-0.5") == "ensemble 10 smoothing 0.5"


def test_the_picture_in_words_has_every_number(protections):
    document = protections.usual()
    said = describe(document)
    for one in document.tried:
        assert f"{label_of(one.name)}: {one.verdict}" in said
    assert "penalty 10: passes, 0.60 (0.40 to 0.80) of the limit, cost 0.030 (0.020 to 0.040)" in said
    assert said.endswith(
        " 1 is the limit. On the frontier: penalty 100, penalty 10 and labels only. The cheapest that passes the "
        "release rule is penalty 10."
    )
    nothing = describe(protections.protection(protections.outcome(Ensemble(10), None, 0.01)))
    assert nothing.endswith(" 1 is the limit. None is shown to pass the release rule.")


def test_every_defence_stands_with_numbers_reason_and_guarantee(protections):
    document = protections.usual()
    said = texts(render_protection(document))
    for one in document.tried:
        assert said.count(one.title[1:]) >= 2
        found = one.of_limits
        assert f"{found.value:.2f} {found.low:.2f} to {found.high:.2f}" in said
        assert one.guarantee is None or one.guarantee[1:] in said
    assert "Rounds of training divided by 2. LogisticRegression is not trained in rounds that could be fewer." in said
    assert "Each was therefore audited at confidence 0.9929, so that all intervals of all 7 models have" in said
    assert "32 shadow models are models of the defended learner" in said
    for item in document.undefended.audit.not_tested:
        assert item in said


def test_pdtp_has_a_column_where_it_was_measured(protections):
    document = protections.usual()
    influence = replace(protections.documents.influence(0.42, 0.8), n_measured=500)
    first = replace(document.tried[0], audit=replace(document.tried[0].audit, influence=influence))
    said = texts(render_protection(replace(document, tried=(first, *document.tried[1:]))))
    assert "Largest PDTP Error" in said
    assert "0.42 500 records measured" in said
    assert said.count("not measured") == 6
    assert "PDTP" not in texts(render_protection(document))


def test_numbers_are_errors_not_shares_for_regression(protections):
    document = protections.usual()
    description = replace(document.undefended.audit.description, answers="values")
    tried = tuple(
        replace(one, audit=replace(one.audit, description=description), log_loss=None, calibration=None)
        for one in document.tried
    )
    values = replace(document, tried=tried)
    assert "mean squared error" in "".join(drawn(values).itertext())
    assert advice(values).endswith("The mean squared error on the holdout is 0.23 instead of 0.2 (0.02 to 0.04 more).")
    assert "%" not in advice(values)


def test_infinite_ends_stay_within_the_picture(protections):
    """Without bounds the interval of equal squared errors is the whole line."""
    document = protections.usual()
    endless = Estimate(0.0, -np.inf, np.inf, 0.99, "equal values, distribution-free", 9)
    tried = (document.tried[0], replace(document.tried[1], cost=endless), *document.tried[2:])
    markup = str(frontier_plot(replace(document, tried=tried), "k"))
    assert "inf" not in markup.replace("infinit", "")
    assert "nan" not in markup


# Labels.


def boxes_of(places):
    names = {key: f"defence {key} 0.01" for key in places}
    return place_labels(names, places, AREA)


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=() if seed < 6 else pytest.mark.slow) for seed in range(20)])
def test_no_label_covers_another_or_a_point(seed):
    """Twelve points anywhere; the seeds are fixed, so that this either holds or does not."""
    rng = np.random.default_rng(seed)
    places = {str(i): (float(x), float(y)) for i, (x, y) in enumerate(rng.uniform((10, 10), (630, 350), (12, 2)))}
    check_apart(boxes_of(places), places)


def test_twelve_points_in_one_place():
    places = {str(i): (320.0 + i % 3, 180.0 + i % 2) for i in range(12)}
    check_apart(boxes_of(places), places)


def check_apart(labels, places):
    """Pair by pair."""
    boxes = [label.box for label in labels.values()]
    for i, box in enumerate(boxes):
        assert box.within(AREA)
        assert all(box.overlap(other) == 0 for other in boxes[:i])
        for x, y in places.values():
            assert not (box.left < x < box.right and box.top < y < box.bottom)


@pytest.mark.parametrize(
    ("point", "distance"),
    [
        ((1.0, 0.0), 3.0),  # before its beginning
        ((10.0, 15.0), 5.0),  # behind its end
        ((8.0, 4.0), 5.0),  # beside its middle, (4, 7)
        ((0.2, 6.1), 2.5),  # on its other side, beside (2.2, 4.6)
    ],
)
def test_how_far_a_point_is_from_a_line(point, distance):
    """From (1, 3) to (7, 11), by hand: it is 10 long."""
    assert _distance(point, (1.0, 3.0), (7.0, 11.0)) == pytest.approx(distance)


@pytest.mark.parametrize("angle", np.arange(16) * 22.5)
def test_a_label_stands_aside_of_its_point_unless_straight_above_or_below(angle):
    """Its words end or begin on the side of the point; above and below they have their middle there."""
    label = _at("name", (100.0, 50.0), angle, 20.0)
    across, down = np.cos(np.radians(angle)).round(9), np.sin(np.radians(angle)).round(9)
    if across == 0:
        assert (label.anchor, label.x, (label.box.left + label.box.right) / 2) == ("middle", 100, 100)
        assert label.box.top - 50 >= 20 - 3 if down > 0 else 50 - label.box.bottom >= 20 - 3
    else:
        ends = {"start": label.box.left, "end": label.box.right}
        assert label.x == ends[label.anchor] == pytest.approx(100 + 20 * across)
        assert label.anchor == ("start" if across > 0 else "end")
        assert (label.box.top + label.box.bottom) / 2 == pytest.approx(50 + 20 * down)
    assert label.box.right - label.box.left == pytest.approx(LETTER * 4)
    assert label.box.top < label.y - 8 < label.y < label.box.bottom


def test_overlapping_boxes_are_found():
    assert Box(0, 0, 2, 2).overlap(Box(1, 1, 3, 4)) == 1
    assert Box(0, 0, 1, 1).overlap(Box(1, 0, 2, 1)) == 0
    assert Box(1, 1, 2, 2).within(Box(0, 0, 2, 2))
    assert not Box(-1, 1, 2, 2).within(Box(0, 0, 2, 2))


# The page and the file.


def test_the_same_document_gives_the_same_bytes_and_so_does_its_file(protections, tmp_path):
    document = protections.usual()
    (tmp_path / "protection.json").write_text(dump(document))
    again = load(tmp_path / "protection.json")
    assert again == document
    assert render_protection(document) == render_protection(protections.usual()) == render_protection(again)
    assert frontier_svg(document) == frontier_svg(again)


def test_the_page_loads_nothing_and_runs_nothing(protections):
    html = render_protection(protections.usual())
    assert "<script" not in html
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"https?://|url\(|@import", html)
    assert set(re.findall(r'href="(.)', html)) == {"#"}
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(ids)


def test_tables_have_headers_and_the_picture_has_words(protections):
    html = render_protection(protections.usual())
    assert html.count('<th scope="col">') == 7 + 3 + 3
    assert html.count('<th scope="row">') == 7 + 7 + 6
    assert 'role="img" aria-labelledby="frontier-t frontier-d"' in html
    for table in re.findall(r'<div class="stack">(.*?)</div>', html, re.DOTALL):
        assert all("data-label=" in cell for cell in re.findall(r"<td[^>]*>", table))
    levels = [int(level) for level in re.findall(r"<h(\d)", html)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_hostile_names_stay_text(protections):
    document = protections.usual()
    worst = replace(document.tried[1], name=HOSTILE, title=HOSTILE, source=HOSTILE, guarantee=HOSTILE)
    hostile = replace(
        document, model=HOSTILE, tried=(document.tried[0], worst), frontier=(HOSTILE,), cheapest=HOSTILE,
        refused={HOSTILE: Refused(HOSTILE, HOSTILE, HOSTILE)},
    )  # fmt: skip
    html, svg = render_protection(hostile), frontier_svg(hostile)
    assert "<img" not in html
    assert "<img" not in svg
    assert "&lt;img" in html
    ET.fromstring(svg)


def test_no_own_id_of_a_person_is_anywhere(protections):
    document = protections.usual()
    for text in (dump(document), render_protection(document), frontier_svg(document)):
        assert not any(own in text for own in protections.documents.OWN_IDS)


def test_the_picture_is_a_file_of_its_own_for_light_and_dark(protections):
    root = ET.fromstring(frontier_svg(protections.usual()))
    assert root.tag == f"{SVG}svg"
    style = root.findtext(f"{SVG}style")
    assert "prefers-color-scheme: dark" in style
    assert {element.get("id") for element in root.iter(f"{SVG}symbol")} == {"passes", "fails", "cannot-tell"}
    assert "Loans: risk against cost of 6 defences" in "".join(root.itertext())


def test_both_files_are_written_for_the_owner_alone(protections, tmp_path):
    page = write_protection(protections.usual(), tmp_path)
    assert page.read_text() == render_protection(protections.usual())
    assert sorted(os.listdir(tmp_path)) == ["frontier.svg", "protection.html"]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in tmp_path.iterdir())
    with pytest.raises(StoreError, match="cannot be written"):
        write_protection(protections.usual(), tmp_path / "missing")


def test_lost_probabilities_are_said(protections):
    """Labels alone: the error is as it was, the log loss is not, and there is no calibration."""
    labels = protections.outcome(LabelsOnly(), 0.02, 0.05)
    labels = replace(labels, error=protections.outcome(Unchanged(), 0.5, 0.0).error)
    document = protections.protection(protections.outcome(Unchanged(), 0.5, 0.0), labels)
    assert advice(document).endswith("0.400 (0.040 to 0.060 nats more). No probabilities are released.")
    assert "no probabilities" in texts(render_protection(document))


def test_a_guarantee_is_told_beside_the_verdict(protections):
    votes = protections.outcome(Ensemble(10), 0.02, 0.05)
    said = texts(render_protection(protections.protection(protections.outcome(Unchanged(), 0.5, 0.0), votes)))
    start = said.index("What is proven For any query, no prediction changes by more than 0.693 nats")
    assert start < said.index("Risk against cost")
    nothing = texts(render_protection(protections.usual()))
    assert "Nothing is proven: it passes by measurement." in nothing
